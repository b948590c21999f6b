"""The naive family of mean field, 001: q(y) = prod_v q_v(y_v), every variable on its own.

    bound(q) = sum_v sum_k q_v(k) (base_v(k) - ln q_v(k)) + sum_f E_q[log-potential_f] <= log Z

A sweep goes through the variables colour by colour (`besag.infer.mean_field.schedule`); pairwise factors of one size
have a kernel of their own (`besag.infer.mean_field.kernels.pairs`). The bound is always made in float64, from
normalised q.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from besag import recycled
from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze, index_type, invert
from besag.infer.mean_field.kernels.general import make_means, make_sweep
from besag.infer.mean_field.kernels.pairs import (
    make_binary_sweep,
    make_gathered,
    make_pair_means,
    make_potts_sweep,
    make_table_sweep,
)
from besag.infer.mean_field.schedule import CHUNK_WORK, Schedule, make_schedule
from besag.infer.prepared import Prepared
from besag.infer.products import add_product_moments, multiply_marginals
from besag.kernels.colouring import colours_of
from besag.kernels.compile import kernel_of
from besag.kernels.factors import POTTS, TABLE, Factors
from besag.kernels.threads import run_chunks

MAX_CONSTANT = 64  # states, as a constant of a kernel
WORTHWHILE = 2**16  # table entries of a sweep, from which a kernel for one number of states pays
WORTH_PAIRS = 2**12  # the same for two states, whose kernel is compiled once for all
FACTORS_PER_CHUNK = 1 << 15


class Pick:
    """Takes the best start of each row (R,), or of each instance of a union (N,), out of all starts."""

    def __init__(self, setting: Prepared, n_starts: int, best: IntArray) -> None:
        self.setting, self.n_starts, self.best = setting, n_starts, best

    def __call__(self, values: AnyArray) -> Array:
        """(A, S) -> (R, S)."""
        by_start = values[: self.n_starts * self.setting.n_rows].reshape(self.n_starts, *self.setting.base.shape)
        if self.n_starts == 1:
            return np.asarray(by_start[0])
        return np.asarray(np.take_along_axis(by_start, self.setting.spread(self.best)[None], axis=0)[0])


def find_linked(setting: Prepared) -> BoolArray:
    """(F,): those of two or more variables."""
    return np.asarray(np.diff(setting.factors.scope_offsets) >= 2)


def is_hard(setting: Prepared, used: BoolArray) -> bool:
    """Whether one of the used factors (F,) has a hard zero."""
    if not setting.has_zeros:
        return False
    factors = setting.factors
    tables = np.zeros(len(factors.table_offsets) - 1, np.bool_)
    tables[factors.table_of_factor[used]] = True
    return bool((factors.log_potentials == -np.inf)[np.repeat(tables, np.diff(factors.table_offsets))].any())


def factor_means(setting: Prepared, used: BoolArray, p: Array, n_threads: int | None) -> Array:
    """(R, F): E_p[log-potential] of the used factors under a product distribution (R, S), zero for the others."""
    out, p, factors = np.zeros((len(p), len(used))), freeze(p), setting.factors
    pairs = used & (np.diff(factors.scope_offsets) == 2) & (factors.kinds == TABLE)
    for make, chosen in ((make_pair_means, pairs), (make_means, used & ~pairs)):
        kernel = kernel_of(make, int(is_hard(setting, chosen)), compile=setting.compile)
        _in_chunks(kernel, factors, freeze(np.flatnonzero(chosen)), p, out, n_threads)
    return out


def _in_chunks(
    kernel: Callable[..., None], factors: Factors, numbers: IntArray, p: Array, out: Array, n_threads: int | None
) -> None:
    def chunk(i: int) -> None:
        kernel(factors, numbers, i * FACTORS_PER_CHUNK, min((i + 1) * FACTORS_PER_CHUNK, len(numbers)), p, out)

    run_chunks(chunk, -(-len(numbers) // FACTORS_PER_CHUNK), n_threads)


def variable_parts(setting: Prepared, p: Array) -> Array:
    """(R, V): sum over k of p (base - ln p)."""
    positive = p > 0
    logs = np.log(p, where=positive, out=np.zeros(p.shape))
    terms = p * (np.where(positive, setting.base, 0.0) - logs)
    return setting.sums(terms)


class Naive:
    """Product distributions on one problem; arrays q (A, S), row a of which has the evidence of row a mod R."""

    name = "naive"

    def __init__(self, setting: Prepared, dtype: type[np.floating[Any]], n_threads: int | None) -> None:
        self.setting, self.dtype, self.n_threads = setting, dtype, n_threads
        self.linked = find_linked(setting)
        self.hard = is_hard(setting, self.linked)
        self.size = self._common_size()
        self.schedule = setting.graph.plans.get(("mean_field", self.size == 2), self._schedule)
        self.told = np.zeros((0, 0), dtype)
        self.tell: Callable[..., None] | None = None
        self.kernel = self._pair_kernel() or self._general_kernel()

    @cached_property
    def base(self) -> AnyArray:
        """(R, S), in the dtype of q."""
        return freeze(self.setting.base.astype(self.dtype, copy=False))

    @cached_property
    def values(self) -> AnyArray:
        """(L,): the tables in the dtype of q, kept for the next question."""
        values = self.setting.factors.log_potentials
        if values.dtype == self.dtype:
            return values
        key = ("mean_field values", np.dtype(self.dtype).name)
        return self.setting.graph.plans.get_for(key, values, lambda: freeze(recycled.copy_array(values, self.dtype)))

    def _common_size(self) -> int:
        """K where all variables have K states and all linked factors are tables of two or all are Potts, else 0."""
        factors, kinds = self.setting.factors, self.setting.factors.kinds[self.linked]
        sizes, arities = np.diff(factors.state_offsets), np.diff(factors.scope_offsets)
        alike = (sizes == sizes[0]).all() and len(kinds) > 0 and ((kinds == TABLE).all() or (kinds == POTTS).all())
        return int(sizes[0]) if alike and (arities[self.linked] == 2).all() else 0

    def _schedule(self) -> Schedule:
        factors, compile = self.setting.factors, self.setting.compile
        colours = self.setting.graph.plans.get("colours", lambda: freeze(colours_of(*factors[:3], compile=compile)))
        return make_schedule(factors, colours, self.linked, merged=self.size != 2)

    def _general_kernel(self) -> Callable[..., None]:
        factors, plan = self.setting.factors._replace(log_potentials=self.values), self.schedule
        kernel = kernel_of(make_sweep, int(self.hard), compile=self.setting.compile)
        fixed = (factors, plan.order, plan.first, plan.factor, plan.axis, self.base)
        return lambda *task: kernel(*fixed, *task)

    def _pair_kernel(self) -> Callable[..., None] | None:
        """The kernel of pairwise factors of one size; None where they are of other kinds, or too few."""
        factors, plan, n = self.setting.factors, self.schedule, self.size
        worthwhile = self.setting.compile and plan.work >= (WORTH_PAIRS if n == 2 else WORTHWHILE)
        if not (worthwhile and 2 <= n <= MAX_CONSTANT and not self.hard):
            return None
        if n == 2:
            binary, fields = kernel_of(make_binary_sweep, compile=True), self._fields()
            return lambda *task: binary(*fields, *task)
        numbers = factors.table_of_factor
        source, table = self.setting.graph.plans.get_for("mean_field pairs", numbers, self._pairs)
        if self._is_potts:
            kernel = kernel_of(make_potts_sweep, n, compile=True)
            fixed = (plan.order, plan.first, source, table, self.values, self.base)
            return lambda *task: kernel(*fixed, *task)
        return self._table_kernel(n, source, table)

    def _table_kernel(self, n: int, source: AnyArray, table: AnyArray) -> Callable[..., None]:
        """The kernel of tables of three states or more, which needs `told`."""
        plan, plans = self.schedule, self.setting.graph.plans
        number = plans.get("mean_field slots", self._slots)
        slot = number * n
        self.told = np.zeros((0, n * int(self.linked.sum())), self.dtype)
        if self._is_copied:
            values = plans.get_for("mean_field tables", self.setting.factors.log_potentials, self._in_order_of_reading)
            table = 2 * np.where(number < 0, -1 - number, number) * n * n + (table & 1)
        else:
            values = self.values
        heard = freeze(np.where(slot < 0, slot + n - 1, slot))
        fixed = (plan.order, plan.first, source, freeze(table), heard, values, self.base)
        sweep, tell = (kernel_of(make_table_sweep, n, only, compile=True) for only in (0, 1))

        def call(kernel: Callable[..., None]) -> Callable[..., None]:
            return lambda *task: kernel(*fixed, *task[:-1], self.told, task[-1])

        self.tell = call(tell)
        return call(sweep)

    @property
    def _is_copied(self) -> bool:
        """Whether tables have to be copied for their dtype, each for one factor."""
        tables = self.setting.factors.table_of_factor[self.linked]
        return self.dtype == np.float32 and len(np.unique(tables)) == len(tables)

    def _in_order_of_reading(self) -> AnyArray:
        """(F K K,): the tables of linked factors in the order of their slots, in the dtype of q."""
        factors, plan, size = self.setting.factors, self.schedule, self.size**2
        slot = self.setting.graph.plans.get("mean_field slots", self._slots)
        read = plan.factor[slot < 0]
        starts = freeze(factors.table_offsets[factors.table_of_factor[read]])
        out, kernel = recycled.empty((len(read) * size,), self.dtype), kernel_of(make_gathered, compile=True)
        n = max(1, CHUNK_WORK // size)

        def chunk(i: int) -> None:
            kernel(size, factors.log_potentials, starts, i * n, min((i + 1) * n, len(read)), out)

        run_chunks(chunk, -(-len(read) // n), self.n_threads)
        return freeze(out)

    def _slots(self) -> AnyArray:
        """(I,): the number of the factor, as tables are read, -1 minus that for the variable that goes last."""
        factors, plan = self.setting.factors, self.schedule
        place = invert(plan.order)
        other = factors.scope_variables[factors.scope_offsets[plan.factor] + 1 - plan.axis]
        last = place[other] < np.repeat(np.arange(len(plan.order)), np.diff(plan.first))
        number = np.zeros(len(self.linked), np.int64)
        number[plan.factor[last]] = np.arange(np.count_nonzero(last))
        return freeze(np.where(last, -1 - number[plan.factor], number[plan.factor]))

    def _pairs(self) -> tuple[AnyArray, AnyArray]:
        """Where the states of the other variable begin, and twice the place of the table plus the variable's axis."""
        factors, plan = self.setting.factors, self.schedule
        other = factors.scope_variables[factors.scope_offsets[plan.factor] + 1 - plan.axis]
        starts = factors.table_offsets[factors.table_of_factor[plan.factor]]
        table = 2 * (starts + 1 if self._is_potts else starts) + plan.axis  # c is the second of two levels
        dtype = index_type(max(2 * len(factors.log_potentials), int(factors.state_offsets[-1])))
        return freeze(factors.state_offsets[other].astype(dtype)), freeze(table.astype(dtype))

    @property
    def _is_potts(self) -> bool:
        return bool(self.setting.factors.kinds[self.linked][0] == POTTS)

    def _fields(self) -> tuple[AnyArray, ...]:
        """Order, first, source and coupling (I,) of each pair of binary variables, and bias (R, V) by position."""
        values, base = self.setting.factors.log_potentials, self.setting.base
        key = ("mean_field couplings", np.dtype(self.dtype).name)
        *pairs, told = self.setting.graph.plans.get_for(key, values, self._couplings)
        with np.errstate(invalid="ignore"):  # no state is left: NaN
            bias = (base[:, 1::2] - base[:, 0::2])[:, self.schedule.order] + told
        return (*pairs, freeze(bias.astype(self.dtype)))

    def _couplings(self) -> tuple[AnyArray, ...]:
        """Order, first, source and coupling (I,), and what the tables add to the bias (V,), by position."""
        values, plan = self.setting.factors.log_potentials, self.schedule
        source, table = self._pairs()
        place, axis = table >> 1, table & 1
        if self._is_potts:
            constant, coupling = values[place], -2.0 * values[place]
        else:
            constant = values[place + 2 - axis] - values[place]
            coupling = values[place + 3] - values[place + 1 + axis] - constant
        position = np.repeat(np.arange(len(plan.order)), np.diff(plan.first))
        told = np.bincount(position, constant, minlength=len(plan.order))
        order, first = (freeze(array.astype(source.dtype)) for array in (plan.order, plan.first))
        return order, first, source, freeze(coupling.astype(self.dtype)), told

    @property
    def bytes_of_row(self) -> int:
        """What a row of q takes, with what is kept beside it."""
        return int(self.setting.base.shape[1] + self.told.shape[1]) * np.dtype(self.dtype).itemsize

    @property
    def exact(self) -> bool:
        """Whether the best q is p itself."""
        return not self.linked.any()

    def add_rows(self, q: AnyArray) -> None:
        """Rows (A, S) that will be swept: those that were there already, as they are, and new ones."""
        new = np.arange(len(self.told), len(q))
        if self.tell is None or len(new) == 0:
            return
        told = np.zeros((len(q), self.told.shape[1]), self.dtype)
        told[: len(self.told)] = self.told
        self.told, tell, chunks, rows = told, self.tell, self.schedule.chunks, freeze(new)
        change = np.zeros((len(chunks) - 1, len(new)))

        def task(chunk: int) -> None:
            tell(int(chunks[chunk]), int(chunks[chunk + 1]), rows, 0, len(rows), q, change[chunk])

        run_chunks(task, len(chunks) - 1, self.n_threads)

    def sweep(self, q: AnyArray, rows: IntArray) -> Array:
        """One sweep of some rows of q, in their place; how much each changed."""
        plan, rows = self.schedule, freeze(rows)
        change = np.zeros((len(plan.chunks) - 1, len(rows)))
        size = max(1, CHUNK_WORK // plan.work) if len(plan.stages) == 1 else 1
        n_blocks = -(-len(rows) // size)

        for first, last in plan.stages:

            def task(number: int, first: int = first) -> None:
                chunk, row = first + number // n_blocks, number % n_blocks * size
                start, stop = int(plan.chunks[chunk]), int(plan.chunks[chunk + 1])
                self.kernel(start, stop, rows, row, min(row + size, len(rows)), q, change[chunk])

            run_chunks(task, (last - first) * n_blocks, self.n_threads)
        return np.asarray(change.max(axis=0, initial=0.0))

    def bounds(self, p: Array, rows: IntArray) -> Array:
        """The bound of each row, or instance of a union, from normalised p (R, S), which are these rows of q."""
        means = factor_means(self.setting, self.linked, p, self.n_threads)
        return self.setting.totals(variable_parts(self.setting, p), means)

    def factor_marginals(self, p: Array, pick: Pick, out: Array) -> None:
        """Writes factor marginals (R, .)."""
        multiply_marginals(self.setting.problem, p, np.ones(len(self.linked), np.bool_), out)

    def add_moments(self, p: Array, pick: Pick, out: Array) -> None:
        """Adds moments (L,) of the expanded problem."""
        add_product_moments(self.setting.problem, p, np.ones(len(self.linked), np.bool_), out)

    def state(self, pick: Pick) -> dict[str, Any]:
        """What defines q beside its marginals: the factors (F,) that it keeps, none."""
        return {"inside": freeze(np.zeros(len(self.linked), np.bool_))}
