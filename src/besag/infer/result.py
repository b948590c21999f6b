"""Result: what every engine returns; a field that was not asked for says how to ask.

Arrays are kept flat, in the order of the Graph:

    log_partition (N,) or (B,)     probabilities (B, S)      factor_marginals (B, sum of table sizes)
    moments (L,)                   labels (B, k, V), best first, energies (B, k) or (N, k)
    samples (B, n, V)              state: what an iterative engine needs to go on from here (`init=`)

A Result that has the diagnostics of an engine is looked at where it is made (`besag.infer.valid`), each array once.

A user sees them by name: r["A"] (K,), or (B, K) for a batch; r.array (V, K), (H, W, K) for a grid. In a union r[i] is
instance i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray, Rebuilt, concatenate, freeze, offsets_of
from besag.errors import CapabilityError, ModelError
from besag.graph.graph import Graph
from besag.infer.valid import check_energies, check_log_partitions, check_marginals

if TYPE_CHECKING:
    import pandas as pd

CALLS = {
    "log_partition": "model.log_partition() or model.marginals()",
    "variables": "model.marginals()",
    "factors": "model.marginals(), then r.factor(i),",
    "moments": "model.moments()",
    "map": "model.map()",
    "samples": "model.sample(n)",
    "messages": "model.marginals(trace=True) with an engine that sends messages, tree, junction_tree or bp,",
    "trace": "trace=True with an iterative engine",
}


ARRAYS = (
    "log_partitions",
    "probabilities",
    "factor_marginals",
    "table_moments",
    "codes",
    "energies",
    "energy_bounds",
    "sampled",
)


class Diagnostics(Mapping[str, Any]):
    """How an answer came about: engine, reason, converged, iterations, seconds, ...; by key or by attribute."""

    def __init__(self, **entries: Any) -> None:
        self._entries = entries

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or key not in self._entries:
            raise AttributeError(f"diagnostics have no entry {key!r}; there are {', '.join(self._entries)}")
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(f'{k}={v!r}' for k, v in self._entries.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _diagnostics, (self._entries,)

    def extend(self, **entries: Any) -> Diagnostics:
        """The same with more entries."""
        return Diagnostics(**{**self._entries, **entries})


def _diagnostics(entries: dict[str, Any]) -> Diagnostics:
    return Diagnostics(**entries)


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Result(Rebuilt):
    """An answer and how good it is; `besag.infer.result` has the shapes of its arrays."""

    graph: Graph
    bound: str
    diagnostics: Diagnostics
    batched: bool = False
    index: Any = None
    log_partitions: Array | None = None
    bounds: tuple[Array, Array] | None = None
    probabilities: Array | None = None
    factor_marginals: Array | None = None
    table_moments: Array | None = None
    codes: IntArray | None = None
    energies: Array | None = None
    energy_bounds: Array | None = None
    sampled: IntArray | None = None
    message_log: Any = None
    trace_log: Any = None
    state: Mapping[str, Any] | None = None
    targets: tuple[str, ...] | None = None
    infer_again: Callable[[frozenset[Any]], Result] | None = None
    log_z_again: Array | None = None  # log Z where it was asked for later
    checked: tuple[Any, ...] = (None, None, None, None)  # the arrays that have been looked at

    def __post_init__(self) -> None:
        for name in ARRAYS:
            value = getattr(self, name)
            if value is not None and value.flags.writeable:
                object.__setattr__(self, name, freeze(value))
        if "engine" in self.diagnostics:
            self._check()

    def _check(self) -> None:
        """NumericalError where what has not been looked at yet is no answer."""
        log_z, variables, factors, energies = self.checked
        if self.log_partitions is not None and (self.log_partitions is not log_z or self.bounds is not None):
            check_log_partitions(self, self.log_partitions)
        if self.probabilities is not None and self.probabilities is not variables:
            check_marginals(self, self.probabilities, self.graph.state_offsets, of_factors=False)
        if self.factor_marginals is not None and self.factor_marginals is not factors:
            check_marginals(self, self.factor_marginals, factor_offsets(self.graph), of_factors=True)
        if self.energies is not None and self.energies is not energies:
            check_energies(self, self.energies)
        now = (self.log_partitions, self.probabilities, self.factor_marginals, self.energies)
        object.__setattr__(self, "checked", now)

    def _asked(self, value: Any, want: str) -> Any:
        if value is None:
            self._refuse_what_the_engine_cannot(want)
            hint = "; r.assignment has the states of the best labelling" if self.codes is not None else ""
            raise CapabilityError(f"{want} was not asked for in this call; {CALLS[want]} gives it{hint}")
        return value

    def _refuse_what_the_engine_cannot(self, want: str) -> None:
        from besag.infer.engine import ENGINES, SHOWS

        name = str(self.diagnostics.get("engine"))
        if name in ENGINES and want not in ENGINES.find(name).capabilities.wants:
            if want in SHOWS:
                raise CapabilityError(f"engine {name!r} cannot give {want}; {CALLS[want]} gives it")
            able = [other for other in ENGINES if want in ENGINES.find(other).capabilities.wants]
            raise CapabilityError(f"engine {name!r} cannot give {want}; {', '.join(able)} can")

    @property
    def _many(self) -> bool:
        return self.batched or self.graph.n_instances > 1

    def _number(self, values: Array) -> Any:
        return values if self._many else float(values[0])

    @property
    def log_partition(self) -> Any:
        """log Z: a number, (B,) for a batch, (N,) for a union; for a Bayesian network log P(evidence)."""
        return self._number(self._asked(self.log_partitions, "log_partition"))

    @property
    def log_partition_bounds(self) -> tuple[Any, Any]:
        """(low, high): both log Z where it is exact, infinite where nothing is known."""
        low, high = self.bound_arrays()
        return self._number(low), self._number(high)

    def bound_arrays(self) -> tuple[Array, Array]:
        """The same as arrays, (B,) or (N,)."""
        values = self._asked(self.log_partitions, "log_partition")
        if self.bounds is not None:
            return self.bounds
        infinite = np.full(values.shape, np.inf)
        low = values if self.bound in ("exact", "lower") else -infinite
        return low, values if self.bound in ("exact", "upper") else infinite

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, (int, np.integer)):
            return self.instance(int(key))
        if self.graph.n_instances > 1 and self.graph.variables.names.find(key) is None:
            raise ModelError(f"this is a union of {self.graph.n_instances} instances; take r[i][{key!r}]")
        v = self.graph.variables.index(key)
        if self.targets is not None and key not in self.targets:
            raise CapabilityError(f"{key!r} was not among the targets {list(self.targets)}; ask for it")
        offsets = self.graph.state_offsets
        values = self._asked(self.probabilities, "variables")[:, offsets[v] : offsets[v + 1]]
        return np.array(values if self.batched else values[0])

    def __contains__(self, key: object) -> bool:
        if self.targets is not None:
            return key in self.targets
        return isinstance(key, str) and self.graph.variables.names.find(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """The names of the variables that were asked for."""
        if self.targets is not None:
            return list(self.targets)
        return self.graph.variables.names_at(range(self.graph.n_variables))

    def standard_error(self, name: str) -> Array:
        """The Monte Carlo standard error of r[name], state by state, where the marginals are means over samples."""
        errors = None if self.state is None else self.state.get("standard_errors")
        if errors is None:
            raise CapabilityError(f"engine {self.diagnostics['engine']!r} does not sample; gibbs has standard errors")
        v = self.graph.variables.index(name)
        values = errors[:, self.graph.state_offsets[v] : self.graph.state_offsets[v + 1]]
        return np.array(values if self.batched else values[0])

    @property
    def array(self) -> Array:
        """All marginals, (V, K) or (H, W, K) for a grid, with B in front for a batch; cardinalities must be equal."""
        values = self._asked(self.probabilities, "variables")
        if self.targets is not None:
            parts = [np.atleast_2d(self[name]) for name in self.targets]
            if len({part.shape[1] for part in parts}) != 1:
                raise ModelError("r.array needs targets of equal cardinality; use r[name] or r.to_frame()")
            return np.stack(parts, axis=1) if self.batched else np.concatenate(parts)
        k = self.graph.variables.common_cardinality
        if k is None:
            raise ModelError("r.array needs variables of equal cardinality; use r[name] or r.to_frame()")
        return np.asarray(values.reshape(*self._rows(len(values)), *self._places(), k))

    @property
    def labels(self) -> IntArray:
        """The MAP labelling as int codes: (V,), (H, W) for a grid, with B in front for a batch."""
        codes = self._asked(self.codes, "map")
        return np.asarray(codes[:, 0].reshape(*self._rows(len(codes)), *self._places()))

    def _places(self) -> tuple[int, ...]:
        return self.graph.shape or (self.graph.n_variables,)

    def _rows(self, n: int) -> tuple[int, ...]:
        return (n,) if self.batched else ()

    @property
    def solutions(self) -> list[Any]:
        """[(assignment, energy), ...] of possible labellings, best first; a list of such lists for a batch."""
        codes, energies = self._asked(self.codes, "map"), self.energies
        assert energies is not None
        if self.graph.n_instances > 1:
            energies = energies.sum(axis=0, keepdims=True)
        rows = [
            [(self._assignment(c), float(e)) for c, e in zip(row, values, strict=True) if e < np.inf]
            for row, values in zip(codes, energies, strict=True)
        ]
        return rows if self.batched else rows[0]

    def _assignment(self, codes: IntArray) -> dict[str, str]:
        variables = self.graph.variables
        return {variables.names[v]: variables.states(v)[code] for v, code in enumerate(codes.tolist()) if code >= 0}

    @property
    def assignment(self) -> Any:
        """{name: state} of least energy; a list of them for a batch."""
        codes = self._asked(self.codes, "map")
        found = [self._assignment(row[0]) for row in codes]
        return found if self.batched else found[0]

    @property
    def energy(self) -> Any:
        """H of the assignment: a number, (B,) or (N,)."""
        self._asked(self.codes, "map")
        assert self.energies is not None
        return self._number(self.energies[:, 0])

    @property
    def energy_bound(self) -> Any:
        """A lower bound on the least energy; the energy itself where the answer is optimal."""
        self._asked(self.codes, "map")
        if self.energy_bounds is None:
            assert self.energies is not None
            exact = self.bound == "exact"
            return self._number(self.energies[:, 0] if exact else np.full(len(self.energies), -np.inf))
        return self._number(self.energy_bounds)

    @property
    def gap(self) -> Any:
        """energy - energy_bound."""
        return self.energy - self.energy_bound

    @property
    def optimal(self) -> Any:
        """Whether the assignment is proven to have the least energy."""
        energy = np.asarray(self.energy)
        closed = np.isfinite(energy) & (np.asarray(self.gap) <= 1e-9 * np.maximum(1.0, np.abs(energy)))
        return closed if self._many else bool(closed)

    @property
    def log_probability(self) -> Any:
        """log p(assignment | evidence) = -H - log Z, 004's confidence: a number, (B,) or (N,).

        Where the call did not give log Z, its engine is asked again; where that is an estimate, so is this.
        """
        self._asked(self.codes, "map")
        log_z = self.log_z_again if self.log_partitions is None else self.log_partitions
        if log_z is None and self.infer_again is not None:
            log_z = self.infer_again(frozenset({"log_partition"})).log_partitions
            object.__setattr__(self, "log_z_again", log_z)
        assert self.energies is not None
        values = -self.energies[:, 0] - self._asked(log_z, "log_partition")
        return self._number(np.minimum(values, 0.0))

    @property
    def samples(self) -> IntArray:
        """Draws as int codes, (n, V), or (B, n, V) for a batch."""
        drawn = self._asked(self.sampled, "samples")
        return np.asarray(drawn if self.batched else drawn[0])

    @property
    def moments(self) -> Array:
        """Expected statistics of every number that the Problem holds, (L,); model.moments() has them by parameter."""
        return np.asarray(self._asked(self.table_moments, "moments"))

    @property
    def messages(self) -> pd.DataFrame:
        """All messages in the order in which they were sent: step, source, target, state, value."""
        if self.message_log is None and self.batched:
            raise CapabilityError("messages are kept for one row of evidence, a dict; this is a Result of a batch")
        log: pd.DataFrame = self._asked(self.message_log, "messages").to_frame()
        return log

    @property
    def trace(self) -> pd.DataFrame:
        """A row for each iteration: iteration, seconds, value, bound, residual."""
        log: pd.DataFrame = self._asked(self.trace_log, "trace").to_frame()
        return log

    def factor(self, key: int | str | tuple[str, ...]) -> Array:
        """The marginal of a factor, by number in the model's order, name or scope: K1..Kn, B in front for a batch."""
        if self.factor_marginals is None and self.infer_again is not None:
            again = self.infer_again(frozenset({"factors"}))
            object.__setattr__(self, "factor_marginals", again.factor_marginals)
        values = self._asked(self.factor_marginals, "factors")
        f = self._factor_number(key)
        sizes = factor_offsets(self.graph)
        shape = self.graph.variables.cardinalities[self.graph.scope(f)]
        return np.array(values[:, sizes[f] : sizes[f + 1]].reshape(*self._rows(len(values)), *shape))

    @property
    def approximation(self) -> Any:
        """The distribution q that an approximate answer stands for, as a Model; a list of them for a batch.

        Of mean_field, and of bp and trw where the factors form no cycle; see `besag.query.approximation`.
        """
        return self._question().approximation(self)

    def kl(self, log_partition: Any = None) -> Any:
        """KL(q || p) = log Z - bound, 001, of the q of mean_field: a number, (B,) for a batch.

        log_partition: log Z where it is known; else it is made by exact inference, or TooLargeError.
        """
        return self._question().kl(self, log_partition)

    def _question(self) -> Any:
        if not hasattr(self.infer_again, "approximation"):
            raise CapabilityError("only the Result of a verb has this, as of model.marginals(engine='mean_field')")
        return self.infer_again

    def _factor_number(self, key: Any) -> int:
        graph = self.graph
        if isinstance(key, (tuple, list)):
            key = f"f({','.join(map(str, key))})"
        if isinstance(key, str):
            for f in range(graph.n_factors):
                if key in (graph.factor_name(f), graph.scope_name(f)):
                    return f
            known = ", ".join(graph.factor_name(int(f)) for f in graph.factor_order[:6])
            raise ModelError(f"no factor is named {key!r}; there are {known}{', ...' if graph.n_factors > 6 else ''}")
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)) or not 0 <= key < graph.n_factors:
            raise ModelError(f"factors are numbered 0 to {graph.n_factors - 1}, got {key}")
        return int(graph.factor_order[key])

    def instance(self, i: int) -> Result:
        """Instance i of a union, as a Result of its own."""
        graph = self.graph
        if not 0 <= i < graph.n_instances:
            hint = f"; the variable is r['{i}']" if graph.variables.names.find(str(i)) is not None else ""
            if self.batched:
                hint += "; a row of evidence of a batch is r.to_frame(name).loc[label]"
            raise ModelError(f"r[i] is instance i of a union, from 0 to {graph.n_instances - 1}, got {i}{hint}")
        if graph.n_instances == 1:
            return self
        low, high = graph.instance_offsets[i : i + 2]
        states = slice(int(graph.state_offsets[low]), int(graph.state_offsets[high]))
        codes, sampled = self.codes, self.sampled
        return replace(
            self,
            graph=graph.take([i]),
            log_partitions=_pick(self.log_partitions, i),
            log_z_again=_pick(self.log_z_again, i),
            bounds=None if self.bounds is None else (self.bounds[0][i : i + 1], self.bounds[1][i : i + 1]),
            probabilities=None if self.probabilities is None else self.probabilities[:, states],
            factor_marginals=None if self.factor_marginals is None else self._instance_factors(i),
            table_moments=None,
            codes=None if codes is None else codes[:, :, low:high],
            energies=_pick(self.energies, i),
            energy_bounds=_pick(self.energy_bounds, i),
            sampled=None if sampled is None else sampled[:, :, low:high],
            message_log=None,
            state=None,
            infer_again=None if self.infer_again is None else partial(_again, self.infer_again, i),
        )

    def _instance_factors(self, i: int) -> Array:
        assert self.factor_marginals is not None
        keep = np.flatnonzero(self.graph.factor_instances == i)
        sizes = factor_offsets(self.graph)
        parts = [self.factor_marginals[:, sizes[f] : sizes[f + 1]] for f in keep]
        return np.concatenate(parts, axis=1) if parts else self.factor_marginals[:, :0]

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """Marginals as a DataFrame: rows (variable, state); a batch has a row for each of its rows."""
        from besag.infer.frames import result_frame

        return result_frame(self, name)

    def to_arviz(self) -> Any:
        """The draws of an engine that runs chains, for ArviZ; see `besag.infer.sampling.arviz`."""
        from besag.infer.sampling.arviz import to_arviz

        return to_arviz(self)

    def __repr__(self) -> str:
        from besag.infer.frames import result_line

        return result_line(self)

    def __str__(self) -> str:
        from besag.infer.frames import result_table

        return result_table(self)

    def _repr_html_(self) -> str:
        from besag.infer.frames import result_html

        return result_html(self)


def _again(infer: Callable[[frozenset[Any]], Result], i: int, want: frozenset[Any]) -> Result:
    return infer(want).instance(i)


def _pick(values: Array | None, i: int) -> Array | None:
    return None if values is None else values[i : i + 1]


def factor_offsets(graph: Graph) -> IntArray:
    """(F + 1,): where the marginal of each factor begins in Result.factor_marginals."""

    def make() -> IntArray:
        sizes = [np.full(len(block.scopes), int(np.prod(block.template.shape))) for block in graph.blocks]
        return offsets_of(concatenate(sizes, np.int64))

    return graph.plans.get("factor_offsets", make)
