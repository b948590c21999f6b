"""The k best labellings beyond exact inference."""

import numpy as np
import pytest

import besag
from besag.errors import TooLargeError
from besag.infer.map.k_best import search_k_best

GRID = besag.ising((5, 5), coupling=1.0, field=np.random.default_rng(0).normal(size=(5, 5)))


def best(k: int, memory_limit: int | None = None) -> besag.infer.Result:
    rng = np.random.default_rng(0)
    return search_k_best(
        GRID.problem, k, memory_limit, frozenset({"map"}), warm=None, rng=rng, time_limit=1e-6, on_step=None
    )


def test_there_are_as_many_as_were_asked_for_however_little_the_time() -> None:
    found = best(7)
    energies = [energy for _, energy in found.solutions]
    assert len({tuple(labels.values()) for labels, _ in found.solutions}) == 7
    assert energies == sorted(energies)
    np.testing.assert_allclose([GRID.energy(labels) for labels, _ in found.solutions], energies)


def test_more_than_fit_are_refused() -> None:
    with pytest.raises(TooLargeError, match=r"the 1000 best labellings would take 600000 bytes, more than .*500000"):
        best(1000, 500_000)
