"""What `auto` does where exact inference does not fit: an estimate, and bounds on both sides of log Z.

    estimate   join_graph, or bp where there are too many factors for it       log Z, marginals, moments
    above      trw           log Z <= value at every iterate
    below      mean_field    log Z >= value at every iterate
    samples    gibbs                              map   bp with (min, +)

The bounds are computed first, with a share of the time each; the estimate has the rest. An estimate that lies outside
of the bounds is wrong for certain: the nearest bound takes its place, and diagnostics tell what was estimated. So does
the bound from above where messages have diverged and nothing bounds log Z from below. The trace is of the estimate; the
bound in it is the one from above.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import TooLargeError
from besag.graph.problem import Problem
from besag.infer.bp import BP
from besag.infer.engine import Engine, OnStep, Want, engine_name
from besag.infer.gibbs import Gibbs
from besag.infer.join_graph import JoinGraph
from besag.infer.mean_field import MeanField
from besag.infer.result import Diagnostics, Result
from besag.infer.trw import TRW

SUMS: frozenset[Want] = frozenset({"log_partition", "variables", "factors", "moments"})
LOG_PARTITION: frozenset[Want] = frozenset({"log_partition"})
MANY_LINKS = 5_000  # above which join graphs take too long where there is no time limit
LINKS_A_SECOND = 9_000  # of which join graphs make more than belief propagation does, where there is one
SHARE = {"below": 0.1, "above": 0.15, "samples": 0.4, "map": 0.3}  # of the time, for what is done besides the estimate
BOUND_ITERATIONS = 200  # where there is no time limit: the bounds hold at every iterate
DAMPING = "adaptive"
QUICKLY = 1e-3  # seconds: one iteration


@dataclass(frozen=True, slots=True)
class Resources:
    """What the work may take."""

    n_threads: int | None
    memory_limit: int | None
    n_samples: int
    time_limit: float | None

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
    options: dict[str, Any] = {"n_threads": resources.n_threads, "memory_limit": resources.memory_limit}
    if "samples" in want:
        gibbs = Gibbs(**options, n_draws=resources.n_samples)
        parts["samples"] = gibbs.infer(problem, frozenset({"samples"}), rng=rng, time_limit=resources.share("samples"))
    if "map" in want and "map" not in parts:
        engine = BP(**options, damping=DAMPING)
        parts["map"] = engine.infer(problem, frozenset({"map"}), rng=rng, time_limit=resources.share("map"))
    if "log_partition" in want and not _is_interrupted(parts):
        parts |= _bounds(problem, resources, options, rng)
    if want & SUMS:
        left = None if resources.time_limit is None else resources.time_limit - (time.perf_counter() - began)
        limit = None if left is None else max(left, QUICKLY)
        estimator = estimator_of(problem, resources.time_limit, **options)
        if _is_interrupted(parts):
            estimator, limit = BP(**options), QUICKLY
        parts["estimate"] = _estimate(estimator, problem, want & (SUMS | {"trace"}), limit, warm, rng, on_step)
    return _joined(parts, time.perf_counter() - began)


def _bounds(
    problem: Problem, resources: Resources, options: dict[str, Any], rng: np.random.Generator
) -> dict[str, Result]:
    """Results of the engines that bound log Z from below and from above, where they fit."""
    iterations = BOUND_ITERATIONS if resources.time_limit is None else 10**6
    engines: dict[str, Engine] = {
        "below": MeanField(**options, max_iterations=iterations),
        "above": TRW(**options, max_iterations=iterations),
    }
    found: dict[str, Result] = {}
    for part, engine in engines.items():
        if _is_interrupted(found):
            break
        try:
            found[part] = engine.infer(problem, LOG_PARTITION, rng=rng, time_limit=resources.share(part))
        except TooLargeError:  # what cannot be bounded is still estimated
            continue
    return found


def _is_interrupted(parts: dict[str, Result]) -> bool:
    """Whether Ctrl-C was pressed: then what is still to be done is done quickly."""
    return any(part.diagnostics["stopped"] == "interrupted" for part in parts.values())


def _estimate(
    engine: Engine,
    problem: Problem,
    want: frozenset[Want],
    time_limit: float | None,
    warm: Result | None,
    rng: np.random.Generator,
    on_step: OnStep | None,
) -> Result:
    name = engine_name(engine)
    known = None if warm is None or warm.state is None or warm.state.get("engine") != name else warm
    return engine.infer(problem, want, warm=known, rng=rng, time_limit=time_limit, on_step=on_step)


def estimator_of(problem: Problem, time_limit: float | None, **options: Any) -> Engine:
    """The engine of the estimate; time_limit: of all that is done."""
    n_links = len(problem.graph.scope_variables) * problem.evidence.n_rows
    if n_links <= (MANY_LINKS if time_limit is None else LINKS_A_SECOND * time_limit):
        return JoinGraph(**options)
    return BP(**options, damping=DAMPING)


def _joined(parts: dict[str, Result], seconds: float) -> Result:
    """One Result of all parts."""
    lead = parts.get("estimate") or parts.get("map") or parts["samples"]
    told: dict[str, Any] = {**lead.diagnostics, "seconds": seconds}
    told["engines"] = {part: result.diagnostics["engine"] for part, result in parts.items()}
    told["converged"] = all(
        parts[part].diagnostics["converged"] for part in ("estimate", "map", "samples") if part in parts
    )
    if _is_interrupted(parts):
        told |= {"converged": False, "stopped": "interrupted"}
    answer = lead
    if "samples" in parts:
        answer = replace(answer, sampled=parts["samples"].sampled)
    if "map" in parts:
        best = parts["map"]
        answer = replace(answer, codes=best.codes, energies=best.energies, energy_bounds=best.energy_bounds)
    if "below" in parts or "above" in parts:
        answer, estimated = _within(answer, parts)
        if estimated is not None:
            told["estimated"] = estimated
    return replace(answer, diagnostics=Diagnostics(**told))


def _within(answer: Result, parts: dict[str, Result]) -> tuple[Result, list[float] | None]:
    """The answer with bounds on log Z, and what was estimated where that lies outside of them."""
    assert answer.log_partitions is not None
    low, high = (np.array(bound) for bound in answer.bound_arrays())
    if "below" in parts:
        low = np.maximum(low, parts["below"].bound_arrays()[0])
    if "above" in parts:
        high = np.minimum(high, parts["above"].bound_arrays()[1])
    high = np.maximum(low, high)  # both may be log Z, up to rounding
    value: Array = np.clip(answer.log_partitions, low, high)
    if answer.diagnostics.get("diverges"):
        value = np.where(np.isneginf(low) & np.isfinite(high), high, value)
    outside = bool((np.abs(value - answer.log_partitions) > 1e-9 * np.maximum(1.0, np.abs(low))).any())
    estimated = [float(x) for x in answer.log_partitions] if outside else None
    bound = "exact" if answer.bound == "exact" else "estimate"
    trace = None if answer.trace_log is None else answer.trace_log.with_bound(float(high.sum()))
    return replace(answer, log_partitions=value, bounds=(low, high), bound=bound, trace_log=trace), estimated


def interval_text(result: Result) -> str:
    """How sure log Z is, in words."""
    if result.log_partitions is None:
        return "the answer is an estimate"
    low, high = result.bound_arrays()
    width = float((high - low).max())
    return f"log Z is known to within {width:.3g}" if math.isfinite(width) else "log Z is an estimate"
