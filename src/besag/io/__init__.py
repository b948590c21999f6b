"""Models in files: one module for each format; `load` and `save` choose between them."""

from besag.io.load import load
from besag.io.save import convert, save
from besag.io.uai.tasks import (
    read_uai_evidence,
    read_uai_likelihoods,
    read_uai_query,
    read_uai_result,
    read_uai_samples,
)

__all__ = [
    "convert",
    "load",
    "read_uai_evidence",
    "read_uai_likelihoods",
    "read_uai_query",
    "read_uai_result",
    "read_uai_samples",
    "save",
]
