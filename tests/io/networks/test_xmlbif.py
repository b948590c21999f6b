"""XMLBIF: the reader's branches on small files, round trips, published files, broken and hostile ones."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import besag
from besag.errors import LossWarning, ModelError, ParseError
from besag.io import load
from besag.io.formats import Source
from besag.io.networks import xmlbif
from besag.model.model import Model
from tests.io.helpers import same_networks
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]

DOCTYPE = """<?xml version="1.0" encoding="US-ASCII"?>
<!-- from a program -->
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*> <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT VARIABLE ( NAME, ( OUTCOME | PROPERTY )* ) > <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
"""
A = """<VARIABLE TYPE="nature"><NAME>A</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
"""
B = """<VARIABLE>
  <!-- of B --> <NAME> B &amp; b </NAME> <OUTCOME>&lt;5</OUTCOME> <OUTCOME>5-10</OUTCOME> <OUTCOME>a b</OUTCOME>
  <PROPERTY>position = (73, -16.5)</PROPERTY> <PROPERTY>unit = mm</PROPERTY> <PROPERTY></PROPERTY>
</VARIABLE>
"""
OF_A = "<DEFINITION><FOR>A</FOR><TABLE>0.25 .75</TABLE></DEFINITION>\n"
OF_B = """<DEFINITION>
  <FOR>B &amp; b</FOR> <GIVEN>A</GIVEN>
  <TABLE> 0.2 0.3 5E-1 <!-- yes: -->
          1 0 0.0e0 </TABLE> <PROPERTY>source = guess</PROPERTY>
</DEFINITION>
"""
CPT = [[0.2, 0.3, 0.5], [1, 0, 0]]


def network(*parts: str) -> str:
    return f'<BIF VERSION="0.3"><NETWORK>\n{"".join(parts)}</NETWORK></BIF>'


FULL = DOCTYPE + network(
    "<NAME>test</NAME> <PROPERTY>author = x</PROPERTY><!-- Variables --><!-- of A -->\n", A, B, OF_B, OF_A
)


def read(text: str | bytes, ignore_utilities: bool = False) -> Model:
    return xmlbif.read(Source(text.encode() if isinstance(text, str) else text, "a.xml", ignore_utilities))


def again(model: Model) -> Model:
    return read(xmlbif.write(model))


# Models --------------------------------------------------------------------------------------------------------------


def test_a_network() -> None:
    model = read(FULL)
    assert [v.name for v in model.variables] == ["A", "B & b"]
    assert model.variables[1].states == ("<5", "5-10", "a b")
    assert model.parents("B & b") == ["A"]
    np.testing.assert_allclose(model.cpt("A"), [0.25, 0.75], rtol=1e-15)
    np.testing.assert_allclose(model.cpt("B & b"), CPT, rtol=1e-15)


def test_metadata() -> None:
    model = read(FULL)
    assert dict(model.metadata) == {"name": "test", "properties": ("author = x",), "comment": "from a program"}
    a, b = model.variables
    assert dict(a.metadata) == {"comment": "of A"}
    assert b.metadata["comment"] == "of B"
    assert b.metadata["position"] == (73, -16.5)
    assert b.metadata["properties"] == ("unit = mm",)
    assert b.metadata["xmlbif"]["definition"] == ("source = guess",)


def test_the_axes_of_a_table() -> None:
    shape = {"P": 2, "Q": 3, "C": 2}
    cpt = np.random.default_rng(0).dirichlet(np.ones(2), (2, 3))
    variables = "".join(
        f"<VARIABLE><NAME>{name}</NAME>{''.join(f'<OUTCOME>{k}</OUTCOME>' for k in range(n))}</VARIABLE>"
        for name, n in shape.items()
    )
    roots = "".join(
        f"<DEFINITION><FOR>{v}</FOR><TABLE>{'1 ' + '0 ' * (shape[v] - 1)}</TABLE></DEFINITION>" for v in "PQ"
    )
    numbers = " ".join(map(repr, cpt.reshape(-1).tolist()))
    table = f"<DEFINITION><FOR>C</FOR><GIVEN>P</GIVEN><GIVEN>Q</GIVEN><TABLE>{numbers}</TABLE></DEFINITION>"
    model = read(network(variables, roots, table))
    assert model.parents("C") == ["P", "Q"]
    np.testing.assert_allclose(model.cpt("C"), cpt, rtol=1e-14)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings_and_windows_line_ends(write: Write, encoding: str) -> None:
    text = network(A, B, OF_A, OF_B).replace("yes<", "zurückgewiesen<").replace("\n", "\r\n")
    assert load(write("a.bifxml", text.encode(encoding))).variables[0].states == ("no", "zurückgewiesen")


@pytest.mark.parametrize("text", [FULL, "\n " + network(A, OF_A)])
def test_it_is_known_by_its_content(write: Write, text: str) -> None:
    assert len(load(write("model", text)).variables) in (1, 2)
    assert xmlbif.matches(text.encode())
    assert not xmlbif.matches(b"<smile>")
    assert not xmlbif.matches(b"variable <BIF>")


def test_there_is_always_a_name() -> None:
    """XMLBIF's grammar asks for one, and other programs refuse a network without it."""
    model = read(network("<NAME> </NAME>", A, OF_A))
    assert "name" not in model.metadata
    assert b"<NETWORK>\n\t\t<NAME />" in xmlbif.write(model)
    same_networks(read(xmlbif.write(model)), model)


# Decision networks ---------------------------------------------------------------------------------------------------

DECISION = """<VARIABLE TYPE="decision"><NAME>D</NAME><OUTCOME>go</OUTCOME><OUTCOME>stay</OUTCOME></VARIABLE>
<VARIABLE TYPE="utility"><NAME>U</NAME></VARIABLE>
<DEFINITION><FOR>U</FOR><GIVEN>D</GIVEN><GIVEN>A</GIVEN><TABLE>1 2 3 4</TABLE></DEFINITION>
"""


def test_decisions_and_utilities() -> None:
    text = network(A, DECISION, OF_A)
    with pytest.raises(ParseError, match=r"a.xml:3: variable 'D' is a decision node; ignore_utilities=True reads the"):
        read(text)
    with pytest.raises(ParseError, match=r"variable 'U' is a utility node; ignore_utilities=True"):
        read(text.replace("decision", "nature"))
    assert [v.name for v in read(text, ignore_utilities=True).variables] == ["A"]


def test_a_chance_node_below_a_decision() -> None:
    text = network(A, B, DECISION, OF_A, OF_B.replace("<GIVEN>A", "<GIVEN>D"))
    with pytest.raises(
        ParseError, match=r"a.xml:\d+: 'B & b' depends on the decision node 'D': there is no chance part"
    ):
        read(text, ignore_utilities=True)


# Round trips ---------------------------------------------------------------------------------------------------------


def test_all_comes_back() -> None:
    model = read(FULL)
    same_networks(model, again(model))
    assert xmlbif.write(again(model)) == xmlbif.write(model)


@pytest.mark.parametrize("seed", range(5))
def test_random_networks(seed: int) -> None:
    model = besag.data.random_model("bayesian_network", 12, seed=seed, n_states=(1, 4), zeros=0.2)
    same_networks(model, again(model))


def with_metadata(metadata: dict[str, object], of_a: dict[str, object]) -> Model:
    model = read(network(A, OF_A))
    return model.with_metadata(metadata, {"A": of_a})


@pytest.mark.parametrize(
    "entries",
    [
        {"comment": "two\nlines -> <x> & y"},
        {"comment": "a -- b"},
        {"comment": "ends in -"},
        {"comment": "Variables"},
        {"properties": ("free text", "a = b = c", "a = b = c", "<&>"), "position": (1e-3, 12)},
        {"properties": ("position = (1, b)", "position = here")},
        {"xmlbif": {"elements": [{"tag": "X", "attributes": {"y": "1"}, "children": [{"tag": "Z", "text": "t"}]}]}},
        {"xmlbif": {"definition_elements": [{"tag": "X"}], "definition": ["p"]}},
    ],
)
def test_metadata_come_back(entries: dict[str, object]) -> None:
    of_model = {key: value for key, value in entries.items() if key not in ("position", "xmlbif")}
    model = with_metadata({"name": "<net>", **of_model}, entries)
    same_networks(model, again(model))


def test_numbers_come_out_as_they_were() -> None:
    assert b"<TABLE>0.2 0.3 0.5\n1 0 0</TABLE>" in xmlbif.write(read(FULL))


@pytest.mark.parametrize("name", [" A", "A\n"])
def test_names_that_do_not_fit(name: str) -> None:
    model = besag.bayesian_network([(name, "B")])
    with pytest.raises(
        ModelError, match=r"XMLBIF cannot hold the name .* nor begin or end with white space; rename it"
    ):
        xmlbif.write(model)


def test_what_is_no_bayesian_network() -> None:
    with pytest.raises(ModelError, match="XMLBIF holds Bayesian networks, and this model is none"):
        xmlbif.write(besag.data.random_model("grid", 3))


def test_losses_are_reported(tmp_path: Path) -> None:
    model = with_metadata({}, {"label": "a label"})
    with pytest.warns(LossWarning, match="XMLBIF cannot carry the variables' label"):
        besag.save(model, tmp_path / "a.xml")


# Published files -----------------------------------------------------------------------------------------------------

BROKEN = {
    "BNBIFXMLReader_file1": "expected at least one variable, got none",
    "BNBIFXMLReader_file3": "row n5=space, n1=0 of the CPT of 'n6' sums to 0.8, not 1",
    "carpo": "row N143=1, N187=1 of the CPT of 'N5' sums to 0, not 1",
}


def test_all_published_files(data_dir: Path) -> None:
    paths = sorted((data_dir / "peer_test_files" / "agrum" / "bifxml").glob("*.bifxml"))
    assert len(paths) == 10
    for path in paths:
        if path.stem in BROKEN:
            with pytest.raises(ParseError, match=BROKEN[path.stem]):
                load(path)
        else:
            model = load(path)
            same_networks(model, again(model))


@pytest.mark.parametrize("name", ["alarm", "hailfinder", "insurance"])
def test_the_same_network_in_bif(data_dir: Path, name: str) -> None:
    """These files, of an old aGrUM, name the parents in an order that need not be the table's: any order will do."""
    folder = data_dir / "peer_test_files" / "agrum"
    one, two = (load(folder / kind / f"{name}.{kind}") for kind in ("bifxml", "bif"))
    assert {v.name for v in one.variables} == {v.name for v in two.variables}
    for variable in one.variables:
        wanted = two.cpt(variable.name)
        numbers = one.cpt(variable.name).reshape(-1)
        assert variable.states == two.variable(variable.name).states
        assert sorted(one.parents(variable.name)) == sorted(two.parents(variable.name))
        orders = permutations(range(wanted.ndim - 1))
        assert any(np.allclose(numbers, wanted.transpose(*axes, -1).reshape(-1)) for axes in orders)


def test_the_dog_problem(data_dir: Path) -> None:
    model = load(data_dir / "peer_test_files" / "agrum" / "bifxml" / "dog.bifxml")
    assert model.parents("dog-out") == ["bowel-problem", "family-out"]
    np.testing.assert_allclose(model.cpt("dog-out")[:, :, 0], [[0.99, 0.97], [0.9, 0.3]], rtol=1e-15)


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<BIF/>", "a.xml:1: expected <BIF> with one <NETWORK>, got <BIF> with 0"),
        ("<smile/>", "a.xml:1: expected <BIF> with one <NETWORK>, got <smile>"),
        ("<BIF>", "a.xml:1:6: broken XML: no element found"),
        (network(), "a.xml: expected at least one variable, got none"),
        (network("<VARIABLE/>"), "a.xml:2: expected one <NAME> with a name in <VARIABLE>, got 0"),
        (network(A, A, OF_A), "a.xml:3: variable 'A' is declared twice"),
        (network(A.replace("nature", "magic"), OF_A), "expected TYPE nature, decision or utility of 'A', got 'magic'"),
        (network(A.replace("yes", "no"), OF_A), "states of 'A' must be one or more distinct names, got .'no', 'no'."),
        (network("<VARIABLE><NAME>A</NAME></VARIABLE>", OF_A), "states of 'A' must be one or more distinct names"),
        (network(A), "a.xml:2: variable 'A' has no <DEFINITION>"),
        (network(A, OF_A, OF_A), "a.xml:4: variable 'A' has two definitions"),
        (
            network(A, OF_A.replace("<FOR>A</FOR>", "")),
            "a.xml:3: expected one <FOR> with a name in <DEFINITION>, got 0",
        ),
        (network(A, OF_A.replace("<FOR>", "<FOR>B</FOR><FOR>")), "expected one <FOR> with a name .* got 2"),
        (network(A, OF_A.replace(">A<", ">C<")), "a.xml:3: no variable is named 'C'; 1 are declared"),
        (network(A, OF_A.replace("</FOR>", "</FOR><GIVEN>C</GIVEN>")), "no variable is named 'C'; 1 are declared"),
        (network(A, OF_A.replace("</FOR>", "</FOR><GIVEN>A</GIVEN>").replace("5<", "5 1 0<")), "cycle|twice"),
        (
            network(A, "<DEFINITION><FOR>A</FOR></DEFINITION>"),
            "a.xml:3: the definition of 'A' must have one <TABLE>, got 0",
        ),
        (network(A, OF_A.replace("0.25 .75", "")), "a.xml:3: expected numbers in the <TABLE> of 'A', got none"),
        (network(A, OF_A.replace("0.25", "x")), "a.xml:3: expected numbers in <TABLE>, got 'x'"),
        (network(A, OF_A.replace("0.25", "0.25 0")), "a.xml:3: the table of 'A' must have 2 entries, 2, got 3"),
        (network(A, OF_A.replace("0.25", "0.5")), "a.xml:3: row .* of the CPT of 'A' sums to 1.25|sums to 1.25"),
        (network(A, OF_A.replace("0.25", "nan")), "a.xml:3: the table of 'A' must hold finite numbers"),
        ('<!DOCTYPE BIF [<!ENTITY a "b">]><BIF/>', "a.xml:1:27: the file declares the entity 'a'"),
        ("<BIF>" * 200, "at most 100 elements inside each other"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(text)


def test_absurd_tables_are_refused_before_they_are_made() -> None:
    many = [f"v{i}" for i in range(70)]
    states = "<OUTCOME>a</OUTCOME><OUTCOME>b</OUTCOME>"
    variables = "".join(f"<VARIABLE><NAME>{name}</NAME>{states}</VARIABLE>" for name in many)
    roots = "".join(f"<DEFINITION><FOR>{v}</FOR><TABLE>1 0</TABLE></DEFINITION>" for v in many[1:])
    for count, message in ((40, f"must have {2**41} entries"), (69, "may have 59 parents, got 69")):
        given_ = "".join(f"<GIVEN>{v}</GIVEN>" for v in many[1 : count + 1])
        with pytest.raises(ParseError, match=message):
            read(network(variables, roots, f"<DEFINITION><FOR>v0</FOR>{given_}<TABLE>1 0</TABLE></DEFINITION>"))


WORDS = (
    b"<",
    b">",
    b"/>",
    b"<!--",
    b"-->",
    b"<GIVEN>A</GIVEN>",
    b"<OUTCOME>x</OUTCOME>",
    b"&lt;",
    b"&x;",
    b"<![CDATA[",
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(FULL.encode(), WORDS))
def test_mutations(data: bytes) -> None:
    def read_and_write(source: Source) -> Model:
        model = xmlbif.read(source)
        same_networks(model, again(model))
        return model

    attempt(read_and_write, data)


def test_every_truncation() -> None:
    for end in range(len(FULL.encode())):
        with pytest.raises(ParseError):
            read(FULL.encode()[:end])
