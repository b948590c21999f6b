"""The names of states: given, numbers, or what y has; and the codes of states that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import IntArray
from besag.data.observations import Tape, codes_of_symbols, find_symbols
from besag.errors import ModelError
from besag.estimators.hmm.parameters import HiddenMarkovModel, read_model, read_names

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_init(init: Any, n_states: int | None, states: Any, symbols: Any) -> HiddenMarkovModel | None:
    """What learning begins at: None, a fitted HMM, or (start, transition, emission)."""
    if init is None:
        return None
    if isinstance(model := getattr(init, "model_", None), HiddenMarkovModel):
        found = model
        _refuse_other_names("states", states, found.states)
        _refuse_other_names("symbols", symbols, found.symbols)
    elif isinstance(init, (tuple, list)) and len(init) in (2, 3):
        found = read_model(init[0], init[1], init[2] if len(init) == 3 else None, states, symbols)
    else:
        raise ModelError(f"init must be None, a fitted HMM or (start, transition, emission), got {init!r}")
    if n_states not in (None, len(found.states)):
        raise ModelError(f"init has {len(found.states)} states, and n_states={n_states}")
    return found


def _refuse_other_names(what: str, given: Any, found: tuple[Any, ...]) -> None:
    if given is not None and read_names(what, given) != found:
        raise ModelError(f"init has the {what} {list(found)}, and {what}={list(given)}; leave out {what}=")


def name_states(n_states: int | None, given: Any, known: Tape | None) -> tuple[Any, ...]:
    """As they are given, else the ones of y where it has them all, else 0 to n_states - 1."""
    if given is not None:
        names = read_names("states", given)
        if n_states not in (None, len(names)):
            raise ModelError(f"states must be {n_states} names, as n_states says, got {len(names)}")
        return names
    if known is not None and not (n_states is not None and _is_all_missing(known)):
        found = find_symbols(known, "state")
        if n_states is None or len(found) == n_states:
            return found
        numbered = known.values.dtype != object
        if not numbered or len(found) > n_states or found[-1] >= n_states:
            raise ModelError(f"y has the states {list(found)}, and n_states={n_states}; name all of them: states=[...]")
    if n_states is None:
        raise ModelError("the number of states is not known: give n_states=, states=, init=, or y")
    return tuple(range(n_states))


def _is_all_missing(known: Tape) -> bool:
    return all(value is None or value == -1 for value in known.values.tolist())


def codes_of_states(known: Tape, tape: Tape, states: Sequence[Any]) -> IntArray:
    """(T,): the states of the tokens of X, -1 where one is not known."""
    if not np.array_equal(known.offsets, tape.offsets):
        raise ModelError(
            f"y must have the lengths of X: X has {len(tape.offsets) - 1} sequences and {tape.offsets[-1]} tokens, y "
            f"has {len(known.offsets) - 1} and {known.offsets[-1]}; lengths of sequences in one array are lengths=[...]"
        )
    return codes_of_symbols(known, states, "state")
