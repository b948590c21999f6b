"""`besag warmup`: what compiles at first questions is compiled ahead."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from besag.cli.messages import ANSWERED, BAD_INPUT, not_among, tell
from besag.cli.shared import read_count

HELP = "compile the kernels of the usual questions for this machine, ahead of the first question"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="of these questions only; --list names them")
    parser.add_argument("--list", action="store_true", help="name the questions and compile nothing")
    parser.add_argument("--jobs", type=read_count, metavar="N", help="processes at once (default: one a core)")
    parser.add_argument(
        "--ship", action="store_true", help="for a baseline processor into the package itself: for who builds a wheel"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compiles, a line for each question that is done."""
    from besag.warmup.questions import QUESTIONS

    if arguments.list:
        for name, question in QUESTIONS.items():
            print(f"{name:<18}{question.__doc__}")
        return ANSWERED
    for name in arguments.questions:
        if name not in QUESTIONS:
            arguments.refuse(not_among(name, list(QUESTIONS)))
    return _compile(arguments.questions or list(QUESTIONS), arguments.jobs, to_ship=arguments.ship)


def _compile(questions: Sequence[str], n_jobs: int | None, *, to_ship: bool) -> int:
    from besag.warmup.workers import can_ship, ship, shipped_bytes, warm

    if to_ship and not can_ship():
        tell("this machine does not run code for x86-64-v3: the package goes without compiled kernels")
        return ANSWERED
    began, failed = time.perf_counter(), 0
    for i, (name, seconds, wrong) in enumerate((ship if to_ship else warm)(questions, n_jobs)):
        failed += bool(wrong)
        print(f"{i + 1:>3}/{len(questions)}  {name:<18}{wrong or f'{seconds:.1f} s'}", flush=True)
    told = f"{shipped_bytes() / 1e6:.1f} MB in the package" if to_ship else "kernels lie ready for this machine"
    print(f"{told}, after {time.perf_counter() - began:.0f} s")
    return BAD_INPUT if failed else ANSWERED
