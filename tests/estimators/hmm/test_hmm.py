"""HMM: every answer against all paths; learning step by step; what users give, and what they get wrong."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Array
from besag.errors import CapabilityError, ConvergenceWarning, EvidenceError, ModelError

NONE = -1
FEW = pytest.mark.filterwarnings("ignore:HMM stopped")


def model(k: int = 3, m: int = 4, seed: int = 0, **options: Any) -> besag.HMM:
    """Random parameters with a forbidden transition and a symbol that a state never shows."""
    rng = np.random.default_rng(seed)
    transition, emission = rng.dirichlet(np.ones(k), k), rng.dirichlet(np.ones(m), k)
    transition[0, 1], emission[1, 0] = 0.0, 0.0
    rows = transition.sum(axis=1, keepdims=True), emission.sum(axis=1, keepdims=True)
    return besag.HMM.from_parameters(rng.dirichlet(np.ones(k)), transition / rows[0], emission / rows[1], **options)


def all_paths(hmm: besag.HMM, x: list[int], known: list[int] | None = None) -> dict[tuple[int, ...], float]:
    """p(y, x) of each path that agrees with the known states."""
    k, found = len(hmm.states_), {}
    for y in itertools.product(range(k), repeat=len(x)):
        if known is not None and any(own not in (NONE, state) for own, state in zip(known, y, strict=True)):
            continue
        p = hmm.start_[y[0]] * np.prod([hmm.transition_[a, b] for a, b in itertools.pairwise(y)])
        found[y] = p * np.prod([1.0 if s == NONE else hmm.emission_[c, s] for c, s in zip(y, x, strict=True)])
    return found


def marginals_of(paths: dict[tuple[int, ...], float], k: int) -> Array:
    total = np.zeros((len(next(iter(paths))), k))
    for y, p in paths.items():
        total[np.arange(len(y)), list(y)] += p
    return total / sum(paths.values())


CASES = [
    ([0, 3, 2, 1, 0], None),
    ([0, NONE, 2, NONE, NONE], None),
    ([NONE, NONE, NONE], None),
    ([3, 3, 1, 2], [NONE, 2, NONE, 0]),
    ([NONE, 0, 1, NONE], [0, NONE, NONE, 2]),
    ([2], None),
]


@pytest.mark.parametrize(("x", "known"), CASES)
def test_answers_are_sums_and_maxima_over_all_paths(x: list[int], known: list[int] | None) -> None:
    hmm = model()
    paths, y = all_paths(hmm, x, known), None if known is None else [known]
    assert_allclose(hmm.log_likelihood([x], y=y), np.log(sum(paths.values())), rtol=1e-12, atol=1e-14)
    assert_allclose(hmm.predict_marginals([x], y=y)[0], marginals_of(paths, 3), atol=1e-13)
    assert_allclose(paths[tuple(hmm.predict([x], y=y)[0].tolist())], max(paths.values()), rtol=1e-12)
    hmm.decode = "marginal"
    assert_array_equal(hmm.predict([x], y=y)[0], marginals_of(paths, 3).argmax(axis=1))
    best = sorted(paths.items(), key=lambda pair: -pair[1])[:5]
    for (own, p), (_, weight) in zip(hmm.predict_kbest([x], 5, y=y)[0], best, strict=False):
        assert_allclose(p, weight / sum(paths.values()), rtol=1e-10)
        assert_allclose(paths[tuple(own)], weight, rtol=1e-10)  # not path itself: several may be as good


def test_other_engines_answer_on_the_unrolled_chain() -> None:
    hmm, x = model(), [0, 3, NONE, 1]
    chain = hmm.unroll(4)
    evidence = {f"symbol[{t}]": str(s) for t, s in enumerate(x) if s != NONE}
    for engine in ("tree", "junction_tree", "brute"):
        found = chain.marginals(evidence=evidence, engine=engine)
        assert_allclose(found.log_partition, hmm.log_likelihood([x]), rtol=1e-12)
        own = np.array([found[f"state[{t}]"] for t in range(4)])
        assert_allclose(own, hmm.predict_marginals([x])[0], atol=1e-12)


def test_log_likelihoods_in_place_of_symbols() -> None:
    hmm, x = model(), [0, 3, 2, 1, 0]
    with np.errstate(divide="ignore"):
        frames = np.log(hmm.emission_[:, x].T)
    dense = besag.HMM.from_parameters(hmm.start_, hmm.transition_)
    assert dense.emission == "log_likelihood"
    assert_allclose(dense.log_likelihood([frames]), hmm.log_likelihood([x]), rtol=1e-12)
    assert_allclose(dense.predict_marginals([frames])[0], hmm.predict_marginals([x])[0], atol=1e-13)
    known = [[NONE, 2, NONE, NONE, 0]]
    assert_allclose(dense.score_samples([frames], y=known), hmm.score_samples([x], y=known), rtol=1e-12)
    assert_array_equal(dense.predict([frames], y=known)[0], hmm.predict([x], y=known)[0])
    assert dense.unroll(2).variables.names_at(range(2)) == ["state[0]", "state[1]"]


def sequences(n: int = 20, seed: int = 3) -> list[Array]:
    drawn, _ = model().sample(12, n, random_state=seed)
    return [x[: 3 + i % 10] for i, x in enumerate(drawn)]


@FEW
@pytest.mark.parametrize("prior", [0.0, 0.5, {"emission": 0.1, "start": [1, 0, 2]}])
@pytest.mark.parametrize("training", ["baum_welch", "viterbi"])
def test_no_step_makes_the_value_larger(prior: Any, training: str) -> None:
    X = sequences()
    X[0] = np.where(np.arange(len(X[0])) == 1, NONE, X[0])
    y = [[NONE] * len(x) for x in X]
    y[1][0], y[2][2] = 1, 2
    hmm = besag.HMM(3, prior=prior, training=training, max_iter=60, tol=0.0, random_state=5).fit(X, y)
    values = hmm.history_["value"].to_numpy()
    assert len(values) > 4
    assert (np.diff(values) <= 1e-9 * np.abs(values[1:])).all()
    assert values[-1] < values[0]
    if training == "baum_welch":
        assert_allclose(hmm.history_["log_likelihood"].iloc[-1], hmm.log_likelihood(X, y=y), rtol=1e-10)


def test_one_step_is_expected_counts_over_their_sums() -> None:
    begin, X, y = model(), [[0, 1, NONE, 2], [3, 3]], [[NONE, NONE, 1, NONE], [NONE, NONE]]
    with pytest.warns(ConvergenceWarning, match="more than max_iter=1 may help"):
        found = besag.HMM(init=begin, max_iter=1).fit(X, y)
    start, transition, emission = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 4))
    for x, known in zip(X, y, strict=True):
        paths = all_paths(begin, x, known)
        for path, p in paths.items():
            share = p / sum(paths.values())
            start[path[0]] += share
            np.add.at(transition, (list(path[:-1]), list(path[1:])), share)
            for state, symbol in zip(path, x, strict=True):
                emission[state, symbol if symbol != NONE else 0] += share * (symbol != NONE)
    assert_allclose(found.start_, start / start.sum(), rtol=1e-12)
    assert_allclose(found.transition_, transition / transition.sum(axis=1, keepdims=True), rtol=1e-11)
    assert_allclose(found.emission_, emission / emission.sum(axis=1, keepdims=True), rtol=1e-11)


@FEW
def test_forbidden_transitions_and_zeros_stay_zero() -> None:
    X = sequences()
    found = besag.HMM(3, forbidden=[(0, 2), (2, 1)], prior=0.5, max_iter=20).fit(X)
    assert found.transition_[0, 2] == found.transition_[2, 1] == 0.0
    assert (found.transition_.sum(axis=1) - 1 < 1e-12).all()
    paths = found.predict(X)
    assert not any((a, b) in [(0, 2), (2, 1)] for path in paths for a, b in itertools.pairwise(path.tolist()))
    left_to_right = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]], np.full((3, 4), 0.25)
    found = besag.HMM(init=([1, 0, 0], *left_to_right), max_iter=5).fit(X)
    assert_array_equal(found.start_, [1, 0, 0])
    assert_array_equal(found.transition_ > 0, np.array(left_to_right[0]) > 0)


@FEW
def test_states_keep_their_names_where_some_are_known() -> None:
    truth = besag.HMM.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], states=["low", "high"]
    )
    X, y = truth.sample(30, 20, random_state=1)
    part = [[None if t % 10 else str(state) for t, state in enumerate(own)] for own in y]
    for seed in range(4):
        found = besag.HMM(states=["low", "high"], random_state=seed).fit(X, part)
        assert found.states_ == ["low", "high"]
        assert_allclose(found.emission_, truth.emission_, atol=0.1)
    assert besag.HMM().fit(X, part).states_ == ["high", "low"]  # those of y, sorted
    complete = besag.HMM(states=["low", "high"]).fit(X, [own.tolist() for own in y])
    counts = np.zeros((2, 3))
    np.add.at(counts, ((np.concatenate(y) == "high").astype(int), np.concatenate(X)), 1)
    assert_allclose(complete.emission_, counts / counts.sum(axis=1, keepdims=True), rtol=1e-12)
    assert complete.n_iter_ == 2


@FEW
def test_forms_of_input_give_the_same() -> None:
    X = sequences()
    lengths, joined = [len(x) for x in X], np.concatenate(X)
    one = besag.HMM(3, max_iter=5).fit(X)
    for given, sizes in ((joined, lengths), (joined[:, None], np.array(lengths)), (joined.tolist(), lengths)):
        other = besag.HMM(3, max_iter=5).fit(given, lengths=sizes)
        assert_array_equal(other.emission_, one.emission_)
        assert_array_equal(other.predict(given, lengths=sizes), np.concatenate(one.predict(X)))
    assert one.predict_marginals(joined, lengths=lengths).shape == (len(joined), 3)
    named = besag.HMM(3, max_iter=5).fit([[f"s{s}" for s in x] for x in X])
    assert named.symbols_ == [f"s{s}" for s in one.symbols_]
    assert_array_equal(named.emission_, one.emission_)
    floats = [pd.Series([None if s == 2 else s for s in x], dtype="float") for x in X]
    missing = [[None if s == 2 else int(s) for s in x] for x in X]
    assert besag.HMM(3, max_iter=5).fit(floats).objective_ == besag.HMM(3, max_iter=5).fit(missing).objective_


def test_one_array_is_one_sequence() -> None:
    x = np.array([0, 1, 2, 3])
    assert model().predict(x).shape == (4,)
    assert_allclose(model().log_likelihood(x), model().log_likelihood([x]))


@FEW
def test_answers_depend_on_neither_threads_nor_time() -> None:
    X = sequences(200)
    found = [besag.HMM(3, max_iter=8, n_jobs=n).fit(X) for n in (1, 2, 3)]
    for other in found[1:]:
        assert_array_equal(other.transition_, found[0].transition_)
    stopped = besag.HMM(3, time_limit=0.0).fit(X)
    assert (stopped.stopped_, stopped.n_iter_) == ("time_limit", 0)


def test_restarts_give_the_best_end() -> None:
    X = sequences()
    alone = [besag.HMM(3, random_state=7, restarts=n, max_iter=300).fit(X).objective_ for n in range(4)]
    assert all(b <= a for a, b in itertools.pairwise(alone))
    assert alone[-1] < alone[0]


@FEW
def test_checkpoints_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    X, file = sequences(), tmp_path / "hmm.npz"
    whole = besag.HMM(3, max_iter=12, tol=0.0).fit(X)
    besag.HMM(3, max_iter=5, tol=0.0).fit(X, checkpoint=file)
    resumed = besag.HMM(3, max_iter=12, tol=0.0).fit(X, checkpoint=file)
    assert_array_equal(resumed.transition_, whole.transition_)
    assert_array_equal(resumed.history_[["value", "log_likelihood"]], whole.history_[["value", "log_likelihood"]])
    with pytest.raises(ModelError, match="other data"):
        besag.HMM(3, max_iter=12).fit(X[1:], checkpoint=file)
    with pytest.raises(ModelError, match="leave out restarts"):
        besag.HMM(3, restarts=1).fit(X, checkpoint=file)


@FEW
def test_files_hold_all_of_it(tmp_path: Path) -> None:
    X = sequences()
    hmm = besag.HMM(states=["a", "b", "c"], init=model(states=["a", "b", "c"]), max_iter=3, prior={"start": [1, 2, 3]})
    hmm.fit(X).save(tmp_path / "hmm.npz")
    read = besag.load(tmp_path / "hmm.npz")
    assert read.states_ == ["a", "b", "c"]
    assert_array_equal(np.concatenate(read.predict(X)), np.concatenate(hmm.predict(X)))
    pd.testing.assert_frame_equal(read.history_, hmm.history_)
    dense = besag.HMM.from_parameters([0.5, 0.5], np.full((2, 2), 0.5))
    dense.save(tmp_path / "dense.npz")
    assert besag.load(tmp_path / "dense.npz").log_likelihood([np.zeros((3, 2))]) == pytest.approx(0.0)


def test_samples_have_the_frequencies_of_the_model() -> None:
    hmm = model()
    x, y = hmm.sample(50_000, random_state=2)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (y[:-1], y[1:]), 1)
    assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), hmm.transition_, atol=0.02)
    seen = np.zeros((3, 4))
    np.add.at(seen, (y, x), 1)
    assert_allclose(seen / seen.sum(axis=1, keepdims=True), hmm.emission_, atol=0.02)
    several, states = hmm.sample(3, 4000, random_state=2)
    assert len(several) == len(states) == 4000
    assert_allclose(np.bincount([own[0] for own in states]) / 4000, hmm.start_, atol=0.03)


@FEW
def test_conventions_of_scikit_learn(capsys: pytest.CaptureFixture[str]) -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    hmm = besag.HMM(2, max_iter=3, random_state=4)
    assert clone(hmm).get_params() == hmm.get_params()
    assert repr(hmm) == "HMM(n_states=2, max_iter=3, random_state=4)"
    with pytest.raises(besag.errors.ModelError, match="not fitted"):
        hmm.predict([[0]])
    X = np.array([x[:3] for x in sequences()], object)
    search = GridSearchCV(hmm, {"n_states": [1, 2]}, cv=2).fit(list(map(list, X)))
    assert search.best_params_["n_states"] in (1, 2)
    seen: list[float] = []
    hmm.set_params(verbose=True).fit(sequences(), on_step=lambda row, theta: seen.append(row.value) or len(seen) == 2)
    assert hmm.stopped_ == "early_stopping"
    assert len(seen) == 2
    assert "HMM: iteration 2" in capsys.readouterr().err


X3 = [[0, 1], [2, 0, 1]]
BAD: list[tuple[Any, Any, type[Exception], str]] = [
    ({"n_states": 0}, {"X": X3}, ModelError, "n_states must be a whole number from 1 on, got 0"),
    ({}, {"X": X3}, ModelError, "the number of states is not known"),
    ({"n_states": 2}, {"X": [[0], []]}, ModelError, "sequence 1 is empty: leave it out"),
    ({"n_states": 2}, {"X": []}, ModelError, "there is no sequence"),
    ({"n_states": 2}, {"X": np.zeros(4, int), "lengths": [2, 3]}, ModelError, "lengths add up to 5, .* 4 tokens"),
    ({"n_states": 2}, {"X": np.zeros(4, int), "lengths": [4, 0]}, ModelError, "sequence 1 is empty"),
    ({"n_states": 2}, {"X": np.zeros(4, int), "lengths": [1.5, 2.5]}, ModelError, "lengths must be whole numbers"),
    ({"n_states": 2}, {"X": [0, 1, 2]}, ModelError, r"of one sequence make a list, \[X\]"),
    ({"n_states": 2}, {"X": np.zeros((3, 2), int)}, ModelError, "expected one axis of tokens"),
    ({"n_states": 2}, {"X": [[0.5, 1.0]]}, ModelError, "sequence 0: symbols are texts or whole numbers, got 0.5"),
    ({"n_states": 2}, {"X": [np.array([0.5, 1.0])]}, ModelError, "symbols are texts or whole numbers, got 0.5"),
    (
        {"n_states": 2, "symbols": [0, 1]},
        {"X": X3},
        ModelError,
        "sequence 1, position 0: 2 is no symbol; there are 0, 1",
    ),
    ({"n_states": 2}, {"X": [[-2, 1]]}, ModelError, "-2 is no symbol"),
    ({"n_states": 2}, {"X": [[-1, None]]}, ModelError, "no symbol is known"),
    ({"n_states": 2}, {"X": [["a", 1]]}, ModelError, "all of one type"),
    ({"n_states": 2}, {"X": X3, "y": [[0, 1], [2, 0, 1]]}, ModelError, "y has the states .* n_states=2"),
    ({"states": ["u", "v"]}, {"X": X3, "y": [["u", "w"], [None] * 3]}, ModelError, "'w' is no state; .*there are u, v"),
    ({"n_states": 2}, {"X": X3, "y": [[0, 1]]}, ModelError, "y must have the lengths of X"),
    ({"n_states": 2, "states": ["u"]}, {"X": X3}, ModelError, "states must be 2 names"),
    ({"states": ["u", "u"]}, {"X": X3}, ModelError, "'u' comes twice"),
    (
        {"n_states": 2, "forbidden": [(0, 0), (0, 1)]},
        {"X": X3},
        ModelError,
        "all transitions from state 0 are ruled out",
    ),
    ({"n_states": 2, "forbidden": [(0, 7)]}, {"X": X3}, ModelError, "no state is 7"),
    ({"n_states": 2, "forbidden": "01"}, {"X": X3}, ModelError, "list of pairs"),
    ({"n_states": 2, "prior": -1}, {"X": X3}, ModelError, "prior: start must be finite and not below 0"),
    ({"n_states": 2, "prior": {"end": 1}}, {"X": X3}, ModelError, "prior has no part 'end'"),
    ({"n_states": 2, "training": "em"}, {"X": X3}, ModelError, "training must be one of 'baum_welch', 'viterbi'"),
    ({"n_states": 2, "max_iter": -1}, {"X": X3}, CapabilityError, "max_iterations"),
    ({"n_states": 2, "restarts": -1}, {"X": X3}, ModelError, "restarts must be a whole number"),
    ({"n_states": 2, "init": model()}, {"X": X3}, ModelError, "init has 3 states, and n_states=2"),
    ({"init": 3}, {"X": X3}, ModelError, "init must be None"),
    (
        {"init": ([0.5, 0.5], np.full((2, 2), 0.5), np.full((2, 3), 1 / 3))},
        {"X": X3},
        ModelError,
        "states 0 and 1 are alike in everything",
    ),
    (
        {"init": ([1.0, 0.0], np.eye(2), [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])},
        {"X": X3},
        EvidenceError,
        "sequence 0 has probability 0",
    ),
    ({"n_states": 2, "emission": "log_likelihood"}, {"X": [np.zeros((3, 4))]}, ModelError, r"must have shape \(T, 2\)"),
    (
        {"n_states": 2, "emission": "log_likelihood"},
        {"X": [np.zeros((1, 2)), np.array([[0.0, 0.0], [0.0, np.nan]])]},
        ModelError,
        "sequence 1, position 1: log-likelihoods must be numbers below infinity, got .*nan",
    ),
]


@pytest.mark.parametrize(("options", "data", "kind", "text"), BAD)
def test_what_is_wrong_is_said(options: Any, data: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        besag.HMM(**options).fit(**data)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([0.5, 0.6], np.eye(2)), "start must add up to 1, got 1.1"),
        (([0.5, 0.5], np.eye(3)), r"transition must have shape \(2, 2\)"),
        (([0.5, 0.5], np.zeros((2, 2))), "row 0 of transition must add up to 1, got 0: nothing is allowed there"),
        (([0.5, 0.5], [[1.0, np.nan], [0, 1]]), "transition must be probabilities from 0 on, got nan"),
        (([0.5, 0.5], np.eye(2), np.eye(3)), r"emission must have shape \(2, M\)"),
        (([], np.zeros((0, 0))), "start is empty"),
        ((0.5, [[1.0]]), "start must have 1 axes"),
    ],
)
def test_wrong_parameters(parts: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        besag.HMM.from_parameters(*parts)


def test_impossible_sequences_are_told() -> None:
    hmm = besag.HMM.from_parameters([1.0, 0.0], np.eye(2), np.eye(2))
    assert_array_equal(hmm.score_samples([[0, 0], [0, 1]]), [0.0, -np.inf])
    for ask in (hmm.predict, hmm.predict_marginals, hmm.predict_kbest):
        with pytest.raises(EvidenceError, match="sequence 1 has probability 0"):
            ask([[0, 0], [0, 1]])


def test_names_of_a_frame() -> None:
    emission = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], index=["dry", "wet"], columns=["walk", "umbrella"])
    hmm = besag.HMM.from_parameters([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emission)
    assert hmm.predict([["umbrella", "umbrella", "walk"]])[0].tolist() == ["wet", "wet", "dry"]
    assert hmm.unroll(2).variable("state[1]").states == ("dry", "wet")
