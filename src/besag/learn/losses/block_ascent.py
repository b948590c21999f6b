"""The dual of a hinge, climbed block by block: Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013).

    L_n(theta) = max_y (c_n(y) - <theta, g_n(y)>),    g_n(y) = phi(x_n, y) - phi(x_n, y_n)        P = sum_n w_n L_n + R
    D(alpha)   = sum_n w_n c_n(alpha_n) - sum_j l2_j theta_j^2,     theta = sum_n w_n g_n(alpha_n) / (2 l2)

R is the penalty, alpha_n a distribution over labellings of instance n, c_n and g_n of it are means. D is a lower bound
on the least P, and P - D at the same theta, the duality gap, is the sum over instances of

    gap_n = w_n (max_y s_n(y) - sum_y alpha_n(y) s_n(y)) >= 0,        s_n(y) = c_n(y) - <theta, g_n(y)>

A step takes one instance, and moves weight from the labelling a with alpha_n(a) > 0 that has the least s_n to the one
with the largest, b, as far as D grows: a pairwise step (Osokin et al. 2016), after which the gap shrinks by a factor an
epoch where steps towards b alone shrink it like one over their number.

    d = w_n (g_n(b) - g_n(a)),   gamma = min(alpha_n(a), w_n (s_n(b) - s_n(a)) / (2 q)),   q = sum_j d_j^2 / (4 l2_j)
    theta += gamma d / (2 l2)

Inference finds b; then steps go on between the labellings that are known, which takes none, INNER times or until
nothing is to be gained. `settle` goes over all instances in this way, again and again as long as a pass gains a part of
what the epoch has (Shah, Kolmogorov and Lampert 2015): it is where inference is dear that this pays. Nothing is known
here of labellings: value and gradient of one instance's loss say c and g.

Corners, A of them, are the labellings with alpha > 0: `places` (U,) of theta where one of them is not 0, `corners`
(A, U) their w_n g_n there, `losses` (A,) their w_n c_n, `weights` (A,) their alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, dot
from besag.learn.objective import DualPoint, Instances

INNER = 10
PASSES = 50
GOOD = 0.1
SMALL = 1e-14  # a gain beside the loss that it is a part of, which is nothing but rounding


class Corners(NamedTuple):
    """What is known of one instance, see the module."""

    places: IntArray
    corners: Array
    losses: Array
    weights: Array


@dataclass(frozen=True, slots=True, eq=False)
class BlockAscent:
    """An DualAscent by value and gradient of the loss of one instance; l2 (P,) or (1,)."""

    loss: Any
    instances: Instances
    l2: Array
    parts: dict[int, tuple[Any, Array]] = field(default_factory=dict)  # instances alone, with w_n phi(x_n, y_n)

    @property
    def size(self) -> int:
        """One, because each asks for an inference."""
        return 1

    def begin(self) -> DualPoint:
        """All alpha at the true labellings, where theta is 0."""
        return DualPoint(np.zeros(len(self._part(0)[1])), 0.0, {})

    def climb(self, point: DualPoint, instances: IntArray) -> DualPoint:
        """Steps of each of some instances."""
        theta, blocks, loss = point.theta.copy(), dict(point.blocks), point.loss
        for n in instances.tolist():
            loss += self._step(theta, blocks, n)
        return DualPoint(theta, loss, blocks)

    def settle(self, point: DualPoint, gained: float) -> DualPoint:
        """Steps between known labellings, until a pass gains less than GOOD times what the epoch has."""
        theta, blocks, loss, before = point.theta.copy(), dict(point.blocks), point.loss, self.bound(point)
        for _ in range(PASSES):
            loss += sum(self._balance(theta, blocks, n, _corners(blocks, n)) for n in range(len(self.instances)))
            now = self.bound(DualPoint(theta, loss, blocks))
            if not now - before > GOOD * gained:
                break
            before = now
        return DualPoint(theta, loss, blocks)

    def bound(self, point: DualPoint) -> float:
        """D."""
        return point.loss - dot(self.l2 * point.theta, point.theta)

    def _part(self, n: int) -> tuple[Any, Array]:
        if n not in self.parts:
            alone = self.instances.batch(np.array([n]))
            self.parts[n] = alone, self.loss.statistics(alone)
        return self.parts[n]

    def _step(self, theta: Array, blocks: dict[str, Any], n: int) -> float:
        alone, truth = self._part(n)
        rest, slope, _ = self.loss.value_and_grad(theta, alone, None)
        corner, value = -(slope + truth), rest + dot(theta, truth)
        return self._balance(theta, blocks, n, _with_corner(_corners(blocks, n), corner, value + dot(theta, corner)))

    def _balance(self, theta: Array, blocks: dict[str, Any], n: int, known: Corners) -> float:
        """Pairwise steps between the corners of an instance: changes theta and blocks; what sum_n w_n c_n gains."""
        places = known.places
        moved = _balanced(known, theta[places], np.broadcast_to(self.l2, theta.shape)[places])
        if moved is None:
            return 0.0
        theta[places], after = moved
        before = _corners(blocks, n)
        blocks |= {f"{name}.{n}": array for name, array in after._asdict().items()}
        return dot(after.weights, after.losses) - dot(before.weights, before.losses)


def _corners(blocks: Mapping[str, Any], n: int) -> Corners:
    """Those of an instance; the true labelling, whose g and c are 0, at the start."""
    if f"places.{n}" not in blocks:
        return Corners(np.zeros(0, np.int64), np.zeros((1, 0)), np.zeros(1), np.ones(1))
    return Corners(*(np.asarray(blocks[f"{name}.{n}"]) for name in Corners._fields))


def _with_corner(known: Corners, corner: Array, loss: float) -> Corners:
    """With one more, of weight 0."""
    places = np.union1d(known.places, np.flatnonzero(corner))
    corners = np.zeros((len(known.corners) + 1, len(places)))
    corners[:-1, np.searchsorted(places, known.places)] = known.corners
    corners[-1] = corner[places]
    return Corners(places, corners, np.append(known.losses, loss), np.append(known.weights, 0.0))


def _balanced(known: Corners, theta: Array, l2: Array) -> tuple[Array, Corners] | None:
    """Theta at the places after pairwise steps, and the corners that are left; None where there was none to take."""
    weights, is_moved = known.weights.copy(), False
    for _ in range(INNER):
        scores = known.losses - known.corners @ theta
        best, worst = int(np.argmax(scores)), int(np.argmin(np.where(weights > 0, scores, np.inf)))
        direction, gain = known.corners[best] - known.corners[worst], float(scores[best] - scores[worst])
        curved = dot(direction, direction / (4.0 * l2))
        if not (gain > SMALL * max(1.0, abs(float(scores[best]))) and curved > 0.0):
            break
        gamma = min(float(weights[worst]), gain / (2.0 * curved))
        weights[best] += gamma
        weights[worst] = max(weights[worst] - gamma, 0.0)
        theta, is_moved = theta + gamma * direction / (2.0 * l2), True
    kept = weights > 0
    left = Corners(known.places, known.corners[kept], known.losses[kept], weights[kept])
    return (theta, left) if is_moved else None
