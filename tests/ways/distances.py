"""The ways of asking how far distributions are apart, and for expectations from samples."""

import math
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

import besag
from besag.errors import ConvergenceWarning
from tests.ways.case import Case, Check, question
from tests.ways.questions import DRAWS, FALSE_ALARM, chernoff
from tests.ways.truth import Truth


@question
def ask_divergences(case: Case) -> Iterator[Check]:
    """KL of the model under evidence from the model and the other way round, and of labellings from the model."""
    row, truth = case.spec.rows[-1], case.truth()
    model, under, size = case.model.condition(row), case.truth(row), max(1.0, abs(truth.log_z), case.spec.largest)
    for engine in ("auto", *case.clique_engines):
        found = besag.kl(model, case.model, engine=engine)
        yield Check(f"kl(condition({row}), model), {engine}", found / size, _kl(under, truth) / size)
        found = besag.kl(case.model, model, engine=engine)
        yield Check(f"kl(model, condition({row})), {engine}", found / size, _kl(truth, under) / size)
    codes = np.argwhere(truth.logs > -np.inf)
    codes = codes[case.rng.integers(len(codes), size=8)]
    frame = pd.DataFrame({name: np.array(states)[codes[:, v]] for v, (name, states) in enumerate(_spaces(case))})
    _, counts = np.unique(codes, axis=0, return_counts=True)
    mean = float(np.mean([truth.energy(row) for row in codes]))
    expected = float(counts @ np.log(counts / 8)) / 8 + mean + truth.log_z
    yield Check(f"kl({codes.tolist()}, model)", besag.kl(frame, case.model) / size, max(expected, 0.0) / size)


def _spaces(case: Case) -> Iterator[tuple[str, tuple[str, ...]]]:
    return zip(case.spec.names, case.spec.states, strict=True)


def _kl(p: Truth, q: Truth) -> float:
    """Infinite where q rules out what p allows, with a probability that a number can hold."""
    seen = p.p > 0
    if (q.logs[seen] == -np.inf).any():
        return math.inf
    return float(p.p[seen] @ (p.logs[seen] - q.logs[seen])) - p.log_z + q.log_z


@question
def ask_divergences_of_bounds(case: Case) -> Iterator[Check]:
    """log Z minus the bound of mean field is the divergence of its q from the model."""
    row = case.spec.rows[-1]
    truth = case.truth(row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = case.model.marginals(evidence=row, engine="mean_field")
    size = max(1.0, abs(truth.log_z), case.spec.largest)
    found = result.kl()
    yield Check(f"r.kl(), {row}", found / size, (truth.log_z - result.log_partition) / size)
    between = besag.kl(result.approximation, case.model.condition(row))
    yield Check(f"kl(r.approximation, condition({row}))", between / size, found / size)


@question
def ask_sampled_expectations(case: Case) -> Iterator[Check]:
    """The frequency of a state, as in `ask_samples`, and all states at once."""
    row, v = case.spec.rows[-1], case.some(most=1)[0]
    name, states = case.spec.names[v], case.spec.states[v]
    true = np.clip(case.truth(row).joint([v]), 0.0, 1.0)
    for engine in ("auto", *case.clique_engines):
        found = case.model.expect(
            lambda y: np.array([float(y[name] == state) for state in states]),
            row,
            engine=engine,
            n_samples=DRAWS,
            seed=case.spec.seed,
        )
        asked = f"expect({name}, {row}, {engine}, n_samples={DRAWS})"
        yield Check(f"{asked} sums to one", np.sum(found), 1.0)
        distance = chernoff(np.asarray(found), true, DRAWS)
        yield Check(asked, distance, math.log(2 * len(true) / FALSE_ALARM), at_most=True)
