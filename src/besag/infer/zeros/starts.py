"""First labellings of chains: of positive weight, and drawn far apart.

Without hard zeros between variables each is drawn from exp(base), independent of all others. With them a search
(`besag.infer.zeros.kernels.feasible`) finds a labelling for each chain; a chain without one begins where another chain
does, and if none of a row's chains has one, either the row is proven impossible or sampling is refused.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.errors import CapabilityError
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.zeros.kernels.feasible import FOUND, NONE, make_search
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.incidence import make_incidence
from besag.kernels.random import sweep_key

SLAB = 1 << 20  # random numbers at a time
BUDGETS = (100, 400, 1600)  # dead ends allowed in each try


def independent_codes(setting: Prepared, n_chains: int, rng: np.random.Generator) -> IntArray:
    """(R, C, V): each variable drawn from exp(base)."""
    return draw_codes(setting.base, setting.graph.state_offsets, n_chains, rng)


def draw_codes(base: Array, state_offsets: IntArray, n_chains: int, rng: np.random.Generator) -> IntArray:
    """(R, C, V) from base (R, S), by the largest of log-weight plus Gumbel noise; state 0 where there is none."""
    n_units, n_states = len(base) * n_chains, base.shape[1]
    sizes = np.diff(state_offsets)
    codes = np.zeros((n_units, len(sizes)), np.int64)
    variable = np.repeat(np.arange(len(sizes)), sizes)
    step = max(1, SLAB // n_states)
    for first in range(0, n_units, step):
        rows = np.arange(first, min(first + step, n_units)) // n_chains
        noisy = base[rows] - np.log(rng.standard_exponential((len(rows), n_states)))
        best = np.maximum.reduceat(noisy, state_offsets[:-1], axis=1)
        unit, state = np.nonzero(noisy == best[:, variable])
        codes[first + unit[::-1], variable[state[::-1]]] = (state - state_offsets[variable[state]])[::-1]
    return codes.reshape(len(base), n_chains, len(sizes))


def count_drawn(n_units: int, n_states: int) -> int:
    """Temporary numbers while so many labellings are drawn."""
    return 6 * min(max(n_states, SLAB), n_units * n_states)


def draw_starts(setting: Prepared, n_chains: int, rng: np.random.Generator) -> tuple[IntArray, BoolArray]:
    """(R, C, V), and which rows (R,) or instances (N,) have a labelling; CapabilityError if that stays unknown."""
    codes, possible = independent_codes(setting, n_chains, rng), np.array(setting.possible)
    if not _has_hard_factors(setting):
        return codes, possible
    key = int(rng.integers(2**62))
    base = np.where(setting.spread(possible), setting.base, -np.inf)
    first, linked = kernel_of(make_incidence, compile=setting.compile)(*(freeze(a) for a in setting.factors[:3]))
    for row in range(setting.n_rows):
        if possible[row] or len(possible) > setting.n_rows:
            found = _search_row(setting, row, base[row], codes[row], key, (freeze(first), freeze(linked)))
            possible[row : len(possible) if len(possible) > setting.n_rows else row + 1] &= found
    return codes, possible


def _has_hard_factors(setting: Prepared) -> bool:
    """Whether a factor of two or more variables has a hard zero."""
    if not setting.has_zeros:
        return False
    graph, factors = setting.graph, setting.factors
    hard = np.minimum.reduceat(factors.log_potentials, factors.table_offsets[:-1]) == -np.inf
    return bool((hard[factors.table_of_factor] & (np.diff(graph.scope_offsets) > 1)).any())


def _search_row(
    setting: Prepared, row: int, base: Array, codes: IntArray, key: int, incidence: tuple[IntArray, IntArray]
) -> bool:
    """Put the chains (C, V) of a row at labellings; False if there is provably none."""
    search = kernel_of(make_search, compile=setting.compile)
    factors = type(setting.factors)(*(freeze(array) for array in setting.factors))
    found: list[int] = []
    base = freeze(base)
    for chain in range(len(codes)):
        for attempt, budget in enumerate(BUDGETS):
            allowed = base > -np.inf
            if attempt:  # one search in vain: the next ones take longer
                search = kernel_of(make_search, compile=setting.compile or worth_compiling(setting.entries * budget))
            number = (row * len(codes) + chain) * len(BUDGETS) + attempt
            status = search(factors, *incidence, base, sweep_key(key, number), budget, allowed)
            if status == NONE:
                return False
            if status == FOUND:
                _read(setting, allowed, codes[chain])
                found.append(chain)
                break
    if not found:
        raise CapabilityError(
            f"no labelling that the hard zeros allow was found to start from, in {len(codes) * len(BUDGETS)} searches "
            f"of up to {max(BUDGETS)} dead ends; give one by init=model.map(...), or use an exact engine"
        )
    for chain in set(range(len(codes))) - set(found):
        codes[chain] = codes[found[chain % len(found)]]
    return True


def _read(setting: Prepared, allowed: BoolArray, codes: IntArray) -> None:
    """Read off the state of each decided variable; the others stay as they are."""
    offsets = setting.graph.state_offsets
    decided = np.add.reduceat(allowed, offsets[:-1]) == 1
    states = np.flatnonzero(allowed & np.repeat(decided, np.diff(offsets)))
    codes[decided] = states - offsets[:-1][decided]


def read_codes(setting: Prepared, warm: Result, n_chains: int) -> IntArray | None:
    """(R, C, V) from a Result that has an assignment, the same for every chain; None if it has none."""
    if warm.codes is None or warm.codes.shape[::2] != (setting.n_rows, setting.graph.n_variables):
        return None
    return np.repeat(warm.codes[:, :1], n_chains, axis=1)
