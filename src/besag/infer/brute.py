"""Brute force: every labelling is looked at. The oracle that all other engines are held to.

    Z = sum_y exp(-H(y)), 002 (10);  p(y) = exp(-H(y)) / Z, 002 (11);  marginals are sums of p; MAP is the largest p,
    002 (22)

The labellings of an instance with V variables are numbered 0 .. M - 1, M = prod K, the last variable fastest; the
log-potential
of all of them is one array (M,), to which every factor adds its table, gathered. Instances and rows are done one by
one.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import TooLargeError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.memory import default_memory_limit, refuse_samples
from besag.infer.result import Diagnostics, Result, factor_offsets

BYTES_PER_LABELLING = 48


@dataclass(frozen=True, slots=True)
class Brute:
    """Enumeration of all labellings: exact, for small models.

    n_samples: draws a row. k: how many of the best labellings `map` gives.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "map", "samples"}),
        "exact",
        "few labellings",
    )
    memory_limit: int | None = None
    n_samples: int = 1
    k: int = 1

    def infer(
        self,
        problem: Problem,
        want: frozenset[Want],
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """Answers by looking at every labelling."""
        began = time.perf_counter()
        check_wants(self, want)
        graph, rows = problem.graph, problem.evidence.n_rows
        self._refuse(graph)
        if "samples" in want:
            refuse_samples(problem, self.n_samples, self.memory_limit)
        out = _Collected(problem, want, self.k, self.n_samples)
        rng = np.random.default_rng(0) if rng is None else rng
        for n in range(graph.n_instances):
            joint = Joint(problem, n)
            for b in range(rows):
                out.add(joint, joint.row(b), n, b, rng)
        done = Diagnostics(
            engine="brute", converged=True, iterations=1, seconds=time.perf_counter() - began, rows=rows,
            labellings=most_labellings(graph),
        )  # fmt: skip
        return out.result(done)

    def _refuse(self, graph: Graph) -> None:
        limit = default_memory_limit() if self.memory_limit is None else self.memory_limit
        count = most_labellings(graph)
        if count * BYTES_PER_LABELLING > limit:
            raise TooLargeError(
                f"brute force would look at {write_count(count)} labellings of {BYTES_PER_LABELLING} bytes each, "
                f"more than memory_limit={limit}; use another engine"
            )


def n_labellings(graph: Graph, instance: int) -> int | float:
    """M: the number of labellings of an instance; inf where it is beyond 2**62 and nobody will enumerate it."""
    low, high = graph.instance_offsets[instance : instance + 2]
    cards = graph.variables.cardinalities[low:high]
    return math.prod(cards.tolist()) if np.log2(cards).sum() < 62 else math.inf


def write_count(count: float) -> str:
    """A number of labellings for people."""
    return f"{count:.3g}" if count < math.inf else "more than 2^62"


def most_labellings(graph: Graph) -> int | float:
    """M of the largest instance."""
    return max(n_labellings(graph, n) for n in range(graph.n_instances))


class Joint:
    """The log-potential of every labelling of one instance, without evidence."""

    def __init__(self, problem: Problem, instance: int) -> None:
        graph = problem.graph
        self.problem = problem
        self.low, self.high = (int(i) for i in graph.instance_offsets[instance : instance + 2])
        self.cards = graph.variables.cardinalities[self.low : self.high]
        self.size = int(n_labellings(graph, instance))
        self.strides = (
            np.append(np.cumprod(self.cards[::-1])[-2::-1], 1) if len(self.cards) > 1 else np.ones(1, np.int64)
        )
        self.factors = np.flatnonzero(graph.factor_instances == instance)
        self.values = np.zeros(self.size)
        for f in self.factors:
            self.values += problem.table(int(f)).reshape(-1)[self.configuration(graph.scope(int(f)))]

    def codes(self, v: int) -> IntArray:
        """(M,): the state of variable v in every labelling."""
        i = v - self.low
        return np.asarray((np.arange(self.size) // self.strides[i]) % self.cards[i])

    def configuration(self, scope: IntArray) -> IntArray:
        """(M,): the flat index of every labelling in a table on `scope`."""
        flat = np.zeros(self.size, np.int64)
        for v in scope.tolist():
            flat = flat * self.cards[v - self.low] + self.codes(v)
        return flat

    def row(self, b: int) -> Array:
        """(M,): the log-potential of every labelling under row b of the evidence."""
        observed, log_weights = self.problem.evidence.rows(b, b + 1)
        values = self.values.copy()
        offsets = self.problem.graph.state_offsets
        for v in range(self.low, self.high):
            if observed[0, v] >= 0:
                values[self.codes(v) != observed[0, v]] = -np.inf
            if log_weights is not None and (weights := log_weights[0, offsets[v] : offsets[v + 1]]).any():
                values += weights[self.codes(v)]
        return values

    def labels(self, numbers: IntArray) -> IntArray:
        """(n, V): labellings by number."""
        return np.asarray((numbers[:, None] // self.strides) % self.cards)


class _Collected:
    """Collects what is wanted, instance by instance and row by row."""

    def __init__(self, problem: Problem, want: frozenset[Want], k: int, n_samples: int) -> None:
        graph, rows = problem.graph, problem.evidence.n_rows
        self.problem, self.want = problem, want
        self.log_z = np.empty(max(graph.n_instances, rows))
        self.probabilities = np.zeros((rows, int(graph.state_offsets[-1]))) if "variables" in want else None
        self.offsets = factor_offsets(graph)
        self.factors = np.zeros((rows, int(self.offsets[-1]))) if "factors" in want else None
        self.moments = np.zeros(len(problem.log_potentials)) if "moments" in want else None
        self.k = int(min(k, most_labellings(graph)))
        self.codes = np.zeros((rows, self.k, graph.n_variables), np.int64) if "map" in want else None
        self.energies = np.full((len(self.log_z), self.k), np.inf) if "map" in want else None
        self.samples = np.zeros((rows, n_samples, graph.n_variables), np.int64) if "samples" in want else None

    def add(self, joint: Joint, values: Array, n: int, b: int, rng: np.random.Generator) -> None:
        top = values.max()
        if top == -np.inf:
            self.log_z[n + b] = -np.inf
            return
        p = np.exp(values - top)
        self.log_z[n + b] = top + np.log(p.sum())
        p /= p.sum()
        if self.probabilities is not None:
            self._add_variables(joint, p, b)
        for f in joint.factors.tolist() if self.factors is not None or self.moments is not None else ():
            self._add_factor(joint, p, f, b)
        if self.codes is not None and self.energies is not None:
            best = np.argsort(-values, kind="stable")[: self.k]
            self.codes[b, : len(best), joint.low : joint.high] = joint.labels(best)
            self.energies[n + b, : len(best)] = -values[best]
        if self.samples is not None:
            drawn = rng.choice(joint.size, size=self.samples.shape[1], p=p)
            self.samples[b, :, joint.low : joint.high] = joint.labels(drawn)

    def _add_variables(self, joint: Joint, p: Array, b: int) -> None:
        assert self.probabilities is not None
        offsets = self.problem.graph.state_offsets
        for v in range(joint.low, joint.high):
            k = int(joint.cards[v - joint.low])
            self.probabilities[b, offsets[v] : offsets[v + 1]] = np.bincount(joint.codes(v), weights=p, minlength=k)

    def _add_factor(self, joint: Joint, p: Array, f: int, b: int) -> None:
        graph, problem = self.problem.graph, self.problem
        size = int(self.offsets[f + 1] - self.offsets[f])
        marginal: Array = np.bincount(joint.configuration(graph.scope(f)), weights=p, minlength=size).astype(np.float64)
        if self.factors is not None:
            self.factors[b, self.offsets[f] : self.offsets[f + 1]] = marginal
        if self.moments is not None:
            structured = graph.block_of(f).template.structured
            if structured is not None:
                marginal = structured.statistics().reshape(structured.n_parameters, -1) @ marginal
            t = int(problem.table_of_factor[f])
            weight = float(problem.row_weights[b] * problem.factor_weights[f])
            self.moments[problem.table_offsets[t] : problem.table_offsets[t + 1]] += weight * marginal

    def result(self, diagnostics: Diagnostics) -> Result:
        evidence = self.problem.evidence
        return Result(
            graph=self.problem.graph,
            bound="exact",
            diagnostics=diagnostics,
            batched=evidence.batched,
            index=evidence.index,
            log_partitions=self.log_z,
            probabilities=self.probabilities,
            factor_marginals=self.factors,
            table_moments=self.moments,
            codes=self.codes,
            energies=self.energies,
            sampled=self.samples,
        )
