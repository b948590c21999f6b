"""Memory of large arrays is used again, and never while anybody can see it."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from besag import recycled

SIZE = recycled.LARGE // 8

pytestmark = pytest.mark.skipif(not recycled.SERVES, reason="this system cannot mark pages as free")


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    recycled._kept.clear()
    yield
    recycled._kept.clear()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_comes_back_when_the_array_is_gone() -> None:
    first = recycled.empty((2, SIZE))
    first[...] = 3.0
    place = address(first)
    assert first.flags.writeable
    assert first.shape == (2, SIZE)
    assert first.sum() == 6.0 * SIZE
    del first
    assert address(recycled.empty((SIZE * 2 - 7,))) == place


def test_a_view_keeps_the_memory() -> None:
    first = recycled.empty((SIZE,))
    first[...] = 1.0
    view = first[10:].reshape(-1, 2)[::3]
    del first
    second = recycled.empty((SIZE,))
    second[...] = 2.0
    assert not np.shares_memory(view, second)
    assert (view == 1.0).all()


def test_much_larger_pages_are_not_taken() -> None:
    place = address(recycled.empty((4 * SIZE,)))
    assert address(recycled.empty((SIZE,))) != place
    assert address(recycled.empty((4 * SIZE,))) == place, "they are still kept"


def test_few_are_kept() -> None:
    arrays = [recycled.empty((SIZE,)) for _ in range(recycled.N_KEPT + 3)]
    arrays.clear()
    assert len(recycled._kept) == recycled.N_KEPT


def test_small_arrays_are_numpys_own() -> None:
    assert recycled.empty((3, 4)).base is None
    assert recycled.empty((0, 5)).shape == (0, 5)


def test_threads_never_share() -> None:
    def work(number: int) -> bool:
        ok = True
        for turn in range(20):
            array = recycled.empty((SIZE,))
            array[...] = 100.0 * number + turn
            ok &= bool((array == 100.0 * number + turn).all())
        return ok

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_arrays_that_outlive_the_interpreter() -> None:
    code = """
import contextvars, numpy as np
from besag import recycled
class Holder:
    def __init__(self): self.array = recycled.empty((1 << 21,)); self.array[...] = 1.0
    def __del__(self): float(self.array[0])
current = contextvars.ContextVar("current"); current.set(Holder())
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_advice_that_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(mmap.mmap):
        def madvise(self, option: int, *span: int) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(recycled.mmap, "mmap", Refusing)
    array = recycled.empty((SIZE,))
    array[...] = 1.0
    del array
    assert not recycled._kept


def test_too_little_memory_drops_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    recycled.empty((SIZE,))
    assert len(recycled._kept) == 1
    monkeypatch.setattr(recycled.mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="no room for"):
        recycled.empty((4 * SIZE,))
    assert not recycled._kept
