"""The messages of belief propagation for people to look at: every link, both ways, as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, Semiring
from besag.graph.graph import Graph
from besag.infer.bp.kernels.links import MessageLinks

if TYPE_CHECKING:
    import pandas as pd


class PassedMessages(NamedTuple):
    """Messages to variables and to factors, (M,) each, in the domain of a semiring."""

    graph: Graph
    links: MessageLinks
    semiring: Semiring
    to_variables: AnyArray
    to_factors: AnyArray

    def to_frame(self) -> pd.DataFrame:
        """Columns step, source, target, state, value; weights that sum to one, or energies of which the least is 0."""
        import pandas as pd

        rows = []
        for e in range(len(self.links.variables)):
            v = int(self.links.variables[e])
            name = self.graph.variables.names[v]
            factor = self.graph.factor_name(int(self.links.factors[self.links.factor_of_link[e]]))
            where = slice(int(self.links.message_offsets[e]), int(self.links.message_offsets[e + 1]))
            states = self.graph.variables.states(v)
            for source, target, values in (
                (name, factor, self.to_factors[where]),
                (factor, name, self.to_variables[where]),
            ):
                rows += [(source, target, s, x) for s, x in zip(states, self._shown(values), strict=True)]
        frame = pd.DataFrame(rows, columns=["source", "target", "state", "value"])
        frame.insert(0, "step", pd.factorize(pd.MultiIndex.from_frame(frame[["source", "target"]]))[0])
        return frame

    def _shown(self, values: AnyArray) -> Array:
        numbers = values.astype(np.float64)
        if self.semiring == Semiring.MAX:
            return np.asarray(numbers.max() - numbers)
        weights = numbers if self.semiring == Semiring.SUM else np.exp(numbers - numbers.max())
        return np.asarray(weights / weights.sum())
