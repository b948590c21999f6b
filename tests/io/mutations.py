"""Mutations of files, and what a reader may do with them: a model or a refusal, nothing else."""

import warnings
from collections.abc import Callable
from contextlib import suppress

from hypothesis import strategies as st

from besag.errors import LossWarning, ModelError, ParseError
from besag.io.formats import Source
from besag.model.model import Model

WORDS = [
    b"0",
    b"-1",
    b"2",
    b"99999999999",
    b"1e308",
    b"nan",
    b"(",
    b")",
    b"{",
    b"}",
    b";",
    b'"',
    b"|",
    b",",
    b"/*",
    b"//",
]
WORDS += [
    b"\n",
    b" ",
    b"\0",
    b"\xff",
    b"\x1c",
    b"_",
    b"variable",
    b"probability",
    b"table",
    b"default",
    b"MARKOV",
    b"#",
]


@st.composite
def mutated(draw: st.DrawFn, source: bytes, words: tuple[bytes, ...] = ()) -> bytes:
    """The source with a few pieces cut out, doubled or put in; `words` are pieces that mean something in the format."""
    data = source
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        end = min(len(data), begin + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from([b"", data[begin:end] * 2, *WORDS, *words]))
        data = data[:begin] + piece + data[end:]
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 9)) == 0 else data


def attempt(read: Callable[[Source], Model], data: bytes) -> None:
    """A model or a refusal; load makes a ParseError of both kinds."""
    with suppress(ParseError, ModelError), warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        read(Source(data, "file"))
