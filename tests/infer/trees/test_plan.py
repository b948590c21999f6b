"""The plan: what it promises, checked on random forests; cycles; roots; chunks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from besag.arrays import offsets_of
from besag.infer.trees import plan as forest_module
from besag.infer.trees.plan import Forest, accumulators, plan_forest
from besag.kernels.factors import Factors
from tests.infer.trees.forests import pack, random_forest, random_pairs
from tests.routes import Forced

MODES = [pytest.param(False, id="python"), pytest.param(True, id="compiled")]


def made(factors: Factors, root: int | None = None, compile: bool = False) -> Forest:
    forest = plan_forest(factors.state_offsets, factors.scope_offsets, factors.scope_variables, root, compile=compile)
    assert forest is not None
    return forest


def factor_graph(factors: Factors) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(("v", v) for v in range(len(factors.state_offsets) - 1))
    for f in range(len(factors.kinds)):
        scope = factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
        if len(scope) > 1:
            graph.add_edges_from((("f", f), ("v", int(v))) for v in scope)
    return graph


def check(factors: Factors, forest: Forest) -> None:
    graph = factor_graph(factors)
    n_variables = len(factors.state_offsets) - 1
    components = list(nx.connected_components(graph))
    assert len(forest.roots) == len(components)
    assert sorted(forest.variables) == list(range(n_variables))
    assert sorted(forest.order) == sorted(f for kind, f in graph if kind == "f")
    for component in components:
        assert len({forest.component[v] for kind, v in component if kind == "v"}) == 1
    np.testing.assert_array_equal(forest.component[forest.roots], np.arange(len(components)))
    lowest = [int(np.flatnonzero(forest.component == c)[0]) for c in range(len(components))]
    assert lowest == sorted(lowest)
    seen: set[int] = set()
    for h in range(forest.n_chunks):
        position = int(forest.chunk_variables[h])
        roots = forest.roots[forest.chunk_roots[h] : forest.chunk_roots[h + 1]]
        children = list(roots)
        for k in range(forest.chunk_factors[h], forest.chunk_factors[h + 1]):
            f, axis = forest.order[k], forest.parent_axis[k]
            scope = list(factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]])
            children += scope[:axis] + scope[axis + 1 :]
        assert children == list(forest.variables[position : forest.chunk_variables[h + 1]])
        for i, v in enumerate(children, position):
            seen.add(int(v))
            for k in range(forest.child_factors[i], forest.child_factors[i + 1]):
                f = forest.order[k]
                assert factors.scope_variables[factors.scope_offsets[f] + forest.parent_axis[k]] == v
                n_states = factors.state_offsets[v + 1] - factors.state_offsets[v]
                assert forest.message_offsets[k + 1] - forest.message_offsets[k] == n_states
    assert len(seen) == n_variables
    assert forest.child_factors[-1] == len(forest.order) == forest.chunk_factors[-1]


@pytest.mark.parametrize("compile", MODES)
def test_random_forests(compile: bool, forced: Forced) -> None:
    for seed in range(40):
        forced({"infer.trees.plan.CHUNK_STATES": 1 + seed % 3 * 10})
        rng = np.random.default_rng(seed)
        factors = random_forest(rng, 12, attempts=seed)
        check(factors, made(factors, int(rng.integers(12)) if seed % 2 else None, compile))


@pytest.mark.parametrize("compile", MODES)
def test_root_is_a_centre_unless_given(compile: bool) -> None:
    for seed in range(10):
        factors = random_pairs(np.random.default_rng(seed), 25, 2, "tree" if seed else "chain", 1)
        forest, graph = made(factors, compile=compile), factor_graph(factors)
        for root in forest.roots:
            tree = graph.subgraph(nx.node_connected_component(graph, ("v", int(root))))
            if len(tree) > 1:
                assert nx.eccentricity(tree, ("v", int(root))) <= nx.radius(tree) + 1
        assert 17 in made(factors, root=17, compile=compile).roots


@pytest.mark.parametrize("compile", MODES)
def test_cycles_are_seen(compile: bool) -> None:
    cycles = [
        ([2, 2, 2], [[0, 1], [1, 2], [2, 0]]),
        ([2, 2], [[0, 1], [1, 0]]),
        ([2, 2, 2, 2], [[0, 1, 2], [1, 3], [3, 2]]),
        ([2, 2], [[0, 1, 0]]),
    ]
    for cardinalities, scopes in cycles:
        tables = [np.zeros([2] * len(scope)) for scope in scopes]
        factors = pack(cardinalities, [(scope, i) for i, scope in enumerate(scopes)], tables)  # type: ignore[arg-type]
        assert plan_forest(*factors[:3], compile=compile) is None


def test_chunks_are_balanced_and_contiguous() -> None:
    """A thousand chains of a hundred, 20 states each, as a disjoint union."""
    n, length, n_states = 1000, 100, 20
    first = np.arange(n * length).reshape(n, length)
    scopes = np.stack([first[:, :-1], first[:, 1:]], axis=-1).ravel()
    forest = plan_forest(np.arange(n * length + 1) * n_states, np.arange(len(scopes) // 2 + 1) * 2, scopes)
    assert forest is not None
    assert forest.contiguous
    sizes = np.diff(forest.chunk_variables) * n_states
    assert sizes.max() < 1.2 * forest_module.CHUNK_STATES
    assert forest.n_chunks <= 1.2 * n * length * n_states / forest_module.CHUNK_STATES
    assert forest.work == n * (length - 1) * n_states**2


def test_chunks_that_are_not_contiguous(forced: Forced) -> None:
    forced({"infer.trees.plan.CHUNK_STATES": 4})
    factors = pack([2] * 4, [([0, 3], 0), ([1, 2], 0)], [np.zeros((2, 2))])
    assert not made(factors).contiguous


def test_each_accumulator_has_one_chunk_and_one_table(forced: Forced) -> None:
    forced({"infer.trees.plan.CHUNK_STATES": 8})
    rng = np.random.default_rng(0)
    factors = random_forest(rng, 40, attempts=30)
    forest = made(factors)
    slot, table = accumulators(forest, factors.table_of_factor, len(factors.table_offsets) - 1)
    chunk = np.repeat(np.arange(forest.n_chunks), np.diff(forest.chunk_factors))
    np.testing.assert_array_equal(table[slot], factors.table_of_factor[forest.order])
    for s in range(len(table)):
        assert len(set(chunk[slot == s])) == 1
    assert len(table) == len(set(zip(chunk, table[slot], strict=True)))


def test_nothing_at_all() -> None:
    empty = np.zeros(0, np.int64)
    forest = plan_forest(offsets_of(empty), offsets_of(empty), empty)
    assert forest is not None
    assert forest.n_chunks == 0
    assert len(forest.roots) == 0
