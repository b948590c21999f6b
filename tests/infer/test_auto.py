"""auto: exact where that fits, else an estimate with bounds, and a word about it."""

import warnings
from typing import Any

import numpy as np
import pytest

import besag
from besag.errors import ApproximationWarning, ConvergenceWarning, TooLargeError
from besag.graph.evidence import read_evidence
from besag.infer import mean_field as mean_field_engine
from besag.infer import trw as trw_engine
from besag.infer.combined import estimator_of
from besag.infer.iterate import Limits, is_interrupt, iterate
from besag.infer.join_graph import JoinGraph, Propagation
from besag.infer.junction import JunctionTree, Run
from besag.infer.outlook import induced, is_hopeless, near_to
from besag.infer.result import Result
from besag.kernels.order import neighbours
from besag.model.model import Model


def random_grid(side: int, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    shapes = ((side, side - 1, 2, 2), (side - 1, side, 2, 2))
    pairs = tuple(0.5 * rng.normal(size=shape) for shape in shapes)
    return besag.grid((side, side), 2, unary=rng.normal(size=(side, side, 2)), pairwise=pairs)


def approximated(model: Model, **options: object) -> Result:
    """Marginals with so little memory that exact inference does not fit."""
    with pytest.warns(
        ApproximationWarning, match=r"exact inference does not fit: .* Answered by .*; log Z is known to"
    ):
        return model.marginals(memory_limit=40_000, **options)  # type: ignore[arg-type]


def test_small_models_are_answered_exactly_and_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert random_grid(8).marginals().bound == "exact"


@pytest.mark.parametrize("time_limit", [None, 3.0])
def test_an_estimate_lies_between_its_bounds_and_so_does_the_truth(time_limit: float | None) -> None:
    model = random_grid(12)
    result = approximated(model, time_limit=time_limit)
    true = model.log_partition(engine="exact")
    low, high = result.log_partition_bounds
    assert result.bound == "estimate"
    assert low <= true <= high
    assert low <= result.log_partition <= high
    assert high - low < 0.1 * abs(true)
    assert abs(result.log_partition - true) < 0.5 * (high - low)
    exact = model.marginals(engine="exact")
    assert result.probabilities is not None
    assert exact.probabilities is not None
    assert np.abs(result.probabilities - exact.probabilities).max() < 0.05
    assert {"below": "mean_field", "above": "trw"}.items() <= result.diagnostics["engines"].items()
    assert "memory_limit=40000" in result.diagnostics["reason"]


def test_the_same_seed_gives_the_same_answer() -> None:
    one, two = (approximated(random_grid(12), seed=3) for _ in range(2))
    assert one.log_partition == two.log_partition
    assert one.log_partition_bounds == two.log_partition_bounds
    np.testing.assert_array_equal(one.array, two.array)


def test_the_trace_has_the_bound_from_above() -> None:
    with pytest.warns(ApproximationWarning):
        result = random_grid(12).marginals(memory_limit=40_000, trace=True)
    assert set(result.trace["bound"]) == {result.log_partition_bounds[1]}
    assert result.trace["value"].iloc[-1] == pytest.approx(result.log_partition)


def test_more_time_lets_larger_graphs_have_join_graphs() -> None:
    problem = besag.ising((60, 60), 0.3).problem
    engines = [type(estimator_of(problem, seconds)).__name__ for seconds in (None, 1.0, 5.0)]
    assert engines == ["BP", "BP", "JoinGraph"]


def test_labellings_and_samples() -> None:
    model = random_grid(12)
    with pytest.warns(ApproximationWarning, match="Answered by bp"):
        best = model.map(memory_limit=40_000)
    assert best.energy >= model.map(engine="exact").energy - 1e-9
    assert best.energy < model.energy(dict.fromkeys(best.assignment, "0"))
    engine = besag.infer.Auto(memory_limit=10**5, n_samples=7)
    with pytest.warns(ApproximationWarning, match="Answered by gibbs"):
        drawn = engine.infer(model.problem, frozenset({"samples"})).samples
    assert drawn.shape == (7, 144)
    assert (model.problem.energy(drawn) < model.energy(dict.fromkeys(best.assignment, "0"))).all()


def test_a_warning_points_at_the_line_of_the_user() -> None:
    model = random_grid(12)
    with pytest.warns(ApproximationWarning) as of_auto:
        model.marginals(memory_limit=40_000)
    with pytest.warns(ConvergenceWarning) as of_bp:
        model.map(engine="bp[max_iterations=1]")
    assert {warning.filename for warning in (*of_auto, *of_bp)} == {__file__}


def test_what_fits_nowhere_is_refused() -> None:
    with pytest.raises(TooLargeError, match="memory_limit=100"):
        random_grid(12).marginals(memory_limit=100)


def test_k_best_labellings_are_exact_or_refused() -> None:
    with pytest.raises(TooLargeError, match="memory_limit=40000"):
        random_grid(12).map(k=3, memory_limit=40_000)


def hopeless(model: Model, evidence: Any = None, want: str = "variables", **options: Any) -> bool:
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    run = Run(JunctionTree(**options), problem, dense=False)
    return is_hopeless(run, frozenset({want}), 1e13)  # type: ignore[arg-type]


def test_a_large_grid_is_hopeless_and_a_narrow_one_is_not() -> None:
    assert hopeless(besag.ising((60, 60), 0.3))
    assert not hopeless(besag.ising((5, 2000), 0.3))
    assert not hopeless(besag.chain(np.zeros((5000, 2)), np.eye(2)))


def test_observed_variables_cut_a_grid() -> None:
    """Every second column is observed: what is left are chains."""
    model = besag.ising((60, 60), 0.3)
    given = {f"{i},{j}": "0" for i in range(60) for j in range(1, 60, 2)}
    states = {name: model.variable(name).states[0] for name in given}
    assert not hopeless(model, states)
    assert model.marginals(evidence=states).bound == "exact"


def test_a_neighbourhood_and_its_edges() -> None:
    graph = besag.ising((5, 5), 0.3).graph
    first, others = neighbours(graph.n_variables, graph.scope_offsets, graph.scope_variables, compile=False)
    closed = np.zeros(25, np.bool_)
    near = near_to(12, first, others, 5, closed)
    assert near.tolist() == [7, 11, 12, 13, 17]
    inner, ends = induced(near, first, others)
    assert np.diff(inner).tolist() == [1, 1, 4, 1, 1]
    assert sorted(ends[inner[2] : inner[3]].tolist()) == [0, 1, 3, 4]
    closed[7] = True
    assert 2 not in near_to(12, first, others, 6, closed)


@pytest.mark.parametrize("part", ["mean_field", "trw"])
def test_an_interrupt_while_bounds_are_made_ends_it_all(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Ctrl-C during one part: the others are not begun, and the estimate takes a moment."""
    module = {"mean_field": mean_field_engine, "trw": trw_engine}[part]
    begun = []

    def interrupted(name: str, *given: Any, **more: Any) -> Result:
        begun.append(name)
        given[0].step = pressed
        return iterate(name, *given, **more)

    monkeypatch.setattr(module, "iterate", interrupted)
    with pytest.warns() as caught:
        result = random_grid(12).marginals(memory_limit=40_000, time_limit=1000.0)
    assert {w.category for w in caught} == {ApproximationWarning, ConvergenceWarning}
    assert (result.diagnostics.stopped, result.diagnostics.converged, begun) == ("interrupted", False, [part])
    assert result.diagnostics.seconds < 100
    assert ("trw" in result.diagnostics.engines.values()) == (part == "trw")
    np.testing.assert_allclose(result.array.sum(-1), 1)


def pressed() -> float:
    raise KeyboardInterrupt


def test_an_interrupt_that_a_kernel_turned_into_another_error() -> None:
    model, calls = random_grid(12), []

    class Kernel(Propagation):
        def step(self) -> float:
            calls.append(None)
            if len(calls) == 2:
                raise SystemError("CPUDispatcher(...) returned a result with an exception set") from KeyboardInterrupt()
            return super().step()

    process = Kernel(JoinGraph(clique_bound=64), model.problem, None, None, 0.0)
    result = iterate("join_graph", process, frozenset({"variables"}), Limits(50, 1e-6), 0.0)
    assert (result.diagnostics.stopped, len(calls)) == ("interrupted", 2)
    np.testing.assert_allclose(result.array.sum(-1), 1)
    assert not is_interrupt(SystemError("another"))
