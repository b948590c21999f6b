"""The evidence that the suites on published networks give to all contestants."""

from pathlib import Path

import numpy as np
import pytest

import besag
from benchmarks import networks
from benchmarks.networks import Network

COIN = Network(
    names=["copy", "coin", "other"],
    states=[["h", "t"], ["h", "t"], ["a", "b", "c"]],
    parents=[[1], [], [1]],
    tables=[np.eye(2), np.array([0.25, 0.75]), np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])],
)


@pytest.fixture
def folder(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(networks, "FOLDER", data_dir / "bnlearn_networks")
    return networks.FOLDER


def test_forward_samples_follow_the_tables() -> None:
    codes = networks.sample(COIN, 4000)
    assert (codes[:, 0] == codes[:, 1]).all()
    assert (codes[codes[:, 1] == 1, 2] == 0).all()
    assert set(codes[codes[:, 1] == 0, 2].tolist()) == {1, 2}
    # five standard deviations of the mean of 4000 coins: a false alarm in two million
    assert abs(codes[:, 1].mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 4000)


def test_changes_go_between_the_possible_states_of_the_only_leaf() -> None:
    chain = COIN._replace(parents=[[1], [], [0]], tables=[*COIN.tables[:2], np.array([[0.5, 0.0, 0.5]] * 2)])
    assert networks.observed(chain) == [2]
    states = [networks.evidence(chain)["other"], *(step.state for step in networks.changes(chain, 3))]
    assert states in (["a", "c", "a", "c"], ["c", "a", "c", "a"])


@pytest.mark.parametrize("name", ["asia", "sachs", "survey"])
def test_evidence_is_on_leaves_and_possible(folder: Path, name: str) -> None:
    network, model = networks.read(name), besag.load(networks.bif(name))
    now = networks.evidence(network)
    assert 1 <= len(now) <= max(1, round(0.1 * len(network.names)))
    parents = {above for variable in model.variables for above in model.parents(variable.name)}
    assert not parents & set(now)
    assert model.log_partition(evidence=now) > -np.inf
    for step in networks.changes(network, 20):
        assert now[step.name] != step.state
        assert step.target not in now
        now[step.name] = step.state
        assert model.log_partition(evidence=now) > -np.inf


def test_the_tables_are_those_of_the_file(folder: Path) -> None:
    network, model = networks.read("asia"), besag.load(networks.bif("asia"))
    assert network.names == [variable.name for variable in model.variables]
    for v, name in enumerate(network.names):
        assert network.states[v] == list(model.variable(name).states)
        assert [network.names[above] for above in network.parents[v]] == list(model.parents(name))
        np.testing.assert_allclose(network.tables[v], model.cpt(name), rtol=1e-12)


def test_rows_of_evidence_begin_with_the_evidence_of_the_case(folder: Path) -> None:
    network = networks.read("alarm")
    rows = networks.evidence_rows(network, 50)
    assert len(rows) == 50
    assert len({tuple(row.items()) for row in rows}) > 1
    assert all(list(row) == list(networks.evidence(network)) for row in rows)


def test_a_network_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"no nothing.bif.gz in the data folder; set BESAG_DATA"):
        networks.bif("nothing")


def test_checksums_tell_marginals_apart() -> None:
    marginals = [np.array([0.25, 0.75])] * 60
    right = networks.checksums(marginals)
    assert list(right) == ["marginals from 0", "marginals from 50"]
    wrong = networks.checksums([*marginals[:-1], np.array([0.75, 0.25])])
    assert wrong["marginals from 0"] == right["marginals from 0"]
    assert abs(wrong["marginals from 50"] / right["marginals from 50"] - 1) > 1e-3
