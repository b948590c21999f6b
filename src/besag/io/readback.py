"""Reading a file back before it is written to disk, so that every loss is reported.

A writer cannot know everything that its format does to a text: strip it, take it for something else, or fail on it. So
the content is read back first, and compared: names, states, parents, and the metadata that the format carries, key by
key. This is done if there are such metadata, or names that are not plain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from besag.errors import ModelError, ParseError
from besag.io.formats import Format, Source
from besag.io.notes import note_all
from besag.model.bayes import bayesian_network
from besag.model.dag import parents_of
from besag.model.metadata import NONE, is_nothing
from besag.model.model import Model

NAMED = 3  # variables that a report names

_PLAIN = re.compile(r"[A-Za-z0-9_.<>=+-]+")


def find_altered(model: Model, data: bytes, chosen: Format) -> list[str]:
    """What differs when a file is read back; ModelError if the file is broken or has another model's structure."""
    if not _is_to_be_read(model, chosen):
        return []
    try:
        again = _read(model, data, chosen)
    except (ParseError, ModelError) as error:
        raise ModelError(
            f"{chosen.name} cannot hold {_part_at_fault(model, chosen)}: the file could not be read back unchanged "
            f"({error}); nothing was written; change it, or save the model as .json"
        ) from None
    names, n = model.variables.names, len(model.variables)
    renamed = [v for v in range(n) if names[v] != again.variables.names[v]]
    restated = [v for v in range(n) if model.variables.states(v) != again.variables.states(v)]
    kept = [key for key in _carried(model.metadata, chosen.of_model) if model.metadata[key] != again.metadata.get(key)]
    lost = [f"the names of variables{_of(model, renamed)}"] if renamed else []
    lost += [f"the names of states{_of(model, restated)}"] if restated else []
    lost += [f"the model's {key} as it is" for key in kept]
    changed = sorted(_changed(model, again, chosen).items())
    return lost + [f"the variables' {key} as it is{_of(model, where)}" for key, where in changed]


def _is_to_be_read(model: Model, chosen: Format) -> bool:
    carries = chosen.carries or frozenset()
    if "names" not in carries:
        return False
    if _carried(model.metadata, chosen.of_model):
        return True
    if any(_carried(entries, carries) for entries in model.variables.metadata.values()):
        return True
    names = model.variables.names_at(range(len(model.variables)))
    return not all(_PLAIN.fullmatch(text) for texts in (names, *model.variables.spaces) for text in texts)


def _carried(metadata: Mapping[str, Any], keys: Collection[str]) -> list[str]:
    """The keys of metadata that are not empty and that a format carries."""
    return [key for key, value in metadata.items() if key in keys and not is_nothing(value)]


def _read(model: Model, data: bytes, chosen: Format) -> Model:
    """The model read back from a file; ModelError if it does not have the same structure."""
    with note_all():  # corrections of this reading must not be noted as those of the user's file
        again: Model = chosen.module.read(Source(data, "the file"))
    if not np.array_equal(model.variables.cardinalities, again.variables.cardinalities):
        raise ModelError("it would be of other variables")
    if parents_of(model) != parents_of(again):
        raise ModelError("it would be of other parents")
    return again


def _changed(model: Model, again: Model, chosen: Format) -> dict[str, list[int]]:
    """The variables whose metadata entry differs when read back, by key."""
    found: dict[str, list[int]] = {}
    for v, entries in model.variables.metadata.items():
        back = again.variables.metadata.get(v, NONE)
        for key in _carried(entries, chosen.carries or ()):
            if entries[key] != back.get(key):
                found.setdefault(key, []).append(v)
    return found


def _of(model: Model, variables: Sequence[int]) -> str:
    """A few of the variables by name."""
    shown = ", ".join(map(repr, model.variables.names_at(variables[:NAMED])))
    more = len(variables) - NAMED
    return f" (of {shown} and {more} more)" if more > 0 else f" (of {shown})"


def _part_at_fault(model: Model, chosen: Format) -> str:
    """The first part of a model that could not be read back from a file of its own."""
    for what, alone in _parts(model):
        try:
            _read(alone, chosen.module.write(alone), chosen)
        except (ParseError, ModelError):
            return what
    return "this model"


def _parts(model: Model) -> Iterator[tuple[str, Model]]:
    """Each entry of the metadata in a model of one variable, and each variable alone."""
    coin = bayesian_network([], {"A": 2})
    for key, value in model.metadata.items():
        yield f"the model's {key}", coin.with_metadata({key: value})
    for variable in model.variables:
        alone = bayesian_network([], {variable.name: variable.states})
        yield f"the name or the states of {variable.name!r}", alone
        for key, value in variable.metadata.items():
            yield f"the {key} of {variable.name!r}", alone.with_metadata({}, {variable.name: {key: value}})
