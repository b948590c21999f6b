"""WCSP, weighted constraint satisfaction problems, as toulbar2 reads them.

    file      = name  n  largest  m  bound  cardinality * n  function * m
    function  = arity  variable * arity  default  k  (state * arity  cost) * k
              | arity  variable * arity  default  -id           the costs of shared function id
              | -arity ...                                       as the first, and shared, with id 1, 2, ... in the file
              | arity  variable * arity  -1  keyword  number *   a constraint (`besag.io.costs.constraints`)

Words are separated by white space of any kind; lines that begin with "#" are comments. Variables and states are
numbered from 0 and named by their numbers; a negative cardinality is an interval of as many states. If a tuple is given
twice the last one counts.

Costs are energies, unchanged: model.energy is the cost of an assignment. Costs that sum up to the bound or more are
forbidden, as far as tables can express it (`besag.io.costs.shared`); the bound itself is kept, as text, in
metadata["wcsp"]. A function without variables is a constant and is folded into another. The default of a function that
uses a shared one is ignored: its costs are those of the shared one.

Constraints become tables, with at most CONSTRAINT_ENTRIES entries in all; keywords that `besag.io.costs.constraints`
does not have are refused.
"""

from __future__ import annotations

import re
from itertools import islice
from math import prod
from typing import NamedTuple

import numpy as np

from besag.arrays import Array
from besag.errors import ParseError
from besag.io.costs.constraints import CONSTRAINTS, constraint_table
from besag.io.costs.shared import (
    CostFunction,
    Sparse,
    check_size,
    dense_tables,
    model_of_costs,
    number_variables,
    too_many_states,
)
from besag.io.formats import Source
from besag.io.shared.budget import EntryBudget
from besag.io.shared.files import NumberText, is_number, line_of
from besag.io.shared.tables import MAX_ARITY
from besag.model.model import Model
from besag.model.variable import RangeNames, Variables

_COMMENT = re.compile(rb"(?<![^\r\n])[ \t]*#[^\r\n]*")
_HEAD = re.compile(rb"\s*[^\s{}<>\[\]]+(?:[ \t]+\d+){4}[ \t]*[\r\n]")
_WORD = re.compile(rb"\S+")
_KEYWORD = re.compile(rb"(?<!\S)(?:" + b"|".join(key.replace(b" ", rb"\s+") for key in CONSTRAINTS) + rb")(?!\S)")

CONSTRAINT_ENTRIES = 1 << 24  # 128 MiB of costs


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a WCSP: a line with a name and four whole numbers."""
    return _HEAD.match(_COMMENT.sub(b"", head)) is not None


def read(source: Source) -> Model:
    """A Model from the content of a WCSP file."""
    data = _COMMENT.sub(b"", source.data) if b"#" in source.data else source.data
    name = _WORD.search(data)
    if name is None:
        line = line_of(data, len(data))
        raise ParseError("expected the name of the problem, got nothing", path=source.path, line=line)
    body, keywords = _without_keywords(data, name.end())
    reader = _Reader(_numbers(body, source.path, name.end()), EntryBudget(len(data)), keywords)
    variables, functions = reader.variables(), reader.functions()
    bound = next(islice(_WORD.finditer(data, name.end()), 3, None)).group().decode()
    metadata = {"name": name.group().decode("utf-8", "replace"), "wcsp": {"upper_bound": bound}}
    return model_of_costs(variables, functions, metadata, reader.bound)


def _without_keywords(data: bytes, start: int) -> tuple[bytes, dict[int, bytes]]:
    """The text with "nan" in place of each keyword, and the keywords by their place among the numbers."""
    keywords, parts, place, end = {}, [data[:start]], 0, start
    for found in _KEYWORD.finditer(data, start):
        place += len(data[end : found.start()].split())
        keywords[place] = b" ".join(found.group().split())
        parts += [data[end : found.start()], b"nan", b"\n" * found.group().count(b"\n")]
        place, end = place + 1, found.end()
    return b"".join([*parts, data[end:]]) if keywords else data, keywords


def _numbers(data: bytes, path: str, start: int) -> NumberText:
    try:
        return NumberText(data, path, start)
    except ParseError as error:
        raise _constraint(data, path, start) or error from None


def _constraint(data: bytes, path: str, start: int) -> ParseError | None:
    """The error of a constraint given by an unknown keyword, or None if the first wrong word is no keyword."""
    before = b""
    for word in _WORD.finditer(data, start):
        if not is_number(word.group()):
            break
        before = word.group()
    else:
        return None
    if before != b"-1":
        return None
    keyword = word.group()[:40].decode("ascii", "replace")
    return ParseError(
        f"expected a table or a constraint that fits into one ({_known()}), got the global constraint {keyword!r}; "
        "have toulbar2 write it as tables, if it can",
        path=path,
        line=line_of(data, word.start()),
    )


def _known() -> str:
    return ", ".join(sorted({key.split()[0].decode() for key in CONSTRAINTS}))


class _Stated(NamedTuple):
    """A constraint of the file: its keyword, the cardinalities, and its numbers."""

    keyword: bytes
    shape: tuple[int, ...]
    numbers: tuple[float, ...]


class _Reader:
    """The state of reading one file: the place in it, the variables, and the tables.

    keywords: of the constraints, by place. shared: the numbers of the tables that other functions may use.
    constraints: where each was first found; equal constraints share a table, as shared functions do.
    """

    def __init__(self, numbers: NumberText, room: EntryBudget, keywords: dict[int, bytes]) -> None:
        self.numbers, self.room, self.keywords = numbers, room, keywords
        self.constraints: dict[_Stated, int] = {}
        self.constraint_entries = 0
        self.n_variables = numbers.integer(0, 1, len(numbers), "the number of variables")
        self.largest = numbers.integer(1, 1, 2**31 - 1, "the largest cardinality")
        self.n_functions = numbers.integer(2, 0, len(numbers), "the number of cost functions")
        if len(numbers) < 4 or np.isnan(numbers.values[3]):
            raise numbers.fail(3, "expected the upper bound of costs")
        self.bound = numbers.values.item(3)
        self.at = 4
        self.indices = range(self.n_variables)
        self.cardinalities: list[int] = []
        self.sparse: list[Sparse] = []
        self.shared: list[int] = []

    def variables(self) -> Variables:
        """The variables, by their cardinalities."""
        end = self.at + self.n_variables
        given = np.abs(self.numbers.values[self.at : end])
        wrong = ~((given >= 1) & (given <= self.largest) & (given == np.floor(given)))
        if wrong.any() or len(given) < self.n_variables:
            first = int(np.argmax(wrong)) if wrong.any() else len(given)
            self.numbers.integer(self.at + first, 1, self.largest, f"the cardinality of variable {first}")
            raise self.numbers.fail(self.at + first, f"expected the cardinality of variable {first}")
        cardinalities = given.astype(np.int64)
        absurd = too_many_states(cardinalities, len(self.numbers))
        if absurd is not None:
            raise self.numbers.fail(
                self.at + absurd,
                f"variable {absurd} has {cardinalities[absurd]} states, but the file has {len(self.numbers)} numbers",
            )
        self.cardinalities, self.at = cardinalities.tolist(), end
        return number_variables(RangeNames(self.n_variables), cardinalities)

    def functions(self) -> list[CostFunction]:
        """All cost functions, to the end of the file."""
        found = [self._function(number) for number in range(self.n_functions)]
        if self.at < len(self.numbers):
            raise self.numbers.fail(self.at, f"expected the end of the file after {self.n_functions} cost functions")
        tables = self._tables()
        stated = {constraint: self._stated(constraint, place) for constraint, place in self.constraints.items()}
        return [
            CostFunction(scope, stated[table] if isinstance(table, _Stated) else tables[table])
            for scope, table in found
        ]

    def _stated(self, constraint: _Stated, place: int) -> Array:
        """The table of a constraint, as energies."""
        with np.errstate(over="ignore"):
            costs = constraint_table(*constraint, np.inf)
        if not (costs > -np.inf).all():
            raise self.numbers.fail(place, f"{constraint.keyword.decode()}: expected costs, got {constraint.numbers}")
        return costs

    def _function(self, number: int) -> tuple[tuple[int, ...], int | _Stated]:
        """The scope of the next cost function, and which table it has."""
        start, most = self.at, min(self.n_variables, MAX_ARITY)
        head = self.numbers.values[start : start + most + 3].tolist()
        arity = int(abs(head[0])) if head and abs(head[0]) <= most and head[0].is_integer() else most + 1
        if len(head) < arity + 3 or not all(v in self.indices for v in head[1 : 1 + arity]):
            raise self._bad_head(start, most, number)
        default, n_tuples = head[1 + arity : 3 + arity]
        scope = tuple(map(int, head[1 : 1 + arity]))
        if len(set(scope)) != arity:
            raise self.numbers.fail(start, f"cost function {number} names a variable twice")
        shape = tuple([self.cardinalities[v] for v in scope])
        if start + 2 + arity in self.keywords and default == -1 and head[0] > 0:
            return scope, self._constraint(start + 2 + arity, shape, number)
        if not (-len(self.shared) <= n_tuples <= len(self.numbers) and n_tuples.is_integer() and default > -np.inf):
            raise self._bad_head(start, most, number)
        self.at = start + 3 + arity
        if n_tuples < 0:
            return scope, self._reused(int(-n_tuples), shape, number)
        if head[0] < 0:
            self.shared.append(len(self.sparse))
        return scope, self._table(Sparse(shape, shape, self.at, int(n_tuples), default, number))

    def _constraint(self, place: int, shape: tuple[int, ...], number: int) -> _Stated:
        """The constraint whose keyword stands at a place."""
        kind, label = CONSTRAINTS[self.keywords[place]], f"cost function {number}, {self.keywords[place].decode()}"
        if kind.n_variables not in (None, len(shape)):
            raise self.numbers.fail(place, f"{label}: expected {kind.n_variables} variables, got {len(shape)}")
        self.at = place + 1 + kind.n_numbers
        given = self.numbers.values[place + 1 : self.at]
        if len(given) < kind.n_numbers or not np.isfinite(given).all():
            raise self.numbers.fail(place, f"{label}: expected {kind.n_numbers} numbers after it")
        constraint = _Stated(self.keywords[place], shape, tuple(given.tolist()))
        if constraint not in self.constraints:
            self.constraint_entries += prod(shape)
            self.constraints[constraint] = place
        if self.constraint_entries > CONSTRAINT_ENTRIES:
            message = f"{label}: the tables of constraints would have {self.constraint_entries} entries, "
            raise self.numbers.fail(place, f"{message}more than the {CONSTRAINT_ENTRIES} that besag makes")
        return constraint

    def _table(self, table: Sparse) -> int:
        """Pass over the tuples of a table, which is made when the whole file is known to be valid."""
        check_size(self.numbers, self.room, table, "cost function", "tuples")
        self.at = table.end
        self.sparse.append(table)
        return len(self.sparse) - 1

    def _reused(self, which: int, shape: tuple[int, ...], number: int) -> int:
        table = self.shared[which - 1]
        if self.sparse[table].shape != shape:
            message = f"cost function {number} has cardinalities {shape}, but the shared function {which} has "
            raise self.numbers.fail(self.at - 1, f"{message}{self.sparse[table].shape}")
        return table

    def _tables(self) -> list[Array]:
        """All tables, as energies."""
        found: list[Array] = [np.zeros(0)] * len(self.sparse)
        for members, tables in dense_tables(self.numbers, self.sparse, "a state in a tuple of cost function"):
            if not (tables > -np.inf).all():
                raise self._no_cost(members)
            shape = self.sparse[members[0]].shape
            for number, table in zip(members, tables.reshape(-1, *shape), strict=True):
                found[number] = np.asarray(table)
        return found

    # Errors ----------------------------------------------------------------------------------------------------------

    def _bad_head(self, start: int, most: int, number: int) -> ParseError:
        where, integer = f"cost function {number}", self.numbers.integer
        arity = abs(integer(start, -most, most, f"the number of variables of {where}"))
        for place in range(start + 1, start + 1 + arity):
            integer(place, 0, self.n_variables - 1, f"a variable of {where}")
        integer(start + 2 + arity, -len(self.shared), len(self.numbers), f"the number of tuples of {where}")
        return self._bad_cost(start + 1 + arity, number)

    def _no_cost(self, members: list[int]) -> ParseError:
        """The error of the first of some tables that has a tuple without a cost."""
        for table in (self.sparse[member] for member in members):
            width = len(table.shape) + 1
            costs = self.numbers.values[table.start + width - 1 : table.end : width]
            if not (costs > -np.inf).all():
                return self._bad_cost(table.start + width * (int(np.argmin(costs > -np.inf)) + 1) - 1, table.owner)
        raise AssertionError("all costs are numbers")

    def _bad_cost(self, place: int, number: int) -> ParseError:
        message = f"cost function {number}: expected a cost, got {self.numbers.values[place]:.12g}"
        return self.numbers.fail(place, message)
