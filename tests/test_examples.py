"""Every script in examples/ runs and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.references.helpers import file_of

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LINES = {
    "bayesian_network.py": "P(burglary | call, quake) = 0.0306",
    "chunking.py": "The old man is one noun phrase with probability 0.58",
    "denoising.py": "out/denoising.png shows them side by side",
    "diagnosis.py": "out/diagnosis.png shows the posterior of every disease",
    "energies_by_hand.py": "log Z from besag:     -0.019275",
    "em_routes.py": "the best log-likelihood of all routes is -369.0",
    "scribbles.py": "out/scribbles.png shows the strokes and what they cut out",
    "restoring.py": "out/restoring.png shows both",
    "stereo.py": "out/stereo.png shows disparities, and energy and bound over time",
    "regions.py": "out/regions.png shows the picture and its regions",
    "objectives.py": "error of pseudolikelihood ~ N^-0.51, out/pseudolikelihood.png",
    "ldpc.py": "Eb/N0 = 1.3 dB: 0.1216 of the bits arrive wrong, 0.0000 after decoding",
    "message_times.py": "out/message_times.png shows them",
    "pictorial.py": "parts within 5 pixels, jointly: 8 of 10",
    "messages_on_a_tree.py": "Z at m: 5.470663",
    "discovery.py": "edges of the network that are wrong: 1 of 8",
    "pedigree.py": "Carl         0.038    0.901",
    "topics.py": "92% of the texts are in the class of their topic",
}
ON_DATA = {  # scripts that read the data folder: a file there, and how the last line begins; on a few of its instances
    "horses.py": ("weizmann_horses_64.npz", "out/horses.png shows one of them"),
    "scene.py": ("scene_multilabel.npz", "labels that exclude each other most: "),
    "some_labels.py": ("../crf_seq/ocr_letters/letters.npz", "out/some_labels.png shows the curves"),
    "snakes.py": ("snakes.npz", "features of both ends        max_margin[engine=bp[damping=0.3]]"),
}

MARKS = dict.fromkeys(
    (
        "denoising.py",
        "diagnosis.py",
        "discovery.py",
        "em_routes.py",
        "message_times.py",
        "objectives.py",
        "regions.py",
        "restoring.py",
        "stereo.py",
    ),
    pytest.mark.slow,
)


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(LINES) | set(ON_DATA)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in sorted(LINES)])
def test_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert LINES[name] in done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ON_DATA))
def test_example_on_data_runs(name: str, tmp_path: Path, data_dir: Path) -> None:
    file, line = ON_DATA[name]
    file_of(data_dir / "structured_images", file)
    env = os.environ | {"BESAG_DATA": str(data_dir), "BESAG_PICTURES": "12", "BESAG_ROWS": "60"}
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(line)
