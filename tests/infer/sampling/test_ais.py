"""The engine `ais`: log Z within its interval, unbiased at any time, hard zeros, marginals."""

import itertools
import math

import numpy as np
import pytest

import besag
from besag.errors import CapabilityError, ModelError
from besag.infer import AIS
from besag.infer.engine import ENGINES
from besag.infer.result import Result
from besag.infer.sampling.ais import Annealing
from besag.model.model import Model
from tests.oracle import Enumeration


def annealed(model: Model, text: str = "ais", *wants: str, seed: int = 0) -> Result:
    engine = ENGINES.read(text)
    return engine.infer(model.problem, frozenset(wants or {"log_partition"}), rng=np.random.default_rng(seed))


def ising() -> Model:
    return besag.ising((3, 3), 0.5, 0.2)


def mixed() -> Model:
    rng = np.random.default_rng(1)
    cards = {"A": 2, "B": 3, "C": 4, "D": 2}
    scopes = [("A", "B", "C"), ("C", "D"), ("B",), ("A", "D")]
    return besag.markov_network(cards, [(s, 2 * rng.normal(size=[cards[v] for v in s])) for s in scopes])


def colouring() -> Model:
    differ = np.where(np.eye(3, dtype=np.bool_), -np.inf, 0.0)
    return besag.grid((2, 3), 3, unary=np.arange(18).reshape(2, 3, 3) / 9, pairwise=differ)


@pytest.mark.parametrize("make", [ising, mixed, colouring])
def test_intervals_hold_the_truth_as_often_as_they_say(make: object) -> None:
    """Of 60 intervals at 80 %, between 38 and 58 hold it: a right engine fails this once in 2,000 runs."""
    model = make()  # type: ignore[operator]
    true, held, errors = Enumeration(model).log_z, 0, []
    for seed in range(60):
        result = annealed(model, "ais[n_chains=60,n_temperatures=60,confidence=0.8]", seed=seed)
        low, high = result.log_partition_bounds
        held += low <= true <= high
        errors.append(np.exp(result.log_partition - true))
    assert 38 <= held <= 58
    assert np.mean(errors) == pytest.approx(1, abs=5 * np.std(errors) / np.sqrt(60))  # Z itself is unbiased


def test_few_chains_have_intervals_too() -> None:
    """Of 60 intervals at 80 %, between 38 and 58 hold the truth, as with many chains; most have an upper end."""
    model, held, ended = ising(), 0, 0
    true = Enumeration(model).log_z
    for seed in range(60):
        result = annealed(model, "ais[n_chains=8,n_temperatures=60,confidence=0.8]", seed=seed)
        low, high = result.log_partition_bounds
        held, ended = held + (low <= true <= high), ended + np.isfinite(high)
        assert result.diagnostics["converged"] == np.isfinite(high)
    assert 38 <= held <= 58
    assert ended > 40


def test_more_temperatures_give_smaller_errors() -> None:
    few, many = (annealed(ising(), f"ais[n_temperatures={n}]").diagnostics for n in (5, 500))
    assert many["residual"] < few["residual"] / 3
    assert many["effective_size"] > few["effective_size"]


def test_stopped_early_it_is_still_unbiased() -> None:
    model, estimates = ising(), []
    true = Enumeration(model).log_z
    for seed in range(40):
        engine = AIS(n_chains=50, n_temperatures=40)
        steps = engine.steps(model.problem, rng=np.random.default_rng(seed))
        results = [next(steps) for _ in range(20)]
        estimates.append(np.exp(results[-1].log_partition - true))
    assert np.mean(estimates) == pytest.approx(1, abs=5 * np.std(estimates) / np.sqrt(40))


@pytest.mark.parametrize(("seconds", "n_taken"), [(math.inf, 40), (50.0, 40), (20.0, 18), (5.0, 4), (0.1, 2)])
def test_a_time_limit_decides_how_many_temperatures_there_are(seconds: float, n_taken: int) -> None:
    """A clock that ticks once a temperature: those that fit lead to b = 1, and log Z is in its interval."""
    ticks, model = itertools.count(), ising()
    engine, limit = AIS(n_temperatures=40, n_chains=400, confidence=0.999), None if seconds == math.inf else seconds
    run = Annealing(engine, model.problem, np.random.default_rng(0), limit, 0.0, clock=lambda: float(next(ticks)))
    while not run.finished:
        run.step()
    assert (run.taken, run.beta) == (pytest.approx(n_taken, abs=1), 1.0)
    low, high = run.answer(frozenset({"log_partition"})).log_partition_bounds
    assert low < Enumeration(model).log_z < high


def test_independent_variables_are_exact() -> None:
    model = besag.markov_network([2, 3], [((0,), [0.3, 1.0]), ((1,), [0.1, -0.4, 2.0])])
    result = annealed(model, "ais[n_temperatures=3]", "log_partition", "variables")
    assert result.log_partition == pytest.approx(Enumeration(model).log_z, abs=1e-12)
    assert result.log_partition_bounds == pytest.approx((result.log_partition,) * 2, abs=1e-10)
    np.testing.assert_allclose(result["0"], Enumeration(model).marginal("0"), atol=1e-12)


@pytest.mark.parametrize("make", [ising, mixed, colouring])
def test_marginals(make: object) -> None:
    """Conditionals of 400 chains; 0.1 is more than five standard errors."""
    model = make()  # type: ignore[operator]
    result, oracle = annealed(model, "ais[n_chains=400]", "variables"), Enumeration(model)
    for variable in model.variables:
        np.testing.assert_allclose(result[variable.name], oracle.marginal(variable.name), atol=0.1)


def test_rows_and_unions() -> None:
    model = mixed()
    frame = __import__("pandas").DataFrame({"A": ["0", "1"], "D": [None, "1"]})
    result = model.marginals(evidence=frame, engine="ais")
    for row, evidence in enumerate([{"A": "0"}, {"A": "1", "D": "1"}]):
        assert result.log_partition[row] == pytest.approx(Enumeration(model, evidence).log_z, abs=0.2)
    problem = besag.compile_graph(model, model).bind(model.theta)
    union = AIS().infer(problem, frozenset({"log_partition", "variables"}), rng=np.random.default_rng(0))
    assert union.log_partition == pytest.approx([Enumeration(model).log_z] * 2, abs=0.2)
    np.testing.assert_allclose(union[1]["A"], Enumeration(model).marginal("A"), atol=0.2)


def test_trace_tells_of_every_temperature() -> None:
    result = annealed(ising(), "ais[n_temperatures=30]", "log_partition", "trace")
    assert len(result.trace) == 30
    assert result.trace["value"].iloc[-1] == result.log_partition


def test_weights_that_say_nothing_have_no_upper_end() -> None:
    model = besag.ising((6, 6), 3.0, 0.0)
    result = annealed(model, "ais[n_temperatures=1]")
    low, high = result.log_partition_bounds
    assert low < model.log_partition(engine="exact") < high == np.inf
    assert not result.diagnostics["converged"]
    assert "carry the weight" in result.diagnostics["hint"]


def test_no_chain_at_a_labelling_is_refused() -> None:
    n = 12
    equal = np.where(np.eye(30, dtype=np.bool_), 0.0, -np.inf)
    model = besag.markov_network([30] * n, [((i, i + 1), equal) for i in range(n - 1)])
    with pytest.raises(CapabilityError, match="none of 5 chains ended in a labelling"):
        annealed(model, "ais[n_chains=5,n_temperatures=2]")
    with pytest.raises(ModelError, match="allows no labelling"):
        besag.markov_network([2], [((0,), [-np.inf, -np.inf])]).log_partition(engine="ais[n_temperatures=2]")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("ais[n_chains=1]", "n_chains must be a whole number of at least 2, got 1"),
        ("ais[n_temperatures=0]", "n_temperatures must be a whole number of at least 1, got 0"),
        ("ais[confidence=1]", "confidence must be a number between 0 and 1, got 1"),
    ],
)
def test_options_that_cannot_be(text: str, match: str) -> None:
    with pytest.raises(CapabilityError, match=match):
        ENGINES.read(text)
