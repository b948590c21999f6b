"""Structured factors: kinds of factors whose messages have a cheaper rule than their table.

    on label values      potts, truncated_linear, truncated_quadratic    O(K) a message instead of O(K^2)
    on places            displacement; parts_model, place_of             O(K) to O(K sqrt(K)) a message
    on many variables    count, any_of, all_of, parity, robust_potts     O(n) to O(n^2) a factor instead of O(K^n)
    of a child           noisy_or, noisy_and, noisy_max                  O(n) a factor, as a CPT of n parents

A kind stands where a table may stand: `pairwise` of a builder, a factor of `markov_network`, the basis of a Template.
Only its weights are stored. docs/factors.md says how to write another one.

>>> import besag
>>> model = besag.grid((2, 2), 8, pairwise=besag.factors.truncated_linear(8, 3), weights=0.5)
>>> float(model.energy({"0,0": "0", "0,1": "1", "1,0": "7", "1,1": "7"}))
3.5
"""

from besag.model.parts import parts_model, place_of
from besag.model.structured.counts import all_of, any_of, count, parity
from besag.model.structured.displacement import displacement
from besag.model.structured.noisy import noisy_and, noisy_max, noisy_or
from besag.model.structured.potts import potts
from besag.model.structured.robust import robust_potts
from besag.model.structured.truncated import truncated_linear, truncated_quadratic

__all__ = [
    "all_of",
    "any_of",
    "count",
    "displacement",
    "noisy_and",
    "noisy_max",
    "noisy_or",
    "parity",
    "parts_model",
    "place_of",
    "potts",
    "robust_potts",
    "truncated_linear",
    "truncated_quadratic",
]
