"""A Model as the document of the native format (`besag.io.native.form` has its grammar)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from besag.io.native.arrays_beside import ArrayWriter
from besag.model.model import FactorGroup, Model
from besag.model.structured.base import Structured
from besag.model.template import Inputs, Template
from besag.model.variable import GridNames, Names, RangeNames, Variables


def document_of(model: Model, arrays: ArrayWriter) -> dict[str, Any]:
    """The JSON objects of a model, without version and kind; large arrays go to `arrays`."""
    templates = list(model.layout.templates.values())
    number = {template.name: i for i, template in enumerate(templates)}
    document: dict[str, Any] = {
        "metadata": plain(model.metadata),
        "variables": _variables(model.variables, arrays),
        "templates": [_template(f"template{i}", template, arrays) for i, template in enumerate(templates)],
        "groups": [
            {"template": number[group.template.name], **_group(f"group{i}", group, arrays)}
            for i, group in enumerate(model.groups)
        ],
        "theta": arrays.put("theta", model.theta),
    }
    if model.support is not None:
        document["support"] = arrays.put("support", model.support)
    if model.shape is not None:
        document["shape"] = [int(n) for n in model.shape]
    return document


def plain(value: Any) -> Any:
    """Metadata as dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def _variables(variables: Variables, arrays: ArrayWriter) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "names": _names(variables.names),
        "spaces": [list(space) for space in variables.spaces],
        "space_of": arrays.put("space_of", variables.space_of),
    }
    if variables.metadata:
        entry["metadata"] = {str(v): plain(kept) for v, kept in variables.metadata.items()}
    return entry


def _names(names: Names) -> Any:
    if isinstance(names, RangeNames):
        return {"range": names.n}
    if isinstance(names, GridNames):
        return {"grid": [names.height, names.width]}
    return [names[v] for v in range(len(names))]


def _template(where: str, template: Template, arrays: ArrayWriter) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": template.name, "shape": list(template.shape), "n_inputs": int(template.n_inputs)}
    if isinstance(template.basis, Structured):
        entry["basis"] = {template.basis.name: _structured(where, template.basis, arrays)}
    elif isinstance(template.basis, np.ndarray):
        entry["basis"] = {"tables": arrays.put(f"{where}_basis", template.basis)}
    if template.support is not None:
        entry["support"] = arrays.put(f"{where}_support", template.support)
    if template.pattern is not None:
        rows = arrays.put(f"{where}_rows", template.pattern.rows)
        entry["pattern"] = {"rows": rows, "columns": arrays.put(f"{where}_columns", template.pattern.columns)}
    return entry


def _structured(where: str, basis: Structured, arrays: ArrayWriter) -> Any:
    """The one field of a kind, or an object of all its fields."""
    values = {field.name: getattr(basis, field.name) for field in fields(basis)}  # type: ignore[arg-type]
    kept = {k: arrays.put(f"{where}_{k}", v) if isinstance(v, np.ndarray) else v for k, v in values.items()}
    return kept if len(kept) > 1 else kept.popitem()[1]


def _group(where: str, group: FactorGroup, arrays: ArrayWriter) -> dict[str, Any]:
    entry: dict[str, Any] = {"scopes": arrays.put(f"{where}_scopes", group.scopes)}
    if group.inputs is not None:
        entry["inputs"] = _inputs(where, group.inputs, arrays)
    if group.conditional:
        entry["conditional"] = True
    if group.positions is not None:
        entry["positions"] = arrays.put(f"{where}_positions", group.positions)
    if group.names is not None:
        entry["names"] = list(group.names)
    return entry


def _inputs(where: str, inputs: Inputs, arrays: ArrayWriter) -> dict[str, Any]:
    if hasattr(inputs, "tocsr"):
        parts = {"data": np.float64, "indices": np.int64, "indptr": np.int64}
        csr = {key: arrays.put(f"{where}_{key}", np.asarray(getattr(inputs, key), kind)) for key, kind in parts.items()}
        return {"csr": {"shape": [int(n) for n in inputs.shape], **csr}}
    return {("rows" if inputs.ndim == 1 else "dense"): arrays.put(f"{where}_inputs", inputs)}
