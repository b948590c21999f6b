"""What engines count before they work is what they take, and a clock that runs out ends their steps."""

import re
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Semiring
from besag.errors import ConvergenceWarning, TooLargeError
from besag.graph.evidence import read_evidence
from besag.infer import memory
from besag.infer.bp.engine import BP, KINDS, MessagePassing
from besag.infer.bp.passing import LEAST_WORK, LOOK_EVERY
from besag.infer.iterate import Clock, Limits, OutOfTime, is_interrupt, iterate
from besag.infer.prepared import Prepared
from besag.infer.sampling.ais import AIS, Annealing
from besag.infer.sampling.blocks import TreeBlocks
from besag.infer.sampling.gibbs import Gibbs, judge
from besag.infer.sampling.scan import Scan
from besag.infer.sampling.single_site import prepare_sampling
from besag.infer.sampling.walk import GibbsWalk
from besag.infer.trw.forests import Covered, spread_weights
from besag.model.model import Model
from tests.routes import Forced

ENGINES = (
    "bp",
    "bp[schedule=residual]",
    "trw",
    "mean_field",
    "mean_field[family=tree]",
    "gibbs",
    "gibbs[scan=tree]",
    "ais[n_chains=8]",
)


def grid(side: int, n_states: int = 2) -> Model:
    unary = np.random.default_rng(0).standard_normal((side, side, n_states))
    return besag.grid((side, side), n_states, unary=unary, pairwise=besag.potts(n_states), weights=0.5)


def chain(length: int) -> Model:
    rng = np.random.default_rng(0)
    return besag.chain(rng.standard_normal((length, 4)), rng.standard_normal((4, 4)))


def rows_of(model: Model, n: int) -> pd.DataFrame:
    return model.sample(n, seed=1)[list(model.variables.names)[::3]]


class Ticks:
    """A clock that goes on by a second each time it is looked at."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        self.time += 1.0
        return self.time


@pytest.mark.parametrize("model", [grid(220), grid(70, 10), chain(40_000)], ids=["binary", "labels", "chain"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_counted_is_at_least_what_is_taken(engine: str, model: Model, forced: Forced) -> None:
    """Arrays of NumPy at their most, against the least limit that is not refused."""
    forced({"infer.memory.SMALL": 0})
    model.problem  # noqa: B018  # what a model has before the question is not its engine's
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.marginals(engine=engine, time_limit=0.01)  # kernels
        counted = least_limit(model, engine)
        fresh = model.with_theta(model.theta)
        fresh.problem  # noqa: B018
        tracemalloc.start()
        try:
            fresh.marginals(engine=engine, memory_limit=counted, time_limit=0.01)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert taken <= 1.1 * counted


def least_limit(model: Model, engine: str) -> int:
    limit = 1
    while True:
        try:
            model.marginals(engine=engine, memory_limit=limit, time_limit=0.01)
        except TooLargeError as error:
            needed = re.search(r"take (\d+) bytes, more than memory_limit", str(error))
            assert needed is not None
            limit = int(needed[1])
        else:
            return limit


@pytest.mark.parametrize("engine", ["trw", "mean_field", "bp", "gibbs", "ais"])
def test_a_million_pixels_are_refused_before_anything_is_planned(engine: str) -> None:
    model = besag.grid((1000, 1000), 2, unary=np.zeros((1000, 1000, 2)), pairwise=besag.potts(2))
    with pytest.raises(TooLargeError, match=r"would take \d{9,} bytes, more than memory_limit=100000000; "):
        model.marginals(engine=engine, memory_limit=1e8)  # type: ignore[arg-type]
    planned = str(list(model.graph.plans._made))
    assert not re.search("trw|links|mean_field|colours|neighbours", planned), planned


@pytest.mark.parametrize("verb", ["marginals", "map"])
@pytest.mark.parametrize("kind", ["tree", "junction_tree"])
def test_rows_in_slabs_have_the_same_answers(kind: str, verb: str) -> None:
    """With a limit that leaves room for a part of the rows at a time."""
    model = besag.data.random_model("polytree", 20, seed=1, n_states=(2, 4))
    rows = rows_of(model, 3000)
    whole = getattr(model, verb)(evidence=rows, engine=kind)
    answer = whole.probabilities if verb == "marginals" else whole.codes
    tracemalloc.start()
    limit = 8 * answer.size + rows.shape[0] * len(model.variables) * 8 + 2_000_000
    small = getattr(model, verb)(evidence=rows, engine=kind, memory_limit=limit)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if verb == "marginals":
        assert_array_equal(small.probabilities, whole.probabilities)
        assert_array_equal(small.log_partition, whole.log_partition)
    else:
        assert_array_equal(small.codes, whole.codes)
        assert_array_equal(small.energies, whole.energies)
    assert taken <= 1.1 * limit


@pytest.mark.parametrize("kind", ["tree", "junction_tree"])
def test_rows_whose_answers_do_not_fit_are_refused(kind: str, forced: Forced) -> None:
    forced({"infer.memory.SMALL": 0})
    model = besag.data.random_model("polytree", 20, seed=1, n_states=(2, 4))
    with pytest.raises(TooLargeError, match=r"the answers for 500 rows would take \d+ bytes, .*; ask for fewer rows"):
        model.marginals(evidence=rows_of(model, 500), engine=kind, memory_limit=200_000)


def test_a_frame_of_samples_counts_its_columns() -> None:
    with pytest.raises(TooLargeError, match="a DataFrame of 40000 columns would take 72000000 bytes, more"):
        chain(40_000).sample(2, memory_limit=5e7)  # type: ignore[arg-type]


def test_slabs_are_as_many_rows_as_fit() -> None:
    assert memory.rows_at_once(100, 1000, 10, most=30) == 30
    assert memory.rows_at_once(100, 250, 10, most=30) == 25
    assert memory.rows_at_once(100, -5, 10, most=30, least=8) == 8
    assert list(memory.slabs(10, 4)) == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize("engine", ["junction_tree", "exact", "elimination"])
@pytest.mark.parametrize("limit", [{"time_limit": 0.5}, {"memory_limit": 10**8}])
def test_no_order_is_looked_for_where_there_is_no_hope(engine: str, limit: dict[str, float], forced: Forced) -> None:
    forced({"infer.junction.run.LONG_SEARCH": 0})
    model = besag.ising((60, 60), 0.3)
    with pytest.raises(
        TooLargeError, match=rf"exact inference would be too large, judged by .* for {next(iter(limit))}="
    ):
        model.log_partition(engine=engine, **limit)
    assert not model.cost(memory_limit=10**8).fits


def test_a_clock_ends_a_step_and_what_there_is_counts() -> None:
    clock = Clock(2.5, 0.0, Ticks())
    clock.look()
    clock.look()
    with pytest.raises(OutOfTime):
        clock.look()
    assert Clock().left == np.inf


def test_rows_that_cannot_begin_in_time_are_refused(forced: Forced) -> None:
    forced({"infer.bp.engine.ROWS_A_LOOK": 2})
    model = grid(3)
    setting = Prepared(model.problem.with_evidence(read_evidence(model.variables, rows_of(model, 40))), KINDS, None)
    with pytest.raises(TooLargeError, match="bp: 40 rows of evidence take longer than time_limit leaves"):
        MessagePassing(BP(), setting, Semiring.SUM, None, None, Clock(20.0, now=Ticks()))
    assert len(MessagePassing(BP(), setting, Semiring.SUM, None, None, Clock(80.0, now=Ticks())).passing) == 40


def test_residual_messages_look_at_the_clock(forced: Forced) -> None:
    """In pieces the answer is the same; out of time, it is that of the messages sent so far."""
    schedule, model, want = "residual", grid(12), frozenset({"log_partition", "variables"})
    whole = BP(schedule=schedule, max_iterations=3, tolerance=0.0).infer(model.problem, want)
    forced({"infer.bp.passing.LOOK_EVERY": 10})
    pieces = BP(schedule=schedule, max_iterations=3, tolerance=0.0).infer(model.problem, want)
    assert_array_equal(pieces.probabilities, whole.probabilities)
    assert pieces.diagnostics["updates"] == whole.diagnostics["updates"]
    stopped = BP(schedule=schedule).infer(model.problem, want, time_limit=1e-9)
    assert (stopped.diagnostics["stopped"], stopped.diagnostics["iterations"]) == ("time_limit", 0)
    assert stopped.diagnostics["updates"] == 0
    assert_allclose(stopped.array.sum(axis=-1), 1.0)


def test_residual_messages_on_dense_graphs_look_at_the_clock_more_often() -> None:
    """A message makes those of all neighbours wait anew, so that the looks count them."""
    fields, looks = np.random.default_rng(0).standard_normal(60), []
    model = besag.ising(np.stack(np.triu_indices(60, 1), axis=1), 0.3, fields)
    setting = Prepared(model.problem, KINDS, None)
    passing = MessagePassing(BP(schedule="residual"), setting, Semiring.SUM, None, None, Clock()).passing[0]
    passing.look = lambda: looks.append(passing.updates)
    passing.residual(0.0, 0.0)
    n_links, degree = 60 * 59, 59
    work = LEAST_WORK * degree  # of a message
    assert len(looks) == 1 + -(-n_links // (LOOK_EVERY // work))


@pytest.mark.parametrize("schedule", ["synchronous", "sequential", "residual"])
def test_messages_of_large_factors_look_at_the_clock_by_table_entries(schedule: str, forced: Forced) -> None:
    """Few messages may be much work: each look is before the tables of a factor, and what is sent is the same."""
    rng, looks = np.random.default_rng(0), []
    scopes = [tuple(rng.permutation(12)[:8]) for _ in range(10)]
    model = besag.markov_network([2] * 12, [(tuple(map(str, s)), rng.standard_normal((2,) * 8)) for s in scopes])
    setting = Prepared(model.problem, KINDS, None)

    def messages(entries: int) -> np.ndarray:
        forced({"infer.bp.passing.LOOK_EVERY": entries, "infer.bp.passing.CHUNK": 256})
        passing = MessagePassing(BP(schedule=schedule), setting, Semiring.SUM, None, None, Clock()).passing[0]
        passing.look = lambda: looks.append(entries)
        if schedule == "sequential":
            passing.sequential(np.arange(12), 0.0)
        elif schedule == "residual":
            passing.residual(0.0, 0.0)
        else:
            passing.synchronous(0.0)
            passing.synchronous(0.0)  # the first time all messages are sent, whatever the time
        return passing.messages

    assert_array_equal(messages(8 * 256), messages(10**9))
    assert looks.count(8 * 256) >= 10


@pytest.mark.parametrize(
    ("engine", "module"), [("trw", "trw.engine"), ("mean_field[family=tree]", "mean_field.engine")]
)
def test_a_beginning_that_would_miss_the_limit_is_refused(engine: str, module: str, forced: Forced) -> None:
    model = grid(6)
    forced({f"infer.{module}.SECONDS_A_LINK": 1.0})
    message = rf"{re.escape(engine)}: starting takes about 1[0-9]+.* s .* time_limit leaves"
    with pytest.raises(TooLargeError, match=message) as refused:
        model.marginals(engine=engine, time_limit=5.0)
    assert refused.value.seconds > 100
    assert next(iter(model.steps(engine=engine))).diagnostics["iterations"] == 1


@pytest.mark.parametrize("scan", ["chromatic", "systematic", "random", "tree", "swendsen_wang"])
def test_a_sweep_that_the_clock_ends_leaves_distributions(scan: str) -> None:
    """Whenever it ends, in the middle of a sweep too, burn-in or not."""
    model, want = grid(10), frozenset({"variables"})
    for limit in (0.5, 3.5, 6.5, 9.5):
        engine = Gibbs(scan=scan, n_samples=5, burn_in=1, n_chains=2)
        setting = prepare_sampling(model.problem, None, 2, 6)
        walk = GibbsWalk(engine, setting, want, None, np.random.default_rng(0), Clock(limit, 0.0, Ticks()))
        result = iterate("gibbs", walk, want, Limits(6, None), 0.0)
        assert result.probabilities is not None
        assert ((result.probabilities >= 0) & (result.probabilities <= 1)).all()
        assert_allclose(setting.sums(result.probabilities), 1.0)
        assert result.diagnostics["stopped"] == "time_limit"


def walk_until(limit: float, now: Callable[[], float], **options: Any) -> GibbsWalk:
    """Chains of a grid of 100 variables, which have begun and have a clock."""
    engine = Gibbs(n_samples=50, n_chains=2, **options)
    setting = prepare_sampling(grid(10).problem, None, 2, 100)
    return GibbsWalk(engine, setting, frozenset({"variables"}), None, np.random.default_rng(0), Clock(limit, 0.0, now))


def test_burn_in_takes_half_of_the_time_at_most() -> None:
    """Sweeps that count are as many as were asked for at most, whatever burn-in has left over."""
    for limit, least, most in ((100.0, 5, 30), (1e4, 50, 50)):
        walk = walk_until(limit, Ticks(), burn_in=1000)
        result = iterate("gibbs", walk, frozenset({"variables"}), Limits(1050, None), 0.0)
        assert least <= result.diagnostics["n_samples"] <= most
        assert result.diagnostics["stopped"] == ("max_iterations" if most == 50 else "time_limit")


@pytest.mark.parametrize(("late", "sweeps"), [(0.9, 1), (1.1, 0)])
def test_the_first_sweep_counts_where_beginning_took_all_the_time(late: float, sweeps: int) -> None:
    walk = walk_until(1.0, lambda: 1.0 + late)
    result = judge(iterate("gibbs", walk, frozenset({"variables"}), Limits(150, None), 0.0), walk)
    assert result.diagnostics["n_samples"] == sweeps
    assert result.diagnostics["hint"].startswith("no sweep fitted") is (sweeps == 0)


def test_sweeps_in_short_stages_draw_the_same(forced: Forced) -> None:
    model = grid(12)
    answers = []
    for longest in (1 << 17, 10):
        forced({"infer.sampling.scan.LONGEST": longest})
        engines = [f"gibbs[scan={scan},n_samples=200]" for scan in ("systematic", "random")]
        with pytest.warns(ConvergenceWarning):
            answers.append([model.marginals(engine=engine) for engine in engines])
    for one, other in zip(*answers, strict=True):
        assert_array_equal(one.probabilities, other.probabilities)
    stages = Scan("random", prepare_sampling(model.problem, None, 1, 1), 1).stages
    assert max(stop - start for stage in stages for start, stop in stage) == 10


def test_covers_that_are_not_kept_are_made_again() -> None:
    model = grid(8)
    found = []
    for n_kept in (8, 1):
        sampler = TreeBlocks(prepare_sampling(model.problem, None, 2, 50), 2, 1, n_kept)
        sampler.start(np.zeros((1, 2, 64), np.int64))
        scores = [sampler.sweep(sweep, True) for sweep in range(12)]
        assert len(sampler.covers) == n_kept
        found.append((np.array(scores), sampler.sums.copy()))
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])


def test_annealing_begins_as_many_chains_as_there_is_time_for(forced: Forced) -> None:
    """Chains are drawn four at a time, a second each, for a quarter of the time."""
    forced({"infer.sampling.ais.DRAWN": 1})
    engine, model = AIS(n_chains=40, n_temperatures=5), grid(6)

    def begun(limit: float | None) -> int:
        return Annealing(engine, model.problem, np.random.default_rng(0), limit, 0.0, clock=Ticks()).n_chains

    assert [begun(limit) for limit in (None, 1.0, 12.0, 1000.0)] == [40, 4, 12, 40]


def test_forests_are_fewer_where_time_is_short_but_cover_all_factors() -> None:
    graph = grid(6).graph
    pairs = np.flatnonzero(np.diff(graph.scope_offsets) == 2)
    variables = graph.scope_variables[graph.scope_offsets[pairs][:, None] + np.arange(2)].reshape(-1)
    scopes = Covered(np.arange(0, len(variables) + 1, 2), variables, np.zeros(36, np.bool_))
    rho, n = spread_weights(scopes, 50, np.random.default_rng(0), compile=False, enough=lambda: True)
    assert 2 <= n < 10
    assert (rho > 0).all()
    assert spread_weights(scopes, 50, np.random.default_rng(0), compile=False)[1] == 50


def test_a_chain_of_system_errors_is_an_interrupt_where_it_begins_with_one() -> None:
    inner, outer = SystemError("inner"), SystemError("outer")
    inner.__cause__ = KeyboardInterrupt()
    outer.__context__ = inner
    assert is_interrupt(outer)
    assert not is_interrupt(SystemError("another"))
    assert not is_interrupt(ValueError())
