"""Samplers that move many variables at once: trees of them, and clusters of agreeing ones.

TreeBlocks   A random forest of variables is drawn jointly given all others (Hamze and de Freitas, UAI 2004), then one
             of the remaining variables, until all have moved. A factor that reaches out of the forest keeps its table:
             each known variable is added as a leaf of its own, with one state. The conditionals that are added up are
             the exact marginals of the forest given the rest; if the factor graph is a forest they are the answer
             itself. There are N_COVERS random covers by forests, used in random order; as many are kept as memory
             allows, the others are built again.
Clusters     Swendsen and Wang's sampler for couplings that make neighbours agree
(`besag.infer.sampling.kernels.swendsen_wang`).

    R rows, C chains, U = R C; V variables, S states; M pairwise factors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from besag.arrays import Array, IntArray, freeze, offsets_of
from besag.errors import CapabilityError
from besag.infer.iterate import Look, no_look
from besag.infer.memory import count_linked
from besag.infer.prepared import Prepared
from besag.infer.sampling.kernels.forest_cover import make_cover
from besag.infer.sampling.kernels.swendsen_wang import make_clusters
from besag.infer.sampling.scan import WORTH_THREADS
from besag.infer.sampling.single_site import ChainLayout, ends_of, pairs_of
from besag.infer.trees import sums
from besag.infer.trees.plan import Forest, plan_forest
from besag.kernels.compile import kernel_of
from besag.kernels.factors import POTTS, Factors
from besag.kernels.incidence import make_incidence
from besag.kernels.threads import run_chunks

N_COVERS = 8
COVER_OF_ENTRY = 16  # numbers of a cover for each entry of the scopes of factors
WORK_OF_STATE = 6  # temporary numbers for each state of a chain while forests are drawn
FORM = 1e-9  # how far a table may be from a + c [i = j]


@dataclass(frozen=True, slots=True, eq=False)
class ForestBlock:
    """A forest of variables, and the known variables around it: one copy for each factor that reads them."""

    variables: IntArray  # (n,) of the forest
    known: IntArray  # (m,) the variable of each copy
    factors: Factors
    forest: Forest
    states: IntArray  # the states of the forest's variables on the flat axis


class Mode(TypedDict):
    """How the tree kernels are run."""

    n_threads: int | None
    compile: bool


class TreeBlocks(ChainLayout):
    """Random forests of variables, each drawn jointly."""

    def __init__(self, setting: Prepared, n_chains: int, n_threads: int | None, n_kept: int) -> None:
        super().__init__(setting, n_chains)
        self.n_threads, self.n_kept = n_threads, n_kept
        scopes = tuple(freeze(array) for array in setting.factors[:3])
        self.incidence = tuple(freeze(a) for a in kernel_of(make_incidence, compile=setting.compile)(*scopes))
        self.covers: dict[int, list[ForestBlock]] = {}
        self.base = np.repeat(setting.base, n_chains, axis=0)

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """Make one sweep: draw the blocks of a random cover in turn."""
        number = key % N_COVERS
        if number not in self.covers:
            if len(self.covers) >= self.n_kept:
                self.covers.pop(next(iter(self.covers)))
            self.covers[number] = self._cover(number, look)
        score = np.zeros(len(self.states))
        worth = self.sums.size >= WORTH_THREADS
        how = Mode(n_threads=self.n_threads if worth else 1, compile=self.setting.compile)
        for i, block in enumerate(self.covers[number]):
            look()
            base = self._base(block)
            if keep:
                found = sums.sum_product(block.factors, block.forest, base, **how)
                assert found.variables is not None
                self.sums[:, block.states] += found.variables[:, : len(block.states)]
            look()
            drawn = sums.sample(block.factors, block.forest, base, 1, key + i, **how)
            self.states[:, block.variables] = drawn.samples[:, 0, : len(block.variables)]
            score += drawn.log_partition.sum(axis=1)
        score = np.where(np.isfinite(score), score, 0.0)
        return score.reshape(self.setting.n_rows, self.n_chains)

    def _cover(self, number: int, look: Look) -> list[ForestBlock]:
        graph, blocks = self.setting.graph, list[ForestBlock]()
        look()
        order = np.random.default_rng(number).permutation(graph.n_variables)
        block_of = np.full(graph.n_variables, -1, np.int64)
        cover = kernel_of(make_cover, compile=self.setting.compile)
        n_blocks = cover(freeze(order), *self.incidence, graph.n_factors, block_of)
        for b in range(n_blocks):
            look()
            blocks.append(self._block(block_of == b))
        return blocks

    def _block(self, inside: Array) -> ForestBlock:
        """The forest of some variables (V,): the factors that touch it, and copies of the others that these read."""
        whole, graph = self.setting.factors, self.setting.graph
        cards = np.diff(graph.state_offsets)
        arities = np.diff(whole.scope_offsets)
        touches = np.add.reduceat(inside[whole.scope_variables], whole.scope_offsets[:-1]) if len(arities) else arities
        kept = np.flatnonzero((touches > 0) & (arities > 1))
        offsets = offsets_of(arities[kept])
        entry = np.arange(offsets[-1]) + np.repeat(whole.scope_offsets[kept] - offsets[:-1], arities[kept])
        variables, scope = np.flatnonzero(inside), whole.scope_variables[entry]
        outside = ~inside[scope]
        known = scope[outside]
        renamed = np.cumsum(inside) - 1
        scope_variables = np.where(outside, len(variables) + np.cumsum(outside) - 1, renamed[scope])
        factors = Factors.of(
            offsets_of(cards[np.concatenate([variables, known])]),
            offsets,
            scope_variables,
            whole.kinds[kept],
            whole.table_of_factor[kept],
            whole.table_offsets,
            whole.log_potentials,
        )
        forest = plan_forest(*factors[:3], compile=self.setting.compile)
        assert forest is not None
        sizes = cards[variables]
        starts = offsets_of(sizes)
        states = np.arange(starts[-1]) + np.repeat(graph.state_offsets[variables] - starts[:-1], sizes)
        return ForestBlock(variables, known, factors, forest, states)

    def _base(self, block: ForestBlock) -> Array:
        """(U, .): base of the forest's variables, and of the known ones at their states."""
        offsets, n = block.factors.state_offsets, len(block.variables)
        base = np.full((len(self.states), int(offsets[-1])), -np.inf)
        base[:, : len(block.states)] = self.base[:, block.states]
        at = offsets[n:-1] + self.states[:, block.known]
        np.put_along_axis(base, at, 0.0, axis=1)
        return base


def cover_bytes(setting: Prepared) -> int:
    """Bytes of a cover."""
    return 8 * COVER_OF_ENTRY * count_linked(setting.graph)


class Clusters(ChainLayout):
    """Swendsen and Wang's clusters."""

    def __init__(self, setting: Prepared, n_chains: int, n_threads: int | None) -> None:
        super().__init__(setting, n_chains)
        self.n_threads = n_threads
        self.ends = freeze(ends_of(setting.graph))
        coupling, base = agreeing(setting)
        self.coupling, self.base = freeze(coupling), freeze(base)

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """Make one sweep: bonds, then labels."""
        kernel = kernel_of(make_clusters, compile=self.setting.compile)
        scores = np.zeros((len(self.states), 1))
        offsets = freeze(self.setting.graph.state_offsets)

        def task(u: int) -> None:
            look()
            kernel(
                offsets, self.ends, self.coupling, self.base, self.n_chains, u, u + 1, key,
                self.states, keep, self.sums, scores,
            )  # fmt: skip

        run_chunks(task, len(self.states), self.n_threads if self.sums.size >= WORTH_THREADS else 1)
        return scores.reshape(self.setting.n_rows, self.n_chains)


def agreeing(setting: Prepared) -> tuple[Array, Array]:
    """Couplings c (M,) of factors c [i = j], and base (R, S) with their unary terms; CapabilityError for other factors.

    A table of two binary variables is always a coupling plus a term of each variable.
    """
    graph, factors = setting.graph, setting.factors
    if (np.diff(graph.scope_offsets) > 2).any():
        raise _refusal("a factor has more than two variables")
    base = np.array(setting.base)
    pairs, ends = pairs_of(graph), ends_of(graph)
    starts = factors.table_offsets[factors.table_of_factor[pairs]]
    cards = np.diff(graph.state_offsets)[ends]
    potts = factors.kinds[pairs] == POTTS
    coupling = np.zeros(len(pairs))
    coupling[potts] = -factors.log_potentials[starts[potts] + 1]
    for k, m in np.unique(cards[~potts], axis=0).tolist():
        if k != m:
            raise _refusal(f"a table has {k} by {m} states")
        group = np.flatnonzero(~potts & (cards == k).all(axis=1))
        tables = factors.log_potentials[starts[group][:, None] + np.arange(k * k)].reshape(-1, k, k)
        if k == 2 and np.isfinite(tables).all():
            coupling[group] = _absorbed(tables, ends[group], base, graph.state_offsets)
        else:
            coupling[group] = _coupling(tables)
    if (coupling < 0).any():
        raise _refusal("a coupling makes neighbours differ")
    return coupling, base


def _absorbed(tables: Array, ends: IntArray, base: Array, state_offsets: IntArray) -> Array:
    """Split t(i, j) = t(0, 0) - c + a [i = 1] + b [j = 1] + c [i = j]; add a and b to base."""
    coupling = (tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]) / 2
    added = np.zeros(base.shape[1])
    np.add.at(added, state_offsets[ends[:, 0]] + 1, tables[:, 1, 0] - tables[:, 0, 0] + coupling)
    np.add.at(added, state_offsets[ends[:, 1]] + 1, tables[:, 0, 1] - tables[:, 0, 0] + coupling)
    base += added
    return np.where(np.abs(coupling) < FORM, 0.0, coupling)


def _coupling(tables: Array) -> Array:
    """c of tables a + c [i = j] (n, K, K); -inf off the diagonal is c = inf."""
    k = tables.shape[1]
    same = np.eye(k, dtype=np.bool_)
    on, off = tables[:, same], tables[:, ~same]
    level = off[:, 0] if off.shape[1] else on[:, 0]
    finite = np.where(np.isfinite(level), level, 0.0)[:, None]
    flat = (off == level[:, None]) | (np.abs(off - finite) <= FORM)
    if not (np.isfinite(on).all() and (np.ptp(on, axis=1) <= FORM).all() and flat.all()):
        raise _refusal("a table is not of the form a + c [i = j]")
    return np.asarray(on[:, 0] - level)


def _refusal(why: str) -> CapabilityError:
    return CapabilityError(
        f"scan='swendsen_wang' needs Ising or Potts factors that make neighbours agree, but {why}; use scan='chromatic'"
    )
