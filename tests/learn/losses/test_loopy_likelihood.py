"""The likelihood through belief propagation on pictures: rough at first, honest at the end."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ApproximationWarning, ConvergenceWarning
from besag.infer.bp.engine import BP

NAMES = ("likelihood[engine=bp]", "marginal_loss[engine=bp]", "marginal_loss[engine=bp,iterations=2]")


def pictures() -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    labels = [(np.add.outer(np.arange(8), np.arange(7 + n)) > 7).astype(int) for n in range(2)]
    return [np.stack([y + rng.normal(size=y.shape)], axis=-1) for y in labels], labels


@pytest.mark.parametrize("pairwise", ["potts", "table"])
def test_inference_is_as_rough_as_the_gradient_allows(pairwise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    infer = BP.infer

    def watched(self: BP, *given: Any, **options: Any) -> Any:
        asked.append(self.tolerance)
        return infer(self, *given, **options)

    monkeypatch.setattr(BP, "infer", watched)
    images, labels = pictures()
    found = besag.GridCRF(pairwise=pairwise, objective="likelihood[engine=bp]", l2=0.1, n_jobs=1).fit(images, labels)
    assert found.history_["grad_norm"].iloc[-1] < 1e-6 * found.history_["grad_norm"].iloc[0]
    assert asked[0] == asked[-1] == 1e-8  # the first and the last evaluation
    assert max(asked) == 1e-3
    monkeypatch.undo()
    tight = besag.GridCRF(pairwise=pairwise, objective="likelihood[engine=bp[tolerance=1e-12]]", l2=0.1, n_jobs=1)
    assert_allclose(tight.fit(images, labels).coef_, found.coef_, atol=1e-5)


def test_a_fit_says_that_it_converged() -> None:
    model, rows = besag.ising((4, 4), 0.0, 0.0), besag.ising((4, 4), 0.25, 0.1).sample(100, seed=1)
    for name in ("likelihood[engine=bp]", "likelihood[engine=trw]"):
        with pytest.warns(ApproximationWarning, match="inference was not exact"):
            found = besag.fit(model, rows, objective=name, l2=0.1)
        assert (found.stopped, found.is_exact, found.surrogate) == ("converged", False, None)


def test_where_no_step_helps_any_more_the_end_is_honest() -> None:
    """Strong couplings: a fixed point of bp vanishes between two steps, and the value jumps."""
    model, rows = besag.ising((5, 5), 0.0, 0.0), besag.ising((5, 5), 0.6, 0.02).sample(60, seed=1)
    with (
        pytest.warns(ApproximationWarning, match="inference was not exact"),
        pytest.warns(ConvergenceWarning, match=r"values have kinks where .* theta is the best so far. More l2"),
    ):
        found = besag.fit(model, rows, objective="likelihood[engine=bp]", l2=0.01)
    assert (found.stopped, found.converged, found.is_exact) == ("no_progress", False, False)
    assert found.objective == found.history["value"].min()
    total = besag.objective("likelihood[engine=bp]", model, rows, l2=0.01)
    assert total.value(np.zeros_like(found.theta)) > found.objective


def test_where_bp_oscillates_it_begins_anew_with_damping() -> None:
    """Value and gradient belong together where messages without damping go back and forth."""
    rng = np.random.default_rng(2)
    edges = [(a, b) for a in range(6) for b in range(a)]
    model = besag.markov_network([2] * 6, [(edge, -1.2 * np.eye(2) + 0.1 * rng.normal(size=(2, 2))) for edge in edges])
    with pytest.warns(ConvergenceWarning, match="messages move back and forth"):
        model.marginals(engine="bp")
    objective = besag.objective("likelihood[engine=bp[tolerance=1e-12]]", model, [[0, 1, 0, 1, 0, 1]])
    value, gradient = objective.value_and_grad(model.theta)
    step = 1e-5 * rng.normal(size=gradient.shape)
    ahead, behind = (objective.value_and_grad(model.theta + sign * step)[0] for sign in (1, -1))
    assert np.isfinite(value)
    assert gradient @ step == pytest.approx((ahead - behind) / 2, rel=1e-4)


@pytest.mark.parametrize("name", NAMES[:2])
def test_an_interrupt_within_inference_ends_the_fit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.infer.bp.engine import MessagePassing

    model, rows = besag.ising((4, 4), 0.0, 0.0), besag.ising((4, 4), 0.25, 0.1).sample(100, seed=1)
    steps, step = [0], MessagePassing.step

    def interrupted(self: MessagePassing) -> float:
        steps[0] += 1
        if steps[0] == 30:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(MessagePassing, "step", interrupted)
    with pytest.warns(ApproximationWarning, match="inference was not exact"):
        found = besag.fit(model, rows, objective=name, optimizer="lbfgs[tolerance=1e-9]")
    assert found.stopped == "interrupted"
    assert found.objective == pytest.approx(found.history["value"].iloc[-1])
