"""A plan with numbers is made once and asked again: the same answers as from a model that was never asked before."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import besag
from besag.arrays import Semiring
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.kernels.rows import make_propagate
from besag.infer.junction.run import JunctionRun
from besag.kernels.compile import compiled

pytest.importorskip("numba")  # loaded, it compiles small models too

KINDS: dict[str, Any] = {
    "none": {},
    "states": {"dysp": "yes", "smoke": "no"},
    "the same variables, other states": {"dysp": "no", "smoke": "yes"},
    "allowed": {"dysp": {"yes", "no"}, "xray": ["yes"]},
    "likelihood": {"xray": {"yes": 0.3, "no": 0.9}},
    "a row": pd.DataFrame({"dysp": ["yes"]}),
    "rows": pd.DataFrame({"dysp": ["yes", None, "no"], "asia": [None, "yes", "no"]}),
}


def answers(model: besag.Model, evidence: Any) -> list[Any]:
    """Everything that goes through the kernels over rows."""
    told = {"evidence": evidence, "engine": "junction_tree"}
    result, best = model.marginals(**told), model.map(**told)
    return [
        result.log_partitions,
        result.probabilities,
        result.factor(0),
        best.codes,
        best.energies,
        model.map(k=3, **told).energies,
        model.sample(5, **told).to_numpy(),
    ]


@pytest.fixture(scope="module")
def asked_before() -> besag.Model:
    model = besag.data.bundled("asia")
    for evidence in KINDS.values():
        answers(model, evidence)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_answer_is_the_first(asked_before: besag.Model, kind: str) -> None:
    first, again = answers(besag.data.bundled("asia"), KINDS[kind]), answers(asked_before, KINDS[kind])
    for one, other in zip(first, again, strict=True):
        assert_array_equal(one, other)


def test_kernels_are_called_by_their_machine_code() -> None:
    model = besag.data.bundled("asia")
    model.marginals(engine="junction_tree")
    run = JunctionRun(JunctionTree(), model.problem)
    numbers = run.numbers(run.plan(frozenset({"variables", "log_partition"})), Semiring.SUM)
    entry = numbers.entries[make_propagate, int(Semiring.SUM)]
    assert entry is not compiled(make_propagate, int(Semiring.SUM))


def test_other_numbers_have_numbers_of_their_own() -> None:
    model = besag.data.bundled("misconception")
    before = model.marginals(engine="junction_tree").log_partition
    twice = model.with_theta(2.0 * model.theta)
    after = twice.marginals(engine="junction_tree").log_partition
    assert after == pytest.approx(twice.marginals(engine="brute").log_partition)
    assert not np.isclose(before, after)
