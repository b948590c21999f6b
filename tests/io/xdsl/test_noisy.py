"""Noisy-MAX factors in files: as such in XDSL and the native format, as tables with one warning elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import LossWarning, TooLargeError
from besag.model.structured.noisy import NoisyMax


def network(n: int = 3, states: str = "yes,no") -> besag.Model:
    """A child of n causes and one of three states, in the order of GeNIe: the strongest first."""
    rng = np.random.default_rng(3)
    names = [f"c{i}" for i in range(n)]
    model = besag.bayesian_network("; ".join(f"{name}[{states}]" for name in [*names, "B"]) + "; D[high,low,none]")
    model = model.with_noisy_or("B", dict(zip(names, rng.uniform(0.1, 0.9, n), strict=True)), 0.01, on="yes")
    none, effect = [0, 0, 1], [0.5, 0.3, 0.2]
    effects = {"c0": [effect, none], "B": [[0.1, 0.2, 0.7], none]} if states == "yes,no" else {"c0": [none, effect]}
    return model.with_noisy_max("D", effects, leak=[0.01, 0.02, 0.97], weakest="none")


def noisy_of(model: besag.Model, name: str) -> NoisyMax:
    child = model.variables.index(name)
    group = next(group for group in model.groups if child in group.scopes[:, -1])
    assert isinstance(group.template.structured, NoisyMax)
    return group.template.structured


@pytest.mark.parametrize("suffix", [".xdsl", ".json"])
@pytest.mark.parametrize("n", [3, 70])
def test_it_stays_compact(suffix: str, n: int, tmp_path: Path) -> None:
    model = network(n)
    besag.save(model, tmp_path / f"a{suffix}")
    twin = besag.load(tmp_path / f"a{suffix}")
    for name in ("B", "D"):
        assert twin.parents(name) == model.parents(name)
        assert_allclose(noisy_of(twin, name).effects, noisy_of(model, name).effects, rtol=1e-15)
        assert_array_equal(noisy_of(twin, name).ranks, noisy_of(model, name).ranks)
    assert_allclose(twin.log_partition({"D": "low"}), model.log_partition({"D": "low"}), rtol=1e-13)
    besag.save(twin, tmp_path / f"b{suffix}")
    assert (tmp_path / f"b{suffix}").read_bytes() == (tmp_path / f"a{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", [".net", ".bif", ".xml", ".uai", ".xdsl"])
def test_it_becomes_a_table_with_one_warning(suffix: str, tmp_path: Path) -> None:
    model = network(states="no,yes") if suffix == ".xdsl" else network()
    with pytest.warns(LossWarning, match="noisy-MAX factors as such .*they become tables") as caught:
        besag.save(model, tmp_path / f"a{suffix}")
    assert len(caught) == 1
    twin, at = besag.load(tmp_path / f"a{suffix}"), model.variables.index("B")
    assert_allclose(twin.cpt(twin.variables.names[at]), model.cpt("B"), rtol=1e-12)


def test_a_table_that_is_too_large_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "a.net", tmp_path / "a.uai"):
        with pytest.raises(TooLargeError, match="the 1 tables of 'noisy_max"):
            besag.save(network(40), path)
        assert not path.exists()
