"""Graphs and problems: compiling, unions, taking parts, binding numbers, energies and moments."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import besag
from besag.arrays import Kind
from besag.errors import EvidenceError, ModelError, TooLargeError
from besag.graph.evidence import Evidence
from besag.graph.graph import MAX_PLANS, Graph, Plans
from besag.model.layout import Layout
from besag.model.model import FactorGroup, Model
from besag.model.structured.potts import Potts
from besag.model.structured.scaled import Scaled
from besag.model.template import Template
from besag.model.variable import RangeNames, Variables
from tests.oracle import Enumeration
from tests.strategies import examples, generators, models

UNARY = Template("unary", (2,), 2)
PAIR = Template("pair", (2, 2))
THETA = np.array([0.1, 0.2, 0.3, 0.4, 0.0, 1.0, 1.0, 0.0])


def chain_of(n: int, rows: Any) -> Model:
    """n binary variables in a row; variable v reads row rows[v] of the unary template."""
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    groups = (FactorGroup(UNARY, np.arange(n)[:, None], np.array(rows)), FactorGroup(PAIR, pairs))
    return Model(Variables.alike(RangeNames(n), 2), groups, THETA)


MODELS = [chain_of(3, [0, 1, 0]), chain_of(1, [1]), chain_of(2, [1, 1])]


@pytest.fixture
def union() -> Graph:
    return besag.compile_graph(*MODELS)


# Compiling -----------------------------------------------------------------------------------------------------------


@examples(50)
@given(model=models())
def test_a_graph_keeps_scopes_and_order(model: Model) -> None:
    graph = model.graph
    assert graph.n_factors == model.n_factors
    assert sorted(graph.factor_order.tolist()) == list(range(model.n_factors))
    for number in range(model.n_factors):
        group, at = model.locate(number)
        f = int(graph.factor_order[number])
        assert_array_equal(graph.scope(f), group.scopes[at])
        assert graph.block_of(f).template is group.template
        assert graph.kinds[f] == group.template.kind
    degrees = [sum(v in graph.scope(f) for f in range(graph.n_factors)) for v in range(graph.n_variables)]
    assert graph.degrees.tolist() == degrees
    assert repr(graph) == f"Graph({len(model.variables)} variables, {model.n_factors} factors, 1 instances)"


def test_names_of_factors() -> None:
    network = besag.bayesian_network("A -> B; C").graph
    assert sorted(network.factor_name(f) for f in range(3)) == ["f(A)", "f(A,B)", "f(C)"]
    named = besag.markov_network({"A": 2, "B": 2}, {"left": ("A", [0, 0]), "right": ("B", [0, 0])}).graph
    assert [named.factor_name(f) for f in range(2)] == ["left", "right"]
    bare = besag.markov_network({"A": 2, "B": 2}, [(("B", "A"), np.eye(2))]).graph
    assert bare.factor_name(0) == "f(B,A)"


def test_a_union_has_variables_one_after_the_other(union: Graph) -> None:
    assert union.n_instances == 3
    assert union.instance_offsets.tolist() == [0, 3, 4, 6]
    assert [v.name for v in union.variables] == ["0:0", "0:1", "0:2", "1:0", "2:0", "2:1"]
    assert sorted(union.scope(f).tolist() for f in range(union.n_factors) if len(union.scope(f)) == 2) == [
        [0, 1],
        [1, 2],
        [4, 5],
    ]
    assert_array_equal(union.factor_instances[union.factor_order], [0] * 5 + [1] + [2] * 3)


def test_a_union_of_different_state_spaces() -> None:
    one = besag.markov_network({"A": ["x", "y"]}, [("A", [0.0, 1.0])])
    two = besag.markov_network({"B": ["u", "v"]}, [("B", [0.0, 1.0])])
    graph = besag.compile_graph(one, two)
    assert [v.states for v in graph.variables] == [("x", "y"), ("u", "v")]


def test_templates_of_one_name_must_agree() -> None:
    other = Model(Variables.alike(RangeNames(1), 3), (FactorGroup(Template("pair", (3,)), [[0]]),), np.zeros(3))
    with pytest.raises(ModelError, match="two templates are named 'pair' but differ"):
        besag.compile_graph(MODELS[0], other)
    with pytest.raises(ModelError, match="at least one model"):
        besag.compile_graph()


def test_inputs_of_a_union_have_one_form() -> None:
    rows = MODELS[1]
    dense = rows.with_inputs({"unary": np.array([[0.0, 1.0]])})
    with pytest.raises(ModelError, match=r"'unary': .*must give their inputs in one form"):
        besag.compile_graph(rows, dense)


@pytest.mark.parametrize("sparse", [False, True])
def test_inputs_of_a_union_are_joined(sparse: bool) -> None:
    form = csr_array if sparse else np.asarray
    parts = [m.with_inputs({"unary": form(np.arange(2.0 * len(m.variables)).reshape(-1, 2))}) for m in MODELS]
    problem = besag.compile_graph(*parts).bind(THETA)
    log_z = besag.infer.Brute().infer(problem, frozenset({"log_partition"})).log_partition
    assert_allclose(log_z, [Enumeration(part).log_z for part in parts])


def test_a_layout_may_be_larger_than_the_graph() -> None:
    layout = Layout([Template("first", (5,)), PAIR, UNARY])
    graph = besag.compile_graph(MODELS[0], layout=layout)
    theta = np.concatenate([np.full(5, 9.0), THETA[4:], THETA[:4]])
    assert graph.layout["pair"] == slice(5, 9)
    assert_allclose(sorted(graph.bind(theta).log_potentials), sorted(MODELS[0].problem.log_potentials))
    assert graph.moments(np.zeros(3, int)).tolist() == [*[0.0] * 5, 2, 0, 0, 0, 2, 0, 1, 0]
    with pytest.raises(ModelError, match="two templates are named 'pair' but differ"):
        besag.compile_graph(MODELS[0], layout=Layout([Template("pair", (5,))]))


# Taking parts --------------------------------------------------------------------------------------------------------


def test_take(union: Graph) -> None:
    part = union.take([2, 0])
    assert part.layout is union.layout
    assert [v.name for v in part.variables] == ["0:0", "0:1", "1:0", "1:1", "1:2"]
    assert_allclose(part.bind(THETA).energy(np.ones(5, int)), union.bind(THETA).energy(np.ones(6, int))[[2, 0]])
    assert [v.name for v in union.take([1]).variables] == ["0"]
    assert [v.name for v in part.take([1]).variables] == ["0", "1", "2"]
    assert part.take([1]).take([0]).bind(THETA).energy(np.ones(3, int)) == pytest.approx(
        MODELS[0].energy(np.ones(3, int))
    )


def test_moments_of_parts_add(union: Graph) -> None:
    """Also of a part in which a template has no factor."""
    brute, want = besag.infer.Brute(), frozenset({"moments"})
    parts = [union.take([i]) for i in range(3)]
    moments = [part.moments(brute.infer(part.bind(THETA), want).moments) for part in parts]
    whole = union.moments(brute.infer(union.bind(THETA), want).moments)
    assert_allclose(np.sum(moments, axis=0), whole)
    labels = np.array([0, 1, 1, 1, 0, 1])
    bounds = union.instance_offsets
    of_labels = [part.moments(labels[bounds[i] : bounds[i + 1]]) for i, part in enumerate(parts)]
    assert_allclose(np.sum(of_labels, axis=0), union.moments(labels))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_moments_of_a_part_without_factors_of_a_template(form: Any) -> None:
    one = Model(Variables.alike(RangeNames(1), 2), (FactorGroup(UNARY, [[0]], form(np.ones((1, 2)))),), THETA[:4])
    two = besag.compile_graph(one, Model(Variables.alike(RangeNames(2), 2), (FactorGroup(PAIR, [[0, 1]]),), THETA[4:]))
    brute = besag.infer.Brute()
    for i in range(2):
        part = two.take([i])
        result = brute.infer(part.bind(THETA), frozenset({"moments", "factors"}))
        assert_allclose(part.moments(result.moments).sum(), [2, 1][i])


@pytest.mark.parametrize("engine", [besag.infer.Brute(), besag.infer.Tree()], ids=["brute", "tree"])
@pytest.mark.parametrize("basis", [None, np.ones((2, 2, 2)), Potts(2), Scaled(np.eye(2))])
def test_a_template_without_factors_keeps_its_place_in_moments(basis: Any, engine: Any) -> None:
    empty = FactorGroup(Template("empty", (2, 2), basis=basis), np.zeros((0, 2), int))
    theta = np.concatenate([np.full(empty.template.n_parameters, 9.0), THETA[:4]])
    model = Model(Variables.alike(RangeNames(2), 2), (empty, FactorGroup(UNARY, [[0], [1]], np.array([0, 1]))), theta)
    result = engine.infer(model.problem, frozenset({"moments", "map"}))
    assert result.moments.shape == model.problem.log_potentials.shape
    assert_allclose(model.graph.moments(result.moments), Enumeration(model).moments())
    assert result.energy == pytest.approx(Enumeration(model).map_energy)


@pytest.mark.parametrize(
    ("instances", "match"),
    [
        ([], "take needs one or more different instances"),
        ([1, 1], "take needs one or more different instances"),
        ([3], r"there are 3 instances, numbered from 0; got \[3\]"),
        ([-1], r"there are 3 instances, numbered from 0; got \[-1\]"),
    ],
)
def test_bad_instances_are_refused(union: Graph, instances: list[int], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        union.take(instances)


# Problems ------------------------------------------------------------------------------------------------------------


def test_one_minus_sign() -> None:
    """theta is in the energy sign, and what a problem holds in that of log-potentials."""
    problem = MODELS[1].problem
    assert_allclose(problem.table(0), [-0.3, -0.4])
    assert_allclose(problem.energy(np.array([1])), [0.4])


def test_tables_that_factors_share_are_stored_once() -> None:
    problem = MODELS[0].problem
    assert len(problem.log_potentials) == 2 * 2 + 4
    assert len(besag.compile_graph(*MODELS).bind(THETA).log_potentials) == 2 * 2 + 4
    tables, readers = problem.block_tables(0)
    assert tables.shape == (2, 2)
    assert readers.tolist() == [0, 1, 0]
    assert repr(problem) == "Problem(Graph(3 variables, 5 factors, 1 instances), 8 table entries, 1 rows)"


def test_energy_of_a_union_and_of_rows(union: Graph) -> None:
    labels = np.array([0, 1, 1, 1, 0, 1])
    expected = [m.energy(part) for m, part in zip(MODELS, np.split(labels, [3, 4]), strict=True)]
    assert_allclose(union.bind(THETA).energy(labels), expected)
    rows = Enumeration(MODELS[0]).labels
    assert_allclose(MODELS[0].problem.energy(rows), [MODELS[0].problem.energy(row)[0] for row in rows])


def test_evidence_counts_in_the_energy_of_a_union(union: Graph) -> None:
    evidence = Evidence(np.array([0, -1, -1, 0, -1, -1]), np.arange(12.0))
    energy = union.bind(THETA, evidence=evidence).energy(np.array([0, 1, 1, 1, 0, 1]))
    plain = union.bind(THETA).energy(np.array([0, 1, 1, 1, 0, 1]))
    assert_allclose(energy, [plain[0] - (0 + 3 + 5), np.inf, plain[2] - (8 + 11)])


def test_a_structured_block_becomes_tables_on_demand() -> None:
    model = besag.grid((2, 2), 3, pairwise=besag.potts(3), weights=(np.ones((2, 1)), np.full((1, 2), 2.0)))
    dense = model.problem.expanded(frozenset({Kind.TABLE}), memory_limit=10**6)
    assert len(dense.log_potentials) == 4 * 9
    block = dense.log_potentials.reshape(4, 3, 3)
    for f in range(4):
        assert_allclose(block[f], model.problem.table(f))
    levels = model.problem.expanded(frozenset({Kind.TABLE, Kind.POTTS}), memory_limit=0)
    assert_array_equal(levels.log_potentials.reshape(4, 2), [[0, -1], [0, -1], [0, -2], [0, -2]])
    for f in range(4):
        assert_allclose(levels.table(f), model.problem.table(f))
    assert levels.log_potentials is model.problem.expanded(frozenset({Kind.TABLE, Kind.POTTS}), 0).log_potentials
    with pytest.raises(
        TooLargeError, match="the 4 tables of 'pairwise' would take 288 bytes, more than memory_limit=287"
    ):
        model.problem.expanded(frozenset({Kind.TABLE}), memory_limit=287)


@examples(40)
@given(model=models(), rng=generators())
def test_bind_takes_other_inputs(model: Model, rng: np.random.Generator) -> None:
    """bind(inputs=...) is the problem of the model with these inputs, and moments(inputs=...) its moments."""
    inputs = {name: rng.permutation(own) for name, own in model.inputs.items() if isinstance(own, np.ndarray)}
    other = model.with_inputs(inputs)
    problem = model.graph.bind(model.theta, inputs=inputs, support=model.support)
    assert_array_equal(problem.log_potentials, other.problem.log_potentials)
    labels = np.zeros(len(model.variables), int)
    assert_array_equal(model.graph.moments(labels, inputs=inputs), other.condition({}).graph.moments(labels))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda g: g.bind(np.zeros(3)), ModelError, r"theta must have shape \(8,\), got \(3,\)"),
        (lambda g: g.bind(THETA * np.nan), ModelError, r"theta must be finite .* theta\[0\] is nan"),
        (lambda g: g.bind(THETA, weights=np.ones(2)), ModelError, "weights must be 3 finite numbers"),
        (lambda g: g.bind(THETA, weights=[1, 2, np.nan]), ModelError, "weights must be 3 finite numbers"),
        (lambda g: g.bind(THETA, inputs={"unary": np.zeros(2, int)}), ModelError, r"'unary': inputs must be \(6,\)"),
        (
            lambda g: g.bind(THETA, evidence=Evidence([[-1] * 6] * 2)),
            EvidenceError,
            "3 instances takes one row .* got 2",
        ),
        (lambda g: g.bind(THETA, evidence=Evidence([-1] * 5)), EvidenceError, "observed must have 6 columns, got 5"),
        (lambda g: g.bind(THETA).energy(np.zeros(5, int)), ModelError, "a labelling has 6 codes, got 5"),
        (lambda g: g.bind(THETA).energy(np.zeros((2, 6), int)), ModelError, "need a graph of one instance"),
        (lambda g: g.moments(np.zeros(5, int)), ModelError, r"a labelling has shape \(6,\), got \(5,\)"),
        (lambda g: g.moments(np.zeros(5)), ModelError, "moments of this graph have 8 entries, got 5"),
        (lambda g: g.layout["nobody"], ModelError, "no template is named 'nobody'; there are 'unary', 'pair'"),
    ],
)
def test_bad_numbers_are_refused(union: Graph, call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(union)


def test_layout_says_where_each_template_is() -> None:
    assert repr(MODELS[0].layout) == "Layout(unary[0:4], pair[4:8])"


# Plans ---------------------------------------------------------------------------------------------------------------


def test_plans_are_made_once_and_the_oldest_go_first() -> None:
    plans, made = Plans(), []
    for key in [0, *range(MAX_PLANS), 0, MAX_PLANS, 1]:
        plans.get(key, lambda key=key: made.append(key))
    assert made == [*range(MAX_PLANS), MAX_PLANS, 1]


def test_plans_serve_several_threads() -> None:
    plans, found = Plans(), []
    threads = [threading.Thread(target=lambda: found.append(plans.get("key", lambda: 42))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [42] * 8


def test_a_plan_for_numbers_is_never_that_of_other_numbers() -> None:
    """While one thread makes its plan, another one makes and keeps its own under the same key."""
    plans, mine, others = Plans(), np.zeros(1), np.ones(1)

    def make() -> str:
        assert plans.get_for("key", others, lambda: "theirs") == "theirs"
        return "mine"

    assert plans.get_for("key", mine, make) == "mine"
    assert plans.get_for("key", others, lambda: "theirs anew") == "theirs anew"

    class Meeting(Plans):
        """A Plans in which another thread keeps its plan between two looks at the cache."""

        __slots__ = ()

        def get(self, key: Any, make: Any) -> Any:
            self._made[key] = (others, "theirs")
            return super().get(key, make)

    assert Meeting().get_for("key", mine, lambda: "mine") == "mine"
