"""`besag diff`: how two Bayesian networks differ, in edges and in tables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from besag.cli.messages import ANSWERED
from besag.cli.shared import add_choice

if TYPE_CHECKING:
    from besag.model.model import Model

HELP = "tell how two Bayesian networks differ: variables, states, edges, tables"
SHOWN = 20  # most lines of one kind


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper(), help="a file of any format that besag.load reads")
    parser.add_argument(
        "--tolerance", type=float, default=1e-9, metavar="X", help="of probabilities in a table (default: 1e-9)"
    )
    add_choice(parser, "--format", ("table", "json"), "table", "of the answer")


def run(arguments: argparse.Namespace) -> int:
    """Compares and prints; exit code 0 whether they differ or not."""
    from besag.cli.output import print_json, print_pairs
    from besag.io.load import load

    facts = differences(load(arguments.first), load(arguments.second), arguments.tolerance)
    if arguments.format == "json":
        print_json(facts)
    else:
        print_pairs([(key, _shown(value)) for key, value in facts.items()])
    return ANSWERED


def differences(first: Model, second: Model, tolerance: float) -> dict[str, object]:
    """What differs, by kind."""
    from besag.metrics.edges import edge_scores, read_graph, structural_hamming_distance

    a, b = (read_graph(model) for model in (first, second))
    own, other = set(a.names), set(b.names)
    common = [name for name in a.names if name in other]
    edges, new = set(a.edges), set(b.edges)
    facts: dict[str, object] = {
        "only in the first": sorted(own - other),
        "only in the second": sorted(other - own),
        "other states": [name for name in common if _states(first, name) != _states(second, name)],
        "edges removed": [f"{p} -> {c}" for p, c in sorted(edges - new) if (c, p) not in new],
        "edges added": [f"{p} -> {c}" for p, c in sorted(new - edges) if (c, p) not in edges],
        "edges reversed": [f"{p} -> {c}" for p, c in sorted(edges - new) if (c, p) in new],
        "other tables": [name for name in common if _differ(first, second, name, tolerance)],
    }
    if own == other:
        facts["structural Hamming distance of DAGs"] = structural_hamming_distance(a, b, compare="graph")
        facts["structural Hamming distance of CPDAGs"] = structural_hamming_distance(a, b)
        scores = edge_scores(a, b)
        facts["precision, recall of edges"] = [round(scores.precision, 6), round(scores.recall, 6)]
    return facts


def _differ(first: Model, second: Model, name: str, tolerance: float) -> bool:
    """Whether two networks with the same parents and states, in whatever order, have other CPTs."""
    import numpy as np

    above, below = [*first.parents(name), name], [*second.parents(name), name]
    if set(above) != set(below) or any(_states(first, v) != _states(second, v) for v in above):
        return False
    table = second.cpt(name).transpose([below.index(v) for v in above])
    for axis, v in enumerate(above):
        theirs = list(second.variable(v).states)
        table = table.take([theirs.index(state) for state in first.variable(v).states], axis)
    return not np.allclose(first.cpt(name), table, rtol=0, atol=tolerance)


def _states(model: Model, name: str) -> set[str]:
    return set(model.variable(name).states)


def _shown(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    more = f", ... {len(value)} in all" if len(value) > SHOWN else ""
    return (", ".join(map(str, value[:SHOWN])) or "none") + more
