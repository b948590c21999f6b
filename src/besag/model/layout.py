"""Layout: the slice of theta that belongs to each template.

theta (P,) consists of the blocks of all templates, in the order in which a model first uses them. A layout depends on
templates only, so that all instances, batches and shards of a data set share one theta.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from besag.arrays import LARGEST, Array
from besag.errors import ModelError
from besag.model.template import Template


class Layout:
    """Templates by name, and the slice of theta of each."""

    __slots__ = ("_slices", "n_parameters", "templates")

    def __init__(self, templates: Iterable[Template]) -> None:
        self.templates: dict[str, Template] = {}
        for template in templates:
            known = self.templates.setdefault(template.name, template)
            if not known.same_as(template):
                raise ModelError(
                    f"two templates are named {template.name!r} but differ: shape {known.shape} with {known.n_inputs} "
                    f"inputs, shape {template.shape} with {template.n_inputs}; give one of them another name"
                )
        self._slices: dict[str, slice] = {}
        start = 0
        for name, template in self.templates.items():
            self._slices[name] = slice(start, start + template.n_parameters)
            start += template.n_parameters
        self.n_parameters = start

    def __getitem__(self, name: str) -> slice:
        if name not in self._slices:
            raise ModelError(f"no template is named {name!r}; there are {', '.join(map(repr, self._slices))}")
        return self._slices[name]

    def __repr__(self) -> str:
        blocks = ", ".join(f"{name}[{s.start}:{s.stop}]" for name, s in self._slices.items())
        return f"Layout({blocks})"

    def check_theta(self, theta: object) -> Array:
        """theta as finite float64 (P,), or a ModelError."""
        array = np.ascontiguousarray(theta, np.float64)
        if array.shape != (self.n_parameters,):
            raise ModelError(f"theta must have shape ({self.n_parameters},), got {array.shape}")
        if not (array.max(initial=0.0) <= LARGEST and array.min(initial=0.0) >= -LARGEST):
            at = int(np.argmin(np.abs(array) <= LARGEST))
            if np.isfinite(array[at]):
                name = next(name for name, where in self._slices.items() if where.start <= at < where.stop)
                raise ModelError(f"template {name!r}: energies must be at most {LARGEST:g} in size, got {array[at]}")
            raise ModelError(f"theta must be finite (hard zeros belong in support), but theta[{at}] is {array[at]}")
        return array
