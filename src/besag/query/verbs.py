"""The verbs on one model: marginals, map, joint, sample, energy and what follows from them; expect has its own file.

joint          p(y_A) for some variables A: exp(-H) summed over the rest, normalised
marginal_map   argmax over y_A of the same sum; energy = -log sum over the rest of exp(-H)
               exact engines sum the rest out (besag.query.eliminated), or give one clamped log Z a joint state; for
               others p(y_A) is a product of marginals under evidence (besag.query.chain_rule); the best joint state
               of `auto` is searched for (besag.query.marginal)
entropy        log Z + E[H];   KL(p || q) = E_p[H_q] + log Z_q - entropy(p), in besag.query.divergence
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError, LossWarning, ModelError, TooLargeError, warn
from besag.graph.evidence import Evidence, read_evidence
from besag.infer.auto.engine import Auto
from besag.infer.engine import ENGINES, Want, check_wants
from besag.infer.iterate import clear_interrupts
from besag.infer.memory import refuse
from besag.infer.result import Result
from besag.model.on_data import is_structure, with_data
from besag.query import eliminated, marginal
from besag.query.analysis import one_row
from besag.query.chain_rule import chain
from besag.query.conflict import refuse_impossible
from besag.query.estimate import Estimate
from besag.query.forward import forward_draws
from besag.query.labels import configurations, label_on_data, labels_frame, on_data, read_labels, read_start
from besag.query.run import (
    Options,
    add_trace,
    check_options,
    engine_from,
    evidence_for,
    generator_for,
    question,
    run,
    run_engine,
)
from besag.registry import is_number, is_whole

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model

MAX_ROWS = 2**16
BYTES_OF_COLUMN = 1800  # of a DataFrame of Categoricals, however few rows it has
LOG_PARTITION: frozenset[Want] = frozenset({"log_partition"})
POSSIBLE: tuple[Want, Want] = ("log_partition", "variables")  # either of these tells of a row that it is impossible


def marginals(model: Model, targets: Any, evidence: Any, options: Options) -> Result:
    """All variable marginals, or those of the targets."""
    if is_structure(targets):
        model, targets = with_data(model, targets), None
    model, evidence = on_data(model, evidence)
    names = _names(model, targets)
    check_options(options, model)
    engine = engine_from(options, targets=names)
    read, want = evidence_for(model, evidence), frozenset[Want]({"variables"})
    asked = add_trace(engine, want | (LOG_PARTITION & engine.capabilities.wants), read, options)
    result = run_engine(model, engine, read, asked, options)
    own: tuple[str, ...] | None = getattr(engine, "targets", None)  # options of an engine come before keywords
    served = names if own is None else own
    return result if served is None else replace(result, targets=served)


def _names(model: Model, targets: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if targets is None:
        return None
    if isinstance(targets, Mapping):
        raise ModelError(f"targets are names of variables, got a dict {dict(targets)!r}; did you mean evidence=...?")
    names = (str(targets),) if isinstance(targets, (str, int)) else tuple(str(name) for name in targets)
    for name in names:
        model.variables.index(name)
    return names


def map_(model: Model, evidence: Any, k: Any, options: Options) -> Result:
    """The k labellings of least energy."""
    model, evidence = on_data(model, evidence)
    if not is_whole(k) or k < 1:
        raise ModelError(f"k must be a whole number of at least 1, got {k!r}")
    result = run(model, {"map"}, evidence, options, k=k)
    if "energy_limit" in model.metadata:
        _warn_beyond_limit(model, result, model.metadata["energy_limit"])
    return result


def _warn_beyond_limit(model: Model, result: Result, limit: float) -> None:
    """A LossWarning where an answer has an energy that the model's file forbids and its tables do not."""
    assert result.codes is not None
    energies = np.array([model.problem.energy(row) for row in result.codes])  # without evidence: (B, k)
    beyond = (energies >= limit) & (energies < np.inf)
    if beyond.any():
        least = f"{energies[beyond].min():.12g}"
        which = f"the labelling found has an energy of {least}"
        if beyond.size > 1:
            which = f"{beyond.sum()} of {beyond.size} labellings found have energies of {least} or more"
        text = f"{which}, but the model's file forbids energies of {limit:.12g} or more (metadata 'energy_limit')"
        warn(LossWarning(f"{text}, which tables can say of single entries only"))


def log_partition(model: Model, evidence: Any, options: Options) -> Any:
    """log Z."""
    model, evidence = on_data(model, evidence)
    return run(model, {"log_partition"}, evidence, options).log_partition


def clamp(model: Model, indices: list[int], base: Evidence, options: Options) -> tuple[Array, IntArray, Result]:
    """log Z of every joint state of some variables, (B, C), the states (C, n), and the last Result."""
    states = configurations(model.variables, indices, MAX_ROWS)
    observed = np.repeat(base.observed, len(states), axis=0)
    known = observed[:, indices]
    rows = np.tile(states, (base.n_rows, 1))
    agrees = ((known < 0) | (known == rows)).all(axis=1)
    observed[:, indices] = rows
    weights = base.log_weights
    if weights is not None and len(weights) > 1:
        weights = np.repeat(weights, len(states), axis=0)[agrees]
    problem = model.problem.with_evidence(Evidence(observed[agrees], weights, batched=True))
    engine, want = engine_from(options), LOG_PARTITION
    rng, time_limit = generator_for(engine, want, options), options.get("time_limit")
    with clear_interrupts():
        result = engine.infer(problem, want, rng=rng, time_limit=time_limit)
    values = np.full(len(rows), -np.inf)
    values[agrees] = result.log_partitions
    told = result.diagnostics.extend(rows=base.n_rows)
    answer = replace(result, batched=base.batched, index=base.index, diagnostics=told)
    return values.reshape(base.n_rows, len(states)), states, answer


def _asked(model: Model, targets: Sequence[str], evidence: Any, options: Options) -> tuple[list[int], Evidence]:
    """The variables of a question, which must differ, and its evidence."""
    names = _names(model, targets) or ()
    indices = [model.variables.index(name) for name in names]
    if len(set(indices)) != len(indices):
        raise ModelError(f"the variables asked for must differ, got {list(names)}")
    check_options(options, model)
    return indices, read_evidence(model.variables, evidence)


def joint(model: Model, targets: Sequence[str], evidence: Any, options: Options) -> Array:
    """p(targets | evidence), axes in the order asked; with a row axis in front for a batch."""
    indices, read = _asked(model, targets, evidence, options)
    configurations(model.variables, indices, MAX_ROWS)  # refuses what is too large
    values = _joint_logs(model, indices, read, options)
    if (values.max(axis=1) == -np.inf).any():
        run(model, {"log_partition"}, read, options)
    p = np.exp(values - values.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    shape = model.variables.cardinalities[indices]
    return np.asarray(p.reshape(len(p), *shape) if read.batched else p[0].reshape(shape))


def _joint_logs(model: Model, indices: list[int], read: Evidence, options: Options) -> Array:
    """(B, C): log sum over the rest of exp(-H), at every joint state, up to a constant of each row."""
    began = time.perf_counter()
    buckets = eliminated.buckets(model, read, options)
    if buckets is not None:
        try:
            return eliminated.joint_tables(buckets, np.array(indices, np.int64)).reshape(read.n_rows, -1)
        except TooLargeError:  # clamped states take more time, but less memory
            pass
    if _has_exact_log_z(options):
        return clamp(model, indices, read, options)[0]
    return _chained(model, indices, read, _time_left(options, began))[0]


def _has_exact_log_z(options: Options) -> bool:
    """Whether the engine answers exactly or not at all; `auto` may do otherwise."""
    engine = engine_from(options)
    return engine.capabilities.bound == "exact" and not isinstance(engine, Auto)


def _time_left(options: Options, began: float) -> Options:
    limit = options.get("time_limit")
    return options if limit is None else {**options, "time_limit": max(limit - (time.perf_counter() - began), 1e-3)}


def _chained(model: Model, indices: list[int], base: Evidence, options: Options) -> tuple[Array, IntArray, Result]:
    """log p of every joint state of some variables, (B, C), the states (C, n), and the answer to the evidence alone."""
    states = configurations(model.variables, indices, MAX_ROWS)
    order = np.argsort(indices)
    codes = np.tile(states[:, order], (base.n_rows, 1))
    rows = np.repeat(np.arange(base.n_rows), len(states))
    values, first = chain(model, base, np.array(indices, np.int64)[order], codes, rows, options)
    return values.reshape(base.n_rows, len(states)), states, first


def marginal_map(model: Model, targets: Sequence[str], evidence: Any, options: Options) -> Result:
    """The most probable joint state of the targets, the rest summed out."""
    indices, read = _asked(model, targets, evidence, options)
    result = _best_states(model, indices, read, options)
    assert result.energies is not None
    if (result.energies == np.inf).any():
        run(model, {"log_partition"}, read, options)
    again = question(model, engine_from(options), read, options)
    object.__setattr__(result, "infer_again", again)  # for r.log_probability
    return result


def _best_states(model: Model, indices: list[int], read: Evidence, options: Options) -> Result:
    began = time.perf_counter()
    buckets = eliminated.buckets(model, read, options)
    if buckets is not None:
        try:
            return eliminated.best_states(model, buckets, np.array(indices, np.int64))
        except TooLargeError as error:
            engine = engine_from(options)
            if isinstance(engine, Auto):
                why = str(error).partition(";")[0]
                return marginal.search(model, indices, read, engine, _time_left(options, began), why)
            if np.log2(model.variables.cardinalities[indices]).sum() > np.log2(MAX_ROWS):
                raise
    if _has_exact_log_z(options):
        values, states, result = clamp(model, indices, read, options)
    else:
        check_wants(engine_from(options), LOG_PARTITION)
        values, states, result = _chained(model, indices, read, _time_left(options, began))
        assert result.log_partitions is not None
        values = values + result.log_partitions[:, None]
        bound = "exact" if result.bound == "exact" else "estimate"
        result = replace(result, bound=bound, bounds=None, probabilities=None)
    best = values.argmax(axis=1)
    codes = np.full((len(values), 1, len(model.variables)), -1, np.int64)
    codes[:, 0, indices] = states[best]
    energies = -values[np.arange(len(values)), best][:, None]
    names = tuple(model.variables.names_at(indices))
    return replace(result, log_partitions=None, codes=codes, energies=energies, targets=names)


def sample(model: Model, n: Any, evidence: Any, options: Options) -> pd.DataFrame:
    """n draws from p(y | evidence), for each row of evidence."""
    model, evidence = on_data(model, evidence)
    limit = options.get("memory_limit")
    if is_number(limit) and limit is not None:
        what = f"a DataFrame of {len(model.variables)} columns"
        refuse(what, BYTES_OF_COLUMN * len(model.variables), int(limit), "use more memory or a smaller model")
    forward = forward_draws(model, n, evidence, options)
    if forward is not None:
        return labels_frame(model.variables, forward.T)
    result = draw(model, n, evidence, options)
    n = result.samples.shape[-2]
    codes = result.samples.reshape(-1, len(model.variables))
    index = None
    if result.batched:
        import pandas as pd

        labels = range(len(codes) // n) if result.index is None else result.index
        index = pd.MultiIndex.from_product([labels, range(n)], names=["row", "sample"])
    return labels_frame(model.variables, codes, index)


def draw(model: Model, n: Any, evidence: Any, options: Options) -> Result:
    """The Result of n draws for each row of evidence."""
    if not is_whole(n) or n < 1:
        raise ModelError(f"the number of samples must be a whole number of at least 1, got {n!r}")
    check_options(options, model)
    engine = engine_from(options, n_draws=n)
    if not hasattr(engine, "n_draws"):  # a sampler whose draws are independent, one at a time
        engine = engine_from(options, n_samples=n)
    tells: Want = next(want for want in POSSIBLE if want in engine.capabilities.wants)
    want = frozenset[Want]({"samples", tells})
    read = evidence_for(model, evidence)
    return run_engine(model, engine, read, add_trace(engine, want, read, options), options)


def energy(model: Model, given: Any) -> Any:
    """H of a labelling, or of the rows of a frame."""
    model, given = label_on_data(model, given)
    codes, batched = read_labels(model, given)
    values = model.problem.energy(codes)
    return values if batched else float(values[0])


def to_frame(model: Model, evidence: Any, options: Options) -> pd.DataFrame:
    """Every labelling with H and p, in the order of enumeration."""
    codes = configurations(model.variables, list(range(len(model.variables))), MAX_ROWS)
    read = one_row(model, evidence, "to_frame")
    energies = model.problem.with_evidence(read).energy(codes)
    frame = labels_frame(model.variables, codes)
    p = np.exp(-energies - run(model, {"log_partition"}, read, options).log_partition)
    for column, values in (("H", energies), ("p", p)):
        while column in frame:
            column += "_"
        frame[column] = values
    return frame


def moments(model: Model, evidence: Any, options: Options) -> Array:
    """sum over factors of E[phi_f], (P,): minus the gradient of log Z by theta, 002 (20)."""
    wants = engine_from(options).capabilities.wants
    tells: Want = next(want for want in POSSIBLE if want in wants)
    result = run(model, {"moments", tells}, evidence, options)
    return model.graph.moments(result.moments, inputs=model.inputs)


def entropy(model: Model, evidence: Any, options: Options) -> Estimate:
    """-sum p log p of p(y | evidence), in nats; an estimate where the inference is approximate."""
    read = one_row(model, evidence, "entropy")
    result = run(model, {"log_partition", "variables", "moments"}, read, options)
    weights = read.log_weights
    total = float(result.log_partition) - expect_values(result.moments, model.problem.log_potentials)
    if weights is not None:
        assert result.probabilities is not None
        total -= expect_values(result.probabilities[0], weights[0])
    exact = result.bound == "exact"
    return Estimate(max(total, 0.0), 0.0 if exact else None, "exact" if exact else "estimate")


def expect_values(p: Array, values: Array) -> float:
    """sum p v, with 0 times -inf = 0."""
    return float((p * np.where(p != 0, values, 0.0)).sum())


def steps(model: Model, evidence: Any, options: Options) -> Iterator[Result]:
    """A Result for each step of an engine that works in steps."""
    check_options(options, model)
    engine = engine_from(options)
    if hasattr(engine, "choose"):
        engine = engine.choose(model.graph)[0]
    if not hasattr(engine, "steps"):
        able = [name for name in ENGINES if hasattr(ENGINES.find(name), "steps")]
        raise CapabilityError(
            f"engine {ENGINES.name_of(engine)!r} does not work in steps; name one that does, as in engine='bp': "
            f"{', '.join(able)}"
        )
    return _steps(model, engine, read_evidence(model.variables, evidence), options)


def _steps(model: Model, engine: Any, read: Evidence, options: Options) -> Iterator[Result]:
    problem, rng = model.problem.with_evidence(read), generator_for(engine, LOG_PARTITION, options)
    warm = read_start(model, options.get("init"), read, engine)
    for result in engine.steps(problem, warm=warm, rng=rng, time_limit=options.get("time_limit")):
        refuse_impossible(model, engine, read, result)
        yield result
