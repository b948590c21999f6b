"""A search for one row of evidence that goes on as long as there is time: climbs by block moves, and fusion.

Moves, none of which makes a labelling worse, by level:

    0    tabu      flips, up and down (`kernels/tabu`), once
    1    forest    a random forest solved exactly given the rest
    2..  strips    random strips of more and more bits, solved exactly given the rest

A climb goes up the levels, each as long as it does not fail PATIENCE times in a row. The first one begins where the
search does and goes on as long as a move takes no more than SHARE of the time so far. Then climbs of quick moves begin
elsewhere: at a random labelling, or at the best one after moves of strips in problems with noise on them, less each
time; whichever has paid more so far comes more often. What they come to is fused with the best labelling; where that
gains, or nothing has for a while, the best one climbs on with large moves.

A strip that is the whole graph is an exact answer: `proven`. Weights are -H, with penalties for hard zeros.
"""

from __future__ import annotations

import time

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.infer.map.blocks import MOST_BITS, Blocks
from besag.infer.map.flips import no_flips
from besag.infer.map.kernels.scores import make_weigh
from besag.infer.map.kernels.tabu import make_tabu
from besag.infer.map.labellings import CLOSED
from besag.infer.map.landscape import Landscape
from besag.kernels.compile import kernel_of

PATIENCE = 3
STEP = 2.0  # bits from level to level
SHARE = 0.1  # of the time that has gone by, that one large move may take
QUICK = 0.05  # seconds that any move may take
POOL = 8  # labellings that climbs have come to
FUSION_BITS = 14.0  # of the tables of a fusion, at first
FLIPS = 20  # of a tabu search, for each variable
MOST_FLIPS = 100_000
MOST_VISITS = 5e7  # of states in factors without tables: a flip makes all their variables read them again
SHAKEN = 3  # the level of moves with noise
CALMING, CALM = 0.8, 0.02  # noise from move to move, and where it ends
POLISHED = 20  # climbs in vain, after which the best labelling climbs again


class Climber:
    """The search for one row; best (V,) is the best labelling so far, of weight best_weight."""

    def __init__(
        self, landscape: Landscape, blocks: Blocks, row: int, codes: IntArray, rng: np.random.Generator
    ) -> None:
        self.landscape, self.blocks, self.row, self.rng = landscape, blocks, row, rng
        self.base = landscape.soft_base(row)
        self.codes, self.weight = np.array(codes), self.weigh(codes)
        self.best, self.best_weight = np.array(codes), self.weight
        self.proven, self.seconds, self.climbs, self.moves = False, 0.0, 0, 0
        self.costs: dict[int, float] = {}  # seconds that the last move of each level took
        self.level, self.failures, self.polishes, self.noise, self.in_vain = 0, 0, True, 0.0, 0
        self.stirred, self.pays = (
            0,
            np.ones((2, 2)),
        )  # successes and seconds of climbs, random and stirred
        self.scale, self.fusion_bits = self._typical_gain(), FUSION_BITS
        self.pool: list[IntArray] = []

    def _typical_gain(self) -> float:
        """How much one factor matters."""
        factors = self.blocks.factors
        if not len(factors.table_of_factor):
            return 1.0
        values, starts = factors.log_potentials, factors.table_offsets[:-1]
        spans = (np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts))[factors.table_of_factor]
        return float(np.median(spans)) or float(spans.mean()) or 1.0

    def weigh(self, codes: IntArray) -> float:
        """-H, with penalties."""
        kernel = kernel_of(make_weigh, compile=self.landscape.setting.goes_on())
        return float(kernel(self.blocks.factors, self.landscape.axes, self.base, codes))

    def offer(self, codes: IntArray) -> bool:
        """A labelling, also fused with the best one; whether that is better than the best one was."""
        before = self.best_weight
        self.note(codes, self.weigh(codes))
        fused = self._fuse(self.best, codes)
        self.note(fused, self.weigh(fused))
        return self.best_weight > before + CLOSED * (1.0 + abs(before))

    def _fuse(self, codes: IntArray, other: IntArray) -> IntArray:
        """The best of both, with tables as large as there is time for."""
        began = time.perf_counter()
        fused, whole = self.blocks.fuse(self.row, codes, other, self._key(), self.fusion_bits)
        took = time.perf_counter() - began
        if not whole and took < QUICK:
            self.fusion_bits = min(self.fusion_bits + STEP, MOST_BITS)
        elif took > 4.0 * QUICK:
            self.fusion_bits -= STEP
        return fused

    def _bred(self) -> IntArray:
        """What this climb has come to, fused with that of one before, in whose place it is kept."""
        if len(self.pool) < POOL:
            self.pool.append(self.codes)
            return self.codes
        which = int(self.rng.integers(len(self.pool)))
        self.pool[which] = self._fuse(self.codes, self.pool[which])
        return self.pool[which]

    def step(self) -> None:
        """One move."""
        began = time.perf_counter()
        if self.noise > 0:
            self._shake()
        else:
            self._climb()
        self.note(self.codes, self.weight)
        self.moves += 1
        took = time.perf_counter() - began
        self.seconds += took
        self.pays[self.stirred, 1] += 0.0 if self.polishes else took

    def _shake(self) -> None:
        """A move of strips in a problem with noise on it."""
        base = freeze(self.base + self.noise * self.rng.gumbel(size=len(self.base)))
        self.codes, _ = self._strips(SHAKEN, base)
        self.weight = self.weigh(self.codes)
        self.noise *= CALMING
        if self.noise < CALM * self.scale:
            self.noise = 0.0

    def _climb(self) -> None:
        began, level = time.perf_counter(), self.level
        after = self._moved(level)
        weight = self.weigh(after)
        gained = weight > self.weight + CLOSED * (1.0 + abs(self.weight))
        if weight >= self.weight:
            self.codes, self.weight = after, weight
        self.costs[level] = time.perf_counter() - began
        self.failures = 0 if gained and level > 0 else self.failures + 1
        if self.failures >= PATIENCE or level == 0:
            self._go_up()

    def _moved(self, level: int) -> IntArray:
        if level == 0:
            return self._tabu()
        if level == 1:
            return self.blocks.forest(self.row, self.codes, self._key())
        after, whole = self._strips(level)
        self.proven = self.proven or whole
        return after

    def _strips(self, level: int, base: Array | None = None) -> tuple[IntArray, bool]:
        bits = self.bits_of(level)
        width = bits / max(self.blocks.mean_bits, 1.0)
        period = 0 if self.rng.random() < 0.2 else 1 + int(width * self.rng.uniform(0.5, 1.1))
        return self.blocks.strips(self.row, self.codes, self._key(), bits, period, base)

    def _tabu(self) -> IntArray:
        codes, n = np.array(self.codes), len(self.codes)
        tenure = 3 + int(self.rng.integers(1, 10)) + n // 100
        n_flips = min(FLIPS * n, MOST_FLIPS, max(n, int(MOST_VISITS / self.landscape.visits)))
        kernel = kernel_of(make_tabu, compile=self.landscape.setting.goes_on())
        kernel(self.blocks.factors, self.landscape.axes, self.base, n_flips, tenure, no_flips(n), codes)
        return codes

    def _go_up(self) -> None:
        """The next larger moves; or, where they would take too long, the end of this climb."""
        self.failures = 0
        allowed = max(QUICK, SHARE * self.seconds) if self.polishes else QUICK
        if self.bits_of(self.level) < MOST_BITS and (self.level < 2 or 4.0 * self.costs[self.level] <= allowed):
            self.level += 1
        else:
            self._end_climb()

    def _end_climb(self) -> None:
        gained = not self.polishes and self.offer(self._bred())
        self.climbs += not self.polishes
        self.in_vain = 0 if gained else self.in_vain + (not self.polishes)
        self.pays[self.stirred, 0] += gained
        self.polishes = gained or self.in_vain >= POLISHED
        if self.polishes:
            self.in_vain, self.level = 0, max(self.level - 1, 2)
            self.codes, self.weight = np.array(self.best), self.best_weight
        else:
            self._begin_elsewhere()

    def _begin_elsewhere(self) -> None:
        worth = self.pays[:, 0] / self.pays[:, 1]
        self.stirred = int(self.rng.random() * worth.sum() >= worth[0])
        self.level = 1 if self.climbs % 5 else 0
        if not self.stirred:
            allowed = np.where(self.blocks.allowed[self.row], 0.0, -np.inf)
            self.codes = self.blocks.best_by(allowed - np.log(self.rng.standard_exponential(len(allowed))))
        else:
            self.codes, self.noise = np.array(self.best), self.scale * self.rng.uniform(0.1, 1.0)
        self.weight = self.weigh(self.codes)

    def bits_of(self, level: int) -> float:
        """Of the tables of strips at a level."""
        return min(self.blocks.least_bits + STEP * max(level - 2, 0), MOST_BITS)

    def note(self, codes: IntArray, weight: float) -> None:
        """Keeps a labelling of this weight where it is the best so far."""
        if weight > self.best_weight:
            self.best, self.best_weight = np.array(codes), weight

    def _key(self) -> int:
        return int(self.rng.integers(2**62))
