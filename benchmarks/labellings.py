"""How good labellings are within a time limit: UAI 2014, tasks MAP and MMAP, scored as in the 2022 competition.

    python -m benchmarks.accuracy --task MAP --seconds 20 --engines auto toulbar2 [--only TEXT ...] [--update-results]

    score = 100 (value - least) / (best - least), from 0 to 100            value = log10 of the weight of the answer

best is the best that any solver of 2022 came to in any time (to one decimal, so that half of one is no difference).
The competition does not say what `least` is: it is taken from its printed scores between 0 and 100, or else is the
lowest printed value; where nothing tells, a value below the best scores 0. Where the best known lies above what a bound
of ours, or log Z, proves to be possible, it belongs to another question, and the instance is left out of the means.
"""

from __future__ import annotations

import csv
import math
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.networks import FOLDER as NETWORKS

DATA = NETWORKS.parent / "uai2014"
BOARDS = NETWORKS.parent / "uai2022_leaderboards"
PHASE, TASKS = "tuning_uai2014set", {"MAP": "MPE", "MMAP": "MMAP"}
PRINTED = 0.05 + 1e-9  # half of a printed decimal
LEAST_SHARE = 0.02  # of a score below 100 from which `least` can be told


class Question(NamedTuple):
    """A model with evidence, and what is known of its best labelling: log10 values, nan where there is none."""

    name: str
    path: Path
    best: float
    least: float


def questions(task: str, only: list[str]) -> list[Question]:
    """All instances of a task, with one of the texts in their names."""
    known = _boards(TASKS[task])
    found = []
    for path in sorted((DATA / "MAP").glob("*.uai.gz")):
        name = path.name.removesuffix(".uai.gz")
        asked = task == "MAP" or (DATA / "MMAP" / f"{name}.uai.query").exists()
        if asked and any(text in name for text in only):
            found.append(Question(name, path, *known.get(name, (math.nan, math.nan))))
    return found


def _boards(task: str) -> dict[str, tuple[float, float]]:
    """{instance: (best, least)}."""
    best: dict[str, float] = {}
    boards: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with (BOARDS / "scores_long.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            value = float(row["value"]) if row["value"] else math.nan
            if row["phase"] == PHASE and row["task"] == task and math.isfinite(value):
                name = row["problem"]
                best[name] = max(value, best.get(name, -math.inf))
                boards.setdefault((name, row["timelimit"]), []).append((float(row["score"]), value))
    with (BOARDS / "best_values.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["phase"] == PHASE and row["task"] == task and row["value_log10"]:
                best[row["problem"]] = max(float(row["value_log10"]), best.get(row["problem"], -math.inf))
    return {name: (value, _least([b for (n, _), b in boards.items() if n == name])) for name, value in best.items()}


def _least(boards: list[list[tuple[float, float]]]) -> float:
    """What scored 0: from the score that tells it best."""
    told = []
    for rows in boards:
        best = max(value for _, value in rows)
        for score, value in rows:
            share = 1.0 - score / 100.0
            if LEAST_SHARE < share < 1.0 and best - value > 2 * PRINTED:
                told.append((best - value, best - (best - value) / share))
    if told:
        return max(told)[1]
    return min((value for rows in boards for score, value in rows if score == 0), default=math.nan)


def answer(task: str, path: Path, engine: str, seconds: float, threads: int | None, began: float) -> dict[str, Any]:
    """What an engine says of an instance."""
    import besag
    from besag.io import read_uai_evidence, read_uai_query

    warnings.simplefilter("ignore")
    model = besag.load(path)
    evidence = read_uai_evidence(path.with_name(path.name.removesuffix(".gz") + ".evid"))
    options: dict[str, Any] = {"engine": engine, "n_threads": threads}
    left = max(0.1, seconds - (time.time() - began))
    if task == "MAP":
        result = model.map(evidence=evidence, time_limit=left, **options)
    else:
        query = DATA / "MMAP" / path.name.replace(".gz", ".query")
        result = model.marginal_map(read_uai_query(query), evidence, time_limit=left, **options)
    return {
        "seconds": time.time() - began,
        "value": -result.energy / math.log(10),
        "bound": -result.energy_bound / math.log(10),
        "optimal": bool(result.optimal),
        "engine": result.diagnostics["engine"],
    }


def score(row: dict[str, Any]) -> float:
    """Of an answer, from 0 to 100; nan where nothing is known to compare it with."""
    best, least = row["best"], row["least"]
    if math.isnan(best) or row.get("bound", math.inf) < best - PRINTED:
        return math.nan
    value = row.get("value", -math.inf)
    if value >= best - PRINTED:
        return 100.0
    if math.isnan(least) or least >= best or not math.isfinite(value):
        return 0.0
    return float(np.clip(100.0 * (value - least) / (best - least), 0.0, 100.0))


def tables(rows: list[dict[str, Any]]) -> str:
    """A line for each family and engine, and one for each answer that is not the best known."""
    lines = [
        "| family | engine | models | answered | mean score | at 100 | proven | other question |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    families = sorted({row["instance"].partition("_")[0] for row in rows})
    for family in [*families, "all"]:
        for engine in dict.fromkeys(row["asked"] for row in rows):
            own = [r for r in rows if r["asked"] == engine and family in ("all", r["instance"].partition("_")[0])]
            scores = [score(row) for row in own]
            known = [value for value in scores if not math.isnan(value)]
            mean = f"{np.mean(known):.1f}" if known else "-"
            answered = sum(math.isfinite(row.get("value", math.nan)) for row in own)
            proven, best = sum(bool(row.get("optimal")) for row in own), sum(value == 100 for value in known)
            lines.append(
                f"| {family} | {engine} | {len(own)} | {answered} | {mean} | {best} | {proven} "
                f"| {len(scores) - len(known)} |"
            )
    lines += ["", "| instance | engine | log10 value | bound | best known | score | seconds |",
              "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for row in rows:
        value = score(row)
        if value == 100:
            continue
        told = f"{row['value']:.2f} | {row['bound']:.2f}" if "value" in row else f"{row.get('error', '')[:60]} | "
        shown = "other question" if math.isnan(value) else f"{value:.1f}"
        rest = f"{row['best']:.1f} | {shown} | {row.get('seconds', math.nan):.1f}"
        lines.append(f"| {row['instance']} | {row['asked']} | {told} | {rest} |")
    return "\n".join(lines)
