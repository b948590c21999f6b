"""The routes that sizes choose, and how to send small models along each of them.

Which code answers a question depends on numbers that are written as constants: table entries from which evidence is
let rule out states, rows that go side by side, entries of a tile, work from which a kernel is compiled. Every such
constant is in one of three lists, which `test_routes.py` keeps complete:

    ROUTES     read by drivers: may be forced at any time
    KERNELS    read inside kernels, which keep the value they were compiled with: forced in plain Python only; TILES,
               the sizes among them, also for a whole process before anything is compiled (`set_small_kernels`)
    SETTLED    no route: tolerances, what a print-out shows, what an answer may cost (`tests/settled.py`)

`force({"infer.junction.run.SUPPORT_ABOVE": 0.0})` holds as long as its `with` block, wherever the name was imported
to. `pytest --routes 7` forces routes drawn at random, from that seed and the name of the test, in every test, and
`python -m tests.ways --routes` for every model.
"""

from __future__ import annotations

import ast
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import besag

Forced = Callable[[Mapping[str, Any]], None]  # the fixture `forced`

PACKAGE = Path(besag.__file__).parent
NEVER, ALWAYS = math.inf, 0

ROUTES: dict[str, tuple[Any, ...]] = {
    "data.attributes.BLOCK": (3,),
    "data.dataset.MOST_SHARDS": (1, 100),
    "data.dataset.SHARD_VARIABLES": (1,),
    "data.grids.BLOCK": (2,),
    "data.numbering.BLOCK": (3,),
    "data.numbering.LEAST_PLACES": (2,),
    "data.sequences.FEW_SHARDS": (1,),
    "data.sequences.MOST_TOKENS": (8,),
    "data.sequences.SHARD_TOKENS": (4,),
    "data.streamed.PART_TOKENS": (4,),
    "data.tables.columns.WIDE": (0,),
    "data.tables.files.CHUNK_BYTES": (100,),
    "data.tables.files.CHUNK_ROWS": (3,),
    "estimators.chain_crf.data.BLOCK": (3,),
    "estimators.chain_crf.data.DENSE_PAIRS": (0,),
    "estimators.networks.bayesian.KEPT_PARTS": (2,),
    "estimators.networks.rows.LARGEST_KEY": (8,),
    "estimators.networks.rows.ROWS": (7,),
    "estimators.networks.table_model.AT_ONCE": (3,),
    "estimators.structured.SMALL": (0, 6),
    "graph.graph.MAX_PLANS": (1,),
    "graph.problem.SLAB_ENTRIES": (1,),
    "infer.sampling.ais.AT_ONCE": (1,),
    "infer.sampling.ais.DRAWN": (1,),
    "infer.sampling.blocks.N_COVERS": (1,),
    "infer.sampling.forward.CHUNK": (7,),
    "infer.sampling.forward.MOST_STATES": (0,),
    "infer.bp.engine.LARGE": (0.0,),
    "infer.bp.engine.ROWS_A_LOOK": (1,),
    "infer.bp.engine.TABLE_STATES": (0,),
    "infer.join_graph.calibration.CROWN": (1, 1000),
    "infer.join_graph.calibration.MOST_CHUNKS": (1, 64),
    "infer.chains.best.CHUNK": (3,),
    "infer.chains.hidden.CHUNK": (3,),
    "infer.chains.hidden.MOST_CHUNKS": (1, 2),
    "data.observations.MOST_SPREAD": (0,),
    "infer.join_graph.reduction.CANDIDATES": (1,),
    "infer.join_graph.tables.CHUNK_ENTRIES": (1, 8),
    "infer.join_graph.tables.WEAKEST_SINGLE": (0.5,),
    "infer.auto.approximate.FIRST_SECONDS": (0.0, NEVER),
    "infer.junction.few_states.BOUND_ABOVE": (ALWAYS,),
    "infer.junction.few_states.HOPELESS_ENTRIES": (1.0,),
    "infer.join_graph.stages.GAP_BITS": (0.0,),
    "infer.join_graph.parts.WIDEST": (0.0,),
    "infer.trw.forests.MAX_COUNT": (2,),
    "infer.join_graph.engine.FIRST_BITS": (2.0, 5.0),
    "infer.join_graph.engine.UNTIMED_BITS": (2.0, 5.0),
    "infer.junction.patterns.LARGE": (ALWAYS,),
    "infer.junction.patterns.PLANNED": (0.0,),
    "infer.junction.run.KEPT_ENTRIES": (0,),
    "infer.junction.run.LONG_SEARCH": (0,),
    "infer.junction.run.LOOSE": (0.0, NEVER),
    "infer.junction.run.SLAB_ENTRIES": (1, 50),
    "infer.junction.run.SUPPORT_ABOVE": (ALWAYS, 7.0),
    "infer.map.blocks.MOST_BITS": (3.0,),
    "infer.map.cuts.SMALL_SHARE": (0, NEVER),
    "infer.map.graph_cut.AT_ONCE": (1, 50),
    "infer.map.anneal.AT_ONCE": (1,),
    "infer.map.icm.AT_ONCE": (1, 3),
    "infer.map.portfolio.CHECK_EVERY": (1,),
    "infer.map.trws.MAX_CONSTANT": (3,),
    "infer.map.trws.READ_EVERY": (1,),
    "infer.map.trws.WORTHWHILE": (ALWAYS,),
    "infer.mean_field.naive.FACTORS_PER_CHUNK": (2,),
    "infer.mean_field.naive.MAX_CONSTANT": (1,),
    "infer.mean_field.naive.WORTHWHILE": (ALWAYS,),
    "infer.mean_field.spanning.SECONDS_A_LOOK": (1e-12,),
    "infer.mean_field.tree_choice.SLAB_ENTRIES": (1,),
    "infer.mean_field.naive.WORTH_PAIRS": (ALWAYS,),
    "infer.memory.SMALL": (0,),
    "infer.bounds.narrowing.EFFORT": (100.0,),
    "infer.bounds.narrowing.GUESSES": (np.array([0.1, 2.0**-15]),),
    "infer.bounds.narrowing.SMALL_SHARE": (1.0,),
    "infer.bounds.narrowing.SOUND_SHARE": (1.0,),
    "infer.junction.outlook.FEW_FACTORS": (0,),
    "infer.junction.outlook.NEAR": (2,),
    "infer.products.SLAB_ENTRIES": (1,),
    "infer.sampling.layers.CHUNK": (1,),
    "infer.sampling.layers.LEAST_FACTORS": (0, 10**9),
    "infer.sampling.layers.WORTH_THREADS": (0,),
    "infer.sampling.means.CHUNK": (2,),
    "infer.sampling.single_site.LANES": (2,),
    "infer.sampling.single_site.MOST_STATES": (1,),
    "infer.sampling.scan.LONGEST": (1,),
    "infer.sampling.scan.PIECE": (1,),
    "infer.sampling.scan.SMALL_COLOUR": (0, 10**9),
    "infer.sampling.scan.WORTH_THREADS": (ALWAYS,),
    "infer.prepared.FEW_STATES": (0,),
    "infer.zeros.starts.BUDGETS": ((0,),),
    "infer.zeros.starts.SLAB": (1,),
    "infer.trees.engine.SLAB_ENTRIES": (1, 50),
    "infer.trw.engine.CHECK_EVERY": (1,),
    "infer.trw.engine.MAX_CONSTANT": (1,),
    "infer.trw.engine.VARIABLES_OF_CHUNK": (1,),
    "infer.trw.engine.WORTHWHILE": (ALWAYS,),
    "infer.trw.engine.WORTH_PAIRS": (ALWAYS,),
    "infer.trw.plan.CHUNK_WORK": (1,),
    "infer.trw.plan.ENTRIES_OF_CHUNK": (1,),
    "infer.trw.plan.MAX_CHUNKS": (1, 1000),
    "io.native.arrays_beside.INLINE": (0,),
    "io.shared.files.CHUNK": (7,),
    "io.shared.files.PIECE": (7,),
    "io.shared.json_text.PIECE": (7,),
    "io.shared.numbers.MANY": (0,),
    "io.shared.tokens.PIECE": (7,),
    "io.uai.tasks.MANY": (0,),
    "graph.unfolded.LARGEST_TABLE": (1,),
    "infer.bp.passing.CHUNK": (1,),
    "infer.bp.passing.LOOK_EVERY": (1,),
    "infer.bp.passing.MAX_CHUNKS": (1, 1000),
    "infer.bp.passing.MAX_CONSTANT": (1,),
    "infer.bp.passing.WORTH_A_KERNEL": (ALWAYS,),
    "infer.bp.passing.WORTH_PAIRS": (ALWAYS,),
    "kernels.compile.COMPILE_ABOVE": (ALWAYS, NEVER),
    "infer.trees.plan.CHUNK_STATES": (1, 4),
    "infer.trees.plan.CHUNK_WORK": (1,),
    "infer.trees.plan.COMPILE_ABOVE": (ALWAYS, NEVER),
    "infer.junction.evidence_rows.CHUNKS": (1, 3),
    "infer.junction.kernels.lanes.LANES": (2,),
    "infer.junction.kernels.lanes.MOST_LANE_MESSAGES": (0,),
    "infer.junction.plan.EFFORT": (0.0, 10.0),
    "infer.junction.plan.EFFORT_UPWARDS": (0.0, 10.0),
    "infer.junction.stages.LARGE": (1,),
    "infer.junction.stages.SHARES": (2,),
    "infer.junction.stages.WIDE": (ALWAYS,),
    "infer.junction.one_row.PIECES": (3,),
    "infer.junction.one_row.SHARE": (0.2,),
    "infer.orders.search.MOST_RUNS": (1,),
    "infer.orders.search.SEARCH_STEPS": (1,),
    "infer.orders.search.SWEEP_ENTRIES": (ALWAYS,),
    "infer.orders.search.SWEEP_TIMES": (1.0,),
    "infer.trees.pairs.BLOCK": (3,),
    "infer.trees.pairs.MAX_CONSTANT": (0,),
    "infer.trees.pairs.WORTHWHILE": (ALWAYS,),
    "infer.trees.base.BENIGN": (0.0,),
    "infer.trees.base.SAFE_RANGE": (0.0,),
    "infer.mean_field.schedule.CHUNK_WORK": (1,),
    "infer.mean_field.schedule.MAX_CHUNKS": (1,),
    "infer.trees.sums.COMPILE_ABOVE": (ALWAYS, NEVER),
    "infer.trees.sums.LANES": (1, 2),
    "infer.trees.sums.SAMPLES_PER_TASK": (1,),
    "infer.trees.sums.SLAB_BYTES": (1,),
    "infer.trees.sums.TABULATE_FROM": (ALWAYS, NEVER),
    "infer.trees.sums.TABULATE_TO": (0,),
    "infer.trees.sums.TASK_BYTES": (1,),
    "learn.losses.chains.max_margin.AT_ONCE": (1, 20),
    "learn.losses.chains.max_margin.FEW_CORNERS": (1,),
    "learn.losses.chains.shards.CHUNK": (2,),
    "learn.losses.terms.CHUNK_TERMS": (1, 3),
    "learn.losses.terms.MOST_CHUNKS": (1, 1000),
    "learn.losses.terms.MOST_PATTERNS": (2, 16),
    "learn.losses.terms.MOST_STATES": (0,),
    "learn.losses.terms.SHARED_ENTRIES": (0,),
    "learn.losses.covariance.CHUNK": (1,),
    "learn.losses.likelihood.ROWS_A_PARAMETER": (ALWAYS, 1000),
    "learn.networks.families.INTERPRETED": (NEVER,),
    "query.forward.FORWARD_CELLS": (0,),
    "learn.networks.families.ROWS": (3,),
    "learn.networks.families.SPREAD": (0,),
    "learn.losses.likelihood.ROW_STATES": (1,),
    "learn.optimisers.lbfgs.CHUNK": (3,),
    "learn.rbm.machine.ROWS": (3,),
    "learn.rbm.monitors.AT_ONCE": (1,),
    "learn.rbm.partition.AT_ONCE": (1,),
    "learn.rbm.partition.CHUNK": (1,),
    "learn.rbm.partition.LOW": (0, 2),
    "learn.rbm.training.AT_ONCE": (1e-9,),
    "learn.objective.TOGETHER": (1,),
    "learn.networks.structure.counter.CHUNK_ROWS": (1,),
    "learn.networks.structure.counter.KEPT_BYTES": (1,),
    "learn.networks.structure.counter.MOST_CELLS": (0, 10**6),
    "learn.networks.structure.counter.MOST_MARKED": (0,),
    "learn.networks.structure.exact.CHUNK_SUBSETS": (1,),
    "learn.networks.structure.structural_em.ROWS": (7,),
    "model.given.AT_A_TIME": (2,),
    "model.model.FEW": (0,),
    "model.pattern.FULL_FROM": (1, 100),
    "query.covariance.CHUNK": (1,),
    "recycled.LARGE": (1,),
    "views.BLOCK": (2,),
    "views.MOST_HELD": (1,),
}

# Chains refuse marginals and moments of their factors, and unions: for suites that let refusals through.
REFUSING = frozenset({"graph.unfolded.LARGEST_TABLE"})

TILES: dict[str, tuple[Any, ...]] = {
    "infer.sampling.kernels.forward.BLOCK": (3,),
    "learn.networks.kernels.count.BLOCK": (5,),
    "infer.bp.kernels.pairs.FEW": (0,),
    "infer.bp.kernels.ratios.BLOCK": (4,),
    "infer.join_graph.kernels.losses.BLOCK_ENTRIES": (4,),
    "infer.join_graph.kernels.tables.SHORT": (0, 100),
    "infer.sampling.kernels.binary.BLOCK": (4,),
    "infer.junction.kernels.layout.LANE": (2,),
    "infer.junction.kernels.layout.LEAST": (2,),
    "infer.junction.kernels.layout.TILE": (4,),
    "infer.junction.kernels.tiles.SHORTEST_RUN": (2, 10**9),
    "infer.mean_field.kernels.pairs.BLOCK": (2,),
    "infer.mean_field.kernels.pairs.SHORT": (0,),
    "kernels.secants.BLOCK": (4,),
    "learn.rbm.kernels.partition.PRODUCT": (2,),
    "model.structured.kernels.displacement.TINY": (NEVER,),
    "model.structured.kernels.distance.NARROW": (1, 1000),
}

KERNELS: dict[str, tuple[Any, ...]] = {
    **TILES,
    "infer.chains.kernels.expectations.SHRUNK": (1.0,),
    "infer.chains.kernels.expectations.STRIDE": (0, 1),
    "infer.zeros.kernels.box.FAILURES": (1,),
    "infer.join_graph.kernels.passes.SAFE": (-1.0,),
    "infer.orders.kernels.greedy_run.HEAP_STEPS": (0, 1000),
    "learn.networks.structure.kernels.families.FEWEST": (1, 100),
    "infer.junction.kernels.products.SHARE": (1.0,),
    "infer.junction.kernels.products.WORTHWHILE": (ALWAYS,),
    "infer.orders.kernels.first_runs.STEPS_OF_CALL": (5,),
    "infer.junction.kernels.passes.RANGE": (-1.0, 5.0),
    "model.structured.kernels.displacement.TINY": (1e300,),
}


def plain(work: float) -> bool:  # in place of `worth_compiling`: never
    return False


def compiled(work: float) -> bool:  # always
    return True


PLAIN: dict[str, Any] = {
    "kernels.compile.worth_compiling": plain,
    **{route: NEVER for route in ROUTES if route.endswith(".COMPILE_ABOVE")},
}


@contextmanager
def force(routes: Mapping[str, Any]) -> Iterator[None]:
    """Constants by their place in the package, with the values that they have inside of the block."""
    places = [(module, name, value) for route, value in routes.items() for module, name in places_of(route)]
    held = [(module, name, getattr(module, name)) for module, name, _ in places]
    try:
        for module, name, value in places:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in held:
            setattr(module, name, value)


def draw(rng: np.random.Generator, *, refusing: bool = False) -> dict[str, Any]:
    """Routes drawn at random: about half of all are forced, in plain Python one time in four.

    refusing: those too on which fewer questions have an answer.
    """
    in_python = rng.random() < 0.25
    choices = {**ROUTES, **KERNELS} if in_python else ROUTES
    drawn = {route: values[rng.integers(len(values))] for route, values in choices.items() if rng.random() < 0.5}
    if not refusing:
        drawn = {route: value for route, value in drawn.items() if route not in REFUSING}
    return drawn | (PLAIN if in_python else {"kernels.compile.worth_compiling": compiled})


def set_small_kernels() -> None:
    """For the whole process, before a kernel is compiled: the smallest tiles and blocks that kernels take."""
    for route, values in TILES.items():
        for module, name in places_of(route):
            setattr(module, name, values[0])


def places_of(route: str) -> list[tuple[Any, str]]:
    """The modules that a name is read from: its own, and those that import it."""
    home, _, name = f"besag.{route}".rpartition(".")
    users = [module for module, names in imported().items() if (home, name) in names]
    return [(importlib.import_module(module), name) for module in (home, *users)]


@cache
def imported() -> dict[str, frozenset[tuple[str, str]]]:
    """What each module of the package imports by name, once for all: (module, name)."""
    return {
        module: frozenset(
            (node.module, alias.name)
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        )
        for module, tree in trees().items()
    }


@cache
def trees() -> dict[str, ast.Module]:
    """The source of each module of the package, parsed."""
    files = {path: path.relative_to(PACKAGE).with_suffix("").parts for path in PACKAGE.rglob("*.py")}
    named = {path: ".".join(("besag", *parts)).removesuffix(".__init__") for path, parts in files.items()}
    return {name: ast.parse(path.read_text()) for path, name in named.items()}
