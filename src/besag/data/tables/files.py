"""CSV and Parquet files as CodeTables, chunk by chunk, in one pass: only a chunk is in memory.

The cells of a CSV file are text until all is read: what its columns hold is seen at the end (`typed_text`). Parquet
knows its types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from besag.data.tables.code_table import CodeTable, joined_tables
from besag.data.tables.column_type import check_few
from besag.data.tables.reading import read_table
from besag.errors import CapabilityError, DataError, ParseError, require
from besag.graph.evidence import NO_STATE

CHUNK_ROWS = 1 << 17
CHUNK_BYTES = 1 << 24


def is_path(data: Any) -> bool:
    """Whether data are given as a path."""
    return isinstance(data, (str, PathLike))


def is_text_file(path: Any) -> bool:
    """Whether the cells of a file are text: CSV, compressed or not, and .tsv."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix not in (".gz", ".bz2", ".xz", ".zst")]
    if not suffixes or suffixes[-1] not in (".csv", ".tsv", ".txt", ".parquet", ".pq"):
        raise CapabilityError(f"{str(path)!r}: tables are read from .csv, .tsv, .txt (with .gz, .xz) and .parquet")
    return suffixes[-1] not in (".parquet", ".pq")


def read_chunks(
    path: str | PathLike[str], states: Mapping[str, Sequence[str]] | None = None, columns: Sequence[str] = ()
) -> Iterator[CodeTable]:
    """The chunks of a file, one at least; FileNotFoundError where there is none, ParseError where it cannot be read."""
    is_text = is_text_file(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"no file {str(path)!r}")
    pieces = _text_pieces(Path(path)) if is_text else _parquet_pieces(Path(path))
    n_rows = 0
    try:
        for piece in pieces:
            table = read_table(piece, states, columns=columns, first_row=n_rows)
            n_rows += table.n_rows
            yield _as_text(table) if is_text else table
    except (OSError, ArithmeticError) as error:
        raise ParseError(str(error), path=path) from None


def read_parts(data: Any, states: Mapping[str, Sequence[str]], weights: Any = None) -> Iterable[CodeTable]:
    """The table, or the chunks of a file where its path is given."""
    if not is_path(data):
        return [read_table(data, states, weights)]
    if weights is not None:
        raise DataError("weights are for tables in memory; a file is read in chunks")
    return read_chunks(data, states)


def read_whole(data: Any, states: Mapping[str, Sequence[str]], weights: Any = None) -> CodeTable:
    """The table, or all of a file where its path is given."""
    table = joined_tables(list(read_parts(data, states, weights)))
    return table.as_read() if is_path(data) and is_text_file(data) else table


def _as_text(table: CodeTable) -> CodeTable:
    """Without categories, which text has only for speed; DataError for columns of measurements."""
    for name, column in zip(table.names, table.types, strict=True):
        check_few(name, column.states)
    return replace(table, types=tuple(replace(column, category="") for column in table.types))


def _parquet_pieces(path: Path) -> Iterator[Any]:
    require("pyarrow", "arrow", "to read Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows == 0:
                yield file.schema_arrow.empty_table()
            for batch in file.iter_batches(batch_size=CHUNK_ROWS):
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as error:
        raise ParseError(str(error), path=path) from None


def _text_pieces(path: Path) -> Iterator[Any]:
    """Frames of text; by pyarrow where it is there, several times as fast."""
    from importlib.util import find_spec

    separator = "\t" if ".tsv" in path.suffixes else ","
    if find_spec("pyarrow") is None or ".xz" in path.suffixes:
        yield from _pandas_pieces(path, separator)
    else:
        yield from _arrow_pieces(path, separator)


def _pandas_pieces(path: Path, separator: str) -> Iterator[Any]:
    import pandas as pd

    try:
        with pd.read_csv(path, sep=separator, dtype=str, chunksize=CHUNK_ROWS) as reader:
            yield from reader
    except (ValueError, pd.errors.ParserError) as error:
        raise ParseError(str(error), path=path) from None


def _arrow_pieces(path: Path, separator: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    try:
        with pa.input_stream(str(path), compression="detect") as head:
            names = csv.open_csv(head, parse_options=csv.ParseOptions(delimiter=separator)).schema.names
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string())),
            null_values=sorted(NO_STATE),
            strings_can_be_null=True,
        )
        reading = csv.ReadOptions(block_size=CHUNK_BYTES)
        parse = csv.ParseOptions(delimiter=separator)
        with pa.input_stream(str(path), compression="detect") as source:
            batches = csv.open_csv(source, reading, parse, convert)
            first = next(iter(batches), None)
            yield batches.schema.empty_table() if first is None else first
            yield from batches
    except pa.ArrowInvalid as error:
        raise ParseError(str(error), path=path) from None
