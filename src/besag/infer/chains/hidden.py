"""Expected counts, posteriors and log Z of hidden Markov chains, straight from arrays.

    p(y, x) = pi(y_0) prod_t T(y_t-1, y_t) prod_t e_t(y_t)

Tokens (T,) of N sequences, offsets (N + 1,), read their e_t from rows of log-weights (R, K): one for each symbol, or
one for each token. Sequences whose numbers are too far apart for the linear domain are done in the log domain, each by
itself. Counts are added up in chunks that depend on the sequences alone, so that no number of threads changes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag import recycled
from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.infer.chains.kernels.expectations import BY_ROW, BY_TOKEN, FAINTEST, SMALLEST, make_expectations
from besag.infer.chains.kernels.gradient import pad_columns
from besag.infer.chains.kernels.log_expectations import make_log_expectations
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks

CHUNK = 1 << 13  # tokens in a chunk of sequences, at least
MOST_CHUNKS = 16  # since each has counts of its own


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Sequences of tokens: row (T,), which row of weights each one reads, and offsets (N + 1,)."""

    row: IntArray
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Rows of weights for K states. logs (R, K); linear (R, W), the largest of each row 1; taken (R,); narrow (R,)."""

    logs: Array
    linear: Array
    taken: Array
    narrow: BoolArray

    @classmethod
    def of(cls, logs: Array) -> Weights:
        """From logarithms, -inf where a state is ruled out."""
        n_rows, n_states = logs.shape
        taken = np.max(logs, axis=1, initial=-math.inf)
        taken[taken == -math.inf] = 0.0
        linear = np.zeros((n_rows, pad_columns(n_states)))
        np.exp(logs - taken[:, None], out=linear[:, :n_states])
        narrow = ((linear[:, :n_states] < SMALLEST) & (logs > -math.inf)).any(axis=1)
        return cls(freeze(logs), freeze(linear), freeze(taken), np.asarray(narrow))


class Dynamics(NamedTuple):
    """What chains share, as logarithms: start (K,), transition (K, K)."""

    start: Array
    transition: Array

    @property
    def is_narrow(self) -> bool:
        """Whether the linear domain is out of the question."""
        return _is_below(self.start, SMALLEST) or _is_below(self.transition, FAINTEST)


def _is_below(logs: Array, least: float) -> bool:
    return bool(((logs > -math.inf) & (logs < math.log(least))).any())


class Expectations(NamedTuple):
    """log_z (N,), -inf for impossible sequences, which count nowhere; sums of posteriors.

    marginals: (R, K) by row, or (T, K) by token, or (0, K); begun (K,): of first tokens; pairs (K, K).
    """

    log_z: Array
    marginals: Array
    begun: Array
    pairs: Array


def expected_counts(weights: Weights, dynamics: Dynamics, tokens: Tokens, n_threads: int | None = None) -> Expectations:
    """The E-step: posteriors summed over the tokens that read a row, over first tokens, and over pairs."""
    return _run(weights, dynamics, tokens, BY_ROW, 1, n_threads)


def expected_pairs(weights: Weights, dynamics: Dynamics, tokens: Tokens, n_threads: int | None = None) -> Expectations:
    """The E-step where rows of weights are not learnt."""
    return _run(weights, dynamics, tokens, 0, 1, n_threads)


def posteriors(weights: Weights, dynamics: Dynamics, tokens: Tokens, n_threads: int | None = None) -> Expectations:
    """The posterior of each token."""
    return _run(weights, dynamics, tokens, BY_TOKEN, 0, n_threads)


def log_evidence(weights: Weights, dynamics: Dynamics, tokens: Tokens, n_threads: int | None = None) -> Array:
    """log Z (N,) alone, by the forward pass."""
    return _run(weights, dynamics, tokens, 0, 0, n_threads).log_z


def _run(
    weights: Weights, dynamics: Dynamics, tokens: Tokens, marginals: int, paired: int, n_threads: int | None
) -> Expectations:
    n_states, n_tokens, n_rows = weights.logs.shape[1], len(tokens.row), len(weights.logs)
    width, compile = pad_columns(n_states), worth_compiling(float(n_tokens) * n_states**2)
    linear = kernel_of(make_expectations, n_states, marginals, paired, compile=compile)
    initial, tables = np.zeros((1, width)), np.zeros((2, width, width))
    np.exp(dynamics.start, out=initial[0, :n_states])
    np.exp(dynamics.transition, out=tables[0, :n_states, :n_states])
    tables[1] = tables[0].T
    row, offsets = freeze(tokens.row), freeze(tokens.offsets)
    log_z, lost = np.zeros(len(tokens)), _lost_before(weights, dynamics, tokens)
    cuts, lengths = _cuts(offsets), np.diff(offsets)
    counts = np.zeros((len(cuts) - 1, n_rows if marginals == BY_ROW else 0, width))
    of_tokens = recycled.empty((n_tokens if marginals == BY_TOKEN else 0, width))
    begun, pairs = np.zeros((len(cuts) - 1, 1, width)), np.zeros((2, len(cuts) - 1, width, width))
    given, logs = (freeze(initial), freeze(tables)), (freeze(dynamics.start[None]), freeze(dynamics.transition))

    def some(i: int) -> None:
        bounds, room = (offsets, int(cuts[i]), int(cuts[i + 1])), of_tokens
        if marginals != BY_TOKEN:
            longest = int(lengths[cuts[i] : cuts[i + 1]].max()) if marginals + paired else 1
            room = recycled.empty((longest, width))
        first = (begun[i], pairs[0, i], log_z, lost)
        if linear(weights.linear, weights.taken, row, *given, *bounds, room, counts[i], *first):
            again = kernel_of(make_log_expectations, n_states, marginals, paired, compile=compile)
            sums = of_tokens if marginals == BY_TOKEN else counts[i]
            again(weights.logs, row, *logs, *bounds, sums, begun[i], pairs[1, i], log_z, lost)

    run_chunks(some, len(cuts) - 1, n_threads)
    summed = pairs.sum(axis=1)
    together = of_tokens if marginals == BY_TOKEN else counts.sum(axis=0)
    return Expectations(
        log_z,
        together[:, :n_states],
        begun.sum(axis=(0, 1))[:n_states],
        (summed[0] * tables[0] + summed[1])[:n_states, :n_states],
    )


def _lost_before(weights: Weights, dynamics: Dynamics, tokens: Tokens) -> BoolArray:
    """(N,): the sequences that are for the log domain from the start."""
    lost = np.full(len(tokens), dynamics.is_narrow)
    if weights.narrow.any():
        narrow = np.concatenate([[0], np.cumsum(weights.narrow[tokens.row])])
        lost |= narrow[tokens.offsets[1:]] > narrow[tokens.offsets[:-1]]
    return lost


def _cuts(offsets: IntArray) -> IntArray:
    """(C + 1,): the first sequence of each chunk, and the number of sequences."""
    n_tokens, n_sequences = int(offsets[-1]), len(offsets) - 1
    n_chunks = max(1, min(n_tokens // CHUNK, MOST_CHUNKS, n_sequences))
    aims = np.linspace(0, n_tokens, n_chunks + 1)[1:-1]
    return np.unique(np.concatenate([[0], np.searchsorted(offsets, aims), [n_sequences]]))
