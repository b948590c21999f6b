"""Objectives of users, with state and without values; the likelihood by sampling."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Array, IntArray
from besag.data.dataset import Batch
from besag.errors import ApproximationWarning, CapabilityError, ModelError
from besag.graph.graph import Graph
from besag.infer.engine import ENGINES
from besag.learn.history import Iteration
from tests.learn.losses.test_likelihood import instances, model_of

FIVE_EPOCHS = "adam[max_iterations=5,batch_size=3]"


class LeastSquares:
    """Half the squared distance of the energies at the labels from a target, 1, for each instance."""

    def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> tuple[float, Array, None]:
        graph, value, gradient = batch.graph, 0.0, np.zeros_like(theta)
        for n in range(len(batch)):
            part = batch.take(np.array([n]))
            features = part.graph.moments(part.labels[0])
            error = float(part.graph.bind(theta).energy(part.labels[0])[0]) - 1.0
            value, gradient = value + 0.5 * error**2, gradient + error * features
        assert graph.n_instances == len(batch)
        return value, gradient, None


class Perceptron:
    """The step of a perceptron, which has no value; its state counts the calls and the instances it has seen."""

    has_value = False
    surrogate = "perceptron"

    def value_and_grad(
        self, theta: Array, batch: Batch, state: Mapping[str, Any] | None
    ) -> tuple[None, Array, dict[str, Any]]:
        seen = {"calls": 0, "numbers": np.zeros(0, np.int64)} if state is None else dict(state)
        numbers = np.arange(len(batch)) if batch.numbers is None else batch.numbers
        graph = batch.graph
        guessed = np.concatenate([_best(graph.take([n]), theta) for n in range(len(batch))])
        gradient = graph.moments(batch.labels[0]) - graph.moments(guessed)
        return None, gradient, {"calls": seen["calls"] + 1, "numbers": np.append(seen["numbers"], numbers)}


def _best(graph: Graph, theta: Array) -> IntArray:
    codes = ENGINES.read("brute").infer(graph.bind(theta), frozenset({"map"})).codes
    assert codes is not None
    return np.asarray(codes[0, 0])


def test_an_objective_of_a_users_own() -> None:
    data = instances(3, 6)
    found = besag.fit(model_of(data[0]), data, objective=LeastSquares(), l2=1e-6, n_threads=1)
    assert found.converged
    assert found.objective is not None
    assert found.objective < 1e-4
    assert (found.surrogate, found.is_exact) == (None, True)


def test_a_gradient_without_a_value() -> None:
    data = instances(3, 6)
    model = model_of(data[0])
    found = besag.fit(model, data, objective=Perceptron(), optimizer="sgd[step=0.1,max_iterations=20]")
    assert found.objective is None
    assert (found.surrogate, found.stopped, found.converged) == ("perceptron", "max_iterations", False)
    assert found.history.columns.tolist() == ["iteration", "seconds", "grad_norm", "step"]
    assert np.isfinite(found.history.to_numpy()).all()
    assert "objective=None" in repr(found)
    for text in ("lbfgs", "newton_cg", "steepest_descent", "gradient_descent", "sgd"):
        with pytest.raises(CapabilityError, match=f"optimizer '{text}' compares values.*take adam, momentum"):
            besag.fit(model, data, objective=Perceptron(), optimizer=text)
    with pytest.raises(CapabilityError, match="held_out= watches values, and this objective has a gradient only"):
        besag.fit(model, data, objective=Perceptron(), optimizer="adam", held_out=data)


def test_a_state_goes_through_mini_batches_and_checkpoints(tmp_path: Path) -> None:
    data = instances(3, 6)
    whole = besag.fit(model_of(data[0]), data, objective=Perceptron(), optimizer=FIVE_EPOCHS)
    kept = whole.checkpoint.kept
    assert kept["state.calls"] == 10
    assert_array_equal(np.bincount(np.asarray(kept["state.numbers"])), np.full(6, 5))

    def at_two(row: Iteration, _: object) -> bool:
        return row.iteration == 2

    part = besag.fit(model_of(data[0]), data, objective=Perceptron(), optimizer=FIVE_EPOCHS, on_step=at_two)
    part.checkpoint.save(tmp_path / "fit.npz")
    rest = besag.fit(
        model_of(data[0]), data, objective=Perceptron(), optimizer=FIVE_EPOCHS, resume=tmp_path / "fit.npz"
    )
    assert_array_equal(rest.theta, whole.theta)
    assert_array_equal(rest.checkpoint.kept["state.numbers"], kept["state.numbers"])


@pytest.mark.parametrize(
    ("value", "slope", "match"),
    [
        (1.0, np.zeros(3), r"objective Odd must give a gradient of shape \(\d+,\), got \(3,\)"),
        (None, None, "objective Odd must have has_value = False, because it gives None"),
        ("low", 0.0, "objective Odd must give numbers, got \\('low', "),
        (1.0, np.nan, "objective Odd must have a finite gradient where its value is finite"),
        (-np.inf, 0.0, "objective Odd must have a finite gradient where its value is finite"),
        (np.inf, 0.0, "the objective has no finite value at the start; give another one by theta="),
        (np.nan, np.nan, "the objective has no finite value at the start"),
    ],
)
@pytest.mark.parametrize("optimizer", ["lbfgs", "sgd"])
def test_answers_that_are_none(value: Any, slope: Any, match: str, optimizer: str) -> None:
    class Odd:
        def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> Any:
            return value, slope + np.zeros_like(theta) if isinstance(slope, float) else slope, None

    data = instances(3, 2)
    with pytest.raises(ModelError, match=match):
        besag.fit(model_of(data[0]), data, objective=Odd(), optimizer=optimizer)
    with pytest.raises(CapabilityError, match="objective must be text such as"):
        besag.fit(model_of(data[0]), data, objective=3)  # type: ignore[arg-type]


def test_a_method_that_takes_theta_only_002_1() -> None:
    class Plain:
        def value_and_grad(self, theta: Array) -> tuple[float, Array]:
            return float(theta @ theta), 2.0 * theta

    data = instances(3, 2)
    for own in (Plain(), besag.objective("likelihood", model_of(data[0]), data)):
        text = rf"objective {type(own).__name__} must have a method value_and_grad\(theta, batch, state\)"
        with pytest.raises(CapabilityError, match=text):
            besag.fit(model_of(data[0]), data, objective=own)  # type: ignore[arg-type]


def test_an_answer_without_its_parts() -> None:
    class Odd:
        def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> Any:
            return 3.0

    data = instances(3, 2)
    with pytest.raises(ModelError, match=r"objective Odd must give a value, a gradient and a state, got 3.0"):
        besag.fit(model_of(data[0]), data, objective=Odd())


def test_steps_end_where_the_objective_has_no_value_002_1() -> None:
    """-log(1 - |theta|^2) - 3 theta_0 on the open unit ball: the minimum is at theta_0 = (sqrt(10) - 1) / 3."""

    class Barrier:
        def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> tuple[float, Array, None]:
            left, first = 1.0 - theta @ theta, np.eye(len(theta))[0]
            if left <= 0:
                return np.nan, theta, None
            return -np.log(left) - 3.0 * theta[0], 2.0 * theta / left - 3.0 * first, None

    data = instances(1, 2)
    found = besag.fit(model_of(data[0]), data, objective=Barrier(), optimizer="lbfgs[tolerance=1e-9]")
    assert found.converged
    assert_allclose(found.theta[0], (np.sqrt(10.0) - 1.0) / 3.0)
    assert_allclose(found.theta[1:], 0.0, atol=1e-8)


@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_the_sampled_gradient_is_that_of_the_likelihood(hidden: float) -> None:
    data = instances(5, 6, hidden=hidden)
    theta = 0.5 * np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    text = "likelihood[engine=gibbs[n_samples=4000,n_chains=8]]"
    sampled = besag.objective(text, model_of(data[0]), data, l2=0.3, weights=np.linspace(0.5, 1, 6))
    exact = besag.objective("likelihood", model_of(data[0]), data, l2=0.3, weights=np.linspace(0.5, 1, 6))
    value, gradient = sampled.value_and_grad(theta)
    assert value is None
    assert_allclose(gradient, exact.value_and_grad(theta)[1], atol=0.15)
    again = besag.objective(text, model_of(data[0]), data, l2=0.3, weights=np.linspace(0.5, 1, 6), n_threads=1)
    assert_array_equal(again.value_and_grad(theta)[1], gradient)
    assert not np.array_equal(sampled.value_and_grad(theta)[1], gradient)  # the chains have moved on


@pytest.mark.parametrize("hidden", [False, True])
def test_a_fit_by_sampling(hidden: bool, tmp_path: Path) -> None:
    flat, rows = besag.ising((3, 3), 0.0, 0.0), besag.ising((3, 3), 0.3, 0.2).sample(200, seed=1)
    if hidden:
        rows = rows.astype(object).mask(np.random.default_rng(0).random(rows.shape) < 0.02)
    likelihood = besag.objective("likelihood", flat, rows, l2=1.0)
    best = besag.fit(flat, rows, l2=1.0)

    def fit(**options: Any) -> Any:
        text = "adam[max_iterations=15,batch_size=50]"
        with pytest.warns(ApproximationWarning, match="inference was not exact"):
            return besag.fit(flat, rows, l2=1.0, objective="likelihood", engine="gibbs", optimizer=text, **options)

    whole = fit()
    assert likelihood.value(whole.theta) - best.objective < 0.01 * (likelihood.value(flat.theta) - best.objective)
    assert not whole.is_exact
    fit(on_step=lambda row, _: row.iteration == 7).checkpoint.save(tmp_path / "fit.npz")
    assert_array_equal(fit(resume=tmp_path / "fit.npz").theta, whole.theta)


@pytest.mark.parametrize("name", ["likelihood[engine=gibbs]", "pcd[n_chains=4]"])
def test_chains_of_an_instance_are_its_own(name: str) -> None:
    data = instances(3, 4, hidden=0.3)
    objective, state = besag.objective(name, model_of(data[0]), data), None
    for batch in ([0], [2], [1, 3], [3, 0], [2], [0]):
        _, _, state = objective.sampled(np.zeros(data[0].layout.n_parameters), np.array(batch), state)
    sizes = {f"free.{n}": len(part.variables) for n, part in enumerate(data)}
    assert {key: np.shape(codes)[1] for key, codes in state.items() if key.startswith("free")} == sizes
    assert len(set(sizes.values())) > 1


def test_a_state_is_that_of_the_least_value_so_far() -> None:
    seen, data = list[Any](), instances(1, 2)

    class Recalling:
        def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> tuple[float, Array, Any]:
            seen.append(state)
            return float(theta @ theta), 2.0 * theta, theta[0]

    objective = besag.objective(Recalling(), model_of(data[0]), data)
    for entry in (2.0, 3.0, 1.0, 5.0):
        objective.value_and_grad(np.full(data[0].layout.n_parameters, entry))
    assert seen == [None, 2.0, 2.0, 1.0]
