"""Exact inference on published networks: all marginals, with and without evidence, and MAP.

    p(y_v | e) = sum_(y : y_v, e) prod_u p(y_u | y_pa(u)) / p(e)        for all v,        and argmax_y p(y | e)

besag and besag-map start from a model that was just loaded, with nothing compiled for it; besag-built and
besag-map-built have a tree, and were asked with other evidence before. The speeds of all four are relative to the
better of pyAgrum's two engines, which build their tree each time. besag's kernels are loaded before, by a question
about another network, as pyAgrum's code is by its import: added memory is what a first question takes, peak memory
has all.

pyAgrum reads BIF in single precision, hence the tolerance of 1e-5; its MPE (3.3.1) raises "Empty tensor" on all of
these networks. pgmpy takes each variable by elimination: its junction tree asks for 34 PiB on hepar2. mbi's first call
compiles the network, some 10 s; the later ones use it again. pygms's junction tree gives NaN where tables have
zeros, which leaves hepar2. munin1 and link take pyAgrum minutes and up to 12.5 GB: `--slow`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.networks import Array, Evidence, Network, bif, checksums, evidence, read, uncompressed
from benchmarks.suite import Case, Job, Suite

SHORT = 0.02  # seconds, within which questions are put again: small networks take less than a millisecond
PYAGRUM = {"pyagrum-lazy": "LazyPropagation", "pyagrum-shafer": "ShaferShenoyInference"}


def given(network: Network, observed: bool) -> Evidence:
    """The evidence of a case."""
    return evidence(network) if observed else {}


# Contestants: from a network's name, and whether there is evidence, to a Job.


def load_kernels(engine: str) -> None:
    """Asks a small network, so that all is loaded which pyAgrum loads when it is imported."""
    import numba  # noqa: F401  # where it is there, besag compiles for small networks too

    import besag

    network = besag.data.bundled("asia")
    for observed in ({}, {"dysp": "yes"}):
        network.marginals(evidence=observed, engine=engine, n_threads=1)
        network.map(evidence=observed, engine=engine, n_threads=1)


def besag_loaded(name: str, observed: bool, engine: str) -> Job:
    """All marginals, the tree built each time."""
    import besag

    load_kernels(engine)
    network = read(name)
    asked = given(network, observed)

    def run(model: besag.Model) -> Any:
        return model.marginals(evidence=asked, engine=engine, n_threads=1)

    return Job(run, partial(besag_checksums, network), lambda: besag.load(bif(name)), SHORT)


def besag_built(name: str, observed: bool, engine: str) -> Job:
    """All marginals, the tree built before, and asked with other evidence in between."""
    import besag

    load_kernels(engine)
    network, model = read(name), besag.load(bif(name))
    asked, other = given(network, observed), evidence(network, row=1)

    def ask(evidence: Evidence) -> Any:
        return model.marginals(evidence=evidence, engine=engine, n_threads=1)

    return Job(lambda _: ask(asked), partial(besag_checksums, network), lambda: ask(other), SHORT)


def besag_checksums(network: Network, result: Any) -> dict[str, float]:
    """Checksums of a Result."""
    return checksums([result[name] for name in network.names])


def besag_map(name: str, observed: bool, engine: str) -> Job:
    """MAP, the tree built each time."""
    import besag

    load_kernels(engine)
    asked = given(read(name), observed)

    def run(model: besag.Model) -> Any:
        return model, model.map(evidence=asked, engine=engine, n_threads=1)

    return Job(run, map_energy, lambda: besag.load(bif(name)), SHORT)


def besag_map_built(name: str, observed: bool, engine: str) -> Job:
    """MAP, the tree built before, and asked with other evidence in between."""
    import besag

    load_kernels(engine)
    network, model = read(name), besag.load(bif(name))
    asked, other = given(network, observed), evidence(network, row=1)

    def ask(evidence: Evidence) -> Any:
        return model, model.map(evidence=evidence, engine=engine, n_threads=1)

    return Job(lambda _: ask(asked), map_energy, lambda: ask(other), SHORT)


def map_energy(answer: Any) -> dict[str, float]:
    """The energy of the assignment, as the model has it and as the Result says."""
    model, result = answer
    energy = float(model.energy(result.assignment))
    return {"energy": energy, "energy of the result over it": float(result.energy) / energy}


def pyagrum_network(name: str) -> Any:
    """The network as pyAgrum reads it."""
    import pyagrum

    pyagrum.setNumberOfThreads(1)
    with uncompressed(name) as path:
        return pyagrum.loadBN(path)


def pyagrum_engine(network: Any, contestant: str) -> Any:
    """An engine of pyAgrum on a network."""
    import pyagrum

    return getattr(pyagrum, PYAGRUM[contestant])(network)


def pyagrum_job(name: str, observed: bool, contestant: str) -> Job:
    """All marginals. The engine is part of the answer, so that taking it down is not timed."""
    network, bayes = read(name), pyagrum_network(name)
    asked = given(network, observed)

    def run() -> Any:
        engine = pyagrum_engine(bayes, contestant)
        engine.setEvidence(asked)
        engine.makeInference()
        return engine, [engine.posterior(variable) for variable in network.names]

    return Job(run, lambda answer: checksums([tensor.toarray() for tensor in answer[1]]), least_seconds=SHORT)


def pgmpy_elimination(name: str) -> tuple[Any, Callable[[str, Any], Array]]:
    """pgmpy's variable elimination on a network, and its answer about a variable as an array in file order."""
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    network = read(name)
    states = dict(zip(network.names, network.states, strict=True))
    with uncompressed(name) as path:
        model = BIFReader(path).get_model()

    def array(variable: str, factor: Any) -> Array:
        return np.array([factor.values[factor.state_names[variable].index(state)] for state in states[variable]])

    return lambda: VariableElimination(model), array


def pgmpy_job(name: str, observed: bool) -> Job:
    """Variable elimination for each variable that is not observed."""
    network = read(name)
    asked = given(network, observed)
    make, array = pgmpy_elimination(name)
    free = [variable for variable in network.names if variable not in asked]

    def run() -> dict[str, Any]:
        engine = make()
        return {v: engine.query([v], evidence=asked, show_progress=False) for v in free}

    def summary(answer: dict[str, Any]) -> dict[str, float]:
        known = {v: one_hot(network, v, state) for v, state in asked.items()}
        return checksums([known[v] if v in known else array(v, answer[v]) for v in network.names])

    return Job(run, summary, least_seconds=SHORT)


def one_hot(network: Network, variable: str, state: str) -> Array:
    """The marginal of an observed variable."""
    states = network.states[network.names.index(variable)]
    return np.array([float(other == state) for other in states])


def mbi_job(name: str, observed: bool) -> Job:
    """mbi's Shafer-Shenoy oracle, which is its choice for tables with zeros; evidence is a factor of 0 and -inf."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi

    network = read(name)
    domain = mbi.Domain(network.names, [len(states) for states in network.states])
    scopes = [tuple(network.names[u] for u in (*network.parents[v], v)) for v in range(len(network.names))]
    with np.errstate(divide="ignore"):
        tables = [mbi.Factor(domain.project(s), np.log(t)) for s, t in zip(scopes, network.tables, strict=True)]
        known = {v: np.log(one_hot(network, v, state)) for v, state in given(network, observed).items()}

    def run() -> list[Array]:
        factors = dict(zip(scopes, tables, strict=True))
        for v in network.names:
            weights = mbi.Factor(domain.project((v,)), known.get(v, np.zeros(domain[v])))
            factors[v,] = factors[v,] + weights if (v,) in factors else weights
        potentials = mbi.CliqueVector(domain, list(factors), factors)
        marginals = mbi.marginal_oracles.message_passing_shafer_shenoy(potentials)
        return [np.asarray(marginals[v,].values) for v in network.names]

    return Job(run, checksums, least_seconds=SHORT)


def pygms_job(name: str, observed: bool) -> Job:
    """The junction tree of pygms on a min-fill order; scopes in ascending order, as its factors want them."""
    import pygms
    from pygms.wmb import JTree

    network = read(name)
    variables = [pygms.Var(v, len(states)) for v, states in enumerate(network.states)]
    scopes = [(*parents, v) for v, parents in enumerate(network.parents)]
    factors = [
        pygms.Factor([variables[v] for v in sorted(scope)], np.transpose(table, np.argsort(scope)))
        for scope, table in zip(scopes, network.tables, strict=True)
    ]
    places = {variable: v for v, variable in enumerate(network.names)}
    asked = {places[v]: network.states[places[v]].index(state) for v, state in given(network, observed).items()}

    def run() -> Any:
        model = pygms.GraphModel(factors)
        model.condition(asked)
        model.toLog()
        tree = JTree(model, elimOrder=pygms.eliminationOrder(model, "minfill")[0])
        return tree.beliefs([(variable,) for variable in variables])

    return Job(
        run, lambda beliefs: checksums([np.asarray(beliefs[x,].table).ravel() for x in variables]), least_seconds=SHORT
    )


SMALL: dict[str, dict[str, Callable[..., Job]]] = {
    "alarm": {"pgmpy": pgmpy_job, "mbi": mbi_job},
    "hepar2": {"pgmpy": pgmpy_job, "mbi": mbi_job, "pygms": pygms_job},
    "win95pts": {"pgmpy": pgmpy_job},
}
LARGE = ("munin1", "link")
NETWORKS = ("alarm", "hepar2", "win95pts", "andes", "pigs", "water", "mildew", "barley", "diabetes", "munin", *LARGE)


def case(name: str, observed: bool, engine: str = "junction_tree") -> Case:
    """One network, all contestants."""
    own = {
        "besag": besag_loaded,
        "besag-built": besag_built,
        "besag-map": besag_map,
        "besag-map-built": besag_map_built,
    }
    return Case(
        f"{name}, evidence" if observed else name,
        {contestant: partial(job, engine=engine) for contestant, job in own.items()}
        | {contestant: partial(pyagrum_job, contestant=contestant) for contestant in PYAGRUM}
        | SMALL.get(name, {}),
        {"name": name, "observed": observed},
        tolerance=1e-5,
        baseline=tuple(PYAGRUM),
        patience=20.0 if name in SMALL else 5.0,  # mbi's first call must not be its only one
        time_limit=150.0,
        memory_limit=14_000_000_000,
        slow=name in LARGE,
    )


ENVIRONMENTS = dict.fromkeys(("besag-built", "besag-map", "besag-map-built"), "besag") | dict.fromkeys(
    PYAGRUM, "pyagrum"
)

SUITE = Suite(
    title="exact inference on published networks",
    cases=tuple(case(name, observed) for name in NETWORKS for observed in (False, True)),
    environments=ENVIRONMENTS,
    averaged=True,
)
