"""Belief propagation on one row of evidence: arrays in, arrays out.

`Domain` has the tables of a problem in the domain of a semiring, shared by all rows; `Passing` has the messages of one
row, sends them by one of the schedules, and says what they mean. In SUM all tables and bases are weights, the largest
of each being one, what was taken out goes into log Z; where their range, or that of a product of messages, is too wide
for the type of the numbers, `narrow` says so and the work is to be done in LOG_SUM.

Shapes as in `kernels/links`: V variables, S states, G linked factors, E links, M entries of messages, L' of tables and
of the levels of structured factors (`besag.model.structured`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from besag import recycled
from besag.arrays import AnyArray, Array, BoolArray, IntArray, Kind, Semiring, freeze, index_type
from besag.infer.bp.kernels import binary, general, schedules
from besag.infer.bp.kernels import levels as bp_levels
from besag.infer.bp.kernels import pairs as bp_pairs
from besag.infer.bp.kernels import ratios as bp_ratios
from besag.infer.bp.kernels.beliefs import make_factors, make_least, make_variables
from besag.infer.bp.kernels.decode import make_decode
from besag.infer.bp.kernels.general import MessageNumbers
from besag.infer.bp.kernels.links import MessageLinks, make_places
from besag.infer.bp.kernels.ratios import Ratios
from besag.kernels.compile import kernel_of
from besag.kernels.domain import make_weights
from besag.kernels.factors import POTTS, Factors
from besag.kernels.semiring import one_of
from besag.kernels.threads import run_chunks
from besag.views import counts_up, take

RANGE = {np.dtype(np.float32): 60.0, np.dtype(np.float64): 500.0}  # nats that weights of a type may lie apart
CHUNK = 2**17  # entries of messages or tables that a thread takes at a time, at least
MAX_CHUNKS = 32
LOOK_EVERY = 2**22  # table entries that are gone through between two looks at the clock
LEAST_WORK = 32  # entries that sending from a factor takes as long as, at the least
MAX_CONSTANT = 64  # states, up to which kernels are specialised to their number
WORTH_A_KERNEL = 2**16  # table entries: below this a kernel for one K alone is not worth its compilation
WORTH_PAIRS = 2**11  # the same for K = 2, whose kernels every user of grids has compiled once


class Domain:
    """The tables of all factors in the domain of a semiring."""

    def __init__(
        self, factors: Factors, links: MessageLinks, semiring: Semiring, dtype: np.dtype[Any], compile: bool
    ) -> None:
        self.links, self.semiring, self.dtype, self.compile = links, semiring, dtype, compile
        self.state_offsets = factors.state_offsets
        self.kinds = take(factors.kinds, links.factors)
        tables_read = take(factors.table_of_factor, links.factors)
        logs, self.table_offsets = factors.log_potentials, factors.table_offsets
        self.starts = take(self.table_offsets, tables_read)
        self.shifts, self.narrow = np.zeros(len(links.factors)), False
        self.tables = self._weights(logs, tables_read) if semiring == Semiring.SUM else freeze(logs.astype(dtype))
        self.tables_read = tables_read
        self.has_zeros = semiring == Semiring.SUM and float(self.tables.min(initial=1.0)) == 0.0
        sizes = np.diff(factors.state_offsets)
        self.n_states = int(sizes.max(initial=0))
        self.arity = int(np.diff(links.link_offsets).max(initial=0))
        self.only = self._one_kind(sizes)
        pairs = self._pairs() if self.only == Kind.TABLE and self._may_be_paired() else None
        self.is_paired = pairs is not None
        if pairs is not None:
            self.pair_tables, self.pairs_read = pairs
            self.reads_own = counts_up(self.pairs_read)
            self.pair_links = (links.first, links.links_of_variable)

    @cached_property
    def work(self) -> IntArray:
        """(G,): entries that are gone through when a factor sends; only schedules in pieces ask for it."""
        stored = np.diff(self.table_offsets)[self.tables_read]
        work = np.where(self.kinds == Kind.TABLE, stored, 0) * np.diff(self.links.link_offsets)
        return np.asarray(np.maximum(work, LEAST_WORK), np.int64)

    def _weights(self, logs: Array, tables_read: IntArray) -> AnyArray:
        shifts, self.narrow, values = self.weights(logs, self.table_offsets)
        self.shifts = take(shifts, tables_read)
        return values

    def weights(self, logs: Array, offsets: IntArray) -> tuple[Array, bool, AnyArray]:
        """Shifts, whether the range is too wide, and weights; see `make_weights`."""
        shifts, out = np.zeros(len(offsets) - 1), recycled.empty((len(logs),), self.dtype)
        kernel = kernel_of(make_weights, int(self.dtype == np.float32), compile=self.compile)
        fine = kernel(freeze(logs), freeze(offsets), RANGE[self.dtype], shifts, out)
        return shifts, not fine, freeze(out)

    def _one_kind(self, sizes: IntArray) -> int:
        """The kind of all factors, where these are on two variables of K states and kernels for them pay; else -1."""
        n = self.n_states
        pays = (
            self.semiring != Semiring.LOG_SUM
            and self.compile
            and self.arity == 2
            and len(self.links.variables) * n * n >= (WORTH_PAIRS if n == 2 else WORTH_A_KERNEL)
            and bool((sizes == n).all() and (np.diff(self.links.link_offsets) == 2).all())
        )
        return int(self.kinds[0]) if pays and bool((self.kinds == self.kinds[0]).all()) else -1

    def _may_be_paired(self) -> bool:
        """Whether the kernels for tables serve if these lie well in memory."""
        return self.n_states <= MAX_CONSTANT

    def _pairs(self) -> tuple[AnyArray, IntArray] | None:
        """The tables (T, K, K), and which of them each factor reads; None where they are not all whole tables apart."""
        size, least = self.n_states**2, int(self.starts.min())
        whole = (len(self.tables) - least) // size
        read = np.empty(len(self.starts), index_type(whole))
        if not kernel_of(make_places, compile=True)(self.starts, least, size, read):
            return None
        tables = self.tables[least : least + whole * size].reshape(-1, self.n_states, self.n_states)
        return freeze(tables), freeze(read)


class Passing:
    """The messages of one row of evidence."""

    def __init__(
        self, domain: Domain, base: Array, n_threads: int | None, look: Callable[[], None] = lambda: None
    ) -> None:
        """look: called before each part of long work, to end it by an exception."""
        self.domain, self.links, self.n_threads, self.look = domain, domain.links, n_threads, look
        self.semiring = int(domain.semiring)
        self.shifts, self.narrow = np.zeros(len(domain.state_offsets) - 1), domain.narrow
        self.numbers = MessageNumbers(
            self._base(base), domain.state_offsets, domain.tables, domain.starts, domain.kinds
        )
        n = int(self.links.message_offsets[-1])
        self._messages: AnyArray | None = None  # constant until they are needed
        self._ratios: Ratios | None = None  # where they are there, they have taken the place of the messages
        self.gathered = np.empty(n, domain.dtype)
        self._takes_ratios = domain.is_paired and domain.n_states == 2 and self._rules_nothing_out()
        self.room = schedules.SendRoom(
            np.empty(domain.n_states, domain.dtype), np.empty(n, domain.dtype), np.zeros(domain.arity, np.int64)
        )
        self.alive = self._alive() if domain.has_zeros else None
        self.updates = 0
        self._heap: schedules.Heap | None = None

    @property
    def messages(self) -> AnyArray:
        """(M,): what factors say to variables, to read and to write."""
        if self._messages is None:
            self._messages = np.empty_like(self.gathered)
            if self._ratios is None:
                self._messages[:] = one_of(self.semiring)
        if self._ratios is not None:
            self._write_pairs(self._ratios, self._messages)
            self._ratios = None
        return self._messages

    def begin_at(self, logs: AnyArray) -> bool:
        """Sets the messages to these logarithms (M,); False where weights cannot hold them."""
        if self.domain.semiring != Semiring.SUM:
            self.messages[:] = logs
            return True
        if logs.min(initial=0.0, where=logs > -np.inf) < -RANGE[self.domain.dtype]:
            return False
        np.exp(logs, out=self.messages, dtype=self.domain.dtype, casting="same_kind")
        return True

    def _write_pairs(self, ratios: Ratios, out: AnyArray) -> None:
        kernel_of(bp_ratios.make_pairs, self.semiring, compile=True)(freeze(ratios.messages), out)

    def log_messages(self) -> AnyArray:
        """(M,): a copy of the messages, as logarithms."""
        if self._ratios is None:
            logs = np.array(self.messages)
        else:
            logs = np.empty_like(self.gathered)
            self._write_pairs(self._ratios, logs)
        if self.domain.semiring == Semiring.SUM:
            with np.errstate(divide="ignore"):
                np.log(logs, out=logs)
        return logs

    def _rules_nothing_out(self) -> bool:
        least = min(float(values.min(initial=1.0)) for values in (self.domain.tables, self.numbers.base))
        return least > (0.0 if self.domain.semiring == Semiring.SUM else -math.inf)

    def _base(self, base: Array) -> AnyArray:
        if self.domain.semiring != Semiring.SUM:
            return freeze(base.astype(self.domain.dtype))
        self.shifts, narrow, values = self.domain.weights(base, self.domain.state_offsets)
        self.narrow |= narrow
        return values

    def _alive(self) -> BoolArray:
        """(M,): entries of messages about states that base allows."""
        links = self.links
        shift = self.domain.state_offsets[links.variables] - links.message_offsets[:-1]
        state = np.repeat(shift, np.diff(links.message_offsets)) + np.arange(len(self.messages))
        return np.asarray(self.numbers.base[state] > 0)

    def _keeps_range(self) -> bool:
        """False where a message has lost a state that base allows.

        Each such state has support in every factor (`besag.infer.prepared`), so that no message about it is zero: one
        that is was too small for its type. Next to the largest it would not matter, but hard zeros may rule that out.
        """
        if self.alive is None:
            return True
        return not bool((((self.messages == 0) | (self.gathered == 0)) & self.alive).any())

    def synchronous(self, damping: float) -> float:
        """All messages at once; the largest change."""
        look = self.look if self.updates else lambda: None  # once through all messages, whatever the time
        self.updates += len(self.links.variables)
        if self._takes_ratios and damping == 0.0:
            change = self._by_ratios()
            if change is not None:
                return change
        if self.domain.is_paired or self.domain.only > Kind.TABLE:
            return self._paired(damping)
        if not self.gather():
            self.narrow = True
            return math.inf
        send = kernel_of(general.make_send, self.semiring, compile=self.domain.compile)
        sent, new = freeze(self.gathered), self.room.new

        def work(start: int, stop: int) -> float:
            look()
            digits = np.zeros(self.domain.arity, np.int64)
            return float(send(self.links, self.numbers, sent, damping, start, stop, self.messages, new, digits))

        return self._checked(self._over(len(self.links.factors), len(self.domain.tables), work))

    def gather(self) -> bool:
        """What variables send to factors, from all messages; False where one has lost its range."""
        gather = kernel_of(general.make_gather, self.semiring, compile=self.domain.compile)
        received = freeze(self.messages)

        def work(start: int, stop: int) -> float:
            room = np.empty(self.domain.n_states, self.domain.dtype)
            fine = gather(self.links, self.numbers, received, start, stop, self.gathered, room)
            return 0.0 if fine else math.inf

        return self._over(len(self.links.first) - 1, len(self.messages), work) == 0.0

    def gathered_now(self) -> AnyArray:
        """What variables say, (M,); the sequential schedule goes on from what its variables had gathered in turn."""
        held = self.gathered
        if self.domain.arity > 2:
            self.gathered = np.empty_like(held)
        self.gather()
        found, self.gathered = freeze(self.gathered), held
        return found

    def _by_ratios(self) -> float | None:
        """All messages at once, as ratios; None, and nothing sent, where these are too wide from now on."""
        domain, limit = self.domain, bp_ratios.WIDEST[self.domain.dtype]
        if self._ratios is None:
            if self._messages is None:
                messages = np.full(len(self.gathered) // 2, one_of(self.semiring), domain.dtype)
            else:
                messages = bp_ratios.of_pairs(self._messages, self.semiring)
                if not bp_ratios.narrow(messages, self.semiring):
                    self._takes_ratios = False
                    return None
            base = freeze(bp_ratios.of_pairs(self.numbers.base, self.semiring))
            self._ratios = Ratios(base, messages, np.empty_like(messages))
        base, messages, gathered = self._ratios
        gather = kernel_of(bp_ratios.make_gather, self.semiring, compile=True)
        send = kernel_of(bp_ratios.make_send, self.semiring, int(domain.reads_own), compile=True)
        received, sent = freeze(messages), freeze(gathered)

        def collect(start: int, stop: int) -> float:
            least, largest = gather(base, *domain.pair_links, received, start, stop, gathered)
            return 0.0 if self.semiring != Semiring.SUM or 1.0 / limit < least <= largest < limit else math.inf

        def distribute(start: int, stop: int) -> float:
            return float(send(domain.pair_tables, domain.pairs_read, sent, start, stop, messages))

        if self._over(len(base), 2 * len(messages), collect) > 0.0:
            self._takes_ratios = False
            return None
        return self._over(len(domain.pairs_read), len(domain.tables), distribute)

    def _paired(self, damping: float) -> float:
        """All messages at once, where factors of one kind are on two variables of K states."""
        domain, n = self.domain, self.domain.n_states
        gather, send = self._pair_kernels(n, int(damping > 0.0))
        base, gathered, messages = (array.reshape(-1, n) for array in (self.numbers.base, self.gathered, self.messages))
        received, sent = freeze(messages), freeze(gathered)
        if domain.is_paired:
            read: tuple[Any, ...] = (domain.pair_tables, domain.pairs_read, sent)
            work = len(domain.tables)
        else:
            read = (domain.tables, domain.starts, domain.only, n, freeze(self.gathered))
            work = len(self.messages)

        def collect(start: int, stop: int) -> float:
            fine = gather(base, self.links.first, self.links.links_of_variable, received, start, stop, gathered)
            return 0.0 if fine else math.inf

        def distribute(start: int, stop: int) -> float:
            return float(send(*read, damping, start, stop, messages if domain.is_paired else self.messages))

        lost = self._over(len(base), len(self.messages), collect)
        return self._checked(max(lost, self._over(len(domain.starts), work, distribute)))

    def _pair_kernels(self, n: int, damped: int) -> tuple[Callable[..., bool], Callable[..., float]]:
        if not self.domain.is_paired:
            gather = kernel_of(bp_levels.make_gather, self.semiring, compile=True)
            known = (POTTS, n) if self.domain.only == POTTS and n <= MAX_CONSTANT else (-1, 0)
            return gather, kernel_of(bp_levels.make_send, self.semiring, damped, *known, compile=True)
        if n == 2:
            gather = kernel_of(binary.make_gather, self.semiring, compile=True)
            return gather, kernel_of(binary.make_send, self.semiring, damped, compile=True)
        gather = kernel_of(bp_pairs.make_gather, self.semiring, n, compile=True)
        return gather, kernel_of(bp_pairs.make_send, self.semiring, n, damped, compile=True)

    def sequential(self, order: IntArray, damping: float) -> float:
        """Variables in turn; the largest change."""
        if self.updates == 0 and not self.gather():
            self.narrow = True
            return math.inf
        sweep = kernel_of(schedules.make_sweep, self.semiring, compile=self.domain.compile)
        fixed, change = (self.messages, self.gathered, self.room), 0.0
        for start, stop in _parts(self._work_of_variables()[order]):
            self.look()
            change = max(change, float(sweep(self.links, self.numbers, order[start:stop], damping, *fixed)))
        self.updates += len(self.links.variables)
        return self._checked(change)

    def _work_of_variables(self) -> Array:
        """(V,): entries that are gone through when the messages of all factors of a variable are made anew."""
        links = self.links
        work = self.domain.work[links.factor_of_link]
        return np.asarray(np.bincount(links.variables, work, len(links.first) - 1), np.float64)

    def residual(self, tolerance: float, damping: float) -> float:
        """The messages of the largest changes, one after the other; the largest change that is left.

        Where none is above the tolerance all are sent once: next to a hard zero, what is left may hang on small ones.
        """
        links, compile = self.links, self.domain.compile
        n_links = len(links.variables)
        if n_links == 0:
            return 0.0
        if self._heap is None:
            self._heap = schedules.Heap(np.arange(n_links), np.arange(n_links), np.zeros(n_links))
            if not self._await_all(self._heap):
                return math.inf
        kernel = kernel_of(schedules.make_send_largest, self.semiring, compile=compile)
        numbers, heap = self.numbers, self._heap
        fixed = (self.messages, self.gathered, self.waiting, heap, self.room)
        work = float(self._work_of_variables()[links.variables].sum())  # of sending every message once
        at_once = max(1, int(LOOK_EVERY * n_links / work))
        for start in range(0, n_links, at_once):
            self.look()
            n = min(at_once, n_links - start)
            sent = kernel(links, numbers, n, tolerance, damping, *fixed)
            if sent < 0:
                self.narrow = True
                return math.inf
            self.updates += sent
            if sent < n:
                break
        if 0.0 < heap.changes[heap.links[0]] <= tolerance:
            self.messages[:] = self.waiting
            self.updates += n_links
            if not self._await_all(heap):
                return math.inf
        return self._checked(float(heap.changes[heap.links[0]]))

    def _await_all(self, heap: schedules.Heap) -> bool:
        """What all messages would be now, and the heap of their changes; False where one has lost its range."""
        fine = self.gather()
        self.waiting = np.array(self.messages)
        wait = kernel_of(schedules.make_await_all, self.semiring, compile=self.domain.compile)
        of_all = (self.gathered, self.messages, self.waiting, heap, self.room)
        for start, stop in _parts(self.domain.work):
            self.look()
            fine = wait(self.links, self.numbers, start, stop, *of_all) and fine
        self.narrow |= not fine
        return fine

    def _checked(self, change: float) -> float:
        if change < math.inf and not self._keeps_range():
            change = math.inf
        self.narrow |= change == math.inf
        return change

    def _over(self, n: int, work: int, function: Callable[[int, int], float]) -> float:
        """The largest of what a function returns for the chunks of n things of so much work in all."""
        n_chunks = max(1, min(n, work // CHUNK, max(MAX_CHUNKS, work // LOOK_EVERY)))
        bounds = np.linspace(0, n, n_chunks + 1).astype(np.int64).tolist()
        found = np.zeros(n_chunks)

        def chunk(c: int) -> None:
            found[c] = function(bounds[c], bounds[c + 1])

        run_chunks(chunk, n_chunks, self.n_threads)
        return float(found.max())

    def of_variables(self, beliefs: Array, log_z: Array) -> None:
        """Writes beliefs (S,) and log Z_v (V,)."""
        kernel = kernel_of(make_variables, self.semiring, int(self._ratios is not None), compile=self.domain.compile)
        messages = self.messages if self._ratios is None else self._ratios.messages
        kernel(self.links, self.numbers, freeze(messages), 0, len(log_z), beliefs, log_z)
        log_z += self.shifts

    def least_left(self) -> float:
        """The least that a message leaves to the state of largest belief; 0 where messages leave none to any state."""
        kernel = kernel_of(make_least, int(self._ratios is not None), compile=self.domain.compile)
        messages = freeze(self.messages if self._ratios is None else self._ratios.messages)

        def work(start: int, stop: int) -> float:
            room = np.empty(self.domain.n_states)
            return -float(kernel(self.links, self.numbers, messages, start, stop, room))

        return -self._over(len(self.shifts), len(self.gathered), work)

    def of_factors(self, out: Array, out_starts: IntArray, weights: Array, *, stored: bool) -> Array:
        """log Z_f, less log Z_e of its links, (G,); the beliefs are added to out, nothing where that is empty."""
        log_z, gathered = np.zeros(len(self.links.factors)), self.gathered_now()
        kernel = kernel_of(make_factors, self.semiring, int(stored), compile=self.domain.compile)
        messages, digits = freeze(self.messages), np.zeros(self.domain.arity, np.int64)
        room = np.empty(self.domain.n_states)
        kernel(self.links, self.numbers, messages, gathered, out_starts, weights, log_z, out, digits, room)
        return log_z + self.domain.shifts

    def decode(self, order: IntArray) -> IntArray:
        """The labelling that the messages of MAX speak for, (V,)."""
        gathered = self.gathered_now() if self.domain.arity > 2 else freeze(self.gathered)
        codes = np.full(len(self.links.first) - 1, -1, np.int64)
        digits, room, best = np.empty(self.domain.arity, np.int64), *np.empty((2, self.domain.n_states))
        decode = kernel_of(make_decode, compile=self.domain.compile)
        messages = freeze(self.messages)
        decode(self.links, self.numbers, messages, gathered, order, codes, digits, room, best)
        return codes


def _parts(work: AnyArray) -> list[tuple[int, int]]:
    """Ranges of neighbours, each of about LOOK_EVERY entries of work."""
    number = (np.cumsum(work) - work) // LOOK_EVERY
    cuts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    return list(pairwise([*cuts, len(work)]))
