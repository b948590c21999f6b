"""Every engine on small models of extreme numbers: an answer is a distribution within its bounds, or a typed error.

Models are drawn from fixed seeds: hard zeros, arities 1 to 4, cardinalities 1 to 5, energies from 1 to 1e300 beside 0
and beside each other, and evidence of every form. Rounding is measured by the largest energy.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import besag
from besag.errors import BesagError, ConvergenceWarning
from besag.graph.evidence import read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES, Want
from besag.infer.result import Result, factor_offsets
from besag.model.model import Model
from tests.oracle import Enumeration

SEEDS = (*range(30), 72, 136, 192, 256, 501, 536, 592)  # the last ones have had wrong answers
SCALES = (1.0, 1e2, 1e3, 1e5, 1e8, 1e300)
WANTS: tuple[tuple[Want, ...], ...] = (("log_partition", "variables", "factors", "moments"), ("map",), ("samples",))
GIBBS = "gibbs[n_samples=10,burn_in=2,n_chains=2,"
TEXTS = [
    *(
        f"bp[schedule={schedule},damping={damping},dtype={dtype},max_iterations=150]"
        for schedule in ("synchronous", "sequential", "residual")
        for damping, dtype in (("0", "float64"), ("0.5", "float32"), ("adaptive", "float64"))
    ),
    "bp[schedule=sequential,order=random,max_iterations=3]",
    *(f"trw[max_iterations=20,dtype={dtype}]" for dtype in ("float64", "float32")),
    *(f"mean_field[family={family}]" for family in ("naive", "tree", "spanning_tree")),
    "mean_field[dtype=float32]",
    *(f"{GIBBS}scan={scan}]" for scan in ("chromatic", "systematic", "random", "single", "tree")),
    "ais[n_temperatures=5,n_chains=20]",
    "join_graph",
    "join_graph[clique_bound=4]",
    "junction_tree",
    "tree",
    "elimination",
    "brute",
]


class Extreme(NamedTuple):
    """A model under evidence, all of its labellings, and its largest energy."""

    seed: int
    model: Model
    problem: Problem
    truth: Enumeration
    largest: float


def table_of(rng: np.random.Generator, shape: list[int], scale: float, zeros: float, kept: tuple[int, ...]) -> Any:
    """Numbers of a scale beside 0, and hard zeros, none of them at `kept`."""
    forms = (rng.normal(size=shape), -rng.random(shape), rng.choice([-1.0, 1.0], size=shape))
    finite = np.where(rng.random(shape) < 0.4, 0.0, forms[int(rng.integers(3))]) * scale
    table = np.where(rng.random(shape) < zeros, -np.inf, np.clip(finite, -1e300, 1e300))
    table[kept] = finite[kept].clip(-1e300, 1e300)
    return table


def evidence_on(rng: np.random.Generator, cards: list[int], witness: list[int]) -> dict[str, Any]:
    """States, sets of states and likelihoods that the witness agrees with."""
    found: dict[str, Any] = {}
    for v, (k, w) in enumerate(zip(cards, witness, strict=True)):
        form = int(rng.integers(8))
        if form == 0:
            found[str(v)] = str(w)
        elif form == 1:
            found[str(v)] = {str(s) for s in range(k) if s == w or rng.random() < 0.3}
        elif form == 2:
            weights = np.where(rng.random(k) < 0.3, 0.0, rng.random(k) ** float(rng.choice([1, 200])))
            weights[w] = max(weights[w], 1e-300)
            found[str(v)] = {str(s): float(x) for s, x in enumerate(weights)}
    return found


def extreme(seed: int) -> Extreme:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    cards = [2] * n if seed % 4 == 0 else [int(k) for k in rng.integers(1, 6 if n < 5 else 4, size=n)]
    witness = [int(rng.integers(k)) for k in cards]
    scales, zeros = rng.choice(SCALES[:-1] if seed % 8 else SCALES[-1:], size=2), float(rng.choice([0.0, 0.3, 0.6]))
    factors = []
    for _ in range(int(rng.integers(1, 7))):
        size = min(n, int(rng.choice([1, 2, 2, 3, 4])))
        scope = [int(v) for v in rng.choice(n, size=size, replace=False)]
        kept = tuple(witness[v] for v in scope)
        table = table_of(rng, [cards[v] for v in scope], float(rng.choice(scales)), zeros, kept)
        factors.append(([str(v) for v in scope], table))
    model = besag.markov_network({str(v): k for v, k in enumerate(cards)}, factors)
    evidence = evidence_on(rng, cards, witness)
    numbers = model.problem.log_potentials
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence or None))
    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=1.0))
    return Extreme(seed, model, problem, Enumeration(model, evidence), largest)


@pytest.fixture(scope="module")
def extremes() -> list[Extreme]:
    return [extreme(seed) for seed in SEEDS]


def answers(text: str, case: Extreme) -> Iterator[Result]:
    """What an engine says of a model, want by want, where it says anything."""
    engine = ENGINES.read(text)
    for wants in WANTS:
        want = frozenset(wants) & engine.capabilities.wants
        if want:
            try:
                yield engine.infer(case.problem, want, rng=np.random.default_rng(0))
            except BesagError:
                continue


def are_distributions(values: Any, offsets: Any, tolerance: float) -> None:
    assert np.isfinite(values).all()
    assert values.min(initial=0.0) >= 0.0
    assert values.max(initial=0.0) <= 1.0 + tolerance
    np.testing.assert_allclose(np.add.reduceat(values, offsets[:-1], axis=1), 1.0, atol=tolerance)


def is_within_bounds(result: Result, case: Extreme, rounding: float) -> None:
    """log Z is a number between its bounds, and the true one is too, but for confidence intervals."""
    value, (low, high) = result.log_partition, result.log_partition_bounds
    assert np.isfinite(value)
    assert low - rounding <= value <= high + rounding
    if "confidence" not in result.diagnostics:
        assert low - rounding <= case.truth.log_z <= high + rounding


def is_a_labelling(result: Result, case: Extreme, rounding: float) -> None:
    """The energy is that of the labelling, no labelling has less, and an optimal one is one."""
    if result.energy == np.inf:
        assert result.bound != "exact"
        return
    assert abs(case.problem.energy(result.labels[None])[0] - result.energy) <= rounding
    assert result.energy_bound - rounding <= case.truth.map_energy <= result.energy + rounding
    if result.bound == "exact":
        assert result.energy <= case.truth.map_energy + rounding


@pytest.mark.parametrize("text", TEXTS)
def test_answers_of_extreme_models(text: str, extremes: list[Extreme]) -> None:
    single, n_answers = "float32" in text, 0
    for case in extremes:
        rounding = (1e-5 if single else 1e-11) * case.largest + 1e-6
        for result in answers(text, case):
            n_answers += 1
            graph = case.model.graph
            if result.probabilities is not None:
                are_distributions(result.probabilities, graph.state_offsets, 1e-4 if single else 1e-6)
            if result.factor_marginals is not None:
                are_distributions(result.factor_marginals, factor_offsets(graph), 1e-4 if single else 1e-6)
            if result.table_moments is not None:
                assert np.isfinite(result.table_moments).all()
            if result.log_partitions is not None:
                is_within_bounds(result, case, rounding)
            if result.codes is not None:
                is_a_labelling(result, case, rounding)
            if result.sampled is not None:
                assert all(case.problem.energy(y[None])[0] < np.inf for y in result.samples[:5])
    assert n_answers >= len(SEEDS) / 4


@pytest.mark.parametrize("name", ["brute", "tree", "junction_tree", "elimination"])
def test_exact_marginals_of_extreme_models(name: str, extremes: list[Extreme]) -> None:
    assert ENGINES.find(name).capabilities.bound == "exact"
    for case in extremes:
        if case.largest > 1e6:
            continue  # numbers of this size leave no digits for the difference of two states
        for result in answers(name, case):
            if result.probabilities is not None:
                for v in range(case.model.graph.n_variables):
                    np.testing.assert_allclose(result[str(v)], case.truth.marginal(str(v)), atol=1e-8)


def test_auto_on_extreme_models(extremes: list[Extreme]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for case in extremes:
            for result in answers("auto", case):
                if result.log_partitions is not None:
                    is_within_bounds(result, case, 1e-11 * case.largest + 1e-6)
