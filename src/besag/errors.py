"""Every error and warning that besag raises on purpose.

An error says what was expected, what was got, where, and what to do. All errors derive from `BesagError`, so that
one `except` clause catches whatever the library refuses.
"""

from __future__ import annotations

import inspect
import warnings
from importlib.util import find_spec
from os import PathLike


class BesagError(Exception):
    """Base class of all errors of the library."""


class ModelError(BesagError, ValueError):
    """A model that is not well formed: shapes, names, states, tables, cycles."""


class EvidenceError(BesagError, ValueError):
    """Evidence that names nothing in the model, or that has probability zero.

    `conflict` is a minimal set of observations that cannot hold together, as {name: state}; empty when the evidence is
    not impossible but malformed. `row` is the label of the offending row of a batch.
    """

    def __init__(self, message: str, *, conflict: dict[str, object] | None = None, row: object = None) -> None:
        super().__init__(message)
        self.conflict = {} if conflict is None else conflict
        self.row = row


class DataError(BesagError, ValueError):
    """A table that cannot be learnt from; `column` and the label `row` say where, None where it is all of it."""

    def __init__(self, message: str, *, column: str | None = None, row: object = None) -> None:
        super().__init__(message)
        self.column, self.row = column, row


class ParseError(BesagError, ValueError):
    """A file or a text that cannot be read; names the path, the line and, where it helps, the column."""

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        where = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)
        self.path, self.line, self.column = path, line, column


class CapabilityError(BesagError, ValueError):
    """An engine was asked for what it cannot give; the message names one that can."""


class TooLargeError(BesagError, MemoryError):
    """The work does not fit; raised before anything large is allocated.

    `seconds` is what it would take, where it is the time that does not suffice.
    """

    def __init__(self, message: str, *, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class NumericalError(BesagError, ArithmeticError):
    """An answer that is none: numbers left the range or the precision of their type; names engine and variable."""


class LossWarning(UserWarning):
    """What a model or a file holds was not carried over in whole; the message says what is missing."""


class EvidenceWarning(UserWarning):
    """Evidence that may not say what was meant; the message says what it means here, and how to say the other."""


class DataWarning(UserWarning):
    """Data that say less than they seem to: a column of one value, a case that never occurs, labels not used."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it converged; the answer is in the result all the same."""


class IdentifiabilityWarning(UserWarning):
    """Data leave a parameter undetermined; what is learnt is one of many answers that are all as good."""


class ApproximationWarning(UserWarning):
    """`auto` left exact inference."""


def require(package: str, extra: str, what: str) -> None:
    """CapabilityError unless the package of an extra is installed."""
    if find_spec(package) is None:
        raise CapabilityError(f"{what} needs {package}, which is not installed: pip install 'besag[{extra}]'")


def warn(warning: Warning) -> None:
    """Warn at the line of the user that called the library, however deep the call is in it."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "besag":
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
