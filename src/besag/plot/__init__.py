"""Pictures of models, marginals, labellings of images, calibration and learning.

A picture is a function in a file of its own; `style.py` has what they share. matplotlib (extra `plot`) is imported when
one is asked for. Figures are made without pyplot, so nothing global changes. Each function returns its Figure, and
writes a file where it is given a path, .png, .pdf or .svg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from besag.plot.bootstrap import draw_bootstrap as draw_bootstrap
from besag.plot.calibration import draw_calibration as draw_calibration
from besag.plot.chains import draw_chains as draw_chains
from besag.plot.edge_strength import draw_edge_strength as draw_edge_strength
from besag.plot.factor_graph import draw_factor_graph as draw_factor_graph
from besag.plot.heat_map import draw_heat_map as draw_heat_map
from besag.plot.history import draw_history as draw_history
from besag.plot.junction_tree import draw_junction_tree as draw_junction_tree
from besag.plot.marginals import compare_marginals as compare_marginals
from besag.plot.messages import draw_messages as draw_messages
from besag.plot.network import draw_network as draw_network
from besag.plot.segmentation import draw_segmentation as draw_segmentation
from besag.plot.structure import draw_structure as draw_structure
from besag.plot.tiles import draw_tiles as draw_tiles
from besag.plot.trace import draw_trace as draw_trace
from besag.plot.weights import draw_weights as draw_weights
from besag.text import no_attribute

__all__ = [
    "compare_marginals",
    "draw_bootstrap",
    "draw_calibration",
    "draw_chains",
    "draw_edge_strength",
    "draw_factor_graph",
    "draw_heat_map",
    "draw_history",
    "draw_junction_tree",
    "draw_messages",
    "draw_network",
    "draw_segmentation",
    "draw_structure",
    "draw_tiles",
    "draw_trace",
    "draw_weights",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise AttributeError(no_attribute("besag.plot", name, __all__))
