"""Join graphs: exact where the bound allows, close where it does not; losses, evidence, limits of time, options."""

import itertools
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, TooLargeError
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES
from besag.infer.join_graph.engine import JoinGraph, Propagation
from besag.infer.join_graph.parts import FreePart
from besag.infer.result import Result
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.routes import Forced
from tests.strategies import evidence_for, examples, models

WANTS = frozenset({"log_partition", "variables", "factors", "moments"})
SHOWN = frozenset({"log_partition", "variables", "trace"})


def solve(problem: Problem, want: frozenset[Any] = WANTS, warm: Result | None = None, **options: Any) -> Result:
    return JoinGraph(**options).infer(problem, want, warm=warm)


def close(found: Any, true: Any) -> None:
    assert_allclose(found, true, rtol=1e-9, atol=1e-9)


def ising(n: int, seed: int, coupling: float, field: float) -> Model:
    """An n x n grid with random couplings and fields."""
    rng = np.random.default_rng(seed)
    names = [[f"{i},{j}" for j in range(n)] for i in range(n)]
    spin = np.array([-1.0, 1.0])
    factors = [([name], field * rng.normal() * spin) for row in names for name in row]
    for i, j in itertools.product(range(n), range(n)):
        for k, m in ((i + 1, j), (i, j + 1)):
            if k < n and m < n:
                pair = [names[i][j], names[k][m]]
                factors.append((pair, coupling * rng.normal() * np.outer(spin, spin)))
    return besag.markov_network({name: 2 for row in names for name in row}, factors)


GRID = ising(10, 0, 0.7, 0.3)


@examples(80)
@given(data=st.data())
def test_exact_where_one_forest_holds_everything(data: DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    oracle = Enumeration(model, evidence)
    result = solve(model.problem.with_evidence(read_evidence(model.variables, evidence)))
    assert result.bound == "exact"
    assert result.diagnostics["converged"]
    assert result.diagnostics["log_partition_error"] == 0
    close(result.log_partition, oracle.log_z)
    close(model.graph.moments(result.moments), oracle.moments())
    for variable in model.variables:
        close(result[variable.name], oracle.marginal(variable.name))
    for number, f in enumerate(model.graph.factor_order.tolist()):
        close(result.factor(number), oracle.factor(f))


@examples(30)
@given(data=st.data(), scale=st.sampled_from([1e-3, 30.0, 1e3, 1e4]))
def test_exact_from_nearly_uniform_to_nearly_certain(data: DataObject, scale: float) -> None:
    """Above some range the tables are logarithms: weights of exp(-10000) beside 1 are not lost."""
    drawn = data.draw(models(max_labellings=200))
    model = drawn.with_theta(drawn.theta * scale)
    result, oracle = solve(model.problem), Enumeration(model)
    assert_allclose(result.log_partition, oracle.log_z, rtol=1e-10, atol=1e-9)
    for variable in model.variables:
        close(result[variable.name], oracle.marginal(variable.name))


@pytest.mark.parametrize("compile", [False, True])
def test_what_is_far_below_the_rest_may_still_win(forced: Forced, compile: bool) -> None:
    """Each table is within the range of linear numbers; products of what lies on one side of a variable are not."""
    forced({"kernels.compile.worth_compiling": lambda work: compile})
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    for field in ([-40] * 20 + [40] * 25 + [0] * 60, [-150] * 6 + [150] * 9 + [0] * 40, [-199] * 4 + [199] * 5):
        names = [f"v{i}" for i in range(len(field))]
        unary = [([name], np.array([0.0, x])) for name, x in zip(names, field, strict=True)]
        pairs = [(list(pair), equal) for pair in itertools.pairwise(names)]
        result = solve(besag.markov_network(dict.fromkeys(names, 2), [*unary, *pairs]).problem)
        assert result.bound == "exact"
        close(result.log_partition, sum(field))
        close(result[names[0]], [math.exp(-sum(field)), 1.0])


def test_a_belief_that_messages_make_faint() -> None:
    """The largest entry of the belief of s is below the range of exp."""
    odds = [-184.25, -188.8, 185.0, -189.2, 187.8, -189.2, 181.7, 181.2, -181.2]
    tables = [np.repeat([[-x if x > 0 else 0.0], [x if x < 0 else 0.0]], 2, axis=1) for x in odds]
    factors = [(["s", f"leaf {i}"], table) for i, table in enumerate(tables)]
    model = besag.markov_network({"s": 2, **{f"leaf {i}": 2 for i in range(len(odds))}}, factors)
    result, true = solve(model.problem), model.marginals(engine="tree")
    close(result.log_partition, true.log_partition)
    for name in ("s", "leaf 0"):
        close(result[name], true[name])


@examples(60)
@given(data=st.data(), bound=st.sampled_from([2, 4, 8, 16]))
def test_small_bounds_give_distributions_that_respect_hard_zeros(data: DataObject, bound: int) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    oracle = Enumeration(model, evidence)
    result = solve(model.problem.with_evidence(read_evidence(model.variables, evidence)), clique_bound=bound)
    assert math.isfinite(result.log_partition)
    if result.bound == "exact":
        close(result.log_partition, oracle.log_z)
    for variable in model.variables:
        found = result[variable.name]
        assert (found >= 0).all()
        close(found.sum(), 1)
        assert (found[oracle.marginal(variable.name) > 1e-3] > 0).all()
    for number in range(model.n_factors):
        close(result.factor(number).sum(), 1)


def errors(result: Result, true: Result) -> tuple[float, float]:
    """Of log Z, and the largest of a marginal."""
    assert result.probabilities is not None
    return abs(result.log_partition - true.log_partition), float(
        np.abs(result.probabilities - true.probabilities).max()
    )


@pytest.mark.parametrize(
    ("model", "bound", "log_error", "error"),
    [(GRID, 2**7, 0.01, 0.002), (GRID, 2**9, 0.01, 0.002), (ising(12, 1, 0.5, 0.5), 2**9, 1e-4, 1e-4)],
)
def test_close_to_exact_on_grids(model: Model, bound: int, log_error: float, error: float) -> None:
    result = solve(model.problem, SHOWN, clique_bound=bound)
    found = errors(result, model.marginals(engine="junction_tree"))
    assert result.bound == "estimate"
    assert result.diagnostics["forests"] > 1
    assert result.diagnostics["clique_bound"] == bound
    assert found[0] < log_error
    assert found[1] < error


def test_larger_bounds_come_closer_and_the_largest_is_exact() -> None:
    true = GRID.marginals(engine="junction_tree")
    results = [solve(GRID.problem, SHOWN, clique_bound=2**bits) for bits in (3, 7, 11, 16)]
    found = [errors(result, true)[1] for result in results]
    assert found == sorted(found, reverse=True)
    assert [result.bound for result in results] == ["estimate"] * 3 + ["exact"]
    lost = [result.diagnostics["lost"] for result in results]
    assert lost == sorted(lost, reverse=True)


def test_passes_after_the_first_come_closer() -> None:
    true = GRID.marginals(engine="junction_tree")
    process = Propagation(JoinGraph(clique_bound=2**7), GRID.problem, None, None, 0.0)
    [part] = process.parts
    assert part is not None
    part._adopt(part._chained(7.0, lambda: None, lambda: False))
    assert true.probabilities is not None
    first = np.abs(part.probabilities - true.probabilities[0]).max()
    changes = [part.sweep() for _ in range(6)]
    last = np.abs(part.probabilities - true.probabilities[0]).max()
    assert last < first / 3
    assert changes[-1] < changes[0] / 100


def test_settled_messages_make_factors_and_variables_agree() -> None:
    result = solve(GRID.problem, clique_bound=2**7, tolerance=1e-9)
    assert result.diagnostics["converged"]
    for number, f in enumerate(GRID.graph.factor_order.tolist()):
        scope = GRID.graph.scope(f)
        if len(scope) == 2:
            for axis, name in enumerate(GRID.variables.names_at(scope)):
                assert_allclose(result.factor(number).sum(axis=1 - axis), result[name], atol=1e-6)


def test_rows_and_instances_are_single_questions() -> None:
    model, options = ising(4, 2, 0.8, 0.2), {"clique_bound": 2**3}
    rng = np.random.default_rng(0)
    observed = np.where(rng.random((3, 16)) < 0.2, rng.integers(2, size=(3, 16)), -1)
    batch = solve(model.problem.with_evidence(Evidence(observed, batched=True)), **options)
    singles = [solve(model.problem.with_evidence(Evidence(row[None])), **options) for row in observed]
    close(batch.log_partition, [single.log_partition for single in singles])
    close(batch.moments, sum(single.moments for single in singles))
    for name in batch:
        close(batch[name], [single[name] for single in singles])
    graph, weights = besag.compile_graph(model, model, model), np.array([1.0, -2.0, 0.5])
    evidence = Evidence(observed.reshape(1, -1))
    union = solve(graph.bind(model.theta, evidence=evidence, weights=weights), **options)
    close(union.log_partition, batch.log_partition)
    by_theta = [model.graph.moments(single.moments) for single in singles]
    close(graph.moments(union.moments), weights @ np.array(by_theta))
    for i, single in enumerate(singles):
        close(union[i].factor(20), single.factor(20))


def test_impossible_rows_are_minus_infinity_and_zero() -> None:
    """One that hard zeros show, and one that only sums over a cycle find: two colours on a triangle."""
    differ = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    names = ["a", "b", "c", "d"]
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    triangle = besag.markov_network(dict.fromkeys(names, 2), [(list(pair), differ) for pair in pairs])
    result = solve(triangle.problem)
    assert result.log_partition == -math.inf
    assert result.bound == "exact"
    assert result.probabilities is not None
    assert not result.probabilities.any()
    assert not result.moments.any()
    square = besag.markov_network(dict.fromkeys(names, 2), [(list(p), differ) for p in [("a", "b"), ("c", "d")]])
    rows = np.array([[0, 0, -1, -1], [0, -1, 1, -1]])
    result = solve(square.problem.with_evidence(Evidence(rows, batched=True)))
    close(result.log_partition, [-math.inf, 0.0])
    assert not result["c"][0].any()
    assert_array_equal(result["d"][1], [1.0, 0.0])


def test_states_that_are_ruled_out_make_cliques_smaller() -> None:
    """Ten variables of ten states, of which evidence leaves two each: a bound of 2^10 is exact."""
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(10)]
    factors = [(list(pair), rng.normal(size=(10, 10))) for pair in itertools.combinations(names, 2)]
    model = besag.markov_network(dict.fromkeys(names, 10), factors)
    evidence = {name: ["3", "7"] for name in names}
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    result = solve(problem, SHOWN, clique_bound=2**10)
    assert result.bound == "exact"
    labels = np.array(list(itertools.product([3, 7], repeat=10)))
    close(result.log_partition, np.log(np.exp(-model.problem.energy(labels)).sum()))


@pytest.fixture
def small_start(forced: Forced) -> None:
    """The first bound is one that a grid of 10 x 10 does not fit into."""
    forced({"infer.join_graph.engine.FIRST_BITS": 5.0})


@pytest.mark.usefixtures("small_start")
def test_each_step_has_a_larger_bound_until_the_last() -> None:
    engine = JoinGraph(clique_bound=2**10, tolerance=1e-5)
    steps = list(engine.steps(GRID.problem))
    bounds = [step.diagnostics["clique_bound"] for step in steps]
    assert bounds[:3] == [2**5, 2**9, 2**10]
    assert bounds[3:] == [2**10] * (len(bounds) - 3)
    assert steps[0].diagnostics["residual"] == math.inf
    assert steps[-1].diagnostics["converged"]
    trace = steps[-1].trace
    assert list(trace["iteration"]) == list(range(1, len(steps) + 1))
    close(trace["value"].iloc[-1], steps[-1].log_partition)
    assert trace["bound"].isna().all()


def test_work_goes_on_from_the_bound_where_it_ended() -> None:
    first = solve(GRID.problem, SHOWN, clique_bound=2**8)
    assert first.state == {"engine": "join_graph", "bits": 8.0}
    second = solve(GRID.problem, SHOWN, warm=first, clique_bound=2**11, max_iterations=1)
    assert second.diagnostics["clique_bound"] == 2**8
    third = solve(GRID.problem, SHOWN, warm=first, clique_bound=2**11)
    assert third.diagnostics["clique_bound"] == 2**11
    with pytest.raises(
        CapabilityError, match="init must be a Result of engine 'join_graph', got one of 'junction_tree'"
    ):
        solve(GRID.problem, warm=GRID.marginals(engine="junction_tree"))


class Clock:
    """A clock that jumps by so many seconds at every look from some moment on."""

    def __init__(self) -> None:
        self.now, self.jump = 0.0, 0.0

    def __call__(self) -> float:
        self.now += self.jump
        return self.now


@pytest.mark.usefixtures("small_start")
def test_a_bound_that_does_not_end_in_time_leaves_the_answer_before_it() -> None:
    clock = Clock()
    process = Propagation(JoinGraph(), GRID.problem, None, 100.0, 0.0, clock)
    process.step()
    before = process.answer(SHOWN)
    clock.jump = 5.0
    process.step()
    after = process.answer(WANTS)
    assert clock.now >= 100
    assert after.state == before.state == {"engine": "join_graph", "bits": 5.0}
    assert after.log_partition == before.log_partition
    assert_array_equal(after.probabilities, before.probabilities)
    assert process.step() == process.parts[0].change  # type: ignore[union-attr]  # out of time: nothing is done


@pytest.mark.usefixtures("small_start")
def test_a_bound_that_would_not_end_in_time_is_not_begun() -> None:
    clock = Clock()
    process = Propagation(JoinGraph(), GRID.problem, None, 100.0, 0.0, clock)
    process.step()
    process.parts[0].seconds = 60.0  # type: ignore[union-attr]
    assert process._next_bits() is None
    process.parts[0].seconds = 30.0  # type: ignore[union-attr]
    assert process._next_bits() == 6.0
    process.parts[0].seconds = 1.0  # type: ignore[union-attr]
    assert process._next_bits() == 9.0


def test_the_first_bound_answers_even_without_time() -> None:
    model = ising(16, 0, 0.6, 0.2)
    quick, slow = (JoinGraph(max_iterations=1).infer(model.problem, SHOWN, time_limit=t) for t in (1e-9, 1e9))
    assert quick.diagnostics["stopped"] == "max_iterations"
    assert quick.diagnostics["forests"] < slow.diagnostics["forests"]
    assert abs(quick.log_partition - slow.log_partition) < 1.0


def test_very_many_neighbours_do_not_drown_in_their_messages() -> None:
    """3,000 leaves around a hub, and entries whose product is below what linear numbers hold."""
    leaves = [f"leaf{i}" for i in range(3000)]
    table = np.array([[0.0, 1.0, -2.0], [-1.0, 0.0, 0.5]])
    star = besag.markov_network({"hub": 2, **dict.fromkeys(leaves, 3)}, [(["hub", leaf], table) for leaf in leaves])
    result = solve(star.problem, SHOWN)
    weights = 3000 * np.log(np.exp(table).sum(axis=1))
    close(result.log_partition, np.logaddexp(*weights))
    close(result["hub"], np.exp(weights - result.log_partition))
    alone = [(["hub", "leaf0"], np.array([[0.0, -1.0, -2.0], [-3.0, -2.0, -1.0]])) for _ in range(1)]
    against = [(["hub"], np.array([-150.0, 0.0])), (["leaf0"], np.array([0.0, -150.0, -180.0]))] * 4
    pair = besag.markov_network({"hub": 2, "leaf0": 3}, alone + against)
    close(solve(pair.problem, SHOWN).log_partition, pair.log_partition(engine="brute"))


def test_an_interruption_before_the_first_answer_gives_a_quick_one() -> None:
    process = Propagation(JoinGraph(), GRID.problem, None, None, 0.0)
    answer = process.answer(SHOWN)
    assert abs(answer.log_partition - GRID.log_partition(engine="exact")) < 2.0


def test_memory_bounds_cliques() -> None:
    result = solve(GRID.problem, SHOWN, memory_limit=8 * 64 * 2**7)
    assert result.diagnostics["clique_bound"] == 2**7
    with pytest.raises(TooLargeError, match=r"tables of the factors alone would take .* more than memory_limit=1000"):
        solve(GRID.problem, memory_limit=1000)


def test_forests_and_messages_are_counted() -> None:
    """Cliques of 2^15 would fit, but not the messages of all forests: the process takes what it may, and no more."""
    model, limit = ising(24, 0, 0.6, 0.2), 20_000_000
    solve(GRID.problem, SHOWN)  # what is compiled and kept is not counted
    tracemalloc.start()
    try:
        result = solve(model.problem, SHOWN, memory_limit=limit, max_iterations=4, n_threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * limit
    assert 2**7 <= result.diagnostics["clique_bound"] < limit / (8 * 64)


@pytest.mark.usefixtures("small_start")
def test_a_chain_without_room_leaves_the_answer_before_it() -> None:
    process = Propagation(JoinGraph(clique_bound=2**10, n_threads=1), GRID.problem, None, None, 0.0)
    process.step()
    [part] = process.parts
    assert part is not None
    before, part.room = process.answer(SHOWN), 1000.0
    del part._maker
    process.step()
    after = process.answer(SHOWN)
    assert after.state == before.state == {"engine": "join_graph", "bits": 5.0}
    assert_array_equal(after.probabilities, before.probabilities)
    assert process._next_bits() is None


def test_a_first_chain_without_room_is_tried_with_smaller_cliques() -> None:
    process = Propagation(JoinGraph(clique_bound=2**10), GRID.problem, None, None, 0.0)
    [part] = process.parts
    assert part is not None
    part.room = 500_000.0
    process.step()
    assert 2.0 <= process.bits < 10.0
    assert abs(process.answer(SHOWN).log_partition - GRID.log_partition(engine="exact")) < 1.0
    process = Propagation(JoinGraph(), GRID.problem, None, None, 0.0)
    part = process.parts[0]
    assert part is not None
    part.room = 1000.0
    with pytest.raises(TooLargeError, match=r"smallest forests do not fit into memory_limit=\d+; bp takes less"):
        process.step()


def test_what_no_memory_or_time_could_do_is_refused_before_it_is_begun() -> None:
    large = besag.ising((300, 300), 0.3)
    with pytest.raises(TooLargeError, match=r"variables and factors alone would take .* memory_limit=50000000; bp"):
        solve(large.problem, memory_limit=50_000_000)
    with pytest.raises(TooLargeError, match=r"takes about 11 s or more, and time_limit=0.5; .* ask bp") as refused:
        JoinGraph().infer(large.problem, SHOWN, time_limit=0.5)
    assert refused.value.seconds == pytest.approx(11, rel=0.1)


def test_a_first_answer_that_is_far_too_late_is_given_up() -> None:
    clock = Clock()
    process = Propagation(JoinGraph(), GRID.problem, None, 1.0, 0.0, clock)
    clock.jump = 10.0
    with pytest.raises(TooLargeError, match=r"join_graph has no answer before all forests are made.* time_limit=1.0"):
        process.step()
    with pytest.raises(TooLargeError, match="join_graph has no answer before all forests are made"):
        Propagation(JoinGraph(), GRID.problem, None, 1.0, 0.0, clock)


def test_an_interruption_where_no_answer_is_quick_is_one() -> None:
    process = Propagation(JoinGraph(), besag.ising((100, 100), 0.3).problem, None, None, 0.0)
    with pytest.raises(KeyboardInterrupt):
        process.answer(SHOWN)


def test_answers_do_not_depend_on_threads(forced: Forced) -> None:
    """Chunks of 64 entries: every forest is cut into branches and a crown."""
    forced({"infer.join_graph.tables.CHUNK_ENTRIES": 64})
    forced({"infer.join_graph.tables.CHUNK_ENTRIES": 64})
    one, two = (solve(GRID.problem, clique_bound=2**7, n_threads=n) for n in (1, 2))
    assert one.bound == "estimate"
    assert one.log_partition == two.log_partition
    assert_array_equal(one.probabilities, two.probabilities)
    assert_array_equal(one.moments, two.moments)


@pytest.mark.usefixtures("small_start")
def test_a_bound_that_is_begun_ahead_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[float]()
    look_ahead = FreePart.look_ahead
    monkeypatch.setattr(FreePart, "look_ahead", lambda part, bits: (begun.append(bits), look_ahead(part, bits)))
    one = solve(GRID.problem, clique_bound=2**8, n_threads=1)
    assert not begun
    two = solve(GRID.problem, clique_bound=2**8, n_threads=2)
    assert set(begun) == {8.0}
    assert_array_equal(one.log_partition, two.log_partition)
    assert_array_equal(one.probabilities, two.probabilities)
    assert_array_equal(one.moments, two.moments)


@pytest.mark.usefixtures("small_start")
def test_a_bound_begun_ahead_in_linear_numbers_is_not_taken_where_logarithms_are_needed() -> None:
    parts = [next(iter(Propagation(JoinGraph(), GRID.problem, None, None, 0.0).parts)) for _ in range(2)]
    for part, ahead in zip(parts, (False, True), strict=True):
        assert part is not None
        if ahead:
            part.look_ahead(7.0)
        part.log = True
        part.improve(7.0, lambda: None, lambda: False)
        assert part.chain is not None
        assert part.chain.algebra.log
    close(*(part.probabilities for part in parts if part is not None))


@pytest.mark.usefixtures("small_start")
def test_rows_on_two_threads_are_the_same_as_on_one() -> None:
    observed = np.full((3, 100), -1)
    observed[1:, 50] = [0, 1]
    one, two = (
        solve(GRID.problem.with_evidence(Evidence(observed, batched=True)), clique_bound=2**6, n_threads=n)
        for n in (1, 2)
    )
    assert_array_equal(one.log_partition, two.log_partition)
    assert_array_equal(one.probabilities, two.probabilities)


def test_options_are_checked() -> None:
    for bound in (1, 0, -4, 2.5, True):
        with pytest.raises(CapabilityError, match=f"clique_bound must be a whole number of at least 2, got {bound}"):
            JoinGraph(clique_bound=bound)  # type: ignore[arg-type]
    with pytest.raises(CapabilityError, match="clique_bound must be a whole number of at least 2, got 'large'"):
        ENGINES.read("join_graph[clique_bound=large]")
    with pytest.raises(CapabilityError, match="max_iterations must be a whole number of at least 1, got 0"):
        JoinGraph(max_iterations=0)
    with pytest.raises(CapabilityError, match="tolerance must be a number from 0 on, got -1"):
        JoinGraph(tolerance=-1)


def test_linkage_with_small_cliques_is_close_to_the_published_answer(data_dir: Path) -> None:
    """Pedigree_12 needs cliques of 2^16 entries; with 2^10 log10 Z is right to 0.02."""
    path = data_dir / "uai2014" / "MAR" / "Pedigree_12.uai.gz"
    model = besag.load(path)
    evidence = besag.io.read_uai_evidence(path.with_suffix("").with_suffix(".uai.evid"), model)
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    result = solve(problem, SHOWN, clique_bound=2**10)
    published = float(path.with_suffix("").with_suffix(".uai.PR").read_text().split()[-1])
    assert result.bound == "estimate"
    assert abs(result.log_partition / math.log(10) - published) < 0.02
