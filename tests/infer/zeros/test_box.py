"""Boxes without hard zeros, induced forests, colours and schedules: what they promise, and both modes alike."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_array_equal

import besag
from besag.infer.mean_field.engine import KINDS
from besag.infer.mean_field.kernels.induced import induce_forest
from besag.infer.mean_field.schedule import make_schedule
from besag.infer.prepared import Prepared
from besag.infer.zeros.kernels.box import find_box, is_box
from besag.kernels.colouring import colours_of
from besag.model.model import Model
from tests.routes import Forced
from tests.strategies import examples, forests, models


def setting_of(model: Model) -> Prepared:
    return Prepared(model.problem, KINDS, None)


def meets_a_zero(model: Model, box: np.ndarray) -> bool:
    """By the definition: whether some combination of states in the box has weight zero in some factor."""
    offsets = model.graph.state_offsets
    left = [np.flatnonzero(box[low:high]) for low, high in itertools.pairwise(offsets)]
    tables = ((f, model.problem.table(f)) for f in range(model.graph.n_factors))
    return any((table[np.ix_(*(left[v] for v in model.graph.scope(f)))] == -np.inf).any() for f, table in tables)


@examples(60)
@given(data=st.data(), seed=st.integers(0, 100))
def test_a_box_meets_no_zero_and_leaves_every_variable_a_state(data: DataObject, seed: int) -> None:
    model = data.draw(models())
    setting = setting_of(model)
    allowed, bonus = setting.base[0] > -np.inf, np.random.default_rng(seed).gumbel(size=setting.base.shape[1])
    box = find_box(setting.factors, setting.base[0], bonus, allowed)
    assert not meets_a_zero(model, box)
    assert is_box(setting.factors, box)
    assert is_box(setting.factors, allowed) == (not meets_a_zero(model, allowed))
    assert (np.add.reduceat(box, setting.graph.state_offsets[:-1]) > 0).all()
    assert (box <= allowed).all()
    assert_array_equal(box, find_box(setting.factors, setting.base[0], bonus, allowed, compile=False))


def test_what_no_zero_touches_is_left_alone() -> None:
    equal = np.where(np.eye(3) > 0, 0.0, -np.inf)
    soft = np.array([[0.0, 0.1], [0.2, 0.3]])
    model = besag.markov_network([3, 3, 2, 2], [([0, 1], equal), ([2, 3], soft)])
    setting = setting_of(model)
    box = find_box(setting.factors, np.array([0, 2.0, 1, 0, 0, 0, 0, 0, 0, 0]), np.zeros(10), np.ones(10, np.bool_))
    assert_array_equal(box, [0, 1, 0, 0, 1, 0, 1, 1, 1, 1])


def test_a_search_that_fails_gives_back_what_it_got(forced: Forced) -> None:
    """Colourings by two colours of an odd ring, which do not exist, beside those of a pair, which do."""
    table = np.where(np.eye(2) > 0, -np.inf, 0.0)
    edges = [(0, 1), (1, 2), (2, 0), (3, 4)]
    model = besag.markov_network([2] * 5, [(np.array(edges), table)])
    setting, every = setting_of(model), np.ones(10, np.bool_)
    for compile in (True, False):
        box = find_box(setting.factors, np.zeros(10), np.zeros(10), every, compile=compile)
        assert box[:6].all()
        assert box[6:].sum() == 2
    forced({"infer.zeros.kernels.box.FAILURES": 1})
    four = besag.markov_network(
        [3] * 4, [(np.array(list(itertools.combinations(range(4), 2))), np.where(np.eye(3) > 0, -np.inf, 0.0))]
    )
    found = find_box(setting_of(four).factors, np.zeros(12), np.zeros(12), np.ones(12, np.bool_), compile=False)
    assert found.all()


def test_the_search_takes_decisions_back() -> None:
    """The heaviest states of all variables but the last rule every state of the last one out."""
    parity = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2 == 1, 0.0, -np.inf)
    last = np.full((2, 2, 2), -np.inf)
    last[1, 1, 1] = last[1, 0, 0] = 0.0
    model = besag.markov_network([2] * 5, [([0, 1, 2], parity), ([1, 2, 3], parity), ([0, 3, 4], last)])
    setting = setting_of(model)
    preferred = np.tile([5.0, 0.0], 5)
    box = find_box(setting.factors, preferred, np.zeros(10), setting.base[0] > -np.inf)
    assert not meets_a_zero(model, box)
    assert (box.reshape(5, 2).sum(axis=1) >= 1).all()


@examples(60)
@given(data=st.data())
def test_factors_left_out_of_a_forest_have_one_variable_in_each_tree(data: DataObject) -> None:
    model = data.draw(models())
    factors, graph = setting_of(model).factors, model.graph
    linked = np.flatnonzero(np.diff(factors.scope_offsets) >= 2)
    inside, tree_of = induce_forest(factors, linked[::-1])
    for f in linked:
        trees = tree_of[graph.scope(int(f))]
        assert len(set(trees)) == (1 if inside[f] else len(trees))
    same = induce_forest(factors, linked[::-1], compile=False)
    assert_array_equal(inside, same[0])
    assert_array_equal(tree_of, same[1])


@examples(30)
@given(data=st.data())
def test_a_forest_is_taken_whole(data: DataObject) -> None:
    factors = setting_of(data.draw(forests())).factors
    linked = np.flatnonzero(np.diff(factors.scope_offsets) >= 2)
    inside, _ = induce_forest(factors, linked)
    assert inside[linked].all()


@examples(60)
@given(data=st.data())
def test_variables_of_a_colour_share_no_factor(data: DataObject) -> None:
    model = data.draw(models())
    factors, graph = setting_of(model).factors, model.graph
    colours = colours_of(*factors[:3])
    for f in range(graph.n_factors):
        assert len(set(colours[graph.scope(f)])) == len(graph.scope(f))
    assert_array_equal(colours, colours_of(*factors[:3], compile=False))
    assert set(colours) == set(range(int(colours.max()) + 1))


def test_grids_have_two_and_four_colours() -> None:
    for connectivity, n in ((4, 2), (8, 4)):
        model = besag.grid((6, 7), 2, pairwise=besag.potts(2), connectivity=connectivity)
        assert colours_of(*setting_of(model).factors[:3]).max() == n - 1


@pytest.mark.parametrize("work", [1, 20, 10**9])
@pytest.mark.parametrize("merged", [False, True])
def test_a_schedule_has_every_variable_once_and_keeps_colours_apart(forced: Forced, work: int, merged: bool) -> None:
    forced({"infer.mean_field.schedule.CHUNK_WORK": work})
    factors = setting_of(besag.grid((5, 6), 3, pairwise=np.eye(3))).factors
    colours = colours_of(*factors[:3])
    plan = make_schedule(factors, colours, np.diff(factors.scope_offsets) >= 2, merged=merged)
    assert_array_equal(np.sort(plan.order), np.arange(30))
    assert (plan.chunks[0], plan.chunks[-1]) == (0, 30)
    assert (np.diff(plan.chunks) > 0).all()
    assert [first for first, _ in plan.stages] == [0, *(last for _, last in plan.stages[:-1])]
    for first, last in plan.stages:
        together = colours[plan.order[plan.chunks[first] : plan.chunks[last]]]
        assert (np.diff(together) >= 0).all()
        assert len(set(together)) == 1 or last - first == 1
    for i, v in enumerate(plan.order):
        pairs = range(plan.first[i], plan.first[i + 1])
        assert all(factors.scope_variables[factors.scope_offsets[plan.factor[j]] + plan.axis[j]] == v for j in pairs)
    assert len(plan.stages) == (1 if merged and work == 10**9 else 2)
