"""Missing cells and variables without a column: EM of networks against enumeration of what is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import DataWarning, EvidenceError, ModelError

LAWN = besag.data.bundled("sprinkler")
WHOLE = LAWN.sample(150, seed=4)
ROWS = WHOLE.mask(np.random.default_rng(1).random(WHOLE.shape) < 0.3)
FRIENDS = besag.data.bundled("misconception").with_theta(0.3 * besag.data.bundled("misconception").theta)
PAIRS = FRIENDS.sample(150, seed=4)
RING = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]


def completed(model: besag.Model, rows: pd.DataFrame, weights: Any = None) -> tuple[pd.DataFrame, float]:
    """All labellings with the weight of the rows that are expected to have them, and log p of the rows."""
    frame = model.to_frame()
    p, total, value = frame["p"].to_numpy(), np.zeros(len(frame)), 0.0
    for n, row in enumerate(rows.to_dict("records")):
        fits = np.all([pd.isna(state) | (frame[name] == state) for name, state in row.items()], axis=0)
        weight = 1.0 if weights is None else weights[n]
        total += weight * p * fits / (p * fits).sum()
        value += weight * float(np.log((p * fits).sum()))
    return frame.assign(n=total), value


def expected(frame: pd.DataFrame, model: besag.Model, scope: list[str]) -> Any:
    sums = frame.groupby(scope, observed=False)["n"].sum()
    return sums.to_numpy().reshape([len(model.variable(name).states) for name in scope])


@pytest.mark.parametrize(("prior", "pseudo"), [(None, 0.0), ("laplace", 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_network_ends_at_its_own_expected_counts(prior: Any, pseudo: float, weighted: bool) -> None:
    weights = np.random.default_rng(2).integers(0, 3, len(ROWS)).astype(float) if weighted else None
    fitted = besag.BayesianNetwork(LAWN, prior, tol=1e-12, max_iter=2000).fit(ROWS, sample_weight=weights)
    frame, value = completed(fitted.model_, ROWS, weights)
    assert fitted.log_likelihood_ == pytest.approx(value, abs=1e-8)
    for variable in LAWN.variables:
        counts = expected(frame, LAWN, [*LAWN.parents(variable.name), variable.name]) + pseudo
        shares = counts / counts.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(fitted.model_.cpt(variable.name), shares, atol=1e-4)
        np.testing.assert_allclose(fitted.counts_[variable.name] + pseudo, counts, atol=1e-8)
    assert (np.diff(fitted.fit_.history["value"]) <= 1e-9).all()


def test_incomplete_rows_tell_more_than_complete_ones_alone() -> None:
    rows = LAWN.sample(3000, seed=1)
    holes = rows.mask(np.random.default_rng(1).random(rows.shape) < 0.4)
    both, alone = (besag.BayesianNetwork(LAWN).fit(part) for part in (holes, holes.dropna()))
    wrong = [sum(np.abs(f.model_.cpt(v.name) - LAWN.cpt(v.name)).sum() for v in LAWN.variables) for f in (both, alone)]
    assert wrong[0] < wrong[1]


def test_what_complete_rows_leave_even_is_no_hidden_variable() -> None:
    """No incomplete row has column 1, whose two states the complete ones have equally often."""
    fitted = besag.BayesianNetwork([("0", "1")]).fit(np.array([[0, 1], [1, -1], [0, 0]]))
    np.testing.assert_allclose(fitted.model_.cpt("1"), 0.5)
    assert fitted.log_likelihood_ == pytest.approx(np.log([1 / 3, 1 / 3, 1 / 3]).sum())


def test_configurations_that_no_row_may_have_are_said(tmp_path: Path) -> None:
    rows = pd.DataFrame({"a": [0, 0, 1, None], "b": [0, 1, 0, 0], "c": [0, 1, 1, 1]})
    with pytest.warns(DataWarning, match="such as a=1, b=1 of 'c'"):
        fitted = besag.BayesianNetwork("a -> c <- b").fit(rows)
    assert fitted.unseen_.loc["c"].tolist() == [4, 1, "a=1, b=1"]
    np.testing.assert_allclose(fitted.model_.cpt("c")[1, 1], 0.5)
    fitted.save(tmp_path / "network.npz")
    again = besag.load(tmp_path / "network.npz")
    assert again.unseen_.equals(fitted.unseen_)
    np.testing.assert_allclose(again.counts_["c"], fitted.counts_["c"])


def test_rows_of_no_weight_may_be_impossible() -> None:
    rows = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, None, 1, 2]})
    fitted = besag.BayesianNetwork("a -> b").fit(rows, sample_weight=[1.0, 1.0, 1.0, 0.0])
    assert fitted.log_likelihood_ == pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3))


def test_hidden_variables_begin_somewhere_and_restarts_never_lose() -> None:
    edges = [("kind", name) for name in ("sprinkler", "rain", "wet_grass")]
    rows = WHOLE[["sprinkler", "rain", "wet_grass"]]
    options: dict[str, Any] = {"states": {"kind": ["u", "v"]}, "max_iter": 1000}
    one, more = (besag.BayesianNetwork(edges, restarts=n, **options).fit(rows) for n in (0, 3))
    assert more.log_likelihood_ >= one.log_likelihood_ - 1e-6
    assert set(one.predict(rows)) <= {"u", "v"}
    assert one.sample(3)["kind"].isin(["u", "v"]).all()
    again = one.partial_fit(rows)  # goes on from where it was
    assert again.log_likelihood_ >= 2 * more.log_likelihood_ - 1.0


def test_a_declared_variable_whose_cells_are_all_missing_is_hidden() -> None:
    rows = WHOLE[["cloudy", "sprinkler", "wet_grass"]]
    options: dict[str, Any] = {
        "structure": "rain -> cloudy; rain -> sprinkler; rain -> wet_grass",
        "states": {"rain": 2},
    }
    absent, empty = (besag.BayesianNetwork(**options).fit(part) for part in (rows, rows.assign(rain=None)))
    assert absent.log_likelihood_ == pytest.approx(empty.log_likelihood_)


@pytest.mark.parametrize("l2", [0.0, 2.0])
def test_a_markov_network_ends_where_its_moments_are_those_of_the_completed_rows(l2: float) -> None:
    rows = PAIRS.mask(np.random.default_rng(1).random(PAIRS.shape) < 0.3)
    weights = np.random.default_rng(3).integers(1, 3, len(rows)).astype(float)
    fitted = besag.MarkovNetwork(RING, l2=l2, tol=1e-10).fit(rows, sample_weight=weights)
    frame, value = completed(fitted.model_, rows, weights)
    assert fitted.log_likelihood_ == pytest.approx(value, abs=1e-7)
    for scope, told in fitted.moments_.items():
        shares = expected(frame, fitted.model_, list(scope)) / weights.sum()
        np.testing.assert_allclose(told, shares, atol=1e-8)
        if not l2:
            np.testing.assert_allclose(fitted.model_.joint(list(scope)), shares, atol=1e-4)
    if l2:  # the gradient of the penalised likelihood is zero
        gaps = [fitted.moments_[scope] - fitted.model_.joint(list(scope)) for scope in fitted.moments_]
        logs = [fitted.model_.problem.table(f) for f in range(fitted.model_.n_factors)]
        np.testing.assert_allclose(weights.sum() * np.array(gaps), 2 * l2 * np.array(logs), atol=1e-4)
    assert (np.diff(fitted.fit_.history["value"]) <= 1e-9).all()


def test_a_markov_network_with_a_hidden_variable() -> None:
    rows = PAIRS[["A", "B", "D"]]
    star = besag.MarkovNetwork([("kind", name) for name in rows], states={"kind": 2}, max_iter=300, tol=1e-6).fit(rows)
    alone = besag.MarkovNetwork(None).fit(rows)
    assert star.log_likelihood_ is not None
    assert star.log_likelihood_ > alone.log_likelihood_ + 2
    assert set(star.predict(rows)) <= {0, 1}


def test_moments_that_no_row_has_are_said_where_cells_are_missing_too() -> None:
    rows = pd.DataFrame({"a": [0, 0, 1, 1, 0], "b": [0, 1, 1, 1, 0], "c": [0, 1, 0, 1, None]})
    with pytest.warns(DataWarning, match=r"such as that of \(a=1, b=0\).*all but rules these states out; l2="):
        besag.MarkovNetwork([("a", "b"), ("b", "c")], max_iter=100).fit(rows)
    with pytest.raises(ModelError, match="prior_strength= counts complete rows"):
        besag.MarkovNetwork([("a", "b")], prior_strength=1.0).fit(rows[["b", "a"]].assign(a=[0, 1, None, 0, 1]))


@pytest.mark.parametrize("kind", ["object", "category", "Int64", "boolean", "float64", "string"])
def test_dtypes_come_back_beside_missing_cells(kind: str) -> None:
    codes = np.random.default_rng(0).integers(0, 2, (80, 2))
    values: Any = codes.astype(bool) if kind == "boolean" else codes
    frame = pd.DataFrame(values, columns=["a", "b"])
    frame = frame.astype(str).astype(kind) if kind in ("object", "category", "string") else frame.astype(kind)
    holes = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.2)
    fitted = besag.BayesianNetwork("a -> b").fit(holes)
    filled = fitted.impute(holes)
    assert filled.dtypes.tolist() == holes.dtypes.tolist() == fitted.sample(3).dtypes.tolist()
    assert (filled[holes.notna()] == frame[holes.notna()]).to_numpy()[holes.notna()].all()
    assert fitted.predict(holes[["a"]]).dtype == holes["b"].dtype
    assert fitted.predict(holes, ["a", "b"]).dtypes.tolist() == holes.dtypes.tolist()


def test_every_kind_of_missing_cell_is_missing() -> None:
    cells = ["x", "y", "x", None, np.nan, pd.NA, pd.NaT, float("nan")]
    fitted = besag.BayesianNetwork("a -> b").fit(pd.DataFrame({"a": cells, "b": [0, 1] * 4}))
    assert fitted.model_.variable("a").states == ("x", "y")
    np.testing.assert_allclose(fitted.score_samples(pd.DataFrame({"a": cells}))[3:], 0.0, atol=1e-12)


def test_a_row_that_the_structure_rules_out_is_named() -> None:
    model = besag.bayesian_network("a -> b", {"a": 2, "b": 2}, {"b": [[1, 0], [0.5, 0.5]]})
    with pytest.raises(EvidenceError, match="instance 1 has no labelling"):
        besag.em(model, pd.DataFrame({"a": ["1", "0"], "b": ["1", "1"]}))


@pytest.mark.filterwarnings("ignore::besag.errors.DataWarning")
@pytest.mark.parametrize("kind", [besag.BayesianNetwork, besag.MarkovNetwork])
def test_a_row_without_weight_may_be_impossible(kind: Any) -> None:
    rows = pd.DataFrame({"a": ["x", "y", "y", "x"], "b": [None, "u", None, "v"], "c": ["q", "r", "q", "r"]})
    found = kind([("a", "b"), ("b", "c")]).fit(rows, sample_weight=[0, 2, 1, 0])
    alone = kind([("a", "b"), ("b", "c")], states={"a": ["x", "y"], "b": ["u", "v"]})
    alone.fit(rows[1:3], sample_weight=[2, 1])
    assert found.log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=1e-8)
    assert found.log_likelihood_ == pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3), abs=1e-6)
    found.fit(rows, sample_weight=[0, 0, 0, 1])
    assert found.log_likelihood_ == pytest.approx(0.0, abs=1e-6)


def test_weights_that_are_all_zero() -> None:
    model = besag.bayesian_network("A -> B")
    with pytest.raises(ModelError, match="weights must not all be 0"):
        besag.em(model, [[0, -1], [1, 0]], weights=[0, 0])
