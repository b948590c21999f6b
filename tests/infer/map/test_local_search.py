"""Local search: optimal where that is known, never worse than ICM, limits, no progress, hard zeros, rows."""

import time

import numpy as np
import pytest

import besag
from besag.errors import ConvergenceWarning
from tests.routes import Forced


def glass(n: int, seed: int = 0) -> besag.Model:
    """A spin glass on a grid."""
    rng = np.random.default_rng(seed)
    return besag.ising((n, n), coupling=(rng.normal(size=(n, n - 1)), rng.normal(size=(n - 1, n))), field=0.1)


def test_a_small_graph_is_proven_at_once() -> None:
    result = glass(6).map(engine="local_search")
    assert result.optimal
    assert result.diagnostics.converged
    assert result.energy == pytest.approx(glass(6).map(engine="exact").energy, abs=1e-9)


def test_it_finds_the_optimum_that_moves_of_a_few_bits_do_not_prove(forced: Forced) -> None:
    forced({"infer.map.blocks.MOST_BITS": 8.0, "infer.map.climbing.QUICK": 10.0})
    model = glass(9, 1)
    with pytest.warns(ConvergenceWarning, match="local_search stopped after 500 iterations"):
        result = model.map(engine="local_search[max_iterations=500]", time_limit=600)
    assert not result.optimal
    assert result.energy == pytest.approx(model.map(engine="exact").energy, abs=1e-9)


def test_it_ends_where_nothing_more_is_found(forced: Forced) -> None:
    forced({"infer.map.blocks.MOST_BITS": 4.0, "infer.map.local_search.NO_GAIN": 0.05})
    result = glass(8, 2).map(engine="local_search")
    assert result.diagnostics.stopped == "no_progress"
    assert not result.optimal


def test_a_time_limit_is_kept_and_shared_by_rows() -> None:
    import pandas as pd

    model = glass(30)
    rows = pd.DataFrame({"0,0": ["-1", "1", "-1"], "5,5": ["1", "-1", "-1"]})
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="local_search stopped at its time_limit"):
        result = model.map(rows, engine="local_search", time_limit=0.5)
    assert time.perf_counter() - began < 30
    assert np.isfinite(result.energy).all()
    alone = model.map(rows, engine="icm")
    assert (result.energy <= alone.energy).all()


def test_it_is_never_worse_than_the_labelling_that_it_began_with() -> None:
    model = glass(20, 3)
    start = np.random.default_rng(0).integers(2, size=(20, 20))
    energies = [r.energy for _, r in zip(range(12), model.steps(engine="local_search", init=start), strict=False)]
    assert energies[0] <= model.energy(start)
    assert (np.diff(energies) <= 0).all()


def test_hard_zeros_are_left_behind() -> None:
    unlike = np.where(np.eye(4, dtype=bool), -np.inf, np.random.default_rng(0).normal(size=(4, 4)))
    model = besag.grid(
        (9, 9), 4, unary=np.random.default_rng(1).normal(size=(9, 9, 4)), pairwise=unlike, connectivity=8
    )
    with pytest.warns(ConvergenceWarning, match="after 40 iterations"):
        result = model.map(engine="local_search[max_iterations=40]", init=np.zeros((9, 9), int))
    assert np.isfinite(result.energy)
    assert result.energy == model.energy(result.labels)
