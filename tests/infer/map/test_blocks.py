"""Block moves against enumeration: a whole graph is solved, a part is best given the rest, fusion finds the best."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.infer.map.blocks import Blocks
from besag.infer.map.kernels.regions import make_forest, make_strips
from besag.infer.map.landscape import Landscape
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.strategies import examples, generators, models


def blocks_of(model: Model) -> Blocks:
    return Blocks(Landscape(model.problem, None))


def energy_of(model: Model, codes: np.ndarray) -> float:
    return float(model.energy(codes.reshape(model.shape or -1)))


def random_codes(model: Model, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(model.variables.cardinalities)


@examples(60)
@given(data=st.data(), rng=generators())
def test_strips_of_the_whole_graph_are_an_exact_answer(data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models())
    codes, whole = blocks_of(model).strips(0, random_codes(model, rng), 3, 20.0)
    assert whole
    assert energy_of(model, codes) == pytest.approx(Enumeration(model).map_energy, abs=1e-9)


@examples(60)
@given(data=st.data(), rng=generators(), key=st.integers(0, 2**40))
def test_no_move_makes_a_possible_labelling_worse(data: DataObject, rng: np.random.Generator, key: int) -> None:
    model = data.draw(models())
    oracle, blocks = Enumeration(model), blocks_of(model)
    codes = rng.choice(oracle.labels[oracle.log_weights > -np.inf])
    for move in (
        blocks.forest(0, codes, key),
        blocks.strips(0, codes, key, 2.0)[0],
        blocks.strips(0, codes, key, 3.0, 2)[0],
    ):
        assert energy_of(model, move) <= energy_of(model, codes) + 1e-9


@pytest.mark.parametrize("pairwise", [besag.potts(3), np.arange(9.0).reshape(3, 3) % 4])
def test_what_a_move_sets_free_is_best_given_the_rest(pairwise: object) -> None:
    rng = np.random.default_rng(1)
    model = besag.grid((3, 3), 3, unary=rng.normal(size=(3, 3, 3)), pairwise=pairwise)
    blocks, start = blocks_of(model), rng.integers(3, size=9)
    order, logs = np.empty(9, np.int64), np.full(9, np.log2(3))
    for key in range(8):
        size = make_strips()(blocks.first, blocks.others, logs, 3.2, 0, key, order)
        free = order[:size]
        best = min(_energies(model, start, free))
        moved, whole = blocks.strips(0, start, key, 3.2)
        assert not whole
        assert np.array_equal(np.delete(moved, free), np.delete(start, free))
        assert energy_of(model, moved) == pytest.approx(best, abs=1e-12)


def _energies(model: Model, start: np.ndarray, free: np.ndarray) -> list[float]:
    found = []
    for states in itertools.product(range(3), repeat=len(free)):
        codes = np.array(start)
        codes[free] = states
        found.append(energy_of(model, codes))
    return found


def test_fusion_is_the_best_of_all_mixtures() -> None:
    rng = np.random.default_rng(2)
    model = besag.grid((3, 4), 4, unary=rng.normal(size=(3, 4, 4)), pairwise=rng.normal(size=(4, 4)))
    one, other = rng.integers(4, size=12), rng.integers(4, size=12)
    mixtures = [np.where(mask, one, other) for mask in itertools.product([False, True], repeat=12)]
    fused, whole = blocks_of(model).fuse(0, one, other, 5, 16.0)
    assert whole
    assert energy_of(model, fused) == pytest.approx(min(energy_of(model, m) for m in mixtures), abs=1e-12)


@pytest.mark.parametrize("key", range(5))
def test_a_forest_has_no_cycle_and_its_leaves_come_first(key: int) -> None:
    blocks = blocks_of(besag.grid((6, 6), 2, pairwise=np.zeros((2, 2)), unary=np.zeros((6, 6, 2))))
    order = np.empty(36, np.int64)
    size = make_forest()(blocks.first, blocks.others, np.ones(36), key, order)
    rank = {int(v): i for i, v in enumerate(order[:size])}
    assert size > 18
    for v, i in rank.items():
        later = [u for u in blocks.others[blocks.first[v] : blocks.first[v + 1]] if rank.get(int(u), -1) > i]
        assert len(later) <= 1


def test_walls_leave_more_of_a_grid_free() -> None:
    blocks = blocks_of(besag.grid((20, 20), 2, pairwise=np.zeros((2, 2)), unary=np.zeros((20, 20, 2))))
    order = np.empty(400, np.int64)
    sizes = [
        np.mean([make_strips()(blocks.first, blocks.others, np.ones(400), 8.0, period, key, order) for key in range(4)])
        for period in (0, 7)
    ]
    assert sizes[0] < sizes[1] < 400
