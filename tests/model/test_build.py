"""Builders from arrays, chain, tree, grid and ising: their energies against the formulas, labelling by labelling."""

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.arrays import Kind
from besag.errors import ModelError
from besag.model.model import Model
from tests.oracle import Enumeration

RNG = np.random.default_rng(0)
GIVEN: dict[str, Callable[[Any], Any]] = {
    "log_potential": lambda t: t,
    "energy": lambda t: -t,
    "weight": np.exp,
}


def check(model: Model, log_potential: Callable[[np.ndarray], float]) -> None:
    """The log-potential of every labelling is the formula's."""
    enumeration = Enumeration(model)
    expected = [log_potential(y) for y in enumeration.labels]
    assert_allclose(enumeration.log_weights, expected, rtol=1e-12, atol=1e-12)


def kinds(model: Model) -> set[int]:
    return set(model.graph.kinds.tolist())


# Chains and trees ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("each", [False, True])
def test_chain(given: str, each: bool) -> None:
    unary, pairwise = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3, 3) if each else (3, 3))
    unary[1, 2] = pairwise[..., 0, 1] = -np.inf
    model = besag.chain(GIVEN[given](unary), GIVEN[given](pairwise), given=given)
    tables = pairwise if each else [pairwise] * 3

    def log_potential(y: np.ndarray) -> float:
        return sum(unary[t, y[t]] for t in range(4)) + sum(tables[t][y[t], y[t + 1]] for t in range(3))

    check(model, log_potential)
    assert [v.name for v in model.variables] == ["0", "1", "2", "3"]
    assert len(model.problem.log_potentials) == 12 + 9 * (3 if each else 1)


def test_chain_of_potts_keeps_no_table() -> None:
    unary = RNG.normal(size=(4, 3))
    model = besag.chain(unary, besag.potts(3))
    check(model, lambda y: sum(unary[t, y[t]] for t in range(4)) - float((y[:-1] != y[1:]).sum()))
    assert Kind.POTTS in kinds(model)


@pytest.mark.parametrize("pairwise", [np.zeros((3, 3)), np.zeros((0, 3, 3)), besag.potts(3)])
def test_chain_of_one_variable(pairwise: Any) -> None:
    check(besag.chain([[0.5, -np.inf, 2.0]], pairwise), lambda y: [0.5, -np.inf, 2.0][y[0]])


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("each", [False, True])
def test_tree(given: str, each: bool) -> None:
    parents = [2, -1, 1, 1, -1]
    unary, pairwise = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2, 2) if each else (2, 2))
    model = besag.tree(parents, GIVEN[given](unary), GIVEN[given](pairwise), given)
    tables = pairwise if each else [pairwise] * 3

    def log_potential(y: np.ndarray) -> float:
        edges = [(2, 0), (1, 2), (1, 3)]
        return sum(unary[v, y[v]] for v in range(5)) + sum(
            t[y[p], y[c]] for t, (p, c) in zip(tables, edges, strict=True)
        )

    check(model, log_potential)


@pytest.mark.parametrize("pairwise", [np.zeros((2, 2)), np.zeros((0, 2, 2)), besag.potts(2)])
def test_tree_of_roots_only(pairwise: Any) -> None:
    check(besag.tree([-1, -1], np.zeros((2, 2)), pairwise), lambda y: 0.0)


# Grids ---------------------------------------------------------------------------------------------------------------


def grid_edges(h: int, w: int, connectivity: int) -> list[list[tuple[tuple[int, int], tuple[int, int]]]]:
    """Edges by direction: horizontal, vertical, down-right, down-left."""
    moves = [(0, 1), (1, 0), (1, 1), (1, -1)][: 2 if connectivity == 4 else 4]
    inside = list(itertools.product(range(h), range(w)))
    return [[((i, j), (i + a, j + b)) for i, j in inside if (i + a, j + b) in inside] for a, b in moves]


def sizes(h: int, w: int, connectivity: int) -> list[tuple[int, int]]:
    return [(h, w - 1), (h - 1, w), (h - 1, w - 1), (h - 1, w - 1)][: 2 if connectivity == 4 else 4]


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (3, 1)])
@pytest.mark.parametrize("given", GIVEN)
def test_grid_with_a_shared_table(connectivity: int, shape: tuple[int, int], given: str) -> None:
    unary, pairwise = RNG.normal(size=(*shape, 2)), np.array([[0.3, -np.inf], [0.7, 0.1]])
    model = besag.grid(shape, 2, GIVEN[given](unary), GIVEN[given](pairwise), connectivity=connectivity, given=given)
    edges = itertools.chain(*grid_edges(*shape, connectivity))
    listed = list(edges)

    def log_potential(y: np.ndarray) -> float:
        image = y.reshape(shape)
        return sum(unary[p][image[p]] for p in np.ndindex(shape)) + sum(pairwise[image[a], image[b]] for a, b in listed)

    check(model, log_potential)
    assert model.variables[0].name == "0,0"
    assert model.shape == shape
    assert len(model.problem.log_potentials) == unary.size + 4


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (3, 1)])
@pytest.mark.parametrize("form", ["tables", "weights", "potts weights"])
def test_grid_with_numbers_of_each_edge(connectivity: int, shape: tuple[int, int], form: str) -> None:
    table = np.array([[0.3, -1.0], [0.7, 0.1]])
    base = 1 - np.eye(2) if form == "potts weights" else -table
    weights = [RNG.normal(size=size) for size in sizes(*shape, connectivity)]
    tables = [-w[..., None, None] * base for w in weights]
    if form == "tables":
        model = besag.grid(shape, 2, pairwise=tuple(tables), connectivity=connectivity)
    else:
        pairwise = besag.potts(2) if form == "potts weights" else table
        model = besag.grid(shape, 2, pairwise=pairwise, weights=tuple(weights), connectivity=connectivity)
    each = [(edge, table) for edges, block in zip(grid_edges(*shape, connectivity), tables, strict=True)
            for edge, table in zip(edges, block.reshape(-1, 2, 2), strict=True)]  # fmt: skip

    def log_potential(y: np.ndarray) -> float:
        image = y.reshape(shape)
        return sum(table[image[a], image[b]] for (a, b), table in each)

    check(model, log_potential)
    assert kinds(model) == {"tables": {Kind.TABLE}, "weights": {Kind.SCALED}, "potts weights": {Kind.POTTS}}[form]


@pytest.mark.parametrize("pairwise", [besag.potts(2), np.eye(2) - 1])
def test_grid_with_one_weight(pairwise: Any) -> None:
    model = besag.grid((2, 2), 2, pairwise=pairwise, weights=0.7)
    check(model, lambda y: -0.7 * sum(y[a] != y[b] for a, b in [(0, 1), (2, 3), (0, 2), (1, 3)]))
    assert len(model.problem.log_potentials) <= 4


def test_grid_of_one_variable_and_grid_without_edges() -> None:
    for pairwise in (None, np.eye(2), besag.potts(2), (np.zeros((1, 0, 2, 2)), np.zeros((0, 1, 2, 2)))):
        check(besag.grid((1, 1), 2, [[[0.5, 1.0]]], pairwise), lambda y: [0.5, 1.0][y[0]])
    check(besag.grid((2, 2), 2, pairwise=None), lambda y: 0.0)


def test_a_grid_of_a_million_variables() -> None:
    rng = np.random.default_rng(1)
    unary, weights = rng.normal(size=(1000, 1000, 2)), (np.ones((1000, 999)), np.ones((999, 1000)))
    model = besag.grid((1000, 1000), 2, unary, besag.potts(2), weights)
    assert len(model.variables) == 1_000_000
    assert model.variables[-1].name == "999,999"
    assert model.n_factors == 1_000_000 + 2 * 999 * 1000
    assert model.energy(np.zeros((1000, 1000), int)) == pytest.approx(-unary[..., 0].sum())
    assert "1000000 variables" in repr(model)
    shared = besag.grid((1000, 1000), 2, pairwise=besag.potts(2))
    assert len(shared.problem.log_potentials) == 1


# Ising ---------------------------------------------------------------------------------------------------------------


def spins(y: np.ndarray) -> np.ndarray:
    return 2.0 * y - 1


def test_ising_on_a_lattice() -> None:
    j, h = 0.4, RNG.normal(size=(2, 3))
    model = besag.ising((2, 3), j, h)

    def log_potential(y: np.ndarray) -> float:
        s = spins(y).reshape(2, 3)
        return j * float((s[:, 1:] * s[:, :-1]).sum() + (s[1:] * s[:-1]).sum()) + float((h * s).sum())

    check(model, log_potential)
    assert model.variables[0].states == ("-1", "1")
    assert model.shape == (2, 3)
    assert model.layout.n_parameters == 1 + 6


def test_ising_with_a_coupling_for_each_edge_of_a_lattice() -> None:
    across, down = RNG.normal(size=(2, 2)), RNG.normal(size=(1, 3))
    model = besag.ising((2, 3), (across, down), 0.2)

    def log_potential(y: np.ndarray) -> float:
        s = spins(y).reshape(2, 3)
        pairs = float((across * s[:, 1:] * s[:, :-1]).sum() + (down * s[1:] * s[:-1]).sum())
        return pairs + 0.2 * float(s.sum())

    check(model, log_potential)
    assert model.layout.n_parameters == 7 + 1


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (((4, 4), "a"), "coupling: expected an array of numbers, got str"),
        (((4, 4), 0.3, "a"), "field: expected an array of numbers, got str"),
        (([(0, 1)], "a"), "coupling: expected an array of numbers, got str"),
        (("a", 0.3), r"ising takes the shape of a lattice, a tuple, or edges \(E, 2\); got 'a'"),
        ((("a", 2), 0.3), "ising takes the shape of a lattice"),
    ],
)
def test_ising_takes_numbers(given: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        besag.ising(*given)


def test_ising_in_one_and_three_dimensions() -> None:
    j = RNG.normal(size=3)

    def line(y: np.ndarray) -> float:
        return float((j * spins(y)[1:] * spins(y)[:-1]).sum())

    def cube(y: np.ndarray) -> float:
        s = spins(y).reshape(2, 2, 2)
        return 0.3 * float((s[1:] * s[:-1]).sum() + (s[:, 1:] * s[:, :-1]).sum() + (s[..., 1:] * s[..., :-1]).sum())

    check(besag.ising((4,), j), line)
    model = besag.ising((2, 2, 2), 0.3)
    check(model, cube)
    assert model.marginals().array.shape == (2, 2, 2, 2)


@pytest.mark.parametrize("edges", [[(0, 2), (3, 2)], np.array([[0, 2], [3, 2]]), ((0, 2), (3, 2))])
@pytest.mark.parametrize("coupling", [0.5, [0.5, -1.0]])
def test_ising_on_edges(edges: Any, coupling: Any) -> None:
    field = [0.1, 0.2, 0.3, 0.4, 0.5]  # the last variable has no edge
    j = np.broadcast_to(coupling, 2)

    def log_potential(y: np.ndarray) -> float:
        s = spins(y)
        return float(j[0] * s[0] * s[2] + j[1] * s[3] * s[2] + np.dot(field, s))

    check(besag.ising(edges, coupling, field), log_potential)


@pytest.mark.parametrize(
    ("graph", "coupling"), [((1, 1), 0.5), ((1, 1), (np.zeros((1, 0)), np.zeros((0, 1)))), ([], 0.5), ([], [])]
)
def test_ising_without_edges(graph: Any, coupling: Any) -> None:
    check(besag.ising(graph, coupling, [0.7]), lambda y: 0.7 * spins(y)[0])


# Refusals ------------------------------------------------------------------------------------------------------------

U2, P2 = np.zeros((2, 2)), np.zeros((2, 2))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: besag.chain(np.zeros(3), P2), r"unary must have shape \(variables, states\), got \(3,\)"),
        (lambda: besag.chain(np.zeros((0, 2)), P2), r"unary must have shape .* got \(0, 2\)"),
        (lambda: besag.chain(U2, np.zeros((3, 3))), r"pairwise: expected tables of shape \(2, 2\), got \(3, 3\)"),
        (lambda: besag.chain(U2, np.zeros((2, 2, 2))), r"pairwise: .* got shape \(2, 2, 2\)"),
        (lambda: besag.chain(U2, besag.potts(3)), "potts has 3 states, but the variables have 2"),
        (lambda: besag.chain([[0, np.nan], [0, 0]], P2), r"unary: .* the entry at \(0, 1\) is nan"),
        (lambda: besag.chain([[0, np.inf], [0, 0]], P2), r"unary: .* the entry at \(0, 1\) is inf"),
        (lambda: besag.chain(U2, [[0, 0], [np.nan, 0]]), r"pairwise: .* the entry at \(1, 0\) is nan"),
        (lambda: besag.chain(U2, P2 - 1, "weight"), r"weights must be finite and not negative.*\(0, 0\) is -1"),
        (lambda: besag.chain(U2, P2 - np.inf, "energy"), r"energy must be a number or inf.*\(0, 0\) is -inf"),
        (lambda: besag.chain(U2, P2, "odds"), 'given must be "log_potential", "energy" or "weight", got \'odds\''),
        (lambda: besag.chain([["a", "b"]], P2), "unary must be an array of numbers"),
        (lambda: besag.tree([-1], U2, P2), r"parents must have shape \(2,\)"),
        (lambda: besag.tree([-1, 2], U2, P2), r"parents\[1\] is 2; it must be -1 or the index of a variable below 2"),
        (lambda: besag.tree([-2, 0], U2, P2), r"parents\[0\] is -2"),
        (lambda: besag.tree([1, 0], U2, P2), "parents have a cycle through variable 0"),
        (lambda: besag.tree([0, 0], U2, P2), "parents have a cycle through variable 0"),
        (lambda: besag.grid((0, 3), 2), r"shape of a grid is \(height, width\), both at least 1, got \(0, 3\)"),
        (lambda: besag.grid((3,), 2), r"shape of a grid .* got \(3,\)"),
        (lambda: besag.grid((2, 2), 0), "at least one state, a whole number n_states, got 0"),
        (lambda: besag.grid((2, 2), ["bg", "fg"]), r"a whole number n_states, got \['bg', 'fg'\]"),  # type: ignore[arg-type]
        (lambda: besag.grid((2, 2), 2, np.zeros((2, 3, 2))), r"unary must have shape \(2, 2, 2\), got \(2, 3, 2\)"),
        (lambda: besag.grid((2, 2), 2, connectivity=6), "connectivity must be 4 or 8, got 6"),
        (lambda: besag.grid((2, 2), 2, weights=1.0), "weights need a pairwise term"),
        (lambda: besag.grid((2, 2), 2, None, P2, (np.ones((2, 2)),) * 2), r"weights: expected .*\(2, 1\).*\(1, 2\)"),
        (lambda: besag.grid((2, 2), 2, None, P2, ([[np.nan], [0]], [[0, 0]])), "weights must be .*numbers"),
        (lambda: besag.grid((2, 2), 2, None, P2, ([[np.inf], [0]], [[0, 0]])), "weights must be .*numbers"),
        (lambda: besag.grid((2, 2), 2, None, P2 + 1, np.nan), "weights must be .*numbers"),
        (lambda: besag.grid((2, 2), 2, None, P2 + 1, -np.inf), "weights must be .*numbers"),
        (lambda: besag.grid((2, 2), 2, None, besag.potts(2), np.inf), "weights must be .*numbers"),
        (lambda: besag.grid((2, 2), 2, None, [[0, -np.inf], [0, 0]], 2.0), "weights multiply one shared table"),
        (lambda: besag.grid((2, 2), 2, None, (np.zeros((2, 2, 2, 2)),) * 2), r"pairwise: expected arrays of shapes"),
        (lambda: besag.ising(()), "shape of a lattice must be positive"),
        (lambda: besag.ising((2, 0)), r"shape of a lattice must be positive numbers, got \(2, 0\)"),
        (lambda: besag.ising([]), "a model needs at least one variable"),
        (lambda: besag.ising((2, 2), field=[1, 2]), r"field must be .* each of 4 variables, got shape \(2,\)"),
        (lambda: besag.ising((2, 2), np.zeros(3)), "coupling: expected arrays of shapes"),
        (lambda: besag.ising((2, 2), np.nan), "coupling must be finite numbers"),
        (lambda: besag.ising((2, 2), field=np.inf), "field must be finite numbers"),
        (lambda: besag.ising([(0, 0)]), r"\(0, 0\), repeats a variable"),
        (lambda: besag.ising([(-1, 0)]), r"names variable \[-1, 0\]"),
        (lambda: besag.potts(0), "potts needs at least one state, got 0"),
    ],
)  # fmt: skip
def test_bad_arrays_are_refused(build: Callable[[], Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        build()


# Numbers in one array -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["log_potential", "energy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_tables_are_kept_once_until_theta_is_asked_for(given: str, dtype: Any) -> None:
    unary = RNG.integers(-5, 6, (3, 4, 2)).astype(dtype)
    pairwise = [RNG.integers(-5, 6, size).astype(dtype) for size in ((3, 3, 2, 2), (2, 4, 2, 2))]
    model = besag.grid((3, 4), 2, unary, pairwise, given=given)
    numbers = np.concatenate([unary.reshape(-1), *(part.reshape(-1) for part in pairwise)]).astype(np.float64)
    held = model.problem.log_potentials
    assert held is model._log_potentials
    np.testing.assert_array_equal(held, numbers if given == "log_potential" else -numbers)
    np.testing.assert_array_equal(model.theta, -held)
    assert not np.signbit(model.theta[model.theta == 0]).any()
    assert not model.theta.flags.writeable


def test_a_model_that_keeps_log_potentials_is_copied_and_changed_like_others() -> None:
    def build() -> Model:
        return besag.chain([[0.0, 1.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])

    expected = build().log_partition()
    assert pickle.loads(pickle.dumps(build())).log_partition() == expected
    assert build().with_metadata({"name": "c"}).log_partition() == expected
    assert build().with_theta(build().theta).log_partition() == expected
    assert build().with_tables({"pairwise": [[[0.0, 0.0], [0.0, 0.0]]]}).log_partition() != expected
    with pytest.raises(AttributeError, match="no attribute 'thetas'"):
        build().thetas  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("bad", [np.nan, np.inf, 2e300, -2e300])
@pytest.mark.parametrize("direction", [0, 1])
def test_a_number_that_cannot_be_a_log_potential_is_found_in_every_array(bad: float, direction: int) -> None:
    pairwise = [np.zeros((2, 1, 2, 2)), np.zeros((1, 2, 2, 2))]
    pairwise[direction][0, 0, 1, 0] = bad
    with pytest.raises(ModelError, match="pairwise"):
        besag.grid((2, 2), 2, np.zeros((2, 2, 2)), pairwise)


def test_a_hard_zero_in_one_array_leaves_the_others_as_they_are() -> None:
    unary, pairwise = RNG.normal(size=(2, 2, 2)), [RNG.normal(size=(2, 1, 2, 2)), RNG.normal(size=(1, 2, 2, 2))]
    pairwise[1][0, 1, 1, 1] = -np.inf
    model = besag.grid((2, 2), 2, unary, pairwise)
    numbers = np.concatenate([unary.reshape(-1), *(part.reshape(-1) for part in pairwise)])
    np.testing.assert_array_equal(model.problem.log_potentials, numbers)
    assert model.support is not None
    assert int((~model.support).sum()) == 1


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: besag.chain(np.zeros((1, 2)), np.full((2, 2), np.nan)), "pairwise: log-potential must be a number"),
        (lambda: besag.grid((1, 1), 2, None, np.zeros((2, 2)), given="foo"), "given must be"),  # type: ignore[arg-type]
        (lambda: besag.grid((1, 2), 2, None, [[0, -1e200], [0, 0]], weights=1e200), "weights times the table"),
        (
            lambda: besag.grid((1, 2), 2, None, [[0, 1e301], [0, 0]], weights=[np.ones((1, 1)), np.ones((0, 2))]),
            "table",
        ),
        (lambda: besag.chain(np.zeros((2, 2)), np.zeros((2, 2), complex)), "expected an array of numbers"),
        (lambda: besag.chain(np.zeros((2, 2)), np.zeros((2, 2), "datetime64[s]")), "expected an array of numbers"),
        (
            lambda: besag.grid((1, 2), 2, None, (np.zeros((1, 1, 2, 2)), np.zeros((0, 2, 2, 2))), weights=2.0),
            "weights multiply one shared table",
        ),
    ],
)
def test_numbers_that_nobody_reads_or_that_overflow_are_refused_too(build: Callable[[], Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        build()
