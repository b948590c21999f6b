"""toulbar2 (pytoulbar2, MIT): branch and bound with soft arc consistency, in a process of its own.

The network in whole numbers is `cost_network`'s; what toulbar2 prints is read as it comes:

    New solution: C ...      a line with the codes of a labelling follows
    Optimality gap: [L, U]   a lower bound
    Optimum: C               the best labelling is proven
    No solution              there is none below the costs that were known

Energies are the Problem's; the bound is L / scale less what rounding to whole numbers can do, and `optimal` follows
from both as everywhere. While toulbar2 is at work, local search goes on here, with n_threads=1 it does not. Rows, or
the instances of a union, come one after the other and share the time; for the k best each has k searches, where a
factor on all variables forbids those that are known.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from besag.arrays import IntArray
from besag.errors import ConvergenceWarning, require, warn
from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.iterate import Clock, Limits, Stopped, iterate
from besag.infer.map.blocks import Blocks
from besag.infer.map.climbing import Climber
from besag.infer.map.cost_network import CostNetwork, make_network, refuse_network
from besag.infer.map.labellings import ENDED, BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.map.ranking import count_asked, tasks_of, with_ranking
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.unfolding import unfolding
from besag.kernels.factors import TABLE

TABLES = frozenset({TABLE})
WORKER = Path(__file__).with_name("toulbar2_worker.py")
POLL = 0.02  # seconds between two looks at what was printed, where there is nothing else to do
NUMBER = r"(-?\d+)(?:\.0*)?"
SOLUTION = re.compile(rf"New solution: {NUMBER} ")
GAP = re.compile(rf"(?:Optimality gap|Initial lower and upper bounds): \[{NUMBER}, ")
OPTIMUM = re.compile(rf"Optimum: {NUMBER} ")


class Event(NamedTuple):
    """What toulbar2 has told: solution, bound, optimum, or none."""

    kind: str
    cost: int = 0
    codes: IntArray | None = None


@dataclass(frozen=True, slots=True)
class Toulbar2:
    """The best labelling by toulbar2, or the best within the time and a bound; needs besag[toulbar2]."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"map", "trace"}), "exact", "tables that fit in memory", starts_from="labelling"
    )
    k: int = 1
    n_threads: int | None = None
    memory_limit: int | None = None

    @unfolding
    def infer(
        self,
        problem: Problem,
        want: frozenset[Want],
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """The best labellings, and bounds."""
        began = time.perf_counter()
        check_wants(self, want)
        require("pytoulbar2", "toulbar2", "engine 'toulbar2'")
        landscape, clock = Landscape(problem, self.memory_limit), Clock(time_limit, began)
        with contextlib.closing(Proving(self, landscape, warm, rng, clock)) as process:
            result = iterate("toulbar2", process, want, Limits(10**9, ENDED, time_limit), began, on_step)
        for message in process.messages:
            warn(ConvergenceWarning(f"{message}; the answer is the best so far"))
        return result


class Proving:
    """Searches of all rows or instances, one after the other: a Process."""

    def __init__(
        self, engine: Toulbar2, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None, clock: Clock
    ) -> None:
        self.engine, self.landscape, self.clock = engine, landscape, clock
        self.setting = Prepared(landscape.setting.given, TABLES, landscape.setting.limit)
        refuse_network(self.setting)
        self.rng = np.random.default_rng(0) if rng is None else rng
        self.best = BestLabellings(landscape, landscape.start(warm, self.rng))
        self.tasks = tasks_of(landscape)
        self.found: list[list[IntArray]] = [[] for _ in self.tasks]
        self.k = count_asked(landscape, engine.k)
        self.number, self.n_complete, self.until = 0, 0, math.inf
        self.known: list[IntArray] = []  # the best labellings of this task, proven
        self.last: IntArray | None = None  # the last labelling of this search
        self.worker: Worker | None = None
        self.network: CostNetwork | None = None
        self.blocks = Blocks(landscape)
        self.climber: Climber | None = None
        self.messages: list[str] = []
        self.ended = cast("Stopped | None", None)

    def close(self) -> None:
        """Ends the process that is at work."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def step(self) -> float:
        """What was printed since the last step, and a move of local search; 0 where all tasks are solved."""
        if self.worker is None:
            if not self.landscape.possible[self.number]:
                return self._end_task(complete=True)
            self._begin()
        assert self.worker is not None
        climbs = self.climber is not None and not self.climber.proven
        for event in self.worker.read(0.0 if climbs else POLL):
            self._heed(event)
        if climbs and self.climber is not None:
            self.climber.step()
            self._offer_row(self.climber.best)
        if self.k == 1 and self.climber is not None and self.climber.proven:
            return self._end_task(complete=True)
        if self.worker.ended:
            return self._end_search()
        return self._end_task(complete=False) if self.clock.seconds > self.until else math.inf

    def _begin(self) -> None:
        """Starts a search of the task; the first one sets its time."""
        row, instance = self.tasks[self.number]
        if not self.known:
            self.until = self.clock.seconds + self.clock.left / (len(self.tasks) - self.number)
        energy = float(self.best.found[self.number])
        self.network = make_network(self.setting, row, instance, energy, below=self.k == 1, forbidden=self.known)
        seed = int(self.rng.integers(1, 2**31 - 1))
        self.worker, self.last = Worker(self.network.text, self.engine.memory_limit or 0, seed), None
        alone = self.landscape.graph.n_instances == 1 and not self.known and self.engine.n_threads != 1
        key = np.random.default_rng(seed)
        self.climber = Climber(self.landscape, self.blocks, row, self.best.codes[row], key) if alone else None

    def _heed(self, event: Event) -> None:
        network = self.network
        assert network is not None
        if event.codes is not None:
            self._offer(event.codes)
        elif self.known:
            return
        elif event.kind != "none":
            self.best.raise_bound(self.number, network.energy(event.cost))
        elif math.isfinite(self.best.found[self.number]):  # nothing is better than what was known
            self.best.raise_bound(self.number, float(self.best.found[self.number]) - 2.0 * network.error)
        else:
            self.landscape.possible[self.number] = False

    def _end_search(self) -> float:
        """After toulbar2 has ended: the next search, or the end of the task."""
        assert self.worker is not None
        failure = self.worker.failure
        self.close()
        if failure:
            self.messages.append(failure)
            return self._end_task(complete=False)
        if self.last is not None:
            self.known.append(self.last)
        again = self.last is not None and len(self.known) < self.k
        return math.inf if again else self._end_task(complete=True)

    def _offer(self, codes: IntArray) -> None:
        """A labelling of the task."""
        self.last = codes
        self.found[self.number].append(codes)
        whole = self.best.complete(*self.tasks[self.number], codes)
        self._offer_row(whole)
        if self.climber is not None:
            self.climber.note(whole, self.climber.weigh(whole))

    def _offer_row(self, codes: IntArray) -> None:
        self.best.offer_row(self.tasks[self.number][0], codes)

    def _end_task(self, *, complete: bool) -> float:
        if self.climber is not None and self.climber.proven:
            self.best.raise_bound(self.number, float(self.best.found[self.number]))
        self.close()
        self.n_complete += complete
        self.number, self.known = self.number + 1, []
        if self.number < len(self.tasks):
            return math.inf
        whole = self.n_complete == len(self.tasks)
        self.ended = "no_progress" if whole or self.messages else "time_limit"
        return 0.0 if whole else math.inf

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far."""
        return with_ranking(self.best, self.found, self.k, proven=self.n_complete == len(self.tasks))

    def details(self) -> Mapping[str, Any]:
        """How many searches came to their end, and what toulbar2 said where it failed."""
        return {"solved": self.n_complete, "messages": tuple(self.messages)}


class Worker:
    """toulbar2 in a process of its own, at work on one network."""

    def __init__(self, text: str, n_bytes: int, seed: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="besag-")
        path = Path(self.folder.name) / "network.cfn"
        path.write_text(text)
        command = [sys.executable, str(WORKER), str(path), str(n_bytes), str(seed)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.errors = (Path(self.folder.name) / "errors").open("w+b")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, stdin=subprocess.DEVNULL, cwd=self.folder.name,
            env=environment, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.pipe, self.rest, self.awaits = self.process.stdout.fileno(), b"", False
        self.ended, self.failure, self.told = False, "", False

    def read(self, seconds: float) -> list[Event]:
        """What was printed; waits so long for it."""
        ready, _, _ = select.select([self.pipe], [], [], seconds)
        if not ready:
            return []
        data = os.read(self.pipe, 1 << 20)
        if not data:
            self._end()
        *lines, self.rest = (self.rest + data).split(b"\n")
        return list(self._events([line.decode(errors="replace") for line in lines]))

    def _events(self, lines: list[str]) -> Iterator[Event]:
        for line in lines:
            if self.awaits:
                self.awaits = False
                yield Event("solution", codes=np.array(line.split(), np.int64))
            elif SOLUTION.match(line):
                self.awaits = True
            elif found := GAP.match(line):
                yield Event("bound", int(found[1]))
            elif found := OPTIMUM.match(line):
                self.told = True
                yield Event("optimum", int(found[1]))
            elif line.startswith("No solution"):
                self.told = True
                yield Event("none")

    def _end(self) -> None:
        code = self.process.wait()
        self.ended = True
        if code or not self.told:
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip().splitlines()
            self.failure = (
                f"toulbar2 ended with code {code}: {said[-1] if said else self.rest.decode(errors='replace')}"
            )

    def close(self) -> None:
        """Ends the process, if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()
        self.folder.cleanup()
