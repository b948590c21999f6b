"""`bootstrap_edges`: how sure each edge of a learned structure is (Friedman, Goldszmidt and Wyner 1999).

Structures are learned from n samples of N rows with replacement. The strength of a pair is how often it is joined, its
direction how often, of these, from the first to the second; an edge that the CPDAG leaves undirected counts as half of
each. The threshold is where strengths fall into two groups best: of the distributions of zeros and ones alone, the one
that is nearest to theirs in L1 has its ones from there on (Scutari and Nagarajan 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.reading import read_table, refuse_no_rows
from besag.errors import ModelError
from besag.graph.directed.orientation import apply_rules, order_of
from besag.graph.directed.pdag import PDAG
from besag.infer.iterate import Clock, Stopped, drive
from besag.kernels.threads import run_chunks
from besag.learn.networks.structure.learn import learn_structure
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
    **options: Any,
) -> EdgeStrengths:
    """Strength and direction of each edge over n structures learned from samples of the rows of a table.

    method, criterion, options: as `learn_structure` takes them. n_jobs: structures learned at once, all cores by
    default; the answer does not depend on it. Ctrl-C and time_limit give what is there.

    >>> import besag
    >>> frame = besag.data.bundled("sprinkler").sample(500, seed=0)
    >>> edges = besag.bootstrap_edges(frame, 10)
    >>> edges.to_frame().loc[0, ["source", "target", "strength"]].tolist()
    ['cloudy', 'rain', 1.0]
    """
    if not (is_whole(n) and n >= 1):
        raise ModelError(f"n must be a whole number of at least 1, got {n!r}")
    table = read_table(data, weights=weights)
    refuse_no_rows(table)
    clock, found = Clock(time_limit), dict[int, PDAG]()

    def learn(i: int) -> None:
        rng = np.random.default_rng([random_state, i])
        rows = drawn_rows(rng, table.n_rows, table.weights)
        codes = [column[rows] for column in table.codes]
        given = {
            "names": table.names,
            "method": method,
            "criterion": criterion,
            "random_state": random_state,
            **options,
        }
        learned = learn_structure(codes, table.cardinalities, n_threads=1, **given)
        if learned.stopped == "interrupted":
            raise KeyboardInterrupt
        found[i] = learned.cpdag
        clock.look()

    def advance() -> Stopped:
        run_chunks(learn, n, None if n_jobs == -1 else n_jobs)
        return "converged"

    stopped = drive(advance)
    if not found:
        raise KeyboardInterrupt
    return _summed(table.names, [found[i] for i in sorted(found)], stopped)


def drawn_rows(rng: np.random.Generator, n_rows: int, weights: Array | None) -> AnyArray:
    """The numbers of N rows, with replacement, in proportion to their weights."""
    share = None if weights is None else weights / weights.sum()
    return rng.choice(n_rows, n_rows, p=share)


def _summed(names: tuple[str, ...], graphs: list[PDAG], stopped: str) -> EdgeStrengths:
    arrows = sum((np.where(g.matrix & g.matrix.T, 0.5, 1.0 * g.matrix) for g in graphs), np.zeros((len(names),) * 2))
    joined = arrows + arrows.T
    direction = np.divide(arrows, joined, out=np.zeros_like(arrows), where=joined > 0)
    return EdgeStrengths(names, joined / len(graphs), direction, len(graphs), stopped)
