"""RBM: a restricted Boltzmann machine of a table, learnt without labels.

p(v, h) = exp(<b, v> + <c, h> + v^T W h) / Z,    the gradient of log p(v) by chains: `besag.learn.rbm`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.errors import ModelError
from besag.estimators.base import Estimator, NotFittedError, check_choice, read_seed
from besag.estimators.files import save_estimator
from besag.estimators.learner import check_file
from besag.estimators.rbm.layer import BinaryLayer, CategoricalLayer, VisibleLayer, layer_from
from besag.infer.iterate import Clock
from besag.learn.optimisers.schedules import SCHEDULES
from besag.learn.rbm.as_model import model_of
from besag.learn.rbm.course import OnEpoch, Row, TrainingRun, Watch
from besag.learn.rbm.machine import Machine
from besag.learn.rbm.monitors import Monitors, pseudo_likelihood
from besag.learn.rbm.partition import N_CHAINS, N_TEMPERATURES, LogPartition, check_annealing, log_partition
from besag.learn.rbm.training import Trainer, UpdateOptions, first_machine, read_objective
from besag.model.model import Model
from besag.query.progress import ProgressLine, pace
from besag.query.run import check_options
from besag.registry import is_number, is_whole

if TYPE_CHECKING:
    import pandas as pd


class RBM(Estimator):
    """A restricted Boltzmann machine: hidden binary units, each tied to every column of a table.

    visible: "binary", numbers from 0 to 1, or "categorical", states of any kind. objective: "pcd[k=1,n_chains=...]", as
    many chains as rows in a batch unless said otherwise, or "contrastive_divergence[k=1]". schedule, decay: how the
    learning rate shrinks over the epochs, as for optimisers. weight_decay: W shrinks by learning_rate * weight_decay
    each update. max_iter: epochs. monitor_every, likelihood_every: epochs between two looks at the monitors, and at the
    log-likelihood; None for never. random_state: a whole number, or None for another fit each time.

    >>> import numpy as np
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 50, axis=0)
    >>> rbm = RBM(n_hidden=2, batch_size=10, learning_rate=0.5, max_iter=100, random_state=0).fit(X)
    >>> bool(np.exp(rbm.score_samples(X[[0, -1]])).sum() > 0.9)
    True
    """

    notes_: Mapping[str, Any] = MappingProxyType({})
    _model: Model | None
    _log_z: LogPartition | None

    def __init__(
        self,
        n_hidden: int = 256,
        *,
        visible: Literal["binary", "categorical"] = "binary",
        objective: str = "pcd",
        batch_size: int = 100,
        max_iter: int = 10,
        learning_rate: float = 0.1,
        schedule: str = "cosine",
        decay: float = 1.0,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        monitor_every: int | None = 1,
        likelihood_every: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.n_hidden, self.visible, self.objective = n_hidden, visible, objective
        self.batch_size, self.max_iter = batch_size, max_iter
        self.learning_rate, self.schedule, self.decay = learning_rate, schedule, decay
        self.momentum, self.weight_decay = momentum, weight_decay
        self.monitor_every, self.likelihood_every = monitor_every, likelihood_every
        self.time_limit, self.n_jobs, self.random_state, self.verbose = time_limit, n_jobs, random_state, verbose

    # Learning --------------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        held_out: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        on_step: OnEpoch | None = None,
    ) -> Self:
        """Learn from rows; y is not looked at.

        held_out: rows for two more columns of the history. checkpoint: a file to go on from, where it exists, and to
        write. on_step: called with each row of the history; True ends the fit.
        """
        self._check_parameters()
        if checkpoint is not None:
            check_file(checkpoint)
        layer = (BinaryLayer if self.visible == "binary" else CategoricalLayer).of(X)
        units = layer.encode(X)
        others = None if held_out is None else layer.encode(held_out)
        training = self._begin(layer, units)
        watch = Watch(
            Monitors.of(units, others, len(layer.names), training.options.seed),
            self.monitor_every,
            self.likelihood_every,
            self.n_jobs,
        )
        course, line = (
            TrainingRun(training, units, watch, Clock(self.time_limit)),
            ProgressLine() if self.verbose else None,
        )
        try:
            stopped = course.run(_watching(on_step, line, self.max_iter, self.time_limit), checkpoint)
        finally:
            if line is not None:
                line.end()
        return self._keep(layer, training, course.rows, stopped)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One epoch on these rows at the full learning rate, from where the last call or fit ended.

        Parameters may have changed since then, except n_hidden and visible.
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            layer: VisibleLayer = (BinaryLayer if self.visible == "binary" else CategoricalLayer).of(X)
            training, rows = self._begin(layer, layer.encode(X)), list[Row]()
        else:
            layer, rows = self._layer, self._rows
            self._refuse_another_machine()
            training = self._training.going_on(self._options(self._training.options.seed))
        units = layer.encode(X)
        clock = Clock()
        training.one_epoch(units, clock)
        last = rows[-1] if rows else {"iteration": 0.0, "seconds": 0.0}
        row = {"iteration": last["iteration"] + 1.0, "seconds": last["seconds"] + clock.seconds}
        return self._keep(layer, training, [*rows, row | {"learning_rate": training.rate}], "max_iterations")

    def _refuse_another_machine(self) -> None:
        visible = "binary" if self._machine.is_binary else "categorical"
        for name, learnt in (("n_hidden", self._machine.n_hidden), ("visible", visible)):
            if getattr(self, name) != learnt:
                raise ModelError(
                    f"{name} is {getattr(self, name)!r} now, and partial_fit goes on with a machine that was begun "
                    f"with {learnt!r}; call fit for another one"
                )

    def _begin(self, layer: VisibleLayer, units: AnyArray) -> Trainer:
        seed = read_seed(self.random_state)
        first = first_machine(units, layer.offsets, layer.is_binary, self.n_hidden, seed)
        return Trainer(first, self._options(seed))

    def _options(self, seed: int) -> UpdateOptions:
        k, n_chains = read_objective(self.objective, self.batch_size)
        return UpdateOptions(
            k, n_chains, self.batch_size, float(self.learning_rate), self.schedule, float(self.decay),
            float(self.momentum), float(self.weight_decay), self.max_iter, seed,
        )  # fmt: skip

    def _keep(self, layer: VisibleLayer, training: Trainer, rows: list[Row], stopped: str | None) -> Self:
        self._layer, self._training, self._rows, self.stopped_ = layer, training, rows, stopped
        self._machine, self._model, self._log_z = training.machine, None, None
        self.n_features_in_ = len(layer.names)
        if getattr(layer, "named", False):
            self.feature_names_in_ = np.array(layer.names, object)
        return self

    def _check_parameters(self) -> None:
        check_choice("visible", self.visible, ("binary", "categorical"))
        check_choice("schedule", self.schedule, SCHEDULES)
        for name, least in (("n_hidden", 1), ("batch_size", 1), ("max_iter", 0)):
            if not is_whole(getattr(self, name)) or getattr(self, name) < least:
                raise ModelError(f"{name} must be a whole number of at least {least}, got {getattr(self, name)!r}")
        for name in ("monitor_every", "likelihood_every", "n_jobs"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and value >= 1):
                raise ModelError(f"{name} must be a whole number of at least 1, or None, got {value!r}")
        for name, below in (("learning_rate", np.inf), ("decay", np.inf), ("momentum", 1.0), ("weight_decay", np.inf)):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < below or (name == "learning_rate" and value == 0):
                bound = "a positive number" if name == "learning_rate" else f"a number from 0 on and below {below:g}"
                raise ModelError(f"{name} must be {bound}, got {value!r}")
        limit = self.time_limit
        if limit is not None and not (is_number(limit) and limit > 0):
            raise ModelError(f"time_limit must be a positive number of seconds, or None, got {limit!r}")

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def components_(self) -> AnyArray:
        """(H, S): the weights; a column a visible unit, which is a column of the table where these are binary."""
        return self._fitted.weights.T

    @property
    def intercept_hidden_(self) -> AnyArray:
        """(H,): the biases of hidden units."""
        return self._fitted.hidden

    @property
    def intercept_visible_(self) -> AnyArray:
        """(S,): the biases of visible units."""
        return self._fitted.visible

    @property
    def history_(self) -> pd.DataFrame:
        """A row an epoch: iteration, seconds, learning_rate, and the monitors."""
        import pandas as pd

        self._check_fitted()
        return pd.DataFrame(self._rows).astype({"iteration": np.int64})

    @property
    def n_iter_(self) -> int:
        """Whole epochs."""
        self._check_fitted()
        return int(self._rows[-1]["iteration"])

    @property
    def model_(self) -> Model:
        """The machine as a Model, on which every engine answers; hidden variables are "h0", "h1", ..."""
        machine = self._fitted
        if self._model is None:
            self._model = model_of(machine, self._layer.names, self._layer.states)
        return self._model

    @property
    def _fitted(self) -> Machine:
        self._check_fitted()
        return self._machine

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this RBM is not fitted yet; call fit(X) first")

    def __sklearn_is_fitted__(self) -> bool:
        return "_machine" in vars(self)

    # Answers ---------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> AnyArray:
        """(N, H) float32: p(h = 1 | v), the features of rows."""
        return self._fitted.expect_hidden(self._read(X))

    def fit_transform(self, X: Any, y: Any = None) -> AnyArray:
        """fit, then transform."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """rbm0, rbm1, ..."""
        return np.array([f"rbm{j}" for j in range(self._fitted.n_hidden)], object)

    def reconstruct(self, X: Any) -> AnyArray:
        """(N, S): p(v = 1 | E[h | row]): what the machine makes of rows."""
        machine = self._fitted
        return machine.expect_visible(machine.expect_hidden(self._read(X)))

    def free_energy(self, X: Any) -> Array:
        """(N,): F(v) = -log sum over h of exp(-H(v, h)), so that log p(v) = -F(v) - log Z."""
        machine = self._fitted
        return machine.free_energy(self._read(X))

    def log_partition(
        self,
        method: Literal["auto", "exact", "ais"] = "auto",
        *,
        n_chains: int = N_CHAINS,
        n_temperatures: int = N_TEMPERATURES,
        confidence: float = 0.95,
        seed: int = 0,
        time_limit: float | None = None,
    ) -> LogPartition:
        """log Z: exact where a layer has at most 25 binary units, else by annealing, with an interval low to high.

        >>> import numpy as np
        >>> found = RBM(n_hidden=3, max_iter=0).fit(np.eye(4)).log_partition()
        >>> found.method, round(float(found), 1)
        ('exact', 3.5)
        """
        machine = self._fitted
        check_annealing(method, n_chains, n_temperatures, confidence)
        check_options({"seed": seed, "time_limit": time_limit})
        rng, clock = np.random.default_rng(seed), Clock(time_limit)
        return log_partition(machine, method, n_chains, n_temperatures, confidence, rng, clock, self.n_jobs)

    def score_samples(self, X: Any) -> Array:
        """(N,): log p of each row; by `log_partition()`, which is found once and kept."""
        energies = self.free_energy(X)
        if self._log_z is None:
            self._log_z = self.log_partition()
        return np.asarray(-energies - float(self._log_z))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p over the rows."""
        return float(self.score_samples(X).mean())

    def pseudo_likelihood(self, X: Any, n_variables: int | None = None, *, seed: int = 0) -> Array:
        """(N,): sum over columns of log p(column | the others); n_variables: an estimate from so many of each row."""
        machine, units = self._fitted, self._read(X)
        check_options({"seed": seed})
        n = machine.n_visible
        if n_variables is None:
            picks = np.broadcast_to(np.arange(n), (len(units), n))
        elif is_whole(n_variables) and n_variables >= 1:
            picks = np.random.default_rng(seed).integers(n, size=(len(units), n_variables))
        else:
            raise ModelError(f"n_variables must be a whole number of at least 1, or None, got {n_variables!r}")
        return pseudo_likelihood(machine, units, picks, self.n_jobs)

    def sample(self, n_samples: int = 1, *, n_sweeps: int = 1000, seed: int = 0) -> Any:
        """Rows drawn by Gibbs sampling, n_sweeps from the chains of the fit on, each row a chain of its own."""
        machine = self._fitted
        _check_whole(n_samples=n_samples, n_sweeps=n_sweeps)
        check_options({"seed": seed})
        rng, chains = np.random.default_rng(seed), self._training.chains
        if len(chains):
            start = machine.draw_visible(chains[rng.integers(len(chains), size=n_samples)], rng)
        else:
            start = machine.starts(n_samples, rng)
        return self._layer.decode(machine.gibbs(start, n_sweeps, rng))

    def gibbs(self, X: Any, n_sweeps: int = 1, *, seed: int = 0) -> Any:
        """Rows after some sweeps of Gibbs sampling that begin at these."""
        machine = self._fitted
        _check_whole(n_sweeps=n_sweeps)
        check_options({"seed": seed})
        rng = np.random.default_rng(seed)
        return self._layer.decode(machine.gibbs(self._read(X), n_sweeps, rng))

    def _read(self, X: Any) -> AnyArray:
        return self._layer.encode(X)

    # Files -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted machine to one file, without pickle; `besag.load` reads it, and partial_fit goes on."""
        self._check_fitted()
        save_estimator(self, path)

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        told = {"layer": self._layer.told(), "options": asdict(self._training.options), "rows": self._rows}
        return {**told, "stopped": self.stopped_}, {**self._training.kept(), "base": self._machine.base}

    @classmethod
    def _restored(cls, given: dict[str, Any], told: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Self:
        layer = layer_from(told["layer"])
        parts = arrays["weights"], arrays["visible"], arrays["hidden"], arrays["base"]
        training = Trainer(Machine(*parts, layer.offsets, layer.is_binary), UpdateOptions(**told["options"]))
        training.restore(dict(arrays))
        return cls(**given)._keep(layer, training, told["rows"], told["stopped"])

    def __sklearn_tags__(self) -> Any:
        """A transformer of tables."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        inputs = InputTags(categorical=self.visible == "categorical", string=self.visible == "categorical", sparse=True)
        transformer = TransformerTags(preserves_dtype=[])
        return Tags(None, TargetTags(required=False), transformer, input_tags=inputs)


def _check_whole(**values: object) -> None:
    """ModelError for what is no whole number of at least 1."""
    for name, value in values.items():
        if not is_whole(value) or value < 1:  # type: ignore[operator]
            raise ModelError(f"{name} must be a whole number of at least 1, got {value!r}")


def _watching(
    on_step: OnEpoch | None, line: ProgressLine | None, most: int, time_limit: float | None
) -> OnEpoch | None:
    """What is called with each row: the user's function, and the line of progress."""
    if line is None:
        return on_step

    def both(row: Row) -> bool | None:
        shown = [f"{name} {row[name]:.4g}" for name in ("pseudo_likelihood", "log_likelihood") if name in row]
        rate = pace(int(row["iteration"]), row["seconds"], most, time_limit)
        line.show(", ".join([f"RBM: epoch {row['iteration']:.0f}, {row['seconds']:.1f} s", *shown]) + rate)
        return None if on_step is None else on_step(row)

    return both
