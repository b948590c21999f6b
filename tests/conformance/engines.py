"""The engines that the conformance suite holds to their capabilities, and what its tests share.

To add an engine: one line in CASES, its text and the strategy of the models that it can take.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from besag.graph.evidence import read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES, Want
from besag.infer.result import Result
from besag.model.model import Model
from tests.strategies import binary_models, forests, models, pairwise

TOLERANCE = 1e-10


class Case(NamedTuple):
    """An engine by its text, and a strategy of models (of an optional `max_labellings`) that it can take."""

    engine: str
    models: Callable[..., st.SearchStrategy[Model]]

    @property
    def name(self) -> str:
        return self.engine.partition("[")[0]

    @property
    def wants(self) -> frozenset[Want]:
        return ENGINES.find(self.name).capabilities.wants

    @property
    def bound(self) -> str:
        return ENGINES.find(self.name).capabilities.bound

    def infer(self, problem: Problem, *wants: Want, seed: int = 0, **options: Any) -> Result:
        """The engine's answer to a problem."""
        engine = ENGINES.read(self.engine, **options)
        return engine.infer(problem, frozenset(wants), rng=np.random.default_rng(seed))

    def ask(self, model: Model, evidence: Any, *wants: Want, seed: int = 0, **options: Any) -> Result:
        """The engine's answer to a model under evidence as users write it."""
        problem = model.problem.with_evidence(read_evidence(model.variables, evidence))
        return self.infer(problem, *wants, seed=seed, **options)


CASES = [
    Case("brute", models),
    Case("tree", forests),
    Case("bp", models),
    Case("bp[schedule=sequential,order=random]", models),
    Case("bp[schedule=residual,damping=0.3]", models),
    Case("junction_tree", models),
    Case("elimination", models),
    Case("exact", models),
    Case("gibbs", models),
    Case("gibbs[scan=single,burn_in=10]", models),
    Case("ais[n_temperatures=100,confidence=0.999999]", models),
    Case("mean_field", models),
    Case("trw", models),
    Case("join_graph", models),
    Case("join_graph[clique_bound=3]", models),
    Case("mean_field[family=tree]", models),
    Case("mean_field[family=spanning_tree]", models),
    Case("dual", models),
    Case("trws", pairwise),
    Case("icm", models),
    Case("ilp", models),
    Case("anneal[n_sweeps=50]", models),
    Case("local_search", models),
    Case("icm[schedule=sequential,n_restarts=3]", models),
    Case("graph_cut", binary_models),
    Case("alpha_expansion", models),
    Case("alpha_beta_swap", models),
]


def each_engine(*wants: Want, exact: bool = False) -> pytest.MarkDecorator:
    """Runs a test with every engine that serves these wants (and is exact)."""
    cases = [case for case in CASES if set(wants) <= case.wants and (case.bound == "exact" or not exact)]
    return pytest.mark.parametrize("case", cases, ids=[case.engine for case in cases])


def close(found: Any, true: Any) -> None:
    """Equal up to rounding."""
    assert_allclose(found, true, rtol=TOLERANCE, atol=TOLERANCE)


def tolerance_of(result: Result) -> float:
    """How far apart the same number may be, reached twice: an iteration stops before its last digit has settled.

    Of samples, six standard errors of an indicator, which are 1/2 each at most.
    """
    if "r_hat" in result.diagnostics:
        return float(3 / np.sqrt(result.diagnostics["effective_size"]))
    return TOLERANCE if result.bound == "exact" else 1e-6


def names_of(model: Model) -> list[str]:
    return [variable.name for variable in model.variables]
