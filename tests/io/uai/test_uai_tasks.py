"""Evidence, queries and results of UAI models: files read and written."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import besag
from besag.errors import CapabilityError, EvidenceError, ModelError, ParseError
from besag.io import read_uai_evidence
from besag.io.uai.tasks import (
    evidence_text,
    query_text,
    read_uai_likelihoods,
    read_uai_query,
    read_uai_result,
    read_uai_samples,
    result_text,
)

Write = Callable[..., Path]


@pytest.fixture(scope="module")
def model() -> besag.Model:
    return besag.bayesian_network(
        "A[no,yes] -> B[low,mid,high] -> C",
        cpts={"A": [0.25, 0.75], "B": [[0.2, 0.3, 0.5], [1, 0, 0]], "C": [[1, 0], [0.5, 0.5], [0.1, 0.9]]},
    )


# Evidence ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        ("2 0 1 5 0", [{"0": "1", "5": "0"}]),
        ("2\n0 1\n5 0\n", [{"0": "1", "5": "0"}]),
        ("1\n2 0 1 5 0", [{"0": "1", "5": "0"}]),
        ("1\n35 1", [{"35": "1"}]),
        ("1\n1 35 1", [{"35": "1"}]),
        ("2\n1 4 0\n2 4 1 7 2", [{"4": "0"}, {"4": "1", "7": "2"}]),
        ("1\n0", [{}]),
        ("0", []),
        ("0\n2 0", []),
        ("1 3 1 # observed\n", [{"3": "1"}]),
        ("2 3 1 3 1", [{"3": "1"}]),
    ],
)
def test_evidence(write: Write, text: str, samples: list[dict[str, str]]) -> None:
    path = write("a.evid", text)
    assert read_uai_samples(path) == samples
    assert read_uai_evidence(path) == (samples[0] if samples else {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.evid: the file is empty"),
        ("x", "a.evid:1: expected a number, got 'x'"),
        ("3 1 1", "expected the number of observations of sample 0, an integer from 0 to 0, got 1"),
        ("9", "expected a number of observations or of samples, an integer from 0 to 1, got 9"),
        ("1\n3 0 1", "a.evid:2: expected the number of observations of sample 0, an integer from 0 to 1, got 3"),
        ("2\n1 0 1", "a.evid:2: expected the number of observations of sample 1, but the file ends"),
        ("1\n1 0 1\n5", "a.evid:3: expected 1 observations or 1 samples and then the end, got 5 numbers"),
        ("1 0 -1", "expected a state of variable 0, an integer from 0 to .*, got -1"),
        ("1 0.5 1", "expected a variable, an integer"),
        ("2 3 1 3 0", "variable 3 is in two states, 1 and 0"),
    ],
)
def test_evidence_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_uai_evidence(write("a.evid", text))


def test_missing_evidence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        read_uai_evidence(tmp_path / "none.evid")


def test_evidence_by_the_names_of_a_model(write: Write, model: besag.Model) -> None:
    assert read_uai_evidence(write("a.evid", "2 1 2 0 1"), model) == {"B": "high", "A": "yes"}
    with pytest.raises(ParseError, match=r"a.evid:1: expected a variable, an integer from 0 to 2, got 3"):
        read_uai_evidence(write("a.evid", "1 3 0"), model)
    with pytest.raises(ParseError, match=r"expected a state of variable A, an integer from 0 to 1, got 2"):
        read_uai_evidence(write("a.evid", "1 0 2"), model)


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ({"B": "high", "A": "yes"}, "2 1 2 0 1\n"),
        ({"C": 1}, "1 2 1\n"),
        ({}, "0\n"),
        ([], "0\n"),
        ([{}], "1\n0\n"),
        ([{"A": "no"}], "1\n1 0 0\n"),
        ([{"A": "no"}, {"A": "yes", "B": "mid"}], "2\n1 0 0\n2 0 1 1 1\n"),
    ],
)
def test_evidence_is_written_and_read_again(
    write: Write, model: besag.Model, evidence: dict[str, object] | list[dict[str, object]], text: str
) -> None:
    assert evidence_text(evidence, model) == text
    samples = [evidence] if isinstance(evidence, dict) else evidence
    expected = [{name: str(state) for name, state in sample.items()} for sample in samples]
    assert read_uai_samples(write("a.evid", text), model) == ([] if expected == [{}] and text == "0\n" else expected)


def test_evidence_that_cannot_be_written(model: besag.Model) -> None:
    with pytest.raises(EvidenceError, match="'B' has no state 'none'; it has low, mid, high"):
        evidence_text({"B": "none"}, model)
    with pytest.raises(ModelError, match="no variable is named 'Z'"):
        evidence_text({"Z": "none"}, model)
    with pytest.raises(EvidenceError, match="2 samples with 1 observations in all would be read as one sample"):
        evidence_text([{"A": "no"}, {}], model)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1\n7 2 0.7 0.5\n", {"7": {"0": 0.7, "1": 0.5}}),
        ("2 # two\n0 2 1 0\n1 3 .5 1e-3 2", {"0": {"0": 1, "1": 0}, "1": {"0": 0.5, "1": 0.001, "2": 2}}),
        ("0", {}),
    ],
)
def test_likelihoods(write: Write, text: str, found: dict[str, dict[str, float]]) -> None:
    assert read_uai_likelihoods(write("a.virt", text)) == found


def test_likelihoods_by_name(write: Write, model: besag.Model) -> None:
    found = read_uai_likelihoods(write("a.virt", "1 1 3 1 2 4"), model)
    assert found == {"B": {"low": 1, "mid": 2, "high": 4}}
    assert model.log_partition(found) == pytest.approx(math.log(0.25 * (0.2 + 0.6 + 2) + 0.75))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1", "a.virt:1: expected a variable, but the file ends"),
        ("1\n3 2 1 1", "a.virt:2: expected a variable, an integer from 0 to 2, got 3"),
        ("1\n0 3 1 1 1", "a.virt:2: expected the cardinality of variable A, an integer from 2 to 2, got 3"),
        ("1\n0 2 1", "a.virt:2: expected 2 numbers of variable A"),
        ("1\n0 2 0 0", "not all zero"),
        ("1\n0 2 -1 1", "not negative"),
        ("1\n0 2 inf 1", "finite"),
        ("1\n0 2 nan 1", "finite"),
        ("2\n0 2 1 1\n0 2 1 1", "a.virt:3: variable A has two likelihoods"),
        ("1\n0 2 1 1\n1", "a.virt:3: expected 1 likelihoods and then the end"),
        ("1000000000 0 2 1 1", "a.virt:1: expected a number of likelihoods"),
        ("1\n0 2 much little", "a.virt:2: expected a number, got 'much'"),
    ],
)
def test_likelihoods_that_are_wrong(write: Write, model: besag.Model, text: str, match: str) -> None:
    with pytest.raises(ParseError, match=match):
        read_uai_likelihoods(write("a.virt", text), model)


# Queries -------------------------------------------------------------------------------------------------------------


def test_a_query(write: Write, model: besag.Model) -> None:
    path = write("a.query", query_text(["C", "A"], model))
    assert path.read_text() == "2 2 0\n"
    assert read_uai_query(path) == ["2", "0"]
    assert read_uai_query(path, model) == ["C", "A"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 1 2", "a.query:1: expected the number of query variables, an integer from 0 to 2, got 3"),
        ("1 1\n2", "a.query:2: expected 1 query variables and then the end, got 2 numbers"),
        ("1 7", "expected a variable, an integer from 0 to 2, got 7"),
        ("2 1\n1", "a.query:2: variable B is asked for twice"),
        ("1 x", "expected a number, got 'x'"),
    ],
)
def test_query_errors(write: Write, model: besag.Model, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_uai_query(write("a.query", text), model)


# Results -------------------------------------------------------------------------------------------------------------


def test_a_partition_function(write: Write, model: besag.Model) -> None:
    text = result_text("PR", model.marginals(evidence={"B": "high"}), model)
    assert re.fullmatch(r"PR\n-0\.\d{14}\n", text)
    assert read_uai_result(write("a.PR", text)).log10_partition == pytest.approx(math.log10(0.125), abs=1e-12)


def test_marginals(write: Write, model: besag.Model) -> None:
    result = model.marginals(evidence={"C": "1"})
    found = read_uai_result(write("a.MAR", result_text("mar", result, model)))
    assert found.task == "MAR"
    assert found.marginals is not None
    for variable, values in zip(model.variables, found.marginals, strict=True):
        np.testing.assert_array_equal(values, result[variable.name])
    with pytest.raises(CapabilityError, match="'A' was not among the targets"):
        result_text("MAR", model.marginals(targets=["B"]), model)


@pytest.mark.parametrize("task", ["MAP", "MPE"])
def test_a_most_probable_labelling(write: Write, model: besag.Model, task: str) -> None:
    text = result_text(task, model.map(), model)
    assert text == f"{task}\n3 1 0 0\n"
    assert read_uai_result(write("a.MAP", text)).states == (1, 0, 0)


def test_the_labelling_of_a_grid() -> None:
    grid = besag.grid((2, 3), 2, unary=np.array([[[0, 1], [1, 0], [0, 1]], [[1, 0], [0, 1], [1, 0]]], float))
    assert result_text("MAP", grid.map(), grid) == "MAP\n6 1 0 1 0 1 0\n"


def test_a_marginal_map(write: Write, model: besag.Model) -> None:
    result = model.marginal_map(["C", "A"], evidence={"B": "high"})
    assert result_text("MMAP", result, model, ["C", "A"]) == "MMAP\n2 2 1 0 0\n"
    text = result_text("MMAP", result, model)
    found = read_uai_result(write("a.MMAP", text))
    assert (found.query, found.states) == ((0, 2), (0, 1))
    with pytest.raises(ModelError, match="the result has no state of 'B': ask marginal_map for it"):
        result_text("MMAP", result, model, ["B"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PR\n13.563\n", 13.563),
        ("pr -inf", -math.inf),
        ("PR\n1.0\n-BEGIN-\n2.0\n-BEGIN-\n3.0", 3.0),
    ],
)
def test_forms_of_a_partition_function(write: Write, text: str, expected: float) -> None:
    assert read_uai_result(write("a.PR", text)).log10_partition == expected


def test_a_marginal_map_without_its_variables(write: Write) -> None:
    found = read_uai_result(write("a.MMAP", "MMAP\n3 0 1 4\n"))
    assert (found.states, found.query) == ((0, 1, 4), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MARKOV\n1", "a.res:1: expected one of PR, MAR, MAP, MPE, MMAP, got 'MARKOV'"),
        ("1 2 3", "expected one of PR, MAR, MAP, MPE, MMAP, got '1'"),
        ("PR\n", "a.res:1: expected one number, log10 Z, got 0"),
        ("PR", "a.res:1: expected one number, log10 Z, got 0"),
        (" " * 300 + "x", "expected one of PR, MAR, MAP, MPE, MMAP, got 'x'"),
        ("PR\n1 2", "a.res:2: expected one number, log10 Z, got 2"),
        ("PR\nnan", "expected one number, log10 Z"),
        ("MAP\n3 0 1", "a.res:2: expected 3 states, got 2 numbers"),
        ("MAP\n2 0 1 1", "a.res:2: expected 2 states, got 3 numbers"),
        ("MAP\n2 0 -1", "expected a variable or a state, an integer from 0"),
        ("MAP\n2 0 x", "expected a number, got 'x'"),
        ("MAR\n2 2 0.5 0.5", "expected the cardinality of variable 1, but the file ends"),
        ("MAR\n1 3 0.5 0.5", "expected the cardinality of variable 0, an integer from 1 to 2, got 3"),
        ("MAR\n1 2 0.5 1.5", "expected 2 probabilities of variable 0"),
        ("MAR\n1 2 0.5 nan", "expected 2 probabilities of variable 0"),
        ("MAR\n1 2 0.5 0.5 7", "expected the marginals of 1 variables and then the end"),
    ],
)
def test_result_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_uai_result(write("a.res", text))


def test_results_that_cannot_be_written(model: besag.Model) -> None:
    with pytest.raises(ModelError, match="expected a task, one of PR, MAR, MAP, MPE, MMAP, got 'SUM'"):
        result_text("sum", model.marginals(), model)
    with pytest.raises(ModelError, match="a result file has one row of evidence"):
        result_text("PR", model.marginals(evidence=pd.DataFrame({"A": ["no", "yes"]})), model)
    with pytest.raises(CapabilityError, match="map was not asked for"):
        result_text("MAP", model.marginals(), model)


# Published files -----------------------------------------------------------------------------------------------------


def test_published_queries_and_results(data_dir: Path) -> None:
    folder = data_dir / "uai2014"
    for path in sorted((folder / "MMAP").glob("*.query")):
        query = read_uai_query(path)
        solution = path.with_suffix(".MMAP")
        if solution.exists():
            states = read_uai_result(solution).states
            assert states is not None
            assert len(states) == len(query)
    for pattern in ("PR/*.PR", "MAR/*.PR"):
        assert all(read_uai_result(path).log10_partition is not None for path in sorted(folder.glob(pattern)))
    for path in sorted(folder.glob("MAR/*.MAR"))[::7]:
        found = read_uai_result(path)
        labelling = path.with_suffix(".MAP")
        assert found.marginals is not None
        if labelling.exists():
            states = read_uai_result(labelling).states
            assert states is not None
            assert all(state < len(p) for state, p in zip(states, found.marginals, strict=True))


def test_a_published_instance(data_dir: Path) -> None:
    folder = data_dir / "uai2014" / "MAR"
    path = folder / "Pedigree_11.uai"
    model = besag.load(f"{path}.gz")
    result = model.marginals(evidence=read_uai_evidence(f"{path}.evid"))
    reference = read_uai_result(f"{path}.PR").log10_partition
    assert reference is not None
    assert float(result_text("PR", result, model).split()[1]) == pytest.approx(reference, abs=1e-3)
    marginals = read_uai_result(f"{path}.MAR").marginals
    assert marginals is not None
    for variable, expected in zip(model.variables, marginals, strict=True):
        np.testing.assert_allclose(result[variable.name], expected, atol=1e-5)
