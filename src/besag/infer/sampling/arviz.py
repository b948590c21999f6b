"""Draws for ArviZ, whose plots and summaries understand chains: an InferenceData, or from ArviZ 1 on a DataTree.

The group `posterior` has each variable by name with axes (chain, draw), as codes of states. Needs the extra `arviz`.
"""

from __future__ import annotations

from typing import Any

from besag.errors import CapabilityError, EvidenceError, require
from besag.infer.result import Result


def to_arviz(result: Result) -> Any:
    """The draws of a Result by chain; they are drawn anew if it has none."""
    if result.batched or result.graph.n_instances > 1:
        raise EvidenceError("to_arviz takes a Result of one row of evidence and one instance")
    n_chains = result.diagnostics.get("n_chains")
    if result.sampled is None and n_chains is not None and result.infer_again is not None:
        result = result.infer_again(frozenset({"samples"}))
    if n_chains is None or result.sampled is None:
        raise CapabilityError("to_arviz needs the draws of chains; engine 'gibbs' has them")
    require("arviz", "arviz", "to_arviz")
    import arviz

    n_draws = result.samples.shape[0] // n_chains
    draws = result.samples[: n_draws * n_chains].reshape(n_draws, n_chains, -1).swapaxes(0, 1)
    posterior = {name: draws[:, :, v] for v, name in enumerate(result.keys())}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior})
    return arviz.from_dict(posterior=posterior)
