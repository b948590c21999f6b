"""Every script in examples/ runs and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LINES = {
    "bayesian_network.py": "P(burglary | call, quake) = 0.0306",
    "chunking.py": "The old man is one noun phrase with probability 0.58",
    "denoising.py": "out/denoising.png shows them side by side",
    "energies_by_hand.py": "log Z from besag:     -0.019275",
    "objectives.py": "error of pseudolikelihood ~ N^-0.51, out/pseudolikelihood.png",
    "messages_on_a_tree.py": "Z at m: 5.470663",
}

MARKS = {"denoising.py": pytest.mark.slow, "objectives.py": pytest.mark.slow}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(LINES)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in sorted(LINES)])
def test_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert LINES[name] in done.stdout.splitlines()
