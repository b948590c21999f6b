"""Which factors the marginals of some targets need.

Barren. A conditional distribution p(c | parents) sums to one over c. Where c is in no other factor, has no evidence and
is not asked for, summing it out leaves nothing:

    sum_c p(c | parents) prod over other factors  =  prod over other factors

so that c and its factor can be left out, and after them perhaps a parent, and so on. The rest gives the same marginals
of the targets and the same log Z; a child left out is already summed out, so its states must not be counted again. This
holds for sums only: the largest p(c | parents) depends on the parents.

Separated. With the observed variables taken out the factor graph falls into parts. Those without a target multiply Z by
a number, 0 where their evidence is impossible, and do not change the marginals of the targets.

    needed, connected (F,)     flags of factors        targets     variables, or None for all of them
"""

from __future__ import annotations

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.graph.problem import Problem
from besag.graph.pruned import with_uniform_children


def find_relevant(problem: Problem, targets: IntArray | None) -> BoolArray:
    """(F,): the factors that the marginals of the targets and log Z need, the barren ones left out."""
    needed = np.ones(problem.graph.n_factors, np.bool_)
    if targets is not None and problem.children is not None:
        kept = _has_evidence(problem)
        kept[targets] = True
        needed[_barren(problem, problem.children, kept)] = False
    return needed


def without_barren(problem: Problem) -> Problem:
    """The problem with uniform barren children, which depend on nothing: it has the same log Z."""
    used = find_relevant(problem, np.empty(0, np.int64))
    if used.all() or problem.levelled or problem.graph.n_instances > 1 or problem.children is None:
        return problem
    return with_uniform_children(problem, used)


def _has_evidence(problem: Problem) -> BoolArray:
    """(V,): observed in some row, or with log-weights that are not all 0."""
    evidence = problem.evidence
    known = (evidence.observed >= 0).any(axis=0)
    if evidence.log_weights is not None:
        weighted = (evidence.log_weights != 0).any(axis=0)
        known |= np.logical_or.reduceat(weighted, problem.graph.state_offsets[:-1])
    return np.asarray(known)


def _barren(problem: Problem, children: IntArray, kept: BoolArray) -> list[int]:
    """Factors whose child is not kept and is in no other factor, repeatedly until there are no more."""
    graph = problem.graph
    conditional = np.flatnonzero(children >= 0)
    own = np.full(graph.n_variables, -1)  # two factors of one child: neither is barren while the other is there
    own[children[conditional]] = conditional
    own[kept] = -1
    waiting: list[int] = np.flatnonzero((own >= 0) & (graph.degrees == 1)).tolist()
    own_factor, n_factors = own.tolist(), graph.degrees.tolist()
    offsets, variables = graph.scope_offsets.tolist(), graph.scope_variables.tolist()
    barren = []
    while waiting:
        f = own_factor[waiting.pop()]
        barren.append(f)
        for v in variables[offsets[f] : offsets[f + 1]]:
            n_factors[v] -= 1
            if n_factors[v] == 1 and own_factor[v] >= 0:
                waiting.append(v)
    return barren


def find_separated(problem: Problem, factors_mask: BoolArray, targets: IntArray | None) -> BoolArray:
    """(F,): those of the factors of a mask that reach a target without passing a variable observed in every row."""
    graph = problem.graph
    free = ~np.asarray((problem.evidence.observed >= 0).all(axis=0))
    asked = np.flatnonzero(free) if targets is None else targets[free[targets]]
    part = _parts(problem, factors_mask, free)
    reached = np.zeros(graph.n_variables, np.bool_)
    reached[part[asked]] = True
    touches = (free & reached[part])[graph.scope_variables]
    factor = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_offsets))
    connected = np.zeros(graph.n_factors, np.bool_)
    connected[factor[touches]] = True
    return connected & factors_mask


def _parts(problem: Problem, factors_mask: BoolArray, free: BoolArray) -> IntArray:
    """(V,): a variable that stands for the part of each, the free variables of a factor of the mask being joined."""
    graph = problem.graph
    above, is_free = list(range(graph.n_variables)), free.tolist()
    offsets, variables = graph.scope_offsets.tolist(), graph.scope_variables.tolist()
    for f in np.flatnonzero(factors_mask).tolist():
        root = -1
        for v in variables[offsets[f] : offsets[f + 1]]:
            if is_free[v]:
                while above[v] != v:
                    above[v] = v = above[above[v]]
                if root < 0:
                    root = v
                above[v] = root
    for v in range(len(above)):
        while above[v] != above[above[v]]:
            above[v] = above[above[v]]
    return np.array(above, np.int64)
