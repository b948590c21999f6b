"""Builders of undirected models: from hand-given factors, and from arrays for grids, chains, trees and Ising models.

Builders pool tables of one shape into one Template with a row of theta for each table, so that F factors become a few
arrays. Grids, chains and trees are built from arrays with no loop over their variables. `given` says what numbers
stand for: see `besag.model.given`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from besag import recycled
from besag.arrays import LARGEST, AnyArray, Array, BoolArray, IntArray, concatenate, freeze
from besag.errors import ModelError
from besag.model.given import Given, energies_from, numbers, wrote_log_potentials
from besag.model.model import FactorGroup, Model
from besag.model.structured.base import Structured
from besag.model.structured.scaled import Scaled
from besag.model.template import Template
from besag.model.variable import GridNames, RangeNames, Variables
from besag.views import count_up, join_views

NO_WEIGHTS = "weights multiply one shared table of finite numbers; fold them into the tables of the edges"


class FactorPart(NamedTuple):
    """Factors of one template and its block of theta, as given: arrays to be joined, and their hard zeros."""

    group: FactorGroup
    numbers: Sequence[AnyArray]
    given: Given = "energy"
    support: BoolArray | None = None

    @property
    def size(self) -> int:
        """How many numbers."""
        return sum(part.size for part in self.numbers)

    def energies(self) -> tuple[Array, BoolArray | None]:
        """The block of theta and its support; ModelError if a number is not valid there."""
        table = self.numbers[0] if len(self.numbers) == 1 else np.concatenate(self.numbers)
        energies, support = energies_from(table, self.given, where=self.group.template.name)
        return energies, support if self.support is None else self.support


def assemble(variables: Variables, parts: Sequence[FactorPart], shape: tuple[int, ...] | None = None) -> Model:
    """A Model from one part for each template."""
    groups = tuple(part.group for part in parts)
    block = _log_potentials(parts)
    if block is not None:
        return Model.from_log_potentials(variables, groups, block, shape)
    found = [part.energies() for part in parts]
    theta = freeze(recycled.concatenate([energies for energies, _ in found]))
    masks = [np.ones(energies.size, np.bool_) if mask is None else mask for energies, mask in found]
    return Model(variables, groups, theta, freeze(concatenate(masks, np.bool_)), shape)


def _log_potentials(parts: Sequence[FactorPart]) -> Array | None:
    """All numbers in one array, in the sign of log-potentials; None if there are hard zeros or errors."""
    if any(part.support is not None for part in parts):
        return None
    block, start = recycled.empty((sum(part.size for part in parts),)), 0
    for part in parts:
        for table in part.numbers:
            if not wrote_log_potentials(table, part.given, block[start : start + table.size]):
                return None
            start += table.size
    return block


def table_part(name: str, scopes: IntArray, tables: object, given: Given) -> FactorPart:
    """Factors with a table each (F, K1..Kn), or one table (K1..Kn) that they share."""
    return _tables_part(name, scopes, [numbers(tables, name)], given)


def _tables_part(name: str, scopes: IntArray, tables: Sequence[AnyArray], given: Given) -> FactorPart:
    """The same from several arrays, to be joined."""
    arity, entry = scopes.shape[1], tables[0].shape
    if len(scopes) == 0:
        energies_from(tables[0], given, where=name)  # checked even if no factor reads it
        shape = entry[-arity:]
        return FactorPart(FactorGroup(Template(name, shape), scopes), [np.zeros(shape)])
    if len(tables) == 1 and len(entry) == arity:
        group = FactorGroup(Template(name, entry), scopes)
    elif len(entry) == arity + 1 and sum(map(len, tables)) == len(scopes):
        group = FactorGroup(Template(name, entry[1:], len(scopes)), scopes, count_up(len(scopes)))
    else:
        raise ModelError(
            f"{name}: expected {arity} axes for a shared table or ({len(scopes)}, ...) for a table per factor, "
            f"got shape {entry}"
        )
    return FactorPart(group, tables, given)


def make_structured_part(name: str, scopes: IntArray, term: Structured, weights: Array | None) -> FactorPart:
    """Factors of one structured term: all with weight 1, all with one weight (), or each with its own (F,)."""
    template = Template(name, term.shape, basis=term)
    if weights is None or weights.ndim == 0:
        return FactorPart(FactorGroup(template, scopes), [np.ones(1) if weights is None else weights.reshape(1)])
    return FactorPart(FactorGroup(template, scopes, weights.reshape(-1, 1)), [np.ones(1)])


def chain(unary: object, pairwise: object, given: Given = "log_potential") -> Model:
    """A chain of T variables "0".."T-1": unary (T, K); pairwise (K, K), (T - 1, K, K) or besag.potts(K).

    >>> import besag
    >>> model = besag.chain([[2, 1], [1, 1]], [[3, 1], [1, 3]], given="weight")
    >>> model.marginals()["1"].round(4)
    array([0.5833, 0.4167])
    """
    unary, n_states = _unary(unary, "unary")
    n = len(unary)
    scopes = freeze(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))
    return _pairwise_model(Variables.alike(RangeNames(n), n_states), unary, scopes, pairwise, given)


def tree(parents: Sequence[int] | IntArray, unary: object, pairwise: object, given: Given = "log_potential") -> Model:
    """A forest from parents (V,), -1 at roots: unary (V, K); pairwise (K, K), axes parent and child, or (edges, K, K).

    There is an edge for each variable that has a parent, in the order of variables.

    >>> import besag
    >>> besag.tree([-1, 0, 0], [[0, 0]] * 3, [[1, 0], [0, 1]]).n_factors
    5
    """
    unary, n_states = _unary(unary, "unary")
    parent = np.asarray(parents, np.int64)
    if parent.shape != (len(unary),):
        raise ModelError(f"parents must have shape ({len(unary)},), one for each row of unary, got {parent.shape}")
    wrong = (parent < -1) | (parent >= len(parent))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ModelError(f"parents[{at}] is {parent[at]}; it must be -1 or the index of a variable below {len(parent)}")
    _refuse_cycle(parent)
    children = np.flatnonzero(parent >= 0)
    scopes = freeze(np.stack([parent[children], children], axis=1))
    return _pairwise_model(Variables.alike(RangeNames(len(parent)), n_states), unary, scopes, pairwise, given)


def grid(
    shape: tuple[int, int],
    n_states: int,
    unary: object = None,
    pairwise: object = None,
    weights: object = None,
    connectivity: int = 4,
    given: Given = "log_potential",
) -> Model:
    """A grid (H, W) of variables "row,column": unary (H, W, K) and one kind of edge.

    pairwise: (K, K) shared; a table for each edge, ((H, W-1, K, K), (H-1, W, K, K)), horizontal edges first; or
    besag.potts(K).
    weights multiply a shared pairwise term without a table for each edge: a number or ((H, W-1), (H-1, W)).
    connectivity=8 adds the diagonals, down-right and down-left, (H-1, W-1) each.

    >>> import besag
    >>> model = besag.grid((2, 3), 2, unary=[[[0, 1]] * 3] * 2, pairwise=besag.potts(2))
    >>> model.marginals().array.shape
    (2, 3, 2)
    """
    height, width = _grid_shape(shape)
    variables = Variables.alike(GridNames(height, width), n_states)
    edges, sizes = grid_edges((height, width), connectivity)
    every = count_up(height * width + sum(map(len, edges)))  # the longest range: shorter ones are views of it
    alone, *by_direction = _laid_out(every[: height * width, None], *edges)
    scopes = join_views(by_direction).reshape(-1, 2)
    parts = []
    if unary is not None:
        unary, _ = _unary(unary, "unary", (height, width, n_states))
        parts.append(table_part("unary", alone, unary.reshape(-1, n_states), given))
    if pairwise is not None:
        scale = None if weights is None else _join(weights, sizes, "weights")
        if _is_by_direction(pairwise, sizes):
            if scale is not None:
                raise ModelError(NO_WEIGHTS)
            tables = _by_direction(pairwise, sizes, (n_states, n_states), "pairwise")
            parts.append(_tables_part("pairwise", scopes, tables, given))
        else:
            parts.append(_pairwise_part(scopes, pairwise, scale, n_states, given))
    elif weights is not None:
        raise ModelError("weights need a pairwise term to multiply; none was given")
    return assemble(variables, parts, (height, width))


SHAPE_OR_EDGES = "ising takes the shape of a lattice, a tuple, or edges (E, 2)"


def ising(shape_or_edges: object, coupling: object = 1.0, field: object = 0.0) -> Model:
    """The Ising model H = -sum J s s' - sum h s with spins s = -1, +1, states "-1" and "1".

    shape_or_edges: the shape of a lattice, (H, W) or of any dimension, or edges (E, 2) of variables "0".."n-1".
    coupling J: a number (one parameter), a number for each edge (E,), or for a lattice one array for each axis, the
    last axis first: ((H, W-1), (H-1, W)). field h: a number, or one for each variable.

    >>> import besag
    >>> round(besag.ising((2, 2), coupling=0.5).log_partition(), 6)
    3.297642
    """
    lattice = shape_or_edges if isinstance(shape_or_edges, tuple) and np.ndim(shape_or_edges) == 1 else None
    h = np.asarray(numbers(field, "field"), np.float64)
    if lattice is not None:
        shape = tuple(int(n) for n in _integers(lattice))
        edges, sizes = lattice_edges(shape)
        scopes, n = freeze(np.concatenate(edges)), int(np.prod(shape))
        names = GridNames(*shape) if len(shape) == 2 else RangeNames(n)
        j = _join(coupling, sizes, "coupling")
    else:
        scopes = _integers(shape_or_edges)
        if scopes.size and (scopes.ndim != 2 or scopes.shape[1] != 2):
            raise ModelError(f"{SHAPE_OR_EDGES}; got {shape_or_edges!r}")
        scopes = scopes.reshape(-1, 2)
        n = max(int(scopes.max(initial=-1)) + 1, h.size if h.ndim else 0)
        shape, names = None, RangeNames(n)
        j = _join(coupling, [(len(scopes),)], "coupling")
    if h.ndim and h.size != n:
        raise ModelError(f"field must be a number or have one entry for each of {n} variables, got shape {h.shape}")
    scopes, alone = _laid_out(scopes, _alone(n))
    spin = np.array([-1.0, 1.0])
    variables = Variables(names, (("-1", "1"),), np.zeros(n, np.int64))
    parts = [
        _parameter_part("coupling", scopes, -np.outer(spin, spin)[None], j),
        _parameter_part("field", alone, -spin[None], h.reshape(-1) if h.ndim else h),
    ]
    return assemble(variables, parts, shape)


def _parameter_part(name: str, scopes: IntArray, basis: Array, values: Array) -> FactorPart:
    """Factors of one basis element, with one shared parameter (a number) or one for each factor (F,)."""
    _finite(values, name)
    if values.ndim == 0 or len(scopes) == 0:
        value = values.reshape(-1) if values.ndim == 0 else np.zeros(1)
        return FactorPart(FactorGroup(Template(name, basis.shape[1:], basis=basis), scopes), [value])
    template = Template(name, basis.shape[1:], len(scopes), basis=basis)
    return FactorPart(FactorGroup(template, scopes, count_up(len(scopes))), [values])


def _pairwise_model(variables: Variables, unary: Array, scopes: IntArray, pairwise: object, given: Given) -> Model:
    n_states = unary.shape[1]
    alone, scopes = _laid_out(_alone(len(unary)), scopes)
    parts = [
        table_part("unary", alone, unary, given),
        _pairwise_part(scopes, pairwise, None, n_states, given),
    ]
    return assemble(variables, parts)


def _pairwise_part(
    scopes: IntArray, pairwise: object, weights: Array | None, n_states: int, given: Given
) -> FactorPart:
    if isinstance(pairwise, Structured):
        if pairwise.shape != (n_states, n_states):
            got = " x ".join(map(str, dict.fromkeys(pairwise.shape)))
            raise ModelError(f"pairwise: {pairwise.name} has {got} states, but the variables have {n_states}")
        return make_structured_part("pairwise", scopes, pairwise, weights)
    if weights is None:
        tables = [numbers(pairwise, "pairwise")]
        _check_pairs(tables[0], n_states)
        return _tables_part("pairwise", scopes, tables, given)
    energies, support = energies_from(pairwise, given, where="pairwise")
    _check_pairs(energies, n_states)
    if energies.ndim != 2 or not (support is None or support.all()):
        raise ModelError(NO_WEIGHTS)
    if float(np.abs(energies).max(initial=0.0)) * float(np.abs(weights).max(initial=0.0)) > LARGEST:
        raise ModelError(f"pairwise: weights times the table overflow; they must be at most {LARGEST:g} in size")
    if weights.ndim == 0:
        return table_part("pairwise", scopes, weights * energies, "energy")
    return make_structured_part("pairwise", scopes, Scaled(energies), weights)


def _alone(n_variables: int) -> IntArray:
    """(V, 1): scopes of one variable each."""
    return count_up(n_variables)[:, None]


def _laid_out(*scopes: IntArray) -> list[IntArray]:
    """The same scopes as views of one array, which a Graph can use without copying."""
    flat = freeze(concatenate(scopes, np.int64))
    ends = np.cumsum([part.size for part in scopes])[:-1]
    return [part.reshape(like.shape) for part, like in zip(np.split(flat, ends), scopes, strict=True)]


def _check_pairs(tables: AnyArray, n_states: int) -> None:
    if tables.shape[-2:] != (n_states, n_states):
        raise ModelError(f"pairwise: expected tables of shape ({n_states}, {n_states}), got {tables.shape}")


def _unary(unary: object, where: str, shape: tuple[int, ...] | None = None) -> tuple[Array, int]:
    try:
        array = np.asarray(unary, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{where} must be an array of numbers") from None
    if shape is not None and array.shape != shape:
        raise ModelError(f"{where} must have shape {shape}, got {array.shape}")
    if shape is None and (array.ndim != 2 or array.size == 0):
        raise ModelError(f"{where} must have shape (variables, states), got {array.shape}")
    return array, array.shape[-1]


def _join(values: Any, sizes: Sequence[tuple[int, ...]], where: str) -> Array:
    """Numbers of all edges, from a number or one array for each direction: () or (E,)."""
    if not isinstance(values, (tuple, list)):
        values = np.asarray(numbers(values, where), np.float64)
        if values.ndim == 0:
            return _finite(values, where)
    arrays = [values] if len(sizes) == 1 and np.shape(values) == sizes[0] else list(values)
    return _finite(np.asarray(np.concatenate(_by_direction(arrays, sizes, (), where)), np.float64), where)


def _is_by_direction(pairwise: object, sizes: Sequence[tuple[int, ...]]) -> TypeGuard[Sequence[Any]]:
    """Whether pairwise has an array of tables for each direction of edges."""
    return isinstance(pairwise, (tuple, list)) and len(pairwise) == len(sizes) and np.ndim(pairwise[0]) == 4


def _by_direction(
    values: Sequence[Any], sizes: Sequence[tuple[int, ...]], entry: tuple[int, ...], where: str
) -> list[AnyArray]:
    """The numbers of edges (edges, *entry), for each direction."""
    expected, shapes = [(*size, *entry) for size in sizes], [np.shape(array) for array in values]
    if shapes != expected:
        raise ModelError(
            f"{where}: expected arrays of shapes {expected}, one for each direction of edges, got {shapes}"
        )
    return [numbers(array, where).reshape(-1, *entry) for array in values]


def _integers(shape_or_edges: Any) -> IntArray:
    try:
        return np.asarray(shape_or_edges, np.int64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{SHAPE_OR_EDGES}; got {shape_or_edges!r}") from None


def _finite(values: Array, where: str) -> Array:
    if not np.isfinite(values).all():
        raise ModelError(f"{where} must be finite numbers")
    return values


def _grid_shape(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, Sequence) or len(shape) != 2 or min(shape) < 1:
        raise ModelError(f"the shape of a grid is (height, width), both at least 1, got {shape}")
    return int(shape[0]), int(shape[1])


def grid_edges(shape: tuple[int, int], connectivity: int) -> tuple[list[IntArray], list[tuple[int, ...]]]:
    """Edges of a grid for each direction, (edges, 2), and the shape of the array that holds them."""
    edges, sizes = lattice_edges(shape)
    if connectivity == 8:
        index = np.arange(shape[0] * shape[1]).reshape(shape)
        for one, other in ((index[:-1, :-1], index[1:, 1:]), (index[:-1, 1:], index[1:, :-1])):
            edges.append(np.stack([one.reshape(-1), other.reshape(-1)], axis=1))
            sizes.append(one.shape)
    elif connectivity != 4:
        raise ModelError(f"connectivity must be 4 or 8, got {connectivity}")
    return edges, sizes


def lattice_edges(shape: tuple[int, ...]) -> tuple[list[IntArray], list[tuple[int, ...]]]:
    """Edges between neighbours of a lattice of any dimension, for each axis, the last axis first."""
    if not shape or min(shape) < 1:
        raise ModelError(f"the shape of a lattice must be positive numbers, got {shape}")
    index = np.arange(int(np.prod(shape))).reshape(shape)
    edges, sizes = [], []
    for axis in reversed(range(len(shape))):
        moved = np.moveaxis(index, axis, 0)
        one, other = np.moveaxis(moved[:-1], 0, axis), np.moveaxis(moved[1:], 0, axis)
        edges.append(np.stack([one.reshape(-1), other.reshape(-1)], axis=1))
        sizes.append(one.shape)
    return edges, sizes


def _refuse_cycle(parent: IntArray) -> None:
    """ModelError if there is a cycle; by pointer doubling every variable of a forest finds its root in log2 V steps."""
    reach = np.append(np.where(parent < 0, len(parent), parent), len(parent))
    for _ in range(len(parent).bit_length() + 1):
        reach = reach[reach]
    inside = np.flatnonzero(reach[:-1] < len(parent))
    if inside.size:
        raise ModelError(f"parents have a cycle through variable {inside[0]}; a tree has none")
