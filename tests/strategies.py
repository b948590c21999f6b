"""Hypothesis strategies for random small models, and for evidence on them.

    models()              any factor graph: hard zeros, cardinalities 1 to 4, arity 1 to 4, parts that nothing connects
    forests()             the same with an acyclic factor graph
    binary_models()       the same with cardinalities 1 and 2
    pairwise()            the same with factors of at most two variables
    evidence_for(model)   {name: state, set of states or likelihood}, possible in the model
    frame_for(model)      a DataFrame of such rows

Structure is drawn, and shrinks; numbers come from a drawn seed. Every model allows at least one labelling by
construction: a witness is drawn first, and no hard zero is put on it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import besag
from besag.model.model import FactorGroup, Model
from besag.model.structured.bilinear import Bilinear
from besag.model.structured.displacement import displacement
from besag.model.structured.noisy import NoisyMax
from besag.model.structured.potts import Potts
from besag.model.structured.scaled import Scaled
from besag.model.structured.truncated import truncated_linear, truncated_quadratic
from besag.model.template import Pattern, Template
from besag.model.variable import Variables
from tests.oracle import Enumeration

NAMES = ("A", "rain", "b 2", "Ä", "x_4", "3", "g:7")
SPACES = (("0", "1", "2", "3"), ("no", "yes", "maybe", "never"), ("10", "-1", "2.5", "7"), ("d", "c", "b", "a"))
GIVEN = ("log_potential", "energy", "weight")
MAX_LABELLINGS = 2000


def examples(n: int) -> settings:
    """n examples a test; ten times as many in the profile `explore`."""
    return settings(max_examples=n * settings.default.max_examples // 100)


def generators() -> st.SearchStrategy[np.random.Generator]:
    """Random numbers from a drawn seed."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


class Plan(NamedTuple):
    """What a model is made of: cardinalities, scopes, the share of hard zeros, a labelling they spare, and numbers."""

    cards: list[int]
    scopes: list[list[int]]
    zeros: float
    witness: np.ndarray
    rng: np.random.Generator
    forest: bool
    most_states: int

    def shape(self, scope: list[int]) -> tuple[int, ...]:
        return tuple(self.cards[v] for v in scope)

    def table(self, *scopes: list[int]) -> np.ndarray:
        """Log-potentials for all of these scopes, with hard zeros that spare the witness."""
        shape = self.shape(scopes[0])
        return np.where(self.mask(shape, scopes), self.rng.normal(size=shape), -np.inf)

    def mask(self, shape: tuple[int, ...], scopes: Iterable[list[int]]) -> np.ndarray:
        """False at hard zeros; True where one of the scopes meets the witness."""
        keep = self.rng.random(shape) >= self.zeros
        for scope in scopes:
            keep[tuple(self.witness[scope])] = True
        return keep


@st.composite
def plans(draw: Any, forest: bool, max_labellings: int, most_states: int, max_arity: int) -> Plan:
    sizes = draw(st.sampled_from([(2, 3, 1, 4), (2,), (3,)] if most_states > 2 else [(2, 1), (2,)]))
    cards: list[int] = []
    left = max_labellings
    for _ in range(draw(st.sampled_from([2, 3, 4, 5, 6, 7, 1]))):
        cards.append(draw(st.sampled_from([k for k in sizes if k <= left] or [1])))
        left //= cards[-1]
    rng = draw(generators())
    witness = np.array([rng.integers(k) for k in cards])
    scopes = draw(scopes_on(len(cards), forest, max_arity))
    return Plan(cards, scopes, draw(st.sampled_from([0.3, 0.7, 0.0])), witness, rng, forest, most_states)


@st.composite
def scopes_on(draw: Any, n_variables: int, forest: bool, max_arity: int) -> list[list[int]]:
    """Scopes of 1 to max_arity variables; in a forest a scope takes one variable of each tree that it joins."""
    scope = st.lists(st.integers(0, n_variables - 1), min_size=1, max_size=max_arity, unique=True)
    drawn = draw(st.lists(scope, min_size=draw(st.sampled_from([4, 2, 1, 0])), max_size=7))
    if not forest:
        return drawn
    tree_of = list(range(n_variables))
    scopes = []
    for names in drawn:
        kept = list({tree_of[v]: v for v in names}.values())
        scopes.append(kept)
        joined = {tree_of[v] for v in kept}
        tree_of = [tree_of[kept[0]] if tree in joined else tree for tree in tree_of]
    return scopes


@st.composite
def models(
    draw: Any,
    forest: bool = False,
    max_labellings: int = MAX_LABELLINGS,
    most_states: int = 4,
    max_arity: int = 4,
) -> Model:
    """Small models of every make, each with at least one labelling of positive weight."""
    make: Callable[..., st.SearchStrategy[Model]] = draw(st.sampled_from([_listed, _grouped, _bayesian, _built]))
    return draw(make(draw(plans(forest, max_labellings, most_states, max_arity))))


def forests(max_labellings: int = MAX_LABELLINGS) -> st.SearchStrategy[Model]:
    """Small models whose factor graph has no cycle."""
    return models(forest=True, max_labellings=max_labellings)


def binary_models(max_labellings: int = MAX_LABELLINGS) -> st.SearchStrategy[Model]:
    """Small models whose variables have one or two states."""
    return models(max_labellings=max_labellings, most_states=2)


def pairwise(max_labellings: int = MAX_LABELLINGS) -> st.SearchStrategy[Model]:
    """Small models whose factors have at most two variables."""
    return models(max_labellings=max_labellings, max_arity=2)


@st.composite
def state_spaces(draw: Any, cards: list[int]) -> dict[str, Any]:
    """{name: states or cardinality}."""
    order = draw(st.permutations(NAMES))
    spaces: dict[str, Any] = {}
    for name, k in zip(order, cards, strict=False):
        states = draw(st.sampled_from(SPACES))[:k]
        spaces[name] = list(states) if draw(st.booleans()) else k
    return spaces


# Markov networks from hand-given factors -----------------------------------------------------------------------------


@st.composite
def _listed(draw: Any, plan: Plan) -> Model:
    spaces = draw(state_spaces(plan.cards))
    if draw(st.booleans()):
        names: list[Any] = list(range(len(plan.cards)))
        variables: Any = list(spaces.values())
    else:
        names, variables = list(spaces), spaces
    given = draw(st.sampled_from(GIVEN))
    factors: list[Any] = []
    for group in draw(_groups_of_a_shape(plan)):
        if len(group) == 1:
            factors.append(([names[v] for v in group[0]], _given(plan.table(group[0]), given)))
        elif len(group[0]) == 2 and len(set(plan.shape(group[0]))) == 1 and draw(st.booleans()):
            factors.append(([[names[v] for v in scope] for scope in group], besag.potts(plan.cards[group[0][0]])))
        else:
            shared = draw(st.booleans())
            tables = plan.table(*group) if shared else np.stack([plan.table(scope) for scope in group])
            factors.append(([[names[v] for v in scope] for scope in group], _given(tables, given)))
    if draw(st.booleans()):
        return besag.markov_network(variables, {f"factor {i}": factor for i, factor in enumerate(factors)}, given)
    return besag.markov_network(variables, factors, given)


@st.composite
def _groups_of_a_shape(draw: Any, plan: Plan) -> list[list[list[int]]]:
    """The scopes, some of those with one shape put together."""
    groups: dict[Any, list[list[int]]] = {}
    for i, scope in enumerate(plan.scopes):
        key = plan.shape(scope) if draw(st.booleans()) else i
        groups.setdefault(key, []).append(scope)
    return list(groups.values())


def _given(log_potentials: np.ndarray, given: str) -> np.ndarray:
    return {"log_potential": log_potentials, "energy": -log_potentials, "weight": np.exp(log_potentials)}[given]


# Templates, groups and theta, put together by hand -------------------------------------------------------------------


@st.composite
def _grouped(draw: Any, plan: Plan) -> Model:
    spaces = draw(state_spaces(plan.cards))
    variables = Variables.from_states({n: range(s) if isinstance(s, int) else s for n, s in spaces.items()})
    groups, blocks, masks = [], [], []
    for number, scopes in enumerate(draw(_groups_of_a_shape(plan))):
        template, inputs, mask = draw(_templates(plan, f"template {number}", scopes))
        names = tuple(f"{number}.{f}" for f in range(len(scopes))) if draw(st.booleans()) else None
        whole = FactorGroup(template, np.array(scopes), inputs, names=names)
        groups += _halves(whole) if len(scopes) > 1 and draw(st.booleans()) else [whole]
        masks.append(np.ones(template.n_parameters, np.bool_) if mask is None else mask.reshape(-1))
        blocks.append(np.where(masks[-1], plan.rng.normal(size=template.n_parameters), 0.0))
    if draw(st.booleans()):
        groups = _with_positions(groups, plan.rng)
    theta, support = np.concatenate([np.zeros(0), *blocks]), np.concatenate([np.zeros(0, np.bool_), *masks])
    return Model(variables, tuple(groups), theta, support)


def _halves(group: FactorGroup) -> list[FactorGroup]:
    """Two groups that share a template."""
    parts = (slice(0, len(group) // 2), slice(len(group) // 2, None))
    return [
        FactorGroup(
            group.template,
            group.scopes[part],
            None if group.inputs is None else group.inputs[part],
            names=None if group.names is None else group.names[part],
        )
        for part in parts
    ]


def _with_positions(groups: list[FactorGroup], rng: np.random.Generator) -> list[FactorGroup]:
    order = np.split(rng.permutation(sum(map(len, groups))), np.cumsum([len(g) for g in groups])[:-1]) if groups else []
    return [replace(group, positions=positions) for group, positions in zip(groups, order, strict=True)]


@st.composite
def _templates(draw: Any, plan: Plan, name: str, scopes: list[list[int]]) -> tuple[Template, Any, np.ndarray | None]:
    """A template for some scopes of one shape, inputs of every form, and the model's own support of its block."""
    shape, rng = plan.shape(scopes[0]), plan.rng
    form = draw(st.sampled_from(["none", "rows", "dense", "csr"]))
    n_inputs = 1 if form == "none" else draw(st.integers(1, 4))
    inputs = inputs_of(form, len(scopes), n_inputs, rng)
    basis = draw(bases(shape, rng))
    n_basis = Template(name, shape, basis=basis).n_basis
    pattern = draw(st.none() | st.just(_pattern(n_inputs, n_basis, rng)))
    structured = basis is not None and not isinstance(basis, np.ndarray)
    support = None if structured or draw(st.booleans()) else plan.mask(shape, scopes)
    mask = None
    if basis is None and pattern is None and form in ("none", "rows"):
        mask = rng.random((n_inputs, *shape)) >= plan.zeros
        for f, scope in enumerate(scopes):
            mask[(0 if inputs is None else inputs[f], *plan.witness[scope])] = True
    return Template(name, shape, n_inputs, basis, support, pattern), inputs, mask


def inputs_of(form: str, n_factors: int, n_inputs: int, rng: np.random.Generator) -> Any:
    """Inputs of a form: none, rows (row indices), dense or csr."""
    if form == "none":
        return None
    if form == "rows":
        return rng.integers(n_inputs, size=n_factors)
    dense = rng.normal(size=(n_factors, n_inputs)) * (rng.random((n_factors, n_inputs)) < 0.7)
    return dense if form == "dense" else csr_array(dense)


def bases(shape: tuple[int, ...], rng: np.random.Generator) -> st.SearchStrategy[Any]:
    """None (a parameter for each entry), a dense basis, or a structured one."""
    kinds: list[Any] = [None, rng.normal(size=(int(rng.integers(1, 4)), *shape)), Scaled(rng.normal(size=shape))]
    if len(shape) == 2 and shape[0] == shape[1]:
        kinds = [Potts(shape[0]), *kinds, *truncated(shape[0], float(rng.choice([0.7, 1.0, 2.5, 9.0])))]
        kinds += [spring(shape[0], rng)]
    if len(shape) == 2 and shape[0] >= 2 and shape[1] == 2:
        kinds.append(Bilinear(shape[0]))
    return st.sampled_from(kinds)


def spring(n_states: int, rng: np.random.Generator) -> Any:
    """A displacement between places of a grid, with a limit or without."""
    sides = (n_states // 2, 2) if n_states % 2 == 0 else n_states
    return displacement(sides, rng.normal(), rng.uniform(0.5, 2.0), rng.choice([None, 0.3, 2.0]))


def truncated(n_states: int, limit: float) -> list[Any]:
    """The costs of distances up to a limit."""
    return [truncated_linear(n_states, limit), truncated_quadratic(n_states, limit)]


def _pattern(n_inputs: int, n_basis: int, rng: np.random.Generator) -> Pattern:
    kept = rng.permutation(n_inputs * n_basis)[: rng.integers(n_inputs * n_basis + 1)]
    return Pattern(*np.divmod(kept, n_basis))


# Bayesian networks ---------------------------------------------------------------------------------------------------


@st.composite
def _bayesian(draw: Any, plan: Plan) -> Model:
    spaces = draw(state_spaces(plan.cards))
    names = list(spaces)
    parents: dict[int, list[int]] = {v: [] for v in range(len(names))}
    for scope in plan.scopes if plan.forest else map(sorted, plan.scopes):
        if not parents[scope[-1]]:
            parents[scope[-1]] = scope[:-1]
    edges = [(names[p], names[c]) for c, above in parents.items() for p in above]
    cpts: dict[str, Any] = {}
    for child, above in parents.items():
        if above and draw(st.booleans()):
            cpts[names[child]] = _noisy(plan, above, child)
            continue
        weights = np.exp(plan.table([*above, child]))
        sums = weights.sum(axis=-1, keepdims=True)
        cpts[names[child]] = np.where(sums > 0, weights, 1.0) / np.where(sums > 0, sums, plan.cards[child])
    return besag.bayesian_network(edges, spaces, cpts)


def _noisy(plan: Plan, parents: list[int], child: int) -> NoisyMax:
    """A noisy-MAX whose effects may have hard zeros, but none at the witness."""
    n, rng = plan.cards[child], plan.rng
    ranks = np.arange(n) if rng.random() < 0.5 else np.arange(n)[::-1]
    rows = []
    for v, k in [(v, plan.cards[v]) for v in parents] + [(-1, 1)]:
        kept = rng.random((k, n)) >= plan.zeros
        kept[np.arange(k), rng.integers(n, size=k)] = True
        kept[0 if v < 0 else plan.witness[v], [plan.witness[child], np.argmin(ranks)]] = True
        rows.append(rng.dirichlet(np.ones(n), size=k) * kept)
    effects = np.concatenate(rows)
    cards = np.array([plan.cards[v] for v in parents])
    return NoisyMax(effects / effects.sum(axis=1, keepdims=True), cards, ranks)


# Chains, trees, grids, Ising models ----------------------------------------------------------------------------------


@st.composite
def _built(draw: Any, plan: Plan) -> Model:
    k = draw(st.sampled_from([2, 3, 1] if plan.most_states > 2 else [2, 1]))
    kind = draw(st.sampled_from(["chain", "tree", "grid", "ising"]))
    n = draw(st.sampled_from([3, 2, 4, 1] if k == 3 else [3, 2, 4, 5, 1]))
    given = draw(st.sampled_from(GIVEN))
    alike = plan._replace(cards=[k] * 6, witness=plan.rng.integers(k, size=6))
    if kind == "ising":
        return draw(_ising(plan.rng, n, plan.forest))
    if kind == "grid":
        return draw(_grid(alike, n, given))
    if kind == "chain":
        scopes = [[v, v + 1] for v in range(n - 1)]
        unary, pairwise = draw(_unary_and_pairwise(alike, n, scopes, given))
        return besag.chain(unary, pairwise, given)
    parents = [draw(st.integers(-1, v - 1)) for v in range(n)]
    scopes = [[p, v] for v, p in enumerate(parents) if p >= 0]
    unary, pairwise = draw(_unary_and_pairwise(alike, n, scopes, given))
    return besag.tree(parents, unary, pairwise, given)


@st.composite
def _unary_and_pairwise(draw: Any, plan: Plan, n: int, scopes: list[list[int]], given: str) -> tuple[Any, Any]:
    unary = _given(np.stack([plan.table([v]) for v in range(n)]), given)
    k = plan.cards[0]
    form = draw(st.sampled_from(["potts", "shared", "each"] if scopes else ["potts", "shared"]))
    if form == "potts":
        return unary, draw(st.sampled_from([besag.potts(k), *truncated(k, 1.5)]))
    if form == "each":
        return unary, _given(np.stack([plan.table(scope) for scope in scopes]), given)
    return unary, _given(plan.table(*(scopes or [[0, 1]])), given)


@st.composite
def _grid(draw: Any, plan: Plan, n: int, given: str) -> Model:
    k, rng = plan.cards[0], plan.rng
    h, w = (1, n) if plan.forest else draw(st.sampled_from([(1, n), (2, 2), (2, 3), (3, 1)]))
    connectivity = draw(st.sampled_from([4, 8]))
    sizes = [(h, w - 1), (h - 1, w), *([(h - 1, w - 1)] * 2 if connectivity == 8 else [])]
    unary = _given(np.stack([plan.table([v]) for v in range(h * w)]).reshape(h, w, k), given)
    finite = _given(rng.normal(size=(k, k)), given)
    form = draw(st.sampled_from(["potts", "shared", "each", "none"] if h * w > 1 else ["potts", "shared", "none"]))
    if form == "none":
        return besag.grid((h, w), k, unary, given=given)
    if form == "each":
        tables = tuple(_given(rng.normal(size=(*size, k, k)), given) for size in sizes)
        return besag.grid((h, w), k, unary, tables, None, connectivity, given)
    weights = draw(st.sampled_from([None, 0.7, tuple(rng.normal(size=size) for size in sizes)]))
    pairwise = draw(st.sampled_from([besag.potts(k), *truncated(k, 1.5)])) if form == "potts" else finite
    return besag.grid((h, w), k, unary, pairwise, weights, connectivity, given)


@st.composite
def _ising(draw: Any, rng: np.random.Generator, n: int, forest: bool) -> Model:
    if draw(st.booleans()):
        shape = (1, n) if forest else draw(st.sampled_from([(n,), (2, 3), (2, 2, 2)]))
        return besag.ising(shape, float(rng.normal()), rng.normal(size=shape) if draw(st.booleans()) else 0.3)
    edges = [(v, v + 1) for v in range(n)] + ([] if forest else [(0, n)][: n - 1])
    return besag.ising(edges, rng.normal(size=len(edges)), rng.normal(size=n + 1))


# Evidence ------------------------------------------------------------------------------------------------------------


@st.composite
def evidence_for(draw: Any, model: Model) -> dict[str, Any]:
    """Evidence that is possible in the model: states, sets of states and likelihoods of some variables."""
    all_labellings = Enumeration(model)
    possible = np.flatnonzero(all_labellings.log_weights > -np.inf)
    codes = all_labellings.labels[possible[draw(st.integers(0, len(possible) - 1))]]
    evidence: dict[str, Any] = {}
    for variable, code in zip(model.variables, codes.tolist(), strict=True):
        kind = draw(st.sampled_from(["free", "state", "set", "likelihood"]))
        if kind != "free":
            evidence[variable.name] = draw(_values(kind, variable.states, code))
    return evidence


@st.composite
def _values(draw: Any, kind: str, states: tuple[str, ...], code: int) -> Any:
    if kind == "state":
        return draw(st.sampled_from(_forms(states[code])))
    if kind == "set":
        others = [state for i, state in enumerate(states) if i != code and draw(st.booleans())]
        every = len(others) + 1 == len(states) > 1  # as a list that would bring a warning
        return draw(st.sampled_from([set, frozenset] if every else [list, tuple, set, frozenset]))(
            [states[code], *others]
        )
    weights = [draw(st.sampled_from([0.0, 0.25, 1.0, 3.5])) for _ in states]
    weights[code] = weights[code] or 0.5
    return dict(zip(states, weights, strict=True))


def _forms(state: str) -> list[Any]:
    """How a state may be written: "1", 1 and 1.0."""
    return [state, int(state), float(state)] if state.lstrip("-").isdecimal() else [state]


@st.composite
def frame_for(draw: Any, model: Model) -> pd.DataFrame:
    """A frame of 1 to 4 rows of possible evidence, with an index of its own; what a row leaves open is missing."""
    rows = draw(st.lists(evidence_for(model), min_size=1, max_size=4))
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in draw(st.permutations(names))}
    return pd.DataFrame(columns, index=pd.Index([f"row {3 * i}" for i in range(len(rows))], name="case"))


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame of evidence, {name: value} each."""
    return [{name: frame[name].iloc[i] for name in frame.columns} for i in range(len(frame))]
