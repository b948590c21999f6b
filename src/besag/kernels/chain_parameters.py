"""Parameters of a pattern on their way to `chain_gradient` and back.

Parameters are sorted by (row, column); order (nnz,) says where each is in theta, and is empty where they are in order
there. place (nnz,) says where it is in the full rows, flat, or -1 where it is a single one. Each kernel does the
parameters from start to stop.
"""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import Array, IntArray


def make_laid_out() -> Callable[..., None]:
    """Kernel: theta (nnz,) -> log-potentials as full rows and single ones."""

    def laid_out(
        order: IntArray, place: IntArray, start: int, stop: int, theta: Array, rows: Array, singles: Array
    ) -> None:
        for j in range(start, stop):
            singles[j] = -theta[order[j] if len(order) > 0 else j]
            if place[j] >= 0:
                rows[place[j]] = singles[j]

    return laid_out


def make_collected() -> Callable[..., None]:
    """Kernel: gradient (nnz,) less what is in the used rooms: rows (G, R W), singles (G, nnz)."""

    def collected(
        order: IntArray,
        place: IntArray,
        start: int,
        stop: int,
        used: IntArray,
        rows: Array,
        singles: Array,
        gradient: Array,
    ) -> None:
        for j in range(start, stop):
            at = order[j] if len(order) > 0 else j
            total = gradient[at]
            for g in used:
                total -= rows[g, place[j]] if place[j] >= 0 else singles[g, j]
            gradient[at] = total

    return collected
