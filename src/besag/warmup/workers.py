"""Workers that ask the usual questions, each a process of its own: numba compiles one kernel at a time in a process.

A worker compiles for this machine into the cache of its user, whatever came with the package, which is for a baseline
processor; or, to ship, for the baseline into the package.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib import import_module
from logging import getLogger

from besag.kernels.threads import available_threads

Asked = tuple[str, float, str]  # a question, the seconds that it took, what went wrong or ""


def warm(questions: Sequence[str], n_jobs: int | None = None) -> Iterator[Asked]:
    """Ask questions so that their kernels lie compiled for this machine in the user's cache, as they are done."""
    yield from ((name, seconds, wrong) for name, seconds, wrong, _ in _all(questions, n_jobs, None))


def ship(questions: Sequence[str], n_jobs: int | None = None) -> Iterator[Asked]:
    """The same for a baseline processor, into the package; once all are asked, what other sources left there goes."""
    from besag.kernels import shipped
    from besag.warmup.questions import QUESTIONS

    shipped.FOLDER.mkdir(parents=True, exist_ok=True)
    left = set(QUESTIONS)
    found = set[str]()
    with tempfile.TemporaryDirectory() as cache:
        for name, seconds, wrong, files in _all(questions, n_jobs, cache):
            found |= files
            left -= set() if wrong else {name}
            yield name, seconds, wrong
    for path in shipped.FOLDER.iterdir():
        if not left and path.name not in found:
            path.unlink()


def shipped_bytes() -> int:
    """The size of what lies compiled in the package."""
    from besag.kernels import shipped

    return sum(path.stat().st_size for path in shipped.FOLDER.glob("*.kernel"))


def can_ship() -> bool:
    """Whether this machine runs code for the baseline, which it must to make it."""
    from besag.kernels import shipped

    return shipped.usable()


def _all(
    questions: Sequence[str], n_jobs: int | None, cache: str | None
) -> Iterator[tuple[str, float, str, frozenset[str]]]:
    n = min(n_jobs or available_threads(), len(questions))
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, mp_context=fresh, initializer=_begin, initargs=(cache,)) as pool:
        waiting: dict[Future[tuple[float, frozenset[str]]], str] = {
            pool.submit(_ask, name, cache is not None): name for name in questions
        }
        for done in as_completed(waiting):
            error = done.exception()
            seconds, files = (0.0, frozenset[str]()) if error is not None else done.result()
            yield waiting[done], seconds, "" if error is None else f"{type(error).__name__}: {error}", files


def _begin(cache: str | None) -> None:
    """In a worker: where kernels go, before numba is loaded; the command says itself what is going on."""
    if cache is not None:
        os.environ["NUMBA_CACHE_DIR"] = cache
    getLogger("besag").setLevel("ERROR")
    warnings.simplefilter("ignore")
    shipped = import_module("besag.kernels.shipped")
    if cache is None:
        shipped.compile_for_host()
    else:
        shipped.compile_for_baseline()


def _ask(question: str, to_ship: bool) -> tuple[float, frozenset[str]]:
    """In a worker: ask; the seconds, and the files in the package that hold the kernels which are loaded by now."""
    from besag.warmup.questions import QUESTIONS

    began = time.perf_counter()
    QUESTIONS[question]()
    files = import_module("besag.kernels.shipped").write() if to_ship else frozenset[str]()
    return time.perf_counter() - began, files
