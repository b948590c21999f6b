"""What all pictures share: colours, how text is cut, how a figure is made and written."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError, require
from besag.infer.result import Result
from besag.model.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

File: TypeAlias = "str | PathLike[str]"

MAX_LETTERS = 16
INK, FAINT, LINE = "#22303c", "#6b7785", "#9aa5b1"
CARD, KNOWN, EDGE = "#ffffff", "#fdf3d8", "#c5ced8"
TRACK, BAR, MARK = "#eaeff4", "#3b7fb6", "#d1495b"
SERIES = (BAR, MARK, "#4c9f70", "#8e6bbf", "#c98a2b", INK)  # of curves in one picture


def new_figure(**options: Any) -> Figure:
    """A figure of its own, without pyplot; a notebook shows it all the same."""
    require("matplotlib", "plot", "a picture")
    return _picture_class()(dpi=150, **options)


@cache
def _picture_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png")
            return drawn.getvalue()

    return Picture


def expect_model(given: Any) -> Model:
    """The model that a picture is asked of; ModelError for anything else."""
    if isinstance(given, Model):
        return given
    near = {"model_": "write model_, which fit has learnt", "graph": "the model comes first"}
    told = [hint for name, hint in near.items() if hasattr(given, name)]
    got = type(given).__name__
    raise ModelError(f"expected a Model, as besag.load gives, got {'; '.join([got, *told[:1]])}")


def expect_result(given: Any, how: str = "model.marginals()") -> Result:
    """The Result that a picture is asked of; ModelError for anything else."""
    if isinstance(given, Result):
        return given
    raise ModelError(f"expected a Result, such as {how}, got {type(given).__name__}")


def read_row(result: Result, name: str) -> Array:
    """(K,): the marginal of a variable, of one row of evidence."""
    if result.batched:
        raise ModelError("a picture shows one row of evidence, and this Result has a batch of them")
    return np.asarray(result[name])


def shorten_text(text: str) -> str:
    """The text, cut where it is longer than what fits."""
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1] + "…"


def write_figure(figure: Figure, path: File | None) -> Figure:
    """The figure, and a file of it if there is a path."""
    if path is not None:
        figure.savefig(path)
    return figure
