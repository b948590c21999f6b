"""Marginal MAP beyond elimination: the best joint state of some targets, the rest summed out.

    minimise  E(a) = -log sum over the rest of exp(-H(a, rest))          a: states of the targets

With all targets clamped the rest often falls into small parts, where log Z is exact. So a search among the a:

    start     of the labellings that are given the one whose targets have the lowest E
    moves     a block of neighbouring targets is set free, and the best joint state given all others is taken: exactly,
              by elimination in the part of the graph that they are in; blocks grow as long as moves are quick
    kicks     a block at random from the best, where no move gains any more

A block of all targets is a proof. Rows of evidence share the time. Without a time limit a row ends where NO_GAIN
seconds and a pass over all targets have brought nothing.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.errors import TooLargeError
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from besag.infer.iterate import Clock, OutOfTime, Stopped, drive
from besag.infer.junction.elimination import Buckets
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.relevance import find_relevant
from besag.infer.junction.remaining import Remaining
from besag.infer.map.labellings import CLOSED
from besag.infer.orders.search import find_neighbours_of
from besag.infer.result import Diagnostics, Result

NO_GAIN = 1.0  # seconds
FIRST_BITS = 8.0  # of the joint states of a block
GROWN, TOO_LARGE = 1.25, 0.6  # factors of the bits, where moves are quick or slow, and where one does not fit
KICK_BITS = 6.0
MOVE_SHARE = 0.01  # of the time, for a move
MOVE_SECONDS = 0.1  # where there is no limit


def search_targets(
    problem: Problem,
    targets: IntArray,
    worker: JunctionTree,
    starts: Sequence[IntArray],
    bounds: Array,
    *,
    rng: np.random.Generator,
    time_limit: float | None,
) -> Result:
    """The best joint state of the targets that is found in the time, for each row of evidence.

    starts: labellings (R, V); bounds (R,): on E from below. TooLargeError where not even the rest alone fits.
    """
    began = time.perf_counter()
    evidence, clock = problem.evidence, Clock(time_limit, began)
    codes = np.full((evidence.n_rows, 1, problem.graph.n_variables), -1, np.int64)
    energies, bounds = np.empty((evidence.n_rows, 1)), np.array(bounds)
    ends: list[Stopped] = []
    proven, moves = True, 0
    for row in range(evidence.n_rows):
        observed, log_weights = evidence.rows(row, row + 1)
        of_row = problem.with_evidence(Evidence(observed, log_weights))
        limit = None if time_limit is None else max(clock.left / (evidence.n_rows - row), 1e-2)
        search = TargetSearch(of_row, targets, worker, rng, limit)
        search.begin([codes[row, targets] for codes in starts])
        if "interrupted" not in ends:
            ends.append(search.run())
        codes[row, 0, targets] = search.best
        energies[row] = search.energy
        bounds[row] = search.energy if search.proven else bounds[row]
        proven, moves = proven and search.proven, moves + search.moves
    stopped = next((end for end in ("interrupted", "time_limit", "no_progress") if end in ends), "converged")
    told = Diagnostics(
        engine="marginal_search", converged=proven, iterations=moves, seconds=time.perf_counter() - began,
        stopped=stopped, rows=evidence.n_rows, tolerance=None, residual=None,
    )  # fmt: skip
    return Result(
        problem.graph, "exact" if proven else "estimate", told, evidence.batched, evidence.index, codes=codes,
        energies=energies, energy_bounds=np.minimum(bounds, energies[:, 0]),
        targets=tuple(problem.graph.variables.names_at(targets)),
    )  # fmt: skip


class TargetSearch:
    """The search for one row; best (n,) is the best joint state so far."""

    def __init__(
        self, problem: Problem, targets: IntArray, worker: JunctionTree, rng: np.random.Generator, limit: float | None
    ) -> None:
        self.problem, self.targets, self.worker, self.rng = problem, targets, worker, rng
        self.limit, self.clock, graph = limit, Clock(limit), problem.graph
        scopes = (graph.n_variables, graph.scope_offsets, graph.scope_variables)
        self.first, self.others = graph.plans.get("all neighbours", lambda: find_neighbours_of(*scopes))
        self.place = np.full(graph.n_variables, -1)
        self.place[targets] = np.arange(len(targets))
        self.seen = problem.evidence.observed[0] >= 0
        self.free = targets[~self.seen[targets]]
        self.log_sizes = np.log2(graph.variables.cardinalities)
        self.bits = FIRST_BITS
        self.moves, self.proven = 0, False
        self.waiting: list[int] = []  # targets that have not been in a block of this pass
        self.gained, self.gained_at = True, self.clock.seconds

    def _share(self, share: float, otherwise: float) -> float:
        return otherwise if self.limit is None else max(share * self.limit, 1e-3)

    def begin(self, starts: Sequence[IntArray]) -> None:
        """At the best of several joint states (n,)."""
        energies = [self.energy_of(codes) for codes in starts]
        which = int(np.argmin(energies))
        self.best, self.energy = np.array(starts[which]), energies[which]
        self.codes, self.now = self.best.copy(), self.energy

    def energy_of(self, codes: IntArray) -> float:
        """E of a joint state (n,)."""
        run = Buckets(self.worker, self._clamped(codes, self.targets[:0]))
        return -float(run.sums(frozenset({"log_partition"}))["log_partitions"][0])

    def _clamped(self, codes: IntArray, block: IntArray) -> Problem:
        """The problem with all targets at their codes, but for a block of them."""
        evidence = self.problem.evidence
        observed = evidence.observed.copy()
        free = self.seen[self.targets] | np.isin(self.targets, block)
        observed[0, self.targets[~free]] = codes[~free]
        return self.problem.with_evidence(Evidence(observed, evidence.log_weights))

    def run(self) -> Stopped:
        """Moves until the time is over, a proof, or nothing gains."""
        if not len(self.free) or not math.isfinite(self.energy):
            self.proven = not len(self.free)
            return "converged" if self.proven else "no_progress"

        def advance() -> Stopped | None:
            if self.clock.left <= 0:
                raise OutOfTime
            return self._advance()

        return drive(advance)

    def _advance(self) -> Stopped | None:
        """A move; why to stop, if so."""
        if not self.waiting:
            ended = self._end_pass()
            if ended is not None:
                return ended
        began = time.perf_counter()
        block = self._grow(self.waiting.pop(), self.bits)
        gain = self._move(block, kick=False)
        seconds, aim = time.perf_counter() - began, self._share(MOVE_SHARE, MOVE_SECONDS)
        if gain is None:
            self.bits *= TOO_LARGE
            return None
        self.moves += 1
        self.bits *= GROWN if seconds < 0.5 * aim else 1.0 / GROWN if seconds > aim else 1.0
        moved = set(block.tolist())
        self.waiting = [v for v in self.waiting if v not in moved]
        self.gained = self.gained or gain > 0
        if len(block) < len(self.free):
            return None
        self.proven, self.best, self.energy = True, self.codes.copy(), self.energy_of(self.codes)
        return "converged"

    def _end_pass(self) -> Stopped | None:
        """After all targets have been in a block, where no move gained: a kick."""
        self._note()
        self.waiting = self.rng.permutation(self.free).tolist()
        if self.gained:
            self.gained = False
            return None
        if self.limit is None and self.clock.seconds - self.gained_at > NO_GAIN:
            return "no_progress"
        self.codes, self.now = self.best.copy(), self.energy
        self._move(self._grow(int(self.rng.choice(self.free)), KICK_BITS), kick=True)
        self.gained = True
        return None

    def _note(self) -> None:
        """Keeps the joint state where it is the best so far."""
        if self.now < self.energy - CLOSED * (1.0 + abs(self.energy)):
            self.now = self.energy_of(self.codes)
            if self.now < self.energy:
                self.best, self.energy, self.gained_at = self.codes.copy(), self.now, self.clock.seconds

    def _grow(self, start: int, bits: float) -> IntArray:
        """Targets of so many bits, and one at least: breadth first through whatever is not observed."""
        found, room, reached, queue = list[int](), bits, {start}, deque([start])
        elsewhere = self.free.tolist()
        while queue or elsewhere:
            v = queue.popleft() if queue else elsewhere.pop()
            if v in found:
                continue
            reached.add(v)
            if self.place[v] >= 0:
                room -= self.log_sizes[v]
                if room < 0 and found:
                    break
                found.append(v)
            near = self.others[self.first[v] : self.first[v + 1]].tolist()
            self.rng.shuffle(near)
            for u in near:
                if u not in reached and not self.seen[u]:
                    reached.add(u)
                    queue.append(u)
        return np.array(sorted(found), np.int64)

    def _move(self, block: IntArray, *, kick: bool) -> float | None:
        """Takes the best joint state of a block given the others, or a random one; the gain, None if too large."""
        clamped = self._clamped(self.codes, block)
        used = self._touching(clamped, block) & find_relevant(clamped, block)
        run = Buckets(self.worker, clamped, time_limit=4.0 * self._share(MOVE_SHARE, MOVE_SECONDS))
        try:
            [left] = run.eliminate(block, used=used)
            values, found = left.best(run.refuse)
        except TooLargeError:
            return None
        places = self.place[block]
        before = value_at(left, self.codes[places])
        if kick:
            found = np.array([[self.rng.choice(codes) for codes in left.states[0]]])
            values = np.array([value_at(left, found[0])])
        gain = float(values[0]) - before
        if (kick and math.isfinite(gain)) or gain > CLOSED * (1.0 + abs(self.now)):
            self.codes[places] = found[0]
            self.now -= gain
            return gain
        return 0.0

    def _touching(self, clamped: Problem, block: IntArray) -> BoolArray:
        """(F,): the factors in those parts of the graph that a block is in, what is observed being taken out."""
        graph, seen = clamped.graph, clamped.evidence.observed[0] >= 0
        inside = np.zeros(graph.n_variables, np.bool_)
        inside[block] = True
        edge = block
        while len(edge):
            counts = self.first[edge + 1] - self.first[edge]
            starts = np.repeat(self.first[edge] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            near = self.others[starts + np.arange(int(counts.sum()))]
            edge = np.unique(near[~inside[near] & ~seen[near]])
            inside[edge] = True
        return np.logical_or.reduceat(inside[graph.scope_variables], graph.scope_offsets[:-1])


def value_at(left: Remaining, codes: IntArray) -> float:
    """log sum over the rest of exp(-H), up to what is left out, at one joint state of the kept variables."""
    digits = []
    for states, code in zip(left.states[0], codes.tolist(), strict=True):
        at = int(np.searchsorted(states, code))
        if at == len(states) or states[at] != code:
            return -math.inf
        digits.append(at)
    total = float(left.constants[0])
    for scope, table in zip(left.scopes, left.tables, strict=True):
        total += float(table[(0, *(digits[i] for i in scope.tolist()))])
    return total
