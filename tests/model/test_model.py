"""Model and FactorGroup: H = <theta, phi>, new Models from old ones, and what is refused."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import besag
from besag.errors import EvidenceError, ModelError
from besag.model.model import FactorGroup, Model
from besag.model.template import Template
from besag.model.variable import Variables
from tests.oracle import Enumeration, allowed, phi
from tests.strategies import evidence_for, examples, generators, models

AB = Variables.from_states({"A": ["no", "yes"], "B": ["x", "y"], "C": ["0", "1", "2"]})
TABLE = Template("table", (2,), 2)


def two_unaries(inputs: Any = (0, 1)) -> Model:
    """Factors on A and B, each with a row of theta."""
    return Model(AB, (FactorGroup(TABLE, [[0], [1]], np.asarray(inputs)),), np.array([0.1, 0.2, 0.3, 0.4]))


# The mathematics -----------------------------------------------------------------------------------------------------


@examples(100)
@given(model=models())
def test_energy_is_theta_times_phi(model: Model) -> None:
    oracle = Enumeration(model)
    energy = np.where(allowed(model, oracle.labels), phi(model, oracle.labels) @ model.theta, np.inf)
    assert_allclose(-oracle.log_weights, energy, rtol=1e-10, atol=1e-10)
    assert_allclose(model.problem.energy(oracle.labels), energy, rtol=1e-10, atol=1e-10)
    features = phi(model, oracle.labels[:20], at_zeros=0.0)
    assert_allclose([model.graph.moments(y) for y in oracle.labels[:20]], features, atol=1e-12)


@examples(40)
@given(model=models(), rng=generators())
def test_with_theta_is_linear_and_keeps_the_graph(model: Model, rng: np.random.Generator) -> None:
    graph = model.graph
    free = np.ones(model.theta.shape, bool) if model.support is None else model.support
    other = model.with_theta(np.where(free, rng.normal(size=model.theta.shape), 0.0))
    both = model.with_theta(2 * model.theta + 3 * other.theta)
    assert other.graph is graph
    assert both.graph is graph
    labels = Enumeration(model).labels
    weights = [m.problem.energy(labels) for m in (model, other, both)]
    finite = np.isfinite(weights[0])
    assert_array_equal(finite, np.isfinite(weights[1]))
    assert_allclose(weights[2][finite], 2 * weights[0][finite] + 3 * weights[1][finite], rtol=1e-9, atol=1e-9)


def test_with_theta_keeps_hard_zeros_where_they_are() -> None:
    model = besag.markov_network({"A": 2}, [("A", [-np.inf, 0.0])])
    assert_allclose(model.with_theta([5.0, 1.0]).marginals()["A"], [0, 1])
    assert model.with_theta([5.0, 1.0]).theta.tolist() == [0, 1]


def test_two_groups_may_share_a_template() -> None:
    """The model of both groups is that of one group with all their factors."""
    for inputs in (
        [0, 1, 1],
        [[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5]],
        csr_array(np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]])),
    ):
        given = inputs if hasattr(inputs, "tocsr") else np.asarray(inputs)
        theta = np.array([0.1, 0.2, 0.3, 0.4])
        whole = Model(AB, (FactorGroup(TABLE, [[0], [1], [0]], given),), theta)
        parts = (FactorGroup(TABLE, [[0]], given[:1]), FactorGroup(TABLE, [[1], [0]], given[1:]))
        model = Model(AB, parts, theta)
        assert model.log_partition() == pytest.approx(Enumeration(whole).log_z)
        assert_allclose(model.moments(), whole.moments())
        assert_allclose(model.covariance(), whole.covariance())


# New models from old ones --------------------------------------------------------------------------------------------


def test_with_tables_by_number_by_name_and_by_template() -> None:
    model = besag.markov_network(
        {"A": 2, "B": 3}, {"a": ("A", [0, 0]), "ab": (("A", "B"), np.zeros((2, 3))), "a2": ("A", [0, 0])}
    )
    graph, table = model.graph, np.arange(6.0).reshape(2, 3)
    for key in (1, "ab"):
        other = model.with_tables({key: table})
        assert other.graph is graph
        assert_array_equal(other.problem.table(int(graph.factor_order[1])), table)
    other = model.with_tables({"table[2]": [[1, 3], [1, 1]]}, given="weight")
    assert_allclose(other.marginals()["A"], [0.25, 0.75])
    zeros = model.with_tables({0: [-np.inf, 0.0], 1: -table}, given="log_potential")
    assert_allclose(zeros.marginals()["A"], [0, 1])
    assert zeros.graph is graph
    assert_allclose(
        zeros.with_tables({0: [0.0, 0.0]}).marginals()["A"], model.with_tables({1: -table}).marginals()["A"]
    )


def test_with_tables_of_a_shared_table() -> None:
    model = besag.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    other = model.with_tables({"pairwise": [[[1, 2], [3, 4]]]}, given="weight")
    assert other.graph is model.graph
    assert_allclose(other.joint(["1", "2"]), other.marginals().factor(4))
    with pytest.raises(ModelError, match=r"factor 3 shares its table with 1 others.*'pairwise'"):
        model.with_tables({3: np.eye(2)})


@pytest.mark.parametrize(
    ("tables", "match"),
    [
        ({0: [0, 0, 0]}, r"table 0 must have shape \(2,\), got \(3,\)"),
        ({"table": [0, 0]}, r"table 'table' must have shape \(2, 2\), got \(2,\)"),
        ({0: [0, np.nan]}, r"table 0: .* the entry at \(1,\) is nan"),
        ({0: [0, np.inf]}, r"table 0: .* the entry at \(1,\) is inf"),
        ({2: [0, 0]}, "no factor has the number 2; there are 2"),
        ({"nobody": [0, 0]}, "no factor is named 'nobody'"),
    ],
)
def test_bad_tables_are_refused(tables: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        two_unaries().with_tables(tables)


def test_with_tables_needs_a_parameter_for_each_entry() -> None:
    with pytest.raises(ModelError, match="'coupling' has fewer parameters than table entries; use with_theta"):
        besag.ising((2, 2)).with_tables({0: np.eye(2)})
    with pytest.raises(ModelError, match="'pairwise' has fewer parameters"):
        besag.chain(np.zeros((2, 2)), besag.potts(2)).with_tables({"pairwise": np.eye(2)[None]})


@pytest.mark.parametrize("inputs", [[[2.0], [-1.0]], [[0.0], [1.0]]])
def test_with_tables_of_a_factor_that_reads_numbers_is_refused(inputs: Any) -> None:
    model = Model(AB, (FactorGroup(Template("t", (2,)), [[0], [1]], np.array(inputs)),), np.array([0.1, 0.2]))
    with pytest.raises(ModelError, match="'t'"):
        model.with_tables({0: [1.0, 2.0]})


def test_hard_zeros_of_a_table_that_factors_scale_are_exact_or_refused() -> None:
    """Weights of any sign: a hard zero stays one, and nothing else becomes one."""
    model = Model(AB, (FactorGroup(Template("t", (2,)), [[0], [1]], np.array([[2.0], [-1.0]])),), np.array([0.1, 0.2]))
    try:
        zeros = model.with_tables({"t": [[-np.inf, 1.0]]})
    except ModelError:
        return
    assert_array_equal(zeros.problem.table(0) == -np.inf, [True, False])
    assert_array_equal(zeros.problem.table(1) == -np.inf, [True, False])


def test_with_inputs_keeps_the_graph() -> None:
    model = two_unaries([[1.0, 0.0], [0.0, 1.0]])
    other = model.with_inputs({"table": np.array([[1.0, 1.0], [2.0, 0.0]])})
    assert other.graph is model.graph
    assert_allclose(other.marginals()["A"], np.exp([-0.4, -0.6]) / np.exp([-0.4, -0.6]).sum())
    assert_allclose(other.marginals()["B"], np.exp([-0.2, -0.4]) / np.exp([-0.2, -0.4]).sum())
    assert_allclose(other.moments(), Enumeration(other).moments())
    assert_allclose(model.moments(), Enumeration(model).moments())
    assert_allclose(other.covariance(), Enumeration(other).covariance(), atol=1e-12)


def test_with_inputs_may_change_the_form() -> None:
    model = two_unaries()
    sparse = model.with_inputs({"table": csr_array(np.eye(2))})
    assert sparse.graph is model.graph
    assert sparse.log_partition() == pytest.approx(model.log_partition())
    assert_allclose(sparse.moments(), model.moments())


def test_bad_inputs_are_refused() -> None:
    with pytest.raises(ModelError, match="no template is named 'nobody'; there are 'table'"):
        two_unaries().with_inputs({"nobody": None})
    with pytest.raises(ModelError, match=r"'table': inputs must be \(2,\) integers or of shape \(2, 2\)"):
        two_unaries().with_inputs({"table": np.ones((3, 2))})


@examples(40)
@given(data=st.data())
def test_condition_is_the_model_under_evidence(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    one, two = Enumeration(model, evidence), Enumeration(model.condition(evidence))
    assert_allclose(one.log_weights, two.log_weights, rtol=1e-10, atol=1e-10)
    more = data.draw(evidence_for(model.condition(evidence)))
    again = Enumeration(model.condition(evidence).condition(more))
    assert_allclose(Enumeration(model.condition(evidence), more).log_weights, again.log_weights, rtol=1e-10, atol=1e-10)


def test_condition_keeps_names_shape_and_the_first_factors() -> None:
    model = besag.grid((2, 2), 2, np.zeros((2, 2, 2)), besag.potts(2))
    other = model.condition({"0,1": "1"})
    assert other.shape == (2, 2)
    assert other.n_factors == model.n_factors + 1
    assert_allclose(other.marginals().array[0, 1], [0, 1])
    assert_allclose(other.marginals().factor(4), model.marginals(evidence={"0,1": "1"}).factor(4))
    with pytest.raises(EvidenceError, match="'0,1' has no state '7'"):
        model.condition({"0,1": "7"})


# Immutable -----------------------------------------------------------------------------------------------------------


def test_arrays_are_read_only() -> None:
    model = two_unaries()
    for array in (model.theta, model.groups[0].scopes, model.groups[0].inputs, model.problem.log_potentials):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_read_only_and_equal(copied: Callable[[Model], Model]) -> None:
    original = two_unaries()
    original.problem.energy(np.zeros(3, int))
    model = copied(original)
    assert model.log_partition() == original.log_partition()
    for array in (model.theta, model.groups[0].scopes, model.problem.log_potentials, model.graph.scope_variables):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_model_does_not_change_with_the_callers_arrays() -> None:
    theta, inputs, scopes = np.zeros(4), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0], [1]])
    model = Model(AB, (FactorGroup(TABLE, scopes, inputs),), theta)
    other = two_unaries().with_theta(theta)
    theta[:], inputs[:], scopes[:] = 7.0, 5.0, 0
    assert model.theta.tolist() == [0] * 4
    assert other.theta.tolist() == [0] * 4
    assert model.groups[0].inputs.tolist() == [[1, 0], [0, 1]]
    assert model.groups[0].scopes.tolist() == [[0], [1]]


# Refusals ------------------------------------------------------------------------------------------------------------


def two_named_alike() -> Model:
    groups = (FactorGroup(Template("t", (2,)), [[0]]), FactorGroup(Template("t", (3,)), [[2]]))
    return Model(AB, groups, np.zeros(5))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: FactorGroup(TABLE, [0, 1]), r"'table': scopes must have shape \(F, 1\), got \(2,\)"),
        (lambda: FactorGroup(TABLE, [[0, 1]]), r"'table': scopes must have shape \(F, 1\), got \(1, 2\)"),
        (lambda: group([[3]]), r"'table': factor 0 names variable \[3\]; there are 3"),
        (lambda: group([[0], [-1]]), r"'table': factor 1 names variable \[-1\]"),
        (lambda: group([[0], [2]]), r"'table': factor 1 on \(C\) needs a table of shape \(3,\), got \(2,\)"),
        (lambda: group([[0, 0]], (2, 2)), r"'table': the scope of factor 0, \(A, A\), repeats a variable"),
        (lambda: group([[0]], theta=np.zeros(3)), r"theta must have shape \(2,\), got \(3,\)"),
        (lambda: group([[0]], theta=np.array([0, np.nan])), r"theta must be finite .* theta\[1\] is nan"),
        (lambda: group([[0]], theta=np.array([np.inf, 0])), r"theta must be finite .* theta\[0\] is inf"),
        (lambda: group([[0]], support=np.ones(3, bool)), r"support must have theta's shape \(2,\), got \(3,\)"),
        (lambda: group([[0]], theta=np.ones(2), support=[True, False]), "theta must be 0 where support is False"),
        (two_named_alike, r"two templates are named 't' but differ.*shape \(2,\) .* shape \(3,\)"),
    ],
)
def test_bad_models_are_refused(build: Callable[[], Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        build()


def group(scopes: Any, shape: tuple[int, ...] = (2,), theta: Any = None, support: Any = None) -> Model:
    template = Template("table", shape)
    return Model(
        AB, (FactorGroup(template, scopes),), np.zeros(int(np.prod(shape))) if theta is None else theta, support
    )


def test_support_needs_a_parameter_for_each_entry() -> None:
    template = Template("t", (2,), basis=np.ones((2, 2)))
    model = Model(AB, (FactorGroup(template, [[0]]),), np.zeros(2), np.array([True, False]))
    with pytest.raises(ModelError, match="'t': support needs one parameter for each table entry"):
        _ = model.problem


# Print-outs ----------------------------------------------------------------------------------------------------------


def test_print_outs_are_tables() -> None:
    network = besag.bayesian_network("A[no,yes] -> B[3]")
    assert str(network).splitlines() == [
        "Bayesian network: 2 variables of 2 to 3 states, 2 factors, 8 parameters",
        "variable  states   parents",
        "A         no, yes",
        "B         0, 1, 2  A",
    ]
    field = besag.markov_network([9], [((0,), np.zeros(9))])
    assert str(field).splitlines() == [
        "Markov network: 1 variables of 9 states, 1 factors, 9 parameters",
        "variable  states              factors",
        "       0  0, 1, 2, 3, ..., 8        1",
    ]
    assert str(besag.chain(np.zeros((25, 2)), np.eye(2))).endswith("\n... and 5 more")
    assert repr(network) == str(network).splitlines()[0]


def test_variables_by_cardinality() -> None:
    template = Template("pair", (2, 3))
    model = Model([2, 3], [FactorGroup(template, [[0, 1]])], np.arange(6.0))  # type: ignore[arg-type]
    named = Model({"A": 2, "B": ["x", "y", "z"]}, model.groups, model.theta)  # type: ignore[arg-type]
    assert (list(model.variables.names), named.variable("B").states) == (["0", "1"], ("x", "y", "z"))
    assert model.log_partition() == named.log_partition()
