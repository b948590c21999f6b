"""Spans: the labels that tokens must have to be one span of a kind, in BIO or BIOES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from besag.arrays import BoolArray
from besag.errors import ModelError
from besag.graph.evidence import Evidence


def span_evidence(classes: Sequence[Any], length: int, start: Any, stop: Any, kind: str) -> Evidence:
    """Evidence that tokens [start, stop) are one span: in BIOES if there are labels with E or S, else in BIO."""
    whole = all(isinstance(place, (int, np.integer)) and not isinstance(place, bool) for place in (start, stop))
    if not (whole and 0 <= start < stop <= length):
        raise ModelError(f"a span needs whole numbers 0 <= start < stop <= {length}, got {start!r}, {stop!r}")
    names = [str(label) for label in classes]
    allowed = np.ones((length, len(classes)), np.bool_)
    if f"E-{kind}" in names or f"S-{kind}" in names:
        inside = ["S"] if stop == start + 1 else ["B", *"I" * (stop - start - 2), "E"]
    else:
        inside = ["B", *"I" * (stop - start - 1)]
        if stop < length:
            allowed[stop] = np.array([name != f"I-{kind}" for name in names])
    for t, letter in enumerate(inside, start):
        allowed[t] = _only(names, f"{letter}-{kind}")
    return Evidence(np.full((1, length), -1), np.where(allowed, 0.0, -np.inf).reshape(1, -1))


def _only(names: list[str], label: str) -> BoolArray:
    if label not in names:
        raise ModelError(f"no label is {label!r}; give the kind of a span among labels {', '.join(map(repr, names))}")
    return np.array([name == label for name in names])
