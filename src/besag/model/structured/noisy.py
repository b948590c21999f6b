"""Noisy-MAX: a child that is the strongest of independent effects of its parents, and with it noisy-OR and noisy-AND.

The states of the child are ranked, rank 0 the weakest. Parent i in state x has an effect of its own, Y_i, drawn from a
row of probabilities, and so have causes outside of the model, Y_0, the leak; the child is the strongest of them:

    p(Y_i = y | x) = effects_i[x, y],   q = its running sum from the weakest rank up to y
    p(Y <= y | x_1 .. x_n) = q_0(y) q_1(x_1, y) .. q_n(x_n, y)                  n products instead of 2^n entries

    noisy-OR    binary, the weakest state off:   p(off | x) = (1 - leak) prod over parents i that are on of (1 - p_i)
    noisy-AND   binary, the weakest state on:    p(on | x) = (1 - leak) prod over parents i that are off of (1 - p_i)

So p_i is what parent i does alone, without the leak (Diez 1993; what GeNIe stores): alone, with the leak, it has the
effect 1 - (1 - p_i)(1 - leak). p(Y = y) is a difference of such products, in which small numbers would cancel. It is
computed parent by parent instead, of positive terms, M_i being the strongest of Y_0 .. Y_i:

    p(M_i = m) = p(M_{i-1} = m) q_i(m) + p(M_{i-1} < m) p_i(m)

That is a chain, M_0 -> M_1 -> .. -> M_n = Y, of tables on (M_{i-1}, x_i, M_i): exact sums need no other
(`besag.graph.unfolded`). The M_i are random given all parents and the child, so that they have to be summed out also
where a best labelling is asked for.

    Shapes    n parents of K_1 .. K_n states, R = K_1 + .. + K_n + 1 rows, K states of the child
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, offsets_of, secure
from besag.errors import ModelError
from besag.model.given import numbers
from besag.model.structured.base import Structured, real_number

TOLERANCE = 1e-6  # within which a row must sum to one


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMax(Rebuilt, Structured):
    """energy -weight log p(child | parents), the child the last variable of the scope; weight 1 makes it a CPT.

    effects (R, K): for each parent a row for each of its states, in order, and last the leak; columns are the states of
    the child. cardinalities (n,) of the parents. ranks (K,): how strong each state of the child is, 0 the weakest; they
    go up with the states, or down.

    >>> NoisyMax([[1, 0], [0.2, 0.8], [0.9, 0.1]], [2], [0, 1]).table().round(3)
    array([[0.9 , 0.1 ],
           [0.18, 0.82]])
    """

    kind: ClassVar[int] = Kind.NOISY
    name: ClassVar[str] = "noisy_max"
    conditional: ClassVar[bool] = True
    effects: Array
    cardinalities: IntArray
    ranks: IntArray

    def __post_init__(self) -> None:
        effects = np.asarray(self.effects, np.float64)
        cardinalities = np.asarray(self.cardinalities).astype(np.int64)
        ranks = np.asarray(self.ranks).astype(np.int64)
        if effects.ndim != 2 or cardinalities.ndim != 1 or len(effects) != int(cardinalities.sum()) + 1:
            raise ModelError(
                f"a noisy-MAX needs a row for each state of its parents and one for the leak, "
                f"{int(cardinalities.sum()) + 1}, got effects of shape {effects.shape}"
            )
        up = np.arange(effects.shape[1])
        if (cardinalities < 1).any() or not (np.array_equal(ranks, up) or np.array_equal(ranks, up[::-1])):
            raise ModelError("a noisy-MAX needs parents with states, and ranks that go up or down with its own states")
        sums = effects.sum(axis=1, keepdims=True)
        sound = (effects >= 0).all() and (effects <= 1 + TOLERANCE).all() and (np.abs(sums - 1) <= TOLERANCE).all()
        if not sound:
            raise ModelError("the effects of a noisy-MAX must be rows of probabilities that sum to one")
        for field, value in (("effects", effects / sums), ("cardinalities", cardinalities), ("ranks", ranks)):
            object.__setattr__(self, field, secure(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisyMax) and all(
            np.array_equal(getattr(self, field), getattr(other, field))
            for field in ("effects", "cardinalities", "ranks")
        )

    def __hash__(self) -> int:
        return hash((self.effects.tobytes(), self.cardinalities.tobytes()))

    @property
    def shape(self) -> tuple[int, ...]:
        """K_1 .. K_n, K."""
        return (*self.cardinalities.tolist(), self.effects.shape[1])

    @property
    def extent(self) -> int:
        """1 where ranks go down."""
        return int(self.ranks[0] > 0)

    @property
    def n_parameters(self) -> int:
        """One: the weight."""
        return 1

    @property
    def offsets(self) -> IntArray:
        """(n + 1,): where the rows of each parent begin, and the leak's."""
        return offsets_of(self.cardinalities)

    @property
    def is_positive(self) -> bool:
        """Whether every state of the child is possible, whatever the parents: by the leak, and as no effect is sure."""
        log_p, log_q = self.ranked()
        return bool((log_p[-1] > -np.inf).all() and (log_q > -np.inf).all())

    def levels(self) -> Array:
        """-log p and -log q, (1, 2 R K)."""
        return 0.0 - np.stack(self.ranked()).reshape(1, -1)

    def ranked(self) -> tuple[Array, Array]:
        """log p and log q, (R, K), by rank."""
        p = self.effects[:, np.argsort(self.ranks)]
        q = np.minimum(np.cumsum(p, axis=1), 1.0)
        q[:, -1] = 1.0
        with np.errstate(divide="ignore"):
            return np.log(p), np.log(q)

    def features(self, labels: IntArray) -> Array:
        """-log p(child | parents) of (..., n + 1) codes: (..., 1)."""
        rows = np.concatenate(
            [self.offsets[:-1] + labels[..., :-1], np.full((*labels.shape[:-1], 1), self.offsets[-1])], -1
        )
        strongest = self.strongest([rows[..., i] for i in range(rows.shape[-1])])
        return -np.take_along_axis(strongest, self.ranks[labels[..., -1:]], axis=-1)

    def strongest(self, rows: Sequence[Any]) -> Array:
        """log p, (..., K) by rank, of the strongest effect of rows, arrays of numbers that are broadcast."""
        log_p, log_q = self.ranked()
        found, at_most = log_p[rows[0]], log_q[rows[0]]
        for row in rows[1:]:
            weaker = np.concatenate([np.full((*at_most.shape[:-1], 1), -np.inf), at_most[..., :-1]], axis=-1)
            found = np.logaddexp(found + log_q[row], weaker + log_p[row])
            at_most = at_most + log_q[row]
        return np.asarray(found)

    def conditioned(self, parents: Sequence[int | None]) -> Array:
        """log p, (K_i of the parents that are free.., K) by state, given codes of the others."""
        free = [i for i, code in enumerate(parents) if code is None]
        rows: list[Any] = [int(self.offsets[-1])]
        rows += [int(self.offsets[i]) + code for i, code in enumerate(parents) if code is not None]
        for place, i in enumerate(free):
            below = (1,) * (len(free) - place - 1)
            rows.append(np.arange(self.offsets[i], self.offsets[i + 1]).reshape(-1, *below))
        return np.asarray(self.strongest(rows)[..., self.ranks])

    def weakest(self) -> list[Array]:
        """Log-potentials of each parent, (K_i,), and of the child, (K,), that are log p where the child is weakest."""
        _, log_q = self.ranked()
        alone, starts = log_q[:, 0], self.offsets.tolist()
        of_child = np.full(self.effects.shape[1], -np.inf)
        of_child[self.ranks == 0] = alone[-1]
        return [*(alone[a:b] for a, b in pairwise(starts)), of_child]

    def table(self) -> Array:
        """The CPT (K_1 .. K_n, K); numbers below 1e-300 may be lost."""
        p = self.effects[:, np.argsort(self.ranks)]
        q = np.minimum(np.cumsum(p, axis=1), 1.0)
        found, at_most = p[-1], q[-1]
        for first, last in pairwise(self.offsets.tolist()):
            weaker = np.append(np.zeros((*at_most.shape[:-1], 1)), at_most[..., :-1], axis=-1)
            found = found[..., None, :] * q[first:last] + weaker[..., None, :] * p[first:last]
            at_most = at_most[..., None, :] * q[first:last]
        return np.asarray(found[..., self.ranks])

    def dense(self) -> Array:
        """-log p, (1, K_1 .. K_n, K)."""
        self.refuse_table()
        return 0.0 - self.conditioned([None] * len(self.cardinalities))[None]

    def links(self, order: Sequence[int]) -> list[Array]:
        """The chain's log-potentials, parents in an order: (K_1, K), and (K, K_i, K) of M_{i-1}, x_i, M_i.

        Helpers are numbered by rank, the last axis of the last table by the states of the child.
        """
        log_p, log_q = self.ranked()
        n = self.effects.shape[1]
        before, after = np.arange(n)[:, None], np.arange(n)
        steps = np.where(before < after, log_p[:, None, :], np.where(before == after, log_q[:, None, :], -np.inf))
        starts = self.offsets.tolist()
        tables = [np.moveaxis(steps[starts[i] : starts[i + 1]], 1, 0) for i in order]
        first = np.arange(starts[order[0]], starts[order[0] + 1])
        tables[0] = self.strongest([np.full(len(first), starts[-1]), first])
        tables[-1] = tables[-1][..., self.ranks]
        return tables


def noisy_or(probabilities: Sequence[float], leak: float = 0.0) -> NoisyMax:
    """p(child = 0 | x) = (1 - leak) prod over parents i in state 1 of (1 - p_i), all binary, the child last.

    >>> import besag
    >>> model = besag.bayesian_network("A -> B <- C", cpts={"B": besag.factors.noisy_or([0.8, 0.3], leak=0.01)})
    >>> model.cpt("B")[..., 1].round(4)
    array([[0.01  , 0.307 ],
           [0.802 , 0.8614]])
    """
    return _binary(probabilities, leak, on=1, acts=1)


def noisy_and(probabilities: Sequence[float], leak: float = 0.0) -> NoisyMax:
    """p(child = 1 | x) = (1 - leak) prod over parents i in state 0 of (1 - p_i), all binary, the child last.

    >>> noisy_and([0.8, 0.3]).table()[..., 1].round(4)
    array([[0.14, 0.2 ],
           [0.7 , 1.  ]])
    """
    return _binary(probabilities, leak, on=0, acts=0)


def noisy_max(effects: Sequence[Any], leak: Any = None, weakest: int = 0) -> NoisyMax:
    """The strongest of the effects of parents, tables (K_i, K) of rows that sum to one, and of a leak (K,), if any.

    The states of the child are in the order of their strength: weakest, the first one or the last one, is no effect.

    >>> noisy_max([[[1, 0, 0], [0.5, 0.3, 0.2]], [[1, 0, 0], [0.1, 0.9, 0]]]).table()[1, 1].round(3)
    array([0.05, 0.75, 0.2 ])
    """
    if isinstance(effects, str) or not isinstance(effects, Iterable):
        raise ModelError(f"a noisy-MAX needs a table for each parent, got {effects!r}")
    tables = [numbers(table, "the effects of a noisy-MAX").astype(np.float64) for table in effects]
    n = tables[0].shape[-1] if tables and tables[0].ndim == 2 else 0
    if n == 0 or any(table.ndim != 2 or table.shape[1] != n for table in tables):
        raise ModelError("a noisy-MAX needs one or more tables (states of a parent, states of the child)")
    if weakest not in (0, n - 1):
        raise ModelError(f"the weakest state of a noisy-MAX must be its first or its last, 0 or {n - 1}, got {weakest}")
    none = np.eye(n)[weakest] if leak is None else numbers(leak, "the leak of a noisy-MAX").astype(np.float64)
    if none.shape != (n,):
        raise ModelError(
            f"the leak of a noisy-MAX must be {n} probabilities, one for each state, got shape {none.shape}"
        )
    ranks = np.arange(n) if weakest == 0 else np.arange(n)[::-1]
    return NoisyMax(np.concatenate([*tables, none[None]]), np.array([len(table) for table in tables]), ranks)


def _binary(probabilities: Sequence[float], leak: float, *, on: int, acts: int) -> NoisyMax:
    """The effect `on` of parents in the state `acts`."""
    p = numbers(probabilities, "noisy-OR and noisy-AND").astype(np.float64)
    leak = real_number("noisy-OR and noisy-AND", "the leak", leak)
    if p.ndim != 1 or not len(p) or not ((p >= 0) & (p <= 1)).all() or not 0 <= leak <= 1:
        raise ModelError(
            f"noisy-OR and noisy-AND need one or more probabilities, and a leak from 0 to 1, got {probabilities!r}, "
            f"leak={leak!r}"
        )
    tables = np.zeros((len(p), 2, 2))
    tables[:, 1 - acts, 1 - on] = 1.0
    tables[:, acts, on], tables[:, acts, 1 - on] = p, 1 - p
    spare = np.empty(2)
    spare[on], spare[1 - on] = leak, 1 - leak
    return noisy_max(list(tables), spare, weakest=1 - on)
