"""Forests of cliques: products and sums of tables, calibration, losses of smaller cliques."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose

from besag.infer.join_graph.calibration import Calibration, Hung
from besag.infer.join_graph.clique_forest import CliqueForest, ScopeGraph
from besag.infer.join_graph.reduction import Reduced, reduce_cliques
from besag.infer.join_graph.tables import Algebra, CliqueTable, CliqueTables
from tests.strategies import examples, generators


def close(found: object, true: object) -> None:
    assert_allclose(found, true, rtol=1e-9, atol=1e-9)


@examples(40)
@given(rng=generators(), bits=st.integers(2, 5), zeros=st.sampled_from([0.0, 0.4]), log=st.booleans())
def test_the_loss_is_the_divergence_of_the_smaller_forest(
    rng: np.random.Generator, bits: int, zeros: float, log: bool
) -> None:
    """KL(p | p') from the two distributions, entry by entry; p' sums to one and has p's marginals in its cliques."""
    cards = [2, 3, 2, 2, 3, 2, 2]
    algebra = Algebra(cards, log=log, compile=False)
    scopes = [(0, 1, 2, 3), (2, 3, 4), (3, 4, 5), (4, 6), (1, 2)]
    logs = [np.where(rng.random(algebra.size(s)) < zeros, -np.inf, rng.normal(size=algebra.size(s))) for s in scopes]
    for values in logs:
        values[0] = 0.0
    tables = [algebra.from_logs(scope, values) for scope, values in zip(scopes, logs, strict=True)]
    forest = forest_of(algebra, scopes)
    beliefs, log_z = calibrated(algebra, forest, tables)
    joint = sum(spread(cards, CliqueTable(s, v)) for s, v in zip(scopes, logs, strict=True))
    close(log_z, np.log(np.exp(joint).sum()))
    p = np.exp(joint - log_z)
    small, marginals = reduce_cliques(algebra, forest, beliefs, frozenset(range(len(cards))), float(bits))
    assert all(algebra.bits(scope) <= bits + 1e-9 for scope in small.scopes.each)
    smaller = distribution(algebra, cards, small, marginals)
    close(smaller.sum(), 1)
    for table in marginals:
        others = tuple(v for v in range(len(cards)) if v not in table.scope)
        close(algebra.plain(table.values), p.sum(axis=others).ravel())
        close(smaller.sum(axis=others), p.sum(axis=others))
    seen = p > 0
    close(small.lost, (p[seen] * np.log(p[seen] / smaller[seen])).sum())


def calibrated(algebra: Algebra, forest: CliqueForest, tables: list[CliqueTable]) -> tuple[CliqueTables, float]:
    joined = algebra.tables(tables)
    return Calibration(algebra, forest).run(joined.scopes, [forest.home(t.scope) for t in tables], joined.values)


def spread(cards: list[int], table: CliqueTable) -> np.ndarray:
    """A table, broadcast over all variables."""
    shape = [k if v in table.scope else 1 for v, k in enumerate(cards)]
    return np.broadcast_to(table.values.reshape(shape), cards)


def distribution(algebra: Algebra, cards: list[int], small: Reduced, marginals: CliqueTables) -> np.ndarray:
    """prod_C b_C / prod_S b_S."""
    product = np.ones(cards)
    for table, separator in zip(marginals, small.separators.each, strict=True):
        plain = spread(cards, CliqueTable(table.scope, algebra.plain(table.values)))
        below = spread(cards, CliqueTable(separator, algebra.plain(algebra.marginal(table, separator).values)))
        product = product * np.divide(plain, below, out=np.zeros(cards), where=below > 0)
    return product


def test_variables_that_no_one_needs_are_forgotten_without_loss() -> None:
    algebra = Algebra([2] * 6, compile=False)
    scopes = list(itertools.pairwise(range(6)))
    rng = np.random.default_rng(0)
    tables = [CliqueTable(scope, rng.random(4)) for scope in scopes]
    graph = ScopeGraph(algebra, scopes, frozenset({5}), 2.0)
    order = graph.order_within(2.0)
    assert order is not None
    assert order[-1] == 5
    forest = graph.forest_within(order, 2.0)
    beliefs, _ = calibrated(algebra, forest, tables)
    small, marginals = reduce_cliques(algebra, forest, beliefs, frozenset({5}), 1.0)
    assert small.exact
    assert small.lost == 0
    assert small.scopes.each == [(5,)]
    close(marginals[0].values.sum(), 1)


def forest_of(algebra: Algebra, scopes: list[tuple[int, ...]]) -> CliqueForest:
    graph = ScopeGraph(algebra, scopes, frozenset(), 0.0)
    return graph.forest(graph.best())


def test_orders_end_where_a_clique_is_above_the_bound() -> None:
    algebra = Algebra([2] * 4, compile=False)
    square = ScopeGraph(algebra, [(0, 1), (1, 2), (2, 3), (0, 3)], frozenset(), 0.0)
    assert square.order_within(2.9) is None
    order = square.order_within(3.0)
    assert order is not None
    assert max(len(scope) for scope in square.forest_within(order, 3.0).scopes) == 3


@examples(40)
@given(rng=generators(), bits=st.integers(2, 8), compile=st.booleans())
def test_bounded_orders_of_random_graphs(rng: np.random.Generator, bits: int, compile: bool) -> None:
    """No clique is above the bound, and scopes are inside of cliques; variables that are to be last are."""
    algebra = Algebra(rng.integers(2, 4, 12).tolist(), compile=compile)
    scopes = [tuple(sorted(rng.choice(12, 2, replace=False).tolist())) for _ in range(14)]
    last = frozenset(rng.choice(12, 3, replace=False).tolist())
    graph = ScopeGraph(algebra, scopes, last, float(bits))
    order = graph.order_within(bits)
    if order is None:
        whole = graph.order_within(math.inf)
        assert whole is not None
        assert max(algebra.bits(scope) for scope in graph.forest(whole).scopes) > bits
        return
    assert sorted(order.tolist()) == list(range(len(graph.names)))
    forest = graph.forest_within(order, bits)
    assert max(algebra.bits(scope) for scope in forest.scopes) <= bits + 1e-4
    assert all(set(scope) <= set(forest.scopes[forest.home(scope)]) for scope in scopes)
    order = ScopeGraph(algebra, scopes, last, math.inf).order_within(math.inf)
    assert order is not None
    later = last & set(graph.names)
    assert {graph.names[v] for v in order[len(order) - len(later) :].tolist()} == later


@given(data=st.data(), n=st.integers(1, 40), n_chunks=st.integers(1, 8))
def test_branches_touch_each_other_at_the_crown_only(data: DataObject, n: int, n_chunks: int) -> None:
    """Random forests hung from their centres: the same links and separators, children before parents."""
    parents = [data.draw(st.integers(-1, n - c - 2)) for c in range(n)]
    parents = [-1 if up < 0 else c + 1 + up for c, up in enumerate(parents)]
    separators = [(c,) if parent >= 0 else () for c, parent in enumerate(parents)]
    sizes = data.draw(st.lists(st.integers(1, 100), min_size=n, max_size=n))
    hung = Hung(parents, separators, sizes)
    links = {frozenset((c, parent)): separators[c] for c, parent in enumerate(parents) if parent >= 0}
    assert links == {frozenset((c, p)): hung.separators[c] for c, p in enumerate(hung.parents) if p >= 0}
    assert all((p < 0) == (not hung.separators[c]) for c, p in enumerate(hung.parents))
    cliques, bounds = hung.chunks(n_chunks)
    assert sorted(cliques.tolist()) == list(range(n))
    assert (bounds[0], bounds[-1], len(bounds)) == (0, n, n_chunks + 2)
    place = {c: i for i, c in enumerate(cliques.tolist())}
    chunk = {c: max(k for k in range(n_chunks + 1) if bounds[k] <= place[c]) for c in range(n)}
    for c, parent in enumerate(hung.parents):
        if parent >= 0:
            assert place[c] < place[parent]
            assert chunk[parent] in (chunk[c], n_chunks)


def test_a_path_hangs_from_its_middle() -> None:
    hung = Hung([1, 2, 3, 4, 5, 6, -1], [(c,) for c in range(6)] + [()], [8] * 7)
    assert hung.parents == [1, 2, 3, -1, 3, 4, 5]
    assert hung.separators == [(0,), (1,), (2,), (), (3,), (4,), (5,)]
    assert hung.branches[3] == 56


def test_products_too_faint_for_linear_numbers() -> None:
    """Each table is fine, and their product is below 1e-308 everywhere."""
    algebra, scopes = Algebra([2, 3], compile=False), [(0, 1)] * 5
    tables = [CliqueTable(scope, 1e-80 * np.arange(1.0, 7.0)) for scope in scopes]
    forest = forest_of(algebra, scopes)
    beliefs, log_z = calibrated(algebra, forest, tables)
    expected = np.arange(1.0, 7.0) ** 5
    close(log_z, math.log(expected.sum()) - 400 * math.log(10))
    close(beliefs[0].values, expected / expected.sum())


@pytest.mark.parametrize("log", [False, True])
def test_entropies_and_information_of_tables(log: bool) -> None:
    """Against numpy, on tables with zeros and blocks of one and of several variables."""
    cards, rng = [2, 3, 40, 2, 3, 2], np.random.default_rng(1)
    algebra, scope = Algebra(cards, log=log, compile=True), tuple(range(6))
    p = np.where(rng.random(cards) < 0.3, 0.0, rng.random(cards))
    p /= p.sum()
    with np.errstate(divide="ignore"):
        table = CliqueTable(scope, np.log(p.ravel()) if log else p.ravel())

    def entropy(kept: tuple[int, ...]) -> float:
        q = p.sum(axis=tuple(v for v in scope if v not in kept))
        return -float((q[q > 0] * np.log(q[q > 0])).sum())

    close(algebra.entropy(table), entropy(scope))
    (found,) = algebra.information([table])
    for u, v in itertools.combinations(scope, 2):
        close(found[u, v], entropy((u,)) + entropy((v,)) - entropy((u, v)))
    tried = [(2, frozenset({0, 5})), (0, frozenset({1, 2, 3})), (4, frozenset[int]())]
    for (v, beside), row in zip(tried, algebra.loss_entropies(table, tried), strict=True):
        rest = tuple(u for u in scope if u != v)
        close(row, [entropy((*beside, v)), entropy(rest), entropy(tuple(beside))])


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("log", [False, True])
def test_tables_of_any_nested_scopes(log: bool, compile: bool) -> None:
    """Products and sums against numpy's broadcasting, in both modes of the kernels and both domains."""
    cards, rng = [2, 3, 2, 4, 2, 3], np.random.default_rng(0)
    algebra = Algebra(cards, log=log, compile=compile)
    for small in subsets(range(6)):
        large = algebra.from_logs(tuple(range(6)), rng.normal(size=math.prod(cards)))
        by = algebra.from_logs(small, rng.normal(size=algebra.size(small)))
        shape = [k if v in small else 1 for v, k in enumerate(cards)]
        expected = algebra.plain(large.values).reshape(cards) * algebra.plain(by.values).reshape(shape)
        forest = forest_of(algebra, [large.scope])
        both = algebra.tables([large, by])
        (product,), log_z = Calibration(algebra, forest).run(both.scopes, [0, 0], both.values)
        assert product.scope == large.scope
        close(np.exp(log_z) * algebra.plain(product.values), expected.ravel())
        others = tuple(v for v in range(6) if v not in small)
        found = algebra.plain(algebra.marginal(product, small).values)
        close(np.exp(log_z) * found, expected.sum(axis=others).ravel())


def subsets(variables: range) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(variables, n) for n in range(len(variables) + 1))
