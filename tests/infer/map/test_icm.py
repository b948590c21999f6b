"""Iterated conditional modes: 002 (39) as it is written down, ties, sweeps, labels beyond two, hard zeros, limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.errors import CapabilityError, ConvergenceWarning
from besag.infer.map.icm import ICM
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.routes import Forced
from tests.strategies import examples, generators, models


def flips_of(codes: np.ndarray, cards: np.ndarray) -> list[np.ndarray]:
    """All labellings that differ from one in one variable, by variable, then state."""
    found = []
    for v, n in enumerate(cards.tolist()):
        for k in range(n):
            if k != codes[v]:
                found.append(np.array(codes))
                found[-1][v] = k
    return found


def energy_of(model: Model, codes: np.ndarray) -> float:
    """H of codes (V,)."""
    return float(model.energy(codes.reshape(model.shape or -1)))


def written_down(model: Model, codes: np.ndarray) -> list[np.ndarray]:
    """The labellings that 002 (39) goes through, by enumeration of flips; np.argmin takes the first of ties."""
    found = [codes]
    while True:
        flips = flips_of(found[-1], model.variables.cardinalities)
        energies = [energy_of(model, flip) for flip in flips]
        if not flips or not min(energies) < energy_of(model, found[-1]):
            return found[1:]
        found.append(flips[int(np.argmin(energies))])


def labelled(model: Model, rng: np.random.Generator) -> np.ndarray:
    """One of the labellings that are possible."""
    oracle = Enumeration(model)
    return np.asarray(rng.choice(oracle.labels[oracle.log_weights > -np.inf])).reshape(model.shape or -1)


@examples(60)
@given(data=st.data(), rng=generators())
def test_a_step_is_the_best_flip_as_the_lecture_writes_it(data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=300))
    start = labelled(model, rng)
    steps = [r.labels.reshape(-1) for r in model.steps(engine="icm", init=start)]
    expected = written_down(model, start.reshape(-1))
    np.testing.assert_array_equal(steps, expected or [start.reshape(-1)])


@pytest.mark.parametrize("n_states", [2, 3])
def test_ties_go_to_the_lowest_variable_and_then_state(n_states: int) -> None:
    """Integers, so that equal energies are equal numbers."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        tables = rng.integers(0, 3, (12, n_states, n_states))
        pairs = rng.permuted(np.tile(np.arange(6), (12, 1)), axis=1)[:, :2]
        factors = [([f"v{i}", f"v{j}"], table) for (i, j), table in zip(pairs, tables, strict=True)]
        model = besag.markov_network({f"v{i}": n_states for i in range(6)}, factors)
        start = rng.integers(n_states, size=6)
        steps = [r.labels for r in model.steps(engine="icm", init=start)]
        np.testing.assert_array_equal(steps, written_down(model, start) or [start])


@pytest.mark.parametrize("engine", ["icm", "icm[schedule=sequential]"])
@examples(40)
@given(data=st.data(), rng=generators())
def test_it_ends_where_no_flip_lowers_the_energy(engine: str, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=300))
    result = model.map(engine=engine, init=labelled(model, rng))
    flips = flips_of(result.labels.reshape(-1), model.variables.cardinalities)
    assert result.diagnostics.converged
    assert all(energy_of(model, flip) >= result.energy - 1e-12 for flip in flips)


def test_steps_and_map_come_to_the_same_labelling_whatever_is_done_at_once(forced: Forced) -> None:
    model = besag.grid((7, 9), 3, unary=np.random.default_rng(0).normal(size=(7, 9, 3)), pairwise=besag.potts(3))
    expected = [r.labels for r in model.steps(engine="icm")]
    one = model.map(engine="icm")
    assert one.diagnostics.flips == one.diagnostics.iterations == len(expected)
    forced({"infer.map.icm.AT_ONCE": 2})
    for r in (one, model.map(engine="icm"), model.map(engine="icm", trace=True)):
        np.testing.assert_array_equal(r.labels, expected[-1])
    trace = model.map(engine="icm", trace=True).trace
    assert (np.diff(trace["value"]) < 0).all()
    assert trace["iteration"].tolist() == list(range(1, len(expected) + 1))


def test_a_start_that_hard_zeros_rule_out_is_left_by_flips_that_are_rid_of_them() -> None:
    table = np.array([[0.0, -np.inf], [-np.inf, -1.0]])
    model = besag.chain(np.zeros((5, 2)), table)
    result = model.map(engine="icm", init=np.array([0, 1, 0, 1, 0]))
    assert result.energy < math.inf


def test_hard_zeros_are_heeded_where_the_best_states_alone_are_ruled_out() -> None:
    unlike = np.where(np.eye(3, dtype=bool), -np.inf, 0.0)
    model = besag.grid((6, 6), 3, unary=np.tile([1.0, 0.0, 0.0], (6, 6, 1)), pairwise=unlike)
    result = model.map(engine="icm", seed=1)
    assert result.energy == model.energy(result.labels) < math.inf


def test_restarts_never_make_it_worse_and_mostly_better() -> None:
    rng = np.random.default_rng(5)
    model = besag.ising((8, 8), coupling=(rng.normal(size=(8, 7)), rng.normal(size=(7, 8))), field=0.1)
    energies = [model.map(engine=f"icm[n_restarts={n}]", seed=2).energy for n in (0, 5, 40)]
    assert energies[0] >= energies[1] >= energies[2]
    assert energies[2] < energies[0]


def test_each_row_of_a_batch_is_a_search_of_its_own() -> None:
    rng = np.random.default_rng(6)
    model = besag.grid((3, 4), 3, unary=rng.normal(size=(3, 4, 3)), pairwise=rng.normal(size=(3, 3)))
    import pandas as pd

    frame = pd.DataFrame({"0,0": ["0", "1", "2"], "2,3": ["2", None, "1"]})
    batch = model.map(frame, engine="icm")
    for row in range(3):
        evidence = {name: value for name, value in frame.iloc[row].items() if isinstance(value, str)}
        single = model.map(evidence, engine="icm")
        assert batch.energy[row] == single.energy
        assert batch.assignment[row] == single.assignment


def test_a_limit_of_steps_is_one_of_flips() -> None:
    unary = np.random.default_rng(0).normal(size=(9, 9, 2))
    model = besag.grid((9, 9), 2, unary=unary, pairwise=besag.potts(2), weights=0.1)
    with pytest.warns(ConvergenceWarning, match="icm stopped after 3 iterations"):
        result = model.map(engine="icm[max_iterations=3]", init=np.zeros((9, 9), int))
    assert result.diagnostics.flips == 3
    assert (result.labels != 0).sum() == 3


def test_what_it_cannot_be_asked() -> None:
    with pytest.raises(CapabilityError, match="schedule must be one of"):
        ICM(schedule="random")
    with pytest.raises(CapabilityError, match="n_restarts must be a whole number of at least 0"):
        ICM(n_restarts=-1)
    model = besag.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(CapabilityError, match="init must have a labelling"):
        model.map(engine="icm", init=model.marginals())
