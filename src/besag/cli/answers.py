"""A Result as plain data, an object a row of evidence, and those as a table.

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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from besag.infer.result import Result

LOG_10 = math.log(10)
BAR = 20


def answers(task: str, model: str, result: Result, labels: Sequence[str]) -> list[dict[str, Any]]:
    """An object for each row of evidence."""
    parts = {"PR": _nothing, "MAR": _marginals, "MAP": _labellings, "MMAP": _labellings, "SAMPLE": _samples}[task](
        result
    )
    return [
        {
            "task": task,
            "model": model,
            "row": label if result.batched else None,
            "engine": result.diagnostics["engine"],
            "bound": result.bound,
            **_partition(result, row),
            "diagnostics": dict(result.diagnostics),
            **(parts[row] if parts else {}),
        }
        for row, label in enumerate(labels)
    ]


def _partition(result: Result, row: int) -> dict[str, Any]:
    if result.log_partitions is None:
        return {"log_partition": None, "log10_partition": None, "log_partition_bounds": None}
    log_z = float(result.log_partitions[row])
    bounds = [float(np.atleast_1d(side)[row]) for side in result.log_partition_bounds]
    return {"log_partition": log_z, "log10_partition": log_z / LOG_10, "log_partition_bounds": bounds}


def _nothing(result: Result) -> list[dict[str, Any]]:
    return []


def _marginals(result: Result) -> list[dict[str, Any]]:
    variables = result.graph.variables
    columns = [(name, variables[name].states, np.atleast_2d(result[name]).tolist()) for name in result]
    rows = range(len(columns[0][2]) if columns else 1)
    return [
        {"marginals": {name: dict(zip(states, p[row], strict=True)) for name, states, p in columns}} for row in rows
    ]


def _labellings(result: Result) -> list[dict[str, Any]]:
    rows = result.solutions if result.batched else [result.solutions]
    bounds, optimal = np.atleast_1d(result.energy_bound).tolist(), np.atleast_1d(result.optimal).tolist()
    found = []
    for solutions, bound, proven in zip(rows, bounds, optimal, strict=True):
        each = [{"assignment": states, "energy": h, "log10_weight": -h / LOG_10} for states, h in solutions]
        found.append({**each[0], "energy_bound": bound, "optimal": proven, "solutions": each})
    return found


def _samples(result: Result) -> list[dict[str, Any]]:
    variables = result.graph.variables
    names = variables.names_at(range(len(variables)))
    spaces = [np.array(space, dtype=object) for space in variables.spaces]
    rows = result.samples if result.batched else result.samples[None]
    return [
        {
            "samples": {
                name: spaces[space][drawn[:, v]].tolist()
                for v, (name, space) in enumerate(zip(names, variables.space_of.tolist(), strict=True))
            }
        }
        for drawn in rows
    ]


Table = tuple[list[str], list[str], list[list[str]]]


def table_of(found: Sequence[dict[str, Any]], terminal: bool) -> Table:
    """Notes, header and rows; for people, or with a value in every cell and all digits."""
    task = found[0]["task"]
    if task == "PR":
        return [_how(found[0])], *_labelled(found, ["log Z", "log10 Z"], _partition_rows)
    if task == "MAR":
        header = ["variable", "state", "probability"] + ([""] if terminal else [])
        notes = [_log_z(found[0]), _how(found[0])] if len(found) == 1 else [_how(found[0])]
        return notes, *_labelled(found, header, lambda answer: _marginal_rows(answer, terminal))
    if task == "SAMPLE":
        return [], *_labelled(
            found, list(found[0]["samples"]), lambda answer: zip(*answer["samples"].values(), strict=True)
        )
    if len(found) == 1 and len(found[0]["solutions"]) == 1:
        rows = [list(pair) for pair in found[0]["assignment"].items()]
        return [_weight(found[0]), _how(found[0])], ["variable", "state"], rows
    header = ["rank", "energy", "log10 weight", *found[0]["assignment"]]
    return [_how(found[0])], *_labelled(found, header, lambda answer: _solution_rows(answer, 6 if terminal else 12))


def _labelled(found: Sequence[dict[str, Any]], header: list[str], rows_of: Any) -> tuple[list[str], list[list[str]]]:
    """Header and rows of all answers, with the labels of the evidence's rows in front where there are several."""
    if found[0]["row"] is None:
        return header, [list(row) for row in rows_of(found[0])]
    return ["row", *header], [[answer["row"], *row] for answer in found for row in rows_of(answer)]


def _partition_rows(answer: dict[str, Any]) -> list[list[str]]:
    return [[_number(answer["log_partition"]), _number(answer["log10_partition"])]]


def _marginal_rows(answer: dict[str, Any], terminal: bool) -> list[list[str]]:
    rows = []
    for name, states in answer["marginals"].items():
        for i, (state, p) in enumerate(states.items()):
            if terminal:
                rows.append([name if i == 0 else "", state, _probability(p), "#" * round(BAR * p)])
            else:
                rows.append([name, state, f"{p:.12g}"])
    return rows


def _solution_rows(answer: dict[str, Any], digits: int) -> list[list[str]]:
    return [
        [str(rank), _number(one["energy"], digits), _number(one["log10_weight"], digits), *one["assignment"].values()]
        for rank, one in enumerate(answer["solutions"], 1)
    ]


def _how(answer: dict[str, Any]) -> str:
    reason = answer["diagnostics"].get("reason")
    return f"{answer['bound']}, by {answer['engine']}" + (f": {reason}" if reason else "")


def _log_z(answer: dict[str, Any]) -> str:
    return f"log Z = {_number(answer['log_partition'])}, log10 Z = {_number(answer['log10_partition'])}"


def _weight(answer: dict[str, Any]) -> str:
    gap = answer["energy"] - answer["energy_bound"]
    proof = "proven optimal" if answer["optimal"] else f"not proven optimal, the gap is {gap:.6g}"
    return f"energy = {_number(answer['energy'])}, log10 weight = {_number(answer['log10_weight'])}, {proof}"


def _number(value: float, digits: int = 12) -> str:
    return f"{value if abs(value) > 1e-12 else 0.0:.{digits}g}"


def _probability(p: float) -> str:
    return f"{p:.6f}" if p == 0 or p >= 5e-7 else f"{p:.1e}"
