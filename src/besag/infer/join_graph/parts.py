"""One row of evidence, or one instance of a union, as tables for a chain of forests, and answers back.

States that evidence and hard zeros rule out are left out, and with them variables of one state. What remains are `free`
variables, numbered anew, tables on two of them or more, and log-weights of single ones (`base`), each minus its largest
entry. Tables on the same variables are merged. If entries of a table are too far apart for linear numbers, or these
find no labelling at all, the algebra is one of logarithms.

    probabilities (S,)    of the row or instance, zero at states that are ruled out
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from besag.arrays import Array, IntArray, freeze, offsets_of
from besag.infer.join_graph.ahead import Ahead
from besag.infer.join_graph.calibration import TooWideError
from besag.infer.join_graph.stages import Chain, OutOfTimeError
from besag.infer.join_graph.tables import Algebra, Scope
from besag.infer.orders.kernels.first_runs import NO_LIMIT
from besag.infer.orders.kernels.greedy_run import Stop
from besag.infer.orders.kernels.starts import LOG_UNIT
from besag.infer.orders.kernels.sweep import make_sweep
from besag.infer.orders.search import find_neighbours_of
from besag.infer.prepared import Prepared
from besag.kernels.compile import kernel_of

WIDEST = 200.0  # most nats between the entries of a table for linear numbers
SWEEPS = 2  # passes forward and back after the first, before the next larger bound
DAMPING = 0.3  # by how much more a pass is damped if the last change is above half of the previous one
MOST_DAMPING = 0.6
DOUBT = 5.0  # nats, besides what forests lost, by which passes that have not settled may change log Z
CALM = 0.01  # change of a marginal below which they have settled, for that purpose
SETTLED = 1e-3  # change of a marginal below which no more passes are made


def _no_check() -> None:
    pass


class FreePart:
    """The free variables of a row and their tables."""

    def __init__(
        self,
        setting: Prepared,
        row: int,
        variables: range,
        factors: IntArray,
        clock: Callable[[], float],
        *,
        compile: bool,
        n_threads: int | None,
        dtype: str = "float64",
        room: float = math.inf,
        check: Callable[[], None] = _no_check,
    ) -> None:
        """Prepare a row; room: bytes for each of two chains; check: as in `improve`, until there is a first answer."""
        self.dtype, self.room, self.check_first = dtype, room, check
        self.setting, self.variables, self.factors, self.clock = setting, variables, factors, clock
        offsets = setting.graph.state_offsets
        self.first_state = int(offsets[variables.start])
        self.n_states = int(offsets[variables.stop]) - self.first_state
        base = setting.base[row]
        self.left = {v: np.flatnonzero(base[offsets[v] : offsets[v + 1]] > -math.inf) for v in variables}
        free = [v for v in variables if len(self.left[v]) > 1]
        self.number = {v: i for i, v in enumerate(free)}
        self.cardinalities = [len(self.left[v]) for v in free]
        self.constant = float(sum(base[offsets[v] + self.left[v][0]] for v in variables if v not in self.number))
        self.logs: dict[Scope, Array] = {(i,): base[offsets[v] + self.left[v]] for v, i in self.number.items()}
        self.compile, self.n_threads = compile, n_threads
        self._whole = frozenset(v for v in free if len(self.left[v]) == int(offsets[v + 1] - offsets[v]))
        for f in factors.tolist():
            check()
            self._add(f)
        self.possible, self.log = True, False
        if self.logs:
            self._bring_to_zero()
        self.chain: Chain | None = None
        self._ahead: tuple[bool, float, Ahead[Chain]] | None = None  # whether in logarithms, bits of its bound, work
        self.log_partition = -math.inf
        self.log_spread = math.inf  # between log Z of the last two bounds, or of the first pass and the last of one
        self.probabilities = np.zeros(self.n_states)
        self.damping, self.change = 0.0, math.inf
        self.seconds = 0.0  # that the last bound took, up to the first answer

    def _add(self, f: int) -> None:
        """Slice the table of a factor and add it to the one on the same free variables."""
        problem, variables = self.setting.problem, self.setting.graph.scope(f).tolist()
        t = int(problem.table_of_factor[f])
        logs = problem.log_potentials[problem.table_offsets[t] : problem.table_offsets[t + 1]]
        scope = self.scope_of(variables)
        if sorted(scope) != scope or not self._whole.issuperset(variables):
            shape = [self.setting.graph.variables.cardinalities[v] for v in variables]
            table = logs.reshape(shape)[np.ix_(*[self.left[v] for v in variables])]
            table = table.reshape([self.cardinalities[i] for i in scope])
            logs = np.ascontiguousarray(table.transpose(np.argsort(scope))).ravel()
        if not scope:
            self.constant += float(logs[0])
            return
        key = tuple(sorted(scope))
        self.logs[key] = self.logs[key] + logs if key in self.logs else logs

    def _bring_to_zero(self) -> None:
        """Put the largest entry of each table into the constant, and choose between linear numbers and logarithms."""
        flat = np.concatenate(list(self.logs.values()))
        lengths = np.array([len(logs) for logs in self.logs.values()])
        ends = offsets_of(lengths)
        tops = np.maximum.reduceat(flat, ends[:-1])
        self.possible = bool((tops > -math.inf).all())
        self.constant += sum(tops.tolist())
        if not self.possible:
            return
        flat -= np.repeat(tops, lengths)
        self.log = bool(flat.min(where=flat > -math.inf, initial=0.0) < -WIDEST)
        parts = (flat[low:high] for low, high in pairwise(ends.tolist()))
        self.logs = dict(zip(self.logs, parts, strict=True))

    @property
    def least_bits(self) -> int:
        """By how much a bound must grow to let one more variable in; if all are alike, less may change nothing."""
        return math.ceil(math.log2(self.cardinalities[0])) if len(set(self.cardinalities)) == 1 else 1

    def scope_of(self, variables: list[int]) -> list[int]:
        """The new numbers of those of the variables that are free."""
        return [self.number[v] for v in variables if v in self.number]

    def improve(self, bits: float, check: Callable[[], None], hurry: Callable[[], bool]) -> float:
        """Answer with cliques of up to 2^bits entries; the largest change of a marginal.

        `check` raises OutOfTimeError when there is no time left, which leaves the answer as it was; until there is one,
        `check_first` is called instead, and `hurry` is asked. OutOfRoomError leaves the answer as it was too.
        """
        before, log_before = self.probabilities, self.log_partition
        if self.exact:
            self._fill({})
            self.log_partition, self.log_spread = (self.constant if self.possible else -math.inf), 0.0
            return 0.0
        in_time = check if self.chain else self.check_first
        chain = self._chained(bits, in_time, hurry)
        began = self.clock()
        try:
            self._adopt(chain)
        except TooWideError:  # a pass back through a chain that leaves nothing out
            self.log = True
            chain = self._chain(bits, in_time, hurry)
            self._adopt(chain)
        self.seconds += self.clock() - began
        chain.check = check
        if self.possible and not chain.exact:
            for _ in range(SWEEPS):
                if self.sweep() <= SETTLED:
                    break
        if math.isfinite(log_before):
            self.log_spread = abs(self.log_partition - log_before)
        return _change(before, self.probabilities)

    def _adopt(self, chain: Chain) -> None:
        """Adopt the answer of a new chain."""
        self.possible = chain.log_partition > -math.inf
        if self.possible:
            self._fill(self._read(chain))
        else:
            self._fill({})
        self.chain, self.damping, self.change = chain, 0.0, math.inf
        self.log_partition = self._trusted(chain) + self.constant
        between = abs(chain.first_estimate - chain.log_partition) if self.possible else 0.0
        self.log_spread = between if math.isfinite(between) else math.inf

    def _trusted(self, chain: Chain) -> float:
        """log Z after the last pass back, if passes have settled or it is close to that of the first; else the latter.

        Messages back are quotients, which explode if a forest gave little weight to what turns out to be right.
        """
        last, first = chain.log_partition, chain.first_estimate
        settled = self.change <= CALM or abs(last - first) <= DOUBT + chain.lost
        return last if math.isfinite(last) and settled else first

    def look_ahead(self, bits: float) -> None:
        """Start the chain for the next bound, beside the current work."""
        if self._ahead is None:
            make, log = self._maker, self.log
            self._ahead = log, bits, Ahead(lambda check: make(log, bits, check, _never, 1))

    def _looked_ahead(self, bits: float) -> Chain | None:
        """The chain for this bound, if it was started ahead and equals what would be made now."""
        begun, self._ahead = self._ahead, None
        return begun[2].result() if begun is not None and begun[:2] == (self.log, bits) else None

    def _chained(self, bits: float, check: Callable[[], None], hurry: Callable[[], bool]) -> Chain:
        """A chain; in logarithms if linear numbers do not suffice, or find no labelling."""
        try:
            chain = self._chain(bits, check, hurry)
            if chain.log_partition > -math.inf or self.log:
                return chain
        except TooWideError:
            pass
        self.log = True
        return self._chain(bits, check, hurry)

    def _chain(self, bits: float, check: Callable[[], None], hurry: Callable[[], bool]) -> Chain:
        began = self.clock()
        chain = self._looked_ahead(bits) or self._maker(self.log, bits, check, hurry, self.n_threads)
        chain.check, chain.hurry, chain.algebra.n_threads = check, hurry, self.n_threads
        self.seconds = self.clock() - began
        return chain

    @cached_property
    def _maker(self) -> Callable[[bool, float, Callable[[], None], Callable[[], bool], int | None], Chain]:
        """A function that makes a chain; it holds no reference to this object, which must be freed when unused."""
        cardinalities, logs, order, dtype = self.cardinalities, self.logs, self.order, self.dtype
        compile, room = self.compile, self.room

        def make(
            log: bool, bits: float, check: Callable[[], None], hurry: Callable[[], bool], n_threads: int | None
        ) -> Chain:
            algebra = Algebra(cardinalities, log=log, compile=compile, n_threads=n_threads)
            tables = [algebra.from_logs(*table) for table in logs.items()]
            return Chain(algebra, tables, order, bits, check, hurry, dtype, room)

        return make

    @cached_property
    def order(self) -> list[int]:
        """From one end of the graph to the other, so that the front between added and remaining factors stays small.

        Measured on grids, pedigrees, Promedus, segmentation, CSP and Alchemy with cliques of 2^5 to 2^11, the error of
        marginals with a greedy elimination order is larger, mostly two to ten times.
        """
        n, compile = len(self.cardinalities), self.compile
        cards = np.array(self.cardinalities, np.int64)
        flat = np.array([v for scope in self.logs for v in scope], np.int64)
        offsets = offsets_of(np.array([len(scope) for scope in self.logs], np.int64))
        first, others = find_neighbours_of(n, freeze(offsets), freeze(flat), compile=compile)
        order = np.empty(n, np.int64)
        logs = np.rint(np.log2(cards) / LOG_UNIT).astype(np.int64)
        kept, simple = freeze(np.zeros(n, np.bool_)), freeze(np.zeros(0, np.int64))
        structure = (freeze(cards.astype(np.float64)), freeze(logs), kept, first, others, simple)
        kernel_of(make_sweep, compile=compile)(*structure, Stop(math.inf, NO_LIMIT, NO_LIMIT), order)
        return [int(v) for v in order]

    @property
    def exact(self) -> bool:
        """Whether the answer is exact."""
        return not self.possible or not self.cardinalities or (self.chain is not None and self.chain.exact)

    def sweep(self) -> float:
        """Make a pass forward and one back; the largest change of a marginal, 0 if numbers fail and nothing changes."""
        chain = self.chain
        if chain is None or self.exact:
            return 0.0
        restore, before = chain.save(), self.probabilities
        try:
            chain.pass_again(self.damping)
            found = self._read(chain)
        except OutOfTimeError:
            restore()
            return self.change
        if not math.isfinite(chain.log_partition):
            restore()
            return 0.0
        self._fill(found)
        change = _change(before, self.probabilities)
        if change > 0.5 * self.change:
            self.damping = min(self.damping + DAMPING, MOST_DAMPING)
        self.change = change
        self.log_partition = self._trusted(chain) + self.constant
        return change

    def _read(self, chain: Chain) -> dict[int, Array]:
        """Make a pass back; the marginals that it gives."""
        found: dict[int, Array] = {}
        for stage, beliefs in chain.back():
            new = [v for v in stage.forest.homes if v not in found]
            homes = [stage.forest.homes[v] for v in new]
            tables = chain.algebra.marginals(beliefs, homes, chain.algebra.scopes([(v,) for v in new]))
            found.update((table.scope[0], table.values) for table in chain.algebra.distributions(tables))
        return found

    def _fill(self, found: dict[int, Array]) -> None:
        offsets = self.setting.graph.state_offsets
        self.probabilities = np.zeros(self.n_states)
        for v in self.variables:
            at = int(offsets[v]) - self.first_state + self.left[v]
            if self.possible:
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
        self.chain.check = _no_check
        scopes = list(self.logs)
        algebra = self.chain.algebra
        for stage, beliefs in self.chain.back():
            homes = [stage.forest.home(scope) for scope in stage.own.scopes.each]
            tables = algebra.distributions(algebra.marginals(beliefs, homes, stage.own.scopes))
            for i, table in zip(stage.factors, tables, strict=True):
                for f in by_scope.get(scopes[i], []):
                    yield f, self._full(f, table.values)

    def _full(self, f: int, values: Array) -> Array:
        """A table on the free variables of a factor, in order, as one on all of its states."""
        variables = self.setting.graph.scope(f).tolist()
        scope = self.scope_of(variables)
        table = values.reshape([self.cardinalities[i] for i in sorted(scope)])
        table = table.transpose([sorted(scope).index(i) for i in scope])
        full = np.zeros([self.setting.graph.variables.cardinalities[v] for v in variables])
        full[np.ix_(*[self.left[v] for v in variables])] = table.reshape([len(self.left[v]) for v in variables])
        return full.ravel()


def _never() -> bool:
    return False


def _change(before: Array, after: Array) -> float:
    return float(np.abs(after - before).max(initial=0.0))
