"""Lines end with LF, CR LF or CR: comments end there, and errors count them, in every format of text."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from besag.errors import ParseError
from besag.io import load
from tests.io.native.test_native import document

Write = Callable[..., Path]

FILES = {
    "a.bif": """// two\n// variables
variable A { type discrete [2] { no, yes }; } // first
variable B { type discrete [2] { no, yes }; /* several
lines */ }
probability ( A ) { table 0.25, 0.75; } // a root
probability ( B | A ) { (no) 0.5, 0.5; // one
  (yes) 0.25, 0.75; }
""",
    "a.net": """% two variables
net { } % nothing
node A { states = ("no" "yes"); label = "long\\
text"; } % first
node B { states = ("no" "yes"); HR = (1
2); }
potential (A) { data = (0.25 0.75); } % a root
potential (B | A) { data = ((0.5 0.5) % one
 (0.25 0.75)); }
""",
    "a.dsc": """// two variables
belief network "x" // name
node A { type: discrete[2] = { "no", "yes" }; } // first
node B { type: discrete[2] = { "no", "yes" }; } /* several
lines */
probability(A) { 0.25, 0.75; }
probability(B | A) { (0): 0.5, 0.5; // one
 (1): 0.25, 0.75; }
""",
    "a.dsl": """net x { // two variables
node A { TYPE = CPT; PARENTS = (); // first
 DEFINITION = { NAMESTATES = (no, yes); PROBABILITIES = (0.25, 0.75); }; };
node B { TYPE = CPT; PARENTS = (A); // second
 DEFINITION = { NAMESTATES = (no, yes); PROBABILITIES = (0.5, 0.5, // one
 0.25, 0.75); }; };
};
""",
    "a.uai": "# two\nBAYES # kind\n2\n2 2 # states\n2\n1 0\n2 0 1\n\n2 .25 .75\n4 .5 .5 # one\n.25 .75\n",
    "a.fg": "# one factor\n1\n\n2 # n\n0 1\n2 2\n4\n0 .5 # first\n1 .25\n2 .5\n3 .75\n",
    "a.wcsp": "# two\nx 2 2 1 9\n# states\n2 2\n2 0 1 0 2\n# tuples\n0 1 3\n  # more\n1 0 4\n",
    "a.cfn": "# two\n{ problem: { name: x mustbe: <9 }\n# states\n variables: { A: 2 B: 2 }\n  # costs\n"
    " functions: { f: { scope: [A B]\n costs: [1 2\n3 4] } } }\n",
    "a.json": json.dumps(document(), indent=1),
}
ENDS = [("\n", "lf"), ("\r\n", "crlf"), ("\r", "cr")]


@pytest.mark.parametrize("end", [end for end, _ in ENDS], ids=[name for _, name in ENDS])
@pytest.mark.parametrize("name", FILES)
def test_the_same_model(write: Write, name: str, end: str) -> None:
    expected, found = load(write(name, FILES[name])), load(write(name, FILES[name].replace("\n", end)))
    by_content = load(write("unknown", FILES[name].replace("\n", end)))
    assert len(expected.variables) == 2
    for model in (found, by_content):
        assert list(model.variables) == list(expected.variables)
        assert [v.metadata for v in model.variables] == [v.metadata for v in expected.variables]
        assert model.metadata == expected.metadata
        assert model.theta.tolist() == expected.theta.tolist()


@pytest.mark.parametrize("end", [end for end, _ in ENDS], ids=[name for _, name in ENDS])
@pytest.mark.parametrize("name", FILES)
def test_the_same_line_of_an_error(write: Write, name: str, end: str) -> None:
    *_, last = FILES[name].rstrip("\n").split("\n")
    wrong = FILES[name].rstrip("\n").removesuffix(last) + "\n ? " + last  # a line of its own before the last
    with pytest.raises(ParseError) as expected:
        load(write(name, wrong))
    with pytest.raises(ParseError) as found:
        load(write(name, wrong.replace("\n", end)))
    assert found.value.line == expected.value.line
    assert found.value.line is not None
    assert str(found.value) == str(expected.value)
