"""Learning on pictures: 200 of 100 x 100 pixels with 20 features and two labels, to a gradient of 1e-4 of the first.

GridCRF learns weights of features and of edges, by pseudolikelihood or piecewise; scikit-learn's LogisticRegression
learns the weights of features alone, from the same pixels with the same penalty, and so does a GraphCRF without edges.
The two that solve the same problem must agree on how many pixels they label correctly. `iterations` are those of
L-BFGS; added memory is that of the fit, beside the 320 MB of features. The likelihood by loopy belief propagation goes
to the same reduction. The last case labels one picture of 1000 x 1000 with what was learnt from small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.suite import Case, Job, Suite

L2, REDUCTION = 1.0, 1e-4


class Pictures(NamedTuple):
    """Features (N, H, W, D) and labels (N, H, W)."""

    features: Any
    labels: Any


def draw(n: int, side: int, n_features: int) -> Pictures:
    """Labels by a linear function of the features and a smooth field."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((n, side, side, n_features))
    field = rng.standard_normal((n, side, side))
    for axis in (1, 2):
        for _ in range(3):
            field = (np.roll(field, 1, axis) + field + np.roll(field, -1, axis)) / 3
    weights = 0.5 * np.random.default_rng(1).standard_normal(n_features)  # of all pictures, however many
    score = features @ weights + 10 * field + rng.standard_normal(field.shape)
    return Pictures(features, (score > 0).astype(np.int64))


class Until:
    """Ends a fit where the gradient is small beside the first."""

    def __init__(self) -> None:
        self.first = 0.0

    def __call__(self, row: Any, theta: Any) -> bool:
        self.first = self.first or row.grad_norm
        return bool(row.grad_norm <= REDUCTION * self.first)


def grid(objective: str, **parameters: int) -> Job:
    """A GridCRF."""
    import besag

    pictures = draw(**parameters)
    images, labels = list(pictures.features), list(pictures.labels)
    crf = besag.GridCRF(objective=objective, l2=L2, n_jobs=1, tol=0)
    return Job(
        lambda: crf.fit(images, labels, on_step=Until()), lambda done: {f"iterations of {objective}": done.n_iter_}
    )


def labelling(decode: str, side: int, n_features: int) -> Job:
    """A GridCRF that has learnt from ten pictures of 50 x 50, before a large one."""
    import besag

    small, large = draw(10, 50, n_features), draw(1, side, n_features)
    crf = besag.GridCRF(l2=L2, n_jobs=1, engine="bp", decode=decode).fit(list(small.features), list(small.labels))

    def summary(done: Any) -> Mapping[str, float]:
        return {f"pixels labelled correctly by {decode}": float((done[0] == large.labels[0]).mean())}

    return Job(lambda: crf.predict(list(large.features)), summary)


def pixels(**parameters: int) -> Job:
    """A GraphCRF without edges."""
    import besag

    nodes, labels = flatten(draw(**parameters))
    crf = besag.GraphCRF(l2=L2, n_jobs=1, tol=0)

    def summary(done: Any) -> Mapping[str, float]:
        hits = (nodes @ done.coef_.T + done.intercept_).argmax(axis=1) == labels
        return {"iterations of pixels": done.n_iter_, "pixels labelled correctly": float(hits.mean())}

    return Job(lambda: crf.fit([(nodes,)], [labels], on_step=Until()), summary)


def sklearn(**parameters: int) -> Job:
    """scikit-learn's LogisticRegression, which stops by the largest entry of the gradient of the mean loss."""
    from sklearn.linear_model import LogisticRegression

    nodes, labels = flatten(draw(**parameters))
    first = np.abs(nodes.T @ (0.5 - labels)).max() / len(nodes)
    model = LogisticRegression(C=1 / L2, tol=REDUCTION * first, max_iter=1000)

    def summary(done: Any) -> Mapping[str, float]:
        hits = done.predict(nodes) == labels
        return {"iterations of sklearn": float(done.n_iter_[0]), "pixels labelled correctly": float(hits.mean())}

    return Job(lambda: model.fit(nodes, labels), summary)


def flatten(pictures: Pictures) -> tuple[Any, Any]:
    """All pixels."""
    return pictures.features.reshape(-1, pictures.features.shape[3]), pictures.labels.reshape(-1)


SUITE = Suite(
    title="learning on pictures",
    cases=(
        Case(
            "200 pictures of 100 x 100, 20 features",
            {
                "besag-pseudo": partial(grid, "pseudolikelihood"),
                "besag-piecewise": partial(grid, "piecewise"),
                "besag-pixels": pixels,
                "sklearn": sklearn,
            },
            {"n": 200, "side": 100, "n_features": 20},
            tolerance=1e-4,
            baseline=("sklearn",),
            patience=60.0,
        ),
        Case(
            "200 pictures of 100 x 100, 20 features, by loopy belief propagation",
            {"besag-bp": partial(grid, "likelihood[engine=bp]")},
            {"n": 200, "side": 100, "n_features": 20},
            patience=900.0,
        ),
        Case(
            "a picture of 1000 x 1000 labelled",
            {"besag-map": partial(labelling, "map"), "besag-marginal": partial(labelling, "marginal")},
            {"side": 1000, "n_features": 20},
            patience=60.0,
        ),
    ),
    environments=dict.fromkeys(
        ("besag-pseudo", "besag-piecewise", "besag-pixels", "sklearn", "besag-bp", "besag-map", "besag-marginal"),
        "besag",
    ),
)
