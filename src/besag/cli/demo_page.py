"""The page that `besag demo` writes: sections of text, tables and pictures, in one file that needs no other."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from besag.text import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --ink: #22303c; --paper: #ffffff; --line: #c5ced8; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde3ea; --paper: #14191f; --line: #3a4652; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } caption { text-align: left; font-style: italic; }
th, td { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: left; }
img { max-width: 100%; background: #ffffff; border-radius: 6px; }
"""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; the caption says what they are."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_text(self) -> str:
        """For the terminal."""
        return f"{self.caption}\n{table(self.header, self.rows)}"

    def as_html(self) -> str:
        """For the page."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        return f"<table><caption>{escape(self.caption)}</caption><tr>{head}</tr>{body}</table>"


@dataclass(frozen=True)
class Section:
    """What one part of the demo found: what it is about, tables of what was measured, and pictures by caption."""

    title: str
    text: str
    tables: tuple[Table, ...]
    figures: dict[str, Figure] = field(default_factory=dict)

    def as_text(self) -> str:
        """For the terminal: the first table only."""
        return f"{self.title}\n{self.tables[0].as_text()}"

    def as_html(self) -> str:
        """For the page."""
        pictures = (
            f'<figure><img src="data:image/png;base64,{encode(figure)}" alt="{escape(caption)}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
            for caption, figure in self.figures.items()
        )
        parts = (f"<p>{escape(self.text)}</p>", *(found.as_html() for found in self.tables), *pictures)
        return f"<section><h2>{escape(self.title)}</h2>{''.join(parts)}</section>"


def encode(figure: Figure) -> str:
    """A picture as text."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def page_of(sections: Sequence[Section], closing: str) -> str:
    """All of it as HTML."""
    body = "\n".join(section.as_html() for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>besag demo</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>besag: a network, a sequence, a picture</h1>\n"
        f"{body}\n<p>{escape(closing)}</p></body></html>\n"
    )
