"""A model on the factor graph of structured data: the same parameters, found by the names of templates.

p(y | x, theta) of the attributes x of T = (S, F, E, {X_f}, x), 002; theta_t is that of the model's template t
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from besag.arrays import Array, BoolArray
from besag.errors import ModelError
from besag.model.layout import Layout
from besag.model.model import Model

if TYPE_CHECKING:
    from besag.graph.compile import Structure


def is_structure(given: Any) -> TypeGuard[Structure]:
    """Whether this is a factor graph with attributes, and not a Model."""
    has_parts = isinstance(getattr(given, "layout", None), Layout) and hasattr(given, "groups")
    return has_parts and not isinstance(given, Model)


def with_data(model: Model, data: Structure) -> Model:
    """The model of structured data, with the parameters and the hard zeros of this one."""
    if not is_structure(data):
        raise ModelError(f"with_data takes StructuredData, got {type(data).__name__}")
    theta, support = numbers_on(model, data.layout)
    made = Model(data.variables, data.groups, theta, support)
    conditional = any(group.conditional for group in data.groups)
    return made.with_numbers(theta, support) if conditional else made  # whose rows may not sum to one any more


def numbers_on(model: Model, layout: Layout) -> tuple[Array, BoolArray | None]:
    """theta and support of a model, in the order of another layout; ModelError where it lacks a template."""
    for name, template in layout.templates.items():
        if name not in model.layout.templates:
            raise ModelError(
                f"the data have a template {name!r}, of which the model has no parameters; it has "
                f"{', '.join(map(repr, model.layout.templates))}"
            )
        if not template.same_as(model.layout.templates[name]):
            raise ModelError(f"template {name!r} of the data differs from that of the model")
    theta, support = model.theta, model.support
    parts = [model.layout[name] for name in layout.templates]
    numbers = np.concatenate([np.zeros(0), *(theta[where] for where in parts)])
    if support is None:
        return numbers, None
    return numbers, np.concatenate([np.zeros(0, np.bool_), *(support[where] for where in parts)])
