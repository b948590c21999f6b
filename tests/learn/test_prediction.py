"""What a fitted model says of data: labels, marginals and probabilities of structured data and rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, EvidenceError, ModelError
from besag.infer.engine import ENGINES
from besag.learn.fit import Fit
from tests.learn.losses.test_likelihood import instances, model_of
from tests.oracle import Enumeration


def fresh(n: int, hidden: float = 0.0) -> list[besag.StructuredData]:
    """Instances that the fit has not seen."""
    return instances(7, 8 + n, hidden=hidden)[8:]


def unlabelled(data: besag.StructuredData) -> besag.StructuredData:
    return besag.StructuredData(data.variables, data.groups)


def on(fit: Fit, data: besag.StructuredData) -> Enumeration:
    """Enumeration of p(y | x, theta), made without `with_data`: the data of these tests have one layout."""
    return Enumeration(model_of(data, fit.theta))


@pytest.fixture(scope="module")
def fit() -> Fit:
    data = instances(7, 8)
    return besag.fit(model_of(data[0]), data, l2=1.0)


def test_predict_is_the_least_energy_002_2_22(fit: Fit) -> None:
    """F(x; theta) of 004; labels do not matter, nor whether there are any."""
    data = fresh(6)
    found = fit.predict(data)
    for part, labels in zip(data, found, strict=True):
        exact = on(fit, part)
        assert_array_equal(labels, exact.labels[exact.log_weights.argmax()])
        assert_array_equal(fit.predict(unlabelled(part)), labels)
        assert_array_equal(fit.model.map(part).labels, labels)
    for given in (iter(data), besag.Dataset.union(data), [unlabelled(part) for part in data]):
        assert [labels.tolist() for labels in fit.predict(given)] == [labels.tolist() for labels in found]


def test_predict_marginals_002_24(fit: Fit) -> None:
    data = fresh(6)
    for part, p in zip(data, fit.predict_marginals(data), strict=True):
        exact = on(fit, part)
        assert_allclose(p, [exact.marginal(v.name) for v in exact.model.variables], atol=1e-12)
        assert_allclose(fit.predict_marginals(part), p, atol=1e-12)
        assert_allclose(fit.model.marginals(part).array, p, atol=1e-12)
        assert_allclose(fit.model.marginals(evidence=part).array, p, atol=1e-12)


@pytest.mark.parametrize("hidden", [0.0, 0.5, 1.0])
def test_log_proba_of_labels_002_11(fit: Fit, hidden: float) -> None:
    data = fresh(6, hidden=hidden)
    found = fit.log_proba(data)
    for part, value in zip(data, found, strict=True):
        exact = on(fit, part)
        agrees = ((part.labels < 0) | (exact.labels == part.labels)).all(axis=1)
        assert value == pytest.approx(np.log(exact.p[agrees].sum()), abs=1e-10)
        assert fit.log_proba(part) == pytest.approx(value, abs=1e-10)
        assert fit.model.log_probability(part) == pytest.approx(value, abs=1e-10)
    assert_allclose(fit.log_proba(besag.Dataset.union(data)), found)


def test_the_map_answer_has_its_probability_004(fit: Fit) -> None:
    """004: p(y | x; theta) is the confidence of the prediction."""
    part = fresh(1)[0]
    answer, exact = fit.model.map(part), on(fit, part)
    assert answer.log_probability == pytest.approx(np.log(exact.p.max()), abs=1e-12)
    assert fit.model.map(part, k=3).log_probability == pytest.approx(answer.log_probability, abs=1e-12)
    predicted = besag.StructuredData(part.variables, part.groups, fit.predict(part))
    assert fit.log_proba(predicted) == pytest.approx(answer.log_probability, abs=1e-12)


@pytest.mark.parametrize("engine", ["auto", "brute", "tree", "junction_tree"])
def test_the_map_answer_has_its_probability_under_evidence(engine: str) -> None:
    model = besag.data.bundled("factors_002")
    exact = Enumeration(model, {"y1": "1"})
    assert model.map({"y1": "1"}, engine=engine).log_probability == pytest.approx(np.log(exact.p.max()), abs=1e-12)
    batch = model.map(pd.DataFrame({"y1": ["1", "0"]}), engine=engine).log_probability
    expected = [np.log(Enumeration(model, {"y1": state}).p.max()) for state in "10"]
    assert_allclose(batch, expected, atol=1e-12)


def test_the_probability_of_every_engine_is_its_energy_less_its_log_z() -> None:
    model = besag.data.bundled("factors_002")
    for name in ENGINES:
        wants = ENGINES.find(name).capabilities.wants
        if "map" in wants and "log_partition" in wants:
            answer = model.map(engine=name)
            log_z = model.log_partition(engine=name)
            assert answer.log_probability == pytest.approx(min(-answer.energy - log_z, 0.0), abs=1e-9), name


def test_a_marginal_map_answer_has_its_probability() -> None:
    model = besag.data.bundled("asia")
    best = model.marginal_map(["lung", "bronc"], {"dysp": "yes"})
    joint = model.joint(["lung", "bronc"], {"dysp": "yes"})
    assert best.log_probability == pytest.approx(np.log(joint.max()), abs=1e-12)


def test_a_union_has_a_probability_of_each_instance(fit: Fit) -> None:
    data = fresh(4)
    graph = besag.compile_graph(*data, layout=fit.model.layout)
    answer = ENGINES.read("exact").infer(graph.bind(fit.theta), frozenset({"map", "log_partition"}))
    expected = [np.log(on(fit, part).p.max()) for part in data]
    assert_allclose(answer.log_probability, expected, atol=1e-12)
    assert [answer[n].log_probability for n in range(4)] == pytest.approx(expected, abs=1e-12)


def test_energy_partition_function_and_samples_of_data_002_7_10(fit: Fit) -> None:
    part = fresh(1)[0]
    exact = on(fit, part)
    at = int(np.flatnonzero((exact.labels == part.labels).all(axis=1))[0])
    assert fit.model.energy(part) == pytest.approx(-exact.log_weights[at])
    assert fit.model.log_partition(part) == pytest.approx(exact.log_z)
    drawn = fit.model.sample(4000, part, seed=1)["0"].value_counts(normalize=True, sort=False)
    assert_allclose(drawn, exact.marginal("0"), atol=5 * 0.5 / np.sqrt(4000))  # five standard errors


def test_a_template_is_found_by_its_name() -> None:
    """Data may use a part of the templates, in another order; hard zeros of the model come along."""
    left, right = besag.Template("left", (2,)), besag.Template("right", (3,))
    link = besag.Template("link", (2, 3), support=np.array([[True, True, False], [True, True, True]]))
    groups = [besag.FactorGroup(left, [[0]]), besag.FactorGroup(link, [[0, 1]]), besag.FactorGroup(right, [[1]])]
    theta = np.random.default_rng(0).normal(size=11)
    support = np.ones(11, np.bool_)
    theta[9], support[9] = 0.0, False
    model = besag.Model([2, 3], groups, theta, support)
    data = besag.StructuredData([3, 2], [besag.FactorGroup(right, [[0]]), besag.FactorGroup(left, [[1]])])
    p = model.marginals(data)
    assert_allclose(p["0"], np.exp(-theta[8:]) * support[8:] / (np.exp(-theta[8:]) * support[8:]).sum())
    assert_allclose(p["1"], np.exp(-theta[:2]) / np.exp(-theta[:2]).sum())
    with pytest.raises(ModelError, match="the data have a template 'edge', of which the model has no parameters"):
        model.map(besag.StructuredData([2, 2], [besag.FactorGroup(besag.Template("edge", (2, 2)), [[0, 1]])]))
    with pytest.raises(ModelError, match="template 'left' of the data differs from that of the model"):
        model.map(besag.StructuredData([3], [besag.FactorGroup(besag.Template("left", (3,)), [[0]])]))


def test_variables_of_several_cardinalities_are_padded() -> None:
    template = besag.Template("a", (2, 3))
    data = [besag.StructuredData([2, 3], [besag.FactorGroup(template, [[0, 1]])], [0, 2]) for _ in range(3)]
    found = besag.fit(besag.Model(data[0].variables, data[0].groups, np.zeros(6)), data, l2=1.0)
    p = found.predict_marginals(data[0])
    assert p.shape == (2, 3)
    assert p[0, 2] == 0
    assert_allclose(p.sum(axis=1), 1.0)


def test_conditional_tables_of_data_are_conditional_only_where_rows_sum_to_one() -> None:
    network = besag.bayesian_network("A -> B").with_cpt("A", [0.2, 0.8])
    data = besag.StructuredData.from_model(network, ["0", "1"])
    assert network.with_data(data).is_bayesian_network
    other = network.with_theta(network.theta * 3)
    assert not other.with_data(data).is_bayesian_network
    assert other.log_probability(data) == pytest.approx(other.log_probability({"A": "0", "B": "1"}))


def test_rows_are_completed() -> None:
    """What is known in a row is evidence."""
    asia = besag.data.bundled("asia")
    free = besag.Model(asia.variables, asia.groups, np.zeros_like(asia.theta), asia.support)
    found = besag.fit(free, asia.sample(200, seed=1), l2=0.1)
    rows = pd.DataFrame({"smoke": ["yes", "no"], "xray": ["no", None]}, index=["a", "b"])
    best = found.predict(rows)
    expected = [found.model.map({"smoke": "yes", "xray": "no"}), found.model.map({"smoke": "no"})]
    assert best.to_dict("records") == [answer.assignment for answer in expected]
    assert best.index.tolist() == ["a", "b"]
    codes = np.full((2, 8), -1)
    codes[:, asia.variables.index("smoke")] = [1, 0]
    by_hand = [
        [asia.variable(v.name).states.index(row[v.name]) for v in asia.variables]
        for row in (found.model.map({"smoke": asia.variable("smoke").states[k]}).assignment for k in (1, 0))
    ]
    assert found.predict(codes).tolist() == found.predict(besag.Dataset.rows(found.model, codes)).tolist() == by_hand
    assert_allclose(
        found.predict_marginals(codes),
        found.model.marginals(
            evidence=pd.DataFrame({"smoke": [asia.variable("smoke").states[k] for k in (1, 0)]})
        ).array,
    )
    assert_allclose(found.log_proba(rows), found.model.log_probability(rows))


def test_what_cannot_be_predicted_is_told(fit: Fit) -> None:
    data = fresh(2)
    with pytest.raises(ModelError, match="instance 1 has no labels, of which log_proba is the probability"):
        fit.log_proba([data[0], unlabelled(data[1])])
    with pytest.raises(ModelError, match="instance 1 must be StructuredData like the first one, got int"):
        fit.predict([data[0], 3])
    with pytest.raises(ModelError, match=r"the structured data have no labels; .* ask model.with_data\(data\)"):
        fit.model.log_probability(unlabelled(data[0]))
    with pytest.raises(ModelError, match="with_data takes StructuredData, got dict"):
        fit.model.with_data({})  # type: ignore[arg-type]
    hint = r"ask model.with_data\(data\) about an instance of structured data, fit.predict\(data\) about several"
    for ask, given in (
        (fit.model.entropy, data[0]),
        (fit.model.session, data[0]),
        (fit.model.map, data),
        (fit.model.map, besag.Dataset.union(data)),
    ):
        with pytest.raises(EvidenceError, match=f"got {type(given).__name__}; {hint}"):
            ask(given)  # type: ignore[operator]
    with pytest.raises(CapabilityError, match="engine 'gibbs' cannot give log_partition"):
        fit.log_proba(data, engine="gibbs")
    with pytest.raises(TypeError, match="unknown options"):
        fit.predict(data, colour="red")  # type: ignore[call-arg]


def test_an_instance_without_a_labelling_is_named() -> None:
    ones = besag.Template("ones", (2,), support=np.array([False, True]))
    same = besag.Template("same", (2, 2))
    zeros = besag.Template("zeros", (2,), support=np.array([True, False]))
    groups = [besag.FactorGroup(ones, [[0]]), besag.FactorGroup(same, [[0, 1]]), besag.FactorGroup(zeros, [[1]])]
    good = besag.StructuredData([2, 2], groups, [1, 0])
    bad = besag.StructuredData([2, 2], [*groups[:2], besag.FactorGroup(zeros, [[0]])], [1, 1])
    found = besag.fit(besag.Model(good.variables, good.groups, np.zeros(8)), [good], l2=1.0)
    for ask in (found.predict, found.predict_marginals, found.log_proba):
        with pytest.raises(EvidenceError, match="instance 1 has no labelling that the hard zeros allow"):
            ask([good, bad])


def test_a_dataset_takes_instances_without_labels_002() -> None:
    """Summed out, they say nothing of theta; given to learn from in a list, they are taken for a mistake."""
    data = fresh(4)
    model, blank = model_of(data[0]), unlabelled(data[3])
    together = besag.objective("likelihood", model, besag.Dataset.union([*data[:3], blank]))
    alone = besag.objective("likelihood", model, data[:3])
    theta = np.random.default_rng(0).normal(size=model.layout.n_parameters)
    assert together.value_and_grad(theta)[0] == pytest.approx(alone.value_and_grad(theta)[0])
    with pytest.raises(ModelError, match="instance 3 has no labels to learn from"):
        besag.fit(model, [*data[:3], blank])
    with pytest.raises(ModelError, match="no instance has a label to learn from"):
        besag.fit(model, besag.Dataset.union([blank, blank]))
