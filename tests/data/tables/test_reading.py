"""Tables of every kind as codes: the same codes, states and dtypes whatever holds them."""

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from besag.data.tables.code_table import CodeTable, joined_tables, recode
from besag.data.tables.column_type import ColumnType
from besag.data.tables.files import read_chunks
from besag.data.tables.reading import read_table
from besag.errors import CapabilityError, DataError, EvidenceError, ParseError

POLARS = pl.DataFrame(
    {
        "text": ["x", "y", None, "x"],
        "level": pl.Series(["lo", "hi", "hi", "lo"], dtype=pl.Enum(["lo", "hi", "mid"])),
        "kind": pl.Series(["z", "a", None, "z"], dtype=pl.Categorical),
        "number": [3, -2, None, 3],
        "flag": [True, False, None, True],
        "float": [1.0, None, 2.0, 1.0],
    }
)


def cells(table: CodeTable) -> dict[str, list[str | None]]:
    """Every column as names of states."""
    return {
        name: [kind.states[c] if c < len(kind.states) else None for c in codes.tolist()]
        for name, kind, codes in zip(table.names, table.types, table.codes, strict=True)
    }


EXPECTED = {
    "text": ["x", "y", None, "x"],
    "level": ["lo", "hi", "hi", "lo"],
    "kind": ["z", "a", None, "z"],
    "number": ["3", "-2", None, "3"],
    "flag": ["True", "False", None, "True"],
    "float": ["1", None, "2", "1"],
}


@pytest.mark.parametrize(
    "data",
    [
        POLARS,
        pa.table(POLARS),
        pa.concat_tables([pa.table(POLARS[:1]), pa.table(POLARS[1:])]),
        POLARS.to_pandas(),
        POLARS.to_pandas().convert_dtypes(),
        POLARS.to_pandas().astype(object),
        POLARS.to_dict(as_series=False),
    ],
    ids=["polars", "arrow", "chunks", "pandas", "nullable", "objects", "dict"],
)
def test_every_kind_of_table_has_the_same_cells(data: Any) -> None:
    table = read_table(data)
    assert cells(table) == EXPECTED
    assert table.has_missing == (True, False, True, True, True, True)
    assert all(codes.dtype == np.uint8 and codes.flags.c_contiguous for codes in table.codes)
    assert table.types[3].states == ("-2", "3")  # numbers are sorted as numbers


def test_ordered_categories_keep_their_order_and_unused_states() -> None:
    for data in (POLARS, POLARS.to_pandas()):
        level = read_table(data).types[1]
        assert (level.states, level.category) == (("lo", "hi", "mid"), "ordered")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([3, 1, 3], "int64"),
        ([3, 1, 3], "int8"),
        ([3, 1, 3], "uint64"),
        ([10**12, 1, 10**12], "int64"),
        ([3, 1, 3], "Int64"),
        ([True, False, True], "bool"),
        ([True, False, True], "boolean"),
        ([2.0, 0.0, 2.0], "float64"),
        ([0.5, 0.25, 0.5], "float32"),
        (["b", "a", "b"], "str"),
        (["b", "a", "b"], object),
        (["b", "a", "b"], pd.CategoricalDtype(["b", "c", "a"], ordered=True)),
        (["2020-01-01", "2019-01-01", "2020-01-01"], "datetime64[ns]"),
    ],
)
def test_values_and_dtypes_come_back(values: list[Any], dtype: Any) -> None:
    column = pd.Series(values, dtype=dtype, name="a")
    table = read_table(pd.DataFrame({"a": column}))
    back = pd.Series(table.types[0].restored(table.codes[0]), name="a")
    pd.testing.assert_series_equal(back, column)
    told = ColumnType.from_told(table.types[0].told())
    assert told.states == table.types[0].states
    if dtype != "datetime64[ns]":  # kept as text
        pd.testing.assert_series_equal(pd.Series(told.restored(table.codes[0]), name="a"), column)


def test_codes_of_categories_and_bytes_are_not_copied() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None]), "b": np.array([0, 1, 1], np.uint8)})
    table = read_table(frame)
    assert np.shares_memory(table.codes[0], frame["a"].array.codes)  # type: ignore[union-attr]
    assert np.shares_memory(table.codes[1], frame["b"].to_numpy())


def test_codes_of_numpy() -> None:
    table = read_table(np.array([[0, 2], [1, -1], [0, 0]]))
    assert cells(table) == {"0": ["0", "1", "0"], "1": ["2", None, "0"]}
    assert table.types[1].states == ("0", "1", "2")
    assert table.observed().tolist() == [[0, 2], [1, -1], [0, 0]]
    wide = read_table(np.arange(300)[:, None])
    assert wide.codes[0].dtype == np.uint16
    assert cells(wide)["0"][-1] == "299"


def test_declared_states() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.0], "b": [True, False, True]})
    table = read_table(frame, {"a": ("0", "1", "2"), "b": ("true", "false")})
    assert cells(table) == {"a": ["1", None, "2"], "b": ["true", "false", "true"]}
    with pytest.raises(EvidenceError, match=r"row 'day 3': 'a' has no state '2'") as caught:
        read_table(pd.DataFrame({"a": ["0", "1", "2"]}, index=["day 1", "day 2", "day 3"]), {"a": ("0", "1")})
    assert caught.value.row == "day 3"


@pytest.mark.parametrize(
    ("data", "match", "column"),
    [
        (pd.DataFrame({"weight": np.arange(40) / 7}), "'weight' holds 40 distinct numbers.*Discretizer", "weight"),
        (pd.DataFrame({"a": [1.5, np.inf]}), "'a' holds 2 distinct numbers", "a"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns named 'a'", "a"),
        (pd.DataFrame({"a": [[1], [2]]}), "'a' holds values that are no states", "a"),
        (pd.DataFrame({"a": ["1", 1]}), "'a' has two values that are both written '1'", "a"),
        (pd.DataFrame({"id": [f"n{i}" for i in range(70_000)]}), "'id' has 70000 distinct values.*drop it", "id"),
        (np.zeros(3), "two axes", None),
        (7, "data must be a table", None),
        ({"a": [1, 2], "b": [1]}, "rows by columns", None),
    ],
)
def test_what_is_no_table(data: Any, match: str, column: str | None) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read_table(data)
    assert caught.value.column == column


def test_an_all_missing_column() -> None:
    for column in (
        pd.Series([None, None], dtype=object),
        pd.Series([np.nan, np.nan]),
        pd.Series([pd.NA] * 2, dtype="Int8"),
    ):
        table = read_table(pd.DataFrame({"a": [1, 2], "b": column}))
        with pytest.raises(DataError, match="column 'b' has no value in any row") as caught:
            _ = table.variables
        assert caught.value.column == "b"


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1, -2, 1], "got -2.0 in row 1"),
        ([1, 1], "3 numbers, one a row, got shape"),
        ([0, 0, 0], "not all be zero"),
        ([1, np.nan, 1], "got nan in row 1"),
        ("abc", "must be numbers"),
    ],
)
def test_weights(weights: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        read_table({"a": [1, 2, 3]}, weights=weights)


@pytest.fixture(params=["arrow", "pandas"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "pandas":
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return str(request.param)


def test_csv_in_chunks(tmp_path: Any, reader: str, forced: Any) -> None:
    forced({"data.tables.files.CHUNK_ROWS": 3, "data.tables.files.CHUNK_BYTES": 100})
    frame = pd.DataFrame({"n": [10, 9, 9, 10] * 10, "t": ["a", None, "b", "a"] * 10, "f": [True, False] * 20})
    frame.to_csv(tmp_path / "x.csv.gz", index=False)
    chunks = list(read_chunks(tmp_path / "x.csv.gz"))
    assert len(chunks) > 1
    table = joined_tables(chunks).as_read()
    assert cells(table) == cells(read_table(frame))
    assert [str(kind.values.dtype) for kind in table.types] == ["int64", "str", "bool"]
    assert table.types[0].states == ("9", "10")


def test_parquet_keeps_types(tmp_path: Any, forced: Any) -> None:
    forced({"data.tables.files.CHUNK_ROWS": 2})
    POLARS.write_parquet(tmp_path / "x.parquet")
    chunks = list(read_chunks(tmp_path / "x.parquet"))
    assert len(chunks) == 2
    assert cells(joined_tables(chunks)) == EXPECTED


def test_files_that_cannot_be_read(tmp_path: Any) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (tmp_path / "measured.csv").write_text("a\n" + "\n".join(str(i / 7) for i in range(40)))
    for name in ("bad.parquet", "ragged.csv"):
        with pytest.raises(ParseError, match=name):
            list(read_chunks(tmp_path / name))
    with pytest.raises(DataError, match="'a' holds 40 distinct numbers"):
        joined_tables(list(read_chunks(tmp_path / "measured.csv"))).as_read()
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        list(read_chunks(tmp_path / "none.csv"))
    with pytest.raises(CapabilityError, match=r"\.csv"):
        list(read_chunks(tmp_path / "x.xlsx"))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_recoding(dtype: Any) -> None:
    codes = np.array([0, 1, np.iinfo(dtype).max, 1], dtype)
    moved = recode(codes, np.array([299, 2]), 300)
    assert moved.tolist() == [299, 2, 0xFFFF, 2]
    assert moved.dtype == np.uint16


def test_joined_tables_have_the_states_of_all() -> None:
    one, two = read_table({"a": ["x", "z"]}), read_table({"a": ["y", None]}, weights=[2.0, 3.0])
    joined = joined_tables([one, two])
    assert cells(joined) == {"a": ["x", "z", "y", None]}
    assert joined.types[0].states == ("x", "y", "z")
    assert joined.weights is not None
    assert joined.weights.tolist() == [1, 1, 2, 3]


def test_texts_of_numbers_are_numbers_once_all_is_read(tmp_path: Any, forced: Any) -> None:
    forced({"data.tables.files.CHUNK_ROWS": 2, "data.tables.files.CHUNK_BYTES": 16})
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.0, 1.0, 2.0, 0.0], "b": [0.5, 0.0, 0.5, 1.0, 1.0, 0.0]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    read = joined_tables(list(read_chunks(tmp_path / "rows.csv"))).as_read()
    assert cells(read) == cells(read_table(frame))
    assert [kind.values.dtype for kind in read.types] == [np.float64, np.float64]


def test_a_state_that_was_not_declared_is_named_with_its_row_in_the_file(tmp_path: Any, forced: Any) -> None:
    forced({"data.tables.files.CHUNK_ROWS": 2})
    pd.DataFrame({"a": ["x", "x", "y", "x", "q"]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(EvidenceError, match="row 4: 'a' has no state 'q'"):
        list(read_chunks(tmp_path / "rows.parquet", {"a": ("x", "y")}))


@pytest.mark.parametrize("name", [None, "number"])
def test_the_index_of_a_frame_is_no_column_of_its_file(tmp_path: Any, name: str | None) -> None:
    frame = pd.DataFrame({"a": ["x", "y", "x"], "b": [0, 1, 1]}, index=pd.Index([2, 0, 1], name=name))
    frame.to_parquet(tmp_path / "rows.parquet")
    (read,) = read_chunks(tmp_path / "rows.parquet")
    assert cells(read) == cells(read_table(pa.Table.from_pandas(frame))) == cells(read_table(frame))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64])
def test_codes_of_every_width(dtype: Any) -> None:
    table = read_table(np.array([[0, 2], [1, 0]], dtype))
    assert cells(table) == {"0": ["0", "1"], "1": ["2", "0"]}


def test_one_column_is_no_table() -> None:
    for column in (pd.Series([1, 2]), pl.Series([1, 2]), np.array([1, 2])):
        with pytest.raises(DataError, match="Reshape your data"):
            read_table(column)


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2020-01-01", "2021-05-03"]),
        pd.to_datetime(["2020-01-01", "2021-05-03"]).tz_localize("UTC"),
        pd.to_timedelta([1, 2], "h"),
        pd.array(["x", "y"], pd.ArrowDtype(pa.string())),
        pd.array([1, 2], pd.ArrowDtype(pa.int32())),
    ],
)
def test_types_survive_files(values: Any) -> None:
    kind = read_table(pd.DataFrame({"a": values})).types[0]
    again = ColumnType.from_told(json.loads(json.dumps(kind.told())))
    assert again.states == kind.states
    pd.testing.assert_index_equal(again.values, kind.values)
