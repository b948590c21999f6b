"""Marginals and log Z of chains: held to all labellings, in Python and compiled, however far apart the numbers are."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import Array, IntArray, offsets_of
from besag.infer.chains import marginals as chains_marginals
from besag.infer.chains.kernels.marginals import make_sums
from besag.infer.chains.marginals import chain_marginals, chain_partitions
from tests.routes import Forced

MODES = [False, True]
SMALL = st.floats(-3, 3)
FAR = st.sampled_from([-1e6, -1e4, -750.0, -400.0, -190.0, -100.0, 100.0, 180.0, 800.0, 1e4, 1e6 + 0.25])
NUMBERS = st.one_of(SMALL, SMALL, st.just(-np.inf), FAR)
EPSILON = float(np.finfo(np.float64).eps)


def enumerated(unary: Array, transition: Array, known: Any) -> tuple[Array, float]:
    """Probabilities (T, K) and log Z of one chain."""
    n_tokens, n_states = unary.shape
    choices = [[k] if k >= 0 else range(n_states) for k in known]
    labellings = list(itertools.product(*choices))
    scores = np.array(
        [
            sum(transition[a, b] for a, b in itertools.pairwise(y)) + sum(unary[t, k] for t, k in enumerate(y))
            for y in labellings
        ]
    )
    probabilities = np.zeros(unary.shape)
    highest = scores.max()
    if highest == -np.inf:
        return probabilities, highest
    weights = np.exp(scores - highest)
    for y, weight in zip(labellings, weights / weights.sum(), strict=True):
        probabilities[np.arange(n_tokens), list(y)] += weight
    return probabilities, highest + np.log(weights.sum())


def answers(compile: bool, *arguments: Any) -> tuple[Array, Array]:
    """Both, in one of the two modes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains_marginals, "worth_compiling", lambda work: compile)
        probabilities, log_z = chain_marginals(*arguments)
        assert_array_equal(chain_partitions(*arguments), log_z)
    return probabilities, log_z


@st.composite
def chains(draw: st.DrawFn) -> tuple[Array, Array, IntArray, IntArray | None]:
    """unary, transition, offsets, known: short chains, some without tokens, with hard zeros and far numbers."""
    n_states = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    n_tokens, numbers = sum(lengths), draw(st.sampled_from([SMALL, NUMBERS]))
    unary = draw(st.lists(numbers, min_size=n_tokens * n_states, max_size=n_tokens * n_states))
    transition = draw(st.lists(numbers, min_size=n_states**2, max_size=n_states**2))
    codes = draw(st.lists(st.integers(-1, n_states - 1), min_size=n_tokens, max_size=n_tokens))
    known = np.array(codes, np.int64) if draw(st.booleans()) else None
    shaped = np.array(unary).reshape(n_tokens, n_states), np.array(transition).reshape(n_states, n_states)
    return *shaped, offsets_of(np.array(lengths)), known


@pytest.mark.parametrize("compile", MODES)
@settings(max_examples=300)
@given(chains())
def test_agrees_with_enumeration(compile: bool, given: Any) -> None:
    unary, transition, offsets, known = given
    probabilities, log_z = answers(compile, *given)
    reach = max((float(abs(x[np.isfinite(x)]).max(initial=0.0)) for x in (unary, transition)), default=0.0)
    rounding = 1e-12 + 16 * EPSILON * reach
    for n, (start, stop) in enumerate(itertools.pairwise(offsets.tolist())):
        codes = [-1] * (stop - start) if known is None else known[start:stop]
        expected, total = enumerated(unary[start:stop], transition, codes)
        assert_allclose(probabilities[start:stop], expected, rtol=rounding, atol=1e-290)
        assert_allclose(log_z[n], total, rtol=1e-12, atol=rounding)
        if total == -np.inf:
            assert not probabilities[start:stop].any()


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("far", [1e3, 1e4, 1e6])
@pytest.mark.parametrize("which", ["unary", "transition", "both"])
def test_nothing_is_lost_beside_numbers_that_are_far_away(compile: bool, far: float, which: str) -> None:
    """The only labellings that are possible are far below others that hard zeros rule out later."""
    unary, transition = np.zeros((5, 3)), np.full((3, 3), -np.inf)
    transition[0, 0], transition[1:, 1:] = 0.0, np.log([[1.0, 2.0], [2.0, 3.0]])
    if which != "transition":
        unary[:4, 0] = far
    if which != "unary":
        transition[0, 0] = far
    unary[4, 0] = -np.inf
    probabilities, log_z = answers(compile, unary, transition, np.array([0, 5]))
    expected, total = enumerated(unary, transition, [-1] * 5)
    assert_allclose(probabilities, expected, rtol=1e-12 + 16 * EPSILON * far)
    assert_allclose(log_z, [total], rtol=1e-12, atol=16 * EPSILON * far)
    assert (probabilities[:, 1:] > 0.1).all()


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("n_tokens", [10, 30, 300])
def test_small_differences_that_add_up(compile: bool, n_tokens: int) -> None:
    """A label falls behind token by token, to 1e-1300 at last, and is the only one that may end the chain."""
    unary, transition = np.zeros((n_tokens, 2)), np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    unary[:, 0], unary[-1, 0] = 10.0, -np.inf
    probabilities, log_z = answers(compile, unary, transition, np.array([0, n_tokens]))
    assert_array_equal(probabilities, np.tile([0.0, 1.0], (n_tokens, 1)))
    assert_allclose(log_z, [0.0], atol=1e-12 * n_tokens)


@pytest.mark.parametrize("compile", MODES)
def test_labels_that_nothing_leads_to(compile: bool) -> None:
    """What would follow from them grows without bound, and must not turn into NaN."""
    unary, transition = np.zeros((300, 2)), np.array([[0.0, 0.0], [-np.inf, 0.0]])
    unary[:, 0], unary[0, 0] = 100.0, -np.inf
    probabilities, log_z = answers(compile, unary, transition, np.array([0, 300]))
    assert_array_equal(probabilities, np.tile([0.0, 1.0], (300, 1)))
    assert_allclose(log_z, [0.0], atol=1e-10)


@pytest.mark.parametrize("compile", MODES)
def test_small_probabilities_are_exact_at_the_end_of_the_range(compile: bool) -> None:
    none, low = -np.inf, -184.0
    unary = np.array([[0.0, low, low, none], [none, low, low, 0.0], [none, 0.0, low, none]])
    transition = np.full((4, 4), none)
    np.fill_diagonal(transition, [none, low, low, 0.0])
    lost = np.zeros(1, np.bool_)
    arguments = unary, transition, np.array([0, 3])
    assert not make_sums(4)(*arguments, np.zeros(0, np.int64), 0, 1, np.empty((3, 4)), np.empty(1), lost)
    probabilities, _ = answers(compile, *arguments)
    assert_allclose(probabilities, np.tile([0.0, 1.0, np.exp(low), 0.0], (3, 1)), rtol=1e-12)


def test_a_far_chain_leaves_the_others_as_they_are() -> None:
    rng = np.random.default_rng(0)
    unary, transition, offsets = rng.normal(size=(9, 3)), rng.normal(size=(3, 3)), np.array([0, 3, 6, 9])
    before, log_z = answers(False, unary, transition, offsets)
    unary[4, 1] = -1e5
    lost, ours = np.zeros(3, np.bool_), np.empty((9, 3))
    none = np.zeros(0, np.int64)
    assert make_sums(3)(unary, transition, offsets, none, 0, 3, ours, np.empty(3), lost) == 1
    assert_array_equal(lost, [False, True, False])
    after, again = answers(False, unary, transition, offsets)
    assert_array_equal(after[[0, 1, 2, 6, 7, 8]], before[[0, 1, 2, 6, 7, 8]])
    assert_array_equal(again[[0, 2]], log_z[[0, 2]])
    assert_allclose(after[3:6], enumerated(unary[3:6], transition, [-1] * 3)[0], atol=1e-12)


@pytest.mark.parametrize("compile", MODES)
def test_nothing_is_possible(compile: bool) -> None:
    none = np.full((2, 2), -np.inf)
    for unary, transition in ((np.zeros((2, 2)), none), (none, np.zeros((2, 2))), (none, none)):
        probabilities, log_z = answers(compile, unary, transition, np.array([0, 2]))
        assert not probabilities.any()
        assert log_z[0] == -np.inf
    known = np.array([1, 0])
    _, log_z = answers(compile, np.zeros((2, 2)), np.array([[0.0, 0.0], [-np.inf, 0.0]]), np.array([0, 2]), known)
    assert log_z[0] == -np.inf


@pytest.mark.parametrize("compile", MODES)
def test_empty_chains_and_chains_of_one_token(compile: bool) -> None:
    unary, transition = np.log([[1.0, 3.0], [2.0, 2.0]]), np.full((2, 2), -np.inf)
    probabilities, log_z = answers(compile, unary, transition, np.array([0, 0, 1, 1, 2, 2]))
    assert_allclose(probabilities, [[0.25, 0.75], [0.5, 0.5]])
    assert_allclose(log_z, [0.0, np.log(4), 0.0, np.log(4), 0.0], atol=1e-15)
    probabilities, log_z = answers(compile, np.zeros((0, 2)), transition, np.array([0]))
    assert (probabilities.shape, log_z.shape) == ((0, 2), (0,))
    assert_array_equal(answers(compile, np.zeros((0, 2)), transition, np.array([0, 0, 0]))[1], [0.0, 0.0])


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_chunks_and_threads_change_no_bit(forced: Forced, n_threads: int) -> None:
    rng = np.random.default_rng(1)
    lengths = np.append(rng.integers(0, 7, size=60), [0, 0])
    offsets = offsets_of(lengths)
    unary, transition = rng.normal(size=(offsets[-1], 5)), rng.normal(size=(5, 5))
    transition[rng.random((5, 5)) < 0.2] = -np.inf
    unary[20] *= 1e5
    whole, log_z = answers(True, unary, transition, offsets)
    forced({"infer.chains.best.CHUNK": 16})
    parts, again = answers(True, unary, transition, offsets, None, n_threads)
    assert_array_equal(parts, whole)
    assert_array_equal(again, log_z)
    assert_array_equal(again[lengths == 0], 0.0)


def test_long_chains_do_not_drift() -> None:
    """After many steps, probabilities sum to one, and the two domains differ by rounding only."""
    rng = np.random.default_rng(2)
    unary, transition = 3 * rng.normal(size=(20_001, 4)), 3 * rng.normal(size=(4, 4))
    offsets, known = np.array([0, 20_001]), np.append(np.full(20_000, -1), 0)
    near, log_z = answers(True, unary, transition, offsets, known)
    assert_allclose(near.sum(axis=1), 1.0, rtol=1e-14)
    unary[-1, 1:] = -1e3  # as good as known, and too far away for the linear domain
    far, same = answers(True, unary, transition, offsets)
    assert_allclose(far, near, rtol=1e-10, atol=1e-13)
    assert_allclose(same, log_z, rtol=1e-13)
