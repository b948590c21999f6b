"""Numbers in single precision: the same answers to what it holds, and double precision where it cannot hold them."""

from typing import Any

import numpy as np
import pytest

import besag
from besag.errors import CapabilityError
from besag.infer.engine import ENGINES
from besag.infer.join_graph.engine import JoinGraph, Propagation
from besag.infer.sampling.single_site import prepare_sampling, single_site
from besag.model.model import Model
from tests.routes import Forced

NAMES = ("bp", "join_graph", "trw", "mean_field", "gibbs", "ais")


def mixed(scale: float = 1.0) -> Model:
    """Two to four states, three variables in a factor, a hard zero."""
    rng = np.random.default_rng(0)
    table = scale * rng.normal(size=(2, 3, 4))
    table[1, 2, 3] = -np.inf
    pairs = [(["a", "b"], scale * rng.normal(size=(2, 3))), (["c", "d"], scale * rng.normal(size=(4, 2)))]
    return besag.markov_network({"a": 2, "b": 3, "c": 4, "d": 2}, [(["a", "b", "c"], table), *pairs])


def states_grid() -> Model:
    rng = np.random.default_rng(1)
    return besag.grid((3, 3), 3, unary=rng.normal(size=(3, 3, 3)), pairwise=rng.normal(size=(3, 3)))


def binary_grid() -> Model:
    return besag.ising((4, 4), 0.4, np.random.default_rng(2).normal(size=(4, 4)))


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("make", [mixed, states_grid, binary_grid])
def test_single_precision_gives_the_answer_of_double(engine: str, make: Any) -> None:
    """Chains take the same way unless a random number lies within 1e-7 of a chance."""
    model = make()
    single, double = (
        model.marginals(engine=ENGINES.read(f"{engine}[dtype={dtype}]"), seed=3) for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single.probabilities, double.probabilities, atol=1e-4)
    if double.log_partitions is not None:
        np.testing.assert_allclose(single.log_partitions, double.log_partitions, atol=1e-3)


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")  # no chain moves between such states
@pytest.mark.parametrize("engine", NAMES)
def test_energies_that_single_precision_cannot_hold(engine: str) -> None:
    model = mixed(1e200)
    found = model.marginals(engine=ENGINES.read(f"{engine}[dtype=float32]"), seed=0)
    assert np.isfinite(found.probabilities).all()
    exact = model.marginals(engine="exact")
    if engine in ("bp", "join_graph"):
        np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=1e-6)


@pytest.mark.parametrize("engine", NAMES)
def test_no_other_type(engine: str) -> None:
    with pytest.raises(CapabilityError, match=r"dtype must be .*float32.*float64.*, got 'float16'"):
        ENGINES.read(f"{engine}[dtype=float16]")


@pytest.mark.parametrize("make", [mixed, states_grid, binary_grid])
def test_sweeps_read_single_precision(make: Any) -> None:
    sampler: Any = single_site(prepare_sampling(make().problem, None, 4, 10), 4, "chromatic", 1, "float32")
    read = sampler.coupling if hasattr(sampler, "coupling") else sampler.factors.log_potentials
    assert read.dtype == np.float32
    assert sampler.sums.dtype == np.float64


def test_messages_between_forests_are_kept_in_single_precision(forced: Forced) -> None:
    forced({"infer.join_graph.engine.FIRST_BITS": 5.0})
    rng = np.random.default_rng(4)
    couplings = (0.5 * rng.normal(size=(9, 8)), 0.5 * rng.normal(size=(8, 9)))
    model = besag.ising((9, 9), couplings, rng.normal(size=(9, 9)))
    found = []
    for dtype in ("float32", "float64"):
        process = Propagation(JoinGraph(clique_bound=2**6, dtype=dtype), model.problem, None, None, 0.0)
        for _ in range(4):
            process.step()
        found.append(process.answer(frozenset({"log_partition", "variables"})))
        (part,) = process.parts
        assert part is not None
        assert part.chain is not None
        kept = {stage.forward.values.dtype for stage in part.chain.stages if len(stage.forward)}
        assert kept == {np.dtype(dtype)}
    np.testing.assert_allclose(found[0].probabilities, found[1].probabilities, atol=1e-5)
    np.testing.assert_allclose(found[0].log_partitions, found[1].log_partitions, atol=1e-4)
