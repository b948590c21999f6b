"""CFN: every branch of the reader on small files, and published problems."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from besag.errors import LossWarning, ModelError, ParseError
from besag.io import load
from besag.io.costs import cfn
from besag.io.formats import Source
from tests.io.costs.test_wcsp import energies
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]

STRICT = b"""{"problem": {"name": "small", "mustbe": "<10.0"},
 "variables": {"A": ["no", "yes"], "b 2": 3, "C": ["x", "y"]},
 "functions": {
  "f1": {"scope": ["A", "b 2"], "costs": [1, 2.5, "3", -4, 10, 12]},
  "g": {"scope": ["C", 0], "costs": "f3"},
  "f2": {"scope": ["b 2"], "defaultcost": 0.5, "costs": [1, 7, "2", 8]},
  "f3": {"scope": [0, "C"], "defaultcost": 0, "costs": ["yes", "y", 3, "no", 0, 1]},
  "constant": {"scope": [], "costs": [2]}}}
"""
RELAXED = b"""# the same, as toulbar2 lets it be written
{ problem: { name: small, mustbe: <10.0 }
# in between
  variables: { A: [no yes] "b 2": 3 C: [x y] }
  functions: {
    f1: { scope: [A "b 2"] costs: [1 2.5 3 -4 10 12] }
    g: { scope: [C 0] costs: f3 }
    f2: { scope: ["b 2"] defaultcost: .5 costs: [1 7 2 8] }
    f3: [ scope {0 C} defaultcost 0 costs [yes y 3 no 0 1] ]
    constant: { scope: [] costs: [2] }
} }
"""


@pytest.mark.parametrize("data", [STRICT, RELAXED])
def test_a_small_file(write: Write, data: bytes) -> None:
    model = load(write("a.cfn", data))
    assert [(v.name, v.states) for v in model.variables] == [
        ("A", ("no", "yes")),
        ("b 2", ("0", "1", "2")),
        ("C", ("x", "y")),
    ]
    assert model.metadata["name"] == "small"
    assert model.metadata["cfn"]["mustbe"] == "<10.0"
    inf = np.inf
    np.testing.assert_array_equal(energies(model, 0), [[3, 4.5, 5], [-2, inf, inf]])  # with the constant
    np.testing.assert_array_equal(energies(model, 1), [[1, 0], [0, 3]])
    np.testing.assert_array_equal(energies(model, 2), [0.5, 7, 8])
    np.testing.assert_array_equal(energies(model, 3), [[1, 0], [0, 3]])
    assert [model.locate(name)[0].scopes[model.locate(name)[1]].tolist() for name in ("g", "f3")] == [[2, 0], [0, 2]]
    assert model.locate("f3")[0].template.n_inputs == 1


def test_the_shortest_form(write: Write) -> None:
    model = load(write("a.cfn", "{{p <9} [[a b] 2 -3] {{[0 1] [1 2 3 4]} {[2] 0 [1 5]} {[0] [0 9]}}}"))
    assert [v.states for v in model.variables] == [("a", "b"), ("0", "1"), ("0", "1", "2")]
    np.testing.assert_array_equal(energies(model, 0), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(energies(model, 1), [0, 5, 0])
    np.testing.assert_array_equal(energies(model, 2), [0, np.inf])


@pytest.mark.parametrize("n", [3, 300])
def test_long_lists(write: Write, n: int) -> None:
    costs, states = np.arange(n * n) / 8 - 3, [f"{i + 0.5}" for i in range(n)]
    words = [repr(c) for c in costs.tolist()]
    tuples = " ".join(f"{i} {i} {i / 4}" for i in range(n))
    text = f"{{{{p <99999}} [{' '.join(['2'] * n)} {n} [{' '.join(states)}]] {{"
    text += f"{{[{n} {n + 1}] [{' '.join(words)}]}} {{[{n} {n + 1}] 0.5 [{tuples}]}} }}}}"
    model = load(write("a.cfn", text))
    assert len(model.variables) == n + 2
    assert model.variables[n + 1].states == tuple(states)
    np.testing.assert_array_equal(energies(model, 0), costs.reshape(n, n))
    np.testing.assert_array_equal(np.diag(energies(model, 1)), np.arange(n) / 4)
    strict = {"problem": {"name": "p", "mustbe": "<99999"}, "variables": [2] * n + [n, [i + 0.5 for i in range(n)]]}
    strict["functions"] = {
        "f": {"scope": [n, n + 1], "costs": costs.tolist()},
        "g": {"scope": [n, n + 1], "defaultcost": 0.5, "costs": [w for i in range(n) for w in (i, i, i / 4)]},
    }
    same = load(write("b.cfn", json.dumps(strict)))
    assert same.variables[n + 1].states == model.variables[n + 1].states
    np.testing.assert_array_equal(same.theta, model.theta)


def test_errors_in_long_lists(write: Write) -> None:
    zeros = " 0" * 300
    for costs, message in (
        (f"{zeros} 1-2", "a.cfn:2: function 0: expected a cost, got '1-2'"),
        (zeros, "a.cfn:2: function 0: expected 2 costs, 2, got 300"),
    ):
        with pytest.raises(ParseError, match=message):
            load(write("a.cfn", f"{{{{p <9}} [2] {{{{[0]\n[{costs}]}}}}}}"))
    with pytest.raises(ParseError, match=r"a\.cfn:2: function 0: expected a scope of at most 60 variables"):
        load(write("a.cfn", f"{{{{p <9}} [2] {{{{\n[{zeros}] [1 2]}}}}}}"))


def test_lines_where_names_are_the_same(write: Write) -> None:
    text = '{"problem": {"name": "A", "mustbe": "<9"},\n"variables": {"A": 2},\n"functions": {\n"A": {"scope": ["A"],\n'
    with pytest.raises(ParseError, match=r"a\.cfn:5: function 'A': expected 2 costs"):
        load(write("a.cfn", text + '"costs": [1]}}}'))
    with pytest.raises(ParseError, match=r"a\.cfn:2: function 1: no variable is 5; there are 1"):
        load(write("a.cfn", "{{p <9} [2] {{[0] [1 2]}\n{[5] [1 2]}}}"))


def test_maximisation_negates(write: Write) -> None:
    text = '{"problem": {"name": "m", "mustbe": ">1.5"}, "variables": {"A": 3}, "functions": {"f": {"scope": ["A"], '
    model = load(write("a.cfn", text + '"costs": [2, 1.5, 7]}}}'))
    np.testing.assert_array_equal(energies(model, 0), [-2, np.inf, -7])
    best = model.map(engine="exact")
    assert (best.assignment, best.energy) == ({"A": "2"}, -7)


SUMS = """{{problem: {{name: "m", mustbe: "{}"}}, variables: {{"a": ["x", "y"]}},
functions: {{"c0": {{scope: ["a"], costs: [{}]}}, "c1": {{scope: ["a"], costs: [{}]}}}}}}"""


@pytest.mark.parametrize(
    ("mustbe", "first", "second", "best"),
    [
        ("<5.0", "-10.0, 0.0", "7.0, 2.0", ("x", -3)),
        (">-5.0", "10.0, 0.0", "-7.0, -2.0", ("x", -3)),
        ("<5.0", "-10.0, 0.0", "12.0, 2.0", ("x", 2)),
        ("<2.0", "-10.0, 0.0", "12.0, 2.0", None),
        ("<5.0", "-1.0, 0.0", "7.0, 2.0", ("y", 2)),
        ("<5", "0, inf", "5, 0", None),
        ("<inf", "0, inf", "5, 0", ("x", 5)),
    ],
)
def test_the_bound_is_one_of_sums(
    write: Write, mustbe: str, first: str, second: str, best: tuple[str, float] | None
) -> None:
    model = load(write("a.cfn", SUMS.format(mustbe, first, second)))
    if best is None:
        with pytest.raises(ModelError, match="allows no labelling"):
            model.map()
    else:
        answer = model.map()
        assert (answer.assignment["a"], answer.energy) == best


def test_an_answer_beyond_the_bound_is_told(write: Write) -> None:
    text = '{problem: {mustbe: "<4.5"}, variables: [2 2], functions: [{[0] [0 3]} {[1] [0 3]} {[0 1] [5 3 3 1]}]}'
    model = load(write("a.cfn", text))  # sums of 5, which an entry alone reaches, 6, 6 and 7
    with pytest.warns(LossWarning, match=r"3 of 3 labellings found have energies of 6 or more, but .* of 4\.5 or"):
        assert [energy for _, energy in model.map(k=3).solutions] == [6, 6, 7]
    with pytest.warns(LossWarning, match=r"the labelling found has an energy of 6, but"):
        model.map(evidence={"0": np.array([0.5, 0.25])})  # what the evidence adds is none of the file's
    less = load(write("a.cfn", text.replace("4.5", "5.5")))
    assert less.map().energy == 5
    with pytest.warns(LossWarning, match=r"1 of 3 labellings found have energies of 6 or more"):
        less.map(evidence=pd.DataFrame({"0": ["0", "1", None]}))


def test_functions_of_one_name_all_count(write: Write) -> None:
    text = '{{p <9} {A 2} {f {[A] [1 2]} "f (2)" {[A] [0 5]} f {[A] [3 1]} f {[A] f}}}'
    with pytest.warns(LossWarning, match=r"a\.cfn: several functions are named 'f', .* becomes 'f \(3\)'") as told:
        model = load(write("a.cfn", text))
    assert len(told) == 1
    assert model.groups[0].names == ("f", "f (2)", "f (3)", "f (4)")
    assert model.energy({"A": "0"}) == 1 + 0 + 3 + 1


@pytest.mark.parametrize("data", [STRICT, RELAXED])
def test_the_last_bracket_may_be_missing(write: Write, data: bytes) -> None:
    whole, cut = load(write("a.cfn", data)), data.rstrip()[:-1]
    with pytest.warns(LossWarning, match=r"a\.cfn: the last bracket is missing") as told:
        model = load(write("a.cfn", cut))
    assert len(told) == 1
    np.testing.assert_array_equal(model.theta, whole.theta)
    with pytest.raises(ParseError, match="the file ends inside 2 brackets"):
        load(write("a.cfn", cut.rstrip()[:-1]))


def test_literals_of_json_are_names(write: Write) -> None:
    text = '{"problem": {"name": null, "mustbe": "<5"}, "variables": {"A": [true, false]}, "functions": {"f": '
    model = load(write("a.cfn", text + '{"scope": ["A"], "defaultcost": 0, "costs": [true, 1]}}}'))
    assert model.variables[0].states == ("true", "false")
    np.testing.assert_array_equal(energies(model, 0), [1, 0])


def test_by_content() -> None:
    assert load(io.BytesIO(STRICT)).n_factors == 4
    assert load(io.BytesIO(RELAXED)).n_factors == 4
    assert not cfn.matches(b'{"besag": 1}')


def _file(functions: str, variables: str = '{"A": 2, "B": 3}', problem: str = '{"name": "p", "mustbe": "<9"}') -> str:
    return f'{{"problem": {problem},\n"variables": {variables},\n"functions": {{\n{functions}}}}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", r"expected \{ ... \}, got a single value"),
        ("{{", "a.cfn:1: the file ends inside 2 brackets"),
        ('{"problem": {}}}', "a.cfn:1: expected the end of the file, got '}'"),
        ('{"problem": {}} 5', "a.cfn:1: expected the end of the file, got '5'"),
        ('{"problem": {"name": "x\n', "a.cfn:1: a text in quotes has no end"),
        ("[" * 100_000, "nested too deeply"),
        ("{a " * 100_000, "a.cfn:1: the brackets are nested too deeply"),
        ('{"problem": {}, "variables": {}}', 'expected "functions"'),
        ('{"problem": 3, "variables": {}, "functions": {}}', 'a.cfn:1: expected "problem"'),
        ('{"problem": {}, "problem": {}}', "the file: expected keys that are different texts, got 'problem'"),
        ("{{} {} {} {}}", "the file: expected problem, variables, functions, got 4 items"),
        ('{"problem": {}, "variables"}', "the file: the last key, 'variables', has no value"),
        (_file("", problem='{"name": "x"}'), 'a.cfn:1: expected "mustbe": "<number" or ">number", got None'),
        (_file("", problem='{"name": "x", "mustbe": "=5"}'), "a.cfn:1: expected \"mustbe\": .*, got '=5'"),
        (_file("", problem='{"name": "x", "mustbe": "<y"}'), "expected \"mustbe\": .*, got '<y'"),
        (_file("", problem='{"name": "x", "mustbe": "<nan"}'), "expected \"mustbe\": .*, got '<nan'"),
        (_file("", "{}"), "a.cfn:2: expected at least one variable"),
        (_file("", '{"A": 0}'), "variable 0: expected a cardinality or a list of states, got 0"),
        (_file("", '{"A": []}'), r"variable 0: expected a cardinality or a list of states, got \[\]"),
        (_file("", '{"A": 2.5}'), "variable 0: expected a cardinality or a list of states, got 2.5"),
        (_file("", '{"A": ["x", "x"]}'), r"a.cfn:2: variable 0: states must be distinct names, got \['x', 'x'\]"),
        (_file("", '{"A": 2, "A": 2}'), "a.cfn:2: two variables are named 'A'"),
        (_file("", '{"A": 999999999}'), "a.cfn:2: a variable has 999999999 states, too many for so short a file"),
        (_file('"f": 3'), "a.cfn:4: function 'f': expected .*, got 3"),
        (_file('"f": {"scope": ["A"]}'), "a.cfn:4: function 'f': expected scope, defaultcost and costs, got 'scope'"),
        (_file('"f": {"scope": ["A"], "costs": [1, 2], "x": 1}'), "expected scope, defaultcost and costs, got"),
        (_file('"f": {"scope": ["A"], "type": "salldiff", "params": []}'), "function 'f' is a global .*, 'salldiff'"),
        (_file('"f": {"scope": 3, "costs": []}'), "function 'f': expected a scope of at most 60 variables, got 3"),
        (_file('"f": {"scope": ["Z"], "costs": [1]}'), "a.cfn:4: function 'f': no variable is 'Z'; there are 2"),
        (_file('"f": {"scope": [2], "costs": [1]}'), "function 'f': no variable is 2"),
        (_file('"f": {"scope": [0, "A"], "costs": [1]}'), "a.cfn:4: function 'f' names a variable twice"),
        (_file('"f": {"scope": ["A", "B"], "costs": [1]}'), "function 'f': expected 6 costs, 2 x 3, got 1"),
        (_file('"f": {"scope": ["A"], "costs": [1, "x"]}'), "function 'f': expected a cost, got 'x'"),
        (_file('"f": {"scope": ["A"], "costs": [1, "1_0"]}'), "function 'f': expected a cost, got '1_0'"),
        (_file('"f": {"scope": ["A"], "costs": [1, true]}'), "function 'f': expected a cost, got True"),
        (_file('"f": {"scope": ["A"], "costs": [1, NaN]}'), "function 'f': costs must be finite numbers, got nan"),
        (
            _file('"f": {"scope": ["A"], "costs": 3}'),
            "function 'f': expected a list of costs or the name of a function",
        ),
        (
            _file('"f": {"scope": ["A"], "defaultcost": 0, "costs": [1]}'),
            "expected tuples of 1 states and a cost, got 1",
        ),
        (
            _file('"f": {"scope": ["A"], "defaultcost": 0, "costs": ["x", 1]}'),
            "variable 0 of its scope has no state 'x'",
        ),
        (_file('"f": {"scope": ["A"], "defaultcost": 0, "costs": [2, 1]}'), "variable 0 of its scope has no state 2"),
        (_file('"f": {"scope": ["A"], "costs": "g"}'), "no function with costs of its own is named 'g'"),
        (_file('"f": {"scope": ["A"], "costs": "f"}'), "no function with costs of its own is named 'f'"),
        (
            _file('"f": {"scope": ["A"], "costs": "g"}, "g": {"scope": ["B"], "costs": [1, 2, 3]}'),
            r"function 'f' has cardinalities \(2,\), but 'g' has \(3,\)",
        ),
    ],
)
def test_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.cfn", text))


def test_absurd_tables_are_refused_before_they_are_made(write: Write) -> None:
    variables = "{" + ", ".join(f'"v{i}": 1000' for i in range(9)) + "}"
    text = _file('"f": {"scope": [0, 1, 2, 3, 4, 5, 6, 7, 8], "defaultcost": 0, "costs": []}', variables)
    with pytest.raises(ParseError, match=r"a\.cfn:4: function 'f' has 1000000000000000000000000000 costs, too many"):
        load(write("a.cfn", text))


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(STRICT, words=(b"[", b"]", b":", b'"costs"', b"\\ud800", b"true")))
def test_mutations(data: bytes) -> None:
    attempt(cfn.read, data)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(RELAXED, words=(b"[", b"]", b":", b"scope", b"costs")))
def test_mutations_of_relaxed(data: bytes) -> None:
    attempt(cfn.read, data)


@pytest.mark.parametrize("data", [STRICT, RELAXED])
def test_every_truncation(data: bytes) -> None:
    for end in range(len(data)):
        attempt(cfn.read, data[:end])
    assert cfn.read(Source(data, "file")).n_factors == 4


# Published problems --------------------------------------------------------------------------------------------------


def test_alarm(data_dir: Path) -> None:
    model = load(data_dir / "toulbar2_instances" / "alarm.cfn.gz")
    assert (len(model.variables), model.n_factors) == (37, 37)
    best = model.map(engine="exact")
    assert best.energy == pytest.approx(3.086727)
    # toulbar2's optimum is the same assignment, at 3.157695: it counts the least cost of each function of more than
    # three variables twice.
    large = [i for i in range(37) if energies(model, i).ndim > 3]
    assert best.energy + sum(float(energies(model, i).min()) for i in large) == pytest.approx(3.157695)


def test_1aho(data_dir: Path) -> None:
    model = load(data_dir / "toulbar2_instances" / "1aho.cfn.gz")
    assert (len(model.variables), model.n_factors) == (64, 608)
    assert model.variables[1].states[:2] == ("K0", "K1")
    assert model.locate("f529")[0].template.shape == (2,)
