"""DSC: the reader on small files, as Microsoft's tools, bnlearn and GeNIe write them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from besag.errors import ParseError
from besag.io import load
from besag.io.formats import Source
from besag.io.networks import dsc
from besag.model.metadata import Metadata
from besag.model.model import Model
from tests.io.helpers import tables
from tests.io.mutations import attempt, mutated
from tests.routes import Forced

Write = Callable[..., Path]
N = 1 << 17

DSC = b"""diagnostic network "Printer // 1"
version: 1.0;

service
{
\tname: "Support { }";
\tcost: fix = 480.00;
}
node A
{
\tname: "The first";
\ttype: discrete[2] =
\t{
\t\t"no",
\t\t"yes, often"
\t};
\tposition: (13210, -11);
\tcategory: "System";
\tcost: fix = 20.00, observe = 1.00; // function: max;
}
node B { name: "B"; type: discrete[3] = { "<5", "5-10", ">=10" }; }
node C { type : discrete [ 2 ] = { "0", "1" }; label: informational; }

probability(A)
{
\t0.25, 0.75;
}
probability(B | A)
{
\t(1): 1, 0, 0.0e0;
\t(0): 0.2, 0.3, 0.5; /* out of
order */
}
probability(C | A, B) { default: 0.5, 0.5; (1, 2): 1, 0; (0, 1): 0, 1; }
"""
WORDS = (
    b"node X {",
    b"probability(A) {",
    b"type:",
    b"default:",
    b"function: max;",
    b"(0, 1):",
    b"discrete[2] = {",
    b"[",
    b":",
)
A = 'belief network "x"\nnode A { type: discrete[2] = { "no", "yes" }; }\n'
B = 'node B { type: discrete[3] = { "a", "b", "c" }; }\n'
ROOT = "probability(A) { 0.25, 0.75; }\n"
CPT = [[0.2, 0.3, 0.5], [1, 0, 0]]


def read(text: str | bytes, **options: bool) -> Model:
    data = text.encode() if isinstance(text, str) else text
    return dsc.read(Source(data, "a.dsc", **options))


def b_given_a(body: str) -> str:
    return A + B + ROOT + f"probability(B | A) {{\n{body} }}"


# Reading -------------------------------------------------------------------------------------------------------------


def test_a_network(write: Write) -> None:
    model = load(write("a.dsc", DSC))
    assert [v.name for v in model.variables] == ["A", "B", "C"]
    assert [v.states for v in model.variables] == [("no", "yes, often"), ("<5", "5-10", ">=10"), ("0", "1")]
    assert model.parents("C") == ["A", "B"]
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)
    np.testing.assert_allclose(model.cpt("B"), CPT, rtol=1e-15)
    expected = np.full((2, 3, 2), 0.5)
    expected[1, 2], expected[0, 1] = (1, 0), (0, 1)
    np.testing.assert_allclose(model.cpt("C"), expected, rtol=1e-15)
    assert [scope[-1] for scope, _ in tables(model)] == ["A", "B", "C"]


def test_metadata() -> None:
    model = read(DSC)
    assert model.metadata == Metadata({"name": "Printer // 1", "properties": ("network = diagnostic", "version = 1.0")})
    properties = ('category = "System"', "cost = fix = 20.00, observe = 1.00")
    first = {"label": "The first", "position": (13210, -11), "properties": properties}
    assert [v.metadata for v in model.variables] == [
        Metadata(first),
        Metadata(),
        Metadata({"properties": ("label = informational",)}),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "(0): 0.2, 0.3, 0.5; (1): 1, 0, 0;",
        "( 1 ) :1 0 0;\r\n(0):.2 , 3e-1, 5E-01\n;",
        "DEFAULT: 1, 0, 0; (0): 0.2, 0.3, 0.5;",
        "(0, 0) : 0.2, 0.3, 0.5; (0, 0) : 1, 0, 0;",
    ],
)
def test_forms_of_rows(body: str) -> None:
    np.testing.assert_allclose(read(b_given_a(body)).cpt("B"), CPT, rtol=1e-15)


@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
@pytest.mark.parametrize("label", ["({0}): ", "( {0} ) :", "(0, 0): "])
def test_many_nodes(forced: Forced, piece: int, label: str) -> None:
    forced({"io.shared.tokens.PIECE": piece})
    n, k = 30, 4
    cpts = np.random.default_rng(0).dirichlet(np.ones(k), (n, k))
    text = 'belief network "x"\n' + "".join(
        f"node v{i} {{ type: discrete[{k}] = {{ a, b, c, d }}; }}\n" for i in range(n)
    )
    for i, cpt in enumerate(cpts.tolist()):
        rows = [f"{label.format(j)}{', '.join(map(repr, row))};" for j, row in enumerate(cpt)]
        if i == 20 and label != "(0, 0): ":
            rows = rows[::-1]
        body = " ".join(rows) if i else f"{', '.join(map(repr, cpt[0]))};"
        text += f"probability(v{i}{f' | v{i - 1}' if i else ''})\n{{ {body} }}\n"
    model = read(text)
    for i in range(1, n):
        np.testing.assert_allclose(model.cpt(f"v{i}"), cpts[i], rtol=1e-14)
    lines = text.split("\n")
    lines[1 + n + 2 * 25 + 1] = lines[1 + n + 2 * 25 + 1].replace("; (", ", 0.1; (", 1)
    with pytest.raises(ParseError, match=r"a\.dsc:83:.*row of 'v25': expected 4 numbers, got 5"):
        read("\n".join(lines))


@pytest.mark.parametrize("body", ["0.25, 0.75;", "(): 0.25 0.75;", "default: 0.25, 0.75;"])
def test_forms_of_a_root(body: str) -> None:
    np.testing.assert_allclose(read(A + f"probability(A) {{ {body} }}").cpt("A"), [0.25, 0.75], rtol=1e-15)


def test_keywords_in_capitals() -> None:
    text = 'Belief Network "x"\nNODE A { Type: Discrete[2] = { "no", "yes" }; }\nProbability(A) { 0.25, 0.75; }'
    assert read(text).metadata == Metadata({"name": "x"})


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_encodings_and_line_ends(write: Write, encoding: str) -> None:
    text = (A + ROOT).replace("yes", "zurückgewiesen").replace("\n", "\r\n")
    assert load(write("a.dsc", text.encode(encoding))).variables[0].states == ("no", "zurückgewiesen")


def test_by_content(write: Write) -> None:
    assert len(load(write("unknown", DSC)).variables) == 3
    assert dsc.matches(b'// made by hand\nbelief network "x"')
    assert dsc.matches(b'network "x"\nnode A {')
    assert not dsc.matches(b'network "x" {\n}\nvariable A {')


# Decisions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("decision D { }", "decision"),
        ("utility node D { }", "utility"),
        ('node D { type: decision[2] = { "go", "stay" }; }', "decision"),
        ("node D { type: utility; }", "utility"),
    ],
)
def test_decisions_are_an_error_or_left_out(text: str, kind: str) -> None:
    gain = "probability(D | A) { (0): 1; (1): 2; }"
    with pytest.raises(
        ParseError, match=f"a.dsc:4:1: 'D' is a {kind} node: ignore_utilities=True reads the chance nodes"
    ):
        read(A + ROOT + text + gain)
    assert [v.name for v in read(A + ROOT + text + gain, ignore_utilities=True).variables] == ["A"]
    with pytest.raises(ParseError, match=f"a.dsc:5:1: chance node 'B' has the {kind} node 'D' as a parent"):
        read(A + ROOT + text + B + "probability(B | D) { default: 1, 0, 0; }", ignore_utilities=True)


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('belief network "x"', "a.dsc:1:19: expected at least one node, but the file ends"),
        ("hello world", "a.dsc:1:1: expected belief network, got hello"),
        (A + "hello", "a.dsc:3:1: expected node or probability, got hello"),
        (A + "service { ", "a.dsc:3:9: service begins here and has no end: expected '}'"),
        (A + "node {", "a.dsc:3:6: expected the name of a node, got {"),
        (A + "node B ;", "expected '{' after the name of a node, got ;"),
        (A + "node A { }", "a.dsc:3:1: node 'A' is declared twice"),
        (A + "node B { }", r"node 'B' has no states: expected type : discrete\[K\] = { state, ... };"),
        (A + "node B { type: discrete[9999999999]; }", "node 'B' has no states"),
        (A + "node B { type: continuous; }", "'B' has type continuous: only discrete nodes can be read"),
        (A + 'node B { type: discrete[3] = { "a" }; }', "a.dsc:3:24: node 'B' must have 3 states, got 1"),
        (
            A + 'node B { type: discrete[2] = { "", "" }; }',
            "states of 'B' must be one or more distinct names, got '', ''",
        ),
        (A + "node B { type: discrete[2] = { a, b } }", "expected ';' after the type, got }"),
        (A + "node B { type: discrete = {a}; type: discrete = {a}; }", "node 'B' has two types"),
        (A + "node B { position: (1); }", r"a.dsc:3:20: expected a position \(x y\), got \(1\)"),
        (A + "node B { name: ; }", "a.dsc:3:16: expected one text, got nothing"),
        (A + "node B { name }", "expected ':' after name, got }"),
        (A, "a.dsc:2:1: node 'A' has no probability block"),
        (A + ROOT + ROOT, "a.dsc:4:1: 'A' has two probability blocks"),
        (A + ROOT + "probability(Z) { 1; }", "a.dsc:4:1: no node is named 'Z'; 1 are declared"),
        (A + "probability(A | Z) { 1; }", "chance node 'A' has the parent 'Z', but no node has that name"),
        (A + "probability A { 1; }", r"a.dsc:3:13: expected \( child \| parents \), got A"),
        (A + "probability(A, B) { 1; }", r"expected \( child \| parents \), got \(A, B\)"),
        (A + "probability(A | A) { default: 1, 0; }", "names a parent twice|cycle"),
        (A + "probability(A) { 1, 0;", "the probability block of A begins here and has no end"),
        (A + "probability(A) { 1, 0 }", "a.dsc:3:18: expected a row .* or default, got 1, 0"),
        (A + "probability(A) { 1, 0, 0; }", "a.dsc:3:18: row of 'A': expected 2 numbers, got 3"),
        (
            b_given_a("function: max;\n(0): 1, 0, 0;"),
            "a.dsc:6:1: the table of 'B' is a noisy max: only tables of all rows",
        ),
        (b_given_a("0.2, 0.3, 0.5;"), "a.dsc:6:1: expected a row .* or default, got 0.2, 0.3, 0.5"),
        (b_given_a("other: 1;"), "expected a row .* or default, got other"),
        (b_given_a("default: 1 0 0; default: 1 0 0;"), "expected a row .* or default, got default"),
        (b_given_a("default: 1 0;"), "a.dsc:6:9: default of 'B': expected 3 numbers, got 2"),
        (b_given_a("(0): 1, 0, 0;"), r"a.dsc:5:1: row \(1\) of 'B' is missing, and there is no default"),
        (b_given_a(""), r"row \(0\) of 'B' is missing"),
        (b_given_a("(0): 1, 0, 0;\n(0): 1, 0, 0;"), r"a.dsc:7:2: row \(0\) of 'B' is given twice"),
        (
            b_given_a("(0): 1, 0, 0;\n(2): 1, 0, 0;"),
            r"a.dsc:7:2: expected states of the parents, 2, by number .* got \(2\)",
        ),
        (b_given_a("(0.5): 1, 0, 0;"), r"by number from 0, got \(0.5\)"),
        (b_given_a("(-1): 1, 0, 0;"), r"by number from 0, got \(-1\)"),
        (b_given_a("(no): 1, 0, 0;"), "a.dsc:6:2: expected a number, got no"),
        (b_given_a("(0, 1): 1, 0, 0;"), "states of the parents of 'B': expected 1 numbers, got 2"),
        (b_given_a("(0): 1, 0;\n(1): 1, 0, 0, 0;"), "a.dsc:6:5: row of 'B': expected 3 numbers, got 2"),
        (b_given_a("(0): 1, 0, 0;\n(1): 1, 0, zero;"), "a.dsc:7:12: expected a number, got zero"),
        (b_given_a("(0): 1, 0, 0; (1): 1, 0, nan;"), "expected a number, got nan"),
        (b_given_a("(0): 1, 0, 0; (1): 1, 0, 1e999;"), "a.dsc:5: the table of 'B' must hold finite numbers"),
        (b_given_a("(0): 1, 0, 0; (1): 0.2, 0.3, 0.4;"), "a.dsc:5: row A=yes of the CPT of 'B' sums to 0.9, not 1"),
        ('belief network "x', "a.dsc:1:16: the text that begins here has no end"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(text)


def test_absurd_tables_are_refused_before_they_are_made() -> None:
    nodes = "".join(f"node v{i} {{ type: discrete = {{ a, b, c }}; }}\n" for i in range(70))
    roots = "".join(f"probability(v{i}) {{ default: 1, 0, 0; }}\n" for i in range(1, 70))
    for count in (20, 58):
        parents = ", ".join(f"v{i}" for i in range(1, count + 1))
        with pytest.raises(
            ParseError, match=f"the table of 'v0' has {3 ** (count + 1)} entries, too many for so short a file"
        ):
            read('belief network "x"' + nodes + roots + f"probability(v0 | {parents}) {{ default: 1, 0, 0; }}")
    parents = ", ".join(f"v{i}" for i in range(1, 70))
    with pytest.raises(ParseError, match="'v0' may have 59 parents, got 69"):
        read('belief network "x"' + nodes + roots + f"probability(v0 | {parents}) {{ default: 1, 0, 0; }}")


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(DSC, WORDS))
def test_mutations(data: bytes) -> None:
    attempt(dsc.read, data)


def test_every_truncation() -> None:
    for end in range(len(DSC.rstrip())):
        with pytest.raises(ParseError):
            read(DSC[:end])


@pytest.mark.parametrize(
    "text",
    [
        "(" * N,
        "{" * N,
        '"' * (N + 1),
        "/*" * N,
        "//" * N,
        "a:" * N,
        A + "node " * N,
        A + "service " + "{" * N,
        A + "node B {" + "x: 1;" * N,
        A + "node B { type: discrete[2] = {" + "{" * N,
        A + "node B { type: discrete[2] = {" + "a, " * N + "}; }",
        A + "node B { type: discrete[" + "9" * N + "] = { a }; }",
        A + "probability(A" + "|" * N + ") { }",
        A + "probability(A |" + "A, " * N + ") { default: 1, 0; }",
        A + "probability(A) {" + "(" * N + "}",
        A + "probability(A) {" + "():" * N + "}",
        A + "probability(A) {" + "(): 1, 0;" * N + "}",
        A + "probability(A) {" + "1 " * N + ";}",
        A + "probability(A) {" + "1" * N + ";}",
        A + "probability(A) {" + "default" * N + "}",
        A + "probability(A) {" + " " * N + "x}",
        A + "probability(A) { default 1, 0;" + " " * N + "}",
        "".join(f"node n{i} {{ type: discrete = {{ a }}; }}\n" for i in range(N // 16)),
    ],
)
def test_hostile_files(text: str) -> None:
    with pytest.raises(ParseError, match=r"a\.dsc"):
        read(text if text.startswith("belief") else 'belief network "x" ' + text)
