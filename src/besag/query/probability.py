"""log p of some states, all other variables summed out.

exact          log Z clamped at the states, minus log Z; in a Bayesian network log Z = 0
approximate    of at most MOST_CHAINED variables, by the chain rule (besag.query.chain_rule): p sums to one, and agrees
               with what joint and marginals say
               of more variables, and of sets and likelihoods, the same difference, of two rows that one engine answers
               in one call; of all variables -H - log Z
               log p is 0 at the most, also where a log Z that is an estimate would say more
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array
from besag.graph.evidence import Evidence, free, read_evidence
from besag.infer.auto.approximate import ask_again
from besag.infer.engine import Engine, Want, check_wants
from besag.infer.result import Result
from besag.query.chain_rule import chain
from besag.query.labels import label_on_data
from besag.query.run import Options, check_options, engine_from, question, run, warn_unconverged

if TYPE_CHECKING:
    from besag.model.model import Model

MOST_CHAINED = 16  # as many as binary variables can have a joint table
LOG_PARTITION: frozenset[Want] = frozenset({"log_partition"})


def log_probability(model: Model, given: Any, options: Options) -> Any:
    """log p of an assignment or of the rows of a frame, the rest summed out; -inf where it is impossible."""
    check_options(options)
    model, given = label_on_data(model, given)
    evidence = read_evidence(model.variables, given)
    values = _log_probabilities(model, evidence, options)
    weights, most = evidence.log_weights, np.zeros(1)
    if weights is not None:  # a likelihood may be above 1
        most = np.maximum.reduceat(weights, model.variables.state_offsets[:-1], axis=1).sum(axis=1)
    values = np.minimum(values, most)
    return values if evidence.batched else float(values[0])


def _log_probabilities(model: Model, evidence: Evidence, options: Options) -> Array:
    """(B,): by log Z where that is exact, which `auto` finds out; log Z of a Bayesian network is 0."""
    network = model.is_bayesian_network
    if evidence.log_weights is None and (evidence.observed >= 0).all():
        values = -model.problem.energy(evidence.observed)
        return np.asarray(values if network else values - run(model, {"log_partition"}, None, options).log_partition)
    engine, log_z = engine_from(options), 0.0
    if engine.capabilities.bound != "exact":
        return _estimated(model, evidence, engine, options)
    limit = options.get("time_limit")
    half: Options = options if limit is None else {**options, "time_limit": limit / 2}  # there are two questions
    if not network:
        whole = run(model, {"log_partition"}, None, half)
        if whole.bound != "exact":
            return _estimated(model, evidence, _estimator(model, whole, half), half)
        log_z = whole.log_partition
    answer = question(model, engine, evidence, half)(LOG_PARTITION)
    if answer.bound != "exact":
        return _estimated(model, evidence, _estimator(model, answer, half), half)
    assert answer.log_partitions is not None
    return answer.log_partitions - log_z


def _estimator(model: Model, result: Result, options: Options) -> Engine:
    """The engine behind an estimate of `auto`."""
    return ask_again(result, model.problem, options.get("time_limit"), engine_from(options))


def _estimated(model: Model, evidence: Evidence, engine: Engine, options: Options) -> Array:
    """(B,), by one engine whose log Z is not exact."""
    items = np.flatnonzero((evidence.observed >= 0).any(axis=0))
    asked: Options = {**options, "engine": engine}
    if evidence.log_weights is None and len(items) <= MOST_CHAINED:
        rows = np.zeros(evidence.n_rows, np.int64)
        return chain(model, free(model.variables), items, evidence.observed[:, items], rows, asked)[0]
    check_wants(engine, LOG_PARTITION)
    weights = evidence.log_weights
    if weights is not None:
        given = np.broadcast_to(weights, (evidence.n_rows, weights.shape[1]))
        weights = np.concatenate([np.zeros((1, weights.shape[1])), given])
    observed = np.concatenate([np.full((1, len(model.variables)), -1), evidence.observed])
    rows_in_one = Evidence(observed, weights, batched=True)
    result = question(model, engine, rows_in_one, asked)(LOG_PARTITION)
    assert result.log_partitions is not None
    if result.log_partitions[0] == -np.inf:
        run(model, {"log_partition"}, None, asked)  # an error: no labelling is possible
    warn_unconverged(result)
    return np.asarray(result.log_partitions[1:] - result.log_partitions[0])
