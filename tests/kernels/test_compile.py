"""Two modes of one source, and the cache on disk: hits, constants, places, damage, threads and forks."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import besag.kernels.compile as compile_module
from besag.arrays import Semiring, freeze
from besag.infer.trees.kernels.pair_passes import make_shift
from besag.kernels import cache
from besag.kernels.compile import compiled

SOURCE = Path(compile_module.__file__).parents[2]

PROGRAM = """
    import sys, time
    import numpy as np
    from besag.kernels.compile import compiled
    from besag.infer.trees.kernels.pair_passes import make_shift
    from besag.kernels import shipped

    shipped.compile_for_host()

    def call(n):
        base = np.arange(4.0 * n).reshape(4, n)
        base.flags.writeable = False
        component = np.zeros(4, np.int64)
        component.flags.writeable = False
        out, log_z = np.empty((4, n)), np.zeros(1)
        kernel = compiled(make_shift, n)
        kernel(base, component, out, log_z)
        assert log_z[0] == sum(n * i + n - 1 for i in range(4)), log_z
        stats = getattr(kernel, "stats", None)
        print("hits", sum(stats.cache_hits.values()), "misses", sum(stats.cache_misses.values()), stats.cache_path)

    for n in map(int, sys.argv[1:]):
        call(n)
"""


def run(*arguments: str, source: Path = SOURCE, before: str = "", **environment: str | None) -> list[str]:
    """Run PROGRAM in a fresh process; its lines."""
    environ = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    for name, value in environment.items():
        environ.pop(name, None)
        if value is not None:
            environ[name] = value
    program = textwrap.dedent(before) + textwrap.dedent(PROGRAM)
    process = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_second_process_hits_the_cache(tmp_path: Path) -> None:
    first = run("3", NUMBA_CACHE_DIR=str(tmp_path))
    second = run("3", "5", NUMBA_CACHE_DIR=str(tmp_path))
    assert first[0].startswith("hits 0 misses 1")
    assert second[0].startswith("hits 1 misses 0")
    assert second[1].startswith("hits 0 misses 1"), "another constant is another entry"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("infer/trees/kernels/pair_passes", "hits 0 misses 1"),
        ("kernels/compile", "hits 0 misses 1"),
        ("kernels/interrupts", "hits 0 misses 1"),  # two imports away: compile imports it
        ("infer/trees/pairs", "hits 1 misses 0"),
    ],
)
def test_a_change_in_a_file_that_a_kernel_is_made_of_is_seen(tmp_path: Path, file: str, expected: str) -> None:
    copy = copied(tmp_path)
    environment = {"source": copy, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run("3", **environment)  # type: ignore[arg-type]
    changed = copy / "besag" / f"{file}.py"
    changed.write_text(changed.read_text() + "\n# changed\n")
    assert run("3", **environment)[0].startswith(expected)  # type: ignore[arg-type]


def test_a_helper_two_imports_away_in_another_folder_is_seen(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    for place, text in AWAY.items():
        (copy / "besag" / place).parent.mkdir(exist_ok=True)
        (copy / "besag" / place).write_text(text)
    program = "import numpy as np\nfrom besag.near.kernel import make_kernel\n"
    program += "from besag.kernels.compile import compiled\nprint(compiled(make_kernel, 1)(3))\n"
    helper = copy / "besag" / "far" / "helper.py"
    for text, expected in ((helper.read_text(), "4"), (helper.read_text().replace("+ n", "- n"), "2")):
        helper.write_text(text)
        assert run(source=copy, before=program, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == [expected]


AWAY = {
    "near/__init__.py": "",
    "near/kernel.py": """from besag.between import (
    shifted,  # what stands in the middle
)


def make_kernel(n):
    def kernel(x):
        return shifted(x, n)
    return kernel
""",
    "between.py": """from besag.far import helper as away
from besag.kernels.compile import inlined

moved = away.moved


@inlined
def shifted(x, n):
    return moved(x, n)
""",
    "far/__init__.py": "",
    "far/helper.py": """from besag.kernels.compile import inlined


@inlined
def moved(x, n):
    return x + n
""",
}


def test_what_was_edited_after_its_import_is_not_kept(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    environment = {"source": copy, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    file = copy / "besag" / "infer" / "trees" / "kernels" / "pair_passes.py"
    edit = f"""
    import pathlib, time
    import besag.infer.trees.kernels.pair_passes
    file = pathlib.Path({str(file)!r})
    time.sleep(0.05)
    file.write_text(file.read_text() + "\\n# changed while this runs\\n")
    """
    assert run("3", before=edit, **environment)[0].endswith("None")  # type: ignore[arg-type]
    assert run("3", **environment)[0].startswith("hits 0 misses 1")  # type: ignore[arg-type]


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_are_found_as_python_finds_them(file: Path) -> None:
    expected = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            expected |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are not looked for"
            expected |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    expected = {name for name in expected if name.split(".")[0] == "besag"}
    assert cache.modules_imported(file.read_text()) >= expected


def copied(folder: Path) -> Path:
    """The package, alone in a folder."""
    target = folder / "package"
    shutil.copytree(SOURCE / "besag", target / "besag", ignore=shutil.ignore_patterns("__pycache__", "_compiled"))
    return target


def test_read_only_package_and_no_home(tmp_path: Path) -> None:
    """Root may write anywhere, so that the two first places are made unusable: a file where a folder has to be."""
    copy = copied(tmp_path)
    (copy / "besag" / "infer" / "trees" / "kernels" / "__pycache__").write_text("not a folder")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    home = tmp_path / "home"
    home.write_text("not a folder")
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(temporary), "NUMBA_CACHE_DIR": None}
    for expected in ("hits 0 misses 1", "hits 1 misses 0"):
        line = run("3", source=copy, **environment)[0]
        assert line.startswith(expected)
        assert str(temporary) in line
    private = next(temporary.glob("besag-kernels-*"))
    assert private.stat().st_mode & 0o777 == 0o700


def test_no_place_at_all(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    (copy / "besag" / "infer" / "trees" / "kernels" / "__pycache__").write_text("not a folder")
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("not a folder")
    before = f"""
        import tempfile
        tempfile.tempdir = {str(nowhere)!r}
    """
    environment = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "NUMBA_CACHE_DIR": None}
    assert run("3", source=copy, before=before, **environment)[0].startswith("hits 0")


def test_foreign_temporary_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = cache.private_directory()
    path.chmod(0o777)
    with pytest.raises(PermissionError, match="private"):
        cache.private_directory()
    path.rmdir()
    path.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="private"):
        cache.private_directory()


def test_damaged_cache_costs_a_compilation(tmp_path: Path) -> None:
    run("3", NUMBA_CACHE_DIR=str(tmp_path))
    for path in tmp_path.rglob("*.nb*"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert run("3", NUMBA_CACHE_DIR=str(tmp_path))[0].startswith("hits 0")
    assert run("3", NUMBA_CACHE_DIR=str(tmp_path))[0].startswith("hits 1")


def test_disabled_compiler() -> None:
    before = """
        import numba
        numba.config.DISABLE_JIT = True
    """
    program = (
        "from besag.kernels.compile import compiled\nfrom besag.infer.trees.kernels.pair_passes import make_shift\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    code = textwrap.dedent(before) + program + "assert compiled(make_shift, 3).__name__ == 'shift'"
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)


def shifted(n_states: int) -> float:
    base = freeze(np.arange(4.0 * n_states).reshape(4, n_states))
    out, log_z = np.empty((4, n_states)), np.zeros(1)
    compiled(make_shift, n_states)(base, freeze(np.zeros(4, np.int64)), out, log_z)
    return float(log_z[0])


def expected(n_states: int) -> float:
    return float(sum(n_states * i + n_states - 1 for i in range(4)))


def test_first_call_from_several_threads() -> None:
    answers: list[float] = []
    barrier = threading.Barrier(6)

    def call() -> None:
        barrier.wait()
        answers.append(shifted(7))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected(7)] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork() -> None:
    assert shifted(3) == expected(3)
    with compile_module._locks[0]:  # held, as if another thread were compiling
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                failed = int(shifted(3) != expected(3) or shifted(9) != expected(9))
            finally:
                os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_python_kernels_do_not_need_numba() -> None:
    code = """
        import sys
        sys.modules["numba"] = None
        import numpy as np
        from besag.infer.trees import pairs, sums
        from besag.infer.trees.plan import plan_forest
        from besag.kernels.factors import Factors
        offsets, scopes, zero = np.array([0, 2, 4]), np.array([0, 1]), np.zeros(1, np.int64)
        factors = Factors(offsets, np.array([0, 2]), scopes, zero, zero, np.array([0, 4]), np.zeros(4))
        forest = plan_forest(offsets, np.array([0, 2]), scopes)
        assert abs(sums.sum_product(factors, forest, np.zeros((1, 4))).log_partition[0, 0] - np.log(4)) < 1e-15
    """
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environ, check=True)


def test_semirings_are_the_integers_that_kernels_close_over() -> None:
    assert [int(semiring) for semiring in Semiring] == [0, 1, 2]
