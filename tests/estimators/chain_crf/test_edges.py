"""ChainCRF at the edges: sparse arrays, labels that are not known, optimisers as objects, odd arguments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import besag
from besag.errors import CapabilityError, ConvergenceWarning, ModelError
from besag.estimators.chain_crf.estimator import ChainCRF
from besag.learn.optimisers.lbfgs import LBFGS

X = [[["a", "b"], ["c"]], [["a"], ["b"], ["c", "d"]], [["d"]]]
Y = [["N", "V"], ["N", "N", "V"], ["V"]]


def test_columns_of_sparse_arrays_cost_what_is_in_them() -> None:
    rng = np.random.default_rng(0)
    rows = [csr_array((np.ones(6), (np.arange(6) % 3, rng.integers(10**6, size=6))), (3, 10**6)) for _ in range(20)]
    labels = [rng.integers(3, size=3) for _ in rows]
    crf = ChainCRF(l2=0.1).fit(rows, labels)
    assert len(crf.state_features_) <= 20 * 6
    assert len(ChainCRF(l2=0.1, pairs="all").fit([r[:, :50] for r in rows], labels).state_features_) == 50 * 3
    seen = {(str(column), int(label)) for row, y in zip(rows, labels, strict=True) for label, column in where(row, y)}
    assert set(crf.state_features_) == seen


def where(row: Any, labels: Any) -> list[tuple[int, int]]:
    coordinates = row.tocoo()
    return [(labels[t], column) for t, column in zip(coordinates.row, coordinates.col, strict=True)]


def test_all_columns_of_dense_arrays_are_seen(tmp_path: Path) -> None:
    dense = [np.eye(4)[:2], np.eye(4)[1:]]
    labels = [["a", "b"], ["b", "a", "a"]]
    crf = ChainCRF(l2=0.1).fit(dense, labels)
    assert len(crf.state_features_) == 8
    sparse = ChainCRF(l2=0.1).fit([csr_array(x) for x in dense], labels)
    assert len(sparse.state_features_) == 4  # each column is seen with one label
    for each in (crf, sparse):
        each.save(tmp_path / "crf.npz")
        again = besag.load(tmp_path / "crf.npz")
        assert again.predict(dense) == each.predict(dense)
        assert again.state_features_ == each.state_features_


def test_scores_leave_out_what_is_not_known_in_arrays_too() -> None:
    codes = [np.array([0, -1]), np.array([0, 1, 0]), np.array([1])]
    crf = ChainCRF(l2=0.01).fit(X, codes)
    assert crf.score(X, codes) == crf.score(X, [[0, None], [0, 1, 0], [1]]) == 1.0
    with pytest.raises(ModelError, match="sequence 1: X has 3 items, and y has 1 labels"):
        crf.score(X, [[0, 1], [0], [1]])
    with pytest.raises(ModelError, match="expected a list of sequences, got int"):
        crf.score(X, 5)  # type: ignore[arg-type]


def test_an_optimiser_that_is_an_object_keeps_its_options(tmp_path: Path) -> None:
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations, .* more than max_iter=2 may help"):
        crf = ChainCRF(l2=0.1, optimizer=LBFGS(max_iterations=2)).fit(X, Y)
    assert crf.n_iter_ == 2
    crf.scratch = tmp_path
    crf.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    assert (again.optimizer, again.scratch) == ("lbfgs[max_iterations=2]", str(tmp_path))


@pytest.mark.parametrize(("items", "labels"), [([X[0], None, X[1]], Y), ([X[0]], [Y[0], None, Y[1]])])
def test_files_do_not_end_at_a_sequence_that_is_none(items: Any, labels: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"sequence 1: expected a list|X has 1 sequences, and y has"):
        ChainCRF(scratch=tmp_path).fit(items, labels)


@pytest.mark.parametrize(
    ("given", "fitted", "error", "match"),
    [
        ({"scratch": 3}, {}, ModelError, "scratch must be an existing folder, got 3"),
        ({}, {"on_step": 3}, CapabilityError, "on_step must be a function"),
        ({"forbidden": [(["N"], "V")]}, {}, ModelError, r"forbidden: no label is \['N'\]"),
    ],
)
def test_odd_arguments(given: dict[str, Any], fitted: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ChainCRF(**given).fit(X, Y, **fitted)


def test_steps_beyond_all_measure_end_the_fit() -> None:
    with pytest.warns(ConvergenceWarning):
        crf = ChainCRF(optimizer="adam[step=1e20]", max_iter=50).fit(X, Y)
    assert np.isfinite(crf.objective_)
    assert all(np.isfinite(weight) for weight in crf.state_features_.values())


def test_the_probability_of_nothing_is_one() -> None:
    crf = ChainCRF(l2=0.1).fit(X, Y)
    found = crf.log_proba([X[0], [], X[2]], [Y[0], [], Y[2]])
    assert found[1] == 0.0
    assert_allclose(found[[0, 2]], crf.log_proba([X[0], X[2]], [Y[0], Y[2]]))
