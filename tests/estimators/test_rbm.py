"""RBM: scikit-learn's conventions, answers against enumeration, files, and what it refuses."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import besag
from besag.errors import CapabilityError, DataError, ModelError, NumericalError

RNG = np.random.default_rng(0)
PROTOTYPES = RNG.integers(2, size=(3, 8))
WHICH = RNG.integers(3, size=300)
X = (PROTOTYPES[WHICH] ^ (RNG.random((300, 8)) < 0.05)).astype(np.int64)
FRAME = pd.DataFrame(
    {
        "size": np.array(["s", "m", "l"])[WHICH],
        "n": WHICH % 2 + 3,
        "odd": pd.Categorical(np.where(X[:, 0], "yes", "no")),
    }
)


def rbm(**options: Any) -> besag.RBM:
    return besag.RBM(**{"n_hidden": 4, "batch_size": 20, "max_iter": 3, **options})


def all_rows(n: int) -> Any:
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


@pytest.mark.parametrize("objective", ["pcd", "pcd[k=2,n_chains=50]", "contrastive_divergence[k=1]"])
def test_learns_the_law(objective: str) -> None:
    found = rbm(objective=objective, max_iter=150, learning_rate=0.1).fit(X)
    start = rbm(max_iter=0).fit(X)
    entropy = np.log(3) + 8 * 0.199  # nats, at most, of three prototypes whose cells are flipped by 0.05
    assert start.score(X) < -entropy - 1.0
    assert found.score(X) > -entropy - 0.3
    assert_allclose(np.exp(found.score_samples(all_rows(8))).sum(), 1.0, rtol=1e-5)


def test_answers_are_those_of_the_model() -> None:
    found = rbm().fit(X)
    evidence = pd.DataFrame(X[:5], columns=[f"v{i}" for i in range(8)])
    posterior = found.model_.marginals(evidence=evidence)
    hidden = np.stack([posterior[f"h{j}"][:, 1] for j in range(4)], axis=1)
    assert_allclose(found.transform(X[:5]), hidden, rtol=1e-4)
    log_z = found.log_partition()
    assert log_z.method == "exact"
    assert_allclose(log_z, found.model_.log_partition(engine="exact"), rtol=1e-6)
    assert_allclose(-found.free_energy(X[:5]), found.model_.log_partition(evidence=evidence), rtol=1e-5)
    assert_allclose(found.score_samples(X[:5]), -found.free_energy(X[:5]) - log_z)
    assert found.pseudo_likelihood(X).shape == (300,)
    estimate = found.pseudo_likelihood(X, 4, seed=1).mean()
    assert estimate == pytest.approx(found.pseudo_likelihood(X).mean(), rel=0.2)


def test_conventions_of_scikit_learn() -> None:
    given = rbm(learning_rate=0.1, random_state=3)
    assert clone(given).get_params() == given.get_params()
    found = given.fit(X)
    assert (found.components_.shape, found.intercept_hidden_.shape, found.intercept_visible_.shape) == (
        (4, 8),
        (4,),
        (8,),
    )
    assert found.n_features_in_ == 8
    assert found.n_iter_ == 3
    assert found.get_feature_names_out().tolist() == ["rbm0", "rbm1", "rbm2", "rbm3"]
    assert_array_equal(clone(given).fit_transform(X), found.transform(X))
    pipeline = make_pipeline(rbm(max_iter=30, learning_rate=0.1), LogisticRegression()).fit(X, WHICH)
    assert pipeline.score(X, WHICH) > 0.9
    search = GridSearchCV(rbm(monitor_every=None), {"n_hidden": [1, 4]}, cv=2).fit(X)
    assert search.best_params_["n_hidden"] in (1, 4)
    assert_array_equal(pickle.loads(pickle.dumps(found)).transform(X), found.transform(X))


def test_history_has_the_monitors() -> None:
    history = rbm(likelihood_every=20, max_iter=40, learning_rate=0.1).fit(X[:200], held_out=X[200:]).history_
    assert history["iteration"].tolist() == list(range(41))
    assert {"pseudo_likelihood", "reconstruction", "energy_gap", "free_energy_gap", "learning_rate"} < set(history)
    for name in ("log_likelihood", "held_out_log_likelihood"):
        assert history.index[history[name].notna()].tolist() == [0, 20, 40]
        assert history[name].iloc[-1] > history[name].iloc[0]
    assert history["pseudo_likelihood"].iloc[-1] > history["pseudo_likelihood"].iloc[0]
    assert history["reconstruction"].iloc[-1] < history["reconstruction"].iloc[0]
    bare = rbm(monitor_every=None, objective="contrastive_divergence").fit(X).history_
    assert list(bare) == ["iteration", "seconds", "learning_rate"]


def test_a_seed_repeats_the_fit_and_no_seed_does_not() -> None:
    one, other = rbm().fit(X), rbm().fit(X)
    assert_array_equal(one.components_, other.components_)
    assert_array_equal(one.sample(5, seed=1), other.sample(5, seed=1))
    assert not np.array_equal(one.sample(50, seed=1), one.sample(50, seed=2))
    assert not np.array_equal(rbm(random_state=None).fit(X).components_, one.components_)
    assert_array_equal(*(rbm(random_state=np.random.RandomState(1)).fit(X).components_ for _ in range(2)))


def test_categorical_columns() -> None:
    found = rbm(visible="categorical", max_iter=200, learning_rate=0.1, n_hidden=6).fit(FRAME)
    assert found.components_.shape == (6, 3 + 2 + 2)
    drawn = found.sample(200, n_sweeps=100)
    assert list(drawn) == ["size", "n", "odd"]
    assert set(drawn["size"]) <= {"s", "m", "l"}
    assert drawn["odd"].dtype == FRAME["odd"].dtype
    share = FRAME.groupby("size")["n"].mean()
    assert_allclose(drawn.groupby("size")["n"].mean(), share, atol=0.15)  # which goes with which is learnt
    assert_allclose(found.log_partition(), found.model_.log_partition(engine="exact"), rtol=1e-6)
    assert_allclose(found.reconstruct(FRAME)[:, :3].sum(axis=1), 1.0, rtol=1e-5)
    shuffled = FRAME[["odd", "size", "n"]]
    assert_array_equal(found.transform(shuffled), found.transform(FRAME))


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_tables_of_arrow(kind: str) -> None:
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    library = pytest.importorskip(kind)
    table = library.table(dict(frame.items())) if kind == "pyarrow" else library.DataFrame(dict(frame.items()))
    found, same = rbm().fit(table), rbm().fit(frame)
    assert_array_equal(found.components_, same.components_)
    assert_array_equal(found.transform(table.select(list("hgfedcba"))), same.transform(frame))
    assert list(found.sample(2)) == list(frame)


def test_samples_follow_the_machine() -> None:
    found = rbm(max_iter=100, learning_rate=0.1).fit(X)
    rows, n = found.sample(4000, n_sweeps=300, seed=2), 4000
    law = np.exp(found.score_samples(all_rows(8)))
    counted = np.bincount(rows @ (1 << np.arange(8)), minlength=256) / n
    assert (np.abs(counted - law) < 5 * np.sqrt(law * (1 - law) / n) + 2e-3).all()
    assert found.gibbs(X, 2).shape == X.shape


def test_files_and_going_on(tmp_path: Any) -> None:
    for given, data in (({}, X), ({"visible": "categorical"}, FRAME)):
        found = rbm(**given, momentum=0.5).fit(data)
        found.save(tmp_path / "rbm.npz")
        again = besag.load(tmp_path / "rbm.npz")
        assert_array_equal(again.transform(data), found.transform(data))
        assert again.get_params() == found.get_params()
        pd.testing.assert_frame_equal(again.history_, found.history_)
        found.partial_fit(data)
        assert_array_equal(again.partial_fit(data).components_, found.components_)
        pd.testing.assert_frame_equal(pd.DataFrame(again.sample(3)), pd.DataFrame(found.sample(3)))


def test_a_checkpoint_goes_on_as_if_nothing_had_been(tmp_path: Any) -> None:
    path = tmp_path / "fit.npz"
    whole = rbm(max_iter=6, momentum=0.5, schedule="constant").fit(X)
    rbm(max_iter=2, momentum=0.5, schedule="constant").fit(X, checkpoint=path)
    parts = rbm(max_iter=6, momentum=0.5, schedule="constant").fit(X, checkpoint=path)
    assert_array_equal(parts.components_, whole.components_)
    columns = ["iteration", "pseudo_likelihood", "energy_gap"]
    pd.testing.assert_frame_equal(parts.history_[columns], whole.history_[columns])
    with pytest.raises(ModelError, match="the checkpoint is of another fit"):
        rbm(n_hidden=5).fit(X, checkpoint=path)
    with pytest.raises(ModelError, match="another fit: its rows is 300, expected 100"):
        rbm().fit(X[:100], checkpoint=path)
    path.unlink()
    rbm(objective="contrastive_divergence").fit(X, checkpoint=path)
    with pytest.raises(ModelError, match="another fit: its batch_size is 20, expected 10"):
        rbm(objective="contrastive_divergence", batch_size=10).fit(X, checkpoint=path)


def test_ways_to_end() -> None:
    seen = list[float]()

    def after_two(row: Any) -> bool:
        seen.append(row["iteration"])
        return len(seen) == 2

    found = rbm(max_iter=10).fit(X, on_step=after_two)
    assert (found.stopped_, seen, found.n_iter_) == ("early_stopping", [1.0, 2.0], 2)
    assert rbm(max_iter=10_000, time_limit=0.05).fit(X).stopped_ == "time_limit"
    assert rbm().fit(X).stopped_ == "max_iterations"

    def stop(row: Any) -> None:
        raise KeyboardInterrupt

    assert rbm().fit(X, on_step=stop).stopped_ == "interrupted"


def test_partial_fit_begins_and_goes_on() -> None:
    found = rbm(learning_rate=0.1)
    for _ in range(60):
        found.partial_fit(X[:150]).partial_fit(X[150:])
    assert found.n_iter_ == 120
    assert found.score(X) > rbm(max_iter=0).fit(X).score(X) + 1


def test_partial_fit_counts_on_and_heeds_what_was_set() -> None:
    found = rbm(max_iter=2).fit(X).partial_fit(X)
    assert found.history_["iteration"].tolist() == [0, 1, 2, 3]
    before = found.components_
    found.set_params(learning_rate=1e-12).partial_fit(X)
    assert_array_equal(found.components_, before)
    found.set_params(learning_rate=0.1, momentum=0.5, objective="contrastive_divergence").partial_fit(X)
    assert not np.array_equal(found.components_, before)
    assert found.n_iter_ == 5
    for name, value, learnt in (("n_hidden", 7, 4), ("visible", "categorical", "binary")):
        with pytest.raises(ModelError, match=f"{name} is {value!r} now.*begun with {learnt!r}; call fit"):
            found.set_params(**{name: value}).partial_fit(X)
        found.set_params(**{name: learnt})


@pytest.mark.parametrize(
    "options", [{"momentum": 0.9, "schedule": "cosine"}, {"schedule": "inverse", "weight_decay": 1e-3}]
)
def test_schedules(options: Any) -> None:
    history = rbm(**options, max_iter=5, learning_rate=0.1).fit(X).history_
    rates = history["learning_rate"].iloc[1:]
    assert (rates.diff().iloc[1:] < 0).all()
    assert rates.iloc[0] < 0.1


def test_progress(capsys: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm(max_iter=60, n_hidden=300, verbose=True).fit(np.tile(X, (20, 1)))
    assert "RBM: epoch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([[0, 1], [np.nan, 1]], "the one in row 1, column 'v0' is NaN; impute"),
        ([[0, 1], [2, 1]], r"from 0 to 1, got 2 in row 1, column 'v0'.*categorical"),
        ([[0, -0.5]], "from 0 to 1, got -0.5"),
        ([0, 1], r"shape \(N, V\)"),
        (np.zeros((0, 3)), "at least one row"),
        ([["a", "b"]], "numbers from 0 to 1"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), "two columns named 'a'"),
    ],
)
def test_bad_rows(given: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        rbm().fit(given)


def test_no_columns() -> None:
    with pytest.raises(DataError, match="the table has no columns"):
        rbm(visible="categorical").fit([[], []])


def test_bad_questions() -> None:
    found = rbm().fit(X)
    for ask in (
        found.sample,
        found.log_partition,
        lambda seed: found.gibbs(X, seed=seed),
        lambda seed: found.pseudo_likelihood(X, seed=seed),
    ):
        for seed in (-1, 1.5, "x"):
            with pytest.raises(CapabilityError, match="seed must be a whole number of at least 0"):
                ask(seed=seed)
    with pytest.raises(CapabilityError, match="time_limit must be a positive number"):
        found.log_partition(time_limit="a minute")
    for n_sweeps in (0, -1, 1.5):
        with pytest.raises(ModelError, match="n_sweeps must be a whole number of at least 1"):
            found.gibbs(X, n_sweeps)


def test_rows_that_are_not_those_learnt_from() -> None:
    found = rbm().fit(X)
    with pytest.raises(DataError, match="X has 7 features, but RBM is expecting 8"):
        found.transform(X[:, :7])
    named = rbm(visible="categorical").fit(FRAME)
    with pytest.raises(besag.errors.EvidenceError, match=r"row 0.*'xl'"):
        named.transform(FRAME.assign(size="xl"))
    with pytest.raises(DataError, match="has no column 'odd'"):
        named.transform(FRAME[["size", "n"]])
    with pytest.raises(DataError, match="column 'odd' is missing"):
        named.transform(FRAME.assign(odd=[None] * 300))
    with pytest.raises(besag.errors.ModelError, match="not fitted yet; call fit"):
        rbm().transform(X)
    assert not hasattr(rbm(), "components_")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_hidden": 0}, "n_hidden must be a whole number of at least 1"),
        ({"batch_size": 2.5}, "batch_size must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"momentum": 1.0}, "momentum must be a number from 0 on and below 1"),
        ({"schedule": "linear"}, "schedule must be one of 'constant'"),
        ({"visible": "gaussian"}, "visible must be one of 'binary', 'categorical'"),
        ({"objective": "likelihood"}, "objective must be pcd or contrastive_divergence"),
        ({"random_state": -1}, "random_state must be"),
        ({"monitor_every": 0}, "monitor_every must be"),
        ({"time_limit": -1}, "time_limit must be"),
    ],
)
def test_bad_parameters(options: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        rbm(**options).fit(X)


def test_steps_that_are_too_long() -> None:
    with pytest.raises(NumericalError, match="take a learning_rate below"):
        rbm(learning_rate=3e38, max_iter=20).fit(X)
