"""The files around a UAI model: evidence, the variables of a marginal MAP query, and results.

    evidence  = sample | n_samples  sample * n_samples
    sample    = k  (variable state) * k
    virtual   = k  (variable K  likelihood * K) * k         .virt, of merlin: one likelihood for each state
    query     = n  variable * n
    result    = task  solution  ("-BEGIN-" solution) *      the last solution counts
    solution  = log10 Z                                     PR
              | n  (K  probability * K) * n                 MAR
              | n  state * n                                MAP or MPE
              | n  (variable state) * n  |  n  state * n    MMAP: of the query's variables, in its order

Variables and states are numbers from 0, in the order of the model. If a model is given, they become its names; else
they stay numbers, as text, which are the names in a model read from a UAI file.

The two styles of evidence are distinguished by the number of words: k pairs have 1 + 2 k of them. A leading 0 means no
evidence, whatever follows, as in other solvers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, freeze
from besag.errors import EvidenceError, ModelError, ParseError
from besag.io.shared.files import NumberText, line_of, read_bytes
from besag.io.shared.numbers import number_text
from besag.model.model import Model

if TYPE_CHECKING:
    from besag.infer.result import Result

TASKS = ("PR", "MAR", "MAP", "MPE", "MMAP")
MANY = 2**31
DIGITS = 14  # of log10 Z

_COMMENT = re.compile(rb"#[^\r\n]*")
_TASK = re.compile(rb"\s*([A-Za-z]+)(?!\S)")
_BEGIN = re.compile(rb"-BEGIN-")


# Evidence ------------------------------------------------------------------------------------------------------------


def read_uai_evidence(path: str | PathLike[str], model: Model | None = None) -> dict[str, str]:
    """The evidence of a UAI .evid file, the first sample if there are several: {variable: state}.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "a.evid")
    >>> _ = file.write_text("2 0 1 5 0")
    >>> read_uai_evidence(file)
    {'0': '1', '5': '0'}
    """
    samples = read_uai_samples(path, model)
    return samples[0] if samples else {}


def read_uai_samples(path: str | PathLike[str], model: Model | None = None) -> list[dict[str, str]]:
    """All samples of a UAI .evid file; none if it begins with 0."""
    return samples_of(read_bytes(path), fspath(path), model)


def samples_of(data: bytes, path: str, model: Model | None = None) -> list[dict[str, str]]:
    """The same from the content of a file."""
    numbers = NumberText(_COMMENT.sub(b"", data), path)
    first = numbers.integer(0, 0, len(numbers), "a number of observations or of samples")
    if first == 0:
        return []
    if 1 + 2 * first == len(numbers):
        return [_sample(numbers, 0, first, model)]
    samples, at = [], 1
    for sample in range(first):
        most = (len(numbers) - at - 1) // 2
        k = numbers.integer(at, 0, max(most, 0), f"the number of observations of sample {sample}")
        samples.append(_sample(numbers, at, k, model))
        at += 1 + 2 * k
    if at < len(numbers):
        raise numbers.fail(
            at, f"expected {first} observations or {first} samples and then the end, got {len(numbers)} numbers in all"
        )
    return samples


def line_of_sample(data: bytes, path: str, sample: int) -> int:
    """The line on which a sample begins, in content that `samples_of` has read."""
    numbers, at = NumberText(_COMMENT.sub(b"", data), path), 1
    for _ in range(sample):
        at += 1 + 2 * int(numbers.values[at])
    return numbers.line(at)


def _sample(numbers: NumberText, at: int, k: int, model: Model | None) -> dict[str, str]:
    """The k observations after their number, which is at `at`."""
    evidence: dict[str, str] = {}
    for place in range(at + 1, at + 1 + 2 * k, 2):
        variable, state = _pair(numbers, place, model)
        if evidence.setdefault(variable, state) != state:
            raise numbers.fail(place, f"variable {variable} is in two states, {evidence[variable]} and {state}")
    return evidence


def _pair(numbers: NumberText, place: int, model: Model | None) -> tuple[str, str]:
    """The variable and the state at a place."""
    variable = _variable(numbers, place, model)
    number = int(numbers.values[place])
    most = MANY if model is None else int(model.variables.cardinalities[number]) - 1
    state = numbers.integer(place + 1, 0, most, f"a state of variable {variable}")
    return variable, str(state) if model is None else model.variables.states(number)[state]


def _variable(numbers: NumberText, place: int, model: Model | None) -> str:
    most = MANY if model is None else len(model.variables) - 1
    number = numbers.integer(place, 0, most, "a variable")
    return str(number) if model is None else model.variables.names[number]


def read_uai_likelihoods(path: str | PathLike[str], model: Model | None = None) -> dict[str, dict[str, float]]:
    """The virtual evidence of a .virt file: {variable: {state: likelihood}}.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "a.virt")
    >>> _ = file.write_text("1  7 2 0.7 0.5")
    >>> read_uai_likelihoods(file)
    {'7': {'0': 0.7, '1': 0.5}}
    """
    numbers = NumberText(_COMMENT.sub(b"", read_bytes(path)), fspath(path))
    n = numbers.integer(0, 0, len(numbers), "a number of likelihoods")
    found: dict[str, dict[str, float]] = {}
    at = 1
    for _ in range(n):
        variable = _variable(numbers, at, model)
        if variable in found:
            raise numbers.fail(at, f"variable {variable} has two likelihoods")
        found[variable] = _likelihood(numbers, at, variable, model)
        at += 2 + len(found[variable])
    if at < len(numbers):
        raise numbers.fail(at, f"expected {n} likelihoods and then the end, got more numbers")
    return found


def _likelihood(numbers: NumberText, at: int, variable: str, model: Model | None) -> dict[str, float]:
    """The likelihood of the variable at `at`."""
    states = None if model is None else model.variables[variable].states
    low, high = (1, max(1, len(numbers) - at - 2)) if states is None else (len(states), len(states))
    k = numbers.integer(at + 1, low, high, f"the cardinality of variable {variable}")
    values = numbers.values[at + 2 : at + 2 + k]
    if len(values) < k or not ((values >= 0) & (values < math.inf)).all() or not values.any():
        raise numbers.fail(at, f"expected {k} numbers of variable {variable}, finite, not negative and not all zero")
    return dict(zip(states or map(str, range(k)), values.tolist(), strict=True))


def evidence_text(evidence: Mapping[str, object] | Sequence[Mapping[str, object]], model: Model) -> str:
    """A .evid file: the observations, {variable: state}; with the number of samples in front if a list is given.

    >>> import besag
    >>> evidence_text({"rain": "yes"}, besag.data.bundled("sprinkler"))
    '1 2 1\\n'
    """
    if isinstance(evidence, Mapping):
        return _sample_text(evidence, model) + "\n"
    observations = sum(map(len, evidence))
    if evidence and len(evidence) == 2 * observations:
        raise EvidenceError(
            f"{len(evidence)} samples with {observations} observations in all would be read as one sample; "
            "write each to a file of its own"
        )
    return "\n".join([str(len(evidence)), *(_sample_text(sample, model) for sample in evidence), ""])


def _sample_text(evidence: Mapping[str, object], model: Model) -> str:
    words = [len(evidence)]
    for name, value in evidence.items():
        variable = model.variables.index(name)
        state = model.variables.find_state(variable, value)
        if state is None:
            raise EvidenceError(
                f"{name!r} has no state {value!r}; it has {', '.join(model.variables.states(variable))}"
            )
        words += [variable, state]
    return " ".join(map(str, words))


# Queries -------------------------------------------------------------------------------------------------------------


def read_uai_query(path: str | PathLike[str], model: Model | None = None) -> list[str]:
    """The variables of a .query file, in its order."""
    return query_of(read_bytes(path), fspath(path), model)


def query_of(data: bytes, path: str, model: Model | None = None) -> list[str]:
    """The same from the content of a file."""
    numbers = NumberText(_COMMENT.sub(b"", data), path)
    n = numbers.integer(0, 0, len(numbers) - 1, "the number of query variables")
    if n < len(numbers) - 1:
        raise numbers.fail(n + 1, f"expected {n} query variables and then the end, got {len(numbers) - 1} numbers")
    query = [_variable(numbers, place, model) for place in range(1, n + 1)]
    seen: set[str] = set()
    for place, name in enumerate(query, 1):
        if name in seen:
            raise numbers.fail(place, f"variable {name} is asked for twice")
        seen.add(name)
    return query


def query_text(query: Sequence[str], model: Model) -> str:
    """A .query file."""
    return " ".join(map(str, [len(query), *map(model.variables.index, query)])) + "\n"


# Results -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The content of a result file: log10_partition of PR; marginals of MAR, one (K,) for each variable; states.

    states: of all variables for MAP and MPE; for MMAP of the query's variables, which are `query` if the file names
    them, else None.
    """

    task: str
    log10_partition: float | None = None
    marginals: tuple[Array, ...] | None = None
    states: tuple[int, ...] | None = None
    query: tuple[int, ...] | None = None


def read_uai_result(path: str | PathLike[str]) -> Solution:
    """A result file: .PR, .MAR, .MAP, .MPE or .MMAP.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "a.uai.PR")
    >>> _ = file.write_text("PR\\n-12.5\\n")
    >>> read_uai_result(file).log10_partition
    -12.5
    """
    data, where = read_bytes(path), fspath(path)
    word = _TASK.match(data)
    task = "" if word is None else word.group(1).decode("ascii").upper()
    if word is None or task not in TASKS:
        got = data.split(maxsplit=1)[0][:40].decode("ascii", "replace")
        raise ParseError(f"expected one of {', '.join(TASKS)}, got {got!r}", path=where, line=line_of(data, 0))
    start = max([word.end(), *(match.end() for match in _BEGIN.finditer(data))])
    numbers = NumberText(data, where, start)
    if task == "PR":
        return Solution(task, log10_partition=_log10(numbers))
    n = numbers.integer(0, 0, len(numbers), "the number of variables")
    if task == "MAR":
        return Solution(task, marginals=_marginals(numbers, n))
    if task == "MMAP" and len(numbers) == 1 + 2 * n:
        return Solution(
            task, states=_states(numbers, range(2, 2 * n + 1, 2)), query=_states(numbers, range(1, 2 * n, 2))
        )
    if len(numbers) != 1 + n:
        raise numbers.fail(min(n + 1, len(numbers)), f"expected {n} states, got {len(numbers) - 1} numbers")
    return Solution(task, states=_states(numbers, range(1, n + 1)))


def _log10(numbers: NumberText) -> float:
    if len(numbers) != 1 or math.isnan(numbers.values[0]):
        raise numbers.fail(min(1, len(numbers)), f"expected one number, log10 Z, got {len(numbers)}")
    return float(numbers.values[0])


def _states(numbers: NumberText, places: range) -> tuple[int, ...]:
    return tuple(numbers.integer(place, 0, MANY, "a variable or a state") for place in places)


def _marginals(numbers: NumberText, n: int) -> tuple[Array, ...]:
    found, at = [], 1
    for variable in range(n):
        k = numbers.integer(at, 1, max(1, len(numbers) - at - 1), f"the cardinality of variable {variable}")
        values = numbers.values[at + 1 : at + 1 + k]
        if len(values) < k or not ((values >= 0) & (values <= 1 + 1e-6)).all():
            raise numbers.fail(at, f"expected {k} probabilities of variable {variable}")
        found.append(freeze(values))
        at += 1 + k
    if at < len(numbers):
        raise numbers.fail(at, f"expected the marginals of {n} variables and then the end, got more numbers")
    return tuple(found)


def result_text(task: str, result: Result, model: Model, query: Sequence[str] | None = None) -> str:
    """A result file; `result` is that of log_partition (PR), marginals (MAR), map (MAP, MPE) or marginal_map (MMAP).

    query: the variables of MMAP, in the order of the file; None = those that the result has.

    >>> import besag
    >>> model = besag.data.bundled("sprinkler")
    >>> result_text("PR", model.marginals(evidence={"rain": "yes"}), model)
    'PR\\n-0.30102999566398\\n'
    """
    task = task.upper()
    if task not in TASKS:
        raise ModelError(f"expected a task, one of {', '.join(TASKS)}, got {task!r}")
    if result.batched:
        raise ModelError("a result file has one row of evidence, and this result has a batch; write result by result")
    return f"{task}\n{_solution_text(task, result, model, query)}\n"


def _solution_text(task: str, result: Result, model: Model, query: Sequence[str] | None) -> str:
    if task == "PR":
        return np.format_float_positional(result.log_partition / math.log(10), DIGITS, unique=False, fractional=False)
    n = len(model.variables)
    if task == "MAR":
        tables = [number_text(result[model.variables.names[v]]) for v in range(n)]
        return " ".join([str(n), *(f"{len(words)} {' '.join(words)}" for words in tables)])
    labels = result.labels.reshape(-1).tolist()
    if task != "MMAP":
        return " ".join(map(str, [n, *labels]))
    has = [v for v, state in enumerate(labels) if state >= 0]
    asked = has if query is None else [model.variables.index(name) for name in query]
    absent = sorted(set(asked) - set(has))
    if absent:
        raise ModelError(f"the result has no state of {model.variables.names[absent[0]]!r}: ask marginal_map for it")
    return " ".join([str(len(asked)), *(f"{v} {labels[v]}" for v in asked)])
