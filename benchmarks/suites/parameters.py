"""CPTs of published networks from complete rows, and rows from their CPTs.

    p(x | u) = N_ux / N_u        for every configuration u of parents that the rows have

The rows are drawn by `benchmarks.networks`, in parts with seeds of their own. Each contestant has them in the in-memory
table that it takes, made beforehand: a DataFrame of categories for besag, pgmpy and pyAgrum, a tensor of codes for
pomegranate. What is timed begins with that table and ends with the CPTs. Their checksums must agree to 1e-10;
pomegranate counts in single precision, so that its own is reported apart.

Forward samples end in what each contestant makes of them: a DataFrame for besag and pgmpy, a database of pyAgrum's.
pomegranate takes milliseconds a row, and is left out. `error` is the mean absolute difference between their shares and
the CPTs, weighted by rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.networks import Array, IntArray, Network, read, sample, uncompressed
from benchmarks.suite import Case, Job, Suite, Summary

ROWS = 1_000_000
PART = 100_000  # rows drawn at a time


def rows_of(network: Network, n_rows: int) -> Any:
    """(V, N) codes of a byte each, a row a variable."""
    parts = [sample(network, min(PART, n_rows - at), seed=at) for at in range(0, n_rows, PART)]
    return np.concatenate([part.astype(np.int8) for part in parts]).T.copy()


def frame_of(network: Network, codes: Any) -> Any:
    """The rows as a DataFrame of categories, which keeps the codes as they are."""
    import pandas as pd

    columns = zip(network.names, network.states, codes, strict=True)
    return pd.DataFrame({name: pd.Categorical.from_codes(own, pd.Index(states)) for name, states, own in columns})


def counts_of(network: Network, codes: Any) -> list[Array]:
    """N_ux of each family, axes (parents..., child)."""
    found = []
    for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        joint = np.zeros(codes.shape[1], np.int64)
        for u, size in zip([*parents, v], table.shape, strict=True):
            joint = joint * size + codes[u]
        found.append(np.bincount(joint, minlength=table.size).reshape(table.shape).astype(np.float64))
    return found


def checksums(network: Network, codes: Any, cpts: Sequence[Array], name: str = "CPTs") -> Summary:
    """A sum over the rows of CPTs whose parents' configuration was seen, with weights that tell entries apart."""
    total = 0.0
    for v, (counts, cpt) in enumerate(zip(counts_of(network, codes), cpts, strict=True)):
        seen = counts.sum(axis=-1) > 0
        weights = 2 + np.cos(np.arange(cpt.size)).reshape(cpt.shape) * (2 + np.sin(v))
        total += float((weights * cpt)[seen].sum())
    return {name: total}


def error(network: Network, codes: Any) -> Summary:
    """The mean difference between the shares of samples (V, N) and the CPTs they were drawn from."""
    wrong = []
    for counts, truth in zip(counts_of(network, codes), network.tables, strict=True):
        rows = counts.sum(axis=-1, keepdims=True)
        shares = counts / np.maximum(rows, 1)
        wrong.append(float((np.abs(shares - truth) * rows).sum() / rows.sum()))
    return {"error": float(np.mean(wrong))}


def edges_of(network: Network) -> list[tuple[str, str]]:
    """(parent, child)."""
    pairs = zip(network.names, network.parents, strict=True)
    return [(network.names[p], child) for child, parents in pairs for p in parents]


def family(network: Network, v: int) -> list[str]:
    """The parents of a variable, and itself."""
    return [network.names[u] for u in (*network.parents[v], v)]


# Parameters ----------------------------------------------------------------------------------------------------------


def besag_parameters(name: str, n_rows: int) -> Job:
    """BayesianNetwork.fit of the DataFrame, one thread."""
    import besag

    network = read(name)
    codes = rows_of(network, n_rows)
    frame, edges = frame_of(network, codes), edges_of(network)

    def summary(found: Any) -> Summary:
        cpts = []
        for v, variable in enumerate(network.names):
            above = [network.names.index(u) for u in found.model_.parents(variable)]
            cpts.append(found.model_.cpt(variable).transpose([*(above.index(u) for u in network.parents[v]), -1]))
        return checksums(network, codes, cpts)

    warnings.simplefilter("ignore", besag.errors.DataWarning)  # of configurations that were never seen
    return Job(lambda: besag.BayesianNetwork(edges, n_jobs=1).fit(frame), summary)


def pyagrum_parameters(name: str, n_rows: int) -> Job:
    """BNLearner of the DataFrame, one thread."""
    import pyagrum as gum

    network = read(name)
    codes = rows_of(network, n_rows)
    frame = frame_of(network, codes)
    with uncompressed(name) as path:
        template = gum.loadBN(path)

    def run() -> Any:
        learner = gum.BNLearner(frame, template)
        learner.setNumberOfThreads(1)
        learner.useSmoothingPrior(1e-12)  # without a prior it refuses configurations that were never seen
        return learner.learnParameters(template.dag())

    def summary(found: Any) -> Summary:
        orders = (family(network, v) for v in range(len(network.names)))
        cpts = [np.array(found.cpt(own[-1]).reorganize(own[::-1]).toarray()) for own in orders]
        return checksums(network, codes, cpts)

    return Job(run, summary)


def pgmpy_parameters(name: str, n_rows: int) -> Job:
    """DiscreteBayesianNetwork.fit of the DataFrame."""
    from pgmpy.models import DiscreteBayesianNetwork

    network = read(name)
    codes = rows_of(network, n_rows)
    frame, edges = frame_of(network, codes), edges_of(network)

    def run() -> Any:
        model = DiscreteBayesianNetwork(edges)
        model.add_nodes_from(network.names)
        found = model.fit(frame)
        return model if found is None else found

    def summary(found: Any) -> Summary:
        cpts = []
        for v, states in enumerate(network.states):
            own, factor = family(network, v), found.get_cpds(network.names[v]).to_factor()
            factor = factor.transpose(own) if hasattr(factor, "transpose") else factor
            values = np.transpose(factor.values, [factor.variables.index(u) for u in own])
            cpts.append(_full(network, values, own, factor.state_names, states))
        return checksums(network, codes, cpts)

    return Job(run, summary)


def _full(network: Network, values: Any, own: list[str], names: Any, states: list[str]) -> Array:
    """A table over the states that were seen as one over all states, in file order."""
    full = np.zeros([len(network.states[network.names.index(u)]) for u in own])
    places = [[network.states[network.names.index(u)].index(str(state)) for state in names[u]] for u in own]
    full[np.ix_(*places)] = values
    return full


def pomegranate_parameters(name: str, n_rows: int) -> Job:
    """BayesianNetwork.fit of a tensor."""
    import torch
    from pomegranate.bayesian_network import BayesianNetwork

    torch.set_num_threads(1)
    network = read(name)
    codes = rows_of(network, n_rows)
    tensor = torch.from_numpy(codes.T.astype(np.int64))
    structure = tuple(tuple(parents) for parents in network.parents)

    def summary(found: Any) -> Summary:
        cpts = []
        for parents, own in zip(network.parents, found.distributions, strict=True):
            table = own.probs[0].numpy()
            cpts.append(table.astype(np.float64) if parents else table.reshape(-1).astype(np.float64))
        return checksums(network, codes, _padded(network, cpts), "CPTs in single precision")

    return Job(lambda: BayesianNetwork(structure=structure).fit(tensor), summary)


def _padded(network: Network, cpts: Sequence[Array]) -> list[Array]:
    """Tables over the states up to the largest seen as ones over all states."""
    full = [np.zeros(table.shape) for table in network.tables]
    for whole, part in zip(full, cpts, strict=True):
        whole[tuple(slice(0, size) for size in part.shape)] = part
    return full


# Samples -------------------------------------------------------------------------------------------------------------


def besag_samples(name: str, n_rows: int) -> Job:
    """Model.sample, one thread."""
    import besag

    network = read(name)
    with uncompressed(name) as path:
        model = besag.load(path)
    return Job(
        lambda: model.sample(n_rows, seed=1, n_threads=1),
        lambda found: error(network, np.stack([found[variable].cat.codes for variable in network.names])),
    )


def pyagrum_samples(name: str, n_rows: int) -> Job:
    """BNDatabaseGenerator; that its database becomes a DataFrame is not timed."""
    import pyagrum as gum

    network = read(name)
    with uncompressed(name) as path:
        model = gum.loadBN(path)

    def run() -> Any:
        generator = gum.BNDatabaseGenerator(model)
        generator.drawSamples(n_rows)
        return generator

    return Job(run, lambda found: error(network, _codes(network, found.to_pandas())))


def pgmpy_samples(name: str, n_rows: int) -> Job:
    """BayesianModelSampling.forward_sample."""
    from pgmpy.readwrite import BIFReader
    from pgmpy.sampling import BayesianModelSampling

    network = read(name)
    with uncompressed(name) as path:
        model = BIFReader(path).get_model()
    sampling = BayesianModelSampling(model)
    return Job(
        lambda: sampling.forward_sample(size=n_rows, show_progress=False, n_jobs=1),
        lambda found: error(network, _codes(network, found)),
    )


def _codes(network: Network, frame: Any) -> IntArray:
    """(V, N) of a DataFrame of names of states."""
    import pandas as pd

    columns = zip(network.names, network.states, strict=True)
    return np.stack([pd.Categorical(frame[name].astype(str), states).codes for name, states in columns])


PARAMETERS: dict[str, Callable[..., Job]] = {
    "besag": besag_parameters,
    "pyagrum": pyagrum_parameters,
    "pgmpy": pgmpy_parameters,
    "pomegranate": pomegranate_parameters,
}
SAMPLES: dict[str, Callable[..., Job]] = {
    "besag": besag_samples,
    "pyagrum": pyagrum_samples,
    "pgmpy": pgmpy_samples,
}


def case(name: str, what: str, contestants: dict[str, Callable[..., Job]], tolerance: float) -> Case:
    """All contestants on one network."""
    title, given = f"{name}, {what} {ROWS:,} rows", {"name": name, "n_rows": ROWS}
    return Case(title, contestants, given, tolerance=tolerance, patience=20.0, time_limit=300.0, slow=name != "alarm")


SUITE = Suite(
    title="Parameters of Bayesian networks, and forward samples",
    cases=(
        case("alarm", "parameters from", PARAMETERS, 1e-10),
        case("hepar2", "parameters from", PARAMETERS, 1e-10),
        case("alarm", "forward samples of", SAMPLES, float("inf")),
        case("hepar2", "forward samples of", SAMPLES, float("inf")),
    ),
    scores=("error",),
)
