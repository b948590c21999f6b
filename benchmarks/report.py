"""Results as JSON, as a table, and as a section of RESULTS.md; none of them tells whose machine it was."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.runner import CaseResult, Timing
from benchmarks.suite import OWN

HEADER = ("case", "contestant", "warm-up", "best", "median", "speed", "peak MB", "added MB", "answers")
PREAMBLE = """# Benchmarks

The last figures of each suite, with the command that gives them. All contestants of a case run in turns, in the same
run, one thread each on one core. Warm-up is the first call. Speed is the best time of the first peer, or of the fastest
of those that the suite compares with, over the contestant's: above 1 is faster than that peer. Peak memory is the whole
process's, inputs and libraries included; added memory is what a run after the first put on top of what was there before
it, at most. A peer that needs more time or memory than its case allows is shown with that limit.
"""


@dataclass
class SuiteResult:
    """All cases of a suite and how they were run."""

    suite: str
    title: str
    date: str
    command: str
    repeat: int
    cases: list[CaseResult]
    averaged: bool = False
    scores: tuple[str, ...] = ()

    @property
    def complaints(self) -> list[str]:
        return [f"{case.case}: {text}" for case in self.cases for text in case.complaints]


def machine() -> dict[str, str | int]:
    """What matters for speed and identifies nobody."""
    return {"system": platform.system(), "architecture": platform.machine(), "cpus": os.cpu_count() or 0}


def write_json(result: SuiteResult, folder: Path) -> Path:
    """Everything measured, in folder/<suite>.json."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.suite}.json"
    path.write_text(json.dumps({"machine": machine(), **asdict(result)}, indent=1) + "\n", encoding="utf-8")
    return path


def table(result: SuiteResult) -> str:
    """One row for each case and contestant, aligned, in Markdown."""
    rows = [row(case, timing) for case in result.cases for timing in case.timings]
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    left = {0, 1, len(HEADER) - 1}
    rule = tuple("-" * width if i in left else "-" * (width - 1) + ":" for i, width in enumerate(widths))
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in (HEADER, rule, *rows)
    )


def row(case: CaseResult, timing: Timing) -> tuple[str, ...]:
    """The cells of one contestant."""
    speed = case.speed(timing)
    return (
        case.case,
        timing.contestant,
        duration(timing.warm_up_seconds),
        duration(timing.best),
        duration(timing.median),
        f"{speed:.2f}" if speed else "-",
        f"{timing.peak_bytes / 1e6:.0f}" if timing.peak_bytes else "-",
        f"{timing.added_bytes / 1e6:.0f}" if timing.peak_bytes else "-",
        verdict(case, timing),
    )


def verdict(case: CaseResult, timing: Timing) -> str:
    """Whether the answers of a contestant were compared with another's, and agreed."""
    if timing.error is not None:
        return "failed"
    if timing.exceeded is not None:
        return timing.exceeded
    if case.disagreements:
        return "DISAGREE"
    keys = {key for summary in timing.summaries for key in summary}
    others = {key for other in case.timings if other is not timing for summary in other.summaries for key in summary}
    return "agree" if keys & others else "not compared"


def averages(result: SuiteResult) -> list[str]:
    """For each of besag's own contestants, the geometric mean and the least of its speeds; none where not asked for."""
    speeds: dict[str, dict[str, float]] = {}
    for case in result.cases if result.averaged else ():
        for timing in case.timings:
            if timing.environment == OWN and (speed := case.speed(timing)):
                speeds.setdefault(timing.contestant, {})[case.case] = speed
    return [average(contestant, by_case) for contestant, by_case in speeds.items()]


def average(contestant: str, speeds: Mapping[str, float]) -> str:
    """One line about one contestant."""
    least = min(speeds, key=lambda case: speeds[case])
    mean = statistics.geometric_mean(speeds.values())
    return (
        f"{contestant}: {mean:.2f} in the geometric mean of {len(speeds)} cases, least {speeds[least]:.2f} on {least}"
    )


def scores(result: SuiteResult) -> list[str]:
    """A line for each score of each case, with all contestants that have it; none where not asked for."""
    lines = []
    for case in result.cases:
        for name in result.scores:
            found = {t.contestant: s[name] for t in case.timings for s in t.summaries if name in s}
            if found:
                lines.append(f"{case.case}, {name}: " + ", ".join(f"{who} {score:.4f}" for who, score in found.items()))
    return lines


def duration(seconds: float | None) -> str:
    """Seconds to three digits in a unit that suits them."""
    if seconds is None:
        return "-"
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms")) if seconds >= s), (1e-6, "us"))
    return f"{seconds / scale:.{max(0, 2 - int(math.log10(max(seconds / scale, 1))))}f} {unit}"


def section(result: SuiteResult) -> str:
    """The suite's part of RESULTS.md."""
    used = ", ".join(f"{name} {version}" for name, version in versions(result).items())
    where = "{system} {architecture}, {cpus} CPUs".format_map(machine())
    return "\n".join(
        (
            f"## {result.suite}: {result.title}",
            "",
            f"`{result.command}`, {result.date}; {where}; {used}.",
            "",
            table(result),
            *(f"\n{line}." for line in (*averages(result), *scores(result))),
        )
    )


def versions(result: SuiteResult) -> dict[str, str]:
    """Python, and the packages that are contestants or that besag stands on, with their versions."""
    found: dict[str, str] = {}
    for timing in (timing for case in result.cases for timing in case.timings if timing.error is None):
        found.setdefault("Python", timing.python)
        named = {timing.environment.lower(), *(("numpy", "numba") if timing.environment == OWN else ())}
        for name in sorted(name for name in timing.packages if name.lower() in named):
            found.setdefault(name, timing.packages[name])
    return found


def update_results(result: SuiteResult, path: Path) -> None:
    """Rewrite the suite's section of RESULTS.md, or add it; the other sections stay as they are."""
    update_section(result.suite, section(result), path)


def update_section(name: str, body: str, path: Path) -> None:
    """Put a text between the marks of a section of RESULTS.md, or add it with marks at the end."""
    text = path.read_text(encoding="utf-8") if path.exists() else PREAMBLE
    old = re.compile(rf"<!-- begin {re.escape(name)} -->.*?<!-- end {re.escape(name)} -->", re.DOTALL)
    new = f"<!-- begin {name} -->\n\n{body}\n\n<!-- end {name} -->"
    text = old.sub(lambda _: new, text, count=1) if old.search(text) else f"{text.rstrip()}\n\n{new}\n"
    path.write_text(text, encoding="utf-8")
