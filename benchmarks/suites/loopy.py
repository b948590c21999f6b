"""Loopy belief propagation on random grids: 50 synchronous sum-product iterations in float32, then all marginals.

    u_v(k) ~ N(0, 1)    w_e ~ N(0, 1)    log-potentials u_v(y_v) and w_e [y_s = y_t], a table of its own for every edge

`copy` is the least that an iteration can cost where tables and messages do not fit into the caches: it moves them once.
The build cases go from arrays to the marginals after one iteration: what a contestant needs before it can iterate,
compilation included; besag's kernels come from its cache on disk, as they do from the second process on. What one build
adds to the memory of its process stands under added MB: the peak of PGMax grows with every build, since JAX keeps what
it has compiled, and besag's builds get the pages of those before. docs/design.md has a first build of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite

Array = NDArray[np.float32]
ITERATIONS = 50


class Grid(NamedTuple):
    """Log-potentials: unary (n, n, K); a weight for each edge to the right (n, n - 1) and down (n - 1, n)."""

    unary: Array
    right: Array
    down: Array


def draw(side: int, n_states: int) -> Grid:
    """The same grid for every contestant."""
    rng = np.random.default_rng(1000 * side + n_states)
    shapes = ((side, side, n_states), (side, side - 1), (side - 1, side))
    return Grid(*(rng.standard_normal(shape, dtype=np.float32) for shape in shapes))


def tables(weights: Array, n_states: int) -> Array:
    """A table for each edge."""
    return weights[..., None, None] * np.eye(n_states, dtype=np.float32)


def besag_problem(grid: Grid) -> Any:
    """The grid as a bound problem."""
    import besag

    side, _, n_states = grid.unary.shape
    pairwise = (tables(grid.right, n_states), tables(grid.down, n_states))
    return besag.grid((side, side), n_states, unary=grid.unary, pairwise=pairwise).problem


def besag_run(problem: Any, iterations: int) -> Array:
    """Marginals (n, n, K) after so many iterations."""
    import besag

    engine = besag.infer.BP(max_iterations=iterations, tolerance=0, dtype="float32", n_threads=1)
    return engine.infer(problem, frozenset({"variables"})).array.astype(np.float32)


def pgmax_graph(grid: Grid) -> tuple[Any, Any, Any]:
    """The grid as a PGMax graph: belief propagation, its arrays, and the group of variables."""
    from pgmax import fgraph, fgroup, infer, vgroup

    side, _, n_states = grid.unary.shape
    variables = vgroup.NDVarArray(num_states=n_states, shape=(side, side))
    graph = fgraph.FactorGraph(variable_groups=[variables])
    right = [[variables[i, j], variables[i, j + 1]] for i in range(side) for j in range(side - 1)]
    down = [[variables[i, j], variables[i + 1, j]] for i in range(side - 1) for j in range(side)]
    for edges, weights in ((right, grid.right), (down, grid.down)):
        table = tables(weights.reshape(-1), n_states)
        graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=edges, log_potential_matrix=table))
    passing = infer.build_inferer(graph.bp_state, backend="bp")
    return passing, passing.init(evidence_updates={variables: grid.unary}), variables


def pgmax_run(graph: tuple[Any, Any, Any], iterations: int) -> Array:
    """Marginals (n, n, K) after so many iterations."""
    from pgmax import infer

    passing, arrays, variables = graph
    arrays = passing.run(arrays, num_iters=iterations, damping=0.0, temperature=1.0)
    beliefs = passing.get_beliefs(arrays)
    return np.asarray(infer.get_marginals(beliefs)[variables])


def job(build: Callable[[Grid], Any], run: Callable[[Any, int], Array]) -> Callable[..., Job]:
    """All iterations, on a graph that is there."""

    def make(**parameters: int) -> Job:
        built = build(draw(**parameters))
        return Job(lambda: run(built, ITERATIONS), summary)

    return make


def build_job(build: Callable[[Grid], Any], run: Callable[[Any, int], Array]) -> Callable[..., Job]:
    """From arrays to the marginals after one iteration."""

    def make(**parameters: int) -> Job:
        grid = draw(**parameters)
        return Job(lambda: run(build(grid), 1), summary)

    return make


def copy_job(**parameters: int) -> Job:
    """Tables and messages, moved once for each iteration."""
    grid = draw(**parameters)
    n_states = grid.unary.shape[2]
    n_edges = grid.right.size + grid.down.size
    source = np.ones(n_edges * (n_states**2 + 2 * n_states), np.float32)
    target = np.ones_like(source)

    def run() -> None:
        for _ in range(ITERATIONS):
            np.copyto(target, source)

    return Job(run, lambda _: {"bytes": source.nbytes})


def summary(marginals: Array) -> Mapping[str, float]:
    """A checksum that tells pixels and states apart."""
    flat = np.asarray(marginals, np.float64)
    weights = np.cos(np.arange(flat.size, dtype=np.float64)).reshape(flat.shape)
    return {"checksum": float((weights * flat).sum()), "largest": float(flat.max())}


PASSING = {"besag": job(besag_problem, besag_run), "pgmax": job(pgmax_graph, pgmax_run), "copy": copy_job}
BUILDING = {"besag": build_job(besag_problem, besag_run), "pgmax": build_job(pgmax_graph, pgmax_run)}
GRIDS = {"512^2, K = 2": (512, 2), "1000^2, K = 2": (1000, 2), "256^2, K = 16": (256, 16), "128^2, K = 64": (128, 64)}


def case(kind: str, name: str, contestants: Mapping[str, Callable[..., Job]]) -> Case:
    """One grid. PGMax takes minutes and more than 15 GB for the largest ones."""
    side, n_states = GRIDS[name]
    return Case(
        f"{kind}, {name}",
        contestants,
        {"side": side, "n_states": n_states},
        tolerance=1e-3,
        baseline=("pgmax",),
        patience=120.0,
        time_limit=600.0,
        memory_limit=20 * 2**30,
    )


SUITE = Suite(
    title="loopy belief propagation on grids",
    cases=(
        *(case("50 iterations", name, PASSING) for name in GRIDS),
        *(case("build", name, BUILDING) for name in GRIDS),
    ),
    environments={"copy": "besag"},
)
