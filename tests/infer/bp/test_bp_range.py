"""Belief propagation where numbers are large or contradict each other: beliefs are distributions, and told truly."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ConvergenceWarning
from besag.infer.result import Result
from besag.model.model import Model
from tests.oracle import Enumeration

SCHEDULES = ("synchronous", "sequential", "residual")
DTYPES = ("float64", "float32")


def is_distribution(result: Result) -> None:
    """All marginals of variables and factors sum to one and lie in [0, 1]."""
    vectors = [result[name] for name in result]
    vectors += [result.factor(f).reshape(-1) for f in range(result.graph.n_factors)]
    for vector in vectors:
        assert vector.sum() == pytest.approx(1.0, abs=1e-6)
        assert vector.min() >= 0.0


def contradictory() -> Model:
    """Seven tables on the same two variables that allow few pairs of states each, and one pair in all."""
    rng = np.random.default_rng(3)
    tables = []
    for _ in range(7):
        table = np.where(rng.random((4, 5)) < 0.6, -np.inf, 1e5 * rng.normal(size=(4, 5)))
        table[3, 2] = -1e5
        tables.append((("a", "b"), table))
    return besag.markov_network({"a": 4, "b": 5}, tables)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_messages_that_grow_without_end_leave_distributions_and_do_not_converge(schedule: str, dtype: str) -> None:
    with pytest.warns(ConvergenceWarning, match="log messages grow without end"):
        result = contradictory().marginals(engine=f"bp[schedule={schedule},damping=0.5,dtype={dtype}]")
    is_distribution(result)
    assert np.isfinite(result.log_partition)
    assert result.diagnostics["diverges"]
    assert not result.diagnostics["converged"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_messages_at_the_end_of_their_numbers_have_not_converged(schedule: str) -> None:
    with pytest.warns(ConvergenceWarning, match="log messages grow without end"):
        result = contradictory().marginals(engine=f"bp[schedule={schedule},dtype=float32]")
    is_distribution(result)
    assert result.diagnostics["iterations"] < 1000  # nothing changes any more
    assert result.diagnostics["diverges"]
    assert not result.diagnostics["converged"]


@pytest.mark.parametrize("scale", [1e3, 1e5, 1e8, 1e17, 1e300])
@pytest.mark.parametrize("engine", ["bp", "tree", "junction_tree", "brute"])
def test_two_states_of_equal_large_energy_share_a_marginal(engine: str, scale: float) -> None:
    factors = [("a", np.array([0.0, -3.0, 0.0]) * scale / 4), (("a", "b"), np.array([[-1], [0], [-1]]) * scale / 4)]
    model = besag.markov_network({"a": 3, "b": 1}, factors)
    assert_allclose(model.marginals(engine=engine)["a"], [0.5, 0.0, 0.5], atol=1e-9)
    is_distribution(model.marginals(engine=engine))


def test_weights_that_leave_no_state_become_logarithms() -> None:
    """Each table alone is narrow enough for weights; in float32 their products are not."""
    tables = [
        (("a", "b"), np.array([[0.0, -55.0], [-55.0, 0.0]])),
        (("b", "c"), np.array([[0.0, -55.0], [-55.0, 0.0]])),
    ]
    unary = [("c", [0.0, -55.0]), ("a", [-55.0, 0.0]), ("b", [0.0, 0.5])]
    chain = [(("b", f"d{i}"), np.array([[0.0, -50.0], [-50.0, 0.0]])) for i in range(4)]
    ends = [(f"d{i}", [0.0, -59.0] if i % 2 else [-59.0, 0.0]) for i in range(4)]
    names = dict.fromkeys(("a", "b", "c", "d0", "d1", "d2", "d3"), 2)
    model = besag.markov_network(names, [*tables, *unary, *chain, *ends])
    exact = model.marginals(engine="brute")
    for schedule, dtype in itertools.product(SCHEDULES, DTYPES):
        result = model.marginals(engine=f"bp[schedule={schedule},dtype={dtype}]")
        for name in names:
            assert_allclose(result[name], exact[name], atol=1e-4)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_converged_messages_that_contradict_each_other_are_consistent(schedule: str) -> None:
    """Small weights that still change matter where hard zeros rule the large ones out."""
    rng = np.random.default_rng(0)
    settled = 0
    for _ in range(25):
        tables = np.where(rng.random((4, 3, 3)) < 0.4, -np.inf, 10 * rng.normal(size=(4, 3, 3)))
        tables[:, 1, 1] = np.maximum(tables[:, 1, 1], -5.0)
        scopes = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b")]
        model = besag.markov_network({"a": 3, "b": 3, "c": 3}, list(zip(scopes, tables, strict=True)))
        engine = besag.infer.BP(schedule=schedule, damping=0.5, max_iterations=300)
        result = engine.infer(model.problem, frozenset({"variables", "factors"}))
        if not result.diagnostics["converged"]:
            continue
        settled += 1
        for f in range(model.graph.n_factors):
            one, two = model.variables.names_at(model.graph.scope(f))
            assert_allclose(result.factor(f).sum(axis=1), result[one], atol=1e-4)
            assert_allclose(result.factor(f).sum(axis=0), result[two], atol=1e-4)
    assert settled > 10


def test_hard_zeros_of_the_first_step_do_not_look_like_divergence() -> None:
    table = np.array([[0.0, -np.inf, 700.0], [-900.0, -np.inf, -np.inf], [1.0, -np.inf, 0.0]])
    model = besag.markov_network([3] * 3, [((0, 1), table), ((1, 2), table)])
    result = model.marginals(engine="bp[damping=adaptive]")
    assert result.diagnostics["domain"] == "log"
    assert result.diagnostics["damping"] == 0.0
    assert result.diagnostics["converged"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_min_sum_breaks_ties_on_a_forest_jointly(schedule: str) -> None:
    """Ties within a factor of many variables, and along chains whose variables come in any order."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        scopes = [(0, 4, 2), (2, 5, 1, 3)] if rng.random() < 0.5 else [(0, 3), (3, 1), (1, 4), (4, 2), (5, 2)]
        factors = [(scope, rng.integers(0, 2, size=[2] * len(scope)) * 1e5) for scope in scopes]
        model = besag.markov_network([2] * 6, factors)
        result = model.map(engine=f"bp[schedule={schedule}]")
        assert result.bound == "exact"
        assert result.energy == pytest.approx(Enumeration(model).map_energy)


@pytest.mark.parametrize("scale", [1.0, 100.0], ids=["linear", "logarithms"])
def test_a_potts_factor_that_repels_adds_up_small_states(scale: float) -> None:
    """Three states far below the largest decide the message to it: rounding must not lose their sum."""
    gain = 50.0 * scale
    unary = [[[0.0, 4.0 - gain, 4.0 - gain, 4.0 - gain], [gain - 5.0 - gain, -gain, -gain, -gain]]]
    model = besag.grid((1, 2), 4, unary=np.array(unary), pairwise=besag.potts(4), weights=-gain)
    true = model.marginals(engine="brute")
    assert 0.2 < true["0,1"][0] < 0.99
    found = model.marginals(engine="bp")
    np.testing.assert_allclose(found.array, true.array, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.log_partition, true.log_partition, rtol=1e-12)


def triangle(seed: int, strength: float) -> Model:
    """Three binary variables, each with a factor of its own, and tables of any strength; some have a hard zero."""
    rng, factors = np.random.default_rng(seed), []
    for a in range(3):
        factors.append(((str(a),), strength * rng.normal(size=2)))
        for b in range(a):
            table = strength * rng.normal(size=(2, 2))
            if rng.random() < 0.3:
                table[rng.integers(2), rng.integers(2)] = -np.inf
            factors.append(((str(b), str(a)), table))
    return besag.markov_network([2] * 3, factors)


@pytest.mark.filterwarnings("ignore::besag.errors.ConvergenceWarning")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("seed", "strength"), [(879471447, 10), (71648543, 6), (733590460, 10), (97715657, 6)])
def test_beliefs_agree_where_messages_have_converged(seed: int, strength: float, dtype: str, schedule: str) -> None:
    """Also where factors rule out what messages favour, so that changes below the tolerance decide."""
    result = triangle(seed, strength).marginals(engine=f"bp[schedule={schedule},dtype={dtype}]")
    for f in range(result.graph.n_factors if result.diagnostics["converged"] else 0):
        belief, scope = result.factor(f), result.graph.scope(int(result.graph.factor_order[f])).tolist()
        for axis, v in enumerate(scope):
            own = belief.sum(axis=tuple(other for other in range(belief.ndim) if other != axis))
            assert_allclose(own, result[str(v)], atol=1e-4)
