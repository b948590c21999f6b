"""What once broke: numbers at the edge of the doubles, aliased arrays, names that look like something else."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import EvidenceError, ModelError
from besag.infer.engine import ENGINES


@pytest.mark.parametrize("level", [-60.0, -57.0, 55.0, 60.0])
def test_a_factor_of_many_variables_does_not_overflow(level: float) -> None:
    n = 15
    table = np.random.default_rng(0).normal(size=(2,) * n)
    model = besag.markov_network([2] * n, [*(((i,), [level, level]) for i in range(n)), (tuple(range(n)), table)])
    assert_allclose(model.log_partition(engine="tree"), model.log_partition(engine="brute"), rtol=1e-12)


def test_many_small_likelihoods() -> None:
    model = besag.bayesian_network("; ".join(f"P{i} -> C" for i in range(14)))
    evidence = {f"P{i}": {"0": 1e-25, "1": 1e-25} for i in range(14)}
    assert_allclose(model.log_partition(evidence=evidence), 14 * np.log(1e-25))


def test_energies_that_overflow_are_refused() -> None:
    edges = np.full((1, 2), 1e200), np.zeros((0, 3))
    with pytest.raises(ModelError, match="overflow"):
        besag.grid((1, 3), 2, pairwise=[[1e200, 0], [0, 0]], weights=edges).log_partition()
    with pytest.raises(ModelError, match="'table\\[2\\]': energies must be at most 1e\\+300"):
        besag.markov_network([2], [((0,), [1.7e308, 0.0])]).log_partition()


def test_a_row_without_labelling_adds_nothing_to_moments() -> None:
    model = besag.markov_network([2, 2, 2], [((0, 1), [[0, -np.inf], [-np.inf, 0]]), ((2,), [0, 1.0])])
    problem = model.problem.with_evidence(besag.Evidence(np.array([[0, 1, -1], [0, 0, -1]])))
    found, expected = (
        engine.infer(problem, frozenset({"log_partition", "variables", "moments"}))
        for engine in (besag.infer.Tree(), besag.infer.Brute())
    )
    assert_allclose(found.moments, expected.moments)
    assert_allclose(found.probabilities, expected.probabilities)
    union = besag.compile_graph(model, model)
    evidence = besag.Evidence(np.array([0, 1, -1, 0, 0, -1]))
    problem = union.bind(model.theta, evidence=evidence, support=model.support)
    assert_allclose(besag.infer.Tree().infer(problem, frozenset({"moments"})).moments, expected.moments)


def test_results_are_read_only() -> None:
    model = besag.data.bundled("tree_001")
    for array in (model.map().labels, model.marginals(["j", "m"]).probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_arrays_given_are_copied() -> None:
    table, weights = np.eye(2), np.ones(1)
    model = besag.grid((1, 3), 2, pairwise=table, weights=(np.ones((1, 2)), np.zeros((0, 3))))
    before = model.log_partition()
    table[...] = 50.0
    assert model.log_partition() == before
    with pytest.raises(ValueError, match="read-only"):
        model.groups[-1].template.basis.table[...] = 50.0
    problem = model.graph.bind(model.theta, weights=weights)
    weights[0] = 77.0
    assert problem.weights.tolist() == [1.0]


def test_states_named_as_missing_values() -> None:
    model = besag.markov_network({"X": ["NaT", "<NA>", "None", "nan"]}, [])
    for i, state in enumerate(["NaT", "<NA>", "None", "nan"]):
        assert model.marginals(evidence={"X": state})["X"].tolist() == np.eye(4)[i].tolist()


def test_a_state_named_twice_is_refused() -> None:
    model = besag.bayesian_network("A")
    with pytest.raises(EvidenceError, match="names a state twice"):
        model.marginals(evidence={"A": {"0": 0.3, 0: 0.7}})
    with pytest.raises(ModelError, match="names a state twice"):
        model.with_cpt("A", {"0": 0.3, 0: 0.7})


@pytest.mark.parametrize("name", ["none", "007", "1e3", "true"])
def test_a_root_is_a_name_whatever_it_looks_like(name: str) -> None:
    engine = ENGINES.read(f"tree[root={name}]")
    assert engine.root == name
    assert ENGINES.read(ENGINES.text_of(engine)) == engine


def test_a_table_shared_by_two_groups_is_not_set_for_one() -> None:
    from besag.model.variable import RangeNames, Variables

    template = besag.Template("t", (2,))
    groups = (besag.FactorGroup(template, [[0]]), besag.FactorGroup(template, [[1]]))
    model = besag.Model(Variables.alike(RangeNames(2), 2), groups, np.zeros(2))
    with pytest.raises(ModelError, match="shares its table with 1 others"):
        model.with_tables({0: [0.0, 5.0]})


@pytest.mark.parametrize("given", [[[0.7, -1.0]], np.zeros((0, 2), np.int64)])
def test_codes_are_whole_numbers(given: object) -> None:
    with pytest.raises(EvidenceError, match="rows of integer codes"):
        besag.Evidence(given)


def test_scopes_are_whole_numbers() -> None:
    with pytest.raises(ModelError, match="scopes must be integers"):
        besag.FactorGroup(besag.Template("t", (2,)), [[0.5]])
