"""Barren and separated factors: the targets' marginals and log Z without them are those of the whole model."""

import pickle
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import BoolArray, IntArray, Kind
from besag.errors import ModelError
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.infer.junction.relevance import find_relevant, find_separated
from besag.model.model import FactorGroup, Model
from besag.model.structured.potts import Potts
from besag.model.template import Template
from tests.oracle import Enumeration, likelihood, log_sum
from tests.routes import force
from tests.strategies import evidence_for, examples, frame_for, models, rows_of

CHAIN = besag.bayesian_network("A -> B; B -> C", cpts={"B": [[0.9, 0.1], [0.2, 0.8]], "C": [[0.5, 0.5], [0.3, 0.7]]})
SCALED = np.array([[0.5], [0.5], [0.5]])


@st.composite
def networks(draw: Any) -> Model:
    """Bayesian networks with hard zeros; some with a likelihood or a state of a variable made a factor of their own."""
    model = besag.data.random_model(
        "bayesian_network",
        draw(st.integers(1, 6)),
        draw(st.integers(0, 10**6)),
        n_states=draw(st.sampled_from([(2, 3), (1, 2)])),
        zeros=draw(st.sampled_from([0.0, 0.4])),
        max_parents=draw(st.sampled_from([2, 1, 3])),
    )
    return model.condition(draw(evidence_for(model))) if draw(st.booleans()) else model


def close(found: Any, true: Any) -> None:
    assert_allclose(found, true, rtol=1e-10, atol=1e-10)


def some_of(n: int) -> st.SearchStrategy[IntArray]:
    return st.lists(st.integers(0, n - 1), max_size=2).map(lambda chosen: np.array(chosen, np.int64))


def observing(model: Model, evidence: Any) -> Problem:
    return model.problem.with_evidence(read_evidence(model.variables, evidence))


def needed(model: Model, evidence: Any, *targets: str) -> set[str]:
    """The scopes of the relevant factors."""
    mask = find_relevant(observing(model, evidence), np.array([model.variables.index(t) for t in targets], np.int64))
    return {model.graph.scope_name(int(f)) for f in np.flatnonzero(mask)}


class Part(Enumeration):
    """Every labelling of a model of which only some factors count."""

    def __init__(self, model: Model, evidence: dict[str, Any], mask: BoolArray) -> None:
        super().__init__(model)
        self.log_weights = np.zeros(len(self.labels))
        for f in np.flatnonzero(mask):
            self.log_weights += model.problem.table(int(f))[tuple(self.labels[:, model.graph.scope(int(f))].T)]
        for name, value in evidence.items():
            with np.errstate(divide="ignore"):
                added = np.log([likelihood(value, state) for state in model.variable(name).states])
            self.log_weights += added[self.column(name)]


def same_marginals(part: Enumeration, whole: Enumeration, targets: IntArray) -> None:
    for v in targets.tolist():
        name = whole.model.variables.names[v]
        assert_allclose(part.marginal(name), whole.marginal(name), atol=1e-12)


# Barren --------------------------------------------------------------------------------------------------------------


@examples(80)
@given(data=st.data(), model=networks() | models(max_labellings=500))
def test_relevant_factors_give_the_same_answers(data: st.DataObject, model: Model) -> None:
    """In every row of a batch; a child that went with its factor would count once for each of its states."""
    frame, targets = data.draw(frame_for(model)), data.draw(some_of(len(model.variables)))
    problem = observing(model, frame)
    mask = find_relevant(problem, targets)
    gone = np.zeros(0, int) if problem.children is None else problem.children[~mask]
    assert mask.all() or (gone >= 0).all()
    for row in rows_of(frame):
        part, whole = Part(model, row, mask), Enumeration(model, row)
        counted_twice = np.log(model.variables.cardinalities[gone]).sum()
        assert log_sum(part.log_weights) - counted_twice == pytest.approx(whole.log_z, abs=1e-9)
        same_marginals(part, whole, targets)


@examples(80)
@given(data=st.data(), model=networks())
def test_every_barren_factor_goes(data: st.DataObject, model: Model) -> None:
    evidence, targets = data.draw(evidence_for(model)), data.draw(some_of(len(model.variables)))
    problem = observing(model, evidence)
    mask, children = find_relevant(problem, targets), problem.children
    assert children is not None
    for f in np.flatnonzero(mask):
        c = children[f]
        elsewhere = any(c in model.graph.scope(int(g)) for g in np.flatnonzero(mask) if g != f)
        known = evidence.get(model.variables.names[c])
        told = known is not None and {likelihood(known, s) for s in model.variables[c].states} != {1.0}
        # An observed variable of one state is evidence that says nothing: it may stay.
        assert c < 0 or elsewhere or c in targets or told or model.variables.cardinalities[c] == 1


def test_descendants_are_barren_until_they_are_observed() -> None:
    assert needed(CHAIN, None, "A") == {"f(A)"}
    assert needed(CHAIN, None, "B") == {"f(A)", "f(A,B)"}
    assert needed(CHAIN, {"B": "1"}, "A") == {"f(A)", "f(A,B)"}
    assert needed(CHAIN, {"C": "1"}, "A") == {"f(A)", "f(A,B)", "f(B,C)"}
    assert needed(CHAIN, {"C": {"0": 0.2, "1": 0.9}}, "A") == {"f(A)", "f(A,B)", "f(B,C)"}
    assert needed(CHAIN, {"C": {"0", "1"}}, "A") == {"f(A)"}, "all states allowed is no evidence"
    assert needed(CHAIN, {"B": "0"}) == {"f(A)", "f(A,B)"}, "log P(evidence) alone"
    assert needed(CHAIN, None) == set()


def test_evidence_in_one_row_of_many_counts() -> None:
    frame = pd.DataFrame({"B": ["0", "1"], "C": [None, "1"]})
    assert needed(CHAIN, frame, "A") == {"f(A)", "f(A,B)", "f(B,C)"}
    weights = np.zeros((2, 6))
    weights[1, 4] = -1.0
    assert needed(CHAIN, Evidence(np.full((2, 3), -1), weights), "A") == {"f(A)", "f(A,B)", "f(B,C)"}


def test_all_factors_serve_all_variables() -> None:
    assert find_relevant(CHAIN.problem, None).all()
    assert find_relevant(besag.chain(np.zeros((3, 2)), besag.potts(2)).problem, np.array([0])).all()


def test_a_child_of_two_conditional_factors_is_not_barren() -> None:
    twice = FactorGroup(Template("prior", (2,)), np.array([[0], [0]]), conditional=True)
    model = Model(CHAIN.variables, (twice,), np.full(2, np.log(2)))
    assert find_relevant(model.problem, np.array([], np.int64)).all()


def test_a_large_network_loses_its_descendants() -> None:
    """A chain of 5000: what follows the target goes, in one sweep."""
    n = 5000
    edges = [(f"v{i}", f"v{i + 1}") for i in range(n - 1)]
    model = besag.bayesian_network(edges)
    mask = find_relevant(model.problem, np.array([1234]))
    assert_array_equal(mask[model.graph.factor_order], np.arange(n) <= 1234)


# Children of a Problem -----------------------------------------------------------------------------------------------


@examples(40)
@given(model=networks() | models(max_labellings=200))
def test_children_follow_the_numbering_of_factors(model: Model) -> None:
    children = model.problem.children
    if children is None:
        assert not any(group.conditional for group in model.groups)
        return
    assert not children.flags.writeable
    for number in range(model.n_factors):
        group, at = model.locate(number)
        assert children[model.graph.factor_order[number]] == (group.scopes[at, -1] if group.conditional else -1)


def mixed() -> Model:
    """A -> B -> C, and a Potts factor on A and C."""
    potts = FactorGroup(Template("potts", (2, 2), basis=Potts(2)), np.array([[0, 2]]))
    return CHAIN.with_parts(groups=(potts, *CHAIN.groups), theta=np.concatenate([[0.7], CHAIN.theta]))


def test_problems_made_from_a_problem_keep_the_children() -> None:
    problem = mixed().problem
    assert problem.children is not None
    assert sorted(problem.children) == [-1, 0, 1, 2]
    expanded = problem.expanded(frozenset({Kind.TABLE}), 10**6)
    assert expanded is not problem
    for other in (expanded, observing(mixed(), {"A": 0}), pickle.loads(pickle.dumps(problem))):
        assert_array_equal(other.children, problem.children)
    assert needed(mixed(), None, "A") == {"f(A)", "f(A,B)", "f(B,C)", "f(A,C)"}


def test_other_numbers_clear_the_children() -> None:
    assert CHAIN.with_theta(2 * CHAIN.theta).problem.children is None
    assert CHAIN.with_cpt("B", [[0.5, 0.5], [0.25, 0.75]]).problem.children is not None
    assert CHAIN.graph.bind(CHAIN.theta).children is None, "bind cannot know whether rows sum to one"


def test_inputs_that_scale_a_table_clear_its_child() -> None:
    prior = FactorGroup(Template("prior", (2,)), np.arange(3)[:, None], conditional=True)
    model = Model(CHAIN.variables, (prior,), np.full(2, np.log(2)))
    assert_array_equal(model.problem.children, [0, 1, 2])
    assert model.with_inputs({"prior": SCALED}).problem.children is None
    assert_array_equal(model.with_inputs({"prior": np.zeros(3, int)}).problem.children, [0, 1, 2])


def test_hard_zeros_of_the_template_count_in_its_rows() -> None:
    template = Template("prior", (2,), support=np.array([True, False]))
    model = Model(CHAIN.variables, (FactorGroup(template, np.array([[0]]), conditional=True),), np.array([0.0, 5.0]))
    assert model.with_theta(np.array([0.0, 1.0])).problem.children is not None
    assert model.with_theta(np.full(2, np.log(2))).problem.children is None


def test_children_of_a_union() -> None:
    graph = besag.compile_graph(CHAIN, CHAIN)
    children = graph.scope_variables[graph.scope_offsets[1:] - 1]
    problem = graph.bind(CHAIN.theta, support=CHAIN.support, children=children)
    mask = find_relevant(problem, np.array([0, 4]))
    kept = [graph.scope(int(f)).tolist() for f in np.flatnonzero(mask)]
    assert sorted(kept) == [[0], [3], [3, 4]]


@pytest.mark.parametrize(
    ("children", "match"),
    [
        ([0, 1], r"children must have shape \(3,\), one for each factor, got \(2,\)"),
        ([0, 0, -1], "the child of factor 1 must be the last variable of its scope, 1, or -1, got 0"),
        ([-2, -1, -1], "the child of factor 0 must be the last variable of its scope, 0, or -1, got -2"),
    ],
)
def test_bad_children_are_refused(children: list[int], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        CHAIN.graph.bind(CHAIN.theta, children=np.array(children))


# Barren, where evidence is let rule out states -----------------------------------------------------------------------


def deterministic_network(rng: np.random.Generator) -> Model:
    """A Bayesian network of 4 to 8 variables; half of the rows of its CPTs leave one state."""
    cards = rng.integers(2, 4, rng.integers(4, 9))
    parents = [rng.permutation(v)[: rng.integers(4)].tolist() for v in range(len(cards))]
    cpts = {}
    for v, above in enumerate(parents):
        rows = tuple(cards[above])
        certain = np.eye(cards[v])[rng.integers(cards[v], size=rows)]
        cpts[str(v)] = np.where(rng.random((*rows, 1)) < 0.5, certain, rng.dirichlet(np.ones(cards[v]), rows))
    edges = [(str(p), str(v)) for v, above in enumerate(parents) for p in above]
    return besag.bayesian_network(edges, {str(v): int(k) for v, k in enumerate(cards)}, cpts)


@pytest.mark.parametrize("seed", range(80))
def test_a_barren_child_says_nothing_about_the_states_of_its_parents(seed: int) -> None:
    """One state of it stands for all of them; hard zeros of its CPT must not take that for an observation."""
    rng = np.random.default_rng(seed)
    model = deterministic_network(rng)
    order = rng.permutation(list(model.variables.names)).tolist()
    evidence = {name: model.sample(1, seed=seed)[name][0] for name in order[: rng.integers(1, 4)]}
    names = order[-rng.integers(1, 3) :]
    oracle = Enumeration(model, evidence)
    with force({"infer.junction.run.SUPPORT_ABOVE": 0.0}):
        close(model.log_partition(evidence, engine="junction_tree"), oracle.log_z)
        asked = model.marginals(names, evidence=evidence, engine="junction_tree")
        close(asked.log_partition, oracle.log_z)
        close(model.joint(names, evidence=evidence), oracle.joint(names))
        close(model.marginal_map(names, evidence=evidence).energy, -np.log(oracle.joint(names).max()) - oracle.log_z)
        for name in names:
            close(asked[name], oracle.marginal(name))
            close(model.marginals([name], evidence=evidence, engine="elimination")[name], oracle.marginal(name))


def test_support_under_evidence_makes_a_tree_as_small_with_a_barren_child_as_without() -> None:
    """X chooses among many states of Y, of which evidence leaves two; W is barren, with a zero in its first state."""
    table = np.zeros((2, 64, 64))
    table[0, np.arange(64), np.arange(64)], table[1, :, 0] = 1.0, 1.0
    zeros = np.tile([[0.5, 0.5], [0.0, 1.0]], (32, 1))
    cpts = {"Z": table, "W": zeros}
    model = besag.bayesian_network("X -> Z[64] <- Y[64]; Y -> W", cpts=cpts)
    with force({"infer.junction.run.SUPPORT_ABOVE": 0.0}):
        entries = model.marginals([], evidence={"Z": "5"}, engine="junction_tree").diagnostics.entries
        log_z = model.log_partition({"Z": "5"}, engine="junction_tree")
    assert entries <= 2
    assert_allclose(log_z, np.log(0.5 / 64), rtol=1e-12)


# Separated -----------------------------------------------------------------------------------------------------------


@examples(80)
@given(data=st.data(), model=networks() | models(max_labellings=500))
def test_connected_factors_give_the_same_marginals(data: st.DataObject, model: Model) -> None:
    evidence, targets = data.draw(evidence_for(model)), data.draw(some_of(len(model.variables)))
    problem = observing(model, evidence)
    mask = find_relevant(problem, targets)
    connected = find_separated(problem, mask, targets)
    same_marginals(Part(model, evidence, connected), Enumeration(model, evidence), targets)
    assert_array_equal(connected, reached_in(problem, mask, targets))


def reached_in(problem: Problem, mask: BoolArray, targets: IntArray) -> BoolArray:
    graph = nx.Graph()
    graph.add_nodes_from(("v", int(v)) for v in targets)
    for f in np.flatnonzero(mask):
        graph.add_edges_from((("f", int(f)), ("v", int(v))) for v in problem.graph.scope(int(f)))
    seen_everywhere = np.flatnonzero((problem.evidence.observed >= 0).all(axis=0))
    graph.remove_nodes_from([("v", int(v)) for v in seen_everywhere])
    parts = [nx.node_connected_component(graph, ("v", int(v))) for v in targets if ("v", int(v)) in graph]
    return np.array([any(("f", f) in part for part in parts) for f in range(len(mask))], bool)


def test_an_observed_variable_separates() -> None:
    problem, everything = observing(CHAIN, {"B": "1"}), np.ones(3, np.bool_)

    def connected(*targets: int) -> list[str]:
        mask = find_separated(problem, everything, np.array(targets, np.int64))
        return sorted(problem.graph.scope_name(int(f)) for f in np.flatnonzero(mask))

    assert connected(0) == ["f(A)", "f(A,B)"]
    assert connected(2) == ["f(B,C)"]
    assert connected(1) == [] == connected()
    assert find_separated(problem, everything, None).all()
    assert not find_separated(observing(CHAIN, {"A": 0, "B": 0, "C": 0}), everything, None).any()
    assert not find_separated(problem, ~everything, np.array([0])).any()


def test_a_variable_that_one_row_leaves_open_does_not_separate() -> None:
    problem = observing(CHAIN, pd.DataFrame({"B": ["0", None]}))
    assert find_separated(problem, np.ones(3, np.bool_), np.array([0])).all()
