"""Evidence for a Spec: states, allowed states and likelihoods, each row possible in the model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tests.ways.models import ROWS, Spec
from tests.ways.truth import Truth


def with_evidence(spec: Spec) -> Spec:
    """The Spec with ROWS rows of evidence, the first of them empty.

    In a third of all models every row observes the same variables, and in a third all observations are states.
    """
    rng = np.random.default_rng([spec.seed, 1])
    possible = np.argwhere(Truth(spec).logs > -np.inf)
    share = float(rng.choice([0.2, 0.4, 0.6, 0.8, 1.0]))
    same = np.flatnonzero(rng.random(len(spec.names)) < share) if rng.random() < 0.35 else None
    forms = ["state"] if rng.random() < 0.35 else ["state", "state", "list", "likelihood"]
    rows: list[dict[str, Any]] = [{}]
    for _ in range(ROWS - 1):
        codes = possible[rng.integers(len(possible))]
        seen = np.flatnonzero(rng.random(len(codes)) < share) if same is None else same
        rows.append({spec.names[v]: _value(rng, str(rng.choice(forms)), spec.states[v], codes[v]) for v in seen})
    return replace(spec, rows=tuple(rows))


def _value(rng: np.random.Generator, form: str, states: tuple[str, ...], code: int) -> Any:
    """Evidence on one variable that allows a state; a list never allows all of them, which would say nothing."""
    if form == "list" and len(states) > 1:
        kept = rng.random(len(states)) < 0.5
        kept[code], kept[(code + 1) % len(states)] = True, False
        return [list, tuple, set][rng.integers(3)]([s for s, keep in zip(states, kept, strict=True) if keep])
    if form == "likelihood":
        weights = rng.choice([0.0, 1e-3, 0.25, 1.0, 3.5], size=len(states))
        weights[code] = weights[code] or 0.5
        return weights if rng.random() < 0.2 else dict(zip(states, weights.tolist(), strict=True))
    state = states[code]
    return int(state) if state.lstrip("-").isdecimal() and rng.random() < 0.5 else state


def frame_of(spec: Spec, rows: tuple[dict[str, Any], ...]) -> pd.DataFrame:
    """Rows of evidence as a frame: what a row leaves open is missing, and arrays are dicts."""
    names = [name for name in spec.names if any(name in row for row in rows)]
    columns = {name: [in_a_cell(spec, name, row.get(name, np.nan)) for row in rows] for name in names}
    return pd.DataFrame(columns, index=pd.Index([f"row {3 * i}" for i in range(len(rows))]))


def in_a_cell(spec: Spec, name: str, value: Any) -> Any:
    """A value as a frame and JSON take it: sets and tuples as lists, arrays as dicts."""
    if isinstance(value, np.ndarray):
        return dict(zip(spec.states[spec.names.index(name)], value.tolist(), strict=True))
    return sorted(value) if isinstance(value, (set, tuple)) else value
