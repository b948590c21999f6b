"""The command line: `besag COMMAND ...`, one module a command.

A command's module has HELP, one line; `configure(parser)`, which adds its arguments; and `run(arguments)`. What is
heavy is imported inside `run`, so that `besag --help` answers at once.

What went wrong is one line on stderr, and so is each warning; `besag.cli.messages` has the exit codes.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import warnings
from ast import literal_eval
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TextIO

from besag.cli.messages import (
    BAD_INPUT,
    BEYOND_LIMITS,
    CLOSED_PIPE,
    INTERRUPTED,
    Parser,
    not_among,
    tell,
)
from besag.errors import (
    ApproximationWarning,
    BesagError,
    ConvergenceWarning,
    DataWarning,
    EvidenceWarning,
    IdentifiabilityWarning,
    LossWarning,
)

COMMANDS = ("infer", "info", "compare", "sample", "plot", "convert", "diff", "fit", "predict", "warmup", "demo")
TOLD = (LossWarning, EvidenceWarning, DataWarning, ApproximationWarning, ConvergenceWarning, IdentifiabilityWarning)

# What messages of the library say for Python, in the words of the command line.
WORDS = {
    "ignore_utilities=True": "--ignore-utilities",
    "or format=...": "or --output-format",
    ": format='": ": --input-format '",
    "model.cost(evidence)": "besag info --evidence",
    "; r.diagnostics has more": "; --format json tells more",
    "more than max_iter=": "more than --max-iter ",
    "Cut them into intervals, besag.Discretizer().fit_transform(frame)": "Cut them into intervals, --bins 5",
    ", and cut numbers, besag.Discretizer": ", and cut numbers, --bins 5",
    'drop these rows, frame.dropna(), or take the method "structural_em"': "take --structure structural_em",
    "or take l2 > 0": "or take --l2 above 0",
    "checkpoint must be": "--checkpoint must be",
    "class_weight=": "--class-weight",
    "held_out: ": "--held-out: ",
    "Several rows: a DataFrame": "Several rows: a list of objects",
    ". Allowed states: a set": "",
    "a likelihood is a dict or an array of floats": 'a likelihood is an object, {"state": number, ...}',
}
# Options of verbs, as in time_limit=5 and engine="exact"; not those in brackets of an engine, or in a list of names.
LIKELIHOOD = re.compile(r"A likelihood: \{.*\}")
NA_VALUES = re.compile(r", or pd\.read_csv\(\.\.\., na_values=\[.*?\]\)")
DROP = re.compile(r"frame\.drop\(columns=('[^']*'|\"[^\"]*\"|\[.*?\])\)")
LIMIT = re.compile(r"(?<![\w'\"\[,])(time|memory)_limit(?:=|(?= ))")
ENGINE = re.compile(r"(?<!\w)engine=(['\"])(.*?)\1")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    _open_what_is_closed()
    arguments = _parsed(sys.argv[1:] if argv is None else argv)
    _escape_what_cannot_be_shown()
    try:
        with _warnings_as_lines():
            code = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _write_no_more()
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError as error:  # TooLargeError is one
        return _failed(str(error) or "out of memory", BEYOND_LIMITS)
    except BesagError as error:
        return _failed(str(error), BAD_INPUT)
    except OSError as error:
        if error.filename is None:  # such as a disk that is full
            _write_no_more()
        where = "cannot write" if error.filename is None else error.filename
        return _failed(f"{where}: {error.strerror or error}", BAD_INPUT)
    return int(code)


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        parser.error(not_among(argv[0], COMMANDS))
    return parser.parse_args(argv)


def _parser() -> Parser:
    parser = Parser(prog="besag", description="Learning and inference in discrete graphical models.")
    parser.add_argument("--version", action="version", version=f"besag {import_module('besag').__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"besag.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.configure(command)
        command.set_defaults(run=module.run, refuse=command.error)
    return parser


def _failed(message: str, code: int) -> int:
    tell(_worded(message))
    return code


def _worded(message: str) -> str:
    """A message of the library in the words of the command line."""
    for said, meant in WORDS.items():
        message = message.replace(said, meant)
    message = LIKELIHOOD.sub(lambda found: found[0].replace("'", '"'), NA_VALUES.sub("", message))
    message = DROP.sub(_as_option, message)
    message = LIMIT.sub(lambda found: f"--{found[1]}-limit" + (" " if found[0].endswith("=") else ""), message)
    return ENGINE.sub(lambda found: f"--engine {shlex.quote(found[2])}", message)


def _as_option(found: re.Match[str]) -> str:
    columns = literal_eval(found[1])
    return f"--drop {shlex.join([columns] if isinstance(columns, str) else columns)}"


def _write_no_more() -> None:
    """What is left in the buffer of stdout must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_what_is_closed() -> None:
    """A shell may start a command without streams (`>&-`): what goes there goes nowhere."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


def _escape_what_cannot_be_shown() -> None:
    """Names in letters that the terminal's encoding lacks are no reason to stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        tell(_worded(str(message)))

    with warnings.catch_warnings():
        for category in TOLD:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
