"""The engine `gibbs`: conditionals exactly, marginals within their standard errors, hard zeros, what it says of itself.

Seeds are fixed. Where a test compares means with their standard errors, its docstring gives the chance that a right
sampler fails it, were the seed drawn anew.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.errors import CapabilityError, ConvergenceWarning, EvidenceError, ModelError, TooLargeError
from besag.graph.evidence import read_evidence
from besag.infer import Gibbs
from besag.infer.engine import ENGINES
from besag.infer.result import Result
from besag.infer.sampling.single_site import Binary, PairwiseStates, SingleSite, prepare_sampling, single_site
from besag.infer.zeros import starts
from besag.model.model import Model
from tests.conformance.engines import names_of
from tests.conformance.test_sampling import FALSE_ALARM, counts_of, g_test
from tests.oracle import Enumeration
from tests.routes import Forced
from tests.strategies import examples, forests, models

SCANS = ("chromatic", "systematic", "random", "single", "tree")


def mixed() -> Model:
    """Three variables in a factor, pairs, and cardinalities 2, 3 and 4."""
    rng = np.random.default_rng(1)
    scopes = [("A", "B", "C"), ("C", "D"), ("B",), ("A", "D")]
    cards = {"A": 2, "B": 3, "C": 4, "D": 2}
    return besag.markov_network(cards, [(s, rng.normal(size=[cards[v] for v in s])) for s in scopes])


def states_grid(pairwise: Any = None) -> Model:
    rng = np.random.default_rng(2)
    pairwise = rng.normal(size=(3, 3)) if pairwise is None else pairwise
    return besag.grid((3, 3), 3, unary=rng.normal(size=(3, 3, 3)), pairwise=pairwise)


def ising() -> Model:
    return besag.ising((3, 4), 0.4, 0.1)


def sampled(model: Model, text: str, *wants: Any, seed: int = 0, **options: Any) -> Result:
    return ENGINES.read(text, **options).infer(model.problem, frozenset(wants), rng=np.random.default_rng(seed))


def deviations(result: Result, model: Model) -> np.ndarray:
    """(S,): errors of all marginals in standard errors."""
    oracle = Enumeration(model)
    true = np.concatenate([oracle.marginal(name) for name in names_of(model)])
    assert result.probabilities is not None
    assert result.state is not None
    return np.asarray((result.probabilities[0] - true) / result.state["standard_errors"][0])


@pytest.mark.parametrize("scan", SCANS)
@examples(25)
@given(data=st.data())
def test_a_variable_of_which_all_others_are_known_has_its_conditional(scan: str, data: DataObject) -> None:
    """Nothing is random then: the Rao-Blackwellised marginal is exact, whatever the factors are."""
    model = data.draw(models())
    names, oracle = names_of(model), Enumeration(model)
    rows = oracle.labels[oracle.p > 0]
    row = rows[data.draw(st.integers(0, len(rows) - 1))]
    free = data.draw(st.sampled_from(names))
    evidence = {n: model.variable(n).states[code] for n, code in zip(names, row, strict=True) if n != free}
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    result = Gibbs(scan=scan, n_samples=2, burn_in=0).infer(problem, frozenset({"variables"}))
    np.testing.assert_allclose(result[free], Enumeration(model, evidence).marginal(free), atol=1e-11)


@examples(25)
@given(data=st.data())
def test_trees_are_exact_on_forests(data: DataObject) -> None:
    model = data.draw(forests())
    result = sampled(model, "gibbs[scan=tree,n_samples=3,burn_in=0]", "variables")
    oracle = Enumeration(model)
    for name in names_of(model):
        np.testing.assert_allclose(result[name], oracle.marginal(name), atol=1e-10)
    assert result.diagnostics["standard_error"] < 1e-7


@pytest.mark.parametrize("scan", [*SCANS, "swendsen_wang"])
@pytest.mark.parametrize("make", [mixed, states_grid, ising])
def test_marginals_are_within_their_standard_errors(make: Any, scan: str) -> None:
    """Five standard errors for each of at most 27 states, by Student's law of 15 degrees or more: once in 200 runs."""
    if scan == "swendsen_wang" and make is not ising:
        pytest.skip("couplings of any sign")
    model = make()
    n = 600 * (len(model.variables) if scan == "single" else 1)
    result = sampled(model, f"gibbs[scan={scan},n_samples={n}]", "variables")
    assert np.abs(deviations(result, model)).max() < 5


@pytest.mark.parametrize("make", [mixed, ising])
def test_standard_errors_are_neither_too_small_nor_too_large(make: Any) -> None:
    """The mean square of errors in standard errors, over 40 seeds; the larger of two estimates, so rather below 1."""
    model = make()
    found = [deviations(sampled(model, "gibbs[n_samples=160]", "variables", seed=s), model) for s in range(40)]
    assert 0.5 < np.sqrt(np.mean(np.square(found))) < 1.15


def test_the_error_is_of_order_one_over_the_root_of_the_number_of_samples() -> None:
    """001: four times the samples, half the error, in the mean over 30 seeds and 12 variables."""
    model, errors = ising(), []
    true = model.marginals(engine="exact").probabilities
    for n in (60, 240, 960):
        runs = [sampled(model, f"gibbs[n_samples={n}]", "variables", seed=s).probabilities for s in range(30)]
        errors.append(np.sqrt(np.mean([(p - true) ** 2 for p in runs])))
    assert 1.5 < errors[0] / errors[1] < 2.6
    assert 1.5 < errors[1] / errors[2] < 2.6


@pytest.mark.parametrize("text", [*(f"gibbs[scan={scan}]" for scan in SCANS), "gibbs[scan=swendsen_wang]"])
def test_draws_have_the_right_distribution(text: str) -> None:
    """One draw in ten sweeps, of trees in two, of a model that mixes in a few."""
    model = besag.ising((2, 3), 0.2, 0.3)
    n = 1500 if "tree" in text else 7500 * (6 if "single" in text else 1)  # of which one draws one of six variables
    samples = sampled(model, text, "samples", n_draws=3000, n_samples=n).samples
    oracle = Enumeration(model)
    assert samples.shape == (3000, 6)
    assert g_test(counts_of(samples, oracle.labels), oracle.p) > FALSE_ALARM


def test_draws_of_hard_constraints_have_the_right_distribution() -> None:
    """Colourings of a path in which neighbours differ: one variable at a time reaches all of them."""
    differ = np.where(np.eye(3, dtype=np.bool_), -np.inf, 0.0)
    model = besag.chain(np.arange(12).reshape(4, 3) / 5, differ)
    samples = sampled(model, "gibbs", "samples", n_draws=3000, n_samples=15000).samples
    oracle = Enumeration(model)
    assert g_test(counts_of(samples, oracle.labels), oracle.p) > FALSE_ALARM


def test_factor_marginals_and_moments() -> None:
    """Counts of 4,000 sweeps; 0.05 is about six standard errors."""
    for model in (mixed(), states_grid(), states_grid(besag.potts(3)), ising()):
        result = sampled(model, "gibbs", "variables", "factors", "moments")
        oracle = Enumeration(model)
        for number, f in enumerate(model.graph.factor_order.tolist()):
            np.testing.assert_allclose(result.factor(number), oracle.factor(f), atol=0.05)
        found, true = model.graph.moments(result.moments), oracle.moments()
        np.testing.assert_allclose(found, true, atol=0.05 * max(1, model.n_factors / 4))
        assert result.moments.shape == model.problem.log_potentials.shape


def test_the_kernel_suits_the_factors() -> None:
    for model, kind in ((mixed(), SingleSite), (states_grid(), PairwiseStates), (ising(), Binary)):
        assert type(single_site(prepare_sampling(model.problem, None, 4, 10), 4, "chromatic", 1)) is kind


@pytest.mark.parametrize("scan", ["chromatic", "systematic"])
@pytest.mark.parametrize("n_chains", [1, 2, 3, 4])
def test_all_kernels_sample_the_same_model(scan: str, n_chains: int) -> None:
    """The binary kernel, that for K states and the general one: five standard errors each, at most once in 50 runs."""
    model = besag.ising((3, 3), 0.3, 0.2)
    true = model.marginals(engine="exact").probabilities
    assert true is not None
    setting = prepare_sampling(model.problem, None, n_chains, 1000)
    for kind in (Binary, PairwiseStates, SingleSite):
        sampler = kind(setting, n_chains, scan, 1, "float64")
        sampler.start(np.random.default_rng(0).integers(0, 2, (1, n_chains, 9)))
        n = 8000 // n_chains
        for sweep in range(n):
            sampler.sweep(1000 * sweep + 7, True)
        mean = sampler.of_states(sampler.chains(sampler.sums).mean(axis=1) / n)
        assert np.abs(mean - true).max() < 0.03


@pytest.mark.parametrize("make", [mixed, ising, states_grid])
def test_plain_python_and_compiled_kernels_agree(make: Any) -> None:
    model, found = make(), []
    for compile in (False, True):
        setting = prepare_sampling(model.problem, None, 2, 5)
        setting.compile = compile
        sampler = single_site(setting, 2, "chromatic", 1)
        sampler.start(np.zeros((1, 2, len(model.variables)), np.int64))
        scores = [sampler.sweep(sweep, True) for sweep in range(5)]
        found.append((sampler.codes(), sampler.chains(sampler.sums), np.array(scores)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-12)


def test_threads_and_colours_of_a_large_grid() -> None:
    models_ = (besag.ising((300, 300), 0.4, 0.0), besag.grid((200, 200), 3, pairwise=besag.potts(3)))
    for model in models_:
        one, three = (
            sampled(model, "gibbs[n_samples=3,burn_in=0,n_chains=2]", "variables", n_threads=n) for n in (1, 3)
        )
        np.testing.assert_array_equal(one.probabilities, three.probabilities)


def test_rows_of_evidence_and_parts_of_a_union() -> None:
    """Six standard errors for each of 100 marginals: at most once in 1,000 runs."""
    model = mixed()
    frame = __import__("pandas").DataFrame({"A": ["0", "1", None], "C": [None, "3", None]}, index=["x", "y", "z"])
    result = model.marginals(evidence=frame, engine="gibbs")
    for row, evidence in enumerate([{"A": "0"}, {"A": "1", "C": "3"}, {}]):
        oracle = Enumeration(model, evidence)
        for name in names_of(model):
            error = np.abs(result[name][row] - oracle.marginal(name))
            assert (error <= 6 * result.standard_error(name)[row] + 1e-12).all()
    problem = besag.compile_graph(model, model).bind(model.theta)
    union = Gibbs().infer(problem, frozenset({"variables"}), rng=np.random.default_rng(0))
    oracle = Enumeration(model)
    for i in range(2):
        for name in names_of(model):
            np.testing.assert_allclose(union[i][name], oracle.marginal(name), atol=0.05)


# Hard zeros ----------------------------------------------------------------------------------------------------------


def colouring(edges: list[tuple[int, int]], n: int) -> Model:
    """Labellings in three colours in which no edge has two ends of one colour."""
    differ = np.where(np.eye(3, dtype=np.bool_), -np.inf, 0.0)
    return besag.markov_network([3] * n, [(edge, differ) for edge in edges])


@examples(60)
@given(data=st.data())
def test_chains_start_at_labellings_of_positive_weight(data: DataObject) -> None:
    model = data.draw(models())
    setting = prepare_sampling(model.problem, None, 3, 10)
    codes, possible = starts.draw_starts(setting, 3, np.random.default_rng(0))
    assert possible.all()
    assert np.isfinite(model.problem.energy(codes[0])).all()


def test_a_start_is_found_where_greedy_choices_fail() -> None:
    """A planted colouring of 60 variables and 120 edges; every draw keeps to it."""
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 3, 60)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 60, (400, 2)) if hidden[a] != hidden[b]][:120]
    model = colouring(pairs, 60)
    samples = sampled(model, "gibbs[n_samples=5,burn_in=0]", "samples").samples
    assert np.isfinite(model.problem.energy(samples)).all()


def test_no_labelling_at_all_is_proven_by_search() -> None:
    """Four variables that must all differ in three colours: propagation alone does not see it."""
    model = colouring([(a, b) for a in range(4) for b in range(a)], 4)
    with pytest.raises(ModelError, match="allows no labelling"):
        model.marginals(engine="gibbs")


def test_impossible_evidence_names_its_conflict() -> None:
    model = colouring([(0, 1), (1, 2)], 3)
    with pytest.raises(EvidenceError, match="0=1, 1=1 cannot hold together"):
        model.marginals(evidence={"0": "1", "1": "1", "2": "0"}, engine="gibbs")


def test_a_search_that_gives_up_says_so(forced: Forced) -> None:
    forced({"infer.zeros.starts.BUDGETS": (0,)})
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 3, 60)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 60, (400, 2)) if hidden[a] != hidden[b]][:150]
    with pytest.raises(CapabilityError, match=r"no labelling .* was found to start from.*init=model.map"):
        sampled(colouring(pairs, 60), "gibbs", "variables")


def test_a_chain_that_cannot_move_warns() -> None:
    even = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2 == 0, 0.0, -np.inf)
    model = besag.markov_network({"A": 2, "B": 2, "C": 2}, [(("A", "B", "C"), even)])
    with pytest.warns(ConvergenceWarning, match=r"hard zeros hold 3 variables \(A, B, C\) fast"):
        result = model.marginals(engine="gibbs[n_samples=50]")
    assert result.diagnostics["reducible"]
    assert not result.diagnostics["converged"]
    joint = model.marginals(engine="gibbs[scan=tree]")
    assert not joint.diagnostics["reducible"]
    np.testing.assert_allclose(joint["A"], [0.5, 0.5], atol=1e-12)


# What it says and takes ----------------------------------------------------------------------------------------------


def test_chains_that_disagree_have_not_converged() -> None:
    """Two modes that a single-site chain does not leave."""
    model = besag.ising((5, 5), 3.0, 0.0)
    with pytest.warns(ConvergenceWarning, match="R-hat"):
        result = model.marginals(engine="gibbs[n_samples=200]")
    assert result.diagnostics["r_hat"] > 1.1
    clusters = model.marginals(engine="gibbs[scan=swendsen_wang]")
    assert clusters.diagnostics["converged"]
    np.testing.assert_allclose(clusters["2,2"], [0.5, 0.5], atol=1e-9)


def test_swendsen_wang_with_fields_evidence_and_many_states() -> None:
    rng = np.random.default_rng(0)
    grid = besag.grid((3, 3), 3, unary=rng.normal(size=(3, 3, 3)), pairwise=besag.potts(3), weights=0.8)
    chain = besag.chain(rng.normal(size=(5, 2)), [[1.0, 0.2], [0.1, 0.4]])
    for model, evidence in ((grid, {"0,0": "1"}), (chain, {"2": {"0", "1"}})):
        result = model.marginals(evidence=evidence, engine="gibbs[scan=swendsen_wang]")
        oracle = Enumeration(model, evidence)
        for name in names_of(model):
            error = np.abs(result[name] - oracle.marginal(name))
            assert (error <= 6 * result.standard_error(name) + 1e-9).all()


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (np.log([[1.0, 2.0], [2.0, 1.0]]), "makes neighbours differ"),
        (np.arange(9.0).reshape(3, 3), r"not of the form a \+ c"),
        (np.zeros((2, 3)), "2 by 3 states"),
        (np.zeros((2, 2, 2)), "more than two variables"),
    ],
)
def test_swendsen_wang_refuses_what_is_not_potts(table: np.ndarray, match: str) -> None:
    model = besag.markov_network(list(table.shape), [(tuple(range(table.ndim)), table)])
    with pytest.raises(CapabilityError, match=match):
        sampled(model, "gibbs[scan=swendsen_wang]", "variables")


def test_starting_from_a_result_goes_on_without_burn_in() -> None:
    model = ising()
    first = sampled(model, "gibbs[n_samples=50,burn_in=30]", "variables")
    assert first.state is not None
    assert first.state["sweeps"] == 80
    engine = Gibbs(n_samples=50, burn_in=30)
    second = engine.infer(model.problem, frozenset({"variables"}), warm=first, rng=np.random.default_rng(0))
    assert second.state is not None
    assert second.state["sweeps"] == 130
    from_map = engine.infer(model.problem, frozenset({"variables"}), warm=model.map(engine="exact"))
    assert from_map.diagnostics["iterations"] == 80
    with pytest.raises(CapabilityError, match="init must be a Result of engine 'gibbs'"):
        engine.infer(model.problem, frozenset({"variables"}), warm=model.marginals(engine="exact"))
    with pytest.raises(CapabilityError, match="of another model or another number of rows"):
        engine.infer(mixed().problem, frozenset({"variables"}), warm=first)


def test_steps_trace_and_time_limit() -> None:
    model = ising()
    seen = list(model.steps(engine="gibbs[n_samples=40,burn_in=5]"))
    assert len(seen) == 45
    np.testing.assert_array_equal(
        seen[-1].probabilities, sampled(model, "gibbs[n_samples=40,burn_in=5]", "variables").probabilities
    )
    traced = sampled(model, "gibbs[n_samples=40,burn_in=5]", "variables", "trace")
    assert list(traced.trace["iteration"]) == list(range(1, 46))
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        short = model.marginals(engine="gibbs[n_samples=1000000]", time_limit=0.05)
    assert short.diagnostics["stopped"] == "time_limit"
    np.testing.assert_allclose(short["0,0"].sum(), 1)


def test_expectations_and_samples_of_a_model() -> None:
    model = ising()
    true = model.expect(lambda y: float(y["0,0"] == y["2,3"]))
    assert abs(model.expect(lambda y: float(y["0,0"] == y["2,3"]), engine="gibbs[n_samples=3000]") - true) < 0.05
    assert len(model.sample(10, engine="gibbs")) == 10
    assert len(model.sample(5001, engine="gibbs")) == 5001
    assert np.isnan(besag.compare(model, ["exact", "gibbs"])["log_partition"]["gibbs"])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("gibbs[scan=diagonal]", "scan must be one of 'chromatic'.*got 'diagonal'"),
        ("gibbs[n_chains=0]", "n_chains must be a whole number of at least 1, got 0"),
        ("gibbs[burn_in=-1]", "burn_in must be a whole number of at least 0, got -1"),
        ("gibbs[n_samples=2.5]", "n_samples must be a whole number of at least 1"),
        ("gibbs[n_draws=0]", "n_draws must be a whole number of at least 1, got 0"),
    ],
)
def test_options_that_cannot_be(text: str, match: str) -> None:
    with pytest.raises(CapabilityError, match=match):
        ENGINES.read(text)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TooLargeError, match="running sums of 1 rows x 4 chains x 200 states"):
        sampled(besag.ising((10, 10), 0.1, 0.0), "gibbs[memory_limit=10000]", "variables")


def test_standard_errors_are_of_samplers_only() -> None:
    with pytest.raises(CapabilityError, match="does not sample"):
        ising().marginals(engine="exact").standard_error("0,0")


def test_export_to_arviz() -> None:
    arviz = pytest.importorskip("arviz")
    data = ising().marginals(engine="gibbs").to_arviz()
    assert data.posterior["0,0"].shape == (4, 1000)
    assert float(arviz.rhat(data)["0,0"]) < 1.1


def test_what_many_neighbours_say_adds_up() -> None:
    """Log-odds of -1200, the difference of some 12,000 for a hub and 10,800 against it."""
    n = 2000
    model = besag.ising([(0, i) for i in range(1, n + 1)], 3.0, 0.0)
    low, high = model.variable("0").states
    evidence = {str(i): low if i <= 1100 else high for i in range(1, n + 1)}
    result = model.marginals("0", evidence=evidence, engine="gibbs", seed=1)
    np.testing.assert_allclose(result["0"], [1.0, 0.0])


def test_evidence_is_stronger_than_any_neighbour() -> None:
    """A variable that is observed in one row and free in another is visited in both."""
    model = besag.markov_network([2, 2, 2], [(("0", "1"), [[0, 0], [0, 2e4]]), (("0", "2"), [[0, 0], [0, 3]])])
    rows = pd.DataFrame({"0": ["0", None], "1": ["1", "0"]}, dtype=object)
    samples = model.sample(50, evidence=rows, engine="gibbs", seed=1)
    assert (samples.loc[0, "0"].astype(str) == "0").all()
    assert model.marginals(evidence=rows, engine="gibbs", seed=1)["2"][0] == pytest.approx([0.5, 0.5])


def test_all_variables_of_a_colour_may_be_observed() -> None:
    """The others are then independent, and have their conditionals in every sweep."""
    model = besag.ising((12, 12), 0.3, 0.1)
    evidence = {f"{i},{j}": 1 for i in range(12) for j in range(12) if (i + j) % 2 == 0}
    found = model.marginals(evidence=evidence, engine="gibbs", seed=1)
    np.testing.assert_allclose(found.array, model.marginals(evidence=evidence).array, atol=1e-12)


def test_a_large_field_is_not_cut() -> None:
    pair = (("0", "1"), [[0, 0], [0, -1.5e4]])
    model = besag.markov_network([2, 2], [(("0",), [0, 2e4]), pair, (("1",), [0, 1e5])])
    result = model.marginals(engine="gibbs", seed=1)
    np.testing.assert_allclose(result["0"], [0.0, 1.0])


EQUAL = np.where(np.eye(2, dtype=np.bool_), 0.0, -np.inf)
BLOCKS = np.where(np.kron(np.eye(2), np.ones((2, 2))) > 0, 0.0, -np.inf)  # states 0 and 1, or 2 and 3


@pytest.mark.parametrize("scan", ["chromatic", "systematic", "tree"])
@pytest.mark.parametrize(
    ("n_states", "table", "edges", "field"),
    [(2, EQUAL, ["AB", "BC", "AC"], [2.0, 0.0]), (4, BLOCKS, ["AB", "BC", "AC"], [2.0, 2.0, 0.0, 0.0])],
)
def test_no_chain_that_moves_cannot_join_calls_itself_converged(
    scan: str, n_states: int, table: Any, edges: list[str], field: list[float]
) -> None:
    """A cycle of hard equalities, of states or of blocks of them: whichever side all chains begin on, they stay."""
    factors = [(tuple(edge), table) for edge in edges]
    model = besag.markov_network(dict.fromkeys("ABC", n_states), [*factors, (("A",), field)])
    for seed in range(8):
        with pytest.warns(ConvergenceWarning):
            told = model.marginals(engine=f"gibbs[scan={scan},n_samples=200]", seed=seed).diagnostics
        assert not told["converged"]
        assert told["reducible"]


def test_what_is_observed_does_not_hold_a_chain() -> None:
    """A sweep leaves out what is observed, in a model that has hard zeros."""
    model = besag.data.bundled("sprinkler")
    told = model.marginals(evidence={"wet_grass": "yes"}, engine="gibbs[n_samples=4000]").diagnostics
    assert (told["converged"], told["reducible"]) == (True, False)


def test_rare_states_do_not_hold_a_chain() -> None:
    """Hard zeros, but every state has a probability at almost every sweep."""
    model = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, -np.inf], [0.0, -5.0]])])
    told = model.marginals(engine="gibbs[n_samples=2000]").diagnostics
    assert (told["converged"], told["reducible"]) == (True, False)
