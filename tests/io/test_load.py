"""load: suffixes, content, compression, and files that cannot be read."""

import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from besag.errors import ParseError
from besag.io import load
from besag.io.shared import files
from tests.routes import Forced

Write = Callable[..., Path]

UAI = "MARKOV 1 2 1 1 0 2 1 3"
BIF = "variable A { type discrete [2] { no, yes }; } probability ( A ) { table 0.25 0.75; }"


@pytest.mark.parametrize(
    ("name", "text", "n_states"),
    [
        ("a.uai", UAI, 2),
        ("a.UAI", UAI, 2),
        ("a.bif", BIF, 2),
        ("a.txt", UAI, 2),
        ("a.txt", BIF, 2),
        ("model", "# comment\n" + UAI, 2),
        ("model", "// comment\n" + BIF, 2),
        ("model", "\ufeff" + BIF, 2),
    ],
)
def test_suffix_or_content(write: Write, name: str, text: str, n_states: int) -> None:
    path = write(name, text)
    for given in (path, str(path)):
        assert load(given).variables[0].cardinality == n_states


@pytest.mark.parametrize("text", [UAI, BIF])
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed(write: Write, text: str, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    name = "a.uai" if text is UAI else "a.bif"
    assert len(load(write(name + suffix, pack(text.encode()))).variables) == 1
    assert len(load(write("a" + suffix, pack(text.encode()))).variables) == 1
    assert len(load(write(name + suffix, text)).variables) == 1  # already unpacked by some tool
    with pytest.raises(ParseError, match="the compressed data is broken or cut off"):
        load(write(name + suffix, pack(text.encode() * 100)[:-20]))
    broken = bytearray(pack(text.encode() * 100))
    broken[20:30] = b"\xff" * 10
    with pytest.raises(ParseError, match="the compressed data is broken or cut off"):
        load(write(name + suffix, bytes(broken)))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]) -> None:
    bomb = write("a.uai.gz", pack(b"0 " * (1 << 20)))
    monkeypatch.setattr(files, "ROOM", 1 << 16)
    with pytest.raises(ParseError, match=r"compressed bytes unpack to more than 65536; .* unpack it first"):
        load(bomb)
    monkeypatch.setattr(files, "ROOM", 1 << 32)
    monkeypatch.setattr(files, "default_memory_limit", lambda: 1 << 18)
    with pytest.raises(ParseError, match=r"compressed bytes unpack to more than 131072; .* unpack it first"):
        load(bomb)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_model_that_packs_well_is_no_bomb(write: Write, pack: Callable[[bytes], bytes]) -> None:
    data = pack(UAI.encode() + b"\n" * (1 << 25))
    assert len(data) < 1 << 16
    assert len(load(write("a.uai.gz", data)).variables) == 1


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(ParseError, match=r"a\.zip: this archive is neither a model nor an estimator of besag"):
        load(tmp_path / "a.zip")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.uai"):
        load(tmp_path / "none.uai")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("opened", [False, True])
def test_every_cut_of_packed_data(write: Write, pack: Callable[[bytes], bytes], opened: bool) -> None:
    data = pack(UAI.encode())
    for end in range(1, len(data)):
        path = write("a.uai.gz", data[:end])
        module = gzip if pack is gzip.compress else lzma
        with module.open(path) as stream, pytest.raises(ParseError, match=r"a\.uai\.gz|<stream>"):
            load(stream if opened else path, format="uai")


def test_large_data_are_unpacked_in_pieces(write: Write, forced: Forced) -> None:
    forced({"io.shared.files.PIECE": 7})
    assert len(load(write("a.uai.gz", gzip.compress(UAI.encode()))).variables) == 1
    assert len(load(write("a.uai.xz", lzma.compress(UAI.encode()))).variables) == 1


class Stream:
    """A stream that gives something, or raises it."""

    def __init__(self, gives: object) -> None:
        self.gives = gives

    def read(self) -> object:
        if isinstance(self.gives, BaseException):
            raise self.gives
        return self.gives


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (None, "expected a binary stream, got one that gives NoneType"),
        ("text", "expected a binary stream, got one of text"),
        (OSError(5, "Input/output error"), "the file cannot be read: Input/output error"),
        (EOFError("it is cut off"), "the file cannot be read: it is cut off"),
        (ValueError("read of closed file"), "the file cannot be read: read of closed file"),
        (MemoryError(), "the file cannot be read: it does not fit into memory"),
    ],
)
def test_streams_that_cannot_be_read(gives: object, message: str) -> None:
    with pytest.raises(ParseError, match=f"<stream>: {message}"):
        load(Stream(gives))  # type: ignore[arg-type]


def test_streams_of_bytes_of_any_kind() -> None:
    for data in (UAI.encode(), bytearray(UAI.encode()), memoryview(UAI.encode())):
        assert len(load(Stream(data)).variables) == 1  # type: ignore[arg-type]


def test_a_file_that_may_not_be_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    path = write("a.uai", UAI)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ParseError, match=r"a\.uai: the file cannot be read: Permission denied"):
        load(path)


def test_a_hint_keeps_the_line(write: Write) -> None:
    with pytest.raises(ParseError, match=r"a\.uai:1: .*the content looks like BIF") as caught:
        load(write("a.uai", BIF))
    assert (caught.value.line, str(caught.value.path).endswith("a.uai")) == (1, True)


def test_what_cannot_be_read(tmp_path: Path, write: Write) -> None:
    with pytest.raises(ParseError, match=r"the file cannot be read: .*directory"):
        load(tmp_path)
    with pytest.raises(ParseError, match="the file cannot be read"):
        load(str(tmp_path / "a\0b.uai"))
    with pytest.raises(ParseError, match="the file cannot be read: Not a directory"):
        load(write("a.uai", UAI) / "b.uai")
    (tmp_path / "loop.uai").symlink_to(tmp_path / "loop.uai")
    with pytest.raises(ParseError, match=r"loop\.uai: the file cannot be read"):
        load(tmp_path / "loop.uai")
    with pytest.raises(ParseError, match=r"a\.bif: the file is empty"):
        load(write("a.bif", "  \n"))


@pytest.mark.parametrize("content", [b"hello world", b"\x89PNG\r\n\x1a\n\0\0\0", b"network, but not of that kind"])
def test_an_unknown_format(write: Write, content: bytes) -> None:
    with pytest.raises(ParseError, match=r"neither the suffix '.txt' nor the content .* expected one of .uai, .bif"):
        load(write("a.txt", content))


@pytest.mark.parametrize("name", ["a.uai", "a.bif", "a.uai.gz"])
def test_binary_noise(write: Write, name: str) -> None:
    noise = bytes((i * 7919 + i * i * 104729) % 256 for i in range(5000))
    with pytest.raises(ParseError, match=name):
        load(write(name, noise))
