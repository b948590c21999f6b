"""The shape of the library, kept by tests: the order of imports, lengths, frozen data, a light import, public names.

The checks are functions of source text that return a list of complaints, so that the tests at the end can plant a
violation of each rule and see it found.
"""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
MODULES = {path: path.read_text(encoding="utf-8") for path in sorted((SOURCE / "besag").rglob("*.py"))}

# A module may import from its own layer and from those before it.
ORDER = (
    "errors",
    "recycled",
    "arrays",
    "views",
    "text",
    "foreign",
    "markup",
    "registry",
    "model",
    "factors",
    "graph",
    "infer",
    "query",
    "io",
    "data",
    "metrics",
    "learn",
    "estimators",
    "plot",
    "warmup",
    "cli",
)
RANK = {layer: rank for rank, layer in enumerate(ORDER)} | {"explorer": ORDER.index("cli")}
FOLLOWS = {"accelerate": "infer", "distributed": "learn"}  # reached through registries, imported by no other layer
# Rooms of infer, in the order in which they may import each other; its files outside of rooms come before all of them.
ROOMS = (
    "zeros",
    "orders",
    "trees",
    "chains",
    "bounds",
    "junction",
    "bp",
    "trw",
    "mean_field",
    "sampling",
    "join_graph",
    "map",
    "auto",
)
KERNEL_USERS = {"data", "model", "graph", "infer", "learn", "warmup"}
KERNEL_MODULES = {"arrays", "recycled", "views"}
RULES = "besag.model.structured.kernels"  # of structured factors: all that infer sees of model
KERNELS_ALONE = "kernels import numpy, numba, besag.arrays, recycled, views and other kernels only"
KERNEL_IMPORTS = {"numpy", "numba", "llvmlite"} | sys.stdlib_module_names

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 40  # at the 90th percentile, docstrings not counted
MAX_PUBLIC_NAMES = 50
MAX_IMPORT_SECONDS = 0.25
HEAVY = ("scipy", "numba", "llvmlite", "pandas", "matplotlib", "networkx")
ARRAY_TYPES = {"Array", "IntArray", "BoolArray", "AnyArray", "NDArray", "ndarray"}
ARRAY_CLASS_OPTIONS = {"frozen": True, "slots": True, "eq": False}


class Import(NamedTuple):
    """An import statement: its line, the dotted name, and whether it is inside a function or `if TYPE_CHECKING`."""

    line: int
    name: str
    deferred: bool


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def imports(source: str, module: str) -> Iterator[Import]:
    """All imports of a module, relative ones resolved; `from besag import x` counts as an import of besag.x."""

    def visit(node: ast.AST, deferred: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(child.lineno, alias.name, deferred) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = _base(child, module)
                names = [f"besag.{alias.name}" for alias in child.names] if base == "besag" else [base]
                yield from (Import(child.lineno, name, deferred) for name in names)
            else:
                inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _is_typing_only(child)
                yield from visit(child, deferred or inside)

    return visit(ast.parse(source), False)


def _base(node: ast.ImportFrom, module: str) -> str:
    """The absolute name that a `from` import starts at; `module` of a package ends in __init__."""
    if not node.level:
        return node.module or ""
    return ".".join([*module.split(".")[: -node.level], *([node.module] if node.module else [])])


def _is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def import_complaints(source: str, module: str) -> list[str]:
    """What a module imports against the order, a line each."""
    layer = _layer(module)
    if layer == "__init__":
        return []
    if layer != "kernels" and layer not in RANK | FOLLOWS:
        return [f"{module}: {layer!r} has no place in the import order; give it one in ORDER"]
    layer = "kernels" if _is_compiled(module) else layer
    found = ((item, _why_not(layer, item) or _why_not_here(module, item)) for item in imports(source, module))
    return [f"{module}:{item.line} imports {item.name}: {reason}" for item, reason in found if reason]


def _layer(module: str) -> str:
    second = module.split(".")[1] if "." in module else "__init__"
    return "cli" if second == "__main__" else second


def _why_not(layer: str, item: Import) -> str | None:
    """Why a module of `layer` may not have this import, or None."""
    if item.name.split(".")[0] != "besag":
        outside = layer == "kernels" and item.name.split(".")[0] not in KERNEL_IMPORTS
        return KERNELS_ALONE if outside else None
    target = _layer(item.name)
    if layer == "kernels":
        served = target in KERNEL_MODULES or _is_compiled(item.name)
        return None if served else KERNELS_ALONE
    if target == layer:
        return None
    if target == "kernels" or item.name.startswith(RULES):
        return None if layer in KERNEL_USERS else f"only {', '.join(sorted(KERNEL_USERS))} import kernels"
    if target in FOLLOWS:
        return f"{target} is reached through registries only"
    if target not in RANK:
        return "take the name from the module that defines it"
    if (layer, target) == ("infer", "model"):
        return "infer sees graph, never model"
    if RANK[target] <= RANK[FOLLOWS.get(layer, layer)] or (layer == "model" and item.deferred):
        return None
    return f"{layer} comes before {target}; only functions in besag.model may import upward"


def _is_compiled(module: str) -> bool:
    """Whether a module is in the compiled part of some room."""
    return "kernels" in module.split(".")[1:]


def _room(module: str) -> str | None:
    """The room of infer that a module is in, if it is in one."""
    parts = module.split(".")
    return parts[2] if len(parts) > 3 and parts[1] == "infer" else None


def _why_not_here(module: str, item: Import) -> str | None:
    """Why a module of infer may not have an import from another room, or None; inside of functions it may."""
    here, there = _room(module), _room(item.name)
    if there is None or there == here or item.deferred or not module.startswith("besag.infer."):
        return None
    if here is None:
        return f"what all rooms share imports no room, {there!r} is one"
    if there not in ROOMS or here not in ROOMS:
        return f"{there if here in ROOMS else here!r} has no place among the rooms; give it one in ROOMS"
    return f"{here} comes before {there}" if ROOMS.index(there) > ROOMS.index(here) else None


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Triples (name, first line, number of lines without the docstring) of all functions and methods."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documented = ast.get_docstring(node, clean=False) is not None
            docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


def length_complaints(sources: dict[str, str]) -> list[str]:
    """The longest functions, where more than a tenth of all functions is too long."""
    found = [
        (n, f"{name}:{line} {function}") for name, text in sources.items() for function, line, n in functions(text)
    ]
    long = sorted((item for item in found if item[0] > MAX_FUNCTION_LINES), reverse=True)
    return [f"{where}: {n} lines" for n, where in long] if len(long) * 10 > len(found) else []


def dataclass_complaints(source: str, module: str) -> list[str]:
    """Dataclasses with an array field that are not frozen, slotted and without ==."""
    complaints = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef) or (options := _dataclass_options(node)) is None:
            continue
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and _is_array(item.annotation)]
        missing = [f"{key}={value}" for key, value in ARRAY_CLASS_OPTIONS.items() if options.get(key) is not value]
        if fields and missing:
            where = f"{module}:{node.lineno} {node.name}.{ast.unparse(fields[0].target)}"
            complaints.append(f"{where} is an array, and the dataclass lacks {', '.join(missing)}")
    return complaints


def _dataclass_options(node: ast.ClassDef) -> dict[str, object] | None:
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(call) in ("dataclass", "dataclasses.dataclass"):
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            return {str(k.arg): k.value.value for k in keywords if isinstance(k.value, ast.Constant)}
    return None


def _is_array(annotation: ast.expr) -> bool:
    """Whether an annotation is an array, perhaps one of several alternatives; a list of arrays is none."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _is_array(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.BinOp):
        return _is_array(annotation.left) or _is_array(annotation.right)
    if isinstance(annotation, ast.Subscript):
        return _is_array(annotation.value)
    return ast.unparse(annotation).split(".")[-1] in ARRAY_TYPES


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def lines(complaints: list[str]) -> str:
    return "\n  ".join(["", *complaints])


# The library ---------------------------------------------------------------------------------------------------------


def test_imports_follow_the_order() -> None:
    complaints = [c for path, text in MODULES.items() for c in import_complaints(text, module_name(path))]
    assert not complaints, lines(complaints)


def test_files_are_short() -> None:
    files = [path for folder in ("src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    complaints = [f"{path.relative_to(ROOT)}: {n} lines" for path, n in sizes.items() if n > MAX_FILE_LINES]
    assert not complaints, f"no file above {MAX_FILE_LINES} lines:{lines(complaints)}"


def test_functions_are_short() -> None:
    complaints = length_complaints({str(path.relative_to(ROOT)): text for path, text in MODULES.items()})
    assert not complaints, f"nine in ten functions have at most {MAX_FUNCTION_LINES} lines:{lines(complaints)}"


def test_dataclasses_that_hold_arrays_are_frozen() -> None:
    modules = {path: text for path, text in MODULES.items() if _layer(module_name(path)) in ("model", "graph", "infer")}
    complaints = [c for path, text in modules.items() for c in dataclass_complaints(text, module_name(path))]
    assert not complaints, lines(complaints)


def test_import_loads_numpy_and_nothing_heavier() -> None:
    loaded = run_python(f"import sys, besag; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert not loaded, f"`import besag` loads {loaded}; import it inside the functions that use it"


def test_an_exact_answer_loads_no_approximate_engine() -> None:
    code = "import sys, besag; besag.data.bundled('asia').marginals(evidence={'dysp': 'yes'})\n"
    code += "print(*sorted({name.split('.')[2] for name in sys.modules if name.startswith('besag.infer.')}))"
    assert not {"bp", "trw", "mean_field", "sampling", "join_graph", "chains"} & set(run_python(code).split())


@pytest.mark.slow
def test_import_is_fast() -> None:
    code = "import time; start = time.perf_counter(); import besag; print(time.perf_counter() - start)"
    assert min(float(run_python(code)) for _ in range(5)) < MAX_IMPORT_SECONDS


def test_public_names() -> None:
    besag = importlib.import_module("besag")
    names = besag.__all__
    assert len(names) == len(set(names))
    assert len(names) <= MAX_PUBLIC_NAMES, f"{len(names)} public names, at most {MAX_PUBLIC_NAMES} are allowed"
    missing = [name for name in names if not hasattr(besag, name)]
    assert not missing, f"in besag.__all__ and not importable: {missing}"
    assert set(names) <= set(dir(besag)), f"not in dir(besag): {sorted(set(names) - set(dir(besag)))}"


# The checks find what they look for ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source", "match"),
    [
        ("besag.arrays", "from besag.model import Model", "arrays comes before model"),
        ("besag.graph.graph", "from besag import query", "graph comes before query"),
        ("besag.graph.graph", "import besag.infer.trees.engine", "graph comes before infer"),
        ("besag.graph.__init__", "from ..infer import tree", "graph comes before infer"),
        ("besag.graph.graph", "def f():\n    from besag.infer import tree", "graph comes before infer"),
        ("besag.model.model", "from besag.query import marginals", "model comes before query"),
        ("besag.model.model", "class A:\n    from besag.query import marginals", "model comes before query"),
        ("besag.infer.trees.engine", "from besag.model.template import Template", "never model"),
        ("besag.infer.trees.engine", "def f():\n    from besag.model import Model", "never model"),
        ("besag.infer.trees.engine", "from besag.model.structured.potts import Potts", "never model"),
        ("besag.query.verbs", "from besag.model.structured.kernels import rules", "import kernels"),
        ("besag.infer.trees.engine", "if TYPE_CHECKING:\n    from ...model import Model", "never model"),
        ("besag.kernels.semiring", "import scipy", "other kernels only"),
        ("besag.infer.trees.kernels.passes", "from besag.errors import ModelError", "other kernels only"),
        ("besag.kernels.semiring", "def f():\n    import pandas.api", "other kernels only"),
        (
            "besag.query.verbs",
            "from besag.kernels import tree",
            "only data, graph, infer, learn, model, warmup import kernels",
        ),
        ("besag.cli.main", "import besag.accelerate.bp", "registries only"),
        ("besag.accelerate.bp", "from besag.query import map", "accelerate comes before query"),
        ("besag.distributed.fit", "from besag.estimators import HMM", "distributed comes before estimators"),
        ("besag.infer.trees.engine", "from besag.infer.bp.engine import BP", "trees comes before bp"),
        ("besag.infer.unary", "from besag.infer.bp.engine import BP", "what all rooms share"),
        ("besag.infer.attic.engine", "from besag.infer.bp.engine import BP", "'attic' has no place among the rooms"),
        ("besag.infer.bp.kernels.links", "from besag.infer.bp.engine import BP", "other kernels only"),
        ("besag.query", "from besag import Model", "the module that defines it"),
        ("besag.query", "import besag", "the module that defines it"),
        ("besag.novelty", "x = 1", "'novelty' has no place"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str, match: str) -> None:
    (complaint,) = import_complaints(source, module)
    assert match in complaint
    assert complaint.startswith(module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("besag.__init__", "from besag.cli import main"),
        ("besag.__main__", "from besag.cli import main\nfrom .explorer import show"),
        ("besag.graph.graph", "from besag.model import Model\nfrom . import problem\nfrom ..errors import ModelError"),
        ("besag.model.model", "def f():\n    from besag.query import marginals"),
        ("besag.model.model", "if TYPE_CHECKING:\n    from besag.graph.graph import Graph"),
        (
            "besag.kernels.semiring",
            "import math, numba, numpy as np\nfrom besag.arrays import Array\nfrom .at import f",
        ),
        ("besag.infer.bp.engine", "from besag.infer.trees.engine import f\nfrom besag.infer.memory import refuse"),
        ("besag.infer.bp.kernels.links", "from besag.infer.trees.kernels.passes import f\nfrom besag.views import g"),
        ("besag.infer.unary", "def f():\n    from besag.infer.bp.engine import BP"),
        ("besag.infer.trees.engine", "from besag.model.structured.kernels.rules import KINDS"),
        ("besag.infer.bp.kernels.general", "from besag.model.structured.kernels.rules import level"),
        (
            "besag.infer.trees.engine",
            "from besag.infer.trees.sums import f\nfrom besag.graph import Graph\nimport scipy.sparse",
        ),
        ("besag.accelerate.bp", "import jax\nfrom besag.infer.result import Result"),
        ("besag.distributed.fit", "from besag.learn import fit"),
    ],
)
def test_an_allowed_import_passes(module: str, source: str) -> None:
    assert import_complaints(source, module) == []


def test_long_functions_are_found() -> None:
    long = "def long():\n" + "    x = 1\n" * MAX_FUNCTION_LINES
    short = "def short():\n    '''Doc\n" + "\n" * 60 + "    '''\n    x = 1\n"
    assert length_complaints({"a.py": long + short}) == [f"a.py:1 long: {MAX_FUNCTION_LINES + 1} lines"]
    assert length_complaints({"a.py": long + short * 20}) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("@dataclass\nclass A:\n    x: Array", "frozen=True, slots=True, eq=False"),
        ("@dataclass(frozen=True, slots=True)\nclass A:\n    x: IntArray | None = None", "eq=False"),
        ("@dataclasses.dataclass(slots=True, eq=False)\nclass A:\n    x: NDArray[np.float64]", "frozen=True"),
        ("@dataclass(frozen=False, slots=True, eq=False)\nclass A:\n    x: 'np.ndarray'", "frozen=True"),
        ("@dataclass(frozen=True, slots=True, eq=False)\nclass A:\n    x: Array", None),
        ("@dataclass\nclass A:\n    x: list[Array]\n    y: int", None),
        ("class A:\n    x: Array", None),
    ],
)
def test_a_dataclass_that_is_not_frozen_is_found(source: str, found: str | None) -> None:
    complaints = dataclass_complaints(source, "m")
    assert [c.split("lacks ")[1] for c in complaints] == ([found] if found else [])
