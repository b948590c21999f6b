"""Things with options that are named by text: engines, optimisers.

Each is a frozen dataclass of options. "bp[damping=0.3]" is the one registered as "bp", with that option and the usual
values of all others. A Registry says what there is, makes objects of text and text of objects, and checks options:

    kinds     an option is of the kind that its field is declared as
    ranges    what else an option must be, which a dataclass asks for in its __post_init__; None is as declared
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from besag.errors import CapabilityError
from besag.text import did_you_mean

LEAST = {"n_threads": 1, "memory_limit": 1, "n_samples": 1, "k": 1, "seed": 0}  # of options that are whole numbers
ABOVE_ZERO = math.ulp(0.0)

T = TypeVar("T")


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Registry(Generic[T]):
    """What is registered by name.

    what: "engine", for messages. verb: a method that each of them has. example: the name of one. entries: module and
    class, imported when asked for, so that none costs anything until it is used.
    """

    what: str
    verb: str
    example: str
    entries: Mapping[str, tuple[str, str]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def find(self, name: str) -> type[Any]:
        """The class of a name."""
        if name not in self.entries:
            head, bracket, rest = name.partition("(")
            hint = f"write {head}[{rest.rstrip(')')}]" if bracket and head in self.entries else did_you_mean(name, self)
            text = f"no {self.what} is named {name!r}; there are {', '.join(sorted(self))}"
            raise CapabilityError("; ".join(filter(None, (text, hint))))
        module, attribute = self.entries[name]
        found: type[Any] = getattr(importlib.import_module(module), attribute)
        return found

    def read(self, spec: str | T, **defaults: Any) -> T:
        """One from text or an object; a keyword fills an option of the same name that the text leaves open.

        >>> from besag.infer.engine import ENGINES
        >>> ENGINES.read("brute[memory_limit=1000]", k=2)
        Brute(memory_limit=1000, n_samples=1, k=2)
        """
        given = {option: value for option, value in defaults.items() if value is not None}
        if not isinstance(spec, str):
            return self._filled(spec, given)
        name, texts = split_spec(spec)
        kind = self.find(name)
        known = kinds_of(kind)
        for option in texts:
            if option not in known:
                text = f"{self.what} {name!r} has no option {option!r}; it has {', '.join(sorted(known)) or 'none'}"
                raise CapabilityError("; ".join(filter(None, (text, did_you_mean(option, known)))))
        options = {k: v if known[k][0] == "str" else read_value(v) for k, v in texts.items()}
        made: T = kind(**{k: v for k, v in given.items() if k in known} | options)
        if options:
            self._check_kinds(made)
        return made

    def _filled(self, spec: T, given: Mapping[str, Any]) -> T:
        if not is_dataclass(spec) or isinstance(spec, type) or not hasattr(spec, self.verb):
            text = f'{self.what} must be text such as "{self.example}" or an {self.what} object'
            raise CapabilityError(f"{text}, got {spec!r}")
        self._check_kinds(spec)
        left = {f.name for f in fields(spec) if getattr(spec, f.name) == _default(f)}
        filled = {option: value for option, value in given.items() if option in left}
        return replace(spec, **filled) if filled else spec

    def name_of(self, of: object) -> str:
        """The name of an object."""
        path = (type(of).__module__, type(of).__name__)
        return next((name for name, entry in self.entries.items() if entry == path), type(of).__name__.lower())

    def text_of(self, of: T) -> str:
        """The text of an object: the inverse of `read`."""
        options = [
            f"{f.name}={getattr(of, f.name)}"
            for f in fields(of)  # type: ignore[arg-type]
            if getattr(of, f.name) != _default(f)
        ]
        return self.name_of(of) + (f"[{','.join(options)}]" if options else "")

    def _check_kinds(self, of: object) -> None:
        """CapabilityError where an option is not of the kind that its field is declared as."""
        for option, kinds in kinds_of(of).items():
            value = getattr(of, option)
            if (value is None and "None" in kinds) or (isinstance(value, str) and "str" in kinds):
                continue
            least = LEAST.get(option, -math.inf)
            if kinds[0] == "int" and not (is_whole(value) and value >= least):
                expected = "a whole number" + (f" of at least {least}" if option in LEAST else "")
            elif kinds[0] == "bool" and not isinstance(value, (bool, np.bool_)):
                expected = "true or false"
            elif kinds[0] == "float" and not is_number(value):
                expected = "a number"
            else:
                continue
            text = f"{self.what} {self.name_of(of)!r}: {option} must be {expected}"
            raise CapabilityError(f"{text}, got {str(value)!r}")

    def check_numbers(self, of: object, *options: str, least: float = 0.0, below: float = math.inf) -> None:
        """CapabilityError where an option is not a number from `least` to less than `below`."""
        for option, value in self._given(of, options):
            if not (is_number(value) and least <= value < below):
                raise self._refusal(of, option, value, f"a number {_range(least, below)}")

    def check_positive(self, of: object, *options: str) -> None:
        """CapabilityError where an option is not a finite number above 0."""
        self.check_numbers(of, *options, least=ABOVE_ZERO)

    def check_counts(self, of: object, *options: str, least: int = 1) -> None:
        """CapabilityError where an option is not a whole number from `least` on."""
        for option, value in self._given(of, options):
            if not (is_whole(value) and value >= least):
                raise self._refusal(of, option, value, f"a whole number of at least {least}")

    def check_choice(self, of: object, option: str, allowed: tuple[object, ...]) -> None:
        """CapabilityError where an option is none of those allowed."""
        value = getattr(of, option)
        if not any(value is choice or value == choice for choice in allowed):
            raise self._refusal(of, option, value, f"one of {', '.join(map(repr, allowed))}")

    def _given(self, of: object, options: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """Options and their values, but None where that may be."""
        kinds = kinds_of(of)
        values = ((option, getattr(of, option)) for option in options)
        return ((option, value) for option, value in values if value is not None or "None" not in kinds[option])

    def _refusal(self, of: object, option: str, value: object, expected: str) -> CapabilityError:
        return CapabilityError(f"{self.name_of(of)}: {option} must be {expected}, got {value!r}")


def _range(least: float, below: float) -> str:
    if least == ABOVE_ZERO:
        return "above 0" if below == math.inf else f"between 0 and {below:g}"
    return f"from {least:g}" + (" on" if below == math.inf else f" to below {below:g}")


def kinds_of(of: Any) -> dict[str, list[str]]:
    """How the options of a dataclass, or of an object of it, are declared: {"root": ["str", "None"]}."""
    return {f.name: str(f.type).split(" | ") for f in fields(of)}


def _default(field: Any) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """Name and options of a text, as they are written.

    >>> split_spec("bp[damping=0.3, schedule=residual]")
    ('bp', {'damping': '0.3', 'schedule': 'residual'})
    >>> split_spec("likelihood[engine=gibbs[n_samples=5, burn_in=9]]")
    ('likelihood', {'engine': 'gibbs[n_samples=5, burn_in=9]'})
    """
    name, bracket, rest = text.strip().partition("[")
    if not bracket:
        return name, {}
    if not rest.endswith("]"):
        raise CapabilityError(f"{text!r} opens a bracket and does not close it; write name[option=value,...]")
    options = {}
    for part in filter(None, (piece.strip() for piece in _pieces(rest[:-1]))):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not option:
            raise CapabilityError(f"{text!r}: expected option=value, got {part!r}")
        options[option] = value
    return name.strip(), options


def _pieces(text: str) -> Iterator[str]:
    """A list of options, cut at commas before the next option; those within brackets belong to the option before."""
    start, depth = 0, 0
    for found in re.finditer(r"[\[\]]|,(?=\s*\w+\s*=)", text):
        depth += {"[": 1, "]": -1}.get(found.group(), 0)
        if found.group() == "," and depth == 0:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def read_value(text: str) -> object:
    """Numbers, true, false and none as such; all else is text."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)
