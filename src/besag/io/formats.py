"""The file formats, and the modules that read and write them.

A format is one module of this package, imported when it is first needed, with

    matches(head: bytes) -> bool       whether a file that begins so is of this format
    read(source: Source) -> Model      the model, or a ParseError with path and line
    write(model: Model) -> bytes       the file; only if the format can be written

and one entry in FORMATS. `carries` says what a format can hold besides tables: "markov" (factors that are no CPTs),
"names" (of variables and states), and keys of the metadata of variables; `of_model` has those of the model itself.
Anything in a model that a format does not carry is reported when it is written.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from typing import Any, NamedTuple

from besag.errors import ModelError, ParseError
from besag.io.shared.files import suffix_of

HEAD = 1 << 14


class Source(NamedTuple):
    """The input of a reader: the content of a file, unpacked, its path, and how to treat decision networks."""

    data: bytes
    path: str
    ignore_utilities: bool = False


class Format(NamedTuple):
    """A file format; carries is None where it can only be read."""

    name: str
    suffixes: tuple[str, ...]
    where: str
    carries: frozenset[str] | None = None
    of_model: frozenset[str] = frozenset()

    @property
    def is_native(self) -> bool:
        """Whether large arrays lie in a file beside it."""
        return "everything" in (self.carries or ())

    @property
    def module(self) -> Any:
        """The module with its functions."""
        return import_module(f"besag.io.{self.where}")


DRAWN = frozenset({"names", "label", "comment", "position", "properties"})
TITLED = frozenset({"name", "comment", "properties"})

FORMATS = (
    Format("UAI", (".uai",), "uai.read", frozenset({"markov"})),
    Format("BIF", (".bif",), "bif.read", DRAWN - {"label"} | {"bif"}, TITLED),
    Format(
        "XMLBIF",
        (".xml", ".xmlbif", ".bifxml"),
        "networks.xmlbif",
        DRAWN - {"label"} | {"xmlbif"},
        TITLED | {"position", "xmlbif"},
    ),
    Format("Hugin NET", (".net",), "net.read", DRAWN | {"net"}, TITLED | {"label", "position", "net"}),
    Format("GeNIe XDSL", (".xdsl",), "xdsl.read", DRAWN | {"xdsl"}, TITLED | {"xdsl"}),
    Format("native JSON", (".json",), "native.form", DRAWN | {"markov", "everything"}),
    Format("DSC", (".dsc",), "networks.dsc"),
    Format("GeNIe DSL", (".dsl",), "networks.dsl"),
    Format("libDAI", (".fg",), "costs.fg"),
    Format("WCSP", (".wcsp",), "costs.wcsp"),
    Format("CFN", (".cfn",), "costs.cfn"),
)


def list_suffixes(*, written: bool = False) -> str:
    """The suffixes of all formats, or of those that can be written, as text."""
    return ", ".join(s for f in FORMATS if f.carries is not None or not written for s in f.suffixes)


def format_named(name: str) -> Format:
    """A format by its name or a suffix, with or without the dot: "bif", ".xdsl", "Hugin NET"."""
    wanted = name.strip().lower()
    for format_ in FORMATS:
        if wanted == format_.name.lower() or "." + wanted.removeprefix(".") in format_.suffixes:
            return format_
    raise ModelError(f"no format is named {name!r}; expected one of {list_suffixes()}")


def format_of_content(data: bytes, path: str | PathLike[str], suffix: str) -> Format:
    """The format of a file that is to be read: by its suffix, or else by its first bytes."""
    for format_ in FORMATS:
        if suffix in format_.suffixes:
            return format_
    for format_ in FORMATS:
        if format_.module.matches(data[:HEAD]):
            return format_
    raise ParseError(
        f"neither the suffix {suffix!r} nor the content names a format; expected one of {list_suffixes()}, "
        "also .gz or .xz",
        path=fspath(path),
    )


def looks_like(data: bytes, chosen: Format) -> Format | None:
    """The format that a file seems to have by its content, if that is another than the one chosen."""
    head = data[:HEAD]
    if chosen.module.matches(head):
        return None
    return next((f for f in FORMATS if f is not chosen and f.module.matches(head)), None)


def format_to_write(path: str | PathLike[str], name: str | None = None) -> Format:
    """The format that is named, or else the one of the path's suffix."""
    suffix = suffix_of(path)
    found = next((f for f in FORMATS if suffix in f.suffixes), None) if name is None else format_named(name)
    if found is None or found.carries is None:
        what = f"{found.name} files can only be read" if found else f"the suffix {suffix!r} names no format"
        raise ModelError(
            f"{fspath(path)}: {what}; expected one of {list_suffixes(written=True)}, also .gz or .xz, or format=..."
        )
    return found
