"""The marginal polytope: which moments a model can have, and where the theta that has them lies at infinity.

    M = {E_q[phi]: q any distribution that the hard zeros allow}

theta with E[phi] = mu exists for mu in the relative interior of M; on its boundary the likelihood grows for ever along
some direction of theta, beyond it without bound. Three tests, the first two of single statistics, before learning:

    range    low_j <= mu_j <= high_j, the sums over factors of the least and largest phi_fj: outside is an error, and
             at an end mu is on the boundary (or beyond it, where factors cannot all be at theirs)
    sums     the entries of a table add up to the number of its factors, or to the sum of their inputs
    moving   other faces are found after learning: with a tolerance that is a thousandth, and a thousandth of that, an
             optimum does not move, but on the way to infinity log-potentials grow by log 1000 each time, or are
             beyond FAR already; where rounding keeps it from growing, it begins as much further on as it came from a
             coarser tolerance, and comes back from there where the optimum is finite
"""

from __future__ import annotations

import math

import numpy as np

from besag.arrays import Array, IntArray, norm
from besag.errors import ModelError
from besag.learn.losses.base import largest_change
from besag.learn.objective import Total
from besag.learn.optimisers.lbfgs import LBFGS
from besag.model.model import FactorGroup, Model
from besag.model.template import Template

CLOSE = 1e-12  # of the width of a range: at its end
SLACK = 1e-6  # of what moments must be: those of single precision do
MOST_ENTRIES = 1 << 22  # of a structured basis that is looked at as a table
FINEST, FINER = 1e-11, 1e-3
MOVED = 1.0  # of a log-potential
FAR = 1e4  # log-potentials beyond which probabilities are 0, so that a gradient that is not 0 cannot become so
SHOWN = 6


def ranges(model: Model) -> tuple[Array, Array]:
    """(P,) each: the sums over factors of the least and the largest phi_fj that hard zeros allow."""
    low, high = np.full(model.layout.n_parameters, -math.inf), np.full(model.layout.n_parameters, math.inf)
    for name, template in model.layout.templates.items():
        where = model.layout[name]
        basis = _ends_of_basis(template)
        if basis is None:
            continue
        above, below = _sums_of_inputs(model, template)
        least, most = (above * basis[0] + below * basis[1]), (above * basis[1] + below * basis[0])
        if template.pattern is not None:
            pairs = template.pattern.rows, template.pattern.columns
            least, most = least[pairs], most[pairs]
        low[where], high[where] = least.reshape(-1), most.reshape(-1)
    if model.support is not None:
        low[~model.support] = high[~model.support] = 0.0
    return low, high


def _ends_of_basis(template: Template) -> Array | None:
    """(2, Q): the least and the largest of each basis element; None where there are too many."""
    size, allowed = math.prod(template.shape), template.support
    keep = np.ones(size, np.bool_) if allowed is None else allowed.reshape(-1)
    if template.basis is None:
        only = keep & (keep.sum() == 1)
        return np.stack([only, keep]).astype(np.float64)
    if template.structured is not None:
        if template.n_basis * size > MOST_ENTRIES:
            return None
        table = template.structured.dense()
        keep = keep & np.isfinite(table.reshape(template.n_basis, size)).all(axis=0)
    else:
        table = np.asarray(template.basis)
    entries = table.reshape(template.n_basis, size)
    entries = entries[:, keep & np.isfinite(entries).all(axis=0)]
    return np.stack([entries.min(axis=1), entries.max(axis=1)])


def _sums_of_inputs(model: Model, template: Template) -> tuple[Array, Array]:
    """(D, 1) each: the sums over factors of what is positive and what is negative of their inputs."""
    above, below = np.zeros(template.n_inputs), np.zeros(template.n_inputs)
    for group in _groups(model, template):
        if group.inputs is None:
            above += len(group)
        elif group.inputs.ndim == 1:
            above += np.bincount(group.inputs, minlength=template.n_inputs)
        else:
            total, size = np.asarray(group.inputs.sum(axis=0)), np.asarray(abs(group.inputs).sum(axis=0))
            above += (size + total) / 2
            below += (total - size) / 2
    return above[:, None], below[:, None]


def _groups(model: Model, template: Template) -> list[FactorGroup]:
    return [group for group in model.groups if group.template.name == template.name]


def refuse_outside(model: Model, moments: Array) -> None:
    """ModelError where no distribution has these moments, as far as single statistics and tables tell."""
    low, high = ranges(model)
    slack = SLACK * np.maximum(1.0, high - low)
    outside = (moments < low - slack) | (moments > high + slack)
    if outside.any():
        at = int(np.argmax(outside))
        raise ModelError(
            f"no distribution has these moments: that of {statistic_name(model, at)} is {moments[at]:.6g}, and it can "
            f"be from {low[at]:.6g} to {high[at]:.6g}"
        )
    for name, template in model.layout.templates.items():
        if template.basis is not None or template.pattern is not None:
            continue
        above, below = _sums_of_inputs(model, template)
        sums, expected = moments[model.layout[name]].reshape(template.n_inputs, -1).sum(axis=1), (above + below)[:, 0]
        wrong = np.abs(sums - expected) > SLACK * np.maximum(1.0, (above - below)[:, 0])
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ModelError(
                f"no distribution has these moments: those of a table of template {name!r} add up to {sums[at]:.6g}, "
                f"where its factors make them {expected[at]:.6g}"
            )


def at_an_end(model: Model, total: Total, moments: Array) -> IntArray:
    """The statistics whose moments are at an end of their range, and whose parameter nothing keeps from infinity.

    Hard zeros of other factors may leave a statistic one value: then it is that at theta = 0 too.
    """
    penalty = total.penalty
    if penalty.regulariser is not None:
        return np.zeros(0, np.int64)
    low, high = ranges(model)
    close = CLOSE * (high - low)
    lowest, highest = moments <= low + close, moments >= high - close
    if penalty.box is not None:  # the least moment asks for the largest energy
        lowest &= penalty.box.high == math.inf
        highest &= penalty.box.low == -math.inf
    free = np.broadcast_to((penalty.l1 == 0) & (penalty.l2 == 0), moments.shape)
    found = np.flatnonzero(free & (high > low) & (lowest | highest))
    if not len(found):
        return found
    distance = np.abs(total.value_and_grad(np.zeros_like(moments))[1])  # |mu - E_0[phi]|, where nothing is penalised
    return found[distance[found] > SLACK * (high - low)[found]]


def still_moving(total: Total, theta: Array, tolerance: float) -> IntArray:
    """The parameters that go on growing when the gradient is made ever smaller; none where theta is an optimum."""
    none = np.zeros(0, np.int64)
    if (np.broadcast_to(total.penalty.l2, theta.shape) > 0).all():
        return none
    graph = total.shards[0].graph
    tolerance = max(tolerance, FINEST)
    change, finest = theta, 2 * min(FINEST, FINER * tolerance)  # twice: products are rounded
    while tolerance > finest and largest_change(graph, theta) < FAR:
        tolerance *= FINER
        before, absolute = theta, tolerance / max(1.0, norm(theta))
        theta, history, _ = LBFGS(tolerance=absolute, max_iterations=200).minimize(total, theta)
        if history.stopped == "no_progress":
            coarse = LBFGS(tolerance=tolerance / FINER**2).minimize(total, np.zeros_like(theta))[0]
            theta = LBFGS(tolerance=absolute, max_iterations=200).minimize(total, 2 * before - coarse)[0]
        change = theta - before
        if largest_change(graph, change) < MOVED:
            return none
    return np.flatnonzero(np.abs(change) > 0.1 * np.abs(change).max())


def boundary_text(model: Model, numbers: IntArray) -> str:
    """What to say of moments on the boundary."""
    names = [statistic_name(model, int(j)) for j in numbers[:SHOWN]]
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return (
        "the moments are on the boundary of the marginal polytope, or beyond it: the optimum is at infinity, in the "
        f"direction of {', '.join(names)}{more}, and theta is where the fit stopped on the way; l2= or bounds= give a "
        "finite optimum"
    )


def statistic_name(model: Model, number: int) -> str:
    """A parameter as template[input][entry]; by names and states where it is in the table of one factor."""
    for name, template in model.layout.templates.items():
        where = model.layout[name]
        if where.start <= number < where.stop:
            return _name_within(model, template, number - where.start)
    raise ModelError(f"there are parameters 0 to {model.layout.n_parameters - 1}, got {number}")


def _name_within(model: Model, template: Template, number: int) -> str:
    if template.pattern is None:
        row, element = divmod(number, template.n_basis)
    else:
        row, element = int(template.pattern.rows[number]), int(template.pattern.columns[number])
    scopes = [group.scopes[_readers(group, row)] for group in _groups(model, template)]
    cell = [element] if template.basis is not None else [int(k) for k in np.unravel_index(element, template.shape)]
    scaled = any(group.inputs is not None and group.inputs.ndim > 1 for group in _groups(model, template))
    if template.basis is None and not scaled and sum(len(part) for part in scopes) == 1:
        scope = next(part[0] for part in scopes if len(part))
        names, states = model.variables.names_at(scope), [model.variables.states(int(v)) for v in scope]
        return f"({', '.join(f'{name}={space[k]}' for name, space, k in zip(names, states, cell, strict=True))})"
    head = template.name if template.n_inputs == 1 else f"{template.name}[{row}]"
    return f"{head}[{', '.join(map(str, cell))}]"


def _readers(group: FactorGroup, row: int) -> slice | IntArray:
    """The factors of a group that read a row of theta."""
    if group.inputs is None or group.inputs.ndim > 1:
        return slice(None)
    return np.flatnonzero(group.inputs == row)
