"""GeNIe DSL: the reader on small and published files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from besag.errors import ParseError
from besag.io import load
from besag.io.formats import Source
from besag.io.networks import dsl
from besag.model.metadata import Metadata
from besag.model.model import Model
from tests.io.helpers import tables
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]
N = 1 << 17

DSL = rb"""net Tank
{
 HEADER = { ID = Tank; NAME = "Tank problem"; COMMENT = "A simple network for a \
   tank."; };
 NUMSAMPLES = 1000;
 SCREENCOMMENT = { (99, 228, 174, 122),"a } b"};
 USER_PROPERTIES = { author = "me; too"; };
 node A
  {
   TYPE = CPT;
   HEADER = { ID = A; NAME = "The first"; COMMENT = "say \"yes\""; };
   SCREEN = { POSITION = { CENTER_X = 168; CENTER_Y = -2; WIDTH = 72; }; COLOR = 16250597; };
   USER_PROPERTIES = { size = 3; };
   DOCUMENTATION = { };
   PARENTS = ();
   DEFINITION = { NAMESTATES = (no, yes); PROBABILITIES = (0.25000000, 0.75); };
   EXTRA_DEFINITION = { DOCUMENTATION = { }; DOCUMENTATION = { }; QUESTION = ""; };
  };
 node C
  {
   TYPE = CPT;
   HEADER = { ID = C; NAME = "C"; };
   PARENTS = (A, B);
   DEFINITION = { NAMESTATES = (x, y); PROBABILITIES = (1, 0, 0, 1, .5,
     .5, 0.1, 0.9, 0.2, 0.8, 0.3, 0.7); };
  };
 submodel S { node B { TYPE = CPT; PARENTS = (A);
   DEFINITION = { NAMESTATES = (a, b, c); PROBABILITIES = (0.2, 0.3, 0.5, 1, 0, 0); }; }; };
 OBSERVATION_COST = { node A { PARENTS = (); COSTS = (0.0); }; };
};
"""
WORDS = (b"node X", b"TYPE = LIST;", b"HEADER = {", b"PARENTS = (", b"};", b"=", b"submodel S {", b"SCREEN = {", b'"\\')


def node(name: str, parents: str, states: str, numbers: str, kind: str = "CPT") -> str:
    definition = f"NAMESTATES = ({states}); PROBABILITIES = ({numbers});"
    return f"node {name} {{ TYPE = {kind}; PARENTS = ({parents}); DEFINITION = {{ {definition} }}; }};\n"


def network(*nodes: str) -> str:
    return "net x {\n" + "".join(nodes) + "};"


A = node("A", "", "no, yes", "0.25, 0.75")
B = node("B", "A", "a, b, c", "0.2, 0.3, 0.5, 1, 0, 0")


def read(text: str | bytes, **options: bool) -> Model:
    data = text.encode() if isinstance(text, str) else text
    return dsl.read(Source(data, "a.dsl", **options))


# Reading -------------------------------------------------------------------------------------------------------------


def test_a_network(write: Write) -> None:
    model = load(write("a.dsl", DSL))
    assert [v.name for v in model.variables] == ["A", "C", "B"]
    assert model.variable("B").states == ("a", "b", "c")
    assert model.parents("C") == ["A", "B"]
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)
    np.testing.assert_allclose(model.cpt("B"), [[0.2, 0.3, 0.5], [1, 0, 0]], rtol=1e-15)
    rows = [[[1, 0], [0, 1], [0.5, 0.5]], [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]]]
    np.testing.assert_allclose(model.cpt("C"), rows, rtol=1e-15)


def test_metadata() -> None:
    model = read(DSL)
    of_model = {"name": "Tank", "label": "Tank problem", "comment": "A simple network for a tank."}
    assert model.metadata == Metadata(of_model | {"properties": ("author = me; too",)})
    first = {"label": "The first", "comment": 'say "yes"', "position": (168, -2), "properties": ("size = 3",)}
    assert [v.metadata for v in model.variables] == [Metadata(first), Metadata(), Metadata()]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_encodings_and_line_ends(write: Write, encoding: str) -> None:
    text = network(A).replace("yes", '"zurückgewiesen"').replace("\n", "\r\n")
    assert load(write("a.dsl", text.encode(encoding))).variables[0].states == ("no", "zurückgewiesen")


def test_by_content(write: Write) -> None:
    assert len(load(write("unknown", DSL)).variables) == 3
    assert not dsl.matches(b"net {")


@pytest.mark.parametrize(("kind", "what"), [("LIST", "decision"), ("TABLE", "utility"), ("MAU", "utility")])
def test_decisions_are_an_error_or_left_out(kind: str, what: str) -> None:
    text = network(A, node("D", "A", "go, stay", "1, 2", kind))
    with pytest.raises(
        ParseError, match=f"a.dsl:3:1: 'D' is a {what} node: ignore_utilities=True reads the chance nodes"
    ):
        read(text)
    assert [v.name for v in read(text, ignore_utilities=True).variables] == ["A"]
    below = network(A, node("D", "A", "go, stay", "1, 2", kind), node("C", "D", "a", "1, 1"))
    with pytest.raises(ParseError, match=f"a.dsl:4:.*: chance node 'C' has the {what} node 'D' as a parent"):
        read(below, ignore_utilities=True)


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("net x { };", "a.dsl: expected at least one variable, got none"),
        ("hello", "a.dsl:1:1: expected net NAME { ... }"),
        ("net { };", "a.dsl:1:5: expected the name of the net, got {"),
        ("net x ;", "expected '{' after the name of the net, got ;"),
        ("net x { a };", "a.dsl:1:11: expected '=' after a, got };"),
        ("net x { a = 1 };", "a.dsl:1:15: expected ';' after the value of a, got };"),
        ("net x { a = { };", "expected ';' after the block of a|expected node, a key"),
        ("net x { a = { b = 1;", "a.dsl:1:13: a begins here and has no end: expected '}'"),
        ("net x { " + A, "a.dsl:2:1: expected node, a key or '}' at the end of the net, got the end of the file"),
        (network(A) + "node", "a.dsl:3:3: expected the end of the file after the net, got node"),
        (network(A, A), "a.dsl:3:1: node 'A' is declared twice"),
        ("net x { node A { }; };", "a.dsl:1:9: node 'A' has no TYPE"),
        ("net x { node A { TYPE = CPT; }; };", "node 'A' has no NAMESTATES"),
        (network(A).replace("PARENTS = ();", ""), "a.dsl:2:1: node 'A' has no PARENTS"),
        (network(A).replace("PROBABILITIES", "OTHERS"), "node 'A' has no PROBABILITIES"),
        (network(A).replace("PARENTS", "TYPE"), "a.dsl:2:29: TYPE is given twice"),
        (network(A).replace("CPT", "NOISY_MAX"), "a.dsl:2:17: 'A' is of type NOISY_MAX: only CPT can be read"),
        (network(A).replace("no, yes", "no, no"), "states of 'A' must be one or more distinct names, got 'no', 'no'"),
        (network(B), "a.dsl:2:32: chance node 'B' has the parent 'A', but no node has that name"),
        (network(A, B.replace("1, 0, 0", "1, 0")), "a.dsl:3: the table of 'B' must have 6 entries, 2 x 3, got 5"),
        (network(A, B.replace("1, 0, 0", "1, 0, x")), "a.dsl:3:.*: expected a number, got x"),
        (network(A, B.replace("1, 0, 0", "1, 1, 0")), "a.dsl:3: row A=yes of the CPT of 'B' sums to 2, not 1"),
        ('net x { a = "b; };', "a.dsl:1:13: the text that begins here has no end"),
        (network(A).replace("};\n", "}\n"), "expected ';' after node A, got };"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(text)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(DSL, WORDS))
def test_mutations(data: bytes) -> None:
    attempt(dsl.read, data)


def test_every_truncation() -> None:
    for end in range(len(DSL.rstrip()) - 1):  # the last ";" may be missing
        with pytest.raises(ParseError):
            read(DSL[:end])


@pytest.mark.parametrize(
    "text",
    [
        "{" * N,
        '"' * (N + 1),
        "a = {" * N,
        "submodel S {" * N,
        "a = 1;" * N,
        "node A {" * N,
        "node A { HEADER = {" * N,
        "node A { DEFINITION = { NAMESTATES = (" + "a, " * N + "); }; };",
        "node A { USER_PROPERTIES = {" + "a = 1;" * N,
        "/*" * N,
        network(A.replace("()", "(" + "A, " * N + ")"))[8:],
        network(A.replace("0.75", "0 " * N))[8:],
        network(A.replace("0.75", "1" * N))[8:],
        "}" * N,
    ],
)
def test_hostile_files(text: str) -> None:
    with pytest.raises(ParseError, match=r"a\.dsl"):
        read("net x { " + text)


# Published files -----------------------------------------------------------------------------------------------------


@pytest.fixture
def agrum(data_dir: Path) -> Path:
    folder = data_dir / "peer_test_files" / "agrum"
    return folder if folder.is_dir() else pytest.skip(f"{folder} is absent")


def test_a_file_of_genie(agrum: Path) -> None:
    model = load(agrum / "DSL" / "Ling.dsl")
    assert len(model.variables) == 13
    assert model.variable("Leucocytes").metadata == Metadata({"position": (168, 229)})
    np.testing.assert_allclose(model.cpt("TG")[0, 0], 0.63902439, rtol=1e-7)


@pytest.mark.parametrize("name", ["alarm", "insurance"])
def test_files_and_their_twins(agrum: Path, name: str) -> None:
    """The tool that wrote these put parents in an order of its own, and the numbers in that of the twin."""
    one, two = load(agrum / "DSL" / f"{name}.dsl"), load(agrum / "bif" / f"{name}.bif")
    twins = {scope[-1]: (scope, table) for scope, table in tables(two)}
    assert {v.name: v.states for v in one.variables} == {v.name: v.states for v in two.variables}
    for scope, table in tables(one):
        twin_scope, twin = twins[scope[-1]]
        assert sorted(scope) == sorted(twin_scope)
        np.testing.assert_allclose(table.reshape(-1), twin.reshape(-1), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DSLReader_file1.txt", "expected at least one variable, got none"),
        ("DSLReader_file3.txt", ":96: row n5=space, n1=0 of the CPT of 'n6' sums to 0.8, not 1"),
        ("carpo.dsl", ":223: the CPT of 'N117' sums to 0, not 1"),
    ],
)
def test_broken_files(agrum: Path, name: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(agrum / "DSL" / name, format="dsl")


@pytest.mark.parametrize("name", ["hailfinder.dsl", "Water.dsl", "DSLReader_file2.txt", "DSLWriter_TestFile.txt"])
def test_sound_files(agrum: Path, name: str) -> None:
    assert load(agrum / "DSL" / name, format="dsl").is_bayesian_network
