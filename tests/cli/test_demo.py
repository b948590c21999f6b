"""The command line: what `besag demo` prints and writes, exit codes, and a start that loads nothing heavy."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import besag
from besag import cli, errors
from besag.cli.demo_page import Section, Table, page_of


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "besag", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def rows_of(lines: list[str]) -> dict[str, list[str]]:
    """Rows of the tables on the terminal, by their first cell."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
    return {row[0]: row[1:] for row in cells if len(row) > 1}


def percent(row: list[str]) -> float:
    return float(row[-1].rstrip("%"))


def test_demo_prints_and_draws(tmp_path: Path) -> None:
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if not line.startswith(("besag compiles", "besag has compiled"))]
    assert told == []
    lines = done.stdout.splitlines()
    assert len(lines) < 30
    rows = rows_of(lines)
    assert rows["bronc"] == ["0.4500", "0.8114"]
    hidden, truth = (percent(rows[name]) for name in ("HMM, no labels: best path", "the true model: best path"))
    assert percent(rows["always the fair die"]) + 15 < hidden <= truth + 1
    assert percent(rows["chain CRF, dice told"]) > percent(rows["always the fair die"]) + 15
    assert percent(rows["with neighbours, bp[tolerance=1e-3]"]) < 0.6 * percent(rows["pixels alone"])
    page = (tmp_path / "out" / "demo.html").read_text(encoding="utf-8")
    assert lines[-1].endswith(str(Path("out") / "demo.html"))
    assert page.count('<img src="data:image/png;base64,') == 4
    assert not re.search(r"(src|href)=\"(?!data:)", page)  # it needs no other file
    assert "<td>junction_tree</td><td>-5.403</td><td>exact</td><td>0.0000</td>" in page
    assert "log P(asia=yes, dysp=yes) = -5.403372" in page


def test_demo_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    assert cli.main(["demo", "--out", str(tmp_path / "out")]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("No pictures")]
    assert len(told) == 1
    assert "a picture needs matplotlib" in told[0]
    assert told[0].endswith("pip install 'besag[plot]'")
    page = (tmp_path / "out" / "demo.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert page.count("<h2>") == 2


def test_a_page_shows_text_as_it_is() -> None:
    section = Section("a < b", "x & y", (Table("rows", ("name",), (("<i>",),)),))
    page = page_of([section], "end")
    assert "<h2>a &lt; b</h2><p>x &amp; y</p>" in page
    assert "<td>&lt;i&gt;</td>" in page


def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 1
    message = capsys.readouterr().err
    assert message.startswith("besag: ")
    assert "Traceback" not in message


def test_an_error_of_the_library_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str) -> besag.Model:
        raise besag.errors.ModelError(f"no {name}")

    monkeypatch.setattr("besag.data.textbook.bundled", refuse)
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "besag: no asia\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND (see besag --help)"),
        (
            ["demos"],
            (
                "expected infer, info, compare, sample, plot, convert, diff, fit, predict, warmup or demo, got 'demos';"
                " did you mean 'demo'? (see besag --help)"
            ),
        ),
        (["demo", "--nonsense"], "unexpected argument '--nonsense' (see besag demo --help)"),
        (["demo", "--oot=x"], "unexpected argument '--oot=x'; did you mean '--out'? (see besag demo --help)"),
        (["demo", "more"], "unexpected argument 'more' (see besag demo --help)"),
        (["--nonsense", "demo"], "unexpected argument '--nonsense' (see besag --help)"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr() == ("", f"besag: {message}\n")


def test_version() -> None:
    assert run("--version").stdout == f"besag {besag.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom besag.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numpy', 'pandas', 'numba', 'matplotlib', 'networkx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "demo" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_stops_early(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "besag", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
