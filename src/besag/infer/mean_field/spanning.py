"""The spanning family of mean field, the "tree approximation" of 001: q is any distribution on a spanning tree T.

    q(y) = prod over roots r of q(y_r)  times  prod over edges (p, c) of T of q(y_c | y_p)

T need not hold a factor of the model (`besag.infer.mean_field.tree_choice`). With scopes S_f anywhere in the tree,

    bound(q) = sum_v E_q[base_v] + sum_f E_q[log-potential_f] - sum_r E_q[ln q(y_r)] - sum_c E_q[ln q(y_c | y_p)]

is linear in each conditional table but for its own entropy, as q(y) is a product of them. So with all others fixed the
best one is known in closed form. Let below(c) be the variables of the subtree of c, and

    W_c(b)    = base_c(b) + sum of E_q[log-potential_f | y_c = b] over factors f whose topmost variable is c
                + sum over children d of c, sum_k q(y_d = k | y_c = b) (W_d(k) - ln q(k | b))
    X_c(a, b) = sum of E_q[log-potential_f | y_p = a, y_c = b] over factors with variables both in below(c) and not
    q(y_c = b | y_p = a) propto exp(W_c(b) + X_c(a, b)),    q(y_r) propto exp(W_r),    bound = sum_r ln sum exp(W_r)

where the last holds once q(y_r) is the best one. A sweep goes through the variables in the order of a depth-first
search, backwards: what X_c needs of the part of the tree that has not been done, the distribution of ancestors given
y_p, is as it was, and what it needs of the part that has been done is up to date. So every update is exact coordinate
ascent, and no sweep lowers the bound. Where every factor lies on an edge of T, one sweep is the upward pass of
sum-product, and the bound is log Z. An edge that is marked as independent keeps q(y_c | y_p) = q(y_c), whose best
logits are those above, averaged by q(y_p).

E_q[log-potential_f | place] contracts the table of f with the transition matrices on the paths from its variables to
the place (`besag.infer.mean_field.kernels.spanning`). A factor whose variables are joined by m edges of T takes m
contractions a sweep, each of m products of its table with a matrix: this is for trees in which factors are not long
paths apart, as in grids of up to some thousand variables. Tables that would grow beyond the memory limit on their way,
where a factor of many variables passes through variables of many states, are refused.

q, down, up, pairs: see the kernels. Each row of evidence has the tree that its strengths ask for; with a warm start,
the tree that it had; each further start, a random one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze, offsets_of
from besag.errors import TooLargeError
from besag.infer.iterate import Clock, refuse_late
from besag.infer.mean_field.kernels.spanning import TreeLinks, make_ascend, make_crossing, make_joints, make_settle
from besag.infer.mean_field.naive import Pick, find_linked
from besag.infer.mean_field.tree_choice import Strengths, TreeEdges, grow_tree, named_edges
from besag.infer.memory import count_linked, refuse
from besag.infer.prepared import Prepared
from besag.infer.products import add_product_moments, multiply_marginals
from besag.infer.result import Result, factor_offsets
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks

NAME = "mean_field[family=spanning_tree]"
SECONDS_A_LINK = 2e-6  # of choosing a tree and planning it
SECONDS_A_STEP, SECONDS_AN_ENTRY = 2e-7, 2e-9  # of a contraction
SECONDS_A_LOOK = 0.05  # of a sweep, between two looks at the clock


@dataclass(frozen=True, slots=True, eq=False)
class SpanningTree:
    """A rooted spanning forest of a problem; whole: whether every factor lies on an edge that q is free on."""

    links: TreeLinks
    top: IntArray  # (F,) the topmost variable of each linked factor
    whole: bool
    seconds: float  # of a sweep, compiled


def plan_tree(setting: Prepared, edges: list[tuple[int, int]], n_free: int, *, compile: bool) -> SpanningTree:
    """The forest of these edges, the first n_free of which q is free on."""
    factors, n = setting.factors, setting.graph.n_variables
    parents, order, depth, last, independent = _rooted(n, edges, n_free)
    numbers, top = freeze(np.flatnonzero(find_linked(setting))), np.zeros(len(factors.kinds), np.int64)
    scopes = (factors.scope_offsets, factors.scope_variables, numbers, parents, depth)
    kernel, counts = kernel_of(make_crossing, compile=compile), np.zeros(n, np.int64)
    total = kernel(*scopes, top, counts, np.zeros(0, np.int64))
    refuse("the paths of a spanning tree", 16 * total, setting.limit, "take family=tree or naive", least=8 * total)
    first, crossing = offsets_of(counts), np.zeros(total, np.int64)
    kernel(*scopes, top, first[:-1].copy(), crossing)
    inside = numbers[np.argsort(top[numbers], kind="stable")]
    sizes = np.diff(factors.state_offsets)
    links = TreeLinks(
        *(parents, order, freeze(np.argsort(order)), last, depth, independent),
        freeze(offsets_of(np.where(parents < 0, 0, sizes * sizes[parents]))),
        freeze(offsets_of(np.bincount(top[numbers], minlength=n))),
        freeze(inside),
        freeze(first),
        freeze(crossing),
    )
    crossed = np.bincount(crossing, minlength=len(factors.kinds))[numbers]
    arities = np.diff(factors.scope_offsets)[numbers]
    entries = np.diff(factors.table_offsets)[factors.table_of_factor[numbers]] * float(sizes.max(initial=1))
    seconds = float((crossed**2.0 * (SECONDS_A_STEP + SECONDS_AN_ENTRY * entries)).sum())
    whole = bool((crossed <= 1).all() and (arities <= 2).all() and not (independent & (counts > 0)).any())
    return SpanningTree(links, freeze(top), whole, seconds)


def _rooted(n: int, edges: list[tuple[int, int]], n_free: int) -> tuple[Any, ...]:
    """Parents, depth-first order, depth, one past the last position below, and which edges are independent."""
    beside: list[list[tuple[int, bool]]] = [[] for _ in range(n)]
    for number, (u, v) in enumerate(edges):
        beside[u].append((v, number >= n_free))
        beside[v].append((u, number >= n_free))
    parents, depth, last = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
    independent, seen, order = np.zeros(n, np.bool_), np.zeros(n, np.bool_), list[int]()
    for root in range(n):
        stack = [] if seen[root] else [root]
        while stack:
            v = stack.pop()
            seen[v] = True
            order.append(v)
            for w, alone in sorted(beside[v]):
                if not seen[w]:
                    parents[w], depth[w], independent[w] = v, depth[v] + 1, alone
                    stack.append(w)
    last[order] = np.arange(1, n + 1)
    for v in reversed(order):
        if parents[v] >= 0:
            last[parents[v]] = max(last[parents[v]], last[v])
    return tuple(map(freeze, (parents, np.array(order, np.int64), depth, last, independent)))


class Conditionals:
    """q on its tree, in one row of evidence; see the kernels for the arrays."""

    def __init__(self, tree: SpanningTree, state_offsets: IntArray, q: AnyArray, down: Array | None) -> None:
        self.tree = tree
        n_entries, n_variables = int(tree.links.edge_offsets[-1]), len(tree.links.parents)
        self.down = np.zeros(n_entries) if down is None else np.array(down)
        self.up, self.pairs, self.own = np.zeros(n_entries), np.zeros(n_entries), np.zeros(n_variables)
        if down is None:
            for c in np.flatnonzero(tree.links.parents >= 0).tolist():
                start, stop = tree.links.edge_offsets[c : c + 2]
                own = q[state_offsets[c] : state_offsets[c + 1]]
                self.down[start:stop] = np.tile(own, (stop - start) // len(own))


class Spanning:
    """Distributions on spanning trees; arrays q (A, S) of marginals, row a of which has the evidence of row a mod R."""

    dtype: type[np.floating[Any]] = np.float64
    name = "spanning_tree"

    def __init__(
        self,
        setting: Prepared,
        edges: TreeEdges | None,
        n_starts: int,
        warm: Result | None,
        rng: np.random.Generator,
        n_threads: int | None,
        clock: Clock,
    ) -> None:
        self.setting, self.n_threads, self.clock = setting, n_threads, clock
        self.numbers = freeze(np.flatnonzero(find_linked(setting)))
        known = {} if warm is None or warm.state is None else warm.state
        self.warm: list[tuple[list[tuple[int, int]], int, Array]] = known.get("trees", []) if edges is None else []
        if len(self.warm) != setting.n_rows:
            self.warm = []
        n_links = count_linked(setting.graph) + setting.graph.n_variables
        refuse_late(NAME, SECONDS_A_LINK * n_links * n_starts * setting.n_rows, clock)
        self.trees = self._trees(edges, n_starts, rng)
        self.found: list[Conditionals] = []
        seconds = sum(tree.seconds for tree in self.trees)
        refuse_late(NAME, seconds, clock)
        self.compile = worth_compiling(seconds / SECONDS_A_STEP)
        self.ascend: Callable[..., int] = kernel_of(make_ascend, compile=self.compile)
        self.settle: Callable[..., float] = kernel_of(make_settle, compile=self.compile)
        self.joints: Callable[..., None] = kernel_of(make_joints, compile=self.compile)

    def _trees(self, edges: TreeEdges | None, n_starts: int, rng: np.random.Generator) -> list[SpanningTree]:
        """Of each row of the first start, then of the next."""
        setting, n = self.setting, self.setting.graph.n_variables
        given = None if edges is None else named_edges(setting, edges)
        made: dict[Any, SpanningTree] = {}
        strengths = [Strengths(setting, base) for base in setting.base]
        trees = []
        for start in range(n_starts):
            for row, strength in enumerate(strengths):
                if given is not None:
                    grown = grow_tree(n, given, strength.order_edges())
                elif start == 0 and self.warm:
                    grown = self.warm[row][:2]
                else:
                    chosen = strength.order_edges(rng if start else None)
                    grown = grow_tree(n, chosen)
                key = (*grown[0], grown[1])
                if key not in made:
                    made[key] = plan_tree(setting, *grown, compile=setting.compile)
                trees.append(made[key])
        return trees

    @property
    def bytes_of_row(self) -> int:
        """What a row of q takes, with its conditional tables and a copy of some while a sweep is under way."""
        most = max(len(tree.links.crossing) + 4 * int(tree.links.edge_offsets[-1]) for tree in self.trees)
        return 8 * (most + 4 * int(self.setting.graph.state_offsets[-1]))

    @property
    def exact(self) -> bool:
        """Whether the best q is p itself."""
        return all(tree.whole for tree in self.trees)

    def add_rows(self, q: AnyArray) -> None:
        """Rows of q (A, S) beyond those known, on the trees of the first rows where there are more rows than trees."""
        known, offsets, new = len(self.found), self.setting.graph.state_offsets, []
        for a in range(known, len(q)):
            tree = self.trees[a if a < len(self.trees) else a % self.setting.n_rows]
            down = self.warm[a][2] if a < len(self.warm) else None
            new.append(Conditionals(tree, offsets, q[a], down))
            self.settle(tree.links, offsets, q[a].copy(), q[a], new[-1].down, new[-1].up, new[-1].pairs)
        run_chunks(lambda i: self._sweep(new[i], known + i, q[known + i], timed=False), len(new), self.n_threads)
        self.found += new

    def sweep(self, q: AnyArray, rows: IntArray) -> Array:
        """One sweep of some rows of q, in their place; how much each changed."""
        change = np.zeros(len(rows))

        def task(i: int) -> None:
            change[i] = self._sweep(self.found[rows[i]], int(rows[i]), q[rows[i]], timed=True)

        run_chunks(task, len(rows), self.n_threads)
        return change

    def _sweep(self, fit: Conditionals, a: int, q: Array, *, timed: bool) -> float:
        """One sweep of one row; one that is broken off has not been made."""
        setting, links = self.setting, fit.tree.links
        before, down, own = q.copy(), fit.down.copy(), fit.own.copy()
        told, n = np.array(setting.base[a % setting.n_rows]), len(links.order)
        n_parts = min(n, 1 + int(fit.tree.seconds / SECONDS_A_LOOK))
        most = max(setting.limit // 32, 1)
        try:
            for part in reversed(range(n_parts)):
                span = (n * part // n_parts, n * (part + 1) // n_parts)
                f = self.ascend(links, setting.factors, *span, 1, most, q, fit.down, fit.up, told, fit.own)
                if f >= 0:
                    raise TooLargeError(
                        f"{NAME}: {setting.graph.scope_name(f)} on its way through the tree "
                        f"would take tables of more than {most} entries; take family=tree or naive, or use more memory"
                    )
                if timed and part:
                    self.clock.look()
        except BaseException:
            q[:], fit.down[:], fit.own[:] = before, down, own
            raise
        return float(self.settle(links, setting.graph.state_offsets, before, q, fit.down, fit.up, fit.pairs))

    def bounds(self, p: Array, rows: IntArray) -> Array:
        """The bound of each row, or instance of a union."""
        return self.setting.totals(np.stack([self.found[a].own for a in rows]), None)

    def factor_marginals(self, p: Array, pick: Pick, out: Array) -> None:
        """Writes factor marginals (R, .)."""
        multiply_marginals(self.setting.problem, p, np.ones(len(self.setting.factors.kinds), np.bool_), out)
        self._write_joints(p, pick, out)

    def add_moments(self, p: Array, pick: Pick, out: Array) -> None:
        """Adds moments (L,) of the expanded problem."""
        setting, factors, graph = self.setting, self.setting.factors, self.setting.graph
        add_product_moments(setting.problem, p, ~find_linked(setting), out)
        sizes = np.diff(factors.table_offsets)[factors.table_of_factor[self.numbers]]
        starts, offsets = offsets_of(sizes), factor_offsets(graph)
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        source = np.repeat(offsets[self.numbers], sizes) + within
        target = np.repeat(factors.table_offsets[factors.table_of_factor[self.numbers]], sizes) + within
        by_row, by_factor = setting.problem.row_weights, setting.problem.factor_weights[self.numbers]
        for row in range(setting.n_rows):
            cells = np.zeros((1, int(offsets[-1])))
            self._write_joints(p[row : row + 1], pick, cells, row)
            out += by_row[row] * np.bincount(target, cells[0, source] * np.repeat(by_factor, sizes), len(out))

    def _write_joints(self, p: Array, pick: Pick, out: Array, first_row: int = 0) -> None:
        """Writes the marginals of linked factors where there is a labelling, for rows from first_row on."""
        setting, offsets = self.setting, freeze(factor_offsets(self.setting.graph))
        for i, (own, cells) in enumerate(zip(p, out, strict=True)):
            for start, chosen in self._chosen(pick, first_row + i):
                fit = self.found[start * setting.n_rows + first_row + i]
                self.joints(fit.tree.links, setting.factors, chosen, fit.tree.top, offsets, own, fit.down, cells)

    def _chosen(self, pick: Pick, row: int) -> list[tuple[int, IntArray]]:
        """The starts that a row is answered by, and the linked factors of the instances that have a labelling."""
        setting = self.setting
        if setting.graph.n_instances == 1:
            return [(int(pick.best[row]), self.numbers)] if setting.possible[row] else []
        of_factor = setting.graph.factor_instances[self.numbers]
        return [
            (start, freeze(self.numbers[(pick.best[of_factor] == start) & setting.possible[of_factor]]))
            for start in np.unique(pick.best).tolist()
        ]

    def state(self, pick: Pick) -> dict[str, Any]:
        """What continues from here, of each row: edges, how many q is free on, and the conditional tables."""
        if self.setting.graph.n_instances > 1:
            return {}
        chosen = [self.found[int(start) * self.setting.n_rows + row] for row, start in enumerate(pick.best)]
        return {"trees": [(*edges_of(fit.tree.links), freeze(np.array(fit.down))) for fit in chosen]}


def edges_of(links: TreeLinks) -> tuple[list[tuple[int, int]], int]:
    """The edges (parent, child) of a tree, those first that q is free on, and how many these are."""
    children = [c for c in links.order.tolist() if links.parents[c] >= 0]
    free = [c for c in children if not links.independent[c]]
    rest = [c for c in children if links.independent[c]]
    return [(int(links.parents[c]), c) for c in (*free, *rest)], len(free)
