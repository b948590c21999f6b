"""The ways of asking that leave the model: files, the command line, the plan, threads and single precision."""

import contextlib
import io
import itertools
import json
import math
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import besag
from besag import cli
from besag.errors import ConvergenceWarning, LossWarning
from tests.ways.case import Case, Check, question
from tests.ways.evidence import frame_of, in_a_cell
from tests.ways.truth import Truth

ROUNDING = {"float64": 1e-9, "float32": 1e-5}  # of answers, times the size of the energies that they are made of
BITS = 1e-300  # the same bits
LARGEST_WEIGHT = 600.0  # a log-potential whose weight a file can hold
NETWORK_FORMATS = ("bif", "xml", "net", "xdsl")


# What it costs, and on how many threads ------------------------------------------------------------------------------


@question
def ask_costs(case: Case) -> Iterator[Check]:
    for i, row in enumerate(case.singles):
        cost = case.model.cost(row, engine="junction_tree")
        told = case.model.marginals(evidence=row, engine="junction_tree").diagnostics
        if case.spec.has_hard_terms:  # cost does not look at them
            yield Check(f"cost(row {i}).entries", told.entries, cost.entries, at_most=True)
        else:
            yield Check(f"cost(row {i}).entries", cost.entries, told.entries)
            yield Check(f"cost(row {i}).width", cost.width, max(told.width, 0))
        same = case.model.cost(row).engine == case.model.marginals(evidence=row).diagnostics.engine
        yield Check(f"cost(row {i}).engine is the one that answers", same, True)
    if case.is_forest:
        sizes = sum(factor.table.size for factor in case.spec.factors)
        yield Check("cost(engine=tree).entries", case.model.cost(engine="tree").entries, sizes)


@question
def ask_with_two_threads(case: Case) -> Iterator[Check]:
    frame = frame_of(case.spec, case.spec.rows)
    for engine in case.engines:
        one, two = (case.model.marginals(evidence=frame, engine=engine, n_threads=n) for n in (1, 2))
        yield Check(f"threads: log_partition(all rows, {engine})", two.log_partition, one.log_partition, BITS)
        yield Check(f"threads: marginals(all rows, {engine})", two.probabilities, one.probabilities, BITS)
    for engine in case.clique_engines:
        if engine == "brute":
            continue
        one, two = (case.model.map(frame, engine=engine, n_threads=n) for n in (1, 2))
        yield Check(f"threads: map(all rows, {engine})", two.codes, one.codes, BITS)
        moments = [case.model.moments(frame, engine=engine, n_threads=n) for n in (1, 2)]
        yield Check(f"threads: moments(all rows, {engine})", moments[1], moments[0], BITS)
        drawn = [case.model.sample(20, frame, engine=engine, n_threads=n, seed=case.spec.seed) for n in (1, 2)]
        yield Check(f"threads: sample(20, all rows, {engine})", drawn[0].equals(drawn[1]), True)


@question
def ask_estimating_engines(case: Case) -> Iterator[Check]:
    """Answers that an engine calls exact are, its bounds hold, and single precision comes as near as it can."""
    row = case.spec.rows[-1]
    truth = case.truth(row)
    size = max(1.0, abs(truth.log_z), case.spec.largest) * max(1, len(case.spec.factors))
    for engine, dtype in itertools.product(("bp", "join_graph", "trw", "mean_field"), ("float64", "float32")):
        rounding = ROUNDING[dtype] * size
        if rounding > 0.1:  # energies so large that their differences are lost
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = case.model.marginals(evidence=row, engine=f"{engine}[dtype={dtype}]")
        low, high = result.log_partition_bounds
        asked = f"{engine}[dtype={dtype}], {row}"
        yield Check(f"{asked}: lower bound", low, truth.log_z, rounding, at_most=True)
        yield Check(f"{asked}: upper bound", truth.log_z, high, rounding, at_most=True)
        for name in case.spec.names:
            yield Check(f"{asked}: [{name}] sums to one", result[name].sum(), 1.0, ROUNDING[dtype])
        if result.bound == "exact":
            yield Check(f"{asked}: log_partition", result.log_partition, truth.log_z, rounding)
            yield Check(f"{asked}: marginals", case.all_marginals(result), truth.marginals, rounding)


@question
def ask_approximating_distributions(case: Case) -> Iterator[Check]:
    """q of each family of mean field has the marginals of the answer, and its bound is one."""
    row = case.spec.rows[-1]
    truth = case.truth(row)
    size = max(1.0, abs(truth.log_z), case.spec.largest) * max(1, len(case.spec.factors))
    for family in ("naive", "tree", "spanning_tree"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = case.model.marginals(evidence=row, engine=f"mean_field[family={family}]")
        asked, rounding = f"mean_field[family={family}], {row}", ROUNDING["float64"] * size
        yield Check(f"{asked}: lower bound", result.log_partition, truth.log_z, rounding, at_most=True)
        q = result.approximation
        yield Check(f"{asked}: log Z of q", q.log_partition(), 0.0, ROUNDING["float64"])
        for name in case.spec.names:
            yield Check(f"{asked}: q[{name}]", q.marginals()[name], result[name], ROUNDING["float64"])


# Files ---------------------------------------------------------------------------------------------------------------


@question
def ask_models_from_files(case: Case) -> Iterator[Check]:
    """Saved and loaded: the same log Z and marginals; UAI and some others know variables and states by number only."""
    row = {name: value for name, value in case.spec.rows[-1].items() if isinstance(value, (str, int))}
    with tempfile.TemporaryDirectory() as folder:
        as_weights = ("uai",) if case.spec.largest < LARGEST_WEIGHT else ()
        for suffix in ("json", *as_weights, *(NETWORK_FORMATS if case.spec.is_network else ())):
            path = Path(folder) / f"model.{suffix}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LossWarning)
                besag.save(case.model, path)
                loaded = besag.load(path)
            evidence = {
                loaded.variables.names[v]: loaded.variables.states(v)[_code(case, name, row[name])]
                for v, name in enumerate(case.names(case.order))
                if name in row
            }
            for given, truth in (({}, case.truth()), (evidence, case.truth(row))):
                result = loaded.marginals(evidence=given)
                asked = f"{suffix} file, {given}"
                yield Check(f"{asked}: log_partition", loaded.log_partition(given), truth.log_z)
                found = np.concatenate([result[variable.name] for variable in loaded.variables])
                yield Check(f"{asked}: marginals", found, truth.marginals_of(case.order))


def _code(case: Case, name: str, state: Any) -> int:
    return case.spec.states[case.spec.names.index(name)].index(str(state))


# The command line ----------------------------------------------------------------------------------------------------


@question
def ask_the_command_line(case: Case) -> Iterator[Check]:
    row = case.spec.rows[-1]
    truth, scope = case.truth(row), sorted(case.some())
    with tempfile.TemporaryDirectory() as folder:
        model, evidence = str(Path(folder) / "model.json"), Path(folder) / "evidence.json"
        besag.save(case.model, model)
        others = {name: in_a_cell(case.spec, name, value) for name, value in row.items() if not _is_state(value)}
        evidence.write_text(json.dumps(others), encoding="utf-8")
        states = [f"{name}={value}" for name, value in row.items() if _is_state(value)]
        given = ["--evidence", str(evidence), *states]
        for task in ("PR", "MAR", "MAP", "MMAP"):
            query = ["--query", *case.names(scope)] if task == "MMAP" else []
            for form in ("json", "uai"):
                text = _run("infer", model, *given, "--task", task, "--format", form, *query)
                told = _of_json(case, task, json.loads(text), truth, scope) if form == "json" else None
                for found in told or _of_uai(case, task, text, truth, scope):
                    yield found._replace(name=f"infer --task {task} --format {form}, {row}: {found.name}")


@question
def ask_the_command_line_for_rows(case: Case) -> Iterator[Check]:
    """A CSV of states, a row each; what is missing is free."""
    kept = [{name: value for name, value in row.items() if _is_state(value)} for row in case.spec.rows]
    frame = frame_of(case.spec, tuple(kept)).astype("string")
    if frame.empty:
        return
    with tempfile.TemporaryDirectory() as folder:
        model, rows = str(Path(folder) / "model.json"), str(Path(folder) / "rows.csv")
        besag.save(case.model, model)
        frame.to_csv(rows)
        text = _run("infer", model, "--evidence", rows, "--task", "MAR", "--format", "json")
        for row, answer in zip(kept, json.loads(text), strict=True):
            for found in _of_json(case, "MAR", answer, case.truth(row), []):
                yield found._replace(name=f"infer --evidence rows.csv, {row}: {found.name}")


def _is_state(value: Any) -> bool:
    return isinstance(value, (str, int))


def _run(*arguments: str) -> str:
    """What the command prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(arguments)
    assert code == 0, f"besag {' '.join(arguments)} ended with {code}: {err.getvalue()}"
    return out.getvalue()


def _of_json(case: Case, task: str, answer: Any, truth: Truth, scope: list[int]) -> Iterator[Check]:
    if task in ("PR", "MAR"):
        yield Check("log_partition", answer["log_partition"], truth.log_z)
    if task == "MAR":
        rows = [answer["marginals"][name].values() for name in case.spec.names]
        yield Check("marginals", [p for row in rows for p in row], truth.marginals)
    if task == "MAP":
        yield Check("energy", answer["energy"], truth.energies[0])
        yield Check("its labelling", truth.energy(case.codes(answer["assignment"])), truth.energies[0])
    if task == "MMAP":
        logs = truth.summed_logs(scope)
        yield Check("energy", answer["energy"], -logs.max())
        yield Check("its states", -logs[tuple(case.codes(answer["assignment"]))], -logs.max())


def _of_uai(case: Case, task: str, text: str, truth: Truth, scope: list[int]) -> Iterator[Check]:
    first, line, end = text.split("\n")
    yield Check("two lines", (first, end) == (task, ""), True)
    numbers = line.split()
    if task == "PR":
        yield Check("log10 Z", float(line), truth.log_z / math.log(10))
    if task == "MAR":
        start, found = 1, list[float]()
        for v in case.order:
            k = case.spec.cards[v]
            yield Check("number of states", int(numbers[start]), k)
            found += [float(word) for word in numbers[start + 1 : start + 1 + k]]
            start += 1 + k
        yield Check("marginals", found, truth.marginals_of(case.order))
    if task == "MAP":
        codes = {v: int(word) for v, word in zip(case.order, numbers[1:], strict=True)}
        yield Check("labelling", truth.energy([codes[v] for v in sorted(codes)]), truth.energies[0])
    if task == "MMAP":
        pairs = {case.order[int(v)]: int(code) for v, code in zip(numbers[1::2], numbers[2::2], strict=True)}
        logs = truth.summed_logs(scope)
        yield Check("states", -logs[tuple(pairs[v] for v in scope)], -logs.max())
