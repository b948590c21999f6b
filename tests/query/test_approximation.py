"""r.approximation and r.kl: the distribution that an answer stands for, 001."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.infer.engine import ENGINES
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, forests, models

FAMILIES = pytest.mark.parametrize("family", ["naive", "tree", "spanning_tree"])
RING = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], 1.0, 0.1)


@FAMILIES
@examples(30)
@given(data=st.data())
def test_001_kl_is_log_z_minus_the_bound_and_that_of_the_models(family: str, data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=200))
    evidence = data.draw(evidence_for(model))
    result = model.marginals(evidence=evidence, engine=f"mean_field[family={family},init=random]")
    q, truth = result.approximation, Enumeration(model, evidence)
    assert [v.name for v in q.variables] == [v.name for v in model.variables]
    own = Enumeration(q)
    assert_allclose(own.log_z, 0, atol=1e-9)
    for variable in model.variables:
        assert_allclose(own.marginal(variable.name), result[variable.name], atol=1e-9)
    kept = own.p > 0
    divergence = (own.p[kept] * (np.log(own.p[kept]) - truth.log_weights[kept] + truth.log_z)).sum()
    assert_allclose(result.kl(), divergence, atol=1e-6)
    assert_allclose(result.kl(truth.log_z), divergence, atol=1e-6)


@FAMILIES
def test_a_batch_has_a_model_for_each_row(family: str) -> None:
    rows = pd.DataFrame({"1": ["1", "-1"]})
    result = RING.marginals(evidence=rows, engine=f"mean_field[family={family}]")
    assert result.kl().shape == (2,)
    for q, kl, state in zip(result.approximation, result.kl(), ("1", "-1"), strict=True):
        assert_allclose(besag.kl(q, RING.condition({"1": state})), kl, atol=1e-9)
        assert q.marginals()["1"].tolist() == [float(state == "-1"), float(state == "1")]


@pytest.mark.parametrize("engine", ["bp", "trw"])
@examples(15)
@given(data=st.data())
def test_messages_on_a_forest_stand_for_the_model_itself(engine: str, data: st.DataObject) -> None:
    model = data.draw(forests(max_labellings=200))
    evidence = data.draw(evidence_for(model))
    q = model.marginals(evidence=evidence, engine=engine).approximation
    truth = Enumeration(model, evidence)
    assert_allclose(Enumeration(q).p, np.exp(truth.log_weights - truth.log_z), atol=1e-6)


def test_the_approximation_of_a_grid_is_a_grid() -> None:
    model = besag.ising((3, 4), 0.4)
    q = model.marginals(engine="mean_field[family=spanning_tree]").approximation
    assert q.shape == (3, 4)
    assert q.marginals().array.shape == (3, 4, 2)
    assert len(q.sample(5)) == 5


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda: RING.marginals(engine="bp").approximation, "the marginals of 'bp' belong to no distribution where"),
        (lambda: RING.marginals(engine="trw").approximation, "the marginals of 'trw' belong to no distribution where"),
        (
            lambda: besag.ising((2, 2), 0.1).marginals(engine="gibbs").approximation,
            "'gibbs' answers by no .*; mean_field has one",
        ),
        (lambda: RING.marginals(engine="junction_tree").approximation, r"model.condition\(evidence\) is its q"),
        (lambda: RING.marginals(engine="bp").kl(), "for the bound of mean_field, got an answer of 'bp'"),
        (lambda: RING.map().approximation, r"model.marginals\(engine=...\) gives them"),
        (lambda: next(RING.steps(engine="mean_field")).approximation, "only the Result of a verb"),
    ],
)
def test_what_has_no_approximation_says_why(ask: Any, match: str) -> None:
    with pytest.raises(CapabilityError, match=match):
        ask()


@pytest.mark.parametrize(
    ("log_z", "match"),
    [
        (np.nan, "log Z must be a finite number, or one for each of 2 rows, got nan"),
        (np.inf, "log Z must be a finite number"),
        ([5.0], "one for each of 2 rows"),
        ("five", "log Z must be a number, or one for each row, got 'five'"),
        ([5.0, 0.0], "log Z cannot be 0.0: the answer bounds it from below by 3.67"),
    ],
)
def test_a_log_z_that_is_none_is_refused(log_z: Any, match: str) -> None:
    result = RING.marginals(evidence=pd.DataFrame({"1": ["1", "-1"]}), engine="mean_field")
    with pytest.raises(ModelError, match=match):
        result.kl(log_z)


def test_without_exact_inference_log_z_is_to_be_given() -> None:
    model = besag.ising((40, 40), 0.2, 0.1)
    result = model.marginals(engine="mean_field[max_iterations=1000]")
    with pytest.raises(TooLargeError, match=r"r.kl\(\) takes log Z: .*; or give it, r.kl\(log_z\)"):
        result.kl()
    assert result.kl(result.log_partition + 1.0) == pytest.approx(1.0)


def test_an_answer_of_an_engine_alone_knows_no_model() -> None:
    result = ENGINES.read("mean_field").infer(RING.problem, frozenset({"variables"}))
    with pytest.raises(CapabilityError, match="only the Result of a verb"):
        result.kl()
