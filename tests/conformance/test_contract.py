"""What every engine's Result must say and refuse, and that everything survives pickling."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.errors import CapabilityError
from besag.infer.auto.engine import ALL_WANTS
from besag.infer.engine import ENGINES, Want
from tests.conformance.engines import CASES, Case, close, each_engine, names_of
from tests.strategies import evidence_for, examples

CHAIN = besag.chain([[0.2, 0.0], [0.0, 0.4], [0.1, 0.0]], [[1.0, 0.0], [0.0, 0.5]])

ACCESS: dict[Want, Any] = {
    "log_partition": lambda r: (r.log_partition, r.log_partition_bounds),
    "variables": lambda r: (r["0"], r.array, r.to_frame()),
    "factors": lambda r: r.factor(0),
    "moments": lambda r: r.moments,
    "map": lambda r: (r.assignment, r.energy, r.energy_bound, r.gap, r.optimal, r.labels, r.solutions),
    "samples": lambda r: r.samples,
}
CALLS: dict[Want, str] = {
    "log_partition": r"model\.log_partition\(\)",
    "variables": r"model\.marginals\(\)",
    "factors": r"r\.factor\(i\)",
    "moments": r"model\.moments\(\)",
    "map": r"model\.map\(\)",
    "samples": r"model\.sample\(n\)",
    "messages": r"trace=True",
    "trace": r"trace=True",
}
SERVED = [(case, want) for case in CASES for want in ACCESS if want in case.wants]
REFUSED = [(case, want) for case in CASES for want in sorted(ALL_WANTS - case.wants)]


def ids(pairs: list[tuple[Case, Want]]) -> list[str]:
    return [f"{case.engine}-{want}" for case, want in pairs]


@pytest.mark.parametrize(("case", "want"), SERVED, ids=ids(SERVED))
def test_what_was_asked_for_is_there_and_the_rest_names_the_call_that_gives_it(case: Case, want: Want) -> None:
    result = case.ask(CHAIN, None, want)
    ACCESS[want](result)
    for other in case.wants - {want, "messages", "trace", "log_partition"}:
        with pytest.raises(CapabilityError, match=f"{other} was not asked for.*{CALLS[other]}"):
            ACCESS[other](result)
    can = "messages" in ENGINES.find(result.diagnostics.engine).capabilities.wants
    refusal = "messages was not asked for" if can else f"'{result.diagnostics.engine}' cannot give messages"
    with pytest.raises(CapabilityError, match=f"{refusal}.*{CALLS['messages']}"):
        _ = result.messages


@each_engine("map")
def test_log_partition_too_is_refused_where_an_engine_does_not_give_it_unasked(case: Case) -> None:
    result = case.ask(CHAIN, None, "map")
    if result.log_partitions is None:
        can = "log_partition" in case.wants
        refusal = "log_partition was not asked for.*" + CALLS["log_partition"] if can else "cannot give log_partition"
        with pytest.raises(CapabilityError, match=refusal):
            _ = result.log_partition
    else:
        close(result.log_partition, CHAIN.log_partition(engine="brute"))


@pytest.mark.parametrize(("case", "want"), REFUSED, ids=ids(REFUSED))
def test_a_want_outside_the_capabilities_is_refused(case: Case, want: Want) -> None:
    with pytest.raises(CapabilityError, match=f"'{case.name}' cannot give {want}"):
        case.ask(CHAIN, None, want)


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
@each_engine()
def test_diagnostics_say_how_the_answer_came_about(case: Case) -> None:
    ask = CHAIN.marginals if "variables" in case.wants else CHAIN.map
    diagnostics = ask(engine=case.engine).diagnostics
    assert {"engine", "converged", "iterations", "seconds"} <= set(diagnostics)
    assert diagnostics["engine"] == diagnostics.engine
    assert diagnostics.seconds >= 0


@each_engine("log_partition", "variables", "factors", "moments", "map")
@examples(10)
@given(data=st.data())
def test_the_same_question_has_the_same_answer(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    wants = ("log_partition", "variables", "factors", "moments", "map")
    one, two = (case.ask(model, evidence, *wants, seed=3) for _ in range(2))
    for field in ("log_partitions", "probabilities", "factor_marginals", "table_moments", "codes", "energies"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
@each_engine("log_partition", "variables", "factors")
@examples(15)
@given(data=st.data())
def test_pickling_keeps_model_graph_problem_and_result(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    result = model.marginals(evidence=evidence, engine=case.engine)
    model_2, graph, problem, result_2 = pickle.loads(pickle.dumps((model, model.graph, model.problem, result)))
    assert model_2.graph is graph
    assert problem.graph is graph
    np.testing.assert_array_equal(model_2.problem.log_potentials, problem.log_potentials)
    np.testing.assert_array_equal(model.problem.log_potentials, problem.log_potentials)
    assert str(model_2) == str(model)
    assert names_of(model_2) == names_of(model)
    again = model_2.marginals(evidence=evidence, engine=case.engine)
    for other in (result_2, again):
        assert other.log_partition == result.log_partition
        for name in names_of(model):
            np.testing.assert_array_equal(other[name], result[name])
    for number in range(model.n_factors):
        np.testing.assert_array_equal(result_2.factor(number), result.factor(number))


@each_engine("map", "samples")
def test_pickling_keeps_every_field_of_a_result(case: Case) -> None:
    result = case.ask(CHAIN, None, "log_partition", "moments", "map", "samples", n_samples=5)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.assignment == result.assignment
    assert copy.energy == result.energy
    assert dict(copy.diagnostics) == dict(result.diagnostics)
    np.testing.assert_array_equal(copy.samples, result.samples)
    np.testing.assert_array_equal(copy.moments, result.moments)
