"""Random forests of factors, and enumeration of all labellings: the reference for the kernels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, offsets_of
from besag.kernels.factors import Factors


def pack(cardinalities: list[int], factors: list[tuple[list[int], int]], tables: list[Array | float]) -> Factors:
    """Factors as (scope, number of a table); a table that is one float is Potts, and has levels 0 and that."""
    entries = [np.array([0.0, table]) if isinstance(table, float) else np.ravel(table) for table in tables]
    return Factors(
        offsets_of(np.array(cardinalities, np.int64)),
        offsets_of(np.array([len(scope) for scope, _ in factors], np.int64)),
        np.array([v for scope, _ in factors for v in scope], np.int64),
        np.array([int(isinstance(tables[t], float)) for _, t in factors], np.int64),
        np.array([t for _, t in factors], np.int64),
        offsets_of(np.array([len(own) for own in entries], np.int64)),
        np.concatenate(entries) if tables else np.zeros(0),
    )


def random_forest(
    rng: np.random.Generator, n_variables: int = 7, hard: float = 0.15, most: int = 3, attempts: int | None = None
) -> Factors:
    """Any arity from 1 to 4, cardinalities from 1, shared tables, Potts factors of both signs, several components."""
    cardinalities = [int(k) for k in rng.integers(1, most + 1, n_variables)]
    component = list(range(n_variables))
    factors: list[tuple[list[int], int]] = []
    tables: list[Array | float] = []

    def add(scope: list[int]) -> None:
        shape = tuple(cardinalities[v] for v in scope)
        same = [t for t, table in enumerate(tables) if not isinstance(table, float) and np.shape(table) == shape]
        if len(scope) == 2 and shape[0] == shape[1] and rng.random() < 0.4:
            tables.append(float(rng.normal() * 3) if rng.random() < 0.9 or not hard else -np.inf)
        elif same and rng.random() < 0.5:
            factors.append((scope, int(rng.choice(same))))
            return
        else:
            table = rng.normal(size=shape) * 2
            table[rng.random(shape) < hard] = -np.inf
            tables.append(table)
        factors.append((scope, len(tables) - 1))

    for _ in range(3 * n_variables if attempts is None else attempts):
        names = sorted(set(component))
        arity = int(rng.integers(1, 5))
        if arity > len(names) or (len(names) == 2 and rng.random() < 0.5):
            continue
        chosen = rng.choice(names, arity, replace=False)
        scope = [int(rng.choice([v for v in range(n_variables) if component[v] == c])) for c in chosen]
        if arity > 1:
            component = [int(chosen[0]) if c in chosen else c for c in component]
        add(scope)
    return pack(cardinalities, factors, tables)


def random_base(rng: np.random.Generator, factors: Factors, n_rows: int, hard: float = 0.1) -> Array:
    base = rng.normal(size=(n_rows, int(factors.state_offsets[-1]))) * 2
    base[rng.random(base.shape) < hard] = -np.inf
    return base


def dense(factors: Factors, f: int) -> Array:
    """The table of a factor."""
    scope = factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
    shape = tuple(np.diff(factors.state_offsets)[scope])
    t = factors.table_of_factor[f]
    entries = factors.log_potentials[factors.table_offsets[t] : factors.table_offsets[t + 1]]
    if factors.kinds[f]:
        return np.where(np.eye(shape[0], dtype=bool), 0.0, entries[1])
    return entries.reshape(shape)


@dataclass
class Truth:
    """Of one row, by enumeration."""

    labellings: IntArray  # (Y, V)
    log_weights: Array  # (Y,)
    log_z: float
    variables: Array  # (S,)
    cells: list[Array]  # of every factor; of one variable: zeros
    moments: Array  # (L,)


def enumerate_row(factors: Factors, base: Array) -> Truth:
    cardinalities = np.diff(factors.state_offsets)
    labellings = np.array(list(itertools.product(*(range(k) for k in cardinalities))), np.int64)
    log_weights = base[factors.state_offsets[:-1] + labellings].sum(1)
    scopes = [
        factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
        for f in range(len(factors.kinds))
    ]
    linked = [f for f, scope in enumerate(scopes) if len(scope) > 1]
    for f in linked:
        log_weights = log_weights + dense(factors, f)[tuple(labellings[:, scopes[f]].T)]
    high = log_weights.max()
    if high == -np.inf:
        p, log_z = np.zeros(len(log_weights)), -np.inf
    else:
        p = np.exp(log_weights - high)
        log_z = float(high + np.log(p.sum()))
        p /= p.sum()
    variables = np.zeros(int(factors.state_offsets[-1]))
    np.add.at(variables, factors.state_offsets[:-1] + labellings, p[:, None])
    cells, moments = [], np.zeros(len(factors.log_potentials))
    for f, scope in enumerate(scopes):
        cell = np.zeros(tuple(cardinalities[scope]))
        if f in linked:
            np.add.at(cell, tuple(labellings[:, scope].T), p)
            start = factors.table_offsets[factors.table_of_factor[f]]
            if factors.kinds[f]:
                moments[start : start + 2] += np.trace(cell), cell.sum() - np.trace(cell)
            else:
                moments[start : start + cell.size] += cell.ravel()
        cells.append(cell)
    return Truth(labellings, log_weights, log_z, variables, cells, moments)


def log_weight(factors: Factors, base: Array, labels: IntArray) -> float:
    """Of one labelling."""
    total = float(base[factors.state_offsets[:-1] + labels].sum())
    for f in range(len(factors.kinds)):
        scope = factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
        if len(scope) > 1:
            total += float(dense(factors, f)[tuple(labels[scope])])
    return total


def cell_offsets(factors: Factors) -> IntArray:
    """Offsets of full tables of all factors."""
    return offsets_of(np.array([dense(factors, f).size for f in range(len(factors.kinds))], np.int64))


def random_pairs(rng: np.random.Generator, n_variables: int, n_states: int, shape: str, n_tables: int) -> Factors:
    """A forest of pairwise tables: chain, star or tree, with n_tables shared tables (0: one for each factor)."""
    at = np.arange(1, n_variables)
    parent = {"chain": at - 1, "star": 0 * at, "tree": (rng.random(len(at)) * at).astype(np.int64)}[shape]
    name = rng.permutation(n_variables)
    keep = rng.random(len(at)) < 0.9 if shape == "tree" else np.ones(len(at), bool)
    pairs = [[int(name[p]), int(name[c])] for p, c in zip(parent[keep], at[keep], strict=True)]
    pairs = [pair[::-1] if rng.random() < 0.5 else pair for pair in pairs]
    count = n_tables or len(pairs)
    tables: list[Array | float] = [rng.normal(size=(n_states, n_states)) for _ in range(count)]
    return pack([n_states] * n_variables, [(pair, i % count) for i, pair in enumerate(pairs)], tables)
