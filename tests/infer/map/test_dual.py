"""Dual ascent: bounds that hold and never fall, exact on trees, any arity, hard zeros, unions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.errors import CapabilityError
from besag.infer.map.dual import Bounder, Dual
from tests.oracle import Enumeration
from tests.strategies import examples, forests, models


@examples(60)
@given(data=st.data())
def test_bounds_hold_at_every_step_and_never_fall(data: DataObject) -> None:
    model = data.draw(models())
    least = Enumeration(model).map_energy
    bounds = [r.energy_bound for _, r in zip(range(8), model.steps(engine="dual[tolerance=0]"), strict=False)]
    assert (np.diff(bounds) >= -1e-12).all()
    assert max(bounds) <= least + 1e-10


@examples(40)
@given(data=st.data())
def test_bounds_of_messages_alone_never_fall_either(data: DataObject) -> None:
    """Of each pass, without taking the best of all."""
    bounder = Bounder(data.draw(models()).problem, None)
    bounds = [bounder.bounds()[0]]
    for step in range(8):
        bounder.send(0, backwards=step % 2 == 1)
        bounds.append(bounder.bounds()[0])
    if np.isfinite(bounds).all():
        assert (np.diff(bounds) >= -1e-9).all()


@examples(40)
@given(data=st.data())
def test_the_gap_closes_on_forests(data: DataObject) -> None:
    model = data.draw(forests())
    result = model.map(engine="dual[tolerance=1e-12]")
    assert result.optimal
    assert result.energy == pytest.approx(Enumeration(model).map_energy, abs=1e-9)


@examples(40)
@given(data=st.data())
def test_slack_is_a_bound_on_labellings_with_a_state(data: DataObject) -> None:
    model = data.draw(models())
    oracle, bounder = Enumeration(model), Bounder(model.problem, None)
    for _ in range(3):
        bounder.ascend(0)
    bound, slack = bounder.slack(0)
    offsets = model.graph.state_offsets
    for v in range(len(model.variables)):
        for k in range(offsets[v + 1] - offsets[v]):
            least = -oracle.log_weights[oracle.labels[:, v] == k].max()
            assert bound + slack[offsets[v] + k] <= least + 1e-9


def test_attractive_grids_are_solved() -> None:
    rng = np.random.default_rng(0)
    model = besag.ising((12, 12), coupling=(np.abs(rng.normal(size=(12, 11))), np.abs(rng.normal(size=(11, 12)))),
                        field=rng.normal(size=(12, 12)))  # fmt: skip
    result = model.map(engine="dual[tolerance=1e-10]")
    assert result.optimal
    assert result.energy == pytest.approx(model.map(engine="exact").energy)


def test_each_instance_of_a_union_has_its_bound() -> None:
    rng = np.random.default_rng(0)
    graph_model = besag.markov_network({"a": 2, "b": 3, "c": 2}, [(["a", "b", "c"], rng.normal(size=(2, 3, 2)))])
    other = graph_model.with_theta(graph_model.theta)
    graph = besag.compile_graph(graph_model, other)
    result = Dual().infer(graph.bind(graph_model.theta), frozenset({"map"}))
    assert np.allclose(result.energy_bound, graph_model.map().energy)


def test_what_it_cannot_be_asked() -> None:
    with pytest.raises(CapabilityError, match="tolerance must be a number"):
        Dual(tolerance=-1.0)
