"""The plan before it is paid: model.cost(), and what an engine says when it does not fit."""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.errors import CapabilityError, EvidenceError, TooLargeError
from besag.infer.auto.engine import other_engines
from besag.infer.engine import ENGINES, Capabilities
from besag.infer.junction.engine import JunctionTree
from tests.strategies import evidence_for, examples, models

LOOP = besag.ising((2, 2), 0.5, 0.1)
TOO_LARGE = besag.ising((60, 70))


def lines(cost: object) -> dict[str, str]:
    """The rows of a print-out."""
    return {line[:15].strip(): line[15:].strip() for line in str(cost).splitlines()[1:]}


# Junction trees ------------------------------------------------------------------------------------------------------


def test_a_small_graph_with_cycles() -> None:
    cost = LOOP.cost()
    assert (cost.engine, cost.reason) == ("junction_tree", "the factor graph has cycles")
    assert (cost.width, cost.entries, cost.largest, cost.cliques) == (2, 16, 8, 2)
    assert sorted(cost.order) == [variable.name for variable in LOOP.variables]
    assert cost.fits
    assert 0 < cost.bytes < 1e4
    assert 0 < cost.seconds < 0.01


def test_it_prints_as_a_table() -> None:
    shown = lines(besag.ising((5, 5)).cost(memory_limit=10**6))
    assert shown["engine"] == "junction_tree"
    assert shown["width"] == "5"
    assert shown["fits"] == "yes, memory_limit=1e+06"
    assert shown["order"].endswith(", ... and 17 more")
    assert shown["found by"].startswith(("weighted fill, best of", "fill, best of", "weight, best of"))
    assert set(shown) >= {"reason", "table entries", "largest table", "cliques", "bytes", "seconds"}


@examples(60)
@given(data=st.data())
def test_it_is_what_inference_takes(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(st.none() | evidence_for(model))
    cost = model.cost(evidence, engine="junction_tree")
    told = model.marginals(evidence=evidence, engine="junction_tree").diagnostics
    assert cost.entries == pytest.approx(told["entries"])
    assert cost.width == max(told["width"], 0)
    assert len(set(cost.order)) == len(cost.order)
    assert 0 <= cost.largest <= cost.entries
    assert str(cost)


@examples(40)
@given(data=st.data())
def test_what_fits_is_not_refused(data: st.DataObject) -> None:
    model = besag.ising(data.draw(st.sampled_from([(3, 3), (2, 2, 2), (4, 5)])))
    limit = data.draw(st.integers(1, 20_000))
    cost = model.cost(engine="exact", memory_limit=limit)
    assert (cost.fits, cost.memory_limit) == (cost.bytes <= limit, limit)
    if cost.fits:
        model.marginals(engine="exact", memory_limit=limit)
    else:
        assert cost.engine == "none"
        with pytest.raises(TooLargeError, match=f"memory_limit={limit}: width {cost.width}"):
            model.marginals(engine="exact", memory_limit=limit)


def test_observed_variables_are_taken_out() -> None:
    grid = besag.ising((6, 6))
    row = {f"3,{j}": 1 for j in range(6)}
    cost = grid.cost(row)
    assert cost.width == 3
    assert not set(row) & set(cost.order)
    assert cost.entries < grid.cost().entries
    assert grid.cost({}) == grid.cost(None, memory_limit=grid.cost({}).memory_limit)


def test_states_that_evidence_rules_out_are_taken_out() -> None:
    same = np.eye(80)
    loop = besag.markov_network([80] * 4, [((v, (v + 1) % 4), same) for v in range(4)], given="weight")
    assert loop.cost().largest == 80**3
    assert loop.cost({"0": ["3", "7"]}).largest == 2**3
    assert loop.log_partition({"0": ["3", "7"]}) == pytest.approx(np.log(2))


def test_rows_add_up_in_seconds_only() -> None:
    grid = besag.ising((5, 5))
    limit: Any = {"memory_limit": 10**9}
    one, two = (grid.cost(pd.DataFrame({"0,0": [1] * n}), **limit) for n in (1, 1001))
    assert one.entries == two.entries
    assert one.bytes == two.bytes
    assert two.seconds > one.seconds


def test_the_engine_may_have_targets() -> None:
    asia = besag.data.bundled("asia")
    assert asia.cost(engine=JunctionTree(targets=("tub",))).entries < asia.cost(engine="junction_tree").entries


def test_evidence_must_make_sense() -> None:
    with pytest.raises(EvidenceError, match="has no state 'high'"):
        LOOP.cost({"0,0": "high"})


# What does not fit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(60, 70), pytest.param((300, 300), marks=pytest.mark.slow)])
def test_a_graph_that_is_too_large_is_not_refused(shape: tuple[int, int]) -> None:
    cost = besag.ising(shape).cost(engine="exact")
    assert cost.engine == "none"
    assert not cost.fits
    assert cost.width >= shape[0]
    assert f"width {cost.width} in the best order found" in cost.reason
    assert cost.entries >= 2.0 ** shape[0]
    assert lines(cost)["fits"].startswith("no")


def test_entries_may_be_infinite() -> None:
    pairs = np.stack(np.triu_indices(110, 1), axis=1)
    dense = besag.markov_network([1000] * 110, [(pairs, besag.potts(1000))])
    cost = dense.cost()
    assert (cost.width, cost.entries, cost.seconds, cost.fits) == (109, np.inf, np.inf, False)
    assert lines(cost)["table entries"] == "inf"


def test_tables_of_structured_factors_are_counted_and_not_made() -> None:
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=(2, 1)), rng.normal(size=(1, 2)))
    grid = besag.grid((2, 2), 50, pairwise=besag.potts(50), weights=weights)
    cost = grid.cost(memory_limit=1000)
    assert not cost.fits
    assert cost.bytes >= 4 * 8 * 50**2
    with pytest.raises(TooLargeError, match="memory_limit=1000"):
        grid.marginals(memory_limit=1000)


def test_the_refusal_says_what_it_would_take() -> None:
    width = TOO_LARGE.cost().width
    with pytest.raises(TooLargeError, match=rf"bytes, more than memory_limit=\d+: width {width}, .* approximately"):
        TOO_LARGE.marginals(engine="exact")


def test_what_auto_takes_where_exact_inference_does_not_fit() -> None:
    cost = TOO_LARGE.cost()
    assert cost.engine in ("bp", "join_graph")
    assert cost.reason.endswith("; an estimate, with bounds by mean_field and trw")
    assert TOO_LARGE.cost(engine="exact").engine == "none"


class Guess:
    """An engine that is not exact."""

    capabilities: ClassVar[Capabilities] = Capabilities(frozenset({"log_partition", "variables"}), "estimate")


def test_the_refusal_names_engines_that_can_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES.entries, "guess", (__name__, "Guess"))
    with pytest.raises(TooLargeError, match=r"engines that answer approximately: .*\bguess\b"):
        TOO_LARGE.marginals(engine="exact")
    with pytest.raises(
        TooLargeError,
        match=r"approximately: alpha_beta_swap, alpha_expansion, anneal, bp, dual, graph_cut, icm, local_search, trws$",
    ):
        TOO_LARGE.map(engine="exact")
    assert "guess" not in other_engines(frozenset({"samples"}))


# Other engines -------------------------------------------------------------------------------------------------------


def test_a_forest() -> None:
    chain = besag.chain(np.zeros((5, 3)), np.eye(3))
    cost = chain.cost()
    assert (cost.engine, cost.reason) == ("tree", "the factor graph is a forest")
    assert (cost.width, cost.entries, cost.largest, cost.cliques) == (1, 4 * 9 + 5 * 3, 9, 4)
    assert sorted(cost.order) == [variable.name for variable in chain.variables]
    assert cost.order[-1] == "2"  # the centre is the root
    assert chain.cost(engine="tree[root=0]").order[-1] == "0"
    small = chain.cost(memory_limit=10)
    assert (small.engine, small.fits) == ("tree", False)
    assert chain.marginals(memory_limit=10).diagnostics.engine == "tree"


def test_a_shared_table_takes_no_memory_for_each_factor() -> None:
    chain = besag.chain(np.zeros((1000, 100)), np.eye(100))
    assert chain.cost().bytes < 8 * chain.cost().entries / 10


def test_enumeration() -> None:
    cost = LOOP.cost(engine="brute")
    assert (cost.engine, cost.reason, cost.width, cost.entries) == ("brute", "it was asked for", 3, 16)
    assert "order" not in lines(cost)
    assert not besag.ising((6, 6)).cost(engine="brute").fits


def test_the_tree_engine_needs_a_forest() -> None:
    with pytest.raises(CapabilityError, match="without cycles"):
        LOOP.cost(engine="tree")
