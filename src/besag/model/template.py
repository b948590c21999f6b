"""Templates: the only place where energies are made from parameters, and their adjoint.

A Template is one block of theta that all factors of one kind share. With inputs x_f (D,) and a basis (Q, K1..Kn),

    phi_f(x_f, y) = x_f (x) basis[:, y]            features, (D, Q)
    h_f(y)        = sum_dq theta_dq x_fd basis_q(y)   energies, 002 (5)
    moments       = sum_f  x_f (x) sum_y mu_f(y) basis[:, y]      (D, Q), the adjoint:
                    <theta, moments(mu)> = <energies(theta), mu>

for marginals mu (F, K1..Kn). A labelling is a one-hot marginal, so the statistics of data and of a model come from the
same map.

Inputs come in four forms. Factors that read the same numbers share a table, so F factors have T distinct tables:

    None            every factor reads theta's only row: one table, T = 1
    (F,) integers   factor f reads row inputs[f] of theta: a gather, never a product; T = min(D, F)
    (F, D) dense    one matrix product, T = F
    (F, D) CSR      one sparse product, T = F

With a Structured basis the tables stay (T, Q) weights. With a Pattern only some (d, q) pairs have parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import EXTENTS, AnyArray, Array, BoolArray, IntArray, Kind, Rebuilt, freeze, secure
from besag.errors import ModelError
from besag.model.pattern import Pattern
from besag.model.structured.base import Structured, without_hard_zeros

# None, (F,) integers, (F, D) floats or a scipy CSR array; Any, because scipy is imported only if needed.
Inputs: TypeAlias = Any


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Template(Rebuilt):
    """One block of theta that factors share: how their energies depend on parameters and inputs.

    basis: (Q, *shape), a Structured, or None = one parameter for each table entry. support (*shape): False is a hard
    zero in every factor; theta stays finite there.
    """

    name: str
    shape: tuple[int, ...]
    n_inputs: int = 1
    basis: Array | Structured | None = None
    support: BoolArray | None = None
    pattern: Pattern | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(k) for k in self.shape))
        if not self.shape or min(self.shape) < 1:
            raise ModelError(
                f"template {self.name!r}: the shape must be one or more positive numbers, got {self.shape}"
            )
        if self.n_inputs < 1:
            raise ModelError(f"template {self.name!r}: n_inputs must be at least 1, got {self.n_inputs}")
        self._check_basis()
        if self.support is not None:
            support = secure(np.asarray(self.support, np.bool_))
            if support.shape != self.shape or self.structured is not None:
                raise ModelError(
                    f"template {self.name!r}: support must have the table's shape {self.shape} and a dense basis"
                )
            object.__setattr__(self, "support", support)
        self._check_pattern()

    def _check_basis(self) -> None:
        if isinstance(self.basis, np.ndarray):
            basis = secure(np.asarray(self.basis, np.float64))
            if basis.ndim != len(self.shape) + 1 or basis.shape[1:] != self.shape or not np.isfinite(basis).all():
                raise ModelError(
                    f"template {self.name!r}: the basis must be finite and of shape (Q, *{self.shape}), "
                    f"got {basis.shape}"
                )
            object.__setattr__(self, "basis", basis)
        elif self.basis is not None and self.basis.shape != self.shape:
            raise ModelError(
                f"template {self.name!r}: the structured basis has shape {self.basis.shape}, not {self.shape}"
            )

    def _check_pattern(self) -> None:
        if self.pattern is None or len(self.pattern) == 0:
            return
        outside = (self.pattern.rows < 0) | (self.pattern.rows >= self.n_inputs)
        outside |= (self.pattern.columns < 0) | (self.pattern.columns >= self.n_basis)
        if outside.any():
            at = int(np.argmax(outside))
            pair = (int(self.pattern.rows[at]), int(self.pattern.columns[at]))
            raise ModelError(
                f"template {self.name!r}: pattern pair {pair} lies outside ({self.n_inputs}, {self.n_basis})"
            )

    @property
    def structured(self) -> Structured | None:
        """The structured basis, or None if tables are stored."""
        return None if self.basis is None or isinstance(self.basis, np.ndarray) else self.basis

    @property
    def kind(self) -> int:
        """The kind of its factors and its extent, as kernels read them."""
        return Kind.TABLE if self.structured is None else self.structured.kind + EXTENTS * self.structured.extent

    @property
    def n_basis(self) -> int:
        """Q."""
        if self.basis is None:
            return prod(self.shape)
        return len(self.basis) if isinstance(self.basis, np.ndarray) else self.basis.n_parameters

    @property
    def n_parameters(self) -> int:
        """The length of its block of theta: D Q, or the pairs of the pattern."""
        return self.n_inputs * self.n_basis if self.pattern is None else len(self.pattern)

    @property
    def entry_shape(self) -> tuple[int, ...]:
        """The shape of one stored table: K1..Kn, or (Q,) if it is structured."""
        return self.shape if self.structured is None else (self.n_basis,)

    def table_of_factor(self, inputs: Inputs, n_factors: int) -> IntArray:
        """(F,): the number of the table, of T, that each factor reads."""
        if inputs is None:
            return np.zeros(n_factors, np.int64)
        if self._reads_rows(inputs) and self.n_inputs <= n_factors:
            return np.asarray(inputs, np.int64)
        return np.arange(n_factors)

    def n_tables(self, inputs: Inputs, n_factors: int) -> int:
        """T: how many tables F factors with these inputs have."""
        if inputs is None:
            return 1
        return min(self.n_inputs, n_factors) if self._reads_rows(inputs) else n_factors

    def is_theta(self, inputs: Inputs, n_factors: int) -> bool:
        """Whether the T tables of F factors, one after the other, are exactly its block of theta."""
        if self.basis is not None or self.support is not None or self.pattern is not None:
            return False
        return inputs is None or (self._reads_rows(inputs) and self.n_inputs <= n_factors)

    def tables(self, theta: Array, inputs: Inputs) -> Array:
        """The T distinct tables: block of theta (n_parameters,) -> energies (T, *entry_shape)."""
        weights = self._weights(theta, inputs)
        if isinstance(self.basis, np.ndarray):
            weights = weights @ self.basis.reshape(self.n_basis, -1)
        return weights.reshape(len(weights), *self.entry_shape)

    @property
    def has_zeros(self) -> bool:
        """Whether some entries are hard zeros, whatever theta is."""
        levels = None if self.structured is None else self.structured.levels()
        return self.support is not None or (levels is not None and bool(np.isinf(levels).any()))

    def table_basis(self) -> Array:
        """(Q, K1 * .. * Kn): the basis, 0 at hard zeros, which count for nothing in moments."""
        if self.basis is None:
            return np.eye(self.n_basis)
        basis = self.basis if isinstance(self.basis, np.ndarray) else self.basis.statistics()
        return basis.reshape(self.n_basis, -1)

    def energies(self, theta: Array, inputs: Inputs) -> Array:
        """The energy of every factor: block of theta -> (F, *shape), or (1, *shape) without inputs."""
        tables = self.tables(theta, inputs)
        if self.structured is not None:
            basis = self.structured.dense().reshape(self.n_basis, -1)
            hard = np.isinf(basis).any(axis=0)
            tables = np.where(hard, np.inf, tables @ without_hard_zeros(basis)).reshape(-1, *self.shape)
        if inputs is None:
            return tables
        return tables[self.table_of_factor(inputs, inputs.shape[0])]

    def moments(self, inputs: Inputs, marginals: Array) -> Array:
        """The adjoint of `energies`: marginals (F, *shape) -> block of moments (n_parameters,)."""
        n_factors = len(marginals)
        if self.structured is not None:
            marginals = marginals.reshape(n_factors, prod(self.shape)) @ self.table_basis().T
        rows = self.table_of_factor(inputs, n_factors)
        flat = marginals.reshape(n_factors, prod(self.entry_shape))
        summed = sum_rows(flat, rows, self.n_tables(inputs, n_factors))
        return self.table_moments(inputs, summed)

    def label_moments(self, inputs: Inputs, codes: IntArray, weights: Array | None = None) -> Array:
        """`moments` of one-hot marginals, gathered: codes (F, n) of the scopes, weights (F,) -> (n_parameters,)."""
        if weights is not None:
            return self._weighted_label_moments(inputs, codes, weights)
        if self.structured is not None:
            statistics = without_hard_zeros(self.structured.features(codes))
        else:
            config = np.ravel_multi_index(tuple(codes.T), self.shape)
            if isinstance(self.basis, np.ndarray):
                statistics = self.basis.reshape(self.n_basis, -1)[:, config].T
            elif inputs is None or self._reads_rows(inputs):
                rows = 0 if inputs is None else np.asarray(inputs) * self.n_basis
                return self._on_pattern(
                    np.bincount(rows + config, minlength=self.n_inputs * self.n_basis).astype(np.float64)
                )
            elif self.pattern is None:
                return sum_rows(inputs, config, self.n_basis).T.reshape(-1)
            else:
                statistics = np.eye(self.n_basis)[config]
        if self._reads_rows(inputs):
            return self._on_pattern(sum_rows(statistics, np.asarray(inputs), self.n_inputs))
        if inputs is None:
            return self._on_pattern(statistics.sum(axis=0))
        return self._adjoint(inputs, statistics)

    def _weighted_label_moments(self, inputs: Inputs, codes: IntArray, weights: Array) -> Array:
        config = np.ravel_multi_index(tuple(codes.T), self.shape)
        marginals = np.zeros((len(codes), prod(self.shape)))
        marginals[np.arange(len(codes)), config] = weights
        return self.moments(inputs, marginals.reshape(-1, *self.shape))

    def _adjoint(self, inputs: Inputs, statistics: Array) -> Array:
        """sum_f x_f (x) statistics_f for inputs (F, D): (F, Q) -> (n_parameters,)."""
        if self.pattern is not None and hasattr(inputs, "tocsr"):
            return self.pattern.moments(inputs, statistics)
        return self._on_pattern(inputs.T @ statistics)

    def _on_pattern(self, block: Array) -> Array:
        block = block.reshape(self.n_inputs, self.n_basis)
        return (block if self.pattern is None else block[self.pattern.rows, self.pattern.columns]).reshape(-1)

    def table_moments(self, inputs: Inputs, marginals: Array) -> Array:
        """The adjoint of `tables`: marginals summed onto each table (T, *entry_shape) -> (n_parameters,)."""
        statistics = marginals.reshape(len(marginals), prod(self.entry_shape))
        if isinstance(self.basis, np.ndarray):
            statistics = statistics @ self.basis.reshape(self.n_basis, -1).T
        if inputs is None:
            block = statistics.sum(axis=0, keepdims=True)
        elif self._reads_rows(inputs):
            shared = self.n_inputs <= inputs.shape[0]
            block = statistics if shared else sum_rows(statistics, np.asarray(inputs), self.n_inputs)
        else:
            return self._adjoint(inputs, statistics)
        return self._on_pattern(block)

    def check_inputs(self, inputs: Inputs, n_factors: int) -> Inputs:
        """The inputs of F factors, frozen, or a ModelError that says what is wrong with them."""
        if inputs is None:
            if self.n_inputs != 1:
                raise ModelError(f"template {self.name!r} reads {self.n_inputs} inputs, but its factors have none")
            return None
        if hasattr(inputs, "tocsr"):
            inputs = inputs.tocsr(copy=True)
            inputs.sum_duplicates()
            if inputs.dtype != np.bool_ and (inputs.data == 1).all():
                inputs = inputs.astype(np.bool_)  # an eighth of the memory, and nothing to multiply
            values: AnyArray = inputs.data
        else:
            inputs = values = secure(np.asarray(inputs))
        if values.dtype.kind not in "fiub":
            raise ModelError(f"template {self.name!r}: inputs must be numbers, got {values.dtype}")
        expected = (n_factors,) if self._reads_rows(inputs) else (n_factors, self.n_inputs)
        if tuple(inputs.shape) != expected:
            raise ModelError(
                f"template {self.name!r}: inputs must be ({n_factors},) integers or of shape "
                f"({n_factors}, {self.n_inputs}), got shape {tuple(inputs.shape)} of {inputs.dtype}"
            )
        if self._reads_rows(inputs):
            self._check_rows(values)
            return freeze(values.astype(np.int64, copy=False))
        if not np.isfinite(values).all():
            entry = int(np.argmin(np.isfinite(values).ravel()))
            factor, column = divmod(entry, self.n_inputs)
            if hasattr(inputs, "tocsr"):
                factor, column = int(np.searchsorted(inputs.indptr, entry, side="right")) - 1, inputs.indices[entry]
            wrong = f"{values.ravel()[entry]} in factor {factor}, column {column}"
            raise ModelError(f"template {self.name!r}: inputs must be finite numbers, got {wrong}")
        return inputs if hasattr(inputs, "tocsr") else freeze(values.astype(np.float64, copy=False))

    def _check_rows(self, rows: AnyArray) -> None:
        outside = (rows < 0) | (rows >= self.n_inputs)
        if np.count_nonzero(outside):  # faster than any() on few rows
            at = int(np.argmax(outside))
            raise ModelError(
                f"template {self.name!r}: factor {at} reads row {rows[at]} of theta, which has {self.n_inputs} rows"
            )

    @staticmethod
    def _reads_rows(inputs: Inputs) -> bool:
        return inputs is not None and inputs.ndim == 1 and inputs.dtype.kind in "iu"

    def _weights(self, theta: Array, inputs: Inputs) -> Array:
        if self.pattern is not None and hasattr(inputs, "tocsr"):
            return self.pattern.products(theta, inputs, self.n_basis)
        shape = (self.n_inputs, self.n_basis)
        block = theta.reshape(shape) if self.pattern is None else self.pattern.block(theta, *shape)
        if inputs is None:
            return block
        if self._reads_rows(inputs):
            return block if self.n_inputs <= inputs.shape[0] else np.asarray(block[inputs])
        return np.asarray(inputs @ block)

    @property
    def _pattern_pairs(self) -> IntArray | None:
        return None if self.pattern is None else np.stack([self.pattern.rows, self.pattern.columns])

    def same_as(self, other: Template) -> bool:
        """Whether two templates of one name have the same content."""
        return self is other or (
            (self.shape, self.n_inputs) == (other.shape, other.n_inputs)
            and _same(self.basis, other.basis)
            and _same(self.support, other.support)
            and _same(self._pattern_pairs, other._pattern_pairs)
        )


def _same(one: AnyArray | Structured | None, other: AnyArray | Structured | None) -> bool:
    if one is None or other is None or type(one) is not type(other):
        return one is other
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def join_inputs(template: Template, parts: Sequence[Inputs]) -> Inputs:
    """The inputs of several groups of one template, one after the other."""
    if len(parts) == 1 or all(part is None for part in parts):
        return parts[0]
    forms = {("none" if p is None else "csr" if hasattr(p, "tocsr") else f"{p.ndim} axes") for p in parts}
    if len(forms) > 1:
        raise ModelError(
            f"template {template.name!r}: all groups and models must give their inputs in one form, got {sorted(forms)}"
        )
    if forms == {"csr"}:
        from scipy.sparse import vstack

        return vstack(list(parts), format="csr")
    return freeze(np.concatenate([np.asarray(p) for p in parts]))


def sum_rows(values: Any, rows: IntArray, n_rows: int) -> Array:
    """Add up those rows of `values` (F, Q), dense or CSR, that have the same number in `rows` (F,): -> (n_rows, Q)."""
    sparse = hasattr(values, "tocsr")
    if n_rows == 1 and not sparse:
        return np.asarray(values.sum(axis=0, keepdims=True))
    if not sparse and len(rows) == n_rows and np.array_equal(rows, np.arange(n_rows)):
        return np.asarray(values)
    from scipy.sparse import csr_array

    picker = csr_array((np.ones(len(rows)), rows, np.arange(len(rows) + 1)), shape=(len(rows), n_rows))
    summed = picker.T @ values
    return np.asarray(summed.toarray() if sparse else summed)
