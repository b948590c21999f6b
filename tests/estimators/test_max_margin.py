"""Estimators that learn by the structured hinge."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import besag
from besag.errors import CapabilityError, ConvergenceWarning, ModelError

NO_PROBABILITIES = "max_margin learns which labelling is best, and no probabilities"
WORDS = [[["the"], ["dog"], ["barks"]], [["a"], ["dog"]], [["the"], ["cat"], ["sleeps"]]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V"]]


def pictures(n: int) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    labels = [(np.add.outer(np.arange(6), np.arange(5)) + k > 6).astype(int) for k in range(n)]
    return [y[..., None] + rng.normal(0, 0.6, (*y.shape, 1)) for y in labels], labels


@pytest.mark.parametrize("order", [1, 2])
def test_chains(order: int, tmp_path: Path) -> None:
    crf = besag.ChainCRF(objective="max_margin", l2=0.01, order=order).fit(WORDS, TAGS)
    assert crf.converged_
    assert crf.predict(WORDS) == TAGS
    assert crf.score(WORDS, TAGS) == 1.0
    assert {"value", "gap"} <= set(crf.history_.columns)
    crf.save(tmp_path / "crf")
    for fitted in (crf, besag.load(tmp_path / "crf")):
        assert fitted.predict(WORDS) == TAGS
        for ask in (
            lambda crf=fitted: crf.predict_marginals(WORDS),
            lambda crf=fitted: crf.log_proba(WORDS, TAGS),
            lambda crf=fitted: crf.predict_kbest(WORDS),
        ):
            with pytest.raises(CapabilityError, match=NO_PROBABILITIES):
                ask()


def test_what_chains_refuse(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="objective must be one of 'likelihood', 'max_margin'"):
        besag.ChainCRF(objective="pseudolikelihood").fit(WORDS, TAGS)
    with pytest.raises(CapabilityError, match=NO_PROBABILITIES):
        besag.ChainCRF(objective="max_margin", decode="marginal").fit(WORDS, TAGS)
    with pytest.raises(ModelError, match="max_margin learns in memory: leave scratch out"):
        besag.ChainCRF(objective="max_margin", scratch=tmp_path).fit(WORDS, TAGS)
    with pytest.raises(CapabilityError, match="'frank_wolfe' needs l2 > 0"):
        besag.ChainCRF(objective="max_margin", l2=0.0).fit(WORDS, TAGS)
    with pytest.raises(CapabilityError, match="sequence 1 has labels that are unknown"):
        besag.ChainCRF(objective="max_margin").fit(WORDS, [TAGS[0], ["D", None], TAGS[2]])
    with pytest.raises(CapabilityError, match="'lbfgs' needs a smooth function, and this objective has kinks"):
        besag.ChainCRF(objective="max_margin", optimizer="lbfgs").fit(WORDS, TAGS)


def test_chains_go_on_and_do_not_depend_on_threads(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(n), 4)) for n in rng.integers(2, 9, 30)]
    y = [(x[:, 0] + rng.normal(size=len(x)) > 0).astype(int).tolist() for x in X]
    whole = besag.ChainCRF(objective="max_margin", tol=0.0, max_iter=6)
    with pytest.warns(
        ConvergenceWarning, match="its value .* at most .* above the least; more than max_iter=6 may help"
    ):
        whole.fit(X, y)
    part = besag.ChainCRF(objective="max_margin", tol=0.0, max_iter=6, n_jobs=1)
    part.fit(X, y, checkpoint=tmp_path / "fit", on_step=lambda row, _: row.iteration == 2)
    assert part.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="max_iter=6"):
        part.fit(X, y, checkpoint=tmp_path / "fit")
    assert_array_equal(part.model_.theta, whole.model_.theta)


def test_pictures(tmp_path: Path) -> None:
    images, labels = pictures(3)
    crf = besag.GridCRF(pairwise="potts", objective="max_margin", l2=0.05).fit(images, labels)
    assert crf.converged_
    assert crf.learnt_by_ == "max_margin"
    assert crf.score(images, labels) > besag.metrics.accuracy(labels, [m.argmax(2) for m in crf.decision_maps(images)])
    crf.save(tmp_path / "crf")
    for fitted in (crf, besag.load(tmp_path / "crf")):
        with pytest.raises(CapabilityError, match=NO_PROBABILITIES):
            fitted.predict_marginals(images)
        with pytest.raises(CapabilityError, match=NO_PROBABILITIES):
            fitted.log_proba(images, labels)
    with pytest.raises(CapabilityError, match=NO_PROBABILITIES):
        besag.GridCRF(objective="max_margin", decode="marginal").fit(images, labels)


def test_weights_of_classes_weigh_what_a_wrong_label_costs() -> None:
    images, labels = pictures(3)
    crf = besag.GridCRF(pairwise="potts", objective="max_margin", l2=0.05)
    shares = [
        np.mean([found.mean() for found in crf.set_params(class_weight=weight).fit(images, labels).predict(images)])
        for weight in ({0: 20.0, 1: 1.0}, None, {0: 1.0, 1: 20.0})
    ]
    assert shares[0] < shares[1] < shares[2]


def test_graphs_and_labels_of_one_instance() -> None:
    rng = np.random.default_rng(1)
    graphs = [(rng.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3], [3, 0]]) for _ in range(6)]
    y = [(nodes[:, 0] > 0).astype(int) for nodes, _ in graphs]
    crf = besag.GraphCRF(objective="max_margin", l2=0.002).fit(graphs, y)
    assert crf.score(graphs, y) == 1.0
    X = rng.normal(size=(30, 3))
    Y = np.stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 0] > 0], axis=1).astype(int)
    scene = besag.MultiLabelCRF(objective="max_margin", l2=0.05).fit(X, Y)
    assert scene.score(X, Y) > 0.95


def test_one_limit_of_time_for_both_fits_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.estimators import learner
    from tests.estimators.test_one_label import draw

    limits, minimum = list[float](), learner.minimum

    def noted(*given: Any, time_limit: float | None, **options: Any) -> Any:
        assert time_limit is not None
        limits.append(time_limit)
        return minimum(*given, time_limit=time_limit / len(limits) ** 8, **options)  # the second one is slow

    monkeypatch.setattr(learner, "minimum", noted)
    besag.GridCRF(pairwise="potts", time_limit=60.0).fit(*draw(0.8))
    assert limits[0] == 60.0
    assert 0.0 < limits[1] < 60.0
