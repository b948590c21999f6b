"""What a user gives as the structure of a Bayesian network: a graph, or the name of a method that finds one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from besag.data.tables.code_table import CodeTable
from besag.errors import DataError, ModelError
from besag.graph.directed.pdag import PDAG
from besag.learn.networks.counts import Parents
from besag.model.bayes import read_structure
from besag.model.dag import parents_of, topological
from besag.model.model import Model
from besag.model.variable import NameList, Variables, mapping_from, states_from
from besag.text import did_you_mean

if TYPE_CHECKING:
    from besag.learn.networks.structure.neighbourhoods import NeighbourhoodPath


@dataclass(frozen=True, slots=True)
class GivenGraph:
    """Parents by name, and the states that were declared; order: of a Model's variables, else None."""

    parents: Mapping[str, tuple[str, ...]]
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ordered: bool = False

    def names(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The variables in the order of a Model, else of the columns; those that have no column come last."""
        if self.ordered:
            return tuple(self.parents)
        known = [name for name in columns if name in self.parents]
        return (*known, *(name for name in self.parents if name not in known))

    def check(self, columns: Iterable[str]) -> None:
        """DataError for a column that is no variable, and for a hidden variable without states."""
        listed = list(columns)
        for name in listed:
            if name not in self.parents:
                hint = did_you_mean(name, self.parents) or f"it has {', '.join(map(repr, list(self.parents)[:6]))}"
                raise DataError(
                    f"column {name!r} is no variable of the structure; {hint}. Drop it, frame.drop(columns={name!r}), "
                    f"or give the structure as a networkx.DiGraph with a node {name!r}",
                    column=name,
                )
        for name in self.parents:
            if name not in listed and name not in self.states:
                hint = did_you_mean(name, listed)
                raise DataError(
                    f"the structure names {name!r}, and the table has no such column; {hint} If it is hidden, declare "
                    f"its states: states={{{name!r}: 2}}".replace(";  If", "; if"),
                    column=name,
                )

    def numbered(self, names: tuple[str, ...]) -> Parents:
        """The parents of each variable by number."""
        at = {name: v for v, name in enumerate(names)}
        return tuple(tuple(at[parent] for parent in self.parents[name]) for name in names)


def is_method(structure: Any) -> bool:
    """Whether a structure is the name of a method, or an object that learns one."""
    if isinstance(structure, str):
        return "->" not in structure and "<-" not in structure
    return hasattr(structure, "learn")


def given_graph(structure: Any, states: Mapping[str, Any] | None) -> GivenGraph:
    """A graph as text, edges, networkx.DiGraph, PDAG or Model; ModelError where it has a cycle."""
    declared = mapping_from({} if states is None else states, "states must be {name: states or cardinality}")
    more = {str(name): states_from(given, str(name)) for name, given in declared.items()}
    if isinstance(structure, Model):
        variables = structure.variables
        own = {variable.name: variable.states for variable in variables}
        above = {variables.names[v]: tuple(variables.names_at(p)) for v, p in enumerate(parents_of(structure))}
        return GivenGraph(above, own | more, ordered=True)
    if isinstance(structure, PDAG):
        structure = structure.extension(strict=False).to_networkx()
    named, edges = read_structure(structure)
    for name in more:
        named.setdefault(name, None)
    if not named:
        raise ModelError("the structure names no variable; for a network without edges give a networkx.DiGraph")
    parents: dict[str, list[str]] = {name: [] for name in named}
    for parent, child in edges:
        if parent == child:
            raise ModelError(f"{child!r} cannot be its own parent")
        parents[child].append(parent)
    names = list(named)
    topological(Variables.alike(NameList(names), 2), [[names.index(p) for p in parents[name]] for name in names])
    known = {name: given for name, given in named.items() if given is not None}
    return GivenGraph({name: tuple(above) for name, above in parents.items()}, known | more)


def learned_graph(method: Any, table: CodeTable, options: Mapping[str, Any]) -> Any:
    """What a method finds in a table, see `besag.learn.networks.structure`."""
    from besag.learn.networks.structure import learn_structure  # type: ignore[import-not-found, unused-ignore]

    return learn_structure(table.codes, table.cardinalities, table.weights, names=table.names, method=method, **options)


def learned_path(table: CodeTable, time_limit: float | None) -> NeighbourhoodPath:
    """The neighbourhoods in a table along a path of strengths."""
    from besag.learn.networks.structure.neighbourhoods import select_neighbourhoods

    sizes = table.cardinalities
    return select_neighbourhoods(table.codes, sizes, table.weights, names=table.names, time_limit=time_limit)
