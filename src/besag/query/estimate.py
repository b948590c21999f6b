"""Answers that carry how sure they are: a float, or an array of floats, with its standard error.

    bound            "exact", or "estimate" for a mean over samples
    standard_error   of the mean; 0 where it is exact, None where it is unknown

They are numbers like any other: what arithmetic makes of them are plain floats and arrays. A part of an ArrayEstimate
has its part of the errors.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from besag.arrays import Array


class Estimate(float):
    """A number with its standard error.

    >>> Estimate(0.31274, 0.0042, "estimate")
    0.3127 ± 0.0042
    >>> Estimate(0.31274), Estimate(0.31274, None, "estimate")
    (0.31274, 0.31274 ± ?)
    """

    standard_error: float | None
    bound: str

    def __new__(cls, value: float, standard_error: float | None = 0.0, bound: str = "exact") -> Self:
        """See the module."""
        made = super().__new__(cls, value)
        made.standard_error = None if standard_error is None else float(standard_error)
        made.bound = bound
        return made

    def __getnewargs__(self) -> tuple[float, float | None, str]:  # type: ignore[override]
        return float(self), self.standard_error, self.bound

    def __repr__(self) -> str:
        error, value = self.standard_error, float(self)
        if self.bound == "exact":
            return repr(value)
        if error is None:
            return f"{value!r} ± ?"
        if error <= 0 or not math.isfinite(error):
            return f"{value!r} ± {error:g}"
        digits = max(0, 1 - math.floor(math.log10(error)))
        return f"{value:.{digits}f} ± {error:.{digits}f}"


class ArrayEstimate(np.ndarray[Any, np.dtype[np.float64]]):
    """An array with the standard error of each of its numbers.

    >>> found = ArrayEstimate([0.25, 3.0], [0.01, 0.2], "estimate")
    >>> found[1], found + 1
    (3.00 ± 0.20, array([1.25, 4.  ]))
    """

    standard_error: Array | None
    bound: str

    def __new__(cls, values: Any, standard_error: Any = 0.0, bound: str = "exact") -> Self:
        """See the module."""
        made = np.asarray(values, np.float64).view(cls)
        error = None if standard_error is None else np.asarray(standard_error, np.float64)
        made.standard_error = None if error is None else np.broadcast_to(error, made.shape)
        made.bound = bound
        made.flags.writeable = False
        return made

    def __array_finalize__(self, other: Any) -> None:
        """The errors of another arrangement of the numbers are not known."""
        self.bound = getattr(other, "bound", "estimate")
        self.standard_error = np.broadcast_to(0.0, self.shape) if self.bound == "exact" else None

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(value) if isinstance(value, ArrayEstimate) else value for value in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        values, error = np.asarray(self)[key], self.standard_error
        part = None if error is None else error[key]
        kind = Estimate if np.ndim(values) == 0 else ArrayEstimate
        return kind(values, part, self.bound)

    def __copy__(self) -> Self:
        return self  # nothing in it can change

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayEstimate, (np.array(self), self.standard_error, self.bound)


def estimate_of(value: Any, standard_error: Any, bound: str) -> Estimate | ArrayEstimate:
    """A number or an array with its errors."""
    if np.ndim(value) == 0:
        return Estimate(float(value), standard_error, bound)
    return ArrayEstimate(value, standard_error, bound)
