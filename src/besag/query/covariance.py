"""The covariance of the sufficient statistics: the Hessian of log Z, 002 (21), by enumeration.

Cov(phi) = E[phi phi^T] - E[phi] E[phi]^T,        phi(y) = sum_f phi_f(y_Sf), (P,)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import EvidenceError, TooLargeError
from besag.graph.evidence import read_evidence
from besag.query.labels import configurations
from besag.query.run import Options, run

if TYPE_CHECKING:
    from besag.model.model import Model

MAX_ROWS = 2**16
MAX_BYTES = 2**30


def covariance(model: Model, evidence: Any, options: Options) -> Array:
    """Cov(phi) under p(y | evidence), (P, P)."""
    codes = configurations(model.variables, list(range(len(model.variables))), MAX_ROWS)
    size = model.layout.n_parameters
    if 8 * size * max(size, len(codes)) > MAX_BYTES:
        raise TooLargeError(f"the covariance of {size} parameters over {len(codes)} labellings takes more than 1 GiB")
    read = read_evidence(model.variables, evidence)
    if read.batched:
        raise EvidenceError("covariance takes one row of evidence, a dict")
    log_z = run(model, {"log_partition"}, read, options).log_partition
    p = np.exp(-model.problem.with_evidence(read).energy(codes) - log_z)
    phi = features(model, codes)
    centred = phi - p @ phi
    return np.asarray((centred * p[:, None]).T @ centred)


def features(model: Model, codes: IntArray) -> Array:
    """phi(y) of labellings (B, V): (B, P)."""
    phi = np.zeros((len(codes), model.layout.n_parameters))
    for group in model.groups:
        where, template = model.layout[group.template.name], group.template
        configs = np.stack(np.unravel_index(np.arange(int(np.prod(template.shape))), template.shape), axis=1)
        for f, scope in enumerate(group.scopes):
            inputs = None if group.inputs is None else group.inputs[f : f + 1]
            table = np.stack([template.label_moments(inputs, config[None]) for config in configs])
            phi[:, where] += table[np.ravel_multi_index(tuple(codes[:, scope].T), template.shape)]
    return phi
