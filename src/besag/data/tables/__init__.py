"""Tables of data, a row a case and a column a variable, as arrays of state codes.

Read `code_table` first. `reading` takes tables in memory: pandas; polars, Arrow and whatever else speaks Arrow's stream
interface; numpy; a dict of columns. `files` takes CSV and Parquet in chunks. A column becomes codes in `columns` or in
`arrow`; what it held, so that answers can look as the data did, is a `ColumnType`.
"""
