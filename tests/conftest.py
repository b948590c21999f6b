"""Fixtures and settings of all tests.

Hypothesis is deterministic by default; `pytest --hypothesis-profile explore` looks further, with new random examples.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("MPLBACKEND", "Agg")

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of published models and answers: $BESAG_DATA, else ../shared/data beside the repository."""
    folder = Path(os.environ.get("BESAG_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the data folder is absent: set BESAG_DATA to run the tests that read it")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file and gives its path: write("a.uai", text or bytes)."""

    def made(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made
