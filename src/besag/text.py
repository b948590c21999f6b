"""Plain-text tables for print-outs, without pandas, which takes longer to import than to answer."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under a header, numbers to the right, text to the left.

    >>> print(table(("state", "p"), [("no", "0.25"), ("yes", "0.75")]))
    state     p
    no     0.25
    yes    0.75
    """
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    numeric = [all(_is_number(line[c]) for line in lines[1:]) and len(lines) > 1 for c in range(len(widths))]
    cells = (
        (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        for line in lines
    )
    return "\n".join("  ".join(line).rstrip() for line in cells)


def shorten(names: Sequence[str], shown: int = 8) -> str:
    """Names in a line, those after the first few counted.

    >>> shorten(["A", "B", "C", "D"], 2)
    'A, B, ... and 2 more'
    """
    left = len(names) - shown
    return ", ".join(names if left <= 0 else (*names[:shown], f"... and {left} more"))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that proposes up to three known words, near in letters of either case; "" where none is.

    >>> did_you_mean("Yes", ["no", "yes"])
    "did you mean 'yes'?"
    """
    folded: dict[str, str] = {}
    for one in known:
        folded.setdefault(one.casefold(), one)
    same = word.casefold()
    near = [same] if same in folded else difflib.get_close_matches(same, folded)
    return f"did you mean {', '.join(repr(folded[one]) for one in near)}?" if near else ""


def no_attribute(module: str, name: str, known: Iterable[str]) -> str:
    """What an AttributeError says of a name that a module does not have.

    >>> no_attribute("besag.plot", "draw_marginals", ["draw_network", "compare_marginals"])
    "besag.plot has no 'draw_marginals'; did you mean 'compare_marginals'? It has draw_network, compare_marginals"
    """
    known = list(known)
    near = did_you_mean(name, known)
    return f"{module} has no {name!r}; {f'{near} It' if near else 'it'} has {', '.join(known)}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell
    return True
