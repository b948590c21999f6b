"""The readers on published models: bnlearn's networks, the UAI 2014 competition, and files of other libraries."""

import gzip
import json
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import pytest

from besag.errors import LossWarning, ParseError
from besag.io import load, read_uai_evidence
from besag.model.model import Model
from tests.io.helpers import tables

# bnlearn's own table: nodes, arcs, free parameters.
NETWORKS = {
    "earthquake": (5, 4, 10),
    "cancer": (5, 4, 10),
    "asia": (8, 8, 18),
    "survey": (6, 6, 21),
    "child": (20, 25, 230),
    "alarm": (37, 46, 509),
    "sachs": (11, 17, 178),
    "insurance": (27, 52, 1008),
    "andes": (223, 338, 1157),
    "win95pts": (76, 112, 574),
    "pigs": (441, 592, 5618),
    "hailfinder": (56, 66, 2656),
    "link": (724, 1125, 14211),
    "hepar2": (70, 123, 1453),
    "water": (32, 66, 10083),
    "munin1": (186, 273, 15622),
    "pathfinder": (109, 195, 72079),
    "munin": (1041, 1397, 80592),
    "munin2": (1003, 1244, 69431),
    "munin3": (1041, 1306, 71059),
    "munin4": (1038, 1388, 80352),
    "mildew": (35, 46, 540150),
    "diabetes": (413, 602, 429409),
    "barley": (48, 84, 114005),
}
SMALL = 100_000  # bytes of a compressed UAI file that the fast tests read


def file_of(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path


def counts(model: Model) -> tuple[int, int, int]:
    scopes = [group.scopes for group in model.groups for _ in group.scopes]
    arcs = sum(scope.shape[1] - 1 for scope in scopes)
    shapes = [group.template.shape for group in model.groups for _ in group.scopes]
    return len(model.variables), arcs, sum(prod(shape[:-1]) * (shape[-1] - 1) for shape in shapes)


@pytest.mark.parametrize("name", NETWORKS)
def test_bnlearn(data_dir: Path, name: str) -> None:
    model = load(file_of(data_dir / "bnlearn_networks", f"{name}.bif.gz"))
    assert model.is_bayesian_network
    assert counts(model) == NETWORKS[name]


@pytest.mark.parametrize("name", NETWORKS)
def test_bnlearn_as_uai(data_dir: Path, name: str) -> None:
    folder = data_dir / "bnlearn_networks"
    one, two = load(file_of(folder, f"{name}.bif.gz")), load(file_of(folder / "uai", f"{name}.uai.gz"))
    with gzip.open(folder / "uai" / f"{name}.names.json.gz", "rt", encoding="utf-8") as file:
        names = json.load(file)
    assert [variable.name for variable in one.variables] == names["variables"]
    assert {variable.name: list(variable.states) for variable in one.variables} == names["states"]
    for (scope, table), (numbers, twin) in zip(tables(one), tables(two), strict=True):
        assert scope == [names["variables"][int(number)] for number in numbers]
        np.testing.assert_allclose(table, twin, rtol=1e-13)


def uai2014(data_dir: Path) -> Iterator[Path]:
    return (
        path for folder in ("MAR", "PR", "MAP") for path in sorted((data_dir / "uai2014" / folder).glob("*.uai.gz"))
    )


def check_uai(path: Path) -> None:
    """Variables and cardinalities as the file's beginning has them, and evidence that fits the model."""
    model = load(path)
    with gzip.open(path) as file:
        words = file.read(1 << 20).split()[: len(model.variables) + 2]
    assert int(words[1]) == len(model.variables)
    assert [int(word) for word in words[2:]] == model.variables.cardinalities.tolist()
    evidence = path.with_suffix(".evid")
    if evidence.exists():
        observed = read_uai_evidence(evidence)
        assert all(model.variables.find_state(model.variables.index(v), s) is not None for v, s in observed.items())


def test_small_uai_2014(data_dir: Path) -> None:
    small = [path for path in uai2014(data_dir) if path.stat().st_size < SMALL][::10]
    assert small
    for path in small:
        check_uai(path)


@pytest.mark.slow
def test_all_uai_2014(data_dir: Path) -> None:
    for path in uai2014(data_dir):
        check_uai(path)


def test_a_zero_constant(data_dir: Path) -> None:
    """118 empty scopes of weight 0: read literally, nothing is possible."""
    model = load(data_dir / "uai2014" / "PR" / "sat-grid-pbl-0010.cnf.uai.gz")
    assert model.support is not None
    group, _ = model.locate(0)
    assert not model.support[model.layout[group.template.name]][: group.template.n_basis].all()


BROKEN = {
    "agrum/bif/BIFReader_file1.bif": "expected at least one variable block",
    "agrum/bif/BIFReader_file3.bif": ":58: the table of the CPT of 'n6': expected 12 numbers, got 10",
    "agrum/bif/BIFReader_file4.bif": ":58: the table of the CPT of 'n6': expected 12 numbers, got 10",
    "agrum/bif/BIFReader_file5.bif": ":58: the table of the CPT of 'n6': expected 12 numbers, got 10",
    "agrum/bif/carpo.bif": r":503: row \(N143=1, N187=1\) is missing, and property function is not supported",
    "agrum/bif/dBN.bif": ":347: variable 'lasubt_1' has two probability blocks",
    "agrum/bif/dBN_with_errors.bif": ":347: variable 'lasubt_1' has two probability blocks",
    "agrum/uai/BNUAIIO_RO_file.uai": ":7: variable 0 has two CPTs, functions 0 and 2",
    "agrum/uai/BNUAIReader_file1.uai": ":1: expected the number of variables, but the file ends",
}
ODD = {
    "agrum/uai/BNUAIReader_file3.uai": ":36: function 5: row 4=0, 1=0 of the CPT of '5' sums to 0.8, not 1",
    "merlin/bn.uai": ":53: everything from here on, after the last table, is ignored",
    "merlin/pedigree1.uai": ":933: function 75: the CPT of '75' sums to 0.925, not 1",
}


def test_files_of_other_libraries(data_dir: Path) -> None:
    folder = data_dir / "peer_test_files"
    paths = sorted([*folder.rglob("*.uai"), *folder.rglob("*.bif")])
    assert len(paths) > 40
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if name in BROKEN:
            with pytest.raises(ParseError, match=BROKEN[name]):
                load(path)
        elif name in ODD:
            with pytest.warns(LossWarning, match=ODD[name]):
                assert load(path).n_factors > 0
        else:
            assert load(path).n_factors > 0
    for path in folder.rglob("*.evid"):
        assert isinstance(read_uai_evidence(path), dict)


@pytest.mark.parametrize("name", ["alarm", "insurance", "hailfinder", "survey"])
def test_agrum_and_bnlearn_agree(data_dir: Path, name: str) -> None:
    """The same networks from two sources, printed to different numbers of digits."""
    one = load(data_dir / "bnlearn_networks" / f"{name}.bif.gz")
    two = load(data_dir / "peer_test_files" / "agrum" / "bif" / f"{name}.bif")
    assert counts(one) == counts(two)
