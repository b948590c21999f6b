"""Names of other libraries: each that is written down leads to an argument that exists, and errors say so."""

import inspect

import numpy as np
import pytest

import besag
from besag.foreign import NAMES, hint

CALLS = [
    besag.ChainCRF, besag.GridCRF, besag.HMM, besag.Mixture, besag.RBM, besag.BayesianNetwork,
    besag.bayesian_network, besag.markov_network, besag.fit, besag.em,
]  # fmt: skip
OPTIONS = {"targets", "n_threads", "seed", "progress", "max_iterations", "tolerance"}  # of queries and engines


def test_every_name_leads_somewhere() -> None:
    known = OPTIONS.union(*(inspect.signature(call).parameters for call in CALLS))
    for theirs, ours in NAMES.items():
        for name in ours:
            assert name.partition(":")[0] in known, (theirs, name)


@pytest.mark.parametrize(
    ("call", "options", "told"),
    [
        (besag.ChainCRF, {"c1": 0.1}, r"ChainCRF\(\) has no argument 'c1'; 'c1' is 'l1' here"),
        (besag.ChainCRF, {"algorithm": "lbfgs"}, "'algorithm' is 'optimizer' here"),
        (besag.HMM, {"n_components": 2}, "'n_components' is 'n_states' here"),
        (besag.HMM, {"n_iter": 2}, "'n_iter' is 'max_iter' here"),
        (besag.HMM, {"algorithm": "viterbi"}, "'algorithm' is 'decode' here"),
        (besag.RBM, {"n_components": 2}, "'n_components' is 'n_hidden' here"),
        (besag.BayesianNetwork, {"estimator": None}, "'estimator' is 'prior' here"),
        (besag.BayesianNetwork, {"max_indegree": 2}, "'max_indegree' is 'max_parents' here"),
        (besag.GridCRF, {"max_itr": 2}, "did you mean 'max_iter'?"),
        (besag.GridCRF, {"zzz": 2}, "it has pairwise, connectivity"),
    ],
)
def test_estimators(call: type, options: dict[str, object], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        call(**options)


def test_fit() -> None:
    with pytest.raises(TypeError, match=r"BayesianNetwork\.fit\(\) has no argument 'estimator'"):
        besag.BayesianNetwork().fit([[0, 1]], estimator=None)  # type: ignore[call-arg]


def test_functions_and_queries() -> None:
    with pytest.raises(TypeError, match=r"bayesian_network\(\) has no argument 'evidence_card'; .* is 'states' here: "):
        besag.bayesian_network("a -> b", evidence_card=[2])  # type: ignore[call-arg]
    model = besag.chain(np.zeros((2, 2)), np.eye(2))
    with pytest.raises(TypeError, match=r"fit\(\) has no argument 'show_progress'"):
        besag.fit(model, [[0, 1]], show_progress=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'n_jobs' is 'n_threads' here"):
        model.marginals(n_jobs=2)  # type: ignore[call-arg]


def test_signatures_stay_as_they_are() -> None:
    assert next(iter(inspect.signature(besag.HMM).parameters)) == "n_states"
    assert next(iter(inspect.signature(besag.fit).parameters)) == "model"
    assert hint("nothing of the kind", ["l1"]) == ""
