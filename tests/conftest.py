"""Fixtures and settings of all tests.

Hypothesis is deterministic by default; `pytest --hypothesis-profile explore` looks further, with new random examples.
`pytest --routes SEED` sends small models along the routes of large ones, see `tests/routes.py`.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tests import routes

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("MPLBACKEND", "Agg")

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--routes", type=int, help="force routes in every test, drawn from this seed")
    parser.addoption("--small-kernels", action="store_true", help="compile kernels with the smallest tiles and blocks")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--small-kernels"):
        if "NUMBA_CACHE_DIR" not in os.environ:
            raise pytest.UsageError("--small-kernels needs a cache of its own: set NUMBA_CACHE_DIR")
        routes.set_small_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    seed = item.config.getoption("--routes")
    if seed is None:
        return (yield)
    drawn = routes.draw(np.random.default_rng([seed, zlib.crc32(item.nodeid.encode())]))
    item.add_report_section("call", "routes", "\n".join(f"{name} = {value}" for name, value in drawn.items()))
    with routes.force(drawn):
        return (yield)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of published models and answers: $BESAG_DATA, else ../shared/data beside the repository."""
    folder = Path(os.environ.get("BESAG_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the data folder is absent: set BESAG_DATA to run the tests that read it")
    return folder


@pytest.fixture
def forced() -> Iterator[routes.Forced]:
    """Forces routes until the end of a test: forced({"infer.bp.passing.CHUNK": 1}), see `tests/routes.py`."""
    with ExitStack() as stack:
        yield lambda chosen: stack.enter_context(routes.force(chosen))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file and gives its path: write("a.uai", text or bytes)."""

    def made(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made
