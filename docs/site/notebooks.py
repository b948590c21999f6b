"""Tutorials as notebooks: `python docs/site/notebooks.py FOLDER` writes each page of docs/tutorials as .ipynb.

The page is the only source. A block of code with prompts becomes cells that end where something is shown, and what is
shown, which the tests check, is their output. Links to other pages lead to the site.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parents[1] / "tutorials"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def cells_of(text: str) -> Iterator[tuple[str, str, str]]:
    """Triples (kind of cell, source, output) of a page."""
    for i, part in enumerate(BLOCK.split(text)):
        if i % 2 == 0:
            if part.strip():
                yield "markdown", part.strip(), ""
        else:
            yield from cells_of_code(part)


def cells_of_code(code: str) -> Iterator[tuple[str, str, str]]:
    """A block with prompts as cells, each of which ends with an output, but for the last."""
    source = ""
    for example in doctest.DocTestParser().get_examples(code):
        source += example.source
        if example.want:
            yield "code", source.strip(), example.want
            source = ""
    if source:
        yield "code", source.strip(), ""


def output_of(source: str, shown: str) -> list[dict[str, Any]]:
    """What a notebook keeps of an output: the value of the last expression, or what was printed."""
    if not shown:
        return []
    last = ast.parse(source).body[-1]
    printed = isinstance(last, ast.Expr) and ast.unparse(last).startswith("print(")
    if printed or not isinstance(last, ast.Expr):
        return [{"output_type": "stream", "name": "stdout", "text": shown}]
    data = {"text/plain": shown.rstrip("\n")}
    return [{"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}]


def page_as_notebook(page: Path) -> str:
    """The JSON of a notebook, format 4.5."""
    cells = []
    for number, (kind, source, shown) in enumerate(cells_of(page.read_text(encoding="utf-8"))):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"{page.stem[:2]}-{number}", "metadata": {}, "source": source}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": output_of(source, shown)}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for tutorial in sorted(PAGES.glob("[0-9]*.md")):
        (folder / f"{tutorial.stem}.ipynb").write_text(page_as_notebook(tutorial), encoding="utf-8")
