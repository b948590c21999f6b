"""Chunks on threads."""

from __future__ import annotations

import threading

import numpy as np
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


def test_a_free_thread_takes_what_others_have_left() -> None:
    begun, changed = set[int](), threading.Condition()

    def work(chunk: int) -> None:
        with changed:
            begun.add(chunk)
            changed.notify_all()
            if chunk == 0:  # its thread does nothing else until all others are done
                assert changed.wait_for(lambda: len(begun) == 10, timeout=60)

    run_chunks(work, 10, 2)
    assert begun == set(range(10))


def test_nothing_is_started_after_an_error() -> None:
    started: list[int] = []

    def fail(chunk: int) -> None:
        started.append(chunk)
        raise ValueError(chunk)

    with pytest.raises(ValueError, match=r"\d"):
        run_chunks(fail, 100, 2)
    assert len(started) <= 2


def test_the_caller_does_it_all_where_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    run_chunks(done.append, 7, 3)
    assert sorted(done) == list(range(7))


def test_helpers_have_the_settings_of_the_caller() -> None:
    found: list[str] = []
    with np.errstate(over="raise"):
        run_chunks(lambda _: found.append(np.geterr()["over"]), 6, 3)
    assert found == ["raise"] * 6


def test_there_is_a_core() -> None:
    assert available_threads() >= 1
