"""`besag convert`: a model from one file format into another."""

from __future__ import annotations

import argparse
import sys

from besag.cli.messages import ANSWERED
from besag.cli.shared import add_model, read_model

HELP = "write a model in another file format; what that cannot carry is told on stderr"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser, "IN")
    parser.add_argument("target", metavar="OUT", help="the file to write, - for standard output")
    parser.add_argument(
        "--output-format", metavar="SUFFIX", help="bif, uai, ..., where the suffix of OUT does not tell"
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads and writes."""
    from besag.io.formats import format_to_write
    from besag.io.save import encode, report, save

    chosen = format_to_write(arguments.target, arguments.output_format)  # before a large file is read
    piped = arguments.target == "-"
    if piped and chosen.where == "native.form":
        arguments.refuse("the native format may take two files: give OUT a name")
    model, _ = read_model(arguments)
    if piped:
        data, lost = encode(model, chosen)
        sys.stdout.buffer.write(data)
        report(lost, chosen)
    else:
        save(model, arguments.target, format=arguments.output_format)
    return ANSWERED
