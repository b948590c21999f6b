"""Fewer states for MAP: states that a bound rules out are left out of the tables of cliques.

The bound of `besag.infer.bounds.kernels.diffusion` holds for all labellings; slack(v, k) is how much lower it is for
those with y_v = k. If a labelling of weight w is known, every state with slack above bound - w can go: no labelling
that has it is as heavy. So

    guess a threshold tau, keep the states with slack at most tau, and find the heaviest labelling among them, exactly;
    its weight w is that of a heaviest labelling of all if w >= bound - tau, and if not, bound - w is a sound threshold.

The guess is the largest that makes the tables of the cliques small. If the bound is tight, few states are left, and
labellings are found for which the whole tree would not fit in memory; if it is not, the time is a small part of what
the whole tree takes. The whole tree need not be known: if it is hopeless, all that counts is whether the tables on the
remaining states are small.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of
from besag.infer.bounds.kernels.diffusion import make_diffuse, make_state_bounds
from besag.infer.purpose import Purpose
from besag.kernels.compile import kernel_of

if TYPE_CHECKING:
    from besag.kernels.factors import Factors

Found = tuple[float, IntArray]  # the weight of a heaviest labelling, -inf where there is none, and its codes
Solve = Callable[[Purpose], Found | None]  # None if that would not fit
Fits = Callable[[IntArray, float], bool]  # whether so many states of each variable (V,) make at most so many entries

EFFORT = 0.1  # visits of table entries for the bound, as a share of the whole tree's entries
MOST_VISITS = 1e8  # of table entries, for the bound
SECONDS_A_VISIT = 4e-9
SMALL_SHARE, SOUND_SHARE = 1 / 8, 1 / 2  # of the whole tree's entries, for a guess and for a sound threshold
MOST_ENTRIES = 2e8  # half a second
GUESSES = 2.0 ** np.arange(4, -16, -1)  # nats
ROUNDING = 1e-12  # relative to the sums in a bound


def narrow_states(
    factors: Factors,
    setting: Purpose,
    fits: Fits,
    total: float,
    base: Array,
    solve: Solve,
    *,
    seconds: float = math.inf,
    compile: bool = True,
) -> Found | None:
    """The heaviest labelling of a problem and its weight; None if bounds do not make it much smaller.

    total: table entries of the whole tree. base (S,): log-weights of the states, -inf for those that evidence or hard
    zeros rule out. seconds: what the bound may take.
    """
    known = _bounded(factors, min(EFFORT * total, seconds / SECONDS_A_VISIT), base, compile)
    if known is None:
        return None
    bound, rounding, slack = known

    def left(threshold: float) -> BoolArray:
        return np.asarray(slack <= threshold + rounding)

    def is_small(threshold: float, share: float) -> bool:
        counts = np.add.reduceat(left(threshold), factors.state_offsets[:-1], dtype=np.int64)
        counts = np.where(setting.fixed, 1, np.maximum(counts, 1))
        return fits(counts, min(share * total, MOST_ENTRIES))

    guesses = GUESSES.tolist()
    for threshold in guesses[bisect_left(guesses, True, key=lambda guess: is_small(guess, SMALL_SHARE)) :]:
        found = solve(_with_states(factors, setting, left(threshold)))
        if found is not None:
            sound = bound - found[0]
            if sound > threshold + rounding:
                found = solve(_with_states(factors, setting, left(sound))) if is_small(sound, SOUND_SHARE) else None
            return found if found is not None and found[0] > -np.inf else None
    return None


def _bounded(factors: Factors, most_visits: float, base: Array, compile: bool) -> tuple[float, float, Array] | None:
    """The bound, its possible rounding error, and slack (S,); None if there is no time for it, or no bound."""
    visits = float(np.diff(factors.table_offsets)[factors.table_of_factor].sum())
    n_sweeps = 2 * int(min(most_visits, MOST_VISITS) / max(2 * visits, 1.0))
    if n_sweeps == 0:
        return None
    shape = (factors.state_offsets, factors.scope_offsets, factors.scope_variables)
    tables = (factors.table_of_factor, factors.table_offsets, freeze(factors.log_potentials))
    offsets = freeze(offsets_of(np.diff(factors.state_offsets)[factors.scope_variables]))
    theta, messages, slack = base.copy(), np.zeros(int(offsets[-1])), np.empty(len(base))
    kernel_of(make_diffuse, compile=compile)(shape, tables, offsets, n_sweeps, GUESSES[-1], theta, messages)
    base = freeze(np.where(theta == -np.inf, -np.inf, base))
    given = factors.of(*factors)
    bound, size = kernel_of(make_state_bounds, compile=compile)(given, offsets, base, freeze(messages), slack)
    return (bound, ROUNDING * (1.0 + size), slack) if np.isfinite(bound) else None


def bound_bytes(factors: Factors) -> float:
    """Bytes that the bound takes: messages, and a few numbers for each state."""
    sizes = np.diff(factors.state_offsets)
    n_links, n_messages = len(factors.scope_variables), int(sizes[factors.scope_variables].sum())
    return 8.0 * (n_messages + 6 * n_links + 6 * int(sizes.sum()))


def _with_states(factors: Factors, setting: Purpose, left: BoolArray) -> Purpose:
    """The setting with these states of its free variables only."""
    free = np.repeat(~setting.fixed, np.diff(factors.state_offsets))
    return replace(setting, allowed=freeze(np.where(free, left & setting.allowed, setting.allowed)))
