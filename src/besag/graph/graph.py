"""Graph: the structure of a model, or of a disjoint union of models, as flat arrays; compiled once.

Factors are numbered block by block. A Block is all factors of one template:

    scope_offsets (F + 1,), scope_variables (E,)   the variables of factor f, in the order of its table's axes
    kinds (F,) int32                               plain table or structured, with its extent: `besag.arrays.Kind`
    instance_offsets (N + 1,)                      variables of instance n are [offsets[n], offsets[n + 1])
    factor_order (F,), factor_offsets (N + 1,)     the models' own numbering of factors -> number here

`bind` puts numbers on the structure: log-potential = -energy. Plans that engines
make for a structure (trees, orders) are kept in a bounded cache under a lock; tables and messages never are.
"""

from __future__ import annotations

import math
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from besag import recycled
from besag.arrays import (
    LARGEST,
    AnyArray,
    Array,
    BoolArray,
    IntArray,
    Rebuilt,
    concatenate,
    freeze,
    invert,
    offsets_of,
    repeat,
)
from besag.errors import ModelError
from besag.graph.evidence import Evidence, free
from besag.model.layout import Layout
from besag.model.template import Inputs, Template
from besag.model.variable import Variables
from besag.views import count_up, counts_up, join_views

if TYPE_CHECKING:
    from besag.graph.problem import Problem

Plan = TypeVar("Plan")
MAX_PLANS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Block(Rebuilt):
    """All factors of one template: factors [start, stop), scopes (F, n), their inputs, and their names or None."""

    template: Template
    start: int
    scopes: IntArray
    inputs: Inputs
    names: tuple[str, ...] | None = None

    @property
    def stop(self) -> int:
        """One past the last factor."""
        return self.start + len(self.scopes)


class Plans:
    """A small least-recently-used cache under a lock; empty after pickling."""

    __slots__ = ("_lock", "_made")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Plan]) -> Plan:
        """The plan of this key, made at the first call."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]  # type: ignore[no-any-return]
        plan = make()
        self._keep(key, plan)
        return plan

    def get_for(self, key: Hashable, numbers: AnyArray, make: Callable[[], Plan]) -> Plan:
        """As `get`, for a plan that depends on an array of numbers too: made anew when another array comes."""
        with self._lock:
            held_for, plan = self._made.get(key, (None, None))
            if held_for is numbers:
                self._made.move_to_end(key)
                return plan  # type: ignore[no-any-return]
            self._made.pop(key, None)
        made = make()
        self._keep(key, (numbers, made))
        return made

    def _keep(self, key: Hashable, plan: Any) -> None:
        with self._lock:
            self._made[key] = plan
            while len(self._made) > MAX_PLANS:
                self._made.popitem(last=False)

    def __reduce__(self) -> tuple[type[Plans], tuple[()]]:
        return Plans, ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Graph(Rebuilt):
    """The compiled structure of one model or of several; `besag.graph.graph` has the shapes of its arrays."""

    variables: Variables
    layout: Layout
    blocks: tuple[Block, ...]
    instance_offsets: IntArray
    factor_order: IntArray
    factor_offsets: IntArray
    shape: tuple[int, ...] | None = None
    scope_offsets: IntArray = field(init=False)
    scope_variables: IntArray = field(init=False)
    kinds: IntArray = field(init=False)
    plans: Plans = field(init=False, default_factory=Plans)

    def __post_init__(self) -> None:
        counts = [len(b.scopes) for b in self.blocks]
        arities = repeat([b.scopes.shape[1] for b in self.blocks], counts)
        kinds = np.repeat(np.array([b.template.kind for b in self.blocks], np.int32), counts)
        object.__setattr__(self, "scope_offsets", freeze(offsets_of(arities)))
        object.__setattr__(self, "scope_variables", join_views([b.scopes for b in self.blocks]))
        object.__setattr__(self, "kinds", freeze(kinds))

    @property
    def n_variables(self) -> int:
        """V."""
        return len(self.variables)

    @property
    def n_factors(self) -> int:
        """F."""
        return len(self.kinds)

    @property
    def n_instances(self) -> int:
        """N."""
        return len(self.instance_offsets) - 1

    @property
    def state_offsets(self) -> IntArray:
        """(V + 1,): where a variable's states begin on the flat axis."""
        return self.variables.state_offsets

    def __repr__(self) -> str:
        return f"Graph({self.n_variables} variables, {self.n_factors} factors, {self.n_instances} instances)"

    def scope(self, factor: int) -> IntArray:
        """The variables of a factor, in the order of its table's axes."""
        return self.scope_variables[self.scope_offsets[factor] : self.scope_offsets[factor + 1]]

    def block_of(self, factor: int) -> Block:
        """The block of a factor."""
        return next(block for block in self.blocks if block.start <= factor < block.stop)

    def factor_name(self, factor: int) -> str:
        """The name of a factor, or its scope where it has none."""
        block = self.block_of(factor)
        if block.names is not None:
            return block.names[factor - block.start]
        return self.scope_name(factor)

    def scope_name(self, factor: int) -> str:
        """A factor by its scope, f(A,B)."""
        return f"f({','.join(self.variables.names_at(self.scope(factor)))})"

    def degree(self, v: int) -> int:
        """How many factors a variable is in."""
        return int(self.degrees[v])

    @property
    def degrees(self) -> IntArray:
        """(V,): how many factors each variable is in."""
        return self.plans.get("degrees", lambda: freeze(np.bincount(self.scope_variables, minlength=self.n_variables)))

    @property
    def factor_instances(self) -> IntArray:
        """(F,): the instance of each factor."""

        def make() -> IntArray:
            first = self.scope_variables[self.scope_offsets[:-1]]
            return freeze(np.searchsorted(self.instance_offsets, first, side="right") - 1)

        return self.plans.get("factor_instances", make)

    def configurations(self, rows: IntArray) -> IntArray:
        """(B, F): which entry of its table each factor has at labellings (B, V), tables in row-major order."""
        strides = self.plans.get("strides", self._strides)
        return np.add.reduceat(rows[:, self.scope_variables] * strides, self.scope_offsets[:-1], axis=1)

    def _strides(self) -> IntArray:
        """(E,): how many entries further the next state of a factor's variable is."""
        steps, first = list[int](), list[int]()  # those of one factor of each block, and where they begin
        for block in self.blocks:
            first.append(len(steps))
            steps += list(accumulate(block.template.shape[:0:-1], operator.mul, initial=1))[::-1]
        starts = repeat(first, [len(block.scopes) for block in self.blocks]) - self.scope_offsets[:-1]
        places = np.arange(len(self.scope_variables)) + np.repeat(starts, np.diff(self.scope_offsets))
        return freeze(np.array(steps, np.int64)[places])

    @property
    def factor_positions(self) -> IntArray:
        """(F,): the number of each factor in the models' own order, the inverse of factor_order."""
        return self.plans.get("factor_positions", lambda: freeze(invert(self.factor_order)))

    def bind(
        self,
        theta: Array,
        *,
        inputs: Mapping[str, Inputs] | None = None,
        evidence: Evidence | None = None,
        weights: Array | None = None,
        support: BoolArray | None = None,
        children: IntArray | None = None,
    ) -> Problem:
        """The numbers on this structure: theta (P,), inputs {template name: inputs}, evidence, weights (N,).

        children (F,), in this Graph's numbering: the last variable of a factor whose rows sum to one, else -1.
        """
        theta = self.layout.check_theta(theta)
        given = [self._inputs(block, inputs) for block in self.blocks]
        compiled = self._are_own(given)
        if compiled and self.tables_are_theta:
            energies = theta if support is None else np.where(support, theta, np.inf)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                parts = zip(self.blocks, given, strict=True)
                energies = recycled.concatenate([self._tables(block, theta, own, support) for block, own in parts])
        room = recycled.empty(energies.shape) if energies is theta else energies
        numbers = freeze(np.negative(energies, out=room))
        return self.bound(
            numbers, inputs=None if compiled else given, evidence=evidence, weights=weights, children=children
        )

    def bound(
        self,
        log_potentials: Array,
        *,
        inputs: list[Inputs] | None = None,
        evidence: Evidence | None = None,
        weights: Array | None = None,
        children: IntArray | None = None,
    ) -> Problem:
        """Sound log-potentials on this structure; inputs: of every block, None for those that it was made with."""
        from besag.graph.problem import Problem

        if inputs is None:
            sharing = self.plans.get("sharing", lambda: self._sharing([block.inputs for block in self.blocks]))
        else:
            sharing = self._sharing(inputs)
        table_of_factor, table_offsets, first = sharing
        return Problem(
            graph=self,
            log_potentials=log_potentials,
            table_of_factor=table_of_factor,
            table_offsets=table_offsets,
            first_tables=first,
            kinds=self.kinds,
            evidence=free(self.variables) if evidence is None else evidence,
            weights=weights,
            children=None if children is None else self._checked(children),
        )

    def _checked(self, children: IntArray) -> IntArray:
        children = freeze(np.array(children, np.int64))
        if children.shape != (self.n_factors,):
            raise ModelError(f"children must have shape ({self.n_factors},), one for each factor, got {children.shape}")
        last = self.scope_variables[self.scope_offsets[1:] - 1]
        wrong = (children != -1) & (children != last)
        if wrong.any():
            f = int(np.argmax(wrong))
            raise ModelError(
                f"the child of factor {f} must be the last variable of its scope, {last[f]}, or -1, got {children[f]}"
            )
        return children

    def _sharing(self, given: list[Inputs]) -> tuple[IntArray, IntArray, tuple[int, ...]]:
        """Which table each factor reads, where each table begins, and the first table of each block."""
        readers = [b.template.table_of_factor(own, len(b.scopes)) for b, own in zip(self.blocks, given, strict=True)]
        counts = [b.template.n_tables(own, len(b.scopes)) for b, own in zip(self.blocks, given, strict=True)]
        sizes = [math.prod(b.template.entry_shape) for b in self.blocks]
        first, n_factors = list(accumulate(counts, initial=0)), [len(b.scopes) for b in self.blocks]
        if counts == n_factors and all(len(read) == 0 or (read[0] == 0 and counts_up(read)) for read in readers):
            reader = count_up(first[-1])
        else:
            reader = freeze(concatenate(readers, np.int64) + repeat(first[:-1], n_factors))
        return reader, freeze(offsets_of(repeat(sizes, counts))), tuple(first)

    def reads_theta(self, inputs: Mapping[str, Inputs]) -> bool:
        """Whether theta is the tables as it stands, with these inputs of the templates."""
        return self.tables_are_theta and self._are_own([self._inputs(block, inputs) for block in self.blocks])

    def _are_own(self, given: list[Inputs]) -> bool:
        """Whether inputs, of every block, are those that this structure was compiled with."""
        return all(own is block.inputs for block, own in zip(self.blocks, given, strict=True))

    @property
    def tables_are_theta(self) -> bool:
        """Whether the tables, one after the other, are theta: each factor of its own, each entry a parameter."""

        def make() -> bool:
            same = list(self.layout.templates) == [block.template.name for block in self.blocks]
            return same and all(block.template.is_theta(block.inputs, len(block.scopes)) for block in self.blocks)

        return self.plans.get("is_theta", make)

    def _inputs(self, block: Block, inputs: Mapping[str, Inputs] | None) -> Inputs:
        name = block.template.name
        if inputs is None or name not in inputs or inputs[name] is block.inputs:
            return block.inputs
        return block.template.check_inputs(inputs[name], len(block.scopes))

    def _tables(self, block: Block, theta: Array, inputs: Inputs, support: BoolArray | None) -> Array:
        template, where = block.template, self.layout[block.template.name]
        energies = template.tables(theta[where], inputs)
        multiplied = template.basis is not None or (inputs is not None and inputs.ndim > 1)
        if multiplied and not (np.abs(energies) <= LARGEST).all():
            raise ModelError(f"template {template.name!r}: energies must be at most {LARGEST:g} in size; they overflow")
        if template.support is not None:
            energies = np.where(template.support, energies, np.inf)
        if support is not None and not support[where].all():
            if template.basis is not None or template.pattern is not None:
                raise ModelError(f"template {template.name!r}: support needs one parameter for each table entry")
            if inputs is not None and inputs.ndim != 1:
                raise ModelError(f"template {template.name!r}: support needs tables that no input scales")
            allowed = template.tables(support[where].astype(np.float64), inputs) > 0
            energies = np.where(allowed, energies, np.inf)
        return energies

    def moments(
        self, of: AnyArray, *, inputs: Mapping[str, Inputs] | None = None, weights: Array | None = None
    ) -> Array:
        """sum over factors of E[phi_f], (P,), from engine moments (L,) or from a labelling (V,) of int codes.

        weights (N,): of the instances of a labelling; engine moments have them in them.
        """
        values = np.asarray(of)
        if np.issubdtype(values.dtype, np.integer):
            given = [self._inputs(block, inputs) for block in self.blocks]
            parts = zip(self.blocks, given, strict=True)
            blocks = [self._label_moments(block, values, own, weights) for block, own in parts]
        else:
            blocks = self._table_moments(values, inputs)
        total = np.zeros(self.layout.n_parameters)
        for block, part in zip(self.blocks, blocks, strict=True):
            total[self.layout[block.template.name]] += part
        return total

    def _table_moments(self, of: Array, inputs: Mapping[str, Inputs] | None) -> list[Array]:
        given = [self._inputs(block, inputs) for block in self.blocks]
        shapes = [
            (block.template.n_tables(own, len(block.scopes)), *block.template.entry_shape)
            for block, own in zip(self.blocks, given, strict=True)
        ]
        offsets = offsets_of(np.array([np.prod(shape) for shape in shapes], np.int64))
        if offsets[-1] != of.size:
            raise ModelError(f"moments of this graph have {offsets[-1]} entries, got {of.size}")
        return [
            block.template.table_moments(own, of[start : start + int(np.prod(shape))].reshape(shape))
            for block, own, shape, start in zip(self.blocks, given, shapes, offsets[:-1].tolist(), strict=True)
        ]

    def _label_moments(self, block: Block, labels: IntArray, inputs: Inputs, weights: Array | None) -> Array:
        """A labelling is a one-hot marginal: the same map, gathered."""
        if labels.shape != (self.n_variables,):
            raise ModelError(f"a labelling has shape ({self.n_variables},), got {labels.shape}")
        own = None if weights is None else weights[self.factor_instances[block.start : block.stop]]
        return block.template.label_moments(inputs, labels[block.scopes], own)

    def take(self, instances: Sequence[int] | IntArray) -> Graph:
        """The disjoint union of some instances: a mini-batch or a shard, with the same layout."""
        from besag.graph.compile import take

        return take(self, np.asarray(instances, np.int64))
