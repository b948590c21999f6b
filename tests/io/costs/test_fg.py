"""libDAI factor graphs: every branch of the reader on small files, and libDAI's own files."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from besag.errors import ParseError
from besag.io import load
from besag.io.costs import fg
from besag.io.formats import Source
from tests.io.helpers import tables
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]

SMALL = b"""# two factors
2

2
7 3
2 3
5
0 1.5
1 2
4 1e-1   # 3 is zero
2 .25
5 6

1
7
2
1
1 4
"""


def test_a_small_file(write: Write) -> None:
    model = load(write("a.fg", SMALL))
    assert [v.name for v in model.variables] == ["3", "7"]
    assert [v.states for v in model.variables] == [("0", "1", "2"), ("0", "1")]
    assert not model.is_bayesian_network
    (pair, table), (unary, weights) = tables(model)
    assert (pair, unary) == (["7", "3"], ["7"])
    np.testing.assert_allclose(table, [[1.5, 0.25, 0.1], [2, 0, 6]], rtol=1e-15)  # the first variable is fastest
    np.testing.assert_allclose(weights, [0, 4], rtol=1e-15)


def test_labels_without_gaps_are_numbers(write: Write) -> None:
    model = load(write("a.fg", "2  1 1 2 2 0 1 1 3  1 0 3 1 2 1"))
    assert [v.name for v in model.variables] == ["0", "1"]
    assert [v.cardinality for v in model.variables] == [3, 2]


def test_constants_are_folded(write: Write) -> None:
    model = load(write("a.fg", "2\n0\n1\n0 5\n1\n0\n2\n2\n0 1\n1 3"))
    assert model.n_factors == 1
    assert model.log_partition() == pytest.approx(np.log(20))


def test_by_content() -> None:
    assert len(load(io.BytesIO(SMALL)).variables) == 2
    assert not fg.matches(b"2 0 1 5 0\n")
    assert not fg.matches(b"MARKOV 2 2 2")
    assert not fg.matches(b"1.5 2.5 3.5 4.5")
    assert not fg.matches(b"")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "a.fg:1: expected a number, got 'x'"),
        ("-1", "expected the number of factors, an integer from 0 to 1, got -1"),
        ("0", "a.fg:1: expected at least one factor with a variable"),
        ("1\n0\n1\n0 5", "expected at least one factor with a variable"),
        ("1", "expected the number of variables of factor 0, but the file ends"),
        ("1\n61", "expected the number of variables of factor 0, an integer from 0 to 60, got 61"),
        ("1\n2\n3 3\n2 2\n0", "a.fg:2: factor 0 names a variable twice"),
        ("1\n1\n-3\n2\n0", "a.fg:3: expected a label of factor 0, an integer"),
        ("1\n1\n3\n0\n0", "a.fg:4: expected the cardinality of variable 3 in factor 0, an integer from 1"),
        ("2\n1\n3\n2\n0\n1\n3\n4\n0", "a.fg:8: variable 3 has 2 states before and 4 in factor 1; expected the same"),
        ("1\n1\n3\n2\n3\n0 1", "a.fg:6: the file ends in the 3 entries of factor 0"),
        ("1\n1\n3\n2\n1\n2 1", "a.fg:6: expected an index into the table of factor 0, an integer from 0 to 1, got 2"),
        ("1\n1\n3\n2\n1\n.5 1", "expected an index into the table of factor 0, an integer"),
        ("1\n1\n3\n2\n1\n1 -2", "a.fg:6: factor 0: weights must be finite and not negative, got -2"),
        ("1\n1\n3\n2\n1\n1 nan", "factor 0: weights must be finite and not negative, got nan"),
        ("1\n1\n3\n2\n1\n1 2\n5", "a.fg:7: expected the end of the file after 1 factors"),
        (
            "1\n3\n0 1 2\n9999 9999 9999\n0",
            "a.fg:5: the table of factor 0 has 999700029999 entries, too many for so short a file",
        ),
        ("1\n1\n0\n999999\n0", "variable 0 has 999999 states, but the file has 5 numbers"),
    ],
)
def test_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.fg", text))


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(SMALL))
def test_mutations(data: bytes) -> None:
    attempt(fg.read, data)


def test_every_truncation() -> None:
    for end in range(len(SMALL)):
        attempt(fg.read, SMALL[:end])
    assert len(fg.read(Source(SMALL, "file")).variables) == 2


NAMES = "alarm hoi1 hoi2 hoi3 hoi4 jtreemapbug maxprodbug maxprodbug2 maxprodbug3 testfast twofactors zeroes1 2var 3var"


@pytest.mark.parametrize("name", NAMES.split())
def test_files_of_libdai(data_dir: Path, name: str) -> None:
    folder = data_dir / "libdai_tests" / "tests"
    model = load(next(folder.rglob(f"{name}.fg")))
    facts = json.loads((folder / "models_summary.json").read_text())[name]
    assert (len(model.variables), model.n_factors) == (facts["variables"], facts["factors"])
    assert model.log_partition() == pytest.approx(facts["lnZ_exact_own"], rel=1e-12, abs=1e-14)
    assert -model.map(engine="exact").energy == pytest.approx(facts["ln_max_exact_own"], rel=1e-12)
    twin = load(folder / "uai" / f"{name}.uai")
    for (_, one), (_, other) in zip(tables(model), tables(twin), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
