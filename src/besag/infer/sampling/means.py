"""Means over sweeps, and their Monte Carlo standard errors, without keeping the sweeps.

Sweeps are added up in batches of b, long enough for nearly independent batch means. With B batches of each of C chains

    mean         over all sweeps of all chains
    error^2      the larger of  s^2 / (B C),  s^2 the variance of all batch means about the mean, and
                 v / C,  v the variance of the chains' means, which is the larger one if the chains do not mix

The error is inf if neither exists: a single chain and fewer than two batches. A sampler's layout of sums (see
`besag.infer.sampling.single_site`) is kept throughout; three arrays of that size are all the memory needed.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array
from besag.infer.sampling.single_site import Sampler

BATCHES = 16  # for all chains together
LEAST_BATCHES = 8  # for each chain
CHUNK = 1 << 15  # numbers at a time, so that they stay in the cache


class Running:
    """Sums over the sweeps that a sampler has kept, `n` of each chain."""

    def __init__(self, sampler: Sampler, n_samples: int, n_chains: int) -> None:
        n_batches = max(LEAST_BATCHES, BATCHES // n_chains)
        self.sampler, self.length = sampler, max(1, n_samples // n_batches)
        self.totals, self.squares = np.zeros_like(sampler.sums), np.zeros_like(sampler.sums)
        self.n, self.n_batches = 0, 0

    def count(self) -> bool:
        """Count one more sweep in the sampler's sums; returns whether a batch ends with it."""
        self.n += 1
        if self.n % self.length:
            return False
        whole = (self.sampler.sums.reshape(-1), self.totals.reshape(-1), self.squares.reshape(-1))
        for start in range(0, whole[0].size, CHUNK):
            sums, totals, squares = (array[start : start + CHUNK] for array in whole)
            totals += sums
            sums *= 1.0 / self.length
            sums *= sums
            squares += sums
            sums[:] = 0.0
        self.n_batches += 1
        return True

    def by_chain(self) -> Array:
        """(R, C, Q): the sum over all sweeps, for each chain."""
        return self.sampler.chains(self.totals + self.sampler.sums)

    def mean(self) -> Array:
        """(R, S): zeros before the first sweep."""
        sums = self.by_chain()
        mean = sums.mean(axis=1) / max(self.n, 1)
        return self.sampler.of_states(np.minimum(mean, 1.0))  # after Ctrl-C within a sweep some sums have n + 1 terms

    def error(self) -> Array:
        """(R, S): the standard error of the mean."""
        return self.sampler.of_states(self._error(), errors=True)

    def largest_error(self) -> float:
        """The largest standard error over all states."""
        return float(self._error().max(initial=0.0))

    def _error(self) -> Array:
        totals = self.sampler.chains(self.totals)
        n_chains, n_means = totals.shape[1], self.n_batches * totals.shape[1]
        unknown = np.full((totals.shape[0], totals.shape[2]), np.inf)
        if self.n_batches == 0 or n_means < 2:
            return unknown
        means = totals / (self.n_batches * self.length)
        mean = means.mean(axis=1)
        squares = self.sampler.chains(self.squares).sum(axis=1)
        within = np.maximum(squares / n_means - mean**2, 0.0) / (n_means - 1)
        if n_chains == 1:
            return np.asarray(np.sqrt(within)) if self.n_batches > 1 else unknown
        return np.asarray(np.sqrt(np.maximum(within, means.var(axis=1, ddof=1) / n_chains)))
