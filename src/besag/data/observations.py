"""Sequences of observed symbols as codes: what hidden Markov models learn from.

X is a list of sequences, or one array of all their tokens, with hmmlearn's `lengths` (N,) where it is more than one
sequence. A token is a text or an integer; None, NaN and -1 are missing. Codes (T,) number the symbols, -1 = missing,
and lie one sequence after the other, offsets (N + 1,). Observations given as log-likelihoods are arrays (T, K).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, offsets_of
from besag.data.attributes import has_order, iterate_sequences, show_value
from besag.errors import ModelError
from besag.graph.evidence import is_missing
from besag.text import did_you_mean, shorten

MOST_SPREAD = 1 << 20  # integers are looked up in a table if they lie within so many


class Tape(NamedTuple):
    """Sequences one after the other: values (T, ...), offsets (N + 1,); is_one: given as one array, not as a list."""

    values: AnyArray
    offsets: IntArray
    is_one: bool

    def where(self, t: int) -> str:
        """The place of a token, for a message."""
        n = int(np.searchsorted(self.offsets, t, side="right")) - 1
        return f"sequence {n}, position {t - int(self.offsets[n])}"

    def parts(self, values: Any) -> Any:
        """Values of all tokens in the form of X: one array, or a list of arrays."""
        if self.is_one:
            return values
        return [values[a:b] for a, b in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)]


def read_symbols(X: Any, lengths: Any = None) -> Tape:
    """Tokens as integers, -1 = missing, or as objects, None = missing."""
    return _read(X, lengths, _tokens)


def read_frames(X: Any, lengths: Any, n_states: int) -> Tape:
    """Log-likelihoods (T, K)."""
    tape = _read(X, lengths, lambda given, where: _frames(given, where, n_states))
    wrong = ~(tape.values < np.inf).all(axis=1)
    if wrong.any():
        t = int(np.argmax(wrong))
        raise ModelError(
            f"{tape.where(t)}: log-likelihoods must be numbers below infinity, got {tape.values[t].tolist()}; what "
            "was not observed is a row of zeros"
        )
    return tape


def _read(X: Any, lengths: Any, read: Callable[[Any, str], AnyArray]) -> Tape:
    if lengths is not None or (hasattr(X, "__array__") and not _is_ragged(X)):
        values = read(X, "X")
        sizes = np.array([len(values)]) if lengths is None else _sizes(lengths, len(values))
        is_one, parts = True, [values]
    else:
        parts = [read(one, f"sequence {n}") for n, one in enumerate(iterate_sequences(X))]
        sizes, is_one = np.array([len(part) for part in parts], np.int64), False
    if not len(sizes) or (sizes == 0).any():
        where = f"sequence {int(np.argmin(sizes))} is empty: leave it out" if len(sizes) else "there is no sequence"
        raise ModelError(f"{where}; expected sequences of one token or more")
    plain = all(part.dtype == parts[0].dtype for part in parts)
    values = np.concatenate(parts if plain else [_as_objects(part) for part in parts])
    return Tape(values, offsets_of(sizes), is_one)


def _is_ragged(X: Any) -> bool:
    """Whether an array holds sequences, not tokens."""
    values = np.asarray(X)
    return values.dtype == object and values.ndim == 1 and len(values) > 0 and has_order(values[0]) and _is_list(values)


def _is_list(values: AnyArray) -> bool:
    return not isinstance(values[0], (str, bytes))


def _sizes(lengths: Any, n_tokens: int) -> IntArray:
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ModelError(f"lengths must be whole numbers, one a sequence, got {show_value(lengths)}")
    if int(sizes.sum()) != n_tokens:
        raise ModelError(f"lengths add up to {int(sizes.sum())}, and X has {n_tokens} tokens")
    return sizes.astype(np.int64)


def _tokens(given: Any, where: str) -> AnyArray:
    """One axis of tokens: int64 with -1 = missing, or objects with None."""
    if isinstance(given, (str, bytes)) or not has_order(given):
        hint = "; of one sequence make a list, [X]" if where != "X" else ""
        raise ModelError(f"{where}: expected a list of tokens, got {show_value(given)}{hint}")
    if not hasattr(given, "__array__"):
        given = list(given)
        known = np.asarray(given) if given and all(type(token) is int for token in given) else None
        values = _objects(given) if known is None else known
    else:
        values = np.asarray(given)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ModelError(
            f"{where}: expected one axis of tokens, got shape {values.shape}; a list of sequences is list(X)"
        )
    return _as_integers(values, where)


def _objects(given: list[Any]) -> AnyArray:
    values = np.empty(len(given), object)
    values[:] = given
    return values


def _as_integers(values: AnyArray, where: str) -> AnyArray:
    """int64 where all that is known are integers."""
    if values.dtype.kind not in "iubf":
        values = _plain(values)
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        whole = np.where(missing, -1.0, values)
        if not (whole == np.floor(whole)).all() or not np.isfinite(whole).all():
            odd = float(whole[(whole != np.floor(whole)) | ~np.isfinite(whole)][0])
            raise ModelError(
                f"{where}: symbols are texts or whole numbers, got {odd}; besag.Discretizer makes states of numbers, "
                'and emission="log_likelihood" takes densities'
            )
        return whole.astype(np.int64)
    return values


def _plain(values: AnyArray) -> AnyArray:
    """Objects, as Python has them; None where one is missing."""
    listed = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    listed = [None if is_missing(value) else value for value in listed]
    known = {type(value) for value in listed}
    if known <= {int, bool, type(None)} and known & {int, bool}:
        return np.array([-1 if value is None else value for value in listed], np.int64)
    if float in known and known <= {int, bool, float, type(None)}:
        return np.array([np.nan if value is None else value for value in listed])
    return _objects(listed)


def _as_objects(values: AnyArray) -> AnyArray:
    if values.dtype == object:
        return values
    return _objects([None if value == -1 else value for value in values.tolist()])


def _frames(given: Any, where: str, n_states: int) -> Array:
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: log-likelihoods must be numbers (T, {n_states}), got {show_value(given)}") from None
    if values.ndim != 2 or values.shape[1] != n_states:
        raise ModelError(
            f"{where}: log-likelihoods must have shape (T, {n_states}), a column for each state, got {values.shape}"
        )
    return values


def find_symbols(tape: Tape, what: str = "symbol") -> tuple[Any, ...]:
    """The symbols that are known, sorted."""
    values = tape.values
    if values.dtype != object:
        found = np.unique(values)
        symbols = tuple(found[found >= 0].tolist())
    else:
        try:
            symbols = tuple(sorted({value for value in values.tolist() if value is not None}))
        except TypeError as error:
            raise ModelError(f"a {what} must be a text or an integer, all of one type: {error}") from None
    if not symbols:
        raise ModelError(f"no {what} is known: expected at least one that is not None, NaN or -1")
    return symbols


def codes_of_symbols(tape: Tape, symbols: Sequence[Any], what: str = "symbol") -> IntArray:
    """(T,): the number of each token's symbol, -1 = missing; ModelError for one that is none of them."""
    if tape.values.dtype != object and all(type(symbol) is int for symbol in symbols):
        codes = _codes_of_integers(tape.values, np.array(symbols, np.int64))
    else:
        number = {symbol: code for code, symbol in enumerate(symbols)} | {None: -1}
        codes = np.array([number.get(value, -2) for value in _as_objects(tape.values).tolist()], np.int64)
    wrong = codes == -2
    if wrong.any():
        t = int(np.argmax(wrong))
        value = tape.values[t].item() if tape.values.dtype != object else tape.values[t]
        known = [str(symbol) for symbol in symbols]
        raise ModelError(
            f"{tape.where(t)}: {value!r} is no {what}; {did_you_mean(str(value), known)} there are {shorten(known)}; "
            "None, NaN and -1 are missing".replace(";  ", "; ")
        )
    return codes


def _codes_of_integers(values: IntArray, symbols: IntArray) -> IntArray:
    """-2 for what is no symbol."""
    if len(symbols) and symbols.min() >= 0 and symbols.max() < MOST_SPREAD:
        table = np.full(int(symbols.max()) + 3, -2, np.int64)  # the last but one for what is too large, the last for -1
        table[symbols], table[-1] = np.arange(len(symbols)), -1
        if values.min() < -1 or values.max() > len(table) - 2:
            values = np.where(values < -1, len(table) - 2, np.minimum(values, len(table) - 2))
        return np.asarray(table[values])
    order = np.argsort(symbols)
    at = np.minimum(np.searchsorted(symbols[order], values), len(symbols) - 1)
    found = np.where(symbols[order][at] == values, order[at], -2)
    return np.asarray(np.where(values == -1, -1, found))
