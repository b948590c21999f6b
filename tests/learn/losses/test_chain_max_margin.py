"""The kernel of max-margin steps on chains against the general way on a union of chains."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import Array, IntArray
from besag.data.attributes import Features
from besag.data.chains import ChainTemplates, chain_graph, csr_inputs
from besag.data.dataset import Batch, Dataset
from besag.data.sequences import sequences_of
from besag.errors import CapabilityError
from besag.estimators.chain_crf.data import find_pairs
from besag.estimators.chain_crf.inference import all_pairs, chain_templates
from besag.estimators.chain_crf.schemes import Allowed
from besag.infer.engine import ENGINES
from besag.kernels import compile as kernels
from besag.learn.losses.chains.max_margin import ChainMaxMargin
from besag.learn.losses.max_margin import MaxMargin
from besag.learn.objective import Total
from besag.learn.optimisers.base import OPTIMIZERS
from besag.learn.penalty import penalty_of
from tests.learn.losses.test_chains import LABELS, sequences
from tests.routes import Forced


def both(templates: ChainTemplates, features: Features, codes: IntArray, weights: Array) -> tuple[Total, Total]:
    """The objective by the kernels, and by the general way."""
    penalty = penalty_of(templates.layout(), l2=0.2)
    inputs = csr_inputs(features, templates.state.n_inputs)
    graph = chain_graph(templates, [str(k) for k in range(LABELS)], features.lengths, inputs)
    fast = Total(ChainMaxMargin(templates), sequences_of(features, codes, weights), penalty, n_threads=1)
    slow = Total(MaxMargin(ENGINES.read("tree")), Dataset(Batch(graph, codes, weights)), penalty, n_threads=1)
    return fast, slow


def problem(n: int, *, weighted: bool, constrained: bool, every: bool = False) -> tuple[Total, Total]:
    features, codes, n_attributes = sequences(3, n, weights=weighted)
    allowed = None
    if constrained:
        possible = np.ones((LABELS, LABELS), np.bool_)
        codes = np.where(codes == LABELS - 1, 0, codes)
        possible[2, LABELS - 1] = possible[LABELS - 1, 3] = False
        allowed = Allowed(possible, np.arange(LABELS) != LABELS - 1, np.arange(LABELS) != LABELS - 1)
    seen = find_pairs([sequences_of(features, codes)], n_attributes, LABELS)
    pattern = all_pairs(n_attributes, LABELS) if every else seen
    templates = chain_templates(n_attributes, LABELS, pattern, 1, allowed)
    return both(templates, features, codes, np.random.default_rng(1).random(n) + 0.5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
def test_value_and_subgradient(weighted: bool, constrained: bool) -> None:
    fast, slow = problem(40, weighted=weighted, constrained=constrained)
    theta = np.random.default_rng(2).normal(size=len(fast.statistics))
    value, gradient = fast.value_and_grad(theta)
    expected, slope = slow.value_and_grad(theta)
    assert value == pytest.approx(expected, rel=1e-12)
    assert_allclose(gradient, slope, rtol=1e-12, atol=1e-12)
    assert_allclose(fast.statistics, slow.statistics, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
def test_both_ways_up_end_at_the_same_value(constrained: bool, every: bool) -> None:
    by = OPTIMIZERS.read("frank_wolfe[tolerance=1e-5,max_iterations=3000,evaluate_every=10]")
    ends = []
    for total in problem(8, weighted=True, constrained=constrained, every=every):
        _, history, _ = by.minimize(total, np.zeros(len(total.statistics)))
        assert history.converged
        ends.append(history.value)
    assert ends[0] == pytest.approx(ends[1], rel=2e-5)


def test_the_dual_goes_up_and_says_how_far_it_is(forced: Forced) -> None:
    fast, _ = problem(12, weighted=False, constrained=False)
    forced({"learn.losses.chains.max_margin.FEW_CORNERS": 1})  # more corners than there is room for at first
    ascent, order = fast.ascent(), np.arange(12)
    point, before = ascent.begin(), 0.0
    for _ in range(40):
        point = ascent.climb(point, order)
        assert ascent.bound(point) >= before - 1e-12
        before = ascent.bound(point)
    counts, alphas = point.blocks["counts"], point.blocks["alphas"]
    assert counts.max() > 1
    assert_allclose([own[:c].sum() for own, c in zip(alphas, counts, strict=True)], 1.0)
    assert_allclose(point.theta, _theta_of(fast, point), atol=1e-10)
    assert fast.value_and_grad(point.theta)[0] >= before


def _theta_of(total: Total, point: Any) -> Array:
    """sum_n w_n g_n(alpha_n) / (2 l2), from the corners."""
    data: Any = total.dataset
    loss, corners = total.objective, point.blocks["corners"]
    assert isinstance(loss, ChainMaxMargin)
    found = -total.statistics
    for n in range(len(data)):
        one, span = data.batch(np.array([n])), slice(data.offsets[n], data.offsets[n + 1])
        for row in range(int(point.blocks["counts"][n])):
            found += point.blocks["alphas"][n, row] * loss.moments(one, corners[row, span].astype(np.int64))
    return np.asarray(found / 0.4)


def test_plain_and_compiled_kernels_take_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    points = []
    for compile in (True, False):
        monkeypatch.setattr("besag.learn.losses.chains.max_margin.worth_compiling", lambda _, own=compile: own)
        fast, _ = problem(6, weighted=True, constrained=True)
        ascent, point = fast.ascent(), fast.ascent().begin()
        for _ in range(3):
            point = ascent.climb(point, np.arange(6))
        points.append(point)
    assert kernels.worth_compiling(1.0)
    assert_allclose(points[0].theta, points[1].theta, rtol=1e-9, atol=1e-12)
    assert_array_equal(points[0].blocks["corners"], points[1].blocks["corners"])


def test_labels_that_are_unknown_are_refused() -> None:
    features, codes, n = sequences(3, 10, hidden=0.3)
    templates = chain_templates(n, LABELS, all_pairs(n, LABELS), 1, None)
    data = sequences_of(features, codes)
    with pytest.raises(CapabilityError, match=r"sequence \d has labels that are unknown; on chains max_margin learns"):
        Total(ChainMaxMargin(templates), data, penalty_of(templates.layout(), l2=1.0))
