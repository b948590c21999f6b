"""BayesianNetworkClassifier: p(class | features) by a Bayesian network over both, in scikit-learn's manner.

naive    the class is the only parent of every feature
tan      besides, features form a tree: that of largest mutual information given the class
edges    any other graph, in which the class has its name
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.code_table import CodeTable, missing_code
from besag.data.tables.columns import column_of_series
from besag.data.tables.reading import read_table
from besag.errors import DataError, ModelError
from besag.estimators.base import Estimator, read_seed
from besag.estimators.files import save_estimator
from besag.estimators.networks.bayesian import BayesianNetwork
from besag.estimators.networks.structures import learned_graph

CLASS = "class"  # the name of a class that has none


class BayesianNetworkClassifier(Estimator):
    """A classifier of rows of states; cells may be missing, in training and in prediction.

    structure: "naive", "tan", or edges, text, a networkx.DiGraph or a Model in which the class is a variable, by the
    name of y, else "class". prior, prior_strength, states, max_iter and random_state as of BayesianNetwork.

    >>> import besag
    >>> rows = besag.data.bundled("asia").sample(2000, seed=1)
    >>> X, y = rows.drop(columns="bronc"), rows["bronc"]
    >>> classifier = besag.BayesianNetworkClassifier("naive").fit(X, y)
    >>> round(classifier.score(X, y), 2)
    0.85
    """

    def __init__(
        self,
        structure: Any = "naive",
        prior: Any = "laplace",
        *,
        prior_strength: float | None = None,
        states: Mapping[str, Any] | None = None,
        max_iter: int = 100,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.structure = structure
        self.prior = prior
        self.prior_strength = prior_strength
        self.states = states
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their classes y."""
        if y is None:
            raise ModelError("BayesianNetworkClassifier requires y to be passed, but the target y is None")
        features = read_table(X, self.states, sample_weight)
        table, self._class = _with_class(features, y)
        graph = self._edges(table)
        self.network_ = BayesianNetwork(
            graph,
            self.prior,
            prior_strength=self.prior_strength,
            states=self.states,
            max_iter=self.max_iter,
            random_state=read_seed(self.random_state),
            n_jobs=self.n_jobs,
        ).fit(table)
        self._about()
        return self

    def _about(self) -> None:
        self.model_ = self.network_.model_
        names = list(self.network_.feature_names_in_)
        self.classes_ = np.asarray(self.network_._types[names.index(self._class)].values)
        self.feature_names_in_ = np.array([name for name in names if name != self._class], object)
        self.n_features_in_ = len(self.feature_names_in_)

    def _edges(self, table: CodeTable) -> Any:
        features = [name for name in table.names if name != self._class]
        if not isinstance(self.structure, str) or "->" in self.structure or "<-" in self.structure:
            return self.structure
        if self.structure == "naive":
            if not features:
                raise DataError("there are no features; X has no columns")
            return [(self._class, name) for name in features]
        if self.structure != "tan":
            raise ModelError(f"structure must be 'naive', 'tan' or a graph with the class, got {self.structure!r}")
        known = table.take(~table.incomplete())
        if known.n_rows == 0:
            raise DataError(
                "every row has a missing cell, and structure='tan' is found in complete rows; give edges, or "
                "structure='naive'"
            )
        parents = learned_graph("tan", known, {"target": self._class}).parents
        return [(table.names[p], table.names[v]) for v, above in enumerate(parents) for p in above]

    def predict_proba(self, X: Any) -> Array:
        """(N, K): p(class | what is known of the row), columns in the order of classes_."""
        self._check_fitted()
        return np.asarray(self.network_.predict_proba(X, self._class))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> AnyArray:
        """(N,): the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is found."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """A classifier of several classes, whose features may be text and may be missing."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        inputs = InputTags(categorical=True, string=True, allow_nan=True)
        return Tags("classifier", TargetTags(required=True), None, ClassifierTags(), input_tags=inputs)

    def save(self, path: Any) -> None:
        """Write the fitted classifier to one file, without pickle; `besag.load` reads it."""
        self._check_fitted()
        save_estimator(self, path)

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        told, arrays = self.network_._stored()
        parameters = {**self.get_params(), "prior": told["parameters"]["prior"]}
        if not isinstance(self.structure, str):
            parameters["structure"] = [list(edge) for edge in self.network_.edges_]
        network = {key: value for key, value in told.items() if key != "parameters"}
        inner = {**told["parameters"], "structure": [list(edge) for edge in self.network_.edges_]}
        return {"parameters": parameters, "network": network, "inner": inner, "class": self._class}, arrays

    @classmethod
    def _restored(cls, given: dict[str, Any], told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Self:
        network = BayesianNetwork._restored(told["inner"], told["network"], arrays)
        made = cls(**{**given, "prior": network.prior})
        made.network_, made._class = network, told["class"]
        made._about()
        return made


def _with_class(features: CodeTable, y: Any) -> tuple[CodeTable, str]:
    """The table with a column of classes, by the name of y, and that name."""
    import pandas as pd

    name = CLASS if getattr(y, "name", None) is None else str(y.name)
    while name in features.names:
        name = CLASS if name != CLASS and CLASS not in features.names else name + "_"
    column = y if isinstance(y, pd.Series) else pd.Series(_one_column(y))
    if len(column) != features.n_rows:
        raise DataError(f"y must have {features.n_rows} classes, one a row, got {len(column)}")
    codes, kind = column_of_series(name, column)
    if (codes == missing_code(codes)).any():
        at = int(np.argmax(codes == missing_code(codes)))
        row = at if features.index is None else features.index[at]
        raise DataError(f"y must give the class of every row, and row {row!r} has none; drop such rows", row=row)
    if len(kind.states) < 2:
        raise DataError(f"y must have two classes at least; it has {list(kind.states)}")
    names, types = (*features.names, name), (*features.types, kind)
    weights, index = features.weights, features.index
    return CodeTable(names, types, (*features.codes, codes), features.n_rows, weights, index), name


def _one_column(y: Any) -> AnyArray:
    """Classes (N,), which a table of one column may hold too."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"y must be classes (N,), got shape {values.shape}")
    return values
