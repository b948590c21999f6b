"""Variables and their names: lazy, and able to find a name or a state again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import ModelError
from besag.model.variable import (
    GridNames,
    NameList,
    Names,
    RangeNames,
    SliceNames,
    UnionNames,
    Variable,
    Variables,
    take_variables,
)
from tests.strategies import examples

NAMES: dict[str, Names] = {
    "list": NameList(["A", "b 2", "g:7"]),
    "range": RangeNames(12),
    "grid": GridNames(3, 11),
    "union": UnionNames([NameList(["A", "g:7"]), RangeNames(3), GridNames(2, 2)]),
    "slice": SliceNames(UnionNames([NameList(["A", "g:7"]), RangeNames(3), GridNames(2, 2)]), 2, 5),
    "slice of a list": SliceNames(NameList(["A", "g:7", "C"]), 1, 3),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_name_finds_its_index(names: Names) -> None:
    listed = [names[i] for i in range(len(names))]
    assert len(set(listed)) == len(listed)
    assert [names.find(name) for name in listed] == list(range(len(names)))
    assert names[-1] == listed[-1]
    with pytest.raises(IndexError):
        names[len(names)]


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(
    "name", ["", "-1", "99", "01", "1,99", "9,1", "01,1", "1,1,1", "7:A", "0:", "²", "0:z", "nobody"]
)
def test_what_is_no_name_is_not_found(names: Names, name: str) -> None:
    assert names.find(name) is None


def test_names_of_lists_grids_and_unions() -> None:
    assert NAMES["grid"][12] == "1,1"
    assert [NAMES["union"][i] for i in (0, 1, 4, 8)] == ["0:A", "0:g:7", "1:2", "2:1,1"]
    assert [NAMES["slice"][i] for i in range(3)] == ["0", "1", "2"]
    assert NAMES["slice of a list"][0] == "g:7"


@examples(50)
@given(
    st.dictionaries(
        st.text(min_size=1), st.lists(st.text(), min_size=1, max_size=4, unique=True), min_size=1, max_size=5
    )
)
def test_variables_are_a_sequence_with_the_states_given(states: dict[str, list[str]]) -> None:
    variables = Variables.from_states(states)
    assert [v.name for v in variables] == list(states)
    assert [list(v.states) for v in variables] == list(states.values())
    assert variables.cardinalities.tolist() == [v.cardinality for v in variables] == [len(s) for s in states.values()]
    assert np.diff(variables.state_offsets).tolist() == variables.cardinalities.tolist()
    assert variables[-1] == list(variables)[-1]
    assert variables[:2] == list(variables)[:2]
    for i, (name, space) in enumerate(states.items()):
        assert variables.index(name) == variables.index(variables[i]) == i
        assert [variables.find_state(i, s) for s in space] == list(range(len(space)))


def test_a_state_space_that_occurs_often_is_stored_once() -> None:
    assert len(Variables.from_states({f"v{i}": ["no", "yes"] for i in range(9)}).spaces) == 1


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("1", 1),
        (1, 1),
        (1.0, 1),
        (np.float64(1), 1),
        (np.float32(1), 1),
        (np.int8(0), 0),
        (2.5, 2),
        (True, 3),
        (np.True_, 3),
        (-3.0, 4),
        ("1.0", 1),
        ("1.00", 1),
        ("-3.0", 4),
        ("1.5", None),
        ("1e0", None),
        ("TRUE", 3),
        ("true", 3),
        ("false", None),
        (7, None),
        (np.nan, None),
        (np.inf, None),
    ],
)
def test_a_state_is_matched_by_its_text_and_a_whole_float_by_its_integer(value: object, code: int | None) -> None:
    assert Variables.from_states({"A": ["0", "1", "2.5", "True", "-3"]}).find_state(0, value) == code


def test_a_name_comes_before_what_it_may_mean() -> None:
    variables = Variables.from_states({"A": ["1", "1.0", "True", "true"]})
    assert [variables.find_state(0, value) for value in (1.0, "1.0", "1.00", "true", True, "TRUE")] == [
        1, 1, 0, 3, 2, None,
    ]  # fmt: skip


def test_common_cardinality() -> None:
    assert Variables.from_states({"A": "ab", "B": "cd"}).common_cardinality == 2
    assert Variables.from_states({"A": "ab", "B": "c"}).common_cardinality is None
    assert Variables.alike(RangeNames(3), 4).common_cardinality == 4


def test_parts_of_a_union_have_their_own_names() -> None:
    union = Variables(UnionNames([RangeNames(2), RangeNames(3)]), [("a",)], np.zeros(5))
    part = take_variables(union, [(2, 5)])
    assert [v.name for v in part] == ["0", "1", "2"]
    assert part.index("2") == 2
    swapped = take_variables(union, [(2, 5), (0, 2)])
    assert [v.name for v in swapped] == ["0:0", "0:1", "0:2", "1:0", "1:1"]
    assert swapped.index("1:1") == 4


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["A", "B", "A"], "names must differ; 'A' is given twice"),
        ([], "needs at least one variable"),
    ],
)
def test_bad_names_are_refused(names: list[str], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        Variables(NameList(names), [("0", "1")], np.zeros(len(names)))


@pytest.mark.parametrize("states", [[], ["x", "x"]])
def test_bad_states_are_refused(states: list[str]) -> None:
    with pytest.raises(ModelError, match="states of 'B' must be one or more distinct names"):
        Variables.from_states({"A": ["x"], "B": states})


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    variables = Variables.from_states(dict.fromkeys(["pressure", "rain", "temperature"], "ab"))
    with pytest.raises(ModelError, match="no variable is named 'presure'; did you mean 'pressure'"):
        variables.index("presure")
    with pytest.raises(ModelError, match="'xyz'; there are 'pressure', 'rain', 'temperature'"):
        variables.index("xyz")


def test_print_outs() -> None:
    assert repr(Variable("A", ("x", "y"))) == "Variable(name='A', states=('x', 'y'))"
    assert repr(Variables.alike(RangeNames(9), 2)) == "Variables(0, 1, 2, 3, 4, 5, ...; 9 in all)"


def test_names_are_shown() -> None:
    assert repr(NameList(["A", "b 2"])) == "['A', 'b 2']"
