"""Chunks: the cases of conlleval, known scores, labels that are not known."""

from typing import Any

import numpy as np
import pytest

from benchmarks.sequences import chunk_f1 as plain_f1
from besag import metrics
from besag.errors import ModelError


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-X I-X O B-X", [(0, 2, "X"), (3, 4, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("O I-X I-X", [(1, 3, "X")]),  # IOB1; and what a tagger may say
        ("I-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("B-X I-Y I-Y", [(0, 1, "X"), (1, 3, "Y")]),
        ("I-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X I-X E-X S-Y S-Y", [(0, 3, "X"), (3, 4, "Y"), (4, 5, "Y")]),  # BIOES
        ("O E-X I-X", [(1, 2, "X"), (2, 3, "X")]),
        ("B-X E-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("B-X S-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B-X-1 I-X-1", [(0, 2, "X-1")]),
    ],
)
def test_chunks(tags: str, expected: list[tuple[int, int, str]]) -> None:
    assert metrics.find_chunks(tags.split()) == expected


def test_a_known_score() -> None:
    # the example of seqeval's documentation
    true = [["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    found = [["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    assert metrics.chunk_f1(true, found) == 0.5
    assert metrics.chunk_f1(true, found, kind="PER") == 1.0
    assert metrics.chunk_f1(true, found, kind="MISC") == 0.0
    assert metrics.chunk_f1(true, found, sample_weight=[1, 3]) == 0.75


def test_random_tags_score_as_in_the_benchmarks() -> None:
    rng = np.random.default_rng(2)
    tags = np.array(["O", "B-X", "I-X", "B-Y", "I-Y"])
    true, found = ([rng.choice(tags, n).tolist() for n in range(1, 40)] for _ in range(2))
    assert 0 < metrics.chunk_f1(true, found) < 1
    assert metrics.chunk_f1(true, found) == pytest.approx(plain_f1(found, true))
    assert metrics.chunk_f1([np.array(one) for one in true], found) == pytest.approx(plain_f1(found, true))


def test_a_tag_that_is_not_known_ends_chunks() -> None:
    assert metrics.chunk_f1([["B-X", "I-X", None, "I-X"]], [["B-X", "I-X", "I-X", "I-X"]]) == 1.0
    assert metrics.chunk_f1([["B-X", None, "O"]], [["B-X", "I-X", "I-X"]]) == pytest.approx(2 / 3)
    assert metrics.chunk_f1([["B-X", "?"]], [["B-X", "O"]], ignore="?") == 1.0


@pytest.mark.parametrize(
    ("true", "found", "match"),
    [
        ([["O"]], [["O"]], "no chunk of positive weight"),
        ([["B-X", "O"]], [["B-X"]], r"instance 0: expected y_pred of shape \(2,\)"),
        (["B-X", "O"], ["B-X", "O"], r"one alone is given as \[tags\]"),
        ([["NP"]], [["O"]], "a tag must be 'O', or one of B, I, E, S with a kind, 'B-NP', got 'NP'"),
        ([["B-"]], [["O"]], "a tag must be 'O'"),
        ([[1]], [["O"]], "a tag must be 'O'.* got 1"),
    ],
)
def test_bad_input(true: Any, found: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        metrics.chunk_f1(true, found)


def test_a_kind_that_nobody_has() -> None:
    with pytest.raises(ModelError, match="no chunk of kind 'Z'"):
        metrics.chunk_f1([["B-X"]], [["B-X"]], kind="Z")
