"""Probabilities of joint states by the chain rule, for engines whose log Z is not exact.

    log p(y_1 .. y_n | e) = sum_i log p(y_i | e, y_1 .. y_(i-1))

Each factor is a marginal under evidence, so the joint states sum to one whatever the engine is and wherever it was
stopped. Two log Z with an error each have a difference that may be anything. Callers give the variables in the order of
the model, so that an answer does not depend on the order in which they were asked for.

    items   n variables          codes (R, n): their states, -1 where one is not asked for
    rows    (R,): the row of evidence, among B, that each row of codes belongs to
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.graph.evidence import Evidence
from besag.infer.auto.engine import Auto
from besag.infer.engine import Engine, Want, check_wants
from besag.infer.iterate import Clock
from besag.infer.result import Result
from besag.query.conflict import refuse_impossible
from besag.query.run import Options, engine_from, question, warn_unconverged

if TYPE_CHECKING:
    from besag.model.model import Model

LEAST_SECONDS = 1e-3
VARIABLES: frozenset[Want] = frozenset({"variables"})


def chain(
    model: Model, base: Evidence, items: IntArray, codes: IntArray, rows: IntArray, options: Options
) -> tuple[Array, Result]:
    """log p of each row of codes, (R,), and what the engine answers to the evidence alone."""
    work = _Questions(model, base, options, [_prefixes(rows, codes[:, :i]) for i in range(max(len(items), 1))])
    first = work.ask_first()
    total = np.zeros(len(codes))
    for i, v in enumerate(items.tolist()):
        asked, known = codes[:, i] >= 0, base.observed[rows, v]
        total[asked & (known >= 0) & (known != codes[:, i])] = -np.inf
        asked &= (known < 0) & (total > -np.inf)
        if asked.any():
            p, place = (first.probabilities, rows) if i == 0 else work.ask(items[:i], i, asked)
            assert p is not None
            with np.errstate(divide="ignore"):
                total[asked] += np.log(p[place[asked], model.variables.state_offsets[v] + codes[asked, i]])
    work.warn()
    return total, first


def _prefixes(rows: IntArray, codes: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows (U, 1 + i) of evidence with the states so far, and which one each row of codes has, (R,)."""
    distinct, place = np.unique(np.column_stack([rows, codes]), axis=0, return_inverse=True)
    return distinct, place.reshape(-1)


class _Questions:
    """The questions of one chain: one engine, one clock, one warning."""

    def __init__(
        self, model: Model, base: Evidence, options: Options, prefixes: list[tuple[IntArray, IntArray]]
    ) -> None:
        self.model, self.base, self.options, self.prefixes = model, base, options, prefixes
        self.engine: Engine = engine_from(options)
        self.clock = Clock(options.get("time_limit"))
        self.results: list[Result] = []

    def ask_first(self) -> Result:
        """The answer without any of the states; EvidenceError where the evidence is impossible."""
        check_wants(self.engine, VARIABLES)
        want: frozenset[Want] = VARIABLES | (self.engine.capabilities.wants & {"log_partition"})
        result = self._infer(self.base, want, 0, self.options)
        refuse_impossible(self.model, self.engine, self.base, result)
        if isinstance(self.engine, Auto) and result.bound != "exact":
            from besag.infer.auto.approximate import ask_again  # imports every approximate engine

            largest = int(np.argmax([len(distinct) for distinct, _ in self.prefixes]))
            share = self._share(largest)
            self.engine = ask_again(result, self.model.problem.with_evidence(self.base), share, self.engine)
        return result

    def ask(self, items: IntArray, i: int, asked: BoolArray) -> tuple[Array, IntArray]:
        """Marginals (U, S) under the evidence and states of some items, and the row among them of each row of codes."""
        distinct, place = self.prefixes[i]
        used, where = np.unique(place[asked], return_inverse=True)
        place = np.zeros(len(asked), np.int64)
        place[asked] = where
        distinct = distinct[used]
        observed = self.base.observed[distinct[:, 0]]
        observed[:, items] = np.where(distinct[:, 1:] >= 0, distinct[:, 1:], observed[:, items])
        weights = self.base.log_weights
        if weights is not None and len(weights) > 1:
            weights = weights[distinct[:, 0]]
        result = self._infer(Evidence(observed, weights, batched=True), VARIABLES, i, {**self.options, "init": None})
        assert result.probabilities is not None
        return result.probabilities, place

    def _infer(self, evidence: Evidence, want: frozenset[Want], i: int, options: Options) -> Result:
        """The answer to question i; after Ctrl-C there is no further one, hence no answer to the whole."""
        timed: Options = {**options, "time_limit": self._share(i)}
        result = question(self.model, self.engine, evidence, timed)(want)
        if result.diagnostics.get("stopped") == "interrupted" and i + 1 < len(self.prefixes):
            raise KeyboardInterrupt
        self.results.append(result)
        return result

    def _share(self, i: int) -> float | None:
        """The seconds for question i, by the number of its rows among those that are left."""
        if self.options.get("time_limit") is None:
            return None
        sizes = [len(distinct) for distinct, _ in self.prefixes]
        return max(self.clock.left * sizes[i] / sum(sizes[i:]), LEAST_SECONDS)

    def warn(self) -> None:
        """One ConvergenceWarning at the most."""
        stopped = (result for result in self.results if not result.diagnostics["converged"])
        warn_unconverged(next(stopped, self.results[0]))
