"""One instance under one row of evidence as a cost function network in whole numbers, in toulbar2's text format.

    cost of an entry = round(scale * (energy of the entry - least energy of its table))

so that for every labelling |cost / scale + constant - energy| <= error. Where all energies are decimal numbers of a few
digits, scale is a power of ten and error is rounding of floats alone; else scale is as large as a gap of CLOSED asks
for.
Hard zeros and states that are ruled out cost `top`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.map.labellings import CLOSED
from besag.infer.memory import refuse
from besag.infer.prepared import Prepared

MOST_DIGITS = 6  # of decimal numbers
LARGEST_TOTAL = 1e15  # of the costs of a labelling: toulbar2 counts to 5e17
BYTES_A_COST = 150  # the text, and what toulbar2 makes of it
FLOATS = 1e-15  # of what sums of floats may be wrong by, relative to their terms


class CostNetwork(NamedTuple):
    """The text, and how to read costs as energies; see the module."""

    text: str
    scale: float
    constant: float
    error: float

    def energy(self, cost: float) -> float:
        """No more than the energy of any labelling that costs so much."""
        return self.constant + cost / self.scale - self.error


def refuse_network(setting: Prepared) -> None:
    """TooLargeError where the network would not fit."""
    numbers = float(setting.graph.state_offsets[-1])
    numbers += sum(len(block.scopes) * float(math.prod(block.template.shape)) for block in setting.graph.blocks)
    refuse("the cost function network", BYTES_A_COST * numbers, setting.limit, "take engine='local_search'")


def make_network(
    setting: Prepared, row: int, instance: int, energy: float, *, below: bool, forbidden: Sequence[IntArray]
) -> CostNetwork:
    """The network of one instance under one row of evidence; setting: of a problem whose factors are tables.

    energy: of some labelling, inf where none is known; below: whether only labellings that are better are asked for.
    forbidden: labellings that are not.
    """
    terms = _Costs(setting, row, instance)
    scale = terms.scale(energy)
    costs, error = terms.costs(scale)
    total = sum(int(table[np.isfinite(table)].max(initial=0.0)) for table in costs) + 1
    constant = terms.constant
    if below and math.isfinite(energy):
        total = min(total, max(math.ceil((energy - constant + error) * scale), 0) + 1)
    return CostNetwork(terms.text(costs, total, forbidden), scale, constant, error)


class _Costs:
    """Scopes and energies of the unary and other factors of an instance, those of a table less its least one."""

    def __init__(self, setting: Prepared, row: int, instance: int) -> None:
        graph = setting.graph
        low, high = (int(v) for v in graph.instance_offsets[instance : instance + 2])
        self.sizes = graph.variables.cardinalities[low:high].tolist()
        offsets = graph.state_offsets[low : high + 1]
        self.scopes: list[list[int]] = [[v] for v in range(high - low)]
        self.tables: list[Array] = []  # distinct ones, flat; inf at hard zeros
        self.read: list[int] = list(range(high - low))
        for v in range(high - low):
            self.tables.append(-setting.base[row, offsets[v] : offsets[v + 1]])
        for number, block in enumerate(graph.blocks):
            mine = (block.scopes[:, 0] >= low) & (block.scopes[:, 0] < high)
            if len(block.template.shape) > 1 and mine.any():
                tables, readers = setting.problem.block_tables(number)
                self.read += (len(self.tables) + readers[mine]).tolist()
                self.scopes += (block.scopes[mine] - low).tolist()
                self.tables += list(-tables.reshape(len(tables), -1))
        finite = [table[np.isfinite(table)] for table in self.tables]
        least = [float(table.min(initial=math.inf)) for table in finite]
        self.least = [value if math.isfinite(value) else 0.0 for value in least]
        self.ranges = [float(table.max(initial=0.0) - value) if len(table) else 0.0
                       for table, value in zip(finite, self.least, strict=True)]  # fmt: skip
        self.constant = math.fsum(self.least[t] for t in self.read)
        self.magnitude = math.fsum(abs(self.least[t]) + self.ranges[t] for t in self.read)
        self.values = np.concatenate(finite) if finite else np.zeros(0)

    def scale(self, energy: float) -> float:
        """By what energies are multiplied."""
        for digits in range(MOST_DIGITS + 1):
            with np.errstate(over="ignore"):
                times = self.values * 10.0**digits
            if np.array_equal(np.rint(times) / 10.0**digits, self.values) and np.abs(times).max(initial=0) < 2.0**50:
                return 10.0**digits
        size = max(1.0, abs(energy)) if math.isfinite(energy) else 1.0
        most = LARGEST_TOTAL / max(1.0, math.fsum(self.ranges[t] for t in self.read))
        return min(4.0 * len(self.read) / (CLOSED * size), most)

    def costs(self, scale: float) -> tuple[list[Array], float]:
        """Whole numbers for the tables, inf at hard zeros, and how far the cost of a labelling is off, as an energy."""
        costs, errors = [], []
        for table, least in zip(self.tables, self.least, strict=True):
            exact = (table - least) * scale
            whole = np.rint(exact)
            known = np.isfinite(exact)
            errors.append(float(np.abs(whole[known] - exact[known]).max(initial=0.0)) / scale)
            costs.append(whole)
        error = math.fsum(errors[t] for t in self.read)
        return [costs[t] for t in self.read], error + FLOATS * self.magnitude

    def text(self, costs: list[Array], top: int, forbidden: Sequence[IntArray]) -> str:
        """The network in the format CFN."""
        variables = ",".join(f'"x{v}":{n}' for v, n in enumerate(self.sizes))
        functions = [
            f'"f{f}":{{"scope":[{",".join(f"{chr(34)}x{v}{chr(34)}" for v in scope)}],"costs":[{_words(table, top)}]}}'
            for f, (scope, table) in enumerate(zip(self.scopes, costs, strict=True))
        ]
        if forbidden:
            scope = ",".join(f'"x{v}"' for v in range(len(self.sizes)))
            entries = ",".join(f"{','.join(map(str, codes.tolist()))},{top}" for codes in forbidden)
            functions.append(f'"known":{{"scope":[{scope}],"defaultcost":0,"costs":[{entries}]}}')
        problem = json.dumps({"name": "besag", "mustbe": f"<{top}"})
        return f'{{"problem":{problem},\n"variables":{{{variables}}},\n"functions":{{\n{",".join(functions)}}}}}\n'


def _words(table: AnyArray, top: int) -> str:
    return ",".join(map(str, np.minimum(table, top).astype(np.int64).tolist()))
