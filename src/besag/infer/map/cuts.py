"""The best labelling that takes the state of each variable from one of two, as far as a minimum cut tells: `Cut`.

The energy of such a choice is quadratic in binary variables (`kernels/quadratic`). Where it is submodular, perhaps
after exchanging the two states of some variables, a minimum cut of a network with a node for each variable is a best
choice. Elsewhere roof duality (Boros and Hammer, Discrete Applied Mathematics 2002; Kolmogorov and Rother, PAMI 2007)
has a node for each of the two states: the cut bounds the energy from below and tells the state of some variables.
Taking these states makes no labelling worse, whatever the others are.

    V variables; labels (V,): 0 or 1, which of the two, or -1 where the cut does not tell
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.errors import CapabilityError
from besag.infer.map.kernels.flow import make_arcs, make_grow, make_plant, new_flow
from besag.infer.map.kernels.quadratic import (
    Choices,
    Room,
    make_count,
    make_double,
    make_flips,
    make_involved,
    make_quadratic,
)
from besag.infer.map.landscape import Landscape
from besag.infer.memory import refuse
from besag.kernels.compile import kernel_of

MOST_CHOICES = 12  # of the variables of a factor
SMALL_SHARE = 4  # times the variables with a choice, up to which only their factors are looked at
EDGE_BYTES, NODE_BYTES = (100, 160), (210, 260)  # of a network, and of one with both states of each variable
ALL_OF_IT = 2**62  # the work


class Cut:
    """See the module. zero, one (V,) are states, the same where there is no choice.

    whole: whether `bounds` are wanted, for which all factors count, also those about which nothing is to be chosen.
    submodular: whether the cut is a best choice; flipped: how many variables had their states exchanged for that.
    """

    def __init__(
        self,
        landscape: Landscape,
        row: int,
        zero: IntArray,
        one: IntArray,
        *,
        soft: bool = False,
        whole: bool = True,
    ) -> None:
        self.landscape, self.zero, self.flipped = landscape, zero, 0
        self.compile = landscape.setting.goes_on()
        self.factors = landscape.soft_factors if soft else landscape.factors
        self.base = landscape.soft_base(row) if soft else landscape.base(row)
        self.chosen = freeze(np.flatnonzero(zero != one))
        nodes = np.full(len(zero), -1)
        nodes[self.chosen] = np.arange(len(self.chosen))
        self.choices = Choices(freeze(zero), freeze(one), freeze(nodes))
        self.some = self._some(whole)
        room, unlike = self._quadratic()
        if unlike and np.isfinite(room.unary).all() and self._flip():
            room, unlike = self._quadratic()
        self.room, self.submodular = room, unlike == 0
        self._build()

    def _some(self, whole: bool) -> IntArray:
        """The factors that count: all of them, unless few variables have a choice."""
        chosen, axes = self.chosen, self.landscape.axes
        if whole or SMALL_SHARE * len(chosen) > len(self.zero):
            return freeze(np.arange(len(self.factors.kinds)))
        some = np.empty(int((axes.first[chosen + 1] - axes.first[chosen]).sum()), np.int64)
        kernel = kernel_of(make_involved, compile=self.compile)
        return freeze(some[: kernel(self.factors, axes, self.choices, chosen, some)])

    def _quadratic(self) -> tuple[Room, int]:
        """The energy, and how many of its edges are not submodular."""
        n_edges, n_extras, most = self._count()
        if most > MOST_CHOICES:
            raise CapabilityError(self._too_many(most))
        n = len(self.chosen)
        self._refuse(n + n_extras, n_edges, 0)
        room = Room(
            np.zeros(len(self.zero)), np.zeros(n + n_extras), np.empty(n_extras, np.int64),
            np.empty(2 * n_edges, np.int32), np.empty(2 * n_edges), np.empty(n_edges, np.int8),
        )  # fmt: skip
        penalty = self.landscape.penalty if most > 2 else 0.0
        given = (self.factors, self.landscape.axes, self.base, self.choices, self.some, penalty, most)
        edges, extras, unlike = kernel_of(make_quadratic, compile=self.compile)(*given, room)
        room = room._replace(unary=room.unary[: n + extras], owners=room.owners[:extras], ends=room.ends[: 2 * edges])
        return room._replace(capacities=room.capacities[: 2 * edges], unlike=room.unlike[:edges]), unlike

    def _refuse(self, n_nodes: int, n_edges: int, doubled: int) -> None:
        needed, limit = EDGE_BYTES[doubled] * n_edges + NODE_BYTES[doubled] * n_nodes, self.landscape.setting.limit
        refuse("the network of a cut", needed, limit, "use more memory, or engine='local_search'")

    def _count(self) -> tuple[int, int, int]:
        """The most edges and extra variables that there may be, and of variables with a choice in a factor."""
        arities = np.diff(self.factors.scope_offsets)
        if arities.max(initial=0) <= 2:
            return min(len(self.some), int((arities == 2).sum())), 0, 2
        return kernel_of(make_count, compile=self.compile)(self.factors, self.choices, self.some)

    def _too_many(self, most: int) -> str:
        graph, chosen = self.landscape.graph, self.choices.zero != self.choices.one
        counts = np.add.reduceat(chosen[graph.scope_variables], graph.scope_offsets[:-1], dtype=np.int64)
        factor = graph.factor_name(int(np.argmax(counts)))
        return (
            f"factor {factor} is on {most} variables with two states, and cuts take factors on at most {MOST_CHOICES}; "
            "use engine='local_search' or 'auto'"
        )

    def _flip(self) -> bool:
        """Exchanges states where that makes the energy submodular; whether it does."""
        factors, choices = self.factors, self.choices
        given = (factors, self.landscape.axes, choices, self.landscape.penalty, self._count()[2])
        roots, flips = np.empty(len(self.chosen), np.int64), np.empty(len(self.zero), np.int64)
        if not kernel_of(make_flips, compile=self.compile)(*given, roots, flips):
            return False
        self.flipped, swap = int(flips.sum()), flips == 1
        zero, one = np.where(swap, choices.one, choices.zero), np.where(swap, choices.zero, choices.one)
        self.choices = Choices(freeze(zero), freeze(one), choices.nodes)
        return True

    def _build(self) -> None:
        """The network, with nothing flowing in it."""
        room, compile = self.room, self.compile
        n, m = len(room.unary), len(room.unlike)
        self._refuse(n, m, int(not self.submodular))
        if self.submodular:
            excess, ends, capacities = np.array(room.unary), room.ends, room.capacities
        else:
            excess, ends, capacities = np.empty(2 * n), np.empty(4 * m, np.int32), np.empty(4 * m)
            kernel_of(make_double, compile=compile)(room, n, m, excess, ends, capacities)
        self.flow = new_flow(excess, len(ends))
        kernel_of(make_arcs, compile=compile)(ends, capacities, self.flow)
        kernel_of(make_plant, compile=compile)(self.flow)

    def grow(self, work: int = ALL_OF_IT) -> bool:
        """Makes the flow larger by so much work; whether it is a maximum."""
        return kernel_of(make_grow, compile=self.compile)(self.flow, work)

    @property
    def labels(self) -> IntArray:
        """See the module; of a flow that is a maximum."""
        sides, n, labels = self.flow.sides, len(self.chosen), np.zeros(len(self.zero), np.int64)
        if self.submodular:
            labels[self.chosen] = np.where(sides[:n] < 0, 1, 0)
            return labels
        one_way, other_way = sides[:n] > 0, sides[len(sides) // 2 :][:n] > 0
        told = one_way != other_way  # both are reached by rounding alone
        labels[self.chosen] = np.where(told, np.where(one_way, 0, 1), -1)
        return labels

    @property
    def codes(self) -> IntArray:
        """(V,): the labelling; zero, as it was given, where the cut does not tell."""
        labels = self.labels
        return np.where(labels < 0, self.zero, np.where(labels == 1, self.choices.one, self.choices.zero))

    def gain_over(self, codes: IntArray) -> float | None:
        """How much less the energy is than that of one of the choices, of a flow that is a maximum; None if unknown."""
        room, n = self.room, len(self.chosen)
        if not self.submodular or not np.isfinite(room.unary).all():
            return None
        x, before = codes[self.chosen] == self.choices.one[self.chosen], 0.0
        if x.any():
            if len(room.owners):
                return None
            s, t = x[room.ends[1::2]], x[room.ends[::2]]
            costs = np.where(s, room.capacities[1::2], room.capacities[::2])
            before = float(room.unary[:n][x].sum() + costs[s != t].sum())
        return before - float(self._of_nodes().sum())

    @property
    def bounds(self) -> Array:
        """(V,): their sum is a lower bound on the energy of all choices, at any flow; so is that of an instance.

        Where hard zeros make a state impossible whatever the others are, it is to be no choice.
        """
        room, of_nodes, n = self.room, self._of_nodes(), len(self.chosen)
        bounds = room.constants + np.bincount(room.owners, weights=of_nodes[n:], minlength=len(room.constants))
        bounds[self.chosen] += of_nodes[:n]
        return bounds

    def _of_nodes(self) -> Array:
        """(n + r,): what each node adds to the bound."""
        room, excess = self.room, self.flow.excess
        low = np.minimum(room.unary, 0.0)
        sent = room.unary - low - np.maximum(excess[: len(low)], 0.0)
        if not self.submodular:
            sent = 0.5 * (sent - low - np.maximum(excess[len(low) :], 0.0))
        return np.asarray(low + sent)


def fuse(landscape: Landscape, row: int, codes: IntArray, other: IntArray, *, soft: bool = False) -> IntArray:
    """(V,): of two labellings the best one that takes each variable from either, as far as a cut tells.

    Where the energy between both is submodular, that is the best of all; else it is never worse than codes. soft: hard
    zeros weigh the landscape's penalty, for codes whose energy is infinite.
    """
    cut = Cut(landscape, row, codes, other, soft=soft, whole=False)
    cut.grow()
    return cut.codes
