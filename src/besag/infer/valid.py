"""Every Result is looked at once, where it is made: what is no answer is an error, never returned as one.

    probabilities, factor_marginals   every vector is a distribution, up to TOLERANCE; or zero, where nothing was asked
                                      for, or where a row or an instance has no labelling
    log_partitions                    a number, within its bounds; -inf where it says that there is no labelling
    energies                          numbers, or inf where no labelling was found

Engines keep these by themselves (`besag.kernels.distributions` takes a microsecond for a small answer, and one pass
over the memory of a large one). Where the look finds something, it is arithmetic that left the range or the precision
of its numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.errors import NumericalError
from besag.kernels.distributions import look_through

if TYPE_CHECKING:
    from besag.infer.result import Result

TOLERANCE = 1e-6
ROUNDING = 1e-9  # of a bound on log Z, relative
ADVICE = "try another engine, dtype=float64 if it was float32, or energies that lie less far apart"


def check_marginals(result: Result, values: Array, offsets: IntArray, *, of_factors: bool) -> None:
    """NumericalError where a vector, of a variable or a factor, is no distribution and has no reason to be zero."""
    wrong, n_zero = look_through(values, offsets, TOLERANCE)
    if wrong < 0 and n_zero:
        wrong = _first_of(_is_zero(values, offsets) & ~_may_be_zero(result, values, of_factors))
    if wrong < 0:
        return
    row, number = divmod(wrong, len(offsets) - 1)
    found = values[row, offsets[number] : offsets[number + 1]]
    graph = result.graph
    name = f"factor {graph.scope_name(number)}" if of_factors else repr(graph.variables.names[number])
    where = f" in row {row}" if result.batched else ""
    raise NumericalError(
        f"engine {_engine(result)!r}: the marginal of {name}{where} is no distribution: expected numbers from 0 to 1 "
        f"that sum to 1, got a sum of {found.sum():.6g}, least {found.min():.6g}, largest {found.max():.6g}; {ADVICE}"
    )


def check_log_partitions(result: Result, values: Array) -> None:
    """NumericalError where log Z is no number, or not within its bounds."""
    fine = _fine_number if len(values) == 1 else _fine_numbers
    if fine(values, result.bound) and result.bounds is None:
        return
    low, high = result.bound_arrays()
    nothing = high == -np.inf
    slack = ROUNDING * np.maximum(1.0, np.abs(np.where(np.isfinite(values), values, 0.0)))
    inside = (low <= values + slack) & (values <= high + slack)
    number = np.isfinite(values) | nothing | (values == {"lower": -np.inf, "upper": np.inf}.get(result.bound, np.nan))
    wrong = _first_of(~(inside & number))
    if wrong >= 0:
        where = f" of row or instance {wrong}" if len(values) > 1 else ""
        raise NumericalError(
            f"engine {_engine(result)!r}: expected log Z{where} to be a number from {low[wrong]:.10g} to "
            f"{high[wrong]:.10g}, its bounds, got {values[wrong]:.10g}; {ADVICE}"
        )


def check_energies(result: Result, values: Array) -> None:
    """NumericalError where an energy is NaN."""
    if math.isnan(values.min(initial=0.0)):
        raise NumericalError(
            f"engine {_engine(result)!r}: expected the energy of a labelling to be a number, got NaN; {ADVICE}"
        )


def _fine_number(values: Array, bound: str) -> bool:
    """Whether one log Z needs no second look."""
    return -math.inf < values.item() < math.inf or (values.item() == -math.inf and bound == "exact")


def _fine_numbers(values: Array, bound: str) -> bool:
    least, largest = values.min(initial=0.0), values.max(initial=0.0)  # NaN where one is
    return bool(largest < math.inf and (least > -math.inf or bound == "exact"))


def _is_zero(values: Array, offsets: IntArray) -> BoolArray:
    """(R, V)."""
    return np.asarray(np.maximum.reduceat(values, offsets[:-1], axis=1) == 0.0)


def _may_be_zero(result: Result, values: Array, of_factors: bool) -> BoolArray:
    """(R, V) or (R, F): what was not asked for, and rows or instances that have no labelling, as far as they tell."""
    graph = result.graph
    n = graph.n_factors if of_factors else graph.n_variables
    if result.log_partitions is not None:
        empty = result.bound_arrays()[1] == -np.inf
    elif graph.n_instances == 1:
        empty = ~values.any(axis=1)
    else:
        return np.ones((1, n), np.bool_)  # nothing says which instances have a labelling
    if graph.n_instances > 1:
        instance = graph.factor_instances if of_factors else _instances(result)
        return np.asarray(empty[instance][None])
    may = np.repeat(empty[:, None], n, axis=1)
    if result.targets is not None:
        asked = [graph.variables.index(name) for name in result.targets]
        may |= ~np.isin(np.arange(n), asked)
    return may


def _instances(result: Result) -> IntArray:
    """(V,): the instance of each variable."""
    graph = result.graph
    return np.repeat(np.arange(graph.n_instances), np.diff(graph.instance_offsets))


def _first_of(wrong: AnyArray) -> int:
    """The first place that is True, flat; -1 where none is."""
    return int(np.argmax(wrong)) if wrong.any() else -1


def _engine(result: Result) -> Any:
    return result.diagnostics.get("engine")
