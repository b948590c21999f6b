"""Progress of fits and engines: a line at least at the end, the user's function is called, and nothing else changes."""

import re

import numpy as np
import pytest

import besag

PAIR = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), np.zeros((2, 2)))])
ROWS = [[0, 0], [1, 1], [1, 1]]


def test_fit_tells_how_far_it_has_come(capsys: pytest.CaptureFixture[str]) -> None:
    seen = list[int]()
    told = besag.fit(PAIR, ROWS, l2=0.1, progress=True, on_step=lambda row, theta: seen.append(row.iteration))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"fit: iteration {told.log.n_iterations}, ")
    assert " a second, at most " in last
    assert seen[-1] == told.log.n_iterations
    np.testing.assert_array_equal(told.theta, besag.fit(PAIR, ROWS, l2=0.1).theta)
    assert capsys.readouterr().err == ""


def test_an_engine_tells_its_pace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.query.progress.SECONDS", 0.0)
    besag.ising((4, 4), coupling=0.4).marginals(engine="bp", progress=True)
    assert re.search(r" a second, at most \S+ s left$", capsys.readouterr().err.rstrip())


def test_mixture(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.query.progress.SECONDS", 0.0)
    besag.Mixture(2, restarts=0, tol=1.0, verbose=True).fit([[0, 1], [1, 0], [0, 1], [1, 1]])
    assert "em: iteration" in capsys.readouterr().err
