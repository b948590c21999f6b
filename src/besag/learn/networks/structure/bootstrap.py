"""`bootstrap_edges`: how sure each edge of a learned structure is (Friedman, Goldszmidt and Wyner 1999).

Structures are learned from n samples of N rows with replacement, N the sum of the weights where rows have these. The
strength of a pair is how often it is joined, its direction how often, of these, from the first to the second; an edge
that the CPDAG leaves undirected counts as half of each. The threshold is where strengths fall into two groups best: of
the distributions of zeros and ones alone, the one that is nearest to theirs in L1 has its ones from there on (Scutari
and Nagarajan 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.data.tables.code_table import CodeTable
from besag.data.tables.reading import read_table, refuse_no_rows
from besag.errors import ConvergenceWarning, ModelError, warn
from besag.graph.directed.orientation import apply_rules, order_of
from besag.graph.directed.pdag import PDAG
from besag.infer.iterate import Clock, Stopped, drive
from besag.kernels.threads import run_chunks
from besag.learn.networks.structure.learn import LearnedStructure, check_search, learn_structure
from besag.query.progress import ProgressLine
from besag.registry import is_whole

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 0.75  # share of structures that directs an edge


@dataclass(frozen=True, slots=True, eq=False)
class EdgeStrengths:
    """strength (V, V): symmetric. direction (V, V): [i, j] of i -> j; with [j, i] it is 1 where a pair was ever joined.

    n: how many structures were learned, fewer than asked for where `stopped` is not converged.
    """

    names: tuple[str, ...]
    strength: Array
    direction: Array
    n: int
    stopped: str

    @property
    def threshold(self) -> float:
        """The strength from which on edges are taken to be there; see the module."""
        values = np.sort(self.strength[np.triu_indices(len(self.names), 1)])
        return best_threshold(values)

    def to_frame(self) -> pd.DataFrame:
        """Columns source, target, strength, direction: a row for each pair ever joined, strongest first."""
        import pandas as pd

        i, j = np.nonzero(np.triu(self.strength) > 0)
        turn = self.direction[i, j] < self.direction[j, i]
        i, j = np.where(turn, j, i), np.where(turn, i, j)
        names = np.array(self.names, object)
        columns = {"source": names[i], "target": names[j], "strength": self.strength[i, j]}
        frame = pd.DataFrame({**columns, "direction": self.direction[i, j]})
        return frame.sort_values(["strength", "direction"], ascending=False, kind="stable", ignore_index=True)

    def averaged(self, threshold: float | None = None) -> PDAG:
        """The graph of all pairs as strong as the threshold, directed where nearly all structures agree on how.

        The strongest edges come first; one that would close a cycle is left out.
        """
        least, matrix = self.threshold if threshold is None else threshold, np.zeros(self.strength.shape, np.bool_)
        number = {name: v for v, name in enumerate(self.names)}
        edges = self.to_frame()
        for source, target in zip(edges["source"], edges["target"], strict=True):
            i, j = number[source], number[target]
            if self.strength[i, j] >= least:
                matrix[i, j], matrix[j, i] = True, self.direction[i, j] < CLEAR
                if order_of(matrix & ~matrix.T) is None:
                    matrix[i, j] = matrix[j, i] = False
        return PDAG(self.names, apply_rules(matrix))


def best_threshold(values: Array) -> float:
    """The least of the sorted strengths that belong to edges; above 1 where there are no strengths but 0."""
    if not len(values) or values[-1] == 0:
        return 1.0
    levels = np.concatenate([[0.0], values, [1.0]])
    widths, below = np.diff(levels), np.arange(len(values) + 1) / len(values)
    costs = [float((widths * np.abs(below - share)).sum()) for share in below]
    first = int(np.argmin(costs))  # so many strengths are taken for 0
    return float(values[min(first, len(values) - 1)]) or float(values[values > 0][0])


def bootstrap_edges(
    data: Any,
    n: int = 100,
    *,
    method: str = "hill_climb",
    criterion: str = "bic",
    weights: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    **options: Any,
) -> EdgeStrengths:
    """Strength and direction of each edge over n structures learned from samples of the rows of a table.

    method, criterion, options: as `learn_structure` takes them. n_jobs: structures learned at once, all cores by
    default; the answer does not depend on it. After Ctrl-C or time_limit the answer is of those structures that were
    learned to their end; where there is none, of the unfinished ones, with a ConvergenceWarning. progress: tell on
    stderr how many are done.

    >>> import besag
    >>> frame = besag.data.bundled("sprinkler").sample(500, seed=0)
    >>> edges = besag.bootstrap_edges(frame, 10)
    >>> edges.to_frame()["strength"].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if not (is_whole(n) and n >= 1):
        raise ModelError(f"n must be a whole number of at least 1, got {n!r}")
    check_search(time_limit, random_state)
    table = read_table(data, weights=weights)
    refuse_no_rows(table)
    options |= {"method": method, "criterion": criterion, "random_state": random_state}
    bootstrap = Bootstrap(table, int(n), options, Clock(time_limit), BootstrapProgress() if progress else None)
    stopped = drive(lambda: bootstrap.run(None if n_jobs == -1 else n_jobs))
    return _summed(table.names, bootstrap.graphs(), stopped)


class BootstrapProgress(ProgressLine):
    """How many structures have ended, on standard error."""

    def __call__(self, done: int, n: int, seconds: float) -> None:
        """Show that one more has ended."""
        self.show(f"bootstrap: {done} of {n} structures, {seconds:.1f} s")


@dataclass
class Bootstrap:
    """ended, cut: CPDAGs by the number of the sample; those of searches that came to their end, and of others."""

    table: CodeTable
    n: int
    options: dict[str, Any]
    clock: Clock
    progress: BootstrapProgress | None
    ended: dict[int, PDAG] = field(default_factory=dict)
    cut: dict[int, PDAG] = field(default_factory=dict)

    def run(self, n_jobs: int | None) -> Stopped:
        """Learns from all samples."""
        try:
            run_chunks(self.learn, self.n, n_jobs)
        finally:
            if self.progress is not None:
                self.progress.end()
        return "converged"

    def learn(self, i: int) -> None:
        """Learns from a sample; OutOfTime or KeyboardInterrupt where that was cut short."""
        learned = self._learned(i)
        late = learned.stopped in ("time_limit", "interrupted")
        (self.cut if late else self.ended)[i] = learned.cpdag
        if learned.stopped == "interrupted":
            raise KeyboardInterrupt
        if self.progress is not None:
            self.progress(len(self.ended), self.n, self.clock.seconds)
        if late or len(self.ended) < self.n:
            self.clock.look()

    def _learned(self, i: int) -> LearnedStructure:
        table, rng = self.table, np.random.default_rng([self.options["random_state"], i])
        rows, weights = drawn_rows(rng, table.n_rows, table.weights)
        left = None if math.isinf(self.clock.left) else max(self.clock.left, 0.0)
        codes = [column[rows] for column in table.codes]
        return learn_structure(
            codes, table.cardinalities, weights, names=table.names, n_threads=1, time_limit=left, **self.options
        )

    def graphs(self) -> list[PDAG]:
        """What strengths are of."""
        if not (self.ended or self.cut):
            raise KeyboardInterrupt
        if not self.ended:
            warn(
                ConvergenceWarning(
                    "no structure was learned to its end: the strengths are of the best found so far in "
                    f"{len(self.cut)} of {self.n} samples; give more time, or a quicker method"
                )
            )
        found = self.ended or self.cut
        return [found[i] for i in sorted(found)]


def drawn_rows(rng: np.random.Generator, n_rows: int, weights: Array | None) -> tuple[IntArray, Array | None]:
    """The numbers of the rows of a sample, and how often each is in it where rows have weights."""
    if weights is None:
        return rng.choice(n_rows, n_rows), None
    counts = rng.multinomial(max(round(weights.sum()), 1), weights / weights.sum())
    rows = np.flatnonzero(counts)
    return rows, counts[rows].astype(np.float64)


def _summed(names: tuple[str, ...], graphs: list[PDAG], stopped: str) -> EdgeStrengths:
    arrows = sum((np.where(g.matrix & g.matrix.T, 0.5, 1.0 * g.matrix) for g in graphs), np.zeros((len(names),) * 2))
    joined = arrows + arrows.T
    direction = np.divide(arrows, joined, out=np.zeros_like(arrows), where=joined > 0)
    return EdgeStrengths(names, joined / len(graphs), direction, len(graphs), stopped)
