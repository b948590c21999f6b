"""One question to several engines: compare."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from besag.infer.engine import ENGINES, Engine
from besag.infer.result import Result
from besag.query.run import Options, engine_from, evidence_for
from besag.query.verbs import marginals

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model


def compare(
    model: Model, engines: Sequence[str | Engine] | str | Engine, evidence: Any = None, **options: Unpack[Options]
) -> pd.DataFrame:
    """Engines, or one of them, side by side on one question: log Z, bound, largest marginal error, seconds, converged.

    The error is against the first engine that is exact; NaN where there is none, and where an engine gives no log Z.

    >>> import besag
    >>> besag.compare(besag.data.bundled("sprinkler"), ["brute", "exact"])["bound"].tolist()
    ['exact', 'exact']
    """
    import pandas as pd

    listed: list[Any] = list(engines) if isinstance(engines, Sequence) and not isinstance(engines, str) else [engines]
    for engine in listed:  # before the first of them runs
        engine_from(Options({**options, "engine": engine}))
    rows, answers, read = [], [], evidence_for(model, evidence)
    for engine in listed:
        began = time.perf_counter()
        result = marginals(model, None, read, Options({**options, "engine": engine}))
        seconds = time.perf_counter() - began
        text = engine if isinstance(engine, str) else ENGINES.text_of(engine)
        answers.append(result)
        log_z = float("nan") if result.log_partitions is None else result.log_partition
        rows.append((text, log_z, result.bound, seconds, result.diagnostics["converged"]))
    frame = pd.DataFrame(rows, columns=["engine", "log_partition", "bound", "seconds", "converged"]).set_index("engine")
    exact = next((r for r in answers if r.bound == "exact"), None)
    frame.insert(2, "error", [_error(r, exact) for r in answers])
    return frame


def _error(result: Result, exact: Result | None) -> float:
    if exact is None or exact.probabilities is None or result.probabilities is None:
        return float("nan")
    return float(np.abs(result.probabilities - exact.probabilities).max())
