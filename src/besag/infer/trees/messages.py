"""Messages for people to look at: message passing on a forest, sent one by one and in the scale of the formulas.

    m_{s->f}(y_s) = prod_{f' != f} m_{f'->s}(y_s)                                                002 (34), (42)
    m_{f->s}(y_s) = sum_{y_{S_f \\ s}} psi_f(y_{S_f}) prod_{s' != s} m_{s'->f}(y_{s'})            002 (35), (43)

from the leaves to the root and back, in the log domain; in the other semiring sums are minima and products are sums of
energies. Evidence is one more factor on each observed variable. The kernels do the same work, rescaled, on flat arrays;
this is the form used in lectures, for small graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, Semiring
from besag.graph.problem import Problem
from besag.infer.trees.plan import Forest
from besag.infer.unary import evidence_at

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """What one node sends to another: log-weights, or minus energies, over the states of the variable."""

    source: str
    target: str
    states: tuple[str, ...]
    log_values: Array


@dataclass(frozen=True, slots=True)
class MessageLog:
    """Messages in the order in which they were sent."""

    messages: tuple[Message, ...]
    semiring: Semiring

    def first(self, n: int) -> MessageLog:
        """The first n of them."""
        return MessageLog(self.messages[:n], self.semiring)

    def to_frame(self) -> pd.DataFrame:
        """Columns step, source, target, state, value; values are weights, or energies for min-sum."""
        import pandas as pd

        rows = [
            (step, message.source, message.target, state, self._value(value))
            for step, message in enumerate(self.messages)
            for state, value in zip(message.states, message.log_values.tolist(), strict=True)
        ]
        return pd.DataFrame(rows, columns=["step", "source", "target", "state", "value"])

    def _value(self, log_value: float) -> float:
        if self.semiring == Semiring.MAX:
            return -log_value
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(log_value))


def send_all(problem: Problem, forest: Forest, semiring: Semiring) -> MessageLog:
    """All messages of a forest, from the leaves to the roots and back."""
    post = _Post(problem, semiring)
    graph = problem.graph
    hung = [(int(f), int(graph.scope(int(f))[axis])) for f, axis in zip(forest.order, forest.parent_axis, strict=True)]
    for v in reversed(forest.variables.tolist()):
        for leaf in post.leaves[v]:
            post.from_factor(leaf, v)
    for f, parent in reversed(hung):
        for child in graph.scope(f).tolist():
            if child != parent:
                post.from_variable(child, f)
        post.from_factor(f, parent)
    for f, parent in hung:
        post.from_variable(parent, f)
        for child in graph.scope(f).tolist():
            if child != parent:
                post.from_factor(f, child)
    for v in forest.variables.tolist():
        for leaf in post.leaves[v]:
            if leaf >= 0:
                post.from_variable(v, leaf)
    return MessageLog(tuple(post.sent), semiring)


class _Post:
    """What every variable and factor has received so far; factor -1 - v is the evidence on variable v."""

    def __init__(self, problem: Problem, semiring: Semiring) -> None:
        self.problem, self.semiring = problem, semiring
        self.sent: list[Message] = []
        graph = problem.graph
        self.at_variable: list[dict[int, Array]] = [{} for _ in range(graph.n_variables)]
        self.at_factor: list[dict[int, Array]] = [{} for _ in range(graph.n_factors)]
        self.leaves: list[list[int]] = [[] for _ in range(graph.n_variables)]
        for f in range(graph.n_factors):
            if len(scope := graph.scope(f)) == 1:
                self.leaves[int(scope[0])].append(f)
        for v in range(graph.n_variables):
            if (evidence_at(problem, v) != 0).any():
                self.leaves[v].append(-1 - v)

    def from_factor(self, f: int, target: int) -> None:
        """Formula (35): the table times what the other variables sent, summed over all variables but the target."""
        if f < 0:
            values = evidence_at(self.problem, target)
        else:
            values = self.problem.table(f)
            scope = self.problem.graph.scope(f)
            for axis, v in enumerate(scope.tolist()):
                if v != target:
                    values = values + _along(self.at_factor[f][v], axis, len(scope))
            values = self._sum_to(values, scope.tolist().index(target))
        self.at_variable[target][f] = values
        self._record(self._name(f), self.problem.graph.variables.names[target], target, values)

    def from_variable(self, v: int, target: int) -> None:
        """Formula (34): multiply what the other factors sent."""
        values = np.zeros(int(self.problem.graph.variables.cardinalities[v]))
        for f, message in self.at_variable[v].items():
            if f != target:
                values = values + message
        self.at_factor[target][v] = values
        self._record(self.problem.graph.variables.names[v], self._name(target), v, values)

    def _name(self, f: int) -> str:
        return "evidence" if f < 0 else self.problem.graph.factor_name(f)

    def _sum_to(self, values: Array, axis: int) -> Array:
        rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
        if self.semiring == Semiring.MAX:
            return np.asarray(rows.max(axis=1))
        return np.asarray(np.logaddexp.reduce(rows, axis=1))

    def _record(self, source: str, target: str, v: int, values: Array) -> None:
        self.sent.append(Message(source, target, self.problem.graph.variables.states(v), values))


def _along(values: Array, axis: int, n_axes: int) -> Array:
    shape = [1] * n_axes
    shape[axis] = len(values)
    return values.reshape(shape)
