"""BIF: every branch of the reader on small files."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from besag.errors import ParseError
from besag.io import load
from tests.io.helpers import tables

Write = Callable[..., Path]

TWO = """network test {
}
variable A {
  type discrete [ 2 ] { no, yes };
}
variable B {
  type discrete [ 3 ] { <5, 5-10, >=10 };
}
"""
ROOT = "probability ( A ) {\n  table 0.25, 0.75;\n}\n"
ROWS = "probability ( B | A ) {\n  (no) 0.2, 0.3, 0.5;\n  (yes) 1, 0, 0.0e0;\n}\n"
CPT = [[0.2, 0.3, 0.5], [1, 0, 0]]


def network(*blocks: str) -> str:
    return TWO + "".join(blocks)


def b_given_a(body: str) -> str:
    return network(ROOT, f"probability ( B | A ) {{ {body} }}")


# Models --------------------------------------------------------------------------------------------------------------


def test_a_network(write: Write) -> None:
    model = load(write("a.bif", network(ROWS, ROOT)))
    assert [v.name for v in model.variables] == ["A", "B"]
    assert model.variables[1].states == ("<5", "5-10", ">=10")
    assert model.is_bayesian_network
    assert model.parents("B") == ["A"]
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)
    np.testing.assert_allclose(model.cpt("B"), CPT, rtol=1e-15)
    assert [scope[-1] for scope, _ in tables(model)] == ["A", "B"]  # factor i is the CPT of variable i


@pytest.mark.parametrize(
    "body",
    [
        "(yes) 1 0 0; (no) 0.2 0.3 0.5;",
        "( yes )1 0,0;\r\n\t(no\n) .2, 3e-1 , 5E-01;",
        '("yes") 1 0 0; ("no") 0.2 0.3 0.5;',
        "table 0.2 1 0.3 0 0.5 0;",
        "default 1 0 0; (no) 0.2 0.3 0.5;",
        "(no) 0.2 0.3 0.5; default 1 0 0;",
        "property x = 1; (no) 0.2 0.3 0.5; property y; (yes) 1 0 0;",
        '(no) 0.2 0.3 0.5; // one "odd\n /* two; \n } */ (yes) 1 0 0;',
    ],
)
def test_forms_of_a_table(write: Write, body: str) -> None:
    model = load(write("a.bif", b_given_a(body)))
    np.testing.assert_allclose(model.cpt("B"), CPT, rtol=1e-15)


def test_two_parents(write: Write) -> None:
    states = {"P": "ab", "Q": "abc", "C": "01"}
    variables = "".join(f"variable {v} {{ type discrete [{len(s)}] {{{','.join(s)}}}; }}" for v, s in states.items())
    roots = "probability (P) { table 0.5 0.5; } probability (Q) { table 0.25 0.25 0.5; }"
    cpt = np.random.default_rng(0).dirichlet(np.ones(2), (2, 3))
    rows = [
        f"({p}, {q}) {x!r} {y!r};"
        for p, of_p in zip("ab", cpt.tolist(), strict=True)
        for q, (x, y) in zip("abc", of_p, strict=True)
    ]
    table = [repr(x) for x in np.moveaxis(cpt, -1, 0).reshape(-1).tolist()]
    for body in (" ".join(rows[::-1]), f"table {', '.join(table)};"):
        model = load(write("a.bif", f"{variables} {roots} probability (C | P, Q) {{ {body} }}"))
        assert model.parents("C") == ["P", "Q"]
        np.testing.assert_allclose(model.cpt("C"), cpt, rtol=1e-14)


def test_javabayes_writes_quotes_and_no_bar(write: Write) -> None:
    text = """// Bayesian network
    network "Dog-Problem" { property "credal-set; {constant} // 1.1" ; }
    variable  "light on" { // 2 values
        type discrete[2] {  "true"  "not, so" };
        property "position = (218, 195)" ;
    }
    variable "bowel|problem" { type discrete[2] { "true" "false" }; }
    probability ( "light on" "bowel|problem" ) { table 0.6 0.05 0.4 0.95 ; }
    probability ( "bowel|problem" ) { table 0.01 0.99 ; }"""
    model = load(write("a.bif", text))
    assert model.variables[0].states == ("true", "not, so")
    assert model.parents("light on") == ["bowel|problem"]
    np.testing.assert_allclose(model.cpt("light on"), [[0.6, 0.4], [0.05, 0.95]], rtol=1e-15)


def test_odd_names(write: Write) -> None:
    text = """variable x.1-a/b { type discrete { a b, c (d), "" }; }"""
    with pytest.raises(ParseError, match=r"states of 'x.1-a/b' must be one or more distinct names"):
        load(write("a.bif", text))
    text = """variable my var { type discrete [2] { a b, c (d) }; }
    variable x.1-a/b { type discrete [ 2 ] { 0 1 }; }
    probability ( my var ) { table 0.5 0.5; }
    probability ( x.1-a/b | my var ) { (a b) 0.1 0.9; (c (d)) 0.2 0.8; }"""
    model = load(write("a.bif", text))
    assert model.variables[0].states == ("a b", "c (d)")
    np.testing.assert_allclose(model.cpt("x.1-a/b"), [[0.1, 0.9], [0.2, 0.8]], rtol=1e-15)


@pytest.mark.parametrize("body", ["default 0.25 0.75;", "() .25 .75;", "default 1 0; ( ) 0.25 0.75;"])
def test_odd_forms_of_a_root(write: Write, body: str) -> None:
    model = load(write("a.bif", network(f"probability ( A ) {{ {body} }}", ROWS)))
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)


def test_states_without_a_count(write: Write) -> None:
    text = "variable A { type discrete { low, high }; } probability (A) { table 1 0; }"
    assert load(write("a.bif", text)).variables[0].states == ("low", "high")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings(write: Write, encoding: str) -> None:
    text = network(ROOT, ROWS).replace("yes", "zurückgewiesen")
    assert load(write("a.bif", text.encode(encoding))).variables[0].states == ("no", "zurückgewiesen")


def test_windows_line_ends(write: Write) -> None:
    text = network(ROOT, ROWS).replace("\n", "\r\n")
    np.testing.assert_allclose(load(write("a.bif", text)).cpt("B"), CPT, rtol=1e-15)
    with pytest.raises(ParseError, match=r"a\.bif:13: "):
        load(write("a.bif", text.replace("(no) 0.2", "(no) x")))


def test_double_precision_and_normalised_rows(write: Write) -> None:
    model = load(write("a.bif", b_given_a("(no) 0.3331 0.3332 0.3333; (yes) 0.1234567890123456 0 0.8765432109876544;")))
    np.testing.assert_allclose(model.cpt("B")[0], np.array([0.3331, 0.3332, 0.3333]) / 0.9996, rtol=1e-15)
    assert model.cpt("B")[1, 0] == pytest.approx(0.1234567890123456, rel=1e-15)


# Metadata ------------------------------------------------------------------------------------------------------------


def test_properties(write: Write) -> None:
    text = """network "my net" { property version 1.0; property "a; {b} // c" ; property url = "http://x"; }
    variable A { type discrete [2] {no, yes}; property position = (827, -51.5); property fault = 1; }
    variable B { property "position = (1e3, 2)" ; type discrete [3] {a, b, c}; }
    probability (A) { property x y; table 0.5 0.5; property z; }
    probability (B | A) { (no) 1 0 0; (yes) 0 1 0; }"""
    model = load(write("a.bif", text))
    assert model.metadata == {
        "name": "my net",
        "properties": ("version 1.0", "a; {b} // c", 'url = "http://x"'),
    }
    assert model.variable("A").metadata == {
        "position": (827, -51.5),
        "properties": ("fault = 1",),
        "bif": {"properties": ("x y", "z")},
    }
    assert model.variable("B").metadata == {"position": (1000, 2)}


@pytest.mark.parametrize("text", ["position = (1, x)", "position = (1, 2, 3)", "position = (1, 1e999)", "positions"])
def test_what_is_no_position_stays_a_property(write: Write, text: str) -> None:
    model = load(write("a.bif", network(ROOT, ROWS).replace("yes };", f"yes }}; property {text};")))
    assert model.variable("A").metadata == {"properties": (text,)}


@pytest.mark.parametrize("head", ["network unknown", "network", "network "])
def test_a_network_without_a_name(write: Write, head: str) -> None:
    model = load(write("a.bif", network(ROOT, ROWS).replace("network test", head)))
    assert dict(model.metadata) == {}


def test_comments(write: Write) -> None:
    text = """// A net
//   with two lines

/* and
   a third */
network n { // of the network
}
variable A { // 2 "values
  type discrete [2] { no, yes }; /* binary */
}
// of B
variable B { type discrete [3] { a, "// no comment", c }; }
probability ( A ) { table 0.5 0.5; // even
}
probability ( B | A ) { (no) 1 0 0; (yes) 0 1 0; }
// the end
"""
    for given in (text, text.replace("\n", "\r\n")):
        model = load(write("a.bif", given))
        assert model.metadata["comment"] == "A net\n  with two lines\nand\na third\nof the network"
        assert model.variable("A").metadata == {"comment": '2 "values\nbinary', "bif": {"comment": "even"}}
        assert model.variable("B").metadata == {"comment": "of B", "bif": {"comment": "the end"}}
        assert model.variable("B").states[1] == "// no comment"


def test_a_comment_before_the_first_variable_is_the_models(write: Write) -> None:
    model = load(write("a.bif", "// hello\n" + network(ROOT, ROWS).removeprefix("network test {\n}\n")))
    assert model.metadata == {"comment": "hello"}


@pytest.mark.parametrize("last_is_fastest", [False, True])
def test_orders_of_rows(write: Write, last_is_fastest: bool) -> None:
    """Both orders that programs write, several tables of one shape in both, and one with two rows exchanged."""
    states = {"P": ["a", "ab"], "Q": ["a", "b", "c"], "C": "01", "D": "01", "E": "01"}
    variables = "".join(f"variable {v} {{ type discrete [{len(s)}] {{{','.join(s)}}}; }}" for v, s in states.items())
    roots = "probability (P) { table 0.5 0.5; } probability (Q) { table 0.25 0.25 0.5; }"
    cpts = np.random.default_rng(0).dirichlet(np.ones(2), (3, 2, 3))
    text = variables + roots
    for child, cpt in zip("CDE", cpts, strict=True):
        rows = {
            (p, q): f"({p}, {q}) {', '.join(map(repr, cpt[i, j].tolist()))};"
            for i, p in enumerate(states["P"])
            for j, q in enumerate(states["Q"])
        }
        last = last_is_fastest if child == "C" else not last_is_fastest
        ordered = [rows[key] for key in sorted(rows, key=lambda key: key if last else key[::-1])]
        if child == "E":
            ordered[1], ordered[4] = ordered[4], ordered[1]
        text += f"probability ({child} | P, Q) {{ {' '.join(ordered)} }}"
    model = load(write("a.bif", text))
    for child, cpt in zip("CDE", cpts, strict=True):
        np.testing.assert_allclose(model.cpt(child), cpt, rtol=1e-14)


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("network a { }", "a.bif:1: expected at least one variable block, but the file ends"),
        ("hello", "a.bif:1: expected a network, variable or probability block, got hello"),
        (TWO + "\nvariable C {", r"a.bif:10: expected a block \{ ... \} with its end, got variable C \{"),
        (TWO + "variable { type discrete [1] {a}; }", "a.bif:9: expected the name of a variable"),
        (TWO + "variable A { type discrete [1] {a}; }", "a.bif:9: variable 'A' is declared twice"),
        (TWO + "variable C {\n kind discrete; }", "a.bif:10: expected type or property"),
        (
            TWO + "variable C {\n type discrete [1] {a} }",
            "a.bif:10: expected a statement that ends in ;, got type disc",
        ),
        (TWO + "variable C { property a; }", r"variable 'C' must have one type, type discrete .*, got 0"),
        (TWO + "variable C {\n\n type continuous; }", "a.bif:11: variable 'C': expected type discrete .* continuous"),
        (TWO + "variable C { type discrete [3] {a, b}; }", "a.bif:9: variable 'C' must have 3 states, got 2"),
        (TWO + "variable C { type discrete [99999999999] {a, b}; }", "variable 'C': expected type discrete"),
        (
            TWO + "variable C { type discrete [2] {a, a}; }",
            "states of 'C' must be one or more distinct names, got a, a",
        ),
        (TWO + "variable C { type discrete { }; }", "states of 'C' must be one or more distinct names"),
        (network(ROWS), "a.bif:3: variable 'A' has no probability block"),
        (network(ROOT, ROWS, ROOT), "a.bif:16: variable 'A' has two probability blocks"),
        (network("probability A { table 1 0; }"), r"a.bif:9: expected probability \( child | parents \), got A"),
        (network("probability ( A | ) { table 1 0; }"), r"expected probability \( child | parents \), got \( A | \)"),
        (network("probability ( | A ) { table 1 0; }"), r"expected probability \( child | parents \)"),
        (network("probability ( ) { table 1 0; }"), r"expected probability \( child | parents \)"),
        (network("probability ( A | C ) { table 1 0; }"), "a.bif:9: no variable is named 'C'; 2 are declared"),
        (network("probability ( A | B, B ) { table 1 0; }"), "names a variable twice"),
        (network("probability ( A | A ) { table 1 0; }"), "names a variable twice"),
        (network(ROWS, "probability ( A | B ) { default 1 0; }"), "a.bif:9: the edges have a cycle: A -> B -> A"),
        (b_given_a("(no) 0.2 0.3 0.5;"), r"a.bif:12: row \(A=yes\) is missing, and there is no default"),
        (b_given_a("property function max; (no) 1 0 0;"), r"row \(A=yes\) is missing, and property function is not"),
        (b_given_a(""), r"row \(A=no\) is missing"),
        (b_given_a("(no) 1 0 0;\n(no) 1 0 0; (yes) 1 0 0;"), r"a.bif:13: row \(A=no\) is given twice"),
        (b_given_a("default 1 0 0; (no) 1 0 0;\n\n(no) 1 0 0;"), r"a.bif:14: row \(A=no\) is given twice"),
        (b_given_a("(no) 1 0 0;\n(maybe) 1 0 0;"), "a.bif:13: 'A' has no state 'maybe'; it has no, yes"),
        (b_given_a("(no) 1 0 0; (yes, no) 1 0 0;"), r"expected a row with a state of each of \(A\), got \(yes, no\)"),
        (b_given_a("(no 1 0 0; (yes) 1 0 0;"), "a.bif:12: expected table, default, property or a row in parentheses"),
        (b_given_a("(no) 1 0 0;\n(yes) 1 0;"), r"a.bif:13: row \(A=yes\) of the CPT of 'B': expected 3 numbers, got 2"),
        (b_given_a("(no) 1 0 0 0; (yes) 1 0;"), r"row \(A=no\) of the CPT of 'B': expected 3 numbers, got 4"),
        (b_given_a("(no) 1 0; (yes) -1 1 0 0;"), "the CPT of 'B' must hold probabilities, but the entry at .* is -1"),
        (b_given_a("(no) 1 0 0; (yes) 1 0 zero;"), r"row \(A=yes\) of the CPT of 'B': expected a number, got zero"),
        (b_given_a("(no) 1 0 0; (yes) 1 0 ٣;"), r"row \(A=yes\) of the CPT of 'B': expected a number, got \?"),
        (b_given_a("(no) 1 0 0; (yes) 1 0 0_0;"), "expected a number, got 0_0"),
        (b_given_a("(no) 1 0 0; (yes) 1 0\x1c0;"), "expected a number"),
        (b_given_a("table 1 0 0;"), "a.bif:12: the table of the CPT of 'B': expected 6 numbers, got 3"),
        (b_given_a("\ndefault 1 0;"), "a.bif:13: the default of the CPT of 'B': expected 3 numbers, got 2"),
        (b_given_a("table 1 0 0 0 1 1; (no) 1 0 0;"), "expected a table or rows, got both"),
        (b_given_a("default 1 0 0; default 1 0 0;"), "expected one table, or rows and at most one default"),
        (b_given_a("(no) 1 0 0; row 1 0 0;"), "a.bif:12: expected table, default, property or a row in parentheses"),
        (b_given_a("(no) 1 0 0;\n(yes) 1 0 0"), r"a.bif:13: expected a statement that ends in ;, got \(yes\) 1 0 0"),
        (b_given_a("(no) 0.2 0.3 0.4; (yes) 1 0 0;"), "a.bif:12: row A=no of the CPT of 'B' sums to 0.9, not 1"),
        (b_given_a("(no) 1 0 0; (yes) 2 -1 0;"), "the CPT of 'B' must hold probabilities, but the entry at .* is 2"),
        (b_given_a("(no) 1 0 0; (yes) nan 1 0;"), "the CPT of 'B' must hold probabilities, but the entry at .* nan"),
        (b_given_a("(no) 1 0 0; (yes) inf 1 0;"), "the CPT of 'B' must hold probabilities"),
        (network('probability ( "A ) { table 1 0; }'), "a.bif:9: expected a block"),
        ("network a { type x; }" + network(ROOT, ROWS), "a.bif:1: expected property"),
        ("network a {\n property x }" + network(ROOT, ROWS), "a.bif:2: expected a statement that ends in ;"),
        ("variable A { \0 }", "a.bif:1: expected text, but there is a zero byte"),
    ],
)
def test_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("( child | parents )", r"( child \| parents )")):
        load(write("a.bif", text))


def test_absurd_tables_are_refused_before_they_are_made(write: Write) -> None:
    names = [f"v{i}" for i in range(40)]
    variables = "".join(f"variable {name} {{ type discrete [2] {{ a, b }}; }}\n" for name in names)
    roots = "".join(f"probability ({name}) {{ default 1 0; }}\n" for name in names[1:])
    with pytest.raises(ParseError, match=rf"the CPT of 'v0' has {2**40} entries, too many for so short a file"):
        load(write("a.bif", variables + f"probability (v0 | {', '.join(names[1:])}) {{ default 1 0; }}" + roots))
    many = [f"v{i}" for i in range(70)]
    variables = "".join(f"variable {name} {{ type discrete [1] {{ a }}; }}\n" for name in many)
    with pytest.raises(ParseError, match="a variable may have 59 parents, got 69"):
        load(write("a.bif", variables + f"probability (v0 | {', '.join(many[1:])}) {{ default 1; }}"))


def test_the_path_is_named(write: Write) -> None:
    path = write("a.bif", "hello")
    with pytest.raises(ParseError, match="^" + re.escape(f"{path}:1: ")) as caught:
        load(path)
    assert (caught.value.path, caught.value.line) == (str(path), 1)


def test_an_address_in_a_property_is_no_comment(write: Write) -> None:
    text = network(ROOT, ROWS).replace("network", "network x { property url = http://a.org/b; }\nnetwork", 1)
    assert load(write("a.bif", text)).metadata["properties"] == ("url = http://a.org/b",)
