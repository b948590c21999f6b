"""Searches over DAGs held to all DAGs of a few variables, and to what constraints say."""

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest

from besag.arrays import BoolArray
from besag.errors import BesagError, CapabilityError, DataError, ModelError, TooLargeError
from besag.graph.directed.pdag import PDAG
from besag.learn.networks.structure import LearnedStructure, learn_structure
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import CRITERIA
from besag.learn.networks.structure.scores import FamilyScores
from besag.learn.networks.structure.task import SearchProgress, SearchStep
from tests.dags import all_dags, dependent_rows

NAMES = ("A", "B", "C", "D")
SIZES = np.array([2, 3, 2, 4])
CODES = dependent_rows(SIZES, 200, seed=1)
WIDE = np.array([2, 3, 2, 2, 3, 2, 2, 3])
MANY = dependent_rows(WIDE, 400, seed=2)
SEARCHES = ["hill_climb", "tabu", "order_search", "exact"]


def best_of_all(criterion: str, may: Any = lambda matrix: True) -> float:
    scores = FamilyScores(Counter(CODES, SIZES), CRITERIA.read(criterion))
    parents = ([np.flatnonzero(column).tolist() for column in dag.T] for dag in all_dags(4) if may(dag))
    return max(scores.total(above) for above in parents)


def matrix_of(found: LearnedStructure) -> BoolArray:
    matrix = np.zeros((len(found.parents),) * 2, np.bool_)
    for child, above in enumerate(found.parents):
        matrix[list(above), child] = True
    return matrix


@pytest.mark.parametrize("criterion", ["bic", "aic", "bdeu[strength=2]", "k2", "log_likelihood"])
def test_exact_search_finds_the_best_of_all_dags(criterion: str) -> None:
    found = learn_structure(CODES, SIZES, method="exact", criterion=criterion)
    assert found.score == pytest.approx(best_of_all(criterion), rel=1e-12)
    assert found.stopped == "converged"


CONSTRAINTS: list[tuple[dict[str, Any], Any]] = [
    ({"required": [("D", "A"), ("B", "C")]}, lambda m: m[3, 0] and m[1, 2]),
    ({"forbidden": [("A", "B"), ("B", "A"), ("C", "D")]}, lambda m: not (m[0, 1] or m[1, 0] or m[2, 3])),
    ({"tiers": [["C"], ["A", "D"]]}, lambda m: not (m[0, 2] or m[3, 2])),
    ({"max_parents": 1}, lambda m: m.sum(axis=0).max() <= 1),
    (
        {"max_entries": 12},
        lambda m: all(SIZES[v] * math.prod(SIZES[m[:, v]].tolist()) <= 12 for v in range(4)),
    ),
    (
        {"partial": PDAG.from_edges([("A", "C")], [("B", "D"), ("A", "B")])},
        lambda m: m[0, 2] and (m[1, 3] or m[3, 1]) and (m[0, 1] or m[1, 0]),
    ),
    (
        {"partial": nx.Graph([("A", "D")]), "tiers": [["D"], ["A"]], "required": [(2, 3)]},
        lambda m: m[3, 0] and m[2, 3],
    ),
]


@pytest.mark.parametrize(("given", "may"), CONSTRAINTS)
@pytest.mark.parametrize("method", [*SEARCHES, "mmhc"])
def test_constraints_are_kept(given: dict[str, Any], may: Any, method: str) -> None:
    found = learn_structure(CODES, SIZES, names=NAMES, method=method, **given)
    assert may(matrix_of(found))
    optimum = best_of_all("bic", may)
    assert found.score <= optimum + 1e-9
    if method == "exact":
        assert found.score == pytest.approx(optimum, rel=1e-12)


@pytest.mark.parametrize("criterion", ["bic", "bdeu[strength=3]", "k2"])
@pytest.mark.parametrize("share", [0.01, 0.9])
def test_exact_search_with_rows_that_weigh_little(criterion: str, share: float) -> None:
    weights = share * (np.arange(200) % 3)
    found = learn_structure(CODES, SIZES, weights, method="exact", criterion=criterion)
    scores = FamilyScores(Counter(CODES, SIZES, weights), CRITERIA.read(criterion))
    best = max(scores.total([np.flatnonzero(column).tolist() for column in dag.T]) for dag in all_dags(4))
    assert found.score == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("method", [*SEARCHES, "mmhc"])
def test_edges_that_must_be_there_are_turned_until_they_are_within_the_limits(method: str) -> None:
    star = PDAG.from_edges([], [("D", "A"), ("D", "B"), ("D", "C")])
    found = learn_structure(CODES, SIZES, names=NAMES, method=method, partial=star, max_parents=1)
    assert max(map(len, found.parents)) == 1
    assert {frozenset(edge) for edge in found.edges} == {frozenset(("D", other)) for other in "ABC"}


def test_a_variable_without_parents_is_within_any_limit() -> None:
    assert learn_structure(CODES, SIZES, max_entries=1).edges == []


@pytest.mark.parametrize("criterion", ["bic", "k2"])
@pytest.mark.parametrize("method", ["hill_climb", "tabu", "order_search"])
def test_no_change_of_one_edge_is_better_than_what_was_found(method: str, criterion: str) -> None:
    found = learn_structure(MANY, WIDE, method=method, criterion=criterion)
    scores = FamilyScores(Counter(MANY, WIDE), CRITERIA.read(criterion))
    assert found.score == pytest.approx(scores.total(found.parents), rel=1e-12)
    assert found.score <= learn_structure(MANY, WIDE, method="exact", criterion=criterion).score + 1e-9
    matrix = matrix_of(found)
    for i in range(8):
        for j in range(8):
            for way in (0, 1, 2):
                changed = matrix.copy()
                changed[i, j], changed[j, i] = way == 1, way == 2
                if i < j and nx.is_directed_acyclic_graph(nx.DiGraph(changed)):
                    score = scores.total([np.flatnonzero(column).tolist() for column in changed.T])
                    assert score <= found.score + 1e-6


@pytest.mark.parametrize("method", [*SEARCHES, "mmhc", "pc", "chow_liu", "tabu[length=3,patience=20,restarts=2]"])
def test_the_order_of_columns_makes_no_difference(method: str) -> None:
    names = [f"v{i}" for i in range(8)]
    first = learn_structure(MANY, WIDE, names=names, method=method)
    rng = np.random.default_rng(3)
    for _ in range(25 if method != "exact" else 3):
        order = rng.permutation(8)
        found = learn_structure(MANY[order], WIDE[order], names=[names[v] for v in order], method=method)
        assert found.score == first.score
        assert (found.cpdag.over(names).matrix == first.cpdag.matrix).all()


def test_weights_and_threads() -> None:
    weights = np.random.default_rng(0).integers(0, 3, MANY.shape[1])
    repeated = np.repeat(MANY, weights, axis=1)
    for method in ("hill_climb", "order_search", "pc"):
        a = learn_structure(MANY, WIDE, weights.astype(float), method=method, n_threads=1)
        b = learn_structure(repeated, WIDE, method=method, n_threads=2)
        assert a.score == pytest.approx(b.score, rel=1e-12)
        assert (a.cpdag.matrix == b.cpdag.matrix).all()


@pytest.mark.parametrize("method", [*SEARCHES, "mmhc", "pc"])
def test_ctrl_c_and_a_time_limit_give_the_best_so_far(method: str) -> None:
    calls = []

    def press(row: Any) -> None:
        calls.append(row)
        if len(calls) == 2:
            raise KeyboardInterrupt

    found = learn_structure(MANY, WIDE, method=method, on_step=press)
    assert found.stopped == "interrupted"
    assert len(calls) == 2
    assert found.graph.extension(strict=False).is_dag


@pytest.mark.parametrize("method", [*SEARCHES, "mmhc", "pc", "chow_liu", "chow_liu[pseudocount=1]", "structural_em"])
@pytest.mark.parametrize("seconds", [0, 1e-9])
def test_without_time_there_is_what_must_be(method: str, seconds: float) -> None:
    late = learn_structure(MANY, WIDE, method=method, time_limit=seconds, required=[(0, 1)])
    assert late.stopped == "time_limit"
    assert 0 in late.parents[1]


def test_an_order_search_that_is_broken_off_has_the_order_so_far() -> None:
    def press(row: SearchStep) -> None:
        if row.iteration == 0:
            raise KeyboardInterrupt

    found = learn_structure(MANY, WIDE, method="order_search", on_step=press)
    assert found.stopped == "interrupted"
    assert found.score > learn_structure(MANY, WIDE, method="order_search", time_limit=0).score


def test_the_trace_rises_along_a_climb() -> None:
    found = learn_structure(MANY, WIDE, method="hill_climb[restarts=0,moved=0]")
    trace = found.trace
    assert list(trace.columns) == ["iteration", "seconds", "value", "move"]
    assert trace["value"].is_monotonic_increasing
    assert trace["value"].iloc[-1] == pytest.approx(found.score, rel=1e-12)
    assert trace["move"].str.contains(" -> ").all()


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    show = SearchProgress("tabu")
    show.last -= 1.0  # the last line was a second ago
    for seconds in (1.0, 1.2):
        show(SearchStep(3, seconds, -12.5, "A -> B added"))
    assert capsys.readouterr().err == "tabu: step 3, 1.0 s, score -12.500000\n"


def test_a_constant_column_and_a_single_row() -> None:
    codes = np.concatenate([CODES, np.zeros((1, 200), np.uint8)])
    found = learn_structure(codes, [*SIZES, 1], method="exact")
    assert found.score == pytest.approx(best_of_all("bic"), rel=1e-12)
    assert not found.parents[4]
    assert learn_structure(CODES[:, :1], SIZES).edges == []


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"required": [("A", "B"), ("B", "A")]}, ModelError, "required edges have a cycle: A -> B -> A"),
        ({"required": [("A", "B")], "forbidden": [("A", "B")]}, ModelError, "A -> B is required, and forbidden or"),
        ({"required": [("A", "B")], "tiers": [["B"], ["A"]]}, ModelError, "against the tiers"),
        ({"required": [("A", "X")]}, ModelError, "no variable is named 'X'"),
        ({"forbidden": [("A", 9)]}, ModelError, "no variable has number 9; there are 4"),
        ({"forbidden": ["AB"]}, ModelError, "forbidden edges are pairs"),
        ({"required": [("A", "A")]}, ModelError, "cannot be its own parent"),
        ({"tiers": [["A"], ["A"]]}, ModelError, "'A' is in tiers 0 and 1"),
        ({"tiers": ["AB"]}, ModelError, "tiers are lists of names"),
        ({"partial": nx.Graph([("A", "B")]), "forbidden": [("A", "B"), ("B", "A")]}, ModelError, "must be joined"),
        ({"required": [("A", "C"), ("B", "C")], "max_parents": 1}, ModelError, "at least 2, got 1"),
        ({"required": [("A", "D")], "max_entries": 4}, ModelError, "'D' cannot have all required parents"),
        ({"max_entries": 0}, ModelError, "max_entries must be a number of at least 1"),
        ({"max_entries": "many"}, ModelError, "max_entries must be a number of at least 1, got 'many'"),
        ({"time_limit": -1}, CapabilityError, "time_limit must be a number of seconds from 0 on, got -1"),
        ({"random_state": -1}, CapabilityError, "random_state must be a whole number from 0 on, got -1"),
        ({"method": "taboo"}, CapabilityError, "no structure method is named 'taboo'; .* did you mean 'tabu'"),
        ({"method": "tabu[length=0]"}, CapabilityError, "length must be a whole number of at least 1"),
        ({"method": "tan"}, CapabilityError, "tan needs target="),
        ({"method": "exact", "memory_limit": 100}, TooLargeError, "takes 144 bytes for its 2.4 subsets"),
        ({"weights": np.zeros(200)}, DataError, "weights must be 200 numbers from 0 on, not all 0"),
        ({"weights": -np.ones(200)}, DataError, "weights must be 200 numbers"),
        ({"names": ["A", "A", "B", "C"]}, DataError, "two columns have one name"),
        ({"names": ["A"]}, DataError, "expected a column for each of 4 cardinalities and 1 names"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], error: type[BesagError], match: str) -> None:
    options = {"names": NAMES, **given}
    with pytest.raises(error, match=match):
        learn_structure(CODES, SIZES, options.pop("weights", None), **options)


def test_bad_codes_are_refused() -> None:
    with pytest.raises(DataError, match="the data have no rows"):
        learn_structure(CODES[:, :0], SIZES)
    with pytest.raises(DataError, match="column 'B' has missing cells, or codes that are none of its 2") as caught:
        learn_structure(CODES, [2, 2, 2, 4], names=NAMES)
    assert caught.value.column == "B"
    with pytest.raises(DataError, match="codes must be whole numbers, got float64"):
        learn_structure(CODES * 1.0, SIZES)
    with pytest.raises(DataError, match="of one length"):
        learn_structure([CODES[0], CODES[1][:5]], [2, 3])
