"""Options by the names that other libraries give them: a TypeError says which name is ours, and what else differs.

CRFsuite, pgmpy, hmmlearn and scikit-learn call the same things otherwise. `hinting` checks the keywords of a call
before it is made, so that the error of a call that was right in these says how it is written here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

from besag.text import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])

# Their name, and ours: the first that the function has. What stands after ": " says more.
NAMES: dict[str, tuple[str, ...]] = {
    # CRFsuite
    "c1": ("l1",),
    "c2": ("l2",),
    "algorithm": ("optimizer", "decode"),
    "max_iterations": ("max_iter",),
    "epsilon": ("tol", "tolerance"),
    "delta": ("tol", "tolerance"),
    "all_possible_transitions": ('pairs: pairs="all"',),
    # hmmlearn
    "n_components": ("n_states", "n_hidden"),
    "n_iter": ("max_iter", "max_iterations"),
    "startprob_prior": ("prior: pseudo-counts, their alpha - 1",),
    "transmat_prior": ("prior: pseudo-counts, their alpha - 1",),
    "emissionprob_prior": ("prior: pseudo-counts, their alpha - 1",),
    "init_params": ("init",),
    "n_features": ("symbols",),
    # pgmpy
    "ebunch": ("structure",),
    "edges": ("structure",),
    "estimator": ("prior", "structure", "e_step"),
    "scoring_method": ("criterion",),
    "equivalent_sample_size": ('prior: prior="bdeu[strength=10]"',),
    "prior_type": ("prior",),
    "pseudo_counts": ("prior", "prior_counts"),
    "max_indegree": ("max_parents",),
    "fixed_edges": ("required",),
    "white_list": ("required",),
    "black_list": ("forbidden",),
    "state_names": ("states",),
    "values": ("cpts: tables by name, axes are the parents, then the variable",),
    "evidence_card": ("states: numbers of states come from there, or from the shapes of cpts",),
    "variable_card": ("states: numbers of states come from there, or from the shapes of cpts",),
    "cardinality": ("states", "variables"),
    "variables": ("targets",),
    "show_progress": ("verbose", "progress"),
    # scikit-learn and others
    "C": ("l2: about 1 / C",),
    "solver": ("optimizer",),
    "epochs": ("max_iter",),
    "n_epochs": ("max_iter",),
    "n_jobs": ("n_threads",),
    "seed": ("random_state",),
    "random_state": ("seed",),
    "max_iter": ("max_iterations",),
    "tol": ("tolerance",),
    "verbose": ("progress",),
    "progress": ("verbose",),
}


def hint(word: str, known: Iterable[str]) -> str:
    """What to write in place of an option that does not exist; "" where nothing is near.

    >>> hint("c2", ["l1", "l2"])
    "'c2' is 'l2' here"
    >>> hint("equivalent_sample_size", ["prior"])
    '\\'equivalent_sample_size\\' is \\'prior\\' here: prior="bdeu[strength=10]"'
    """
    known = list(known)
    for ours in NAMES.get(word, ()):
        name, _, more = ours.partition(": ")
        if name in known:
            return f"{word!r} is {name!r} here" + (f": {more}" if more else "")
    return did_you_mean(word, known)


def hinting(function: Function) -> Function:
    """The same function; a keyword that it does not have is a TypeError with a hint."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return function

    @wraps(function)
    def called(*given: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                of = function.__qualname__.removesuffix(".__init__")
                told = hint(name, known) or "it has " + ", ".join(one for one in known if one != "self")
                raise TypeError(f"{of}() has no argument {name!r}; {told}")
        return function(*given, **options)

    return cast("Function", called)
