"""The junction tree as users see it: model.junction_tree()."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.errors import ModelError
from besag.model.model import Model
from besag.query.tree_view import JunctionTreeView
from tests.strategies import evidence_for, examples, models

ASIA = besag.data.bundled("asia")


@st.composite
def graphs(draw: st.DrawFn) -> Model:
    """Pairs and triples among more variables than can be enumerated, for trees of many cliques."""
    n = draw(st.integers(6, 14))
    scope = st.lists(st.integers(0, n - 1), min_size=2, max_size=3, unique=True)
    scopes = draw(st.lists(scope, min_size=n // 2, max_size=2 * n))
    return besag.markov_network([2] * n, [(tuple(one), np.zeros((2,) * len(one))) for one in scopes])


@st.composite
def views(draw: st.DrawFn) -> tuple[Model, JunctionTreeView]:
    """A model, and its tree under some evidence."""
    if draw(st.booleans()):
        model = draw(graphs())
        seen = draw(st.lists(st.sampled_from([variable.name for variable in model.variables]), max_size=3))
        return model, model.junction_tree(dict.fromkeys(seen, "1"))
    model = draw(models())
    return model, model.junction_tree(draw(st.none() | evidence_for(model)))


def free_graph(model: Model, view: JunctionTreeView) -> "nx.Graph[str]":
    """Variables that share a factor, without those that are known."""
    graph = model.to_networkx("moral")
    graph.remove_nodes_from(view.known)
    return graph


@examples(80)
@given(drawn=views())
def test_running_intersection(drawn: tuple[Model, JunctionTreeView]) -> None:
    model, view = drawn
    tree = view.to_networkx()
    assert list(tree.nodes) == view.cliques
    assert nx.is_forest(tree) if tree else not view.cliques
    for variable in model.variables:
        holders = [clique for clique in view.cliques if variable.name in clique]
        assert bool(holders) == (variable.name not in view.known)
        assert not holders or nx.is_connected(tree.subgraph(holders))


@examples(80)
@given(drawn=views())
def test_separators_are_what_neighbours_share(drawn: tuple[Model, JunctionTreeView]) -> None:
    model, view = drawn
    for clique, parent, names in view.separators:
        assert clique < parent
        assert names
        assert set(names) == set(view.cliques[clique]) & set(view.cliques[parent])
    parts = nx.number_connected_components(free_graph(model, view))
    assert len(view.cliques) - len(view.separators) == parts


@examples(80)
@given(drawn=views())
def test_every_factor_is_in_a_clique(drawn: tuple[Model, JunctionTreeView]) -> None:
    model, view = drawn
    for f in range(model.n_factors):
        scope = set(model.variables.names_at(model.graph.scope(f))) - set(view.known)
        assert not scope or any(scope <= set(clique) for clique in view.cliques)


@examples(80)
@given(drawn=views())
def test_fill_in_makes_the_graph_chordal(drawn: tuple[Model, JunctionTreeView]) -> None:
    model, view = drawn
    graph = free_graph(model, view)
    assert not [pair for pair in view.fill_in if graph.has_edge(*pair)]
    assert len({frozenset(pair) for pair in view.fill_in}) == len(view.fill_in)
    graph.add_edges_from(view.fill_in)
    if graph:
        assert nx.is_chordal(graph)
        found = {frozenset(clique) for clique in nx.chordal_graph_cliques(graph)}
        assert {frozenset(clique) for clique in view.cliques} == found
    assert len({frozenset(clique) for clique in view.cliques}) == len(view.cliques)


@examples(40)
@given(data=st.data())
def test_order_and_width_are_those_of_the_cost(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(st.none() | evidence_for(model))
    view, cost = model.junction_tree(evidence), model.cost(evidence, engine="junction_tree")
    assert (view.order, view.width, len(view.cliques)) == (cost.order, cost.width, cost.cliques)
    assert sorted(view.order + view.known) == sorted(variable.name for variable in model.variables)


def test_asia() -> None:
    view = ASIA.junction_tree()
    assert ("tub", "lung", "either") in view.cliques
    assert (view.width, len(view.fill_in), view.known) == (2, 1, ())
    assert view.fill_in[0] in (("lung", "bronc"), ("smoke", "either"))
    assert all(set(clique) <= {variable.name for variable in ASIA.variables} for clique in view.cliques)


def test_evidence_cuts_the_tree() -> None:
    view = ASIA.junction_tree({"smoke": "yes", "either": "no"})
    assert set(view.known) == {"smoke", "either"}
    assert not view.fill_in
    assert {frozenset(clique) for clique in view.cliques} >= {frozenset({"bronc", "dysp"}), frozenset({"xray"})}


def test_nothing_is_left_when_everything_is_known() -> None:
    model = besag.bayesian_network("A -> B")
    view = model.junction_tree({"A": "0", "B": "1"})
    assert (view.cliques, view.separators, view.fill_in, view.width, view.order) == ([], [], [], 0, ())
    assert view.known == ("A", "B")
    assert str(view).startswith("junction tree: 0 cliques")


def test_it_prints_as_a_table() -> None:
    loop = besag.data.bundled("misconception").junction_tree()
    head, names, *rows = str(loop).splitlines()
    assert head == repr(loop) == "junction tree: 2 cliques, width 2, fill-in 1"
    assert names.split() == ["clique", "variables", "separator", "parent"]
    assert len(rows) == 2
    shared = set(loop.fill_in[0])
    assert all(shared <= set(clique) for clique in loop.cliques)
    assert rows[0].split() == [
        "0",
        *", ".join(loop.cliques[0]).split(),
        *", ".join(loop.separators[0].names).split(),
        "1",
    ]


def test_a_long_table_is_shortened() -> None:
    text = str(besag.ising((8, 8)).junction_tree())
    assert len(text.splitlines()) == 23
    assert "more" in text.splitlines()[-1]


def test_networkx() -> None:
    tree = ASIA.to_networkx(kind="junction_tree")
    assert set(tree.nodes) == set(ASIA.junction_tree().cliques)
    assert all(set(data["separator"]) == set(one) & set(two) for one, two, data in tree.edges(data=True))
    with pytest.raises(ModelError, match='"factor" or "junction_tree", got \'tree\''):
        ASIA.to_networkx(kind="tree")  # type: ignore[arg-type]


def test_it_is_the_density_of_a_decomposable_model() -> None:
    """p = prod of clique marginals / prod of separator marginals, at every labelling."""
    view, frame = ASIA.junction_tree(), ASIA.to_frame()

    def at(names: tuple[str, ...]) -> float:
        return float(ASIA.joint(list(names))[tuple(ASIA.variable(n).states.index(row[n]) for n in names)])

    for _, row in frame[frame["p"] > 0].sample(5, random_state=0).iterrows():
        expected = 1.0
        for clique in view.cliques:
            expected *= at(clique)
        for separator in view.separators:
            expected /= at(separator.names)
        assert row["p"] == pytest.approx(expected)


def test_pairs_of_the_fill_in_are_in_model_order() -> None:
    names = [variable.name for variable in ASIA.variables]
    for one, two in combinations(range(len(names)), 2):
        assert (names[two], names[one]) not in ASIA.junction_tree().fill_in
