"""Convergence diagnostics of chains: rank-normalised split R-hat and effective sample size.

After Vehtari, Gelman, Simpson, Carpenter and Buerkner, Bayesian Analysis 16 (2021), as ArviZ computes them. Each chain
is cut into halves, draws are replaced by their ranks among all, and ranks by normal quantiles z. With n draws in each
of m halves, W the mean of their variances and B / n the variance of their means,

    R-hat = sqrt((n - 1) / n + B / (n W)),  the larger of that of z and that of |x - median|, ranked likewise
    ESS   = m n / tau,   tau = 1 + 2 sum of autocorrelations, cut off at the first pair of them without a positive sum,
                         sums of pairs being made non-increasing (Geyer)
    error of the mean of x = s / sqrt(ESS), with the ESS of the halves themselves in place of their ranks'

    x (T, C, n): T scalars watched in C chains of n draws each
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array

MOST = 1.01  # R-hat of chains that agree
LEAST = 100  # effective draws per chain that are enough
FEWEST = 8  # draws per chain that the diagnostics need


def r_hat(x: Array) -> Array:
    """(T,): rank-normalised split R-hat; 1 if nothing ever changes, inf if chains are stuck at different values."""
    if x.shape[2] < FEWEST:
        return np.full(len(x), np.inf)
    halves = _halves(x)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    return np.maximum(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def effective_size(x: Array) -> Array:
    """(T,): effective sample size of the rank-normalised halves; all draws count for a scalar that never changes."""
    if x.shape[2] < FEWEST:
        return np.zeros(len(x))
    return np.array([_effective(one) for one in _normal_scores(_halves(x))])


def mean_error(x: Array) -> Array:
    """(T,): the standard error of the mean of all draws, s / sqrt(ESS) of the halves as they are; inf if unknown."""
    if x.shape[2] < FEWEST:
        return np.full(len(x), np.inf)
    x = x - x[:, :1, :1]  # exactly 0 where all draws agree
    sizes = np.array([_effective(one) for one in _halves(x)])
    return np.asarray(x.std(axis=(1, 2), ddof=1) / np.sqrt(sizes))


def _halves(x: Array) -> Array:
    """(T, C, n) -> (T, 2 C, n // 2)."""
    half = x.shape[2] // 2
    return np.concatenate([x[:, :, :half], x[:, :, -half:]], axis=1)


def _normal_scores(x: Array) -> Array:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    flat = x.reshape(len(x), -1)
    ranks = rankdata(flat, method="average", axis=1)
    return np.asarray(ndtri((ranks - 0.375) / (flat.shape[1] + 0.25))).reshape(x.shape)


def _plain_r_hat(x: Array) -> Array:
    n = x.shape[2]
    between, within = x.mean(axis=2).var(axis=1, ddof=1), x.var(axis=2, ddof=1).mean(axis=1)
    moving = within > 1e-20
    ratio = between / np.where(moving, within, 1.0)
    stuck = np.where(between > 1e-20, np.inf, 1.0)
    return np.where(moving, np.sqrt((n - 1) / n + ratio), stuck)


def _effective(x: Array) -> float:
    """Effective size of draws (m, n)."""
    m, n = x.shape
    covariance = _autocovariance(x).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    spread = covariance[0] + (x.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    if spread <= 1e-20:
        return float(m * n)
    rho = 1.0 - (within - covariance) / spread
    rho[0] = 1.0
    n_pairs = (n - 3) // 2 + 1
    pairs = rho[: 2 * n_pairs].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    last = int(ends[0]) if len(ends) else n_pairs - 1
    kept = np.minimum.accumulate(pairs[:last])
    tau = -1.0 + 2.0 * float(kept.sum()) + max(float(rho[2 * last]), 0.0)
    return float(m * n / max(tau, 1.0 / np.log10(m * n)))


def _autocovariance(x: Array) -> Array:
    """(m, n): at every lag, by the Fourier transform."""
    n = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 ** int(np.ceil(np.log2(2 * n))), axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n)
