"""Mixture: posteriors and scores against sums by hand, learning, missing cells, files, conventions."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.data.dataset import Dataset
from besag.errors import DataError, EvidenceError, ModelError
from besag.infer.engine import ENGINES
from besag.learn.hidden.expect import ExactExpectation, Posterior
from besag.learn.hidden.latent_class import LatentClass
from besag.learn.hidden.steps import Visible
from besag.learn.losses.likelihood import Likelihood

FEW = pytest.mark.filterwarnings("ignore:EM stopped")


def table(n: int = 300, seed: int = 0, missing: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of three components over three columns, and the components."""
    rng = np.random.default_rng(seed)
    z = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    likely = np.array([["a", "x", "p"], ["b", "y", "q"], ["c", "z", "r"]])
    columns = {}
    for c, name in enumerate(("one", "two", "three")):
        other = rng.choice(np.unique(likely[:, c]), n)
        columns[name] = np.where(rng.random(n) < 0.8, likely[z, c], other)
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < missing), z


def by_hand(mixture: besag.Mixture, rows: pd.DataFrame) -> np.ndarray:
    """p(z, known cells), (N, K)."""
    joint = np.tile(mixture.weights_, (len(rows), 1))
    for name, p in mixture.components_.items():
        for n, value in enumerate(rows[name]):
            joint[n] *= 1.0 if pd.isna(value) else p[value]
    return joint


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_answers_are_sums_over_components(missing: float) -> None:
    rows, _ = table(missing=missing)
    mixture = besag.Mixture(3, "laplace").fit(rows)
    joint = by_hand(mixture, rows)
    assert_allclose(mixture.score_samples(rows), np.log(joint.sum(axis=1)), rtol=1e-10, atol=1e-14)
    assert_allclose(mixture.predict_proba(rows), joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    assert_array_equal(mixture.predict(rows), joint.argmax(axis=1))
    assert_allclose(mixture.log_likelihood_, np.log(joint.sum(axis=1)).sum(), rtol=1e-10)
    assert_allclose(mixture.score(rows), mixture.log_likelihood_ / len(rows), rtol=1e-10)


def test_components_are_found_and_ordered() -> None:
    rows, z = table(2000)
    mixture = besag.Mixture(3).fit(rows)
    assert (np.diff(mixture.weights_) <= 0).all()
    assert_allclose(mixture.weights_, [0.5, 0.3, 0.2], atol=0.12)
    assert (mixture.predict(rows) == z).mean() > 0.75


def test_bic_takes_away_what_parameters_cost() -> None:
    rows, _ = table(2000)
    found = {k: besag.Mixture(k).fit(rows) for k in (1, 2, 3, 4)}
    assert [found[k].n_parameters_ for k in (1, 2, 3)] == [6, 13, 20]
    for mixture in found.values():
        cost = 0.5 * np.log(2000) * mixture.n_parameters_
        assert_allclose(mixture.bic(), mixture.log_likelihood_ - cost, rtol=1e-12)
        assert_allclose(mixture.bic(rows), mixture.bic(), rtol=1e-9)
        assert_allclose(mixture.aic(), mixture.log_likelihood_ - mixture.n_parameters_, rtol=1e-12)
    shares = sum(np.log(rows[name].value_counts(normalize=True)[rows[name]]).sum() for name in rows)
    assert_allclose(found[1].log_likelihood_, shares, rtol=1e-9)
    assert found[4].log_likelihood_ >= found[2].log_likelihood_


def latent(missing: float) -> tuple[besag.Model, np.ndarray]:
    rng = np.random.default_rng(4)
    model = besag.bayesian_network(
        "z -> a; z -> b; z -> c",
        {"z": 3, "a": 2, "b": 3, "c": 2},
        {
            "z": rng.dirichlet(np.ones(3)),
            "a": [[0.5, 0.5], [0.0, 1.0], [0.9, 0.1]],
            "b": rng.dirichlet(np.ones(3), 3),
            "c": rng.dirichlet(np.ones(2), 3),
        },
    )
    codes = np.stack([column.cat.codes.to_numpy() for _, column in model.sample(80, seed=2).items()], axis=1)
    codes = np.where(rng.random(codes.shape) < missing, -1, codes)
    codes[:, 0] = -1
    return model, codes.astype(np.int64)


@FEW
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_step_of_latent_classes_is_that_of_any_network(missing: float) -> None:
    model, codes = latent(missing)
    own, general = (besag.em(model, codes, engine=engine, max_iterations=6, tolerance=0) for engine in (None, "exact"))
    assert_allclose(own.theta, general.theta, rtol=1e-9, atol=1e-11)
    columns = ["log_likelihood", "h", "dual"]
    assert_allclose(own.history[columns], general.history[columns], rtol=1e-10)


def test_latent_classes_are_found_by_themselves() -> None:
    def step(model: besag.Model, codes: Any) -> Any:
        visible = Visible(model, Dataset.rows(model, codes).all, Likelihood(ENGINES.read("auto"), model.support))
        return ExactExpectation().at_work(visible, 1)

    model, codes = latent(0.2)
    assert type(step(model, codes)) is LatentClass
    codes[0] = [0, -1, 0, 1]
    assert type(step(model, codes)) is Posterior  # some rows give it
    other = besag.bayesian_network("z -> a; z -> b -> c")
    assert type(step(other, np.array([[-1, 0, 1, 1]]))) is Posterior


def test_dtypes_come_back_and_missing_cells_are_filled() -> None:
    rows, _ = table(400, missing=0.2)
    mixture = besag.Mixture(3, "laplace").fit(rows)
    drawn, components = mixture.sample(2000, random_state=1)
    assert list(drawn.columns) == ["one", "two", "three"]
    assert_allclose(np.bincount(components, minlength=3) / 2000, mixture.weights_, atol=0.05)
    filled = mixture.impute(rows)
    assert not filled.isna().to_numpy().any()
    known = ~rows.isna()
    assert (filled.where(known) == rows.where(known)).to_numpy()[known.to_numpy()].all()


def test_weights_are_rows_so_often() -> None:
    rows, _ = table(60)
    often = np.arange(60) % 3
    twice = rows.loc[np.repeat(np.arange(60), often)]
    one = besag.Mixture(2).fit(rows, sample_weight=often)
    other = besag.Mixture(2).fit(twice)
    assert_allclose(one.log_likelihood_, other.log_likelihood_, rtol=1e-9)
    assert_allclose(one.bic(), other.bic(), rtol=1e-9)


def test_files_and_conventions(tmp_path: Path) -> None:
    from sklearn.base import clone

    rows, _ = table(100)
    mixture = besag.Mixture(2, "laplace", random_state=3).fit(rows)
    mixture.save(tmp_path / "mixture.npz")
    read = besag.load(tmp_path / "mixture.npz")
    assert_array_equal(read.predict_proba(rows), mixture.predict_proba(rows))
    assert (read.bic(), read.stopped_) == (mixture.bic(), mixture.stopped_)
    pd.testing.assert_frame_equal(read.history_, mixture.history_)
    assert clone(mixture).get_params() == mixture.get_params()
    assert mixture.history_["log_likelihood"].diff().min() > -1e-6


def test_a_column_called_component() -> None:
    rows, _ = table(50)
    mixture = besag.Mixture(2).fit(rows.rename(columns={"one": "component"}))
    assert mixture.predict(rows.rename(columns={"one": "component"})).shape == (50,)
    assert "component_" in mixture.model_.variables.names_at(range(4))


@pytest.mark.parametrize(
    ("options", "rows", "kind", "match"),
    [
        ({"n_components": 0}, [["a"]], ModelError, "n_components must be a whole number from 1 on, got 0"),
        ({"random_state": 0.5}, [["a"]], ModelError, "random_state must be a whole number from 0 on, None, .* got 0.5"),
        ({"states": 3}, [["a"]], ModelError, "states must be {name: states or cardinality}"),
        ({}, pd.DataFrame({"A": []}), DataError, "no value|no rows"),
        ({}, pd.DataFrame(index=[0, 1]), DataError, "no columns"),
        ({"states": {"A": ["x"]}}, pd.DataFrame({"A": ["x", "y"]}), EvidenceError, "no state 'y'|'y'"),
    ],
)
def test_bad_input(options: Any, rows: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        besag.Mixture(**options).fit(rows)


@FEW
@pytest.mark.parametrize("states", [4, [0, 1, 2, 3], ("0", "1", "2", "3")])
def test_states_are_declared_as_of_networks(states: Any) -> None:
    rows = pd.DataFrame({"a": [0, 1, 2, 0], "b": list("xyxx")})
    mixture = besag.Mixture(2, states={"a": states}, max_iter=3).fit(rows)
    assert mixture.model_.variable("a").states == ("0", "1", "2", "3")
    assert mixture.components_["a"].shape == (2, 4)
