"""The best labellings of a chain: held to all of them."""

import itertools

import numpy as np
import pytest

from besag.arrays import Array
from besag.infer.chains.best import best_of_chain
from tests.routes import Forced


def every(unary: Array, transition: Array) -> list[tuple[float, tuple[int, ...]]]:
    """All labellings that are possible with their scores, best first, ties in the order of the labels."""
    n_tokens, n_states = unary.shape
    found = []
    for codes in itertools.product(range(n_states), repeat=n_tokens):
        pairs = sum(transition[a, b] for a, b in itertools.pairwise(codes))
        score = pairs + sum(unary[t, k] for t, k in enumerate(codes))
        if score > -np.inf:
            found.append((score, codes))
    return sorted(found, key=lambda one: -one[0])


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("k", [1, 2, 7, 500])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize(("n_tokens", "n_states"), [(1, 3), (2, 2), (4, 3), (5, 1), (3, 5)])
def test_the_best_of_all_labellings(
    forced: Forced, n_tokens: int, n_states: int, zeros: float, k: int, compile: bool
) -> None:
    forced({"kernels.compile.worth_compiling": lambda work: compile})
    rng = np.random.default_rng(100 * n_tokens + n_states)
    unary, transition = rng.normal(size=(n_tokens, n_states)), rng.normal(size=(n_states, n_states))
    for values in (unary, transition):
        values[rng.random(values.shape) < zeros] = -np.inf
    codes, scores = best_of_chain(unary, transition, k)
    expected = every(unary, transition)[:k]
    np.testing.assert_allclose(scores, [score for score, _ in expected], rtol=1e-12)
    assert [tuple(own) for own in codes.tolist()] == [own for _, own in expected]


def test_equal_labellings_are_all_found_once() -> None:
    codes, scores = best_of_chain(np.zeros((3, 2)), np.zeros((2, 2)), 8)
    assert len({tuple(own) for own in codes.tolist()}) == 8
    assert not scores.any()


def test_nothing_is_possible() -> None:
    codes, scores = best_of_chain(np.zeros((2, 2)), np.full((2, 2), -np.inf), 3)
    assert codes.shape == (0, 2)
    assert len(scores) == 0
