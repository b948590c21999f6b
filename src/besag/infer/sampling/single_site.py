"""Samplers for one variable at a time, each holding the states of all chains.

A sampler keeps states and sums of conditionals in a layout of its own; `chains` turns sums into (R, C, Q), where Q
counts the numbers that are summed, and `of_states` turns means (R, Q) into the flat axis of states:

    SingleSite       any factors: the conditional of every state, Q = S
    PairwiseStates   the same for pairwise factors of variables that all have K states
    Binary           pairwise factors of binary variables without hard zeros: p(y = 1), Q = V
    Layers           the same where two layers are tied by one matrix (`besag.infer.sampling.layers`)

The numbers that they read, log-potentials or couplings, have the dtype asked for; conditionals and sums are float64.

    R rows of evidence, C chains of each, V variables, S states
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze, index_type, invert, offsets_of
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.iterate import Look, no_look
from besag.infer.memory import count_linked
from besag.infer.prepared import Prepared
from besag.infer.sampling.kernels.binary import BLOCK, Neighbours, make_binary_sweep
from besag.infer.sampling.kernels.pairs import PairTables, make_pairs_sweep
from besag.infer.sampling.kernels.single_site import Neighbourhood, links_of, make_sweep
from besag.infer.sampling.layers import CERTAIN, LEAST_FACTORS, Layers, layers_in
from besag.infer.sampling.scan import Scan
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.factors import POTTS, TABLE
from besag.model.structured.kernels.rules import KINDS, level

MOST_STATES = 64  # up to so many, a kernel is compiled for the number of states
LANES = 4  # chains of binary variables side by side, if there are so many


class Sampler(Protocol):
    """What `gibbs` requires of a sampler."""

    sums: Array

    @property
    def moved(self) -> BoolArray | bool:
        """Which variables every chain has drawn, (R, V), or whether all."""

    def start(self, codes: IntArray) -> None:
        """Begin at labellings (R, C, V)."""

    def codes(self) -> IntArray:
        """(R, C, V): where the chains are."""

    def peek(self, rows: IntArray, variables: IntArray) -> AnyArray:
        """(T, C): the states of some variables in some rows."""

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """Move every variable once; if `keep`, add the conditionals to `sums`. Returns a score of each chain, (R, C).

        look: called now and then; it may raise to end a long sweep, when only some variables have moved.
        """

    def chains(self, sums: Array) -> Array:
        """An array in the layout of `sums` as (R, C, Q)."""

    def of_states(self, means: Array, *, errors: bool = False) -> Array:
        """Means (R, Q), or their standard errors, for each state: (R, S)."""


def prepare_sampling(
    problem: Problem, memory_limit: int | None, n_chains: int, n_sweeps: int, more: frozenset[int] = frozenset()
) -> Prepared:
    """A problem prepared for n_sweeps sweeps of n_chains chains per row; more: kinds that need not be tables."""
    setting = Prepared(problem, KINDS | more, memory_limit)
    drawn = float(n_sweeps) * setting.n_rows * n_chains * max(problem.graph.n_variables, problem.graph.n_factors)
    setting.compile = setting.compile or worth_compiling(drawn)
    return setting


def sampler_bytes(setting: Prepared) -> int:
    """Bytes of a sampler besides its chains: base and fields of all rows, and lists of neighbours."""
    graph = setting.graph
    rows = setting.n_rows * (4 * int(graph.state_offsets[-1]) + 2 * graph.n_variables)
    tables = 3 * len(setting.problem.log_potentials)
    return 8 * (rows + 6 * count_linked(graph) + 4 * graph.n_factors + 4 * graph.n_variables + tables)


def links_in(graph: Graph, setting: Prepared) -> Neighbourhood:
    """The links of a graph, made once."""
    return graph.plans.get("links", lambda: links_of(setting.factors, compile=setting.compile))


class ChainLayout:
    """States and sums stored chain by chain, (R C, V) and (R C, S)."""

    def __init__(self, setting: Prepared, n_chains: int) -> None:
        self.setting, self.n_chains = setting, n_chains
        n_units, graph = setting.n_rows * n_chains, setting.graph
        self.states = np.zeros((n_units, graph.n_variables), np.int64)
        self.sums = np.zeros((n_units, int(graph.state_offsets[-1])))

    @property
    def moved(self) -> BoolArray | bool:
        """A sweep draws all of them."""
        return True

    def start(self, codes: IntArray) -> None:
        """Begin at labellings (R, C, V)."""
        self.states[:] = codes.reshape(self.states.shape)

    def codes(self) -> IntArray:
        """(R, C, V)."""
        return self.states.reshape(self.setting.n_rows, self.n_chains, -1)

    def peek(self, rows: IntArray, variables: IntArray) -> AnyArray:
        """(T, C)."""
        return self.codes()[rows, :, variables]

    def chains(self, sums: Array) -> Array:
        """(R, C, S)."""
        return sums.reshape(self.setting.n_rows, self.n_chains, -1)

    def of_states(self, means: Array, *, errors: bool = False) -> Array:
        """(R, S)."""
        return means


class SingleSite(ChainLayout):
    """Any factors, one variable at a time."""

    def __init__(self, setting: Prepared, n_chains: int, scan: str, n_threads: int | None, dtype: str) -> None:
        super().__init__(setting, n_chains)
        self.scan, self.n_threads, self.dtype = Scan(scan, setting, 1), n_threads, setting.number_type(dtype)
        factors = type(setting.factors)(*(freeze(array) for array in setting.factors))
        self.factors = factors._replace(log_potentials=self._read(factors.log_potentials))
        self.links = links_in(setting.graph, setting)
        self.base = self._read(setting.base)

    def _read(self, values: Array) -> AnyArray:
        return freeze(values.astype(self.dtype, copy=False))

    def temper(self, beta: float, hard: float) -> None:
        """Multiply log-potentials of factors of several variables by beta; those that are -inf become `hard`."""
        given = self.setting.factors.log_potentials
        zero = given == -np.inf
        tempered = np.where(zero, hard, beta * np.where(zero, 0, given))
        self.factors = self.factors._replace(log_potentials=self._read(tempered))

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """One sweep."""
        kernel = kernel_of(make_sweep, compile=self.setting.compile)
        scores = np.zeros((len(self.states), self.scan.n_pieces))

        def call(order: IntArray, start: int, stop: int, _: int, first: int, last: int, part: int) -> None:
            kernel(
                self.factors, self.links, self.base, self.n_chains, order, start, stop, first, last, key,
                self.states, keep, self.sums, scores, part,
            )  # fmt: skip

        self.scan.sweep(key, len(self.states), 1, self.n_threads, call, look)
        return np.asarray(scores.sum(axis=1).reshape(self.setting.n_rows, self.n_chains))


class PairwiseStates(SingleSite):
    """Pairwise factors of variables with the same number of states; see `besag.infer.sampling.kernels.pairs`."""

    def __init__(self, setting: Prepared, n_chains: int, scan: str, n_threads: int | None, dtype: str) -> None:
        super().__init__(setting, n_chains, scan, n_threads, dtype)
        self.n_states = int(np.diff(setting.graph.state_offsets)[0])
        self.pairs, self.transposed = _oriented(setting, self.n_states)
        self.rows = self._rows()

    def temper(self, beta: float, hard: float) -> None:
        """As `SingleSite.temper`."""
        super().temper(beta, hard)
        self.rows = self._rows()

    def _rows(self) -> AnyArray:
        values = self.factors.log_potentials
        return np.asarray(freeze(np.concatenate([values, values[self.transposed]])))

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """One sweep."""
        kernel = kernel_of(make_pairs_sweep, self.n_states, compile=self.setting.compile)
        scores = np.zeros((len(self.states), self.scan.n_pieces))

        def call(order: IntArray, start: int, stop: int, _: int, first: int, last: int, part: int) -> None:
            kernel(
                self.pairs, self.rows, self.base, self.n_chains, order, start, stop, first, last, key,
                self.states, keep, self.sums, scores, part,
            )  # fmt: skip

        self.scan.sweep(key, len(self.states), 1, self.n_threads, call, look)
        return np.asarray(scores.sum(axis=1).reshape(self.setting.n_rows, self.n_chains))


class Binary:
    """Pairwise factors of binary variables, several chains side by side; see `besag.infer.sampling.kernels.binary`.

    Variables are stored in the order of `visits` (V,), the variable at each place; `places` (V,) is the place of each.
    """

    def __init__(self, setting: Prepared, n_chains: int, scan: str, n_threads: int | None, dtype: str) -> None:
        self.setting, self.n_chains, self.n_threads = setting, n_chains, n_threads
        self.dtype = setting.number_type(dtype)
        self.lanes = next(lanes for lanes in (LANES, 2, 1) if n_chains % lanes == 0)
        self.scan = Scan(scan, setting, BLOCK // self.lanes)
        self.visits = self.scan.renumber()
        self.places = invert(self.visits)
        self.n_groups = n_chains // self.lanes
        n_units, n_variables = setting.n_rows * self.n_groups, setting.graph.n_variables
        self.states = np.zeros((n_units, n_variables * self.lanes), np.int8)
        self.sums = np.zeros((n_units, n_variables * self.lanes))
        self.neighbours, self.edge = _visited(setting.graph, self.visits, self.places)
        self.own, self.shift, self.pair_coupling = _linear(setting)
        ends, said = ends_of(setting.graph).reshape(-1), np.repeat(np.abs(self.pair_coupling), 2)
        self.reach = np.abs(self.shift) + np.bincount(ends, weights=said, minlength=n_variables)
        self.temper(1.0, -np.inf)

    @property
    def moved(self) -> bool:
        """A sweep draws all of them."""
        return True

    def temper(self, beta: float, hard: float) -> None:
        """Multiply the log-potentials of pairwise factors by beta; there are no hard zeros among them."""
        self.coupling = freeze((beta * self.pair_coupling[self.edge]).astype(self.dtype, copy=False))
        certain = np.copysign(CERTAIN + beta * self.reach, self.own)
        field = np.where(np.isinf(self.own), certain, self.own) + beta * self.shift
        self.field = freeze(field[:, self.visits].astype(self.dtype, copy=False))

    def start(self, codes: IntArray) -> None:
        """Begin at labellings (R, C, V)."""
        shaped = codes[..., self.visits].reshape(len(self.states), self.lanes, -1).transpose(0, 2, 1)
        self.states[:] = shaped.reshape(self.states.shape)

    def codes(self) -> IntArray:
        """(R, C, V)."""
        return np.asarray(self._by_chain(self.states)[..., self.places], np.int64)

    def peek(self, rows: IntArray, variables: IntArray) -> AnyArray:
        """(T, C)."""
        native = self.states.reshape(self.setting.n_rows, self.n_groups, -1, self.lanes)
        return native[rows, :, self.places[variables]].reshape(len(rows), self.n_chains)

    def _by_chain(self, native: AnyArray) -> AnyArray:
        shaped = native.reshape(len(self.states), -1, self.lanes).transpose(0, 2, 1)
        return shaped.reshape(self.setting.n_rows, self.n_chains, -1)

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """One sweep."""
        kernel = kernel_of(make_binary_sweep, self.lanes, compile=self.setting.compile)
        scores = np.zeros((len(self.states), self.scan.n_pieces, self.lanes))

        def call(order: IntArray, start: int, stop: int, block: int, first: int, last: int, part: int) -> None:
            kernel(
                self.neighbours, self.coupling, self.field, self.n_groups, order, start, stop, block, first, last, key,
                self.states, keep, self.sums, scores, part,
            )  # fmt: skip

        self.scan.sweep(key, len(self.states), self.lanes, self.n_threads, call, look)
        return np.asarray(scores.sum(axis=1).reshape(self.setting.n_rows, self.n_chains))

    def chains(self, sums: Array) -> Array:
        """(R, C, V), in the order of visits."""
        return np.asarray(self._by_chain(sums))

    def of_states(self, means: Array, *, errors: bool = False) -> Array:
        """(R, V) -> (R, 2 V)."""
        means = means[:, self.places]
        zero = means if errors else 1.0 - means
        return np.stack([zero, means], axis=2).reshape(len(means), -1)


def single_site(
    setting: Prepared, n_chains: int, scan: str, n_threads: int | None, dtype: str = "float64"
) -> SingleSite | Binary | Layers:
    """The sampler that suits the factors."""
    pair = layers_in(setting.graph) if scan == "chromatic" else None
    if pair is not None and setting.graph.n_factors >= LEAST_FACTORS:
        return Layers(setting, pair, n_chains, n_threads, dtype, _own_odds(setting))
    cards = np.diff(setting.graph.state_offsets)
    paired = bool((cards == cards[0]).all() and (np.diff(setting.graph.scope_offsets) <= 2).all())
    fast = paired and bool(np.isin(setting.factors.kinds, (TABLE, POTTS)).all())
    if paired and cards[0] == 2 and (not setting.has_zeros or np.isfinite(_pair_values(setting)).all()):
        return Binary(setting, n_chains, scan, n_threads, dtype)
    if fast and cards[0] <= MOST_STATES:
        return PairwiseStates(setting, n_chains, scan, n_threads, dtype)
    return SingleSite(setting, n_chains, scan, n_threads, dtype)


def _oriented(setting: Prepared, n_states: int) -> tuple[PairTables, IntArray]:
    """The pairs, and the place in the tables of each entry of the transposed tables, (L,)."""
    factors, graph = setting.factors, setting.graph
    n_entries, pairs = len(factors.log_potentials), pairs_of(graph)
    neighbours, edge = graph.plans.get("neighbours", lambda: _neighbours(graph))
    start = factors.table_offsets[factors.table_of_factor[pairs]]
    potts = factors.kinds[pairs] == POTTS
    transposed = np.arange(n_entries)
    entries = start[~potts][:, None, None] + np.arange(n_states**2).reshape(n_states, n_states)
    transposed[entries] = entries.swapaxes(1, 2)
    owner = np.repeat(np.arange(graph.n_variables), np.diff(neighbours.first))
    leads = ends_of(graph)[edge, 0] == owner  # on the first axis: it reads columns of the table
    table = np.where(potts[edge], -2 - start[edge], start[edge] + n_entries * leads)
    return PairTables(neighbours.first, neighbours.other, freeze(table)), freeze(transposed)


def pairs_of(graph: Graph) -> IntArray:
    """The factors of two variables."""
    return np.flatnonzero(np.diff(graph.scope_offsets) == 2)


def _pair_values(setting: Prepared) -> Array:
    """(M, 4): t(0, 0), t(0, 1), t(1, 0), t(1, 1) of every pairwise factor of binary variables."""
    factors, pairs = setting.factors, pairs_of(setting.graph)
    starts, kinds = factors.table_offsets[factors.table_of_factor[pairs]], factors.kinds[pairs]
    values = np.empty((len(pairs), 4))
    for kind in np.unique(kinds).tolist():
        alike = slice(None) if (kinds == kind).all() else kinds == kind
        for entry, (i, j) in enumerate(np.ndindex(2, 2)):
            place = entry if kind == TABLE else level(kind, i, j)
            values[alike, entry] = factors.log_potentials[starts[alike] + place]
    return values


def ends_of(graph: Graph) -> IntArray:
    """(M, 2): the variables of every factor of two."""
    starts = graph.scope_offsets[pairs_of(graph)]
    return np.asarray(graph.scope_variables[starts[:, None] + np.arange(2)])


def _neighbours(graph: Graph) -> tuple[Neighbours, IntArray]:
    """The neighbours of each variable, and the pairwise factor that joins them, (I,)."""
    ends = ends_of(graph)
    variable, other = ends.T.reshape(-1), ends[:, ::-1].T.reshape(-1)
    by_variable = np.argsort(variable, kind="stable")
    first = offsets_of(np.bincount(variable, minlength=graph.n_variables))
    edge = np.tile(np.arange(len(ends)), 2)[by_variable]
    return Neighbours(freeze(first), freeze(other[by_variable])), freeze(edge)


def _visited(graph: Graph, visits: IntArray, places: IntArray) -> tuple[Neighbours, IntArray]:
    """As `_neighbours`, with variables numbered by their places."""
    (first, other), edge = graph.plans.get("neighbours", lambda: _neighbours(graph))
    sizes = np.diff(first)[visits]
    ends = offsets_of(sizes)
    taken = np.repeat(first[visits] - ends[:-1], sizes) + np.arange(len(other))
    index = index_type(max(len(other), graph.n_variables))
    return Neighbours(freeze(ends.astype(index)), freeze(places[other[taken]].astype(index))), edge[taken]


def _own_odds(setting: Prepared) -> Array:
    """(R, V): the log-odds of base, of binary variables."""
    with np.errstate(invalid="ignore"):
        own = setting.base[:, 1::2] - setting.base[:, 0::2]
    return np.where(np.isnan(own), 0.0, own)  # a row without a labelling


def _linear(setting: Prepared) -> tuple[Array, Array, Array]:
    """Log-odds of base (R, V), the fields that pairwise factors add to it (V,), and their couplings (M,)."""
    values, ends = _pair_values(setting), ends_of(setting.graph)
    n_variables = setting.graph.n_variables
    shift = np.zeros(n_variables)
    shift += np.bincount(ends[:, 0], weights=values[:, 2] - values[:, 0], minlength=n_variables)
    shift += np.bincount(ends[:, 1], weights=values[:, 1] - values[:, 0], minlength=n_variables)
    return _own_odds(setting), shift, values[:, 0] + values[:, 3] - values[:, 1] - values[:, 2]
