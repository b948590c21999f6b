"""Ctrl-C within a kernel, of which numba makes a SystemError, comes out of every verb as what it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import besag
from besag.graph.problem import Problem
from besag.infer.brute import Brute
from besag.infer.engine import Capabilities, Want
from besag.infer.result import Result

MODEL = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), np.eye(2))])
ROWS = pd.DataFrame({"A": [0, 1]})


@dataclass(frozen=True)
class Pressed:
    """Brute, until it is asked about several rows at once; `cause` is why its kernel breaks off then."""

    capabilities: ClassVar[Capabilities] = Brute.capabilities
    cause: type[BaseException] = KeyboardInterrupt

    def infer(self, problem: Problem, want: frozenset[Want], **options: Any) -> Result:
        if problem.evidence.n_rows > 1:
            raise SystemError("a kernel returned a result with an exception set") from self.cause()
        return Brute().infer(problem, want)


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: MODEL.marginals(evidence=ROWS, engine=engine),
        lambda engine: MODEL.covariance(engine=engine),
        lambda engine: MODEL.log_probability(ROWS, engine=engine),
        lambda engine: MODEL.joint(["A", "B"], engine=engine),
        lambda engine: MODEL.information("A", engine=engine),
    ],
)
def test_ctrl_c_within_a_kernel_is_ctrl_c(ask: Callable[[Pressed], Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(Pressed())
    with pytest.raises(SystemError, match="with an exception set"):
        ask(Pressed(cause=ValueError))
