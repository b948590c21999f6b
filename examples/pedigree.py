"""Genetics: who carries a recessive disease? A family of three generations, and what one affected child says of all.

Each person has two alleles, of which the disease needs both. A child gets one allele from each parent, at random:
Mendel's law is the table P(child | father, mother), the same for every child. Founders carry the allele as often as the
population does.
"""

from pathlib import Path

import numpy as np

import besag
import besag.plot

FREQUENCY = 0.02  # of the allele in the population
STATES = ["clear", "carrier", "affected"]  # none, one or two copies
FAMILY = {  # child: (father, mother); who is not a child is a founder
    "Ada": ("Otto", "Rosa"),
    "Carl": ("Otto", "Rosa"),
    "Dora": ("Carl", "Eva"),
    "Finn": ("Ada", "Georg"),
    "Kim": ("Finn", "Dora"),  # of two cousins
}

passes = np.array([0.0, 0.5, 1.0])  # the probability that a parent passes the allele on
f, m = passes[:, None], passes[None, :]
mendel = np.stack([(1 - f) * (1 - m), f * (1 - m) + (1 - f) * m, f * m], axis=-1)
q = FREQUENCY
founder = [(1 - q) ** 2, 2 * q * (1 - q), q**2]

people = list(dict.fromkeys([*(name for parents in FAMILY.values() for name in parents), *FAMILY]))
edges = [(parent, child) for child, parents in FAMILY.items() for parent in parents]
tables = {name: mendel if name in FAMILY else founder for name in people}
model = besag.bayesian_network(edges, dict.fromkeys(people, STATES), tables)

adults = {name: ["clear", "carrier"] for name in people if name != "Kim"}  # none of them is affected
before = model.marginals(evidence=adults)
after = model.marginals(evidence=adults | {"Kim": "affected"})
print("P(carrier)   before   Kim is affected")
for name in people:
    if name != "Kim":
        print(f"{name:12} {before[name][1]:.3f}    {after[name][1]:.3f}")

Path("out").mkdir(exist_ok=True)
besag.plot.draw_network(model, after, before=before, observed=["Kim"], path="out/pedigree.png")
print("out/pedigree.png shows the family")
