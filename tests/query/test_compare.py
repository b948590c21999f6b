"""Several engines side by side: compare."""

from typing import Any

import numpy as np
import pytest

import besag
from besag.errors import CapabilityError
from besag.infer.brute import Brute
from tests.oracle import Enumeration

LOOP = besag.ising((2, 2), 0.5, 0.1)


def test_compare() -> None:
    frame = besag.compare(LOOP, ["brute", "exact", Brute(memory_limit=10**6)], evidence={"0,0": 1})
    assert frame.index.tolist() == ["brute", "exact", "brute[memory_limit=1000000]"]
    assert set(frame.columns) == {"log_partition", "bound", "error", "seconds", "converged"}
    assert frame["bound"].tolist() == ["exact"] * 3
    np.testing.assert_allclose(frame["log_partition"], Enumeration(LOOP, {"0,0": 1}).log_z)
    np.testing.assert_allclose(frame["error"], 0, atol=1e-12)
    assert frame["converged"].all()
    assert (frame["seconds"] >= 0).all()


def test_compare_takes_one_engine_and_looks_at_all_names_before_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = besag.bayesian_network("A -> B")
    assert besag.compare(model, "bp").index.tolist() == ["bp"]
    assert besag.compare(model, besag.infer.BP(damping=0.5)).index.tolist() == ["bp[damping=0.5]"]
    asked = list[Any]()
    monkeypatch.setattr("besag.query.compare.marginals", lambda *given: asked.append(given))
    with pytest.raises(CapabilityError, match="no engine is named 'nope'"):
        besag.compare(model, ["bp", "nope"])
    assert asked == []
