"""`--format uai`: a drop-in solver of the UAI competitions, held to the published answers of 2014.

Marginals are published with 6 digits. The labellings beside the instances are often not the best ones: ours must not be
worse than they are.
"""

import math
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from besag.io.load import load
from besag.io.uai.tasks import read_uai_evidence, read_uai_query, read_uai_result
from tests.cli.conftest import Ask, Write

NAMES = ("Promedus_24", "Pedigree_11")


def solved(ask: Ask, write: Write, folder: Path, name: str, task: str, *more: str) -> Path:
    """The result file that the command line makes."""
    model, evidence = str(folder / f"{name}.uai.gz"), str(folder / f"{name}.uai.evid")
    text = ask("infer", model, "--evidence", evidence, "--task", task, *more, "--format", "uai")
    first, second, *rest = text.split("\n")
    assert first == task
    assert rest == [""]
    assert second.split()
    return Path(write(f"{name}.uai.{task}", text))


@pytest.fixture
def folder(data_dir: Path) -> Path:
    return data_dir / "uai2014" / "MAR"


def test_the_form_of_results(ask: Ask, pair: str, write: Write) -> None:
    none = write("pair.uai.evid", "0")

    def text(task: str, *more: str) -> str:
        return ask("infer", pair, "--evidence", none, "--task", task, "--format", "uai", *more)

    task, number = text("PR").split()
    assert task == "PR"
    assert float(number) == pytest.approx(math.log10(21), abs=1e-13)
    assert len(number.partition(".")[2]) >= 12
    assert text("MAP") == "MAP\n2 1 0\n"
    assert text("MMAP", "--query", write("pair.query", "1 1")) == "MMAP\n1 1 0\n"
    task, numbers, end = text("MAR").split("\n")
    assert (task, end) == ("MAR", "")
    assert_allclose([float(word) for word in numbers.split()], [2, 2, 3 / 21, 18 / 21, 3, 13 / 21, 5 / 21, 3 / 21])


@pytest.mark.parametrize("name", NAMES)
def test_pr(ask: Ask, write: Write, folder: Path, name: str) -> None:
    answer = read_uai_result(solved(ask, write, folder, name, "PR")).log10_partition
    published = read_uai_result(folder / f"{name}.uai.PR").log10_partition
    assert published is not None
    assert answer == pytest.approx(published, rel=5e-6)


@pytest.mark.parametrize("name", NAMES)
def test_mar(ask: Ask, write: Write, folder: Path, name: str) -> None:
    answer = read_uai_result(solved(ask, write, folder, name, "MAR")).marginals
    published = read_uai_result(folder / f"{name}.uai.MAR").marginals
    assert answer is not None
    assert published is not None
    for one, other in zip(answer, published, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_map(ask: Ask, write: Write, folder: Path, name: str) -> None:
    model, evidence = load(folder / f"{name}.uai.gz"), read_uai_evidence(folder / f"{name}.uai.evid")
    answer = read_uai_result(solved(ask, write, folder, name, "MAP")).states
    published = read_uai_result(folder / f"{name}.uai.MAP").states
    assert answer is not None
    assert published is not None
    assert all(str(answer[int(variable)]) == state for variable, state in evidence.items())
    energies = [model.energy({str(v): str(state) for v, state in enumerate(states)}) for states in (answer, published)]
    assert energies[0] <= energies[1] + 1e-9


def test_mmap(ask: Ask, write: Write, data_dir: Path) -> None:
    """Not worse than the same variables of the most probable labelling; those beside the instance are impossible."""
    name = "Promedas_70"
    folder, file = data_dir / "uai2014" / "MAP", data_dir / "uai2014" / "MMAP" / f"{name}.uai.query"
    query = read_uai_query(file)
    answer = read_uai_result(solved(ask, write, folder, name, "MMAP", "--query", str(file)))
    assert answer.query == tuple(map(int, query))
    assert answer.states is not None
    model, evidence = load(folder / f"{name}.uai.gz"), read_uai_evidence(folder / f"{name}.uai.evid")
    best = model.map(evidence).assignment
    labellings = (
        dict(zip(query, map(str, answer.states), strict=True)),
        {variable: best[variable] for variable in query},
    )
    weights = [model.log_partition(evidence | labelling) for labelling in labellings]
    assert weights[0] >= weights[1] - 1e-9
    assert weights[0] == pytest.approx(-9.455664978, abs=1e-8)
