"""BIF files written: what was read comes back, numbers, names and metadata."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag.errors import ModelError
from besag.io import load
from besag.io.bif import read as bif
from besag.io.formats import Source
from tests.io.helpers import tables

FILE = """// A small net
//
//   by hand
network "small net" {
  property version 1.0;
  property "a; b";
}
variable A {
  type discrete [ 2 ] { no, yes };
  // two states
  property position = (10, -2.5);
  property cost = 1;
}
variable "B b" {
  type discrete [ 3 ] { <5, "5, 6", >=7.5/8 };
}
probability ( A ) {
  // even
  property x;
  table 0.1, 0.9;
}
probability ( "B b" | A ) {
  (no) 0.2, 0.3, 0.5;
  (yes) 1, 0, 1e-05;
}
"""


def again(model: besag.Model) -> besag.Model:
    return bif.read(Source(bif.write(model), "again.bif"))


def test_a_file_comes_back_as_it_was() -> None:
    text = FILE.replace("1, 0, 1e-05", "0.99999, 0, 1e-05")
    assert bif.write(bif.read(Source(text.encode(), "a.bif"))).decode() == text


def test_a_model_without_metadata() -> None:
    model = besag.data.bundled("sprinkler")
    twin = again(model)
    assert twin.metadata == model.metadata
    assert bif.write(model).startswith(b"network unknown {\n}\nvariable ")
    for (scope, table), (other, copy) in zip(tables(model), tables(twin), strict=True):
        assert scope == other
        np.testing.assert_array_equal(table, copy)


name = st.text(st.characters(exclude_characters='"\n\r\0', exclude_categories=["Cs"]), min_size=1, max_size=6)
words = st.text(st.characters(exclude_characters='\n\r\0"', exclude_categories=["Cs"]), max_size=12)


@st.composite
def models(draw: st.DrawFn) -> besag.Model:
    """Networks of a few variables with any names, states, properties and comments that BIF can hold."""
    names = draw(st.lists(name, min_size=1, max_size=4, unique=True))
    states = {v: draw(st.lists(name, min_size=1, max_size=3, unique=True)) for v in names}
    edges = [(a, b) for i, b in enumerate(names) for a in names[:i] if draw(st.booleans())]
    model = besag.bayesian_network(edges, states)
    places = st.tuples(st.integers(), st.floats(-9, 9))
    about = {v: {"properties": draw(st.lists(words, max_size=2)), "position": draw(places)} for v in names}
    return model.with_metadata({"name": draw(name), "properties": tuple(draw(st.lists(words, max_size=2)))}, about)


@settings(max_examples=100)
@given(models())
def test_any_names_and_properties(model: besag.Model) -> None:
    twin = again(model)
    assert [v.name for v in twin.variables] == [v.name for v in model.variables]
    assert [v.states for v in twin.variables] == [v.states for v in model.variables]
    assert bif.write(twin) == bif.write(model)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=6).filter(lambda row: sum(row) > 1e-3))
def test_any_numbers(row: list[float]) -> None:
    cpt = np.array(row) / np.sum(row)
    cpt = np.where(cpt < 1e-300, 0, cpt)
    model = besag.bayesian_network([], {"A": len(row)}, {"A": cpt})
    np.testing.assert_allclose(again(model).cpt("A"), model.cpt("A"), rtol=1e-15)


@pytest.mark.parametrize("wrong", ['a"b', "a\nb", "a\0b", ""])
def test_names_that_bif_cannot_hold(wrong: str) -> None:
    with pytest.raises(ModelError, match=r"BIF cannot hold the name .* rename it"):
        bif.write(besag.bayesian_network([], {wrong: 2}))
    with pytest.raises(ModelError, match=r"BIF cannot hold the state .* rename it"):
        bif.write(besag.bayesian_network([], {"A": [wrong, "x"]}))


def test_texts_that_bif_cannot_hold() -> None:
    model = besag.bayesian_network([], {"A": 2})
    with pytest.raises(ModelError, match=r"BIF cannot hold the property .* of 'A': .* with model.with_metadata"):
        bif.write(model.with_metadata(variables={"A": {"properties": ['say "a"; {b}', "x"]}}))
    with pytest.raises(ModelError, match=r"BIF cannot hold the property .* of the model"):
        bif.write(model.with_metadata({"properties": ['one " alone']}))
    with pytest.raises(ModelError, match="valid Unicode"):
        bif.write(model.with_metadata({"comment": "\ud800"}))


def test_a_model_that_is_no_network() -> None:
    with pytest.raises(ModelError, match=r"BIF holds Bayesian networks, and this model is none"):
        bif.write(besag.markov_network({"A": 2}, [(("A",), [0.0, 1.0])]))


@pytest.mark.parametrize("name", ["asia", "alarm", "hailfinder", "andes", "link", "munin", "mildew"])
def test_published(data_dir: Path, name: str) -> None:
    path = data_dir / "bnlearn_networks" / f"{name}.bif.gz"
    model = load(path)
    data = bif.write(model)
    twin = bif.read(Source(data, "again.bif"))
    assert bif.write(twin) == data
    np.testing.assert_array_equal(twin.theta, model.theta)
    assert [scope for scope, _ in tables(twin)] == [scope for scope, _ in tables(model)]


@pytest.mark.parametrize("name", ["asia", "cancer", "hailfinder", "win95pts"])
def test_numbers_come_out_as_they_were(data_dir: Path, name: str) -> None:
    """Rows in another order, but each with the numbers of the published file."""
    path = data_dir / "bnlearn_networks" / f"{name}.bif.gz"
    published = {row(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()}
    assert {row(line) for line in bif.write(load(path)).decode().splitlines()} == published


def row(line: str) -> str:
    """A line with its numbers in one form."""
    words = line.replace(",", " , ").replace(";", " ;").split()
    return " ".join(repr(float(w)) if w[0].isdigit() else w for w in words)
