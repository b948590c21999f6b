"""The k heaviest labellings on a tree of cliques: against enumeration, in both modes of the kernels, and on unions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Semiring
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.k_best import k_best
from besag.infer.junction.run import JunctionRun
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, generators, models

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def found(problem: Problem, k: int, **options: bool) -> tuple[np.ndarray, np.ndarray]:
    run = JunctionRun(JunctionTree(), problem)
    numbers = run.numbers(run.plan(frozenset({"map"})), Semiring.MAX)
    return k_best(numbers, run.evidence_rows(0, problem.evidence.n_rows), k, **options)


def check(weights: np.ndarray, codes: np.ndarray, oracle: Enumeration) -> None:
    """The largest weights in order, each that of its labelling, no labelling twice, -inf where there are no more."""
    expected = np.full(len(weights), -np.inf)
    largest = np.sort(oracle.log_weights[oracle.log_weights > -np.inf])[::-1][: len(weights)]
    expected[: len(largest)] = largest
    assert_allclose(weights, expected, **CLOSE)
    n = int((weights > -np.inf).sum())
    assert len(np.unique(codes[:n], axis=0)) == n
    for weight, labels in zip(weights[:n], codes[:n], strict=True):
        assert_allclose(weight, oracle.log_weights[(oracle.labels == labels).all(axis=1)], **CLOSE)


@examples(120)
@given(data=st.data(), k=st.sampled_from([2, 3, 10, 50, 300, 1]))
def test_against_enumeration(data: DataObject, k: int) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    weights, codes = found(problem, k, compile=data.draw(st.booleans()))
    check(weights[0, 0], codes[0], Enumeration(model, evidence))


@examples(30)
@given(data=st.data(), rng=generators())
def test_every_row_has_its_own(data: DataObject, rng: np.random.Generator) -> None:
    """Rows observe different variables, some at impossible states."""
    model = data.draw(models(max_labellings=300))
    oracle = Enumeration(model)
    observed = oracle.labels[rng.integers(len(oracle.labels), size=4)]
    observed = np.where(rng.random(observed.shape) < 0.3, observed, -1)
    weights, codes = found(model.problem.with_evidence(Evidence(observed, batched=True)), 7)
    for row, seen in enumerate(observed):
        names = model.variables.names_at(np.flatnonzero(seen >= 0))
        given = {name: model.variable(name).states[seen[model.variables.index(name)]] for name in names}
        check(weights[row, 0], codes[row], Enumeration(model, given))


@examples(30)
@given(data=st.data())
def test_ties(data: DataObject) -> None:
    """Energies 0 and 1 only: many labellings of equal weight, each given once."""
    drawn = data.draw(models(max_labellings=200))
    model = drawn.with_theta(np.round(np.clip(drawn.theta, 0, 1)))
    weights, codes = found(model.problem, 250)
    check(weights[0, 0], codes[0], Enumeration(model))
    again = found(model.problem, 250)
    assert_array_equal(codes, again[1])


@examples(20)
@given(data=st.data())
def test_instances_of_a_union_have_their_own(data: DataObject) -> None:
    model = data.draw(models(max_labellings=100))
    graph = besag.compile_graph(model, model, model)
    observed = np.full((1, graph.n_variables), -1)
    observed[0, 0] = Enumeration(model).labels[np.argmax(Enumeration(model).log_weights)][0]
    problem = graph.bind(model.theta, support=model.support).with_evidence(Evidence(observed))
    weights, codes = found(problem, 6)
    assert weights.shape == (1, 3, 6)
    first = model.variables.names_at([0])[0]
    state = model.variable(first).states[observed[0, 0]]
    for n, evidence in enumerate([{first: state}, {}, {}]):
        mine = slice(n * len(model.variables), (n + 1) * len(model.variables))
        check(weights[0, n], codes[0, :, mine], Enumeration(model, evidence))


def test_the_answer_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    model = besag.ising((4, 4), rng.normal(), rng.normal(size=(4, 4)))
    observed = np.where(rng.random((70, 16)) < 0.2, rng.integers(2, size=(70, 16)), -1)
    problem = model.problem.with_evidence(Evidence(observed, batched=True))
    run = JunctionRun(JunctionTree(), problem)
    numbers, rows = run.numbers(run.plan(frozenset({"map"})), Semiring.MAX), run.evidence_rows(0, 70)
    one, many = (k_best(numbers, rows, 20, n_threads=n) for n in (1, 3))
    assert_array_equal(one[0], many[0])
    assert_array_equal(one[1], many[1])


@pytest.mark.parametrize("compile", [False, True])
def test_separate_parts_are_combined_in_every_way(compile: bool) -> None:
    """Three free binary variables: the eight labellings by the sum of what each costs."""
    model = besag.markov_network([2, 2, 2], [(v, [0.0, -(2.0**v)]) for v in range(3)])
    weights, codes = found(model.problem, 10, compile=compile)
    assert_allclose(weights[0, 0], [0, -1, -2, -3, -4, -5, -6, -7, -np.inf, -np.inf])
    assert_array_equal(codes[0, :8] @ [1, 2, 4], np.arange(8))


def test_cliques_with_products_made_in_steps() -> None:
    """A clique of many operands is joined in steps, by cliques that eliminate nothing."""
    rng = np.random.default_rng(1)
    pairs = [([i, j], rng.normal(size=(4, 4))) for i in range(6) for j in range(i)]
    model: Model = besag.markov_network([4] * 6, pairs)
    run = JunctionRun(JunctionTree(), model.problem)
    shape = run.plan(frozenset({"map"})).join.shape
    assert (shape[:, 1] * shape[:, 2] == 1).any(), "the case that this test is for"
    weights, codes = found(model.problem, 100)
    check(weights[0, 0], codes[0], Enumeration(model))
