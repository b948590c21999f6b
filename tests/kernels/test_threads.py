"""Chunks on threads."""

from __future__ import annotations

import threading

import pytest

from besag.kernels.threads import available_threads, run_chunks


@pytest.mark.parametrize("n_threads", [None, 1, 2, 9])
def test_every_chunk_once(n_threads: int | None) -> None:
    done: list[int] = []
    run_chunks(done.append, 20, n_threads)
    assert sorted(done) == list(range(20))


def test_inline_where_one_is_enough() -> None:
    here: list[threading.Thread] = []
    run_chunks(lambda _: here.append(threading.current_thread()), 3, 1)
    run_chunks(lambda _: here.append(threading.current_thread()), 1, 8)
    assert set(here) == {threading.current_thread()}
    run_chunks(here.append, 0, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_errors_propagate(n_threads: int) -> None:
    def fail(chunk: int) -> None:
        if chunk == 2:
            raise ValueError("chunk 2")

    with pytest.raises(ValueError, match="chunk 2"):
        run_chunks(fail, 6, n_threads)


def test_there_is_a_core() -> None:
    assert available_threads() >= 1
