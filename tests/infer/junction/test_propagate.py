"""The kernels of junction trees, against enumeration, with every way through them forced on small models."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Semiring
from besag.graph.evidence import Evidence, read_evidence
from besag.infer import JunctionTree, Result
from besag.infer.junction.kernels import rows
from besag.infer.junction.kernels.rows import accumulate, place_of
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.routes import PLAIN, Forced
from tests.strategies import evidence_for, examples, models

WAYS = {
    "as it is": {},
    "small tiles": {
        "infer.junction.kernels.layout.TILE": 4,
        "infer.junction.kernels.layout.LANE": 2,
        "infer.junction.kernels.layout.LEAST": 2,
    },
    "no runs": {"infer.junction.kernels.tiles.SHORTEST_RUN": 10**9},
    "runs of two": {"infer.junction.kernels.tiles.SHORTEST_RUN": 2},
    "products in steps": {
        "infer.junction.kernels.products.WORTHWHILE": 0.0,
        "infer.junction.kernels.products.SHARE": 1.0,
    },
    "log domain": {"infer.junction.kernels.passes.RANGE": -1.0},
    "several threads": {
        "infer.junction.stages.WIDE": 0,
        "infer.junction.stages.LARGE": 1,
        "infer.junction.kernels.layout.TILE": 4,
        "infer.junction.kernels.layout.LANE": 2,
        "infer.junction.kernels.layout.LEAST": 2,
        "infer.junction.one_row.PIECES": 3,
        "infer.junction.one_row.SHARE": 0.2,
    },
    "bounds": {
        "infer.junction.run.SUPPORT_ABOVE": 0.0,
        "infer.junction.few_states.BOUND_ABOVE": 0.0,
        "infer.bounds.narrowing.EFFORT": 100.0,
        "infer.bounds.narrowing.SMALL_SHARE": 1.0,
        "infer.bounds.narrowing.SOUND_SHARE": 1.0,
    },
    "support under evidence": {"infer.junction.run.SUPPORT_ABOVE": 0.0},
    "support under evidence that makes it small": {"infer.junction.run.SUPPORT_ABOVE": 7.0},
}


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest, forced: Forced) -> str:
    """Constants that send small models through the code of large ones, as plain Python."""
    forced({**WAYS[request.param], **PLAIN})
    return str(request.param)


def ask(model: Model, evidence: Any, *wants: Any, **options: Any) -> Result:
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    return JunctionTree(**options).infer(problem, frozenset(wants), rng=np.random.default_rng(0))


@examples(25)
@given(data=st.data())
def test_sums_are_those_of_enumeration(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model))
    truth = Enumeration(model, evidence)
    result = ask(model, evidence, "log_partition", "variables", "factors")
    assert result.log_partition == pytest.approx(truth.log_z, abs=1e-9)
    for variable in model.variables:
        assert_allclose(result[variable.name], truth.joint([variable.name]), atol=1e-10)
    for f in range(model.n_factors):
        names = model.variables.names_at(model.graph.scope(int(model.graph.factor_order[f])))
        assert_allclose(result.factor(f), truth.joint(names), atol=1e-10)


@examples(20)
@given(data=st.data())
def test_the_best_labelling_has_the_least_energy(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model))
    result = ask(model, evidence, "map")
    assert result.energy == pytest.approx(Enumeration(model, evidence).map_energy, abs=1e-9)


@examples(10)
@given(data=st.data())
def test_states_observed_one_after_the_other_on_one_model(data: DataObject) -> None:
    model = data.draw(models(max_labellings=200))
    names = [variable.name for variable in model.variables][:2]
    for states in itertools.product(*(model.variable(name).states for name in names)):
        evidence = dict(zip(names, states, strict=True))
        truth = Enumeration(model, evidence)
        result = ask(model, evidence, "log_partition", "variables")
        assert result.log_partition == pytest.approx(truth.log_z, abs=1e-9)
        if truth.log_z > -np.inf:
            for variable in model.variables:
                assert_allclose(result[variable.name], truth.joint([variable.name]), atol=1e-10)


def test_states_that_evidence_leaves_are_those_of_this_evidence() -> None:
    copy = np.where(np.eye(2) == 1, 0.0, -np.inf)
    copies = [((i, i + 1), copy) for i in range(4)]
    model = besag.markov_network([2] * 5, [*copies, ((4, 0), [[0.0, 1.0], [2.0, 0.5]])])
    for state in ("0", "1", "0"):
        result = ask(model, {"0": state}, "log_partition", "variables")
        assert result.log_partition == pytest.approx(0.0 if state == "0" else 0.5)
        assert_array_equal(result["3"], [1.0, 0.0] if state == "0" else [0.0, 1.0])


@examples(10)
@given(data=st.data())
def test_answers_do_not_depend_on_the_number_of_threads(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    one, two = (ask(model, None, "log_partition", "variables", n_threads=n) for n in (1, 2))
    assert one.log_partition == two.log_partition
    assert_array_equal(one.probabilities, two.probabilities)


@examples(12)
@given(data=st.data())
def test_rows_side_by_side_are_single_rows(data: DataObject) -> None:
    model = data.draw(models(max_labellings=200))
    n_rows = data.draw(st.integers(8, 17))
    cards, n_states = model.variables.cardinalities, int(model.variables.state_offsets[-1])
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    observed = np.where(rng.random((n_rows, len(cards))) < 0.3, rng.integers(0, cards, (n_rows, len(cards))), -1)
    weights = rng.normal(scale=data.draw(st.sampled_from([1.0, 300.0])), size=(n_rows, n_states))
    problem = model.problem.with_evidence(Evidence(observed, data.draw(st.sampled_from([None, weights]))))
    wants: Any = frozenset({"log_partition", "variables"})
    result = JunctionTree().infer(problem, wants)
    for b in range(n_rows):
        single = JunctionTree().infer(problem.with_evidence(problem.evidence.row(b)), wants)
        assert_allclose(result.log_partition[b], single.log_partition, rtol=1e-12, atol=1e-10)
        assert_allclose(result.probabilities[b], single.probabilities[0], atol=1e-10)


def test_samples_follow_the_law() -> None:
    model = besag.data.bundled("asia")
    result = ask(model, {"xray": "yes"}, "samples", n_samples=2000)
    truth = Enumeration(model, {"xray": "yes"})
    names = [variable.name for variable in model.variables]
    for v, name in enumerate(names):
        p = truth.joint([name])
        share = np.bincount(result.samples[:, v], minlength=len(p)) / 2000
        # five standard errors: a false alarm once in a million
        assert np.all(np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 2000) + 1e-12), name


def test_draws_are_in_proportion_to_weights() -> None:
    """One for each part of [0, 1), and never an entry of weight zero, at its very ends too."""
    weights = np.array([0.0, 3.0, 0.0, 1.0, 4.0, 0.0])
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + 900.0
    for semiring, row in ((Semiring.SUM, weights.copy()), (Semiring.LOG_SUM, logs)):
        accumulate(int(semiring), 6, row)
        u = np.append((np.arange(80) + 0.5) / 80, [0.0, 1.0 - 2.0**-53])
        counts = np.bincount([place_of(6, row, x) for x in u], minlength=6)
        assert counts.tolist() == [0, 31, 0, 10, 41, 0]


def test_the_table_of_a_root_is_made_once_for_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    model, filled, fill_row = besag.ising((3, 3), 0.3, 0.1), [], rows.fill_row
    monkeypatch.setattr(rows, "fill_row", lambda *args: filled.append(args[3]) or fill_row(*args))
    drawn = ask(model, {}, "samples", n_samples=50).samples
    assert drawn.shape == (50, 9)
    root = max(filled)
    assert filled.count(root) == 1
    assert set(map(filled.count, set(filled) - {root})) <= {50}
