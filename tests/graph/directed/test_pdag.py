"""PDAGs held to all DAGs of a few variables."""

from collections import defaultdict
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from besag.errors import ModelError
from besag.graph.directed.orientation import along_order, apply_rules, cpdag_of, extend, order_of
from besag.graph.directed.pdag import PDAG, find_cycle
from tests.dags import all_dags, colliders

NAMES = tuple("ABCDE")


@pytest.mark.parametrize("n", [3, 4])
def test_a_cpdag_directs_what_all_dags_of_a_class_direct_alike(n: int) -> None:
    classes = defaultdict(list)
    for dag in all_dags(n):
        classes[(dag | dag.T).tobytes(), colliders(dag)].append(dag)
    assert len(classes) == {3: 11, 4: 185}[n]
    for members in classes.values():
        union = np.any(members, axis=0)  # an edge that stands both ways is undirected
        for dag in members:
            assert (cpdag_of(dag) == union).all()


@pytest.mark.parametrize("n", [3, 4])
def test_an_extension_is_a_member_of_the_class(n: int) -> None:
    for dag in all_dags(n):
        found = extend(cpdag_of(dag))
        assert found is not None
        assert order_of(found) is not None
        assert ((found | found.T) == (dag | dag.T)).all()
        assert colliders(found) == colliders(dag)


def test_rules_with_knowledge_direct_what_all_dags_that_agree_direct_alike() -> None:
    """Meek's fourth rule is needed only where some edges are directed by knowledge."""
    rng = np.random.default_rng(0)
    for dag in all_dags(4)[::7]:
        known = cpdag_of(dag)
        undirected = np.argwhere(np.triu(known & known.T))
        if not len(undirected):
            continue
        i, j = rng.permutation(undirected[rng.integers(len(undirected))]) if len(undirected) else (0, 0)
        agree = [
            other
            for other in all_dags(4)
            if other[i, j] and ((other | other.T) == (dag | dag.T)).all() and colliders(other) == colliders(dag)
        ]
        known[j, i] = False
        assert (apply_rules(known) == np.any(agree, axis=0)).all()


def test_d_separation_in_a_cpdag_is_that_of_its_dags() -> None:
    for dag in all_dags(4)[::11]:
        graph = PDAG(NAMES[:4], dag)
        cpdag, theirs = graph.cpdag(), nx.DiGraph()
        theirs.add_nodes_from(NAMES[:4])
        theirs.add_edges_from(graph.edges)
        for a, b in combinations(NAMES[:4], 2):
            for given in ([], [next(v for v in NAMES if v not in (a, b))]):
                expected = nx.is_d_separator(theirs, {a}, {b}, set(given))
                assert graph.d_separated(a, b, given) == cpdag.d_separated(a, b, given) == expected


def test_networkx_round_trip() -> None:
    graph = PDAG.from_edges([("A", "B"), ("C", "B")], [("C", "D")], names="ABCDE")
    back = PDAG.from_networkx(graph.to_networkx())
    assert back.names == graph.names
    assert (back.matrix == graph.matrix).all()
    assert back.edges == [("A", "B"), ("C", "B")]
    assert back.undirected == [("C", "D")]
    lines = PDAG.from_networkx(nx.path_graph(["A", "B", "C"], create_using=nx.Graph))
    assert lines.undirected == [("A", "B"), ("B", "C")]
    assert repr(graph) == "PDAG(A -> B, C -> B, C - D)"
    assert repr(PDAG.from_edges([], names="AB")) == "PDAG(2 variables, no edges)"


def test_other_orders_of_names() -> None:
    graph = PDAG.from_edges([("A", "B")]).over(["C", "B", "A"])
    assert graph.edges == [("A", "B")]
    with pytest.raises(ModelError, match="no variable is named 'B'"):
        graph.over(["A", "C"])


def test_graphs_that_stand_for_no_dag() -> None:
    with pytest.raises(ModelError, match="have a cycle: A -> B -> C -> A"):
        PDAG.from_edges([("A", "B"), ("B", "C"), ("C", "A")]).extension()
    square = PDAG.from_edges([], [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")])
    with pytest.raises(ModelError, match="has further colliders"):
        square.extension()
    assert square.extension(strict=False).is_dag
    with pytest.raises(ModelError, match="got 'A' twice"):
        PDAG.from_edges([("A", "A")])
    with pytest.raises(ModelError, match="expected a PDAG, a networkx graph or pairs, got int"):
        PDAG.from_networkx(3)


def test_cycles() -> None:
    matrix = PDAG.from_edges([("A", "B"), ("B", "C"), ("C", "B"), ("C", "D")]).matrix
    assert find_cycle(matrix) == [1, 2]
    assert find_cycle(np.triu(np.ones((4, 4), np.bool_), 1)) == []
    assert along_order(matrix) is not None  # B - C is undirected
