"""Models in files: one module a format, `load` and `save` to choose between them."""

from besag.io.load import load
from besag.io.save import convert, save
from besag.io.uai_tasks import read_uai_evidence

__all__ = ["convert", "load", "read_uai_evidence", "save"]
