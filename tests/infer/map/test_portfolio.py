"""What `auto` does for labellings: proven where it can be, bounds that hold, never worse than ICM from its answers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import besag
from besag.infer.map.portfolio import search_and_bound
from besag.infer.result import Result
from tests.oracle import Enumeration
from tests.strategies import examples, models

MAP = frozenset({"map", "trace"})


def answered(model: besag.Model, time_limit: float | None = None) -> tuple[Result, list[Result]]:
    """The answer, and all that were shown on the way."""
    shown: list[Result] = []
    options = {"warm": None, "rng": np.random.default_rng(0), "time_limit": time_limit, "on_step": shown.append}
    return search_and_bound(model.problem, None, MAP, **options), shown


@examples(40)
@given(data=st.data())
def test_small_models_are_proven_and_bounds_hold_at_every_step(data: DataObject) -> None:
    model = data.draw(models())
    least = Enumeration(model).map_energy
    result, shown = answered(model)
    assert result.optimal
    assert abs(result.energy - least) <= 1e-9
    for step in shown:
        assert step.energy >= least - 1e-9
        assert step.energy_bound <= least + 1e-9


def test_it_is_never_worse_than_icm_from_any_of_its_answers() -> None:
    rng = np.random.default_rng(3)
    unary, table = rng.normal(size=(24, 24, 3)), rng.normal(size=(3, 3))
    model = besag.grid((24, 24), 3, unary=unary, pairwise=table, weights=2.0 * rng.normal())
    result, shown = answered(model, time_limit=1.0)
    assert shown
    for step in (*shown[:10], *shown[::25], result):
        descended = model.map(engine="icm", init=step)
        assert step.energy <= descended.energy + 1e-9
        assert result.energy <= descended.energy + 1e-9
    energies = [step.energy for step in shown]
    assert (np.diff(energies) <= 0).all()
    assert (np.diff(result.trace["bound"]) >= 0).all()
