"""The query verbs against enumeration, on random models and on small ones whose answers are known."""

from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, EvidenceError, ModelError, TooLargeError
from besag.infer.bp.engine import BP
from besag.infer.iterate import Clock
from besag.model.model import Model
from besag.query.covariance import _parts
from tests.oracle import Enumeration, log_sum
from tests.strategies import evidence_for, examples, frame_for, models, rows_of

CLOSE = {"rtol": 1e-9, "atol": 1e-10}
RAIN = besag.bayesian_network(
    "cloudy[no,yes] -> rain[no,yes]; rain -> wet[dry,damp,soaked] <- sprinkler[off,on]",
    cpts={
        "cloudy": [0.6, 0.4],
        "rain": [[0.9, 0.1], [0.3, 0.7]],
        "sprinkler": [0.8, 0.2],
        "wet": [[[1.0, 0.0, 0.0], [0.0, 0.9, 0.1]], [[0.1, 0.5, 0.4], [0.0, 0.2, 0.8]]],
    },
)
FRAME = pd.DataFrame({"wet": ["dry", None, "soaked"], "cloudy": ["yes", "yes", None]}, index=["x", "y", "z"])


def names_of(model: Model) -> list[str]:
    return [variable.name for variable in model.variables]


@st.composite
def some_names(draw: st.DrawFn, model: Model) -> list[str]:
    names = draw(st.permutations(names_of(model)))
    return list(names[: draw(st.integers(1, min(3, len(names))))])


# joint ---------------------------------------------------------------------------------------------------------------


@examples(60)
@given(data=st.data())
def test_joint(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence, targets = data.draw(evidence_for(model)), data.draw(some_names(model))
    assert_allclose(model.joint(targets, evidence), Enumeration(model, evidence).joint(targets), **CLOSE)


@examples(25)
@given(data=st.data())
def test_joint_of_a_batch(data: st.DataObject) -> None:
    model = data.draw(models())
    frame, targets = data.draw(frame_for(model)), data.draw(some_names(model))
    expected = [Enumeration(model, row).joint(targets) for row in rows_of(frame)]
    assert_allclose(model.joint(targets, frame), expected, **CLOSE)


def test_joint_has_its_axes_in_the_order_asked() -> None:
    table = RAIN.joint(["wet", "rain"])
    assert table.shape == (3, 2)
    assert_allclose(table, RAIN.joint(["rain", "wet"]).T)
    assert_allclose(RAIN.joint("wet"), table.sum(axis=1))
    observed = RAIN.joint(["rain", "wet"], {"rain": "yes"})
    assert_allclose(observed[0], [0, 0, 0], atol=0)
    assert_allclose(observed.sum(), 1)


@pytest.mark.parametrize(
    ("targets", "error", "match"),
    [
        (["rain", "rain"], ModelError, r"the variables asked for must differ, got \['rain', 'rain'\]"),
        (["rain", "snow"], ModelError, "no variable is named 'snow'"),
    ],
)
def test_bad_targets_are_refused(targets: list[str], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        RAIN.joint(targets)
    with pytest.raises(error, match=match):
        RAIN.marginal_map(targets)


def test_joint_refuses_too_many_states() -> None:
    model = besag.chain(np.zeros((17, 2)), np.eye(2))
    with pytest.raises(
        TooLargeError, match=r"\(0, 1, 2, 3, 4, 5, \.\.\.\) have .* joint states, more than the limit of 65536"
    ):
        model.joint([str(v) for v in range(17)])


# marginal_map --------------------------------------------------------------------------------------------------------


@examples(50)
@given(data=st.data())
def test_marginal_map(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence, targets = data.draw(evidence_for(model)), data.draw(some_names(model))
    result, oracle = model.marginal_map(targets, evidence), Enumeration(model, evidence)
    energies = -(np.log(np.maximum(oracle.joint(targets), 1e-300)) + oracle.log_z)
    assert set(result.assignment) == set(targets)
    at = tuple(model.variable(name).states.index(result.assignment[name]) for name in targets)
    assert_allclose(result.energy, energies[at], **CLOSE)
    assert_allclose(result.energy, energies.min(), **CLOSE)


def test_marginal_map_is_not_the_part_of_the_map() -> None:
    model = besag.markov_network({"A": 2, "B": 3}, [(("A", "B"), [[4, 0, 0], [3, 3, 0]])], given="weight")
    assert model.map().assignment == {"A": "0", "B": "0"}
    result = model.marginal_map(["A"])
    assert result.assignment == {"A": "1"}
    assert result.energy == pytest.approx(-np.log(6))
    assert result.solutions == [({"A": "1"}, result.energy)]


def test_marginal_map_of_a_batch() -> None:
    result = RAIN.marginal_map(["rain", "sprinkler"], FRAME)
    singles = [RAIN.marginal_map(["rain", "sprinkler"], row.dropna().to_dict()) for _, row in FRAME.iterrows()]
    assert result.assignment == [single.assignment for single in singles]
    assert_allclose(result.energy, [single.energy for single in singles])


# log_partition, log_probability --------------------------------------------------------------------------------------


def test_log_partition_of_a_network_is_the_log_probability_of_the_evidence() -> None:
    p = Enumeration(RAIN).joint(["wet", "cloudy"])
    assert RAIN.log_partition({"wet": "dry", "cloudy": "yes"}) == pytest.approx(np.log(p[0, 1]))
    assert_allclose(RAIN.log_partition(FRAME), np.log([p[0, 1], p[:, 1].sum(), p[2].sum()]))
    assert isinstance(RAIN.log_partition(), float)


@examples(60)
@given(data=st.data())
def test_log_probability(data: st.DataObject) -> None:
    """Of complete and partial assignments, possible or not."""
    model = data.draw(models())
    free, names = Enumeration(model), names_of(model)
    codes = free.labels[data.draw(st.integers(0, len(free.labels) - 1))]
    given_names = [name for name in names if data.draw(st.integers(0, 3)) > 0]
    y = {name: model.variable(name).states[codes[names.index(name)]] for name in given_names}
    expected = log_sum(Enumeration(model, y).log_weights) - free.log_z
    assert_allclose(model.log_probability(y), expected, **CLOSE)


def test_log_probability_of_rows_and_of_the_impossible() -> None:
    frame = pd.DataFrame(
        {"sprinkler": ["on", "off", None], "wet": ["dry", "soaked", "damp"], "rain": ["no", "no", "yes"]}
    )
    p = Enumeration(RAIN).joint(["sprinkler", "wet", "rain"])
    found = RAIN.log_probability(frame)
    assert found[:2].tolist() == [-np.inf, -np.inf]
    assert found[2] == pytest.approx(np.log(p[:, 1, 1].sum()))
    whole = frame.assign(cloudy="no", sprinkler="on")
    assert RAIN.log_probability(whole)[0] == -np.inf
    assert RAIN.log_probability(whole)[2] == pytest.approx(np.log(0.6 * 0.1 * 0.2 * 0.2))
    assert RAIN.log_probability({}) == pytest.approx(0)
    assert RAIN.log_probability({"sprinkler": "on", "rain": "no", "wet": "dry"}) == -np.inf


# sample --------------------------------------------------------------------------------------------------------------


def test_samples_are_categoricals_in_state_order() -> None:
    frame = RAIN.sample(50, {"rain": "yes"}, seed=3)
    assert frame.columns.tolist() == names_of(RAIN)
    assert frame["wet"].cat.categories.tolist() == ["dry", "damp", "soaked"]
    assert frame["rain"].unique().tolist() == ["yes"]
    assert len(frame) == 50
    assert len(RAIN.sample()) == 1
    assert np.isfinite(RAIN.log_probability(frame)).all()
    assert np.isfinite(RAIN.energy(frame)).all()


def test_samples_of_a_batch_say_which_row_they_belong_to() -> None:
    frame = RAIN.sample(4, FRAME)
    assert frame.index.names == ["row", "sample"]
    assert frame.index.tolist() == [(row, i) for row in "xyz" for i in range(4)]
    assert frame.loc["x", "wet"].tolist() == ["dry"] * 4
    assert frame.loc["z", "wet"].tolist() == ["soaked"] * 4


def test_a_number_of_samples_below_one_is_refused() -> None:
    with pytest.raises(ModelError, match="number of samples must be a whole number of at least 1, got 0"):
        RAIN.sample(0)


# energy --------------------------------------------------------------------------------------------------------------


def test_forms_of_a_labelling() -> None:
    model = besag.markov_network({"A": ["x", "y"], "B": 2}, [(("A", "B"), [[0.5, 1.5], [2.5, 3.5]])], given="energy")
    assert model.energy({"A": "y", "B": 0}) == 2.5
    assert model.energy(np.array([1, 0])) == 2.5
    assert model.energy(np.array([[1, 0], [0, 1]])).tolist() == [2.5, 1.5]
    assert model.energy(pd.DataFrame({"B": [0, 1.0], "A": ["y", "x"]})).tolist() == [2.5, 1.5]
    assert isinstance(model.energy({"A": "y", "B": 0}), float)
    grid = besag.grid((1, 2), 2, pairwise=besag.potts(2))
    assert grid.energy(np.array([[0, 1]])) == 1
    assert grid.energy(np.array([[[0, 1]], [[1, 1]]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"rain": "no"}, ModelError, "a labelling must give every variable one state; 'cloudy' has none"),
        ({"snow": "no"}, EvidenceError, "no variable is named 'snow'"),
        ({"rain": "maybe"}, EvidenceError, "'rain' has no state 'maybe'"),
        (pd.DataFrame({"rain": ["no"]}), ModelError, "row 0: .* 'cloudy' has none"),
        (np.zeros(3, int), ModelError, r"labels must be integers of shape \(4,\), .* got int64 \(3,\)"),
        (np.zeros(4), ModelError, r"labels must be integers of shape \(4,\), .* got float64 \(4,\)"),
        (np.array([0, 0, 9, 0]), ModelError, "labels must be codes of states"),
        (np.array([0, 0, -1, 0]), ModelError, "labels must be codes of states"),
    ],
)
def test_bad_labellings_are_refused(given: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        RAIN.energy(given)


# Moments, covariance, expectations, entropy --------------------------------------------------------------------------


@examples(40)
@given(data=st.data())
def test_covariance_is_that_of_the_features(data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model))
    oracle = Enumeration(model, evidence)
    assert_allclose(model.covariance(evidence), oracle.covariance(), rtol=1e-9, atol=1e-9)
    assert_allclose(model.moments(evidence), oracle.moments(), rtol=1e-9, atol=1e-9)


@examples(10)
@given(data=st.data())
def test_covariance_is_minus_the_gradient_of_the_moments(data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=30))
    evidence, step = data.draw(evidence_for(model)), 1e-5
    free = range(len(model.theta)) if model.support is None else np.flatnonzero(model.support)
    covariance = model.covariance(evidence)
    for i in free:
        shift = np.zeros(model.theta.shape)
        shift[i] = step
        up, down = (model.with_theta(model.theta + sign * shift).moments(evidence) for sign in (1, -1))
        assert_allclose(covariance[i], -(up - down) / (2 * step), atol=1e-7)


def test_covariance_of_more_labellings_than_can_be_listed() -> None:
    model = besag.data.random_model("bayesian_network", 60, seed=4, n_states=(2, 3), zeros=0.0)
    covariance, step = model.covariance(), 1e-5
    for i in (0, len(model.theta) // 2, len(model.theta) - 1):
        shift = np.zeros(model.theta.shape)
        shift[i] = step
        up, down = (model.with_theta(model.theta + sign * shift).moments() for sign in (1, -1))
        assert_allclose(covariance[i], -(up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize(("limit", "given"), [(None, [50, 50]), (1000.0, [16, 50, 34]), (6.0, [16])])
def test_covariance_sees_early_that_its_time_does_not_suffice(limit: float | None, given: list[int]) -> None:
    """Each part takes a second or more of this clock."""
    ticks = count()
    clock = Clock(limit, now=lambda: float(next(ticks)))
    parts = _parts(np.arange(100), 50, clock)
    assert [len(next(parts)) for _ in given] == given
    refused = pytest.raises(TooLargeError, match=r"about [0-9.]+ s more, and time_limit leaves")
    with refused if limit == 6.0 else pytest.raises(StopIteration):
        next(parts)


def test_covariance_refuses_what_takes_too_many_propagations() -> None:
    with pytest.raises(TooLargeError, match="a propagation for each of 99200 table entries"):
        besag.ising((100, 100), 0.1, 0.0).covariance()


def test_moments_of_a_batch_add() -> None:
    rows = [row.dropna().to_dict() for _, row in FRAME.iterrows()]
    assert_allclose(RAIN.moments(FRAME), np.sum([RAIN.moments(row) for row in rows], axis=0))


@examples(80)
@given(data=st.data())
def test_003_entropy_is_minus_the_expected_log_probability(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    assert_allclose(model.entropy(evidence), Enumeration(model, evidence).entropy(), **CLOSE)


def test_entropy_of_known_models() -> None:
    assert besag.markov_network([2, 3], []).entropy() == pytest.approx(np.log(6))
    assert RAIN.entropy({"cloudy": "yes", "rain": "no", "sprinkler": "on", "wet": "damp"}) == 0
    smooth = besag.grid((1, 2), 2, pairwise=np.eye(2), weights=(np.array([[2.0]]), np.zeros((0, 2))))
    assert smooth.entropy() == pytest.approx(Enumeration(smooth).entropy())


def test_expect() -> None:
    oracle = Enumeration(RAIN, {"wet": ["damp", "soaked"]})
    found = RAIN.expect(lambda y: y["rain"] == "yes" and y["sprinkler"] == "on", {"wet": ["damp", "soaked"]})
    assert found == pytest.approx(oracle.joint(["rain", "sprinkler"])[1, 1])
    pair = RAIN.expect(lambda y: np.array([1.0, len(y["wet"])]), {"wet": "dry"})
    assert_allclose(pair, [1, 3])
    assert isinstance(found, float)


def test_expect_does_not_ask_for_what_is_impossible() -> None:
    def h(y: dict[str, str]) -> float:
        assert (y["rain"], y["sprinkler"], y["wet"]) != ("no", "on", "dry")
        return 1.0

    assert RAIN.expect(h) == pytest.approx(1)


# to_frame ------------------------------------------------------------------------------------------------------------


@examples(25)
@given(data=st.data())
def test_to_frame_shows_every_labelling(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    frame, oracle = model.to_frame(evidence), Enumeration(model, evidence)
    assert_allclose(frame["H"], -oracle.log_weights, **CLOSE)
    assert_allclose(frame["p"], oracle.p, **CLOSE)
    codes = np.stack([frame[name].cat.codes for name in names_of(model)], axis=1)
    assert_array_equal(codes, oracle.labels)


def test_to_frame_has_a_limit() -> None:
    assert len(besag.chain(np.zeros((16, 2)), np.eye(2)).to_frame(engine="brute")) == 2**16
    with pytest.raises(TooLargeError, match="more than the limit of 65536"):
        besag.chain(np.zeros((17, 2)), np.eye(2)).to_frame()
    with pytest.raises(TooLargeError, match="more than the limit of 65536"):
        besag.grid((100, 100), 2).to_frame()


@pytest.mark.parametrize("name", ["H", "p"])
def test_to_frame_does_not_lose_a_variable_that_is_named_as_a_column(name: str) -> None:
    model = besag.markov_network({name: ["x", "y"], "A": 2}, [((name, "A"), [[0.0, 1.0], [2.0, 3.0]])])
    frame = model.to_frame()
    shown = {str(value) for column in frame.columns for value in frame[column]}
    assert {"x", "y"} <= shown


def test_a_frame_of_many_variables_of_one_state() -> None:
    assert besag.markov_network([1] * 70, []).to_frame().shape == (1, 72)


# One row only, options, steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "verb"),
    [
        (lambda: RAIN.to_frame(FRAME), "to_frame"),
        (lambda: RAIN.expect(lambda y: 1.0, FRAME), "expect"),
        (lambda: RAIN.covariance(FRAME), "covariance"),
        (lambda: RAIN.entropy(FRAME), "entropy"),
        (lambda: RAIN.entropy(FRAME[:1]), "entropy"),
        (lambda: RAIN.condition(FRAME), "condition"),
    ],
)
def test_verbs_that_take_one_row_refuse_a_batch(ask: Any, verb: str) -> None:
    with pytest.raises(EvidenceError, match=f"{verb} takes one row of evidence, a dict"):
        ask()


def test_steps_need_an_engine_that_works_in_steps() -> None:
    with pytest.raises(
        CapabilityError, match=r"engine 'brute' does not work in steps; name one that does, .*'bp'.*tree"
    ):
        RAIN.steps(engine="brute")
    with pytest.raises(EvidenceError, match=r"evidence must be a dict .* got str"):
        RAIN.steps("bp")


def test_an_expectation_is_of_a_function() -> None:
    with pytest.raises(ModelError, match=r"expect takes a function of an assignment .* got str 'rain'"):
        RAIN.expect("rain")  # type: ignore[arg-type]


def test_a_misspelt_option_is_known() -> None:
    with pytest.raises(
        TypeError, match=r"\['time_limt'\]; did you mean 'time_limit', 'memory_limit'\? There are engine, init"
    ):
        RAIN.marginals(time_limt=3)  # type: ignore[call-arg]


def test_a_row_of_a_batch_is_not_an_instance() -> None:
    frame = pd.DataFrame({"rain": ["yes", "no"]}, index=["a", "b"])
    result = RAIN.marginals(evidence=frame)
    with pytest.raises(ModelError, match=r"got 5; a row of evidence of a batch is r.to_frame\(name\).loc\[label\]"):
        result[5]
    assert result.to_frame("rain").loc["a"].tolist() == [0, 1]


def test_k_below_one_is_refused() -> None:
    with pytest.raises(ModelError, match="k must be a whole number of at least 1, got 0"):
        RAIN.map(k=0)


def test_a_batch_of_one_row_is_a_batch() -> None:
    frame = pd.DataFrame({"wet": ["dry"]})
    assert RAIN.marginals(evidence=frame)["rain"].shape == (1, 2)
    assert RAIN.log_partition(frame).shape == (1,)
    assert RAIN.joint(["rain"], frame).shape == (1, 2)
    assert RAIN.log_probability(frame).shape == (1,)
    assert RAIN.map(frame).energy.shape == (1,)


@pytest.mark.parametrize("engine", ["bp", "trw", "mean_field", "ais"])
def test_expectations_are_of_those_who_can_give_them(engine: str) -> None:
    model = besag.ising((3, 3), 0.4, 0.1)
    with pytest.raises(CapabilityError, match=f"engine '{engine}' gives no expectations of functions; gibbs"):
        model.expect(lambda y: 1.0, engine=engine)
    assert model.expect(lambda y: 1.0, engine="gibbs[n_samples=3000]") == pytest.approx(1)
    assert model.expect(lambda y: 1.0) == pytest.approx(1)


def test_time_limits_reach_every_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that ask several questions share the time."""
    model, seen, infer = besag.ising((3, 3), 0.4, 0.1), list[float | None](), BP.infer

    def noted(self: BP, *given: Any, **more: Any) -> Any:
        seen.append(more["time_limit"])
        return infer(self, *given, **more)

    monkeypatch.setattr(BP, "infer", noted)
    model.joint(["0,0", "1,1"], engine="bp", time_limit=4.0)
    model.marginal_map(["0,0"], engine="bp", time_limit=np.float32(4.0))  # type: ignore[arg-type]
    model.log_probability({"0,0": "1"}, engine="bp", time_limit=4)
    model.marginals(engine="bp", time_limit=4)
    joint, marginal_map, log_probability, marginals = seen[:2], seen[2], seen[3], seen[4]
    assert joint == [pytest.approx(4 / 3, rel=0.1), pytest.approx(8 / 3, rel=0.5)]
    assert (marginal_map, log_probability, marginals) == (pytest.approx(4, rel=0.1), pytest.approx(4, rel=0.1), 4)
    assert model.marginals(engine="bp[damping=0.1]", memory_limit=2e9).bound == "estimate"  # type: ignore[arg-type]
    for option, value in (("time_limit", -1), ("memory_limit", "1GB"), ("n_threads", "a"), ("seed", 0.5)):
        with pytest.raises(CapabilityError, match=f"{option} must be a"):
            model.marginals(**{option: value})  # type: ignore[arg-type]
