"""Evidence that rules out everything: a typed error with a minimal conflict, checked by enumeration."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import besag
from besag.errors import EvidenceError, ModelError
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.strategies import examples, models

EQUAL = np.where(np.eye(2) > 0, 0.0, -np.inf)
NAMES = ["A", "B", "C", "D", "E"]
ALL_EQUAL = besag.markov_network(dict.fromkeys(NAMES, 2), [(pair, EQUAL) for pair in itertools.pairwise(NAMES)])


def possible(model: Model, evidence: dict[str, Any]) -> bool:
    return Enumeration(model, evidence).log_weights.max() > -np.inf


def check_minimal(model: Model, evidence: dict[str, Any], conflict: dict[str, Any]) -> None:
    """The conflict is part of the evidence, impossible, and possible without any one of its observations."""
    assert set(conflict) <= set(evidence)
    kept = {name: evidence[name] for name in conflict}
    assert not possible(model, kept)
    for name in conflict:
        assert possible(model, {other: value for other, value in kept.items() if other != name})


@st.composite
def impossible(draw: st.DrawFn) -> tuple[Model, dict[str, Any]]:
    """A model and evidence on all of its variables, states and sets of states, that no labelling meets."""
    model = draw(models(max_labellings=300))
    if (Enumeration(model).log_weights > -np.inf).all():
        largest = max(model.variables, key=lambda variable: variable.cardinality)
        assume(largest.cardinality > 1)
        model = model.condition({largest.name: largest.states[1:]})
    oracle = Enumeration(model)
    ruled_out = oracle.labels[draw(st.sampled_from(np.flatnonzero(oracle.log_weights == -np.inf).tolist()))]
    evidence: dict[str, Any] = {}
    for variable, code in zip(model.variables, ruled_out.tolist(), strict=True):
        evidence[variable.name] = variable.states[code]
    for variable in draw(st.permutations(list(model.variables))):
        wider = {**evidence, variable.name: {evidence[variable.name], draw(st.sampled_from(variable.states))}}
        if draw(st.booleans()) and not possible(model, wider):
            evidence = wider
    return model, evidence


@examples(60)
@given(case=impossible())
def test_the_conflict_is_minimal(case: tuple[Model, dict[str, Any]]) -> None:
    model, evidence = case
    with pytest.raises(EvidenceError, match="the evidence has probability zero") as caught:
        model.marginals(evidence=evidence)
    check_minimal(model, evidence, caught.value.conflict)
    for name in caught.value.conflict:
        assert f"{name}=" in str(caught.value)


VERBS: dict[str, Callable[[Model, Any], Any]] = {
    "marginals": lambda m, e: m.marginals(evidence=e),
    "map": lambda m, e: m.map(e),
    "marginal_map": lambda m, e: m.marginal_map(["C"], e),
    "joint": lambda m, e: m.joint(["C", "A"], e),
    "log_partition": lambda m, e: m.log_partition(e),
    "sample": lambda m, e: m.sample(2, e),
    "moments": lambda m, e: m.moments(e),
    "covariance": lambda m, e: m.covariance(e),
    "entropy": lambda m, e: m.entropy(e),
    "expect": lambda m, e: m.expect(lambda y: 1.0, e),
    "to_frame": lambda m, e: m.to_frame(e),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_names_the_conflict(verb: str) -> None:
    with pytest.raises(EvidenceError, match="probability zero: B=0, E=1 cannot hold together") as caught:
        VERBS[verb](ALL_EQUAL, {"B": 0, "D": {0, 1}, "E": 1})
    assert caught.value.conflict == {"B": "0", "E": "1"}
    assert caught.value.row is None


@pytest.mark.parametrize("verb", ["marginals", "map", "marginal_map", "joint", "log_partition", "sample", "moments"])
def test_an_impossible_row_is_named(verb: str) -> None:
    frame = pd.DataFrame({"A": [0, 1, 1], "B": [0, None, 0]}, index=["x", "y", "z"])
    with pytest.raises(EvidenceError, match="row 'z': the evidence has probability zero: A=1, B=0") as caught:
        VERBS[verb](ALL_EQUAL, frame)
    assert caught.value.row == "z"
    assert caught.value.conflict == {"A": "1", "B": "0"}


@pytest.mark.parametrize("index", [None, [7, 1], [0.5, 1.0]])
def test_a_row_is_named_as_its_index_prints_it(index: Any) -> None:
    with pytest.raises(EvidenceError, match=r"^row 1(\.0)?: the evidence"):
        ALL_EQUAL.marginals(evidence=pd.DataFrame({"A": [0, 0], "B": [0, 1]}, index=index))


def test_sets_and_likelihoods_are_part_of_a_conflict() -> None:
    with pytest.raises(EvidenceError, match=r"B=\['0'\]") as caught:
        ALL_EQUAL.marginals(evidence={"B": ["0"], "C": {"0": 0.5, "1": 0.5}, "D": {"0": 0.0, "1": 2.0}})
    assert caught.value.conflict == {"B": ["0"], "D": ["1"]}


def test_one_observation_may_be_impossible_alone() -> None:
    model = besag.bayesian_network("A[no,yes] -> B", cpts={"A": [1.0, 0.0]})
    with pytest.raises(EvidenceError, match="A=yes is impossible in this model"):
        model.marginals(evidence={"A": "yes", "B": "1"})


def test_a_model_that_allows_nothing_is_a_model_error() -> None:
    model = besag.markov_network({"A": 2}, [("A", [0.0, -np.inf]), ("A", [-np.inf, 0.0])])
    for evidence in (None, {"A": "0"}):
        with pytest.raises(ModelError, match="the model allows no labelling"):
            model.marginals(evidence=evidence)
        with pytest.raises(ModelError, match="the model allows no labelling"):
            model.map(evidence)
    with pytest.raises(ModelError, match="the model allows no labelling"):
        model.log_probability({"A": "0"})


LABELLERS = ["icm", "trws", "dual", "graph_cut", "alpha_expansion", "local_search", "ilp", "anneal[n_sweeps=5]"]


@pytest.mark.parametrize("engine", LABELLERS)
def test_engines_for_labellings_refuse_the_impossible_too(engine: str) -> None:
    with pytest.raises(EvidenceError, match="probability zero: B=0, E=1 cannot hold together"):
        ALL_EQUAL.map({"B": 0, "D": {0, 1}, "E": 1}, engine=engine)
    frame = pd.DataFrame({"A": [0, 1, 1], "B": [0, None, 0]}, index=["x", "y", "z"])
    with pytest.raises(EvidenceError, match="row 'z': the evidence has probability zero: A=1, B=0"):
        ALL_EQUAL.map(frame, engine=engine)
    differ = besag.markov_network([2] * 3, [(pair, EQUAL[::-1]) for pair in ([0, 1], [1, 2], [0, 2])])
    with pytest.raises(ModelError, match="the model allows no labelling"):
        differ.map({"0": "1"}, engine=engine)


def test_weights_so_small_that_they_vanish_are_not_impossible() -> None:
    model = besag.chain(np.full((5, 2), -1e300), np.zeros((2, 2)))
    assert model.log_partition({"0": 1}) == pytest.approx(-5e300)
