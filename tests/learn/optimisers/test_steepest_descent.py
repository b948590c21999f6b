"""Steepest descent as 000 writes it."""

import numpy as np
from numpy.testing import assert_allclose

from besag.learn.optimisers.base import OPTIMIZERS
from tests.learn.optimisers.test_optimisers import Logistic, least


def test_without_a_tolerance_it_goes_on_000_algorithm_1() -> None:
    """||d|| < 0 is never so: at the minimum eta is 0, from one iteration to the next, at no cost."""
    problem = Logistic()
    theta, history, _ = OPTIMIZERS.read("steepest_descent[tolerance=0,max_iterations=300]").minimize(
        problem, problem.start
    )
    evaluations = problem.evaluations
    assert (history.stopped, history.n_iterations) == ("max_iterations", 300)
    assert (np.diff([row.value for row in history.rows]) <= 1e-12).all()
    assert history.rows[-1].step == 0
    assert_allclose(problem.whole(theta), least(problem), rtol=0, atol=1e-9)
    again = Logistic()
    optimizer = OPTIMIZERS.read("steepest_descent[tolerance=0,max_iterations=3000]")
    assert optimizer.minimize(again, again.start)[1].n_iterations == 3000
    assert again.evaluations == evaluations
