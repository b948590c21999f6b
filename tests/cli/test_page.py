"""The page on the command line shows what the commands print.

Its ```console blocks are run in order, in one folder, as on a terminal of 100 columns: `$ besag ...` prints what
is below it, and `$ cat FILE` writes what is below it to the file. Limits of memory and seconds differ between runs.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from besag import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"^\| `(\w+)` \| (all|[A-Z]+(?:, [A-Z]+)*) \| (.*) \|$", re.MULTILINE)
KEY_OF_INFO = re.compile(r"^\| `(\w+)` \| ([^|]*) \|$", re.MULTILINE)
VARYING = re.compile(r"of [\d.]+ [kMGT]B|\"seconds\": [\d.e-]+")


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Python code, and commands with what they print."""
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            yield "", block
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def test_commands_print_what_the_page_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: Callable[[int], None],
) -> None:
    monkeypatch.chdir(tmp_path)
    terminal(100)
    number = 0
    for command, expected in steps(PAGE.read_text(encoding="utf-8")):
        words = shlex.split(command)
        if not words:
            exec(expected, {})
        elif words[0] == "cat":
            Path(words[1]).write_text(expected)
        else:
            assert words[0] == "besag", command
            with suppress(SystemExit):
                cli.main(words[1:])
            out, err = capsys.readouterr()
            assert VARYING.sub("...", out + err) == VARYING.sub("...", expected), command
            number += 1
    assert number > 5


AskJson = Callable[..., Any]


@pytest.mark.parametrize("task", ["PR", "MAR", "MAP", "MMAP", "SAMPLE"])
def test_the_page_has_the_keys_of_json(ask_json: AskJson, lawn: str, task: str) -> None:
    query = ("--query", "rain") if task == "MMAP" else ()
    answer = ask_json("infer", lawn, "--task", task, *query)
    told = KEY.findall(PAGE.read_text(encoding="utf-8"))
    of_task = {key: value for key, tasks, value in told if tasks == "all" or task in tasks.split(", ")}
    assert list(answer) == list(of_task)
    nulls = [key for key, value in of_task.items() if task in value.partition("null for ")[2].split(", ")]
    assert [key for key, value in answer.items() if value is None] == ["row", *nulls]


def test_the_page_has_the_keys_of_info(ask_json: AskJson, lawn: str) -> None:
    answer = ask_json("info", lawn)
    table = PAGE.read_text(encoding="utf-8").partition("| key of `info` |")[2].partition("\n\n")[0]
    told = dict(KEY_OF_INFO.findall(table))
    assert list(answer) == list(told)
    assert told["cost"].partition(": ")[2].split(", ") == list(answer["cost"])
