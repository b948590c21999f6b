"""Bayesian networks: from text, edges and networkx, their CPTs in every form, and interventions."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import ModelError, ParseError
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.strategies import examples

TEXT = "A[no,yes] -> B; A -> C[lo,mid,hi] <- B"
P_A = [0.3, 0.7]
P_B = [[0.9, 0.1], [0.4, 0.6]]
P_C = np.array([[[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], [[0.3, 0.3, 0.4], [0.0, 0.0, 1.0]]])
CPTS = {"A": P_A, "B": P_B, "C": P_C}


@pytest.fixture
def model() -> Model:
    return besag.bayesian_network(TEXT, cpts=CPTS)


# Structure -----------------------------------------------------------------------------------------------------------


def test_text(model: Model) -> None:
    assert [(v.name, v.states) for v in model.variables] == [
        ("A", ("no", "yes")),
        ("B", ("0", "1")),
        ("C", ("lo", "mid", "hi")),
    ]
    assert model.parents("C") == ["A", "B"]
    assert model.is_bayesian_network


@pytest.mark.parametrize(
    ("text", "states", "parents"),
    [
        ("A", {"A": 2}, {"A": []}),
        ("A[3]", {"A": 3}, {"A": []}),
        ("A[1]", {"A": 1}, {"A": []}),
        ("A -> B -> C", {"A": 2, "B": 2, "C": 2}, {"B": ["A"], "C": ["B"]}),
        ("A <- B", {"A": 2, "B": 2}, {"A": ["B"]}),
        ("A -> C <- B\nC -> D[4]", {"A": 2, "C": 2, "B": 2, "D": 4}, {"C": ["A", "B"], "D": ["C"]}),
        ("b 2[x, y] -> rain;;A[3];", {"b 2": 2, "rain": 2, "A": 3}, {"rain": ["b 2"]}),
        ("A -> B; A[3] -> C; A -> B", {"A": 3, "B": 2, "C": 2}, {"B": ["A"], "C": ["A"]}),
    ],
)
def test_more_texts(text: str, states: dict[str, int], parents: dict[str, list[str]]) -> None:
    model = besag.bayesian_network(text)
    assert {v.name: v.cardinality for v in model.variables} == states
    for name, above in parents.items():
        assert model.parents(name) == above


def test_edges_and_networkx_give_the_network_of_the_text(model: Model) -> None:
    edges = [("A", "B"), ("A", "C"), ("B", "C")]
    states = {"A": ["no", "yes"], "C": ["lo", "mid", "hi"]}
    for structure in (edges, iter(edges), nx.DiGraph(edges)):
        other = besag.bayesian_network(structure, states, CPTS)
        assert other.parents("C") == ["A", "B"]
        assert_array_equal(other.cpt("C"), model.cpt("C"))
        assert other.log_partition({"C": "hi"}) == pytest.approx(model.log_partition({"C": "hi"}))


def test_nodes_without_edges_count() -> None:
    graph = nx.DiGraph([(1, 2)])
    graph.add_node(7)
    assert [v.name for v in besag.bayesian_network(graph).variables] == ["1", "2", "7"]
    assert [v.name for v in besag.bayesian_network([], {"Z": 3}).variables] == ["Z"]


def test_cpts_are_uniform_until_they_are_given() -> None:
    assert_allclose(besag.bayesian_network(TEXT).cpt("C"), np.full((2, 2, 3), 1 / 3))


@pytest.mark.parametrize(
    ("structure", "error", "match"),
    [
        ("", ModelError, "a model needs at least one variable"),
        (" ; ", ModelError, "a model needs at least one variable"),
        ([], ModelError, "a model needs at least one variable"),
        (nx.DiGraph(), ModelError, "a model needs at least one variable"),
        ("A -> B -> C -> A", ModelError, "cycle: (A -> B -> C -> A|B -> C -> A -> B|C -> A -> B -> C)"),
        ("X -> A; A -> B <- C; B -> C; C -> Y", ModelError, "cycle: (B -> C -> B|C -> B -> C)$"),
        ([("A", "B"), ("B", "A")], ModelError, "cycle: (A -> B -> A|B -> A -> B)"),
        ("A -> A", ModelError, "'A' cannot be its own parent"),
        ("A -> ", ParseError, r"statement 1: expected a node such as A, A\[3\]"),
        ("A; B -> -> C", ParseError, "statement 2: expected a node"),
        ("A[no,yes", ParseError, r'statement 1: .* got "A\[no,yes"'),
        ("A[x,x]", ModelError, "states of 'A' must be one or more distinct names"),
        ("A[]", ModelError, "states of 'A' must be one or more distinct names"),
        ("A[0]", ModelError, "'A' needs at least one state, got 0"),
        ("A[x,y] -> B; A[y,x] -> C", ModelError, "states of 'A' are given twice and differ"),
        (nx.Graph([("A", "B")]), ModelError, "needs a directed graph"),
        ([("A", "B", "C")], ModelError, r"an edge is \(parent, child\), got \('A', 'B', 'C'\)"),
        (["AB"], ModelError, r"an edge is \(parent, child\), got 'AB'"),
        (3, ModelError, "structure must be text, edges or a networkx.DiGraph, got int"),
    ],
)
def test_bad_structures_are_refused(structure: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        besag.bayesian_network(structure)


# CPTs ----------------------------------------------------------------------------------------------------------------


def test_the_joint_is_the_product_of_the_cpts(model: Model) -> None:
    expected = np.einsum("a,ab,abc->abc", P_A, P_B, P_C)
    assert_allclose(Enumeration(model).p.reshape(2, 2, 3), expected, atol=1e-15)
    assert model.log_partition() == pytest.approx(0, abs=1e-15)
    for name, cpt in CPTS.items():
        assert_allclose(model.cpt(name), cpt, atol=1e-15)


def frame(permuted: bool) -> pd.DataFrame:
    """P(C | A, B) as a frame, its levels, rows and columns in another order where permuted."""
    index = pd.MultiIndex.from_product([["no", "yes"], [0, 1]], names=["A", "B"])
    table = pd.DataFrame(P_C.reshape(4, 3), index=index, columns=["lo", "mid", "hi"])
    return table.reorder_levels(["B", "A"]).iloc[[2, 0, 3, 1]][["hi", "lo", "mid"]] if permuted else table


def named_row(row: np.ndarray) -> dict[str, float]:
    return {"hi": row[2], "lo": row[0], "mid": row[1]}


@pytest.mark.parametrize(
    "given",
    [
        P_C,
        P_C.tolist(),
        frame(permuted=False),
        frame(permuted=True),
        frame(permuted=False).rename_axis([None, None]),
        {(a, b): P_C[i, b] for i, a in enumerate(["no", "yes"]) for b in (0, 1)},
        {(a, str(b)): named_row(P_C[i, b]) for i, a in enumerate(["no", "yes"]) for b in (1, 0)},
    ],
    ids=["array", "list", "frame", "permuted frame", "frame without names", "dict of lists", "dict of dicts"],
)
def test_forms_of_a_cpt(given: Any) -> None:
    model = besag.bayesian_network(TEXT)
    assert_allclose(model.with_cpt("C", given).cpt("C"), P_C, atol=1e-15)
    assert_allclose(besag.bayesian_network(TEXT, cpts={"C": given}).cpt("C"), P_C, atol=1e-15)


@pytest.mark.parametrize(
    "given", [[0.3, 0.7], {"yes": 0.7, "no": 0.3}, pd.DataFrame([[0.7, 0.3]], columns=["yes", "no"])]
)
def test_forms_of_a_cpt_without_parents(given: Any) -> None:
    assert_allclose(besag.bayesian_network(TEXT).with_cpt("A", given).cpt("A"), P_A)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame(P_B, index=["no", "yes"], columns=["0", "1"]),
        pd.DataFrame(P_B, index=["no", "yes"], columns=[0, 1]).loc[["yes", "no"], [1, 0]],
        {"yes": [0.4, 0.6], "no": {1: 0.1, 0: 0.9}},
        {("yes",): [0.4, 0.6], ("no",): [0.9, 0.1]},
    ],
)
def test_forms_of_a_cpt_with_one_parent(given: Any) -> None:
    assert_allclose(besag.bayesian_network(TEXT).with_cpt("B", given).cpt("B"), P_B)


def test_a_series_is_read_by_its_labels_or_refused() -> None:
    """Taken as a bare array it would put the probability of "yes" on "no"."""
    series = pd.Series([0.7, 0.3], index=["yes", "no"])
    try:
        model = besag.bayesian_network(TEXT).with_cpt("A", series)
    except ModelError:
        return
    assert_allclose(model.cpt("A"), P_A)


def test_rows_within_a_millionth_of_one_are_normalised() -> None:
    model = besag.bayesian_network("A", cpts={"A": [0.3, 0.7 + 9e-7]})
    assert model.cpt("A").sum() == pytest.approx(1, abs=1e-15)
    assert_allclose(model.cpt("A"), np.array([0.3, 0.7 + 9e-7]) / (1 + 9e-7), rtol=1e-14)
    with pytest.raises(ModelError, match=r"sums to 1\.000002, not 1"):
        besag.bayesian_network("A", cpts={"A": [0.3, 0.700002]})
    assert besag.bayesian_network("A", cpts={"A": [0.3, 0.7005]}, tolerance=1e-3).cpt("A").sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "given", "match"),
    [
        ("B", [[0.9, 0.1], [0.4, 0.5]], "row A=yes of the CPT of 'B' sums to 0.9, not 1"),
        ("C", np.where(np.arange(2)[:, None, None] * np.arange(2)[None, :, None], 0.2, 1 / 3) * np.ones(3),
         "row A=yes, B=1 of the CPT of 'C' sums to 0.6, not 1"),
        ("A", [0.3, 0.6], "CPT of 'A' sums to 0.9, not 1"),
        ("B", [[0.9, 0.4], [0.1, 0.6]], "row A=no of the CPT of 'B' sums to 1.3, not 1; its columns do: .* transpose"),
        ("B", [[0.9, 0.1]], r"CPT of 'B' must have shape \(2, 2\), axes \(A, B\), got \(1, 2\)"),
        ("C", np.ones((3, 2, 2)) / 3, r"CPT of 'C' must have shape \(2, 2, 3\), axes \(A, B, C\), got \(3, 2, 2\)"),
        ("B", [[1.5, -0.5], [0.4, 0.6]], r"CPT of 'B' must hold probabilities, but the entry at A=no, B=0 is 1.5"),
        ("B", [[0.5, 0.5], [np.nan, 0.6]], r"CPT of 'B' must hold probabilities, but the entry at A=yes, B=0 is nan"),
        ("B", [[0.5, 0.5], [np.inf, 0.6]], r"CPT of 'B' must hold probabilities, but the entry at A=yes, B=0 is inf"),
        ("B", {"no": [0.5, 0.5]}, r"CPT of 'B' has no row for A=yes"),
        ("B", {"no": [0.5, 0.5], "perhaps": [0.5, 0.5]}, "'A' has no state 'perhaps'"),
        ("B", {"no": [0.5, 0.5], "yes": [1.0]}, r"a row of the CPT of 'B' has 2 entries, got \(1,\)"),
        ("B", {"no": [0.5, 0.5], "yes": {"0": 1.0}}, r"a row of the CPT of 'B' names no probability for \['1'\]"),
        ("B", {"no": [0.5, 0.5], "yes": {"0": 0.5, "2": 0.5}}, "'B' has no state '2'"),
        ("C", {("no",): [1, 0, 0]}, r"row \('no',\) of the CPT of 'C' must name a state of each of \(A, B\)"),
        ("B", "abc", "CPT of 'B' must be an array, a DataFrame or a dict"),
        ("D", [1.0], "no variable is named 'D'"),
    ],
)  # fmt: skip
def test_bad_cpts_are_refused(name: str, given: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        besag.bayesian_network(TEXT).with_cpt(name, given)
    with pytest.raises(ModelError, match=match):
        besag.bayesian_network(TEXT, cpts={name: given})


def test_with_cpt_keeps_the_graph_and_moves_hard_zeros(model: Model) -> None:
    other = model.with_cpt("C", np.full((2, 2, 3), 1 / 3)).with_cpt("A", [1.0, 0.0])
    assert other.graph is model.graph
    assert other.is_bayesian_network
    assert_allclose(other.marginals()["A"], [1, 0])
    assert_allclose(other.marginals()["C"], [1 / 3] * 3)
    assert_allclose(model.cpt("C"), P_C, atol=1e-15)


def test_a_markov_network_has_no_cpts() -> None:
    field = besag.markov_network({"A": 2}, [("A", [0, 0])])
    with pytest.raises(ModelError, match="'A' has no CPT: the model is not a Bayesian network"):
        field.cpt("A")
    with pytest.raises(ModelError, match="needs a Bayesian network"):
        field.parents("A")


def test_with_theta_clears_conditional_unless_rows_still_sum_to_one(model: Model) -> None:
    swapped = model.with_theta(-np.log(np.where(model.theta > 0, 1 - np.exp(-model.theta), 1.0)))
    assert not swapped.is_bayesian_network
    assert model.with_theta(model.theta).is_bayesian_network
    two = besag.bayesian_network("A; B[3]", cpts={"A": [0.2, 0.8]})
    theta = np.array(two.theta)
    theta[:2] = -np.log([0.8, 0.2])
    assert two.with_theta(theta).is_bayesian_network
    theta[0] += 1
    changed = two.with_theta(theta)
    assert [group.conditional for group in changed.groups] == [False, True]
    assert changed.graph is two.graph
    assert "Markov network" in repr(changed)
    assert changed.log_partition() == pytest.approx(Enumeration(changed).log_z)


# Interventions -------------------------------------------------------------------------------------------------------


def test_do_cuts_the_parents_and_sets_the_state(model: Model) -> None:
    cut = model.do({"B": 1})
    assert cut.parents("B") == []
    assert_allclose(cut.marginals()["A"], P_A)
    assert_allclose(cut.marginals()["C"], np.einsum("a,ac->c", P_A, P_C[:, 1]))
    assert_allclose(cut.marginals()["B"], [0, 1])
    assert model.parents("B") == ["A"]
    assert [v.name for v in cut.variables] == [v.name for v in model.variables]
    assert_allclose(model.do({}).joint(["A", "B", "C"]), model.joint(["A", "B", "C"]))
    assert_allclose(model.do({"A": "no", "B": "1"}).marginals()["C"], P_C[0, 1], atol=1e-15)


def test_do_refuses_what_is_not_there(model: Model) -> None:
    with pytest.raises(ModelError, match="no variable is named 'Z'"):
        model.do({"Z": "no"})
    with pytest.raises(ModelError, match="'A' has no state 'maybe'"):
        model.do({"A": "maybe"})
    with pytest.raises(ModelError, match=r"'A' has no state 'YES'; did you mean 'yes'\? It has \['no', 'yes'\]"):
        model.do({"A": "YES"})
    with pytest.raises(ModelError, match=r"do takes .*\{name: state\}.*; got several for 'A': \['no', 'yes'\]"):
        model.do({"A": ["no", "yes"]})


@examples(25)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_do_is_the_truncated_product(seed: int, data: st.DataObject) -> None:
    """p(y | do(X = x)) = p(y) / p(x | parents) where y agrees with x, and zero elsewhere."""
    rng = np.random.default_rng(seed)
    edges = [(f"v{i}", f"v{j}") for j in range(4) for i in range(j) if rng.random() < 0.6]
    states = {f"v{i}": int(rng.integers(1, 4)) for i in range(4)}
    bare = besag.bayesian_network(edges, states)
    cpts = {name: rng.dirichlet(np.ones(k), size=bare.cpt(name).shape[:-1]) for name, k in states.items()}
    model = besag.bayesian_network(edges, states, cpts)
    target = data.draw(st.sampled_from(sorted(states)))
    code = int(rng.integers(states[target]))
    before, after = Enumeration(model), Enumeration(model.do({target: code}))
    cpt = model.cpt(target)[tuple(before.column(name) for name in [*model.parents(target), target])]
    assert_allclose(after.p, np.where(before.column(target) == code, before.p / cpt, 0.0), atol=1e-14)
