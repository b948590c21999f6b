"""One problem on a junction tree: its reduction, its plans, and the answers.

A JunctionRun reduces a problem, has an order chosen and index maps laid out, or takes the plan that the Graph keeps for
this set of observed variables and targets, and calls the kernels (`besag.infer.junction.propagate`) slab by slab.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, Kind, Semiring, freeze, offsets_of
from besag.errors import TooLargeError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.answers import Answers
from besag.infer.engine import Want
from besag.infer.junction import propagate
from besag.infer.junction.evidence_rows import GivenRows
from besag.infer.junction.few_states import search_few_states
from besag.infer.junction.k_best import find_k_best
from besag.infer.junction.kernels.lanes import LANES, MOST_LANE_MESSAGES
from besag.infer.junction.numbers import CliqueNumbers, Groups, numbers_of
from besag.infer.junction.outlook import HOPELESS, HOPELESS_REASON, is_hopeless
from besag.infer.junction.plan import PER_ENTRY, CliquePlan, Sketch, make_plan, make_sketch
from besag.infer.junction.relevance import find_relevant
from besag.infer.memory import (
    SMALL,
    bytes_of_rows,
    default_memory_limit,
    refuse,
    refuse_marginals,
    rows_at_once,
    slabs,
)
from besag.infer.purpose import Purpose
from besag.infer.result import Diagnostics, Result, factor_offsets
from besag.kernels.compile import worth_compiling
from besag.kernels.domain import to_linear
from besag.kernels.support import propagate_support

if TYPE_CHECKING:
    from besag.infer.junction.engine import JunctionTree

KINDS = frozenset({int(Kind.TABLE)})
EVERYTHING: frozenset[Want] = frozenset({"factors", "moments", "map", "samples"})  # wants that need every variable
SLAB_ENTRIES = 2**24  # entries of answers that are made at a time
WORK_OF_STATE, WORK_OF_VARIABLE = 6, 3  # temporary numbers of a row: weights of evidence, marginals, codes
LOOSE = 4.0  # rows may go side by side if that takes at most so many times the table entries
KEPT_ENTRIES = 2**20  # up to so many entries of all tables, their numbers in a domain are kept between questions
SECONDS_AN_ENTRY = 6e-9  # time per table entry of all marginals on one thread, see besag.query.cost
LONG_SEARCH = 10**5  # entries of scopes above which the search for an order may take longer than a limit leaves
SUPPORT_ABOVE = 2e5  # table entries above which evidence may rule out states before an order is chosen


def variable_groups(graph: Graph) -> Groups:
    """The instances of a union."""
    return Groups(freeze(np.repeat(np.arange(graph.n_instances), np.diff(graph.instance_offsets))), graph.n_instances)


class JunctionRun:
    """One problem, and the plans that it needs."""

    def __init__(
        self, engine: JunctionTree, problem: Problem, *, dense: bool = True, time_limit: float | None = None
    ) -> None:
        """Prepare a run; dense=False is for `drawn` only: structured factors stay so, and nothing large is made."""
        self.given, self.n_threads, self.time_limit = problem, engine.n_threads, time_limit
        self.memory_limit, self.only_drawn = engine.memory_limit, not dense
        ready = not dense or (problem.kinds == Kind.TABLE).all()
        self.problem = problem if ready else problem.expanded(KINDS, self.limit)
        self.graph = problem.graph
        self.factors = self.problem.factors
        self.targets = engine.targets
        self.told: dict[str, object] = {}
        observed = problem.evidence.observed >= 0
        self.fixed: BoolArray = np.asarray(observed.all(axis=0))
        self.soft: BoolArray = np.asarray(observed.any(axis=0) & ~self.fixed)
        if problem.evidence.log_weights is not None:
            weighted = (problem.evidence.log_weights != 0).any(axis=0)
            self.soft |= np.logical_or.reduceat(weighted, self.graph.state_offsets[:-1]) & ~self.fixed

    def result(self, engine: str, began: float, **answers: Any) -> Result:
        """A Result with these answers, exact, and with diagnostics."""
        evidence = self.given.evidence
        told = Diagnostics(
            engine=engine,
            converged=True,
            iterations=1,
            seconds=time.perf_counter() - began,
            rows=evidence.n_rows,
            **self.told,
        )
        return Result(self.graph, "exact", told, evidence.batched, evidence.index, **answers)

    @property
    def limit(self) -> int:
        """Bytes that may be taken; the system is asked only if it matters."""
        return default_memory_limit() if self.memory_limit is None else self.memory_limit

    def exceeds(self, n_bytes: float) -> bool:
        return n_bytes > (SMALL if self.memory_limit is None else 0) and n_bytes > self.limit

    def setting(self, read: BoolArray, used: BoolArray, cells: bool) -> Purpose:
        """The Purpose of reading these variables, with these factors in use."""
        allowed = freeze(self._without_children(self._support(), used))
        keep = freeze(np.zeros(self.graph.n_variables, np.bool_))
        return Purpose(freeze(used), freeze(self.fixed), allowed, freeze(self.soft), freeze(read), keep, cells)

    def _without_children(self, allowed: BoolArray, used: BoolArray) -> BoolArray:
        """(S,): allowed, with one state only of each child whose factor is left out: its states must not count.

        The one kept is arbitrary and must not constrain other variables, so support has to be found before this. A
        child with evidence is in a separated part, and keeps the states that its evidence allows.
        """
        if used.all() or self.problem.children is None:
            return allowed
        children = self.problem.children[~used]
        of_child = np.zeros(self.graph.n_variables, np.bool_)
        of_child[children[children >= 0]] = True
        of_child &= ~(self.fixed | self.soft)
        first = np.zeros(len(allowed), np.bool_)
        first[self.graph.state_offsets[:-1]] = True
        return np.where(np.repeat(of_child, np.diff(self.graph.state_offsets)), first, allowed)

    def _support(self) -> BoolArray:
        """(S,): the states that hard zeros leave without evidence, found once for the same numbers."""
        values = self.problem.log_potentials

        def make() -> BoolArray:
            allowed = freeze(np.ones(int(self.graph.state_offsets[-1]), np.bool_))
            if (values == -np.inf).any():
                allowed = freeze(propagate_support(self.factors, allowed, compile=worth_compiling(len(values))))
            return allowed

        allowed = self.graph.plans.get_for("support", values, make)
        if not np.logical_or.reduceat(allowed, self.graph.state_offsets[:-1]).all():
            return np.ones(len(allowed), np.bool_)  # no labelling: log Z will say so
        return allowed

    def plan(self, want: frozenset[Want]) -> CliquePlan:
        """The plan for a want; TooLargeError if it would not fit."""
        ready = self.ready(want)
        return self.lay_out(*self.draw_up(want)) if ready is None else ready

    def ready(self, want: frozenset[Want]) -> CliquePlan | None:
        """The plan of a small tree, kept for whatever states the observed variables have; None for a large one."""
        key = ("ready", want, self.targets, self.fixed.tobytes(), self.soft.tobytes())
        ready = self.graph.plans.get_for(key, self.problem.log_potentials, lambda: self._general(want))
        if ready is not None:
            self.refuse(ready.sketch)
        return ready

    def _general(self, want: frozenset[Want]) -> CliquePlan | None:
        """A plan for whatever states the observed variables have; None if a plan for their actual states may pay."""
        setting, drawn = self._without_states(want)
        if drawn.total > SUPPORT_ABOVE:
            return None
        self.refuse(drawn)
        return self._new_plan(setting, drawn)

    def lay_out(self, setting: Purpose, drawn: Sketch) -> CliquePlan:
        self.refuse(drawn)
        return self.graph.plans.get(("junction", *setting_key(setting)), lambda: self._new_plan(setting, drawn))

    def _new_plan(self, setting: Purpose, drawn: Sketch) -> CliquePlan:
        return make_plan(self.factors, setting, drawn, compile=worth_compiling(drawn.total))

    def draw_up(self, want: frozenset[Want]) -> tuple[Purpose, Sketch]:
        """The Purpose of a want, and its order and cliques, which give the cost."""
        return self.with_states(*self._without_states(want))

    def with_states(self, setting: Purpose, drawn: Sketch) -> tuple[Purpose, Sketch]:
        """A setting and its sketch; if that is large, with only the states that the evidence leaves."""
        smaller = self.under_evidence(setting) if drawn.total > SUPPORT_ABOVE else None
        return (setting, drawn) if smaller is None else (smaller, self.sketch(smaller))

    def _without_states(self, want: frozenset[Want]) -> tuple[Purpose, Sketch]:
        """The same, for whatever states the observed variables have."""
        setting = self.find_purpose(want)
        return setting, self.sketch(setting)

    def find_purpose(self, want: frozenset[Want]) -> Purpose:
        """The Purpose of a want, for whatever states the observed variables have."""
        everything = bool(want & EVERYTHING)
        read, used = np.ones(self.graph.n_variables, np.bool_), np.ones(self.graph.n_factors, np.bool_)
        if not everything:
            targets = self._target_numbers() if "variables" in want else np.empty(0, np.int64)
            if targets is not None:
                read[:] = False
                read[targets] = True
                used = find_relevant(self.problem, targets)
        elif not want & {"variables", "factors", "moments"}:
            read[:] = False
        return self.setting(read, used, bool(want & {"factors", "moments"}))

    def _loosen(self, want: frozenset[Want]) -> None:
        """Free all fixed variables if that costs little: only then can rows go through the kernels side by side."""
        held = self.fixed, self.soft
        tight = self.draw_up(want)[1]
        self.fixed, self.soft = np.zeros(len(self.fixed), np.bool_), self.soft | self.fixed
        loose = self.draw_up(want)[1]
        small = loose.separator_entries.sum() <= MOST_LANE_MESSAGES
        if not small or loose.total > LOOSE * tight.total:
            self.fixed, self.soft = held

    def _target_numbers(self) -> IntArray | None:
        if self.targets is None:
            return None
        return np.array([self.graph.variables.index(name) for name in self.targets], np.int64)

    def sketch(self, setting: Purpose) -> Sketch:
        """Order and cliques for a setting."""
        compile = worth_compiling(20.0 * len(self.graph.scope_variables))

        def search() -> Sketch:
            self._refuse_hopeless(setting)
            return make_sketch(self.factors, setting, compile=compile)

        return self.graph.plans.get(("sketch", *setting_key(setting)), search)

    def under_evidence(self, setting: Purpose) -> Purpose | None:
        """The setting with only the states that hard zeros leave under one row of evidence; None if that is all."""
        evidence, offsets = self.problem.evidence, self.graph.state_offsets
        if evidence.n_rows > 1 or not (self.fixed | self.soft).any():
            return None
        if not (self.problem.log_potentials == -np.inf).any():
            return None
        allowed = self.seen_states(self._support())
        if evidence.log_weights is not None:
            allowed &= evidence.log_weights[0] > -np.inf
        left = propagate_support(
            self.factors, freeze(allowed), compile=worth_compiling(len(self.factors.log_potentials))
        )
        if not np.logical_or.reduceat(left, offsets[:-1]).all():
            return None
        left = self._without_children(left, setting.used)
        free = np.repeat(~self.fixed, np.diff(offsets))
        if (left == setting.allowed)[free].all():
            return None
        return replace(setting, allowed=freeze(left | ~free & setting.allowed))

    def seen_states(self, allowed: BoolArray) -> BoolArray:
        """(S,): the allowed states that one row of evidence leaves, likelihoods apart."""
        offsets = self.graph.state_offsets
        sizes = np.diff(offsets)
        seen = np.repeat(self.problem.evidence.observed[0], sizes)
        state = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return np.asarray(allowed & ((seen < 0) | (seen == state)))

    def _refuse_hopeless(self, setting: Purpose) -> None:
        """TooLargeError if a search for an order could exceed a limit, and exact inference looks hopeless anyway."""
        limits = {"memory_limit": self.memory_limit, "time_limit": self.time_limit}
        given = [f"{name}={value:.10g}" for name, value in limits.items() if value is not None]
        if self.only_drawn or not given or len(self.graph.scope_variables) < LONG_SEARCH:
            return
        seconds = np.inf if self.time_limit is None else self.time_limit
        if is_hopeless(self, setting, HOPELESS * min(seconds / SECONDS_AN_ENTRY, self.limit / PER_ENTRY)):
            raise TooLargeError(f"{HOPELESS_REASON} for {' and '.join(given)}; use an approximate engine")

    def refuse(self, drawn: Sketch) -> None:
        """TooLargeError if the messages would not fit, or the work would take longer than the time limit."""
        if self.exceeds(drawn.bytes):
            raise TooLargeError(
                f"the junction tree would take {drawn.bytes:.3g} bytes, more than memory_limit={self.limit}: width "
                f"{drawn.order.width}, {drawn.total:.3g} table entries in the best order found; "
                "use more memory, more evidence or a smaller model"
            )
        seconds = SECONDS_AN_ENTRY * drawn.total * self.problem.evidence.n_rows
        if self.time_limit is not None and seconds > self.time_limit:
            raise TooLargeError(
                f"the junction tree would take about {seconds:.3g} s, more than time_limit={self.time_limit:.3g}: "
                f"width {drawn.order.width}, {drawn.total:.3g} table entries in the best order found; "
                "give it more time",
                seconds=seconds,
            )

    def evidence_rows(self, start: int, stop: int) -> GivenRows:
        """Some rows of evidence."""
        observed, log_weights = self.problem.evidence.rows(start, stop)
        return GivenRows(observed, log_weights)

    def slabs(self, width: int, kept: int = 0) -> Iterator[tuple[int, int]]:
        """Rows in slabs, so that a large batch does not hold all of its answers twice.

        width: numbers that are made for a row. kept: how many of them stay; TooLargeError if they do not fit.
        """
        rows, least = self.problem.evidence.n_rows, LANES
        states, variables = int(self.graph.state_offsets[-1]), self.graph.n_variables
        work = 8 * (WORK_OF_STATE * states + WORK_OF_VARIABLE * variables + 2 * width)
        stays = bytes_of_rows(self.problem) + 8 * rows * kept
        needed = stays + min(least, rows) * work
        if rows > 1 and self.exceeds(needed):
            refuse(f"the answers for {rows} rows", needed, self.limit, "ask for fewer rows at a time")
        left = math.inf if self.memory_limit is None else self.memory_limit - stays
        return slabs(rows, rows_at_once(rows, left, work, most=SLAB_ENTRIES // max(width, 1), least=least))

    def sums(self, want: frozenset[Want]) -> dict[str, Any]:
        """The answers of the semiring (+, x): log Z and marginals."""
        cells = bool(want & {"factors", "moments"})
        offsets = factor_offsets(self.graph) if cells else None
        rows, states = self.problem.evidence.n_rows, int(self.graph.state_offsets[-1])
        width = states
        if offsets is not None:
            width += int(offsets[-1])
            self._refuse_cells(rows if "factors" in want else 1, int(offsets[-1]))
        weights = None if "factors" in want else self.problem.row_weights
        if rows >= LANES and (weights is not None or not cells):
            self._loosen(want - {"map", "samples"})
        made = self.plan(want - {"map", "samples"})
        compile = worth_compiling(made.sketch.total * rows)
        log_z, answers = [], Answers(rows)
        moments = np.zeros(len(self.problem.log_potentials) if "moments" in want else 0)
        stays = (width if "factors" in want else states) if want & {"variables", "factors"} else 0
        for start, stop in self.slabs(width, 1 + stays):
            part = propagate.sum_product(
                partial(self.numbers, made),
                self.evidence_rows(start, stop),
                want_variables="variables" in want,
                cell_offsets=offsets,
                row_weights=None if weights is None else weights[start:stop],
                n_threads=self.n_threads,
                compile=compile,
            )
            log_z.append(part.log_partition[0] if self.graph.n_instances > 1 else part.log_partition[:, 0])
            answers.put("probabilities", start, part.variables)
            if part.cells is not None:
                if "factors" in want:
                    answers.put("factor_marginals", start, part.cells)
                if "moments" in want:
                    by_row = self.problem.row_weights[start:stop]
                    moments += self._moments(part.cells[0] if weights is not None else by_row @ part.cells)
        self.told.update(domain=part.semiring.name.lower(), width=made.sketch.order.width)
        self.told.update(entries=made.sketch.total)
        return {
            **answers.found,
            "log_partitions": np.concatenate(log_z),
            "table_moments": self.given.contracted(self.problem, moments) if "moments" in want else None,
        }

    def numbers(self, made: CliquePlan, semiring: Semiring) -> CliqueNumbers:
        """The plan with numbers, kept if they are few."""
        graph, values = self.graph, self.problem.log_potentials
        if len(values) > KEPT_ENTRIES:
            return numbers_of(made, self.factors, semiring, variable_groups(graph))

        def make() -> CliqueNumbers:
            scaled = None
            if semiring == Semiring.SUM:
                scaled = graph.plans.get_for("linear", values, lambda: to_linear(self.factors))
            return numbers_of(made, self.factors, semiring, variable_groups(graph), scaled)

        return graph.plans.get_for(("numbers", semiring, made), values, make)

    def refuse_labellings(self, k: int, width: int) -> None:
        """TooLargeError if k labellings of every row, with `width` numbers each, would not fit."""
        needed = 16 * k * width * self.problem.evidence.n_rows
        if self.exceeds(needed):
            raise TooLargeError(
                f"the {k} best labellings would take {needed} bytes, more than memory_limit={self.limit}; ask for fewer"
            )

    def _refuse_cells(self, rows: int, size: int) -> None:
        if self.exceeds(8 * rows * size):
            refuse_marginals(rows, size, self.limit)

    def _moments(self, total: Array) -> Array:
        """Marginals of factors (.,), sums over rows, added up by table with the weights of instances: (L,)."""
        problem, sizes = self.problem, np.diff(factor_offsets(self.graph))
        starts = problem.table_offsets[problem.table_of_factor] - offsets_of(sizes)[:-1]
        if self.graph.n_instances > 1 and problem.weights is not None:
            total = total * np.repeat(problem.factor_weights, sizes)
        places = np.arange(len(total)) + np.repeat(starts, sizes)
        return np.bincount(places, weights=total, minlength=len(problem.log_potentials)).astype(np.float64)

    def best(self, k: int) -> dict[str, Any]:
        """The labelling of least energy, or the k best ones, for each row."""
        want: frozenset[Want] = frozenset({"map"})
        if k > 1:
            several, energies = find_k_best(self, self.plan(want), k)
            return {"codes": several, "energies": energies}
        narrow = search_few_states(self)
        if narrow is not None:
            return narrow
        made = self.plan(want)
        compile = worth_compiling(made.sketch.total * self.problem.evidence.n_rows)
        numbers = self.numbers(made, Semiring.MAX)
        answers, possible = Answers(self.problem.evidence.n_rows), []
        for start, stop in self.slabs(self.graph.n_variables, 1 + self.graph.n_variables):
            given = self.evidence_rows(start, stop)
            weight, codes = propagate.max_product(numbers, given, n_threads=self.n_threads, compile=compile)
            answers.put("codes", start, codes)
            possible.append(weight[0] if self.graph.n_instances > 1 else weight[:, 0])
        return self.label(answers.found["codes"], np.concatenate(possible))

    def label(self, codes: IntArray, weights: Array) -> dict[str, Any]:
        found = self.given.energy_of_answers(codes)
        energies = np.where(weights == -np.inf, np.inf, found)
        return {"codes": codes[:, None], "energies": energies[:, None]}

    def draws(self, rng: np.random.Generator, n_samples: int) -> dict[str, Any]:
        """Independent samples, for each row, from one key of the generator."""
        made = self.plan(frozenset({"samples"}))
        key = int(rng.integers(2**62))
        rows = self.problem.evidence.n_rows
        compile = worth_compiling(made.sketch.total * rows * (1 + n_samples))
        numbers_in = partial(self.numbers, made)
        log_z, answers, width = [], Answers(rows), self.graph.n_variables * n_samples
        for start, stop in self.slabs(width, width):
            given = self.evidence_rows(start, stop)
            part = propagate.sample(
                numbers_in, given, n_samples, key + start, n_threads=self.n_threads, compile=compile
            )
            log_z.append(part[0][0] if self.graph.n_instances > 1 else part[0][:, 0])
            answers.put("sampled", start, part[1])
        return {"log_partitions": np.concatenate(log_z), **answers.found}


def setting_key(setting: Purpose) -> tuple[object, ...]:
    """A key that distinguishes plans."""
    parts = (setting.used, setting.fixed, setting.allowed, setting.soft, setting.read, setting.keep)
    return (*(part.tobytes() for part in parts), setting.cells)
