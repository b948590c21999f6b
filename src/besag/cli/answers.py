"""A Result as plain data for JSON, an object a row of evidence.

    all       task, model, row (its label, None for a single query), engine, bound, log_partition, log10_partition,
              log_partition_bounds, diagnostics
    MAR       marginals: {variable: {state: probability}}
    MAP       assignment: {variable: state}, energy, log10_weight, energy_bound, optimal, and solutions, best first;
              MMAP alike, for the variables that were asked for
    SAMPLE    samples: {variable: [state, ...]}

What a task does not give is None. The weight of a labelling is exp(-energy).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.cli.output import plain

if TYPE_CHECKING:
    from besag.infer.result import Result

LOG_10 = math.log(10)


def answers(task: str, model: str, result: Result, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """An object for each row of evidence."""
    parts = {"PR": _nothing, "MAR": _marginals, "MAP": _labellings, "MMAP": _labellings, "SAMPLE": _samples}[task]
    diagnostics = plain(result.diagnostics)
    for label, partition, part in zip(labels, _partitions(result), parts(result), strict=False):
        yield {
            "task": task,
            "model": model,
            "row": label if result.batched else None,
            "engine": result.diagnostics["engine"],
            "bound": result.bound,
            **partition,
            "diagnostics": diagnostics,
            **part,
        }


def _partitions(result: Result) -> Iterator[dict[str, Any]]:
    if result.log_partitions is None:
        yield from repeat({"log_partition": None, "log10_partition": None, "log_partition_bounds": None})
        return
    low, high = (np.atleast_1d(side).tolist() for side in result.log_partition_bounds)
    for log_z, *bounds in zip(result.log_partitions.tolist(), low, high, strict=True):
        yield {"log_partition": log_z, "log10_partition": log_z / LOG_10, "log_partition_bounds": bounds}


def _nothing(result: Result) -> Iterator[dict[str, Any]]:
    return repeat({})


def _marginals(result: Result) -> Iterator[dict[str, Any]]:
    names = result.keys()
    spaces = [result.graph.variables[name].states for name in names]
    ends = list(accumulate(map(len, spaces), initial=0))
    columns = list(zip(names, spaces, ends, ends[1:], strict=False))
    for values in np.concatenate([np.atleast_2d(result[name]) for name in names], axis=1):
        p = values.tolist()
        yield {"marginals": {name: dict(zip(states, p[a:b], strict=True)) for name, states, a, b in columns}}


def _labellings(result: Result) -> Iterator[dict[str, Any]]:
    rows = result.solutions if result.batched else [result.solutions]
    bounds, optimal = np.atleast_1d(result.energy_bound).tolist(), np.atleast_1d(result.optimal).tolist()
    for solutions, bound, proven in zip(rows, bounds, optimal, strict=True):
        each = [{"assignment": states, "energy": h, "log10_weight": -h / LOG_10} for states, h in solutions]
        yield {**each[0], "energy_bound": bound, "optimal": proven, "solutions": each}


def _samples(result: Result) -> Iterator[dict[str, Any]]:
    variables = result.graph.variables
    names = variables.names_at(range(len(variables)))
    drawn = result.samples if result.batched else result.samples[None]
    columns = [np.array(variables.states(v), dtype=object)[drawn[:, :, v]] for v in range(len(variables))]
    for row in range(len(drawn)):
        yield {"samples": {name: column[row].tolist() for name, column in zip(names, columns, strict=True)}}
