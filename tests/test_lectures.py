"""docs/lectures.md has a row for every numbered equation of the lecture notes, and code, which `test_readme` runs."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "lectures.md").read_text(encoding="utf-8")
ROWS = "\n".join(line for line in PAGE.splitlines() if line.startswith("| ") and "002 (" not in line)
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
COMMENTS = " ".join(re.findall(r"  # (.*)", CODE))


@pytest.mark.parametrize("number", range(1, 45))
def test_equations_of_002(number: int) -> None:
    assert f"({number})" in ROWS
    assert f"({number})" in COMMENTS


@pytest.mark.parametrize("number", [22, *range(24, 41)])
def test_equations_of_000(number: int) -> None:
    assert re.search(rf"6\.{number}\b", ROWS)
