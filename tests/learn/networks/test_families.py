"""Counting families against a plain loop, on both routes."""

from typing import Any

import numpy as np
import pytest

from besag.errors import TooLargeError
from besag.learn.networks import families
from besag.learn.networks.families import count_families

SIZES = np.array([2, 3, 300, 4, 2, 5, 1])
SCOPES = [(0,), (1, 0), (2, 1), (0, 1, 3), (0, 1, 3, 4), (5, 4, 3, 1, 0), (0, 1, 2, 3, 4, 5, 6)]


def columns(n: int, blank: float, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, k, n).astype(np.uint8 if k < 256 else np.uint16) for k in SIZES]
    for column in codes:
        column[rng.random(n) < blank] = np.iinfo(column.dtype).max
    return codes


def by_loop(codes: list[Any], scope: tuple[int, ...], weights: Any) -> Any:
    table = np.zeros(SIZES[list(scope)])
    for n in range(len(codes[0])):
        cell = tuple(int(codes[v][n]) for v in scope)
        if all(c < SIZES[v] for c, v in zip(cell, scope, strict=True)):
            table[cell] += 1 if weights is None else weights[n]
    return table


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("blank", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2051])
def test_counts(n: int, weighted: bool, blank: float, compiles: bool, forced: Any, monkeypatch: Any) -> None:
    forced({"learn.networks.families.ROWS": 500})
    monkeypatch.setattr(families, "worth_compiling", lambda work: compiles)
    codes = columns(n, blank, n)
    weights = np.random.default_rng(1).random(n) if weighted else None
    scopes = SCOPES
    one, two = (count_families(codes, SIZES, scopes, weights, n_threads=threads) for threads in (1, 2))
    for scope, table, again in zip(scopes, one, two, strict=True):
        assert table.dtype == (np.float64 if weighted else np.int64)
        np.testing.assert_allclose(table, by_loop(codes, scope, weights), rtol=1e-12, atol=1e-12)
        assert np.array_equal(table, again)


def test_states_spread_over_several_tables(forced: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(families, "worth_compiling", lambda work: True)
    codes = columns(4099, 0.0, 3)
    expected = by_loop(codes, (0, 1, 3), None)
    for spread in (0, 10_000):
        forced({"learn.networks.families.SPREAD": spread})
        assert np.array_equal(count_families(codes, SIZES, [(0, 1, 3)])[0], expected)


def test_too_large() -> None:
    codes = columns(10, 0.0, 0)
    with pytest.raises(TooLargeError, match=r"tables of .* counts would take"):
        count_families(codes, SIZES * 100, [(0, 1, 2, 3, 4)])
