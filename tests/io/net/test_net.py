"""Hugin NET: the reader on small and published files, and what the writer gives back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import besag
from besag.errors import ModelError, ParseError
from besag.io import load
from besag.io.formats import Source
from besag.io.net import read as net
from besag.model.metadata import Metadata
from besag.model.model import Model
from besag.model.variable import NameList, Variables
from tests.io.helpers import tables
from tests.io.mutations import attempt, mutated
from tests.routes import Forced

Write = Callable[..., Path]
N = 1 << 17

NET = b"""net { name = "small \\"one\\""; HR_Desc = "two\\nlines"; node_size = (80 40); }
node A { label = "the first"; position = (1 -2.5); states = ("no" "yes"); HR_Group = "0"; }
discrete node B { states = ("<5" "5 - 10" ">=10"); subtype = interval; HR_Desc = "100 % sure"; }
node C { states = (x y); }
potential (B | A) { data = ((0.2 0.3 0.5) % A=no; { "
  ( 1 0 0.0e0 )); experience = ( 10 % A=no
  20 ); }
potential (A) { data = ( .25 .75 ); }
potential (C | A B) { data = (((1 0) (0 1) (.5 .5)) ((1 0) (0 1) (.5 .5))); }
"""
WORDS = (
    b"node X",
    b"potential (A) {",
    b"states = ",
    b"data = (",
    b"%",
    b"net {",
    b"class K {",
    b"decision ",
    b'"a\\',
    b"=",
)
A, B = 'node A { states = ("no" "yes"); }\n', 'node B { states = ("a" "b" "c"); }\n'
ROOT = "potential (A) { data = (0.25 0.75); }\n"
ROWS = "potential (B | A) { data = ((0.2 0.3 0.5) (1 0 0)); }\n"
CPT = [[0.2, 0.3, 0.5], [1, 0, 0]]


def read(text: str | bytes, **options: bool) -> Model:
    data = text.encode() if isinstance(text, str) else text
    return net.read(Source(data, "a.net", **options))


def same(one: Model, two: Model) -> None:
    """Names, states, scopes, tables and metadata are the same."""
    assert list(one.variables.names) == list(two.variables.names)
    assert [v.states for v in one.variables] == [v.states for v in two.variables]
    assert [v.metadata for v in one.variables] == [v.metadata for v in two.variables]
    assert one.metadata == two.metadata
    for (scope, table), (twin_scope, twin) in zip(tables(one), tables(two), strict=True):
        assert scope == twin_scope
        np.testing.assert_allclose(table, twin, rtol=1e-14)


# Reading -------------------------------------------------------------------------------------------------------------


def test_a_network(write: Write) -> None:
    model = load(write("a.net", NET))
    assert [v.name for v in model.variables] == ["A", "B", "C"]
    assert model.variables[1].states == ("<5", "5 - 10", ">=10")
    assert model.parents("C") == ["A", "B"]
    np.testing.assert_allclose(model.cpt("B"), CPT, rtol=1e-15)
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)
    assert [scope[-1] for scope, _ in tables(model)] == ["A", "B", "C"]


def test_metadata() -> None:
    model = read(NET)
    properties = ("node_size = (80 40)",)
    assert model.metadata == Metadata({"name": 'small "one"', "comment": "two\nlines", "properties": properties})
    first, second, third = (v.metadata for v in model.variables)
    expected = {"label": "the first", "position": (1, -2.5), "properties": ('HR_Group = "0"',)}
    assert first == Metadata(expected)
    assert second == Metadata(
        {
            "comment": "100 % sure",
            "properties": ("subtype = interval",),
            "net": {"potential": ("experience = ( 10 20 )",)},
        }
    )
    assert third == Metadata()


@pytest.mark.parametrize("comment", ["% x; }", "// x; }", "/* x; }\n} */", '// no /* and no "', "/* // */"])
def test_comments(comment: str) -> None:
    text = f"{comment}\nnet {{ url = http://a/b; }} {comment}\n" + A + ROOT.replace(";", f"; {comment}\n")
    model = read(text + comment)
    same(model, read("net { url = http://a/b; }" + A + ROOT))
    assert model.metadata["properties"] == ("url = http://a/b",)
    assert net.matches(text.encode())


def test_a_class() -> None:
    model = read("class Dog % a comment }\n{ inputs = (); node_size = (1 2);\n" + A + ROOT + "}")
    assert model.metadata["name"] == "Dog"
    assert model.metadata["properties"] == ("inputs = ()", "node_size = (1 2)")
    same(read(net.write(model)), model)
    assert net.write(model).startswith(b"class Dog\n{\n    inputs = ();")


@pytest.mark.parametrize(
    "data", ["(0.2 0.3 0.5 1 0 0)", "((0.2 0.3 0.5)(1 0 0))", "((2 3 5)\r\n(4 0 0))", "(((.2 .3 5e-1)) ((1 0 0)))"]
)
def test_forms_of_data(data: str) -> None:
    np.testing.assert_allclose(read(A + B + ROOT + f"potential (B | A) {{ data = {data}; }}").cpt("B"), CPT, rtol=1e-15)


def test_the_last_parent_changes_fastest() -> None:
    cpt = np.random.default_rng(0).dirichlet(np.ones(2), (2, 3))
    numbers = " ".join(map(repr, cpt.reshape(-1).tolist()))
    model = read(f"potential (C | A B) {{ data = ({numbers}); }}" + A + B + "node C { states = (0 1); }" + ROOT + ROWS)
    np.testing.assert_allclose(model.cpt("C"), cpt, rtol=1e-14)


def many(n: int, k: int) -> tuple[str, list[list[list[float]]]]:
    """A chain of n nodes with k states, and its CPTs."""
    cpts = np.random.default_rng(0).integers(1, 9, (n, k, k)).tolist()
    text = "".join(f"node v{i} {{ states = ({' '.join(f's{j}' for j in range(k))}); }}\n" for i in range(n))
    for i, cpt in enumerate(cpts):
        rows = " ".join(f"({' '.join(map(str, row))})" for row in (cpt if i else cpt[:1]))
        text += f"potential (v{i}{f' | v{i - 1}' if i else ''}) {{\n data = ({rows}); }}\n"
    return text, cpts


@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
def test_many_nodes(forced: Forced, piece: int) -> None:
    forced({"io.shared.tokens.PIECE": piece})
    text, cpts = many(40, 3)
    model = read(text)
    for i, cpt in enumerate(cpts[1:], 1):
        np.testing.assert_allclose(model.cpt(f"v{i}"), np.array(cpt) / np.sum(cpt, axis=1, keepdims=True), rtol=1e-15)
    for wrong, message in ((") x", "expected a number, got x"), (") 5", "each row .* 3 .* with 1|must be 9 numbers")):
        lines = text.split("\n")
        lines[40 + 2 * 30 + 1] = lines[40 + 2 * 30 + 1].replace(")", wrong, 1)
        with pytest.raises(ParseError, match=f"a.net:102:.*{message}"):
            read("\n".join(lines))


def test_lists_that_are_empty_do_not_count() -> None:
    text = A + B + ROOT + "potential (B | A) { data = (() ((0.2 0.3 0.5) () (1 0 0)) ()); }"
    np.testing.assert_allclose(read(text).cpt("B"), CPT, rtol=1e-15)


def test_expressions_beside_data_are_kept() -> None:
    model = read(A + "potential (A) { model_nodes = (); model_data = (Distribution (1, 3)); data = (1 3); }")
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)
    same(read(net.write(model)), model)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_encodings_and_line_ends(write: Write, encoding: str) -> None:
    text = (A + ROOT).replace("yes", "zurückgewiesen").replace("\n", "\r\n")
    assert load(write("a.net", text.encode(encoding))).variables[0].states == ("no", "zurückgewiesen")


def test_by_content(write: Write) -> None:
    for head in (b"% made by hand\nnet\n{ }\n", b"// by hand\nnet{}\n", b"class X { ", b""):
        assert net.matches(head + A.encode())
    assert len(load(write("unknown", NET)).variables) == 3
    assert not net.matches(b"net Unnamed {")
    assert not net.matches(b"network x {")


# Decisions -----------------------------------------------------------------------------------------------------------

CHOICE = A + ROOT + 'decision D { states = ("go" "stay"); } utility U { label = "gain"; }\n'
GAIN = "potential (U | A D) { data = (1 2 3 4); } potential (D | A) { }"


def test_decisions_are_an_error_or_left_out() -> None:
    with pytest.raises(
        ParseError, match=r"a.net:3:1: 'D' is a decision node: ignore_utilities=True reads the chance nodes"
    ):
        read(CHOICE + GAIN)
    model = read(CHOICE + GAIN, ignore_utilities=True)
    assert [v.name for v in model.variables] == ["A"]


def test_a_chance_node_below_a_decision_stays_an_error() -> None:
    below = "potential (B | D) { data = (1 0 0 1 0 0); }"
    with pytest.raises(ParseError, match=r"a.net:5:1: chance node 'B' has the decision node 'D' as a parent"):
        read(CHOICE + B + below, ignore_utilities=True)


# Errors --------------------------------------------------------------------------------------------------------------


def b_data(data: str) -> str:
    return A + B + ROOT + f"potential (B | A) {{\n data = {data}; }}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("net { }", "a.net:1:8: expected at least one node, but the file ends"),
        ("hello", "a.net:1:1: expected net, class, node or potential, got hello"),
        (";", "a.net:1:1: expected net, class, node or potential, got ;"),
        ("net { name = x", "a.net:1:15: expected ';' after the value of name, got the end of the file"),
        ('net { name = "x; }', "a.net:1:14: the text that begins here has no end"),
        ("net { name; }", "a.net:1:11: expected '=' after name, got ;"),
        ("net { name = x; name = y; }", "a.net:1:24: name is given twice"),
        ("net { name = x y; }", "a.net:1:14: expected one text, got x y"),
        ('net { "name" = x; }', "expected an attribute or '}' at the end of net"),
        ("class K { " + A, "a.net:2:1: expected '}' at the end of class K, got the end of the file"),
        ("class K { } class L { }", "a.net:1:13: expected one class, got class"),
        ("class 5 { }", "a.net:1:1: expected class NAME {, got class 5"),
        ("node { }", "a.net:1:6: expected the name of a node, got {"),
        ("node A B C { }", "'C' is a node A B: only discrete chance nodes can be read"),
        ("continuous node X { }", "a.net:1:1: 'X' is a continuous node: only discrete chance nodes can be read"),
        ("function F { }", "'F' is a function: only discrete chance nodes can be read"),
        (A + A, "a.net:2:1: node 'A' is declared twice"),
        ("node A { label = x; }", r'node \'A\' has no states: expected states = \("a" "b"\)'),
        (
            'node A { states = ("a" "a"); }',
            "a.net:1:19: states of 'A' must be one or more distinct names, got 'a', 'a'",
        ),
        ("node A { states = (); }", "states of 'A' must be one or more distinct names, got none"),
        ('node A { states = (a ""); }', "states of 'A' must be one or more distinct names"),
        (A + "node X { position = (1 b); states = (a); }", r"a.net:2:21: expected a position \(x y\), got \(1 b\)"),
        (A + "node X { position = (1 nan); states = (a); }", "expected a position"),
        (A, "a.net:1:1: node 'A' has no potential"),
        (A + ROOT + ROOT, "a.net:3:1: 'A' has two potentials"),
        (A + ROOT + "potential (Z) { }", "a.net:3:1: no node is named 'Z'; 1 are declared"),
        (A + "potential (A | Z) { data = (1 0); }", "chance node 'A' has the parent 'Z', but no node has that name"),
        (A + "potential (A | A) { data = (1 0 1 0); }", "the edges have a cycle|names a parent twice"),
        (A + B + ROWS + "potential (A | B) { data = (1 0 1 0 1 0); }", "a.net:3: the edges have a cycle: A -> B -> A"),
        (A + "potential A { }", r"a.net:2:11: expected \( child \| parents \), got A"),
        (A + "potential (A B) { }", r"a.net:2:11: expected \( child \| parents \), got \(A B\)"),
        (A + "potential (A { }", r"expected \( child \| parents \), got \(A {"),
        (A + "potential (A) { }", r"a.net:2:1: the potential of 'A' has no data: expected data = \(...\)"),
        (A + "potential (A) { model_data = (1); }", "is given by a model .* alone: save it with its data"),
        (A + "potential (A) { data = (1 0); data = (1 0); }", "a.net:2:38: data is given twice"),
        (b_data("((1 0 0) (1 0 0)"), r"a.net:5:9: expected data = \( numbers \), each '\(' with its '\)'"),
        (b_data("1"), "expected data = "),
        (b_data("((1 0 0) (1 0))"), "a.net:5:9: data of 'B' must be 6 numbers, 2 x 3, got 5"),
        (b_data("((1 0) (1 0) (1 0))"), "a.net:5:9: each row of 'B' must have 3 numbers, got one with 2"),
        (b_data("((1 0 0)\n (1 0 zero))"), "a.net:6:7: expected a number, got zero"),
        (b_data("((1 0 0) (1 0 0_0))"), "expected a number, got 0_0"),
        (b_data("((1 0 0) (1 0 nan))"), "expected a number, got nan"),
        (b_data("((1 0 0) (1 0\x1c0))"), "expected a number"),
        (b_data("((1 0 0) (1 0 ٣))"), "expected a number"),
        (b_data('((1 0 0) (1 0 "0"))'), 'expected a number, got "0"'),
        (b_data("((1 0 0) (1 0 1e999))"), "a.net:4: the table of 'B' must hold finite numbers"),
        (b_data("((1 0 0) (2 -1 0))"), "a.net:4: the CPT of 'B' must hold probabilities"),
        (b_data("((1 0 0) (0 0 0))"), "a.net:4: row A=yes of the CPT of 'B' sums to 0, not 1"),
        ("node A { \0 }", "a.net:1: expected text, but there is a zero byte"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(text)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(NET, WORDS))
def test_mutations(data: bytes) -> None:
    attempt(net.read, data)


def test_every_truncation() -> None:
    for end in range(len(NET.rstrip())):
        with pytest.raises(ParseError):
            read(NET[:end])


@pytest.mark.parametrize(
    "text",
    [
        "(" * N,
        "{" * N,
        '"' * (N + 1),
        '"' + '\\"' * N,
        "%" * N,
        "//" * N,
        "/*" * N,
        " " * N + "x",
        "node " * N,
        "class K {" * (N // 8),
        "node A {" + "x = 1;" * N,
        "node A { states = (" + "a " * N + "); }",
        "node A { x = " + "(" * N + "; }",
        A + "potential (A" + "|" * N + ") { }",
        A + "potential (A |" + " A" * N + ") { data = (1 0); }",
        A + "potential (A) { data = " + "(" * N + ")" * N + "; }",
        A + "potential (A) { data = (" + "1 " * N + "); }",
        A + "potential (A) { data = (" + "1" * N + "); }",
        "".join(f"node n{i} {{ states = (a b); }}\n" for i in range(N // 16)),
        "".join(f"node n{i} {{ states = (a); }} potential (n{i}) {{ data = (0); }}\n" for i in range(N // 32)),
    ],
)
def test_hostile_files(text: str) -> None:
    with pytest.raises(ParseError, match=r"a\.net"):
        read(text)


def test_large_tables_must_be_in_the_file() -> None:
    nodes = "".join(f"node v{i} {{ states = (a b); }} potential (v{i}) {{ data = (1 0); }}" for i in range(1, 41))
    parents = " ".join(f"v{i}" for i in range(1, 41))
    with pytest.raises(ParseError, match=f"data of 'v0' must be {2**41} numbers"):
        read(nodes + f"node v0 {{ states = (a b); }} potential (v0 | {parents}) {{ data = (1 0); }}")
    many = "".join(f"node v{i} {{ states = (a); }} potential (v{i}) {{ data = (1); }}" for i in range(1, 70))
    parents = " ".join(f"v{i}" for i in range(1, 70))
    with pytest.raises(ParseError, match="'v0' may have 59 parents, got 69"):
        read(many + f"node v0 {{ states = (a); }} potential (v0 | {parents}) {{ data = (1); }}")


# Writing -------------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
VALUES = st.sampled_from(
    ['"a;b"', "(1 2)", "3.5e-1", "word", "a b", '("x" "%")', '"open', "(1 2", "-", "{}", "1;2", " 3", '"\\""']
)
PROPERTIES = st.one_of(
    TEXTS,
    st.builds(
        "{} = {}".format, st.sampled_from(["HR_Group", "label", "x", "besag_name", "besag_property_0", "node"]), VALUES
    ),
)
NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False))


def metadata_of(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    shared = {"label": TEXTS, "comment": TEXTS, "position": st.tuples(NUMBERS, NUMBERS)}
    properties = st.lists(PROPERTIES, min_size=1, max_size=4).map(tuple)
    return st.fixed_dictionaries({}, optional={**shared, "properties": properties, **more})


def drawn_model(draw: st.DrawFn) -> Model:
    """A random Bayesian network with odd names, states and metadata."""
    n = draw(st.integers(1, 6))
    model = besag.data.random_model("bayesian_network", n, draw(st.integers(0, 99)), n_states=(1, 4), zeros=0.2)
    some = TEXTS.filter(bool) | st.sampled_from(["node", "a b", "a_b", "5", "_5", "<5", "states", "ä"])
    names = draw(st.lists(some, min_size=n, max_size=n, unique=True))
    states = [
        tuple(draw(st.lists(TEXTS.filter(bool), min_size=k, max_size=k, unique=True)))
        for k in model.variables.cardinalities.tolist()
    ]
    of_variables = {v: draw(metadata_of()) for v in range(n)}
    variables = Variables.from_spaces(NameList(names), states).with_metadata(of_variables)
    return model.with_parts(variables=variables, metadata=draw(metadata_of(name=TEXTS)))


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.composite(drawn_model)())
def test_round_trips(model: Model) -> None:
    same(read(net.write(model)), model)


def test_the_file() -> None:
    model = read(NET)
    text = net.write(model).decode()
    assert text.startswith(
        'net\n{\n    name = "small \\"one\\"";\n    HR_Desc = "two\\nlines";\n    node_size = (80 40);\n}\n'
    )
    assert 'node A\n{\n    states = ("no" "yes");\n    label = "the first";\n    position = (1 -2.5);\n' in text
    rows = ["((( 1 0 )", "  ( 0 1 )", "  ( 0.5 0.5 ))", " (( 1 0 )", "  ( 0 1 )", "  ( 0.5 0.5 )));"]
    data = "".join(f"\n        {row}" for row in rows)
    assert f"potential (C | A B)\n{{\n    data ={data}\n}}" in text
    same(read(text), model)


def test_odd_names_become_identifiers() -> None:
    names = ["a b", "a_b", "<5", "node"]
    model = besag.bayesian_network([], {name: ["x", '"'] for name in names}, {name: [0.5, 0.5] for name in names})
    text = net.write(model).decode()
    for identifier, name in (("a_b_2", "a b"), ("_5", "<5"), ("node_", "node")):
        assert f'node {identifier}\n{{\n    besag_name = "{name}";\n    states = ("x" "\\"");' in text
    same(read(text), model)


def test_odd_properties_keep_their_place() -> None:
    properties = ("free text", "x = 1", "x = 2", "y = (1 2)", "position = (1, 2)")
    model = read(A + ROOT).with_metadata({}, {"A": {"properties": properties}})
    text = net.write(model).decode()
    assert '    besag_property_0 = "free text";\n    x = 1;\n    besag_property_2 = "x = 2";\n    y = (1 2);' in text
    same(read(text), model)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"label": "\0"}, "no file of text can hold the zero character"),
        ({"label": "\ud800"}, r"no file of text can hold the character '\\ud800'"),
        ({"net": {"potential": ("a = b // c",)}}, "'net/potential/0' of 'A': expected a text 'key = value'"),
        ({"net": {"potential": ("a } b",)}}, "'net/potential/0' of 'A': expected a text 'key = value', got 'a } b'"),
    ],
)
def test_what_cannot_be_written(metadata: dict[str, Any], message: str) -> None:
    model = read(A + ROOT).with_metadata({}, {"A": metadata})
    with pytest.raises(ModelError, match=message):
        net.write(model)


def test_only_bayesian_networks() -> None:
    with pytest.raises(ModelError, match="Hugin NET holds Bayesian networks, and this model is none"):
        net.write(besag.data.bundled("chain_001"))


# Published files -----------------------------------------------------------------------------------------------------


@pytest.fixture
def agrum(data_dir: Path) -> Path:
    folder = data_dir / "peer_test_files" / "agrum"
    return folder if folder.is_dir() else pytest.skip(f"{folder} is absent")


def test_alarm_and_its_twin(agrum: Path) -> None:
    one, two = load(agrum / "net" / "alarm.net"), load(agrum / "bif" / "alarm.bif")
    twins = {scope[-1]: (scope, table) for scope, table in tables(two)}
    assert {v.name: v.states for v in one.variables} == {v.name: v.states for v in two.variables}
    for scope, table in tables(one):
        assert twins[scope[-1]][0] == scope
        np.testing.assert_allclose(table, twins[scope[-1]][1], rtol=1e-6)  # the twin's digits are fewer


def test_files_of_hugin(agrum: Path) -> None:
    one = load(agrum / "net" / "test1.net")  # rows that do not sum to one
    np.testing.assert_allclose(one.cpt("C4"), [0.1, 0.9], rtol=1e-15)
    np.testing.assert_allclose(one.cpt("C2")[1, 1], [29 / 36, 7 / 36], rtol=1e-15)
    assert one.variable("C4").metadata["position"] == (457, 413)
    two = load(agrum / "net" / "test2.net")
    assert len(two.variables) == 19
    assert two.variable("Date_2").metadata["net"]["potential"] == ("experience = ( 11459 1210 )",)


@pytest.mark.parametrize("name", ["alarm", "test1", "test2", "NetWriter_RO_TestFile"])
def test_published_files_come_back(agrum: Path, name: str) -> None:
    model = load(agrum / "net" / f"{name}.net")
    same(read(net.write(model)), model)


@pytest.mark.parametrize("name", ["insurance", "hailfinder", "munin1"])
def test_bnlearn_through_net(data_dir: Path, name: str) -> None:
    path = data_dir / "bnlearn_networks" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    model = load(path)
    same(read(net.write(model)), model)
