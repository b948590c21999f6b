"""The structure of a Markov network by neighbourhood selection (Meinshausen and Buhlmann 2006; Ravikumar et al. 2010).

Each variable v is predicted from all others by a multinomial logistic regression whose blocks of weights are penalised
as wholes, so that few of them are not 0; u is a neighbour of v where the block W_uv (K_u, K_v) is not:

    minimise  - (1/N) sum_n log p(x_nv | x_n)  +  strength * sum_u c_uv |W_uv|
    p(x_v | x) proportional to exp(b_v[x_v] + sum_u W_uv[x_u, x_v])

c_uv = sqrt((K_u - 1)(K_v - 1)), 1 for binary variables (the Ising model); |.| is the root of the sum of squares.
All variables are fitted at once, by accelerated proximal gradient steps (Beck and Teboulle 2009), from the largest
strength of the path, at which no block is there, down to the smallest, each beginning where the one before ended.

X (N, S) one-hot columns minus their means, S = sum of K; W (S, S) of blocks, 0 on the diagonal ones. A strength of the
path is chosen by the extended BIC (Barber and Drton 2015):

    -2 sum log p  +  log(N) d  +  4 gamma log(V) d       d: the sum of (K_u - 1)(K_v - 1) over blocks that are not 0

where p is fitted again with these blocks and no penalty, which would draw the likelihood of few blocks down most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.errors import CapabilityError
from besag.graph.directed.pdag import PDAG
from besag.infer.iterate import Clock, Stopped, drive
from besag.learn.networks.structure.learn import check_weights, read_columns
from besag.registry import is_number

SMALLEST = 0.003  # strength of the path, as a share of the largest
STEPS = 500  # for one strength


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourhoodPath:
    """The blocks at every strength, largest first.

    strengths (L,); norms (L, V, V): |W_uv|, of u for v; ebic (L,); stopped: converged, time_limit or interrupted, which
    leave the later strengths out.
    """

    names: tuple[str, ...]
    strengths: Array
    norms: Array
    ebic: Array
    stopped: str

    @property
    def best(self) -> int:
        """The number of the strength with the least extended BIC."""
        return int(np.argmin(self.ebic))

    def joined(self, number: int | None = None, rule: str = "and") -> BoolArray:
        """(V, V): which pairs are neighbours at a strength, the best by default; each of the other, or one ("or")."""
        if rule not in ("and", "or"):
            raise CapabilityError(f'rule must be "and" or "or", got {rule!r}')
        chosen = self.norms[self.best if number is None else number] > 0
        return np.asarray(chosen & chosen.T if rule == "and" else chosen | chosen.T)

    def graph(self, number: int | None = None, rule: str = "and") -> PDAG:
        """The same with names, all edges undirected."""
        return PDAG(self.names, self.joined(number, rule))


def select_neighbourhoods(
    codes: AnyArray | Sequence[AnyArray],
    cardinalities: Any,
    weights: Array | None = None,
    *,
    names: Iterable[str] | None = None,
    strengths: int | Sequence[float] = 20,
    gamma: float = 0.25,
    tolerance: float = 1e-4,
    time_limit: float | None = None,
) -> NeighbourhoodPath:
    """The path of neighbourhoods of V columns of codes (N,). strengths: how many, or which. gamma: of the extended BIC.

    >>> rng = np.random.default_rng(0)
    >>> a, c = rng.integers(0, 2, (2, 400)).astype(np.uint8)
    >>> b = np.where(rng.random(400) < 0.9, a, 1 - a).astype(np.uint8)
    >>> select_neighbourhoods([a, b, c], [2, 2, 2], names=["A", "B", "C"]).graph()
    PDAG(A - B)
    """
    sizes = np.asarray(cardinalities, np.int64)
    known = tuple(str(v) for v in range(len(sizes))) if names is None else tuple(map(str, names))
    columns = read_columns(codes, sizes, known)
    given = check_weights(weights, columns.shape[1])
    rows, found = np.unique(columns.T, axis=0, return_inverse=True)
    fit = Regressions(rows, sizes, np.bincount(found.reshape(-1), given).astype(float), tolerance, gamma)
    path = fit.path(strengths)
    clock, norms, ebic = Clock(time_limit), list[Array](), list[float]()

    def advance() -> Stopped | None:
        if len(norms) == len(path):
            return "converged"
        fit.solve(float(path[len(norms)]), clock)
        norms.append(fit.norms())
        ebic.append(fit.ebic(clock))
        return None

    stopped = drive(advance)
    if not norms:  # nothing is joined at the largest strength
        norms, ebic = [np.zeros((len(sizes),) * 2)], [np.inf]
    return NeighbourhoodPath(known, path[: len(norms)], np.array(norms), np.array(ebic), stopped)


class Regressions:
    """The regressions of all variables at one strength; rows (D, V) distinct ones, counts (D,)."""

    def __init__(self, rows: AnyArray, sizes: IntArray, counts: Array, tolerance: float, gamma: float) -> None:
        self.sizes, self.tolerance, self.gamma = sizes, tolerance, gamma
        self.total, self.shares = float(counts.sum()), counts / counts.sum()
        self.starts = np.cumsum(sizes) - sizes
        self.of_state = np.repeat(np.arange(len(sizes)), sizes)
        self.hot = (rows[:, self.of_state] == np.arange(len(self.of_state)) - self.starts[self.of_state]).astype(float)
        self.x = self.hot - self.shares @ self.hot
        self.scale = np.sqrt(np.outer(sizes - 1, sizes - 1).astype(float))
        self.step = 1.0 / (0.5 * np.linalg.eigvalsh(self.x.T @ (self.x * self.shares[:, None]))[-1] + 1e-12)
        self.weights = np.zeros((len(self.of_state),) * 2)
        self.biases = np.log(np.maximum(self.shares @ self.hot, 0.5 / self.total))

    def path(self, asked: int | Sequence[float]) -> Array:
        """Strengths, largest first."""
        if isinstance(asked, int) and asked >= 1:
            _, slope = self.value_and_slope(self.weights, self.biases)
            scale = np.where(self.scale > 0, self.scale, np.inf)
            largest = (1 + 1e-9) * float((self._norms_of(slope) / scale).max())  # nothing is there, rounding or not
            return np.asarray(max(largest, 1e-12) * np.geomspace(1.0, SMALLEST, asked))
        if isinstance(asked, Sequence) and len(asked) and all(is_number(s) and s > 0 for s in asked):
            return np.sort(np.asarray(asked, np.float64))[::-1]
        raise CapabilityError(f"strengths must be numbers above 0, or how many of them, got {asked!r}")

    def solve(self, strength: float, clock: Clock) -> None:
        """The weights at a strength, from where they are."""
        self.weights, self.biases = self._minimum(strength, np.ones(self.scale.shape), clock)

    def _minimum(self, strength: float, allowed: Array, clock: Clock) -> tuple[Array, Array]:
        """Steps until weights change by less than the tolerance; allowed (V, V): blocks that may be there."""
        weights, biases, pace = self.weights, self.biases, 1.0
        ahead_w, ahead_b = weights, biases
        for _ in range(STEPS):
            clock.look()
            _, slope = self.value_and_slope(ahead_w, ahead_b)
            new_w = self._shrunk(ahead_w - self.step * slope, self.step * strength, allowed)
            new_b = ahead_b - self._bias_slope
            change_w, change_b = new_w - weights, new_b - biases
            uphill = float(((ahead_w - new_w) * change_w).sum()) > 0  # then momentum begins anew (O'Donoghue, Candes)
            following = 1.0 if uphill else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * pace * pace))
            momentum = 0.0 if uphill else (pace - 1.0) / following
            weights, biases, pace = new_w, new_b, following
            ahead_w, ahead_b = weights + momentum * change_w, biases + momentum * change_b
            if max(np.abs(change_w).max(initial=0.0), np.abs(change_b).max()) < self.tolerance:
                break
        return weights, biases

    def value_and_slope(self, weights: Array, biases: Array) -> tuple[float, Array]:
        """sum log p of all variables over N, and the slope of its negative in the weights; that in biases is kept."""
        logits = self.x @ weights + biases
        logits -= np.maximum.reduceat(logits, self.starts, axis=1)[:, self.of_state]
        exps = np.exp(logits)
        sums = np.add.reduceat(exps, self.starts, axis=1)
        value = float(self.shares @ ((self.hot * logits).sum(axis=1) - np.log(sums).sum(axis=1)))
        error = (exps / sums[:, self.of_state] - self.hot) * self.shares[:, None]
        self._bias_slope = error.sum(axis=0)
        slope = self.x.T @ error
        slope[self.of_state[:, None] == self.of_state[None, :]] = 0.0
        return value, slope

    def norms(self) -> Array:
        """|W_uv| (V, V)."""
        return self._norms_of(self.weights)

    def ebic(self, clock: Clock) -> float:
        """The extended BIC of the blocks that are there."""
        there = self.norms() > 0
        value, _ = self.value_and_slope(*self._minimum(0.0, there.astype(float), clock))
        freedom = float((self.scale**2)[there].sum())
        each = float(np.log(self.total) + 4 * self.gamma * np.log(len(self.sizes)))
        return -2 * self.total * value + freedom * each

    def _norms_of(self, blocks: Array) -> Array:
        squares = np.add.reduceat(np.add.reduceat(blocks**2, self.starts, axis=0), self.starts, axis=1)
        return np.asarray(np.sqrt(squares))

    def _shrunk(self, blocks: Array, by: float, allowed: Array) -> Array:
        norms = self._norms_of(blocks)
        factor = allowed * np.maximum(0.0, 1.0 - by * self.scale / np.maximum(norms, 1e-300))
        return np.asarray(blocks * factor[self.of_state][:, self.of_state])
