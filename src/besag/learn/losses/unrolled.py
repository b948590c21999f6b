"""Messages that are sent a few times, and back-propagation through all of them: gradients of truncated inference.

With rho = 1 these are the messages of belief propagation, all at once; with rho of forests those of tree-reweighted
sweeps, one factor after the other, forth and back (`besag.infer.trw.engine`):

    total_v = base_v + sum_f rho_f m_{f->v}        b_v = exp(total_v) / Z_v        q_{v->f} = total_v - m_{f->v}
    m_{f->v} moves towards log sum_{y_f \\ v} exp(lp_f / rho_f + sum_{u != v} q_{u->f}), from 0 on

Beliefs after k of them are a function of theta like any other. Its derivatives are taken step by step, from the last
message to the first, with the messages of each step at hand: (k + 1) M numbers are kept. rho and the order of factors
are those of each instance alone, so that the parts of a union add up.

    V variables, S states, G factors of two or more variables, M entries of messages, L numbers of the problem
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from besag.arrays import Array, IntArray, Kind, freeze, offsets_of
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.prepared import Prepared
from besag.infer.trw.engine import TRW
from besag.infer.trw.forests import Covered, spread_by_instance
from besag.infer.trw.kernels.messages import SweepLinks
from besag.infer.trw.plan import reweigh_tables, shares_of
from besag.infer.unary import add_unary_moments
from besag.kernels.compile import kernel_of, worth_compiling
from besag.learn.losses.kernels.unrolled import make_rolled_back, make_unrolled

TABLES = frozenset({int(Kind.TABLE)})


@dataclass(frozen=True, slots=True, eq=False)
class UnrolledPlan:
    """order (G,) of factors; states and owners (M,): the state that an entry is about, the position of its factor.

    rho, shares (G,): the weight of a factor, and how far its messages go. in_turn: one factor after the other.
    """

    order: IntArray
    links: SweepLinks
    states: IntArray
    owners: IntArray
    rho: Array
    shares: Array
    in_turn: bool

    def totals(self, base: Array, messages: Array) -> Array:
        """(S,)."""
        return np.asarray(base + np.bincount(self.states, self.rho[self.owners] * messages, len(base)))


def plan_unrolled(problem: Problem, engine: object) -> UnrolledPlan:
    """What sweeps of an engine, bp or trw, need of a structure and of its hard zeros."""
    graph = problem.graph
    linked = np.flatnonzero(np.diff(graph.scope_offsets) >= 2)
    highest = np.maximum.reduceat(graph.scope_variables, graph.scope_offsets[:-1]) if len(linked) else linked
    order = linked[np.argsort(highest[linked], kind="stable")]
    links, owners = _links(graph, order)
    sizes, messages = links.sizes, offsets_of(links.sizes)
    states = np.repeat(links.places - messages[:-1], sizes) + np.arange(messages[-1])
    rho = np.ones(len(order))
    shares = rho
    if isinstance(engine, TRW):
        left = Prepared(problem, TABLES, engine.memory_limit).base[0] > -np.inf
        fixed = np.add.reduceat(left, graph.state_offsets[:-1], dtype=np.int64) <= 1
        rho, shares = _weights(graph, engine, order, Covered(links.starts, links.variables, freeze(fixed)))
    frozen = (freeze(states), freeze(np.repeat(owners, sizes)), freeze(rho), freeze(shares))
    return UnrolledPlan(freeze(order), links, *frozen, in_turn=isinstance(engine, TRW))


def _weights(graph: Graph, engine: TRW, order: IntArray, scopes: Covered) -> tuple[Array, Array]:
    """rho and shares; on an instance without cycles messages go all of their way."""
    instances = graph.factor_instances[order]
    compile = worth_compiling(float(engine.n_forests * len(scopes.variables)))
    rho, _ = spread_by_instance(scopes, instances, engine.n_forests, compile=compile)
    has_cycles = np.bincount(instances, weights=rho < 1.0, minlength=graph.n_instances) > 0
    shares = shares_of(scopes, np.minimum(rho, 0.5), engine.damping)
    return rho, np.where(has_cycles[instances], shares, 1.0 - engine.damping)


def _links(graph: Graph, order: IntArray) -> tuple[SweepLinks, IntArray]:
    """The scopes of factors at their positions, and the position of each entry of a scope."""
    arity = np.diff(graph.scope_offsets)[order]
    starts = offsets_of(arity)
    places = np.repeat(graph.scope_offsets[order] - starts[:-1], arity) + np.arange(starts[-1])
    variables, owners = graph.scope_variables[places], np.repeat(np.arange(len(order)), arity)
    sizes = np.diff(graph.state_offsets)[variables]
    widest = int(np.bincount(owners, sizes, len(order)).max(initial=1.0))
    links = SweepLinks(
        freeze(starts),
        freeze(variables),
        freeze(sizes),
        freeze(graph.state_offsets[variables]),
        freeze(offsets_of(sizes)[:-1]),
        int(arity.max(initial=1)),
        widest,
    )
    return links, owners


class Unrolled:
    """k sweeps on one problem: log_beliefs (S,), -inf where hard zeros rule a state out, and the way back."""

    def __init__(self, problem: Problem, plan: UnrolledPlan, n_sweeps: int, memory_limit: int | None) -> None:
        self.plan, self.setting = plan, Prepared(problem, TABLES, memory_limit)
        work = float(n_sweeps) * (len(plan.states) + self.setting.entries)
        self.compile = worth_compiling(work)
        self.tables = reweigh_tables(self.setting.factors, plan.order, plan.rho, compile=self.compile)
        self.messages = np.zeros((n_sweeps + 1, len(plan.states)))
        self.base: Array = self.setting.base[0]
        self.written = np.array(self.base)
        kernel = kernel_of(make_unrolled, compile=self.compile)
        for t, (old, new) in enumerate(zip(self.messages[:-1], self.messages[1:], strict=True)):
            read = self.written if plan.in_turn else self.written.copy()
            kernel(plan.links, self.tables, self._is_backwards(t), plan.shares, old, new, read, self.written)
        self.log_beliefs = self.written - self.setting.spread_variables(self._log_sums())

    def _is_backwards(self, t: int) -> bool:
        return self.plan.in_turn and t % 2 == 1

    def _log_sums(self) -> Array:
        """(V,): log Z_v."""
        starts = self.setting.graph.state_offsets[:-1]
        high = np.maximum.reduceat(self.written, starts)
        return np.asarray(high + np.log(self.setting.sums(np.exp(self.written - self.setting.spread_variables(high)))))

    def gradient(self, counts: Array) -> Array:
        """(L,): the derivative of - <counts, log_beliefs>, counts (S,), by the log-potentials."""
        setting, plan = self.setting, self.plan
        slopes = np.exp(self.log_beliefs) * setting.spread_variables(setting.sums(counts)) - counts
        by_messages, cells = np.zeros(len(plan.states)), np.zeros(len(setting.problem.log_potentials))
        kernel, totals = kernel_of(make_rolled_back, compile=self.compile), self.written.copy()
        for t in reversed(range(len(self.messages) - 1)):
            old, new, by_read = self.messages[t], self.messages[t + 1], slopes
            if not plan.in_turn:
                totals, by_read = plan.totals(self.base, old), slopes.copy()
            state = (old, new, totals, slopes, by_read, by_messages, cells)
            kernel(plan.links, self.tables, self._is_backwards(t), plan.in_turn, plan.shares, *state)
            slopes = by_read
        add_unary_moments(replace(setting.problem, weights=None), slopes[None], cells)
        return setting.given.contracted(setting.problem, cells)
