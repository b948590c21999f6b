"""Sessions: what they answer while evidence changes, how little they do for it, and how they refuse.

The oracle is a fresh `model.marginals(engine="brute")` under the evidence of the moment.
"""

import contextlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.errors import CapabilityError, EvidenceError, ModelError, TooLargeError
from besag.model.model import Model
from besag.query.session import Session
from tests.routes import Forced, compiled, plain
from tests.strategies import examples, models

# Changes and questions -----------------------------------------------------------------------------------------------


@st.composite
def values(draw: Any, states: tuple[str, ...]) -> Any:
    """Any evidence on a variable: a state, a set of states, a likelihood; it may be impossible in the model."""
    kind = draw(st.sampled_from(["state", "state", "set", "likelihood"]))
    if kind == "state":
        return draw(st.sampled_from(states))
    if kind == "set":
        allowed = draw(st.lists(st.sampled_from(states), min_size=1, unique=True))
        return set(allowed) if len(allowed) == len(states) else allowed
    weights = [draw(st.sampled_from([0.0, 0.25, 1.0, 3.5])) for _ in states]
    weights[draw(st.integers(0, len(states) - 1))] = 0.5
    return dict(zip(states, weights, strict=True))


@st.composite
def changes(draw: Any, model: Model) -> dict[str, Any]:
    """{name: value, or None to forget} of some variables; {} to forget all."""
    names = st.sampled_from([variable.name for variable in model.variables])
    chosen = draw(st.lists(names, max_size=3, unique=True))
    return {name: draw(st.none() | values(model.variable(name).states)) for name in chosen}


def change(session: Session, given: dict[str, Any]) -> None:
    if not given:
        session.forget()
    for name, value in given.items():
        if value is None:
            session.forget(name)
    session.observe({name: value for name, value in given.items() if value is not None})


def check(session: Session, name: str) -> None:
    """The session says what enumeration says of its evidence, or refuses it in the same words."""
    model, evidence = session.model, session.evidence
    try:
        want = model.marginals(evidence=evidence, engine="brute")
    except EvidenceError as error:
        check_refusal(session, name, error)
        return
    np.testing.assert_allclose(session[name], want[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(session.log_partition, want.log_partition, rtol=1e-9, atol=1e-9)
    everything = session.marginals()
    for variable in model.variables:
        np.testing.assert_allclose(everything[variable.name], want[variable.name], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(session[variable.name], want[variable.name], rtol=1e-9, atol=1e-12)


def check_refusal(session: Session, name: str, refusal: EvidenceError) -> None:
    for ask in (lambda: session[name], lambda: session.log_partition, session.marginals):
        with pytest.raises(EvidenceError) as found:
            ask()
        assert str(found.value) == str(refusal)
        assert found.value.conflict == refusal.conflict


@examples(60)
@given(st.data())
def test_answers_follow_the_evidence(data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=300))
    session = model.session()
    names = st.sampled_from([variable.name for variable in model.variables])
    for _ in range(data.draw(st.integers(1, 6))):
        change(session, data.draw(changes(model)))
        if data.draw(st.booleans()):  # a question before all are asked, so that only some messages are right
            with contextlib.suppress(EvidenceError):
                session[data.draw(names)]
        if data.draw(st.booleans()):
            check(session, data.draw(names))
    check(session, data.draw(names))


@pytest.mark.parametrize("wide", [False, True], ids=["sum", "log_sum"])
def test_answers_of_compiled_kernels(forced: Forced, wide: bool) -> None:
    forced({"kernels.compile.worth_compiling": compiled})
    rng = np.random.default_rng(7)
    model = random_grid(rng, 400.0 if wide else 1.0)
    session = model.session()
    for _ in range(30):
        name = str(rng.choice(list(model.marginals())))
        if rng.random() < 0.3:
            session.forget(name)
        else:
            session.observe({name: str(rng.integers(3))})
        check(session, str(rng.choice(list(model.marginals()))))
    assert session.marginals().diagnostics.domain == ("log_sum" if wide else "sum")


@pytest.mark.parametrize("mode", [plain, compiled])
def test_a_message_larger_than_all_that_a_clique_gives(forced: Forced, mode: object) -> None:
    """A factor over all variables beside small ones: the largest message has 96 entries, the outputs of a clique 82."""
    cards, rng = [3, 3, 2, 2, 2, 2, 2, 2], np.random.default_rng(0)
    scopes = [
        (0, 6, 4, 7, 3, 2),
        (0, 1),
        (4, 1, 3, 7, 5, 0, 6, 2),
        (3, 6, 4),
        (6, 1),
        (5, 6, 2, 4, 7, 3),
        (3, 2, 4, 7, 0),
    ]
    model = besag.markov_network(cards, [(scope, rng.normal(size=[cards[v] for v in scope])) for scope in scopes])
    forced({"kernels.compile.worth_compiling": mode})
    session = model.session()
    for name in ("1", "5", "0"):
        session.observe({name: "1"})
        check(session, "6")
    session.forget("5")
    check(session, "5")


def random_grid(rng: np.random.Generator, scale: float) -> Model:
    """A grid with hard zeros; every clique has a cycle's worth of cliques around it."""
    tables = [rng.normal(size=size) * scale for size in ((2, 2, 3, 3), (1, 3, 3, 3))]
    for table in tables:
        table[..., 0, 1] = -np.inf
    return besag.grid((2, 3), 3, rng.normal(size=(2, 3, 3)), tuple(tables))


def test_a_likelihood_too_wide_for_the_linear_domain() -> None:
    model = besag.data.bundled("asia")
    session = model.session()
    session.observe(xray="yes")
    before = session["lung"]
    assert session.marginals().diagnostics.domain == "sum"
    session.observe(lung={"no": 1e-300, "yes": 1.0}, tub={"no": 1e-300, "yes": 1e300})
    check(session, "lung")
    assert session.marginals().diagnostics.domain == "log_sum"
    session.forget("lung", "tub")
    np.testing.assert_allclose(session["lung"], before, rtol=1e-12)


# How little is done --------------------------------------------------------------------------------------------------


def chain(n: int = 40) -> Model:
    rng = np.random.default_rng(0)
    return besag.chain(rng.normal(size=(n, 3)), rng.normal(size=(3, 3)))


def made(session: Session, name: str) -> int:
    """How many messages a question makes."""
    before = session.n_messages
    session[name]
    return session.n_messages - before


def test_a_question_asked_again_makes_no_message() -> None:
    session = chain().session()
    session.observe({"3": "1"})
    assert made(session, "20") > 0
    assert made(session, "20") == 0
    session.observe({"3": "1"})  # as before
    assert made(session, "20") == 0
    session.marginals()
    before = session.n_messages
    assert session.marginals().log_partition == session.log_partition
    assert session.n_messages == before


def test_a_change_reaches_only_what_is_asked() -> None:
    session = chain().session()
    session.observe({"0": "1", "39": "0"})
    session.marginals()
    session.observe({"0": "2"})
    assert made(session, "1") <= 3
    assert 15 <= made(session, "38") <= 45  # fewer than all where the news has faded below rounding
    session.observe({"39": "1"})
    assert made(session, "38") <= 3
    assert 15 <= made(session, "1") <= 45
    check_against_the_tree(session)


def test_many_changes_between_questions_are_one() -> None:
    session = chain().session()
    session.observe({"0": "1"})
    session.marginals()
    for state in "0120120":
        session.observe({"0": state})
    assert made(session, "38") <= 45


def test_evidence_that_separates_stops_the_news() -> None:
    session = chain().session()
    session.observe({"0": "1", "5": "0"})
    session.marginals()
    session.observe({"0": "2"})
    assert made(session, "38") <= 8
    check_against_the_tree(session)


def test_a_change_in_another_part_does_little() -> None:
    rng = np.random.default_rng(1)
    parents = [-1, *range(19), -1, *range(20, 39)]
    model = besag.tree(parents, rng.normal(size=(40, 2)), rng.normal(size=(2, 2)))
    session = model.session()
    session.observe({"0": "1", "25": "0"})
    session.marginals()
    session.observe({"0": "0"})
    assert made(session, "30") <= 20  # up to the root of the part that changed: it might have become impossible
    assert made(session, "31") == 0
    check_against_the_tree(session)


def check_against_the_tree(session: Session) -> None:
    want = session.model.marginals(evidence=session.evidence, engine="tree")
    np.testing.assert_allclose(session.marginals().array, want.array, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(session.log_partition, want.log_partition, rtol=1e-12)


# Impossible evidence -------------------------------------------------------------------------------------------------


def test_impossible_evidence_is_refused_and_forgotten() -> None:
    session = besag.data.bundled("asia").session()
    session.observe(dysp="yes")
    before = session["bronc"]
    session.observe(tub="yes", either="no")
    for _ in range(2):
        with pytest.raises(EvidenceError, match="tub=yes, either=no cannot hold together") as found:
            session["bronc"]
        assert found.value.conflict == {"tub": "yes", "either": "no"}
    with pytest.raises(EvidenceError, match="cannot hold together"):
        session.log_partition  # noqa: B018
    with pytest.raises(EvidenceError, match="cannot hold together"):
        session.marginals()
    session.forget("tub", "either")
    np.testing.assert_allclose(session["bronc"], before, rtol=1e-12)


def test_evidence_that_is_impossible_in_another_part() -> None:
    model = besag.markov_network({"A": 2, "B": 2, "C": 2}, [(("A", "B"), [[1.0, 0.0], [0.0, 1.0]])], given="weight")
    session = model.session()
    np.testing.assert_allclose(session["C"], [0.5, 0.5])
    session.observe(A="0", B="1")
    for _ in range(2):
        with pytest.raises(EvidenceError, match="A=0, B=1"):
            session["C"]
    session.observe(B="0")
    np.testing.assert_allclose(session["C"], [0.5, 0.5])


def test_a_state_that_hard_zeros_rule_out() -> None:
    session = besag.markov_network({"A": 3, "B": 1}, [("A", [1.0, 0.0, 3.0])], given="weight").session()
    np.testing.assert_allclose(session["A"], [0.25, 0.0, 0.75])
    session.observe(A="1")
    with pytest.raises(EvidenceError, match="A=1 is impossible in this model"):
        session["B"]
    session.observe(A=["1", "2"], B={"0": 0.5})
    np.testing.assert_allclose(session["A"], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(session["B"], [1.0])
    np.testing.assert_allclose(session.log_partition, np.log(1.5))


def test_a_model_without_a_labelling() -> None:
    tables = [(("A", "B"), [[1.0, 0.0], [1.0, 0.0]]), (("B", "A"), [[0.0, 0.0], [1.0, 1.0]])]
    with pytest.raises(ModelError, match="allows no labelling"):
        besag.markov_network({"A": 2, "B": 2}, tables, given="weight").session()["A"]


# What is said of it --------------------------------------------------------------------------------------------------


def test_evidence_is_kept_by_name() -> None:
    session = besag.markov_network({"A": 3, "B": ["no", "yes"]}, []).session()
    likelihood = {"0": 1.0, "1": 0.5, "2": 0.0}
    session.observe({"A": likelihood}, B="yes")
    likelihood["0"] = 7.0
    assert session.evidence == {"A": {"0": 1.0, "1": 0.5, "2": 0.0}, "B": "yes"}
    assert repr(session) == "Session(2 variables, 2 observed)"
    assert str(session).splitlines()[1:] == ["  A  0: 1, 1: 0.5, 2: 0", "  B  yes"]
    session.observe(A=1.0)
    session.evidence.clear()
    assert session.evidence == {"A": "1", "B": "yes"}
    session.observe(A=["0", "2"], B=None)
    assert session.evidence == {"A": ["0", "2"]}
    assert str(session).splitlines()[1:] == ["  A  0 or 2"]
    session.forget()
    assert session.evidence == {}
    assert str(session) == repr(session)


def test_a_session_may_begin_with_evidence() -> None:
    model = besag.data.bundled("sprinkler")
    session = model.session({"wet_grass": "yes"}, n_threads=1)
    assert session.evidence == {"wet_grass": "yes"}
    np.testing.assert_allclose(session["rain"], model.marginals(evidence={"wet_grass": "yes"})["rain"])
    with pytest.raises(EvidenceError, match="no variable"):
        model.session({"wet": "yes"})


def test_long_evidence_is_shown_in_part() -> None:
    session = chain().session()
    session.observe({str(i): "0" for i in range(20)})
    assert str(session).splitlines()[-1] == "  ... 8 more"


def test_a_wrong_observation_changes_nothing() -> None:
    session = besag.data.bundled("asia").session()
    session.observe(xray="no")
    before = session["lung"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"smoke": "yes", "xrai": "yes"}, "no variable is named 'xrai'; did you mean 'xray'"),
        ({"smoke": "yes", "xray": "maybe"}, r"'xray' has no state 'maybe'; it has \['no', 'yes'\]"),
        ({"smoke": "yes", "xray": []}, "the allowed states of 'xray' are an empty set"),
        ({"smoke": "yes", "xray": {"no": 0.1}}, "must name every state"),
    ]
    for wrong, match in cases:
        with pytest.raises(EvidenceError, match=match):
            session.observe(wrong)
    with pytest.raises(EvidenceError, match=r"got DataFrame; a row of a DataFrame is frame.iloc\[0\].to_dict\(\)"):
        besag.data.bundled("asia").session(pd.DataFrame({"smoke": ["yes"]}))
    with pytest.raises(EvidenceError, match=r"must be a dict .* got list"):
        session.observe([("smoke", "yes")])  # type: ignore[arg-type]
    assert session.evidence == {"xray": "no"}
    np.testing.assert_array_equal(session["lung"], before)


def test_unknown_names() -> None:
    session = besag.data.bundled("asia").session()
    with pytest.raises(ModelError, match="no variable is named 'lungs'; did you mean 'lung'"):
        session["lungs"]
    with pytest.raises(EvidenceError, match="no variable is named 'lungs'"):
        session.forget("lungs")


def test_only_the_junction_tree_has_sessions() -> None:
    model = besag.data.bundled("asia")
    with pytest.raises(CapabilityError, match="engine 'brute' has no sessions; leave engine out, or"):
        model.session(engine="brute")
    with pytest.raises(CapabilityError, match="no engine is named 'none'"):
        model.session(engine="none")
    with pytest.raises(TypeError, match="unknown options"):
        model.session(speed=3)  # type: ignore[call-arg]
    np.testing.assert_allclose(model.session(engine="junction_tree")["lung"], model.session()["lung"])


def test_a_session_that_would_not_fit() -> None:
    with pytest.raises(TooLargeError, match=r"a session would take .* more than memory_limit=10000: width"):
        besag.ising((10, 10), 0.3).session(memory_limit=10_000)
    with pytest.raises(TooLargeError, match="memory_limit=10000"):
        besag.ising((10, 10), 0.3).session(engine="junction_tree[memory_limit=10000]")


def test_ctrl_c_within_a_kernel_is_a_keyboard_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba makes a SystemError of it where it hands back what a kernel returns."""

    def interrupted(*_: object) -> None:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr("besag.infer.junction.session.Incremental.__init__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        besag.data.bundled("asia").session()
