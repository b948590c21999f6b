"""UAI files from models, in the layout of the competitions' files; `besag.io.uai.read` has the grammar.

    MARKOV          BAYES if the model is a Bayesian network: the child is the last variable of its scope
    3
    2 2 3
    2
    1 0
    2 1 2

    2
     0.436 0.564

    6
     0.1 0.2 0.3 0.3 0.05 0.05

Factors keep the model's order. Structured factors are written as the tables that they stand for.
"""

from __future__ import annotations

from itertools import pairwise

from besag.io.shared.numbers import number_text, tables_of
from besag.model.model import Model


def write(model: Model) -> bytes:
    """The content of a UAI file; ModelError if a weight exceeds the range of doubles."""
    values, offsets, scopes, table_of_factor = tables_of(model)
    numbers, bounds = number_text(values), offsets.tolist()
    tables = [f"\n{end - start}\n {' '.join(numbers[start:end])}" for start, end in pairwise(bounds)]
    sizes = model.variables.cardinalities.tolist()
    lines = [
        "BAYES" if model.is_bayesian_network else "MARKOV",
        str(len(sizes)),
        " ".join(map(str, sizes)),
        str(len(scopes)),
        *(" ".join(map(str, [len(scope), *scope])) for scope in scopes),
        *(tables[table] for table in table_of_factor),
    ]
    return "\n".join([*lines, ""]).encode("ascii")
