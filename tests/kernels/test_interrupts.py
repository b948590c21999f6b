"""Ctrl-C while kernels are loaded or compiled."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from besag.kernels.interrupts import delay_interrupts, keep_interrupts


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    """Ctrl-C is heard, also where tests run in the background, whose shell lets processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def done_after(n: int) -> list[str]:
    """What is done of a block in which Ctrl-C is pressed n times."""
    done: list[str] = []

    def work() -> None:
        with delay_interrupts():
            for _ in range(n):
                signal.raise_signal(signal.SIGINT)
            done.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        work()
    return done


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    assert done_after(1) == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait() -> None:
    assert done_after(2) == []


def test_other_threads_leave_the_handler_alone() -> None:
    seen = []

    def work() -> None:
        with delay_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_kernel_is_compiled_to_its_end() -> None:
    class Kernel:
        made = 0

        def compile(self, types: object) -> str:
            signal.raise_signal(signal.SIGINT)
            self.made += 1
            return "code"

    kernel = Kernel()
    keep_interrupts(kernel)
    with pytest.raises(KeyboardInterrupt):
        kernel.compile("types")
    assert kernel.made == 1


LOADED = """
import signal, sys
import numba
import numpy as np
import besag

signal.signal(signal.SIGINT, signal.default_int_handler)
model = besag.grid((40, 40), 2, unary=np.random.default_rng(0).standard_normal((40, 40, 2)), pairwise=besag.potts(2))
pressed = []

def press(frame, event, argument):
    if frame.f_code.co_name == "stream_list" and not pressed:  # a generator of numba that lives as long as the process
        pressed.append("pressed")
        signal.raise_signal(signal.SIGINT)

sys.settrace(press)
try:
    print(model.marginals(engine="bp").diagnostics["stopped"])
except BaseException as error:
    print(type(error).__name__)
sys.settrace(None)
print(*pressed, model.marginals(engine="bp").diagnostics["converged"])
"""


def test_numba_works_after_ctrl_c_while_it_loaded_a_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], env=os.environ, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["KeyboardInterrupt", "pressed", "True"], done.stderr
