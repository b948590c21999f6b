"""What objects show in notebooks: tables and bars as HTML that needs no style sheet and has the page's colours."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

BAR = "#3b7fb6"
MUTED = "opacity:.65"
CELL = "padding:.1em .8em .1em 0;text-align:left;vertical-align:top"


class Markup(str):
    """Text that is HTML already; all other text is escaped."""

    __slots__ = ()


def bar(p: float) -> Markup:
    """A probability as a bar.

    >>> bar(0.5).count("width:50.0%")
    1
    """
    inner = f'<span style="display:block;height:100%;width:{100 * p:.1f}%;background:{BAR};border-radius:2px"></span>'
    outer = "display:inline-block;width:8em;height:.6em;background:rgba(127,127,127,.18);border-radius:2px"
    return Markup(f'<span style="{outer}">{inner}</span>')


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> Markup:
    """Columns under a header, and a line below on what was left out.

    >>> "<td" in make_table(("a", "b"), [("1", "<2")]), "&lt;2" in make_table(("a", "b"), [("1", "<2")])
    (True, True)
    """
    head = "".join(f'<th style="{CELL};{MUTED};font-weight:normal">{_written(name)}</th>' for name in header)
    lines = ("".join(f'<td style="{CELL}">{_written(cell)}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    left = f'<div style="{MUTED}">{_written(more)}</div>' if more else ""
    table = f'<table style="border-collapse:collapse;margin:.4em 0"><tr>{head}</tr>{body}</table>'
    return Markup(table + left)


def make_card(title: str, facts: Iterable[str] = (), *parts: Markup) -> Markup:
    """A title, a line of facts, and what comes below.

    >>> make_card("Model", ["3 variables"]).count("3 variables")
    1
    """
    line = " · ".join(_written(fact) for fact in facts if fact)
    told = f'<div style="{MUTED}">{line}</div>' if line else ""
    return Markup(f"<div><strong>{_written(title)}</strong>{told}{''.join(parts)}</div>")


def _written(text: str) -> str:
    return text if isinstance(text, Markup) else html.escape(text)
