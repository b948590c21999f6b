"""What a format is given to carry comes back, or is reported, or is refused and nothing is written."""

import re
import warnings
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import besag
from besag.errors import LossWarning, ModelError
from besag.io.bif import read as bif
from besag.io.formats import Source
from besag.model.metadata import NONE, is_nothing
from besag.model.model import Model
from besag.model.variable import NameList, Variables

SUFFIXES = (".bif", ".xml", ".net", ".xdsl", ".json")
TWO = besag.bayesian_network([("A", "B")])


def saved(model: Model, path: Path) -> str:
    """Saves, and gives what is reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        besag.save(model, path)
    assert [w.category for w in caught] in ([], [LossWarning])
    return str(caught[0].message) if caught else ""


# Carried -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("of_model", "of_variable"),
    [
        ({"name": "Unnamed"}, {}),
        ({"name": "unknown"}, {}),
        ({"comment": "  a comment \n\n  of lines\t"}, {"comment": " "}),
        ({}, {"comment": "\n"}),
        ({"comment": "x -- y -"}, {"comment": "// /* */ # %"}),
        ({"properties": [" a = b ", "", "x"]}, {"properties": ["\n", "", " = ", "besag_name = x"]}),
        ({"properties": ["position = (1, 2)"]}, {"position": (3, 4), "properties": ["position = (1, 2)", "x"]}),
        ({"properties": ["besag_property = 'x'", "besag_comment = x"]}, {"properties": ["besag_property_0 = 1"]}),
        ({}, {"position": (1e17, -(2**60) - 1)}),
        ({}, {"position": (1e300, 1e-300)}),
        ({}, {"position": (10**299, 0.1)}),
    ],
)
def test_what_every_network_format_carries(
    tmp_path: Path, suffix: str, of_model: dict[str, Any], of_variable: dict[str, Any]
) -> None:
    model = TWO.with_metadata(of_model, {"B": of_variable})
    assert saved(model, tmp_path / f"a{suffix}") == ""
    again = besag.load(tmp_path / f"a{suffix}")
    assert again.metadata == model.metadata
    assert again.variable("B").metadata == model.variable("B").metadata


@pytest.mark.parametrize("suffix", [".net", ".xdsl", ".json"])
@pytest.mark.parametrize("name", ["B", "b b"])
@pytest.mark.parametrize("label", ["B", "b b", "b_b", " B "])
def test_labels_that_are_names(tmp_path: Path, suffix: str, name: str, label: str) -> None:
    model = besag.bayesian_network([("A", name)]).with_metadata({}, {name: {"label": label}})
    assert saved(model, tmp_path / f"a{suffix}") == ""
    assert besag.load(tmp_path / f"a{suffix}").variable(name).metadata == {"label": label}


def test_a_position_of_the_model(tmp_path: Path) -> None:
    for suffix in (".xml", ".net"):
        assert saved(TWO.with_metadata({"position": (1, 2)}), tmp_path / f"a{suffix}") == ""
        assert besag.load(tmp_path / f"a{suffix}").metadata == {"position": (1, 2)}


# Reported ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "of_model", "of_variables", "message"),
    [
        (".bif", {"comment": "a\rb"}, {}, "BIF cannot carry the model's comment as it is"),
        (
            ".bif",
            {},
            {"properties": ["position = (1, 2)"]},
            "BIF cannot carry the variables' properties as it is (of 'v0', 'v1', 'v2' and 2 more)",
        ),
        (
            ".bif",
            {"label": "x", "xdsl": {"genie": 1}},
            {"label": "y"},
            "BIF cannot carry the model's label, the model's xdsl, the variables' label",
        ),
        (".xdsl", {"xdsl": {"new": 1}}, {}, "GeNIe XDSL cannot carry the model's xdsl as it is"),
        (".xdsl", {}, {"xdsl": {"attributes": {"id": "x"}}}, "the variables' xdsl as it is (of 'v0', "),
        (".xml", {"xmlbif": {"definition": ["x"]}}, {}, "XMLBIF cannot carry the model's xmlbif as it is"),
        (".net", {"net": {"potential": ["x = 1"]}}, {}, "Hugin NET cannot carry the model's net as it is"),
    ],
)
def test_what_is_reported(
    tmp_path: Path, suffix: str, of_model: dict[str, Any], of_variables: dict[str, Any], message: str
) -> None:
    names = [f"v{i}" for i in range(5)]
    network = besag.bayesian_network([], dict.fromkeys(names, 2))
    model = network.with_metadata(of_model, dict.fromkeys(names, of_variables))
    assert message in saved(model, tmp_path / f"a{suffix}")
    assert len(besag.load(tmp_path / f"a{suffix}").variables) == 5


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_is_no_loss(tmp_path: Path, suffix: str) -> None:
    nothing: dict[str, Any] = {"comment": "", "properties": [], "label": "", "xdsl": {}, "net": None}
    assert saved(TWO.with_metadata(nothing, {"A": nothing}), tmp_path / f"a{suffix}") == ""


def test_a_loss_that_nobody_thought_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = bif.read

    def forgetful(source: Source) -> Model:
        model = read(source)
        names = NameList(["A", "C"])
        return model.with_parts(
            metadata={}, variables=Variables(names, model.variables.spaces, model.variables.space_of)
        )

    monkeypatch.setattr(bif, "read", forgetful)
    model = TWO.with_metadata({"name": "net"}, {"A": {"position": (1, 2)}})
    assert saved(model, tmp_path / "a.bif") == (
        "BIF cannot carry the names of variables (of 'B'), the model's name as it is, "
        "the variables' position as it is (of 'A')"
    )


PLAIN = [
    "node",
    "net",
    "class",
    "variable",
    "network",
    "property",
    "table",
    "default",
    "unknown",
    "1e5",
    "nan",
    "-",
    "+",
]
PLAIN += [".", "<", "<=", ">", "=", "a=b", "--", "-->", "...", "potential", "probability", "states", "data", "0", "x0"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_plain_names_are_not_looked_at_twice(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor need they be: each comes back as a variable, a parent and a state."""
    edges = list(pairwise(PLAIN))
    model = besag.bayesian_network(edges, dict.fromkeys(PLAIN, PLAIN))
    with monkeypatch.context() as patch:
        patch.setattr("besag.io.readback._read", lambda *_: pytest.fail("it was read"))
        assert saved(model, tmp_path / f"a{suffix}") == ""
    again = besag.load(tmp_path / f"a{suffix}")
    assert list(again.variables) == list(model.variables)
    assert [again.parents(name) for name in PLAIN] == [model.parents(name) for name in PLAIN]


# Refused -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "of_model", "of_variable", "message"),
    [
        (".bif", {}, {"bif": 3}, "metadata 'bif' of 'B': expected a dict, got 3; change it with model.with_metadata"),
        (".bif", {}, {"bif": {"comment": ["x"]}}, r"'bif/comment' of 'B': expected a text, got \('x',\)"),
        (".bif", {}, {"bif": {"properties": [1]}}, "'bif/properties/0' of 'B': expected a text, got 1"),
        (".xml", {"xmlbif": "x"}, {}, "'xmlbif' of the model: expected a dict, got 'x'"),
        (".xml", {"xmlbif": {"elements": [1]}}, {}, "'xmlbif/elements/0' of the model: expected a dict, got 1"),
        (".xml", {}, {"xmlbif": {"definition": "p"}}, "'xmlbif/definition' of 'B': expected a list, got 'p'"),
        (".xml", {}, {"xmlbif": {"elements": [{"tag": "<x>"}]}}, "'xmlbif/elements/0/tag' of 'B': expected the tag of"),
        (".xml", {"xmlbif": {"elements": [{"tag": "NAME", "text": "x"}] * 2}}, {}, "cannot hold the model's xmlbif: "),
        (".xml", {}, {"xmlbif": {"elements": [{"tag": "OUTCOME", "text": "x"}]}}, "cannot hold the xmlbif of 'B': "),
        (
            ".xml",
            {},
            {"xmlbif": {"definition_elements": [{"tag": "TABLE", "text": "x"}]}},
            "XMLBIF cannot hold the xmlbif of 'B': the file could not be read back unchanged .*nothing was written",
        ),
        (".net", {"net": {"class": "a b"}}, {}, "'net/class' of the model: expected an identifier that is no keyword"),
        (".net", {"net": 5}, {}, "'net' of the model: expected a dict, got 5"),
        (".net", {}, {"net": {"potential": "x = 1"}}, "'net/potential' of 'B': expected a list, got 'x = 1'"),
        (".net", {}, {"net": {"potential": ["x"]}}, "'net/potential/0' of 'B': expected a text 'key = value', got 'x'"),
        (".xdsl", {"xdsl": 3}, {}, "'xdsl' of the model: expected a dict, got 3"),
        (".xdsl", {"xdsl": {"attributes": [1]}}, {}, r"'xdsl/attributes' of the model: expected a dict, got \(1,\)"),
        (
            ".xdsl",
            {"xdsl": {"comments": ["a--b"]}},
            {},
            "'xdsl/comments/0' of the model: expected the text of an XML c",
        ),
        (".xdsl", {"xdsl": {"extras": [3]}}, {}, "'xdsl/extras/0' of the model: expected a dict, got 3"),
        (".xdsl", {"xdsl": {"genie": {"tag": "x"}}}, {}, "'xdsl/genie' of the model: expected a <genie>, got"),
        (".xdsl", {}, {"xdsl": {"drawing": {"tag": "x"}}}, "'xdsl/drawing' of 'B': expected a <node>, got"),
        (".xdsl", {}, {"xdsl": {"states": {"0": {"tag": "x"}}}}, "'xdsl/states/0' of 'B': expected a <state>, got"),
        (".xdsl", {}, {"xdsl": {"noisymax": [1]}}, "'xdsl/noisymax' of 'B': expected a dict, got"),
        (".xdsl", {}, {"xdsl": {"noisymax": {"parameters": ["1"]}}}, "'xdsl/noisymax/parameters' of 'B': expected a l"),
        (
            ".xdsl",
            {},
            {"xdsl": {"noisymax": {"strengths": [0.5]}}},
            "'xdsl/noisymax/strengths' of 'B': expected a list",
        ),
        (
            ".xdsl",
            {},
            {"xdsl": {"extras": [{"element": {"tag": "probabilities", "text": "1 0"}}]}},
            "GeNIe XDSL cannot hold the xdsl of 'B': the file could not be read back .*got 2.*nothing was written",
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, suffix: str, of_model: dict[str, Any], of_variable: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        besag.save(TWO.with_metadata(of_model, {"B": of_variable}), tmp_path / f"a{suffix}")
    assert not list(tmp_path.iterdir())


def test_metadata_that_no_format_could_hold() -> None:
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"x": deep}
    with pytest.raises(ModelError, match="the metadata of 'A' must not be nested so deeply"):
        TWO.with_metadata({}, {"A": deep})
    with pytest.raises(ModelError, match=r"'position' of the model must be two numbers \(x, y\), got \(1000"):
        TWO.with_metadata({"position": (10**400, 0)})
    with pytest.raises(ModelError, match=r"must be two numbers .* got tuple"):
        TWO.with_metadata({"position": (10**5000, 0)})


# Anything ------------------------------------------------------------------------------------------------------------

ODD = (
    "",
    " ",
    " x ",
    "\n",
    "\r",
    "a\r\nb",
    "\0",
    "\x0b",
    "\x85",
    "\ud800",
    "--",
    "-",
    '"',
    "\\",
    "<&>",
    "]]>",
    "//",
    "%",
)
LIKE = (
    "Unnamed",
    "unknown",
    "A",
    "Variables",
    "position = (1, 2)",
    "besag_name = x",
    'besag_property = "',
    "k = v",
    "1",
)
TEXTS = st.sampled_from([*ODD, *LIKE]) | st.text(max_size=8) | st.builds("{}{}".format, *[st.sampled_from(ODD)] * 2)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([10**30, 2**53 + 1])
ATOMS = st.none() | st.booleans() | NUMBERS | TEXTS
THINGS = st.recursive(ATOMS, lambda x: st.lists(x, max_size=3) | st.dictionaries(TEXTS, x, max_size=2), max_leaves=5)
TAGS = st.sampled_from(["a", "!--", "NAME", "PROPERTY", "state", "property", "parents", "genie", "node", "submodel"])
ELEMENTS = st.recursive(
    st.fixed_dictionaries(
        {"tag": TAGS | TEXTS},
        optional={
            "text": TEXTS,
            "attributes": st.dictionaries(st.sampled_from(["id", "x"]) | TEXTS, TEXTS, max_size=2),
        },
    ),
    lambda inner: st.fixed_dictionaries({"tag": TAGS}, optional={"children": st.lists(inner, max_size=2)}),
    max_leaves=3,
)
EXTRAS = st.fixed_dictionaries({"element": ELEMENTS}, optional={"after": st.sampled_from(["", "state", "nodes"])})
FIELDS = {
    "comment": TEXTS,
    "comments": st.lists(TEXTS, max_size=2),
    "properties": st.lists(TEXTS, max_size=2),
    "definition": st.lists(TEXTS, max_size=2),
    "definition_elements": st.lists(ELEMENTS, max_size=2),
    "elements": st.lists(ELEMENTS, max_size=2),
    "class": TEXTS,
    "potential": st.lists(TEXTS | st.builds("{} = {}".format, TEXTS, TEXTS), max_size=2),
    "attributes": st.dictionaries(st.sampled_from(["id", "version", "x"]), TEXTS, max_size=2),
    "extras": st.lists(EXTRAS, max_size=2),
    "extensions": st.lists(ELEMENTS, max_size=2),
    "genie": ELEMENTS.map(lambda element: {**element, "tag": "genie"}),
    "drawing": ELEMENTS.map(lambda element: {**element, "tag": "node"}),
    "states": st.dictionaries(st.sampled_from(["0", "1"]), ELEMENTS.map(lambda e: {**e, "tag": "state"}), max_size=2),
    "noisymax": st.fixed_dictionaries(
        {"parameters": st.sampled_from([[0.5, 0.5], [0.5, 0.5, 0, 1, 0.5, 0.5]]) | st.lists(NUMBERS, max_size=3)},
        optional={"strengths": st.lists(st.integers(0, 1) | NUMBERS, max_size=3)},
    ),
    "deterministic": st.booleans(),
}
PRIVATE = st.dictionaries(st.sampled_from(sorted(FIELDS)), THINGS, max_size=2) | THINGS
PRIVATE |= st.sampled_from(sorted(FIELDS)).flatmap(lambda key: st.fixed_dictionaries({key: FIELDS[key]}))
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "label": TEXTS,
        "comment": TEXTS,
        "position": st.tuples(NUMBERS, NUMBERS),
        "properties": st.lists(TEXTS | st.builds("{} = {}".format, TEXTS, TEXTS), max_size=3),
        "name": TEXTS,
        **dict.fromkeys(("bif", "xmlbif", "net", "xdsl"), PRIVATE),
        "other": THINGS,
    },
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Two variables, the second with metadata, and at times with odd names and states."""
    odd = draw(st.booleans())
    first, second = draw(st.lists(TEXTS.filter(bool), min_size=2, max_size=2, unique=True)) if odd else ("A", "B")
    states = draw(st.lists(TEXTS.filter(bool), min_size=1, max_size=3, unique=True)) if odd else ["0", "1"]
    return besag.bayesian_network([(first, second)], {second: states}).with_metadata(
        draw(METADATA), {second: draw(METADATA)}
    )


def unreported(before: Mapping[str, Any], after: Mapping[str, Any], whose: str, report: str) -> list[str]:
    """The keys that came back otherwise and of which the report says nothing."""
    changed = [key for key, value in before.items() if not is_nothing(value) and after.get(key) != value]
    return [key for key in changed if re.search(rf"the {whose} {key}\b", report) is None]


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(model=models())
def test_any_metadata(tmp_path_factory: pytest.TempPathFactory, suffix: str, model: Model) -> None:
    path = tmp_path_factory.mktemp("any") / f"a{suffix}"
    try:
        report = saved(model, path)
    except ModelError:
        assert not list(path.parent.iterdir())
        return
    again = besag.load(path)
    assert list(again.variables) == list(model.variables) or "the names of" in report
    assert again.parents(again.variables.names[1]) == [again.variables.names[0]]
    assert unreported(model.metadata, again.metadata, "model's", report) == []
    before, after = (m.variables.metadata.get(1, NONE) for m in (model, again))
    assert unreported(before, after, "variables'", report) == []
