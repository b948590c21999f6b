"""Stereo on the tsukuba model of the Middlebury benchmark, by messages of truncated linear costs, weights an edge."""

from pathlib import Path

import pytest

from benchmarks.suites.structured import stereo
from tests.references.helpers import file_of

OPTIMUM = 369_218


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
def test_tsukuba(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_of(data_dir / "middlebury_mrf", "build_models.py")
    monkeypatch.setenv("BESAG_DATA", str(data_dir))
    model = stereo()
    weights = model.problem.log_potentials.size - 288 * 384 * 16
    assert weights <= 2 * 288 * 384  # one an edge, and no table
    best = model.map(engine="bp[max_iterations=30,tolerance=0,schedule=sequential,dtype=float32]")
    assert OPTIMUM <= best.energy < 1.2 * OPTIMUM
    assert abs(float(model.energy(best.assignment)) - best.energy) < 1e-6 * OPTIMUM
