"""Graph cuts: exact where the energy is submodular, after flips too; roof duality elsewhere; refusals, rows, limits."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import CapabilityError, ConvergenceWarning, TooLargeError
from besag.graph.evidence import Evidence
from besag.infer.map.graph_cut import GraphCut
from tests.infer.map.test_local_search import glass
from tests.routes import Forced


def attractive(n: int, seed: int = 0) -> besag.Model:
    """A grid that smooths."""
    rng = np.random.default_rng(seed)
    weights = (np.abs(rng.normal(size=(n, n - 1))), np.abs(rng.normal(size=(n - 1, n))))
    return besag.grid((n, n), 2, unary=rng.normal(size=(n, n, 2)), pairwise=besag.potts(2), weights=weights)


def test_submodular_energies_are_solved() -> None:
    model = attractive(14)
    result = model.map(engine="graph_cut")
    assert result.bound == "exact"
    assert result.gap == 0
    assert result.diagnostics.submodular
    assert result.energy == pytest.approx(model.map(engine="exact").energy, rel=1e-12)


def test_antiferromagnets_on_a_grid_are_submodular_after_flips() -> None:
    rng = np.random.default_rng(1)
    model = besag.ising((13, 13), coupling=-0.6, field=rng.normal(size=(13, 13)))
    result = model.map(engine="graph_cut")
    assert result.optimal
    assert result.diagnostics.submodular
    assert 0 < result.diagnostics.flipped < 169
    assert result.energy == pytest.approx(model.map(engine="exact").energy, rel=1e-12)


def test_spin_glasses_get_a_bound_and_no_claim() -> None:
    model = glass(12)
    result = model.map(engine="graph_cut")
    least = model.map(engine="exact").energy
    assert result.energy_bound < least < result.energy
    assert not result.optimal
    assert result.diagnostics.undecided > 0
    assert result.energy <= model.map(engine="icm[schedule=sequential]").energy + 1e-9


def test_a_bound_that_is_reached_is_a_proof() -> None:
    """Weak couplings: roof duality decides all."""
    rng = np.random.default_rng(2)
    weak = (0.2 * rng.normal(size=(9, 8)), 0.2 * rng.normal(size=(8, 9)))
    model = besag.ising((9, 9), coupling=weak, field=rng.normal(size=(9, 9)))
    result = model.map(engine="graph_cut")
    assert not result.diagnostics.submodular
    assert result.optimal
    assert result.energy == pytest.approx(model.map(engine="exact").energy, rel=1e-12)


def test_evidence_leaves_two_states() -> None:
    rng = np.random.default_rng(3)
    model = besag.grid((4, 4), 4, unary=rng.normal(size=(4, 4, 4)), pairwise=besag.truncated_linear(4, 2.0))
    names = [variable.name for variable in model.variables]
    evidence = {name: [("0", "2"), ("1", "2"), ("3",)][i % 3] for i, name in enumerate(names)}
    result = model.map(evidence, engine="graph_cut")
    assert result.energy == pytest.approx(model.map(evidence, engine="exact").energy, rel=1e-12)
    with pytest.raises(CapabilityError, match=r"two states are left, but '0,0', in factor .*, has 4; use .*alpha_exp"):
        model.map(engine="graph_cut")


def test_factors_on_too_many_variables_are_named() -> None:
    rng = np.random.default_rng(4)
    model = besag.markov_network([2] * 14, {"wide": (list(range(14)), rng.normal(size=(2,) * 14))})
    with pytest.raises(
        CapabilityError, match=r"factor wide is on 14 variables with two states.*at most 12.*local_search"
    ):
        model.map(engine="graph_cut")
    assert np.isfinite(model.map({"0": "1", "1": "0"}, engine="graph_cut").energy)


def test_a_network_that_does_not_fit_is_refused(forced: Forced) -> None:
    forced({"infer.memory.SMALL": 0})
    with pytest.raises(TooLargeError, match=r"the network of a cut would take .* bytes"):
        attractive(40).map(engine="graph_cut", memory_limit=500_000)


def test_each_row_and_each_instance_has_its_own() -> None:
    model = attractive(8)
    rows = pd.DataFrame({"0,0": ["0", "1", "0"], "4,4": ["1", "1", "0"]})
    result, exact = model.map(rows, engine="graph_cut"), model.map(rows, engine="exact")
    np.testing.assert_allclose(result.energy, exact.energy)
    assert np.all(result.optimal)


@pytest.mark.parametrize("make", [attractive, glass])
def test_each_instance_of_a_union_has_its_own(make: Callable[[int], besag.Model]) -> None:
    model = make(6)
    observed = np.full((1, 72), -1)
    observed[0, [0, 40, 41]] = 1, 0, 1
    problem = besag.compile_graph(model, model).bind(model.theta).with_evidence(Evidence(observed))
    result = GraphCut().infer(problem, frozenset({"map"}))
    for i in range(2):
        row = model.problem.with_evidence(Evidence(observed[:, 36 * i : 36 * i + 36]))
        alone = GraphCut().infer(row, frozenset({"map"}))
        assert result.energy_bound[i] == pytest.approx(alone.energy_bound)
        assert result.energy_bound[i] <= result.energy[i] + 1e-12
        assert result.optimal[i] == (make is attractive)


def test_parts_of_the_work_are_steps_whose_bound_rises(forced: Forced) -> None:
    forced({"infer.map.graph_cut.AT_ONCE": 1})
    model = attractive(10)
    bounds = [r.energy_bound for r in model.steps(engine="graph_cut")]
    assert len(bounds) > 2
    assert (np.diff(bounds) >= 0).all()
    assert bounds[-1] == pytest.approx(model.map(engine="exact").energy)
    with pytest.warns(ConvergenceWarning, match="graph_cut stopped at its time_limit"):
        short = model.map(engine="graph_cut", time_limit=1e-9)
    assert short.energy_bound <= bounds[-1] <= short.energy


def test_hard_zeros_of_pairs_are_kept() -> None:
    """Independent sets of a bipartite graph: submodular after flips; of an odd ring: not."""
    rng = np.random.default_rng(5)
    not_both = np.array([[0.0, 0.0], [0.0, -np.inf]])
    unary = np.stack([np.zeros((9, 9)), rng.normal(0.5, size=(9, 9))], axis=-1)
    model = besag.grid((9, 9), 2, unary=unary, pairwise=not_both)
    result = model.map(engine="graph_cut")
    assert result.optimal
    assert result.energy == pytest.approx(model.map(engine="exact").energy)
    ring = besag.markov_network(
        [2] * 5, [([i, (i + 1) % 5], not_both) for i in range(5)] + [([i], [0.0, 1.0]) for i in range(5)]
    )
    result = ring.map(engine="graph_cut")
    assert result.energy_bound == pytest.approx(-2.5)
    assert np.isfinite(result.energy)
