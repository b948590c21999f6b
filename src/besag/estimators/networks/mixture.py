"""Mixture: latent classes of the rows of a table.

    p(x) = sum_z p(z) prod_c p(x_c | z)        z = 0, ..., K - 1: the component, which no row gives

a Bayesian network with one hidden variable, above all columns, learnt by EM (`besag.em`) from several starts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.data.tables.reading import read_table
from besag.errors import DataError, DataWarning, ModelError
from besag.estimators.base import read_seed
from besag.estimators.learner import Learner
from besag.estimators.networks.bayesian import BayesianNetwork
from besag.model.bayes import with_cpts
from besag.model.variable import mapping_from, states_from
from besag.registry import is_whole

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model

COMPONENT = "component"


class Mixture(Learner):
    """A latent-class model of a table of states, whose cells may be missing.

    n_components: K. prior, prior_strength: pseudo-counts of the tables, as of BayesianNetwork. states: {name: states or
    cardinality} that are declared. restarts: how many times EM begins again, each time at random; the best end is the
    answer. Components are numbered by their weights, the largest first. verbose: tell on stderr how far EM has come.

    >>> import pandas as pd
    >>> rows = pd.DataFrame([("a", "x", "u"), ("b", "y", "v")] * 30 + [("a", "x", "v")] * 10, columns=list("PQR"))
    >>> mixture = Mixture(n_components=2).fit(rows)
    >>> mixture.weights_.round(2)
    array([0.57, 0.43])
    >>> mixture.predict(rows.head(2))
    array([0, 1])
    """

    tol: float

    def __init__(
        self,
        n_components: int = 2,
        prior: Any = None,
        *,
        prior_strength: float | None = None,
        states: Mapping[str, Any] | None = None,
        restarts: int = 4,
        max_iter: int = 500,
        tol: float = 1e-6,
        time_limit: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components, self.prior, self.prior_strength, self.states = n_components, prior, prior_strength, states
        self.restarts, self.max_iter, self.tol, self.time_limit = restarts, max_iter, tol, time_limit
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table; y is not looked at."""
        if not is_whole(self.n_components) or self.n_components < 1:
            raise ModelError(f"n_components must be a whole number from 1 on, got {self.n_components!r}")
        given = mapping_from(self.states or {}, "states must be {name: states or cardinality}")
        declared = {str(name): states_from(own, str(name)) for name, own in given.items()}
        table = read_table(X, declared, sample_weight)
        if not table.names:
            raise DataError("the table has no columns; there is nothing to learn from")
        self._component = COMPONENT
        while self._component in table.names:
            self._component += "_"
        network = BayesianNetwork(
            [(self._component, name) for name in table.names],
            self.prior,
            prior_strength=self.prior_strength,
            states={**declared, self._component: self.n_components},
            restarts=self.restarts,
            max_iter=self.max_iter,
            tol=self.tol,
            time_limit=self.time_limit,
            random_state=read_seed(self.random_state),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f"column '{self._component}' has one value", DataWarning)
            self.network_ = network.fit(table)
        self._history = network.fit_.log
        network.model_ = _by_weight(network.model_, self._component)
        self._n_rows = float(table.n_rows if table.weights is None else table.weights.sum())
        self._about()
        return self

    def _about(self) -> None:
        self.model_: Model = self.network_.model_
        names = [name for name in self.network_.feature_names_in_ if name != self._component]
        self.feature_names_in_, self.n_features_in_ = np.array(names, object), len(names)

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Array:
        """(K,): p(component)."""
        self._check_fitted()
        return self.model_.cpt(self._component)

    @property
    def components_(self) -> dict[str, pd.DataFrame]:
        """{column: p(state | component)}, a row for each component."""
        import pandas as pd

        self._check_fitted()
        return {
            name: pd.DataFrame(self.model_.cpt(name), columns=list(self.model_.variable(name).states))
            for name in self.feature_names_in_
        }

    @property
    def log_likelihood_(self) -> float:
        """log p of the rows of fit."""
        self._check_fitted()
        return self.network_.log_likelihood_

    @property
    def n_parameters_(self) -> int:
        """The free ones: K - 1, and for each column K (states - 1)."""
        self._check_fitted()
        k = len(self.weights_)
        return k - 1 + k * sum(len(self.model_.variable(name).states) - 1 for name in self.feature_names_in_)

    # Scores: higher is better ----------------------------------------------------------------------------------------

    def aic(self, X: Any = None) -> float:
        """log-likelihood - free parameters; None: the rows of fit. Minus half of what scikit-learn calls AIC."""
        return self._fit_to(X)[0] - self.n_parameters_

    def bic(self, X: Any = None) -> float:
        """log-likelihood - log(N) / 2 for each free parameter: minus half of what scikit-learn calls BIC."""
        value, n_rows = self._fit_to(X)
        return value - 0.5 * math.log(n_rows) * self.n_parameters_

    def _fit_to(self, X: Any) -> tuple[float, float]:
        """The log-likelihood of rows, and their number."""
        if X is None:
            return self.log_likelihood_, self._n_rows
        scores = self.score_samples(X)
        return float(scores.sum()), float(len(scores))

    def score_samples(self, X: Any) -> Array:
        """(N,): log p of each row, what is missing in it summed out; -inf where the model rules it out."""
        self._check_fitted()
        return self.network_.score_samples(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p over the rows: scikit-learn's sense of better."""
        return float(self.score_samples(X).mean())

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """(N, K): p(component | what is known of the row)."""
        self._check_fitted()
        return np.asarray(self.network_.predict_proba(X, self._component))

    def predict(self, X: Any) -> IntArray:
        """(N,): the most probable component of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def impute(self, X: Any, method: Any = "most_probable", random_state: int = 0) -> pd.DataFrame:
        """The rows with all cells known, as `BayesianNetwork.impute` fills them."""
        self._check_fitted()
        return self.network_.impute(X, method, random_state)[[str(name) for name in read_table(X).names]]

    def sample(self, n_samples: int = 1, random_state: int = 0) -> tuple[pd.DataFrame, IntArray]:
        """Rows drawn from the model, in the dtypes of the data, and their components (N,)."""
        self._check_fitted()
        drawn = self.network_.sample(n_samples, random_state=random_state)
        components = drawn.pop(self._component).astype(str).astype(np.int64)
        return drawn, np.asarray(components)

    # Files -----------------------------------------------------------------------------------------------------------

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        told, arrays = self.network_._stored()
        inner = {**told["parameters"], "structure": [list(edge) for edge in self.network_.edges_]}
        network = {key: value for key, value in told.items() if key != "parameters"}
        own = {**self.get_params(), "prior": told["parameters"]["prior"]}
        about = {"parameters": own, "network": network, "inner": inner, "component": self._component}
        history, rows = self._stored_history()
        return {**about, **history, "n_rows_of_fit": self._n_rows}, arrays | rows

    @classmethod
    def _restored(cls, given: dict[str, Any], told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Self:
        network = BayesianNetwork._restored(told["inner"], told["network"], arrays)
        made = cls(**{**given, "prior": network.prior})
        made.network_, made._component, made._n_rows = network, told["component"], told["n_rows_of_fit"]
        made._restore_history(told, arrays)
        made._about()
        return made


def _by_weight(model: Model, component: str) -> Model:
    """The model with its components in falling order of weight."""
    order = np.argsort(-model.cpt(component), kind="stable")
    tables = {variable.name: model.cpt(variable.name)[order] for variable in model.variables}
    return with_cpts(model, tables)
