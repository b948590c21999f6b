"""Marginal loss: values from marginals, gradients against finite differences, converged and truncated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose

import besag
from besag.arrays import Array, IntArray
from tests.learn.losses.test_likelihood import differences
from tests.learn.losses.test_surrogates import drawn_rows
from tests.strategies import examples, generators, models

EXACT = ("marginal_loss[engine=tree]", "marginal_loss[engine=junction_tree]", "marginal_loss[engine=brute]")
TRUNCATED = ("marginal_loss[engine=bp,iterations=3]", "marginal_loss[engine=trw,iterations=4]")
LOOPY = ("marginal_loss[engine=bp]", "marginal_loss[engine=trw]", "marginal_loss[engine=mean_field[tolerance=1e-14]]")


def by_marginals(model: besag.Model, rows: IntArray, weights: Array, engine: str) -> float:
    """- sum_n w_n sum_v log b_v(y_v) with the marginals that a verb gives."""
    found, total = model.marginals(engine=engine), 0.0
    for row, weight in zip(rows, weights, strict=True):
        for v, k in enumerate(row):
            if k >= 0:
                total -= weight * np.log(found[model.variables.names[v]][k])
    return total


@pytest.mark.parametrize("engine", ["brute", "junction_tree", "bp[max_iterations=3,tolerance=0]"])
@examples(40)
@given(data=st.data(), rng=generators())
def test_values_are_those_of_marginals(engine: str, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=60))
    rows, weights = drawn_rows(model, 3, data.draw(st.sampled_from([0.0, 0.4])), rng), rng.random(3)
    name = "marginal_loss[engine=bp,iterations=3]" if engine.startswith("bp") else f"marginal_loss[engine={engine}]"
    value, _ = besag.objective(name, model, rows, weights=weights).value_and_grad(model.theta)
    assert value == pytest.approx(by_marginals(model, rows, weights, engine), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", [*EXACT[1:], *TRUNCATED])
@examples(40)
@given(data=st.data(), rng=generators())
def test_gradients_are_differences_of_values(name: str, data: DataObject, rng: np.random.Generator) -> None:
    """Any arity, cardinalities, structured factors, hard zeros, weights, unknown labels."""
    model = data.draw(models(max_labellings=40))
    rows = drawn_rows(model, 3, data.draw(st.sampled_from([0.0, 0.3])), rng)
    objective = besag.objective(name, model, rows, weights=rng.random(3), l2=0.1)
    theta = model.theta + 0.3 * rng.normal(size=model.theta.shape)
    assert_allclose(objective.value_and_grad(theta)[1], differences(objective, theta), rtol=1e-6, atol=1e-6)
