"""Parameters of chains laid out for the kernels of `gradient` and back, and how often each is seen in the data.

`which` (M,) are the places in theta of the parameters in question.
"""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import AnyArray, Array, IntArray


def make_laid_out() -> Callable[..., None]:
    """Kernel: copy the log-potentials of parameters to place (M,) of `out`, or in sequence if place is ()."""

    def laid_out(which: IntArray, place: IntArray, theta: Array, out: Array) -> None:
        for j in range(len(which)):
            out[place[j] if len(place) > 0 else j] = -theta[which[j]]

    return laid_out


def make_taken_off() -> Callable[..., None]:
    """Kernel: subtract the slopes (M,) of the parameters from start to stop from the gradient."""

    def taken_off(which: IntArray, start: int, stop: int, slopes: Array, gradient: Array) -> None:
        for j in range(start, stop):
            gradient[which[j]] -= slopes[j]

    return taken_off


def make_counted() -> Callable[..., None]:
    """Kernel: add up the weights (T,) times values of each parameter over tokens with labels codes (T,).

    Token t has attributes[first[t]:first[t + 1]], values () if all are one. Attribute a has the parameters
    [starts[a], starts[a + 1]) on the labels `elements`, in order.
    """

    def counted(
        first: IntArray,
        attributes: AnyArray,
        values: Array,
        codes: IntArray,
        weights: Array,
        starts: IntArray,
        elements: IntArray,
        counts: Array,
    ) -> None:
        for t in range(len(codes)):
            for j in range(first[t], first[t + 1]):
                low, high = starts[attributes[j]], starts[attributes[j] + 1]
                end = high
                while low < high:
                    middle = (low + high) // 2
                    if elements[middle] < codes[t]:
                        low = middle + 1
                    else:
                        high = middle
                if low < end and elements[low] == codes[t]:
                    counts[low] += weights[t] * (values[j] if len(values) > 0 else 1.0)

    return counted
