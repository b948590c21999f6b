"""M-projection: the exponential family's member with given moments, 003's step b) and 004's moment matching.

    L(theta) = <theta, mu> + log Z(theta)             gradient = mu - moments(model)
             = KL(q || p_theta) + entropy of q        for every q with E_q[phi] = mu

which is the likelihood of one instance whose statistics are mu. Its minimum has E[phi] = mu; it is the distribution of
largest entropy that has these moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.data.dataset import Batch
from besag.learn.losses.covariance import summed_covariance
from besag.learn.losses.likelihood import Carried, Likelihood

NONE_HIDDEN = Carried(None, None, ())


@dataclass(frozen=True, slots=True, eq=False)
class Projection(Likelihood):
    """The loss of theta for moments (P,)."""

    moments: Array | None = None

    def statistics(self, batch: Batch) -> Array:
        """(P,): mu."""
        return np.array(self.moments)

    def covariance(self, theta: Array, batch: Batch) -> Array:
        """(P, P): the Hessian of log Z."""
        return summed_covariance(batch.graph, theta, self.engine, support=self.support)

    def has_covariance(self, batch: Batch) -> bool:
        """As for the likelihood of an instance whose labels are known."""
        return Likelihood.has_covariance(self, Batch(batch.graph, np.zeros_like(batch.labels)))

    def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> tuple[float, Array, Any]:
        """log Z, minus the moments of the model, and the state."""
        return Likelihood.value_and_grad(self, theta, batch, NONE_HIDDEN if state is None else state)
