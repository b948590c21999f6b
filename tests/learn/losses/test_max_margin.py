"""The structured hinge: values and subgradients against enumeration, Frank-Wolfe against a general solver."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Array, IntArray
from besag.data.dataset import Batch
from besag.errors import ApproximationWarning, CapabilityError, ConvergenceWarning, EvidenceError
from besag.learn.history import Iteration
from besag.learn.losses.max_margin import MaxMarginOptions
from tests.learn.losses.test_likelihood import differences, instances, model_of
from tests.routes import Forced

CLOSE = "frank_wolfe[tolerance=1e-9,max_iterations=2000]"


def labellings(data: besag.StructuredData) -> IntArray:
    return np.array(list(product(*(range(k) for k in data.variables.cardinalities.tolist()))))


def hinge(data: besag.StructuredData, theta: Array, costs: Array | None = None, support: Any = None) -> float:
    """max_y (Delta - H(y)) - max over completions of -H, by enumeration."""
    graph, every = besag.compile_graph(data), labellings(data)
    labels = data.labels
    assert labels is not None
    energies = graph.bind(theta, support=support).energy(every)
    known, of_variable = labels >= 0, np.ones(len(labels)) if costs is None else costs
    wrong = ((every != labels) & known) @ of_variable
    agrees = ((every == labels) | ~known).all(axis=1)
    return float((wrong - energies).max() + energies[agrees].min())


@pytest.mark.parametrize("engine", [None, "exact", "brute"])
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_value_and_subgradient_of_a_union(engine: str | None, hidden: float) -> None:
    data, rng = instances(1, 5, hidden=hidden), np.random.default_rng(2)
    weights, theta = rng.random(5) + 0.5, rng.normal(size=data[0].layout.n_parameters)
    total = besag.objective("max_margin", model_of(data[0]), data, l2=0.3, weights=weights, engine=engine)
    value, gradient = total.value_and_grad(theta)
    expected = sum(w * hinge(part, theta) for part, w in zip(data, weights, strict=True))
    assert value == pytest.approx(expected + 0.3 * theta @ theta, rel=1e-10)
    assert_allclose(gradient, differences(total, theta), rtol=1e-6, atol=1e-6)
    assert total.objective.is_exact


def test_value_and_subgradient_of_rows() -> None:
    model = besag.data.random_model("grid", 4, seed=3)
    codes = model.sample(9, seed=1).apply(lambda column: column.cat.codes).to_numpy(np.int64).copy()
    codes[np.random.default_rng(0).random(codes.shape) < 0.3] = -1
    codes[0] = np.maximum(codes[0], 0)
    theta = np.random.default_rng(1).normal(size=model.theta.shape)
    total = besag.objective("max_margin", model, codes, weights=np.linspace(0.5, 2, 9))
    value, gradient = total.value_and_grad(theta)
    parts = [besag.StructuredData(model.variables, model.groups, row) for row in codes]
    expected = sum(w * hinge(part, theta) for part, w in zip(parts, np.linspace(0.5, 2, 9), strict=True))
    assert value == pytest.approx(expected, rel=1e-10)
    assert_allclose(gradient, differences(total, theta), rtol=1e-6, atol=1e-6)


def test_weights_of_variables_weigh_their_margins() -> None:
    (data,), rng = instances(4, 1), np.random.default_rng(5)
    theta, costs = rng.normal(size=data.layout.n_parameters), rng.random(len(data.variables)) * 3
    graph = besag.compile_graph(data)
    batch = Batch(graph, data.labels, variable_weights=costs)
    loss = MaxMarginOptions().at_work(None, 1)
    value = loss.value_and_grad(theta, batch, None)[0] + theta @ loss.statistics(batch)
    assert value == pytest.approx(hinge(data, theta, costs), rel=1e-10)


def test_hard_zeros() -> None:
    allowed = np.array([[True, False], [True, True]])
    pair = besag.Template("pair", (2, 2), support=allowed)
    group = besag.FactorGroup(pair, [[0, 1], [1, 2]])
    data = [besag.StructuredData([2, 2, 2], [group], y) for y in ([1, 1, 0], [0, 0, 0])]
    theta = np.array([0.3, 0.0, -0.7, 0.2])
    total = besag.objective("max_margin", model_of(data[0]), data)
    assert total.value_and_grad(theta)[0] == pytest.approx(sum(hinge(part, theta) for part in data), rel=1e-12)
    fit = besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.1)
    assert fit.converged
    wrong = besag.StructuredData([2, 2, 2], [group], [0, 1, 1])
    with pytest.raises(EvidenceError, match="instance 1 has no labelling of positive probability"):
        besag.objective("max_margin", model_of(data[0]), [data[0], wrong])


def test_shards_add_up(forced: Forced) -> None:
    data = instances(6, 7)
    theta = np.random.default_rng(3).normal(size=data[0].layout.n_parameters)
    whole = besag.objective("max_margin", model_of(data[0]), data).value_and_grad(theta)
    forced(
        {"data.dataset.SHARD_VARIABLES": 1, "data.dataset.MOST_SHARDS": 100, "learn.losses.likelihood.ROW_STATES": 1}
    )
    total = besag.objective("max_margin", model_of(data[0]), data)
    assert len(total.shards) > 1
    parts = total.value_and_grad(theta)
    assert parts[0] == pytest.approx(whole[0], rel=1e-12)
    assert_allclose(parts[1], whole[1], atol=1e-12)


def least_by_slsqp(data: list[besag.StructuredData], l2: float, weights: Array) -> float:
    """min l2 ||theta||^2 + sum_n w_n xi_n over theta and xi, a constraint for every labelling of every instance."""
    rows, sides, n_parameters = list[Array](), list[float](), data[0].layout.n_parameters
    for n, part in enumerate(data):
        graph, labels = besag.compile_graph(part), part.labels
        assert labels is not None
        for y in labellings(part):
            slack = np.zeros(len(data))
            slack[n] = 1.0
            rows.append(np.concatenate([graph.moments(y) - graph.moments(labels), slack]))
            sides.append(float((y != labels).sum()))
    matrix, side = np.array(rows), np.array(sides)
    at_least = {"type": "ineq", "fun": lambda z: matrix @ z - side, "jac": lambda z: matrix}

    def value(z: Array) -> tuple[float, Array]:
        theta = z[:n_parameters]
        return l2 * theta @ theta + weights @ z[n_parameters:], np.concatenate([2 * l2 * theta, weights])

    start = np.concatenate([np.zeros(n_parameters), [side.max()] * len(data)])
    found = scipy.optimize.minimize(
        value, start, jac=True, method="SLSQP", constraints=[at_least], options={"maxiter": 500, "ftol": 1e-12}
    )
    assert found.success, found.message
    return float(found.fun)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_that_of_the_quadratic_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    node, edge = besag.Template("node", (2,), n_inputs=2), besag.Template("edge", (2, 2))
    data = []
    for _ in range(4):
        groups = (
            besag.FactorGroup(node, [[0], [1], [2]], inputs=rng.normal(size=(3, 2))),
            besag.FactorGroup(edge, [[0, 1], [1, 2], [0, 2]]),
        )
        data.append(besag.StructuredData([2, 2, 2], groups, rng.integers(2, size=3)))
    weights = rng.random(4) + 0.5
    fit = besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.2, weights=weights, optimizer=CLOSE)
    assert fit.converged
    assert fit.surrogate == "max_margin"
    assert fit.is_exact
    assert fit.objective == pytest.approx(least_by_slsqp(data, 0.2, weights), rel=1e-6)


def test_the_gap_is_a_bound_and_closes() -> None:
    data = instances(3, 8)
    fit = besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.5, optimizer=CLOSE)
    gaps, values = fit.history["gap"].to_numpy()[1:], fit.history["value"].to_numpy()[1:]
    assert fit.converged
    assert (gaps >= -1e-9 * values).all()
    assert gaps[-1] <= 1e-9 * values[-1]
    assert (values - gaps <= values[-1] * (1 + 1e-12)).all()
    assert (np.diff(values - gaps) >= -1e-9).all()  # the dual only goes up


def test_where_all_margins_can_be_kept_nothing_is_lost() -> None:
    node = besag.Template("node", (2,), n_inputs=1)
    data = [
        besag.StructuredData([2], [besag.FactorGroup(node, [[0]], inputs=[[x]])], [int(x > 0)])
        for x in (-2.0, -1.0, 1.0, 3.0)
    ]
    fit = besag.fit(model_of(data[0]), data, objective="max_margin", l2=1e-3, optimizer=CLOSE)
    assert fit.objective == pytest.approx(1e-3 * fit.theta @ fit.theta, rel=1e-6)
    assert_allclose(fit.theta, [0.5, -0.5], rtol=1e-4)  # a margin of 1 at x = -1 and x = 1


def test_the_same_from_run_to_run_and_for_any_number_of_threads() -> None:
    data = instances(5, 6)
    fits = [
        besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.5, n_threads=n, optimizer="frank_wolfe[seed=3]")
        for n in (1, 2, 2)
    ]
    assert_array_equal(fits[0].theta, fits[1].theta)
    assert_array_equal(fits[1].theta, fits[2].theta)
    other = besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.5, optimizer="frank_wolfe[seed=4]")
    assert not np.array_equal(other.theta, fits[0].theta)


def test_going_on_from_a_checkpoint(tmp_path: Path) -> None:
    data, by = instances(5, 6), "frank_wolfe[tolerance=0,max_iterations=7,evaluate_every=2]"
    options: dict[str, Any] = {"objective": "max_margin", "l2": 0.5, "optimizer": by}
    whole = besag.fit(model_of(data[0]), data, **options)
    assert np.isnan(whole.history["value"].to_numpy()[[1, 3, 5]]).all()
    assert np.isfinite(whole.history[["value", "gap"]].to_numpy()[[2, 4, 6, 7]]).all()

    def at_three(row: Iteration, _: object) -> bool:
        return row.iteration == 3

    part = besag.fit(model_of(data[0]), data, on_step=at_three, **options)
    part.checkpoint.save(tmp_path / "fit.npz")
    rest = besag.fit(model_of(data[0]), data, resume=tmp_path / "fit.npz", **options)
    assert_array_equal(rest.theta, whole.theta)
    none = besag.fit(model_of(data[0]), data, time_limit=0.0, **options)
    assert (none.stopped, none.log.n_iterations) == ("time_limit", 0)


def test_ctrl_c_within_an_epoch_keeps_what_is_whole() -> None:
    data, calls = instances(5, 6), [0]

    model = model_of(data[0])
    total = besag.objective("max_margin", model, data, l2=0.5)
    ascent = total.ascent()
    climb = type(ascent).climb

    def pressed(self: Any, point: Any, chosen: Any) -> Any:
        calls[0] += 1
        if calls[0] == 9:
            raise KeyboardInterrupt
        return climb(self, point, chosen)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ascent), "climb", pressed)
        fit = besag.fit(model, data, objective="max_margin", l2=0.5)
    assert fit.stopped == "interrupted"
    assert fit.checkpoint.kept["position"] == 2
    assert np.isfinite(fit.history[["value", "gap"]].to_numpy()[-1]).all()
    whole = besag.fit(model, data, objective="max_margin", l2=0.5)
    rest = besag.fit(model, data, objective="max_margin", l2=0.5, resume=fit.checkpoint)
    assert_array_equal(rest.theta, whole.theta)


def test_other_optimisers_by_subgradients() -> None:
    data = instances(3, 8)
    least = besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.5, optimizer=CLOSE).objective
    assert least is not None
    with pytest.warns(ConvergenceWarning, match="the optimiser stopped after 300 iterations"):
        found = besag.fit(
            model_of(data[0]), data, objective="max_margin", l2=0.5, optimizer="adam[max_iterations=300,batch_size=8]"
        )
    assert found.objective is not None
    assert least * (1 - 1e-9) <= found.objective <= 1.01 * least


def test_labels_that_are_unknown_are_completed() -> None:
    data = instances(1, 5, hidden=0.4)
    with pytest.raises(CapabilityError, match=r"instance \d has labels that are unknown, so that max_margin is not"):
        besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.5)
    by = "adam[max_iterations=30]"
    with pytest.warns(ConvergenceWarning, match="30 iterations"):
        found = besag.fit(model_of(data[0]), data, objective="max_margin", l2=0.5, optimizer=by)
    assert found.history["value"].iloc[-1] < found.history["value"].iloc[0]


def test_what_does_not_go_together() -> None:
    data = instances(3, 3)
    model, n = model_of(data[0]), data[0].layout.n_parameters

    def fit(**options: Any) -> Any:
        return besag.fit(model, data, **{"objective": "max_margin", "l2": 0.1} | options)

    with pytest.raises(CapabilityError, match="'frank_wolfe' needs l2 > 0 for all parameters"):
        fit(l2=0.0)
    with pytest.raises(CapabilityError, match="'frank_wolfe' needs l2 > 0 for all parameters"):
        fit(l2={"node": 1.0})
    with pytest.raises(CapabilityError, match="'frank_wolfe' cannot minimise with l1 > 0"):
        fit(l1=0.1)
    with pytest.raises(CapabilityError, match="'frank_wolfe' cannot minimise within bounds"):
        fit(bounds=(0, None))
    with pytest.raises(CapabilityError, match="'frank_wolfe' cannot minimise with a regulariser"):
        fit(regulariser=lambda theta: (0.0, 0.0 * theta))
    with pytest.raises(CapabilityError, match="'frank_wolfe' begins at zeros"):
        fit(theta=np.ones(n))
    with pytest.raises(CapabilityError, match="'frank_wolfe' goes up in the dual of max_margin"):
        fit(objective="likelihood", optimizer="frank_wolfe")
    for text in ("lbfgs", "newton_cg", "gradient_descent", "sgd"):
        with pytest.raises(CapabilityError, match=f"'{text}' needs a smooth function.*take frank_wolfe"):
            fit(optimizer=text)
    with pytest.raises(CapabilityError, match="engine 'gibbs' cannot give map"):
        fit(objective="max_margin[engine=gibbs]")
    with pytest.raises(CapabilityError, match="max_margin is linear between kinks"):
        besag.objective("max_margin", model, data).hessian(np.zeros(n))
    found = fit()
    for ask in (found.predict_marginals, found.log_proba):
        with pytest.raises(CapabilityError, match="which labelling is best, and no probabilities"):
            ask(data)
    assert len(found.predict(data)) == 3


def test_inference_that_is_not_exact() -> None:
    data = instances(3, 6)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    exact = besag.objective("max_margin", model_of(data[0]), data)
    rough = besag.objective("max_margin[engine=icm[max_iterations=1]]", model_of(data[0]), data)
    assert 0.0 <= rough.value(theta) <= exact.value(theta) + 1e-9
    assert not rough.objective.is_exact
    assert exact.objective.is_exact
    with pytest.warns(ApproximationWarning, match="inference was not exact"):
        fit = besag.fit(model_of(data[0]), data, objective="max_margin[engine=icm]", l2=0.5)
    assert not fit.is_exact


def test_a_block_without_weight_moves_nothing() -> None:
    data = instances(3, 3)
    options: dict[str, Any] = {"objective": "max_margin", "l2": 0.5, "optimizer": CLOSE}
    weighted = besag.fit(model_of(data[0]), data, weights=[1.0, 0.0, 2.0], **options)
    alone = besag.fit(model_of(data[0]), [data[0], data[2]], weights=[1.0, 2.0], **options)
    assert_allclose(weighted.theta, alone.theta, atol=1e-5)
