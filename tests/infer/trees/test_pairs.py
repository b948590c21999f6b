"""The fast kernel against enumeration and against the general kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from besag.arrays import Array, Semiring
from besag.infer.trees import pairs, sums
from besag.infer.trees import plan as forest_module
from besag.infer.trees.plan import plan_forest
from besag.kernels.factors import Factors
from tests.infer.trees.forests import cell_offsets, enumerate_row, pack, random_base, random_forest, random_pairs
from tests.routes import Forced

MODES = [pytest.param(False, id="python"), pytest.param(True, id="compiled")]


def planned(factors: Factors, compile: bool = False) -> tuple[forest_module.Forest, pairs.PairPlan]:
    forest = plan_forest(factors.state_offsets, factors.scope_offsets, factors.scope_variables, compile=compile)
    assert forest is not None
    fast = pairs.plan_pairs(factors, forest, worthwhile=0)
    assert fast is not None
    return forest, fast


def pair_sums(fast: pairs.PairPlan, factors: Factors, base: Array, **wants: Any) -> sums.Marginals | None:
    by_variable = base.reshape(-1, fast.n_states)
    return pairs.sum_product(fast, factors, lambda first, last: by_variable[first:last], **wants)


def agree(one: sums.Marginals | None, two: sums.Marginals) -> None:
    assert one is not None
    np.testing.assert_allclose(one.log_partition, two.log_partition, rtol=1e-11, atol=1e-11)
    for name in ("variables", "moments", "factors"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-11, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("n_tables", [0, 1, 2])
@pytest.mark.parametrize("n_states", [2, 3])
def test_agrees_with_enumeration(compile: bool, n_tables: int, n_states: int) -> None:
    for seed, shape in enumerate(["chain", "star", "tree", "tree"]):
        rng = np.random.default_rng(seed)
        factors = random_pairs(rng, 7, n_states, shape, n_tables)
        _, fast = planned(factors)
        base = random_base(rng, factors, 1, hard=0.1)
        answer = pair_sums(
            fast,
            factors,
            base,
            want_moments=True,
            factor_offsets=cell_offsets(factors),
            weights=np.full(7, 3.0),
            compile=compile,
        )
        truth = enumerate_row(factors, base[0])
        assert answer is not None
        np.testing.assert_allclose(answer.log_partition.sum(), truth.log_z, rtol=1e-12)
        if truth.log_z > -math.inf:
            np.testing.assert_allclose(answer.variables[0], truth.variables, atol=1e-13)  # type: ignore[index]
            np.testing.assert_allclose(answer.moments, 3.0 * truth.moments, atol=1e-12)
            cells = np.concatenate([cell.ravel() for cell in truth.cells])
            np.testing.assert_allclose(answer.factors[0], cells, atol=1e-13)  # type: ignore[index]


@pytest.mark.parametrize("n_states", [2, 5, 8, 40])
@pytest.mark.parametrize(("shape", "n_tables"), [("chain", 1), ("star", 3), ("tree", 0), ("tree", 1)])
@pytest.mark.parametrize("hard", [0.0, 0.2])
def test_agrees_with_the_general_kernel(n_states: int, shape: str, n_tables: int, hard: float) -> None:
    rng = np.random.default_rng(n_states)
    factors = random_pairs(rng, 300, n_states, shape, n_tables)
    zero = rng.random(len(factors.log_potentials)) < hard
    factors = factors._replace(log_potentials=np.where(zero, -np.inf, factors.log_potentials))
    forest, fast = planned(factors)
    base = random_base(rng, factors, 1, hard=0.5 * hard)
    wants = {"want_moments": True, "factor_offsets": cell_offsets(factors)}
    answer = pair_sums(fast, factors, base, **wants)
    reference = sums.sum_product(factors, forest, base, semiring=Semiring.LOG_SUM, compile=True, **wants)  # type: ignore[arg-type]
    if answer is None:
        assert hard > 0.0
        assert shape == "star"
    else:
        agree(answer, reference)


def test_threads_and_scattered_components(forced: Forced) -> None:
    forced({"infer.trees.plan.CHUNK_STATES": 32})
    rng = np.random.default_rng(5)
    factors = random_pairs(rng, 400, 5, "tree", 3)
    forest, fast = planned(factors)
    assert forest.n_chunks > 5
    assert not forest.contiguous
    base = random_base(rng, factors, 1, hard=0.0) * 100.0
    answers = [pair_sums(fast, factors, base, want_moments=True, n_threads=n) for n in (1, 2, 7)]
    assert answers[0] is not None
    np.testing.assert_allclose(answers[0].log_partition, sums.sum_product(factors, forest, base).log_partition)
    for other in answers[1:]:
        assert other is not None
        np.testing.assert_array_equal(other.log_partition, answers[0].log_partition)
        np.testing.assert_array_equal(other.variables, answers[0].variables)
        np.testing.assert_array_equal(other.moments, answers[0].moments)


def test_only_what_is_wanted() -> None:
    factors = random_pairs(np.random.default_rng(6), 50, 5, "chain", 1)
    forest, fast = planned(factors)
    base = np.zeros((1, 250))
    answer = pair_sums(fast, factors, base, want_variables=False)
    assert answer is not None
    assert answer.variables is answer.moments is answer.factors is None
    np.testing.assert_allclose(answer.log_partition, sums.sum_product(factors, forest, base).log_partition, rtol=1e-13)


@pytest.mark.parametrize("offset", [-5000.0, 0.0, 5000.0])
def test_base_of_any_size(offset: float) -> None:
    """Log-likelihoods of thousands, hundreds apart: shifted variable by variable."""
    rng = np.random.default_rng(8)
    factors = random_pairs(rng, 200, 5, "chain", 1)
    forest, fast = planned(factors)
    base = rng.normal(size=(1, 1000)) * 300.0 + offset
    answer = pair_sums(fast, factors, base, want_moments=True, factor_offsets=cell_offsets(factors))
    wants = {"want_moments": True, "factor_offsets": cell_offsets(factors)}
    agree(answer, sums.sum_product(factors, forest, base, semiring=Semiring.LOG_SUM, **wants))  # type: ignore[arg-type]


def test_tables_scaled_by_a_tiny_number() -> None:
    rng = np.random.default_rng(9)
    factors = random_pairs(rng, 100_000, 5, "chain", 1)
    _, fast = planned(factors, compile=True)
    base = rng.normal(size=(1, 500_000))
    one = pair_sums(fast, factors, base)
    two = pair_sums(fast, factors._replace(log_potentials=factors.log_potentials - 690.0), base)
    assert one is not None
    assert two is not None
    np.testing.assert_allclose(two.log_partition, one.log_partition - 690.0 * 99_999, rtol=1e-13)
    np.testing.assert_allclose(two.variables, one.variables, atol=1e-12)


def test_left_to_right_chain_with_hard_zeros() -> None:
    """Long and deterministic in part: zeros stay exact, and the checked kernel copes."""
    n = 1000
    table = np.full((5, 5), -np.inf)
    for i in range(5):
        table[i, i], table[i, (i + 1) % 5] = math.log(0.999), math.log(0.001)
    table[4, 0] = -np.inf
    factors = pack([5] * n, [([v, v + 1], 0) for v in range(n - 1)], [table])
    forest, fast = planned(factors)
    base = np.random.default_rng(10).normal(size=(n, 5)) * 0.3
    base[0, 1:] = -np.inf
    answer = pair_sums(fast, factors, base.ravel(), want_moments=True, factor_offsets=cell_offsets(factors))
    wants = {"want_moments": True, "factor_offsets": cell_offsets(factors)}
    agree(
        answer,
        sums.sum_product(factors, forest, base.reshape(1, -1), semiring=Semiring.LOG_SUM, compile=True, **wants),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("compile", MODES)
def test_says_when_it_is_too_narrow(compile: bool) -> None:
    n = 60
    copies = np.array([[0.0, -np.inf], [-np.inf, -10.0]])
    factors = pack([2] * n, [([v, v + 1], 0) for v in range(n - 1)], [copies])
    _, fast = planned(factors)
    base = np.zeros((n, 2))
    base[-1, 0] = -np.inf
    assert pair_sums(fast, factors, base.ravel(), compile=compile) is None
    tables = factors._replace(log_potentials=np.array([0.0, -200.0, -np.inf, 0.0]))
    assert pair_sums(fast, tables, np.zeros(2 * n), compile=compile) is None
    mild = factors._replace(log_potentials=np.array([0.0, -1.0, -np.inf, 0.0]))
    base[3, 1] = -300.0
    assert pair_sums(fast, mild, base.ravel(), compile=compile) is None


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("hard", [False, True])
def test_no_labelling(compile: bool, hard: bool) -> None:
    """A component whose evidence is impossible has log Z -inf and zeros; the other one is untouched."""
    table = np.array([[0.0, -np.inf if hard else 1.0], [-np.inf if hard else 1.0, 0.0]])
    factors = pack([2] * 5, [([0, 1], 0), ([2, 3], 0), ([3, 4], 0)], [table])
    forest, fast = planned(factors)
    base = np.zeros(10)
    base[[0, 1]] = -np.inf
    answer = pair_sums(fast, factors, base, want_moments=True, compile=compile)
    assert answer is not None
    assert answer.log_partition[0, forest.component[0]] == -np.inf
    np.testing.assert_array_equal(answer.variables[0, :4], 0.0)  # type: ignore[index]
    np.testing.assert_allclose(answer.variables[0, 4:], 0.5)  # type: ignore[index]
    np.testing.assert_allclose(answer.moments.sum(), 2.0)  # type: ignore[union-attr]


def test_problems_of_another_kind_have_no_plan() -> None:
    def fits(factors: Factors, worthwhile: int = 0) -> bool:
        forest = plan_forest(factors.state_offsets, factors.scope_offsets, factors.scope_variables)
        assert forest is not None
        return pairs.plan_pairs(factors, forest, worthwhile=worthwhile) is not None

    rng = np.random.default_rng(0)
    chain = random_pairs(rng, 10, 3, "chain", 1)
    assert fits(chain)
    assert not fits(chain, worthwhile=pairs.WORTHWHILE)
    assert not fits(random_forest(rng))
    assert not fits(pack([2, 2], [([0, 1], 0)], [1.5]))
    assert not fits(pack([2, 2, 3], [([0, 1], 0)], [np.zeros((2, 2))]))
    assert not fits(pack([2, 2], [], []))
