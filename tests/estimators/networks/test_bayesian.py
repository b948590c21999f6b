"""BayesianNetwork: parameters against plain counting and published scores, and everything that hangs on them."""

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from sklearn.base import clone

import besag
from besag.errors import DataError, DataWarning, EvidenceError, ModelError
from besag.graph.directed.pdag import PDAG

TEXT = "cloudy -> rain -> wet_grass <- sprinkler <- cloudy"
TRUE = besag.data.bundled("sprinkler")
ROWS = TRUE.sample(500, seed=1)


def holes(rows: pd.DataFrame, seed: int = 0, share: float = 0.3) -> pd.DataFrame:
    return rows.mask(np.random.default_rng(seed).random(rows.shape) < share)


@pytest.fixture(scope="module")
def network() -> besag.BayesianNetwork:
    return besag.BayesianNetwork(TEXT).fit(ROWS)


def by_pandas(rows: pd.DataFrame, model: Any, name: str, weights: Any = None) -> Any:
    """Counts with axes (parents..., child)."""
    scope = [*model.parents(name), name]
    shape = [len(model.variable(v).states) for v in scope]
    table = np.zeros(shape)
    codes = [pd.Categorical(rows[v].astype(str), model.variable(v).states).codes for v in scope]
    np.add.at(table, tuple(codes), 1.0 if weights is None else weights)
    return table


def test_parameters_are_shares(network: besag.BayesianNetwork) -> None:
    total = 0.0
    for name in ROWS:
        table = by_pandas(ROWS, network.model_, name)
        assert np.array_equal(network.counts_[name], table)
        cpt = table / table.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(network.model_.cpt(name), cpt, rtol=1e-12, atol=1e-12)
        total += (table[table > 0] * np.log(cpt[table > 0])).sum()
    assert network.log_likelihood_ == pytest.approx(total, abs=1e-8)
    assert network.model_.log_probability(ROWS).sum() == pytest.approx(total, abs=1e-8)
    assert network.score_samples(ROWS) == pytest.approx(network.model_.log_probability(ROWS))


def test_weights_count_rows_so_often() -> None:
    weights = np.random.default_rng(0).integers(0, 4, len(ROWS))
    fitted = besag.BayesianNetwork(TEXT).fit(ROWS, sample_weight=weights)
    repeated = besag.BayesianNetwork(TEXT).fit(ROWS.loc[np.repeat(np.arange(len(ROWS)), weights)])
    for name in ROWS:
        assert np.array_equal(fitted.counts_[name], repeated.counts_[name])
    assert fitted.log_likelihood_ == pytest.approx(repeated.log_likelihood_)
    assert fitted.bic() == pytest.approx(repeated.bic())


@pytest.mark.parametrize(
    ("prior", "strength", "pseudo"),
    [
        ("laplace", None, lambda size: 1.0),
        ("k2", None, lambda size: 1.0),
        ("dirichlet[count=0.5]", None, lambda size: 0.5),
        ("bdeu", 4.0, lambda size: 4.0 / size),
        ("bdeu[strength=4]", None, lambda size: 4.0 / size),
    ],
)
def test_priors_by_name(prior: str, strength: Any, pseudo: Any) -> None:
    fitted = besag.BayesianNetwork(TEXT, prior, prior_strength=strength).fit(ROWS)
    for name in ROWS:
        table = by_pandas(ROWS, fitted.model_, name)
        table += pseudo(table.size)
        np.testing.assert_allclose(fitted.model_.cpt(name), table / table.sum(axis=-1, keepdims=True), rtol=1e-12)


def test_a_model_as_prior_and_structure() -> None:
    fitted = besag.BayesianNetwork(TRUE, TRUE, prior_strength=7.0).fit(ROWS)
    assert fitted.model_.variables.names_at(range(4)) == TRUE.variables.names_at(range(4))
    for name in ROWS:
        table = by_pandas(ROWS, TRUE, name) + 7.0 * TRUE.joint([*TRUE.parents(name), name])
        np.testing.assert_allclose(fitted.model_.cpt(name), table / table.sum(axis=-1, keepdims=True), rtol=1e-9)
    with pytest.raises(ModelError, match="has states"):
        besag.BayesianNetwork(TEXT, TRUE).fit(ROWS.astype(str).replace("yes", "oh yes"))
    with pytest.raises(ModelError, match="prior_strength must be a number above 0"):
        besag.BayesianNetwork(TEXT, TRUE, prior_strength=-1).fit(ROWS)


def test_structures_of_every_kind(network: besag.BayesianNetwork) -> None:
    edges = [("cloudy", "rain"), ("rain", "wet_grass"), ("sprinkler", "wet_grass"), ("cloudy", "sprinkler")]
    for structure in (edges, nx.DiGraph(edges)):
        fitted = besag.BayesianNetwork(structure).fit(ROWS)
        assert fitted.log_likelihood_ == pytest.approx(network.log_likelihood_)
        assert sorted(fitted.edges_) == sorted(edges)
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(ROWS)
    drawn = PDAG.from_edges([("rain", "wet_grass"), ("sprinkler", "wet_grass")], [("cloudy", "rain")], names=list(ROWS))
    found = besag.BayesianNetwork(drawn).fit(ROWS)
    assert ("rain", "wet_grass") in found.edges_
    assert ("cloudy", "rain") in found.edges_ or ("rain", "cloudy") in found.edges_
    assert besag.BayesianNetwork(graph).fit(ROWS).edges_ == []


def test_published_scores(data_dir: Path) -> None:
    file = next((data_dir / "bn_learning" / "bnlearn_r_data").glob("learning*test*.csv.gz"))
    with gzip.open(file) as lines:
        rows = pd.read_csv(lines)
    fitted = besag.BayesianNetwork("A -> B; A -> D <- C; B -> E <- F").fit(rows)
    assert fitted.bdeu(strength=1.0) == pytest.approx(-24028.09477835351, abs=1e-8)
    assert fitted.bic() == pytest.approx(-24006.734232, abs=1e-6)


def test_scores_against_their_definitions(network: besag.BayesianNetwork) -> None:
    free = 1 + 2 + 2 + 4
    assert network.aic() == pytest.approx(network.log_likelihood_ - free)
    assert network.bic(ROWS) == pytest.approx(network.log_likelihood_ - free * np.log(len(ROWS)) / 2)
    k2 = 0.0
    for name in ROWS:
        rows = by_pandas(ROWS, network.model_, name).reshape(-1, 2)
        k2 += (gammaln(2) - gammaln(rows.sum(axis=1) + 2) + gammaln(rows + 1).sum(axis=1)).sum()
    assert network.k2() == pytest.approx(k2)
    with pytest.raises(DataError, match="needs complete rows"):
        network.bic(holes(ROWS))


def test_unseen_configurations_are_uniform_and_reported() -> None:
    rows = pd.DataFrame({"a": ["0", "0", "1"], "b": ["x", "y", "x"], "c": ["u", "v", "w"]})
    with pytest.warns(DataWarning, match="1 configurations of parents are never seen, such as a=1, b=y of 'c'"):
        fitted = besag.BayesianNetwork("a -> c <- b").fit(rows)
    assert fitted.model_.cpt("c")[1, 1].tolist() == pytest.approx([1 / 3] * 3)
    assert fitted.unseen_.to_dict("index") == {"c": {"configurations": 4, "unseen": 1, "first": "a=1, b=y"}}


def test_parts_add_up(network: besag.BayesianNetwork, tmp_path: Path, forced: Any) -> None:
    chunks = {"data.tables.files.CHUNK_ROWS": 100, "data.tables.files.CHUNK_BYTES": 3000}
    forced({**chunks, "estimators.networks.bayesian.KEPT_PARTS": 2})
    parts = besag.BayesianNetwork(TEXT)
    for start in range(0, 500, 120):
        parts.partial_fit(ROWS.iloc[start : start + 120])
    halves = [besag.BayesianNetwork(TEXT).fit(ROWS.iloc[part]) for part in (slice(0, 200), slice(200, 500))]
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    ROWS.to_parquet(tmp_path / "rows.parquet", index=False)
    files = [besag.BayesianNetwork(TEXT).fit(tmp_path / name) for name in ("rows.csv", "rows.parquet")]
    for other in (parts, halves[0].merge(halves[1]), *files):
        assert other.log_likelihood_ == pytest.approx(network.log_likelihood_)
        assert all(np.array_equal(other.counts_[name], network.counts_[name]) for name in ROWS)
    with pytest.raises(ModelError, match="same structure"):
        parts.merge(besag.BayesianNetwork("cloudy -> rain -> wet_grass <- sprinkler").fit(ROWS))


def test_later_parts_may_bring_states() -> None:
    rows = pd.DataFrame({"a": [2, 2, 10, 1], "b": ["y", "z", "x", "z"]})
    with pytest.warns(DataWarning):
        parts = besag.BayesianNetwork("a -> b").partial_fit(rows[:2])
    parts.partial_fit(rows[2:])
    assert parts.model_.variable("a").states == ("1", "2", "10")
    assert parts.counts_["b"].tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 0]]
    declared = besag.BayesianNetwork("a -> b", "laplace", states={"a": ["1", "2"]}).partial_fit(rows[:2])
    with pytest.raises(EvidenceError, match=r"row 2: 'a' has no state 10"):
        declared.partial_fit(rows[2:])


def test_dtypes_come_back() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "i": rng.integers(3, 6, 200).astype(np.int16),
            "b": rng.random(200) < 0.5,
            "f": rng.integers(0, 2, 200) / 2,
            "s": rng.choice(["u", "v"], 200),
            "c": pd.Categorical(rng.choice(["lo", "hi"], 200), ["lo", "hi"], ordered=True),
            "n": pd.array(rng.integers(0, 2, 200), "Int64"),
        }
    )
    fitted = besag.BayesianNetwork("i -> b -> f; s -> c -> n", "laplace").fit(rows)
    assert fitted.sample(20).dtypes.to_dict() == rows.dtypes.to_dict()
    gaps = rows.astype(object).mask(rng.random(rows.shape) < 0.3)
    for method in ("most_probable", "draw"):
        filled = fitted.impute(gaps, method)  # type: ignore[arg-type]
        assert filled.dtypes.to_dict() == rows.dtypes.to_dict()
        known = gaps.notna()
        assert (filled.astype(object).where(known) == rows.astype(object).where(known)).sum().sum() == known.sum().sum()
    predicted = fitted.predict(rows, ["i", "c"])
    assert predicted.dtypes.to_dict() == rows[["i", "c"]].dtypes.to_dict()


def test_answers_against_enumeration(network: besag.BayesianNetwork) -> None:
    gaps = holes(ROWS[:60])
    states = network.model_.to_frame()
    for target in ("rain", "wet_grass"):
        found = network.predict_proba(gaps, target)
        best = network.predict(gaps, target)
        for i in range(len(gaps)):
            known = gaps.iloc[i].drop(target).dropna()
            fits = states[(states[known.index].astype(str) == known.astype(str)).all(axis=1)]
            p = fits.groupby(target, observed=False)["p"].sum().to_numpy()
            np.testing.assert_allclose(found[i], p / p.sum(), atol=1e-9)
            assert best[i] == network.model_.variable(target).states[int(found[i].argmax())]
    scores, filled = network.score_samples(gaps), network.impute(gaps)
    for i in range(len(gaps)):
        known = gaps.iloc[i].dropna()
        fits = states[(states[known.index].astype(str) == known.astype(str)).all(axis=1)]
        assert scores[i] == pytest.approx(np.log(fits["p"].sum()))
        row = fits[(fits[ROWS.columns].astype(str) == filled.iloc[i].astype(str)).all(axis=1)]
        assert row["p"].iloc[0] == pytest.approx(fits["p"].max())


def test_draws_of_missing_cells_have_their_distribution(network: besag.BayesianNetwork) -> None:
    gaps = pd.DataFrame({"wet_grass": ["yes"] * 4000})
    filled = network._frame(network._drawn(network._read(gaps), 3).T)
    expected = network.model_.marginals(evidence={"wet_grass": "yes"})["rain"][1]
    assert (filled["rain"] == "yes").mean() == pytest.approx(expected, abs=4.5 * np.sqrt(0.25 / 4000))


def test_absent_columns_are_predicted(network: besag.BayesianNetwork) -> None:
    alone = network.predict(ROWS.drop(columns="rain"))
    assert np.array_equal(alone, network.predict(ROWS, "rain"))
    both = network.predict(ROWS[["cloudy", "wet_grass"]])
    assert list(both) == ["sprinkler", "rain"]
    with pytest.raises(ModelError, match="say which is the target"):
        network.predict(ROWS)


def test_a_row_that_cannot_be() -> None:
    fitted = besag.BayesianNetwork("a -> b -> c").fit(pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": [0, 1]}))
    row = pd.DataFrame({"a": [0, 0], "c": [0, 1]}, index=["fine", "odd"])
    assert fitted.score_samples(pd.DataFrame({"a": [0], "b": [1], "c": [1]})).tolist() == [-np.inf]
    with pytest.raises(EvidenceError, match=r"row 'odd' has probability zero.*prior"):
        fitted.predict_proba(row, "b")


def test_models_from_the_posterior() -> None:
    rows = pd.DataFrame({"a": ["0"] * 30 + ["1"] * 10, "b": ["0", "1"] * 20})
    fitted = besag.BayesianNetwork("a -> b", "dirichlet[count=0.5]").fit(rows)
    drawn = fitted.sample_models(4000, random_state=1)
    p = np.array([model.cpt("a")[1] for model in drawn])
    alpha, beta = 10.5, 30.5
    mean, variance = alpha / (alpha + beta), alpha * beta / (alpha + beta) ** 2 / (alpha + beta + 1)
    assert p.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / 4000))
    assert p.var() == pytest.approx(variance, rel=0.15)
    assert all(model.graph is drawn[0].graph for model in drawn[:5])
    flat = besag.BayesianNetwork("a -> b").fit(rows).sample_models(4000)
    assert np.mean([model.cpt("a")[1] for model in flat]) == pytest.approx(11 / 42, abs=0.005)


def test_intervals_hold_what_they_say() -> None:
    """In 150 data sets from networks drawn from the prior, 90% intervals hold the truth 120 to 148 times: 4 sigma."""
    rng, hits = np.random.default_rng(5), 0
    for seed in range(150):
        cpts = {"a": rng.dirichlet([1, 1]), "b": rng.dirichlet([1, 1], size=2)}
        truth = besag.bayesian_network("a -> b", cpts=cpts)
        rows = truth.sample(40, seed=seed)
        fitted = besag.BayesianNetwork(truth, "k2").fit(rows)
        ask = lambda model: model.cpt("a") @ model.cpt("b")[:, 1]  # noqa: E731
        found = fitted.interval(ask, 0.9, n_models=100, random_state=seed)
        hits += bool(found.low <= ask(truth) <= found.high)
    assert 120 <= hits <= 148


def test_queries_of_intervals(network: besag.BayesianNetwork) -> None:
    asked = network.interval({"rain": "yes"}, evidence={"wet_grass": "yes"}, n_models=50)
    whole = network.interval("rain", evidence={"wet_grass": "yes"}, n_models=50)
    own = network.interval(lambda model: model.marginals(evidence={"wet_grass": "yes"})["rain"], n_models=50)
    assert asked.value == pytest.approx(network.model_.marginals(evidence={"wet_grass": "yes"})["rain"][1])
    for found in (whole, own):
        assert found.low[1] == pytest.approx(float(asked.low))
        assert found.high[1] == pytest.approx(float(asked.high))
    assert repr(asked).startswith("CredibleInterval(0.")
    assert "level=0.95" in repr(whole)
    with pytest.raises(ModelError, match="level must be"):
        network.interval("rain", 95)
    with pytest.raises(ModelError, match="a query is"):
        network.interval(3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="has no state 'maybe'"):
        network.interval({"rain": "maybe"}, n_models=2)


@pytest.mark.parametrize("prior", [None, "bdeu[strength=3]", TRUE])
def test_files(tmp_path: Path, prior: Any) -> None:
    fitted = besag.BayesianNetwork(TRUE, prior).fit(ROWS)
    fitted.save(tmp_path / "network.npz")
    read = besag.load(tmp_path / "network.npz")
    assert read.log_likelihood_ == fitted.log_likelihood_
    assert read.edges_ == fitted.edges_
    assert np.array_equal(read.predict_proba(ROWS, "rain"), fitted.predict_proba(ROWS, "rain"))
    assert read.sample(30).equals(fitted.sample(30))
    assert np.array_equal(read.sample_models(1)[0].theta, fitted.sample_models(1)[0].theta)
    read.partial_fit(ROWS)
    assert read.log_likelihood_ == pytest.approx(2 * fitted.log_likelihood_, rel=1e-3)


def test_scikit_learn_conventions() -> None:
    fitted = besag.BayesianNetwork(TEXT, "laplace", max_parents=2)
    copy = clone(fitted)
    assert repr(copy) == repr(fitted)
    assert "prior='laplace'" in repr(fitted)
    assert copy.set_params(prior=None).get_params()["max_parents"] == 2
    with pytest.raises(ModelError, match="not fitted"):
        fitted.sample(1)
    assert fitted.fit(ROWS).feature_names_in_.tolist() == list(ROWS)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.xz", "rows.parquet"])
def test_a_file_of_no_rows(network: besag.BayesianNetwork, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    ROWS[:0].to_parquet(path) if name.endswith("parquet") else ROWS[:0].to_csv(path, index=False)
    assert len(network.predict(path, ROWS.columns[0])) == 0
    for ask in (network.score, besag.BayesianNetwork("hill_climb").fit, besag.BayesianNetwork(TEXT).fit):
        with pytest.raises(DataError, match="the table has no rows"):
            ask(path)


@pytest.mark.parametrize(
    ("rows", "structure", "match"),
    [
        (ROWS.assign(extra="x"), TEXT, "column 'extra' is no variable of the structure"),
        (ROWS.drop(columns="rain"), TEXT, "the structure names 'rain', and the table has no such column"),
        (ROWS[:0], TEXT, "no rows"),
        (ROWS.assign(rain=np.nan), TEXT, "column 'rain' has no value in any row"),
        (ROWS, [("rain", "rain")], "'rain' cannot be its own parent"),
        (ROWS, "cloudy -> rain -> wet_grass -> cloudy; sprinkler", "the edges have a cycle: "),
        (ROWS.assign(rain=np.arange(500) / 7), TEXT, "'rain' holds 500 distinct numbers"),
    ],
)
def test_bad_input(rows: Any, structure: Any, match: str) -> None:
    with pytest.raises((DataError, ModelError), match=match):
        besag.BayesianNetwork(structure).fit(rows)


def test_a_constant_column_has_one_state() -> None:
    with pytest.warns(DataWarning, match="column 'rain' has one value in all rows"):
        fitted = besag.BayesianNetwork(TEXT, "laplace").fit(ROWS.assign(rain="yes"))
    assert fitted.model_.variable("rain").states == ("yes",)
    with pytest.raises(EvidenceError, match="'rain' has no state 'no'"):
        fitted.score_samples(ROWS)


def test_an_expert_and_limits_reach_the_search() -> None:
    rows = besag.data.bundled("asia").sample(2000, seed=4)
    free = besag.BayesianNetwork("hill_climb").fit(rows)
    assert max(free.model_.cpt(name).size for name in rows) > 4
    small = besag.BayesianNetwork("hill_climb", max_entries=4).fit(rows)
    assert max(small.model_.cpt(name).size for name in rows) == 4
    drawn = PDAG.from_edges([("bronc", "smoke")], [("asia", "xray")])
    graph = nx.DiGraph([("bronc", "smoke"), ("asia", "xray"), ("xray", "asia")])
    fits = [besag.BayesianNetwork("tabu", partial=partial).fit(rows).edges_ for partial in (drawn, graph)]
    assert fits[0] == fits[1]
    assert ("bronc", "smoke") in fits[0]
    assert len({("asia", "xray"), ("xray", "asia")} & set(fits[0])) == 1
    pairs = [("bronc", "smoke"), ("asia", "xray")]
    directed = besag.BayesianNetwork("tabu", "bdeu", partial=pairs).fit(rows)
    assert directed.edges_ == besag.BayesianNetwork("tabu", "bdeu", required=pairs).fit(rows).edges_
    with pytest.raises(ModelError, match="expected a PDAG, a networkx graph or pairs, got str"):
        besag.BayesianNetwork("tabu", partial="bronc").fit(rows)
    with pytest.raises(ModelError, match="max_entries must be a number of at least 1, got 0"):
        besag.BayesianNetwork("tabu", max_entries=0).fit(rows)


def test_a_search_is_watched_and_its_expert_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("besag.query.progress.SECONDS", 0.0)
    steps: list[Any] = []
    drawn = PDAG.from_edges([("rain", "cloudy")], [("rain", "sprinkler")])
    fitted = besag.BayesianNetwork(partial=drawn, verbose=True, on_step=steps.append).fit(ROWS)
    assert [step.value for step in steps] == fitted.structure_.trace["value"].tolist()
    assert len(capsys.readouterr().err.splitlines()) == len(steps) > 0
    fitted.save(tmp_path / "network.npz")
    read = besag.load(tmp_path / "network.npz")
    assert (read.partial.edges, read.partial.undirected) == (drawn.edges, drawn.undirected)
    assert read.on_step is None
    assert read.fit(ROWS).edges_ == fitted.edges_


def test_columns_that_name_rows_are_told() -> None:
    rows = besag.data.bundled("sprinkler").sample(60, seed=1)[["rain", "wet_grass"]]
    named = rows.assign(visit=[f"V{i:03}" for i in range(60)], day=np.arange(60) // 2)
    for estimator in (besag.BayesianNetwork("hill_climb"), besag.MarkovNetwork([("rain", "wet_grass")], l2=0.1)):
        with pytest.warns(DataWarning, match=r"column 'visit' has 60 different values in 60 rows.*columns='visit'"):
            estimator.fit(named.drop(columns="day"))
    with pytest.warns(DataWarning, match=r"columns \['visit', 'day'\] have 30 different values or more in 60 rows"):
        besag.BayesianNetwork("hill_climb").fit(named)
    besag.BayesianNetwork("hill_climb").fit(named.assign(day=np.arange(60) // 5)[["rain", "day"]])
    besag.BayesianNetwork("hill_climb", states={"day": range(30)}).fit(named[["rain", "day"]])  # they are meant


@pytest.mark.parametrize("network", [besag.BayesianNetwork(TEXT), besag.MarkovNetwork("chow_liu")])
def test_no_rows_have_no_score(network: Any) -> None:
    network.fit(ROWS)
    for score in (network.score, network.bic, network.aic):
        with pytest.raises(DataError, match="no rows; a score needs one at least"):
            score(ROWS[:0])
    assert len(network.score_samples(ROWS[:0])) == 0


def test_an_interval_of_a_table_can_be_shown() -> None:
    network = besag.BayesianNetwork(TEXT).fit(ROWS)
    child = next(name for name in ROWS if len(network.model_.parents(name)) == 1)
    found = network.interval(lambda model: model.cpt(child), n_models=5)
    assert repr(found) == f"CredibleInterval(value, low and high of shape {found.value.shape}; level=0.95)"
    assert (found.low <= found.high).all()
