"""How close engines come to published answers within a time limit: UAI 2014, tasks PR and MAR; MAP and MMAP.

    python -m benchmarks.accuracy --seconds 20 --engines auto [--only TEXT ...] [--update-results]
    python -m benchmarks.accuracy --seconds 20 --engines bp trw gibbs --jobs 2 --resume --update-results

Each engine answers each instance in a process of its own, which has so many seconds for everything from the first
import on; a process that takes half as long again is ended, and has no answer. It has all cores, or with --jobs one of
them, while as many others run beside it. Answers are kept in benchmarks/results, so that --resume asks only for what is
missing; what an engine that does not heed the limit before it is reached (STEADY) answered well within a shorter limit,
it answers within a longer one. Several engines share one table. Errors are against the competition's own answers, or
exact ones where `verify_*.csv` has them:

    log10 Z         |log10 Z - log10 Z*|
    Hellinger       mean over free variables of sqrt(sum_k (sqrt p_k - sqrt p*_k)^2 / 2)
    largest         of |p_k - p*_k| over all variables and states

The 2022 competition printed log10 Z to one decimal: its solvers' errors are those of the printed numbers. With
--task MAP or MMAP it is the best labelling that is asked for; `benchmarks.labellings` says how that is scored.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import labellings
from benchmarks.networks import FOLDER as NETWORKS
from benchmarks.report import update_section

DATA = NETWORKS.parent / "uai2014"
LEADERBOARD = NETWORKS.parent / "uai2022_leaderboards" / "scores_long.csv"
RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
KEPT = RESULTS.parent / "results"
STEADY = ("bp", "trw", "mean_field", "gibbs", "ais")
WELL_WITHIN = 0.8  # of a limit
WRONG = ("relational_1", "relational_2", "relational_3", "relational_4", "relational_5", "sat-grid-pbl-0010.cnf")


class Instance(NamedTuple):
    """A model with evidence, and what is known of it."""

    name: str
    path: Path
    log10_z: float


def instances(only: list[str]) -> list[Instance]:
    """All instances whose reference is not known to be wrong, with one of the texts in their names."""
    exact = {}
    for task in ("MAR", "PR"):
        with (DATA / f"verify_{task}.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                if row["ln_Z_exact"]:
                    exact[row["name"].removesuffix(".uai")] = float(row["ln_Z_exact"]) / math.log(10)
    found = []
    for path in sorted([*(DATA / "MAR").glob("*.uai.gz"), *(DATA / "PR").glob("*.uai.gz")]):
        name = path.name.removesuffix(".uai.gz")
        answer = path.with_name(f"{name}.uai.PR")
        if name not in WRONG and any(text in name for text in only) and answer.exists():
            found.append(Instance(name, path, exact.get(name, float(answer.read_text().split()[1]))))
    return found


def answer(path: Path, engine: str, seconds: float, threads: int | None, began: float) -> dict[str, Any]:
    """What an engine says of an instance, and its errors in the marginals."""
    import besag
    from besag.io import read_uai_evidence

    warnings.simplefilter("ignore")
    model = besag.load(path)
    evidence = read_uai_evidence(path.with_name(path.name.removesuffix(".gz") + ".evid"))
    left = max(0.1, seconds - (time.time() - began))
    result = model.marginals(evidence=evidence, engine=engine, time_limit=left, n_threads=threads)
    log_z = result.log_partition if result.log_partitions is not None else math.nan
    low, high = result.log_partition_bounds if result.log_partitions is not None else (-math.inf, math.inf)
    told: dict[str, Any] = {
        "seconds": time.time() - began,
        "log10_z": log_z / math.log(10),
        "low": low / math.log(10),
        "high": high / math.log(10),
        "bound": result.bound,
        "engine": result.diagnostics["engine"],
    }
    solution = path.with_name(path.name.removesuffix(".gz") + ".MAR")
    if solution.exists():
        told |= errors(result, solution, evidence)
    return told


def errors(result: Any, solution: Path, evidence: dict[str, str]) -> dict[str, float]:
    """Mean Hellinger distance over free variables, and the largest error of all."""
    _, count, *words = solution.read_text().split()
    at, distances, largest = 0, [], 0.0
    for variable in range(int(count)):
        n = int(words[at])
        true = np.array(words[at + 1 : at + 1 + n], np.float64)
        p = result[str(variable)]
        at += 1 + n
        largest = max(largest, float(np.abs(p - true).max()))
        if str(variable) not in evidence:
            distances.append(math.sqrt(float(((np.sqrt(p) - np.sqrt(true)) ** 2).sum()) / 2))
    return {"hellinger": float(np.mean(distances)), "largest": largest}


def ask(path: Path, task: str, engine: str, seconds: float, threads: int | None) -> dict[str, Any]:
    """The answer of a process of its own; {"error"} where there is none."""
    question = [str(path), task, engine, str(seconds), str(threads or 0)]
    command = [sys.executable, "-m", "benchmarks.accuracy", "--one", *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1.5 * seconds + 5, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "no answer in time"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "no answer"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Answers:
    """All answers within a limit, in a file that grows by a line for each."""

    def __init__(self, seconds: int, resume: bool, task: str = "PR") -> None:
        KEPT.mkdir(exist_ok=True)
        name = "accuracy" if task == "PR" else f"accuracy_{task.lower()}"
        self.file = KEPT / f"{name}-{seconds}.jsonl"
        self.rows = self._read(self.file) if resume else {}
        if not resume:
            self.file.unlink(missing_ok=True)
        shorter = [self._read(path) for path in KEPT.glob(f"{name}-*.jsonl") if _limit(path) < seconds]
        self.settled = {
            key: row
            for rows in shorter
            for key, row in rows.items()
            if key[1] in STEADY and row.get("seconds", math.inf) < WELL_WITHIN * row["limit"]
        }

    @staticmethod
    def _read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return {(row["instance"], row["asked"]): row for row in map(json.loads, lines)}

    def has(self, instance: str, engine: str) -> bool:
        """Whether nothing is left to ask."""
        key = (instance, engine)
        if key in self.settled and key not in self.rows:
            self.rows[key] = self.settled[key]
        return key in self.rows

    def add(self, row: dict[str, Any]) -> None:
        """Keep an answer."""
        self.rows[row["instance"], row["asked"]] = row
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _limit(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def leaderboard(seconds: int) -> dict[str, dict[str, float]]:
    """{instance: {solver: log10 Z}} of the 2022 competition at a limit of 20 s; 1200 s beside longer limits."""
    limit = "20sec" if seconds <= 20 else "1200sec"
    found: dict[str, dict[str, float]] = {}
    with LEADERBOARD.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["phase"] == "tuning_uai2014set" and row["task"] == "PR" and row["timelimit"] == limit:
                value = float(row["value"]) if row["value"] not in ("", "nan") else math.nan
                found.setdefault(row["problem"], {})[row["solver"]] = value
    return found


def shown(value: float | None, digits: str = ".2g") -> str:
    """A number of a table."""
    return "-" if value is None or math.isnan(value) else "0" if value < 1e-9 else format(value, digits)


def best_peer(row: dict[str, Any], board: dict[str, dict[str, float]]) -> str:
    """The solver of 2022 that came closest, and its error."""
    solvers = {s: abs(v - row["true"]) for s, v in board.get(row["instance"], {}).items() if not math.isnan(v)}
    best = min(solvers, key=lambda solver: solvers[solver]) if solvers else None
    return f"{best} {shown(solvers[best])}" if best else "-"


def side_by_side(rows: list[dict[str, Any]], seconds: int) -> str:
    """A line for each instance, with the three errors of each engine."""
    board = leaderboard(seconds)
    engines = list(dict.fromkeys(row["asked"] for row in rows))
    lines = [
        "log10 Z error / mean Hellinger distance / largest error of a marginal, and * where the limit ended the work:",
        "",
        f"| instance | {' | '.join(engines)} | best of 2022 |",
        f"| --- |{' --- |' * (len(engines) + 1)}",
    ]
    by_instance: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_instance.setdefault(row["instance"], {})[row["asked"]] = row
    for instance, found in by_instance.items():
        cells = [cell(found[engine], seconds) if engine in found else "" for engine in engines]
        peer = best_peer(next(iter(found.values())), board)
        lines.append(f"| {instance} | {' | '.join(cells)} | {peer} |")
    return "\n".join([*lines, "", *summary(rows, board)])


def cell(row: dict[str, Any], seconds: int) -> str:
    """The errors of one engine on one instance."""
    if "error" in row:
        return "no answer"
    numbers = (abs(row["log10_z"] - row["true"]), row.get("hellinger"), row.get("largest"))
    return " / ".join(shown(number) for number in numbers) + ("*" if row["seconds"] > WELL_WITHIN * seconds else "")


def table(rows: list[dict[str, Any]], seconds: int) -> str:
    """A line for each instance and engine, and the best of the 2022 solvers."""
    board = leaderboard(seconds)
    lines = [
        "| instance | engine | log10 Z error | log10 Z within | Hellinger | largest | seconds | best of 2022 |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        peer = best_peer(row, board)
        if "error" in row:
            lines.append(f"| {row['instance']} | {row['asked']} | {row['error'][:60]} | | | | | {peer} |")
            continue
        error, inside = abs(row["log10_z"] - row["true"]), f"{row['low']:.6g} to {row['high']:.6g}"
        who = row["asked"] if row["engine"] == row["asked"].partition("[")[0] else f"{row['asked']}: {row['engine']}"
        inside = "exact" if row["bound"] == "exact" else inside
        lines.append(
            f"| {row['instance']} | {who} | {shown(error)} | {inside} | {shown(row.get('hellinger'))} "
            f"| {shown(row.get('largest'))} | {row['seconds']:.1f} | {peer} |"
        )
    return "\n".join([*lines, "", *summary(rows, board)])


def summary(rows: list[dict[str, Any]], board: dict[str, dict[str, float]]) -> list[str]:
    """For each engine: how often it is at least as close as the best of the 2022 solvers, to the printed decimal."""
    lines = []
    for engine in dict.fromkeys(row["asked"] for row in rows):
        own = [row for row in rows if row["asked"] == engine]
        told = [row for row in own if "error" not in row]
        answered = [row for row in told if not math.isnan(row["log10_z"])]
        if told and not answered:
            lines.append(f"- `{engine}`: {len(told)} of {len(own)} answered, with marginals and no log Z.")
            continue
        close, compared = 0, 0
        for row in own:
            values = [abs(v - row["true"]) for v in board.get(row["instance"], {}).values() if not math.isnan(v)]
            if values:
                compared += 1
                error = abs(row["log10_z"] - row["true"]) if "error" not in row else math.inf
                close += error <= max(min(values), 0.05)
        exact = sum(row["bound"] == "exact" for row in answered)
        lines.append(
            f"- `{engine}`: {len(answered)} of {len(own)} answered, {exact} of them exactly; at least as close as the "
            f"best of the 2022 solvers, to its printed decimal, on {close} of {compared}."
        )
    return lines


def main(arguments: list[str]) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=["PR", "MAP", "MMAP"], default="PR", help="PR asks for marginals too")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--engines", nargs="+", default=["auto"])
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="only instances with one of these texts"
    )
    parser.add_argument("--jobs", type=int, default=1, help="instances side by side, with one thread each")
    parser.add_argument("--resume", action="store_true", help="ask only for answers that are not there yet")
    parser.add_argument("--update-results", action="store_true", help="rewrite the section of RESULTS.md")
    options = parser.parse_args(arguments)
    if options.one:
        path, task, engine, seconds, threads = options.one
        given = (Path(path), engine, float(seconds), int(threads) or None)
        found = answer(*given, time.time()) if task == "PR" else labellings.answer(task, *given, time.time())
        sys.stdout.write(json.dumps(found))
        return 0
    answers = Answers(options.seconds, options.resume, options.task)
    known: Sequence[Instance | labellings.Question] = instances(options.only)
    if options.task != "PR":
        known = labellings.questions(options.task, options.only)
    asked = [(instance, engine) for instance in known for engine in options.engines]

    def work(question: tuple[Instance | labellings.Question, str]) -> None:
        instance, engine = question
        if not answers.has(instance.name, engine):
            found = ask(instance.path, options.task, engine, options.seconds, None if options.jobs == 1 else 1)
            told = {"instance": instance.name, "asked": engine, "limit": options.seconds}
            if isinstance(instance, Instance):
                told["true"] = instance.log10_z
            else:
                told |= {"best": instance.best, "least": instance.least}
            answers.add(told | found)
            sys.stderr.write(f"{instance.name} {engine}: {found}\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, asked))
    rows = [answers.rows[instance.name, engine] for instance, engine in asked]
    several = len(options.engines) > 1
    if options.task != "PR":
        text = labellings.tables(rows)
    else:
        text = (side_by_side if several else table)(rows, options.seconds)
    sys.stdout.write(text + "\n")
    if options.update_results:
        section = f"uai-{options.seconds}" + ("-engines" if several else "")
        what = "log Z and marginals"
        if options.task != "PR":
            section, what = f"uai-{options.task.lower()}-{options.seconds}", f"task {options.task}"
        room = "two threads" if options.jobs == 1 else "one thread"
        title = f"## {section}: {what} of UAI 2014 within {options.seconds} s, {room}"
        command = f"`python -m benchmarks.accuracy {' '.join(arguments)}`, {date.today().isoformat()}."
        update_section(section, f"{title}\n\n{command}\n\n{text}", RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
