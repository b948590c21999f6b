"""The counter-based generator: known outputs, both modes, uniformity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from besag.arrays import Array
from besag.kernels.compile import compiled
from besag.kernels.random import mix, stream, uniform


def make_uniforms() -> Callable[..., None]:
    def uniforms(key: int, row: int, sample: int, out: Array) -> None:
        seed = stream(key, row, sample)
        for v in range(len(out)):
            out[v] = uniform(seed, v)

    return uniforms


def test_is_splitmix64() -> None:
    """The first outputs of the reference generator for the seed 1234567."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    gamma = 0x9E3779B97F4A7C15
    assert [mix(1234567 + gamma * (i + 1)) % 2**64 for i in range(5)] == known
    assert uniform(1234567, 2) == (known[2] >> 11) * 2.0**-53


def test_both_modes_agree() -> None:
    for key, row, sample in [(0, 0, 0), (-(2**63), 5, 2**40), (2**63 - 1, 10**6, 3)]:
        python, fast = np.empty(100), np.empty(100)
        make_uniforms()(np.int64(key), row, sample, python)
        compiled(make_uniforms)(key, row, sample, fast)
        np.testing.assert_array_equal(python, fast)
        assert np.all((python >= 0.0) & (python < 1.0))


def test_uniform_along_every_index() -> None:
    """Kolmogorov-Smirnov along each index; a false alarm in any of the four has probability 4e-4."""
    n = 4000
    along = [
        [uniform(stream(9, 0, 0), i) for i in range(n)],
        [uniform(stream(9, 0, i), 0) for i in range(n)],
        [uniform(stream(9, i, 0), 0) for i in range(n)],
        [uniform(stream(i, 0, 0), 0) for i in range(n)],
    ]
    for numbers in along:
        assert stats.kstest(numbers, "uniform").pvalue > 1e-4
    assert len({number for numbers in along for number in numbers}) == 4 * n - 3
