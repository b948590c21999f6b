"""Fits: the optimum is known, all optimisers find it, and what is around it works."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, ConvergenceWarning, ModelError
from besag.learn.fit import Fit
from besag.learn.history import Iteration
from tests.learn.losses.test_likelihood import instances, model_of


def test_a_saturated_model_matches_the_frequencies() -> None:
    """004: at the optimum the moments of the model are those of the data."""
    model = besag.markov_network({"A": 2, "B": 3}, [(("A", "B"), np.zeros((2, 3)))])
    data = np.repeat([[0, 0], [0, 2], [1, 1], [1, 2], [0, 1], [1, 0]], [5, 1, 7, 2, 3, 4], axis=0)
    found = besag.fit(model, data, optimizer="lbfgs[tolerance=1e-9]")
    assert found.converged
    assert_allclose(found.model.joint(["A", "B"]), np.array([[5, 3, 1], [4, 7, 2]]) / 22, atol=1e-8)
    assert found.history["value"].iloc[-1] == found.objective
    assert list(found.history.columns) == ["iteration", "seconds", "value", "grad_norm", "step"]


def test_all_optimisers_reach_the_same_optimum() -> None:
    data = instances(7, 30)
    model = model_of(data[0])
    texts = (
        "lbfgs[tolerance=1e-7]",
        "newton_cg[tolerance=1e-7]",
        "steepest_descent[tolerance=1e-4]",
        "sgd",
        "sgd[batch_size=5,step=0.3,schedule=inverse,averaging=true,max_iterations=400,evaluate_every=100]",
    )
    values = {}
    for text in texts:
        with pytest.warns(ConvergenceWarning) if text.startswith("sgd[") else nothing():
            values[text] = besag.fit(model, data, l2=3.0, optimizer=text).objective
    least = min(values.values())
    assert {text: value for text, value in values.items() if value > least * (1 + 1e-6)} == {}


class nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_steepest_descent_records_eta_and_the_gradient() -> None:
    data = instances(2, 10)
    found = besag.fit(model_of(data[0]), data, l2=1.0, optimizer="steepest_descent[tolerance=1e-3]")
    rows = found.history
    assert (rows["step"].iloc[1:] > 0).all()
    assert rows["grad_norm"].iloc[-1] < 1e-3 * max(1, np.linalg.norm(found.theta))
    assert (np.diff(rows["value"]) <= 1e-9 * rows["value"].iloc[0]).all()


def test_so_many_iterations_as_are_asked_for() -> None:
    """Without a tolerance nothing else ends it, and nothing is amiss."""
    data = instances(2, 10)
    found = besag.fit(model_of(data[0]), data, l2=1.0, optimizer="steepest_descent[tolerance=0,max_iterations=7]")
    assert (len(found.history), found.converged, found.stopped) == (8, False, "max_iterations")


def test_penalties_by_template_and_l1() -> None:
    data = instances(5, 10)
    model = model_of(data[0])
    layout = model.layout
    found = besag.fit(model, data, l2={"edge": 1e4, "node": 0.1, "bend": 0.1})
    assert np.abs(found.theta[layout["edge"]]).max() < 0.01 < np.abs(found.theta[layout["node"]]).max()
    sparse = besag.fit(model, data, l1={"node": 5.0}, l2=0.1)
    assert (sparse.theta[layout["node"]] == 0).any()
    assert (sparse.theta[layout["edge"]] != 0).all()


def test_held_out_data_end_the_fit_where_their_loss_is_least() -> None:
    data = instances(8, 12)
    model = model_of(data[0])
    free = besag.fit(model, data[:4], l2=1e-3)
    stopped = besag.fit(model, data[:4], l2=1e-3, held_out=data[4:])
    loss = besag.objective("likelihood", model, data[4:])
    assert stopped.stopped == "early_stopping"
    assert loss.value_and_grad(stopped.theta)[0] < loss.value_and_grad(free.theta)[0]


def test_going_on_from_a_file_gives_the_same_theta(tmp_path: Path) -> None:
    data = instances(9, 8)
    model = model_of(data[0])
    whole = besag.fit(model, data, l2=0.5)

    def at_five(row: Iteration, _: object) -> bool:
        return row.iteration == 5

    part = besag.fit(model, data, l2=0.5, on_step=at_five)
    assert part.stopped == "early_stopping"
    part.checkpoint.save(tmp_path / "fit.npz")
    rest = besag.fit(model, data, l2=0.5, resume=tmp_path / "fit.npz")
    assert_array_equal(rest.theta, whole.theta)
    with pytest.raises(ModelError, match="resume must be a checkpoint or the path of one, got int"):
        besag.fit(model, data, l2=0.5, resume=3)  # type: ignore[arg-type]


def test_a_dataset_is_made_by_its_makers() -> None:
    with pytest.raises(ModelError, match="a dataset needs at least one row"):
        besag.fit(besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])]), [])
    with pytest.raises(ModelError, match=r"make a dataset by Dataset.union\(instances\) or .*, got list"):
        besag.Dataset(instances(9, 8))  # type: ignore[arg-type]


def test_too_few_iterations_are_told() -> None:
    data = instances(9, 8)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 iterations.*as in lbfgs\[max_iterations=4\]"):
        found = besag.fit(model_of(data[0]), data, l2=0.5, optimizer="lbfgs[max_iterations=2]")
    assert not found.converged


def test_a_start_is_taken() -> None:
    data = instances(9, 8)
    model = model_of(data[0])
    done = besag.fit(model, data, l2=0.5, optimizer="lbfgs[tolerance=1e-6]")
    again = besag.fit(model, data, l2=0.5, theta=done.theta, optimizer="lbfgs[tolerance=1e-6]")
    assert len(again.history) == 1
    assert again.converged


def test_the_objective_has_l1_in_it_with_held_out_data() -> None:
    data = instances(8, 12)
    found = besag.fit(model_of(data[0]), data[:6], l1=0.5, held_out=data[6:])
    smooth = besag.objective("likelihood", model_of(data[0]), data[:6]).value_and_grad(found.theta)[0]
    assert found.objective == pytest.approx(smooth + 0.5 * np.abs(found.theta).sum())


def test_a_start_that_serves_held_out_data_best_is_kept() -> None:
    model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    found = besag.fit(model, [[0]] * 10, l2=0.1, held_out=[[1]] * 10)
    assert_array_equal(found.theta, [0.0, 0.0])
    assert not found.converged


def test_a_checkpoint_of_other_data_is_refused() -> None:
    model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    checkpoint = besag.fit(model, [[0], [1], [1]]).checkpoint
    with pytest.raises(ModelError, match="resume is of other data or another penalty"):
        besag.fit(model, [[0], [1], [1]], l2=10.0, resume=checkpoint)


def test_mean_field_does_not_depend_on_where_it_was() -> None:
    pairs = (("A", "B"), ("B", "C"), ("A", "C"))
    model = besag.markov_network(dict.fromkeys("ABC", 2), [(pair, np.zeros((2, 2))) for pair in pairs])
    rows = np.random.default_rng(0).integers(0, 2, size=(30, 3))
    theta = np.tile([-3.0, 3, 3, -3], 3)
    objective = besag.objective("likelihood", model, rows, engine="mean_field")
    cold = objective.value_and_grad(theta)[0]
    objective.value_and_grad(np.zeros(12))
    assert objective.value_and_grad(theta)[0] == pytest.approx(cold)


def test_a_fit_that_diverges_has_not_converged() -> None:
    """The norm of theta overflows: a tolerance relative to it says nothing any more."""
    data = instances(3, 5)
    for step in (3, 5, 6):
        with pytest.warns(ConvergenceWarning, match="values have risen|no step that makes the value smaller"):
            found = besag.fit(model_of(data[0]), data, l2=0.5, optimizer=f"gradient_descent[step={step}]")
        assert not found.converged
        assert found.objective == pytest.approx(objective_at(found, data, 0.5)) == found.history["value"].iloc[-1]


def objective_at(found: Fit, data: list[besag.StructuredData], l2: float) -> float:
    return besag.objective("likelihood", found.model, data, l2=l2).value(found.theta)


@pytest.mark.parametrize("after", [2, 6, 9])
def test_held_out_data_are_watched_across_a_resumed_fit(after: int, tmp_path: Path) -> None:
    data = instances(11, 24)
    model, held, text = model_of(data[0]), data[8:], "lbfgs[tolerance=1e-9]"
    given = {"l2": 1e-3, "held_out": held, "optimizer": text}
    whole = besag.fit(model, data[:8], **given)
    part = besag.fit(model, data[:8], **given, on_step=lambda row, _: row.iteration == after)
    part.checkpoint.save(tmp_path / "fit.npz")
    resumed = besag.fit(model, data[:8], **given, resume=tmp_path / "fit.npz")
    assert_array_equal(resumed.theta, whole.theta)
    assert resumed.stopped == whole.stopped
    anew = besag.fit(model, data[:8], l2=1e-3, optimizer=text, resume=part.checkpoint)  # nothing is held out any more
    assert anew.converged


def test_a_fit_resumed_at_its_end_stays_there() -> None:
    data, text = instances(11, 24), "lbfgs[max_iterations=2]"
    model, given = model_of(data[0]), {"l2": 0.1, "held_out": data[8:], "optimizer": text}
    with pytest.warns(ConvergenceWarning):
        part = besag.fit(model, data[:8], **given)
    with pytest.warns(ConvergenceWarning):
        again = besag.fit(model, data[:8], **given, resume=part.checkpoint)
    assert_array_equal(again.theta, part.theta)
    assert again.objective == part.objective


def test_stochastic_fits_are_resumed_with_the_same_batches_and_data() -> None:
    data = instances(2, 10)
    model, text = model_of(data[0]), "sgd[batch_size=3,max_iterations=4]"
    with pytest.warns(ConvergenceWarning):
        done = besag.fit(model, data, l2=1.0, optimizer=text)
    within = replace(done.checkpoint, kept={**done.checkpoint.kept, "position": 3})
    with pytest.raises(CapabilityError, match="epoch of 10 instances in batches of 3, got 10 in batches of 7"):
        besag.fit(model, data, l2=1.0, optimizer="sgd[batch_size=7,max_iterations=9]", resume=within)
    with pytest.raises(CapabilityError, match="epoch of 10 instances in batches of 3, got 6 in batches of 3"):
        besag.fit(model, data[:6], l2=1.0, optimizer="sgd[batch_size=3,max_iterations=9]", resume=within)
    with pytest.raises(ModelError, match="other data or another penalty"):
        besag.fit(model, data[:6], l2=1.0, optimizer="sgd[batch_size=3,max_iterations=9]", resume=done.checkpoint)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5, 1e7])
def test_hessians_and_standard_errors_for_inputs_of_any_size(scale: float) -> None:
    """Logistic regression: H = sum_n p (1 - p) x x^T, with the sign of the second state."""
    rng = np.random.default_rng(0)
    x, theta = scale * rng.normal(size=(60, 2)) * [1.0, 3.0], np.array([0.4, -0.2]) / scale
    node = besag.Template("node", (2,), n_inputs=2, basis=np.array([[0.0, 1.0]]))
    data = [besag.StructuredData([2], [besag.FactorGroup(node, [[0]], inputs=row[None])], [0]) for row in x]
    total = besag.objective("likelihood", besag.Model(data[0].variables, data[0].groups, theta), data)
    p = 1 / (1 + np.exp(x @ theta))
    exact = (x * (p * (1 - p))[:, None]).T @ x
    assert_allclose(total.hessian(theta), exact, rtol=1e-6)
    with pytest.raises(ModelError, match=r"the vector must have shape \(2,\), as theta has, got \(3,\)"):
        total.hessian_vector(theta)(np.zeros(3))


def test_gradients_stay_bounded_where_energies_are_beyond_all_measure() -> None:
    data = instances(4, 6)
    rng = np.random.default_rng(0)
    total = besag.objective("likelihood", model_of(data[0]), data)
    bound = np.abs(total.value_and_grad(np.zeros(len(total.statistics)))[1]).sum() * 1e3
    for size in (1e15, 1e16, 1e18, 1e20):
        value, gradient = total.value_and_grad(size * rng.normal(size=len(total.statistics)))
        assert np.isfinite(value)
        assert np.abs(gradient).max() < bound


def test_data_as_a_generator_or_a_single_instance() -> None:
    data = instances(2, 4)
    model = model_of(data[0])
    assert besag.fit(model, iter(data), l2=1.0).objective == besag.fit(model, data, l2=1.0).objective
    assert besag.fit(model, data[0], l2=1.0).objective == besag.fit(model, data[:1], l2=1.0).objective
    with pytest.raises(ModelError, match="there are instances 0 to 3, got 9"):
        besag.Dataset.union(data).batch([1, 9])


def test_a_fit_prints_in_a_line() -> None:
    data = instances(2, 10)
    found = besag.fit(model_of(data[0]), data, l2=1.0)
    assert repr(found).startswith(f"Fit({len(found.theta)} parameters, objective=")
    assert repr(found).endswith(f"stopped='converged' after {found.log.n_iterations} iterations)")
    made = found.log.n_iterations
    assert repr(found.checkpoint) == f"Checkpoint(lbfgs after {made} iterations, {len(found.theta)} parameters)"


def test_the_history_has_the_loss_on_held_out_data(tmp_path: Path) -> None:
    data = instances(7, 16)
    model, given = model_of(data[0]), {"l2": 1e-3, "held_out": data[8:]}
    found = besag.fit(model, data[:8], **given)
    nothing = besag.objective("likelihood", model, data[8:])
    losses = found.history["held_out"]
    assert found.stopped == "early_stopping"
    assert losses.iloc[0] == pytest.approx(nothing.value(np.zeros(len(found.theta))), rel=1e-12)
    assert losses.iloc[-1] == losses.min() == pytest.approx(nothing.value(found.theta), rel=1e-12)
    assert (found.history["step"].iloc[-1], found.log.n_iterations) == (0.0, len(losses) - 2)
    with pytest.warns(ConvergenceWarning, match="stopped after 3 iterations.*give it more"):
        part = besag.fit(model, data[:8], **given, optimizer="lbfgs[max_iterations=3]")
    part.checkpoint.save(tmp_path / "fit.npz")
    rest = besag.fit(model, data[:8], **given, resume=tmp_path / "fit.npz")
    assert rest.history["held_out"].tolist() == losses.tolist()
    with pytest.warns(ConvergenceWarning):
        blind = besag.fit(model, data[:8], l2=1e-3, optimizer="lbfgs[max_iterations=3]")
    late = besag.fit(model, data[:8], **given, resume=blind.checkpoint).history["held_out"]
    assert late.isna().tolist() == [True] * 3 + [False] * (len(late) - 3)


def test_values_that_rise_are_told_whatever_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    data, ticks = instances(2, 10), iter(range(10**6))
    for text in ("gradient_descent[step=3.0]", "gradient_descent[step=3.0,max_iterations=20]"):
        with pytest.warns(ConvergenceWarning, match="values have risen on the way"):
            besag.fit(model_of(data[0]), data, l2=1.0, optimizer=text)
    monkeypatch.setattr("besag.learn.optimisers.base.time.perf_counter", lambda: float(next(ticks)))
    with pytest.warns(ConvergenceWarning, match="values have risen on the way"):
        found = besag.fit(model_of(data[0]), data, l2=1.0, optimizer="gradient_descent[step=3.0]", time_limit=9.0)
    assert found.stopped == "time_limit"


@pytest.mark.parametrize("text", ["lbfgs", "sgd", "sgd[step=0.1,evaluate_every=7]", "adagrad", "gradient_descent"])
def test_the_way_back_has_the_value_of_the_best_theta(text: str) -> None:
    data = instances(7, 16)
    model = model_of(data[0])
    found = besag.fit(model, data[:8], l2=1e-3, l1=0.01 * (text in ("lbfgs", "sgd")), held_out=data[8:], optimizer=text)
    total = besag.objective("likelihood", model, data[:8], l2=1e-3, l1=0.01 * (text in ("lbfgs", "sgd")))
    assert found.stopped == "early_stopping"
    assert found.log.went_back >= 1
    assert found.objective == pytest.approx(total.value(found.theta), rel=1e-12)
    assert found.history["value"].iloc[-1] == found.objective


def test_the_metric_is_the_curvature_where_inputs_are_dense() -> None:
    data = instances(4, 6)
    own = besag.objective("likelihood", model_of(data[0]), data)
    hessian = np.diag(own.hessian(np.zeros(data[0].layout.n_parameters)))
    metric = own.diagonal(np.zeros(len(hessian))) - 1.0
    single = own.dataset.all.graph.layout["node"]
    assert_allclose(metric[single], hessian[single], rtol=1e-6)
    rows = np.repeat([[0], [1]], [27, 8], axis=0)
    model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    assert_allclose(besag.objective("likelihood", model, rows).diagonal(np.zeros(2)), [4.0, 3.0])
