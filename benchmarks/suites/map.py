"""Labellings of least energy on grids: sequential tree-reweighted message passing, and iterated conditional modes.

The first case sets 50 iterations of TRW-S on 256 x 256 variables of 16 labels beside PyMaxflow's cut of 1000 x 1000
binary ones, built and cut: the two have no number in common. Unary log-potentials are normal, those of edges, for equal
labels, absolute values of such. Middlebury's stereo pairs and pictures are read from the data folder, and `energy` and
`bound` are relative to the best energy that is known, or to the bound where none is.

The first run of each contestant compiles; models are built before the clock starts, but for PyMaxflow's graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.middlebury import BEST, grid_of
from benchmarks.suite import Case, Job, Suite


def fields(side: int, n_states: int) -> tuple[Any, Any, Any]:
    """Unary log-potentials, and those of equal labels to the right and down."""
    rng = np.random.default_rng(1000 * side + n_states)
    unary = rng.standard_normal((side, side, n_states), np.float32)
    right, down = (rng.standard_normal(shape, np.float32) for shape in ((side, side - 1), (side - 1, side)))
    return unary.astype(float), abs(right).astype(float), abs(down).astype(float)


def trws_potts(side: int, n_states: int, n_iterations: int) -> Job:
    """TRW-S; energies as if equal labels were paid for, where besag makes different ones pay."""
    import besag

    unary, right, down = fields(side, n_states)
    model = besag.grid((side, side), n_states, unary, besag.potts(n_states), (right, down))
    paid = float(right.sum() + down.sum())
    engine = besag.infer.TRWS(max_iterations=n_iterations, tolerance=0.0)

    def summary(found: Any) -> Mapping[str, float]:
        return {"energy": found.energy - paid, "bound": found.energy_bound - paid}

    return Job(lambda: model.map(engine=engine), summary)


def cut(side: int) -> Job:
    """PyMaxflow's cut of a binary grid, which it builds anew for each run."""
    import maxflow

    unary, right, down = fields(side, 2)
    to_right, downwards = np.zeros((side, side)), np.zeros((side, side))
    to_right[:, :-1], downwards[:-1] = right, down
    paid = float(right.sum() + down.sum())

    def run() -> float:
        graph = maxflow.Graph[float](side * side, 2 * side * side)
        nodes = graph.add_grid_nodes((side, side))
        for weights, ahead in ((to_right, (1, 2)), (downwards, (2, 1))):
            structure = np.zeros((3, 3))
            structure[ahead] = 1
            graph.add_grid_edges(nodes, weights, structure, symmetric=True)
        graph.add_grid_tedges(nodes, -unary[..., 0], -unary[..., 1])
        return float(graph.maxflow())

    return Job(run, lambda flow: {"least energy of the cut": flow - paid})


def trws_middlebury(name: str, n_iterations: int) -> Job:
    """TRW-S."""
    import besag

    model = grid_of(name)
    engine = besag.infer.TRWS(max_iterations=n_iterations, tolerance=0.0)

    def summary(found: Any) -> Mapping[str, float]:
        best = BEST.get(name, found.energy_bound)
        return {"energy of trws": found.energy / best, "bound of trws": found.energy_bound / best}

    return Job(lambda: model.map(engine=engine), summary)


def auto_middlebury(name: str, seconds: float) -> Job:
    """What `auto` finds in so many seconds."""
    import warnings

    import besag

    model = grid_of(name)

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", besag.errors.ApproximationWarning)
            return model.map(time_limit=seconds)

    def summary(found: Any) -> Mapping[str, float]:
        best = BEST.get(name, found.energy_bound)
        return {"energy of auto": found.energy / best, "bound of auto": found.energy_bound / best}

    return Job(run, summary)


def flips(side: int, n_states: int) -> Job:
    """The greedy flips of ICM from a random labelling to a local minimum."""
    import besag

    unary, right, down = fields(side, n_states)
    model = besag.grid((side, side), n_states, unary, besag.potts(n_states), (right, down))
    start = np.random.default_rng(0).integers(n_states, size=(side, side))
    return Job(
        lambda: model.map(engine="icm", init=start),
        lambda found: {"flips": float(found.diagnostics["flips"])},
    )


def stereo(name: str, n_iterations: int) -> Case:
    """A case of the Middlebury benchmark."""
    return Case(
        f"{name}, {n_iterations} iterations",
        {"besag-trws": trws_middlebury},
        {"name": name, "n_iterations": n_iterations},
        baseline=("besag-trws",),
        patience=60.0,
    )


SUITE = Suite(
    title="labellings of least energy",
    cases=(
        Case(
            "TRW-S on 256 x 256, 16 labels, 50 iterations; the cut of 1000 x 1000",
            {
                "besag-trws": partial(trws_potts, side=256, n_states=16, n_iterations=50),
                "pymaxflow": partial(cut, side=1000),
            },
            baseline=("pymaxflow",),
        ),
        stereo("tsukuba", 200),
        stereo("venus", 200),
        stereo("penguin", 50),
        stereo("house", 20),
        *(
            Case(
                f"{name}, auto, 30 s",
                {"besag-auto": auto_middlebury},
                {"name": name, "seconds": 30.0},
                baseline=("besag-auto",),
                patience=30.0,
            )
            for name in ("tsukuba", "venus")
        ),
        *(
            Case(
                f"ICM from a random labelling, {side} x {side}, {n_states} labels",
                {"besag-icm": flips},
                {"side": side, "n_states": n_states},
                baseline=("besag-icm",),
            )
            for side, n_states in ((500, 2), (500, 16))
        ),
    ),
    environments={"besag-trws": "besag", "besag-auto": "besag", "besag-icm": "besag"},
    scores=("energy of trws", "bound of trws", "energy of auto", "bound of auto"),
)
