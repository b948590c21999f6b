"""Checked access to metadata that only one format has, under a key of its own.

A reader puts them there, but anybody may change them. Anything else than what a reader makes is a ModelError that names
the key, the model or variable, what was expected and what was got. None stands for a missing entry.

>>> KeptPiece({"potential": ("x = 1",)}, "net", "'A'").at("potential").texts()
['x = 1']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from besag.errors import ModelError
from besag.model.metadata import show_value


class KeptPiece(NamedTuple):
    """A piece of such metadata, its path, such as "xdsl/genie", and its owner: "the model", or a name in quotes."""

    value: Any
    path: str
    whose: str

    def wrong(self, expected: str) -> ModelError:
        """The error of this piece."""
        return ModelError(
            f"metadata {self.path!r} of {self.whose}: expected {expected}, got {show_value(self.value)}; change it "
            "with model.with_metadata"
        )

    def at(self, key: str) -> KeptPiece:
        """The entry with a key of what must be a dict."""
        if self.value is not None and not isinstance(self.value, Mapping):
            raise self.wrong("a dict")
        return KeptPiece(None if self.value is None else self.value.get(key), f"{self.path}/{key}", self.whose)

    def entries(self) -> dict[str, KeptPiece]:
        """All entries of what must be a dict."""
        if self.value is not None and not isinstance(self.value, Mapping):
            raise self.wrong("a dict")
        return {key: self.at(key) for key in self.value or ()}

    def items(self) -> list[KeptPiece]:
        """The pieces of what must be a list."""
        if self.value is not None and not isinstance(self.value, tuple):
            raise self.wrong("a list")
        return [KeptPiece(item, f"{self.path}/{i}", self.whose) for i, item in enumerate(self.value or ())]

    def text(self) -> str:
        """What must be a text; "" if there is none."""
        if self.value is not None and not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value or ""

    def texts(self) -> list[str]:
        """What must be a list of texts."""
        return [item.text() for item in self.items()]

    def numbers(self) -> list[Any]:
        """What must be a list of numbers."""
        found = [item.value for item in self.items()]
        if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in found):
            raise self.wrong("a list of numbers")
        return found
