"""Discretizer: columns of numbers as ordered intervals, (-inf, c_1], (c_1, c_2], ..., (c_n, inf].

quantile    equally many rows in each of n_bins intervals
uniform     intervals of one width from the least to the largest value
kmeans      midpoints between the means of n_bins groups whose squared distances are least (Lloyd's steps)
mdlp        cuts that tell about a target, as long as they pay for their own description (Fayyad and Irani, 1993)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.column_type import MANY
from besag.errors import DataError, DataWarning, ModelError, warn
from besag.estimators.base import Estimator, check_choice
from besag.estimators.files import save_estimator
from besag.registry import is_number, is_whole

if TYPE_CHECKING:
    import pandas as pd

STRATEGIES = ("quantile", "uniform", "kmeans", "mdlp")
STEPS = 100  # of k-means


class Discretizer(Estimator):
    """Numbers as ordered categories, for networks of discrete variables; missing cells stay missing.

    cuts: {column: cut points} that are given; other columns get theirs by `strategy`. columns: those to be cut; None:
    those of floats, and those of `cuts`; whole numbers of at most 20 values are left as the states that they are, also
    where missing cells make them floats.

    >>> import pandas as pd
    >>> import besag
    >>> frame = pd.DataFrame({"weight": [50.0, 61.5, 72.0, 90.5], "sex": ["f", "f", "m", "m"]})
    >>> besag.Discretizer(n_bins=2).fit_transform(frame)["weight"].astype(str).tolist()
    ['(-inf, 66.75]', '(-inf, 66.75]', '(66.75, inf]', '(66.75, inf]']
    """

    def __init__(
        self,
        strategy: Literal["quantile", "uniform", "kmeans", "mdlp"] = "quantile",
        n_bins: int = 5,
        *,
        cuts: Mapping[str, Iterable[float]] | None = None,
        columns: Iterable[str] | None = None,
    ) -> None:
        self.strategy = strategy
        self.n_bins = n_bins
        self.cuts = cuts
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the cut points; mdlp needs the target y."""
        check_choice("strategy", self.strategy, STRATEGIES)
        if not (is_whole(self.n_bins) and self.n_bins >= 2):
            raise ModelError(f"n_bins must be a whole number of at least 2, got {self.n_bins!r}")
        frame, given = _frame(X), {str(name): _given(name, cut) for name, cut in (self.cuts or {}).items()}
        wanted = [*given, *(self._columns(frame) if self.columns is None else map(str, self.columns))]
        for name in wanted:
            if name not in frame.columns:
                raise DataError(f"there is no column {name!r}; there are {list(frame.columns)[:6]}", column=name)
        target = None
        if self.strategy == "mdlp" and set(wanted) - set(given):
            if y is None:
                raise ModelError('strategy="mdlp" needs the target that cuts are to tell about: fit(X, y)')
            target = np.unique(np.asarray(y).astype(str), return_inverse=True)[1]
        self.cut_points_ = {
            name: given[name] if name in given else self._cut(name, _numbers(frame, name), target)
            for name in dict.fromkeys(wanted)
        }
        self.feature_names_in_ = np.array(frame.columns, object)
        self.n_features_in_ = frame.shape[1]
        return self

    def _columns(self, frame: pd.DataFrame) -> list[str]:
        floats = [str(name) for name in frame.columns if getattr(frame[name].dtype, "kind", "O") == "f"]
        return [name for name in floats if not _are_states(np.unique(_numbers(frame, name)))]

    def _cut(self, name: str, values: Array, target: AnyArray | None) -> Array:
        known = ~np.isnan(values)
        inside = values[known]
        if len(inside) == 0:
            raise DataError(f"column {name!r} has no value in any row; drop it", column=name)
        if not np.isfinite(inside).all():
            text = f"column {name!r} has infinite numbers: give its cut points, cuts={{{name!r}: [...]}}"
            raise DataError(text, column=name)
        if target is not None:
            found = np.array(_mdlp(inside, target[known]), np.float64)
        else:
            found = {"quantile": _quantiles, "uniform": _even, "kmeans": _kmeans}[self.strategy](inside, self.n_bins)
        cuts: Array = np.unique(found)
        cuts = cuts[(cuts >= inside.min()) & (cuts < inside.max())]
        if len(cuts) == 0:
            warn(
                DataWarning(
                    f"column {name!r} is one interval: no cut {'tells anything' if len(inside) > 1 else 'fits'}"
                )
            )
        return cuts

    def transform(self, X: Any) -> pd.DataFrame:
        """The table with ordered categories of intervals in place of numbers."""
        import pandas as pd

        self._check_fitted()
        frame = _frame(X).copy()
        for name, cuts in self.cut_points_.items():
            if name in frame.columns:
                values = _numbers(frame, name)
                codes = np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="left"))
                intervals = pd.IntervalIndex.from_breaks([-math.inf, *cuts.tolist(), math.inf])
                dtype = pd.CategoricalDtype(intervals, ordered=True)
                frame[name] = pd.Categorical.from_codes(codes, dtype=dtype)
        return frame

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """fit, then transform."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """The columns, as they were."""
        self._check_fitted()
        return self.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return "cut_points_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        """A transformer of tables."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        inputs = InputTags(categorical=True, string=True, allow_nan=True)
        return Tags(None, TargetTags(required=False), TransformerTags(), input_tags=inputs)

    def save(self, path: Any) -> None:
        """Write the cut points to one file, without pickle; `besag.load` reads it."""
        self._check_fitted()
        save_estimator(self, path)

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        cuts = {name: np.asarray(cut).tolist() for name, cut in self.cut_points_.items()}
        given = None if self.cuts is None else {name: cuts[str(name)] for name in self.cuts}
        parameters = {**self.get_params(), "cuts": given}
        parameters["columns"] = None if self.columns is None else list(self.columns)
        return {"parameters": parameters, "cut_points": cuts, "names": self.feature_names_in_.tolist()}, {}

    @classmethod
    def _restored(cls, given: dict[str, Any], told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Self:
        made = cls(**given)
        made.cut_points_ = {name: np.array(cut, np.float64) for name, cut in told["cut_points"].items()}
        made.feature_names_in_ = np.array(told["names"], object)
        made.n_features_in_ = len(told["names"])
        return made


def _frame(X: Any) -> pd.DataFrame:
    """A table as a DataFrame, columns by their text."""
    import pandas as pd

    frame = X if isinstance(X, pd.DataFrame) else X.to_pandas() if hasattr(X, "to_pandas") else pd.DataFrame(X)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _numbers(frame: pd.DataFrame, name: str) -> Array:
    try:
        return np.asarray(frame[name].to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} is to be cut, and holds values that are no numbers", column=name) from None


def _are_states(distinct: Array) -> bool:
    """Whether distinct numbers are few and whole, but for NaN: codes and counts, no measurements."""
    known = distinct[~np.isnan(distinct)]
    return 0 < len(known) <= MANY and bool((known == np.round(known)).all()) and bool(np.isfinite(known).all())


def _given(name: object, cuts: Iterable[float]) -> Array:
    listed = list(cuts)
    if not all(is_number(cut) and math.isfinite(cut) for cut in listed):
        raise ModelError(f"cuts of {name!r} must be finite numbers, got {listed}")
    return np.unique(np.array(listed, np.float64))


def _quantiles(values: Array, n_bins: int) -> Array:
    return np.asarray(np.quantile(values, np.arange(1, n_bins) / n_bins))


def _even(values: Array, n_bins: int) -> Array:
    return np.linspace(values.min(), values.max(), n_bins + 1)[1:-1]


def _kmeans(values: Array, n_bins: int) -> Array:
    """Lloyd's steps on sorted values, whose groups are neighbours; from equally wide groups on."""
    ordered = np.sort(values)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    cuts = _even(ordered, n_bins)
    for _ in range(STEPS):
        ends = np.unique(np.concatenate([[0], np.searchsorted(ordered, cuts, side="right"), [len(ordered)]]))
        means = np.diff(sums[ends]) / np.diff(ends)
        moved = (means[1:] + means[:-1]) / 2
        if len(moved) == len(cuts) and np.allclose(moved, cuts, rtol=1e-12, atol=0.0):
            break
        cuts = moved
    return cuts


def _mdlp(values: Array, classes: AnyArray) -> list[float]:
    """Cuts of a part, and of the parts that it is cut into."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    seen = np.zeros((len(ordered) + 1, int(classes.max(initial=0)) + 1))
    np.cumsum(np.eye(seen.shape[1])[classes[order]], axis=0, out=seen[1:])
    return _mdlp_cuts(ordered, seen, 0, len(ordered))


def _mdlp_cuts(ordered: Array, seen: Array, start: int, stop: int) -> list[float]:
    """seen (N + 1, K): how many of each class come before each place."""
    places = start + 1 + np.flatnonzero(np.diff(ordered[start:stop]) > 0)
    if len(places) == 0:
        return []
    whole = seen[stop] - seen[start]
    left, right = seen[places] - seen[start], seen[stop] - seen[places]
    n, n_left = stop - start, (places - start).astype(np.float64)
    entropies = (n_left * _entropy(left) + (n - n_left) * _entropy(right)) / n
    best = int(np.argmin(entropies))
    gain = float(_entropy(whole[None])[0] - entropies[best])
    k, k_left, k_right = (int(np.count_nonzero(part)) for part in (whole, left[best], right[best]))
    parts = k_left * _entropy(left[best : best + 1])[0] + k_right * _entropy(right[best : best + 1])[0]
    delta = math.log2(3.0**k - 2) - (k * _entropy(whole[None])[0] - parts)
    if gain <= (math.log2(n - 1) + delta) / n:
        return []
    place = int(places[best])
    cut = float((ordered[place - 1] + ordered[place]) / 2)
    return [*_mdlp_cuts(ordered, seen, start, place), cut, *_mdlp_cuts(ordered, seen, place, stop)]


def _entropy(counts: Array) -> Array:
    """(M,): in bits, of rows of counts (M, K)."""
    p = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return -np.asarray((p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1))
