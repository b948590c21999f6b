"""What engines ask of a structured factor, by the number of its kind.

    number     what is stored of a factor; a log-potential is the number times a feature of the states
    levels     the few log-potentials that its table consists of; `level` says which of them an entry is

Engines that pass messages read levels where tables have entries, so that levels are brought into the domain of a
semiring, shifted and divided as entries are; those that read log-potentials only read the number. `kind` is that of a
structured factor: a table's own rules differ from engine to engine, and stay there.

All kinds are on two variables of n states each, i and j their states, and symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze, offsets_of
from besag.kernels.compile import inlined
from besag.kernels.factors import POTTS, TABLE, Factors
from besag.model.structured.kernels import potts

# numbers (T, 1) -> levels (T, .)
LEVELS: dict[int, Callable[[Array], Array]] = {POTTS: potts.levels_of}
# marginals of independent variables, (F, n) each -> the feature expected of them, (F,)
EXPECTED: dict[int, Callable[[Sequence[Array]], Array]] = {POTTS: potts.expected_of}
KINDS = frozenset({TABLE, *LEVELS})  # those that need not be turned into tables


def spread_levels(factors: Factors) -> tuple[Array, IntArray]:
    """Log-potentials and table offsets with the levels of structured factors in the place of their numbers."""
    numbers, offsets = factors.log_potentials, factors.table_offsets
    structured = factors.kinds != TABLE
    if not structured.any():
        return numbers, offsets
    kinds = np.full(len(offsets) - 1, TABLE)
    kinds[factors.table_of_factor[structured]] = factors.kinds[structured]
    sizes, found = np.diff(offsets), []
    for kind, levels_of in LEVELS.items():
        tables = np.flatnonzero(kinds == kind)
        if len(tables):
            levels = levels_of(numbers[offsets[tables]][:, None])
            found.append((tables, levels))
    stored = np.repeat(kinds == TABLE, sizes)
    for tables, levels in found:
        sizes[tables] = levels.shape[1]
    spread = offsets_of(sizes)
    values = np.empty(int(spread[-1]))
    values[np.repeat(kinds == TABLE, sizes)] = numbers[stored]
    for tables, levels in found:
        values[spread[tables][:, None] + np.arange(levels.shape[1])] = levels
    return freeze(values), freeze(spread)


@inlined
def level(kind: int, i: int, j: int) -> int:
    """Which of its levels an entry of the table is."""
    value = 0
    if kind == POTTS:
        value = potts.level(i, j)
    return value


@inlined
def feature(kind: int, i: int, j: int) -> float:
    """What an entry of the table multiplies the number by."""
    value = 0.0
    if kind == POTTS:
        value = potts.feature(i, j)
    return value


@inlined
def send_structured(
    semiring: int,
    kind: int,
    n: int,
    weights: AnyArray,
    start: int,
    x: AnyArray,
    source: int,
    out: AnyArray,
    target: int,
) -> None:
    """The message from n entries of x at source to n entries of out at target; weights: the levels in the domain."""
    if kind == POTTS:
        potts.send(semiring, n, weights, start, x, source, out, target)


@inlined
def weigh_structured(kind: int, n: int, weights: AnyArray, start: int, x: Array, room: Array) -> tuple[float, float]:
    """In SUM: the sum of the factor's marginal, and the sum of the features times it; vectors at 0 and n of x."""
    total, part = 0.0, 0.0
    if kind == POTTS:
        total, part = potts.weigh(n, weights, start, x, room)
    return total, part


@inlined
def send_lanes(
    semiring: int,
    kind: int,
    lanes: int,
    n: int,
    weights: Array,
    start: int,
    x: Array,
    source: int,
    room: Array,
    out: Array,
) -> None:
    """The message from n rows of x at source to the first n rows of out, lane by lane; room (2, lanes)."""
    if kind == POTTS:
        potts.send_lanes(semiring, lanes, n, weights, start, x, source, room, out)


@inlined
def add_moments(
    semiring: int,
    kind: int,
    lanes: int,
    n: int,
    weights: Array,
    start: int,
    x: Array,
    room: Array,
    rest: Array,
    high: Array,
    z: Array,
    shares: Array,
    moments: Array,
    slot: int,
) -> None:
    """moments[slot] += the feature expected of the vectors at rows 0 and n of x, lanes added up by their shares.

    high and z (lanes,): the sum of the factor's marginal, as of `besag.kernels.sums`. room (2, lanes), rest (n, lanes).
    """
    if kind == POTTS:
        potts.add_moments(semiring, lanes, n, weights, start, x, room, rest, high, z, shares, moments, slot)


@inlined
def add_given(kind: int, numbers: Array, start: int, other: int, logits: Array) -> None:
    """logits += the log-potentials given the other state, up to a constant."""
    if kind == POTTS:
        potts.add_given(numbers, start, other, logits)


@inlined
def add_expected_structured(
    kind: int, n: int, numbers: AnyArray, start: int, p: AnyArray, other: int, logits: Array
) -> None:
    """logits += the log-potentials expected under the probabilities of the other variable, n entries of p at other."""
    if kind == POTTS:
        potts.add_expected(n, numbers, start, p, other, logits)


@inlined
def expect_structured(kind: int, n: int, numbers: AnyArray, start: int, p: AnyArray, first: int, second: int) -> float:
    """The log-potential expected of independent variables, whose probabilities are at first and second."""
    value = 0.0
    if kind == POTTS:
        value = potts.expect(n, numbers, start, p, first, second)
    return value
