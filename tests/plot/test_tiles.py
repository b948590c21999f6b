"""Tiles: one image a row, scaled alike; machines as pictures."""

from pathlib import Path

import numpy as np
import pytest

import besag
import besag.plot
from besag.errors import ModelError


def test_a_tile_for_each_row(tmp_path: Path) -> None:
    rows = np.arange(30.0).reshape(5, 6)
    figure = besag.plot.draw_tiles(rows, (2, 3), tmp_path / "tiles.png", columns=4)
    assert (tmp_path / "tiles.png").stat().st_size > 500
    images = [axes.images[0] for axes in figure.axes]
    assert len(images) == 5
    for image, row in zip(images, rows, strict=True):
        np.testing.assert_array_equal(image.get_array(), row.reshape(2, 3))
        assert image.get_clim() == (0.0, 29.0)
    assert besag.plot.draw_tiles([[-1.0, 0.5, 0.0, 0.0]]).axes[0].images[0].get_clim() == (-1.0, 1.0)


def test_filters_samples_and_curves_of_a_machine() -> None:
    X = np.random.default_rng(0).integers(2, size=(50, 9))
    rbm = besag.RBM(4, max_iter=2).fit(X)
    assert len(besag.plot.draw_tiles(rbm.components_).axes) == 4
    assert len(besag.plot.draw_tiles(rbm.sample(6)).axes) == 6
    titles = [axes.get_title(loc="left") for axes in besag.plot.draw_history(rbm.history_).axes]
    assert titles == ["pseudo-likelihood", "reconstruction error", "energy gap of the chains"]


@pytest.mark.parametrize(
    ("rows", "shape", "text"),
    [([[1.0, 2.0]], None, "no images"), ([[np.nan]], None, "finite"), ([1.0], None, "rows of")],
)
def test_what_is_no_image(rows: object, shape: object, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        besag.plot.draw_tiles(rows, shape)  # type: ignore[arg-type]
