"""The bundled models against answers from their sources, or against sums written out as the seeds write them."""

import inspect
from itertools import product
from math import exp, log

import numpy as np
import pytest

import besag
from besag.data import BUNDLED, bundled, textbook


@pytest.mark.parametrize("name", BUNDLED)
def test_each_is_described_and_has_a_source(name: str) -> None:
    summary, *_, source = inspect.getdoc(getattr(textbook, name)).splitlines()
    assert summary.endswith(".")
    assert source.startswith("Source: ")


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(besag.errors.ModelError, match=r"'alarm'; there are factors_002, chain_001, .*ising_4x4"):
        bundled("alarm")


# The seeds -----------------------------------------------------------------------------------------------------------


def test_factors_002() -> None:
    h0, h01, h1 = [0.0, 1.0], [[0.0, 2.0], [2.0, 0.0]], [0.5, 0.0]
    h12, h2 = [[0.0, 1.0], [3.0, 0.0]], [1.0, 0.0]
    energy = {(a, b, c): h0[a] + h1[b] + h2[c] + h01[a][b] + h12[b][c] for a, b, c in product(range(2), repeat=3)}
    z = sum(exp(-h) for h in energy.values())
    model = bundled("factors_002")
    assert model.log_partition() == pytest.approx(log(z))
    assert model.marginals()["y1"][1] == pytest.approx(sum(exp(-h) for y, h in energy.items() if y[1] == 1) / z)
    assert model.map().assignment == {"y0": "1", "y1": "1", "y2": "1"}
    assert model.map().energy == min(energy.values()) == 1.0
    assert [model.graph.factor_name(model.graph.factor_order[f]) for f in range(5)] == ["h0", "h01", "h1", "h12", "h2"]


E_F = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
E_G = np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
E_H = np.array([[0.5, 1.0], [1.5, 0.0]])
E_I = np.array([[0.0, 1.0, 1.0], [2.0, 1.0, 0.0]])


def test_chain_001() -> None:
    z = 0.0
    for i, j, k, l in product(range(2), range(3), range(2), range(2)):  # noqa: E741
        z += exp(-E_F[i, j] - E_G[j, k] - E_H[k, l])
    r_h = np.exp(-E_H).sum(axis=1)  # r_{H -> Y_k}, then G's and F's, as 001 nests the sums
    r_g = np.exp(-E_G) @ r_h
    r_f = np.exp(-E_F) @ r_g
    assert r_f.sum() == pytest.approx(z)
    model = bundled("chain_001")
    assert model.log_partition() == pytest.approx(log(z))
    np.testing.assert_allclose(model.marginals()["i"], r_f / z)


def test_tree_001() -> None:
    z = 0.0
    for i, j, k, l, m in product(range(2), range(3), range(2), range(2), range(3)):  # noqa: E741
        z += exp(-E_F[i, j] - E_G[j, k] - E_H[k, l] - E_I[k, m])
    r_h, r_i = np.exp(-E_H).sum(axis=1), np.exp(-E_I).sum(axis=1)
    q_k = r_h * r_i  # q_{Y_k -> G}
    r_f = np.exp(-E_F) @ (np.exp(-E_G) @ q_k)
    assert r_f.sum() == pytest.approx(z)
    model = bundled("tree_001")
    assert model.log_partition() == pytest.approx(log(z))
    np.testing.assert_allclose(model.marginals()["i"], r_f / z)
    assert model.map().assignment == dict.fromkeys("ijklm", "0")


def test_field_003() -> None:
    u1 = np.array([[0.5, -0.5], [-0.5, 1.0]])
    u2 = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    u12 = np.array([[1.0, 0.0, -1.0], [-1.0, 0.5, 1.0]])
    mass = np.zeros((2, 2, 2, 3, 3))
    for x1, x2, x3, s1, s2 in np.ndindex(mass.shape):
        edges = u12[x1, s1] + u12[x2, s1] + u12[x2, s2] + u12[x3, s2]
        mass[x1, x2, x3, s1, s2] = exp(u1[x1, x2] + u1[x2, x3] + u2[s1, s2] + edges)
    model = bundled("field_003")
    assert model.log_partition() == pytest.approx(log(mass.sum()))
    assert model.log_probability({"x1": "0", "x2": "1", "x3": "1"}) == pytest.approx(
        log(mass[0, 1, 1].sum() / mass.sum())
    )
    assert model.variable("x1").states == ("0", "1")
    assert model.variable("s2").states == ("a", "b", "c")


# The textbooks -------------------------------------------------------------------------------------------------------


def probability(name: str, query: str, state: str, **evidence: str) -> float:
    model = bundled(name)
    return float(model.marginals(evidence=evidence)[query][model.variable(query).states.index(state)])


@pytest.mark.parametrize(
    ("query", "state", "evidence", "published"),
    [
        ("wet_grass", "yes", {}, 0.6471),
        ("sprinkler", "on", {"wet_grass": "yes"}, 0.4298),
        ("rain", "yes", {"wet_grass": "yes"}, 0.7079),
        ("sprinkler", "on", {"wet_grass": "yes", "rain": "yes"}, 0.1945),  # explaining away
    ],
)
def test_sprinkler(query: str, state: str, evidence: dict[str, str], published: float) -> None:
    assert probability("sprinkler", query, state, **evidence) == pytest.approx(published, abs=5e-5)


def test_sprinkler_has_the_parents_in_order() -> None:
    assert bundled("sprinkler").parents("wet_grass") == ["sprinkler", "rain"]


@pytest.mark.parametrize(
    ("query", "state", "evidence", "published"),
    [  # Koller and Friedman, section 3.2.1.2
        ("letter", "l1", {}, 0.502),
        ("letter", "l1", {"intelligence": "i0"}, 0.389),
        ("letter", "l1", {"intelligence": "i0", "difficulty": "d0"}, 0.513),
        ("intelligence", "i1", {"grade": "g3"}, 0.079),
        ("difficulty", "d1", {"grade": "g3"}, 0.629),
        ("intelligence", "i1", {"letter": "l0"}, 0.14),
        ("intelligence", "i1", {"letter": "l0", "grade": "g3"}, 0.079),
        ("intelligence", "i1", {"grade": "g3", "sat": "s1"}, 0.578),
        ("intelligence", "i1", {"grade": "g2"}, 0.175),
        ("intelligence", "i1", {"grade": "g2", "difficulty": "d1"}, 0.34),
    ],
)
def test_student(query: str, state: str, evidence: dict[str, str], published: float) -> None:
    digits = len(str(published)) - 2
    assert round(probability("student", query, state, **evidence), digits) == published


def test_student_joint_probability() -> None:
    # P(i1, d0, g2, s1, l0) = 0.3 0.6 0.08 0.8 0.4, Koller and Friedman (3.17)
    case = {"intelligence": "i1", "difficulty": "d0", "grade": "g2", "sat": "s1", "letter": "l0"}
    assert exp(bundled("student").log_probability(case)) == pytest.approx(0.004608)


def asia_by_hand() -> dict[tuple[int, ...], float]:
    """The joint probability of labellings in the order of ASIA, from the paper's probabilities of yes."""

    def p(value: int, yes: float) -> float:
        return yes if value else 1 - yes

    joint = {}
    for a, t, s, lung, b, x, d in product((0, 1), repeat=7):
        e = t | lung
        yes = {(1, 1): 0.9, (1, 0): 0.7, (0, 1): 0.8, (0, 0): 0.1}[e, b]
        joint[a, t, s, lung, b, e, x, d] = (
            p(a, 0.01) * p(t, 0.05 if a else 0.01) * p(s, 0.5) * p(lung, 0.1 if s else 0.01)
            * p(b, 0.6 if s else 0.3) * p(x, 0.98 if e else 0.05) * p(d, yes)
        )  # fmt: skip
    return joint


ASIA = ("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp")


@pytest.mark.parametrize("evidence", [{}, {"asia": "yes", "dysp": "yes"}, {"smoke": "no", "xray": "yes"}])
def test_asia(evidence: dict[str, str]) -> None:
    fits = {
        y: p for y, p in asia_by_hand().items() if all(y[ASIA.index(n)] == (v == "yes") for n, v in evidence.items())
    }
    result = bundled("asia").marginals(evidence=evidence)
    assert result.log_partition == pytest.approx(log(sum(fits.values())), abs=1e-12)
    for i, name in enumerate(ASIA):
        expected = sum(p for y, p in fits.items() if y[i]) / sum(fits.values())
        assert result[name][1] == pytest.approx(expected, abs=1e-12)


def test_asia_published_marginals() -> None:
    published = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.0648, "xray": 0.1103, "dysp": 0.436}
    for name, value in published.items():
        assert probability("asia", name, "yes") == pytest.approx(value, abs=5e-5)


def test_misconception() -> None:
    unnormalised = [  # Koller and Friedman, figure 4.2: a0 b0, a0 b1, a1 b0, a1 b1; columns c0 d0, c0 d1, c1 d0, c1 d1
        [300_000, 300_000, 300_000, 30],
        [500, 500, 5_000_000, 500],
        [100, 1_000_000, 100, 100],
        [10, 100_000, 100_000, 100_000],
    ]
    model = bundled("misconception")
    assert exp(model.log_partition()) == pytest.approx(7_201_840)
    np.testing.assert_allclose(7_201_840 * model.joint(list("ABCD")).reshape(4, 4), unnormalised)
    assert round(exp(model.log_probability({"A": "0", "B": "1", "C": "1", "D": "0"})), 2) == 0.69


def test_umbrella_filtering_and_smoothing() -> None:
    assert probability("umbrella", "rain1", "yes", umbrella1="yes") == pytest.approx(0.818, abs=5e-4)
    assert probability("umbrella", "rain2", "yes", umbrella1="yes", umbrella2="yes") == pytest.approx(0.883, abs=5e-4)
    assert probability("umbrella", "rain1", "yes", umbrella1="yes", umbrella2="yes") == pytest.approx(0.883, abs=5e-4)


def test_umbrella_most_likely_sequence() -> None:
    seen = {f"umbrella{day}": state for day, state in enumerate(["yes", "yes", "no", "yes", "yes"], start=1)}
    best = bundled("umbrella").map(evidence=seen).assignment
    assert [best[f"rain{day}"] for day in range(1, 6)] == ["yes", "yes", "no", "yes", "yes"]


def test_ising_by_transfer_matrix() -> None:
    """Z = 1^T W (T W)^3 1: W weighs the states of a row by themselves, T two neighbouring rows."""
    spins = np.array(list(product((-1, 1), repeat=4)))
    within = np.exp(0.4 * (spins[:, 1:] * spins[:, :-1]).sum(axis=1) + 0.1 * spins.sum(axis=1))
    between = np.exp(0.4 * spins @ spins.T)
    rows = within
    for _ in range(3):
        rows = within * (between @ rows)
    model = bundled("ising_4x4")
    assert model.log_partition() == pytest.approx(log(rows.sum()))
    assert set(model.map().assignment.values()) == {"1"}
