"""`besag convert`: a model from one file format into another."""

from __future__ import annotations

import argparse

from besag.cli.shared import add_model, read_model

HELP = "write a model in another file format; what that cannot carry is told on stderr"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser, "IN")
    parser.add_argument("target", metavar="OUT", help="the file to write, in the format that its suffix names")


def run(arguments: argparse.Namespace) -> None:
    """Reads and writes."""
    from besag.io.formats import format_to_write
    from besag.io.save import save

    format_to_write(arguments.target)  # before a large file is read
    model, _ = read_model(arguments)
    save(model, arguments.target)
