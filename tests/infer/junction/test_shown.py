"""Messages between cliques, to look at: they are those that the engine's answers come from."""

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError, EvidenceError, TooLargeError
from besag.model.model import Model
from tests.infer.bp.test_bp import grid
from tests.oracle import Enumeration, likelihood
from tests.strategies import evidence_for, examples, models


def on(table: np.ndarray, scope: tuple[str, ...], over: tuple[str, ...]) -> np.ndarray:
    """A table on some variables of a clique, with an axis for each of the clique."""
    order = sorted(range(len(scope)), key=lambda axis: over.index(scope[axis]))
    sizes = dict(zip(scope, table.shape, strict=True))
    return table.transpose(order).reshape([sizes.get(name, 1) for name in over])


def tables_of(
    model: Model, evidence: dict[str, Any], known: dict[str, int]
) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Log-weights of every factor and of the evidence, at the states of known variables."""
    graph, found = model.graph, []
    for f in range(graph.n_factors):
        scope = model.variables.names_at(graph.scope(f))
        table = model.problem.table(f)[tuple(known.get(name, slice(None)) for name in scope)]
        found.append((tuple(name for name in scope if name not in known), np.asarray(table)))
    for name, value in evidence.items():
        with np.errstate(divide="ignore"):
            weights = np.log([likelihood(value, state) for state in model.variable(name).states])
        found.append(((), weights[known[name]]) if name in known else ((name,), weights))
    return found


def cliques_of(model: Model, evidence: dict[str, Any], frame: pd.DataFrame, logs: np.ndarray) -> list[np.ndarray]:
    """Log-weights of every clique: its factors and what its neighbours say; logs are the values of the frame."""
    tree, everything = model.junction_tree(evidence), Enumeration(model, evidence)
    known = {name: int(everything.marginal(name).argmax()) for name in tree.known}
    belief = [np.zeros([model.variable(name).cardinality for name in clique]) for clique in tree.cliques]
    for scope, table in tables_of(model, evidence, known):
        holders = (c for c, clique in enumerate(tree.cliques) if set(scope) <= set(clique))
        c = next(holders) if scope else len(belief) - 1
        belief[c] = belief[c] + on(table, scope, tree.cliques[c])
    for child, parent, names in tree.separators:
        for source, target in ((child, parent), (parent, child)):
            labels = [",".join(tree.cliques[c]) for c in (source, target)]
            rows = (frame["source"] == labels[0]) & (frame["target"] == labels[1])
            message = logs[rows.to_numpy()].reshape([model.variable(name).cardinality for name in names])
            belief[target] = belief[target] + on(message, names, tree.cliques[target])
    return belief


def roots_of(model: Model, evidence: dict[str, Any]) -> list[int]:
    tree = model.junction_tree(evidence)
    children = {separator.clique for separator in tree.separators}
    return [c for c in range(len(tree.cliques)) if c not in children]


@examples(80)
@given(data=st.data())
def test_001_cliques_times_incoming_messages_are_joint_marginals(data: st.DataObject) -> None:
    """psi_C prod m_{B->C} = Z p(y_C), Z of the tree that C is in."""
    model = data.draw(models())
    evidence = data.draw(st.just({}) | evidence_for(model))
    r = model.marginals(engine="junction_tree", evidence=evidence, trace=True)
    tree = model.junction_tree(evidence)
    assume(tree.cliques)
    with np.errstate(divide="ignore"):
        belief = cliques_of(model, evidence, r.messages, np.log(r.messages["value"].to_numpy()))
    everything = Enumeration(model, evidence)
    for clique, logs in zip(tree.cliques, belief, strict=True):
        weights = np.exp(logs)
        assert_allclose(weights / weights.sum(), everything.joint(clique), atol=1e-12)
    log_z = sum(np.log(np.exp(belief[root]).sum()) for root in roots_of(model, evidence))
    assert_allclose(log_z, r.log_partition, rtol=1e-12, atol=1e-12)


@examples(60)
@given(data=st.data())
def test_002_44_min_sum_messages_between_cliques_give_the_least_energy_at_every_clique(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(st.just({}) | evidence_for(model))
    best = model.map(engine="junction_tree", evidence=evidence, trace=True)
    tree = model.junction_tree(evidence)
    assume(tree.cliques)
    belief = cliques_of(model, evidence, best.messages, -best.messages["value"].to_numpy())
    roots = roots_of(model, evidence)
    assert_allclose(sum(-belief[root].max() for root in roots), best.energy, atol=1e-9)
    if len(roots) == 1:
        assert_allclose([-logs.max() for logs in belief], best.energy, atol=1e-9)


def test_messages_of_a_chain_of_cliques_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(0)
    f, g, h = rng.random((3, 2, 2))
    square = [(("A", "B"), f), (("B", "C"), g), (("C", "D"), h), (("D", "A"), h)]
    model = besag.markov_network({name: ["no", "yes"] for name in "ABCD"}, square, given="weight")
    tree, r = model.junction_tree(), model.marginals(engine="junction_tree", trace=True)
    frame = r.messages
    assert list(frame.columns) == ["step", "source", "target", "state", "value"]
    assert len(tree.cliques) == 2
    shared = tree.separators[0].names
    up, down = (",".join(clique) for clique in tree.cliques)
    assert frame["source"].tolist() == [up] * 4 + [down] * 4
    assert frame["state"].tolist() == ["no,no", "no,yes", "yes,no", "yes,yes"] * 2
    both = frame["value"].to_numpy().reshape(2, 2, 2).prod(axis=0)
    assert_allclose(both, np.exp(r.log_partition) * model.joint(list(shared), engine="brute"), rtol=1e-12)


def test_the_first_clique_that_has_its_variables_holds_a_factor() -> None:
    model = besag.data.bundled("asia")
    tree = model.junction_tree()
    held = [name for own in tree.factors for name in own]
    assert sorted(held) == sorted(model.graph.factor_name(f) for f in range(model.n_factors))
    for clique, own in zip(tree.cliques, tree.factors, strict=True):
        assert all(set(name[2:-1].split(",")) <= set(clique) for name in own)


@examples(40)
@given(data=st.data())
def test_steps_are_the_messages_one_by_one(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(st.none() | evidence_for(model))
    whole = model.marginals(engine="junction_tree", evidence=evidence, trace=True)
    steps = list(model.steps(evidence, engine="junction_tree"))
    n = 2 * len(model.junction_tree(evidence).separators)
    assert [step.messages["step"].nunique() for step in steps] == (list(range(1, n + 1)) or [0])
    pd.testing.assert_frame_equal(steps[-1].messages, whole.messages)
    for variable in model.variables:
        assert_allclose(steps[-1][variable.name], whole[variable.name], atol=1e-13)
    if n > 1:
        with pytest.raises(CapabilityError, match="variables was not asked for"):
            _ = steps[0][model.variables.names[0]]


def test_children_send_before_parents_and_hear_after_them() -> None:
    model = grid(4, 2, 1.0)
    sent = model.marginals(engine="junction_tree", trace=True).messages
    pairs = list(dict.fromkeys(zip(sent["source"], sent["target"], strict=True)))
    tree = model.junction_tree()
    up = [(",".join(tree.cliques[s.clique]), ",".join(tree.cliques[s.parent])) for s in tree.separators]
    assert pairs[: len(up)] == up
    assert pairs[len(up) :] == [(parent, child) for child, parent in reversed(up)]


def test_messages_that_do_not_fit_are_refused_when_somebody_looks() -> None:
    model = grid(6, 4, 1.0)
    r = model.marginals(engine="junction_tree", trace=True, memory_limit=2_000_000)
    with pytest.raises(TooLargeError, match=r"the messages of the junction tree, to look at, would take .* bytes"):
        _ = r.messages
    rows = pd.DataFrame({"0,0": ["0", "1"]})
    with pytest.raises(EvidenceError, match="messages are traced for one row of evidence"):
        model.marginals(evidence=rows, engine="junction_tree", trace=True)


def test_an_engine_that_is_chosen_shows_them_too() -> None:
    model = grid(3, 2, 1.0)
    named = model.marginals(engine="junction_tree", trace=True)
    for engine in ("auto", "exact"):
        pd.testing.assert_frame_equal(model.marginals(engine=engine, trace=True).messages, named.messages)
    assert functools.reduce(lambda n, _: n + 1, model.steps(), 0) == named.messages["step"].nunique()
