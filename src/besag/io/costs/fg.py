"""libDAI factor graphs.

    file    = m  factor * m
    factor  = n  label * n  cardinality * n  k  (index weight) * k

Words are separated by white space of any kind; "#" begins a comment. Labels are numbers that name variables; they may
have gaps. An index counts the configurations of the factor's variables with the FIRST one changing fastest, 0 to
prod(cardinalities) - 1; weights that are not given are 0, and if an index is given twice the last one counts.

The model is a Markov network. Its variables are named by their labels, in ascending order, and their states "0".."K-1".
Factors keep the order of the file; one without variables is a constant and is folded into another.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np

from besag.arrays import Array
from besag.errors import ParseError
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
from besag.io.shared.files import NumberText, is_number
from besag.io.shared.tables import MAX_ARITY
from besag.model.model import Model
from besag.model.variable import NameList, RangeNames, Variables

LARGEST_LABEL = 2**53

_COMMENT = re.compile(rb"#[^\r\n]*")


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a libDAI factor graph: whole numbers that form the head of a first factor."""
    words = _COMMENT.sub(b"", head).split()[:-1]
    if len(words) < 2 or not all(word.isdigit() for word in words[:2]) or not 1 <= int(words[1][:4]) <= MAX_ARITY:
        return False
    n = int(words[1])
    counts = words[2 + n : 3 + 2 * n]
    if len(counts) <= n or not all(word.isdigit() and len(word) < 10 for word in words[: 3 + 2 * n]):
        return False
    *cardinalities, given = map(int, counts)
    return 1 <= given <= prod(cardinalities) and all(map(is_number, words))


def read(source: Source) -> Model:
    """A Model from the content of a libDAI file."""
    data = _COMMENT.sub(b"", source.data) if b"#" in source.data else source.data
    return _Reader(NumberText(data, source.path), EntryBudget(len(data))).model()


class _Reader:
    """The state of reading one file: the place in it, the cardinality of each label, and the tables."""

    def __init__(self, numbers: NumberText, room: EntryBudget) -> None:
        self.numbers, self.room, self.at = numbers, room, 0
        self.cardinality: dict[int, int] = {}
        self.sparse: list[Sparse] = []

    def model(self) -> Model:
        """The whole file."""
        n_factors = self.numbers.integer(0, 0, len(self.numbers), "the number of factors")
        self.at = 1
        scopes = [self._factor(number) for number in range(n_factors)]
        if self.at < len(self.numbers):
            raise self.numbers.fail(self.at, f"expected the end of the file after {n_factors} factors")
        variables = self._variables()
        index = {label: v for v, label in enumerate(sorted(self.cardinality))}
        within = [tuple([index[label] for label in labels]) for labels in scopes]
        return model_of_costs(variables, list(map(CostFunction, within, self._tables())))

    def _variables(self) -> Variables:
        labels = sorted(self.cardinality)
        if not labels:
            raise self.numbers.fail(0, "expected at least one factor with a variable")
        cardinalities = np.array([self.cardinality[label] for label in labels], np.int64)
        absurd = too_many_states(cardinalities, len(self.numbers))
        if absurd is not None:
            message = f"variable {labels[absurd]} has {cardinalities[absurd]} states, but the file has "
            raise self.numbers.fail(0, f"{message}{len(self.numbers)} numbers")
        gapless = labels[-1] == len(labels) - 1
        return number_variables(RangeNames(len(labels)) if gapless else NameList(map(str, labels)), cardinalities)

    def _factor(self, number: int) -> list[int]:
        """The labels of the next factor; its table is noted, and made when the whole file is known to be valid."""
        start = self.at
        head = self.numbers.values[start : start + 2 * MAX_ARITY + 2].tolist()
        arity = int(head[0]) if head and 0 <= head[0] <= MAX_ARITY else len(head)
        end = 2 + 2 * arity
        if len(head) < end or not all(0 <= word <= LARGEST_LABEL and word.is_integer() for word in head[:end]):
            raise self._bad_head(start, number)
        labels, shape = list(map(int, head[1 : 1 + arity])), tuple(map(int, head[1 + arity : end - 1]))
        if len(set(labels)) != arity:
            raise self.numbers.fail(start, f"factor {number} names a variable twice")
        self._check_cardinalities(number, start + 1 + arity, labels, shape)
        table = Sparse(shape, (prod(shape),), start + end, int(head[end - 1]), 0.0, number)
        check_size(self.numbers, self.room, table, "factor", "entries")
        self.sparse.append(table)
        self.at = table.end
        return labels

    def _check_cardinalities(self, number: int, place: int, labels: list[int], shape: tuple[int, ...]) -> None:
        for i, (label, given) in enumerate(zip(labels, shape, strict=True)):
            known = self.cardinality.setdefault(label, given)
            if known != given:
                message = f"variable {label} has {known} states before and {given} in factor {number}"
                raise self.numbers.fail(place + i, f"{message}; expected the same")
            if not 1 <= given < 2**31:
                what = f"the cardinality of variable {label} in factor {number}"
                self.numbers.integer(place + i, 1, 2**31 - 1, what)

    def _tables(self) -> list[Array]:
        """All tables, as energies, with their axes in the order of the scopes."""
        found: list[Array] = [np.zeros(0)] * len(self.sparse)
        for members, weights in dense_tables(self.numbers, self.sparse, "an index into the table of factor"):
            if not ((weights >= 0) & (weights < np.inf)).all():
                raise self._bad_weight(members)
            logs = np.log(weights, where=weights > 0, out=np.full(weights.shape, -np.inf))
            shape = self.sparse[members[0]].shape
            turned = (0.0 - logs).reshape(-1, *shape[::-1]).transpose(0, *range(len(shape), 0, -1))
            for number, table in zip(members, np.ascontiguousarray(turned), strict=True):
                found[number] = np.asarray(table)
        return found

    # Errors ----------------------------------------------------------------------------------------------------------

    def _bad_head(self, start: int, number: int) -> ParseError:
        where, integer = f"factor {number}", self.numbers.integer
        arity = integer(start, 0, MAX_ARITY, f"the number of variables of {where}")
        for place in range(start + 1, start + 1 + arity):
            integer(place, 0, LARGEST_LABEL, f"a label of {where}")
        for place in range(start + 1 + arity, start + 1 + 2 * arity):
            integer(place, 1, 2**31 - 1, f"a cardinality of {where}")
        integer(start + 1 + 2 * arity, 0, len(self.numbers), f"the number of entries of {where}")
        raise AssertionError("the factor is sound")

    def _bad_weight(self, members: list[int]) -> ParseError:
        for table in (self.sparse[member] for member in members):
            weights = self.numbers.values[table.start + 1 : table.end : 2]
            good = (weights >= 0) & (weights < np.inf)
            if not good.all():
                place = table.start + 1 + 2 * int(np.argmin(good))
                message = f"factor {table.owner}: weights must be finite and not negative, got "
                return self.numbers.fail(place, f"{message}{self.numbers.values[place]:.12g}")
        raise AssertionError("all weights are sound")
