"""The page on the command line shows what the commands print.

Its ```console blocks are run in order, in one folder, as on a terminal of 100 columns: `$ besag ...` prints what
is below it, and `$ cat FILE` writes what is below it to the file. Limits of memory and seconds differ between runs.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from besag import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
            cli.main(words[1:])
            out, err = capsys.readouterr()
            assert VARYING.sub("...", out + err) == VARYING.sub("...", expected), command
            number += 1
    assert number > 5
