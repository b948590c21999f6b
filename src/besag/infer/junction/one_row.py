"""One row on several threads: independent subtrees side by side, large cliques in pieces.

The tree is cut as `stages` describes. Upwards the subtrees go first, then the top; downwards the other way round.
Pieces of a clique write to different entries of its message if they can, else to sums of their own that are added in
order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze
from besag.infer.junction.kernels.pieces import (
    make_bind,
    make_climb_all,
    make_climb_piece,
    make_finish_climb,
    make_join_pieces,
    make_settle,
    make_sink_all,
    make_sink_piece,
    make_turn,
)
from besag.infer.junction.kernels.rows import RowNumbers, RowWork
from besag.infer.junction.plan import CliquePlan
from besag.infer.junction.stages import Stages
from besag.kernels.compile import kernel_of
from besag.kernels.threads import run_chunks

PIECES = 8  # of a large clique, at most
SHARE = 32  # fewer pieces, so that their own sums have at most 1 / SHARE of the clique's entries


class WideRow:
    """Row 0 of a plan on several threads."""

    def __init__(
        self,
        plan: CliquePlan,
        stages: Stages,
        rows: RowNumbers,
        work: RowWork,
        semiring: Semiring,
        n_threads: int | None,
        compile: bool,
    ) -> None:
        self.plan, self.stages, self.rows, self.work = plan, stages, rows, work
        self.semiring, self.n_threads, self.compile = int(semiring), n_threads, compile

    def _kernel(self, make_kernel: Callable[[int], Callable[..., Any]]) -> Callable[..., Any]:
        return kernel_of(make_kernel, self.semiring, compile=self.compile)

    def _tile(self) -> Array:
        return np.empty(self.plan.largest_tile)

    def rise(self, log_z: Array, down: bool) -> bool:
        """Send all messages up, and find log Z; True if the range was too narrow."""
        join, work, stages = self.plan.join, self.work, self.stages
        kernel_of(make_bind, compile=self.compile)(join, self.rows, 0, work)
        climb_all = self._kernel(make_climb_all)
        narrow = [False] * len(stages.subtrees)

        def task(h: int) -> None:
            narrow[h] = climb_all(join, stages.subtrees[h], work, self._tile())

        run_chunks(task, len(stages.subtrees), self.n_threads)
        if any(narrow):
            return True
        for c in stages.top:
            if c in stages.large:
                if self._climb_pieces(c):
                    return True
            elif climb_all(join, freeze(np.array([c])), work, self._tile()):
                return True
        self._kernel(make_turn)(join, self.rows, 0, work, log_z, down)
        return False

    def _climb_pieces(self, c: int) -> bool:
        join, work = self.plan.join, self.work
        piece = self._kernel(make_climb_piece)
        n_outer, n_tiles, width = (int(n) for n in join.shape[c, [0, 1, 3]])
        start, size = int(join.message_offsets[c]), n_outer * width
        if n_outer >= PIECES:

            def part(i: int) -> None:
                low, high = n_outer * i // PIECES, n_outer * (i + 1) // PIECES
                tiles = (low * n_tiles, high * n_tiles)
                piece(join, c, *tiles, work, self._tile(), work.store, start, low * width, high * width)

            run_chunks(part, PIECES, self.n_threads)
        else:
            n_pieces = self._pieces(c, size)
            sums = np.empty((n_pieces, size))

            def share(i: int) -> None:
                tiles = (n_outer * n_tiles * i // n_pieces, n_outer * n_tiles * (i + 1) // n_pieces)
                piece(join, c, *tiles, work, self._tile(), sums[i], 0, 0, size)

            run_chunks(share, n_pieces, self.n_threads)
            self._kernel(make_join_pieces)(freeze(sums), work.store, start)
        narrow: bool = self._kernel(make_finish_climb)(join, c, work)
        return narrow

    def _pieces(self, c: int, size: int) -> int:
        return max(1, min(PIECES, int(self.plan.sketch.entries[c] // (SHARE * size))))

    def sink(self, out_bases: IntArray, marginals: Array, cells: Array) -> None:
        """Compute all beliefs, and what is read off them."""
        join, reads, work, stages = self.plan.join, self.plan.reads, self.work, self.stages
        sink_all = self._kernel(make_sink_all)
        outputs = (out_bases, marginals, cells)

        def below(cliques: IntArray) -> None:
            tile, sums, beliefs = self._tile(), self._tile(), np.empty(self.plan.largest_room)
            sink_all(join, reads, cliques, work, *outputs, tile, sums, beliefs)

        for c in reversed(stages.top):
            if c in stages.large and reads.needed[c]:
                beliefs = self._sink_pieces(c)
                self._kernel(make_settle)(join, reads, c, work, beliefs, *outputs)
            else:
                below(freeze(np.array([c])))
        run_chunks(lambda h: below(stages.subtrees[h]), len(stages.subtrees), self.n_threads)

    def _sink_pieces(self, c: int) -> Array:
        join, reads, work = self.plan.join, self.plan.reads, self.work
        piece = self._kernel(make_sink_piece)
        total = int(join.shape[c, 0] * join.shape[c, 1])
        size = int(reads.rooms[join.table_offsets[c + 1]] - reads.rooms[join.table_offsets[c]])
        n_pieces = self._pieces(c, size)
        sums, beliefs = np.empty((n_pieces, size)), np.empty(size)

        def part(i: int) -> None:
            tiles = (total * i // n_pieces, total * (i + 1) // n_pieces)
            piece(join, reads, c, *tiles, work, self._tile(), self._tile(), sums[i])

        run_chunks(part, n_pieces, self.n_threads)
        self._kernel(make_join_pieces)(freeze(sums), beliefs, 0)
        return beliefs
