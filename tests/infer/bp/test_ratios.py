"""Messages as ratios: the same as pairs of numbers, where nothing is ruled out; pairs where ratios are too wide."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.arrays import Array, Semiring, freeze
from besag.graph.evidence import read_evidence
from besag.infer.bp.kernels import ratios
from besag.infer.bp.kernels.links import links_of
from besag.infer.bp.passing import Domain, Passing
from besag.infer.prepared import Prepared
from besag.kernels.compile import kernel_of
from besag.model.model import Model
from tests.routes import Forced

pytest.importorskip("numba")
DTYPES = {"float64": 1e-12, "float32": 2e-5}


@pytest.fixture(autouse=True)
def small_models_too(forced: Forced) -> None:
    forced({"infer.bp.passing.WORTH_A_KERNEL": 0, "infer.bp.passing.WORTH_PAIRS": 0})


def passing_of(model: Model, semiring: Semiring, dtype: str, n_threads: int = 1) -> Passing:
    setting = Prepared(model.problem, frozenset(), None)
    links = links_of(setting.factors, compile=True)
    domain = Domain(setting.factors, links, semiring, np.dtype(dtype), True)
    return Passing(domain, freeze(setting.base[0]), n_threads)


def by_pairs(model: Model, semiring: Semiring, dtype: str) -> Passing:
    passing = passing_of(model, semiring, dtype)
    passing._takes_ratios = False
    return passing


def beliefs_of(passing: Passing) -> tuple[Array, Array]:
    n_variables = len(passing.domain.state_offsets) - 1
    beliefs, log_z = np.zeros(len(passing.numbers.base)), np.zeros(n_variables)
    passing.of_variables(beliefs, log_z)
    return beliefs, log_z


def grid() -> Model:
    rng = np.random.default_rng(0)
    pairs = tuple(rng.normal(size=shape) for shape in ((6, 4, 2, 2), (5, 5, 2, 2)))
    return besag.grid((6, 5), 2, unary=rng.normal(size=(6, 5, 2)), pairwise=pairs)


def shared() -> Model:
    return besag.ising((5, 6), 0.7, np.random.default_rng(1).normal(size=(5, 6)))


def hub() -> Model:
    """Degrees of one, five and nine."""
    rng = np.random.default_rng(2)
    scopes = np.array([[0, i] for i in range(1, 10)] + [[1, i] for i in range(2, 6)])
    unary = (np.arange(10)[:, None], rng.normal(size=(10, 2)))
    return besag.markov_network([2] * 10, [unary, (scopes, rng.normal(size=(len(scopes), 2, 2)))])


MODELS = {"grid": grid, "shared tables": shared, "hub": hub}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("semiring", [Semiring.SUM, Semiring.MAX])
@pytest.mark.parametrize("model", MODELS)
def test_ratios_are_pairs_of_which_the_larger_is_one(model: str, semiring: Semiring, dtype: str) -> None:
    made = MODELS[model]()
    one, other = passing_of(made, semiring, dtype), by_pairs(made, semiring, dtype)
    for _ in range(2):
        assert one.synchronous(0.0) == pytest.approx(other.synchronous(0.0), abs=DTYPES[dtype])
    for damping in (0.3, 0.0):
        one.synchronous(damping)
        other.synchronous(damping)
    assert one._ratios is not None
    assert_allclose(one.messages, other.messages, atol=DTYPES[dtype])
    assert one._ratios is None
    one.synchronous(0.0)
    other.synchronous(0.0)
    assert one._ratios is not None
    for found, expected in zip(beliefs_of(one), beliefs_of(other), strict=True):
        assert_allclose(found, expected, atol=DTYPES[dtype])
    assert_allclose(one.log_messages(), other.log_messages(), atol=DTYPES[dtype])
    assert one._ratios is not None


def test_messages_that_are_written_are_those_that_are_sent() -> None:
    one, other = passing_of(grid(), Semiring.SUM, "float64"), by_pairs(grid(), Semiring.SUM, "float64")
    start = np.random.default_rng(3).uniform(0.1, 1.0, size=len(one.messages))
    one.synchronous(0.0)
    for passing in (one, other):
        passing.messages[:] = start
        passing.synchronous(0.0)
    assert_allclose(one.messages, other.messages, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ratios_too_wide_are_left_before_anything_is_sent(dtype: str) -> None:
    strong = {"float32": 25.0, "float64": 210.0}[dtype]  # three such messages are wider than a ratio may be
    pairs = tuple(strong * np.ones(shape)[..., None, None] * np.eye(2) for shape in ((6, 4), (5, 5)))
    unary = np.zeros((6, 5, 2))
    unary[..., 1] = strong
    model = besag.grid((6, 5), 2, unary=unary, pairwise=pairs)
    one, other = passing_of(model, Semiring.SUM, dtype), by_pairs(model, Semiring.SUM, dtype)
    assert not one.narrow
    for _ in range(30):
        changes = one.synchronous(0.0), other.synchronous(0.0)
        assert max(changes) < math.inf
    assert not one._takes_ratios
    assert_allclose(one.messages, other.messages, atol=1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("semiring", [Semiring.SUM, Semiring.MAX])
def test_what_rules_a_state_out_is_not_taken(semiring: Semiring) -> None:
    tables = np.random.default_rng(4).normal(size=(3, 2, 2))
    tables[1, 0, 1] = -np.inf
    model = besag.markov_network([2] * 4, [(np.array([[0, 1], [1, 2], [2, 3]]), tables)], given="log_potential")
    assert not passing_of(model, semiring, "float64")._takes_ratios
    evidence = read_evidence(grid().variables, {"0,0": "1"})
    problem = grid().problem.with_evidence(evidence)
    setting = Prepared(problem, frozenset(), None)
    links = links_of(setting.factors, compile=True)
    domain = Domain(setting.factors, links, semiring, np.dtype("float64"), True)
    assert not Passing(domain, setting.base[0], 1)._takes_ratios


def test_answers_do_not_depend_on_the_number_of_threads(forced: Forced) -> None:
    forced({"infer.bp.passing.CHUNK": 8})
    one, three = (passing_of(grid(), Semiring.SUM, "float32", n_threads=n) for n in (1, 3))
    assert [one.synchronous(0.0) for _ in range(5)] == [three.synchronous(0.0) for _ in range(5)]
    np.testing.assert_array_equal(one.messages, three.messages)


@pytest.mark.parametrize("semiring", [0, 1])
def test_plain_python_is_what_is_compiled(semiring: int) -> None:
    rng = np.random.default_rng(5)
    draw = rng.uniform if semiring == 0 else rng.normal
    base, messages, tables = (draw(size=size) + 0.1 for size in (3, 6, (3, 2, 2)))
    links = (np.array([0, 2, 4, 6], np.int32), np.array([0, 5, 1, 2, 3, 4], np.int32))
    answers = []
    for compile in (False, True):
        gathered, sent, read = np.zeros(6), messages.copy(), np.arange(3, dtype=np.int32)
        gather = kernel_of(ratios.make_gather, semiring, compile=compile)
        send = kernel_of(ratios.make_send, semiring, 0, compile=compile)
        reach = gather(base, *links, messages, 0, 3, gathered)
        change = send(tables, read, gathered, 0, 3, sent)
        answers.append([*reach, change, *gathered, *sent])
    assert_allclose(*answers, rtol=1e-12)


@pytest.mark.parametrize("heard", [[math.inf, 0.0], [0.0, math.inf], [1e200, 1e200, 1e-200, 1e-200, 1e-200, 1.0]])
def test_what_was_too_wide_is_not_forgotten(heard: list[float]) -> None:
    """Products of these are 0, inf or NaN at the first variable; two harmless ones follow."""
    n = len(heard)
    first, links = np.array([0, n, n + 1, n + 2], np.int32), np.arange(n + 2, dtype=np.int32)
    messages = np.array([*heard, 0.9, 0.8])
    for compile in (False, True):
        gather = kernel_of(ratios.make_gather, int(Semiring.SUM), compile=compile)
        with np.errstate(all="ignore"):
            least, largest = gather(np.ones(3), first, links, messages, 0, 3, np.zeros(n + 2))
        assert least < 1e-250 or largest > 1e250


@pytest.mark.parametrize("dtype", DTYPES)
def test_messages_of_a_stronger_model_are_pairs(dtype: str) -> None:
    """Its logarithms are too wide for ratios, and contradict each other at one variable."""

    def model(strength: float) -> Model:
        leaves = strength * np.array([[1.0 if i % 2 else -1.0, 0.0] for i in range(5)])
        star = strength * np.tile(np.eye(2), (5, 1, 1))
        ends = np.array([0, 1, 2, 3, 6, 7, 8, 9])
        factors = [
            (np.arange(5)[:, None], leaves),
            (np.array([[5]]), np.array([[0.0, 0.2]])),
            (np.stack([np.full(5, 5), np.arange(5)], axis=1), star),
            (np.stack([ends, ends + 1], axis=1), np.tile(0.3 * np.eye(2), (8, 1, 1))),
        ]
        return besag.markov_network([2] * 11, factors)

    engine = f"bp[max_iterations=80,dtype={dtype},tolerance=1e-6]"
    strong = list(model(900.0).steps(engine=f"bp[max_iterations=7,dtype={dtype}]"))[-1]
    cold, warm = model(1.0).marginals(engine=engine), model(1.0).marginals(engine=engine, init=strong)
    assert_allclose(warm.probabilities, cold.probabilities, atol=1e-4)
    assert warm.log_partition == pytest.approx(cold.log_partition, abs=1e-3)
