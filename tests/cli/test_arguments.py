"""Evidence and queries of the command line, and options that are refused."""

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from besag import cli
from tests.cli.conftest import LAWN, Ask, Write

AskJson = Callable[..., Any]
Rain = Callable[..., float]


@pytest.fixture
def rain(ask_json: AskJson, lawn: str) -> Rain:
    """P(rain = yes) under some evidence."""
    return lambda *evidence: ask_json("infer", lawn, "--evidence", *evidence)["marginals"]["rain"]["yes"]


@pytest.fixture
def both(rain: Rain) -> float:
    return rain("wet=yes", "sprinkler=on")


def test_states_may_come_in_one_option_or_in_several(rain: Rain, both: float) -> None:
    assert both == pytest.approx(0.3204, abs=5e-5)
    assert rain("wet=yes", "--evidence", "sprinkler=on") == both


def test_the_later_one_counts(rain: Rain, both: float, write: Write) -> None:
    file = write("a.json", '{"wet": "yes", "sprinkler": "off"}')
    assert rain(file, "sprinkler=on") == both
    assert rain("sprinkler=on", file) != pytest.approx(both)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.evid", "2 3 1 2 1"),
        ("a.evid", "1\n2 3 1 2 1\n"),
        ("a.uai.evid", "2\n3 1\n2 1\n"),
        ("a.txt", "2 3 1 2 1"),
        ("a.json", '{"wet": "yes", "sprinkler": "on", "rain": null}'),
        ("a", '{"wet": ["yes"], "sprinkler": {"off": 0, "on": 2.5}}'),
        ("a.csv", "wet,sprinkler,cloudy\r\nyes,on,\r\n"),
        ("a.csv", 'wet, "sprinkler"\nyes, on\n'),
        ("a.csv", "wet;sprinkler;cloudy\nyes;on;\n"),
        ("a.csv", "wet,sprinkler,cloudy,rain\nyes,on,NA,NaN\n"),
        ("a.csv", "\n\nwet,sprinkler\ryes,on\r"),
        ("a.tsv", "wet\tsprinkler\nyes\ton\n"),
        ("a.txt", "sprinkler,wet\non,yes\n"),
    ],
)
def test_files_of_evidence(rain: Rain, both: float, write: Write, name: str, content: str) -> None:
    assert rain(write(name, content)) == pytest.approx(both, rel=1e-12)


def test_likelihoods(rain: Rain, write: Write) -> None:
    file = write("soft.json", '{"rain": {"no": 1, "yes": 3}}')
    assert rain(file) == pytest.approx(0.75)


def test_virtual_evidence(rain: Rain, write: Write) -> None:
    assert rain(write("soft.virt", "1\n1 2 0.25 0.75\n")) == pytest.approx(0.75)


def test_virtual_evidence_of_merlin(ask_json: AskJson, data_dir: Path) -> None:
    """Beside a published model: 7 in its two states has the likelihoods 0.7 and 0.5."""
    stem = data_dir / "peer_test_files" / "merlin" / "ChestClinic"
    model, files = f"{stem}.uai", (f"{stem}.evid", f"{stem}.virt")
    hard = ask_json("infer", model, "--evidence", files[0])
    soft = ask_json("infer", model, "--evidence", *files)
    p = hard["marginals"]["7"]
    z = p["0"] * 0.7 + p["1"] * 0.5
    assert soft["marginals"]["7"]["0"] == pytest.approx(p["0"] * 0.7 / z)
    assert soft["log_partition"] - hard["log_partition"] == pytest.approx(math.log(z))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"rain": {"no": 1, "yes": 3}}', '{"rain": "yes"}', '{"rain": "yes"}'),
        ('{"rain": "no"}', '{"rain": {"no": 1, "yes": 3}}', '{"rain": {"no": 1, "yes": 3}}'),
        ('{"rain": "no", "wet": "yes"}', '{"rain": null}', '{"wet": "yes"}'),
        ('{"rain": {"no": 1, "yes": 3}}', '{"wet": {"no": 1, "yes": 2}}',
         '{"rain": {"no": 1, "yes": 3}, "wet": {"no": 1, "yes": 2}}'),
    ],
)  # fmt: skip
def test_the_later_file_counts_whatever_its_kind(
    ask_json: AskJson, lawn: str, write: Write, first: str, second: str, same: str
) -> None:
    one, two, both = write("1.json", first), write("2.json", second), write("3.json", same)
    expected = pytest.approx(probabilities(ask_json("infer", lawn, "--evidence", both)))
    assert probabilities(ask_json("infer", lawn, "--evidence", one, two)) == expected
    rows = write("rows.json", f'[{{"cloudy": "no"}}, {second}]')
    assert probabilities(ask_json("infer", lawn, "--evidence", one, rows)[1]) == expected
    rows = write("rows.json", f'[{first}, {{"cloudy": "no"}}]')
    assert probabilities(ask_json("infer", lawn, "--evidence", rows, two)[0]) == expected


def probabilities(answer: Any) -> list[float]:
    return [p for states in answer["marginals"].values() for p in states.values()]


def test_one_row_holds_in_all_rows(ask_json: AskJson, lawn: str, write: Write, rain: Rain) -> None:
    rows = write("rows.json", '[{"sprinkler": "on"}, {"sprinkler": {"off": 1, "on": 1}}]')
    found = ask_json("infer", lawn, "--evidence", "wet=yes", rows)
    assert [answer["marginals"]["rain"]["yes"] for answer in found] == pytest.approx(
        [rain("wet=yes", "sprinkler=on"), rain("wet=yes")]
    )


def test_samples_of_an_evid_file_are_rows(ask_json: AskJson, lawn: str, write: Write) -> None:
    rows = write("two.evid", "2\n1 3 1\n2 3 1 2 1\n")
    assert len(ask_json("infer", lawn, "--evidence", rows)) == 2


def test_no_evidence_in_a_file(rain: Rain, write: Write) -> None:
    assert rain(write("none.evid", "0")) == pytest.approx(0.5)


def test_numbers_that_pandas_made_floats(ask_json: AskJson, pair: str, write: Write) -> None:
    file = write("floats.csv", "0,1\n1.0,2.0\n")
    assert ask_json("infer", pair, "--task", "MAP", "--evidence", file)["assignment"] == {"0": "1", "1": "2"}


WORDS = LAWN.replace("{ no, yes }", "{ TRUE, NA }").replace("(no", "(TRUE").replace("(yes", "(NA")
WORDS = WORDS.replace(", no", ", TRUE").replace(", yes", ", NA")


@pytest.mark.parametrize(
    ("name", "content", "states"),
    [
        ("a.csv", "rain,cloudy\ntrue,NA\n", {"rain": "TRUE", "cloudy": "NA"}),
        ("a.csv", "rain,cloudy\nTrue,N/A\n", {"rain": "TRUE"}),
        ("a.json", '{"rain": "true"}', {"rain": "TRUE"}),
        ("a.json", '{"rain": true, "cloudy": "NA"}', {"rain": "TRUE", "cloudy": "NA"}),
    ],
)
def test_words_of_other_programs(
    ask_json: AskJson, write: Write, name: str, content: str, states: dict[str, str]
) -> None:
    found = ask_json("infer", write("words.bif", WORDS), "--evidence", write(name, content))["marginals"]
    assert {v: s for v, own in found.items() for s, p in own.items() if p == 1} == states


def test_a_list_of_all_states_is_told_once_with_its_place(
    capsys: pytest.CaptureFixture[str], lawn: str, write: Write
) -> None:
    rows = write("rows.json", '[{"rain": "no"},\n{"wet": ["no", "yes"]},\n{"wet": ["no", "yes"]}]')
    assert cli.main(["infer", lawn, "--task", "PR", "--evidence", rows]) == 0
    told = capsys.readouterr().err
    assert told.startswith(f"besag: {rows}:2: evidence on 'wet' allows every state, so it says nothing.")
    assert 'Several rows: a list of objects. A likelihood: {"no": 0.2, "yes": 0.8}\n' in told
    assert told.count("\n") == 1


def test_what_is_wrong_with_states_is_told_in_words_of_the_command_line(ask: Ask, lawn: str, write: Write) -> None:
    told = ask("infer", lawn, "--evidence", write("a.json", '{"wet": [0.2, 0.8]}'), code=1)
    assert 'a likelihood is an object, {"state": number, ...}' in told
    told = ask("infer", lawn, "--evidence", write("a.csv", "wet\n?\n"), code=1)
    assert "has no state '?'; leave the cell empty where it is not known. It has" in told


def test_names_with_an_equals_sign(ask_json: AskJson, write: Write) -> None:
    text = LAWN.replace("rain", '"a=b"').replace("yes", '"=yes"')
    marginals = ask_json("infer", write("odd.bif", text), "--evidence", "a=b==yes")["marginals"]
    assert marginals["a=b"] == {"no": 0.0, "=yes": 1.0}


@pytest.mark.parametrize(
    ("item", "match"),
    [
        ("wett=yes", "'wett=yes' is neither NAME=STATE nor a file: no variable is named 'wett'; did you mean 'wet'"),
        ("wet=soaked", "'wet' has no state 'soaked'; it has ['no', 'yes']"),
        ("wet=YES", "'wet' has no state 'YES'; did you mean 'yes'? It has ['no', 'yes']"),
        ("WET=yes", "no variable is named 'WET'; did you mean 'wet'?"),
        ("wet", "'wet' is neither NAME=STATE nor a file: write wet=STATE"),
        ("absent.evid", "'absent.evid' is neither NAME=STATE nor a file: there is no such file"),
    ],
)
def test_evidence_that_is_wrong(ask: Ask, lawn: str, item: str, match: str) -> None:
    assert match in ask("infer", lawn, "--evidence", item, code=1)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.json", '{"wet": ', ":1:9: expected JSON"),
        ("a.json", "null", "expected an object {name: state}, or a list of such rows, got NoneType"),
        ("a.json", "[]", "got list"),
        ("a.json", "[" * 100_000, "expected JSON"),
        ("a.json", '{"wet": {"no": NaN, "yes": 1}}', "must be finite"),
        ("a.json", '{"rain": "heavy"}', "'rain' has no state 'heavy'"),
        ("a.json", '[{"wet": "no"}, {"rain": "heavy"}]', "a.json:1: 'rain' has no state 'heavy'"),
        ("a.json", '[{"wet": "no"},\n\n {"wet": ["no, ]"]}, {"rain": "no"}]', "a.json:3: 'wet' has no state 'no, ]'"),
        ("a.csv", "wet,rain\nyes\n", ":2: expected 2 cells, as in the first line, got 1"),
        ("a.csv", "wet,wet\nyes,no\n", ":1: 2 columns are named 'wet'"),
        ("a.csv", "wet,rain\n", ":1: expected rows below the line of names, got none"),
        ("a.csv", 'wet\n"yes\n', "expected CSV"),
        ("a.csv", "hail\nyes\n", "a.csv:1: no variable is named 'hail'"),
        ("a.csv", "id,wet\n1,yes\n", "or start the header line with a comma where"),
        ("a.csv", "id;wet\n1;yes\n", "or start the header line with a semicolon where"),
        ("a.csv", "wets;rains\nyes;no\n", "a.csv:1: no variable is named 'wets'; did you mean 'wet'"),
        ("a.csv", "wet\nyes\n\nmaybe\n", "a.csv:4: 'wet' has no state 'maybe'"),
        ("a.csv", "wet,rain\nyes,No\n", "a.csv:2: 'rain' has no state 'No'; did you mean 'no'"),
        ("a.csv", "wet\nyes\n\0\n", "zero byte"),
        ("a.evid", "1 9 0", ":1: expected a variable, an integer from 0 to 3, got 9"),
        ("a.evid", "1 3 2", ":1: expected a state of variable wet"),
        ("a.evid", "", "the file is empty"),
        ("a.virt", "1 3 3 1 1 1", ":1: expected the cardinality of variable wet, an integer from 2 to 2, got 3"),
    ],
)
def test_files_that_are_wrong(ask: Ask, lawn: str, write: Write, name: str, content: str, match: str) -> None:
    message = ask("infer", lawn, "--evidence", write(name, content), code=1)
    assert match in message
    assert len(message.splitlines()) == 1


def test_two_files_of_several_rows(ask: Ask, lawn: str, write: Write) -> None:
    rows = write("rows.csv", "wet\nyes\nno\n")
    assert "only one file may have several" in ask("infer", lawn, "--evidence", rows, rows, code=1)


IMPOSSIBLE = "the evidence has probability zero: rain=no, sprinkler=off, wet=yes cannot hold together"


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("a.csv", "rain,sprinkler\nyes,off\nno,on\n\nno,off\nno,off\n", ":5: "),
        ("a.csv", ",rain,sprinkler\nmon,yes,off\ntue,no,off\n", ":3: row 'tue': "),
        ("a.json", '[{"rain": "yes"},\n{"rain": "no", "sprinkler": "off"}]', ":2: "),
        ("a.evid", "2\n1 1 1\n2 1 0 2 0\n", ":3: "),
    ],
)
@pytest.mark.parametrize("task", ["PR", "MAR", "MAP", "MMAP"])
def test_an_impossible_row_is_told_by_file_and_line(
    ask: Ask, lawn: str, write: Write, task: str, name: str, content: str, where: str
) -> None:
    """Nothing is printed of the other rows: `ask` sees to that."""
    path = write(name, content)
    query = ("--query", "cloudy") if task == "MMAP" else ()
    message = ask("infer", lawn, "--task", task, *query, "--evidence", path, "wet=yes", code=1)
    assert message.startswith(f"besag: {path}{where}{IMPOSSIBLE}")


def test_impossible_evidence_names_the_conflict(ask: Ask, lawn: str) -> None:
    message = ask("infer", lawn, "--evidence", "rain=no", "sprinkler=off", "wet=yes", "cloudy=no", code=1)
    assert "rain=no, sprinkler=off, wet=yes cannot hold together" in message


# Queries -------------------------------------------------------------------------------------------------------------


def test_a_query_file(ask_json: AskJson, lawn: str, write: Write) -> None:
    file = write("lawn.query", "2 3 1\n")
    found = ask_json("infer", lawn, "--query", file, "rain", "sprinkler")["marginals"]
    assert list(found) == ["wet", "rain", "sprinkler"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("names.txt", "wet\n\n  rain \r\nwet\n"),
        ("lawn.query", "wet\nrain"),
        ("numbers", "2 3 1"),
        ("lawn.query.gz", gzip.compress(b"2\n3\n1\n", mtime=0)),
    ],
)
def test_files_of_queries(ask_json: AskJson, lawn: str, write: Write, name: str, content: str | bytes) -> None:
    assert list(ask_json("infer", lawn, "--query", write(name, content))["marginals"]) == ["wet", "rain"]


def test_names_that_are_numbers_are_names_in_a_file_of_names(ask_json: AskJson, pair: str, write: Write) -> None:
    assert list(ask_json("infer", pair, "--query", write("names.txt", "1\n0\n"))["marginals"]) == ["1", "0"]
    assert list(ask_json("infer", pair, "--query", write("pair.query", "1\n0\n"))["marginals"]) == ["0"]


def test_queries_that_are_wrong(ask: Ask, lawn: str, write: Write) -> None:
    assert "'rian' is neither a variable nor a file" in ask("infer", lawn, "--query", "rian", code=1)
    assert "expected a variable" in ask("infer", lawn, "--query", write("a.query", "1 7"), code=1)
    path = write("names.txt", "wet\nrian\n")
    assert f"{path}:2: no variable is named 'rian'; did you mean 'rain'" in ask("infer", lawn, "--query", path, code=1)


# Usage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--task", "marr"], "argument --task: expected PR, MAR, MAP, MMAP or SAMPLE, got 'marr'; did you mean 'MAR'"),
        (["--format", "xml"], "argument --format: expected table, csv, json, jsonl or uai, got 'xml'"),
        (["--evidense", "wet=yes"], "unexpected argument '--evidense'; did you mean '--evidence'?"),
        (["--task", "MMAP"], "--task MMAP needs --query"),
        (["--task", "MAP", "--query", "rain"], "--query goes with MAR and MMAP, not with MAP"),
        (["-k", "3"], "-k goes with MAP, not with MAR"),
        (["--samples", "3"], "-n (--samples) goes with SAMPLE, not with MAR"),
        (["--task", "SAMPLE", "-n", "0"], "expected a whole number from 1 to 10^12, got '0'"),
        (["--task", "SAMPLE", "--format", "uai"], "no form for samples"),
        (["--task", "MAP", "-k", "2", "--format", "uai"], "holds one labelling"),
        (["--query", "rain", "--format", "uai"], "holds the marginals of all variables"),
        (["--seed", "-1"], "expected a whole number of at least 0"),
        (["--time-limit", "0"], "expected a positive number of seconds, got '0'"),
        (["--time-limit", "nan"], "expected a positive number of seconds, got 'nan'"),
        (["--memory-limit", "4X"], "expected bytes, as in 500M or 4G, got '4X'"),
    ],
)
def test_bad_usage(ask: Ask, lawn: str, options: list[str], match: str) -> None:
    message = ask("infer", lawn, *options, code=2)
    assert match in message
    assert message.endswith(" (see besag infer --help)\n")
    assert message.count("\n") == 1


def test_several_rows_have_no_uai_form(ask: Ask, lawn: str, write: Write) -> None:
    rows = write("rows.csv", "wet\nyes\nno\n")
    assert "holds one answer, and the evidence has 2 rows" in ask(
        "infer", lawn, "--format", "uai", "--evidence", rows, code=2
    )


def test_an_engine_that_does_not_exist(ask: Ask, lawn: str) -> None:
    assert "no engine is named 'magic'" in ask("infer", lawn, "--engine", "magic", code=1)


def test_evidence_round_trip_through_json(ask_json: AskJson, lawn: str, write: Write, rain: Rain) -> None:
    best = ask_json("infer", lawn, "--task", "MAP", "--evidence", "wet=yes")["assignment"]
    assert rain(write("best.json", json.dumps(best))) == (1.0 if best["rain"] == "yes" else 0.0)


def test_names_with_commas_between_them(ask: Ask, lawn: str) -> None:
    told = ask("infer", lawn, "--query", "rain,wet", code=1)
    assert "'rain,wet' is no variable; names are separated by blanks: rain wet" in told
