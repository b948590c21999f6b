"""Two layers of binary variables, every variable of one tied to every one of the other: sweeps are matrix products.

    f_left = field_left + y_right W^T,    f_right = field_right + y_left W        W (n_left, n_right)

That is a restricted Boltzmann machine, whose weights are the numbers of one bilinear block: a sweep reads each of them
once for all chains, where factor by factor each chain reads them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Kind, freeze, invert
from besag.graph.graph import Graph
from besag.infer.iterate import Look, no_look
from besag.infer.prepared import Prepared
from besag.infer.sampling.kernels.layers import make_draw_layer
from besag.kernels.compile import kernel_of
from besag.kernels.random import sweep_key
from besag.kernels.threads import run_chunks

LEAST_FACTORS = 256  # with fewer, products are not worth their calls
CHUNK = 16  # units of a task
WORTH_THREADS = 1 << 16  # states drawn, from which a pool of threads is worth it
CERTAIN = 1e4  # log-odds of a state fixed by evidence, beyond all that neighbours can contribute


class LayerPair(NamedTuple):
    """The variables of both layers, and the block of the factors between them, row by row of W."""

    left: IntArray
    right: IntArray
    block: int


def layers_in(graph: Graph) -> LayerPair | None:
    """The two layers that make up a graph, or None."""
    found: LayerPair | None = graph.plans.get("layers", lambda: _find(graph))
    return found


def _find(graph: Graph) -> LayerPair | None:
    paired = [n for n, block in enumerate(graph.blocks) if block.scopes.shape[1] > 1 and len(block.scopes)]
    if len(paired) != 1 or graph.n_instances > 1 or graph.variables.common_cardinality != 2:
        return None
    block = graph.blocks[paired[0]]
    if block.template.kind != Kind.BILINEAR:
        return None
    left, right = (np.unique(block.scopes[:, axis]) for axis in (0, 1))
    n = len(left) * len(right)
    if len(block.scopes) != n or len(left) + len(right) != graph.n_variables:
        return None
    expected = np.stack([np.repeat(left, len(right)), np.tile(right, len(left))], axis=1)
    whole = (block.scopes == expected).all() and len(np.intersect1d(left, right)) == 0
    return LayerPair(left, right, paired[0]) if whole else None


class Layers:
    """The sampler of two layers; states and sums stand left before right.

    `visits` (V,): the variable at each place; `places` (V,): the place of each.
    """

    def __init__(
        self, setting: Prepared, pair: LayerPair, n_chains: int, n_threads: int | None, dtype: str, own: Array
    ) -> None:
        self.setting, self.n_chains, self.n_threads = setting, n_chains, n_threads
        self.visits = np.concatenate([pair.left, pair.right])
        self.places = invert(self.visits)
        number = setting.number_type(dtype)
        self.given_weights = freeze(_weights(setting, pair).astype(number))
        sizes = len(pair.left), len(pair.right)
        units = setting.n_rows * n_chains
        self.layers: list[AnyArray] = [np.zeros((units, n), number) for n in sizes]
        self.sums = np.zeros((units, sum(sizes)))
        self.own = own[:, self.visits]
        reach = np.concatenate([np.abs(self.given_weights).sum(axis=axis) for axis in (1, 0)])
        self.certain = np.copysign(CERTAIN + reach.astype(np.float64), self.own)
        self.temper(1.0, -np.inf)

    @property
    def moved(self) -> bool:
        """A sweep draws all of them."""
        return True

    def temper(self, beta: float, hard: float) -> None:
        """Multiply the weights by beta; there are no hard zeros among them."""
        self.weights = freeze(self.given_weights * self.given_weights.dtype.type(beta))
        fields = np.where(np.isinf(self.own), self.certain, self.own)
        cut = self.layers[0].shape[1]
        self.fields = freeze(fields[:, :cut]), freeze(fields[:, cut:])

    def start(self, codes: IntArray) -> None:
        """Begin at labellings (R, C, V)."""
        shaped, cut = codes[..., self.visits].reshape(len(self.sums), -1), self.layers[0].shape[1]
        self.layers[0][:], self.layers[1][:] = shaped[:, :cut], shaped[:, cut:]

    def codes(self) -> IntArray:
        """(R, C, V)."""
        states = np.concatenate(self.layers, axis=1)[:, self.places]
        return states.astype(np.int64).reshape(self.setting.n_rows, self.n_chains, -1)

    def peek(self, rows: IntArray, variables: IntArray) -> AnyArray:
        """(T, C)."""
        places, cut = self.places[variables], self.layers[0].shape[1]
        by_row = [x.reshape(self.setting.n_rows, self.n_chains, -1) for x in self.layers]
        return np.array(
            [by_row[0][r, :, p] if p < cut else by_row[1][r, :, p - cut] for r, p in zip(rows, places, strict=True)]
        ).reshape(len(rows), self.n_chains)

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """Both layers, the left one first."""
        kernel = kernel_of(make_draw_layer, compile=self.setting.compile)
        scores, start = np.zeros(len(self.sums)), 0
        for layer, weights in enumerate((self.weights.T, self.weights)):
            look()
            x = self.layers[layer]
            np.matmul(self.layers[1 - layer], weights, out=x)
            own = sweep_key(key, layer)
            given = self.fields[layer], self.n_chains, own, start

            def task(chunk: int, given: tuple[Array, int, int, int] = given, x: AnyArray = x) -> None:
                first = chunk * CHUNK
                kernel(*given, first, min(first + CHUNK, len(x)), keep, x, self.sums, scores)

            run_chunks(task, -(-len(x) // CHUNK), self.n_threads if x.size >= WORTH_THREADS else 1)
            start += x.shape[1]
        return scores.reshape(self.setting.n_rows, self.n_chains)

    def pair_totals(self) -> Array:
        """(R, C): the log-potentials of the factors between the layers, not tempered."""
        products = (self.layers[0] @ self.given_weights) * self.layers[1]
        return np.asarray(products.sum(axis=1, dtype=np.float64).reshape(self.setting.n_rows, self.n_chains))

    def chains(self, sums: Array) -> Array:
        """(R, C, V), left before right."""
        return sums.reshape(self.setting.n_rows, self.n_chains, -1)

    def of_states(self, means: Array, *, errors: bool = False) -> Array:
        """(R, V) -> (R, 2 V)."""
        means = means[:, self.places]
        zero = means if errors else 1.0 - means
        return np.stack([zero, means], axis=2).reshape(len(means), -1)


def _weights(setting: Prepared, pair: LayerPair) -> Array:
    """W: the log-potential of both being 1, as stored."""
    tables, readers = setting.given.block_tables(pair.block)
    return np.asarray(tables.reshape(-1)[readers].reshape(len(pair.left), len(pair.right)))
