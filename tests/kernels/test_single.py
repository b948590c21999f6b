"""Probabilities and draws in single precision, against double precision and the laws of chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import AnyArray
from besag.kernels.compile import compiled
from besag.kernels.single import ONE, draw_states, draw_units, exp_single, raise_chances


def make_chances():
    def chances(shares: AnyArray, x: AnyArray) -> None:
        raise_chances(len(x), shares, ONE, x)

    return chances


def make_draws():
    def draws(words: AnyArray, x: AnyArray) -> None:
        for i in range(len(words)):
            draw_units(x.shape[1], words[i], x[i])

    return draws


def make_states():
    def states(offsets: AnyArray, words: AnyArray, x: AnyArray) -> None:
        for i in range(len(words)):
            draw_states(offsets, words[i], x[i])

    return states


def test_chances_are_those_of_double_precision() -> None:
    x = np.linspace(-55, 55, 10_001).astype(np.float32)
    share = np.float32(0.25)
    p = x.copy()
    compiled(make_chances)(np.full_like(x, share), p)
    exact = 1 / (1 + np.exp(-(x.astype(np.float64) + share)))
    assert p.dtype == np.float32
    assert_allclose(p, exact, rtol=5e-5)
    assert exp_single(np.float32(-1e30)) > 0


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.3, 0.5, 1.0])
def test_units_are_drawn_with_their_probability(p: float) -> None:
    x = np.full((500, 1000), p, np.float32)
    compiled(make_draws)(np.random.default_rng(0).integers(2**62, size=500), x)
    assert_array_equal(np.unique(x), np.unique([p]) if p in (0, 1) else [0, 1])
    assert abs(x.mean(dtype=np.float64) - p) < 5 * np.sqrt(p * (1 - p) / x.size) + 1e-7
    together = (x[:, 1:] * x[:, :-1]).mean(dtype=np.float64), (x[1:] * x[:-1]).mean(dtype=np.float64)
    assert_allclose(together, p * p, atol=5 * np.sqrt(p * p * (1 - p * p) / x.size) + 1e-7)


def test_states_are_drawn_by_their_softmax() -> None:
    odds = np.log([0.2, 0.8, 0.1, 0.6, 0.3, 1.0]).astype(np.float32)
    x = np.tile(odds, (100_000, 1))
    words = np.random.default_rng(1).integers(2**62, size=len(x))
    compiled(make_states)(np.array([0, 2, 5, 6]), words, x)
    assert_array_equal(np.add.reduceat(x, [0, 2, 5], axis=1), 1.0)
    assert_allclose(x.mean(axis=0, dtype=np.float64), np.exp(odds), atol=5 * 0.5 / np.sqrt(len(x)))


def test_plain_python_draws_the_same() -> None:
    x = np.random.default_rng(2).normal(size=(3, 8)).astype(np.float32)
    words = np.array([5, 2**40 + 1, -7])
    for make, given in ((make_draws, (words,)), (make_states, (np.array([0, 3, 8]), words))):
        one, other = x.copy(), x.copy()
        make()(*given, one)
        compiled(make)(*given, other)
        assert_array_equal(one, other)
