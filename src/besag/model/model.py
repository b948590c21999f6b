"""Model: a declarative, immutable description of p(y | x, theta), with names.

A Model is variables and groups of factors. A FactorGroup puts one Template on many scopes; theta (P,) holds the blocks
of all templates, in the energy sign:

    H_theta(x, y) = sum over groups g, factors f of g  <theta_g, phi_f(x_f, y_Sf)>

Hard zeros of single tables are not in theta but in `support` (P,), aligned with it: False means log-potential -inf,
and theta is 0 there. `with_theta`, `with_inputs` and `with_tables` give new Models that keep the compiled Graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, Rebuilt, concatenate, freeze, secure
from besag.errors import ModelError
from besag.model.given import Given, energies_from
from besag.model.layout import Layout
from besag.model.metadata import NONE, check_metadata
from besag.model.queries import Queries
from besag.model.template import Inputs, Template, join_inputs
from besag.model.variable import Variables, mapping_from, variables_from

if TYPE_CHECKING:
    from besag.graph.graph import Graph
    from besag.graph.problem import Problem


FEW = 2_000  # variables and factors up to which a loop in Python is used


@dataclass(frozen=True, slots=True, eq=False)
class FactorGroup(Rebuilt):
    """One Template on F scopes.

    scopes (F, n): indices of variables, in the order of the table's axes. inputs: see `besag.model.template`.
    conditional: the last scope variable is the child and each row sums to one. positions (F,): the number of each
    factor in the model's own order; None = they follow those of the previous groups. names: of the factors, or None.
    """

    template: Template
    scopes: IntArray
    inputs: Inputs = None
    conditional: bool = False
    positions: IntArray | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        given, arity = np.asarray(self.scopes), len(self.template.shape)
        if given.size and given.dtype.kind not in "iu":
            raise ModelError(f"template {self.template.name!r}: scopes must be integers, got {given.dtype}")
        scopes = secure(given.astype(np.int64, copy=False))
        if scopes.ndim != 2 or scopes.shape[1] != arity:
            raise ModelError(
                f"template {self.template.name!r}: scopes must have shape (F, {arity}), got {scopes.shape}"
            )
        object.__setattr__(self, "scopes", scopes)
        object.__setattr__(self, "inputs", self.template.check_inputs(self.inputs, len(scopes)))
        if self.positions is not None:
            object.__setattr__(self, "positions", secure(np.asarray(self.positions, np.int64)))

    def __len__(self) -> int:
        return len(self.scopes)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False, init=False)
class Model(Queries):
    """Variables, groups of factors and theta; `besag.model.model` has the formula that they stand for.

    shape: the (H, W) of a grid, so that answers come as images; None for other models. metadata: data of a file about
    the model besides its numbers, see `besag.model.metadata`.
    """

    variables: Variables
    groups: tuple[FactorGroup, ...]
    support: BoolArray | None
    shape: tuple[int, ...] | None
    metadata: Mapping[str, Any]
    layout: Layout
    _log_potentials: Array  # (P,), minus theta: the one copy of the numbers, which tables are where they can be
    _graph: Graph | None
    _problem: Problem | None

    def __init__(
        self,
        variables: Variables,
        groups: Iterable[FactorGroup],
        theta: Array,
        support: BoolArray | None = None,
        shape: tuple[int, ...] | None = None,
        metadata: Mapping[str, Any] = NONE,
    ) -> None:
        groups = tuple(groups)
        layout = Layout(group.template for group in groups)
        theta = layout.check_theta(theta)
        self._fill(variables, groups, np.subtract(0.0, theta), _check_support(support, theta), shape, metadata, layout)

    @classmethod
    def from_log_potentials(
        cls, variables: Variables, groups: Iterable[FactorGroup], values: Array, shape: tuple[int, ...] | None = None
    ) -> Model:
        """A model from minus theta: finite numbers that nobody else writes to, kept as they are."""
        model, groups = cls.__new__(cls), tuple(groups)
        model._fill(variables, groups, values, None, shape, NONE, Layout(group.template for group in groups))
        return model

    def _fill(
        self,
        variables: Variables,
        groups: tuple[FactorGroup, ...],
        log_potentials: Array,
        support: BoolArray | None,
        shape: tuple[int, ...] | None,
        metadata: Mapping[str, Any],
        layout: Layout,
        graph: Graph | None = None,
    ) -> None:
        """Sets every field; scopes are looked at where there is no Graph of them yet."""
        fields = {
            "variables": variables_from(variables),
            "groups": groups,
            "support": support,
            "shape": shape,
            "metadata": metadata if metadata is NONE else check_metadata(metadata, "the model"),
            "layout": layout,
            "_log_potentials": freeze(log_potentials),
            "_graph": graph,
            "_problem": None,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if graph is None:
            self._check_scopes()

    @property
    def theta(self) -> Array:
        """The parameters (P,), in the energy sign; made anew each time, so hold on to it within a loop."""
        return freeze(np.subtract(0.0, self._log_potentials))  # no negative zeros

    def __reduce__(self) -> tuple[Any, ...]:
        kept = (self.variables, self.groups, self._log_potentials, self.support, self.shape, self.metadata, self._graph)
        return _rebuild, kept

    def _check_scopes(self) -> None:
        few = len(self.variables) < FEW
        cardinalities = self.variables.cardinalities.tolist() if few else []
        for group in self.groups:
            if not (few and len(group) < FEW and _are_sound(cardinalities, group)):
                check_scopes(self.variables, group)

    @property
    def graph(self) -> Graph:
        """The compiled structure, made once and shared by all Models that differ in numbers only."""
        if self._graph is None:
            from besag.graph.compile import compile_graph

            object.__setattr__(self, "_graph", compile_graph(self))
        assert self._graph is not None
        return self._graph

    @property
    def problem(self) -> Problem:
        """The numbers of this model bound to its Graph, without evidence."""
        if self._problem is None:
            children, inputs = self._children(), self.inputs
            if self.support is None and self.graph.reads_theta(inputs):
                problem = self.graph.bound(self._log_potentials, children=children)
            else:
                problem = self.graph.bind(self.theta, inputs=inputs, support=self.support, children=children)
            object.__setattr__(self, "_problem", problem)
        assert self._problem is not None
        return self._problem

    @property
    def inputs(self) -> dict[str, Inputs]:
        """The inputs of every template's factors, in the order of its groups."""
        parts: dict[str, list[Inputs]] = {name: [] for name in self.layout.templates}
        for group in self.groups:
            parts[group.template.name].append(group.inputs)
        return {name: join_inputs(self.layout.templates[name], own) for name, own in parts.items()}

    def _children(self) -> IntArray | None:
        """(F,), in the Graph's order of factors: the child of a conditional one, else -1; None if there is none."""
        if not any(group.conditional for group in self.groups):
            return None
        parts: dict[str, list[IntArray]] = {name: [] for name in self.layout.templates}
        for group in self.groups:
            child = group.scopes[:, -1] if group.conditional else np.full(len(group), -1)
            parts[group.template.name].append(child)
        return concatenate([part for own in parts.values() for part in own], np.int64)

    @property
    def n_factors(self) -> int:
        """F."""
        return sum(len(group) for group in self.groups)

    @property
    def is_bayesian_network(self) -> bool:
        """Whether every factor is a conditional probability table and every variable has one."""
        children = sum(len(group) for group in self.groups if group.conditional)
        return children == self.n_factors == len(self.variables)

    def with_theta(self, theta: Array) -> Model:
        """The same model with other parameters (P,); a group stays conditional only if its rows still sum to one.

        >>> import besag
        >>> model = besag.markov_network([2, 2], [((0, 1), [[0.0, 1.0], [2.0, 3.0]])])
        >>> model.with_theta(2 * model.theta).log_partition() == 2 * model.log_partition()
        False
        """
        return self.with_numbers(self.layout.check_theta(theta), self.support)

    def with_metadata(
        self, metadata: Mapping[str, Any] | None = None, variables: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Model:
        """The same model with other metadata: its own, and that of some variables by name; None leaves it unchanged.

        >>> import besag
        >>> model = besag.data.bundled("sprinkler").with_metadata({"name": "lawn"}, {"rain": {"position": (10, 20)}})
        >>> model.metadata, model.variable("rain").metadata
        ({'name': 'lawn'}, {'position': (10, 20)})
        """
        kept = dict(self.variables.metadata)
        own = mapping_from({} if variables is None else variables, "metadata of variables must be {name: metadata}")
        kept |= {self.variables.index(n): check_metadata(given, repr(n)) for n, given in own.items()}
        own_metadata = self.metadata if metadata is None else metadata
        return self.with_parts(metadata=own_metadata, variables=self.variables.with_metadata(kept))

    def with_parts(self, **parts: Any) -> Model:
        """The same model with other variables, groups, theta, support, shape or metadata; its Graph is made anew."""
        names = ("variables", "groups", "theta", "support", "shape", "metadata")
        return Model(**{name: parts[name] if name in parts else getattr(self, name) for name in names})

    def _on_same_graph(self, groups: tuple[FactorGroup, ...], theta: Array, support: BoolArray | None) -> Model:
        """A model of the same structure, which the compiled Graph serves too."""
        model, layout = Model.__new__(Model), Layout(group.template for group in groups)
        theta = layout.check_theta(theta)
        support = _check_support(support, theta)
        of_self = (self.shape, self.metadata, layout, self.graph)
        model._fill(self.variables, groups, np.subtract(0.0, theta), support, *of_self)
        return model

    def with_numbers(self, theta: Array, support: BoolArray | None) -> Model:
        """The same structure with other parameters and other hard zeros."""
        if support is not None:
            theta = np.where(support, theta, 0.0)
        groups = tuple(
            replace(group, conditional=group.conditional and self._rows_sum_to_one(group, theta, support))
            for group in self.groups
        )
        return self._on_same_graph(groups, theta, support)

    def _rows_sum_to_one(self, group: FactorGroup, theta: Array, support: BoolArray | None) -> bool:
        template, where = group.template, self.layout[group.template.name]
        scaled = group.inputs is not None and group.inputs.ndim != 1
        if template.structured is not None and template.structured.conditional:
            return group.inputs is None and bool((theta[where] == 1).all())
        if scaled or template.basis is not None or template.pattern is not None:
            return False
        weights = np.exp(-theta[where])
        if support is not None:
            weights = weights * support[where]
        if template.support is not None:
            weights = weights.reshape(-1, *template.shape) * template.support
        sums = weights.reshape(-1, template.shape[-1]).sum(axis=1)
        return bool(np.abs(sums - 1).max() <= 1e-9)

    def with_inputs(self, inputs: Mapping[str, Inputs]) -> Model:
        """The same model with other inputs, {template name: inputs}, as many rows as there are factors."""
        for name in mapping_from(inputs, "inputs must be {name of a template: inputs}"):
            self.layout[name]
        used, theta = dict.fromkeys(inputs, 0), self.theta
        sharing = Counter(group.template.name for group in self.groups)
        groups = []
        for group in self.groups:
            name = group.template.name
            if name in inputs:
                start = used[name]
                used[name] += len(group)
                rows = inputs[name] if sharing[name] == 1 else inputs[name][start : used[name]]
                group = replace(group, inputs=rows)
                if group.conditional and not self._rows_sum_to_one(group, theta, self.support):
                    group = replace(group, conditional=False)
            groups.append(group)
        return self._on_same_graph(tuple(groups), theta, self.support)

    def with_tables(self, tables: Mapping[int | str, Any], given: Given = "log_potential") -> Model:
        """The same model with other tables, {key: table}.

        A key is the number of a factor, its name, or the name of a template for all its tables (T, K1..Kn) at once.

        >>> import besag
        >>> model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
        >>> model.with_tables({0: [1, 3]}, given="weight").marginals()["A"]
        array([0.25, 0.75])
        """
        theta = np.array(self.theta)
        support = np.ones(theta.shape, np.bool_) if self.support is None else np.array(self.support)
        for key, table in mapping_from(tables, "tables must be {number or name of a factor: table}").items():
            where, shape = self._slot(key)
            energies, allowed = energies_from(table, given, where=f"table {key!r}")
            if energies.shape != shape:
                raise ModelError(f"table {key!r} must have shape {shape}, got {energies.shape}")
            theta[where] = energies.reshape(-1)
            support[where] = True if allowed is None else allowed.reshape(-1)
        return self.with_numbers(theta, support)

    def _slot(self, key: int | str) -> tuple[slice, tuple[int, ...]]:
        """The slice of theta of the table of a factor or of a template, and its shape."""
        if isinstance(key, str) and key in self.layout.templates:
            template = self.layout.templates[key]
            check_tabular(template)
            if any(g.inputs is not None and g.inputs.ndim != 1 for g in self.groups if g.template.name == key):
                raise ModelError(f"factors scale the tables of template {key!r}; use with_theta")
            return self.layout[key], (template.n_inputs, *template.shape)
        group, at = self.locate(key)
        check_tabular(group.template)
        if group.inputs is not None and group.inputs.ndim != 1:
            raise ModelError(f"factor {key!r} scales the tables of template {group.template.name!r}; use with_theta")
        row = 0 if group.inputs is None else int(np.asarray(group.inputs)[at])
        alike = [other for other in self.groups if other.template.name == group.template.name]
        readers = sum(len(g) if g.inputs is None else int((np.asarray(g.inputs) == row).sum()) for g in alike)
        if readers > 1:
            raise ModelError(
                f"factor {key!r} shares its table with {readers - 1} others; set them together by the template's name, "
                f"{group.template.name!r}"
            )
        start = self.layout[group.template.name].start + row * group.template.n_basis
        return slice(start, start + group.template.n_basis), group.template.shape

    def locate(self, key: int | str) -> tuple[FactorGroup, int]:
        """The group of a factor, given by number or by name, and its place in the group."""
        start = 0
        for group in self.groups:
            positions = np.arange(start, start + len(group)) if group.positions is None else group.positions
            if isinstance(key, str):
                if group.names is not None and key in group.names:
                    return group, group.names.index(key)
            elif (hit := np.flatnonzero(positions == key)).size:
                return group, int(hit[0])
            start += len(group)
        what = f"is named {key!r}" if isinstance(key, str) else f"has the number {key}"
        raise ModelError(
            f"no factor {what}; there are {self.n_factors}, numbered from 0, in templates {list(self.layout.templates)}"
        )

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, _: object) -> Model:
        return self

    def __repr__(self) -> str:
        from besag.model.show import model_line

        return model_line(self)

    def __str__(self) -> str:
        from besag.model.show import model_table

        return model_table(self)

    def _repr_html_(self) -> str:
        from besag.model.show import model_html

        return model_html(self)


def _check_support(support: BoolArray | None, theta: Array) -> BoolArray | None:
    """The hard zeros, None where there is none; ModelError where they do not fit theta."""
    if support is None:
        return None
    support = secure(np.asarray(support, np.bool_))
    if support.shape != theta.shape:
        raise ModelError(f"support must have theta's shape {theta.shape}, got {support.shape}")
    if (theta[~support] != 0).any():
        raise ModelError("theta must be 0 where support is False")
    return None if support.all() else support


def _rebuild(
    variables: Variables,
    groups: tuple[FactorGroup, ...],
    log_potentials: Array,
    support: BoolArray | None,
    shape: tuple[int, ...] | None,
    metadata: Mapping[str, Any],
    graph: Graph | None,
) -> Model:
    """A pickled model."""
    model, layout = Model.__new__(Model), Layout(group.template for group in groups)
    for array in (log_potentials, support):
        if array is not None:
            array.flags.writeable = False
    model._fill(variables, groups, log_potentials, support, shape, metadata, layout, graph)
    return model


def check_tabular(template: Template) -> None:
    """ModelError unless each table entry of the template is a parameter of its own."""
    if template.basis is not None or template.pattern is not None:
        raise ModelError(f"template {template.name!r} has fewer parameters than table entries; use with_theta")


def _are_sound(cardinalities: list[int], group: FactorGroup) -> bool:
    """Whether `check_scopes` would find no error: in plain Python, which is faster for small groups."""
    n, shape = len(cardinalities), list(group.template.shape)
    for scope in group.scopes.tolist():
        if min(scope) < 0 or max(scope) >= n or len(set(scope)) < len(scope):
            return False
        if [cardinalities[v] for v in scope] != shape:
            return False
    return True


def check_scopes(variables: Variables, group: FactorGroup) -> None:
    """ModelError unless every scope names different variables whose cardinalities are the table's shape."""
    scopes, name = group.scopes, group.template.name
    outside = (scopes < 0) | (scopes >= len(variables))
    if np.count_nonzero(outside):  # here and below: faster than any() if a model has many small groups
        at = int(np.argmax(outside.any(axis=1)))
        raise ModelError(
            f"template {name!r}: factor {at} names variable {scopes[at].tolist()}; there are {len(variables)}"
        )
    wrong = variables.cardinalities[scopes] != np.array(group.template.shape)
    if np.count_nonzero(wrong):
        at = int(np.argmax(wrong.any(axis=1)))
        names = [variables.names[v] for v in scopes[at]]
        cards = variables.cardinalities[scopes[at]].tolist()
        raise ModelError(
            f"template {name!r}: factor {at} on ({', '.join(names)}) needs a table of shape {tuple(cards)}, "
            f"got {group.template.shape}"
        )
    ordered = scopes if scopes.shape[1] < 3 else np.sort(scopes, axis=1)
    repeated = ordered[:, 1:] == ordered[:, :-1]
    if np.count_nonzero(repeated):
        at = int(np.argmax(repeated.any(axis=1)))
        names = [variables.names[v] for v in scopes[at]]
        raise ModelError(f"template {name!r}: the scope of factor {at}, ({', '.join(names)}), repeats a variable")
