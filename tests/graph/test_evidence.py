"""Evidence as users write it: states, sets, likelihoods, missing cells and frames."""

import io
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import EvidenceError, EvidenceWarning
from besag.graph.evidence import NO_STATE, Evidence, read_evidence
from besag.model.model import Model
from besag.model.variable import Variables
from tests.oracle import Enumeration, labellings, likelihood
from tests.strategies import evidence_for, examples, frame_for, models, rows_of

VARIABLES = Variables.from_states({"A": ["no", "yes"], "B": ["0", "1", "2"], "C": ["1.5", "True"]})
INF = np.inf


def read(given: Any) -> tuple[list[int], Any]:
    evidence = read_evidence(VARIABLES, given)
    return evidence.observed[0].tolist(), None if evidence.log_weights is None else evidence.log_weights[0]


@pytest.mark.parametrize(
    ("given", "observed"),
    [
        (None, [-1, -1, -1]),
        ({}, [-1, -1, -1]),
        ({"A": "yes"}, [1, -1, -1]),
        ({"B": "2"}, [-1, 2, -1]),
        ({"B": 2}, [-1, 2, -1]),
        ({"B": 2.0}, [-1, 2, -1]),
        ({"B": np.float32(2)}, [-1, 2, -1]),
        ({"C": 1.5, "A": "no"}, [0, -1, 0]),
        ({"C": True}, [-1, -1, 1]),
        ({"A": None, "B": float("nan"), "C": pd.NA}, [-1, -1, -1]),
        ({"A": pd.NaT}, [-1, -1, -1]),
    ],
)
def test_states_are_matched_by_their_text(given: Any, observed: list[int]) -> None:
    assert read(given) == (observed, None)


@pytest.mark.parametrize("allowed", [["2", "0"], ("0", 2), {0, 2.0}, frozenset(["0", "2"]), np.array([0, 2])])
def test_sets_of_states(allowed: Any) -> None:
    observed, weights = read({"B": allowed, "A": "no"})
    assert observed == [0, -1, -1]
    assert weights.tolist() == [0, 0, 0, -INF, 0, 0, 0]


def test_likelihoods() -> None:
    observed, weights = read({"B": {"2": 0.5, 0: 3.0, 1.0: 0}})
    assert observed == [-1, -1, -1]
    assert_allclose(weights[2:5], [np.log(3), -INF, np.log(0.5)])
    assert weights[[0, 1, 5, 6]].tolist() == [0] * 4


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"Z": "no"}, "no variable is named 'Z'; there are 'A', 'B', 'C'"),
        ({"A": "maybe"}, r"'A' has no state 'maybe'; it has \['no', 'yes'\]"),
        ({"A": 1}, "'A' has no state 1"),
        ({"B": 1.5}, "'B' has no state 1.5"),
        ({"A": ["no", "maybe"]}, "'A' has no state 'maybe'"),
        ({"A": [0.2, 0.8]}, "'A' has no state 0.2.*; a likelihood is a dict or an array of floats"),
        ({"A": np.array([1, 0])}, r"are \[1, 0\] states, or a likelihood of all states.*array of floats"),
        ({"A": []}, "the allowed states of 'A' are an empty set"),
        ({"A": {"no": 1.0}}, r"the likelihood of 'A' must name every state; it does not name \['yes'\]"),
        ({"A": {"no": 1.0, "maybe": 1.0}}, "'A' has no state 'maybe'"),
        ({"A": {"no": -1.0, "yes": 1.0}}, "the likelihood of 'A' must be finite, not negative"),
        ({"A": {"no": 0.0, "yes": 0.0}}, "the likelihood of 'A' must be .* not all zero"),
        ({"A": {"no": np.nan, "yes": 1.0}}, "the likelihood of 'A' must be finite"),
        ({"A": {"no": INF, "yes": 1.0}}, "the likelihood of 'A' must be finite"),
        ([("A", "no")], "evidence must be a dict .* or a DataFrame, got list"),
        ("A=no", "evidence must be a dict .* or a DataFrame, got str"),
        (pd.DataFrame({"Z": ["no"]}), "no variable is named 'Z'"),
        (pd.DataFrame({"A": ["no", "maybe"]}, index=["x", "y"]), "row 'y': 'A' has no state 'maybe'"),
        (pd.DataFrame({"A": ["no", ["maybe"]]}, index=["x", "y"]), "'A' has no state 'maybe'"),
        (pd.DataFrame({"A": []}), "the evidence frame has no rows"),
        (pd.DataFrame([["no", "yes"]], columns=["A", "A"]), "two columns for 'A'"),
    ],
)
def test_bad_evidence_is_refused(given: Any, match: str) -> None:
    with pytest.raises(EvidenceError, match=match) as caught:
        read_evidence(VARIABLES, given)
    assert caught.value.conflict == {}


def test_a_bad_cell_names_its_row() -> None:
    with pytest.raises(EvidenceError, match="row 7: 'B' has no state 3") as caught:
        read_evidence(VARIABLES, pd.DataFrame({"B": [0, 3, 3]}, index=[5, 7, 9]))
    assert caught.value.row == 7


@pytest.mark.parametrize("bad", ["maybe", ["maybe"], {"no": 1.0}])
def test_a_bad_cell_of_a_mixed_column_names_its_row_too(bad: Any) -> None:
    with pytest.raises(EvidenceError, match=r"row 7: .*'A'") as caught:
        read_evidence(VARIABLES, pd.DataFrame({"A": [["no"], bad]}, index=[5, 7]))
    assert caught.value.row == 7


# Frames --------------------------------------------------------------------------------------------------------------


def test_a_frame_keeps_its_index_and_missing_cells_are_free() -> None:
    frame = pd.DataFrame(
        {
            "B": [1, np.nan, 2],
            "A": pd.Categorical(["yes", None, "no"]),
        },
        index=["x", "y", "z"],
    )
    evidence = read_evidence(VARIABLES, frame)
    assert evidence.observed.tolist() == [[1, 1, -1], [-1, -1, -1], [0, 2, -1]]
    assert evidence.batched
    assert evidence.index is frame.index
    assert evidence.log_weights is None


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["1", None]),
        pd.Series([1.0, None]),
        pd.Series([1, None], dtype=object),
        pd.Series(["1", np.nan], dtype="category"),
        pd.Series([np.int8(1), pd.NA], dtype=object),
    ],
)
def test_columns_of_every_type(column: pd.Series) -> None:
    assert read_evidence(VARIABLES, pd.DataFrame({"B": column})).observed[:, 1].tolist() == [1, -1]


def test_boolean_columns_are_matched_by_their_text() -> None:
    assert read_evidence(VARIABLES, pd.DataFrame({"C": [True, True]})).observed[:, 2].tolist() == [1, 1]


def test_a_frame_without_columns_is_a_batch_of_free_rows() -> None:
    evidence = read_evidence(VARIABLES, pd.DataFrame(index=[4, 5]))
    assert evidence.observed.tolist() == [[-1] * 3] * 2


@examples(60)
@given(data=st.data())
def test_rows_of_a_frame_are_read_as_dicts_are(data: st.DataObject) -> None:
    model = data.draw(models())
    frame = data.draw(frame_for(model))
    batch = read_evidence(model.variables, frame)
    states = int(model.variables.state_offsets[-1])
    for i, row in enumerate(rows_of(frame)):
        single = read_evidence(model.variables, row)
        assert_array_equal(batch.observed[i], single.observed[0])
        one, two = (np.zeros(states) if w is None else w for w in (batch.row(i).log_weights, single.log_weights))
        assert_array_equal(one.reshape(-1), two.reshape(-1))


@examples(60)
@given(data=st.data())
def test_evidence_adds_to_the_energy(data: st.DataObject) -> None:
    model = data.draw(models())
    evidence = data.draw(evidence_for(model))
    problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
    oracle = Enumeration(model, evidence)
    assert_allclose(problem.energy(oracle.labels), -oracle.log_weights, rtol=1e-10, atol=1e-10)


def test_the_oracle_reads_evidence_as_documented() -> None:
    """The oracle is code too."""
    assert [likelihood(v, "1") for v in ("1", 1, 1.0, 2, ["0"], {"1", "2"}, {"0": 0.5, "1": 0.3}, None, np.nan)] == [
        *[1, 1, 1, 0, 0, 1, 0.3, 1, 1]
    ]
    assert labellings([2, 1, 2]).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]


# The arrays ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def model() -> Model:
    return besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[1.0, 2.0], [3.0, 1.0]])])


def test_evidence_by_codes(model: Model) -> None:
    rows = Evidence(np.array([[0, -1], [1, -1]]), batched=True)
    result = model.marginals(evidence=rows)
    assert_allclose(result["B"], [model.marginals(evidence={"A": a})["B"] for a in (0, 1)])
    assert result.to_frame("B").index.tolist() == [0, 1]
    assert len(model.sample(3, evidence=rows)) == 6
    weighted = Evidence(np.array([-1, -1]), np.array([0.0, -INF, 0.0, np.log(2)]))
    assert_allclose(model.marginals(evidence=weighted)["B"], np.array([1, 2 * np.e]) / (1 + 2 * np.e))


def test_rows_that_are_not_marked_as_a_batch_are_not_dropped(model: Model) -> None:
    """Two rows are two answers, or an error; never the first alone."""
    try:
        result = model.marginals(evidence=Evidence(np.array([[0, -1], [1, -1]])))
    except EvidenceError:
        return
    assert result["B"].shape == (2, 2)
    assert np.shape(result.log_partition) == (2,)


def test_one_row_of_log_weights_serves_all_rows(model: Model) -> None:
    shared = Evidence(np.array([[0, -1], [1, -1]]), np.array([[0.0, 0.0, 0.0, 1.0]]), batched=True)
    repeated = Evidence(shared.observed, np.repeat(shared.log_weights, 2, axis=0), batched=True)
    one, two = (model.marginals(evidence=e) for e in (shared, repeated))
    assert_array_equal(one["B"], two["B"])
    assert_array_equal(one.log_partition, two.log_partition)
    assert_array_equal(model.joint(["B", "A"], shared), model.joint(["B", "A"], repeated))


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        (([[0]],), "observed must have 2 columns, got 1"),
        (([[0, 2]],), "'B' has codes 0 to 1 and -1 = free, got 2 in row 0"),
        (([[0, 1], [-2, 0]],), "'A' has codes 0 to 1 .* got -2 in row 1"),
        (([[0, 1]], np.zeros((1, 3))), "log_weights must have 4 columns, one for each state, got 3"),
        (([[0, 1]], np.zeros((2, 4))), "log_weights must have 1 or 1 rows, got 2"),
        (([[0, 1]], np.array([0, 0, 0, np.nan])), "log_weights must be -inf or numbers"),
        (([[0, 1]], np.array([0, 0, 0, INF])), "log_weights must be -inf or numbers"),
    ],
)
def test_bad_arrays_are_refused(model: Model, arrays: Any, match: str) -> None:
    with pytest.raises(EvidenceError, match=match):
        model.marginals(evidence=Evidence(*arrays, batched=True))


# Evidence that may not say what was meant -----------------------------------------------------------------------------


def doubts(given: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_evidence(VARIABLES, given)
    assert all(warning.category is EvidenceWarning for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"A": ["no", "yes"]},
            r"nothing. Several rows: a DataFrame. A likelihood: {'no': 0.2, 'yes': 0.8}. Allowed states: a set$",
        ),
        ({"A": np.array(["no", "yes"])}, "evidence on 'A' allows every state"),
        ({"B": (2, 1, 0)}, r"evidence on 'B' .* says nothing.*{'0': 0.2, '1': 0.8, ...}"),
        ({"B": [0, 1, 2, 2]}, "evidence on 'B' .* says nothing"),
        ({"B": [0, 0, 1]}, r"evidence on 'B' allows the states 0, 1\. Several rows"),
        ({"B": [1, 1, 1]}, r"evidence on 'B' allows the states 1\. "),
        (
            pd.DataFrame({"A": ["no", ["yes"], ["no", "yes"]]}, index=[3, 5, 7]),
            "^row 7: evidence on 'A' .* says nothing",
        ),
    ],
)
def test_a_list_with_an_entry_for_each_state_is_doubted(given: Any, says: str) -> None:
    (told,) = doubts(given)
    assert re.search(says, told)


@pytest.mark.parametrize(
    "given",
    [
        {"A": ["no"], "B": [0, 2]},
        {"A": {"no", "yes"}, "B": frozenset("012")},
        {"A": {"no": 0.0, "yes": 1.0}, "B": np.array([0.0, 1.0, 1.0])},
        {"A": None, "B": float("nan")},
        pd.DataFrame({"A": ["no", None], "B": [np.nan, 1]}),
    ],
)
def test_other_evidence_is_not(given: Any) -> None:
    assert doubts(given) == []


def test_a_variable_of_one_state_may_be_listed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_evidence(Variables.from_states({"A": ["only"]}), {"A": ["only"]})


def test_a_variable_is_doubted_once_for_all_rows() -> None:
    every = ["no", "yes"]
    (told,) = doubts(pd.DataFrame({"A": [every, every, every]}, index=["x", "y", "z"]))
    assert told.startswith("row 'x': ")
    assert len(doubts({"A": every, "B": [0, 1, 2]})) == 2


# What pandas makes of a file ------------------------------------------------------------------------------------------

ODD = Variables.from_states(
    {"NA": ["NA", "other"], "T": ["TRUE", "FALSE"], "none": ["none", "some"], "two": ["TRUE", "true"]}
)


@pytest.mark.parametrize("value", [True, np.True_, "True", "true", "TRUE"])
def test_a_boolean_is_the_state_of_that_word_in_any_case(value: Any) -> None:
    assert read_evidence(ODD, {"T": value}).observed[0].tolist() == [-1, 0, -1, -1]
    assert read_evidence(ODD, {"T": [value]}).log_weights is not None
    assert read_evidence(ODD, pd.DataFrame({"T": [value]}).astype(str)).observed[0].tolist() == [-1, 0, -1, -1]
    if value not in ("true", "TRUE"):
        with pytest.raises(EvidenceError, match=r"'two' has no state '?True'?; .*\['TRUE', 'true'\]"):
            read_evidence(ODD, {"two": value})


def test_text_of_whole_numbers_and_booleans_is_read_alike_by_every_route() -> None:
    states = Variables.from_states({"s": ["FALSE", "TRUE"], "n": ["0", "1"]})
    for row in ({"s": "true", "n": "1.0"}, {"s": True, "n": 1.0}, {"s": np.True_, "n": 1}):
        assert read_evidence(states, row).observed.tolist() == [[1, 1]]
        assert read_evidence(states, pd.DataFrame([row])).observed.tolist() == [[1, 1]]
        assert read_evidence(states, pd.DataFrame([row]).astype(str)).observed.tolist() == [[1, 1]]


@pytest.mark.parametrize("type_", ["bool", "boolean", "object", "category"])
def test_columns_that_pandas_makes_booleans_of(type_: str) -> None:
    frame = pd.DataFrame({"T": pd.Series([False, True], dtype=type_)})
    assert read_evidence(ODD, frame).observed[:, 1].tolist() == [1, 0]


def test_a_file_as_pandas_reads_it() -> None:
    text = "T,none\nTRUE,some\nNA,\nFALSE,none\n"
    assert read_evidence(ODD, pd.read_csv(io.StringIO(text))).observed[:, 1:3].tolist() == [[0, 1], [-1, -1], [1, 0]]


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        (["1"], None),
        ([1, 2], r"dtype=str\) keeps it"),
        ([2.5], r"dtype=str\) keeps it"),
        ([3, 4], None),
        ([True, False], r"frame.replace\({True: '02', False: '01'}\)"),
    ],
)
def test_values_that_pandas_may_have_changed_bring_a_hint(column: list[Any], hint: str | None) -> None:
    states = Variables.from_states({"A": ["01", "02"] if column != [2.5] else ["2.50", "x"]})
    with pytest.raises(EvidenceError, match=r"row 0: 'A' has no state .*") as caught:
        read_evidence(states, pd.DataFrame({"A": column}))
    if hint is None:
        assert str(caught.value).endswith("]")
    else:
        assert re.search(hint, str(caught.value))


@pytest.mark.parametrize("states", [["yes", "no"], ["no", "yes"]])
def test_booleans_are_proposed_for_yes_and_no(states: list[str]) -> None:
    with pytest.raises(EvidenceError, match=r"as in frame.replace\({True: 'yes', False: 'no'}\)"):
        read_evidence(Variables.from_states({"A": states}), pd.DataFrame({"A": [True]}))


@pytest.mark.parametrize("text", ["na", "none", "-", "?", "", "null", "nan", "NaN", "NA"])
def test_text_that_means_missing_is_never_taken_for_a_misspelt_state(text: str) -> None:
    says = r"has no state '.*'; leave the cell empty where it is not known, or pd.read_csv\(..., na_values=\['"
    with pytest.raises(EvidenceError, match=says) as caught:
        read_evidence(VARIABLES, {"A": text})
    assert "did you mean" not in str(caught.value)
    if text not in NO_STATE:
        with pytest.raises(EvidenceError, match=says):
            read_evidence(VARIABLES, pd.DataFrame({"A": [text]}))


def test_a_series_over_the_states_is_a_likelihood() -> None:
    series = pd.Series({"yes": 0.8, "no": 0.2})
    expected = read_evidence(VARIABLES, {"A": series.to_dict()}).log_weights
    assert_allclose(read_evidence(VARIABLES, {"A": series}).log_weights, expected)
    with pytest.raises(EvidenceError, match="'A' has no state 0"):
        read_evidence(VARIABLES, {"A": pd.Series([0.2, 0.8])})


def test_text_that_stands_for_a_missing_cell_is_free_in_a_frame() -> None:
    frame = pd.DataFrame({"A": ["yes", "NA", "", "nan"], "B": [["1"], "N/A", "2", None]})
    assert read_evidence(VARIABLES, frame).observed[:, :2].tolist() == [[1, -1], [-1, -1], [-1, 2], [-1, -1]]


def test_the_words_for_missing_cells_are_those_of_pandas() -> None:
    cells = pd.read_csv(
        io.StringIO("\n".join(["cell", *(f'"{word}"' for word in sorted(NO_STATE))])), skip_blank_lines=False
    )
    assert cells["cell"].isna().all()


def test_a_state_of_that_name_comes_first() -> None:
    frame = pd.DataFrame({"NA": ["NA", "other", None]})
    assert read_evidence(ODD, frame).observed[:, 0].tolist() == [0, 1, -1]
    with pytest.raises(EvidenceError, match="'none' has no state 'None'; did you mean 'none'"):
        read_evidence(ODD, pd.DataFrame({"none": ["None"]}))
    with pytest.raises(EvidenceError, match="'A' has no state 'NA'"):
        read_evidence(VARIABLES, {"A": "NA"})


def test_a_column_that_is_no_variable_can_be_dropped_or_made_the_index() -> None:
    frame = pd.DataFrame({"id": ["x", "y"], "A": ["no", "yes"], "day": [1, 2]})
    with pytest.raises(EvidenceError, match=r"named 'id'.*drop\(columns=\['id', 'day'\]\).*index_col='id'"):
        read_evidence(VARIABLES, frame)
    assert read_evidence(VARIABLES, frame.drop(columns=["day"]).set_index("id")).index.tolist() == ["x", "y"]


def test_likelihoods_as_arrays_in_cells() -> None:
    evidence = read_evidence(VARIABLES, pd.DataFrame({"A": [np.array([0.5, 1.0]), "yes"]}))
    assert evidence.observed[:, 0].tolist() == [-1, 1]
    assert_allclose(evidence.log_weights, [[np.log(0.5), 0, 0, 0, 0, 0, 0], [0] * 7])


def test_an_array_without_axes_is_its_value() -> None:
    model = besag.bayesian_network("x[0,1,2] -> s[FALSE,TRUE]")
    assert model.log_partition({"x": np.array(1)}) == model.log_partition({"x": "1"})


@pytest.mark.parametrize(("value", "missing"), [({True: 0.3}, r"\['FALSE'\]$"), ({"FALSE": 0.3}, r"\['TRUE'\]$")])
def test_only_states_that_a_likelihood_leaves_out_are_named(value: dict[object, float], missing: str) -> None:
    model = besag.bayesian_network("x[0,1,2] -> s[FALSE,TRUE]")
    with pytest.raises(EvidenceError, match=f"it does not name {missing}"):
        model.log_partition({"s": value})
