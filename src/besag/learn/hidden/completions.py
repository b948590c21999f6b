"""Completed data, and the M-step on them: labels drawn from p(s | x), and the pseudolikelihood in place of Z, 003.

Where hidden variables do not meet in a factor, p(s | x) is a product, and drawing is as cheap as looking; elsewhere the
exact engines draw as well, or refuse.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray
from besag.data.dataset import Batch
from besag.errors import ConvergenceWarning
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.infer.engine import ENGINES
from besag.learn.hidden.matching import Free, Whole
from besag.learn.hidden.steps import MStep, Numbers, Visible
from besag.learn.losses.base import OBJECTIVES
from besag.learn.objective import Total
from besag.learn.optimisers.lbfgs import LBFGS
from besag.learn.penalty import penalty_of


def complete(visible: Visible, numbers: Numbers, n: int, rng: np.random.Generator) -> IntArray:
    """(n, V): instances drawn by their weights, with labels drawn for what is hidden; of a union n labellings."""
    batch = visible.batch
    if not batch.is_rows:
        return np.asarray(draw_hidden(batch.graph, batch.labels, numbers, n, rng)[0])
    weights = None if batch.weights is None else batch.weights / batch.weights.sum()
    rows = batch.labels[rng.choice(len(batch), size=n, p=weights)]
    return np.asarray(draw_hidden(batch.graph, rows, numbers, 1, rng)[:, 0])


def draw_hidden(graph: Graph, rows: IntArray, numbers: Numbers, n: int, rng: np.random.Generator) -> IntArray:
    """(B, n, V): rows of labels, with n draws for what is hidden in each."""
    problem = graph.bind(numbers.theta, evidence=Evidence(rows, batched=True), support=numbers.support)
    found = ENGINES.read("auto", n_samples=n).infer(problem, frozenset({"samples"}), rng=rng)
    assert found.sampled is not None
    return np.asarray(found.sampled)


@dataclass(frozen=True, slots=True)
class PseudolikelihoodMatching:
    """n_draws: completions of each instance."""

    n_draws: int = 10
    max_iterations: int = 200

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """On some data."""
        return PseudoMatching(self, visible, n_threads)


class PseudoMatching(Free):
    """The greatest pseudolikelihood of completed data."""

    draws = True

    def __init__(self, options: PseudolikelihoodMatching, visible: Visible, n_threads: int | None) -> None:
        Free.__init__(self, visible, "auto", n_threads)
        self.n_draws, self.method = options.n_draws, LBFGS(max_iterations=options.max_iterations)

    def maximise(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> Numbers:
        """Theta from draws of the E-step's posterior; mu itself is not looked at."""
        batch, n = self.visible.batch, self.n_draws
        drawn = draw_hidden(batch.graph, batch.labels, numbers, n, rng)
        ones = np.ones(len(batch)) if batch.weights is None else batch.weights
        loss = OBJECTIVES.read("pseudolikelihood").at_work(numbers.support, self.n_threads)
        theta = numbers.theta
        if batch.is_rows:
            parts = [Batch(batch.graph, drawn.reshape(-1, batch.graph.n_variables), np.repeat(ones / n, n))]
        else:
            parts = [Batch(batch.graph, drawn[0, i], ones / n) for i in range(n)]
        total = Total(loss, Whole(parts), penalty_of(self.visible.model.layout), n_threads=self.n_threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theta, _, _ = self.method.minimize(total, theta)
        return Numbers(theta, numbers.support)

    def look(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> tuple[float | None, Array]:
        """As `Free`, but never exact: the pseudolikelihood stands in for the likelihood."""
        found = Free.look(self, numbers, moments, rng)
        self.is_exact = False
        return found
