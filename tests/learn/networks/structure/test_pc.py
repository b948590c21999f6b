"""Tests of independence held to scipy, and what PC and MMHC find in many rows."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import besag
from besag.arrays import AnyArray
from besag.errors import CapabilityError
from besag.graph.directed.orientation import cpdag_of
from besag.learn.networks.structure import learn_structure
from besag.learn.networks.structure.constraints import read_constraints
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import CRITERIA
from besag.learn.networks.structure.pc import Skeleton, direct
from besag.learn.networks.structure.task import Task
from besag.metrics import structural_hamming_distance
from besag.model.dag import are_separated
from tests.dags import all_dags, dependent_rows

SIZES = np.array([2, 3, 2, 4])
CODES = dependent_rows(SIZES, 300, seed=7)


def table_of(x: int, y: int, rows: AnyArray) -> AnyArray:
    table = np.zeros((SIZES[x], SIZES[y]))
    np.add.at(table, (CODES[x][rows], CODES[y][rows]), 1)
    return table


@pytest.mark.parametrize("chi", [False, True])
@pytest.mark.parametrize("given", [(), (2,), (0, 2)])
def test_a_statistic_is_the_sum_over_strata(chi: bool, given: tuple[int, ...]) -> None:
    x, y = 1, 3
    statistic, freedom = 0.0, 0
    for stratum in np.unique(CODES[list(given)], axis=1).T if given else [()]:
        rows = np.all([CODES[z] == s for z, s in zip(given, stratum, strict=True)], axis=0) if given else slice(None)
        table = table_of(x, y, rows)
        table = table[table.any(axis=1)][:, table.any(axis=0)]
        if min(table.shape) > 1:
            found = chi2_contingency(table, correction=False, lambda_=None if chi else "log-likelihood")
            statistic, freedom = statistic + found.statistic, freedom + found.dof
    assert Counter(CODES, SIZES).test(x, y, given, chi) == (pytest.approx(statistic), freedom)


@pytest.mark.parametrize("method", ["pc", "pc[test=chi2,alpha=0.001]", "pc[adjusted=false]"])
def test_pc_finds_a_class_from_many_rows(method: str) -> None:
    model = besag.bayesian_network("A -> C <- B; C -> D; D -> E <- F", {"C": 3})
    rng = np.random.default_rng(1)
    for name in "ABCDEF":
        shape = model.cpt(name).shape
        model = model.with_cpt(name, rng.dirichlet(np.full(shape[-1], 0.4), shape[:-1]))
    frame = model.sample(20_000, seed=2)
    codes = np.stack([frame[name].cat.codes for name in "ABCDEF"]).astype(np.uint8)
    sizes = [len(model.variable(name).states) for name in "ABCDEF"]
    found = learn_structure(codes, sizes, names="ABCDEF", method=method)
    assert structural_hamming_distance(model, found.graph) == 0
    assert (found.cpdag.matrix == found.graph.matrix).all()


def test_pc_with_right_answers_to_all_tests_finds_the_class() -> None:
    sizes, names = np.full(4, 2), tuple("ABCD")
    for dag in all_dags(4)[::5]:
        parents = [np.flatnonzero(column).tolist() for column in dag.T]
        counter = Counter(np.zeros((4, 1), np.uint8), sizes)
        task = Task(names, counter, CRITERIA.read("bic"), read_constraints(names, sizes))
        skeleton = Skeleton(task, lambda x, y, given, above=parents: are_separated(above, [x], [y], given), None)
        while skeleton.advance() is None:
            pass
        assert (direct(task, skeleton.joined, skeleton.parted_by) == cpdag_of(dag)).all()


def test_constraints_direct_edges() -> None:
    found = learn_structure(CODES, SIZES, names="ABCD", method="pc", required=[("D", "A")], forbidden=[("B", "C")])
    assert ("D", "A") in found.graph.edges
    assert not found.graph.matrix[1, 2]
    apart = learn_structure(CODES, SIZES, names="ABCD", method="pc", forbidden=[("B", "D"), ("D", "B")])
    assert not (apart.graph.matrix | apart.graph.matrix.T)[1, 3]


def test_options_are_checked() -> None:
    for method in ("pc[alpha=1]", "pc[test=t]", "pc[max_given=-1]", "mmhc[alpha=0]", "mmhc[max_given=-1]"):
        with pytest.raises(CapabilityError, match="must be"):
            learn_structure(CODES, SIZES, method=method)


def test_a_test_without_power_keeps_its_edge() -> None:
    kept = learn_structure(CODES, SIZES, method="pc[least_rows=1000000]").graph.matrix
    assert (kept | kept.T).sum() == 12
