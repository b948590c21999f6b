"""Mean field on models with hard zeros."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from besag.infer.mean_field.engine import MeanField
from besag.infer.result import Result
from besag.model.model import Model

FAMILIES = pytest.mark.parametrize("family", ["naive", "tree"])
WANTS = frozenset({"log_partition", "variables", "factors", "moments"})


def solve(problem: Problem, seed: int = 0, warm: Result | None = None, **options: Any) -> Result:
    return MeanField(**options).infer(problem, WANTS, warm=warm, rng=np.random.default_rng(seed))


def _different(edges: list[tuple[int, int]], n_states: int) -> Model:
    """Colourings of a graph: neighbours differ."""
    table = np.where(np.eye(n_states) > 0, -np.inf, 0.0)
    return besag.markov_network([n_states] * (max(map(max, edges)) + 1), [(np.array(edges), table)])


PETERSEN = [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
PETERSEN += [(5 + i, 5 + (i + 2) % 5) for i in range(5)]


@FAMILIES
def test_a_start_that_no_zero_rules_out_is_searched_for(family: str) -> None:
    model = _different(PETERSEN, 3)
    result = solve(model.problem, family=family, n_restarts=3)
    assert 0 <= result.log_partition <= np.log(120) + 1e-9  # the Petersen graph has 120 colourings by three colours
    assert result.diagnostics.feasible


@FAMILIES
def test_where_no_start_is_found_the_bound_is_minus_infinity_and_says_so(family: str) -> None:
    """An odd ring has no colouring by two colours, which consistency of single factors does not see."""
    model = _different([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (5, 6)], 2)
    result = solve(model.problem, family=family)
    assert result.log_partition == -np.inf
    assert not result.diagnostics.feasible
    assert not np.isnan(result.probabilities).any()
    assert_allclose(result.probabilities.reshape(7, 2).sum(axis=1), 1)


def test_equal_variables_take_the_heavier_state() -> None:
    """All variables equal: a product can hold one state only, and the search takes the one of more weight."""
    equal = np.where(np.eye(3) > 0, 0.0, -np.inf)
    model = besag.chain(np.array([[0.0, 1.0, 0.3]] * 5), equal)
    result = model.marginals(engine="mean_field")
    assert_allclose(result.log_partition, 5.0)
    assert_array_equal(result.array[:, 1], np.ones(5))


def test_impossible_rows_are_minus_infinity_and_zeros() -> None:
    model = besag.chain(np.zeros((3, 2)), np.where(np.eye(2) > 0, 0.0, -np.inf))
    observed = np.array([[0, -1, 1], [0, -1, 0]])
    result = solve(model.problem.with_evidence(Evidence(observed, batched=True)))
    assert_array_equal(result.log_partition, [-np.inf, 0.0])
    assert (result.probabilities[0] == 0).all()
    assert (result.factor_marginals[0] == 0).all()
    assert_array_equal(result.probabilities[1], [1, 0, 1, 0, 1, 0])


@pytest.mark.parametrize("name", ["alarm", "insurance"])
def test_networks_with_evidence_have_a_finite_bound(data_dir: Path, name: str) -> None:
    found = sorted(data_dir.rglob(f"{name}.bif*"))
    if not found:
        pytest.skip(f"{name}.bif is absent")
    model = besag.load(found[0])
    rng = np.random.default_rng(0)
    labels = model.sample(3, seed=1).iloc[int(rng.integers(3))].to_dict()
    evidence = {key: labels[key] for key in list(labels)[::4]}
    exact = model.log_partition(evidence)
    naive, trees = (
        model.log_partition(evidence, engine=f"mean_field[family={family}]") for family in ("naive", "tree")
    )
    assert -np.inf < naive <= exact + 1e-9
    assert -np.inf < trees <= exact + 1e-9
