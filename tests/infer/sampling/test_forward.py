"""Forward sampling against the distribution of the network, at 4.5 standard errors."""

from typing import Any

import numpy as np
import pytest

import besag
from besag.infer.sampling.forward import can_go_forward, forward_codes

TEXT = "A[3] -> B <- C[2]; B[4] -> D[1] <- A; E[2] <- D"


def network(seed: int) -> Any:
    model = besag.bayesian_network(TEXT)
    rng = np.random.default_rng(seed)
    cpts = {v.name: rng.dirichlet(np.ones(v.cardinality), model.cpt(v.name).shape[:-1]) for v in model.variables}
    cpts["B"] = np.where(np.arange(4) == 3, 0.0, cpts["B"])  # a state that never comes, and it is the last
    cpts["B"] /= cpts["B"].sum(axis=-1, keepdims=True)
    return besag.bayesian_network(TEXT, cpts=cpts)


@pytest.mark.parametrize("compiles", [False, True])
def test_draws_have_the_distribution(compiles: bool, monkeypatch: Any, forced: Any) -> None:
    forced({"infer.sampling.forward.CHUNK": 700})
    monkeypatch.setattr("besag.infer.sampling.forward.worth_compiling", lambda work: compiles)
    model, n = network(1), 2500 if not compiles else 60_000
    codes = forward_codes(model.problem, n, key=7, n_threads=1)
    assert np.array_equal(codes, forward_codes(model.problem, n, key=7, n_threads=2))
    states = model.to_frame()
    joint = np.ravel_multi_index(codes.astype(int), model.variables.cardinalities)  # type: ignore[call-overload]
    found = np.bincount(joint, minlength=len(states)) / n
    p = states["p"].to_numpy()
    assert (np.abs(found - p) <= 4.5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


def test_both_modes_draw_the_same(monkeypatch: Any) -> None:
    model = network(2)
    drawn = []
    for compiles in (False, True):
        monkeypatch.setattr("besag.infer.sampling.forward.worth_compiling", lambda work, c=compiles: c)
        drawn.append(forward_codes(model.problem, 300, key=5))
    assert np.array_equal(*drawn)


def test_what_goes_forward() -> None:
    model = network(3)
    assert can_go_forward(model.problem)
    assert not can_go_forward(model.condition({"A": "1"}).problem)
    assert not can_go_forward(besag.data.bundled("misconception").problem)
    assert not can_go_forward(besag.bayesian_network("A[200] -> B").problem)


def test_the_verb_takes_it(forced: Any) -> None:
    model = network(4)
    forced({"query.forward.FORWARD_CELLS": 0})
    rows = model.sample(400, seed=3)
    assert rows.equals(model.sample(400, seed=3, n_threads=2))
    assert not rows.equals(model.sample(400, seed=4))
    assert [column.cat.categories.tolist() for _, column in rows.items()] == [list(v.states) for v in model.variables]
    assert (model.sample(400, {"A": "2"}, seed=3)["A"] == "2").all()
    assert rows["A"].cat.codes.dtype == np.int8
