"""Labelled sequences for the benchmarks of chain CRFs: CoNLL-2000 chunking, UD English tagging, OCR letters."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.networks import FOLDER as NETWORKS

FOLDER = NETWORKS.parent / "crf_seq"
OFFSETS = (-2, -1, 0, 1, 2)
WORDS: list[tuple[int, ...]] = [*((o,) for o in OFFSETS), (-1, 0), (0, 1)]
TAGS: list[tuple[int, ...]] = [
    *((o,) for o in OFFSETS),
    (-2, -1),
    (-1, 0),
    (0, 1),
    (1, 2),
    (-2, -1, 0),
    (-1, 0, 1),
    (0, 1, 2),
]


class Split(NamedTuple):
    """Sequences of items and of labels."""

    items: list[Any]
    labels: list[list[str]]


def sentences(lines: Iterator[str], separator: str | None) -> Iterator[list[list[str]]]:
    """Sentences as lists of the columns of their tokens."""
    tokens: list[list[str]] = []
    for line in lines:
        if line.startswith("#") and separator == "\t":
            continue
        if line.strip():
            tokens.append(line.rstrip("\n").split(separator))
        elif tokens:
            yield tokens
            tokens = []
    if tokens:
        yield tokens


def chunking(part: str) -> Split:
    """CoNLL-2000 as lists."""
    pairs = list(chunking_sentences(part))
    return Split([items for items, _ in pairs], [labels for _, labels in pairs])


def chunking_sentences(part: str) -> Iterator[tuple[list[list[str]], list[str]]]:
    """CoNLL-2000 with CRFsuite's template: words and tags around a token, alone and in pairs, tags in threes."""
    with (FOLDER / "conll2000" / f"{part}.txt").open(encoding="utf-8") as file:
        for tokens in sentences(file, None):
            yield _chunking_items([t[0] for t in tokens], [t[1] for t in tokens]), [t[2] for t in tokens]


def _chunking_items(words: list[str], tags: list[str]) -> list[list[str]]:
    n = len(words)
    items = []
    for t in range(n):
        item = []
        for name, column, windows in (("w", words, WORDS), ("pos", tags, TAGS)):
            for window in windows:
                if t + window[0] >= 0 and t + window[-1] < n:
                    value = "|".join(column[t + o] for o in window)
                    item.append(f"{name}[{','.join(map(str, window))}]={value}")
        items.append(item)
    items[0].append("__BOS__")
    items[-1].append("__EOS__")
    return items


def tagging(part: str) -> Split:
    """UD English EWT, universal tags: words, affixes and shapes."""
    split = Split([], [])
    with gzip.open(FOLDER / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as file:
        for tokens in sentences(file, "\t"):
            kept = [t for t in tokens if t[0].isdigit()]
            words = ["<s>", *(t[1] for t in kept), "</s>"]
            split.items.append([_tagging_item(words, t) for t in range(1, len(words) - 1)])
            split.labels.append([t[3] for t in kept])
    return split


def _tagging_item(words: list[str], t: int) -> list[str]:
    word = words[t]
    shape = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)[:8]
    affixes = [f"s{n}={word[-n:].lower()}" for n in (1, 2, 3, 4)] + [f"p{n}={word[:n].lower()}" for n in (1, 2, 3)]
    around = [f"w-1={words[t - 1].lower()}", f"w+1={words[t + 1].lower()}"]
    return ["bias", f"w={word.lower()}", f"shape={shape}", *affixes, *around]


def letters(*, train: bool, small: bool) -> Split:
    """OCR letters, 16 x 8 pixels and a bias: trained on fold 1 alone, or on all but fold 0; the rest are the test."""
    data = np.load(FOLDER / "ocr_letters" / "letters.npz")
    pixels = np.unpackbits(data["pixels_packed"], axis=1)
    items = [["bias", *(f"p{i}" for i in np.flatnonzero(row))] for row in pixels]
    names = [chr(ord("a") + int(label)) for label in data["labels"]]
    chosen = (data["folds"] == 1) if small else (data["folds"] != 0)
    ends = np.cumsum(data["word_lengths"].astype(np.int64))
    split = Split([], [])
    for word in np.flatnonzero(chosen == train):
        here = slice(int(ends[word] - data["word_lengths"][word]), int(ends[word]))
        split.items.append(items[here])
        split.labels.append(names[here])
    return split


def accuracy(found: list[list[str]], right: list[list[str]]) -> float:
    """The share of tokens whose labels agree."""
    pairs = [(a, b) for x, y in zip(found, right, strict=True) for a, b in zip(x, y, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def chunk_f1(found: list[list[str]], right: list[list[str]]) -> float:
    """F1 of chunks, as conlleval counts them."""
    ours, theirs = ({(n, *c) for n, y in enumerate(all_) for c in chunks(y)} for all_ in (found, right))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def chunks(labels: list[str]) -> Iterator[tuple[int, int, str]]:
    """(start, stop, kind) of each chunk in BIO labels."""
    start, kind = 0, ""
    for t, label in enumerate([*labels, "O"]):
        letter, _, now = label.partition("-")
        if kind and (letter != "I" or now != kind):
            yield start, t, kind
            kind = ""
        if now and not kind:
            start, kind = t, now
