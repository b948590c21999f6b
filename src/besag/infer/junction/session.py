"""Incremental inference: a junction tree whose messages are kept while evidence changes.

The tree is planned once, for any evidence: no variable is fixed, and every variable has an operand for its evidence, a
vector of weights over the states that hard zeros leave it; all ones if it is not observed. `kernels/session` says which
messages are computed again.

Numbers are in the SUM domain until some clique needs a wider range (see `kernels/passes`), and in LOG_SUM from then on.

Shapes: V variables, S states, C cliques, O small tables; K states of one variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze
from besag.errors import TooLargeError
from besag.graph.problem import Problem
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.evidence_rows import Bound, GivenRows
from besag.infer.junction.kernels.maps import MESSAGE, VARIABLE
from besag.infer.junction.kernels.session import (
    DOWN_CHECKED,
    DOWN_SEEN,
    EVERYTHING,
    N_IMPOSSIBLE,
    N_MADE,
    N_STAMPS,
    NOTHING,
    UP_CHECKED,
    UP_SEEN,
    Held,
    Places,
    make_ask,
)
from besag.infer.junction.numbers import numbers_of, one_group
from besag.infer.junction.plan import CliquePlan, Sketch, make_plan
from besag.infer.junction.run import JunctionRun
from besag.kernels.compile import entry_of, kernel_of, worth_compiling


class Incremental:
    """A junction tree under evidence that changes; if Z is zero, marginals are None and log Z is -inf."""

    def __init__(self, engine: JunctionTree, problem: Problem) -> None:
        run = JunctionRun(engine, problem)
        self.factors = run.factors
        self.plan = _plan_for_any(run)
        self.state_offsets = problem.graph.state_offsets
        self.places = _places(self.plan)
        drawn, join = self.plan.sketch, self.plan.join
        self.digits: list[int] = drawn.digit_offsets.tolist()
        self.offsets: list[int] = self.state_offsets.tolist()
        clique_of_table = np.repeat(np.arange(len(join.parent)), np.diff(join.table_offsets))
        self.table_of = dict(zip(self.plan.soft.tolist(), self.plan.of_evidence.tolist(), strict=True))
        self.clique_of = dict(
            zip(self.plan.soft.tolist(), clique_of_table[self.plan.of_evidence].tolist(), strict=True)
        )
        self.log_weights: dict[int, Array] = {}  # of observed variables, (K,) each
        self.taken: dict[int, float] = {}  # logarithm of the largest weight of each, where it is not zero
        self.impossible: set[int] = set()  # observed variables of which no state is left
        self._begin(Semiring.SUM)

    def _begin(self, semiring: Semiring) -> None:
        """Start with numbers in a domain, and no message valid yet."""
        self.semiring = semiring
        n = len(self.offsets) - 1
        given = GivenRows(np.full((1, n), -1, np.int64))
        bound = Bound(numbers_of(self.plan, self.factors, semiring, one_group(n)), given)
        self.constant = float(bound.constants.sum())
        self.places = self.places._replace(bases=freeze(_moved(self.plan, bound.rows.bases, bound.codes[0])))
        self.held = _held(self.plan, bound)
        self.entry: Callable[..., bool] | None = None  # of the compiled kernel
        self.changed = np.empty(2 * len(self.plan.join.parent), np.int64)
        self.pending = set(np.flatnonzero(self.plan.join.parent < 0).tolist())  # every component is to be checked
        for v, weights in self.log_weights.items():
            self._weigh(v, weights)

    def observe(self, v: int, log_weights: Array) -> None:
        """Set the evidence on v; log_weights (K,): 0 and -inf for states allowed or not, else log-likelihoods."""
        if self.log_weights.get(v) is not log_weights:
            self.log_weights[v] = log_weights
            self._weigh(v, log_weights)

    def forget(self, v: int) -> None:
        """Take back the evidence on v."""
        if self.log_weights.pop(v, None) is not None:
            self._weigh(v, np.zeros(self.offsets[v + 1] - self.offsets[v]))

    def _weigh(self, v: int, log_weights: Array) -> None:
        """Put the weights of the states left to v, divided by the largest, into the operand of its evidence."""
        first, last = self.digits[v], self.digits[v + 1]
        if last - first < len(log_weights):
            log_weights = log_weights[self.plan.sketch.codes[first:last]]
        values: list[float] = log_weights.tolist()
        high = max(values)
        self.impossible.discard(v)
        self.taken.pop(v, None)
        if high == -math.inf:
            self.impossible.add(v)
            high = 0.0
        elif high != 0.0:
            self.taken[v] = high
        table = self.table_of.get(v)
        if table is None:
            return
        held, base = self.held, int(self.places.bases[table])
        held.spans[table] = high - min((x for x in values if x > -math.inf), default=high)
        if self.semiring == Semiring.SUM:
            held.store[base : base + len(values)] = [math.exp(x - high) for x in values]
        else:
            held.store[base : base + len(values)] = [x - high for x in values]
        self.pending.add(self.clique_of[v])

    def marginal(self, v: int) -> Array | None:
        """p(y_v | evidence), (K,)."""
        first, last = self.digits[v], self.digits[v + 1]
        if not self._ask(v if last - first > 1 else NOTHING):
            return None
        size = self.offsets[v + 1] - self.offsets[v]
        if last - first == size > 1:
            return self.held.marginals[first:last].copy()
        answer = np.zeros(size)
        answer[self.plan.sketch.codes[first:last]] = self.held.marginals[first:last] if last - first > 1 else 1.0
        return answer

    def marginals(self) -> Array | None:
        """All marginals, (S,)."""
        if not self._ask(EVERYTHING):
            return None
        drawn = self.plan.sketch
        answer = np.zeros(self.offsets[-1])
        of_single = np.repeat(drawn.counts == 1, drawn.counts)
        column = np.repeat(self.state_offsets[:-1], drawn.counts) + drawn.codes
        answer[column] = np.where(of_single, 1.0, self.held.marginals)
        return answer

    def log_partition(self) -> float:
        """log Z."""
        if not self._ask(NOTHING):
            return -math.inf
        return float(self.held.scales.sum()) + self.constant + math.fsum(self.taken.values())

    @property
    def n_made(self) -> int:
        """How many messages have been made since the beginning, or since the domain changed."""
        return int(self.held.clock[N_MADE])

    def _ask(self, asked: int) -> bool:
        """Bring up to date what a question needs; False if Z is zero."""
        if self.impossible or self.constant == -math.inf:
            return False
        if not self._run(asked):
            self._begin(Semiring.LOG_SUM)
            self._run(asked)
        return not self.held.clock[N_IMPOSSIBLE]

    def _run(self, asked: int) -> bool:
        """Call the kernel once; False if the range of the domain is too narrow."""
        n = len(self.pending)
        if n:
            self.changed[:n] = list(self.pending)
            self.pending.clear()
        question = (self.plan.join, self.places, self.changed, n, asked, self.held)
        if self.entry is None:
            compile = worth_compiling(float(self.plan.sketch.entries.sum()))
            kernel = kernel_of(make_ask, int(self.semiring), compile=compile)
            narrow = kernel(*question)
            self.entry = entry_of(kernel, *question) if compile else None
            return not narrow
        return not self.entry(*question)


def _plan_for_any(run: JunctionRun) -> CliquePlan:
    """The plan in which every variable may be observed and asked for; TooLargeError if it would not fit."""
    every = np.ones(run.graph.n_variables, np.bool_)
    free = run.setting(every, np.ones(run.graph.n_factors, np.bool_), False)
    setting = replace(free, soft=freeze(every))
    drawn = run.sketch(setting)
    _refuse(drawn, run.limit)
    return make_plan(run.factors, setting, drawn, compile=worth_compiling(drawn.entries.sum()))


def _refuse(drawn: Sketch, limit: int) -> None:
    needed = drawn.bytes + 8.0 * drawn.separator_entries.sum()  # messages in both directions
    if needed > limit:
        raise TooLargeError(
            f"a session would take {needed:.3g} bytes, more than memory_limit={limit}: width {drawn.order.width}, "
            f"{drawn.entries.sum():.3g} table entries in the best order found for any evidence; use more memory, or "
            "model.marginals(evidence=...), which plans only for what the evidence leaves"
        )


def _places(made: CliquePlan) -> Places:
    join, drawn, reads = made.join, made.sketch, made.reads
    parent, n_cliques = join.parent, len(join.parent)
    tree = np.full((n_cliques, 2), -1, np.int64)
    messages = np.flatnonzero(join.kinds == MESSAGE)
    tree[join.numbers[messages], 0] = messages
    for c in range(n_cliques - 1, -1, -1):
        tree[c, 1] = c if parent[c] < 0 else tree[parent[c], 1]
    readings = np.zeros((len(drawn.counts), 5), np.int64)
    variable_at = np.zeros(int(drawn.digit_offsets[-1]) + 1, np.int64)
    variable_at[drawn.digit_offsets[:-1]] = np.arange(len(drawn.counts))
    child = np.repeat(np.arange(n_cliques), np.diff(reads.offsets))
    one, none = np.ones_like(child), np.zeros_like(child)
    readings[variable_at[reads.target]] = np.stack([one, child, none, reads.before, reads.after], axis=1)
    outputs = np.flatnonzero(join.kinds == VARIABLE)
    clique = np.searchsorted(join.table_offsets, outputs, side="right") - 1
    readings[join.numbers[outputs], 1:3] = np.stack([clique, outputs], axis=1)
    return Places(made.bases, freeze(tree), freeze(readings), drawn.digit_offsets)


def _moved(made: CliquePlan, bases: IntArray, codes: IntArray) -> IntArray:
    """Bases of tables, moved by the codes of variables with one state left."""
    sizes = np.diff(made.fixed_offsets)
    moves = made.fixed_strides * codes[made.fixed_variables]
    table = np.repeat(np.arange(len(bases)), sizes)
    return bases + np.bincount(table, weights=moves, minlength=len(bases)).astype(np.int64)


def _held(made: CliquePlan, bound: Any) -> Held:
    work, n_cliques = bound.work(), len(made.join.parent)
    soft = bound.rows.soft[0]
    work.store[: made.n_messages] = 0.0
    work.store[made.n_messages : made.n_messages + len(soft)] = soft
    when = np.zeros((n_cliques, N_STAMPS), np.int64)
    when[:, [UP_SEEN, UP_CHECKED, DOWN_SEEN, DOWN_CHECKED]] = -1
    return Held(
        store=work.store,
        down=np.zeros(made.n_messages),
        spans=np.array(bound.rows.spans),
        up_spans=np.zeros(n_cliques),
        down_spans=np.zeros(n_cliques),
        scales=np.zeros(n_cliques),
        when=when,
        clock=np.zeros(3, np.int64),
        marginals=np.zeros(int(made.sketch.digit_offsets[-1])),
        tile=work.tile,
        sums=work.sums,
        fresh=np.empty(np.diff(made.join.message_offsets).max(initial=1)),
        stack=np.empty(3 * n_cliques, np.int64),
        path=np.empty(n_cliques, np.int64),
    )
