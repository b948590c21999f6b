"""Updates of a machine: their expectation, their order, and what a checkpoint keeps."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from besag.arrays import AnyArray, Array
from besag.errors import CapabilityError, ModelError
from besag.infer.iterate import Clock
from besag.learn.rbm.machine import Machine
from besag.learn.rbm.training import Trainer, UpdateOptions, first_machine, read_objective
from tests.learn.rbm.conftest import all_hidden, all_rows, joint, machine

N = 20_000
USUAL = UpdateOptions(1, 0, N, 1.0, "constant", 1.0, 0.0, 0.0, 10, 0)
each_kind = pytest.mark.parametrize("binary", [True, False], ids=["binary", "categorical"])


def data(m: Machine) -> AnyArray:
    """N rows, each as often as a law that is not the machine's has it."""
    rows = all_rows(m)
    return rows[
        np.random.default_rng(5).choice(len(rows), size=N, p=np.random.default_rng(6).dirichlet([0.5] * len(rows)))
    ]


def change(m: Machine, training: Trainer, rows: AnyArray) -> tuple[Array, ...]:
    """What one update adds to weights, visible and hidden biases, at rate 1."""
    before = training.machine
    training.one_epoch(rows, Clock())
    after = training.machine
    return tuple(getattr(after, name) - getattr(before, name) for name in ("weights", "visible", "hidden"))


def statistics(m: Machine, rows: AnyArray, law: Array) -> tuple[Array, ...]:
    """The gradient's expectations under a law of visible rows."""
    p = m.expect_hidden(rows)
    return (rows * law[:, None]).T @ p, law @ rows, law @ p


@each_kind
@pytest.mark.parametrize("k", [1, 2])
def test_contrastive_divergence_in_expectation(binary: bool, k: int) -> None:
    m = machine(binary=binary)
    rows, known, hidden = data(m), all_rows(m), all_hidden(m)
    law = np.array([(rows == row).all(axis=1).mean() for row in known])
    p = joint(m)
    given_v, given_h = p / p.sum(axis=1, keepdims=True), p / p.sum(axis=0)
    after = law
    for _ in range(k):
        after = given_h @ (after @ given_v)
    found = change(m, Trainer(m, replace(USUAL, k=k)), rows)
    expected = [a - b for a, b in zip(statistics(m, known, law), statistics(m, known, after), strict=True)]
    assert len(hidden) == 8
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() < 5 / np.sqrt(N)
        assert np.abs(other).max() > 10 / np.sqrt(N)  # there is something to see


@each_kind
def test_persistent_chains_follow_the_likelihood_in_expectation(binary: bool) -> None:
    m = machine(binary=binary)
    rows, known = data(m), all_rows(m)
    law = np.array([(rows == row).all(axis=1).mean() for row in known])
    training = Trainer(m, replace(USUAL, n_chains=N, learning_rate=1e-30))
    for _ in range(30):
        training.one_epoch(rows[:10], Clock())
    training.options = replace(training.options, learning_rate=1.0)
    found = change(m, training, rows)
    free = statistics(m, known, joint(m).sum(axis=1))
    for one, data_part, model_part in zip(found, statistics(m, known, law), free, strict=True):
        assert np.abs(one - (data_part - model_part)).max() < 5 / np.sqrt(N)


def test_momentum_and_weight_decay() -> None:
    m = machine(scale=0.5)
    rows = data(m)[:40]
    plain, pushed = (Trainer(m, replace(USUAL, batch_size=40, learning_rate=0.1, momentum=mu)) for mu in (0.0, 0.9))
    first, same = change(m, plain, rows), change(m, pushed, rows)
    for one, other in zip(first, same, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)  # no velocity yet
    velocity = pushed.velocities["weights"].copy()
    before = pushed.machine.weights
    pushed.one_epoch(rows, Clock())
    gradient = pushed.velocities["weights"] - 0.9 * velocity
    np.testing.assert_allclose(pushed.machine.weights - before, 0.9 * velocity + gradient, atol=1e-6)
    decayed = Trainer(m, replace(USUAL, batch_size=40, learning_rate=0.1, weight_decay=0.5))
    np.testing.assert_allclose(change(m, decayed, rows)[0], first[0] - 0.1 * 0.5 * m.weights, atol=1e-6)


@pytest.mark.parametrize("n_chains", [0, 7])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_fit_goes_on_bit_by_bit(n_chains: int, momentum: float) -> None:
    rows = data(machine())[:53]
    descent = UpdateOptions(2, n_chains, 10, 0.1, "cosine", 1.0, momentum, 0.01, 6, 3)
    start = first_machine(rows, np.arange(7), True, 4, 3)
    whole, parts = Trainer(start, descent), Trainer(start, descent)
    for _ in range(6):
        assert whole.epoch(rows, Clock())
    while not parts.epoch(rows, Clock(1e-9)):  # a look at the clock after every few updates
        again = Trainer(start, descent)
        again.restore({name: array.copy() for name, array in parts.kept().items()})
        parts = again
    while parts.n_updates < whole.n_updates:
        parts.epoch(rows, Clock())
    for name, array in whole.kept().items():
        assert_array_equal(array, parts.kept()[name], err_msg=name)


def test_first_biases_fit_the_shares() -> None:
    rows = data(machine())
    start = first_machine(rows, np.arange(7), True, 1, 0)
    np.testing.assert_allclose(1 / (1 + np.exp(-start.visible)), rows.mean(axis=0), atol=1e-3)
    units = data(machine(binary=False))
    start = first_machine(units, machine(binary=False).offsets, False, 1, 0)
    np.testing.assert_allclose(start.expect_visible(np.zeros((1, 1)))[0], units.mean(axis=0), atol=1e-3)


def test_objectives_by_name() -> None:
    assert read_objective("pcd", 10) == (1, 10)
    assert read_objective("pcd[k=3,n_chains=5]", 10) == (3, 5)
    assert read_objective("contrastive_divergence[k=2]", 10) == (2, 0)
    assert read_objective("contrastive_divergence[persistent=true]", 10) == (1, 10)
    with pytest.raises(ModelError, match="must be pcd or contrastive_divergence"):
        read_objective("likelihood", 10)
    with pytest.raises(CapabilityError, match="k must be"):
        read_objective("pcd[k=0]", 10)


def test_a_checkpoint_of_another_fit() -> None:
    one, other = Trainer(machine(), USUAL), Trainer(machine(n_hidden=4), USUAL)
    with pytest.raises(ModelError, match=r"its weights has shape \(6, 4\), expected \(6, 3\)"):
        one.restore(other.kept())
