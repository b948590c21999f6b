"""Fits of chain CRFs that are watched, end early, and go on later."""

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import besag
from besag.errors import ConvergenceWarning, ModelError, ParseError
from besag.estimators.chain_crf.inference import ChainModel
from besag.learn.early import HeldOut

importlib.import_module("numba")  # fits are compared to the last bit: none begins in plain Python


def sequences(seed: int, n: int) -> tuple[list[Any], list[list[str]]]:
    """Labels that a word decides, and a lot of words that tell nothing."""
    rng = np.random.default_rng(seed)
    x, y = [], []
    for _ in range(n):
        labels = [str(rng.choice(["A", "B", "C"])) for _ in range(rng.integers(1, 7))]
        noise = rng.integers(200, size=(len(labels), 4))
        right = [label if rng.random() < 0.7 else "?" for label in labels]
        x.append([[f"is={r}", *(f"n{i}" for i in row)] for r, row in zip(right, noise.tolist(), strict=True)])
        y.append(labels)
    return x, y


X, Y = sequences(0, 40)
OTHERS = sequences(1, 40)


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"l1": 0.05}], ids=str)
def test_the_fit_ends_where_the_loss_on_held_out_data_is_least(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"l2": 1e-3, "optimizer": "lbfgs", **options}
    best = besag.ChainCRF(**given).fit(X, Y, held_out=OTHERS)
    probed, losses = besag.ChainCRF(**given).fit(X, Y), list[float]()

    def loss(row: Any, theta: Any) -> bool:
        learnt = best.model_
        probed.model_ = ChainModel(learnt.classes, learnt.attributes, learnt.templates, theta)
        losses.append(-float(probed.log_proba(*OTHERS).sum()))
        return False

    whole = besag.ChainCRF(**given).fit(X, Y, on_step=loss)
    assert -best.log_proba(*OTHERS).sum() == pytest.approx(min(losses), rel=1e-12)
    assert losses[-1] > min(losses)
    assert whole.converged_
    assert not best.converged_
    assert len(best.history_) < len(whole.history_)
    assert best.history_["value"].iloc[-1] == best.objective_ > whole.objective_
    assert best.history_["step"].iloc[-1] == 0


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize("held_out", [None, OTHERS], ids=["", "held_out"])
@pytest.mark.parametrize("optimizer", ["lbfgs", "sgd[batch_size=7]"])
def test_going_on_from_a_checkpoint_changes_no_bit(
    optimizer: str, held_out: Any, scratch: bool, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"l2": 0.1, "optimizer": optimizer, "scratch": tmp_path if scratch else None}
    whole = besag.ChainCRF(max_iter=30, **given)
    parts = besag.ChainCRF(max_iter=4, **given)
    file = tmp_path / "fit.npz"
    fitted(whole, held_out)
    fitted(parts, held_out, file)
    assert parts.n_iter_ == 4
    fitted(parts.set_params(max_iter=9), held_out, file)
    fitted(parts.set_params(max_iter=30), held_out, file)
    assert_array_equal(parts.model_.theta, whole.model_.theta)
    assert parts.history_["value"].tolist() == whole.history_["value"].tolist()
    assert file.exists()


def fitted(crf: besag.ChainCRF, held_out: Any, checkpoint: Path | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where max_iter comes first
        crf.fit(X, Y, held_out=held_out, checkpoint=checkpoint)


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    fitted(besag.ChainCRF(max_iter=3), None, file)
    with pytest.raises(ModelError, match="resume is of other data or another penalty"):
        besag.ChainCRF(l2=7.0, max_iter=3).fit(X, Y, checkpoint=file)
    with pytest.raises(besag.errors.CapabilityError, match=r"resume is of .* parameters"):
        besag.ChainCRF(max_iter=3).fit(*OTHERS, checkpoint=file)
    file.write_text("no checkpoint")
    with pytest.raises(ParseError, match=r"fit.npz"):
        besag.ChainCRF(max_iter=3).fit(X, Y, checkpoint=file)


@pytest.mark.parametrize(
    ("held_out", "match"),
    [
        (X, r"held_out must be a pair \(X, y\) of sequences and labels"),
        (3, r"held_out must be a pair \(X, y\)"),
        (([], []), "held_out: X has no sequences"),
        (([[["is=A"]], []], [["A"], []]), "held_out: sequence 1 is empty"),
        (([[["is=A"]]], [["D"]]), "held_out: sequence 0, position 0: the label 'D' was not seen in training"),
        (([[["is=A"]]], [["A", "B"]]), "held_out: sequence 0: X has 1 items, and y has 2 labels"),
        (([[["is=A"], ["is=C"]]], [["A", "C"]]), "held_out: sequence 0, position 1: the constraints rule out label"),
    ],
)
def test_held_out_data_that_cannot_be_watched(held_out: Any, match: str) -> None:
    crf = besag.ChainCRF(forbidden=[("A", "C")], max_iter=2)
    with pytest.raises(ModelError, match=match):
        crf.fit([[["is=A"], ["is=B"]], [["is=C"]]], [["A", "B"], ["C"]], held_out=held_out)


@pytest.mark.parametrize("path", ["nowhere/fit.npz", ".", 3])
def test_checkpoints_that_could_not_be_written_are_refused_before_the_fit(path: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="checkpoint must be"):
        besag.ChainCRF().fit(X, Y, checkpoint=path if isinstance(path, int) else tmp_path / path)


@pytest.mark.parametrize("optimizer", ["lbfgs", "sgd", "adam[max_iterations=9]", "gradient_descent"])
@pytest.mark.parametrize("within", ["on_step", "loss"])
@pytest.mark.parametrize("last", [2, 5, 6])
def test_ctrl_c_while_data_are_held_out_loses_no_iteration(
    last: int, within: str, optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"l2": 0.01, "optimizer": optimizer, "max_iter": 25}
    whole, parts, file, calls = besag.ChainCRF(**given), besag.ChainCRF(**given), tmp_path / "fit.npz", iter(range(99))
    fitted(whole, OTHERS)
    look = HeldOut.__call__

    def pressed(*_: Any) -> None:
        if next(calls) == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if within == "loss":
            patch.setattr(HeldOut, "__call__", lambda self, theta: pressed() or look(self, theta))
        parts.fit(X, Y, held_out=OTHERS, checkpoint=file, on_step=pressed if within == "on_step" else None)
    assert parts.stopped_ == "interrupted"
    assert not parts.history_["held_out"].isna().any()
    fitted(parts, OTHERS, file)
    assert_array_equal(parts.model_.theta, whole.model_.theta)
    columns = ["iteration", "value", "step", "held_out"]
    assert parts.history_[columns].equals(whole.history_[columns])
