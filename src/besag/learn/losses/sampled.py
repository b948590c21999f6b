"""The gradient of the negative log-likelihood by sampling; its value is not known.

    gradient = moments(data) - moments(model), 002 (19), (20), the latter by an engine that draws: `gibbs`

Chains are persistent (Younes; Tieleman): they go on where the last call on the same instance left them, so that a few
sweeps are enough for each step of theta; only their first call burns in. With unknown labels the moments of the data
are means over chains as well, with the known labels as evidence.

The state is {"calls": how many there were, "free.n" and "clamped.n": codes (C, V_n) of the chains of instance n}; rows
on one graph share the chains "free.0". Random numbers depend on the number of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.data.dataset import Batch
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.infer.engine import Engine
from besag.infer.result import Diagnostics, Result
from besag.learn.losses.base import Loss, infer_whole
from besag.learn.losses.likelihood import Likelihood, hidden_part, instance_numbers, phase_weights

SWEEPS = 10  # that count at each call, unless the engine says how many
CHAINS = "free", "clamped"


@dataclass(frozen=True, slots=True, eq=False)
class SampledLikelihood(Loss):
    """See the module. support (P,): hard zeros of the model's tables."""

    engine: Engine
    support: BoolArray | None = None
    has_value = False

    @property
    def is_exact(self) -> bool:
        """Never."""
        return False

    def statistics(self, batch: Batch) -> Array:
        """(P,): the moments of the instances whose labels are all known."""
        return Likelihood(self.engine, self.support).statistics(batch)

    def value_and_grad(
        self, theta: Array, batch: Batch, state: Mapping[str, Any] | None
    ) -> tuple[None, Array, Mapping[str, Any]]:
        """Minus the moments of the model, plus those of instances with unknown labels; and where the chains are."""
        call = _Call(self, theta, {"calls": 0} if state is None else dict(state))
        numbers = instance_numbers(batch) if batch.is_union else np.zeros(1, np.int64)
        gradient, hidden = -call.moments(batch.graph, phase_weights(batch), None, "free", numbers), hidden_part(batch)
        if hidden is not None:
            weights = np.ones(len(hidden)) if hidden.weights is None else hidden.weights
            n_parts = len(hidden) if hidden.is_rows else 1
            for row, own, number in zip(
                hidden.labels, np.split(weights, n_parts), np.split(instance_numbers(hidden), n_parts), strict=True
            ):
                gradient += call.moments(hidden.graph, own, Evidence(row), "clamped", number)
        return None, gradient, call.state | {"calls": call.state["calls"] + 1}


class _Call:
    """One evaluation: moments by chains, which are taken from the state and put back into a copy of it."""

    def __init__(self, loss: SampledLikelihood, theta: Array, state: dict[str, Any]) -> None:
        self.loss, self.theta, self.state = loss, theta, state

    def moments(
        self, graph: Graph, weights: Array | None, evidence: Evidence | None, kind: str, numbers: IntArray
    ) -> Array:
        """(P,): sum_n w_n E[phi] of the instances of these numbers."""
        problem = graph.bind(self.theta, evidence=evidence, weights=weights, support=self.loss.support)
        names, rng = [f"{kind}.{n}" for n in numbers], np.random.default_rng([self.state["calls"], CHAINS.index(kind)])
        warm = self._warm(graph, names) if all(name in self.state for name in names) else None
        result = infer_whole(self.loss.engine, problem, frozenset({"moments"}), warm=warm, rng=rng)
        assert result.state is not None
        cuts = graph.instance_offsets[1:-1]
        self.state.update(zip(names, np.split(result.state["codes"][0], cuts, axis=1), strict=True))
        return graph.moments(result.moments)

    def _warm(self, graph: Graph, names: list[str]) -> Result:
        codes = np.concatenate([self.state[name] for name in names], axis=1)
        return Result(graph, "estimate", Diagnostics(), state={"engine": "gibbs", "codes": codes[None], "sweeps": 0})
