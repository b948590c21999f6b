"""Checkpoints on disk: every bit comes back, and broken files are refused."""

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from besag.errors import ParseError
from besag.learn.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from besag.learn.history import Iteration
from tests.io.helpers import encrypted


def example() -> Checkpoint:
    rows = (Iteration(0, 0.25, 1.0 / 3.0, 2.0, 0.0), Iteration(1, 0.5, math.nan, math.inf, 1e-300))
    kept = {"theta": np.array([[1, 2]], np.int64), "rate": 0.1, "count": 2**70, "generator": '{"state": 1}'}
    return Checkpoint("sgd", np.array([0.1, -0.0, 1e-320]), 1, 12.5, rows, kept)


def test_everything_comes_back(tmp_path: Path) -> None:
    path, saved = tmp_path / "fit.ckpt", example()
    save_checkpoint(saved, path)
    loaded = load_checkpoint(path)
    assert [loaded.optimizer, loaded.iteration, loaded.seconds] == ["sgd", 1, 12.5]
    assert loaded.theta.tobytes() == saved.theta.tobytes()
    assert repr(loaded.rows) == repr(saved.rows)
    assert_array_equal(loaded.kept["theta"], saved.kept["theta"])
    assert loaded.kept["theta"].dtype == np.int64  # type: ignore[union-attr]
    assert {k: v for k, v in loaded.kept.items() if k != "theta"} == {
        k: v for k, v in saved.kept.items() if k != "theta"
    }
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fit.npz"
    save_checkpoint(example(), path)
    before = path.read_bytes()

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(example(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def about(**changes: Any) -> np.ndarray:
    told = {"format": "besag checkpoint 1", "optimizer": "sgd", "iteration": 0, "seconds": 1.0, "kept": {}}
    return np.array(json.dumps({**told, **changes}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        archive(a=np.zeros(3)),
        archive(about=np.array("no json"), theta=np.zeros(3), rows=np.zeros((1, 5))),
        archive(about=np.array("[]"), theta=np.zeros(3), rows=np.zeros((1, 5))),
        archive(about=about(format="other"), theta=np.zeros(3), rows=np.zeros((1, 5))),
        archive(about=about(), theta=np.zeros((3, 1)), rows=np.zeros((1, 5))),
        archive(about=about(), theta=np.zeros(3), rows=np.zeros((2, 5))),
        archive(about=about(iteration="x"), theta=np.zeros(3), rows=np.zeros((2, 5))),
        archive(about=about(), theta=np.array([None]), rows=np.zeros((1, 5))),
    ],
)
def test_what_is_no_checkpoint_is_refused(content: bytes, write: Callable[..., Path]) -> None:
    path = write("fit.npz", content)
    with pytest.raises(ParseError, match=r"fit\.npz: expected a checkpoint of besag, but it cannot be read"):
        load_checkpoint(path)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    save_checkpoint(example(), path)
    whole = path.read_bytes()
    for length in range(1, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ParseError, match="cannot be read"):
            load_checkpoint(path)


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    save_checkpoint(example(), path)
    path.write_bytes(encrypted(path.read_bytes()))
    with pytest.raises(ParseError, match=r"fit\.npz: .* cannot be read: .* is encrypted"):
        load_checkpoint(path)


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.npz")
