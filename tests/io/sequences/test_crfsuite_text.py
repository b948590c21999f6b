"""CRFsuite's text files: escapes, weights, declarations, round trips, and what cannot be read or written."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import ModelError, ParseError
from besag.io.sequences.crfsuite_text import LabelledSequence, read_crfsuite, write_crfsuite

Write = Callable[..., Path]


def test_sequences_items_and_labels(write: Write) -> None:
    path = write("a.txt", "B-NP\tw=An\t__BOS__\nI-NP\tw=AP\n\n\nO\n")
    assert list(read_crfsuite(path)) == [
        LabelledSequence([["w=An", "__BOS__"], ["w=AP"]], ["B-NP", "I-NP"], 1.0),
        LabelledSequence([[]], ["O"], 1.0),
    ]


@pytest.mark.parametrize(
    ("field", "item"),
    [
        (r"a\:b", ["a:b"]),
        (r"a\\b", [r"a\b"]),
        (r"a\\:2", {"a\\": 2.0}),
        (r"a\\\:2", [r"a\:2"]),
        (r"a\tb", [r"a\tb"]),  # a backslash before anything else stays
        ("a\\", ["a\\"]),
        ("a:", ["a"]),
        ("a:1", ["a"]),
        ("a:0", {"a": 0.0}),
        ("a:-2.5e-1", {"a": -0.25}),
        (":2", {"": 2.0}),
        ("#a", ["#a"]),  # no comment
        ("@a", ["@a"]),  # no declaration behind a label
        ("a b", ["a b"]),
        ("a\t\ta", ["a", "a"]),
        ("a:2\tb\ta:3", {"a": 5.0, "b": 1.0}),
    ],
)
def test_attributes(field: str, item: object) -> None:
    (sequence,) = read_crfsuite([f"B\t{field}\n"])
    assert sequence.items == [item]


def test_labels_have_escapes_too() -> None:
    assert next(read_crfsuite([r"a\:b" + "\tx", "#\ty"])).labels == ["a:b", "#"]


def test_weights_of_sequences() -> None:
    lines = ["@weight:2.5", "A\ta", "", "B\tb", "", "@weight:0\tC\tc", ""]
    assert [(s.labels, s.weight) for s in read_crfsuite(lines)] == [(["A"], 2.5), (["B"], 1.0), (["C"], 0.0)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(write: Write, end: str) -> None:
    path = write("a.txt", end.join(["A\ta", "", "B\tb", ""]))
    assert [s.items for s in read_crfsuite(path)] == [[["a"]], [["b"]]]


def test_sequences_come_before_the_lines_end() -> None:
    def lines() -> Any:
        yield from ("A\ta\n", "\n")
        raise AssertionError("read beyond the first sequence")

    assert next(read_crfsuite(lines())).labels == ["A"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("A\ta\n\nB\tw=x:y\n", r"a\.txt:3: expected a number behind the colon of 'w=x:y'.*written '\\:'"),
        ("A\t12:30:05\n", r"a\.txt:1: expected a number behind the colon of '12:30:05'"),
        ("A\ta:nan\n", "expected a number behind the colon"),
        ("A\ta:1e999\n", "expected a number behind the colon"),
        ("A\ta:1_0\n", "expected a number behind the colon"),
        ("A\ta\nB:3\tb\n", r"a\.txt:2: expected a label, which has no weight, got 'B:3'"),
        ("@eos\n", r"a\.txt:1: expected a label or '@weight:number', got '@eos'"),
        ("@weight\nA\ta\n", "expected a label or '@weight:number', got '@weight'"),
        ("@weight:x\nA\ta\n", "expected a number behind the colon of '@weight:x'"),
        ("", "the file is empty"),
    ],
)
def test_what_cannot_be_read(write: Write, text: str, match: str) -> None:
    with pytest.raises(ParseError, match=match):
        list(read_crfsuite(write("a.txt", text)))


def test_what_is_written(tmp_path: Path) -> None:
    X = [[["a:b", "c\\", ""], {"d": 1, "e": 0.5}], [[]]]
    write_crfsuite(tmp_path / "a.txt", zip(X, [["A", "B:C"], [7]], [2, 1], strict=True))
    assert (tmp_path / "a.txt").read_text() == "@weight:2.0\nA\ta\\:b\tc\\\\\t:1.0\nB\\:C\td\te:0.5\n\n7\n\n"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz"])
def test_packed_files(tmp_path: Path, name: str) -> None:
    given = [LabelledSequence([["é", "日本"]], ["B"], 1.0)]
    write_crfsuite(tmp_path / name, given)
    assert list(read_crfsuite(tmp_path / name)) == given
    if name.endswith(".gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()) == "B\té\t日本\n\n".encode()


names = st.text(st.characters(exclude_characters="\t\r\n\0\ufeff", exclude_categories=["Cs"]), max_size=6)
weights = st.floats(allow_nan=False, allow_infinity=False)
items = st.lists(names) | st.dictionaries(names, weights)
labels = names.filter(lambda text: text.strip() and not text.startswith("@"))


@given(st.lists(st.tuples(st.lists(st.tuples(items, labels), min_size=1), weights), min_size=1))
def test_round_trips(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[list[tuple[Any, str]], float]]
) -> None:
    path = tmp_path_factory.mktemp("crfsuite") / "a.txt"
    sequences = [([item for item, _ in rows], [label for _, label in rows], weight) for rows, weight in drawn]
    write_crfsuite(path, sequences)
    for got, (items, labels, weight) in zip(read_crfsuite(path), sequences, strict=True):
        assert (got.labels, got.weight) == (labels, weight)
        for one, item in zip(got.items, items, strict=True):
            if isinstance(one, list) and isinstance(item, dict):
                assert item == dict.fromkeys(one, 1.0)
            else:
                assert one == item


@pytest.mark.parametrize(
    ("sequence", "match"),
    [
        (([["a"]], ["A", "B"]), "sequence 1: expected a label for each of at least one item, got 2 labels for 1 items"),
        (([], []), "sequence 1: expected a label for each of at least one item"),
        (([["a"]], ["@A"]), "sequence 1, position 0: expected a label.*got '@A'"),
        (([["a"]], [" "]), "expected a label, a str that is not blank"),
        (([["a"]], [None]), "expected a label.*got None"),
        (([["a"], ["b\tc"]], ["A", "B"]), r"sequence 1, position 1: a name .* cannot have a tab.*got 'b\\tc'"),
        (([{"a": float("nan")}], ["A"]), "position 0: expected attributes.*finite numbers, got 'a': nan"),
        (([{"a": "x"}], ["A"]), "expected attributes.*got 'a': 'x'"),
        (([[1]], ["A"]), "expected attributes, str.*got 1: 1.0"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, sequence: tuple[Any, Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        write_crfsuite(tmp_path / "a.txt", [([["a"]], ["A"]), sequence])
    assert not (tmp_path / "a.txt").exists()
