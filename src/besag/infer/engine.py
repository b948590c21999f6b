"""Engines: what turns a Problem into a Result, and how they are named.

An engine is a frozen dataclass of options. What it can give, and how good it is, stands in its `capabilities`. By text,
"bp[damping=0.3]" is the engine registered as "bp" with that option; `engine_text` gives the text back.

`want` is a set of
    log_partition  log Z, (N,) or (B,)
    variables      all variable marginals
    factors        every factor marginal, stored
    moments        the gradient of sum_n w_n log Z_n by every number that the Problem holds, (L,): summed where a table
                   is shared, contracted where it is structured; learning asks for these and stores no factor marginals
    map            the labelling of least energy (the k best where the engine can)
    samples        draws from p
    messages       what was sent, for people to look at
    trace          how an iterative engine got on, step by step
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.result import Result
from besag.text import did_you_mean

Want: TypeAlias = Literal["log_partition", "variables", "factors", "moments", "map", "samples", "messages", "trace"]
Bound: TypeAlias = Literal["exact", "lower", "upper", "estimate"]
OnStep: TypeAlias = Callable[[Result], None]

SHOWS: frozenset[Want] = frozenset({"messages", "trace"})  # of an engine's work, where it can


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which wants an engine serves, how its log Z is to be read, and what it needs."""

    wants: frozenset[Want]
    bound: Bound
    needs: str = "any graph"


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_dtype(dtype: object) -> None:
    """CapabilityError unless it names one of the two types of numbers."""
    if dtype not in ("float32", "float64"):
        raise CapabilityError(f"dtype must be float32 or float64, got {dtype!r}")


class Engine(Protocol):
    """What every engine offers."""

    capabilities: ClassVar[Capabilities]

    def infer(
        self,
        problem: Problem,
        want: frozenset[Want],
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """Answers."""


# Engine by text -> module and class; imported when asked for, so that no engine costs anything until it runs.
REGISTRY: Mapping[str, tuple[str, str]] = {
    "ais": ("besag.infer.sampling.ais", "AIS"),
    "auto": ("besag.infer.auto.engine", "Auto"),
    "exact": ("besag.infer.auto.engine", "Exact"),
    "bp": ("besag.infer.bp.engine", "BP"),
    "brute": ("besag.infer.brute", "Brute"),
    "elimination": ("besag.infer.junction.elimination", "Elimination"),
    "gibbs": ("besag.infer.sampling.gibbs", "Gibbs"),
    "join_graph": ("besag.infer.join_graph.engine", "JoinGraph"),
    "junction_tree": ("besag.infer.junction.engine", "JunctionTree"),
    "mean_field": ("besag.infer.mean_field.engine", "MeanField"),
    "tree": ("besag.infer.trees.engine", "Tree"),
    "trw": ("besag.infer.trw.engine", "TRW"),
}

COUNTS = frozenset({"n_threads", "memory_limit", "n_samples", "k"})  # options that are whole numbers from 1 on
CHOOSERS = ("auto", "exact")  # engines that only choose another


def engine_class(name: str) -> type[Any]:
    """The class of an engine by its name."""
    if name not in REGISTRY:
        word, parenthesis, options = name.partition("(")
        hint = did_you_mean(word, REGISTRY)
        if parenthesis and word in REGISTRY:
            hint = f"options are in brackets, {word}[{options.rstrip(')')}]."
        known = f"there are {', '.join(sorted(REGISTRY))}"
        raise CapabilityError(f"no engine is named {name!r}; {hint + ' T' + known[1:] if hint else known}")
    module, attribute = REGISTRY[name]
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def make_engine(spec: str | Engine, **defaults: Any) -> Engine:
    """An engine from text or an object; a keyword fills an option of the same name that the text leaves open.

    >>> make_engine("brute[memory_limit=1000]")
    Brute(memory_limit=1000, n_samples=1, k=1)
    """
    if not isinstance(spec, str):
        if not is_dataclass(spec) or isinstance(spec, type) or not hasattr(spec, "infer"):
            raise CapabilityError(f'engine must be text such as "tree" or an engine object, got {spec!r}')
        _check_types(spec)
        open_fields = {f.name for f in fields(spec) if getattr(spec, f.name) == _default(f)}
        filled = {k: v for k, v in defaults.items() if k in open_fields and v is not None}
        return replace(spec, **filled) if filled else spec
    name, texts = _parts(spec)
    kind = engine_class(name)
    known = {f.name: str(f.type) for f in fields(kind)}
    options = {k: v if known.get(k, "").startswith("str") else _value(v) for k, v in texts.items()}
    for option in options:
        if option not in known:
            raise CapabilityError(
                f"engine {name!r} has no option {option!r}; it has {', '.join(sorted(known)) or 'none'}"
            )
    filled = {k: v for k, v in defaults.items() if k in known and k not in options and v is not None}
    engine: Engine = kind(**filled, **options)
    if options:
        _check_types(engine)
    return engine


def _check_types(engine: Engine) -> None:
    """CapabilityError where an option is not of the kind that its field is declared as."""
    name = engine_name(engine)
    for field in fields(engine):  # type: ignore[arg-type]
        option, value, kinds = field.name, getattr(engine, field.name), str(field.type).split(" | ")
        if (value is None and "None" in kinds) or (isinstance(value, str) and "str" in kinds):
            continue
        least = 1 if option in COUNTS else -np.inf
        if kinds[0] == "int" and not (is_whole(value) and value >= least):
            at_least = " of at least 1" if option in COUNTS else ""
            raise CapabilityError(f"engine {name!r}: {option} must be a whole number{at_least}, got {str(value)!r}")
        if kinds[0] == "float" and not is_number(value):
            raise CapabilityError(f"engine {name!r}: {option} must be a number, got {str(value)!r}")


def _default(field: Any) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def parse_engine(text: str) -> tuple[str, dict[str, Any]]:
    """The name and options of an engine's text.

    >>> parse_engine("bp[damping=0.3, schedule=residual]")
    ('bp', {'damping': 0.3, 'schedule': 'residual'})
    """
    name, texts = _parts(text)
    return name, {option: _value(value) for option, value in texts.items()}


def _parts(text: str) -> tuple[str, dict[str, str]]:
    name, bracket, rest = text.strip().partition("[")
    if not bracket:
        return name, {}
    if not rest.endswith("]"):
        raise CapabilityError(f"{text!r} opens a bracket and does not close it; write name[option=value,...]")
    options = {}
    for part in filter(None, (piece.strip() for piece in re.split(r",(?=\s*\w+\s*=)", rest[:-1]))):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not option:
            raise CapabilityError(f"{text!r}: expected option=value, got {part!r}")
        options[option] = value
    return name.strip(), options


def _value(text: str) -> object:
    """Numbers, true, false and none as such; all else is text."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def engine_name(engine: Engine) -> str:
    """The text name of an engine object."""
    path = (type(engine).__module__, type(engine).__name__)
    return next((name for name, entry in REGISTRY.items() if entry == path), type(engine).__name__.lower())


def engine_text(engine: Engine) -> str:
    """The text of an engine: the inverse of `make_engine`."""
    options = [
        f"{f.name}={getattr(engine, f.name)}"
        for f in fields(engine)  # type: ignore[arg-type]
        if getattr(engine, f.name) != _default(f)
    ]
    return engine_name(engine) + (f"[{','.join(options)}]" if options else "")


def check_wants(engine: Engine, want: frozenset[Want]) -> None:
    """CapabilityError where the engine cannot serve what is asked."""
    missing = want - engine.capabilities.wants
    if missing:
        able = [name for name in REGISTRY if missing <= engine_class(name).capabilities.wants]
        if missing & SHOWS:  # of the engine itself, not of one that it chooses
            able = [name for name in able if name not in CHOOSERS]
        raise CapabilityError(
            f"engine {engine_name(engine)!r} cannot give {', '.join(sorted(missing))}; "
            f"{', '.join(able) or 'no engine'} can"
        )
