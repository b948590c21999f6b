"""A chain of clique forests: approximate sums with cliques of bounded size.

Factors are added to a forest of cliques one after the other, as many as the bound on its cliques allows (build). The
forest is calibrated (infer), and replaced by one with smaller cliques on the variables that the remaining factors need
(`besag.infer.join_graph.reduction`), to which these are then added (approximate):

    T_1, A_1, T_2, A_2, .., T_m         T_t holds the factors of stage t and A_(t-1); cliques of A_t are parts of T_t's

This is the incremental build-infer-approximate scheme of Bathla and Vasudevan (arXiv 2202.12003, 2306.00335). With one
forest it is the junction tree, and exact. Otherwise a first pass gives log Z as the sum of the logs of Z_t, and the
forward messages, f_t = the product over the cliques of A_t of b_C / b_S, S being shared with the parent. Then, as in
expectation propagation, from the last stage to the first and again from the first to the last,

    back     g_t = q_t / f_t,  q_t the same product from the marginals of T_(t+1) under factors, f_t and g_(t+1)
    again    f_t = q_t / g_t,  q_t from the marginals of T_t under factors, f_(t-1) and g_t

until nothing changes. Where all f and g have settled, neighbouring forests agree on the marginals of what they share.
After a pass back

    log Z = sum over t of log Z_t,      Z_t the sum over T_t of its factors, f_(t-1) and g_t

since f_t g_t = q_t sums to one. Only messages and structure are kept; a pass makes the tables of one forest at a time,
in the same memory for all but the last, whose tables the next pass begins with. Messages may be kept in single
precision where something was left out, so that rounding is the lesser loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from besag.infer.join_graph.calibration import Calibration
from besag.infer.join_graph.clique_forest import CliqueForest, ScopeGraph
from besag.infer.join_graph.reduction import Reduced, reduce_cliques, tear_apart
from besag.infer.join_graph.tables import Algebra, CliqueScopes, CliqueTable, CliqueTables, Scope

GAP_BITS = 3.0  # between the cliques of T and those of A
CLIQUE_BYTES = 800  # of scopes, links and places, besides tables
MESSAGES = 4  # tables held for every clique of A: forward, backward, and both from before a pass
FORESTS = 3  # times the largest forest: what its tables and messages take while it is calibrated and reduced


class OutOfTimeError(Exception):
    """A chain could not be finished in time."""


class OutOfRoomError(Exception):
    """The forests and messages of a chain do not fit into its memory."""


@dataclass(slots=True, eq=False)
class Stage:
    """T_t, A_t and the messages between it and the next."""

    forest: CliqueForest
    calibration: Calibration
    factors: list[int]
    own: CliqueTables  # of the factors
    arrivals: list[int]  # the cliques of T_t that contain those of A_(t-1)
    small: Reduced | None  # A_t; None at the last
    forward: CliqueTables
    backward: CliqueTables
    log_scale: float = 0.0  # of backward
    placed: CliqueScopes | None = None  # of all tables that are multiplied in T_t
    homes: list[int] = field(default_factory=list)


class Chain:
    """Forests for the product of some tables; `order`: the variables, in the order in which their factors are added.

    `check` is called now and then, and may raise; the messages of a pass that it ends can be restored by `saved`. The
    first pass, and any if nothing was left out, must not lose an entry to underflow: it raises TooWideError instead.
    Later passes are approximations anyway, and there what is below the range of numbers counts as 0.
    `hurry`: whether time is short; then only single variables are kept of a forest. dtype: of messages. room: bytes for
    all of it, counted before they are allocated; OutOfRoomError if they do not suffice.
    """

    def __init__(
        self,
        algebra: Algebra,
        tables: Sequence[CliqueTable],
        order: Sequence[int],
        bits: float,
        check: Callable[[], None] = lambda: None,
        hurry: Callable[[], bool] = lambda: False,
        dtype: str = "float64",
        room: float = math.inf,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.room, self._structure, self._largest = room, 24.0 * sum(len(table.values) for table in tables), 0
        self.algebra, self.tables, self.check, self.hurry = algebra, tables, check, hurry
        self.bits = max([bits, *(algebra.bits(table.scope) for table in tables)])
        self._keep_bits = max(self.bits - max(GAP_BITS, *algebra.logs), 1.0)  # of the cliques of A
        self.stages: list[Stage] = []
        self.log_partition = 0.0
        self._nothing = self._beliefs = algebra.tables([])  # beliefs: of the last stage
        self._room = np.empty(0)  # for those of the others, during a pass
        self._last_total = 0.0
        place = {v: i for i, v in enumerate(order)}
        groups: dict[int, list[int]] = {}
        for f, table in enumerate(tables):
            groups.setdefault(min([place[v] for v in table.scope]), []).append(f)
        self._groups = [groups[first] for first in sorted(groups)]
        self._number()
        self.building = True
        self._build()
        self.building = False
        self.first_estimate = self.log_partition

    @property
    def exact(self) -> bool:
        """Whether nothing was left out: one forest holds everything, or none had to be made smaller."""
        return all(stage.small is None or stage.small.exact for stage in self.stages)

    @property
    def lost(self) -> float:
        """The sum of KL(T_t | A_t), nats."""
        return sum(stage.small.lost for stage in self.stages if stage.small is not None)

    def _build(self) -> None:
        """Make the stages, and the first pass."""
        done, carried, step, keep = 0, self._nothing, len(self._groups), self._keep_bits
        while done < len(self._groups):
            stop, forest = self._next(done, carried.scopes.each, step)
            if forest is None and self._split(done):
                continue
            if forest is None:  # not even one factor fits: only smaller cliques can help
                keep -= 1.0
                together = self._together(done, done, carried.scopes.each, -1.0)
                forest = together.forest(together.best())
            else:
                keep = self._keep_bits
            step = max(stop - done, 1)
            stage = self._stage(forest, [f for group in self._groups[done:stop] for f in group], carried.scopes)
            self._take(CLIQUE_BYTES * len(forest.scopes), stage.calibration.n_entries)
            self.stages.append(stage)
            beliefs, log_total = self._calibrated(stage, carried, last=stop == len(self._groups))
            self.log_partition += log_total
            if log_total == -math.inf:
                break
            done = stop
            if done < len(self._groups):
                carried = self._approximate(stage, beliefs, self._needed(done, stage.forest.homes), keep)
            else:
                self._beliefs, self._last_total = beliefs, log_total
        self._room = np.empty(0)

    def _stage(self, forest: CliqueForest, factors: list[int], before: CliqueScopes) -> Stage:
        own, calibration = self.algebra.tables([self.tables[f] for f in factors]), Calibration(self.algebra, forest)
        arrivals = [forest.home(scope) for scope in before.each]
        return Stage(forest, calibration, factors, own, arrivals, None, self._nothing, self._nothing)

    def _approximate(self, stage: Stage, beliefs: CliqueTables, needed: frozenset[int], bits: float) -> CliqueTables:
        self.check()
        if self.hurry():
            stage.small, marginals = tear_apart(self.algebra, stage.forest, beliefs, needed)
        else:
            stage.small, marginals = reduce_cliques(self.algebra, stage.forest, beliefs, needed, bits, self.check)
        self._take(CLIQUE_BYTES * len(marginals) + MESSAGES * self.dtype.itemsize * len(marginals.values))
        stage.forward = self._kept(stage, self.algebra.conditionals(marginals, stage.small.separators))
        return stage.forward

    def _take(self, n_bytes: float, n_entries: int = 0) -> None:
        """Count the bytes kept, and the entries of a forest, all of which share one work space."""
        self._structure += n_bytes
        self._largest = max(self._largest, n_entries)
        if self._structure + 8 * FORESTS * self._largest > self.room:
            raise OutOfRoomError

    def _kept(self, stage: Stage, messages: CliqueTables) -> CliqueTables:
        """Messages in their dtype; unchanged if the stage has left out nothing."""
        if self.dtype == np.float64 or stage.small is None or stage.small.exact:
            return messages
        return CliqueTables(messages.scopes, self.algebra.round_to_single(messages.values))

    def _number(self) -> None:
        self._last_group = {v: g for g, group in enumerate(self._groups) for f in group for v in self.tables[f].scope}

    def _needed(self, done: int, variables: Iterable[int]) -> frozenset[int]:
        """Those of the variables that are in remaining factors."""
        return frozenset([v for v in variables if self._last_group[v] >= done])

    def _split(self, done: int) -> bool:
        """Split a group into one group for each factor; False if it has only one."""
        group = self._groups[done]
        self._groups[done : done + 1] = [[f] for f in group]
        self._number()
        return len(group) > 1

    def _next(self, done: int, scopes: list[Scope], step: int) -> tuple[int, CliqueForest | None]:
        """The most groups that fit, with variables that no factor needs any more summed out where that is cheap."""
        for exact_bits in (self._keep_bits, -1.0):
            stop, forest = self._longest(done, scopes, step, exact_bits)
            if forest is not None:
                return stop, forest
        return done, None

    def _longest(self, done: int, scopes: list[Scope], step: int, exact_bits: float) -> tuple[int, CliqueForest | None]:
        """The most groups for which one greedy run stays within the bound, and the best forest for them."""
        low, high, best = done, len(self._groups) + 1, None
        while low + 1 < high:
            self.check()
            trial = min(low + step, high - 1)
            together = self._together(done, trial, scopes, exact_bits)
            order = together.order_within(self.bits)
            if order is None:
                high = trial
            else:
                low, best = trial, (together, order)
            step = 2 * step if high > len(self._groups) else max((high - low) // 2, 1)
        return low, None if best is None else best[0].forest_within(best[1], self.bits)

    def _together(self, done: int, stop: int, scopes: list[Scope], exact_bits: float) -> ScopeGraph:
        new = [self.tables[f].scope for group in self._groups[done:stop] for f in group]
        scopes = scopes + new
        last = frozenset[int]() if exact_bits < 0 else self._needed(stop, chain.from_iterable(scopes))
        return ScopeGraph(self.algebra, scopes, last, exact_bits)

    def _calibrated(self, stage: Stage, before: CliqueTables, *, last: bool = False) -> tuple[CliqueTables, float]:
        together = (stage.own, before, stage.backward)
        if stage.placed is None or len(stage.homes) != sum(map(len, together)):
            behind = stage.small.sources if len(stage.backward) and stage.small is not None else []
            stage.homes = [*map(stage.forest.home, stage.own.scopes.each), *stage.arrivals, *behind]
            stage.placed = self.algebra.scopes([scope for tables in together for scope in tables.scopes.each])
        values = np.concatenate([tables.values for tables in together])
        strict, n = self.building or self.exact, stage.calibration.n_entries
        if not last and len(self._room) < n:
            self._room = np.empty(n)
        room = np.empty(n) if last else self._room[:n]
        return stage.calibration.run(stage.placed, stage.homes, values, strict=strict, room=room)

    def back(self) -> Iterator[tuple[Stage, CliqueTables]]:
        """Make a pass back; yields the stages from the last to the first with the marginals of their cliques."""
        beliefs, total = self._beliefs, self._last_total
        yield self.stages[-1], beliefs
        for t in range(len(self.stages) - 2, -1, -1):
            self.check()
            stage = self.stages[t]
            self._receive(stage, self.stages[t + 1], beliefs)
            beliefs, log_total = self._calibrated(stage, self.stages[t - 1].forward if t else self._nothing)
            total += log_total + stage.log_scale
            yield stage, beliefs
        self.log_partition = total
        self._room = np.empty(0)

    def _receive(self, stage: Stage, after: Stage, beliefs: CliqueTables) -> None:
        assert stage.small is not None
        marginals = self.algebra.marginals(beliefs, after.arrivals, stage.small.scopes)
        now = self.algebra.conditionals(marginals, stage.small.separators)
        backward, stage.log_scale = self._messages(now, stage.forward)
        stage.backward = self._kept(stage, backward)

    def _messages(self, now: CliqueTables, came: CliqueTables) -> tuple[CliqueTables, float]:
        """The quotient, as messages, and the sum of the logs of their scales."""
        return self.algebra.messages(CliqueTables(now.scopes, self.algebra.quotient(now.values, came.values)))

    def save(self) -> Callable[[], None]:
        """A function that restores the messages to what they are now."""
        messages = [(stage.forward, stage.backward, stage.log_scale) for stage in self.stages]
        totals = (self.log_partition, self._beliefs, self._last_total)

        def restore() -> None:
            for stage, kept in zip(self.stages, messages, strict=True):
                stage.forward, stage.backward, stage.log_scale = kept
            self.log_partition, self._beliefs, self._last_total = totals

        return restore

    def pass_again(self, damping: float = 0.0) -> None:
        """Make a pass forward with the backward messages; damped, f is a geometric mean of its old and new value."""
        before = self._nothing
        for stage in self.stages:
            self.check()
            beliefs, log_total = self._calibrated(stage, before, last=stage.small is None)
            if stage.small is None:
                self._beliefs, self._last_total = beliefs, log_total
                break
            marginals = stage.small.marginals(self.algebra, beliefs)
            updated = self.algebra.conditionals(marginals, stage.small.separators)
            new, _ = self._messages(updated, stage.backward)
            if damping > 0:
                new = CliqueTables(new.scopes, self.algebra.mix(new.values, stage.forward.values, damping))
            before = stage.forward = self._kept(stage, new)
        self._room = np.empty(0)
