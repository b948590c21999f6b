"""The command line: what `besag demo` prints and writes, exit codes, and a start that loads nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

import besag
from besag import cli, errors


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "besag", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_demo_prints_and_draws(tmp_path: Path) -> None:
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if not line.startswith(("besag compiles", "besag has compiled"))]
    assert told == []
    lines = done.stdout.splitlines()
    assert "either    no, yes  tub, lung" in lines  # the network
    assert "bronc     no      0.5500  0.1886  -0.3614  ####" in lines  # the marginals
    assert "log P(asia=yes, dysp=yes) = -5.403372, that is P = 0.004501" in lines
    assert "  tub=no, smoke=yes, lung=no, bronc=yes, either=no, xray=no" in lines
    assert any(line.startswith("Engine: ") and "(exact); the factor graph has cycles" in line for line in lines)
    wrong = {line.rsplit(maxsplit=1)[0]: float(line.rsplit(maxsplit=1)[1][:-1]) for line in lines if line.endswith("%")}
    assert wrong["with neighbours"] < 0.6 * wrong["pixels alone"]
    for name in ("demo.png", "segmentation.png", "certainty.png"):
        assert f"Picture: {Path('out') / name}" in lines
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    assert cli.main(["demo", "--out", str(tmp_path / "out")]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("No picture was")]
    assert [line.partition(":")[0] for line in told] == ["No picture was drawn", "No picture was labelled"]
    assert all("a picture needs matplotlib" in line and line.endswith("pip install 'besag[plot]'") for line in told)
    assert not (tmp_path / "out").exists()


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
                "expected infer, info, compare, sample, plot, convert, diff, fit, predict or demo, got 'demos'; "
                "did you mean 'demo'? (see besag --help)"
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
