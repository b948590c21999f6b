"""Middlebury's stereo pairs: energy and bound within 0.1% of the best energies published (Kappes et al. 2015)."""

import pytest

from benchmarks import middlebury
from tests.references.helpers import file_of


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(middlebury.PAIRS))
def test_energy_and_bound_are_within_a_thousandth(name: str) -> None:
    file_of(middlebury.FOLDER / "mrfstereo/data", f"{name}-imL.png")
    best, found = middlebury.BEST[name], middlebury.grid_of(name).map(engine="trws[max_iterations=200,tolerance=0]")
    assert best - 1e-6 <= found.energy <= 1.001 * best
    assert 0.999 * best <= found.energy_bound <= best + 1e-6


@pytest.mark.slow
def test_pictures_of_256_labels_are_restored() -> None:
    file_of(middlebury.FOLDER / "denoise/data", "penguin-input.png")
    found = middlebury.grid_of("penguin").map(engine="trws[max_iterations=50,tolerance=0]")
    assert 0.99 * found.energy <= found.energy_bound <= found.energy
