"""UAI files written: what was read comes back."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag.errors import ModelError
from besag.io import load
from besag.io.formats import Source
from besag.io.shared.numbers import number_text, weights_of
from besag.io.uai import read as uai

MARKOV = """MARKOV
3
2 3 2
3
2 1 0
1 2
2 2 0

6
 1 2 3 4 5 6

2
 0 0.5

4
 1 0.2 3 1e-30
"""
BAYES = """BAYES
2
2 3
2
2 0 1
1 0

6
 0.2 0.3 0.5 1 0 0

2
 0.1 0.9
"""


def again(model: besag.Model) -> besag.Model:
    return uai.read(Source(uai.write(model), "again.uai"))


@pytest.mark.parametrize("text", [MARKOV, BAYES, "MARKOV\n2\n2 3\n0\n"])
def test_a_file_comes_back_as_it_was(text: str) -> None:
    assert uai.write(uai.read(Source(text.encode(), "a.uai"))).decode() == text


def test_shared_and_structured_tables_are_written_out() -> None:
    unary = np.random.default_rng(0).standard_normal((3, 4, 3))
    model = besag.grid((3, 4), 3, unary=unary, pairwise=besag.potts(3))
    model = model.with_theta(model.theta - 0.7)
    twin = again(model)
    assert len(twin.variables) == 12
    assert not twin.is_bayesian_network
    assert twin.n_factors == model.n_factors
    assert twin.log_partition() == pytest.approx(model.log_partition(), rel=1e-13)
    for (scope, weights), (other, copy) in zip(weights_of(model), weights_of(twin), strict=True):
        assert scope == other
        np.testing.assert_array_equal(weights, copy)


def test_names_are_lost_and_nothing_else() -> None:
    model = besag.data.bundled("sprinkler")
    twin = again(model)
    assert twin.is_bayesian_network
    assert [v.name for v in twin.variables] == [str(v) for v in range(len(model.variables))]
    np.testing.assert_array_equal(twin.theta, model.theta)


@pytest.mark.parametrize("energy", [-800.0, 800.0])
def test_weights_that_no_double_holds(energy: float) -> None:
    model = besag.markov_network({"A": 2, "B": 2}, [(("A",), [0.0, 1.0]), (("B",), [0.0, -energy])])
    with pytest.raises(ModelError, match=rf"f\(B\): a weight is exp\({-energy:g}\), which is no double: .* as .json"):
        uai.write(model)


@settings(max_examples=100)
@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=80))
def test_any_weights(weights: list[float]) -> None:
    model = besag.markov_network([len(weights)], [((0,), weights)], given="weight")
    np.testing.assert_array_equal(again(model).theta, model.theta)


@settings(max_examples=100)
@given(st.lists(st.integers(1, 99999).flatmap(lambda n: st.integers(-40, 3).map(lambda e: f"{n}e{e}")), min_size=1))
def test_numbers_of_few_digits_come_out_as_they_were(words: list[str]) -> None:
    model = uai.read(Source(f"MARKOV 1 {len(words)} 1 1 0 {len(words)} {' '.join(words)}".encode(), "a.uai"))
    written = uai.write(model).split()[7:]
    assert [float(word) for word in written] == [float(word) for word in words]


def test_the_text_of_numbers() -> None:
    few = np.array([1.0, 0.1, 1e-300, 1e22, 0.0, 12345678.5])
    assert number_text(few) == ["1", "0.1", "1e-300", "1e+22", "0", "12345678.5"]
    assert number_text(np.tile(few, 100)) == number_text(few) * 100


@pytest.mark.parametrize("name", ["MAR/Grids_11", "MAR/Pedigree_11", "MAR/CSP_11", "PR/BN_69"])
def test_published(data_dir: Path, name: str) -> None:
    model = load(data_dir / "uai2014" / f"{name}.uai.gz")
    data = uai.write(model)
    twin = uai.read(Source(data, "again.uai"))
    np.testing.assert_array_equal(twin.theta, model.theta)
    assert uai.write(twin) == data
