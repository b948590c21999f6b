"""auto: exact where that fits, else an estimate with bounds, and a word about it."""

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import besag
from besag.errors import ApproximationWarning, ConvergenceWarning, TooLargeError
from besag.graph.evidence import read_evidence
from besag.infer.auto import approximate
from besag.infer.auto.approximate import estimator_of
from besag.infer.auto.candidates import choose, sort_in_order
from besag.infer.auto.engine import Auto
from besag.infer.bounds import narrowing
from besag.infer.iterate import Limits, is_interrupt, iterate
from besag.infer.join_graph.engine import JoinGraph, Propagation
from besag.infer.junction import run as junction
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.outlook import induce_graph, is_hopeless, near_to
from besag.infer.junction.run import JunctionRun
from besag.infer.map.climbing import Climber
from besag.infer.mean_field import engine as mean_field_engine
from besag.infer.orders.search import find_neighbours_of
from besag.infer.result import Diagnostics, Result
from besag.infer.trw import engine as trw_engine
from besag.model.model import Model
from tests.routes import Forced


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


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Kernels, which would otherwise be compiled in the time of the first test that has a limit."""
    approximated(random_grid(12))
    random_grid(12).marginals(engine="bp[damping=adaptive]")


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
    best = model.map(memory_limit=40_000)  # without a warning: bounds prove it
    assert best.optimal
    assert best.energy == pytest.approx(model.map(engine="exact").energy, abs=1e-9)
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


def test_an_exact_answer_of_another_engine_brings_no_warning() -> None:
    """The junction tree does not fit, and join_graph is exact within less memory."""
    asia = besag.data.bundled("asia")
    with pytest.raises(TooLargeError):
        asia.marginals(engine="exact", memory_limit=1200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = asia.marginals(memory_limit=1200)
    assert (result.bound, result.diagnostics.engine) == ("exact", "join_graph")
    np.testing.assert_allclose(result["lung"], asia.marginals()["lung"])


def test_what_fits_nowhere_is_refused() -> None:
    with pytest.raises(TooLargeError, match=r"engine='bp\[dtype=float32\]' takes about half"):
        besag.data.bundled("asia").marginals(memory_limit=10)
    with pytest.raises(TooLargeError, match="use more memory"):
        besag.data.bundled("asia").marginals(engine="bp[dtype=float32]", memory_limit=10)
    with pytest.raises(TooLargeError, match="memory_limit=100"):
        random_grid(12).marginals(memory_limit=100)


def test_k_best_labellings_beyond_exact_inference_are_estimates() -> None:
    model = random_grid(12)
    with pytest.warns(besag.errors.ApproximationWarning, match="memory_limit=40000"):
        found = model.map(k=3, memory_limit=40_000, time_limit=2.0)
    energies = [energy for _, energy in found.solutions]
    assert energies == sorted(energies)
    assert len({tuple(y.items()) for y, _ in found.solutions}) == 3
    assert found.bound == "estimate"
    np.testing.assert_allclose([model.energy(y) for y, _ in found.solutions], energies)
    true = [energy for _, energy in model.map(k=3).solutions]
    assert all(mine >= best - 1e-9 for mine, best in zip(energies, true, strict=True))
    with pytest.warns(besag.errors.ApproximationWarning, match="judged by"):
        assert len(besag.ising((60, 60), 0.3, field=0.1).map(k=3, time_limit=1.0).solutions) == 3


@pytest.fixture
def no_hope(forced: Forced) -> None:
    """Small graphs are hopeless too."""
    forced(
        {
            "infer.junction.outlook.FEW_FACTORS": 0,
            "infer.junction.outlook.HOPELESS": 0.0,
            "infer.junction.few_states.HOPELESS_ENTRIES": 0.0,
        }
    )


@pytest.mark.usefixtures("no_hope")
@pytest.mark.parametrize("engine", ["auto", "exact"])
def test_the_best_labelling_of_a_hopeless_graph_by_bounds(engine: str) -> None:
    """No order of the whole graph is looked for: what bounds leave is enough, and the answer is proven."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(12, 12, 2)) + 0.8 * np.eye(2)[np.kron(rng.integers(2, size=(3, 3)), np.ones((4, 4), int))]
    model = besag.grid((12, 12), 2, unary=seen, pairwise=besag.potts(2), weights=0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for evidence in (None, {"0,0": "1", "5,5": ["0"], "7,7": np.array([0.2, 0.8])}):
            found = model.map(evidence=evidence, engine=engine)
            assert found.optimal
            true = model.map(evidence=evidence, k=2, engine="junction_tree")
            assert found.energy == pytest.approx(true.energy, abs=1e-9)


@pytest.mark.usefixtures("no_hope")
def test_where_bounds_leave_too_much_the_rest_is_approximate(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(narrowing, "MOST_ENTRIES", 10.0)
        assert besag.ising((8, 8), 0.4).map().optimal  # without a warning: the bounds of dual ascent prove it
        rng = np.random.default_rng(0)
        weights = 3 * rng.normal(size=(20, 19)), 3 * rng.normal(size=(19, 20))
        frustrated = besag.grid(
            (20, 20), 2, unary=rng.normal(size=(20, 20, 2)), pairwise=besag.potts(2), weights=weights
        )
        with pytest.warns(ApproximationWarning, match="Answered by local_search; the energy is within"):
            found = frustrated.map()
    assert not found.optimal
    assert found.energy_bound < found.energy < frustrated.map(engine="icm").energy + 1e-9
    wants = frozenset({"map", "variables", "log_partition"})
    smooth = besag.ising((8, 8), 0.1, 1.0)
    both = besag.infer.Auto().infer(smooth.problem, wants)  # without a warning: all of it is exact
    assert set(both.diagnostics.engines.values()) == {"junction_tree", "mean_field", "trw", "join_graph"}
    assert both.optimal
    assert both.bound == "exact"  # a join graph of so small a grid is one tree


def hopeless(model: Model, evidence: Any = None, want: str = "variables", **options: Any) -> bool:
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    run = JunctionRun(JunctionTree(**options), problem, dense=False)
    return is_hopeless(run, run.find_purpose(frozenset({want})), 1e13)  # type: ignore[arg-type]


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


def test_hard_zeros_and_what_is_barren_are_known_before_hope_is_given_up() -> None:
    """A grid of 30 x 30 whose sites have 16 states, all alike: one that is seen leaves the others one state."""
    side, n = 30, 16
    copies = np.where(np.eye(n, dtype=bool), 0.0, -np.inf)
    equal = besag.grid((side, side), n, unary=np.zeros((side, side, n)), pairwise=copies)
    assert hopeless(equal)
    assert not hopeless(equal, {"0,0": "3"})
    assert not hopeless(equal, {"0,0": ["3"]})
    assert not hopeless(equal, {"0,0": np.eye(n)[3]})
    assert equal.marginals(evidence={"0,0": "3"})["7,9"][3] == 1.0


def test_what_no_target_needs_is_known_before_hope_is_given_up() -> None:
    """Diseases and 300 symptoms of three each: without symptoms that are seen, all of them are barren."""
    rng = np.random.default_rng(0)
    edges = [(f"d{i}", f"s{j}") for j in range(300) for i in rng.choice(60, size=3, replace=False).tolist()]
    edges += [(f"s{j}", f"t{j}") for j in range(300)]
    model = besag.bayesian_network(edges)
    assert hopeless(model)
    assert not hopeless(model, want="log_partition")
    assert not hopeless(model, targets=("d0", "s5"))
    assert model.marginals(targets=["d0", "s5"], time_limit=1.0).bound == "exact"


def test_a_warning_says_what_exact_does(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_grid(12)
    with pytest.warns(ApproximationWarning, match=r'time_limit may buy accuracy. engine="exact" refuses'):
        model.marginals(memory_limit=40_000)
    with pytest.raises(TooLargeError, match="memory_limit=40000"):
        model.marginals(memory_limit=40_000, engine="exact")
    monkeypatch.setattr(junction, "SECONDS_AN_ENTRY", 1e-2)
    with pytest.warns(ApproximationWarning, match=r'engine="exact" takes about \d[\d.e+]* s instead') as caught:
        model.marginals()
    assert "refuses" not in str(caught[0].message)
    assert model.marginals(engine="exact").bound == "exact"
    monkeypatch.setattr(approximate, "FIRST_SHARE", 0.0)  # join_graph would find an exact answer
    with pytest.warns(ApproximationWarning, match='engine="exact" refuses instead'):
        model.marginals(time_limit=1.0)
    with pytest.raises(TooLargeError, match="more than time_limit=1") as refused:
        model.marginals(engine="exact", time_limit=1.0)
    assert refused.value.seconds is not None
    assert refused.value.seconds > 1.0


@pytest.mark.parametrize("time_limit", [None, 5.0])
def test_an_estimate_outside_of_its_bounds_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, time_limit: float | None
) -> None:
    """join_graph is made to be wrong: log Z and marginals are then those of bp, and what was disproved is told."""
    model = random_grid(12)
    answer = Propagation.answer

    def wrong(process: Propagation, want: frozenset[Any]) -> Result:
        result = answer(process, want)
        assert result.log_partitions is not None
        return replace(result, log_partitions=result.log_partitions - 100.0)

    monkeypatch.setattr(Propagation, "answer", wrong)
    with pytest.warns(ApproximationWarning, match="; bounds on log Z have disproved what join_graph said"):
        result = model.marginals(memory_limit=40_000, time_limit=time_limit)
    bp = model.marginals(engine="bp[damping=adaptive]")
    assert result.diagnostics.engines["estimate"] == "bp"
    assert list(result.diagnostics.disproved) == ["join_graph"]
    assert result.log_partition == pytest.approx(bp.log_partition, abs=1e-6)
    np.testing.assert_allclose(result.array, bp.array, atol=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr("besag.infer.auto.approximate.BP", lambda damping, **options: JoinGraph(**options))
        result = approximated(model, time_limit=time_limit)
    assert result.diagnostics.engines["estimate"] == "trw"
    assert result.log_partition == result.log_partition_bounds[1]
    np.testing.assert_allclose(result.array, model.marginals(engine="trw").array, atol=1e-3)


def test_the_estimate_that_more_speaks_for_comes_first() -> None:
    def made(engine: str, converged: bool, change: float = 0.0, value: float = 0.0) -> Result:
        told = Diagnostics(engine=engine, converged=converged, change=change)
        graph = besag.ising((2, 2), 0.1).graph
        return Result(graph, "estimate", told, log_partitions=np.array([value]), probabilities=np.full((1, 8), 0.5))

    settled, passed, first = (made("join_graph", False, change) for change in (0.01, 0.3, np.inf))
    bp, restless = made("bp", True), made("bp", False)
    for worse, better in itertools.pairwise([first, restless, passed, bp, settled]):
        assert sort_in_order([worse, better]) == [better, worse]
    assert sort_in_order([made("join_graph", True, np.inf), bp])[1] is bp
    wide = (np.array([-1.0]), np.array([1.0]))
    low, high = (made("bp", True, 0.0, value) for value in (-1.02, 1.02))
    assert choose([low, high, bp], wide) is bp
    assert choose([low, high], wide) is None
    slipped = made("bp", True, 0.0, 1.005)
    assert choose([slipped], wide) is slipped


def test_rows_have_the_first_answer_that_they_do_not_disprove() -> None:
    graph = besag.ising((2, 2), 0.1).graph

    def made(engine: str, *values: float) -> Result:
        rows = np.array(values)
        told = Diagnostics(engine=engine, converged=True, change=0.0)
        pairs = np.stack([expit(rows), 1.0 - expit(rows)], axis=1)
        return Result(graph, "estimate", told, True, log_partitions=rows, probabilities=np.tile(pairs, 4))

    interval = (np.zeros(3), np.ones(3))
    one, two = made("join_graph", 0.5, 7.0, 0.6), made("bp", 0.1, 0.2, -7.0)
    mixed = choose([one, two], interval)
    assert mixed is not None
    np.testing.assert_array_equal(mixed.log_partitions, [0.5, 0.2, 0.6])
    assert mixed.probabilities is not None
    np.testing.assert_array_equal(mixed.probabilities[:, 0], expit([0.5, 0.2, 0.6]))
    assert mixed.diagnostics.engine == "join_graph"
    summed = [replace(result, table_moments=np.zeros(4)) for result in (one, two, made("trw", 0.9, 0.9, 0.9))]
    assert choose(summed[:2], interval) is None
    assert choose(summed, interval) is summed[2]


def test_joints_and_marginal_maps_have_the_same_patience(forced: Forced) -> None:
    model = random_grid(8)
    names = ["0,0", "7,7"]
    joint, best = model.joint(names), model.marginal_map(names)
    forced({"infer.junction.run.SECONDS_AN_ENTRY": 1.0})
    np.testing.assert_allclose(model.joint(names), joint)  # join_graph finds an exact answer, which needs no warning
    forced({"infer.join_graph.engine.UNTIMED_BITS": 3.0, "infer.join_graph.engine.FIRST_BITS": 2.0})
    with pytest.warns(ApproximationWarning):
        np.testing.assert_allclose(model.joint(names), joint, atol=0.01)
    with pytest.warns(ApproximationWarning):
        assert model.marginal_map(names).assignment == best.assignment
    np.testing.assert_allclose(model.joint(names, engine="exact"), joint)


def test_bounds_that_take_too_long_to_begin_are_left_out() -> None:
    big = besag.ising((60, 60), 0.3)
    with pytest.warns(ApproximationWarning, match=r"Answered by bp; log Z is an estimate"):
        result = big.marginals(time_limit=1e-3)
    assert result.diagnostics.engines == {"estimate": "bp"}


def test_a_neighbourhood_and_its_edges() -> None:
    graph = besag.ising((5, 5), 0.3).graph
    first, others = find_neighbours_of(graph.n_variables, graph.scope_offsets, graph.scope_variables, compile=False)
    closed = np.zeros(25, np.bool_)
    near = near_to(12, first, others, 5, closed)
    assert near.tolist() == [7, 11, 12, 13, 17]
    inner, ends = induce_graph(near, first, others)
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


@pytest.mark.filterwarnings("ignore::besag.errors.ApproximationWarning")
def test_an_interrupt_is_told_though_an_earlier_estimate_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """bp has converged when Ctrl-C comes in the work of join_graph."""

    def cut(self: Any, *given: Any, **more: Any) -> Result:
        result = infer(self, *given, **more)
        return replace(result, diagnostics=result.diagnostics.extend(converged=False, stopped="interrupted"))

    infer = JoinGraph.infer
    with monkeypatch.context() as patch:
        patch.setattr(JoinGraph, "infer", cut)
        patch.setattr(approximate, "sort_in_order", list)
        with pytest.warns(ConvergenceWarning, match="bp was interrupted"):
            result = random_grid(12).marginals(memory_limit=40_000, time_limit=20.0)
    assert (result.diagnostics.stopped, result.diagnostics.converged) == ("interrupted", False)


@pytest.mark.filterwarnings("ignore::besag.errors.ApproximationWarning")
def test_an_interrupted_search_gives_the_best_labelling_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(self: Climber) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Climber, "step", cut)  # the first turn is one of messages
    monkeypatch.setattr(Auto, "_is_hopeless", lambda *_: True)
    monkeypatch.setattr(Auto, "_best_by_bounds", lambda *_: {})
    model = random_grid(30)
    with pytest.warns(ConvergenceWarning, match="local_search was interrupted"):
        result = model.map(time_limit=60.0)
    assert result.diagnostics.stopped == "interrupted"
    assert result.energy == model.energy(result.labels) < np.inf


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


def test_a_submodular_energy_of_two_states_is_cut() -> None:
    rng = np.random.default_rng(0)
    field = rng.normal(size=(40, 40))
    smooth, board = (besag.ising((40, 40), coupling=coupling, field=field).map() for coupling in (0.8, -0.8))
    for found in (smooth, board):
        assert found.bound == "exact"
        assert found.optimal
        assert found.diagnostics.engine == "graph_cut"
    assert smooth.diagnostics.reason == "the energy is submodular: a minimum cut is a best labelling"
    assert "after exchanging the states of 800 variables" in board.diagnostics.reason
    exact = besag.ising((16, 16), coupling=-0.8, field=field[:16, :16])
    assert exact.map().energy == pytest.approx(exact.map(engine="exact").energy, rel=1e-12)
    assert exact.map(engine="exact").diagnostics.engine == "junction_tree"
    assert exact.map(k=2).diagnostics.engine == "junction_tree"


def test_what_is_not_submodular_goes_on_as_before() -> None:
    rng = np.random.default_rng(0)
    couplings = rng.normal(size=(16, 15)), rng.normal(size=(15, 16))
    glass = besag.ising((16, 16), coupling=couplings, field=0.1)
    assert glass.map().diagnostics.engine == "junction_tree"
