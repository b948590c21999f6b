"""MarkovNetwork: a table of data in, a Markov network with its marginals out, 004's log-linear moment matching.

    p(y) = exp(sum_C log-potential_C(y_C)) / Z,   E_p[y_C = c] = share of the rows with y_C = c, for every factor C

in closed form where the graph is decomposable and its cliques are the factors, else by L-BFGS, see
`besag.learn.networks.moments`. Where cells are missing, or variables have no column, the shares are those that the
model itself expects: EM, or with l2 the likelihood directly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.code_table import CodeTable, check_known, warn_of_constants, warn_of_identifiers
from besag.data.tables.column_type import ColumnType, type_of_states
from besag.data.tables.files import read_whole
from besag.data.tables.reading import refuse_no_rows
from besag.errors import DataError, DataWarning, ModelError, warn
from besag.estimators.base import check_choice, read_seed
from besag.estimators.networks import stored
from besag.estimators.networks.rows import distinct_rows, weighted_sum
from besag.estimators.networks.structures import learned_graph, learned_path
from besag.estimators.networks.table_model import TableModel, with_hidden
from besag.graph.directed.pdag import PDAG
from besag.learn.networks.cliques import maximal_cliques, neighbours_of
from besag.learn.networks.families import count_families
from besag.learn.networks.missing import expected_moments, fit_incomplete_network
from besag.learn.networks.moments import Scope, closed_form, match_moments
from besag.model.model import Model
from besag.model.variable import Variables, states_from, variables_from
from besag.registry import is_number

if TYPE_CHECKING:
    import pandas as pd


NEVER = 1e-3  # rows that are expected to have some states, where none does


class MarkovNetwork(TableModel):
    """The log-potentials of a Markov network from the marginals that it is to have.

    structure: edges [(a, b), ...], cliques [(a, b, c), ...], an undirected networkx graph or a Model, whose scopes are
    taken; "chow_liu", the tree that fits best; "neighbourhoods", the graph of least extended BIC along a path of
    l1-regularised regressions, which path_ keeps; a PDAG, such as path_.graph(3); None: no two variables are tied.
    factors: "cliques", a table for each maximal clique of the edges, or "edges", a table for each edge. l2: a penalty
    on all parameters. prior_strength: as if so many rows were uniform, which leaves no state out. states: {name: states
    or cardinality} that are declared; a variable of the structure that has no column is hidden, and random_state is
    where it begins.

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
        random_state: int = 0,
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
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table, or from the path of one; y is not looked at. Rows with missing cells: by EM."""
        self._check_parameters()
        table = self._with_hidden(read_whole(X, self._declared(), sample_weight))
        refuse_no_rows(table)
        check_known(table.names, table.types)
        warn_of_constants(table.names, table.types)
        warn_of_identifiers(table.names, table.types, table.n_rows)
        scopes, unknown = self._scopes(table.names, table), table.incomplete()
        if unknown.any():
            self._learn_missing(table, table.take(~unknown), scopes)
        else:
            self._match(table.variables, scopes, *self._moments(table, scopes, self.prior_strength))
        self._types = table.types
        scores = self.score_samples(table)
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        self._total = float(weights.sum())
        self.log_likelihood_: float | None = weighted_sum(scores, weights)
        mean = self.log_likelihood_ / self._total
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
        self.log_likelihood_, self.kl_, self._total = None, None, 1.0
        return self

    def _check_parameters(self) -> None:
        check_choice("factors", self.factors, ("cliques", "edges"))
        for name in ("l2", "prior_strength"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < np.inf):
                raise ModelError(f"{name} must be a number of at least 0, got {value!r}")

    def _declared(self) -> dict[str, tuple[str, ...]]:
        own = {v.name: v.states for v in self.structure.variables} if isinstance(self.structure, Model) else {}
        return own | {str(name): states_from(given, str(name)) for name, given in (self.states or {}).items()}

    def _with_hidden(self, table: CodeTable) -> CodeTable:
        """The table with columns of missing cells for the variables that are declared and have none."""
        declared = self._declared()
        names = [*table.names, *(name for name in declared if name not in table.names)]
        if isinstance(self.structure, Model):
            for name in table.names:
                if name not in declared:
                    raise DataError(f"column {name!r} is no variable of the structure; drop it", column=name)
            names = list(declared)
        return with_hidden(table, names, [type_of_states(declared.get(name, ())) for name in names])

    def _scopes(self, names: Sequence[str], table: CodeTable | None) -> list[Scope]:
        """The factors, each variable in one of them at least."""
        given = self._given_scopes(names, table)
        at = {name: v for v, name in enumerate(names)}
        for scope in given:
            for name in scope:
                if name not in at:
                    raise DataError(
                        f"the structure names {name!r}, and the table has no such column. If it is hidden, declare its "
                        f"states: states={{{name!r}: 2}}",
                        column=name,
                    )
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
            check_choice("structure", structure, ("chow_liu", "neighbourhoods"))
            if table is None:
                raise ModelError(f'structure="{structure}" needs rows; give the edges')
            return self._found_edges(table.take(~table.incomplete()))
        if isinstance(structure, PDAG):
            return [*structure.edges, *structure.undirected]
        if isinstance(structure, Model):
            own = (structure.variables.names_at(scope) for group in structure.groups for scope in group.scopes)
            return [tuple(scope) for scope in dict.fromkeys(map(tuple, own)) if len(scope) > 1]
        if hasattr(structure, "edges"):
            return [(str(a), str(b)) for a, b in structure.edges()]
        return [tuple(str(name) for name in scope) for scope in structure if len(scope) > 1]

    def _found_edges(self, rows: CodeTable) -> list[tuple[str, ...]]:
        if self.structure == "neighbourhoods":
            self.path_ = learned_path(rows, self.time_limit)
            return [*self.path_.graph().undirected]
        self.structure_ = learned_graph(self.structure, rows, {})
        return [*self.structure_.edges]

    def _moments(self, table: CodeTable, scopes: Sequence[Scope], strength: float) -> tuple[list[Array], float]:
        """p of each factor's states, and the weight of the rows, uniform ones of this strength among them."""
        counts = count_families(table.codes, table.cardinalities, scopes, table.weights, self.n_jobs)
        total = float(table.n_rows if table.weights is None else table.weights.sum())
        mass = total + strength
        return [(count + strength / count.size) / mass for count in counts], mass

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
        self._tell(model, dict(zip(scopes, moments, strict=True)))
        self._warn_of_zeros()

    def _tell(self, model: Model, moments: dict[Scope, Array]) -> None:
        self.model_, self._moments_of = model, moments
        self.n_features_in_ = len(model.variables)
        self.feature_names_in_ = np.array(self._names(), object)

    def _learn_missing(self, table: CodeTable, complete: CodeTable, scopes: list[Scope]) -> None:
        if self.prior_strength:
            raise ModelError(
                "prior_strength= counts complete rows, and cells are missing; l2= leaves no state out either"
            )
        start = match_moments(table.variables, scopes, self._moments(complete, scopes, 1.0)[0], 1e-3).model
        self.fit_ = fit_incomplete_network(
            start,
            table,
            self.l2,
            engine=self.engine,
            max_iterations=self.max_iter,
            tolerance=self.tol,
            seed=read_seed(self.random_state),
            time_limit=self.time_limit,
            n_threads=self.n_jobs,
        )
        self.is_closed_form_ = False
        self._tell(self.fit_.model, expected_moments(self.fit_.model, table, self.engine))
        self._warn_of_zeros(NEVER / table.n_rows)

    def _warn_of_zeros(self, limit: float = 0.0) -> None:
        """A DataWarning that names a moment that is 0, or with missing cells up to a limit, as EM never gets to 0."""
        zeros = sum(int((table <= limit).sum()) for table in self._moments_of.values())
        if zeros and self.l2 == 0:
            scope, table = next((scope, table) for scope, table in self._moments_of.items() if (table <= limit).any())
            variables, cell = self.model_.variables, np.argwhere(table <= limit)[0].tolist()
            where = ", ".join(
                f"{variables.names[v]}={variables.states(v)[k]}" for v, k in zip(scope, cell, strict=True)
            )
            what = "the model all but rules these states out" if limit else "the model rules these states out"
            warn(
                DataWarning(
                    f"{zeros} moments are 0, such as that of ({where}): their optimum is at infinity, and {what}; "
                    f"{'' if limit else 'prior_strength= or '}l2= leaves none out"
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

    # Scores: higher is better ----------------------------------------------------------------------------------------

    def aic(self, X: Any = None) -> float:
        """log-likelihood of the model - free parameters; None: the rows of `fit`."""
        return self._rows(X)[0] - self._n_free()

    def bic(self, X: Any = None) -> float:
        """log-likelihood of the model - log(N) / 2 for each free parameter: minus half of what others call BIC."""
        value, total = self._rows(X)
        return value - 0.5 * math.log(total) * self._n_free()

    def _rows(self, X: Any) -> tuple[float, float]:
        """The log-likelihood of rows, and how many they are."""
        self._check_fitted()
        if X is not None:
            scores = self.score_samples(self._read_some(X))
            return float(scores.sum()), float(len(scores))
        if self.log_likelihood_ is None:
            raise ModelError("the model was learnt from moments; give the rows that are to be scored")
        return self.log_likelihood_, self._total

    def _n_free(self) -> int:
        """The interactions of the factors: prod (K - 1) for each set of variables that a factor has."""
        sizes = self.model_.variables.cardinalities
        sets = {
            part for scope in self._moments_of for n in range(len(scope)) for part in combinations(sorted(scope), n + 1)
        }
        return sum(math.prod(int(sizes[v]) - 1 for v in part) for part in sets)

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
            "total": self._total,
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
        made.is_closed_form_, made._total = told["is_closed_form"], told["total"]
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
