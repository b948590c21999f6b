"""Mean field: published numbers, the bound against its definition, both families, kernels and starts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag import infer
from besag.errors import CapabilityError, TooLargeError
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES
from besag.infer.mean_field.engine import KINDS, MeanField
from besag.infer.mean_field.trees import cover_of
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.routes import Forced, force
from tests.strategies import evidence_for, examples, forests, models

SYMMETRIC = besag.grid((6, 6), 2, pairwise=np.eye(2))
FAMILIES = pytest.mark.parametrize("family", ["naive", "tree", "spanning_tree"])
WANTS = frozenset({"log_partition", "variables", "factors", "moments"})


def solve(problem: Problem, seed: int = 0, warm: Result | None = None, **options: Any) -> Result:
    return MeanField(**options).infer(problem, WANTS, warm=warm, rng=np.random.default_rng(seed))


def bound_of(model: Model, evidence: Any, log_q: np.ndarray) -> float:
    """sum over labellings of q (log-weight - log q), from the definition."""
    log_w, q = Enumeration(model, evidence).log_weights, np.exp(log_q)
    possible = q > 0
    return float((q[possible] * (log_w[possible] - log_q[possible])).sum())


def product(model: Model, result: Result) -> np.ndarray:
    """log q of every labelling, for independent variables."""
    with np.errstate(divide="ignore"):
        logs = [np.log(result[variable.name]) for variable in model.variables]
    labels = Enumeration(model).labels
    return np.sum([own[labels[:, v]] for v, own in enumerate(logs)], axis=0)


def joined(model: Model, result: Result, inside: np.ndarray) -> np.ndarray:
    """log q of every labelling, for a forest: prod_f q_f / prod_v q_v^(degree - 1)."""
    log_q, labels, positions = product(model, result), Enumeration(model).labels, model.graph.factor_positions
    for f in np.flatnonzero(inside):
        scope = model.graph.scope(f)
        with np.errstate(divide="ignore"):
            log_q = log_q + np.log(result.factor(int(positions[f])))[tuple(labels[:, scope].T)]
            for v in scope:
                own = np.log(result[model.variables.names_at([v])[0]])[labels[:, v]]
                log_q = log_q - np.where(own > -np.inf, own, 0.0)
    return log_q


# Published numbers ---------------------------------------------------------------------------------------------------


def test_the_uniform_start_of_a_symmetric_model_is_a_saddle_and_is_left() -> None:
    result = SYMMETRIC.marginals(engine="mean_field")
    assert_allclose(result.diagnostics.bounds[0], 54.95, atol=0.005)
    assert_allclose(result.log_partition, 61.84, atol=0.005)
    assert result.diagnostics.saddle
    assert result.log_partition < SYMMETRIC.log_partition()


def test_random_starts_and_restarts_reach_the_same_bound() -> None:
    for text in ("mean_field[init=random]", "mean_field[init=random,n_restarts=3]", "mean_field[n_restarts=2]"):
        result = SYMMETRIC.marginals(engine=text, seed=3)
        assert_allclose(result.log_partition, 61.8361, atol=1e-4)
        assert result.log_partition == max(result.diagnostics.bounds)


def test_trees_of_the_symmetric_model_are_better_than_single_variables() -> None:
    result = SYMMETRIC.marginals(engine="mean_field[family=tree]")
    assert 61.84 < result.log_partition < SYMMETRIC.log_partition()
    assert result.diagnostics.saddle


def test_libdai_has_the_same_bound_and_marginals(data_dir: Path) -> None:
    folder = data_dir / "libdai_tests" / "tests"
    expected = json.loads((folder / "testfast_expected.json").read_text())
    published = next(e for e in expected if e["method"] == "MF_NAIVE_UNI" and e["task"] == "marginal")
    model = besag.load(folder / "testfast.fg")
    result = model.marginals(engine="mean_field")
    assert_allclose(result.log_partition - model.log_partition(), float(published["columns"]["logZ_err"]), atol=5e-4)
    for name, p in published["marginals"].items():
        assert_allclose(result[name], p, atol=6e-5)


def test_the_published_higher_order_models_have_bounds_below_log_z(data_dir: Path) -> None:
    for path in sorted((data_dir / "libdai_tests" / "tests").glob("hoi*.fg")):
        model = besag.load(path)
        exact = model.log_partition()
        naive, trees = (model.log_partition(engine=f"mean_field[family={family}]") for family in ("naive", "tree"))
        assert naive <= exact + 1e-9
        assert trees <= exact + 1e-9


# The bound -----------------------------------------------------------------------------------------------------------


@FAMILIES
@examples(40)
@given(data=st.data())
def test_the_bound_holds_at_every_step_and_never_falls(family: str, data: DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    init = data.draw(st.sampled_from(["uniform", "random"]))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    exact, last = Enumeration(model, evidence).log_z, -np.inf
    engine = MeanField(family=family, init=init, n_restarts=1, max_iterations=20)
    for result in engine.steps(problem, rng=np.random.default_rng(1)):
        assert -np.inf < result.log_partition <= exact + 1e-9
        assert result.log_partition >= last - 1e-9
        assert not np.isnan(result.probabilities).any()
        last = result.log_partition


@examples(30)
@given(data=st.data())
def test_the_naive_bound_is_the_expected_log_weight_plus_the_entropy(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    result = solve(problem, init="random", max_iterations=2)
    assert_allclose(result.log_partition, bound_of(model, evidence, product(model, result)), atol=1e-9)


@examples(30)
@given(data=st.data())
def test_the_bound_of_trees_is_the_expected_log_weight_plus_the_entropy(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    result = solve(problem, init="random", max_iterations=2, family="tree")
    inside = cover_of(Prepared(problem, KINDS, None)).inside
    log_q = joined(model, result, inside)
    assert_allclose(np.exp(log_q).sum(), 1)
    assert_allclose(result.log_partition, bound_of(model, evidence, log_q), atol=1e-9)


@examples(20)
@given(data=st.data())
def test_a_converged_q_is_best_in_every_variable(data: DataObject) -> None:
    """q_v propto exp(E[log-weight | y_v]) under the other variables, by enumeration."""
    model = data.draw(models(max_labellings=200))
    result = solve(model.problem, tolerance=1e-12)
    labels, log_w = Enumeration(model).labels, Enumeration(model).log_weights
    with np.errstate(divide="ignore"):
        logs = [np.log(result[variable.name]) for variable in model.variables]
    for v, own in enumerate(logs):
        rest = np.sum([logs[u][labels[:, u]] for u in range(len(logs)) if u != v], axis=0) + np.zeros(len(labels))
        weight = np.exp(rest)
        told = np.array([_mean(weight[labels[:, v] == k], log_w[labels[:, v] == k]) for k in range(len(own))])
        found = np.exp(told - told.max())
        assert_allclose(np.exp(own), found / found.sum(), atol=1e-6)


def _mean(weight: np.ndarray, values: np.ndarray) -> float:
    return float((weight[weight > 0] * values[weight > 0]).sum())


@examples(40)
@given(data=st.data())
def test_trees_are_exact_on_a_forest(data: DataObject) -> None:
    model = data.draw(forests())
    evidence = data.draw(evidence_for(model))
    result = model.marginals(evidence=evidence, engine="mean_field[family=tree]")
    assert result.bound == "exact"
    oracle = Enumeration(model, evidence)
    assert_allclose(result.log_partition, oracle.log_z, atol=1e-9)
    for variable in model.variables:
        assert_allclose(result[variable.name], oracle.marginal(variable.name), atol=1e-9)


@FAMILIES
@pytest.mark.parametrize("pairwise", ["tables", "potts", "shared"])
def test_moments_are_the_gradient_of_the_bound(family: str, pairwise: str) -> None:
    """At the best q the bound's derivative by a log-potential is its expectation: the way of q does not count."""
    rng = np.random.default_rng(2)
    terms: dict[str, Any] = {
        "tables": (rng.normal(size=(2, 2, 3, 3)), rng.normal(size=(1, 3, 3, 3))),
        "potts": besag.potts(3),
        "shared": rng.normal(size=(3, 3)),
    }
    model = besag.grid((2, 3), 3, unary=rng.normal(size=(2, 3, 3)), pairwise=terms[pairwise], weights=None)
    options = {"family": family, "tolerance": 1e-12}
    best = solve(model.problem, **options)
    moments, step = model.graph.moments(best.moments), 1e-5
    for i in range(0, len(model.theta), 5):
        ends = []
        for sign in (-1, 1):
            theta = model.theta.copy()
            theta[i] += sign * step
            ends.append(solve(model.graph.bind(theta), warm=best, **options).log_partition)
        assert_allclose(moments[i], -(ends[1] - ends[0]) / (2 * step), atol=1e-7)


@FAMILIES
@examples(20)
@given(data=st.data())
def test_moments_are_sums_of_factor_marginals(family: str, data: DataObject) -> None:
    model = data.draw(models(max_labellings=200))
    result = solve(model.problem, family=family)
    expanded = model.problem.expanded(frozenset(), 10**9)
    tables = np.zeros(len(expanded.log_potentials))
    for number, f in enumerate(model.graph.factor_order.tolist()):
        start = expanded.table_offsets[expanded.table_of_factor[f]]
        marginal = result.factor(number).reshape(-1)
        tables[start : start + len(marginal)] += marginal
    assert_allclose(result.moments, model.problem.contracted(expanded, tables), atol=1e-9)


# Kernels -------------------------------------------------------------------------------------------------------------


def _grid(n_states: int, pairs: str = "tables", seed: int = 0) -> Model:
    """Of 7 x 9, with a table for each edge, one for all, or Potts factors."""
    rng = np.random.default_rng(seed)
    k, unary = n_states, rng.normal(size=(7, 9, n_states))
    given: dict[str, Any] = {
        "tables": (rng.normal(size=(7, 8, k, k)), rng.normal(size=(6, 9, k, k))),
        "one table": rng.normal(size=(k, k)),
        "potts": besag.potts(k),
    }
    return besag.grid((7, 9), k, unary, given[pairs])


@pytest.mark.parametrize("pairs", ["tables", "one table", "potts"])
@pytest.mark.parametrize("n_states", [2, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_of_one_size_do_what_the_general_one_does(
    forced: Forced, n_states: int, pairs: str, dtype: str
) -> None:
    model = _grid(n_states, pairs)
    observed = np.full((3, 63), -1)
    observed[1, ::7] = 1
    observed[2] = 0
    problem = model.problem.with_evidence(Evidence(observed, batched=True))
    options: dict[str, Any] = {"init": "random", "max_iterations": 4}
    general = solve(problem, **options)
    forced({"infer.mean_field.naive.WORTHWHILE": 0, "infer.mean_field.naive.WORTH_PAIRS": 0})
    special = solve(problem, dtype=dtype, **options)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    assert_allclose(special.probabilities, general.probabilities, atol=tolerance)
    assert special.diagnostics.dtype == dtype


@FAMILIES
def test_chunks_and_threads_change_nothing(family: str) -> None:
    with force({"infer.mean_field.schedule.CHUNK_WORK": 100}):
        results = [solve(_grid(3).problem, family=family, n_threads=n, max_iterations=5) for n in (1, 3)]
    results.append(solve(_grid(3).problem, family=family, max_iterations=5))
    for field in ("log_partitions", "probabilities", "factor_marginals", "table_moments"):
        assert_array_equal(getattr(results[0], field), getattr(results[1], field))
        assert_allclose(getattr(results[0], field), getattr(results[2], field), atol=1e-12)


def test_the_bound_is_made_where_it_is_asked_for_or_decides() -> None:
    """Without it the answer is the same; with several starts, or hard zeros, it is made to choose or to judge."""
    problem, wanted = _grid(3).problem, frozenset({"variables"})
    one = MeanField(init="random", max_iterations=5).infer(problem, wanted)
    assert "bounds" not in one.diagnostics
    assert one.diagnostics.feasible
    assert_array_equal(one.probabilities, solve(problem, init="random", max_iterations=5).probabilities)
    several = MeanField(init="random", n_restarts=2, max_iterations=5).infer(problem, wanted)
    assert len(several.diagnostics.bounds) == 3
    hard = besag.markov_network({"a": 2, "b": 2}, [(["a", "b"], np.array([[0.0, -np.inf], [-np.inf, 0.0]]))])
    assert "bounds" in MeanField(max_iterations=5).infer(hard.problem, wanted).diagnostics


def test_single_precision_stays_a_bound() -> None:
    single, double = (SYMMETRIC.marginals(engine=f"mean_field[dtype={dtype}]") for dtype in ("float32", "float64"))
    assert_allclose(single.log_partition, double.log_partition, atol=1e-4)
    assert_allclose(single.array, double.array, atol=1e-4)


def test_numbers_too_large_for_single_precision_are_done_in_double() -> None:
    model = besag.grid((2, 2), 2, pairwise=np.array([[1e200, 0.0], [0.0, 1e200]]))
    result = model.marginals(engine="mean_field[dtype=float32]")
    assert result.diagnostics.dtype == "float64"
    assert_allclose(result.log_partition, 4e200)


# Starts --------------------------------------------------------------------------------------------------------------


def test_a_model_without_ties_is_started_once() -> None:
    told = _grid(3).marginals(engine="mean_field").diagnostics
    assert (told.starts, told.saddle, told.feasible, told.converged) == (1, False, True, True)


def test_the_saddle_is_left_where_tolerance_never_stops_too() -> None:
    result = solve(SYMMETRIC.problem, tolerance=0, max_iterations=60)
    assert result.diagnostics.stopped == "max_iterations"
    assert_allclose(result.log_partition, 61.8361, atol=1e-4)


@FAMILIES
def test_a_result_is_a_start(family: str) -> None:
    model = _grid(3)
    first = solve(model.problem, family=family, tolerance=1e-9)
    again = solve(model.problem, family=family, tolerance=1e-9, warm=first)
    assert again.diagnostics.iterations <= 2
    assert_allclose(again.log_partition, first.log_partition, atol=1e-9)
    from_exact = model.marginals(engine=f"mean_field[family={family}]", init=model.marginals(engine="exact"))
    assert from_exact.diagnostics.starts == 1


def test_arrays_are_starts() -> None:
    half = np.full((36, 2), 0.5)
    tilted = np.tile([0.2, 0.8], 36)
    stays = SYMMETRIC.marginals(engine=infer.MeanField(init=half))
    assert_allclose(stays.log_partition, 54.95, atol=0.005)
    for start in (tilted, tilted[None], tilted.reshape(36, 2), tilted.reshape(6, 6, 2), 5 * tilted):
        result = SYMMETRIC.marginals(engine=infer.MeanField(init=start))
        assert_allclose(result.log_partition, 61.8361, atol=1e-4)
        assert (result.array[..., 1] > 0.5).all()
    rows = np.stack([tilted, 1 - tilted])
    both = solve(SYMMETRIC.problem.with_evidence(Evidence(np.full((2, 36), -1), batched=True)), init=rows)
    assert_allclose(both.probabilities[0], 1 - both.probabilities[1], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": "warm"}, "init must be one of 'uniform', 'random', got 'warm'"),
        ({"family": "chain"}, "family must be one of 'naive', 'tree', 'spanning_tree', got 'chain'"),
        ({"dtype": "int8"}, "dtype must be float32 or float64, got 'int8'"),
        ({"n_restarts": -1}, "n_restarts must be a whole number of at least 0, got -1"),
        ({"n_restarts": 1.5}, "n_restarts must be a whole number of at least 0, got 1.5"),
        ({"max_iterations": 0}, "max_iterations must be a whole number of at least 1, got 0"),
        ({"tolerance": -1.0}, "tolerance must be a number from 0 on, got -1.0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CapabilityError, match=message):
        MeanField(**options)


def test_starts_that_do_not_fit_are_refused() -> None:
    for start in (np.full(7, 0.5), np.full((2, 72), 0.5)):
        with pytest.raises(CapabilityError, match=r"init must have a probability for each of 72 states"):
            solve(SYMMETRIC.problem, init=start)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(CapabilityError, match="init must be probabilities"):
            solve(SYMMETRIC.problem, init=np.full(72, bad))
    with pytest.raises(CapabilityError, match=r"its marginals have shape \(1, 189\), expected \(1, 72\)"):
        solve(SYMMETRIC.problem, warm=solve(_grid(3).problem, max_iterations=1))
    with pytest.raises(CapabilityError, match="init must be a Result with marginals"):
        solve(SYMMETRIC.problem, warm=ENGINES.read("exact").infer(SYMMETRIC.problem, frozenset({"log_partition"})))


def test_an_engine_with_an_array_has_a_text_and_takes_keywords() -> None:
    engine = ENGINES.read(MeanField(init=np.full(72, 0.5)), n_threads=2)
    assert isinstance(engine, MeanField)
    assert engine.n_threads == 2
    assert ENGINES.read("mean_field[init=random,n_restarts=2,family=tree]") == MeanField("tree", "random", 2)


def test_too_many_starts_are_refused() -> None:
    with pytest.raises(TooLargeError, match=r"102 starts of 72 probabilities would take .* memory_limit=1000"):
        solve(SYMMETRIC.problem, n_restarts=100, memory_limit=1000)
    with pytest.raises(TooLargeError, match=r"all factor marginals would take .* memory_limit=20000"):
        solve(_grid(5).problem, memory_limit=20_000)


@FAMILIES
def test_the_same_seed_gives_the_same_answer(family: str) -> None:
    one, two, other = (solve(_grid(3).problem, seed=s, init="random", family=family) for s in (1, 1, 2))
    assert_array_equal(one.probabilities, two.probabilities)
    assert (one.probabilities != other.probabilities).any()


def test_factor_marginals_asked_for_later_are_of_the_same_q() -> None:
    result = SYMMETRIC.marginals(engine="mean_field[init=random]")
    left, right = SYMMETRIC.variables.names_at(SYMMETRIC.graph.scope(0))
    assert_allclose(result.factor(0), np.outer(result[left], result[right]), atol=1e-12)


# Batches, unions, iterating ------------------------------------------------------------------------------------------


@FAMILIES
def test_rows_of_a_batch_are_single_queries(family: str) -> None:
    model, rng = _grid(3), np.random.default_rng(5)
    observed = np.where(rng.random((6, 63)) < 0.3, rng.integers(3, size=(6, 63)), -1)
    batch = solve(model.problem.with_evidence(Evidence(observed, batched=True)), family=family)
    for row, codes in enumerate(observed):
        single = solve(model.problem.with_evidence(Evidence(codes[None])), family=family)
        assert_allclose(batch.log_partition[row], single.log_partition, atol=1e-9)
        assert_allclose(batch.probabilities[row], single.probabilities[0], atol=1e-9)
        assert_allclose(batch.factor_marginals[row], single.factor_marginals[0], atol=1e-9)


@FAMILIES
def test_each_instance_of_a_union_has_its_best_start(family: str) -> None:
    graph = besag.compile_graph(SYMMETRIC, SYMMETRIC, SYMMETRIC)
    n_restarts = 0 if family == "spanning_tree" else 3  # on other trees, of which each instance takes the best
    union = solve(graph.bind(SYMMETRIC.theta, weights=np.array([1.0, 2.0, 0.5])), family=family, n_restarts=n_restarts)
    single = solve(SYMMETRIC.problem, family=family)
    assert_allclose(union.log_partition, np.full(3, single.log_partition), atol=1e-6)
    agree, alone = graph.moments(union.moments)[[0, 3]].sum(), SYMMETRIC.graph.moments(single.moments)[[0, 3]].sum()
    assert_allclose(agree, 3.5 * alone, atol=1e-4)


@FAMILIES
def test_an_impossible_instance_of_a_union_harms_no_other(family: str) -> None:
    equal = besag.chain(np.array([[0.0, 1.0]] * 4), np.where(np.eye(2) > 0, 0.0, -np.inf))
    graph = besag.compile_graph(equal, equal)
    evidence = Evidence(np.array([[0, -1, -1, 1, 1, -1, -1, -1]]))
    result = solve(graph.bind(equal.theta, support=equal.support, evidence=evidence), family=family)
    assert_array_equal(result.log_partition, [-np.inf, 4.0])
    assert_array_equal(result.probabilities[0], [0] * 8 + [0, 1] * 4)
    assert_array_equal(result.factor_marginals.sum(), 7)
    assert_array_equal(result.moments.sum(), 7)


def test_the_trace_rises_and_limits_stop_it() -> None:
    result = SYMMETRIC.marginals(engine="mean_field[init=random]", trace=True)
    assert (np.diff(result.trace["value"]) >= -1e-9).all()
    assert result.trace["bound"].iloc[-1] == result.log_partition
    with pytest.warns(besag.errors.ConvergenceWarning, match="mean_field stopped after 2"):
        result = SYMMETRIC.marginals(engine="mean_field[init=random,max_iterations=2]")
    assert result.log_partition <= SYMMETRIC.log_partition()
    stopped = MeanField(init="random").infer(SYMMETRIC.problem, WANTS, time_limit=1e-9)
    assert stopped.diagnostics.stopped == "time_limit"
    assert stopped.diagnostics.iterations == 1
