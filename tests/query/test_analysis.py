"""information, impact and sensitivity against sums over model.to_frame() and against finite differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError, EvidenceError, ModelError
from besag.model.bayes import cpt_scope
from besag.model.model import FactorGroup, Model
from besag.model.template import Template
from besag.model.variable import Variables
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, models

CLOSE = {"rtol": 1e-9, "atol": 1e-12}
SPRINKLER, STUDENT, ASIA = (besag.data.bundled(name) for name in ("sprinkler", "student", "asia"))
CASES: list[tuple[Model, str, dict[str, Any]]] = [
    (SPRINKLER, "rain", {}),
    (SPRINKLER, "rain", {"wet_grass": "yes"}),
    (STUDENT, "grade", {"letter": "l0"}),
    (STUDENT, "intelligence", {"grade": ["g2", "g3"], "sat": {"s0": 0.3, "s1": 0.6}}),
    (STUDENT, "grade", {"grade": ["g1", "g2"], "sat": "s1"}),
    (ASIA, "lung", {"xray": "yes", "dysp": {"no": 0.2, "yes": 1.0}}),
    (ASIA, "tub", {"either": "yes"}),
]
VERBS: dict[str, Callable[..., pd.DataFrame]] = {
    "information": lambda model, target, evidence, **options: model.information(target, evidence, **options),
    "impact": lambda model, target, evidence, **options: model.impact(target, evidence, **options),
    "sensitivity": lambda model, target, evidence, **options: model.sensitivity(target, "yes", evidence, **options),
}


def entropy(p: Any) -> float:
    p = np.asarray(p)
    return -float((p[p > 0] * np.log(p[p > 0])).sum())


def expected_entropies(model: Model, target: str, evidence: dict[str, Any]) -> dict[str, float]:
    """sum_x P(x | e) H(target | x, e) of every variable, from the table of all labellings."""
    frame = model.to_frame(evidence)
    found = {}
    for name in frame.columns.drop([target, "H", "p"]):
        table = frame.pivot_table(values="p", index=name, columns=target, aggfunc="sum", observed=False).to_numpy()
        found[name] = sum(row.sum() * entropy(row / row.sum()) for row in table if row.sum() > 0)
    return found


def posterior(model: Model, target: str, evidence: dict[str, Any]) -> Any:
    return Enumeration(model, evidence).marginal(target)


# information ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "target", "evidence"), CASES)
def test_information(model: Model, target: str, evidence: dict[str, Any]) -> None:
    frame = model.information(target, evidence)
    hard = {name for name, value in evidence.items() if isinstance(value, str)}
    assert frame.index.name == "variable"
    assert set(frame.index) == {v.name for v in model.variables} - hard - {target}
    expected = expected_entropies(model, target, evidence)
    now = entropy(posterior(model, target, evidence))
    assert_allclose(frame["entropy"], now, **CLOSE)
    assert_allclose(frame["expected_entropy"], [expected[name] for name in frame.index], **CLOSE)
    assert_allclose(frame["information"], [now - expected[name] for name in frame.index], **CLOSE)
    assert_allclose(frame["share"], frame["information"] / now, **CLOSE)
    assert frame["information"].is_monotonic_decreasing


@examples(40)
@given(data=st.data())
def test_information_on_any_model(data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    evidence = data.draw(evidence_for(model)) or {}
    free = [v.name for v in model.variables if not np.isscalar(evidence.get(v.name))]
    if not free:
        return
    target = data.draw(st.sampled_from(free))
    oracle = Enumeration(model, evidence)
    frame = model.information(target, evidence)
    p = oracle.marginal(target)
    for name, row in frame.iterrows():
        table = oracle.joint([target, str(name)])
        gained = entropy(p) + entropy(table.sum(axis=0)) - entropy(table)
        assert_allclose(row["information"], gained, rtol=1e-8, atol=1e-11)
        assert 0 <= row["information"] <= row["entropy"]


def test_information_is_zero_where_variables_are_separated() -> None:
    assert_allclose(ASIA.information("asia").loc[["smoke", "lung", "bronc"], "information"], 0, atol=0)
    given_cloudy = SPRINKLER.information("rain", {"cloudy": "yes"})
    assert given_cloudy.loc["sprinkler", "information"] == 0
    assert SPRINKLER.information("rain", {"cloudy": "yes", "wet_grass": "yes"}).loc["sprinkler", "information"] > 0.01


def test_probabilities_at_the_end_of_the_range() -> None:
    """Quotients of them overflow: P(A = a) is 5e-324, and B tells A."""
    pair = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, -2000.0], [-2000.0, -744.4]])])
    assert 0 < pair.marginals()["A"][1] < 1e-300
    assert_allclose(pair.information("A")["information"], 0.0, atol=1e-9)
    assert np.isfinite(pair.impact("A", {"B": "1"}).select_dtypes("number")).all(axis=None)


def test_information_on_a_target_that_is_certain() -> None:
    frame = ASIA.information("either", {"tub": "yes"})
    assert (frame[["information", "entropy", "expected_entropy", "share"]] == 0).all(axis=None)
    assert not np.signbit(frame["entropy"]).any()


# impact --------------------------------------------------------------------------------------------------------------

IMPACTS: list[tuple[Model, str, dict[str, Any]]] = [
    (STUDENT, "intelligence", {"grade": "g3", "sat": "s1", "letter": "l0"}),
    (ASIA, "lung", {"xray": "yes", "smoke": "no", "dysp": {"no": 0.4, "yes": 2.0}, "asia": {"no", "yes"}}),
    (ASIA, "lung", {"lung": {"no": 1.0, "yes": 5.0}, "xray": "yes"}),
    (besag.data.bundled("misconception"), "B", {"A": "1", "D": "0"}),
    (SPRINKLER, "rain", {"wet_grass": "yes"}),
]


@pytest.mark.parametrize(("model", "target", "evidence"), IMPACTS)
def test_impact(model: Model, target: str, evidence: dict[str, Any]) -> None:
    frame = model.impact(target, evidence)
    assert set(frame.index) == set(evidence)
    assert frame["kl"].is_monotonic_decreasing
    full, prior = posterior(model, target, evidence), posterior(model, target, {})
    log_z, log_p = Enumeration(model).log_z, Enumeration(model, evidence).log_z
    states = model.variable(target).states
    total = -(log_p - log_z)
    for name, row in frame.iterrows():
        rest = {other: value for other, value in evidence.items() if other != name}
        only = {str(name): evidence[str(name)]}
        without, alone = posterior(model, target, rest), posterior(model, target, only)
        assert row["observed"] == str(evidence[str(name)])
        assert_allclose(row[[f"without[{s}]" for s in states]].astype(float), without, **CLOSE)
        assert_allclose(row[[f"alone[{s}]" for s in states]].astype(float), alone, **CLOSE)
        assert_allclose(row["kl"], (full * np.log(full / without)).sum(), **CLOSE)
        assert_allclose(row["kl_alone"], (alone * np.log(alone / prior)).sum(), **CLOSE)
        assert_allclose(row["total_variation"], np.abs(full - without).sum() / 2, **CLOSE)
        assert_allclose(row["total_variation_alone"], np.abs(alone - prior).sum() / 2, **CLOSE)
        log_alone, log_rest = Enumeration(model, only).log_z - log_z, Enumeration(model, rest).log_z - log_z
        assert_allclose(row["conflict"], log_alone + log_rest - (log_p - log_z), **CLOSE)
        total += log_alone
    assert_allclose(frame.attrs["conflict"], total, **CLOSE)
    assert_allclose(frame.attrs["log_probability"], log_p - log_z, **CLOSE)
    assert_allclose(list(frame.attrs["posterior"].values()), full, **CLOSE)
    assert tuple(frame.attrs["posterior"]) == states


def test_conflict_is_positive_where_observations_contradict_each_other() -> None:
    frame = STUDENT.impact("intelligence", {"grade": "g3", "sat": "s1"})
    assert (frame["conflict"] > 0).all()
    assert frame.attrs["conflict"] > 0
    assert (STUDENT.impact("intelligence", {"grade": "g1", "sat": "s1"})["conflict"] < 0).all()


def test_impact_of_an_observation_that_rules_states_out() -> None:
    frame = ASIA.impact("lung", {"either": "no", "smoke": "yes"})
    assert_allclose(frame.loc["either", ["kl", "without[yes]"]].astype(float), [-np.log(0.9), 0.1], **CLOSE)
    assert frame.loc["smoke", "kl"] == 0


def test_impact_takes_a_series_and_skips_missing_values() -> None:
    series = pd.Series({"xray": "yes", "smoke": None})
    assert ASIA.impact("lung", series).index.tolist() == ["xray"]


def test_impact_needs_observations_by_item() -> None:
    for nothing in (None, {}, {"xray": None}):
        with pytest.raises(EvidenceError, match="impact needs at least one observation, got none"):
            ASIA.impact("lung", nothing)
    read = besag.graph.evidence.read_evidence(ASIA.variables, {"xray": "yes"})
    with pytest.raises(EvidenceError, match=r"impact takes a dict .* got Evidence"):
        ASIA.impact("lung", read)


# sensitivity ---------------------------------------------------------------------------------------------------------

RARE = besag.bayesian_network(
    "A -> B; A -> C[0,1,2] <- B; one -> C",
    states={"one": 1},
    cpts={
        "A": [0.7, 0.3],
        "B": [[1.0, 0.0], [0.4, 0.6]],
        "C": [[[[0.2, 0.8, 0.0]], [[0.0, 1.0, 0.0]]], [[[0.5, 0.25, 0.25]], [[0.3, 0.3, 0.4]]]],
    },
)
QUESTIONS: list[tuple[Model, str, str, dict[str, Any]]] = [
    (SPRINKLER, "rain", "yes", {}),
    (SPRINKLER, "rain", "yes", {"wet_grass": "yes"}),
    (STUDENT, "grade", "g2", {"letter": "l0", "sat": {"s0": 0.3, "s1": 0.6}}),
    (STUDENT, "grade", "g1", {"grade": ["g1", "g3"], "difficulty": "d1"}),
    (ASIA, "lung", "yes", {"xray": "yes", "dysp": ["yes"]}),
    (RARE, "B", "1", {"C": "1"}),
    (RARE, "C", "2", {"A": "0"}),
    (RARE, "A", "1", {"C": {"0": 0.0, "1": 1.0, "2": 3.0}}),
]
STEP = 1e-5


def entry_of(model: Model, row: Any) -> tuple[int, ...]:
    """Where in its CPT the entry of a row of the frame is."""
    named = dict(item.split("=") for item in row.given.split(", ") if item) | {row.variable: row.state}
    names = [*model.parents(row.variable), row.variable]
    return tuple(model.variable(name).states.index(named[name]) for name in names)


def moved(model: Model, row: Any, by: float, covary: bool) -> Model:
    """The model with one CPT entry moved; weights, since rows need not sum to one."""
    table = np.array(model.cpt(row.variable))
    *at, x = entry_of(model, row)
    cpt_row = table[tuple(at)]
    if covary:
        others = np.arange(len(cpt_row)) != x
        share = cpt_row[others] if cpt_row[others].sum() > 0 else np.ones(others.sum())
        cpt_row[others] -= by * share / share.sum()
    cpt_row[x] += by
    return model.with_tables({model.variables.index(row.variable): table}, given="weight")


def slope(model: Model, question: tuple[str, str, dict[str, Any]], row: Any, covary: bool) -> float:
    """dp / dtheta by differences of the second order, to the side on which there is room."""
    target, state, evidence = question
    step = STEP if row.value < 0.5 else -STEP
    code = model.variable(target).states.index(state)
    p = [posterior(moved(model, row, n * step, covary), target, evidence)[code] for n in range(3)]
    return float(-3 * p[0] + 4 * p[1] - p[2]) / (2 * step)


def check_slopes(model: Model, target: str, state: str, evidence: dict[str, Any]) -> None:
    frame = model.sensitivity(target, state, evidence)
    assert frame.columns.tolist() == ["variable", "state", "given", "value", "derivative", "covaried"]
    assert len(frame) == sum(model.cpt(v.name).size for v in model.variables)
    assert frame["covaried"].abs().is_monotonic_decreasing
    for row in frame.itertuples():
        question = (target, state, evidence)
        assert row.value == pytest.approx(model.cpt(row.variable)[entry_of(model, row)], rel=1e-12)
        assert row.derivative == pytest.approx(slope(model, question, row, covary=False), rel=1e-5, abs=1e-7)
        if len(model.variable(row.variable).states) > 1:
            assert row.covaried == pytest.approx(slope(model, question, row, covary=True), rel=1e-5, abs=1e-7)
        else:
            assert row.covaried == 0


@pytest.mark.parametrize(("model", "target", "state", "evidence"), QUESTIONS)
def test_sensitivity_against_finite_differences(
    model: Model, target: str, state: str, evidence: dict[str, Any]
) -> None:
    check_slopes(model, target, state, evidence)


@pytest.mark.parametrize("seed", range(4))
def test_sensitivity_of_random_networks_with_hard_zeros(seed: int) -> None:
    model = besag.data.random_model("bayesian_network", 5, seed=seed, n_states=(1, 3), zeros=0.3)
    names = [v.name for v in model.variables]
    seen = model.sample(1, seed=seed).iloc[0]
    state = model.variable(names[1]).states[0]
    check_slopes(model, names[1], state, {names[4]: seen[names[4]]})


def test_sensitivity_of_an_impossible_state() -> None:
    """P(C=2 | A=0) is 0, and only the zeros of C's own table can change that."""
    frame = RARE.sensitivity("C", "2", {"A": "0"})
    moving = frame[frame["derivative"] != 0]
    assert set(moving["variable"]) == {"C"}
    assert set(moving["value"]) == {0.0}
    entry = moving[moving["given"] == "A=0, B=0, one=0"]
    assert_allclose(entry["derivative"], 1.0)


def test_sensitivity_is_zero_where_an_entry_does_not_matter() -> None:
    frame = ASIA.sensitivity("lung", "yes", {"smoke": "yes"})
    moving = frame[frame["covaried"] != 0]
    assert set(moving["variable"]) == {"lung"}
    assert set(moving["given"]) == {"smoke=yes"}


def test_sensitivity_of_an_entry_too_small_to_divide_by() -> None:
    def network(small: float) -> Model:
        return besag.bayesian_network("A -> B", cpts={"A": [1e-30, 1.0], "B": [[1.0, small], [0.5, 0.5]]})

    def slope_at(small: float) -> float:
        frame = network(small).sensitivity("A", "0", {"B": "1"})
        at = (frame["variable"] == "B") & (frame["state"] == "1") & (frame["given"] == "A=0")
        return float(frame.loc[at, "derivative"].iloc[0])

    for small in (0.0, 1e-310, 1e-300, 1e-90):
        assert slope_at(small) == pytest.approx(2e-30, rel=1e-9, abs=0)


def test_families_that_share_a_table_count_one_by_one() -> None:
    """A stationary chain, one table for all steps, beside the same network with a table for each."""
    first, step = Template("first", (2,)), Template("step", (2, 2))
    table = np.array([[1.0, 0.0], [0.3, 0.7]])
    groups = (
        FactorGroup(first, np.array([[0]]), None, True),
        FactorGroup(step, np.array([[0, 1], [1, 2]]), None, True),
    )
    energies = -np.log(np.where(table > 0, table, 1.0)).reshape(-1)
    theta = np.concatenate([-np.log([0.4, 0.6]), energies])
    support = np.concatenate([[True, True], table.reshape(-1) > 0])
    shared = Model(Variables.from_states(dict.fromkeys("xyz", ("0", "1"))), groups, theta, support)
    own = besag.bayesian_network("x -> y; y -> z", cpts={"x": [0.4, 0.6], "y": table, "z": table})
    assert cpt_scope(shared, "y")[0] == cpt_scope(shared, "z")[0]
    found, expected = (model.sensitivity("x", "1", {"z": "0"}) for model in (shared, own))
    keys = ["variable", "given", "state"]
    pd.testing.assert_frame_equal(
        found.sort_values(keys, ignore_index=True), expected.sort_values(keys, ignore_index=True)
    )


def test_sensitivity_needs_a_bayesian_network() -> None:
    model = besag.data.bundled("misconception")
    with pytest.raises(ModelError, match=r"needs a Bayesian network.*model\.moments\(evidence\)"):
        model.sensitivity("A", "1")


def test_what_the_error_proposes_is_the_derivative_by_theta() -> None:
    model = besag.data.bundled("misconception")
    p = posterior(model, "A", {"C": "1"})[1]
    proposed = p * (model.moments({"C": "1"}) - model.moments({"C": "1", "A": "1"}))
    nudge = np.zeros(len(model.theta))
    nudge[5] = STEP
    up, down = (posterior(model.with_theta(model.theta + sign * nudge), "A", {"C": "1"})[1] for sign in (1, -1))
    assert proposed[5] == pytest.approx((up - down) / (2 * STEP), rel=1e-6)


# all three -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_bad_questions_are_refused(verb: str) -> None:
    ask = VERBS[verb]
    with pytest.raises(ModelError, match="no variable is named 'long'"):
        ask(ASIA, "long", {"xray": "yes"})
    with pytest.raises(EvidenceError, match="the target is itself observed, lung=yes; drop it"):
        ask(ASIA, "lung", {"xray": "yes", "lung": "yes"})
    with pytest.raises(
        EvidenceError, match=f"{verb} takes one row of evidence, a dict, got a table of 2 rows; ask for one"
    ):
        ask(ASIA, "lung", pd.DataFrame({"xray": ["yes", "no"]}))
    with pytest.raises(EvidenceError, match="'xray' has no state 'maybe'"):
        ask(ASIA, "lung", {"xray": "maybe"})
    with pytest.raises(EvidenceError, match="probability zero: tub=yes, either=no cannot hold together") as caught:
        ask(ASIA, "lung", {"tub": "yes", "either": "no", "smoke": "yes"})
    assert caught.value.conflict == {"tub": "yes", "either": "no"}
    assert caught.value.row is None
    with pytest.raises(TypeError, match=r"unknown options \['engin'\]"):
        ask(ASIA, "lung", {"xray": "yes"}, engin="brute")


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(ModelError, match="'lung' has no state 'maybe'"):
        ASIA.sensitivity("lung", "maybe")


@pytest.mark.parametrize("verb", VERBS)
def test_the_engine_is_the_one_asked_for(verb: str) -> None:
    with pytest.raises(CapabilityError, match="cycles"):
        VERBS[verb](ASIA, "lung", {"xray": "yes"}, engine="tree")
    chain = besag.bayesian_network(
        "A[no,yes] -> B; B -> C[0,1,2]", cpts={"A": [0.3, 0.7], "B": [[0.9, 0.1], [0.0, 1.0]]}
    ).with_cpt("C", [[0.5, 0.25, 0.25], [0.0, 0.6, 0.4]])
    one, two = (VERBS[verb](chain, "A", {"C": ["1", "2"]}, engine=engine) for engine in ("tree", "brute"))
    columns = one.select_dtypes("number").columns
    assert_allclose(one[columns], two.loc[one.index, columns], **CLOSE)
