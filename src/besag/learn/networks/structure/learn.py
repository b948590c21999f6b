"""`learn_structure`: from columns of codes to a graph.

Columns are put into an order of their own first, by entropy, number of states and name, so that the answer does not
depend on the order in which they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.errors import CapabilityError, DataError
from besag.graph.directed.pdag import PDAG, Edge, number_of
from besag.infer.iterate import Clock
from besag.learn.networks.structure.constraints import Edges, read_constraints
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import CRITERIA, Criterion
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.task import (
    OnSearchStep,
    Outcome,
    SearchProgress,
    SearchStep,
    StructureMethod,
    Task,
    run_method,
)
from besag.markup import make_card, make_table
from besag.registry import is_number, is_whole

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 40  # variables of a print-out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedStructure:
    """A graph from data.

    graph: what the method found, a DAG, or a PDAG for `pc`. parents: those of each variable in a DAG of it, ascending.
    score: of that DAG by the criterion. rows: the steps. stopped: converged, time_limit or interrupted.
    """

    graph: PDAG
    parents: tuple[tuple[int, ...], ...]
    score: float
    rows: tuple[SearchStep, ...]
    stopped: str

    def __repr__(self) -> str:
        return f"LearnedStructure({self.graph!r}, score={self.score:.6g}, stopped={self.stopped!r})"

    def _repr_html_(self) -> str:
        names = self.graph.names
        rows = [(names[v], ", ".join(names[p] for p in above)) for v, above in enumerate(self.parents[:SHOWN])]
        left = len(names) - len(rows)
        facts = (f"score {self.score:.6g}", f"stopped: {self.stopped}")
        more = f"... and {left} more" if left else ""
        return make_card(f"structure of {len(names)} variables", facts, make_table(("variable", "parents"), rows, more))

    @property
    def edges(self) -> list[Edge]:
        """(parent, child) by name."""
        names = self.graph.names
        return [(names[p], names[child]) for child, above in enumerate(self.parents) for p in above]

    @property
    def cpdag(self) -> PDAG:
        """What stands for all DAGs of the same score, where the criterion does not tell them apart."""
        return self.graph.cpdag() if self.graph.is_dag else self.graph

    @property
    def trace(self) -> pd.DataFrame:
        """Columns iteration, seconds, value, move."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(SearchStep._fields))


def learn_structure(
    codes: AnyArray | Sequence[AnyArray],
    cardinalities: Any,
    weights: Array | None = None,
    *,
    names: Iterable[str] | None = None,
    method: str | StructureMethod = "hill_climb",
    criterion: str | Criterion = "bic",
    required: Edges = (),
    forbidden: Edges = (),
    tiers: Iterable[Iterable[Any]] = (),
    partial: Any = None,
    max_parents: int | None = None,
    max_entries: float | None = None,
    target: str | int | None = None,
    random_state: int = 0,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    n_threads: int | None = None,
    progress: bool = False,
    on_step: OnSearchStep | None = None,
) -> LearnedStructure:
    """The structure of a Bayesian network from V columns of codes (N,), or a matrix (V, N) of them.

    method and criterion: see METHODS and CRITERIA. required, forbidden, tiers, partial, max_parents, max_entries: see
    `constraints`. target: the class, of `tan` and `naive`. random_state: a seed. on_step: is called with each step.

    >>> import numpy as np
    >>> a = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 20, np.uint8)
    >>> found = learn_structure([a, a, np.roll(a, 2)], [2, 2, 2], names=["A", "B", "C"])
    >>> found.cpdag
    PDAG(A - B)
    """
    check_search(time_limit, random_state)
    clock, sizes, chosen = Clock(time_limit), np.asarray(cardinalities, np.int64), METHODS.read(method)
    known = tuple(str(i) for i in range(len(sizes))) if names is None else tuple(map(str, names))
    columns = read_columns(codes, sizes, known, incomplete=getattr(chosen, "takes_missing", False))
    given = check_weights(weights, columns.shape[1])
    shown = SearchProgress(METHODS.text_of(chosen), on_step) if progress else None
    limits = read_constraints(known, sizes, required, forbidden, tiers, partial, max_parents, max_entries)
    order = own_order(columns, sizes, given, known)
    counter = Counter(columns[order], sizes[order], given, memory_limit=memory_limit, n_threads=n_threads)
    task = Task(
        names=tuple(known[v] for v in order),
        counter=counter,
        criterion=CRITERIA.read(criterion),
        constraints=limits.ordered(order),
        target=None if target is None else order.tolist().index(number_of(known, target, "target")),
        seed=random_state,
        clock=clock,
        on_step=shown or on_step,
    )
    found = run_method(chosen, task)
    if shown is not None:
        shown.end()
    return _answer(task, found, known, order)


def check_search(time_limit: object, random_state: object) -> None:
    """CapabilityError where they are none."""
    if time_limit is not None and not (is_number(time_limit) and time_limit >= 0):  # type: ignore[operator]
        raise CapabilityError(f"time_limit must be a number of seconds from 0 on, got {time_limit!r}")
    if not (is_whole(random_state) and random_state >= 0):  # type: ignore[operator]
        raise CapabilityError(f"random_state must be a whole number from 0 on, got {random_state!r}")


def _answer(task: Task, found: Outcome, names: tuple[str, ...], order: IntArray) -> LearnedStructure:
    """In the order of the columns."""
    drawn = PDAG(task.names, found.matrix)
    dag = drawn.extension(strict=False)
    parents = [tuple(sorted(int(order[p]) for p in above)) for above in dag.parents]
    back = np.argsort(order)
    score = task.scores.total(dag.parents)
    return LearnedStructure(drawn.over(names), tuple(parents[v] for v in back), score, tuple(task.rows), found.stopped)


def read_columns(
    codes: AnyArray | Sequence[AnyArray], sizes: IntArray, names: Sequence[str], *, incomplete: bool = False
) -> AnyArray:
    """Codes as one matrix (V, N) of the smallest unsigned type; DataError where one is missing, unless it may be."""
    if len(codes) == 0 or len(codes) != len(sizes) or len(names) != len(sizes):
        raise DataError(
            f"expected a column for each of {len(sizes)} cardinalities and {len(names)} names, got {len(codes)}"
        )
    if len(set(names)) < len(names):
        raise DataError("two columns have one name; rename one of them")
    columns = [np.asarray(column) for column in codes]
    if {column.shape for column in columns} != {(len(columns[0]),)}:
        raise DataError("columns must be one-dimensional and of one length")
    if len(columns[0]) == 0:
        raise DataError("the data have no rows: a structure is learned from at least one")
    for v, column in enumerate(columns):
        if not np.issubdtype(column.dtype, np.integer):
            raise DataError(f"column {names[v]!r}: codes must be whole numbers, got {column.dtype}", column=names[v])
        if not incomplete and (column.min() < 0 or column.max() >= sizes[v]):
            raise DataError(
                f"column {names[v]!r} has missing cells, or codes that are none of its {sizes[v]} states; drop these "
                'rows, frame.dropna(), or take the method "structural_em"',
                column=names[v],
            )
        if incomplete and ((column < 0) | (column >= sizes[v])).all():
            raise DataError(f"column {names[v]!r} has no value in any row; drop it", column=names[v])
    kind = np.min_scalar_type(int(sizes.max()) - (0 if incomplete else 1))
    if incomplete:  # the largest K stands for a missing cell
        columns = [np.where((c < 0) | (c >= k), sizes.max(), c) for c, k in zip(columns, sizes.tolist(), strict=True)]
    return np.ascontiguousarray(np.stack([column.astype(kind, copy=False) for column in columns]))


def check_weights(weights: Array | None, n_rows: int) -> Array | None:
    """Weights of rows as floats; ModelError where they are none."""
    if weights is None:
        return None
    given = np.asarray(weights, np.float64)
    if given.shape != (n_rows,) or not np.isfinite(given).all() or (given < 0).any() or given.sum() <= 0:
        raise DataError(f"weights must be {n_rows} numbers from 0 on, not all 0")
    return given


def own_order(columns: AnyArray, sizes: IntArray, weights: Array | None, names: Sequence[str]) -> IntArray:
    """An order of columns that does not depend on how they come: by falling entropy, number of states, name."""
    keys = []
    for v, column in enumerate(columns):
        p = np.bincount(column, weights, minlength=int(sizes[v]))
        p = np.sort(p[p > 0]) / p.sum()
        keys.append((round(float((p * np.log(p)).sum()), 9), int(sizes[v]), names[v]))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
