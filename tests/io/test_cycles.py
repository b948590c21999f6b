"""Cycles: every reader of Bayesian networks names the variables on one, and the line of the first of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from besag.errors import ParseError
from besag.io import load

Write = Callable[..., Path]

XMLBIF = "<BIF><NETWORK>\n{}</NETWORK></BIF>"
ONE_XMLBIF = "<VARIABLE><NAME>{0}</NAME><OUTCOME>a</OUTCOME></VARIABLE>\n"
CPT_XMLBIF = "<DEFINITION><FOR>{0}</FOR><GIVEN>{1}</GIVEN><TABLE>1</TABLE></DEFINITION>\n"
ONE_XDSL = '<cpt id="{0}"><state id="a" /><parents>{1}</parents><probabilities>1</probabilities></cpt>\n'
PAIRS = [("R", ""), ("A", "C"), ("B", "A"), ("C", "B")]


def several(form: str, pairs: list[tuple[str, str]]) -> str:
    return "".join(form.format(*pair) for pair in pairs)


FILES = {
    "a.bif": several("variable {0} {{ type discrete [1] {{ a }}; }}\n", PAIRS)
    + "probability ( R ) { table 1; }\n"
    + several("probability ( {0} | {1} ) {{ (a) 1; }}\n", PAIRS[1:]),
    "a.net": several("node {0} {{ states = (a); }}\n", PAIRS)
    + several("potential ( {0} | {1} ) {{ data = (1); }}\n", PAIRS),
    "a.dsc": "network\n"
    + several("node {0} {{ type: discrete[1] = {{ a }}; }}\n", PAIRS)
    + "probability(R) { 1; }\n"
    + several("probability({0} | {1}) {{ (0): 1; }}\n", PAIRS[1:]),
    "a.dsl": "net x {\n"
    + several(
        "node {0} {{ TYPE = CPT; PARENTS = ({1}); DEFINITION = {{ NAMESTATES = (a); PROBABILITIES = (1); }}; }};\n",
        PAIRS,
    )
    + "};",
    "a.xml": XMLBIF.format(
        several(ONE_XMLBIF, PAIRS) + several(CPT_XMLBIF, PAIRS).replace("<GIVEN></GIVEN>", ""),
    ),
    "a.xdsl": f'<smile version="1.0" id="x"><nodes>\n{several(ONE_XDSL, PAIRS)}</nodes></smile>',
    "a.uai": "BAYES\n4\n1 1 1 1\n4\n1 0\n2 3 1\n2 1 2\n2 2 3\n" + "1 1\n" * 4,
}
LINES = {"a.bif": 6, "a.net": 6, "a.dsc": 7, "a.dsl": 3, "a.xml": None, "a.xdsl": 3, "a.uai": 6}


@pytest.mark.parametrize("name", FILES)
def test_cycles(write: Write, name: str) -> None:
    names = "1 -> 2 -> 3 -> 1" if name == "a.uai" else "A -> B -> C -> A"
    with pytest.raises(ParseError, match=f"the edges have a cycle: {names}") as caught:
        load(write(name, FILES[name]))
    assert caught.value.line is not None
    if LINES[name] is not None:
        assert caught.value.line == LINES[name]
    assert "A" in FILES[name].split("\n")[caught.value.line - 1] or name == "a.uai"


def test_long_cycles_are_cut_short(write: Write) -> None:
    n = 50
    nodes = "".join(
        f"node n{i} {{ states = (a); }} potential (n{i} | n{(i - 1) % n}) {{ data = (1); }}\n" for i in range(n)
    )
    with pytest.raises(ParseError, match=r"a\.net:1: .*cycle: n0 -> n1 -> .* -> \.\.\. \(50 variables in all\)"):
        load(write("a.net", nodes))
