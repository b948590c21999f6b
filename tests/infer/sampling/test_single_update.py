"""`gibbs[scan=single]`, 001: select an index, draw that variable, output the labelling.

Where a G-test or means are compared, seeds are fixed, and the docstring or FALSE_ALARM gives the chance that a right
sampler fails, were the seed drawn anew.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import CapabilityError, ConvergenceWarning, ModelError
from besag.infer.sampling.gibbs import Gibbs
from besag.infer.sampling.single_site import prepare_sampling
from besag.infer.sampling.walk import make_sampler
from besag.kernels.random import sweep_key
from besag.model.model import Model
from tests.conformance.test_sampling import FALSE_ALARM, counts_of, g_test
from tests.infer.sampling.test_gibbs import mixed, sampled
from tests.oracle import Enumeration

SINGLE = "gibbs[scan=single,n_samples={},burn_in=0,n_chains={}]"
DIFFER = np.where(np.eye(3, dtype=np.bool_), -np.inf, 0.0)


def states_of(model: Model, engine: str, **options: Any) -> np.ndarray:
    """(n, C, V): the labellings of the chains after each step."""
    return np.stack([step.samples for step in model.steps(engine=engine, **options)])


def test_001_each_step_draws_one_variable_and_outputs_the_labelling() -> None:
    model = mixed()
    first = np.array([1, 2, 3, 0])
    states = states_of(model, SINGLE.format(200, 1), init=first)[:, 0]
    changes = np.diff(np.concatenate([first[None], states]), axis=0) != 0
    assert states.shape == (200, 4)
    assert changes.sum(axis=1).max() == 1
    assert (changes.sum(axis=0) > 0).all()
    with pytest.warns(ConvergenceWarning):
        frame = model.sample(200, engine=SINGLE.format(200, 1), init=first)
    np.testing.assert_array_equal(frame.astype(int), states)


def test_001_indices_are_selected_evenly_and_by_each_chain_for_itself() -> None:
    """Each draw of a variable of 1,000 states changes it nearly always, so that changes tell what was selected."""
    model = besag.markov_network([1000] * 5, [])
    states = states_of(model, SINGLE.format(2000, 2))
    assert states.shape == (2000, 2, 5)
    selected = np.diff(states, axis=0) != 0
    seen = selected.any(axis=2).all(axis=1)
    pairs = selected[seen].argmax(axis=2)
    counts = np.bincount(pairs[:, 0] * 5 + pairs[:, 1], minlength=25)
    assert g_test(counts, np.full(25, 1 / 25)) > FALSE_ALARM


@pytest.mark.parametrize("model", [mixed(), besag.chain(np.arange(12).reshape(4, 3) / 5, DIFFER)])
def test_001_the_law_of_the_samples_is_the_models(model: Model) -> None:
    """One draw in fifteen of each variable; hard zeros too."""
    samples = sampled(model, SINGLE.format(60_000, 3), "samples", n_draws=3000).samples
    oracle = Enumeration(model)
    assert g_test(counts_of(samples, oracle.labels), oracle.p) > FALSE_ALARM


def test_001_the_mean_of_a_marginal_is_that_of_the_samples() -> None:
    """The same expectation, with less noise: the two differ by some standard errors at the most."""
    model = besag.ising((2, 3), 0.4, 0.2)
    result = sampled(model, SINGLE.format(20_000, 4), "variables", "samples")
    ones = result.samples.mean(axis=0)
    np.testing.assert_allclose(result.array[..., 1].reshape(-1), ones, atol=0.02)


def test_the_score_of_a_chain_is_the_sum_of_its_log_weights_after_any_number_of_steps() -> None:
    """Two variables have few such sums; the drift of rounding errors would make new ones of nearly the same value."""
    model = besag.markov_network([2, 3], [((0, 1), np.random.default_rng(0).normal(size=(2, 3)))])
    engine = Gibbs("single", n_chains=1, n_samples=3000, burn_in=0)
    setting = prepare_sampling(model.problem, None, 1, 3000)
    sampler = make_sampler(engine, setting, 0)
    sampler.start(np.zeros((1, 1, 2), np.int64))
    scores = [float(sampler.sweep(sweep_key(1, step), True)[0, 0]) for step in range(3000)]
    assert len(set(scores)) == len(set(np.round(scores, 5)))


def test_observed_variables_are_never_selected() -> None:
    """Nor those of one state, in any row: the only free variable is drawn in each step, which makes it exact."""
    model = besag.markov_network({"A": 2, "B": 3, "C": 1}, [(("A", "B"), [[0.0, 1, 2], [1, 0, 3]])])
    rows = pd.DataFrame({"A": ["1", None], "B": [None, "2"]}, dtype=object)
    result = model.marginals(evidence=rows, engine="gibbs[scan=single]")
    exact = model.marginals(evidence=rows)
    np.testing.assert_allclose(result["B"][0], exact["B"][0], atol=1e-12)
    np.testing.assert_allclose(result["A"][1], exact["A"][1], atol=1e-12)
    whole = model.marginals(evidence={"A": "0", "B": "0"}, engine="gibbs[scan=single]")
    assert whole["C"].tolist() == [1.0]
    assert whole.diagnostics["converged"]


def test_the_same_seed_gives_the_same_chains_on_any_number_of_threads() -> None:
    model = mixed()
    one, again, other = (
        sampled(model, SINGLE.format(50, 3), "samples", seed=seed, n_threads=n).samples
        for seed, n in ((1, 1), (1, 3), (2, 1))
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_variables_that_were_not_drawn_are_not_converged() -> None:
    model = besag.ising((10, 10), 0.1, 0.0)
    with pytest.warns(ConvergenceWarning, match=r"some chain has not drawn \d+ variables \(.*, \.\.\.\) yet"):
        result = model.marginals(engine=SINGLE.format(50, 2))
    assert not result.diagnostics["converged"]


def test_a_chain_goes_on_where_it_was() -> None:
    model, engine = mixed(), SINGLE.format(20, 2)
    steps = list(model.steps(engine=engine))
    on = next(iter(model.steps(engine=engine, init=steps[-1])))
    assert ((on.samples != steps[-1].samples).sum(axis=1) <= 1).all()


# A labelling to start from -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scan", ["single", "systematic", "chromatic"])
def test_001_a_start_is_given_by_names_by_codes_or_by_a_result(scan: str) -> None:
    model, engine = mixed(), f"gibbs[scan={scan},n_samples=5,burn_in=0]"
    best = model.map()
    starts = (best, best.assignment, best.labels)
    states = [states_of(model, engine, init=init) for init in starts]
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])
    with pytest.warns(ConvergenceWarning):
        frames = [model.sample(5, engine=engine, init=init, seed=3) for init in starts]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_codes_of_a_grid_have_its_shape() -> None:
    model = besag.ising((2, 3), 0.4, 0.2)
    start = np.array([[0, 1, 0], [1, 0, 1]])
    step = next(iter(model.steps(engine=SINGLE.format(5, 2), init=start)))
    assert ((step.samples != start.reshape(-1)).sum(axis=1) <= 1).all()


def test_what_the_evidence_observes_may_be_left_out() -> None:
    model, start = mixed(), {"A": "0", "B": "1", "C": "2"}
    states = states_of(model, SINGLE.format(30, 2), evidence={"D": "1"}, init=start)
    assert (states[..., 3] == 1).all()
    joint = model.joint(["A", "B"], {"D": "1"}, engine="gibbs[n_samples=3000]", init=start)
    np.testing.assert_allclose(joint, model.joint(["A", "B"], {"D": "1"}), atol=0.05)


@pytest.mark.parametrize(
    ("init", "error", "match"),
    [
        ({"A": "0"}, ModelError, "init must give every variable that is not observed one state; 'B' has none"),
        ({"A": "0", "B": ["0", "1"], "C": "0", "D": "0"}, ModelError, "'B' has none"),
        (np.array([0, 0, 9, 0]), ModelError, "codes of states, from 0 to K - 1"),
        (np.zeros(3, np.int64), ModelError, r"integers of shape \(4,\)"),
        (np.zeros((2, 4), np.int64), ModelError, "init must be one labelling, got 2 rows"),
        ([0, 0, 0, 0], TypeError, "init must be a Result or a labelling to start from, .* got list"),
    ],
)
def test_starts_that_are_no_labelling_are_refused(init: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        mixed().marginals(engine="gibbs", init=init)
    with pytest.raises(error, match=match):
        list(mixed().steps(engine="gibbs", init=init))


def test_a_start_of_probability_zero_is_refused() -> None:
    model = besag.chain(np.zeros((4, 3)), DIFFER)
    for evidence, init in ((None, np.zeros(4, np.int64)), ({"0": "2"}, np.array([0, 1, 0, 1]))):
        with pytest.raises(CapabilityError, match="the assignment of init has probability zero here"):
            model.marginals(evidence=evidence, engine="gibbs[scan=single]", init=init)


@pytest.mark.parametrize("engine", ["auto", "exact", "trw", "mean_field", "ais"])
def test_other_engines_do_not_start_at_a_labelling(engine: str) -> None:
    with pytest.raises(TypeError, match="init must be a Result to start from, got ndarray"):
        mixed().marginals(engine=engine, init=np.zeros(4, np.int64))
