"""Support propagation: against a fixpoint in plain numpy, against enumeration, and on models whose answer is plain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import besag
from besag.arrays import BoolArray, Kind
from besag.graph.evidence import read_evidence
from besag.graph.problem import Problem
from besag.kernels.factors import Factors
from besag.kernels.support import propagate_support
from besag.model.model import Model
from tests.infer.trees.forests import dense, pack
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, forests, generators, models

MODES = [pytest.param(False, id="python"), pytest.param(True, id="compiled")]
COPY = np.where(np.eye(3, dtype=bool), 0.0, -np.inf)


def factors_of(model: Model) -> Factors:
    problem = model.problem.expanded(frozenset({Kind.TABLE}), 10**9)
    graph = problem.graph
    return Factors(
        graph.state_offsets,
        graph.scope_offsets,
        graph.scope_variables,
        problem.kinds,
        problem.table_of_factor,
        problem.table_offsets,
        problem.log_potentials,
    )


def allowed_by(problem: Problem) -> BoolArray:
    """(S,): the states that one row of evidence allows."""
    evidence, cards = problem.evidence, problem.graph.variables.cardinalities
    codes = np.concatenate([np.arange(k) for k in cards])
    observed = np.repeat(evidence.observed[0], cards)
    allowed = np.asarray((observed < 0) | (observed == codes))
    return allowed if evidence.log_weights is None else np.asarray(allowed & (evidence.log_weights[0] > -np.inf))


def fixpoint(factors: Factors, allowed: BoolArray) -> BoolArray:
    """The definition: every factor, every axis, until nothing changes."""
    allowed, before = allowed.copy(), None
    while before is None or (allowed != before).any():
        before = allowed.copy()
        for f in range(len(factors.kinds)):
            scope = factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
            states = [slice(factors.state_offsets[v], factors.state_offsets[v + 1]) for v in scope]
            for axis, own in enumerate(states):
                table = np.moveaxis(dense(factors, f) > -np.inf, axis, -1)
                for other in states[:axis] + states[axis + 1 :]:
                    table = np.asarray(table[allowed[other]].any(axis=0))
                allowed[own] &= table
    return allowed


def some_variable_is_empty(factors: Factors, allowed: BoolArray) -> bool:
    return not np.logical_or.reduceat(allowed, factors.state_offsets[:-1]).all()


@examples(100)
@given(model=models(), rng=generators(), share=st.sampled_from([0.2, 0.0, 0.6]))
def test_the_fixpoint_in_both_modes(model: Model, rng: np.random.Generator, share: float) -> None:
    factors = factors_of(model)
    allowed = rng.random(int(factors.state_offsets[-1])) >= share
    answers = [propagate_support(factors, allowed, compile=compile) for compile in (False, True)]
    assert_array_equal(answers[0], answers[1])
    expected = fixpoint(factors, allowed)
    if some_variable_is_empty(factors, expected):
        assert some_variable_is_empty(factors, answers[0])
    else:
        assert_array_equal(answers[0], expected)


@examples(60)
@given(data=st.data(), model=models())
def test_no_state_of_positive_probability_goes(data: st.DataObject, model: Model) -> None:
    evidence = data.draw(evidence_for(model))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    left = propagate_support(factors_of(model), allowed_by(problem), compile=False)
    assert (left | ~positive(model, evidence)).all()


@examples(60)
@given(data=st.data(), model=forests())
def test_without_cycles_every_impossible_state_goes(data: st.DataObject, model: Model) -> None:
    evidence = data.draw(evidence_for(model))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    left = propagate_support(factors_of(model), allowed_by(problem), compile=False)
    assert_array_equal(left, positive(model, evidence))


def positive(model: Model, evidence: Mapping[str, object]) -> BoolArray:
    """(S,): the states of positive marginal."""
    truth = Enumeration(model, evidence)
    possible = truth.labels[truth.log_weights > -np.inf]
    columns = zip(possible.T, model.variables.cardinalities, strict=True)
    return np.concatenate([np.bincount(column, minlength=k) > 0 for column, k in columns])


@pytest.mark.parametrize("compile", MODES)
@pytest.mark.parametrize("end", [0, 49])
def test_a_chain_of_copies_collapses(end: int, compile: bool) -> None:
    factors = pack([3] * 50, [([v, v + 1], 0) for v in range(49)], [COPY])
    allowed = np.ones((50, 3), bool)
    allowed[end] = [False, True, False]
    left = propagate_support(factors, allowed.ravel(), compile=compile).reshape(50, 3)
    assert_array_equal(left, [[False, True, False]] * 50)
    assert allowed.sum() == 148  # what was given is left alone


@pytest.mark.parametrize("compile", MODES)
def test_copies_that_contradict_leave_a_variable_without_states(compile: bool) -> None:
    factors = pack([3, 3, 2], [([0, 1], 0), ([1, 2], 1)], [COPY, np.zeros((3, 2))])
    allowed = np.array([1, 0, 0, 0, 1, 1, 1, 1], bool)
    left = propagate_support(factors, allowed, compile=compile)
    assert some_variable_is_empty(factors, left)
    assert left[6:].all()  # a table without hard zeros takes nothing away


@pytest.mark.parametrize("compile", MODES)
def test_a_unary_table_and_a_structured_factor(compile: bool) -> None:
    """A factor that is no table is not looked at, not even where its number is -inf."""
    factors = pack([2, 2], [([0], 0), ([0, 1], 1)], [np.array([0.0, -np.inf]), -np.inf])
    left = propagate_support(factors, np.ones(4, bool), compile=compile)
    assert left.tolist() == [True, False, True, True]


@pytest.mark.parametrize("compile", MODES)
def test_without_factors_nothing_goes(compile: bool) -> None:
    allowed = np.array([True, False, True])
    assert_array_equal(propagate_support(pack([1, 2], [], []), allowed, compile=compile), allowed)


def test_exclusive_or_waits_for_its_last_input() -> None:
    """y = a xor b: one observation leaves both states of the others, two leave one."""
    xor = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        xor[a, b, a ^ b] = 1.0
    model = besag.bayesian_network("a -> y; b -> y", cpts={"y": xor})
    for evidence, n_left in (({"y": 1}, 5), ({"y": 1, "a": 0}, 3)):
        problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
        left = propagate_support(factors_of(model), allowed_by(problem))
        assert left.sum() == n_left
        assert_array_equal(left, positive(model, evidence))
