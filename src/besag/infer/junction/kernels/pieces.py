"""One row in parts for several threads: whole subtrees, and large cliques in pieces."""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.infer.junction.kernels.passes import Reads, climb, downward, normalise, settle, sink, too_narrow, upward
from besag.infer.junction.kernels.rows import RowNumbers, RowWork, bind, total_up, turn
from besag.infer.junction.kernels.tiles import Join
from besag.kernels.semiring import SUM, plus, zero_of


def make_bind() -> Callable[..., None]:
    """Kernel: bind row b."""

    def bind_row(join: Join, rows: RowNumbers, b: int, work: RowWork) -> None:
        bind(join, rows, b, work)

    return bind_row


def make_climb_all(semiring: int) -> Callable[..., bool]:
    """Kernel: messages of some cliques; True if the range was too narrow."""

    def climb_all(join: Join, cliques: IntArray, work: RowWork, tile: Array) -> bool:
        return upward(
            semiring, join, cliques, work.bases, work.spans, work.store, work.message_spans, work.scales, tile
        )

    return climb_all


def make_climb_piece(semiring: int) -> Callable[..., None]:
    """Kernel: what a piece of a clique adds to its message, at out[start:]; low..high there is set to zero first."""

    def climb_piece(
        join: Join,
        c: int,
        first_tile: int,
        last_tile: int,
        work: RowWork,
        tile: Array,
        out: Array,
        start: int,
        low: int,
        high: int,
    ) -> None:
        for i in range(start + low, start + high):
            out[i] = zero_of(semiring)
        climb(semiring, join, c, first_tile, last_tile, work.bases, work.store, tile, out, start)

    return climb_piece


def make_join_pieces(semiring: int) -> Callable[..., None]:
    """Kernel: out[start:] = the sum of the rows of pieces, in order."""

    def join_pieces(pieces: Array, out: Array, start: int) -> None:
        for i in range(pieces.shape[1]):
            value = pieces[0, i]
            for k in range(1, len(pieces)):
                value = plus(semiring, value, pieces[k, i])
            out[start + i] = value

    return join_pieces


def make_finish_climb(semiring: int) -> Callable[..., bool]:
    """Kernel: scale and span of the message of a clique; True if its range is too narrow."""

    def finish_climb(join: Join, c: int, work: RowWork) -> bool:
        start = join.message_offsets[c]
        size = join.message_offsets[c + 1] - start
        work.scales[c], work.message_spans[c] = normalise(semiring, work.store, start, size)
        return bool(semiring == SUM and too_narrow(join, c, work.spans, work.message_spans))

    return finish_climb


def make_turn(semiring: int) -> Callable[..., None]:
    """Kernel: log Z of row b, and d of the roots."""

    def turn_row(join: Join, rows: RowNumbers, b: int, work: RowWork, log_z: Array, down: bool) -> None:
        total_up(semiring, join, rows, b, work, log_z)
        if down:
            turn(semiring, join, rows, b, work, log_z)

    return turn_row


def make_sink_piece(semiring: int) -> Callable[..., None]:
    """Kernel: the contribution of a piece of a clique to its outputs, in beliefs, which are set to zero first."""

    def sink_piece(
        join: Join,
        reads: Reads,
        c: int,
        first_tile: int,
        last_tile: int,
        work: RowWork,
        tile: Array,
        sums: Array,
        beliefs: Array,
    ) -> None:
        for i in range(len(beliefs)):
            beliefs[i] = zero_of(semiring)
        sink(semiring, join, reads, c, first_tile, last_tile, work.bases, work.moves, work.store, tile, sums, beliefs)

    return sink_piece


def make_settle(semiring: int) -> Callable[..., None]:
    """Kernel: d of the children and marginals, from the outputs of a clique."""

    def settle_clique(
        join: Join,
        reads: Reads,
        c: int,
        work: RowWork,
        beliefs: Array,
        out_bases: IntArray,
        marginals: Array,
        cells: Array,
    ) -> None:
        settle(semiring, join, reads, c, beliefs, work.store, work.scales, out_bases, marginals, cells)

    return settle_clique


def make_sink_all(semiring: int) -> Callable[..., None]:
    """Kernel: beliefs of some cliques, with d of the children and marginals."""

    def sink_all(
        join: Join,
        reads: Reads,
        cliques: IntArray,
        work: RowWork,
        out_bases: IntArray,
        marginals: Array,
        cells: Array,
        tile: Array,
        sums: Array,
        beliefs: Array,
    ) -> None:
        downward(
            semiring,
            join,
            reads,
            cliques,
            work.bases,
            work.moves,
            out_bases,
            work.store,
            work.scales,
            beliefs,
            marginals,
            cells,
            tile,
            sums,
        )

    return sink_all
