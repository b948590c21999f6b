"""Chain CRFs beside CRFsuite: training from features as Python lists, vectorising included, and tagging.

Both minimise the same objective, sum of -log p(y | x) + ||w||^2, over the same weights: attributes with the labels that
they are seen with (with all labels for letters), and all transitions. CRFsuite makes 100 iterations of L-BFGS (to its
own end for letters); besag stops as soon as it is within 0.1% of where that ends. The value there, chunk F1 and
accuracy on the test part are in the JSON.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.sequences import Split, accuracy, chunk_f1, chunking, chunking_sentences, letters, tagging
from benchmarks.suite import Case, Job, Suite

# The value of the objective where CRFsuite ends; None: not known beforehand, besag makes 100 iterations.
ENDS = {"chunking": 13040.1, "tagging": None, "letters, small": 2698.783932, "letters, large": 17636.798694}


def data(task: str) -> tuple[Split, Split]:
    """Training and test part."""
    if task == "chunking":
        return chunking("train"), chunking("test")
    if task == "tagging":
        return tagging("train"), tagging("test")
    small = task == "letters, small"
    return letters(train=True, small=small), letters(train=False, small=small)


def scores(task: str, found: list[list[str]], test: Split) -> dict[str, float]:
    """How well the test part was labelled."""
    score = {"accuracy": accuracy(found, test.labels)}
    return score | {"F1": chunk_f1(found, test.labels)} if task == "chunking" else score


def besag_training(task: str, n_jobs: int) -> Job:
    """ChainCRF, until it is within 0.1% of CRFsuite's end."""
    import besag

    train, test = data(task)
    pairs = "all" if task.startswith("letters") else "seen"
    end = ENDS[task]

    def run() -> Any:
        crf = besag.ChainCRF(l2=1.0, pairs=pairs, max_iter=100 if end is None else 1000, n_jobs=n_jobs, tol=0.0)
        target = 0.0 if end is None else 1.001 * end
        crf.optimizer = "lbfgs"
        return crf.fit(train.items, train.labels, on_step=lambda row, _: row.value <= target)

    def summary(crf: Any) -> Mapping[str, float]:
        if end is not None and crf.objective_ > 1.001 * end:
            raise AssertionError(f"the objective is {crf.objective_}, above {1.001 * end}")
        return {"besag's objective": crf.objective_, **scores(task, crf.predict(test.items), test)}

    return Job(run, summary)


def crfsuite_training(task: str, n_jobs: int = 1) -> Job:
    """python-crfsuite, appended sequence by sequence."""
    train, test = data(task)

    def run() -> Any:
        return crfsuite_model(train, task)

    def summary(found: tuple[Any, float]) -> Mapping[str, float]:
        tagger, loss = found
        return {"CRFsuite's objective": loss, **scores(task, [tagger.tag(x) for x in test.items], test)}

    return Job(run, summary)


def crfsuite_model(train: Split, task: str, max_iterations: int = 100) -> tuple[Any, float]:
    """A tagger, and the last value of the objective."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for items, labels in zip(train.items, train.labels, strict=True):
        trainer.append(items, labels)
    options: dict[str, Any] = {"c1": 0.0, "c2": 1.0, "feature.possible_transitions": True}
    if task.startswith("letters"):
        options |= {"feature.possible_states": True, "max_iterations": 1000}
    else:
        options |= {"max_iterations": max_iterations}
    trainer.set_params(options)
    path = str(Path(tempfile.mkdtemp()) / "model")  # the tagger reads from it as long as it lives
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger, float(trainer.logparser.last_iteration["loss"])


def besag_tagging(one_by_one: bool) -> Job:
    """The test part of CoNLL-2000 by a model of 10 iterations, all at once or sentence by sentence."""
    import warnings

    import besag

    train, test = data("chunking")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)
        crf = besag.ChainCRF(l2=1.0, max_iter=10, n_jobs=1).fit(train.items, train.labels)

    def run() -> list[list[str]]:
        if one_by_one:
            return [crf.predict([x])[0] for x in test.items]
        return crf.predict(test.items)

    return Job(run, lambda found: {"tokens": float(sum(map(len, found)))})


def crfsuite_tagging(one_by_one: bool) -> Job:
    """The same, which CRFsuite does sentence by sentence in any case."""
    train, test = data("chunking")
    tagger, _ = crfsuite_model(train, "chunking", 10)
    return Job(lambda: [tagger.tag(x) for x in test.items], lambda found: {"tokens": float(sum(map(len, found)))})


def streamed_training(times: int, in_files: bool) -> Job:
    """Six iterations on the chunking data so many times over, made while they are read."""
    import warnings

    import besag

    def run() -> Any:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)
            crf = besag.ChainCRF(max_iter=6, n_jobs=1, scratch=folder if in_files else None)
            return crf.fit(
                (items for _ in range(times) for items, _ in chunking_sentences("train")),
                (labels for _ in range(times) for _, labels in chunking_sentences("train")),
            )

    return Job(run, lambda crf: {"objective": crf.objective_})


def streamed_case(times: int) -> Case:
    """What memory it takes."""
    return Case(
        f"chunking x {times}, six iterations from a generator",
        {"besag": partial(streamed_training, in_files=True), "in memory": partial(streamed_training, in_files=False)},
        {"times": times},
        patience=5.0,
        slow=True,
    )


def training_case(task: str, n_jobs: int = 1, slow: bool = False) -> Case:
    """One task."""
    return Case(
        f"{task}, training" + (" on two threads" if n_jobs > 1 else ""),
        {"besag": partial(besag_training, n_jobs=n_jobs), "crfsuite": crfsuite_training},
        {"task": task},
        tolerance=0.01,
        patience=20.0,
        cores=n_jobs,
        slow=slow,
    )


def tagging_case(one_by_one: bool) -> Case:
    """All sentences of a test part."""
    return Case(
        "tagging 47,377 tokens" + (", sentence by sentence" if one_by_one else ""),
        {"besag": besag_tagging, "crfsuite": crfsuite_tagging},
        {"one_by_one": one_by_one},
    )


SUITE = Suite(
    title="chain CRFs",
    cases=(
        training_case("chunking"),
        training_case("chunking", n_jobs=2),
        training_case("letters, small"),
        training_case("letters, large"),
        training_case("tagging"),
        tagging_case(one_by_one=False),
        tagging_case(one_by_one=True),
        streamed_case(1),
        streamed_case(10),
    ),
    environments={"in memory": "besag"},
)
