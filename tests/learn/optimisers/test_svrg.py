"""Stochastic gradient descent with an anchor: the minimum without a word about steps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError
from besag.learn.objective import State
from besag.learn.optimisers.base import OPTIMIZERS
from tests.learn.optimisers.test_optimisers import Logistic, least, proximal


@pytest.mark.parametrize("batch_size", [None, 1, 7, 60, 100])
@pytest.mark.parametrize(("n", "l2"), [(60, 3.0), (60, 0.5), (400, 1.0)])
def test_the_minimum_of_scipy(n: int, l2: float, batch_size: int | None) -> None:
    problem = Logistic(n=n, l2=l2)
    theta, history, _ = OPTIMIZERS.read(f"sgd[batch_size={batch_size}]").minimize(problem, problem.start)
    assert history.stopped == "converged"
    assert_allclose(problem.whole(theta), least(problem), rtol=1e-9)
    assert history.rows[-1].value == problem.whole(theta)
    assert (np.diff([row.value for row in history.rows]) <= 1e-9).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_steps_follow_the_scale_of_the_features(scale: float) -> None:
    problem = Logistic(n=200, l2=scale**2)
    problem.x *= scale
    theta, history, _ = OPTIMIZERS.read("sgd[tolerance=1e-9]").minimize(problem, problem.start)
    expected, _, _ = OPTIMIZERS.read("lbfgs[tolerance=1e-9]").minimize(problem, problem.start)
    assert_allclose(problem.whole(theta), problem.whole(expected), rtol=1e-7)
    assert history.rows[-1].iteration < 200


def test_l1_has_exact_zeros() -> None:
    problem = Logistic(d=6, l1=4.0, l2=2.0)
    expected = proximal(problem)
    theta, history, _ = OPTIMIZERS.read("sgd").minimize(problem, problem.start)
    assert history.converged
    assert_allclose(problem.whole(theta), problem.whole(expected), rtol=1e-9)
    assert_array_equal(theta == 0, expected == 0)


class Cliff(Logistic):
    """Too steep for the steps that the start suggests."""

    height = 5e3

    def value_and_grad(self, theta: Array) -> tuple[float, Array]:
        value, gradient = super().value_and_grad(theta)
        return value + self.height * float((theta**4).sum()), gradient + 4 * self.height * theta**3

    def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[float, Array, State]:
        value, gradient, _ = super().sampled(theta, instances)
        return value + self.height * float((theta**4).sum()), gradient + 4 * self.height * theta**3, None


def test_epochs_that_end_higher_are_taken_back() -> None:
    problem = Cliff()
    theta, history, _ = OPTIMIZERS.read("sgd[batch_size=60,max_iterations=2000]").minimize(problem, problem.start)
    expected, _, _ = OPTIMIZERS.read("lbfgs[tolerance=1e-8]").minimize(problem, problem.start)
    assert history.converged
    assert_allclose(problem.whole(theta), problem.whole(expected), rtol=1e-9)
    changes = np.diff([row.value for row in history.rows])
    assert (changes <= 1e-9).all()
    assert (changes == 0).any()


class Uphill(Logistic):
    """Gradients of batches that lead upwards."""

    def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[float, Array, State]:
        value, gradient, _ = super().sampled(theta, instances)
        return value, gradient + 1e6 * np.sign(theta) * np.abs(theta + 1e-3), None

    def value_and_grad(self, theta: Array) -> tuple[float, Array]:
        value, gradient = super().value_and_grad(theta)
        return value, -gradient


def test_where_no_epoch_helps_it_says_so() -> None:
    problem = Uphill()
    theta, history, _ = OPTIMIZERS.read("sgd").minimize(problem, problem.start)
    assert history.stopped == "no_progress"
    assert_array_equal(theta, problem.start)


def test_a_step_a_schedule_or_averages_make_it_classical() -> None:
    problem = Logistic()
    for option in ("step=0.1", "schedule=inverse", "averaging=false", "evaluate_every=2"):
        problem.samples = 0
        optimizer = OPTIMIZERS.read(f"sgd[{option},batch_size=20,max_iterations=4]")
        _, history, checkpoint = optimizer.minimize(problem, problem.start)
        assert problem.samples == 3 * 4
        assert history.stopped == "max_iterations"
        with pytest.raises(CapabilityError, match="resume is of sgd with other options for its steps"):
            OPTIMIZERS.read("sgd[batch_size=20]").minimize(problem, problem.start, resume=checkpoint)
    _, _, checkpoint = OPTIMIZERS.read("sgd[max_iterations=1]").minimize(problem, problem.start)
    with pytest.raises(CapabilityError, match="resume is of sgd with other options for its steps"):
        OPTIMIZERS.read("sgd[step=0.1]").minimize(problem, problem.start, resume=checkpoint)


def test_two_gradients_a_batch_and_one_evaluation_an_epoch() -> None:
    problem = Logistic()
    OPTIMIZERS.read("sgd[batch_size=20,max_iterations=5,tolerance=0]").minimize(problem, problem.start)
    assert (problem.samples, problem.evaluations) == (5 * 2 * 2, 5 + 2)  # none for the first batch, at the anchor


@pytest.mark.parametrize("text", ["sgd", "sgd[batch_size=5]", "adam[step=0.5,schedule=cosine]", "adagrad"])
def test_options_that_are_left_to_the_method(text: str) -> None:
    made: Any = OPTIMIZERS.read(text)
    assert OPTIMIZERS.text_of(made) == text
    assert OPTIMIZERS.read(OPTIMIZERS.text_of(replace(made, step=None))) == replace(made, step=None)
    assert made.size(10) == (5 if "batch_size" in text else 1)
    assert made.size(10**6) == (5 if "batch_size" in text else 32)


class Interrupted(Cliff):
    """Ctrl-C at one of the batches."""

    height = 1e6

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[float, Array, State]:
        if self.samples == self.last:
            raise KeyboardInterrupt
        return super().sampled(theta, instances)


@pytest.mark.parametrize("last", [0, 1, 2, 3, 90])
def test_the_best_so_far_within_an_epoch(last: int) -> None:
    """The first step goes too far, and two more do not mend it; later ones only lead down."""
    problem = Interrupted(last)
    theta, history, checkpoint = OPTIMIZERS.read("sgd[batch_size=10]").minimize(problem, problem.start)
    assert history.stopped == "interrupted"
    assert checkpoint.kept["position"] > 0
    assert history.rows[-1].value == problem.whole(theta) <= problem.whole(checkpoint.kept["anchor"])
    assert (history.went_back == 1) == (last < 4)
    problem.last = -1
    resumed, _, _ = OPTIMIZERS.read("sgd[batch_size=10]").minimize(problem, problem.start, resume=checkpoint)
    whole, _, _ = OPTIMIZERS.read("sgd[batch_size=10]").minimize(Interrupted(-1), problem.start)
    assert_array_equal(resumed, whole)
