"""The base of estimators: scikit-learn's conventions, without scikit-learn.

Parameters are the arguments of __init__, kept under their names and checked in fit; attributes that fit learns end in
an underscore. `clone`, `Pipeline`, `GridSearchCV` and `cross_val_score` need no more than this.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from besag.errors import ModelError
from besag.foreign import hint, hinting
from besag.markup import make_card, make_table
from besag.model.model import Model
from besag.registry import is_whole
from besag.text import did_you_mean

LONG = 120  # characters of a value in a line
MOST_SEEDS = 2**31 - 1


class NotFittedError(ModelError, AttributeError):
    """An estimator was used before it was fitted: an AttributeError too, so that hasattr(crf, "classes_") is False."""


class Estimator:
    """get_params, set_params, and a repr with the parameters that differ from the defaults.

    notes_: texts and numbers of a user that go along into files, such as how its input was made.
    """

    notes_: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("__init__", "fit"):
            if name in vars(cls):
                setattr(cls, name, hinting(vars(cls)[name]))

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """The same estimator with other parameters."""
        known = self._defaults()
        for name, value in parameters.items():
            if name not in known:
                told = "; ".join(filter(None, (f"it has {', '.join(known)}", hint(name, known))))
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; {told}")
            setattr(self, name, value)
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """For names that are nowhere: what is learnt by fit, and what the model has that it learns."""
            own = getattr(type(self), name, None)
            if own is not None:  # a property that raised an AttributeError, which is the one to be seen
                own.__get__(self)
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if name.endswith("_"):
                self._check_fitted()
            learnt = [one for one in dir(self) if one.endswith("_") and one[0] != "_"]
            if "model_" in learnt and hasattr(Model, name):
                told = f"ask the model that it has learnt, model_.{name}"
            else:
                told = (
                    did_you_mean(name, (one for one in dir(self) if one[0] != "_"))
                    or f"fit has learnt {', '.join(learnt)}"
                )
            raise AttributeError(f"this {type(self).__name__} has no {name!r}; {told}")

    def __repr__(self) -> str:
        usual = self._defaults()
        chosen = [f"{k}={v!r}" for k, v in self.get_params().items() if repr(v) != repr(usual[k])]
        return f"{type(self).__name__}({', '.join(chosen)})"

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return make_card(repr(self), ["not fitted yet"])
        names = [name for name in dir(self) if name.endswith("_") and name[0] != "_" and name != "notes_"]
        learnt = [(name, _brief(getattr(self, name, None))) for name in names]
        return make_card(repr(self), ["fitted"], make_table(("learnt", ""), learnt))

    def __sklearn_tags__(self) -> Any:
        """The tags that scikit-learn asks for; called only by scikit-learn."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, y) first")


def _brief(value: Any) -> str:
    """A value in a line: arrays by their shape, what is long cut."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= LONG else text[: LONG - 3] + "..."


def read_seed(random_state: Any) -> int:
    """The seed that a random_state stands for: another one each time for None, or a draw of a generator of numpy's."""
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MOST_SEEDS))
    if isinstance(random_state, np.random.RandomState):  # what scikit-learn hands on
        return int(random_state.randint(MOST_SEEDS))
    if not is_whole(random_state) or random_state < 0:
        raise ModelError(
            f"random_state must be a whole number from 0 on, None, or a generator of numpy's, got {random_state!r}"
        )
    return int(random_state)


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """ModelError if a parameter has none of the allowed values; numpy's numbers and texts count as Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in allowed):
        raise ModelError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
