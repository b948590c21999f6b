"""The command line: `besag COMMAND ...`, one module a command.

A command's module has HELP, one line; `configure(parser)`, which adds its arguments; and `run(arguments)`. What is
heavy is imported inside `run`, so that `besag --help` answers at once.

Exit codes: 0 answered, 1 bad input, 2 bad usage, 3 no answer within the limits of time and memory, 130 interrupted,
141 the reader of a pipe has gone.
What went wrong is one line on stderr, and so is each warning.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TextIO

from besag.errors import ApproximationWarning, BesagError, ConvergenceWarning, LossWarning

COMMANDS = ("infer", "info", "convert", "demo")
TOLD = (LossWarning, ApproximationWarning, ConvergenceWarning)

BAD_INPUT, BEYOND_LIMITS, INTERRUPTED, CLOSED_PIPE = 1, 3, 130, 141

# What messages of the library say for Python, in the words of the command line.
WORDS = {
    "ignore_utilities=True": "--ignore-utilities",
    "or format=...": "or --output-format",
    ": format='": ": --input-format '",
    "model.cost(evidence)": "besag info --evidence",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    _open_what_is_closed()
    arguments = _parser().parse_args(argv)
    _escape_what_cannot_be_shown()
    try:
        with _warnings_as_lines():
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError as error:  # TooLargeError is one
        return _failed(str(error) or "out of memory", BEYOND_LIMITS)
    except BesagError as error:
        return _failed(str(error), BAD_INPUT)
    except OSError as error:
        known = error.strerror is not None and error.filename is not None
        return _failed(f"{error.filename}: {error.strerror}" if known else str(error), BAD_INPUT)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="besag", description="Learning and inference in discrete graphical models.")
    parser.add_argument("--version", action="version", version=f"besag {import_module('besag').__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"besag.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.configure(command)
        command.set_defaults(run=module.run, refuse=command.error)
    return parser


def _failed(message: str, code: int) -> int:
    for said, meant in WORDS.items():
        message = message.replace(said, meant)
    _tell(message)
    return code


def _tell(message: object) -> None:
    """One line on stderr, if anybody can hear it."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(message))
    with suppress(OSError):
        print(f"besag: {line}", file=sys.stderr, flush=True)


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
        _tell(message)

    with warnings.catch_warnings():
        for category in TOLD:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
