"""Early stopping: the loss on held-out data is watched, and the theta where it was least is kept.

A checkpoint holds both, so that a fit that is resumed with the same held-out data ends where it would have ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from besag.arrays import Array
from besag.learn.checkpoint import Checkpoint, Kept
from besag.learn.objective import Instances, Total
from besag.learn.penalty import Penalty

PATIENCE = 5  # iterations without a lower loss on the held-out data
PREFIX = "held_out."  # of what a checkpoint holds


class HeldOut:
    """The loss on held-out data at every iteration; `best` is the theta where it was least.

    start: the theta that the fit begins with, after `first` iterations. kept: of the checkpoint that it is resumed
    from, whose losses there are nan where nothing was held out.
    """

    def __init__(self, total: Total, data: Instances, start: Array, first: int, kept: Mapping[str, Kept]) -> None:
        none = Penalty(np.zeros(1), np.zeros(1))
        self.total = Total(total.objective, data, none, n_threads=total.n_threads)
        if PREFIX + "best" in kept:
            best, least, waited, losses = (kept[PREFIX + name] for name in ("best", "least", "waited", "losses"))
            self.best, self.least, self.waited = np.asarray(best, np.float64), float(least), int(waited)
            self.losses: list[float] = np.asarray(losses, np.float64).tolist()
        else:
            self.best, self.least, self.waited = start, self.total.value_and_grad(start)[0], 0
            self.losses = [math.nan] * first + [self.least]

    def __call__(self, theta: Array) -> bool:
        """Whether to end the fit, after one more iteration."""
        loss = self.total.value_and_grad(theta)[0]
        self.losses.append(loss)
        if loss < self.least:
            self.least, self.best, self.waited = loss, theta.copy(), 0
        else:
            self.waited += 1
        return self.is_over

    def catch_up(self, checkpoint: Checkpoint) -> None:
        """Looks at the last iteration of a checkpoint where Ctrl-C came in between."""
        if len(self.losses) <= checkpoint.iteration:
            self(checkpoint.shown)

    @property
    def is_over(self) -> bool:
        """Whether the loss has not become lower for too long."""
        return self.waited >= PATIENCE

    def packed(self) -> dict[str, Kept]:
        """What a checkpoint has to hold."""
        numbers: dict[str, Kept] = {PREFIX + "least": self.least, PREFIX + "waited": self.waited}
        return {PREFIX + "best": self.best, PREFIX + "losses": np.array(self.losses), **numbers}
