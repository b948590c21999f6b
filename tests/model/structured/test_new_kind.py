"""A kind that the library has never heard of: a class and its name are enough for builders, engines and files."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Array, IntArray
from besag.errors import ModelError
from besag.model.structured import kinds
from besag.model.structured.base import Structured
from besag.model.structured.bilinear import Bilinear

UNARY = np.random.default_rng(0).normal(size=(2, 3, 3))


@dataclass(frozen=True, slots=True)
class Distance(Structured):
    """weight * min(|i - j|, limit)."""

    kind: ClassVar[int] = 99
    name: ClassVar[str] = "distance"
    n_states: int
    limit: float

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_states, self.n_states)

    @property
    def n_parameters(self) -> int:
        return 1

    def dense(self) -> Array:
        i = np.arange(self.n_states)
        return np.minimum(np.abs(i[:, None] - i), self.limit)[None].astype(np.float64)

    def features(self, labels: IntArray) -> Array:
        return np.asarray(np.minimum(np.abs(labels[..., 0] - labels[..., 1]), self.limit)[..., None], np.float64)


def model() -> besag.Model:
    return besag.grid((2, 3), 3, unary=UNARY, pairwise=Distance(3, 1.5), weights=0.8)


@pytest.mark.parametrize("engine", ["junction_tree", "elimination", "bp", "mean_field", "trw"])
def test_engines_take_it_as_its_table(engine: str) -> None:
    plain = besag.grid((2, 3), 3, unary=UNARY, pairwise=-0.8 * Distance(3, 1.5).dense()[0])
    found, expected = model().marginals(engine=engine), plain.marginals(engine=engine)
    assert_allclose(found.array, expected.array, atol=1e-12)
    assert_allclose(found.log_partition, expected.log_partition, atol=1e-12)
    assert_allclose(model().energy(np.zeros((2, 3), int)), plain.energy(np.zeros((2, 3), int)), atol=1e-12)


def test_it_is_a_factor_among_others() -> None:
    hand = besag.markov_network({"A": 3, "B": 3}, [(("A", "B"), Distance(3, 1.5)), ("A", [0.0, 1.0, 2.0])])
    assert_allclose(hand.energy({"A": "0", "B": "2"}), 1.5)


def test_files_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.STRUCTURED, "distance", Distance)
    besag.save(model(), tmp_path / "a.json")
    twin = besag.load(tmp_path / "a.json")
    assert twin.groups[1].template.basis == Distance(3, 1.5)
    assert_array_equal(twin.theta, model().theta)


def test_the_number_of_states_is_checked() -> None:
    with pytest.raises(ModelError, match="distance has 4 states, but the variables have 3"):
        besag.grid((2, 3), 3, unary=UNARY, pairwise=Distance(4, 1.0))


def test_a_kind_of_several_weights_is_a_factor_among_others() -> None:
    hand = besag.markov_network([3, 2], [(("0", "1"), Bilinear(3)), ("0", [0.0, 1.0, 2.0])])
    assert [hand.energy(np.array([i, 1])) for i in range(3)] == [0.0, 0.0, -1.0]  # less the field
