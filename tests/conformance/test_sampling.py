"""Samples against enumeration, by the G-test.

Seeds are fixed. FALSE_ALARM is the probability that one G-test of a right sampler fails, were its seed drawn anew; the
whole file makes fewer than a thousand of them, so it would raise a false alarm once in a million runs.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from scipy.stats import chi2

import besag
from tests.conformance.engines import Case, each_engine
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, frame_for, rows_of

FALSE_ALARM = 1e-9
DRAWS = 3000


def g_test(counts: np.ndarray, p: np.ndarray) -> float:
    """The probability of counts at least as far from their expectation; cells of few expected counts are one cell."""
    assert counts[p == 0].sum() == 0, "a sample has probability zero"
    expected = p * counts.sum()
    small = expected < 5
    cells = [(counts[i], expected[i]) for i in np.flatnonzero(~small)]
    if expected[small].sum() > 0:
        cells.append((counts[small].sum(), expected[small].sum()))
    statistic = 2 * sum(n * np.log(n / e) for n, e in cells if n > 0)
    return float(chi2.sf(statistic, len(cells) - 1)) if len(cells) > 1 else 1.0


def counts_of(samples: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """How often each of the labellings (M, V) occurs among samples (n, V)."""
    sizes = labels.max(axis=0) + 1
    return np.bincount(np.ravel_multi_index(tuple(samples.T), sizes), minlength=len(labels))


def test_the_test_finds_a_wrong_sampler() -> None:
    rng = np.random.default_rng(0)
    p = np.array([0.2, 0.3, 0.5])
    assert g_test(np.bincount(rng.choice(3, DRAWS, p=p), minlength=3), p) > FALSE_ALARM
    assert g_test(np.bincount(rng.choice(3, DRAWS, p=[0.3, 0.3, 0.4]), minlength=3), p) < FALSE_ALARM


@each_engine("samples", exact=True)
@examples(20)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_samples_have_the_right_distribution(case: Case, data: DataObject, seed: int) -> None:
    model = data.draw(case.models(max_labellings=100))
    evidence = data.draw(evidence_for(model))
    samples = case.ask(model, evidence, "samples", n_samples=DRAWS, seed=seed).samples
    oracle = Enumeration(model, evidence)
    assert samples.shape == (DRAWS, len(model.variables))
    assert g_test(counts_of(samples, oracle.labels), oracle.p) > FALSE_ALARM


@each_engine("samples", exact=True)
@examples(10)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_samples_of_a_batch_follow_their_rows(case: Case, data: DataObject, seed: int) -> None:
    model = data.draw(case.models(max_labellings=100))
    frame = data.draw(frame_for(model))
    samples = case.ask(model, frame, "samples", n_samples=DRAWS, seed=seed).samples
    assert samples.shape == (len(frame), DRAWS, len(model.variables))
    for row, drawn in zip(rows_of(frame), samples, strict=True):
        oracle = Enumeration(model, row)
        assert g_test(counts_of(drawn, oracle.labels), oracle.p) > FALSE_ALARM


def make_chain() -> besag.Model:
    """Without the plans that other routes have left."""
    return besag.chain([[0.2, 0.0], [0.0, 0.4], [0.1, 0.0]], [[1.0, 0.0], [0.0, 0.5]])


CHAIN = make_chain()


@each_engine("samples", exact=True)
def test_parts_of_a_union_are_sampled_independently(case: Case) -> None:
    problem = besag.compile_graph(CHAIN, CHAIN).bind(CHAIN.theta)
    result = case.infer(problem, "samples", n_samples=10 * DRAWS)
    oracle = Enumeration(CHAIN)
    both = np.array([[*one, *two] for one in oracle.labels for two in oracle.labels])
    assert g_test(counts_of(result.samples, both), np.outer(oracle.p, oracle.p).reshape(-1)) > FALSE_ALARM
    np.testing.assert_array_equal(result[1].samples, result.samples[:, 3:])


@each_engine("samples", exact=True)
def test_draws_are_independent(case: Case) -> None:
    samples = case.ask(CHAIN, None, "samples", n_samples=20 * DRAWS).samples
    oracle = Enumeration(CHAIN)
    both = np.array([[*one, *two] for one in oracle.labels for two in oracle.labels])
    pairs = counts_of(np.concatenate([samples[::2], samples[1::2]], axis=1), both)
    assert g_test(pairs, np.outer(oracle.p, oracle.p).reshape(-1)) > FALSE_ALARM


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
@each_engine("samples")
def test_the_same_seed_gives_the_same_samples_and_another_seed_others(case: Case) -> None:
    chain = make_chain()
    first, again, other = (case.ask(chain, None, "samples", n_samples=100, seed=s).samples for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    frames = [chain.sample(100, engine=case.engine, seed=s) for s in (1, 1, 2)]
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])
