"""`besag plot`: a picture of a model, with its marginals, and how evidence changes them."""

from __future__ import annotations

import argparse

from besag.cli.messages import ANSWERED
from besag.cli.shared import add_evidence, add_model, read_model, read_one_row, read_seconds

HELP = "a picture of a model with its marginals, before and after evidence"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add_model(parser)
    add_evidence(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the picture to write: .png, .pdf or .svg")
    parser.add_argument("--engine", default="auto", metavar="TEXT", help='such as "exact" or "bp" (default: auto)')
    parser.add_argument("--time-limit", type=read_seconds, metavar="S", help="of each question")
    parser.add_argument("--structure", action="store_true", help="draw the graph alone, without probabilities")


def run(arguments: argparse.Namespace) -> int:
    """Answers and draws."""
    import numpy as np

    from besag.plot import draw_network

    model, _ = read_model(arguments)
    if arguments.structure:
        draw_network(model, path=arguments.out)
        return ANSWERED
    options = {name: getattr(arguments, name) for name in ("engine", "time_limit")}
    before = model.marginals(**options)
    if not arguments.evidence:
        draw_network(model, before, arguments.out)
        return ANSWERED
    evidence = read_one_row(arguments, model)
    observed = model.variables.names_at(np.flatnonzero(evidence.observed[0] >= 0).tolist())
    draw_network(model, model.marginals(evidence=evidence, **options), arguments.out, before=before, observed=observed)
    return ANSWERED
