"""Contrastive divergence and persistent chains against exact gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.data.dataset import Dataset
from besag.errors import CapabilityError
from besag.learn.losses.base import read_objective

pytestmark = pytest.mark.filterwarnings("ignore:inference was not exact")


def model(seed: int = 0) -> besag.Model:
    rng = np.random.default_rng(seed)
    pairs = [((a, b), rng.normal(size=(2, 2))) for a, b in [(0, 1), (1, 2), (2, 3), (3, 0)]]
    return besag.markov_network([2, 2, 2, 2], [*pairs, ((1, 3), besag.potts(2)), ((0,), rng.normal(size=2))])


def rows(n: int, hidden: bool = False) -> np.ndarray:
    codes = model(7).sample(n, seed=1).to_numpy().astype(np.int64)
    if hidden:
        codes[: n // 2, 2] = -1
        codes[n // 4 :, 0] = -1
    return codes


def mean_gradient(text: str, data: besag.Dataset, calls: int = 60) -> np.ndarray:
    """The mean of gradients at one theta, chains going on from call to call."""
    loss, theta, state, total = read_objective(text), model().theta, None, 0.0
    for _ in range(calls):
        value, gradient, state = loss.value_and_grad(theta, data.all, state)
        assert value is None
        total = total + gradient
    return loss.statistics(data.all) + total / calls


@pytest.mark.parametrize(
    "text", ["pcd[k=5,n_chains=200]", "contrastive_divergence[k=40]", "contrastive_divergence[k=5,persistent=true]"]
)
@pytest.mark.parametrize("hidden", [False, True])
def test_long_chains_have_the_gradient_of_the_likelihood(text: str, hidden: bool) -> None:
    data = Dataset.rows(model(), rows(200, hidden))
    exact = besag.objective("likelihood", model(), rows(200, hidden)).value_and_grad(model().theta)[1]
    assert np.abs(exact).max() > 10
    assert_allclose(mean_gradient(text, data) / 200, exact / 200, atol=0.02)


@pytest.mark.parametrize("text", ["pcd[k=5,n_chains=200]", "contrastive_divergence[k=40]"])
def test_structured_data_with_weights_and_hidden_labels(text: str) -> None:
    parts = []
    for n, labels in enumerate([[0, 1, -1], [1, -1, 0, 0], [1, 1]]):
        groups = [besag.FactorGroup(besag.Template("edge", (2, 2)), [[i, i + 1] for i in range(len(labels) - 1)])]
        groups.append(
            besag.FactorGroup(
                besag.Template("node", (2,), n_inputs=1),
                [[i] for i in range(len(labels))],
                inputs=np.full((len(labels), 1), n - 0.5),
            )
        )
        parts.append(besag.StructuredData([2] * len(labels), groups, labels=labels))
    theta, weights = np.array([0.5, -0.2, 0.1, -0.4, 0.3, -0.3]), [1.0, 2.0, 0.5]
    data = Dataset.union(parts, weights)
    start = besag.Model(parts[0].variables, parts[0].groups, theta)
    exact = besag.objective("likelihood", start, parts, weights=weights).value_and_grad(theta)[1]
    loss, state, total = read_objective(text), None, 0.0
    for _ in range(600):
        _, gradient, state = loss.value_and_grad(theta, data.all, state)
        total = total + gradient / 600
    assert_allclose(loss.statistics(data.all) + total, exact, atol=0.15)


@pytest.mark.parametrize("text", ["pcd", "contrastive_divergence"])
def test_fits_come_near_the_likelihood_with_monitors_and_checkpoints(text: str) -> None:
    data, sgd = rows(200), "adam[max_iterations={},step=0.05,batch_size=50]"
    best = besag.fit(model(), data, l2=0.5)
    found = besag.fit(model(), data, objective=text, optimizer=sgd.format(30), l2=0.5)
    assert best.log_proba(data).sum() - found.log_proba(data).sum() < 3.0
    assert {"moved", "energy_gap"} <= set(found.history)
    moved = found.history["moved"]
    assert np.isnan(moved[0])
    assert ((moved[1:] > 0) & (moved[1:] <= 1)).all()
    half = besag.fit(model(), data, objective=text, optimizer=sgd.format(15), l2=0.5)
    rest = besag.fit(model(), data, objective=text, optimizer=sgd.format(30), l2=0.5, resume=half.checkpoint)
    assert rest.log.n_iterations == 30
    assert found.surrogate == (None if text == "pcd" else "contrastive_divergence")


def test_options_are_checked() -> None:
    for text in ("pcd[k=0]", "contrastive_divergence[k=0]", "pcd[n_chains=0]"):
        with pytest.raises(CapabilityError):
            read_objective(text)
    with pytest.raises(CapabilityError, match="compares values"):
        besag.fit(model(), rows(20), objective="pcd", optimizer="lbfgs")
