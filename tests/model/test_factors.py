"""markov_network: factors one by one, in groups, by name, in three ways of giving numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import ModelError
from besag.model.model import Model
from tests.oracle import Enumeration

A, B, C = ["no", "yes"], 3, 2
AB = np.array([[0.1, -np.inf, 0.3], [0.4, 0.5, 0.6]])
CA = np.array([[1.0, 2.0], [3.0, -4.0]])


def weights(model: Model) -> np.ndarray:
    """The log-potential of every labelling, in the model's shape."""
    return Enumeration(model).log_weights.reshape(model.variables.cardinalities)


EXPECTED = AB[:, :, None] + CA.T[:, None, :]


@pytest.mark.parametrize("given", ["log_potential", "energy", "weight"])
@pytest.mark.parametrize("variables", [{"A": A, "B": B, "C": C}, [A, B, C]])
def test_factors_by_name_and_by_number(given: str, variables: Any) -> None:
    convert = {"log_potential": lambda t: t, "energy": lambda t: -t, "weight": np.exp}[given]
    a, b, c = variables if isinstance(variables, dict) else (0, 1, 2)
    model = besag.markov_network(variables, [((a, b), convert(AB)), ([c, a], convert(CA).tolist())], given=given)
    assert_allclose(weights(model), EXPECTED)
    assert model.variables[0].states == ("no", "yes")
    assert model.variables[1].states == ("0", "1", "2")


def test_a_factor_on_one_variable_may_name_it_alone() -> None:
    model = besag.markov_network({"A": A, "B": B}, [("A", [0.5, 1.5]), (("B",), [1, 2, 3])])
    assert_allclose(weights(model), np.add.outer([0.5, 1.5], [1, 2, 3]))


def test_factors_with_names() -> None:
    model = besag.markov_network(
        {"A": A, "B": B, "C": C},
        {"first": (("A", "B"), AB), "second": (["C", "A"], CA), "pair": ([["A"], ["C"]], [[1.0, 2.0], [3.0, 4.0]])},
    )
    result = model.marginals()
    for name, number in [("first", 0), ("second", 1), ("pair[0]", 2), ("pair[1]", 3)]:
        assert_array_equal(result.factor(name), result.factor(number))
    assert_allclose(result.factor("second"), Enumeration(model).joint(["C", "A"]))


@pytest.mark.parametrize("scopes", [np.array([[0, 1], [2, 1]]), [[0, 1], [2, 1]], [("0", "1"), ("2", "1")]])
def test_a_group_with_a_table_each_and_with_one_shared_table(scopes: Any) -> None:
    tables = np.random.default_rng(0).normal(size=(2, 2, 3))
    each = besag.markov_network([2, 3, 2], [(scopes, tables)])
    assert_allclose(weights(each), tables[0][:, :, None] + tables[1].T[None])
    shared = besag.markov_network([2, 3, 2], [(scopes, tables[0])])
    assert_allclose(weights(shared), tables[0][:, :, None] + tables[0].T[None])
    assert len(shared.problem.log_potentials) == 6
    assert each.n_factors == shared.n_factors == 2


def test_a_group_by_names() -> None:
    model = besag.markov_network({"A": 2, "B": 2, "C": 2}, [([("A", "B"), ("B", "C")], np.eye(2))])
    assert_allclose(weights(model), np.eye(2)[:, :, None] + np.eye(2)[None])


def test_potts_factors() -> None:
    model = besag.markov_network([3, 3, 3], [((0, 1), besag.potts(3)), ([[1, 2], [0, 2]], besag.potts(3))])
    differ = np.eye(3) - 1
    assert_allclose(weights(model), differ[:, :, None] + differ[None] + differ[:, None])
    assert len(model.problem.log_potentials) == 1


def test_tables_of_one_shape_are_one_template_and_factors_keep_their_order() -> None:
    tables = [np.zeros((2, 3)), np.zeros(2), np.ones((2, 3)), np.zeros(3), np.ones(2)]
    scopes = [("A", "B"), "A", ("A", "B"), "B", "A"]
    model = besag.markov_network({"A": 2, "B": 3}, list(zip(scopes, tables, strict=True)))
    assert len(model.groups) == 3
    assert [model.marginals().factor(i).shape for i in range(5)] == [t.shape for t in tables]
    assert_allclose(model.with_tables({2: AB}).problem.log_potentials.reshape(-1)[6:12], AB.reshape(-1))


def test_no_factors() -> None:
    assert besag.markov_network([2, 3], []).log_partition() == pytest.approx(np.log(6))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: besag.markov_network({}, []), "a model needs at least one variable"),
        (lambda: besag.markov_network([], []), "a model needs at least one variable"),
        (lambda: besag.markov_network({"A": 0}, []), "variable 'A' needs at least one state, got 0"),
        (lambda: besag.markov_network({"A": []}, []), "states of 'A' must be one or more distinct names"),
        (lambda: besag.markov_network({"A": ["x", "x"]}, []), "states of 'A' must be one or more distinct names"),
        (lambda: besag.markov_network({"A": "yes"}, []), "'A': expected a cardinality or a list of states, got 'yes'"),
        (lambda: besag.markov_network({"A": 2.5}, []), "'A': expected a cardinality or a list of states, got 2.5"),
        (lambda: besag.markov_network({1: 2, "1": 3}, []), "'1'"),
        (lambda: net([("AD", np.zeros((2, 2)))]), "factor 0: no variable is named 'D'"),
        (lambda: net([("A", [0, 0]), ("AA", np.zeros((2, 2)))]), r"factor 1: the scope \(A, A\) repeats a variable"),
        (lambda: net([([["A", "B"], ["B", "B"]], np.zeros((2, 3)))]), r"scope \(B, B\) repeats a variable"),
        (lambda: besag.markov_network([2, 2], [(np.array([[0, 0]]), np.eye(2))]), r"\(0, 0\).* repeats a variable"),
        (lambda: besag.markov_network([2, 2], [(np.array([[0, 5]]), np.eye(2))]), "no variable is named '5'"),
        (lambda: net([((), 1.0)]), "factor 0: the scope must name one or more variables"),
        (lambda: net([("AB", np.zeros((3, 2)))]), r"factor 0 on \(A, B\): .* shape \(2, 3\), got \(3, 2\)"),
        (lambda: net([(["A", "B"], [1, 2])]), r"factor 0 on \(A, B\): .* shape \(2, 3\), got \(2,\)"),
        (lambda: net([([["A"], ["C"]], np.zeros((3, 2)))]), r"\(2,\) or \(2, 2\), got \(3, 2\)"),
        (lambda: net([([["A"], ["B"]], np.zeros(2))]), r"\(B\) needs a table of shape \(3,\), got \(2,\)"),
        (lambda: net([("AB", besag.potts(2))]), r"\(A, B\) needs a table of shape \(2, 3\), got \(2, 2\)"),
        (lambda: net([("A", [0, np.nan])]), r"factor 0 on \(A\): .* the entry at \(1,\) is nan"),
        (lambda: net([("A", [0, 0]), ("C", [np.inf, 0])]), r"factor 1 on \(C\): .* the entry at \(0,\) is inf"),
        (lambda: net([("A", [1, -1])], "weight"), r"factor 0 on \(A\): weights must be .* \(1,\) is -1"),
        (lambda: net([("A", [1, np.inf])], "weight"), r"factor 0 on \(A\): weights must be .* \(1,\) is inf"),
        (lambda: net({"f": ("A", [0, np.nan])}), r"on \(A\): .* is nan"),
        (lambda: net({"f": ("AX", np.eye(2))}), "factor 'f': no variable is named 'X'"),
        (lambda: net([("A", "ab")]), "factor 0: the table must be an array of numbers, got str"),
        (lambda: net([("A", None)]), "factor 0"),
        (lambda: net(["A"]), r"factor 0: expected \(scope, table\), got str"),
        (lambda: net([("A", [0, 0], 1)]), r"factor 0: expected \(scope, table\)"),
        (lambda: net([("A", [0, 0])], "odds"), "given must be .* got 'odds'"),
    ],
)  # fmt: skip
def test_bad_factors_are_refused(build: Callable[[], Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        build()


def net(factors: Any, given: Any = "log_potential") -> Model:
    if isinstance(factors, list):
        factors = [(list(f[0]), *f[1:]) if isinstance(f, tuple) and isinstance(f[0], str) else f for f in factors]
    else:
        factors = {name: (list(scope), table) for name, (scope, table) in factors.items()}
    return besag.markov_network({"A": A, "B": B, "C": C}, factors, given)
