"""What must not change an answer, and what must change it in a known way.

Renaming and reordering, constants, evidence written into the model, rows of a batch, and the parts of a disjoint union.
"""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.model.model import FactorGroup, Model
from besag.model.variable import Variables
from tests.conformance.engines import Case, close, each_engine, names_of
from tests.strategies import evidence_for, examples, frame_for, generators, rows_of


def shuffled(model: Model, rng: np.random.Generator, added: np.ndarray | None = None) -> Model:
    """The same distribution from plain tables: variables, factors and the axes of each table in another order."""
    names, graph = names_of(model), model.graph
    order = rng.permutation(len(names))
    factors = []
    for f in rng.permutation(graph.n_factors):
        scope, table = graph.scope(f), model.problem.table(f)
        axes = rng.permutation(len(scope))
        constant = 0.0 if added is None else added[f]
        factors.append(([names[v] for v in scope[axes]], table.transpose(axes) + constant))
    return besag.markov_network({names[v]: model.variables.states(v) for v in order}, factors)


def thinned(model: Model, rng: np.random.Generator) -> Model:
    """The same variables, templates and theta with only some of the factors."""
    return model.with_parts(groups=[_thinned(group, rng) for group in model.groups])


def _thinned(group: FactorGroup, rng: np.random.Generator) -> FactorGroup:
    keep = np.flatnonzero(rng.random(len(group)) < 0.6)
    inputs = None if group.inputs is None else group.inputs[keep]
    names = None if group.names is None else tuple(group.names[i] for i in keep)
    return FactorGroup(group.template, group.scopes[keep], inputs, names=names)


def union_of(parts: list[Model], evidence: list[Any], weights: np.ndarray | None = None) -> Problem:
    """The disjoint union of models that share templates, each under its own evidence, with the theta of the first."""
    read = [read_evidence(part.variables, given) for part, given in zip(parts, evidence, strict=True)]
    states = [int(part.variables.state_offsets[-1]) for part in parts]
    log_weights = [
        np.zeros((1, n)) if e.log_weights is None else e.log_weights for e, n in zip(read, states, strict=True)
    ]
    joined = Evidence(np.concatenate([e.observed for e in read], axis=1), np.concatenate(log_weights, axis=1))
    graph = besag.compile_graph(*parts)
    return graph.bind(parts[0].theta, evidence=joined, weights=weights, support=parts[0].support)


@each_engine("log_partition", "variables", "map", exact=True)
@examples(30)
@given(data=st.data())
def test_names_do_not_matter(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    renamed = {f"new {i}": [f"{s}!" for s in v.states] for i, v in enumerate(model.variables)}
    other = model.with_parts(variables=Variables.from_states(renamed))
    one, two = (case.ask(m, None, "log_partition", "variables", "map") for m in (model, other))
    assert one.log_partition == two.log_partition
    assert one.energy == two.energy
    for old, new in zip(names_of(model), renamed, strict=True):
        np.testing.assert_array_equal(one[old], two[new])
        assert two.assignment[new] == f"{one.assignment[old]}!"


@each_engine("log_partition", "variables", "map", exact=True)
@examples(40)
@given(data=st.data(), rng=generators())
def test_order_of_variables_factors_and_axes_does_not_matter(
    case: Case, data: DataObject, rng: np.random.Generator
) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    other = shuffled(model, rng)
    one, two = (case.ask(m, evidence, "log_partition", "variables", "map") for m in (model, other))
    close(one.log_partition, two.log_partition)
    close(one.energy, two.energy)
    for name in names_of(model):
        close(one[name], two[name])


@each_engine("log_partition", "variables", "map", exact=True)
@examples(25)
@given(data=st.data(), rng=generators())
def test_a_constant_adds_to_log_partition_and_to_nothing_else(
    case: Case, data: DataObject, rng: np.random.Generator
) -> None:
    model = data.draw(case.models())
    added = rng.normal(size=model.n_factors) * 10
    one, two = (case.ask(m, None, "log_partition", "variables", "map") for m in (model, shuffled(model, rng, added)))
    close(two.log_partition, one.log_partition + added.sum())
    close(two.energy, one.energy - added.sum())
    for name in names_of(model):
        close(one[name], two[name])


@each_engine("log_partition", "variables", "map", exact=True)
@examples(40)
@given(data=st.data())
def test_evidence_is_conditioning(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    evidence = data.draw(evidence_for(model))
    one = case.ask(model, evidence, "log_partition", "variables", "map")
    two = case.ask(model.condition(evidence), None, "log_partition", "variables", "map")
    close(one.log_partition, two.log_partition)
    close(one.energy, two.energy)
    for name in names_of(model):
        close(one[name], two[name])


@each_engine("log_partition", "variables", "factors", "moments", "map", exact=True)
@examples(40)
@given(data=st.data())
def test_rows_of_a_batch_are_single_queries(case: Case, data: DataObject) -> None:
    model = data.draw(case.models())
    frame = data.draw(frame_for(model))
    wants = ("log_partition", "variables", "factors", "moments", "map")
    batch = case.ask(model, frame, *wants)
    singles = [case.ask(model, row, *wants) for row in rows_of(frame)]
    close(batch.log_partition, [single.log_partition for single in singles])
    close(batch.energy, [single.energy for single in singles])
    close(batch.moments, np.sum([single.moments for single in singles], axis=0))
    for name in names_of(model):
        close(batch[name], [single[name] for single in singles])
    for number in range(model.n_factors):
        close(batch.factor(number), [single.factor(number) for single in singles])


@each_engine("log_partition", "variables", "factors", "map", exact=True)
@examples(40)
@given(data=st.data(), rng=generators())
def test_parts_of_a_union_are_single_queries(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models())
    parts = [model, thinned(model, rng), model]
    evidence = [data.draw(evidence_for(part)) for part in parts]
    wants = ("log_partition", "variables", "factors", "map")
    union = case.infer(union_of(parts, evidence), *wants)
    singles = [case.ask(part, given, *wants) for part, given in zip(parts, evidence, strict=True)]
    close(union.log_partition, [single.log_partition for single in singles])
    close(union.energy, [single.energy for single in singles])
    for i, (part, single) in enumerate(zip(parts, singles, strict=True)):
        close(union[i].log_partition, single.log_partition)
        close(union[i].energy, single.energy)
        assert union[i].keys() == names_of(part)
        for name in names_of(part):
            close(union[i][name], single[name])
            close(union[f"{i}:{name}"], single[name])
        for number in range(part.n_factors):
            close(union[i].factor(number), single.factor(number))


@each_engine("moments", exact=True)
@examples(30)
@given(data=st.data(), rng=generators())
def test_moments_of_a_union_add_with_the_weights(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models())
    parts = [thinned(model, rng), model]
    evidence = [data.draw(evidence_for(part)) for part in parts]
    weights = rng.normal(size=2)
    problem = union_of(parts, evidence, weights)
    union = problem.graph.moments(case.infer(problem, "moments").moments)
    singles = [case.ask(part, given, "moments").moments for part, given in zip(parts, evidence, strict=True)]
    by_theta = [part.graph.moments(moments) for part, moments in zip(parts, singles, strict=True)]
    close(union, weights @ np.array(by_theta))


@each_engine("log_partition", "variables", "factors", exact=True)
@examples(30)
@given(data=st.data(), rng=generators())
def test_taking_parts_of_a_union(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models())
    parts = [model, thinned(model, rng), thinned(model, rng)]
    taken = [2, 0] if rng.random() < 0.5 else [1]
    graph = besag.compile_graph(*parts).take(taken)
    result = case.infer(graph.bind(model.theta, support=model.support), "log_partition", "variables", "factors")
    for i, part in enumerate(taken):
        single = case.ask(parts[part], None, "log_partition", "variables", "factors")
        found = result.instance(i)
        close(found.log_partition, single.log_partition)
        for name in names_of(model):
            close(found[name], single[name])
        for number in range(parts[part].n_factors):
            close(found.factor(number), single.factor(number))
