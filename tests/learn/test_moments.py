"""Moment matching: M-projection of numbers and of other models, and moments that no theta has."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError, ConvergenceWarning, ModelError
from besag.learn.hidden.noisy import noisy_children
from besag.learn.polytope import ranges, statistic_name
from tests.learn.losses.test_likelihood import instances, model_of
from tests.oracle import Enumeration, allowed, labellings, phi
from tests.strategies import examples, generators, models

FINE = "lbfgs[tolerance=1e-9]"


def network(pairs: list[str], states: int = 2, seed: int | None = None) -> besag.Model:
    names = sorted(set("".join(pairs)))
    rng = np.random.default_rng(seed)
    shape = (states, states)
    tables = [np.zeros(shape) if seed is None else rng.normal(size=shape) for _ in pairs]
    return besag.markov_network(
        dict.fromkeys(names, states), [(tuple(p), t) for p, t in zip(pairs, tables, strict=True)]
    )


@given(model=models(max_labellings=200).filter(lambda model: not noisy_children(model)), rng=generators())
@examples(15)
def test_the_model_has_the_moments_asked_for_003_m_step(model: besag.Model, rng: np.random.Generator) -> None:
    """E[phi] = mu, 003's step b), for any model: hard zeros, inputs, bases."""
    theta = 0.7 * rng.normal(size=model.layout.n_parameters)
    if model.support is not None:
        theta = np.where(model.support, theta, 0.0)
    target = Enumeration(model.with_theta(theta)).moments()
    found = besag.fit(model, moments=target, optimizer="lbfgs[tolerance=1e-9,max_iterations=3000]")
    assert found.converged
    assert_allclose(Enumeration(found.model).moments(), target, atol=1e-6 * max(1.0, np.abs(target).max()))


def test_the_gradient_is_mu_minus_the_moments_of_the_model_004() -> None:
    model = network(["AB", "BC", "AC"], 3, seed=1)
    rng = np.random.default_rng(0)
    mu, theta = model.moments(), rng.normal(size=27)
    total = besag.objective("likelihood", model, moments=mu, l2=0.1)
    value, gradient = total.value_and_grad(theta)
    exact = Enumeration(model.with_theta(theta))
    assert value == pytest.approx(theta @ mu + exact.log_z + 0.1 * theta @ theta)
    assert_allclose(gradient, mu - exact.moments() + 0.2 * theta, atol=1e-10)
    assert_allclose(total.hessian(theta), exact.covariance() + 0.2 * np.eye(27), atol=1e-7)


def test_moments_of_data_are_their_likelihood_004() -> None:
    rows = np.random.default_rng(0).integers(0, 2, size=(60, 3))
    model = network(["AB", "BC", "AC"])
    mu = np.mean([model.graph.moments(row) for row in rows], axis=0)
    matched = besag.fit(model, moments=mu, optimizer=FINE)
    learnt = besag.fit(model, rows, optimizer=FINE)
    assert_allclose(matched.model.joint(["A", "B", "C"]), learnt.model.joint(["A", "B", "C"]), atol=1e-8)
    assert matched.objective == pytest.approx(learnt.objective / 60)


def test_projection_of_another_model_004_m_projection() -> None:
    """On a chain the M-projection has the pair marginals of q, and the loss is KL(q || p) + entropy(q)."""
    q = network(["AB", "BC", "CD", "DA", "DE"], 3, seed=2)
    found = besag.fit(network(["AB", "BC"], 3), moments=q, optimizer=FINE)
    p, exact = found.model, Enumeration(q)
    for pair in ("AB", "BC"):
        assert_allclose(p.joint(list(pair)), exact.joint(list(pair)), atol=1e-8)
    on_three = exact.joint(["A", "B", "C"])
    divergence = (on_three * np.log(on_three / p.joint(["A", "B", "C"]))).sum()
    assert found.objective == pytest.approx(divergence - (on_three * np.log(on_three)).sum())


def test_a_model_projected_onto_its_own_family_is_itself() -> None:
    data = instances(7, 1)[0]
    q = model_of(data, np.random.default_rng(0).normal(size=data.layout.n_parameters) / 2)
    found = besag.fit(q.with_theta(np.zeros_like(q.theta)), moments=q, optimizer="lbfgs[tolerance=1e-10]")
    assert_allclose(Enumeration(found.model).p, Enumeration(q).p, atol=1e-7)


@pytest.mark.parametrize("text", ["sgd", "newton_cg", "steepest_descent", "gradient_descent"])
def test_every_optimiser_matches_moments_003_m_step(text: str) -> None:
    q = network(["AB", "BC", "AC"], seed=4)
    found = besag.fit(network(["AB", "BC", "AC"]), moments=q, optimizer=f"{text}[tolerance=1e-6,max_iterations=2000]")
    assert found.converged
    assert_allclose(found.model.joint(["A", "B", "C"]), q.joint(["A", "B", "C"]), atol=1e-5)


def test_matching_goes_on_from_a_checkpoint() -> None:
    given = {"moments": network(["AB", "BC", "AC"], seed=4), "optimizer": FINE}
    model = network(["AB", "BC", "AC"])
    part = besag.fit(model, **given, on_step=lambda row, _: row.iteration == 4)
    assert_allclose(besag.fit(model, **given, resume=part.checkpoint).theta, besag.fit(model, **given).theta)


def test_hard_zeros_of_either_model() -> None:
    wall = besag.Template("wall", (2, 2), support=np.array([[True, False], [True, True]]))
    p = besag.Model([2, 2], [besag.FactorGroup(wall, [[0, 1]])], np.zeros(4))
    q = p.with_theta([0.3, 0.0, -0.2, 0.5])
    found = besag.fit(p, moments=q, optimizer=FINE)
    assert found.converged
    assert_allclose(found.model.joint(["0", "1"]), q.joint(["0", "1"]), atol=1e-8)
    free = besag.Model([2, 2], [besag.FactorGroup(besag.Template("free", (2, 2)), [[0, 1]])], np.zeros(4))
    with pytest.raises(ModelError, match=r"hard zeros of template 'wall' rule out what .* allows"):
        besag.fit(p, moments=free)
    with pytest.warns(ConvergenceWarning, match=r"in the direction of \(0=0, 1=1\), and theta"):
        assert besag.fit(free, moments=q).stopped == "unbounded"
    zero = besag.markov_network({"A": 2}, [("A", [0.0, -np.inf])])
    with pytest.raises(ModelError, match="rule out what"):
        besag.fit(zero, moments=besag.markov_network({"A": 2}, [("A", [0.0, 0.0])]))


@given(model=models(max_labellings=100))
@examples(25)
def test_ranges_contain_all_labellings(model: besag.Model) -> None:
    low, high = ranges(model)
    labels = labellings(model.variables.cardinalities.tolist())
    features = phi(model, labels[allowed(model, labels)])
    if model.support is not None:
        features = np.where(model.support, features, 0.0)
    assert (features >= low - 1e-9).all()
    assert (features <= high + 1e-9).all()


def uniform_moments(model: besag.Model, keep: Any) -> np.ndarray:
    labels = [y for y in labellings(model.variables.cardinalities.tolist()) if keep(y)]
    return np.mean([model.graph.moments(y) for y in labels], axis=0)


@pytest.mark.parametrize("engine", ["exact", "bp"])
def test_an_unseen_state_is_on_the_boundary(engine: str) -> None:
    model = network(["AB", "BC"])
    with pytest.warns(ConvergenceWarning, match=r"boundary of the marginal polytope.*direction of \(A=0, B=1\), and"):
        found = besag.fit(model, moments=[0.5, 0, 0.25, 0.25, 0.25, 0.5, 0.125, 0.125], engine=engine)
    assert (found.converged, found.stopped) == (False, "unbounded")
    assert np.isfinite(found.theta).all()
    assert found.theta.argmax() == 1


def test_a_face_of_several_statistics_is_recognised_003_1E() -> None:
    """Three variables that are never all equal: no moment is at an end of its range."""
    model = network(["AB", "BC", "AC"])
    mu = uniform_moments(model, lambda y: len(set(y)) > 1)
    assert (mu > 0.1).all()
    with pytest.warns(ConvergenceWarning, match="boundary of the marginal polytope"):
        found = besag.fit(model, moments=mu)
    assert (found.converged, found.stopped) == (False, "unbounded")
    for given_, holds in (({"l2": 0.01}, True), ({"bounds": (-5, 5)}, True), ({"moments": 0.9 * mu + 0.025}, True)):
        assert besag.fit(model, **{"moments": mu, **given_}).converged is holds


def test_moments_beyond_the_polytope_are_no_optimum() -> None:
    """Locally consistent, but no distribution: three binary variables cannot all differ."""
    model = network(["AB", "BC", "AC"])
    with pytest.warns(ConvergenceWarning, match="or beyond it: the optimum is at infinity"):
        found = besag.fit(model, moments=np.tile([0.1, 0.4, 0.4, 0.1], 3))
    assert (found.converged, found.stopped) == (False, "unbounded")
    assert np.isfinite(found.theta).all()


def test_moments_close_to_the_boundary_have_an_optimum() -> None:
    model = network(["AB"])
    mu = np.array([0.5, 1e-7, 0.25, 0.25 - 1e-7])
    found = besag.fit(model, moments=mu, optimizer="lbfgs[tolerance=1e-11]")
    assert found.converged
    assert_allclose(found.model.joint(["A", "B"]).ravel(), mu, rtol=1e-3)
    assert besag.fit(model, moments=mu).converged


def test_moments_that_cannot_be_are_told() -> None:
    model = network(["AB", "BC"])
    mu = model.moments()
    for wrong, match in (
        (mu[:3], r"moments must have shape \(8,\), as theta has, got \(3,\)"),
        (np.where(np.arange(8) == 2, np.nan, mu), "moments must be finite numbers, got nan at 2"),
        ("mu", r"moments must be numbers \(P,\) or a Model, got str"),
        (np.where(np.arange(8) == 2, -0.3, mu), r"that of \(A=1, B=0\) is -0.3, and it can be from 0 to 1"),
        (0.9 * mu, "add up to 0.9, where its factors make them 1"),
        (network(["AB"]), "the model whose moments are matched has no variable 'C'"),
        (network(["AB", "BC"], 3), r"'A' has states \('0', '1', '2'\) in the model whose moments are matched"),
    ):
        with pytest.raises(ModelError, match=match):
            besag.fit(model, moments=wrong)
    with pytest.raises(ModelError, match="give either data to learn from, or moments= that the model"):
        besag.fit(model)
    with pytest.raises(ModelError, match="give either data to learn from, or moments= that the model"):
        besag.fit(model, [[0, 0, 0]], moments=mu)
    with pytest.raises(ModelError, match="weights are those of instances; moments have none"):
        besag.fit(model, moments=mu, weights=[1.0])
    with pytest.raises(ModelError, match="held_out= watches the loss on other data; moments have none"):
        besag.fit(model, moments=mu, held_out=[[0, 0, 0]])
    with pytest.raises(CapabilityError, match="newton_cg' cannot minimise within bounds"):
        besag.fit(model, moments=mu, bounds=(0, 1), optimizer="newton_cg")


@pytest.mark.parametrize(
    ("number", "name"), [(0, "node[0][0]"), (5, "node[1][2]"), (13, "edge[0, 1]"), (23, "bend[1][0]")]
)
def test_statistics_have_names(number: int, name: str) -> None:
    assert statistic_name(model_of(instances(7, 1)[0]), number) == name


@pytest.mark.parametrize("seed", range(3))
def test_the_model_of_other_inputs_is_learnt_with_its_own(seed: int) -> None:
    """`with_inputs` keeps the compiled Graph, whose inputs are those from before."""
    node = besag.Template("node", (2,), n_inputs=2)
    x = np.random.default_rng(seed).normal(size=(1, 2))
    old = besag.Model([2], [besag.FactorGroup(node, [[0]], inputs=[[9.0, 9.0]])], np.zeros(4))
    new = besag.Model([2], [besag.FactorGroup(node, [[0]], inputs=x)], np.zeros(4))
    theta = np.arange(4.0)
    for given_ in ({"data": [[0], [1], [1]]}, {"moments": new.with_theta(theta / 3).moments()}):
        values = [besag.objective("likelihood", m, **given_).value(theta) for m in (old.with_inputs({"node": x}), new)]
        assert values[0] == values[1]


def test_time_limits_hold() -> None:
    found = besag.fit(network(["AB", "BC", "AC"]), moments=network(["AB", "BC", "AC"], seed=1), time_limit=0.0)
    assert found.stopped == "time_limit"
