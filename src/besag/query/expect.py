"""E[h(y)] of any function of a labelling, 001.

    enumeration    sum over y of p(y) h(y), where evidence leaves at most MAX_ROWS labellings: exact
    samples        the mean over draws, an estimate (besag.query.draws)

Exact engines enumerate unless a number of samples is asked for. h is called once for each distinct labelling; the
time limit ends the draws first, then the calls, of which those that were made count.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.graph.evidence import Evidence
from besag.infer.engine import ENGINES
from besag.infer.iterate import Clock
from besag.infer.result import Result
from besag.query.analysis import one_row
from besag.query.draws import at_draws, distinct_rows, draw_many, error_of_mean
from besag.query.estimate import ArrayEstimate, Estimate, estimate_of
from besag.query.labels import configurations
from besag.query.run import Options, check_options, engine_from, run
from besag.query.verbs import MAX_ROWS
from besag.registry import is_whole

if TYPE_CHECKING:
    from besag.model.model import Model

Answer: TypeAlias = Estimate | ArrayEstimate

N_SAMPLES = 4000  # independent draws, as many as gibbs makes in its chains
MOST_CODES = 2**22  # numbers of all labellings


def expect(model: Model, h: Callable[[dict[str, str]], Any], evidence: Any, n_samples: Any, options: Options) -> Answer:
    """E[h(y)]; h takes an assignment {name: state} and returns a number or an array."""
    read = one_row(model, evidence, "expect")
    if not callable(h):
        raise ModelError(f"expect takes a function of an assignment {{name: state}}, got {type(h).__name__} {h!r}")
    if n_samples is not None and not (is_whole(n_samples) and n_samples >= 1):
        raise ModelError(f"n_samples must be a whole number of at least 1, got {n_samples!r}")
    check_options(options)
    engine, clock = engine_from(options, n_samples=n_samples), Clock(options.get("time_limit"))
    can = engine.capabilities
    if can.bound != "exact" and "samples" not in can.wants:
        text = f"engine {ENGINES.name_of(engine)!r} gives no expectations of functions"
        raise CapabilityError(f"{text}; gibbs, auto and the exact engines do")
    if can.bound == "exact" and n_samples is None and getattr(engine, "n_samples", 1) == 1:
        if _can_enumerate(model, read):
            return _enumerated(model, h, read, options, clock)
        engine = engine_from(options, n_samples=N_SAMPLES)
    return _sampled(model, h, draw_many(model, engine, read, options), clock)


def _can_enumerate(model: Model, evidence: Evidence) -> bool:
    """Whether the labellings that agree with what is observed are few."""
    states = np.where(evidence.observed[0] >= 0, 1, model.variables.cardinalities)
    most = min(MAX_ROWS, MOST_CODES / max(1, len(states)))
    return bool(np.log2(states).sum() <= math.log2(most) + 1e-9)


def _enumerated(model: Model, h: Callable[..., Any], read: Evidence, options: Options, clock: Clock) -> Answer:
    """By the labellings of positive weight; normalised by their own sum, so that log Z need not be exact."""
    run(model, {"log_partition"}, read, options)  # refuses what is impossible, and what the engine cannot
    free = np.flatnonzero(read.observed[0] < 0)
    states = configurations(model.variables, free.tolist(), MAX_ROWS)
    codes = np.repeat(read.observed, len(states), axis=0)
    codes[:, free] = states
    log_p = -model.problem.with_evidence(read).energy(codes)
    p = np.exp(log_p - log_p.max())
    codes, p = codes[p > 0], p[p > 0] / p.sum()
    total: Any = 0.0
    values = _values(model, h, codes)
    for done, weight in enumerate(p):
        if clock.left <= 0:
            raise TooLargeError(
                f"expect has to call the function for {len(p)} labellings, but time_limit left time for {done}; give "
                "it more time, or take n_samples=1000 draws"
            )
        total = total + weight * next(values)
    return estimate_of(total, 0.0, "exact")


def _sampled(model: Model, h: Callable[..., Any], result: Result, clock: Clock) -> Answer:
    codes, which = distinct_rows(result.samples)
    values = at_draws(_values(model, h, codes), which, clock, "expect")
    error = error_of_mean(values.reshape(len(values), -1), result)
    return estimate_of(values.mean(axis=0), None if error is None else error.reshape(values.shape[1:]), "estimate")


def _values(model: Model, h: Callable[..., Any], codes: IntArray) -> Iterator[Array]:
    """h of each labelling, finite numbers of one shape."""
    shape: tuple[int, ...] | None = None
    for assignment in _assignments(model, codes):
        given = h(assignment)
        try:
            value = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            raise _refusal("numbers", given, assignment) from None
        if not np.isfinite(value).all():
            raise _refusal("finite numbers", given, assignment)
        if shape is not None and value.shape != shape:
            raise _refusal(f"numbers of one shape, {shape} as before", given, assignment)
        shape = value.shape
        yield value


def _refusal(expected: str, given: Any, assignment: dict[str, str]) -> ModelError:
    where = f"got {reprlib.repr(given)} at {reprlib.repr(assignment)}"
    return ModelError(f"expect takes a function that returns {expected}, {where}")


def _assignments(model: Model, codes: IntArray) -> Iterable[dict[str, str]]:
    names = model.variables.names_at(range(len(model.variables)))
    spaces = [model.variables.states(v) for v in range(len(names))]
    for row in codes.tolist():
        yield {name: space[code] for name, space, code in zip(names, spaces, row, strict=True)}
