"""Impossible evidence: which observations cannot hold together.

A set of observations is minimal when it has probability zero and any part of it has not. It is found by bisection: the
shortest impossible prefix of the list ends in an observation that every conflict in the prefix needs; keep that one,
and search again in front of it. A conflict of size c among n observations takes about c log2 n queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.errors import EvidenceError, ModelError
from besag.graph.evidence import Evidence, row_name
from besag.infer.engine import Engine
from besag.infer.iterate import clear_interrupts
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result

if TYPE_CHECKING:
    from besag.model.model import Model


def refuse_impossible(model: Model, engine: Engine, evidence: Evidence, result: Result) -> None:
    """EvidenceError, with a minimal conflict, where a row of evidence has probability zero."""
    impossible = impossible_rows(result)
    if not impossible.any():
        return
    row = int(np.argmax(impossible))
    one = evidence.row(row)
    knows = result.bound == "exact" and "log_partition" in engine.capabilities.wants
    conflict = minimal_conflict(model, engine if knows else None, one)
    if not conflict:
        raise ModelError("the model allows no labelling: its hard zeros leave none, so Z = 0")
    found = {model.variables.names[v]: _shown(model, one, v) for v in conflict}
    label = evidence.index[row] if evidence.index is not None else row
    where = f"{row_name(label)}: " if evidence.batched else ""
    text = ", ".join(f"{name}={value}" for name, value in found.items())
    together = "cannot hold together" if len(found) > 1 else "is impossible in this model"
    raise EvidenceError(
        f"{where}the evidence has probability zero: {text} {together}; drop or change one of them",
        conflict=found,
        row=label if evidence.batched else None,
    )


def impossible_rows(result: Result) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(B,) or (N,): what an answer says has no labelling of positive probability."""
    if result.log_partitions is not None:
        return np.asarray(result.bound_arrays()[1] == -np.inf)
    if result.energies is not None:
        none_found = np.asarray(result.energies[:, 0] == np.inf)
        if not none_found.any():
            return none_found
        proven = np.asarray(result.energy_bound) == np.inf  # no engine but an exact one may find no labelling at all
        return np.atleast_1d(none_found & proven)
    if result.probabilities is not None:  # an engine without log Z leaves zeros where there is no labelling
        return np.asarray((result.probabilities == 0).all(axis=1))
    return np.zeros(1, np.bool_)


def minimal_conflict(model: Model, engine: Engine | None, evidence: Evidence) -> list[int] | None:
    """The variables of a minimal impossible set of observations; None where the model itself is impossible.

    What is impossible, an exact engine says, or without one the search for a labelling that hard zeros allow.
    """

    def possible(kept: list[int]) -> bool:
        problem = model.problem.with_evidence(_restricted(model, evidence, kept))
        if engine is None:
            landscape = Landscape(problem, None, noisy=True)
            landscape.draw(np.random.default_rng(0))
            return bool(landscape.possible.all())
        with clear_interrupts():
            answer = engine.infer(problem, frozenset({"log_partition"})).log_partitions
        return answer is not None and float(answer[0]) > -np.inf

    left = _informative(model, evidence)
    conflict: list[int] = []
    if not possible([]):
        return None
    if possible(left):  # only rounding can say both: all of it is to blame
        return left
    while possible(conflict):
        low, high = 0, len(left)
        while low < high:
            middle = (low + high) // 2
            if possible([*conflict, *left[:middle]]):
                low = middle + 1
            else:
                high = middle
        conflict.append(left[low - 1])
        left = left[: low - 1]
    return sorted(conflict)


def _informative(model: Model, evidence: Evidence) -> list[int]:
    """Variables that the evidence says something of."""
    found = set(np.flatnonzero(evidence.observed[0] >= 0).tolist())
    if evidence.log_weights is not None:
        weighted = np.flatnonzero(evidence.log_weights[0] != 0)
        found |= set((np.searchsorted(model.variables.state_offsets, weighted, side="right") - 1).tolist())
    return sorted(found)


def _restricted(model: Model, evidence: Evidence, kept: list[int]) -> Evidence:
    observed = np.full_like(evidence.observed, -1)
    observed[:, kept] = evidence.observed[:, kept]
    if evidence.log_weights is None:
        return Evidence(observed)
    offsets = model.variables.state_offsets
    weights = np.zeros_like(evidence.log_weights)
    for v in kept:
        weights[:, offsets[v] : offsets[v + 1]] = evidence.log_weights[:, offsets[v] : offsets[v + 1]]
    return Evidence(observed, weights)


def _shown(model: Model, evidence: Evidence, v: int) -> object:
    states = model.variables.states(v)
    code = int(evidence.observed[0, v])
    if code >= 0:
        return states[code]
    assert evidence.log_weights is not None
    offsets = model.variables.state_offsets
    allowed = evidence.log_weights[0, offsets[v] : offsets[v + 1]] > -np.inf
    return [state for state, ok in zip(states, allowed, strict=True) if ok]
