"""Propagation on a graph of bounded cliques: between belief propagation and the junction tree.

Each row of evidence, or each instance of a union, is a chain of clique forests (`besag.infer.join_graph.stages`), whose
cliques have at most 2^bits entries. A step answers with one bound; the next one has a larger bound, until one forest
holds everything and the answer is exact, or until the largest bound that memory and time allow. After that a step is
one more pass forward and back over the same forests.

How far the bound goes: to `clique_bound` if that is given; without it, and without a time limit, to 2^16 entries; with
a time limit, as long as the next bound is expected to finish in time, judging by the time of the last one. A bound that
does not finish in time is given up, and the answer of the previous one stands.

What does not fit is refused before it is begun: memory must hold variables and factors, and for each part two chains,
the one that answers and the next, whose forests and messages are counted before they are allocated. A chain that runs
out of memory is given up like one that runs out of time; the first is tried again with smaller cliques. There is no
answer before the first chain is complete: TooLargeError if the time cannot suffice for it.

On several threads the parts of a batch or a union go side by side. If there is one part, and the bound after the first
is known because there is no time limit, its chain is begun beside the first one (`besag.infer.join_graph.ahead`).

    residual      the largest change of a marginal since the last step
    diagnostics   clique_bound, the most entries that a clique could have; forests, in the longest chain; lost, the sum
                  over a chain of KL(forest | smaller forest) in nats; change, the largest of any marginal in the last
                  pass, infinite if there was only one; log_partition_error, how much log Z changed with the last bound
                  (with one bound: between its first pass and its last), an estimate of the error, not a bound on it.
                  lost and log_partition_error are the largest of all rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, Kind
from besag.errors import TooLargeError
from besag.graph.problem import Problem
from besag.infer.answers import make_marginals, with_factors
from besag.infer.engine import ENGINES, Capabilities, OnStep, Want, check_dtype, check_wants
from besag.infer.iterate import SHOWN, Limits, each_step, iterate, warm_state
from besag.infer.join_graph.parts import FreePart
from besag.infer.join_graph.stages import OutOfRoomError, OutOfTimeError
from besag.infer.memory import SMALL
from besag.infer.prepared import Prepared
from besag.infer.result import Result, factor_offsets
from besag.infer.unfolding import unfolding
from besag.kernels.compile import worth_compiling
from besag.kernels.threads import available_threads, run_chunks

FIRST_BITS = 14.0  # a smaller bound takes as long, since its chain has more forests
UNTIMED_BITS = 16.0
STEP_BITS = 4  # the most by which a bound grows
WORK = 1000  # least work of a factor, in table entries
TABLES_AT_ONCE = 64  # tables of the largest size that memory must hold
LINK_BYTES = 250  # per variable of a factor, besides table entries
CHAINS = 2  # of each part that memory must hold: the one that answers, and the next
FEWER_BITS = 2.0  # by which the first bound is lowered if it did not fit
SECONDS_A_LINK, SECONDS_AN_ENTRY = 2.5e-5, 2e-7  # time of the quickest first answer
GRACE = 0.5  # seconds by which a first answer may be expected to exceed the time limit
LATE = 10  # times the limit and GRACE after which a first answer is no longer waited for
GROWTH = 1.8  # of the time with each bit
HURRY = 0.5  # a first answer is hurried once less than this share of the time limit is left
SHARE = 0.8  # of the remaining time, for the next bound: passes after the first need time too


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Chains of clique forests with at most `clique_bound` entries in a clique, or as many as time and memory allow.

    dtype: of the messages between forests, which are all kept; each forest is calibrated in float64.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "trace"}), "estimate"
    )
    clique_bound: int | None = None
    max_iterations: int = 50
    tolerance: float = 1e-6
    dtype: str = "float64"
    n_threads: int | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        ENGINES.check_counts(self, "clique_bound", least=2)
        Limits(self.max_iterations, self.tolerance)
        check_dtype(self.dtype)

    @unfolding
    def infer(
        self,
        problem: Problem,
        want: frozenset[Want],
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """Compute the answers, with one bound after the other."""
        began = time.perf_counter()
        check_wants(self, want)
        limits = Limits(self.max_iterations, self.tolerance, time_limit)
        return iterate("join_graph", Propagation(self, problem, warm, time_limit, began), want, limits, began, on_step)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each bound."""
        began = time.perf_counter()
        limits = Limits(self.max_iterations, self.tolerance, time_limit)
        return each_step("join_graph", Propagation(self, problem, warm, time_limit, began), SHOWN, limits, began)


def sizes(problem: Problem) -> tuple[int, int]:
    """The number of factor-variable links, and of table entries of all factors; both for all rows."""
    graph, n_rows = problem.graph, problem.evidence.n_rows
    entries = sum(len(block.scopes) * math.prod(block.template.shape) for block in graph.blocks)
    return n_rows * len(graph.scope_variables), n_rows * entries


def first_seconds(problem: Problem) -> float:
    """About the least time of a first answer, in seconds."""
    n_links, n_entries = sizes(problem)
    return SECONDS_A_LINK * n_links + SECONDS_AN_ENTRY * n_entries


class Propagation:
    """The Process: all rows or instances, and the bound that they have reached."""

    def __init__(
        self,
        engine: JoinGraph,
        problem: Problem,
        warm: Result | None,
        time_limit: float | None,
        began: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.setting = setting = Prepared(problem, frozenset({int(Kind.TABLE)}), engine.memory_limit)
        self.clock, self.began, self.time_limit = clock, began, time_limit
        self._refuse()
        room = max(setting.limit, SMALL) - self._base_bytes()
        state = warm_state("join_graph", warm, {})
        self.bits = 0.0  # of the last bound, 0 before the first
        self.most_bits = math.log2(max(setting.limit / (8 * TABLES_AT_ONCE), 2.0))
        if engine.clique_bound is not None:
            self.most_bits = min(self.most_bits, math.log2(engine.clique_bound))
        elif time_limit is None:
            self.most_bits = min(self.most_bits, UNTIMED_BITS)
        self.first_bits = min(FIRST_BITS if state is None else float(state["bits"]), self.most_bits)
        self.n_threads = available_threads() if engine.n_threads is None else engine.n_threads
        try:
            self.parts = self._parts(engine.dtype, room / (CHAINS * max(setting.n_rows, setting.graph.n_instances)))
        except OutOfTimeError:
            raise self._too_slow() from None
        self.looks_ahead = len(self.parts) == 1 and self.n_threads > 1 and engine.max_iterations > 1

    def _refuse(self) -> None:
        """TooLargeError, before anything is done, if the memory or the time cannot suffice for any answer."""
        needed = 8 * self.setting.n_rows * len(self.setting.problem.log_potentials)
        if needed > self.setting.limit:
            raise TooLargeError(
                f"join_graph: the tables of the factors alone would take {needed} bytes, more than "
                f"memory_limit={self.setting.limit}"
            )
        base = self._base_bytes()
        if base > max(self.setting.limit, SMALL):
            raise TooLargeError(
                f"join_graph: variables and factors alone would take about {base:.3g} bytes, more than "
                f"memory_limit={self.setting.limit}; bp and mean_field take less"
            )
        if self.time_limit is not None and self.first_seconds > self.time_limit + GRACE:
            raise self._too_slow()

    def _base_bytes(self) -> float:
        """What all parts take before they have a chain."""
        n_links, n_entries = sizes(self.setting.given)
        return LINK_BYTES * n_links + 8.0 * n_entries

    @property
    def first_seconds(self) -> float:
        """The least time of a first answer."""
        return first_seconds(self.setting.given)

    def _too_slow(self) -> TooLargeError:
        seconds = max(self.first_seconds, self.clock() - self.began)
        return TooLargeError(
            f"join_graph has no answer before all forests are made, which takes about {seconds:.2g} s or more, and "
            f"time_limit={self.time_limit}; give it more time, or ask bp",
            seconds=seconds,
        )

    def _check_first(self) -> None:
        """OutOfTimeError long after the limit only: compiling kernels may have taken all of the time."""
        if self.time_limit is not None and self.clock() - self.began > LATE * (self.time_limit + GRACE):
            raise OutOfTimeError

    def _parts(self, dtype: str, room: float) -> list[FreePart | None]:
        """The parts, None for those without a possible labelling; room: bytes for a chain of each."""
        setting, graph = self.setting, self.setting.graph
        larger = np.diff(graph.scope_offsets) > 1
        compile = setting.compile or worth_compiling(float(WORK * setting.n_rows * np.count_nonzero(larger)))
        if graph.n_instances == 1:
            factors, variables = np.flatnonzero(larger), range(graph.n_variables)
            where = [(row, variables, factors) for row in range(setting.n_rows)]
        else:
            bounds, of_factor = graph.instance_offsets.tolist(), graph.factor_instances
            where = [
                (0, range(low, high), np.flatnonzero(larger & (of_factor == i)))
                for i, (low, high) in enumerate(pairwise(bounds))
            ]
        n_threads = max(self.n_threads // len(where), 1)
        possible = setting.possible.tolist()
        limits: dict[str, Any] = {"dtype": dtype, "room": room, "check": self._check_first}
        return [
            FreePart(setting, row, variables, factors, self.clock, compile=compile, n_threads=n_threads, **limits)
            if able
            else None
            for able, (row, variables, factors) in zip(possible, where, strict=True)
        ]

    @property
    def working(self) -> list[FreePart]:
        """The parts that are not exact yet."""
        return [part for part in self.parts if part is not None and not part.exact]

    def step(self) -> float:
        """Answer with a larger bound, or make another pass if there is none."""
        bits = self._next_bits()
        if bits is None:
            return self._side_by_side(self.working, FreePart.sweep)
        first = self.bits == 0.0
        parts = [part for part in self.parts if part is not None] if first else self.working
        try:
            change = self._side_by_side(parts, lambda part: part.improve(bits, self._check, lambda: self._hurry(part)))
        except (OutOfTimeError, OutOfRoomError) as error:
            self.most_bits = self.bits
            if first:
                return self._begin_smaller(bits, error)
            return max(part.change for part in self.working)
        self.bits = bits
        return math.inf if first and self.working else 0.0 if first else change

    def _begin_smaller(self, bits: float, error: Exception) -> float:
        """Find a first bound that fits, after one that did not; TooLargeError if there is none, or no time for it."""
        if isinstance(error, OutOfTimeError):
            raise self._too_slow()
        if bits <= 1.0:
            raise TooLargeError(
                f"join_graph: the smallest forests do not fit into memory_limit={self.setting.limit}; bp takes less"
            )
        self.first_bits = self.most_bits = max(bits - FEWER_BITS, 1.0)
        return self.step()

    def _side_by_side(self, parts: Sequence[FreePart], function: Callable[[FreePart], float]) -> float:
        """The largest value of a function over parts; in one thread if cliques are small, for then the GIL is held."""
        n_threads = self.n_threads if max(self.bits, self.first_bits) >= FIRST_BITS else 1
        found = np.zeros(len(parts))

        def call(i: int) -> None:
            found[i] = function(parts[i])

        run_chunks(call, len(parts), n_threads)
        return float(found.max(initial=0.0))

    def _check(self) -> None:
        if self._left() <= 0:
            raise OutOfTimeError

    def _hurry(self, part: FreePart) -> bool:
        """Whether to hurry; asked only if the bound is too small for an exact answer, so that a larger one follows."""
        if self.time_limit is not None:
            return self.bits == 0.0 and self._left() < HURRY * self.time_limit
        if self.looks_ahead and self.bits == 0.0 and self.first_bits < self.most_bits:
            part.look_ahead(self._larger(self.first_bits, part.least_bits))
        return False

    def _hurry_up(self) -> None:
        """Get the quickest answer there is; KeyboardInterrupt if not even that is quick."""
        if self.first_seconds > GRACE:
            raise KeyboardInterrupt
        self.first_bits, self.time_limit, self.began = 2.0, 0.0, self.clock()
        try:
            self.step()
        except TooLargeError as error:
            raise KeyboardInterrupt from error

    def _left(self) -> float:
        """Seconds left."""
        return math.inf if self.time_limit is None else self.time_limit - (self.clock() - self.began)

    def _next_bits(self) -> float | None:
        """The next bound; None if there is to be none."""
        if self.bits == 0.0:
            return self.first_bits
        if self.bits >= self.most_bits or not self.working:
            return None
        least = max(part.least_bits for part in self.working)
        if self.time_limit is None:
            return self._larger(self.bits, least)
        took = sum(part.seconds for part in self.working) / min(self.n_threads, len(self.working))
        more = math.floor(math.log(max(SHARE * self._left() / max(took, 1e-9), 1.0), GROWTH))
        return min(self._larger(self.bits, least), self.bits + more) if more >= least else None

    def _larger(self, bits: float, least: int) -> float:
        """The bound after this one, if time does not decide."""
        return min(bits + max(STEP_BITS, least), self.most_bits)

    def answer(self, want: frozenset[Want]) -> Result:
        """The Result of the last bound."""
        if self.bits == 0.0:  # interrupted before there was any answer: the quickest there is
            self._hurry_up()
        setting = self.setting
        log_z = np.array([-math.inf if part is None else part.log_partition for part in self.parts])
        empty = setting.empty("estimate" if self.working else "exact")
        result = replace(empty, log_partitions=log_z, state={"engine": "join_graph", "bits": self.bits})
        if want & {"variables", "factors", "moments"}:
            p = self._probabilities()
            result = replace(result, probabilities=p if "variables" in want else None)
            if want & {"factors", "moments"}:
                result = self._with_factors(result, p, want)
        return setting.empty_impossible(result)

    def _probabilities(self) -> Array:
        """(R, S)."""
        found = np.zeros(self.setting.base.shape)
        for row, part in enumerate(self.parts):
            if part is not None:
                at = slice(part.first_state, part.first_state + part.n_states)
                found[row if self.setting.graph.n_instances == 1 else 0, at] = part.probabilities
        return found

    def _with_factors(self, result: Result, p: Array, want: frozenset[Want]) -> Result:
        """Factor marginals and moments, each where it is wanted."""
        setting, problem, union = self.setting, self.setting.problem, self.setting.graph.n_instances > 1
        offsets, moments = factor_offsets(setting.graph), np.zeros(len(problem.log_potentials))
        by_row, by_factor = problem.row_weights, problem.factor_weights
        marginals = make_marginals(setting) if "factors" in want else None
        for i, part in enumerate(self.parts):
            row = 0 if union else i
            for f, table in part.factor_marginals() if part is not None else ():
                start = int(problem.table_offsets[problem.table_of_factor[f]])
                moments[start : start + len(table)] += by_row[row] * by_factor[f] * table
                if marginals is not None:
                    marginals[row, offsets[f] : offsets[f + 1]] = table
        return with_factors(setting, result, p, marginals, moments if "moments" in want else None)

    def details(self) -> Mapping[str, Any]:
        """The diagnostics, see the module's docstring."""
        parts = [part for part in self.parts if part is not None]
        chains = [part.chain for part in parts if part.chain is not None]
        return {
            "clique_bound": int(max([2.0**self.bits, *(2.0**chain.bits for chain in chains)])),
            "forests": max((len(chain.stages) for chain in chains), default=0),
            "lost": max((chain.lost for chain in chains), default=0.0),
            "change": max((part.change for part in self.working), default=0.0),
            "log_partition_error": max((0.0 if part.exact else part.log_spread for part in parts), default=0.0),
        }
