"""Labellings as users write them: {name: state}, a DataFrame of them, or int codes in the shape of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import IntArray
from besag.errors import ModelError, TooLargeError
from besag.graph.evidence import Evidence, read_evidence
from besag.infer.engine import Engine
from besag.infer.result import Diagnostics, Result
from besag.model.on_data import is_structure, with_data
from besag.model.variable import Variables

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model


def on_data(model: Model, given: Any) -> tuple[Model, Any]:
    """The model of structured data that is given in place of evidence, without evidence; else both as they are."""
    return (with_data(model, given), None) if is_structure(given) else (model, given)


def label_on_data(model: Model, given: Any) -> tuple[Model, Any]:
    """The model of labelled structured data that is given in place of a labelling, and its labels as Evidence."""
    if not is_structure(given):
        return model, given
    labels = getattr(given, "labels", None)
    if labels is None:
        raise ModelError("the structured data have no labels; give them some, or ask model.with_data(data)")
    return with_data(model, given), Evidence(labels)


def read_labels(model: Model, given: Any) -> tuple[IntArray, bool]:
    """(B, V) codes of complete labellings, and whether they came as rows."""
    variables = model.variables
    if isinstance(given, np.ndarray):
        return _from_codes(model, given)
    evidence = read_evidence(variables, given)
    missing = np.argwhere(evidence.observed < 0)
    if missing.size:
        row, v = missing[0].tolist()
        where = f"row {row}: " if evidence.batched else ""
        raise ModelError(f"{where}a labelling must give every variable one state; {variables.names[v]!r} has none")
    return evidence.observed, evidence.batched


def _from_codes(model: Model, given: Any) -> tuple[IntArray, bool]:
    shape = model.shape or (len(model.variables),)
    if not np.issubdtype(given.dtype, np.integer) or given.shape[-len(shape) :] != shape:
        raise ModelError(f"labels must be integers of shape {shape}, or rows of them, got {given.dtype} {given.shape}")
    codes = given.reshape(-1, len(model.variables)).astype(np.int64)
    if (codes < 0).any() or (codes >= model.variables.cardinalities).any():
        raise ModelError("labels must be codes of states, from 0 to K - 1")
    return codes, given.ndim > len(shape)


def read_start(model: Model, given: Any, evidence: Evidence, engine: Engine) -> Any:
    """What the option `init` gives; a labelling becomes a Result that has one, the same for each row of evidence.

    A labelling is {name: state}, or int codes in the shape of the model. What the evidence observes may be left out of
    the dict; to leave out others is an error, because nobody has chosen a state for them.
    """
    if given is None or isinstance(given, Result) or engine.capabilities.starts_from != "labelling":
        return given
    if not isinstance(given, (Mapping, np.ndarray)):
        text = "init must be a Result or a labelling to start from, {name: state} or int codes"
        raise TypeError(f"{text}, got {type(given).__name__}")
    is_codes = isinstance(given, np.ndarray)
    codes, rows = _from_codes(model, given) if is_codes else (read_evidence(model.variables, given).observed, False)
    if rows:
        raise ModelError(f"init must be one labelling, got {len(codes)} rows of them")
    codes = np.where(codes < 0, evidence.observed, codes)
    if (codes < 0).any():
        name = model.variables.names[int(np.argwhere(codes < 0)[0, 1])]
        raise ModelError(f"init must give every variable that is not observed one state; {name!r} has none")
    return Result(model.graph, "estimate", Diagnostics(), codes=codes[:, None])


def labels_frame(variables: Variables, codes: IntArray, index: Any = None) -> pd.DataFrame:
    """A DataFrame of labellings (n, V): Categoricals in state order."""
    import pandas as pd

    dtypes = [pd.CategoricalDtype(pd.Index(space, dtype="str")) for space in variables.spaces]
    by_column = np.ascontiguousarray(codes.T)  # int8 codes are taken as they are
    columns = {
        variables.names[v]: pd.Categorical.from_codes(by_column[v], dtype=dtypes[space], validate=False)
        for v, space in enumerate(variables.space_of.tolist())
    }
    return pd.DataFrame(columns, index=index)


def configurations(variables: Variables, indices: list[int], limit: int) -> IntArray:
    """Every joint state of some variables, the last fastest: (prod K, n) codes; TooLargeError above `limit` rows."""
    sizes = [int(variables.cardinalities[v]) for v in indices]
    if np.log2(sizes).sum() > np.log2(limit) + 1e-9:
        names = ", ".join(variables.names_at(indices[:6])) + (", ..." if len(indices) > 6 else "")
        raise TooLargeError(f"({names}) have 2^{np.log2(sizes).sum():.4g} joint states, more than the limit of {limit}")
    count, repeat = math.prod(sizes), math.prod(sizes)
    codes = np.empty((count, len(sizes)), np.int64)
    for i, size in enumerate(sizes):
        repeat //= size
        codes[:, i] = np.arange(count) // repeat % size
    return codes
