"""Evidence: what is known of the variables, one row for each query.

    observed (B, V) int codes, -1 = free          log_weights (B or 1, S) or None: 0 allowed, -inf not, else a
    log-likelihood

S is the flat axis of all states. A set of allowed states, virtual evidence and emissions of an HMM are all
log-weights, and H
includes them: H(y) - sum_v log_weights[v, y_v]. `read_evidence` makes it from what users write: a dict, or a
DataFrame of rows.

A list with an entry for each state may be meant as a likelihood, which it is elsewhere. Here it is a set of states, and
says nothing where it has them all, so that an EvidenceWarning tells; what is given as a set brings none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from besag.arrays import LARGEST, AnyArray, Array, IntArray, Rebuilt, secure
from besag.errors import EvidenceError, EvidenceWarning, warn
from besag.model.variable import Variables
from besag.text import shorten

SEVERAL = (Mapping, list, tuple, set, frozenset, np.ndarray)  # values that speak of several states
NO_STATE = frozenset(  # what pandas.read_csv takes for a missing cell
    (
        *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
    )
)


UNKNOWN = frozenset({*map(str.casefold, NO_STATE), "-", "?"})  # in any case of letters


@dataclass(frozen=True, slots=True, eq=False)
class Evidence(Rebuilt):
    """B rows of evidence on one Graph.

    batched: answers have a row axis. index: the labels of the rows, a pandas Index.
    """

    observed: IntArray
    log_weights: Array | None = None
    batched: bool = False
    index: Any = None
    _fits: Variables | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        given = np.atleast_2d(np.asarray(self.observed))
        if given.dtype.kind not in "iu" or len(given) == 0:
            raise EvidenceError(f"observed must be rows of integer codes, got {given.shape} of {given.dtype}")
        observed = secure(given.astype(np.int64, copy=False))
        object.__setattr__(self, "observed", observed)
        object.__setattr__(self, "batched", self.batched or len(observed) > 1)
        if self.log_weights is None:
            return
        weights = secure(np.atleast_2d(np.asarray(self.log_weights, np.float64)))
        if len(weights) not in (1, len(observed)):
            raise EvidenceError(f"log_weights must have 1 or {len(observed)} rows, got {len(weights)}")
        if not ((np.abs(weights) <= LARGEST) | (weights == -np.inf)).all():
            raise EvidenceError(
                f"log_weights must be -inf or numbers of at most {LARGEST:g} in size; an entry is neither"
            )
        object.__setattr__(self, "log_weights", weights)

    @property
    def n_rows(self) -> int:
        """B."""
        return len(self.observed)

    def check(self, variables: Variables) -> None:
        """EvidenceError unless it fits these variables; looked at once, since neither changes."""
        if self._fits is not variables:
            self._check(variables)
            object.__setattr__(self, "_fits", variables)

    def _check(self, variables: Variables) -> None:
        if self.observed.shape[1] != len(variables):
            raise EvidenceError(f"observed must have {len(variables)} columns, got {self.observed.shape[1]}")
        wrong = (self.observed < -1) | (self.observed >= variables.cardinalities)
        if wrong.any():
            row, v = (int(i) for i in np.argwhere(wrong)[0])
            raise EvidenceError(
                f"{variables.names[v]!r} has codes 0 to {variables.cardinalities[v] - 1} and -1 = free, "
                f"got {self.observed[row, v]} in row {row}"
            )
        if self.log_weights is not None and self.log_weights.shape[1] != variables.state_offsets[-1]:
            raise EvidenceError(
                f"log_weights must have {variables.state_offsets[-1]} columns, one for each state, "
                f"got {self.log_weights.shape[1]}"
            )

    def row(self, b: int) -> Evidence:
        """One row, unbatched."""
        weights = self.log_weights
        if weights is not None and len(weights) > 1:
            weights = weights[b : b + 1]
        return Evidence(self.observed[b : b + 1], weights)

    def rows(self, start: int, stop: int) -> tuple[IntArray, Array | None]:
        """observed and log_weights of some rows."""
        weights = self.log_weights
        return self.observed[start:stop], weights if weights is None or len(weights) == 1 else weights[start:stop]


def free(variables: Variables) -> Evidence:
    """No evidence."""
    return Evidence(np.full((1, len(variables)), -1, np.int64))


def read_evidence(variables: Variables, given: Any) -> Evidence:
    """What a user writes -> Evidence: None, an Evidence, {name: value}, or a DataFrame, one row a query.

    A value is a state; a list, tuple or set of allowed states; or a likelihood, a dict over the states or a float array
    in state order. In a DataFrame
    absent columns and missing cells are free, and a column that is no variable is an error.
    """
    read, doubts = read_doubting(variables, given)
    for doubt in doubts.values():
        warn(EvidenceWarning(doubt))
    return read


def read_doubting(variables: Variables, given: Any) -> tuple[Evidence, dict[int, str]]:
    """The same without warnings: what there would be to say of variables, by their numbers, comes back beside it."""
    if given is None:
        return free(variables), {}
    if isinstance(given, Evidence):
        given.check(variables)
        return given, {}
    if hasattr(given, "columns") and hasattr(given, "iloc"):
        return _from_frame(variables, given)
    if hasattr(given, "to_dict"):
        given = given.to_dict()
    if not isinstance(given, Mapping):
        hint = "; rows of evidence are a DataFrame, pd.DataFrame(rows)" if isinstance(given, list) else ""
        hint = structure_hint(given) or hint
        raise EvidenceError(f"evidence must be a dict {{name: state}} or a DataFrame, got {type(given).__name__}{hint}")
    observed = np.full(len(variables), -1, np.int64)
    weights: Array | None = None
    doubts: dict[int, str] = {}
    for name, value in given.items():
        v = _index(variables, name)
        if is_missing(value):
            continue
        if hasattr(value, "to_dict"):  # a Series over the states is a likelihood
            value = value.to_dict()
        value = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if isinstance(value, SEVERAL):
            if weights is None:
                weights = np.zeros(int(variables.state_offsets[-1]))
            weights[variables.state_offsets[v] : variables.state_offsets[v + 1]] = _log_weights(variables, v, value)
            doubts |= _doubt(variables, v, value)
        else:
            observed[v] = _code(variables, v, value)
    return Evidence(observed, weights), doubts


def structure_hint(given: Any) -> str:
    """What to ask instead where somebody gives structured data as evidence."""
    one = given[0] if isinstance(given, (list, tuple)) and given else given
    if not hasattr(one, "layout") or hasattr(one, "theta"):
        return ""
    return "; ask model.with_data(data) about an instance of structured data, fit.predict(data) about several"


def _from_frame(variables: Variables, frame: Any) -> tuple[Evidence, dict[int, str]]:
    observed = np.full((len(frame), len(variables)), -1, np.int64)
    if len(frame) == 0:
        raise EvidenceError("the evidence frame has no rows")
    _refuse_other_columns(variables, frame)
    weights: Array | None = None
    seen: set[int] = set()
    doubts: dict[int, str] = {}
    for position, name in enumerate(frame.columns):
        v = _index(variables, name)
        if v in seen:
            raise EvidenceError(f"the evidence frame has two columns for {name!r}")
        seen.add(v)
        column = frame.iloc[:, position]
        if column.dtype == object and any(isinstance(x, SEVERAL) for x in column):
            if weights is None:
                weights = np.zeros((len(frame), int(variables.state_offsets[-1])))
            doubts |= _mixed_column(variables, v, column, observed, weights)
        else:
            observed[:, v] = _column_codes(variables, v, column)
    return Evidence(observed, weights, batched=True, index=frame.index), doubts


def _refuse_other_columns(variables: Variables, frame: Any) -> None:
    other = [name for name in frame.columns if variables.names.find(str(name)) is None]
    if other:
        raise EvidenceError(
            f"{variables.unknown(str(other[0]))}; drop what is no variable, frame.drop(columns={other[:6]!r}), or make "
            f"it the index, frame.set_index({other[0]!r}) or pd.read_csv(..., index_col={other[0]!r})"
        )


def _column_codes(variables: Variables, v: int, column: Any) -> AnyArray:
    """Codes of a column of states: each distinct value is looked up once."""
    codes, values = column.factorize()
    table = np.full(len(values) + 1, -1, np.int64)
    for i, value in enumerate(values):
        code = cell_code(variables, v, value)
        if code is None:
            row = column.index[int(np.argmax(codes == i))]
            raise EvidenceError(
                f"{row_name(row)}: {no_state(variables, v, value)}{_as_text(variables, v, value)}", row=row
            )
        table[i] = code
    return np.asarray(table[codes])


def _as_text(variables: Variables, v: int, value: object) -> str:
    """How to make states of a column that pandas has not read as text."""
    states = variables.states(v)
    if isinstance(value, (bool, np.bool_)):
        if len(states) != 2:
            return ""
        yes, no = states if states[0].casefold() == "yes" else states[::-1]
        return f"; say which is which, as in frame.replace({{True: {yes!r}, False: {no!r}}})"
    if isinstance(value, (int, float, np.number)) and value in [_number_of(state) for state in states]:
        return "; pandas has read text as numbers: pd.read_csv(..., dtype=str) keeps it"
    return ""


def cell_code(variables: Variables, v: int, value: object) -> int | None:
    """The code of a cell of a table; -1 where its text stands for a missing one and could be no state by any case."""
    code = variables.find_state(v, value)
    if code is None and isinstance(value, str) and value in NO_STATE:
        return None if value.casefold() in map(str.casefold, variables.states(v)) else -1
    return code


def _mixed_column(variables: Variables, v: int, column: Any, observed: IntArray, weights: Array) -> dict[int, str]:
    where = slice(int(variables.state_offsets[v]), int(variables.state_offsets[v + 1]))
    doubts: dict[int, str] = {}
    for row, value in enumerate(column):
        try:
            if isinstance(value, SEVERAL):
                weights[row, where] = _log_weights(variables, v, value)
                doubts = doubts or _doubt(variables, v, value, f"{row_name(column.index[row])}: ")
            elif not is_missing(value):
                code = cell_code(variables, v, value)
                observed[row, v] = _code(variables, v, value) if code is None else code
        except EvidenceError as error:
            label = column.index[row]
            raise EvidenceError(f"{row_name(label)}: {error}", row=label) from None
    return doubts


def _doubt(variables: Variables, v: int, value: Any, where: str = "") -> dict[int, str]:
    """{v: what to say} of a list that has an entry for each state: all of them, or one of them twice."""
    n_states = int(variables.cardinalities[v])
    if isinstance(value, (Mapping, set, frozenset)) or not len(value) >= n_states > 1:
        return {}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return {}
    allowed = sorted({_code(variables, v, state) for state in value})
    states = variables.states(v)
    says = f"the states {shorten([states[code] for code in allowed])}"
    if len(allowed) == n_states:
        says = "every state, so it says nothing"
    likelihood = ", ".join(f"{state!r}: {p}" for state, p in zip(states, (0.2, 0.8), strict=False))
    more = ", ..." if n_states > 2 else ""
    advice = f"Several rows: a DataFrame. A likelihood: {{{likelihood}{more}}}. Allowed states: a set"
    return {v: f"{where}evidence on {variables.names[v]!r} allows {says}. {advice}"}


def _log_weights(variables: Variables, v: int, value: Any) -> Array:
    """Allowed states, or a likelihood over all states -> (K,)."""
    name = variables.names[v]
    weights = np.zeros(int(variables.cardinalities[v]))
    if isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating):
        if value.shape != weights.shape:
            raise EvidenceError(f"the likelihood of {name!r} must have shape {weights.shape}, got {value.shape}")
        value = dict(zip(variables.states(v), value.tolist(), strict=True))
    if isinstance(value, np.ndarray) and value.shape == weights.shape and value.dtype.kind in "iub":
        raise EvidenceError(
            f"evidence on {name!r}: are {value.tolist()} states, or a likelihood of all states? "
            "Give states as a list, a likelihood as an array of floats"
        )
    if not isinstance(value, Mapping):
        for state in value:
            weights[_code(variables, v, state, "; a likelihood is a dict or an array of floats")] = 1.0
        if not weights.any():
            raise EvidenceError(f"the allowed states of {name!r} are an empty set")
    else:
        named = [_code(variables, v, state) for state in value]
        if len(set(named)) != len(named):
            raise EvidenceError(f"the likelihood of {name!r} names a state twice: {list(value)}")
        try:
            weights[named] = [float(likelihood) for likelihood in value.values()]
        except (TypeError, ValueError):
            raise EvidenceError(f"the likelihood of {name!r} must be numbers, got {dict(value)}") from None
        if len(value) != len(weights):
            missing = [state for code, state in enumerate(variables.states(v)) if code not in named]
            raise EvidenceError(f"the likelihood of {name!r} must name every state; it does not name {missing}")
        if not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
            raise EvidenceError(
                f"the likelihood of {name!r} must be finite, not negative and not all zero, got {dict(value)}"
            )
    return np.where(weights > 0, np.log(np.where(weights > 0, weights, 1.0)), -np.inf)


def _index(variables: Variables, name: object) -> int:
    found = variables.names.find(str(name))
    if found is None:
        raise EvidenceError(variables.unknown(str(name)))
    return found


def _code(variables: Variables, v: int, value: object, hint: str = "") -> int:
    code = variables.find_state(v, value)
    if code is None:
        raise EvidenceError(no_state(variables, v, value) + (hint if isinstance(value, float) else ""))
    return code


def no_state(variables: Variables, v: int, value: object) -> str:
    """What to say of a value that is no state of a variable."""
    text, hint = str(value), ""
    if text.strip().casefold() in UNKNOWN - set(map(str.casefold, variables.states(v))):
        given = text if isinstance(value, str) else value
        hint = f"leave the cell empty where it is not known, or pd.read_csv(..., na_values=[{given!r}])."
    return variables.no_state(v, value, hint)


def row_name(label: object) -> str:
    """How a message names a row of a batch: row 7, row 'monday'."""
    return f"row {label!r}" if isinstance(label, str) else f"row {label}"


def _number_of(text: str) -> float:
    """The number that a text is; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def is_missing(value: object) -> bool:
    """None, NaN, pandas.NA or NaT."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")
