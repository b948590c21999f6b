"""auto beyond exact inference, on models small enough to know the truth: as good as the best engine that it has.

Exact inference is refused by force, and memory holds cliques of 2^7 entries, so that join graphs leave something out.
"""

import itertools
import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import besag
from besag.arrays import Array
from besag.errors import ApproximationWarning, ConvergenceWarning, TooLargeError
from besag.infer.auto.engine import Exact
from besag.infer.result import Result
from besag.model.model import Model

CLIQUES = 8 * 64 * 2**7  # bytes
SPIN = np.array([-1.0, 1.0])
EQUAL = np.outer(SPIN, SPIN)

SUMS = ("bp", "join_graph", "trw", "mean_field")


def grid(side: int, seed: int, coupling: float, field: float, *, attractive: bool = False) -> Model:
    rng = np.random.default_rng(seed)

    def couplings(*shape: int) -> Array:
        drawn = rng.normal(size=(*shape, 1, 1))
        return np.asarray(coupling * (np.abs(drawn) if attractive else drawn) * EQUAL)

    pairs = (couplings(side, side - 1), couplings(side - 1, side))
    return besag.grid((side, side), 2, unary=field * rng.normal(size=(side, side, 1)) * SPIN, pairwise=pairs)


def picture(side: int, n_labels: int, seed: int, noise: float, weight: float) -> Model:
    """Patches of 2 x 2 pixels, seen with noise."""
    rng = np.random.default_rng(seed)
    truth = np.kron(rng.integers(n_labels, size=(side // 2, side // 2)), np.ones((2, 2), int))
    seen = -2.0 * weight * (truth[..., None] != np.arange(n_labels)) + noise * rng.normal(size=(side, side, n_labels))
    return besag.grid((side, side), n_labels, unary=seen, pairwise=besag.potts(n_labels), weights=weight)


def pairwise(n: int, pairs: list[tuple[int, int]], seed: int, coupling: float) -> Model:
    rng = np.random.default_rng(seed)
    factors = [((v,), 0.3 * rng.normal() * SPIN) for v in range(n)]
    factors += [(pair, coupling * rng.normal() * EQUAL) for pair in pairs]
    return besag.markov_network([2] * n, factors)


def complete(n: int, seed: int, coupling: float) -> Model:
    return pairwise(n, list(itertools.combinations(range(n), 2)), seed, coupling / np.sqrt(n))


def ring(n: int, seed: int, coupling: float) -> Model:
    """A chain that closes, with shortcuts."""
    return pairwise(n, [(i, (i + d) % n) for i in range(n) for d in (1, 2, 5)], seed, coupling)


def network(n: int, seed: int, n_states: int, deterministic: float) -> Model:
    """Every variable has up to three parents among the eight before it; some rows of its table are certain."""
    rng, factors = np.random.default_rng(seed), []
    for v in range(n):
        parents = sorted(rng.choice(np.arange(max(0, v - 8), v), size=min(v, 3), replace=False).tolist())
        shape = (n_states,) * len(parents)
        certain = np.eye(n_states)[rng.integers(n_states, size=shape)]
        chance = rng.dirichlet(np.ones(n_states), size=shape)
        table = np.where(rng.random((*shape, 1)) < (deterministic if v > 2 else 0.0), certain, chance)
        factors.append(((*parents, v), table))
    return besag.markov_network([n_states] * n, factors, given="weight")


def pedigree(n: int, seed: int) -> Model:
    """Linkage: a child takes one of two alleles of each parent, as hidden switches say; switches follow each other."""
    rng, factors, names = np.random.default_rng(seed), [], dict[str, int]()
    pick = np.zeros((2, 2, 2, 2))
    for a, b, s in itertools.product(range(2), repeat=3):
        pick[a, b, s, (a, b)[s]] = 1.0
    for person, locus in itertools.product(range(n), range(2)):
        names |= {f"{kind}{person}.{locus}": 2 for kind in "mfst"}
        if person < 3:
            factors += [((f"{kind}{person}.{locus}",), rng.dirichlet([2, 2])) for kind in "mf"]
        else:
            mother, father = rng.choice(person, size=2, replace=False).tolist()
            for kind, switch, parent in (("m", "s", mother), ("f", "t", father)):
                ends = (f"m{parent}.{locus}", f"f{parent}.{locus}", f"{switch}{person}.{locus}")
                factors.append(((*ends, f"{kind}{person}.{locus}"), pick))
        seen = np.where(np.eye(2, dtype=bool), rng.uniform(0.3, 1.0), rng.uniform(0.3, 1.0))
        factors.append(((f"m{person}.{locus}", f"f{person}.{locus}"), seen))
    near = np.array([[0.9, 0.1], [0.1, 0.9]])
    factors += [((f"{kind}{person}.0", f"{kind}{person}.1"), near) for person in range(n) for kind in "st"]
    return besag.markov_network(names, factors, given="weight")


MODELS: dict[str, Callable[[], Model]] = {
    "attractive grid": lambda: grid(12, 0, 0.5, 0.3, attractive=True),
    "strongly attractive grid": lambda: grid(12, 1, 1.0, 0.1, attractive=True),
    "random grid": lambda: grid(12, 0, 0.7, 0.3),
    "frustrated grid": lambda: grid(12, 1, 1.5, 0.2),
    "sixteen labels": lambda: picture(6, 16, 1, 1.0, 1.0),
    "eight labels, strongly smoothed": lambda: picture(6, 8, 1, 1.0, 2.0),
    "twelve labels without noise": lambda: picture(6, 12, 0, 0.0, 1.0),
    "complete graph": lambda: complete(16, 0, 1.0),
    "frustrated complete graph": lambda: complete(16, 1, 3.0),
    "ring": lambda: ring(40, 0, 0.8),
    "frustrated ring": lambda: ring(40, 1, 2.0),
    "deterministic network": lambda: network(40, 0, 2, 0.5),
    "three states, deterministic": lambda: network(30, 1, 3, 0.7),
    "linkage": lambda: pedigree(9, 0),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param]()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact inference is not to be had by auto."""

    def refuse(*_: object, **__: object) -> Result:
        raise TooLargeError("it is not to be had")

    monkeypatch.setattr(Exact, "exactly", refuse)


def error(result: Result, truth: Result) -> float:
    assert result.probabilities is not None
    assert truth.probabilities is not None
    return float(np.abs(result.probabilities - truth.probabilities).max())


def asked(model: Model, engine: str, truth: Result, memory_limit: int, time_limit: float | None = None) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return error(model.marginals(engine=engine, memory_limit=memory_limit, time_limit=time_limit), truth)


@pytest.mark.usefixtures("refused")
def test_marginals_are_as_good_as_those_of_the_best_engine(model: Model) -> None:
    truth = model.marginals(engine="junction_tree")
    best = min(asked(model, engine, truth, CLIQUES) for engine in SUMS)
    with pytest.warns(ApproximationWarning) as caught:
        result = model.marginals(memory_limit=CLIQUES)
    low, high = result.log_partition_bounds
    assert low - 1e-9 <= truth.log_partition <= high + 1e-9
    assert low <= result.log_partition <= high
    assert "estimated" not in result.diagnostics
    assert error(result, truth) <= 1.1 * best + 1e-9
    used = re.search(r"Answered by (.*?);", str(caught[0].message))
    assert used is not None
    assert set(used[1].split(", ")) == set(result.diagnostics.engines.values())


@pytest.mark.usefixtures("refused")
def test_no_engine_finds_a_better_labelling(model: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, bp = model.map(), model.map(engine="bp")
    assert found.energy <= bp.energy + 1e-9
    assert found.energy >= model.map(engine="junction_tree").energy - 1e-9


@pytest.mark.slow
@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_marginals_are_as_good_as_those_of_the_best_engine_in_the_same_time(model: Model, seconds: float) -> None:
    truth = model.marginals(engine="junction_tree")
    best = min(asked(model, engine, truth, CLIQUES, seconds) for engine in SUMS)
    with pytest.warns(ApproximationWarning):
        found = asked(model, "auto", truth, CLIQUES, seconds)
    assert found <= 1.1 * best + 1e-9


@pytest.mark.slow
def test_the_best_labelling_of_a_large_noisy_picture_is_proven() -> None:
    """60,000 pixels of two colours: no order of them is short, but bounds leave few in doubt."""
    rng = np.random.default_rng(0)
    truth = np.kron(rng.integers(2, size=(8, 12)), np.ones((25, 25), int))
    seen = truth + rng.normal(size=truth.shape)
    model = besag.grid(
        truth.shape, 2, unary=-((seen[..., None] - np.arange(2)) ** 2) / 2, pairwise=besag.potts(2), weights=0.7
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.map()
    assert found.optimal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.energy <= model.map(engine="bp[max_iterations=200]").energy


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [10.0, 60.0])
def test_many_labels_without_noise_are_all_right_in_any_time(seconds: float) -> None:
    rng, n = np.random.default_rng(0), 64
    truth = np.kron(rng.integers(n, size=(5, 8)), np.ones((10, 10), int))[:, :75]
    seen = -np.minimum(np.abs(truth[..., None] - np.arange(n)), 10.0)
    model = besag.grid(truth.shape, n, unary=seen, pairwise=besag.potts(n))
    with pytest.warns(ConvergenceWarning):  # the time is not for the compilation of kernels
        model.marginals(engine="bp[max_iterations=2]")
    with pytest.warns(ApproximationWarning):
        result = model.marginals(time_limit=seconds)
    assert (result.array.argmax(axis=-1) == truth).all()
    low, high = result.log_partition_bounds
    assert low <= result.log_partition <= high
