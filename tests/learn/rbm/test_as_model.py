"""A machine as a Model: the same energies, and engines that answer on it."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.learn.rbm.as_model import model_of
from besag.learn.rbm.machine import Machine
from besag.model.model import Model
from tests.learn.rbm.conftest import all_hidden, all_rows, joint, log_z, machine

each_kind = pytest.mark.parametrize("binary", [True, False], ids=["binary", "categorical"])


def made(m: Machine) -> Model:
    sizes = [2] * m.n_visible if m.is_binary else np.diff(m.offsets).tolist()
    return model_of(m, [f"x{v}" for v in range(m.n_visible)], [tuple("abc"[:k]) for k in sizes])


def codes(m: Machine) -> Any:
    """Every labelling, (2^H rows, V + H)."""
    rows, hidden = all_rows(m), all_hidden(m)
    states = [
        rows[:, start:stop].argmax(axis=1) if not m.is_binary else rows[:, start]
        for start, stop in zip(m.offsets[:-1], m.offsets[1:], strict=True)
    ]
    visible = np.repeat(np.stack(states, axis=1), len(hidden), axis=0)
    return np.hstack([visible, np.tile(hidden, (len(rows), 1))]).astype(np.int64)


@each_kind
def test_energies_are_those_of_the_machine(binary: bool) -> None:
    m = machine(binary=binary)
    energies = made(m).problem.energy(codes(m))
    assert_allclose(-energies - log_z(m), np.log(joint(m)).reshape(-1), rtol=1e-5)


@each_kind
@pytest.mark.parametrize("engine", ["brute", "junction_tree", "elimination", "join_graph"])
def test_exact_engines(binary: bool, engine: str) -> None:
    m = machine(binary=binary)
    model, p = made(m), joint(m)
    if engine != "elimination":
        marginals = model.marginals(engine=engine)
        assert_allclose(marginals["h0"][1], p.sum(axis=0) @ all_hidden(m)[:, 0], rtol=1e-5)
    assert_allclose(float(model.log_partition(engine=engine)), log_z(m), rtol=1e-6)


@each_kind
def test_engines_that_bound_or_estimate(binary: bool) -> None:
    m = machine(binary=binary, scale=0.4)
    model, p = made(m), joint(m)
    exact = p.sum(axis=0) @ all_hidden(m)[:, 0]
    assert model.log_partition(engine="mean_field") <= log_z(m) <= model.log_partition(engine="trw") + 1e-9
    for engine, error in (("bp", 0.01), ("mean_field", 0.05), ("trw", 0.05), ("gibbs[n_samples=5000]", 0.02)):
        assert abs(model.marginals(engine=engine)["h0"][1] - exact) < error, engine
    assert abs(model.log_partition(engine="ais") - log_z(m)) < 0.05


@each_kind
def test_moments_and_gradient(binary: bool) -> None:
    model = made(machine(binary=binary))
    assert_allclose(model.moments(engine="junction_tree"), model.moments(engine="brute"), rtol=1e-9)


def test_files(tmp_path: Any) -> None:
    model = made(machine(binary=False))
    besag.save(model, tmp_path / "model.json")
    again = besag.load(tmp_path / "model.json")
    assert again.log_partition() == model.log_partition()
    assert [group.template.kind for group in again.groups] == [group.template.kind for group in model.groups]


def test_names_of_hidden_variables_are_free() -> None:
    model = model_of(machine(), ["h0", "h1", "b", "c", "d", "e"], [("0", "1")] * 6)
    assert model.variables.names_at(range(6, 9)) == ["_h0", "_h1", "_h2"]
