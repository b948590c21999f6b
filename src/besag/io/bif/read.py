"""BIF, the Bayesian interchange format.

    file         = block *
    block        = "network" name "{" statement * "}"
                 | "variable" name "{" statement * "}"
                 | "probability" "(" child [ "|" parent , ... ] ")" "{" statement * "}"
    statement    = "type" "discrete" [ "[" K "]" ] "{" state , ... "}" ";"
                 | "table" number , ... ";"              the CPT: the child changes slowest, the last parent fastest
                 | "(" state , ... ")" number , ... ";"  one row: states of the parents, then the child's distribution
                 | "default" number , ... ";"            every row that has none of its own
                 | "property" anything ";"               kept as metadata

Names, states and numbers are separated by commas or white space, and any text may be in double quotes; without quotes a
name may contain any character that is no separator there: `<5`, `a-b`, `x.1`. JavaBayes writes the parents without "|".
Comments are // to the end of the line and /* ... */. Variables and states keep the order of the file; factor i is the
CPT of variable i. Rows that sum to one within 1e-3 are normalised.

Metadata, of the model: name, comment, properties; of a variable: comment, position, properties, and "bif" with the
comment and the properties of its probability block.

Reading is done in bulk: one regular expression cuts the file into blocks, a block that has rows only is split in one
step, and the numbers of all statements are parsed together. If something is wrong, a second and slower pass finds the
place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from besag.errors import ParseError
from besag.io.bif.tables import LabelOrders, NumberOrder, ProbabilityBlock, arrange_tables, space_numbers
from besag.io.bif.text import (
    BLOCK,
    DISCRETE,
    FUNCTION,
    KEYWORD,
    NAME,
    NAMELESS,
    ROWS,
    START,
    STATEMENT,
    labels_of,
    metadata_of,
    show_piece,
    unquote,
    without_comments,
)
from besag.io.bif.write import write
from besag.io.formats import Source
from besag.io.shared.budget import EntryBudget
from besag.io.shared.files import is_number, line_of, text_of
from besag.io.shared.tables import MAX_ARITY, TableError, energies_of, model_of, normalise_rows
from besag.model.dag import CycleError, topological
from besag.model.model import Model
from besag.model.variable import NameList, Variables

__all__ = ["matches", "read", "write"]

TYPE_FORM = "type discrete [K] { state, ... };"


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a BIF model."""
    return START.match(without_comments(head.decode("latin-1"))[0]) is not None


def read(source: Source) -> Model:
    """A Model from the content of a BIF file."""
    text, comments = without_comments(text_of(source.data, source.path))
    return _Reader(text.rstrip(), comments, source.path).model()


Block = tuple[int, str, str]  # number, head, body


class _Reader:
    """The state of reading one file: variables by name, their states, and the remaining budget for tables."""

    def __init__(self, text: str, comments: list[tuple[int, str]], path: str) -> None:
        self.text, self.comments, self.path = text, comments, path
        self.index: dict[str, int] = {}
        self.states: list[tuple[str, ...]] = []
        self.codes: dict[int, dict[str, int]] = {}  # by the id of the states: hashing them takes time
        self.metadata: dict[int, dict[str, Any]] = {}
        self.orders = LabelOrders()
        self.room = EntryBudget(len(text))

    def model(self) -> Model:
        """The whole file."""
        blocks: dict[str, list[Block]] = {"network": [], "variable": [], "probability": []}
        for number, (kind, head, body, rest) in enumerate(BLOCK.findall(self.text)):
            if rest:
                raise self._no_block(rest)
            blocks[kind].append((number, head, body))
        of_model = self._network(blocks["network"])
        self._variables(blocks["variable"])
        tables = self._tables(blocks["probability"], blocks["variable"])
        if self.comments:
            self._keep_comments(of_model, blocks["variable"], tables)
        variables = Variables.from_spaces(NameList(self.index), self.states, self.metadata)
        try:
            topological(variables, [table.scope[:-1] for table in tables])
        except CycleError as error:
            raise self._fail(min(tables[v].block for v in error.cycle), str(error)) from None
        found = arrange_tables(tables)
        if found is None:
            raise self._bad_numbers(tables)
        pools, weights = found
        try:
            weights = normalise_rows(variables, pools, weights)
        except TableError as error:
            raise self._fail(tables[error.position].block, str(error)) from None
        return model_of(variables, pools, *energies_of(weights), conditional=True, metadata=of_model)

    # Metadata --------------------------------------------------------------------------------------------------------

    def _network(self, blocks: list[Block]) -> dict[str, Any]:
        """The metadata of the model; several blocks count as one."""
        found: dict[str, Any] = {}
        properties: list[str] = []
        for block, head, body in blocks:
            name = unquote(head.strip())
            if name and head.strip() != NAMELESS:
                found.setdefault("name", name)
            for number, (_, _, keyword, content, rest) in enumerate(STATEMENT.findall(body.rstrip())):
                if keyword != "property":
                    raise self._no_statement(block, number, rest, "property")
                properties.append(unquote(content.strip()))
        return found | ({"properties": tuple(properties)} if properties else {})

    def _keep_comments(self, of_model: dict[str, Any], variables: list[Block], tables: list[ProbabilityBlock]) -> None:
        """Give each comment to the block that it is in or before; those before the first block to the model."""
        places = list(BLOCK.finditer(self.text))
        first, ends = places[0].start(1), [place.end() for place in places]
        variable_of = {block: v for v, (block, _, _) in enumerate(variables)}
        child_of = {table.block: table.scope[-1] for table in tables}
        found: dict[tuple[str, int], list[str]] = {}
        for offset, comment in self.comments:
            block = min(bisect_right(ends, offset), len(ends) - 1)
            owner = ("variable", variable_of[block]) if block in variable_of else ("child", child_of.get(block, -1))
            found.setdefault(("model", -1) if offset < first or owner[1] < 0 else owner, []).append(comment)
        for (kind, v), lines in found.items():
            text = "\n".join(lines)
            if kind == "model":
                of_model["comment"] = text
            elif kind == "variable":
                self.metadata.setdefault(v, {})["comment"] = text
            else:
                self.metadata.setdefault(v, {}).setdefault("bif", {})["comment"] = text

    # Variables -------------------------------------------------------------------------------------------------------

    def _variables(self, blocks: list[Block]) -> None:
        if not blocks:
            line = line_of(self.text, len(self.text))
            raise ParseError("expected at least one variable block, but the file ends", path=self.path, line=line)
        known: dict[str, tuple[str, ...]] = {}  # by the text of the block: many blocks are the same
        for block, head, body in blocks:
            name = unquote(head.strip())
            if not name or name in self.index:
                message = f"variable {name!r} is declared twice" if name else "expected the name of a variable"
                raise self._fail(block, message)
            v = self.index[name] = len(self.index)
            states = known.get(body)
            if states is None:
                states, properties = self._variable(block, name, body)
                if properties:
                    self.metadata[v] = metadata_of(properties)
                else:
                    known[body] = states
            self.states.append(states)

    def _variable(self, block: int, name: str, body: str) -> tuple[tuple[str, ...], list[str]]:
        """Its states and properties."""
        types, properties = [], []
        for number, (_, _, keyword, content, rest) in enumerate(STATEMENT.findall(body.rstrip())):
            if keyword == "type":
                types.append(content)
            elif keyword == "property":
                properties.append(unquote(content.strip()))
            else:
                raise self._no_statement(block, number, rest, "type or property")
        if len(types) != 1:
            raise self._fail(block, f"variable {name!r} must have one type, {TYPE_FORM}, got {len(types)}")
        return self._states(block, name, types[0]), properties

    def _states(self, block: int, name: str, text: str) -> tuple[str, ...]:
        match = DISCRETE.fullmatch(text)
        if match is None:
            raise self._fail(block, f"variable {name!r}: expected {TYPE_FORM}, got type {show_piece(text)}", 0, "type")
        count = None if match.group(1) is None else int(match.group(1))
        states = labels_of(match.group(2), count)
        if count is not None and len(states) != count:
            raise self._fail(block, f"variable {name!r} must have {count} states, got {len(states)}", 0, "type")
        if not states or not all(states) or len(set(states)) != len(states):
            message = f"states of {name!r} must be one or more distinct names, got {show_piece(match.group(2))}"
            raise self._fail(block, message, 0, "type")
        return tuple(states)

    # Probabilities ---------------------------------------------------------------------------------------------------

    def _tables(self, blocks: list[Block], variables: list[Block]) -> list[ProbabilityBlock]:
        """The table of each variable, in the variables' order."""
        found: list[ProbabilityBlock | None] = [None] * len(variables)
        for block, head, body in blocks:
            scope = self._scope(block, head)
            if found[scope[-1]] is not None:
                raise self._fail(block, f"variable {self._name(scope[-1])!r} has two probability blocks")
            table = found[scope[-1]] = self._table(block, scope, body)
            if table.properties:
                own = self.metadata.setdefault(scope[-1], {})
                own["bif"] = {"properties": tuple(unquote(text.strip()) for text in table.properties)}
        tables = [table for table in found if table is not None]
        if len(tables) < len(found):
            child = found.index(None)
            raise self._fail(variables[child][0], f"variable {self._name(child)!r} has no probability block")
        return tables

    def _scope(self, block: int, head: str) -> list[int]:
        """( child | parent, ... ) -> [parents, child]."""
        inside = head.strip()
        if not (inside.startswith("(") and inside.endswith(")")):
            raise self._fail(block, f"expected probability ( child | parents ), got {show_piece(head)}")
        inside = inside[1:-1]
        child, bar, parents = inside.partition("|")
        try:
            scope = [self.index[name.strip()] for name in parents.split(",")] if bar else []
            scope.append(self.index[child.strip()])
        except KeyError:
            scope = self._odd_scope(block, inside)
        if len(set(scope)) != len(scope):
            raise self._fail(block, f"({show_piece(inside)}) names a variable twice")
        if len(scope) > MAX_ARITY:
            raise self._fail(block, f"a variable may have {MAX_ARITY - 1} parents, got {len(scope) - 1}")
        return scope

    def _odd_scope(self, block: int, inside: str) -> list[int]:
        """The same if names are in quotes, separated by white space, or not known."""
        words = NAME.findall(inside)
        bars = [i for i, (_, _, bar) in enumerate(words) if bar]
        names = [quoted or plain for quoted, plain, bar in words if not bar]
        if not names or bars not in ([], [1]) or bars == [len(words) - 1]:
            raise self._fail(block, f"expected probability ( child | parents ), got ({show_piece(inside)})")
        for name in names:
            if name not in self.index:
                raise self._fail(block, f"no variable is named {name!r}; {len(self.index)} are declared")
        return [self.index[name] for name in [*names[1:], names[0]]]

    def _table(self, block: int, scope: list[int], body: str) -> ProbabilityBlock:
        spaces = tuple([self.states[v] for v in scope])
        shape = tuple([len(states) for states in spaces])
        n_rows = prod(shape[:-1])
        if not self.room.holds((n_rows, shape[-1])):
            message = f"the CPT of {self._name(scope[-1])!r} has {prod(shape)} entries, too many for so short a file"
            raise self._fail(block, message)
        table = ProbabilityBlock(block, scope, shape, n_rows)
        if ROWS.fullmatch(body):
            pieces = body.replace("(", ";").replace(")", ";").split(";")
            labels, table.texts = pieces[1::3], pieces[2::3]
            if len(labels) == n_rows and n_rows > 1:
                table.order = self.orders.order(spaces[:-1], labels)
        else:
            labels = self._statements(table, body)
        if table.order is NumberOrder.SCATTERED:
            table.where = self._rows(table, labels) if labels else []
            distinct = len(set(table.where))
            if distinct != n_rows and not table.has_default:
                raise self._row_missing(table)
            if distinct != len(table.where):
                raise self._row_twice(table)
        return table

    def _statements(self, table: ProbabilityBlock, body: str) -> list[str]:
        """The labels of all rows; their numbers and the other statements go into the table."""
        rows, properties = [], []
        whole: dict[str, str] = {}
        for number, (label, numbers, keyword, content, rest) in enumerate(STATEMENT.findall(body.rstrip())):
            if keyword == "(" and ")" in content:
                rows.append(content.rpartition(")")[::2])
            elif keyword == "property":
                properties.append(content)
            elif keyword in ("table", "default") and not whole:
                whole[keyword] = content
            elif keyword in ("table", "default"):
                raise self._fail(table.block, "expected one table, or rows and at most one default", number)
            elif keyword or rest:
                raise self._no_statement(table.block, number, rest, "table, default, property or a row in parentheses")
            else:
                rows.append((label, numbers))
        if rows and "table" in whole:
            raise self._fail(table.block, "expected a table or rows, got both", 0, "table")
        table.texts = [*(numbers for _, numbers in rows), *whole.values()]
        table.has_default, table.properties = "default" in whole, properties
        if "table" in whole:
            table.order = NumberOrder.TABLE
        return [label for label, _ in rows]

    def _rows(self, table: ProbabilityBlock, labels: Sequence[str]) -> list[int]:
        """The row of the CPT that each statement sets: in bulk, unless a label is unusual."""
        step = len(table.scope)
        flat = ",;,".join(labels).split(",")  # ";" keeps count of the labels of a row
        if len(flat) == len(labels) * step - 1 and flat[step - 1 :: step].count(";") == len(labels) - 1:
            try:
                codes = self._codes(table.scope[0])
                where = [codes[label] for label in flat[::step]] if flat else [0]
                for i in range(1, step - 1):
                    codes, k = self._codes(table.scope[i]), table.shape[i]
                    where = [row * k + codes[label] for row, label in zip(where, flat[i::step], strict=True)]
                return where
            except KeyError:
                pass
        return [self._odd_row(table, number, text) for number, text in enumerate(labels)]

    def _codes(self, variable: int) -> dict[str, int]:
        """Codes of states, as they stand between the commas of a row: bare, after a space, or in quotes."""
        states = self.states[variable]
        codes = self.codes.get(id(states))
        if codes is None:
            codes = self.codes[id(states)] = {f'"{state}"': code for code, state in enumerate(states)}
            for code, state in enumerate(states):
                codes[f' "{state}"'] = code
                if state == state.strip():
                    codes[state] = codes[f" {state}"] = code
        return codes

    def _odd_row(self, table: ProbabilityBlock, number: int, text: str) -> int:
        """The row that a statement sets, if its labels are in quotes, spaced oddly, or wrong."""
        parents = table.scope[:-1]
        labels = labels_of(text, len(parents))
        if len(labels) != len(parents):
            expected = ", ".join(map(self._name, parents))
            message = f"expected a row with a state of each of ({expected}), got ({show_piece(text)})"
            raise self._fail(table.block, message, number, "(")
        where = 0
        for parent, label in zip(parents, labels, strict=True):
            code = self._codes(parent).get(f'"{label}"')
            if code is None:
                states = show_piece(", ".join(self.states[parent]))
                message = f"{self._name(parent)!r} has no state {label!r}; it has {states}"
                raise self._fail(table.block, message, number, "(")
            where = where * len(self.states[parent]) + code
        return where

    # Errors ----------------------------------------------------------------------------------------------------------

    def _bad_numbers(self, tables: list[ProbabilityBlock]) -> ParseError:
        for table in tables:
            for i, text in enumerate(table.texts):
                row = table.row(i)
                whole = "table" if table.order is NumberOrder.TABLE else "default"
                what = f"the {whole}" if row is None else self._row_name(table, row)
                words = space_numbers(text).split()
                wrong = next(
                    (f"expected a number, got {show_piece(w.decode())}" for w in words if not is_number(w)), ""
                )
                if not wrong and len(words) != table.length:
                    wrong = f"expected {table.length} numbers, got {len(words)}"
                if wrong:
                    message = f"{what} of the CPT of {self._name(table.scope[-1])!r}: {wrong}"
                    place = (0, whole) if row is None else (i, "(")
                    return self._fail(table.block, message, *place)
        raise AssertionError("all numbers are right")

    def _name(self, variable: int) -> str:
        return next(islice(self.index, variable, None))

    def _row_name(self, table: ProbabilityBlock, row: int) -> str:
        """Row (A=no, B=yes) by its number."""
        codes = np.unravel_index(row, table.shape[:-1]) if len(table.shape) > 1 else ()
        pairs = [f"{self._name(v)}={self.states[v][int(code)]}" for v, code in zip(table.scope, codes, strict=False)]
        return f"row ({', '.join(pairs)})"

    def _row_missing(self, table: ProbabilityBlock) -> ParseError:
        given = set(table.where)
        absent = next(row for row in range(table.n_rows) if row not in given)
        noisy = any(FUNCTION.match(text) for text in table.properties)
        why = "property function is not supported" if noisy else "there is no default"
        return self._fail(table.block, f"{self._row_name(table, absent)} is missing, and {why}")

    def _row_twice(self, table: ProbabilityBlock) -> ParseError:
        seen: set[int] = set()
        for number, row in enumerate(table.where):
            if row in seen:
                return self._fail(table.block, f"{self._row_name(table, row)} is given twice", number, "(")
            seen.add(row)
        raise AssertionError("all rows differ")

    def _fail(self, block: int, message: str, number: int | None = None, keyword: str = "") -> ParseError:
        """The error of a block, or of a statement in it by number, counting all or those with a keyword ("(": rows)."""
        place = next(islice(BLOCK.finditer(self.text), block, None))
        offset = place.start(1)
        if number is not None:
            found = STATEMENT.finditer(self.text, *place.span(3))
            wanted = (m for m in found if not keyword or keyword == (m.group(3) or "("))
            statement = next(islice(wanted, number, None))
            offset = statement.end() - len(statement.group().lstrip())
        return ParseError(message, path=self.path, line=line_of(self.text, offset))

    def _no_block(self, rest: str) -> ParseError:
        keyword = KEYWORD.match(rest)
        expected = "a network, variable or probability block" if keyword is None else "a block { ... } with its end"
        line = line_of(self.text, len(self.text) - len(rest))
        return ParseError(f"expected {expected}, got {show_piece(rest)}", path=self.path, line=line)

    def _no_statement(self, block: int, number: int, rest: str, expected: str) -> ParseError:
        wanted = f"a statement that ends in ;, got {show_piece(rest)}" if rest else expected
        return self._fail(block, f"expected {wanted}", number)
