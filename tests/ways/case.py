"""A model to be asked, and what a question yields: its name, the answer, what is expected, and how far they may differ.

A question is a generator function of a Case, registered with `@question`:

    @question
    def ask_log_partition(case):
        yield Check("log_partition()", case.model.log_partition(), case.truth().log_z)
"""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from besag.errors import EvidenceError
from besag.infer.result import Result
from besag.infer.trees.engine import forest_of
from besag.model.model import Model
from tests.ways.models import Spec
from tests.ways.truth import Truth

TOLERANCE = 1e-9  # relative, and absolute below one
SINGLES = 4  # rows of evidence that are asked one by one


class Check(NamedTuple):
    """An answer beside what it should be; of sampled and bounding answers, `expected` holds with `at_most`."""

    name: str
    answer: Any
    expected: Any
    tolerance: float = TOLERANCE
    at_most: bool = False

    def error(self) -> float:
        """How far the answer is off, in tolerances; infinite where shapes or infinities differ."""
        answer, expected = np.asarray(self.answer, np.float64), np.asarray(self.expected, np.float64)
        if answer.shape != expected.shape:
            return math.inf
        with np.errstate(invalid="ignore"):
            off = (answer - expected if self.at_most else np.abs(answer - expected)) / (
                self.tolerance * np.maximum(1.0, np.abs(expected))
            )
        right = (answer <= expected) if self.at_most else (answer == expected)
        return float(np.where(right, 0.0, np.where(np.isnan(off), np.inf, off)).max(initial=0.0))


Question = Callable[["Case"], Iterator[Check]]
QUESTIONS: dict[str, Question] = {}


def question(function: Question) -> Question:
    """Register a way of asking."""
    QUESTIONS[function.__name__] = function
    return function


class Case:
    """A Spec, its model, built once for all questions, and random numbers that depend on seed and question only."""

    def __init__(self, spec: Spec, asked: str, model: Model | None = None) -> None:
        self.spec = spec
        self.model = spec.model() if model is None else model
        self.rng = np.random.default_rng([spec.seed, zlib.crc32(asked.encode())])

    @property
    def singles(self) -> tuple[dict[str, Any], ...]:
        return self.spec.rows[:SINGLES]

    @cached_property
    def is_forest(self) -> bool:
        return forest_of(self.model.graph) is not None

    @property
    def engines(self) -> list[str]:
        """The engines whose answers are exact."""
        return ["auto", "exact", "junction_tree", "elimination", "brute", *(["tree"] if self.is_forest else [])]

    @property
    def clique_engines(self) -> list[str]:
        """Those of them that give the best labelling, factors, moments and samples."""
        return [engine for engine in self.engines if engine not in ("auto", "elimination")]

    def truth(self, *evidence: Mapping[str, Any]) -> Truth:
        return Truth(self.spec, *evidence)

    def some(self, least: int = 1, most: int = 3) -> list[int]:
        """Some variables, in any order."""
        n = int(self.rng.integers(least, most + 1))
        return [int(v) for v in self.rng.permutation(len(self.spec.names))[:n]]

    @cached_property
    def order(self) -> list[int]:
        """The Spec's variables in the order of the model, which puts those of edges first."""
        return [self.spec.names.index(variable.name) for variable in self.model.variables]

    def names(self, numbers: list[int]) -> list[str]:
        return [self.spec.names[v] for v in numbers]

    def codes(self, assignment: Mapping[str, str]) -> list[int]:
        """The codes of an assignment, in the order of the Spec's variables."""
        return [
            states.index(assignment[name])
            for name, states in zip(self.spec.names, self.spec.states, strict=True)
            if name in assignment
        ]

    def all_marginals(self, result: Result) -> np.ndarray:
        """(S,), or (B, S) of a batch: all marginals of a Result, one after the other."""
        return np.concatenate([result[name] for name in self.spec.names], axis=-1)


def unless_impossible(ask: Callable[[], Any]) -> Any:
    """The answer, or -inf where the evidence is refused as impossible."""
    try:
        return ask()
    except EvidenceError as error:
        if not error.conflict:  # not impossible, but not understood
            raise
        return -math.inf
