"""The files of the native format: the JSON and the arrays beside it, whole or not at all."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

import besag
from besag.errors import ModelError, ParseError
from besag.io import load, save
from besag.io.native import form as native
from besag.io.shared.files import write_atomically
from besag.model.variable import GridNames, RangeNames
from tests.io.native.test_native import assert_same, document, large_models, through


def test_the_old_arrays_are_removed(tmp_path: Path) -> None:
    models = large_models()
    (tmp_path / "other.0123456789ab.npz").write_bytes(b"not ours")
    save(models["grid"], tmp_path / "a.json")
    first = set(tmp_path.glob("a.*.npz"))
    save(models["grid"], tmp_path / "a.json")
    assert set(tmp_path.glob("a.*.npz")) == first
    save(models["chain"], tmp_path / "a.json")
    second = set(tmp_path.glob("a.*.npz"))
    assert len(second) == 1
    assert second != first
    save(besag.ising((2, 2)), tmp_path / "a.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "other.0123456789ab.npz"]


def test_arrays_that_another_file_needs_stay(tmp_path: Path) -> None:
    model = large_models()["grid"]
    save(model, tmp_path / "a.json")
    save(model, tmp_path / "a.json.gz")
    save(besag.ising((2, 2)), tmp_path / "a.json")
    assert_same(load(tmp_path / "a.json.gz"), model)


def fail_at_the_json(path: Path, data: bytes) -> None:
    if path.suffix == ".json":
        raise OSError(28, "No space left on device", str(path))
    write_atomically(path, data)


def test_a_save_that_fails_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = large_models()
    monkeypatch.setattr(native, "write_atomically", fail_at_the_json)
    with pytest.raises(OSError, match="No space left"):
        save(models["chain"], tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    save(models["grid"], tmp_path / "a.json")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(native, "write_atomically", fail_at_the_json)
    for model in (models["chain"], models["grid"]):
        with pytest.raises(OSError, match="No space left"):
            save(model, tmp_path / "a.json")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises(ModelError, match="the metadata cannot be written as JSON"):
        save(models["chain"].with_metadata({"huge": 10**5000}), tmp_path / "a.json")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert_same(load(tmp_path / "a.json"), models["grid"])


def test_a_folder_in_the_place_of_the_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(IsADirectoryError, match=r"a\.json"):
        save(large_models()["chain"], tmp_path / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_devices() -> None:
    with pytest.raises(ModelError, match="a pipe or a device: the arrays of a large model cannot be kept beside it"):
        save(large_models()["chain"], "/dev/full", format="json")
    with pytest.raises(OSError, match="No space left"):
        save(besag.ising((2, 2)), "/dev/full", format="json")


def test_the_same_model_gives_the_same_files(tmp_path: Path) -> None:
    model = large_models()["grid"]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        save(model, tmp_path / folder / "a.json.gz")
    one, two = (sorted((tmp_path / folder).iterdir()) for folder in ("one", "two"))
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_missing_and_mixed_arrays(tmp_path: Path) -> None:
    models = large_models()
    save(models["grid"], tmp_path / "a.json")
    save(models["chain"], tmp_path / "b.json")
    (one,), (two,) = tmp_path.glob("a.*.npz"), tmp_path.glob("b.*.npz")
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    with pytest.raises(
        ParseError, match=r"a\.json:3: 'a\..*npz' is not the arrays file that this model was saved with"
    ):
        load(tmp_path / "a.json")
    one.write_bytes(content[:-1])
    with pytest.raises(ParseError, match="its SHA-256 differs"):
        load(tmp_path / "a.json")
    one.unlink()
    with pytest.raises(ParseError, match="which is not in its folder; keep both together"):
        load(tmp_path / "a.json")
    one.mkdir()
    with pytest.raises(ParseError, match="which cannot be read"):
        load(tmp_path / "a.json")


def test_streams(tmp_path: Path) -> None:
    small, large = besag.ising((2, 2)), large_models()["grid"]
    save(small, tmp_path / "a.json")
    save(large, tmp_path / "b.json")
    assert_same(load(io.BytesIO((tmp_path / "a.json").read_bytes())), small)
    with (tmp_path / "b.json").open("rb") as file:
        assert_same(load(file), large)
    with pytest.raises(ParseError, match="but a stream has no folder: load it by its path"):
        load(io.BytesIO((tmp_path / "b.json").read_bytes()))


def test_links_lead_to_the_arrays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "a.json").symlink_to(tmp_path / "real" / "b.json")
    model = large_models()["grid"]
    assert_same(through(model, tmp_path, "a.json"), model)
    assert_same(load(tmp_path / "real" / "b.json"), model)


def test_names_are_kept_in_their_form(tmp_path: Path) -> None:
    for model, kind in (
        (besag.chain([[0.0, 1.0]] * 3, np.zeros((2, 2))), RangeNames),
        (besag.ising((2, 3)), GridNames),
    ):
        assert isinstance(through(model, tmp_path).variables.names, kind)


def test_packed_by_content(tmp_path: Path) -> None:
    data = gzip.compress(json.dumps(document()).encode())
    (tmp_path / "model").write_bytes(data)
    assert load(tmp_path / "model").is_bayesian_network


def test_arrays_that_a_copy_needs_stay(tmp_path: Path) -> None:
    first, second = (besag.grid((70, 70), 2, unary=np.full((70, 70, 2), value), pairwise=np.eye(2)) for value in (1, 2))
    path, copy = tmp_path / "a.json", tmp_path / "b.model"
    besag.save(first, path)
    copy.write_bytes(path.read_bytes())
    besag.save(second, path)
    assert besag.load(copy).theta.tolist() == first.theta.tolist()
    copy.unlink()
    before = set(tmp_path.glob("*.npz"))
    besag.save(first, path)
    assert len(before) == 2
    assert len(list(tmp_path.glob("*.npz"))) <= 2
