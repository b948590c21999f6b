"""Scores of families held to their definitions, on every route."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

from besag.arrays import Array
from besag.errors import CapabilityError, TooLargeError
from besag.learn.networks.structure import counter as counting
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import CRITERIA
from besag.learn.networks.structure.scores import FamilyScores
from tests.dags import dependent_rows, family_counts
from tests.routes import Forced

SIZES = np.array([2, 3, 4, 2, 40])
CODES = dependent_rows(SIZES, 301, seed=4)
WEIGHTS = np.random.default_rng(5).integers(0, 4, 301).astype(float)
FAMILIES = [(0, ()), (1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (0, (1, 4)), (4, (2, 3))]


def defined(criterion: str, counts: Array, total: float, strength: float = 1.0) -> float:
    """The score of a family from its counts (q, K)."""
    q, k = counts.shape
    rows = counts.sum(axis=1)
    if criterion in ("k2", "bdeu"):
        a = 1.0 if criterion == "k2" else strength / (q * k)
        inner = gammaln(a + counts) - gammaln(a)
        return float((gammaln(k * a) - gammaln(k * a + rows) + inner.sum(axis=1)).sum())
    fit = sum(n * math.log(n / row) for line, row in zip(counts, rows, strict=True) for n in line if n)
    return float(fit - q * (k - 1) * {"bic": 0.5 * math.log(total), "aic": 1.0, "log_likelihood": 0.0}[criterion])


@pytest.mark.parametrize("most_cells", [0, 250, 10**6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", list(CRITERIA))
def test_scores_are_as_defined(criterion: str, weighted: bool, most_cells: int, forced: Forced) -> None:
    forced({"learn.networks.structure.counter.MOST_CELLS": most_cells})
    weights = WEIGHTS if weighted else None
    scores = FamilyScores(Counter(CODES, SIZES, weights), CRITERIA.read(criterion))
    given = np.ones(301) if weights is None else weights
    for child, parents in FAMILIES:
        expected = defined(criterion, family_counts(CODES, SIZES, child, parents, given), given.sum())
        assert scores.of(child, parents) == pytest.approx(expected, rel=1e-12)
        others = np.array([v for v in range(5) if v != child and v not in parents])
        for x, score in zip(others.tolist(), scores.additions(child, parents, others).tolist(), strict=True):
            counts = family_counts(CODES, SIZES, child, (*parents, x), given)
            assert score == pytest.approx(defined(criterion, counts, given.sum()), rel=1e-12)


def test_weights_are_repeated_rows() -> None:
    repeated = np.ascontiguousarray(np.repeat(CODES, WEIGHTS.astype(int), axis=1))
    for criterion in ("bic", "bdeu[strength=3]"):
        once = FamilyScores(Counter(CODES, SIZES, WEIGHTS), CRITERIA.read(criterion))
        many = FamilyScores(Counter(repeated, SIZES), CRITERIA.read(criterion))
        for family in FAMILIES:
            assert once.of(*family) == pytest.approx(many.of(*family), rel=1e-12)


def test_answers_do_not_depend_on_threads_or_on_what_is_kept(forced: Forced) -> None:
    others = np.array([1, 2, 3, 4])
    alone = Counter(CODES, SIZES, n_threads=1)
    expected = FamilyScores(alone, CRITERIA.read("bdeu")).additions(0, (), others)
    forced({"learn.networks.structure.counter.CHUNK_ROWS": 1, "learn.networks.structure.counter.KEPT_BYTES": 1})
    counter = Counter(CODES, SIZES, n_threads=3)
    assert (FamilyScores(counter, CRITERIA.read("bdeu")).additions(0, (), others) == expected).all()
    for v in range(5):
        counter.configurations((v,))
    assert len(counter._kept) == 1


def test_scores_that_are_forgotten_are_counted_again(forced: Forced) -> None:
    forced({"learn.networks.structure.counter.KEPT_BYTES": 1})
    scores = FamilyScores(Counter(CODES, SIZES), CRITERIA.read("bic"))
    kept = FamilyScores(Counter(CODES, SIZES, memory_limit=10**9), CRITERIA.read("bic"))
    others = np.array([1, 3, 4])
    for _ in range(2):
        for child, parents in FAMILIES:
            assert scores.of(child, parents) == pytest.approx(kept.of(child, parents), rel=1e-12)
        for parents in ((), (2,)):
            assert scores.additions(0, parents, others) == pytest.approx(kept.additions(0, parents, others), rel=1e-12)
    assert len(scores._kept) == len(scores._rows) == 1


def test_configurations_are_numbered_without_holes() -> None:
    ids, n = Counter(CODES, SIZES).configurations((1, 2, 4))
    rows = {tuple(row) for row in CODES[[1, 2, 4]].T.tolist()}
    assert n == len(rows) == len(np.unique(ids)) == int(ids.max()) + 1


def test_states_are_bits() -> None:
    marks, first = counting.mark_states(CODES, SIZES)
    assert first.tolist() == [0, 2, 5, 9, -1]  # 40 states are counted by rows
    for v in range(4):
        for state in range(SIZES[v]):
            bits = np.unpackbits(marks[first[v] + state].astype("<u8").view(np.uint8), bitorder="little")
            assert (bits[:301] == (CODES[v] == state)).all()
            assert not bits[301:].any()


def test_refusals() -> None:
    with pytest.raises(CapabilityError, match="strength must be a number above 0"):
        CRITERIA.read("bdeu[strength=0]")
    with pytest.raises(CapabilityError, match=r"no criterion is named 'bick'; .* did you mean 'bic'"):
        CRITERIA.read("bick")
    with pytest.raises(TooLargeError, match="set max_parents or max_entries"):
        FamilyScores(Counter(CODES, SIZES, memory_limit=100), CRITERIA.read("bic")).of(4, (2,))
