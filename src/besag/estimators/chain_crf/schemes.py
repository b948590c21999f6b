"""Which label may follow which: BIO and BIOES schemes, and transitions that a user forbids.

    BIO      O | B-x I-x* ...            I-x follows B-x or I-x only, and begins no sequence
    BIOES    O | S-x | B-x I-x* E-x ...  a span is S-x, or begins with B-x and ends with E-x; none is left open

A label is "O", or a letter, a dash and a type. Labels and transitions ruled out are hard zeros, in training and in
decoding.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import BoolArray
from besag.errors import ModelError

SCHEMES = {"BIO": "BI", "BIOES": "BIES"}


class Allowed(NamedTuple):
    """Which transitions (K, K), first labels (K,) and last labels (K,) are possible."""

    transitions: BoolArray
    first: BoolArray
    last: BoolArray


def allow_transitions(
    classes: Sequence[Any], constraint: str | None, forbidden: Iterable[tuple[Any, Any]] | None
) -> Allowed | None:
    """What a scheme and a list of forbidden transitions allow; None if nothing is ruled out."""
    pairs = _pairs(forbidden)
    if constraint is None and not pairs:
        return None
    n = len(classes)
    allowed = Allowed(np.ones((n, n), np.bool_), np.ones(n, np.bool_), np.ones(n, np.bool_))
    if constraint is not None:
        _apply_scheme(allowed, classes, constraint)
    codes = {label: code for code, label in enumerate(classes)}
    for pair in pairs:
        for label in pair:
            if not isinstance(label, Hashable) or label not in codes:
                raise ModelError(f"forbidden: no label is {label!r}; there are {', '.join(map(repr, classes))}")
        allowed.transitions[codes[pair[0]], codes[pair[1]]] = False
    return allowed


def _pairs(forbidden: Any) -> list[tuple[Any, Any]]:
    """Pairs of labels, as a list."""
    if forbidden is None:
        return []
    if isinstance(forbidden, (str, bytes, Iterator)) or not isinstance(forbidden, Iterable):
        raise ModelError(f"forbidden must be a list of pairs (label, next label), got {type(forbidden).__name__}")
    pairs = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair,) for pair in forbidden]
    for pair in pairs:
        if len(pair) != 2:
            raise ModelError(f"forbidden must have pairs (label, next label), got {pair}")
    return pairs


def _apply_scheme(allowed: Allowed, classes: Sequence[Any], scheme: str) -> None:
    parts = [split_label(label, scheme) for label in classes]
    for i, before in enumerate(parts):
        allowed.first[i] = before[0] not in ("I", "E")
        allowed.last[i] = scheme == "BIO" or before[0] not in ("B", "I")
        for j, after in enumerate(parts):
            allowed.transitions[i, j] = _follows(before, after, scheme)


def split_label(label: object, scheme: str) -> tuple[str, str]:
    """("B", "NP") for "B-NP", ("O", "") for "O"; ModelError if it is no label of the scheme."""
    letter, dash, kind = str(label).partition("-")
    if (letter == "O" and not dash) or (len(letter) == 1 and letter in SCHEMES[scheme] and dash and kind):
        return letter, kind
    expected = ", ".join(f"{each}-x" for each in SCHEMES[scheme])
    raise ModelError(f"constraint={scheme!r} needs labels O and {expected}, got {label!r}")


def _follows(before: tuple[str, str], after: tuple[str, str], scheme: str) -> bool:
    """Whether a label may come right after another."""
    inside = after[0] in ("I", "E")
    if scheme == "BIO":
        return not inside or (before[0] in ("B", "I") and before[1] == after[1])
    is_open = before[0] in ("B", "I")
    return before[1] == after[1] if is_open and inside else is_open == inside
