"""`besag convert`: into another format, with losses on stderr."""

import subprocess
import sys
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

import besag
from besag import cli
from tests.cli.conftest import LAWN, Ask


def test_converted_files_are_the_same_model(lawn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "lawn.uai.gz"
    assert cli.main(["convert", lawn, str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("besag: UAI cannot carry the names of variables, the names of states")
    assert err.count("\n") == 1
    one, two = besag.load(lawn), besag.load(target)
    assert two.is_bayesian_network
    assert_array_equal(one.marginals()["wet"], two.marginals()["3"])


def test_what_carries_everything_is_quiet(ask: Ask, lawn: str, tmp_path: Path) -> None:
    target = tmp_path / "again.bif"
    assert ask("convert", lawn, str(target)) == ""
    assert_array_equal(besag.load(target).cpt("wet"), besag.load(lawn).cpt("wet"))


def test_an_old_file_is_replaced(ask: Ask, lawn: str, tmp_path: Path) -> None:
    target = tmp_path / "old.bif"
    target.write_text("old")
    ask("convert", lawn, str(target))
    assert besag.load(target).is_bayesian_network


def test_from_standard_input(tmp_path: Path) -> None:
    target = tmp_path / "lawn.bif"
    command = [sys.executable, "-m", "besag", "convert", "-", str(target)]
    subprocess.run(command, input=LAWN.encode(), check=True)
    assert besag.load(target).parents("wet") == ["sprinkler", "rain"]


def test_a_format_that_cannot_be_written(ask: Ask, lawn: str, tmp_path: Path) -> None:
    assert "names no format" in ask("convert", lawn, str(tmp_path / "lawn.txt"), code=1)


def test_a_failure_leaves_nothing_behind(ask: Ask, pair: str, tmp_path: Path) -> None:
    """A Markov network is no BIF."""
    before = sorted(tmp_path.iterdir())
    ask("convert", pair, str(tmp_path / "pair.bif"), code=1)
    assert sorted(tmp_path.iterdir()) == before
