"""Early stopping: the loss on held-out data is watched, and the theta where it was least is kept."""

from __future__ import annotations

import numpy as np

from besag.arrays import Array
from besag.data.dataset import Dataset
from besag.learn.history import Iteration
from besag.learn.objective import Total
from besag.learn.penalty import Penalty

PATIENCE = 5  # iterations without a lower loss on the held-out data


class HeldOut:
    """The loss on held-out data at every iteration; `best` is the theta where it was least."""

    def __init__(self, total: Total, data: Dataset, start: Array) -> None:
        none = Penalty(np.zeros(1), np.zeros(1))
        self.total = Total(total.objective, data, none, n_threads=total.n_threads)
        self.best, self.least, self.waited = start, self.total.value_and_grad(start)[0], 0

    def __call__(self, row: Iteration, theta: Array) -> bool:
        """Whether to end the fit."""
        loss = self.total.value_and_grad(theta)[0]
        if loss < self.least:
            self.least, self.best, self.waited = loss, theta.copy(), 0
        else:
            self.waited += 1
        return self.waited >= PATIENCE
