"""A random walk of several chains over the labellings of a problem: the Process of `gibbs`.

Each step is a sweep of all chains of all rows. It keeps sums of conditionals (`besag.infer.sampling.means`), counts of
factor entries, draws, and some scalars to watch, and nothing else.

    R rows, C chains, V variables, S states, F factors, T scalars watched, n sweeps that count
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError
from besag.infer.answers import normalise_weights
from besag.infer.engine import Want
from besag.infer.iterate import GRACE, Clock, OutOfTime, no_look, warm_state
from besag.infer.memory import refuse, refuse_samples
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.sampling.blocks import N_COVERS, WORK_OF_STATE, Clusters, TreeBlocks, cover_bytes
from besag.infer.sampling.counts import Counts
from besag.infer.sampling.means import Running
from besag.infer.sampling.single_site import Sampler, sampler_bytes, single_site
from besag.infer.sampling.single_update import SingleUpdate, update_bytes
from besag.infer.zeros.starts import count_drawn, draw_starts, read_codes
from besag.kernels.random import sweep_key

if TYPE_CHECKING:
    from besag.infer.sampling.gibbs import Gibbs

MOST_ROWS = 64  # most rows whose scores are watched
MOST_WATCHED = 10_000  # most sweeps whose scalars are kept
MOST_STATES = 192  # most (row, variable) pairs whose states are watched


def make_sampler(engine: Gibbs, setting: Prepared, left: int) -> Sampler:
    """The sampler of an engine; left: bytes that it may take besides those that it needs at least."""
    if engine.scan == "tree":
        n_kept = min(N_COVERS, 1 + left // max(1, cover_bytes(setting)))
        return TreeBlocks(setting, engine.n_chains, engine.n_threads, n_kept)
    if engine.scan == "swendsen_wang":
        return Clusters(setting, engine.n_chains, engine.n_threads)
    if engine.scan == "single":
        return SingleUpdate(setting, engine.n_chains, engine.dtype)
    return single_site(setting, engine.n_chains, engine.scan, engine.n_threads, engine.dtype)


class GibbsWalk:
    """The chains, and what is kept of their sweeps."""

    def __init__(
        self,
        engine: Gibbs,
        setting: Prepared,
        want: frozenset[Want],
        warm: Result | None,
        rng: np.random.Generator,
        clock: Clock,
    ) -> None:
        self.setting, self.want, self.n_chains = setting, want, engine.n_chains
        self.clock, self.pace = clock, 0.0
        self.sampler = make_sampler(engine, setting, setting.limit - self._needed(engine))
        self.key = int(rng.integers(2**62))
        self.taken, self.burn_in = self._begin(warm, rng), 0 if self._continues(warm) else engine.burn_in
        self.running = Running(self.sampler, engine.n_samples, engine.n_chains)
        self.residual, self.left = math.inf, self.burn_in
        self.most, self.half = engine.n_samples, clock.now() + clock.left / 2
        self.every, self.n_draws = _thinning(engine)
        self.draws: list[IntArray] = []
        self.scores: list[Array] = []
        self.states: list[Array] = []
        self.watch_every = 1
        self.watched_rows, self.watched_variables = self._to_watch()
        self.counts = Counts(setting, want, engine.n_chains, self.possible)

    def _needed(self, engine: Gibbs) -> int:
        """Bytes that the walk takes; TooLargeError if they would not fit."""
        setting, graph = self.setting, self.setting.graph
        rows, n_states = setting.n_rows, int(graph.state_offsets[-1])
        units = rows * engine.n_chains
        of_chain = 3 * n_states + 3 * graph.n_variables  # three sums, and states as they are drawn and kept
        kept = units * of_chain + 6 * rows * n_states
        drawn = count_drawn(units, n_states) + units * (n_states + graph.n_variables)
        needed = sampler_bytes(setting) + 8 * max(kept, drawn)
        if engine.scan == "tree":
            needed += cover_bytes(setting) + 8 * WORK_OF_STATE * units * n_states
        if engine.scan == "single":
            needed += update_bytes(setting, engine.n_chains)
        what = f"the running sums of {rows} rows x {engine.n_chains} chains x {n_states} states"
        refuse(what, needed, setting.limit, "take fewer chains or rows at a time", least=3 * 8 * units * n_states)
        if "samples" in self.want:
            n_draws = engine.n_chains * engine.n_samples if engine.n_draws is None else engine.n_draws
            refuse_samples(setting.given, n_draws, engine.memory_limit)
        return needed

    def _begin(self, warm: Result | None, rng: np.random.Generator) -> int:
        """Put the chains at their first states; returns how many sweeps they have already made."""
        shape = (self.setting.n_rows, self.n_chains, self.setting.graph.n_variables)
        self.possible = np.array(self.setting.possible)
        given = None if warm is None or self._continues(warm) else read_codes(self.setting, warm, self.n_chains)
        if given is not None:
            self.sampler.start(given)
            self._refuse_impossible_start(given)
            return 0
        state = warm_state("gibbs", warm, {"codes": shape})
        if state is not None:
            self.sampler.start(np.asarray(state["codes"], np.int64))
            return int(state["sweeps"])
        codes, self.possible = draw_starts(self.setting, self.n_chains, rng)
        self.sampler.start(codes)
        return 0

    def _continues(self, warm: Result | None) -> bool:
        return warm is not None and warm.state is not None and warm.state.get("engine") == "gibbs"

    def _refuse_impossible_start(self, codes: IntArray) -> None:
        problem = self.setting.given
        energies = problem.energy(codes[:, 0] if problem.graph.n_instances == 1 else codes[0, 0])
        if (energies == np.inf).any():
            raise CapabilityError("the assignment of init has probability zero here; start from a possible one")

    def _to_watch(self) -> tuple[IntArray, IntArray]:
        """Pairs of a row and a variable with more than one state there, spread evenly over all of them."""
        n_left = np.add.reduceat(self.setting.base > -np.inf, self.setting.graph.state_offsets[:-1], axis=1)
        rows, variables = np.nonzero(n_left > 1)
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_STATES)).astype(np.int64))
        return rows[chosen], variables[chosen]

    def step(self) -> float:
        """Make one sweep of every chain; returns the largest standard error as of its last update."""
        if self.left and self.clock.now() >= self.half:  # the other half of the time is for sweeps that count
            self.left = 0
        keep = self.left == 0
        scores = self._sweep(keep)
        self.taken += 1
        if not keep:
            self.left -= 1
            return self.residual
        if self.running.n % self.watch_every == 0:
            self._watch(scores)
        if self.want & {"factors", "moments"}:
            self.counts.add(self.sampler.codes())
        if "samples" in self.want and self.running.n % self.every == 0:
            self.draws.append(self.sampler.codes().copy())
        if self.running.count() and self.running.n_batches.bit_count() == 1:  # after 1, 2, 4, ... batches
            self.residual = self.running.largest_error()
        return self.residual

    def _sweep(self, keep: bool) -> Array:
        """Make one sweep; until one has counted it may be cut short, later none begins that time does not allow.

        The first one has as long as a limit may be missed by: without it no factor between variables would count.
        """
        began = self.clock.now()
        if self.clock.left < self.pace / 2 and self.running.n:
            raise OutOfTime
        look = no_look if self.running.n else self._look
        try:
            scores = self.sampler.sweep(sweep_key(self.key, self.taken), keep, look)
        except BaseException:
            if self.running.n == 0:
                self.sampler.sums[...] = 0.0  # they cover some variables only
            raise
        self.pace = self.clock.now() - began
        return scores

    def _look(self) -> None:
        if self.clock.left <= (-GRACE if self.left == 0 else 0.0):
            raise OutOfTime

    @property
    def finished(self) -> bool:
        """Whether as many sweeps have counted as were asked for: fewer have not where time is short."""
        return self.running.n >= self.most

    def _watch(self, scores: Array) -> None:
        """Keep the scalars of this sweep; once they are many, only every second one from then on."""
        self.scores.append(scores[:: max(1, len(scores) // MOST_ROWS)][:MOST_ROWS])
        self.states.append(self.sampler.peek(self.watched_rows, self.watched_variables))
        if len(self.scores) > MOST_WATCHED:
            self.scores, self.states = self.scores[::2], self.states[::2]
            self.watch_every *= 2

    def answer(self, want: frozenset[Want]) -> Result:
        """The means so far."""
        setting, p = self.setting, self._probabilities()
        state = {
            "engine": "gibbs",
            "codes": np.asarray(
                self.sampler.codes(), np.min_scalar_type(int(np.diff(setting.graph.state_offsets).max()))
            ),
            "sweeps": self.taken,
            "standard_errors": self._errors(),
        }
        result = replace(
            setting.empty("estimate"),
            probabilities=p if "variables" in want else None,
            sampled=self._sampled() if "samples" in want else None,
            state=state,
        )
        return self.counts.add_to(result, want, p, self.running.n)

    def _errors(self) -> Array:
        """(R, S): standard errors, 0 for what is known for certain."""
        offsets, allowed = self.setting.graph.state_offsets, self.setting.base > -np.inf
        n_left = np.add.reduceat(allowed, offsets[:-1], axis=1)
        certain = np.repeat(n_left <= 1, np.diff(offsets), axis=1) | ~allowed
        return np.where(certain | ~self.setting.spread(self.possible), 0.0, self.running.error())

    def details(self) -> Mapping[str, Any]:
        """The diagnostics so far."""
        return {"n_chains": self.n_chains, "n_samples": self.running.n}

    def _probabilities(self) -> Array:
        """(R, S): mean conditionals; before the first sweep what base says."""
        p = normalise_weights(self.setting, self.running.mean())
        return np.where(self.setting.spread(self.possible), p, 0.0)

    def _sampled(self) -> IntArray:
        """(R, n, V): draw by draw, all chains of one after the other."""
        n_rows, n_variables = self.setting.n_rows, self.setting.graph.n_variables
        if not self.draws:
            return np.zeros((n_rows, 0, n_variables), np.int64)
        drawn = np.stack(self.draws, axis=1).reshape(n_rows, -1, n_variables)
        return drawn[:, : self.n_draws]

    def watch(self) -> Array:
        """(T, C, n): the scalars watched."""
        parts = [np.stack(values, axis=2).astype(np.float64) for values in (self.scores, self.states) if values]
        return np.concatenate(parts) if parts else np.zeros((0, self.n_chains, 0))

    def held_variables(self) -> IntArray:
        """Variables that in every chain have an allowed state to which no sweep gave any probability."""
        if not self.setting.has_zeros or self.running.n == 0:
            return np.zeros(0, np.int64)
        first, left = self.setting.graph.state_offsets[:-1], self.setting.base > -np.inf
        means = self.running.by_chain() / self.running.n
        left &= np.repeat(np.add.reduceat(left, first, axis=1) > 1, np.diff(self.setting.graph.state_offsets), axis=1)
        missing = [left & (self.sampler.of_states(means[:, c]) <= 0) for c in range(self.n_chains)]
        held = np.logical_and.reduce([np.logical_or.reduceat(states, first, axis=1) for states in missing])
        able = np.minimum.reduceat(self.setting.spread(self.possible), first, axis=1)
        return np.flatnonzero((held & able & self.sampler.moved).any(axis=0))

    def unmoved_variables(self) -> IntArray:
        """Variables that some chain has not drawn yet."""
        return np.flatnonzero(~np.broadcast_to(self.sampler.moved, self.sampler.codes()[:, 0].shape).all(axis=0))


def _thinning(engine: Gibbs) -> tuple[int, int]:
    """The number of sweeps from one kept draw to the next, and the number of draws of a row."""
    if engine.n_draws is None:
        return 1, engine.n_samples * engine.n_chains
    return engine.n_samples // -(-engine.n_draws // engine.n_chains), engine.n_draws
