"""General kernels against enumeration: every semiring, both modes, every output."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from besag.arrays import Semiring
from besag.infer.trees import plan as forest_module
from besag.infer.trees import sums
from besag.infer.trees.plan import plan_forest
from besag.kernels.factors import Factors
from tests.infer.trees.forests import (
    cell_offsets,
    dense,
    enumerate_row,
    log_weight,
    pack,
    random_base,
    random_forest,
)
from tests.routes import Forced

MODES = [pytest.param(False, id="python"), pytest.param(True, id="compiled")]
DOMAINS = [Semiring.SUM, Semiring.LOG_SUM]


def planned(factors: Factors, root: int | None = None) -> forest_module.Forest:
    forest = plan_forest(factors.state_offsets, factors.scope_offsets, factors.scope_variables, root, compile=False)
    assert forest is not None
    return forest


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("n_rows", [1, 11])
def test_sums_agree_with_enumeration(compile: bool, domain: Semiring, n_rows: int) -> None:
    n_rows = min(n_rows, 11 if compile else 2)
    for seed in range(40 if compile else 12):
        rng = np.random.default_rng(seed)
        factors = random_forest(rng, most=4 if seed % 5 == 0 else 3)
        forest, base, offsets = planned(factors), random_base(rng, factors, n_rows), cell_offsets(factors)
        row_weights, n_variables = rng.random(n_rows), len(factors.state_offsets) - 1
        answer = sums.sum_product(
            factors,
            forest,
            base,
            want_moments=True,
            factor_offsets=offsets,
            row_weights=row_weights,
            weights=np.full(n_variables, 2.0),
            semiring=domain,
            compile=compile,
        )
        assert answer.semiring == domain
        assert answer.variables is not None
        assert answer.factors is not None
        assert answer.moments is not None
        moments = np.zeros(len(factors.log_potentials))
        for r in range(n_rows):
            truth = enumerate_row(factors, base[r])
            np.testing.assert_allclose(answer.log_partition[r].sum(), truth.log_z, rtol=1e-11, atol=1e-11)
            if truth.log_z == -math.inf:
                continue
            np.testing.assert_allclose(answer.variables[r], truth.variables, atol=1e-12)
            for f in forest.order:
                cell = answer.factors[r, offsets[f] : offsets[f + 1]]
                np.testing.assert_allclose(cell, truth.cells[f].ravel(), atol=1e-12)
            moments += row_weights[r] * 2.0 * truth.moments
        if np.all(answer.log_partition > -math.inf):
            np.testing.assert_allclose(answer.moments, moments, atol=1e-11)
        assert not np.isnan(answer.variables).any()
        assert not np.isnan(answer.moments).any()


@pytest.mark.parametrize("compile", MODES)
def test_best_labelling(compile: bool) -> None:
    for seed in range(40 if compile else 12):
        rng = np.random.default_rng(100 + seed)
        factors = random_forest(rng)
        base = random_base(rng, factors, 9 if compile else 2)
        best = sums.max_product(factors, planned(factors), base, compile=compile)
        for r in range(len(base)):
            highest = enumerate_row(factors, base[r]).log_weights.max()
            np.testing.assert_allclose(best.log_weight[r].sum(), highest, rtol=1e-12, atol=1e-12)
            if highest > -math.inf:
                np.testing.assert_allclose(log_weight(factors, base[r], best.labels[r]), highest, atol=1e-11)


@pytest.mark.parametrize("compile", MODES)
def test_ties_go_to_the_lowest_state(compile: bool) -> None:
    tables = [np.zeros((3, 2)), np.zeros((2, 2, 3)), 0.0]
    factors = pack([3, 2, 2, 3, 3], [([0, 1], 0), ([1, 2, 3], 1), ([3, 4], 2)], tables)
    best = sums.max_product(factors, planned(factors), np.zeros((1, 13)), compile=compile)
    np.testing.assert_array_equal(best.labels, np.zeros((1, 5)))


@pytest.mark.parametrize("compile", MODES)
def test_samples_follow_the_law(compile: bool) -> None:
    """Chi-square on all labellings; each of the 4 tests raises a false alarm with probability 1e-4."""
    for seed in range(3 if compile else 1):
        rng = np.random.default_rng(300 + seed)
        factors = random_forest(rng, 5, hard=0.1 * seed)
        base = random_base(rng, factors, 2, hard=0.0)
        n = 20_000 if compile else 1_000
        drawn = sums.sample(factors, planned(factors), base, n, key=seed, compile=compile)
        truth = enumerate_row(factors, base[1])
        if truth.log_z == -math.inf:
            continue
        shape = tuple(np.diff(factors.state_offsets))
        counts = np.bincount(np.ravel_multi_index(tuple(drawn.samples[1].T), shape), minlength=math.prod(shape))
        expected = n * np.exp(truth.log_weights - truth.log_z)
        assert np.all(counts[expected == 0.0] == 0)
        common = expected > 5.0
        rest = n - expected[common].sum()
        statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
        statistic += (counts[~common].sum() - rest) ** 2 / rest if rest > 0 else 0.0
        assert stats.chi2.sf(statistic, common.sum()) > 1e-4
        np.testing.assert_allclose(drawn.log_partition[1].sum(), truth.log_z, rtol=1e-11)


def test_modes_and_domains_draw_the_same_samples() -> None:
    rng = np.random.default_rng(7)
    factors = random_forest(rng, 8)
    base = random_base(rng, factors, 3, hard=0.0)
    one = sums.sample(factors, planned(factors), base, 50, key=-12345, compile=False)
    two = sums.sample(factors, planned(factors), base, 50, key=-12345, compile=True, n_threads=2)
    np.testing.assert_array_equal(one.samples, two.samples)


def star(rng: np.random.Generator, n_leaves: int, hard: float) -> Factors:
    tables = [rng.normal(size=(3, 2)) for _ in range(4)]
    for table in tables:
        table[rng.random(table.shape) < hard] = -np.inf
    return pack([3] + [2] * n_leaves, [([0, 1 + i], i % 4) for i in range(n_leaves)], tables)  # type: ignore[list-item]


@pytest.mark.parametrize("hard", [0.0, 0.2])
def test_star_of_high_degree(hard: float) -> None:
    """3,000 leaves: given the centre they are independent."""
    rng = np.random.default_rng(11)
    factors = star(rng, 3000, hard)
    base = rng.normal(size=(1, int(factors.state_offsets[-1])))
    forest = planned(factors)
    answer = sums.sum_product(factors, forest, base, want_moments=True, compile=True)
    centre = base[0, :3].copy()
    leaves = base[0, 3:].reshape(-1, 2)
    tables = [dense(factors, f) for f in range(4)]
    for i in range(3000):
        centre += np.logaddexp.reduce(tables[i % 4] + leaves[i], axis=1)
    np.testing.assert_allclose(answer.log_partition[0, 0], np.logaddexp.reduce(centre), rtol=1e-12)
    p = np.exp(centre - np.logaddexp.reduce(centre))
    assert answer.variables is not None
    assert answer.moments is not None
    np.testing.assert_allclose(answer.variables[0, :3], p, atol=1e-11)
    conditional = np.exp(tables[2] + leaves[2] - np.logaddexp.reduce(tables[2] + leaves[2], axis=1, keepdims=True))
    np.testing.assert_allclose(answer.variables[0, 7:9], p @ conditional, atol=1e-11)
    np.testing.assert_allclose(answer.moments.sum(), 3000.0, rtol=1e-11)


def chain(n: int, table: np.ndarray | float, n_states: int) -> Factors:
    state_offsets = np.arange(n + 1) * n_states
    scopes = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    kinds = np.full(n - 1, int(isinstance(table, float)))
    flat = np.array([0.0, table]) if isinstance(table, float) else np.ravel(table)
    zeros = np.zeros(n - 1, np.int64)
    return Factors(state_offsets, np.arange(n) * 2, scopes.ravel(), kinds, zeros, np.array([0, flat.size]), flat)


def test_tables_scaled_by_a_tiny_number() -> None:
    rng = np.random.default_rng(12)
    n, table = 100_000, rng.normal(size=(3, 3))
    base = rng.normal(size=(1, n * 3))
    plain, scaled = (chain(n, table + shift, 3) for shift in (0.0, -690.0))
    forest = plan_forest(plain.state_offsets, plain.scope_offsets, plain.scope_variables)
    assert forest is not None
    one, two = (sums.sum_product(f, forest, base) for f in (plain, scaled))
    assert one.semiring == two.semiring == Semiring.SUM
    np.testing.assert_allclose(two.log_partition, one.log_partition - 690.0 * (n - 1), rtol=1e-13)
    np.testing.assert_allclose(two.variables, one.variables, atol=1e-11)


@pytest.mark.parametrize("compile", MODES)
def test_energies_of_a_hundred_thousand(compile: bool) -> None:
    rng = np.random.default_rng(13)
    factors = chain(5, rng.normal(size=(3, 3)) * 1e5, 3)
    base = rng.normal(size=(1, 15)) * 1e5
    answer = sums.sum_product(factors, planned(factors), base, want_moments=True, compile=compile)
    truth = enumerate_row(factors, base[0])
    assert answer.semiring == Semiring.LOG_SUM
    np.testing.assert_allclose(answer.log_partition.sum(), truth.log_z, rtol=1e-12)
    np.testing.assert_allclose(answer.variables[0], truth.variables, atol=1e-9)  # type: ignore[index]
    np.testing.assert_allclose(answer.moments, truth.moments, atol=1e-9)


def test_near_copies_contradicted_at_the_far_end() -> None:
    """Each step nearly copies; the ends are clamped to different states: log Z = -10 n + ..., far below any double."""
    n = 2_000
    table = np.array([[0.0, -10.0 * n], [-np.inf, 0.0]])
    factors = chain(n, table, 2)
    base = np.zeros((n, 2))
    base[0] = [0.0, -np.inf]
    base[-1] = [-np.inf, 0.0]
    forest = planned(factors)
    answer = sums.sum_product(factors, forest, base.reshape(1, -1), compile=True)
    assert answer.semiring == Semiring.LOG_SUM
    np.testing.assert_allclose(answer.log_partition[0, 0], -10.0 * n + math.log(n - 1), rtol=1e-12)
    with pytest.raises(ArithmeticError, match="too narrow"):
        sums.sum_product(factors, forest, base.reshape(1, -1), semiring=Semiring.SUM, compile=True)


def test_ranges_that_add_up_along_a_chain() -> None:
    """Copies that cost 10 in one state only: the range of the messages grows with the chain, then decides."""
    n = 500
    factors = chain(n, np.array([[0.0, -np.inf], [-np.inf, -10.0]]), 2)
    base = np.zeros((n, 2))
    base[-1, 0] = -np.inf
    answer = sums.sum_product(factors, planned(factors), base.reshape(1, -1), compile=True)
    np.testing.assert_allclose(answer.log_partition[0, 0], -10.0 * (n - 1), rtol=1e-13)


@pytest.mark.parametrize("c", [-800.0, -3.0, 0.0, 3.0, 800.0, -np.inf])
@pytest.mark.parametrize("domain", [None, Semiring.LOG_SUM])
def test_potts_of_any_strength(c: float, domain: Semiring | None) -> None:
    rng = np.random.default_rng(14)
    factors = chain(4, c, 3)
    base = rng.normal(size=(1, 12))
    offsets = cell_offsets(factors)
    answer = sums.sum_product(
        factors, planned(factors), base, want_moments=True, factor_offsets=offsets, semiring=domain, compile=False
    )
    truth = enumerate_row(factors, base[0])
    np.testing.assert_allclose(answer.log_partition.sum(), truth.log_z, rtol=1e-13)
    np.testing.assert_allclose(answer.moments, truth.moments, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(answer.factors[0], np.concatenate([x.ravel() for x in truth.cells]), atol=1e-13)  # type: ignore[index]


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_no_labelling(compile: bool, domain: Semiring) -> None:
    """One component is impossible in one row: log Z is -inf there, its marginals are zeros, the rest is untouched."""
    tables = [np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.zeros((2, 2))]
    factors = pack([2, 2, 2, 2, 2], [([0, 1], 0), ([2, 3], 1)], tables)  # type: ignore[list-item]
    base = np.zeros((2, 10))
    base[0, 0] = base[0, 3] = -np.inf
    forest = planned(factors)
    answer = sums.sum_product(factors, forest, base, want_moments=True, semiring=domain, compile=compile)
    dead = forest.component[0]
    assert answer.log_partition[0, dead] == -np.inf
    np.testing.assert_allclose(answer.log_partition[1], [math.log(2), math.log(4), math.log(2)])
    assert answer.variables is not None
    np.testing.assert_array_equal(answer.variables[0, :4], 0.0)
    np.testing.assert_allclose(answer.variables[0, 4:], 0.5)
    np.testing.assert_allclose(answer.moments, [0.5, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5])
    best = sums.max_product(factors, forest, base, compile=compile)
    assert best.log_weight[0, dead] == -np.inf


def test_answers_do_not_depend_on_threads(forced: Forced) -> None:
    forced({"infer.trees.plan.CHUNK_STATES": 16})
    rng = np.random.default_rng(15)
    factors = random_forest(rng, 60, hard=0.0, attempts=25)
    base = random_base(rng, factors, 20, hard=0.0)
    forest = planned(factors)
    assert forest.n_chunks > 3
    answers = [
        sums.sum_product(factors, forest, base, want_moments=True, n_threads=n, compile=True) for n in (1, 2, 5, None)
    ]
    draws = [sums.sample(factors, forest, base, 30, 3, n_threads=n, compile=True).samples for n in (1, 4)]
    for other in answers[1:]:
        np.testing.assert_array_equal(other.log_partition, answers[0].log_partition)
        np.testing.assert_array_equal(other.variables, answers[0].variables)
        np.testing.assert_array_equal(other.moments, answers[0].moments)
    np.testing.assert_array_equal(*draws)


def test_few_and_many_samples_are_the_same() -> None:
    """Settings are listed for each sample, or tabulated for many; keys of any size are taken."""
    rng = np.random.default_rng(17)
    factors = random_forest(rng, 9)
    base = random_base(rng, factors, 2, hard=0.0)
    few, many = (sums.sample(factors, planned(factors), base, n, 2**64 - 5, compile=True).samples for n in (20, 3000))
    np.testing.assert_array_equal(few, many[:, :20])
    np.testing.assert_array_equal(few, sums.sample(factors, planned(factors), base, 20, -5, compile=True).samples)


def test_rows_in_slabs(forced: Forced) -> None:
    rng = np.random.default_rng(16)
    factors = random_forest(rng)
    base = random_base(rng, factors, 403, hard=0.0)
    for r in (0, 57, 402):
        one = sums.sum_product(factors, planned(factors), base[r], compile=True)
        all_rows = sums.sum_product(factors, planned(factors), base, compile=True)
        np.testing.assert_allclose(all_rows.variables[r], one.variables[0], atol=1e-13)  # type: ignore[index]
        best = sums.max_product(factors, planned(factors), base, compile=True)
        np.testing.assert_array_equal(
            best.labels[r], sums.max_product(factors, planned(factors), base[r], compile=False).labels[0]
        )
    whole = sums.sum_product(factors, planned(factors), base, want_moments=True, compile=True)
    forced({"infer.trees.sums.SLAB_BYTES": 1})
    parts = sums.sum_product(factors, planned(factors), base, want_moments=True, compile=True)
    np.testing.assert_array_equal(parts.variables, whole.variables)
    np.testing.assert_allclose(parts.moments, whole.moments, rtol=1e-13)


def test_no_factors_and_no_variables() -> None:
    factors = pack([2, 1], [], [])
    answer = sums.sum_product(factors, planned(factors), np.zeros((1, 3)), want_moments=True)
    np.testing.assert_allclose(answer.log_partition, [[math.log(2), 0.0]])
    nothing = pack([], [], [])
    assert sums.sum_product(nothing, planned(nothing), np.zeros((3, 0))).log_partition.shape == (3, 0)
