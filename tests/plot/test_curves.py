"""Curves: the numbers that are drawn, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import besag
from besag import metrics, plot
from besag.errors import CapabilityError, ModelError

CURVE = metrics.calibration_curve([0, 1, 1, 0], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.6, 0.4]])


def history(optimizer: str = "lbfgs", **options: Any) -> Any:
    model = besag.data.bundled("chain_001")
    return besag.fit(model, model.sample(50, seed=0), l2=0.1, optimizer=optimizer, **options).history


def test_calibration() -> None:
    (axes,) = plot.draw_calibration({"bp": CURVE, "trw": CURVE}).axes
    diagonal, first, second = axes.lines
    assert np.array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    np.testing.assert_array_equal(first.get_xdata(), CURVE.said)
    np.testing.assert_array_equal(second.get_ydata(), CURVE.true)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == [f"{name}, error {CURVE.error:.3f}" for name in ("bp", "trw")]
    (axes,) = plot.draw_calibration(CURVE).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"error {CURVE.error:.3f}"]


def test_learning_curves() -> None:
    frame = history()
    value, norm = plot.draw_history(frame).axes
    np.testing.assert_array_equal(value.lines[0].get_ydata(), frame["value"])
    np.testing.assert_array_equal(norm.lines[0].get_ydata(), frame["grad_norm"])
    assert (value.get_yscale(), norm.get_yscale()) == ("linear", "log")


def test_several_fits_and_held_out_data() -> None:
    held_out = besag.data.bundled("chain_001").sample(20, seed=1)
    frames = {"lbfgs": history(held_out=held_out), "steepest descent": history("steepest_descent")}
    value, other, norm = plot.draw_history(frames, over="seconds").axes
    assert [len(axes.lines) for axes in (value, other, norm)] == [2, 1, 2]
    np.testing.assert_array_equal(value.lines[1].get_xdata(), frames["steepest descent"]["seconds"])
    assert [text.get_text() for text in norm.get_legend().get_texts()] == list(frames)


def test_a_quantity_that_is_not_known_has_no_panel() -> None:
    frame = history().assign(value=np.nan)
    assert [axes.get_title("left") for axes in plot.draw_history(frame).axes] == ["norm of the gradient"]


def test_files_are_written(tmp_path: Path) -> None:
    plot.draw_calibration(CURVE, tmp_path / "one.png")
    plot.draw_history(history(), tmp_path / "other.pdf")
    assert min(path.stat().st_size for path in tmp_path.iterdir()) > 1000


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="1 to 6 curves, got 0"):
        plot.draw_calibration({})
    with pytest.raises(ModelError, match="1 to 6 histories, got 7"):
        plot.draw_history({str(i): history() for i in range(7)})
    with pytest.raises(ModelError, match="over must be 'iteration' or 'seconds', got 'steps'"):
        plot.draw_history(history(), over="steps")
    with pytest.raises(ModelError, match="nothing to draw: expected at least one of value, held_out, grad_norm"):
        plot.draw_history(history().iloc[:0])
    with pytest.raises(ModelError, match=r"a history must be a DataFrame as fit\.history is, got list"):
        plot.draw_history([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"a curve must be one of besag.metrics.calibration_curve.* got list"):
        plot.draw_calibration([0, 1])  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"history 'a' must be a DataFrame as fit\.history is, got list"):
        plot.draw_history({"a": [1, 2]})  # type: ignore[dict-item]
    monkeypatch.setattr(besag.errors, "find_spec", lambda name: None)
    with pytest.raises(CapabilityError, match=r"matplotlib.*pip install 'besag\[plot\]'"):
        plot.draw_calibration(CURVE)
