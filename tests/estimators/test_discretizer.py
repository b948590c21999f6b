"""Discretizer: cut points against their definitions, intervals that hold the numbers."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import KBinsDiscretizer

import besag
from besag.errors import DataError, DataWarning, ModelError

RNG = np.random.default_rng(4)
FRAME = pd.DataFrame({"a": RNG.normal(size=300), "b": RNG.exponential(size=300), "c": RNG.choice(["x", "y"], 300)})


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_cut_points_are_those_of_scikit_learn(strategy: Any) -> None:
    ours = besag.Discretizer(strategy, 4).fit(FRAME)
    theirs = KBinsDiscretizer(4, encode="ordinal", strategy=strategy, quantile_method="linear").fit(FRAME[["a", "b"]])
    for name, edges in zip("ab", theirs.bin_edges_, strict=True):
        np.testing.assert_allclose(ours.cut_points_[name], edges[1:-1])


def test_kmeans_is_a_fixed_point() -> None:
    cuts = besag.Discretizer("kmeans", 4).fit(FRAME).cut_points_["b"]
    groups = np.searchsorted(cuts, FRAME["b"])
    means = [FRAME["b"][groups == g].mean() for g in range(4)]
    np.testing.assert_allclose(cuts, (np.array(means[1:]) + means[:-1]) / 2, rtol=1e-9)


def test_intervals_hold_the_numbers() -> None:
    found = besag.Discretizer(n_bins=3, cuts={"b": [0.5, 2.0]}).fit_transform(FRAME)
    assert list(found) == list(FRAME)
    assert found["c"].equals(FRAME["c"])
    for name in "ab":
        assert found[name].cat.ordered
        assert all(value in interval for value, interval in zip(FRAME[name], found[name], strict=True))
    assert [str(interval) for interval in found["b"].cat.categories] == ["(-inf, 0.5]", "(0.5, 2.0]", "(2.0, inf]"]


def entropy(y: Any) -> float:
    p = np.bincount(y, minlength=3) / max(len(y), 1)
    return float(-(p[p > 0] * np.log2(p[p > 0])).sum())


def mdlp(x: Any, y: Any) -> list[float]:
    """Fayyad and Irani's recursion as they write it."""
    best: tuple[float, float] | None = None
    for cut in (np.unique(x)[1:] + np.unique(x)[:-1]) / 2:
        left, right = y[x <= cut], y[x > cut]
        after = (len(left) * entropy(left) + len(right) * entropy(right)) / len(y)
        if best is None or after < best[0] - 1e-12:
            best = (after, float(cut))
    if best is None:
        return []
    left, right = y[x <= best[1]], y[x > best[1]]
    k, k1, k2 = (len(np.unique(part)) for part in (y, left, right))
    delta = np.log2(3.0**k - 2) - (k * entropy(y) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(y) - best[0] <= (np.log2(len(y) - 1) + delta) / len(y):
        return []
    return [*mdlp(x[x <= best[1]], left), best[1], *mdlp(x[x > best[1]], right)]


@pytest.mark.parametrize("seed", range(5))
def test_mdlp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 60, 200) / 4
    y = (x > 4).astype(int) + (x > 9) * (rng.random(200) < 0.9)
    found = besag.Discretizer("mdlp").fit(pd.DataFrame({"x": x}), y).cut_points_["x"]
    assert found.tolist() == pytest.approx(mdlp(x, y))
    assert len(found) >= 1


def test_missing_cells_stay_missing() -> None:
    frame = FRAME.assign(a=FRAME["a"].where(FRAME["a"] > 0))
    found = besag.Discretizer(n_bins=2).fit_transform(frame)
    assert found["a"].isna().equals(frame["a"].isna())


def test_whole_numbers_that_are_few_are_left_as_they_are() -> None:
    frame = pd.DataFrame({"grade": [1.0, 2.0, np.nan, 3.0] * 10, "half": [0.5, 1.0] * 20, "many": np.arange(40.0)})
    found = besag.Discretizer(n_bins=2).fit(frame)
    assert list(found.cut_points_) == ["half", "many"]
    assert found.transform(frame)["grade"].equals(frame["grade"])
    assert list(besag.Discretizer(n_bins=2, columns=["grade"]).fit(frame).cut_points_) == ["grade"]


def test_files(tmp_path: Any) -> None:
    fitted = besag.Discretizer(cuts={"a": [0.0]}, n_bins=3).fit(FRAME)
    fitted.save(tmp_path / "cuts.npz")
    assert besag.load(tmp_path / "cuts.npz").transform(FRAME).equals(fitted.transform(FRAME))
    network = besag.BayesianNetwork("a -> b", "laplace").fit(fitted.transform(FRAME[["a", "b"]]))
    network.save(tmp_path / "network.npz")
    assert besag.load(tmp_path / "network.npz").sample(9).equals(network.sample(9))


def test_a_column_of_one_interval_is_said() -> None:
    with pytest.warns(DataWarning, match="column 'a' is one interval"):
        besag.Discretizer().fit(pd.DataFrame({"a": [1.5, 1.5]}))


@pytest.mark.parametrize(
    ("options", "frame", "match"),
    [
        ({"strategy": "best"}, FRAME, "strategy must be one of"),
        ({"n_bins": 1}, FRAME, "n_bins must be a whole number of at least 2"),
        ({"columns": ["d"]}, FRAME, "there is no column 'd'"),
        ({"columns": ["c"]}, FRAME, "'c' is to be cut, and holds values that are no numbers"),
        ({"strategy": "mdlp"}, FRAME, "needs the target"),
        ({"cuts": {"a": [np.nan]}}, FRAME, "cuts of 'a' must be finite numbers"),
        ({}, FRAME.assign(a=np.nan), "'a' has no value"),
        ({}, FRAME.assign(a=np.inf), "'a' has infinite numbers"),
    ],
)
def test_bad_input(options: Any, frame: Any, match: str) -> None:
    with pytest.raises((DataError, ModelError), match=match):
        besag.Discretizer(**options).fit(frame)
