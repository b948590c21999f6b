"""`besag fit` and `besag predict`: sequences and images from files to a model, and back to labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import besag
from besag import cli
from tests.cli.conftest import Ask, Write

SENTENCES = [
    "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\non IN O\nthe DT B-NP\nmat NN I-NP\n",
    "She PRP B-NP\nreads VBZ B-VP\nold JJ B-NP\nbooks NNS I-NP\n",
    "They PRP B-NP\nsell VBP B-VP\nthe DT B-NP\nhouse NN I-NP\n",
]
CONLL = "\n".join(SENTENCES)
CRFSUITE = "\n".join("B\tw=a\tcaps\nI\tw=b\n" for _ in range(3)) + "\n@weight:2\tB\tw=a\n"


@pytest.fixture
def tagger(ask: Ask, write: Write, tmp_path: Path) -> str:
    model = str(tmp_path / "tagger.npz")
    out = ask("fit", "chain", write("train.txt", CONLL), model, "--l2", "0.01", "--constraint", "BIO", "--window", "1")
    told = dict(line.split("\t") for line in out.splitlines())
    assert told["sequences"] == "3, 14 tokens"
    assert told["labels"] == "B-NP, B-VP, I-NP, O"
    assert told["ended"] == "converged"
    assert told["model"] == model
    return model


def test_a_tagger_adds_a_column(ask: Ask, write: Write, tagger: str) -> None:
    found = ask("predict", tagger, write("test.txt", "The DT\nhouse NN\nsat VBD\n\nShe PRP\n"))
    assert found == "The DT B-NP\nhouse NN I-NP\nsat VBD B-VP\n\nShe PRP B-NP\n\n"
    line = ask("predict", tagger, write("again.txt", SENTENCES[1]), "--probabilities").splitlines()[0].split()
    assert line[:4] == ["She", "PRP", "B-NP", "B-NP"]
    assert 0.5 < float(line[4]) <= 1


def test_a_tagger_is_scored(ask: Ask, write: Write, tagger: str) -> None:
    assert (
        ask("predict", tagger, write("t.txt", CONLL), "--score")
        == "tokens\t14\naccuracy\t1.0000\nF1 of chunks\t1.0000\n"
    )


def test_a_tagger_is_an_estimator_for_python(tagger: str) -> None:
    crf = besag.load(tagger)
    assert isinstance(crf, besag.ChainCRF)
    assert crf.notes_["window"] == 1
    assert (crf.verbose, crf.time_limit, crf.constraint) == (False, None, "BIO")


def test_attributes_of_crfsuite_and_weights(ask: Ask, write: Write, tmp_path: Path) -> None:
    train, model = write("train.crfsuite", CRFSUITE), str(tmp_path / "m.npz")
    ask("fit", "chain", train, model, "--format", "crfsuite", "--l2", "0.1")
    assert ask("predict", model, train).splitlines()[:3] == ["B", "I", ""]
    plain = besag.ChainCRF(l2=0.1).fit(
        [[["w=a", "caps"], ["w=b"]]] * 3 + [[["w=a"]]], [["B", "I"]] * 3 + [["B"]], sample_weight=[1, 1, 1, 2]
    )
    assert besag.load(model).objective_ == pytest.approx(plain.objective_, rel=1e-9)
    ask("fit", "chain", train, model, "--format", "crfsuite", "--held-out", train)
    assert np.isfinite(besag.load(model).history_["held_out"]).all()


def test_columns_and_labels_by_number(ask: Ask, write: Write, tmp_path: Path) -> None:
    model = str(tmp_path / "m.npz")
    ask("fit", "chain", write("t.txt", CONLL), model, "--label", "1", "--columns", "0", "--window", "0", "--l2", "0.01")
    assert set(besag.load(model).classes_) == {"DT", "IN", "JJ", "NN", "NNS", "PRP", "VBD", "VBP", "VBZ"}
    assert {name[:5] for name, _ in besag.load(model).state_features_} >= {"0[0]="}
    assert ask("predict", model, write("u.txt", "The ? ?\n")).split()[-1] == "DT"


def test_progress_is_told_on_stderr(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fit", "chain", write("t.txt", CONLL), str(tmp_path / "m.npz"), "--progress"]) == 0
    assert "ChainCRF: iteration" in capsys.readouterr().err


def test_a_fit_goes_on_from_its_checkpoint(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], ask: Ask
) -> None:
    words = ["fit", "chain", write("t.txt", CONLL), str(tmp_path / "m.npz"), "--checkpoint", str(tmp_path / "c.npz")]
    assert cli.main([*words, "--max-iter", "2"]) == 3
    assert "ended\tmax_iterations" in capsys.readouterr().out
    told = dict(line.split("\t") for line in ask(*words).splitlines())
    assert told["ended"] == "converged"
    assert int(told["iterations"]) > 2


@pytest.mark.parametrize(
    ("content", "options", "code", "expected"),
    [
        ("", [], 1, "the file is empty"),
        ("a b\nc\n", [], 1, "expected 2 columns"),
        ("a b\n", ["--label", "5"], 1, "there is no column 5: a line has 2"),
        ("a b\n", ["--columns", "0", "1"], 2, "--columns has the column of labels, 1"),
        ("a b\n", ["--window", "-1"], 2, "--window must be at least 0, got -1"),
        ("a b\n", ["--l2", "-1"], 2, "expected a number from 0 on, got '-1'"),
        ("a b\n", ["--format", "conl"], 2, "did you mean 'conll'?"),
        ("a b\n", ["--constraint", "BIO"], 1, "BIO"),
    ],
)
def test_what_cannot_be_learnt(
    ask: Ask, write: Write, tmp_path: Path, content: str, options: list[str], code: int, expected: str
) -> None:
    told = ask("fit", "chain", write("t.txt", content), str(tmp_path / "m.npz"), *options, code=code)
    assert expected in told
    assert not (tmp_path / "m.npz").exists()


def test_what_cannot_be_labelled(ask: Ask, write: Write, tagger: str, lawn: str, tmp_path: Path) -> None:
    assert "expected 3 columns, as in training, got 1" in ask("predict", tagger, write("a.txt", "The\n"), code=1)
    assert "the file has no column of labels" in ask("predict", tagger, write("b.txt", "The DT\n"), "--score", code=1)
    assert "expected a model that `besag fit` has written" in ask("predict", lawn, write("c.txt", "The DT\n"), code=1)
    assert "--out" in ask("predict", tagger, write("d.txt", "The DT\n"), "--out", str(tmp_path), code=2)
    assert "labels sequences, and" in ask("predict", tagger, str(tmp_path), code=2)


# Images --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Three noisy pictures of a bright square, of different sizes, and their masks."""
    rng = np.random.default_rng(0)
    images, masks = tmp_path / "images", tmp_path / "masks"
    images.mkdir()
    masks.mkdir()
    for n in range(3):
        labels = np.zeros((12, 10 + n), np.uint8)
        labels[3:9, 2 + n : 8 + n] = 1
        seen = np.clip(60 + 120 * labels[..., None] + rng.normal(0, 30, (*labels.shape, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(seen).save(images / f"p{n}.png")
        Image.fromarray(labels).save(masks / f"p{n}.png")
    return images, masks


def read(path: Path) -> Any:
    with Image.open(path) as image:
        return np.asarray(image)


def test_pixels_from_folders_to_folders(ask: Ask, folders: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = folders
    model, out = str(tmp_path / "m.npz"), tmp_path / "found"
    told = dict(
        line.split("\t")
        for line in ask("fit", "grid", str(images), str(masks), model, "--pairwise", "potts").splitlines()
    )
    assert told["images"] == "3, 396 pixels"
    assert told["labels"] == "0, 1"
    assert ask("predict", model, str(images), "--out", str(out), "--probabilities") == f"3 masks: {out}\n"
    for n in range(3):
        found, chances = read(out / f"p{n}.png"), np.load(out / f"p{n}.npy")
        assert found.dtype == np.uint8
        assert (found == read(masks / f"p{n}.png")).mean() > 0.95
        assert (chances.argmax(axis=2) == found).all()
    scores = dict(line.split("\t") for line in ask("predict", model, str(images), "--score", str(masks)).splitlines())
    assert float(scores["accuracy"]) > 0.95
    both = ask("predict", model, str(images), "--out", str(tmp_path / "again"), "--score", str(masks))
    assert both.splitlines() == [f"3 masks: {tmp_path / 'again'}", *(f"{k}\t{v}" for k, v in scores.items())]
    assert set(scores) == {"images", "accuracy", "mean IoU", "IoU of 0", "IoU of 1"}


def test_void_labels_and_features_of_ones_own(ask: Ask, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    images, masks = tmp_path / "x", tmp_path / "y"
    images.mkdir()
    masks.mkdir()
    labels = rng.integers(2, size=(6, 6))
    np.save(images / "a.npy", np.stack([labels + 0.1 * rng.normal(size=(6, 6))] * 2, axis=2))
    np.save(masks / "a.npy", np.where(rng.random((6, 6)) < 0.3, 255, labels))
    model = str(tmp_path / "m.npz")
    ask("fit", "grid", str(images), str(masks), model, "--ignore", "255", "--class-weight", "balanced")
    crf = besag.load(model)
    assert crf.classes_ == [0, 1]
    assert crf.coef_.shape == (2, 2)
    assert "IoU of 255" not in ask("predict", model, str(images), "--score", str(masks))


def test_folders_that_do_not_fit(ask: Ask, folders: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = folders
    fit = ("fit", "grid", str(images), str(masks), str(tmp_path / "m.npz"))
    assert "--objective" not in ask(*fit, "--objective", "pseudo", code=1)
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(masks / "p1.png")
    assert "p1.png: the mask is (5, 5), and p1.png is (12, 11)" in ask(*fit, code=1)
    Image.fromarray(np.zeros((12, 11, 3), np.uint8)).save(masks / "p1.png")
    assert "p1.png: a mask must have one number a pixel, grey or palette, got RGB" in ask(*fit, code=1)
    (masks / "p1.png").unlink()
    assert f"p1.png: there is no file of the stem 'p1' in {masks}" in ask(*fit, code=1)
    (masks / "p1.png").write_bytes(b"no image")
    assert "p1.png: expected an image" in ask(*fit, code=1)
    (masks / "p1.jpg").write_bytes(b"no image")
    assert "p1.jpg and p1.png have one stem" in ask(*fit, code=1)
    assert "expected a folder of images" in ask("fit", "grid", str(tmp_path / "none"), str(masks), "m.npz", code=1)


def test_images_need_a_place_for_their_masks(ask: Ask, folders: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = folders
    model = str(tmp_path / "m.npz")
    ask("fit", "grid", str(images), str(masks), model)
    assert "--out DIR, for their masks, or --score MASKS, or both" in ask("predict", model, str(images), code=2)
    assert "need --out DIR" in ask("predict", model, str(images), "--score", str(masks), "--probabilities", code=2)
    assert "m.npz labels images, and" in ask("predict", model, str(images / "p0.png"), "--out", "there", code=2)
    assert "`besag predict` answers by it" in ask("info", model, code=1)
    assert "--score MASKS" in ask("predict", model, str(images), "--score", code=2)
    assert "masks would replace" in ask("predict", model, str(images), "--out", str(images), code=2)


@pytest.mark.parametrize("where", ["last", "among options", "option first", "option last"])
def test_the_model_is_an_option_or_the_last_word(ask: Ask, write: Write, tmp_path: Path, where: str) -> None:
    train, model = write("t.txt", CONLL), str(tmp_path / "m.npz")
    words = {
        "last": [train, "--l2", "0.1", model],
        "among options": [train, model, "--l2", "0.1"],
        "option first": ["--out", model, train, "--l2", "0.1"],
        "option last": [train, "--l2", "0.1", "--out", model],
    }
    told = ask("fit", "chain", *words[where], "--objective", "max_margin")
    assert f"model\t{model}" in told
    assert besag.load(model).score([["The"]], [["B-NP"]]) >= 0


@pytest.mark.parametrize("kind", ["chain", "grid", "network"])
def test_one_model_is_written(ask: Ask, write: Write, tmp_path: Path, kind: str) -> None:
    data = [write("t.csv", "a,b\n0,1\n")] * (2 if kind == "grid" else 1)
    assert "the following arguments are required: MODEL" in ask("fit", kind, *data, code=2)
    one, other = str(tmp_path / "one.bif"), str(tmp_path / "other.bif")
    assert f"MODEL is given twice: {one} and --out {other}" in ask("fit", kind, *data, one, "--out", other, code=2)
