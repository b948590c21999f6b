"""The command line as a process: standard input, exit codes, pipes that close, limits."""

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from besag import cli
from besag.cli import infer
from besag.infer.result import Result
from tests.cli.conftest import LAWN, PAIR, Ask, Write

BESAG = [sys.executable, "-m", "besag"]


def run(*arguments: str, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = os.environ | environment
    return heard(subprocess.run([*BESAG, *arguments], input=given, capture_output=True, check=False, env=env))


def heard(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[bytes]:
    """Without what is said of compiling, which depends on what the cache has."""
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = b"".join(x for x in lines if not x.startswith((b"besag compiles kernels", b"besag has compiled")))
    return done


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (LAWN.encode(), []),
        (PAIR.encode(), []),
        (gzip.compress(PAIR.encode()), []),
        (LAWN.replace("network", "// no format begins so\nnetwork").encode(), ["--input-format", "bif"]),
    ],
    ids=["BIF", "UAI", "gzip", "a format that is told"],
)
def test_a_model_from_standard_input(given: bytes, options: list[str]) -> None:
    done = run("infer", "-", "--task", "PR", *options, given=given)
    assert done.returncode == 0, done.stderr
    log_z = float(done.stdout.split()[-2])
    assert log_z == (0 if b"lawn" in given else pytest.approx(3.0445224377))


def test_noise_on_standard_input() -> None:
    done = run("infer", "-", given=bytes(range(256)))
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"besag: <stdin>: ")
    assert b"Traceback" not in done.stderr


def test_nothing_on_standard_input() -> None:
    done = run("info", "-")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the file is empty" in done.stderr


def test_a_file_that_is_absent(ask: Ask) -> None:
    assert ask("infer", "absent.bif", code=1) == "besag: absent.bif: No such file or directory\n"


def test_a_file_that_is_broken(ask: Ask, write: Write) -> None:
    path = write("broken.uai", PAIR[:20])
    assert ask("info", path, code=1).startswith(f"besag: {path}:")


def test_too_large_for_the_memory(ask: Ask, lawn: str) -> None:
    message = ask("infer", lawn, "--engine", "brute", "--memory-limit", "100", code=3)
    assert message.startswith("besag: brute force would look at 16 labellings")
    assert "more than --memory-limit 100;" in message


def test_out_of_memory(ask: Ask, lawn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("besag.cli.infer.run", fail)
    assert ask("infer", lawn, code=3) == "besag: out of memory\n"


@pytest.mark.slow
def test_too_late() -> None:
    """The model never comes: nobody closes standard input."""
    command = [*BESAG, "infer", "-", "--time-limit", "0.2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.wait(60) == 3
        assert process.stdout.read() == b""
        assert process.stderr.read().startswith(b"besag: no answer within --time-limit 0.2 s")


@pytest.mark.slow
def test_too_late_for_the_work(write: Write) -> None:
    """A hundred and twenty thousand rows on a grid of 12 x 12 take minutes, whichever engine is chosen."""
    n = 12
    edges = [(v, v + 1) for v in range(n * n) if (v + 1) % n] + [(v, v + n) for v in range(n * n - n)]
    scopes = " ".join(f"2 {a} {b}" for a, b in edges)
    model = write("grid.uai", f"MARKOV {n * n} {'2 ' * n * n} {len(edges)} {scopes} {'4 2 1 1 2 ' * len(edges)}")
    rows = write("rows.csv", "0\n" + "0\n1\n" * 60_000)
    done = run("infer", model, "--evidence", rows, "--threads", "1", "--time-limit", "1")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"besag: bp: 120000 rows of evidence take longer than")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("format_", ["table", "json", "uai"])
def test_the_best_so_far_is_printed(
    lawn: str, format_: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["infer", lawn, "--format", format_, "--query", "rain"][: 4 if format_ == "uai" else None]
    answer = infer._answer

    def stopped(*arguments: Any) -> Result:
        result = answer(*arguments)
        return replace(result, diagnostics=result.diagnostics.extend(converged=False))

    monkeypatch.setattr(infer, "_answer", stopped)
    assert cli.main(command) == 3
    assert "0.5" in capsys.readouterr().out


def test_in_time(lawn: str) -> None:
    done = run("infer", lawn, "--task", "PR", "--time-limit", "1000")
    assert (done.returncode, done.stderr) == (0, b"")


def test_interrupted(ask: Ask, lawn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("besag.cli.infer.run", interrupt)
    assert ask("infer", lawn, code=130) == ""


# What a shell starts in the background is deaf to interrupts, and so are its children.
HEARING = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("engine", "code"), [("exact", -signal.SIGINT), ("auto", 130)])
def test_interrupted_while_it_works(engine: str, code: int) -> None:
    """Ctrl-C ends an exact engine at once, even where Python has no say; a shell tells this as 130."""
    command = [sys.executable, "-c", HEARING, *BESAG, "infer", "-", "--progress", "--engine", engine]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"reading -" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == code
        assert process.stdout.read() == process.stderr.read() == b""


def test_a_reader_that_stops_early(lawn: str) -> None:
    command = [*BESAG, "infer", lawn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("format_", ["table", "json"])
def test_head(tmp_path: Path, format_: str) -> None:
    """More than a pipe holds: the writer must see that the reader has gone."""
    (tmp_path / "pair.uai").write_text(PAIR)
    (tmp_path / "rows.csv").write_text("0\n" + "1\n" * 20_000)
    command = f"$BESAG infer pair.uai --evidence rows.csv --format {format_} | head -c 4; echo ${{PIPESTATUS[0]}}"
    done = shell(command, tmp_path)
    assert done.stderr == b""
    assert done.stdout.endswith(b"141\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
@pytest.mark.parametrize(
    "command",
    [
        "infer pair.uai > /dev/full",
        "infer pair.uai --task SAMPLE -n 100000 --format json > /dev/full",
        "convert pair.uai - --output-format uai > /dev/full",
        "convert pair.uai /dev/full --output-format uai",
    ],
)
def test_a_full_disk(tmp_path: Path, command: str) -> None:
    (tmp_path / "pair.uai").write_text(PAIR)
    done = shell(f"$BESAG {command}", tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"besag: cannot write: No space left on device\n"


def test_letters_that_the_output_cannot_show(tmp_path: Path) -> None:
    path = tmp_path / "regen.bif"
    path.write_text(LAWN.replace("wet", '"naß"'), encoding="utf-8")
    done = run("infer", str(path), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"na\\xdf\tno\t" in done.stdout


def test_info_and_convert_load_nothing_heavy(lawn: str) -> None:
    """pandas takes a third of a second, numba more: `besag info alarm.bif` has one."""
    code = (
        "import sys\nfrom besag.cli import main\n"
        f"assert main(['info', {lawn!r}]) == main(['convert', {lawn!r}, {lawn + '.uai'!r}]) == 0\n"
        "print([name for name in ('pandas', 'numba', 'scipy', 'networkx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in cli.COMMANDS:
        with pytest.raises(SystemExit) as stop:
            cli.main([command, "--help"])
        assert stop.value.code == 0
        assert f"usage: besag {command}" in capsys.readouterr().out


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """A command line of bash, in which $BESAG is the command."""
    env = os.environ | {"BESAG": " ".join(BESAG)}
    return heard(subprocess.run(["bash", "-c", command], capture_output=True, check=False, cwd=cwd, env=env))


def test_evidence_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "pair.uai").write_text(PAIR)
    done = shell("$BESAG infer pair.uai --evidence <(echo 1 0 1) --task MAP --format uai", tmp_path)
    assert (done.returncode, done.stdout) == (0, b"MAP\n2 1 0\n"), done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_streams(tmp_path: Path, closed: str) -> None:
    (tmp_path / "pair.uai").write_text(PAIR)
    done = shell(f"$BESAG infer pair.uai --task PR {closed}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_convert_into_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "lawn.bif").write_text(LAWN)
    there, back = "$BESAG convert lawn.bif - --output-format net", "$BESAG convert - back.bif --input-format net"
    done = shell(f"{there} | {back}", tmp_path)
    assert done.returncode == 0, done.stderr
    again = shell("$BESAG convert lawn.bif - --output-format json", tmp_path)
    assert again.returncode == 2
    assert b"give OUT a name" in again.stderr


def test_messages_have_no_control_characters(write: Write) -> None:
    done = run("info", str(write("odd.bif", "network x { }\n\x1b]0;title\x07 rubbish")))
    assert done.returncode == 1
    assert b"\x1b" not in done.stderr
    assert b"\\x1b" in done.stderr


def test_samples_that_do_not_fit(write: Write) -> None:
    done = run("infer", str(write("pair.uai", PAIR)), "--task", "SAMPLE", "-n", "100000000", "--memory-limit", "100M")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"draw fewer at a time" in done.stderr


def test_words_of_the_command_line(write: Write) -> None:
    done = run("info", str(write("lawn.xdsl", LAWN)))
    assert done.returncode == 1
    assert b"the content looks like BIF: --input-format 'bif'" in done.stderr
