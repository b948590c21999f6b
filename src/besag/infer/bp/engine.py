"""Loopy belief propagation, 000 (6.36)-(6.40), 001, 002 (34)-(37), (42)-(44): message passing on any graph.

    q_{v->f}(y_v) = prod_{f' != f} m_{f'->v}(y_v)
    m_{f->v}(y_v) = sum over y_{S_f minus v} of exp(-h_f(y_{S_f})) prod_{u != v} q_{u->f}(y_u)

Messages start as constants and are sent again and again until they no longer change. On a forest the answer is exact;
with cycles it is an estimate: a fixed point is a stationary point of the Bethe free energy, and log Z is read off there
(`besag.infer.bp.kernels.beliefs`). With (min, +) in place of (+, x) the messages speak for a labelling of low energy.

Schedules: synchronous (all messages at once), sequential (variables in turn), residual (the message that would change
most goes first). `damping` is the weight that an old message keeps, except on a forest, which needs none. What is left
after the last step tells how the iteration went: `oscillates` in diagnostics says that messages move back and forth,
which damping cures.

No message of a forest can favour a state by more than the ranges of all tables together allow; on graphs with cycles
and hard zeros messages may grow beyond that, by a factor in every step, and where they contradict each other the
answer is nonsense. Adaptive damping begins anew with more damping where that happens; else `diverges` in diagnostics
says so, and such messages do not count as converged though they may have reached the end of their numbers.

Messages are weights as long as their type can hold them, else logarithms. Where those to one variable contradict each
other, what one of them leaves to its best state, h, may be small or nothing, and changes as small as h still matter: a
row of weights has converged when its changes are small beside h too, and goes on in logarithms where h is nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, Kind, Semiring, dot, freeze, norm
from besag.errors import CapabilityError, EvidenceError, TooLargeError
from besag.graph.problem import Problem
from besag.infer.answers import make_marginals, with_factors
from besag.infer.bp.kernels.links import MessageLinks, links_of
from besag.infer.bp.log import PassedMessages
from besag.infer.bp.passing import Domain, Passing
from besag.infer.bp.start import read_messages
from besag.infer.engine import ENGINES, SHOWS, Capabilities, OnStep, Want, check_wants
from besag.infer.iterate import Clock, Limits, each_step, iterate, no_look, warm_state
from besag.infer.memory import count_linked, message_entries, refuse
from besag.infer.prepared import Prepared
from besag.infer.result import Result, factor_offsets
from besag.infer.trees.engine import forest_of
from besag.infer.unfolding import unfolding
from besag.infer.zeros.starts import draw_starts
from besag.kernels.threads import run_chunks
from besag.model.structured.kernels.rules import KINDS
from besag.registry import is_number
from besag.views import count_up

SCHEDULES = ("synchronous", "sequential", "residual")
ORDERS = ("fixed", "random")
FINEST = {"float32": 1e-6, "float64": 1e-13}  # changes that rounding alone makes
PATIENCE = 20  # iterations without a smaller residual, after which adaptive damping grows
MOST_DAMPING = 0.95
ROWS_A_LOOK = 64  # rows that are begun between two looks at the clock
LARGE = 1e3  # changes of log messages below which there is no need to look whether they diverge
TABLE_STATES = 4  # of every variable, up to which the kernels for tables send ten times as fast as those for levels
SLACK = 1e-3  # what a message leaves to the best state of its variable, below which changes are measured beside that
SUMS: frozenset[Want] = frozenset({"log_partition", "variables", "factors", "moments", "messages", "trace"})


@dataclass(frozen=True, slots=True)
class BP:
    """Loopy belief propagation.

    schedule: "synchronous", "sequential" or "residual". order: of the variables in the sequential schedule, "fixed" or
    "random". damping: from 0 to below 1, or "adaptive", which begins at 0 and grows where messages do not settle.
    dtype: "float64" or "float32". keep_messages: of every iteration; trace="messages" sets it.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(SUMS | {"map"}, "estimate", starts_from="messages")
    schedule: str = "synchronous"
    damping: float | str = 0.0
    order: str = "fixed"
    max_iterations: int = 1000
    tolerance: float = 1e-8
    dtype: str = "float64"
    n_threads: int | None = None
    memory_limit: int | None = None
    k: int = 1
    keep_messages: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.keep_messages, bool):
            raise CapabilityError(f"bp: keep_messages must be true or false, got {self.keep_messages!r}")
        for option, allowed in (("schedule", SCHEDULES), ("order", ORDERS), ("dtype", tuple(FINEST))):
            ENGINES.check_choice(self, option, allowed)
        if self.damping != "adaptive" and not (isinstance(self.damping, (int, float)) and 0 <= self.damping < 1):
            raise CapabilityError(f"bp: damping must be from 0 to below 1, or 'adaptive', got {self.damping!r}")
        self.limits(None)

    def limits(self, time_limit: float | None) -> Limits:
        """When to stop; changes as small as rounding makes them count as none."""
        asked = self.tolerance
        tolerance = max(asked, FINEST[self.dtype]) if is_number(asked) and asked > 0 else asked
        return Limits(self.max_iterations, tolerance, time_limit)

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
        """Answers by message passing until nothing changes."""
        began = time.perf_counter()
        check_wants(self, want)
        if self.k != 1 and "map" in want:
            raise CapabilityError(f"engine 'bp' gives one labelling, not the {self.k} best; junction_tree does")
        limits, setting = self.limits(time_limit), Prepared(problem, _kept_kinds(problem), self.memory_limit)
        clock = Clock(time_limit, began)
        if "map" in want and want & SUMS <= SHOWS:
            process = MessagePassing(self, setting, Semiring.MAX, rng, warm, clock)
            return iterate("bp", process, want, limits, began, on_step)
        process = MessagePassing(self, setting, Semiring.SUM, rng, warm, clock)
        answer = iterate("bp", process, want & SUMS, limits, began, on_step)
        if "map" in want:
            process = MessagePassing(replace(self, keep_messages=False), setting, Semiring.MAX, rng, None, clock)
            best = iterate("bp", process, frozenset({"map"}), limits, began)
            answer = _with_map(answer, best)
        return answer

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each iteration, with marginals, log Z and, for one row of evidence, messages."""
        began, want = time.perf_counter(), SUMS - {"factors", "moments"}
        setting, clock = Prepared(problem, _kept_kinds(problem), self.memory_limit), Clock(time_limit, began)
        process = MessagePassing(self, setting, Semiring.SUM, rng, warm, clock)
        shown = want - {"messages"} if problem.evidence.batched else want
        yield from each_step("bp", process, shown, self.limits(time_limit), began)


def _kept_kinds(problem: Problem) -> frozenset[int]:
    """The structured factors that stay what they are: none where variables have few states, whose tables are faster."""
    n_states = problem.graph.variables.common_cardinality or math.inf
    return frozenset({int(Kind.TABLE)}) if n_states <= TABLE_STATES else KINDS


def _with_map(answer: Result, best: Result) -> Result:
    """Sums and the best labelling in one Result."""
    converged = answer.diagnostics["converged"] and best.diagnostics["converged"]
    told = answer.diagnostics.extend(converged=converged, seconds=best.diagnostics["seconds"])
    return replace(answer, codes=best.codes, energies=best.energies, energy_bounds=best.energy_bounds, diagnostics=told)


class MessagePassing:
    """Messages of every row, until the row has converged."""

    def __init__(
        self,
        engine: BP,
        setting: Prepared,
        semiring: Semiring,
        rng: np.random.Generator | None,
        warm: Result | None,
        clock: Clock,
    ) -> None:
        self.engine, self.setting, self.semiring, self.clock = engine, setting, semiring, clock
        self.rng = np.random.default_rng(0) if rng is None else rng
        graph = setting.graph
        self.dtype = np.dtype(setting.number_type(engine.dtype))
        self._refuse()
        self.links: MessageLinks = graph.plans.get(
            "bp links", lambda: links_of(setting.factors, compile=setting.compile)
        )
        self.damping = self._first_damping()
        self.least, self.waited, self.diverges, self.finished, self.updates = math.inf, 0, False, False, 0
        self.iterations, self.order = 0, count_up(graph.n_variables)
        self.tolerance = engine.limits(None).tolerance or 0.0
        self.kept: list[AnyArray] = []
        self.start = self._start(warm)
        self._begin_all()

    def _first_damping(self) -> float:
        """None on a forest, whose messages settle by themselves: damped, small ones change little long before that."""
        asked = self.engine.damping
        if isinstance(asked, str) or (asked > 0 and forest_of(self.setting.graph) is not None):
            return 0.0
        return float(asked)

    def _refuse(self) -> None:
        """TooLargeError where links, tables, messages with their copies, and the answer would not fit."""
        graph, rows = self.setting.graph, self.setting.n_rows
        links, copies = count_linked(graph), 5 if self.engine.schedule == "residual" else 4
        copies += int(np.diff(graph.scope_offsets).max(initial=0) > 2)
        of_row = self.dtype.itemsize * copies * message_entries(graph) + 8 * (
            4 * int(graph.state_offsets[-1]) + graph.n_factors + graph.n_variables
        )
        needed = rows * of_row + 8 * (4 * links + graph.n_factors) + self.dtype.itemsize * len(self._tables())
        if self.engine.schedule == "residual":
            needed += 24 * rows * links
        smaller = "engine='bp[dtype=float32]' takes about half" if self.dtype.itemsize == 8 else "use more memory"
        advice = "ask for fewer rows at a time" if rows > 1 else smaller
        least = self.dtype.itemsize * (3 * rows * message_entries(graph) + len(self._tables()))
        refuse("bp: messages and tables", needed, self.setting.limit, advice, least=least)
        if self.keeps:
            needed = self.dtype.itemsize * self.engine.max_iterations * message_entries(graph)
            advice = "ask for fewer, as in bp[max_iterations=20], or for the last ones, trace=True"
            refuse("bp: the messages of every iteration", needed, self.setting.limit, advice, least=needed)

    @property
    def keeps(self) -> bool:
        """Whether the messages of every iteration are kept; those of a batch are not shown."""
        return self.engine.keep_messages and not self.setting.given.evidence.batched

    def _tables(self) -> Array:
        return self.setting.problem.log_potentials

    def _is_alive(self) -> Any:
        """(R,): rows that have a labelling; a union is one row."""
        possible = self.setting.possible
        return possible if self.setting.graph.n_instances == 1 else np.array([possible.any()])

    def _domain(self, semiring: Semiring) -> Domain:
        factors, compile = self.setting.factors, self.setting.compile
        make = lambda: Domain(factors, self.links, semiring, self.dtype, compile)  # noqa: E731
        return self.setting.graph.plans.get_for(("bp", semiring, self.dtype.name), self._tables(), make)

    def _begin_all(self) -> None:
        """Constant messages in every row; TooLargeError where the rows so far say that these alone take too long."""
        self.passing, n_rows, first = [self._begin(0, self.semiring)], self.setting.n_rows, self.clock.left
        for row in range(1, n_rows):
            self.passing.append(self._begin(row, self.semiring))
            if row % ROWS_A_LOOK == 0 and (first - self.clock.left) / row * (n_rows - row) > self.clock.left:
                raise TooLargeError(
                    f"bp: {n_rows} rows of evidence take longer than time_limit leaves; give it more time or fewer rows"
                )
        self.residuals = np.where(self._is_alive(), math.inf, 0.0)
        self.shares = np.ones(self.setting.n_rows)  # of the tolerance, as changes matter beside what messages leave

    def _begin(self, row: int, semiring: Semiring) -> Passing:
        threads = self.engine.n_threads if self.setting.n_rows == 1 else 1
        passing = Passing(self._domain(semiring), self.setting.base[row], threads, self.clock.look)
        if passing.narrow and semiring == Semiring.SUM:
            return self._begin(row, Semiring.LOG_SUM)
        if self.start is not None and not passing.begin_at(self.start[row]):
            return self._begin(row, Semiring.LOG_SUM)
        return passing

    def _start(self, warm: Any) -> AnyArray | None:
        """(R, M): the logarithms of the messages to begin with; None for constant ones."""
        if warm is None:
            return None
        if not isinstance(warm, Result):
            return read_messages(warm, self.setting, self.links, self.semiring)
        state = warm_state("bp", warm, {"messages": (self.setting.n_rows, int(self.links.message_offsets[-1]))})
        return None if state is None else state["messages"]

    def step(self) -> float:
        """One iteration of every row that has not converged."""
        if self.engine.order == "random" and self.engine.schedule == "sequential":
            self.order = freeze(self.rng.permutation(self.setting.graph.n_variables))
        elif self.engine.schedule == "sequential" and self.iterations:
            self.order = freeze(self.order[::-1])
        waiting = np.flatnonzero(self.residuals > (self.tolerance if self.tolerance else -1.0))
        if self.iterations and not self.setting.compile and self.setting.goes_on():
            for passing in self.passing:
                passing.domain.compile = True
        threads = 1 if self.setting.n_rows == 1 else self.engine.n_threads
        run_chunks(lambda i: self._advance(int(waiting[i])), len(waiting), threads)
        self.iterations += 1
        worst = float(self.residuals.max(initial=0.0))
        self._adapt(worst)
        if self.keeps:
            self.kept.append(self.passing[0].log_messages())
        self.finished = self.diverges and worst <= self.tolerance
        return math.inf if self.finished else worst

    def _advance(self, row: int) -> None:
        passing, tolerance = self.passing[row], self.tolerance * self.shares[row]
        change = self._send(passing, tolerance)
        if passing.narrow and passing.domain.semiring == Semiring.SUM:
            self.passing[row] = passing = self._begin(row, Semiring.LOG_SUM)
            change = self._send(passing, tolerance)
        if 0.0 < self.tolerance >= change and passing.domain.semiring == Semiring.SUM:
            change = self._measured(row, change)
        self.residuals[row] = change

    def _measured(self, row: int, change: float) -> float:
        """The change of a row of weights beside what its messages leave; inf where it goes on in logarithms."""
        left = self.passing[row].least_left()
        if left * self.tolerance < SLACK * FINEST[self.dtype.name]:
            self._to_logarithms(row)
            return math.inf
        self.shares[row] = min(1.0, left / SLACK)
        return float(change / self.shares[row])

    def _to_logarithms(self, row: int) -> None:
        """The messages of a row as logarithms; what was too small for a weight is as small as a weight can be."""
        held, self.shares[row] = self.passing[row], 1.0
        self.updates += held.updates
        self.passing[row] = passing = self._begin(row, Semiring.LOG_SUM)
        passing.messages[:] = np.maximum(held.log_messages(), math.log(np.finfo(self.dtype).smallest_subnormal))

    def _send(self, passing: Passing, tolerance: float) -> float:
        if self.engine.schedule == "synchronous":
            return passing.synchronous(self.damping)
        if self.engine.schedule == "sequential":
            return passing.sequential(self.order, self.damping)
        return passing.residual(tolerance, self.damping)

    def _adapt(self, worst: float) -> None:
        """More damping where the residual has not become smaller for a while, from the start where messages diverge."""
        if worst < 0.9 * self.least:
            self.least, self.waited = worst, 0
        else:
            self.waited += 1
        reached = max(worst, self._widest()) if self.diverges else worst
        self.diverges = LARGE < reached < math.inf and reached > self._reach()
        if self.engine.damping == "adaptive" and (self.waited >= PATIENCE or self.diverges):
            anew = self.diverges and self.damping < MOST_DAMPING
            self.damping = min(MOST_DAMPING, 1 - (1 - self.damping) / 2)
            self.least, self.waited = worst, 0
            if anew:
                self.updates += sum(passing.updates for passing in self.passing)
                self.start = None
                self._begin_all()
                self.least = math.inf

    def _widest(self) -> float:
        """The most by which a log message favours a state."""
        logs = (p.messages for p in self.passing if p.domain.semiring != Semiring.SUM)
        return max((-float(m.min(initial=0.0, where=m > -math.inf)) for m in logs), default=0.0)

    def _reach(self) -> float:
        """More than any log message of a forest of these tables could favour a state by."""
        total = float(np.log(self.setting.graph.variables.cardinalities).sum())
        for values, count in (
            (self.setting.factors.log_potentials, self.setting.graph.n_factors),
            (self.setting.base, len(self.links.variables)),
        ):
            finite = values[np.isfinite(values)]
            total += count * float(np.ptp(finite)) if len(finite) else 0.0
        return total

    def answer(self, want: frozenset[Want]) -> Result:
        """What the messages say now."""
        result = self.setting.empty(self._bound())
        if "map" in want:
            result = self._labelling(result)
        if want & {"log_partition", "variables", "factors", "moments"} and self.semiring == Semiring.SUM:
            result = self._sums(result, want)
        if "messages" in want:
            result = replace(result, message_log=self._messages())
        return replace(result, state={"engine": "bp", "messages": self._log_messages()})

    def _bound(self) -> str:
        """On a forest, messages that no longer change are exact."""
        settled = self.residuals.max(initial=0.0) <= 1e-10 and self.dtype == np.float64
        return "exact" if settled and forest_of(self.setting.graph) is not None else "estimate"

    def _log_messages(self) -> Array:
        rows = [passing.log_messages() for passing in self.passing]
        return rows[0][None] if len(rows) == 1 else np.array(rows)

    def _sums(self, result: Result, want: frozenset[Want]) -> Result:
        setting, graph, linked = self.setting, self.setting.graph, self.links.factors
        n_rows = setting.n_rows
        of_variables, of_factors = np.zeros((n_rows, graph.n_variables)), np.zeros((n_rows, graph.n_factors))
        probabilities = np.zeros(setting.base.shape)
        marginals = make_marginals(setting) if "factors" in want else None
        moments = np.zeros(len(self._tables())) if "moments" in want else None
        nothing, places = np.zeros(0), factor_offsets(graph)[linked]
        slots = freeze(setting.factors.table_offsets[setting.factors.table_of_factor[linked]])
        ones = self._counted()
        for row in np.flatnonzero(self._is_alive()).tolist():
            self.passing[row].of_variables(probabilities[row], of_variables[row])
            if self.passing[row].domain.semiring == Semiring.SUM and of_variables[row].min(initial=0.0) == -math.inf:
                self._to_logarithms(row)
                self.passing[row].of_variables(probabilities[row], of_variables[row])
            passing = self.passing[row]
            if marginals is not None or "log_partition" in want:
                out, starts = (nothing, linked) if marginals is None else (marginals[row], places)
                of_factors[row, linked] = passing.of_factors(out, freeze(starts), ones, stored=True)
            if moments is not None:
                passing.of_factors(moments, slots, self._weights(row), stored=False)
        if "log_partition" in want:
            result = replace(result, log_partitions=setting.totals(of_variables, of_factors))
        result = setting.empty_impossible(replace(result, probabilities=probabilities))
        assert result.probabilities is not None
        result = with_factors(setting, result, result.probabilities, marginals, moments)
        return result if "variables" in want else replace(result, probabilities=None)

    def _counted(self) -> Array:
        """(G,): 1 for each linked factor, 0 where its instance has no labelling."""
        graph, linked = self.setting.graph, self.links.factors
        if graph.n_instances == 1:
            return freeze(np.ones(len(linked)))
        return freeze(self.setting.possible[graph.factor_instances[linked]].astype(np.float64))

    def _weights(self, row: int) -> Array:
        """(G,): the weight of each linked factor in a row, none where its instance has no labelling."""
        problem = self.setting.problem
        return freeze(self._counted() * problem.row_weights[row] * problem.factor_weights[self.links.factors])

    def _labelling(self, result: Result) -> Result:
        setting = self.setting
        forest = forest_of(setting.graph)
        order = count_up(setting.graph.n_variables) if forest is None else forest.variables
        codes = np.array([passing.decode(order) for passing in self.passing])
        possible = setting.possible
        energies = np.where(possible, setting.energies(codes), math.inf)
        if (energies[possible] == math.inf).any():
            codes, possible = self._searched(codes, possible & (energies == math.inf))
            energies = np.where(possible, setting.energies(codes), math.inf)
        proven = np.where(possible, -math.inf, math.inf)
        return replace(
            result,
            codes=codes[:, None],
            energies=energies[:, None],
            energy_bounds=energies if result.bound == "exact" else proven,
        )

    def _searched(self, codes: IntArray, without: BoolArray) -> tuple[IntArray, BoolArray]:
        """Labellings in which a search finds one for every row that has none, and which rows may have one."""
        setting = self.setting
        try:
            found, possible = draw_starts(setting, 1, np.random.default_rng(0))
        except CapabilityError:  # the search has found none, and has not proven that there is none
            return codes, setting.possible
        own = setting.graph.n_instances == 1
        wanted = without if own else np.repeat(without, np.diff(setting.graph.instance_offsets))
        return np.where(wanted[:, None] if own else wanted[None], found[:, 0], codes), possible

    def _messages(self) -> PassedMessages:
        if self.setting.given.evidence.batched:
            raise EvidenceError("messages are traced for one row of evidence, a dict")
        setting, passing = self.setting, self.passing[0]
        logs = (*self.kept[:-1], passing.log_messages())  # the last ones may have been taken to logarithms since
        first = min(1, len(self.kept)) if self.keeps else None
        semiring = Semiring.MAX if passing.domain.semiring == Semiring.MAX else Semiring.LOG_SUM
        return PassedMessages(setting.problem, self.links, setting.base[0], semiring, logs, first)

    def details(self) -> Mapping[str, Any]:
        """How messages were sent, and whether they move back and forth."""
        told: dict[str, Any] = {
            "schedule": self.engine.schedule,
            "damping": self.damping,
            "updates": self.updates + sum(passing.updates for passing in self.passing),
            "domain": "linear" if all(p.domain.semiring == Semiring.SUM for p in self.passing) else "log",
        }
        if self.diverges:
            told["diverges"] = True
            other = "" if self.engine.damping == "adaptive" else "bp[damping=adaptive] or "
            told["hint"] = f"log messages grow without end and may contradict each other: try {other}join_graph"
        elif self.waited >= PATIENCE and self.engine.schedule == "synchronous":
            told["oscillates"] = self._oscillates()
            if told["oscillates"]:
                told["hint"] = "messages move back and forth: damping, as in bp[damping=0.5], cures that"
        return told

    def _oscillates(self) -> bool:
        """Whether two more steps of the row that changes most go in opposite directions."""
        row = int(np.argmax(self.residuals))
        passing = self.passing[row]
        kept, updates, look = passing.messages.copy(), passing.updates, passing.look
        passing.look = no_look  # the time may be over
        passing.synchronous(0.0)
        one = passing.messages.copy()
        passing.synchronous(0.0)
        first, second = _difference(one, kept), _difference(passing.messages, one)
        passing.messages[:], passing.updates, passing.look = kept, updates, look
        scale = norm(first) * norm(second)
        return scale > 0 and dot(first, second) < -0.5 * scale


def _difference(one: Array, other: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(one.astype(np.float64) - other, nan=0.0, posinf=0.0, neginf=0.0)
