"""Chains of a sampler: how the mean of each settles, and R-hat, which says whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from besag.errors import CapabilityError, ModelError
from besag.infer.result import Result
from besag.infer.sampling.diagnostics import r_hat
from besag.plot.style import FAINT, INK, SERIES, File, expect_result, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PANELS = 12


def draw_chains(result: Result, variables: Sequence[str] | None = None, path: File | None = None) -> Figure:
    """The probability of a state over the draws of each chain, a panel for each variable, with its R-hat.

    The state is the last one of the variable. variables: at most 12, the first six by default. Draws are made anew
    where the Result has none.

    >>> import besag.plot
    >>> model = besag.data.bundled("sprinkler")
    >>> figure = besag.plot.draw_chains(model.marginals(engine="gibbs[n_samples=4000]"), ["rain"])
    """
    n_chains = expect_result(result, 'model.marginals(engine="gibbs")').diagnostics.get("n_chains")
    if result.sampled is None and n_chains is not None and result.infer_again is not None:
        result = result.infer_again(frozenset({"samples"}))
    if n_chains is None or result.sampled is None or result.batched:
        raise CapabilityError("this needs the draws of chains for one row of evidence; engine 'gibbs' has them")
    names = list(result.keys())[:6] if variables is None else list(variables)
    if not 0 < len(names) <= MAX_PANELS:
        raise ModelError(f"a picture has 1 to {MAX_PANELS} variables, got {len(names)}")
    numbers = [result.graph.variables.index(name) for name in names]
    n_draws = len(result.samples) // n_chains
    draws = result.samples[: n_draws * n_chains].reshape(n_draws, n_chains, -1)
    last = result.graph.variables.cardinalities[numbers] - 1
    hits = (draws[:, :, numbers] == last).astype(np.float64)  # (n, C, T)
    means = np.cumsum(hits, axis=0) / np.arange(1, n_draws + 1)[:, None, None]
    agree = r_hat(np.ascontiguousarray(hits.transpose(2, 1, 0)))
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = new_figure(figsize=(3.2 * columns, 2.3 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    for t, (name, axes) in enumerate(zip(names, grid, strict=False)):
        for chain in range(n_chains):
            axes.plot(np.arange(1, n_draws + 1), means[:, chain, t], color=SERIES[chain % len(SERIES)], lw=1.0)
        state = result.graph.variables.states(numbers[t])[-1]
        axes.set_title(f"{name} = {state}, R-hat {agree[t]:.3f}", size=9, weight="bold", color=INK, loc="left")
        axes.set(ylim=(-0.02, 1.02))
        axes.set_xlabel("draw", size=8, color=FAINT)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    return write_figure(figure, path)
