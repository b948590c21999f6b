"""The routes that sizes choose, and how to send small models along each of them.

Which code answers a question depends on numbers that are written as constants: table entries from which evidence is
let rule out states, rows that go side by side, entries of a tile, work from which a kernel is compiled. Every such
constant is in one of three lists, which `test_routes.py` keeps complete:

    ROUTES     read by drivers: may be forced at any time
    KERNELS    read inside kernels, which keep the value they were compiled with: forced in plain Python only; TILES,
               the sizes among them, also for a whole process before anything is compiled (`set_small_kernels`)
    SETTLED    no route: tolerances, what a print-out shows, what an answer may cost

`force({"infer.junction.SUPPORT_ABOVE": 0.0})` holds as long as its `with` block, wherever the name was imported to.
`pytest --routes 7` forces routes drawn at random, from that seed and the name of the test, in every test, and
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
    "data.numbering.BLOCK": (3,),
    "data.numbering.LEAST_PLACES": (2,),
    "data.sequences.FEW_SHARDS": (1,),
    "data.sequences.MOST_TOKENS": (8,),
    "data.sequences.SHARD_TOKENS": (4,),
    "data.streamed.PART_TOKENS": (4,),
    "estimators.chain_data.BLOCK": (3,),
    "estimators.chain_data.DENSE_PAIRS": (0,),
    "graph.graph.MAX_PLANS": (1,),
    "graph.problem.SLAB_ENTRIES": (1,),
    "infer.ais.AT_ONCE": (1,),
    "infer.ais.DRAWN": (1,),
    "infer.blocks.N_COVERS": (1,),
    "infer.bp.LARGE": (0.0,),
    "infer.bp.ROWS_A_LOOK": (1,),
    "infer.calibration.CROWN": (1, 1000),
    "infer.calibration.MOST_CHUNKS": (1, 64),
    "infer.chains_best.CHUNK": (3,),
    "infer.clique_reduction.CANDIDATES": (1,),
    "infer.clique_tables.CHUNK_ENTRIES": (1, 8),
    "infer.clique_tables.WEAKEST_SINGLE": (0.5,),
    "infer.combined.FIRST_SECONDS": (0.0, NEVER),
    "infer.few_states.BOUND_ABOVE": (ALWAYS,),
    "infer.few_states.HOPELESS_ENTRIES": (1.0,),
    "infer.forest_chain.GAP_BITS": (0.0,),
    "infer.forest_parts.WIDEST": (0.0,),
    "infer.forests.MAX_COUNT": (2,),
    "infer.join_graph.FIRST_BITS": (2.0, 5.0),
    "infer.join_graph.UNTIMED_BITS": (2.0, 5.0),
    "infer.junction.KEPT_ENTRIES": (0,),
    "infer.junction.LONG_SEARCH": (0,),
    "infer.junction.LOOSE": (0.0, NEVER),
    "infer.junction.SLAB_ENTRIES": (1, 50),
    "infer.junction.SUPPORT_ABOVE": (ALWAYS, 7.0),
    "infer.mean_field_naive.FACTORS_PER_CHUNK": (2,),
    "infer.mean_field_naive.MAX_CONSTANT": (1,),
    "infer.mean_field_naive.WORTHWHILE": (ALWAYS,),
    "infer.mean_field_naive.WORTH_PAIRS": (ALWAYS,),
    "infer.memory.SMALL": (0,),
    "infer.narrowing.EFFORT": (100.0,),
    "infer.narrowing.GUESSES": (np.array([0.1, 2.0**-15]),),
    "infer.narrowing.SMALL_SHARE": (1.0,),
    "infer.narrowing.SOUND_SHARE": (1.0,),
    "infer.outlook.FEW_FACTORS": (0,),
    "infer.outlook.NEAR": (2,),
    "infer.products.SLAB_ENTRIES": (1,),
    "infer.running.CHUNK": (2,),
    "infer.samplers.LANES": (2,),
    "infer.samplers.MOST_STATES": (1,),
    "infer.scan.LONGEST": (1,),
    "infer.scan.PIECE": (1,),
    "infer.scan.SMALL_COLOUR": (0, 10**9),
    "infer.scan.WORTH_THREADS": (ALWAYS,),
    "infer.setting.FEW_STATES": (0,),
    "infer.starts.BUDGETS": ((0,),),
    "infer.starts.SLAB": (1,),
    "infer.tree.SLAB_ENTRIES": (1, 50),
    "infer.trw.CHECK_EVERY": (1,),
    "infer.trw.MAX_CONSTANT": (1,),
    "infer.trw.VARIABLES_OF_CHUNK": (1,),
    "infer.trw.WORTHWHILE": (ALWAYS,),
    "infer.trw.WORTH_PAIRS": (ALWAYS,),
    "infer.trw_plan.CHUNK_WORK": (1,),
    "infer.trw_plan.ENTRIES_OF_CHUNK": (1,),
    "infer.trw_plan.MAX_CHUNKS": (1, 1000),
    "io.arrays_beside.INLINE": (0,),
    "io.files.CHUNK": (7,),
    "io.files.PIECE": (7,),
    "io.json_text.PIECE": (7,),
    "io.numbers.MANY": (0,),
    "io.tokens.PIECE": (7,),
    "io.uai_tasks.MANY": (0,),
    "kernels.bp.CHUNK": (1,),
    "kernels.bp.LOOK_EVERY": (1,),
    "kernels.bp.MAX_CHUNKS": (1, 1000),
    "kernels.bp.MAX_CONSTANT": (1,),
    "kernels.bp.WORTH_A_KERNEL": (ALWAYS,),
    "kernels.bp.WORTH_PAIRS": (ALWAYS,),
    "kernels.compile.COMPILE_ABOVE": (ALWAYS, NEVER),
    "kernels.forest.CHUNK_STATES": (1, 4),
    "kernels.forest.CHUNK_WORK": (1,),
    "kernels.forest.COMPILE_ABOVE": (ALWAYS, NEVER),
    "kernels.join_bound.CHUNKS": (1, 3),
    "kernels.join_lanes.LANES": (2,),
    "kernels.join_lanes.MOST_LANE_MESSAGES": (0,),
    "kernels.join_plan.EFFORT": (0.0, 10.0),
    "kernels.join_plan.EFFORT_UPWARDS": (0.0, 10.0),
    "kernels.join_stages.LARGE": (1,),
    "kernels.join_stages.SHARES": (2,),
    "kernels.join_stages.WIDE": (ALWAYS,),
    "kernels.join_wide.PIECES": (3,),
    "kernels.join_wide.SHARE": (0.2,),
    "kernels.order.MOST_RUNS": (1,),
    "kernels.order.SEARCH_STEPS": (1,),
    "kernels.order.SWEEP_ENTRIES": (ALWAYS,),
    "kernels.order.SWEEP_TIMES": (1.0,),
    "kernels.pairs.BLOCK": (3,),
    "kernels.pairs.MAX_CONSTANT": (0,),
    "kernels.pairs.WORTHWHILE": (ALWAYS,),
    "kernels.prepare.BENIGN": (0.0,),
    "kernels.prepare.SAFE_RANGE": (0.0,),
    "kernels.schedule.CHUNK_WORK": (1,),
    "kernels.schedule.MAX_CHUNKS": (1,),
    "kernels.tree.COMPILE_ABOVE": (ALWAYS, NEVER),
    "kernels.tree.LANES": (1, 2),
    "kernels.tree.SAMPLES_PER_TASK": (1,),
    "kernels.tree.SLAB_BYTES": (1,),
    "kernels.tree.TABULATE_FROM": (ALWAYS, NEVER),
    "kernels.tree.TABULATE_TO": (0,),
    "kernels.tree.TASK_BYTES": (1,),
    "learn.chain_work.CHUNK": (2,),
    "learn.lbfgs.CHUNK": (3,),
    "learn.objective.TOGETHER": (1,),
    "model.given.AT_A_TIME": (2,),
    "model.model.FEW": (0,),
    "model.pattern.FULL_FROM": (1, 100),
    "query.covariance.CHUNK": (1,),
    "recycled.LARGE": (1,),
    "views.BLOCK": (2,),
    "views.MOST_HELD": (1,),
}

TILES: dict[str, tuple[Any, ...]] = {
    "kernels.bp_pairs.FEW": (0,),
    "kernels.bp_ratios.BLOCK": (4,),
    "kernels.clique_losses.BLOCK_ENTRIES": (4,),
    "kernels.clique_tables.SHORT": (0, 100),
    "kernels.gibbs_binary.BLOCK": (4,),
    "kernels.join_layout.LANE": (2,),
    "kernels.join_layout.LEAST": (2,),
    "kernels.join_layout.TILE": (4,),
    "kernels.join_tiles.SHORTEST_RUN": (2, 10**9),
    "kernels.mean_field_pairs.BLOCK": (2,),
    "kernels.mean_field_pairs.SHORT": (0,),
    "kernels.secants.BLOCK": (4,),
}

KERNELS: dict[str, tuple[Any, ...]] = {
    **TILES,
    "kernels.box.FAILURES": (1,),
    "kernels.clique_passes.SAFE": (-1.0,),
    "kernels.elimination.HEAP_STEPS": (0, 1000),
    "kernels.gathered.SHARE": (1.0,),
    "kernels.gathered.WORTHWHILE": (ALWAYS,),
    "kernels.greedy.STEPS_OF_CALL": (5,),
    "kernels.join_passes.RANGE": (-1.0, 5.0),
}

SETTLED: dict[str, str] = {  # names by module
    "arrays": "LARGEST",
    "cli.facts": "EXAMPLES",
    "cli.infer": "LAST_RESORT SETTING_UP",
    "cli.info": "LINES LONGEST",
    "cli.messages": "ANSWERED BAD_INPUT BAD_USAGE BEYOND_LIMITS CLOSED_PIPE INTERRUPTED",
    "cli.output": "LEAST_WIDTH",
    "cli.tables": "BAR CELLS",
    "data.labels": "_UNSEEN",
    "estimators.chain_kbest": "MOST",
    "infer.ais": "HARD LEAST SHARE START",
    "infer.auto": "EXACT_SHARE PATIENCE",
    "infer.blocks": "COVER_OF_ENTRY FORM WORK_OF_STATE",
    "infer.bp": "MOST_DAMPING PATIENCE SLACK",
    "infer.brute": "BYTES_PER_LABELLING",
    "infer.candidates": "CALM ROUNDING SLIP",
    "infer.chains": "FEWEST LEAST MOST",
    "infer.clique_forest": "ROUNDING",
    "infer.clique_tables": "WEAKEST WEAKEST_LOG",
    "infer.combined": "BOUND_ITERATIONS FIRST_RUN FIRST_SHARE MOST_START QUICKLY RESCUE",
    "infer.few_states": "SECONDS_A_LINK SECONDS_A_STEP SHARE TRIES",
    "infer.forest_chain": "CLIQUE_BYTES FORESTS MESSAGES",
    "infer.forest_parts": "CALM DAMPING DOUBT MOST_DAMPING SETTLED SWEEPS",
    "infer.forests": "LARGE RUN",
    "infer.frames": "COLUMNS SHOWN",
    "infer.iterate": "GRACE",
    "infer.join_graph": (
        "CHAINS FEWER_BITS GRACE GROWTH HURRY LATE LINK_BYTES "
        "SECONDS_AN_ENTRY SECONDS_A_LINK SHARE STEP_BITS TABLES_AT_ONCE WORK"
    ),
    "infer.junction": "SECONDS_AN_ENTRY WORK_OF_STATE WORK_OF_VARIABLE",
    "infer.mean_field": "RISEN SECONDS_A_LINK SECONDS_A_STATE SETTLED STIR TILT",
    "infer.mean_field_starts": "LOWEST",
    "infer.memory": "BYTES_PER_CODE FRACTION",
    "infer.narrowing": "MOST_ENTRIES MOST_VISITS ROUNDING SECONDS_A_VISIT",
    "infer.outlook": "HOPELESS LINK_BYTES",
    "infer.running": "BATCHES LEAST_BATCHES",
    "infer.samplers": "CERTAIN",
    "infer.setting": "LARGEST_SINGLE SMALL_TABLE",
    "infer.tree": "PLAN_OF_FACTOR PLAN_OF_VARIABLE WORK_OF_PAIRS WORK_OF_STATE WORK_OF_VARIABLE",
    "infer.trw": "INNER_TOLERANCE ROUNDING SECONDS_A_LINK SECONDS_A_STATE",
    "infer.trw_plan": "STATE_WORK",
    "infer.trw_weights": "CLOSED FIRST_STEP LAST_STEP LEAST_SHARE LOOK_EVERY PATIENCE SETTLED",
    "infer.valid": "ROUNDING TOLERANCE",
    "infer.walk": "MOST_ROWS MOST_STATES MOST_WATCHED",
    "io.conll": "CONLLU_COLUMNS",
    "io.costs": "SPARE_STATES",
    "io.crfsuite_model": "BYTE_ORDER STATE TRANSITION VERSION _RECORDS",
    "io.fg": "LARGEST_LABEL",
    "io.files": "ROOM",
    "io.formats": "HEAD",
    "io.json_text": "LONG PER_LIST PER_OBJECT SPARE STRETCH",
    "io.native": "HEAD VERSION",
    "io.native_read": "LARGEST_COUNT ROW_TOLERANCE",
    "io.numbers": "LIMIT",
    "io.parts": "EPSILON MAX_ARITY NOTABLE ROUNDING ROW_TOLERANCE",
    "io.readback": "NAMED",
    "io.relaxed": "LONG MAX_DEPTH MAX_DIGITS PER_BRACKET",
    "io.room": "ENTRIES_PER_CHARACTER SPARE_ENTRIES",
    "io.tokens": "STRETCH",
    "io.uai": "SPARE_STATES",
    "io.uai_tasks": "DIGITS",
    "io.wcsp": "CONSTRAINT_ENTRIES",
    "io.xdsl_drawing": "FAR HEIGHT WIDTH",
    "io.xdsl_noisy": "SAME",
    "io.xml_tree": "MAX_ATTRIBUTES MAX_DEPTH MAX_ELEMENTS",
    "kernels.bp_any": "FLOOR SINGLE_FLOOR",
    "kernels.bp_beliefs": "SMALL",
    "kernels.bp_pairs": "SMALL",
    "kernels.clique_passes": "FAINT LOST TINY",
    "kernels.clique_tables": "ENOUGH LISTED MOST_AXES MOST_LISTED RUN STILL",
    "kernels.counter": "BITS_33 BITS_34 BITS_37 BITS_53 FIRST GAMMA SECOND UNIT",
    "kernels.elimination": "CUT_OFF DONE FREE GIVEN_UP GONE LOG_UNIT MOST_WEIGHT",
    "kernels.exponential": "LOWEST SHARE",
    "kernels.feasible": "FOUND GAVE_UP NONE",
    "kernels.gathered": "LARGE LARGE_SHARE MAX_MEMBERS MAX_OPERANDS",
    "kernels.gibbs": "POTTS",
    "kernels.gibbs_binary": "BITS_32 HALF_UNIT MIDDLE",
    "kernels.greedy": "BETTER FILL NO_LIMIT N_GREEDY TIES WEIGHT WEIGHTED",
    "kernels.join_maps": "EVIDENCE FACTOR MESSAGE VARIABLE",
    "kernels.join_plan": "PER_ENTRY PER_MEMBER",
    "kernels.join_session": "EVERYTHING NOTHING N_STAMPS",
    "kernels.mean_field": "POTTS",
    "kernels.notice": "AFTER PAUSE",
    "kernels.numbering": "BITS_62 PRIME",
    "kernels.order": "FRESH_NOISE MOST_STEPS ROUNDED STEPS_PER_ENTRY VARIED_NOISE VARIED_SHARE",
    "kernels.pair_passes": "DELTA HIGH LOW SHARE_LIMIT",
    "kernels.passes": "POTTS",
    "kernels.schedule": "TABLE VARIABLE_WORK",
    "kernels.support": "TABLE",
    "kernels.sweep": "OUTSIDE ROUNDS UNSEEN",
    "kernels.swendsen_wang": "LARGE",
    "kernels.trw": "POTTS TINY",
    "learn.anchored": "FORGET PATIENCE PROBE",
    "learn.differences": "STEP",
    "learn.early": "PATIENCE",
    "learn.gradient_descent": "POWERS",
    "learn.lbfgs": "PATIENCE SINGLE_FROM",
    "learn.line_search": "CURVATURE DECREASE EXACT_TRIALS FARTHEST HALVINGS ROUNDING WOLFE_TRIALS",
    "learn.newton_cg": "LARGEST_FORCING",
    "learn.objective": "RANK",
    "learn.optimizer": "TINY",
    "model.cpt": "TOLERANCE",
    "model.dag": "SHOWN",
    "model.show": "SHOWN",
    "plot": "GAP HEAD MAX_LETTERS MAX_STATES MAX_VARIABLES PAD ROW",
    "query.analysis": "ROUNDING",
    "query.cost": "SECONDS_A_CALL SECONDS_A_FACTOR SECONDS_A_LABELLING",
    "query.covariance": "MAX_CELLS MAX_PARAMETERS",
    "query.progress": "SECONDS",
    "query.sensitivity": "ROUNDING SMALLEST",
    "query.session": "MAX_SHOWN",
    "query.tree_view": "SHOWN",
    "query.verbs": "BYTES_OF_COLUMN MAX_ROWS",
    "recycled": "MAX_WASTE N_KEPT",
}


def plain(work: float) -> bool:
    """In place of `worth_compiling`: never."""
    return False


def compiled(work: float) -> bool:
    """In place of `worth_compiling`: always."""
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


def draw(rng: np.random.Generator) -> dict[str, Any]:
    """Routes drawn at random: about half of all are forced, in plain Python one time in four."""
    in_python = rng.random() < 0.25
    choices = {**ROUTES, **KERNELS} if in_python else ROUTES
    drawn = {route: values[rng.integers(len(values))] for route, values in choices.items() if rng.random() < 0.5}
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
    return {
        ".".join(("besag", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): ast.parse(
            path.read_text()
        )
        for path in PACKAGE.rglob("*.py")
    }
