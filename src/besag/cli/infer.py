"""`besag infer`: answers of a model, as the tasks of the UAI competitions name them.

PR        log Z; for a Bayesian network log P(evidence)
MAR       marginals of all variables, or of those that --query names
MAP       the labelling of least energy, or the -k best
MMAP      the most probable joint state of the variables that --query names, all others summed out
SAMPLE    -n draws from p(y | evidence)
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from besag.cli.messages import ANSWERED, BEYOND_LIMITS, INTERRUPTED, tell
from besag.cli.shared import add_choice, add_evidence, add_model, read_count, read_model, read_seconds, read_seed
from besag.errors import EvidenceError

if TYPE_CHECKING:
    from besag.cli.rows import EvidenceRows
    from besag.graph.evidence import Evidence
    from besag.infer.engine import Engine
    from besag.infer.result import Result
    from besag.model.model import Model
    from besag.query.run import Options

HELP = "log Z, marginals, the most probable states, or samples of a model"
TASKS = ("PR", "MAR", "MAP", "MMAP", "SAMPLE")
FORMATS = ("table", "csv", "json", "jsonl", "uai")
LAST_RESORT, SETTING_UP = 2.0, 30.0  # times the limit, and seconds for kernels that have to be compiled first
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser)
    add_choice(parser, "--task", TASKS, "MAR", "what is asked")
    add_evidence(parser)
    parser.add_argument(
        "--query", nargs="+", action="extend", metavar="NAME|FILE", help="the variables that MAR or MMAP is asked for"
    )
    parser.add_argument("-k", type=read_count, metavar="N", help="MAP: the N best labellings")
    parser.add_argument("-n", "--samples", type=read_count, metavar="N", help="SAMPLE: how many draws (default: 1)")
    parser.add_argument("--seed", type=read_seed, default=0, help="of all that is random (default: 0)")
    parser.add_argument("--engine", default="auto", metavar="TEXT", help='such as "tree" or "brute" (default: auto)')
    parser.add_argument("--threads", type=read_count, metavar="N", help="at most so many (default: all cores)")
    parser.add_argument("--time-limit", type=read_seconds, metavar="S", help="give up after so many seconds")
    parser.add_argument("--memory-limit", type=_bytes, metavar="BYTES", help="use at most so many, as in 500M or 4G")
    add_choice(parser, "--format", FORMATS, "table", "of the answer")
    parser.add_argument("--progress", action="store_true", help="tell on stderr what is being done")


def run(arguments: argparse.Namespace) -> int:
    """Answers and prints."""
    _check(arguments)
    from besag.cli.evidence import gather_evidence, read_query
    from besag.query.run import engine_from

    began, options, say = time.perf_counter(), _options(arguments), _teller(arguments.progress)
    with _ended_by(arguments.time_limit, exact=_is_exact(engine_from(options))):
        say(f"reading {arguments.model}")
        model, _ = read_model(arguments)
        given = gather_evidence(model, arguments.evidence)
        if arguments.format == "uai" and len(given) > 1:
            arguments.refuse(f"--format uai holds one answer, and the evidence has {len(given)} rows")
        query = None if arguments.query is None else read_query(model, arguments.query)
        say(f"{model!r}")
        say(f"answering {arguments.task} with engine {arguments.engine}, {len(given)} rows of evidence")
        if arguments.time_limit is not None:  # reading is part of it
            options["time_limit"] = max(arguments.time_limit - (time.perf_counter() - began), 1e-3)
        result = _ask(arguments, model, given, query, options)
        say(f"{result!r}")
    if result.energies is not None and (result.energies[:, 0] == math.inf).any():
        return BEYOND_LIMITS  # the warning has said that there is no labelling to print
    _print(arguments, result, model, query, given.labels)
    if result.diagnostics.get("stopped") == "interrupted":
        tell("interrupted: this is the best answer so far")
        return INTERRUPTED
    return ANSWERED if result.diagnostics.get("converged", True) else BEYOND_LIMITS


def _is_exact(engine: Engine) -> bool:
    """Whether an engine has nothing to show before it is done; others give what they have when they are stopped."""
    from besag.infer.auto.engine import Auto

    return engine.capabilities.bound == "exact" and not isinstance(engine, Auto)


def _print(
    arguments: argparse.Namespace, result: Result, model: Model, query: list[str] | None, labels: Sequence[str]
) -> None:
    if arguments.format == "uai":
        from besag.io.uai.tasks import result_text

        sys.stdout.write(result_text(arguments.task, result, model, query))
    else:
        _show(arguments, result, labels)


def _show(arguments: argparse.Namespace, result: Result, labels: Sequence[str]) -> None:
    from besag.cli.answers import answers
    from besag.cli.output import on_terminal, print_csv, print_json, print_json_lines, print_json_list, print_table
    from besag.cli.tables import table_of

    if arguments.format == "table":
        print_table(*table_of(arguments.task, result, labels, on_terminal()))
    elif arguments.format == "csv":
        found = table_of(arguments.task, result, labels, terminal=False)
        print_csv(found.header, found.parts)
    elif arguments.format == "jsonl":
        print_json_lines(answers(arguments.task, arguments.model, result, labels))
    elif result.batched:
        print_json_list(answers(arguments.task, arguments.model, result, labels))
    else:
        print_json(next(answers(arguments.task, arguments.model, result, labels)))


def _check(arguments: argparse.Namespace) -> None:
    """Usage that is wrong whatever the model is."""
    task = arguments.task
    if task == "MMAP" and arguments.query is None:
        arguments.refuse("--task MMAP needs --query: the variables that are not summed out")
    if task not in ("MAR", "MMAP") and arguments.query is not None:
        arguments.refuse(f"--query goes with MAR and MMAP, not with {task}")
    if task != "MAP" and arguments.k is not None:
        arguments.refuse(f"-k goes with MAP, not with {task}")
    if task != "SAMPLE" and arguments.samples is not None:
        arguments.refuse(f"-n (--samples) goes with SAMPLE, not with {task}")
    if task == "SAMPLE" and arguments.format == "uai":
        arguments.refuse("the UAI competitions have no form for samples: take --format table or json")
    if task == "MAR" and arguments.format == "uai" and arguments.query is not None:
        arguments.refuse("--format uai holds the marginals of all variables: leave --query out, or take another format")
    if arguments.format == "uai" and arguments.k is not None:
        arguments.refuse("--format uai holds one labelling: take --format table or json for the -k best")


def _options(arguments: argparse.Namespace) -> Options:
    return {
        "engine": arguments.engine,
        "time_limit": arguments.time_limit,
        "memory_limit": arguments.memory_limit,
        "seed": arguments.seed,
        "n_threads": arguments.threads,
        "progress": arguments.progress,
    }


def _ask(
    arguments: argparse.Namespace, model: Model, given: EvidenceRows, query: list[str] | None, options: Options
) -> Result:
    try:
        return _answer(arguments, model, given.evidence(), query, options)
    except EvidenceError as error:
        raise given.locate(error) from None


def _answer(
    arguments: argparse.Namespace, model: Model, evidence: Evidence, query: list[str] | None, options: Options
) -> Result:
    from besag.query.run import run as run_query
    from besag.query.verbs import draw

    task = arguments.task
    if task == "PR":
        return run_query(model, {"log_partition"}, evidence, options)
    if task == "MAR":
        return model.marginals(query, evidence, **options)
    if task == "MAP":
        return model.map(evidence, arguments.k or 1, **options)
    if task == "MMAP":
        return model.marginal_map(query or [], evidence, **options)
    return draw(model, arguments.samples or 1, evidence, options)


def _teller(wanted: bool) -> Callable[[str], None]:
    began = time.perf_counter()

    def tell(text: str) -> None:
        if wanted:
            print(f"besag: {time.perf_counter() - began:7.2f} s  {text}", file=sys.stderr, flush=True)

    return tell


@contextmanager
def _ended_by(seconds: float | None, *, exact: bool) -> Iterator[None]:
    """Lets Ctrl-C, and a clock where seconds are given, end the process at once.

    Exact inference has nothing to show before it is done. Its kernels cannot be interrupted by Python, but they leave
    the interpreter free for the thread that watches the clock. Other engines end by themselves, with the best answer so
    far, after a step: only where that takes far too long is the process ended.
    """
    patience = (seconds or 0) if exact else LAST_RESORT * (seconds or 0) + SETTING_UP
    watch = threading.Timer(patience, _give_up, [seconds])
    watch.daemon = True
    in_main = threading.current_thread() is threading.main_thread()  # only there may signals be set
    usual = exact and in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if seconds is not None:
        watch.start()
    try:
        yield
    finally:
        watch.cancel()
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _give_up(seconds: float) -> None:
    message = f"no answer within --time-limit {seconds:g} s; `besag info` estimates what exact inference takes"
    print(f"besag: {message}", file=sys.stderr, flush=True)
    os._exit(BEYOND_LIMITS)


def _bytes(text: str) -> int:
    """Bytes, with a unit of powers of 1024.

    >>> _bytes("2G"), _bytes("1.5k")
    (2147483648, 1536)
    """
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    value = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected bytes, as in 500M or 4G, got {text!r}")
    return value
