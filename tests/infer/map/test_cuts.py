"""Choices between two states as cuts: the quadratic energy is H, submodular reductions, flips, persistency."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.infer.map.cuts import Cut, fuse
from besag.infer.map.landscape import Landscape
from tests.oracle import Enumeration
from tests.strategies import examples, generators, models


def least_over_extras(cut: Cut, x: Any) -> float:
    """The quadratic energy at x, the extra variables at their best."""
    room, energies = cut.room, []
    tails, heads = room.ends[1::2], room.ends[::2]
    for extra in itertools.product((0, 1), repeat=len(room.owners)):
        z = np.array([*np.asarray(x)[cut.chosen], *extra])
        s, t, unlike = z[tails], z[heads], room.unlike == 1
        costs = np.where(s == 0, room.capacities[::2], room.capacities[1::2])
        edges = np.where((s == t) == unlike, costs, 0.0)
        energies.append(room.constants.sum() + room.unary[z == 1].sum() + edges.sum())
    return float(min(energies))


@examples(40)
@given(rng=generators(), arity=st.integers(2, 4), zeros=st.booleans())
def test_the_quadratic_energy_is_that_of_the_problem(rng: np.random.Generator, arity: int, zeros: bool) -> None:
    table = rng.normal(size=(2,) * arity)
    if zeros and arity == 2:
        table[rng.random(table.shape) < 0.3] = -np.inf
        table[rng.integers(2), rng.integers(2)] = 0.0
    factors = [([v], rng.normal(size=2)) for v in range(arity)] + [(rng.permutation(arity).tolist(), table)]
    landscape = Landscape(besag.markov_network([2] * arity, factors).problem, None)
    allowed = landscape.base(0).reshape(-1, 2) > -np.inf
    zero, one = allowed.argmax(axis=1), 1 - allowed[:, ::-1].argmax(axis=1)
    cut = Cut(landscape, 0, zero, one)
    for x in itertools.product((0, 1), repeat=arity):
        labels = np.where(np.array(x) == 1, cut.choices.one, cut.choices.zero)
        found = least_over_extras(cut, np.where(zero == one, 0, x))
        assert found == pytest.approx(landscape.setting.given.energy(labels)[0], abs=1e-9)


def submodular_table(rng: np.random.Generator, arity: int) -> np.ndarray:
    """Submodular energies: products with weights below zero, of variables or of their opposites."""
    codes = np.indices((2,) * arity).reshape(arity, -1)
    energy = np.zeros(2**arity)
    for n in range(2, arity + 1):
        for some in itertools.combinations(range(arity), n):
            energy -= rng.exponential() * (codes[list(some)].all(axis=0) + 0.0)
            energy -= rng.exponential() * ((1 - codes[list(some)]).all(axis=0) + 0.0)
    return energy.reshape((2,) * arity)


@examples(20)
@given(rng=generators())
def test_submodular_factors_of_three_are_cut_exactly_also_after_flips(rng: np.random.Generator) -> None:
    n = 8
    turned = rng.integers(2, size=n)
    factors: list[Any] = [([v], rng.normal(size=2)) for v in range(n)]
    for _ in range(7):
        scope = rng.choice(n, size=3, replace=False)
        table = submodular_table(rng, 3)
        for axis, v in enumerate(scope):
            table = np.flip(table, axis) if turned[v] else table
        factors.append((scope.tolist(), -table))
    model = besag.markov_network([2] * n, factors)
    result = model.map(engine="graph_cut")
    assert result.diagnostics.submodular
    assert result.bound == "exact"
    assert result.energy == pytest.approx(Enumeration(model).map_energy)


def test_concave_functions_of_counts_are_cut_exactly() -> None:
    rng = np.random.default_rng(0)
    counts = np.indices((2,) * 6).sum(axis=0)
    factors: list[Any] = [([v], 2 * rng.normal(size=2)) for v in range(9)]
    for _ in range(4):
        cost = np.minimum(np.minimum(1.5 * counts, 6.0), 0.7 * (6 - counts))
        factors.append((rng.choice(9, size=6, replace=False).tolist(), -cost))
    model = besag.markov_network([2] * 9, factors)
    result = model.map(engine="graph_cut")
    assert result.diagnostics.submodular
    assert result.energy == pytest.approx(model.map(engine="brute").energy)


@examples(60)
@given(data=st.data())
def test_the_bound_holds_and_what_is_told_is_in_a_best_choice(data: DataObject) -> None:
    model = data.draw(models())
    rng = data.draw(generators())
    oracle = Enumeration(model)
    possible = oracle.labels[oracle.log_weights > -np.inf]
    codes, other = possible[rng.integers(len(possible), size=2)]
    cut = Cut(Landscape(model.problem, None), 0, codes, other)
    cut.grow()
    chosen = ((oracle.labels == codes) | (oracle.labels == other)).all(axis=1)
    energies = np.where(chosen, -oracle.log_weights, np.inf)
    told = cut.labels >= 0
    agree = (oracle.labels[:, told] == cut.codes[told]).all(axis=1)
    assert energies[agree].min() == pytest.approx(energies.min(), abs=1e-9)
    assert model.problem.energy(cut.codes)[0] <= model.problem.energy(codes)[0] + 1e-9
    if np.isfinite(cut.room.unary).all():
        assert cut.bounds.sum() <= energies.min() + 1e-6 * (1 + np.abs(cut.bounds).sum())
    if told.all():
        assert model.problem.energy(cut.codes)[0] == pytest.approx(energies.min(), abs=1e-9)


def test_fusion_takes_the_best_of_both() -> None:
    rng = np.random.default_rng(0)
    model = besag.grid((12, 12), 5, unary=rng.normal(size=(12, 12, 5)), pairwise=besag.potts(5), weights=0.7)
    landscape = Landscape(model.problem, None)
    one, other = rng.integers(5, size=(2, 144))
    fused = fuse(landscape, 0, one, other)
    assert ((fused == one) | (fused == other)).all()
    assert model.energy(fused.reshape(12, 12)) < min(model.energy(y.reshape(12, 12)) for y in (one, other))


def test_a_labelling_that_hard_zeros_forbid_is_left_behind() -> None:
    unlike = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)
    model = besag.grid((4, 4), 2, unary=np.zeros((4, 4, 2)), pairwise=unlike)
    board = np.indices((4, 4)).sum(axis=0).reshape(-1) % 2
    fused = fuse(Landscape(model.problem, None), 0, np.zeros(16, int), board, soft=True)
    assert np.isfinite(model.problem.energy(fused)[0])
