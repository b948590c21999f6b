"""The reference, written from docstrings: `write_reference(folder)` makes a page of Markdown for each group.

Every public name of `besag` stands in one group, or the build stops; a module brings its public names along, a class
its public methods. Text is taken as it stands, examples with prompts and indented formulas become code.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import besag

GROUPS = {
    "models": """Models: Model bayesian_network markov_network chain tree grid ising unroll potts truncated_linear
        truncated_quadratic factors Variable Template FactorGroup Pattern""",
    "inference": "Inference: Result compare kl infer Evidence Graph Problem compile_graph",
    "learning": "Learning: fit objective em StructuredData Dataset bootstrap_edges",
    "estimators": """Estimators: BayesianNetwork BayesianNetworkClassifier MarkovNetwork Mixture ChainCRF GridCRF
        GraphCRF MultiLabelCRF RBM HMM DynamicNetwork Discretizer""",
    "files": "Files and data: load save convert io data",
    "measures": "Measures, pictures, errors: metrics plot errors",
}
MADE_INSIDE = (besag.Result, besag.Graph, besag.Problem)  # by besag itself: nobody calls them


def write_reference(folder: Path) -> None:
    """Writes the pages and an index of them."""
    if left := missing():
        raise ValueError(f"docs/site/reference.py has no group for {', '.join(left)}")
    folder.mkdir(parents=True, exist_ok=True)
    for page, group in GROUPS.items():
        title, names = group.split(": ")
        text = f"# {title}\n\n" + "\n".join(line for name in names.split() for line in entries(f"besag.{name}", 2))
        write_where_new(folder / f"{page}.md", text + "\n")
    listed = "\n".join(GROUPS)
    index = f"# Reference\n\nEvery public name, by its docstring.\n\n```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
    write_where_new(folder / "index.md", index)


def missing() -> list[str]:
    """Public names that stand in no group."""
    return sorted(set(besag.__all__) - {name for group in GROUPS.values() for name in group.split(": ")[1].split()})


def write_where_new(path: Path, text: str) -> None:
    """A page that is as it was keeps its time, so that it is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def entries(name: str, level: int) -> Iterator[str]:
    """The lines for a dotted name and what is in it."""
    parent, _, last = name.rpartition(".")
    value = importlib.import_module(name) if last in besag._MODULES and parent == "besag" else resolved(name)
    yield f"{'#' * level} {name if level == 2 else last}\n"
    yield from described(value, last)
    if isinstance(value, ModuleType):
        for member in public_names(value):
            yield from entries(f"{name}.{member}", level + 1)
    elif inspect.isclass(value) and not issubclass(value, BaseException):
        for member, method in methods(value):
            yield f"**`{last}.{member}{signature(method)}`**\n"
            yield from as_markdown(inspect.getdoc(method) or "")


def resolved(name: str) -> Any:
    value: Any = besag
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def public_names(module: ModuleType) -> list[str]:
    """Its functions and classes."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    known = {id(getattr(besag, name)) for name in besag.__all__}
    values = {name: getattr(module, name) for name in names}
    return [
        name
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("besag")
        and id(value) not in known
    ]


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Its public methods that besag defines and describes, in the order of their names' first definition."""
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("besag"):
            for name, value in vars(base).items():
                function = getattr(value, "__func__", value)
                if not name.startswith("_") and inspect.isfunction(function) and getattr(cls, name, None) is not None:
                    yield name, function


def described(value: Any, name: str) -> Iterator[str]:
    if not isinstance(value, ModuleType) and value not in MADE_INSIDE:
        yield f"```py\n{name}{signature(value)}\n```\n"
    yield from as_markdown(inspect.getdoc(value) or "")


def signature(value: Any) -> str:
    """Its parameters without types, which would fill the page; the docstring has the shapes."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty) for name, p in found.parameters.items() if name not in ("self", "cls")]
    return re.sub(r"<[^<>]*>", "...", str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty)))


def as_markdown(text: str) -> Iterator[str]:
    """Paragraphs of a docstring: examples and indented lines as code, all else as text with nothing special in it."""
    for part in re.split(r"\n\s*\n", text):
        if part.startswith(">>>"):
            yield f"```pycon\n{part}\n```\n"
        elif part.startswith((" ", "\t")):
            yield f"```text\n{part}\n```\n"
        else:
            yield "".join(escaped(line) for line in part.splitlines(keepends=True)) + "\n"


def escaped(line: str) -> str:
    """Backticks stay; elsewhere what Markdown reads as markup becomes text. Indented lines are formulas."""
    if line.startswith("    "):
        return "\\\n" + "&emsp;&emsp;" + escaped(line.lstrip())
    parts = line.split("`")
    return "`".join(part if i % 2 else re.sub(r"([\\*_<>\[\]{}|#~$^])", r"\\\1", part) for i, part in enumerate(parts))
