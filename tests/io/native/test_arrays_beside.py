"""The arrays file of the native format: broken and hostile archives."""

import hashlib
import io
import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from besag.errors import ParseError
from besag.io import load
from besag.io.native import form as native
from tests.io.mutations import attempt, mutated
from tests.io.native.test_native import document, same_array


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def with_archive(folder: Path, data: bytes) -> Path:
    found = document() | {"theta": {"stored": "theta"}}
    found["arrays"] = {"file": "x.npz", "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "x.npz").write_bytes(data)
    (folder / "x.json").write_text(json.dumps(found))
    return folder / "x.json"


THETA = np.full(6, np.log(2))


def test_an_archive_by_hand(tmp_path: Path) -> None:
    same_array(load(with_archive(tmp_path, archive({"theta.npy": npy(THETA)}))).theta, THETA)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the arrays file 'x.npz' is broken"),
        (b"PK\x03\x04", "the arrays file 'x.npz' is broken"),
        (archive({"theta.npy": npy(THETA)})[:-30], "the arrays file 'x.npz' is broken"),
        (archive({"other.npy": npy(THETA)}), "theta: the arrays file has no 'theta'"),
        (archive({"theta.npy": npy(THETA)}, zipfile.ZIP_DEFLATED), "'theta' is compressed"),
        (archive({"theta.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED), "it declares more than it holds"),
        (archive({"theta.npy": npy(np.array([object], object))}), "'theta' is no array of numbers"),
        (archive({"theta.npy": npy(THETA.astype(np.complex128))}), "'theta' is no array of numbers"),
        (archive({"theta.npy": npy(THETA.astype(np.float32))}), "'theta' is of float32"),
        (archive({"theta.npy": npy(np.arange(6))}), "theta: expected an array of float64, got int64"),
        (archive({"theta.npy": npy(THETA)[:-8]}), "'theta' declares 6 entries but holds 40 bytes"),
        (archive({"theta.npy": npy(THETA).replace(b"(6,)", b"(9999999999999999,)")}), "'theta'"),
        (archive({"theta.npy": npy(THETA).replace(b"(6,)", b"(-6,)")}), "'theta' is no array of numbers"),
        (archive({"theta.npy": npy(np.asfortranarray(np.ones((2, 3))))}), "'theta' is no array of numbers"),
        (archive({"theta.npy": b"\x93NUMPY\x01\x00"}), "'theta' is no array of numbers"),
        (archive({"theta.npy": b""}), "'theta' is no array of numbers"),
    ],
)
def test_hostile_archives(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(with_archive(tmp_path, data))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(archive({"theta.npy": npy(THETA)}), words=(b"PK", b"\x01", b"\xff\xff\xff\xff", b"(6, 6)")))
def test_mutations_of_the_archive(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = with_archive(Path(folder), data)
        attempt(lambda source: native.read(source._replace(path=str(path))), path.read_bytes())


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    data = bytearray(archive({"a.npy": npy(np.zeros(600)), "b.npy": npy(np.zeros(600))}))
    directory = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", directory + 4)
    data[second + 42 : second + 46] = data[directory + 42 : directory + 46]
    with pytest.raises(ParseError, match=r"the arrays file 'x\.npz' is broken"):
        load(with_archive(tmp_path, bytes(data)))
