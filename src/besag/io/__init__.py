"""Models in files: `load`, `save` and `convert`, and a folder for each family of formats.

Read `formats`, which says what a format is and lists them all, then `load`. `save` writes, reads back (`readback`) and
tells what was lost. What readers have in common is in `shared`. A format may be changed without a look at any other; a
new one is a module with `matches`, `read` and `write`, and an entry in `formats`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from besag.io.load import load
from besag.io.save import convert, save
from besag.io.uai.tasks import (
    read_uai_evidence,
    read_uai_likelihoods,
    read_uai_query,
    read_uai_result,
    read_uai_samples,
)
from besag.text import no_attribute

__all__ = [
    "convert",
    "load",
    "read_uai_evidence",
    "read_uai_likelihoods",
    "read_uai_query",
    "read_uai_result",
    "read_uai_samples",
    "save",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise AttributeError(no_attribute("besag.io", name, __all__))
