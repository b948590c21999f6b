"""Block-coordinate Frank-Wolfe for losses that are maxima of linear functions, such as `max_margin`.

It climbs the dual, one instance after the other in a random order, each by an exact line search, so that there is no
step to choose; an iteration is an epoch over all instances. What a step is, the loss knows: `Function.ascent`.

A row of the history has the value P, loss plus penalty at theta, and in the column `gap` the duality gap P - D: the
value is at most that far above the least one, where inference is exact. Converged is gap <= tolerance P.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from besag.arrays import Array
from besag.errors import CapabilityError
from besag.learn.history import Iteration
from besag.learn.objective import DualPoint, Function
from besag.learn.optimisers.base import OPTIMIZERS, Descending, Method, Point, refuse_bounds, refuse_l1
from besag.learn.optimisers.epochs import Epochs


@dataclass(frozen=True, slots=True)
class FrankWolfe(Descending):
    """max_iterations: epochs. tolerance: of the gap, relative to the value. seed: of the order of instances.

    evaluate_every: epochs from one evaluation of value and gap to the next; rows between have nan, the last never has.
    """

    max_iterations: int = 200
    tolerance: float = 1e-3
    seed: int = 0
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        OPTIMIZERS.check_counts(self, "max_iterations", "evaluate_every")
        OPTIMIZERS.check_counts(self, "seed", least=0)
        OPTIMIZERS.check_numbers(self, "tolerance")

    def at_work(self, function: Function, n_parameters: int) -> Method:
        refuse_l1(self, function)
        refuse_bounds(self, function)
        if function.penalty.regulariser is not None:
            raise CapabilityError("optimizer 'frank_wolfe' cannot minimise with a regulariser; adam and adagrad can")
        if not (function.penalty.l2 > 0).all():
            raise CapabilityError(
                "optimizer 'frank_wolfe' needs l2 > 0 for all parameters: without it max_margin has no scale"
            )
        return DualEpochs(self, function)


class DualEpochs(Epochs):
    """Points keep: loss, sum_n w_n c_n; blocks, as the state; the gap at theta; D where the epoch began, `bound`."""

    optimizer: FrankWolfe
    own = "loss"
    compares_values = False

    def __init__(self, optimizer: FrankWolfe, function: Function) -> None:
        self.ascent = function.ascent()
        Epochs.__init__(self, optimizer, function, self.ascent.size)

    def begin(self, theta: Array) -> Point:
        if theta.any():
            raise CapabilityError("optimizer 'frank_wolfe' begins at zeros, where the dual does: leave out theta=")
        dual = self.ascent.begin()
        value, grad_norm, _ = self.evaluated(dual.theta)
        kept = {**self.beginning(), "state": dual.blocks, "loss": dual.loss, "gap": value}
        return Point(0, dual.theta, value, grad_norm, 0.0, kept)

    def step(self, point: Point) -> Point:
        """Some instances; with the last ones of an epoch, its evaluation where that is due."""
        kept = self.drawn(point)
        before = DualPoint(point.theta, kept["loss"], kept["state"] or {})
        dual = self.ascent.climb(before, self.batch(kept))
        began = kept["bound"] if point.is_within else self.ascent.bound(before)
        kept["position"] = self.after(kept["position"])
        if not kept["position"]:
            dual = self.ascent.settle(dual, self.ascent.bound(dual) - began)
        kept |= {"state": dual.blocks, "loss": dual.loss, "gap": math.nan, "bound": began}
        moved = Point(point.iteration, dual.theta, math.nan, math.nan, 1.0, kept)
        if moved.is_within:
            return moved
        done = moved._replace(iteration=point.iteration + 1)
        if done.iteration % self.optimizer.evaluate_every:
            return done
        value, grad_norm = self.measured(done)
        return done._replace(value=value, grad_norm=grad_norm, kept={**kept, "gap": value - self._bound(done)})

    def _bound(self, point: Point) -> float:
        return self.ascent.bound(DualPoint(point.theta, point.kept["loss"], point.kept["state"] or {}))

    def measured(self, point: Point) -> tuple[float, float]:
        value, grad_norm, _ = self.evaluated(point.theta)
        return value, grad_norm

    def is_converged(self, point: Point, rows: list[Iteration]) -> bool:
        return abs(float(point.kept["gap"])) <= self.optimizer.tolerance * point.value  # below 0: inference was wrong

    def monitors(self, point: Point) -> Mapping[str, float]:
        return {"gap": float(point.kept["gap"])}

    def noted(self, point: Point, value: float) -> Mapping[str, float]:
        return {"gap": value - self._bound(point)}
