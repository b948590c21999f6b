"""HMM at its edges: zeros under a prior, names that disagree, numpy's scalars, copies and files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import besag
from besag.errors import ModelError

pytestmark = pytest.mark.filterwarnings("ignore:HMM stopped")

X = [[0, 1, 1, 0, 2], [2, 1, 0], [1]]


def left_to_right() -> besag.HMM:
    return besag.HMM.from_parameters([1, 0], [[0.5, 0.5], [0, 1]], [[0.5, 0.5, 0], [0.2, 0.3, 0.5]])


def test_zeros_of_init_stay_under_a_prior() -> None:
    init = left_to_right()
    data, _ = init.sample(10, 10)
    found = besag.HMM(init=init, prior=0.5, max_iter=4, tol=0).fit(data)
    values = found.history_["value"].to_numpy()
    assert np.isfinite(values).all()
    assert len(values) == 5
    assert (np.diff(values) < 0).all()
    assert found.start_[1] == found.transition_[1, 0] == found.emission_[0, 2] == 0
    assert not np.array_equal(found.emission_, init.emission_)


def test_names_must_be_those_of_init() -> None:
    init = left_to_right()
    for names in ({"states": ["a", "b"]}, {"symbols": [2, 1, 0]}):
        with pytest.raises(ModelError, match="init has the s"):
            besag.HMM(init=init, **names).fit([[0, 1]])
    assert besag.HMM(init=init, states=[0, 1], max_iter=1).fit([[0, 1]]).states_ == [0, 1]


def test_copies_keep_a_fitted_init() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score

    init = left_to_right()
    copied = clone(besag.HMM(init=init, max_iter=2))
    assert_array_equal(copied.init.emission_, init.emission_)
    assert not hasattr(clone(init), "model_")
    data, _ = init.sample(6, 60)
    assert np.isfinite(cross_val_score(besag.HMM(init=init, max_iter=2), data, cv=2, error_score="raise")).all()


def test_scalars_of_numpy_are_read_as_those_of_python() -> None:
    one, two, missing = np.int64(1), np.int32(2), np.int64(-1)
    found = besag.HMM(2, max_iter=1).fit([[one, two, missing], [one, None]])
    assert [type(symbol) for symbol in found.symbols_] == [int, int]
    assert found.symbols_ == [1, 2]
    texts = besag.HMM(2, max_iter=1).fit([list(np.array(["a", "b"]))])
    assert [type(symbol) for symbol in texts.symbols_] == [str, str]


def test_a_file_gives_back_the_same_bits(tmp_path: Path) -> None:
    for seed in range(5):
        prior, names = np.array(0.5), np.array(["a", "b"])
        hmm = besag.HMM(states=names, symbols=np.array([0, 1, 2]), prior=prior, max_iter=9, random_state=seed).fit(X)
        hmm.save(tmp_path / "hmm.besag")
        again = besag.load(tmp_path / "hmm.besag")
        for name in ("start_", "transition_", "emission_"):
            assert_array_equal(getattr(again, name), getattr(hmm, name))
        assert (again.states, again.symbols, again.prior) == (["a", "b"], [0, 1, 2], 0.5)


def test_log_likelihoods_have_no_symbols_in_files(tmp_path: Path) -> None:
    frames = [np.log([[0.5, 0.5], [0.1, 0.9]])]
    hmm = besag.HMM(2, emission="log_likelihood", max_iter=2).fit(frames)
    hmm.save(tmp_path / "hmm.besag")
    assert_array_equal(besag.load(tmp_path / "hmm.besag").predict(frames)[0], hmm.predict(frames)[0])


def test_y_that_knows_nothing_is_as_no_y() -> None:
    plain = besag.HMM(2, max_iter=3).fit(X)
    unknown: tuple[Any, ...] = (None, np.nan, -1)
    for value in unknown:
        found = besag.HMM(2, max_iter=3).fit(X, [[value] * len(x) for x in X])
        assert_array_equal(found.emission_, plain.emission_)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_states": 2, "symbols": [-1, 1]}, "symbols: -1 means missing"),
        ({"states": [-1, 1]}, "states: -1 means missing"),
        ({"n_states": 2, "symbols": []}, "symbols must be a list of names, and there is none"),
        ({"n_states": 2, "random_state": "none"}, "random_state must be a whole number"),
        ({"n_states": 2, "random_state": -1}, "random_state must be a whole number"),
    ],
)
def test_what_cannot_be_is_said(options: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        besag.HMM(**options).fit([[1, 1]])
