"""CFN, cost function networks in toulbar2's JSON (`besag.io.relaxed` on its liberties).

    file       = { "problem": problem, "variables": { name: domain, ... }, "functions": { name: function, ... } }
    problem    = { "name": text, "mustbe": "<number" | ">number" }
    domain     = cardinality | [ state, ... ]
    function   = { "scope": [ variable, ... ], "costs": [ cost, ... ] }      all costs, the last variable fastest
               | { "scope": ..., "defaultcost": cost, "costs": [ state, ..., cost, ... ] }   tuples with their costs
               | { "scope": ..., "costs": name }                             the costs of another function

Variables and states go by name or by number from 0, and numbers may stand in quotes. Variables and functions may be
lists without names, and the keys of problem and function may be left out. A negative cardinality is an interval of as
many states. Of a tuple that is given twice the last counts.

Costs are energies, as they stand. "<number" asks for a minimum, and a cost of that number or more is a hard zero.
">number" asks for a maximum: energies are the costs NEGATED, so that the most probable assignment is the one of the
largest sum, and a cost of that number or less is a hard zero. metadata["cfn"] keeps "mustbe". A function without
variables is a constant and is folded into another. Global and arithmetic functions, which have a "type", are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray
from besag.errors import ParseError
from besag.io.costs import SPARE_STATES, CostFunction, model_of_costs
from besag.io.files import is_number, line_of, text_of
from besag.io.formats import Source
from besag.io.parts import MAX_ARITY
from besag.io.relaxed import nested, without_comments
from besag.io.room import Room
from besag.model.model import Model
from besag.model.variable import NameList, RangeNames, Variables, numbered_states

_START = re.compile(r"\s*+[{\[]\s*+\"?problem\b")
_MUST_BE = re.compile(r"\s*+([<>])\s*+(\S++)\s*+")
_INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_QUOTED = re.compile(r"function '(.*)'", re.DOTALL)
_LITERALS = {True: "true", False: "false", None: "null"}


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a CFN."""
    return _START.match(without_comments(head.decode("latin-1"))) is not None


def read(source: Source) -> Model:
    """A Model from the content of a CFN file."""
    return _Reader(text_of(source.data, source.path), source.path).model()


class _Function(NamedTuple):
    """A function while the file is read: its scope, and a table or the name of the function that has it."""

    scope: tuple[int, ...]
    table: Array | str


class _Reader:
    """The state of reading one file: the variables by name, the states of each, and the bound on energies."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.room = text, path, Room(len(text))
        self.index: dict[str, int] = {}
        self.codes: list[dict[str, int]] = []
        self.sign, self.bound = 1.0, np.inf

    def model(self) -> Model:
        """The whole file."""
        parts = self._fields(nested(self.text, self.path), ("problem", "variables", "functions"), "the file")
        for key in ("problem", "variables", "functions"):
            if not isinstance(parts.get(key), list):
                raise self._fail(f'expected "{key}": {{ ... }}', key)
        metadata = self._problem(parts["problem"])
        variables = self._variables(parts["variables"])
        return model_of_costs(variables, self._functions(parts["functions"]), metadata)

    def _fields(self, items: list[Any], keys: tuple[str, ...], where: str) -> dict[str, Any]:
        """The values of an object by key, or of a list without keys in the order of the keys."""
        if not any(isinstance(item, str) and item in keys for item in items[::2]):
            if len(items) > len(keys):
                raise self._fail(f"{where}: expected {', '.join(keys)}, got {len(items)} things", where)
            return dict(zip(keys, items, strict=False))
        found: dict[str, Any] = {}
        for key, value in zip(items[::2], items[1::2], strict=False):
            if not isinstance(key, str) or key in found:
                raise self._fail(f"{where}: expected keys that are different texts, got {_shown(key)}", where)
            found[key] = value
        if len(items) % 2:
            raise self._fail(f"{where}: the last key, {_shown(items[-1])}, has no value", where)
        return found

    def _problem(self, items: list[Any]) -> dict[str, Any]:
        """The name and the bound, as metadata."""
        fields = self._fields(items, ("name", "mustbe"), "the problem")
        wanted = fields.get("mustbe")
        match = _MUST_BE.fullmatch(wanted) if isinstance(wanted, str) else None
        if match is None or not _is_cost(match.group(2)) or np.isnan(float(match.group(2))):
            raise self._fail(f'expected "mustbe": "<number" or ">number", got {_shown(wanted)}', "mustbe")
        self.sign = 1.0 if match.group(1) == "<" else -1.0
        self.bound = self.sign * float(match.group(2))
        named = {} if isinstance(fields.get("name", []), list) else {"name": _name(fields["name"])}
        return {**named, "cfn": {"mustbe": wanted}}

    # Variables -------------------------------------------------------------------------------------------------------

    def _variables(self, items: list[Any]) -> Variables:
        names, domains = _named(items)
        if not domains:
            raise self._fail("expected at least one variable", "variables")
        sizes = {k for k in map(_cardinality, domains) if k is not None}
        if sum(sizes) > len(self.text) + SPARE_STATES:
            raise self._fail(f"a variable has {max(sizes)} states, more than this file can mean", "variables")
        distinct: dict[int | tuple[str, ...], int] = {}
        space_of = [distinct.setdefault(self._space(v, domain), len(distinct)) for v, domain in enumerate(domains)]
        spaces = [numbered_states(space) if isinstance(space, int) else space for space in distinct]
        codes = [{state: code for code, state in enumerate(space)} for space in spaces]
        self.codes = [codes[space] for space in space_of]
        self.index = {name: v for v, name in enumerate(names or ())}
        known = RangeNames(len(domains)) if names is None else NameList(names)
        return Variables(known, spaces, np.array(space_of, np.int64))

    def _space(self, number: int, domain: Any) -> int | tuple[str, ...]:
        """The states of a variable, or their number where they have no names."""
        size = _cardinality(domain)
        if size:
            return size
        if not isinstance(domain, list) or not domain or any(isinstance(state, list) for state in domain):
            message = f"variable {number}: expected a cardinality or a list of states, got {_shown(domain)}"
            raise self._fail(message, "variables")
        return tuple(_name(state) for state in domain)

    # Functions -------------------------------------------------------------------------------------------------------

    def _functions(self, items: list[Any]) -> list[CostFunction]:
        names, bodies = _named(items)
        labels = [f"function {number}" for number in range(len(bodies))]
        if names is not None:
            labels = [f"function {name!r}" for name in names]
            self._check_names(names)
        found = [self._function(label, body) for label, body in zip(labels, bodies, strict=True)]
        own: list[str | None] = [None] * len(found) if names is None else [*names]
        tables = {name: function.table for name, function in zip(own, found, strict=True)}
        return [
            CostFunction(function.scope, self._resolved(function, tables, label), name)
            for name, label, function in zip(own, labels, found, strict=True)
        ]

    def _check_names(self, names: list[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise self._fail(f"two functions are named {name!r}", name)
            seen.add(name)

    def _resolved(self, function: _Function, tables: dict[str | None, Array | str], label: str) -> Array:
        """The table of a function, which may be that of another."""
        if not isinstance(function.table, str):
            return function.table
        table = tables.get(function.table)
        if table is None or isinstance(table, str):
            raise self._fail(f"{label}: no function with costs of its own is named {function.table!r}", label)
        shape = tuple(len(self.codes[v]) for v in function.scope)
        if table.shape != shape:
            raise self._fail(f"{label} has cardinalities {shape}, but {function.table!r} has {table.shape}", label)
        return table

    def _function(self, label: str, body: Any) -> _Function:
        if not isinstance(body, list):
            raise self._fail(f'{label}: expected {{"scope": ..., "costs": ...}}, got {_shown(body)}', label)
        plain = ("scope", "costs") if len(body) == 2 else ("scope", "defaultcost", "costs")
        fields = self._fields(body, plain, label)
        if "type" in fields:
            kind = _shown(fields["type"])
            raise self._fail(
                f"{label} is a global or arithmetic function, {kind}: besag reads tables of costs only", label
            )
        unknown = next((key for key in fields if key not in ("scope", "defaultcost", "costs")), None)
        if unknown is not None or "costs" not in fields:
            message = f"{label}: expected scope, defaultcost and costs, got {_shown(', '.join(fields))}"
            raise self._fail(message, label)
        scope = self._scope(label, fields.get("scope"))
        costs = fields["costs"]
        if isinstance(costs, str):
            return _Function(scope, costs)
        if not isinstance(costs, list):
            raise self._fail(f"{label}: expected a list of costs or the name of a function, got {_shown(costs)}", label)
        shape = tuple(len(self.codes[v]) for v in scope)
        given = self._tuples(label, scope, fields["defaultcost"], costs) if "defaultcost" in fields else costs
        if isinstance(given, list):
            given = self._all_costs(label, shape, given)
        return _Function(scope, self._energies(label, given).reshape(shape))

    def _scope(self, label: str, given: Any) -> tuple[int, ...]:
        if not isinstance(given, list) or len(given) > MAX_ARITY:
            raise self._fail(f"{label}: expected a scope of at most {MAX_ARITY} variables, got {_shown(given)}", label)
        scope = tuple(_code(item, self.index, len(self.codes)) for item in given)
        if -1 in scope:
            wrong = _shown(given[scope.index(-1)])
            raise self._fail(f"{label}: no variable is {wrong}; there are {len(self.codes)}", label)
        if len(set(scope)) != len(scope):
            raise self._fail(f"{label} names a variable twice", label)
        return scope

    def _all_costs(self, label: str, shape: tuple[int, ...], costs: list[Any]) -> Array:
        if len(costs) != prod(shape):
            raise self._fail(
                f"{label}: expected {prod(shape)} costs, {' x '.join(map(str, shape))}, got {len(costs)}", label
            )
        return self._numbers(label, costs)

    def _tuples(self, label: str, scope: tuple[int, ...], default: Any, items: list[Any]) -> Array:
        """The costs of a default and of tuples (states, cost)."""
        shape, width = tuple(len(self.codes[v]) for v in scope), len(scope) + 1
        if len(items) % width:
            message = f"{label}: expected tuples of {width - 1} states and a cost, got {len(items)} words, no multiple"
            raise self._fail(f"{message} of {width}", label)
        if not self.room.holds(shape):
            raise self._fail(f"{label} has {prod(shape)} costs, too many to be meant", label)
        table = np.full(prod(shape), self._numbers(label, [default])[0])
        where = np.zeros(len(items) // width, np.int64)
        for axis, v in enumerate(scope):
            codes = np.array([_code(item, self.codes[v], shape[axis]) for item in items[axis::width]], np.int64)
            if (codes < 0).any():
                wrong = items[axis + width * int(np.argmin(codes))]
                raise self._fail(f"{label}: variable {axis} of its scope has no state {_shown(wrong)}", label)
            where = where * shape[axis] + codes
        table[where] = self._numbers(label, items[width - 1 :: width])
        return table

    def _numbers(self, label: str, items: Sequence[Any]) -> Array:
        types = set(map(type, items))
        wrong = [] if types <= {int, float} else [item for item in items if not _is_cost(item)]
        if wrong:
            raise self._fail(f"{label}: expected a cost, got {_shown(wrong[0])}", label)
        return np.fromiter(map(float, items), np.float64, len(items))

    def _energies(self, label: str, costs: Array) -> Array:
        energies = 0.0 - costs if self.sign < 0 else costs
        forbidden: BoolArray = energies >= self.bound
        if not (energies > -np.inf).all():
            raise self._fail(f"{label}: costs must be finite numbers, got {costs[~(energies > -np.inf)][0]}", label)
        return np.where(forbidden, np.inf, energies)

    def _fail(self, message: str, near: str) -> ParseError:
        """The error of a thing that is named in the file, with the line of that name."""
        quoted = _QUOTED.fullmatch(near)
        name = re.escape(near if quoted is None else quoted.group(1))
        place = re.search(rf'(?<![^\s"\[{{,:]){name}(?=["\s:\[{{])', self.text)
        return ParseError(message, path=self.path, line=None if place is None else line_of(self.text, place.start()))


def _named(items: list[Any]) -> tuple[list[str] | None, list[Any]]:
    """The names and contents of [name, content, ...]; no names where the contents stand alone."""
    if items and len(items) % 2 == 0 and all(isinstance(name, str) for name in items[::2]):
        return items[::2], items[1::2]
    return None, items


def _name(item: Any) -> str:
    return _LITERALS[item] if item is None or isinstance(item, bool) else str(item)


def _cardinality(domain: Any) -> int | None:
    """How many states a number means; None where it is no number."""
    if isinstance(domain, str) and _INTEGER.fullmatch(domain):
        domain = int(domain)
    return abs(domain) if type(domain) is int else None


def _code(item: Any, codes: dict[str, int], n: int) -> int:
    """A variable or a state by name or by number; -1 where there is none."""
    if not isinstance(item, (int, float, list)) or isinstance(item, bool):
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
    text = repr(item[:8] if isinstance(item, list) else item)
    return text if len(text) <= 60 else f"{text[:57]}..."
