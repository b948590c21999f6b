"""The k best labellings of the junction tree, in the form that brute force gives them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose

import besag
from besag.errors import TooLargeError
from besag.graph.evidence import read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES
from besag.infer.result import Result
from tests.strategies import evidence_for, examples, frame_for, models

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def best(problem: Problem, engine: str) -> Result:
    return ENGINES.read(engine).infer(problem, frozenset({"map"}))


def check(problem: Problem, k: int) -> None:
    """The same shapes and energies as brute force, in order; energies are those of the codes, which differ."""
    result, expected = best(problem, f"junction_tree[k={k}]"), best(problem, f"brute[k={k}]")
    assert result.codes.shape == expected.codes.shape
    assert_allclose(result.energies, expected.energies, **CLOSE)
    finite = result.energies < np.inf
    assert (result.energies[:, :-1] <= result.energies[:, 1:]).all()
    for row in range(len(result.codes)) if problem.graph.n_instances == 1 else ():
        codes = result.codes[row][finite[row]]
        assert len(np.unique(codes, axis=0)) == len(codes)
        alone = problem.with_evidence(problem.evidence.row(row))
        assert_allclose(result.energies[row][finite[row]], alone.energy(codes), **CLOSE)


@examples(60)
@given(data=st.data(), k=st.sampled_from([2, 3, 40, 5000]))
def test_of_one_query(data: DataObject, k: int) -> None:
    model = data.draw(models())
    check(model.problem.with_evidence(read_evidence(model.variables, data.draw(evidence_for(model)))), k)


@examples(30)
@given(data=st.data(), k=st.sampled_from([2, 5, 60]))
def test_of_a_batch(data: DataObject, k: int) -> None:
    model = data.draw(models(max_labellings=300))
    check(model.problem.with_evidence(read_evidence(model.variables, data.draw(frame_for(model)))), k)


@examples(20)
@given(data=st.data(), k=st.sampled_from([2, 5, 60]))
def test_of_a_union(data: DataObject, k: int) -> None:
    model = data.draw(models(max_labellings=100))
    graph = besag.compile_graph(model, model)
    problem = graph.bind(model.theta, support=model.support)
    check(problem, k)
    union, single = best(problem, f"junction_tree[k={k}]"), best(model.problem, f"brute[k={k}]")
    for i in range(2):
        assert_allclose(
            [energy for _, energy in union[i].solutions], single.energies[single.energies < np.inf], **CLOSE
        )


@pytest.mark.parametrize("evidence", [None, {"2,2": 1}, {"1,1": {-1, 1}, "3,3": {"-1": 0.1, "1": 0.9}}])
def test_solutions_of_a_grid(evidence: Any) -> None:
    rng = np.random.default_rng(0)
    model = besag.ising((4, 4), 0.5, rng.normal(size=(4, 4)))
    result, expected = (model.map(evidence, k=200, engine=engine) for engine in ("exact", "brute"))
    assert len(result.solutions) == 200
    assert_allclose([e for _, e in result.solutions], [e for _, e in expected.solutions], **CLOSE)
    assert result.assignment == result.solutions[0][0] == expected.assignment
    assert result.optimal
    assert len({tuple(y.values()) for y, _ in result.solutions}) == 200


def test_no_more_than_there_are() -> None:
    model = besag.markov_network([2, 2, 1], [((0, 1), [[1, 0], [0, 2]])], given="weight")
    result = model.map(k=4, engine="junction_tree")
    assert [list(y.values()) for y, _ in result.solutions] == [["1", "1", "0"], ["0", "0", "0"]]
    assert_allclose(result.energies, [[-np.log(2), 0, np.inf, np.inf]], atol=1e-15)
    assert model.map(k=10**9, engine="junction_tree").codes.shape == (1, 4, 3)


def test_more_labellings_than_fit_are_refused() -> None:
    with pytest.raises(TooLargeError, match=r"the 40000 best labellings would take .* memory_limit=100000"):
        besag.ising((4, 4)).map(k=40000, memory_limit=100_000)


@pytest.mark.parametrize("scale", [1e-20, 1e-300])
def test_energies_far_below_one(scale: float) -> None:
    """What is taken out of a message is a whole number, and never more than there is."""
    for seed in range(20):
        tables = -scale * (1.0 + np.random.default_rng(seed).random((3, 3, 3)))
        model = besag.markov_network([3] * 4, [((v, v + 1), tables[v]) for v in range(3)])
        least = model.map(engine="brute").energy
        assert model.map(engine="junction_tree").energy == pytest.approx(least, rel=1e-9, abs=0.0)
        assert model.map(engine="junction_tree", k=3).energy == pytest.approx(least, rel=1e-9, abs=0.0)
