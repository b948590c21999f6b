"""Engines that take factors on many variables as chains (`besag.graph.unfolded`), whose helpers nobody sees.

`unfolding` marks the `infer` of an engine: the problem that it gets has chains in the place of such factors, and of
what it answers the part about helpers is cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from besag.arrays import Semiring
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.graph.unfolded import Unfolded, is_chosen, unfold
from besag.infer.engine import SHOWS, Want
from besag.infer.result import Result

Infer = TypeVar("Infer", bound=Callable[..., Result])


def unfolding(infer: Infer) -> Infer:
    """The same `infer`, for problems with factors on many variables too."""

    @wraps(infer)
    def on_chains(self: Any, problem: Problem, want: frozenset[Want], **options: Any) -> Result:
        unfolded = unfold(problem)
        if unfolded is None:
            return infer(self, problem, want, **options)
        if "factors" in want:
            raise CapabilityError(
                "a factor on many variables has too many states for a marginal of its own; ask for those of variables"
            )
        options.pop("warm", None)
        asked = want - (SHOWS - {"trace"})
        if "map" not in want or not is_chosen(problem):
            return fold(unfolded, infer(self, unfolded.problem, asked, **options))
        if getattr(self, "k", 1) != 1:
            raise CapabilityError("of factors as robust_potts the k best labellings are not known, only the best")
        best = unfold(problem, Semiring.MAX)
        assert best is not None
        found = fold(best, infer(self, best.problem, frozenset({"map"}) | (asked & {"trace"}), **options))
        if not asked - {"map", "trace"}:
            return found
        sums = fold(unfolded, infer(self, unfolded.problem, asked - {"map"}, **options))
        return replace(sums, codes=found.codes, energies=found.energies, energy_bounds=found.energy_bounds)

    return on_chains  # type: ignore[return-value]


def fold(unfolded: Unfolded, result: Result) -> Result:
    """A result without its helpers."""
    problem = unfolded.given
    graph = problem.graph
    states, variables = int(graph.state_offsets[-1]), graph.n_variables
    p, codes, samples, moments = result.probabilities, result.codes, result.sampled, result.table_moments
    return replace(
        result,
        graph=graph,
        probabilities=None if p is None else p[:, :states],
        codes=None if codes is None else codes[..., :variables],
        sampled=None if samples is None else samples[..., :variables],
        table_moments=None if moments is None else unfolded.moments(moments),
        message_log=None,
        state=None,
        infer_again=None,
    )
