"""Chain CRFs where few labels are known: does it help to keep what has none?

Handwritten words (the OCR letters, 16 x 8 pixels a letter) lie in the data folder, BESAG_DATA or ../shared/data. Only a
share of their letters is named, in three ways:

    whole words         some words have all of their labels, the others none
    letters, in words   letters here and there are named, the others of the same word are kept as unknown
    letters, alone      the same letters are named, and nothing else is kept

A word without a single label says nothing to a conditional model: its probability, summed over all labellings, is one
whatever the weights are, so that leaving it out changes nothing. Unknown letters between known ones do tell: the
pictures of the neighbours, and which letter follows which.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot as plt

import besag

FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "crf_seq" / "ocr_letters"
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
WAYS = ("whole words", "letters, in words", "letters, alone")
L2 = 1.0

Words = list[tuple[np.ndarray, list[str]]]  # pixels (T, D) and the T letters


def read_words() -> tuple[Words, Words]:
    """Words to learn from, those of fold 1, and some of the others to be tested on."""
    data = np.load(FOLDER / "letters.npz")
    pixels = np.unpackbits(data["pixels_packed"], axis=1).astype(float)
    pixels = np.column_stack([pixels, np.ones(len(pixels))])
    names = [chr(ord("a") + int(label)) for label in data["labels"]]
    ends = np.cumsum(data["word_lengths"].astype(int))
    words = [
        (pixels[end - n : end], names[end - n : end])
        for n, end in zip(data["word_lengths"].astype(int), ends, strict=True)
    ]
    folds = data["folds"]
    n_train = int(os.environ.get("BESAG_ROWS", len(words)))
    train = [word for word, fold in zip(words, folds, strict=True) if fold == 1][:n_train]
    return train, [word for word, fold in zip(words, folds, strict=True) if fold == 0]


def known(words: Words, share: float, way: str) -> Iterator[tuple[np.ndarray, list[str | None]]]:
    """The words with the labels that are known."""
    rng = np.random.default_rng(0)
    if way == "whole words":
        chosen = rng.permutation(len(words)) < round(share * len(words))
        yield from ((x, list(y)) for (x, y), own in zip(words, chosen, strict=True) if own)
        return
    for x, y in words:
        named = rng.random(len(y)) < share
        if way == "letters, in words" and named.any():
            yield x, [label if own else None for label, own in zip(y, named, strict=True)]
        elif way == "letters, alone":
            yield from ((x[t : t + 1], [y[t]]) for t in np.flatnonzero(named))


def accuracy(train: Words, test: Words, share: float, way: str) -> float:
    """The share of test letters that are read correctly."""
    sequences, labels = zip(*known(train, share, way), strict=True)
    crf = besag.ChainCRF(l2=L2, max_iter=200).fit(sequences, labels)
    return crf.score([x for x, _ in test], [y for _, y in test])


def draw(scores: dict[str, list[float]]) -> Path:
    """The curves."""
    figure, axes = plt.subplots(figsize=(5, 3.5))
    for way, values in scores.items():
        axes.plot(np.multiply(SHARES, 100), values, marker="o", label=way)
    axes.set(xscale="log", xlabel="labels that are known, %", ylabel="letters read correctly")
    axes.legend()
    path = Path("out") / "some_labels.png"
    path.parent.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    if not FOLDER.is_dir():
        sys.exit("the data folder is absent: set BESAG_DATA")
    train, test = read_words()
    print(f"{len(train)} words to learn from, {len(test)} to read\n")
    print(f"{'labels known':>12}", *(f"{way:>18}" for way in WAYS))
    scores: dict[str, list[float]] = {way: [] for way in WAYS}
    for share in SHARES:
        for way in WAYS:
            scores[way].append(accuracy(train, test, share, way))
        print(f"{share:>12.0%}", *(f"{scores[way][-1]:>18.3f}" for way in WAYS), flush=True)
    print(f"\n{draw(scores)} shows the curves")


if __name__ == "__main__":
    main()
