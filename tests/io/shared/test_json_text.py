"""Large JSON texts: lists that stay text, brackets that are too many, and places."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.errors import ParseError
from besag.io import load
from besag.io.shared.json_places import deepest, longest_number, place_of, second_of_a_key, steps_of
from besag.io.shared.json_text import LONG, LongList, parse, spell_out, too_many_brackets
from besag.io.shared.relaxed_json import WordList, parse_nested
from tests.io.native.test_native import changed, document

Write = Callable[..., Path]

NUMBERS = [0, -1, 0.5, 1e-300, 12345678901234567] * 2000
LEAVES = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def spelled_out(text: str) -> Any:
    """What json makes of a text, by way of LongLists."""
    whole = {"whole": parse(text)}
    spell_out(whole)
    return whole["whole"]


def of_one_kind(value: Any) -> Any:
    """A value in which ints differ from floats."""
    return json.dumps(value)


@pytest.mark.parametrize("indent", [None, 1])
def test_long_lists(indent: int | None) -> None:
    value = {"a": NUMBERS, "b": ["[1, 2]" * LONG, '\\"[', *NUMBERS], "c": [[NUMBERS], [1]], "d": []}
    text = json.dumps(value, indent=indent)
    found = parse(text)
    assert isinstance(found["a"], LongList)
    assert isinstance(found["b"], list)
    assert isinstance(found["c"][0][0], LongList)
    assert len(found["a"]) == len(NUMBERS)
    assert of_one_kind(spelled_out(text)) == of_one_kind(value)


@settings(max_examples=60)
@given(VALUES, st.integers(0, 3))
def test_any_value(value: Any, copies: int) -> None:
    text = json.dumps([value, NUMBERS, [value] * copies])
    assert of_one_kind(spelled_out(text)) == of_one_kind([value, NUMBERS, [value] * copies])
    assert isinstance(parse(text)[1], LongList)


@pytest.mark.parametrize("wrong", ["1,,2", "1 2", "01", "+1", ".5", "1.", "--1", "1e", "", " "])
@pytest.mark.parametrize("place", [0, 40_000, -1])
def test_numbers_that_json_refuses(wrong: str, place: int) -> None:
    words = ["1"] * 50_000
    words[place] = wrong
    text = f'{{"a":\n[{",".join(words)}]}}'
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as found:
        spelled_out(text)
    assert found.value.doc == text
    assert abs(found.value.pos - expected.value.pos) <= 2


def large(values: str) -> str:
    """The document with theta as text."""
    return json.dumps(changed("theta", "HERE"), indent=1).replace('"HERE"', values)


def test_native_files_with_long_lists(write: Write) -> None:
    n = 3000
    found = changed("variables/names", {"range": n})
    found["variables"] |= {"space_of": [0] * n, "metadata": {"7": {"numbers": NUMBERS}}}
    found["templates"] = [{"name": "t", "shape": [2], "n_inputs": n}]
    scopes = {"shape": [n, 1], "values": list(range(n))}
    found["groups"] = [{"template": 0, "scopes": scopes, "inputs": {"rows": list(range(n))}}]
    found["theta"] = [i / 7 for i in range(2 * n)]
    model = load(write("a.json", json.dumps(found)))
    assert model.theta.tolist() == found["theta"]
    assert model.groups[0].scopes[:, 0].tolist() == list(range(n))
    assert of_one_kind(model.variables[7].metadata["numbers"]) == of_one_kind(NUMBERS)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("[" + "0.5,\n" * 50_000 + "x, 1]", r"a\.json:500\d\d:1: expected JSON"),
        ("[" + "0.5,\n" * 50_000 + "1.e, 1]", r"a\.json:500\d\d:2: expected JSON"),
        # Python 3.13 points at the last comma, earlier ones at the bracket after it
        ("[" + "0.5,\n" * 50_000 + "]", r"a\.json:500\d\d:[14]: expected JSON"),
        ("[" + "0.5, " * 50_000 + "1]", r"a\.json:\d+: the file: theta must have shape \(6,\), got \(50001,\)"),
        ("[" + "0.5, " * 50_000 + "1" * 5000 + "]", r"a\.json:\d+: the file, theta: .*digits"),
        ("[" + "0.5, " * 50_000 + "1e999]", r"a\.json:\d+: the file: theta must"),
    ],
)
def test_native_errors_in_long_lists(write: Write, values: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.json", large(values)))


def test_whole_numbers_must_be_whole_in_long_lists(write: Write) -> None:
    found = changed("variables/space_of", [0] * 5000 + [0.0])
    with pytest.raises(ParseError, match="variables, space_of: expected an array of int64"):
        load(write("a.json", json.dumps(found)))


def peak_of(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", large("[" + "0.5," * 400_000 + "1]")),
        ("a.cfn", "{p {n <9} {A 2} {" + "f {scope [A A] costs [" + "0.5 " * 400_000 + "]}}}"),
        ("a.cfn", '{"p": ["n", "<9"], "v": {"A": 2}, "f": {"f": {"scope": [], "costs": [' + "0.5," * 400_000 + "1]}}}"),
        ("a.json", '{"besag": 1, "templates": [' + "{}," * 1_000_000 + "{}]}"),
        ("a.json", '{"besag": 1, "metadata": {"comment": "' + '\\"' * 1_000_000 + '"}}'),
        ("a.cfn", "[" * 3_000_000),
        ("a.cfn", "{problem " + "[]" * 3_000_000 + "}"),
    ],
)
def test_memory(write: Write, name: str, text: str) -> None:
    """Not more than a few times the file, where Python's lists take eight times and more."""
    path = write(name, text)

    def attempt() -> None:
        with pytest.raises(ParseError):
            load(path)

    assert peak_of(attempt) < 7 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        '"\\' * (1 << 18),
        '"' * ((1 << 18) + 1),
        "[" + "1," * (1 << 18),
        ("[" + "1" * 4095 + ",") * 64,
        ("[" + "1" * 5000 + '"') * 64,
        '{"besag": 1, "x": [' + '"\\' * (1 << 18),
        "[" * 5000 + '"\\' * (1 << 18),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.cfn"])
@pytest.mark.filterwarnings("ignore::besag.errors.LossWarning")
def test_hostile_texts(write: Write, name: str, text: str) -> None:
    with pytest.raises(ParseError, match=name):
        load(write(name, text))


# Brackets and places -------------------------------------------------------------------------------------------------


def test_too_many_brackets() -> None:
    assert too_many_brackets("[" * 1000) is None
    assert too_many_brackets("[" * (1 << 20)) == 1 << 20
    assert too_many_brackets("{" * (1 << 19)) == 1 << 19
    assert too_many_brackets('"' + "[" * (1 << 20) + '"') is None
    assert too_many_brackets("[1.5, 22], " * (1 << 20)) is None


@pytest.mark.parametrize("token", ["besag", "groups", "n_inputs"])
def test_places(token: str) -> None:
    text = json.dumps({"long": '"]}{["' * 3, "empty": [{}, []], **document()}, indent=1)
    keys = {"besag": ["besag"], "groups": ["groups", 1], "n_inputs": ["templates", 1, "n_inputs"]}[token]
    place = place_of(text, steps_of(json.loads(text), keys))
    assert place is not None
    found, _ = json.JSONDecoder().raw_decode(text, place)
    expected = json.loads(text)
    for key in keys:
        expected = expected[key]
    assert found == expected


def test_places_that_are_not() -> None:
    assert steps_of({"a": [1]}, ["a", 3]) == [1]
    assert steps_of({"a": [1]}, ["b", 3]) == []
    assert place_of("[1, [2], 3]", [1, 1]) is None
    assert place_of("[1]]", [2]) is None
    assert place_of(" 5", []) == 1


def test_other_places() -> None:
    assert second_of_a_key('{"a": {"b": 1}, "c": "a", "b": ["a", {"a": 1}], "a": 2}') == 48
    assert second_of_a_key('{"a": 1}}') is None
    assert deepest('[[], "[[[[", [[1]]]') == 14
    assert longest_number('["' + "1" * 2000 + '", ' + "2" * 2000 + "]") == 2005
    assert longest_number("[1]") is None


# With the liberties of toulbar2 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize("comma", [" ", ",", ", ", ": "])
def test_lists_of_words(brackets: str, comma: str) -> None:
    words = ["1", "-2.5", ".5", "1e3", "+7", "1-2", "e"] * 100
    text = f'{{ a {brackets[0]}{comma.join(words)}{brackets[1]} "[1" 2 }}'
    found = parse_nested(text, "file").items
    assert found[0] == "a"
    assert isinstance(found[1], WordList)
    assert found[1].items() == [1, -2.5, 0.5, 1000.0, 7, "1-2", "e"] * 100
    assert found[2:] == ["[1", 2]


def test_arrays_of_words() -> None:
    found = parse_nested("[a [" + "0.25 3, " * 200 + "]]", "file").items[1]
    np.testing.assert_array_equal(found.array(), [0.25, 3] * 200)
    with pytest.raises(ValueError, match="could not convert"):
        parse_nested("[a [" + "0.25 3, " * 200 + "1-2]]", "file").items[1].array()
