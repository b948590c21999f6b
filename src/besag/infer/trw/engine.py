"""Tree-reweighted sum-product: an upper bound on log Z for any factor graph (Wainwright, Jaakkola and Willsky 2005).

Let T be a random set of factors without cycles (`besag.infer.trw.forests`), and rho_f > 0 the probability that f is in
it. With messages m_{f->v} and base_v, unary factors and evidence,

    total_v = base_v + sum_g rho_g m_{g->v}        b_v = exp(total_v) / Z_v
    q_{v->f} = total_v - m_{f->v}                  b_f = exp(lp_f / rho_f + sum_{v in f} q_{v->f}) / Z_f
    m_{f->v}(y_v) <- log sum_{y_f \\ v} exp(lp_f(y_f) / rho_f + sum_{u in f, u != v} q_{u->f}(y_u)) + constant

At any messages, converged or not, the definitions give

    exp(-H(y)) = C prod_v b_v(y_v) prod_f [b_f(y_f) / prod_{v in f} b_v(y_v)]^rho_f
    log C = sum_v log Z_v + sum_f rho_f (log Z_f - sum_{v in f} log Z_v)

The product is exp of the mean over T of log p_T, p_T(y) = prod_v b_v prod_{f in T} b_f / prod_{v in f} b_v, so that
log Z <= log C + mean over T of log sum_y p_T(y) by Hoelder's inequality. T has no cycles: hang its trees from any roots
and sum out leaves. What is left of a leaf factor f with parent v is sum_{y_f \\ v} b_f / b_v, at most

    r_{f,v} = max over y_v of sum_{y_f \\ v} b_f(y_f) / b_v(y_v)

and b sums to one at the roots. Which variable is the parent depends on T and is left open:

    log Z <= log C + sum_f rho_f log max_{v in f} r_{f,v}

This holds at every iterate, for factors of any arity; r is 1 where messages have converged, and the bound is then that
of Wainwright et al. With min for max it is a lower bound where all rho are 1, a forest: there the answer is exact.
`log_partition` is the least bound of those evaluated, at every CHECK_EVERY-th iterate and at the last one; marginals
are the beliefs of the last one. Variables that evidence leaves one state do not count for cycles.

Sweeps visit factors one after the other and update all messages of a factor at once. To send n messages from the same
q goes too far where n > 2, and oscillates: they go 2 / n of their way only, n being those variables of the factor that
are not fixed, and damping takes its share of that. On a forest they go all of it.

Weights. The bound is convex in rho, and its derivative by rho_f at converged messages is minus the information
I_f = KL(b_f, prod_{v in f} b_v) = E[lp_f] / rho_f - sum_v E[m_{f->v}] - log Z_f + sum_v log Z_v. With `optimise`, each
time that messages have converged, rho moves towards the forest of the most information (conditional gradient); a move
after which the bound is not less is taken back, and the next goes half as far.

Shapes: R rows, V variables, S states, F factors, G of two or more variables, M entries of all messages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.arrays import AnyArray, Array, freeze
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.answers import make_marginals, with_factors
from besag.infer.engine import ENGINES, Capabilities, OnStep, Want, check_dtype, check_wants
from besag.infer.iterate import SHOWN, Clock, Limits, each_step, iterate, refuse_late, warm_state
from besag.infer.memory import message_entries, refuse
from besag.infer.prepared import Prepared
from besag.infer.result import Result, factor_offsets
from besag.infer.trw.forests import Covered, spread_by_instance, spread_weights
from besag.infer.trw.kernels.beliefs import Averages, make_beliefs
from besag.infer.trw.kernels.messages import make_evaluate, make_refresh, make_sweep
from besag.infer.trw.plan import CHUNK_WORK, count_bytes, plan_of, reweigh_tables, shares_of
from besag.infer.trw.reweighing import Reweighing
from besag.infer.unfolding import unfolding
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks
from besag.model.structured.kernels.rules import KINDS

MAX_CONSTANT = 32  # more states than this reach the kernels at run time
WORTHWHILE = 2**21  # work of a sweep from which a kernel of its own for each number of states pays
WORTH_PAIRS = 2**14  # the same for two states
VARIABLES_OF_CHUNK = 1 << 14  # whose totals are made anew at a time
CHECK_EVERY = 10
ROUNDING = 1e-12  # relative distance of two bounds that are the same number
SECONDS_A_LINK, SECONDS_A_STATE = 5e-7, 2e-7  # of plan, forests and tables, before the first sweep
INNER_TOLERANCE = 1e-6  # of messages between steps of rho, where tolerance is 0


@dataclass(frozen=True, slots=True)
class TRW:
    """Tree-reweighted message passing: an upper bound on log Z.

    n_forests: how many forests rho is the mean of, at least. optimise: whether rho is improved. dtype: of messages;
    bounds are evaluated in double. tolerance: of the relative change of a message.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "trace"}), "upper"
    )
    max_iterations: int = 1000
    tolerance: float = 1e-6
    damping: float = 0.0
    n_forests: int = 16
    optimise: bool = False
    dtype: str = "float64"
    n_threads: int | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        self.limits(None)
        ENGINES.check_numbers(self, "damping", below=1.0)
        ENGINES.check_counts(self, "n_forests")
        if not isinstance(self.optimise, bool):
            raise CapabilityError(f"optimise must be true or false, got {self.optimise!r}")
        check_dtype(self.dtype)

    def limits(self, time_limit: float | None) -> Limits:
        """When to stop."""
        return Limits(self.max_iterations, self.tolerance, time_limit)

    @unfolding
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
        """Answers by sweeps of messages."""
        began = time.perf_counter()
        check_wants(self, want)
        process = Sweeps(self, problem, warm, rng, Clock(time_limit, began))
        return iterate("trw", process, want, self.limits(time_limit), began, on_step)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each sweep."""
        began = time.perf_counter()
        process = Sweeps(self, problem, warm, rng, Clock(time_limit, began))
        return each_step("trw", process, SHOWN, self.limits(time_limit), began)


class Sweeps:
    """Messages on one problem: a Process."""

    def __init__(
        self,
        engine: TRW,
        problem: Problem,
        warm: Result | None,
        rng: np.random.Generator | None,
        clock: Clock | None = None,
    ) -> None:
        self.engine, self.clock = engine, Clock() if clock is None else clock
        self.setting = setting = Prepared(problem, KINDS, engine.memory_limit)
        self.dtype = np.dtype(setting.number_type(engine.dtype))
        self.needed = count_bytes(setting.problem, setting.n_rows)
        least = setting.n_rows * self.dtype.itemsize * message_entries(problem.graph)
        advice = "use more memory, ask for fewer rows at a time, or take bp or mean_field"
        refuse("all messages", self.needed, setting.limit, advice, least=least)
        n_links, n_states = len(problem.graph.scope_variables), int(problem.graph.state_offsets[-1])
        refuse_late("trw", SECONDS_A_LINK * n_links + SECONDS_A_STATE * n_states, self.clock)
        self.graph, self.plan = problem.graph, plan_of(problem.graph)
        self.constants = self._constants()
        self.base = freeze(np.where(setting.spread(setting.possible), setting.base, -np.inf))
        offsets = self.graph.state_offsets
        n_left = np.add.reduceat(self.base > -np.inf, offsets[:-1], axis=1, dtype=np.int64)
        self.fixed = np.asarray((n_left <= 1).all(axis=0))
        self.scopes = Covered(self.plan.links.starts, self.plan.links.variables, self.fixed)
        self.totals = np.empty((setting.n_rows, int(offsets[-1]) + len(self.plan.copied)))
        self.residuals = np.full(setting.n_rows, np.inf)
        self.iterations, self.best = 0, np.full(len(setting.possible), np.inf)
        self.rho, self.n_forests = np.ones(len(self.plan.order)), 1
        self.reweighing = Reweighing(self, engine.tolerance or INNER_TOLERANCE) if engine.optimise else None
        self._start(warm, np.random.default_rng(0) if rng is None else rng)

    def _constants(self) -> tuple[int, int]:
        """The states of all variables and the kind of all factors, where a kernel of their own pays; else 0 and -1."""
        kinds = self.setting.problem.kinds[self.plan.order]
        n = self.plan.n_states
        pays = self.plan.work >= (WORTH_PAIRS if n == 2 else WORTHWHILE)
        return (n, int(kinds[0])) if pays and 2 <= n <= MAX_CONSTANT and (kinds == kinds[0]).all() else (0, -1)

    def _start(self, warm: Result | None, rng: np.random.Generator) -> None:
        """Messages and rho, from where another run was or from nothing."""
        n_factors, shape = len(self.plan.order), (self.setting.n_rows, len(self.plan.message_states))
        like = {"messages": shape, "rho": (n_factors,), "fixed": (self.graph.n_variables,)}
        state = warm_state("trw", warm, like)
        self.messages = np.zeros(shape, self.dtype)
        if state is not None:
            self.messages[...] = state["messages"]
        if state is not None and warm is not None and self._covers(warm, state):
            self.n_forests, rho = state["n_forests"], state["rho"]
        else:
            rho, self.n_forests = self._spread(rng)
        self.set_rho(rho)

    def _spread(self, rng: np.random.Generator) -> tuple[Array, int]:
        """rho of forests, and how many these are."""
        n, half = self.engine.n_forests, self.clock.left / 2
        if self.graph.n_instances > 1:
            instances = self.graph.factor_instances[self.plan.order]
            return spread_by_instance(self.scopes, instances, n, compile=self._compiled())
        enough = lambda: self.clock.left < half  # noqa: E731
        return spread_weights(self.scopes, n, rng, compile=self._compiled(), enough=enough)

    def _covers(self, warm: Result, state: Mapping[str, Any]) -> bool:
        """Whether forests of another run have no cycles here: the same scopes, and what was fixed is fixed."""
        same = np.array_equal(warm.graph.scope_offsets, self.graph.scope_offsets)
        same = same and np.array_equal(warm.graph.scope_variables, self.graph.scope_variables)
        return bool(same and self.fixed[state["fixed"]].all())

    def set_rho(self, rho: Array) -> None:
        """Other weights for the factors."""
        self.rho = freeze(rho)
        self.tables = reweigh_tables(
            self.setting.factors, self.plan.order, self.rho, compile=self._compiled(), n_threads=self.engine.n_threads
        )
        self.shares = self._shares()
        self.refresh(np.arange(self.graph.n_variables))

    def _shares(self) -> Array:
        """(G,): how much of its way a message goes."""
        return shares_of(self.scopes, self.rho, self.engine.damping)

    def move(self, rho: Array) -> None:
        """Other weights, with the messages that leave every total as it is."""
        self.messages *= (self.rho / rho)[self.plan.message_owners]
        self.residuals = np.full(self.setting.n_rows, np.inf)
        self.set_rho(rho)

    def _compiled(self) -> bool:
        return self.setting.compile or worth_compiling(self.plan.work * self.setting.n_rows / 8)

    def refresh(self, variables: AnyArray) -> None:
        """total = base + sum rho m for these variables and their copies."""
        plan, offsets, kernel = self.plan, self.graph.state_offsets, kernel_of(make_refresh, compile=self._compiled())
        parts = [freeze(part) for part in np.array_split(variables, -(-len(variables) // VARIABLES_OF_CHUNK) or 1)]

        def part(c: int) -> None:
            kernel(
                parts[c], offsets, plan.incident, plan.entries, plan.owners, plan.links.messages,
                self.rho, self.base, self.messages, self.totals,
            )  # fmt: skip

        run_chunks(part, len(parts), self.engine.n_threads)
        if len(plan.copied):
            self.totals[:, offsets[-1] :] = self.totals[:, plan.copied]

    def _each_chunk(self, make: Any, call: Any) -> None:
        """call(kernel, rows, positions, chunk) for blocks of rows and chunks of factors, side by side."""
        plan, rows = self.plan, self.setting.n_rows
        kernel = kernel_of(make, *self.constants, compile=self._compiled())
        block = max(1, int(CHUNK_WORK // max(plan.work, 1.0)))
        n_blocks = -(-rows // block)

        def task(number: int) -> None:
            i, h = divmod(number, plan.n_chunks)
            positions = (int(plan.chunks[h]), int(plan.chunks[h + 1]))
            call(kernel, (i * block, min((i + 1) * block, rows)), positions, h)

        run_chunks(task, n_blocks * plan.n_chunks, self.engine.n_threads)

    def step(self) -> float:
        """One sweep; rows that have converged rest."""
        active = freeze(self.residuals > self.engine.tolerance if self.engine.tolerance > 0 else self.residuals >= 0)
        changed = np.zeros((self.plan.n_chunks, self.setting.n_rows))
        backwards = self.iterations % 2 == 1

        def call(kernel: Any, rows: tuple[int, int], positions: tuple[int, int], h: int) -> None:
            state = (self.totals, self.messages, changed[h])
            kernel(self.plan.links, self.tables, active, rows, positions, backwards, self.shares, *state)

        self._each_chunk(make_sweep, call)
        self.residuals = np.where(active, changed.max(axis=0, initial=0.0), self.residuals)
        self.iterations += 1
        check = self.iterations % CHECK_EVERY == 0
        if check or len(self.plan.between):
            self.refresh(np.arange(self.graph.n_variables) if check else self.plan.between)
        if check:
            self.note_bounds()
        residual = float(self.residuals.max(initial=0.0))
        return residual if self.reweighing is None else self.reweighing.follow(residual)

    def bounds(self) -> tuple[Array, Array]:
        """The upper bound, and the lower one that holds on forests, at these messages: (R,), or (N,) for a union."""
        log_z, upper, lower = self._terms()
        return self.setting.totals(log_z, upper), self.setting.totals(log_z, lower)

    def note_bounds(self) -> tuple[Array, Array]:
        """The bounds at these messages, of which the upper one counts for the best."""
        upper, lower = self.bounds()
        self.best = np.minimum(self.best, upper)
        return upper, lower

    def _terms(self) -> tuple[Array, Array, Array]:
        """What each variable (R, V) and each factor (R, F) adds to the bounds."""
        log_z, _ = self._variables()
        upper, lower = (np.zeros((self.setting.n_rows, self.graph.n_factors)) for _ in range(2))

        def call(kernel: Any, rows: tuple[int, int], positions: tuple[int, int], h: int) -> None:
            state = (freeze(log_z), self.totals, self.messages, upper, lower)
            kernel(self.plan.links, self.tables, self.plan.order, rows, positions, *state)

        self._each_chunk(make_evaluate, call)
        return log_z, upper, lower

    def _variables(self) -> tuple[Array, Array]:
        """log Z_v (R, V), 0 where nothing is left, and b_v (R, S)."""
        offsets = self.graph.state_offsets
        totals, sizes = self.totals[:, : offsets[-1]], np.diff(offsets)
        high = np.maximum.reduceat(totals, offsets[:-1], axis=1)
        high[high == -np.inf] = 0.0
        weights = np.exp(totals - np.repeat(high, sizes, axis=1))
        sums = np.add.reduceat(weights, offsets[:-1], axis=1)
        sums[sums == 0.0] = 1.0
        return high + np.log(sums), weights / np.repeat(sums, sizes, axis=1)

    def answer(self, want: frozenset[Want]) -> Result:
        """Bound and beliefs."""
        result = replace(self.setting.empty("upper"), state=self._state())
        if "log_partition" in want:
            upper, lower = self.bounds()
            upper = np.minimum(self.best, upper)
            exact = bool((self.rho == 1.0).all() and (upper - lower <= ROUNDING * np.maximum(1.0, abs(upper))).all())
            result = replace(result, log_partitions=upper, bound="exact" if exact else "upper")
        if want & {"variables", "factors", "moments"}:
            _, p = self._variables()
            result = replace(result, probabilities=p if "variables" in want else None)
            if want & {"factors", "moments"}:
                result = self._with_factors(result, p, want)
        return self.setting.empty_impossible(result)

    def _state(self) -> dict[str, Any]:
        return {
            "engine": "trw",
            "messages": freeze(self.messages.copy()),
            "rho": self.rho,
            "fixed": freeze(self.fixed),
            "n_forests": self.n_forests,
        }

    def _with_factors(self, result: Result, p: Array, want: frozenset[Want]) -> Result:
        """Beliefs of factors and their sums, where they are wanted."""
        marginals = make_marginals(self.setting, self.needed) if "factors" in want else None
        if marginals is None:
            moments = self.averages(freeze(np.zeros(0, np.int64)), np.empty((1, 0))).moments
        else:
            moments = self.averages(freeze(factor_offsets(self.graph)[self.plan.order]), marginals).moments
        return with_factors(self.setting, result, p, marginals, moments if "moments" in want else None)

    def averages(self, starts: AnyArray, cells: Array) -> Averages:
        """Sums of factor beliefs; the beliefs themselves go to cells where starts say so."""
        problem, order = self.setting.problem, self.plan.order
        by_row, by_factor = freeze(np.array(problem.row_weights)), freeze(problem.factor_weights[order])
        averages = Averages(by_row, by_factor, np.zeros(len(problem.log_potentials)), np.zeros(len(order)))
        kernel_of(make_beliefs, compile=self._compiled())(
            self.plan.links, self.tables, self.totals, self.messages, averages, starts, cells, self.plan.max_size
        )
        return averages

    def information(self) -> Array:
        """(G,): I_f, summed over rows, at converged messages."""
        _, log_ratio, _ = self._terms()
        _, p = self._variables()
        expected = self.averages(freeze(np.zeros(0, np.int64)), np.empty((1, 0))).expected
        sent = np.einsum("rm,rm->m", p[:, self.plan.message_states], self.messages)
        by_factor = np.bincount(self.plan.message_owners, weights=sent, minlength=len(self.rho))
        return np.asarray((expected - log_ratio[:, self.plan.order].sum(axis=0)) / self.rho - by_factor)

    def details(self) -> Mapping[str, Any]:
        """What diagnostics say besides."""
        moves = {} if self.reweighing is None else {"moves": self.reweighing.moves}
        return {"forests": self.n_forests, **moves}
