"""Effects of interventions in a Bayesian network that is read causally.

effect: p(y | do(x)) by inference in the network whose x has lost its parents (Pearl 2000).

adjustment_sets: the sets Z for which p(y | do(x)) = sum_z p(y | x, z) p(z), so that the effect follows from what is
observed. They are those without a descendant of a variable on a directed path from x to y, that block every other path:
x and y are d-separated by Z where the first edges of the directed paths are gone (Shpitser, VanderWeele, Robins 2010).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Unpack

import numpy as np

from besag.errors import ModelError, TooLargeError
from besag.model.bayes import do
from besag.model.dag import are_separated, find_ancestors, parents_of
from besag.query.run import Options
from besag.query.verbs import marginals

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model

MOST_SETS = 200_000  # that are tried


def effect(
    model: Model, x: str, y: str, evidence: Mapping[str, object] | None = None, **options: Unpack[Options]
) -> pd.DataFrame:
    """p(y | do(x)), a row for each state of x; evidence: what is observed after the intervention."""
    import pandas as pd

    variable, other = (model.variables[model.variables.index(name)] for name in (x, y))
    if variable.name == other.name:
        raise ModelError(f"x and y must be two variables, got {x!r} twice")
    rows = [
        marginals(do(model, {variable.name: state}), [other.name], evidence, options)[other.name]
        for state in variable.states
    ]
    index = pd.Index(variable.states, name=variable.name)
    return pd.DataFrame(np.array(rows), index=index, columns=pd.Index(other.states, name=other.name))


def adjustment_sets(
    model: Model, x: str, y: str, *, among: Iterable[str] | None = None, max_size: int | None = None
) -> list[tuple[str, ...]]:
    """All sets to adjust for that have no smaller one within them, small ones first.

    among: the variables that are observed, all by default. []: there is no such set; [()]: none is needed.
    """
    parents, variables = parents_of(model), model.variables
    start, end = variables.index(x), variables.index(y)
    if start == end:
        raise ModelError(f"x and y must be two variables, got {x!r} twice")
    on_paths = _descendants(parents, {start}) & find_ancestors(parents, {end})
    forbidden = _descendants(parents, on_paths - {start}) | {start, end}
    cut = [[p for p in above if not (p == start and child in on_paths)] for child, above in enumerate(parents)]
    observed = set(range(len(parents))) if among is None else {variables.index(name) for name in among}
    able = sorted((find_ancestors(parents, {start, end}) - forbidden) & observed)
    found: list[set[int]] = []
    most = len(able) if max_size is None else min(max_size, len(able))
    _refuse_many(len(able), most)
    for size in range(most + 1):
        for chosen in combinations(able, size):
            if not any(smaller <= set(chosen) for smaller in found) and are_separated(cut, [start], [end], chosen):
                found.append(set(chosen))
        if found == [set()]:
            break
    return [tuple(variables.names_at(sorted(chosen))) for chosen in found]


def _refuse_many(n: int, most: int) -> None:
    tries = sum(comb(n, size) for size in range(most + 1))
    if tries > MOST_SETS:
        raise TooLargeError(
            f"{tries} sets of up to {most} of {n} variables would have to be tried; give max_size=, or among="
        )


def _descendants(parents: list[list[int]], of: set[int]) -> set[int]:
    """Some variables and all below them."""
    children: list[list[int]] = [[] for _ in parents]
    for child, above in enumerate(parents):
        for parent in above:
            children[parent].append(child)
    return find_ancestors(children, of)
