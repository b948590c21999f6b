"""Where a learnt model goes: `--out MODEL`, or MODEL after the data."""

from __future__ import annotations

import argparse
from typing import Any


class NamedTarget(argparse.Action):
    """`--out MODEL`, after which no MODEL need follow the data."""

    def __init__(self, *names: Any, instead: argparse.Action, **options: Any) -> None:
        super().__init__(*names, **options)
        self.instead = instead

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        """Keeps the path."""
        setattr(namespace, self.dest, values)
        self.instead.required = False


def add_target(parser: argparse.ArgumentParser, kinds: str) -> None:
    """The file to write, as an option or as the last word; call it after all other words."""
    last = parser.add_argument("target", metavar="MODEL", help=f"the file to write, {kinds}; or --out MODEL")
    parser.add_argument("--out", action=NamedTarget, instead=last, metavar="MODEL", help="the same")


def target_of(arguments: argparse.Namespace) -> str:
    """The file to write; refuses two."""
    if arguments.out is None:
        return str(arguments.target)
    if arguments.target is not None:
        arguments.refuse(f"MODEL is given twice: {arguments.target} and --out {arguments.out}")
    return str(arguments.out)
