"""Labellings by graph cuts on random grids: one minimum cut of a binary grid, and alpha-expansion on Potts labels.

    u_v(k) ~ N(0, 1)    w_e ~ |N(0, 1)|    log-potentials u_v(y_v) and w_e [y_s = y_t]

`cut` goes from arrays of costs to the labelling: PyMaxflow makes its graph, and besag, whose Problem is bound before,
its network. PyMaxflow (GPL) and gco-wrapper are peers only. Energies are recomputed from the labellings, so that they
tell whether the cuts are minimal: they must agree for `cut`. Expansions need not come to the same labelling; besag's
must have an energy that is not above its peer's, or the run fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
PEER_ENERGY = -146912.52  # of gco-wrapper's expansions on 256^2, K = 16


class Grid(NamedTuple):
    """Log-potentials: unary (n, n, K); a weight for each edge to the right (n, n - 1) and down (n - 1, n)."""

    unary: Array
    right: Array
    down: Array

    def energy(self, labels: Labels) -> float:
        """Minus the sum of the log-potentials at a labelling."""
        unary = np.take_along_axis(self.unary, labels[..., None], axis=2).sum()
        across = self.right[labels[:, 1:] == labels[:, :-1]].sum()
        return -float(unary + across + self.down[labels[1:] == labels[:-1]].sum())


def draw(side: int, n_states: int) -> Grid:
    """The same grid for every contestant."""
    rng = np.random.default_rng(1000 * side + n_states)
    shapes = ((side, side, n_states), (side, side - 1), (side - 1, side))
    unary, right, down = (rng.standard_normal(shape, dtype=np.float32).astype(np.float64) for shape in shapes)
    return Grid(unary, np.abs(right), np.abs(down))


def besag_labels(grid: Grid, engine: str) -> Callable[[], Labels]:
    """Labels (n, n), as a function to be timed."""
    import besag
    from besag.infer.engine import ENGINES

    side, _, n_states = grid.unary.shape
    weights = (grid.right, grid.down)
    problem = besag.grid((side, side), n_states, grid.unary, besag.potts(n_states), weights).problem
    return lambda: np.asarray(ENGINES.read(engine).infer(problem, frozenset({"map"})).labels)


def pymaxflow_labels(grid: Grid) -> Callable[[], Labels]:
    """The same, for two states."""
    import maxflow

    side = len(grid.unary)

    def run() -> Labels:
        graph = maxflow.Graph[float](side * side, 2 * side * side)
        nodes = graph.add_grid_nodes((side, side))
        for weights, place in ((grid.right, (1, 2)), (grid.down, (2, 1))):
            structure, capacities = np.zeros((3, 3)), np.zeros((side, side))
            structure[place] = 1
            capacities[: weights.shape[0], : weights.shape[1]] = weights
            graph.add_grid_edges(nodes, capacities, structure, symmetric=True)
        graph.add_grid_tedges(nodes, -grid.unary[..., 1], -grid.unary[..., 0])
        graph.maxflow()
        return np.asarray(graph.get_grid_segments(nodes), np.int64)

    return run


def gco_labels(grid: Grid) -> Callable[[], Labels]:
    """Expansions of gco-wrapper."""
    import gco

    side, _, n_states = grid.unary.shape
    costs = (-grid.unary, 1.0 - np.eye(n_states), grid.down, grid.right)
    return lambda: np.asarray(gco.cut_grid_graph(*costs, n_iter=-1, algorithm="expansion")).reshape(side, side)


def job(labels_of: Callable[[Grid], Callable[[], Labels]], *, agree: bool) -> Callable[..., Job]:
    """Labels of a grid; agree: whether the energies of all contestants must be the same."""

    def make(**parameters: int) -> Job:
        grid = draw(**parameters)

        def summary(labels: Any) -> dict[str, float]:
            energy = grid.energy(labels)
            return {"energy": energy} if agree else {"as_good_as_the_peer": float(energy <= PEER_ENERGY)}

        return Job(labels_of(grid), summary)

    return make


CUTTING = {"besag": job(lambda grid: besag_labels(grid, "graph_cut"), agree=True),
           "pymaxflow": job(pymaxflow_labels, agree=True)}  # fmt: skip
EXPANDING = {"besag": job(lambda grid: besag_labels(grid, "alpha_expansion"), agree=False),
             "gco": job(gco_labels, agree=False)}  # fmt: skip

SUITE = Suite(
    title="labellings by graph cuts",
    cases=(
        Case("cut, 1000^2, K = 2", CUTTING, {"side": 1000, "n_states": 2}, tolerance=1e-9),
        Case("cut, 256^2, K = 2", CUTTING, {"side": 256, "n_states": 2}, tolerance=1e-9),
        Case("expansion, 256^2, K = 16", EXPANDING, {"side": 256, "n_states": 16}),
    ),
)
