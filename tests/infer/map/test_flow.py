"""Maximum flow: scipy's value on integers, cuts that are as large as the flow on real numbers, parts of the work."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from besag.infer.map.kernels.flow import Flow, make_arcs, make_grow, make_plant, new_flow
from besag.kernels.compile import kernel_of

ALL = 2**62


def network(
    rng: np.random.Generator, n: int, m: int, draw: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """tails, heads (m,), capacities (m, 2) there and back, and those of the terminals (n,): from the source, or to."""
    tails, heads = rng.integers(n, size=m), rng.integers(n, size=m)
    kept = tails != heads
    return tails[kept], heads[kept], draw((kept.sum(), 2)), draw(n) * rng.choice([-1, 1], size=n)


def planted(tails: Any, heads: Any, capacities: Any, terminals: Any, *, compile: bool) -> Flow:
    ends = np.stack([heads, tails], axis=1).reshape(-1).astype(np.int32)
    flow = new_flow(np.array(terminals, np.float64), len(ends))
    kernel_of(make_arcs, compile=compile)(ends, np.array(capacities, np.float64).reshape(-1), flow)
    kernel_of(make_plant, compile=compile)(flow)
    return flow


def value_of(flow: Flow, terminals: np.ndarray) -> float:
    return float(np.maximum(terminals, 0).sum() - np.maximum(flow.excess, 0).sum())


def cut_of(flow: Flow, tails: Any, heads: Any, capacities: Any, terminals: Any) -> float:
    """The capacity of the cut that the search ends with."""
    inside = flow.sides > 0
    forth, back = inside[tails] & ~inside[heads], inside[heads] & ~inside[tails]
    ends = np.where(inside, np.maximum(-terminals, 0), np.maximum(terminals, 0)).sum()
    return float(capacities[forth, 0].sum() + capacities[back, 1].sum() + ends)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (5, 8), (20, 60), (60, 400), (300, 600)])
def test_the_flow_is_that_of_scipy(n: int, m: int, compile: bool) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        tails, heads, capacities, terminals = network(rng, n, m, lambda shape: rng.integers(0, 9, size=shape))
        flow = planted(tails, heads, capacities, terminals, compile=compile)
        assert kernel_of(make_grow, compile=compile)(flow, ALL)
        nodes = np.arange(n)
        rows = np.concatenate([tails, heads, np.full(n, n), nodes])
        columns = np.concatenate([heads, tails, nodes, np.full(n, n + 1)])
        values = [capacities[:, 0], capacities[:, 1], np.maximum(terminals, 0), np.maximum(-terminals, 0)]
        matrix = csr_array((np.concatenate(values).astype(np.int32), (rows, columns)), shape=(n + 2, n + 2))
        assert value_of(flow, terminals) == maximum_flow(matrix, n, n + 1).flow_value
        assert cut_of(flow, tails, heads, capacities, terminals) == value_of(flow, terminals)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_real_capacities_end_and_nothing_is_below_zero(scale: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        given = network(rng, 200, 900, lambda shape: scale * rng.exponential(size=shape) ** 4)
        flow = planted(*given, compile=True)
        kernel_of(make_grow, compile=True)(flow, ALL)
        assert (flow.residual >= 0).all()
        assert cut_of(flow, *given) == pytest.approx(value_of(flow, given[-1]), rel=1e-12)


def test_infinite_capacities_are_never_cut() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        tails, heads, capacities, terminals = network(rng, 30, 60, lambda shape: rng.exponential(size=shape))
        capacities[rng.random(capacities.shape) < 0.3] = np.inf
        flow = planted(tails, heads, capacities, terminals, compile=True)
        kernel_of(make_grow, compile=True)(flow, ALL)
        assert np.isfinite(flow.excess).all()
        assert not np.isnan(flow.residual).any()
        cut = cut_of(flow, tails, heads, capacities, terminals)
        assert cut == pytest.approx(value_of(flow, terminals), rel=1e-12)


def test_work_in_parts_comes_to_the_same() -> None:
    rng = np.random.default_rng(2)
    given = network(rng, 400, 1200, lambda shape: rng.exponential(size=shape))
    whole, parts = (planted(*given, compile=True) for _ in range(2))
    grow, values = kernel_of(make_grow, compile=True), []
    assert grow(whole, ALL)
    while not grow(parts, 1):
        values.append(value_of(parts, given[-1]))
    assert len(values) > 3
    assert (np.diff(values) >= 0).all()
    np.testing.assert_array_equal(parts.residual, whole.residual)


def test_plain_and_compiled_are_the_same() -> None:
    rng = np.random.default_rng(3)
    given = network(rng, 60, 200, lambda shape: rng.exponential(size=shape))
    flows = [planted(*given, compile=compile) for compile in (False, True)]
    for flow, compile in zip(flows, (False, True), strict=True):
        kernel_of(make_grow, compile=compile)(flow, ALL)
    np.testing.assert_array_equal(flows[0].residual, flows[1].residual)
    np.testing.assert_array_equal(flows[0].sides, flows[1].sides)
