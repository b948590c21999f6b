"""joint and marginal_map where the joint states of all variables, or of the targets, are too many to enumerate."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import TooLargeError
from besag.infer.junction.elimination import Buckets
from besag.infer.junction.engine import JunctionTree
from besag.io import load
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.references.helpers import file_of
from tests.strategies import evidence_for, examples, models

CLOSE = {"rtol": 1e-9, "atol": 1e-10}
ALARM_EVIDENCE = {"HRBP": "HIGH", "PRESS": "LOW", "CO": "HIGH"}


@pytest.fixture(scope="module")
def alarm(data_dir: Path) -> Model:
    return load(file_of(data_dir / "bnlearn_networks", "alarm.bif"))


def names_of(model: Model) -> list[str]:
    return [variable.name for variable in model.variables]


@examples(60)
@given(data=st.data())
def test_many_targets_against_enumeration(data: st.DataObject) -> None:
    """Most or all of the variables, so that there are factors on targets alone."""
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    targets = data.draw(st.permutations(names_of(model)))
    targets = targets[: max(1, len(targets) - data.draw(st.integers(0, 2)))]
    oracle = Enumeration(model, evidence)
    joint = oracle.joint(targets)
    for engine in ("exact", "elimination", "junction_tree"):
        assert_allclose(model.joint(targets, evidence, engine=engine), joint, **CLOSE)
    result = model.marginal_map(targets, evidence, engine="elimination")
    at = tuple(model.variable(name).states.index(result.assignment[name]) for name in targets)
    assert_allclose(joint[at], joint.max(), **CLOSE)
    assert_allclose(result.energy, -np.log(joint.max()) - oracle.log_z, **CLOSE)


def test_every_engine_gives_the_same_joint() -> None:
    rng = np.random.default_rng(0)
    model = besag.ising((3, 3), 0.4, rng.normal(size=(3, 3)))
    targets, evidence = ["2,2", "0,0", "1,1"], {"0,1": 1, "2,1": {-1, 1}, "1,0": {"-1": 0.2, "1": 0.7}}
    expected = model.joint(targets, evidence, engine="brute")
    for engine in ("auto", "exact", "junction_tree", "elimination", besag.infer.JunctionTree()):
        assert_allclose(model.joint(targets, evidence, engine=engine), expected, **CLOSE)


@pytest.mark.parametrize("evidence", [None, ALARM_EVIDENCE])
def test_joint_of_the_variables_of_a_factor(alarm: Model, evidence: dict[str, str] | None) -> None:
    result = alarm.marginals(evidence=evidence, engine="junction_tree")
    checked = 0
    for number, f in enumerate(alarm.graph.factor_order.tolist()):
        scope = alarm.variables.names_at(alarm.graph.scope(f))
        if len(scope) == 3:
            assert_allclose(alarm.joint(scope, evidence), result.factor(number), **CLOSE)
            checked += 1
    assert checked > 5


def test_joint_of_distant_variables(alarm: Model) -> None:
    targets = ["HISTORY", "CATECHOL", "SAO2"]
    table = alarm.joint(targets, ALARM_EVIDENCE)
    singles = alarm.marginals(evidence=ALARM_EVIDENCE)
    for axis, name in enumerate(targets):
        others = tuple(i for i in range(3) if i != axis)
        assert_allclose(table.sum(axis=others), singles[name], **CLOSE)
    for i, state in enumerate(alarm.variable("CATECHOL").states):
        given = {**ALARM_EVIDENCE, "CATECHOL": state}
        slice_ = table[:, i] / table[:, i].sum()
        assert_allclose(slice_.sum(axis=1), alarm.marginals(evidence=given)["HISTORY"], **CLOSE)


FIFTEEN = (
    "HYPOVOLEMIA", "LVFAILURE", "ERRLOWOUTPUT", "ERRCAUTER", "INSUFFANESTH", "ANAPHYLAXIS", "KINKEDTUBE", "FIO2",
    "PULMEMBOLUS", "DISCONNECT", "HISTORY", "INTUBATION", "SHUNT", "PAP", "TPR",
)  # fmt: skip


@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("evidence", [None, ALARM_EVIDENCE])
def test_marginal_map_of_a_few_variables(alarm: Model, n: int, evidence: dict[str, str] | None) -> None:
    """The largest entry of the joint of enumerable targets."""
    targets = FIFTEEN[-n:]
    result = alarm.marginal_map(targets, evidence)
    table = alarm.joint(targets, evidence)
    at = tuple(alarm.variable(name).states.index(result.assignment[name]) for name in targets)
    assert at == np.unravel_index(table.argmax(), table.shape)
    assert_allclose(result.energy, -np.log(table.max()) - alarm.log_partition(evidence), **CLOSE)


@pytest.mark.parametrize("evidence", [None, ALARM_EVIDENCE])
def test_marginal_map_of_fifteen_variables(alarm: Model, evidence: dict[str, str] | None) -> None:
    """Its energy is that of its assignment, and no change of up to two of its variables has less."""
    result = alarm.marginal_map(FIFTEEN, evidence)
    best = {**(evidence or {}), **result.assignment}
    assert set(result.assignment) == set(FIFTEEN)
    assert_allclose(result.energy, -alarm.log_partition(best), **CLOSE)
    changed = [
        {**best, one: a, two: b}
        for i, one in enumerate(FIFTEEN)
        for two in FIFTEEN[:i]
        for a in alarm.variable(one).states
        for b in alarm.variable(two).states
    ]
    assert alarm.log_probability(pd.DataFrame(changed)).max() <= -result.energy + 1e-9


def test_marginal_map_of_all_variables_is_the_map(alarm: Model) -> None:
    assert len(names_of(alarm)) > 30
    result, whole = alarm.marginal_map(names_of(alarm), ALARM_EVIDENCE), alarm.map(ALARM_EVIDENCE)
    assert_allclose(result.energy, whole.energy, **CLOSE)
    assert_allclose(alarm.energy(result.assignment), whole.energy, **CLOSE)


def test_a_batch_of_many_targets() -> None:
    """Sixty targets of a long chain with hidden variables between them: rows, each with the energy that it says."""
    rng = np.random.default_rng(0)
    model = besag.chain(rng.normal(size=(120, 2)), rng.normal(size=(2, 2)))
    targets = [str(v) for v in range(0, 120, 2)]
    frame = pd.DataFrame({"1": [0, 1, None], "50": [1, None, 0]})
    result = model.marginal_map(targets, frame)
    assert result.energy.shape == (3,)
    for row, (energy, assignment) in enumerate(zip(result.energy, result.assignment, strict=True)):
        single = model.marginal_map(targets, frame.iloc[row].dropna().astype(int).to_dict())
        assert_allclose(energy, single.energy, **CLOSE)
        assert assignment == single.assignment
    np.testing.assert_array_equal([y["50"] for y in result.assignment][::2], ["1", "0"])


def test_too_many_targets_for_their_tables_are_refused() -> None:
    """The middle column of a grid summed out leaves one table on the two columns beside it."""
    model = besag.ising((30, 3), 0.5)
    targets = [f"{i},{j}" for i in range(30) for j in (0, 2)]
    with pytest.raises(TooLargeError, match="more than memory_limit=1000000"):
        model.marginal_map(targets, memory_limit=1_000_000, engine="exact")


def test_what_does_not_fit_is_clamped() -> None:
    """Tables of five corners of a grid: larger together than for each of their states."""
    model = besag.ising((6, 8), 0.3, np.random.default_rng(0).normal(size=(6, 8)))
    targets = ["0,0", "5,7", "0,7", "5,0", "3,3"]
    kept = np.array([model.variables.index(name) for name in targets])
    expected, n_clamped = model.joint(targets), 0
    for limit in np.logspace(4, 6, 20).astype(int).tolist():
        try:
            list(Buckets(JunctionTree(memory_limit=limit), model.problem).eliminate(kept))
        except TooLargeError:
            try:
                found = model.joint(targets, memory_limit=limit, engine="exact")
            except TooLargeError:
                continue
            n_clamped += 1
            assert_allclose(found, expected, **CLOSE)
            best = model.marginal_map(targets, memory_limit=limit, engine="exact")
            assert_allclose(best.energy, model.marginal_map(targets).energy, **CLOSE)
    assert n_clamped > 0


def test_kl_of_large_networks(alarm: Model) -> None:
    """KL = sum over families of E_p of the KL of their rows: only HYPOVOLEMIA differs here."""
    p, q = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    one = alarm.with_cpt("HYPOVOLEMIA", p)
    two = alarm.with_cpt("HYPOVOLEMIA", q)
    assert besag.kl(one, two) == pytest.approx(float((p * np.log(p / q)).sum()))
