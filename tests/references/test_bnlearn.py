"""Exact inference on the networks of bnlearn's repository: log P(e), all posteriors and the most probable explanation.

The references are those of another library and of a second program on the same tables, rows normalised as `load` does
it; posteriors are printed to 12 digits. There are three queries a network, of which most begin without evidence.
"""

from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose

from besag.io import load
from besag.model.model import Model
from tests.references.helpers import EXACT, file_of, json_of

TOLERANCE = 1e-8

NETWORKS = (
    "earthquake", "cancer", "asia", "survey", "sachs", "child", "alarm", "insurance", "win95pts", "hailfinder",
    "hepar2", "andes", "pigs", "water", "pathfinder", "mildew", "munin1", "link", "barley", "diabetes", "munin",
    "munin2", "munin3", "munin4",
)  # fmt: skip


def network(data_dir: Path, name: str) -> tuple[Model, list[dict[str, Any]]]:
    """A network, and its queries with "states" added: the evidence by the names of states."""
    folder = data_dir / "bnlearn_networks"
    references = json_of(file_of(folder / "refs", f"{name}.json"))
    model = load(file_of(folder, f"{name}.bif"))
    for variable, states in references.get("domains", {}).items():
        assert list(model.variable(variable).states) == states
    for query in references["queries"]:
        query["states"] = {name: model.variable(name).states[code] for name, code in query["evidence"].items()}
        assert query["states"] == query.get("evidence_labels", query["states"])
    return model, references["queries"]


@pytest.mark.parametrize("name", NETWORKS)
def test_posteriors(data_dir: Path, name: str) -> None:
    model, queries = network(data_dir, name)
    assert queries
    for query in queries:
        result = model.marginals(evidence=query["states"], **EXACT)
        assert result.bound == "exact"
        assert_allclose(result.log_partition, query["log_prob_evidence"], rtol=TOLERANCE, atol=TOLERANCE)
        assert_allclose(model.log_partition(evidence=query["states"], **EXACT), result.log_partition, atol=TOLERANCE)
        for variable, expected in query.get("posteriors", {}).items():
            assert_allclose(result[variable], expected, rtol=0, atol=TOLERANCE, err_msg=variable)
        for variable, code in query["evidence"].items():
            assert_allclose(result[variable][code], 1, atol=TOLERANCE)


@pytest.mark.parametrize("name", NETWORKS)
def test_most_probable_explanations(data_dir: Path, name: str) -> None:
    model, queries = network(data_dir, name)
    values = json_of(file_of(data_dir / "bnlearn_networks" / "refs", "_mpe_values_own.json"))[name]
    for query, value in zip(queries, values, strict=True):
        assert len(query["states"]) == value["n_evidence"]
        result = model.map(evidence=query["states"], **EXACT)
        if value["ln_max"] is not None:  # barley without evidence was too large for whoever made the reference
            assert_allclose(result.energy, -value["ln_max"], rtol=TOLERANCE, atol=TOLERANCE)
        assert_allclose(model.energy(result.assignment), result.energy, rtol=TOLERANCE, atol=TOLERANCE)
        assert query["states"].items() <= result.assignment.items()


def test_all_networks_are_here(data_dir: Path) -> None:
    found = {path.name.removesuffix(".bif.gz") for path in (data_dir / "bnlearn_networks").glob("*.bif.gz")}
    assert found <= set(NETWORKS)
