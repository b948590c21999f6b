"""The structure of a Bayesian network from complete data, one file a method.

Read `task` first: what a method gets and gives. `learn` is the way in, `constraints` what a structure must have,
`criteria` what is made as high as possible, `scores` and `counter` how families are scored, each counted once. `moves`
is what searches over DAGs share. A new method is a file with a frozen dataclass, and a line in METHODS.
"""

from besag.learn.networks.structure.learn import LearnedStructure, learn_structure

__all__ = ["LearnedStructure", "learn_structure"]
