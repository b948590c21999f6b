"""Moments of weighted rows of evidence: one call gives what the rows give one by one."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES, Want
from tests.routes import Forced

WANT: frozenset[Want] = frozenset({"log_partition", "moments"})
ENGINE = [
    "brute",
    "junction_tree",
    "auto",
    "bp[tolerance=1e-13,max_iterations=5000]",
    "mean_field[tolerance=1e-13,max_iterations=5000]",
    "mean_field[family=tree,tolerance=1e-13,max_iterations=5000]",
    "mean_field[family=spanning_tree,tolerance=1e-13,max_iterations=5000]",
    "join_graph",
]


def model() -> besag.Model:
    """A loop of mixed cardinalities with a shared table, hard zeros, a structured factor and a factor of three."""
    rng = np.random.default_rng(5)
    scopes = np.array([[0, 1], [1, 2], [2, 0]])
    zeros = rng.normal(size=(3, 2))
    zeros[1, 0] = -np.inf
    return besag.markov_network(
        [3, 3, 3, 2, 2],
        [
            (scopes, rng.normal(size=(3, 3))),
            ((2, 3), zeros),
            ((3, 4), besag.potts(2)),
            ((0, 3, 4), rng.normal(size=(3, 2, 2))),
            ((4,), rng.normal(size=2)),
        ],
    )


def weighted(rows: int, *, likelihoods: bool = False) -> Problem:
    """Rows with some variables known, or likelihoods, and weights, one of them 0."""
    rng, problem = np.random.default_rng(rows), model().problem
    codes = rng.integers(-1, [3, 3, 3, 2, 2], size=(rows, 5))
    codes[:, 2] = np.where(codes[:, 2] == 1, 2, codes[:, 2])  # no row meets the hard zero
    logs = rng.normal(size=(rows, 13)) if likelihoods else None
    weights = rng.random(rows)
    weights[0] = 0.0
    return replace(problem.with_evidence(Evidence(codes, logs, batched=True)), weights=weights)


def one_by_one(engine: str, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    values, total = [], np.zeros(len(problem.log_potentials))
    for b in range(problem.evidence.n_rows):
        alone = replace(problem, evidence=problem.evidence.row(b), weights=None)
        found = ENGINES.read(engine).infer(alone, WANT)
        values.append(found.log_partitions)
        total += problem.row_weights[b] * found.moments
    return np.concatenate(values), total


@pytest.mark.parametrize("engine", ENGINE)
@pytest.mark.parametrize("likelihoods", [False, True])
def test_one_call_gives_what_rows_give_one_by_one(engine: str, likelihoods: bool) -> None:
    problem = weighted(11, likelihoods=likelihoods)
    values, moments = one_by_one(engine, problem)
    found = ENGINES.read(engine).infer(problem, WANT)
    assert_allclose(found.log_partitions, values, atol=1e-8)
    assert_allclose(found.moments, moments, atol=1e-7)


def test_trw_whose_trees_all_rows_share_is_linear_in_their_weights() -> None:
    problem, engine = weighted(11), ENGINES.read("trw[max_iterations=50]")
    units = [engine.infer(replace(problem, weights=unit), WANT).moments for unit in np.eye(11)]
    found = engine.infer(problem, WANT).moments
    assert_allclose(found, np.tensordot(problem.row_weights, units, 1), atol=1e-12)
    assert_allclose(engine.infer(replace(problem, weights=None), WANT).moments, np.sum(units, axis=0), atol=1e-12)


@pytest.mark.parametrize("engine", ["junction_tree", "tree"])
@pytest.mark.parametrize("seen", ["anything", "one variable in every row"])
def test_exact_engines_agree_with_enumeration_along_every_route(engine: str, seen: str, forced: Forced) -> None:
    problem = weighted(30)
    if engine == "tree":
        chain = besag.chain(np.random.default_rng(1).normal(size=(4, 3)), np.random.default_rng(2).normal(size=(3, 3)))
        codes = np.random.default_rng(3).integers(-1, 3, size=(30, 4))
        weights = np.random.default_rng(4).random(30)
        problem = replace(chain.problem.with_evidence(Evidence(codes, batched=True)), weights=weights)
    if seen != "anything":
        codes = np.array(problem.evidence.observed)
        codes[:, 1] = np.maximum(codes[:, 1], 0)
        problem = replace(problem, evidence=Evidence(codes, batched=True))
    expected = ENGINES.read("brute").infer(problem, WANT)
    answers = []
    for loose in (0.0, np.inf):
        for most in (1, 2**16):
            for memory in (None, 30_000):
                routes = {"infer.junction.run.LOOSE": loose, "infer.junction.kernels.lanes.MOST_LANE_MESSAGES": most}
                forced(routes)
                for threads in (1, 2):
                    asked = ENGINES.read(engine, n_threads=threads, memory_limit=memory)
                    answers.append(asked.infer(problem, WANT))
    for found in answers:
        assert_allclose(found.log_partitions, expected.log_partitions, atol=1e-11)
        assert_allclose(found.moments, expected.moments, atol=1e-11)
    for one, other in zip(answers[::2], answers[1::2], strict=True):
        np.testing.assert_array_equal(one.moments, other.moments)  # by one thread and by two


def test_a_row_without_a_labelling_has_no_moments_and_others_have_theirs() -> None:
    problem = model().problem
    codes = np.full((9, 5), -1)
    codes[4, 2:4] = 1, 0  # the hard zero
    found = ENGINES.read("junction_tree").infer(problem.with_evidence(Evidence(codes, batched=True)), WANT)
    assert np.flatnonzero(found.log_partitions == -np.inf).tolist() == [4]
    alone = ENGINES.read("brute").infer(problem, WANT)
    assert_allclose(found.moments, 8 * alone.moments, atol=1e-12)


def test_weights_must_be_those_of_rows_or_of_instances() -> None:
    problem = weighted(4)
    with pytest.raises(ModelError, match="4, one for each row of evidence, got shape"):
        replace(problem, weights=np.ones(3))
    with pytest.raises(ModelError, match="finite numbers"):
        replace(problem, weights=np.array([1.0, np.nan, 1.0, 1.0]))
