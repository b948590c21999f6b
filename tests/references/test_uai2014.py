"""Exact inference on the instances of the UAI 2014 competition: log10 Z, marginals and most probable labellings.

The competition's answers have 6 significant digits (12 on the *.cnf instances): log10 Z must agree to the last of
them, marginals to 1e-5. Where `verify_*.csv` has values of a second program, to 10 digits, those must agree too. Some
answers of the competition are wrong: there the second exact engine is `tests.references.buckets`.

An instance is asked for here, or it is in BEYOND, or in TOO_LARGE and has to be refused.
"""

import csv
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from besag.arrays import Array
from besag.errors import ModelError, TooLargeError
from besag.io import load, read_uai_evidence
from besag.model.model import Model
from tests.references.buckets import Buckets
from tests.references.helpers import EXACT, file_of, marked, text_of

LAST_PRINTED = 1e-9  # relative, half a unit of the last digit of verify_*.csv
MARGINALS = 1e-5


def numbered(family: str, first: int, last: int) -> list[str]:
    return [f"{family}_{number}" for number in range(first, last + 1)]


MAR = (
    "Alchemy_11",
    *numbered("CSP", 11, 13),
    *numbered("DBN", 11, 16),
    *numbered("Grids", 11, 18),
    *numbered("ObjectDetection", 11, 75),
    *numbered("Pedigree", 11, 13),
    *numbered("Promedus", 11, 38),
    *numbered("Segmentation", 11, 16),
    *numbered("linkage", 11, 27),
    *numbered("relational", 1, 5),
)
PR = (
    "grid10x10.f10", *numbered("BN", 69, 76), "2bitadd_11.cnf", "2bitcomp_5.cnf", "2bitmax_6.cnf", "c432.isc.cnf",
    "c880.isc.cnf", "c1908.isc.cnf", "log-1.cnf", "log-2.cnf", "log-3.cnf", "log-4.cnf", "log-5.cnf", "logistics.a.cnf",
    "logistics.b.cnf", "logistics.c.cnf", "prob001.pddl.cnf", "prob002.pddl.cnf", "prob003.pddl.cnf",
    "prob004.pddl.cnf", "prob005.pddl.cnf", "prob012.pddl.cnf", "ra.cnf", "rb.cnf", "rc.cnf", "sat-grid-pbl-0010.cnf",
)  # fmt: skip
WRONG = ("relational_2", "relational_3", "relational_5")
IMPOSSIBLE = "sat-grid-pbl-0010.cnf"

# The messages take more than 4 GiB in the best order that the engine finds (tables of cliques are never stored), after
# evidence and the states that hard zeros rule out: model.cost(evidence) shows it.
TOO_LARGE = (
    "linkage_11", "linkage_15", "linkage_23", "relational_1", "relational_4",
    *numbered("BN", 69, 76), "2bitadd_11.cnf", "2bitmax_6.cnf", "c1908.isc.cnf", "log-1.cnf", "log-2.cnf", "log-3.cnf",
    "log-4.cnf", "log-5.cnf", "logistics.a.cnf", "logistics.b.cnf", "logistics.c.cnf", "prob001.pddl.cnf",
    "prob002.pddl.cnf", "prob003.pddl.cnf", "prob004.pddl.cnf", "prob005.pddl.cnf", "prob012.pddl.cnf", "ra.cnf",
    "rb.cnf", "rc.cnf",
)  # fmt: skip

# The messages fit, and the engine answers, but the tables of all cliques would take more than 4 GiB, and an answer
# takes up to minutes: not asked for here.
BEYOND = (
    *(f"linkage_{number}" for number in (12, 13, 14, 17, 20, 22, 25)),
    *(f"ObjectDetection_{number}" for number in (13, 16, 19, 23, 26, 29, 31, 36, 39, 43, 48, 53, 55, 59, 63, 67, 72)),
    "2bitcomp_5.cnf",
)  # fmt: skip

# At most 2^24 table entries, and no more than a thousand variables.
FAST = (
    "Alchemy_11", "CSP_12", *numbered("Grids", 11, 14), *numbered("Pedigree", 11, 13), *numbered("Promedus", 11, 13),
    "Promedus_15", "Promedus_16", "Promedus_21", "Promedus_22", "Promedus_24", *numbered("Promedus", 26, 33),
    "Promedus_35", "Promedus_36", *numbered("Segmentation", 11, 16), "relational_3",
    "grid10x10.f10",
)  # fmt: skip


def asked(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name not in (*TOO_LARGE, *BEYOND, *WRONG, IMPOSSIBLE)]


def folder_of(data_dir: Path, name: str) -> Path:
    return data_dir / "uai2014" / ("MAR" if name in MAR else "PR")


def instance(data_dir: Path, name: str) -> tuple[Model, dict[str, str]]:
    folder = folder_of(data_dir, name)
    return load(file_of(folder, f"{name}.uai")), read_uai_evidence(file_of(folder, f"{name}.uai.evid"))


def published_log10_z(data_dir: Path, name: str) -> tuple[float, float]:
    """The competition's log10 Z, and half a unit of its last digit: 6 of them, or as many as are printed."""
    task, number = text_of(file_of(folder_of(data_dir, name), f"{name}.uai.PR")).split()
    assert task == "PR"
    value = float(number)
    digits = max(6, len(number.lstrip("-0.").replace(".", "")))
    leading = math.floor(math.log10(abs(value))) if value else 0
    return value, 0.5 * 10.0 ** (leading - digits + 1)


def published_marginals(data_dir: Path, name: str) -> Iterator[tuple[str, Array]]:
    """The competition's marginals: (K,) for each variable."""
    task, count, *words = text_of(file_of(folder_of(data_dir, name), f"{name}.uai.MAR")).split()
    assert task == "MAR"
    at = 0
    for variable in range(int(count)):
        states = int(words[at])
        yield str(variable), np.array(words[at + 1 : at + 1 + states], np.float64)
        at += 1 + states
    assert at == len(words)


def published_labelling(data_dir: Path, name: str) -> dict[str, str]:
    """A labelling of high probability, often not the highest."""
    task, count, *states = text_of(file_of(folder_of(data_dir, name), f"{name}.uai.MAP")).split()
    assert task == "MAP"
    return {str(variable): states[variable] for variable in range(int(count))}


@cache
def verified(data_dir: Path, column: str) -> dict[str, float]:
    """A column of verify_*.csv, where it has a number."""
    values: dict[str, float] = {}
    for task in ("MAR", "PR"):
        with (data_dir / "uai2014" / f"verify_{task}.csv").open(newline="") as file:
            values |= {
                row["name"].removesuffix(".uai"): float(row[column]) for row in csv.DictReader(file) if row[column]
            }
    return values


def check_log_z(data_dir: Path, name: str, log_z: float) -> None:
    value, half_unit = published_log10_z(data_dir, name)
    assert_allclose(log_z / math.log(10), value, rtol=LAST_PRINTED, atol=half_unit)
    again = verified(data_dir, "ln_Z_exact").get(name)
    if again is not None:
        assert_allclose(log_z, again, rtol=LAST_PRINTED)


@pytest.mark.parametrize("name", marked(asked(PR), FAST))
def test_partition_function(data_dir: Path, name: str) -> None:
    model, evidence = instance(data_dir, name)
    check_log_z(data_dir, name, model.log_partition(evidence=evidence, **EXACT))


@pytest.mark.parametrize("name", marked(asked(MAR), FAST))
def test_marginals(data_dir: Path, name: str) -> None:
    model, evidence = instance(data_dir, name)
    result = model.marginals(evidence=evidence, **EXACT)
    assert result.bound == "exact"
    check_log_z(data_dir, name, result.log_partition)
    for variable, expected in published_marginals(data_dir, name):
        assert_allclose(result[variable], expected, rtol=0, atol=MARGINALS, err_msg=variable)


@pytest.mark.parametrize("name", marked(asked(MAR), FAST))
def test_most_probable_labelling(data_dir: Path, name: str) -> None:
    """The second program's optimum where it has one, and nowhere worse than the labelling kept beside the instance."""
    model, evidence = instance(data_dir, name)
    result = model.map(evidence=evidence, **EXACT)
    best = verified(data_dir, "ln_max_exact").get(name)
    if best is not None:
        assert_allclose(result.energy, -best, rtol=LAST_PRINTED)
    assert_allclose(model.energy(result.assignment), result.energy, rtol=1e-12)
    assert evidence.items() <= result.assignment.items()
    known = published_labelling(data_dir, name)
    assert evidence.items() <= known.items()
    assert result.energy <= model.energy(known) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large(data_dir: Path, name: str) -> None:
    model, evidence = instance(data_dir, name)
    ask = model.marginals if name in MAR else model.log_partition
    with pytest.raises(TooLargeError, match="memory_limit"):
        ask(evidence=evidence, **EXACT)


@pytest.mark.parametrize("name", marked(WRONG, FAST))
def test_wrong_answers(data_dir: Path, name: str) -> None:
    """Two exact engines agree with each other, and not with the competition."""
    model, evidence = instance(data_dir, name)
    one, two = model.marginals(evidence=evidence, **EXACT), Buckets(model, evidence)
    assert_allclose(one.log_partition, two.log_z, rtol=1e-10)
    assert_allclose(one.log_partition, verified(data_dir, "ln_Z_exact")[name], rtol=LAST_PRINTED)
    value, _ = published_log10_z(data_dir, name)
    assert abs(one.log_partition / math.log(10) - value) > 0.01 * value
    published = dict(published_marginals(data_dir, name))
    for variable, expected in two.marginals().items():
        assert_allclose(one[str(variable)], expected, rtol=0, atol=1e-9)
        assert np.abs(published[str(variable)] - expected).max() > MARGINALS


def test_an_impossible_instance(data_dir: Path) -> None:
    """118 constants of weight 0: Z = 0, where the competition has 23.77."""
    model, evidence = instance(data_dir, IMPOSSIBLE)
    with pytest.raises(ModelError, match="allows no labelling"):
        model.log_partition(evidence=evidence, **EXACT)


def test_all_instances_are_here(data_dir: Path) -> None:
    for task, names in (("MAR", MAR), ("PR", PR)):
        found = {path.name.removesuffix(".uai.gz") for path in (data_dir / "uai2014" / task).glob("*.uai.gz")}
        assert found <= set(names)
