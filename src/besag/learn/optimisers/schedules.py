"""Schedules: how the step of a stochastic method shrinks, by the number e of epochs that have passed, with fractions.

constant      step
inverse       step / (1 + decay e)          sum of steps infinite, of their squares finite: Robbins and Monro
inverse_sqrt  step / sqrt(1 + decay e)      slower, for use with averaging
cosine        step (1 + cos(pi e / E)) / 2  down to 0 at the last of E epochs
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

Schedule: TypeAlias = Literal["constant", "inverse", "inverse_sqrt", "cosine"]
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)


def scale_step(schedule: str, step: float, decay: float, epochs: float, max_epochs: int) -> float:
    """The step after so many epochs.

    >>> scale_step("inverse", 0.5, decay=1.0, epochs=4.0, max_epochs=10)
    0.1
    """
    if schedule == "inverse":
        return step / (1.0 + decay * epochs)
    if schedule == "inverse_sqrt":
        return step / math.sqrt(1.0 + decay * epochs)
    if schedule == "cosine":
        return 0.5 * step * (1.0 + math.cos(math.pi * epochs / max_epochs))
    return step
