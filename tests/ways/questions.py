"""The ways of asking: each function asks one thing by every route and holds it to enumeration."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from besag.data.structured import StructuredData
from besag.errors import EvidenceError
from besag.learn.prediction import log_proba, predict
from besag.model.model import Model
from besag.query.session import Session
from tests.ways.case import Case, Check, question, unless_impossible
from tests.ways.evidence import frame_of
from tests.ways.models import Factor
from tests.ways.truth import Truth

BATCHES = (1, 3, 9)
DRAWS = 1500
FALSE_ALARM = 1e-10  # the chance that one check of a right sampler fails, were its seed drawn anew
STEP = 1e-5

# log Z and marginals -------------------------------------------------------------------------------------------------


@question
def ask_log_partition(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        for engine in case.engines:
            answer = case.model.log_partition(row, engine=engine)
            yield Check(f"log_partition(row {i}, {engine})", answer, case.truth(row).log_z)


@question
def ask_marginals(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        truth = case.truth(row)
        for engine in case.engines:
            result = case.model.marginals(evidence=row, engine=engine)
            yield Check(f"marginals(row {i}, {engine}).log_partition", result.log_partition, truth.log_z)
            yield Check(f"marginals(row {i}, {engine})", case.all_marginals(result), truth.marginals)


@question
def ask_targets(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        targets, truth = case.some(), case.truth(row)
        for engine in case.engines:
            result = case.model.marginals(case.names(targets), row, engine=engine)
            asked = f"marginals({case.names(targets)}, row {i}, {engine})"
            yield Check(f"{asked}.log_partition", result.log_partition, truth.log_z)
            for v in targets:
                yield Check(f"{asked}[{case.spec.names[v]}]", result[case.spec.names[v]], truth.joint([v]))


@question
def ask_factors(case: Case) -> Iterator[Check]:
    graph, row = case.model.graph, case.spec.rows[case.rng.integers(len(case.spec.rows))]
    truth = case.truth(row)
    for engine in case.clique_engines:
        result = case.model.marginals(evidence=row, engine=engine)
        for number, f in enumerate(graph.factor_order.tolist()):
            expected = truth.joint([case.order[v] for v in graph.scope(f).tolist()])
            yield Check(f"marginals({row}, {engine}).factor({number})", result.factor(number), expected)


# Rows of a batch -----------------------------------------------------------------------------------------------------


@question
def ask_batches(case: Case) -> Iterator[Check]:
    truths = [case.truth(row) for row in case.spec.rows]
    for size in BATCHES:
        size = min(size, len(truths))
        frame = frame_of(case.spec, case.spec.rows[-size:])
        log_z = [truth.log_z for truth in truths[-size:]]
        for engine in case.engines:
            asked = f"rows -{size}:, {engine}"
            yield Check(f"log_partition({asked})", case.model.log_partition(frame, engine=engine), log_z)
            result = case.model.marginals(evidence=frame, engine=engine)
            yield Check(f"marginals({asked}).log_partition", result.log_partition, log_z)
            expected = [truth.marginals for truth in truths[-size:]]
            yield Check(f"marginals({asked})", case.all_marginals(result), expected)


@question
def ask_targets_of_batches(case: Case) -> Iterator[Check]:
    truths, targets = [case.truth(row) for row in case.spec.rows], case.some()
    frame = frame_of(case.spec, case.spec.rows)
    for engine in case.engines:
        result = case.model.marginals(case.names(targets), frame, engine=engine)
        for v in targets:
            asked = f"marginals({case.names(targets)}, all rows, {engine})[{case.spec.names[v]}]"
            yield Check(asked, result[case.spec.names[v]], [truth.joint([v]) for truth in truths])


# Sessions ------------------------------------------------------------------------------------------------------------


@question
def ask_sessions_in_every_order(case: Case) -> Iterator[Check]:
    """Up to three observations, observed and forgotten in every order, with one question after each change."""
    row = max(case.spec.rows, key=len)
    chosen = {name: row[name] for name in list(case.rng.permutation(list(row))[:3])}
    session = case.model.session()
    truths: dict[frozenset[str], Truth] = {}
    for order, back in itertools.product(itertools.permutations(chosen), itertools.permutations(chosen)):
        seen: list[str] = []
        for change, names in (("observe", order), ("forget", back)):
            for name in names:
                if change == "observe":
                    session.observe({name: chosen[name]})
                    seen.append(name)
                else:
                    session.forget(name)
                    seen.remove(name)
                held = {key: chosen[key] for key in seen}
                truth = truths.setdefault(frozenset(seen), case.truth(held))
                yield _asked_of_session(case, session, truth, f"session {order} forget {back}, with {held}")


@question
def ask_a_session_that_wanders(case: Case) -> Iterator[Check]:
    """Observations of all rows in any mixture, some replaced and many impossible."""
    pairs = [(name, value) for row in case.spec.rows for name, value in row.items()]
    session, held = case.model.session(), {}
    for _ in range(12 if pairs else 0):
        name, value = pairs[case.rng.integers(len(pairs))]
        if case.rng.random() < 0.3:
            session.forget(name)
            held.pop(name, None)
        else:
            session.observe({name: value})
            held[name] = value
        truth = case.truth(held)
        if truth.possible:
            yield _asked_of_session(case, session, truth, f"a session with {held}")
        else:
            refused = unless_impossible(lambda: session.log_partition)
            yield Check(f"a session with the impossible {held}", refused, -math.inf)


def _asked_of_session(case: Case, session: Session, truth: Truth, name: str) -> Check:
    """One question, drawn: the others leave messages that are not made yet."""
    kind, v = int(case.rng.integers(4)), int(case.rng.integers(len(case.spec.names)))
    if kind == 0:
        return Check(f"{name}: log_partition", session.log_partition, truth.log_z)
    if kind == 1:
        return Check(f"{name}: marginals()", case.all_marginals(session.marginals()), truth.marginals)
    return Check(f"{name}: [{case.spec.names[v]}]", session[case.spec.names[v]], truth.joint([v]))


# Joint distributions and probabilities -------------------------------------------------------------------------------


@question
def ask_joints(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        scope, truth = case.some(most=4), case.truth(row)
        for engine in case.engines:
            answer = case.model.joint(case.names(scope), row, engine=engine)
            yield Check(f"joint({case.names(scope)}, row {i}, {engine})", answer, truth.joint(scope))
    scope, frame = case.some(), frame_of(case.spec, case.spec.rows)
    expected = [case.truth(row).joint(scope) for row in case.spec.rows]
    for engine in case.engines:
        answer = case.model.joint(case.names(scope), frame, engine=engine)
        yield Check(f"joint({case.names(scope)}, all rows, {engine})", answer, expected)


@question
def ask_log_probabilities(case: Case) -> Iterator[Check]:
    """Of labellings, possible or not, of some variables, and of evidence of any form."""
    prior = case.truth()
    for part in (len(case.spec.names), *(int(case.rng.integers(1 + len(case.spec.names))) for _ in range(3))):
        scope = [int(v) for v in case.rng.permutation(len(case.spec.names))[:part]]
        states = {case.spec.names[v]: str(case.rng.choice(case.spec.states[v])) for v in scope}
        expected = case.truth(states).log_z - prior.log_z
        for engine in case.engines:
            answer = case.model.log_probability(states, engine=engine)
            yield Check(f"log_probability({states}, {engine})", answer, expected)
    frame = frame_of(case.spec, case.spec.rows)
    expected = [case.truth(row).log_z - prior.log_z for row in case.spec.rows]
    for engine in case.engines:
        yield Check(f"log_probability(all rows, {engine})", case.model.log_probability(frame, engine=engine), expected)


@question
def ask_the_impossible(case: Case) -> Iterator[Check]:
    """Labellings of weight zero as evidence are refused by every verb, alone and among the rows of a batch."""
    impossible = np.argwhere(case.truth().logs == -np.inf)
    if len(impossible):
        codes = impossible[case.rng.integers(len(impossible))]
        row = {name: states[i] for name, states, i in zip(case.spec.names, case.spec.states, codes, strict=True)}
        ways = {
            "log_partition": lambda engine: case.model.log_partition(row, engine=engine),
            "marginals": lambda engine: case.model.marginals(evidence=row, engine=engine),
            "map": lambda engine: case.model.map(row, engine=engine),
            "joint": lambda engine: case.model.joint([case.spec.names[0]], row, engine=engine),
        }
        for name, ask in ways.items():
            for engine in case.engines if name != "map" else case.clique_engines:
                answer = unless_impossible(lambda ask=ask, engine=engine: ask(engine))
                yield Check(f"{name}({row}, {engine})", answer, -math.inf)
        frame = frame_of(case.spec, (*case.spec.rows, row))
        for engine in case.engines:
            found = _refused_row(lambda engine=engine: case.model.log_partition(frame, engine=engine))
            yield Check(f"log_partition(all rows and {row}, {engine}) names the row", found == frame.index[-1], True)


def _refused_row(ask: Callable[[], Any]) -> object:
    """The label of the row that is refused as impossible, None where none is."""
    try:
        ask()
    except EvidenceError as error:
        return error.row
    return None


# Other models --------------------------------------------------------------------------------------------------------


@question
def ask_conditioned_models(case: Case) -> Iterator[Check]:
    one, two = (case.spec.rows[case.rng.integers(len(case.spec.rows))] for _ in range(2))
    model = case.model.condition(one)
    for name, row in (("", {}), (" and evidence", two)):
        truth = case.truth(one, row)
        for engine in case.engines:
            asked = f"condition({one}){name} {row}, {engine}"
            answer = unless_impossible(lambda row=row, engine=engine: model.log_partition(row, engine=engine))
            yield Check(f"{asked}: log_partition", answer, truth.log_z)
            if truth.possible:
                result = model.marginals(evidence=row, engine=engine)
                yield Check(f"{asked}: marginals", case.all_marginals(result), truth.marginals)


@question
def ask_merged_models(case: Case) -> Iterator[Check]:
    """Groups that overlap or not, and the cliques of the junction tree, which make a tree."""
    truth = case.truth()
    groups = {tuple(sorted(case.some(most=2))) for _ in range(3)}
    result = case.model.merged([case.names(list(group)) for group in groups]).marginals(engine="junction_tree")
    yield Check(f"merged({groups}): log_partition", result.log_partition, truth.log_z)
    for group in groups:
        expected = truth.joint(list(group)).reshape(-1)
        yield Check(f"merged({groups}): {group}", result[",".join(case.names(list(group)))], expected)
    cliques = case.model.junction_tree().cliques
    merged = case.model.merged(cliques).marginals(engine="tree")
    yield Check("merged(cliques), tree: log_partition", merged.log_partition, truth.log_z)
    for clique in cliques:
        expected = truth.joint([case.spec.names.index(name) for name in clique]).reshape(-1)
        yield Check(f"merged(cliques), tree: {clique}", merged[",".join(clique)], expected)


@question
def ask_messages(case: Case) -> Iterator[Check]:
    """What a variable hears, multiplied, is its marginal: exactly so on forests, and for bp on any graph its belief."""
    row = case.spec.rows[case.rng.integers(len(case.spec.rows))]
    for engine in ["bp[tolerance=0,max_iterations=3]", *(["tree"] if case.is_forest else [])]:
        result = case.model.marginals(evidence=row, engine=engine, trace=True)
        frame = result.messages
        for name, states in zip(case.spec.names, case.spec.states, strict=True):
            heard = frame.loc[frame["target"] == name, "value"].to_numpy().reshape(-1, len(states))
            with np.errstate(over="ignore", invalid="ignore"):
                product = heard.prod(axis=0)
            if 0 < product.sum() < np.inf:  # some models have numbers beyond what weights can hold
                yield Check(f"messages({row}, {engine}) to {name}", product / product.sum(), result[name])


@question
def ask_interventions(case: Case) -> Iterator[Check]:
    """do() and with_cpt() beside networks whose tables are replaced by hand."""
    if not case.spec.is_network:
        return
    chosen = {v: int(case.rng.integers(case.spec.cards[v])) for v in case.some(most=2)}
    model = case.model.do({case.spec.names[v]: case.spec.states[v][code] for v, code in chosen.items()})
    factors = list(case.spec.factors)
    for v, code in chosen.items():
        factors[v] = Factor((v,), np.where(np.arange(case.spec.cards[v]) == code, 0.0, -np.inf), v)
    yield from _of_changed_network(case, f"do({chosen})", model, factors)
    v = case.some(most=1)[0]
    scope = case.spec.factors[v].scope
    table = case.rng.dirichlet(np.ones(case.spec.cards[v]), [case.spec.cards[p] for p in scope[:-1]])
    changed = [*case.spec.factors[:v], Factor(scope, np.log(table), v), *case.spec.factors[v + 1 :]]
    named = f"with_cpt({case.spec.names[v]})"
    yield from _of_changed_network(case, named, case.model.with_cpt(case.spec.names[v], table), changed)


def _of_changed_network(case: Case, name: str, model: Model, factors: list[Factor]) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        truth = Truth(case.spec, row, factors=factors)
        for engine in case.engines if case.is_forest else ("auto", "elimination"):
            if engine == "tree":  # the new network may have other parents
                continue
            asked = f"{name}, row {i}, {engine}"
            answer = unless_impossible(lambda row=row, engine=engine: model.log_partition(row, engine=engine))
            yield Check(f"{asked}: log_partition", answer, truth.log_z)
            if truth.possible:
                result = model.marginals(evidence=row, engine=engine)
                yield Check(f"{asked}: marginals", case.all_marginals(result), truth.marginals)


# The best labellings -------------------------------------------------------------------------------------------------


@question
def ask_map(case: Case) -> Iterator[Check]:
    truths = [case.truth(row) for row in case.spec.rows]
    for i, (row, truth) in enumerate(zip(case.singles, truths, strict=False)):
        for engine in ("auto", *case.clique_engines):
            result = case.model.map(row, engine=engine)
            yield Check(f"map(row {i}, {engine}).energy", result.energy, truth.energies[0])
            found = truth.energy(case.codes(result.assignment))
            yield Check(f"map(row {i}, {engine}): energy of the labelling", found, truth.energies[0])
    frame = frame_of(case.spec, case.spec.rows)
    for engine in ("auto", *case.clique_engines):
        result = case.model.map(frame, engine=engine)
        yield Check(f"map(all rows, {engine}).energy", result.energy, [truth.energies[0] for truth in truths])
        for i, (truth, assignment) in enumerate(zip(truths, result.assignment, strict=True)):
            found = truth.energy(case.codes(assignment))
            yield Check(f"map(all rows, {engine}): row {i}", found, truth.energies[0])


@question
def ask_of_structured_data(case: Case) -> Iterator[Check]:
    """The model on its own factor graph as structured data, alone and twice in a union."""
    data, truth = StructuredData.from_model(case.model), case.truth({})
    best = -truth.energies[0] - truth.log_z
    for engine in ("auto", *case.clique_engines):
        yield Check(f"log_partition(data, {engine})", case.model.log_partition(data, engine=engine), truth.log_z)
        answer = case.model.map(data, engine=engine)
        yield Check(f"map(data, {engine}).log_probability", answer.log_probability, best)
        labelled = [
            StructuredData.from_model(case.model, labels)
            for labels in predict(case.model, [data, data], {"engine": engine})
        ]
        yield Check(
            f"log_proba(predict(data), {engine})", log_proba(case.model, labelled, {"engine": engine}), [best] * 2
        )


@question
def ask_the_k_best(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        truth = case.truth(row)
        k = int(case.rng.choice([2, 5, len(truth.energies), len(truth.energies) + 3]))
        k = min(k, 200)
        for engine in ("auto", "junction_tree", "brute"):
            solutions = case.model.map(row, k=k, engine=engine).solutions
            asked = f"map(row {i}, k={k}, {engine})"
            yield Check(f"{asked}: energies", [energy for _, energy in solutions], truth.energies[:k])
            labellings = [tuple(case.codes(assignment)) for assignment, _ in solutions]
            yield Check(f"{asked}: different labellings", len(set(labellings)), len(truth.energies[:k]))
            yield Check(f"{asked}: their energies", [truth.energy(y) for y in labellings], truth.energies[:k])


@question
def ask_marginal_map(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        scope = sorted(case.some(most=4))
        logs = case.truth(row).summed_logs(scope)
        for engine in case.engines:
            result = case.model.marginal_map(case.names(scope), row, engine=engine)
            asked = f"marginal_map({case.names(scope)}, row {i}, {engine})"
            yield Check(f"{asked}.energy", result.energy, -logs.max())
            at = tuple(case.codes(result.assignment))
            yield Check(f"{asked}: energy of the states", -logs[at], -logs.max())
    scope, frame = case.some(), frame_of(case.spec, case.spec.rows)
    expected = [-case.truth(row).summed_logs(scope).max() for row in case.spec.rows]
    for engine in case.engines:
        result = case.model.marginal_map(case.names(scope), frame, engine=engine)
        yield Check(f"marginal_map({case.names(scope)}, all rows, {engine}).energy", result.energy, expected)


# Samples, moments, and what follows from them ------------------------------------------------------------------------


@question
def ask_samples(case: Case) -> Iterator[Check]:
    """Frequencies of variables and of labellings, by Chernoff's bound.

    n KL(f || p) exceeds a with probability at most 2 exp(-a), where f is the frequency in n draws of what has chance p.
    """
    rows = (case.spec.rows[-1], case.spec.rows[0])
    for row, engine in itertools.product(rows, ("auto", *case.clique_engines)):
        frame = case.model.sample(DRAWS, row, engine=engine, seed=case.spec.seed)
        yield _frequencies(case, f"sample({DRAWS}, {row}, {engine})", frame, case.truth(row))
    batch = frame_of(case.spec, case.spec.rows[-3:])
    frames = case.model.sample(DRAWS // 2, batch, seed=case.spec.seed)
    for label, row in zip(batch.index, case.spec.rows[-3:], strict=True):
        yield _frequencies(case, f"sample({DRAWS // 2}, rows -3:): {row}", frames.loc[label], case.truth(row))


def _frequencies(case: Case, name: str, frame: pd.DataFrame, truth: Truth) -> Check:
    codes = np.stack([frame[name].cat.codes.to_numpy() for name in case.spec.names])
    counts = np.zeros(case.spec.cards)
    np.add.at(counts, tuple(codes), 1.0)
    axes = range(counts.ndim)
    sums = [counts.sum(axis=tuple(a for a in axes if a != v)) for v in axes]
    found = np.concatenate([counts.reshape(-1), *sums]) / len(frame)
    true = np.minimum(np.concatenate([truth.p.reshape(-1), truth.marginals]), 1.0)
    distance = chernoff(found, true, len(frame))
    return Check(name, distance, math.log(2 * len(true) / FALSE_ALARM), at_most=True)


def chernoff(found: np.ndarray, true: np.ndarray, n: int) -> float:
    """n KL(f || p), the largest of several frequencies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(found > 0, found * np.log(found / true), 0.0)
        other = np.where(found < 1, (1 - found) * np.log((1 - found) / (1 - true)), 0.0)
    return n * float((one + other).max())


@question
def ask_moments(case: Case) -> Iterator[Check]:
    """Minus the gradient of log Z by theta, against central differences of log Z by another engine."""
    model, row = case.model, case.spec.rows[-1]
    free = np.arange(len(model.theta)) if model.support is None else np.flatnonzero(model.support)
    chosen = case.rng.permutation(free)[:4]
    gradient = []
    for i in chosen:
        step = np.where(np.arange(len(model.theta)) == i, STEP, 0.0)
        ends = [model.with_theta(model.theta + sign * step).log_partition(row, engine="brute") for sign in (1, -1)]
        gradient.append((ends[0] - ends[1]) / (2 * STEP))
    rounding = 1e-6 * max(1.0, abs(case.truth(row).log_z) / 1000)
    for engine in case.clique_engines:
        moments = model.moments(row, engine=engine)
        yield Check(f"moments({row}, {engine}) at {chosen}", moments[chosen], [-slope for slope in gradient], rounding)
    frame = frame_of(case.spec, case.spec.rows)
    total = np.sum([model.moments(row, engine="brute") for row in case.spec.rows], axis=0)
    for engine in case.clique_engines:
        yield Check(f"moments(all rows, {engine})", model.moments(frame, engine=engine), total)


@question
def ask_expectations(case: Case) -> Iterator[Check]:
    row, v = case.spec.rows[-1], case.some(most=1)[0]
    name, state = case.spec.names[v], case.spec.states[v][0]
    for engine in case.engines:
        found = case.model.expect(lambda y: y[name] == state, row, engine=engine)
        yield Check(f"expect({name} = {state}, {row}, {engine})", found, case.truth(row).joint([v])[0])


@question
def ask_information(case: Case) -> Iterator[Check]:
    """I(target; X | row) of every free X, from joint distributions of two."""
    row = {name: value for name, value in case.spec.rows[-1].items() if isinstance(value, (str, int))}
    free = [v for v, name in enumerate(case.spec.names) if name not in row]
    if free:
        truth, target = case.truth(row), int(case.rng.choice(free))
        found = case.model.information(case.spec.names[target], row)["information"]
        for v in free:
            if v != target:
                asked = f"information({case.spec.names[target]}, {row})[{case.spec.names[v]}]"
                yield Check(asked, found[case.spec.names[v]], _information(truth.joint([target, v])))


def _information(p: np.ndarray) -> float:
    i, j = np.nonzero(p)
    return float((p[i, j] * (np.log(p[i, j]) - np.log(p.sum(axis=1)[i]) - np.log(p.sum(axis=0)[j]))).sum())


@question
def ask_entropies_and_energies(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        truth = case.truth(row)
        largest = max(1.0, abs(truth.log_z), abs(truth.energies[0]))
        for engine in case.clique_engines:
            found = case.model.entropy(row, engine=engine)
            yield Check(f"entropy(row {i}, {engine})", found / largest, truth.entropy() / largest)
    prior = case.truth()
    codes = np.stack([case.rng.integers(prior.logs.shape) for _ in range(5)])
    shape = case.model.shape if case.model.shape is not None else (len(case.spec.names),)
    for labels in codes:
        found = case.model.energy(labels[case.order].reshape(shape))
        yield Check(f"energy({labels})", found, prior.energy(labels))
    frame = case.model.to_frame(case.spec.rows[-1])
    expected = case.truth(case.spec.rows[-1]).p.transpose(case.order).reshape(-1)
    yield Check("to_frame(last row).p", frame.iloc[:, -1], expected)
