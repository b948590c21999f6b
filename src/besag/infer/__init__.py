"""Engines by class: infer.Tree(root="A"), infer.JunctionTree(), infer.Elimination(), infer.Brute(), infer.Exact()."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from besag.infer.ais import AIS as AIS
    from besag.infer.auto import Auto as Auto
    from besag.infer.auto import Exact as Exact
    from besag.infer.bp import BP as BP
    from besag.infer.brute import Brute as Brute
    from besag.infer.elimination import Elimination as Elimination
    from besag.infer.gibbs import Gibbs as Gibbs
    from besag.infer.join_graph import JoinGraph as JoinGraph
    from besag.infer.junction import JunctionTree as JunctionTree
    from besag.infer.mean_field import MeanField as MeanField
    from besag.infer.result import Result as Result
    from besag.infer.tree import Tree as Tree
    from besag.infer.trw import TRW as TRW

_WHERE = {
    "AIS": "ais",
    "BP": "bp",
    "Auto": "auto",
    "Exact": "auto",
    "Brute": "brute",
    "Elimination": "elimination",
    "Gibbs": "gibbs",
    "JoinGraph": "join_graph",
    "JunctionTree": "junction",
    "MeanField": "mean_field",
    "TRW": "trw",
    "Tree": "tree",
    "Result": "result",
}
__all__ = [
    "AIS",
    "BP",
    "Auto",
    "Brute",
    "Elimination",
    "Exact",
    "Gibbs",
    "JoinGraph",
    "JunctionTree",
    "MeanField",
    "Result",
    "TRW",
    "Tree",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"besag.infer has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"besag.infer.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
