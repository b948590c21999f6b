"""Chunks of tagged sequences: named entities, phrases.

A tag is O, or a letter and a kind, B-NP. A chunk begins at B or S, and wherever a kind follows O, another kind, or the
end of a chunk; it ends after E or S, and where the next one or O begins. So IOB1, IOB2 and BIOES are read alike, and a
stray I begins a chunk: the rules of conlleval, the program of the CoNLL shared tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from besag.data.dataset import check_weights
from besag.errors import ModelError
from besag.metrics.labels import Ignored, Parts, check_shapes, find_void, read_parts

OUTSIDE = "O"
LETTERS = frozenset("BIES")


def find_chunks(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """The chunks of a sequence: tokens [start, stop), and the kind.

    >>> from besag import metrics
    >>> metrics.find_chunks(["B-NP", "I-NP", "B-VP", "O", "I-NP"])
    [(0, 2, 'NP'), (2, 3, 'VP'), (4, 5, 'NP')]
    """
    found: list[tuple[int, int, str]] = []
    start, inside = 0, ""  # the kind of the chunk that is open
    for t, tag in enumerate([*tags, OUTSIDE]):
        letter, kind = _split(tag)
        if inside and (kind != inside or letter in "BS"):
            found.append((start, t, inside))
            inside = ""
        if kind and not inside:
            start, inside = t, kind
        if letter in "ES":
            found.append((start, t + 1, kind))
            inside = ""
    return found


def _split(tag: Any) -> tuple[str, str]:
    if tag == OUTSIDE:
        return OUTSIDE, ""
    letter, _, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    if letter not in LETTERS or not kind:
        raise ModelError(f"a tag must be 'O', or one of B, I, E, S with a kind, 'B-NP', got {tag!r}")
    return letter, kind


def chunk_f1(
    y_true: Any, y_pred: Any, *, kind: str | None = None, ignore: Ignored = -1, sample_weight: Any = None
) -> float:
    """F1 of chunks: twice those found with start, stop and kind right, over those there are plus those predicted.

    y_true, y_pred: lists of sequences of tags. kind: of one kind of chunk only. A token whose tag is not known ends
    chunks, in the truth and in the prediction. sample_weight: a number for each sequence.

    >>> from besag import metrics
    >>> metrics.chunk_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    0.5
    """
    true, found = read_parts(y_true, "y_true"), read_parts(y_pred, "y_pred")
    if any(len(shape) != 1 for shape in true.shapes):
        raise ModelError("y_true must be a list of sequences of tags; one alone is given as [tags]")
    check_shapes(true, found, "y_pred", ())
    weights = np.ones(len(true.shapes)) if sample_weight is None else check_weights(sample_weight, len(true.shapes))
    hits = total = 0.0
    for theirs, ours, weight in zip(_sequences(true), _sequences(found), weights.tolist(), strict=True):
        unknown = find_void(theirs, ignore).tolist()
        right, said = (_chunks(tags, unknown, kind) for tags in (theirs, ours))
        hits += weight * len(right & said)
        total += weight * (len(right) + len(said))
    if not total:
        what = "no chunk" if kind is None else f"no chunk of kind {kind!r}"
        raise ModelError(f"{what} of positive weight is in the truth or in the prediction: there is nothing to score")
    return 2 * hits / total


def _sequences(parts: Parts) -> list[list[Any]]:
    rows = parts.arrays[0] if parts.whole else parts.arrays
    return [row.tolist() for row in rows]


def _chunks(tags: list[Any], unknown: list[bool], kind: str | None) -> set[tuple[int, int, str]]:
    """The chunks of one kind, or of all, as if unknown tokens were outside of them."""
    found = find_chunks(OUTSIDE if out else tag for tag, out in zip(tags, unknown, strict=True))
    return {chunk for chunk in found if kind in (None, chunk[2])}
