"""Effects held to the truncated product, adjustment sets to the effects that they give."""

from itertools import combinations, pairwise

import numpy as np
import pytest

import besag
from besag.arrays import Array
from besag.errors import ModelError, TooLargeError
from besag.model.model import Model
from tests.dags import all_dags

NAMES = "ABCD"


def random_network(edges: list[tuple[str, str]], seed: int) -> Model:
    model = besag.bayesian_network(edges, dict.fromkeys(NAMES, 2))
    rng = np.random.default_rng(seed)
    for name in NAMES:
        shape = model.cpt(name).shape
        model = model.with_cpt(name, rng.dirichlet(np.ones(2), shape[:-1]))
    return model


def adjusted(joint: Array, x: int, y: int, among: tuple[int, ...]) -> Array:
    """sum_z p(y | x, z) p(z) from the joint (2, 2, 2, 2)."""
    rest = tuple(v for v in range(4) if v not in (x, y, *among))
    table = joint.sum(axis=rest, keepdims=True)
    conditional = table / table.sum(axis=y, keepdims=True)
    result = (conditional * table.sum(axis=(x, y), keepdims=True)).sum(
        axis=tuple(v for v in range(4) if v not in (x, y))
    )
    return result if x < y else result.T


@pytest.mark.parametrize("start", range(0, 543, 30))
def test_sets_are_those_that_give_the_effect(start: int) -> None:
    dag = all_dags(4)[start]
    model = random_network([(NAMES[i], NAMES[j]) for i, j in np.argwhere(dag)], seed=start)
    joint = model.joint(list(NAMES))
    for x, y in ((0, 3), (2, 1)):
        effect = model.effect(NAMES[x], NAMES[y]).to_numpy()
        others = [v for v in range(4) if v not in (x, y)]
        right = [
            set(z)
            for size in range(3)
            for z in combinations(others, size)
            if np.allclose(adjusted(joint, x, y, z), effect, atol=1e-9)
        ]
        smallest = {tuple(sorted(NAMES[v] for v in z)) for z in right if not any(other < z for other in right)}
        assert set(model.adjustment_sets(NAMES[x], NAMES[y])) == smallest


def test_what_is_observed_and_how_many() -> None:
    model = random_network([("A", "B"), ("A", "C"), ("D", "A"), ("D", "C"), ("B", "C")], seed=1)
    assert model.adjustment_sets("B", "C") == [("A",)]
    assert model.adjustment_sets("B", "C", among=["D"]) == []
    assert model.adjustment_sets("B", "C", max_size=0) == []
    assert model.adjustment_sets("D", "B") == [()]


def test_an_effect_is_a_frame_with_evidence() -> None:
    model = besag.data.bundled("sprinkler")
    effect = model.effect("sprinkler", "wet_grass", {"rain": "no"})
    assert effect.index.name == "sprinkler"
    expected = model.do({"sprinkler": "on"}).marginals(evidence={"rain": "no"})["wet_grass"]
    assert effect.loc["on"].to_numpy() == pytest.approx(expected)


def test_refusals() -> None:
    model = besag.data.bundled("sprinkler")
    with pytest.raises(ModelError, match="x and y must be two variables"):
        model.effect("rain", "rain")
    with pytest.raises(ModelError, match="x and y must be two variables"):
        model.adjustment_sets("rain", "rain")
    chain = [f"z{i}" for i in range(25)]
    many = besag.bayesian_network([*pairwise([*chain, "X", "Y"]), ("z24", "Y")])
    with pytest.raises(TooLargeError, match="give max_size"):
        many.adjustment_sets("X", "Y")
