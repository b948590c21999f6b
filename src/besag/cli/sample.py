"""`besag sample`: draws from p(y | evidence) as comma-separated values, a line a draw."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

from besag.cli.messages import ANSWERED
from besag.cli.shared import add_evidence, add_model, read_count, read_model, read_one_row, read_seconds, read_seed

HELP = "draw labellings of a model, as comma-separated values"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser)
    parser.add_argument("-n", "--samples", type=read_count, default=1000, metavar="N", help="draws (default: 1000)")
    add_evidence(parser)
    parser.add_argument("--seed", type=read_seed, default=0, help="of all that is random (default: 0)")
    parser.add_argument("--engine", default="auto", metavar="TEXT", help='such as "exact" or "gibbs" (default: auto)')
    parser.add_argument("--time-limit", type=read_seconds, metavar="S", help="give up after so many seconds")
    parser.add_argument("--out", metavar="FILE", help="a file to write instead of standard output")


def run(arguments: argparse.Namespace) -> int:
    """Draws and prints."""
    model, _ = read_model(arguments)
    evidence = read_one_row(arguments, model)
    options = {name: getattr(arguments, name) for name in ("engine", "seed", "time_limit")}
    drawn = model.sample(arguments.samples, evidence, **options)
    with nullcontext(sys.stdout) if arguments.out is None else Path(arguments.out).open("w", encoding="utf-8") as file:
        drawn.to_csv(file, index=False, lineterminator="\n")
    return ANSWERED
