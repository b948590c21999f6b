"""The ways of asking for the best labelling that need not find it: what they say of their answers is true."""

import warnings
from collections.abc import Iterator

import numpy as np

from besag.errors import CapabilityError, ConvergenceWarning
from tests.ways.case import TOLERANCE, Case, Check, question

ENGINES = ("icm", "local_search", "trws", "dual", "anneal", "graph_cut", "alpha_expansion", "alpha_beta_swap", "bp")


@question
def ask_labelling_engines(case: Case) -> Iterator[Check]:
    """Energies are those of the labellings, bounds are below the least one, and what is called optimal has it."""
    row = case.spec.rows[case.rng.integers(len(case.spec.rows))]
    truth = case.truth(row)
    rounding = TOLERANCE * max(1.0, case.spec.largest) * max(1, len(case.spec.factors))
    for engine in ENGINES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                result = case.model.map(row, engine=engine)
            except CapabilityError:  # cuts serve some models only, and searches among hard zeros may find nothing
                continue
        asked = f"map({row}, {engine})"
        yield Check(f"{asked}: bound", result.energy_bound, truth.energies[0], rounding, at_most=True)
        if not np.isfinite(result.energy):  # none was found that the hard zeros allow
            continue
        found = truth.energy(case.codes(result.assignment))
        yield Check(f"{asked}: energy of the labelling", found, result.energy, rounding)
        yield Check(f"{asked}: not below the least", truth.energies[0], result.energy, rounding, at_most=True)
        if result.optimal:
            yield Check(f"{asked}: optimal", result.energy, truth.energies[0], rounding)
