"""Index arrays that are parts of others: the same numbers as copies, and no memory of their own."""

import gc
from weakref import WeakValueDictionary

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import besag
from besag import views
from besag.arrays import freeze
from besag.views import count_up, counts_up, join_views, take


def test_counting_lies_in_the_longest_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_held", WeakValueDictionary())
    long = count_up(100_000)
    part = count_up(50_000)
    assert np.shares_memory(long, part)
    assert_array_equal(part, np.arange(50_000))
    assert not part.flags.writeable
    assert not np.shares_memory(long, count_up(100))  # which would keep a thousand times its length alive
    del long, part
    gc.collect()
    assert "longest" not in views._held


@pytest.mark.parametrize(
    ("index", "expected"),
    [([], True), ([7], True), ([3, 4, 5], True), ([3, 5, 4, 6], False), ([0, 2], False), ([2, 1, 0], False)],
)
def test_counts_up(index: list[int], expected: bool) -> None:
    assert counts_up(np.array(index, np.int32)) == expected
    array = np.arange(10.0) ** 2
    found = take(array, np.array(index, np.int64))
    assert_array_equal(found, array[np.array(index, np.int64)])
    assert np.shares_memory(found, array) == (expected and bool(index))


def test_counts_up_looks_at_every_block() -> None:
    index = np.arange(5, 3 * views.BLOCK)
    assert counts_up(index)
    index[[views.BLOCK + 1, views.BLOCK + 2]] = index[[views.BLOCK + 2, views.BLOCK + 1]]
    assert not counts_up(index)


def test_together_copies_only_where_it_has_to() -> None:
    flat = freeze(np.arange(10))
    one, two, three = flat[1:3], flat[3:9].reshape(3, 2), flat[9:]
    found = join_views([one, two, three])
    assert_array_equal(found, np.arange(1, 10))
    assert np.shares_memory(found, flat)
    for parts in ([one, three], [two, one], [one, np.arange(3, 9)], [one, freeze(np.arange(3, 9))], []):
        copied = join_views(parts)
        assert_array_equal(copied, np.concatenate([np.zeros(0, np.int64), *[part.ravel() for part in parts]]))
        assert not np.shares_memory(copied, flat)
        assert not copied.flags.writeable


def test_what_somebody_can_still_write_to_is_copied() -> None:
    flat = np.arange(10)
    assert not np.shares_memory(join_views([flat[:4], flat[4:]]), flat)


def test_a_grid_has_its_scopes_once() -> None:
    model = besag.grid((4, 5), 2, unary=np.zeros((4, 5, 2)), pairwise=np.zeros((2, 2)))
    for group in model.groups:
        assert np.shares_memory(group.scopes, model.graph.scope_variables)
    assert_array_equal(model.graph.factor_order, np.arange(model.n_factors))
