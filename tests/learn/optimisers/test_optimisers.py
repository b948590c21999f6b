"""Optimisers on small convex problems: minima, l1, stopping, going on from checkpoints, options."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError
from besag.learn.checkpoint import load_checkpoint, save_checkpoint
from besag.learn.history import Iteration
from besag.learn.objective import Product, State
from besag.learn.optimisers.base import OPTIMIZERS
from besag.learn.penalty import Penalty

SMOOTH = (
    "gradient_descent[tolerance=1e-7,max_iterations=5000]",
    "steepest_descent[tolerance=1e-7,max_iterations=5000]",
    "gradient_descent[step=0.02,tolerance=1e-7,max_iterations=5000]",
    "lbfgs[tolerance=1e-8]",
    "lbfgs[tolerance=1e-8,metric=identity,memory=3]",
    "newton_cg[tolerance=1e-9]",
)
ALL = (
    "steepest_descent",
    "gradient_descent[step=0.02]",
    "gradient_descent",
    "lbfgs[memory=3]",
    "lbfgs[memory=3,metric=identity]",
    "newton_cg",
    "sgd[batch_size=7,max_iterations=8]",
    "sgd[batch_size=7,evaluate_every=2,averaging=true,max_iterations=8]",
    "sgd[batch_size=7,schedule=cosine,max_iterations=8]",
    "momentum[batch_size=7,averaging=true,max_iterations=8]",
    "adam[batch_size=7,evaluate_every=3,max_iterations=8]",
    "adagrad[batch_size=7,max_iterations=8]",
)


class Logistic:
    """Multinomial logistic regression: D features, K classes, theta the (D, K) weights."""

    has_value = True
    is_smooth = True
    noise = 0.0

    def __init__(self, n: int = 60, d: int = 4, k: int = 3, l1: float = 0.0, l2: float = 0.5, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d)
        logits = self.x @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))
        self.y = np.eye(k)[logits.argmax(1)]
        self.n, self.shape, self.penalty = n, (d, k), Penalty(np.array(l1), np.array(l2))
        self.evaluations, self.samples = 0, 0

    @property
    def start(self) -> Array:
        return np.zeros(self.shape[0] * self.shape[1])

    def _probabilities(self, theta: Array, rows: Any) -> tuple[Array, Array]:
        scores = self.x[rows] @ theta.reshape(self.shape)
        scores -= scores.max(1, keepdims=True)
        totals = np.exp(scores).sum(1, keepdims=True)
        return scores - np.log(totals), np.exp(scores) / totals

    def _loss(self, theta: Array, rows: Any) -> tuple[float, Array]:
        logs, probabilities = self._probabilities(theta, rows)
        return -float((self.y[rows] * logs).sum()), (self.x[rows].T @ (probabilities - self.y[rows])).ravel()

    def value_and_grad(self, theta: Array) -> tuple[float, Array]:
        self.evaluations += 1
        loss, gradient = self._loss(theta, slice(None))
        added, more = self.penalty.smooth(theta)
        return loss + added, gradient + more

    def hessian_vector(self, theta: Array) -> Product:
        _, p = self._probabilities(theta, slice(None))

        def product(vector: Array) -> Array:
            along = self.x @ vector.reshape(self.shape)
            curved = p * (along - (p * along).sum(1, keepdims=True))
            return (self.x.T @ curved).ravel() + 2.0 * self.penalty.l2 * vector

        return product

    def diagonal(self, theta: Array) -> Array:
        _, p = self._probabilities(theta, slice(None))
        return ((self.x**2).T @ (p * (1.0 - p))).ravel() + 2.0 * self.penalty.l2

    def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[float, Array, State]:
        self.samples += 1
        assert len(instances)
        loss, gradient = self._loss(theta, instances)
        added, more = self.penalty.smooth(theta)
        scale = self.n / len(instances)
        return scale * loss + added, scale * gradient + more, None

    def whole(self, theta: Array) -> float:
        return self.value_and_grad(theta)[0] + float((self.penalty.l1 * np.abs(theta)).sum())


def least(problem: Logistic) -> float:
    """The minimum as scipy finds it; a Newton step takes off what its line search leaves, which rounding decides."""
    options = {"xtol": 1e-12}
    found = scipy.optimize.minimize(
        problem.value_and_grad,
        problem.start,
        jac=True,
        hessp=lambda theta, vector: problem.hessian_vector(theta)(vector),
        method="Newton-CG",
        options=options,
    )
    hessian = np.array([problem.hessian_vector(found.x)(unit) for unit in np.eye(len(found.x))])
    theta = found.x - np.linalg.lstsq(hessian, problem.value_and_grad(found.x)[1])[0]
    value, gradient = problem.value_and_grad(theta)
    assert np.linalg.norm(gradient) < 1e-9
    return value


def proximal(problem: Logistic) -> Array:
    """The minimum with l1 by accelerated proximal gradients with restarts: slow and sure."""
    theta = ahead = problem.start
    step, weight = 1.0 / (np.linalg.norm(problem.x, 2) ** 2 / 2 + 2 * problem.penalty.l2[0]), 1.0
    for _ in range(20_000):
        moved = ahead - step * problem.value_and_grad(ahead)[1]
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * problem.penalty.l1, 0.0)
        if (ahead - new) @ (new - theta) > 0:
            weight, ahead = 1.0, theta
            continue
        next_weight = (1.0 + math.sqrt(1.0 + 4.0 * weight**2)) / 2.0
        ahead, theta, weight = new + (weight - 1.0) / next_weight * (new - theta), new, next_weight
    return theta


@pytest.mark.parametrize("text", SMOOTH)
def test_smooth_methods_find_the_minimum_of_scipy(text: str) -> None:
    problem = Logistic()
    theta, history, _ = OPTIMIZERS.read(text).minimize(problem, problem.start)
    assert history.stopped == "converged"
    assert_allclose(problem.whole(theta), least(problem), rtol=0, atol=1e-6)
    assert history.rows[0][2::2] == (problem.whole(problem.start), 0.0)
    assert [row.iteration for row in history.rows] == list(range(len(history.rows)))
    assert history.rows[-1].value == problem.whole(theta)
    assert_allclose(history.rows[-1].grad_norm, np.linalg.norm(problem.value_and_grad(theta)[1]))
    assert all(row.step > 0 for row in history.rows[1:])


def test_steepest_descent_is_the_algorithm_of_000() -> None:
    problem, tolerance = Logistic(), 1e-2
    steps = []
    theta = problem.start
    while True:
        d = problem.value_and_grad(theta)[1]

        def along(eta: float, theta: Array = theta, d: Array = d) -> float:
            return problem.value_and_grad(theta - eta * d)[0]

        steps.append(float(scipy.optimize.minimize_scalar(along, bracket=(0, 0.01), options={"xtol": 1e-12}).x))
        theta = theta - steps[-1] * d
        if np.linalg.norm(d) < tolerance:
            break
    optimizer = OPTIMIZERS.read(f"steepest_descent[tolerance={tolerance},line_tolerance=1e-10]")
    found, history, _ = optimizer.minimize(problem, problem.start)
    assert history.converged
    assert_allclose(found, theta, atol=1e-6)
    assert_allclose([row.step for row in history.rows[1:]], steps, rtol=1e-4)


def test_newton_needs_few_iterations() -> None:
    problem = Logistic()
    _, history, _ = OPTIMIZERS.read("newton_cg[tolerance=1e-9]").minimize(problem, problem.start)
    assert len(history.rows) <= 12


def test_lbfgs_evaluates_about_once_an_iteration() -> None:
    problem = Logistic(n=300, d=12, k=5, l2=0.01)
    _, history, _ = OPTIMIZERS.read("lbfgs[tolerance=1e-6]").minimize(problem, problem.start)
    assert history.converged
    assert problem.evaluations <= 1.2 * len(history.rows)


def test_the_diagonal_metric_saves_iterations_on_badly_scaled_data() -> None:
    counts = {}
    for metric in ("diagonal", "identity"):
        problem = Logistic(n=200, d=6, l2=1e-6)
        problem.x = problem.x * np.logspace(-1, 1, 6)
        _, history, _ = OPTIMIZERS.read(f"lbfgs[metric={metric},tolerance=1e-5]").minimize(problem, problem.start)
        assert history.converged
        counts[metric] = len(history.rows)
    assert 10 * counts["diagonal"] < counts["identity"]


def test_lbfgs_multiplies_by_the_inverse_of_bfgs() -> None:
    """With as much memory as iterations, steps are those of BFGS, written out with matrices."""
    problem = Logistic()
    seen: list[Array] = [problem.start]
    optimizer = OPTIMIZERS.read("lbfgs[metric=identity,memory=50,max_iterations=6]")
    _, history, _ = optimizer.minimize(problem, problem.start, on_step=lambda row, theta: seen.append(theta))
    gradients = [problem.value_and_grad(theta)[1] for theta in seen]
    eye = np.eye(len(problem.start))
    for last in range(2, 6):
        pairs = [(seen[i + 1] - seen[i], gradients[i + 1] - gradients[i]) for i in range(last)]
        s, y = pairs[-1]
        inverse = (s @ y) / (y @ y) * eye
        for s, y in pairs:
            left = eye - np.outer(s, y) / (s @ y)
            inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
        expected = seen[last] - history.rows[last + 1].step * inverse @ gradients[last]
        assert_allclose(seen[last + 1], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "text",
    [
        "sgd[batch_size=20,step=1.0,schedule=inverse,decay=0.3,max_iterations=1000,evaluate_every=300,tolerance=0]",
        "sgd[batch_size=20,step=0.3,averaging=true,max_iterations=2000,evaluate_every=300,tolerance=0]",
        "momentum[batch_size=20,step=0.1,schedule=inverse,decay=0.2,max_iterations=1000,tolerance=0]",
        "adam[batch_size=20,step=0.02,schedule=cosine,max_iterations=1000,tolerance=0]",
        "adagrad[batch_size=20,step=0.5,schedule=inverse,decay=0.05,max_iterations=1000,tolerance=0]",
    ],
)
def test_stochastic_methods_find_the_minimum_from_batches_alone(text: str) -> None:
    problem = Logistic(l2=3.0)
    theta, history, _ = OPTIMIZERS.read(text).minimize(problem, problem.start)
    assert_allclose(problem.whole(theta), least(problem), rtol=0, atol=1e-6)
    assert problem.samples == 3 * (len(history.rows) - 1)
    assert history.rows[-1].value == problem.whole(theta)


@pytest.mark.parametrize("metric", ["diagonal", "identity"])
@pytest.mark.parametrize("l1", [0.5, 4.0, np.r_[0.0, 0.0, 0.0, np.full(15, 6.0)]])
def test_orthant_wise_lbfgs_finds_the_minimum_and_exact_zeros(metric: str, l1: Any) -> None:
    problem = Logistic(d=6, l2=0.1)
    problem.penalty = Penalty(np.asarray(l1), problem.penalty.l2)
    expected = proximal(problem)
    theta, history, _ = OPTIMIZERS.read(f"lbfgs[metric={metric},tolerance=1e-9]").minimize(problem, problem.start)
    assert history.converged
    assert_allclose(problem.whole(theta), problem.whole(expected), rtol=0, atol=1e-8)
    assert_allclose(history.rows[-1].value, problem.whole(theta), rtol=1e-14)
    assert_array_equal(theta == 0, expected == 0)
    assert (np.max(l1) < 1) or (theta == 0).any()


def test_l1_so_large_that_nothing_is_left() -> None:
    problem = Logistic(l1=1e4)
    theta, history, _ = OPTIMIZERS.read("lbfgs").minimize(problem, problem.start)
    assert (history.stopped, len(history.rows), history.rows[0].grad_norm) == ("converged", 1, 0.0)
    assert not theta.any()
    theta, history, _ = OPTIMIZERS.read("lbfgs").minimize(problem, problem.start + 1.0)
    assert history.converged
    assert not theta.any()


@pytest.mark.parametrize(
    "text",
    [
        "sgd[batch_size=20,step=0.3,schedule=inverse,decay=0.2,max_iterations=1000]",
        "momentum[batch_size=20,step=0.03,schedule=inverse,decay=0.2,max_iterations=1000]",
        "adam[batch_size=20,step=0.05,schedule=inverse,decay=0.2,max_iterations=1000]",
        "adagrad[batch_size=20,step=0.5,schedule=inverse,decay=0.05,max_iterations=1000]",
    ],
)
def test_stochastic_methods_with_l1_by_proximal_steps(text: str) -> None:
    problem = Logistic(d=6, l1=4.0, l2=2.0)
    expected = proximal(problem)
    theta, _, _ = OPTIMIZERS.read(text).minimize(problem, problem.start)
    assert_allclose(problem.whole(theta), problem.whole(expected), rtol=0, atol=1e-3)
    assert ((theta == 0) & (expected == 0)).any()


@pytest.mark.parametrize("name", ["steepest_descent", "gradient_descent", "newton_cg"])
def test_l1_is_refused_by_methods_for_smooth_functions(name: str) -> None:
    problem = Logistic(l1=0.1)
    with pytest.raises(CapabilityError, match=f"'{name}' cannot minimise with l1 > 0; lbfgs and sgd can"):
        OPTIMIZERS.read(name).minimize(problem, problem.start)


def stop_at(last: int) -> Callable[[Iteration, Array], bool]:
    return lambda row, theta: row.iteration == last


@pytest.mark.parametrize("l1", [0.0, 1.0])
@pytest.mark.parametrize("through_file", [False, True])
@pytest.mark.parametrize("text", ALL)
def test_going_on_from_a_checkpoint_changes_no_bit(text: str, through_file: bool, l1: float, tmp_path: Path) -> None:
    optimizer = OPTIMIZERS.read(text)
    if l1 and OPTIMIZERS.name_of(optimizer) in ("steepest_descent", "gradient_descent", "newton_cg"):
        pytest.skip("for smooth functions")

    def problem() -> Logistic:
        return Logistic(n=200, d=12, l1=l1, l2=0.01)

    start = problem().start
    whole, full, _ = optimizer.minimize(problem(), start, on_step=stop_at(8))
    for last in (1, 5):
        _, _, checkpoint = optimizer.minimize(problem(), start, on_step=stop_at(last))
        assert checkpoint.iteration == last
        if through_file:
            save_checkpoint(checkpoint, tmp_path / "fit.npz")
            checkpoint = load_checkpoint(tmp_path / "fit.npz")
        theta, history, _ = optimizer.minimize(problem(), start, on_step=stop_at(8), resume=checkpoint)
        assert_array_equal(theta, whole)
        assert len(history.rows) == len(full.rows)
        assert_array_equal(values(history.rows)[last + 1 :], values(full.rows)[last + 1 :])
        assert history.rows[last + 1].seconds >= checkpoint.seconds


def values(rows: list[Iteration]) -> Array:
    return np.array(rows)[:, 2:]


def test_a_stochastic_method_goes_on_within_an_epoch() -> None:
    class Interrupted(Logistic):
        left = 100

        def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[float, Array, State]:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return super().sampled(theta, instances)

    optimizer = OPTIMIZERS.read("adam[batch_size=7,max_iterations=4,averaging=true,evaluate_every=5]")
    problem = Interrupted()
    whole, full, _ = optimizer.minimize(problem, problem.start)
    problem.left = 9 * 2 + 5
    theta, history, checkpoint = optimizer.minimize(problem, problem.start)
    assert history.stopped == "interrupted"
    assert (checkpoint.iteration, checkpoint.kept["position"], len(checkpoint.rows)) == (2, 4 * 7, 3)
    assert [row.iteration for row in history.rows] == [0, 1, 2, 3]
    assert history.rows[-1].value == problem.whole(theta)
    theta, history, _ = optimizer.minimize(problem, problem.start, resume=checkpoint)
    assert_array_equal(theta, whole)
    assert_array_equal(values(history.rows), values(full.rows))
    assert np.isnan(values(full.rows)[1:-1, :2]).all()


@pytest.mark.parametrize("text", ALL)
def test_limits_and_ctrl_c_return_what_was_reached(text: str) -> None:
    problem, optimizer = Logistic(), OPTIMIZERS.read(text)
    before = problem.whole(problem.start)

    theta, history, checkpoint = optimizer.minimize(problem, problem.start, time_limit=0.0)
    assert (history.stopped, len(history.rows), checkpoint.iteration) == ("time_limit", 1, 0)
    assert_array_equal(theta, problem.start)

    def press(row: Iteration, theta: Array) -> None:
        if row.iteration == 2:
            raise KeyboardInterrupt

    theta, history, checkpoint = optimizer.minimize(problem, problem.start, on_step=press)
    assert (history.stopped, len(history.rows), checkpoint.iteration) == ("interrupted", 3, 2)
    assert problem.whole(theta) == history.rows[-1].value < before

    theta, history, _ = optimizer.minimize(problem, problem.start, on_step=stop_at(3))
    assert (history.stopped, len(history.rows)) == ("early_stopping", 4)

    few = OPTIMIZERS.read(f"{OPTIMIZERS.name_of(optimizer)}[max_iterations=2]")
    _, history, _ = few.minimize(problem, problem.start)
    assert (history.stopped, len(history.rows)) == ("max_iterations", 3)


def of_kernel() -> SystemError:
    """What numba makes of Ctrl-C within a kernel."""
    error = SystemError("a kernel returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize("pressed", [KeyboardInterrupt, of_kernel])
@pytest.mark.parametrize("text", [*SMOOTH, "lbfgs"])
def test_ctrl_c_within_an_iteration_drops_it_alone(text: str, pressed: Callable[[], BaseException]) -> None:
    class Interrupted(Logistic):
        last = 10**9

        def value_and_grad(self, theta: Array) -> tuple[float, Array]:
            if self.evaluations == self.last:
                raise pressed()
            return super().value_and_grad(theta)

    problem, optimizer = Interrupted(n=200, d=12, l2=0.01), OPTIMIZERS.read(text)
    whole, _, _ = optimizer.minimize(problem, problem.start, on_step=stop_at(9))
    problem.evaluations, problem.last = 0, problem.evaluations // 2
    _, history, checkpoint = optimizer.minimize(problem, problem.start, on_step=stop_at(9))
    assert history.stopped == "interrupted"
    assert 1 <= checkpoint.iteration < 9
    problem.last = 10**9
    theta, _, _ = optimizer.minimize(problem, problem.start, on_step=stop_at(9), resume=checkpoint)
    assert_array_equal(theta, whole)


def test_a_time_limit_is_for_one_call_and_seconds_for_the_whole_fit() -> None:
    problem, optimizer = Logistic(), OPTIMIZERS.read("lbfgs")
    _, history, checkpoint = optimizer.minimize(problem, problem.start, on_step=stop_at(2))
    _, later, _ = optimizer.minimize(problem, problem.start, time_limit=1000.0, resume=checkpoint)
    assert later.converged
    assert later.rows[:3] == history.rows
    assert later.seconds > checkpoint.seconds


@pytest.mark.parametrize("text", ["lbfgs[tolerance=0]", "newton_cg[tolerance=0]"])
def test_without_a_tolerance_rounding_ends_it(text: str) -> None:
    problem = Logistic()
    theta, history, _ = OPTIMIZERS.read(text).minimize(problem, problem.start)
    assert history.stopped == "converged"
    assert len(history.rows) < 1000
    assert_allclose(problem.whole(theta), least(problem), rtol=0, atol=1e-9)


@pytest.mark.parametrize("text", ["lbfgs", "newton_cg", "steepest_descent"])
def test_a_wrong_gradient_is_no_progress(text: str) -> None:
    class Wrong(Logistic):
        def value_and_grad(self, theta: Array) -> tuple[float, Array]:
            value, gradient = super().value_and_grad(theta)
            return value, -gradient

    problem = Wrong()
    theta, history, _ = OPTIMIZERS.read(text).minimize(problem, problem.start)
    assert history.stopped == "no_progress"
    assert_array_equal(theta, problem.start)
    assert history.rows[-1].step == 0


@pytest.mark.parametrize("text", ALL)
def test_a_start_without_a_value_is_no_progress(text: str) -> None:
    class Nowhere(Logistic):
        def value_and_grad(self, theta: Array) -> tuple[float, Array]:
            return math.inf, theta * math.nan

    problem = Nowhere()
    _, history, _ = OPTIMIZERS.read(text).minimize(problem, problem.start)
    assert (history.stopped, len(history.rows)) == ("no_progress", 1)


def test_steps_that_are_too_large_return_the_best() -> None:
    problem = Logistic()
    theta, history, _ = OPTIMIZERS.read("gradient_descent[step=10.0,max_iterations=30]").minimize(
        problem, problem.start
    )
    values = [row.value for row in history.rows]
    assert problem.whole(theta) == values[-1] == min(values) < values[-2]
    assert (len(values), history.rows[-1].step) == (32, 0.0)
    diverging = "gradient_descent[step=1e6,max_iterations=500]"
    theta, history, _ = OPTIMIZERS.read(diverging).minimize(problem, problem.start)
    assert history.stopped == "no_progress"
    assert problem.whole(theta) == history.rows[0].value
    with np.errstate(over="ignore"):
        _, history, _ = OPTIMIZERS.read("sgd[step=1e30,schedule=constant]").minimize(problem, problem.start)
    assert history.stopped == "no_progress"


def test_lbfgs_stops_by_relative_decrease_as_crfsuite_does() -> None:
    problem = Logistic(n=300, d=12, k=5, l2=0.01)
    optimizer = OPTIMIZERS.read("lbfgs[tolerance=0,relative_decrease=1e-3,period=4]")
    _, history, _ = optimizer.minimize(problem, problem.start)
    found = [row.value for row in history.rows]
    decreases = [(found[i - 4] - found[i]) / found[i] for i in range(4, len(found))]
    assert history.converged
    assert decreases[-1] < 1e-3 <= min(decreases[:-1])


def test_a_seed_decides_the_order() -> None:
    problem = Logistic()
    answers = [
        OPTIMIZERS.read(f"sgd[seed={seed},max_iterations=3,batch_size=7]").minimize(problem, problem.start)[0]
        for seed in (1, 1, 2)
    ]
    assert_array_equal(answers[0], answers[1])
    assert (answers[0] != answers[2]).any()


def test_the_start_is_left_alone() -> None:
    problem = Logistic()
    for name in set(OPTIMIZERS) - {"frank_wolfe"}:  # which needs a function that knows its dual
        start = problem.start
        OPTIMIZERS.read(f"{name}[max_iterations=3]").minimize(problem, start)
        assert not start.any()


def test_a_checkpoint_of_another_fit_is_refused() -> None:
    problem = Logistic()
    _, _, checkpoint = OPTIMIZERS.read("lbfgs").minimize(problem, problem.start, on_step=stop_at(2))
    with pytest.raises(CapabilityError, match="must be a checkpoint of 'adam', got one of 'lbfgs'"):
        OPTIMIZERS.read("adam").minimize(problem, problem.start, resume=checkpoint)
    with pytest.raises(CapabilityError, match="resume is of 12 parameters, expected 8"):
        OPTIMIZERS.read("lbfgs").minimize(problem, problem.start[:8], resume=checkpoint)
    with pytest.raises(CapabilityError, match="resume is of lbfgs with memory=10, got memory=5"):
        OPTIMIZERS.read("lbfgs[memory=5]").minimize(problem, problem.start, resume=checkpoint)
