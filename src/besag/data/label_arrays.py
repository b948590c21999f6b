"""Labels of instances that are arrays of any shape, as codes into the sorted classes, -1 where a label is unknown.

A label is unknown if it is None, NaN, -1 in an array of integers, or one of those to ignore. Codes of all instances lie
one after the other, (V,) int64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from besag.arrays import AnyArray, BoolArray, IntArray
from besag.errors import ModelError
from besag.graph.evidence import is_missing
from besag.text import did_you_mean, shorten

Shapes = Sequence[tuple[int, ...]]
BOOLEANS, WHOLE, REAL = (bool, np.bool_), (int, np.integer), (float, np.floating)


def find_classes(labels: Any, shapes: Shapes, ignore: Sequence[Any] = ()) -> tuple[Any, ...]:
    """The labels that are known, sorted, in the user's own type.

    >>> find_classes([[[0, 2], [-1, 255]]], [(2, 2)], ignore=[255])
    (0, 2)
    """
    found: set[Any] = set()
    for values, known in _each(labels, shapes, ignore):
        found.update(np.unique(values[known]).tolist())
    if not found:
        raise ModelError("no label is known: expected at least one that is not -1, None or to be ignored")
    try:
        return tuple(sorted(found))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in found})
        raise ModelError(f"labels must be of one type, got {' and '.join(kinds)}: make all of them str") from None


def list_labels(labels: Any) -> list[Any]:
    """Labels as a list with an entry for each instance."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise ModelError(f"labels must be a list with an entry for each instance, got {type(labels).__name__}")
    return list(labels)


def codes_of(labels: Any, shapes: Shapes, classes: Sequence[Any], ignore: Sequence[Any] = ()) -> IntArray:
    """The codes (V,) of labels, which must be among the classes."""
    ordered, parts = np.array(classes), list[AnyArray]()
    for n, (values, known) in enumerate(_each(labels, shapes, ignore)):
        codes = np.full(values.shape, -1, np.int64)
        if known.any():
            places = np.minimum(np.searchsorted(ordered, _comparable(values[known], ordered, n)), len(ordered) - 1)
            codes[known] = places
            unseen = ordered[places] != values[known]
            if unseen.any():
                at = tuple(int(i) for i in np.argwhere(known)[int(np.argmax(unseen))])
                raise ModelError(_not_seen(n, at, values[at].item(), classes))
        parts.append(codes.reshape(-1))
    return np.concatenate(parts)


def _comparable(values: AnyArray, ordered: AnyArray, n: int) -> AnyArray:
    """The values, of a kind that can be compared with the classes."""
    if (ordered.dtype.kind in "US") != (values.dtype.kind in "US"):
        raise ModelError(
            f"instance {n}: labels must be of the type of those in training, such as {ordered[0].item()!r}; "
            f"got {values[0].item()!r}"
        )
    return values


def _not_seen(n: int, at: tuple[int, ...], label: Any, classes: Sequence[Any]) -> str:
    known = [str(one) for one in classes]
    hint = did_you_mean(str(label), known)
    return (
        f"instance {n}, position {at}: the label {label!r} was not seen in training; "
        f"{hint + ' It' if hint else 'it'} has {shorten(known)}; -1 or None stands for an unknown label"
    )


def _each(labels: Any, shapes: Shapes, ignore: Sequence[Any]) -> Iterable[tuple[AnyArray, BoolArray]]:
    """The labels of each instance as an array of its shape, and which of them are known."""
    listed = list_labels(labels)
    if len(listed) != len(shapes):
        raise ModelError(f"there are {len(shapes)} instances and labels of {len(listed)}; expected as many")
    for n, (given, shape) in enumerate(zip(listed, shapes, strict=True)):
        values = _array(n, given)
        if values.shape != shape:
            raise ModelError(f"instance {n}: labels must have shape {shape}, as its features have, got {values.shape}")
        yield _without_unknown(n, values, ignore)


def _array(n: int, given: Any) -> AnyArray:
    try:
        values = np.asarray(given)
    except ValueError:
        raise ModelError(f"instance {n}: labels must be an array, but rows differ in length") from None
    if values.dtype.kind not in "iubfUO":
        raise ModelError(f"instance {n}: labels must be integers, texts or booleans, got {values.dtype}")
    return values


def _without_unknown(n: int, values: AnyArray, ignore: Sequence[Any]) -> tuple[AnyArray, BoolArray]:
    if values.dtype.kind == "O":
        known = np.array([not is_missing(label) for label in values.reshape(-1)], np.bool_).reshape(values.shape)
        values = _of_one_type(values, known)
    else:
        known = np.ones(values.shape, np.bool_)
    if values.dtype.kind == "f":
        known &= ~np.isnan(values)
        if (values[known] % 1 != 0).any():
            raise ModelError(f"instance {n}: labels must be whole numbers, texts or booleans, got {values[known][0]}")
        values = np.where(known, values, -1).astype(np.int64)
    if values.dtype.kind in "iu":
        known &= values != -1
    for label in ignore:
        known &= values != label
    return values, known


def _of_one_type(values: AnyArray, known: BoolArray) -> AnyArray:
    """An array of objects as one of texts or numbers, where its known labels are that."""
    kinds = {type(label) for label in values[known].tolist()}
    for wanted, made, filled in ((str, str, ""), (BOOLEANS, bool, 0), (WHOLE, int, 0), (REAL, float, 0)):
        if kinds and all(issubclass(kind, wanted) for kind in kinds):
            return np.where(known, values, filled).astype(made)
    return values
