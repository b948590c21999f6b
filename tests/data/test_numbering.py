"""Names and their numbers, held to a dict."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.data.numbering import BLOCK, Numbering

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
def test_many_names_in_both_modes(monkeypatch: pytest.MonkeyPatch, compile: bool) -> None:
    monkeypatch.setattr("besag.data.numbering.worth_compiling", lambda _: compile)
    names = [f"{i:x}" for i in range(5_000)]
    numbering = Numbering(names[:3])
    assert numbering.add(names[::-1]).tolist() == [*(3 + i for i in range(4_997)), 2, 1, 0]
    assert numbering.find(names[:4]).tolist() == [0, 1, 2, 4_999]
    assert (numbering.find(f"{i:x} " for i in range(5_000)) == -1).all()
    assert numbering.find([]).dtype == np.int32


def test_another_process_hashes_otherwise() -> None:
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).find(['b', 'c', 'a']).tolist())"
    sent = pickle.dumps(Numbering(["a", "b"]))
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert done.stdout.split() == b"[1, -1, 0]".split()


def test_hashes_that_share_a_place() -> None:
    class Same(str):
        def __hash__(self) -> int:
            return int(self) * 64

    numbering = Numbering([Same(str(i)) for i in range(20)])
    assert numbering.find([Same("7"), Same("19"), Same("20")]).tolist() == [7, 19, -1]


def test_room_is_for_names_and_not_for_how_often_they_come() -> None:
    numbering = Numbering(["a", "b"] * 100_000)
    assert numbering.names == ["a", "b"]
    assert len(numbering._keys) <= 8 * BLOCK


def test_what_is_no_text_leaves_nothing_behind() -> None:
    numbering = Numbering(["a"])
    for names in (["b", 3], ["b", None, "c"], [["a"]]):
        with pytest.raises(TypeError):
            numbering.add(names)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a text, got 3"):
        numbering.find(["a", 3])  # type: ignore[list-item]
    assert numbering.add(["c", "a", "b"]).tolist() == [1, 0, 2]
    assert numbering.names == ["a", "c", "b"]
