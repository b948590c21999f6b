"""E-steps of hidden Markov chains and best paths, held to all paths, in Python and compiled."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import Array, offsets_of
from besag.infer.chains import best, hidden
from besag.infer.chains.hidden import Dynamics, Tokens, Weights
from tests.routes import Forced

SMALL = st.floats(-3, 0)
FAR = st.sampled_from([-1e5, -4000.0, -750.0, -320.0, -190.0, -140.0, -100.0])
NUMBERS = st.one_of(SMALL, SMALL, st.just(-np.inf), FAR)


class Case:
    """Rows (R, K), start (K,), transition (K, K) as logarithms; tokens of N sequences."""

    def __init__(self, rows: Array, start: Array, transition: Array, sequences: list[list[int]]) -> None:
        self.rows, self.start, self.transition, self.sequences = rows, start, transition, sequences
        self.weights, self.dynamics = Weights.of(rows), Dynamics(start, transition)
        flat = np.array([r for sequence in sequences for r in sequence], np.int64)
        self.tokens = Tokens(flat, offsets_of(np.array([len(sequence) for sequence in sequences])))

    def paths(self, sequence: list[int]) -> list[tuple[tuple[int, ...], float]]:
        """All paths with the logarithms of their weights."""
        k, found = len(self.start), []
        for y in itertools.product(range(k), repeat=len(sequence)):
            steps = sum(self.transition[a, b] for a, b in itertools.pairwise(y))
            found.append((y, self.start[y[0]] + steps + sum(self.rows[r, c] for r, c in zip(sequence, y, strict=True))))
        return found


def enumerated(case: Case) -> dict[str, Array]:
    """What `hidden` gives, as sums over paths."""
    k, n_rows = len(case.start), len(case.rows)
    sums = {"rows": np.zeros((n_rows, k)), "begun": np.zeros(k), "pairs": np.zeros((k, k))}
    log_z, tokens = [], []
    for sequence in case.sequences:
        paths = case.paths(sequence)
        highest = max(score for _, score in paths)
        log_z.append(highest)
        marginals = np.zeros((len(sequence), k))
        if highest > -np.inf:
            shares = np.exp(np.array([score for _, score in paths]) - highest)
            log_z[-1] += np.log(shares.sum())
            for (y, _), share in zip(paths, shares / shares.sum(), strict=True):
                marginals[np.arange(len(y)), list(y)] += share
                sums["begun"][y[0]] += share
                np.add.at(sums["rows"], (sequence, list(y)), share)
                np.add.at(sums["pairs"], (list(y[:-1]), list(y[1:])), share)
        tokens.append(marginals)
    return {**sums, "tokens": np.concatenate(tokens), "log_z": np.array(log_z)}


def check(case: Case) -> None:
    truth, given = enumerated(case), (case.weights, case.dynamics, case.tokens)
    largest = np.abs(np.concatenate([case.rows.ravel(), case.transition.ravel(), case.start]))
    atol = 1e-11 * max(1.0, largest[np.isfinite(largest)].max(initial=0.0) / 100)  # of differences of large numbers
    counts, pairs, tokens = (f(*given) for f in (hidden.expected_counts, hidden.expected_pairs, hidden.posteriors))
    for found in (counts, pairs, tokens):
        assert_allclose(found.log_z, truth["log_z"], rtol=1e-12, atol=1e-12)
    assert_allclose(hidden.log_evidence(*given), truth["log_z"], rtol=1e-12, atol=1e-12)
    for found in (counts, pairs):
        assert_allclose(found.begun, truth["begun"], rtol=1e-9, atol=atol)
        assert_allclose(found.pairs, truth["pairs"], rtol=1e-9, atol=atol)
    assert_allclose(counts.marginals, truth["rows"], rtol=1e-9, atol=atol)
    assert_allclose(tokens.marginals, truth["tokens"], rtol=1e-9, atol=atol)


@st.composite
def cases(draw: st.DrawFn, least: int = 1, numbers: Any = NUMBERS) -> Case:
    k, n_rows = draw(st.integers(least, 3)), draw(st.integers(1, 4))

    def array(*shape: int) -> Array:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(numbers, min_size=size, max_size=size))).reshape(shape)

    sequences = draw(st.lists(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=4), min_size=1, max_size=3))
    return Case(array(n_rows, k), np.minimum(array(k), 0.0), np.minimum(array(k, k), 0.0), sequences)


@given(cases())
@settings(max_examples=150)
def test_sums_over_paths(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "worth_compiling", lambda work: False)
        check(case)


@given(cases(least=3))
@settings(max_examples=150)
def test_sums_over_paths_compiled(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "worth_compiling", lambda work: True)
        check(case)


@given(cases())
@settings(max_examples=100)
def test_best_paths(case: Case) -> None:
    found = best.best_chains(case.rows, case.transition, case.tokens.offsets, row=case.tokens.row, initial=case.start)
    for n, sequence in enumerate(case.sequences):
        codes = tuple(found[case.tokens.offsets[n] : case.tokens.offsets[n + 1]].tolist())
        scores = dict(case.paths(sequence))
        highest = max(scores.values())
        if highest == -np.inf:
            assert codes == (-1,) * len(sequence)
        else:
            assert scores[codes] >= highest - 1e-9 * max(1.0, abs(highest))


def test_ties_go_to_the_lower_label() -> None:
    found = best.best_chains(np.zeros((5, 3)), np.zeros((3, 3)), np.array([0, 2, 5]))
    assert_array_equal(found, 0)


def drawn(n: int, length: int, k: int, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    rows, start = np.log(rng.dirichlet(np.ones(k), 6)), np.log(rng.dirichlet(np.ones(k)))
    sequences = rng.integers(0, 6, (n, length)).tolist()
    return Case(rows, start, np.log(rng.dirichlet(np.ones(k), k)), sequences)


def plain_forward_backward(case: Case, sequence: list[int]) -> tuple[float, Array, Array]:
    """In numpy, as a textbook has it."""
    e, transition = np.exp(case.rows[sequence]), np.exp(case.transition)
    a, b, value = np.zeros(e.shape), np.ones(e.shape), 0.0
    for t in range(len(e)):
        a[t] = e[t] * (np.exp(case.start) if t == 0 else a[t - 1] @ transition)
        value, a[t] = value + np.log(a[t].sum()), a[t] / a[t].sum()
    pairs = np.zeros(transition.shape)
    for t in range(len(e) - 2, -1, -1):
        b[t] = transition @ (e[t + 1] * b[t + 1])
        joint = a[t][:, None] * transition * (e[t + 1] * b[t + 1])
        pairs, b[t] = pairs + joint / joint.sum(), b[t] / b[t].sum()
    posterior = a * b
    return value, posterior / posterior.sum(axis=1, keepdims=True), pairs


@pytest.mark.parametrize(("n", "length", "k"), [(40, 7, 3), (1, 3000, 3), (3, 1025, 3)])
def test_long_and_many_sequences_agree_with_numpy(n: int, length: int, k: int) -> None:
    case = drawn(n, length, k)
    truth = [plain_forward_backward(case, sequence) for sequence in case.sequences]
    counts = hidden.expected_counts(case.weights, case.dynamics, case.tokens)
    tokens = hidden.posteriors(case.weights, case.dynamics, case.tokens)
    assert_allclose(counts.log_z, [value for value, _, _ in truth], rtol=1e-11)
    assert_allclose(counts.pairs, sum(pairs for _, _, pairs in truth), rtol=1e-10)
    assert_allclose(tokens.marginals, np.concatenate([posterior for _, posterior, _ in truth]), atol=1e-12)


def test_chunks_and_threads_change_nothing(forced: Forced) -> None:
    case = drawn(50, 4, 3)
    whole = hidden.expected_counts(case.weights, case.dynamics, case.tokens, 1)
    forced({"infer.chains.hidden.CHUNK": 9, "infer.chains.best.CHUNK": 9})
    parts = [hidden.expected_counts(case.weights, case.dynamics, case.tokens, n) for n in (1, 2, 3)]
    for part in parts:
        for own, first, summed in zip(part, parts[0], whole, strict=True):
            assert_array_equal(own, first)
            assert_allclose(own, summed, rtol=1e-12)
    codes = [best.best_chains(case.rows, case.transition, case.tokens.offsets, n, row=case.tokens.row) for n in (1, 2)]
    assert_array_equal(codes[0], codes[1])


def test_numbers_too_far_apart_for_the_linear_domain() -> None:
    rows = np.array([[0.0, -5000.0, -1.0], [-5000.0, 0.0, -2.0], [-np.inf, -np.inf, 0.0]])
    transition = np.array([[-0.7, -0.7, -np.inf], [-np.inf, 0.0, -np.inf], [-1.6, -1.2, -0.7]])
    check(Case(rows, np.array([0.0, -np.inf, -np.inf]), transition, [[0, 1, 0], [1], [0, 2], [1, 0, 0, 1]]))


def test_a_path_that_only_the_end_makes_probable() -> None:
    """State 1 falls to 1e-330 of state 0 on the way, and is the only one that can end."""
    rows = np.array([[0.0, np.log(1e-3)], [-np.inf, 0.0]])
    case = Case(rows, np.log([0.5, 0.5]), np.array([[0.0, -np.inf], [-np.inf, 0.0]]), [[0] * 110 + [1]])
    found = hidden.posteriors(case.weights, case.dynamics, case.tokens)
    assert_allclose(found.log_z, [np.log(0.5) + 110 * np.log(1e-3)], rtol=1e-12)
    assert_allclose(found.marginals[:, 1], 1.0)
