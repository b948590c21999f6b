"""`besag fit network` and `besag diff`."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import besag
from besag import cli
from tests.cli.conftest import LAWN, Ask, Write


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


def test_other_tables_and_states(ask: Ask, lawn: str, write: Write) -> None:
    """Of a file whose CPT of rain is off by 0.05, that of sprinkler by 1e-6, and cloudy has other states."""
    text = LAWN.replace("(yes) 0.2, 0.8", "(yes) 0.25, 0.75").replace("(no) 0.5, 0.5", "(no) 0.500001, 0.499999")
    near = write("near.bif", text)
    for more, differing in (
        ((), "sprinkler, rain"),
        (("--tolerance", "1e-3"), "rain"),
        (("--tolerance", "0.06"), "none"),
    ):
        told = read_pairs(ask("diff", lawn, near, *more))
        assert sorted(told["other tables"].split(", ")) == sorted(differing.split(", "))
        assert told["edges removed"] == told["edges added"] == told["edges reversed"] == told["other states"] == "none"
        assert told["structural Hamming distance of DAGs"] == "0"
    renamed = write(
        "renamed.bif",
        LAWN.replace("[ 2 ] { off, on }", "[ 2 ] { no, yes }").replace("(off", "(no").replace("(on", "(yes"),
    )
    facts = json.loads(ask("diff", lawn, renamed, "--format", "json"))
    assert facts["other states"] == ["sprinkler"]
    assert facts["other tables"] == []


def test_edges_of_random_networks_against_networkx(ask: Ask, tmp_path: Path) -> None:
    for seed in range(4):
        graphs = []
        for part in range(2):
            rng = np.random.default_rng([seed, part])
            arcs = np.triu(rng.random((5, 5)) < 0.5, 1)[np.ix_(order := rng.permutation(5), order)]
            graphs.append(
                nx.relabel_nodes(nx.from_numpy_array(arcs, create_using=nx.DiGraph), dict(enumerate("ABCDE")))
            )
            model = besag.bayesian_network(list(graphs[-1].edges), states=dict.fromkeys("ABCDE", 2))
            besag.save(model, tmp_path / f"{part}.bif")
        a, b = graphs
        facts = json.loads(ask("diff", str(tmp_path / "0.bif"), str(tmp_path / "1.bif"), "--format", "json"))
        turned = nx.intersection(a, b.reverse()).edges
        gone, new = nx.difference(a, b).edges, nx.difference(b, a).edges
        assert set(facts["edges reversed"]) == {f"{p} -> {c}" for p, c in turned}
        assert set(facts["edges removed"]) == {f"{p} -> {c}" for p, c in gone if (p, c) not in turned}
        assert set(facts["edges added"]) == {f"{p} -> {c}" for p, c in new if (c, p) not in turned}
        distance = len(nx.difference(a.to_undirected(), b.to_undirected()).edges)
        distance += len(nx.difference(b.to_undirected(), a.to_undirected()).edges) + len(turned)
        assert facts["structural Hamming distance of DAGs"] == distance


@pytest.mark.parametrize(
    ("second", "code", "match"),
    [
        ("missing.bif", 1, "missing.bif"),
        ("broken.bif", 1, "broken.bif"),
        ("pair.uai", 1, "Bayesian"),
        (None, 2, "SECOND"),
    ],
)
def test_files_that_cannot_be_compared(
    second: str | None, code: int, match: str, ask: Ask, lawn: str, pair: str, write: Write
) -> None:
    folder = Path(write("broken.bif", LAWN.replace("0.8, 0.2", "0.8"))).parent
    message = ask("diff", lawn, *([] if second is None else [str(folder / second)]), code=code)
    assert match in message


def read_pairs(text: str) -> dict[str, str]:
    return dict(line.split("\t") for line in text.splitlines())


def test_measurements_are_cut(ask: Ask, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(70, 10, 400)
    path, out = tmp_path / "people.tsv", str(tmp_path / "net.bif")
    frame = {"weight": weight, "tall": np.where(weight + rng.normal(0, 3, 400) > 70, "yes", "no")}
    pd.DataFrame(frame).to_csv(path, sep="\t", index=False)
    assert "'weight' holds 400 distinct numbers" in (told := ask("fit", "network", str(path), "--out", out, code=1))
    assert "--bins 5" in told
    ask("fit", "network", str(path), "--out", out, "--bins", "4")
    model = besag.load(out)
    assert len(model.variable("weight").states) == 4
    assert model.variable("tall").states == ("no", "yes")
    assert sum(len(model.parents(name)) for name in ("weight", "tall")) == 1


def test_columns_are_left_out_and_messages_speak_of_options(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "visits.csv", str(tmp_path / "net.bif")
    rows = [f"V{i:03},2024-01-{1 + i % 25:02},{'yes' if i % 2 else 'no'},{i % 3}" for i in range(60)]
    path.write_text("\n".join(["name,visit day,ill,room", *rows]))
    assert cli.main(["fit", "network", str(path), "--out", out]) == 0
    told = capsys.readouterr().err
    assert "drop names and dates of rows, --drop name 'visit day', and cut numbers, --bins 5" in told
    printed = ask("fit", "network", str(path), "--out", out, "--drop", "name", "visit day")
    assert printed.split("variables")[1].split()[0] == "2"
    assert "has no column 'nam'; did you mean 'name'?" in ask("fit", "network", str(path), out, "--drop", "nam", code=2)
    path.write_text("a,b\n" + "yes,no\n,yes\nno,no\n" * 9)
    assert "take --structure structural_em" in ask("fit", "network", str(path), out, code=1)
