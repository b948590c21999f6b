"""Marginal MAP where elimination does not fit: starts and bounds by `auto`, then a search among the targets.

    starts    the best labelling, and the most probable states of the variables
    bounds    E(a) = -log sum over the rest of exp(-H) is at least -log Z, and at least the bound on H less the
              logarithm of how many states the rest has

Where not even the rest alone fits, with all targets clamped, log Z of a start is `auto`'s estimate, and the better
start is the answer.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import ApproximationWarning, TooLargeError, warn
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from besag.infer.auto.engine import Auto
from besag.infer.engine import Want
from besag.infer.junction.engine import JunctionTree
from besag.infer.map.marginal_search import search_targets
from besag.infer.result import Diagnostics, Result
from besag.query.run import Options, generator_for

if TYPE_CHECKING:
    from besag.model.model import Model

MAP_SHARE, SUMS_SHARE = 0.4, 0.1  # of the time
SECONDS = 4.0  # of each where there is no limit
LEAST = 1e-2


def search(model: Model, indices: list[int], evidence: Evidence, engine: Auto, options: Options, why: str) -> Result:
    """The best joint state of the targets that is found, with one ApproximationWarning."""
    began, limit = time.perf_counter(), options.get("time_limit")
    problem, targets = model.problem.with_evidence(evidence), np.array(indices, np.int64)
    rng = generator_for(engine, {"samples"}, options)
    assert rng is not None
    starts, bounds = _prepare(problem, targets, engine, rng, limit)
    left = None if limit is None else max(limit - (time.perf_counter() - began), LEAST)
    try:
        worker = JunctionTree(engine.n_threads, engine.memory_limit)
        result = search_targets(problem, targets, worker, starts, bounds, rng=rng, time_limit=left)
    except TooLargeError:
        result = _better(problem, targets, starts, bounds, engine, rng, left)
    told = result.diagnostics.extend(reason=why, seconds=time.perf_counter() - began)
    if not bool(np.all(result.optimal)):
        gap = float(np.max(result.energies[:, 0] - result.energy_bounds))  # type: ignore[index, operator]
        sure = f"the energy is within {gap:.3g} of the least" if np.isfinite(gap) else "the answer is an estimate"
        warn(ApproximationWarning(f"exact elimination does not fit: {why}. Answered by {told['engine']}; {sure}"))
    return replace(result, diagnostics=told)


def _prepare(
    problem: Problem, targets: IntArray, engine: Auto, rng: np.random.Generator, limit: float | None
) -> tuple[list[IntArray], Array]:
    """Labellings to start from, (R, V) each, and bounds (R,) on E."""
    share = SECONDS if limit is None else limit
    best = _quietly(engine, problem, frozenset({"map"}), rng, share * (1.0 if limit is None else MAP_SHARE))
    sums = _quietly(
        engine, problem, frozenset({"log_partition", "variables"}), rng, share * (1.0 if limit is None else SUMS_SHARE)
    )
    assert best.codes is not None
    assert best.energies is not None
    assert sums.probabilities is not None
    p, offsets = sums.probabilities, problem.graph.state_offsets
    highest = np.repeat(np.maximum.reduceat(p, offsets[:-1], axis=1), np.diff(offsets), axis=1)
    states = np.where(p == highest, np.arange(p.shape[1]), p.shape[1])
    modes = np.minimum.reduceat(states, offsets[:-1], axis=1) - offsets[:-1]
    rest = problem.evidence.observed < 0
    rest[:, targets] = False
    spread = rest @ np.log(problem.graph.variables.cardinalities)
    least = best.energies[:, 0] if best.energy_bounds is None else best.energy_bounds
    return [best.codes[:, 0], np.asarray(modes)], np.maximum(least - spread, -sums.bound_arrays()[1])


def _quietly(engine: Auto, problem: Problem, want: frozenset[Want], rng: np.random.Generator, limit: float) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        return replace(engine, k=1, targets=None).infer(problem, want, rng=rng, time_limit=limit)


def _better(
    problem: Problem, targets: IntArray, starts: list[IntArray], bounds: Array, engine: Auto, rng: np.random.Generator,
    limit: float | None,
) -> Result:  # fmt: skip
    """The start whose estimate of log Z is the larger one, for each row."""
    share = (SECONDS if limit is None else limit) / len(starts)
    values, began = [], time.perf_counter()
    for codes in starts:
        observed = problem.evidence.observed.copy()
        observed[:, targets] = codes[:, targets]
        clamped = problem.with_evidence(Evidence(observed, problem.evidence.log_weights, batched=True))
        found = _quietly(engine, clamped, frozenset({"log_partition"}), rng, share).log_partitions
        assert found is not None
        values.append(found)
    which, rows = np.argmax(values, axis=0), np.arange(len(bounds))
    best = np.full((len(rows), 1, problem.graph.n_variables), -1, np.int64)
    best[:, 0, targets] = np.array(starts)[which, rows][:, targets]
    energies = -np.array(values)[which, rows]
    told = Diagnostics(engine="auto", converged=False, iterations=len(starts), seconds=time.perf_counter() - began,
                       stopped="no_progress", rows=len(rows), tolerance=None, residual=None)  # fmt: skip
    return Result(
        problem.graph, "estimate", told, problem.evidence.batched, problem.evidence.index, codes=best,
        energies=energies[:, None], energy_bounds=np.minimum(bounds, energies),
        targets=tuple(problem.graph.variables.names_at(targets)),
    )  # fmt: skip
