"""Decoding a low-density parity-check code by belief propagation, and its error rate over the noise of the channel.

A (3, 6) code (Gallager 1962): 10,000 bits, each in three checks, and 5,000 checks, each of six bits, an even number of
which are 1. Bits go over a channel as +1 and -1 with Gaussian noise of variance s^2, so that the log-odds of a 1 are
-2 y / s^2. Belief propagation on long codes of this kind decodes up to s = 0.88, a signal-to-noise ratio Eb/N0 of
1.1 dB (Richardson and Urbanke 2001): there the error rate falls off a cliff.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import besag

RATE = 0.5


def checks_of(n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """(n_bits / 2, 6): the bits of each check, at random, none of them twice in one check."""
    sockets = rng.permutation(np.repeat(np.arange(n_bits), 3)).reshape(-1, 6)
    while True:
        ordered = np.sort(sockets, axis=1)
        twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if len(twice) == 0:
            return sockets
        rows = np.union1d(twice, rng.integers(len(sockets), size=len(twice)))
        sockets[rows] = rng.permutation(sockets[rows].ravel()).reshape(-1, 6)


def error_rate(model: besag.Model, received: np.ndarray, variance: float) -> float:
    """The share of bits that are decoded wrongly, where the code word of zeros was sent."""
    log_odds = -2.0 * received / variance
    weights = np.stack([np.zeros(len(log_odds)), log_odds], axis=1).reshape(1, -1)
    evidence = besag.Evidence(np.full((1, len(log_odds)), -1), weights)
    found = model.marginals(evidence=evidence, engine="bp[max_iterations=60,tolerance=1e-3]")
    return float((found.array[:, 1] > 0.5).mean())


def main() -> None:
    """Draw a code, decode at several signal-to-noise ratios, and plot the error rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=10_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)  # beyond the threshold messages do not settle
    rng = np.random.default_rng(0)
    n_bits = arguments.bits
    model = besag.markov_network([2] * n_bits, [(checks_of(n_bits, rng), besag.factors.parity(6))])
    ratios = [0.4, 0.7, 1.0, 1.3, 1.6, 2.0]
    rates, plain = [], []
    for ratio in ratios:
        variance = 1.0 / (2.0 * RATE * 10.0 ** (ratio / 10.0))
        received = 1.0 + np.sqrt(variance) * rng.normal(size=n_bits)
        plain.append(float((received < 0).mean()))
        rates.append(error_rate(model, received, variance))
        print(f"Eb/N0 = {ratio:.1f} dB: {plain[-1]:.4f} of the bits arrive wrong, {rates[-1]:.4f} after decoding")
    plot(ratios, plain, rates)
    print("out/ldpc.png shows the cliff")


def plot(ratios: list[float], plain: list[float], rates: list[float]) -> None:
    """Error rates over the signal-to-noise ratio."""
    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.semilogy(ratios, plain, "o--", label="as received")
    axes.semilogy(ratios, np.maximum(rates, 1e-5), "o-", label="decoded (below $10^{-5}$: no error)")
    axes.axvline(1.1, color="grey", linewidth=0.8)
    axes.set(xlabel="$E_b / N_0$ [dB]", ylabel="bit error rate")
    axes.legend()
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/ldpc.png", dpi=150)


if __name__ == "__main__":
    main()
