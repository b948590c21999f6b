"""Where the learning of a hidden Markov model begins.

At given parameters, or at random ones: start and transitions nearly even, because EM seldom leaves a pattern of
transitions that it begins with, and emissions that are the frequencies of the symbols times noise. Where states are
known of some tokens, their counts are added, so that a state means what it is called from the start on. What is
forbidden is 0 and stays 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray
from besag.errors import ModelError
from besag.learn.hidden.chains import ChainParameters, HiddenSequences

SHAPE = 10.0  # of the gamma variables that random transitions are shares of: how even they are
NOISE = 1.0  # standard deviation of what is added to logarithms of given parameters in restarts


def random_parameters(
    data: HiddenSequences, n_symbols: int, allowed: BoolArray, rng: np.random.Generator
) -> ChainParameters:
    """Random ones, and what known states say; allowed (K, K)."""
    k = data.n_states
    counts = _known_counts(data, n_symbols)
    symbols = np.bincount(data.symbol_codes + 1, minlength=n_symbols + 1)[1:] + 1.0
    emission = rng.gamma(1.0, 1.0, (k, n_symbols)) * symbols / max(symbols.sum(), 1.0)
    noise = ChainParameters(rng.gamma(SHAPE, 1.0 / SHAPE, k), rng.gamma(SHAPE, 1.0 / SHAPE, (k, k)), emission)
    begun = counts.plus(noise)
    begun = begun._replace(transition=begun.transition * allowed)
    return begun.normalised(begun)


def _known_counts(data: HiddenSequences, n_symbols: int) -> ChainParameters:
    """Of tokens and pairs of tokens whose states are known."""
    k, states = data.n_states, data.states
    counts = ChainParameters(np.zeros(k), np.zeros((k, k)), np.zeros((k, n_symbols)))
    if states is None:
        return counts
    first = states[data.offsets[:-1]]
    np.add.at(counts.start, first[first >= 0], 1.0)
    inside = np.ones(len(states), np.bool_)
    inside[data.offsets[:-1]] = False
    steps = np.flatnonzero(inside)
    steps = steps[(states[steps] >= 0) & (states[steps - 1] >= 0)]
    np.add.at(counts.transition, (states[steps - 1], states[steps]), 1.0)
    if n_symbols:
        seen = (states >= 0) & (data.symbol_codes >= 0)
        np.add.at(counts.emission, (states[seen], data.symbol_codes[seen]), 1.0)
    return counts


def disturb(parameters: ChainParameters, rng: np.random.Generator) -> ChainParameters:
    """Given parameters with noise; zeros stay."""
    noisy = ChainParameters(*(part * np.exp(NOISE * rng.standard_normal(part.shape)) for part in parameters))
    return noisy.normalised(parameters)


def refuse_alike(parameters: ChainParameters, data: HiddenSequences, states: Sequence[Any]) -> None:
    """ModelError where two states are alike in everything: EM would never tell them apart."""
    known = set() if data.states is None else set(data.states.tolist())
    for i, j in _alike(parameters):
        if not known & {i, j} and data.treats_alike(i, j):
            raise ModelError(
                f"states {states[i]!r} and {states[j]!r} are alike in everything that learning begins with, and no "
                "state is known of any token: EM would never tell them apart. Begin with other parameters, with "
                "init=None, or with restarts=5"
            )


def _alike(parameters: ChainParameters) -> Iterator[tuple[int, int]]:
    start, transition, emission = parameters
    k = len(start)
    for i in range(k):
        for j in range(i + 1, k):
            order = np.arange(k)
            order[[i, j]] = j, i
            same = start[i] == start[j] and np.array_equal(emission[i], emission[j])
            if same and np.array_equal(transition[order][:, order], transition):
                yield i, j


def allowed_transitions(states: Sequence[Any], forbidden: Any) -> BoolArray:
    """(K, K), from pairs (state, next state) that are ruled out."""
    allowed = np.ones((len(states), len(states)), np.bool_)
    for pair in _pairs(forbidden):
        for name in pair:
            if name not in states:
                raise ModelError(f"forbidden: no state is {name!r}; there are {', '.join(map(repr, states))}")
        allowed[states.index(pair[0]), states.index(pair[1])] = False
    refuse_ruled_out(allowed, allowed, states)
    return allowed


def refuse_ruled_out(transition: Array | BoolArray, allowed: BoolArray, states: Sequence[Any]) -> None:
    """ModelError for a state that has no next one among those that are allowed."""
    left = ((transition > 0) & allowed).any(axis=1)
    if not left.all():
        alone = states[int(np.argmin(left))]
        raise ModelError(f"forbidden: all transitions from state {alone!r} are ruled out; leave one that is allowed")


def _pairs(forbidden: Any) -> list[tuple[Any, Any]]:
    if forbidden is None:
        return []
    expected = "forbidden must be a list of pairs (state, next state)"
    if isinstance(forbidden, (str, bytes)) or not isinstance(forbidden, Iterable):
        raise ModelError(f"{expected}, got {forbidden!r}")
    pairs = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair,) for pair in forbidden]
    for pair in pairs:
        if len(pair) != 2:
            raise ModelError(f"{expected}, got {pair}")
    return pairs


def read_prior_counts(given: Any, k: int, n_symbols: int, allowed: BoolArray) -> ChainParameters:
    """Pseudo-counts: a number for all, or {"start": .., "transition": .., "emission": ..} of numbers or arrays."""
    shapes = {"start": (k,), "transition": (k, k), "emission": (k, n_symbols)}
    parts = given if isinstance(given, dict) else dict.fromkeys(shapes, given)
    odd = [name for name in parts if name not in shapes]
    if odd:
        raise ModelError(f"prior has no part {odd[0]!r}; it has {', '.join(shapes)}")
    found = [_pseudo_counts(name, parts.get(name, 0.0), shape) for name, shape in shapes.items()]
    counts = ChainParameters(*found)
    return counts._replace(transition=counts.transition * allowed)


def _pseudo_counts(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    try:
        counts = np.array(np.broadcast_to(np.asarray(given, np.float64), shape))
    except (TypeError, ValueError):
        raise ModelError(f"prior: {name} must be a number or of shape {shape}, got {given!r}") from None
    if not ((counts >= 0) & (counts < np.inf)).all():
        raise ModelError(f"prior: {name} must be finite and not below 0, got {given!r}")
    return counts
