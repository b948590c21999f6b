"""Small models of every make, drawn from a seed, together with the tables that they are made of.

A Spec holds plain data: names, states, factors with their log-potentials, and rows of evidence. The model is built from
it as a user would build it, and `tests.ways.truth` enumerates the same data without the library. What is drawn:

    network    a Bayesian network; half of the rows of its CPTs are deterministic, up to seven parents
    markov     factors of one to eight variables with hard zeros, tables of their own, shared or structured (Potts)
    forest     the same with a factor graph without cycles
    lattice    chains, grids and Ising models of the library's own builders
    structured  factors of every kind with weights of both signs among tables
    noisy      a Bayesian network of noisy-MAX factors and tables
    odd        what nobody would write but programs do: factors on one scope, in other orders too, constants, ties,
               energies of very different sizes side by side, hard zeros nearly everywhere

Cardinalities are mixed, 1 among them; some variables are in no factor, and parts are not connected. Every model has a
labelling of positive weight: a witness is drawn first, and no hard zero is put on it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import besag
from besag.model.model import Model
from tests.ways import terms

MOST_LABELLINGS = 3000
MOST_ENTRIES = 1500  # of one table
ROWS = 9  # of evidence: more than the lanes of a kernel
NAMES = ("A", "rain", "b 2", "Ä", "x_4", "e", "f", "g7", "h", "k", "m", "n")
SPACES = (("0", "1", "2", "3", "4"), ("no", "yes", "maybe", "never", "often"), ("d", "c", "b", "a", "z"))
PALETTES = ((2,), (2, 3), (1, 2, 3, 4), (3, 3, 2, 2, 2, 2), (2, 5, 1), (3,))
STRUCTURED_PALETTES = ((2,), (2,), (2, 2, 2, 2, 3), (3,), (4, 2), (5, 2, 1))
GIVEN = ("log_potential", "energy", "weight")
SIZES = ((1.0,), (1e-12, 1.0), (1e-3, 40.0), (1e-2, 700.0), (1.0, 1e5))  # of log-potentials in one odd model


class Factor(NamedTuple):
    """A scope, log-potentials with one axis for each of its variables, and the number of its group.

    Factors of a group are given to the library together: with one table where `shared`. Of a structured factor `term`
    is what the library gets, with a weight of its own, and the table is what it means.
    """

    scope: tuple[int, ...]
    table: np.ndarray
    group: int
    shared: bool = False
    term: Any = None
    weight: float = 1.0


@dataclass(frozen=True)
class Spec:
    """What a model is made of. lattice: the library's builder, where one made it. rows: evidence, the first none."""

    seed: int
    kind: str
    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    factors: tuple[Factor, ...]
    given: str
    rows: tuple[dict[str, Any], ...] = ({},)
    lattice: Callable[[], Model] | None = None

    @property
    def cards(self) -> tuple[int, ...]:
        return tuple(len(space) for space in self.states)

    @property
    def largest(self) -> float:
        """The size of the largest log-potential."""
        finite = (np.abs(f.table[f.table > -np.inf]) for f in self.factors)
        return max((float(values.max(initial=0.0)) for values in finite), default=0.0)

    @property
    def has_hard_terms(self) -> bool:
        """Whether a structured factor has hard zeros."""
        return any(f.term is not None and (f.table == -np.inf).any() for f in self.factors)

    @property
    def is_network(self) -> bool:
        return self.kind in ("network", "noisy")

    def model(self) -> Model:
        """The model, as a user would build it."""
        spaces: Any = {name: list(states) for name, states in zip(self.names, self.states, strict=True)}
        if self.lattice is not None:
            return self.lattice()
        if self.is_network:
            edges = [(self.names[p], self.names[f.scope[-1]]) for f in self.factors for p in f.scope[:-1]]
            cpts = {self.names[f.scope[-1]]: np.exp(f.table) if f.term is None else f.term for f in self.factors}
            return besag.bayesian_network(edges, spaces, cpts)
        return self._weighted(
            besag.markov_network(spaces, [self._given(group) for group in self._groups()], self.given)
        )

    def _weighted(self, model: Model) -> Model:
        """The model with the weights of its structured factors."""
        listed = [factor for group in self._groups() for factor in group]
        inputs = {}
        for group in model.groups:
            if group.template.structured is not None and group.positions is not None:
                weights = np.array([[listed[i].weight] for i in group.positions])
                if (weights != 1).any():
                    inputs[group.template.name] = weights
        return model.with_inputs(inputs) if inputs else model

    def _groups(self) -> list[list[Factor]]:
        groups: dict[int, list[Factor]] = {}
        for factor in self.factors:
            groups.setdefault(factor.group, []).append(factor)
        return list(groups.values())

    def _given(self, group: list[Factor]) -> tuple[Any, Any]:
        scopes = [[self.names[v] for v in factor.scope] for factor in group]
        if group[0].term is not None:
            return scopes, group[0].term
        if group[0].shared:
            return scopes, as_given(group[0].table, self.given)
        if len(group) == 1:
            return scopes[0], as_given(group[0].table, self.given)
        return scopes, as_given(np.stack([factor.table for factor in group]), self.given)

    def smaller(self) -> Iterator["Spec"]:
        """Specs with one thing less: a row or an observation, a factor, the parents of a variable."""
        for i in range(1, len(self.rows)):
            yield replace(self, rows=self.rows[:i] + self.rows[i + 1 :])
        for i, row in enumerate(self.rows):
            for name in row:
                less = {key: value for key, value in row.items() if key != name}
                yield replace(self, rows=(*self.rows[:i], less, *self.rows[i + 1 :]))
        for i, factor in enumerate(self.factors):
            if not self.is_network:
                yield replace(self, lattice=None, factors=self.factors[:i] + self.factors[i + 1 :])
            elif len(factor.scope) > 1:
                table = factor.table[(0,) * (len(factor.scope) - 1)]
                alone = factor._replace(scope=factor.scope[-1:], table=table, term=None)
                yield replace(self, factors=(*self.factors[:i], alone, *self.factors[i + 1 :]))


def as_given(log_potentials: np.ndarray, given: str) -> np.ndarray:
    """Log-potentials as they are, as energies or as weights."""
    if given == "weight":
        return np.exp(log_potentials)
    return -log_potentials if given == "energy" else log_potentials


# Drawing -------------------------------------------------------------------------------------------------------------


def draw(seed: int) -> Spec:
    """The model of a seed, without evidence; `tests.ways.evidence` adds it."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["network", "network", "network", "markov", "markov", "markov", "forest", "lattice"]))
    if seed % 5 == 3:
        return _odd(seed, "odd", rng)
    if seed % 5 == 1:
        return _structured(seed, "structured", rng) if rng.random() < 0.6 else _noisy(seed, "noisy", rng)
    return {"network": _network, "markov": _markov, "forest": _markov, "lattice": _lattice}[kind](seed, kind, rng)


def _variables(
    rng: np.random.Generator, palettes: tuple[tuple[int, ...], ...] = PALETTES
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    palette, left = palettes[rng.integers(len(palettes))], MOST_LABELLINGS
    cards: list[int] = []
    for _ in range(int(rng.integers(1, len(NAMES)))):
        k = int(rng.choice(palette))
        if k <= left:
            cards.append(k)
            left //= k
    spaces = tuple(SPACES[rng.integers(len(SPACES))][:k] for k in cards or [2])
    names = tuple(str(name) for name in rng.permutation(NAMES)[: len(spaces)])
    return names, spaces


def _network(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    names, states = _variables(rng)
    cards, order = [len(space) for space in states], rng.permutation(len(names))
    most = int(rng.choice([1, 2, 3, 7]))
    factors = {}
    for place, child in enumerate(order.tolist()):
        wanted = 0 if rng.random() < 0.15 else min(place, int(rng.integers(most + 1)))
        parents = _within_room(rng.permutation(order[:place])[:wanted].tolist(), cards, cards[child])
        factors[child] = Factor((*parents, child), _cpt(rng, [cards[v] for v in parents], cards[child]), child)
    return Spec(seed, kind, names, states, tuple(factors[v] for v in range(len(names))), "weight")


def _within_room(scope: list[int], cards: list[int], size: int) -> list[int]:
    """The first variables of a scope, as many as a table of so many entries for each of their states lets in."""
    kept = []
    for v in scope:
        if size * cards[v] <= MOST_ENTRIES:
            kept.append(v)
            size *= cards[v]
    return kept


def _cpt(rng: np.random.Generator, above: list[int], k: int) -> np.ndarray:
    """Log-probabilities; half of the rows are deterministic, and others have zeros too."""
    n = math.prod(above)
    rows = rng.dirichlet(np.full(k, float(rng.choice([0.3, 1.0, 5.0]))), n)
    rows[rng.random((n, k)) < 0.15] = 0.0
    sure = (rng.random(n) < 0.5) | (rows.sum(axis=1) <= 0)
    rows[sure] = np.eye(k)[rng.integers(k, size=n)][sure]
    rows /= rows.sum(axis=1, keepdims=True)
    return _logs(rows).reshape(*above, k)


def _logs(weights: np.ndarray) -> np.ndarray:
    return np.where(weights > 0, np.log(np.where(weights > 0, weights, 1.0)), -np.inf)


def _markov(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    names, states = _variables(rng)
    cards, witness = [len(space) for space in states], [int(rng.integers(len(space))) for space in states]
    scopes = _scopes(rng, cards, kind == "forest")
    zeros, scale = float(rng.choice([0.0, 0.3, 0.7])), float(rng.choice([0.1, 1.0, 1.0, 1.0, 5.0, 60.0, 3000.0]))

    def table(*spared: tuple[int, ...]) -> np.ndarray:
        shape = [cards[v] for v in spared[0]]
        values = np.where(rng.random(shape) < zeros, -np.inf, scale * rng.normal(size=shape))
        for scope in spared:
            at = tuple(witness[v] for v in scope)
            values[at] = scale * rng.normal() if values[at] == -np.inf else values[at]
        return values

    factors: list[Factor] = []
    for number, group in enumerate(_groups_of_a_shape(rng, scopes, cards)):
        shape = [cards[v] for v in group[0]]
        if len(shape) == 2 and shape[0] == shape[1] and rng.random() < 0.4:
            potts = np.eye(shape[0]) - 1.0
            factors += [Factor(scope, potts, number, term=besag.potts(shape[0])) for scope in group]
        elif rng.random() < 0.5:
            one = table(*group)
            factors += [Factor(scope, one, number, shared=True) for scope in group]
        else:
            factors += [Factor(scope, table(scope), number) for scope in group]
    return Spec(seed, kind, names, states, tuple(factors), str(rng.choice(GIVEN if scale < 60 else GIVEN[:2])))


def _scopes(rng: np.random.Generator, cards: list[int], forest: bool) -> list[tuple[int, ...]]:
    """Scopes of one to eight different variables; in a forest one variable of each tree that a scope joins."""
    most, tree_of, scopes = int(rng.choice([2, 3, 8])), list(range(len(cards))), []
    for _ in range(int(rng.integers(0, 2 + len(cards)))):
        wanted = int(rng.integers(1, most + 1))
        scope = _within_room(rng.permutation(len(cards))[:wanted].tolist(), cards, 1)
        if forest:
            scope = list({tree_of[v]: v for v in scope}.values())
            joined = {tree_of[v] for v in scope}
            tree_of = [tree_of[scope[0]] if tree in joined else tree for tree in tree_of]
        scopes.append(tuple(scope))
    return scopes


def _groups_of_a_shape(
    rng: np.random.Generator, scopes: list[tuple[int, ...]], cards: list[int]
) -> list[list[tuple[int, ...]]]:
    """The scopes, some of those with one shape put together."""
    groups: dict[Any, list[tuple[int, ...]]] = {}
    for i, scope in enumerate(scopes):
        key = tuple(cards[v] for v in scope) if rng.random() < 0.5 else i
        groups.setdefault(key, []).append(scope)
    return list(groups.values())


def _structured(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    names, states = _variables(rng, STRUCTURED_PALETTES)
    cards, witness = [len(space) for space in states], [int(rng.integers(len(space))) for space in states]
    forest = bool(rng.random() < 0.4)
    scopes = [scope for _ in range(1 if forest else 2) for scope in _scopes(rng, cards, forest)]
    factors: list[Factor] = []
    for number, scope in enumerate(scopes[: 2 + len(cards)]):
        shape = tuple(cards[v] for v in scope)
        at = tuple(witness[v] for v in scope)
        made = terms.drawn(rng, shape, at) if rng.random() < 0.7 else None
        if made is not None:
            (term, table), weight = made
            factors.append(Factor(scope, terms.weighted(table, weight), number, term=term, weight=weight))
        else:
            hard = rng.random(shape) < 0.2
            hard[at] = False
            factors.append(Factor(scope, np.where(hard, -np.inf, rng.normal(size=shape)), number))
    factors += [Factor((v,), rng.normal(size=k), -1 - v) for v, k in enumerate(cards) if rng.random() < 0.5]
    return Spec(seed, kind, names, states, tuple(factors), str(rng.choice(GIVEN)))


def _noisy(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    names, states = _variables(rng, STRUCTURED_PALETTES)
    cards, order = [len(space) for space in states], rng.permutation(len(names))
    factors = {}
    for place, child in enumerate(order.tolist()):
        wanted = min(place, int(rng.integers(8)))
        scope = (*_within_room(rng.permutation(order[:place])[:wanted].tolist(), cards, cards[child]), child)
        shape = [cards[v] for v in scope]
        made = terms.noisy(rng, tuple(shape)) if rng.random() < 0.75 else None
        if made is None:
            factors[child] = Factor(scope, _cpt(rng, shape[:-1], shape[-1]), child)
        else:
            factors[child] = Factor(scope, made.table, child, term=made.structured)
    return Spec(seed, kind, names, states, tuple(factors[v] for v in range(len(names))), "weight")


def _odd(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    names, states = _variables(rng)
    cards, witness = [len(space) for space in states], [int(rng.integers(len(space))) for space in states]
    zeros, sizes = float(rng.choice([0.0, 0.5, 0.9, 0.97])), SIZES[rng.integers(len(SIZES))]
    most, scopes = int(rng.choice([1, 2, 3, 5, 8])), list[tuple[int, ...]]()
    for _ in range(int(rng.integers(3 + len(cards)))):
        scopes.append(_odd_scope(rng, scopes, most, cards))
    factors = []
    for number, scope in enumerate(scopes):
        table = _odd_table(rng, tuple(cards[v] for v in scope), float(rng.choice(sizes)))
        hard = rng.random(table.shape) < zeros
        hard[tuple(witness[v] for v in scope)] = False
        factors.append(Factor(scope, np.where(hard, -np.inf, table), number))
    given = str(rng.choice(GIVEN if max(sizes) < 60 else GIVEN[:2]))
    return Spec(seed, kind, names, states, tuple(factors), given)


def _odd_scope(rng: np.random.Generator, scopes: list[tuple[int, ...]], most: int, cards: list[int]) -> tuple[int, ...]:
    """That of an earlier factor, in any order and perhaps without its last variable; or one of its own."""
    if scopes and rng.random() < 0.4:
        again = rng.permutation(scopes[rng.integers(len(scopes))]).tolist()
        return tuple(again[: max(1, len(again) - int(rng.integers(2)))])
    wanted = rng.permutation(len(cards))[: int(rng.integers(1, most + 1))].tolist()
    return tuple(_within_room(wanted, cards, 1))


def _odd_table(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> np.ndarray:
    """Log-potentials: one number everywhere, nothing at all, with ties, or any."""
    table = size * rng.normal(size=shape)
    return [np.full(shape, table.flat[0]), np.zeros(shape), np.round(table), table, table][rng.integers(5)]


# The library's own builders ------------------------------------------------------------------------------------------


def _lattice(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    return [_chain, _grid, _ising][rng.integers(3)](seed, kind, rng)


def _chain(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    k, n = int(rng.choice([2, 3])), int(rng.integers(1, 8))
    unary = rng.normal(size=(n, k))
    shared = n == 1 or rng.random() < 0.5
    tables = rng.normal(size=(k, k) if shared else (n - 1, k, k))
    tables[..., 0, -1] = -np.inf if rng.random() < 0.5 else 0.0
    pairs = [Factor((v, v + 1), tables if shared else tables[v], 1) for v in range(n - 1)]
    return _on_lattice(seed, kind, [str(v) for v in range(n)], unary, pairs, lambda: besag.chain(unary, tables))


def _grid(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    k, h, w = [(2, 3, 3), (3, 2, 3), (4, 2, 2), (1, 2, 3)][rng.integers(4)]
    unary, weight = rng.normal(size=(h, w, k)), float(rng.normal())
    potts = rng.random() < 0.5
    term = np.eye(k) - 1.0 if potts else rng.normal(size=(k, k))
    places = np.arange(h * w).reshape(h, w)
    edges = [*zip(places[:, :-1].flat, places[:, 1:].flat, strict=True)]
    edges += [*zip(places[:-1].flat, places[1:].flat, strict=True)]
    pairs = [Factor((int(a), int(b)), weight * term, 1) for a, b in edges]
    names = [f"{i},{j}" for i in range(h) for j in range(w)]
    pairwise = besag.potts(k) if potts else term
    build = lambda: besag.grid((h, w), k, unary, pairwise, weight)  # noqa: E731
    return _on_lattice(seed, kind, names, unary.reshape(-1, k), pairs, build)


def _ising(seed: int, kind: str, rng: np.random.Generator) -> Spec:
    n = int(rng.integers(2, 8))
    edges = [(a, b) for a in range(n) for b in range(a) if rng.random() < 0.5]
    coupling, field, spin = rng.normal(size=len(edges)), rng.normal(size=n), np.array([-1.0, 1.0])
    pairs = [Factor(edge, j * np.outer(spin, spin), 1) for edge, j in zip(edges, coupling, strict=True)]
    build = lambda: besag.ising(np.array(edges).reshape(-1, 2), coupling, field)  # noqa: E731
    spec = _on_lattice(seed, kind, [str(v) for v in range(n)], np.outer(field, spin), pairs, build)
    return replace(spec, states=(("-1", "1"),) * n)


def _on_lattice(
    seed: int, kind: str, names: list[str], unary: np.ndarray, pairs: list[Factor], build: Callable[[], Model]
) -> Spec:
    alone = [Factor((v,), row, 0) for v, row in enumerate(unary)]
    states = (tuple(str(i) for i in range(unary.shape[1])),) * len(names)
    return Spec(seed, kind, tuple(names), states, (*alone, *pairs), "log_potential", lattice=build)
