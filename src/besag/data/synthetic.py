"""Random models by seed: for exercises, for bug reports ("random_model('tree', 50, seed=3) fails") and for tests.

Tables of undirected kinds hold log-potentials drawn from N(0, strength^2); rows of a CPT are drawn from a symmetric
Dirichlet distribution with concentration 1 / strength. A fraction `zeros` of the entries become hard zeros, but never
those of one labelling that is drawn first, so that it is feasible; in a CPT the largest entry of a row is spared.

Scopes are arrays (F, n) throughout, so that a chain, tree or grid of a million variables takes about a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import ModelError
from besag.model.bayes import from_parents
from besag.model.build import assemble, grid_edges, table_part
from besag.model.model import Model
from besag.model.variable import GridNames, Names, RangeNames, Variables, number_states


@dataclass(frozen=True, slots=True)
class _Draw:
    """The inputs that all kinds share: size, options and one stream of random numbers."""

    n: int
    rng: np.random.Generator
    n_states: tuple[int, int]
    strength: float
    zeros: float
    max_arity: int
    max_parents: int

    def variables(self, names: Names) -> Variables:
        """Variables with cardinalities drawn from the range of n_states."""
        low, high = self.n_states
        spaces = [number_states(k) for k in range(low, high + 1)]
        return Variables(names, spaces, self.rng.integers(0, len(spaces), len(names)))


def random_model(
    kind: str,
    n: int,
    seed: int = 0,
    *,
    n_states: int | tuple[int, int] | None = None,
    strength: float = 1.0,
    zeros: float | None = None,
    max_arity: int = 4,
    max_parents: int = 3,
) -> Model:
    """A random model of n variables, the same for the same arguments; at least one labelling is feasible.

    kind:
        chain, tree        pairwise factors, and a unary factor for each variable
        grid               the same on n x n variables
        forest_factors     acyclic, with scopes of up to max_arity variables; one variable in ten has no factor
        markov_network     a ring through all variables, and n / 2 factors on up to max_arity variables each
        bayesian_network   a random directed acyclic graph with up to max_parents parents per variable
        polytree           the same with a tree as its undirected graph
    n_states: K, or (least, most) to draw each variable's own; by default 2, but (2, 4) for forest_factors.
    strength: how far tables are from uniform. zeros: the fraction of hard zeros, by default 0, but 0.1 for
    forest_factors.

    >>> import besag
    >>> besag.data.random_model("forest_factors", 12, seed=3)
    Markov network: 12 variables of 2 to 4 states, 11 factors, 163 parameters
    """
    if kind not in _KINDS:
        raise ModelError(f"no kind of random model is named {kind!r}; there are {', '.join(_KINDS)}")
    mixed = kind == "forest_factors"
    states = ((2, 4) if mixed else 2) if n_states is None else n_states
    draw = _Draw(
        n=n,
        rng=np.random.default_rng(seed),
        n_states=states if isinstance(states, tuple) else (states, states),
        strength=strength,
        zeros=(0.1 if mixed else 0.0) if zeros is None else zeros,
        max_arity=max_arity,
        max_parents=max_parents,
    )
    _check(draw)
    return _KINDS[kind](draw)


def _check(draw: _Draw) -> None:
    low, high = draw.n_states
    wrong = {
        f"n must be at least 1, got {draw.n}": draw.n < 1,
        f"n_states must be K or (least, most), both at least 1, got {draw.n_states}": not 1 <= low <= high,
        f"strength must be a positive number, got {draw.strength}": not 0 < draw.strength < np.inf,
        f"zeros is a fraction, at least 0 and below 1, got {draw.zeros}": not 0 <= draw.zeros < 1,
        f"max_arity must be at least 2, got {draw.max_arity}": draw.max_arity < 2,
        f"max_parents must be at least 1, got {draw.max_parents}": draw.max_parents < 1,
    }
    for message, holds in wrong.items():
        if holds:
            raise ModelError(f"random_model: {message}")


def _chain(draw: _Draw) -> Model:
    steps = np.arange(draw.n - 1)
    return _network(draw, RangeNames(draw.n), [_singles(draw.n), np.stack([steps, steps + 1], axis=1)])


def _tree(draw: _Draw) -> Model:
    return _network(draw, RangeNames(draw.n), [_singles(draw.n), _tree_edges(draw)])


def _grid(draw: _Draw) -> Model:
    edges, _ = grid_edges((draw.n, draw.n), 4)
    return _network(draw, GridNames(draw.n, draw.n), [_singles(draw.n**2), *edges], (draw.n, draw.n))


def _forest_factors(draw: _Draw) -> Model:
    """Each factor joins new variables to an older one, its anchor, or one in five to none, so no cycle can arise."""
    rng = draw.rng
    n_joined = draw.n - (draw.n + 9) // 10 if draw.n > 1 else 1
    ends = np.minimum(np.cumsum(rng.integers(1, draw.max_arity, n_joined)), n_joined)
    starts = np.append(0, ends[:-1])
    starts, ends = starts[starts < n_joined], ends[starts < n_joined]
    anchors = np.floor(rng.random(len(starts)) * starts).astype(np.int64)
    anchored = (starts > 0) & (rng.random(len(starts)) < 0.8)
    scopes = [_singles(n_joined)[rng.random(n_joined) < 0.5]]
    for size in range(1, draw.max_arity):
        members = starts[:, None] + np.arange(size)
        fits = ends - starts == size
        scopes.append(members[fits & ~anchored])
        scopes.append(np.column_stack([anchors, members])[fits & anchored])
    place = rng.permutation(draw.n)
    return _network(draw, RangeNames(draw.n), [rng.permuted(place[scope], axis=1) for scope in scopes])


def _markov_network(draw: _Draw) -> Model:
    rng, n = draw.rng, draw.n
    order = rng.permutation(n)
    ring = np.stack([order, np.roll(order, -1)], axis=1)
    scopes = [_singles(n), ring if n > 2 else ring[: n - 1]]
    if n > 2:
        arities = rng.integers(2, min(draw.max_arity, n) + 1, n // 2)
        scopes += [rng.choice(n, (1, int(arity)), replace=False) for arity in arities]
    return _network(draw, RangeNames(n), scopes)


def _bayesian_network(draw: _Draw) -> Model:
    """Parents come before their child in a random order, so that names do not reveal it."""
    rng = draw.rng
    order = rng.permutation(draw.n)
    parents: list[list[int]] = [[] for _ in range(draw.n)]
    for place, child in enumerate(order):
        count = int(rng.integers(0, min(place, draw.max_parents) + 1))
        parents[child] = order[rng.choice(place, count, replace=False)].tolist() if count else []
    return _directed(draw, parents)


def _polytree(draw: _Draw) -> Model:
    """The edges of a tree in random directions, unless one would give a variable too many parents."""
    parents: list[list[int]] = [[] for _ in range(draw.n)]
    turned = draw.rng.random(draw.n - 1) < 0.5
    for (old, new), turn in zip(_tree_edges(draw).tolist(), turned, strict=True):
        one, other = (new, old) if turn and len(parents[old]) < draw.max_parents else (old, new)
        parents[other].append(one)
    return _directed(draw, parents)


_KINDS: dict[str, Callable[[_Draw], Model]] = {
    "chain": _chain,
    "tree": _tree,
    "grid": _grid,
    "forest_factors": _forest_factors,
    "markov_network": _markov_network,
    "bayesian_network": _bayesian_network,
    "polytree": _polytree,
}


def _singles(n: int) -> IntArray:
    """(n, 1): the scopes of a unary factor for each variable."""
    return np.arange(n)[:, None]


def _tree_edges(draw: _Draw) -> IntArray:
    """(n - 1, 2): a random recursive tree; variable v hangs on any variable before it, so the depth is about log n."""
    children = np.arange(1, draw.n)
    return np.stack([np.floor(draw.rng.random(draw.n - 1) * children).astype(np.int64), children], axis=1)


def _network(draw: _Draw, names: Names, scopes: Sequence[IntArray], shape: tuple[int, int] | None = None) -> Model:
    """A Markov network with a random table for each scope; factors are pooled by the shape of their tables."""
    variables = draw.variables(names)
    cards = variables.cardinalities
    labels = draw.rng.integers(0, cards)
    parts = []
    for arity in sorted({scope.shape[1] for scope in scopes}):
        joined = np.concatenate([scope for scope in scopes if scope.shape[1] == arity])
        shapes = cards[joined] @ (draw.n_states[1] + 1) ** np.arange(arity)
        for key in np.unique(shapes):
            pool = joined[shapes == key]
            tables = _tables(draw, cards[pool[0]], labels[pool])
            name = f"table[{','.join(map(str, tables.shape[1:]))}]"
            parts.append(table_part(name, pool, tables, "log_potential"))
    return assemble(variables, parts, shape)


def _tables(draw: _Draw, cards: IntArray, feasible: IntArray) -> Array:
    """Log-potentials (F, K1..Kn), -inf at hard zeros, with none at the labels `feasible` (F, n)."""
    tables = draw.rng.normal(0.0, draw.strength, (len(feasible), *cards))
    if draw.zeros:
        zero = draw.rng.random(tables.shape) < draw.zeros
        zero[(np.arange(len(feasible)), *feasible.T)] = False
        tables[zero] = -np.inf
    return tables


def _directed(draw: _Draw, parents: list[list[int]]) -> Model:
    """A Bayesian network with a random CPT for each variable."""
    variables = draw.variables(RangeNames(draw.n))
    cpts = {
        variables.names[child]: _cpt(draw, variables.cardinalities[above], int(variables.cardinalities[child]))
        for child, above in enumerate(parents)
    }
    return from_parents(variables, parents, cpts)


def _cpt(draw: _Draw, parent_cards: IntArray, n_states: int) -> Array:
    rows = draw.rng.dirichlet(np.full(n_states, 1.0 / draw.strength), tuple(parent_cards))
    if draw.zeros:
        zero = draw.rng.random(rows.shape) < draw.zeros
        np.put_along_axis(zero, rows.argmax(axis=-1, keepdims=True), False, axis=-1)
        rows[zero] = 0.0
        rows /= rows.sum(axis=-1, keepdims=True)
    return rows
