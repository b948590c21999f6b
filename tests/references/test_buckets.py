"""The second exact engine against enumeration: small models with hard zeros, isolated variables and evidence."""

import numpy as np
from hypothesis import given
from numpy.testing import assert_allclose

from besag.model.model import Model
from tests.oracle import Enumeration
from tests.references.buckets import Buckets
from tests.strategies import examples, generators, models


@examples(60)
@given(model=models(), rng=generators())
def test_buckets(model: Model, rng: np.random.Generator) -> None:
    everything = Enumeration(model)
    codes = rng.choice(everything.labels[everything.log_weights > -np.inf])
    observed = rng.random(len(codes)) < 0.3
    evidence = {v.name: v.states[code] for v, code, seen in zip(model.variables, codes, observed, strict=True) if seen}
    buckets, oracle = Buckets(model, evidence), Enumeration(model, evidence)
    assert_allclose(buckets.log_z, oracle.log_z, rtol=1e-10, atol=1e-10)
    marginals = buckets.marginals()
    assert sorted(marginals) == np.flatnonzero(~observed).tolist()
    for v, values in marginals.items():
        assert_allclose(values, oracle.marginal(model.variables.names[v]), rtol=0, atol=1e-10)
