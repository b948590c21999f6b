"""Variables with names and named states, kept as arrays so that a million of them cost little.

`Variables` is a lazy sequence: it stores one tuple of state names for each distinct state space and one integer for
each variable; a `Variable` object is made only on demand. Names are a sequence that can look up a name: a list
(`NameList`), "0".."n-1" (`RangeNames`), or "row,column" of a grid (`GridNames`).

A state is matched by name, str(value). Where no state has that name, 1.0 and the text "1.0" match "1", because pandas
makes floats of integers beside NaN, and True and the text "true", in any case of letters, match the one state that is
"true" in any case of letters, because pandas makes booleans of such columns; False likewise.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

import numpy as np

from besag.arrays import IntArray, freeze, offsets_of
from besag.errors import ModelError
from besag.model.metadata import NONE, Metadata, check_metadata
from besag.text import did_you_mean

WHOLE = re.compile(r"(-?[0-9]+)\.0+")  # a whole number as a float is written


@dataclass(frozen=True, slots=True)
class Variable:
    """A discrete variable: its name, the names of its states, in order, and its metadata."""

    name: str
    states: tuple[str, ...]
    metadata: Metadata = field(default=NONE, compare=False, repr=False)

    @property
    def cardinality(self) -> int:
        """How many states it has."""
        return len(self.states)


class Names(Protocol):
    """A sequence of distinct names that can look up a name."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> str: ...
    def find(self, name: str) -> int | None:
        """The index of a name, or None."""


def _is_number(text: str) -> bool:
    """Whether a text is a number that can be an index; not one of thousands of digits, which int() refuses."""
    return text.isdecimal() and text.isascii() and len(text) < 20


class NameList:
    """Names given one by one."""

    __slots__ = ("_index", "_names")

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._index = {name: i for i, name in enumerate(self._names)}
        if len(self._index) != len(self._names):
            twice = next(name for i, name in enumerate(self._names) if self._index[name] != i)
            raise ModelError(f"variable names must differ; {twice!r} is given twice")

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> str:
        return self._names[index]

    def __repr__(self) -> str:
        return repr(list(self._names))

    def find(self, name: str) -> int | None:
        """The index of a name, or None."""
        return self._index.get(name)


@dataclass(frozen=True, slots=True)
class RangeNames:
    """The names "0" to "n-1"."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> str:
        return str(range(self.n)[index])

    def find(self, name: str) -> int | None:
        """The index of a name, or None."""
        index = int(name) if _is_number(name) else self.n
        return index if index < self.n and str(index) == name else None


@dataclass(frozen=True, slots=True)
class GridNames:
    """The names "row,column" of a grid, row by row."""

    height: int
    width: int

    def __len__(self) -> int:
        return self.height * self.width

    def __getitem__(self, index: int) -> str:
        row, column = divmod(range(len(self))[index], self.width)
        return f"{row},{column}"

    def find(self, name: str) -> int | None:
        """The index of a name, or None."""
        row, _, column = name.partition(",")
        if not (_is_number(row) and _is_number(column)):
            return None
        index = int(row) * self.width + int(column)
        inside = int(row) < self.height and int(column) < self.width
        return index if inside and self[index] == name else None


class UnionNames:
    """The names of a disjoint union: those of each part, prefixed by its number, "3:A"."""

    __slots__ = ("_offsets", "_parts")

    def __init__(self, parts: Sequence[Names]) -> None:
        self._parts = tuple(parts)
        self._offsets = offsets_of(np.array([len(part) for part in parts], np.int64))

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def __getitem__(self, index: int) -> str:
        index = range(len(self))[index]
        part = int(np.searchsorted(self._offsets, index, side="right")) - 1
        return f"{part}:{self._parts[part][index - int(self._offsets[part])]}"

    def find(self, name: str) -> int | None:
        """The index of a name, or None."""
        part, _, rest = name.partition(":")
        if not _is_number(part) or int(part) >= len(self._parts):
            return None
        local = self._parts[int(part)].find(rest)
        return None if local is None else int(self._offsets[int(part)]) + local


class Variables(Sequence[Variable]):
    """All variables of a model, in order: a lazy sequence over arrays.

    names: V of them. spaces: the distinct state spaces. space_of (V,): the number of each variable's space.
    cardinalities (V,); state_offsets (V + 1,): where a variable's states begin on the flat axis of S states.
    metadata: of the variables that have any, by index.
    """

    __slots__ = ("_codes", "cardinalities", "metadata", "names", "space_of", "spaces", "state_offsets")

    def __init__(
        self,
        names: Names,
        spaces: Sequence[tuple[str, ...]],
        space_of: IntArray,
        metadata: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        if len(names) == 0:
            raise ModelError("a model needs at least one variable; none was given")
        self.names = names
        self.spaces = tuple(spaces)
        self.space_of = freeze(np.asarray(space_of, np.int64))
        self._codes = tuple({state: i for i, state in enumerate(space)} for space in self.spaces)
        for space, codes in zip(self.spaces, self._codes, strict=True):
            if not space or len(codes) != len(space):
                where = names[int(np.argmax(self.space_of == self.spaces.index(space)))]
                raise ModelError(f"states of {where!r} must be one or more distinct names, got {list(space)}")
        sizes = np.array([len(space) for space in self.spaces], np.int64)
        self.cardinalities: IntArray = freeze(sizes[self.space_of])
        self.state_offsets: IntArray = freeze(offsets_of(self.cardinalities))
        given = (metadata or {}).items()
        self.metadata = {int(v): check_metadata(entries, repr(names[v])) for v, entries in given if entries}

    @classmethod
    def from_states(cls, states: Mapping[str, Sequence[object]]) -> Variables:
        """Variables from {name: states}; a state space that occurs often is stored once."""
        spaces = [tuple(str(state) for state in given) for given in states.values()]
        return cls.from_spaces(NameList(str(name) for name in states), spaces)

    @classmethod
    def from_spaces(
        cls,
        names: Names,
        spaces: Sequence[tuple[str, ...]],
        metadata: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> Variables:
        """Variables from their names and the state space of each."""
        number: dict[tuple[str, ...], int] = {}
        space_of = np.array([number.setdefault(space, len(number)) for space in spaces], np.int64)
        return cls(names, tuple(number), space_of, metadata)

    @classmethod
    def alike(cls, names: Names, n_states: Any) -> Variables:
        """Variables that all have the states "0".."n_states - 1"."""
        if not isinstance(n_states, (int, np.integer)) or n_states < 1:
            raise ModelError(f"a variable needs at least one state, a whole number n_states, got {n_states!r}")
        return cls(names, (number_states(int(n_states)),), np.zeros(len(names), np.int64))

    def __reduce__(self) -> tuple[Any, ...]:
        return Variables, (self.names, self.spaces, self.space_of, self.metadata)

    def with_metadata(self, metadata: Mapping[int, Mapping[str, Any]]) -> Variables:
        """The same variables with other metadata."""
        return Variables(self.names, self.spaces, self.space_of, metadata)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int | str) -> Variable: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Variable]: ...
    def __getitem__(self, index: int | str | slice) -> Variable | Sequence[Variable]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = self.index(index) if isinstance(index, str) else range(len(self))[index]
        return Variable(self.names[index], self.states(index), self.metadata.get(index, NONE))

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shown = ", ".join(variable.name for variable in self[:6])
        return f"Variables({shown}{', ...' if len(self) > 6 else ''}; {len(self)} in all)"

    def states(self, index: int) -> tuple[str, ...]:
        """The state names of variable `index`."""
        return self.spaces[int(self.space_of[index])]

    def names_at(self, indices: Iterable[int]) -> list[str]:
        """The names of some variables."""
        return [self.names[int(i)] for i in indices]

    def index(self, name: object, start: int = 0, stop: int | None = None) -> int:
        """The index of a name; ModelError with suggestions if there is none."""
        found = self.names.find(str(name.name if isinstance(name, Variable) else name))
        if found is None:
            raise ModelError(self.unknown(str(name)))
        return found

    def unknown(self, name: str) -> str:
        """The message for a name that is no variable."""
        known = [self.names[i] for i in range(min(len(self), 10_000))]
        hint = did_you_mean(name, known) or f"there are {', '.join(map(repr, known[:6]))}"
        return f"no variable is named {name!r}; {hint} ({len(self)} variables in all)"

    def find_state(self, index: int, value: object) -> int | None:
        """The code of a state of variable `index` by name, or as the module says; None where there is none."""
        codes, text = self._codes[int(self.space_of[index])], str(value)
        code = codes.get(text)
        if code is not None:
            return code
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            return codes.get(str(int(value)))
        if text.casefold() in ("true", "false"):
            same = [code for state, code in codes.items() if state.casefold() == text.casefold()]
            return same[0] if len(same) == 1 else None
        whole = WHOLE.fullmatch(text)
        return codes.get(whole[1]) if whole else None

    def no_state(self, index: int, value: object, hint: str = "") -> str:
        """The message for a value that is no state; hint: what to do, else a state that is spelt nearly so."""
        states, value = self.states(index), value.item() if isinstance(value, np.generic) else value
        hint = hint or did_you_mean(str(value), states)
        return f"{self.names[index]!r} has no state {value!r}; {hint + ' It' if hint else 'it'} has {list(states)}"

    @property
    def common_cardinality(self) -> int | None:
        """K if all variables have K states, else None."""
        first = int(self.cardinalities[0])
        return first if len(self.spaces) == 1 or bool((self.cardinalities == first).all()) else None


def number_states(n: int) -> tuple[str, ...]:
    """The states "0".."n-1" of a variable given by its cardinality."""
    return tuple(str(i) for i in range(n))


def take_variables(variables: Variables, parts: Sequence[tuple[int, int]]) -> Variables:
    """The variables of some index ranges, named as a union of parts."""
    names = [SliceNames(variables.names, start, stop) for start, stop in parts]
    space_of = np.concatenate([variables.space_of[start:stop] for start, stop in parts])
    return Variables(names[0] if len(names) == 1 else UnionNames(names), variables.spaces, space_of)


@dataclass(frozen=True, slots=True)
class SliceNames:
    """The names of one part of a union, without its prefix."""

    names: Names
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, index: int) -> str:
        name = self.names[self.start + range(len(self))[index]]
        return name.partition(":")[2] if isinstance(self.names, UnionNames) else name

    def find(self, name: str) -> int | None:
        """The index of a name, or None."""
        if isinstance(self.names, UnionNames):
            name = f"{self.names[self.start].partition(':')[0]}:{name}"
        found = self.names.find(name)
        return found - self.start if found is not None and self.start <= found < self.stop else None


def mapping_from(given: Any, expected: str) -> Mapping[Any, Any]:
    """The given value if it is a dict; else a ModelError that says what was expected."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{expected}, got {type(given).__name__} {reprlib.repr(given)}")
    return given


def variables_from(variables: Variables | Mapping[str, Any] | Sequence[Any]) -> Variables:
    """{name: states or cardinality}, or a list of cardinalities or states -> Variables, which may also be given."""
    if isinstance(variables, Variables):
        return variables
    if isinstance(variables, Mapping):
        if not variables:
            raise ModelError("a model needs at least one variable; none was given")
        _refuse_tuples(variables)
        names = NameList(str(name) for name in variables)
        return Variables.from_spaces(names, [states_from(given, str(name)) for name, given in variables.items()])
    if isinstance(variables, str) or not isinstance(variables, Iterable):
        mapping_from(variables, "variables must be {name: states or cardinality}, or a list of states or cardinalities")
    listed = list(variables)
    return Variables.from_spaces(
        RangeNames(len(listed)), [states_from(given, str(i)) for i, given in enumerate(listed)]
    )


def _refuse_tuples(names: Iterable[object]) -> None:
    """ModelError for names that are tuples, since a tuple in a scope would mean several variables."""
    for name in names:
        if isinstance(name, tuple):
            text = ",".join(map(str, name))
            raise ModelError(f"names of variables are text, and {name!r} is a tuple; name it {text!r}, in scopes too")


def states_from(given: object, name: str) -> tuple[str, ...]:
    """A cardinality or a list of states -> state names."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if given < 1:
            raise ModelError(f"variable {name!r} needs at least one state, got {given}")
        return number_states(int(given))
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"variable {name!r}: expected a cardinality or a list of states, got {given!r}")
    states = tuple(str(state) for state in given)
    if not states or len(set(states)) != len(states):
        raise ModelError(f"states of {name!r} must be one or more distinct names, got {list(states)}")
    return states
