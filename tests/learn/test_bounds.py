"""The problem of 002 (1) in general: bounds on theta, and regularisers that the user gives."""

from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Array
from besag.errors import CapabilityError, ConvergenceWarning, ModelError
from besag.learn.box import Box, box_of
from besag.learn.objective import Total
from tests.learn.losses.test_likelihood import differences, instances, model_of

DATA = instances(7, 30)
MODEL = model_of(DATA[0])
P = MODEL.layout.n_parameters
BOUNDS = (
    {"edge": (0, None)},
    {"node": (None, 0.1), "bend": (-1, -0.2)},
    (-0.1, 0.1),
    {"edge": (np.linspace(-1, 0, 9).reshape(3, 3), 0.3), "bend": ([-0.2, -0.1, 0.1, -0.1], None)},
)


def box(bounds: object) -> Box:
    made = box_of(MODEL.layout, bounds)  # type: ignore[arg-type]
    assert made is not None
    return made


def reference(total: Total, within: Box, l1: float = 0.0) -> float:
    """By scipy; with l1, in twice as many variables that are not negative."""
    low, high = within.low, within.high
    ends = list(zip(np.r_[np.maximum(low, 0), np.maximum(-high, 0)], np.r_[np.maximum(high, 0), np.maximum(-low, 0)]))  # noqa: B905

    def split(parts: Array) -> tuple[float, Array]:
        value, gradient = total.value_and_grad(parts[:P] - parts[P:])
        return value + l1 * parts.sum(), np.r_[gradient, -gradient] + l1

    start = np.clip(np.zeros(2 * P), *np.transpose(ends))
    options = {"ftol": 1e-15, "gtol": 1e-8, "maxiter": 10**4, "maxfun": 10**5}
    return float(scipy.optimize.minimize(split, start, jac=True, bounds=ends, method="L-BFGS-B", options=options).fun)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("l1", [0.0, 0.7])
def test_the_least_value_within_bounds_002_1(bounds: object, l1: float) -> None:
    total, within = besag.objective("likelihood", MODEL, DATA, l2=0.3), box(bounds)
    least = reference(total, within, l1)
    for text in ("lbfgs[tolerance=1e-7]", "sgd[tolerance=1e-6]", "gradient_descent[tolerance=1e-6]"):
        if l1 and text.startswith("gradient"):
            continue
        found = besag.fit(MODEL, DATA, l1=l1, l2=0.3, bounds=bounds, optimizer=text)  # type: ignore[arg-type]
        assert found.converged
        assert within.contains(found.theta)
        assert found.objective == pytest.approx(least, rel=1e-9)


def test_at_the_minimum_the_projected_gradient_is_zero_002_1() -> None:
    """Where theta is at a bound the slope leads out of the box, elsewhere it is 0 (Karush, Kuhn and Tucker)."""
    found = besag.fit(MODEL, DATA, l2=0.3, bounds=(-0.1, 0.1), optimizer="lbfgs[tolerance=1e-8]")
    gradient = besag.objective("likelihood", MODEL, DATA, l2=0.3).value_and_grad(found.theta)[1]
    low, high = found.theta == -0.1, found.theta == 0.1
    assert low.any()
    assert high.any()
    assert (gradient[low] >= 0).all()
    assert (gradient[high] <= 0).all()
    assert np.abs(gradient[~low & ~high]).max() < 1e-6
    assert found.history["grad_norm"].iloc[-1] == pytest.approx(np.linalg.norm(gradient[~low & ~high]), abs=1e-12)
    assert (np.diff(found.history["value"]) <= 1e-9).all()


def test_bounds_that_do_not_matter_change_nothing() -> None:
    free = besag.fit(MODEL, DATA, l2=0.3, optimizer="lbfgs[tolerance=1e-8]")
    wide = besag.fit(MODEL, DATA, l2=0.3, bounds=(-50, 50), optimizer="lbfgs[tolerance=1e-8]")
    assert_allclose(wide.theta, free.theta, atol=1e-6)
    fixed = besag.fit(MODEL, DATA, l2=0.3, bounds={"edge": (0, 0)})
    assert (fixed.theta[MODEL.layout["edge"]] == 0).all()


def test_potts_weights_that_are_not_negative() -> None:
    """A Potts weight of at least 0 makes neighbours agree: cuts stay exact."""
    node, edge = besag.Template("node", (2,), n_inputs=1), besag.Template("edge", (2, 2), basis=besag.potts(2))
    rng, data = np.random.default_rng(0), []
    for _ in range(20):
        labels = np.arange(6) % 2
        pairs = np.stack([np.arange(5), np.arange(1, 6)], axis=1)
        x = rng.normal(size=(6, 1)) + labels[:, None]
        data.append(
            besag.StructuredData(
                [2] * 6,
                [besag.FactorGroup(node, np.arange(6)[:, None], inputs=x), besag.FactorGroup(edge, pairs)],
                labels,
            )
        )
    model = besag.Model(data[0].variables, data[0].groups, np.zeros(3))
    assert besag.fit(model, data, l2=0.1).theta[2] < -1
    found = besag.fit(model, data, l2=0.1, bounds={"edge": (0, None)})
    assert found.converged
    assert found.theta[2] == 0


@pytest.mark.parametrize("text", ["lbfgs[tolerance=1e-9]", "gradient_descent[step=0.01]", "adam[max_iterations=12]"])
def test_a_bounded_fit_goes_on_from_a_file(text: str, tmp_path: Path) -> None:
    given = {"l2": 0.3, "bounds": (-0.1, 0.1), "optimizer": text}
    data = DATA[:10]

    def fit(**more: object) -> besag.learn.fit.Fit:  # type: ignore[name-defined]
        return besag.fit(MODEL, data, **given, **more)  # type: ignore[arg-type]

    if text.startswith("adam"):
        with pytest.warns(ConvergenceWarning):
            whole = fit()
    else:
        whole = fit()
    part = fit(on_step=lambda row, _: row.iteration == 5)
    part.checkpoint.save(tmp_path / "fit.npz")
    if text.startswith("adam"):
        with pytest.warns(ConvergenceWarning):
            rest = fit(resume=tmp_path / "fit.npz")
    else:
        rest = fit(resume=tmp_path / "fit.npz")
    assert_array_equal(rest.theta, whole.theta)
    with pytest.raises(ModelError, match="resume is of a fit with other bounds"):
        besag.fit(MODEL, data, l2=0.3, bounds=(0.2, 0.3), optimizer=text, resume=part.checkpoint)


def test_bounds_and_starts_that_cannot_be_are_told() -> None:
    for bounds, match in (
        ({"edge": 3}, r"bounds of 'edge' must be a pair \(low, high\), None for no bound on a side, got 3"),
        ((0, 1, 2), r"bounds must be a pair \(low, high\)"),
        ({"edge": (1, 0)}, r"bounds of 'edge' must have low <= high, got 1.0 and 0.0 at 0"),
        ({"edge": (np.nan, 0)}, "must have low <= high, got nan"),
        ({"edge": ([0, 1], None)}, r"bounds of 'edge' must be a number or 9 of them, .* got shape \(2,\)"),
        ({"edge": ("a", None)}, "bounds of 'edge' must be numbers, got 'a'"),
        ({"other": (0, 1)}, "no template is named 'other'"),
        ((np.inf, np.inf), r"bounds must leave finite numbers"),
    ):
        with pytest.raises(ModelError, match=match):
            besag.fit(MODEL, DATA, bounds=bounds)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"theta\[0\] = 2.0 is not within its bounds, -1.0 to 1.0"):
        besag.fit(MODEL, DATA, bounds=(-1, 1), theta=np.full(P, 2.0))
    for text in ("newton_cg", "steepest_descent"):
        with pytest.raises(CapabilityError, match=f"optimizer '{text}' cannot minimise within bounds; lbfgs, "):
            besag.fit(MODEL, DATA, bounds=(-1, 1), optimizer=text)


def smooth_pairs(theta: Array) -> tuple[float, Array]:
    """Half the squared differences of neighbouring parameters, and a quartic term."""
    step = np.diff(theta)
    gradient = np.zeros_like(theta)
    gradient[1:] += step
    gradient[:-1] -= step
    return 0.5 * float(step @ step) + 0.25 * float((theta**4).sum()), gradient + theta**3


def test_a_regulariser_of_the_users_002_1() -> None:
    total = besag.objective("likelihood", MODEL, DATA, l2=0.2, regulariser=smooth_pairs)
    plain = besag.objective("likelihood", MODEL, DATA, l2=0.2)
    theta = np.random.default_rng(0).normal(size=P)
    value, gradient = total.value_and_grad(theta)
    assert value == pytest.approx(plain.value_and_grad(theta)[0] + smooth_pairs(theta)[0])
    assert_allclose(gradient, differences(total, theta), atol=1e-5)
    curved = 2 * np.eye(P) - np.eye(P, k=1) - np.eye(P, k=-1) + np.diag(3 * theta**2)
    curved[0, 0] -= 1
    curved[-1, -1] -= 1
    assert_allclose(total.hessian(theta) - plain.hessian(theta), curved, atol=1e-6)


def test_all_optimisers_take_a_regulariser() -> None:
    texts = (
        "lbfgs[tolerance=1e-7]",
        "newton_cg[tolerance=1e-7]",
        "steepest_descent[tolerance=1e-4]",
        "sgd",
        "gradient_descent[tolerance=1e-6]",
    )
    found = [besag.fit(MODEL, DATA, l2=0.5, regulariser=smooth_pairs, optimizer=text).objective for text in texts]
    assert_allclose(found, min(found), rtol=1e-8)
    with_l1 = besag.fit(MODEL, DATA, regulariser=smooth_pairs, l1=2.0)
    assert (with_l1.theta == 0).any()


def test_a_regulariser_as_a_gaussian_prior_is_l2_002_17() -> None:
    ridge = besag.fit(MODEL, DATA, l2=0.5, optimizer="lbfgs[tolerance=1e-8]")
    own = besag.fit(MODEL, DATA, regulariser=lambda t: (0.5 * t @ t, t), optimizer="lbfgs[tolerance=1e-8]")
    assert_allclose(own.theta, ridge.theta, atol=1e-6)


def test_a_barrier_is_kept() -> None:
    """-log(1 - theta^2) is no number outside of (-1, 1): too far, for every line search."""

    def barrier(theta: Array) -> tuple[float, Array]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(-np.log(1 - theta**2).sum()), 2 * theta / (1 - theta**2)

    for text in ("lbfgs", "newton_cg", "steepest_descent[tolerance=1e-3]"):
        found = besag.fit(MODEL, DATA, regulariser=barrier, optimizer=text)
        assert found.converged
        assert np.abs(found.theta).max() < 1
    with pytest.raises(ModelError, match="the regulariser has no finite value at the start"):
        besag.fit(MODEL, DATA, regulariser=barrier, theta=np.full(P, 1.5))


def test_a_regulariser_that_is_none_is_told() -> None:
    for given, match in (
        (3.0, "regulariser must be a function of theta that gives value and gradient, got 3.0"),
        (lambda t: 0.0, r"the regulariser must give a pair \(value, gradient\), got 0.0"),
        (lambda t: (0.0, t[:2]), r"the gradient of the regulariser must have shape \(25,\), got \(2,\)"),
        (lambda t: (0.0, t + np.nan), "must have finite gradients where it is finite"),
        (lambda t: (-np.inf, t), "must have finite gradients where it is finite; its value was -inf"),
    ):
        with pytest.raises(ModelError, match=match):
            besag.fit(MODEL, DATA, regulariser=given)  # type: ignore[arg-type]

    def greedy(theta: Array) -> tuple[float, Array]:
        theta[0] = 1.0
        return 0.0, theta

    with pytest.raises(ValueError, match="read-only"):
        besag.fit(MODEL, DATA, regulariser=greedy)


def test_a_checkpoint_of_another_regulariser_is_refused() -> None:
    part = besag.fit(MODEL, DATA, regulariser=smooth_pairs, on_step=lambda row, _: row.iteration == 3)
    with pytest.raises(ModelError, match="resume is of other data or another penalty"):
        besag.fit(MODEL, DATA, l2=1.0, resume=part.checkpoint)
