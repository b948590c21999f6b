"""The messages of belief propagation for people to look at: every edge of the factor graph, both ways.

    m_{v->f}(y_v) = prod_{f' != f} m_{f'->v}(y_v)                                                 002 (34), (42)
    b_v(y_v) = prod_f m_{f->v}(y_v)          b_f(y_{S_f}) = psi_f(y_{S_f}) prod_{v in S_f} m_{v->f}(y_v)   (36), (37)

up to scale, at every iterate, with factors on one variable and evidence among the nodes (`besag.infer.bp.nodes`).
Messages of factors are those that stand; what variables say follows from them.

    M entries of messages along links, T iterations
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, Semiring
from besag.graph.problem import Problem
from besag.infer.bp.kernels.links import MessageLinks
from besag.infer.bp.nodes import End, ends_of, entries_of, supported_entries
from besag.infer.unary import evidence_at

if TYPE_CHECKING:
    import pandas as pd


class Edge(NamedTuple):
    """All messages that went one way along an edge: the ends, the states of its variable, and log-weights (T, K)."""

    source: str
    target: str
    states: tuple[str, ...]
    logs: Array


@dataclass(frozen=True, slots=True, eq=False)
class PassedMessages:
    """Messages of factors as logarithms, (M,) for each iteration that is kept, in the semiring of sums or of maxima.

    base (S,): what variables hear from factors on themselves alone and from evidence; -inf where hard zeros rule a
    state out. first: the number of the first iteration, None where only the last messages are kept.
    """

    problem: Problem
    links: MessageLinks
    base: Array
    semiring: Semiring
    logs: tuple[AnyArray, ...]
    first: int | None

    def to_frame(self) -> pd.DataFrame:
        """Columns step, source, target, state, value; weights that sum to one, or energies of which the least is 0.

        Where every iteration is kept, a column iteration comes first.
        """
        import pandas as pd

        edges = list(self._edges())
        sizes = [len(edge.states) for edge in edges]
        rows = [(edge.source, edge.target, state) for edge in edges for state in edge.states]
        frame = pd.DataFrame(rows, columns=["source", "target", "state"])
        frame.insert(0, "step", np.repeat(np.arange(len(edges)), sizes))
        shown = [self._shown(edge.logs) for edge in edges]
        values = np.concatenate(shown, axis=1) if shown else np.zeros((len(self.logs), 0))
        if self.first is None:
            return frame.assign(value=values[0])
        number = np.repeat(np.arange(self.first, self.first + len(values)), len(frame))
        frame = pd.concat([frame] * len(values), ignore_index=True).assign(value=values.reshape(-1))
        frame.insert(0, "iteration", number)
        return frame

    def _edges(self) -> Iterator[Edge]:
        """Both ways of every edge, variable by variable."""
        logs = np.array(self.logs, np.float64)
        supported = supported_entries(self.problem, self.links, self.base)
        if supported is not None:
            logs[:, ~supported] = -np.inf
        variables = self.problem.graph.variables
        for v, ends in ends_of(self.problem, self.links):
            name, states = variables.names[v], variables.states(v)
            heard = self._all_heard(v, ends, logs)
            for end, incoming, outgoing in zip(ends, heard, _without_one(heard), strict=True):
                yield Edge(end.name, name, states, incoming)
                if end.factor >= 0:
                    yield Edge(name, end.name, states, outgoing)

    def _all_heard(self, v: int, ends: list[End], logs: Array) -> list[Array]:
        """(T, K) of each end; where base rules a state out that they all leave, no factor of a link leaves it."""
        shape = (len(logs), int(self.problem.graph.variables.cardinalities[v]))
        heard = [np.broadcast_to(self._heard(v, end, logs), shape) for end in ends]
        out = self.base[self.problem.graph.state_offsets[v] :][: shape[1]] == -np.inf
        if not out.any():
            return heard
        lost = out & (sum(heard, np.zeros(shape)) > -np.inf)
        return [np.where(lost, -np.inf, one) if end.link >= 0 else one for end, one in zip(ends, heard, strict=True)]

    def _heard(self, v: int, end: End, logs: Array) -> Array:
        """What an end says to its variable, (K,) or (T, K)."""
        if end.link >= 0:
            return logs[:, entries_of(self.links, end.link)]
        return self.problem.table(end.factor) if end.factor >= 0 else evidence_at(self.problem, v)

    def _shown(self, logs: Array) -> Array:
        highest = logs.max(axis=1, keepdims=True)
        scaled = logs - np.where(highest > -np.inf, highest, 0.0)
        if self.semiring == Semiring.MAX:
            return np.asarray(0.0 - scaled)
        with np.errstate(under="ignore"):
            weights = np.exp(scaled)
        return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0))


def _without_one(logs: list[Array]) -> list[Array]:
    """The sum of all but each of them; without differences, since any may be -inf."""
    before, after = [np.zeros_like(one) for one in logs[:1]], [np.zeros_like(one) for one in logs[:1]]
    for one, other in zip(logs[:-1], logs[:0:-1], strict=True):
        before.append(before[-1] + one)
        after.append(after[-1] + other)
    return [left + right for left, right in zip(before, reversed(after), strict=True)]
