"""`save` and `convert`: a model into a file, whole or not at all, with a warning about what the format cannot carry."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

from besag.errors import LossWarning, ModelError, warn
from besag.io.formats import Format, format_to_write
from besag.io.load import load
from besag.io.readback import find_altered
from besag.io.shared.files import pack, write_atomically
from besag.io.shared.nodes import Holds, holds_none, noisy_terms
from besag.model.metadata import is_nothing
from besag.model.model import Model


def save(model: Model, path: str | PathLike[str], *, format: str | None = None) -> None:
    """Write a model to a file: .uai, .bif, .xml (XMLBIF), .net (Hugin), .xdsl (GeNIe) or .json (native), also .gz, .xz.

    The format is chosen by the suffix of the path, or by `format`, a suffix. What it cannot carry, such as the names of
    variables in UAI, is reported in one LossWarning, for which a model with metadata or unusual names is read back
    first. A model that a format cannot hold at all is a ModelError. The file is written whole or not at all.

    >>> import besag, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "rain.bif")
    >>> besag.save(besag.data.bundled("sprinkler"), file)
    >>> besag.load(file).marginals()["rain"].round(2)
    array([0.5, 0.5])
    """
    if not isinstance(model, Model):
        way = "; it has a save(path) of its own" if hasattr(model, "save") else ""
        way += ", and its network is in model_" if hasattr(model, "model_") else ""
        raise ModelError(f"save takes a Model, got {type(model).__name__}{way}")
    chosen = format_to_write(path, format)
    if chosen.is_native:
        chosen.module.save(model, Path(path))
        return
    data, lost = encode(model, chosen)
    write_atomically(Path(path), pack(data, path))
    report(lost, chosen)


def convert(
    source: str | PathLike[str] | IO[bytes], target: str | PathLike[str], *, ignore_utilities: bool = False
) -> None:
    """Read a model from one file and write it to another, in the formats that their suffixes name.

    >>> import besag, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> besag.save(besag.data.bundled("sprinkler"), folder / "a.bif")
    >>> besag.convert(folder / "a.bif", folder / "a.xml.gz")
    >>> besag.load(folder / "a.xml.gz").parents("wet_grass")
    ['sprinkler', 'rain']
    """
    format_to_write(target)
    save(load(source, ignore_utilities=ignore_utilities), target)


def encode(model: Model, chosen: Format) -> tuple[bytes, list[str]]:
    """The content of a file, and what it cannot carry of the model; ModelError if it cannot hold the model at all."""
    data: bytes = chosen.module.write(model)
    return data, losses(model, chosen) + find_altered(model, data, chosen)


def report(lost: Sequence[str], chosen: Format) -> None:
    """Issue a LossWarning if a format cannot carry all of a model."""
    if lost:
        warn(LossWarning(f"{chosen.name} cannot carry {', '.join(lost)}"))


def losses(model: Model, chosen: Format) -> list[str]:
    """The parts of a model that a format has no place for."""
    carries = chosen.carries or frozenset()
    lost = []
    if "names" not in carries:
        if any(model.variables.names[v] != str(v) for v in range(len(model.variables))):
            lost.append("the names of variables")
        if any(space != tuple(map(str, range(len(space)))) for space in model.variables.spaces):
            lost.append("the names of states")
    of_model = _not_in(chosen.of_model, model.metadata)
    of_variables = {key for entries in model.variables.metadata.values() for key in _not_in(carries, entries)}
    lost += [f"the model's {key}" for key in of_model] + [f"the variables' {key}" for key in sorted(of_variables)]
    if model.shape is not None:
        lost.append("the shape of the grid")
    if any(group.names is not None for group in model.groups):
        lost.append("the names of factors")
    terms = noisy_terms(model)
    tabled = [child for child, term in terms.items() if not _holds(chosen)(term)]
    if tabled:
        named = ", ".join(repr(model.variables.names[child]) for child in tabled[:3])
        more = ", .." if len(tabled) > 3 else ""
        lost.append(f"{len(tabled)} noisy-MAX factors as such (of {named}{more}: they become tables)")
    tables_are_theta = model.graph.tables_are_theta and len(model.problem.table_offsets) > model.n_factors
    if not terms and not tables_are_theta:
        lost.append("shared parameters (factors become tables of their own)")
    return lost


def _holds(chosen: Format) -> Holds:
    """Which noisy-MAX factors a format has a place for."""
    return getattr(chosen.module, "can_hold", holds_none)


def _not_in(keys: Collection[str], metadata: Mapping[str, Any]) -> list[str]:
    return [key for key, value in metadata.items() if key not in keys and not is_nothing(value)]
