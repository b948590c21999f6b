"""How well chain CRFs label the test parts, beside CRFsuite: both with the same objective, each trained to its end.

CRFsuite makes 100 iterations of L-BFGS, as its users do, on letters until it stops by itself; besag stops where its
own tolerance says so. Times are of one run.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.suite import Case, Job, Suite
from benchmarks.suites.crf import crfsuite_training, data, scores


def besag_training(task: str) -> Job:
    """ChainCRF as it is."""
    import besag

    train, test = data(task)

    def run() -> Any:
        pairs = "all" if task.startswith("letters") else "seen"
        return besag.ChainCRF(l2=1.0, pairs=pairs, n_jobs=1).fit(train.items, train.labels)

    return Job(run, lambda crf: scores(task, crf.predict(test.items), test))


SUITE = Suite(
    title="how well chain CRFs label",
    cases=tuple(
        Case(
            task,
            {"besag": partial(besag_training, task), "crfsuite": partial(crfsuite_training, task)},
            tolerance=0.01,
            patience=0.1,
        )
        for task in ("chunking", "tagging", "letters, small", "letters, large")
    ),
    scores=("F1", "accuracy"),
)
