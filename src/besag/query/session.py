"""A session: evidence that changes, and posteriors that follow it; the one mutable object of the library.

    s.observe(BP="LOW")    s.forget("BP")    s["HYPOVOLEMIA"]    s.log_partition    s.marginals()

A junction tree is planned once for any evidence. A change makes nothing; a question makes the messages that it needs
and that the changes since the last one have reached (`besag.infer.junction.session`).
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Array
from besag.errors import CapabilityError, EvidenceError
from besag.graph.evidence import is_missing, read_doubting, read_evidence, structure_hint
from besag.infer.engine import ENGINES
from besag.infer.iterate import clear_interrupts
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.session import Incremental
from besag.infer.result import Diagnostics, Result
from besag.markup import make_card, make_table
from besag.query.conflict import refuse_impossible
from besag.query.run import Options, check_options, engine_from

if TYPE_CHECKING:
    from besag.model.model import Model

MAX_SHOWN = 12  # observations in a table


class _Known(NamedTuple):
    """A variable that was named: its number, and the log-weights (K,) that each of its states stands for."""

    v: int
    states: dict[str, Array]


class Session:
    """Evidence that changes: observe, forget, and ask again; only messages that changed are made again.

    s[name] is p(name | evidence), (K,); s.log_partition is log Z, for a Bayesian network log P(evidence). Evidence is
    written as for `model.marginals`: a state, a list of allowed states, or a likelihood. Impossible evidence is an
    EvidenceError when something is asked; the session is as good as before once it is forgotten. A lock keeps threads
    from harming each other's answers, but they would see each other's evidence: use a session for each.

    >>> import besag
    >>> s = besag.data.bundled("sprinkler").session()
    >>> s.observe(wet_grass="yes")
    >>> s["rain"].round(4)
    array([0.2921, 0.7079])
    >>> s.observe(sprinkler="on")
    >>> s["rain"].round(4)
    array([0.6796, 0.3204])
    >>> s.forget("sprinkler")
    >>> s.evidence
    {'wet_grass': 'yes'}
    """

    def __init__(self, model: Model, options: Options) -> None:
        check_options(options)
        engine = engine_from({"engine": "junction_tree", **options})
        if not isinstance(engine, JunctionTree):
            raise CapabilityError(
                f"engine {ENGINES.name_of(engine)!r} has no sessions; leave engine out, or give 'junction_tree'"
            )
        self.model, self.engine = model, engine
        with clear_interrupts():
            self._tree = Incremental(engine, model.problem)
        self._known: dict[str, _Known] = {}
        self._evidence: dict[str, Any] = {}
        self._lock = threading.Lock()

    def observe(self, evidence: Mapping[str, Any] | None = None, /, **states: Any) -> None:
        """These variables are known: {name: state}, or name=state; what is None is forgotten, the rest stays as it is.

        Where one of them is not as it should be, none is taken.
        """
        if evidence is not None:
            if not isinstance(evidence, Mapping):
                hint = "; a row of a DataFrame is frame.iloc[0].to_dict()" if hasattr(evidence, "iloc") else ""
                hint = structure_hint(evidence) or hint
                raise EvidenceError(f"evidence must be a dict {{name: state}}, got {type(evidence).__name__}{hint}")
            states = {**{str(name): value for name, value in evidence.items()}, **states}
        found = [self._read(name, value) for name, value in states.items()]
        with self._lock:
            for name, value, v, log_weights in found:
                if log_weights is None:
                    self._evidence.pop(name, None)
                    self._tree.forget(v)
                else:
                    self._evidence[name] = value
                    self._tree.observe(v, log_weights)

    def _read(self, name: str, value: Any) -> tuple[str, Any, int, Array | None]:
        """Name, value, variable and log-weights of an observation; a state is looked up once."""
        known = self._known.get(name) or self._look_up(name)
        log_weights = known.states.get(value) if type(value) is str else None
        if log_weights is not None or is_missing(value):
            return name, value, known.v, log_weights
        read = read_evidence(self.model.variables, {name: value})
        code = int(read.observed[0, known.v])
        if code >= 0:
            state = self.model.variables.states(known.v)[code]
            return name, state, known.v, known.states[state]
        assert read.log_weights is not None
        first, last = self.model.variables.state_offsets[known.v : known.v + 2]
        return name, copy.copy(value), known.v, read.log_weights[0, first:last]

    def _look_up(self, name: str) -> _Known:
        variables = self.model.variables
        v = variables.names.find(name)
        if v is None:
            raise EvidenceError(variables.unknown(name))
        states = variables.states(v)
        rows = np.where(np.eye(len(states), dtype=np.bool_), 0.0, -np.inf)
        self._known[name] = _Known(v, dict(zip(states, rows, strict=True)))
        return self._known[name]

    def forget(self, *names: str) -> None:
        """These variables are no longer observed; without a name, none is."""
        numbers = {name: (self._known.get(name) or self._look_up(name)).v for name in map(str, names or self._evidence)}
        with self._lock:
            for name, v in numbers.items():
                self._evidence.pop(name, None)
                self._tree.forget(v)

    @property
    def evidence(self) -> dict[str, Any]:
        """What is observed, {name: value}."""
        return dict(self._evidence)

    def __getitem__(self, name: str) -> Array:
        """p(name | evidence), (K,)."""
        known = self._known.get(name)
        v = self.model.variables.index(name) if known is None else known.v
        with self._lock:
            answer = self._tree.marginal(v)
        return self._refuse() if answer is None else answer

    @property
    def log_partition(self) -> float:
        """log Z under the evidence: for a Bayesian network log P(evidence)."""
        with self._lock:
            value = self._tree.log_partition()
        return value if value > -math.inf else self._refuse()

    def marginals(self) -> Result:
        """The marginals of all variables, as `model.marginals` gives them."""
        with self._lock:
            probabilities, log_z = self._tree.marginals(), self._tree.log_partition()
        return self._refuse() if probabilities is None else self._result(log_z, probabilities)

    @property
    def n_messages(self) -> int:
        """How many messages have been made so far."""
        return self._tree.n_made

    def _result(self, log_z: float, probabilities: Array | None = None) -> Result:
        told = Diagnostics(
            engine="junction_tree",
            converged=True,
            iterations=1,
            rows=1,
            domain=self._tree.semiring.name.lower(),
            width=self._tree.plan.sketch.order.width,
        )
        answer = None if probabilities is None else probabilities[None]
        return Result(self.model.graph, "exact", told, log_partitions=np.array([log_z]), probabilities=answer)

    def _refuse(self) -> Any:
        """EvidenceError with a minimal conflict."""
        evidence, _ = read_doubting(self.model.variables, self._evidence)  # what there was to warn of, `observe` did
        refuse_impossible(self.model, self.engine, evidence, self._result(-math.inf))
        raise AssertionError("the engine finds possible what the session does not")

    def __repr__(self) -> str:
        return f"Session({len(self.model.variables)} variables, {len(self._evidence)} observed)"

    def _repr_html_(self) -> str:
        rows = [(name, _text(value)) for name, value in list(self._evidence.items())[:MAX_SHOWN]]
        left = len(self._evidence) - len(rows)
        return make_card(repr(self), (), make_table(("observed", ""), rows, f"... {left} more" if left else ""))

    def __str__(self) -> str:
        """What is observed, as a table."""
        width = max((len(name) for name in self._evidence), default=0)
        shown = list(self._evidence.items())[:MAX_SHOWN]
        lines = [f"  {name:<{width}}  {_text(value)}" for name, value in shown]
        if len(self._evidence) > MAX_SHOWN:
            lines.append(f"  ... {len(self._evidence) - MAX_SHOWN} more")
        return "\n".join([repr(self), *lines])


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{state}: {likelihood:g}" for state, likelihood in value.items())
    return value if isinstance(value, str) else " or ".join(map(str, value))
