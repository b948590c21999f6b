"""ChainCRF: conditional random fields on sequences, in the manner of scikit-learn.

    p(y | x) = exp(sum_t sum_{a in x_t} w[a, y_t] + sum_t w[y_t, y_t+1]) / Z(x)

fit minimises sum_n -log p(y_n | x_n) + l2 ||w||^2 + l1 ||w||_1 over weights of the (attribute, label) pairs seen in
training and of all transitions: CRFsuite's model and objective (its c1, c2), with `feature.possible_transitions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from os import PathLike
from typing import Any, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.attributes import Attributes, Features
from besag.data.chains import ChainTemplates
from besag.data.labels import Labels, sequences_of_labels
from besag.data.numbering import Numbering
from besag.errors import ModelError
from besag.estimators.base import check_choice
from besag.estimators.chain_crf.data import (
    Data,
    dataset_of,
    find_pairs,
    read_held_out,
    refuse_forbidden,
    training_data,
)
from besag.estimators.chain_crf.inference import (
    ChainModel,
    all_pairs,
    chain_engine,
    chain_templates,
    labels_of,
    split,
)
from besag.estimators.chain_crf.schemes import SCHEMES, Allowed, allow_transitions
from besag.estimators.learner import Learner, check_file, check_labels_to_save, refuse_probabilities
from besag.learn.history import History, OnIteration
from besag.learn.losses.chains.likelihood import ChainLikelihood
from besag.learn.losses.chains.max_margin import ChainMaxMargin
from besag.learn.losses.likelihood import Likelihood
from besag.learn.losses.max_margin import MaxMargin
from besag.learn.objective import Objective, Total, thread_count
from besag.learn.optimisers.base import Optimizer
from besag.learn.penalty import penalty_of
from besag.metrics import accuracy
from besag.model.pattern import Pattern


class ChainCRF(Learner):
    """A linear-chain CRF on attributes: lists of strings or dicts, as CRFsuite reads them, or arrays (T, D).

    objective: "likelihood", or "max_margin", the structured hinge, which gives labels and no probabilities. l1, l2:
    penalties, to a loss that is summed over instances. pairs: which pairs of attributes and labels have a weight, those
    "seen" in training or "all"; a token of a dense array has all columns, so that all pairs are seen.
    order: 1, or 2 for weights of three neighbours too. constraint: "BIO", "BIOES" or None; forbidden: pairs (label,
    next label) that are ruled out; both are hard zeros. decode: "map", the most probable labelling, or "marginal", the
    most probable label of each token. optimizer: text such as "lbfgs", with max_iter and tol, or an object with its own
    options; None is lbfgs, or frank_wolfe for max_margin. n_jobs: threads, None = all cores; answers do not depend on
    it. scratch: a folder for training data that do not fit into memory: X and y are read once, in parts, and kept there
    until fit ends. verbose: tell on stderr how far the fit has come.

    >>> crf = ChainCRF(l2=0.1).fit([[["w=the"], ["w=dog"]], [["w=dogs"]]], [["D", "N"], ["N"]])
    >>> crf.predict([[["w=the"], ["w=dogs"]]])
    [['D', 'N']]
    """

    def __init__(
        self,
        *,
        objective: str = "likelihood",
        l1: float = 0.0,
        l2: float = 1.0,
        pairs: str = "seen",
        order: int = 1,
        constraint: str | None = None,
        forbidden: Iterable[tuple[Any, Any]] | None = None,
        decode: str = "map",
        optimizer: str | Optimizer | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        scratch: str | PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.objective, self.l1, self.l2, self.pairs, self.order = objective, l1, l2, pairs, order
        self.constraint, self.forbidden, self.decode = constraint, forbidden, decode
        self.optimizer, self.max_iter, self.tol = optimizer, max_iter, tol
        self.time_limit, self.n_jobs, self.scratch, self.verbose = time_limit, n_jobs, scratch, verbose

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        sample_weight: Any = None,
        *,
        held_out: tuple[Iterable[Any], Iterable[Any]] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_step: OnIteration | None = None,
    ) -> Self:
        """Learn from sequences X and their labels y; None stands for an unknown label.

        Both may be generators. sample_weight (N,): of the sequences. held_out: (X, y) whose loss is watched; the fit
        ends when it grows, with the weights for which it was least. checkpoint: a file to which the fit saves its state
        when it ends, even by time_limit or Ctrl-C, and from which it continues if the file exists, on the same data.
        on_step is called with each row of the history and the parameters, and ends the fit by returning True.
        """
        self._check_parameters()
        if checkpoint is not None:
            check_file(checkpoint)
        with training_data(X, y, sample_weight, self.scratch) as training:
            attributes, classes = training.attributes, training.labels.classes
            n, k = len(attributes), len(classes)
            allowed = allow_transitions(classes, self.constraint, self.forbidden)
            if allowed is not None:
                refuse_forbidden(training.parts(), allowed, classes)
            every = self.pairs == "all" or not attributes.is_sparse
            pattern = all_pairs(n, k) if every else find_pairs(training.parts(), n, k)
            templates = chain_templates(n, k, pattern, self.order, allowed)
            total = self._total(templates, training.data)
            watched = None
            if held_out is not None:
                watched = dataset_of(templates, read_held_out(held_out, attributes, classes, allowed))
            theta = self._learn(total, watched, checkpoint, on_step)
        self.model_: ChainModel = ChainModel(classes, attributes, templates, theta)
        self.learnt_by_ = self.objective
        return self

    @classmethod
    def from_crfsuite(cls, path: str | PathLike[str]) -> ChainCRF:
        """A tagger from a CRFsuite model file, with the same labels in the same order, weights and answers."""
        from besag.io.sequences.crfsuite_model import read_crfsuite_model

        file = read_crfsuite_model(path)
        n_labels, pattern = len(file.labels), Pattern(file.attribute, file.label)
        templates = chain_templates(len(file.attributes), n_labels, pattern, 1, None)
        theta = np.concatenate([-file.weight, -file.transitions.reshape(-1)])
        crf = cls()
        crf.learnt_by_ = "likelihood"
        crf.model_ = ChainModel(file.labels, Attributes(Numbering(file.attributes)), templates, theta)
        crf._history = History(stopped="converged")
        return crf

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, ("likelihood", "max_margin"))
        check_choice("pairs", self.pairs, ("seen", "all"))
        check_choice("order", self.order, (1, 2))
        check_choice("constraint", self.constraint, (None, *SCHEMES))
        check_choice("decode", self.decode, ("map", "marginal"))
        for what, chosen in (("order=2", self.order == 2), ("max_margin", self.objective == "max_margin")):
            if chosen and self.scratch is not None:
                raise ModelError(f"{what} learns in memory: leave scratch out")
        if self.decode == "marginal":
            refuse_probabilities(self.objective)

    def _total(self, templates: ChainTemplates, data: Data) -> Total:
        """The function to be minimised, for first-order chains by a kernel of its own."""
        kinds: dict[str, tuple[Any, Any]] = {
            "likelihood": (ChainLikelihood, Likelihood),
            "max_margin": (ChainMaxMargin, MaxMargin),
        }
        by_kernel, by_engine = kinds[self.objective]
        engine = chain_engine(templates, n_threads=1)
        loss: Objective = by_kernel(templates) if templates.triple is None else by_engine(engine)
        penalty = penalty_of(templates.layout(), self.l1, self.l2)
        return Total(loss, dataset_of(templates, data), penalty, n_threads=thread_count(self.n_jobs))

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        model = self._model()
        check_labels_to_save(model.classes)
        told, arrays = self._stored_history()
        told |= {
            "learnt_by": self.learnt_by_,
            "classes": list(model.classes),
            "attributes": list(model.attributes.numbering),
            "columns": model.attributes.columns,
            "sparse": model.attributes.is_sparse,
        }
        pattern, transition = model.templates.state.pattern, model.templates.transition
        assert pattern is not None
        arrays |= {"theta": model.theta, "rows": pattern.rows, "columns": pattern.columns}
        if transition.support is not None:
            arrays["transitions"] = transition.support
            for name, template in (("first", model.templates.begin), ("last", model.templates.end)):
                support = None if template is None else template.support
                arrays[name] = np.ones(model.n_labels, np.bool_) if support is None else support
        return told, arrays

    @classmethod
    def _restored(cls, parameters: Mapping[str, Any], told: Mapping[str, Any], arrays: Mapping[str, Any]) -> ChainCRF:
        crf = cls(**parameters)
        if crf.forbidden is not None:  # JSON has no tuples
            crf.forbidden = [tuple(pair) for pair in crf.forbidden]
        crf._check_parameters()
        classes = tuple(told["classes"])
        attributes = Attributes(Numbering(told["attributes"]), told["columns"], told["sparse"])
        if len(attributes.numbering) != len(told["attributes"]):
            raise ModelError("an attribute comes twice")
        allowed = Allowed(*(arrays[key] for key in Allowed._fields)) if "transitions" in arrays else None
        pattern = Pattern(arrays["rows"], arrays["columns"])
        templates = chain_templates(len(attributes), len(classes), pattern, crf.order, allowed)
        crf.model_ = ChainModel(classes, attributes, templates, arrays["theta"])
        crf.learnt_by_ = told.get("learnt_by", "likelihood")
        crf._restore_history(told, arrays)
        return crf

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[Any]:
        """The labels, sorted: the columns of marginals."""
        return list(self._model().classes)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """{(attribute, label): weight}; positive is more probable."""
        model = self._model()
        pattern, names = model.templates.state.pattern, model.attributes.names
        assert pattern is not None
        triples = zip(pattern.rows.tolist(), pattern.columns.tolist(), model.state_weights.tolist(), strict=True)
        return {(names[a], model.classes[k]): weight for a, k, weight in triples}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """{(label, next label): weight}, -inf if it is ruled out."""
        model = self._model()
        weights = model.transition_weights.tolist()
        return {(i, j): weights[a][b] for a, i in enumerate(model.classes) for b, j in enumerate(model.classes)}

    @property
    def triple_features_(self) -> dict[tuple[Any, Any, Any], float]:
        """{(label, next label, the one after): weight}; empty if order is 1."""
        model = self._model()
        if model.templates.triple is None:
            return {}
        weights = np.negative(model.theta[model.templates.layout()["triple"]]).tolist()
        return dict(zip(product(model.classes, repeat=3), weights, strict=True))

    def _model(self) -> ChainModel:
        self._check_fitted()
        return self.model_

    def _probable(self) -> ChainModel:
        """The model, where it has probabilities."""
        model = self._model()
        refuse_probabilities(self.learnt_by_)
        return model

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict(self, X: Iterable[Any]) -> list[list[Any]]:
        """The labels of each sequence."""
        model = self._model()
        features = model.attributes.transform(X)
        if self.decode == "marginal":
            codes = self._probabilities(features).argmax(axis=1)
        else:
            codes = model.best(features, thread_count(self.n_jobs))
        return split(labels_of(model.classes, codes), features)

    def predict_marginals(self, X: Iterable[Any]) -> list[Array]:
        """The probability of each label at each token: (T, K) for each sequence, columns as in classes_."""
        features = self._model().attributes.transform(X)
        return split(self._probabilities(features), features)

    def _probabilities(self, features: Features) -> Array:
        return self._probable().marginals(features, thread_count(self.n_jobs))

    def predict_kbest(self, X: Iterable[Any], k: int = 5) -> list[list[tuple[list[Any], float]]]:
        """The k most probable labellings of each sequence with their probabilities, best first."""
        from besag.estimators.chain_crf.k_best import best_labellings

        model = self._probable()
        return best_labellings(model, model.attributes.transform(X), k)

    def span_probability(self, x: Any, start: int, stop: int, kind: str) -> float:
        """The probability that tokens [start, stop) of a sequence are one span of a kind, "NP", in BIO or BIOES."""
        from besag.estimators.chain_crf.spans import span_evidence

        model = self._probable()
        features = model.attributes.transform([x])
        evidence = span_evidence(model.classes, int(features.lengths[0]), start, stop, kind)
        inside = model.infer(features, "log_partition", evidence=evidence).log_partitions
        everything = model.infer(features, "log_partition").log_partitions
        assert inside is not None
        assert everything is not None
        return float(np.exp(inside[0] - everything[0]))

    def log_proba(self, X: Iterable[Any], y: Iterable[Any]) -> Array:
        """(N,): log p(y | x) of each sequence; labels that are None are summed out."""
        model = self._probable()
        features = model.attributes.transform(X)
        codes = Labels(model.classes).transform(y, features.lengths)
        n_threads = thread_count(self.n_jobs)
        free = model.log_partitions(features, None, n_threads)
        return model.log_partitions(features, codes, n_threads) - free

    def score(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Any = None) -> float:
        """The share of tokens that are labelled correctly; labels that are None do not count."""
        found = self.predict(X)
        right = [labels for _, labels in sequences_of_labels(y, np.array([len(labels) for labels in found], np.int64))]
        return accuracy(right, found, ignore=None, sample_weight=sample_weight)
