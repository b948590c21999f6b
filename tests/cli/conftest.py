"""Models in files, and the command line in this process: `ask("infer", path, ...)` gives what it prints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from besag import cli

LAWN = """
network lawn { }
variable cloudy { type discrete [ 2 ] { no, yes }; }
variable rain { type discrete [ 2 ] { no, yes }; }
variable sprinkler { type discrete [ 2 ] { off, on }; }
variable wet { type discrete [ 2 ] { no, yes }; }
probability ( cloudy ) { table 0.5, 0.5; }
probability ( rain | cloudy ) { (no) 0.8, 0.2; (yes) 0.2, 0.8; }
probability ( sprinkler | cloudy ) { (no) 0.5, 0.5; (yes) 0.9, 0.1; }
probability ( wet | sprinkler, rain ) {
  (off, no) 1.0, 0.0; (off, yes) 0.1, 0.9; (on, no) 0.1, 0.9; (on, yes) 0.01, 0.99;
}
"""
PAIR = "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n 1 3\n\n6\n 1 2 0\n 4 1 1\n"

Ask = Callable[..., str]
Write = Callable[..., str]


@pytest.fixture
def write(write: Callable[..., Path]) -> Write:
    """Writes a file and gives its path as text."""
    return lambda name, content: str(write(name, content))


@pytest.fixture
def lawn(write: Write) -> str:
    """A Bayesian network as BIF: P(rain = yes | wet = yes) = 0.7079, P(wet = yes) = 0.6471."""
    return write("lawn.bif", LAWN)


@pytest.fixture
def pair(write: Write) -> str:
    """Two variables as UAI: the weights are 1 2 0 and 12 3 3, Z = 21."""
    return write("pair.uai", PAIR)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command that must end with `code`: stdout, or stderr where code is not 0."""

    def run(*arguments: str, code: int = 0) -> str:
        try:
            got = cli.main(arguments)
        except SystemExit as stop:
            got = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert got == code, err
        assert "Traceback" not in err
        if code:
            assert out == ""
            return err
        assert err == ""
        return out

    return run


@pytest.fixture
def ask_json(ask: Ask) -> Callable[..., Any]:
    """The same, with the answer as JSON, in which NaN and infinities are no numbers."""

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is no JSON")

    return lambda *arguments: json.loads(ask(*arguments, "--format", "json"), parse_constant=refuse)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """terminal(60): from now on stdout is a terminal of 60 columns."""

    def use(columns: int) -> None:
        monkeypatch.setattr("besag.cli.output.on_terminal", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))

    return use
