"""Structures held to published optima and likelihoods."""

import gzip
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from besag.arrays import AnyArray, IntArray
from besag.learn.networks.structure import learn_structure
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import CRITERIA
from besag.learn.networks.structure.scores import FamilyScores

ALARM = (
    "[HIST|LVF][CVP|LVV][PCWP|LVV][HYP][LVV|HYP:LVF][LVF][STKV|HYP:LVF][ERLO][HRBP|ERLO:HR][HREK|ERCA:HR][ERCA]"
    "[HRSA|ERCA:HR][ANES][APL][TPR|APL][ECO2|ACO2:VLNG][KINK][MINV|INT:VLNG][FIO2][PVS|FIO2:VALV][SAO2|PVS:SHNT]"
    "[PAP|PMB][PMB][SHNT|INT:PMB][INT][PRSS|INT:KINK:VTUB][DISC][MVS][VMCH|MVS][VTUB|DISC:VMCH][VLNG|INT:KINK:VTUB]"
    "[VALV|INT:VLNG][ACO2|VALV][CCHL|ACO2:ANES:SAO2:TPR][HR|CCHL][CO|HR:STKV][BP|CO:TPR]"
)


def coded(frame: pd.DataFrame) -> tuple[list[str], AnyArray, IntArray]:
    """(names, codes (V, N), cardinalities) of a frame of text."""
    columns = [pd.Categorical(frame[name]) for name in frame]
    codes = np.stack([column.codes for column in columns]).astype(np.uint8)
    return [str(name) for name in frame], codes, np.array([len(column.categories) for column in columns])


@pytest.mark.parametrize(("most", "optimum"), [(None, -24028.09477835351), (1, -24933.777022652117)])
def test_learning_test(data_dir: Path, most: int | None, optimum: float) -> None:
    frame = pd.read_csv(data_dir / "bn_learning/bnlearn_r_data/learning.test.csv.gz", dtype=str)
    names, codes, sizes = coded(frame)
    found = learn_structure(codes, sizes, names=names, method="exact", criterion="bdeu", max_parents=most)
    assert found.score == pytest.approx(optimum, rel=1e-13)
    if most is None:
        assert {*found.cpdag.edges} == {("A", "D"), ("C", "D"), ("B", "E"), ("F", "E")}
        assert found.cpdag.undirected == [("A", "B")]
        scores = FamilyScores(Counter(codes, sizes), CRITERIA.read("bic"))
        assert scores.total(found.parents) == pytest.approx(-24006.734232, rel=1e-10)


def test_wine(data_dir: Path) -> None:
    _, codes, sizes = coded(pd.read_csv(data_dir / "bn_learning/gobnilp/csv/wine.csv.gz", header=None, dtype=str))
    found = learn_structure(codes, sizes, method="exact", max_parents=3)
    assert found.score == pytest.approx(-1258.44590861, abs=1e-8)


def test_asia_has_the_local_scores_and_the_optimum_of_the_file(data_dir: Path) -> None:
    folder = data_dir / "bn_learning/gobnilp"
    frame = pd.read_csv(folder / "asia_10000.dat.gz", sep=r"\s+", dtype=str)
    names, codes, sizes = coded(frame.iloc[1:])  # the first row has the numbers of states
    listed = read_local_scores(folder / "asia_10000.dat.3.jkl.gz")
    scores = FamilyScores(Counter(codes, sizes), CRITERIA.read("bdeu"))
    for child, sets in listed.items():
        for parents, score in sets.items():
            assert scores.of(names.index(child), [names.index(p) for p in parents]) == pytest.approx(score, abs=1e-7)
    optimum = best_by_orders(listed)
    found = learn_structure(codes, sizes, names=names, method="exact", criterion="bdeu", max_parents=3)
    assert found.score == pytest.approx(optimum, abs=1e-6)


def read_local_scores(path: Path) -> dict[str, dict[frozenset[str], float]]:
    """{child: {parents: score}} of a .jkl file."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    found: dict[str, dict[frozenset[str], float]] = {}
    while lines:
        child, n = lines.pop(0).split()
        rows = [lines.pop(0).split() for _ in range(int(n))]
        found[child] = {frozenset(row[2:]): float(row[0]) for row in rows}
    return found


def best_by_orders(listed: dict[str, dict[frozenset[str], float]]) -> float:
    """The optimum of local scores by going over subsets of the variables."""
    best = {frozenset[str](): 0.0}
    for _ in listed:
        grown: dict[frozenset[str], float] = {}
        for subset, score in best.items():
            for child in listed.keys() - subset:
                own = max(s for parents, s in listed[child].items() if parents <= subset)
                key = subset | {child}
                grown[key] = max(grown.get(key, -math.inf), score + own)
        best = grown
    return next(iter(best.values()))


@pytest.fixture(scope="module")
def alarm(data_dir: Path) -> tuple[list[str], AnyArray, IntArray]:
    path = data_dir / "bn_learning/bnlearn_r_data/alarm.csv.gz"
    return coded(pd.read_csv(path, dtype=str, keep_default_na=False).iloc[:10_000])


def test_order_search_is_better_than_the_truth_on_alarm(alarm: tuple[list[str], AnyArray, IntArray]) -> None:
    names, codes, sizes = alarm
    above = {part.partition("|")[0]: part.partition("|")[2] for part in ALARM[1:-1].split("][")}
    truth = [[names.index(p) for p in above[name].split(":") if p] for name in names]
    scores = FamilyScores(Counter(codes, sizes), CRITERIA.read("bic"))
    found = learn_structure(codes, sizes, names=names, method="order_search")
    assert found.score >= scores.total(truth)


@pytest.mark.parametrize("method", ["hill_climb", "tabu", "pc"])
def test_the_order_of_columns_makes_no_difference_on_alarm(
    alarm: tuple[list[str], AnyArray, IntArray], method: str
) -> None:
    names, codes, sizes = alarm
    first = learn_structure(codes, sizes, names=names, method=method)
    rng = np.random.default_rng(0)
    for _ in range(3):
        order = rng.permutation(len(names))
        found = learn_structure(codes[order], sizes[order], names=[names[v] for v in order], method=method)
        assert found.score == first.score
        assert (found.cpdag.over(names).matrix == first.cpdag.matrix).all()


@pytest.mark.parametrize("method", ["hill_climb", "tabu", "order_search"])
def test_25_orders_of_columns_make_no_difference_on_2000_rows_of_alarm(
    alarm: tuple[list[str], AnyArray, IntArray], method: str
) -> None:
    names, codes, sizes = alarm[0], alarm[1][:, :2000], alarm[2]
    first = learn_structure(codes, sizes, names=names, method=method)
    rng = np.random.default_rng(1)
    for _ in range(25):
        order = rng.permutation(len(names))
        found = learn_structure(codes[order], sizes[order], names=[names[v] for v in order], method=method)
        assert found.score == first.score
        assert (found.cpdag.over(names).matrix == first.cpdag.matrix).all()


PUBLISHED = {  # nats per test row, to 6 decimals where an independent run tells so many
    "nltcs": -6.759045,
    "plants": -16.524015,
    "baudio": -44.374902,
    "bnetflix": -60.250346,
    "accidents": -33.188110,
    "pumsb_star": -30.807048,
    "dna": -87.7348,
    "moviereview": -339.5356,
    "bbc": -261.8563,
}
OF_TRAINING = {"mushrooms": -20.8612}  # some of its columns are equal: several trees are best, and differ on test rows
SLOW = {"bbc"}
SETS = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in [*PUBLISHED, *OF_TRAINING]]


@pytest.mark.parametrize("name", SETS)
def test_chow_liu_has_the_published_likelihoods(data_dir: Path, name: str) -> None:
    """Tables of pairs with 1 added to each cell, in informations and in CPTs: so the root makes no difference."""
    told = PUBLISHED.get(name) or OF_TRAINING[name]
    data = np.load(data_dir / f"debd_binary/{name}.npz")
    n = int(data["n_vars"])
    train, test = (np.unpackbits(data[part], axis=1)[:, :n] for part in ("train", "test"))
    test = train if name in OF_TRAINING else test
    found = learn_structure(np.ascontiguousarray(train.T), [2] * n, method="chow_liu[pseudocount=1]")
    total = 0.0
    for child, parents in enumerate(found.parents):
        codes = 2 * train[:, parents[0]] + train[:, child] if parents else train[:, child]
        counts = np.bincount(codes, minlength=4 if parents else 2).reshape(-1, 2) + (1.0 if parents else 2.0)
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        total += float(logs[test[:, parents[0]] if parents else 0, test[:, child]].sum())
    assert total / len(test) == pytest.approx(told, abs=1e-6 if round(told, 4) != told else 5.1e-5)
