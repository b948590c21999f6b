"""A second exact engine, to show where a published answer is wrong: bucket elimination in numpy, without besag.infer.

Variables are summed out one by one, those of the smallest cluster first. With log tables throughout, and p(v) the
variable of the separator S_v that is summed out first:

    C_v(y) = product of the factors and messages whose first variable is v           the cluster of v
    m_v    = sum over y_v of C_v                                                      its message, over S_v, to p(v)
    B_v    = C_v x (sum of B_p(v) outside of S_v) / m_v                               all that is known about S_v and v
    Z      = product of the messages of empty S_v                                     p(y_v) = sum of B_v / Z

A table is a pair: the sorted variables of its axes, and the array.
"""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np

from besag.arrays import Array
from besag.model.model import Model

Table = tuple[tuple[int, ...], Array]


class Buckets:
    """log Z and all marginals of a model under evidence, {variable: state}."""

    def __init__(self, model: Model, evidence: Mapping[str, str]) -> None:
        names = [variable.name for variable in model.variables]
        observed = {names.index(name): model.variable(name).states.index(state) for name, state in evidence.items()}
        self.cardinalities = model.variables.cardinalities.tolist()
        tables = [reduced(model, factor, observed) for factor in range(model.n_factors)]
        alone = [(v,) for v in range(len(names)) if v not in observed]
        self.order = elimination_order([*(scope for scope, _ in tables), *alone], self.cardinalities)
        self.clusters, self.messages = self._upward(tables)
        self.log_z = sum(float(table) for _, table in tables if table.ndim == 0)
        self.log_z += sum(float(table) for _, table in self.messages.values() if table.ndim == 0)

    def _upward(self, tables: Sequence[Table]) -> tuple[dict[int, Table], dict[int, Table]]:
        place = {v: at for at, v in enumerate(self.order)}
        buckets: dict[int, list[Table]] = {v: [] for v in self.order}
        for scope, table in tables:
            if scope:
                buckets[min(scope, key=place.__getitem__)].append((scope, table))
        clusters, messages = {}, {}
        for v in self.order:
            clusters[v] = product([((v,), np.zeros(self.cardinalities[v])), *buckets.pop(v)])
            separator = tuple(u for u in clusters[v][0] if u != v)
            messages[v] = sum_to(separator, clusters[v])
            if separator:
                buckets[min(separator, key=place.__getitem__)].append(messages[v])
        return clusters, messages

    def marginals(self) -> dict[int, Array]:
        """(K,) for each variable that is not observed."""
        place = {v: at for at, v in enumerate(self.order)}
        beliefs: dict[int, Table] = {}
        for v in reversed(self.order):
            separator, message = self.messages[v]
            beliefs[v] = self.clusters[v]
            if separator:
                _, above = sum_to(separator, beliefs[min(separator, key=place.__getitem__)])
                with np.errstate(invalid="ignore"):
                    ratio = np.where(message > -np.inf, above - message, -np.inf)
                beliefs[v] = product([self.clusters[v], (separator, ratio)])
        return {v: normalised(sum_to((v,), belief)[1]) for v, belief in beliefs.items()}


def reduced(model: Model, factor: int, observed: Mapping[int, int]) -> Table:
    """A factor's table with the observed variables taken out."""
    scope = model.graph.scope(factor).tolist()
    table = model.problem.table(factor)[tuple(observed.get(v, slice(None)) for v in scope)]
    free = [v for v in scope if v not in observed]
    return tuple(sorted(free)), np.transpose(table, np.argsort(free))


def elimination_order(scopes: Sequence[tuple[int, ...]], cardinalities: Sequence[int]) -> list[int]:
    """All variables of the scopes, greedily by the size of the cluster that summing one out makes."""
    around: dict[int, set[int]] = {}
    for scope in scopes:
        for v in scope:
            around.setdefault(v, {v}).update(scope)
    logs = np.log(cardinalities)
    size = {v: float(logs[list(cluster)].sum()) for v, cluster in around.items()}
    heap, order = [(s, v) for v, s in size.items()], []
    heapq.heapify(heap)
    while heap:
        s, v = heapq.heappop(heap)
        if v not in around or s != size[v]:
            continue
        order.append(v)
        separator = around.pop(v) - {v}
        for u in separator:
            around[u] = (around[u] | separator) - {v}
            size[u] = float(logs[list(around[u])].sum())
            heapq.heappush(heap, (size[u], u))
    return order


def product(tables: Sequence[Table]) -> Table:
    """Over all variables of the tables, whose log values add."""
    scope = tuple(sorted(set().union(*(scope for scope, _ in tables))))
    shapes = (dict(zip(scope, table.shape, strict=True)) for scope, table in tables)
    total: Array = np.zeros(())
    for (_, table), sizes in zip(tables, shapes, strict=True):
        total = total + table.reshape([sizes.get(v, 1) for v in scope])
    return scope, total


def sum_to(scope: tuple[int, ...], given: Table) -> Table:
    """log sum exp over all variables but those of the scope."""
    axes = tuple(axis for axis, v in enumerate(given[0]) if v not in scope)
    top = given[1].max(axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return scope, np.log(np.exp(given[1] - shift).sum(axis=axes)) + shift.squeeze(axes)


def normalised(log_weights: Array) -> Array:
    """Weights that sum to one."""
    weights: Array = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return weights
