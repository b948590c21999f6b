"""BayesianNetwork: a table of data in, a Bayesian network out, 004.

Complete rows are counted; every CPT is its counts and the prior's pseudo-counts, normalised. Rows with missing cells,
and variables without a column, are learnt by EM (`besag.learn.networks.missing`). Tables may come as DataFrames, int
codes, or paths of CSV and Parquet files, which are read once, in chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.code_table import CodeTable, check_known, warn_of_constants, warn_of_identifiers
from besag.data.tables.column_type import ColumnType, type_of_states, typed_text
from besag.data.tables.files import is_path, is_text_file, read_parts, read_whole
from besag.data.tables.reading import NO_ROWS, refuse_no_rows
from besag.errors import DataError, DataWarning, ModelError, warn
from besag.estimators.base import read_seed
from besag.estimators.networks import stored
from besag.estimators.networks.rows import weighted_sum
from besag.estimators.networks.structures import GivenGraph, given_graph, is_method, learned_graph
from besag.estimators.networks.table_model import TableModel, with_hidden
from besag.estimators.networks.uncertainty import CredibleInterval, Query, credible_interval, read_query
from besag.learn.networks import parameters
from besag.learn.networks.counts import FamilyCounts
from besag.learn.networks.gathering import Gathered, gather, merge_parts
from besag.learn.networks.missing import completed_counts, fit_incomplete
from besag.learn.networks.priors import BDeuPrior, K2Prior, Prior, read_prior
from besag.model.model import Model
from besag.model.variable import states_from
from besag.registry import is_whole

if TYPE_CHECKING:
    import pandas as pd

    from besag.learn.networks.structure.task import OnSearchStep

KEPT_PARTS = 64  # of a file, whose counts are then merged


class BayesianNetwork(TableModel):
    """The parameters of a Bayesian network, and its structure unless that is given, from a table.

    structure: edges [(parent, child), ...], text "A -> B <- C", a networkx.DiGraph or a Model, which declares states
    too; or the name of a method that finds it, "hill_climb", "tabu", "chow_liu", ..., by `criterion`, within
    `required`, `forbidden`, `tiers`, `partial` (what an expert has drawn: a PDAG, a networkx graph or edges),
    `max_parents` and `max_entries` of a CPT; on_step is called with each step of this search.
    prior: None, or "laplace", "k2", "bdeu", "dirichlet[count=0.5]", or a Model that is worth
    `prior_strength` rows. states: {name: states or cardinality} that are declared; others are those of the data.
    max_iter, tol, restarts, time_limit and random_state are of EM, where cells are missing.
    verbose: tell on stderr how far EM, or the search for edges, has come.

    >>> import besag
    >>> rows = besag.data.bundled("sprinkler").sample(1000, seed=1)
    >>> network = besag.BayesianNetwork("cloudy -> rain -> wet_grass <- sprinkler <- cloudy").fit(rows)
    >>> network.model_.cpt("rain").round(2)
    array([[0.83, 0.17],
           [0.2 , 0.8 ]])
    """

    def __init__(
        self,
        structure: Any = "hill_climb",
        prior: Any = None,
        criterion: Any = "bic",
        *,
        prior_strength: float | None = None,
        states: Mapping[str, Any] | None = None,
        required: Iterable[tuple[str, str]] | None = None,
        forbidden: Iterable[tuple[str, str]] | None = None,
        tiers: Iterable[Iterable[str]] | None = None,
        partial: Any = None,
        max_parents: int | None = None,
        max_entries: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        restarts: int = 0,
        time_limit: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        on_step: OnSearchStep | None = None,
    ) -> None:
        self.structure = structure
        self.prior = prior
        self.criterion = criterion
        self.prior_strength = prior_strength
        self.states = states
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.partial = partial
        self.max_parents = max_parents
        self.max_entries = max_entries
        self.max_iter = max_iter
        self.tol = tol
        self.restarts = restarts
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.on_step = on_step

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table, or from the path of one; y is not looked at."""
        self._read_prior()
        if is_method(self.structure):
            table = read_whole(X, self._declared(), sample_weight)
            self._graph = self._found(table)
            parts: Iterable[CodeTable] = [table]
        else:
            self._graph = given_graph(self.structure, self.states)
            parts = read_parts(X, self._declared(), sample_weight)
        return self._learn(self._gathered(parts, X), None)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, which may bring new states unless these were declared."""
        if "_gathered_" not in vars(self):
            if is_method(self.structure):
                raise ModelError(
                    f"partial_fit needs a structure that is given, and {self.structure!r} is to find one; call fit "
                    "first, or give edges"
                )
            return self.fit(X, y, sample_weight)
        more = self._gathered(read_parts(X, self._declared(), sample_weight), X)
        return self._learn(self._gathered_.merged(more), self._warm())

    def merge(self, other: BayesianNetwork) -> Self:
        """Add what another fitted network of the same structure has counted, as if its rows had been here."""
        self._check_fitted()
        other._check_fitted()
        if self._graph.parents != other._graph.parents:
            raise ModelError("only networks of the same structure, parents in the same order, can be merged")
        counts, rows = other._gathered_.counts, other._gathered_.incomplete
        if counts.names != self._gathered_.counts.names:
            names = self._gathered_.counts.names
            moved = FamilyCounts(
                names,
                tuple(counts.types[counts.names.index(name)] for name in names),
                self._gathered_.counts.parents,
                tuple(counts.tables[counts.names.index(name)] for name in names),
                counts.n_rows,
                counts.total,
            )
            return self._learn(
                self._gathered_.merged(Gathered(moved, None if rows is None else rows.reordered(names))), self._warm()
            )
        return self._learn(self._gathered_.merged(other._gathered_), self._warm())

    def _read_prior(self) -> Prior | None:
        return read_prior(self.prior, self.prior_strength)

    def _warm(self) -> Model | None:
        """Where EM goes on: at the model, if it leaves nothing out."""
        return self.model_ if self.model_.support is None else None

    def _declared(self) -> dict[str, tuple[str, ...]]:
        if is_method(self.structure):
            return {str(name): states_from(given, str(name)) for name, given in (self.states or {}).items()}
        return dict(self._graph.states)

    def _found(self, table: CodeTable) -> GivenGraph:
        refuse_no_rows(table)
        check_known(table.names, table.types)
        options = {
            "criterion": self.criterion,
            "required": self.required or (),
            "forbidden": self.forbidden or (),
            "tiers": self.tiers or (),
            "partial": self.partial,
            "max_parents": self.max_parents,
            "max_entries": self.max_entries,
            "time_limit": self.time_limit,
            "random_state": read_seed(self.random_state),
            "n_threads": self.n_jobs,
            "progress": self.verbose,
            "on_step": self.on_step,
        }
        self.structure_ = learned_graph(self.structure, table, options)
        parents = {
            name: tuple(table.names[p] for p in above)
            for name, above in zip(table.names, self.structure_.parents, strict=True)
        }
        return GivenGraph(parents, self._declared())

    def _gathered(self, parts: Iterable[CodeTable], X: Any) -> Gathered:
        """Counts, and incomplete rows; the columns are those of the structure, hidden variables are missing."""
        names: tuple[str, ...] = ()
        ready = []
        for part in parts:
            if not names:
                self._graph.check(part.names)
                names = self._order(part.names)
                parents = self._graph.numbered(names)
            ready.append(gather([with_hidden(part, names, self._hidden(names))], parents, self.n_jobs))
            if len(ready) == KEPT_PARTS:
                ready = [merge_parts(ready)]
        gathered = merge_parts(ready)
        n_rows = gathered.counts.n_rows + (0 if gathered.incomplete is None else gathered.incomplete.n_rows)
        if n_rows == 0:
            raise DataError(NO_ROWS)
        if is_path(X) and is_text_file(X):
            gathered = gathered.with_types(self._as_read)
        return gathered

    def _order(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Of the variables: as before, where there was a fit."""
        return self._gathered_.counts.names if "_gathered_" in vars(self) else self._graph.names(columns)

    def _hidden(self, names: tuple[str, ...]) -> list[ColumnType]:
        states = self._graph.states
        return [type_of_states(states.get(name, ())) for name in names]

    def _as_read(self, name: str, column: ColumnType) -> ColumnType:
        return column if column.declared else typed_text(name, column)

    def _learn(self, gathered: Gathered, start: Model | None) -> Self:
        counts = gathered.counts
        check_known(counts.names, counts.types)
        warn_of_constants(counts.names, counts.types)
        n_rows = counts.n_rows + (0 if gathered.incomplete is None else gathered.incomplete.n_rows)
        warn_of_identifiers(counts.names, counts.types, n_rows)
        variables, prior = parameters.variables_of(counts), self._read_prior()
        pseudo = parameters.pseudo_counts(variables, counts, prior)
        if gathered.incomplete is None:
            model, self._completed = parameters.model_of_counts(counts, pseudo), counts
        else:
            model = self._learn_missing(gathered, pseudo, start)
            self._completed = completed_counts(gathered, self.fit_)
        self._log_likelihood = parameters.log_likelihood(counts, model)
        self.model_, self._types, self._gathered_ = model, counts.types, gathered
        self.n_features_in_ = len(counts.names)
        self.feature_names_in_ = np.array(counts.names, object)
        if gathered.incomplete is not None:
            rows = gathered.incomplete
            weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
            self._log_likelihood += weighted_sum(self.score_samples(rows), weights)
        if prior is None:
            self._warn_of_unseen()
        return self

    def _learn_missing(self, gathered: Gathered, pseudo: list[Array] | None, start: Model | None) -> Model:
        fit = fit_incomplete(
            gathered,
            pseudo,
            start,
            max_iterations=self.max_iter,
            tolerance=self.tol,
            restarts=self.restarts,
            seed=read_seed(self.random_state),
            time_limit=self.time_limit,
            n_threads=self.n_jobs,
            progress=self.verbose,
        )
        self.fit_ = fit
        return fit.model

    def _warn_of_unseen(self) -> None:
        unseen = self.unseen_
        if len(unseen):
            first = unseen.iloc[0]
            warn(
                DataWarning(
                    f"{int(unseen['unseen'].sum())} configurations of parents are never seen, such as {first['first']} "
                    f"of {unseen.index[0]!r}: their rows are uniform. unseen_ lists them; a prior, such as "
                    'prior="bdeu", adds counts to them'
                )
            )

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def counts_(self) -> dict[str, AnyArray]:
        """The counts of each family, axes (parents..., child); expected ones, where cells are missing."""
        self._check_fitted()
        counts = self._completed
        return dict(zip(counts.names, counts.tables, strict=True))

    @property
    def log_likelihood_(self) -> float:
        """log p of all rows, what is missing summed out."""
        self._check_fitted()
        return self._log_likelihood

    @property
    def unseen_(self) -> pd.DataFrame:
        """The variables some of whose parents' configurations no row has: columns configurations, unseen, first."""
        self._check_fitted()
        return parameters.unseen_configurations(self._completed)

    @property
    def edges_(self) -> list[tuple[str, str]]:
        """(parent, child)."""
        self._check_fitted()
        return [(parent, child) for child in self._names() for parent in self.model_.parents(child)]

    # Scores: higher is better ----------------------------------------------------------------------------------------

    def _complete_counts(self, X: Any) -> FamilyCounts:
        self._check_fitted()
        own = self._gathered_
        if X is not None:
            own = gather([self._read_some(X)], own.counts.parents, self.n_jobs)
        if own.incomplete is not None:
            raise DataError(
                "this score needs complete rows, and some cells are missing; score_samples sums over what is missing, "
                "impute fills it"
            )
        return own.counts

    def aic(self, X: Any = None) -> float:
        """log-likelihood - free parameters, of CPTs that fit these rows best; None: the rows of `fit`."""
        counts = self._complete_counts(X)
        return parameters.best_log_likelihood(counts) - parameters.n_free(counts)

    def bic(self, X: Any = None) -> float:
        """log-likelihood - log(N) / 2 for each free parameter: minus half of what others call BIC."""
        counts = self._complete_counts(X)
        return parameters.best_log_likelihood(counts) - 0.5 * math.log(counts.total) * parameters.n_free(counts)

    def bdeu(self, X: Any = None, strength: float = 1.0) -> float:
        """log marginal likelihood under a BDeu prior of that strength."""
        return self._marginal(self._complete_counts(X), BDeuPrior(strength))

    def k2(self, X: Any = None) -> float:
        """log marginal likelihood where every CPT is as probable as any other."""
        return self._marginal(self._complete_counts(X), K2Prior())

    def _marginal(self, counts: FamilyCounts, prior: Prior) -> float:
        pseudo = parameters.pseudo_counts(parameters.variables_of(counts), counts, prior)
        assert pseudo is not None
        return parameters.log_marginal_likelihood(counts, pseudo)

    # Uncertainty -----------------------------------------------------------------------------------------------------

    def sample_models(self, n: int = 100, random_state: int = 0) -> list[Model]:
        """Networks with CPTs drawn from the posterior; without a prior, under the flat one, whose mode model_ is."""
        self._check_fitted()
        if not (is_whole(n) and n >= 1):
            raise ModelError(f"the number of models must be a whole number of at least 1, got {n!r}")
        if self._gathered_.incomplete is not None:
            raise ModelError(
                "the posterior is known only where all rows are complete, and some cells are missing: draw them, "
                'est.impute(X, method="draw"), and fit these'
            )
        counts = self._gathered_.counts
        pseudo = parameters.pseudo_counts(self.model_.variables, counts, self._read_prior())
        return parameters.draw_models(
            self.model_, counts, pseudo, int(n), np.random.default_rng(read_seed(random_state))
        )

    def interval(
        self, query: Query, level: float = 0.95, *, evidence: Any = None, n_models: int = 200, random_state: int = 0
    ) -> CredibleInterval:
        """Where a query lies with probability `level`, given the data.

        query: {name: state, ...}, whose probability is asked for; a name, for its marginal; or a function of a Model.

        >>> import besag
        >>> rows = besag.data.bundled("sprinkler").sample(200, seed=1)
        >>> network = besag.BayesianNetwork("cloudy -> rain -> wet_grass").fit(rows.drop(columns="sprinkler"))
        >>> network.interval({"rain": "yes"}, evidence={"wet_grass": "yes"})
        CredibleInterval(0.6522 [0.5778, 0.7231]; level=0.95)
        """
        drawn = self.sample_models(n_models, random_state)
        return credible_interval(self.model_, drawn, read_query(query, evidence), level)

    # Files -----------------------------------------------------------------------------------------------------------

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        edges = [list(edge) for edge in self.edges_]
        told, arrays = stored.store_counts(self._gathered_.counts)
        arrays |= {f"completed/{v}": table for v, table in enumerate(self._completed.tables)}
        arrays |= stored.store_model(self.model_, "model") | stored.store_rows(self._gathered_.incomplete)
        if isinstance(self.prior, Model):
            arrays |= stored.store_model(self.prior, "prior")
        states = {name: list(own) for name, own in self._graph.states.items()}
        told |= {"graph": {name: list(above) for name, above in self._graph.parents.items()}, "declared": states}
        told |= {"ordered": self._graph.ordered, "log_likelihood": self._log_likelihood}
        told |= {"completed": self._completed.total}
        return {**told, "parameters": stored.plain_parameters(self.get_params(), edges)}, arrays

    @classmethod
    def _restored(cls, given: dict[str, Any], told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Self:
        if isinstance(given.get("prior"), dict):
            given = {**given, "prior": stored.restore_model(arrays, "prior")}
        if given.get("partial") is not None:
            given = {**given, "partial": stored.restore_graph(given["partial"])}
        made = cls(**given)
        counts = stored.restore_counts(told, arrays)
        parents = {name: tuple(above) for name, above in told["graph"].items()}
        states = {name: tuple(own) for name, own in told["declared"].items()}
        made._graph = GivenGraph(parents, states, told["ordered"])
        made._gathered_ = Gathered(counts, stored.restore_rows(arrays, counts))
        tables = tuple(arrays[f"completed/{v}"] for v in range(len(counts.names)))
        made._completed = replace(counts, tables=tables, total=told["completed"])
        made.model_, made._types = stored.restore_model(arrays, "model"), counts.types
        made._log_likelihood = told["log_likelihood"]
        made.n_features_in_ = len(counts.names)
        made.feature_names_in_ = np.array(counts.names, object)
        return made
