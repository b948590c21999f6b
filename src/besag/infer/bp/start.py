"""Messages that belief propagation is to begin with, as a user writes them.

    a DataFrame as r.messages gives it       source, target, state, value; of several iterations the last counts
    {(source, target): K values}             one message each

Values are weights, or energies where the labelling of least energy is looked for, of any scale. Those of factors on
two variables or more count, and those that are not given are constant. Messages of variables, of factors on one
variable and of evidence follow from them or from the model: they are looked at, and not read. A weight of zero, where
the model has no hard zero, is taken for the least positive number: only the model rules states out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Array, Semiring
from besag.errors import CapabilityError
from besag.infer.bp.kernels.links import MessageLinks
from besag.infer.bp.nodes import EVIDENCE, ends_of, entries_of, supported_entries
from besag.infer.prepared import Prepared
from besag.text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["source", "target", "state", "value"]
LEAST = math.log(math.ulp(0.0))


class Given(NamedTuple):
    """One message: where each of its values was given, the states they name, None for all in order, and the values."""

    rows: list[str]
    states: list[Any] | None
    values: Any

    @property
    def where(self) -> str:
        """Its first row."""
        return self.rows[0]


class Place(NamedTuple):
    """Where a message belongs: its variable, its link, -1 where it is not read, and whether a variable sends it."""

    variable: int
    link: int
    is_reply: bool


def read_messages(given: Any, setting: Prepared, links: MessageLinks, semiring: Semiring) -> Array:
    """(R, M): the logarithms of all messages of factors; CapabilityError names what cannot be read."""
    places = _places(setting, links)
    found: dict[int, Array] = {}
    replies: dict[int, str] = {}
    for pair, messages in _listed(given).items():
        known = places.get(pair, [])
        if pair[0] == EVIDENCE and not known:  # of another question
            continue
        if len(messages) != len(known):
            raise _mismatch(pair, messages[0].where, len(messages), places)
        for place, message in zip(known, messages, strict=True):
            logs = _logs(setting, place.variable, message, semiring)
            if place.is_reply and place.link >= 0:
                replies[place.link] = message.where
            elif place.link >= 0:
                found[place.link] = logs
    for link in replies.keys() - found.keys():
        raise CapabilityError(
            f"init {replies[link]}: a variable's message follows from those of its factors, 002 (34); give the "
            "message of this factor to the variable"
        )
    return _filled(found, setting, links)


def _mismatch(
    pair: tuple[str, str], where: str, n_given: int, places: Mapping[tuple[str, str], list[Place]]
) -> CapabilityError:
    """Why the messages that are given of a pair of names cannot be placed."""
    source, target = pair
    if pair in places:
        return CapabilityError(
            f"init {where}: {len(places[pair])} messages go from {source!r} to {target!r}, got {n_given}; give a "
            "DataFrame with all of them, in the order of r.messages"
        )
    names = sorted({name for known in places for name in known})
    unknown = next((name for name in pair if name not in names), None)
    hint = "" if unknown is None else did_you_mean(unknown, names)
    text = f"init {where}: no message goes from {source!r} to {target!r}"
    return CapabilityError("; ".join(filter(None, (text, hint))))


def _places(setting: Prepared, links: MessageLinks) -> dict[tuple[str, str], list[Place]]:
    """The messages of each pair of names, in the order in which r.messages has them."""
    places: dict[tuple[str, str], list[Place]] = {}
    for v, ends in ends_of(setting.problem, links):
        name = setting.graph.variables.names[v]
        for end in ends:
            places.setdefault((end.name, name), []).append(Place(v, end.link, False))
            if end.factor >= 0:
                places.setdefault((name, end.name), []).append(Place(v, end.link, True))
    return places


def _listed(given: Any) -> dict[tuple[str, str], list[Given]]:
    """The given messages by their names; several of one pair of names in the order of their rows."""
    if isinstance(given, Mapping):
        for key in given:
            if not isinstance(key, tuple) or len(key) != 2:
                raise CapabilityError(f"init: messages are given by (source, target), got {key!r}")
        return {(str(s), str(t)): [Given([f"{(s, t)}"], None, values)] for (s, t), values in given.items()}
    if not hasattr(given, "columns"):
        expected = "a Result, a DataFrame of messages or {(source, target): values}"
        raise CapabilityError(f"init must be {expected}, got {type(given).__name__}")
    missing = [column for column in COLUMNS if column not in given.columns]
    if missing:
        raise CapabilityError(f"init must have columns {', '.join(COLUMNS)}, as r.messages has; {missing} missing")
    return _rows(given)


def _rows(frame: pd.DataFrame) -> dict[tuple[str, str], list[Given]]:
    if "iteration" in frame.columns:
        frame = frame[frame["iteration"] == frame["iteration"].max()]
    found: dict[tuple[str, str], list[Given]] = {}
    columns = (frame.index, *(frame[column] for column in COLUMNS))
    for label, source, target, state, value in zip(*columns, strict=True):
        messages = found.setdefault((str(source), str(target)), [])
        message = next((m for m in messages if m.states is not None and state not in m.states), None)
        if message is None:
            messages.append(message := Given([], [], []))
        assert message.states is not None
        message.rows.append(f"row {label!r}")
        message.states.append(state)
        message.values.append(value)
    return found


def _logs(setting: Prepared, v: int, message: Given, semiring: Semiring) -> Array:
    """(K,): the largest is 0."""
    variables = setting.graph.variables
    name, states = variables.names[v], variables.states(v)
    try:
        values = np.asarray(message.values, np.float64)
    except (TypeError, ValueError):
        raise CapabilityError(f"init {message.where}: expected numbers, got {message.values!r}") from None
    if message.states is not None:
        codes = [variables.find_state(v, state) for state in message.states]
        if None in codes:
            wrong = message.states[codes.index(None)]
            where = message.rows[codes.index(None)]
            raise CapabilityError(f"init {where}: {wrong!r} is no state of {name!r}; there are {list(states)}")
        if sorted(codes) != list(range(len(states))):  # type: ignore[type-var]
            raise CapabilityError(f"init {message.where}: give all states of {name!r}, {list(states)}, once each")
        order = np.argsort(codes)  # type: ignore[arg-type]
        message, values = message._replace(rows=[message.rows[i] for i in order]), values[order]
    if values.shape != (len(states),):
        raise CapabilityError(
            f"init {message.where}: a message about {name!r} has {len(states)} values, got shape {values.shape}"
        )
    return _scaled(values, message, semiring)


def _scaled(values: Array, message: Given, semiring: Semiring) -> Array:
    """Log-weights whose largest is 0; a weight of zero is as far below all others as the least number is below 1."""
    energies = semiring == Semiring.MAX
    sound = (values > -np.inf) if energies else (values >= 0) & (values < np.inf)
    if not sound.all():
        at = int(np.argmin(sound))
        where = message.rows[at if len(message.rows) > 1 else 0]
        expected = "energies, numbers that are not -inf" if energies else "weights, finite numbers from 0 on"
        raise CapabilityError(f"init {where}: values of messages are {expected}, got {values[at]}")
    with np.errstate(divide="ignore"):
        logs = -values if energies else np.log(values)
    finite = logs > -np.inf
    if not finite.any():
        raise CapabilityError(f"init {message.where}: a message must leave at least one state, got {values.tolist()}")
    return np.asarray(np.where(finite, logs, logs[finite].min() + LEAST) - logs.max())


def _filled(found: dict[int, Array], setting: Prepared, links: MessageLinks) -> Array:
    """(R, M): constants where nothing is given; zero where a factor does not support a state."""
    logs = np.zeros(int(links.message_offsets[-1]))
    for link, values in found.items():
        logs[entries_of(links, link)] = values
    rows = np.tile(logs, (setting.n_rows, 1))
    for row, base in zip(rows, setting.base, strict=True):
        supported = supported_entries(setting.problem, links, base)
        if supported is not None:
            row[~supported] = -np.inf
    return rows
