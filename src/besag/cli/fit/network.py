"""`besag fit network`: a Bayesian network from a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from besag.cli.fit.target import add_target, target_of
from besag.cli.messages import ANSWERED, BEYOND_LIMITS, INTERRUPTED, tell
from besag.cli.shared import read_count, read_seconds
from besag.text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

HELP = "learn a Bayesian network from a table: its parameters, and its structure"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("data", metavar="DATA", help="a table, .csv, .tsv (with .gz, .xz) or .parquet")
    add_target(parser, ".bif, .json, ...")
    parser.add_argument(
        "--structure",
        default="hill_climb",
        metavar="TEXT",
        help='a method, as in "tabu[length=20]" or order_search, or edges, as in "A -> B <- C" (default: hill_climb)',
    )
    parser.add_argument(
        "--criterion", default="bic", metavar="TEXT", help="bic, aic, k2, bdeu[strength=1] (default: bic)"
    )
    parser.add_argument("--prior", metavar="TEXT", help="of the parameters: laplace, k2, bdeu (default: none)")
    parser.add_argument(
        "--required", nargs="+", type=_edge, default=[], metavar="A->B", help="edges that must be there"
    )
    parser.add_argument("--forbidden", nargs="+", type=_edge, default=[], metavar="A->B", help="edges that must not")
    parser.add_argument(
        "--tiers",
        nargs="+",
        type=_tier,
        default=[],
        metavar="A,B",
        help="variables in tiers: no edge to an earlier one",
    )
    parser.add_argument(
        "--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out, such as names of the rows"
    )
    parser.add_argument("--bins", type=read_count, metavar="N", help="cut measurements into N intervals, equally full")
    parser.add_argument("--max-parents", type=read_count, metavar="N", help="of one variable")
    parser.add_argument("--max-entries", type=read_count, metavar="N", help="of the CPT of one variable")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default: 0)")
    parser.add_argument("--time-limit", type=read_seconds, metavar="S", help="keep the best after so many seconds")
    parser.add_argument("--threads", type=read_count, metavar="N", help="at most so many (default: all cores)")


def run(arguments: argparse.Namespace) -> int:
    """Reads, learns, writes."""
    from besag.cli.output import print_pairs
    from besag.estimators.networks.bayesian import BayesianNetwork
    from besag.io.formats import format_to_write
    from besag.io.save import save

    target = target_of(arguments)
    format_to_write(target, None)  # before a large file is read
    options: dict[str, Any] = {name: getattr(arguments, name) for name in ("prior", "criterion")}
    limits = ("required", "forbidden", "tiers", "max_parents", "max_entries")
    constraints = {name: getattr(arguments, name) for name in limits}
    network = BayesianNetwork(
        arguments.structure,
        **options,
        **constraints,
        random_state=arguments.seed,
        time_limit=arguments.time_limit,
        n_jobs=arguments.threads,
    ).fit(_table(arguments))
    save(network.model_, target)
    found = getattr(network, "structure_", None)
    edges = sum(len(network.model_.parents(variable.name)) for variable in network.model_.variables)
    facts = [("variables", str(len(network.model_.variables))), ("edges", str(edges))]
    if found is not None:
        facts += [("score", f"{found.score:.6f}"), ("ended", found.stopped)]
    print_pairs([*facts, ("log-likelihood", f"{network.log_likelihood_:.6f}"), ("model", target)])
    if found is not None and found.stopped == "interrupted":
        tell(f"interrupted: {target} has the best so far")
        return INTERRUPTED
    return BEYOND_LIMITS if found is not None and found.stopped == "time_limit" else ANSWERED


def _table(arguments: argparse.Namespace) -> str | pd.DataFrame:
    """The path of the table; the whole of it, where columns are left out or measurements become intervals."""
    from besag.estimators.discretizer import Discretizer

    path, n_bins, drop = str(arguments.data), arguments.bins, arguments.drop
    if n_bins is None and not drop:
        return path
    frame = _read(path)
    for name in drop:
        if name not in frame.columns:
            arguments.refuse(f"--drop: {path} has no column {name!r}; {did_you_mean(name, frame.columns)}".rstrip("; "))
    frame = frame.drop(columns=drop)
    return frame if n_bins is None else Discretizer(n_bins=n_bins).fit_transform(frame)


def _read(path: str) -> pd.DataFrame:
    import pandas as pd

    from besag.data.tables.files import is_text_file

    if is_text_file(path):
        return pd.read_csv(path, sep="\t" if ".tsv" in Path(path).suffixes else ",")
    return pd.read_parquet(path)


def _edge(text: str) -> tuple[str, str]:
    parent, arrow, child = (part.strip() for part in text.partition("->"))
    if not (parent and arrow and child) or "->" in child:
        raise argparse.ArgumentTypeError(f"expected an edge such as 'A->B', got {text!r}")
    return parent, child


def _tier(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
