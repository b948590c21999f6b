"""Optimisers by text, and options that make no sense."""

from typing import Any

import pytest

from besag.errors import CapabilityError
from besag.learn.optimisers.base import OPTIMIZERS


@pytest.mark.parametrize("name", [*OPTIMIZERS])
def test_text_and_object_are_each_others_inverse(name: str) -> None:
    optimizer = OPTIMIZERS.read(name)
    assert OPTIMIZERS.read(optimizer) is optimizer
    assert OPTIMIZERS.name_of(optimizer) == OPTIMIZERS.text_of(optimizer) == name
    changed = OPTIMIZERS.read(f"{name}[max_iterations=7, tolerance=0.5]")
    assert (changed.max_iterations, changed.tolerance) == (7, 0.5)
    assert OPTIMIZERS.text_of(changed) == f"{name}[max_iterations=7,tolerance=0.5]"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("bfgs", "no optimizer is named 'bfgs'; there are adagrad, adam, .*lbfgs, .*steepest_descent"),
        ("lbfg", r"did you mean 'lbfgs'\?$"),
        ("sgd(step=0.1)", r"; write sgd\[step=0.1\]$"),
        ("lbfgs[memory=3", "opens a bracket and does not close it"),
        ("lbfgs[size=3]", "optimizer 'lbfgs' has no option 'size'; it has max_iterations, memory, metric"),
        ("lbfgs[memory=0]", "lbfgs: memory must be a whole number of at least 1, got 0"),
        ("lbfgs[memory=2.5]", "lbfgs: memory must be a whole number of at least 1, got 2.5"),
        ("lbfgs[metric=newton]", r"lbfgs: metric must be one of 'diagonal', 'identity', got 'newton'"),
        ("lbfgs[tolerance=-1]", "lbfgs: tolerance must be a number from 0 on, got -1"),
        ("lbfgs[tolerance=small]", "lbfgs: tolerance must be a number from 0 on, got 'small'"),
        ("steepest_descent[line_tolerance=0]", "steepest_descent: line_tolerance must be a number above 0, got 0"),
        ("gradient_descent[step=nan]", "gradient_descent: step must be a number above 0, got nan"),
        ("newton_cg[max_products=true]", "newton_cg: max_products must be a whole number"),
        ("sgd[batch_size=0]", "sgd: batch_size must be a whole number"),
        ("sgd[schedule=linear]", "sgd: schedule must be one of .*'cosine'.*, got 'linear'"),
        ("sgd[averaging=yes]", r"sgd: averaging must be one of None, True, False, got 'yes'"),
        ("sgd[seed=0.5]", "sgd: seed must be a whole number of at least 0, got 0.5"),
        ("momentum[momentum=1]", "momentum: momentum must be a number from 0 to below 1, got 1"),
        ("adam[beta2=1]", "adam: beta2 must be a number from 0 to below 1, got 1"),
        ("adagrad[epsilon=0]", "adagrad: epsilon must be a number above 0, got 0"),
        (3, 'optimizer must be text such as "lbfgs" or an optimizer object, got 3'),
    ],
)
def test_bad_options_are_refused(text: Any, match: str) -> None:
    with pytest.raises(CapabilityError, match=match):
        OPTIMIZERS.read(text)
