"""The site: `make docs` reads README.md, docs/ and a few pages beside them where they lie, and writes out/site.

Sphinx reads Markdown through MyST. Links between pages are those of the repository; every one is checked, headings
included, and a warning is an error. Nothing is downloaded, by the build or by who reads its pages.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs" / "site"), str(ROOT / "src")]
os.environ.setdefault("MPLBACKEND", "agg")

from notebooks import page_as_notebook  # noqa: E402
from reference import write_reference  # noqa: E402

import besag  # noqa: E402

project, author, copyright = "besag", "The besag developers", "the besag developers"
release = version = besag.__version__

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md", "benchmarks/RESULTS.md"]
exclude_patterns = ["docs/site/**"]
myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "besag"
html_copy_source = html_show_sourcelink = False
pygments_style, pygments_dark_style = "tango", "monokai"
suppress_warnings = ["misc.highlighting_failure"]  # console transcripts and file formats without a lexer

FRONT = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html"><title>besag</title>\n'


def offer_notebook(app: Sphinx, name: str, source: list[str]) -> None:
    """A line below a tutorial's title that gives it as a notebook."""
    if name.startswith("docs/tutorials/") and not name.endswith("index"):
        title, rest = source[0].split("\n", 1)
        source[0] = f'{title}\n\n<a href="{Path(name).name}.ipynb" download>This chapter as a notebook</a>\n{rest}'


def write_beside(app: Sphinx, failed: Exception | None) -> None:
    """The notebooks, and the page that a server looks for first."""
    if failed or app.builder.name != "html":
        return
    for page in sorted((ROOT / "docs" / "tutorials").glob("[0-9]*.md")):
        (Path(app.outdir) / "docs" / "tutorials" / f"{page.stem}.ipynb").write_text(page_as_notebook(page))
    (Path(app.outdir) / "index.html").write_text(FRONT)


def setup(app: Sphinx) -> None:
    """Where Sphinx asks."""
    write_reference(ROOT / "docs" / "reference")
    app.connect("source-read", offer_notebook)
    app.connect("build-finished", write_beside)
