"""Fitted estimators on disk: one .npz archive, with arrays as they are and all else as one JSON text; no pickle.

    about      {"format", "estimator": its class, "parameters": of __init__, "notes", and what the class itself stores}
    others     arrays, by the names that the class gives them

A class that can be stored has `_stored() -> (mapping, arrays)` and `_restored(parameters, mapping, arrays)`, and an
entry in STORED.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from besag.arrays import AnyArray
from besag.errors import BesagError, ModelError, ParseError
from besag.infer.engine import ENGINES
from besag.io.shared.files import write_atomically
from besag.learn.checkpoint import BROKEN
from besag.learn.optimisers.base import OPTIMIZERS, Descending

FORMAT = "besag estimator 1"
STORED = {
    "BayesianNetwork": "besag.estimators.networks.bayesian",
    "BayesianNetworkClassifier": "besag.estimators.networks.classifier",
    "ChainCRF": "besag.estimators.chain_crf.estimator",
    "GraphCRF": "besag.estimators.graph_crf",
    "HMM": "besag.estimators.hmm.estimator",
    "Discretizer": "besag.estimators.discretizer",
    "GridCRF": "besag.estimators.grid_crf",
    "MarkovNetwork": "besag.estimators.networks.markov",
    "Mixture": "besag.estimators.networks.mixture",
    "MultiLabelCRF": "besag.estimators.multi_label_crf",
    "RBM": "besag.estimators.rbm.estimator",
}


def save_estimator(estimator: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator, whole or not at all."""
    told, arrays = estimator._stored()
    about = {
        "format": FORMAT,
        "estimator": type(estimator).__name__,
        "parameters": estimator.get_params(),
        "notes": dict(estimator.notes_),
        **told,
    }
    try:
        text = json.dumps(about, default=_listed)
    except TypeError as error:
        raise ModelError(
            f"only texts, numbers and lists of them can be saved in parameters and labels: {error}"
        ) from None
    archive = io.BytesIO()
    np.savez_compressed(archive, about=np.array(text), **arrays)
    write_atomically(Path(path), archive.getvalue())


def _listed(value: Any) -> Any:
    """A value that JSON cannot hold as one that it can: sets as sorted lists, optimisers and engines as text."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Descending):
        return OPTIMIZERS.text_of(value)  # type: ignore[arg-type]
    if ENGINES.name_of(value) in ENGINES:
        return ENGINES.text_of(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (np.bool_, np.number)):
        return value.item()
    raise TypeError(f"{value!r} is of type {type(value).__name__}")


class _NotOurs(Exception):
    """An archive that says nothing about an estimator."""


def read_estimator(data: bytes, path: str) -> Any:
    """The estimator in an archive; ParseError if there is none or it is broken."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            if "about" not in archive.files:
                raise _NotOurs
            arrays: dict[str, AnyArray] = {name: archive[name] for name in archive.files}
        about: Mapping[str, Any] = json.loads(str(arrays.pop("about")))
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}, not {FORMAT!r}")
        name = about["estimator"]
        made = getattr(importlib.import_module(STORED[name]), name)
        restored = made._restored(about["parameters"], about, arrays)
        restored.notes_ = about.get("notes", {})
        return restored
    except _NotOurs:
        raise ParseError("this archive is neither a model nor an estimator of besag", path=path) from None
    except (*BROKEN, IndexError, BesagError) as error:
        raise ParseError(f"expected an estimator of besag, but it cannot be read: {error}", path=path) from None
