"""The k best labellings where no tree fits: distinct, sorted, possible, and near the truth on small models."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

import besag
from besag.graph.problem import Problem
from besag.infer.map.k_best import search_k_best
from besag.infer.result import Result
from besag.model.model import Model
from tests.infer.map.test_ilp import spin_glass
from tests.strategies import models


def found_by_search_of(problem: Problem, k: int, limit: float | None = 1.0) -> Result:
    options = {"warm": None, "rng": np.random.default_rng(0), "time_limit": limit, "on_step": None}
    return search_k_best(problem, k, None, frozenset({"map"}), **options)


def found_by_search(model: Model, k: int, limit: float | None = 1.0) -> Result:
    return found_by_search_of(model.problem, k, limit)


@settings(max_examples=15)
@given(models())
def test_labellings_are_distinct_sorted_and_possible(model: Model) -> None:
    found, true = found_by_search(model, 4, 0.2), model.map(engine="brute", k=4)
    energies = [energy for _, energy in found.solutions]
    assert energies == sorted(energies)
    assert len({tuple(y.items()) for y, _ in found.solutions}) == len(energies)
    assert_allclose([model.energy(y) for y, _ in found.solutions], energies)
    assert len(energies) <= len(true.solutions)
    assert all(mine >= best - 1e-9 for mine, (_, best) in zip(energies, true.solutions, strict=False))
    assert found.energy == pytest.approx(true.energy)


def test_the_ten_best_of_a_grid_are_found() -> None:
    model = spin_glass(10)
    found, true = found_by_search(model, 10, 4.0), model.map(k=10)
    assert_allclose([e for _, e in found.solutions], [e for _, e in true.solutions])


def test_unions_have_one_labelling_each() -> None:
    model = spin_glass(3)
    with pytest.raises(besag.errors.CapabilityError, match="one model"):
        found_by_search_of(besag.compile_graph(model, model).bind(model.theta), 2)
