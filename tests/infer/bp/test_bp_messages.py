"""The messages of belief propagation as 002 (33)-(37) and (41)-(44) write them: shown, kept, and given back."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, EvidenceError, TooLargeError
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.model.model import Model
from tests.infer.bp.test_bp import SCHEDULES, grid, set_worth
from tests.oracle import Enumeration
from tests.routes import Forced
from tests.strategies import evidence_for, examples, forests, models

POTTS = besag.grid((4, 4), 3, np.random.default_rng(1).normal(size=(4, 4, 3)), besag.potts(3), 0.4)
STEPS = "bp[schedule={},damping={},tolerance=0,max_iterations={}]"


def incoming(frame: pd.DataFrame, target: str) -> Iterator[np.ndarray]:
    """What a variable hears, message by message."""
    for _, message in frame[frame["target"] == target].groupby("step"):
        yield message["value"].to_numpy()


def of_pair(frame: pd.DataFrame, source: str, target: str) -> list[np.ndarray]:
    """The messages from one node to another; several where two factors have one name."""
    chosen = frame[(frame["source"] == source) & (frame["target"] == target)]
    return [message["value"].to_numpy() for _, message in chosen.groupby("step")]


def factors_of(model: Model) -> list[tuple[str, int, list[str]]]:
    """The name of every factor, which of that name it is, and its variables."""
    names = [model.graph.factor_name(f) for f in range(model.graph.n_factors)]
    scopes = [model.variables.names_at(model.graph.scope(f)) for f in range(len(names))]
    return [(name, names[:f].count(name), scopes[f]) for f, name in enumerate(names)]


def belief_of_factor(model: Model, frame: pd.DataFrame, f: int) -> np.ndarray:
    """002 (37): the factor times what its variables say to it, normalised."""
    name, number, scope = factors_of(model)[f]
    said = [of_pair(frame, v, name)[number] for v in scope]
    weights = np.exp(model.problem.table(f)) * functools.reduce(np.multiply.outer, said)
    return np.asarray(weights / weights.sum())


def check_beliefs(model: Model, r: Result, frame: pd.DataFrame) -> None:
    for variable in model.variables:
        product = functools.reduce(np.multiply, incoming(frame, variable.name), np.ones(variable.cardinality))
        assert_allclose(product / product.sum(), r[variable.name], atol=1e-12)
    for f in range(model.graph.n_factors):
        offsets = np.cumsum([0, *(model.problem.table(i).size for i in range(model.graph.n_factors))])
        assert r.factor_marginals is not None
        assert_allclose(
            belief_of_factor(model, frame, f).reshape(-1),
            r.factor_marginals[0, offsets[f] : offsets[f + 1]],
            atol=1e-12,
        )


@examples(80)
@given(data=st.data())
def test_002_36_37_incoming_messages_multiply_to_the_beliefs_at_every_iterate(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(st.none() | evidence_for(model))
    schedule, damping = data.draw(st.sampled_from(SCHEDULES)), data.draw(st.sampled_from([0.0, 0.3]))
    r = model.marginals(
        engine=STEPS.format(schedule, damping, data.draw(st.integers(1, 6))), evidence=evidence, trace=True
    )
    r.factor(0) if model.n_factors else None
    if r.factor_marginals is None:
        return
    check_beliefs(model, r, r.messages)


@examples(60)
@given(data=st.data())
def test_002_34_variables_say_the_product_of_what_all_other_factors_said(data: st.DataObject) -> None:
    model = data.draw(models())
    frame = model.marginals(
        engine=STEPS.format("synchronous", 0.0, 3), evidence=data.draw(st.none() | evidence_for(model)), trace=True
    ).messages
    for variable in model.variables:
        heard = list(incoming(frame, variable.name))
        sources = [m["source"].iloc[0] for _, m in frame[frame["target"] == variable.name].groupby("step")]
        said = [m["value"].to_numpy() for _, m in frame[frame["source"] == variable.name].groupby("step")]
        hidden = sources.count("evidence")
        assert len(said) == len(heard) - hidden
        for i, message in enumerate(said, start=hidden):
            others = [other for j, other in enumerate(heard) if j != i]
            product = functools.reduce(np.multiply, others, np.ones(variable.cardinality))
            assert_allclose(message, product / product.sum(), atol=1e-12)


def literal(model: Model, n: int) -> Iterator[dict[tuple[int, int], np.ndarray]]:
    """002 (34), (35) from constants, all messages at once: what factors say, n times."""
    scopes = [model.graph.scope(f).tolist() for f in range(model.graph.n_factors)]
    edges = [(f, v) for f, scope in enumerate(scopes) for v in scope]
    cards = model.variables.cardinalities
    psi = [np.exp(model.problem.table(f)) for f in range(len(scopes))]
    m = {(f, v): psi[f] if len(scopes[f]) == 1 else np.ones(cards[v]) for f, v in edges}
    for _ in range(n):
        q = {
            (f, v): functools.reduce(np.multiply, (m[g, u] for g, u in edges if u == v and g != f), np.ones(cards[v]))
            for f, v in edges
        }
        for f, v in edges:
            table = psi[f]
            for axis, u in enumerate(scopes[f]):
                shape = [-1 if a == axis else 1 for a in range(table.ndim)]
                table = table * (q[f, u] if u != v else np.ones(cards[v])).reshape(shape)
            sent = table.sum(axis=tuple(a for a, u in enumerate(scopes[f]) if u != v))
            m[f, v] = sent / sent.sum()
        yield m


@examples(60)
@given(model=models())
def test_002_35_every_iteration_is_that_of_the_formulas_from_constants(model: Model) -> None:
    assume((Prepared(model.problem, frozenset({0}), None).base > -np.inf).all())  # others lose states beforehand
    frame = model.marginals(engine=STEPS.format("synchronous", 0.0, 4), trace="messages").messages
    factors = factors_of(model)
    for number, m in enumerate(literal(model, 4), start=1):
        shown = frame[frame["iteration"] == number]
        for (f, v), expected in m.items():
            name, nth, scope = factors[f]
            got = of_pair(shown, name, model.variables.names[v])[nth]
            assert len(scope) == 1 or got.sum() == pytest.approx(1.0)
            assert_allclose(got, expected / expected.sum(), atol=1e-10)


@examples(40)
@given(data=st.data())
def test_002_44_incoming_energies_add_up_to_min_marginals_on_forests(data: st.DataObject) -> None:
    model = data.draw(forests())
    evidence = data.draw(st.none() | evidence_for(model))
    engine = f"bp[schedule={data.draw(st.sampled_from(SCHEDULES))}]"
    frame = model.map(engine=engine, evidence=evidence, trace=True).messages
    everything = Enumeration(model, evidence or {})
    for variable in model.variables:
        total = sum(incoming(frame, variable.name), np.zeros(variable.cardinality))
        best = np.array(
            [-everything.log_weights[everything.column(variable.name) == k].max() for k in range(variable.cardinality)]
        )
        assert total.min() < np.inf
        assert_allclose(total - total.min(), best - best.min(), atol=1e-8)


def test_each_node_of_the_factor_graph_sends_and_is_sent_messages_like_in_the_tree_engine() -> None:
    chain = besag.chain(np.random.default_rng(0).normal(size=(5, 3)), np.random.default_rng(1).normal(size=(3, 3)))
    evidence = {"1": ["0", "2"], "4": "1"}
    of_tree, of_bp = (chain.marginals(evidence=evidence, engine=e, trace=True).messages for e in ("tree", "bp"))
    keys = ["source", "target", "state"]
    assert set(map(tuple, of_tree[keys].to_numpy())) == set(map(tuple, of_bp[keys].to_numpy()))
    both = of_tree.merge(of_bp, on=keys, suffixes=("_tree", "_bp"))
    scaled = both["value_tree"] / both.groupby(["source", "target"])["value_tree"].transform("sum")
    assert_allclose(scaled, both["value_bp"], atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("paired", [True, False])
def test_002_35_the_messages_of_every_iteration_are_those_of_as_many_iterations(
    schedule: str, paired: bool, forced: Forced
) -> None:
    set_worth(forced, 0 if paired else 2**30)
    model = grid(3, 2, 1.0)
    kept = model.marginals(engine=STEPS.format(schedule, 0.0, 5), trace="messages")
    frame = kept.messages
    assert list(frame.columns) == ["iteration", "step", "source", "target", "state", "value"]
    assert frame["iteration"].unique().tolist() == kept.trace["iteration"].tolist() == [1, 2, 3, 4, 5]
    steps = list(model.steps(engine=STEPS.format(schedule, 0.0, 5), trace="messages"))
    for number in range(1, 6):
        alone = model.marginals(engine=STEPS.format(schedule, 0.0, number), trace=True)
        part = frame[frame["iteration"] == number].drop(columns="iteration").reset_index(drop=True)
        pd.testing.assert_frame_equal(part, alone.messages, rtol=1e-13)
        pd.testing.assert_frame_equal(steps[number - 1].messages, frame[frame["iteration"] <= number], rtol=1e-13)


def test_the_messages_of_every_iteration_fit_or_are_refused_and_belong_to_one_row() -> None:
    model = grid(3, 2, 1.0)
    with pytest.raises(
        TooLargeError, match=r"messages of every iteration would take 384000 bytes.*bp\[max_iterations=20\]"
    ):
        model.marginals(engine="bp", trace="messages", memory_limit=300_000)
    assert len(model.marginals(engine="bp[max_iterations=50]", trace="messages", memory_limit=300_000).messages) > 0
    with pytest.raises(EvidenceError, match="messages are traced for one row of evidence"):
        model.marginals(evidence=pd.DataFrame({"0,0": ["0", "1"]}), engine="bp", trace="messages")
    with pytest.raises(CapabilityError, match=r"engine 'mean_field' cannot give messages; .*bp"):
        model.marginals(engine="mean_field", trace="messages")
    with pytest.raises(CapabilityError, match="trace must be True, False or 'messages', got 'all'"):
        model.marginals(engine="bp", trace="all")  # type: ignore[arg-type]
    with pytest.raises(CapabilityError, match="keep_messages must be true or false, got 3"):
        model.marginals(engine="bp[keep_messages=3]")


@examples(60)
@given(data=st.data())
def test_002_34_35_a_fixed_point_given_back_converges_in_one_iteration(data: st.DataObject) -> None:
    model = data.draw(forests())
    evidence = data.draw(st.none() | evidence_for(model))
    engine = f"bp[schedule={data.draw(st.sampled_from(SCHEDULES))}]"
    verb = data.draw(st.sampled_from([model.marginals, model.map]))
    r: Result = verb(evidence=evidence, engine=engine, trace=True)  # type: ignore[operator]
    again: Result = verb(evidence=evidence, engine=engine, trace=True, init=r.messages)  # type: ignore[operator]
    assert again.diagnostics["converged"]
    assert again.diagnostics["iterations"] == 1
    pd.testing.assert_frame_equal(again.messages, r.messages, atol=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_a_fixed_point_of_a_graph_with_cycles_is_one_again(schedule: str, damping: float) -> None:
    for model in (grid(4, 3, 0.7), POTTS, grid(3, 2, 200.0)):
        engine = f"bp[schedule={schedule},damping={damping}]"
        r = model.marginals(evidence={"0,0": "1"}, engine=engine, trace=True)
        assert r.diagnostics["converged"]
        again = model.marginals(evidence={"0,0": "1"}, engine=engine, init=r.messages)
        assert again.diagnostics["iterations"] == 1
        assert_allclose(again.array, r.array, atol=1e-7)


def test_002_constants_are_the_default_start() -> None:
    """ "Initialize all messages as normalized constant functions": what is given or not, and of which scale."""
    model = grid(3, 3, 1.0)
    frame = model.marginals(engine=STEPS.format("synchronous", 0.0, 3), trace=True).messages
    factors = [(n, v) for n, _, scope in factors_of(model) for v in scope if len(scope) == 2]
    for constant in (1.0, 1 / 3):
        start = {pair: np.full(3, constant) for pair in factors}
        given = model.marginals(engine=STEPS.format("synchronous", 0.0, 3), init=start, trace=True).messages
        pd.testing.assert_frame_equal(given, frame)
    some = {factors[0]: [2.0, 2.0, 2.0]}
    given = model.marginals(engine=STEPS.format("synchronous", 0.0, 3), init=some, trace=True).messages
    pd.testing.assert_frame_equal(given, frame)


def test_the_first_iteration_begins_at_the_messages_that_are_given() -> None:
    model = besag.markov_network({"A": 2, "B": 2}, {"f": (("A", "B"), [[1, 2], [3, 4]])}, given="weight")
    start = {("f", "A"): [0.9, 0.1], ("f", "B"): [5.0, 0.0]}
    frame = model.marginals(engine="bp[schedule=sequential,max_iterations=1,tolerance=0]", init=start, trace=True)
    assert_allclose(of_pair(frame.messages, "f", "A")[0], [0.3, 0.7])
    looped = grid(3, 2, 1.0)
    begun = looped.marginals(engine=STEPS.format("synchronous", 0.0, 2), trace=True).messages
    on = looped.marginals(engine=STEPS.format("synchronous", 0.0, 3), init=begun, trace=True).messages
    whole = looped.marginals(engine=STEPS.format("synchronous", 0.0, 5), trace="messages").messages
    assert_allclose(on["value"], whole.loc[whole["iteration"] == 5, "value"], atol=1e-12)
    last = looped.marginals(engine=STEPS.format("synchronous", 0.0, 1), init=whole, trace=True).messages
    six = looped.marginals(engine=STEPS.format("synchronous", 0.0, 6), trace=True).messages
    assert_allclose(last["value"], six["value"], atol=1e-12)


def test_a_weight_of_zero_rules_nothing_out() -> None:
    """Two messages that contradict each other: the start is forgotten, and the answer is exact."""
    chain = besag.chain(np.zeros((3, 2)), np.array([[0.0, 1.0], [1.0, 0.5]]))
    start = {("f(0,1)", "1"): [1.0, 0.0], ("f(1,2)", "1"): [0.0, 1.0]}
    r = chain.marginals(engine="bp", init=start)
    assert_allclose(r.array, chain.marginals(engine="brute").array, atol=1e-9)
    assert_allclose(r.log_partition, chain.log_partition(), atol=1e-9)


def test_every_row_of_a_batch_begins_at_the_messages() -> None:
    model = grid(3, 2, 0.5)
    start = model.marginals(engine="bp", trace=True).messages
    rows = pd.DataFrame({"0,0": ["0", "1", None]})
    begun = model.marginals(evidence=rows, engine="bp", init=start)
    assert_allclose(begun.array, model.marginals(evidence=rows, engine="bp").array, atol=1e-7)
    seen = model.marginals(evidence={"0,0": "1"}, engine="bp", trace=True)
    back = model.marginals(engine="bp", init=seen.messages)  # of a question with evidence
    assert_allclose(back.array, model.marginals(engine="bp").array, atol=1e-7)


FRAME = pd.DataFrame(
    {"source": ["f", "f"], "target": ["A", "A"], "state": ["no", "yes"], "value": [0.5, 0.5]}, index=[10, 11]
)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (FRAME.assign(source="ff"), r"init row 10: no message goes from 'ff' to 'A'; did you mean"),
        (FRAME.assign(target="B"), r"init row 10: 'no' is no state of 'B'; there are \['0', '1', '2'\]"),
        (FRAME.assign(state=["no", "maybe"]), r"init row 11: 'maybe' is no state of 'A'"),
        (FRAME.assign(value=[0.5, np.nan]), r"init row 11: values of messages are weights, .* got nan"),
        (FRAME.assign(value=[-0.5, 0.5]), r"init row 10: values of messages are weights, .* got -0.5"),
        (FRAME.assign(value=[0.0, 0.0]), r"init row 10: a message must leave at least one state"),
        (FRAME[:1], r"init row 10: give all states of 'A', \['no', 'yes'\], once each"),
        (pd.concat([FRAME, FRAME]), r"init row 10: 1 messages go from 'f' to 'A', got 2"),
        (FRAME.drop(columns="value"), r"columns source, target, state, value, .*; \['value'\] missing"),
        (FRAME.assign(source="A", target="f"), r"init row 10: a variable's message follows .* 002 \(34\)"),
        ({("f", "A"): [0.5, "x"]}, r"init \('f', 'A'\): expected numbers"),
        ({("f", "A"): [0.5]}, r"init \('f', 'A'\): a message about 'A' has 2 values, got shape \(1,\)"),
        ({("f", "A"): [0.5, np.inf]}, r"init \('f', 'A'\): values of messages are weights"),
        ({("A", "B"): [0.5, 0.5]}, r"init \('A', 'B'\): no message goes from 'A' to 'B'"),
        ({"f": [0.5, 0.5]}, r"init: messages are given by \(source, target\), got 'f'"),
        (3, r"init must be a Result, a DataFrame of messages .*, got int"),
    ],
)
def test_messages_that_cannot_be_read_are_named(start: Any, message: str) -> None:
    model = besag.markov_network({"A": ["no", "yes"], "B": 3}, {"f": (("A", "B"), np.zeros((2, 3)))})
    with pytest.raises(CapabilityError, match=message):
        model.marginals(engine="bp", init=start)


def test_energies_may_be_infinite_or_negative_and_other_engines_begin_at_results() -> None:
    model = besag.markov_network({"A": ["no", "yes"], "B": 3}, {"f": (("A", "B"), np.arange(6.0).reshape(2, 3))})
    r = model.map(engine="bp", init={("f", "A"): [-3.0, np.inf]})
    assert r.assignment == {"A": "yes", "B": "2"}
    with pytest.raises(CapabilityError, match=r"energies, numbers that are not -inf, got -inf"):
        model.map(engine="bp", init={("f", "A"): [-np.inf, 0.0]})
    with pytest.raises(TypeError, match="init must be a Result to start from, got dict"):
        model.marginals(engine="trw", init={("f", "A"): [0.5, 0.5]})


def test_two_factors_of_one_name_are_told_apart_by_the_order_of_their_rows() -> None:
    pair = ("A", "B")
    tables = [(pair, [[1.0, 0.0], [0.0, 1.0]]), (pair, [[0.0, 2.0], [0.5, 0.0]])]
    model = besag.markov_network({"A": 2, "B": 2}, tables)
    frame = model.marginals(engine="bp[max_iterations=2,tolerance=0]", trace=True).messages
    assert len(of_pair(frame, "f(A,B)", "A")) == 2
    on = model.marginals(engine="bp[max_iterations=1,tolerance=0]", init=frame)
    assert_allclose(on["A"], model.marginals(engine="bp[max_iterations=3,tolerance=0]")["A"], atol=1e-14)
    with pytest.raises(CapabilityError, match=r"2 messages go from 'f\(A,B\)' to 'A', got 1; give a DataFrame"):
        model.marginals(engine="bp", init={("f(A,B)", "A"): [0.5, 0.5]})


def test_a_state_that_hard_zeros_rule_out_has_no_message_though_damping_keeps_old_ones() -> None:
    same = np.where(np.eye(2, dtype=bool), 0.0, -np.inf)
    model = besag.markov_network([2] * 3, [((0, 1), same), ((1, 2), same), ((2, 0), same), ((0,), [0.0, 1.0])])
    r = model.marginals(evidence={"0": "1"}, engine=STEPS.format("synchronous", 0.5, 2), trace=True)
    r.factor(0)
    check_beliefs(model, r, r.messages)
    assert_array_equal(r["2"], [0.0, 1.0])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_watching_changes_nothing(schedule: str) -> None:
    """In the sequential schedule factors of three variables hear what the others had gathered at their last turn."""
    rng = np.random.default_rng(3)
    scopes = [("0", "1", "2"), ("1", "2", "3"), ("3", "0"), ("2", "3", "0")]
    model = besag.markov_network([2] * 4, [(tuple(scope), rng.normal(size=(2,) * len(scope))) for scope in scopes])
    engine = STEPS.format(schedule, 0.0, 3)
    assert_array_equal(model.marginals(engine=engine).array, model.marginals(engine=engine, trace="messages").array)


def test_kept_messages_survive_a_change_to_logarithms() -> None:
    model = grid(3, 2, 300.0)
    r = model.marginals(engine="bp[max_iterations=30,tolerance=0]", trace="messages")
    assert r.diagnostics["domain"] == "log"
    frame = r.messages
    assert not frame["value"].isna().any()
    assert_allclose(frame.groupby(["iteration", "source", "target"])["value"].sum(), 1.0)
    assert frame["iteration"].nunique() == r.diagnostics["iterations"]
