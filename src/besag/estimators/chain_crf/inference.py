"""A chain conditional random field on arrays: templates, theta, and inference with both.

    H(x, y) = sum_t sum_{a in x_t} x_ta theta_state[a, y_t] + sum_t theta_transition[y_t, y_t+1] (+ theta_triple[...])

Parameters of attributes live on the (attribute, label) pairs of a Pattern. Log-potentials of a whole batch are one
sparse product; labellings, marginals and log Z of first-order chains go straight from there to a kernel, everything
else through a Graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from besag.arrays import LARGEST, Array, IntArray, Rebuilt, secure
from besag.data.attributes import Attributes, Features
from besag.data.chains import ChainTemplates, chain_graph, csr_inputs
from besag.errors import ModelError
from besag.estimators.chain_crf.schemes import Allowed
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.infer.chains.best import best_chains
from besag.infer.chains.marginals import chain_marginals, chain_partitions
from besag.infer.engine import ENGINES, Engine, Want
from besag.infer.result import Result
from besag.model.pattern import Pattern, ThetaColumns
from besag.model.template import Template

NO_PARAMETERS = Pattern(np.zeros(0, np.int64), np.zeros(0, np.int64))


def chain_templates(n_attributes: int, n_labels: int, pattern: Pattern, order: int, allowed: Allowed | None) -> Any:
    """The templates of a chain with these numbers of attributes and labels."""
    k = n_labels
    ends: list[Template | None] = [None, None]
    if allowed is not None:
        ends = [
            None if possible.all() else Template(name, (k,), support=possible, pattern=NO_PARAMETERS)
            for name, possible in (("begin", allowed.first), ("end", allowed.last))
        ]
    return ChainTemplates(
        Template("state", (k,), n_inputs=max(n_attributes, 1), pattern=pattern),
        Template("transition", (k, k), support=None if allowed is None else allowed.transitions),
        Template("triple", (k, k, k)) if order == 2 else None,
        *ends,
    )


def all_pairs(n_attributes: int, n_labels: int) -> Pattern:
    """Every (attribute, label) pair."""
    return Pattern(np.repeat(np.arange(n_attributes), n_labels), np.tile(np.arange(n_labels), n_attributes))


@dataclass(frozen=True, slots=True, eq=False)
class ChainModel(Rebuilt):
    """Classes (K,), attributes, templates and theta (P,)."""

    classes: tuple[Any, ...]
    attributes: Attributes
    templates: ChainTemplates
    theta: Array
    _rows: ThetaColumns | None = field(default=None, init=False)
    _transition: Array | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        layout = self.templates.layout()
        theta = secure(layout.check_theta(self.theta))
        object.__setattr__(self, "theta", theta)
        pattern = self.templates.state.pattern
        assert pattern is not None
        weights = np.negative(theta[layout["state"]])
        rows = pattern.prepared(weights, self.templates.state.n_inputs, self.n_labels)
        object.__setattr__(self, "_rows", rows)
        transition = np.negative(theta[layout["transition"]]).reshape(self.n_labels, self.n_labels)
        support = self.templates.transition.support
        object.__setattr__(
            self, "_transition", secure(transition if support is None else np.where(support, transition, -np.inf))
        )

    @property
    def n_labels(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def state_weights(self) -> Array:
        """(nnz,): the log-potentials of (attribute, label) pairs, in the order of the pattern."""
        return np.negative(self.theta[self.templates.layout()["state"]])

    @property
    def transition_weights(self) -> Array:
        """(K, K): log-potentials, -inf where a transition is ruled out."""
        assert self._transition is not None
        return self._transition

    def unary(self, features: Features) -> Array:
        """(T, K): the log-potentials of single labels."""
        return self._with_ends(self._products(features), features)

    def _products(self, features: Features) -> Array:
        assert self._rows is not None
        values = np.zeros(0) if features.values is None else features.values
        return self._rows.products(features.indptr, features.indices, values)

    def _with_ends(self, unary: Array, features: Features) -> Array:
        """unary, with -inf for labels that may not begin or end a sequence."""
        if self.templates.begin is not None or self.templates.end is not None:
            filled = features.lengths > 0
            _rule_out(unary, self.templates.begin, features.offsets[:-1][filled])
            _rule_out(unary, self.templates.end, features.offsets[1:][filled] - 1)
        return unary

    def best(self, features: Features, n_threads: int | None = None) -> IntArray:
        """(T,): the codes of the most probable labelling of each sequence."""
        if self.templates.triple is None:
            codes = best_chains(self.unary(features), self.transition_weights, features.offsets, n_threads)
        elif not features.lengths.any():
            return np.zeros(0, np.int64)
        else:
            found = self.infer(features, "map", n_threads=n_threads).codes
            assert found is not None
            codes = found[0, 0]
        if len(codes) and codes.min() < 0:
            n = int(np.searchsorted(features.offsets, int(np.argmin(codes)), side="right")) - 1
            raise ModelError(f"sequence {n} has no labelling that the constraints allow")
        return codes

    def marginals(self, features: Features, n_threads: int | None = None) -> Array:
        """(T, K): the probability of each label at each token."""
        if not features.lengths.any():
            return np.zeros((0, self.n_labels))
        if self.templates.triple is not None:
            found = self.infer(features, "variables", n_threads=n_threads).probabilities
            assert found is not None
            return found.reshape(-1, self.n_labels)
        unary = self._checked_unary(features)
        probabilities, log_z = chain_marginals(unary, self.transition_weights, features.offsets, None, n_threads)
        _refuse_impossible(log_z)
        return probabilities

    def log_partitions(self, features: Features, codes: IntArray | None = None, n_threads: int | None = None) -> Array:
        """(N,): log Z of each sequence, 0 without tokens; codes (T,): known labels, -1 = free.

        Without codes a sequence that has no labelling is an error; with them its log Z is -inf.
        """
        if self.templates.triple is None:
            unary = self._checked_unary(features)
            log_z = chain_partitions(unary, self.transition_weights, features.offsets, codes, n_threads)
            if codes is None:
                _refuse_impossible(log_z)
            return log_z
        log_z = np.zeros(len(features.lengths))
        if features.lengths.any():
            evidence = None if codes is None else Evidence(codes)
            found = self.infer(features, "log_partition", evidence=evidence, n_threads=n_threads).log_partitions
            log_z[features.lengths > 0] = found
        return log_z

    def _checked_unary(self, features: Features) -> Array:
        """As unary; ModelError if the log-potentials are too large to be added up."""
        with np.errstate(over="ignore", invalid="ignore"):
            unary = self._products(features)
        if not (unary.max(initial=0.0) <= LARGEST and unary.min(initial=0.0) >= -LARGEST):
            raise ModelError(f"template 'state': energies must be at most {LARGEST:g} in size; they overflow")
        return self._with_ends(unary, features)

    def graph(self, features: Features) -> Graph:
        """The union of the chains; sequences without tokens are left out."""
        lengths = features.lengths[features.lengths > 0]
        states = [str(label) for label in self.classes]
        return chain_graph(self.templates, states, lengths, csr_inputs(features, self.templates.state.n_inputs))

    def infer(
        self, features: Features, *want: Want, evidence: Evidence | None = None, n_threads: int | None = None
    ) -> Result:
        """Answer any query, by the exact engine for chains; sequences without tokens are left out."""
        problem = self.graph(features).bind(self.theta, evidence=evidence)
        result = chain_engine(self.templates, n_threads=n_threads).infer(problem, frozenset({*want, "log_partition"}))
        assert result.log_partitions is not None
        if evidence is None and np.isneginf(result.log_partitions).any():
            n = np.flatnonzero(features.lengths)[int(np.argmin(result.log_partitions))]
            raise ModelError(f"sequence {n} has no labelling that the constraints allow")
        return result


def _refuse_impossible(log_z: Array) -> None:
    if len(log_z) and log_z.min() == -np.inf:
        raise ModelError(f"sequence {int(np.argmin(log_z))} has no labelling that the constraints allow")


def chain_engine(templates: ChainTemplates, **options: Any) -> Engine:
    """The exact engine for chains of this order."""
    return ENGINES.read("tree" if templates.triple is None else "junction_tree", **options)


def _rule_out(unary: Array, template: Template | None, rows: IntArray) -> None:
    if template is not None and template.support is not None:
        unary[rows] += np.where(template.support, 0.0, -np.inf)


def split(values: Any, features: Features) -> list[Any]:
    """An array over all tokens, or a list, by sequence."""
    return [values[start:stop] for start, stop in pairwise(features.offsets.tolist())]


def labels_of(classes: Sequence[Any], codes: IntArray) -> list[Any]:
    """Codes as labels."""
    return [classes[code] for code in codes.tolist()]
