"""Contrastive divergence and persistent chains: the likelihood's gradient from a few sweeps of Gibbs sampling, 003.

    gradient = moments(data) - moments(chains)             002 (19), (20)

    contrastive_divergence    chains begin at the data of the batch at each call, and make k sweeps (Hinton 2002)
    pcd                       they go on where the last call left them (Younes; Tieleman 2008)

on any graph, by chromatic sweeps. Unknown labels are drawn given the known ones, by a chain for each instance, which
goes on from call to call; the moments of the data are means over its sweeps. There is no value.

Monitors, a column of the history each, from the last batch of an epoch:

    moved         the share of labels that the sweeps changed: chains that stand still say nothing of the model
    energy_gap    <theta, moments(chains) - moments(data)> / W: chains that fall behind theta make it grow for ever

The state is {"calls", "monitor.*", "clamped.n": codes (1, V_n) of instance n where labels are unknown, "free.n": codes
(C, V_n) of its persistent chains}; rows on one graph share "free.0". Random numbers depend on the number of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, dot
from besag.data.dataset import Batch
from besag.errors import EvidenceError
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.engine import Want
from besag.infer.result import Diagnostics, Result
from besag.infer.sampling.gibbs import Gibbs
from besag.learn.losses.base import OBJECTIVES, Loss
from besag.learn.losses.likelihood import Likelihood, hidden_part, instance_numbers, label_moments

MOMENTS: frozenset[Want] = frozenset({"moments"})
N_CHAINS = 100
FIRST = 20  # sweeps of a chain before its first call counts


@dataclass(frozen=True, slots=True)
class ContrastiveDivergenceOptions:
    """k: sweeps of a call. persistent: chains go on, as those of pcd do."""

    k: int = 1
    persistent: bool = False

    def __post_init__(self) -> None:
        OBJECTIVES.check_counts(self, "k")

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Contrastive:
        """The loss for data of a model with these hard zeros."""
        return Contrastive(self.k, N_CHAINS if self.persistent else 0, support, n_threads)


@dataclass(frozen=True, slots=True)
class PCDOptions:
    """k: sweeps of a call. n_chains: for the model, or of each instance where each has a graph of its own."""

    k: int = 1
    n_chains: int = N_CHAINS

    def __post_init__(self) -> None:
        OBJECTIVES.check_counts(self, "k", "n_chains")

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Contrastive:
        """The loss for data of a model with these hard zeros."""
        return Contrastive(self.k, self.n_chains, support, n_threads)


def refuse_impossible_chains(problem: Problem, codes: IntArray) -> None:
    """EvidenceError where chains (R, C, V) stand at labellings that hard zeros rule out: they found no start."""
    if (problem.log_potentials > -np.inf).all():
        return
    for c in range(codes.shape[1]):
        energies = problem.energy(codes[:, c] if problem.graph.n_instances == 1 else codes[0, c])
        if (energies == np.inf).any():
            n = int(np.argmax(energies == np.inf))
            raise EvidenceError(
                f"the sampler found no labelling of instance {n} that hard zeros allow; look at its labels, or take an "
                "exact engine, which tells whether there is one"
            )


class Chains:
    """Labellings (C, V) on one graph, moved by sweeps."""

    def __init__(self, graph: Graph, support: BoolArray | None, n_threads: int | None) -> None:
        self.graph, self.support, self.n_threads = graph, support, n_threads

    def moved(
        self, theta: Array, codes: IntArray | int, k: int, rng: np.random.Generator, labels: IntArray | None = None
    ) -> tuple[IntArray, Array]:
        """Chains after k sweeps, (C, V), and the mean of the moments over them; codes: where they are, or how many.

        labels (B, V): a chain for each of these rows, which holds on to what is known of it; codes are then (B, V).
        """
        evidence = None if labels is None else Evidence(labels, batched=True)
        problem = self.graph.bind(theta, evidence=evidence, support=self.support)
        n_chains = 1 if labels is not None else codes if isinstance(codes, int) else len(codes)
        engine = Gibbs(n_chains=n_chains, n_samples=k, burn_in=FIRST, n_threads=self.n_threads)
        warm = None
        if not isinstance(codes, int):
            shaped = codes[None] if labels is None else codes[:, None]
            state = {"engine": "gibbs", "codes": shaped, "sweeps": 0}
            warm = Result(self.graph, "estimate", Diagnostics(), batched=labels is not None, state=state)
        result = engine.infer(problem, MOMENTS, warm=warm, rng=rng)
        assert result.state is not None
        found = np.asarray(result.state["codes"])
        refuse_impossible_chains(problem, found)
        return found.reshape(-1, self.graph.n_variables), self.graph.moments(result.moments)

    def moments(self, codes: IntArray, weights: Array | None = None) -> Array:
        """(P,): the weighted mean of phi at labellings (C, V); weights (C,), or (N,) of the instances of a union."""
        if self.graph.n_instances == 1:
            shares = np.full(len(codes), 1 / len(codes)) if weights is None else weights / weights.sum()
            return label_moments(Batch(self.graph, codes, shares))
        return np.asarray(sum(self.graph.moments(row, weights=weights) for row in codes) / len(codes))


@dataclass(frozen=True, slots=True, eq=False)
class Contrastive(Loss):
    """The gradient at work. n_chains: of persistent chains; 0 where they begin at the data."""

    k: int
    n_chains: int = 0
    support: BoolArray | None = None
    n_threads: int | None = None
    has_value = False

    @property
    def surrogate(self) -> str | None:  # type: ignore[override]
        """What stands in for the likelihood, whose gradient persistent chains follow."""
        return None if self.n_chains else "contrastive_divergence"

    @property
    def is_exact(self) -> bool:
        """Never."""
        return False

    def statistics(self, batch: Batch) -> Array:
        """(P,): the moments of the instances whose labels are all known."""
        return Likelihood(Gibbs(), self.support).statistics(batch)

    def value_and_grad(
        self, theta: Array, batch: Batch, state: Mapping[str, Any] | None
    ) -> tuple[None, Array, Mapping[str, Any]]:
        """Minus the moments of the chains, plus those of instances with unknown labels."""
        kept: dict[str, Any] = {"calls": 0} if state is None else dict(state)
        rng = np.random.default_rng([kept["calls"], self.k])
        gradient, completed = self._data(theta, batch, kept, rng)
        chains = Chains(batch.graph, self.support, self.n_threads)
        begun: IntArray | int = completed if not self.n_chains else self._persistent(batch, kept)
        found, _ = chains.moved(theta, begun, self.k, rng)
        if self.n_chains:
            kept |= zip(_names(batch), np.split(found, batch.graph.instance_offsets[1:-1], axis=1), strict=True)
        ones = np.ones(len(batch)) if batch.weights is None else batch.weights
        own = ones if not batch.is_rows or not self.n_chains else None
        free = chains.moments(found, own) * (ones.sum() if batch.is_rows else 1.0)
        gap = dot(theta, free - gradient - self.statistics(batch)) / ones.sum()
        moved = 1.0 if isinstance(begun, int) else float((found != begun).mean())
        kept |= {"calls": kept["calls"] + 1, "monitor.moved": moved, "monitor.energy_gap": gap}
        return None, gradient - free, kept

    def _persistent(self, batch: Batch, kept: Mapping[str, Any]) -> IntArray | int:
        """Where the chains (C, V) of a batch are, or how many they are to be."""
        names = _names(batch)
        known = all(name in kept for name in names)
        return np.concatenate([kept[name] for name in names], axis=1) if known else self.n_chains

    def _data(
        self, theta: Array, batch: Batch, kept: dict[str, Any], rng: np.random.Generator
    ) -> tuple[Array, IntArray]:
        """The moments of instances with unknown labels, and all labels with those drawn: (B, V), or (1, V)."""
        hidden, completed = hidden_part(batch, merge=False), np.array(batch.labels)
        if hidden is None:
            return np.zeros(len(theta)), completed
        assert hidden.numbers is not None
        names = [f"clamped.{n}" for n in hidden.numbers]
        known = [kept[name] for name in names if name in kept]
        chains, warm = Chains(hidden.graph, self.support, self.n_threads), len(known) == len(names)
        weights = hidden.weights if hidden.is_rows else None
        begun: IntArray | int = 1
        if warm:
            begun = np.concatenate(known, axis=0 if hidden.is_rows else 1)
        codes, moments = chains.moved(theta, begun, self.k, rng, labels=hidden.labels)
        if weights is not None or not hidden.is_rows:
            moments = chains.moments(codes, weights if hidden.is_rows else hidden.weights)
            moments = moments * (weights.sum() if weights is not None else 1.0)
        cuts = np.arange(1, len(hidden)) if hidden.is_rows else hidden.graph.instance_offsets[1:-1]
        kept.update(zip(names, np.split(codes, cuts, axis=0 if hidden.is_rows else 1), strict=True))
        _put(batch, hidden, codes, completed)
        return moments, completed


def _names(batch: Batch) -> list[str]:
    """Of the persistent chains of its instances."""
    return [f"free.{n}" for n in instance_numbers(batch)] if batch.is_union else ["free.0"]


def _put(batch: Batch, hidden: Batch, codes: IntArray, completed: IntArray) -> None:
    """Writes drawn labels to their places among all labels."""
    assert hidden.numbers is not None
    places = np.flatnonzero(np.isin(instance_numbers(batch), hidden.numbers))
    if batch.is_rows:
        completed[places] = codes
        return
    offsets, own = batch.graph.instance_offsets, hidden.graph.instance_offsets
    for n, place in enumerate(places.tolist()):
        completed[0, offsets[place] : offsets[place + 1]] = codes[0, own[n] : own[n + 1]]
