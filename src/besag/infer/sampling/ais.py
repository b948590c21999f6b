"""Annealed importance sampling (Neal, Statistics and Computing 11, 2001): log Z, with a confidence interval.

From independent variables, whose Z_0 is known, to the model, through the unnormalised distributions

    f_b(y) = exp(base(y) + b F(y) - h(b) N(y)),      b = 0 = b_0 < b_1 < ... < b_T = 1,     h(b) = HARD b / (1 - b)

F sums the finite log-potentials of factors of several variables and N counts their hard zeros, so that f_1 is the
model. Each of C chains starts at a draw from f_0, and at each temperature updates its weight, then makes one sweep of
Gibbs sampling, which leaves f_b invariant:

    log w = sum over t of log f_{b_t}(y_{t-1}) - log f_{b_{t-1}}(y_{t-1})           E[w] = Z / Z_0,  for any T

log Z is estimated by log Z_0 + log of the mean weight. With a time limit, the pace of the sweeps so far decides how
many temperatures are left, evenly spread over the rest of [0, 1]; and a large model gets only as many chains as can be
drawn in a share START of the time, at least two. If interrupted at b, the last term goes from b to 1 at once: still
without bias, but with a larger variance. Marginals are means of conditionals at the end, weighted by w.

The interval is for `confidence`. With s the standard error of the mean weight over the mean, and t its quantile of
Student's distribution, it is log Z +- -log(1 - t s). Weights have heavy tails: if that gives no interval, or if the
effective sample size (sum w)^2 / sum w^2 is below LEAST (below half of the chains if they are few), there is no upper
end, and the lower one is Markov's: Z is above (1 - confidence) times the estimate with that confidence, whatever the
weights are.

    R rows, N instances (N = 1 or R = 1), C chains, V variables, S states
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.answers import normalise_weights
from besag.infer.engine import ENGINES, Capabilities, OnStep, Want, check_dtype, check_wants
from besag.infer.iterate import Limits, each_step, iterate
from besag.infer.memory import refuse
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.sampling.kernels.single_site import make_totals
from besag.infer.sampling.layers import Layers
from besag.infer.sampling.single_site import LANES, links_in, prepare_sampling, sampler_bytes, single_site
from besag.infer.unfolding import unfolding_noisy
from besag.infer.zeros.starts import count_drawn, draw_codes
from besag.kernels.compile import kernel_of
from besag.kernels.random import sweep_key
from besag.kernels.threads import run_chunks
from besag.registry import ABOVE_ZERO

HARD = 2.0  # nats that a hard zero costs at b = 1/2
LEAST = 10.0  # effective chains that are enough; half of all chains if they are few
START = 0.25  # share of the time limit for drawing the first states
DRAWN = 1 << 20  # states of the chains that are drawn at a time if there is a time limit
AT_ONCE = 1 << 20  # states of the chains whose conditionals are averaged at a time
SHARE = 0.9  # of the remaining time, for the remaining temperatures


@dataclass(frozen=True, slots=True)
class AIS:
    """Annealed importance sampling: log Z with a confidence interval.

    n_chains: independent runs. n_temperatures: steps from independent variables to the model, one sweep each; fewer if
    a time limit does not allow them. dtype: of the numbers that sweeps read; weights are computed in float64.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(frozenset({"log_partition", "variables", "trace"}), "estimate")
    n_chains: int = 100
    n_temperatures: int = 1000
    confidence: float = 0.95
    dtype: str = "float64"
    n_threads: int | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        ENGINES.check_counts(self, "n_chains", least=2)
        ENGINES.check_counts(self, "n_temperatures")
        ENGINES.check_numbers(self, "confidence", least=ABOVE_ZERO, below=1.0)
        check_dtype(self.dtype)

    @unfolding_noisy()
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
        """Compute the answers by annealing."""
        began = time.perf_counter()
        check_wants(self, want)
        run = Annealing(self, problem, rng, time_limit, began)
        result = iterate("ais", run, want, Limits(self.n_temperatures, None, time_limit), began, on_step)
        return run.judged(result)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each temperature."""
        began, want = time.perf_counter(), frozenset[Want]({"log_partition", "variables"})
        run = Annealing(self, problem, rng, time_limit, began)
        for result in each_step("ais", run, want, Limits(self.n_temperatures, None, time_limit), began):
            yield result if result.diagnostics["stopped"] is None else run.judged(result)


class Annealing:
    """The chains on their way from b = 0 to b = 1."""

    def __init__(
        self,
        engine: AIS,
        problem: Problem,
        rng: np.random.Generator | None,
        time_limit: float | None,
        began: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        rng = np.random.default_rng(0) if rng is None else rng
        self.engine = engine
        self.end, self.clock = math.inf if time_limit is None else began + time_limit, clock
        self.setting = setting = prepare_sampling(problem, engine.memory_limit, engine.n_chains, engine.n_temperatures)
        graph = setting.graph
        self._refuse()
        codes = self._begin(rng, began)
        self.n_chains = int(codes.shape[1])
        self.sampler = single_site(setting, self.n_chains, "chromatic", engine.n_threads, engine.dtype)
        self.sampler.start(codes)
        del codes  # as large as all that the sampler keeps
        self.key, self.beta, self.taken, self.to_come = int(rng.integers(2**62)), 0.0, 0, engine.n_temperatures
        self.log_weights = np.zeros((setting.n_rows, self.n_chains, graph.n_instances))
        self.log_z0 = _independent(setting)
        self.finite, self.violated = self._totals()
        self.set_off = clock()

    def _refuse(self) -> None:
        """TooLargeError if the chains would not fit: their states twice, as drawn and as kept, and conditionals."""
        setting, graph, n_chains = self.setting, self.setting.graph, self.engine.n_chains
        rows, n_states = setting.n_rows, int(graph.state_offsets[-1])
        drawn = rows * n_chains * graph.n_variables + count_drawn(rows * n_chains, n_states)
        kept = rows * n_chains * (n_states + 3 * graph.n_variables) + 2 * min(AT_ONCE, rows * n_chains * n_states)
        tables = 4 * len(setting.problem.log_potentials)  # at a temperature
        needed = sampler_bytes(setting) + 8 * (max(drawn, kept) + tables)
        what = f"{rows} rows x {n_chains} chains x {n_states} states"
        advice, least = "take fewer chains or rows at a time", 2 * 8 * rows * n_chains * n_states
        refuse(what, needed, setting.limit, advice, least=least)

    def _begin(self, rng: np.random.Generator, began: float) -> IntArray:
        """(R, C, V): the first states of the chains; for a large problem only as many as there is time for."""
        base, offsets, n_chains = self.setting.base, self.setting.graph.state_offsets, self.engine.n_chains
        step = n_chains if self.end == math.inf else LANES * max(1, DRAWN // (LANES * base.size))
        parts = [draw_codes(base, offsets, min(step, n_chains), rng)]
        until = began + START * (self.end - began)
        while (n := sum(part.shape[1] for part in parts)) < n_chains and self.clock() < until:
            parts.append(draw_codes(base, offsets, min(step, n_chains - n), rng))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    @property
    def finished(self) -> bool:
        """Whether b = 1 is reached."""
        return self.to_come == 0

    def _totals(self) -> tuple[Array, Array]:
        """F and N of every chain, (R, C, N)."""
        if isinstance(self.sampler, Layers):
            finite = self.sampler.pair_totals()[:, :, None]
            return finite, np.zeros_like(finite)
        setting, graph = self.setting, self.setting.graph
        states = freeze(self.sampler.codes().reshape(-1, graph.n_variables))
        finite, violated = (np.zeros((len(states), graph.n_instances)) for _ in range(2))
        kernel = kernel_of(make_totals, compile=setting.compile)
        factors = type(setting.factors)(*(freeze(array) for array in setting.factors))
        strides, instance = links_in(graph, setting).strides, freeze(graph.factor_instances)
        step = max(1, (1 << 18) // max(1, graph.n_factors))

        def task(number: int) -> None:
            first = number * step
            kernel(factors, strides, states, instance, first, min(first + step, len(states)), finite, violated)

        run_chunks(task, -(-len(states) // step), self.engine.n_threads if states.size >= 1 << 16 else 1)
        shape = self.log_weights.shape
        return finite.reshape(shape), violated.reshape(shape)

    def step(self) -> float:
        """Go to the next temperature: weights, then a sweep. Returns the current standard error of log Z."""
        to_come = self._in_time()
        beta = 1.0 if to_come == 1 else self.beta + (1.0 - self.beta) / to_come
        self.taken, self.to_come = self.taken + 1, to_come - 1
        self.log_weights = self._weights_at(beta)
        self.beta = beta
        self.sampler.temper(beta, -_penalty(beta))
        self.sampler.sweep(sweep_key(self.key, self.taken), self.finished)
        self.finite, self.violated = self._totals()
        return float(self._relative_error(self._weights_at(1.0)).max(initial=0.0))

    def _in_time(self) -> int:
        """How many temperatures are still to come."""
        if self.end == math.inf or self.taken == 0:
            return self.to_come
        now = self.clock()
        fit = SHARE * (self.end - now) * self.taken / max(now - self.set_off, 1e-9)
        return max(1, min(self.engine.n_temperatures - self.taken, math.floor(fit)))

    def _weights_at(self, beta: float) -> Array:
        """log w, (R, C, N), if the next temperature were beta."""
        rise = _penalty(beta) - _penalty(self.beta) if beta > self.beta else 0.0
        cost = np.where(self.violated > 0, rise * np.maximum(self.violated, 1.0), 0.0)
        return np.asarray(self.log_weights + (beta - self.beta) * self.finite - cost)

    def _by_query(self, values: Array) -> Array:
        """(R, C, N) -> (R or N, C)."""
        return values[:, :, 0] if self.setting.graph.n_instances == 1 else values[0].T

    def lost(self) -> BoolArray:
        """(R,) or (N,): whether no chain has any weight, though a labelling may exist."""
        weights = self._by_query(self._weights_at(1.0))
        return np.asarray((weights.max(axis=1) == -np.inf) & self.setting.possible)

    def _scaled(self, log_weights: Array) -> tuple[Array, Array]:
        """(R or N, C): weights over their largest, and its logarithm; equal weights if all are zero."""
        values = self._by_query(log_weights)
        top = values.max(axis=1)
        none = top == -np.inf
        top = np.where(none, 0.0, top)
        return np.where(none[:, None], 1.0, np.exp(values - top[:, None])), top

    def _relative_error(self, log_weights: Array) -> Array:
        w, _ = self._scaled(log_weights)
        return np.asarray(w.std(axis=1, ddof=1) / w.mean(axis=1) / math.sqrt(self.n_chains))

    def effective_sizes(self) -> Array:
        """(R,) or (N,): (sum w)^2 / sum w^2."""
        w, _ = self._scaled(self._weights_at(1.0))
        return np.asarray(w.sum(axis=1) ** 2 / (w**2).sum(axis=1))

    def _enough(self) -> float:
        """How many effective chains it takes for an upper end."""
        return min(LEAST, self.n_chains / 2)

    def answer(self, want: frozenset[Want]) -> Result:
        """The current estimate."""
        setting, at_end = self.setting, self._weights_at(1.0)
        lost = self.lost()
        # If no chain has any weight the estimate is of the softened model; `judged` refuses such an answer at the end.
        source = np.where(lost, 0.0, 1.0)
        w, top = self._scaled(at_end)
        soft, soft_top = self._scaled(self.log_weights)
        log_z = self.log_z0 + np.where(source > 0, top + np.log(w.mean(axis=1)), soft_top + np.log(soft.mean(axis=1)))
        result = replace(
            setting.empty("estimate"),
            log_partitions=log_z if "log_partition" in want else None,
            bounds=self._bounds(log_z) if "log_partition" in want else None,
            probabilities=self._probabilities(w) if "variables" in want else None,
        )
        return setting.empty_impossible(result)

    def _bounds(self, log_z: Array) -> tuple[Array, Array]:
        from scipy.stats import t

        alpha = 1.0 - self.engine.confidence
        half = t.ppf(1.0 - alpha / 2.0, self.n_chains - 1) * self._relative_error(self._weights_at(1.0))
        known = (half < 1.0) & (self.effective_sizes() >= self._enough()) & ~self.lost()
        width = -np.log1p(-np.where(known, half, 0.0))
        low = np.where(known, log_z - width, log_z + math.log(alpha))
        high = np.where(known, log_z + width, np.inf)
        gone = ~self.setting.possible
        low = np.where(gone | self.lost(), -np.inf, low)
        return low, np.where(gone, -np.inf, high)

    def _probabilities(self, w: Array) -> Array:
        """(R, S): weighted means of conditionals of the last sweep, or of states before it."""
        setting, graph = self.setting, self.setting.graph
        w = w / w.sum(axis=1, keepdims=True)
        if graph.n_instances == 1:
            by_state = w[:, :, None]
        else:
            by_state = np.repeat(w.T, np.diff(graph.state_offsets[graph.instance_offsets]), axis=1)[None]
        sampler, step = self.sampler, max(1, AT_ONCE // setting.base.size)
        known = sampler.chains(sampler.sums) if self.finished else sampler.codes()
        p = np.zeros(setting.base.shape)
        for c in range(0, self.n_chains, step):
            p += (self._conditionals(known[:, c : c + step]) * by_state[:, c : c + step]).sum(axis=1)
        return normalise_weights(setting, p)

    def _conditionals(self, known: AnyArray) -> Array:
        """(R, c, S) of some chains, from their sums or, before the end, their states."""
        setting = self.setting
        shape = (*known.shape[:2], int(setting.graph.state_offsets[-1]))
        if self.finished:
            return self.sampler.of_states(known.reshape(-1, known.shape[2])).reshape(shape)
        one = np.zeros(shape)
        np.put_along_axis(one, setting.graph.state_offsets[:-1] + known, 1.0, axis=2)
        return one

    def details(self) -> Mapping[str, Any]:
        """The diagnostics: progress so far, and the quality of the weights."""
        return {
            "temperature": self.beta,
            "confidence": self.engine.confidence,
            "n_chains": self.n_chains,
            "effective_size": float(self.effective_sizes().min(initial=np.inf)),
        }

    def judged(self, result: Result) -> Result:
        """The result with its verdict; CapabilityError if no chain has any weight."""
        if self.lost().any():
            raise CapabilityError(
                f"none of {self.n_chains} chains ended in a labelling that the hard zeros allow: "
                "log Z cannot be estimated; take more n_temperatures, or an exact engine"
            )
        told = result.diagnostics
        good = self.finished and told["effective_size"] >= max(self._enough(), self.n_chains / 10)
        told = told.extend(converged=good, stopped="converged" if good else told["stopped"])
        if not good:
            carry = f"{told['effective_size']:.1f} of {self.n_chains} chains carry the weight"
            told = told.extend(hint=f"{carry}; take more n_temperatures")
        return replace(result, diagnostics=told)


def _penalty(beta: float) -> float:
    """h(b)."""
    return math.inf if beta >= 1.0 else HARD * beta / (1.0 - beta)


def _independent(setting: Prepared) -> Array:
    """log Z_0, (R,) or (N,): of the independent variables."""
    offsets, base = setting.graph.state_offsets, setting.base
    top = np.maximum.reduceat(base, offsets[:-1], axis=1)
    shift = np.where(top == -np.inf, 0.0, top)
    total = np.add.reduceat(np.exp(base - np.repeat(shift, np.diff(offsets), axis=1)), offsets[:-1], axis=1)
    return setting.totals(shift + np.log(np.where(total > 0, total, 1.0)), None)
