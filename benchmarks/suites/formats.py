"""Reading and writing models: published networks as BIF beside the peers' readers, and besag's other formats.

A file is read from disk into the reader's own model, tables and all; the operating system has the file in its cache.
pyAgrum reads BIF in single precision, hence the tolerance. "written" is the way from a model to the bytes of a file.
"large UAI" is a Markov network of 80,000 random tables, some 60 MB of numbers.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import Array, Network, read, uncompressed
from benchmarks.suite import Case, Job, Suite

NETWORKS = ("alarm", "hepar2", "andes", "link", "munin")
OTHERS = (".uai", ".xml", ".net", ".xdsl", ".json")


@cache
def folder() -> Path:
    """A directory that lives as long as the process."""
    place = tempfile.TemporaryDirectory()
    KEPT.append(place)
    return Path(place.name)


KEPT: list[tempfile.TemporaryDirectory[str]] = []


def plain(name: str) -> str:
    """The path of the network as plain BIF."""
    path = folder() / f"{name}.bif"
    with uncompressed(name) as copy:
        path.write_bytes(Path(copy).read_bytes())
    return str(path)


def checksums(tables: Iterable[Array]) -> dict[str, float]:
    """Numbers that tell networks apart, whatever the order of a table's axes."""
    squares = [(table.size, float((table.astype(np.float64) ** 2).sum())) for table in tables]
    return {
        "variables": len(squares),
        "entries": sum(size for size, _ in squares),
        "squares": math.fsum((2 + math.cos(i)) * square for i, (_, square) in enumerate(squares)),
    }


# Contestants: from a network's name, and the suffix of a format, to a Job.


def besag_tables(network: Network, model: Any) -> dict[str, float]:
    """Checksums of a Model; where the format has no names, variables are in the order of the file."""
    return checksums(model.cpt(model.variables.names[v]) for v in range(len(network.names)))


def besag_read(name: str, suffix: str = ".bif") -> Job:
    """A file of any format, written by besag where it is not published."""
    import besag

    path = plain(name)
    if suffix != ".bif":
        model, path = besag.load(path), f"{path}{suffix}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # UAI has no names
            besag.save(model, path)
    return Job(lambda: besag.load(path), partial(besag_tables, read(name)))


def besag_write(name: str, suffix: str) -> Job:
    """The bytes of a file."""
    import besag
    from besag.io.formats import format_named

    model = besag.load(plain(name))
    write: Callable[[Any], bytes] = format_named(suffix).module.write
    return Job(lambda _: write(model), lambda data: {"bytes": len(data)}, lambda: model.problem)


def pyagrum_read(name: str) -> Job:
    """pyAgrum's reader in C++."""
    import pyagrum

    pyagrum.setNumberOfThreads(1)
    path, network = plain(name), read(name)

    def summary(bayes: Any) -> dict[str, float]:
        return checksums(bayes.cpt(variable).toarray() for variable in network.names)

    return Job(lambda: pyagrum.loadBN(path), summary)


def pgmpy_read(name: str) -> Job:
    """pgmpy's reader."""
    from pgmpy.readwrite import BIFReader

    path, network = plain(name), read(name)

    def summary(model: Any) -> dict[str, float]:
        return checksums(np.asarray(model.get_cpds(variable).values) for variable in network.names)

    return Job(lambda: BIFReader(path).get_model(), summary)


def large(n: int) -> Job:
    """A UAI file of random weights."""
    import besag

    rng = np.random.default_rng(0)
    scopes = rng.integers(0, 9000, (n, 3)) + np.array([0, 9000, 18000])
    weights = rng.random((n, 64)).round(6)
    head = f"MARKOV\n27000\n{'4 ' * 27000}\n{n}\n"
    lines = ["3 " + " ".join(map(str, scope)) for scope in scopes.tolist()]
    lines += ["64 " + " ".join(map(str, row)) for row in weights.tolist()]
    path = folder() / "large.uai"
    path.write_text(head + "\n".join(lines))

    def summary(model: Any) -> dict[str, float]:
        return {"entries": len(model.theta), "energies": float(model.theta.sum())}

    return Job(lambda: besag.load(path), summary)


def read_case(name: str) -> Case:
    """One network as BIF, all readers."""
    return Case(
        f"{name}.bif",
        {"besag": besag_read, "pyagrum": pyagrum_read, "pgmpy": pgmpy_read},
        {"name": name},
        tolerance=1e-5,
        patience=20.0,
        time_limit=150.0,
    )


SUITE = Suite(
    title="reading and writing models",
    cases=(
        *(read_case(name) for name in NETWORKS),
        *(Case(f"munin{suffix}", {"besag": besag_read}, {"name": "munin", "suffix": suffix}) for suffix in OTHERS),
        *(
            Case(f"munin{suffix}, written", {"besag": besag_write}, {"name": "munin", "suffix": suffix})
            for suffix in (".bif", *OTHERS[:-1])
        ),
        Case("large UAI", {"besag": large}, {"n": 80_000}),
    ),
)
