"""The rules of structured factors against their tables, kind by kind; a new kind gets these tests by a line in MADE."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import Array, Semiring
from besag.kernels.factors import TABLE, Factors
from besag.kernels.semiring import LOG_SUM, MAX, SUM
from besag.kernels.sums import add_term
from besag.model.structured.base import Structured
from besag.model.structured.kernels import rules
from besag.model.structured.potts import Potts

MADE: tuple[Callable[[int], Structured], ...] = (Potts,)
NUMBERS = (-3.0, -0.2, 0.0, 0.7, 40.0, -400.0)

each_kind = pytest.mark.parametrize("make", MADE, ids=[make.__name__ for make in MADE])
each_semiring = pytest.mark.parametrize("semiring", list(Semiring), ids=lambda semiring: semiring.name)


def test_every_kind_with_rules_is_tested() -> None:
    assert {make(2).kind for make in MADE} == set(rules.KINDS - {TABLE})


def factors_of(term: Structured, *numbers: float) -> Factors:
    """Pairs of variables 2 i and 2 i + 1, joined by the term times each number; and a table of three entries before."""
    n, pairs = term.shape[0], len(numbers)
    return Factors.of(
        np.append(n * np.arange(2 * pairs + 1), 2 * pairs * n + 3),
        np.array([0, 1, *(3 + 2 * np.arange(pairs))]),
        np.array([2 * pairs, *range(2 * pairs)]),
        np.array([TABLE, *[int(term.kind)] * pairs]),
        np.arange(pairs + 1),
        np.array([0, *(3 + np.arange(pairs + 1))]),
        np.array([0.5, -math.inf, 1.5, *numbers]),
    )


def levels_of(term: Structured, number: float) -> Array:
    logs, offsets = rules.spread_levels(factors_of(term, number))
    return np.asarray(logs[offsets[1] :])


def table_of(term: Structured, number: float) -> Array:
    return np.asarray(number * term.dense()[0])


def to_domain(semiring: int, logs: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.exp(logs) if semiring == SUM else logs


def vectors(n: int, seed: int, *, lanes: int = 1) -> Array:
    """Two log-vectors one after the other, (2 n, lanes), with hard zeros if n > 2 and entries far apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * n, lanes)) * rng.choice([1.0, 30.0], size=(2 * n, 1))
    if n > 2:
        x[rng.integers(n)] = x[n + rng.integers(n)] = -math.inf
    return x


def contracted(semiring: int, table: Array, x: Array) -> Array:
    """The message (K,) of a log-table from log-vectors (n,), as logarithms."""
    terms = table + x
    if semiring == MAX:
        return np.asarray(terms.max(axis=1))
    return np.asarray(np.logaddexp.reduce(terms, axis=1))


@each_kind
@pytest.mark.parametrize("n", [1, 2, 5])
def test_levels_and_features_make_up_the_table(make: Callable[[int], Structured], n: int) -> None:
    term = make(n)
    for number in NUMBERS:
        levels = levels_of(term, number)
        for i in range(n):
            for j in range(n):
                true = table_of(term, number)[i, j]
                assert levels[rules.level(term.kind, i, j)] == true
                assert number * rules.feature(term.kind, i, j) == true


@each_kind
def test_spread_levels_keeps_tables(make: Callable[[int], Structured]) -> None:
    factors = factors_of(make(3), *NUMBERS)
    logs, offsets = rules.spread_levels(factors)
    assert_array_equal(logs[:3], [0.5, -math.inf, 1.5])
    assert_array_equal(logs[offsets[2] : offsets[3]], levels_of(make(3), NUMBERS[1]))
    assert len(logs) == offsets[-1]
    plain = factors._replace(kinds=np.zeros_like(factors.kinds))
    assert rules.spread_levels(plain) == (plain.log_potentials, plain.table_offsets)


@each_kind
@each_semiring
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_messages_are_those_of_the_table(make: Callable[[int], Structured], semiring: Semiring, n: int) -> None:
    term = make(n)
    for seed, number in enumerate(NUMBERS):
        weights, logs = to_domain(semiring, levels_of(term, number)), vectors(n, seed)
        true = contracted(semiring, table_of(term, number), logs[n:, 0])
        x, out = to_domain(semiring, logs), np.zeros((2 * n, 1))
        rules.send_structured(int(semiring), term.kind, n, weights, 0, x[:, 0], n, out[:, 0], 0)
        assert_allclose(out[:n, 0], to_domain(semiring, true), rtol=1e-12, atol=1e-280)
        rules.send_lanes(int(semiring), term.kind, 1, n, weights, 0, x, n, np.zeros((2, 1)), out)
        assert_allclose(out[:n, 0], to_domain(semiring, true), rtol=1e-12, atol=1e-280)


@each_kind
@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_sum_of_a_marginal_and_its_feature(make: Callable[[int], Structured], n: int) -> None:
    term = make(n)
    for seed, number in enumerate(NUMBERS):
        x = np.exp(vectors(n, seed)[:, 0])
        joint = np.exp(table_of(term, number)) * x[:n, None] * x[None, n:]
        total, part = rules.weigh_structured(term.kind, n, np.exp(levels_of(term, number)), 0, x, np.zeros(n))
        assert_allclose([total, part], [joint.sum(), (joint * term.dense()[0]).sum()], rtol=1e-12)


@each_kind
@pytest.mark.parametrize("semiring", [SUM, LOG_SUM])
def test_moments_of_lanes_are_added_up(make: Callable[[int], Structured], semiring: int) -> None:
    n, lanes = 4, 3
    term, shares, moments = make(n), np.array([0.5, 2.0, 0.0]), np.array([7.0, 0.0])
    logs = vectors(n, 5, lanes=lanes)
    joint = table_of(term, 0.8)[..., None] + logs[:n, None] + logs[None, n:]
    sums = [add_all(semiring, joint[..., r]) for r in range(lanes)]
    high, z = (np.array(column) for column in zip(*sums, strict=True))
    weights, x = to_domain(semiring, levels_of(term, 0.8)), to_domain(semiring, logs)
    room, rest = np.zeros((2, lanes)), np.zeros((n, lanes))
    rules.add_moments(semiring, term.kind, lanes, n, weights, 0, x, room, rest, high, z, shares, moments, 1)
    p = np.exp(joint) / np.exp(joint).sum(axis=(0, 1))
    assert_allclose(moments, [7.0, (p * term.dense()[0][..., None]).sum(axis=(0, 1)) @ shares], rtol=1e-12)


def add_all(semiring: int, joint: Array) -> tuple[float, float]:
    high, total = -math.inf, 0.0
    for term in to_domain(semiring, joint).ravel().tolist():
        high, total = add_term(semiring, high, total, term)
    return high, total


@each_kind
@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_is_said_given_the_other_state(make: Callable[[int], Structured], n: int) -> None:
    term, numbers = make(n), np.array([9.0, 0.6])
    for other in range(n):
        logits = np.zeros(n)
        rules.add_given(term.kind, numbers, 1, other, logits)
        row = table_of(term, 0.6)[:, other]
        assert_allclose(logits - logits[0], row - row[0], atol=1e-15)


@each_kind
@pytest.mark.parametrize("n", [1, 2, 5])
def test_expectations_of_independent_variables(make: Callable[[int], Structured], n: int) -> None:
    term, rng, numbers = make(n), np.random.default_rng(n), np.array([9.0, 0.6])
    p, table = rng.dirichlet(np.ones(n), 2), table_of(term, 0.6)
    flat, logits = p.ravel(), np.ones(n)
    rules.add_expected_structured(term.kind, n, numbers, 1, flat, n, logits)
    assert_allclose(logits, 1.0 + table @ p[1], rtol=1e-12)
    expected = p[0] @ table @ p[1]
    assert_allclose(rules.expect_structured(term.kind, n, numbers, 1, flat, 0, n), expected, rtol=1e-12, atol=1e-15)
    assert_allclose(0.6 * rules.EXPECTED[term.kind](p[:, None]), [expected], rtol=1e-12, atol=1e-15)
