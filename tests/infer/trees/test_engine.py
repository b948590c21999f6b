"""The tree engine: messages as the formulas have them, extreme numbers, many trees, long chains."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError, EvidenceError, ModelError
from tests.strategies import evidence_for, forests

CHAIN = besag.data.bundled("chain_001")
TREE = besag.data.bundled("tree_001")


@given(data=st.data())
def test_z_is_the_same_at_every_variable(data: st.DataObject) -> None:
    """002 (36), for any forest, root and evidence: the sum of the product of what a variable gets."""
    model = data.draw(forests())
    evidence = data.draw(evidence_for(model))
    root = data.draw(st.sampled_from([v.name for v in model.variables]))
    r = model.marginals(evidence=evidence, engine=besag.infer.Tree(root=root), trace=True)
    log = r.messages
    for part in components(model):
        z = [partition_at(log, model.variable(name)) for name in part]
        assert_allclose(z, z[0], rtol=1e-9)
    total = sum(np.log(partition_at(log, model.variable(part[0]))) for part in components(model))
    assert_allclose(total, r.log_partition, rtol=1e-9, atol=1e-9)


def components(model: besag.Model) -> list[list[str]]:
    return [sorted(part) for part in nx.connected_components(model.to_networkx("moral"))]


def partition_at(log: pd.DataFrame, variable: besag.Variable) -> float:
    got = log[(log["target"] == variable.name) & log["state"].isin(variable.states)]
    incoming = got.groupby("step")["value"].apply(np.array)
    return float(np.prod(np.stack(list(incoming)), axis=0).sum()) if len(incoming) else float(variable.cardinality)


def test_the_least_energy_is_the_same_at_every_variable() -> None:
    """002 (44)."""
    r = TREE.map(engine="tree[root=i]", trace=True)
    for variable in TREE.variables:
        got = r.messages[r.messages["target"] == variable.name]
        energies = np.stack(list(got.groupby("step")["value"].apply(np.array))).sum(axis=0)
        assert_allclose(energies.min(), r.energy)


def test_messages_go_from_the_leaves_to_the_root_and_back() -> None:
    sent = TREE.marginals(engine="tree[root=i]", trace=True).messages
    pairs = sent.drop_duplicates("step")[["source", "target"]].to_numpy().tolist()
    assert pairs.index(["F", "i"]) == pairs.index(["j", "F"]) + 1
    assert pairs.index(["H", "k"]) < pairs.index(["k", "G"]) < pairs.index(["G", "j"]) < pairs.index(["F", "i"])
    assert pairs.index(["F", "i"]) < pairs.index(["i", "F"]) < pairs.index(["F", "j"]) < pairs.index(["H", "l"])
    assert len(pairs) == 16


def test_steps_give_one_more_message_each() -> None:
    steps = list(CHAIN.steps(engine="tree[root=i]"))
    assert [len(step.messages["step"].unique()) for step in steps] == list(range(1, 13))
    assert_allclose(steps[-1]["k"], CHAIN.marginals()["k"])
    with pytest.raises(CapabilityError, match="variables was not asked for"):
        steps[0]["k"]


def test_every_root_gives_the_same_answers() -> None:
    for name in ("i", "j", "k", "l", "m"):
        assert_allclose(TREE.marginals(engine=f"tree[root={name}]").probabilities, TREE.marginals().probabilities)
    with pytest.raises(ModelError, match="no variable is named 'z'"):
        TREE.marginals(engine="tree[root=z]")


def test_a_cyclic_graph_is_refused() -> None:
    with pytest.raises(CapabilityError, match="without cycles"):
        besag.data.bundled("misconception").marginals(engine="tree")


def test_messages_are_traced_for_one_row() -> None:
    rows = pd.DataFrame({"i": ["0", "1"]})
    with pytest.raises(EvidenceError, match="one row"):
        CHAIN.marginals(evidence=rows, engine="tree", trace=True)
    looped = CHAIN.marginals(evidence=rows, engine="bp", trace=True)
    assert len(looped.trace) == looped.diagnostics.iterations
    with pytest.raises(CapabilityError, match="messages are kept for one row of evidence"):
        _ = looped.messages


def test_a_long_chain_of_tables_scaled_down() -> None:
    """log Z of a chain of n uniform pairs, each table times 1e-300."""
    n = 100_000
    r = besag.chain(np.zeros((n, 2)), np.full((2, 2), -300 * np.log(10))).marginals()
    assert_allclose(r.log_partition, n * np.log(2) - 300 * np.log(10) * (n - 1), rtol=1e-12)
    assert_allclose(r.array, 0.5)


@pytest.mark.parametrize("n", [20, 20_000])
def test_large_energies(n: int) -> None:
    """A field of 1e5 on every variable, pairs that may not differ, and an end that outweighs all of it by 7 nats."""
    unary = np.zeros((n, 2))
    unary[:, 0], unary[-1, 1] = 1e5, 1e5 * n + 7.0
    model = besag.chain(unary, [[0.0, -2e5 * n], [-2e5 * n, 0.0]])
    r = model.marginals()
    assert r.diagnostics.domain == "log"
    assert_allclose(r.log_partition, 1e5 * n + 7.0 + np.log1p(np.exp(-7.0)), rtol=1e-14)
    assert_allclose(r.array[:, 1], 1 / (1 + np.exp(-7.0)), rtol=1e-5)
    assert model.map().labels.tolist() == [1] * n


@pytest.mark.parametrize("n", [20, 20_000])
def test_copies_whose_range_grows_and_is_contradicted(n: int) -> None:
    """Hard equality all along, 10 nats a variable for state 0, and evidence for state 1: log Z = -10 (n - 1)."""
    unary = np.zeros((n, 2))
    unary[:-1, 1] = -10.0
    model = besag.chain(unary, [[0.0, -np.inf], [-np.inf, 0.0]])
    r = model.marginals(evidence={str(n - 1): "1"})
    assert_allclose(r.log_partition, -10.0 * (n - 1))
    assert_allclose(r.array[:, 1], 1.0)
    with pytest.raises(EvidenceError, match="cannot hold together"):
        model.marginals(evidence={"0": "0", str(n - 1): "1"})


def test_many_small_trees_in_one_call() -> None:
    one = besag.chain([[0.0, 1.0], [0.5, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    union = besag.compile_graph(*[one] * 100_000)
    wants = frozenset({"log_partition", "variables", "moments"})
    r = besag.infer.Tree().infer(union.bind(one.theta), wants)
    assert r.log_partition.shape == (100_000,)
    assert_allclose(r.log_partition, one.log_partition())
    assert_allclose(r[77_777]["1"], one.marginals()["1"])
    assert_allclose(union.moments(r.moments), 100_000 * one.moments())


def test_a_million_variables() -> None:
    rng = np.random.default_rng(0)
    model = besag.chain(rng.normal(size=(1_000_000, 3)), rng.normal(size=(3, 3)))
    r = model.marginals()
    assert_allclose(r.array.sum(axis=1), 1.0)
    short = besag.chain(-model.theta[:30].reshape(10, 3), -model.theta[-9:].reshape(3, 3))
    assert_allclose(r["0"], short.marginals()["0"], atol=1e-3)
    best = model.map()
    assert best.energy <= model.energy(r.array.argmax(axis=1))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_answers_do_not_depend_on_threads(n_threads: int) -> None:
    model = besag.chain(np.random.default_rng(1).normal(size=(300, 6)), np.eye(6))
    union = besag.compile_graph(*[model] * 300)
    wants = frozenset({"log_partition", "variables", "moments", "samples"})
    one, many = (
        besag.infer.Tree(n_threads=n).infer(union.bind(model.theta), wants, rng=np.random.default_rng(3))
        for n in (1, n_threads)
    )
    assert np.array_equal(one.moments, many.moments)
    assert np.array_equal(one.samples, many.samples)
    assert np.array_equal(one.log_partition, many.log_partition)
