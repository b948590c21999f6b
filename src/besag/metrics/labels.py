"""Labels of a truth and of a prediction, read alike: one flat axis T of labels, in the order of instances.

    truth (T,), predicted (T,) int codes into the classes        weights (T,), above 0        classes, sorted

Places whose truth is not known, or whose weight is 0, are left out. A prediction of what `ignore` names is the code -1:
it is wrong wherever the truth is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.data.attributes import has_order, show_value
from besag.data.dataset import check_weights
from besag.errors import ModelError
from besag.graph.evidence import is_missing
from besag.text import shorten

Ignored: TypeAlias = "int | str | Collection[int | str] | None"
Shapes: TypeAlias = list[tuple[int, ...]]


class Parts(NamedTuple):
    """Arrays, one for each instance; or a single one, `whole`, whose first axis is that of instances."""

    arrays: list[AnyArray]
    whole: bool

    @property
    def shapes(self) -> Shapes:
        """The shape of each instance."""
        first = self.arrays[0].shape if self.whole else ()
        return [first[1:]] * first[0] if self.whole else [array.shape for array in self.arrays]

    def flat(self) -> AnyArray:
        """(T,): all entries, as Python's own objects unless all are numbers or all are texts."""
        arrays = [array.reshape(-1) for array in self.arrays]
        kinds = {"n" if array.dtype.kind in "iufb" else array.dtype.kind for array in arrays}
        if len(kinds) > 1 or not kinds <= {"n", "U"}:
            arrays = [array.astype(object) for array in arrays]
        return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


class Compared(NamedTuple):
    """Codes of what is known, with weights, and the classes that they count."""

    truth: IntArray
    predicted: IntArray
    weights: Array
    classes: tuple[Any, ...]


def read_parts(given: Any, what: str) -> Parts:
    """The instances of what a user gave."""
    if isinstance(given, (str, bytes)) or not has_order(given):
        raise ModelError(f"{what} must be an array, or a list of arrays or lists, got {show_value(given)}")
    given = given.to_numpy() if hasattr(given, "to_numpy") else given
    if isinstance(given, np.ndarray) and given.dtype != object:
        return Parts([given], whole=True)
    listed = list(given)
    several = [_is_several(one) for one in listed]
    if any(several) and not all(several):
        at = several.index(False)
        raise ModelError(f"{what} must be all labels or all instances, got {show_value(listed[at])} as number {at}")
    if any(several):
        return Parts([_as_array(one) for one in listed], whole=False)
    return Parts([_as_array(listed)], whole=True)


def _is_several(value: Any) -> bool:
    return has_order(value) and not isinstance(value, (str, bytes))


def _as_array(given: Any) -> AnyArray:
    given = given.to_numpy() if hasattr(given, "to_numpy") else given
    return given if isinstance(given, np.ndarray) else np.array(list(given), object)


def compare_labels(
    y_true: Any, y_pred: Any, *, ignore: Ignored, sample_weight: Any = None, labels: Iterable[Any] | None = None
) -> Compared:
    """The codes of truth and prediction where the truth is known, and the classes: `labels`, or all that occur."""
    true, found = read_parts(y_true, "y_true"), read_parts(y_pred, "y_pred")
    check_shapes(true, found, "y_pred", ())
    codes, values = encode([true.flat(), found.flat()])
    void = find_void(values, ignore)
    code_of, classes = _classes(values, void, labels)
    truth, predicted = (code_of[part] for part in codes)
    weights = read_weights(sample_weight, true)
    for name, part in (("y_true", codes[0]), ("y_pred", codes[1])):
        _check_known(name, part, code_of, void, values, classes, true.shapes)
    known = select_known(truth >= 0, weights)
    return Compared(truth[known], predicted[known], weights[known], classes)


def check_shapes(true: Parts, other: Parts, what: str, more: tuple[int, ...]) -> None:
    """ModelError unless instances have the shapes of those of the truth, with `more` axes at their ends."""
    if true.whole and other.whole and true.arrays[0].shape + more == other.arrays[0].shape:
        return
    ours, theirs = true.shapes, other.shapes
    if len(ours) != len(theirs):
        raise ModelError(f"y_true has {len(ours)} instances, and {what} has {len(theirs)}")
    for n, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        if one + more != two:
            raise ModelError(f"instance {n}: expected {what} of shape {one + more}, as y_true has it, got {two}")


def encode(parts: list[AnyArray]) -> tuple[list[IntArray], list[Any]]:
    """Codes of each part's entries into the list of distinct values, which comes second."""
    if {part.dtype.kind for part in parts} <= set("iufb") or {part.dtype.kind for part in parts} == {"U"}:
        values, codes = np.unique(np.concatenate(parts), return_inverse=True)
        listed = values.tolist()
    else:
        numbers: dict[Any, int] = {}
        codes = np.array([_number(numbers, value) for part in parts for value in part.tolist()], np.int64)
        listed = list(numbers)
    fraction = next((v for v in listed if isinstance(v, float) and not (np.isnan(v) or v.is_integer())), None)
    if fraction is not None:
        raise ModelError(f"a label must be a text or a whole number, got {fraction}; log_loss takes probabilities")
    return np.split(codes.reshape(-1), np.cumsum([len(part) for part in parts])[:-1]), listed


def _number(numbers: dict[Any, int], value: Any) -> int:
    try:
        return numbers.setdefault(None if is_missing(value) else value, len(numbers))
    except TypeError as error:
        raise ModelError(f"a label must be a text or a whole number, got {show_value(value)}: {error}") from None


def find_void(values: list[Any], ignore: Ignored) -> BoolArray:
    """Which values stand for labels that are not known."""
    chosen = [ignore] if ignore is None or isinstance(ignore, (str, int, np.integer)) else list(ignore)
    return np.array([is_missing(value) or value in chosen for value in values], np.bool_)


def _classes(values: list[Any], void: BoolArray, labels: Iterable[Any] | None) -> tuple[IntArray, tuple[Any, ...]]:
    """The class of each value, -1 for void ones and those outside of `labels`; and the classes."""
    kept = [value for value, is_void in zip(values, void.tolist(), strict=True) if not is_void]
    if labels is not None:
        classes = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    else:
        try:
            classes = tuple(sorted(kept))
        except TypeError:
            kinds = sorted({type(value).__name__ for value in kept})
            raise ModelError(f"labels must be of one type, got {' and '.join(kinds)}: make all of them str") from None
    where = {label: code for code, label in enumerate(classes)}
    pairs = zip(values, void.tolist(), strict=True)
    return np.array([-1 if is_void else where.get(value, -1) for value, is_void in pairs], np.int64), classes


def _check_known(
    name: str,
    codes: IntArray,
    code_of: IntArray,
    void: BoolArray,
    values: list[Any],
    classes: Sequence[Any],
    shapes: Shapes,
) -> None:
    outside = (code_of < 0) & ~void
    if outside.any() and (wrong := outside[codes]).any():
        at = int(np.argmax(wrong))
        raise ModelError(
            f"instance {find_instance(shapes, at)} of {name}: the label {values[int(codes[at])]!r} is none of "
            f"{shorten([repr(one) for one in classes])}; give it in labels=, or in ignore="
        )


def find_instance(shapes: Shapes, at: int) -> int:
    """The number of the instance that has the flat place `at`."""
    return int(np.searchsorted(np.cumsum([prod(shape) for shape in shapes]), at, side="right"))


def read_weights(sample_weight: Any, true: Parts) -> Array:
    """(T,): the weight of each label."""
    shapes = true.shapes
    sizes = np.array([prod(shape) for shape in shapes], np.int64)
    if sample_weight is None:
        return np.ones(int(sizes.sum()))
    given = read_parts(sample_weight, "sample_weight")
    if not all(shape == () for shape in given.shapes):
        check_shapes(true, given, "sample_weight", ())
        flat = given.flat()
        return check_weights(flat, len(flat))
    return np.repeat(check_weights(given.arrays[0] if given.arrays else [], len(shapes)), sizes)


def select_known(known: BoolArray, weights: Array) -> BoolArray:
    """Which labels count; a ModelError if none does."""
    counted = known & (weights > 0)
    if not counted.any():
        raise ModelError("no label of positive weight is known: there is nothing to score")
    return np.asarray(counted)
