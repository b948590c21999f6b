"""Where memory is the limit: all marginals of the widest networks beside a plain copy of tables of the same size.

Both have `bytes`, the size of the clique tables, in their summaries, so bytes / seconds is the rate of each, and the
speed is the part of the copy's rate that the propagation has. A propagation passes over the tables at least twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.networks import bif
from benchmarks.suite import Case, Job, Suite


def loaded(name: str, engine: str) -> tuple[Any, int]:
    """The model, and the entries of its clique tables."""
    import besag

    model = besag.load(bif(name))
    return model, int(model.cost(engine=engine).entries)


def besag_job(name: str, engine: str) -> Job:
    """All marginals without evidence, the tree built before."""
    model, entries = loaded(name, engine)
    return Job(lambda: model.marginals(engine=engine, n_threads=1), lambda result: {"bytes": 8 * entries})


def copy_job(name: str, engine: str) -> Job:
    """From one array to another, both there before."""
    _, entries = loaded(name, engine)
    source, target = np.ones(entries), np.zeros(entries)
    return Job(lambda: np.copyto(target, source), lambda result: {"bytes": 8 * entries})


def case(name: str, engine: str = "junction_tree") -> Case:
    """One network."""
    jobs: dict[str, Callable[..., Job]] = {"besag": besag_job, "numpy-copy": copy_job}
    return Case(name, {contestant: partial(job, engine=engine) for contestant, job in jobs.items()}, {"name": name})


SUITE = Suite(
    title="propagation beside a plain copy",
    cases=(case("link"), case("munin1")),
    environments={"numpy-copy": "besag"},
)
