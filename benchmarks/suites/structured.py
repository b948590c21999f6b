"""Structured factors beside the tables that they stand for: belief propagation on a grid, weights an edge.

Iterations of synchronous belief propagation with single-precision messages, constant in number, so that the energies of
what they decode agree. Tables an edge of 256 labels would take 35 GB on 256 x 256 variables: there the grid is smaller.
The case of stereo is the tsukuba model of the Middlebury benchmark (Szeliski et al. 2008), whose tables an edge would
take 0.5 GB; its bytes are what the process holds at most beyond what it holds with its kernels loaded. Then come
messages of one kind at several K, whose times say how they grow.
"""

from __future__ import annotations

import os
import resource
import runpy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite

Array = NDArray[np.float64]


def weights_of(side: int) -> tuple[Array, Array]:
    """A weight for each edge to the right, and down."""
    rng = np.random.default_rng(side)
    return rng.uniform(0.2, 1.0, (side, side - 1)), rng.uniform(0.2, 1.0, (side - 1, side))


def fields_of(side: int, n_states: int) -> Array:
    """The unary terms, (side, side, K)."""
    return np.random.default_rng(n_states).normal(size=(side, side, n_states))


def kind_of(kind: str, n_states: int) -> Any:
    """The structured factor."""
    import besag

    limits = {"potts": (), "truncated_linear": (n_states / 4,), "truncated_quadratic": (n_states * 2.0,)}
    return getattr(besag.factors, kind)(n_states, *limits[kind])


def iterate(model: Any, n_iterations: int, verb: str) -> Job:
    """Iterations of belief propagation, after one run that compiles."""
    import besag

    engine = besag.infer.BP(max_iterations=n_iterations, tolerance=0, dtype="float32", n_threads=1)

    def run() -> float:
        if verb == "map":
            return float(model.map(engine=engine).energy)
        return float(model.log_partition(engine=engine))

    return Job(run, lambda found: {verb: found})


def by_rule(kind: str, side: int, n_states: int, n_iterations: int, verb: str) -> Job:
    """Weights alone."""
    import besag

    fields, weights = fields_of(side, n_states), weights_of(side)
    model = besag.grid((side, side), n_states, fields, kind_of(kind, n_states), weights=weights)
    return iterate(model, n_iterations, verb)


def by_tables(kind: str, side: int, n_states: int, n_iterations: int, verb: str) -> Job:
    """A table an edge."""
    import besag

    basis = kind_of(kind, n_states).dense()[0]
    tables = tuple(-weights[..., None, None] * basis for weights in weights_of(side))
    return iterate(besag.grid((side, side), n_states, fields_of(side, n_states), tables), n_iterations, verb)


def stereo() -> Any:
    """Tsukuba, 384 x 288 pixels of 16 disparities: unary costs, and truncated linear ones with a weight an edge."""
    import besag

    given = os.environ.get("BESAG_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
    costs, _, across, down, options = runpy.run_path(str(Path(given) / "middlebury_mrf" / "build_models.py"))["stereo"](
        "tsukuba"
    )
    weights = tuple(options["lam"] * edges.astype(np.float64) for edges in (across, down))
    term = besag.truncated_linear(options["nD"], options["smax"])
    return besag.grid(costs.shape[:2], options["nD"], -costs.astype(np.float64), term, weights=weights)


def tsukuba(n_iterations: int) -> Job:
    """The energy after iterations of min-sum, and the memory that they took."""
    import besag

    engine = besag.infer.BP(
        max_iterations=n_iterations, tolerance=0, schedule="sequential", dtype="float32", n_threads=1
    )
    besag.grid((40, 40), 16, fields_of(40, 16), besag.truncated_linear(16, 2)).map(engine=engine)  # loads kernels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = stereo()

    def run() -> tuple[float, float]:
        energy = float(model.map(engine=engine).energy)
        return energy, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024

    return Job(run, lambda found: {"energy": found[0], "bytes": found[1]})


BOTH = {"besag": by_rule, "besag-tables": by_tables}


def case(kind: str, side: int, n_states: int, n_iterations: int, verb: str, *, rule_alone: bool = False) -> Case:
    """A grid of side x side variables."""
    parameters = {"kind": kind, "side": side, "n_states": n_states, "n_iterations": n_iterations, "verb": verb}
    contestants = {"besag": by_rule} if rule_alone else BOTH
    name = f"{kind}, {side} x {side}, K = {n_states}, {n_iterations} iterations, {verb}"
    return Case(name, contestants, parameters, tolerance=1e-3, baseline=("besag",) if rule_alone else ("besag-tables",))


SUITE = Suite(
    title="structured factors beside their tables",
    cases=(
        case("potts", 256, 16, 20, "log_partition"),
        case("potts", 256, 16, 20, "map"),
        case("potts", 64, 256, 5, "log_partition"),
        case("truncated_linear", 64, 256, 5, "map"),
        case("truncated_linear", 64, 256, 5, "log_partition"),
        case("truncated_quadratic", 64, 256, 5, "map"),
        Case(
            "tsukuba, 30 iterations, map",
            {"besag": tsukuba},
            {"n_iterations": 30},
            tolerance=0.1,  # of bytes, which differ from process to process
            baseline=("besag",),
        ),
        *(case("truncated_linear", 64, k, 5, "map", rule_alone=True) for k in (16, 32, 64, 128, 256, 512)),
    ),
    environments={"besag-tables": "besag"},
    scores=("energy", "bytes"),
)
