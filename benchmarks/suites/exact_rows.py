"""Many rows of evidence, all marginals of each: besag in one call, pyAgrum row by row.

besag begins from a model that was just loaded. pyAgrum keeps one engine and changes its evidence, which was faster than
an engine for each row. The marginals of every tenth part of the rows are compared. 10,000 rows take pyAgrum a minute or
more: `--slow`. Single precision of pyAgrum's BIF reader: tolerance 1e-5.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.networks import bif, checksums, evidence_rows, read
from benchmarks.suite import Case, Job, Suite
from benchmarks.suites.exact import PYAGRUM, pyagrum_engine, pyagrum_network


def besag_job(name: str, n_rows: int, engine: str) -> Job:
    """A DataFrame of evidence."""
    import pandas as pd

    import besag

    network = read(name)
    rows = pd.DataFrame(evidence_rows(network, n_rows))

    def run(model: besag.Model) -> Any:
        return model.marginals(evidence=rows, engine=engine, n_threads=1)

    def summary(result: Any) -> dict[str, float]:
        return checksums([result[v][row] for row in range(0, n_rows, n_rows // 10) for v in network.names])

    return Job(run, summary, lambda: besag.load(bif(name)))


def pyagrum_job(name: str, n_rows: int, contestant: str) -> Job:
    """An engine that is kept; the answers of every tenth part of the rows too."""
    network, bayes = read(name), pyagrum_network(name)
    rows = evidence_rows(network, n_rows)

    def run() -> list[Any]:
        engine = pyagrum_engine(bayes, contestant)
        engine.setEvidence(rows[0])
        kept = []
        for number, row in enumerate(rows):
            for variable, state in row.items():
                engine.chgEvidence(variable, state)
            engine.makeInference()
            posteriors = [engine.posterior(variable) for variable in network.names]
            if number % (n_rows // 10) == 0:
                kept += [tensor.toarray() for tensor in posteriors]
        return kept

    return Job(run, checksums)


def case(name: str, n_rows: int, engine: str = "junction_tree") -> Case:
    """One network, all contestants."""
    return Case(
        f"{name}, {n_rows:,} rows",
        {"besag": partial(besag_job, engine=engine)}
        | {contestant: partial(pyagrum_job, contestant=contestant) for contestant in PYAGRUM},
        {"name": name, "n_rows": n_rows},
        tolerance=1e-5,
        baseline=tuple(PYAGRUM),
        patience=5.0,
        time_limit=150.0,
        slow=n_rows > 1000,
    )


SUITE = Suite(
    title="all marginals for many rows of evidence",
    cases=tuple(case(name, n_rows) for n_rows in (1000, 10_000) for name in ("alarm", "hepar2")),
    environments=dict.fromkeys(PYAGRUM, "pyagrum"),
)
