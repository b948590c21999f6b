"""What is no number, no whole number or of the wrong shape is refused by name, by every maker of a factor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from besag import factors
from besag.errors import ModelError

WHOLE = ("potts", "truncated_linear", "truncated_quadratic", "parity", "any_of", "all_of")


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [2.5, "3", None, True, float("nan")])
def test_numbers_of_states_and_variables_are_whole(name: str, value: Any) -> None:
    with pytest.raises(ModelError, match=f"{name}: the number of (states|variables) must be a whole number, got"):
        getattr(factors, name)(value)


def test_whole_numbers_of_numpy_are_taken() -> None:
    assert factors.potts(np.int64(3)) == factors.potts(3)
    assert factors.parity(np.int32(3)) == factors.parity(3)
    assert type(factors.potts(np.int64(3)).n_states) is int


CASES: list[tuple[str, Callable[[], Any]]] = [
    ("truncated_linear: limit must be a number, got 'x'", lambda: factors.truncated_linear(4, "x")),  # type: ignore[arg-type]
    ("displacement: limit must be a number, got 'x'", lambda: factors.displacement(4, limit="x")),  # type: ignore[arg-type]
    ("displacement: shape is .H, W., or the length of a line, got 2.5", lambda: factors.displacement(2.5)),  # type: ignore[arg-type]
    ("displacement: shape: expected an array of numbers", lambda: factors.displacement("a")),  # type: ignore[arg-type]
    ("displacement: offset: expected an array of numbers", lambda: factors.displacement(3, "a")),  # type: ignore[arg-type]
    ("count: expected an array of numbers", lambda: factors.count(["a", "b"])),
    ("noisy-OR and noisy-AND: expected an array of numbers", lambda: factors.noisy_or({"a": 0.5})),  # type: ignore[arg-type]
    ("noisy-OR and noisy-AND: the leak must be a number, got None", lambda: factors.noisy_or([0.5], None)),  # type: ignore[arg-type]
    ("needs a table for each parent, got None", lambda: factors.noisy_max(None)),  # type: ignore[arg-type]
    ("the effects of a noisy-MAX: expected an array", lambda: factors.noisy_max([[[1, 0, 0], [0.5, 0.5]]])),
    ("the leak of a noisy-MAX: expected an array of numbers", lambda: factors.noisy_max([np.eye(2)], "ab")),
    ("robust_potts: slope is a number, or one for each of 2", lambda: factors.robust_potts(3, 2, [1, 1, 1])),
    ("robust_potts: the number of variables must be a whole", lambda: factors.robust_potts(2.5, 2)),  # type: ignore[arg-type]
    ("robust_potts: the number of states must be a whole", lambda: factors.robust_potts(3, 2.5)),  # type: ignore[arg-type]
    ("robust_potts: limit must be a number, got 'a'", lambda: factors.robust_potts(3, 2, 1, "a")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("words", "make"), CASES)
def test_what_is_no_number_is_refused(words: str, make: Callable[[], Any]) -> None:
    with pytest.raises(ModelError, match=words):
        make()
