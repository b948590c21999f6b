"""MarkovNetwork: a table of data in, a Markov network with its marginals out, 004's log-linear moment matching.

    p(y) = exp(sum_C log-potential_C(y_C)) / Z,   E_p[y_C = c] = share of the rows with y_C = c, for every factor C

in closed form where the graph is decomposable and its cliques are the factors, else by L-BFGS, see
`besag.learn.networks.moments`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.code_table import CodeTable, check_known, joined_tables, warn_of_constants
from besag.data.tables.column_type import ColumnType, type_of_states
from besag.data.tables.files import is_path, is_text_file, read_chunks
from besag.data.tables.reading import read_table, refuse_no_rows
from besag.errors import DataError, DataWarning, ModelError, warn
from besag.estimators.base import check_choice
from besag.estimators.networks import stored
from besag.estimators.networks.rows import distinct_rows
from besag.estimators.networks.structures import learned_graph
from besag.estimators.networks.table_model import TableModel
from besag.learn.networks.cliques import maximal_cliques, neighbours_of
from besag.learn.networks.families import count_families
from besag.learn.networks.moments import Scope, closed_form, match_moments
from besag.model.model import Model
from besag.model.variable import Variables, states_from, variables_from
from besag.registry import is_number

if TYPE_CHECKING:
    import pandas as pd


class MarkovNetwork(TableModel):
    """The log-potentials of a Markov network from the marginals that it shall have.

    structure: edges [(a, b), ...], cliques [(a, b, c), ...] or an undirected networkx graph; "chow_liu", the tree that
    fits best; None: no two variables are tied. factors: "cliques", a table for each maximal clique of the edges, or
    "edges", a table for each edge. l2: a penalty on all parameters. prior_strength: as if so many rows were uniform,
    which leaves no state out.

    >>> import besag
    >>> rows = besag.data.bundled("misconception").sample(1000, seed=1)
    >>> network = besag.MarkovNetwork([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]).fit(rows)
    >>> network.residual_ < 1e-5
    True
    """

    def __init__(
        self,
        structure: Any = "chow_liu",
        factors: Literal["cliques", "edges"] = "cliques",
        *,
        l2: float = 0.0,
        prior_strength: float = 0.0,
        states: Mapping[str, Any] | None = None,
        engine: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-8,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.structure = structure
        self.factors = factors
        self.l2 = l2
        self.prior_strength = prior_strength
        self.states = states
        self.engine = engine
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table, or from the path of one; y is not looked at. Rows with missing cells: by EM."""
        self._check_parameters()
        table = self._table(X, sample_weight)
        refuse_no_rows(table)
        check_known(table.names, table.types)
        warn_of_constants(table.names, table.types)
        variables = table.variables
        scopes = self._scopes(table.names, table)
        unknown = table.incomplete()
        complete = table.take(~unknown) if unknown.any() else table
        moments, total = self._moments(complete, scopes)
        self._match(variables, scopes, moments, total)
        self._types = table.types
        if unknown.any():
            self._learn_missing(table)
        scores = self.score_samples(table)
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        self.log_likelihood_: float | None = float((scores * weights)[weights > 0].sum())
        mean = self.log_likelihood_ / float(weights.sum())
        self.kl_ = None if unknown.any() else _negative_entropy(table, weights) - mean
        return self

    def fit_moments(self, moments: Mapping[Any, Any] | Model) -> Self:
        """Learn from marginals: {scope: table of probabilities}, whose scopes are the factors; or those of a Model.

        For tables, `states` says what the variables are; of a Model, the marginals of the factors of `structure`.
        """
        self._check_parameters()
        if isinstance(moments, Model):
            variables = moments.variables
            names = tuple(variables.names_at(range(len(variables))))
            scopes = self._scopes(names, None)
            tables = [moments.joint(variables.names_at(scope)) for scope in scopes]
        else:
            if self.states is None:
                raise ModelError("moments as tables need states={name: states or cardinality}")
            variables = variables_from(dict(self.states))
            given = [((scope,) if isinstance(scope, str) else tuple(scope), table) for scope, table in moments.items()]
            scopes = [tuple(variables.index(name) for name in scope) for scope, _ in given]
            tables = [_probabilities(variables, scope, table) for scope, (_, table) in zip(scopes, given, strict=True)]
        self._types = tuple(type_of_states(variable.states) for variable in variables)
        self._match(variables, scopes, tables, 1.0)
        self.log_likelihood_ = self.kl_ = None
        return self

    def _check_parameters(self) -> None:
        check_choice("factors", self.factors, ("cliques", "edges"))
        for name in ("l2", "prior_strength"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < np.inf):
                raise ModelError(f"{name} must be a number of at least 0, got {value!r}")

    def _table(self, X: Any, weights: Any) -> CodeTable:
        declared = {str(name): states_from(given, str(name)) for name, given in (self.states or {}).items()}
        if not is_path(X):
            return read_table(X, declared, weights)
        if weights is not None:
            raise DataError("weights are for tables in memory; a file is read in chunks")
        parts = list(read_chunks(X, declared))
        if not parts:
            raise DataError("the table has no rows; there is nothing to learn from")
        table = joined_tables(parts)
        return table.as_read() if is_text_file(X) else table

    def _scopes(self, names: Sequence[str], table: CodeTable | None) -> list[Scope]:
        """The factors, each variable in one of them at least."""
        given = self._given_scopes(names, table)
        at = {name: v for v, name in enumerate(names)}
        for scope in given:
            for name in scope:
                if name not in at:
                    raise DataError(f"the structure names {name!r}, and the table has no such column", column=name)
        numbered = [tuple(at[name] for name in scope) for scope in given]
        if any(len(set(scope)) < len(scope) for scope in numbered):
            raise ModelError("an edge or a clique of the structure names a variable twice")
        near = neighbours_of(len(names), numbered)
        pairs = all(len(scope) == 2 for scope in numbered)
        if self.factors == "edges":
            numbered = sorted({pair for scope in numbered for pair in combinations(sorted(scope), 2)})
        elif pairs:
            numbered = [clique for clique in maximal_cliques(near) if len(clique) > 1]
        alone = [(v,) for v in range(len(names)) if not near[v]]
        return [*numbered, *alone]

    def _given_scopes(self, names: Sequence[str], table: CodeTable | None) -> list[tuple[str, ...]]:
        structure = self.structure
        if structure is None:
            return []
        if isinstance(structure, str):
            check_choice("structure", structure, ("chow_liu",))
            if table is None:
                raise ModelError('structure="chow_liu" needs rows; give the edges')
            rows = table.take(~table.incomplete())
            self.structure_ = learned_graph(structure, rows, {})
            return [(names[p], names[v]) for v, above in enumerate(self.structure_.parents) for p in above]
        if hasattr(structure, "edges"):
            return [(str(a), str(b)) for a, b in structure.edges()]
        return [tuple(str(name) for name in scope) for scope in structure if len(scope) > 1]

    def _moments(self, table: CodeTable, scopes: Sequence[Scope]) -> tuple[list[Array], float]:
        """p of each factor's states, and the weight of the rows."""
        counts = count_families(table.codes, table.cardinalities, scopes, table.weights, self.n_jobs)
        total = float(table.n_rows if table.weights is None else table.weights.sum())
        mass = total + self.prior_strength
        if mass == 0:
            return [np.full(count.shape, 1 / count.size) for count in counts], 1.0
        return [(count + self.prior_strength / count.size) / mass for count in counts], mass

    def _match(self, variables: Variables, scopes: list[Scope], moments: list[Array], total: float) -> None:
        model = closed_form(variables, scopes, moments) if self.l2 == 0 else None
        self.is_closed_form_ = model is not None
        if model is None:
            self.fit_ = match_moments(
                variables,
                scopes,
                moments,
                self.l2 / total,
                engine=self.engine,
                optimizer=f"lbfgs[max_iterations={self.max_iter},tolerance={self.tol}]",
                time_limit=self.time_limit,
                n_threads=self.n_jobs,
            )
            model = self.fit_.model
        self.model_, self._moments_of = model, dict(zip(scopes, moments, strict=True))
        self.n_features_in_ = len(variables)
        self.feature_names_in_ = np.array(self._names(), object)
        self._warn_of_zeros()

    def _learn_missing(self, table: CodeTable) -> None:
        from besag.learn.hidden.em import em  # type: ignore[import-not-found, unused-ignore]

        start = self.model_ if self.model_.support is None else self.model_.with_numbers(self.model_.theta, None)
        self.fit_ = em(
            start,
            table.observed(),
            weights=table.weights,
            max_iterations=self.max_iter,
            tolerance=self.tol,
            time_limit=self.time_limit,
            n_threads=self.n_jobs,
        )
        self.model_, self.is_closed_form_ = self.fit_.model, False

    def _warn_of_zeros(self) -> None:
        zeros = sum(int((table == 0).sum()) for table in self._moments_of.values())
        if zeros and self.l2 == 0:
            scope, table = next((scope, table) for scope, table in self._moments_of.items() if (table == 0).any())
            variables, cell = self.model_.variables, np.argwhere(table == 0)[0].tolist()
            where = ", ".join(
                f"{variables.names[v]}={variables.states(v)[k]}" for v, k in zip(scope, cell, strict=True)
            )
            warn(
                DataWarning(
                    f"{zeros} moments are 0, such as that of ({where}): their optimum is at infinity, and the model "
                    "rules these states out; prior_strength= or l2= leaves none out"
                )
            )

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def moments_(self) -> dict[tuple[str, ...], Array]:
        """The marginals that were to be matched, by the names of their variables."""
        self._check_fitted()
        return {tuple(self.model_.variables.names_at(scope)): table for scope, table in self._moments_of.items()}

    @property
    def residuals_(self) -> pd.DataFrame:
        """For each factor the largest difference between the model's marginal and the one that was to be matched."""
        import pandas as pd

        moments = self.moments_
        differences = [float(np.abs(self.model_.joint(scope) - table).max()) for scope, table in moments.items()]
        return pd.DataFrame({"factor": list(moments), "residual": differences})

    @property
    def residual_(self) -> float:
        """The largest of residuals_."""
        return float(self.residuals_["residual"].max())

    # Files -----------------------------------------------------------------------------------------------------------

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        scopes = list(self._moments_of)
        names = [self.model_.variables.names_at(scope) for scope in scopes]
        arrays = stored.store_model(self.model_, "model")
        arrays |= {f"moments/{i}": self._moments_of[scope] for i, scope in enumerate(scopes)}
        told = {
            "scopes": [list(scope) for scope in scopes],
            "types": [column.told() for column in self._types],
            "log_likelihood": self.log_likelihood_,
            "kl": self.kl_,
            "is_closed_form": self.is_closed_form_,
        }
        return {**told, "parameters": stored.plain_parameters(self.get_params(), names)}, arrays

    @classmethod
    def _restored(cls, given: dict[str, Any], told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Self:
        made = cls(**given)
        made.model_ = stored.restore_model(arrays, "model")
        made._types = tuple(ColumnType.from_told(column) for column in told["types"])
        made._moments_of = {tuple(scope): arrays[f"moments/{i}"] for i, scope in enumerate(told["scopes"])}
        made.log_likelihood_, made.kl_ = told["log_likelihood"], told["kl"]
        made.is_closed_form_ = told["is_closed_form"]
        return made


def _probabilities(variables: Variables, scope: Scope, given: Any) -> Array:
    """A table that sums to one."""
    table = np.asarray(given, np.float64)
    shape = tuple(variables.cardinalities[list(scope)].tolist())
    if table.shape != shape or not (table >= 0).all() or abs(table.sum() - 1) > 1e-6:
        raise DataError(
            f"the moments of {tuple(variables.names_at(scope))} must be probabilities of shape {shape} that sum to 1, "
            f"got shape {table.shape} and sum {table.sum():.6g}"
        )
    return np.asarray(table / table.sum())


def _negative_entropy(table: CodeTable, weights: Array) -> float:
    """sum q log q of the rows' own distribution q."""
    sizes = [len(column.states) + 1 for column in table.types]
    first, which = distinct_rows(table.codes, sizes)
    q = np.bincount(which, weights, minlength=len(first)) / weights.sum()
    return float((q[q > 0] * np.log(q[q > 0])).sum())
