"""The contestants' environments: this project's own, and one in .venvs for each peer of peers.toml, made on demand."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from benchmarks.suite import OWN

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(__file__).parent / "peers.toml"


class EnvironmentFailure(Exception):
    """A peer's environment that cannot be made."""


def requirements(peer: str) -> list[str]:
    """The pinned packages of a peer."""
    peers = tomllib.loads(PEERS.read_text(encoding="utf-8"))
    if peer not in peers:
        raise EnvironmentFailure(f"peer {peer!r} is not in benchmarks/peers.toml, which has {', '.join(peers)}")
    pinned: list[str] = peers[peer]["requirements"]
    return pinned


def python_of(environment: str, folder: Path = ROOT / ".venvs") -> Path:
    """The interpreter of an environment; made first where it is absent or its requirements have changed."""
    if environment == OWN:
        return Path(sys.executable)
    wanted = "\n".join(requirements(environment)) + "\n"
    place = folder / environment
    stamp = place / "requirements.txt"
    python = place / "bin" / "python"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"making the environment of {environment} ...", file=sys.stderr)
        create(place, wanted.split())
        stamp.write_text(wanted, encoding="utf-8")
    return python


def create(place: Path, packages: list[str]) -> None:
    """A new virtual environment with these packages."""
    shutil.rmtree(place, ignore_errors=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    for command in ([sys.executable, "-m", "venv", str(place)], [*pip, *packages]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EnvironmentFailure(f"cannot make the environment of {place.name}:\n{done.stdout}{done.stderr}")
