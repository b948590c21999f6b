"""The usual questions: what people ask first, of models that are small but take the same kernels as large ones.

A question is a function without arguments, here in the order in which they are asked: the longest first, so that no
core is left with one at the end, and those that share kernels not at once, or they would compile them twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from besag.model.model import Model


def _network() -> Model:
    """A Bayesian network with cycles, large enough for compiled kernels; states are texts."""
    from besag.data.synthetic import random_model

    return random_model("bayesian_network", 40, seed=1, n_states=(2, 4))


def _image(n_states: int, side: int = 40) -> Model:
    from besag.factors import potts
    from besag.model.build import grid

    unary = np.random.default_rng(0).normal(size=(side, side, n_states))
    return grid((side, side), n_states, unary=unary, pairwise=potts(n_states), weights=0.7)


def marginals() -> None:
    """Marginals, joint distributions, log Z and a session of a network, and the best states of some variables."""
    model = _network()
    names = [variable.name for variable in model.variables]
    evidence = {name: model.variable(name).states[0] for name in names[::13]}
    model.marginals(evidence=evidence)
    model.marginals([names[-1]], evidence)
    model.joint(names[1:4], evidence)
    model.marginal_map(names[1:3], evidence)
    model.log_partition(evidence)
    session = model.session()
    session.observe(**evidence)
    _ = session[names[1]]


def rows() -> None:
    """Marginals of a table of evidence."""
    model = _network()
    frame = model.sample(60, seed=1)
    model.marginals(evidence=frame.iloc[:, :3])


def best() -> None:
    """The best labelling, and the three best."""
    model = _network()
    model.map()
    model.map(k=3)


def draws() -> None:
    """Samples, with evidence and without."""
    model = _network()
    name = model.variables.names[-1]
    model.sample(1000, seed=1)
    model.sample(1000, {name: model.variable(name).states[0]}, seed=1)


def chains() -> None:
    """Marginals, the best labelling and samples of chains and trees."""
    from besag.data.synthetic import random_model
    from besag.model.build import chain as chain_of

    for n_states in (2, 3, 4):
        _ask(chain_of(np.zeros((1000, n_states)), 2 * np.eye(n_states)))
    _ask(random_model("polytree", 1000, seed=1, n_states=(2, 4)))


def _ask(model: Model) -> None:
    model.marginals()
    model.map()
    model.sample(10, seed=1)


def messages() -> None:
    """Loopy belief propagation on grids."""
    for n_states in (2, 3):
        image = _image(n_states)
        image.marginals(engine="bp[max_iterations=3]")
        image.map(engine="bp[max_iterations=3]")


def estimates() -> None:
    """Grids that are too large for exact answers, without an engine named."""
    for n_states in (2, 3):
        _image(n_states).marginals(time_limit=5)


def labellings() -> None:
    """The best labelling of grids."""
    for n_states in (2, 3):
        _image(n_states).map(time_limit=5)


def single_sites() -> None:
    """Gibbs sampling, mean field and tree-reweighted messages on grids."""
    for n_states in (2, 3):
        for engine in ("gibbs[n_samples=20]", "mean_field[max_iterations=3]", "trw[max_iterations=3]"):
            _image(n_states).marginals(engine=engine)


def sequences() -> None:
    """Chain CRFs: fit, labels, marginals."""
    from besag.estimators.chain_crf.estimator import ChainCRF

    rng = np.random.default_rng(0)
    X = [[[f"w{word}", f"s{word % 5}"] for word in rng.integers(50, size=15)] for _ in range(60)]
    for n_labels in (2, 3, 4):
        y = [["ABCD"[int(item[0][1:]) % n_labels] for item in items] for items in X]
        crf = ChainCRF(l2=0.1, max_iter=10, tol=0.5).fit(X, y)
        crf.predict(X)
        crf.predict_marginals(X)


def hidden_sequences() -> None:
    """Hidden Markov models: fit and states."""
    from besag.estimators.hmm.estimator import HMM

    X = list(np.random.default_rng(0).integers(0, 4, (20, 50)))
    for n_states in (2, 3):
        hmm = HMM(n_states, max_iter=3, tol=1.0).fit(X)
        hmm.predict(X)
        hmm.score(X)


def tables() -> None:
    """Bayesian networks from tables: given edges, searched edges, missing cells; and files."""
    from besag.data.textbook import bundled
    from besag.estimators.networks.bayesian import BayesianNetwork
    from besag.io.load import load
    from besag.io.save import save

    asia = bundled("asia")
    frame = asia.sample(1000, seed=1)
    blank = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    edges = [(a, one.name) for one in asia.variables for a in asia.parents(one.name)]
    for structure, table in ((edges, frame), (edges, blank), ("structural_em", blank)):
        BayesianNetwork(structure).fit(table)
    for method in ("hill_climb", "pc", "exact"):
        BayesianNetwork(method).fit(frame)
    with tempfile.TemporaryDirectory() as folder:
        save(asia, Path(folder) / "asia.bif")
        load(Path(folder) / "asia.bif").marginals(evidence=frame.iloc[:5, :2])


def pictures() -> None:
    """CRFs on grids and on pixels alone: fit, labels, marginals."""
    from besag.estimators.graph_crf import GraphCRF
    from besag.estimators.grid_crf import GridCRF

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 24, 24, 3))
    for n_labels in (2, 3, 4):
        y = np.digitize(X[..., 0], np.linspace(-0.5, 0.5, n_labels - 1))
        for pairwise, damping in (("contrast", 0.0), ("contrast", 0.3), ("potts", 0.0), ("potts", 0.3)):
            engine = f"bp[max_iterations=5,damping={damping}]"
            crf = GridCRF(pairwise=pairwise, max_iter=3, tol=0.5, engine=engine).fit(X, y)
            crf.predict(X)
            crf.predict_marginals(X)
        alone = GraphCRF(max_iter=3, tol=0.5).fit([(x.reshape(-1, 3),) for x in X], [one.ravel() for one in y])
        alone.predict([(X[0].reshape(-1, 3),)])


def any_model() -> None:
    """Learning a model of one's own from rows."""
    from besag.learn.fit import fit
    from besag.model.factors import markov_network

    pair = markov_network({"A": 2, "B": 2}, [(("A", "B"), np.zeros((2, 2)))])
    fit(pair, [[0, 0], [1, 1], [1, 1]], l2=0.1)


QUESTIONS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in chain(
        (rows, pictures, estimates, chains, labellings, best, single_sites, marginals),
        (sequences, tables, messages, hidden_sequences, draws, any_model),
    )
}
