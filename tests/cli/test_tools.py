"""`besag compare`, `sample` and `plot`, and the forms of answers that other programs read."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import besag

Ask = Callable[..., str]


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_of_marginals(ask: Ask, lawn: str) -> None:
    rows = read_csv(ask("infer", lawn, "--evidence", "wet=yes", "--query", "rain", "--format", "csv"))
    assert [(row["variable"], row["state"]) for row in rows] == [("rain", "no"), ("rain", "yes")]
    assert float(rows[1]["probability"]) == pytest.approx(0.4581 / 0.6471)


def test_csv_quotes_what_needs_it(ask: Ask, write: Callable[..., str]) -> None:
    path = write("odd.json", "{}")
    besag.save(besag.markov_network({"a,b": ['x"y', "z"]}, [(("a,b",), [0.0, 0.0])]), path)
    assert read_csv(ask("infer", path, "--format", "csv"))[0] == {
        "variable": "a,b",
        "state": 'x"y',
        "probability": "0.5",
    }


def test_a_line_of_json_for_each_row(ask: Ask, lawn: str, write: Callable[..., str]) -> None:
    rows = write("rows.csv", "wet\nyes\nno\n")
    lines = ask("infer", lawn, "--evidence", rows, "--format", "jsonl").splitlines()
    assert [json.loads(line)["marginals"]["wet"]["yes"] for line in lines] == [1.0, 0.0]


def test_tasks_in_any_letters(ask: Ask, lawn: str) -> None:
    assert ask("infer", lawn, "--task", "map") == ask("infer", lawn, "--task", "MAP")


def test_samples(ask: Ask, lawn: str, tmp_path: Path) -> None:
    printed = ask("sample", lawn, "-n", "50", "--evidence", "wet=yes", "--seed", "3")
    rows = read_csv(printed)
    assert len(rows) == 50
    assert {row["wet"] for row in rows} == {"yes"}
    drawn = besag.load(lawn).sample(50, {"wet": "yes"}, seed=3)
    assert rows == drawn.astype(str).to_dict("records")
    out = tmp_path / "draws.csv"
    assert ask("sample", lawn, "-n", "50", "--evidence", "wet=yes", "--seed", "3", "--out", str(out)) == ""
    assert out.read_text() == printed


def test_engines_side_by_side(ask: Ask, ask_json: Callable[..., Any], lawn: str) -> None:
    brute, bp = ask_json("compare", lawn, "brute", "bp", "--evidence", "wet=yes")
    assert (brute["engine"], brute["bound"], brute["error"]) == ("brute", "exact", 0.0)
    assert brute["log_partition"] == pytest.approx(-0.4352, abs=1e-4)
    assert bp["error"] > 0
    header, *lines = ask("compare", lawn, "brute", "bp", "--evidence", "wet=yes").splitlines()
    assert header.split("\t") == ["engine", "log_partition", "bound", "error", "seconds", "converged"]
    assert [line.split("\t")[0] for line in lines] == ["brute", "bp"]
    assert read_csv(ask("compare", lawn, "brute", "--format", "csv"))[0]["bound"] == "exact"


def test_an_engine_that_is_none(ask: Ask, lawn: str) -> None:
    assert "did you mean 'brute'" in ask("compare", lawn, "brut", code=1)


@pytest.mark.parametrize("command", [["compare", "brute"], ["sample"]])
def test_one_row_of_evidence(ask: Ask, lawn: str, write: Callable[..., str], command: list[str]) -> None:
    rows = write("rows.csv", "wet\nyes\nno\n")
    name, *more = command
    assert "the evidence has 2 rows" in ask(name, lawn, *more, "--evidence", rows, code=2)


@pytest.mark.parametrize("more", [[], ["--evidence", "wet=yes"], ["--structure"]])
def test_pictures(ask: Ask, lawn: str, tmp_path: Path, more: list[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "lawn.svg"
    assert ask("plot", lawn, "--out", str(out), *more) == ""
    text = out.read_text()
    assert text.startswith("<?xml")
    assert len(text) > 10_000
