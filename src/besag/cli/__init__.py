"""The command line: `besag COMMAND ...`, one module a command.

A command's module has HELP, one line; `configure(parser)`, which adds its arguments; and `run(arguments)`. What is
heavy is imported inside `run`, so that `besag --help` answers at once.

Exit codes: 0 done, 1 bad input (the message is on stderr), 2 bad usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from besag.errors import BesagError

COMMANDS = ("demo",)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (BesagError, OSError) as error:
        print(f"besag: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="besag", description="Learning and inference in discrete graphical models.")
    parser.add_argument("--version", action="version", version=f"besag {import_module('besag').__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"besag.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser
