"""log_probability, joint and marginal_map where the engine is not exact: each of them is a distribution."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import besag
from besag import Model
from besag.errors import ApproximationWarning, CapabilityError, ConvergenceWarning, EvidenceError, ModelError
from besag.infer.auto.engine import Auto
from tests.routes import Forced

ENGINES = ["bp", "bp[max_iterations=1,tolerance=0]", "join_graph[clique_bound=8]", "trw", "mean_field", "gibbs"]


def frustrated(n: int = 4, n_states: int = 3) -> Model:
    """A grid with couplings that messages do not settle on."""
    rng = np.random.default_rng(1)
    unary = rng.normal(size=(n, n, n_states))
    return besag.grid((n, n), n_states, unary=unary, pairwise=rng.normal(size=(n_states, n_states)) * 2)


@pytest.fixture
def hopeless(monkeypatch: pytest.MonkeyPatch, forced: Forced) -> None:
    """No model is small enough for exact inference or for join_graph, so that auto asks bp."""
    forced({"infer.auto.approximate.FIRST_SECONDS": 0.0})
    monkeypatch.setattr(Auto, "_is_hopeless", lambda *_: True)
    monkeypatch.setattr("besag.query.verbs.eliminated.buckets", lambda *_: None)


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_verbs_agree_and_sum_to_one(engine: str) -> None:
    model, asked = frustrated(), ["3,3", "0,0"]
    table = model.joint(asked, engine=engine)
    assert_allclose(table.sum(), 1)
    states = pd.DataFrame(list(itertools.product("012", repeat=2)), columns=asked)
    assert_allclose(model.log_probability(states, engine=engine), np.log(table).ravel(), rtol=1e-9)
    assert_allclose(model.joint(asked[::-1], engine=engine), table.T)
    r = model.marginals(engine=engine)
    assert_allclose(model.joint(["3,3"], engine=engine), r["3,3"])
    assert_allclose([model.log_probability({"0,0": s}, engine=engine) for s in "012"], np.log(r["0,0"]))


@pytest.mark.usefixtures("hopeless")
@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
def test_auto_asks_one_engine_and_warns_once() -> None:
    model = frustrated()
    with pytest.warns(ApproximationWarning, match="would be too large") as told:
        table = model.joint(["0,0", "2,2"])
    assert [w.category for w in told].count(ApproximationWarning) == 1
    assert_allclose(table.sum(), 1)
    with pytest.warns(ApproximationWarning) as told:
        values = model.log_probability(pd.DataFrame({"0,0": list("012"), "2,2": list("110")}))
    assert [w.category for w in told].count(ApproximationWarning) == 1
    assert (values < 0).all()
    assert_allclose(np.exp(values), table[[0, 1, 2], [1, 1, 0]], atol=0.02)
    with pytest.warns(ApproximationWarning):
        assert_allclose(model.joint(["0,0"]), model.marginals("0,0")["0,0"], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
def test_more_variables_than_are_chained(forced: Forced) -> None:
    """The difference of two log Z of one call is 0 at the most; so is that of sets of states."""
    model = frustrated()
    exact = model.log_probability({"0,0": "1", "2,2": "0"})
    forced({"query.probability.MOST_CHAINED": 1})
    for engine in ("bp[damping=0.5]", "mean_field", "bp[max_iterations=1,tolerance=0]"):
        assert model.log_probability({"0,0": "1", "2,2": "0"}, engine=engine) <= 0
    assert model.log_probability({"0,0": "1", "2,2": "0"}, engine="bp[damping=0.5]") == pytest.approx(exact, abs=0.5)
    assert model.log_probability({"0,0": {"0", "1"}}, engine="bp") <= 0
    best = model.map().assignment
    assert model.log_probability(best, engine="bp[max_iterations=1,tolerance=0]") <= 0
    assert model.log_probability({"0,0": {"0": 5.0, "1": 5.0, "2": 5.0}}, engine="bp") == pytest.approx(np.log(5))
    with pytest.raises(CapabilityError, match="engine 'gibbs' cannot give log_partition"):
        model.log_probability(best, engine="gibbs")


def test_what_is_not_converged_says_so_once() -> None:
    model, engine = frustrated(), "bp[max_iterations=2]"
    for ask in (
        lambda: model.joint(["0,0", "1,1"], engine=engine),
        lambda: model.marginal_map(["0,0", "1,1"], engine=engine),
        lambda: model.log_probability({"0,0": "1", "1,1": "1"}, engine=engine),
    ):
        with pytest.warns(ConvergenceWarning, match="bp stopped after 2 iterations") as told:
            ask()
        assert len(told) == 1


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
def test_marginal_map_is_the_largest_entry_of_the_joint() -> None:
    model, asked = frustrated(), ["0,0", "2,2"]
    for engine in ("bp", "trw"):
        r, table = model.marginal_map(asked, engine=engine), model.joint(asked, engine=engine)
        best = np.unravel_index(table.argmax(), table.shape)
        assert r.assignment == {name: str(code) for name, code in zip(asked, best, strict=True)}
        assert r.bound == "estimate"
        assert r.energy == pytest.approx(-np.log(table.max()) - model.log_partition(engine=engine))
    with pytest.raises(CapabilityError, match="engine 'gibbs' cannot give log_partition"):
        model.marginal_map(asked, engine="gibbs")


def test_on_a_forest_the_chain_rule_is_exact() -> None:
    """Rows of evidence, targets that they observe, hard zeros and rows that observe different variables."""
    model = besag.bayesian_network("a -> b; b -> c; c -> d").with_cpt("b", [[1.0, 0.0], [0.3, 0.7]])
    frame = pd.DataFrame({"d": ["1", None, "0"], "a": [None, "0", None]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(model.joint(["a", "b"], frame, engine="bp"), model.joint(["a", "b"], frame), atol=1e-9)
        assert_allclose(model.log_probability(frame, engine="bp"), model.log_probability(frame), atol=1e-9)
        assert model.log_probability({"a": "0", "b": "1"}, engine="bp") == -np.inf
        assert model.log_probability({}, engine="bp") == 0
        likely = {"c": {"0": 0.2, "1": 0.4}}
        assert_allclose(model.joint(["a", "d"], likely, engine="bp"), model.joint(["a", "d"], likely), atol=1e-9)
    with pytest.raises(EvidenceError, match="a=0, b=1 cannot hold together"):
        model.joint(["c"], {"a": "0", "b": "1"}, engine="bp")


def test_a_model_without_labellings() -> None:
    model = besag.markov_network({"a": 2, "b": 2}, [(("a", "b"), [[0, 0], [0, 0]])], given="weight")
    for given in ({"a": "0"}, {"a": {"0"}}):
        with pytest.raises(ModelError, match="allows no labelling"):
            model.log_probability(given, engine="bp")
