"""XDSL: the reader's branches, noisy-MAX nodes, what GeNIe shows, round trips, broken and hostile files."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import besag
from besag.errors import LossWarning, ModelError, ParseError
from besag.io import load
from besag.io.formats import Source
from besag.io.shared.xml_tree import as_data, parse
from besag.io.xdsl import read as xdsl
from besag.io.xdsl.names import identifiers
from besag.io.xdsl.noisy import noisy_of
from besag.model.model import Model
from tests.io.helpers import same_networks
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]

# As GeNIe writes: colours, bar charts, a comment, a submodel, a text box, and nodes drawn in an order of their own.
FULL = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- This network was drawn by hand -->
<smile version="1.0" id="Network1" numsamples="1000" discsamples="10000">
	<properties>
		<property id="author">somebody</property>
	</properties>
	<nodes>
		<cpt id="Load" diagtype="target" ranked="true">
			<state id="High" fault="true" label="overload" />
			<state id="Medium" />
			<state id="Low" />
			<probabilities>0.2 0.3 0.5</probabilities>
			<property id="unit">kW &lt; 3</property>
			<property id="source">a
b</property>
		</cpt>
		<!-- the alarm -->
		<cpt id="Sensor">
			<state id="on" />
			<state id="off" />
			<cost>2.5</cost>
			<parents>Load</parents>
			<probabilities>0.9 0.1 0.5 0.5 0.01 0.99</probabilities>
		</cpt>
		<noisymax id="Damage">
			<state id="Severe" />
			<state id="Slight" />
			<state id="No" />
			<parents>Sensor Load</parents>
			<strengths>0 1 0 2 1</strengths>
			<parameters>0.1 0.25 0.65 0 0 1 0.2 0.3 0.5 0.05 0.15 0.8 0 0 1 0.01 0.02 0.97</parameters>
		</noisymax>
		<deterministic id="Stop">
			<state id="yes" />
			<state id="no" />
			<parents>Damage Sensor</parents>
			<resultingstates>yes yes yes no no no</resultingstates>
		</deterministic>
	</nodes>
	<extensions>
		<genie version="1.0" app="GeNIe 2.0.4535.0" name="A machine" faultnameformat="nodestate">
			<comment>Of the whole
network</comment>
			<node id="Sensor">
				<name>The sensor&#13;
above</name>
				<interior color="e5f6f7" />
				<outline color="0000bb" width="2" />
				<font color="000000" name="Arial" size="8" bold="true" />
				<position>100 50 173 93</position>
				<comment>Often wrong</comment>
				<barchart active="true" width="128" height="64" />
			</node>
			<submodel id="Causes">
				<name>Causes</name>
				<interior color="ffcc00" />
				<position>10 10 90 60</position>
				<node id="Load">
					<name>Load</name>
					<interior color="e5f6f7" />
					<outline color="000080" />
					<font color="000000" name="Arial" size="8" />
					<position>66 226 142 262</position>
				</node>
				<window show="cx" />
			</submodel>
			<node id="Damage">
				<name>Damage</name>
				<position>10 20 31 40</position>
			</node>
			<textbox>
				<caption>Read me</caption>
				<font color="800000" name="Arial" size="14" />
				<position>300 10 400 30</position>
			</textbox>
			<arccomment parent="Load" child="Sensor">why</arccomment>
		</genie>
		<other version="2" />
	</extensions>
</smile>
"""


def network(*nodes: str, extensions: str = "") -> str:
    return f'<smile version="1.0" id="n">\n<nodes>\n{"".join(nodes)}</nodes>{extensions}</smile>'


A = '<cpt id="A"><state id="no"/><state id="yes"/><probabilities>0.25 .75</probabilities></cpt>\n'
B = '<cpt id="B"><state id="x"/><state id="y"/><parents>A</parents><probabilities>1 0 5E-1 0.5</probabilities></cpt>\n'


def read(text: str | bytes, ignore_utilities: bool = False) -> Model:
    return xdsl.read(Source(text.encode() if isinstance(text, str) else text, "a.xdsl", ignore_utilities))


def again(model: Model) -> Model:
    return read(xdsl.write(model))


# Models --------------------------------------------------------------------------------------------------------------


def test_a_network() -> None:
    model = read(FULL)
    assert [v.name for v in model.variables] == ["Load", "Sensor", "Damage", "Stop"]
    assert model.variable("Load").states == ("High", "Medium", "Low")
    np.testing.assert_allclose(model.cpt("Sensor"), [[0.9, 0.1], [0.5, 0.5], [0.01, 0.99]], rtol=1e-15)
    assert model.parents("Stop") == ["Damage", "Sensor"]
    assert model.cpt("Stop")[..., 0].tolist() == [[1, 1], [1, 0], [0, 0]]


def test_parents_may_come_later_and_the_first_changes_slowest() -> None:
    states = "".join(f'<state id="{s}"/>' for s in "abc")
    c = '<cpt id="C"><state id="s"/><state id="t"/><parents>P A</parents><probabilities>{}</probabilities></cpt>'
    p = f'<cpt id="P">{states}<probabilities>1 0 0</probabilities></cpt>'
    cpt = np.random.default_rng(0).dirichlet(np.ones(2), (3, 2))
    model = read(network(c.format(" ".join(map(repr, cpt.reshape(-1).tolist()))), A, p))
    assert model.parents("C") == ["P", "A"]
    np.testing.assert_allclose(model.cpt("C"), cpt, rtol=1e-14)


def test_metadata() -> None:
    model = read(FULL)
    assert model.metadata["name"] == "A machine"
    assert model.metadata["comment"] == "Of the whole\nnetwork"
    assert model.metadata["properties"] == ("author = somebody",)
    load_, sensor, damage, stop = (v.metadata for v in model.variables)
    assert load_["properties"] == ("unit = kW < 3", "source = a\nb")
    assert load_["position"] == (104, 244)
    assert load_["xdsl"]["attributes"] == {"diagtype": "target", "ranked": "true"}
    assert load_["xdsl"]["states"]["High"]["attributes"]["label"] == "overload"
    assert "drawing" not in load_["xdsl"]  # the usual look
    assert "label" not in load_  # the name is the identifier
    assert (sensor["label"], sensor["comment"]) == ("The sensor\r\nabove", "Often wrong")
    assert sensor["position"] == (136.5, 71.5)
    assert sensor["xdsl"]["comments"] == (" the alarm ",)
    assert damage["position"] == (20.5, 30)
    assert dict(stop) == {"xdsl": {"deterministic": True}}


def test_a_plain_file_has_no_metadata_but_its_name() -> None:
    model = read(network(A, B).replace('id="n"', 'id="n" numsamples="10000" discsamples="10000"'))
    assert dict(model.metadata) == {"name": "n"}
    assert not model.variables.metadata


def test_it_is_known_by_its_content(write: Write) -> None:
    assert len(load(write("model", FULL)).variables) == 4
    assert len(load(write("a.XDSL.gz", FULL)).variables) == 4
    assert not xdsl.matches(b"<BIF>")


# Noisy-MAX -----------------------------------------------------------------------------------------------------------


def test_noisy_or_as_genie_expands_it() -> None:
    """P(no effect) is the product of what each cause that is present, and the leak, leave of it."""
    table = noisy_of(np.array([0.61, 0.39, 0, 1, 0.25, 0.75, 0, 1, 0.01, 0.99]), [0, 1, 0, 1], [2, 2], 2).table()
    left = [[0.39 * 0.75, 0.39], [0.75, 1]]
    np.testing.assert_allclose(table[..., 1], np.array(left) * 0.99, rtol=1e-15)
    np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-15)


def test_noisy_max_is_the_strongest_of_independent_effects() -> None:
    model = read(FULL)
    none = [0, 0, 1]
    of_sensor = {0: [0.1, 0.25, 0.65], 1: none}
    of_load = {0: [0.2, 0.3, 0.5], 2: [0.05, 0.15, 0.8], 1: none}  # by strength: 0, 2, and 1 without effect
    leak = [0.01, 0.02, 0.97]
    for sensor, load_ in itertools.product(of_sensor, of_load):
        wanted = np.zeros(3)
        for effects in itertools.product(range(3), repeat=3):
            weights = of_sensor[sensor][effects[0]], of_load[load_][effects[1]], leak[effects[2]]
            wanted[min(effects)] += np.prod(weights)  # states go from the strongest to the weakest
        np.testing.assert_allclose(model.cpt("Damage")[sensor, load_], wanted, rtol=1e-14)


def test_a_noisy_node_that_was_changed_becomes_a_cpt() -> None:
    model = read(FULL)
    text = xdsl.write(model)
    assert b"<strengths>0 1 0 2 1</strengths>" in text
    assert b"<parameters>0.1 0.25 0.65 0 0 1 0.2 0.3" in text
    assert b"<resultingstates>yes yes yes no no no</resultingstates>" in text
    cpt = model.cpt("Damage").copy()
    cpt[0, 0] = [0.5, 0.25, 0.25]
    changed = xdsl.write(model.with_cpt("Damage", cpt).with_cpt("Stop", np.full((3, 2, 2), 0.5)))
    assert b"noisymax" not in changed
    assert b"deterministic" not in changed
    np.testing.assert_allclose(read(changed).cpt("Damage"), cpt, rtol=1e-14)


# Decision networks ---------------------------------------------------------------------------------------------------

DECISION = """<decision id="D"><state id="go"/><state id="stay"/><parents>A</parents></decision>
<utility id="U"><parents>D B</parents><utilities>1 2 3 4</utilities></utility>
<mau id="M"><parents>U</parents><weights>1</weights></mau>
<equation id="E"><definition>E=Normal(0,1)</definition></equation>
"""
DRAWN = """<extensions><genie version="1.0" name="n"><node id="D"><name>D</name></node>
<arccomment parent="D" child="U">x</arccomment><textbox><caption>t</caption></textbox></genie></extensions>"""


def test_decisions_and_utilities() -> None:
    with pytest.raises(ParseError, match=r"a.xdsl:4: 'D' is a decision node; ignore_utilities=True reads the chance"):
        read(network(A, DECISION, B))
    for number, kind in enumerate(("a utility", "a utility", "an equation"), 1):
        one = DECISION.splitlines()[number]
        with pytest.raises(ParseError, match=rf"is {kind} node; ignore_utilities=True"):
            read(network(A, one))
    text = network(A, DECISION, B, extensions=DRAWN)
    model = read(text, ignore_utilities=True)
    assert [v.name for v in model.variables] == ["A", "B"]
    assert [child["tag"] for child in model.metadata["xdsl"]["genie"]["children"]] == ["textbox"]


def test_a_chance_node_below_a_decision() -> None:
    with pytest.raises(ParseError, match=r"a.xdsl:8: 'B' depends on a decision node 'D': there is no chance part"):
        read(network(A, DECISION, B.replace("<parents>A", "<parents>D")), ignore_utilities=True)


# Round trips ---------------------------------------------------------------------------------------------------------


def test_a_file_comes_out_as_it_was() -> None:
    """The same elements, attributes and texts in the same order: it opens in GeNIe as it was."""
    model = read(FULL)
    written = xdsl.write(model)
    before, after = parse(FULL.encode("latin-1"), "a"), parse(written, "b")
    assert as_data(after.root) == as_data(before.root)
    assert after.comments == before.comments
    same_networks(model, read(written))


@pytest.mark.parametrize("seed", range(5))
def test_random_networks(seed: int) -> None:
    model = besag.data.random_model("bayesian_network", 12, seed=seed, n_states=(1, 4), zeros=0.2)
    same_networks(model, again(model))


def two(names: tuple[str, str], states: dict[str, Any] | None = None) -> Model:
    return besag.bayesian_network([names], states)


@pytest.mark.parametrize("names", [("a b", "a_b"), ("a b", "a-b"), ("0", "x0"), ("ä", "ö"), (" ", "x"), ("<5", "\n")])
def test_names_that_are_no_identifiers(names: tuple[str, str]) -> None:
    model = two(names, {name: ["0", "x0", "<5", "5<", "_", "a b", "besag_name"] for name in names})
    root = parse(xdsl.write(model), "f").root.children[0]
    ids = [node.attributes["id"] for node in root.children]
    for found in (ids, *([state.attributes["id"] for state in node.all("state")] for node in root.children)):
        assert len(set(found)) == len(found)
        assert all(text.isascii() and text.isidentifier() and text[0] != "_" for text in found)
    same_networks(model, again(model))


def test_many_names_become_one_identifier() -> None:
    names = [chr(0x4E00 + i) for i in range(20_000)]
    assert len(set(identifiers(names))) == len(names)


def test_what_was_renamed_or_moved_in_genie_stays_so() -> None:
    model = two(("a b", "c"), {"a b": ["<5", ">5"]}).with_metadata({}, {"a b": {"position": (10.25, 20)}})
    text = xdsl.write(model).decode()
    assert again(model).variables[0].metadata["position"] == (10.25, 20)
    text = text.replace("a_b", "Other").replace('"x_5"', '"less"')
    left, top, right, bottom = -28, 2, 48, 38
    assert f"<position>{left} {top} {right} {bottom}</position>" in text
    moved = read(text.replace(f">{left} {top} {right}", f">{left + 50} {top} {right + 50}"))
    assert moved.variables[0].name == "Other"
    assert moved.variables[0].states == ("less", ">5")
    assert moved.variables[0].metadata["position"] == (60, 20)


@pytest.mark.parametrize(
    "entries",
    [
        {"label": "A label <&>"},
        {"comment": " -- x \r\n\ty"},
        {"position": (12, -7)},
        {"position": (12.3, 1e6 + 0.5)},
        {"label": "L", "comment": "c", "position": (0, 0), "properties": ("k = v",)},
        {"properties": ("free text", "k = ", "k = again", "a b = c", "besag_name = z", " = ", "")},
    ],
)
def test_metadata_come_back(entries: dict[str, Any]) -> None:
    of_model = {key: value for key, value in entries.items() if key in ("comment", "properties")}
    for name in ("net", "a net", "Unnamed net"):
        model = two(("A", "b b")).with_metadata({"name": name, **of_model}, {"A": entries, "b b": entries})
        same_networks(model, again(model))
        same_networks(again(model), again(again(model)))


def test_changes_show_and_the_rest_stays() -> None:
    model = read(FULL)
    entries = dict(model.variable("Sensor").metadata)
    entries |= {"position": (200, 100), "label": "Renamed"}
    del entries["comment"]
    changed = model.with_metadata({**model.metadata, "name": "New", "comment": "short"}, {"Sensor": entries})
    text = xdsl.write(changed).decode()
    assert "<name>Renamed</name>" in text
    assert "<position>164 78 237 121</position>" in text  # as wide and as high as before
    assert '<outline color="0000bb" width="2" />' in text
    assert "Often wrong" not in text
    assert 'name="New"' in text
    back = read(text)
    assert back.metadata["name"] == "New"
    assert back.metadata["comment"] == "short"
    assert back.variable("Sensor").metadata["position"] == (200, 100)


def test_other_formats_report_what_they_lose(tmp_path: Path) -> None:
    with pytest.warns(
        LossWarning, match="XMLBIF cannot carry the model's xdsl, the variables' label, the variables' xdsl"
    ):
        besag.save(read(FULL), tmp_path / "a.xml")


def test_models_that_do_not_fit() -> None:
    with pytest.raises(ModelError, match="GeNIe XDSL holds Bayesian networks, and this model is none"):
        xdsl.write(besag.data.random_model("grid", 3))
    model = two(("A", "B"))
    with pytest.raises(ModelError, match="metadata 'xdsl' of the model: expected a dict, got 'text'"):
        xdsl.write(model.with_metadata({"xdsl": "text"}))
    with pytest.raises(ModelError, match="metadata 'xdsl/genie' of the model: expected a dict, got 'text'"):
        xdsl.write(model.with_metadata({"xdsl": {"genie": "text"}}))


@pytest.mark.parametrize("metadata", [{}, {"name": "lawn"}, {"name": "n"}])
def test_there_is_always_something_to_draw(metadata: dict[str, str]) -> None:
    """Other programs refuse a file without <genie>."""
    model = read(network(A, B)).with_metadata(metadata)
    data = xdsl.write(model)
    extensions = parse(data, "a.xdsl").root.first("extensions")
    assert extensions is not None
    assert [element.tag for element in extensions.children] == ["genie"]
    same_networks(read(data.decode()), model)


# Errors --------------------------------------------------------------------------------------------------------------


def noisy(parameters: str, strengths: str = "0 1") -> str:
    return network(
        A,
        '<noisymax id="N">\n<state id="x"/><state id="y"/><parents>A</parents>',
        f"<strengths>{strengths}</strengths><parameters>{parameters}</parameters></noisymax>",
    )


def deterministic(results: str) -> str:
    inside = f"<parents>A</parents><resultingstates>{results}</resultingstates>"
    return network(A, f'<deterministic id="N"><state id="x"/><state id="y"/>{inside}</deterministic>')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<BIF/>", "a.xdsl:1: expected <smile>, got <BIF>"),
        ("<smile>", "a.xdsl:1:8: broken XML: no element found"),
        ("<smile/>", "a.xdsl:1: expected one <nodes> in <smile>, got none"),
        ("<smile><nodes/>\n<nodes/></smile>", "a.xdsl:2: expected one <nodes> in <smile>, got 2"),
        (network(), "a.xdsl: expected at least one variable, got none"),
        (network("<cpt/>"), "a.xdsl:3: expected <cpt id=...> without white space, got ''"),
        (network('<cpt id="a b"/>'), "expected <cpt id=...> without white space, got 'a b'"),
        (network(A, A), "a.xdsl:4: variable 'A' is declared twice"),
        (network(A.replace(' id="no"', "")), "expected <state id=...> without white space"),
        (network('<cpt id="A"/>'), "a.xdsl:3: expected at least one <state> in <cpt> of 'A', got none"),
        (network(A.replace("yes", "no")), "a.xdsl:3: states of 'A' must be one or more distinct names"),
        (
            network('<noisyadder id="N"/>'),
            "a.xdsl:3: 'N' is a <noisyadder> node, which is not supported; expected cpt, n",
        ),
        (network(B), "a.xdsl:3: 'B' names the parent 'A', but there is no such node"),
        (network(A, B.replace(">A<", ">A A<")), "a.xdsl:4: 'B' names a parent twice"),
        (network(A, B.replace("<parents>A", "<parents>B")), "a.xdsl:4: the edges have a cycle: B -> B"),
        (network(A, B.replace("</parents>", "</parents><parents/>")), "expected one <parents> in <cpt> of 'B', got 2"),
        (
            network('<cpt id="A"><state id="a"/></cpt>'),
            "a.xdsl:3: expected one <probabilities> in <cpt> of 'A', got none",
        ),
        (network(A.replace("0.25", "x")), "a.xdsl:3: expected numbers in <probabilities>, got 'x'"),
        (network(A.replace("0.25", "1 0.25")), "a.xdsl:3: the table of 'A' must have 2 entries, 2, got 3"),
        (network(A.replace("0.25", "0.5")), "a.xdsl:3: .*sums to 1.25"),
        (noisy("0.5 0.5 0 1"), "a.xdsl:4: the noisy-MAX node 'N' must have 6 parameters, 3 x 2, got 4"),
        (noisy("0.5 0.6 0 1 0 1"), "the noisy-MAX node 'N' must have columns of probabilities that sum to 1"),
        (noisy("1.5 -0.5 0 1 0 1"), "the noisy-MAX node 'N' must have columns of probabilities that sum to 1"),
        (noisy("nan 0 0 1 0 1"), "the noisy-MAX node 'N' must have columns of probabilities that sum to 1"),
        (noisy("0 1 0.5 0.5 0 1"), "must have the column 0 ... 0 1 for the weakest state of each parent"),
        (noisy("1 0 0 1 0 1", "0 0"), r"must have as strengths the states 0 to 1 of a parent, got \[0, 0\]"),
        (noisy("1 0 0 1 0 1", "0"), "a.xdsl:5: expected 2 numbers of states in <strengths>, got '0'"),
        (noisy("1 0 0 1 0 1", "0 1e300"), "expected 2 numbers of states in <strengths>"),
        (noisy("1 0 0 1 0 1", "0 0.5"), "expected 2 numbers of states in <strengths>"),
        (deterministic("x"), "a.xdsl:4: expected 2 states of 'N' in <resultingstates>, got 1"),
        (deterministic("x z"), "a.xdsl:4: expected 2 states of 'N' in <resultingstates>, got 'z'"),
        (network(A).replace("</smile>", "<dynamic><cpt/></dynamic></smile>"), "dynamic networks are not supported"),
        ('<!DOCTYPE smile [<!ENTITY a "b">]><smile/>', "a.xdsl:1:29: the file declares the entity 'a'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("n_parents", "message"), [(40, f"has {2**41} entries, too many for so short a file"), (60, "59 parents")]
)
def test_absurd_tables_are_refused_before_they_are_made(n_parents: int, message: str) -> None:
    nodes = [A.replace('id="A"', f'id="v{i}"') for i in range(n_parents)]
    names = " ".join(f"v{i}" for i in range(n_parents))
    inside = f"<parents>{names}</parents><resultingstates>x y</resultingstates>"
    with pytest.raises(ParseError, match=message):
        read(network(*nodes, f'<deterministic id="N"><state id="x"/><state id="y"/>{inside}</deterministic>'))


def test_a_deterministic_table_of_many_states_is_refused() -> None:
    states = "".join(f'<state id="s{i}"/>' for i in range(40_000))
    parent = f'<cpt id="P">{states}<probabilities>1{" 0" * 39_999}</probabilities></cpt>'
    inside = f"<parents>P</parents><resultingstates>{'s0 ' * 40_000}</resultingstates>"
    with pytest.raises(ParseError, match=f"the CPT of 'N' has {40_000**2} entries, too many for so short a file"):
        read(network(parent, f'<deterministic id="N">{states}{inside}</deterministic>'))


WORDS = (b"<", b">", b"/>", b"<!--", b"-->", b'<state id="x"/>', b"&lt;", b"<parents>", b"A", b"noisymax", b"submodel")
SOURCES = [FULL.encode(), network(A, DECISION, B, extensions=DRAWN).encode(), noisy("1 0 0 1 0 1").encode()]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of([mutated(source, WORDS) for source in SOURCES]))
def test_mutations(data: bytes) -> None:
    def read_and_write(source: Source) -> Model:
        model = xdsl.read(source._replace(ignore_utilities=True))
        written = xdsl.write(model)
        same_networks(model, read(written))
        return model

    attempt(read_and_write, data)


def test_every_truncation() -> None:
    data = FULL.rstrip().encode()
    for end in range(len(data)):
        with pytest.raises(ParseError):
            read(data[:end])


def test_small_probabilities_of_a_noisy_max_stay() -> None:
    parameters = np.array([0.3, 0.7, 0.0, 1.0, 1e-20, 1.0])
    assert noisy_of(parameters, [0, 1], [2], 2).table()[1].tolist() == [1e-20, 1.0]
