"""`besag fit KIND`: a model learnt from labelled data, into a file for `besag predict` and `besag.load`.

A kind's module is one of `besag.cli.fit`, with HELP, `configure(parser)` and `run(arguments)`, as a command's is.
"""

from __future__ import annotations

import argparse
from importlib import import_module

HELP = "learn a model: from labelled sequences (chain), images (grid), or a table (network)"
KINDS = ("chain", "grid", "network")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds a sub-command for each kind."""
    kinds = parser.add_subparsers(metavar=f"{{{','.join(KINDS)}}}", required=True)
    for name in KINDS:
        module = import_module(f"besag.cli.fit.{name}")
        kind = kinds.add_parser(name, help=module.HELP, description=module.HELP)
        module.configure(kind)
        kind.set_defaults(run=module.run, refuse=kind.error)


def run(arguments: argparse.Namespace) -> int:
    """Never comes here: each kind has its own."""
    raise NotImplementedError
