"""Features that are the same everywhere: without a penalty nothing tells their weights from the intercept."""

from __future__ import annotations

from typing import Any

import numpy as np

from besag.errors import IdentifiabilityWarning, warn
from besag.text import shorten


def warn_of_constants(nodes: Any) -> None:
    """An IdentifiabilityWarning where columns of (T, D), dense or CSR, are constant."""
    low, high = (np.asarray(end.toarray() if hasattr(end, "toarray") else end).reshape(-1) for end in _ends(nodes))
    constant = np.flatnonzero(low == high)
    if len(constant):
        warn(
            IdentifiabilityWarning(
                f"these features are the same everywhere: {shorten([str(c) for c in constant.tolist()])}; without a "
                "penalty nothing tells their weights from the intercept: leave them out, or take l2 > 0"
            )
        )


def _ends(nodes: Any) -> tuple[Any, Any]:
    return nodes.min(axis=0), nodes.max(axis=0)
