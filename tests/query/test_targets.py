"""marginals(targets=...): the same answers for less work."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import CapabilityError
from besag.infer.junction.engine import JunctionTree
from tests.references.helpers import file_of
from tests.strategies import evidence_for, examples, frame_for, models

ASIA = besag.data.bundled("asia")


@pytest.mark.parametrize("engine", ["junction_tree", "auto", "brute"])
@examples(40)
@given(data=st.data())
def test_targets_have_the_same_marginals(engine: str, data: st.DataObject) -> None:
    model = data.draw(models(max_labellings=500))
    evidence = data.draw(st.none() | evidence_for(model) | frame_for(model))
    names = [variable.name for variable in model.variables]
    targets = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    full, some = model.marginals(None, evidence, engine=engine), model.marginals(targets, evidence, engine=engine)
    assert list(some) == targets
    for name in targets:
        assert_allclose(some[name], full[name], rtol=1e-10, atol=1e-12)
    assert_allclose(some.log_partition, full.log_partition, rtol=1e-10, atol=1e-10)
    for f in range(min(model.n_factors, 2)):
        assert_allclose(some.factor(f), full.factor(f), rtol=1e-10, atol=1e-12)


def test_barren_nodes_are_left_out() -> None:
    full = ASIA.marginals()
    some = ASIA.marginals("tub")
    assert some.diagnostics["entries"] < full.diagnostics["entries"] / 3
    assert_allclose(some["tub"], full["tub"])
    seen = {"dysp": "yes"}
    assert_allclose(ASIA.marginals("tub", seen)["tub"], ASIA.marginals(evidence=seen)["tub"])
    assert ASIA.marginals("tub", seen).diagnostics["entries"] > some.diagnostics["entries"]


@pytest.mark.parametrize("name", ["alarm", "hailfinder", "andes"])
def test_barren_nodes_of_published_networks(name: str, data_dir: Path) -> None:
    model = besag.load(file_of(data_dir / "bnlearn_networks", f"{name}.bif"))
    order = model.topological_order()
    target, seen = order[len(order) // 3], order[0]
    evidence = {seen: model.variable(seen).states[int(model.marginals(seen)[seen].argmax())]}
    full, some = model.marginals(None, evidence), model.marginals([target], evidence)
    assert_allclose(some[target], full[target], rtol=1e-9, atol=1e-12)
    assert_allclose(some.log_partition, full.log_partition, rtol=1e-9, atol=1e-9)
    assert some.diagnostics["entries"] < 0.6 * full.diagnostics["entries"]


def test_factors_are_there_after_targets() -> None:
    some = ASIA.marginals("tub", {"xray": "yes"})
    assert_allclose(some.factor("f(either,xray)").sum(), 1.0)
    with pytest.raises(CapabilityError, match="'lung' was not among the targets"):
        some["lung"]


def test_targets_of_an_engine_come_before_the_keyword() -> None:
    engine = JunctionTree(targets=("tub",))
    assert list(ASIA.marginals(engine=engine)) == ["tub"]
    with pytest.raises(CapabilityError, match="'lung' was not among the targets"):
        ASIA.marginals("lung", engine=engine)["lung"]
    np.testing.assert_allclose(ASIA.marginals("lung", engine=JunctionTree())["lung"], ASIA.marginals()["lung"])
