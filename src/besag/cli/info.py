"""`besag info`: what a model is, what exact inference takes, what auto would do and why, and what is odd about it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from besag.cli.messages import ANSWERED
from besag.cli.shared import add_choice, add_evidence, add_model, read_model

if TYPE_CHECKING:
    from besag.cli.facts import Oddity
    from besag.model.model import Model
    from besag.query.cost import Cost

HELP = "what a model is, what inference takes, and what is odd about it"
COST = (
    "engine",
    "reason",
    "width",
    "entries",
    "largest",
    "cliques",
    "bytes",
    "fits",
    "memory_limit",
    "seconds",
    "rule",
)
LONGEST = 60
LINES = 5
SIZES = ("bytes", "kB", "MB", "GB", "TB")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser)
    add_evidence(parser)
    add_choice(parser, "--format", ("table", "json"), "table", "of the answer")


def run(arguments: argparse.Namespace) -> int:
    """Prints what there is to know."""
    from besag.cli.evidence import gather_evidence
    from besag.cli.facts import oddities, size_of
    from besag.cli.output import print_json, print_pairs
    from besag.io.notes import note_all

    with note_all() as notes:
        model, format_ = read_model(arguments)
    cost, odd = model.cost(gather_evidence(model, arguments.evidence).evidence()), oddities(model)
    told = {
        "model": arguments.model,
        "format": format_.name,
        **size_of(model),
        "cost": {key: getattr(cost, key) for key in COST},
    }
    if arguments.format == "json":
        variables = {model.variables.names[v]: entries for v, entries in model.variables.metadata.items()}
        print_json(
            {
                **told,
                "odd": [one._asdict() for one in odd],
                "notes": notes,
                "metadata": model.metadata,
                "variables_metadata": variables,
            }
        )
    else:
        rows = [*_size_rows(told), *_cost_rows(cost), *_odd_rows(odd, notes), *_metadata_rows(model)]
        print_pairs(rows)
    return ANSWERED


def _size_rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    states, degrees = told["states"], told["degrees"]
    arities = ", ".join(f"{count} of {arity}" for arity, count in told["arities"].items())
    return [
        ("model", told["model"]),
        ("format", told["format"]),
        ("kind", told["kind"]),
        ("variables", f"{told['variables']}, of {_span(states)} states"),
        ("factors", f"{told['factors']}, by number of variables: {arities}"),
        ("degrees", f"{_span(degrees)} factors a variable, {degrees['mean']:.3g} on average"),
        ("parameters", str(told["parameters"])),
        ("components", str(told["components"])),
    ]


def _span(ends: dict[str, Any]) -> str:
    return f"{ends['least']}" if ends["least"] == ends["most"] else f"{ends['least']} to {ends['most']}"


def _cost_rows(cost: Cost) -> list[tuple[str, str]]:
    return [
        ("treewidth", f"at most {cost.width}"),
        ("table entries", f"{cost.entries:.6g} in {cost.cliques} cliques, {cost.largest:.6g} in the largest"),
        ("memory", f"{_size(cost.bytes)} of {_size(cost.memory_limit)}" + ("" if cost.fits else ": does not fit")),
        ("time", f"about {cost.seconds:.2g} s for all marginals"),
        ("auto takes", f"{cost.engine}: {cost.reason}"),
    ]


def _size(n_bytes: float) -> str:
    """Bytes for people.

    >>> _size(1738), _size(1.2e10)
    ('1.74 kB', '12 GB')
    """
    unit = 0
    while n_bytes >= 1000 and unit < len(SIZES) - 1:
        n_bytes, unit = n_bytes / 1000, unit + 1
    return f"{n_bytes:.3g} {SIZES[unit]}"


def _odd_rows(odd: list[Oddity], notes: list[str]) -> list[tuple[str, str]]:
    texts = [*notes, *(_odd_text(*one) for one in odd)] or ["nothing"]
    return [("odd" if i == 0 else "", text) for i, text in enumerate(texts)]


def _odd_text(what: str, times: int, names: list[str]) -> str:
    return f"{what}: {times} ({', '.join(names)}{', ...' if times > len(names) else ''})"


def _metadata_rows(model: Model) -> list[tuple[str, str]]:
    """What the file says of the model, in a few lines, and of how many variables it says something."""
    rows = []
    for key, value in model.metadata.items():
        lines = _metadata_lines(value)
        rows += [(key if i == 0 else "", line) for i, line in enumerate(lines[:LINES])]
        rows += [("", f"... and {len(lines) - LINES} more")] if len(lines) > LINES else []
    counts = Counter(key for entries in model.variables.metadata.values() for key in entries)
    return rows + [(f"variables' {key}", f"{count} of {len(model.variables)}") for key, count in counts.items()]


def _metadata_lines(value: object) -> list[str]:
    """A line for each entry; an empty text has none."""
    if isinstance(value, Mapping):
        return [f"{key} = {_brief(item)}" for key, item in value.items()]
    return [_brief(item) for item in (value if isinstance(value, tuple) else (value,)) if item != ""]


def _brief(value: object) -> str:
    """A value in part of a line; of what is nested only how much there is.

    >>> _brief("first line\\nsecond line"), _brief((1, 2)), _brief({"color": "red"})
    ('first line ...', '2 items', '1 item')
    """
    if isinstance(value, (Mapping, tuple)):
        return f"{len(value)} item{'' if len(value) == 1 else 's'}"
    text = str(value)
    first = text.partition("\n")[0].strip()
    return first if first == text and len(first) <= LONGEST else first[:LONGEST].rstrip() + " ..."
