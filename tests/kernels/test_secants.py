"""The vectors of L-BFGS: products and combinations as numpy makes them, in both modes, part by part."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from besag.arrays import freeze
from besag.kernels import secants
from besag.kernels.compile import kernel_of

MODES = pytest.mark.parametrize("compile", [False, True])
SCALED = pytest.mark.parametrize("scaled", [0, 1])
N, R = 2 * secants.BLOCK + 37, 3


PRECISION = pytest.mark.parametrize("precision", [np.float32, np.float64])


def drawn(scaled: int, precision: type) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    vectors = [freeze(rng.normal(size=N)) for _ in range(5)]
    root = rng.uniform(0.5, 2.0, size=N) if scaled else np.ones(N)
    return rng.normal(size=(2 * R, N)).astype(precision), vectors, freeze(root if scaled else np.zeros(0)), root


@MODES
@SCALED
@PRECISION
def test_a_pair_and_its_products(scaled: int, compile: bool, precision: type) -> None:
    rows, vectors, root, scale = drawn(scaled, precision)
    theta, next_theta, slope, next_slope, gradient = vectors
    expected = rows.copy()
    expected[1], expected[1 + R] = (next_theta - theta) * scale, (next_slope - slope) / scale
    products = np.zeros((2 * R, 3))
    add_pair = kernel_of(secants.make_add_pair, scaled, compile=compile)
    for start, stop in ((0, N // 2 + 5), (N // 2 + 5, N)):
        add_pair(1, *vectors, root, start, stop, rows, products)
    assert_allclose(rows, expected, rtol=4 * np.finfo(precision).eps)
    stored = rows.astype(np.float64)
    others = np.stack([stored[1], stored[1 + R], gradient / scale])
    assert_allclose(products, stored @ others.T, rtol=1e-12, atol=1e-11)


@MODES
@SCALED
@PRECISION
def test_a_combination(scaled: int, compile: bool, precision: type) -> None:
    rows, vectors, root, scale = drawn(scaled, precision)
    coefficients = freeze(np.array([0.5, 0.0, -2.0, 1.5, 0.0, 3.0]))
    result = np.empty(N)
    combine = kernel_of(secants.make_combine, scaled, compile=compile)
    for start, stop in ((0, N // 2 + 5), (N // 2 + 5, N)):
        combine(coefficients, 0.7, vectors[0], root, freeze(rows), start, stop, result)
    expected = (0.7 * vectors[0] / scale + coefficients @ rows.astype(np.float64)) / scale
    assert_allclose(result, expected, rtol=1e-12, atol=1e-13)
