"""Distances and scores of graphs."""

import networkx as nx
import pytest

import besag
from besag.errors import ModelError
from besag.graph.directed.pdag import PDAG
from besag.metrics import edge_scores, structural_hamming_distance


def test_distances_count_pairs() -> None:
    truth = besag.bayesian_network("A -> B -> C; D -> C")
    other = nx.DiGraph([("B", "A"), ("B", "C"), ("D", "A")])
    assert structural_hamming_distance(truth, other, compare="graph") == 3  # A B turned, D C missing, D A new
    # CPDAG of the truth: A - B, B -> C <- D; of the other: B -> A <- D, B - C
    assert structural_hamming_distance(truth, other) == 4
    assert structural_hamming_distance(truth, truth) == 0
    assert structural_hamming_distance([("A", "B")], PDAG.from_edges([], [("A", "B")])) == 0


def test_scores_count_edges() -> None:
    truth, found = [("A", "B"), ("B", "C"), ("C", "D")], [("B", "A"), ("B", "C"), ("A", "D"), ("B", "D")]
    scores = edge_scores(truth, found, compare="graph")
    assert scores == pytest.approx((2 / 4, 2 / 3, 4 / 7))
    directed = edge_scores(truth, found, compare="graph", directed=True)
    assert directed == pytest.approx((1 / 4, 1 / 3, 2 / 7))
    assert edge_scores([], []) == (1.0, 1.0, 1.0)


def test_refusals() -> None:
    a, b = PDAG.from_edges([("A", "B")]), PDAG.from_edges([("A", "C")])
    with pytest.raises(ModelError, match="have different variables: 'C' is in one"):
        structural_hamming_distance(a, b)
    with pytest.raises(ModelError, match='compare must be "cpdag" or "graph"'):
        edge_scores(a, a, compare="dag")
