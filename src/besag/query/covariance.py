"""The covariance of the sufficient statistics: the Hessian of log Z, 002 (21).

    Cov(phi) = E[phi phi^T] - E[phi] E[phi]^T,        phi(y) = sum_f phi_f(y_Sf), (P,)

With a_fc (P,) the statistics of factor f in configuration c,

    E[phi phi^T] = sum over f, c of  p(y_Sf = c)  a_fc  E[phi | y_Sf = c]^T

in which the conditional expectations come from a batch, a row of evidence for each cell (f, c) of all factors. With C
cells, A (C, P), sparse, has the a_fc as its rows; the marginals (R, C) of the cells in R rows, times A, are the
expectations.

A sampler's answer is the covariance of phi at its S draws, an estimate. Its error is that of the mean of the products
of deviations, by the means of BATCHES batches of successive draws of each chain (besag.infer.sampling.means).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import IntArray
from besag.errors import EvidenceError, TooLargeError
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.graph import Graph
from besag.infer.engine import Engine, Want
from besag.infer.iterate import Clock, clear_interrupts
from besag.infer.result import Result, factor_offsets
from besag.model.template import Inputs, Template
from besag.query.draws import at_draws, distinct_rows, draw_many
from besag.query.estimate import ArrayEstimate
from besag.query.run import Options, check_options, engine_from, generator_for, run_engine

if TYPE_CHECKING:
    from besag.model.model import Model

MAX_CELLS = 2**15  # each is a row of evidence
MAX_PARAMETERS = 2**13  # 512 MiB of covariance
CHUNK = 2**23  # marginals of cells at a time
BATCHES = 8  # of each chain
SAMPLES = "engine='gibbs' estimates it by samples"
FEW = 16  # cells whose time tells how long all of them take
CELLS: frozenset[Want] = frozenset({"log_partition", "factors"})


def covariance(model: Model, evidence: Any, options: Options) -> ArrayEstimate:
    """Cov(phi) under p(y | evidence), (P, P)."""
    read = read_evidence(model.variables, evidence)
    if read.batched:
        raise EvidenceError("covariance takes one row of evidence, a dict")
    check_options(options)
    engine, clock = engine_from(options), Clock(options.get("time_limit"))
    size = model.layout.n_parameters
    if size > MAX_PARAMETERS:
        raise TooLargeError(f"the covariance has {size} x {size} numbers; the limit is {MAX_PARAMETERS} parameters")
    if engine.capabilities.bound == "estimate" and "samples" in engine.capabilities.wants:
        return _sampled(model, draw_many(model, engine, read, options), clock)
    return _propagated(model, engine, read, options, clock)


def _propagated(model: Model, engine: Engine, read: Evidence, options: Options, clock: Clock) -> ArrayEstimate:
    """By a row of evidence for each cell."""
    offsets, size = factor_offsets(model.graph), model.layout.n_parameters
    if offsets[-1] > MAX_CELLS:
        raise TooLargeError(
            f"the covariance takes a propagation for each of {offsets[-1]} table entries; at most {MAX_CELLS} are "
            f"taken; {SAMPLES}"
        )
    first = run_engine(model, engine, read, CELLS, options)
    p, bound = first.factor_marginals, first.bound
    assert p is not None
    of_cells = statistics_of_cells(model.graph, model.inputs)
    mean = p[0] @ of_cells
    second = np.zeros((size, size))
    for cells in _parts(np.flatnonzero(p[0] > 0), max(1, CHUNK // max(int(offsets[-1]), 1)), clock):
        rows = model.problem.with_evidence(_clamped(model, read, offsets, cells))
        rng, limit = generator_for(engine, CELLS, options), clock.left if clock.end < np.inf else None
        with clear_interrupts():
            marginals = engine.infer(rows, CELLS, rng=rng, time_limit=limit).factor_marginals
        weighted = of_cells[cells].multiply(p[0][cells][:, None]).tocsr()
        second += weighted.T @ (marginals @ of_cells)
    centred = second - np.outer(mean, mean)
    exact = bound == "exact"
    return ArrayEstimate((centred + centred.T) / 2, 0.0 if exact else None, "exact" if exact else "estimate")


def _sampled(model: Model, result: Result, clock: Clock) -> ArrayEstimate:
    """By the draws of chains."""
    codes, which = distinct_rows(result.samples)
    phi = at_draws((model.graph.moments(row, inputs=model.inputs) for row in codes), which, clock, "covariance")
    phi -= phi.mean(axis=0)
    value = phi.T @ phi / max(len(phi) - 1, 1)
    n_chains = result.diagnostics["n_chains"]
    length = len(phi) // n_chains // BATCHES
    if length == 0:
        return ArrayEstimate(value, None, "estimate")
    by_chain = phi[: length * BATCHES * n_chains].reshape(BATCHES, length, n_chains, -1)
    squares, n_batches = np.zeros(value.shape), BATCHES * n_chains
    for batch in by_chain.swapaxes(1, 2).reshape(n_batches, length, -1):
        squares += (batch.T @ batch / length - value) ** 2
    return ArrayEstimate(value, np.sqrt(squares / (n_batches * (n_batches - 1))), "estimate")


def _parts(cells: IntArray, step: int, clock: Clock) -> Iterator[IntArray]:
    """The cells in parts; TooLargeError where the first FEW show that the time does not suffice for all."""
    began, start = clock.now(), 0
    while start < len(cells):
        stop = start + (min(FEW, step) if start == 0 and clock.end < np.inf else step)
        yield cells[start:stop]
        start = min(stop, len(cells))
        seconds = (clock.now() - began) / start * (len(cells) - start)
        if seconds > max(clock.left, 0.0):
            raise TooLargeError(
                f"the covariance takes a propagation for each of {len(cells)} table entries, about {seconds:.2g} s "
                f"more, and time_limit leaves {max(clock.left, 0.0):.2g} s; give it more time, or {SAMPLES}",
                seconds=seconds,
            )


def _clamped(model: Model, evidence: Evidence, offsets: IntArray, cells: IntArray) -> Evidence:
    """The evidence with, in each row, the variables of one factor at the configuration of one cell."""
    observed = np.repeat(evidence.observed, len(cells), axis=0)
    factors = np.searchsorted(offsets, cells, side="right") - 1
    for f in np.unique(factors).tolist():
        rows, scope = np.flatnonzero(factors == f), model.graph.scope(f)
        shape = tuple(model.variables.cardinalities[scope].tolist())
        observed[rows[:, None], scope] = np.stack(np.unravel_index(cells[rows] - offsets[f], shape), axis=1)
    return Evidence(observed, evidence.log_weights, batched=True)


def statistics_of_cells(graph: Graph, inputs: Mapping[str, Inputs]) -> Any:
    """A (C, P): the statistics of each cell of each factor, x_f (x) basis[:, c], as the Graph numbers them."""
    from scipy.sparse import csr_array, hstack, vstack

    parts, size = [], graph.layout.n_parameters
    for block in graph.blocks:
        template, where = block.template, graph.layout[block.template.name]
        own = _statistics_of_block(template, inputs.get(template.name, block.inputs), len(block.scopes))
        n = own.shape[0]
        parts.append(hstack([csr_array((n, where.start)), own, csr_array((n, size - where.stop))], format="csr"))
    return csr_array(vstack(parts, format="csr")) if parts else csr_array((0, size))


def _statistics_of_block(template: Template, inputs: Inputs, n_factors: int) -> Any:
    """(F cells, parameters of the template)."""
    from scipy.sparse import csr_array, kron

    table = template.table_basis()
    if inputs is None:
        given: Any = csr_array(np.ones((n_factors, 1)))
    elif inputs.ndim == 1:
        given = csr_array((np.ones(n_factors), inputs, np.arange(n_factors + 1)), (n_factors, template.n_inputs))
    else:
        given = csr_array(inputs, dtype=np.float64)
    full = csr_array(kron(given, csr_array(table.T), format="csr"))
    if template.pattern is None:
        return full
    return full[:, template.pattern.rows * template.n_basis + template.pattern.columns]
