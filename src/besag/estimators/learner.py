"""An estimator that minimises an objective: what its fit shares with others, and what it tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, Array
from besag.errors import CapabilityError, ModelError
from besag.estimators.base import Estimator
from besag.estimators.files import save_estimator
from besag.infer.iterate import clear_interrupts
from besag.learn.history import History, Iteration, OnIteration
from besag.learn.objective import Instances, Total
from besag.learn.optimisers.base import OPTIMIZERS, Optimizer
from besag.learn.progress import FitProgress, ended
from besag.learn.training import minimum, usual_optimizer, warn_of_end
from besag.registry import split_spec

if TYPE_CHECKING:
    import pandas as pd


USUAL = "lbfgs[relative_decrease=1e-5]"
COLUMN = "history."  # of the names of columns of a history, in files


class Learner(Estimator):
    """An estimator with the parameters optimizer, max_iter, tol, time_limit and verbose, and a history.

    optimizer: None is USUAL, or frank_wolfe for max_margin. tol: None is that of the optimizer.
    """

    optimizer: str | Optimizer | None
    max_iter: int
    tol: float | None
    time_limit: float | None
    verbose: bool
    _history: History

    def _learn(
        self,
        total: Total,
        held_out: Instances | None,
        checkpoint: str | PathLike[str] | None,
        on_step: OnIteration | None,
        time_limit: float | None = None,
    ) -> Array:
        """Theta where the objective is least; the history is kept, and where to go on from, if that is asked for.

        time_limit: in place of the parameter.
        """
        chosen = usual_optimizer(total, USUAL) if self.optimizer is None else self.optimizer
        is_named = isinstance(chosen, str)  # an object has its own
        fill = {"max_iterations": _plain(self.max_iter), "tolerance": _plain(self.tol)} if is_named else {}
        method = OPTIMIZERS.read(chosen, **fill)
        most, limit = method.max_iterations, self.time_limit if time_limit is None else time_limit
        progress = FitProgress(type(self).__name__, on_step, most, limit) if self.verbose else None
        with clear_interrupts(), ended(progress):
            found = minimum(
                total,
                method,
                np.zeros(len(total.statistics)),
                held_out=held_out,
                time_limit=limit,
                on_step=on_step if progress is None else progress.told,
                resume=checkpoint if checkpoint is not None and Path(checkpoint).exists() else None,
            )
        if checkpoint is not None:
            found.checkpoint.save(checkpoint)
        self._history = found.history
        more = f"more than max_iter={most} may help"
        warn_of_end(type(self).__name__, found.history, more, is_exact=total.objective.is_exact)
        return np.asarray(found.theta)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to one file, without pickle; `besag.load` reads it."""
        self._check_fitted()
        save_estimator(self, path)

    def _stored_history(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a file keeps of the history: entries of its text, and arrays."""
        history = self._history
        rows = np.array(history.rows, np.float64).reshape(-1, len(Iteration._fields))
        arrays = {"history": rows, "held_out": np.array(history.held_out, np.float64)}
        arrays |= {COLUMN + name: np.array(values, np.float64) for name, values in history.columns.items()}
        return {"stopped": history.stopped, "went_back": history.went_back}, arrays

    def _restore_history(self, told: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        rows = [Iteration(int(number), *rest) for number, *rest in arrays["history"].tolist()]
        held_out = arrays["held_out"].tolist()
        columns = {name.removeprefix(COLUMN): own.tolist() for name, own in arrays.items() if name.startswith(COLUMN)}
        self._history = History(rows, told["stopped"], went_back=told["went_back"], held_out=held_out, columns=columns)

    @property
    def history_(self) -> pd.DataFrame:
        """Columns iteration, seconds, value, grad_norm, step, and held_out if such data were given."""
        self._check_fitted()
        return self._history.to_frame()

    @property
    def objective_(self) -> float:
        """Loss plus penalty at the end."""
        self._check_fitted()
        return self._history.value

    @property
    def n_iter_(self) -> int:
        """Iterations of the optimiser."""
        self._check_fitted()
        return self._history.n_iterations

    @property
    def converged_(self) -> bool:
        """Whether the optimiser reached its tolerance."""
        self._check_fitted()
        return self._history.converged

    @property
    def stopped_(self) -> str | None:
        """Why the fit ended: converged, max_iterations, time_limit, interrupted, no_progress or early_stopping."""
        self._check_fitted()
        return self._history.stopped


def check_file(path: Any) -> None:
    """ModelError, before any work is done, if a checkpoint could not be written."""
    if not isinstance(path, (str, PathLike)):
        raise ModelError(f"checkpoint must be the path of a file, got {path!r}")
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise ModelError(f"checkpoint must be a file in an existing folder, got {str(path)!r}")


def refuse_probabilities(learnt_by: Any) -> None:
    """CapabilityError where what was learnt says which labelling is best, and not how probable it is."""
    if isinstance(learnt_by, str) and split_spec(learnt_by)[0] == "max_margin":
        raise CapabilityError(
            "max_margin learns which labelling is best, and no probabilities: predict by decode='map', or learn by "
            "another objective"
        )


def check_labels_to_save(classes: tuple[Any, ...]) -> None:
    """ModelError for labels that a file cannot hold."""
    for label in classes:
        if not isinstance(label, (str, int, float)):
            raise ModelError(f"only labels that are texts or numbers can be saved, got {label!r}")


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value
