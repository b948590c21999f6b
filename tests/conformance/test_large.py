"""Many rows and many instances: the same answers where engines compile, block and vectorise their work."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.graph.evidence import Evidence, read_evidence
from besag.infer.engine import ENGINES
from besag.model.model import Model
from tests.conformance.engines import CASES, Case, close, each_engine, names_of
from tests.strategies import evidence_for, examples, generators

WANTS = ("log_partition", "variables", "factors", "moments", "map")
ROWS = 1501
INSTANCES = 301
PATTERNS = 4


def patterns(data: DataObject, model: Model) -> tuple[list[dict[str, object]], np.ndarray, np.ndarray]:
    """A few different rows of evidence, as users write them, as observed codes and as log-weights."""
    rows = [data.draw(evidence_for(model)) for _ in range(PATTERNS)]
    read = [read_evidence(model.variables, row) for row in rows]
    states = int(model.variables.state_offsets[-1])
    weights = [np.zeros(states) if e.log_weights is None else e.log_weights[0] for e in read]
    return rows, np.concatenate([e.observed for e in read]), np.stack(weights)


@each_engine(*WANTS, exact=True)
@examples(6)
@given(data=st.data(), rng=generators())
def test_many_rows_are_single_queries(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models(max_labellings=200))
    rows, observed, weights = patterns(data, model)
    which = rng.integers(PATTERNS, size=ROWS)
    problem = model.problem.with_evidence(Evidence(observed[which], weights[which], batched=True))
    batch = case.infer(problem, *WANTS)
    singles = [case.ask(model, row, *WANTS) for row in rows]
    close(batch.log_partition, np.array([single.log_partition for single in singles])[which])
    close(batch.energy, np.array([single.energy for single in singles])[which])
    counts = np.bincount(which, minlength=PATTERNS)
    close(batch.moments / ROWS, counts @ np.array([single.moments for single in singles]) / ROWS)
    for name in names_of(model):
        close(batch[name], np.array([single[name] for single in singles])[which])
    for number in range(model.n_factors):
        close(batch.factor(number), np.array([single.factor(number) for single in singles])[which])
    close(batch.energy, problem.energy(batch.codes[:, 0]))


@each_engine(*WANTS, exact=True)
@examples(6)
@given(data=st.data(), rng=generators())
def test_many_instances_are_single_queries(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models(max_labellings=200))
    rows, observed, log_weights = patterns(data, model)
    which = rng.integers(PATTERNS, size=INSTANCES)
    weights = rng.normal(size=INSTANCES)
    graph = besag.compile_graph(*[model] * INSTANCES)
    evidence = Evidence(observed[which].reshape(1, -1), log_weights[which].reshape(1, -1))
    problem = graph.bind(model.theta, evidence=evidence, weights=weights, support=model.support)
    union = case.infer(problem, *WANTS)
    singles = [case.ask(model, row, *WANTS) for row in rows]
    close(union.log_partition, np.array([single.log_partition for single in singles])[which])
    close(union.energy, np.array([single.energy for single in singles])[which])
    close(union.probabilities[0], np.concatenate([singles[i].probabilities[0] for i in which]))
    by_theta = np.array([model.graph.moments(single.moments) for single in singles])
    close(graph.moments(union.moments), np.bincount(which, weights=weights, minlength=PATTERNS) @ by_theta)
    for i in (0, INSTANCES // 2, INSTANCES - 1):
        for number in range(model.n_factors):
            close(union[i].factor(number), singles[which[i]].factor(number))


THREADED = [case for case in CASES if "n_threads" in {f.name for f in fields(ENGINES.read(case.engine))}]


@pytest.mark.parametrize("case", THREADED, ids=[case.engine for case in THREADED])
def test_answers_do_not_depend_on_the_number_of_threads(case: Case) -> None:
    rng = np.random.default_rng(0)
    chain = besag.chain(rng.normal(size=(7, 3)), rng.normal(size=(3, 3)))
    many_rows = chain.problem.with_evidence(Evidence(rng.integers(-1, 3, size=(ROWS, 7)), batched=True))
    many_instances = besag.compile_graph(*[chain] * INSTANCES).bind(chain.theta, weights=rng.normal(size=INSTANCES))
    for problem in (many_rows, many_instances):
        wants = [want for want in (*WANTS, "samples") if want in case.wants]
        one, three = (case.infer(problem, *wants, n_threads=n, n_samples=2, n_chains=4) for n in (1, 3))
        for field in ("log_partitions", "probabilities", "factor_marginals", "table_moments", "codes", "sampled"):
            np.testing.assert_array_equal(getattr(one, field), getattr(three, field))


@each_engine("samples", exact=True)
def test_samples_of_many_rows_follow_their_evidence_and_differ(case: Case) -> None:
    """Each row's draws agree with its evidence, and two rows of the same evidence have different draws."""
    model = besag.chain(np.zeros((6, 3)), np.log([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]]))
    observed = np.full((ROWS, 6), -1)
    observed[:, 2] = np.arange(ROWS) % 3
    problem = model.problem.with_evidence(Evidence(observed, batched=True))
    samples = case.infer(problem, "samples", n_samples=20).samples
    assert (samples[:, :, 2] == observed[:, 2:3]).all()
    assert len(np.unique(samples[::3].reshape(len(samples[::3]), -1), axis=0)) == len(samples[::3])
