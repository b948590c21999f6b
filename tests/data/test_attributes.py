"""Attributes as python-crfsuite reads them, arrays, labels, and what is refused."""

import enum
import pickle
from collections import Counter, UserDict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from besag.data.attributes import Attributes, Features, GrowingAttributes
from besag.data.labels import Labels
from besag.data.numbering import Numbering
from besag.errors import ModelError
from besag.io.sequences.conll import read_conll
from tests.routes import Forced


def rows(attributes: Attributes, features: Features) -> list[list[tuple[str, float]]]:
    """The attributes of each token with their weights."""
    names, values = attributes.names, features.values
    if values is None:
        values = np.ones(len(features.indices))
    pairs = [(names[i], float(value)) for i, value in zip(features.indices, values, strict=True)]
    return [pairs[start:stop] for start, stop in zip(features.indptr[:-1], features.indptr[1:], strict=True)]


def read(item: Any) -> dict[str, float]:
    """One item, repeated attributes added up."""
    (row,) = rows(*Attributes.fit([[item]]))
    total: Counter[str] = Counter()
    for name, value in row:
        total[name] += value  # type: ignore[assignment]
    return dict(total)


# Items ---------------------------------------------------------------------------------------------------------------

NESTED = {"x": 2, "y": "z", "w": True, "v": ["p", "q"], "d": {"e": 1.5}}

# What ItemSequence([item]).items() of python-crfsuite 0.9.12 gives, except that it shows a repeated attribute once;
# its training and tagging add repeated ones up.
CRFSUITE: list[tuple[Any, dict[str, float]]] = [
    (["a", "b"], {"a": 1.0, "b": 1.0}),
    (("a", "b"), {"a": 1.0, "b": 1.0}),
    ({"a"}, {"a": 1.0}),
    (frozenset(["a"]), {"a": 1.0}),
    ({"a": 1}.keys(), {"a": 1.0}),
    (np.array(["a", "b"]), {"a": 1.0, "b": 1.0}),
    ([np.str_("q"), b"b"], {"q": 1.0, "b": 1.0}),
    ([], {}),
    ({}, {}),
    ("abc", {"a": 1.0, "b": 1.0, "c": 1.0}),
    (["", "a"], {"": 1.0, "a": 1.0}),
    (["é", "日本", "a:b", "a=b", "a\tb", "a\\b"], dict.fromkeys(["é", "日本", "a:b", "a=b", "a\tb", "a\\b"], 1.0)),
    ({"a": "b"}, {"a:b": 1.0}),
    ({"a": b"b"}, {"a:b": 1.0}),
    ({b"a": "x", b"b": 2}, {"a:x": 1.0, "b": 2.0}),
    ({"é": "日本", "😀": 2}, {"é:日本": 1.0, "😀": 2.0}),
    ({"": "x"}, {":x": 1.0}),
    ({"": 2}, {"": 2.0}),
    ({"a": ""}, {"a:": 1.0}),
    ({"a": "3"}, {"a:3": 1.0}),
    ({"a": np.str_("z")}, {"a:z": 1.0}),
    ({"a": True, "b": False}, {"a": 1.0, "b": 0.0}),
    ({"a": 3, "b": 0, "c": -2}, {"a": 3.0, "b": 0.0, "c": -2.0}),
    ({"a": 3.5, "b": 0.0}, {"a": 3.5, "b": 0.0}),
    ({"a": 2**53 + 1}, {"a": 9007199254740992.0}),
    ({"a": np.float64(2.5), "b": np.float32(2.5)}, {"a": 2.5, "b": 2.5}),
    ({"a": np.int64(2), "b": np.int8(2)}, {"a": 2.0, "b": 2.0}),
    ({"a": np.True_, "b": np.False_}, {"a": 1.0, "b": 0.0}),
    ({"a": np.array(2.0)}, {"a": 2.0}),
    ({"a": Decimal("1.5"), "b": Fraction(1, 2)}, {"a": 1.5, "b": 0.5}),
    (Counter("aab"), {"a": 2.0, "b": 1.0}),
    ({"a": ["x", "y"]}, {"a:x": 1.0, "a:y": 1.0}),
    ({"a": {"x"}}, {"a:x": 1.0}),
    ({"a": [b"x"]}, {"a:x": 1.0}),
    ({"a": []}, {}),
    ({"a": {}}, {}),
    ({"a": NESTED}, {"a:x": 2.0, "a:y:z": 1.0, "a:w": 1.0, "a:v:p": 1.0, "a:v:q": 1.0, "a:d:e": 1.5}),
    ({"a=b": 1, "a": "b"}, {"a=b": 1.0, "a:b": 1.0}),
]


@pytest.mark.parametrize(("item", "expected"), CRFSUITE, ids=[repr(item)[:40] for item, _ in CRFSUITE])
def test_an_item_is_what_python_crfsuite_makes_of_it(item: Any, expected: dict[str, float]) -> None:
    assert read(item) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (["a", "b", "a"], {"a": 2.0, "b": 1.0}),
        ({"a": ["x", "y", "x"]}, {"a:x": 2.0, "a:y": 1.0}),
        ({"a:x": 1, "a": {"x": 2}}, {"a:x": 3.0}),
    ],
)
def test_repeated_attributes_add_up(item: Any, expected: dict[str, float]) -> None:
    assert read(item) == expected


@pytest.mark.parametrize("value", [("x", "y"), frozenset(["x", "y"])])
def test_any_container_may_be_a_value(value: Any) -> None:  # python-crfsuite takes lists and sets only
    assert read({"a": value}) == {"a:x": 1.0, "a:y": 1.0}


def test_any_mapping_is_a_dict() -> None:  # python-crfsuite would take the keys and forget the weights
    assert read(UserDict(a=2.5)) == {"a": 2.5}


@pytest.mark.parametrize(
    ("item", "match"),
    [
        ([1], "expected the name of an attribute, a str, got '1' of type int"),
        ([None], "expected the name of an attribute.*NoneType"),
        ([("a", 2.0)], "expected the name of an attribute.*tuple"),
        ([["a"]], "expected the name of an attribute.*list"),
        ({1: 1.0}, "expected the name of an attribute.*got '1' of type int"),
        ([b"\xff"], "utf-8"),
        (5, "expected a list of attributes or a dict.*got '5' of type int"),
        (None, "expected a list of attributes or a dict.*NoneType"),
        ({"a": None}, "attribute 'a': expected a number, a str, or a list or dict of attributes, got 'None'"),
        ({"a": {"b": 1j}}, "attribute 'a:b': expected a number.*complex"),
        ({"a": bytearray(b"1")}, "attribute 'a': expected a number.*bytearray"),
        ({"a": np.array([1.0, 2.0])}, "attribute 'a': expected a number.*ndarray"),
        ({"a": 10**400}, "int too large"),
        ({"b": 1.0, "a": {"b": float("nan")}}, "the weight of attribute 'a:b' must be finite, got nan"),
        ({"a": -np.inf}, "the weight of attribute 'a' must be finite, got -inf"),
    ],
)
def test_items_that_are_none(item: Any, match: str) -> None:
    sequences = [[["a"]], [["b"], {"c": 1}, item]]
    with pytest.raises(ModelError, match=f"sequence 1, position 2: .*{match}"):
        Attributes.fit(sequences)
    with pytest.raises(ModelError, match=f"sequence 1, position 2: .*{match}"):
        Attributes(Numbering(["z"])).transform(sequences)


@pytest.mark.parametrize("sequence", ["ab", {"a": 1}, 5, b"ab"])
def test_a_sequence_must_be_a_list(sequence: Any) -> None:
    with pytest.raises(
        ModelError, match=r"sequence 1: expected a list with one item for each token, got .*\[sequence\]"
    ):
        Attributes.fit([[["a"]], sequence])


@pytest.mark.parametrize("sequences", ["ab", {"a": 1}, 5, None])
def test_sequences_must_be_a_list(sequences: Any) -> None:
    with pytest.raises(ModelError, match="expected a list of sequences, got"):
        Attributes.fit(sequences)


# Arrays --------------------------------------------------------------------------------------------------------------


def test_the_arrays() -> None:
    attributes, features = Attributes.fit([[["b", "a"], []], [], [("a", "c")]])
    assert attributes.names == ["b", "a", "c"]
    assert len(attributes) == 3
    assert features.indptr.tolist() == [0, 2, 2, 4]
    assert features.indices.tolist() == [0, 1, 1, 2]
    assert features.values is None
    assert features.lengths.tolist() == [2, 0, 1]
    assert (features.indptr.dtype, features.indices.dtype, features.lengths.dtype) == (np.int64, np.int32, np.int64)
    assert not features.indices.flags.writeable


def test_weights_of_one_until_some_are_not() -> None:
    sequences: list[Any] = [[["a", "b"]], [{"a": "x"}], [{"a": 0.5}, ["b"]], [["a"]], [{"b": 1.0}]]
    attributes, features = Attributes.fit(sequences)
    assert features.values is not None
    assert features.values.tolist() == [1, 1, 1, 0.5, 1, 1, 1]
    assert Attributes.fit(sequences[:2])[1].values is None
    assert attributes.transform(sequences[3:]).values is None


def test_transform_leaves_out_what_training_has_not_seen() -> None:
    attributes, _ = Attributes.fit([[["a", "b", "c"]]])
    features = attributes.transform([[["x", "c"], ["y"]], [{"b": 2.0, "z": 3.0}, ["a", "x", "a"]]])
    assert rows(attributes, features) == [[("c", 1.0)], [], [("b", 2.0)], [("a", 1.0), ("a", 1.0)]]
    assert features.lengths.tolist() == [2, 2]
    assert attributes.names == ["a", "b", "c"]


def test_bytes_are_the_same_attribute_as_text() -> None:
    attributes, features = Attributes.fit([[["a"], [b"a", np.str_("a")]]])
    assert features.indices.tolist() == [0, 0, 0]
    assert attributes.transform([[[b"a"]]]).indices.tolist() == [0]
    assert [type(name) for name in attributes.names] == [str]


def test_generators_are_read_once() -> None:
    attributes, features = Attributes.fit(([f"w={w}"] for w in text.split()) for text in ("a b", "b c d"))
    assert attributes.names == ["w=a", "w=b", "w=c", "w=d"]
    assert features.indices.tolist() == [0, 1, 1, 2, 3]
    assert features.lengths.tolist() == [2, 3]


@pytest.mark.parametrize("sequences", [[], [[]]])
def test_nothing_at_all(sequences: list[Any]) -> None:
    attributes, features = Attributes.fit(sequences)
    assert len(attributes) == 0
    for made in (features, attributes.transform(sequences)):
        assert made.indptr.tolist() == [0]
        assert made.indices.tolist() == []
        assert made.values is None
        assert made.lengths.tolist() == [0] * len(sequences)


def test_pickles() -> None:
    attributes, features = pickle.loads(pickle.dumps(Attributes.fit([[["a"], {"b": 2}]])))
    assert rows(attributes, features) == [[("a", 1.0)], [("b", 2.0)]]
    assert not features.indices.flags.writeable


@pytest.mark.parametrize("make", [np.array, sp.csr_matrix, sp.csr_array, sp.coo_array, pd.DataFrame])
def test_arrays_of_numbers(make: Any) -> None:
    sequences = [make([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0]]), make([[-1.0, 0.0, 0.0]])]
    attributes, features = Attributes.fit(sequences)
    assert attributes.names == ["0", "1", "2"]
    assert attributes.columns == 3
    assert rows(attributes, features) == [[("1", 2.0), ("2", 1.0)], [], [("0", -1.0)]]
    assert features.lengths.tolist() == [2, 1]
    assert rows(attributes, attributes.transform(sequences[1:])) == [[("0", -1.0)]]


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.float32])
def test_arrays_of_zeros_and_ones_have_no_values(kind: Any) -> None:
    _, features = Attributes.fit([np.eye(3).astype(kind)])
    assert features.values is None
    assert features.indices.tolist() == [0, 1, 2]


def test_arrays_of_text_are_items() -> None:
    assert Attributes.fit([np.array([["a", "b"], ["c", "b"]])])[0].names == ["a", "b", "c"]


def test_the_number_of_columns_is_kept() -> None:
    wide, narrow = np.ones((2, 4)), np.ones((3, 2))
    with pytest.raises(
        ModelError, match="sequence 1 is an array of 2 columns: expected an array of 4 columns, as in seq"
    ):
        Attributes.fit([wide, narrow])
    with pytest.raises(
        ModelError, match="sequence 1 is a list of items: expected an array of 4 columns, as in sequence 0"
    ):
        Attributes.fit([wide, [["a"]]])
    with pytest.raises(
        ModelError, match="sequence 1 is an array of 4 columns: expected a list of items, as in sequence 0"
    ):
        Attributes.fit([[["a"]], wide])
    with pytest.raises(ModelError, match=r"sequence 1 is an array of 2 columns: expected .* 4 columns, as in training"):
        Attributes.fit([wide])[0].transform([wide, narrow])
    with pytest.raises(
        ModelError, match="sequence 0 is an array of 4 columns: expected a list of items, as in training"
    ):
        Attributes.fit([[["a"]]])[0].transform([wide])


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_arrays_must_be_finite(make: Any) -> None:
    with pytest.raises(ModelError, match="sequence 1, position 2: the weight of attribute '3' must be finite, got nan"):
        Attributes.fit([make(np.eye(4)), make(np.diag([1.0, 1.0, 1.0, 1.0]) + np.diag([0, 0, np.nan], 1))])


# Labels --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequences", "classes", "codes"),
    [
        ([["N", "V"], ["D"]], ("D", "N", "V"), [1, 2, 0]),
        ([["b", None], ["a"]], ("a", "b"), [1, -1, 0]),
        ([[10, 9], [-1]], (-1, 9, 10), [2, 1, 0]),
        ([[np.int64(10), 9]], (9, 10), [1, 0]),
        ([["10", "9"]], ("10", "9"), [0, 1]),
        ([np.array([10, -1]), np.array([9])], (9, 10), [1, -1, 0]),
        ([np.array(["b", "a"])], ("a", "b"), [1, 0]),
        ([[np.str_("b"), "a", "b"]], ("a", "b"), [1, 0, 1]),
        ([np.array(["b", None], object)], ("b",), [0, -1]),
        ([pd.Series(["b", None, "a"])], ("a", "b"), [1, -1, 0]),
        ([[2.0, float("nan"), 1.0]], (1.0, 2.0), [1, -1, 0]),
        ([[True, False]], (False, True), [1, 0]),
        ([(label for label in "ba")], ("a", "b"), [1, 0]),
        (np.array([[1, 0], [0, 0]]), (0, 1), [1, 0, 0, 0]),
    ],
)
def test_labels(sequences: Any, classes: tuple[Any, ...], codes: list[int]) -> None:
    labels, got = Labels.fit(sequences)
    assert labels.classes == classes
    assert [type(label) for label in labels.classes] == [type(label) for label in classes]
    assert got.tolist() == codes
    assert got.dtype == np.int64


def test_labels_of_training() -> None:
    labels, _ = Labels.fit([["a", "b", None]])
    codes = labels.transform([["b", None], [np.str_("a"), float("nan")]])
    assert codes.tolist() == [1, -1, 0, -1]
    assert codes.dtype == np.int64
    assert Labels((3, 5)).transform([np.array([5, -1, 3])]).tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("sequences", "lengths", "match"),
    [
        ([["a"], ["a", "b"]], [1, 3], "sequence 1: X has 3 items, and y has 2 labels"),
        ([["a"], []], [1, 2], "sequence 1: X has 2 items, and y has 0 labels"),
        ([["a"]], [1, 2], "X has 2 sequences, and y has 1"),
        ([["a"], ["a"]], [1], "X has 1 sequences, and y has 2"),
        ([["a"], 5], [1, 1], "sequence 1 of y: expected a list of labels, got '5' of type int"),
        ("a", [1], "expected a list of sequences, got str"),
        ([["a"], ["a", ["b"]]], [1, 2], "sequence 1: expected labels, each a str or an int: unhashable type: 'list'"),
    ],
)
def test_labels_must_fit_the_items(sequences: Any, lengths: list[int], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        Labels.fit(sequences, np.array(lengths))
    with pytest.raises(ModelError, match=match):
        Labels(("a", "b")).transform(sequences, np.array(lengths))


def test_empty_sequences_teach_nothing_and_have_no_labels() -> None:
    with pytest.raises(ModelError, match="sequence 1 is empty: leave it out of X and y"):
        Labels.fit([["a"], []], np.array([1, 0]))
    assert Labels(("a", "b")).transform([["a"], []], np.array([1, 0])).tolist() == [0]


@pytest.mark.parametrize(
    ("sequences", "match"),
    [
        ([[None], [float("nan")]], "no label is known"),
        ([np.array([-1, -1])], "no label is known"),
        ([], "no label is known"),
        ([["a", 1]], "labels must be of one type, got int and str"),
    ],
)
def test_labels_that_are_none(sequences: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        Labels.fit(sequences)


def test_a_label_that_training_has_not_seen() -> None:
    labels, _ = Labels.fit([["B-NP", "I-NP", "O"]])
    with pytest.raises(
        ModelError, match=r"sequence 1, position 2: the label 'b-np' was not seen.*mean 'B-NP'.*I-NP, O"
    ):
        labels.transform([["O"], ["O", None, "b-np"]])


# Real data -----------------------------------------------------------------------------------------------------------


def test_conll2000(data_dir: Path) -> None:
    sentences = list(read_conll(data_dir / "crf_seq" / "conll2000" / "test.txt"))
    attributes, features = Attributes.fit([[f"w={w}", f"t={t}"] for w, t, _ in sentence] for sentence in sentences)
    labels, codes = Labels.fit([[token[2] for token in sentence] for sentence in sentences], features.lengths)
    tokens = [token for sentence in sentences for token in sentence]
    assert len(codes) == len(tokens) == 47377
    assert set(attributes.names) == {f"w={w}" for w, _, _ in tokens} | {f"t={t}" for _, t, _ in tokens}
    names = np.array(attributes.names)[features.indices].reshape(-1, 2)
    assert names.tolist() == [[f"w={w}", f"t={t}"] for w, t, _ in tokens]
    assert np.array(labels.classes)[codes].tolist() == [chunk for _, _, chunk in tokens]


def test_names_are_numbered_the_same_however_many_at_a_time(forced: Forced) -> None:
    sequences = [[["a", "b"], ["c"]], [{"a": 2.0}, ["d", "a"]], [["e"]], [{"b": 1.0, "f": 0.5}], [["a"], ["g", "c"]]]
    found = []
    for block in (1, 3, 1000):
        forced({"data.attributes.BLOCK": block})
        attributes, features = Attributes.fit(sequences)
        again = attributes.transform(sequences)
        found.append((attributes.names, features.indptr.tolist(), features.indices.tolist(), features.values.tolist()))
        assert again.indices.tolist() == features.indices.tolist()
        assert again.values.tolist() == features.values.tolist()
    assert found[0] == found[1] == found[2]
    assert found[0][3] == [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0]


def test_names_that_are_no_texts_have_their_places_told() -> None:
    attributes, features = Attributes.fit([[["a"], [b"a", np.str_("b"), b"c"]], [["a"]]])
    assert attributes.names == ["a", "b", "c"]
    assert {type(name) for name in attributes.names} == {str}
    assert features.indices.tolist() == [0, 0, 1, 2, 0]
    assert attributes.transform([[[b"a", b"new", "c"]]]).indices.tolist() == [0, 2]
    for unread in (1, ["a"], {"a": 1.0}):
        with pytest.raises(ModelError, match=r"sequence 2, position 1: expected the name of an attribute"):
            attributes.transform([[["a"]], [["a"], ["a"]], [["a", "b"], ["a", unread]]])
    growing = GrowingAttributes()
    growing.add([[["a"]], [["b"]]])
    with pytest.raises(ModelError, match=r"sequence 3, position 2: expected the name of an attribute"):
        growing.add([[["c"]], [["a"], ["b"], ["c", None]]])


class Tag(str, enum.Enum):  # noqa: UP042
    """What str() says of it is not the text that it is."""

    NOUN = "n"


def test_names_of_types_derived_from_str_are_the_text_that_they_are() -> None:
    attributes, features = Attributes.fit([[[Tag.NOUN], ["n"], {Tag.NOUN: 1.0}, {"tag": Tag.NOUN}, ["Tag.NOUN"]]])
    assert attributes.names == ["n", "tag:n", "Tag.NOUN"]
    assert {type(name) for name in attributes.names} == {str}
    assert features.indices.tolist() == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("sequence", [np.array(3), {"a"}, frozenset(), {"a": 1.0}, 3])
def test_what_has_no_order_is_no_sequence(sequence: Any) -> None:
    with pytest.raises(ModelError, match="sequence 0: expected a list with one item for each token"):
        Attributes.fit([sequence])
    with pytest.raises(ModelError, match="sequence 0 of y: expected a list of labels"):
        Labels.fit([sequence])


@pytest.mark.parametrize("labels", [np.array([[1]]), [["a"]], [{}], np.array([["a"]])])
def test_labels_of_more_than_one_axis(labels: Any) -> None:
    known, _ = Labels.fit([["a", "b"]])
    for read in (Labels.fit, known.transform):
        with pytest.raises(ModelError, match="sequence 0: expected labels, each a str or an int"):
            read([labels])
