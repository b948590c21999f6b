"""Slips that are easy to make, and small comforts."""

import sys
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import CapabilityError, EvidenceError, EvidenceWarning, ModelError, ParseError

SPRINKLER = besag.data.bundled("sprinkler")


@pytest.mark.parametrize("verb", ["marginals", "joint", "marginal_map"])
def test_evidence_in_the_place_of_targets_is_refused(verb: str) -> None:
    with pytest.raises(ModelError, match="did you mean evidence="):
        getattr(SPRINKLER, verb)({"rain": "yes"})


@pytest.mark.parametrize("text", ["A, B -> C", "A -> B, C", "A - B", "A -- B", "A -> B # why"])
def test_text_that_is_no_row_of_arrows_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="expected a node"):
        besag.bayesian_network(text)


def test_names_may_have_hyphens_and_spaces() -> None:
    model = besag.bayesian_network("x-ray -> short breath[no,yes]")
    assert [v.name for v in model.variables] == ["x-ray", "short breath"]


def test_labels_of_a_frame_are_not_ignored_in_a_markov_network() -> None:
    with pytest.raises(ModelError, match="labels of a pandas object are not read"):
        besag.markov_network({"A": 2}, [("A", pd.Series([1.0, 2.0], index=[1, 0]))])


def test_levels_of_an_index_must_be_the_parents() -> None:
    model = besag.bayesian_network("A -> C <- B")
    index = pd.MultiIndex.from_product([["0", "1"], ["0", "1"]], names=["Q", "A"])
    with pytest.raises(ModelError, match=r"levels \['A', 'B'\], got \['Q', 'A'\]"):
        model.with_cpt("C", pd.DataFrame(0.5, index=index, columns=["0", "1"]))


def test_a_transposed_frame_names_the_parents() -> None:
    model = besag.bayesian_network("A -> C <- B")
    index = pd.MultiIndex.from_product([["0", "1"], ["0", "1"]], names=["A", "B"])
    with pytest.raises(ModelError, match="CPT of 'C' must"):
        model.with_cpt("C", pd.DataFrame(0.5, index=index, columns=["0", "1"]).T)


def test_array_has_the_targets_only() -> None:
    r = SPRINKLER.marginals(["rain", "cloudy"])
    assert r.array.shape == (2, 2)
    assert np.array_equal(r.array[0], r["rain"])


def test_a_number_in_the_place_of_a_name_is_explained() -> None:
    with pytest.raises(ModelError, match=r"the variable is r\['3'\]"):
        besag.chain(np.zeros((4, 2)), np.eye(2)).marginals()[3]


def test_a_float_array_is_a_likelihood_in_state_order() -> None:
    given = SPRINKLER.marginals(evidence={"rain": np.array([0.2, 0.8])})
    named = SPRINKLER.marginals(evidence={"rain": {"no": 0.2, "yes": 0.8}})
    assert np.array_equal(given["cloudy"], named["cloudy"])
    with pytest.raises(EvidenceError, match=r"shape \(2,\), got \(3,\)"):
        SPRINKLER.marginals(evidence={"rain": np.array([0.2, 0.8, 0.0])})


def test_a_series_is_one_row_of_evidence() -> None:
    row = pd.Series({"rain": "yes", "cloudy": None})
    assert SPRINKLER.marginals(evidence=row).log_partition == pytest.approx(np.log(0.5))


def test_factors_are_found_by_scope() -> None:
    r = SPRINKLER.marginals()
    assert np.array_equal(r.factor(("cloudy", "rain")), r.factor(2))
    with pytest.raises(ModelError, match=r"no factor is named 'rain'; there are f\(cloudy\)"):
        r.factor("rain")


def test_all_solutions_are_shown() -> None:
    r = SPRINKLER.map(k=3)
    assert len(r.to_frame()) == 3
    assert str(r).count("H = ") == 3
    rows = SPRINKLER.map(evidence=pd.DataFrame({"rain": ["no", "yes"]}, index=["mon", "tue"]))
    assert rows.to_frame()["rain"].to_dict() == {"mon": "no", "tue": "yes"}
    assert "mon" in str(rows)
    assert "tue" in str(rows)


def test_a_full_assignment_of_a_network_needs_no_inference() -> None:
    wide = besag.bayesian_network([(f"v{i}", f"v{j}") for i in range(40) for j in (i + 1, i + 2) if j < 40])
    assignment = {v.name: "0" for v in wide.variables}
    assert wide.log_probability(assignment) == pytest.approx(-40 * np.log(2))


@pytest.mark.parametrize("option", [{"time_limit": -1}, {"memory_limit": "1"}])
def test_limits_are_positive_numbers(option: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be a positive number or None"):
        SPRINKLER.marginals(**option)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [{"n_threads": 0}, {"n_threads": 1.5}, {"seed": -1}, {"seed": "a"}, {"seed": True}])
def test_counts_are_whole_numbers(option: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be a whole number of at least"):
        SPRINKLER.marginals(**option)  # type: ignore[arg-type]


def test_a_network_is_drawn_with_its_arrows_by_default() -> None:
    assert SPRINKLER.to_networkx().is_directed()
    assert not besag.data.bundled("misconception").to_networkx().is_directed()


EVERY = {"wet_grass": ["no", "yes"]}
VERBS: dict[str, Callable[[], object]] = {
    "marginals": lambda: SPRINKLER.marginals(evidence=EVERY),
    "map": lambda: SPRINKLER.map(EVERY),
    "marginal_map": lambda: SPRINKLER.marginal_map(["rain"], EVERY),
    "joint": lambda: SPRINKLER.joint(["rain", "cloudy"], EVERY),
    "log_partition": lambda: SPRINKLER.log_partition(EVERY),
    "log_probability": lambda: SPRINKLER.log_probability(EVERY),
    "sample": lambda: SPRINKLER.sample(2, EVERY),
    "to_frame": lambda: SPRINKLER.to_frame(EVERY),
    "expect": lambda: SPRINKLER.expect(lambda y: y["rain"] == "yes", EVERY),
    "moments": lambda: SPRINKLER.moments(EVERY),
    "covariance": lambda: SPRINKLER.covariance(EVERY),
    "entropy": lambda: SPRINKLER.entropy(EVERY),
    "information": lambda: SPRINKLER.information("rain", EVERY),
    "impact": lambda: SPRINKLER.impact("rain", EVERY),
    "sensitivity": lambda: SPRINKLER.sensitivity("rain", "yes", EVERY),
    "cost": lambda: SPRINKLER.cost(EVERY),
    "junction_tree": lambda: SPRINKLER.junction_tree(EVERY),
    "steps": lambda: list(SPRINKLER.steps(EVERY, engine="bp[max_iterations=2,tolerance=0]")),
    "session": lambda: SPRINKLER.session(EVERY)["rain"],
    "observe": lambda: SPRINKLER.session().observe(wet_grass=["no", "yes"]),
    "condition": lambda: SPRINKLER.condition(EVERY),
    "compare": lambda: besag.compare(SPRINKLER, ["brute", "exact"], EVERY),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_list_of_all_states_is_told_once_where_it_was_written(verb: str) -> None:
    with pytest.warns(EvidenceWarning, match="'wet_grass' allows every state, so it says nothing") as caught:
        VERBS[verb]()
    assert [warning.filename for warning in caught] == [__file__]


def test_a_session_tells_of_a_list_when_it_is_observed_and_not_again() -> None:
    session = SPRINKLER.session()
    with pytest.warns(EvidenceWarning):
        session.observe(cloudy=["no", "yes"])
    session.observe(sprinkler="off", rain="no", wet_grass="yes")
    with pytest.raises(EvidenceError, match="probability zero"):
        session["cloudy"]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: SPRINKLER.do("rain"), r"do takes .*\{name: state\}, as in model.do\(.*\), got str 'rain'"),
        (lambda: SPRINKLER.do(["rain"]), r"do takes .* got list \['rain'\]"),
        (lambda: SPRINKLER.do(None), "do takes .* got NoneType"),
        (lambda: SPRINKLER.with_tables("rain"), r"tables must be \{number or name of a factor: table\}, got str"),
        (lambda: SPRINKLER.with_inputs("rain"), r"inputs must be \{name of a template: inputs\}, got str"),
        (lambda: SPRINKLER.with_metadata({}, "rain"), r"metadata of variables must be \{name: metadata\}, got str"),
        (lambda: besag.bayesian_network("A -> B", "A"), r"states must be \{name: states or cardinality\}, got str 'A'"),
        (lambda: besag.bayesian_network("A -> B", cpts=[[0.5, 0.5]]), r"cpts must be \{name: table\}, got list"),
        (lambda: besag.bayesian_network([1, 2]), r"an edge is \(parent, child\), got 1"),
        (lambda: besag.markov_network("AB", []), r"variables must be \{name: states or cardinality\}.*got str 'AB'"),
        (lambda: besag.markov_network(3, []), r"variables must be \{name: states or cardinality\}.*got int 3"),
        (lambda: besag.markov_network({"A": 2}, None), r"factors must be a list of \(scope, table\).*got None"),
        (lambda: besag.markov_network({"A": 2}, "A"), r"factors must be a list of \(scope, table\).*got 'A'"),
    ],
)
def test_what_is_no_dict_where_one_is_expected(call: Callable[[], object], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: SPRINKLER.condition("rain"),
        lambda: SPRINKLER.marginals(evidence="rain"),
        lambda: SPRINKLER.map("rain"),
        lambda: SPRINKLER.session("rain"),
        lambda: SPRINKLER.session().observe("rain"),  # type: ignore[arg-type]
        lambda: SPRINKLER.log_probability("rain"),
        lambda: SPRINKLER.energy("rain"),
        lambda: SPRINKLER.impact("rain", "cloudy"),
    ],
)
def test_text_is_no_evidence(call: Callable[[], object]) -> None:
    with pytest.raises(EvidenceError, match=r"evidence must be a dict \{name: state\}.*got str"):
        call()


def test_rows_of_evidence_are_a_frame() -> None:
    with pytest.raises(EvidenceError, match=r"got list; rows of evidence are a DataFrame, pd.DataFrame\(rows\)"):
        SPRINKLER.marginals(evidence=[{"rain": "yes"}, {"rain": "no"}])


@pytest.mark.parametrize("scope", [(("a", 1), ("b", 2)), "('a', 1)"])
def test_names_that_are_tuples_are_refused(scope: object) -> None:
    with pytest.raises(ModelError, match=r"names of variables are text, and \('a', 1\) is a tuple; name it 'a,1'"):
        besag.markov_network({("a", 1): 2, ("b", 2): 2}, [(scope, np.zeros((2, 2)))])  # type: ignore[dict-item]


@pytest.mark.parametrize("key", [int, str])
def test_names_may_be_numbers_in_every_place(key: Callable[[int], Any]) -> None:
    model = besag.bayesian_network(
        nx.DiGraph([(key(0), key(1))]), {key(1): 3}, {key(0): [0.9, 0.1], key(1): [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]}
    )
    assert np.allclose(model.marginals(key(1))["1"], [0.24, 0.29, 0.47])
    assert np.allclose(model.do({key(0): 1}).marginals()["1"], [0.6, 0.2, 0.2])
    assert np.allclose(model.do({key(1): 2}).marginals()["0"], [0.9, 0.1])
    assert not model.d_separated(key(0), key(1))


def test_nodes_of_one_text_are_refused() -> None:
    with pytest.raises(ModelError, match="two nodes have the text '1'; relabel one of them"):
        besag.bayesian_network(nx.DiGraph([(0, 1), (0, "1")]))


def test_an_edge_of_a_multigraph_counts_once() -> None:
    assert besag.bayesian_network(nx.MultiDiGraph([("A", "B"), ("A", "B")])).parents("B") == ["A"]


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("networkx", "graph", SPRINKLER.to_networkx),
        ("networkx", "graph", lambda: SPRINKLER.to_networkx("junction_tree")),
        ("networkx", "graph", lambda: SPRINKLER.junction_tree().to_networkx()),
        ("arviz", "arviz", lambda: besag.chain([[0.0, 0.0]], np.eye(2)).marginals(engine="gibbs").to_arviz()),
    ],
)
def test_a_package_that_is_absent_is_named_with_its_extra(
    package: str, extra: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CapabilityError, match=rf"needs {package}.* pip install 'besag\[{extra}\]'"):
        call()


def test_a_variable_among_the_options_is_evidence() -> None:
    for verb in (SPRINKLER.marginals, SPRINKLER.map, SPRINKLER.sample, SPRINKLER.log_partition):
        with pytest.raises(TypeError, match=r"unknown option 'rain'; of a variable write evidence=\{'rain': state\}"):
            verb(rain="yes")  # type: ignore[operator]


def test_what_an_estimator_does_not_have() -> None:
    rows = SPRINKLER.sample(50, seed=1)[["rain", "wet_grass"]]
    network = besag.BayesianNetwork("rain -> wet_grass")
    with pytest.raises(AttributeError, match="this BayesianNetwork is not fitted yet"):
        _ = network.model_
    network.fit(rows)
    with pytest.raises(AttributeError, match=r"'marginals'; ask the model that it has learnt, model_\.marginals"):
        network.marginals(["rain"])  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="this BayesianNetwork has no 'structure_'; "):
        _ = network.structure_
    assert not hasattr(network, "transform")
