"""`model.expect`: exact where labellings can be listed, elsewhere means over draws with their standard errors.

Seeds are fixed; docstrings give the chance that right answers fail, were the seed drawn anew.
"""

import time
from collections import Counter
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.errors import (
    ApproximationWarning,
    CapabilityError,
    ConvergenceWarning,
    EvidenceError,
    ModelError,
    TooLargeError,
)
from besag.infer.iterate import Clock
from besag.query.draws import at_draws, distinct_rows
from besag.query.estimate import ArrayEstimate, Estimate
from tests.conformance.engines import names_of
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, models

RNG = np.random.default_rng(5)
CHAIN = besag.chain(RNG.normal(size=(40, 3)), RNG.normal(size=(3, 3)))
SMALL = besag.data.random_model("markov_network", 5, seed=3, n_states=(2, 3), zeros=0.0)
ISING = besag.ising((3, 3), 0.3, 0.1)


IGNORED = pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")  # chains are short on purpose


def is_equal(y: dict[str, str]) -> bool:
    return y["0,0"] == y["0,1"]


@examples(30)
@given(data=st.data())
def test_001_an_expectation_of_few_labellings_is_exact(data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=200))
    evidence, name = data.draw(evidence_for(model)), data.draw(st.sampled_from(names_of(model)))
    found = model.expect(lambda y: [float(y[name] == state) for state in model.variable(name).states], evidence)
    np.testing.assert_allclose(found, Enumeration(model, evidence).marginal(name), atol=1e-12)
    assert isinstance(found, ArrayEstimate)
    assert found.bound == "exact"
    assert found.standard_error is not None
    assert (found.standard_error == 0).all()


def test_evidence_may_leave_few_labellings_of_many_variables() -> None:
    evidence = dict.fromkeys(names_of(CHAIN)[8:], "1")
    found = CHAIN.expect(lambda y: y["3"] == y["4"], evidence)
    assert isinstance(found, Estimate)
    assert (found.bound, found.standard_error) == ("exact", 0.0)
    assert found == pytest.approx(np.trace(CHAIN.joint(["3", "4"], evidence)), abs=1e-12)


@pytest.mark.parametrize(
    "engine", ["auto", "exact", "tree", "junction_tree", "gibbs[n_samples=3000]", "gibbs[scan=tree]"]
)
def test_001_a_chain_of_40_variables_is_sampled(engine: str) -> None:
    """Five standard errors for each of 240 probabilities: once in some 5,000 runs."""
    names = names_of(CHAIN)
    found = CHAIN.expect(lambda y: np.array([[y[n] == s for s in "012"] for n in names]), engine=engine, seed=2)
    assert found.bound == "estimate"
    error = np.abs(found - CHAIN.marginals().array)
    assert (error <= 5 * np.asarray(found.standard_error) + 1e-12).all()
    assert np.asarray(found.standard_error).max() < 0.03


@IGNORED
@pytest.mark.parametrize(
    "options",
    [
        {"n_samples": 400},
        {"engine": "gibbs[n_samples=300]"},
        {"engine": "brute[n_samples=400]"},
        {"engine": "gibbs[scan=single,n_samples=1000]"},
    ],
)
def test_001_standard_errors_are_neither_too_small_nor_too_large(options: dict[str, Any]) -> None:
    """The mean square of 40 errors in standard errors is 1 but for chance, whose standard deviation is 0.22."""
    true, squares = ISING.expect(is_equal), []
    for seed in range(40):
        found = ISING.expect(is_equal, seed=seed, **options)
        assert found.standard_error is not None
        squares.append(((found - true) / found.standard_error) ** 2)
    assert 0.3 < np.mean(squares) < 2.0


def test_001_the_error_of_independent_samples_is_of_order_one_over_the_root_of_their_number() -> None:
    few, many = (ISING.expect(is_equal, n_samples=n) for n in (500, 8000))
    assert few.standard_error is not None
    assert many.standard_error is not None
    assert few.standard_error / many.standard_error == pytest.approx(4, rel=0.1)
    assert few.bound == "estimate"


@pytest.mark.parametrize("engine", ["exact", "gibbs"])
def test_001_draws_that_agree_have_no_error(engine: str) -> None:
    """Not that of rounding their mean."""
    model = besag.markov_network([2, 2], [((0,), [0.0, -800.0]), ((1,), [0.0, -800.0])])
    found = model.expect(lambda y: 0.1 if y["0"] == "0" else 2.0, n_samples=1000, engine=engine)
    assert found.standard_error == 0.0


def test_errors_of_chains_know_that_their_draws_depend() -> None:
    """On the same number of draws, a slow chain has the larger error."""
    slow = besag.ising((4, 4), 0.7, 0.0)
    options: dict[str, Any] = {"h": lambda y: y["0,0"] == "1", "n_samples": 2000}
    with pytest.warns(ConvergenceWarning):
        chains = slow.expect(engine="gibbs[n_chains=1]", **options)
    independent = slow.expect(engine="exact", **options)
    assert chains.standard_error is not None
    assert independent.standard_error is not None
    assert chains.standard_error > 3 * independent.standard_error


@IGNORED
@pytest.mark.parametrize("options", [{}, {"n_samples": 500}, {"engine": "gibbs[n_samples=500]"}])
def test_the_function_is_called_once_for_each_distinct_labelling(options: dict[str, Any]) -> None:
    calls = Counter[tuple[str, ...]]()

    def h(y: dict[str, str]) -> float:
        calls[tuple(y.values())] += 1
        return 1.0

    assert SMALL.expect(h, **options) == pytest.approx(1, abs=1e-12)
    assert set(calls.values()) == {1}


def test_the_same_seed_gives_the_same_answer_and_another_seed_another() -> None:
    one, again, other = (CHAIN.expect(lambda y: y["3"] == y["9"], seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_where_exact_inference_does_not_fit_chains_answer() -> None:
    """Six standard errors; a corner whose neighbours are known has log-odds 2 (2 J + h)."""
    model = besag.ising((40, 40), 0.2, 0.1)
    with pytest.warns(ApproximationWarning, match="Answered by gibbs; the answer is an estimate"):
        found = model.expect(lambda y: y["0,0"] == "1", {"0,1": "1", "1,0": "1"})
    assert found.bound == "estimate"
    assert found.standard_error is not None
    assert abs(found - 1 / (1 + np.exp(-1.0))) < 6 * found.standard_error


@pytest.mark.parametrize("n", [1, 7])
def test_too_few_draws_have_no_error(n: int) -> None:
    assert SMALL.expect(lambda y: 1.0, n_samples=1).standard_error is None
    with pytest.warns(ConvergenceWarning):
        assert SMALL.expect(lambda y: 1.0, n_samples=n, engine="gibbs").standard_error is None


def test_time_ends_the_calls_and_what_was_done_counts() -> None:
    with pytest.warns(ConvergenceWarning, match=r"expect stopped at its time_limit after \d+ of 4000 samples"):
        found = CHAIN.expect(lambda y: float(time.sleep(0.01) is None), time_limit=0.3)
    assert found == 1.0
    with pytest.raises(TooLargeError, match=r"call the function for 512 labellings, but time_limit left time for \d+"):
        ISING.expect(lambda y: float(time.sleep(0.01) is None), time_limit=0.3)


def test_values_at_draws_end_with_the_time() -> None:
    ticks = count()
    clock = Clock(3.0, now=lambda: float(next(ticks)))
    which = np.array([0, 1, 0, 2, 1, 3, 0])
    values = (np.array([10.0 * i]) for i in range(4))
    with pytest.warns(ConvergenceWarning, match="expect stopped at its time_limit after 5 of 7 samples"):
        found = at_draws(values, which, clock, "expect")
    assert found[:, 0].tolist() == [0.0, 10.0, 0.0, 20.0, 10.0]


def test_ctrl_c_ends_the_calls_and_what_was_done_counts() -> None:
    def pressed_at(call: int) -> Any:
        calls = iter(range(call))

        def h(y: dict[str, str]) -> float:
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return float(y["0"] == "2")

        return h

    with pytest.warns(ConvergenceWarning, match=r"expect was interrupted after \d+ of 4000 samples: the"):
        found = CHAIN.expect(pressed_at(100), seed=3)
    draws = CHAIN.sample(4000, seed=3)
    first = draws["0"][(~draws.duplicated()).cumsum() <= 100]  # it is called once for each distinct draw
    assert found == pytest.approx((first == "2").mean())
    with pytest.raises(KeyboardInterrupt):
        CHAIN.expect(pressed_at(0))


@IGNORED
def test_an_end_before_the_first_draw_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.infer.sampling.walk.GRACE", 0.0)  # else the first sweep may take a second
    with pytest.raises(CapabilityError, match="sampling ended before the first draw"):
        CHAIN.expect(lambda y: 1.0, engine="gibbs[burn_in=1000000]", time_limit=1e-9)


@pytest.mark.parametrize(
    ("h", "match"),
    [
        (lambda y: "warm", r"returns numbers, got 'warm' at \{"),
        (lambda y: None, "returns finite numbers, got None"),
        (lambda y: np.nan, "returns finite numbers, got nan"),
        (lambda y: [0.0] * (1 + int(y["0,0"] == "1")), r"numbers of one shape, \(1,\) as before, got \[0.0, 0.0\]"),
    ],
)
@pytest.mark.parametrize("n_samples", [None, 50])
def test_functions_that_return_no_numbers_are_refused(h: Any, match: str, n_samples: int | None) -> None:
    with pytest.raises(ModelError, match=match):
        besag.ising((1, 2), 0.1).expect(h, n_samples=n_samples, seed=3)


def test_what_cannot_be_is_refused() -> None:
    for n in (0, 2.5, True):
        with pytest.raises(ModelError, match="n_samples must be a whole number of at least 1"):
            SMALL.expect(lambda y: 1.0, n_samples=n)  # type: ignore[arg-type]
    with pytest.raises(CapabilityError, match="engine 'elimination' cannot give samples"):
        CHAIN.expect(lambda y: 1.0, engine="elimination")
    hard = besag.markov_network([2, 2], [((0, 1), [[0.0, -np.inf], [-np.inf, 0.0]])])
    for options in ({}, {"n_samples": 5}, {"engine": "gibbs"}):
        with pytest.raises(EvidenceError, match="cannot hold together"):
            hard.expect(lambda y: 1.0, {"0": "0", "1": "1"}, **options)


def test_distinct_rows_are_in_the_order_of_their_first() -> None:
    codes = np.array([[3, 300], [1, 1], [3, 300], [0, 2], [1, 1]])
    rows, which = distinct_rows(codes)
    assert rows.tolist() == [[3, 300], [1, 1], [0, 2]]
    assert which.tolist() == [0, 1, 0, 2, 1]


# The covariance of samples -------------------------------------------------------------------------------------------


def test_002_21_the_covariance_of_samples_has_errors_that_hold() -> None:
    """The mean square of errors in standard errors, over 20 seeds and all pairs of 17 statistics."""
    rng = np.random.default_rng(0)
    factors = [(("A", "B"), rng.normal(size=(2, 3))), (("B", "C"), rng.normal(size=(3, 3))), (("C",), [0.0, 1, 1])]
    model = besag.markov_network({"A": 2, "B": 3, "C": 3}, factors)
    true = model.covariance()
    assert true.bound == "exact"
    found = [model.covariance(engine="gibbs[n_samples=500]", seed=s) for s in range(20)]
    assert {one.bound for one in found} == {"estimate"}
    away = np.array([(one - true) / one.standard_error for one in found])
    assert 0.7 < np.sqrt(np.mean(away**2)) < 1.4


def test_002_20_21_moments_and_covariance_of_samples_with_evidence() -> None:
    """0.06 is some six standard errors of a moment; five of a covariance."""
    model, evidence = ISING, {"1,1": "1"}
    found = model.covariance(evidence, engine="gibbs[n_samples=4000]")
    true = model.covariance(evidence)
    assert found.standard_error is not None
    assert (np.abs(found - true) <= 5 * found.standard_error).all()
    errors = np.sqrt(np.diag(true) / 4000)
    moments = model.moments(evidence, engine="gibbs[n_samples=4000]")
    assert (np.abs(moments - model.moments(evidence)) <= 6 * errors).all()


def test_a_covariance_that_takes_too_many_propagations_can_be_sampled() -> None:
    model = besag.ising((100, 100), 0.1, 0.0)
    with pytest.raises(TooLargeError, match="engine='gibbs' estimates it by samples"):
        model.covariance()
    with pytest.warns(ConvergenceWarning):
        found = model.covariance(engine="gibbs[n_samples=40,burn_in=10]")
    assert found.shape == (2, 2)
    assert (np.diag(found) > 0).all()


def test_a_covariance_of_few_samples_has_no_error() -> None:
    with pytest.warns(ConvergenceWarning):
        found = SMALL.covariance(engine="gibbs[n_samples=5]")
    assert found.standard_error is None
    np.testing.assert_allclose(found, np.asarray(found).T)
