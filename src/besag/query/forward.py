"""Many draws from a Bayesian network without evidence: `besag.infer.sampling.forward`, where that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray
from besag.query.run import Options, check_options
from besag.registry import is_whole

if TYPE_CHECKING:
    from besag.model.model import Model

FORWARD_CELLS = 100_000  # draws times variables from which it is worth other random numbers
HEEDED = {"engine", "seed", "n_threads", "memory_limit"}  # options


def forward_draws(model: Model, n: Any, evidence: Any, options: Options) -> AnyArray | None:
    """Codes (V, n) of many draws from a Bayesian network without evidence; None where that is not asked for."""
    if evidence is not None or set(options) - HEEDED or options.get("engine", "auto") not in ("auto", "exact"):
        return None
    if not is_whole(n) or n * len(model.variables) < FORWARD_CELLS or not model.is_bayesian_network:
        return None
    from besag.infer.sampling.forward import can_go_forward, forward_codes

    check_options(options, model)
    if not can_go_forward(model.problem):
        return None
    key = int(np.random.default_rng(options.get("seed", 0)).integers(2**62))
    limit = options.get("memory_limit")
    return forward_codes(model.problem, n, key, options.get("n_threads"), None if limit is None else int(limit))
