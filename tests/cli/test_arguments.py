"""Evidence and queries of the command line, and options that are refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

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
        ("a.tsv", "wet\tsprinkler\nyes\ton\n"),
        ("a.txt", "sprinkler,wet\non,yes\n"),
    ],
)
def test_files_of_evidence(rain: Rain, both: float, write: Write, name: str, content: str) -> None:
    assert rain(write(name, content)) == pytest.approx(both, rel=1e-12)


def test_likelihoods(rain: Rain, write: Write) -> None:
    file = write("soft.json", '{"rain": {"no": 1, "yes": 3}}')
    assert rain(file) == pytest.approx(0.75)


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


def test_names_with_an_equals_sign(ask_json: AskJson, write: Write) -> None:
    text = LAWN.replace("rain", '"a=b"').replace("yes", '"=yes"')
    marginals = ask_json("infer", write("odd.bif", text), "--evidence", "a=b==yes")["marginals"]
    assert marginals["a=b"] == {"no": 0.0, "=yes": 1.0}


@pytest.mark.parametrize(
    ("item", "match"),
    [
        ("wett=yes", "'wett=yes' is neither NAME=STATE nor a file: no variable is named 'wett'; did you mean 'wet'"),
        ("wet=soaked", "'wet' has no state 'soaked'; it has ['no', 'yes']"),
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
        ("a.json", '[{"wet": "no"}, {"rain": "heavy"}]', "row '1': 'rain' has no state 'heavy'"),
        ("a.csv", "wet,rain\nyes\n", ":2: expected 2 cells, as in the first line, got 1"),
        ("a.csv", "wet,wet\nyes,no\n", ":1: 2 columns are named 'wet'"),
        ("a.csv", "wet,rain\n", ":1: expected rows below the line of names, got none"),
        ("a.csv", 'wet\n"yes\n', "expected CSV"),
        ("a.csv", "hail\nyes\n", "no variable is named 'hail'"),
        ("a.csv", "wet\nyes\n\0\n", "zero byte"),
        ("a.evid", "1 9 0", ":1: expected a variable, an integer from 0 to 3, got 9"),
        ("a.evid", "1 3 2", ":1: expected a state of variable wet"),
        ("a.evid", "", "the file is empty"),
    ],
)
def test_files_that_are_wrong(ask: Ask, lawn: str, write: Write, name: str, content: str, match: str) -> None:
    message = ask("infer", lawn, "--evidence", write(name, content), code=1)
    assert match in message
    assert len(message.splitlines()) == 1


def test_two_files_of_several_rows(ask: Ask, lawn: str, write: Write) -> None:
    rows = write("rows.csv", "wet\nyes\nno\n")
    assert "only one file may have several" in ask("infer", lawn, "--evidence", rows, rows, code=1)


def test_impossible_evidence_names_the_conflict(ask: Ask, lawn: str) -> None:
    message = ask("infer", lawn, "--evidence", "rain=no", "sprinkler=off", "wet=yes", "cloudy=no", code=1)
    assert "rain=no, sprinkler=off, wet=yes cannot hold together" in message


# Queries -------------------------------------------------------------------------------------------------------------


def test_a_query_file(ask_json: AskJson, lawn: str, write: Write) -> None:
    file = write("lawn.query", "2 3 1\n")
    found = ask_json("infer", lawn, "--query", file, "rain", "sprinkler")["marginals"]
    assert list(found) == ["wet", "rain", "sprinkler"]


def test_queries_that_are_wrong(ask: Ask, lawn: str, write: Write) -> None:
    assert "'rian' is neither a variable nor a file" in ask("infer", lawn, "--query", "rian", code=1)
    assert "expected a variable" in ask("infer", lawn, "--query", write("a.query", "1 7"), code=1)


# Usage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--task", "MPE"], "invalid choice: 'MPE'"),
        (["--task", "MMAP"], "--task MMAP needs --query"),
        (["--task", "MAP", "--query", "rain"], "--query goes with MAR and MMAP, not with MAP"),
        (["-k", "3"], "-k goes with MAP, not with MAR"),
        (["--samples", "3"], "--samples goes with SAMPLE, not with MAR"),
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
    assert "usage: besag infer" in message


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
