"""Templates: energies and moments are each other's adjoints, in every form of inputs, basis and pattern."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix

from besag.arrays import Kind
from besag.errors import ModelError
from besag.model.model import FactorGroup
from besag.model.structured.potts import Potts
from besag.model.structured.scaled import Scaled
from besag.model.template import Pattern, Template
from tests.oracle import group_phi
from tests.strategies import examples, inputs_of

FORMS = ("none", "rows", "dense", "csr")
BASES = ("entries", "basis", "potts", "scaled")


@st.composite
def cases(draw: Any, form: str, kind: str) -> tuple[Template, Any, np.ndarray, np.random.Generator]:
    """A template, inputs of F factors, theta, and more random numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(1, 3))
    shape = (k, k) if kind == "potts" else tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    basis = {
        "entries": None,
        "basis": rng.normal(size=(draw(st.integers(1, 3)), *shape)),
        "potts": Potts(k),
        "scaled": Scaled(rng.normal(size=shape)),
    }[kind]
    n_inputs = 1 if form == "none" else draw(st.integers(1, 5))
    template = Template("t", shape, n_inputs, basis)
    if draw(st.booleans()):
        pairs = draw(st.lists(st.integers(0, n_inputs * template.n_basis - 1), unique=True))
        template = Template(
            "t", shape, n_inputs, basis, None, Pattern(*np.divmod(np.array(pairs, int), template.n_basis))
        )
    inputs = inputs_of(form, draw(st.integers(1, 6)), n_inputs, rng)
    return template, inputs, rng.normal(size=template.n_parameters), rng


def n_factors(inputs: Any, rng: np.random.Generator) -> int:
    return int(rng.integers(1, 5)) if inputs is None else inputs.shape[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", BASES)
@examples(25)
@given(data=st.data())
def test_moments_are_the_adjoint_of_energies(form: str, kind: str, data: st.DataObject) -> None:
    template, inputs, theta, rng = data.draw(cases(form, kind))
    marginals = rng.normal(size=(n_factors(inputs, rng), *template.shape))
    energies = np.broadcast_to(template.energies(theta, inputs), marginals.shape)
    assert_allclose(theta @ template.moments(inputs, marginals), (energies * marginals).sum(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", BASES)
@examples(15)
@given(data=st.data())
def test_label_moments_are_moments_of_one_hot_marginals(form: str, kind: str, data: st.DataObject) -> None:
    template, inputs, _, rng = data.draw(cases(form, kind))
    codes = rng.integers(template.shape, size=(n_factors(inputs, rng), len(template.shape)))
    one_hot = np.zeros((len(codes), *template.shape))
    one_hot[(np.arange(len(codes)), *codes.T)] = 1
    found = template.label_moments(inputs, codes)
    assert found.shape == (template.n_parameters,)
    assert_allclose(found, template.moments(inputs, one_hot), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", BASES)
@examples(15)
@given(data=st.data())
def test_energies_are_features_times_theta(form: str, kind: str, data: st.DataObject) -> None:
    template, inputs, theta, rng = data.draw(cases(form, kind))
    count = n_factors(inputs, rng)
    group = FactorGroup(template, np.tile(np.arange(len(template.shape)), (count, 1)), inputs)
    codes = np.stack(np.unravel_index(np.arange(np.prod(template.shape)), template.shape), axis=1)
    energies = np.broadcast_to(template.energies(theta, inputs), (count, *template.shape))
    for f in range(count):
        assert_allclose(energies[f].reshape(-1), group_phi(group, f, codes) @ theta, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", BASES)
@examples(10)
@given(data=st.data())
def test_table_moments_are_the_adjoint_of_tables(form: str, kind: str, data: st.DataObject) -> None:
    template, inputs, theta, rng = data.draw(cases(form, kind))
    tables = template.tables(theta, inputs)
    assert tables.shape == (template.n_tables(inputs, n_factors(inputs, rng)), *template.entry_shape)
    weights = rng.normal(size=tables.shape)
    assert_allclose(theta @ template.table_moments(inputs, weights), (tables * weights).sum(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ["rows", "dense", "csr"])
@pytest.mark.parametrize("basis", [None, np.ones((2, 3)), Scaled(np.ones(3))])
def test_a_template_without_factors_has_no_moments(form: str, basis: Any) -> None:
    template = Template("t", (3,), 2, basis)
    inputs = inputs_of(form, 0, 2, np.random.default_rng(0))
    assert_array_equal(template.moments(inputs, np.zeros((0, 3))), np.zeros(template.n_parameters))
    assert_array_equal(
        template.table_moments(inputs, np.zeros((0, *template.entry_shape))), np.zeros(template.n_parameters)
    )
    assert_array_equal(template.label_moments(inputs, np.zeros((0, 1), int)), np.zeros(template.n_parameters))


def test_factors_that_read_the_same_row_share_a_table() -> None:
    template = Template("t", (2,), 2)
    few, many = np.array([1]), np.array([1, 0, 1])
    assert template.n_tables(many, 3) == 2
    assert_array_equal(template.table_of_factor(many, 3), many)
    assert template.n_tables(few, 1) == 1
    assert_array_equal(template.tables(np.arange(4.0), few), [[2, 3]])


def test_kinds() -> None:
    assert Template("t", (2, 2)).kind == Kind.TABLE
    assert Template("t", (2, 2), basis=np.ones((1, 2, 2))).kind == Kind.TABLE
    assert Template("t", (2, 2), basis=Potts(2)).kind == Kind.POTTS
    assert Template("t", (2, 2), basis=Scaled(np.ones((2, 2)))).kind == Kind.SCALED


def test_a_million_potts_factors_keep_one_number() -> None:
    template = Template("t", (3, 3), basis=Potts(3))
    assert template.tables(np.array([0.5]), None).shape == (1, 1)
    assert template.entry_shape == (1,)


@pytest.mark.parametrize("basis", [Potts(3), Scaled(np.arange(9.0).reshape(3, 3))])
def test_features_of_a_structured_factor_are_its_dense_basis(basis: Any) -> None:
    codes = np.stack(np.unravel_index(np.arange(9), (3, 3)), axis=1)
    assert_array_equal(basis.features(codes), basis.dense().reshape(1, 9).T)
    assert_array_equal(basis.features(codes.reshape(3, 3, 2)), basis.dense().reshape(3, 3, 1))


def test_csr_matrices_of_both_kinds_are_taken() -> None:
    template, theta, dense = Template("t", (2,), 3), np.arange(6.0), np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    for sparse in (csr_array(dense), csr_matrix(dense)):
        group = FactorGroup(template, [[0], [1]], sparse)
        assert_allclose(template.energies(theta, group.inputs), template.energies(theta, dense))
        assert_allclose(template.moments(group.inputs, np.ones((2, 2))), template.moments(dense, np.ones((2, 2))))


def test_templates_of_the_same_content_are_the_same() -> None:
    def make(**changes: Any) -> Template:
        return Template(**{"name": "t", "shape": (2, 2), "n_inputs": 2, "support": np.eye(2) > 0, **changes})

    assert make().same_as(make())
    assert make(basis=np.ones((1, 2, 2))).same_as(make(basis=np.ones((1, 2, 2))))
    pattern = Pattern([0, 1], [0, 3])
    assert make(pattern=pattern).same_as(make(pattern=Pattern([0, 1], [0, 3])))
    for other in (
        make(n_inputs=3),
        make(support=None),
        make(support=np.eye(2) == 0),
        make(basis=np.ones((1, 2, 2))),
        make(pattern=pattern),
        make(support=None, basis=Potts(2)),
    ):
        assert not make().same_as(other)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"shape": ()}, "'t': the shape must be one or more positive numbers"),
        ({"shape": (2, 0)}, r"'t': the shape must be .* got \(2, 0\)"),
        ({"n_inputs": 0}, "'t': n_inputs must be at least 1, got 0"),
        ({"basis": np.ones((1, 3))}, r"'t': the basis must be finite and of shape \(Q, .*, got \(1, 3\)"),
        ({"basis": np.ones(2)}, r"'t': the basis must .* got \(2,\)"),
        ({"basis": np.array([[1.0, np.nan]])}, "'t': the basis must be finite"),
        ({"basis": Potts(2)}, r"'t': the structured basis has shape \(2, 2\), not \(2,\)"),
        ({"support": np.ones(3, bool)}, r"'t': support must have the table's shape \(2,\)"),
        ({"pattern": Pattern([1], [0])}, r"'t': pattern pair \(1, 0\) lies outside \(1, 2\)"),
        ({"pattern": Pattern([0], [2])}, r"'t': pattern pair \(0, 2\) lies outside \(1, 2\)"),
        ({"pattern": Pattern([0], [-1])}, r"'t': pattern pair \(0, -1\) lies outside"),
    ],
)
def test_a_bad_template_is_refused(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        Template(**{"name": "t", "shape": (2,), **arguments})


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(ModelError, match=r"rows and columns of one length, got \(2,\), \(1,\)"):
        Pattern([0, 1], [0])
    with pytest.raises(ModelError, match=r"must not name one .* pair twice"):
        Pattern([0, 1, 0], [2, 2, 2])


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        (None, "'t' reads 3 inputs, but its factors have none"),
        (np.array([0, 1, 2]), r"'t': inputs must be \(2,\) integers or of shape \(2, 3\), got shape \(3,\)"),
        (np.ones((2, 2)), r"'t': inputs must be .* got shape \(2, 2\)"),
        (np.ones(2), r"'t': inputs must be .* got shape \(2,\) of float64"),
        (np.array([0, 3]), "'t': factor 1 reads row 3 of theta, which has 3 rows"),
        (np.array([-1, 0]), "'t': factor 0 reads row -1"),
        (np.array([[0.0, np.nan, 0.0]] * 2), "'t': inputs must be finite"),
        (csr_array(np.array([[0.0, np.inf, 0.0]] * 2)), "'t': inputs must be finite"),
    ],
)
def test_bad_inputs_are_refused(inputs: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        FactorGroup(Template("t", (2,), 3), [[0], [1]], inputs)


@pytest.mark.parametrize("sparse", [False, True])
def test_inputs_that_are_no_numbers_are_named(sparse: bool) -> None:
    template, values = Template("node", (2,), n_inputs=3), np.ones((2, 3))
    values[1, 2] = np.nan
    with pytest.raises(ModelError, match="'node': inputs must be finite numbers, got nan in factor 1, column 2"):
        template.check_inputs(csr_array(values) if sparse else values, 2)
    with pytest.raises(ModelError, match="'node': inputs must be numbers, got <U1"):
        template.check_inputs([["a", "b", "c"]], 1)
