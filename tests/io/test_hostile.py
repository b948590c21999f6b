"""Broken and hostile files: an error, never a crash, a hang or gigabytes."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from besag.errors import ParseError
from besag.io import load
from besag.io.bif import read as bif
from besag.io.formats import Source
from besag.io.uai import read as uai
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]
N = 1 << 18

BIF = b"""network "n" { property version 1.0; }
variable A { type discrete [ 2 ] { no, yes }; }
variable B { type discrete [ 3 ] { <5, 5-10, >=10 }; property position = (1, 2); }
variable "C d" { type discrete [ 2 ] { "x, y" z }; }
probability ( A ) { table 0.25, 0.75; }
probability ( B | A ) { // rows
  (no) 0.2, 0.3, 0.5;
  (yes) 1, 0, 0.0e0;
}
probability ( "C d" | A, B ) { default 1 0; (no, 5-10) 0.5 0.5; /* the rest */ }
"""
MARKOV = b"MARKOV\n3\n2 3 2\n4\n2 1 0\n1 2\n0\n2 2 0\n6 1 2 3 4 5 6\n2 0 .5\n1 3\n4 1e0 2E-1 +3 4.\n"
BAYES = b"BAYES\n2\n2 3\n2\n2 0 1\n1 0\n6 .2 .3 .5 1 0 0\n2 .25 .75\n"


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(BIF))
def test_mutations_of_bif(data: bytes) -> None:
    attempt(bif.read, data)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(mutated(MARKOV), mutated(BAYES)))
def test_mutations_of_uai(data: bytes) -> None:
    attempt(uai.read, data)


@pytest.mark.parametrize("source", [BIF, MARKOV, BAYES])
def test_the_sources_are_sound(source: bytes) -> None:
    read = bif.read if source is BIF else uai.read
    assert len(read(Source(source, "file")).variables) in (2, 3)


@pytest.mark.parametrize("source", [BIF, MARKOV, BAYES])
def test_every_truncation(source: bytes) -> None:
    read = bif.read if source is BIF else uai.read
    for end in range(len(source)):
        attempt(read, source[:end])


@pytest.mark.parametrize(
    "text",
    [
        "(" * N,
        ")" * N,
        '"' * N,
        '"' * (N + 1),
        "{" * N,
        "/*" * N,
        "//" * N,
        " " * N + "x",
        "variable A {" + " " * N,
        "variable A {" + "(" * N,
        "variable A {" + "(" * N + "}",
        "variable A {" + "type " * N + "}",
        "variable A {" + '"' * N + "}",
        "variable A { type discrete {" + "{" * N + "}; }",
        "variable A { type discrete [ 2 ] { a b };" + " " * N + "}",
        "variable A { type discrete { " + " ," * N + "}; }",
        "variable A { type discrete " + " " * N + "; }",
        "variable A { type discrete [2]" + " " * N + "{ a }; }",
        "variable A { type discrete " + "{ } " * N + "; }",
        "variable A { type discrete { a }; } probability (A) { property " + " " * N + "; }",
        "probability " * N,
        "probability (A) { } " * (N // 8),
        "variable A { type discrete {a}; } probability (A) {" + "(" * N + "; }",
        "variable A { type discrete {a}; } probability (A) {" + ")" * N + "; }",
        "variable A { type discrete {a}; } probability (A) {" + "();" * N + "}",
        "variable A { type discrete {a}; } probability (A" + "|" * N + ") { table 1; }",
        "variable A { type discrete {a}; } probability (A) { table " + "1 " * N + "; }",
        "variable A { type discrete {a}; } probability (A) { table " + "1" * N + "; }",
    ],
)
def test_bif_in_linear_time(write: Write, text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ParseError, match="file"):
        load(write("file.bif", text))
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    "text",
    [
        "MARKOV " + "1" * N,
        "MARKOV " + "1 " * N,
        "MARKOV " + "0 " * N,
        "MARKOV " + "#" * N,
        "MARKOV" + " " * N,
        f"MARKOV 1 2 {N} " + "0 " * N,
        f"MARKOV {N} " + "1 " * N + "1 " * 2,
        f"BAYES {N // 8} "
        + "1 " * (N // 8)
        + f"{N // 8} "
        + "".join(f"1 {i} " for i in range(N // 8))
        + "1 2 " * (N // 8 - 1),
        f"MARKOV {N // 8} " + " ".join(str(60000 + i) for i in range(N // 8)) + " 0",
    ],
)
def test_uai_in_linear_time(write: Write, text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ParseError, match="file"):
        load(write("file.uai", text))
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="devices of POSIX")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_file(device: str) -> None:
    with pytest.raises(ParseError, match="it is a device, not a file"):
        load(device)
