"""Free energies, conditionals and Gibbs sweeps of small machines against enumeration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from besag.learn.rbm.monitors import pseudo_likelihood
from tests.learn.rbm.conftest import all_hidden, all_rows, joint, log_z, machine

each_kind = pytest.mark.parametrize("binary", [True, False], ids=["binary", "categorical"])


@each_kind
def test_free_energy_sums_out_the_hidden_layer(binary: bool) -> None:
    m = machine(binary=binary)
    assert_allclose(np.exp(-m.free_energy(all_rows(m)) - log_z(m)), joint(m).sum(axis=1), rtol=1e-5)


@each_kind
def test_conditionals(binary: bool) -> None:
    m = machine(binary=binary)
    v, h, p = all_rows(m), all_hidden(m), joint(m)
    assert_allclose(m.expect_hidden(v), p @ h / p.sum(axis=1, keepdims=True), rtol=1e-4)
    assert_allclose(m.expect_visible(h), p.T @ v / p.sum(axis=0)[:, None], rtol=1e-4)


@each_kind
def test_gibbs_sweeps_keep_the_law(binary: bool) -> None:
    m = machine(binary=binary)
    rows = m.gibbs(m.starts(40_000, np.random.default_rng(1)), 30, np.random.default_rng(0))
    law = joint(m).sum(axis=1)
    known = all_rows(m)
    found = np.array([(rows == row).all(axis=1).mean() for row in known])
    assert found.sum() == pytest.approx(1.0)
    assert (np.abs(found - law) < 5 * np.sqrt(law * (1 - law) / len(rows)) + 1e-3).all()


@each_kind
def test_pseudo_likelihood_of_all_variables(binary: bool) -> None:
    m = machine(binary=binary)
    rows, law = all_rows(m), joint(m).sum(axis=1)
    expected = np.zeros(len(rows))
    for start, stop in zip(m.offsets[:-1], m.offsets[1:], strict=True):
        rest = np.delete(rows, np.arange(start, stop), axis=1)
        same = (rest[:, None] == rest[None]).all(axis=2)
        expected += np.log(law / (same @ law))
    picks = np.broadcast_to(np.arange(m.n_visible), (len(rows), m.n_visible))
    assert_allclose(pseudo_likelihood(m, rows, picks), expected, rtol=1e-4, atol=1e-5)


def test_grey_cells_count_by_their_shares() -> None:
    m = machine()
    row = np.array([[0.3, 1, 0, 0, 1, 1]], np.float32)
    low, high = row.copy(), row.copy()
    low[0, 1], high[0, 1] = 0, 1
    odds = m.free_energy(low) - m.free_energy(high)
    for x, share in ((0.0, 0.0), (0.25, 0.25), (1.0, 1.0)):
        row[0, 1] = x
        expected = -share * np.logaddexp(0, -odds) - (1 - share) * np.logaddexp(0, odds)
        assert_allclose(pseudo_likelihood(m, row, np.array([[1]])) / 6, expected, rtol=1e-4)
