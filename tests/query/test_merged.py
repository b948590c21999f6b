"""001: equivalent models whose variables are groups of others, and cliques of a junction tree as a tree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError, TooLargeError
from besag.infer.result import Result
from besag.model.model import Model
from tests.infer.bp.test_bp import grid
from tests.oracle import Enumeration
from tests.strategies import examples, models


def joint_of(model: Model, r: Result, group: list[str]) -> np.ndarray:
    """p of the variables of a group, from the marginal of its variable."""
    return np.asarray(r[",".join(group)].reshape([model.variable(name).cardinality for name in group]))


@st.composite
def groupings(draw: st.DrawFn, model: Model) -> list[list[str]]:
    """Some groups of at most three variables, which may overlap."""
    names = [variable.name for variable in model.variables]
    group = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    return draw(st.lists(group, max_size=4, unique_by=lambda one: tuple(sorted(one))))


@examples(100)
@given(data=st.data())
def test_001_any_grouping_has_the_same_log_z_and_joint_marginals(data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=100))
    groups = data.draw(groupings(model))
    merged, everything = model.merged(groups), Enumeration(model)
    r = merged.marginals(engine="junction_tree")
    assert r.log_partition == pytest.approx(everything.log_z, abs=1e-10)
    for group in groups:
        assert_allclose(joint_of(model, r, group), everything.joint(group), atol=1e-12)
    inside = {name for group in groups for name in group}
    for variable in model.variables:
        if variable.name not in inside:
            assert_allclose(r[variable.name], everything.marginal(variable.name), atol=1e-12)
            assert merged.variable(variable.name).states == variable.states


@examples(100)
@given(model=models(max_labellings=300))
def test_001_cliques_of_the_junction_tree_make_a_tree(model: Model) -> None:
    tree = model.junction_tree()
    r = model.merged(tree.cliques).marginals(engine="tree")
    everything = Enumeration(model)
    assert_allclose(r.log_partition, everything.log_z, rtol=1e-12, atol=1e-12)
    for clique in tree.cliques:
        assert_allclose(joint_of(model, r, list(clique)), everything.joint(clique), atol=1e-12)
    for name in tree.known:
        assert_allclose(r[name], everything.marginal(name), atol=1e-12)


@pytest.mark.parametrize("name", ["asia", "misconception", "sprinkler"])
def test_001_bundled_networks_and_a_grid_become_trees(name: str) -> None:
    for model in (besag.data.bundled(name), grid(3, 3, 1.0)):
        merged = model.merged(model.junction_tree().cliques)
        assert merged.log_partition(engine="tree") == pytest.approx(model.log_partition(), rel=1e-12, abs=1e-12)


def ring_and_triple() -> tuple[Model, dict[str, np.ndarray]]:
    """A cycle i, j, m with a factor of all three, and a tail m, k, l."""
    rng = np.random.default_rng(4)
    cards = {"i": 2, "j": 3, "m": 2, "k": 2, "l": 3}
    scopes = {"F": "ij", "G": "jm", "H": "mi", "T": "ijm", "I": "mk", "J": "kl"}
    tables = {name: rng.normal(size=[cards[v] for v in scope]) for name, scope in scopes.items()}
    return besag.markov_network(cards, {name: (tuple(scopes[name]), tables[name]) for name in scopes}), tables


def test_001_disjoint_groups_are_the_product_variable_with_the_same_factors() -> None:
    model, tables = ring_and_triple()
    merged = model.merged([["i", "j", "m"]])
    assert [variable.name for variable in merged.variables] == ["i,j,m", "k", "l"]
    assert merged.variable("i,j,m").states[:4] == ("0,0,0", "0,0,1", "0,1,0", "0,1,1")
    graph = merged.graph
    scopes = {graph.factor_name(f): merged.variables.names_at(graph.scope(f)) for f in range(graph.n_factors)}
    assert scopes == {name: ["i,j,m"] for name in "FGHT"} | {"I": ["i,j,m", "k"], "J": ["k", "l"]}
    shown = {graph.factor_name(f): merged.problem.table(f) for f in range(graph.n_factors)}
    assert_allclose(shown["G"].reshape(2, 3, 2), np.broadcast_to(tables["G"], (2, 3, 2)))
    assert_allclose(shown["I"].reshape(2, 3, 2, 2), np.broadcast_to(tables["I"], (2, 3, 2, 2)))
    assert merged.log_partition(engine="tree") == pytest.approx(model.log_partition(engine="brute"), rel=1e-13)
    best = merged.map(engine="tree").assignment
    split = dict(zip("ijmkl", ",".join(best[name] for name in ("i,j,m", "k", "l")).split(","), strict=True))
    assert split == model.map(engine="brute").assignment


def test_copies_of_a_variable_agree_though_no_spanning_tree_serves_all_of_them() -> None:
    """Three pairs of three variables: each shares one with each other, so that a tree leaves one variable apart."""
    model, _ = ring_and_triple()
    merged = model.merged([["i", "j"], ["j", "m"], ["m", "i"]])
    names = [merged.graph.factor_name(f) for f in merged.graph.factor_order.tolist()]
    assert {name.rpartition(" * ")[2] for name in names} >= {"same(i)", "same(j)", "same(m)"}
    assert merged.log_partition() == pytest.approx(model.log_partition(), rel=1e-12)
    one, other = (merged.joint(["i,j", "m,i"]).sum(axis=axis) for axis in (1, 0))
    assert_allclose(one.reshape(2, 3).sum(axis=1), other.reshape(2, 2).sum(axis=0), atol=1e-14)


def test_001_factors_between_the_same_nodes_are_multiplied_so_that_cycles_close_within_them() -> None:
    """A ring A, B, C, D as the chain (A, B, C), D: two of its factors lie between the two."""
    ring = besag.data.bundled("misconception")
    merged = ring.merged([["A", "B", "C"]])
    assert [merged.graph.factor_name(f) for f in range(merged.n_factors)][-1] == "phi3 * phi4"
    assert merged.log_partition(engine="tree") == pytest.approx(ring.log_partition(), rel=1e-13)
    halves = ring.merged([["A", "B"], ["D", "C"]])
    assert halves.log_partition(engine="tree") == pytest.approx(ring.log_partition(), rel=1e-13)


def test_order_within_a_group_is_the_users_and_one_name_is_one_variable() -> None:
    model = besag.markov_network({"A": ["x", "y"], "B": 3}, [(("A", "B"), np.arange(6.0).reshape(2, 3))])
    merged = model.merged([["B", "A"]])
    assert merged.variable("B,A").states == ("0,x", "0,y", "1,x", "1,y", "2,x", "2,y")
    assert_allclose(merged.marginals()["B,A"].reshape(3, 2).T, model.joint(["A", "B"]), atol=1e-15)
    alone = model.merged([["B"]])
    assert [v.name for v in alone.variables] == ["A", "B"]
    assert [v.name for v in model.merged([]).variables] == ["A", "B"]


def test_two_factors_of_one_name_stay_two() -> None:
    pair = (("A", "B"), np.arange(4.0).reshape(2, 2))
    merged = besag.markov_network({"A": 2, "B": 2}, [pair, pair]).merged([["A", "B"]])
    assert [merged.graph.factor_name(f) for f in range(2)] == ["f(A,B)", "f(A,B) 2"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("ij", r"groups are lists of names of variables, as in .*; got \'ij\'"),
        (["ij"], r"group 0 is 'ij'"),
        ([["i"], []], r"group 1 is \[\]"),
        (7, r"groups are lists .* got 7"),
        ([["i", "x"]], r"no variable is named 'x'"),
        ([["i", "j", "i"]], r"group 0 names a variable twice: \['i', 'j', 'i'\]"),
        ([["i", "j"], ["j", "i"]], r"group 1 has the same variables as one before it"),
    ],
)
def test_groups_that_are_none_are_refused(groups: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ring_and_triple()[0].merged(groups)


def test_states_whose_joined_names_are_one_are_refused() -> None:
    model = besag.markov_network({"A": ["a", "a,b"], "B": ["b,c", "c"]}, [(("A", "B"), np.zeros((2, 2)))])
    with pytest.raises(ModelError, match=r"states of 'A,B' must be one or more distinct names"):
        model.merged([["A", "B"]])


def test_merged_models_that_do_not_fit_are_refused() -> None:
    model = besag.ising((5, 8), 0.1)
    with pytest.raises(TooLargeError, match=r"the merged model would take .* bytes, .*merge fewer variables"):
        model.merged([[variable.name for variable in model.variables]])
    with pytest.raises(TooLargeError, match="more than memory_limit=10000"):
        model.merged([["0,0", "0,1", "1,0", "1,1", "2,0", "2,1"]], memory_limit=10_000)
