"""HMM: hidden Markov models, in the manner of scikit-learn.

    p(y, x) = start[y_0] prod_t transition[y_t-1, y_t] prod_t emission[y_t, x_t]

fit maximises sum_n log p(x_n) by Baum-Welch, from symbols alone or with the states of some tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.observations import Tape, codes_of_symbols, find_symbols, read_frames, read_symbols
from besag.errors import ModelError
from besag.estimators.base import check_choice, read_seed
from besag.estimators.hmm.names import codes_of_states, name_states, read_init
from besag.estimators.hmm.parameters import HiddenMarkovModel, read_model, read_names
from besag.estimators.hmm.start import allowed_transitions, read_prior_counts
from besag.estimators.hmm.training import ChainTask, learn_chain
from besag.estimators.learner import Learner, check_file, check_labels_to_save
from besag.learn.hidden.baum_welch import METHODS, BaumWelch
from besag.learn.hidden.chains import ChainParameters, HiddenSequences, refuse_impossible
from besag.learn.hidden.rounds import EM
from besag.learn.history import History, OnIteration
from besag.learn.objective import thread_count
from besag.learn.progress import FitProgress, ended
from besag.registry import is_whole

if TYPE_CHECKING:
    from besag.model.model import Model

EMISSIONS = ("categorical", "log_likelihood")


class HMM(Learner):
    """A hidden Markov model of sequences of symbols, or of observations given as log-likelihoods (T, K).

    n_states: K; states: their names, 0 to K - 1 unless given. symbols: those that can be observed, the ones in the data
    unless given. emission: "categorical", or "log_likelihood" where X has log p(x_t | state). forbidden: pairs (state,
    next state) that are hard zeros. prior: Dirichlet pseudo-counts, a number for all or {"emission": 0.1, ...}.
    training: "baum_welch", or "viterbi", along the best paths. init: where learning begins, a fitted HMM or (start,
    transition, emission), whose zeros stay; random if None. restarts: how many times to begin again; the best end is
    the answer. decode: "map", the most probable path, or "marginal", the most probable state of each token. n_jobs:
    threads over sequences, None = all cores; answers do not depend on it.

    >>> hmm = HMM.from_parameters([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]])
    >>> hmm.predict([[0, 0, 1, 0, 0, 1, 1, 1]])
    [array([0, 0, 0, 0, 0, 1, 1, 1])]
    """

    tol: float

    def __init__(
        self,
        n_states: int | None = None,
        *,
        states: Sequence[Any] | None = None,
        symbols: Sequence[Any] | None = None,
        emission: str = "categorical",
        forbidden: Iterable[tuple[Any, Any]] | None = None,
        prior: Any = 0.0,
        training: str = "baum_welch",
        init: Any = None,
        restarts: int = 0,
        decode: str = "map",
        max_iter: int = 100,
        tol: float = 1e-6,
        time_limit: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_states, self.states, self.symbols, self.emission = n_states, states, symbols, emission
        self.forbidden, self.prior, self.training = forbidden, prior, training
        self.init, self.restarts, self.decode = init, restarts, decode
        self.max_iter, self.tol, self.time_limit = max_iter, tol, time_limit
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    @classmethod
    def from_parameters(
        cls,
        start: Any,
        transition: Any,
        emission: Any = None,
        *,
        states: Any = None,
        symbols: Any = None,
        **options: Any,
    ) -> HMM:
        """From probabilities: start (K,), transition (K, K), emission (K, M), None for log-likelihoods.

        states, symbols: names, those of an emission that is a DataFrame unless given, else numbers.
        """
        model = read_model(start, transition, emission, states, symbols)
        kind = "log_likelihood" if emission is None else "categorical"
        named: dict[str, Any] = {"states": model.states, "symbols": model.symbols or None}
        hmm = cls(len(model.states), emission=kind, **named, **options)
        hmm._check_parameters()
        hmm.model_ = model
        hmm._history = History(stopped="converged")
        return hmm

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        on_step: OnIteration | None = None,
    ) -> Self:
        """Learn from sequences X: a list, or one array of all tokens with the `lengths` of the sequences.

        y: states of tokens, of the same form, None, NaN or -1 where one is not known. checkpoint: a file to which the
        fit saves its state when it ends, even by time_limit or Ctrl-C, and from which it continues if the file exists,
        on the same data. on_step is called with each row of the history and the probabilities, one after the other, and
        ends the fit by returning True.
        """
        self._check_parameters()
        if checkpoint is not None:
            check_file(checkpoint)
        init = read_init(self.init, self.n_states, self.states, self.symbols)
        if init is not None and bool(init.symbols) == self._is_dense:
            raise ModelError(f"init has {'' if init.symbols else 'no '}emissions, and emission={self.emission!r}")
        known = None if y is None else read_symbols(y, lengths)
        states = init.states if init is not None else name_states(self.n_states, self.states, known)
        tape = read_frames(X, lengths, len(states)) if self._is_dense else read_symbols(X, lengths)
        symbols = init.symbols if init is not None else self._name_symbols(tape)
        task = self._task(self._data(tape, states, symbols, known), states, symbols, init)
        most = self.max_iter
        progress = FitProgress(type(self).__name__, on_step, most, self.time_limit) if self.verbose else None
        with ended(progress):
            told = on_step if progress is None else progress.told
            parameters, self._history = learn_chain(task, self.restarts, self.time_limit, checkpoint, told)
        self.model_: HiddenMarkovModel = HiddenMarkovModel(states, symbols, parameters)
        return self

    def _name_symbols(self, tape: Tape) -> tuple[Any, ...]:
        if self._is_dense:
            return ()
        return read_names("symbols", self.symbols) if self.symbols is not None else find_symbols(tape)

    def _task(
        self,
        data: HiddenSequences,
        states: tuple[Any, ...],
        symbols: tuple[Any, ...],
        init: HiddenMarkovModel | None,
    ) -> ChainTask:
        allowed = allowed_transitions(states, self.forbidden)
        prior = read_prior_counts(self.prior, len(states), len(symbols), allowed)
        if init is not None:
            prior = prior.where_positive(init.parameters)
        hard = self.training == "viterbi"
        method = BaumWelch(EM(self.max_iter, self.tol), data, prior, hard, thread_count(self.n_jobs))
        return ChainTask(method, states, init, allowed, read_seed(self.random_state))

    def _data(
        self, tape: Tape, states: tuple[Any, ...], symbols: tuple[Any, ...], known: Tape | None
    ) -> HiddenSequences:
        codes = None if known is None else codes_of_states(known, tape, states)
        if self._is_dense:
            return HiddenSequences.of_frames(tape.values, tape.offsets, codes)
        return HiddenSequences.of_symbols(codes_of_symbols(tape, symbols), tape.offsets, len(states), codes)

    @property
    def _is_dense(self) -> bool:
        return self.emission == "log_likelihood"

    def _check_parameters(self) -> None:
        check_choice("emission", self.emission, EMISSIONS)
        check_choice("training", self.training, METHODS)
        check_choice("decode", self.decode, ("map", "marginal"))
        if self.n_states is not None and (not is_whole(self.n_states) or self.n_states < 1):
            raise ModelError(f"n_states must be a whole number from 1 on, got {self.n_states!r}")
        if not is_whole(self.restarts) or self.restarts < 0:
            raise ModelError(f"restarts must be a whole number from 0 on, got {self.restarts!r}")

    # What was learnt -------------------------------------------------------------------------------------------------

    def _model(self) -> HiddenMarkovModel:
        self._check_fitted()
        return self.model_

    @property
    def states_(self) -> list[Any]:
        """The states, in the order of probabilities and marginals."""
        return list(self._model().states)

    @property
    def symbols_(self) -> list[Any]:
        """The symbols, in the order of emission_'s columns."""
        return list(self._model().symbols)

    @property
    def start_(self) -> Array:
        """(K,): p(first state)."""
        return self._model().parameters.start

    @property
    def transition_(self) -> Array:
        """(K, K): p(next state | state), a row for each state."""
        return self._model().parameters.transition

    @property
    def emission_(self) -> Array:
        """(K, M): p(symbol | state)."""
        return self._model().parameters.emission

    def unroll(self, length: int) -> Model:
        """A chain of that length as a Model: variables state[0], symbol[0], state[1], ..., for any engine."""
        from besag.model.dynamic import unroll

        return unroll(self.slice_model_, length)

    @property
    def slice_model_(self) -> Model:
        """The chain as a two-slice network: state -> state', state -> symbol."""
        from besag.model.bayes import bayesian_network

        model = self._model()
        edges = [("state", "state'"), *([("state", "symbol")] if model.symbols else [])]
        names = {"state": model.states, "state'": model.states, "symbol": model.symbols}
        tables = {"state": self.start_, "state'": self.transition_, "symbol": self.emission_}
        used = [name for name in names if name != "symbol" or model.symbols]
        return bayesian_network(
            edges, {name: list(map(str, names[name])) for name in used}, {n: tables[n] for n in used}
        )

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, *, lengths: Any = None, y: Any = None) -> Any:
        """The states of each sequence, arrays (T,); one array where X is one. y: states that are known."""
        tape, data = self._asked(X, lengths, y)
        if self.decode == "marginal":
            codes = data.posteriors(self._model().parameters, thread_count(self.n_jobs)).argmax(axis=1)
        else:
            codes = data.best(self._model().parameters, thread_count(self.n_jobs))
        return tape.parts(_array_of(self._model().states)[codes])

    def predict_marginals(self, X: Any, *, lengths: Any = None, y: Any = None) -> Any:
        """(T, K) for each sequence: the probability of each state at each token."""
        tape, data = self._asked(X, lengths, y)
        return tape.parts(data.posteriors(self._model().parameters, thread_count(self.n_jobs)))

    def predict_kbest(
        self, X: Any, k: int = 5, *, lengths: Any = None, y: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """The k most probable paths of each sequence with their probabilities given X, best first."""
        from besag.infer.chains.best import best_of_chain

        if not is_whole(k) or k < 1:
            raise ModelError(f"k must be a whole number from 1 on, got {k!r}")
        tape, data = self._asked(X, lengths, y)
        model = self._model()
        weights, dynamics = data.log_weights(model.parameters), model.parameters.dynamics
        log_z = data.log_evidence(model.parameters, thread_count(self.n_jobs))
        refuse_impossible(log_z == -np.inf)
        answers = []
        for n, row in enumerate(tape.parts(data.tokens.row) if not tape.is_one else _split(data.tokens.row, tape)):
            unary = weights[row]
            unary[0] += dynamics.start
            codes, scores = best_of_chain(unary, dynamics.transition, k)
            chances = np.exp(scores - log_z[n]).tolist()
            answers.append(
                [([model.states[c] for c in own.tolist()], p) for own, p in zip(codes, chances, strict=True)]
            )
        return answers

    def score_samples(self, X: Any, *, lengths: Any = None, y: Any = None) -> Array:
        """(N,): log p of each sequence, what is missing summed out; -inf where the model rules it out."""
        _, data = self._asked(X, lengths, y)
        return data.log_evidence(self._model().parameters, thread_count(self.n_jobs))

    def log_likelihood(self, X: Any, *, lengths: Any = None, y: Any = None) -> float:
        """log p of all sequences: what hmmlearn calls score."""
        return float(self.score_samples(X, lengths=lengths, y=y).sum())

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """The mean of log p over the sequences: scikit-learn's sense of better."""
        return float(self.score_samples(X, lengths=lengths, y=y).mean())

    def sample(self, n_steps: int = 1, n_sequences: int | None = None, random_state: int = 0) -> tuple[Any, Any]:
        """Symbols and states of a sequence of that length, or lists of them; symbols are None for log-likelihoods."""
        from besag.infer.chains.walk import draw_chains

        model = self._model()
        for name, value, least in (("n_steps", n_steps, 1), ("n_sequences", n_sequences, 1)):
            if value is not None and (not is_whole(value) or value < least):
                raise ModelError(f"{name} must be a whole number from {least} on, got {value!r}")
        lengths = np.full(1 if n_sequences is None else n_sequences, n_steps)
        states, symbols, offsets = draw_chains(
            *model.parameters, lengths, np.random.default_rng(read_seed(random_state))
        )
        tape = Tape(states, offsets, n_sequences is None)
        named = None if not model.symbols else tape.parts(_array_of(model.symbols)[symbols])
        return named, tape.parts(_array_of(model.states)[states])

    def _asked(self, X: Any, lengths: Any, y: Any) -> tuple[Tape, HiddenSequences]:
        model = self._model()
        known = None if y is None else read_symbols(y, lengths)
        tape = read_frames(X, lengths, len(model.states)) if self._is_dense else read_symbols(X, lengths)
        return tape, self._data(tape, model.states, model.symbols, known)

    def __sklearn_clone__(self) -> HMM:
        # scikit-learn's own would clone a fitted init too, which would forget what it has learnt
        return type(self)(**copy.deepcopy(self.get_params()))

    # Files -----------------------------------------------------------------------------------------------------------

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        model = self._model()
        check_labels_to_save(model.states + model.symbols)
        told, arrays = self._stored_history()
        told |= {"state_names": list(model.states), "symbol_names": list(model.symbols)}
        names = {"states": _plain_names("states", self.states), "symbols": _plain_names("symbols", self.symbols)}
        parameters = self.get_params() | names | {"init": None, "prior": _plain_prior(self.prior)}
        return told | {"parameters": parameters}, {**arrays, **model.parameters._asdict()}

    @classmethod
    def _restored(cls, parameters: Mapping[str, Any], told: Mapping[str, Any], arrays: Mapping[str, Any]) -> HMM:
        hmm = cls(**parameters)
        hmm._check_parameters()
        emission = arrays["emission"] if told["symbol_names"] else None
        names = told["state_names"], told["symbol_names"] or None
        checked = read_model(arrays["start"], arrays["transition"], emission, *names)
        kept = ChainParameters(*(arrays[name] for name in ChainParameters._fields))  # to the bit, not normalised again
        hmm.model_ = checked._replace(parameters=kept)
        hmm._restore_history(told, arrays)
        return hmm


def _array_of(names: tuple[Any, ...]) -> AnyArray:
    """Names as an array, of objects where they are of several types."""
    kinds = {type(name) for name in names}
    return np.array(names) if len(kinds) == 1 else np.array(names, object)


def _plain_prior(prior: Any) -> Any:
    """Pseudo-counts without arrays."""
    if isinstance(prior, dict):
        return {name: np.asarray(part).tolist() for name, part in prior.items()}
    return np.asarray(prior).tolist()


def _plain_names(what: str, given: Any) -> list[Any] | None:
    return None if given is None else list(read_names(what, given))


def _split(values: AnyArray, tape: Tape) -> list[AnyArray]:
    return [values[a:b] for a, b in zip(tape.offsets[:-1].tolist(), tape.offsets[1:].tolist(), strict=True)]
