"""BIF, the Bayesian interchange format.

    file         = block *
    block        = "network" name "{" statement * "}"
                 | "variable" name "{" statement * "}"
                 | "probability" "(" child [ "|" parent , ... ] ")" "{" statement * "}"
    statement    = "type" "discrete" [ "[" K "]" ] "{" state , ... "}" ";"
                 | "table" number , ... ";"              the CPT: the child changes slowest, the last parent fastest
                 | "(" state , ... ")" number , ... ";"  one row: states of the parents, then the child's distribution
                 | "default" number , ... ";"            every row that has none of its own
                 | "property" anything ";"               passed over

Names, states and numbers are separated by commas or white space, and any text may stand in double quotes; without
quotes a name may hold whatever is no separator there: `<5`, `a-b`, `x.1`. JavaBayes writes the parents without "|".
Comments are // to the end of the line and /* ... */. Variables and states keep the order of the file; factor i is the
CPT of variable i. Rows that sum to one within 1e-3 are normalised.

Reading is done in bulk: one regular expression cuts the file into blocks and another a block into statements; then the
numbers of all statements are parsed together, with END, which no probability can be, after each statement to keep
count. Where something is wrong, a second and slower look finds the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

import numpy as np

from besag.arrays import Array, IntArray, offsets_of
from besag.errors import ModelError, ParseError
from besag.io.files import floats, is_number, line_of, text_of
from besag.io.formats import Source
from besag.io.parts import MAX_ARITY, Pool, TableError, energies_of, model_of, normalised
from besag.model.dag import topological
from besag.model.model import Model
from besag.model.variable import NameList, Variables

END = " -1 "
SPARE_ENTRIES = 1 << 22  # table entries that "default" may make ...
ENTRIES_PER_CHARACTER = 16  # ... beyond this many for each character of the file

# Possessive quantifiers: linear time on any input. The last alternative takes all from where there is no block or
# statement to the end.
_STRING = r'"[^"]*+"'
_TEXT = rf'(?:[^{{}}"]++|{_STRING})*+'
_BLOCK = re.compile(
    rf"\s*+(?:(network|variable|probability)\b({_TEXT})"
    rf'\{{((?:[^{{}}"]++|{_STRING}|\{{{_TEXT}\}})*+)\}}|(\S.*+))',
    re.DOTALL,
)
_STATEMENT = re.compile(  # labels and numbers of a plain row; or a keyword or "(" and what follows; or the rest
    rf"""\s*+(?:\(([^();"]*+)\)([^();"]*+);|(\(|[a-z]++)((?:[^;"]++|{_STRING})*+);|(\S.*+))""", re.DOTALL
)
_DISCRETE = re.compile(r"\s*+discrete\s*+(?:\[\s*+(\d{1,9})\s*+\]\s*+)?\{(.*)\}\s*+", re.DOTALL)
_LABEL = re.compile(r'"([^"]*+)"|([^\s,"]++)')
_NAME = re.compile(r'"([^"]*+)"|([^\s,"|]++)|(\|)')
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*(?:.*?\*/|.*+)", re.DOTALL)
_FUNCTION = re.compile(r'[\s"]*+function\b')
_KEYWORD = re.compile(r"\s*+(?:network|variable|probability)\b")
_START = re.compile(_KEYWORD.pattern + r"[^;{]*\{")
_TYPE_FORM = "type discrete [K] { state, ... };"


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a BIF model."""
    return _START.match(_without_comments(head.decode("latin-1"))) is not None


def read(source: Source) -> Model:
    """A Model from the content of a BIF file."""
    return _Reader(_without_comments(text_of(source.data, source.path)).rstrip(), source.path).model()


def _without_comments(text: str) -> str:
    """Comments become as many new lines as they have, so that lines keep their numbers."""
    if "//" not in text and "/*" not in text:
        return text
    return _COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else " " + "\n" * m.group().count("\n"), text)


@dataclass(slots=True)
class _Table:
    """A probability block: its number in the file, its scope (parents, child) and the shape of its CPT.

    n_rows, n_states: the shape of the CPT as rows. texts: the numbers of its rows, then those of `whole`, "table" or
    "default", where it has one. where: which row of the CPT each row sets. properties: their text.
    """

    block: int
    scope: list[int]
    shape: tuple[int, ...]
    n_rows: int
    texts: list[str]
    whole: str
    where: list[int]
    properties: list[str]

    @property
    def n_states(self) -> int:
        """K of the child."""
        return self.shape[-1]

    @property
    def length(self) -> int:
        """How many numbers each statement must have."""
        return self.n_rows * self.n_states if self.whole == "table" else self.n_states

    def spread(self, cpt: Array, default: Array) -> None:
        """Puts a table, whose numbers came in the order of the file, or a default into the CPT (n_rows, K)."""
        if self.whole == "table":
            cpt[:] = cpt.reshape(self.n_states, self.n_rows).T.copy()
        else:
            absent = np.ones(self.n_rows, np.bool_)
            absent[self.where] = False
            cpt[absent] = default


class _Reader:
    """The state of reading one file: variables by name, their states, and the room that is left for tables."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path = text, path
        self.index: dict[str, int] = {}
        self.spaces: dict[tuple[str, ...], int] = {}
        self.space_of: list[int] = []
        self.states: list[tuple[str, ...]] = []
        self.codes: list[dict[str, int]] = []
        self.room = SPARE_ENTRIES + ENTRIES_PER_CHARACTER * len(text)

    def model(self) -> Model:
        """The whole file."""
        blocks: dict[str, list[tuple[int, str, str]]] = {"network": [], "variable": [], "probability": []}
        for number, (kind, head, body, rest) in enumerate(_BLOCK.findall(self.text)):
            if rest:
                raise self._no_block(rest)
            blocks[kind].append((number, head, body))
        self._variables(blocks["variable"])
        tables = self._tables(blocks["probability"], blocks["variable"])
        variables = Variables(NameList(self.index), tuple(self.spaces), np.array(self.space_of))
        try:
            topological(variables, [table.scope[:-1] for table in tables])
        except ModelError as error:
            raise ParseError(str(error), path=self.path) from None
        pools, weights = self._weights(tables)
        try:
            weights = normalised(variables, pools, weights)
        except TableError as error:
            raise self._fail(tables[error.position].block, str(error)) from None
        return model_of(variables, pools, *energies_of(weights), conditional=True)

    # Variables -------------------------------------------------------------------------------------------------------

    def _variables(self, blocks: list[tuple[int, str, str]]) -> None:
        if not blocks:
            raise ParseError("expected at least one variable block", path=self.path)
        known: dict[str, tuple[str, ...]] = {}  # by the text of the block, which often is the same
        for block, head, body in blocks:
            name = _unquoted(head.strip())
            if not name or name in self.index:
                message = f"variable {name!r} is declared twice" if name else "expected the name of a variable"
                raise self._fail(block, message)
            if body not in known:
                known[body] = self._states(block, name, self._type(block, name, body))
            self.index[name] = len(self.index)
            self.states.append(known[body])
            self.space_of.append(self.spaces.setdefault(known[body], len(self.spaces)))
        codes = [_codes(space) for space in self.spaces]
        self.codes = [codes[space] for space in self.space_of]

    def _type(self, block: int, name: str, body: str) -> str:
        """What the block says after "type"."""
        found = []
        for number, (_, _, keyword, content, rest) in enumerate(_STATEMENT.findall(body.rstrip())):
            if keyword == "type":
                found.append(content)
            elif keyword != "property":
                raise self._no_statement(block, number, rest, "type or property")
        if len(found) != 1:
            raise self._fail(block, f"variable {name!r} must have one type, {_TYPE_FORM}, got {len(found)}")
        return str(found[0])

    def _states(self, block: int, name: str, text: str) -> tuple[str, ...]:
        match = _DISCRETE.fullmatch(text)
        if match is None:
            raise self._fail(block, f"variable {name!r}: expected {_TYPE_FORM}, got type {_shown(text)}", 0, "type")
        count = None if match.group(1) is None else int(match.group(1))
        states = _labels(match.group(2), count)
        if count is not None and len(states) != count:
            raise self._fail(block, f"variable {name!r} must have {count} states, got {len(states)}", 0, "type")
        if not states or not all(states) or len(set(states)) != len(states):
            message = f"states of {name!r} must be one or more distinct names, got {_shown(match.group(2))}"
            raise self._fail(block, message, 0, "type")
        return tuple(states)

    # Probabilities ---------------------------------------------------------------------------------------------------

    def _tables(self, blocks: list[tuple[int, str, str]], variables: list[tuple[int, str, str]]) -> list[_Table]:
        """The table of each variable, in the variables' order."""
        found: dict[int, _Table] = {}
        for block, head, body in blocks:
            scope = self._scope(block, head)
            if scope[-1] in found:
                raise self._fail(block, f"variable {self._name(scope[-1])!r} has two probability blocks")
            found[scope[-1]] = self._table(block, scope, body)
        for name, child in self.index.items():
            if child not in found:
                raise self._fail(variables[child][0], f"variable {name!r} has no probability block")
        return [found[child] for child in range(len(found))]

    def _scope(self, block: int, head: str) -> list[int]:
        """( child | parent, ... ) -> [parents, child]."""
        inside = head.strip()
        if not (inside.startswith("(") and inside.endswith(")")):
            raise self._fail(block, f"expected probability ( child | parents ), got {_shown(head)}")
        inside = inside[1:-1]
        child, bar, parents = inside.partition("|")
        try:
            scope = [self.index[name.strip()] for name in parents.split(",")] if bar else []
            scope.append(self.index[child.strip()])
        except KeyError:
            scope = self._odd_scope(block, inside)
        if len(set(scope)) != len(scope):
            raise self._fail(block, f"({_shown(inside)}) names a variable twice")
        if len(scope) > MAX_ARITY:
            raise self._fail(block, f"a variable may have {MAX_ARITY - 1} parents, got {len(scope) - 1}")
        return scope

    def _odd_scope(self, block: int, inside: str) -> list[int]:
        """The same where names are in quotes, separated by white space, or not known."""
        words = _NAME.findall(inside)
        bars = [i for i, (_, _, bar) in enumerate(words) if bar]
        names = [quoted or plain for quoted, plain, bar in words if not bar]
        if not names or bars not in ([], [1]) or bars == [len(words) - 1]:
            raise self._fail(block, f"expected probability ( child | parents ), got ({_shown(inside)})")
        for name in names:
            if name not in self.index:
                raise self._fail(block, f"no variable is named {name!r}; {len(self.index)} are declared")
        return [self.index[name] for name in [*names[1:], names[0]]]

    def _table(self, block: int, scope: list[int], body: str) -> _Table:
        shape = tuple([len(self.states[v]) for v in scope])
        n_rows = prod(shape[:-1])
        self.room -= n_rows * shape[-1]
        if self.room < 0:
            message = f"the CPT of {self._name(scope[-1])!r} has {prod(shape)} entries, too many to be meant"
            raise self._fail(block, message)
        table = _Table(block, scope, shape, n_rows, [], "", [], [])
        labels, numbers = self._statements(table, body)
        table.texts[:0] = numbers
        table.where = where = self._rows(table, labels) if labels else []
        distinct = len(set(where))
        if distinct != n_rows and not table.whole:
            raise self._row_missing(table)
        if distinct != len(where):
            raise self._row_twice(table)
        return table

    def _statements(self, table: _Table, body: str) -> tuple[Sequence[str], Sequence[str]]:
        """The labels and the numbers of all rows; other statements go into the table."""
        found = _STATEMENT.findall(body.rstrip())
        columns = tuple(zip(*found, strict=True))
        if found and not any(columns[2]) and not any(columns[4]):
            return columns[0], columns[1]
        rows = []
        for number, (label, numbers, keyword, content, rest) in enumerate(found):
            if keyword == "(" and ")" in content:
                rows.append(content.rpartition(")")[::2])
            elif keyword == "property":
                table.properties.append(content)
            elif keyword in ("table", "default") and not table.whole:
                table.texts.append(content)
                table.whole = keyword
            elif keyword in ("table", "default"):
                raise self._fail(table.block, "expected one table, or rows and at most one default", number)
            elif keyword or rest:
                raise self._no_statement(table.block, number, rest, "table, default, property or a row in parentheses")
            else:
                rows.append((label, numbers))
        if rows and table.whole == "table":
            raise self._fail(table.block, "expected a table or rows, got both", 0, "table")
        return [label for label, _ in rows], [numbers for _, numbers in rows]

    def _rows(self, table: _Table, labels: Sequence[str]) -> list[int]:
        """The row of the CPT that each statement sets: in bulk, unless a label needs a closer look."""
        step = len(table.scope)
        flat = ",;,".join(labels).split(",")  # ";" keeps count of the labels of a row
        if len(flat) == len(labels) * step - 1 and flat[step - 1 :: step].count(";") == len(labels) - 1:
            try:
                where = [self.codes[table.scope[0]][label] for label in flat[::step]] if flat else [0]
                for i in range(1, step - 1):
                    codes, k = self.codes[table.scope[i]], table.shape[i]
                    where = [row * k + codes[label] for row, label in zip(where, flat[i::step], strict=True)]
                return where
            except KeyError:
                pass
        return [self._odd_row(table, number, text) for number, text in enumerate(labels)]

    def _odd_row(self, table: _Table, number: int, text: str) -> int:
        """The row that a statement sets, where its labels are in quotes, spaced oddly, or wrong."""
        parents = table.scope[:-1]
        labels = _labels(text, len(parents))
        if len(labels) != len(parents):
            expected = ", ".join(map(self._name, parents))
            message = f"expected a row with a state of each of ({expected}), got ({_shown(text)})"
            raise self._fail(table.block, message, number, "(")
        where = 0
        for parent, label in zip(parents, labels, strict=True):
            code = self.codes[parent].get(f'"{label}"')
            if code is None:
                states = _shown(", ".join(self.states[parent]))
                message = f"{self._name(parent)!r} has no state {label!r}; it has {states}"
                raise self._fail(table.block, message, number, "(")
            where = where * len(self.states[parent]) + code
        return where

    # Numbers ---------------------------------------------------------------------------------------------------------

    def _weights(self, tables: list[_Table]) -> tuple[list[Pool], Array]:
        """The tables of each shape, and all CPTs in that order."""
        members: dict[tuple[int, ...], list[int]] = {}
        for child, table in enumerate(tables):
            members.setdefault(table.shape, []).append(child)
        pools, starts, at = [], [0] * len(tables), 0
        for shape, children in members.items():
            size = prod(shape)
            for child in children:
                starts[child] = at
                at += size
            pools.append(Pool(shape, np.array([tables[child].scope for child in children]), np.array(children)))
        return pools, self._placed(tables, starts, at)

    def _placed(self, tables: list[_Table], starts: list[int], end: int) -> Array:
        """All numbers at their places in theta's order: one scatter, with default rows put behind `end` at first."""
        places: list[int] = []
        whole: list[tuple[_Table, int, int]] = []
        scratch = end
        for table, start in zip(tables, starts, strict=True):
            k = table.n_states
            places += [start + row * k for row in table.where]
            if table.whole and table.n_rows == 1 and not table.where:
                places.append(start)
            elif table.whole:
                whole.append((table, start, scratch))
                places.append(start if table.whole == "table" else scratch)
                scratch += k
        lengths = np.repeat([table.length for table in tables], [len(table.texts) for table in tables])
        numbers = self._numbers(tables, offsets_of(lengths + 1)[1:])
        weights = np.empty(scratch)
        weights[np.repeat(np.array(places) - offsets_of(lengths)[:-1], lengths) + np.arange(len(numbers))] = numbers
        for table, start, default in whole:
            cpt = weights[start : start + table.n_rows * table.n_states].reshape(table.n_rows, table.n_states)
            table.spread(cpt, weights[default : default + table.n_states])
        return weights[:end]

    def _numbers(self, tables: list[_Table], ends: IntArray) -> Array:
        """The numbers of all statements; `ends`: where each ends, with an END after it."""
        text = END.join([text for table in tables for text in table.texts]) + END
        try:
            numbers = floats(_spaced(text))
        except ValueError:
            numbers = np.zeros(0)
        if len(numbers) != int(ends[-1]) or (numbers[ends - 1] != -1).any():
            raise self._bad_numbers(tables)
        return np.delete(numbers, ends - 1)

    def _bad_numbers(self, tables: list[_Table]) -> ParseError:
        for table in tables:
            for i, text in enumerate(table.texts):
                is_row = i < len(table.where)
                row = self._row_name(table, table.where[i]) if is_row else f"the {table.whole}"
                words = _spaced(text).split()
                wrong = next((f"expected a number, got {_shown(w.decode())}" for w in words if not is_number(w)), "")
                if not wrong and len(words) != table.length:
                    wrong = f"expected {table.length} numbers, got {len(words)}"
                if wrong:
                    message = f"{row} of the CPT of {self._name(table.scope[-1])!r}: {wrong}"
                    return self._fail(table.block, message, i if is_row else 0, "(" if is_row else table.whole)
        raise AssertionError("all numbers are right")

    # Errors ----------------------------------------------------------------------------------------------------------

    def _name(self, variable: int) -> str:
        return next(islice(self.index, variable, None))

    def _row_name(self, table: _Table, row: int) -> str:
        """Row (A=no, B=yes) by its number."""
        codes = np.unravel_index(row, table.shape[:-1]) if len(table.shape) > 1 else ()
        pairs = [f"{self._name(v)}={self.states[v][int(code)]}" for v, code in zip(table.scope, codes, strict=False)]
        return f"row ({', '.join(pairs)})"

    def _row_missing(self, table: _Table) -> ParseError:
        given = set(table.where)
        absent = next(row for row in range(table.n_rows) if row not in given)
        noisy = any(_FUNCTION.match(text) for text in table.properties)
        why = "property function is not supported" if noisy else "there is no default"
        return self._fail(table.block, f"{self._row_name(table, absent)} is missing, and {why}")

    def _row_twice(self, table: _Table) -> ParseError:
        seen: set[int] = set()
        for number, row in enumerate(table.where):
            if row in seen:
                return self._fail(table.block, f"{self._row_name(table, row)} is given twice", number, "(")
            seen.add(row)
        raise AssertionError("all rows differ")

    def _fail(self, block: int, message: str, number: int | None = None, keyword: str = "") -> ParseError:
        """The error of a block, or of a statement in it, by number: among those with a keyword, "(" a row, or all."""
        place = next(islice(_BLOCK.finditer(self.text), block, None))
        offset = place.start(1)
        if number is not None:
            found = _STATEMENT.finditer(self.text, *place.span(3))
            wanted = (m for m in found if not keyword or keyword == (m.group(3) or "("))
            statement = next(islice(wanted, number, None))
            offset = statement.end() - len(statement.group().lstrip())
        return ParseError(message, path=self.path, line=line_of(self.text, offset))

    def _no_block(self, rest: str) -> ParseError:
        keyword = _KEYWORD.match(rest)
        expected = "a network, variable or probability block" if keyword is None else "a block { ... } with its end"
        line = line_of(self.text, len(self.text) - len(rest))
        return ParseError(f"expected {expected}, got {_shown(rest)}", path=self.path, line=line)

    def _no_statement(self, block: int, number: int, rest: str, expected: str) -> ParseError:
        wanted = f"a statement that ends in ;, got {_shown(rest)}" if rest else expected
        return self._fail(block, f"expected {wanted}", number)


def _spaced(numbers: str) -> bytes:
    """Numbers with spaces for commas; what is not ASCII becomes "?", which is no number."""
    return numbers.replace(",", " ").encode("ascii", "replace")


def _unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


def _labels(text: str, count: int | None) -> list[str]:
    """Names separated by commas or, where that does not give `count` of them, by white space; or in quotes.

    >>> _labels("a b, <5", 2), _labels("a b <5", 3), _labels('"a, b" "c"', None)
    (['a b', '<5'], ['a', 'b', '<5'], ['a, b', 'c'])
    """
    if '"' in text:
        return [quoted or plain for quoted, plain in _LABEL.findall(text)]
    labels = [label.strip() for label in text.split(",")]
    by_comma = len(labels) > 1 if count is None else len(labels) == count
    return labels if by_comma else text.replace(",", " ").split()


def _codes(states: tuple[str, ...]) -> dict[str, int]:
    """Codes of states, as they stand between the commas of a row: bare, after a space, or in quotes."""
    codes = {f'"{state}"': code for code, state in enumerate(states)}
    for code, state in enumerate(states):
        if state == state.strip():
            codes[state] = codes[f" {state}"] = code
    return codes


def _shown(text: str) -> str:
    """A piece of the file for a message."""
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else f"{line[:57]}..."
