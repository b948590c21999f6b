"""EM against enumeration: its likelihood, its steps, and what they have to do with 003's convex functions."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ApproximationWarning, CapabilityError, ConvergenceWarning, EvidenceError, ModelError
from besag.learn.history import Iteration

FEW = pytest.mark.filterwarnings("ignore:EM stopped")


def network(seed: int = 0) -> besag.Model:
    """A Bayesian network with a v-structure and mixed cardinalities."""
    rng = np.random.default_rng(seed)

    def cpt(*shape: int) -> np.ndarray:
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])

    return besag.bayesian_network(
        "A; B; A -> C <- B; C -> D; C -> E",
        {"A": 2, "B": 3, "C": 3, "D": 2, "E": 2},
        {"A": cpt(2), "B": cpt(3), "C": cpt(2, 3, 3), "D": cpt(3, 2), "E": cpt(3, 2)},
    )


def loop(seed: int = 0) -> besag.Model:
    """A Markov network with a cycle, a shared table and a structured factor."""
    rng = np.random.default_rng(seed)
    return besag.markov_network(
        {"A": 2, "B": 2, "C": 2, "D": 3},
        [
            (np.array([["A", "B"], ["B", "C"]]), rng.normal(size=(2, 2))),
            (("A", "C"), besag.potts(2)),
            (("C", "D"), rng.normal(size=(2, 3))),
            (("A", "D"), rng.normal(size=(2, 3))),
        ],
    )


def rows(model: besag.Model, n: int = 60, missing: float = 0.3, seed: int = 1) -> np.ndarray:
    """Draws of a model, some cells of which are unknown."""
    rng = np.random.default_rng(seed)
    drawn = model.sample(n, seed=seed)
    codes = np.array([[list(model.variable(c).states).index(x) for x in drawn[c]] for c in drawn.columns]).T
    return np.where(rng.random(codes.shape) < missing, -1, codes)


def labellings(model: besag.Model) -> np.ndarray:
    return np.array(list(itertools.product(*(range(k) for k in model.variables.cardinalities.tolist()))))


def log_likelihood(model: besag.Model, codes: np.ndarray, weights: Any = None) -> float:
    """sum_n w_n log p(x_n), by enumeration."""
    every = labellings(model)
    p = np.exp(-model.problem.energy(every))
    matches = ((codes[:, None] < 0) | (codes[:, None] == every)).all(axis=-1)
    values = np.log(matches @ p) - np.log(p.sum())
    return float(values.sum() if weights is None else values @ weights)


def em_by_enumeration(model: besag.Model, codes: np.ndarray, prior: float = 0.0) -> Mapping[str, np.ndarray]:
    """The CPTs after one step, each counted from the joint posterior of every row."""
    every = labellings(model)
    p = np.exp(-model.problem.energy(every))
    matches = ((codes[:, None] < 0) | (codes[:, None] == every)).all(axis=-1) * p
    joint = (matches / matches.sum(axis=1, keepdims=True)).sum(axis=0)
    found = {}
    for group in model.groups:
        for scope in group.scopes:
            counts = np.full(model.variables.cardinalities[scope], prior)
            np.add.at(counts, tuple(every[:, scope].T), joint)
            found[model.variables.names[int(scope[-1])]] = counts / counts.sum(axis=-1, keepdims=True)
    return found


def cpts(model: besag.Model) -> Mapping[str, np.ndarray]:
    found = {}
    for number in range(model.n_factors):
        scope = model.graph.scope(number)
        found[model.variables.names[int(scope[-1])]] = np.exp(model.problem.table(number))
    return found


@FEW
@pytest.mark.parametrize("prior", [0.0, 0.7])
def test_a_step_of_a_network_is_expected_counts(prior: float) -> None:
    model = network()
    codes = rows(network(7))
    found = besag.em(model, codes, max_iterations=1, prior_counts=prior or None)
    assert found.model.is_bayesian_network
    expected = em_by_enumeration(model, codes, prior)
    for name, table in cpts(found.model).items():
        assert_allclose(table, expected[name], atol=1e-12)


@FEW
@pytest.mark.parametrize("make", [network, loop])
def test_the_history_has_the_likelihood_which_never_falls(make: Any) -> None:
    model, codes = make(), rows(make(7))
    weights, seen = np.random.default_rng(0).random(len(codes)), []
    found = besag.em(
        model, codes, weights=weights, max_iterations=12, tolerance=0.0, on_step=lambda row, theta: seen.append(theta)
    )
    values = found.history["log_likelihood"]
    assert values[0] == pytest.approx(log_likelihood(model, codes, weights), rel=1e-12)
    for number, theta in enumerate(seen, 1):
        expected = log_likelihood(model.with_theta(theta), codes, weights)
        assert values[number] == pytest.approx(expected, rel=1e-11)
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()
    assert values.iloc[-1] > values[0] + 1.0
    assert found.objective == pytest.approx(-values.iloc[-1])
    assert found.is_exact


@FEW
def test_a_step_is_a_step_of_the_dc_algorithm() -> None:
    """mu = grad h(u) by finite differences; W grad g(u') = mu; the dual lies between the values before and after."""
    model, codes = loop(), rows(loop(7))
    weight = len(codes)
    thetas = [model.theta]
    found = besag.em(
        model,
        codes,
        m_step="exact[tolerance=1e-12,max_iterations=2000]",
        max_iterations=4,
        tolerance=0.0,
        on_step=lambda row, theta: thetas.append(theta),
    )
    every = labellings(model)
    matches = ((codes[:, None] < 0) | (codes[:, None] == every)).all(axis=-1)

    def g(theta: np.ndarray) -> float:
        return float(np.log(np.exp(-model.with_theta(theta).problem.energy(every)).sum()))

    def h(theta: np.ndarray) -> float:
        return float(np.log(matches @ np.exp(-model.with_theta(theta).problem.energy(every))).mean())

    def slope(function: Any, theta: np.ndarray) -> np.ndarray:  # by u = -theta
        return np.array([(function(theta - e) - function(theta + e)) / 2e-5 for e in 1e-5 * np.eye(len(theta))])

    history = found.history
    for t, (before, after) in enumerate(itertools.pairwise(thetas)):
        mu = slope(h, before)
        assert_allclose(slope(g, after), mu, atol=1e-7)  # u(t+1) in the subdifferential of g*(mu)
        dual = (-mu @ before - h(before)) - (-mu @ after - g(after))  # h*(mu) - g*(mu), both attained
        assert history["dual"][t + 1] == pytest.approx(dual, abs=1e-6)
        assert history["g"][t] == pytest.approx(g(before), abs=1e-12)
        assert history["h"][t] == pytest.approx(h(before), abs=1e-12)
        assert history["grad_norm"][t] == pytest.approx(weight * np.linalg.norm(mu - slope(g, before)), abs=1e-4)
        primal = (history["g"] - history["h"])[[t, t + 1]].to_numpy()
        assert primal[1] - 1e-9 <= history["dual"][t + 1] <= primal[0] + 1e-9


@FEW
def test_it_ends_where_the_likelihood_is_stationary() -> None:
    codes = rows(loop(7), 40)
    found = besag.em(loop(), codes, tolerance=1e-13, max_iterations=600)
    total = besag.objective("likelihood", loop(), codes)
    value, gradient = total.value_and_grad(found.theta)
    assert value == pytest.approx(found.objective, rel=1e-12)
    assert np.abs(gradient).max() < 1e-3
    assert found.history["grad_norm"].iloc[-1] == pytest.approx(np.linalg.norm(gradient), abs=1e-8)


def test_complete_data_take_one_step_and_zero_counts_become_hard_zeros() -> None:
    model = network()
    codes = rows(network(7), 20, missing=0.0)
    found = besag.em(model, codes)
    assert found.converged
    assert found.log.n_iterations <= 2
    tables = cpts(found.model)
    parents = codes[:, [0, 1]]
    for a, b in itertools.product(range(2), range(3)):
        own = codes[(parents == [a, b]).all(axis=1), 2]
        if len(own):
            assert_allclose(tables["C"][a, b], np.bincount(own, minlength=3) / len(own), atol=1e-12)
        else:
            assert_allclose(tables["C"][a, b], cpts(model)["C"][a, b], atol=1e-12)
    assert any((table == 0).any() for table in tables.values())


@FEW
def test_frames_with_absent_columns_missing_cells_and_weights() -> None:
    model = network()
    codes = rows(network(7), 30)
    codes[:, 2] = -1
    frame = pd.DataFrame(
        {
            name: [None if c < 0 else model.variable(name).states[c] for c in column]
            for name, column in zip("ABDE", codes[:, [0, 1, 3, 4]].T, strict=True)
        }
    )
    one = besag.em(model, frame, max_iterations=3)
    other = besag.em(model, codes, max_iterations=3)
    np.testing.assert_array_equal(one.theta, other.theta)
    doubled = besag.em(model, np.repeat(codes, 2, axis=0), max_iterations=3)
    weighted = besag.em(model, codes, max_iterations=3, weights=np.full(30, 2.0))
    assert_allclose(doubled.theta, weighted.theta, atol=1e-12)


@FEW
def test_structured_data_with_hidden_labels() -> None:
    rng = np.random.default_rng(0)
    node, edge = besag.Template("node", (2,), n_inputs=2), besag.Template("edge", (2, 2))
    data = []
    for size in (3, 4, 5):
        labels = np.where(rng.random(size) < 0.5, -1, rng.integers(2, size=size))
        nodes = besag.FactorGroup(node, np.arange(size)[:, None], rng.normal(size=(size, 2)))
        edges = besag.FactorGroup(edge, np.stack([np.arange(size - 1), np.arange(1, size)], axis=1))
        data.append(besag.StructuredData([2] * size, [nodes, edges], labels=labels))
    start = besag.Model(data[0].variables, data[0].groups, rng.normal(size=8))
    model = besag.fit(start, data, l2=0.1).model
    found = besag.em(model, data, max_iterations=5, tolerance=0.0)
    values = found.history["log_likelihood"]
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()
    assert values.iloc[-1] > values[0]
    assert values.iloc[-1] == pytest.approx(found.log_proba(data).sum(), rel=1e-10)


def test_states_that_nothing_tells_apart_are_refused_and_restarts_begin_elsewhere() -> None:
    cpts = {"H": [0.5, 0.5], "X": [[0.5, 0.5], [0.5, 0.5]], "Y": [[0.3, 0.7], [0.3, 0.7]]}
    model = besag.bayesian_network("H -> X; H -> Y", {"H": 2, "X": 2, "Y": 2}, cpts)
    data = pd.DataFrame({"X": [0, 0, 1, 1] * 5, "Y": [0, 0, 1, 1] * 5})
    with pytest.raises(ModelError, match=r"no instance gives 'H'.*EM never would.*restarts=5"):
        besag.em(model, data)
    found = besag.em(model, data, restarts=3, tolerance=1e-10)
    assert found.objective == pytest.approx(20 * np.log(2), abs=1e-3)  # H explains all that X and Y have in common
    again = besag.em(model, data, restarts=3, tolerance=1e-10)
    np.testing.assert_array_equal(found.theta, again.theta)


@FEW
def test_a_checkpoint_goes_on_as_if_nothing_had_happened(tmp_path: Any) -> None:
    model, codes = network(), rows(network(7))
    whole = besag.em(model, codes, max_iterations=6, tolerance=0.0)
    half = besag.em(model, codes, max_iterations=3, tolerance=0.0)
    half.checkpoint.save(tmp_path / "half.npz")
    rest = besag.em(model, codes, max_iterations=6, tolerance=0.0, resume=tmp_path / "half.npz")
    np.testing.assert_array_equal(rest.theta, whole.theta)
    pd.testing.assert_frame_equal(rest.history.drop(columns="seconds"), whole.history.drop(columns="seconds"))
    with pytest.raises(ModelError, match="resume is of other data"):
        besag.em(model, codes[1:], max_iterations=6, resume=half.checkpoint)
    with pytest.raises(CapabilityError, match="leave out restarts"):
        besag.em(model, codes, resume=half.checkpoint, restarts=2)


def test_limits_and_interrupts_give_the_best_so_far() -> None:
    model, codes = network(), rows(network(7))
    assert besag.em(model, codes, time_limit=0).stopped == "time_limit"

    def press(row: Iteration, theta: np.ndarray) -> bool:
        if row.iteration == 2:
            raise KeyboardInterrupt
        return False

    found = besag.em(model, codes, on_step=press, tolerance=0.0)
    assert found.stopped == "interrupted"
    assert found.log.n_iterations == 2
    assert found.model.is_bayesian_network
    ended = besag.em(model, codes, on_step=lambda row, theta: row.iteration == 3, tolerance=0.0)
    assert ended.stopped == "early_stopping"


def test_progress_is_a_line_on_standard_error(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("besag.query.progress.SECONDS", 0.0)
    besag.em(network(), rows(network(7)), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "em: iteration 1, " in err
    assert "log-likelihood -" in err


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"e_step": "exakt"}, CapabilityError, "no e_step is named 'exakt'.*did you mean 'exact'"),
        ({"m_step": "newton"}, CapabilityError, "no m_step is named 'newton'"),
        ({"max_iterations": -1}, CapabilityError, "max_iterations must be a whole number from 0 on, got -1"),
        ({"tolerance": float("nan")}, CapabilityError, "tolerance must be a number from 0 on"),
        ({"restarts": 1.5}, CapabilityError, "restarts must be a whole number"),
        ({"seed": -1}, CapabilityError, "seed must be a whole number from 0 on, got -1"),
        ({"weights": [-1.0] * 60}, ModelError, "from 0 on"),
        ({"prior_counts": -1.0}, ModelError, "prior_counts must be finite numbers from 0 on"),
        ({"prior_counts": {"C": [1.0, 2.0]}}, ModelError, r"prior_counts of 'C' must have shape \(2, 3, 3\)"),
        ({"prior_counts": [1.0, 2.0]}, ModelError, "or of shape"),
        ({"resume": 3}, ModelError, "resume must be a checkpoint"),
    ],
)
def test_what_cannot_be_is_said(options: Mapping[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        besag.em(network(), rows(network(7)), **options)


def test_prior_counts_are_those_of_networks_and_impossible_rows_are_named() -> None:
    with pytest.raises(ModelError, match="no Bayesian network"):
        besag.em(loop(), rows(loop(7)), prior_counts=1.0)
    model = besag.bayesian_network("A -> B", {"A": 2, "B": 2}, {"A": [1.0, 0.0]})
    with pytest.raises(EvidenceError, match="instance 1 has no labelling"):
        besag.em(model, [[0, 1], [1, -1]])
    with pytest.raises(EvidenceError, match="instance 1 has no labelling"):
        besag.em(model, [[0, 1], [1, 1]])


@FEW
def test_prior_counts_by_child_are_those_of_the_layout() -> None:
    model, codes = network(), rows(network(7))
    table = np.arange(18.0).reshape(2, 3, 3)
    by_child = besag.em(model, codes, prior_counts={"C": table}, max_iterations=3, tolerance=0.0)
    number = next(i for i in range(model.n_factors) if model.graph.scope(i)[-1] == 2)
    flat = np.zeros(model.layout.n_parameters)
    group, row = model.locate(number)
    start = model.layout[group.template.name].start
    at = start + (0 if group.inputs is None else 18 * int(group.inputs[row]))
    flat[at : at + 18] = table.reshape(-1)
    np.testing.assert_array_equal(
        by_child.theta, besag.em(model, codes, prior_counts=flat, max_iterations=3, tolerance=0.0).theta
    )
    assert (np.diff(by_child.history["value"]) <= 1e-9 * by_child.history["value"][1:]).all()


def test_too_few_iterations_are_said() -> None:
    with pytest.warns(ConvergenceWarning, match="EM stopped after 1 iterations.*max_iterations=2"):
        besag.em(network(), rows(network(7)), max_iterations=1)


@FEW
def test_approximate_e_steps_are_said_and_agree_on_a_tree() -> None:
    """On trees belief propagation is exact; mean field is where what is hidden does not meet in a factor."""
    codes = rows(network(7), 40, missing=0.0)
    codes[:20, 0] = -1
    codes[20:, 3] = -1
    exact = besag.em(network(), codes, max_iterations=4, tolerance=0.0)
    found = besag.em(network(), codes, "bp", max_iterations=4, tolerance=0.0)
    assert found.is_exact
    assert_allclose(found.theta, exact.theta, atol=1e-6)
    with pytest.warns(ApproximationWarning, match="not exact"):
        found = besag.em(network(), codes, "mean_field", max_iterations=4, tolerance=0.0)
    assert not found.is_exact
    assert_allclose(found.theta, exact.theta, atol=1e-6)
    with pytest.warns(ApproximationWarning, match="not exact"):
        found = besag.em(network(), codes, "gibbs[n_samples=400]", max_iterations=4, tolerance=0.0)
    assert found.objective is None
    for name, table in cpts(found.model).items():
        assert_allclose(table, cpts(exact.model)[name], atol=0.1)


@FEW
def test_libdai_has_the_same_likelihoods_and_table(data_dir: Any) -> None:
    """Its first EM: p(x1 | x0) with a pseudo-count of 1, while x0 stays uniform; its printed digits."""
    folder = data_dir / "libdai_tests" / "tests" / "testem"
    lines = (folder / "2var_data.tab").read_text().splitlines()[2:]
    data = pd.DataFrame([[int(cell) for cell in line.split("\t")] for line in lines if line], columns=["x0", "x1"])
    model = besag.bayesian_network("x0 -> x1", {"x0": [0, 1], "x1": [0, 1]})
    prior = {"x0": [1e15, 1e15], "x1": np.ones((2, 2))}
    found = besag.em(model, data, prior_counts=prior, max_iterations=2, tolerance=0.0)
    told = (folder / "testem.out").read_text().split("Inferred Factor Graph")[0]
    expected = [float(line.rpartition(":")[2]) for line in told.splitlines() if "likelihood" in line]
    assert_allclose(found.history["log_likelihood"], expected, atol=5e-5)
    told = (folder / "testem.out").read_text().split("######################")[1].splitlines()
    table = [float(line.split()[1]) for line in told[7:11]]  # libDAI's first variable changes fastest
    assert_allclose(cpts(found.model)["x1"], np.reshape(table, (2, 2), order="F"), atol=1e-11)
