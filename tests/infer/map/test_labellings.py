"""What is said of labellings that are not found: a search in vain proves nothing."""

import itertools
from typing import Any

import numpy as np
import pytest

import besag
from besag.errors import ConvergenceWarning
from besag.infer.map.portfolio import search_and_bound
from besag.model.model import Model
from tests.routes import Forced

EQUAL = np.where(np.eye(2) > 0, 0.0, -np.inf)
ALL_EQUAL = besag.markov_network([2] * 4, [(pair, EQUAL) for pair in itertools.combinations("0123", 2)])
ENGINES = ["icm", "icm[schedule=sequential]", "anneal[n_sweeps=5,n_restarts=0]", "dual[max_iterations=3]", "graph_cut"]


def parities() -> Model:
    """Sums modulo two of three of 40 variables: labellings that are right are none that a search comes upon."""
    rng = np.random.default_rng(0)
    labels, odd = rng.integers(2, size=40), np.indices((2, 2, 2)).sum(axis=0) % 2
    scopes = [rng.choice(40, 3, replace=False) for _ in range(38)]
    tables = [np.where(odd == labels[scope].sum() % 2, 0.0, -np.inf) for scope in scopes]
    return besag.markov_network([2] * 40, [([str(v) for v in s], t) for s, t in zip(scopes, tables, strict=True)])


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_found_is_not_disproved(engine: str, forced: Forced) -> None:
    forced({"infer.zeros.starts.BUDGETS": (0,)})
    with pytest.warns(ConvergenceWarning, match="found no labelling that the hard zeros allow"):
        result = parities().map(engine=engine)
    assert result.energy == np.inf
    assert result.energy_bound < np.inf
    assert not result.optimal


def test_the_search_of_auto_claims_nothing_before_there_is_a_labelling(forced: Forced) -> None:
    forced({"infer.zeros.starts.BUDGETS": (0,)})
    options: dict[str, Any] = {"warm": None, "rng": np.random.default_rng(0), "time_limit": 1.0, "on_step": None}
    result = search_and_bound(parities().problem, None, frozenset({"map"}), **options)
    assert result.energy_bound <= 1e-9
    assert result.optimal == (result.energy == 0.0)


@pytest.mark.parametrize("engine", ["icm", "anneal[n_sweeps=5]", "trws", "alpha_expansion", "local_search"])
def test_steps_from_a_labelling_that_is_not_allowed(engine: str) -> None:
    steps = list(ALL_EQUAL.steps(engine=engine, init=np.array([0, 0, 1, 1])))
    assert steps[-1].energy == 0.0
    for step in steps:
        assert step.energy_bound <= 0.0
        assert step.optimal == (step.energy_bound == 0.0)
