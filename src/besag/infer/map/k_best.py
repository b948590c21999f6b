"""The k best labellings where no tree fits: those found around the best one, as estimates.

Best first: the best labelling that has not been looked at is, and what is near it is found: for each of its most
promising flips, the labelling after the flip, and what exact moves of strips (`blocks`) make of it while the flipped
variable stays. It ends when k labellings have been looked at, or the time is over. All are distinct and sorted by their
energies, which are the Problem's; only the first one's bound is known.

    R rows of evidence, V variables, S states
"""

from __future__ import annotations

import heapq
import time
from dataclasses import replace

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.brute import most_labellings
from besag.infer.engine import OnStep, Want
from besag.infer.iterate import Clock
from besag.infer.map.blocks import Blocks
from besag.infer.map.kernels.scores import make_differences, make_weigh
from besag.infer.map.landscape import Landscape
from besag.infer.map.portfolio import search_and_bound
from besag.infer.map.ranking import count_asked, rank
from besag.infer.memory import default_memory_limit, refuse
from besag.infer.result import Result
from besag.kernels.compile import kernel_of

BEST_SHARE = 0.7  # of the time, for the best labelling
MORE_SECONDS = 1.0  # where there is no limit: these, or as long as the best labelling took
FLIPS = 3  # for each labelling that is asked for, at each that is looked at
MOVES = 2  # of strips after a flip
BITS = 12.0  # of the tables of strips
COPIES = 3  # of a labelling: waiting, taken, and in the answer


def search_k_best(
    problem: Problem,
    k: int,
    memory_limit: int | None,
    want: frozenset[Want],
    *,
    warm: Result | None,
    rng: np.random.Generator,
    time_limit: float | None,
    on_step: OnStep | None,
) -> Result:
    """k labellings of each row, the best that are found."""
    if problem.graph.n_instances > 1:
        raise CapabilityError("only exact engines find the k best labellings of a union of models; ask about one model")
    held = COPIES * 8 * problem.graph.n_variables * problem.evidence.n_rows * min(k, most_labellings(problem.graph))
    limit_bytes = default_memory_limit() if memory_limit is None else memory_limit
    refuse(f"the {k} best labellings", held, limit_bytes, "ask for fewer", least=held)
    began, clock = time.perf_counter(), Clock(time_limit)
    limit = None if time_limit is None else BEST_SHARE * time_limit
    result = search_and_bound(problem, memory_limit, want, warm=warm, rng=rng, time_limit=limit, on_step=on_step)
    assert result.codes is not None
    more = max(MORE_SECONDS, clock.seconds)
    landscape = Landscape(problem, memory_limit)
    k, found = count_asked(landscape, k), []
    for row, codes in enumerate(result.codes[:, 0]):
        surroundings = Surroundings(landscape, row, k, rng)
        surroundings.begin(codes)
        if time_limit is None and row == 0:  # without the time that kernels took
            clock = Clock(more)
        found.append(surroundings.search(codes, Clock(clock.left / (landscape.n_rows - row))))
    codes, energies = rank(landscape, found, k)
    told = result.diagnostics.extend(seconds=time.perf_counter() - began, known=sum(map(len, found)))
    bounds = result.energy_bounds
    if bounds is not None:
        bounds = np.minimum(bounds, energies[:, 0])
    return replace(result, codes=codes, energies=energies, energy_bounds=bounds, bound="estimate", diagnostics=told)


class Surroundings:
    """Labellings of one row near the best one."""

    def __init__(self, landscape: Landscape, row: int, k: int, rng: np.random.Generator) -> None:
        self.landscape, self.row, self.k, self.rng = landscape, row, k, rng
        self.blocks = Blocks(landscape)
        self.base, self.factors = landscape.soft_base(row), landscape.soft_factors
        self.allowed = landscape.base(row) > -np.inf
        offsets = landscape.graph.state_offsets
        self.variable_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        self.heap: list[tuple[float, int, IntArray]] = []
        self.seen: set[bytes] = set()

    def begin(self, codes: IntArray) -> None:
        """Takes the first labelling, and has the kernels compiled that a search needs."""
        self._offer(codes)
        self._gains(codes)

    def search(self, codes: IntArray, clock: Clock) -> list[IntArray]:
        """What is found: distinct labellings, the one that it began with first."""
        taken: list[IntArray] = []
        while self.heap and len(taken) < self.k:
            _, _, best = heapq.heappop(self.heap)
            taken.append(best)
            if clock.left > 0 or len(taken) + len(self.heap) < self.k:  # flips alone take next to no time
                self._look_around(best, clock)
        waiting = [codes for _, _, codes in heapq.nsmallest(self.k, self.heap)]
        return [*taken, *waiting]

    def _offer(self, codes: IntArray) -> None:
        key = codes.tobytes()
        if key not in self.seen:
            self.seen.add(key)
            kernel = kernel_of(make_weigh, compile=self.landscape.setting.goes_on())
            weight = float(kernel(self.factors, self.landscape.axes, self.base, codes))
            heapq.heappush(self.heap, (-weight, len(self.seen), np.array(codes)))

    def _look_around(self, codes: IntArray, clock: Clock) -> None:
        gains, offsets = self._gains(codes), self.landscape.graph.state_offsets
        n = min(FLIPS * self.k, int((gains > -np.inf).sum()))
        order = np.argpartition(-gains, n - 1)[:n] if n else np.zeros(0, np.int64)
        for place, s in enumerate(order[np.argsort(-gains[order], kind="stable")].tolist()):
            v = int(self.variable_of[s])
            flipped = np.array(codes)
            flipped[v] = s - offsets[v]
            if place < self.k:
                self._offer(flipped)
            if clock.left > 0:
                self._offer(self._settle(flipped, v))

    def _gains(self, codes: IntArray) -> Array:
        """(S,): by how much a flip to each other state raises the log-weight."""
        gains, compile = np.empty(len(self.base)), self.landscape.setting.goes_on()
        kernel_of(make_differences, compile=compile)(self.factors, self.landscape.axes, self.base, codes, gains)
        gains[~self.allowed] = -np.inf
        gains[self.landscape.graph.state_offsets[:-1] + codes] = -np.inf
        return gains

    def _settle(self, codes: IntArray, v: int) -> IntArray:
        """After exact moves of strips of everything but v, which stays."""
        low, high = self.landscape.graph.state_offsets[v : v + 2]
        allowed, pinned = self.blocks.allowed[self.row], self.allowed.copy()
        pinned[low:high] = False
        pinned[low + codes[v]] = True
        self.blocks.allowed[self.row] = pinned
        for _ in range(MOVES):
            codes, whole = self.blocks.strips(self.row, codes, int(self.rng.integers(2**62)), BITS)
            if whole:
                break
        self.blocks.allowed[self.row] = allowed
        return codes
