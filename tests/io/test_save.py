"""save and convert: every format that can be written, what it loses, and that a file appears whole or not at all."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag.errors import LossWarning, ModelError, ParseError
from besag.io.formats import FORMATS
from besag.io.save import losses
from besag.io.shared import files
from besag.model.model import Model
from tests.io.helpers import tables

NETWORK_SUFFIXES = (".bif", ".xml", ".net", ".xdsl", ".json")  # formats that hold names
PACKED = ("", ".gz", ".xz")
ODD_NAMES = ("a b", "<5", "x.y", "é", "a,b", "1st", "a|b", "(c)")


def random_network(seed: int, n: int = 6) -> Model:
    return besag.data.random_model("bayesian_network", n, seed=seed, n_states=(1, 4), zeros=0.2)


def named(seed: int) -> Model:
    """A network with odd names and states, and metadata."""
    source = random_network(seed, len(ODD_NAMES))
    pairs = zip(ODD_NAMES, source.variables, strict=True)
    states = {name: [f"{name}={k}" for k in range(variable.cardinality)] for name, variable in pairs}
    edges = [
        (ODD_NAMES[int(p)], ODD_NAMES[child]) for child in range(len(ODD_NAMES)) for p in source.parents(str(child))
    ]
    cpts = {name: source.cpt(str(child)) for child, name in enumerate(ODD_NAMES)}
    model = besag.bayesian_network(edges, states, cpts)
    return model.with_metadata(
        {"name": "odd", "properties": ["author = somebody", "a remark"]},
        {"a b": {"position": (10, 20), "properties": ["colour = red"]}},
    )


def assert_same(one: Model, two: Model, rtol: float = 1e-14) -> None:
    assert [(v.name, v.states) for v in one.variables] == [(v.name, v.states) for v in two.variables]
    for (scope, table), (other, twin) in zip(tables(one), tables(two), strict=True):
        assert scope == other
        np.testing.assert_allclose(table, twin, rtol=rtol)


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("suffix", NETWORK_SUFFIXES)
def test_a_network_comes_back(tmp_path: Path, suffix: str, packed: str) -> None:
    model, path = named(3), tmp_path / f"model{suffix}{packed}"
    besag.save(model, path)
    assert_same(besag.load(path), model)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), suffixes=st.permutations(NETWORK_SUFFIXES))
def test_a_network_goes_through_all_formats(
    tmp_path_factory: pytest.TempPathFactory, seed: int, suffixes: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("chain")
    model = random_network(seed)
    path = folder / "model.bif"
    besag.save(model, path)
    for number, suffix in enumerate(suffixes):
        target = folder / f"{number}{suffix}"
        besag.convert(path, target)
        path = target
    assert_same(besag.load(path), model)


@pytest.mark.parametrize("suffix", NETWORK_SUFFIXES)
def test_shared_metadata_comes_back(tmp_path: Path, suffix: str) -> None:
    model, path = named(1), tmp_path / f"model{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        besag.save(model, path)
    again = besag.load(path)
    assert again.metadata["name"] == "odd"
    assert set(model.metadata["properties"]) <= set(again.metadata["properties"])
    assert again.variable("a b").metadata["position"] == (10, 20)
    assert "colour = red" in again.variable("a b").metadata["properties"]


@pytest.mark.parametrize("suffix", NETWORK_SUFFIXES)
def test_a_second_round_trip_changes_nothing(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    besag.save(named(2), one)
    besag.convert(one, two)
    assert one.read_bytes() == two.read_bytes()


def test_what_uai_cannot_carry_is_reported(tmp_path: Path) -> None:
    with pytest.warns(LossWarning, match="UAI cannot carry the names of variables, the names of states"):
        besag.save(besag.data.bundled("sprinkler"), tmp_path / "a.uai")
    assert besag.load(tmp_path / "a.uai").is_bayesian_network


def test_what_a_markov_network_loses(tmp_path: Path) -> None:
    model = besag.grid((2, 3), 2, unary=np.zeros((2, 3, 2)), pairwise=besag.potts(2))
    with pytest.warns(LossWarning, match="the shape of the grid, shared parameters"):
        besag.save(model, tmp_path / "grid.uai")
    again = besag.load(tmp_path / "grid.uai")
    assert again.log_partition() == pytest.approx(model.log_partition(), rel=1e-12)


def test_a_plain_model_loses_nothing() -> None:
    model = besag.markov_network([2, 3], [((0, 1), np.arange(6.0).reshape(2, 3))])
    assert [losses(model, f) for f in FORMATS if f.name == "UAI"] == [[]]


@pytest.mark.parametrize("suffix", [".bif", ".xml", ".net", ".xdsl"])
def test_a_markov_network_is_no_bayesian_network(tmp_path: Path, suffix: str) -> None:
    model = besag.markov_network([2, 2], [((0, 1), [[0.0, 1.0], [1.0, 0.0]])])
    with pytest.raises(ModelError, match=r"holds Bayesian networks, and this model is none.*\.uai or \.json"):
        besag.save(model, tmp_path / f"a{suffix}")
    assert not list(tmp_path.iterdir())


def test_energies_that_are_no_weights(tmp_path: Path) -> None:
    model = besag.markov_network([2], [((0,), [0.0, 1e5])], given="energy")
    with pytest.raises(ModelError, match=r"a weight is exp\(-100000\), which is no double.*\.json"):
        besag.save(model, tmp_path / "a.uai")
    besag.save(model, tmp_path / "a.json")
    assert besag.load(tmp_path / "a.json").theta.tolist() == model.theta.tolist()


@pytest.mark.parametrize("name", ["a.fg", "a.wcsp", "a.dsc", "a.txt", "a"])
def test_formats_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match=r"expected one of \.uai, \.bif"):
        besag.save(besag.data.bundled("sprinkler"), tmp_path / name)


def test_the_format_by_name(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    besag.save(besag.data.bundled("sprinkler"), path, format="bif")
    assert besag.load(path).parents("wet_grass") == ["sprinkler", "rain"]  # by content
    with (tmp_path / "model.txt").open("rb") as stream:
        assert len(besag.load(stream, format=".bif").variables) == 4
    with pytest.raises(ModelError, match="no format is named 'nonsense'"):
        besag.load(path, format="nonsense")


def test_a_text_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bif"
    besag.save(besag.data.bundled("sprinkler"), path)
    with path.open(encoding="utf-8") as stream, pytest.raises(ParseError, match="binary stream"):
        besag.load(stream)  # type: ignore[arg-type]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.bif"
    besag.save(besag.data.bundled("sprinkler"), path)
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        besag.save(besag.data.bundled("asia"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    path, link = tmp_path / "model.bif", tmp_path / "link.bif"
    besag.save(besag.data.bundled("sprinkler"), path)
    path.chmod(0o640)
    link.symlink_to(path)
    besag.save(besag.data.bundled("asia"), link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(besag.load(path).variables) == 8


def test_packed_files_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.bif.gz", "b.bif.gz"):
        besag.save(besag.data.bundled("asia"), tmp_path / name)
    assert (tmp_path / "a.bif.gz").read_bytes() == (tmp_path / "b.bif.gz").read_bytes()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"position": (1, 2, 3)}, r"'position' of 'rain' must be two numbers \(x, y\), got \(1, 2, 3\)"),
        ({"position": "here"}, "must be two numbers"),
        ({"position": (0, float("inf"))}, "must hold finite numbers"),
        ({"properties": "x = y"}, "'properties' of 'rain' must be a list of texts, got 'x = y'"),
        ({"properties": [1]}, "must be a list of texts"),
        ({"comment": 5}, "'comment' of 'rain' must be text, got 5"),
        ({"label": None}, "'label' of 'rain' must be text, got None"),
        ("hello", "the metadata of 'rain' must be a dict, got str"),
    ],
)
def test_metadata_of_the_wrong_kind(given: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        besag.data.bundled("sprinkler").with_metadata({}, {"rain": given})  # type: ignore[dict-item]


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    model = besag.data.bundled("sprinkler").with_metadata({}, {"rain": {"position": tuple(np.array([1.5, 2.0]))}})
    besag.save(model, tmp_path / "a.xml")
    assert besag.load(tmp_path / "a.xml").variable("rain").metadata["position"] == (1.5, 2)


def test_what_only_the_model_or_only_variables_can_have(tmp_path: Path) -> None:
    model = besag.data.bundled("sprinkler").with_metadata({"label": "The lawn"}, {"rain": {"name": "Rain"}})
    with pytest.warns(LossWarning, match="GeNIe XDSL cannot carry the model's label, the variables' name"):
        besag.save(model, tmp_path / "a.xdsl")


@pytest.mark.parametrize("name", ["dsc", "wcsp", "fg"])
def test_a_named_format_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="can only be read"):
        besag.save(besag.data.bundled("sprinkler"), tmp_path / "x.foo", format=name)


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path, model = tmp_path / "model.bif", besag.data.bundled("sprinkler")
    os.mkfifo(path)
    read = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        besag.save(model, path)
        assert os.read(read, 8) == b"network "
    finally:
        os.close(read)
    assert path.is_fifo()


def test_a_long_name_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    long = tmp_path / f"{'a' * 251}.bif"
    besag.save(besag.data.bundled("sprinkler"), long)
    assert long.exists()
    with pytest.raises(FileNotFoundError, match=r"absent/model\.bif"):
        besag.save(besag.data.bundled("sprinkler"), tmp_path / "absent" / "model.bif")


def test_the_wrong_suffix_is_told(tmp_path: Path) -> None:
    besag.save(besag.data.bundled("sprinkler"), tmp_path / "a.bif")
    (tmp_path / "a.bif").rename(tmp_path / "a.xdsl")
    with pytest.raises(ParseError, match="the content looks like BIF: format='bif'"):
        besag.load(tmp_path / "a.xdsl")


def test_small_weights_are_doubles_too(tmp_path: Path) -> None:
    model = besag.markov_network([2], [((0,), [1e-310, 1.0])], given="weight")
    besag.save(model, tmp_path / "a.uai")
    assert besag.load(tmp_path / "a.uai").marginals()["0"][0] == pytest.approx(1e-310, rel=1e-10)


def test_an_estimator_is_told_what_to_save(tmp_path: Path) -> None:
    fitted = besag.BayesianNetwork("A -> B").fit({"A": [0, 1], "B": [0, 1]})
    with pytest.raises(ModelError, match=r"got BayesianNetwork; it has a save.path. of its own, and its net"):
        besag.save(fitted, tmp_path / "n.bif")  # type: ignore[arg-type]


def test_something_that_is_no_file() -> None:
    with pytest.raises(TypeError, match="expected the path of a file or a binary stream, got int"):
        besag.load(5)  # type: ignore[arg-type]
