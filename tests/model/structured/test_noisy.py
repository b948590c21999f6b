"""Noisy-OR, noisy-AND and noisy-MAX: their tables, networks that have them, and every engine against enumeration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.infer.engine import ENGINES
from besag.model.structured.noisy import NoisyMax, noisy_and, noisy_max, noisy_or
from tests.oracle import Enumeration


@pytest.fixture(params=[1, 2**8], ids=["chains", "tables"])
def chains(request: pytest.FixtureRequest, forced: Callable[[dict[str, Any]], None]) -> None:
    forced({"graph.unfolded.LARGEST_TABLE": request.param})


def network(seed: int) -> besag.Model:
    """Six variables of two or three states; all with two parents or more are noisy-MAX, some effects hard zeros."""
    rng, names = np.random.default_rng(seed), "ABCDEF"
    cards = rng.integers(2, 4, size=6).tolist()
    model = besag.bayesian_network([], dict(zip(names, cards, strict=True)))
    for v, child in enumerate(names):
        above = rng.permutation(v)[: rng.integers(0, v + 1) if v < 4 else rng.integers(2, v + 1)]
        if len(above) < 2:
            model = model.with_cpt(child, rng.dirichlet(np.ones(cards[v])))
            continue
        effects = {names[p]: rng.dirichlet(np.ones(cards[v]), size=cards[p]) for p in above}
        weakest = int(rng.choice([0, cards[v] - 1]))
        for table in effects.values():
            if rng.random() < 0.7:
                table[0] = np.eye(cards[v])[weakest]
        leak = rng.dirichlet(np.ones(cards[v])) if rng.random() < 0.5 else None
        model = model.with_noisy_max(child, effects, leak, weakest=model.variable(child).states[weakest])
    return model


EVIDENCE: list[Any] = [None, {"F": "0"}, {"F": "1"}, {"F": "0", "A": "1"}, {"E": {"0", "1"}, "D": {"0": 0.3, "1": 0.9}}]
SEEDS = range(2)


def possible(seed: int) -> list[tuple[besag.Model, Any, Enumeration]]:
    """A network under each evidence that it allows."""
    model = network(seed)
    found = []
    for given in EVIDENCE:
        evidence = given
        if given is not None and "D" in given:
            evidence = {**given, "D": {state: 0.3 + i for i, state in enumerate(model.variable("D").states)}}
        truth = Enumeration(model, evidence)
        if truth.log_z > -np.inf:
            found.append((model, evidence, truth))
    return found


# Tables --------------------------------------------------------------------------------------------------------------


def test_the_table_is_that_of_the_strongest_independent_effect() -> None:
    rng = np.random.default_rng(0)
    effects = [rng.dirichlet(np.ones(3), size=k) for k in (2, 3, 4)]
    leak = rng.dirichlet(np.ones(3))
    for weakest, strongest in ((0, max), (2, min)):
        expected = np.zeros((2, 3, 4, 3))
        for x in np.ndindex(2, 3, 4):
            for y in np.ndindex(3, 3, 3, 3):
                p = np.prod([effects[i][x[i], y[i]] for i in range(3)]) * leak[y[3]]
                expected[(*x, strongest(y))] += p
        assert_allclose(noisy_max(effects, leak, weakest).table(), expected, atol=1e-15)


def test_or_and_and_have_the_documented_formulas() -> None:
    p, leak = np.array([0.8, 0.3, 0.5]), 0.01
    or_, and_ = noisy_or(p, leak).table(), noisy_and(p, leak).table()
    for x in np.ndindex(2, 2, 2):
        assert_allclose(or_[(*x, 0)], (1 - leak) * np.prod(1 - p[np.array(x) == 1]))
        assert_allclose(and_[(*x, 1)], (1 - leak) * np.prod(1 - p[np.array(x) == 0]))


def test_features_are_the_table_s_and_small_numbers_stay() -> None:
    term = noisy_max([[[1, 0, 0], [1 - 3e-20, 1e-20, 2e-20]], [[1, 0, 0], [0.1, 0.9, 0]]])
    labels = np.stack(np.meshgrid(*map(np.arange, term.shape), indexing="ij"), -1)
    assert_allclose(np.exp(-term.features(labels)[..., 0]), term.table(), rtol=1e-12)
    assert_allclose(term.table()[1, 0, 1:], [1e-20, 2e-20], rtol=1e-12)
    many = noisy_or([1 - 1e-3] * 2000)
    assert_allclose(many.features(np.array([1] * 2000 + [0])), [2000 * np.log(1e3)], rtol=1e-9)


def test_what_is_no_noisy_max_is_refused() -> None:
    with pytest.raises(ModelError, match="a row for each state of its parents and one for the leak, 3, got"):
        NoisyMax(np.eye(2), np.array([2]), np.arange(2))
    with pytest.raises(ModelError, match="ranks that go up or down with its own states"):
        NoisyMax(np.full((3, 2), 0.5), np.array([2]), np.zeros(2))
    with pytest.raises(ModelError, match="rows of probabilities that sum to one"):
        noisy_max([[[0.5, 0.6], [1, 0]]])
    with pytest.raises(ModelError, match="one or more probabilities, and a leak from 0 to 1"):
        noisy_or([0.5, 1.5])
    with pytest.raises(ModelError, match="its first or its last, 0 or 2, got 1"):
        noisy_max([np.eye(3)], weakest=1)
    with pytest.raises(ModelError, match="must be 3 probabilities, one for each state"):
        noisy_max([np.eye(3)], leak=[1.0])
    with pytest.raises(ModelError, match="one or more tables"):
        noisy_max([])


# Networks ------------------------------------------------------------------------------------------------------------


def test_states_by_name_in_any_order() -> None:
    turned = besag.bayesian_network("flu[yes,no]; cold[no,yes]; fever[yes,no]")
    found = turned.with_noisy_or("fever", {"flu": 0.8, "cold": 0.3}, leak=0.01, on="yes")
    assert_allclose(found.cpt("fever")[:, :, 0], [[0.802, 0.8614], [0.01, 0.307]])
    found = turned.with_noisy_and("fever", {"flu": 0.8, "cold": 0.3}, leak=0.01, on="yes")
    assert_allclose(found.cpt("fever")[:, :, 0], [[0.99 * 0.7, 0.99], [0.99 * 0.2 * 0.7, 0.99 * 0.2]])
    with pytest.raises(ModelError, match="'flu' must be binary"):
        besag.bayesian_network("flu[3]; fever").with_noisy_or("fever", {"flu": 0.8})
    with pytest.raises(ModelError, match="cannot be its own parent"):
        turned.with_noisy_or("fever", {"fever": 0.8})
    with pytest.raises(ModelError, match="the edges have a cycle"):
        besag.bayesian_network("fever -> flu").with_noisy_or("fever", {"flu": 0.8})


def test_the_directed_graph_and_what_is_made_of_it(tmp_path: Path) -> None:
    model = besag.bayesian_network("A -> B; C; D").with_metadata({"name": "x"}, {"A": {"label": "a"}})
    model = model.with_noisy_or("D", {"C": 0.5, "B": 0.25}, leak=0.1).with_noisy_or("C", {"A": 0.9})
    assert model.parents("D") == ["C", "B"]
    assert model.is_bayesian_network
    assert model.metadata["name"] == "x"
    assert model.variable("A").metadata["label"] == "a"
    assert model.d_separated("A", "D", given=["B", "C"])
    assert set(model.to_networkx().edges) == {("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")}
    assert "C, B" in str(model)
    besag.save(model, tmp_path / "a.json")
    twin = besag.load(tmp_path / "a.json")
    for each in (twin, model.with_theta(model.theta)):
        assert each.is_bayesian_network
        assert_array_equal(each.cpt("D"), model.cpt("D"))
    assert not model.with_theta(2 * model.theta).is_bayesian_network
    assert model.do({"D": "1"}).parents("D") == []
    assert_array_equal(model.do({"B": "1"}).cpt("D"), model.cpt("D"))
    replaced = model.with_cpt("D", model.cpt("D"))
    assert replaced.groups[0].template.structured is None
    assert_allclose(replaced.log_partition({"D": "1"}), model.log_partition({"D": "1"}))
    again = replaced.with_cpt("D", noisy_or([0.5, 0.25], 0.1))
    assert_array_equal(again.cpt("D"), model.cpt("D"))
    with pytest.raises(ModelError, match=r"must be of shape \(2, 2, 2\), axes \(C, B, D\), got \(2, 2\)"):
        model.with_cpt("D", noisy_or([0.5]))
    conditioned = model.condition({"D": "1"})
    assert_allclose(conditioned.marginals()["A"], model.marginals(evidence={"D": "1"})["A"])


# Inference -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("chains")
@pytest.mark.parametrize("engine", ["junction_tree", "elimination", "exact", "auto"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_are_exact(seed: int, engine: str) -> None:
    for model, evidence, truth in possible(seed):
        found = model.marginals(evidence=evidence, engine=engine)
        assert_allclose(found.log_partition, truth.log_z, atol=1e-10)
        for name in "ABCDEF":
            assert_allclose(found[name], truth.marginal(name), atol=1e-10)
        alone = model.marginals("B", evidence=evidence, engine=engine)
        assert_allclose(alone["B"], truth.marginal("B"), atol=1e-10)


@pytest.mark.usefixtures("chains")
@pytest.mark.parametrize("engine", ["junction_tree", "exact", "auto"])
@pytest.mark.parametrize("seed", SEEDS)
def test_best_labellings_are_those_of_the_model(seed: int, engine: str) -> None:
    for model, evidence, truth in possible(seed):
        wanted = np.sort(-truth.log_weights[truth.log_weights > -np.inf])[:3]
        found = model.map(evidence=evidence, engine=engine, k=3)
        assert_allclose([energy for _, energy in found.solutions][: len(wanted)], wanted, atol=1e-10)
        assert model.map(evidence=evidence, engine=engine).optimal


@pytest.mark.usefixtures("chains")
@pytest.mark.parametrize("engine", ["bp", "trw", "join_graph", "mean_field"])
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold(seed: int, engine: str) -> None:
    for model, evidence, truth in possible(seed):
        low, high = model.marginals(evidence=evidence, engine=engine).log_partition_bounds
        assert low - 1e-7 <= truth.log_z <= high + 1e-7


@pytest.mark.usefixtures("chains")
def test_trees_are_exact() -> None:
    model = besag.bayesian_network("A; B; C; D; E -> F").with_noisy_or("D", {"A": 0.3, "B": 0.6, "C": 0.2}, 0.05)
    model = model.with_noisy_and("E", {"D": 0.7})
    for evidence in ({"F": "1"}, {"D": "0"}):
        truth = Enumeration(model, evidence)
        for engine in ("tree", "bp"):
            found = model.marginals(evidence=evidence, engine=engine)
            assert_allclose(found["A"], truth.marginal("A"), atol=1e-8)
            assert_allclose(model.map(evidence, engine=engine).energy, truth.map_energy, atol=1e-10)


@pytest.mark.usefixtures("chains")
def test_rows_of_evidence() -> None:
    model = network(1)
    rows = pd.DataFrame({"F": ["0", "0", None], "A": [None, "1", "0"]})
    found, best = model.marginals(evidence=rows), model.map(rows)
    for row, given in enumerate(({"F": "0"}, {"F": "0", "A": "1"}, {"A": "0"})):
        truth = Enumeration(model, given)
        assert_allclose(found.log_partition[row], truth.log_z, atol=1e-10)
        assert_allclose(found["C"][row], truth.marginal("C"), atol=1e-10)
        assert_allclose(best.energy[row], truth.map_energy, atol=1e-10)


@pytest.mark.usefixtures("chains")
def test_samples_have_no_helpers_and_are_right() -> None:
    model = network(2)
    for options in ({"engine": "junction_tree"}, {}):
        drawn = model.sample(30_000, seed=0, **options)
        assert list(drawn.columns) == list("ABCDEF")
        for name, states in zip("ABCDEF", [model.variable(name).states for name in "ABCDEF"], strict=True):
            shares = [(drawn[name] == state).mean() for state in states]
            assert_allclose(shares, model.marginals()[name], atol=0.02)  # seven standard errors


def test_joint_and_marginal_map(forced: Callable[[dict[str, Any]], None]) -> None:
    model = network(3)
    evidence = {"F": "1"}
    joint, best = model.joint(["A", "E"], evidence=evidence), model.marginal_map(["A", "E"], evidence=evidence)
    forced({"graph.unfolded.LARGEST_TABLE": 1})
    assert_allclose(model.joint(["A", "E"], evidence=evidence), joint, atol=1e-12)
    again = model.marginal_map(["A", "E"], evidence=evidence)
    assert again.assignment == best.assignment
    assert_allclose(again.energy, best.energy, atol=1e-10)


def test_sensitivity_is_that_of_the_tables() -> None:
    model = besag.bayesian_network("A; B; C; D").with_noisy_or("C", {"A": 0.5, "B": 0.3}, 0.1)
    model = model.with_noisy_or("D", {"A": 0.2, "C": 0.6})
    plain = besag.bayesian_network("A -> C <- B; A -> D <- C", cpts={name: model.cpt(name) for name in "ABCD"})
    by = ["variable", "state", "given"]
    found, expected = (m.sensitivity("A", "1", {"D": "1"}).set_index(by).sort_index() for m in (model, plain))
    assert_allclose(found, expected, atol=1e-12)


def test_the_distribution_of_mean_field_where_a_child_is_weakest() -> None:
    model = besag.bayesian_network("A; B; C").with_noisy_or("C", {"A": 0.5, "B": 0.3}, 0.1)
    for family in ("naive", "tree", "spanning_tree"):
        found = model.marginals(evidence={"C": "0"}, engine=f"mean_field[family={family}]")
        assert_allclose(found.kl(), 0.0, atol=1e-9)  # the parents are independent
        assert_allclose(found.approximation.marginals()["A"], found["A"], atol=1e-9)


# Thirty parents ------------------------------------------------------------------------------------------------------


def thirty() -> besag.Model:
    """A child of thirty causes, and one of each cause."""
    rng = np.random.default_rng(7)
    causes = [f"c{i}" for i in range(30)]
    edges = [(cause, "all") for cause in causes] + [(cause, f"s{i}") for i, cause in enumerate(causes)]
    cpts: dict[str, Any] = {cause: [0.9, 0.1] for cause in causes} | {"all": noisy_or(rng.uniform(0.1, 0.9, 30), 0.02)}
    cpts |= {f"s{i}": [[0.8, 0.2], [0.3, 0.7]] for i in range(30)}
    return besag.bayesian_network(edges, cpts=cpts)


def test_thirty_parents_in_closed_form() -> None:
    model = thirty()
    p = 1 - np.exp(-model.groups[-1].template.structured.features(np.eye(31, dtype=int)[:30]))[:, 0] / 0.98
    off = 0.98 * np.prod(1 - 0.1 * p)
    assert_allclose(model.log_partition({"all": "0"}), np.log(off), rtol=1e-12)
    found = model.marginals(["c3"], evidence={"all": "1"})["c3"][1]
    assert_allclose(found, 0.1 * (1 - off / (1 - 0.1 * p[3]) * (1 - p[3])) / (1 - off), rtol=1e-10)
    seen = {f"s{i}": str(i % 2) for i in range(30)}
    odds = np.where(np.arange(30) % 2, 0.1 * 0.7 / (0.9 * 0.2), 0.1 * 0.3 / (0.9 * 0.8))
    cause = odds / (1 + odds)
    assert_allclose(model.marginals(["all"], seen)["all"][0], 0.98 * np.prod(1 - cause * p), rtol=1e-10)
    assert_allclose(model.joint(["all", "c0"], seen)[0].sum(), 0.98 * np.prod(1 - cause * p), rtol=1e-10)


def test_the_best_labelling_of_thirty_parents_where_evidence_leaves_few() -> None:
    model = thirty()
    seen = {f"c{i}": str(i % 2) for i in range(27)}
    best = model.map(seen, engine="exact")
    assert best.optimal
    assert_allclose(best.energy, model.energy(best.assignment), rtol=1e-12)
    assert model.map({"all": "0"}, engine="exact").optimal
    with pytest.raises(TooLargeError, match="the 30 of its parents that are not observed"):
        model.map({"all": "1"}, engine="exact")


def test_what_does_not_go_is_refused() -> None:
    model = thirty()
    with pytest.raises(TooLargeError, match=r"the table of 'all' has 2\.15e\+09 entries"):
        model.cpt("all")
    with pytest.raises(CapabilityError, match="too many states for a marginal of its own"):
        ENGINES.read("junction_tree").infer(model.problem, frozenset({"factors"}))
    with pytest.raises(CapabilityError, match="no expected energy here"):
        model.entropy()
