"""Pictures of images: which colours are where, what is in the key, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import besag
from besag import plot
from besag.errors import CapabilityError, ModelError, TooLargeError

IMAGE = np.arange(12.0).reshape(3, 4)
LABELS = np.array([[0, 0, 1, 1], [0, 2, 2, 1], [-1, 255, 2, 2]])


def pixels(axes: Axes) -> np.ndarray:
    return np.asarray(axes.images[0].get_array())


def key(figure: Figure) -> dict[str, tuple[float, ...]]:
    handles = figure.legends[0].get_patches()
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    return {name: patch.get_facecolor()[:3] for name, patch in zip(names, handles, strict=True)}


def test_one_colour_for_each_class() -> None:
    swapped = np.where(LABELS == 0, 1, LABELS)
    figure = plot.draw_segmentation(IMAGE, {"truth": LABELS, "found": swapped}, ignore=(-1, 255))
    image, truth, found = figure.axes
    assert [axes.get_title("left") for axes in figure.axes] == ["image", "truth", "found"]
    assert pixels(image).shape == (3, 4)
    colours = key(figure)
    assert list(colours) == ["0", "1", "2"]
    for label in range(3):
        assert (pixels(truth)[label == LABELS] == colours[str(label)]).all()
        assert (pixels(found)[swapped == label] == colours[str(label)]).all()
    unknown = pixels(truth)[2, :2]
    assert (unknown[0] == unknown[1]).all()
    assert not any((unknown[0] == colour).all() for colour in colours.values())


def test_labels_may_be_names() -> None:
    names = np.array(["sky", "cow", "grass"], object)[LABELS.clip(0, 2)]
    names[2, :2] = None
    figure = plot.draw_segmentation(IMAGE, {"": names.tolist()})
    assert list(key(figure)) == ["cow", "grass", "sky"]
    ordered = plot.draw_segmentation(IMAGE, {"": names}, classes=["sky", "cow", "grass", "sea"])
    assert list(key(ordered)) == ["sky", "cow", "grass", "sea"]
    assert (pixels(ordered.axes[1])[0, 0] == key(ordered)["sky"]).all()


@pytest.mark.parametrize(
    ("image", "shown"),
    [
        (IMAGE, IMAGE / 11),
        (np.full((3, 4), 7), np.zeros((3, 4))),
        (np.full((3, 4, 3), 0.25), np.full((3, 4, 3), 0.25)),
        (np.full((3, 4, 3), 200, np.uint8), np.full((3, 4, 3), 200)),
    ],
)
def test_images_are_scaled_where_they_have_to_be(image: Any, shown: Any) -> None:
    figure = plot.draw_segmentation(image, {"": LABELS}, ignore=(-1, 255))
    np.testing.assert_allclose(pixels(figure.axes[0]), shown)


def test_heat_map() -> None:
    r = besag.ising((3, 4), 0.4, 0.2).marginals()
    figure = plot.draw_heat_map(r.array, titles=["-1", "+1"])
    down, up, scale = figure.axes
    assert [axes.get_title("left") for axes in (down, up)] == ["-1", "+1"]
    np.testing.assert_array_equal(pixels(up), r.array[:, :, 1])
    assert up.images[0].get_clim() == (0, 1)
    assert scale.get_label() == "<colorbar>"
    assert plot.draw_heat_map(IMAGE, limits=None).axes[0].images[0].get_clim() == (0, 11)


def test_many_panels_stand_in_rows() -> None:
    figure = plot.draw_heat_map(np.zeros((3, 4, 6)))
    assert [axes.get_title("left") for axes in figure.axes[:6]] == list("012345")
    assert not any(axes.axison for axes in figure.axes[:8])


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_files_are_written(suffix: str, tmp_path: Path) -> None:
    loaded = "matplotlib.pyplot" in sys.modules
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    plot.draw_segmentation(IMAGE, {"found": LABELS}, one, ignore=(-1, 255))
    plot.draw_heat_map(IMAGE, other, limits=None)
    assert min(one.stat().st_size, other.stat().st_size) > 1000
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(besag.errors, "find_spec", lambda name: None)
    with pytest.raises(CapabilityError, match=r"matplotlib.*pip install 'besag\[plot\]'"):
        plot.draw_heat_map(IMAGE)
    with pytest.raises(CapabilityError, match=r"matplotlib.*pip install 'besag\[plot\]'"):
        plot.draw_segmentation(IMAGE, {"": LABELS})


@pytest.mark.parametrize(
    ("image", "labellings", "options", "error", "match"),
    [
        (
            IMAGE,
            {"found": LABELS.T},
            {},
            ModelError,
            r"'found' must have the shape of the image, \(3, 4\), got \(4, 3\)",
        ),
        (IMAGE, {}, {}, ModelError, "with at least one"),
        (
            np.zeros(3),
            {"": LABELS},
            {},
            ModelError,
            r"an image must be numbers of shape .* got float64 of shape \(3,\)",
        ),
        (np.full((3, 4), np.nan), {"": LABELS}, {}, ModelError, "an image must be finite"),
        (IMAGE, {"": LABELS}, {"classes": [0, 1]}, ModelError, r"the label 2 is none of the classes \[0, 1\]"),
        (IMAGE, {"": np.full((3, 4), -1)}, {}, TooLargeError, "1 to 20 classes, got 0"),
        (np.zeros((5, 5)), {"": np.arange(25).reshape(5, 5)}, {}, TooLargeError, "1 to 20 classes, got 25"),
    ],
)
def test_bad_labellings(image: Any, labellings: Any, options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        plot.draw_segmentation(image, labellings, **options)


def test_bad_heat_maps() -> None:
    with pytest.raises(
        ModelError, match=r"expected finite numbers \(H, W\) or \(H, W, K\), got float64 of shape \(3,\)"
    ):
        plot.draw_heat_map(np.zeros(3))
    with pytest.raises(ModelError, match="expected finite numbers"):
        plot.draw_heat_map(np.full((2, 2), np.nan))
    with pytest.raises(ModelError, match="titles must be 2, one for each panel, got 1"):
        plot.draw_heat_map(np.zeros((2, 2, 2)), titles=["a"])
    with pytest.raises(TooLargeError, match="at most 20 panels, got 21"):
        plot.draw_heat_map(np.zeros((2, 2, 21)))


def test_strengths_of_edges_have_a_panel_for_each_direction() -> None:
    strengths = (np.arange(9.0).reshape(3, 3), -np.arange(8.0).reshape(2, 4))
    figure = plot.draw_edge_strength(IMAGE, strengths)
    image, right, down = figure.axes[:3]
    assert [axes.get_title("left") for axes in (image, right, down)] == ["image", "right", "down"]
    assert (pixels(right)[:, :3] == strengths[0]).all()
    assert (pixels(down)[:2] == strengths[1]).all()
    assert pixels(right).shape == pixels(down).shape == (3, 4)
    assert right.images[0].get_clim() == down.images[0].get_clim() == (-7.0, 8.0)
    assert len(plot.draw_edge_strength(IMAGE[:1], (np.ones((1, 3)), np.ones((0, 4)))).axes) == 4
    with pytest.raises(ModelError, match=r"strengths must be what edge_strength\(image\) gives, arrays of shapes"):
        plot.draw_edge_strength(IMAGE, strengths[::-1])
    with pytest.raises(ModelError, match="strengths must be finite numbers"):
        plot.draw_edge_strength(IMAGE, (strengths[0] * np.nan, strengths[1]))


def test_one_array_is_no_labelling_by_title() -> None:
    with pytest.raises(ModelError, match=r'labellings must be \{title: labels\}, as \{"found": labels\}, got ndarray'):
        plot.draw_segmentation(np.zeros((3, 4)), np.zeros((3, 4)))  # type: ignore[arg-type]


def test_what_is_no_array_is_named() -> None:
    result = besag.ising((3, 3), 0.2).marginals()
    with pytest.raises(ModelError, match=r"\(H, W, K\), got Result; those of a Result are its array"):
        plot.draw_heat_map(result)
    with pytest.raises(ModelError, match=r"an image must be .* got Result"):
        plot.draw_segmentation(result, {})
    with pytest.raises(ModelError, match=r"tiles must be rows of numbers \(N, H W\), got Result"):
        plot.draw_tiles(result)
