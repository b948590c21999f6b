"""Sequential tree-reweighted message passing: bounds that hold and never fall, exact on trees, structured messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.errors import CapabilityError, TooLargeError
from besag.infer.map.landscape import Landscape
from besag.infer.map.trws import TRWS, Messages
from besag.model.structured.base import Levelled
from tests.oracle import Enumeration
from tests.routes import Forced
from tests.strategies import evidence_for, examples, models, pairwise

MAP = frozenset({"map"})


@examples(60)
@given(data=st.data())
def test_bounds_hold_at_every_step_and_never_fall(data: DataObject) -> None:
    model = data.draw(pairwise())
    least = Enumeration(model).map_energy
    bounds = [r.energy_bound for _, r in zip(range(8), model.steps(engine="trws[tolerance=0]"), strict=False)]
    assert (np.diff(bounds) >= -1e-12).all()
    assert max(bounds) <= least + 1e-10


@examples(60)
@given(data=st.data())
def test_bounds_of_messages_alone_never_fall_either_and_slack_is_a_bound(data: DataObject) -> None:
    """Of each pass, forwards and backwards, without taking the best of all."""
    model = data.draw(pairwise())
    messages, oracle = Messages(Landscape(model.problem, None).setting), Enumeration(model)
    offsets, bound = model.graph.state_offsets, -np.inf
    for step in range(8):
        slack = np.empty(int(offsets[-1]))
        messages.send(0, backwards=step % 2 == 1, slack=slack)
        for v in range(len(model.variables)):
            for k in range(offsets[v + 1] - offsets[v]):
                least = -oracle.log_weights[oracle.labels[:, v] == k].max()
                assert step == 0 or bound + slack[offsets[v] + k] <= least + 1e-9
        before, bound = bound, messages.bounds()[0]
        assert bound >= before - 1e-9


@examples(40)
@given(data=st.data())
def test_the_gap_closes_on_forests(data: DataObject) -> None:
    model = data.draw(models(forest=True, max_arity=2))
    result = model.map(engine="trws[tolerance=1e-12]")
    assert result.optimal
    assert result.energy == pytest.approx(Enumeration(model).map_energy, abs=1e-9)


@examples(30)
@given(data=st.data())
def test_rows_of_evidence_have_bounds_of_their_own(data: DataObject) -> None:
    model = data.draw(pairwise())
    evidence = data.draw(evidence_for(model))
    result = model.map(evidence=evidence, engine="trws")
    assert result.energy_bound <= Enumeration(model, evidence).map_energy + 1e-9 <= result.energy + 2e-9


@pytest.mark.parametrize("term", [besag.potts(5), besag.truncated_linear(5, 2.5), besag.truncated_quadratic(5, 6.0)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("engine", ["trws", "dual"])
def test_structured_messages_are_those_of_tables(term: Levelled, sign: float, engine: str, forced: Forced) -> None:
    forced({"infer.map.trws.WORTHWHILE": 0})
    rng = np.random.default_rng(0)
    unary, weights = rng.normal(size=(5, 6, 5)), (rng.random((5, 5)) * sign, rng.random((4, 6)) * sign)
    model = besag.grid((5, 6), 5, unary, term, weights)
    tables = tuple(w[..., None, None] * -term.dense()[0] for w in weights)
    spelled = besag.grid((5, 6), 5, unary, tables)
    one, other = (m.map(engine=f"{engine}[max_iterations=20,tolerance=0]") for m in (model, spelled))
    assert one.energy == pytest.approx(other.energy)
    assert one.energy_bound == pytest.approx(other.energy_bound)


def test_attractive_grids_are_solved() -> None:
    rng = np.random.default_rng(0)
    model = besag.ising((12, 12), coupling=(np.abs(rng.normal(size=(12, 11))), np.abs(rng.normal(size=(11, 12)))),
                        field=rng.normal(size=(12, 12)))  # fmt: skip
    result = model.map(engine="trws[tolerance=1e-10]")
    assert result.optimal
    assert result.energy == pytest.approx(model.map(engine="exact").energy)


def test_no_flip_betters_what_is_shown() -> None:
    rng = np.random.default_rng(1)
    model = besag.grid((20, 20), 6, rng.normal(size=(20, 20, 6)), rng.normal(size=(6, 6)))
    for result in model.steps(engine="trws[max_iterations=4,tolerance=0]"):
        assert model.map(engine="icm", init=result).energy >= result.energy - 1e-9


def test_each_instance_of_a_union_has_its_bound() -> None:
    rng = np.random.default_rng(0)
    model = besag.markov_network({"a": 2, "b": 3, "c": 2}, [(["a", "b"], rng.normal(size=(2, 3))),
                                                            (["c", "b"], rng.normal(size=(2, 3)))])  # fmt: skip
    graph = besag.compile_graph(model, model.with_theta(model.theta))
    result = TRWS().infer(graph.bind(model.theta), MAP)
    assert np.allclose(result.energy_bound, model.map().energy)
    assert np.allclose(result.energy, model.map().energy)


def test_larger_factors_are_refused_and_memory_is_kept() -> None:
    rng = np.random.default_rng(0)
    model = besag.markov_network([2, 2, 2], [([0, 1, 2], rng.normal(size=(2, 2, 2)))])
    with pytest.raises(CapabilityError, match=r"takes factors of at most two variables; one here has 3: engine='dual'"):
        model.map(engine="trws")
    with pytest.raises(TooLargeError, match="memory_limit"):
        besag.grid((400, 400), 16, pairwise=besag.potts(16)).map(engine="trws", memory_limit=10**7)
    with pytest.raises(CapabilityError, match="tolerance must be a number"):
        TRWS(tolerance=-1.0)


def test_a_model_without_pairs_takes_the_route_of_large_ones_too(forced: Forced) -> None:
    forced({"infer.map.trws.WORTHWHILE": 0})
    assert besag.markov_network([2, 2], [(["0"], [0.0, 1.0])]).map(engine="trws").optimal
