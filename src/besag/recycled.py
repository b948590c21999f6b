"""Room for large arrays, in memory that earlier ones have given back.

Memory that comes fresh from the system costs a page fault for every page that is first written to: more than writing
it, for arrays of hundreds of megabytes. An array made here has pages of its own; when the last view of it is gone they
are kept for the next array of such a size, and told to be free (MADV_FREE): the system takes them when it is short of
memory, and nothing of them is lost that anybody could still read.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 2**23  # bytes; the allocator keeps smaller ones by itself
N_KEPT = 4  # pages of so many arrays
MAX_WASTE = 1.25  # pages may be larger than an array by this factor

SERVES = hasattr(mmap, "MADV_FREE") and hasattr(mmap, "MADV_HUGEPAGE")  # Linux
_kept: deque[mmap.mmap] = deque(maxlen=N_KEPT)


class _Lease:
    """Pages in use: the base of every view of an array."""

    __slots__ = ("__array_interface__", "__weakref__", "pages")

    def __init__(self, pages: mmap.mmap, dtype: np.dtype[Any], size: int) -> None:
        self.pages = pages  # at the end of the interpreter nothing else may hold them
        self.__array_interface__ = np.frombuffer(pages, dtype, size).__array_interface__


def empty(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """An array of no particular values, as `numpy.empty` gives."""
    kind, size = np.dtype(dtype), math.prod(shape)
    n_bytes = kind.itemsize * size
    if n_bytes < LARGE or not SERVES:
        return np.empty(shape, kind)
    pages = _taken(n_bytes) or _fresh(n_bytes)
    lease = _Lease(pages, kind, size)
    weakref.finalize(lease, _give_back, pages).atexit = False
    return np.asarray(lease).reshape(shape)


def copy_array(values: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
    """The values in an array of their own, as `numpy.array` gives."""
    out = empty(values.shape, dtype)
    out[...] = values
    return out


def concatenate(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The parts one after the other, flat; empty where there are none."""
    flat = [part.reshape(-1) for part in parts]
    return np.concatenate(flat, out=empty((sum(map(len, flat)),))) if flat else np.zeros(0)


def forget() -> None:
    """Give all kept pages to the system at once."""
    _kept.clear()


def _taken(n_bytes: int) -> mmap.mmap | None:
    """Kept pages that fit, no longer kept."""
    for _ in range(len(_kept)):
        try:
            pages = _kept.popleft()
        except IndexError:  # another thread took them
            return None
        if n_bytes <= len(pages) <= MAX_WASTE * n_bytes:
            return pages
        _kept.append(pages)
    return None


def _fresh(n_bytes: int) -> mmap.mmap:
    try:
        pages = _mapped(n_bytes)
    except OSError:
        forget()
        try:
            pages = _mapped(n_bytes)
        except OSError as error:
            raise MemoryError(f"no room for {n_bytes} bytes: {error}") from None
    with suppress(OSError):  # a system without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _mapped(n_bytes: int) -> mmap.mmap:
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _give_back(pages: mmap.mmap) -> None:
    with suppress(OSError):  # locked memory, say, is not kept
        pages.madvise(mmap.MADV_FREE)
        _kept.append(pages)
