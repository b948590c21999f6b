"""`python -m tests.ways --minutes 60 --seed 1`: random models, all questions, until the time is over.

The questions are asked in a process of their own, so that one that ends it is a finding like others; the next process
goes on with the next seed. Exit code 1 where anything was found.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from tests.ways.run import QUESTIONS, Routes, ask_everything, forced_routes, no_routes, plain_routes, told

OPTION = {no_routes: "", plain_routes: "--plain", forced_routes: "--routes"}


def main(arguments: list[str] | None = None) -> int:
    """Asks until the time is over or all models are done, and tells what was found."""
    options = parser().parse_args(arguments)
    forced = plain_routes if options.plain else forced_routes if options.routes else no_routes
    ends = time.monotonic() + 60 * options.minutes
    models = answers = findings = 0
    while time.monotonic() < ends and models < options.models:
        for kind, content in told_by_process(options, forced, options.seed + models, ends, options.models - models):
            models += kind != "found"
            answers += content if kind == "done" else 0
            findings += kind != "done"
            if kind != "done":
                print(f"\n{content}", flush=True)
    print(f"\n{models} models from seed {options.seed} on, {answers} answers, {findings} findings")
    return int(findings > 0)


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m tests.ways", description="one quantity, every route")
    made.add_argument("--minutes", type=float, default=1.0, help="how long to go on")
    made.add_argument("--models", type=float, default=float("inf"), help="how many models at most")
    made.add_argument("--seed", type=int, default=0, help="of the first model; the next has the next one")
    made.add_argument("--only", nargs="+", default=(), choices=list(QUESTIONS), help="these questions")
    made.add_argument("--plain", action="store_true", help="kernels as plain Python")
    made.add_argument("--routes", action="store_true", help="the routes of large models, drawn for each model")
    return made


def told_by_process(
    options: argparse.Namespace, forced: Routes, seed: int, ends: float, models: float
) -> Iterator[tuple[str, Any]]:
    """Asks in another process: ("found", text), ("done", answers) of each model, ("died", text) where it did."""
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(there, options.only, forced, seed, ends, models))
    process.start()
    there.close()
    doing = f"seed {seed}"
    try:
        while True:
            kind, content = here.recv()
            if kind == "begun":
                doing = content
            else:
                yield kind, content
    except EOFError:
        process.join()
    if process.exitcode != 0:
        yield "died", f"{doing}: the process ended with {process.exitcode}"


def work(out: Connection, only: list[str], forced: Routes, seed: int, ends: float, models: float) -> None:
    """Asks one model after the other, and sends what it begins, what it finds, and when a model is done."""
    while time.monotonic() < ends and models > 0:
        report = ask_everything(seed, only=only, forced=forced, begin=partial(_send_begun, out, seed))
        for failure in report.failures:
            out.send(("found", told(failure, OPTION[forced])))
        out.send(("done", report.checks))
        seed, models = seed + 1, models - 1
    out.close()


def _send_begun(out: Connection, seed: int, name: str) -> None:
    out.send(("begun", f"seed {seed}, {name}"))
