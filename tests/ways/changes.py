"""The ways of asking what changes an answer: parameters, CPT entries, observations."""

from collections.abc import Iterator

import numpy as np

from tests.ways.case import Case, Check, question
from tests.ways.models import Factor
from tests.ways.truth import Truth

STEP = 1e-4
ENTRIES = 6  # of CPTs that are looked at


@question
def ask_covariances(case: Case) -> Iterator[Check]:
    """The Hessian of log Z by theta, against central differences of the moments of another engine."""
    model, row = case.model, case.spec.rows[-1]
    free = np.arange(len(model.theta)) if model.support is None else np.flatnonzero(model.support)
    slopes, chosen = [], case.rng.permutation(free)[:3]
    for i in chosen:
        step = np.where(np.arange(len(model.theta)) == i, STEP, 0.0)
        below, above = (model.with_theta(model.theta + sign * step).moments(row, engine="brute") for sign in (-1, 1))
        slopes.append((below - above) / (2 * STEP))
    for engine in case.clique_engines:
        found = model.covariance(row, engine=engine)
        expected = np.reshape(slopes, (len(chosen), len(model.theta)))
        yield Check(f"covariance({row}, {engine})[{chosen}]", found[chosen], expected, 1e-5)
        yield Check(f"covariance({row}, {engine}) is symmetric", found, found.T)


@question
def ask_sensitivities(case: Case) -> Iterator[Check]:
    """dp / dtheta of some CPT entries: P(s, e) and P(e) are linear in each, so that 0 and 1 in its place say all."""
    spec, row = case.spec, case.spec.rows[-1]
    free = [v for v, name in enumerate(spec.names) if name not in row]
    if not spec.is_network or not free:
        return
    target = int(case.rng.choice(free))
    frame = case.model.sensitivity(spec.names[target], spec.states[target][0], row)
    found = frame.set_index(["variable", "state", "given"])["derivative"]
    yield Check("sensitivity: a row for each entry", len(found), sum(factor.table.size for factor in spec.factors))
    for _ in range(ENTRIES):
        f = int(case.rng.integers(len(spec.factors)))
        entry = np.unravel_index(case.rng.integers(spec.factors[f].table.size), spec.factors[f].table.shape)
        above, child = spec.factors[f].scope[:-1], spec.factors[f].scope[-1]
        given = ", ".join(f"{spec.names[v]}={spec.states[v][k]}" for v, k in zip(above, entry, strict=False))
        at = (spec.names[child], spec.states[child][entry[-1]], given)
        yield Check(f"sensitivity({spec.names[target]}, {row})[{at}]", found[at], _slope(case, target, f, entry), 1e-8)


def _slope(case: Case, target: int, f: int, entry: tuple[np.intp, ...]) -> float:
    """(N' D - N D') / D^2, with N = P(s, e), D = P(e), and ' what an entry of 1 in place of 0 adds."""
    (n, d), (n0, d0), (n1, d1) = (_weights(case, target, _with_entry(case, f, entry, t)) for t in (None, 0.0, 1.0))
    return ((n1 - n0) * d - n * (d1 - d0)) / d**2


def _with_entry(case: Case, f: int, entry: tuple[np.intp, ...], value: float | None) -> tuple[Factor, ...]:
    factors, table = list(case.spec.factors), case.spec.factors[f].table.copy()
    if value is not None:
        table[entry] = 0.0 if value else -np.inf
    factors[f] = factors[f]._replace(table=table)
    return tuple(factors)


def _weights(case: Case, target: int, factors: tuple[Factor, ...]) -> tuple[float, float]:
    """P(target = its first state, e) and P(e)."""
    weights = np.exp(Truth(case.spec, case.spec.rows[-1], factors=factors).logs)
    return float(np.take(weights, 0, axis=target).sum()), float(weights.sum())


@question
def ask_impacts(case: Case) -> Iterator[Check]:
    """What each observation did to a target: posteriors with, without and by it alone, and conflicts."""
    spec, row = case.spec, case.spec.rows[-1]
    free = [v for v, name in enumerate(spec.names) if name not in row]
    if not free or not row:
        return
    target = int(case.rng.choice(free))
    frame = case.model.impact(spec.names[target], row)
    full, prior = case.truth(row), case.truth()
    for name, value in row.items():
        rest = {other: given for other, given in row.items() if other != name}
        without, alone = case.truth(rest), case.truth({name: value})
        asked, found = f"impact({spec.names[target]}, {row}).loc[{name}]", frame.loc[name]
        for label, truth in (("without", without), ("alone", alone)):
            yield Check(f"{asked}, {label}", found.filter(like=f"{label}[").astype(float), truth.joint([target]))
        conflict = alone.log_z + without.log_z - full.log_z - prior.log_z
        size = max(1.0, abs(full.log_z), abs(prior.log_z))
        yield Check(f"{asked}, conflict", found["conflict"] / size, conflict / size)
        p, q = full.joint([target]), without.joint([target])
        kl = float((p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum())
        yield Check(f"{asked}, kl", found["kl"], kl)
        yield Check(f"{asked}, total_variation", found["total_variation"], np.abs(p - q).sum() / 2)
