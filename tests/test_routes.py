"""Every constant that chooses a route is known, and can be forced."""

import ast
from collections.abc import Iterator

import numpy as np
import pytest

from besag.infer.junction import run as junction
from besag.infer.junction.kernels import clique_tree as join_sketch
from besag.infer.junction.kernels import products as gathered
from tests.routes import KERNELS, ROUTES, force, imported, places_of, trees
from tests.settled import SETTLED

LISTED = (
    set(ROUTES) | set(KERNELS) | {f"{module}.{name}" for module, names in SETTLED.items() for name in names.split()}
)


def constants() -> set[str]:
    """The numbers, and tuples and arrays of numbers, that modules of the package have in capital letters."""
    return {f"{module.removeprefix('besag.')}.{name}" for module, tree in trees().items() for name in numbers_in(tree)}


def numbers_in(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            yield from (name.id for name in names if name.id.strip("_").isupper())


def is_number(node: ast.expr) -> bool:
    try:
        value = eval(ast.unparse(node), {"np": np, "range": range})
    except Exception:
        return False
    return isinstance(value, int | float | np.ndarray) or (
        isinstance(value, tuple) and all(isinstance(part, int | float) for part in value)
    )


def test_every_constant_is_listed_once() -> None:
    """A new one is a route, to be forced in `tests/routes.py`, or settled, in `tests/settled.py`."""
    assert constants() - LISTED == set()
    assert LISTED - constants() == set()
    assert not set(ROUTES) & set(KERNELS)


def test_what_kernels_read_is_not_forced_while_they_are_compiled() -> None:
    read = {place for module, tree in trees().items() for place in read_in_kernels(module, tree)}
    assert set(ROUTES) & read == set()


def read_in_kernels(module: str, tree: ast.Module) -> Iterator[str]:
    """What functions read that are compiled: those marked as inlined, and those that a factory makes."""
    homes = {name: f"{home}.{name}".removeprefix("besag.") for home, name in imported()[module]}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            marks = {getattr(mark, "id", "") for mark in function.decorator_list}
            made = [node for node in function.body if isinstance(node, ast.FunctionDef)]
            bodies = [function] if marks & {"inlined", "gathering"} else made if "make_" in function.name else []
            names = {node.id for body in bodies for node in ast.walk(body) if isinstance(node, ast.Name)}
            yield from (homes.get(name, f"{module}.{name}".removeprefix("besag.")) for name in names)


def test_no_constant_is_kept_as_a_default() -> None:
    """A default holds the value that the constant had when the function was made."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                defaults = [*node.args.defaults, *node.args.kw_defaults]
                held = {f"{module}.{d.id}".removeprefix("besag.") for d in defaults if isinstance(d, ast.Name)}
                assert not held & (set(ROUTES) | set(KERNELS)), f"{module}.{node.name}"


def test_a_route_is_forced_wherever_it_was_imported_to() -> None:
    before = gathered.WORTHWHILE
    with force({"infer.junction.kernels.products.WORTHWHILE": 0.0}):
        assert gathered.WORTHWHILE == join_sketch.WORTHWHILE == 0.0
    assert gathered.WORTHWHILE == join_sketch.WORTHWHILE == before


def test_routes_are_put_back_after_an_error() -> None:
    before = junction.SUPPORT_ABOVE
    with pytest.raises(ZeroDivisionError), force({"infer.junction.run.SUPPORT_ABOVE": 0.0}):
        raise ZeroDivisionError
    assert before == junction.SUPPORT_ABOVE


@pytest.mark.parametrize("route", [*ROUTES, *KERNELS])
def test_every_route_has_a_place(route: str) -> None:
    assert all(hasattr(module, name) for module, name in places_of(route))
