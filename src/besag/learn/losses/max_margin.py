"""Max-margin learning, the structured hinge: every labelling has more energy than the true one, by what it is wrong.

    L(theta)     = sum_n w_n max_y (Delta(y, y_n) + H(x_n, y_n) - H(x_n, y))       Delta = sum_v c_v [y_v != y_nv]
    subgradient  = sum_n w_n (phi(x_n, y_n) - phi(x_n, y-hat_n)),                  y-hat_n a labelling of that maximum

Taskar's M3N and the structural SVM of Tsochantaridis et al. with Hamming loss. c_v is 1, or the weight of the
variable. Delta is a sum over single variables, so that y-hat is the labelling of least energy under evidence with the
log-weights c_v for labels that are wrong, 0 for the true one: any engine that gives `map` finds it, and no structure is
made for it.

L is 0 where every margin is kept, convex, and has kinks: `is_smooth` is False. The margins give theta its scale, and
where all can be kept only a penalty bounds it. It is no likelihood: probabilities of what it learns mean nothing.

Labels that are unknown count in no Delta, and y_n is completed by the labelling of least energy that has the known ones
(Yu and Joachims' latent SVM): L is then a difference of two convex functions. Where inference is not exact, y-hat may
be worse than y_n itself, which then takes its place: L is never below 0, and may be too small.

    N instances, B rows, V variables, S states
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, dot, freeze
from besag.data.dataset import Batch
from besag.errors import ApproximationWarning, CapabilityError, EvidenceError
from besag.graph.evidence import Evidence
from besag.infer.engine import ENGINES, Engine, check_wants
from besag.learn.losses.base import Loss, infer_whole
from besag.learn.losses.block_ascent import BlockAscent
from besag.learn.losses.likelihood import (
    ROW_STATES,
    Likelihood,
    hidden_part,
    impossible,
    instance_numbers,
    is_complete,
    label_moments,
)
from besag.learn.objective import DualAscent, Instances, Product


@dataclass(frozen=True, slots=True)
class MaxMarginOptions:
    """engine: the text of one, or an engine; it gives labellings."""

    engine: str | Engine = "auto"

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> MaxMargin:
        """The loss for data of a model with these hard zeros."""
        engine = ENGINES.read(self.engine, n_threads=n_threads)
        check_wants(engine, frozenset({"map"}))
        return MaxMargin(engine, support)


@dataclass(frozen=True, slots=True, eq=False)
class MaxMargin(Loss):
    """See the module. support (P,): hard zeros of the model's tables."""

    engine: Engine
    support: BoolArray | None = None
    guesses: list[bool] = field(default_factory=list)  # of one entry, where a labelling was not proven to be the best

    surrogate = "max_margin"
    weighs_variables = True
    is_smooth = False

    @property
    def is_exact(self) -> bool:
        """Whether all labellings so far were proven to be the best."""
        return not self.guesses

    def statistics(self, batch: Batch) -> Array:
        """(P,): the moments of the instances whose labels are all known."""
        return Likelihood(self.engine, self.support).statistics(batch)

    def value_and_grad(self, theta: Array, batch: Batch, state: None) -> tuple[float, Array, None]:
        """sum_n w_n max_y (Delta - H(y)), plus w_n H(y_n) where y_n was completed; the gradient (P,)."""
        value, gradient = 0.0, np.zeros(len(theta))
        for part in _parts(batch):
            own, moments = self._worst(theta, part)
            value, gradient = value + own, gradient - moments
        hidden = hidden_part(batch, merge=False)
        for part in [] if hidden is None else _parts(hidden):
            codes, energies = self._best(theta, part, Evidence(part.labels, batched=part.is_rows))
            value += _summed(energies, part.weights)
            gradient += label_moments(_labelled(part, codes))
        return value, gradient, None

    def hessian_vector(self, theta: Array, batch: Batch) -> Product:
        """CapabilityError: it has kinks, and is linear between them."""
        raise CapabilityError("max_margin is linear between kinks: it has no Hessian")

    def ascent(self, instances: Instances, l2: Array) -> DualAscent:
        """The dual, block by block; CapabilityError where labels are unknown, and there is none."""
        for shard in instances.shards():
            incomplete = ~is_complete(shard)
            if incomplete.any():
                n = int(instance_numbers(shard)[int(np.argmax(incomplete))])
                raise CapabilityError(
                    f"instance {n} has labels that are unknown, so that max_margin is not convex and has no dual: take "
                    "adam or adagrad in place of frank_wolfe"
                )
        return BlockAscent(self, instances, l2)

    def _worst(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """sum_n w_n max_y (Delta - H(y)), and the moments of these labellings."""
        costs = margins(batch)
        free = np.full(batch.labels.shape, -1)
        codes, energies = self._best(theta, batch, Evidence(free, costs, batched=batch.is_rows))
        if self.guesses:
            codes, energies = self._no_worse_than_truth(theta, batch, codes, energies)
        return -_summed(energies, batch.weights), label_moments(_labelled(batch, codes))

    def _best(self, theta: Array, batch: Batch, evidence: Evidence) -> tuple[IntArray, Array]:
        """The labellings of least energy (B, V), or (1, V) of a union, and their energies (N,)."""
        problem = batch.graph.bind(theta, evidence=evidence, support=self.support)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)  # the fit says it once
            result = infer_whole(self.engine, problem, frozenset({"map"}))
        assert result.codes is not None
        assert result.energies is not None
        energies = result.energies[:, 0]
        if not np.isfinite(energies).all():
            raise EvidenceError(impossible(int(instance_numbers(batch)[int(np.argmin(np.isfinite(energies)))])))
        if not self.guesses and not np.all(result.optimal):
            self.guesses.append(True)
        return result.codes[:, 0], energies

    def _no_worse_than_truth(
        self, theta: Array, batch: Batch, codes: IntArray, energies: Array
    ) -> tuple[IntArray, Array]:
        """The true labels in place of labellings that are worse, where they are all known."""
        known = np.where(batch.labels < 0, codes, batch.labels)
        problem = batch.graph.bind(theta, support=self.support)
        true = problem.energy(known if batch.is_rows else known[0])
        worse = energies > true
        if not worse.any():
            return codes, energies
        of_variable = worse if batch.is_rows else np.repeat(worse, np.diff(batch.graph.instance_offsets))
        where = of_variable[:, None] if batch.is_rows else of_variable[None]
        return np.where(where, known, codes), np.minimum(energies, true)


def margins(batch: Batch) -> Array:
    """(B, S): c_v for labels that are wrong, 0 for true ones and where none is known."""
    offsets = batch.graph.state_offsets
    of_variable = np.ones(len(offsets) - 1) if batch.variable_weights is None else batch.variable_weights
    known = batch.labels >= 0
    costs = np.repeat(np.where(known, of_variable, 0.0), np.diff(offsets), axis=1)
    rows, variables = np.nonzero(known)
    costs[rows, offsets[variables] + batch.labels[rows, variables]] = 0.0
    return costs


def _parts(batch: Batch) -> list[Batch]:
    """Rows so many at a time that their states fit."""
    size = max(1, ROW_STATES // max(int(batch.graph.state_offsets[-1]), 1))
    if not batch.is_rows or len(batch) <= size:
        return [batch]
    return [batch.take(np.arange(start, min(start + size, len(batch)))) for start in range(0, len(batch), size)]


def _labelled(batch: Batch, codes: IntArray) -> Batch:
    """The same instances with these labels."""
    return Batch(batch.graph, freeze(np.array(codes)), batch.weights, is_union=batch.is_union)


def _summed(values: Array, weights: Array | None) -> float:
    return float(values.sum()) if weights is None else dot(values, weights)
