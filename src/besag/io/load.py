"""`load`: a model from a file, whatever its format.

The suffix chooses the reader, .gz and .xz aside; if it is unknown, the first bytes do (`besag.io.formats`).
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from typing import IO, Any

from besag.errors import ModelError, ParseError
from besag.io.formats import Source, format_named, format_of_content, looks_like
from besag.io.shared.files import read_bytes, suffix_of
from besag.model.model import Model

ARCHIVE = b"PK\x03\x04"  # the first bytes of an estimator's file
ESTIMATORS = "besag.estimators.files"


def load(path: str | PathLike[str] | IO[bytes], *, format: str | None = None, ignore_utilities: bool = False) -> Any:
    """Load a model, or a fitted estimator, from a file or an open binary stream; files may be packed as .gz or .xz.

    .uai, .bif, .xml (XMLBIF), .net (Hugin), .xdsl and .dsl (GeNIe), .dsc, .fg (libDAI), .wcsp, .cfn, .json (native); by
    content if the suffix is unknown, or by `format`, a suffix. Decision and utility nodes are an error;
    ignore_utilities=True reads the chance nodes alone. FileNotFoundError if there is no such file; any other failure is
    a ParseError that names the path.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "coin.uai")
    >>> _ = file.write_text("MARKOV 1 2 1 1 0 2 1.0 3.0")
    >>> load(file).marginals()["0"]
    array([0.25, 0.75])
    """
    name = path if isinstance(path, (str, PathLike)) else getattr(path, "name", "<stream>")
    where = fspath(name) if isinstance(name, (str, PathLike)) else "<stream>"
    data = read_bytes(path)
    if data.startswith(ARCHIVE) and format is None:
        return import_module(ESTIMATORS).read_estimator(data, where)
    chosen = format_of_content(data, where, suffix_of(where)) if format is None else format_named(format)
    try:
        model: Model = chosen.module.read(Source(data, where, ignore_utilities))
    except ParseError as error:
        other = looks_like(data, chosen)
        if other is None:
            raise
        hint = f"the content looks like {other.name}: format={other.suffixes[0][1:]!r}"
        error.args = (f"{error}; {hint}",)
        raise
    except ModelError as error:
        raise ParseError(str(error), path=where) from error
    except MemoryError:
        raise ParseError("the model does not fit into memory", path=where) from None
    return model
