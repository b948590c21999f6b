"""Answers against enumeration: log Z, marginals, moments and MAP, under evidence of every form."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose

from besag.graph.evidence import Evidence
from tests.conformance.engines import TOLERANCE, Case, close, each_engine, names_of, tolerance_of
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, generators


@each_engine("log_partition")
@examples(60)
@given(data=st.data())
def test_log_partition_is_what_the_capabilities_say(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    result, true = case.ask(model, evidence, "log_partition"), Enumeration(model, evidence).log_z
    assert result.bound in (case.bound, "exact")
    low, high = result.log_partition_bounds
    assert low - TOLERANCE <= true <= high + TOLERANCE
    if result.bound == "exact":
        close(result.log_partition, true)
        close((low, high), (true, true))


@each_engine("variables")
@examples(50)
@given(data=st.data())
def test_marginals_of_variables(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    result, oracle = case.ask(model, evidence, "variables"), Enumeration(model, evidence)
    for name in names_of(model):
        assert (result[name] >= 0).all()
        close(result[name].sum(), 1)
        if result.bound == "exact":
            close(result[name], oracle.marginal(name))


@each_engine("variables", "factors")
@examples(50)
@given(data=st.data())
def test_marginals_of_factors_are_those_of_their_variables(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    result, oracle = case.ask(model, evidence, "variables", "factors"), Enumeration(model, evidence)
    rounding = tolerance_of(result)
    for number, f in enumerate(model.graph.factor_order.tolist()):
        marginal = result.factor(number)
        assert (marginal >= 0).all()
        close(marginal.sum(), 1)
        for axis, name in enumerate(model.variables.names_at(model.graph.scope(f))):
            others = tuple(i for i in range(marginal.ndim) if i != axis)
            if result.diagnostics["converged"]:
                assert_allclose(marginal.sum(axis=others), result[name], rtol=rounding, atol=rounding)
        if result.bound == "exact":
            close(marginal, oracle.factor(f))


@each_engine("moments", exact=True)
@examples(50)
@given(data=st.data())
def test_moments_are_expected_features(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    result = case.ask(model, evidence, "moments")
    assert result.moments.shape == model.problem.log_potentials.shape
    close(model.graph.moments(result.moments), Enumeration(model, evidence).moments())


@each_engine("map")
@examples(60)
@given(data=st.data())
def test_map_has_the_energy_it_says_and_no_labelling_has_less(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    result, oracle = case.ask(model, evidence, "map"), Enumeration(model, evidence)
    labels = result.labels.reshape(-1)
    states = [variable.states for variable in model.variables]
    assert list(result.assignment.values()) == [space[code] for space, code in zip(states, labels, strict=True)]
    at = np.flatnonzero((oracle.labels == labels).all(axis=1))
    close(result.energy, -oracle.log_weights[at[0]])
    assert result.energy_bound <= oracle.map_energy + TOLERANCE
    if result.bound == "exact":
        close(result.energy, oracle.map_energy)
        assert result.optimal
        assert result.gap == 0


@each_engine("map")
@examples(30)
@given(data=st.data())
def test_energy_of_the_map_is_the_models(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    result = case.ask(model, None, "map")
    close(result.energy, model.energy(result.assignment))
    close(result.energy, model.problem.energy(result.labels.reshape(-1)))


@each_engine("log_partition", "variables", "factors", "moments", "map", "samples")
@examples(25)
@given(data=st.data())
def test_what_else_is_wanted_changes_no_answer(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    wants = ("log_partition", "variables", "factors", "moments", "map", "samples")
    together = case.ask(model, evidence, *wants)
    close(together.log_partition, case.ask(model, evidence, "log_partition").log_partition)
    close(together.probabilities, case.ask(model, evidence, "variables").probabilities)
    close(together.factor_marginals, case.ask(model, evidence, "factors").factor_marginals)
    close(together.moments, case.ask(model, evidence, "moments").moments)
    close(together.energy, case.ask(model, evidence, "map").energy)


@each_engine("log_partition", "variables", "moments", "map", exact=True)
@examples(40)
@given(data=st.data(), scale=st.sampled_from([1e-3, 30.0, 1e3, 1e4]))
def test_distributions_from_nearly_uniform_to_nearly_certain(case: Case, data: DataObject, scale: float) -> None:
    """theta times a scale: weights of exp(-10000) beside 1 are lost in none of the answers."""
    drawn = data.draw(case.models())
    model = drawn.with_theta(drawn.theta * scale)
    evidence = data.draw(evidence_for(model))
    result, oracle = (
        case.ask(model, evidence, "log_partition", "variables", "moments", "map"),
        Enumeration(model, evidence),
    )
    close(result.log_partition, oracle.log_z)
    close(result.energy, oracle.map_energy)
    close(model.graph.moments(result.moments), oracle.moments())
    for name in names_of(model):
        close(result[name], oracle.marginal(name))


@each_engine("log_partition", "map", exact=True)
@examples(40)
@given(data=st.data(), rng=generators())
def test_a_row_that_is_impossible_is_minus_infinity_and_harms_no_other(
    case: Case, data: DataObject, rng: np.random.Generator
) -> None:
    """Rows of arbitrary complete and partial labellings, most of them impossible where there are hard zeros."""
    model = data.draw(case.models())
    oracle = Enumeration(model)
    observed = oracle.labels[rng.integers(len(oracle.labels), size=4)]
    observed[2:] = np.where(rng.random(observed[2:].shape) < 0.5, observed[2:], -1)
    result = case.infer(model.problem.with_evidence(Evidence(observed, batched=True)), "log_partition", "map")
    for row, codes in enumerate(observed):
        consistent = ((codes < 0) | (oracle.labels == codes)).all(axis=1)
        true = oracle.log_weights[consistent]
        weights = np.exp(true).sum()
        close(result.log_partition[row], np.log(weights) if weights > 0 else -np.inf)
        close(result.energy[row], -true.max())
