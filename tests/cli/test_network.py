"""`besag fit network` and `besag diff`."""

import json
from pathlib import Path

import pytest

import besag
from besag import cli
from tests.cli.conftest import Ask


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    besag.data.bundled("asia").sample(2000, seed=1).to_csv(path, index=False)
    return str(path)


def test_a_network_is_learned_and_differs_little(ask: Ask, table: str, tmp_path: Path) -> None:
    out = str(tmp_path / "net.bif")
    options = ("--structure", "tabu[length=5]", "--required", "smoke->lung", "--max-parents", "2", "--prior", "laplace")
    told = dict(line.split("\t") for line in ask("fit", "network", table, "--out", out, *options).splitlines())
    model = besag.load(out)
    assert told["variables"] == "8"
    assert told["ended"] == "converged"
    assert int(told["edges"]) == sum(len(model.parents(v.name)) for v in model.variables)
    assert "smoke" in model.parents("lung")
    truth = str(tmp_path / "asia.bif")
    besag.save(besag.data.bundled("asia"), truth)
    facts = json.loads(ask("diff", truth, out, "--format", "json"))
    assert facts["only in the first"] == facts["only in the second"] == facts["other states"] == []
    distance = besag.metrics.structural_hamming_distance(besag.data.bundled("asia"), model)
    assert facts["structural Hamming distance of CPDAGs"] == distance
    assert "asia" in facts["other tables"]


def test_tiers_and_edges(ask: Ask, table: str, tmp_path: Path) -> None:
    out = str(tmp_path / "net.bif")
    options = ("--prior", "bdeu", "--tiers", "dysp", "bronc,smoke", "--forbidden", "lung->either")
    ask("fit", "network", table, "--out", out, *options)
    model = besag.load(out)
    assert not {"bronc", "smoke"} & set(model.parents("dysp"))
    assert "lung" not in model.parents("either")
    ask("fit", "network", table, "--out", out, "--prior", "bdeu", "--max-entries", "4")
    assert max(besag.load(out).cpt(name).size for name in besag.data.bundled("asia").variables.names) == 4


def test_differences_of_edges_and_tables(ask: Ask, tmp_path: Path) -> None:
    first = besag.bayesian_network("A[no,yes] -> B[no,yes]; B -> C; D", cpts={"A": [0.3, 0.7]})
    second = besag.bayesian_network("A[yes,no] -> B[no,yes]; C -> B; E", cpts={"A": [0.7, 0.3]})
    paths = [str(tmp_path / name) for name in ("a.bif", "b.bif")]
    for model, path in zip((first, second), paths, strict=True):
        besag.save(model, path)
    told = dict(line.split("\t") for line in ask("diff", *paths).splitlines())
    assert told["only in the first"] == "D"
    assert told["only in the second"] == "E"
    assert told["edges reversed"] == "B -> C"
    assert told["edges removed"] == told["edges added"] == "none"
    assert told["other states"] == told["other tables"] == "none"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--structure", "taboo"), 1),
        (("--required", "smoke->lung", "--forbidden", "smoke->lung"), 1),
        (("--required", "smoke-lung"), 2),
        (("--criterion", "bick"), 1),
    ],
)
def test_bad_options(options: tuple[str, ...], code: int, table: str, tmp_path: Path) -> None:
    arguments = ["fit", "network", table, "--out", str(tmp_path / "net.bif"), *options]
    if code == 2:
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2
    else:
        assert cli.main(arguments) == code
    assert not (tmp_path / "net.bif").exists()
