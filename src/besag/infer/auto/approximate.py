"""What `auto` does where exact inference does not fit: an estimate, and bounds on both sides of log Z.

    estimate   join_graph and bp       log Z, marginals, moments: of the one that more speaks for, and bounds allow
    above      trw                     log Z <= value at every iterate
    below      mean_field              log Z >= value at every iterate
    samples    gibbs, which also gives the marginals where nothing else is wanted
    map        local search and messages in turns (`besag.infer.map.portfolio`): a labelling and a bound

In a Bayesian network log Z needs no factor that is barren: what is left may be exact where marginals are not, and the
bounds are those of what is left.

The bounds are computed first, with a share of the time each; where even to begin takes more than that, they are left
out. Then, with a time limit, bp has a share and join_graph the rest, or bp all of it where there are too many factors
for join_graph. Without one join_graph answers, or bp where it has too many factors, and the other one is asked where
that has not settled or lies outside of the bounds. `besag.infer.auto.candidates` says which is taken: log Z and
marginals are always those of one engine, and diagnostics tell what was disproved. The trace is of the estimate; the
bound in it is the one from above.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import TooLargeError
from besag.graph.problem import Problem
from besag.infer.auto.candidates import Interval, choose, is_allowed, is_settled, sort_in_order
from besag.infer.bp.engine import BP
from besag.infer.engine import ENGINES, Engine, OnStep, Want
from besag.infer.join_graph.engine import JoinGraph, first_seconds
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.outlook import HOPELESS, is_hopeless
from besag.infer.junction.relevance import without_barren
from besag.infer.junction.run import SECONDS_AN_ENTRY, JunctionRun
from besag.infer.map.k_best import search_k_best
from besag.infer.map.portfolio import search_and_bound
from besag.infer.mean_field.engine import MeanField
from besag.infer.result import Diagnostics, Result
from besag.infer.sampling.gibbs import Gibbs
from besag.infer.trw.engine import TRW

SUMS: frozenset[Want] = frozenset({"log_partition", "variables", "factors", "moments"})
LOG_PARTITION: frozenset[Want] = frozenset({"log_partition"})
MAP: frozenset[Want] = frozenset({"map"})
SAMPLES: frozenset[Want] = frozenset({"samples"})
SAMPLED: frozenset[Want] = frozenset({"samples", "variables"})
FIRST_SECONDS = 0.125  # of a first answer of join_graph, above which it takes too long where there is no time limit
FIRST_SHARE = 0.225  # of the time, that a first answer may take where it is to become better than that of bp
SHARE = {"below": 0.1, "above": 0.15, "bp": 0.1, "samples": 0.4, "map": 0.3}  # of the time
START = {"below": 3e-8, "above": 2e-7}  # seconds for each state of a variable in a factor, before a first bound
MOST_START = 0.3  # of the time
BOUND_ITERATIONS = 200  # where there is no time limit: the bounds hold at every iterate
RESCUE = 20.0  # seconds for join_graph where bp has failed and there is no time limit
DAMPING = "adaptive"
EXACT_SECONDS = 5.0  # for log Z where it needs fewer factors than the marginals
QUICKLY = 1e-3  # seconds: one iteration
CUT_SHORT = {"converged": False, "stopped": "interrupted"}  # diagnostics of an answer that Ctrl-C ended


@dataclass(frozen=True, slots=True)
class Resources:
    """What the work may take."""

    n_threads: int | None
    memory_limit: int | None
    n_samples: int
    time_limit: float | None
    k: int = 1

    @property
    def options(self) -> dict[str, Any]:
        """Of every engine."""
        return {"n_threads": self.n_threads, "memory_limit": self.memory_limit}

    def share(self, part: str) -> float | None:
        """The seconds for one part of the work."""
        return None if self.time_limit is None else SHARE[part] * self.time_limit


def approximate(
    problem: Problem,
    want: frozenset[Want],
    resources: Resources,
    known: Mapping[str, Result],
    *,
    warm: Result | None,
    rng: np.random.Generator,
    on_step: OnStep | None,
) -> Result:
    """Answers to all wants, each by the engine that suits it; known: those parts that there are already."""
    began = time.perf_counter()
    parts = dict(known)
    if "samples" in want:
        gibbs = Gibbs(**resources.options, n_draws=resources.n_samples)
        alone = want <= SAMPLED
        limit = resources.time_limit if alone else resources.share("samples")
        parts["samples"] = gibbs.infer(problem, want if alone else SAMPLES, rng=rng, time_limit=limit)
        if alone:
            return _joined(parts, time.perf_counter() - began)
    if "map" in want and "map" not in parts:
        alone = not want & (SUMS | {"samples"})
        limit = resources.time_limit if alone else resources.share("map")
        asked = MAP | (want & {"trace"})
        options: dict[str, Any] = {"warm": _labelling(warm), "rng": rng, "time_limit": limit}
        options["on_step"] = on_step if alone else None
        if resources.k == 1:
            parts["map"] = search_and_bound(problem, resources.memory_limit, asked, **options)
        else:
            parts["map"] = search_k_best(problem, resources.k, resources.memory_limit, asked, **options)
    if not want & SUMS:
        return _joined(parts, time.perf_counter() - began)
    work = Estimation(problem, want & (SUMS | {"trace"}), resources, began, warm, rng, on_step)
    if "log_partition" in want and not _is_interrupted(parts.values()):
        work.bound()
    work.estimate(hurried=_is_interrupted(parts.values()))
    parts |= work.bounds
    parts["estimate"] = work.answer()
    return _joined(parts, time.perf_counter() - began, work)


def _labelling(warm: Result | None) -> Result | None:
    """A Result to start from, if it has a labelling."""
    return warm if warm is not None and warm.codes is not None else None


class Estimation:
    """Bounds on log Z, and estimates, of which bounds may disprove some."""

    def __init__(
        self,
        problem: Problem,
        want: frozenset[Want],
        resources: Resources,
        began: float,
        warm: Result | None,
        rng: np.random.Generator,
        on_step: OnStep | None,
    ) -> None:
        self.problem, self.want, self.resources, self.began = problem, want, resources, began
        self.warm, self.rng, self.on_step = warm, rng, on_step
        states = problem.graph.variables.cardinalities[problem.graph.scope_variables]
        self.n_messages = problem.evidence.n_rows * int(states.sum())
        iterations = BOUND_ITERATIONS if resources.time_limit is None else 10**6
        self.relevant = without_barren(problem)
        self.bounders: dict[str, MeanField | TRW] = {
            "below": MeanField(**resources.options, max_iterations=iterations),
            "above": TRW(**resources.options, max_iterations=iterations),
        }
        self.bounds: dict[str, Result] = {}
        self.estimates: list[Result] = []
        self.refusal: TooLargeError | None = None

    def bound(self) -> None:
        """Results of the engines that bound log Z from below and from above, where they fit; or log Z itself."""
        if self.relevant is not self.problem and self._bound_exactly():
            return
        for part, engine in self.bounders.items():
            limit = self.resources.time_limit
            if _is_interrupted(self.bounds.values()) or (limit and START[part] * self.n_messages > MOST_START * limit):
                continue
            try:
                share = self.resources.share(part)
                self.bounds[part] = engine.infer(self.relevant, LOG_PARTITION, rng=self.rng, time_limit=share)
            except TooLargeError as error:  # what cannot be bounded is still estimated
                self.refusal = error

    def _bound_exactly(self) -> bool:
        """Whether log Z has been found exactly."""
        limit = self.resources.time_limit
        share = EXACT_SECONDS if limit is None else SHARE["below"] * limit
        run = JunctionRun(JunctionTree(**self.resources.options), self.relevant, time_limit=share)
        try:
            if is_hopeless(run, run.find_purpose(LOG_PARTITION), HOPELESS * share / SECONDS_AN_ENTRY):
                return False
            self.bounds["exact"] = JunctionTree(**self.resources.options).infer(
                self.relevant, LOG_PARTITION, time_limit=share
            )
        except TooLargeError:
            return False
        return True

    @property
    def interval(self) -> Interval | None:
        """What is known of log Z for certain."""
        if not self.bounds:
            return None
        ends = [result.bound_arrays() for result in self.bounds.values()]
        low: Array = np.maximum.reduce([low for low, _ in ends])
        return low, np.maximum(low, np.minimum.reduce([high for _, high in ends]))  # both may be log Z, up to rounding

    def estimate(self, *, hurried: bool) -> None:
        """Ask one engine after the other, until one has settled within the bounds."""
        options, limit = self.resources.options, self.resources.time_limit
        bp, join_graph = BP(**options, damping=DAMPING), JoinGraph(**options)
        if hurried or _is_interrupted(self.bounds.values()):
            self._ask(BP(**options), QUICKLY)
        elif ENGINES.name_of(estimator_of(self.problem, limit)) == "bp":
            self._ask(bp, self._left())
            if limit is None and not self._is_answered() and first_seconds(self.problem) <= FIRST_SHARE * RESCUE:
                self._ask(join_graph, RESCUE)
        elif limit is None:
            self._ask(join_graph, None)
            if not self._is_answered():
                self._ask(bp, None)
        else:
            self._ask(bp, self.resources.share("bp"))
            self._ask(join_graph, self._left())

    def _is_answered(self) -> bool:
        best = self.estimates[-1] if self.estimates else None
        return best is not None and is_settled(best) and bool(is_allowed(best, self.interval).all())

    def _left(self) -> float | None:
        limit = self.resources.time_limit
        return None if limit is None else max(limit - (time.perf_counter() - self.began), QUICKLY)

    def _ask(self, engine: Engine, time_limit: float | None) -> None:
        if _is_interrupted(self.estimates):
            return
        name, warm = ENGINES.name_of(engine), self.warm
        known = None if warm is None or warm.state is None or warm.state.get("engine") != name else warm
        options: dict[str, Any] = {"rng": self.rng, "time_limit": time_limit, "on_step": self.on_step}
        try:
            self.estimates.append(engine.infer(self.problem, self.want, warm=known, **options))
        except TooLargeError as error:
            self.refusal = error

    def answer(self) -> Result:
        """The estimate that is believed; a bound where all are disproved, TooLargeError where nothing fits."""
        results = sort_in_order(self.estimates)
        found = choose(results, self.interval) if results else None
        for part in ("above", "below"):
            if found is None and part in self.bounds and not (self.refusal and self.relevant is not self.problem):
                found = choose([*results, self._of_bound(part)], self.interval)
        if found is None and not results:
            assert self.refusal is not None
            raise self.refusal
        return results[0] if found is None else found

    def _of_bound(self, part: str) -> Result:
        """All that is wanted, from an engine that bounds log Z, a sweep after its bound."""
        engine = replace(self.bounders[part], max_iterations=1)
        warm = self.bounds[part] if self.relevant is self.problem else None
        result = engine.infer(self.problem, self.want, warm=warm, rng=self.rng)
        self.bounds[part] = _tightened(self.bounds[part], result)
        return replace(result, diagnostics=self.bounds[part].diagnostics)

    @property
    def disproved(self) -> dict[str, list[float]]:
        """log Z of those engines that are outside of the bounds."""
        return {
            str(result.diagnostics["engine"]): [float(x) for x in result.log_partitions]
            for result in self.estimates
            if result.log_partitions is not None and not is_allowed(result, self.interval).all()
        }


def _tightened(one: Result, other: Result) -> Result:
    """A bound on log Z with what another result of the same engine knows."""
    assert one.log_partitions is not None
    (low, high), (other_low, other_high) = one.bound_arrays(), other.bound_arrays()
    interval = np.maximum(low, other_low), np.minimum(high, other_high)
    return replace(one, log_partitions=np.clip(one.log_partitions, *interval), bounds=interval)


def _is_interrupted(parts: Iterable[Result]) -> bool:
    """Whether Ctrl-C was pressed: then what is still to be done is done quickly."""
    return any(part.diagnostics.get("stopped") == "interrupted" for part in parts)


def estimator_of(problem: Problem, time_limit: float | None, **options: Any) -> Engine:
    """The engine of the estimate that is asked first; time_limit: of all that is done."""
    if first_seconds(problem) <= (FIRST_SECONDS if time_limit is None else FIRST_SHARE * time_limit):
        return JoinGraph(**options)
    return BP(**options, damping=DAMPING)


def ask_again(result: Result, problem: Problem, time_limit: float | None, auto: Any) -> Engine:
    """The engine that `auto` believed, for more questions like one that it answered; time_limit: of one of them.

    bp instead of join_graph where that takes too long to begin.
    """
    options: dict[str, Any] = {"n_threads": auto.n_threads, "memory_limit": auto.memory_limit}
    name = result.diagnostics["engine"]
    if name == "join_graph":
        return estimator_of(problem, time_limit, **options)
    return BP(**options, damping=DAMPING) if name == "bp" else ENGINES.find(name)(**options)


def _joined(parts: dict[str, Result], seconds: float, work: Estimation | None = None) -> Result:
    """One Result of all parts."""
    lead = parts.get("estimate") or parts.get("map") or parts["samples"]
    told: dict[str, Any] = {**lead.diagnostics, "seconds": seconds}
    told["engines"] = {part: result.diagnostics["engine"] for part, result in parts.items()}
    told["converged"] = all(
        parts[part].diagnostics["converged"] for part in ("estimate", "map", "samples") if part in parts
    )
    if _is_interrupted([*parts.values(), *(work.estimates if work is not None else ())]):
        told |= CUT_SHORT
    answer = lead
    if "samples" in parts:
        answer = replace(answer, sampled=parts["samples"].sampled)
        told["n_chains"] = parts["samples"].diagnostics["n_chains"]
    if "map" in parts:
        best = parts["map"]
        bounds = best.energies[:, 0] if best.bound == "exact" and best.energies is not None else best.energy_bounds
        answer = replace(answer, codes=best.codes, energies=best.energies, energy_bounds=bounds)
    if work is not None and work.interval is not None:
        answer, estimated = _within(answer, work.interval)
        told |= {"disproved": work.disproved} if work.disproved else {}
        told |= {"estimated": estimated} if estimated is not None else {}
    return replace(answer, diagnostics=Diagnostics(**told))


def _within(answer: Result, interval: Interval) -> tuple[Result, list[float] | None]:
    """The answer with bounds on log Z, and what was estimated where that lies a little outside of them."""
    assert answer.log_partitions is not None
    low, high = (np.array(bound) for bound in answer.bound_arrays())
    low = np.maximum(low, interval[0])
    high = np.maximum(low, np.minimum(high, interval[1]))
    value: Array = np.clip(answer.log_partitions, low, high)
    outside = bool((np.abs(value - answer.log_partitions) > 1e-9 * np.maximum(1.0, np.abs(low))).any())
    estimated = [float(x) for x in answer.log_partitions] if outside else None
    bound = "exact" if answer.bound == "exact" else "estimate"
    trace = None if answer.trace_log is None else answer.trace_log.with_bound(float(high.sum()))
    return replace(answer, log_partitions=value, bounds=(low, high), bound=bound, trace_log=trace), estimated


def interval_text(result: Result) -> str:
    """How sure log Z is, in words."""
    if result.log_partitions is None:
        return _gap_text(result)
    low, high = result.bound_arrays()
    width = float((high - low).max())
    return f"log Z is known to within {width:.3g}" if math.isfinite(width) else "log Z is an estimate"


def _gap_text(result: Result) -> str:
    """How far a labelling may be from the best one, in words."""
    if result.energies is None or result.energy_bounds is None:
        return "the answer is an estimate"
    gap = float(np.max(result.energies[:, 0] - result.energy_bounds, initial=0.0))
    known = f"the energy is within {gap:.3g} of the least" if math.isfinite(gap) else "the answer is an estimate"
    ended = result.diagnostics.get("stopped") == "no_progress"
    return known + (", and more of the same brought nothing: with a time_limit it goes on" if ended else "")
