"""The Python of README.md and docs/ runs.

The blocks of one page share a namespace and a temporary working directory. A block with `>>>` prompts is a doctest,
any other is run as it stands. A block opened with "```python no-run" is left alone, for code that needs more than the
test environment has.
"""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]  # `test_tutorials` runs docs/tutorials
BLOCK = re.compile(r"^(?P<indent>[ ]*)```python[ ]*\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Pairs (line number of the first line of code, code) of a page."""
    for found in BLOCK.finditer(text):
        indent = found["indent"]
        code = "".join(line.removeprefix(indent) for line in found["code"].splitlines(keepends=True))
        yield text.count("\n", 0, found.start("code")) + 1, code


def run_page(text: str, name: str) -> int:
    """Run the blocks of a page and return their number; a traceback shows the page's own line numbers."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for line, code in blocks(text):
        number += 1
        if ">>>" in code:
            run_doctest(code, namespace, name, line)
        else:
            exec(compile("\n" * (line - 1) + code, name, "exec"), namespace)
    return number


def run_doctest(code: str, namespace: dict[str, Any], name: str, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, name, name, line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page.exists(), f"{page.name} is missing: it is the project's front page, and its code is tested"
    monkeypatch.chdir(tmp_path)
    number = run_page(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix())
    assert number or page != README, "README.md has no ```python block"


PAGE = """
text

```python
x = 1
```

```python no-run
raise SystemExit
```

- in a list
  ```python
  >>> x + 1
  2
  >>> y = [x]
  ```

```python
assert y == [1]
```
"""


def test_blocks_share_a_namespace() -> None:
    assert run_page(PAGE, "page.md") == 3


def test_line_numbers_are_those_of_the_page() -> None:
    assert [line for line, _ in blocks(PAGE)] == [5, 14, 20]


def test_a_wrong_output_fails() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_page(PAGE.replace("  2\n", "  3\n"), "page.md")


def test_a_failing_block_fails() -> None:
    with pytest.raises(AssertionError):
        run_page(PAGE.replace("[1]", "[2]"), "page.md")
