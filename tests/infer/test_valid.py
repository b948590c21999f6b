"""What is no answer is an error where a Result is made, and what is one passes, looked at once."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import BesagError, EvidenceError, NumericalError
from besag.infer import valid
from besag.infer.result import Diagnostics, Result
from tests.routes import Forced

MODEL = besag.markov_network({"a": 2, "b": 3}, [(("a", "b"), np.zeros((2, 3)))])
TOLD = Diagnostics(engine="bp", converged=True)
FINE = np.array([[0.4, 0.6, 0.1, 0.2, 0.7]])
CELLS = np.full((1, 6), 1 / 6)


def answer(bound: str = "estimate", **fields: Any) -> Result:
    return Result(MODEL.graph, bound, TOLD, **fields)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("marginals", "match"),
    [
        ([0.4, 0.6, 1.0, 0.0, 1.0], "'bp': the marginal of 'b' is no distribution.* sum of 2, least 0, largest 1"),
        ([0.0, 0.0, 0.1, 0.2, 0.7], "the marginal of 'a'.* sum of 0"),
        ([0.4, 0.6, 0.1, np.nan, 0.7], "the marginal of 'b'.* sum of nan"),
        ([-0.2, 1.2, 0.1, 0.2, 0.7], "the marginal of 'a'.* least -0.2, largest 1.2; try another engine"),
        ([np.inf, -np.inf, 0.1, 0.2, 0.7], "the marginal of 'a'"),
    ],
)
def test_marginals_that_are_no_distribution(forced: Forced, compiled: bool, marginals: list[float], match: str) -> None:
    forced({"kernels.compile.worth_compiling": lambda _: compiled})
    with pytest.raises(NumericalError, match=match), np.errstate(invalid="ignore"):
        answer(probabilities=np.array([marginals]), log_partitions=np.zeros(1))
    assert issubclass(NumericalError, BesagError)


def test_factor_marginals_and_rows_are_named() -> None:
    with pytest.raises(NumericalError, match=r"the marginal of factor f\(a,b\) is no distribution"):
        answer(factor_marginals=2 * CELLS)
    with pytest.raises(NumericalError, match="the marginal of 'b' in row 1 "):
        answer(probabilities=np.array([FINE[0], [0.5, 0.5, 0.5, 0.5, 0.5]]), batched=True)


@pytest.mark.parametrize(
    ("bound", "value", "bounds", "match"),
    [
        ("exact", np.nan, None, "got nan"),
        ("exact", np.inf, None, "got inf"),
        ("estimate", -np.inf, None, "got -inf"),
        ("lower", np.inf, None, "got inf"),
        ("estimate", 1.0, (2.0, 3.0), "a number from 2 to 3, its bounds, got 1"),
        ("estimate", 4.0, (2.0, 3.0), "a number from 2 to 3, its bounds, got 4"),
        ("estimate", 2.0, (np.nan, 3.0), "from nan to 3"),
    ],
)
def test_log_partitions_that_are_none(bound: str, value: float, bounds: Any, match: str) -> None:
    ends = None if bounds is None else tuple(np.array([end]) for end in bounds)
    with pytest.raises(NumericalError, match=match):
        answer(bound, log_partitions=np.array([value]), bounds=ends)
    two = None if bounds is None else tuple(np.array([0.0, end]) for end in bounds)
    with pytest.raises(NumericalError, match=f"row or instance 1.*{match}"):
        answer(bound, log_partitions=np.array([0.0, value]), bounds=two, batched=True)


def test_an_energy_that_is_no_number() -> None:
    with pytest.raises(NumericalError, match="energy of a labelling to be a number, got NaN"):
        answer(codes=np.zeros((1, 1, 2), np.int64), energies=np.array([[np.nan]]))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_an_answer_passes(forced: Forced, compiled: bool) -> None:
    forced({"kernels.compile.worth_compiling": lambda _: compiled})
    nothing = np.zeros((1, 5))
    assert answer(probabilities=FINE, factor_marginals=CELLS, log_partitions=np.zeros(1)).log_partition == 0.0
    assert answer("exact", probabilities=nothing, log_partitions=np.array([-np.inf])).log_partition == -np.inf
    assert answer("lower", log_partitions=np.array([-np.inf])).log_partition == -np.inf
    assert answer("upper", log_partitions=np.array([np.inf])).log_partition == np.inf
    assert answer(probabilities=nothing).probabilities is not None  # of an engine without log Z: no labelling
    asked = answer(probabilities=np.array([[0.4, 0.6, 0, 0, 0]]), log_partitions=np.zeros(1), targets=("a",))
    assert asked["a"].tolist() == [0.4, 0.6]
    with pytest.raises(NumericalError, match="'a'"):
        answer(probabilities=np.array([[0, 0, 0.1, 0.2, 0.7]]), log_partitions=np.zeros(1), targets=("a",))


def test_instances_of_a_union_that_have_no_labelling_are_zero() -> None:
    graph = besag.graph.compile.compile_graph(MODEL, MODEL)
    halves = np.concatenate([np.zeros((1, 5)), FINE], axis=1)
    log_z = np.array([-np.inf, 0.0])
    assert Result(graph, "exact", TOLD, probabilities=halves, log_partitions=log_z)[1]["a"].tolist() == [0.4, 0.6]
    with pytest.raises(NumericalError, match="the marginal of"):
        Result(graph, "exact", TOLD, probabilities=halves, log_partitions=log_z[::-1])


def test_each_array_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    look = valid.look_through
    monkeypatch.setattr(valid, "look_through", lambda values, *rest: seen.append(values.size) or look(values, *rest))
    draft = Result(MODEL.graph, "estimate", Diagnostics(), probabilities=FINE)
    assert seen == []  # no engine stands for it yet
    told = replace(draft, diagnostics=TOLD)
    again = replace(told, targets=("a",), diagnostics=TOLD.extend(reason="none"))
    assert seen == [5]
    replace(again, factor_marginals=CELLS)
    assert seen == [5, 6]
    with pytest.raises(NumericalError):
        replace(again, probabilities=0.5 * FINE)


def test_impossible_evidence_is_said_as_before() -> None:
    model = besag.markov_network({"a": 2, "b": 2}, [(("a", "b"), [[0.0, -np.inf], [-np.inf, 0.0]])])
    rows = pd.DataFrame({"a": ["0", "1"], "b": ["0", "0"]})
    for engine in ("brute", "tree", "junction_tree", "elimination", "bp", "trw", "mean_field", "gibbs", "join_graph"):
        with pytest.raises(EvidenceError, match="a=0, b=1 cannot hold together"):
            model.marginals(evidence={"a": "0", "b": "1"}, engine=engine)
        with pytest.raises(EvidenceError, match="row 1"):
            model.marginals(evidence=rows, engine=engine)
