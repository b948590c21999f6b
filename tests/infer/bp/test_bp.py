"""Belief propagation: published answers, schedules, damping, limits, and what it says of itself."""

import json
import math
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, ConvergenceWarning, EvidenceError, TooLargeError
from besag.infer.result import Result
from besag.model.model import Model
from tests.routes import Forced

SCHEDULES = ("synchronous", "sequential", "residual")


def set_worth(forced: Forced, entries: int) -> None:
    """From how many table entries on pairs of variables have kernels of their own."""
    forced({"infer.bp.passing.WORTH_A_KERNEL": entries, "infer.bp.passing.WORTH_PAIRS": entries})


def grid(side: int, n_states: int, coupling: float, seed: int = 0) -> Model:
    """A grid of random unary and pairwise tables."""
    rng = np.random.default_rng(seed)
    shapes = ((side, side - 1, n_states, n_states), (side - 1, side, n_states, n_states))
    pairs = tuple(coupling * rng.normal(size=shape) for shape in shapes)
    return besag.grid((side, side), n_states, unary=rng.normal(size=(side, side, n_states)), pairwise=pairs)


def tables(model: Model) -> list[tuple[tuple[str, ...], Any]]:
    """(scope, log-potentials) of every factor."""
    factors = range(model.graph.n_factors)
    return [(tuple(model.variables.names_at(model.graph.scope(f))), model.problem.table(f)) for f in factors]


def largest_error(one: Result, other: Result) -> float:
    assert one.probabilities is not None
    assert other.probabilities is not None
    return float(np.abs(one.probabilities - other.probabilities).max())


@pytest.fixture(scope="module")
def libdai(data_dir: Path) -> Path:
    return data_dir / "libdai_tests" / "tests"


VARIANTS = {
    "BP_SEQFIX": "sequential",
    "BP_SEQRND": "sequential,order=random",
    "BP_SEQMAX": "residual",
    "BP_PARALL": "synchronous",
}


@pytest.mark.parametrize("method", [name + log for name in VARIANTS for log in ("", "_LOG")])
def test_libdais_expected_output(libdai: Path, method: str) -> None:
    expected = {row["method"]: row for row in json.loads((libdai / "testfast_expected.json").read_text())}[method]
    model = besag.load(libdai / "testfast.fg")
    result = model.marginals(engine=f"bp[schedule={VARIANTS[method.removesuffix('_LOG')]},tolerance=1e-9]")
    exact = model.marginals(engine="exact")
    assert result.log_partition - exact.log_partition == pytest.approx(float(expected["columns"]["logZ_err"]), rel=1e-3)
    assert largest_error(result, exact) == pytest.approx(float(expected["columns"]["max_var_err"]), rel=1e-3)
    for name, marginal in expected["marginals"].items():
        assert_allclose(result[name], marginal, atol=6e-5)  # four digits are printed


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("file", ["hoi1", "hoi2", "hoi3", "hoi4", "twofactors", "zeroes1", "jtreemapbug"])
def test_libdais_small_models(libdai: Path, file: str, schedule: str) -> None:
    """Acyclic ones are exact; of the others every schedule finds the same fixed point."""
    model = besag.load(libdai / f"{file}.fg")
    result = model.marginals(engine=f"bp[schedule={schedule},tolerance=1e-12]")
    assert result.diagnostics["converged"]
    if result.bound == "exact":
        assert result.log_partition == pytest.approx(model.log_partition(engine="brute"))
    else:
        assert largest_error(result, model.marginals(engine="bp[tolerance=1e-12]")) < 1e-8


@pytest.mark.parametrize("n_states", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_for_one_number_of_states_and_for_any_agree(n_states: int, dtype: str, forced: Forced) -> None:
    model = grid(20, n_states, 0.5)
    engine = f"bp[dtype={dtype},max_iterations=7,tolerance=0]"
    set_worth(forced, 10)
    fast, fast_map = model.marginals(engine=engine), model.map(engine=engine)
    set_worth(forced, 10**9)
    same = grid(20, n_states, 0.5)
    slow, slow_map = same.marginals(engine=engine), same.map(engine=engine)
    rounding = 1e-12 if dtype == "float64" else 1e-5
    assert largest_error(fast, slow) < rounding
    assert fast.log_partition == pytest.approx(slow.log_partition, rel=1e-12 if dtype == "float64" else 1e-6)
    assert_array_equal(fast_map.labels, slow_map.labels)


def test_a_fixed_point_does_not_depend_on_schedule_or_damping() -> None:
    model = grid(8, 3, 0.4)
    answers = [
        model.marginals(engine=f"bp[{options},tolerance=1e-11]")
        for options in ("schedule=synchronous", "schedule=sequential", "schedule=residual", "damping=0.5")
    ]
    for other in answers[1:]:
        assert largest_error(answers[0], other) < 1e-8
        assert other.log_partition == pytest.approx(answers[0].log_partition, abs=1e-7)


def test_residual_reaches_1e_6_in_fewer_updates_than_synchronous() -> None:
    model = grid(25, 2, 1.2, seed=3)
    updates = {}
    for schedule in ("synchronous", "residual"):
        result = model.marginals(engine=f"bp[schedule={schedule},tolerance=1e-6,max_iterations=5000]")
        assert result.diagnostics["converged"]
        updates[schedule] = result.diagnostics["updates"]
    assert updates["residual"] < 0.8 * updates["synchronous"]


def frustrated() -> Model:
    """Four variables that all want to differ from one another, with a field."""
    return besag.ising([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], -1.0, 0.3)


def test_oscillation_is_told_and_damping_cures_it() -> None:
    with pytest.warns(ConvergenceWarning, match=r"back and forth.*damping"):
        result = frustrated().marginals(engine="bp[max_iterations=200]")
    assert result.diagnostics["oscillates"]
    assert not result.diagnostics["converged"]
    for damping in ("0.5", "adaptive"):
        cured = frustrated().marginals(engine=f"bp[damping={damping}]")
        assert cured.diagnostics["converged"]
    assert cured.diagnostics["damping"] > 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warm_start_goes_on_where_the_first_run_ended(schedule: str) -> None:
    model = grid(10, 2, 1.0)
    begun = model.marginals(engine=f"bp[schedule={schedule},max_iterations=4,tolerance=0]")
    ended = model.marginals(engine=f"bp[schedule={schedule},tolerance=1e-9]", init=begun)
    afresh = model.marginals(engine=f"bp[schedule={schedule},tolerance=1e-9]")
    assert largest_error(ended, afresh) < 1e-7
    assert model.marginals(engine="bp[tolerance=1e-9]", init=afresh).diagnostics["iterations"] <= 2


def test_a_warm_start_of_another_engine_or_model_is_refused() -> None:
    model = grid(4, 2, 1.0)
    with pytest.raises(CapabilityError, match="init must be a Result of engine 'bp', got one of 'junction_tree'"):
        model.marginals(engine="bp", init=model.marginals(engine="junction_tree"))
    with pytest.raises(CapabilityError, match=r"another model or another number of rows: its messages have shape"):
        model.marginals(engine="bp", init=grid(5, 2, 1.0).marginals(engine="bp"))


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n_states", [2, 3])
def test_every_step_has_its_messages_and_the_trace_so_far(schedule: str, n_states: int, trace: bool) -> None:
    model = grid(3, n_states, 0.7)
    engine = f"bp[schedule={schedule},tolerance=0,max_iterations=%d]"
    for number, step in enumerate(list(model.steps(engine=engine % 4, trace=trace)), start=1):
        alone = model.marginals(engine=engine % number, trace=True)
        pd.testing.assert_frame_equal(step.messages, alone.messages)
        assert_array_equal(step.array, alone.array)
        assert step.trace["iteration"].tolist() == list(range(1, number + 1))
        assert_allclose(step.trace["value"], alone.trace["value"], rtol=1e-13)


def test_steps_of_rows_have_no_messages() -> None:
    rows = pd.DataFrame({"0,0": ["0", "1"]})
    for step in grid(3, 2, 0.7).steps(rows, engine="bp[tolerance=0,max_iterations=2]", trace=True):
        assert step.array.shape == (2, 3, 3, 2)
        with pytest.raises(CapabilityError, match="messages are kept for one row of evidence"):
            _ = step.messages


def test_an_engine_that_shows_no_messages_says_so() -> None:
    step = next(grid(3, 2, 0.7).steps(engine="trw", trace=True))
    assert len(step.trace) == 1
    with pytest.raises(
        CapabilityError, match=r"engine 'trw' cannot give messages; .*trace=True\) with .* tree, junction_tree or bp"
    ):
        _ = step.messages


def test_steps_trace_and_messages() -> None:
    model = grid(4, 2, 0.7)
    steps = list(model.steps(engine="bp[tolerance=1e-6]"))
    traced = model.marginals(engine="bp[tolerance=1e-6]", trace=True)
    assert [step.diagnostics["iterations"] for step in steps] == list(range(1, len(steps) + 1))
    assert_array_equal(steps[-1].array, traced.array)
    frame = traced.trace
    assert list(frame.columns) == ["iteration", "seconds", "value", "bound", "residual"]
    assert_allclose(frame["value"], [step.log_partition for step in steps])
    assert frame["residual"].is_monotonic_decreasing
    messages = traced.messages
    assert_allclose(messages.groupby(["source", "target"])["value"].sum(), 1.0)
    sent = messages[messages["target"] == "1,1"].groupby("state")["value"].prod().to_numpy()
    assert len(messages[messages["target"] == "1,1"]) == 5 * 2  # of four pairs and of its factor on itself alone
    assert_allclose(sent / sent.sum(), traced["1,1"], atol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_answers_do_not_depend_on_the_number_of_threads(n_threads: int, forced: Forced) -> None:
    forced({"infer.bp.passing.CHUNK": 500})
    model = grid(40, 2, 1.0)
    result = model.marginals(engine="bp[max_iterations=20,tolerance=0]", n_threads=n_threads)
    one = model.marginals(engine="bp[max_iterations=20,tolerance=0]", n_threads=1)
    assert_array_equal(result.array, one.array)
    assert result.log_partition == one.log_partition


def test_rows_are_what_single_questions_give() -> None:
    import pandas as pd

    model = grid(5, 3, 0.6)
    frame = pd.DataFrame({"0,0": ["0", "2", None], "1,2": [None, "1", "1"]}, index=["a", "b", "c"])
    batch = model.marginals(evidence=frame, engine="bp")
    for row, label in enumerate(frame.index):
        given = {name: state for name, state in frame.loc[label].items() if isinstance(state, str)}
        single = model.marginals(evidence=given, engine="bp")
        assert_allclose(batch["2,2"][row], single["2,2"], atol=1e-9)
        assert batch.log_partition[row] == pytest.approx(single.log_partition)


def test_evidence_that_hard_zeros_contradict_is_impossible() -> None:
    model = besag.markov_network(
        {"A": 2, "B": 2, "C": 2},
        [(("A", "B"), np.eye(2)), (("B", "C"), np.eye(2)), (("A", "C"), np.ones((2, 2)))],
        given="weight",
    )
    with pytest.raises(EvidenceError, match="cannot hold together"):
        model.marginals(evidence={"A": "0", "C": "1"}, engine="bp")
    with pytest.raises(EvidenceError, match="cannot hold together"):
        model.map(evidence={"A": "0", "C": "1"}, engine="bp")
    assert model.marginals(evidence={"A": "0"}, engine="bp")["C"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ranges_that_weights_cannot_hold_go_through_the_log_domain(scale: float, dtype: str) -> None:
    """A chain, so that the answer is known."""
    rng = np.random.default_rng(1)
    model = besag.chain(scale * rng.normal(size=(12, 3)), scale * rng.normal(size=(3, 3)))
    exact = model.marginals(engine="tree")
    result = model.marginals(engine=f"bp[dtype={dtype}]")
    assert result.diagnostics["domain"] == ("linear" if scale == 1 else "log")
    assert largest_error(result, exact) < (1e-9 if dtype == "float64" else 1e-2 if scale > 1e4 else 1e-4)
    assert result.log_partition == pytest.approx(exact.log_partition, rel=1e-6)


def test_a_variable_of_a_thousand_factors() -> None:
    """Products of so many messages leave the range of any type unless they are scaled on the way."""
    n = 1000
    rng = np.random.default_rng(0)
    scopes = np.stack([np.zeros(n, np.int64), np.arange(1, n + 1)], axis=1)
    model = besag.markov_network([2] * (n + 1), [(scopes, 5 * rng.normal(size=(n, 2, 2)))])
    exact = model.marginals(engine="tree")
    for dtype in ("float64", "float32"):
        result = model.marginals(engine=f"bp[dtype={dtype}]")
        assert largest_error(result, exact) < (1e-9 if dtype == "float64" else 1e-3)
    assert model.marginals(engine="bp").bound == "exact"


@pytest.mark.parametrize("weight", [0.8, -0.8, 30.0, -30.0])
def test_potts_factors_are_what_their_tables_are(weight: float) -> None:
    rng = np.random.default_rng(2)
    unary = rng.normal(size=(5, 6, 4))
    weights = (np.full((5, 5), weight), np.full((4, 6), weight))
    compact = besag.grid((5, 6), 4, unary=unary, pairwise=besag.potts(4), weights=weights)
    dense = besag.grid((5, 6), 4, unary=unary, pairwise=weight * (np.eye(4) - 1))
    options = "max_iterations=6,tolerance=0"
    for schedule in SCHEDULES:
        one = compact.marginals(engine=f"bp[schedule={schedule},{options}]")
        other = dense.marginals(engine=f"bp[schedule={schedule},{options}]")
        assert largest_error(one, other) < 1e-9
        assert one.log_partition == pytest.approx(other.log_partition)
    best, table = (model.map(engine=f"bp[{options}]") for model in (compact, dense))
    assert best.energy == pytest.approx(table.energy)
    moments = compact.moments(engine=f"bp[{options}]")
    assert moments.shape == compact.theta.shape
    expected = dense.moments(engine=f"bp[{options}]")
    assert moments[: unary.size] == pytest.approx(expected[: unary.size])


def test_min_sum_finds_the_least_energy_of_a_submodular_grid() -> None:
    rng = np.random.default_rng(4)
    model = besag.ising((7, 7), 0.6, rng.normal(size=(7, 7)))
    assert model.map(engine="bp[damping=0.5]").energy == pytest.approx(model.map(engine="exact").energy)


def test_ties_are_decoded_into_one_labelling() -> None:
    """Both constant labellings are best; beliefs are flat, and taking each variable's own best could mix them."""
    model = besag.ising((4, 4), 1.0, 0.0)
    assert model.map(engine="bp").energy == pytest.approx(-24.0)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = grid(6, 2, 3.0, seed=5)
    with pytest.warns(ConvergenceWarning, match="bp stopped after 3 iterations, with a residual"):
        stopped = model.marginals(engine="bp[max_iterations=3]")
    assert stopped.diagnostics["stopped"] == "max_iterations"
    with pytest.warns(ConvergenceWarning, match="bp stopped at its time_limit after 1 iterations"):
        assert model.marginals(engine="bp", time_limit=1e-9).diagnostics["iterations"] == 1
    with pytest.raises(TooLargeError, match=r"messages and tables would take .* bytes, more than memory_limit=100"):
        model.marginals(engine="bp[memory_limit=100]")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_damping_does_not_end_early_on_a_tree_of_strong_couplings(schedule: str, dtype: str) -> None:
    rng = np.random.default_rng(375)
    edges = np.array([(int(rng.integers(v)), v) for v in range(1, 8)])
    model = besag.ising(edges, 4 * rng.normal(size=7), float(4 * rng.normal()))
    found = model.marginals(engine=f"bp[schedule={schedule},damping=0.3,dtype={dtype}]")
    assert found.diagnostics.converged
    assert_allclose(found.array, model.marginals(engine="tree").array, atol=1e-5)


def test_ctrl_c_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.infer.bp.engine import MessagePassing

    step, taken = MessagePassing.step, list[float]()

    def interrupted(self: MessagePassing) -> float:
        if len(taken) == 3:
            raise KeyboardInterrupt
        taken.append(step(self))
        return taken[-1]

    monkeypatch.setattr(MessagePassing, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match="bp was interrupted after 3 iterations"):
        result = grid(6, 2, 1.0).marginals(engine="bp")
    assert result.diagnostics["stopped"] == "interrupted"
    assert result.diagnostics["iterations"] == 3
    assert_allclose(result.array.sum(axis=-1), 1.0)


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.query.progress.SECONDS", 0.0)
    grid(6, 2, 1.0).marginals(engine="bp", progress=True)
    shown = capsys.readouterr()
    assert "bp: iteration 1," in shown.err
    assert "residual" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("schedule=all", "schedule must be one of"),
        ("damping=1", "damping must be from 0 to below 1, or 'adaptive', got 1"),
        ("damping=often", "damping must be from 0"),
        ("order=best", "order must be one of"),
        ("dtype=float16", "dtype must be one of"),
        ("max_iterations=0", "max_iterations must be a whole number of at least 1, got 0"),
        ("tolerance=-1", "tolerance must be a number from 0 on, got -1"),
    ],
)
def test_bad_options(option: str, message: str) -> None:
    with pytest.raises(CapabilityError, match=message):
        grid(2, 2, 1.0).marginals(engine=f"bp[{option}]")


def test_tolerance_zero_never_stops_early() -> None:
    chain: Any = besag.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    assert chain.marginals(engine="bp[tolerance=0,max_iterations=17]").diagnostics["iterations"] == 17


def test_a_union_with_an_impossible_part() -> None:
    possible = besag.chain(np.zeros((3, 2)), np.eye(2))
    shut = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, 0.0], [0.0, 0.0]])], given="weight")
    graph = besag.compile_graph(possible, shut)
    theta = np.concatenate([possible.theta, shut.theta])
    support = np.concatenate([np.ones(len(possible.theta), np.bool_), np.zeros(len(shut.theta), np.bool_)])
    engine = besag.infer.BP()
    result = engine.infer(graph.bind(theta, support=support), frozenset({"log_partition", "variables", "factors"}))
    assert result.log_partition[0] == pytest.approx(possible.log_partition(engine="brute"))
    assert result.log_partition[1] == -math.inf
    assert_allclose(result[0]["0"], possible.marginals()["0"])
    assert result[1]["A"].tolist() == [0.0, 0.0]


INF = np.inf


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("worth", [0, 2**60])
@pytest.mark.parametrize(
    ("edges", "tables", "unary", "dtype"),
    [
        (
            [(0, 1), (1, 2)],
            [[[-INF, -480], [-480, 0]], [[0, -INF], [-480, 0]]],
            [[0, -480], [0, 0], [0, -480]],
            "float64",
        ),
        (
            [(0, 1), (0, 2), (0, 3)],
            [[[-480, -480], [0, 0]], [[-480, 0], [-INF, -480]], [[0, 0], [-480, -480]]],
            [[-480, 0], [-480, 0], [0, 0], [0, 0]],
            "float64",
        ),
        ([(0, 1), (1, 2)], [[[-55, -55], [0, -55]], [[-55, -INF], [0, 0]]], [[0, 0], [0, -55], [-55, 0]], "float32"),
    ],
)
def test_a_state_too_small_for_its_type_that_hard_zeros_leave_alone(
    forced: Forced, schedule: str, worth: int, edges: Any, tables: Any, unary: Any, dtype: str
) -> None:
    """The product of messages about it is below what weights hold, and hard zeros then rule out the others."""
    set_worth(forced, worth)
    factors = [((str(u), str(v)), table) for (u, v), table in zip(edges, tables, strict=True)]
    factors += [((str(v),), table) for v, table in enumerate(unary)]
    model = besag.markov_network([2] * len(unary), factors)
    found, true = model.marginals(engine=f"bp[schedule={schedule},dtype={dtype}]"), model.marginals(engine="brute")
    assert found.log_partition == pytest.approx(true.log_partition, rel=1e-6)
    for v in range(len(unary)):
        np.testing.assert_allclose(found[str(v)], true[str(v)], atol=1e-6)


def satisfiable(n: int, n_clauses: int, seed: int) -> besag.Model:
    """Random clauses of three literals, all of which one hidden labelling satisfies."""
    rng = np.random.default_rng(seed)
    truth, factors = rng.integers(2, size=n), []
    while len(factors) < n_clauses:
        scope, forbidden = rng.choice(n, 3, replace=False), rng.integers(2, size=3)
        if (truth[scope] != forbidden).any():
            table = np.zeros((2, 2, 2))
            table[tuple(forbidden)] = -np.inf
            factors.append((tuple(scope.tolist()), table))
    return besag.markov_network([2] * n, factors)


def test_messages_that_grow_without_end_are_told_and_adaptive_damping_begins_anew() -> None:
    model = satisfiable(30, 200, seed=6)
    with pytest.warns(ConvergenceWarning, match="log messages grow without end"):
        plain = model.marginals(engine="bp[max_iterations=300]")
    assert plain.diagnostics["diverges"]
    damped = model.marginals(engine="bp[max_iterations=300, damping=adaptive]")
    assert damped.diagnostics["converged"]
    assert "diverges" not in damped.diagnostics
    assert damped.diagnostics["damping"] > 0
    assert damped.log_partition == pytest.approx(model.log_partition(), abs=1e-9)


def test_messages_of_the_best_labelling_are_those_of_min_sum() -> None:
    model = grid(3, 2, 1.0)
    sums, best = model.marginals(engine="bp", trace=True), model.map(engine="bp", trace=True)
    assert not np.allclose(sums.messages["value"], best.messages["value"])
    assert len(best.trace) == best.diagnostics["iterations"]
    assert best.energy == model.map(engine="bp").energy
    chain = besag.chain(np.random.default_rng(0).normal(size=(5, 3)), np.random.default_rng(1).normal(size=(3, 3)))
    of_tree, of_bp = (chain.map(engine=text, trace=True).messages for text in ("tree", "bp"))
    keys = ["source", "target", "state"]
    both = of_tree.merge(of_bp, on=keys, suffixes=("_tree", "_bp"))
    assert len(both) > 0
    shifted = both.groupby(["source", "target"])[["value_tree", "value_bp"]].transform(lambda x: x - x.iloc[0])
    assert_allclose(shifted["value_tree"], shifted["value_bp"], atol=1e-9)


def test_many_small_iterations_are_worth_compiling() -> None:
    """In a process without numba: plain Python to begin with, machine code before it has lost much time."""
    code = """
        import sys, warnings, besag
        from besag.infer import BP
        warnings.simplefilter("ignore")
        model = besag.ising((6, 6), -1.5, 0.0)
        few = model.marginals(engine=BP(max_iterations=3, tolerance=0)).array
        assert "numba" not in sys.modules
        many = model.marginals(engine=BP(max_iterations=400, tolerance=0)).array
        assert "numba" in sys.modules
        again = model.marginals(engine=BP(max_iterations=400, tolerance=0)).array
        assert abs(many - again).max() < 1e-12
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
