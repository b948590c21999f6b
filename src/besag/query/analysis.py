"""What an analyst asks after the marginals: what to observe next, and what each observation has done.

information   for a target T and every unobserved X, from the rows e and e + (T = t), all in one call:

                  P(x | e) = sum_t P(t | e) P(x | t, e)
                  I(T; X | e) = sum_t P(t | e) sum_x P(x | t, e) log(P(x | t, e) / P(x | e))       in nats
                  H(T | e) = -sum_t P(t | e) log P(t | e),     E[H(T | X, e)] = H(T | e) - I(T; X | e)

impact        for the observations o of e, from the rows e, nothing, e without o, and o alone:

                  KL(P(T | e) || P(T | e without o)),   KL(P(T | o) || P(T)),   total variation sum_t |p - q| / 2
                  conflict of o: log(P(o) P(e without o) / P(e)),  of e: log(prod_o P(o) / P(e))

The last is the conflict measure of F. V. Jensen et al., "Analysis in HUGIN of data conflict" (1990): positive where the
observations are less probable together than they would be if they had nothing to do with each other. The P(o) of a
likelihood is its expectation, sum_x P(x) l(x); a constant in l cancels.

Arrays: rows are (B, S) on the flat axis of all states, p (K,) the target's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import EvidenceError
from besag.graph.evidence import Evidence, is_missing, read_evidence
from besag.infer.engine import Want
from besag.infer.iterate import clear_interrupts
from besag.infer.result import Result
from besag.query.run import Options, check_options, engine_from, generator_for, run

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model

ROUNDING = 1e-15  # a sum of probabilities times logarithms that is 0 in theory stays below this


def one_row(model: Model, evidence: Any, verb: str) -> Evidence:
    """Evidence for one query; EvidenceError for a batch."""
    read = read_evidence(model.variables, evidence)
    if read.batched:
        rows = f"{read.n_rows} row{'s' * (read.n_rows > 1)}"
        raise EvidenceError(
            f"{verb} takes one row of evidence, a dict, got a table of {rows}; ask for one at a time, frame.iloc[0]"
        )
    return read


def free_target(model: Model, target: str, evidence: Evidence) -> int:
    """The index of a target; EvidenceError where the evidence gives its state."""
    v = model.variables.index(target)
    code = int(evidence.observed[0, v])
    if code >= 0:
        observed = f"{model.variables.names[v]}={model.variables.states(v)[code]}"
        raise EvidenceError(
            f"the target is itself observed, {observed}; drop it from the evidence or take another target"
        )
    return v


def with_states(evidence: Evidence, v: int, codes: IntArray) -> Evidence:
    """The evidence, and below it the same with variable v in each of some states: 1 + n rows."""
    observed = np.repeat(evidence.observed, 1 + len(codes), axis=0)
    observed[1:, v] = codes
    return Evidence(observed, evidence.log_weights)


def infer_rows(model: Model, rows: Evidence, want: set[Want], options: Options) -> Result:
    """All rows in one call. Row 0 is the user's own, an error where it is impossible; others may have log Z = -inf."""
    check_options(options)
    problem, engine = model.problem.with_evidence(rows), engine_from(options)
    rng = generator_for(engine, want, options)
    with clear_interrupts():
        result = engine.infer(problem, frozenset(want), rng=rng, time_limit=options.get("time_limit"))
    if result.log_partitions is not None and result.log_partitions[0] == -np.inf:
        run(model, {"log_partition"}, rows.row(0), options)
    return result


def target_states(model: Model, v: int) -> slice:
    """Where the states of a variable are on the flat axis."""
    return slice(*(int(i) for i in model.variables.state_offsets[v : v + 2]))


# information ---------------------------------------------------------------------------------------------------------


def information(model: Model, target: str, evidence: Any, options: Options) -> pd.DataFrame:
    """I(target; X | evidence) of every unobserved X, largest first."""
    import pandas as pd

    given = one_row(model, evidence, "information")
    v = free_target(model, target, given)
    rows = with_states(given, v, np.arange(model.variables.cardinalities[v]))
    result = infer_rows(model, rows, {"log_partition", "variables"}, options)
    assert result.probabilities is not None
    p = result.probabilities[0, target_states(model, v)]
    entropy = max(0.0, -float(np.sum(p * _log(p))))
    gained = np.clip(_gained(p[p > 0], result.probabilities[1:][p > 0], model.variables.state_offsets), 0.0, entropy)
    others = np.setdiff1d(np.flatnonzero(given.observed[0] < 0), [v])
    gained = gained[others]
    columns = {
        "information": gained,
        "entropy": np.full(len(others), entropy),
        "expected_entropy": entropy - gained,
        "share": gained / entropy if entropy > 0 else np.zeros(len(others)),
    }
    frame = pd.DataFrame(columns, index=pd.Index(model.variables.names_at(others), name="variable"))
    return frame.iloc[np.argsort(-gained, kind="stable")]


def _gained(p: Array, rows: Array, offsets: IntArray) -> Array:
    """I(T; X) of every variable, (V,), from P(t), (K,), and P(x | t), (K, S)."""
    mixed = p @ rows
    terms = rows * (_log(rows) - _log(mixed))  # a quotient could overflow
    total = np.add.reduceat(p @ terms, offsets[:-1])
    return np.where(np.abs(total) < ROUNDING, 0.0, total)


def _log(values: Array) -> Array:
    """log, and 0 at 0, where p log p has its limit."""
    return np.log(np.where(values > 0, values, 1.0))


# impact --------------------------------------------------------------------------------------------------------------


def impact(model: Model, target: str, evidence: Any, options: Options) -> pd.DataFrame:
    """What each observation has done to the target, largest change first."""
    import pandas as pd

    given = one_row(model, evidence, "impact")
    v = free_target(model, target, given)
    shown = _observations(evidence)
    items = [model.variables.index(name) for name in shown]
    result = infer_rows(model, _parts(model, given, items), {"log_partition", "variables"}, options)
    assert result.probabilities is not None
    assert result.log_partitions is not None
    posteriors, log_z = result.probabilities[:, target_states(model, v)], result.log_partitions
    columns = {"observed": list(shown.values()), **_changes(posteriors), "conflict": _conflicts(log_z)}
    _, _, without, alone = _split(posteriors)
    for name, values in (("without", without), ("alone", alone)):
        columns |= {f"{name}[{state}]": p for state, p in zip(model.variables.states(v), values.T, strict=True)}
    frame = pd.DataFrame(columns, index=pd.Index(list(shown), name="variable"))
    frame = frame.iloc[np.argsort(-frame["kl"].to_numpy(), kind="stable")]
    frame.attrs["posterior"] = dict(zip(model.variables.states(v), posteriors[0].tolist(), strict=True))
    frame.attrs["log_probability"] = float(log_z[0] - log_z[1])
    frame.attrs["conflict"] = float((_split(log_z)[3] - log_z[1]).sum() - (log_z[0] - log_z[1]))
    return frame


def _changes(posteriors: Array) -> dict[str, Array]:
    """How far each observation moves the target: given all others, and given nothing else."""
    full, prior, without, alone = _split(posteriors)
    return {
        "kl": _kl(full, without),
        "total_variation": np.abs(full - without).sum(axis=1) / 2,
        "kl_alone": _kl(alone, prior),
        "total_variation_alone": np.abs(alone - prior).sum(axis=1) / 2,
    }


def _conflicts(log_z: Array) -> Array:
    """log(P(o) P(e without o) / P(e)) of each observation, (n,)."""
    full, prior, without, alone = _split(log_z)
    return alone + without - full - prior


def _observations(evidence: Any) -> dict[str, str]:
    """{name: what was given, as text}, without missing values; EvidenceError where there is nothing."""
    items = evidence if isinstance(evidence, Mapping) or evidence is None else _as_dict(evidence)
    shown = {str(name): str(value) for name, value in (items or {}).items() if not is_missing(value)}
    if not shown:
        raise EvidenceError(
            "impact needs at least one observation, got none; model.information(target) says what is worth observing"
        )
    return shown


def _as_dict(evidence: Any) -> dict[Any, Any]:
    if not hasattr(evidence, "to_dict"):
        raise EvidenceError(f"impact takes a dict {{name: state}}, item by item, got {type(evidence).__name__}")
    found: dict[Any, Any] = evidence.to_dict()
    return found


def _parts(model: Model, given: Evidence, items: list[int]) -> Evidence:
    """2 + 2n rows: all n observations, none, all but each, and each alone."""
    n = len(items)
    kept = np.zeros((2 + 2 * n, len(model.variables)), np.bool_)
    kept[0, items] = True
    kept[2 : 2 + n, items] = ~np.eye(n, dtype=np.bool_)
    kept[2 + n :, items] = np.eye(n, dtype=np.bool_)
    weights = given.log_weights
    if weights is not None:
        weights = np.where(np.repeat(kept, model.variables.cardinalities, axis=1), weights, 0.0)
    return Evidence(np.where(kept, given.observed, -1), weights)


def _split(values: Array) -> tuple[Array, Array, Array, Array]:
    """The rows of `_parts`: all, none, all but each (n, ...), each alone (n, ...)."""
    n = len(values) // 2 - 1
    return values[0], values[1], values[2 : 2 + n], values[2 + n :]


def _kl(p: Array, q: Array) -> Array:
    """KL(p || q) of rows, (n, K) and (K,) either way: at least 0, so that what rounding leaves below is 0."""
    p, q = np.broadcast_arrays(p, q)
    ruled_out = ((p > 0) & (q == 0)).any(axis=1)
    terms = p * (_log(p) - _log(q))  # a quotient could overflow
    total = terms.sum(axis=1)
    return np.where(ruled_out, np.inf, np.where(total < ROUNDING, 0.0, total))
