"""Marginals and log Z of chains by the short way: what the general way, a Graph and its engine, answers."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag import ChainCRF
from besag.data.attributes import Attributes, Features
from besag.errors import ModelError
from besag.estimators.chain_crf.inference import ChainModel, all_pairs, chain_templates
from besag.estimators.chain_crf.schemes import Allowed
from besag.graph.evidence import Evidence
from tests.routes import Forced


def made(
    seed: int, n_labels: int, lengths: list[int], *, scale: float = 1.0, order: int = 1, constrained: bool = False
) -> tuple[ChainModel, Features]:
    """A model with random parameters, and sequences with random attributes of random weights."""
    rng = np.random.default_rng(seed)
    x = [[{f"a{a}": float(rng.normal()) for a in rng.integers(30, size=6)} for _ in range(n)] for n in lengths]
    attributes, features = Attributes.fit(x)
    allowed = None
    if constrained:
        possible = rng.random((n_labels, n_labels)) < 0.7
        np.fill_diagonal(possible, True)
        allowed = Allowed(possible, np.arange(n_labels) != 1, np.arange(n_labels) != 2)
    n = len(attributes)
    templates = chain_templates(n, n_labels, all_pairs(n, n_labels), order, allowed)
    theta = scale * rng.normal(size=templates.layout().n_parameters)
    return ChainModel(tuple(range(n_labels)), attributes, templates, theta), features


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("lengths", [[25], [1], [3, 1, 40, 2]])
def test_the_short_way_is_the_general_way(lengths: list[int], scale: float, constrained: bool) -> None:
    model, features = made(1, 7, lengths, scale=scale, constrained=constrained)
    rounding = 1e-12 * max(1.0, scale / 100)  # of sums of numbers of this size
    expected = model.infer(features, "variables")
    assert expected.probabilities is not None
    found = model.marginals(features)
    assert_allclose(found, expected.probabilities.reshape(-1, 7), rtol=0, atol=rounding)
    assert_array_equal(found == 0, expected.probabilities.reshape(-1, 7) == 0)
    assert_allclose(model.log_partitions(features), expected.log_partitions, rtol=1e-12)
    for hidden in (0.0, 0.4, 1.0):
        rng = np.random.default_rng(2)
        codes = np.where(rng.random(sum(lengths)) < hidden, -1, rng.integers(7, size=sum(lengths)))
        known = model.infer(features, "log_partition", evidence=Evidence(codes))
        assert_allclose(model.log_partitions(features, codes), known.log_partitions, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_sequences_without_tokens(order: int) -> None:
    model, features = made(3, 3, [0, 2, 0, 4, 0], order=order, constrained=True)
    filled = features.lengths > 0
    expected = model.infer(features, "variables")
    assert expected.probabilities is not None
    assert_allclose(model.marginals(features), expected.probabilities.reshape(-1, 3), atol=1e-12)
    codes = np.array([0, -1, 2, -1, -1, 0])
    known = model.infer(features, "log_partition", evidence=Evidence(codes))
    for log_z, answer in (
        (model.log_partitions(features), expected),
        (model.log_partitions(features, codes), known),
    ):
        assert_array_equal(log_z[~filled], 0.0)
        assert_allclose(log_z[filled], answer.log_partitions, rtol=1e-12)
    _, empty = made(3, 3, [0, 0])
    assert model.marginals(empty).shape == (0, 3)
    assert_array_equal(model.log_partitions(empty), [0.0, 0.0])
    assert_array_equal(model.log_partitions(empty, np.zeros(0, np.int64)), [0.0, 0.0])


def test_first_order_chains_need_no_graph_and_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    general = ChainModel.graph

    def counted(self: ChainModel, features: Features) -> Any:
        asked.append(len(features.lengths))
        return general(self, features)

    monkeypatch.setattr(ChainModel, "graph", counted)
    x, y = [[["a"], ["b"]], [["b"]]], [["D", "N"], ["N"]]
    for order in (1, 2):
        crf = ChainCRF(l2=0.1, order=order).fit(x, y)
        marginals, log_p = crf.predict_marginals(x), crf.log_proba(x, y)
        assert bool(asked) == (order == 2)
        paths = list(itertools.product("DN", repeat=2))
        weights = np.exp(crf.log_proba([x[0]] * 4, paths))
        assert weights.sum() == pytest.approx(1.0, rel=1e-12)
        assert log_p[0] == pytest.approx(np.log(weights[paths.index(("D", "N"))]))
        assert_allclose(marginals[0][:, 0], [weights[:2].sum(), weights[::2].sum()], rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_one_sequence_has_the_answer_that_it_has_among_others(order: int) -> None:
    model, features = made(4, 4, [5, 1, 9], order=order)
    crf = ChainCRF(order=order)
    crf.model_, crf.learnt_by_ = model, "likelihood"
    x = [
        [
            {model.attributes.names[a]: features.values[j] for j, a in enumerate(features.indices[lo:hi], lo)}
            for lo, hi in itertools.pairwise(features.indptr[start : stop + 1].tolist())
        ]
        for start, stop in itertools.pairwise(features.offsets.tolist())
    ]
    y = [[t % 4 for t in range(len(one))] for one in x]
    together, log_p = crf.predict_marginals(x), crf.log_proba(x, y)
    for n, one in enumerate(x):
        assert_allclose(crf.predict_marginals([one])[0], together[n], atol=1e-12)
        assert_allclose(crf.log_proba([one], [y[n]]), log_p[n : n + 1], rtol=1e-12)


def test_threads_change_no_bit(forced: Forced) -> None:
    forced({"infer.chains.best.CHUNK": 50})
    rng = np.random.default_rng(5)
    x = [[[f"a{a}" for a in rng.integers(9, size=3)] for _ in range(rng.integers(1, 9))] for _ in range(60)]
    y = [[int(a) for a in rng.integers(3, size=len(one))] for one in x]
    crf = ChainCRF(l2=0.1, n_jobs=1).fit(x, y)
    marginals, log_p = np.concatenate(crf.predict_marginals(x)), crf.log_proba(x, y)
    for n_jobs in (2, 3, None):
        crf.set_params(n_jobs=n_jobs)
        assert_array_equal(np.concatenate(crf.predict_marginals(x)), marginals)
        assert_array_equal(crf.log_proba(x, y), log_p)


@pytest.mark.parametrize("order", [1, 2])
def test_sequences_that_have_no_labelling_are_named(order: int) -> None:
    """Unless labels are known: these have probability 0."""
    pairs = list(itertools.product("DN", repeat=2))
    crf = ChainCRF(order=order, forbidden=pairs).fit([[["a"]], [["b"]]], [["D"], ["N"]])
    items: list[Any] = [[["a"]], [["a"], ["b"]], [["b"]]]
    with pytest.raises(ModelError, match="sequence 1 has no labelling that the constraints allow"):
        crf.log_proba(items, [["D"], ["D", "N"], ["N"]])
    features = crf.model_.attributes.transform([[], *items])
    with pytest.raises(ModelError, match="sequence 2 has no labelling that the constraints allow"):
        crf.model_.log_partitions(features)
    with pytest.raises(ModelError, match="sequence 2 has no labelling that the constraints allow"):
        crf.model_.marginals(features)
    assert crf.model_.log_partitions(features, np.array([0, 0, 1, 1]))[2] == -np.inf
    partly = ChainCRF(order=order, forbidden=[("N", "D")]).fit([[["a"], ["b"]]], [["D", "N"]])
    assert_array_equal(partly.log_proba([[["a"], ["b"]]], [["N", "D"]]), [-np.inf])


@pytest.mark.parametrize("compile", [False, True])
def test_products_that_overflow_are_refused(forced: Forced, compile: bool) -> None:
    forced({"kernels.compile.worth_compiling": lambda work: compile})
    crf = ChainCRF(l2=0.1).fit([[["a"], ["b"]], [["b"]]], [["D", "N"], ["N"]])
    assert_array_equal(crf.predict_marginals([[{"a": 1e299}]])[0], [[1.0, 0.0]])
    for item in ({"a": 1e305}, {"a": 1e308, "b": -1e308}):
        with pytest.raises(ModelError, match=r"'state': energies must be at most 1e\+300 in size"):
            crf.predict_marginals([[item]])
        with pytest.raises(ModelError, match=r"'state': energies must be at most 1e\+300 in size"):
            crf.log_proba([[item]], [["D"]])
