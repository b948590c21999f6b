"""Max-margin learning on first-order chains: `besag.learn.losses.max_margin` by kernels from features to theta.

Value and gradient are Viterbi's, with log-potentials of all tokens of a shard at once; the way up in the dual is one
kernel for many sequences, in which a labelling is never more than codes. Every label must be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, dot, freeze
from besag.data.chains import ChainTemplates, windows
from besag.data.sequences import Sequences
from besag.errors import CapabilityError
from besag.infer.chains.best import best_chains
from besag.infer.chains.kernels.parameters import make_counted
from besag.kernels.compile import kernel_of, worth_compiling
from besag.learn.losses.base import Loss
from besag.learn.losses.chains.kernels.margin_steps import make_margin_steps
from besag.learn.objective import DualAscent, DualPoint, Product, State, add_each
from besag.model.pattern import ProductPlan

AT_ONCE = 1 << 16  # tokens of a call of the kernel, which Ctrl-C and time limits wait for
FEW_CORNERS = 8  # rows that there are for each sequence at first


@dataclass(frozen=True, slots=True, eq=False)
class ChainMaxMargin(Loss):
    """An Objective on Sequences in memory, for templates without triples whose pattern is sorted."""

    templates: ChainTemplates

    surrogate = "max_margin"
    is_smooth = False

    def statistics(self, batch: Sequences) -> Array:
        """(P,): the moments of the labels."""
        refuse_unknown(batch)
        offsets = batch.offsets
        return self.moments(batch, batch.codes[offsets[batch.start] : offsets[batch.stop]])

    def moments(self, batch: Sequences, codes: IntArray) -> Array:
        """(P,): sum_n w_n phi(x_n, y_n), codes (T,) of the tokens of the batch."""
        layout, k, features = self.templates.layout(), self.templates.state.shape[0], batch.features
        offsets = batch.offsets[batch.start : batch.stop + 1]
        of_token = np.repeat(batch.weights[batch.start : batch.stop], np.diff(offsets))
        counts, plan = np.zeros(layout.n_parameters), self.plan()
        first = features.indptr[offsets[0] : offsets[-1] + 1]
        kernel = kernel_of(make_counted, compile=worth_compiling(float(first[-1] - first[0])))
        values = np.zeros(0) if features.values is None else features.values
        inputs, given = (freeze(first), features.indices, freeze(values)), (freeze(codes), freeze(of_token))
        kernel(*inputs, *given, plan.starts, plan.elements, counts[layout["state"]])
        left, right = windows(offsets - offsets[0], 2).T
        counts[layout["transition"]] = np.bincount(codes[left] * k + codes[right], of_token[left], k * k)
        return counts

    def add(
        self, theta: Array, batches: Sequence[Any], states: Sequence[State], gradient: Array, n_threads: int | None
    ) -> tuple[Sequence[float | None], Sequence[State]]:
        """sum_n w_n max_y (Delta - H(y)) of each batch, and the gradients."""
        layout, state, k = self.templates.layout(), self.templates.state, self.templates.state.shape[0]
        assert state.pattern is not None
        rows = state.pattern.prepared(-theta[layout["state"]], state.n_inputs, k)
        allowed, ends = ruled_out(self.templates)
        table = allowed - theta[layout["transition"]].reshape(k, k)

        def evaluate(batch: Sequences, _: State) -> tuple[float, Array, None]:
            offsets = batch.offsets[batch.start : batch.stop + 1]
            here, features = slice(offsets[0], offsets[-1]), batch.features
            values = np.zeros(0) if features.values is None else features.values
            unary = rows.products(freeze(features.indptr[offsets[0] : offsets[-1] + 1]), features.indices, values)
            unary[offsets[:-1] - offsets[0]] += ends[0]
            unary[offsets[1:] - offsets[0] - 1] += ends[1]
            unary += np.arange(k) != batch.codes[here, None]
            codes = best_chains(unary, table, offsets - offsets[0], 1)
            of_token = np.repeat(batch.weights[batch.start : batch.stop], np.diff(offsets))
            left, right = windows(offsets - offsets[0], 2).T
            value = dot(of_token, unary[np.arange(len(codes)), codes])
            value += dot(of_token[left], table[codes[left], codes[right]])
            return value, -self.moments(batch, codes), None

        return add_each(evaluate, batches, states, gradient, n_threads)

    def hessian_vector(self, theta: Array, batch: Sequences) -> Product:
        """CapabilityError: it has kinks, and is linear between them."""
        raise CapabilityError("max_margin is linear between kinks: it has no Hessian")

    def ascent(self, instances: Any, l2: Array) -> DualAscent:
        """The dual, by the kernel."""
        if not isinstance(instances, Sequences):
            raise CapabilityError("optimizer 'frank_wolfe' learns in memory: leave scratch out")
        return ChainAscent(self, instances, float(l2.max()))

    def plan(self) -> ProductPlan:
        """The layout of parameters, by attribute and label."""
        state = self.templates.state
        assert state.pattern is not None
        plan = state.pattern.plan(state.n_inputs, state.shape[0])
        assert plan.order is None
        return plan


@dataclass(frozen=True, slots=True, eq=False)
class ChainAscent:
    """An DualAscent; blocks are corners (A, T) int16, alphas (N, A) and counts (N,). l2: of all parameters."""

    loss: ChainMaxMargin
    data: Sequences
    l2: float

    @property
    def size(self) -> int:
        """As many sequences as have AT_ONCE tokens."""
        n, n_tokens = len(self.data), int(self.data.offsets[-1])
        return max(1, min(n, n * AT_ONCE // max(n_tokens, 1)))

    def begin(self) -> DualPoint:
        """All alpha at the labels, where theta is 0."""
        n = len(self.data)
        corners, alphas = np.zeros((FEW_CORNERS, len(self.data.codes)), np.int16), np.zeros((n, FEW_CORNERS))
        corners[0], alphas[:, 0] = self.data.codes, 1.0
        blocks: dict[str, AnyArray] = {"corners": corners, "alphas": alphas, "counts": np.ones(n, np.int64)}
        return DualPoint(np.zeros(self.loss.templates.layout().n_parameters), 0.0, blocks)

    def climb(self, point: DualPoint, instances: IntArray) -> DualPoint:
        """A pairwise step of each of some sequences."""
        templates, data, plan = self.loss.templates, self.data, self.loss.plan()
        layout, k = templates.layout(), templates.state.shape[0]
        allowed, ends = ruled_out(templates)
        blocks: dict[str, AnyArray] = {name: np.array(array) for name, array in point.blocks.items()}
        own, pairs = point.theta[layout["state"]].copy(), point.theta[layout["transition"]].reshape(k, k).copy()
        values = np.zeros(0) if data.features.values is None else data.features.values
        kernel = kernel_of(make_margin_steps, k, compile=worth_compiling(float(len(data.codes)) * k * k))
        inputs = (data.features.indptr, data.features.indices, freeze(values), plan.starts, plan.elements)
        told = (freeze(allowed), freeze(ends), data.offsets, data.codes, data.weights, freeze(np.array(instances)))
        done, loss = 0, np.array([point.loss])
        while done < len(instances):
            room = (blocks["corners"], blocks["alphas"], blocks["counts"])
            done = kernel(*inputs, *told, done, 2.0 * self.l2, own, pairs, *room, loss)
            if done < len(instances):
                blocks |= _with_room(blocks)
        theta = np.zeros(len(point.theta))
        theta[layout["state"]], theta[layout["transition"]] = own, pairs.reshape(-1)
        return DualPoint(theta, float(loss[0]), blocks)

    def settle(self, point: DualPoint, gained: float) -> DualPoint:
        """The same: Viterbi takes no longer than the scores of what is known."""
        return point

    def bound(self, point: DualPoint) -> float:
        """D."""
        return point.loss - self.l2 * dot(point.theta, point.theta)


def _with_room(blocks: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Twice as many rows of corners."""
    corners, alphas = blocks["corners"], blocks["alphas"]
    return {
        "corners": np.concatenate([corners, np.zeros_like(corners)]),
        "alphas": np.concatenate([alphas, np.zeros_like(alphas)], axis=1),
    }


def ruled_out(templates: ChainTemplates) -> tuple[Array, Array]:
    """(K, K) of transitions and (2, K) of first and last labels: 0, or -inf where they are ruled out."""
    k, support = templates.state.shape[0], templates.transition.support
    allowed, ends = np.zeros((k, k)), np.zeros((2, k))
    if support is not None:
        allowed[~support] = -np.inf
    for row, template in enumerate((templates.begin, templates.end)):
        if template is not None and template.support is not None:
            ends[row, ~template.support] = -np.inf
    return allowed, ends


def refuse_unknown(batch: Sequences) -> None:
    """CapabilityError where a label is unknown."""
    offsets = batch.offsets
    if (batch.codes[offsets[batch.start] : offsets[batch.stop]] < 0).any():
        unknown = np.flatnonzero(batch.codes < 0)
        n = int(np.searchsorted(offsets, unknown[unknown >= offsets[batch.start]][0], side="right")) - 1
        raise CapabilityError(f"sequence {n} has labels that are unknown; on chains max_margin learns from known ones")
