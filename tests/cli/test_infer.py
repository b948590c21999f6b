"""`besag infer`: every task, as a table, in a pipe and as JSON."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from besag import cli
from besag.cli import infer
from besag.infer.bp.engine import MessagePassing
from besag.infer.result import Result
from tests.cli.conftest import Ask, Write

WET = ("--evidence", "wet=yes")


def lines(text: str) -> list[list[str]]:
    """Cells of the lines that are no notes."""
    return [line.split("\t") for line in text.splitlines() if not line.startswith("# ")]


def test_partition(ask: Ask, pair: str) -> None:
    header, (log_z, log10_z) = lines(ask("infer", pair, "--task", "PR"))
    assert header == ["log Z", "log10 Z"]
    assert float(log_z) == pytest.approx(math.log(21), rel=1e-11)
    assert float(log10_z) == pytest.approx(math.log10(21), rel=1e-11)


def test_partition_without_evidence_is_zero(ask: Ask, lawn: str) -> None:
    assert lines(ask("infer", lawn, "--task", "PR"))[1] == ["0", "0"]


def test_marginals_are_the_default(ask: Ask, lawn: str) -> None:
    header, *rows = lines(ask("infer", lawn, *WET))
    assert header == ["variable", "state", "probability"]
    assert [row[:2] for row in rows[2:6]] == [
        ["rain", "no"],
        ["rain", "yes"],
        ["sprinkler", "off"],
        ["sprinkler", "on"],
    ]
    assert float(rows[3][2]) == pytest.approx(0.7079, abs=5e-5)
    assert rows[6:] == [["wet", "no", "0"], ["wet", "yes", "1"]]


def test_notes_say_how_good_an_answer_is(ask: Ask, lawn: str) -> None:
    notes = [line for line in ask("infer", lawn, *WET).splitlines() if line.startswith("# ")]
    assert notes[0].startswith("# log Z = -0.435")
    assert notes[1] == "# exact, by junction_tree: the factor graph has cycles"


def test_marginals_of_a_query(ask: Ask, lawn: str) -> None:
    rows = lines(ask("infer", lawn, *WET, "--query", "sprinkler", "rain"))
    assert [row[0] for row in rows[1:]] == ["sprinkler", "sprinkler", "rain", "rain"]


def test_most_probable_labelling(ask: Ask, pair: str) -> None:
    text = ask("infer", pair, "--task", "MAP")
    assert lines(text) == [["variable", "state"], ["0", "1"], ["1", "0"]]
    assert text.startswith(f"# energy = {-math.log(12):.12g}, log10 weight = {math.log10(12):.12g}, proven optimal\n")


def test_the_best_labellings(ask: Ask, pair: str) -> None:
    header, *rows = lines(ask("infer", pair, "--task", "MAP", "-k", "3"))
    assert header == ["rank", "energy", "log10 weight", "0", "1"]
    assert [round(10 ** float(row[2])) for row in rows] == [12, 3, 3]
    assert rows[0][3:] == ["1", "0"]


def test_more_labellings_than_there_are(ask: Ask, pair: str) -> None:
    assert len(lines(ask("infer", pair, "--task", "MAP", "-k", "100"))) == 1 + 5


def test_marginal_map(ask: Ask, pair: str) -> None:
    text = ask("infer", pair, "--task", "MMAP", "--query", "1")
    assert lines(text) == [["variable", "state"], ["1", "0"]]
    assert f"log10 weight = {math.log10(13):.12g}" in text


def test_samples(ask: Ask, lawn: str) -> None:
    command = ("infer", lawn, "--task", "SAMPLE", "--samples", "200", *WET, "--seed", "3")
    header, *rows = lines(ask(*command))
    assert header == ["cloudy", "rain", "sprinkler", "wet"]
    assert len(rows) == 200
    assert {row[3] for row in rows} == {"yes"}
    assert 0.6 < sum(row[1] == "yes" for row in rows) / 200 < 0.8
    assert lines(ask(*command)) == [header, *rows]
    assert lines(ask(*command[:-1], "4")) != [header, *rows]


def test_samples_are_evidence_again(ask: Ask, lawn: str, write: Write) -> None:
    drawn = write("drawn.tsv", ask("infer", lawn, "--task", "SAMPLE", "-n", "5"))
    assert len(lines(ask("infer", lawn, "--task", "PR", "--evidence", drawn))) == 1 + 5


def test_an_engine_of_choice(ask: Ask, lawn: str) -> None:
    limits = ("--threads", "1", "--memory-limit", "1G", "--time-limit", "100")
    assert "# exact, by brute" in ask("infer", lawn, "--engine", "brute", *limits)


# JSON ----------------------------------------------------------------------------------------------------------------

AskJson = Callable[..., Any]
PARTITION = ["log_partition", "log10_partition", "log_partition_bounds"]
COMMON = ["task", "model", "row", "engine", "bound", *PARTITION, "diagnostics"]
LABELLING = ["assignment", "energy", "log10_weight", "energy_bound", "optimal", "solutions"]


@pytest.mark.parametrize(
    ("task", "more", "keys"),
    [
        ("PR", (), []),
        ("MAR", (), ["marginals"]),
        ("MAP", (), LABELLING),
        ("MAP", ("-k", "2"), LABELLING),
        ("MMAP", ("--query", "rain"), LABELLING),
        ("SAMPLE", (), ["samples"]),
    ],
)
def test_keys_of_json(ask_json: AskJson, lawn: str, task: str, more: tuple[str, ...], keys: list[str]) -> None:
    answer = ask_json("infer", lawn, "--task", task, *more, *WET)
    assert list(answer) == COMMON + keys
    assert answer["task"] == task
    assert answer["model"] == lawn
    assert answer["bound"] == "exact"
    assert answer["diagnostics"]["engine"] == answer["engine"]
    if task in ("PR", "MAR", "SAMPLE"):
        assert answer["log_partition"] == pytest.approx(math.log(0.6471))
        assert answer["log_partition_bounds"] == [answer["log_partition"]] * 2


def test_json_of_marginals(ask_json: AskJson, lawn: str) -> None:
    marginals = ask_json("infer", lawn, *WET)["marginals"]
    assert list(marginals) == ["cloudy", "rain", "sprinkler", "wet"]
    assert marginals["rain"]["yes"] == pytest.approx(0.4581 / 0.6471, rel=1e-12)
    assert marginals["wet"] == {"no": 0.0, "yes": 1.0}


def test_json_of_labellings(ask_json: AskJson, pair: str) -> None:
    answer = ask_json("infer", pair, "--task", "MAP", "-k", "2")
    assert answer["assignment"] == {"0": "1", "1": "0"}
    assert answer["optimal"] is True
    assert answer["energy"] == answer["energy_bound"] == pytest.approx(-math.log(12))
    assert [round(math.exp(-one["energy"])) for one in answer["solutions"]] == [12, 3]


def test_json_of_samples(ask_json: AskJson, lawn: str) -> None:
    samples = ask_json("infer", lawn, "--task", "SAMPLE", "-n", "7", *WET)["samples"]
    assert samples["wet"] == ["yes"] * 7
    assert all(len(column) == 7 for column in samples.values())


@pytest.mark.parametrize("rows", [1, 2])
def test_numbers_that_json_has_not(
    ask_json: AskJson, lawn: str, write: Write, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = infer._answer

    def odd(*arguments: Any) -> Result:
        result = answer(*arguments)
        return replace(
            result,
            bound="lower",
            log_partitions=np.full(rows, -np.inf),
            diagnostics=result.diagnostics.extend(residual=np.float64("nan"), sizes=np.array([1.0, -np.inf])),
        )

    monkeypatch.setattr(infer, "_answer", odd)
    found = ask_json("infer", lawn, "--evidence", write("rows.csv", "wet\n" + "yes\n" * rows))
    for one in found if rows > 1 else [found]:
        assert one["log_partition"] == one["log10_partition"] == "-Infinity"
        assert one["log_partition_bounds"] == ["-Infinity", "Infinity"]
        assert one["diagnostics"]["residual"] is None
        assert one["diagnostics"]["sizes"] == [1.0, "-Infinity"]


# Rows of evidence ----------------------------------------------------------------------------------------------------


def test_rows_in_a_table(ask: Ask, lawn: str, write: Write) -> None:
    rows = write("rows.csv", ",wet,cloudy\nmon,yes,\ntue,no,yes\n")
    found = lines(ask("infer", lawn, "--evidence", rows, "--query", "rain"))
    assert found[0] == ["row", "variable", "state", "probability"]
    assert [row[0] for row in found[1:]] == ["mon", "mon", "tue", "tue"]
    assert float(found[2][3]) == pytest.approx(0.7079, abs=5e-5)


def test_rows_in_json(ask_json: AskJson, lawn: str, write: Write) -> None:
    rows = write("rows.csv", "wet,cloudy\nyes,\nno,yes\n")
    for task in ("PR", "MAR", "MAP", "SAMPLE"):
        found = ask_json("infer", lawn, "--task", task, "--evidence", rows)
        assert [answer["row"] for answer in found] == ["0", "1"]
    alone = ask_json("infer", lawn, "--evidence", "wet=no", "cloudy=yes")["marginals"]
    second = ask_json("infer", lawn, "--evidence", rows)[1]["marginals"]
    assert list(second) == list(alone)
    assert all(second[name] == pytest.approx(alone[name]) for name in alone)


def test_best_of_each_row(ask: Ask, lawn: str, write: Write) -> None:
    rows = write("rows.csv", "wet\nyes\nno\n")
    header, *found = lines(ask("infer", lawn, "--task", "MAP", "-k", "2", "--evidence", rows))
    assert header[:2] == ["row", "rank"]
    assert [row[:2] for row in found] == [["0", "1"], ["0", "2"], ["1", "1"], ["1", "2"]]
    assert [row[-1] for row in found] == ["yes", "yes", "no", "no"]
    assert len(lines(ask("infer", lawn, "--task", "MMAP", "--query", "rain", "--evidence", rows))) == 1 + 2


def test_tables_of_many_parts(ask: Ask, lawn: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is the same in whatever parts it is made."""
    rows = write("rows.csv", ",wet,cloudy\n" + "mon,yes,\ntue,no,yes\nwed,,\n" * 5)
    tasks = (("PR",), ("MAR",), ("MAP", "-k", "3"), ("SAMPLE", "-n", "4"), ("MMAP", "--query", "rain", "wet"))
    for task in tasks:
        command = ("infer", lawn, "--task", *task, "--evidence", rows)
        whole = ask(*command)
        monkeypatch.setattr("besag.cli.tables.CELLS", 11)
        assert ask(*command) == whole
        monkeypatch.undo()


# Terminals -----------------------------------------------------------------------------------------------------------


def test_a_table_on_a_terminal(ask: Ask, lawn: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    found = ask("infer", lawn, "--query", "rain", *WET).splitlines()
    assert found[1:] == [
        "exact, by junction_tree: the factor graph has cycles",
        "",
        "variable  state  probability",
        "rain      no        0.292072  ######",
        "          yes       0.707928  ##############",
    ]


def test_lines_are_cut_on_a_terminal_only(ask: Ask, lawn: str, terminal: Callable[[int], None]) -> None:
    command = ("infer", lawn, "--task", "SAMPLE")
    assert max(map(len, ask(*command).splitlines())) > 20
    terminal(20)
    found = ask(*command).splitlines()
    assert max(map(len, found)) == 20
    assert all(line.endswith("...") for line in found)


def test_small_probabilities_are_not_zero(ask: Ask, write: Write, terminal: Callable[[int], None]) -> None:
    terminal(80)
    model = write("small.uai", "MARKOV 1 3 1 1 0 3 1e-9 1 0")
    assert [line.split()[-2 if "#" in line else -1] for line in ask("infer", model).splitlines()[-3:]] == [
        "1.0e-09", "1.000000", "0.000000",
    ]  # fmt: skip


def test_names_cannot_steer_a_terminal(ask: Ask, write: Write) -> None:
    model = write(
        "evil.bif",
        'network a { }\nvariable "x\x1b[2J" { type discrete [ 1 ] { s }; }\nprobability ( "x\x1b[2J" ) { table 1.0; }',
    )
    rows = write("rows.tsv", "\tx\x1b[2J\n\x1b[1m\ts\n\x1b[0m\ts\n")
    for task in (("MAR",), ("MAP",), ("SAMPLE",), ("MMAP", "--query", "x\x1b[2J")):
        for evidence in ((), ("--evidence", rows)):
            text = ask("infer", model, "--task", *task, *evidence)
            assert "\x1b" not in text
            assert "x\\x1b[2J" in text
            assert ("\\x1b[1m" in text) == bool(evidence)


def test_progress_is_told_on_request(lawn: str, capsys: pytest.CaptureFixture[str]) -> None:
    from besag import cli

    assert cli.main(["infer", lawn, "--progress"]) == 0
    told = capsys.readouterr().err
    assert f"reading {lawn}" in told
    assert "answering MAR with engine auto" in told


FRUSTRATED = "MARKOV 3 2 2 2 3 2 0 1 2 1 2 2 2 0 4 0 1 1 0 4 0 1 1 0 4 0 1 1 0"  # three that all must differ
HARD = "MARKOV 3 2 2 2 3 2 0 1 2 1 2 2 2 0 4 0 1 1 1 4 0 1 1 1 4 1 1 1 0"


@pytest.mark.parametrize("form", ["table", "json", "uai"])
def test_no_labelling_is_printed_where_none_is_possible(ask: Ask, write: Write, form: str) -> None:
    model = write("frustrated.uai", FRUSTRATED)
    message = ask("infer", model, "--task", "MAP", "--engine", "bp", "--format", form, code=1)
    assert "the model allows no labelling" in message


@pytest.mark.parametrize("engine", ["bp", "auto", "exact"])
def test_a_labelling_of_positive_weight_is_found_among_hard_zeros(ask: Ask, write: Write, engine: str) -> None:
    answer = json.loads(ask("infer", write("hard.uai", HARD), "--task", "MAP", "--engine", engine, "--format", "json"))
    assert answer["energy"] == 0
    assert answer["assignment"]["1"] == "1" or answer["assignment"]["0"] == "1"


def test_engines_without_log_z_answer_too(ask: Ask, lawn: str) -> None:
    engine = ("--engine", "gibbs[n_samples=2000]")
    table = ask("infer", lawn, *engine)
    assert table.startswith("# estimate, by gibbs")
    drawn = ask("infer", lawn, "--task", "SAMPLE", "-n", "3", *engine)
    assert len(drawn.splitlines()) == 4


def test_a_query_of_no_variable(ask: Ask, lawn: str, write: Write) -> None:
    empty = write("empty.query", "0")
    assert "--query names no variable" in ask("infer", lawn, "--query", empty, code=1)


def grid(n: int) -> str:
    """A square grid that wants neighbours to be equal."""
    edges = [(i * n + j, i * n + j + 1) for i in range(n) for j in range(n - 1)]
    edges += [(i * n + j, i * n + n + j) for i in range(n - 1) for j in range(n)]
    scopes = " ".join(f"2 {a} {b}" for a, b in edges)
    return f"MARKOV {n * n} {'2 ' * n * n} {len(edges)} {scopes} {'4 2 1 1 2 ' * len(edges)}"


def test_auto_answers_what_exact_inference_cannot(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["infer", write("grid.uai", grid(60)), "--task", "PR", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("besag: exact inference would be too large")
    assert "a longer --time-limit may buy accuracy. --engine exact " in err
    assert "_limit" not in err
    assert err.count("\n") == 1
    answer = json.loads(out)
    assert answer["bound"] == "estimate"
    low, high = answer["log_partition_bounds"]
    assert low <= answer["log_partition"] <= high


def test_the_best_so_far_is_printed_at_the_time_limit(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--engine", "bp[tolerance=0,max_iterations=100000000]", "--time-limit", "0.5", "--format", "json")
    assert cli.main(["infer", write("grid.uai", grid(10)), "--task", "PR", *options]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["diagnostics"]["stopped"] == "time_limit"
    assert answer["log_partition"] > 0


def test_an_interrupted_answer_is_told(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: MessagePassing) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(MessagePassing, "step", interrupted)
    assert cli.main(["infer", write("grid.uai", grid(3)), "--engine", "bp"]) == 130
    out, err = capsys.readouterr()
    assert out.startswith("# ")
    assert "interrupted: this is the best answer so far" in err
