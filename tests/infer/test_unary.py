"""The base of message passing, piece by piece, against the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import besag
from besag.infer.unary import base_blocks, base_rows
from besag.model.variable import RangeNames, Variables

N_VARIABLES, N_STATES = 11, 3


def problem_with(scopes: list[list[int]], evidence: Any = None) -> Any:
    """A chain with factors of one variable at these places, group by group, every factor with its own table."""
    rng = np.random.default_rng(len(scopes))
    steps = np.stack([np.arange(N_VARIABLES - 1), np.arange(1, N_VARIABLES)], axis=1)
    groups = [besag.FactorGroup(besag.Template("pair", (N_STATES, N_STATES)), steps)]
    for number, places in enumerate(scopes):
        template = besag.Template(f"unary{number}", (N_STATES,), n_inputs=len(places))
        groups.append(besag.FactorGroup(template, np.array(places)[:, None], inputs=np.arange(len(places))))
    n_parameters = N_STATES**2 + N_STATES * sum(map(len, scopes))
    model = besag.Model(
        Variables.alike(RangeNames(N_VARIABLES), N_STATES), tuple(groups), rng.normal(size=n_parameters)
    )
    return besag.compile_graph(model).bind(model.theta, evidence=evidence)


def weights(rows: int) -> Any:
    log_weights = np.random.default_rng(0).normal(size=(rows, N_VARIABLES * N_STATES))
    return besag.Evidence(np.full((rows, N_VARIABLES), -1), log_weights)


def clamped() -> Any:
    observed = np.full((1, N_VARIABLES), -1)
    observed[0, 4] = 2
    return besag.Evidence(observed)


@pytest.mark.parametrize(
    "scopes",
    [
        pytest.param([], id="none"),
        pytest.param([[0]], id="start"),
        pytest.param([list(range(N_VARIABLES)), [2, 3, 9]], id="everywhere and some"),
        pytest.param([[5, 1, 8]], id="out of order"),
        pytest.param([[4, 4]], id="twice on one variable"),
    ],
)
@pytest.mark.parametrize("evidence", [None, weights(1), weights(2), clamped()], ids=["free", "one", "two", "clamped"])
@pytest.mark.parametrize("size", [1, 4, N_VARIABLES])
def test_pieces_make_the_whole(scopes: list[list[int]], evidence: Any, size: int) -> None:
    problem = problem_with(scopes, evidence)
    for row in range(problem.evidence.n_rows):
        base = base_blocks(problem, row)
        pieces = [np.array(base(a, min(a + size, N_VARIABLES))) for a in range(0, N_VARIABLES, size)]
        np.testing.assert_array_equal(np.concatenate(pieces).ravel(), base_rows(problem, row, row + 1)[0])


def test_log_weights_are_read_where_they_are() -> None:
    evidence = weights(1)
    piece = base_blocks(problem_with([[0]], evidence), 0)(1, 5)
    assert np.shares_memory(piece, evidence.log_weights)
