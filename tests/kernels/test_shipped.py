"""Kernels that come compiled: found where all is as it was when they were made, and not found otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from besag.kernels import shipped
from tests.kernels.test_compile import PROGRAM, SOURCE, copied

HOST = "shipped.compile_for_host()"
BASELINE = "shipped.compile_for_baseline()"
WRITE = """
    print(sorted(shipped.write()))
"""

pytestmark = pytest.mark.skipif(not shipped.usable(), reason="this machine does not run code for x86-64-v3")


def ask(source: Path, cache: Path, *constants: str, program: str = "", after: str = "", **environ: str) -> list[str]:
    """The lines of PROGRAM in a fresh process that takes what came compiled, or begins with `program`."""
    code = textwrap.dedent(PROGRAM.replace(HOST, program)) + textwrap.dedent(after)
    usual = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {**usual, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache), **environ}
    done = subprocess.run(
        [sys.executable, "-c", code, *constants], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, with a kernel for 3 and, from another process, one for 5."""
    place = tmp_path_factory.mktemp("shipped")
    copy = copied(place)
    folder(copy).mkdir(parents=True)
    for constant in ("3", "5"):
        ask(copy, place / f"made-{constant}", constant, program=BASELINE, after=WRITE)
    assert sorted(path.name.split("-")[1] for path in folder(copy).iterdir()) == ["3", "5"]
    return copy


@pytest.fixture
def package(made: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(made, tmp_path / "package"))


def folder(package: Path) -> Path:
    return package / "besag" / "_compiled" / str(sys.implementation.cache_tag)


def hits(lines: list[str]) -> list[bool]:
    return [line.startswith("hits 1 misses 0") for line in lines]


def test_each_is_found_and_right_in_one_process(package: Path, tmp_path: Path) -> None:
    assert hits(ask(package, tmp_path / "a", "3", "5", "4")) == [True, True, False]  # PROGRAM checks the answers
    assert hits(ask(package, tmp_path / "b", "5", "3")) == [True, True]
    assert not list((tmp_path / "b").rglob("*.nbc")), "nothing was compiled"


@pytest.mark.parametrize(
    "environ", [{"NUMBA_CPU_NAME": "x86-64-v2"}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_OPT": "1"}], ids=str
)
def test_other_options_of_the_compiler_find_none(package: Path, tmp_path: Path, environ: dict[str, str]) -> None:
    assert hits(ask(package, tmp_path / "a", "3", **environ)) == [False]


@pytest.mark.parametrize(
    "program",
    [HOST, "shipped.FEATURES += ('a feature of tomorrow',)", "import numba; numba.__version__ = '0.99.0'"],
    ids=["asked", "features", "numba"],
)
def test_another_machine_or_numba_finds_none(package: Path, tmp_path: Path, program: str) -> None:
    assert hits(ask(package, tmp_path / "a", "3", program=program)) == [False]


def test_other_sources_find_none(package: Path, tmp_path: Path) -> None:
    changed = package / "besag" / "kernels" / "compile.py"  # part of every kernel
    changed.write_text(changed.read_text() + "\n# changed\n")
    assert hits(ask(package, tmp_path / "a", "3")) == [False]


def test_damaged_files_cost_a_compilation(package: Path, tmp_path: Path) -> None:
    for path in folder(package).iterdir():
        path.write_bytes(path.read_bytes()[:100])
    assert hits(ask(package, tmp_path / "a", "3")) == [False]


def test_what_the_machine_has_compiled_itself_comes_first(package: Path, tmp_path: Path) -> None:
    ask(package, tmp_path / "a", "3", program=HOST)
    told = """
    print(compiled(make_shift, 3).overloads.popitem()[1].library.codegen.magic_tuple()[1] != shipped.BASELINE)
    print(hits)
    """
    counting = "hits = []; load = shipped.load; shipped.load = lambda *given: (hits.append(1), load(*given))[1]"
    assert ask(package, tmp_path / "a", "3", program=counting, after=told)[1:] == ["True", "[]"]


SAME = """
    import besag
    model = besag.data.random_model("bayesian_network", 40, seed=1, n_states=(2, 4))
    chain = besag.chain(np.linspace(-1, 1, 3000).reshape(1000, 3), np.eye(3))
    for one in (model, chain):
        r = one.marginals()
        print(repr(float(one.log_partition())), *(repr(float(p)) for name in one.variables.names for p in r[name]))
"""


@pytest.mark.slow
def test_answers_are_those_of_kernels_for_this_machine(tmp_path: Path) -> None:
    baseline, host = (ask(SOURCE, tmp_path / "cache", program=program, after=SAME) for program in (BASELINE, HOST))
    assert len(baseline) == len(host) == 2
    for line, other in zip(baseline, host, strict=True):
        expected = [float(x) for x in other.split()]
        assert [float(x) for x in line.split()] == pytest.approx(expected, rel=1e-12, abs=1e-12)
