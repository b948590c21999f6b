"""`besag compare`: engines side by side on one question."""

from __future__ import annotations

import argparse

from besag.cli.messages import ANSWERED
from besag.cli.shared import add_choice, add_evidence, add_model, read_model, read_one_row, read_seconds, read_seed

HELP = "several engines on one question: log Z, bound, largest error, seconds"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser)
    parser.add_argument("engines", nargs="+", metavar="ENGINE", help='such as exact, "bp[damping=0.3]" or gibbs')
    add_evidence(parser)
    parser.add_argument("--seed", type=read_seed, default=0, help="of all that is random (default: 0)")
    parser.add_argument("--time-limit", type=read_seconds, metavar="S", help="of each engine")
    add_choice(parser, "--format", ("table", "csv", "json"), "table", "of the answer")


def run(arguments: argparse.Namespace) -> int:
    """Asks each engine, and prints."""
    from besag.cli.output import print_csv, print_json, print_table
    from besag.query.compare import compare

    model, _ = read_model(arguments)
    evidence = read_one_row(arguments, model)
    options = {"seed": arguments.seed, "time_limit": arguments.time_limit}
    frame = compare(model, arguments.engines, evidence, **options).reset_index()
    if arguments.format == "json":
        print_json(frame.to_dict("records"))
        return ANSWERED
    digits = {"log_partition": ".12g", "error": ".3g", "seconds": ".3g"}
    columns = [[format(value, digits.get(name, "")) for value in frame[name].tolist()] for name in frame.columns]
    if arguments.format == "csv":
        print_csv(list(frame.columns), [columns])
    else:
        print_table([], list(frame.columns), [columns])
    return ANSWERED
