"""Sequences in files, read in the same way to learn and to label: notes of a model's file tell how."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from besag.errors import ParseError
from besag.io.sequences.conll import Source, Token, path_of, read_conll
from besag.io.sequences.crfsuite_text import read_crfsuite
from besag.io.sequences.windows import window_attributes


class SequenceFile(NamedTuple):
    """What a file has: items and labels of each sequence, the tokens they were made of, weights of sequences.

    Labels are None where the file has none.
    """

    path: str
    items: list[Any]
    labels: list[list[str]] | None
    tokens: list[list[Token]] | None
    weights: list[float] | None

    def known_labels(self) -> list[list[str]]:
        """The labels; ParseError where there are none."""
        if self.labels is None:
            raise ParseError("the file has no column of labels", path=self.path)
        return self.labels


@dataclass(frozen=True, slots=True)
class SequenceReader:
    """format: conll or crfsuite; of conll, how many columns training data have, where labels and attributes are."""

    format: str
    width: int = 0
    label: int = 0
    columns: tuple[int, ...] = ()
    window: int = 0

    @classmethod
    def first(cls, source: Source, arguments: argparse.Namespace) -> SequenceReader:
        """The reader of training data, whose first line tells how many columns there are."""
        if arguments.format == "crfsuite":
            return cls("crfsuite")
        path = name_of(source)
        sentence = next(read_conll(source), None)
        if sentence is None:
            raise ParseError("the file has no sentences", path=path)
        width = len(sentence[0])
        label = _column(path, arguments.label, width)
        chosen = [c for c in range(width) if c != label] if arguments.columns is None else arguments.columns
        columns = tuple(_column(path, c, width) for c in chosen)
        if label in columns:
            arguments.refuse(f"--columns has the column of labels, {label}")
        return cls("conll", width, label, columns, arguments.window)

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> SequenceReader:
        """The reader that a model was learnt with."""
        names = ("format", "width", "label", "columns", "window")
        return cls(**{name: tuple(notes[name]) if name == "columns" else notes[name] for name in names})

    def notes(self) -> dict[str, Any]:
        """What `from_notes` reads."""
        return asdict(self)

    def read(self, source: Source) -> SequenceFile:
        """The sequences of a file, or of lines."""
        path = name_of(source)
        if self.format == "crfsuite":
            found = list(read_crfsuite(source))
            weights = [one.weight for one in found]
            own = None if all(weight == 1.0 for weight in weights) else weights
            return SequenceFile(path, [one.items for one in found], [one.labels for one in found], None, own)
        sentences = list(read_conll(source))
        width = len(sentences[0][0]) if sentences else self.width
        bare = width == self.width - 1 and self.label == self.width - 1  # labels came last, and are not there
        if width != self.width and not bare:
            raise ParseError(f"expected {self.width} columns, as in training, got {width}", path=path, line=1)
        labels = None if bare else [[token[self.label] for token in tokens] for tokens in sentences]
        items = [window_attributes(tokens, self.columns, self.window) for tokens in sentences]
        return SequenceFile(path, items, labels, sentences, None)


def name_of(source: Source) -> str:
    """What errors call it."""
    return path_of(source) or "<stdin>"


def sequences_in(path: str) -> Source:
    """A path; or standard input, as lines."""
    if path != "-":
        return path
    from besag.io.shared.files import read_bytes, text_of

    return text_of(read_bytes(sys.stdin.buffer), "<stdin>").splitlines()


def _column(path: str, column: int, width: int) -> int:
    if not -width <= column < width:
        raise ParseError(f"there is no column {column}: a line has {width}, numbered from 0", path=path, line=1)
    return column % width
