"""Names and their numbers, held to a dict."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.data.numbering import BLOCK, Numbering, hash_names
from tests.routes import Forced

NAMES = st.lists(st.text(max_size=3), max_size=40)


@given(st.lists(NAMES, max_size=6), NAMES)
def test_as_a_dict_says(parts: list[list[str]], asked: list[str]) -> None:
    numbering, expected = Numbering(), dict[str, int]()
    for names in parts:
        numbers = [expected.setdefault(name, len(expected)) for name in names]
        assert numbering.add(names).tolist() == numbers
    assert numbering.names == list(expected) == list(numbering)
    assert len(numbering) == len(expected)
    assert numbering.find(iter(asked)).tolist() == [expected.get(name, -1) for name in asked]


@pytest.mark.parametrize("compile", [False, True])
def test_many_names_in_both_modes(forced: Forced, compile: bool) -> None:
    forced({"kernels.compile.worth_compiling": lambda _: compile})
    names = [f"{i:x}" for i in range(5_000)]
    numbering = Numbering(names[:3])
    assert numbering.add(names[::-1]).tolist() == [*(3 + i for i in range(4_997)), 2, 1, 0]
    assert numbering.find(names[:4]).tolist() == [0, 1, 2, 4_999]
    assert (numbering.find(f"{i:x} " for i in range(5_000)) == -1).all()
    assert numbering.find([]).dtype == np.int32


def test_another_process_finds_the_same() -> None:
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).find(['b', 'c', 'a']).tolist())"
    sent = pickle.dumps(Numbering(["a", "b"]))
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert done.stdout.split() == b"[1, -1, 0]".split()


def test_hashes_that_share_a_place() -> None:
    same = [str(i) for i in range(3_000) if hash_names([str(i)])[0] % 64 == 5]
    assert len(same) > 30
    numbering = Numbering(same[:20])
    assert len(numbering._keys) == 64
    assert numbering.find([same[7], same[19], same[20]]).tolist() == [7, 19, -1]


@pytest.mark.parametrize("compile", [False, True])
def test_hashes_are_those_of_fowler_noll_and_vo(forced: Forced, compile: bool) -> None:
    forced({"kernels.compile.worth_compiling": lambda _: compile})

    def expected(name: bytes) -> int:
        h = 0xCBF29CE484222325
        for byte in name:
            h = ((h ^ byte) * 0x100000001B3) % 2**64
        h %= 2**62
        return h ^ (h >> 31)

    names = ["", "a", "ab", "w[0]=Köln", "\U0001f600", "x" * 300, "\ud800"]
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    assert hash_names(names).tolist() == list(map(expected, texts))
    assert hash_names(["a", "b\0c", "\0", ""]).tolist() == list(map(expected, [b"a", b"b\xc0\x80c", b"\xc0\x80", b""]))
    assert hash_names([]).tolist() == []


def test_zeros_within_names() -> None:
    names = ["a\0b", "a", "b", "", "\0", "a\0", "\0a", "a\0\0b"]
    numbering = Numbering(names)
    assert numbering.names == names
    assert numbering.find([*names, "\0\0"]).tolist() == [*range(8), -1]
    assert [numbering.find([name]).tolist() for name in names] == [[i] for i in range(8)]


def test_room_is_for_names_and_not_for_how_often_they_come() -> None:
    numbering = Numbering(["a", "b"] * 100_000)
    assert numbering.names == ["a", "b"]
    assert len(numbering._keys) <= 8 * BLOCK


def test_what_is_no_text_changes_nothing() -> None:
    numbering = Numbering(["a"])
    for names in (["b", 3], ["b", None, "c"], [["a"]], [b"a"]):
        with pytest.raises(TypeError):
            numbering.add(names)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            numbering.find(names)  # type: ignore[arg-type]
    assert numbering.add(["c", "a", "b"]).tolist() == [1, 0, 2]
    assert numbering.names == ["a", "c", "b"]


def test_names_of_derived_types_become_plain() -> None:
    numbering = Numbering([np.str_("a"), "b"])
    assert [type(name) for name in numbering.names] == [str, str]
    assert numbering.find(["a", np.str_("b")]).tolist() == [0, 1]


def test_texts_whose_bytes_python_hashes_alike_are_two_names() -> None:
    """Python hashes how a text lies in memory: in one, two or four bytes a letter."""
    names = ["no", "\u6f6e", "é", "Ã©"]
    assert Numbering(names).names == names
    assert len(set(hash_names(names).tolist())) == 4
