"""One row of evidence, or one instance of a union, as tables for a chain of forests, and answers back.

States that evidence and hard zeros rule out are left out, and with them variables of one state: what is left are `free`
variables, numbered anew, and tables on two of them or more with the log-weights of single ones (`base`), each less its
largest entry. Tables on the same variables are one. Where entries of a table are too far apart for linear numbers, or
these find no labelling at all, the algebra is one of logarithms.

    probabilities (S,)    of the row or instance, zero at states that are ruled out
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from besag.arrays import Array, IntArray, frozen
from besag.infer.clique_tables import Algebra, Scope, Table
from besag.infer.forest_chain import Chain
from besag.infer.setting import Setting
from besag.kernels.compile import kernel_of
from besag.kernels.order import LOG_UNIT, NO_LIMIT, best_order, neighbours
from besag.kernels.sweep import make_sweep

WIDEST = 200.0  # nats between the entries of a table that linear numbers are trusted with
SWEEPS = 4  # passes forward and back after the first
SETTLED = 1e-4  # change of a marginal below which a bound has given all that it can


class Part:
    """The free variables of a row and their tables."""

    def __init__(self, setting: Setting, row: int, variables: range, factors: IntArray, n_threads: int | None) -> None:
        self.setting, self.variables, self.factors = setting, variables, factors
        offsets = setting.graph.state_offsets
        self.first_state, self.n_states = int(offsets[variables.start]), int(offsets[variables.stop])
        self.n_states -= self.first_state
        base = setting.base[row]
        self.left = {v: np.flatnonzero(base[offsets[v] : offsets[v + 1]] > -math.inf) for v in variables}
        free = [v for v in variables if len(self.left[v]) > 1]
        self.number = {v: i for i, v in enumerate(free)}
        self.cardinalities = [len(self.left[v]) for v in free]
        self.constant = float(sum(base[offsets[v] + self.left[v][0]] for v in variables if v not in self.number))
        self.logs: dict[Scope, Array] = {(i,): base[offsets[v] + self.left[v]] for v, i in self.number.items()}
        self.n_threads = n_threads
        for f in factors.tolist():
            self._add(f)
        tops = {scope: float(logs.max()) for scope, logs in self.logs.items()}
        self.possible = -math.inf not in tops.values()
        self.constant += sum(tops.values())
        if self.possible:
            self.logs = {scope: logs - tops[scope] for scope, logs in self.logs.items()}
        self.log = any(_range(logs) > WIDEST for logs in self.logs.values())
        self.order: list[int] | None = None
        self.chain: Chain | None = None
        self.log_partition = -math.inf
        self.log_spread = math.inf  # of log Z between the last two bounds, or the first pass and the last of one
        self.probabilities = np.zeros(self.n_states)

    def _add(self, f: int) -> None:
        """Slice the table of a factor and add it to the one on the same free variables."""
        problem, variables = self.setting.problem, self.setting.graph.scope(f).tolist()
        t = int(problem.table_of_factor[f])
        table = problem.log_potentials[problem.table_offsets[t] : problem.table_offsets[t + 1]]
        shape = [self.setting.graph.variables.cardinalities[v] for v in variables]
        table = table.reshape(shape)[np.ix_(*[self.left[v] for v in variables])]
        scope = self.scope_of(variables)
        table = table.reshape([self.cardinalities[i] for i in scope])
        logs = np.ascontiguousarray(table.transpose(np.argsort(scope))).ravel()
        if not scope:
            self.constant += float(logs[0])
            return
        key = tuple(sorted(scope))
        self.logs[key] = self.logs[key] + logs if key in self.logs else logs

    def scope_of(self, variables: list[int]) -> list[int]:
        """The numbers of the free ones among some variables."""
        return [self.number[v] for v in variables if v in self.number]

    def improve(self, bits: float, check: Callable[[], None], go_on: Callable[[], bool]) -> float:
        """Answer with cliques of up to 2^bits entries; the largest change of a marginal.

        `check` may raise before anything has changed; `go_on` tells whether there is time for another sweep.
        """
        before, log_before = self.probabilities, self.log_partition
        self.log_spread = 0.0
        if self.possible and not self.cardinalities:
            self._fill({})
            self.log_partition = self.constant
        elif self.possible:
            self._improve(bits, check, go_on)
            if math.isfinite(log_before) and not self.exact:
                self.log_spread = abs(self.log_partition - log_before)
        return _change(before, self.probabilities)

    def _improve(self, bits: float, check: Callable[[], None], go_on: Callable[[], bool]) -> None:
        chain = self._chained(bits, check)
        if chain.log_partition == -math.inf and not self.log:
            self.log = True
            chain = self._chained(bits, check)
        self.chain, self.log_partition = chain, chain.log_partition + self.constant
        self.possible = self.log_partition > -math.inf
        if not self.possible:
            self.probabilities = np.zeros(self.n_states)
            return
        first = self.log_partition
        self._read()
        for _ in range(0 if chain.exact else SWEEPS):
            if not go_on() or self.sweep() <= SETTLED:
                break
        self.log_spread = 0.0 if chain.exact else abs(first - self.log_partition)

    def _chained(self, bits: float, check: Callable[[], None]) -> Chain:
        """A chain with the order that lost less the first time."""
        algebra = Algebra(self.cardinalities, log=self.log, compile=self.setting.compile, n_threads=self.n_threads)
        tables = [algebra.from_logs(scope, logs) for scope, logs in self.logs.items()]
        if self.order is not None:
            return Chain(algebra, tables, self.order, bits, check)
        best = None
        for order in self._orders():
            chain = Chain(algebra, tables, order, bits, check)
            if chain.log_partition == -math.inf:
                return chain
            if best is None or chain.lost < best.lost:
                best, self.order = chain, order
            if chain.exact:
                break
        assert best is not None
        return best

    def _orders(self) -> Iterator[list[int]]:
        """A sweep from one end of the graph to the other, and a greedy elimination order."""
        n, compile = len(self.cardinalities), self.setting.compile
        cards = np.array(self.cardinalities, np.int64)
        flat = np.array([v for scope in self.logs for v in scope], np.int64)
        offsets = np.cumsum([0, *(len(scope) for scope in self.logs)]).astype(np.int64)
        first, others = neighbours(n, frozen(offsets), frozen(flat), compile=compile)
        order = np.empty(n, np.int64)
        logs = np.rint(np.log2(cards) / LOG_UNIT).astype(np.int64)
        kept, simple = frozen(np.zeros(n, np.bool_)), frozen(np.zeros(0, np.int64))
        structure = (frozen(cards.astype(np.float64)), frozen(logs), kept, first, others, simple)
        kernel_of(make_sweep, compile=compile)(*structure, math.inf, NO_LIMIT, NO_LIMIT, order)
        yield order.tolist()
        yield best_order(cards, first, others, compile=compile).variables.tolist()

    @property
    def exact(self) -> bool:
        """Whether the answer is."""
        return not self.possible or not self.cardinalities or (self.chain is not None and self.chain.exact)

    def sweep(self) -> float:
        """A pass forward and one back; the largest change of a marginal, 0 where numbers fail and nothing changes."""
        chain, before, log_before = self.chain, self.probabilities, self.log_partition
        if chain is None or chain.exact:
            return 0.0
        chain.again()
        self._read()
        if math.isfinite(self.log_partition) and np.isfinite(self.probabilities).all():
            return _change(before, self.probabilities)
        self.probabilities, self.log_partition = before, log_before
        return 0.0

    def _read(self) -> None:
        """A pass back, from which marginals and log Z are taken."""
        assert self.chain is not None
        found: dict[int, Array] = {}
        for stage, beliefs in self.chain.back():
            for v, c in stage.forest.homes.items():
                if v not in found:
                    found[v] = self._of_scope(beliefs[c], (v,))
        self.log_partition = self.chain.log_partition + self.constant
        self._fill(found)

    def _of_scope(self, belief: Table, scope: Scope) -> Array:
        assert self.chain is not None
        algebra = self.chain.algebra
        values = algebra.plain(algebra.marginal(belief, scope).values)
        total = float(values.sum())
        return values / total if total > 0 else values

    def _fill(self, found: dict[int, Array]) -> None:
        offsets = self.setting.graph.state_offsets
        self.probabilities = np.zeros(self.n_states)
        for v in self.variables:
            at = int(offsets[v]) - self.first_state + self.left[v]
            self.probabilities[at] = found[self.number[v]] if v in self.number else 1.0

    def factor_marginals(self) -> Iterator[tuple[int, Array]]:
        """The marginal of every factor of two variables or more, as a table K1..Kn, flat."""
        by_scope: dict[Scope, list[int]] = {}
        for f in self.factors.tolist():
            key = tuple(sorted(self.scope_of(self.setting.graph.scope(f).tolist())))
            by_scope.setdefault(key, []).append(f)
        for f in by_scope.pop((), []) if self.possible else []:
            yield f, self._full(f, np.ones(1))
        if self.chain is None or not self.possible:
            return
        scopes = list(self.logs)
        for stage, beliefs in self.chain.back():
            for i in stage.factors:
                values = None
                for f in by_scope.get(scopes[i], []):
                    if values is None:
                        values = self._of_scope(beliefs[stage.forest.home(scopes[i])], scopes[i])
                    yield f, self._full(f, values)

    def _full(self, f: int, values: Array) -> Array:
        """A table on the free variables of a factor, in order, as one on all of its states."""
        variables = self.setting.graph.scope(f).tolist()
        scope = self.scope_of(variables)
        table = values.reshape([self.cardinalities[i] for i in sorted(scope)])
        table = table.transpose([sorted(scope).index(i) for i in scope])
        full = np.zeros([self.setting.graph.variables.cardinalities[v] for v in variables])
        full[np.ix_(*[self.left[v] for v in variables])] = table.reshape([len(self.left[v]) for v in variables])
        return full.ravel()


def _range(logs: Array) -> float:
    finite = logs[logs > -math.inf]
    return float(finite.max() - finite.min()) if len(finite) else 0.0


def _change(before: Array, after: Array) -> float:
    return float(np.abs(after - before).max(initial=0.0))
