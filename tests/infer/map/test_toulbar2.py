"""toulbar2: exact against enumeration, the k best, limits, failures of its process; and the networks that it gets."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.infer.map import toulbar2
from besag.infer.map.cost_network import make_network
from besag.infer.prepared import Prepared
from besag.model.model import Model
from tests.infer.map.test_ilp import spin_glass
from tests.strategies import models

installed = pytest.mark.skipif(find_spec("pytoulbar2") is None, reason="needs besag[toulbar2]")


@installed
@settings(max_examples=6)
@given(models(), st.integers(1, 3))
def test_the_k_best_are_those_of_enumeration(model: Model, k: int) -> None:
    true, found = model.map(engine="brute", k=k), model.map(engine="toulbar2", k=k)
    assert_allclose([e for _, e in found.solutions], [e for _, e in true.solutions], rtol=1e-9, atol=1e-9)
    assert found.optimal
    assert found.bound == "exact"


@installed
def test_its_bound_and_labelling_at_a_time_limit(capfd: pytest.CaptureFixture[str]) -> None:
    model = spin_glass(16)
    with pytest.warns(besag.errors.ConvergenceWarning, match="time_limit"):
        found = model.map(engine="toulbar2", time_limit=1.0, n_threads=1)
    assert found.energy_bound <= model.map().energy <= found.energy
    assert found.energy_bound > -1e6
    assert capfd.readouterr() == ("", "")


@installed
@pytest.mark.parametrize(("code", "failure"), [("import os; os.abort()", "code -6"), ("raise ValueError('no')", "no")])
def test_a_process_that_fails_is_no_answer(
    code: str, failure: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(code)
    monkeypatch.setattr(toulbar2, "WORKER", worker)
    with pytest.warns(besag.errors.ConvergenceWarning, match=failure):
        found = spin_glass(4).map(engine="toulbar2", n_threads=1)
    assert not found.optimal
    assert failure in found.diagnostics.messages[0]


def test_without_it_the_error_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytoulbar2", None)
    monkeypatch.setattr("besag.errors.find_spec", lambda name: None)
    with pytest.raises(besag.errors.CapabilityError, match=r"pip install 'besag\[toulbar2\]'"):
        spin_glass(3).map(engine="toulbar2")


@given(models(), st.integers(0, 2**32 - 1))
def test_costs_are_energies_within_the_error(model: Model, seed: int) -> None:
    setting = Prepared(model.problem, frozenset({0}), None)
    network = make_network(setting, 0, 0, np.inf, below=False, forbidden=[])
    read = json.loads(network.text)
    top, sizes = int(read["problem"]["mustbe"][1:]), list(read["variables"].values())
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, sizes, size=(20, len(sizes)))
    for y, energy in zip(codes, model.problem.energy(codes), strict=True):
        cost = 0
        for function in read["functions"].values():
            scope = [int(name[1:]) for name in function["scope"]]
            shape = [sizes[v] for v in scope]
            cost += function["costs"][int(np.ravel_multi_index(tuple(y[scope]), shape))]
        if energy == np.inf:
            assert cost >= top
        else:
            assert cost < top or not setting.possible[0] or _is_ruled_out(setting, y)
            if cost < top:
                assert abs(network.constant + cost / network.scale - energy) <= network.error + 1e-12 * abs(energy)


def _is_ruled_out(setting: Prepared, codes: np.ndarray) -> bool:
    return bool((setting.base[0, setting.graph.state_offsets[:-1] + codes] == -np.inf).any())


def test_whole_numbers_stay_whole() -> None:
    model = besag.markov_network([2, 3], [((0, 1), np.arange(6.0).reshape(2, 3))], given="energy")
    network = make_network(Prepared(model.problem, frozenset({0}), None), 0, 0, np.inf, below=False, forbidden=[])
    assert network.scale == 1.0
    assert network.error < 1e-12


PUBLISHED = {
    "CELAR6-SUB0.wcsp.xz": 159.0,
    "example.wcsp.xz": 27.0,
    "alarm.cfn.gz": 3.086727,
    "latin4.wcsp.xz": 48.0,
    "1aho.cfn.gz": -33.729920,
}


@installed
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_optima_are_proven(name: str, data_dir: Path) -> None:
    found = besag.load(data_dir / "toulbar2_instances" / name).map(engine="toulbar2", time_limit=60)
    assert found.optimal
    assert found.energy == pytest.approx(PUBLISHED[name], abs=5e-7)
