"""The kernel of chain CRFs against the general likelihood on a union of chains."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.arrays import IntArray
from besag.data.attributes import Attributes, Features
from besag.data.chains import ChainTemplates, chain_graph, csr_inputs
from besag.data.dataset import Batch, Dataset
from besag.data.labels import Labels
from besag.data.sequences import join_sequences, sequences_of
from besag.data.streamed import stream
from besag.estimators.chain_crf.data import find_pairs
from besag.estimators.chain_crf.inference import chain_templates
from besag.estimators.chain_crf.schemes import Allowed
from besag.infer.engine import ENGINES
from besag.learn.losses.chains.likelihood import ChainLikelihood
from besag.learn.losses.likelihood import Likelihood
from besag.learn.objective import Total
from besag.learn.penalty import penalty_of
from tests.routes import Forced

LABELS = 5


def sequences(seed: int, n: int, *, weights: bool = False, hidden: float = 0.0) -> tuple[Features, IntArray, int]:
    """Random attributes, a few of them common; one occurs twice in an item."""
    rng = np.random.default_rng(seed)

    def item() -> Any:
        names = [f"a{int(a)}" for a in rng.geometric(0.1, size=rng.integers(0, 6))]
        return {name: float(rng.normal()) for name in names} if weights else names

    lengths = rng.integers(1, 9, size=n)
    x = [[item() for _ in range(length)] for length in lengths]
    y = [[None if rng.random() < hidden else int(rng.integers(LABELS)) for _ in range(length)] for length in lengths]
    y[0][0], y[-1][0] = 0, LABELS - 1
    attributes, features = Attributes.fit(x)
    codes = Labels(tuple(range(LABELS))).transform(y, features.lengths)
    return features, codes, len(attributes)


def both(
    templates: ChainTemplates, features: Features, codes: IntArray, weights: Any, n_threads: int = 1
) -> tuple[Total, Total]:
    """The objective by the kernel, and by the general way."""
    layout = templates.layout()
    inputs = csr_inputs(features, templates.state.n_inputs)
    graph = chain_graph(templates, [str(k) for k in range(LABELS)], features.lengths, inputs)
    penalty = penalty_of(layout, l2=0.2)
    fast = Total(ChainLikelihood(templates), sequences_of(features, codes, weights), penalty, n_threads=n_threads)
    slow = Total(Likelihood(ENGINES.read("tree")), Dataset(Batch(graph, codes, weights)), penalty, n_threads=1)
    return fast, slow


@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
@pytest.mark.parametrize("hidden", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
def test_value_and_gradient(scale: float, hidden: float, weighted: bool, constrained: bool) -> None:
    features, codes, n = sequences(3, 40, weights=weighted, hidden=hidden)
    rng = np.random.default_rng(1)
    allowed = None
    if constrained:
        possible = np.ones((LABELS, LABELS), np.bool_)
        possible[codes[codes >= 0].max(), 0] = False
        codes = np.where(codes == LABELS - 1, 0, codes)
        allowed = Allowed(possible, np.ones(LABELS, np.bool_), np.arange(LABELS) != LABELS - 1)
    templates = chain_templates(n, LABELS, find_pairs([sequences_of(features, codes)], n, LABELS), 1, allowed)
    fast, slow = both(templates, features, codes, rng.random(len(features.lengths)))
    theta = scale * rng.normal(size=templates.layout().n_parameters)
    value, gradient = fast.value_and_grad(theta)
    expected, slope = slow.value_and_grad(theta)
    assert value == pytest.approx(expected, rel=1e-10)
    assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8 * max(scale, 1))
    assert_allclose(fast.statistics, slow.statistics, rtol=1e-12, atol=1e-12)


def test_mini_batches_and_threads(forced: Forced) -> None:
    forced({"data.sequences.SHARD_TOKENS": 20})
    features, codes, n = sequences(4, 30)
    templates = chain_templates(n, LABELS, find_pairs([sequences_of(features, codes)], n, LABELS), 1, None)
    theta = np.random.default_rng(0).normal(size=templates.layout().n_parameters)
    one, slow = both(templates, features, codes, None)
    two, _ = both(templates, features, codes, None, n_threads=2)
    assert len(one.shards) == 4
    assert one.value_and_grad(theta)[0] == two.value_and_grad(theta)[0]
    assert_array_equal(one.value_and_grad(theta)[1], two.value_and_grad(theta)[1])
    chosen = np.array([7, 3, 20])
    value, gradient, _ = one.sampled(theta, chosen)
    expected, slope, _ = slow.sampled(theta, chosen)
    assert value == pytest.approx(expected, rel=1e-12)
    assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9)


def test_single_shards_that_go_the_general_way(monkeypatch: pytest.MonkeyPatch, forced: Forced) -> None:
    """One of four shards has log-potentials too far apart: the same bits on any number of threads."""
    forced({"data.sequences.SHARD_TOKENS": 20})
    features, codes, n = sequences(5, 40)
    templates = chain_templates(n, LABELS, find_pairs([sequences_of(features, codes)], n, LABELS), 1, None)
    theta = np.random.default_rng(0).normal(size=templates.layout().n_parameters)
    pattern = templates.state.pattern
    assert pattern is not None
    quarter = int(features.indptr[features.lengths[:10].sum()])
    early, late = features.indices[:quarter], features.indices[quarter:]
    alone = np.setdiff1d(early, late)
    theta[: len(pattern)][np.isin(pattern.rows, alone)] += 2000.0
    total, slow = both(templates, features, codes, np.ones(40))
    ways: list[int] = []
    general = Likelihood.value_and_grad

    def counted(self: Likelihood, theta: Any, batch: Batch, state: Any) -> Any:
        ways.append(len(batch))
        return general(self, theta, batch, state)

    expected, slope = slow.value_and_grad(theta)
    monkeypatch.setattr(Likelihood, "value_and_grad", counted)
    value, gradient = total.value_and_grad(theta)
    assert len(total.shards) == 4
    assert len(ways) == 1
    assert value == pytest.approx(expected, rel=1e-10)
    assert_allclose(gradient, slope, rtol=1e-8, atol=1e-6)
    for n_threads in (2, 3):
        other, _ = both(templates, features, codes, np.ones(40), n_threads=n_threads)
        again = other.value_and_grad(theta)
        assert again[0] == value
        assert_array_equal(again[1], gradient)


def test_products_with_the_hessian() -> None:
    features, codes, n = sequences(5, 10)
    templates = chain_templates(n, LABELS, find_pairs([sequences_of(features, codes)], n, LABELS), 1, None)
    theta = 0.3 * np.random.default_rng(0).normal(size=templates.layout().n_parameters)
    fast, slow = both(templates, features, codes, None)
    vector = np.random.default_rng(1).normal(size=len(theta))
    assert_allclose(fast.hessian_vector(theta)(vector), slow.hessian_vector(theta)(vector), rtol=1e-6, atol=1e-7)


def test_shards_in_files_change_no_bit(tmp_path: Path, forced: Forced) -> None:
    forced({"data.streamed.PART_TOKENS": 40})
    rng = np.random.default_rng(6)
    x = [[{f"a{rng.integers(9)}": float(rng.normal())} for _ in range(rng.integers(1, 9))] for _ in range(30)]
    y = [[None if rng.random() < 0.3 else int(rng.integers(LABELS)) for _ in items] for items in x]
    attributes, _, data = stream(x, y, tmp_path, rng.random(30))
    n, parts = len(attributes), [part.load() for part in data.shards()]
    assert len(parts) == 4
    templates = chain_templates(n, LABELS, find_pairs(parts, n, LABELS), 1, None)
    theta = rng.normal(size=templates.layout().n_parameters)
    stored = Total(ChainLikelihood(templates), data, penalty_of(templates.layout()), n_threads=1)
    whole = join_sequences(parts)
    kept = Total(ChainLikelihood(templates), whole, penalty_of(templates.layout()), n_threads=1)
    for _ in range(2):
        value, gradient = stored.value_and_grad(theta)
        assert value == pytest.approx(kept.value_and_grad(theta)[0], rel=1e-12)
        assert_allclose(gradient, kept.value_and_grad(theta)[1], rtol=1e-9, atol=1e-9)
    some = np.array([29, 3, 11])
    assert stored.sampled(theta, some)[0] == pytest.approx(kept.sampled(theta, some)[0], rel=1e-12)
    assert len(list(tmp_path.iterdir())) == 8
