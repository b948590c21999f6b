"""Engines that take factors on many variables as chains (`besag.graph.unfolded`), whose helpers nobody sees.

`unfolding` marks the `infer` of an engine: the problem that it gets has chains in the place of such factors, and of
what it answers the part about helpers is cut off. Where helpers are random, those of a noisy-MAX, best labellings are
those of a problem without chains (`besag.graph.condensed`), row by row of evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from besag.arrays import Array, Semiring
from besag.errors import CapabilityError, TooLargeError
from besag.graph.condensed import condense
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from besag.graph.unfolded import Unfolded, is_chosen, unfold
from besag.infer.engine import SHOWS, Want
from besag.infer.memory import default_memory_limit
from besag.infer.result import Result

Infer = TypeVar("Infer", bound=Callable[..., Result])


Reads = Callable[[Any, Problem, frozenset[Want]], bool]


def unfolding_noisy(unless: Reads | None = None) -> Callable[[Infer], Infer]:
    """Marks an `infer` for problems with noisy-MAX factors on many variables, unless the engine reads them itself."""
    return partial(unfolding, determined=False, unless=unless)


def unfolding(infer: Infer, *, determined: bool = True, unless: Reads | None = None) -> Infer:
    """The same `infer`, for problems with factors on many variables too."""

    @wraps(infer)
    def on_chains(self: Any, problem: Problem, want: frozenset[Want], **options: Any) -> Result:
        if unless is not None and unless(self, problem, want):
            return infer(self, problem, want, **options)
        unfolded = unfold(problem, absorb=not want & {"factors", "moments", "messages"}, determined=determined)
        if unfolded is None:
            return infer(self, problem, want, **options)
        if "factors" in want:
            raise CapabilityError(
                "a factor on many variables has too many states for a marginal of its own; ask for those of variables"
            )
        options.pop("warm", None)
        asked = want - (SHOWS - {"trace"})
        if unfolded.is_random:
            if "moments" in want:
                raise CapabilityError(
                    "a noisy-MAX on many variables has no expected energy here, which moments and entropies are made of"
                )
            found = _best(on_chains, self, problem, asked & {"map", "trace"}, options) if "map" in want else None
            asked -= {"map"}
            if found is not None and not asked - SHOWS:
                return found
            sums = fold(unfolded, infer(self, unfolded.problem, asked, **options))
            return sums if found is None else _with_map(sums, found)
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
        return _with_map(sums, found)

    return on_chains  # type: ignore[return-value]


def _with_map(sums: Result, best: Result) -> Result:
    """Two answers in one."""
    return replace(sums, codes=best.codes, energies=best.energies, energy_bounds=best.energy_bounds)


def _best(
    infer: Callable[..., Result], engine: Any, problem: Problem, want: frozenset[Want], options: dict[str, Any]
) -> Result:
    """The best labellings, or those that an engine finds without tables."""
    try:
        return best_of_rows(infer, engine, problem, want, options)
    except TooLargeError as error:
        if not hasattr(engine, "search_without_tables"):
            raise
        found: Result = engine.search_without_tables(problem, error, want, **options)
        return found


def best_of_rows(
    infer: Callable[..., Result], engine: Any, problem: Problem, want: frozenset[Want], options: dict[str, Any]
) -> Result:
    """The best labellings of every row of evidence, each of a problem of its own."""
    limit = getattr(engine, "memory_limit", None)
    limit, evidence, found = default_memory_limit() if limit is None else limit, problem.evidence, []
    for row in range(evidence.n_rows):
        observed, weights = evidence.rows(row, row + 1)
        alone = replace(problem, evidence=Evidence(observed, weights), weights=None)
        found.append(infer(engine, condense(alone, limit), want, **options))
    exact = all(result.bound == "exact" for result in found)
    codes = np.concatenate([result.codes for result in found if result.codes is not None])
    energies = np.concatenate([result.energies for result in found if result.energies is not None])
    return replace(
        found[0],
        graph=problem.graph,
        bound="exact" if exact else "estimate",
        batched=evidence.batched,
        index=evidence.index,
        diagnostics=found[0].diagnostics.extend(rows=len(found)),
        codes=codes,
        energies=energies,
        energy_bounds=None if exact else np.concatenate([_least_energy(result) for result in found]),
        message_log=None,
        state=None,
        infer_again=None,
    )


def _least_energy(result: Result) -> Array:
    """(1,): what the energy of one row is at the least."""
    if result.bound == "exact" and result.energies is not None:
        return result.energies[:, 0]
    return np.full(1, -np.inf) if result.energy_bounds is None else result.energy_bounds


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
