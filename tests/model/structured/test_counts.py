"""Factors on many variables: their tables, and every engine on chains of helpers against enumeration."""

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag import factors
from besag.errors import CapabilityError, EvidenceError, ModelError, TooLargeError
from besag.graph.compile import compile_graph
from besag.infer.engine import ENGINES
from besag.model.structured.base import Structured
from tests.oracle import Enumeration

OUT = -np.inf
MADE: dict[str, Structured] = {
    "any of 4": factors.any_of(4),
    "all of 4": factors.all_of(4),
    "parity of 5": factors.parity(5),
    "exactly 2": factors.count([OUT, OUT, 0, OUT, OUT, OUT]),
    "at most 2": factors.count([0, 0, 0, OUT, OUT, OUT]),
    "any count": factors.count([0.3, -1.0, 2.0, 0.1, -0.4, 1.0]),
    "robust": factors.robust_potts(5, 2, slope=[0.8, 1.1], limit=1.9, least=[0.0, 0.3]),
}
each_kind = pytest.mark.parametrize("kind", MADE)


@pytest.fixture(autouse=True)
def chains(forced: Callable[[dict[str, Any]], None]) -> None:
    forced({"graph.unfolded.LARGEST_TABLE": 1})


def forest(kind: str) -> besag.Model:
    """The factor on five variables, with fields and a table on two more."""
    rng = np.random.default_rng(5)
    fields = [((str(v),), rng.normal(size=2)) for v in range(5)]
    return besag.markov_network(
        [2] * 5 + [3], [(tuple("01234"), MADE[kind]), *fields, (("1", "5"), rng.normal(size=(2, 3)))]
    )


def loopy(kind: str) -> besag.Model:
    """The same, with a cycle through the factor."""
    rng = np.random.default_rng(6)
    pairs = [(("0", "1"), rng.normal(size=(2, 2))), (("2", "3"), rng.normal(size=(2, 2)))]
    return besag.markov_network([2] * 5, [(tuple("01234"), MADE[kind]), *pairs, ("4", rng.normal(size=2))])


@each_kind
def test_the_table_is_that_of_the_definition(kind: str) -> None:
    def value(y: np.ndarray) -> float:
        broken = {
            "any of 4": y[4] != y[:4].any(),
            "all of 4": y[4] != y[:4].all(),
            "parity of 5": y.sum() % 2 == 1,
            "exactly 2": y.sum() != 2,
            "at most 2": y.sum() > 2,
            "any count": False,
            "robust": False,
        }[kind]
        if kind == "robust":
            return float(min(1.9, 0.8 * y.sum(), 0.3 + 1.1 * (5 - y.sum())))
        levels = [0.3, -1.0, 2.0, 0.1, -0.4, 1.0] if kind == "any count" else [0.0] * 6
        return np.inf if broken else -levels[y.sum()]

    table = MADE[kind].dense()[0]
    for y in np.ndindex(table.shape):
        assert table[y] == value(np.array(y))


ENGINES_OF_KIND = [(kind, engine) for kind in MADE for engine in ("tree", "junction_tree", "bp")]
ENGINES_OF_KIND += [
    (kind, engine) for kind in ("any count", "robust") for engine in ("elimination", "trw", "join_graph")
]


@pytest.mark.parametrize(("kind", "engine"), ENGINES_OF_KIND)
@pytest.mark.parametrize("evidence", [None, {"0": "1", "4": "1"}], ids=["free", "evidence"])
def test_forests_are_exact(kind: str, engine: str, evidence: Any) -> None:
    model = forest(kind)
    truth = Enumeration(model, evidence)
    found = model.marginals(evidence=evidence, engine=engine)
    assert_allclose(found.log_partition, truth.log_z, atol=1e-6)
    for name in model.variables:
        assert_allclose(found[name.name], truth.marginal(name.name), atol=1e-6)


@each_kind
@pytest.mark.parametrize("engine", ["junction_tree", "elimination", "exact", "auto"])
def test_exact_engines_take_cycles(kind: str, engine: str) -> None:
    model = loopy(kind)
    truth = Enumeration(model)
    found = model.marginals(engine=engine)
    assert_allclose(found.log_partition, truth.log_z, atol=1e-10)
    assert found.array.shape == (5, 2)
    assert_allclose(found["3"], truth.marginal("3"), atol=1e-10)
    best = model.map(engine=engine) if engine != "elimination" else model.map()
    assert_allclose(best.energy, -truth.log_weights.max(), atol=1e-10)
    assert list(best.assignment) == [str(v) for v in range(5)]


@each_kind
@pytest.mark.parametrize("engine", ["tree", "bp", "junction_tree"])
def test_the_best_labelling_of_a_forest(kind: str, engine: str) -> None:
    model = forest(kind)
    assert_allclose(model.map(engine=engine).energy, -Enumeration(model).log_weights.max(), atol=1e-10)


@each_kind
def test_samples_have_no_helpers(kind: str) -> None:
    model = loopy(kind)
    drawn = model.sample(3000, engine="junction_tree", seed=0)
    assert list(drawn.columns) == [str(v) for v in range(5)]
    assert abs((drawn["2"] == "1").mean() - model.marginals()["2"][1]) < 0.05


@each_kind
def test_rows_of_evidence(kind: str) -> None:
    import pandas as pd

    model = loopy(kind)
    rows = pd.DataFrame({"0": ["1", None], "2": [None, "1"]})
    found = model.marginals(evidence=rows)
    for row, given in enumerate(({"0": "1"}, {"2": "1"})):
        assert_allclose(found["3"][row], model.marginals(evidence=given)["3"], atol=1e-12)


@pytest.mark.parametrize("kind", ["any count", "robust"])
def test_moments_are_the_expected_costs(kind: str) -> None:
    model = loopy(kind)
    truth = Enumeration(model)
    result = ENGINES.read("junction_tree").infer(model.problem, frozenset({"moments"}))
    features = MADE[kind].features(truth.labels)[:, 0]
    expected = float(np.exp(truth.log_weights - truth.log_z) @ features)
    assert_allclose(model.graph.moments(result.table_moments)[0], expected, atol=1e-10)


@pytest.mark.parametrize("weight", [0.0, -0.7, 2.0])
@pytest.mark.parametrize("kind", ["any of 4", "all of 4", "parity of 5", "exactly 2", "at most 2"])
def test_a_weight_of_any_sign_leaves_hard_zeros(kind: str, weight: float) -> None:
    model = loopy(kind)
    model = model.with_inputs({model.groups[0].template.name: np.array([[weight]])})
    hard = np.isinf(MADE[kind].dense()[0])
    labels = np.argwhere(hard)
    assert [model.energy(y) for y in labels] == [np.inf] * len(labels)
    for y in labels:
        assert model.log_probability(dict(zip("01234", map(str, y), strict=True))) == -np.inf
    template = model.groups[0].template
    assert_array_equal(np.isinf(template.energies(np.ones(1), np.array([[weight]])))[0], hard)
    assert_array_equal(model.graph.block_of(0).template.label_moments(None, labels), [0.0])
    for found in (model.covariance(engine="brute"), model.moments(engine="brute")):
        assert np.isfinite(found).all()
    assert_allclose(np.exp(model.map(engine="brute").log_probability), model.to_frame()["p"].max())


@pytest.mark.parametrize("objective", ["pseudolikelihood", "piecewise"])
@pytest.mark.parametrize("kind", ["any of 4", "exactly 2", "parity of 5", "any count"])
def test_gradients_of_surrogates_beside_hard_zeros(kind: str, objective: str) -> None:
    model = loopy(kind)
    rows = model.sample(20, seed=0, engine="brute")
    loss = besag.objective(objective, model, rows, l2=0.0)
    value, gradient = loss.value_and_grad(model.theta)[:2]
    assert value is not None
    assert np.isfinite(value)
    for i in range(len(gradient)):
        step = 1e-5 * np.eye(len(gradient))[i]
        ends = [loss.value_and_grad(model.theta + sign * step)[0] for sign in (1, -1)]
        assert ends[0] is not None
        assert ends[1] is not None
        assert_allclose(gradient[i], (ends[0] - ends[1]) / 2e-5, atol=1e-6)


@pytest.mark.parametrize("objective", ["pseudolikelihood", "piecewise"])
def test_labels_that_meet_hard_zeros_are_refused(objective: str) -> None:
    model = loopy("exactly 2")
    rows = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]])
    with pytest.raises(EvidenceError, match="instance 1 has labels of probability zero"):
        besag.objective(objective, model, rows).value_and_grad(model.theta)


def test_no_table_is_made_where_it_would_not_fit() -> None:
    n = 40
    term = factors.count([0.0] * n + [1.0])
    one, two = (besag.markov_network([2] * n, [(tuple(map(str, range(n))), copy(term))]) for _ in range(2))
    graph = compile_graph(one, two)  # two templates of one name, with the same content
    assert graph.n_instances == 2
    with pytest.raises(TooLargeError, match=r"count: a table of 40 variables with 1.1e\+12 entries would take"):
        besag.objective("piecewise", one, np.zeros((1, n), int)).value_and_grad(one.theta)


def test_a_thousand_variables() -> None:
    """Of n fair coins, the count that is read with a field on one of them, in closed form."""
    n = 1000
    one = factors.count([OUT] + [0.0] + [OUT] * (n - 1))
    model = besag.markov_network([2] * n, [(tuple(map(str, range(n))), one), ("7", [0.0, 2.0])])
    found = model.marginals(engine="tree")
    z = np.exp(2.0) + n - 1
    assert_allclose(found.log_partition, np.log(z), rtol=1e-12)
    assert_allclose(found["7"][1], np.exp(2.0) / z, rtol=1e-10)
    assert_allclose(found["8"][1], 1 / z, rtol=1e-10)


def test_several_of_a_kind_are_templates_of_their_own() -> None:
    model = besag.markov_network(
        [2] * 5,
        [(tuple("01234"), MADE["exactly 2"]), (tuple("01234"), MADE["at most 2"]), (("0", "1"), [[0, 1], [2, 3]])],
    )
    assert [group.template.name for group in model.groups] == ["count[2]", "count[2] 2", "table[2,2]"]
    assert_allclose(model.log_partition(engine="exact"), Enumeration(model).log_z)


def test_labels_of_a_segment() -> None:
    """Three labels with costs of their own, in sums and maxima, where the best label is not that of most fields."""
    rng = np.random.default_rng(4)
    segment = factors.robust_potts(7, 3, slope=[1.0, 0.6, 0.9], limit=2.0, least=[0.0, 0.5, -0.2])
    fields = [((str(v),), rng.normal(size=3)) for v in range(7)]
    model = besag.markov_network([3] * 7, [(tuple("0123456"), segment), *fields, (("2", "5"), rng.normal(size=(3, 3)))])
    truth = Enumeration(model)
    found = model.marginals(engine="junction_tree")
    assert_allclose(found.log_partition, truth.log_z, rtol=1e-12)
    for name in "0123456":
        assert_allclose(found[name], truth.marginal(name), atol=1e-12)
    best = model.map(engine="junction_tree")
    assert_allclose(best.energy, -truth.log_weights.max(), rtol=1e-12)
    both = ENGINES.read("junction_tree").infer(model.problem, frozenset({"map", "variables", "log_partition"}))
    assert_allclose([both.energy, both.log_partition], [best.energy, truth.log_z], rtol=1e-12)
    with pytest.raises(CapabilityError, match="the k best labellings are not known"):
        model.map(k=2, engine="junction_tree")


def test_a_thousand_variables_of_a_segment() -> None:
    """Of labels that all lean to the first, the sum over how many have another one, in closed form."""
    from math import comb

    n, field = 1000, 7.0
    segment = factors.robust_potts(n, 3, limit=2.5)
    fields = [((str(v),), [field, 0.0, 0.0]) for v in range(n)]
    model = besag.markov_network([3] * n, [(tuple(map(str, range(n))), segment), *fields])
    few = [comb(n, c) * (2 * np.exp(-field)) ** c * (np.exp(-c) - np.exp(-2.5)) for c in range(3)]
    z = np.exp(-2.5) * (1 + 2 * np.exp(-field)) ** n + sum(few)
    assert_allclose(model.log_partition(engine="tree"), n * field + np.log(z), rtol=1e-12)
    assert_allclose(model.map(engine="tree").energy, -n * field, rtol=1e-12)


@each_kind
def test_files_keep_it(kind: str, tmp_path: Path) -> None:
    besag.save(forest(kind), tmp_path / "a.json")
    twin = besag.load(tmp_path / "a.json")
    assert twin.groups[0].template.basis == MADE[kind]
    assert_array_equal(twin.theta, forest(kind).theta)


def test_what_does_not_go_is_refused() -> None:
    with pytest.raises(CapabilityError, match="too many states for a marginal of its own"):
        ENGINES.read("junction_tree").infer(loopy("any count").problem, frozenset({"factors"}))
    with pytest.raises(ModelError, match=r"count needs n \+ 1 log-potentials"):
        factors.count([0.0])
    with pytest.raises(ModelError, match="rules every number of ones out"):
        factors.count([OUT, OUT])
    with pytest.raises(ModelError, match=r"two labels may cost less than the limit 3\.0 at once, where 2 and 2 of 4"):
        factors.robust_potts(4, 2, limit=3.0)
    with pytest.raises(ModelError, match="slopes above 0"):
        factors.robust_potts(4, 2, slope=0.0, limit=1.0)
    with pytest.raises(ModelError, match="limit must be a finite number"):
        factors.robust_potts(4, 2, limit=np.inf)
    with pytest.raises(ModelError, match="a weight must be 0 or above"):
        forest("robust").with_theta(-np.ones(len(forest("robust").theta))).log_partition(engine="tree")
    with pytest.raises(ModelError, match="parity needs at least one variable, got 0"):
        factors.parity(0)
