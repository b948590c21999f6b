"""A warning where pseudolikelihood has learnt that one label everywhere beats the truth, and none where it has not."""

import warnings

import numpy as np
import pytest

import besag
from besag.errors import ConvergenceWarning, DataWarning


def draw(noise: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Three pictures of two blocks; the features are noisy indicators of the labels."""
    rng = np.random.default_rng(0)
    truth = [np.zeros((20, 30), np.int64) for _ in range(3)]
    for n, labels in enumerate(truth):
        labels[5:15, 2 + 5 * n : 15 + 5 * n] = 1
        labels[10:19, 20:28] = 2
    images = [np.stack([y == k for k in range(3)], axis=-1) + rng.normal(0, noise, (20, 30, 3)) for y in truth]
    return images, truth


def test_one_label_everywhere_is_told() -> None:
    images, truth = draw(0.8)
    with pytest.warns(DataWarning, match="one label everywhere is more probable than the true labels"):
        crf = besag.GridCRF(pairwise="potts", objective="pseudolikelihood").fit(images, truth)
    for image, maps, y in zip(images, crf.decision_maps(images), truth, strict=True):
        right, down = crf.edge_strength(image)
        broken = right[y[:, 1:] != y[:, :-1]].sum() + down[y[1:] != y[:-1]].sum()
        assert maps.sum(axis=(0, 1)).max() > np.take_along_axis(maps, y[..., None], axis=2).sum() - broken


@pytest.mark.parametrize("case", ["clear", "marginal loss", "one unknown each"])
def test_nothing_is_told_otherwise(case: str) -> None:
    images, truth = draw(0.1 if case == "clear" else 0.8)
    if case == "one unknown each":
        for labels in truth:
            labels[0, 0] = -1
    objective = "marginal_loss[engine=bp,iterations=3]" if case == "marginal loss" else "pseudolikelihood"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        besag.GridCRF(pairwise="potts", objective=objective).fit(images, truth)


def test_the_default_takes_the_likelihood_then() -> None:
    images, truth = draw(0.8)
    with pytest.warns(ConvergenceWarning, match="inference was approximate, and its values have kinks") as told:
        crf = besag.GridCRF(pairwise="potts").fit(images, truth)
    assert not any(issubclass(warning.category, DataWarning) for warning in told)
    assert crf.learnt_by_ == "likelihood[engine=bp]"
    alone = [maps.argmax(axis=-1) for maps in crf.decision_maps(images)]
    assert crf.score(images, truth) > max(0.9, besag.metrics.accuracy(truth, alone))
    clear = draw(0.1)
    assert besag.GridCRF(pairwise="potts").fit(*clear).learnt_by_ == "pseudolikelihood"


def test_where_the_default_has_no_other_objective() -> None:
    images, truth = draw(0.8)
    with pytest.warns(DataWarning, match="by the model that pseudolikelihood has learnt"):
        besag.GridCRF(pairwise="potts", class_weight="balanced").fit(images, truth)
