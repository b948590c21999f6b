"""CFN, cost function networks in toulbar2's JSON (see `besag.io.shared.relaxed_json` for its extensions).

    file       = { "problem": problem, "variables": { name: domain, ... }, "functions": { name: function, ... } }
    problem    = { "name": text, "mustbe": "<number" | ">number" }
    domain     = cardinality | [ state, ... ]
    function   = { "scope": [ variable, ... ], "costs": [ cost, ... ] }      all costs, the last variable fastest
               | { "scope": ..., "defaultcost": cost, "costs": [ state, ..., cost, ... ] }   tuples with their costs
               | { "scope": ..., "costs": name }                             the costs of another function

Variables and states are given by name or by number from 0, and numbers may be in quotes. Variables and functions may be
lists without names, and the keys of problem and function may be left out. A negative cardinality is an interval of as
many states. If a tuple is given twice the last one counts.

Costs are energies, unchanged. "<number" asks for a minimum, and costs that sum up to that number or more are forbidden,
as far as tables can express it (`besag.io.costs.shared`). ">number" asks for a maximum: energies are the costs NEGATED,
so that the most probable assignment has the largest sum, and sums of that number or less are forbidden.
metadata["cfn"] keeps "mustbe". A function without variables is a constant and is folded into another. Global and
arithmetic functions, which have a "type", are refused.

Functions with the same name all count, as they do for toulbar2; a LossWarning says that the later ones are renamed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array
from besag.errors import LossWarning, ParseError, warn
from besag.io.costs.shared import SPARE_STATES, CostFunction, model_of_costs
from besag.io.formats import Source
from besag.io.shared.budget import EntryBudget
from besag.io.shared.files import is_number, text_of
from besag.io.shared.relaxed_json import Nested, WordList, parse_nested, without_comments
from besag.io.shared.tables import MAX_ARITY
from besag.model.model import Model
from besag.model.variable import NameList, RangeNames, Variables, number_states

_START = re.compile(r"\s*[{\[]\s*\"?problem\b")
_MUST_BE = re.compile(r"\s*([<>])\s*(\S+)\s*")
_INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_LITERALS = {True: "true", False: "false", None: "null"}


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a CFN."""
    return _START.match(without_comments(head.decode("latin-1"))) is not None


def read(source: Source) -> Model:
    """A Model from the content of a CFN file."""
    return _Reader(parse_nested(text_of(source.data, source.path), source.path)).model()


class _Item(NamedTuple):
    """A value of the file and the steps that lead to it."""

    value: Any
    steps: tuple[int, ...]

    def inner(self, number: int) -> _Item:
        """The item of a list."""
        return _Item(self.value[number], (*self.steps, number))


class _DeclaredFunction(NamedTuple):
    """A function while the file is read: its scope, and a table or the name of the function that has it."""

    scope: tuple[int, ...]
    table: Array | str


class _Reader:
    """The state of reading one file: the variables by name, the states of each, and the bound on energies."""

    def __init__(self, file: Nested) -> None:
        self.file, self.room = file, EntryBudget(len(file.text))
        self.index: dict[str, int] = {}
        self.codes: list[dict[str, int]] = []  # of states by name; numbers need none
        self.sizes: list[int] = []
        self.sign, self.bound = 1.0, np.inf

    def model(self) -> Model:
        """The whole file."""
        whole = _Item(self.file.items, ())
        fields = self._fields(whole, ("problem", "variables", "functions"), "the file")
        parts = {key: item._replace(value=_listed(item.value)) for key, item in fields.items()}
        for key in ("problem", "variables", "functions"):
            if key not in parts or not isinstance(parts[key].value, list):
                raise self._fail(f'expected "{key}": {{ ... }}', parts.get(key, whole))
        metadata = self._problem(parts["problem"])
        variables = self._variables(parts["variables"])
        return model_of_costs(variables, self._functions(parts["functions"]), metadata, self.bound)

    def _fields(self, given: _Item, keys: tuple[str, ...], where: str) -> dict[str, _Item]:
        """The values of an object by key, or of a list without keys in the order of the keys."""
        items = given.value
        if not any(isinstance(item, str) and item in keys for item in items[::2]):
            if len(items) > len(keys):
                raise self._fail(f"{where}: expected {', '.join(keys)}, got {len(items)} items", given)
            return {key: given.inner(number) for number, key in enumerate(keys[: len(items)])}
        found: dict[str, _Item] = {}
        for number in range(0, len(items) - 1, 2):
            key = items[number]
            if not isinstance(key, str) or key in found:
                message = f"{where}: expected keys that are different texts, got {_shown(key)}"
                raise self._fail(message, given.inner(number))
            found[key] = given.inner(number + 1)
        if len(items) % 2:
            message = f"{where}: the last key, {_shown(items[-1])}, has no value"
            raise self._fail(message, given.inner(len(items) - 1))
        return found

    def _problem(self, given: _Item) -> dict[str, Any]:
        """The name and the bound, as metadata."""
        fields = self._fields(given, ("name", "mustbe"), "the problem")
        wanted = fields["mustbe"].value if "mustbe" in fields else None
        match = _MUST_BE.fullmatch(wanted) if isinstance(wanted, str) else None
        if match is None or not _is_cost(match.group(2)) or np.isnan(float(match.group(2))):
            message = f'expected "mustbe": "<number" or ">number", got {_shown(wanted)}'
            raise self._fail(message, fields.get("mustbe", given))
        self.sign = 1.0 if match.group(1) == "<" else -1.0
        self.bound = self.sign * float(match.group(2))
        name = fields["name"].value if "name" in fields else []
        named = {} if isinstance(name, (list, WordList)) else {"name": _name(name)}
        return {**named, "cfn": {"mustbe": wanted}}

    # Variables -------------------------------------------------------------------------------------------------------

    def _variables(self, given: _Item) -> Variables:
        names, domains = _named(given)
        if not domains:
            raise self._fail("expected at least one variable", given)
        seen: set[str] = set()
        for name, domain in zip(names or (), domains, strict=False):
            if name in seen:
                raise self._fail(f"two variables are named {name!r}", domain)
            seen.add(name)
        sizes = {k for k in (_cardinality(domain.value) for domain in domains) if k is not None}
        if sum(sizes) > len(self.file.text) + SPARE_STATES:
            raise self._fail(f"a variable has {max(sizes)} states, too many for so short a file", given)
        distinct: dict[int | tuple[str, ...], int] = {}
        space_of = [distinct.setdefault(self._space(v, domain), len(distinct)) for v, domain in enumerate(domains)]
        spaces = [number_states(space) if isinstance(space, int) else space for space in distinct]
        codes = [
            {} if isinstance(space, int) else {state: code for code, state in enumerate(space)} for space in distinct
        ]
        self.codes = [codes[space] for space in space_of]
        self.sizes = [len(spaces[space]) for space in space_of]
        self.index = {name: v for v, name in enumerate(names or ())}
        known = RangeNames(len(domains)) if names is None else NameList(names)
        return Variables(known, spaces, np.array(space_of, np.int64))

    def _space(self, number: int, given: _Item) -> int | tuple[str, ...]:
        """The states of a variable, or their number if they have no names."""
        domain = _listed(given.value)
        size = _cardinality(domain)
        if size:
            return size
        if not isinstance(domain, list) or not domain or any(isinstance(state, (list, WordList)) for state in domain):
            message = f"variable {number}: expected a cardinality or a list of states, got {_shown(domain)}"
            raise self._fail(message, given)
        states = tuple(_name(state) for state in domain)
        if len(set(states)) < len(states):
            raise self._fail(f"variable {number}: states must be distinct names, got {_shown(domain)}", given)
        return states

    # Functions -------------------------------------------------------------------------------------------------------

    def _functions(self, given: _Item) -> list[CostFunction]:
        names, bodies = _named(given)
        labels = [f"function {number}" for number in range(len(bodies))]
        if names is not None:
            labels = [f"function {name!r}" for name in names]
            names = self._distinct(names)
        found = [self._function(label, body) for label, body in zip(labels, bodies, strict=True)]
        own: list[str | None] = [None] * len(found) if names is None else [*names]
        tables = {name: function.table for name, function in zip(own, found, strict=True)}
        return [
            CostFunction(function.scope, self._resolved(function, tables, label, body), name)
            for name, label, function, body in zip(own, labels, found, bodies, strict=True)
        ]

    def _distinct(self, names: list[str]) -> list[str]:
        """The names of functions, with a number added to later ones of the same name."""
        taken, found, renamed = {*names}, dict[str, None](), ""
        for name in names:
            own = name
            if name in found:
                own = next(other for n in count(2) if (other := f"{name} ({n})") not in taken)
                taken.add(own)
                renamed = renamed or f"{name!r}, all count, and the second becomes {own!r}"
            found[own] = None
        if renamed:
            warn(LossWarning(f"{self.file.path}: several functions are named {renamed}"))
        return [*found]

    def _resolved(
        self, function: _DeclaredFunction, tables: dict[str | None, Array | str], label: str, body: _Item
    ) -> Array:
        """The table of a function, which may be that of another."""
        if not isinstance(function.table, str):
            return function.table
        table = tables.get(function.table)
        if table is None or isinstance(table, str):
            message = f"{label}: no function with costs of its own is named {function.table!r}"
            raise self._fail(message, body)
        shape = tuple(self.sizes[v] for v in function.scope)
        if table.shape != shape:
            raise self._fail(f"{label} has cardinalities {shape}, but {function.table!r} has {table.shape}", body)
        return table

    def _function(self, label: str, body: _Item) -> _DeclaredFunction:
        if not isinstance(body.value, list):
            raise self._fail(f'{label}: expected {{"scope": ..., "costs": ...}}, got {_shown(body.value)}', body)
        plain = ("scope", "costs") if len(body.value) == 2 else ("scope", "defaultcost", "costs")
        fields = self._fields(body, plain, label)
        if "type" in fields:
            message = f"{label} is a global or arithmetic function, {_shown(fields['type'].value)}"
            raise self._fail(f"{message}: besag reads tables of costs only", fields["type"])
        unknown = next((key for key in fields if key not in ("scope", "defaultcost", "costs")), None)
        if unknown is not None or "costs" not in fields:
            message = f"{label}: expected scope, defaultcost and costs, got {_shown(', '.join(fields))}"
            raise self._fail(message, body)
        scope = self._scope(label, fields.get("scope", body._replace(value=None)))
        costs = fields["costs"]
        if isinstance(costs.value, str):
            return _DeclaredFunction(scope, costs.value)
        if not isinstance(costs.value, (list, WordList)):
            message = f"{label}: expected a list of costs or the name of a function, got {_shown(costs.value)}"
            raise self._fail(message, costs)
        shape = tuple(self.sizes[v] for v in scope)
        if "defaultcost" in fields:
            given = self._tuples(label, scope, fields["defaultcost"], costs)
        else:
            given = self._all_costs(label, shape, costs)
        return _DeclaredFunction(scope, self._energies(label, given, costs).reshape(shape))

    def _scope(self, label: str, item: _Item) -> tuple[int, ...]:
        given = _listed(item.value)
        if not isinstance(given, list) or len(given) > MAX_ARITY:
            raise self._fail(f"{label}: expected a scope of at most {MAX_ARITY} variables, got {_shown(given)}", item)
        scope = tuple(_code(name, self.index, len(self.codes)) for name in given)
        if -1 in scope:
            wrong = _shown(given[scope.index(-1)])
            raise self._fail(f"{label}: no variable is {wrong}; there are {len(self.codes)}", item)
        if len(set(scope)) != len(scope):
            raise self._fail(f"{label} names a variable twice", item)
        return scope

    def _all_costs(self, label: str, shape: tuple[int, ...], item: _Item) -> Array:
        costs = self._numbers(label, item.value, item)
        if len(costs) != prod(shape):
            sizes = " x ".join(map(str, shape))
            raise self._fail(f"{label}: expected {prod(shape)} costs, {sizes}, got {len(costs)}", item)
        return costs

    def _tuples(self, label: str, scope: tuple[int, ...], default: _Item, given: _Item) -> Array:
        """The costs of a default and of tuples (states, cost)."""
        shape, width, items = tuple(self.sizes[v] for v in scope), len(scope) + 1, _listed(given.value)
        if len(items) % width:
            message = f"{label}: expected tuples of {width - 1} states and a cost, got {len(items)} words, no multiple"
            raise self._fail(f"{message} of {width}", given)
        if not self.room.holds(shape):
            raise self._fail(f"{label} has {prod(shape)} costs, too many for so short a file", given)
        table = np.full(prod(shape), self._numbers(label, [default.value], default)[0])
        where = np.zeros(len(items) // width, np.int64)
        for axis, v in enumerate(scope):
            codes = np.array([_code(item, self.codes[v], shape[axis]) for item in items[axis::width]], np.int64)
            if (codes < 0).any():
                wrong = items[axis + width * int(np.argmin(codes))]
                raise self._fail(f"{label}: variable {axis} of its scope has no state {_shown(wrong)}", given)
            where = where * shape[axis] + codes
        table[where] = self._numbers(label, items[width - 1 :: width], given)
        return table

    def _numbers(self, label: str, items: Sequence[Any] | WordList, where: _Item) -> Array:
        if isinstance(items, WordList):
            try:
                return items.array()
            except ValueError:
                items = items.items()
        types = set(map(type, items))
        wrong = [] if types <= {int, float} else [item for item in items if not _is_cost(item)]
        if wrong:
            raise self._fail(f"{label}: expected a cost, got {_shown(wrong[0])}", where)
        return np.fromiter(map(float, items), np.float64, len(items))

    def _energies(self, label: str, costs: Array, where: _Item) -> Array:
        energies = 0.0 - costs if self.sign < 0 else costs
        if not (energies > -np.inf).all():
            wrong = costs[~(energies > -np.inf)][0]
            raise self._fail(f"{label}: costs must be finite numbers, got {wrong}", where)
        return energies

    def _fail(self, message: str, where: _Item) -> ParseError:
        return self.file.fail(message, *where.steps)


def _named(given: _Item) -> tuple[list[str] | None, list[_Item]]:
    """The names and contents of [name, content, ...]; no names if there are contents only."""
    items = given.value
    named = bool(items) and len(items) % 2 == 0 and all(isinstance(name, str) for name in items[::2])
    contents = [given.inner(number) for number in range(int(named), len(items), 1 + named)]
    return items[::2] if named else None, contents


def _listed(value: Any) -> Any:
    return value.items() if isinstance(value, WordList) else value


def _name(item: Any) -> str:
    return _LITERALS[item] if item is None or isinstance(item, bool) else str(item)


def _cardinality(domain: Any) -> int | None:
    """The number of states that a number stands for; None if it is no number."""
    if isinstance(domain, str) and _INTEGER.fullmatch(domain):
        domain = int(domain)
    return abs(domain) if type(domain) is int else None


def _code(item: Any, codes: dict[str, int], n: int) -> int:
    """The number of a variable or state given by name or by number; -1 if there is none."""
    if not isinstance(item, (int, float, list, WordList)) or isinstance(item, bool):
        name = _name(item)
        if name in codes or not _INTEGER.fullmatch(name):
            return codes.get(name, -1)
        item = int(name)
    return item if type(item) is int and 0 <= item < n else -1


def _is_cost(item: Any) -> bool:
    if isinstance(item, str):
        return is_number(item.encode("ascii", "replace"))
    return type(item) in (int, float)


def _shown(item: Any) -> str:
    """A piece of the file for a message."""
    item = _listed(item)
    text = repr(item[:8] if isinstance(item, list) else item)
    return text if len(text) <= 60 else f"{text[:57]}..."
