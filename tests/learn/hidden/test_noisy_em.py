"""EM of noisy-MAX factors: the likelihood rises, to that of the tables' own maximum, and parameters come back."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError


def truth() -> besag.Model:
    model = besag.bayesian_network("A; B; C; D[3]", cpts={name: [0.5, 0.5] for name in "AB"})
    model = model.with_noisy_or("C", {"A": 0.8, "B": 0.3}, 0.1)
    effects = {"A": [[1, 0, 0], [0.5, 0.3, 0.2]], "C": [[1, 0, 0], [0.2, 0.1, 0.7]]}
    return model.with_noisy_max("D", effects, leak=[0.9, 0.05, 0.05])


def start() -> besag.Model:
    model = besag.bayesian_network("A; B; C; D[3]").with_noisy_or("C", {"A": 0.5, "B": 0.5}, 0.5)
    third = [1 / 3, 1 / 3, 1 / 3]
    return model.with_noisy_max("D", {"A": [[1, 0, 0], third], "C": [[1, 0, 0], third]}, leak=third)


def effects(model: besag.Model, name: str) -> np.ndarray:
    at = model.variables.index(name)
    return next(g.template.structured.effects for g in model.groups if at in g.scopes[:, -1])


def test_parameters_come_back_from_complete_data() -> None:
    """Weighted rows in the exact proportions of the model: its maximum is the model itself."""
    model = truth()
    frame = model.to_frame()
    rows = frame[["A", "B", "C", "D"]]
    found = besag.em(start(), rows, weights=frame["p"].to_numpy() * 1000, max_iterations=4000, tolerance=1e-13)
    for name in "CD":
        assert_allclose(effects(found.model, name), effects(model, name), atol=1e-3)
    values = found.history["log_likelihood"].to_numpy()
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()
    assert_allclose(values[-1], 1000 * float((frame["p"] * np.log(frame["p"])).sum()), rtol=1e-7)


def test_the_likelihood_of_incomplete_data_rises_and_is_the_model_s() -> None:
    data = truth().sample(300, seed=1).astype(object)
    data.loc[data.index[::3], "A"] = None
    data.loc[data.index[::4], "C"] = None
    with pytest.warns(besag.errors.ConvergenceWarning):
        found = besag.em(start(), data, max_iterations=15)
    values = found.history["log_likelihood"].to_numpy()
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()
    assert_allclose(values[-1], found.model.log_partition(data).sum(), rtol=1e-9)
    assert found.model.is_bayesian_network
    codes = np.stack([pd.Categorical(data[name], truth().variable(name).states).codes for name in "ABCD"], 1)
    with pytest.warns(besag.errors.ConvergenceWarning):
        again = besag.em(start(), codes.astype(np.int64), max_iterations=15)
    assert_allclose(effects(again.model, "D"), effects(found.model, "D"))


def test_what_is_refused() -> None:
    with pytest.raises(ModelError, match="'C' is a noisy-MAX: prior_counts of it must be a number"):
        besag.em(start(), truth().sample(5), prior_counts={"C": np.ones((2, 2, 2))})
    with pytest.raises(ModelError, match="must be a number or"):
        besag.em(start(), truth().sample(5), prior_counts=np.ones(3))
    with pytest.raises(ModelError, match=r"int codes \(N, 4\)"):
        besag.em(start(), [["0", "1", "1", "2"]])
    with pytest.raises(ModelError, match=r"noisy-MAX factors are learnt by besag\.em"):
        besag.fit(start(), truth().sample(5))
