"""log Z of machines: enumeration of either layer, and annealing with its interval."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from besag.errors import CapabilityError, TooLargeError
from besag.infer.iterate import Clock
from besag.learn.rbm.machine import Machine
from besag.learn.rbm.partition import LogPartition, annealed, enumerated, from_weights, log_partition
from tests.learn.rbm.conftest import log_z, machine

each_kind = pytest.mark.parametrize("binary", [True, False], ids=["binary", "categorical"])


@each_kind
@pytest.mark.parametrize("n_hidden", [1, 3, 11])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_enumeration(binary: bool, n_hidden: int, scale: float) -> None:
    m = machine(binary=binary, n_hidden=n_hidden, scale=scale)
    assert_allclose(enumerated(m, n_threads=1), log_z(m), rtol=1e-12)
    assert enumerated(m, n_threads=2) == enumerated(m, n_threads=1)


def test_either_layer_gives_the_same() -> None:
    m = machine(n_hidden=10)
    turned = Machine(m.weights.T, m.hidden, m.visible, np.zeros(10), np.arange(11), True)
    assert_allclose(enumerated(m), enumerated(turned), rtol=1e-12)


def test_many_units_take_several_logarithms() -> None:
    rng = np.random.default_rng(3)
    m = Machine(
        0.1 * rng.normal(size=(1100, 2)), rng.normal(size=1100), [0.5, -1.0], np.zeros(1100), np.arange(1101), True
    )
    assert_allclose(enumerated(m), np.logaddexp.reduce([
        float(np.dot(h, m.hidden) + np.logaddexp(0, m.visible.astype(float) + m.weights.astype(float) @ h).sum())
        for h in ([0, 0], [0, 1], [1, 0], [1, 1])
    ]), rtol=1e-12)  # fmt: skip


@each_kind
def test_annealed_weights_are_unbiased_and_the_interval_covers(binary: bool) -> None:
    m = machine(binary=binary, n_hidden=4, scale=1.5)
    exact, inside, n = log_z(m), 0, 100
    for seed in range(n):
        found = from_weights(annealed(m, 50, 100, np.random.default_rng(seed), Clock()), 0.9)
        assert found.low < found < found.high
        inside += found.low <= exact <= found.high
    assert 80 <= inside <= 99, f"{inside} of {n} intervals of 90% hold log Z"  # 3 standard deviations of a binomial
    pooled = annealed(m, 5000, 100, np.random.default_rng(7), Clock())
    assert from_weights(pooled, 0.9) == pytest.approx(exact, abs=0.03)


def test_method_is_said() -> None:
    def ask(method: str, m: Machine | None = None) -> LogPartition:
        return log_partition(m or machine(), method, 20, 50, 0.95, np.random.default_rng(0), Clock(), None)

    assert (ask("auto").method, ask("exact").method, ask("ais").method) == ("exact", "exact", "ais")
    assert ask("exact").low == ask("exact").high == ask("exact")
    assert ask("ais").standard_error > 0
    large = Machine(np.zeros((40, 40)), np.zeros(40), np.zeros(40), np.zeros(40), np.arange(41), True)
    assert ask("auto", large).method == "ais"
    assert_allclose(ask("auto", large), 80 * np.log(2), rtol=1e-6)
    with pytest.raises(TooLargeError, match=r'40 units.*take method="ais"'):
        ask("exact", large)
    with pytest.raises(CapabilityError, match="time_limit allows 50 of 500 temperatures"):
        log_partition(large, "ais", 2, 500, 0.95, np.random.default_rng(0), Clock(1e-9), None)
