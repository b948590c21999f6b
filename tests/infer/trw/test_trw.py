"""Tree-reweighted sum-product: a bound at all messages, exact on forests, better weights, hard numbers, warm starts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, TooLargeError
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.infer.result import Result
from besag.infer.trw.engine import TRW, Sweeps
from besag.model.model import Model
from tests.oracle import Enumeration
from tests.routes import Forced, force
from tests.strategies import evidence_for, examples, forests, generators, models

ROUNDING = 1e-9
WANTS = frozenset({"log_partition", "variables", "factors", "moments"})


def asked(model: Model, evidence: Any = None) -> Problem:
    return model.problem.with_evidence(read_evidence(model.variables, evidence or {}))


def ask(model: Model, evidence: Any = None, **options: Any) -> Result:
    """The answer of the engine itself, which does not warn where it has not converged."""
    return TRW(**options).infer(asked(model, evidence), WANTS, rng=np.random.default_rng(0))


def sweeps(problem: Problem, seed: int = 0, **options: Any) -> Sweeps:
    return Sweeps(TRW(**options), problem, None, np.random.default_rng(seed))


def shake(run: Sweeps, rng: np.random.Generator, scale: float) -> None:
    """Messages that no sweep would make."""
    run.messages[...] = rng.normal(size=run.messages.shape) * scale
    run.refresh(np.arange(run.graph.n_variables))


def spin_glass(n: int, coupling: float, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    edges = [(n * i + j, n * i + j + 1) for i in range(n) for j in range(n - 1)]
    edges += [(n * i + j, n * i + j + n) for i in range(n - 1) for j in range(n)]
    return besag.ising(edges, coupling * rng.normal(size=len(edges)), 0.3 * rng.normal(size=n * n))


# The bound -----------------------------------------------------------------------------------------------------------


@examples(100)
@given(data=st.data(), rng=generators(), scale=st.sampled_from([0.1, 3.0, 100.0]), n_forests=st.sampled_from([1, 16]))
def test_the_bound_holds_at_any_messages(
    data: DataObject, rng: np.random.Generator, scale: float, n_forests: int
) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    true = Enumeration(model, evidence).log_z
    run = sweeps(asked(model, evidence), int(rng.integers(99)), n_forests=n_forests)
    for _ in range(3):
        shake(run, rng, scale)
        assert run.bounds()[0] >= true - ROUNDING * max(1.0, scale)
    for _ in range(4):
        run.step()
        assert run.bounds()[0] >= true - ROUNDING * max(1.0, scale)


@examples(60)
@given(
    data=st.data(),
    options=st.sampled_from([{}, {"damping": 0.4}, {"dtype": "float32"}, {"optimise": True, "max_iterations": 40}]),
)
def test_every_step_shows_a_bound(data: DataObject, options: dict[str, Any]) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    engine = TRW(**{"tolerance": 1e-3, "max_iterations": 15, **options})
    steps = list(engine.steps(asked(model, evidence), rng=np.random.default_rng(0)))
    true = Enumeration(model, evidence).log_z
    assert [step.diagnostics.iterations for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.log_partition >= true - ROUNDING for step in steps)


@examples(60)
@given(data=st.data(), rng=generators())
def test_constant_and_beliefs_are_the_model_at_any_messages(data: DataObject, rng: np.random.Generator) -> None:
    """exp(-H) = C prod b_v prod (b_f / prod b_v)^rho at every labelling."""
    model = data.draw(models(max_labellings=200))
    run = sweeps(asked(model))
    shake(run, rng, 1.0)
    answer = run.answer(WANTS)
    log_z, upper, _ = run._terms()
    ratios = largest_ratios(model, answer)
    log_c = log_z.sum() + upper.sum() - sum(rho * ratios[f] for f, rho in weights(run).items())
    oracle = Enumeration(model)
    for labels, log_weight in zip(oracle.labels, oracle.log_weights, strict=True):
        if log_weight > -np.inf:
            assert_allclose(log_c + log_beliefs(model, answer, weights(run), labels), log_weight, atol=1e-8)


def weights(run: Sweeps) -> dict[int, float]:
    return dict(zip(run.plan.order.tolist(), run.rho.tolist(), strict=True))


def factor_of(model: Model, answer: Any, f: int) -> Any:
    return answer.factor(int(np.flatnonzero(model.graph.factor_order == f)[0]))


def largest_ratios(model: Model, answer: Any) -> dict[int, float]:
    """log max over v and y_v of sum b_f / b_v, from the beliefs."""
    found = {}
    for f in range(model.graph.n_factors):
        belief, names = factor_of(model, answer, f), model.variables.names_at(model.graph.scope(f))
        ratios = []
        for axis, name in enumerate(names):
            summed = belief.sum(axis=tuple(a for a in range(belief.ndim) if a != axis))
            ratios += [p / b for p, b in zip(summed, answer[name], strict=True) if b > 0]
        found[f] = float(np.log(max(ratios)))
    return found


def log_beliefs(model: Model, answer: Any, rho: dict[int, float], labels: np.ndarray) -> float:
    names = model.variables.names_at(range(len(labels)))
    log_b = np.log([answer[name][y] for name, y in zip(names, labels, strict=True)])
    total = log_b.sum()
    for f, weight in rho.items():
        scope = model.graph.scope(f)
        total += weight * (np.log(factor_of(model, answer, f)[tuple(labels[scope])]) - log_b[scope].sum())
    return float(total)


@pytest.mark.parametrize("coupling", [0.2, 1.0, 3.0])
def test_a_spin_glass_and_its_exact_answer(coupling: float) -> None:
    """An upper bound, below the bound of independent maxima: sum of |J| and log 2 + |h| of each spin."""
    model = spin_glass(6, coupling)
    bound = ask(model, tolerance=1e-4).log_partition
    assert model.log_partition(engine="exact") <= bound
    numbers = model.problem.log_potentials
    assert bound < np.abs(numbers).sum() + 36 * np.log(2)


def test_a_frustrated_triangle_by_hand() -> None:
    """By symmetry all messages are uniform: log Z <= 3 log 2 + 3 rho log cosh(J / rho), rho = 2/3 of 3 trees."""
    j, rho = -0.8, 2 / 3
    model = besag.ising([(0, 1), (1, 2), (0, 2)], np.full(3, j), np.zeros(3))
    r = model.marginals(engine="trw[n_forests=3]")
    assert r.diagnostics.forests == 3
    assert_allclose(r.log_partition, 3 * np.log(2) + 3 * rho * np.log(np.cosh(j / rho)), rtol=1e-12)
    assert r.log_partition > model.log_partition(engine="brute")
    assert_allclose(r.array, 0.5)


@examples(40)
@given(data=st.data())
def test_a_forest_is_exact(data: DataObject) -> None:
    model = data.draw(forests())
    evidence = data.draw(evidence_for(model))
    r, oracle = ask(model, evidence), Enumeration(model, evidence)
    assert r.diagnostics.forests == 1
    assert r.bound == "exact"
    assert r.log_partition_bounds == (r.log_partition, r.log_partition)
    assert_allclose(r.log_partition, oracle.log_z, rtol=1e-10, atol=1e-10)
    for variable in model.variables:
        assert_allclose(r[variable.name], oracle.marginal(variable.name), atol=1e-6)


def test_evidence_that_cuts_all_cycles_makes_a_forest() -> None:
    """Nothing is summed over an observed variable: ways through it are no cycles."""
    ring = spin_glass(3, 1.0)
    given = {"4": "-1", "1": "1"}
    r = ring.marginals(evidence=given, engine="trw")
    assert r.bound == "exact"
    assert_allclose(r.log_partition, ring.log_partition(given, engine="brute"), rtol=1e-12)
    free = ring.marginals(engine="trw")
    assert free.bound == "upper"
    assert free.log_partition > ring.log_partition(engine="brute") + 1e-3
    again = ring.marginals(engine="trw", init=r)  # what was a forest is none now
    assert again.bound == "upper"
    assert_allclose(again.log_partition, free.log_partition, rtol=1e-4)


# Beliefs -------------------------------------------------------------------------------------------------------------


@examples(40)
@given(data=st.data())
def test_converged_beliefs_agree_and_moments_are_their_sums(data: DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    r = ask(model, evidence, tolerance=1e-11, max_iterations=3000)
    assume(r.diagnostics.converged)
    moments = np.zeros(model.problem.log_potentials.shape)
    for number, f in enumerate(model.graph.factor_order.tolist()):
        belief, t = r.factor(number), model.problem.table_of_factor[f]
        for axis, name in enumerate(model.variables.names_at(model.graph.scope(f))):
            others = tuple(a for a in range(belief.ndim) if a != axis)
            assert_allclose(belief.sum(axis=others), r[name], atol=1e-9)
        moments[model.problem.table_offsets[t] : model.problem.table_offsets[t + 1]] += contracted(model, f, belief)
    assert_allclose(r.moments, moments, atol=1e-9)


def contracted(model: Model, f: int, belief: np.ndarray) -> np.ndarray:
    structured = model.graph.block_of(f).template.structured
    return (
        belief.ravel()
        if structured is None
        else structured.dense().reshape(structured.n_parameters, -1) @ belief.ravel()
    )


def test_beliefs_are_the_gradient_of_the_converged_bound() -> None:
    model = spin_glass(3, 0.7)
    engine = TRW(tolerance=1e-13, max_iterations=5000)

    def bound(numbers: np.ndarray) -> float:
        changed = replace(model.problem, log_potentials=numbers)
        return engine.infer(changed, frozenset({"log_partition"}), rng=np.random.default_rng(0)).log_partition

    numbers, found = np.array(model.problem.log_potentials), []
    for i in range(len(numbers)):
        step = 1e-5 * (np.arange(len(numbers)) == i)
        found.append((bound(numbers + step) - bound(numbers - step)) / 2e-5)
    r = engine.infer(model.problem, frozenset({"moments"}), rng=np.random.default_rng(0))
    assert_allclose(r.moments, found, atol=1e-6)


# Weights -------------------------------------------------------------------------------------------------------------


@examples(25)
@given(data=st.data())
def test_better_weights_give_no_worse_a_bound(data: DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    plain, better = (ask(model, evidence, optimise=optimise) for optimise in (False, True))
    if plain.diagnostics.converged:
        assert better.log_partition <= plain.log_partition + 1e-5
    assert better.log_partition >= Enumeration(model, evidence).log_z - ROUNDING


def test_better_weights_halve_the_error_where_couplings_differ() -> None:
    model = spin_glass(6, 0.3)
    true = model.log_partition(engine="exact")
    plain, better = (model.log_partition(engine=f"trw{o}") - true for o in ("", "[optimise=true]"))
    assert 0 < better < 0.5 * plain


def test_information_is_the_divergence_of_a_factor_from_its_variables() -> None:
    model = spin_glass(3, 0.7)
    run = sweeps(model.problem, tolerance=1e-12)
    for _ in range(300):
        run.step()
    answer = run.answer(WANTS)
    for f, found in zip(run.plan.order.tolist(), run.information(), strict=True):
        belief = factor_of(model, answer, f)
        apart = np.outer(belief.sum(axis=1), belief.sum(axis=0))
        assert_allclose(found, (belief * np.log(belief / apart)).sum(), atol=1e-9)


# Numbers and sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e8])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_wide_ranges_stay_numbers_and_bounds(scale: float, sign: float) -> None:
    rng = np.random.default_rng(0)
    triple = rng.normal(size=(2, 3, 2)) * scale
    potts = ([[0, 2], [2, 4], [0, 4]], besag.potts(2))
    model = besag.markov_network([2, 3, 2, 3, 2], [([0, 1, 2], triple), ([2, 3, 4], triple), potts])
    model = model.with_theta(np.concatenate([model.theta[:-1], sign * scale * np.ones(1)]))
    r, true = ask(model, max_iterations=50, tolerance=0), model.log_partition(engine="brute")
    assert true - 1e-12 * scale <= r.log_partition <= true + scale
    for values in (r.probabilities, r.factor_marginals, r.moments, r.diagnostics.residual):
        assert np.isfinite(values).all()


def test_potts_is_its_table() -> None:
    rng = np.random.default_rng(1)
    unary = rng.normal(size=(4, 5, 3))
    for weight in (0.7, -0.7, 900.0, -900.0):
        one = besag.grid((4, 5), 3, unary, besag.potts(3), weight)
        two = besag.grid((4, 5), 3, unary, weight * (np.eye(3) - 1))
        a, b = (ask(m, tolerance=0, max_iterations=30) for m in (one, two))
        assert_allclose(a.log_partition, b.log_partition, rtol=1e-9)
        assert_allclose(a.array, b.array, atol=1e-7)
        for number in (0, 25, 40):
            assert_allclose(a.factor(number), b.factor(number), atol=1e-7)


def test_many_threads_and_chunks_give_the_same_bound(forced: Forced) -> None:
    """Chunks exchange messages after each sweep: other iterates, the same fixed point, whatever the threads."""
    whole = spin_glass(8, 0.4).marginals(engine="trw[tolerance=1e-10]")
    forced({"infer.trw.plan.CHUNK_WORK": 500})
    parts = [spin_glass(8, 0.4).marginals(engine="trw[tolerance=1e-10]", n_threads=n) for n in (1, 4)]
    assert sweeps(spin_glass(8, 0.4).problem).plan.n_chunks == 15
    assert_array_equal(parts[0].probabilities, parts[1].probabilities)
    assert parts[0].log_partition == parts[1].log_partition
    assert_allclose(parts[0].log_partition, whole.log_partition, rtol=1e-9)
    assert_allclose(parts[0].probabilities, whole.probabilities, atol=1e-7)


def test_the_kernel_of_a_number_of_states_answers_as_the_general_one() -> None:
    rng, models = np.random.default_rng(2), list[Model]()
    for n in (2, 3):
        unary, pairwise = rng.normal(size=(9, 9, n)), rng.normal(size=(n, n))
        models += [besag.grid((9, 9), n, unary, pairwise), besag.grid((9, 9), n, unary, besag.potts(n), -2.0)]
    for model in models:
        general = ask(model, tolerance=0, max_iterations=7)
        with force({"infer.trw.engine.WORTHWHILE": 1, "infer.trw.engine.WORTH_PAIRS": 1}):
            own = ask(model, tolerance=0, max_iterations=7)
        assert_allclose(own.probabilities, general.probabilities, atol=1e-12)
        assert_allclose(own.log_partition, general.log_partition, rtol=1e-12)


def test_rows_of_a_batch_are_single_queries() -> None:
    model = spin_glass(3, 0.8)
    rng = np.random.default_rng(5)
    observed = np.where(rng.random((7, 9)) < 0.2, rng.integers(2, size=(7, 9)), -1)
    observed[0] = -1
    batch = TRW().infer(model.problem.with_evidence(Evidence(observed, batched=True)), WANTS)
    for row, codes in enumerate(observed):
        given = {str(v): str(2 * code - 1) for v, code in enumerate(codes) if code >= 0}
        assert batch.log_partition[row] >= model.log_partition(given, engine="brute") - ROUNDING
    free = TRW().infer(model.problem, WANTS)
    assert_array_equal(batch.probabilities[0], free.probabilities[0])
    assert batch.log_partition[0] == free.log_partition


def test_an_impossible_row_or_instance_is_minus_infinity_and_harms_no_other() -> None:
    never = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    model = besag.markov_network([2, 2, 2], [([0, 1], never), ([1, 2], never), ([0, 2], np.zeros((2, 2)))])
    rows = Evidence(np.array([[0, 1, -1], [0, -1, -1]]), batched=True)
    r = TRW().infer(model.problem.with_evidence(rows), WANTS)
    assert_allclose(r.log_partition, [-np.inf, 0.0], atol=1e-9)
    assert (r.probabilities[0] == 0).all()
    assert (r.factor_marginals[0] == 0).all()
    single = TRW().infer(model.problem.with_evidence(Evidence(np.array([[0, -1, -1]]))), WANTS)
    assert_allclose(r.moments, single.moments)
    union = besag.compile_graph(model, model).bind(
        model.theta, support=model.support, evidence=Evidence(np.array([[0, 1, -1, 0, -1, -1]]))
    )
    assert_allclose(TRW().infer(union, WANTS).log_partition, [-np.inf, 0.0], atol=1e-9)


# Going on ------------------------------------------------------------------------------------------------------------


def test_a_warm_start_goes_on_where_the_last_one_stopped() -> None:
    model = spin_glass(6, 0.5)
    half, whole = (ask(model, max_iterations=n, tolerance=0) for n in (12, 24))
    rest = TRW(max_iterations=12, tolerance=0).infer(model.problem, WANTS, warm=half)
    assert_allclose(rest.array, whole.array, atol=1e-12)
    done = model.marginals(engine="trw")
    assert model.marginals(engine="trw", init=done).diagnostics.iterations <= 2


def test_the_same_seed_gives_the_same_forests_and_another_seed_others() -> None:
    model = spin_glass(5, 1.0)
    one, two, three = (model.log_partition(engine="trw[n_forests=2]", seed=seed) for seed in (0, 0, 1))
    assert one == two != three


def test_float32_messages_are_close_and_their_bound_holds() -> None:
    model = spin_glass(6, 0.5)
    single, double = (model.marginals(engine=f"trw[dtype={d}]") for d in ("float32", "float64"))
    assert single.state["messages"].dtype == np.float32
    assert_allclose(single.array, double.array, atol=1e-4)
    assert single.log_partition >= model.log_partition(engine="exact")


def test_what_else_is_looked_at_changes_no_answer() -> None:
    model = spin_glass(6, 2.0)
    quiet, watched = (
        TRW(max_iterations=25, tolerance=0).infer(model.problem, want) for want in (WANTS, WANTS | {"trace"})
    )
    assert quiet.log_partition == watched.log_partition
    assert_array_equal(quiet.probabilities, watched.probabilities)
    assert len(watched.trace) == 25
    assert (watched.trace["bound"] >= model.log_partition(engine="exact")).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("damping=1", "damping must be a number from 0 to below 1, got 1"),
        ("damping=-0.5", "damping must be"),
        ("n_forests=0", "n_forests must be a whole number of at least 1, got 0"),
        ("optimise=2", "optimise must be true or false, got 2"),
        ("dtype=float16", "dtype must be float32 or float64, got 'float16'"),
        ("max_iterations=0", "max_iterations must be a whole number of at least 1"),
        ("tolerance=-1", "tolerance must be a number from 0 on"),
    ],
)
def test_options_that_make_no_sense(options: str, words: str) -> None:
    with pytest.raises(CapabilityError, match=words):
        besag.data.bundled("misconception").marginals(engine=f"trw[{options}]")


def test_memory_limit() -> None:
    grid = besag.grid((4, 4), 3, np.zeros((4, 4, 3)), besag.potts(3))
    with pytest.raises(TooLargeError, match="all messages would take 1152 bytes, more than memory_limit=1000"):
        grid.marginals(engine="trw", memory_limit=1000)
    with pytest.raises(TooLargeError, match="all factor marginals would take 2112 bytes, more than memory_limit=2000"):
        TRW(memory_limit=2000).infer(grid.problem, WANTS)


def test_a_result_of_another_engine_or_model_is_no_start() -> None:
    model = spin_glass(3, 1.0)
    with pytest.raises(CapabilityError, match="init must be a Result of engine 'trw', got one of 'junction_tree'"):
        model.marginals(engine="trw", init=model.marginals(engine="junction_tree"))
    with pytest.raises(CapabilityError, match="init is of another model or another number of rows"):
        model.marginals(engine="trw", init=spin_glass(4, 1.0).marginals(engine="trw"))
