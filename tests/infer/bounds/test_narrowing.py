"""Bounds on the states of the best labelling, against enumeration, and what they make possible."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.arrays import Array, freeze, offsets_of
from besag.errors import TooLargeError
from besag.infer.bounds import narrowing
from besag.infer.bounds.kernels.diffusion import make_diffuse, make_state_bounds
from besag.infer.junction import few_states
from besag.infer.junction import run as junction
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors
from tests.routes import Forced
from tests.strategies import examples, models


def labellings(model: besag.Model) -> Iterator[tuple[tuple[int, ...], float]]:
    for codes in product(*(range(n) for n in model.variables.cardinalities)):
        yield codes, -float(model.energy(np.array(codes).reshape(model.shape or -1)))


@examples(40)
@given(models(), st.integers(1, 9), st.booleans())
def test_bounds_hold_for_every_labelling(model: besag.Model, n_sweeps: int, compile: bool) -> None:
    problem = model.problem.expanded(junction.KINDS, 10**9)
    factors = problem.factors
    shape = (factors.state_offsets, factors.scope_offsets, factors.scope_variables)
    tables = (factors.table_of_factor, factors.table_offsets, freeze(factors.log_potentials))
    offsets = freeze(offsets_of(np.diff(factors.state_offsets)[factors.scope_variables]))
    rng = np.random.default_rng(n_sweeps)
    base = rng.normal(size=int(factors.state_offsets[-1]))
    theta, messages, slack = base.copy(), np.zeros(int(offsets[-1])), np.empty(len(base))
    kernel_of(make_diffuse, compile=compile)(shape, tables, offsets, n_sweeps, 0.0, theta, messages)
    left = freeze(np.where(theta == -np.inf, -np.inf, base))
    bounds = kernel_of(make_state_bounds, compile=compile)
    bound, _ = bounds(Factors.of(*factors), offsets, left, freeze(messages), slack)
    for codes, log_weight in labellings(model):
        states = factors.state_offsets[:-1] + np.array(codes)
        weight = log_weight + base[states].sum()
        if weight > -np.inf:
            assert weight <= bound - slack[states].max(initial=0.0) + 1e-9
    assert (slack >= -1e-9).all()


def test_more_sweeps_never_raise_the_bound() -> None:
    model = besag.data.random_model("grid", 5, seed=3, n_states=3)
    factors = model.problem.factors
    shape = (factors.state_offsets, factors.scope_offsets, factors.scope_variables)
    tables = (factors.table_of_factor, factors.table_offsets, freeze(factors.log_potentials))
    offsets = freeze(offsets_of(np.diff(factors.state_offsets)[factors.scope_variables]))
    theta, messages = np.zeros(int(factors.state_offsets[-1])), np.zeros(int(offsets[-1]))
    diffuse = kernel_of(make_diffuse, compile=False)
    found = [diffuse(shape, tables, offsets, 2, 0.0, theta, messages) for _ in range(20)]
    assert (np.diff(found) <= 1e-12).all()
    assert found[-1] < found[0]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch, forced: Forced) -> list[Any]:
    """Bounds are tried on small models too; what they gave, None where they gave nothing."""
    forced({"infer.junction.run.SUPPORT_ABOVE": 0.0})
    forced({"infer.junction.few_states.BOUND_ABOVE": 0.0})
    forced({"infer.bounds.narrowing.EFFORT": 100.0})
    found: list[Any] = []

    def spy(*arguments: Any, **options: Any) -> Any:
        found.append(narrowing.narrow_states(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(few_states, "narrow_states", spy)
    return found


@pytest.mark.parametrize("guess", [8.0, 0.5, 1e-4])
@pytest.mark.parametrize("strength", [0.3, 2.0])
def test_the_best_labelling_whatever_the_guess(
    guess: float, strength: float, always: list[Any], forced: Forced
) -> None:
    """A guess that is too small is found out, and a sound threshold or the whole tree takes its place."""
    forced({"infer.bounds.narrowing.GUESSES": np.array([guess, 2.0**-15])})
    forced({"infer.bounds.narrowing.SMALL_SHARE": 1.0})
    for seed in range(12):
        model = besag.data.random_model("grid", 3, seed=seed, n_states=3, strength=strength)
        truth = model.map(engine="brute")
        assert model.map(engine="junction_tree").energy == pytest.approx(truth.energy, abs=1e-9)
    assert any(answer is not None for answer in always)


def test_evidence_counts(always: list[Any]) -> None:
    model = besag.data.random_model("grid", 3, seed=5, n_states=3)
    names = list(model.variables.names)
    for evidence in ({names[4]: 2}, {names[0]: [0, 2], names[8]: 1}, {names[3]: np.array([0.1, 0.7, 0.2])}):
        truth = model.map(evidence=evidence, engine="brute")
        assert model.map(evidence=evidence, engine="junction_tree").energy == pytest.approx(truth.energy, abs=1e-9)


def attractive(side: int) -> tuple[besag.Model, float]:
    """A grid whose neighbours attract each other, and the least energy of its labellings: a minimal cut."""
    rng = np.random.default_rng(side)
    numbers, unary = np.arange(side * side).reshape(side, side), rng.normal(size=(side * side, 2))
    factors: list[tuple[tuple[int, ...], Array]] = [((v,), row) for v, row in enumerate(unary)]
    cut, constant = nx.DiGraph(), float(-unary.max(axis=1).sum())
    for v, (zero, one) in enumerate(unary.tolist()):
        cut.add_edge("zero", v, capacity=max(zero - one, 0.0))
        cut.add_edge(v, "one", capacity=max(one - zero, 0.0))
    for ends in ((numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:])):
        for u, v in zip(ends[0].ravel().tolist(), ends[1].ravel().tolist(), strict=True):
            weight = abs(float(rng.normal()))
            factors.append(((u, v), weight * np.eye(2)))
            cut.add_edge(u, v, capacity=weight)
            cut.add_edge(v, u, capacity=weight)
            constant -= weight
    return besag.markov_network([2] * (side * side), factors), constant + nx.minimum_cut_value(cut, "zero", "one")


def test_a_tree_that_does_not_fit_is_not_needed_where_the_bound_is_tight() -> None:
    model, least = attractive(24)
    with pytest.raises(TooLargeError):
        model.log_partition(engine="junction_tree", memory_limit=10**7)
    assert model.map(engine="junction_tree", memory_limit=10**7).energy == pytest.approx(least, abs=1e-8)


@pytest.mark.parametrize("compile", [False, True])
def test_the_bound_of_what_is_impossible(compile: bool) -> None:
    """Hard zeros that contradict each other beside a possible part: -inf, without arithmetic on infinities."""
    first = np.array([[1, 1], [0, 0]])
    factors_given = [(("0",), np.ones(2)), (("1", "2"), first), (("1", "2"), 1 - first)]
    model = besag.markov_network([2, 2, 2], factors_given, given="weight")
    factors = model.problem.factors
    shape = (factors.state_offsets, factors.scope_offsets, factors.scope_variables)
    tables = (factors.table_of_factor, factors.table_offsets, freeze(factors.log_potentials))
    offsets = freeze(offsets_of(np.diff(factors.state_offsets)[factors.scope_variables]))
    theta, messages = np.zeros(int(factors.state_offsets[-1])), np.zeros(int(offsets[-1]))
    bound = kernel_of(make_diffuse, compile=compile)(shape, tables, offsets, 8, 0.0, theta, messages)
    assert bound == -np.inf
    assert not np.isnan(theta).any()
    assert not np.isnan(messages).any()
