"""The vectors of L-BFGS: products and combinations as numpy makes them, in both modes, part by part."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from besag.arrays import frozen
from besag.kernels import secants
from besag.kernels.compile import kernel_of

MODES = pytest.mark.parametrize("compile", [False, True])
SCALED = pytest.mark.parametrize("scaled", [0, 1])
N, R = 2 * secants.BLOCK + 37, 3


def drawn(scaled: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    vectors = [frozen(rng.normal(size=N)) for _ in range(5)]
    root = rng.uniform(0.5, 2.0, size=N)
    return rng.normal(size=(2 * R + 1, N)), vectors, frozen(root if scaled else np.zeros(0)), root


@MODES
@SCALED
def test_a_pair_and_its_products(scaled: int, compile: bool) -> None:
    rows, vectors, root, scale = drawn(scaled)
    scale = scale if scaled else np.ones(N)
    theta, next_theta, slope, next_slope, gradient = vectors
    expected = rows.copy()
    expected[1], expected[1 + R], expected[-1] = (
        (next_theta - theta) * scale,
        (next_slope - slope) / scale,
        gradient / scale,
    )
    products = np.zeros((2 * R + 1, 3))
    add_pair = kernel_of(secants.make_add_pair, scaled, compile=compile)
    for start, stop in ((0, 1500), (1500, N)):
        add_pair(1, *vectors, root, start, stop, rows, products)
    assert_allclose(rows, expected, rtol=1e-14)
    assert_allclose(products, expected @ expected[[1, 1 + R, -1]].T, rtol=1e-12, atol=1e-13)


@MODES
@SCALED
def test_a_combination(scaled: int, compile: bool) -> None:
    rows, vectors, root, scale = drawn(scaled)
    scale = scale if scaled else np.ones(N)
    coefficients = frozen(np.array([0.5, 0.0, -2.0, 1.5, 0.0, 3.0]))
    result = np.empty(N)
    combine = kernel_of(secants.make_combine, scaled, compile=compile)
    for start, stop in ((0, 1030), (1030, N)):
        combine(coefficients, 0.7, vectors[0], root, frozen(rows), start, stop, result)
    assert_allclose(result, (0.7 * vectors[0] / scale + coefficients @ rows[:-1]) / scale, rtol=1e-12)
