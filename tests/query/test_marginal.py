"""Marginal MAP beyond elimination: always an answer, whose energy is exact, with a bound that holds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.errors import ApproximationWarning
from besag.infer.junction.elimination import Buckets
from besag.infer.junction.engine import JunctionTree
from besag.infer.map.marginal_search import TargetSearch, search_targets, value_at
from besag.infer.result import Result
from besag.model.model import Model
from tests.infer.map.test_ilp import spin_glass
from tests.strategies import models


def searched(model: Model, targets: np.ndarray) -> Result:
    start = model.map(engine="brute").labels.reshape(1, -1)
    given = (JunctionTree(), [start], np.array([-np.inf]))
    return search_targets(model.problem, targets, *given, rng=np.random.default_rng(0), time_limit=5.0)


@settings(max_examples=30)
@given(models(), st.data())
def test_small_models_are_solved(model: Model, data: st.DataObject) -> None:
    n = len(model.variables)
    asked = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=min(n, 4), unique=True))
    names = model.variables.names_at(asked)
    found, true = searched(model, np.array(asked)), model.marginal_map(names)
    assert found.energy == pytest.approx(true.energy, rel=1e-9, abs=1e-9)
    assert found.optimal
    assert set(found.assignment) == set(names)


def test_a_search_beyond_elimination_is_never_worse_than_its_start() -> None:
    model, targets = spin_glass(9, seed=3), np.arange(0, 81, 2)
    names = model.variables.names_at(targets)
    true = model.marginal_map(names)
    with pytest.warns(ApproximationWarning, match="exact elimination does not fit: .*marginal_search"):
        found = model.marginal_map(names, memory_limit=60_000, time_limit=4.0)
    assert found.energy_bound <= true.energy + 1e-9
    given_best = model.map().assignment
    start = -model.log_partition(evidence={name: given_best[name] for name in names})
    assert true.energy - 1e-9 <= found.energy <= start + 1e-9
    again = -model.log_partition(evidence=found.assignment)
    assert found.energy == pytest.approx(again, rel=1e-9)


def test_rows_share_the_time() -> None:
    model = spin_glass(8, seed=4)
    names = model.variables.names_at(range(0, 64, 3))
    states = model.variables[1].states
    frame = pd.DataFrame({model.variables.names[1]: [states[0], states[1]]})
    with pytest.warns(ApproximationWarning, match="marginal_search"):
        found = model.marginal_map(names, frame, memory_limit=60_000, time_limit=3.0)
    assert len(found.assignment) == 2
    for row, (assignment, energy) in enumerate(zip(found.assignment, found.energy, strict=True)):
        evidence = {**assignment, model.variables.names[1]: states[row]}
        assert energy == pytest.approx(-model.log_partition(evidence=evidence), rel=1e-9)


def test_where_not_even_the_rest_fits_there_is_an_estimate() -> None:
    model = spin_glass(14, seed=5)
    names = model.variables.names_at([0, 50, 100])
    with pytest.warns(ApproximationWarning, match="Answered by auto"):
        found = model.marginal_map(names, memory_limit=150_000, time_limit=3.0)
    assert len(found.assignment) == 3
    assert found.bound == "estimate"
    assert found.energy_bound <= found.energy


def test_the_value_of_a_joint_state_is_that_of_the_table() -> None:
    model = spin_glass(4)
    kept = np.array([0, 5, 10])
    [left] = Buckets(JunctionTree(), model.problem).eliminate(kept)
    table = left.joint()[0]
    for codes in np.ndindex(*table.shape):
        assert value_at(left, np.array(codes)) == pytest.approx(table[codes])


def test_blocks_are_neighbours_of_so_many_bits() -> None:
    model, targets = spin_glass(8), np.arange(0, 64, 2)
    search = TargetSearch(model.problem, targets, JunctionTree(), np.random.default_rng(0), 1.0)
    block = search._grow(20, 5.0)
    assert 20 in block
    assert len(block) == 5
    assert set(block) <= set(targets.tolist())
    assert len(search._grow(20, 0.1)) == 1
