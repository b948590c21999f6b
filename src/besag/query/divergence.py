"""KL(p || q) of two models, or of the labellings of a frame and a model.

    KL(p || q) = E_p[H_q] + log Z_q - entropy(p),     entropy(p) = log Z_p + E_p[H_p]

H_q is a sum over factors, so that what it takes are the marginals of p on the scopes of q's factors. Those within a
factor of p come from one inference. For others p gets factors that are 1 everywhere, and exact inference then has their
marginals too; where it does not fit, or the engine is approximate, each of them is a question of its own.

The empirical distribution of N labellings, 004, has probability n(y) / N at y:

    KL(empirical || q) = sum_y n(y)/N ln(n(y)/N) - (1/N) sum_i log q(y_i)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.infer.auto.engine import Auto, patience_of
from besag.infer.engine import ENGINES, Engine, Want
from besag.infer.iterate import Clock
from besag.infer.result import Result, factor_offsets
from besag.query.estimate import Estimate
from besag.query.labels import read_labels
from besag.query.run import Options, check_options, engine_from, evidence_for, run, run_engine
from besag.query.verbs import expect_values, joint

if TYPE_CHECKING:
    from besag.model.model import Model

WANTS: frozenset[Want] = frozenset({"log_partition", "variables", "factors", "moments"})


def kl(p: Any, q: Model, **options: Unpack[Options]) -> Estimate:
    """KL(p || q) = sum_y p(y) log(p(y) / q(y)), in nats, of two models on the same variables.

    p may also be a frame of labellings: their empirical distribution, 004. The answer is +inf where q rules out what p
    allows. Its `bound` is "exact", or "estimate" where an inference was approximate.

    >>> import besag
    >>> one = besag.bayesian_network("A", cpts={"A": [0.5, 0.5]})
    >>> round(besag.kl(one, one.with_cpt("A", [0.25, 0.75])), 6)
    0.143841
    """
    check_options(options)
    if not hasattr(q, "variables"):
        raise ModelError(f"kl takes two models, or a frame of labellings and a model, got {type(q).__name__} second")
    if not hasattr(p, "variables"):
        return _kl_of_labellings(p, q, options)
    _check_variables(p, q)
    clock = Clock(options.get("time_limit"))
    result, masses = _marginals(p, q, _left(options, clock, 0.5), clock)
    entropy = float(result.log_partition) - expect_values(result.moments, _log_potentials(p, result))
    energy = 0.0
    for mass, logs in masses:
        if ((mass > 0) & (logs == -np.inf)).any():
            return Estimate(np.inf, *_sure(result.bound))
        energy -= expect_values(mass, logs)
    of_q = run(q, {"log_partition"}, None, _left(options, clock))
    exact = result.bound == of_q.bound == "exact"
    value = max(energy + float(of_q.log_partition) - entropy, 0.0)
    return Estimate(value, *_sure("exact" if exact else "estimate"))


def _sure(bound: str) -> tuple[float | None, str]:
    """Standard error and bound of an Estimate."""
    return (0.0, "exact") if bound == "exact" else (None, "estimate")


def _left(options: Options, clock: Clock, share: float = 1.0) -> Options:
    """The options with a share of the time that is left."""
    return options if clock.end == np.inf else Options({**options, "time_limit": max(share * clock.left, 1e-3)})


def _check_variables(p: Model, q: Model) -> None:
    names = [variable.name for variable in p.variables]
    for variable in q.variables:
        if variable.name not in names or p.variable(variable.name).states != variable.states:
            raise ModelError(f"kl needs models on the same variables and states; {variable.name!r} differs")
    if len(q.variables) != len(names):
        raise ModelError(f"kl needs models on the same variables; p has {len(names)}, q has {len(q.variables)}")


def _kl_of_labellings(given: Any, q: Model, options: Options) -> Estimate:
    codes, _ = read_labels(q, given)
    if len(codes) == 0:
        raise ModelError("kl of a frame and a model needs at least one row")
    _, counts = np.unique(codes, axis=0, return_counts=True)
    share = counts / len(codes)
    mean = float(q.problem.energy(codes).mean())
    result = run(q, {"log_partition"}, None, options)
    value = float((share * np.log(share)).sum()) + mean + float(result.log_partition)
    return Estimate(max(value, 0.0), *_sure(result.bound))


# Marginals of p on the scopes of q -----------------------------------------------------------------------------------

Mass = tuple[Array, Array]  # marginals of p and log-potentials of q, of the same shape


def _marginals(p: Model, q: Model, options: Options, clock: Clock) -> tuple[Result, Iterator[Mass]]:
    """The answer of one inference on p, and p on the scope of every factor of q."""
    engine, places = engine_from(options), np.array([p.variables.index(v.name) for v in q.variables], np.int64)
    homes = _Homes(p, q, places)
    lost = homes.missing()
    if lost:
        try:
            joined = _with_scopes(p, [tuple(sorted(places[q.graph.scope(f)].tolist())) for f in lost])
            limit = patience_of(options.get("time_limit")) if isinstance(engine, Auto) else options.get("time_limit")
            result = _ask(joined, _exact(engine), Options({**options, "time_limit": limit}))
            return result, _Homes(joined, q, places).masses(result)
        except (TooLargeError, CapabilityError):
            pass
    result = _ask(p, engine, options)
    return result, _and_asked(homes, result, lost, options, clock)


def _ask(model: Model, engine: Engine, options: Options) -> Result:
    return run_engine(model, engine, evidence_for(model, None), WANTS, options)


def _exact(engine: Engine) -> Engine:
    """The engine itself, or the part of `auto` that is exact; CapabilityError where it is approximate."""
    if isinstance(engine, Auto):
        return ENGINES.read("exact", memory_limit=engine.memory_limit, n_threads=engine.n_threads)
    if engine.capabilities.bound != "exact":
        raise CapabilityError("approximate engines are not asked about factors that say nothing")
    return engine


def _with_scopes(p: Model, scopes: list[tuple[int, ...]]) -> Model:
    """p with a factor that is 1 everywhere on each of some scopes."""
    from besag.model.model import FactorGroup
    from besag.model.template import Template

    shapes: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for scope in scopes:
        shapes[tuple(p.variables.cardinalities[list(scope)].tolist())].add(scope)
    groups = [
        FactorGroup(Template(f"kl[{','.join(map(str, shape))}]", shape), np.array(sorted(own)))
        for shape, own in shapes.items()
    ]
    added = sum(group.template.n_parameters for group in groups)
    support = None if p.support is None else np.append(p.support, np.ones(added, np.bool_))
    theta = np.append(p.theta, np.zeros(added))
    return p.with_parts(groups=(*p.groups, *groups), theta=theta, support=support)


class _Homes:
    """A factor of p around the scope of each factor of q, whose variables p has at `places`."""

    def __init__(self, p: Model, q: Model, places: IntArray) -> None:
        self.p, self.q, self.places = p, q, places
        same = len(p.graph.blocks) == len(q.graph.blocks) and (places == np.arange(len(places))).all()
        blocks = zip(p.graph.blocks, q.graph.blocks, strict=False)
        self.same = same and all(np.array_equal(one.scopes, other.scopes) for one, other in blocks)
        self.home = {} if self.same else self._find()

    def _find(self) -> dict[int, int]:
        graph, around = self.p.graph, defaultdict[int, set[int]](set)
        for f in range(graph.n_factors):
            for v in graph.scope(f).tolist():
                around[v].add(f)
        found = {}
        for f in range(self.q.graph.n_factors):
            sets = sorted((around[v] for v in self.places[self.q.graph.scope(f)].tolist()), key=len)
            if common := set.intersection(*sets):
                found[f] = min(common, key=lambda f: len(graph.scope(f)))
        return found

    def missing(self) -> list[int]:
        """The factors of q of two or more variables that no factor of p is around."""
        if self.same:
            return []
        scopes = ((f, len(self.q.graph.scope(f))) for f in range(self.q.graph.n_factors))
        return [f for f, n in scopes if n > 1 and f not in self.home]

    def masses(self, result: Result) -> Iterator[Mass]:
        """Of the factors of q that have a home, or one variable."""
        graph, values = self.q.graph, result.factor_marginals
        assert values is not None
        if self.same:
            dense = self.q.problem.expanded(frozenset(), 2**62)
            offsets = factor_offsets(self.p.graph)
            for number, block in enumerate(graph.blocks):
                tables, readers = dense.block_tables(number)
                mass = values[0, offsets[block.start] : offsets[block.stop]]
                if len(readers):
                    yield mass.reshape(len(readers), -1), tables.reshape(len(tables), -1)[readers]
            return
        for f in range(graph.n_factors):
            scope = self.places[graph.scope(f)]
            if f in self.home:
                yield self._part(values[0], self.home[f], scope), self.q.problem.table(f)
            elif len(scope) == 1:
                yield result[self.p.variables.names[int(scope[0])]], self.q.problem.table(f)

    def _part(self, values: Array, home: int, scope: IntArray) -> Array:
        """The marginal of some of the variables of a factor of p, in the order of `scope`."""
        offsets, around = factor_offsets(self.p.graph), self.p.graph.scope(home).tolist()
        table = values[offsets[home] : offsets[home + 1]].reshape(self.p.variables.cardinalities[around])
        table = table.sum(axis=tuple(axis for axis, v in enumerate(around) if v not in scope))
        kept = [v for v in around if v in scope]
        return np.asarray(table.transpose([kept.index(v) for v in scope.tolist()]))


def _and_asked(homes: _Homes, result: Result, lost: list[int], options: Options, clock: Clock) -> Iterator[Mass]:
    """All of them, those without a home by questions of their own; TooLargeError where there is no time for these."""
    yield from homes.masses(result)
    began, q = clock.now(), homes.q
    for n, f in enumerate(lost):
        yield joint(homes.p, q.variables.names_at(q.graph.scope(f)), None, _left(options, clock)), q.problem.table(f)
        seconds = (clock.now() - began) / (n + 1) * (len(lost) - n - 1)
        if seconds > max(clock.left, 0.0):
            raise TooLargeError(
                f"kl takes the joint distribution of {len(lost)} scopes that no factor of p has, about {seconds:.2g} s "
                f"more, and time_limit leaves {max(clock.left, 0.0):.2g} s; give it more time",
                seconds=seconds,
            )


def _log_potentials(p: Model, result: Result) -> Array:
    """Those that the moments belong to: of p, with zeros for factors that say nothing."""
    own = p.problem.log_potentials
    return np.append(own, np.zeros(len(result.moments) - len(own)))
