"""One way from a question to a Result: read the evidence, bind it, call the engine, refuse impossible evidence."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from besag.errors import CapabilityError, ConvergenceWarning, warn
from besag.foreign import hint
from besag.graph.evidence import Evidence, read_evidence
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES, SHOWS, Engine, Want
from besag.infer.iterate import clear_interrupts
from besag.infer.result import Result
from besag.query.approximation import approximation, kl_of
from besag.query.conflict import refuse_impossible
from besag.query.labels import read_start
from besag.query.progress import Progress
from besag.registry import is_number, is_whole

if TYPE_CHECKING:
    from besag.model.model import Model

ENDS = {
    "max_iterations": "stopped",
    "time_limit": "stopped at its time_limit",
    "interrupted": "was interrupted",
}


class Options(TypedDict, total=False):
    """What every verb takes besides its question.

    engine: "auto", "exact", "tree[root=A]", ... or an engine object. memory_limit in bytes. seed of all randomness.
    n_threads: None is every core that the process may use; answers do not depend on it. trace: keep messages and
    iterations; "messages" keeps the messages of every iteration. Only iterative engines heed init, a Result to start
    from, for bp also messages, for gibbs also a labelling, {name: state} or int codes in the shape of the model;
    time_limit in seconds; and progress, to show how they get on. An option in the engine's text overrides the keyword
    of the same name.
    """

    engine: str | Engine
    init: Any
    time_limit: float | None
    memory_limit: int | None
    seed: int
    n_threads: int | None
    progress: bool
    trace: bool | Literal["messages"]


def check_options(options: Options, model: Model | None = None) -> None:
    """TypeError for an option that does not exist, CapabilityError for one that cannot be."""
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        if model is not None and model.variables.names.find(min(unknown)) is not None:
            raise TypeError(
                f"unknown option {min(unknown)!r}; of a variable write evidence={{{min(unknown)!r}: state}}"
            )
        near = hint(min(unknown), Options.__annotations__)
        known = f"There are {', '.join(Options.__annotations__)}"
        raise TypeError(f"unknown options {sorted(unknown)}{f'; {near}' if near else '.'} {known}")
    for key in ("time_limit", "memory_limit"):
        value: Any = options.get(key)
        if value is not None and not (is_number(value) and value > 0):
            raise CapabilityError(f"{key} must be a positive number or None, got {value!r}")
    threads: Any = options.get("n_threads")
    if threads is not None and not (is_whole(threads) and threads >= 1):
        raise CapabilityError(f"n_threads must be a whole number of at least 1 or None, got {threads!r}")
    seed: Any = options.get("seed", 0)
    if not (is_whole(seed) and seed >= 0):
        raise CapabilityError(f"seed must be a whole number of at least 0, got {seed!r}")
    trace: Any = options.get("trace", False)
    if trace not in (True, False, None, "messages"):
        raise CapabilityError(f"trace must be True, False or 'messages', got {trace!r}")
    _check_init(options)


def _check_init(options: Options) -> None:
    """TypeError unless init is a Result or what else the engine can start from."""
    given: Any = options.get("init")
    if given is None or isinstance(given, Result):
        return
    more = engine_from(options).capabilities.starts_from
    if not more:
        raise TypeError(f"init must be a Result to start from, got {type(given).__name__}")


def engine_from(options: Options, **more: Any) -> Engine:
    """The engine that the options name, with what they fill in."""
    fill: dict[str, Any] = {key: options.get(key) for key in ("memory_limit", "n_threads", "seed")}
    if isinstance(fill["memory_limit"], float):  # as in 2e9
        fill["memory_limit"] = int(fill["memory_limit"])
    if options.get("trace") == "messages":
        fill["keep_messages"] = True
    return ENGINES.read(options.get("engine", "auto"), **fill, **more)


def evidence_for(model: Model, given: Any) -> Evidence:
    """What a user writes as Evidence on a model; none is the Evidence that its problem has already."""
    return model.problem.evidence if given is None else read_evidence(model.variables, given)


def generator_for(engine: Engine, want: AbstractSet[Want], options: Options) -> np.random.Generator | None:
    """The generator of the seed, where something is drawn: to make one takes a tenth of a millisecond."""
    if "samples" in want or engine.capabilities.bound != "exact":
        return np.random.default_rng(options.get("seed", 0))
    return None


def run(model: Model, want: set[Want], evidence: Any, options: Options, **engine_options: Any) -> Result:
    """The Result of a model under evidence."""
    check_options(options, model)
    engine = engine_from(options, **engine_options)
    read = evidence_for(model, evidence)
    return run_engine(model, engine, read, add_trace(engine, frozenset(want), read, options), options)


def add_trace(engine: Engine, want: frozenset[Want], evidence: Evidence, options: Options) -> frozenset[Want]:
    """A want, with what the engine can show of its work where the options ask for it; messages of one row only."""
    if not options.get("trace"):
        return want
    shown = (engine.capabilities.wants & SHOWS) or SHOWS
    if options["trace"] == "messages":  # refused where there are none
        return want | shown | {"messages"}
    return want | (shown - {"messages"} if evidence.batched and "trace" in shown else shown)


def warn_unconverged(result: Result) -> None:
    """A ConvergenceWarning where an iteration was stopped by one of its limits."""
    told = result.diagnostics
    if result.energies is not None and (result.energies[:, 0] == np.inf).any():
        warn(ConvergenceWarning(f"{told['engine']} found no labelling that the hard zeros allow; try another engine"))
    stopped = told.get("stopped")
    if not told["converged"] and stopped in ENDS and (told["tolerance"] != 0 or stopped != "max_iterations"):
        text = f"{told['engine']} {ENDS[told['stopped']]} after {told['iterations']} iterations"
        if told.get("residual") is not None and math.isfinite(told["residual"]):
            text += f", with a residual of {told['residual']:.2g}"
        hint = told.get("hint", "give it more iterations or time; r.diagnostics has more")
        warn(ConvergenceWarning(f"{text}: the answer is the best so far; {hint}"))


@dataclass(frozen=True, slots=True)
class Question:
    """A problem put to an engine, which can be asked again for more; it can be pickled."""

    engine: Engine
    problem: Problem
    options: Options

    def __call__(self, want: frozenset[Want], on_step: Progress | None = None) -> Result:
        """The answer; the generator is made anew each time, so that the same question has the same answer."""
        with clear_interrupts():
            return self.engine.infer(
                self.problem,
                want,
                rng=generator_for(self.engine, want, self.options),
                warm=self.options.get("init"),
                time_limit=self.options.get("time_limit"),
                on_step=on_step,
            )

    def approximation(self, result: Result) -> Any:
        """The distribution that an answer to it stands for."""
        return approximation(result)

    def kl(self, result: Result, log_partition: Any) -> Any:
        """How far that is from the model."""
        return kl_of(result, self.problem, log_partition, dict(self.options))


def question(model: Model, engine: Engine, evidence: Evidence, options: Options) -> Question:
    """A model under evidence put to an engine, which starts where the options say."""
    started: Options = {**options, "init": read_start(model, options.get("init"), evidence, engine)}
    return Question(engine, model.problem.with_evidence(evidence), started)


def ask_visibly(ask: Question, want: frozenset[Want]) -> Result:
    """The answer, with its progress shown where the options say so."""
    most = getattr(ask.engine, "max_iterations", None)
    on_step = Progress(most, ask.options.get("time_limit")) if ask.options.get("progress") else None
    try:
        return ask(want, on_step)
    finally:
        if on_step is not None:
            on_step.end()


def run_engine(model: Model, engine: Engine, evidence: Evidence, want: frozenset[Want], options: Options) -> Result:
    """The same with engine and evidence made."""
    ask = question(model, engine, evidence, options)
    result = ask_visibly(ask, want)
    refuse_impossible(model, engine, evidence, result)
    warn_unconverged(result)
    object.__setattr__(result, "infer_again", ask)  # the Result is nobody else's yet
    return result
