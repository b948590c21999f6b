"""The benchmark harness on suites made here, all contestants in this environment; nothing about speed is asserted."""

import json
import platform
import re
import textwrap
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.__main__ import main
from benchmarks.report import PREAMBLE, duration
from benchmarks.runner import Timing, disagreements
from benchmarks.suite import find_suites, load_suite

HEAD = """
import os
import time
from benchmarks.suite import Case, Job, Suite

def job(value, name="x"):
    return lambda **parameters: Job(lambda: value, lambda result: {name: result})

def suite(**contestants):
    return Suite("a title", (Case("a case", contestants),), dict.fromkeys(contestants, "besag"))
"""


class Harness:
    """Writes suite files into a folder of its own and runs them there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "RESULTS.md"

    def run(self, body: str, *options: str, name: str = "fake") -> int:
        path = self.folder / f"{name}.py"
        path.write_text(HEAD + textwrap.dedent(body), encoding="utf-8")
        return main(["run", str(path), "--repeat", "2", "--out", str(self.folder / "out"), *options], self.results)

    def json(self, name: str = "fake") -> dict:
        return json.loads((self.folder / "out" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def test_contestants_that_agree(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    assert harness.run("SUITE = suite(besag=job(1.0), peer=job(1.0 + 1e-9))") == 0
    out = capsys.readouterr().out
    assert [line.count("agree") for line in out.splitlines()[-2:]] == [1, 1]
    case = harness.json()["cases"][0]
    assert [timing["contestant"] for timing in case["timings"]] == ["besag", "peer"]
    for timing in case["timings"]:
        assert len(timing["seconds"]) == len(timing["cpu_seconds"]) == 2
        assert timing["warm_up_seconds"] >= 0
        assert timing["peak_bytes"] > 1e6
        assert timing["python"] == platform.python_version()


def test_scores_are_reported(harness: Harness) -> None:
    body = """
        one = Case("a case", {"besag": job(0.25, "F1"), "peer": job(0.25, "F1")})
        SUITE = Suite("a title", (one,), {"besag": "besag", "peer": "besag"}, scores=("F1", "other"))
    """
    assert harness.run(body, "--update-results") == 0
    assert "\na case, F1: besag 0.2500, peer 0.2500.\n" in harness.results.read_text(encoding="utf-8")


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux tells what a run adds to the memory")
def test_memory_of_a_run_and_of_the_process(harness: Harness) -> None:
    body = """
        def take(first, later):
            sizes = [later, later, first]
            return lambda: Job(lambda: float(len(b"x" * sizes.pop()) > 0), lambda result: {"some": result})

        SUITE = suite(besag=take(200_000_000, 1_000), peer=take(1_000, 50_000_000))
    """
    assert harness.run(body) == 0
    besag, peer = harness.json()["cases"][0]["timings"]
    assert besag["added_bytes"] < 10e6 < 190e6 < besag["peak_bytes"]
    assert 45e6 < peer["added_bytes"] < 60e6


@pytest.mark.parametrize("wrong", ["1.00001", "float('nan')", "float('inf')"])
def test_wrong_answers_fail(harness: Harness, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    assert harness.run(f"SUITE = suite(besag=job({wrong}), peer=job(1.0))", "--update-results") == 1
    assert re.search(r"FAILED a case: x differs: 1\.0 from peer, \S+ from besag", capsys.readouterr().out)
    assert not harness.results.exists()


def test_an_answer_that_changes_between_runs_fails(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    body = """
    def restless():
        runs = []
        return Job(lambda: runs.append(1), lambda result: {"x": len(runs)})
    SUITE = suite(besag=restless)
    """
    assert harness.run(body) == 1
    assert "x differs: 2.0 from besag, 1.0 from besag" in capsys.readouterr().out


def test_answers_with_nothing_in_common_are_not_called_agreement(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harness.run("SUITE = suite(besag=job(1.0), peer=job(1.0, 'y'))") == 0
    assert capsys.readouterr().out.count("not compared") == 2


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        ("def broken(): raise KeyError('nothing')", "KeyError: 'nothing'"),
        ("def broken(): return Job(lambda: 1 / 0, dict)", "ZeroDivisionError: division by zero"),
        ("def broken(): return Job(lambda: os._exit(3), dict)", "exit code 3"),
    ],
)
def test_a_contestant_that_fails_leaves_the_others(
    harness: Harness, capsys: pytest.CaptureFixture[str], prepare: str, message: str
) -> None:
    assert harness.run(f"{prepare}\nSUITE = suite(besag=broken, peer=job(1.0))") == 1
    assert "FAILED a case: besag failed: " in capsys.readouterr().out
    broken, peer = harness.json()["cases"][0]["timings"]
    assert message in broken["error"]
    assert len(peer["seconds"]) == 2


def test_runs_take_turns_after_the_warm_up(harness: Harness) -> None:
    body = f"""
    def logged(name):
        def run():
            with open({str(harness.folder / "log")!r}, "a") as log:
                log.write(name)
        return lambda: Job(run, lambda result: {{}})
    SUITE = suite(a=logged("a"), b=logged("b"), c=logged("c"))
    """
    assert harness.run(body) == 0
    assert (harness.folder / "log").read_text() == "abc" * 3


def test_a_short_job_is_run_until_its_least_seconds_have_passed(harness: Harness) -> None:
    body = f"""
    def logged():
        def write(text):
            with open({str(harness.folder / "log")!r}, "a") as log:
                log.write(text)
        def run(prepared):
            write("r")
            time.sleep(0.002)
        return Job(run, lambda result: {{}}, lambda: write("p"), least_seconds=0.01)
    SUITE = suite(besag=logged)
    """
    assert harness.run(body) == 0
    log = (harness.folder / "log").read_text()
    assert 3 * 2 <= log.count("r") <= 3 * 5
    assert log == "pr" * log.count("r")


def test_contestants_have_one_core_and_one_thread_and_may_print(harness: Harness) -> None:
    body = """
    def placed():
        print("hello from prepare")
        os.system("echo hello from a child")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        threads = int(os.environ["OMP_NUM_THREADS"]) * int(os.environ["NUMBA_NUM_THREADS"])
        return Job(lambda: print("hello"), lambda result: {"cores": cores, "threads": threads})
    SUITE = suite(besag=placed)
    """
    assert harness.run(body) == 0
    assert harness.json()["cases"][0]["timings"][0]["summaries"] == [{"cores": 1.0, "threads": 1.0}]


def test_parameters_and_choice_of_peers(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    body = """
    def double(n):
        return Job(lambda: 2 * n, lambda result: {"x": result})
    own = {"peer": "besag", "other": "besag"}
    cases = (Case("small", {"besag": double, "peer": double}, {"n": 2}), Case("large", {"other": double}, {"n": 5}))
    SUITE = Suite("a title", cases, own)
    """
    assert harness.run(body, "--peers", "peer") == 0
    (small,) = harness.json()["cases"]
    assert [timing["summaries"] for timing in small["timings"]] == [[{"x": 4.0}]] * 2
    assert harness.run(body, "--peers") == 0
    assert [timing["contestant"] for timing in harness.json()["cases"][0]["timings"]] == ["besag"]
    with pytest.raises(SystemExit, match="has no peer stranger; it has peer, other"):
        harness.run(body, "--peers", "stranger")
    with pytest.raises(SystemExit, match="no suite nothing"):
        main(["run", "nothing"])


def test_what_is_prepared_for_each_run_is_handed_to_it(harness: Harness) -> None:
    body = """
    def fresh():
        made = []
        def prepare():
            made.append("new")
            return made
        def run(box):
            taken = len(box)
            box.clear()
            return taken
        return Job(run, lambda taken: {"taken": taken}, prepare)
    SUITE = suite(besag=fresh)
    """
    assert harness.run(body) == 0
    assert harness.json()["cases"][0]["timings"][0]["summaries"] == [{"taken": 1.0}]


SLEEP = """
def sleep(seconds, value=1.0):
    return lambda: Job(lambda: time.sleep(seconds), lambda result: {"x": value})
def suite_of(*cases, **options):
    return Suite("a title", cases, dict.fromkeys(("quick", "slower", "own"), "besag"), **options)
"""


def test_speeds_are_relative_to_the_fastest_of_the_baseline(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    body = """
    one = {"besag": sleep(0.05), "slower": sleep(0.4), "quick": sleep(0.1)}
    SUITE = suite_of(Case("one", one, baseline=("slower", "quick")), Case("two", one), averaged=True)
    """
    assert harness.run(SLEEP + textwrap.dedent(body), "--update-results") == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    speeds = {(row[1].strip(), row[2].strip()): row[6].strip() for row in rows}
    assert speeds["one", "quick"] == "1.00"
    assert speeds["two", "slower"] == "1.00"
    text = harness.results.read_text(encoding="utf-8")
    assert re.search(r"\nbesag: [\d.]+ in the geometric mean of 2 cases, least [\d.]+ on one\.\n", text)


def test_a_contestant_that_exhausts_the_patience_is_not_run_again(harness: Harness) -> None:
    body = """
    SUITE = suite_of(Case("c", {"besag": sleep(0.0), "slower": sleep(0.2)}, patience=0.1))
    """
    assert harness.run(SLEEP + textwrap.dedent(body)) == 0
    own, slower = harness.json()["cases"][0]["timings"]
    assert len(own["seconds"]) == 2
    assert slower["seconds"] == [slower["warm_up_seconds"]]
    assert slower["peak_bytes"] > 1e6


@pytest.mark.parametrize(
    ("work", "limit", "shown"),
    [
        ("time.sleep(60)", "time_limit=3.0", "over 3 s"),
        ("bytearray(10**10)", "memory_limit=2 * 10**9", "over 2 GB"),
        ("fail('std::bad_alloc')", "memory_limit=2 * 10**9", "over 2 GB"),
    ],
)
def test_a_contestant_that_needs_too_much_is_stopped_and_shown(
    harness: Harness, capsys: pytest.CaptureFixture[str], work: str, limit: str, shown: str
) -> None:
    body = f"""
    def fail(message):
        raise RuntimeError(message)
    def large():
        return Job(lambda: {work}, dict)
    SUITE = suite_of(Case("c", {{"besag": sleep(0.0), "slower": large, "own": sleep(0.0)}}, {limit}))
    """
    assert harness.run(SLEEP + textwrap.dedent(body)) == 0
    assert re.search(rf"\| slower .*\| {shown} +\|", capsys.readouterr().out)
    timings = harness.json()["cases"][0]["timings"]
    assert [timing["exceeded"] for timing in timings] == [None, shown, None]
    assert [len(timing["seconds"]) for timing in timings] == [2, 0, 2]


def test_without_a_limit_want_of_memory_is_a_failure(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    body = "def refused(): raise MemoryError('none left')\nSUITE = suite(besag=refused)"
    assert harness.run(body) == 1
    assert "besag failed: MemoryError: none left" in capsys.readouterr().out


def test_slow_cases_run_when_asked_for(harness: Harness) -> None:
    body = """
    SUITE = suite_of(Case("small", {"besag": sleep(0.0)}), Case("large", {"besag": sleep(0.0)}, slow=True))
    """
    for options, names in (
        ((), ["small"]),
        (("--slow",), ["small", "large"]),
        (("--slow", "--case", "lar"), ["large"]),
    ):
        assert harness.run(SLEEP + textwrap.dedent(body), *options) == 0
        assert [case["case"] for case in harness.json()["cases"]] == names
    assert harness.json()["command"] == "python -m benchmarks run fake --case lar --slow --repeat 2"


def test_results_keep_the_other_sections(harness: Harness) -> None:
    body = "SUITE = suite(besag=job(1.0), peer=job(1.0))"
    assert harness.run(body, "--update-results", name="one") == 0
    assert harness.run(body, "--update-results", name="two") == 0
    text = harness.results.read_text(encoding="utf-8")
    assert text.startswith(PREAMBLE)
    edited = text.replace("a title", "an old title") + "\nA closing remark.\n"
    harness.results.write_text(edited, encoding="utf-8")
    assert harness.run(body, "--update-results", name="one") == 0
    text = harness.results.read_text(encoding="utf-8")
    assert re.findall(r"## (.*)", text) == ["one: a title", "two: an old title"]
    assert text.endswith("\nA closing remark.\n")
    assert "`python -m benchmarks run one --repeat 2`, 20" in text
    before = edited.split("<!-- begin two -->")[1]
    assert text.split("<!-- begin two -->")[1] == before


def test_reports_do_not_tell_where_they_were_made(harness: Harness) -> None:
    assert harness.run("SUITE = suite(besag=job(1.0))", "--update-results") == 0
    text = json.dumps(harness.json()) + harness.results.read_text(encoding="utf-8")
    assert platform.node() not in re.findall(r"[\w.-]+", text)
    assert str(harness.folder) not in text
    assert str(Path.home()) not in text


def test_an_environment_is_made_once_for_its_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[str]] = []
    wanted = ["a==1"]
    monkeypatch.setattr(environments, "requirements", lambda peer: wanted)
    monkeypatch.setattr(environments, "create", lambda place, packages: made.append(packages))
    (tmp_path / "peer").mkdir()
    for _ in range(2):
        assert environments.python_of("peer", tmp_path) == tmp_path / "peer" / "bin" / "python"
    wanted.append("b==2")
    environments.python_of("peer", tmp_path)
    assert made == [["a==1"], ["a==1", "b==2"]]


def test_an_unknown_peer_is_named(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    assert harness.run("SUITE = Suite('t', (Case('c', {'stranger': job(1.0)}),))") == 2
    assert "'stranger' is not in benchmarks/peers.toml" in capsys.readouterr().err


def test_the_shipped_suites_load_and_their_peers_are_pinned(capsys: pytest.CaptureFixture[str]) -> None:
    for path in find_suites().values():
        suite = load_suite(path)
        for peer in suite.peers:
            if (environment := suite.environment(peer)) != "besag":
                assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in environments.requirements(environment))
    assert main(["list"]) == 0
    assert "tree: forward-backward" in capsys.readouterr().out


def test_numbers_near_zero_agree() -> None:
    assert disagreements([Timing("a", summaries=[{"x": 0.0}]), Timing("b", summaries=[{"x": 1e-12}])], 1e-6) == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (12.34, "12.3 s"), (1.0, "1.00 s"), (0.0456, "45.6 ms"), (2e-7, "0.20 us")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
