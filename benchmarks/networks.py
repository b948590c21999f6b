"""Published Bayesian networks, and the same evidence on them for every contestant.

A network has V variables; variable v has parents pa(v) and a table p(y_v | y_pa(v)) of shape (K of the parents, K_v):

    p(y) = prod_v p(y_v | y_pa(v))

A tenth of the variables is observed, leaves only. Their states are those of a forward sample, so the evidence is
possible. A leaf has no child, so that another state of it, possible given its parents in the same sample, leaves the
evidence possible too: that is how `changes` walks from one evidence to the next.

The files are in $BESAG_DATA, else in ../shared/data. Standard library and numpy only: all environments read this.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Evidence = dict[str, str]

FOLDER = (
    Path(os.environ.get("BESAG_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "bnlearn_networks"
)
SHARE = 0.1
SEED = 7


class Network(NamedTuple):
    """The numbers of a file: names and states in file order, parents and table of each variable."""

    names: list[str]
    states: list[list[str]]
    parents: list[list[int]]
    tables: list[Array]


class Change(NamedTuple):
    """One step of a session: the variable with a new state, and the variable whose posterior is asked."""

    name: str
    state: str
    target: str


def bif(name: str) -> Path:
    """The compressed file, as published."""
    path = FOLDER / f"{name}.bif.gz"
    if not path.is_file():
        raise FileNotFoundError(f"no {path.name} in the data folder; set BESAG_DATA to the folder of bnlearn_networks")
    return path


@contextmanager
def uncompressed(name: str) -> Iterator[str]:
    """The path of a plain copy of the file, for readers that need one; gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.bif"
        path.write_bytes(gzip.decompress(bif(name).read_bytes()))
        yield str(path)


def read(name: str) -> Network:
    """The network, from its UAI form, which is easier to read than BIF and has the same values; rows sum to one."""
    folder = bif(name).parent / "uai"
    named = json.loads(gzip.decompress((folder / f"{name}.names.json.gz").read_bytes()))
    tokens = iter(gzip.decompress((folder / f"{name}.uai.gz").read_bytes()).split()[1:])

    def integers(n: int) -> list[int]:
        return [int(next(tokens)) for _ in range(n)]

    sizes = integers(int(next(tokens)))
    scopes = [integers(int(next(tokens))) for _ in range(int(next(tokens)))]
    parents: list[list[int]] = [[]] * len(sizes)
    tables = [np.empty(0)] * len(sizes)
    for *above, child in scopes:
        flat = np.array([float(next(tokens)) for _ in range(int(next(tokens)))])
        table = flat.reshape([sizes[v] for v in (*above, child)])
        parents[child], tables[child] = above, table / table.sum(axis=-1, keepdims=True)
    names = named["variables"]
    return Network(names, [named["states"][v] for v in names], parents, tables)


def sample(network: Network, n: int, seed: int = SEED) -> IntArray:
    """Forward samples, (n, V): each variable after its parents, by inversion of its cumulative distribution."""
    rng = np.random.default_rng(seed)
    codes = np.full((n, len(network.names)), -1)
    waiting = list(range(len(network.names)))
    while waiting:
        v = waiting.pop(0)
        if any(codes[0, above] < 0 for above in network.parents[v]):
            waiting.append(v)
            continue
        rows = network.tables[v][tuple(codes[:, above] for above in network.parents[v])]
        bounds = np.broadcast_to(rows, (n, rows.shape[-1])).cumsum(axis=-1)
        codes[:, v] = (bounds <= rng.random((n, 1)) * bounds[:, -1:]).sum(axis=-1)
    return codes


def observed(network: Network, seed: int = SEED) -> list[int]:
    """The leaves that are observed, in file order."""
    inner = {above for parents in network.parents for above in parents}
    leaves = [v for v in range(len(network.names)) if v not in inner]
    wanted = max(1, round(SHARE * len(network.names)))
    return sorted(np.random.default_rng(seed).permutation(leaves)[:wanted].tolist())


def evidence(network: Network, row: int = 0) -> Evidence:
    """The observed leaves with the states of one of two forward samples."""
    codes = sample(network, 2)[row]
    return {network.names[v]: network.states[v][codes[v]] for v in observed(network)}


def evidence_rows(network: Network, n: int) -> list[Evidence]:
    """The observed leaves with the states of n forward samples."""
    codes, found = sample(network, n), observed(network)
    return [{network.names[v]: network.states[v][row[v]] for v in found} for row in codes]


def changes(network: Network, n: int, seed: int = SEED) -> list[Change]:
    """n steps from `evidence(network)`: one observed leaf takes another possible state, one free variable is asked."""
    rng = np.random.default_rng(seed)
    now, found = sample(network, 2)[0], observed(network)
    free = sorted(set(range(len(network.names))) - set(found))
    steps: list[Change] = []
    while len(steps) < n:
        v, target = int(rng.choice(found)), int(rng.choice(free))
        chances = network.tables[v][tuple(now[network.parents[v]])]
        others = [k for k in np.flatnonzero(chances) if k != now[v]]
        if others:
            now[v] = rng.choice(others)
            steps.append(Change(network.names[v], network.states[v][now[v]], network.names[target]))
    return steps


def checksums(marginals: list[Array]) -> dict[str, float]:
    """Numbers that tell marginals apart, one for each 50 variables; all weights positive, so that nothing cancels."""
    means = np.array([(2 + np.cos(np.arange(len(p)))) @ p for p in marginals])
    weighted = means * (2 + np.cos(np.arange(len(means))))
    return {f"marginals from {at}": float(weighted[at : at + 50].sum()) for at in range(0, len(weighted), 50)}
