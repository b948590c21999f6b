"""Views of a directed graph against networkx: order, blankets and d-separation on random DAGs."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.errors import ModelError
from besag.model.model import Model
from tests.strategies import examples


@st.composite
def dags(draw: st.DrawFn) -> nx.DiGraph:
    """A random directed acyclic graph of 2 to 7 nodes, in no particular order."""
    n = draw(st.integers(2, 7))
    names = draw(st.permutations([f"v{i}" for i in range(n)]))
    pairs = list(itertools.combinations(names, 2))
    kept = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12))
    graph = nx.DiGraph()
    graph.add_nodes_from(draw(st.permutations(names)))
    graph.add_edges_from(kept)
    return graph


@examples(200)
@given(graph=dags(), data=st.data())
def test_d_separation(graph: nx.DiGraph, data: st.DataObject) -> None:
    model = besag.bayesian_network(graph)
    role = {name: data.draw(st.sampled_from(["a", "b", "given", "none"])) for name in graph}
    a, b, observed = ([name for name in graph if role[name] == kind] for kind in ("a", "b", "given"))
    expected = nx.is_d_separator(graph, set(a), set(b), set(observed))
    assert model.d_separated(a, b, given=observed) == expected
    assert model.d_separated(b, a, given=observed) == expected


@examples(50)
@given(graph=dags())
def test_orders_parents_children_and_blankets(graph: nx.DiGraph) -> None:
    model = besag.bayesian_network(graph)
    order = model.topological_order()
    assert sorted(order) == sorted(graph)
    assert all(order.index(parent) < order.index(child) for parent, child in graph.edges)
    for name in graph:
        assert set(model.parents(name)) == set(graph.predecessors(name))
        assert set(model.children(name)) == set(graph.successors(name))
        others = {p for child in graph.successors(name) for p in graph.predecessors(child)}
        blanket = (set(graph.predecessors(name)) | set(graph.successors(name)) | others) - {name}
        assert set(model.markov_blanket(name)) == blanket
        assert len(model.markov_blanket(name)) == len(blanket)


@examples(25)
@given(graph=dags(), seed=st.integers(0, 2**32 - 1))
def test_a_blanket_makes_independent(graph: nx.DiGraph, seed: int) -> None:
    name = min(graph)
    model = random_cpts(besag.bayesian_network(graph), seed)
    blanket = dict.fromkeys(model.markov_blanket(name), "1")
    rest = [v for v in graph if v != name and v not in blanket]
    full = model.marginals(evidence={**blanket, **dict.fromkeys(rest, "0")})[name]
    np.testing.assert_allclose(model.marginals(evidence=blanket)[name], full, atol=1e-12)


def random_cpts(model: Model, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    for variable in model.variables:
        model = model.with_cpt(variable.name, rng.dirichlet([1, 1], size=model.cpt(variable.name).shape[:-1]))
    return model


def test_names_may_be_given_alone_or_in_lists() -> None:
    model = besag.bayesian_network("A -> C <- B; C -> D")
    assert model.d_separated("A", "B")
    assert not model.d_separated("A", "B", given=["D"])
    assert not model.d_separated(["A"], ["B", "D"])
    assert model.d_separated("A", "D", given="C")


def test_unknown_names_are_refused() -> None:
    model = besag.bayesian_network("A -> B")
    for ask in (
        lambda: model.parents("Z"),
        lambda: model.children("Z"),
        lambda: model.markov_blanket("Z"),
        lambda: model.d_separated("A", "Z"),
        lambda: model.d_separated("A", "B", given=["Z"]),
        lambda: model.variable("Z"),
    ):
        with pytest.raises(ModelError, match="no variable is named 'Z'"):
            ask()


def test_a_markov_network_has_blankets_but_no_arrows() -> None:
    model = besag.markov_network({"A": 2, "B": 2, "C": 2}, [(("A", "B"), np.zeros((2, 2)))])
    assert model.markov_blanket("A") == ["B"]
    assert model.markov_blanket("C") == []
    for ask in (
        lambda: model.parents("A"),
        lambda: model.children("A"),
        model.topological_order,
        lambda: model.d_separated("A", "B"),
        lambda: model.do({"A": "0"}),
        lambda: model.to_networkx("dag"),
    ):
        with pytest.raises(ModelError, match=r"needs a Bayesian network.*besag\.bayesian_network"):
            ask()


def test_networkx_graphs() -> None:
    model = besag.bayesian_network("A -> C <- B; C -> D; E")
    assert set(model.to_networkx("dag").edges) == {("A", "C"), ("B", "C"), ("C", "D")}
    assert set(model.to_networkx("dag")) == set("ABCDE")
    moral = {frozenset(edge) for edge in model.to_networkx("moral").edges}
    assert moral == {frozenset(pair) for pair in ("AC", "BC", "AB", "CD")}
    assert set(model.to_networkx()) == set("ABCDE")
    factors = model.to_networkx("factor")
    assert nx.is_bipartite(factors)
    assert factors.number_of_nodes() == 10
    assert sorted(d for node, d in factors.degree if factors.nodes[node]["bipartite"] == 1) == [1, 1, 1, 2, 3]
    with pytest.raises(ModelError, match=r"kind must be .* got 'tree'"):
        model.to_networkx("tree")  # type: ignore[arg-type]
