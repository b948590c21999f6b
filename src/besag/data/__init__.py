"""Data for learning; and small models for exercises and bug reports: bundled ones by name, random ones by seed.

Read `structured` (one instance of 002) and `dataset` (many of them, in batches and shards), which `besag.learn` works
on. The other files bring a form of data there, as arrays and without a loop over instances: `sequences`, `chains`,
`attributes` for sequences, `grids` for pictures, `node_graphs` for graphs. `textbook` and `synthetic` make models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from besag.text import no_attribute

if TYPE_CHECKING:
    from besag.data.synthetic import random_model as random_model
    from besag.data.textbook import BUNDLED as BUNDLED
    from besag.data.textbook import bundled as bundled

_WHERE = {"BUNDLED": "textbook", "bundled": "textbook", "random_model": "synthetic"}
__all__ = ["BUNDLED", "bundled", "random_model"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(no_attribute("besag.data", name, __all__))
    return getattr(import_module(f"besag.data.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
