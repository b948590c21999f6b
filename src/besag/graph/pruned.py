"""A Bayesian network in which some children are uniform and have no parents, which leaves log Z as it is."""

from __future__ import annotations

import numpy as np

from besag.arrays import BoolArray
from besag.graph.problem import Problem
from besag.graph.unfolded import ChainPart, graph_of, part_of, problem_of
from besag.model.template import Template


def with_uniform_children(problem: Problem, kept: BoolArray) -> Problem:
    """The problem with the factors that are kept (F,), and uniform ones for the children of the others."""
    assert problem.children is not None
    parts = []
    for number, block in enumerate(problem.graph.blocks):
        (tables, readers), own = problem.block_tables(number), kept[block.start : block.stop]
        part = part_of(problem, number)
        scopes, children = part.scopes[own], part.children[own]
        parts.append(part._replace(scopes=scopes, tables=tables, readers=readers[own], children=children))
    gone = problem.children[~kept]
    sizes = problem.graph.variables.cardinalities[gone]
    for n in np.unique(sizes).tolist():
        own_children = gone[sizes == n]
        uniform, nothing = np.full((1, n), -np.log(n)), np.zeros(len(own_children), np.int64)
        template = Template(f"uniform[{n}]", (n,))
        parts.append(ChainPart(template, own_children[:, None], uniform, nothing, nothing - 1))
    return problem_of(problem, graph_of(problem.graph, problem.graph.variables, parts), parts)
