"""What networks learnt from tables share: rows in, answers out that look like the rows that were learnt from.

model_ is a Model; `_types` are the ColumnTypes of its variables, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.code_table import CodeTable, joined_tables, missing_code
from besag.data.tables.column_type import ColumnType
from besag.data.tables.files import is_path, read_chunks
from besag.data.tables.reading import read_table
from besag.errors import DataError, EvidenceError, ModelError
from besag.estimators.base import Estimator, check_choice, read_seed
from besag.estimators.files import save_estimator
from besag.estimators.networks.rows import conditional_logs, distinct_rows, log_potentials_of_rows, normalised_logs
from besag.graph.evidence import Evidence
from besag.model.model import Model

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 1 << 14  # distinct rows of evidence


class TableModel(Estimator):
    """Answers of a fitted network about rows."""

    model_: Model
    _types: tuple[ColumnType, ...]

    # Rows ------------------------------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return self.model_.variables.names_at(range(len(self.model_.variables)))

    def _read(self, X: Any) -> CodeTable:
        """Rows as codes of the model's states; columns that are absent are missing in all rows."""
        self._check_fitted()
        names = self._names()
        states = {name: self.model_.variables.states(v) for v, name in enumerate(names)}
        table = joined_tables(list(read_chunks(X, states))) if is_path(X) else read_table(X, states)
        for name in table.names:
            if name not in states:
                raise DataError(
                    f"column {name!r} is no variable: {self.model_.variables.unknown(name)}. Drop it, "
                    f"frame.drop(columns={name!r})",
                    column=name,
                )
        return with_hidden(table, names, self._types)

    def _read_some(self, X: Any) -> CodeTable:
        """The same of rows that are to be scored; DataError where there are none."""
        table = self._read(X)
        if table.n_rows == 0:
            raise DataError("the table has no rows; a score needs one at least")
        return table

    # How probable rows are -------------------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """(N,): log p of each row, what is missing in it summed out; -inf where the model rules it out."""
        table = self._read(X)
        unknown = table.incomplete()
        scores = np.empty(table.n_rows)
        complete = table.take(~unknown) if unknown.any() else table
        if complete.n_rows:
            scores[~unknown] = log_potentials_of_rows(self.model_, complete.codes) - self._log_z()
        if unknown.any():
            scores[unknown] = self._by_distinct(table.take(unknown), self._log_evidence)
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p over the rows: scikit-learn's sense of better."""
        return float(self.score_samples(self._read_some(X)).mean())

    def _log_z(self) -> float:
        return 0.0 if self.model_.is_bayesian_network else float(self.model_.log_partition())

    def _log_evidence(self, rows: CodeTable) -> Array:
        """(N,): log of the sum over what is missing, by exact inference or by what `auto` takes."""
        from besag.infer.engine import ENGINES

        problem = self.model_.problem.with_evidence(Evidence(rows.observed(), batched=True))
        result = ENGINES.read("auto").infer(problem, frozenset({"log_partition"}))
        return np.asarray(result.log_partition) - self._log_z()

    def _by_distinct(self, table: CodeTable, answer: Any) -> AnyArray:
        """answer(rows) (D, ...) of the distinct rows of a table, at all its rows."""
        sizes = [len(column.states) + 1 for column in table.types]
        short = [np.minimum(codes, size - 1) for codes, size in zip(table.codes, sizes, strict=True)]
        first, which = distinct_rows(short, sizes)
        parts = [answer(table.take(first[start : start + AT_ONCE])) for start in range(0, len(first), AT_ONCE)]
        return np.asarray(np.concatenate(parts)[which])

    # What is unknown of rows -----------------------------------------------------------------------------------------

    def predict_proba(self, X: Any, target: str | None = None) -> Any:
        """p(target | what is known of the row): (N, K) in the order of model_.variable(target).states.

        target: a variable, known cells of which are not looked at; None for the one without a column.
        """
        table = self._read(X)
        return self._probabilities(table, self._targets(X, table, target)[0])

    def predict(self, X: Any, target: str | Sequence[str] | None = None) -> Any:
        """The most probable state of each target by itself: a Series for one target, a DataFrame for several.

        target: variables, known cells of which are not looked at; None for all that have no column.
        """
        import pandas as pd

        table = self._read(X)
        targets = self._targets(X, table, target)
        answers = {}
        hidden = _hide(table, targets)
        for v in targets:
            codes = self._probabilities(hidden, v).argmax(axis=1)
            answers[table.names[v]] = self._types[v].restored(codes)
        frame = pd.DataFrame(answers, index=table.index)
        is_one = isinstance(target, str) or (target is None and len(targets) == 1)
        return frame[table.names[targets[0]]] if is_one else frame

    def _targets(self, X: Any, table: CodeTable, target: Any) -> list[int]:
        if target is not None:
            listed = [target] if isinstance(target, str) else list(target)
            return [self.model_.variables.index(name) for name in listed]
        absent = [v for v, codes in enumerate(table.codes) if table.n_rows and int(codes.min()) == missing_code(codes)]
        if not absent:
            raise ModelError("every variable has a column with known cells; say which is the target: target='name'")
        return absent

    def _probabilities(self, table: CodeTable, v: int) -> Array:
        """(N, K): p(v | the other columns)."""
        hidden = _hide(table, [v])
        blanket = [self.model_.variables.index(name) for name in self.model_.markov_blanket(hidden.names[v])]
        if not any(hidden.has_missing[u] for u in blanket):
            logs = conditional_logs(self.model_, hidden.codes, v)
            return normalised_logs(logs, hidden.index)
        return np.asarray(self._by_distinct(hidden, lambda rows: self._marginals(rows, v)))

    def _marginals(self, rows: CodeTable, v: int) -> Array:
        try:
            found = self.model_.marginals([rows.names[v]], evidence=Evidence(rows.observed(), batched=True))
        except EvidenceError as error:
            raise EvidenceError(
                f'{error}; the data that were learnt from have no such case: a prior, such as prior="laplace", leaves '
                "none out"
            ) from None
        return np.asarray(found[rows.names[v]])

    def impute(
        self, X: Any, method: Literal["most_probable", "draw"] = "most_probable", random_state: int = 0
    ) -> pd.DataFrame:
        """The rows with all cells known, in the dtypes of the data.

        most_probable: the most probable joint state of what is missing in a row. draw: a draw from its distribution,
        as multiple imputation asks for.
        """
        check_choice("method", method, ("most_probable", "draw"))
        table = self._read(X)
        unknown = table.incomplete()
        codes = [np.array(column) for column in table.codes]
        if unknown.any():
            part = table.take(unknown)
            if method == "draw":
                filled = self._drawn(part, read_seed(random_state))
            else:
                filled = self._by_distinct(part, self._best)
            for v, column in enumerate(codes):
                column[unknown] = filled[:, v]
        columns = list(X.columns) if hasattr(X, "iloc") else table.names
        return self._frame(codes, table.index)[[str(name) for name in columns]]

    def _best(self, rows: CodeTable) -> AnyArray:
        return np.asarray(self.model_.map(evidence=Evidence(rows.observed(), batched=True)).labels)

    def _drawn(self, rows: CodeTable, seed: int) -> AnyArray:
        from besag.query.verbs import draw

        parts = []
        for start in range(0, rows.n_rows, AT_ONCE):
            some = rows.take(np.arange(start, min(start + AT_ONCE, rows.n_rows)))
            found = draw(self.model_, 1, Evidence(some.observed(), batched=True), {"seed": seed + start})
            parts.append(found.samples.reshape(some.n_rows, -1))
        return np.concatenate(parts)

    def sample(self, n_samples: int = 1, evidence: Any = None, random_state: int = 0) -> pd.DataFrame:
        """Rows drawn from the model, in the dtypes of the data; evidence: {name: state}."""
        from besag.query.forward import forward_draws
        from besag.query.verbs import draw

        self._check_fitted()
        seed = read_seed(random_state)
        forward = forward_draws(self.model_, n_samples, evidence, {"seed": seed})
        if forward is not None:
            return self._frame(forward)
        found = draw(self.model_, n_samples, evidence, {"seed": seed})
        codes = found.samples.reshape(-1, len(self.model_.variables))
        return self._frame(np.ascontiguousarray(codes.T))

    def _frame(self, codes: Sequence[AnyArray] | AnyArray, index: Any = None) -> pd.DataFrame:
        import pandas as pd

        columns = {
            name: column.restored(own) for name, column, own in zip(self._names(), self._types, codes, strict=True)
        }
        return pd.DataFrame(columns, index=index)

    # Files -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to one file, without pickle; `besag.load` reads it."""
        self._check_fitted()
        save_estimator(self, path)


def with_hidden(table: CodeTable, names: Sequence[str], types: Sequence[ColumnType]) -> CodeTable:
    """The columns in this order, with those that a table has not as columns of missing cells."""
    codes = dict(zip(table.names, table.codes, strict=True))
    own = dict(zip(table.names, table.types, strict=True))
    for name in names:
        if name not in codes:
            codes[name] = np.full(table.n_rows, 0xFF, np.uint8)
    kinds = tuple(own.get(name, types[v]) for v, name in enumerate(names))
    return CodeTable(
        tuple(names), kinds, tuple(codes[name] for name in names), table.n_rows, table.weights, table.index
    )


def _hide(table: CodeTable, targets: Sequence[int]) -> CodeTable:
    """The table with all cells of some columns missing."""
    codes = list(table.codes)
    for v in targets:
        codes[v] = np.full(table.n_rows, missing_code(codes[v]), codes[v].dtype)
    return CodeTable(table.names, table.types, tuple(codes), table.n_rows, table.weights, table.index)
