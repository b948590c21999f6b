"""Reading models from files: one module a format, `load` to choose between them."""

from besag.io.load import load
from besag.io.uai import read_uai_evidence

__all__ = ["load", "read_uai_evidence"]
