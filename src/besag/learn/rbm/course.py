"""The course of a fit: epochs until there are enough or the time is up, with a row of monitors after each.

A checkpoint has all that the next update depends on: parameters, velocities, chains and the number of updates, and the
rows so far. It is written where the fit ends and every PERIOD seconds, and a fit that resumes from it is the same fit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import AnyArray
from besag.errors import ModelError
from besag.infer.iterate import Clock, Stopped, drive
from besag.learn.checkpoint import Checkpoint, Kept, load_checkpoint, save_checkpoint
from besag.learn.history import Iteration
from besag.learn.rbm.monitors import Monitors
from besag.learn.rbm.partition import log_partition
from besag.learn.rbm.training import Trainer

Row: TypeAlias = dict[str, float]
OnEpoch: TypeAlias = Callable[[Row], bool | None]
PERIOD = 30.0  # seconds between two checkpoints
CHAINS, TEMPERATURES = 100, 1000  # of annealing on the way


@dataclass(frozen=True, slots=True)
class Watch:
    """What is looked at, and how often, in epochs; None for never."""

    monitors: Monitors
    every: int | None
    likelihood_every: int | None
    n_threads: int | None

    def look(self, training: Trainer, epoch: int) -> Row:
        """The columns of this epoch; those that are not due are left out."""
        machine, found = training.machine, dict[str, float]()
        if self.every and epoch % self.every == 0:
            found |= self.monitors.look(machine, training.chains)
        if self.likelihood_every and epoch % self.likelihood_every == 0:
            rng, clock = np.random.default_rng([training.options.seed, 4, epoch]), Clock()
            log_z = log_partition(machine, "auto", CHAINS, TEMPERATURES, 0.95, rng, clock, self.n_threads)
            found["log_likelihood"] = -float(machine.free_energy(self.monitors.units).mean()) - log_z
            if self.monitors.held_out is not None:
                held_out = float(machine.free_energy(self.monitors.held_out).mean())
                found["held_out_log_likelihood"] = -held_out - log_z
            found["log_partition_error"] = log_z.standard_error or 0.0
        return found


class TrainingRun:
    """A fit under way. rows: one an epoch, beginning with that of the start."""

    def __init__(self, training: Trainer, units: AnyArray, watch: Watch, clock: Clock) -> None:
        self.training, self.units, self.watch, self.clock = training, units, watch, clock
        self.rows: list[Row] = []
        self.before, self.saved = 0.0, clock.seconds

    @property
    def n_epochs(self) -> int:
        """Whole ones so far."""
        return self.training.n_updates // self.training.n_batches(len(self.units))

    def run(self, on_epoch: OnEpoch | None, path: str | PathLike[str] | None) -> Stopped:
        """Goes on from the file where there is one, and says why it ended."""
        if path is not None and Path(path).exists():
            self.resume(load_checkpoint(path))
        if not self.rows:
            self._add()

        def advance() -> Stopped | None:
            if self.n_epochs >= self.training.options.max_epochs:
                return "max_iterations"
            if not self.training.epoch(self.units, self.clock):
                return "time_limit"
            row = self._add()
            if path is not None and self.clock.seconds - self.saved > PERIOD:
                self.save(path)
            return "early_stopping" if on_epoch is not None and on_epoch(row) else None

        stopped = drive(advance)
        if path is not None:
            self.save(path)
        return stopped

    def _add(self) -> Row:
        """A row for what was just done."""
        epoch = self.n_epochs
        row = {"iteration": float(epoch), "seconds": self.before + self.clock.seconds, "learning_rate": math.nan}
        if epoch:
            row["learning_rate"] = self.training.rate
        self.rows.append(row | self.watch.look(self.training, epoch))
        return self.rows[-1]

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a checkpoint."""
        nan = math.nan
        rows = [Iteration(i, row["seconds"], nan, nan, row["learning_rate"]) for i, row in enumerate(self.rows)]
        kept: dict[str, Kept] = {**self.training.kept(), "history": json.dumps(self.rows), **self._sizes()}
        seconds = self.before + self.clock.seconds
        save_checkpoint(Checkpoint("rbm", np.zeros(0), len(rows) - 1, seconds, tuple(rows), kept), path)
        self.saved = self.clock.seconds

    def resume(self, found: Checkpoint) -> None:
        """Goes on from a checkpoint; ModelError where it is of another fit."""
        kept: Mapping[str, Any] = found.kept
        for name, expected in (("optimizer", "rbm"), *self._sizes().items()):
            had = found.optimizer if name == "optimizer" else kept.get(name)
            if had != expected:
                raise ModelError(
                    f"the checkpoint is of another fit: its {name} is {had}, expected {expected}; take another file"
                )
        self.training.restore(dict(kept))
        self.rows, self.before = json.loads(str(kept["history"])), found.seconds

    def _sizes(self) -> dict[str, int]:
        """What the number of updates in an epoch depends on."""
        return {"rows": len(self.units), "batch_size": int(self.training.options.batch_size)}
