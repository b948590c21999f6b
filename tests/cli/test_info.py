"""`besag info`: size, cost, what is odd, metadata."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import besag
from besag.cli.facts import components
from besag.io.formats import format_named
from tests.cli.conftest import LAWN, Ask, Write

AskJson = Callable[..., Any]

# 0 - 1 by two factors in either order, 2 alone with a uniform factor, 3 in no factor and of one state, 4 - 5 equal
ODD = """MARKOV 6  2 2 2 1 2 2  5
2 0 1   2 1 0   1 2   2 4 5   1 4
4  1 2 3 4    4  1 2 3 5    2  7 7    4  1 0 0 1    2  1 2
"""


def pairs(text: str) -> dict[str, str]:
    return dict(line.split("\t") for line in text.splitlines())


def test_a_network(ask: Ask, lawn: str) -> None:
    told = pairs(ask("info", lawn))
    assert told["model"] == lawn
    assert told["format"] == "BIF"
    assert told["kind"] == "Bayesian network"
    assert told["variables"] == "4, of 2 states"
    assert told["factors"] == "4, by number of variables: 1 of 1, 2 of 2, 1 of 3"
    assert told["degrees"] == "1 to 3 factors a variable, 2 on average"
    assert told["parameters"] == "18"
    assert told["components"] == "1"
    assert told["treewidth"] == "at most 2"
    assert told["table entries"] == "16 in 2 cliques, 8 in the largest"
    assert told["time"].startswith("about ")
    assert told["auto takes"] == "junction_tree: the factor graph has cycles"


def test_cost_is_that_of_the_model(ask_json: AskJson, lawn: str) -> None:
    cost = besag.load(lawn).cost()
    told = ask_json("info", lawn)["cost"]
    assert (told["width"], told["entries"], told["bytes"]) == (cost.width, cost.entries, cost.bytes)
    assert told["engine"] == "junction_tree"
    assert told["fits"] is True


def test_cost_under_evidence(ask_json: AskJson, lawn: str, write: Write) -> None:
    assert ask_json("info", lawn, "--evidence", "cloudy=yes")["cost"]["entries"] < 16
    rows = write("rows.csv", "wet\nyes\nno\n")
    assert ask_json("info", lawn, "--evidence", rows)["cost"]["width"] == 2


def test_what_is_odd(ask_json: AskJson, write: Write) -> None:
    told = ask_json("info", write("odd.uai", ODD))
    assert told["kind"] == "Markov network"
    assert told["format"] == "UAI"
    assert told["components"] == 4
    assert told["states"] == {"least": 1, "most": 2}
    assert told["arities"] == {"1": 2, "2": 3}
    assert told["degrees"] == {"least": 0, "mean": pytest.approx(8 / 6), "most": 2}
    assert {one["what"]: (one["times"], one["names"]) for one in told["odd"]} == {
        "variables of one state": (1, ["3"]),
        "isolated variables": (2, ["2", "3"]),
        "uniform tables, perhaps never set": (1, ["f(2)"]),
        "deterministic tables": (1, ["f(4,5)"]),
        "tables with hard zeros, 12.5% of all entries": (1, ["f(4,5)"]),
        "factors on the variables of another one": (1, ["f(1,0)"]),
    }


def test_what_is_odd_in_a_network(ask: Ask, lawn: str, write: Write) -> None:
    assert "odd\tuniform tables, perhaps never set: 1 (cloudy)\n" in ask("info", lawn)
    sure = write("sure.bif", LAWN.replace("0.5, 0.5", "0.3, 0.7").replace("1.0, 0.0", "0.9, 0.1"))
    assert "odd\tnothing" in ask("info", sure)


def test_many_oddities_are_counted(ask: Ask, write: Write) -> None:
    model = write("free.uai", f"MARKOV 50 {'2 ' * 50} 0")
    assert "odd\tisolated variables: 50 (0, 1, 2, 3, 4, ...)\n" in ask("info", model)


def test_metadata_is_told_briefly(ask: Ask, ask_json: AskJson, lawn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = besag.load(lawn).with_metadata(
        {"name": "lawn", "comment": "first line\nsecond line"},
        {"rain": {"position": (1, 2)}, "wet": {"position": (3, 4), "label": "Wet"}},
    )
    monkeypatch.setattr("besag.cli.info.read_model", lambda _: (model, format_named("bif")))
    told = pairs(ask("info", lawn))
    assert told["name"] == "lawn"
    assert told["comment"] == "first line ..."
    assert told["variables' position"] == "2 of 4"
    assert told["variables' label"] == "1 of 4"
    found = ask_json("info", lawn)
    assert found["metadata"]["comment"] == "first line\nsecond line"
    assert found["variables_metadata"]["rain"] == {"position": [1, 2]}


def test_metadata_is_no_python(ask: Ask, lawn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "comment": "",
        "properties": [f"key{i} = {i}" for i in range(40)],
        "xdsl": {"version": 1.0, "genie": {"tag": "genie", "children": ["a", "b"]}},
    }
    model = besag.load(lawn).with_metadata(entries)
    monkeypatch.setattr("besag.cli.info.read_model", lambda _: (model, format_named("bif")))
    assert ask("info", lawn).partition("properties\t")[2].splitlines() == [
        "key0 = 0",
        *(f"\tkey{i} = {i}" for i in range(1, 5)),
        "\t... and 35 more",
        "xdsl\tversion = 1.0",
        "\tgenie = 2 items",
    ]


def test_what_does_not_fit_is_no_failure(ask: Ask, write: Write) -> None:
    n = 60
    edges = [(i * n + j, i * n + j + 1) for i in range(n) for j in range(n - 1)]
    edges += [(i * n + j, i * n + n + j) for i in range(n - 1) for j in range(n)]
    scopes = " ".join(f"2 {a} {b}" for a, b in edges)
    model = write("grid.uai", f"MARKOV {n * n} {'2 ' * n * n} {len(edges)} {scopes} {'4 2 1 1 2 ' * len(edges)}")
    told = pairs(ask("info", model))
    assert told["auto takes"].startswith("bp: width ")
    assert told["memory"].endswith(": does not fit")
    assert ask("infer", model, "--task", "PR", "--engine", "exact", code=3).count("--memory-limit") == 1


def test_long_values_are_wrapped_on_a_terminal(ask: Ask, lawn: str, terminal: Callable[[int], None]) -> None:
    terminal(40)
    lines = ask("info", lawn).splitlines()
    assert max(map(len, lines)) <= max(40, len("model          ") + len(lawn))
    assert any(line.startswith(" " * 15) for line in lines)


def test_components_of_a_long_chain() -> None:
    order = [3, 0, 4, 1, 5, 2, 6]
    chain = besag.markov_network([2] * 9, [((a, b), [[0, 1], [1, 0]]) for a, b in pairwise(order)])
    assert components(chain.graph).tolist() == [0] * 7 + [7, 8]
