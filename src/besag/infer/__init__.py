"""Inference: engines, which turn a Problem into a Result. By class: infer.Tree(root="A"), infer.BP(damping=0.3).

A folder is a room: one engine, or one concept that several share. Read `engine` (what an engine is, and ENGINES), then
`result`, then the room in question. The files beside the rooms are what engines share, and import no room: `prepared`
and `unary` make a problem ready, `iterate` drives what works in steps, `answers` makes Results, `memory` refuses what
does not fit, `brute` is the oracle. Rooms have an order (tests/test_architecture.py); a new engine is a new room.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from besag.infer.auto.engine import Auto as Auto
    from besag.infer.auto.engine import Exact as Exact
    from besag.infer.bp.engine import BP as BP
    from besag.infer.brute import Brute as Brute
    from besag.infer.join_graph.engine import JoinGraph as JoinGraph
    from besag.infer.junction.elimination import Elimination as Elimination
    from besag.infer.junction.engine import JunctionTree as JunctionTree
    from besag.infer.map.dual import Dual as Dual
    from besag.infer.map.expansion import AlphaBetaSwap as AlphaBetaSwap
    from besag.infer.map.expansion import AlphaExpansion as AlphaExpansion
    from besag.infer.map.graph_cut import GraphCut as GraphCut
    from besag.infer.map.icm import ICM as ICM
    from besag.infer.map.local_search import LocalSearch as LocalSearch
    from besag.infer.map.trws import TRWS as TRWS
    from besag.infer.mean_field.engine import MeanField as MeanField
    from besag.infer.result import Result as Result
    from besag.infer.sampling.ais import AIS as AIS
    from besag.infer.sampling.gibbs import Gibbs as Gibbs
    from besag.infer.trees.engine import Tree as Tree
    from besag.infer.trw.engine import TRW as TRW

_WHERE = {
    "AIS": "sampling.ais",
    "BP": "bp.engine",
    "Auto": "auto.engine",
    "Exact": "auto.engine",
    "Brute": "brute",
    "Elimination": "junction.elimination",
    "Gibbs": "sampling.gibbs",
    "Dual": "map.dual",
    "AlphaBetaSwap": "map.expansion",
    "AlphaExpansion": "map.expansion",
    "GraphCut": "map.graph_cut",
    "ICM": "map.icm",
    "LocalSearch": "map.local_search",
    "JoinGraph": "join_graph.engine",
    "JunctionTree": "junction.engine",
    "MeanField": "mean_field.engine",
    "TRW": "trw.engine",
    "TRWS": "map.trws",
    "Tree": "trees.engine",
    "Result": "result",
}
__all__ = [
    "AIS",
    "AlphaBetaSwap",
    "AlphaExpansion",
    "BP",
    "Auto",
    "Brute",
    "Dual",
    "Elimination",
    "Exact",
    "Gibbs",
    "GraphCut",
    "ICM",
    "JoinGraph",
    "JunctionTree",
    "LocalSearch",
    "MeanField",
    "Result",
    "TRW",
    "TRWS",
    "Tree",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"besag.infer has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"besag.infer.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
