"""Mutations of real files through every reader: a model or a refusal, never a crash, a hang or gigabytes."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import besag
from besag.errors import ParseError
from besag.io import load
from tests.io.mutations import mutated

FILES = {
    "UAI": "peer_test_files/merlin/cancer.uai",
    "UAI grid": "peer_test_files/pgmpy/grid4x4.uai",
    "BIF": "peer_test_files/agrum/bif/insurance.bif",
    "BIF with properties": "peer_test_files/agrum/bif/hailfinder.bif",
    "XMLBIF": "peer_test_files/agrum/bifxml/dog.bifxml",
    "NET": "peer_test_files/agrum/net/alarm.net",
    "DSL": "peer_test_files/agrum/DSL/insurance.dsl",
    "libDAI": "libdai_tests/tests/alarm.fg",
    "WCSP": "toulbar2_instances/zebra.wcsp",
    "CFN": "toulbar2_instances/alarm.cfn.gz",
}
MADE = ("asia.xdsl", "asia.json", "asia.xml", "asia.net.xz", "asia.bif.gz")  # no real files, and packed ones
WORDS = {
    "XMLBIF": (b"<!ENTITY a 'b'>", b"<TABLE>", b"</TABLE>", b"<GIVEN>", b"&a;", b"<!--", b"<![CDATA["),
    "asia.xdsl": (b"<cpt", b"<noisymax", b"<parents>", b"&#0;", b"<!--", b"-->"),
    "asia.json": (b"[[[[", b"1e999", b"null", b"-1", b'"', b"\\u0000", b"{"),
    "NET": (b"((((", b"))))", b"data =", b"%", b"states = ("),
}
pytestmark = pytest.mark.filterwarnings("ignore::besag.errors.LossWarning")
MEGABYTES = 1024  # that a mutation of a small file may take beyond what is there
SECONDS = 60  # after which it hangs


@contextmanager
def alarmed(seconds: int) -> Iterator[None]:
    """An error in place of a hang."""

    def hangs(*_: object) -> None:
        raise AssertionError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(data: bytes, path: Path) -> None:
    """Loads as load does, from a file."""
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with alarmed(SECONDS), suppress(ParseError):
        load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_real_files(data_dir: Path, tmp_path: Path, name: str) -> None:
    source = data_dir / FILES[name]
    run(source.read_bytes(), tmp_path / source.name, WORDS.get(name, ()))


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_made_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    besag.save(besag.data.bundled("asia"), path)
    run(path.read_bytes(), path, WORDS.get(name, ()))


def run(data: bytes, path: Path, words: tuple[bytes, ...]) -> None:
    """Three thousand mutations of a file, the same each time."""
    load_sound = load(_written(data, path))
    assert len(load_sound.variables) > 0

    @settings(max_examples=3000, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.one_of(mutated(data, words), st.binary(max_size=200)))
    def mutations(changed: bytes) -> None:
        check(changed, path)

    mutations()


def _written(data: bytes, path: Path) -> Path:
    path.write_bytes(data)
    return path
