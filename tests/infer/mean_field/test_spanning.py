"""Mean field on spanning trees, 001: the bound by its definition, the best trees, the user's own, restarts, limits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import besag
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.graph.evidence import read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES
from besag.infer.iterate import Clock, OutOfTime
from besag.infer.mean_field.engine import TABLES, Ascent, MeanField
from besag.infer.mean_field.spanning import plan_tree
from besag.infer.mean_field.tree_choice import Strengths, grow_tree, read_edges
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.routes import Forced
from tests.strategies import evidence_for, examples, models

RING = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], 1.0)
WANTS = frozenset({"log_partition", "variables", "factors", "moments"})


def solve(problem: Problem, seed: int = 0, warm: Result | None = None, **options: Any) -> Result:
    engine = MeanField("spanning_tree", **options)
    return engine.infer(problem, WANTS, warm=warm, rng=np.random.default_rng(seed))


def log_q_of(model: Model, result: Result) -> np.ndarray:
    """log q of every labelling from the conditional tables that the engine ended with."""
    edges, _, down = result.state["trees"][0]
    labels, sizes = Enumeration(model).labels, model.variables.cardinalities
    parents = dict.fromkeys(range(len(sizes)), -1) | {c: p for p, c in edges}
    names, start, log_q = model.variables.names, 0, np.zeros(len(labels))
    with np.errstate(divide="ignore"):
        for c, p in parents.items():
            if p < 0:
                log_q = log_q + np.log(result[names[c]])[labels[:, c]]
                continue
            size = int(sizes[p] * sizes[c])
            table = down[start : start + size].reshape(sizes[p], sizes[c])
            log_q = log_q + np.log(table)[labels[:, p], labels[:, c]]
            start += size
    return log_q


# The ring of four ----------------------------------------------------------------------------------------------------


def best_chain(model: Model) -> float:
    """The least KL(q || p) of a chain q(y0) q(y1 | y0) q(y2 | y1) q(y3 | y2), by a general optimiser from 20 starts."""
    truth = Enumeration(model)
    y, log_p = truth.labels, truth.log_weights - truth.log_z

    def divergence(x: np.ndarray) -> float:
        logs = -np.logaddexp(0, np.stack([-x, x], axis=-1))  # of P(state 0), P(state 1), for each of 1 + 3 x 2 rows
        log_q = logs[0][y[:, 0]] + sum(logs[1 + 2 * i + y[:, i], y[:, i + 1]] for i in range(3))
        return float((np.exp(log_q) * (log_q - log_p)).sum())

    rng = np.random.default_rng(0)
    return min(float(minimize(divergence, rng.normal(size=7)).fun) for _ in range(20))


def test_001_tree_approximation_of_a_ring_of_four() -> None:
    naive, tree, spanning = (
        RING.marginals(engine=f"mean_field[family={family}]").kl() for family in ("naive", "tree", "spanning_tree")
    )
    assert_allclose([naive, tree, spanning], [0.7190, 0.6655, 0.0456], atol=5e-5)
    assert_allclose(spanning, best_chain(RING), atol=1e-6)


@pytest.mark.parametrize("field", [0.1, [0.3, -0.2, 0.0, 0.5]])
def test_001_the_tree_is_the_best_of_its_kind_with_fields_too(field: Any) -> None:
    model = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], [1.0, 0.8, 0.9, 0.3], field)
    chain = model.marginals(engine="mean_field[family=spanning_tree,tree_edges=0 -- 1; 1 -- 2; 2 -- 3]")
    assert_allclose(chain.kl(), best_chain(model), atol=1e-5)
    assert_allclose(model.marginals(engine="mean_field[family=spanning_tree]").kl(), chain.kl(), atol=1e-9)


# The bound -----------------------------------------------------------------------------------------------------------


@examples(40)
@given(data=st.data())
def test_the_bound_is_the_expected_log_weight_plus_the_entropy(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model))
    n = len(model.variables)
    edges = data.draw(st.sampled_from(["default", "chain", "none"]))
    chain = [tuple(model.variables.names_at([v, v + 1])) for v in range(n - 1)]
    options = {} if edges == "default" else {"tree_edges": chain if edges == "chain" else []}
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    result = solve(problem, init="random", max_iterations=2, **options)
    log_q, log_w = log_q_of(model, result), Enumeration(model, evidence).log_weights
    q = np.exp(log_q)
    assert_allclose(q.sum(), 1)
    kept = q > 0
    assert_allclose(result.log_partition, (q[kept] * (log_w[kept] - log_q[kept])).sum(), atol=1e-9)
    labels = Enumeration(model).labels
    for number, f in enumerate(model.graph.factor_order.tolist()):
        scope = model.graph.scope(f)
        joint = np.zeros(model.variables.cardinalities[scope])
        np.add.at(joint, tuple(labels[:, scope].T), q)
        assert_allclose(result.factor(number), joint, atol=1e-9)


@examples(30)
@given(data=st.data())
def test_without_edges_it_is_naive_mean_field(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    alone = solve(model.problem, tree_edges=[], tolerance=1e-10)
    naive = MeanField(tolerance=1e-10).infer(model.problem, WANTS, rng=np.random.default_rng(0))
    assert alone.log_partition >= naive.log_partition - 1e-6 or alone.diagnostics.bounds != naive.diagnostics.bounds
    labels, log_w = Enumeration(model).labels, Enumeration(model).log_weights
    with np.errstate(divide="ignore"):
        logs = [np.log(alone[variable.name]) for variable in model.variables]
    for v, own in enumerate(logs):  # the fixed point of 001, by enumeration
        rest = np.sum([logs[u][labels[:, u]] for u in range(len(logs)) if u != v], axis=0) + np.zeros(len(labels))
        weight = np.exp(rest)
        told = np.zeros(len(own))
        for k in range(len(own)):
            kept = (labels[:, v] == k) & (weight > 0)
            told[k] = (weight[kept] * log_w[kept]).sum()
        found = np.exp(told - told.max())
        assert_allclose(np.exp(own), found / found.sum(), atol=1e-6)


def test_parts_of_the_tree_are_independent() -> None:
    result = RING.marginals(engine="mean_field[family=spanning_tree,tree_edges=0 -- 1; 2 -- 3]")
    joint = result.approximation.joint(["1", "2"])
    assert_allclose(joint, np.outer(result["1"], result["2"]), atol=1e-12)
    pair = result.approximation.joint(["0", "1"])
    assert np.abs(pair - np.outer(result["0"], result["1"])).max() > 0.01
    best = RING.marginals(engine="mean_field[family=spanning_tree]")
    assert RING.log_partition(engine="mean_field") < result.log_partition < best.log_partition


def test_factors_of_one_tree_are_exact() -> None:
    chain = besag.chain(np.random.default_rng(0).normal(size=(6, 3)), np.random.default_rng(1).normal(size=(3, 3)))
    result = chain.marginals(engine="mean_field[family=spanning_tree]", evidence={"2": 1})
    assert result.bound == "exact"
    assert_allclose(result.log_partition, chain.log_partition({"2": 1}))
    assert chain.marginals(engine="mean_field[family=spanning_tree,tree_edges=0 -- 1]").bound == "lower"


# Trees ---------------------------------------------------------------------------------------------------------------


def test_the_tree_has_the_strongest_couplings() -> None:
    couplings = [0.1, 0.9, 0.8, -0.7]
    model = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], couplings)
    strengths = Strengths(setting := Prepared(model.problem, TABLES, None), setting.base[0])
    p = (np.exp(0.9) * np.eye(2) + np.exp(-0.9) * (1 - np.eye(2))) / (4 * np.cosh(0.9))
    assert_allclose(strengths.values.max(), (p * np.log(4 * p)).sum())
    assert grow_tree(4, strengths.order_edges()) == ([(1, 2), (2, 3), (0, 3)], 3)


def test_evidence_changes_the_tree() -> None:
    """An edge to an observed variable would say nothing."""
    model = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], [2.0, 2.0, 0.5, 0.5])
    exact = model.log_partition({"1": 1})
    assert_allclose(model.log_partition({"1": 1}, engine="mean_field[family=spanning_tree]"), exact)


def test_restarts_take_other_trees_and_the_best_is_the_answer() -> None:
    model = besag.ising((5, 5), 0.4, 0.1)
    one = model.marginals(engine="mean_field[family=spanning_tree]")
    more = model.marginals(engine="mean_field[family=spanning_tree,n_restarts=4]")
    assert_allclose(more.diagnostics.bounds[0], one.log_partition)
    assert len({round(bound, 6) for bound in more.diagnostics.bounds}) > 2
    assert one.log_partition < more.log_partition == max(more.diagnostics.bounds) < model.log_partition()


def test_the_same_seed_takes_the_same_trees() -> None:
    model = besag.ising((4, 4), 0.4, 0.1)
    one, two = (solve(model.problem, seed=3, n_restarts=2, n_threads=n) for n in (1, 2))
    assert_array_equal(one.probabilities, two.probabilities)
    assert one.state["trees"][0][0] == two.state["trees"][0][0]


def test_edges_are_read_from_text_and_from_pairs() -> None:
    pairs = [("0,0", "0,1"), ("0,1", "1,1")]
    text = "mean_field[family=spanning_tree,tree_edges=0,0 -- 0,1; 0,1 -- 1,1]"
    engine = MeanField("spanning_tree", tree_edges=pairs)
    assert ENGINES.read(text) == engine
    assert ENGINES.text_of(engine) == text
    assert read_edges("") == ()
    besag.ising((2, 2)).marginals(engine=engine)


@pytest.mark.parametrize(
    ("edges", "error", "match"),
    [
        ([("0", "1"), ("1", "2"), ("2", "0")], CapabilityError, r"\('2', '0'\) closes a cycle"),
        ([("0", "0")], CapabilityError, r"\('0', '0'\) closes a cycle"),
        ([("0", "7")], ModelError, "'7'"),
        ([("0", "1", "2")], CapabilityError, "tree_edges must be pairs of names"),
        (["01"], CapabilityError, "tree_edges must be pairs of names"),
        ("0 - 1", CapabilityError, "tree_edges must be pairs of names"),
        (5, CapabilityError, "tree_edges must be pairs of names"),
    ],
)
def test_edges_that_are_no_tree_are_refused(edges: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        RING.marginals(engine=MeanField("spanning_tree", tree_edges=edges))


def test_edges_belong_to_spanning_trees() -> None:
    with pytest.raises(CapabilityError, match="tree_edges are for family='spanning_tree', got family='naive'"):
        MeanField(tree_edges=[("a", "b")])


# Warm starts and limits ----------------------------------------------------------------------------------------------


def test_a_warm_start_keeps_the_tree_and_goes_on() -> None:
    model = besag.ising((4, 4), 0.4, 0.1)
    begun = solve(model.problem, n_restarts=2, max_iterations=2, seed=1)
    again = solve(model.problem, warm=begun, max_iterations=1)
    assert again.state["trees"][0][0] == begun.state["trees"][0][0]
    assert again.log_partition >= begun.log_partition - 1e-12
    other = model.with_theta(1.2 * model.theta)
    assert solve(other.problem, warm=begun).state["trees"][0][0] == begun.state["trees"][0][0]


def test_a_sweep_that_is_broken_off_has_not_been_made(forced: Forced) -> None:
    forced({"infer.mean_field.spanning.SECONDS_A_LOOK": 1e-12})
    model = besag.ising((4, 4), 0.4, 0.1)
    engine = MeanField("spanning_tree", tolerance=0)
    process = Ascent(engine, model.problem, None, None, Clock())
    before = process.answer(WANTS)
    ticks = iter(range(1000))
    process.family.clock = Clock(3.5, 0.0, lambda: float(next(ticks)))  # over at the fourth look
    with pytest.raises(OutOfTime):
        process.step()
    after = process.answer(WANTS)
    assert after.log_partition == before.log_partition
    assert_array_equal(after.probabilities, before.probabilities)
    assert_array_equal(after.factor_marginals, before.factor_marginals)
    process.family.clock = Clock()
    process.step()
    assert process.answer(WANTS).log_partition > before.log_partition


def test_tables_that_would_grow_too_large_are_refused() -> None:
    """Four binary variables, each behind one of 60 states, have a factor: its table grows to 60^4 on the way."""
    rng, pairs = np.random.default_rng(0), [(("a", f"m{i}"), (f"m{i}", f"b{i}")) for i in range(4)]
    sizes = {"a": 2} | {f"m{i}": 60 for i in range(4)} | {f"b{i}": 2 for i in range(4)}
    factors = [(scope, rng.normal(size=[sizes[v] for v in scope])) for both in pairs for scope in both]
    factors.append((tuple(f"b{i}" for i in range(4)), 1e-9 * rng.normal(size=(2, 2, 2, 2))))
    model = besag.markov_network(sizes, factors)
    with pytest.raises(TooLargeError, match=r"f\(b0,b1,b2,b3\) on its way through the tree would take tables of more"):
        model.marginals(engine="mean_field[family=spanning_tree]", memory_limit=10**7)
    assert model.marginals(engine="mean_field[family=spanning_tree]").bound == "lower"


def test_paths_that_do_not_fit_are_refused() -> None:
    model = besag.ising((4, 4))
    setting = Prepared(model.problem, TABLES, None)
    setting.limit = 100
    edges, n_free = grow_tree(16, Strengths(setting, setting.base[0]).order_edges())
    with pytest.raises(TooLargeError, match=r"the paths of a spanning tree would take .* memory_limit=100"):
        plan_tree(setting, edges, n_free, compile=False)


def test_no_time_to_begin_is_told_at_once() -> None:
    model = besag.ising((500, 500))
    with pytest.raises(TooLargeError, match=r"mean_field\[family=spanning_tree\]: to begin takes about .* s"):
        model.marginals(engine="mean_field[family=spanning_tree]", time_limit=0.1)
