"""Links of README and docs lead somewhere, and the site leaves nothing out; `make docs` builds it."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from besag.infer.engine import ENGINES
from besag.learn.losses.base import OBJECTIVES
from tests.test_readme import README, ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
from reference import missing

DOCS = ROOT / "docs"
PAGES = sorted({README, ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"), *(DOCS / "tutorials").glob("*.md")})
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)\)")
BUILT = "reference/index"  # written when the site is built


def text_of(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, text: str) -> Iterator[str]:
    """Links of a text that lead nowhere."""
    for link in [*LINK.findall(text), *re.findall(r'<img src="([^"]+)"', text)]:
        path, _, anchor = link.partition("#")
        if path.startswith(("http://", "https://", "mailto:", BUILT)):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or ROOT not in target.parents:
            yield f"{link}: no file"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: no heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page: Path) -> None:
    assert list(broken(page, text_of(page))) == []


def test_broken_links_are_found() -> None:
    text = "[a](docs/exact.md) [b](docs/exact.md#orders) [c](docs/nowhere.md) [d](docs/exact.md#no) [e](#no)"
    assert list(broken(README, text)) == ["docs/nowhere.md: no file", "docs/exact.md#no: no heading", "#no: no heading"]


def test_the_site_has_every_page() -> None:
    listed = re.findall(r"^(?:.*<)?([\w\-./]+)>?$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    chapters = (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or page.stem in listed
    for page in (DOCS / "tutorials").glob("[0-9]*.md"):
        assert f"\n{page.stem}\n" in chapters


def test_the_gallery_has_every_example() -> None:
    shown = set(re.findall(r"\]\(\.\./examples/(\w+\.py)\)", (DOCS / "gallery.md").read_text(encoding="utf-8")))
    assert shown == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_pictures_are_small_and_shown() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = list((DOCS / "pictures").glob("*"))
    assert sum(path.stat().st_size for path in pictures) < 1_000_000
    for path in pictures:
        assert path.stat().st_size <= 60_000
        assert f"pictures/{path.name}" in pages


def test_the_reference_has_every_name() -> None:
    assert missing() == []


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    part = (DOCS / page).read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip("` ") for cell in row] for row in rows]


def test_engines_can_what_the_table_says() -> None:
    wants = ("variables", "map", "samples", "messages")
    made = []
    for name in ENGINES:
        can = ENGINES.find(name).capabilities
        bound = can.bound if "log_partition" in can.wants else "none"
        made.append([name, bound, *("yes" if want in can.wants else "no" for want in wants), can.needs])
    assert sorted(rows_of("engines.md", "What each engine answers")) == sorted(made)


def test_every_objective_is_there() -> None:
    assert {row[0] for row in rows_of("engines.md", "Which objective")} == set(OBJECTIVES)
