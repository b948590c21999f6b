"""Numbers that carry their standard errors."""

import copy
import pickle

import numpy as np
import pytest

from besag.query.estimate import ArrayEstimate, Estimate, estimate_of


@pytest.mark.parametrize(
    ("error", "bound", "text"),
    [
        (0.0, "exact", "0.31274"),
        (0.0042, "estimate", "0.3127 ± 0.0042"),
        (0.42, "estimate", "0.31 ± 0.42"),
        (42.4, "estimate", "0 ± 42"),
        (0.0, "estimate", "0.31274 ± 0"),
        (np.inf, "estimate", "0.31274 ± inf"),
        (None, "estimate", "0.31274 ± ?"),
    ],
)
def test_an_estimate_shows_its_error(error: float | None, bound: str, text: str) -> None:
    assert repr(Estimate(0.31274, error, bound)) == str(Estimate(0.31274, error, bound)) == text


def test_an_estimate_is_a_number() -> None:
    found = Estimate(0.5, 0.1, "estimate")
    assert found == 0.5
    assert f"{found:.2f}" == "0.50"
    assert type(found + 1) is type(round(found, 3)) is float
    assert not hasattr(found + 1, "standard_error")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_duplicates_keep_their_errors(duplicate: object) -> None:
    assert callable(duplicate)
    number, array = Estimate(0.5, None, "estimate"), ArrayEstimate([1.0, 2.0], [0.1, 0.2], "estimate")
    same = duplicate(number)
    assert (float(same), same.standard_error, same.bound) == (0.5, None, "estimate")
    same = duplicate(array)
    np.testing.assert_array_equal(same, array)
    np.testing.assert_array_equal(same.standard_error, [0.1, 0.2])


def test_parts_of_arrays_have_their_errors() -> None:
    found = estimate_of(np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3) / 10, "estimate")
    assert isinstance(found, ArrayEstimate)
    assert found.standard_error is not None
    assert (float(found[1, 2]), found[1, 2].standard_error) == (5.0, 0.5)
    np.testing.assert_array_equal(found[:, 1].standard_error, [0.1, 0.4])
    assert found.T.standard_error is None
    assert type(found.sum(axis=0)) is type(found * 2) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1.0


def test_exact_arrays_have_no_error() -> None:
    found = ArrayEstimate([1.0, 2.0])
    np.testing.assert_array_equal(found.T.standard_error, [0, 0])
    assert found[0].bound == "exact"
