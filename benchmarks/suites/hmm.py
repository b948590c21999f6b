"""Hidden Markov models of symbols: posteriors, best paths and Baum-Welch, besag and hmmlearn.

    p(y, x) = start[y_0] prod_t transition[y_t-1, y_t] prod_t emission[y_t, x_t]

Both get the sequences as one array of symbols with the lengths of the sequences, as hmmlearn takes them, and the same
parameters to begin with. hmmlearn runs its scaling implementation, the faster of its two. One thread each. Baum-Welch
makes ten steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite

Array = NDArray[np.float64]
N_SYMBOLS, N_STEPS = 50, 10


class Symbols(NamedTuple):
    """The inputs of a case: parameters, symbols (T,) and the lengths of the sequences."""

    start: Array
    transition: Array
    emission: Array
    symbols: NDArray[np.int64]
    lengths: NDArray[np.int64]


def draw(n_chains: int, length: int, n_states: int) -> Symbols:
    """The same random sequences for every contestant."""
    rng = np.random.default_rng(40 + n_states)
    start, transition = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)
    emission = rng.dirichlet(np.full(N_SYMBOLS, 0.5), n_states)
    symbols = rng.integers(0, N_SYMBOLS, n_chains * length)
    return Symbols(start, transition, emission, symbols, np.full(n_chains, length))


def besag_model(data: Symbols, **options: Any) -> Any:
    """An HMM with the parameters of the case."""
    import besag

    return besag.HMM.from_parameters(data.start, data.transition, data.emission, n_jobs=1, **options)


def hmmlearn_model(data: Symbols, **options: Any) -> Any:
    """The same of hmmlearn."""
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(len(data.start), implementation="scaling", init_params="", **options)
    model.startprob_, model.transmat_, model.emissionprob_ = data.start, data.transition, data.emission
    model.n_features = N_SYMBOLS
    return model


def probe(n: int) -> Array:
    """Weights that tell the entries of an array apart."""
    return np.cos(np.arange(n, dtype=np.float64))


def posterior_summary(likelihood: Callable[[], float]) -> Callable[[Array], Mapping[str, float]]:
    """The log-likelihood, and a checksum of the posteriors."""

    def summary(posteriors: Array) -> dict[str, float]:
        weighted = probe(len(posteriors)) @ posteriors @ probe(posteriors.shape[1])
        return {"log_likelihood": likelihood(), "posteriors": float(weighted)}

    return summary


def besag_posteriors(**parameters: int) -> Job:
    """Posteriors of all tokens."""
    data = draw(**parameters)
    model, given = besag_model(data), {"lengths": data.lengths}
    summary = posterior_summary(lambda: float(model.log_likelihood(data.symbols, **given)))
    return Job(lambda: model.predict_marginals(data.symbols, **given), summary)


def hmmlearn_posteriors(**parameters: int) -> Job:
    """The same by predict_proba."""
    data = draw(**parameters)
    model, symbols = hmmlearn_model(data), data.symbols[:, None]
    summary = posterior_summary(lambda: float(model.score(symbols, data.lengths)))
    return Job(lambda: model.predict_proba(symbols, data.lengths), summary)


def path_summary(data: Symbols) -> Callable[[Any], Mapping[str, float]]:
    """log p of the paths, which is the same where ties are broken in another way."""

    def summary(path: Any) -> dict[str, float]:
        first = np.cumsum(data.lengths) - data.lengths
        inside = np.setdiff1d(np.arange(len(path)), first)
        steps = np.log(data.transition[path[inside - 1], path[inside]]).sum() + np.log(data.start[path[first]]).sum()
        return {"log_p_of_paths": float(steps + np.log(data.emission[path, data.symbols]).sum())}

    return summary


def besag_paths(**parameters: int) -> Job:
    """The best path of each sequence."""
    data = draw(**parameters)
    model = besag_model(data)
    return Job(lambda: model.predict(data.symbols, lengths=data.lengths), path_summary(data))


def hmmlearn_paths(**parameters: int) -> Job:
    """The same by predict."""
    data = draw(**parameters)
    model = hmmlearn_model(data)
    return Job(lambda: model.predict(data.symbols[:, None], data.lengths), path_summary(data))


def besag_training(**parameters: int) -> Job:
    """Ten steps of Baum-Welch. The last E-step is after the last M-step, one more than hmmlearn makes."""
    import besag

    data = draw(**parameters)
    begin = besag_model(data)

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hmm = besag.HMM(init=begin, max_iter=N_STEPS, tol=0.0, n_jobs=1)
            return hmm.fit(data.symbols, lengths=data.lengths)

    def summary(hmm: Any) -> dict[str, float]:
        before_last = float(hmm.history_["log_likelihood"].iloc[-2])
        return {"log_likelihood": before_last, **checksums(hmm.start_, hmm.transition_, hmm.emission_)}

    return Job(run, summary)


def hmmlearn_training(**parameters: int) -> Job:
    """Ten steps of Baum-Welch."""
    data = draw(**parameters)

    def run() -> Any:
        model = hmmlearn_model(data, n_iter=N_STEPS, tol=-np.inf)
        return model.fit(data.symbols[:, None], data.lengths)

    def summary(model: Any) -> dict[str, float]:
        found = checksums(model.startprob_, model.transmat_, model.emissionprob_)
        return {"log_likelihood": model.monitor_.history[-1], **found}

    return Job(run, summary)


def checksums(start: Array, transition: Array, emission: Array) -> dict[str, float]:
    """What was learnt."""
    return {
        "start": float(start @ probe(len(start))),
        "transition": float(transition.ravel() @ probe(transition.size)),
        "emission": float(emission.ravel() @ probe(emission.size)),
    }


SIZES: Mapping[str, Mapping[str, int]] = {
    "1,000 x 100, K = 20": {"n_chains": 1000, "length": 100, "n_states": 20},
    "one of 10^6, K = 8": {"n_chains": 1, "length": 1_000_000, "n_states": 8},
}
QUESTIONS: Mapping[str, Mapping[str, Callable[..., Job]]] = {
    "posteriors": {"besag": besag_posteriors, "hmmlearn": hmmlearn_posteriors},
    "best paths": {"besag": besag_paths, "hmmlearn": hmmlearn_paths},
    "ten steps of Baum-Welch": {"besag": besag_training, "hmmlearn": hmmlearn_training},
}

SUITE = Suite(
    title="hidden Markov models",
    cases=tuple(
        Case(f"{question}, {size}", contestants, parameters, tolerance=1e-9)
        for question, contestants in QUESTIONS.items()
        for size, parameters in SIZES.items()
    ),
)
