"""What a question takes, before anything is allocated: the plan of exact inference, printed and not run.

The junction tree engine makes a table over each clique of a triangulation, tile by tile, and stores messages only. So

    entries    prod K over the variables of a clique, added up over all cliques (and products on the way to them)
    bytes      messages and index maps, and tables of structured factors
    seconds    rows x entries x SECONDS_AN_ENTRY  +  factors x SECONDS_A_FACTOR  +  SECONDS_A_CALL

for all marginals. The width is that of the best order found: an upper bound of the treewidth. On a forest the tree
engine's entries are those of the factors, and it needs no order but its own.

The constants are for one thread, with kernels compiled and the plan made: the least of five calls of
model.marginals(n_threads=1), on a machine with other work to do. Measured against estimated, in milliseconds:

    alarm 0.41 / 0.42, andes 3.4 / 2.6, pigs 8.3 / 5.2, mildew 22 / 20, barley 97 / 104
    chains of 10^5, 2 states 88 / 104; of 10^4, 20 states, own tables 31 / 36, one shared table 4.2 / 36

They tell milliseconds from minutes, and minutes from years. Sums in the log domain take longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import IntArray, Kind
from besag.errors import CapabilityError
from besag.graph.evidence import read_evidence
from besag.graph.problem import Problem
from besag.graph.unfolded import HELPER, unfold
from besag.infer.auto.approximate import estimator_of
from besag.infer.auto.engine import Auto, Exact, patience_of
from besag.infer.brute import BYTES_PER_LABELLING, Brute, most_labellings
from besag.infer.engine import ENGINES, Want
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.run import SECONDS_AN_ENTRY, JunctionRun
from besag.infer.memory import default_memory_limit
from besag.infer.result import factor_offsets
from besag.infer.trees.engine import Tree
from besag.markup import make_card, make_table
from besag.query.run import Options, check_options, engine_from
from besag.text import shorten, table

if TYPE_CHECKING:
    from besag.model.model import Model

WANT: frozenset[Want] = frozenset({"log_partition", "variables"})

SECONDS_A_FACTOR = 5e-7
SECONDS_A_CALL = 4e-4
SECONDS_A_LABELLING = 25e-9  # of enumeration, for each factor


@dataclass(frozen=True, slots=True)
class Cost:
    """What exact inference takes, before it is paid.

    width: variables of the largest clique, less one. entries: of all tables; largest: of the largest; infinite beyond
    1e308. bytes: memory besides the model, for a row. seconds: an estimate for all marginals. engine: the one that is
    used, "none" where it refuses; reason: why. order: names, the first to be eliminated first; rule: the one that
    found it, the best of so many runs. cliques: how many. fits: whether bytes are within memory_limit.
    """

    width: int
    entries: float
    bytes: float
    seconds: float
    engine: str
    reason: str
    order: tuple[str, ...]
    rule: str
    runs: int
    cliques: int
    largest: float
    fits: bool
    memory_limit: int

    def __str__(self) -> str:
        return table(("cost", ""), self._rows())

    def _repr_html_(self) -> str:
        return make_card("cost", (), make_table(("", ""), self._rows()))

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("engine", self.engine),
            ("reason", self.reason),
            ("width", str(self.width)),
            ("table entries", f"{self.entries:.6g}"),
            ("largest table", f"{self.largest:.6g}"),
            ("cliques", str(self.cliques)),
            ("bytes", f"{self.bytes:.6g}"),
            ("fits", f"{'yes' if self.fits else 'no'}, memory_limit={self.memory_limit:.6g}"),
            ("seconds", f"about {self.seconds:.2g}"),
        ]
        if self.order:
            found = f"{self.rule}, best of {self.runs} runs" if self.runs > 1 else self.rule
            rows += [("order", shorten(self.order)), ("found by", found)]
        return rows


def cost(model: Model, evidence: Any, options: Options) -> Cost:
    """What all marginals under the evidence would take, and the engine that would be used."""
    check_options(options)
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    unfolded = unfold(problem, absorb=True)
    problem = problem if unfolded is None else unfolded.problem
    asked = engine = engine_from(options)
    reason = "it was asked for"
    if isinstance(engine, Exact):
        engine, reason = engine.choose(problem.graph)
    if isinstance(engine, JunctionTree):
        found = _of_cliques(engine, problem, reason)
        return _estimated(found, problem, options) if isinstance(asked, Auto) else found
    if isinstance(engine, Tree):
        return _of_forest(engine, problem, reason)
    if isinstance(engine, Brute):
        return _of_enumeration(engine, problem, reason)
    raise CapabilityError(
        f"cost tells what exact inference takes; {ENGINES.name_of(engine)!r} is none of junction_tree, tree, brute"
    )


def _of_cliques(engine: JunctionTree, problem: Problem, reason: str) -> Cost:
    _, drawn = JunctionRun(engine, problem, dense=False).draw_up(WANT)
    sizes, order = np.rint(drawn.entries), drawn.order  # whole numbers, up to the rounding of logs
    entries = float(sizes.sum())
    refusal = f"width {order.width} in the best order found: the messages of the junction tree do not fit"
    return Cost(
        width=max(order.width, 0),
        entries=entries,
        seconds=_seconds(problem, entries),
        order=_names(problem, order.variables),
        rule=order.rule if order.complete else f"{order.rule}, cut off: all figures are upper bounds",
        runs=order.runs,
        cliques=int((np.diff(drawn.member_offsets) > drawn.n_separator).sum()),  # those that eliminate something
        largest=float(sizes.max(initial=0.0)),
        **_fit(engine, drawn.bytes + _dense_bytes(problem), reason, refusal),
    )


def _estimated(found: Cost, problem: Problem, options: Options) -> Cost:
    """With the engine that auto takes where exact inference does not fit into memory or time."""
    limit = options.get("time_limit")
    patience = patience_of(limit)
    if found.fits and found.seconds <= patience:
        return found
    slow = f"width {found.width} in the best order found: the junction tree would take about {found.seconds:.2g} s"
    why = found.reason if not found.fits else slow
    estimator = ENGINES.name_of(estimator_of(problem, limit))
    return replace(found, engine=estimator, reason=f"{why}; an estimate, with bounds by mean_field and trw")


def _of_forest(engine: Tree, problem: Problem, reason: str) -> Cost:
    graph, forest = problem.graph, engine.hang(problem.graph)
    sizes = np.diff(factor_offsets(graph))
    n_bytes = 8.0 * (4 * int(graph.state_offsets[-1]) + int(forest.message_offsets[-1]))
    return Cost(
        width=int(np.diff(graph.scope_offsets).max(initial=1)) - 1,
        entries=int(sizes.sum()),
        seconds=_seconds(problem, float(sizes.sum())),
        order=_names(problem, forest.variables[::-1]),
        rule="from the leaves to the roots",
        runs=1,
        cliques=len(forest.order),
        largest=int(sizes.max(initial=0)),
        **_fit(engine, n_bytes, reason, None),
    )


def _names(problem: Problem, variables: IntArray) -> tuple[str, ...]:
    """The names of variables, without helpers."""
    return tuple(name for name in problem.graph.variables.names_at(variables) if not name.startswith(HELPER))


def _of_enumeration(engine: Brute, problem: Problem, reason: str) -> Cost:
    graph, count = problem.graph, most_labellings(problem.graph)
    work = count * max(graph.n_factors, 1) * problem.evidence.n_rows
    return Cost(
        width=int(np.diff(graph.instance_offsets).max()) - 1,
        entries=count,
        seconds=SECONDS_A_CALL + SECONDS_A_LABELLING * work,
        order=(),
        rule="enumeration",
        runs=1,
        cliques=1,
        largest=count,
        **_fit(engine, float(count * BYTES_PER_LABELLING), reason, "there are too many labellings to look at"),
    )


def _seconds(problem: Problem, entries: float) -> float:
    work = problem.evidence.n_rows * entries * SECONDS_AN_ENTRY
    return work + problem.graph.n_factors * SECONDS_A_FACTOR + SECONDS_A_CALL


def _dense_bytes(problem: Problem) -> float:
    """What the tables of structured factors would take, which the junction tree engine makes."""
    counts = np.diff(problem.first_tables).tolist()
    templates = (block.template for block in problem.graph.blocks)
    made = (8.0 * n * math.prod(t.shape) for n, t in zip(counts, templates, strict=True) if t.kind != Kind.TABLE)
    return sum(made, 0.0)


def _fit(engine: JunctionTree | Tree | Brute, n_bytes: float, reason: str, refusal: str | None) -> dict[str, Any]:
    """Bytes against the limit, and what follows for an engine that refuses; the tree engine (None) does not."""
    limit = default_memory_limit() if engine.memory_limit is None else engine.memory_limit
    told = {"bytes": n_bytes, "fits": n_bytes <= limit, "memory_limit": limit}
    if n_bytes <= limit or refusal is None:
        return {"engine": ENGINES.name_of(engine), "reason": reason, **told}
    return {"engine": "none", "reason": refusal, **told}
