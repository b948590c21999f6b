"""Integer programs: exact against enumeration, the k best, bounds of the relaxation that hold, limits, cuts."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.infer.map.polytope import make_polytope
from besag.infer.prepared import Prepared
from besag.model.model import Model
from tests.strategies import models


def spin_glass(n: int, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    return besag.ising((n, n), coupling=(rng.normal(size=(n, n - 1)), rng.normal(size=(n - 1, n))), field=0.1)


@settings(max_examples=40)
@given(models(), st.integers(1, 4))
def test_the_k_best_are_those_of_enumeration(model: Model, k: int) -> None:
    true, found = model.map(engine="brute", k=k), model.map(engine="ilp", k=k)
    assert_allclose([e for _, e in found.solutions], [e for _, e in true.solutions], rtol=1e-9, atol=1e-9)
    assert len({tuple(y.items()) for y, _ in found.solutions}) == len(found.solutions)
    assert found.optimal
    assert found.bound == "exact"


@settings(max_examples=40)
@given(models())
def test_the_relaxation_is_a_bound(model: Model) -> None:
    true, found = model.map(engine="brute"), model.map(engine="ilp[relaxation=true]")
    slack = 1e-9 * max(1.0, abs(true.energy))
    assert found.energy_bound <= true.energy + slack
    assert found.energy >= true.energy - slack


def test_the_relaxation_is_tight_on_trees_and_where_factors_attract() -> None:
    rng = np.random.default_rng(0)
    chain = besag.chain(rng.normal(size=(9, 3)), rng.normal(size=(3, 3)))
    attractive = besag.ising((6, 6), coupling=1.0, field=rng.normal(size=(6, 6)))
    for model in (chain, attractive):
        found = model.map(engine="ilp[relaxation=true]")
        assert found.optimal
        assert found.energy == pytest.approx(model.map(engine="exact").energy, rel=1e-12)


def test_any_multipliers_give_a_bound() -> None:
    model = spin_glass(3)
    polytope = make_polytope(Prepared(model.problem, frozenset({0}), None), 0, 0)
    assert polytope is not None
    least, rng = model.map(engine="brute").energy, np.random.default_rng(1)
    for _ in range(20):
        assert polytope.bound_of(3.0 * rng.normal(size=polytope.n_rows)) <= least


def test_a_time_limit_leaves_a_bound_and_a_labelling() -> None:
    model = spin_glass(16)
    with pytest.warns(besag.errors.ConvergenceWarning, match="time_limit"):
        found = model.map(engine="ilp", time_limit=0.5)
    assert not found.optimal
    assert found.bound == "estimate"
    assert found.energy == pytest.approx(model.energy(found.assignment))
    assert found.energy_bound <= model.map().energy <= found.energy


def test_rows_share_a_model() -> None:
    model = spin_glass(4)
    names = [v.name for v in model.variables]
    frame = pd.DataFrame([{names[0]: model.variables[0].states[0]}, {names[0]: model.variables[0].states[1]}])
    found, true = model.map(evidence=frame, engine="ilp", k=2), model.map(evidence=frame, engine="brute", k=2)
    for mine, best in zip(found.solutions, true.solutions, strict=True):
        assert_allclose([e for _, e in mine], [e for _, e in best])


def test_factors_on_many_variables_are_chains() -> None:
    rng = np.random.default_rng(2)
    states = [2] * 12
    groups = [((v,), rng.normal(size=2)) for v in range(12)]
    model = besag.markov_network(states, [*groups, (tuple(range(12)), besag.factors.count(rng.normal(size=13)))])
    found = model.map(engine="ilp", k=3)
    assert_allclose([e for _, e in found.solutions], [e for _, e in model.map(engine="brute", k=3).solutions])


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(besag.errors.TooLargeError, match="integer program"):
        besag.grid((400, 400), 16, unary=np.zeros((400, 400, 16)), pairwise=besag.potts(16)).map(
            engine="ilp", memory_limit=2**30
        )


@pytest.mark.parametrize(("name", "optimum"), [("alarm.cfn.gz", 3.086727), ("latin4.wcsp.xz", 48.0)])
def test_published_optima(name: str, optimum: float, data_dir: Path) -> None:
    found = besag.load(data_dir / "toulbar2_instances" / name).map(engine="ilp", time_limit=60)
    assert found.optimal
    assert found.energy == pytest.approx(optimum, abs=5e-7)
