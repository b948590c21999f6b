"""Fitted networks as texts and arrays: what their files keep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from besag.arrays import AnyArray
from besag.data.tables.code_table import CodeTable
from besag.data.tables.column_type import ColumnType
from besag.graph.directed.pdag import PDAG
from besag.io.load import load
from besag.io.save import save
from besag.learn.networks.counts import FamilyCounts, Parents
from besag.model.model import Model


def store_model(model: Model, prefix: str) -> dict[str, AnyArray]:
    """The files of besag's own format, each as an array of bytes."""
    with TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.json")
        return {f"{prefix}/{path.name}": np.frombuffer(path.read_bytes(), np.uint8) for path in Path(folder).iterdir()}


def restore_model(arrays: Mapping[str, AnyArray], prefix: str) -> Model:
    """The inverse of `store_model`."""
    with TemporaryDirectory() as folder:
        for name, data in arrays.items():
            if name.startswith(f"{prefix}/"):
                (Path(folder) / Path(name).name).write_bytes(data.tobytes())
        return load(Path(folder) / "model.json")  # type: ignore[no-any-return, unused-ignore]


def plain_parameters(parameters: Mapping[str, Any], edges: list[list[str]]) -> dict[str, Any]:
    """Parameters as JSON can hold them: graphs as their edges, a Model as prior by its place beside; no functions."""
    told = dict(parameters)
    if not (told.get("structure") is None or isinstance(told.get("structure"), str)):
        told["structure"] = edges
    if isinstance(told.get("prior"), Model):
        told["prior"] = {"model": "prior"}
    if told.get("partial") is not None:
        told["partial"] = _told_graph(PDAG.read(told["partial"]))
    if "on_step" in told:
        told["on_step"] = None
    return told


def _told_graph(graph: PDAG) -> dict[str, Any]:
    return {"names": list(graph.names), "directed": graph.edges, "undirected": graph.undirected}


def restore_graph(told: Mapping[str, Any]) -> PDAG:
    """A PDAG as `plain_parameters` tells it."""
    return PDAG.from_edges(told["directed"], told["undirected"], told["names"])


def store_counts(counts: FamilyCounts) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Names, types and parents as text, tables as arrays."""
    told = {
        "names": list(counts.names),
        "types": [column.told() for column in counts.types],
        "parents": [list(above) for above in counts.parents],
        "n_rows": counts.n_rows,
        "total": counts.total,
    }
    return told, {f"counts/{v}": table for v, table in enumerate(counts.tables)}


def restore_counts(told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> FamilyCounts:
    """The inverse of `store_counts`."""
    parents: Parents = tuple(tuple(above) for above in told["parents"])
    types = tuple(ColumnType.from_told(column) for column in told["types"])
    tables = tuple(arrays[f"counts/{v}"] for v in range(len(parents)))
    return FamilyCounts(tuple(told["names"]), types, parents, tables, told["n_rows"], told["total"])


def store_rows(table: CodeTable | None) -> dict[str, AnyArray]:
    """Rows with missing cells, whose types are those of the counts."""
    if table is None:
        return {}
    arrays = {f"rows/{v}": codes for v, codes in enumerate(table.codes)}
    return arrays if table.weights is None else {**arrays, "rows/weights": table.weights}


def restore_rows(arrays: Mapping[str, AnyArray], counts: FamilyCounts) -> CodeTable | None:
    """The inverse of `store_rows`."""
    if "rows/0" not in arrays:
        return None
    codes = tuple(arrays[f"rows/{v}"] for v in range(len(counts.names)))
    return CodeTable(counts.names, counts.types, codes, len(codes[0]), arrays.get("rows/weights"))
