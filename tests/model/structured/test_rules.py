"""The rules of structured factors against their tables, kind by kind; a new kind gets these tests by a line in MADE."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import EXTENTS, Array, Semiring
from besag.kernels.factors import TABLE
from besag.kernels.semiring import LOG_SUM, MAX, SUM
from besag.kernels.sums import log_of
from besag.model.structured.base import Structured
from besag.model.structured.displacement import displacement
from besag.model.structured.kernels import rules
from besag.model.structured.potts import Potts
from besag.model.structured.truncated import truncated_linear, truncated_quadratic


def linear(n: int) -> Structured:
    return truncated_linear(n, 1 + n / 2)


def unlimited_linear(n: int) -> Structured:
    return truncated_linear(n)


def quadratic(n: int) -> Structured:
    return truncated_quadratic(n, 5.5)


def unlimited_quadratic(n: int) -> Structured:
    return truncated_quadratic(n)


def sides(n: int) -> tuple[int, int]:
    """The grid of n places that is least a line."""
    height = max(h for h in range(1, n + 1) if n % h == 0 and h * h <= n)
    return height, n // height


def spring(n: int) -> Structured:
    return displacement(sides(n), (0.3, -1.2), (1.0, 1.7))


def limited_spring(n: int) -> Structured:
    return displacement(sides(n), (-0.6, 1.0), (2.0, 1.5), 2.5)


def distant_spring(n: int) -> Structured:
    return displacement(n, 2.0 * n, 1.5, 4.0 * n * n)


MADE: tuple[Callable[[int], Structured], ...] = (
    Potts, linear, unlimited_linear, quadratic, unlimited_quadratic, spring, limited_spring, distant_spring
)  # fmt: skip
NUMBERS = (-3.0, -0.2, 0.0, 0.7, 40.0, -400.0)

each_kind = pytest.mark.parametrize("make", MADE, ids=[make.__name__ for make in MADE])
each_semiring = pytest.mark.parametrize("semiring", list(Semiring), ids=lambda semiring: semiring.name)


def test_every_kind_with_rules_is_tested() -> None:
    assert {make(2).kind for make in MADE} == set(rules.KINDS - {TABLE})


def code_of(term: Structured) -> int:
    return int(term.kind + EXTENTS * term.extent)


def levels_of(term: Structured, number: float) -> Array:
    levels = term.levels()
    assert levels is not None
    return np.asarray(number * levels[0])


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
def test_levels_make_up_the_table(make: Callable[[int], Structured], n: int) -> None:
    term, code = make(n), code_of(make(n))
    for number in NUMBERS:
        levels = levels_of(term, number)
        read = [[levels[rules.level(code, i, j)] for j in range(n)] for i in range(n)]
        assert_array_equal(read, table_of(term, number))


@each_kind
def test_labels_say_what_the_table_says(make: Callable[[int], Structured]) -> None:
    labels = np.moveaxis(np.indices((4, 4)), 0, -1)
    assert_array_equal(np.moveaxis(make(4).features(labels), -1, 0), make(4).dense())


@pytest.mark.parametrize("limit", [None, 1.5])
def test_a_displacement_is_its_formula(limit: float | None) -> None:
    term = displacement((3, 4), offset=(1, -0.5), scale=(0.7, 2.0), limit=limit)
    for i, j in np.ndindex(12, 12):
        down, across = (j // 4 - i // 4 - 1) / 0.7, (j % 4 - i % 4 + 0.5) / 2.0
        cost = (down**2 + across**2) / 2
        assert_allclose(term.dense()[0, i, j], cost if limit is None else min(cost, limit), rtol=1e-14)


@each_kind
@each_semiring
@pytest.mark.parametrize("narrow", [1, 1000], ids=["by sweeps", "by bands"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_messages_are_those_of_the_table(
    make: Callable[[int], Structured],
    semiring: Semiring,
    n: int,
    narrow: int,
    forced: Callable[[dict[str, Any]], None],
) -> None:
    forced({"model.structured.kernels.distance.NARROW": narrow})
    term, code = make(n), code_of(make(n))
    for seed, number in enumerate(NUMBERS):
        levels, logs = levels_of(term, number), vectors(n, seed)
        weights = to_domain(semiring, levels - levels.max())
        table = table_of(term, number) - levels.max()
        true, back = (to_domain(semiring, contracted(semiring, t, logs[n:, 0])) for t in (table, table.T))
        x, out = to_domain(semiring, logs), np.zeros((2 * n, 1))
        with np.errstate(under="ignore", over="ignore"):
            for axis, to in ((0, true), (1, back)):
                rules.send_structured(int(semiring), code, axis, n, weights, 0, x[:, 0], n, out[:, 0], 0)
                assert_allclose(out[:n, 0], to, rtol=1e-12, atol=1e-280)
                rules.send_lanes(int(semiring), code, axis, 1, n, weights, 0, x, n, np.zeros((2, 1)), out)
                assert_allclose(out[:n, 0], to, rtol=1e-12, atol=1e-280)


@each_kind
@pytest.mark.parametrize("semiring", [SUM, LOG_SUM])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_marginal_of_levels(make: Callable[[int], Structured], semiring: int, n: int) -> None:
    term, code = make(n), code_of(make(n))
    for seed, number in enumerate((-3.0, 0.0, 0.7, 4.0)):
        logs = vectors(n, seed)[:, 0]
        joint = table_of(term, number) + logs[:n, None] + logs[None, n:]
        weights, x, levels = to_domain(semiring, levels_of(term, number)), to_domain(semiring, logs), term.levels()
        assert levels is not None
        high, z = rules.weigh_structured(semiring, code, n, weights, 0, x, 0, n, np.zeros(n))
        assert_allclose(log_of(semiring, high, z), np.logaddexp.reduce(joint, axis=None), rtol=1e-12)
        moments = np.full(levels.shape[1] + 1, 7.0)
        rules.add_shares(semiring, code, n, weights, 0, x, 0, n, high, z, 0.5, moments, 1)
        p = np.exp(joint - np.logaddexp.reduce(joint, axis=None))
        read = [[rules.level(code, i, j) for j in range(n)] for i in range(n)]
        true = np.bincount(np.ravel(read), p.ravel(), levels.shape[1])
        assert_allclose(moments, [7.0, *(7.0 + 0.5 * true)], rtol=1e-12)


@each_kind
@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_is_said_given_the_other_state(make: Callable[[int], Structured], n: int) -> None:
    term, numbers = make(n), np.append(9.0, levels_of(make(n), 0.6))
    for other in range(n):
        for axis in range(2):
            logits = np.zeros(n)
            rules.add_given(code_of(term), axis, n, numbers, 1, other, logits)
            row = table_of(term, 0.6)[:, other] if axis == 0 else table_of(term, 0.6)[other]
            assert_allclose(logits - logits[0], row - row[0], rtol=1e-13, atol=1e-15)


@each_kind
@pytest.mark.parametrize("n", [1, 2, 5])
def test_expectations_of_independent_variables(make: Callable[[int], Structured], n: int) -> None:
    term, rng, numbers = make(n), np.random.default_rng(n), np.append(9.0, levels_of(make(n), 0.6))
    p, table, code = rng.dirichlet(np.ones(n), 2), table_of(term, 0.6), code_of(term)
    flat = p.ravel()
    for axis, of in ((0, table), (1, table.T)):
        logits = np.ones(n)
        rules.add_expected_structured(code, axis, n, numbers, 1, flat, n, logits)
        assert_allclose(logits, 1.0 + of @ p[1], rtol=1e-12)
    expected = p[0] @ table @ p[1]
    assert_allclose(rules.expect_structured(code, n, numbers, 1, flat, 0, n), expected, rtol=1e-12, atol=1e-15)
    assert_allclose(rules.expected_levels(code, p[:, None]) @ numbers[1:], [expected], rtol=1e-12, atol=1e-15)
