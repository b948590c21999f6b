"""joint and marginal_map by bucket elimination, for the exact engines that work on cliques.

The rest is summed out once and leaves tables on the variables asked for (`besag.infer.junction.elimination`); for a
joint they are added up, for a marginal MAP a second junction tree of these tables alone finds the best joint state, so
that the joint states of many variables are never enumerated.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import TooLargeError
from besag.graph.evidence import Evidence
from besag.graph.unfolded import unfold
from besag.infer.auto.engine import Auto, Exact, patience_of
from besag.infer.junction.elimination import Buckets, Elimination
from besag.infer.junction.engine import JunctionTree
from besag.infer.result import Result
from besag.query.run import Options, engine_from

if TYPE_CHECKING:
    from besag.model.model import Model


def buckets(model: Model, evidence: Evidence, options: Options) -> Buckets | None:
    """The elimination that answers for an exact engine; None where an engine has to be asked itself."""
    engine = engine_from(options)
    if not isinstance(engine, (Exact, JunctionTree, Elimination)):
        return None
    limit = options.get("time_limit")
    seconds = patience_of(limit) if isinstance(engine, Auto) else limit
    worker, problem = JunctionTree(engine.n_threads, engine.memory_limit), model.problem.with_evidence(evidence)
    unfolded = unfold(problem, absorb=True)
    return Buckets(worker, problem if unfolded is None else unfolded.problem, time_limit=seconds)


def joint_tables(run: Buckets, kept: IntArray) -> Array:
    """(B, K1..Kn): log sum over the rest of exp(-H)."""
    size = math.prod(run.graph.variables.cardinalities[kept].tolist())
    needed = 8 * size * run.problem.evidence.n_rows
    if needed > run.limit:
        raise TooLargeError(f"the joint tables would take {needed} bytes, more than memory_limit={run.limit}")
    return np.concatenate([part.joint() for part in run.eliminate(kept, width=size)])


def best_states(model: Model, run: Buckets, kept: IntArray) -> Result:
    """The best joint state of the kept variables, with energy = -log sum over the rest of exp(-H)."""
    began = time.perf_counter()
    parts = [part.best(run.refuse) for part in run.eliminate(kept)]
    evidence = run.problem.evidence
    codes = np.full((evidence.n_rows, 1, len(model.variables)), -1, np.int64)
    codes[:, 0, kept] = np.concatenate([codes for _, codes in parts])
    result = run.result(
        "elimination",
        began,
        codes=codes,
        energies=-np.concatenate([values for values, _ in parts])[:, None],
        targets=tuple(model.variables.names_at(kept)),
    )
    return replace(result, graph=model.graph)
