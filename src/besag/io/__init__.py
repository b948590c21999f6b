"""Reading models from files: one module a format, `load` to choose between them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from besag.io.load import load as load
    from besag.io.uai import read_uai_evidence as read_uai_evidence

_WHERE = {"load": "load", "read_uai_evidence": "uai"}
__all__ = ["load", "read_uai_evidence"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"besag.io has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"besag.io.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
