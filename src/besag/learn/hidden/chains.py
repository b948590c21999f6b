"""Hidden Markov chains: their parameters, and sequences made ready for E-steps.

    p(y, x) = pi(y_0) prod_t A(y_t-1, y_t) prod_t B(y_t, x_t)

A token reads a row of log-weights: that of its symbol, of a symbol whose state is known, of nothing where both are
missing; or, where observations are given as log-likelihoods (T, K), a row of its own.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, dot, freeze
from besag.errors import EvidenceError
from besag.infer.chains import hidden
from besag.infer.chains.best import best_chains
from besag.infer.chains.hidden import Dynamics, Tokens, Weights


class ChainParameters(NamedTuple):
    """Probabilities: start (K,), transition (K, K), emission (K, M), (K, 0) where log-likelihoods are given."""

    start: Array
    transition: Array
    emission: Array

    @property
    def dynamics(self) -> Dynamics:
        """Start and transitions as logarithms."""
        return Dynamics(logs_of(self.start), logs_of(self.transition))

    def packed(self) -> Array:
        """(P,): one after the other."""
        return np.concatenate([part.reshape(-1) for part in self])

    def like(self, packed: Array) -> ChainParameters:
        """The inverse of `packed`, for parts of these shapes."""
        k, m = self.emission.shape
        start, transition, emission = np.split(np.array(packed, np.float64), [k, k + k * k])
        return ChainParameters(start, transition.reshape(k, k), emission.reshape(k, m))

    def normalised(self, otherwise: ChainParameters) -> ChainParameters:
        """These counts, each row over its sum; a row that has none is as in `otherwise`."""
        return ChainParameters(*(_rows_over_sums(own, other) for own, other in zip(self, otherwise, strict=True)))

    def plus(self, other: ChainParameters) -> ChainParameters:
        """The sum, part by part."""
        return ChainParameters(*(own + more for own, more in zip(self, other, strict=True)))

    def where_positive(self, other: ChainParameters) -> ChainParameters:
        """These counts, 0 where the other has zeros, which are to stay."""
        return ChainParameters(*(own * (rest > 0) for own, rest in zip(self, other, strict=True)))

    def log_density(self, counts: ChainParameters) -> float:
        """sum of counts times log p, where counts are not 0."""
        return sum(
            dot(part[part > 0], logs_of(own[part > 0])) for own, part in zip(self, counts, strict=True) if part.any()
        )


def logs_of(values: Array) -> Array:
    """Logarithms, -inf of zeros."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _rows_over_sums(counts: Array, otherwise: Array) -> Array:
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), otherwise)


class EStepOfChains(NamedTuple):
    """log p of each sequence (N,), and expected counts."""

    log_z: Array
    counts: ChainParameters


class HiddenSequences:
    """Sequences of symbols, codes (T,) with -1 = missing, or of log-likelihoods (T, K); states (T,), -1 = unknown."""

    def __init__(self, offsets: IntArray, n_states: int, states: IntArray | None) -> None:
        self.offsets, self.n_states = offsets, n_states
        self.states = states if states is not None and (states >= 0).any() else None

    @classmethod
    def of_symbols(cls, codes: IntArray, offsets: IntArray, n_states: int, states: IntArray | None = None) -> Self:
        """Categorical emissions; rows are the pairs of a symbol and what is known of the state."""
        made = cls(offsets, n_states, states)
        if made.states is None:
            made.symbol, row = np.arange(-1, int(codes.max()) + 1), codes + 1
            made.state = np.full(len(made.symbol), -1)
        else:
            which, row = _distinct((codes + 1) * (n_states + 1) + made.states + 1)
            made.symbol, made.state = which // (n_states + 1) - 1, which % (n_states + 1) - 1
        made.tokens, made._fixed = Tokens(freeze(row), freeze(offsets)), None
        return made

    @classmethod
    def of_frames(cls, frames: Array, offsets: IntArray, states: IntArray | None = None) -> Self:
        """Any emissions, given as log-likelihoods."""
        made = cls(offsets, frames.shape[1], states)
        if made.states is not None:
            rows = np.flatnonzero(made.states >= 0)
            known = np.full((len(rows), made.n_states), -np.inf)
            at = np.arange(len(rows)), made.states[rows]
            known[at] = frames[rows, made.states[rows]]
            frames = np.array(frames)
            frames[rows] = known
        made.tokens, made._fixed = Tokens(freeze(np.arange(len(frames))), freeze(offsets)), Weights.of(frames)
        return made

    symbol: IntArray  # (R,) of each row, -1 = missing
    state: IntArray  # (R,), -1 = unknown
    tokens: Tokens
    _fixed: Weights | None

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def symbol_codes(self) -> IntArray:
        """(T,): the symbol of each token, -1 = missing; () where log-likelihoods are given."""
        return np.zeros(0, np.int64) if self._fixed is not None else self.symbol[self.tokens.row]

    def treats_alike(self, i: int, j: int) -> bool:
        """Whether no token tells two states apart, but for what emissions say."""
        return self._fixed is None or np.array_equal(self._fixed.logs[:, i], self._fixed.logs[:, j])

    def log_weights(self, parameters: ChainParameters) -> Array:
        """(R, K)."""
        if self._fixed is not None:
            return self._fixed.logs
        symbols = np.concatenate([logs_of(parameters.emission.T), np.zeros((1, self.n_states))])
        rows = symbols[self.symbol]  # the last row, of zeros, where the symbol is missing
        known = self.state >= 0
        others = np.arange(self.n_states)[None] != self.state[:, None]
        rows[known[:, None] & others] = -np.inf
        return np.ascontiguousarray(rows)

    def _weights(self, parameters: ChainParameters) -> Weights:
        return self._fixed if self._fixed is not None else Weights.of(self.log_weights(parameters))

    def expect(self, parameters: ChainParameters, n_threads: int | None) -> EStepOfChains:
        """The E-step."""
        given = self._weights(parameters), parameters.dynamics, self.tokens, n_threads
        found = hidden.expected_pairs(*given) if self._fixed is not None else hidden.expected_counts(*given)
        return EStepOfChains(found.log_z, self._counts(found.begun, found.pairs, found.marginals, parameters))

    def follow(self, parameters: ChainParameters, n_threads: int | None) -> EStepOfChains:
        """The same of the best paths alone: log p(path, x), and counts along them."""
        k, codes, row = self.n_states, self.best(parameters, n_threads), self.tokens.row
        first, weights = self.offsets[:-1], self.log_weights(parameters)
        inside = np.ones(len(codes), np.bool_)
        inside[first] = False
        steps = np.flatnonzero(inside)
        pairs = np.bincount(codes[steps - 1] * k + codes[steps], minlength=k * k).reshape(k, k)
        begun = np.bincount(codes[first], minlength=k)
        rows = np.zeros((0, k))
        if self._fixed is None:
            rows = np.bincount(row * k + codes, minlength=len(weights) * k).reshape(-1, k).astype(np.float64)
        counts = self._counts(begun.astype(np.float64), pairs.astype(np.float64), rows, parameters)
        dynamics = parameters.dynamics
        steps_of = np.zeros(len(codes))
        steps_of[steps] = dynamics.transition[codes[steps - 1], codes[steps]]
        steps_of[first] = dynamics.start[codes[first]]
        return EStepOfChains(np.add.reduceat(steps_of + weights[row, codes], first), counts)

    def _counts(self, begun: Array, pairs: Array, rows: Array, like: ChainParameters) -> ChainParameters:
        emission = np.zeros((like.emission.shape[1] + 1, self.n_states))
        if self._fixed is None:
            np.add.at(emission, self.symbol, rows)  # the last row takes what is missing
        return ChainParameters(begun, pairs, np.ascontiguousarray(emission[:-1].T))

    def best(self, parameters: ChainParameters, n_threads: int | None) -> IntArray:
        """(T,): the most probable paths; EvidenceError where there is none."""
        weights, dynamics = self.log_weights(parameters), parameters.dynamics
        codes = best_chains(
            weights, dynamics.transition, self.offsets, n_threads, row=self.tokens.row, initial=dynamics.start
        )
        refuse_impossible(codes[self.offsets[:-1]] < 0)
        return codes

    def posteriors(self, parameters: ChainParameters, n_threads: int | None) -> Array:
        """(T, K)."""
        found = hidden.posteriors(self._weights(parameters), parameters.dynamics, self.tokens, n_threads)
        refuse_impossible(found.log_z == -np.inf)
        return found.marginals

    def log_evidence(self, parameters: ChainParameters, n_threads: int | None) -> Array:
        """(N,): log p of each sequence, -inf where it is impossible."""
        return hidden.log_evidence(self._weights(parameters), parameters.dynamics, self.tokens, n_threads)


def _distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, sorted, and which of them each one is; values are small whole numbers."""
    seen = np.bincount(values) > 0
    which = np.flatnonzero(seen)
    number = np.cumsum(seen) - 1
    return which, number[values]


def refuse_impossible(impossible: BoolArray) -> None:
    """EvidenceError that names the first sequence which the chain rules out."""
    if impossible.any():
        n = int(np.argmax(impossible))
        raise EvidenceError(
            f"sequence {n} has probability 0: no path of states is allowed by start, transitions, emissions and known "
            "states; a prior, as in prior=0.1, leaves no symbol out",
            row=n,
        )
