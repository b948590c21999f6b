"""random_state, as scikit-learn's users give it: a number, None, a generator."""

import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import ModelError
from besag.estimators.base import read_seed

ROWS = pd.DataFrame({"a": ["x", "y", None, "x", "y", "x"], "b": ["x", None, "y", "x", "y", "y"]})
FITS = {
    "BayesianNetwork": lambda seed: besag.BayesianNetwork([("a", "b")], random_state=seed).fit(ROWS),
    "MarkovNetwork": lambda seed: besag.MarkovNetwork([("a", "b")], random_state=seed).fit(ROWS),
    "Mixture": lambda seed: besag.Mixture(2, max_iter=2, random_state=seed).fit(ROWS),
    "HMM": lambda seed: besag.HMM(2, max_iter=2, random_state=seed).fit([[0, 1, 1, 0]]),
    "RBM": lambda seed: besag.RBM(2, max_iter=1, random_state=seed).fit(np.eye(4)),
}


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_what_a_random_state_may_be(name: str) -> None:
    for given in (None, 3, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)):
        assert FITS[name](given).model_ is not None
    with pytest.raises(ModelError, match=r"random_state must be a whole number from 0 on, None, or a gen.*, got -1"):
        FITS[name](-1)


def test_seeds() -> None:
    assert read_seed(np.int64(7)) == 7
    assert read_seed(np.random.default_rng(5)) == read_seed(np.random.default_rng(5))
    assert len({read_seed(None) for _ in range(5)}) == 5
    rng = np.random.default_rng(5)
    assert read_seed(rng) != read_seed(rng)


def test_draws_take_generators() -> None:
    network = besag.BayesianNetwork([("a", "b")]).fit(ROWS.dropna())
    one, same = (network.sample(20, random_state=np.random.default_rng(4)) for _ in range(2))
    pd.testing.assert_frame_equal(one, same)
    assert len(network.sample_models(3, random_state=None)) == 3
