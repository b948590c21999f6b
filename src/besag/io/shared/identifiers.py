"""Identifiers for names that a format cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def distinct_identifiers(
    names: Sequence[str], is_identifier: Callable[[str], bool], nearest: Callable[[str], str]
) -> list[str]:
    """An identifier for each name, all different: the name itself if it is one, else the nearest, with a number.

    >>> distinct_identifiers(["a", "a b", "a-b", "a_b"], str.isidentifier, lambda name: "a_b")
    ['a', 'a_b_2', 'a_b_3', 'a_b']
    """
    taken = {name for name in names if is_identifier(name)}
    counts: dict[str, int] = {}
    found = []
    for name in names:
        if not is_identifier(name):
            base = name = nearest(name)
            while name in taken:
                counts[base] = counts.get(base, 1) + 1
                name = f"{base}_{counts[base]}"
            taken.add(name)
        found.append(name)
    return found
