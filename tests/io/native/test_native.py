"""The native format: every model comes back as it was; broken and hostile files are refused."""

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.sparse import csr_array

import besag
from besag.errors import ModelError, ParseError
from besag.io import load, save
from besag.io.formats import Source
from besag.io.native import form as native
from besag.model.model import FactorGroup, Model
from besag.model.structured.potts import Potts
from besag.model.structured.scaled import Scaled
from besag.model.template import Pattern, Template
from besag.model.variable import GridNames, NameList, Variables
from tests.io.mutations import attempt, mutated
from tests.routes import Forced
from tests.strategies import examples, models

Write = Callable[..., Path]


def same_array(one: Any, other: Any) -> None:
    """Both None, or equal to the last bit."""
    assert (one is None) == (other is None)
    if one is not None:
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def assert_same(one: Model, other: Model) -> None:
    """The same content, numbers to the last bit."""
    assert type(one.variables.names) is type(other.variables.names)
    assert list(one.variables) == list(other.variables)
    assert one.variables.spaces == other.variables.spaces
    assert one.variables.metadata == other.variables.metadata
    assert (one.metadata, one.shape) == (other.metadata, other.shape)
    same_array(one.theta, other.theta)
    same_array(one.support, other.support)
    for first, second in zip(one.groups, other.groups, strict=True):
        assert_same_group(first, second)


def assert_same_group(first: FactorGroup, second: FactorGroup) -> None:
    one, other = first.template, second.template
    assert (one.name, one.shape, one.n_inputs) == (other.name, other.shape, other.n_inputs)
    assert one.same_as(other)
    assert type(one.basis) is type(other.basis)
    same_array(first.scopes, second.scopes)
    same_array(first.positions, second.positions)
    assert (first.names, first.conditional) == (second.names, second.conditional)
    if hasattr(first.inputs, "tocsr"):
        assert first.inputs.shape == second.inputs.shape
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(first.inputs, part), getattr(second.inputs, part))
    else:
        same_array(first.inputs, second.inputs)


def through(model: Model, folder: Path, name: str = "model.json") -> Model:
    save(model, folder / name)
    return load(folder / name)


# Round trips ---------------------------------------------------------------------------------------------------------


@settings(examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(models())
def test_any_model(model: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = through(model, Path(folder))
    assert_same(model, found)
    assert found.log_partition() == model.log_partition()


@pytest.mark.parametrize(
    "kind", ["chain", "tree", "grid", "forest_factors", "markov_network", "bayesian_network", "polytree"]
)
def test_random_models(tmp_path: Path, kind: str) -> None:
    model = besag.data.random_model(kind, 6, seed=4)
    found = through(model, tmp_path)
    assert_same(model, found)
    assert found.log_partition() == model.log_partition()
    assert found.is_bayesian_network == model.is_bayesian_network


def large_models() -> dict[str, Model]:
    rng = np.random.default_rng(0)
    return {
        "grid": besag.grid((40, 60), 3, rng.normal(size=(40, 60, 3)), besag.potts(3), weights=0.7),
        "ising": besag.ising((60, 80), coupling=0.4, field=rng.normal(size=(60, 80))),
        "chain": besag.chain(rng.normal(size=(3000, 2)), rng.normal(size=(2999, 2, 2))),
    }


@pytest.mark.parametrize("name", ["grid", "ising", "chain"])
@pytest.mark.parametrize("packing", ["", ".gz", ".xz"])
def test_large_models_have_arrays_beside(tmp_path: Path, name: str, packing: str) -> None:
    model = large_models()[name]
    found = through(model, tmp_path, f"a.b.json{packing}")
    beside = [path.name for path in tmp_path.iterdir() if path.suffix == ".npz"]
    assert len(beside) == 1
    assert beside[0] == f"a.b.{hashlib.sha256((tmp_path / beside[0]).read_bytes()).hexdigest()[:12]}.npz"
    assert_same(model, found)
    with np.load(tmp_path / beside[0], allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["theta"], model.theta)


def test_a_million_names_are_not_listed(tmp_path: Path) -> None:
    save(besag.ising((1000, 1000), coupling=0.4), tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_size < 2000
    assert load(tmp_path / "a.json").variables.names == GridNames(1000, 1000)


def everything() -> Model:
    """All forms of templates and inputs, and metadata of all types."""
    names = NameList(["a", "Ä\n", '"', "\ud800", "e"])
    variables = Variables(
        names, [("no", "yes"), ("0", "1", "2")], np.array([0, 0, 1, 1, 0]), {3: {"position": (1, 2.5)}}
    )
    table = np.array([[0.1, -0.0], [5e-324, 1e300]])
    sparse = csr_array(np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0]]))
    allowed = np.array([[True, False], [True, True]])
    templates = [
        Template("potts", (3, 3), basis=Potts(3)),
        Template("scaled", (2, 2), basis=Scaled(table)),
        Template("basis", (2,), 3, basis=np.array([[1.0, -1.0], [0.0, 1 / 3]])),
        Template("rows", (2, 2), 2, support=allowed),
        Template("pattern", (2,), 3, pattern=Pattern(np.array([0, 2]), np.array([1, 0]))),
    ]
    groups = [
        FactorGroup(templates[0], np.array([[2, 3]]), positions=np.array([6]), names=("tie",)),
        FactorGroup(templates[1], np.array([[0, 1], [4, 0]]), np.array([[0.5], [2.0]]), positions=np.array([1, 0])),
        FactorGroup(templates[2], np.array([[0], [4]]), sparse, positions=np.array([2, 3])),
        FactorGroup(templates[3], np.array([[1, 4]]), np.array([1]), positions=np.array([4])),
        FactorGroup(templates[4], np.array([[1]]), np.array([[0.5, 1.0, 2.0]]), positions=np.array([5])),
        FactorGroup(templates[2], np.zeros((0, 1), np.int64), csr_array((0, 3))),
    ]
    theta = np.concatenate([[0.3], [0.25], np.arange(6) / 7, np.array([1.0, 0.0, 2, 3, 4, 5, 0.0, 7]), [0.1, -0.2]])
    support = np.ones(len(theta), np.bool_)
    support[14] = False
    metadata = {"name": "all", "deep": {"list": [1, [2.5, None]], "yes": True, "big": 10**30}}
    return Model(variables, tuple(groups), theta, support, (5,), metadata)


@pytest.mark.parametrize("inline", [4096, 0])
def test_everything(tmp_path: Path, forced: Forced, inline: int) -> None:
    forced({"io.native.arrays_beside.INLINE": inline})
    model = everything()
    assert_same(model, through(model, tmp_path))
    assert len(list(tmp_path.iterdir())) == (2 if inline == 0 else 1)


def test_a_model_without_factors(tmp_path: Path) -> None:
    model = besag.markov_network([2, 3], [])
    assert_same(model, through(model, tmp_path))


def test_numbers_too_long_for_json(tmp_path: Path) -> None:
    model = besag.markov_network([2], []).with_metadata({"huge": 10**5000})
    with pytest.raises(ModelError, match="the metadata cannot be written as JSON"):
        save(model, tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_too_many_small_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.io.shared.json_text.SPARE", 100)
    model = besag.markov_network([2], []).with_metadata({"many": ((),) * 1000})
    with pytest.raises(ModelError, match="too many small lists and dicts to be read back"):
        save(model, tmp_path / "a.json")
    brackets = besag.markov_network([2], []).with_metadata({"name": "[" * 1000})
    assert through(brackets, tmp_path).metadata["name"] == "[" * 1000


# Errors --------------------------------------------------------------------------------------------------------------


def document() -> dict[str, Any]:
    """A small Bayesian network A -> B, as a document."""
    return {
        "besag": 1,
        "kind": "model",
        "metadata": {},
        "variables": {"names": ["A", "B"], "spaces": [["no", "yes"]], "space_of": [0, 0], "metadata": {"0": {"x": 1}}},
        "templates": [
            {"name": "one", "shape": [2], "n_inputs": 1},
            {"name": "two", "shape": [2, 2], "n_inputs": 1},
        ],
        "groups": [
            {"template": 0, "scopes": {"shape": [1, 1], "values": [0]}, "conditional": True, "positions": [1]},
            {"template": 1, "scopes": {"shape": [1, 2], "values": [0, 1]}, "conditional": True, "positions": [0]},
        ],
        "theta": [0.6931471805599453] * 6,
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    """The document with another value at a path such as groups/0/scopes."""
    found = document()
    at: Any = found
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        at = at[step]
    at[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("besag", 2, "besag"),
        ("kind", "estimator", "kind"),
        ("extra", 1, "extra"),
        ("variables/names", ["A"], "names"),
        ("variables/names", {"range": 10**12}, "range"),
        ("variables/spaces", [["no", 1]], "spaces"),
        ("variables/space_of", [0, 1], "space_of"),
        ("variables/metadata", {"0": {}, "2": {}}, "2"),
        ("variables/names", ["A", "A"], "variables"),
        ("templates/1/n_inputs", 10**12, "n_inputs"),
        ("templates/1/support", [1, 0], "support"),
        ("groups/1/scopes", {"shape": [2, 1], "values": [0]}, "scopes"),
        ("groups/0/conditional", 1, "conditional"),
        ("theta", [1.0] * 5, "theta"),
        ("theta", "x", "theta"),
        ("support", [True], "support"),
        ("shape", [3], "shape"),
        ("metadata", {"name": float("nan")}, "metadata"),
        ("arrays", {"file": "x"}, "arrays"),
    ],
)
def test_lines(write: Write, path: str, value: Any, where: str) -> None:
    text = json.dumps(changed(path, value), indent=1)
    with pytest.raises(ParseError) as caught:
        load(write("a.json", text))
    line = caught.value.line
    assert line is not None
    assert text.split("\n")[line - 1].strip().startswith(f'"{where}":')


def test_the_document_is_sound(write: Write) -> None:
    model = load(write("a.json", json.dumps(document())))
    assert model.is_bayesian_network
    assert model.variables[0].metadata["x"] == 1
    assert model.marginals()["B"].tolist() == pytest.approx([0.5, 0.5])
    assert native.matches(json.dumps(document()).encode())
    assert not native.matches(b'{"problem": {}}')


CSR = {"shape": [1, 1], "data": [1.0], "indices": [0], "indptr": [0, 1]}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("besag", 2, "the file is of version 2 of the format, and this besag reads up to 1: update besag"),
        ("besag", 10**30, "the file is of version 1000"),
        ("besag", "1", 'expected "besag": 1, got str'),
        ("besag", True, 'expected "besag": 1, got bool'),
        ("kind", "estimator", 'expected "kind": "model", got \'estimator\''),
        ("extra", 1, "the file: unknown key 'extra'"),
        ("metadata", [], "the file: expected 'metadata' of type dict, got list"),
        ("variables", [], "variables: expected an object with names spaces"),
        ("variables/names", ["A"], "variables: expected 2 names, as many as space_of has entries, got 1"),
        ("variables/names", ["A", "A"], "variable names must differ"),
        ("variables/names", ["A", 3], "variables: expected 'names' to be a list of texts"),
        ("variables/names", {"range": 10**12}, "variables, names: expected 'range' from 1 to 2147483648"),
        ("variables/names", {"range": 10**9}, "expected 2 names, as many as space_of has entries, got 1000000000"),
        ("variables/names", {"grid": [2, 2]}, "expected 2 names, as many as space_of has entries, got 4"),
        ("variables/names", {"grid": [2]}, r"expected the height and the width of a grid, got \(2,\)"),
        ("variables/names", {"grid": [1, 0]}, "expected 'grid' to be at most 60 numbers from 1"),
        ("variables/names", {"grid": [1, 1, 2]}, "expected the height and the width of a grid"),
        ("variables/names", None, "variables, names: expected an object with range grid"),
        ("variables/spaces", [["no", 1]], "expected 'spaces' to be lists of the names of states"),
        ("variables/spaces", [["no", "no"]], "states of 'A' must be one or more distinct names"),
        ("variables/space_of", [0, 1], "space_of must be numbers of the 1 spaces"),
        ("variables/space_of", [0, -1], "space_of must be numbers of the 1 spaces"),
        ("variables/space_of", [], "expected 0 names"),
        ("variables/metadata", {"2": {}}, "expected objects by the number of a variable, got '2'"),
        ("variables/metadata", {"0": 3}, "expected objects by the number of a variable, got '0'"),
        ("templates/0/shape", [2] * 61, "templates 0: expected 'shape' to be at most 60 numbers"),
        ("templates/0/shape", [2**31, 2**31], "templates 0: a table of shape .* has too many entries"),
        ("templates/0/shape", [], "the shape must be one or more positive numbers"),
        ("templates/0/n_inputs", 10**12, "templates 0: expected 'n_inputs' from 1 to"),
        ("templates/0/n_inputs", 10**9, "theta must have shape|reads 1000000000 inputs"),
        ("templates/0/name", "two", "two templates have the same name"),
        ("templates/0/name", 3, "templates 0: expected 'name' of type str, got int"),
        ("templates/0/basis", {}, "templates 0, basis, tables: expected an array of float64"),
        ("templates/0/basis", {"potts": 2}, "the structured basis has shape"),
        ("templates/0/basis", {"scaled": [1.0]}, "the structured basis has shape"),
        ("templates/0/basis", {"other": 2}, "templates 0, basis: unknown key 'other'"),
        ("templates/0/support", [True], "support must have the table's shape"),
        ("templates/0/support", [1, 0], "templates 0, support: expected an array of bool"),
        (
            "templates/0/pattern",
            {"rows": [2**62], "columns": [2**62]},
            "expected numbers of inputs and of basis elements",
        ),
        ("templates/0/pattern", {"rows": [0], "columns": [9]}, "pattern pair"),
        ("templates/0/pattern", {"rows": [0]}, "templates 0, pattern, columns: expected an array of int64"),
        ("templates", [], "groups 0: there is a group but no template"),
        ("groups/0/template", 2, "groups 0: expected 'template' from 0 to 1, got 2"),
        ("groups/0/scopes", [0], "scopes must have shape"),
        ("groups/0/scopes", {"shape": [1, 1], "values": [5]}, "names variable"),
        ("groups/0/scopes", {"shape": [1, 1], "values": [0.0]}, "groups 0, scopes: expected an array of int64"),
        ("groups/0/scopes", {"shape": [1, 1], "values": [2**70]}, "groups 0, scopes: .*too large"),
        ("groups/0/scopes", {"shape": [2, 1], "values": [0]}, "groups 0, scopes: 1 values do not have the shape"),
        ("groups/0/scopes", {"shape": [-1], "values": [0]}, "groups 0, scopes: 1 values do not have the shape"),
        ("groups/0/scopes", {"shape": [0, 10**30], "values": []}, "groups 0, scopes: 0 values do not have the shape"),
        ("groups/0/scopes", {"shape": [1] * 80, "values": [0]}, "groups 0, scopes: 1 values do not have the shape"),
        ("groups/0/scopes", {"stored": "x"}, "groups 0, scopes: the arrays file has no 'x'"),
        ("groups/0/inputs", {"rows": [1]}, "reads row 1 of theta"),
        ("groups/0/inputs", {"dense": [1.0]}, "inputs must be"),
        ("groups/0/inputs", {"csr": CSR | {"indices": [1]}}, "groups 0, inputs, csr: expected a sparse matrix by rows"),
        ("groups/0/inputs", {"csr": CSR | {"indptr": [0, 2]}}, "expected a sparse matrix by rows"),
        ("groups/0/inputs", {"csr": CSR | {"indptr": []}}, "expected a sparse matrix by rows"),
        ("groups/0/inputs", {"csr": CSR | {"shape": [1]}}, "expected a sparse matrix by rows"),
        ("groups/0/inputs", {"csr": {}}, "groups 0, inputs, csr: expected 'shape' of type list"),
        ("groups/0/conditional", 1, "groups 0: expected 'conditional' of type bool, got int"),
        ("groups/0/positions", [0], "the positions of the groups must be the numbers 0 to 1, each once"),
        ("groups/0/positions", [0, 1], "groups 0: expected 1 positions, one for each factor"),
        ("groups/0/names", ["a", "b"], "groups 0: expected 1 names, one for each factor, got 2"),
        ("groups/1/scopes", {"shape": [1, 2], "values": [1, 0]}, "variable 'A' has two"),
        ("theta", [1.0] * 6, "groups 0 is conditional, but its rows do not sum to one"),
        ("theta", [1.0] * 5, "theta must have shape"),
        ("theta", [1.0] * 5 + [float("nan")], "theta must be finite"),
        ("theta", [1.0] * 5 + [10**400], "the file, theta: .*too large"),
        ("theta", "x", "the file, theta: expected an array of float64"),
        ("theta", {"values": [1.0]}, "the file, theta: expected an array of float64"),
        ("support", [True], "support must have theta's shape"),
        ("shape", [3], r"the shape \(3,\) does not have 2 variables"),
        ("arrays", {"file": "x"}, 'expected "arrays": '),
        ("arrays", {"file": "../x.npz", "sha256": ""}, "the arrays file must be in the same folder"),
        ("arrays", {"file": "x\0.npz", "sha256": ""}, "the arrays file must be in the same folder"),
        ("arrays", {"file": "x" * 5000, "sha256": ""}, "cannot be read"),
        ("arrays", {"file": "\ud800", "sha256": ""}, "cannot be read"),
    ],
)
def test_errors(write: Write, path: str, value: Any, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.json", json.dumps(changed(path, value))))


def test_cycles_are_found(write: Write) -> None:
    both = {"template": 0, "scopes": {"shape": [2, 2], "values": [0, 1, 1, 0]}, "conditional": True}
    found = changed("groups", [both])
    del found["templates"][0]
    found["theta"] = found["theta"][:4]
    with pytest.raises(ParseError, match=r"a\.json:\d+: .*the edges have a cycle: A -> B -> A") as caught:
        load(write("a.json", json.dumps(found, indent=0)))
    assert json.dumps(found, indent=0).split("\n")[caught.value.line - 2 :][:2] == ['"groups": [', "{"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"besag": 1,\r\r x}', "a.json:3:2: expected JSON"),
        ('{"besag": 1,\n"a": {"b": "b:{", "c": [{}]},\n"a": 2}', "a.json:3: the key 'a' is given twice"),
        ('{"besag": 1,\n"a": {"b": 1,\n"\\u0062": 2}}', "a.json:3: the key 'b' is given twice"),
        (
            '{"besag": 1, "x": ' + "[{},\n" * (1 << 17),
            "a.json: 262145 lists and objects are too many for a file of .* characters",
        ),
        ("[1, 2]", "expected a model that besag saved"),
        ('{"a": 1}', "expected a model that besag saved"),
        ('{"besag": 1,\n x}', "a.json:2:2: expected JSON"),
        ('{"besag": 1, "besag": 1}', "the key 'besag' is given twice"),
        ('{"besag": ' + "1" * 5000 + "}", "a.json:1: .*digits"),
        ("[" * 200_000, "the brackets are nested too deeply"),
        ('{"besag": 1, "kind": "model", "metadata": {"a": ' + "[" * 700 + "]" * 700 + "}}", "a.json"),
        ('{"besag": 1\0}', "expected text, but there is a zero byte"),
    ],
)
def test_other_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.json", text))


def test_metadata_nested_too_deeply(write: Write) -> None:
    text = json.dumps(document()).replace('"metadata": {}', '\n"metadata": {"a": ' + "[" * 700 + "]" * 700 + "}")
    with pytest.raises(ParseError, match=r"a\.json:2: .*nested (too|so) deeply"):
        load(write("a.json", text))


def test_deep_mutations_are_refused_or_read() -> None:
    data = json.dumps(document()).encode()
    for end in range(len(data)):
        attempt(native.read, data[:end])
    assert native.read(Source(data, "file")).n_factors == 2


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    mutated(json.dumps(document()).encode(), words=(b"[", b"]", b"null", b"true", b'"stored"', b"\\ud800", b"1e999"))
)
def test_mutations(data: bytes) -> None:
    attempt(native.read, data)
