"""A Model from the document of the native format (`besag.io.native.form` has its grammar).

Nothing is allocated by a count that the file merely declares: names by range or grid must be as many as space_of has
entries, and tables as large as theta. Claims that the arrays do not guarantee are checked: positions must be an order
of the factors, conditional tables have rows that sum to one, and a Bayesian network have no cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields as dataclass_fields
from json import JSONDecodeError
from math import prod
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from besag.arrays import AnyArray, concatenate
from besag.errors import ModelError, ParseError
from besag.io.native.arrays_beside import ArrayReader
from besag.io.shared.files import line_of
from besag.io.shared.json_places import place_of, steps_of
from besag.io.shared.json_text import spell_out
from besag.io.shared.tables import MAX_ARITY
from besag.model.dag import CycleError, topological_order
from besag.model.model import FactorGroup, Model
from besag.model.pattern import Pattern
from besag.model.structured.kinds import STRUCTURED
from besag.model.template import Inputs, Template
from besag.model.variable import GridNames, NameList, Names, RangeNames, Variables

LARGEST_COUNT = 2**31  # inputs or table entries of a template
LARGEST_SCOPE = 2**20  # variables of a structured factor
ROW_TOLERANCE = 1e-6

T = TypeVar("T")


class NativeDocument(NamedTuple):
    """The content of a file: its text, and the objects and lists parsed from it."""

    text: str
    path: str
    root: Any

    def fail(self, message: str, *keys: str | int) -> ParseError:
        """The error of the item that keys and numbers lead to, with its line."""
        place = place_of(self.text, steps_of(self.root, keys))
        return ParseError(message, path=self.path, line=None if place is None else line_of(self.text, place))


class Fields:
    """An object of the document: its values by key, each asked for with the type that it must have.

    steps: the keys and numbers that lead to it.
    """

    def __init__(self, document: NativeDocument, given: Any, keys: str, where: str, *steps: str | int) -> None:
        self.document, self.where, self.steps = document, where, steps
        if not isinstance(given, dict):
            raise self.fail(f"expected an object with {keys}")
        unknown = [key for key in given if key not in keys.split()]
        if unknown:
            raise self.fail(f"unknown key {unknown[0][:60]!r}; expected {', '.join(keys.split())}", unknown[0])
        self.given = given

    def fail(self, message: str, *keys: str | int) -> ParseError:
        """The error of the object, or of the item in it that keys lead to."""
        return self.document.fail(f"{self.where}: {message}", *self.steps, *keys)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Turn a ModelError in the block into the ParseError of this object."""
        try:
            yield
        except ModelError as error:
            raise self.fail(str(error)) from None

    def inner(self, key: str, keys: str) -> Fields:
        """The object of a key."""
        where = f"{self.where}, {key}" if self.steps else key
        return Fields(self.document, self.given.get(key), keys, where, *self.steps, key)

    def inner_list(self, key: str, keys: str) -> Iterator[Fields]:
        """The objects in the list of a key."""
        for i, item in enumerate(self.get(key, list)):
            yield Fields(self.document, item, keys, f"{key} {i}", *self.steps, key, i)

    def has(self, key: str) -> bool:
        return self.given.get(key) is not None

    def get(self, key: str, kind: type[T]) -> T:
        value = self.given.get(key)
        if type(value) is not kind:
            got = "nothing" if value is None else type(value).__name__
            raise self.fail(f"expected {key!r} of type {kind.__name__}, got {got}", key)
        return value

    def count(self, key: str, low: int, high: int) -> int:
        value = self.get(key, int)
        if not low <= value <= high:
            raise self.fail(f"expected {key!r} from {low} to {high}, got {str(value)[:40]}", key)
        return value

    def array(self, key: str, dtype: type[np.generic], arrays: ArrayReader) -> AnyArray:
        try:
            return arrays.get(self.given.get(key), np.dtype(dtype))
        except JSONDecodeError:
            raise
        except (ValueError, OverflowError) as error:
            raise self.document.fail(f"{self.where}, {key}: {error}", *self.steps, key) from None

    def metadata(self) -> dict[str, Any]:
        given = self.get("metadata", dict) if self.has("metadata") else {}
        spell_out(given)
        return given

    def texts(self, key: str) -> list[str]:
        texts = self.get(key, list)
        if not all(isinstance(text, str) for text in texts):
            raise self.fail(f"expected {key!r} to be a list of texts", key)
        return texts

    def counts(self, key: str, low: int, high: int, most: int = MAX_ARITY) -> tuple[int, ...]:
        numbers = self.get(key, list)
        if not all(type(n) is int and low <= n <= high for n in numbers) or len(numbers) > most:
            raise self.fail(f"expected {key!r} to be at most {most} numbers from {low} to {high}", key)
        return tuple(numbers)


def model_of_document(document: Fields, arrays: ArrayReader) -> Model:
    """The Model of a document; ParseError or ModelError if it is not valid."""
    variables = _variables(document.inner("variables", "names spaces space_of metadata"), arrays)
    templates = [_template(fields, arrays) for fields in document.inner_list("templates", _TEMPLATE)]
    if len({template.name for template in templates}) < len(templates):
        raise document.fail("two templates have the same name", "templates")
    groups = tuple(_group(fields, templates, arrays) for fields in document.inner_list("groups", _GROUP))
    theta = document.array("theta", np.float64, arrays)
    support = document.array("support", np.bool_, arrays) if document.has("support") else None
    shape = document.counts("shape", 1, LARGEST_COUNT) if document.has("shape") else None
    if shape is not None and prod(shape) != len(variables):
        raise document.fail(f"the shape {shape} does not have {len(variables)} variables", "shape")
    _check_positions(document, groups)
    metadata = document.metadata()
    try:
        model = Model(variables, groups, theta, support, shape, metadata)
    except ModelError as error:
        key = next((key for key in ("theta", "support", "metadata") if str(error).startswith((key, f"the {key}"))), "")
        raise document.fail(str(error), key) if key else error from None
    _check_network(document, model)
    return model


_TEMPLATE = "name shape n_inputs basis support pattern"
_GROUP = "template scopes inputs conditional positions names"


# Variables ------------------------------------------------------------------------------------------------------------


def _variables(fields: Fields, arrays: ArrayReader) -> Variables:
    space_of = fields.array("space_of", np.int64, arrays)
    spaces = fields.get("spaces", list)
    if not all(isinstance(space, list) and all(isinstance(state, str) for state in space) for space in spaces):
        raise fields.fail("expected 'spaces' to be lists of the names of states", "spaces")
    if space_of.ndim != 1 or ((space_of < 0) | (space_of >= len(spaces))).any():
        raise fields.fail(f"space_of must be numbers of the {len(spaces)} spaces, on one axis", "space_of")
    names, metadata = _names(fields, len(space_of)), _metadata(fields, len(space_of))
    with fields.checked():
        return Variables(names, [tuple(space) for space in spaces], space_of, metadata)


def _names(fields: Fields, n: int) -> Names:
    """The names, which must be n: as many as space_of has entries, an array that the file does contain."""
    if isinstance(fields.given.get("names"), list):
        texts = fields.texts("names")
        sides: tuple[int, ...] = (len(texts),)
        with fields.checked():
            names: Names = NameList(texts)
    else:
        inner = fields.inner("names", "range grid")
        grid = inner.has("grid")
        sides = inner.counts("grid", 1, LARGEST_COUNT) if grid else (inner.count("range", 1, LARGEST_COUNT),)
        if len(sides) != 1 + grid:
            raise inner.fail(f"expected the height and the width of a grid, got {sides}")
        names = GridNames(*sides) if grid else RangeNames(n)
    if prod(sides) != n:
        raise fields.fail(f"expected {n} names, as many as space_of has entries, got {prod(sides)}", "names")
    return names


def _metadata(fields: Fields, n: int) -> dict[int, Mapping[str, Any]]:
    given = fields.metadata()
    for key, entries in given.items():
        inside = len(key) < 12 and key.isdecimal() and key.isascii() and int(key) < n
        if not inside or not isinstance(entries, dict):
            message = f"metadata: expected objects by the number of a variable, got {key[:40]!r}"
            raise fields.fail(message, "metadata", key)
    return {int(key): entries for key, entries in given.items()}


# Templates and groups -------------------------------------------------------------------------------------------------


def _template(fields: Fields, arrays: ArrayReader) -> Template:
    structured = fields.has("basis") and "tables" not in fields.get("basis", dict)
    shape = fields.counts("shape", 1, LARGEST_COUNT, most=LARGEST_SCOPE if structured else MAX_ARITY)
    n_inputs = fields.count("n_inputs", 1, LARGEST_COUNT)
    if prod(shape) > LARGEST_COUNT and not structured:
        raise fields.fail(f"a table of shape {shape} has too many entries", "shape")
    support = fields.array("support", np.bool_, arrays) if fields.has("support") else None
    with fields.checked():
        basis = _basis(fields, arrays) if fields.has("basis") else None
        pattern = _pattern(fields.inner("pattern", "rows columns"), arrays) if fields.has("pattern") else None
        return Template(fields.get("name", str), shape, n_inputs, basis, support, pattern)


def _pattern(fields: Fields, arrays: ArrayReader) -> Pattern:
    rows, columns = (fields.array(key, np.int64, arrays) for key in ("rows", "columns"))
    both = concatenate([rows, columns], np.int64)
    if ((both < 0) | (both > LARGEST_COUNT)).any():
        raise fields.fail("expected numbers of inputs and of basis elements")
    return Pattern(rows, columns)


def _basis(template: Fields, arrays: ArrayReader) -> Any:
    fields = template.inner("basis", " ".join([*STRUCTURED, "tables"]))
    for name, kind in STRUCTURED.items():
        if fields.has(name):
            types = get_type_hints(kind)
            expected = {field.name: types[field.name] for field in dataclass_fields(kind)}  # type: ignore[arg-type]
            if len(expected) == 1:
                return kind(*(_field(fields, name, of, arrays) for of in expected.values()))
            inside = fields.inner(name, " ".join(expected))
            return kind(**{key: _field(inside, key, of, arrays) for key, of in expected.items()})
    return fields.array("tables", np.float64, arrays)


def _field(fields: Fields, key: str, of: Any, arrays: ArrayReader) -> Any:
    """A field of a structured factor: a count, a number or an array."""
    if of is int:
        return fields.count(key, 1, LARGEST_COUNT)
    return fields.get(key, float) if of is float else fields.array(key, np.float64, arrays)


def _group(fields: Fields, templates: list[Template], arrays: ArrayReader) -> FactorGroup:
    if not templates:
        raise fields.fail("there is a group but no template")
    template = templates[fields.count("template", 0, len(templates) - 1)]
    with fields.checked():
        group = FactorGroup(
            template,
            fields.array("scopes", np.int64, arrays),
            _inputs(fields.inner("inputs", "rows dense csr"), arrays) if fields.has("inputs") else None,
            fields.get("conditional", bool) if fields.has("conditional") else False,
            fields.array("positions", np.int64, arrays) if fields.has("positions") else None,
            tuple(fields.texts("names")) if fields.has("names") else None,
        )
    if group.positions is not None and group.positions.shape != (len(group),):
        raise fields.fail(f"expected {len(group)} positions, one for each factor, got shape {group.positions.shape}")
    if group.names is not None and len(group.names) != len(group):
        raise fields.fail(f"expected {len(group)} names, one for each factor, got {len(group.names)}")
    return group


def _inputs(fields: Fields, arrays: ArrayReader) -> Inputs:
    if fields.has("rows"):
        return fields.array("rows", np.int64, arrays)
    if fields.has("dense"):
        return fields.array("dense", np.float64, arrays)
    return _csr(fields.inner("csr", "shape data indices indptr"), arrays)


def _csr(fields: Fields, arrays: ArrayReader) -> Inputs:
    from scipy.sparse import csr_array

    shape = fields.counts("shape", 0, LARGEST_COUNT)
    data = fields.array("data", np.float64, arrays)
    indices, indptr = (fields.array(key, np.int64, arrays) for key in ("indices", "indptr"))
    sound = len(shape) == 2 and data.ndim == indices.ndim == indptr.ndim == 1 and len(data) == len(indices)
    sound = sound and len(indptr) == shape[0] + 1 and int(indptr[0]) == 0 and int(indptr[-1]) == len(data)
    if not sound or (indptr[1:] < indptr[:-1]).any() or ((indices < 0) | (indices >= shape[1])).any():
        raise fields.fail("expected a sparse matrix by rows: shape, data, indices and indptr do not fit together")
    return csr_array((data, indices, indptr), shape=(shape[0], shape[1]))


# Claims that the arrays do not guarantee ------------------------------------------------------------------------------


def _check_positions(document: Fields, groups: tuple[FactorGroup, ...]) -> None:
    start, parts = 0, []
    for group in groups:
        parts.append(np.arange(start, start + len(group)) if group.positions is None else group.positions)
        start += len(group)
    if not np.array_equal(np.sort(concatenate(parts, np.int64)), np.arange(start)):
        raise document.fail(f"the positions of the groups must be the numbers 0 to {start - 1}, each once", "groups")


def _check_network(document: Fields, model: Model) -> None:
    """ParseError if a group is conditional but its rows do not sum to one, or CPTs do not form a network."""
    for number, group in enumerate(model.groups):
        if group.conditional and not _sums_to_one(model, group):
            message = f"groups {number} is conditional, but its rows do not sum to one"
            raise document.fail(message, "groups", number)
    if model.is_bayesian_network:
        _check_order(document, model)


def _check_order(document: Fields, model: Model) -> None:
    """ParseError if a variable has two CPTs, or is its own ancestor."""
    children = concatenate([group.scopes[:, -1] for group in model.groups], np.int64)
    group_of = np.repeat(np.arange(len(model.groups)), [len(group) for group in model.groups])
    first = np.unique(children, return_index=True)[1]
    if len(first) < len(children):
        second = int(np.setdiff1d(np.arange(len(children)), first)[0])
        name = model.variables.names[int(children[second])]
        raise document.fail(f"every factor is a CPT, but variable {name!r} has two", "groups", int(group_of[second]))
    try:
        topological_order(model)
    except CycleError as error:
        number = int(group_of[children == error.cycle[0]][0])
        raise document.fail(str(error), "groups", number) from None


def _sums_to_one(model: Model, group: FactorGroup) -> bool:
    """Whether the tables of a conditional group are CPTs; those of a basis are not checked."""
    template, where = group.template, model.layout[group.template.name]
    if template.basis is not None or template.pattern is not None:
        return True
    with np.errstate(over="ignore"):
        weights = np.exp(-model.theta[where])
    if model.support is not None:
        weights = weights * model.support[where]
    if template.support is not None:
        weights = weights.reshape(-1, *template.shape) * template.support
    sums = weights.reshape(-1, template.shape[-1]).sum(axis=1)
    return bool((np.abs(sums - 1) <= ROW_TOLERANCE).all())
