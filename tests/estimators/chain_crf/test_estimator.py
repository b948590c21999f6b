"""ChainCRF: against enumeration, against CRFsuite's own answers, and in the manner of scikit-learn."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import besag
from besag import ChainCRF
from besag.errors import CapabilityError, ConvergenceWarning, EvidenceError, ModelError, ParseError
from tests.io.helpers import encrypted
from tests.routes import Forced

REFERENCES = Path(__file__).resolve().parents[2] / "references" / "crfsuite"
X = [
    [["w=the", "caps"], ["w=dog"], ["w=runs"]],
    [["w=dogs", "caps"], ["w=run"]],
    [["w=a", "caps"], ["w=run"], ["w=ended"]],
    [["w=the"], ["w=dogs"], ["w=run"], ["w=a"], ["w=run"]],
]
Y = [["D", "N", "V"], ["N", "V"], ["D", "N", "V"], ["D", "N", "V", "D", "N"]]


def score_of(crf: ChainCRF, items: Any, labels: Any) -> float:
    """By the weights that the estimator shows."""
    state, transition = crf.state_features_, crf.transition_features_
    single = sum(state.get((a, k), 0.0) for item, k in zip(items, labels, strict=True) for a in item)
    triples = sum(crf.triple_features_.get(three, 0.0) for three in zip(labels, labels[1:], labels[2:], strict=False))
    return single + sum(transition[pair] for pair in itertools.pairwise(labels)) + triples


def enumerated(crf: ChainCRF, items: Any) -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """All labellings and their probabilities."""
    labellings = list(itertools.product(crf.classes_, repeat=len(items)))
    scores = np.array([score_of(crf, items, labels) for labels in labellings])
    weights = np.exp(scores - scores.max())
    return labellings, weights / weights.sum()


@pytest.fixture(scope="module")
def crf() -> ChainCRF:
    return ChainCRF(l2=0.1).fit(X, Y)


def test_all_answers_are_those_of_enumeration(crf: ChainCRF) -> None:
    for items, labels in zip(X, Y, strict=True):
        labellings, p = enumerated(crf, items)
        order = np.argsort(-p)
        assert crf.predict([items])[0] == list(labellings[order[0]])
        assert crf.log_proba([items], [labels])[0] == pytest.approx(np.log(p[labellings.index(tuple(labels))]))
        marginals = crf.predict_marginals([items])[0]
        for t, k in itertools.product(range(len(items)), range(3)):
            expected = sum(q for y, q in zip(labellings, p, strict=True) if y[t] == crf.classes_[k])
            assert marginals[t, k] == pytest.approx(expected, abs=1e-12)
        for (found, probability), at in zip(crf.predict_kbest([items], k=4)[0], order, strict=False):
            assert found == list(labellings[at])
            assert probability == pytest.approx(p[at])


def test_unknown_labels_are_summed_out(crf: ChainCRF) -> None:
    labellings, p = enumerated(crf, X[0])
    expected = sum(q for y, q in zip(labellings, p, strict=True) if y[1] == "N")
    assert crf.log_proba([X[0]], [[None, "N", None]])[0] == pytest.approx(np.log(expected))
    partly = ChainCRF(l2=0.1).fit(X, [["D", None, "V"], *Y[1:]])
    assert partly.converged_
    assert partly.predict([X[1]]) == [Y[1]]
    assert -partly.log_proba(X, [["D", None, "V"], *Y[1:]]).sum() + 0.1 * penalty(partly) == pytest.approx(
        partly.objective_
    )


def penalty(crf: ChainCRF) -> float:
    return sum(w * w for w in [*crf.state_features_.values(), *crf.transition_features_.values()])


def test_the_objective_is_the_summed_loss_and_the_penalty(crf: ChainCRF) -> None:
    assert -crf.log_proba(X, Y).sum() + 0.1 * penalty(crf) == pytest.approx(crf.objective_, rel=1e-9)
    assert crf.history_["value"].iloc[-1] == crf.objective_
    assert crf.n_iter_ == len(crf.history_) - 1
    assert crf.classes_ == ["D", "N", "V"]
    assert set(crf.transition_features_) == set(itertools.product("DNV", repeat=2))
    assert ("w=dog", "N") in crf.state_features_
    assert ("w=dog", "V") not in crf.state_features_
    assert len(ChainCRF(pairs="all").fit(X, Y).state_features_) == 3 * 8


def test_sample_weights_are_repetitions() -> None:
    weighted = ChainCRF(tol=1e-9).fit(X, Y, sample_weight=[1, 2, 1, 3])
    repeated = ChainCRF(tol=1e-9).fit([X[i] for i in (0, 1, 1, 2, 3, 3, 3)], [Y[i] for i in (0, 1, 1, 2, 3, 3, 3)])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    for key, weight in weighted.state_features_.items():
        assert weight == pytest.approx(repeated.state_features_[key], abs=1e-5)


@pytest.mark.parametrize("name", ["seen", "sparse", "unicode"])
def test_models_of_crfsuite_give_its_labels_and_marginals(name: str) -> None:
    crf = ChainCRF.from_crfsuite(REFERENCES / f"{name}.crfsuite")
    expected = json.loads((REFERENCES / f"{name}.json").read_text(encoding="utf-8"))
    assert crf.classes_ == expected["labels"]
    for answer in expected["answers"]:
        items = [dict(item) for item in answer["items"]]
        assert crf.predict([items])[0] == answer["tags"]
        assert_allclose(crf.predict_marginals([items])[0], answer["marginals"], atol=1e-9)
        assert np.exp(crf.log_proba([items], [answer["tags"]])[0]) == pytest.approx(answer["probability"], abs=1e-9)


def test_l1_leaves_features_out() -> None:
    weights = np.array(list(ChainCRF(l1=0.5, l2=0.1).fit(X, Y).state_features_.values()))
    assert (weights == 0).any()
    assert (weights != 0).any()


def test_second_order_chains_against_enumeration() -> None:
    crf = ChainCRF(l2=0.1, order=2).fit(X, Y)
    first = ChainCRF(l2=0.1).fit(X, Y)
    assert -crf.log_proba(X, Y).sum() < -first.log_proba(X, Y).sum()
    assert crf.predict(X) == Y
    assert first.triple_features_ == {}
    assert any(weight != 0 for weight in crf.triple_features_.values())
    for items in X[:2]:
        labellings, p = enumerated(crf, items)
        found = np.exp(crf.log_proba([items] * len(labellings), [list(y) for y in labellings]))
        assert_allclose(found, p, rtol=1e-9)
        assert crf.predict([items])[0] == list(labellings[int(p.argmax())])


BIO_X = [[["a"], ["b"], ["c"], ["d"]], [["c"], ["d"], ["a"]], [["a"], ["b"]]]
BIO_Y = [["B-NP", "I-NP", "O", "B-VP"], ["O", "B-VP", "B-NP"], ["B-NP", "I-NP"]]


def test_bio_labels_that_cannot_be_have_no_probability() -> None:
    crf = ChainCRF(l2=0.1, constraint="BIO").fit(BIO_X, BIO_Y)
    assert crf.transition_features_["O", "I-NP"] == -np.inf
    assert crf.transition_features_["B-VP", "I-NP"] == -np.inf
    marginals = crf.predict_marginals([[["b"], ["b"], ["b"]]])[0]
    assert marginals[0, crf.classes_.index("I-NP")] == 0
    labels = crf.predict([[["b"], ["b"], ["b"]]])[0]
    assert labels[0] != "I-NP"
    assert crf.log_proba([BIO_X[0]], [["O", "O", "I-NP", "O"]])[0] == -np.inf
    with pytest.raises(ModelError, match="sequence 0, position 0: the constraints rule out label 'I-NP' at the start"):
        ChainCRF(constraint="BIO").fit([[["a"]], [["b"], ["c"]]], [["I-NP"], ["B-NP", "I-NP"]])
    with pytest.raises(ModelError, match="sequence 1, position 1: the constraints rule out label 'I-NP' after 'O'"):
        ChainCRF(constraint="BIO").fit([[["a"]], [["b"], ["c"]]], [["B-NP"], ["O", "I-NP"]])
    with pytest.raises(ModelError, match="sequence 0, position 1: the constraints rule out label 'B-A' at the end"):
        ChainCRF(constraint="BIOES").fit([[["b"], ["c"]], [["d"], ["e"]]], [["O", "B-A"], ["B-A", "E-A"]])
    with pytest.raises(ModelError, match="needs labels O and B-x, I-x, got 'D'"):
        ChainCRF(constraint="BIO").fit(X, Y)


def test_bioes_spans_are_closed() -> None:
    y = [["B-NP", "E-NP", "O", "S-VP"], ["O", "S-VP", "S-NP"], ["B-NP", "E-NP"]]
    crf = ChainCRF(l2=0.1, constraint="BIOES").fit(BIO_X, y)
    for pair in (("B-NP", "O"), ("O", "E-NP"), ("E-NP", "E-NP"), ("S-VP", "E-NP"), ("B-NP", "S-VP")):
        assert crf.transition_features_[pair] == -np.inf
    for pair in (("B-NP", "E-NP"), ("E-NP", "B-NP"), ("O", "S-VP"), ("E-NP", "O")):
        assert np.isfinite(crf.transition_features_[pair])
    marginals = crf.predict_marginals([[["a"], ["a"]]])[0]
    assert marginals[1, crf.classes_.index("B-NP")] == 0


def test_forbidden_transitions() -> None:
    crf = ChainCRF(l2=0.1, forbidden=[("V", "V"), ("D", "V")]).fit(X, Y)
    assert crf.transition_features_["V", "V"] == -np.inf
    assert crf.log_proba([X[1]], [["V", "V"]])[0] == -np.inf
    with pytest.raises(ModelError, match="forbidden: no label is 'X'"):
        ChainCRF(forbidden=[("X", "V")]).fit(X, Y)
    with pytest.raises(ModelError, match="sequence 0, position 1"):
        ChainCRF(forbidden=[("D", "N")]).fit(X, Y)


def test_the_probability_of_a_span() -> None:
    crf = ChainCRF(l2=0.1).fit(BIO_X, BIO_Y)
    items = BIO_X[0]
    labellings, p = enumerated(crf, items)
    expected = sum(
        q for y, q in zip(labellings, p, strict=True) if y[0] == "B-NP" and y[1] == "I-NP" and y[2] != "I-NP"
    )
    assert crf.span_probability(items, 0, 2, "NP") == pytest.approx(expected)
    with pytest.raises(ModelError, match="0 <= start < stop <= 4, got 2, 2"):
        crf.span_probability(items, 2, 2, "NP")
    for odd in (0.5, "0", None, True):
        with pytest.raises(ModelError, match="a span needs whole numbers"):
            crf.span_probability(items, odd, 2, "NP")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="no label is 'B-XP'"):
        crf.span_probability(items, 0, 1, "XP")


def test_decoding_by_marginals(crf: ChainCRF) -> None:
    by_token = ChainCRF(l2=0.1, decode="marginal").fit(X, Y)
    marginals = by_token.predict_marginals(X)
    assert by_token.predict(X) == [[by_token.classes_[k] for k in m.argmax(axis=1)] for m in marginals]
    assert by_token.score(X, Y) == pytest.approx(1.0)
    assert crf.score(X, [["D", "D", "V"], *Y[1:]]) == pytest.approx(12 / 13)


def test_arrays_and_integer_labels() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 4))
    y = [rng.integers(3, size=6) for _ in range(30)]
    x = [centres[labels] + 0.3 * rng.normal(size=(6, 4)) for labels in y]
    crf = ChainCRF().fit(x, y)
    assert crf.classes_ == [0, 1, 2]
    assert crf.score(x, y) > 0.9
    assert len(crf.state_features_) == 12
    with pytest.raises(ModelError, match=r"sequence 0 is an array of 5 columns: expected an array of 4 columns"):
        crf.predict([np.zeros((2, 5))])


def test_generators_and_empty_sequences(crf: ChainCRF) -> None:
    again = ChainCRF(l2=0.1).fit((x for x in X), (y for y in Y))
    assert again.objective_ == pytest.approx(crf.objective_, rel=1e-9)
    assert crf.predict([]) == []
    assert crf.predict([[], X[0]]) == [[], Y[0]]
    assert [m.shape for m in crf.predict_marginals([[], X[0]])] == [(0, 3), (3, 3)]
    assert crf.predict([[["unknown"], []]]) == crf.predict([[[], []]])


@pytest.mark.parametrize("hidden", [False, True])
def test_training_from_files_is_training_from_memory(hidden: bool, tmp_path: Path, forced: Forced) -> None:
    forced({"data.streamed.PART_TOKENS": 4})
    y = [["D", None, "V"], *Y[1:]] if hidden else Y
    weights = [1.0, 2.0, 0.5, 1.0]
    here = ChainCRF(l2=0.1, tol=1e-8).fit(X, y, weights)
    there = ChainCRF(l2=0.1, tol=1e-8, scratch=str(tmp_path)).fit(iter(X), iter(y), weights)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert there.classes_ == here.classes_
    assert there.state_features_ == pytest.approx(here.state_features_, abs=1e-5)
    assert list(tmp_path.iterdir()) == []
    stochastic = ChainCRF(l2=0.1, scratch=str(tmp_path), optimizer="adam[batch_size=2,step=0.1]", max_iter=200, tol=0.0)
    with pytest.warns(ConvergenceWarning):
        assert stochastic.fit(X, y, weights).objective_ == pytest.approx(here.objective_, rel=0.2)
    with pytest.raises(ModelError, match="sequence 2: X has 3 items, and y has 2 labels"):
        ChainCRF(scratch=str(tmp_path)).fit(X, [*Y[:2], ["D", "N"], Y[3]])
    with pytest.raises(ModelError, match="X has 4 sequences, and y has more"):
        ChainCRF(scratch=str(tmp_path)).fit(X, [*Y, ["N"]])
    with pytest.raises(ModelError, match="X has 4 sequences, and y has 3"):
        ChainCRF(scratch=str(tmp_path)).fit(X, Y[:3])
    with pytest.raises(ModelError, match="scratch must be an existing folder"):
        ChainCRF(scratch=str(tmp_path / "none")).fit(X, Y)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["crf.npz", "crf.besag"])
def test_saved_and_loaded(crf: ChainCRF, tmp_path: Path, suffix: str) -> None:
    crf.save(tmp_path / suffix)
    again = besag.load(tmp_path / suffix)
    assert isinstance(again, ChainCRF)
    assert again.get_params() == crf.get_params()
    assert again.predict(X) == crf.predict(X)
    assert again.state_features_ == crf.state_features_
    assert again.history_.equals(crf.history_)
    data = (tmp_path / suffix).read_bytes()
    (tmp_path / "broken.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ParseError, match=r"broken.npz"):
        besag.load(tmp_path / "broken.npz")


def test_constraints_are_saved(tmp_path: Path) -> None:
    crf = ChainCRF(l2=0.1, constraint="BIO", order=2).fit(BIO_X, BIO_Y)
    crf.save(tmp_path / "a.npz")
    again = besag.load(tmp_path / "a.npz")
    assert again.transition_features_ == crf.transition_features_
    assert_allclose(np.concatenate(again.predict_marginals(BIO_X)), np.concatenate(crf.predict_marginals(BIO_X)))


def test_errors_name_the_instance(crf: ChainCRF) -> None:
    with pytest.raises(ModelError, match=r"not fitted yet; call fit\(X, y\) first"):
        ChainCRF().predict(X)
    with pytest.raises(ModelError, match="sequence 1: X has 2 items, and y has 1 labels"):
        ChainCRF().fit(X, [Y[0], ["N"], *Y[2:]])
    with pytest.raises(ModelError, match="sequence 1 is empty"):
        ChainCRF().fit([X[0], []], [Y[0], []])
    with pytest.raises(ModelError, match="sequence 0, position 1: the label 'Q' was not seen in training"):
        crf.log_proba([X[1]], [["N", "Q"]])
    with pytest.raises(ModelError, match="sequence 0, position 0: the weight of attribute 'a' must be finite"):
        crf.predict([[{"a": float("nan")}]])
    with pytest.raises(ModelError, match="order must be one of 1, 2, got 3"):
        ChainCRF(order=3).fit(X, Y)
    with pytest.raises(ModelError, match="k must be a whole number of at least 1"):
        crf.predict_kbest(X, k=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        ChainCRF(max_iter=1).fit(X, Y)


def test_a_callback_ends_the_fit() -> None:
    seen = []
    crf = ChainCRF().fit(X, Y, on_step=lambda row, _: seen.append(row) or row.iteration == 2)
    assert [row.iteration for row in seen] == [1, 2]
    assert crf.n_iter_ == 2
    assert not crf.converged_


def test_in_the_manner_of_scikit_learn() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    crf = ChainCRF(l2=0.3, constraint=None)
    assert repr(crf) == "ChainCRF(l2=0.3)"
    assert clone(crf).get_params() == crf.get_params()
    assert crf.set_params(l1=0.1) is crf
    with pytest.raises(ValueError, match="no parameter 'c2'"):
        crf.set_params(c2=1)
    search = GridSearchCV(ChainCRF(), {"l2": [0.1, 1e4]}, cv=2).fit(X * 3, Y * 3)
    assert search.best_params_ == {"l2": 0.1}
    assert cross_val_score(ChainCRF(l2=0.1), X * 3, Y * 3, cv=3).mean() == pytest.approx(1.0)
    pipe = Pipeline([("same", FunctionTransformer(None)), ("crf", ChainCRF(l2=0.1))]).fit(X, Y)
    assert pipe.predict(X) == Y


def test_values_count_where_no_attribute_has_many_labels() -> None:
    x, y = [[{"temp": 10.0}, {"rain": -5.0}, {"wind": -7.0}]], [["a", "b", "a"]]
    crf = ChainCRF().fit(x, y)
    assert -crf.log_proba(x, y).sum() + penalty(crf) == pytest.approx(crf.objective_)


def test_threads_by_the_words_of_scikit_learn(crf: ChainCRF) -> None:
    assert ChainCRF(l2=0.1, n_jobs=-1).fit(X, Y).objective_ == pytest.approx(crf.objective_, rel=1e-9)
    for n_jobs in (0, -2, 1.5, "a"):
        with pytest.raises(ModelError, match="threads must be a whole number of at least 1"):
            ChainCRF(n_jobs=n_jobs).fit(X, Y)


@pytest.mark.parametrize("order", [1, 2])
def test_sequences_without_a_labelling_are_refused(order: int) -> None:
    pairs = list(itertools.product("DN", repeat=2))
    crf = ChainCRF(order=order, forbidden=pairs).fit([[["a"]], [["b"]]], [["D"], ["N"]])
    items = [[["a"]], [["a"], ["b"]]]
    for ask in (crf.predict, crf.predict_marginals, crf.set_params(decode="marginal").predict):
        with pytest.raises(ModelError, match="sequence 1 has no labelling that the constraints allow"):
            ask(items)
    with pytest.raises(ModelError, match="no labelling that the constraints allow"):
        crf.predict_kbest(items)


def test_parameters_come_back_as_they_were(tmp_path: Path) -> None:
    """Numbers of numpy, as a grid search sets them, and pairs."""
    first = ChainCRF(max_iter=np.int64(30), l2=np.float64(0.1), forbidden=[("V", "D"), ("V", "V")]).fit(X[:3], Y[:3])
    first.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    assert again.get_params() == first.get_params()
    assert again.predict(X) == first.predict(X)


def test_an_impossible_sequence_is_named_whatever_its_shard(forced: Forced, tmp_path: Path) -> None:
    forced({"data.sequences.SHARD_TOKENS": 4})
    items, labels = [[["a"], ["b"]]] * 20, [["A", "B"]] * 18 + [[None, "C"], ["C", "A"]]
    forbidden = [(label, "C") for label in "ABC"]
    for scratch in (None, tmp_path):
        with pytest.raises(EvidenceError, match="instance 18 has no labelling"):
            ChainCRF(forbidden=forbidden, scratch=scratch).fit(items, labels)


def test_a_fit_that_gets_nowhere_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="no step that makes the value smaller.*scale them"):
        ChainCRF().fit([[{"a": 1e300}], [{"b": 1.0}]], [["A"], ["B"]])


def test_forbidden_pairs_in_a_set_are_saved(tmp_path: Path) -> None:
    crf = ChainCRF(l2=0.1, forbidden={("V", "V"), ("D", "V")}).fit(X, Y)
    crf.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    assert sorted(map(tuple, again.forbidden)) == [("D", "V"), ("V", "V")]
    assert again.predict(X) == crf.predict(X)


def test_odd_time_limits_and_sparse_arrays_of_one_axis() -> None:
    for odd in ("1", -1, True, float("nan")):
        with pytest.raises(CapabilityError, match="time_limit must be a number of seconds"):
            ChainCRF(time_limit=odd).fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"shape \(T, D\), got \(2,\)"):
        ChainCRF().fit([scipy.sparse.coo_array(np.ones(2))], [["D", "N"]])


def test_forbidden_pairs_that_are_none() -> None:
    for forbidden in ([("D",)], [3], [("D", "N", "V")]):
        with pytest.raises(ModelError, match="forbidden must have pairs"):
            ChainCRF(forbidden=forbidden).fit(X, Y)
    with pytest.raises(ModelError, match="forbidden must be a list of pairs"):
        ChainCRF(forbidden=iter([("D", "D")])).fit(X, Y)


def test_small_things(crf: ChainCRF, tmp_path: Path) -> None:
    assert not hasattr(ChainCRF(), "classes_")
    assert ChainCRF.from_crfsuite(REFERENCES / "seen.crfsuite").n_iter_ == 0
    own = ChainCRF(optimizer="lbfgs[max_iterations=3]")
    with pytest.warns(ConvergenceWarning):
        assert own.fit(X, Y).n_iter_ == 3
    numpy_numbers = ChainCRF(max_iter=np.int64(200), tol=np.float64(1e-5), order=np.int64(1), l2=np.float64(0.1))
    assert numpy_numbers.fit(X, Y).objective_ == pytest.approx(crf.objective_, rel=1e-6)
    assert crf.score([X[1]], [["N", "Q"]]) == 0.5
    with pytest.raises(ModelError, match="nothing to score"):
        crf.score([X[1]], [[None, None]])
    with pytest.raises(ModelError, match="weights must be numbers"):
        ChainCRF().fit(X, Y, sample_weight="abc")
    pairs = ChainCRF().fit(X, [[(label, 1) for label in y] for y in Y])
    with pytest.raises(ModelError, match="only labels that are texts or numbers can be saved"):
        pairs.save(tmp_path / "a.npz")
    assert ChainCRF(order=2).fit(X, Y).predict([[], []]) == [[], []]
    assert crf.log_proba([], []).shape == (0,)


def test_damaged_files_are_parse_errors(crf: ChainCRF, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    crf.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        data = bytearray(whole)
        for at in rng.integers(4, len(data), size=3):
            data[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data))
        try:
            besag.load(path)
        except ParseError:
            refused += 1
    assert refused > 50
    path.write_bytes(encrypted(whole))
    with pytest.raises(ParseError, match=r"a\.npz: .* cannot be read: .* is encrypted"):
        besag.load(path)
