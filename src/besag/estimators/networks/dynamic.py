"""DynamicNetwork: a two-slice network, asked about sequences of frames and learnt from them.

A frame is a table with a row for each slice and columns named as the variables of a slice; absent columns and missing
cells are hidden. Learning and smoothing are those of the unrolled network (`besag.unroll`): CPTs are counted, and by
expected counts where something is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from besag.arrays import Array, IntArray
from besag.data.dataset import Batch, Dataset
from besag.data.tables.reading import read_table
from besag.errors import DataError, EvidenceError, ModelError
from besag.estimators.base import Estimator, read_seed
from besag.graph.compile import compile_graph
from besag.graph.evidence import Evidence
from besag.model.dynamic import read_slices, unroll
from besag.model.model import Model
from besag.registry import is_whole

if TYPE_CHECKING:
    import pandas as pd


class DynamicNetwork(Estimator):
    """A two-slice dynamic network: "rain -> rain'; rain -> umbrella", see `besag.unroll` for what X and X' mean.

    slice_model: a Bayesian network; its CPTs answer queries until `fit` is called, which begins at them. prior: counts
    added to every entry of the CPTs, or {"X'": table}. max_iter, tol, restarts, time_limit, random_state: of EM, where
    cells are missing.

    >>> import besag
    >>> weather = besag.bayesian_network("rain -> rain'", cpts={"rain'": [[0.7, 0.3], [0.3, 0.7]]})
    >>> besag.DynamicNetwork(weather).predicted({"rain": ["1", "1"]}, 2)["rain"].round(2)
          0     1
    2  0.30  0.70
    3  0.42  0.58
    """

    def __init__(
        self,
        slice_model: Model,
        *,
        prior: Any = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        restarts: int = 0,
        time_limit: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.slice_model, self.prior = slice_model, prior
        self.max_iter, self.tol, self.restarts, self.time_limit = max_iter, tol, restarts, time_limit
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the CPTs from frames, a list of tables; y is not looked at."""
        from besag.learn.hidden.em import em

        rows = [self._codes(frame, n) for n, frame in enumerate(_listed(X))]
        lengths = sorted({len(codes) for codes in rows})
        unrolled = {length: unroll(self.slice_model, length) for length in lengths}
        data: Any = np.array([codes.reshape(-1) for codes in rows]) if len(lengths) == 1 else None
        if data is None:
            graph = compile_graph(*(unrolled[len(codes)] for codes in rows))
            data = Dataset(Batch(graph, np.concatenate([codes.reshape(-1) for codes in rows])))
        self.fit_ = em(
            unrolled[lengths[-1]],
            data,
            prior_counts=self._prior(),
            max_iterations=self.max_iter,
            tolerance=self.tol,
            restarts=self.restarts,
            seed=read_seed(self.random_state),
            time_limit=self.time_limit,
            n_threads=self.n_jobs,
            progress=self.verbose,
        )
        self.model_: Model = self.slice_model.with_numbers(self.fit_.theta, self.fit_.model.support)
        return self

    def _prior(self) -> Any:
        """Prior counts in the layout of theta, which slices and slice model share."""
        from besag.learn.hidden.tables import read_counts

        return read_counts(self.slice_model, self.prior)

    # Frames ----------------------------------------------------------------------------------------------------------

    def _model(self) -> Model:
        """The slice model: that of fit, else the given one."""
        return self.model_ if "model_" in vars(self) else self.slice_model

    def _codes(self, frame: Any, n: int | None = None) -> IntArray:
        """(T, B), -1 = hidden."""
        model = self._model()
        slices, where = read_slices(model), "the frame" if n is None else f"frame {n}"
        states = {name: model.variables.states(int(v)) for name, v in zip(slices.names, slices.first, strict=True)}
        table = read_table(frame, states)
        for name in table.names:
            if name not in states:
                raise DataError(
                    f"{where}: column {name!r} is no variable of a slice; it has {list(states)}", column=name
                )
        if table.n_rows == 0:
            raise DataError(f"{where} has no rows: expected one for each slice")
        codes = np.full((table.n_rows, len(states)), -1)
        codes[:, [slices.names.index(name) for name in table.names]] = table.observed()
        return codes

    def _frames(self, answers: Sequence[Sequence[Array]], first: int = 0) -> dict[str, pd.DataFrame]:
        """Marginals of T slices by name: (T, K), columns the states."""
        import pandas as pd

        model = self._model()
        slices = read_slices(model)
        index = range(first, first + len(answers))
        return {
            name: pd.DataFrame(
                np.array([own[b] for own in answers]), index=index, columns=list(model.variables.states(int(v)))
            )
            for b, (name, v) in enumerate(zip(slices.names, slices.first, strict=True))
        }

    def unroll(self, T: int) -> Model:
        """T slices as a Bayesian network."""
        return unroll(self._model(), T)

    # Answers ---------------------------------------------------------------------------------------------------------

    def smoothed(self, frame: Any) -> dict[str, pd.DataFrame]:
        """{name: (T, K)}: p(X_t | all rows)."""
        codes = self._codes(frame)
        return self._frames(self._marginals(codes))

    def filtered(self, frame: Any) -> dict[str, pd.DataFrame]:
        """{name: (T, K)}: p(X_t | rows 0 to t)."""
        from besag.query.filtering import filter_slices

        return self._frames(list(filter_slices(self._model(), self._codes(frame))))

    def predicted(self, frame: Any, n_steps: int = 1) -> dict[str, pd.DataFrame]:
        """{name: (n_steps, K)}: p(X_t | all rows) of the slices that come after them."""
        if not is_whole(n_steps) or n_steps < 1:
            raise ModelError(f"n_steps must be a whole number from 1 on, got {n_steps!r}")
        codes = self._codes(frame)
        whole = np.concatenate([codes, np.full((n_steps, codes.shape[1]), -1)])
        return self._frames(self._marginals(whole)[len(codes) :], len(codes))

    def _marginals(self, codes: IntArray) -> list[list[Array]]:
        n_slices, n = codes.shape
        found = self.unroll(n_slices).marginals(evidence=Evidence(codes.reshape(-1)), n_threads=self.n_jobs)
        names = [f"{name}[{t}]" for t in range(n_slices) for name in read_slices(self._model()).names]
        return [[np.asarray(found[name]) for name in names[t * n : t * n + n]] for t in range(n_slices)]

    def predict(self, frame: Any) -> pd.DataFrame:
        """The most probable states of all slices together, a row for each; what is known stays."""
        codes = self._codes(frame)
        best = self.unroll(len(codes)).map(evidence=Evidence(codes.reshape(-1)), n_threads=self.n_jobs)
        return self._named(np.asarray(best.labels).reshape(codes.shape))

    def _named(self, codes: IntArray) -> pd.DataFrame:
        import pandas as pd

        model = self._model()
        slices = read_slices(model)
        columns = {
            name: pd.Categorical.from_codes(codes[:, b], pd.Index(model.variables.states(int(v))))
            for b, (name, v) in enumerate(zip(slices.names, slices.first, strict=True))
        }
        return pd.DataFrame(columns)

    def score_samples(self, X: Any) -> Array:
        """(N,): log p of each frame, what is hidden summed out; -inf where the model rules it out."""
        scores = []
        for n, frame in enumerate(_listed(X)):
            codes = self._codes(frame, n)
            try:
                scores.append(float(self.unroll(len(codes)).log_partition(evidence=Evidence(codes.reshape(-1)))))
            except EvidenceError:
                scores.append(-np.inf)
        return np.array(scores)

    def log_likelihood(self, X: Any) -> float:
        """log p of all frames."""
        return float(self.score_samples(X).sum())

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p over the frames: scikit-learn's sense of better."""
        return float(self.score_samples(X).mean())

    def sample(self, n_steps: int, n_sequences: int | None = None, random_state: int = 0) -> Any:
        """A frame of so many slices drawn from the model, or a list of frames."""
        drawn = self.unroll(n_steps).sample(1 if n_sequences is None else n_sequences, seed=read_seed(random_state))
        codes = np.stack([column.cat.codes.to_numpy() for _, column in drawn.items()], axis=1).astype(np.int64)
        frames = [self._named(row.reshape(n_steps, -1)) for row in codes]
        return frames[0] if n_sequences is None else frames


def _listed(X: Any) -> list[Any]:
    """Frames as a list; one frame alone is an error, since its rows are slices and not sequences."""
    if isinstance(X, Mapping) or hasattr(X, "columns") or not isinstance(X, Iterable):
        raise DataError("expected a list of frames, each a table with a row for each slice; of one frame make [frame]")
    frames = list(X)
    if not frames:
        raise DataError("there is no frame to learn from")
    return frames
