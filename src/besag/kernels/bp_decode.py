"""A labelling from min-sum messages: variables in turn take their best state given those that came before.

A factor all of whose other variables have a label says what its table says; one that still has free variables says what
its message says. With messages that have converged on a forest this is a labelling of least energy, ties included.
"""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.kernels.bp_any import POTTS, Numbers
from besag.kernels.bp_links import Links


def make_decode() -> Callable[..., None]:
    """Codes (V,) from messages in the domain of MAX; codes are -1 before. room (K,)."""

    def decode(links: Links, numbers: Numbers, messages: Array, order: IntArray, codes: IntArray, room: Array) -> None:
        for v in order:
            base, n = numbers.state_offsets[v], numbers.state_offsets[v + 1] - numbers.state_offsets[v]
            for i in range(n):
                room[i] = numbers.base[base + i]
            for m in range(links.first[v], links.first[v + 1]):
                own = links.links_of_variable[m]
                g = links.factor_of_link[own]
                entry, stride, step, free = 0, 1, 1, 0
                for e in range(links.link_offsets[g + 1] - 1, links.link_offsets[g] - 1, -1):
                    if e == own:
                        step = stride
                    elif codes[links.variables[e]] < 0:
                        free += 1
                    else:
                        entry += stride * codes[links.variables[e]]
                    stride *= links.message_offsets[e + 1] - links.message_offsets[e]
                for i in range(n):
                    if free > 0:
                        room[i] += messages[links.message_offsets[own] + i]
                    elif numbers.kinds[g] == POTTS:
                        other = entry // n if step == 1 else entry
                        room[i] += numbers.tables[numbers.starts[g]] if other != i else 0.0
                    else:
                        room[i] += numbers.tables[numbers.starts[g] + entry + step * i]
            best = 0
            for i in range(1, n):
                if room[i] > room[best]:
                    best = i
            codes[v] = best

    return decode
