"""Simulated annealing: seeds, schedules, steps, limits, and the law of a sweep."""

import numpy as np
import pytest

import besag
from besag.infer.map.anneal import Anneal, Cooling
from tests.infer.map.test_ilp import spin_glass


def test_it_finds_the_best_labelling_of_a_small_grid() -> None:
    model = spin_glass(6)
    found = model.map(engine="anneal")
    assert found.energy == pytest.approx(model.map().energy)
    assert not found.optimal
    assert found.diagnostics.sweeps == 2000


def test_a_seed_is_a_run() -> None:
    model = spin_glass(7, seed=2)
    one, again = (model.map(engine="anneal[n_sweeps=20]", seed=3).energy for _ in range(2))
    assert one == again


@pytest.mark.parametrize("schedule", ["geometric", "linear"])
def test_temperatures_fall(schedule: str) -> None:
    engine = Anneal(n_sweeps=10, schedule=schedule, hottest=4.0, coldest=0.5)
    process = Cooling(engine, spin_glass(3).problem, None, None, singly=True)
    values = process.temperatures[0]
    assert (values[0], values[-1]) == pytest.approx((4.0, 0.5))
    assert (np.diff(values) < 0).all()


def test_a_step_is_a_sweep_and_the_best_is_kept() -> None:
    model = spin_glass(5)
    energies = [r.energy for r in model.steps(engine="anneal[n_sweeps=15,n_restarts=1]")]
    assert len(energies) == 30
    assert (np.diff(energies) <= 0).all()


def test_sweeps_at_one_temperature_sample_the_model() -> None:
    """Mean spins of 10,000 sweeps are at most six standard errors off, where a tenth of the draws count."""
    model, n = spin_glass(3), 10_000
    process = Cooling(Anneal(n_sweeps=n, hottest=1.0, coldest=1.0), model.problem, None, None, singly=True)
    total = np.zeros(9)
    for _ in range(n - 1):
        process.step()
        total += process.codes[0]
    true = model.marginals().array[..., 1].ravel()
    assert np.abs(total / (n - 1) - true).max() < 6 * 0.5 / np.sqrt(n / 10)


def test_the_time_limit_ends_it() -> None:
    with pytest.warns(besag.errors.ConvergenceWarning, match="time_limit"):
        found = spin_glass(40).map(engine="anneal[n_sweeps=1000000]", time_limit=0.3)
    assert np.isfinite(found.energy)
    assert found.diagnostics.seconds < 3.0


@pytest.mark.parametrize(
    ("text", "match"),
    [("coldest=0", "above 0"), ("n_sweeps=0", "at least 1"), ("hottest=1.0,coldest=2.0", "at most hottest"),
     ("schedule=none", "one of")],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(text: str, match: str) -> None:
    with pytest.raises(besag.errors.CapabilityError, match=match):
        spin_glass(3).map(engine=f"anneal[{text}]")
