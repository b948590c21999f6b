"""Arguments of training that all kinds take, and what is said at its end."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from besag.cli.messages import ANSWERED, BEYOND_LIMITS, INTERRUPTED, tell
from besag.cli.shared import read_count, read_seconds

if TYPE_CHECKING:
    from besag.estimators.learner import Learner

DONE = ("converged", "early_stopping", "no_progress")


def add_training(parser: argparse.ArgumentParser) -> None:
    """Penalties, limits, and what is told on the way."""
    parser.add_argument("--l1", type=_strength, default=0.0, metavar="X", help="weight of ||theta||_1 (default: 0)")
    parser.add_argument("--l2", type=_strength, default=1.0, metavar="X", help="weight of ||theta||^2 (default: 1)")
    parser.add_argument(
        "--max-iter", type=read_count, default=1000, metavar="N", help="of the optimiser (default: 1000)"
    )
    parser.add_argument("--time-limit", type=read_seconds, metavar="S", help="keep the best after so many seconds")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="go on from this file, and keep the state there"
    )
    parser.add_argument("--threads", type=read_count, metavar="N", help="at most so many (default: all cores)")
    parser.add_argument("--progress", action="store_true", help="tell on stderr how far the fit has come")


def training_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of an estimator."""
    return {
        "l1": arguments.l1,
        "l2": arguments.l2,
        "max_iter": arguments.max_iter,
        "time_limit": arguments.time_limit,
        "n_jobs": arguments.threads,
        "verbose": arguments.progress,
    }


def finish(estimator: Learner, target: str, notes: dict[str, Any], facts: Iterable[tuple[str, str]]) -> int:
    """Writes the file, prints what was learnt, and gives the exit code."""
    from besag.cli.output import print_pairs

    estimator.set_params(verbose=False, time_limit=None)  # of this run, and not of those who load it
    estimator.notes_ = notes
    estimator.save(target)
    about = [*facts, ("iterations", str(estimator.n_iter_)), ("ended", str(estimator.stopped_))]
    print_pairs([*about, ("objective", f"{estimator.objective_:.6g}"), ("model", target)])
    if estimator.stopped_ == "interrupted":
        tell(f"interrupted: {target} has the best so far")
        return INTERRUPTED
    return ANSWERED if estimator.stopped_ in DONE else BEYOND_LIMITS


def _strength(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, got {text!r}")
    return value
