"""Gibbs sampling, 001: expectations as means over dependent samples, with an error of order 1 / sqrt(S).

Several chains of each row of evidence start at labellings drawn far apart, or all at the labelling `init=`, make
`burn_in` sweeps that do not count, and then `n_samples` that do. A marginal is the mean over sweeps and chains of the
conditional p(y_v | rest), not of the drawn states (Rao-Blackwell): never worse, mostly better. Factor marginals and
moments count the states themselves.

    scan   chromatic | systematic | random      a sweep draws every variable once (`besag.infer.sampling.scan`)
           single                               a sweep draws one variable, selected at random: the sampler that 001
                                                writes down (`besag.infer.sampling.single_update`)
           tree                                 a random forest of them, jointly (`besag.infer.sampling.blocks`)
           swendsen_wang                        clusters of agreeing neighbours, for Ising and Potts models

`n_samples` and `burn_in` count sweeps, so that with `scan=single` they count draws of single variables: V of them do
about the work of one sweep of the other scans. Where time is short, burn-in ends after half of it.

Diagnostics: standard_error is the largest of all marginals, r.standard_error(name) those of one variable; r_hat (the
largest) and effective_size (the least) are of `watched` scalars, a score of each chain akin to its energy and the
states of some variables. The answer counts as converged if r_hat < 1.01, there are 100 effective samples per chain,
every chain has drawn every variable, and none is stuck: `reducible` says that in every chain hard zeros gave some state
of a variable, though possible, probability zero at every sweep, so that the moves of the chains may never reach it.

    R rows, C chains, V variables, S states, n sweeps
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from besag.arrays import IntArray
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.graph.unfolded import has_positive_noisy, plain_noisy
from besag.infer.engine import ENGINES, Capabilities, OnStep, Want, check_dtype, check_wants
from besag.infer.iterate import Clock, Limits, each_step, iterate
from besag.infer.result import Result
from besag.infer.sampling.diagnostics import LEAST, MOST, effective_size, r_hat
from besag.infer.sampling.scan import SCANS
from besag.infer.sampling.single_site import prepare_sampling
from besag.infer.sampling.walk import GibbsWalk
from besag.infer.unfolding import unfolding_noisy


def reads_noisy(engine: Gibbs, problem: Problem, want: frozenset[Want]) -> bool:
    """Whether a sweep reads noisy-MAX factors as they are: from any labelling on, if they have no hard zeros."""
    return engine.scan in SCANS and not want & {"factors", "moments"} and has_positive_noisy(problem)


NO_SWEEP = "no sweep fitted into the time, so that the marginals know each variable by itself only: give it more time"
ALL_SCANS = (*SCANS, "single", "tree", "swendsen_wang")


@dataclass(frozen=True, slots=True)
class Gibbs:
    """Markov chains whose means estimate marginals.

    n_samples: sweeps of each chain that count, after burn_in sweeps that do not; with scan=single a sweep draws one
    variable. n_draws: samples to return for each row, spread evenly over the sweeps of all chains; None for all,
    n_samples per chain. dtype: of the numbers that sweeps over single variables read; forests and clusters use float64.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"variables", "factors", "moments", "samples", "trace"}), "estimate", starts_from="labelling"
    )
    scan: str = "chromatic"
    n_chains: int = 4
    n_samples: int = 1000
    burn_in: int = 100
    n_draws: int | None = None
    dtype: str = "float64"
    n_threads: int | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        ENGINES.check_choice(self, "scan", ALL_SCANS)
        ENGINES.check_counts(self, "n_chains", "n_samples", "n_draws")
        ENGINES.check_counts(self, "burn_in", least=0)
        check_dtype(self.dtype)

    @unfolding_noisy(unless=reads_noisy)
    def infer(
        self,
        problem: Problem,
        want: frozenset[Want],
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """Compute the answers by sampling."""
        began = time.perf_counter()
        check_wants(self, want)
        walk, limits = self._walk(problem, want, warm, rng, Clock(time_limit, began), time_limit)
        result = iterate("gibbs", walk, want, limits, began, on_step)
        return judge(result, walk)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each sweep; its samples (C, V) are the labellings that the chains have come to."""
        began, want = time.perf_counter(), frozenset[Want]({"variables"})
        walk, limits = self._walk(problem, want, warm, rng, Clock(time_limit, began), time_limit)
        for result in each_step("gibbs", walk, want, limits, began):
            shown = result if result.diagnostics["stopped"] is None else judge(result, walk)
            yield replace(shown, sampled=np.array(walk.sampler.codes()))

    def _walk(
        self,
        problem: Problem,
        want: frozenset[Want],
        warm: Result | None,
        rng: np.random.Generator | None,
        clock: Clock,
        time_limit: float | None,
    ) -> tuple[GibbsWalk, Limits]:
        per_chain = 1 if self.n_draws is None else -(-self.n_draws // self.n_chains)
        engine = replace(self, n_samples=max(self.n_samples, per_chain))
        known = plain_noisy(problem) if reads_noisy(self, problem, want) else frozenset[int]()
        n_sweeps = engine.n_samples + self.burn_in
        setting = prepare_sampling(problem, self.memory_limit, self.n_chains, n_sweeps, known)
        walk = GibbsWalk(engine, setting, want, warm, np.random.default_rng(0) if rng is None else rng, clock)
        return walk, Limits(walk.burn_in + engine.n_samples, None, time_limit)


def judge(result: Result, walk: GibbsWalk) -> Result:
    """The result with the verdict of its chains' diagnostics."""
    x = walk.watch()
    worst = float(r_hat(x).max(initial=1.0)) if x.shape[2] else np.inf
    least = float(effective_size(x).min(initial=np.inf)) if x.shape[2] else 0.0
    held, unmoved, state = walk.held_variables(), walk.unmoved_variables(), result.state
    assert state is not None
    error = float(state["standard_errors"].max(initial=0.0))
    wanted = LEAST * walk.n_chains
    agree = worst < MOST and least >= wanted and not len(held) and not len(unmoved)
    done = result.diagnostics["stopped"] == "max_iterations"
    told = result.diagnostics.extend(
        converged=bool(agree and done),
        stopped="converged" if agree and done else result.diagnostics["stopped"],
        rows=walk.setting.n_rows,
        standard_error=error,
        residual=error,
        r_hat=worst,
        effective_size=least,
        watched=len(x),
        reducible=bool(len(held)),
    )
    if not told["converged"]:
        n = walk.running.n
        told = told.extend(hint=_hint(worst, least, wanted, result.graph, held, unmoved) if n else NO_SWEEP)
    return replace(result, diagnostics=told)


def _hint(worst: float, least: float, wanted: float, graph: Graph, held: IntArray, unmoved: IntArray) -> str:
    if len(unmoved):
        few = _named(graph, unmoved)
        return f"some chain has not drawn {len(unmoved)} variables ({few}) yet: take more n_samples or burn_in"
    if len(held):
        return (
            f"hard zeros hold {len(held)} variables ({_named(graph, held)}) fast: each chain was kept from some of "
            "their states, so that it may be reducible and the answer wrong; use another scan or an exact engine"
        )
    return (
        f"R-hat is {worst:.4f} (below {MOST} is wanted), effective samples {least:.0f} ({wanted:.0f} is wanted): "
        "take more n_samples or burn_in, or another scan"
    )


def _named(graph: Graph, variables: IntArray) -> str:
    names = graph.variables.names_at(variables[:4].tolist())
    return ", ".join(names) + (", ..." if len(variables) > 4 else "")
