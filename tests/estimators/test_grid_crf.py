"""GridCRF held to enumeration, to its formula, and to what users hand over."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError
from besag.estimators.grid_crf import GridCRF

STEPS = {"right": (0, 1), "down": (1, 0), "down_right": (1, 1), "down_left": (1, -1)}


def pictures(seed: int, shapes: list[tuple[int, int]], n_labels: int = 2) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    labels = [rng.integers(n_labels, size=shape) for shape in shapes]
    images = [np.eye(n_labels)[y] + rng.normal(size=(*y.shape, n_labels)) for y in labels]
    return images, labels


def log_potential(crf: GridCRF, image: Any, labels: Any, edge_features: Any = None) -> float:
    """The exponent of the formula, pixel by pixel and edge by edge."""
    total = sum(
        crf.intercept_[k] + crf.coef_[k] @ x
        for k, x in zip(labels.ravel(), image.reshape(-1, image.shape[2]), strict=True)
    )
    form: Any = crf.model_.form
    height, width = labels.shape
    for direction, name in enumerate(form.directions):
        down, right = STEPS[name]
        block = crf.model_.block(name if form.pairwise == "table" else "edge")
        left = -right if right < 0 else 0
        for i, j in itertools.product(range(height - down), range(left, width - max(right, 0))):
            one, other = (i, j), (i + down, j + right)
            inputs = [1.0]
            if form.pairwise == "contrast":
                inputs.append(np.exp(-0.5 * np.mean((image[one] - image[other]) ** 2 / form.scale)))
            if edge_features is not None:
                inputs += list(edge_features[direction][i, j - left])
            if form.pairwise == "table":
                tables = block.reshape(len(inputs), form.n_classes, form.n_classes)
                total += np.array(inputs) @ tables[:, labels[one], labels[other]]
            elif labels[one] != labels[other]:
                total += np.array(inputs) @ block
    return float(total)


def all_labels(shape: tuple[int, int], n_labels: int) -> list[Any]:
    return [np.array(y).reshape(shape) for y in itertools.product(range(n_labels), repeat=shape[0] * shape[1])]


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("pairwise", ["potts", "contrast", "table"])
@pytest.mark.parametrize("with_features", [False, True])
def test_002_11_probabilities_are_those_of_the_formula(pairwise: str, connectivity: int, with_features: bool) -> None:
    images, labels = pictures(3, [(2, 3), (3, 2), (2, 3)])
    rng = np.random.default_rng(5)
    sizes = {"right": (0, 1), "down": (1, 0), "down_right": (1, 1), "down_left": (1, 1)}
    features = None
    if with_features:
        names = list(sizes)[: connectivity // 2]
        features = [
            tuple(rng.normal(size=(y.shape[0] - sizes[d][0], y.shape[1] - sizes[d][1], 2)) for d in names)
            for y in labels
        ]
    crf = GridCRF(pairwise=pairwise, connectivity=connectivity, objective="likelihood", l2=0.1)
    crf.fit(images, labels, edge_features=features)
    for n in range(3):
        own = None if features is None else features[n]
        given = None if own is None else [own]
        every = all_labels(labels[n].shape, 2)
        scores = np.array([log_potential(crf, images[n], y, own) for y in every])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        expected = sum(weight * np.eye(2)[y] for weight, y in zip(p, every, strict=True))
        assert_allclose(crf.predict_marginals([images[n]], given)[0], expected, atol=1e-9)
        assert_allclose(crf.predict([images[n]], given)[0], every[int(np.argmax(scores))])
        where = next(i for i, y in enumerate(every) if (y == labels[n]).all())
        assert_allclose(crf.log_proba([images[n]], [labels[n]], given), np.log(p[where]), atol=1e-9)


def test_002_14_the_objective_is_the_conditional_likelihood_and_a_penalty_without_the_intercept() -> None:
    images, labels = pictures(1, [(2, 2), (2, 3)])
    crf = GridCRF(pairwise="potts", objective="likelihood", l2=0.7, tol=1e-9).fit(images, labels)
    weights = np.concatenate([crf.coef_.ravel(), crf.model_.block("edge")])
    assert_allclose(crf.objective_, 0.7 * (weights**2).sum() - crf.log_proba(images, labels).sum(), rtol=1e-9)


def test_unknown_labels_are_summed_out_and_ignored_labels_are_unknown() -> None:
    images, labels = pictures(2, [(2, 3), (3, 2)])
    void = [y.copy() for y in labels]
    void[0][0, 1] = void[1][2, 0] = 255
    unknown = [np.where(y == 255, -1, y) for y in void]
    one = GridCRF(objective="likelihood", ignore_label=255).fit(images, void)
    other = GridCRF(objective="likelihood").fit(images, unknown)
    assert one.classes_ == other.classes_ == [0, 1]
    assert_allclose(one.model_.theta, other.model_.theta)
    both = [np.where(void[0] == 255, k, void[0]) for k in (0, 1)]
    apart = [other.log_proba([images[0]], [y])[0] for y in both]
    assert_allclose(other.log_proba([images[0]], [unknown[0]])[0], np.logaddexp(*apart), atol=1e-9)


def test_labels_keep_their_type() -> None:
    images, labels = pictures(4, [(3, 3)])
    named = np.array(["bird", "sky"])[labels[0]].astype(object)
    named[0, 0] = None
    crf = GridCRF(objective="likelihood").fit(images, [named])
    assert crf.classes_ == ["bird", "sky"]
    assert set(crf.predict(images)[0].ravel()) <= {"bird", "sky"}
    assert crf.score(images, [named]) == np.mean((crf.predict(images)[0] == named).ravel()[1:])


def test_002_edge_strength_is_how_much_more_probable_equal_neighbours_are() -> None:
    images, labels = pictures(6, [(3, 3), (3, 3)])
    crf = GridCRF(pairwise="contrast", objective="likelihood").fit(images, labels)
    right, down = crf.edge_strength(images[0])
    assert right.shape == (3, 2)
    assert down.shape == (2, 3)
    same, different = np.zeros((3, 3), int), np.zeros((3, 3), int)
    different[0, 0] = 1
    # Of the two edges of the corner pixel, both are cut; what single pixels say is taken off.
    alone = crf.decision_maps([images[0]])[0][0, 0]
    cut = crf.log_proba([images[0]], [same])[0] - crf.log_proba([images[0]], [different])[0] - (alone[0] - alone[1])
    assert_allclose(right[0, 0] + down[0, 0], cut, atol=1e-9)


@pytest.mark.parametrize("pairwise", ["potts", "contrast", "table"])
def test_saved_estimators_answer_as_before(pairwise: str, tmp_path: Path) -> None:
    images, labels = pictures(7, [(3, 2), (2, 2)])
    crf = GridCRF(pairwise=pairwise, objective="likelihood", connectivity=8).fit(images, labels)
    crf.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    assert again.get_params() == crf.get_params()
    assert_allclose(again.predict_marginals(images)[0], crf.predict_marginals(images)[0])
    assert again.history_.equals(crf.history_)


def test_engines_are_saved_as_text(tmp_path: Path) -> None:
    images, labels = pictures(7, [(3, 2)])
    crf = GridCRF(engine=besag.infer.BP(damping=0.3)).fit(images, labels)
    crf.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    assert again.engine == "bp[damping=0.3]"
    assert_allclose(again.predict_marginals(images)[0], crf.predict_marginals(images)[0])


def test_answers_do_not_depend_on_threads_and_fits_can_be_continued(tmp_path: Path) -> None:
    images, labels = pictures(8, [(3, 3)] * 4)
    one, two = (GridCRF(objective="likelihood", n_jobs=n).fit(images, labels) for n in (1, 2))
    assert np.array_equal(one.model_.theta, two.model_.theta)
    with pytest.warns(besag.errors.ConvergenceWarning):
        GridCRF(objective="likelihood", max_iter=2).fit(images, labels, checkpoint=tmp_path / "fit")
    whole = GridCRF(objective="likelihood").fit(images, labels, checkpoint=tmp_path / "fit")
    assert_allclose(whole.objective_, one.objective_, rtol=1e-6)


IMAGE, LABELS = np.zeros((3, 4, 2)), np.zeros((3, 4), int)
BROKEN: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([IMAGE], [LABELS[:2]], {}, r"instance 0: labels must have shape \(3, 4\), as its features have, got \(2, 4\)"),
    ([IMAGE], [LABELS, LABELS], {}, "1 instances and labels of 2"),
    ([IMAGE, IMAGE[..., :1]], [LABELS, LABELS], {}, "image 1 has 1 features a pixel, image 0 has 2"),
    (
        [np.where(np.arange(24).reshape(3, 4, 2) == 5, np.nan, 0)],
        [LABELS],
        {},
        r"image 0: feature 1 of pixel \(0, 2\) is nan",
    ),
    ([IMAGE], [LABELS - 1], {}, "no label is known"),
    ([], [], {}, "images must be a list of arrays .*, and not empty"),
    ([IMAGE], [np.full((3, 4), 0.5)], {}, "labels must be whole numbers, texts or booleans, got 0.5"),
    ([IMAGE], [LABELS], {"pairwise": "pots"}, "pairwise must be one of 'potts', 'contrast', 'table', got 'pots'"),
    ([IMAGE], [LABELS], {"connectivity": 6}, "connectivity must be one of 4, 8, got 6"),
]


@pytest.mark.parametrize(("images", "labels", "options", "expected"), BROKEN)
def test_what_cannot_be_is_refused_by_name(images: Any, labels: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        GridCRF(objective="likelihood", **options).fit(images, labels)


def test_what_cannot_be_predicted_is_refused_by_name() -> None:
    images, labels = pictures(9, [(3, 3)])
    crf = GridCRF(objective="likelihood").fit(images, labels)
    with pytest.raises(
        ModelError, match=r"images must have 2 features a pixel, as in training, got 1; .* write .image."
    ):
        crf.predict(images[0])
    with pytest.raises(ModelError, match=r"instance 0, position \(1, 2\): the label 7 was not seen in training"):
        crf.score(images, [np.where(np.arange(9).reshape(3, 3) == 5, 7, labels[0])])
    with pytest.raises(ModelError, match="edge_features of image 0 must be finite, one array of each of the shapes"):
        GridCRF().fit(images, labels, edge_features=[(np.zeros((3, 2, 1)), np.zeros((3, 3, 1)))])
    with pytest.raises(AttributeError, match="not fitted yet"):
        GridCRF().predict(images)


def test_one_label_and_constant_features_are_fitted() -> None:
    crf = GridCRF(objective="likelihood").fit([IMAGE + 1.0], [LABELS])
    assert crf.classes_ == [0]
    assert (crf.predict([IMAGE])[0] == 0).all()
    labels = np.arange(12).reshape(3, 4) % 2
    constant = GridCRF(objective="likelihood", pairwise="contrast").fit([IMAGE + 1.0], [labels])
    assert np.isfinite(constant.objective_)


def test_large_pictures_do_not_take_exact_answers_from_small_ones() -> None:
    images, labels = pictures(10, [(3, 3), (2, 4), (90, 90), (7, 7), (3, 3)])
    crf = GridCRF(objective="pseudolikelihood").fit(images[:2], labels[:2])
    with pytest.warns(besag.errors.ApproximationWarning, match="approximate for 1 of 5 instances"):
        together = crf.predict_marginals(images)
    for n in (0, 1, 3, 4):
        assert_allclose(together[n], crf.predict_marginals([images[n]])[0], atol=1e-12)
