"""Asks a model everything, collects what is wrong, and makes it small."""

import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tests.ways.changes
import tests.ways.distances
import tests.ways.elsewhere
import tests.ways.labellings
import tests.ways.questions  # noqa: F401  # all register their questions
from besag.errors import CapabilityError
from besag.model.model import Model
from tests import routes
from tests.ways.case import QUESTIONS, Case
from tests.ways.evidence import with_evidence
from tests.ways.models import Spec, as_given, draw

REFUSED = (  # of structured factors that are chains: docs/factors.md
    "too many states for a marginal of its own",
    "no expected energy here",
    "the k best labellings are not known",
    "has no approximating distribution",
    "needs the lower bound of mean_field",
    "factors on many variables in a union of models",
    "messages was not asked for in this call",
)
MOST_TRIES = 300  # smaller models that are looked at for one failure

Routes = Callable[[np.random.Generator], list[AbstractContextManager[Any]]]
"""Context managers to ask a model under, drawn for it: see tests/routes.py."""


def no_routes(rng: np.random.Generator) -> list[AbstractContextManager[Any]]:
    """Every route as the sizes of the model choose it."""
    return []


@dataclass(frozen=True)
class Failure:
    """A bad answer or an error. small: a Spec that fails too, and how; None where it takes other questions first."""

    spec: Spec
    question: str
    text: str
    small: tuple[Spec, str] | None = None


@dataclass
class Report:
    """How many answers of a model were looked at, and which were wrong."""

    checks: int = 0
    failures: list[Failure] = field(default_factory=list)


def plain_routes(rng: np.random.Generator) -> list[AbstractContextManager[Any]]:
    """Kernels as plain Python, whose indices are checked."""
    return [routes.force(routes.PLAIN)]


def forced_routes(rng: np.random.Generator) -> list[AbstractContextManager[Any]]:
    """The routes of large models, drawn at random."""
    return [routes.force(routes.draw(rng, refusing=True))]


def ask_everything(
    seed: int,
    *,
    only: Iterable[str] = (),
    forced: Routes = no_routes,
    shrink: bool = True,
    begin: Callable[[str], None] = lambda name: None,
) -> Report:
    """All questions, in an order of its own, to the model of a seed."""
    spec, report = with_evidence(draw(seed)), Report()
    names = [str(name) for name in np.random.default_rng([seed, 2]).permutation(list(QUESTIONS))]
    with _under(forced, seed):
        model = spec.model()
    for name in names:
        if only and name not in only:
            continue
        begin(name)
        with _under(forced, seed):
            text, checks = wrong(spec, name, model)
        report.checks += checks
        if text is not None:
            small = smallest(spec, name, forced) if shrink else None
            report.failures.append(Failure(spec, name, text, small))
    return report


@contextmanager
def _under(forced: Routes, seed: int) -> Iterator[None]:
    """The routes of a seed, and warnings of the library's own code as errors."""
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.filterwarnings("error", module="besag")
        for route in forced(np.random.default_rng([seed, 3])):
            stack.enter_context(route)
        yield


def wrong(spec: Spec, name: str, model: Model | None = None) -> tuple[str | None, int]:
    """What is wrong with the first bad answer to a question, None where all are right; and how many were looked at."""
    count = 0
    try:
        for check in QUESTIONS[name](Case(spec, name, model)):
            count += 1
            if not check.error() <= 1.0:
                return f"{check.name}\n  got      {check.answer}\n  expected {check.expected}", count
    except Exception as error:
        if isinstance(error, CapabilityError) and any(words in str(error) for words in REFUSED):
            return None, count
        return traceback.format_exc(limit=-4), count
    return None, count


def smallest(spec: Spec, name: str, forced: Routes = no_routes) -> tuple[Spec, str] | None:
    """A Spec of which nothing can be left out without the question being answered right, and what is wrong with it."""

    def tried(candidate: Spec) -> str | None:
        with _under(forced, spec.seed):
            return wrong(candidate, name)[0]

    text = tried(spec)
    if text is None:
        return None
    small, tries = (spec, text), 0
    candidates = spec.smaller()
    while tries < MOST_TRIES and (candidate := next(candidates, None)) is not None:
        tries += 1
        text = tried(candidate)
        if text is not None:
            small, candidates = (candidate, text), candidate.smaller()
    return small


def script(spec: Spec) -> str:
    """Python text that makes the model of a Spec, and its evidence; with tables for structured factors."""
    given = "weight" if spec.largest < 600 else "log_potential"
    numbers = [(list(f.scope), as_given(f.table, given).tolist()) for f in spec.factors]
    spaces = {name: list(states) for name, states in zip(spec.names, spec.states, strict=True)}
    lines = [
        "import besag",
        "from numpy import array, inf",
        f"spaces = {spaces}",
        f"rows = {[row for row in spec.rows if row]}",
    ]
    if spec.is_network:
        edges = [(spec.names[p], spec.names[scope[-1]]) for scope, _ in numbers for p in scope[:-1]]
        cpts = {spec.names[scope[-1]]: table for scope, table in numbers}
        return "\n".join([*lines, f"model = besag.bayesian_network({edges}, spaces, {cpts})"])
    factors = [([spec.names[v] for v in scope], table) for scope, table in numbers]
    return "\n".join([*lines, f"model = besag.markov_network(spaces, {factors}, {given!r})"])


def told(failure: Failure, option: str = "") -> str:
    """A failure in words: the seed, how to see it again, what went wrong, and a small model."""
    seed, small = failure.spec.seed, failure.small
    again = f"python -m tests.ways {option} --models 1 --seed {seed}" + (f" --only {failure.question}" if small else "")
    lines = [f"FOUND in seed {seed}, {failure.question}: {again}", failure.text]
    if small is None:
        return "\n".join([*lines, "only after other questions to the same model, or not looked at alone"])
    return "\n".join([*lines, "of a smaller model:", script(small[0]), small[1]])
