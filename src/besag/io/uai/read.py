"""UAI models, as the inference competitions use them; `besag.io.uai.tasks` has evidence, queries and results.

    model     = kind  n  cardinality * n  m  scope * m  table * m
    kind      = "BAYES" | "MARKOV"
    scope     = arity  variable * arity              variables are numbered from 0; any order; arity 0 is a constant
    table     = size  weight * size                  the last variable of the scope changes fastest

Words are separated by white space of any kind; "#" begins a comment. Variables are named "0".."n-1", their states
"0".."K-1". MARKOV: weights, a Markov network; constants are folded into factor 0, or into a new unary factor on
variable 0 where there is no other. BAYES: a Bayesian network; the last variable of each scope is the child, and rows
that sum to one within 1e-3 are normalised. If a row is further off, as in some published pedigrees, or an entry is
above 1, the file is read as a Markov network with its numbers unchanged, as solvers do; a LossWarning says so. Factors
keep the order of the file. Anything after the last table, be it numbers or words, is ignored with a LossWarning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, concatenate, offsets_of
from besag.errors import LossWarning, ParseError, warn
from besag.io.formats import Source
from besag.io.shared.files import NotANumber, NumberText, line_of
from besag.io.shared.tables import MAX_ARITY, TableError, TablePool, energies_of, model_of, normalise_rows
from besag.io.uai.write import write
from besag.model.dag import CycleError, topological
from besag.model.model import Model
from besag.model.variable import RangeNames, Variables, number_states

__all__ = ["matches", "read", "write"]

KINDS = (b"BAYES", b"MARKOV")
SPARE_STATES = 1 << 16  # states that a file may declare beyond its count of numbers

_COMMENT = re.compile(rb"#[^\r\n]*")
_WORD = re.compile(rb"\s*(\S+)")


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a UAI model."""
    word = _WORD.match(_COMMENT.sub(b"", head))
    return word is not None and word.group(1).upper() in KINDS


def read(source: Source) -> Model:
    """A Model from the content of a UAI file."""
    kind, numbers, word = _kind(source.data, source.path)
    try:
        variables, at = _variables(numbers)
        functions = _functions(numbers, variables, at)
    except ParseError as error:
        raise word or error from None
    _tell_of_more(numbers, functions, source.path, word)
    if kind == b"MARKOV":
        return _markov(numbers, variables, functions)
    return _bayes(numbers, variables, functions)


def _kind(data: bytes, path: str) -> tuple[bytes, NumberText, NotANumber | None]:
    """The kind, the numbers up to the first word that is no number, and the error of that word."""
    if b"#" in data:
        data = _COMMENT.sub(b"", data)
    word = _WORD.match(data)
    if word is None or word.group(1).upper() not in KINDS:
        shown = "nothing" if word is None else repr(word.group(1)[:40].decode("ascii", "replace"))
        line = line_of(data, 0 if word is None else word.start(1))
        raise ParseError(f"expected BAYES or MARKOV, got {shown}", path=path, line=line)
    kind = word.group(1).upper()
    try:
        return kind, NumberText(data, path, word.end()), None
    except NotANumber as error:
        return kind, NumberText(data[: error.offset], path, word.end()), error


def _tell_of_more(numbers: NumberText, functions: _Functions, path: str, word: NotANumber | None) -> None:
    """Issue a LossWarning if something follows the last table."""
    if functions.end < len(numbers):
        line: int | None = numbers.line(functions.end)
    elif word is not None:
        line = word.line
    else:
        return
    warn(LossWarning(f"{path}:{line}: everything from here on, after the last table, is ignored"))


def _variables(numbers: NumberText) -> tuple[Variables, int]:
    """The variables, and where the number of functions stands."""
    n = numbers.integer(0, 1, len(numbers), "the number of variables")
    cardinalities = numbers.values[1 : 1 + n]
    wrong = ~((cardinalities >= 1) & (cardinalities < 2**31) & (cardinalities == np.floor(cardinalities)))
    if wrong.any() or len(cardinalities) < n:
        first = int(np.argmax(wrong)) if wrong.any() else len(cardinalities)
        numbers.integer(1 + first, 1, 2**31 - 1, f"the cardinality of variable {first}")
    distinct, space_of = np.unique(cardinalities.astype(np.int64), return_inverse=True)
    if int(distinct.sum()) > len(numbers) + SPARE_STATES:
        largest = int(np.argmax(cardinalities))
        raise numbers.fail(
            1 + largest,
            f"variable {largest} has {cardinalities[largest]:.0f} states, but the file has {len(numbers)} numbers",
        )
    return Variables(RangeNames(n), [number_states(k) for k in distinct.tolist()], space_of), 1 + n


@dataclass(frozen=True, slots=True, eq=False)
class _Functions:
    """Places of scopes and tables: scope f begins at scope_starts[f], its table at table_starts[f]; all end at end."""

    scope_starts: IntArray
    arities: IntArray
    table_starts: IntArray
    sizes: IntArray
    end: int


def _by_arity(values: Array, starts: IntArray, arities: IntArray) -> Iterator[tuple[IntArray, Array]]:
    """The functions of each arity except 0, and their scopes (F, arity), as in the file."""
    for arity in np.unique(arities[arities > 0]).tolist():
        which = np.flatnonzero(arities == arity)
        yield which, values[starts[which][:, None] + np.arange(arity)]


def _functions(numbers: NumberText, variables: Variables, at: int) -> _Functions:
    n_functions = numbers.integer(at, 0, len(numbers), "the number of functions")
    starts, at = _walk(numbers, at + 1, n_functions, len(variables))
    arities = np.diff(np.append(starts, at + 1)) - 1
    sizes = np.ones(n_functions)
    for which, given in _by_arity(numbers.values, starts, arities):
        _check_scopes(numbers, which, starts, given, len(variables))
        sizes[which] = variables.cardinalities[given.astype(np.int64)].prod(axis=1, dtype=np.float64)
    return _Functions(starts, arities, *_tables(numbers, at, sizes))


def _walk(numbers: NumberText, at: int, n_functions: int, n_variables: int) -> tuple[IntArray, int]:
    """Where each scope begins, and where the last one ends."""
    values, end = numbers.values, len(numbers)
    starts = np.empty(n_functions, np.int64)
    most = min(n_variables, MAX_ARITY)
    for function in range(n_functions):
        arity = values.item(at) if at < end else -1.0
        if not (0 <= arity <= most and arity.is_integer()):
            numbers.integer(at, 0, most, f"the number of variables of function {function}")
        at += 1
        starts[function] = at
        at += int(arity)
    if at > end:
        raise numbers.fail(end, f"the file ends in the scope of function {n_functions - 1}")
    return starts, at


def _check_scopes(numbers: NumberText, which: IntArray, starts: IntArray, scopes: Array, n_variables: int) -> None:
    wrong = ~((scopes >= 0) & (scopes < n_variables) & (scopes == np.floor(scopes)))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        place = int(starts[which[row]]) + column
        numbers.integer(place, 0, n_variables - 1, f"a variable in the scope of function {which[row]}")
    ordered = np.sort(scopes, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        function = int(which[np.argmax(twice)])
        raise numbers.fail(int(starts[function]), f"the scope of function {function} repeats a variable")


def _tables(numbers: NumberText, at: int, sizes: Array) -> tuple[IntArray, IntArray, int]:
    """Where each table begins, how long it is, and where all end: sizes are checked before anything is made."""
    rest = len(numbers) - at
    lengths = np.minimum(sizes, rest + 1).astype(np.int64)
    heads = at + offsets_of(1 + lengths)
    inside = heads[:-1] < len(numbers)
    wrong = numbers.values[heads[:-1][inside]] != sizes[inside]
    if wrong.any():
        first = int(np.argmax(wrong))
        got = numbers.values[heads[first]]
        raise numbers.fail(
            int(heads[first]), f"expected the size of the table of function {first}, {sizes[first]:.0f}, got {got:.12g}"
        )
    end = int(heads[-1])
    if end > len(numbers):
        last = int(np.searchsorted(heads, len(numbers), side="right")) - 1
        raise numbers.fail(
            len(numbers), f"the file ends in the table of function {last}, which has {sizes[last]:.0f} entries"
        )
    weights = numbers.values[at:end]
    bad = ~((weights >= 0) & (weights < np.inf))
    if bad.any():
        place = at + int(np.argmax(bad))
        function = int(np.searchsorted(heads, place, side="right")) - 1
        raise numbers.fail(
            place, f"function {function}: weights must be finite and not negative, got {numbers.values[place]:.12g}"
        )
    return heads[:-1] + 1, lengths, end


def _pools(values: Array, variables: Variables, functions: _Functions) -> tuple[list[TablePool], Array]:
    """The functions of each table shape, and all tables in that order."""
    pools = []
    for which, given in _by_arity(values, functions.scope_starts, functions.arities):
        scopes = given.astype(np.int64)
        kind = np.zeros(len(which), np.int64)
        for column in variables.space_of[scopes].T:
            kind = np.unique(kind * len(variables.spaces) + column, return_inverse=True)[1]
        order = np.argsort(kind, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
            shape = tuple(variables.cardinalities[scopes[members[0]]].tolist())
            pools.append(TablePool(shape, scopes[members], which[members]))
    order = concatenate([pool.positions for pool in pools], np.int64)
    starts, sizes = functions.table_starts[order].tolist(), functions.sizes[order].tolist()
    tables = [values[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    return pools, concatenate(tables, np.float64)


def _markov(numbers: NumberText, variables: Variables, functions: _Functions) -> Model:
    pools, weights = _pools(numbers.values, variables, functions)
    constant = functions.arities == 0
    if not constant.any():
        return model_of(variables, pools, *energies_of(weights), conditional=False)
    if not pools:
        pools = [
            TablePool(tuple(variables.cardinalities[:1].tolist()), np.zeros((1, 1), np.int64), np.zeros(1, np.int64))
        ]
        weights = np.ones(pools[0].shape)
    else:
        position = np.cumsum(~constant) - 1
        pools = [pool._replace(positions=position[pool.positions]) for pool in pools]
    energies, support = energies_of(weights)
    _fold(pools, energies, support, numbers.values[functions.table_starts[constant]])
    return model_of(variables, pools, energies, support, conditional=False)


def _fold(pools: list[TablePool], energies: Array, support: BoolArray, constants: Array) -> None:
    """Multiply the factor at position 0 by the constants."""
    start = 0
    for pool in pools:
        size = prod(pool.shape)
        for row in np.flatnonzero(pool.positions == 0).tolist():
            first = slice(start + row * size, start + (row + 1) * size)
            if (constants > 0).all():
                energies[first] -= np.where(support[first], np.log(constants).sum(), 0.0)
            else:
                energies[first], support[first] = 0.0, False
        start += size * len(pool.scopes)


def _bayes(numbers: NumberText, variables: Variables, functions: _Functions) -> Model:
    _check_network(numbers, variables, functions)
    pools, weights = _pools(numbers.values, variables, functions)
    try:
        weights = normalise_rows(variables, pools, weights)
    except TableError as error:
        told = numbers.fail(int(functions.table_starts[error.position]), f"function {error.position}: {error}")
        warn(LossWarning(f"{told}; the file is read as a Markov network, with its numbers unchanged"))
        return _markov(numbers, variables, functions)
    return model_of(variables, pools, *energies_of(weights), conditional=True)


def _check_network(numbers: NumberText, variables: Variables, functions: _Functions) -> None:
    """ParseError unless each variable is the child of one function and there is no cycle."""
    if (functions.arities == 0).any():
        function = int(np.argmin(functions.arities))
        place = int(functions.scope_starts[function]) - 1
        raise numbers.fail(place, f"function {function} has an empty scope: in a BAYES file each is a CPT")
    children = numbers.values[functions.scope_starts + functions.arities - 1].astype(np.int64)
    first = np.full(len(variables), -1)
    first[children[::-1]] = np.arange(len(children))[::-1]
    again = np.flatnonzero(first[children] != np.arange(len(children)))
    if again.size:
        function, child = int(again[0]), int(children[again[0]])
        raise numbers.fail(
            int(functions.scope_starts[function]),
            f"variable {child} has two CPTs, functions {first[child]} and {function}: "
            "the last variable of each scope is the child",
        )
    if (first < 0).any():
        absent = int(np.argmin(first))
        raise numbers.fail(
            1 + len(variables), f"variable {absent} has no CPT: the last variable of each scope is the child"
        )
    _check_acyclic(numbers, variables, functions, first)


def _check_acyclic(numbers: NumberText, variables: Variables, functions: _Functions, function_of: IntArray) -> None:
    starts = functions.scope_starts[function_of].tolist()
    arities = functions.arities[function_of].tolist()
    parents = [
        numbers.values[start : start + arity - 1].astype(np.int64).tolist()
        for start, arity in zip(starts, arities, strict=True)
    ]
    try:
        topological(variables, parents)
    except CycleError as error:
        raise numbers.fail(min(starts[v] for v in error.cycle), str(error)) from None
