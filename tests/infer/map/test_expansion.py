"""Alpha-expansion and swaps: the energy never rises, no move is left in the end, labels of all kinds, limits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.errors import ConvergenceWarning
from besag.infer.map.cuts import fuse
from besag.infer.map.landscape import Landscape
from tests.oracle import Enumeration
from tests.strategies import examples, models

ENGINES = ("alpha_expansion", "alpha_beta_swap")


def potts(n: int, k: int, seed: int = 0) -> besag.Model:
    rng = np.random.default_rng(seed)
    weights = (np.abs(rng.normal(size=(n, n - 1))), np.abs(rng.normal(size=(n - 1, n))))
    return besag.grid((n, n), k, unary=rng.normal(size=(n, n, k)), pairwise=besag.potts(k), weights=weights)


@pytest.mark.parametrize("engine", ENGINES)
@examples(40)
@given(data=st.data())
def test_the_energy_never_rises_and_no_choice_of_one_move_is_better(engine: str, data: DataObject) -> None:
    model = data.draw(models())
    energies = [r.energy for r in model.steps(engine=engine)]
    assert (np.diff(energies) <= 0).all()
    assert energies[-1] >= Enumeration(model).map_energy - 1e-9
    if max((len(scope) for scope in map(model.graph.scope, range(model.graph.n_factors))), default=0) <= 2:
        assert energies[-1] == pytest.approx(model.map(engine=engine, init=model.map(engine=engine)).energy)


def test_where_expansions_end_none_is_left() -> None:
    model = potts(12, 4)
    result = model.map(engine="alpha_expansion")
    codes, landscape = result.labels.reshape(-1), Landscape(model.problem, None)
    for a in range(4):
        moved = fuse(landscape, 0, codes, np.full(144, a))
        assert model.problem.energy(moved)[0] >= result.energy - 1e-9
    assert result.diagnostics.converged
    assert result.diagnostics.gains < result.diagnostics.moves


@pytest.mark.parametrize("engine", ENGINES)
def test_two_labels_that_attract_are_solved_by_one_move(engine: str) -> None:
    model = potts(10, 2)
    result = model.map(engine=engine)
    assert result.energy == pytest.approx(model.map(engine="exact").energy)
    assert result.bound == "estimate"


@pytest.mark.parametrize("engine", ENGINES)
def test_it_goes_on_from_a_labelling_as_far_as_it_may(engine: str) -> None:
    model = potts(10, 5)
    start = np.random.default_rng(1).integers(5, size=(10, 10))
    with pytest.warns(ConvergenceWarning, match=f"{engine} stopped after 2 iterations"):
        short = model.map(engine=f"{engine}[max_iterations=2]", init=start)
    assert short.energy < model.energy(start)
    if engine == "alpha_expansion":
        assert set(np.unique(short.labels[short.labels != start])) <= {0, 1}
    with pytest.warns(ConvergenceWarning, match=f"{engine} stopped at its time_limit"):
        limited = model.map(engine=engine, init=start, time_limit=1e-9)
    assert limited.energy <= model.energy(start)


def test_rows_share_the_work_and_have_answers_of_their_own() -> None:
    model = potts(8, 3)
    rows = pd.DataFrame({"0,0": ["0", "1", "2"], "4,4": ["1", "1", None]})
    result = model.map(rows, engine="alpha_expansion", trace=True)
    for i, (_, row) in enumerate(rows.iterrows()):
        alone = model.map(row.dropna().to_dict(), engine="alpha_expansion")
        assert result.energy[i] == pytest.approx(alone.energy)
    assert result.trace["value"].is_monotonic_decreasing


@pytest.mark.parametrize("engine", ENGINES)
def test_moves_that_are_not_submodular_leave_hard_zeros_behind(engine: str) -> None:
    rng = np.random.default_rng(0)
    unlike = np.where(np.eye(4, dtype=bool), -np.inf, rng.normal(size=(4, 4)))
    model = besag.grid((9, 9), 4, unary=rng.normal(size=(9, 9, 4)), pairwise=unlike)
    result = model.map(engine=engine, init=np.zeros((9, 9), int))
    assert np.isfinite(result.energy)
    assert result.energy == model.energy(result.labels)


def test_truncated_costs_come_near_the_least() -> None:
    rng = np.random.default_rng(3)
    model = besag.grid(
        (6, 6), 5, unary=2 * rng.normal(size=(6, 6, 5)), pairwise=besag.truncated_linear(5, 2.0), weights=0.5
    )
    least = model.map(engine="exact").energy
    for engine in ENGINES:
        assert least <= model.map(engine=engine).energy + 1e-9
        assert model.map(engine=engine).energy <= least + 0.02 * abs(least)
