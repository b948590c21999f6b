"""Bucket elimination: what is left on kept variables, against enumeration, and marginals of targets."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.graph.evidence import Evidence, read_evidence
from besag.infer.junction.elimination import Buckets, Elimination
from besag.infer.junction.engine import JunctionTree
from besag.io import load
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.references.helpers import file_of
from tests.strategies import evidence_for, examples, frame_for, generators, models, rows_of

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def subset(data: DataObject, model: Model) -> np.ndarray:
    """Some variables in some order; none and all are possible."""
    order = data.draw(st.permutations(range(len(model.variables))))
    return np.array(order[: data.draw(st.integers(0, len(order)))], np.int64)


def summed(model: Model, kept: np.ndarray, oracle: Enumeration) -> np.ndarray:
    """log of the sum over the rest of w, axes in the order of the kept variables."""
    if len(kept) == 0:
        return np.array(oracle.log_z)
    with np.errstate(divide="ignore"):
        return np.log(oracle.joint(model.variables.names_at(kept))) + oracle.log_z


@examples(120)
@given(data=st.data())
def test_tables_that_are_left_multiply_to_the_sum_over_the_rest(data: DataObject) -> None:
    model = data.draw(models())
    evidence, kept = data.draw(evidence_for(model)), subset(data, model)
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    (left,) = Buckets(JunctionTree(), problem).eliminate(kept)
    oracle = Enumeration(model, evidence)
    expected = summed(model, kept, oracle)
    found = left.joint()
    assert found.shape == (1, *model.variables.cardinalities[kept])
    assert_allclose(found[0], expected, **CLOSE)
    values, codes = left.best(lambda drawn: None)
    assert_allclose(values[0], expected.max(), **CLOSE)
    assert_allclose(expected[tuple(codes[0])], expected.max(), **CLOSE)


@examples(40)
@given(data=st.data())
def test_rows(data: DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    frame, kept = data.draw(frame_for(model)), subset(data, model)
    problem = model.problem.with_evidence(read_evidence(model.variables, frame))
    (left,) = Buckets(JunctionTree(), problem).eliminate(kept)
    values, codes = left.best(lambda drawn: None)
    for row, evidence in enumerate(rows_of(frame)):
        expected = summed(model, kept, Enumeration(model, evidence))
        assert_allclose(left.joint()[row], expected, **CLOSE)
        assert_allclose((values[row], expected[tuple(codes[row])]), expected.max(), **CLOSE)


@examples(30)
@given(data=st.data(), scale=st.sampled_from([30.0, 1e3, 1e4]))
def test_no_weight_is_too_small(data: DataObject, scale: float) -> None:
    """theta times a scale: the linear domain is too narrow, and the log domain takes over."""
    drawn = data.draw(models(max_labellings=300))
    model = drawn.with_theta(drawn.theta * scale)
    kept = subset(data, model)
    (left,) = Buckets(JunctionTree(), model.problem).eliminate(kept)
    oracle = Enumeration(model)
    configurations = np.zeros(len(oracle.labels), np.int64)
    for v in kept.tolist():
        configurations = configurations * model.variables.cardinalities[v] + oracle.labels[:, v]
    expected = np.full(left.joint()[0].size, -np.inf)
    np.logaddexp.at(expected, configurations, oracle.log_weights)
    assert_allclose(left.joint()[0].reshape(-1), expected, **CLOSE)


@examples(40)
@given(data=st.data())
def test_marginals_of_targets(data: DataObject) -> None:
    model = data.draw(models())
    evidence, kept = data.draw(evidence_for(model)), subset(data, model)
    targets = model.variables.names_at(kept)
    oracle = Enumeration(model, evidence)
    result = model.marginals(targets, evidence, engine="elimination")
    assert result.keys() == targets
    assert_allclose(result.log_partition, oracle.log_z, **CLOSE)
    for name in targets:
        assert_allclose(result[name], oracle.marginal(name), **CLOSE)
    own = Elimination(targets=tuple(targets)).infer(
        model.problem.with_evidence(read_evidence(model.variables, evidence)), frozenset({"variables"})
    )
    assert own.targets == tuple(targets)
    np.testing.assert_array_equal(own.probabilities, result.probabilities)


def test_targets_in_the_text_of_an_engine() -> None:
    model = besag.data.bundled("sprinkler")
    result = model.marginals(engine="elimination[targets=rain]")
    assert_allclose(result["rain"], model.marginals(engine="brute")["rain"])
    with pytest.raises(CapabilityError, match="'wet_grass' was not among the targets"):
        result["wet_grass"]
    with pytest.raises(ModelError, match="no variable is named 'snow'"):
        model.marginals(engine="elimination[targets=snow]")


@examples(20)
@given(data=st.data(), rng=generators())
def test_an_impossible_row_has_zeros_and_harms_no_other(data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=200))
    oracle = Enumeration(model)
    observed = oracle.labels[rng.integers(len(oracle.labels), size=5)]
    observed = np.where(rng.random(observed.shape) < 0.6, observed, -1)
    problem = model.problem.with_evidence(Evidence(observed, batched=True))
    wants = frozenset({"log_partition", "variables"})
    result, expected = (engine.infer(problem, wants) for engine in (Elimination(), besag.infer.Brute()))
    assert_allclose(result.log_partition, expected.log_partition, **CLOSE)
    assert_allclose(result.probabilities, expected.probabilities, **CLOSE)


def test_what_does_not_fit_is_refused() -> None:
    model = besag.ising((12, 12))
    with pytest.raises(TooLargeError, match="more than memory_limit=10000"):
        model.marginals(["5,5"], engine="elimination", memory_limit=10_000)


@pytest.mark.parametrize("name", ["munin1", "pigs", "link", pytest.param("munin", marks=pytest.mark.slow)])
def test_single_targets_of_large_networks(data_dir: Path, name: str) -> None:
    model = load(file_of(data_dir / "bnlearn_networks", f"{name}.bif"))
    rng = np.random.default_rng(0)
    names = model.variables.names_at(rng.choice(len(model.variables), size=6, replace=False))
    sample = model.sample(1, seed=1).iloc[0]
    evidence = {name: sample[name] for name in names[3:]}
    expected = model.marginals(evidence=evidence, engine="junction_tree")
    result = model.marginals(names[:3], evidence, engine="elimination")
    assert_allclose(result.log_partition, expected.log_partition, rtol=1e-9)
    for target in names[:3]:
        assert_allclose(result[target], expected[target], atol=1e-9)


def test_an_impossible_instance_of_a_union_harms_no_other() -> None:
    model = besag.bayesian_network("A -> B -> C", cpts={"B": [[1.0, 0.0], [0.0, 1.0]], "A": [0.3, 0.7]})
    graph = besag.compile_graph(model, model, model)
    observed = np.full((1, graph.n_variables), -1)
    observed[0, [0, 3, 4]] = [1, 0, 1]  # the second instance sees A = 0 and B = 1
    problem = graph.bind(model.theta, support=model.support).with_evidence(Evidence(observed))
    wants = frozenset({"log_partition", "variables"})
    result, expected = (engine.infer(problem, wants) for engine in (Elimination(), besag.infer.Brute()))
    assert result.log_partitions[1] == -np.inf
    assert_allclose(result.log_partitions, expected.log_partitions, **CLOSE)
    assert_allclose(result.probabilities, expected.probabilities, **CLOSE)


def test_observed_targets_of_many_rows() -> None:
    """Nothing is left to be summed out; a child whose factor is left out keeps the state that its row says."""
    model, rng = besag.bayesian_network("A[3] -> B[3] -> C[3] -> D[3]"), np.random.default_rng(0)
    for name in model.variables.names:
        model = model.with_cpt(name, rng.dirichlet(np.ones(3), (3,) * len(model.parents(name))))
    rows = model.sample(64, seed=1)[["C", "D"]]
    for name in model.variables.names:
        found = model.marginals([name], evidence=rows, engine="elimination")[name]
        assert_allclose(found, model.marginals([name], evidence=rows, engine="brute")[name], **CLOSE)
