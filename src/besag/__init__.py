"""besag: learning and inference in discrete graphical models.

Importing it loads numpy and nothing heavier; every name below is fetched when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from besag.text import no_attribute

if TYPE_CHECKING:
    from besag import data as data
    from besag import errors as errors
    from besag import factors as factors
    from besag import infer as infer
    from besag import io as io
    from besag import metrics as metrics
    from besag import plot as plot
    from besag.data.dataset import Dataset as Dataset
    from besag.data.structured import StructuredData as StructuredData
    from besag.estimators.chain_crf.estimator import ChainCRF as ChainCRF
    from besag.estimators.discretizer import Discretizer as Discretizer
    from besag.estimators.graph_crf import GraphCRF as GraphCRF
    from besag.estimators.grid_crf import GridCRF as GridCRF
    from besag.estimators.hmm.estimator import HMM as HMM
    from besag.estimators.multi_label_crf import MultiLabelCRF as MultiLabelCRF
    from besag.estimators.networks.bayesian import BayesianNetwork as BayesianNetwork
    from besag.estimators.networks.classifier import BayesianNetworkClassifier as BayesianNetworkClassifier
    from besag.estimators.networks.dynamic import DynamicNetwork as DynamicNetwork
    from besag.estimators.networks.markov import MarkovNetwork as MarkovNetwork
    from besag.estimators.networks.mixture import Mixture as Mixture
    from besag.estimators.rbm.estimator import RBM as RBM
    from besag.graph.compile import compile_graph as compile_graph
    from besag.graph.evidence import Evidence as Evidence
    from besag.graph.graph import Graph as Graph
    from besag.graph.problem import Problem as Problem
    from besag.infer.result import Result as Result
    from besag.io.load import load as load
    from besag.io.save import convert as convert
    from besag.io.save import save as save
    from besag.learn.fit import fit as fit
    from besag.learn.fit import objective as objective
    from besag.learn.hidden.em import em as em
    from besag.learn.networks.structure.bootstrap import bootstrap_edges as bootstrap_edges
    from besag.model.bayes import bayesian_network as bayesian_network
    from besag.model.build import chain as chain
    from besag.model.build import grid as grid
    from besag.model.build import ising as ising
    from besag.model.build import tree as tree
    from besag.model.dynamic import unroll as unroll
    from besag.model.factors import markov_network as markov_network
    from besag.model.model import FactorGroup as FactorGroup
    from besag.model.model import Model as Model
    from besag.model.pattern import Pattern as Pattern
    from besag.model.structured.potts import potts as potts
    from besag.model.structured.truncated import truncated_linear as truncated_linear
    from besag.model.structured.truncated import truncated_quadratic as truncated_quadratic
    from besag.model.template import Template as Template
    from besag.model.variable import Variable as Variable
    from besag.query.compare import compare as compare
    from besag.query.divergence import kl as kl

__version__ = "0.1.0.dev0"

_MODULES = ["data", "errors", "factors", "infer", "io", "metrics", "plot"]
_WHERE = {
    "BayesianNetwork": "estimators.networks.bayesian",
    "BayesianNetworkClassifier": "estimators.networks.classifier",
    "ChainCRF": "estimators.chain_crf.estimator",
    "Dataset": "data.dataset",
    "Discretizer": "estimators.discretizer",
    "DynamicNetwork": "estimators.networks.dynamic",
    "Evidence": "graph.evidence",
    "FactorGroup": "model.model",
    "Graph": "graph.graph",
    "GraphCRF": "estimators.graph_crf",
    "GridCRF": "estimators.grid_crf",
    "HMM": "estimators.hmm.estimator",
    "MarkovNetwork": "estimators.networks.markov",
    "Mixture": "estimators.networks.mixture",
    "Model": "model.model",
    "MultiLabelCRF": "estimators.multi_label_crf",
    "Pattern": "model.pattern",
    "Problem": "graph.problem",
    "RBM": "estimators.rbm.estimator",
    "Result": "infer.result",
    "StructuredData": "data.structured",
    "Template": "model.template",
    "Variable": "model.variable",
    "bayesian_network": "model.bayes",
    "bootstrap_edges": "learn.networks.structure.bootstrap",
    "chain": "model.build",
    "compare": "query.compare",
    "compile_graph": "graph.compile",
    "convert": "io.save",
    "em": "learn.hidden.em",
    "fit": "learn.fit",
    "grid": "model.build",
    "ising": "model.build",
    "kl": "query.divergence",
    "load": "io.load",
    "markov_network": "model.factors",
    "objective": "learn.fit",
    "potts": "model.structured.potts",
    "save": "io.save",
    "tree": "model.build",
    "truncated_linear": "model.structured.truncated",
    "truncated_quadratic": "model.structured.truncated",
    "unroll": "model.dynamic",
}
__all__ = [*_MODULES, *_WHERE]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"besag.{name}")
    if name not in _WHERE:
        raise AttributeError(no_attribute("besag", name, __all__))
    value = getattr(import_module(f"besag.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
