"""Compiling models into one Graph, and taking parts of it: array work, no loop over variables.

The disjoint union of N models has their variables one after the other; factors of one template become one Block, so
that templates, and with them theta, are shared by all instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from besag.arrays import IntArray, concatenate, freeze, invert, offsets_of
from besag.errors import ModelError
from besag.graph.graph import Block, Graph
from besag.model.layout import Layout
from besag.model.template import Template, join_inputs
from besag.model.variable import UnionNames, Variables, take_variables
from besag.views import count_up, counts_up, join_views
from besag.views import take as take_view

if TYPE_CHECKING:
    from besag.model.model import FactorGroup


class Structure(Protocol):
    """What is compiled: a Model, or structured data."""

    @property
    def variables(self) -> Variables: ...
    @property
    def groups(self) -> tuple[FactorGroup, ...]: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def n_factors(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...


def compile_graph(*models: Structure, layout: Layout | None = None) -> Graph:
    """The Graph of one model, or of the disjoint union of several that share templates by name."""
    if not models:
        raise ModelError("compile_graph needs at least one model")
    own = models[0].layout if len(models) == 1 else Layout(g.template for model in models for g in model.groups)
    layout = own if layout is None else Layout([*layout.templates.values(), *own.templates.values()])
    instance_offsets = offsets_of(np.array([len(model.variables) for model in models]))
    factor_offsets = offsets_of(np.array([model.n_factors for model in models]))
    numbers = count_up(int(factor_offsets[-1]))
    members: dict[str, list[tuple[FactorGroup, int, IntArray]]] = {name: [] for name in own.templates}
    for model, first_variable, first_factor in zip(
        models, instance_offsets.tolist(), factor_offsets.tolist(), strict=False
    ):
        start = first_factor
        for group in model.groups:
            stop = start + len(group)
            if group.positions is None:
                places = numbers[start:stop]
            else:
                places = group.positions + first_factor if first_factor else group.positions
            members[group.template.name].append((group, first_variable, places))
            start = stop
    blocks: list[Block] = []
    position_of: list[IntArray] = []
    first = 0
    for name, groups in members.items():
        block = _block(own.templates[name], groups, first)
        blocks.append(block)
        position_of.extend(places for _, _, places in groups)
        first = block.stop
    positions = join_views(position_of)
    return Graph(
        variables=_union_variables([model.variables for model in models]),
        layout=layout,
        blocks=tuple(blocks),
        instance_offsets=freeze(instance_offsets),
        factor_order=positions if counts_up(positions) else freeze(invert(positions)),
        factor_offsets=freeze(factor_offsets),
        shape=models[0].shape if len(models) == 1 else None,
    )


def _block(template: Template, members: Sequence[tuple[FactorGroup, int, IntArray]], start: int) -> Block:
    if len(members) == 1 and members[0][1] == 0:
        group = members[0][0]
        return Block(template, start, group.scopes, group.inputs, group.names)
    scopes = np.concatenate([group.scopes + offset for group, offset, _ in members])
    inputs = join_inputs(template, [group.inputs for group, _, _ in members])
    named = all(group.names is not None for group, _, _ in members)
    names = tuple(name for group, _, _ in members for name in group.names or ()) if named else None
    return Block(template, start, freeze(scopes), inputs, names)


def _union_variables(parts: Sequence[Variables]) -> Variables:
    if len(parts) == 1:
        return parts[0]
    number: dict[tuple[str, ...], int] = {}
    space_of = []
    for variables in parts:
        map_to = np.array([number.setdefault(space, len(number)) for space in variables.spaces])
        space_of.append(map_to[variables.space_of])
    return Variables(UnionNames([v.names for v in parts]), tuple(number), np.concatenate(space_of))


def take(graph: Graph, instances: IntArray) -> Graph:
    """The union of some instances of a union, in the order given."""
    if instances.ndim != 1 or len(instances) == 0 or len(np.unique(instances)) != len(instances):
        raise ModelError("take needs one or more different instances")
    if instances.min() < 0 or instances.max() >= graph.n_instances:
        raise ModelError(f"there are {graph.n_instances} instances, numbered from 0; got {instances.tolist()}")
    starts = graph.instance_offsets[instances]
    sizes = graph.instance_offsets[instances + 1] - starts
    offsets = offsets_of(sizes)
    factor_offsets = offsets_of(graph.factor_offsets[instances + 1] - graph.factor_offsets[instances])
    blocks, positions, first = [], [], 0
    for block in graph.blocks:
        local, rank = _members(graph.factor_instances[block.start : block.stop], instances)
        blocks.append(_take_block(block, local, (offsets[:-1] - starts)[rank], first))
        moved = (factor_offsets[:-1] - graph.factor_offsets[instances])[rank]
        positions.append(graph.factor_positions[block.start + local] + moved)
        first += len(local)
    bounds = [(int(s), int(s + n)) for s, n in zip(starts, sizes, strict=True)]
    return Graph(
        variables=take_variables(graph.variables, bounds),
        layout=graph.layout,
        blocks=tuple(blocks),
        instance_offsets=freeze(offsets),
        factor_order=freeze(invert(concatenate(positions, np.int64))),
        factor_offsets=freeze(factor_offsets),
    )


def _members(of_factor: IntArray, instances: IntArray) -> tuple[IntArray, IntArray]:
    """The factors of some instances, in their order, and which of the instances each belongs to.

    Factors of a block are sorted by instance, so that a few instances of many cost no look at the rest.
    """
    low = np.searchsorted(of_factor, instances, side="left")
    counts = np.searchsorted(of_factor, instances, side="right") - low
    rank = np.repeat(np.arange(len(instances)), counts)
    return np.arange(len(rank)) + np.repeat(low - (np.cumsum(counts) - counts), counts), rank


def _take_block(block: Block, local: IntArray, shift: IntArray, start: int) -> Block:
    inputs = take_view(block.inputs, local) if isinstance(block.inputs, np.ndarray) else block.inputs
    inputs = inputs[local] if hasattr(inputs, "tocsr") else inputs
    names = None if block.names is None else tuple(block.names[i] for i in local)
    scopes = freeze(block.scopes[local] + shift[:, None])
    return Block(block.template, start, scopes, inputs, names)
