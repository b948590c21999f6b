"""Elimination orders: against elimination on sets, in both modes, on graphs of known width, at the limits."""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.arrays import BoolArray, IntArray, offsets_of
from besag.infer.orders import search as order_module
from besag.infer.orders.kernels.first_runs import FILL, N_GREEDY, NO_LIMIT, WEIGHTED, make_eliminate
from besag.infer.orders.kernels.greedy_run import CUT_OFF, DONE, GIVEN_UP
from besag.infer.orders.kernels.starts import start_scores
from besag.infer.orders.search import RULES, SWEEP, EliminationOrder, find_neighbours_of, find_order
from besag.kernels.compile import kernel_of
from tests.routes import Forced

Graph: TypeAlias = "nx.Graph[int]"
NO_LIMITS = (math.inf, NO_LIMIT)  # the entries of all tables, the log of the largest
MODES = [pytest.param(False, id="python"), pytest.param(True, id="compiled")]


def packed(scopes: list[list[int]]) -> tuple[IntArray, IntArray]:
    flat = np.array([v for scope in scopes for v in scope], np.int64)
    return offsets_of(np.array([len(scope) for scope in scopes], np.int64)), flat


def linked(graph: Graph, compile: bool = True) -> tuple[IntArray, IntArray]:
    """Neighbours of a graph whose nodes are 0 .. V - 1."""
    return find_neighbours_of(len(graph), *packed([list(edge) for edge in graph.edges]), compile=compile)


def grid(height: int, width: int) -> Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(height, width))


def with_diagonals(height: int, width: int) -> Graph:
    graph = grid(height, width)
    corners = [v for v in range((height - 1) * width) if (v + 1) % width]
    graph.add_edges_from((v, v + width + 1) for v in corners)
    graph.add_edges_from((v + 1, v + width) for v in corners)
    return graph


def shuffled(graph: Graph, seed: int = 0) -> Graph:
    """The same graph, its nodes and edges in another order."""
    rng = np.random.default_rng(seed)
    other: Graph = nx.Graph()
    other.add_nodes_from(range(len(graph)))
    number = rng.permutation(len(graph))
    other.add_edges_from(number[rng.permutation(np.array(graph.edges))].tolist())
    return other


def found(graph: Graph, n_states: int = 2, effort: float = 0.1, compile: bool = True) -> EliminationOrder:
    return find_order(np.full(len(graph), n_states), *linked(graph), effort=effort, compile=compile)


def cliques(cardinalities: list[int], scopes: list[list[int]], order: list[int]) -> list[set[int]]:
    """The cliques of elimination, on sets; a variable of one state joins nothing."""
    single = {v for v, n_states in enumerate(cardinalities) if n_states == 1}
    near: dict[int, set[int]] = {v: set() for v in range(len(cardinalities))}
    for scope in scopes:
        for a, b in itertools.permutations(set(scope) - single, 2):
            near[a].add(b)
    result = []
    for v in order:
        result.append({v} | near[v])
        for a in near[v]:
            near[a] |= near[v]
            near[a] -= {a, v}
    return result


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[list[int]], list[bool]]:
    n = draw(st.integers(1, 14))
    cardinalities = draw(st.lists(st.sampled_from([1, 2, 3, 5, 30]), min_size=n, max_size=n))
    scope = st.lists(st.integers(0, n - 1), max_size=4)
    keep = st.lists(st.sampled_from([False, False, True]), min_size=n, max_size=n)
    return cardinalities, draw(st.lists(scope, max_size=30)), draw(keep)


def solved(problem: tuple[list[int], list[list[int]], list[bool]], effort: float, compile: bool) -> EliminationOrder:
    cardinalities, scopes, keep = problem
    near = find_neighbours_of(len(cardinalities), *packed(scopes), compile=compile)
    return find_order(np.array(cardinalities), *near, keep=np.array(keep), effort=effort, compile=compile)


def check(problem: tuple[list[int], list[list[int]], list[bool]], order: EliminationOrder) -> None:
    cardinalities, scopes, keep = problem
    assert sorted(order.variables) == [v for v, kept in enumerate(keep) if not kept]
    made = cliques(cardinalities, scopes, order.variables.tolist())
    sizes = [math.prod(cardinalities[v] for v in clique) for clique in made]
    assert order.entries == pytest.approx(sum(sizes), rel=1e-12)
    assert order.largest == pytest.approx(max(sizes, default=0), rel=1e-12)
    assert order.width == max((len(clique) - 1 for clique in made), default=0)
    assert order.rule in RULES
    assert order.complete


@given(problems())
def test_costs_are_those_of_elimination_on_sets(problem: tuple[list[int], list[list[int]], list[bool]]) -> None:
    order = solved(problem, effort=20.0, compile=True)
    check(problem, order)
    assert not order.variables.flags.writeable


@given(problems())
def test_both_modes_agree(problem: tuple[list[int], list[list[int]], list[bool]]) -> None:
    python, fast = solved(problem, 10.0, compile=False), solved(problem, 10.0, compile=True)
    check(problem, python)
    np.testing.assert_array_equal(python.variables, fast.variables)
    assert (python.entries, python.rule, python.runs) == (fast.entries, fast.rule, fast.runs)


def test_both_modes_agree_with_noise_on_a_network_of_mixed_cardinalities() -> None:
    rng = np.random.default_rng(5)
    graph = nx.gnp_random_graph(40, 0.12, seed=5)
    cardinalities = rng.integers(1, 30, 40)
    python, fast = (find_order(cardinalities, *linked(graph), effort=2e-5, compile=mode) for mode in (False, True))
    np.testing.assert_array_equal(python.variables, fast.variables)
    assert python.runs == fast.runs > len(RULES)


@given(problems())
def test_neighbours(problem: tuple[list[int], list[list[int]], list[bool]]) -> None:
    cardinalities, scopes, _ = problem
    for mode in (False, True):
        first, others = find_neighbours_of(len(cardinalities), *packed(scopes), compile=mode)
        for v in range(len(cardinalities)):
            expected = {u for scope in scopes if v in scope for u in scope} - {v}
            assert sorted(others[first[v] : first[v + 1]]) == sorted(expected)


@given(problems())
def test_scores(problem: tuple[list[int], list[list[int]], list[bool]]) -> None:
    cardinalities, scopes, _ = problem
    n, weights = len(cardinalities), np.array([cardinalities], np.float64)
    first, others = find_neighbours_of(n, *packed(scopes))
    sums, scores, sizes = np.empty((1, n)), np.empty((1, n)), np.empty(n, np.int64)
    start_scores(first, others, np.array(cardinalities), weights, sums, scores, sizes)
    near = [set(others[first[v] : first[v + 1]].tolist()) for v in range(n)]
    for v in range(n):
        pairs = itertools.combinations(near[v], 2)
        assert scores[0, v] == sum(cardinalities[a] * cardinalities[b] for a, b in pairs if b not in near[a])
        assert sums[0, v] == sum(cardinalities[a] for a in near[v])
        assert sizes[v] == sum(cardinalities[a] for a in near[v] | {v})


@pytest.mark.parametrize("compile", MODES)
def test_known_widths(compile: bool) -> None:
    tree = nx.random_labeled_tree(60, seed=1)
    assert (found(tree, compile=compile).width, found(tree, compile=compile).runs) == (1, 1)
    assert found(nx.cycle_graph(30), compile=compile).width == 2
    assert found(nx.complete_graph(9), compile=compile).width == 8
    assert found(nx.complete_bipartite_graph(3, 12), compile=compile).width == 3
    assert found(nx.wheel_graph(40), compile=compile).width == 3
    for n in range(2, 7):
        assert found(grid(n, n), compile=compile).width == n


@pytest.mark.parametrize(("height", "width"), [(8, 8), (12, 12), (20, 20), (7, 100), (16, 24), (40, 60)])
def test_grids_of_many_states_are_swept(height: int, width: int) -> None:
    """With a thousand states nothing but the width counts."""
    for graph, least in ((grid(height, width), height), (with_diagonals(height, width), height + 1)):
        for renumbered in (graph, shuffled(graph, 0), shuffled(graph, 1), shuffled(graph, 2)):
            order = found(renumbered, n_states=1000, effort=0.0)
            assert (order.width, order.rule) == (least, "sweep")


def test_an_entry_of_a_sweep_counts_more(forced: Forced) -> None:
    """On a grid of 20 x 20 the sweep has fewer entries than greedy orders, but not by enough; on 40 x 60 it has."""
    small, large = found(grid(20, 20)), found(grid(40, 60))
    assert (large.width, large.rule) == (40, "sweep")
    forced({"infer.orders.search.SWEEP_TIMES": 1.0})
    sweep = found(grid(20, 20))
    assert (sweep.width, sweep.rule) == (20, "sweep")
    assert small.rule != "sweep"
    assert sweep.entries < small.entries < 8 * sweep.entries


def swept(
    problem: tuple[list[int], list[list[int]], list[bool]], compile: bool = True
) -> tuple[order_module._Found, order_module._Found]:
    """A greedy run, and the sweep without regard to how good it is."""
    cardinalities, scopes, keep = problem
    near = find_neighbours_of(len(cardinalities), *packed(scopes), compile=compile)
    shared = order_module._prepared(np.array(cardinalities), *near, np.array(keep), compile)
    kernel, factors = kernel_of(make_eliminate, compile=compile), order_module._in_order(len(cardinalities))
    greedy, _ = order_module._tried(kernel, shared, FILL, factors, NO_LIMITS, order_module.MOST_STEPS)
    unlimited = greedy.run._replace(entries=math.inf, largest=math.inf, largest_log=order_module.NO_LIMIT)
    return greedy, order_module._swept(shared, greedy._replace(run=unlimited), compile)


@given(problems())
def test_sweeps_cost_what_elimination_on_sets_does(problem: tuple[list[int], list[list[int]], list[bool]]) -> None:
    greedy, sweep = swept(problem)
    end, entries, largest, _, width, n_simple, _ = sweep.run
    assert (end, sweep.rule) == (DONE, SWEEP)
    check(problem, EliminationOrder(sweep.variables, entries, largest, width, RULES[SWEEP], 1, True))
    np.testing.assert_array_equal(sweep.variables[:n_simple], greedy.variables[:n_simple])
    python = swept(problem, compile=False)[1]
    np.testing.assert_array_equal(sweep.variables, python.variables)
    assert sweep.run == python.run


def test_each_component_is_swept_by_itself() -> None:
    parts = nx.disjoint_union_all([grid(9, 14), nx.random_labeled_tree(30, seed=2), with_diagonals(9, 9)])
    order = found(shuffled(parts), n_states=1000, effort=0.0)
    assert (order.width, order.rule) == (10, "sweep")


def test_what_hangs_on_a_grid_does_not_widen_the_front() -> None:
    """A leaf beside each variable, as observations that are missing."""
    graph = grid(12, 12)
    graph.add_edges_from([(v, v + 144) for v in range(144)])
    order = found(shuffled(graph), n_states=1000, effort=0.0)
    assert (order.width, order.rule) == (12, "sweep")


def test_a_sweep_goes_around_kept_variables() -> None:
    """The corner is kept and in every clique from the first that reaches it."""
    graph = grid(12, 12)
    order = find_order(np.full(144, 1000), *linked(graph), keep=np.arange(144) == 0, effort=0.0)
    made = cliques([1000] * 144, [list(edge) for edge in graph.edges], order.variables.tolist())
    assert order.rule == "sweep"
    assert order.width == max(len(clique) - 1 for clique in made) <= 13


def test_a_sweep_that_gets_worse_than_the_best_or_too_long_is_given_up(forced: Forced) -> None:
    shared = order_module._prepared(np.full(400, 2), *linked(grid(20, 20)), None, True)
    kernel, factors = kernel_of(make_eliminate, compile=True), order_module._in_order(400)
    greedy, _ = order_module._tried(kernel, shared, WEIGHTED, factors, NO_LIMITS, order_module.MOST_STEPS)
    forced({"infer.orders.search.SWEEP_TIMES": 1.0})
    whole = order_module._swept(shared, greedy, True)
    again = order_module._swept(shared, whole, True)
    better = whole._replace(run=whole.run._replace(entries=whole.run.entries / 2))
    half = order_module._swept(shared, better, True)
    assert (whole.run.ended, again.run.ended, half.run.ended) == (DONE, GIVEN_UP, GIVEN_UP)
    assert half.run.steps < whole.run.steps
    forced({"infer.orders.search.SEARCH_STEPS": int(whole.run.steps) - 1})
    assert order_module._swept(shared, greedy, True).run.ended == GIVEN_UP


def test_a_sweep_takes_steps_in_proportion_to_the_graph(forced: Forced) -> None:
    long = order_module._prepared(np.full(20_000, 2), *linked(grid(10, 2_000)), None, True)
    kernel, factors = kernel_of(make_eliminate, compile=True), order_module._in_order(20_000)
    greedy, _ = order_module._tried(kernel, long, WEIGHTED, factors, NO_LIMITS, order_module.MOST_STEPS)
    forced({"infer.orders.search.SWEEP_TIMES": 1.0})
    sweep = order_module._swept(long, greedy, True)
    assert (sweep.run.ended, sweep.run.width) == (DONE, 10)
    assert sweep.run.steps < 60 * 20_000


def test_of_variables_with_one_clique_the_largest_goes_first() -> None:
    order = find_order(np.array([2, 9, 3]), *linked(nx.complete_graph(3)))
    assert order.variables.tolist() == [1, 2, 0]
    assert order.entries == 2 * 9 * 3 + 2 * 3 + 2


def test_an_observed_variable_separates() -> None:
    """The hub of a star has one state: it would join all the others."""
    star = nx.star_graph(8)
    order = find_order(np.array([1] + [3] * 8), *linked(star), keep=np.arange(9) > 4)
    assert (order.entries, order.width) == (1 + 4 * 3, 0)


def test_kept_variables_stay_as_neighbours() -> None:
    """The hub of a star goes; its kept neighbours are all in its clique."""
    star = nx.star_graph(5)
    keep: BoolArray = np.arange(6) > 0
    order = find_order(np.full(6, 2), *linked(star), keep=keep)
    assert order.variables.tolist() == [0]
    assert (order.entries, order.largest, order.width) == (64.0, 64.0, 5)
    nothing = find_order(np.full(6, 2), *linked(star), keep=np.ones(6, np.bool_))
    assert (len(nothing.variables), nothing.entries, nothing.width) == (0, 0.0, 0)


def test_the_empty_graph() -> None:
    order = find_order(np.zeros(0, np.int64), *find_neighbours_of(0, *packed([])))
    assert (len(order.variables), order.entries) == (0, 0.0)


def test_effort_buys_better_orders_and_the_answer_is_always_the_same() -> None:
    graph = shuffled(grid(12, 12))
    orders = [found(graph, effort=effort) for effort in (0.0, 5.0, 5.0)]
    assert orders[0].runs == len(RULES)
    assert orders[1].runs > 20
    assert orders[1].entries < orders[0].entries
    assert orders[1].entries == orders[2].entries
    np.testing.assert_array_equal(orders[1].variables, orders[2].variables)


def test_a_run_that_gets_worse_than_the_best_is_given_up() -> None:
    graph = grid(10, 10)
    near, n_states = linked(graph), np.full(100, 2)
    shared = order_module._prepared(n_states, *near, None, True)
    kernel, factors = kernel_of(make_eliminate, compile=True), order_module._in_order(100)
    whole, steps = order_module._tried(kernel, shared, FILL, factors, NO_LIMITS, order_module.MOST_STEPS)
    limits = order_module._limits(whole.run, 1.0)
    again, fewer = order_module._tried(kernel, shared, FILL, factors, limits, order_module.MOST_STEPS)
    assert (whole.run.ended, again.run.ended) == (DONE, GIVEN_UP)
    assert fewer < steps


@pytest.mark.parametrize("compile", MODES)
def test_entries_beyond_the_numbers(compile: bool, forced: Forced) -> None:
    """2^62 states each: any clique of 17 is beyond float64, and the order of the smallest largest clique wins."""
    graph, n_states = grid(20, 20), np.full(400, 2**62)
    shared = order_module._prepared(n_states, *linked(graph), None, compile)
    kernel, factors = kernel_of(make_eliminate, compile=compile), order_module._in_order(400)
    tried = [order_module._tried(kernel, shared, rule, factors, NO_LIMITS, 1 << 40)[0].run for rule in range(N_GREEDY)]
    order = find_order(n_states, *linked(graph), effort=0.0, compile=compile)
    assert order.entries == order.largest == math.inf
    assert (order.width, order.rule) == (20, "sweep")
    forced({"infer.orders.search.SWEEP_ENTRIES": math.nan})
    greedy = find_order(n_states, *linked(graph), effort=0.0, compile=compile)
    assert 20 < greedy.width == min(run.width for run in tried) < max(run.width for run in tried)


@pytest.mark.parametrize("compile", MODES)
def test_a_search_that_is_cut_off_says_so(compile: bool, forced: Forced) -> None:
    forced({"infer.orders.search.MOST_STEPS": 3000})
    graph = grid(9, 9)
    keep = np.arange(81) % 20 == 7
    order = find_order(np.full(81, 2), *linked(graph), keep=keep, compile=compile)
    assert not order.complete
    assert order.runs == 1
    assert sorted(order.variables) == np.flatnonzero(~keep).tolist()
    made = cliques([2] * 81, [list(edge) for edge in graph.edges], order.variables.tolist())
    assert order.width >= max(len(clique) - 1 for clique in made)
    assert order.entries >= sum(2.0 ** len(clique) for clique in made)
    assert order.largest >= max(2.0 ** len(clique) for clique in made)


def test_a_later_run_that_is_cut_off_does_not_count(forced: Forced) -> None:
    graph = grid(9, 9)
    near, n_states = linked(graph), np.full(81, 2)
    shared = order_module._prepared(n_states, *near, None, True)
    kernel, factors = kernel_of(make_eliminate, compile=True), order_module._in_order(81)
    first, _ = order_module._tried(kernel, shared, WEIGHTED, factors, NO_LIMITS, order_module.MOST_STEPS)
    assert order_module._tried(kernel, shared, FILL, factors, NO_LIMITS, 3000)[0].run.ended == CUT_OFF
    forced({"infer.orders.search.SEARCH_STEPS": 1 << 30})
    forced({"infer.orders.search.MOST_STEPS": int(first.run.steps) + order_module.STEPS_OF_CALL + 100})
    order = find_order(n_states, *near, effort=0.0)
    assert order.complete
    np.testing.assert_array_equal(order.variables, first.variables)


@pytest.mark.parametrize("rule", range(len(RULES)))
def test_weights_stay_exact_however_many_states(rule: int) -> None:
    """Scores are kept below 2^53, so that they reach zero exactly and every order is complete."""
    rng = np.random.default_rng(rule)
    n_states = 10 ** rng.integers(0, 18, 60)
    graph = nx.gnp_random_graph(60, 0.1, seed=rule)
    order = find_order(n_states, *linked(graph), effort=0.0)
    made = cliques(n_states.tolist(), [list(edge) for edge in graph.edges], order.variables.tolist())
    assert order.width == max(len(clique) - 1 for clique in made)


def test_large_thin_graphs_take_few_steps() -> None:
    """Lists around a hub are not searched: a wheel of 20,000 takes steps in proportion to its size."""
    for graph in (nx.star_graph(20_000), nx.wheel_graph(20_000)):
        shared = order_module._prepared(np.full(len(graph), 2), *linked(graph), None, True)
        kernel, factors = kernel_of(make_eliminate, compile=True), order_module._in_order(len(graph))
        found, _ = order_module._tried(kernel, shared, FILL, factors, NO_LIMITS, order_module.MOST_STEPS)
        assert found.run.ended == DONE
        assert found.run.steps < 100 * len(graph)
