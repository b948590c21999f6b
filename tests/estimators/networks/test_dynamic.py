"""Dynamic networks: the unrolled network by hand, filtering against conditioning, counting, EM on frames."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import DataError, EvidenceError, ModelError

FEW = pytest.mark.filterwarnings("ignore:EM stopped")


def two_chains(seed: int = 0) -> besag.Model:
    """Two coupled chains, an observation in every slice, and one with a CPT of its own in the first slice."""
    rng = np.random.default_rng(seed)
    sizes = {"A": 2, "A'": 2, "B": 3, "B'": 3, "x": 2, "y": 2, "y'": 2}

    def cpt(*names: str) -> np.ndarray:
        shape = [sizes[name] for name in names]
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])

    return besag.bayesian_network(
        "A -> A'; A -> B; A -> B' <- B; A' -> B'; A -> x <- B; B -> y; B' -> y'",
        sizes,
        {
            "A": cpt("A"), "A'": cpt("A", "A'"), "B": cpt("A", "B"), "B'": cpt("A", "B", "A'", "B'"),
            "x": cpt("A", "B", "x"), "y": cpt("B", "y"), "y'": cpt("B'", "y'"),
        },
    )  # fmt: skip


def by_hand(model: besag.Model, T: int) -> besag.Model:
    """The same T slices as any Bayesian network, with a table for each variable."""
    edges, cpts, sizes = [], {}, {}
    for t in range(T):
        for name in ("A", "B", "x", "y"):
            own = name if t == 0 or name == "x" else f"{name}'"
            above = [
                f"{p}[{t - 1}]" if own.endswith("'") and not p.endswith("'") else f"{p.removesuffix(chr(39))}[{t}]"
                for p in model.parents(own)
            ]
            edges += [(p, f"{name}[{t}]") for p in above]
            cpts[f"{name}[{t}]"], sizes[f"{name}[{t}]"] = model.cpt(own), len(model.variable(own).states)
    return besag.bayesian_network(edges, sizes, cpts)


@pytest.mark.parametrize("T", [1, 2, 4])
def test_unrolled_is_the_network_by_hand(T: int) -> None:
    model = two_chains()
    unrolled, other = besag.unroll(model, T), by_hand(model, T)
    assert unrolled.is_bayesian_network
    names = unrolled.variables.names_at(range(4 * T))
    assert names[:4] == ["A[0]", "B[0]", "x[0]", "y[0]"]
    evidence = {f"x[{t}]": str(t % 2) for t in range(T)} | {f"y[{T - 1}]": "1"}
    for given in ({}, evidence):
        ours, theirs = (m.marginals(evidence=given, engine="exact") for m in (unrolled, other))
        for name in names:
            assert_allclose(ours[name], theirs[name], rtol=1e-12, atol=1e-13)
        assert_allclose(ours.log_partition, theirs.log_partition, rtol=1e-12, atol=1e-13)
    best = [m.map(evidence=evidence) for m in (unrolled, other)]
    assert_allclose(best[0].energy, best[1].energy, rtol=1e-12)
    rows = other.sample(20, seed=1)
    assert_allclose(unrolled.log_probability(rows), other.log_probability(rows), rtol=1e-12)
    for name in names:
        assert_allclose(unrolled.cpt(name), other.cpt(name), rtol=1e-15)


def test_slices_share_one_theta() -> None:
    model = two_chains()
    assert_array_equal(besag.unroll(model, 7).theta, model.theta)
    counts = besag.unroll(model, 7).moments()
    assert counts.shape == model.theta.shape


def frame(T: int = 5, seed: int = 3, hidden: tuple[str, ...] = ("A", "B"), model: besag.Model | None = None) -> Any:
    drawn = besag.DynamicNetwork(model or two_chains()).sample(T, random_state=seed)
    return drawn.drop(columns=list(hidden))


def test_filtered_is_conditioning_on_what_came_before() -> None:
    model, given = two_chains(), frame()
    given.loc[2, "x"] = np.nan
    found = besag.DynamicNetwork(model).filtered(given)
    unrolled = besag.unroll(model, 5)
    for t in range(5):
        cells = itertools.product(("x", "y"), range(t + 1))
        evidence = {f"{c}[{s}]": given.loc[s, c] for c, s in cells if not pd.isna(given.loc[s, c])}
        truth = unrolled.marginals(evidence=evidence)
        for name in ("A", "B", "x", "y"):
            assert_allclose(found[name].loc[t], truth[f"{name}[{t}]"], atol=1e-12)


def test_smoothed_predicted_and_best() -> None:
    model, given = two_chains(), frame()
    network, unrolled = besag.DynamicNetwork(model), besag.unroll(model, 7)
    evidence = {f"{c}[{t}]": given.loc[t, c] for c in given for t in range(5)}
    truth = unrolled.marginals(evidence=evidence)
    smoothed, predicted = network.smoothed(given), network.predicted(given, 2)
    for name in ("A", "B"):
        assert_allclose(smoothed[name], [truth[f"{name}[{t}]"] for t in range(5)], atol=1e-12)
        assert_allclose(predicted[name], [truth[f"{name}[{t}]"] for t in (5, 6)], atol=1e-12)
    assert list(predicted["A"].index) == [5, 6]
    assert_allclose(network.filtered(given)["A"].iloc[-1], smoothed["A"].iloc[-1], atol=1e-12)
    best = besag.unroll(model, 5).map(evidence=evidence).assignment
    assert network.predict(given)["A"].tolist() == [best[f"A[{t}]"] for t in range(5)]
    assert_allclose(network.log_likelihood([given]), float(truth.log_partition), rtol=1e-12)


def test_complete_frames_are_counted() -> None:
    model = two_chains()
    frames = besag.DynamicNetwork(model).sample(6, 40, random_state=2)
    frames = [f.iloc[: 2 + n % 5] for n, f in enumerate(frames)]
    found = besag.DynamicNetwork(model, prior=0.5).fit(frames).model_
    counts = np.full((2, 2), 0.5)
    for f in frames:
        np.add.at(counts, (f["A"].iloc[:-1].astype(int), f["A"].iloc[1:].astype(int)), 1.0)
    assert_allclose(found.cpt("A'"), counts / counts.sum(axis=1, keepdims=True), rtol=1e-12)
    counts = np.full((2, 3, 2), 0.5)
    for f in frames:
        np.add.at(counts, tuple(f[name].astype(int) for name in ("A", "B", "x")), 1.0)
    assert_allclose(found.cpt("x"), counts / counts.sum(axis=-1, keepdims=True), rtol=1e-12)


@FEW
@pytest.mark.parametrize("ragged", [False, True])
def test_em_on_frames_is_baum_welch_on_a_chain(ragged: bool) -> None:
    """A hidden Markov model as a dynamic network learns what besag.HMM learns, step by step."""
    hmm = besag.HMM.from_parameters([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    X, _ = hmm.sample(6, 12, random_state=1)
    X = [x[: 3 + n % 4] for n, x in enumerate(X)] if ragged else X
    frames = [pd.DataFrame({"symbol": x.astype(str)}) for x in X]
    found = besag.DynamicNetwork(hmm.slice_model_, max_iter=5, tol=0.0).fit(frames)
    other = besag.HMM(init=hmm, max_iter=5, tol=0.0).fit(X)
    assert_allclose(found.fit_.history["log_likelihood"], other.history_["log_likelihood"], rtol=1e-11)
    assert_allclose(found.model_.cpt("state'"), other.transition_, rtol=1e-9)
    assert_allclose(found.model_.cpt("symbol"), other.emission_, rtol=1e-9)
    assert_allclose(found.log_likelihood(frames), other.log_likelihood(X), rtol=1e-10)


@pytest.mark.parametrize(
    ("structure", "match"),
    [
        ("A -> A'; B' -> A'", "\"B'\" is the next 'B', and there is no 'B'"),
        ("A -> A'; A' -> x", "'x' cannot depend on \"A'\", which is in the next slice; name it \"x'\""),
        ("A[no,yes] -> A'[yes,no]", "must have the states of 'A', in the same order"),
    ],
)
def test_what_is_no_slice_model(structure: str, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        besag.unroll(besag.bayesian_network(structure), 2)


def test_bad_input() -> None:
    model = two_chains()
    network = besag.DynamicNetwork(model)
    with pytest.raises(ModelError, match="T must be a whole number of slices from 1 on, got 0"):
        besag.unroll(model, 0)
    with pytest.raises(ModelError, match="a slice model is a Bayesian network"):
        besag.unroll(besag.ising((2, 2)), 2)
    with pytest.raises(DataError, match="frame 1 has no rows"):
        network.fit([frame(), frame().iloc[:0]])
    with pytest.raises(DataError, match="column 'z' is no variable of a slice"):
        network.smoothed({"z": ["0"]})
    with pytest.raises(DataError, match=r"of one frame make \[frame\]"):
        network.fit(frame())
    with pytest.raises(ModelError, match="n_steps must be a whole number"):
        network.predicted(frame(), 0)
    certain = besag.bayesian_network("A -> A'", cpts={"A": [1, 0], "A'": np.eye(2)})
    with pytest.raises(EvidenceError, match="row 1 is impossible after those before it"):
        besag.DynamicNetwork(certain).filtered({"A": ["0", "1"]})
    assert besag.DynamicNetwork(certain).score_samples([{"A": ["0", "1"]}])[0] == -np.inf
