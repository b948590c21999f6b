"""Who waits for kernels to be compiled is told: when, how often, and that nothing hangs on it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from besag.kernels import notice
from besag.kernels.notice import Notice
from tests.kernels.test_compile import PROGRAM, SOURCE

BEGINS = "besag compiles kernels of infer/trees for this machine, once, in some 15 s; `besag warmup` does so ahead ..."


class Clock:
    """A clock that is set by hand, and the timers that look at it."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, list[Timer]()

    def timer(self, seconds: float, action: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + seconds, action))
        return self.timers[-1]

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        for timer in list(self.timers):
            if timer.at <= self.now + 1e-9 and timer.runs:
                timer.runs = False
                timer.action()


class Timer(threading.Timer):
    def __init__(self, at: float, action: Callable[[], None]) -> None:
        super().__init__(at, action)
        self.at, self.action, self.runs = at, action, False

    def start(self) -> None:
        self.runs = True

    def cancel(self) -> None:
        self.runs = False


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(clock: Clock) -> Notice:
    return Notice(clock=lambda: clock.now, timer=clock.timer)


def compile_for(told: Notice, clock: Clock, seconds: float) -> None:
    with told.compiling("infer/trees"):
        clock.pass_(seconds)


def test_short_compiling_is_silent(told: Notice, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    compile_for(told, clock, 1.9)
    clock.pass_(1000.0)
    told.finish()
    assert caplog.messages == []
    assert not any(timer.runs for timer in clock.timers)


def test_it_is_told_while_it_goes_on_and_when_it_is_done(
    told: Notice, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with told.compiling("infer/trees"):
        clock.pass_(1.99)
        assert caplog.messages == []
        clock.pass_(0.01)
        assert caplog.messages == [BEGINS]
        clock.pass_(10.0)
    clock.pass_(0.5)
    compile_for(told, clock, 0.25)
    clock.pass_(0.99)
    assert caplog.messages == [BEGINS]
    clock.pass_(0.01)
    assert caplog.messages == [BEGINS, "besag has compiled 2 kernels, which took 12.2 s"]
    assert {record.name for record in caplog.records} == {"besag"}
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    clock.pass_(1000.0)
    told.finish()
    assert len(caplog.messages) == 2


def test_kernels_add_up(told: Notice, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        compile_for(told, clock, 0.6)
        clock.pass_(100.0)
    assert caplog.messages == []
    with told.compiling("infer/trees"):
        clock.pass_(0.2)
        assert caplog.messages == [BEGINS]


def test_where_no_thread_can_be_had_it_is_told_afterwards(
    clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(timer: Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Timer, "start", refuse)
    told = Notice(clock=lambda: clock.now, timer=clock.timer)
    compile_for(told, clock, 3.0)
    told.finish()
    assert caplog.messages == [BEGINS, "besag has compiled 1 kernel, which took 3.0 s"]


def test_later_kernels_are_told_of_in_the_same_way(
    told: Notice, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds in (3.0, 1.0, 5.0):
        compile_for(told, clock, seconds)
        clock.pass_(2.0)
    assert caplog.messages == [
        BEGINS,
        "besag has compiled 1 kernel, which took 3.0 s",
        BEGINS,
        "besag has compiled 2 kernels, which took 6.0 s",
    ]
    with told.compiling("infer/trees"):
        clock.pass_(2.0)
        assert caplog.messages[4:] == [BEGINS]


def test_an_error_while_compiling_is_the_end_of_it(
    told: Notice, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyboardInterrupt), told.compiling("infer/trees"):
        raise KeyboardInterrupt
    clock.pass_(1000.0)
    assert caplog.messages == []


def test_a_timer_that_comes_late_says_nothing(told: Notice, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    compile_for(told, clock, 1.0)
    told.tell()
    assert caplog.messages == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_neither_waits_for_its_parent_nor_says_it_again() -> None:
    before = notice._notices[0]
    with before._lock:  # held, as if a thread were compiling
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                with notice._notices[0].compiling("infer/trees"):
                    failed = int(notice._notices[0].told != before.told)
            finally:
                os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# A process of its own ------------------------------------------------------------------------------------------------


def said(folder: Path, *constants: str, before: str = "") -> list[str]:
    """What a process writes to stderr that uses a tiny kernel for some constants."""
    code = textwrap.dedent(before) + textwrap.dedent(PROGRAM)
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code, *constants]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stderr.splitlines()


AT_ONCE = """
    from besag.kernels import notice
    notice._notices[0].after, notice._notices[0].pause = 0.0, 1000.0
"""


def test_a_script_is_told_unless_kernels_come_from_the_cache(tmp_path: Path) -> None:
    begins, done = said(tmp_path, "3", "5", before=AT_ONCE)
    assert begins == BEGINS
    assert done.startswith("besag has compiled 2 kernels, which took ")
    assert said(tmp_path, "3", "5", before=AT_ONCE) == []


SILENCED = """
    import logging
    logging.getLogger("besag").setLevel(logging.ERROR)
"""
NEVER = """
    from besag.kernels import notice
    notice._notices[0].after = 1000.0
"""


@pytest.mark.parametrize("before", [NEVER, AT_ONCE + SILENCED], ids=["soon done", "silenced"])
def test_a_script_is_not_told(tmp_path: Path, before: str) -> None:
    assert said(tmp_path, "3", before=before) == []


def test_a_script_is_told_where_kernels_cannot_be_kept(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("not a folder")
    without = "import besag.kernels.cache as cache\ncache._KernelCacheImpl._locator_classes = []\n"
    assert len(said(nowhere, "3", before=without + textwrap.dedent(AT_ONCE))) == 2
