"""Work begun ahead: what it makes, what goes wrong in it, and that it ends when nobody waits for it."""

import threading
from collections.abc import Callable

from besag.infer.join_graph.ahead import Ahead, CancelledError


def test_what_is_made_is_there_when_it_is_asked_for() -> None:
    ahead = Ahead(lambda check: threading.current_thread())
    made = ahead.result()
    assert made is not None
    assert made is not threading.current_thread()


def test_what_goes_wrong_is_left_to_whoever_does_it_again() -> None:
    def fail(check: Callable[[], None]) -> int:
        raise ValueError("not now")

    assert Ahead(fail).result() is None


def test_work_that_nobody_holds_is_given_up() -> None:
    given_up = threading.Event()

    def endless(check: Callable[[], None]) -> int:
        try:
            while True:
                check()
        except CancelledError:
            given_up.set()
            raise

    ahead = Ahead(endless)
    assert not given_up.is_set()
    del ahead
    assert given_up.wait(60)
