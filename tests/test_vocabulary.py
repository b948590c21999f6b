"""One word, one meaning: names of classes, and the glossary of docs/design.md that explains the common ones."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "besag"
SAME_IDEA = {"Reader"}  # of a file format: one in each, all with the same role


def class_names(sources: dict[str, str]) -> dict[str, list[str]]:
    """Where each name stands; an underscore before it makes no other name."""
    found = defaultdict(list)
    for place, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(place)
    return found


def doubled(sources: dict[str, str]) -> list[str]:
    names = class_names(sources)
    return [f"{name}: {', '.join(places)}" for name, places in sorted(names.items()) if len(places) > 1]


def sources() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def glossary(page: str) -> list[str]:
    """The words of the table under the heading Glossary."""
    rows = page.partition("## Glossary")[2].partition("\n## ")[0].splitlines()
    return [row.split("|")[1].strip().strip("`") for row in rows if row.startswith("| `")]


def unknown(words: Iterable[str], names: set[str]) -> list[str]:
    return [word for word in words if word not in names]


def test_a_class_name_means_one_thing() -> None:
    complaints = [line for line in doubled(sources()) if line.partition(":")[0] not in SAME_IDEA]
    assert not complaints, "\n".join(["two classes of one name:", *complaints])


def test_the_glossary_explains_classes_that_there_are() -> None:
    words = glossary((ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    assert len(words) > 20
    assert not unknown(words, set(class_names(sources())))


def test_doubled_names_are_found() -> None:
    assert doubled({"a.py": "class Plan: ...", "b.py": "class _Plan: ..."}) == ["Plan: a.py, b.py"]


@pytest.mark.parametrize("page", ["", "## Glossary\n\n| `Graph` | structure |\n## Next\n| `Else` | x |\n"])
def test_the_glossary_is_read(page: str) -> None:
    assert glossary(page) == (["Graph"] if page else [])
