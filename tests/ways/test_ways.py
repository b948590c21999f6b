"""One quantity, every route: models of fixed seeds are asked everything, and all answers are held to enumeration.

`python -m tests.ways --minutes 60 --seed 1` goes on with others. The frequencies of samples are checked some 10 times a
model with a false alarm once in 10^10 checks (`FALSE_ALARM`), were the seeds drawn anew.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import besag.infer.brute
from besag.model.structured.kinds import KINDS
from tests.ways.case import Check
from tests.ways.driver import main
from tests.ways.evidence import with_evidence
from tests.ways.models import Spec, draw
from tests.ways.run import Failure, ask_everything, forced_routes, plain_routes, script, smallest, told, wrong

SEEDS = range(20)
PLAIN_SEEDS = range(100, 104)
FORCED_SEEDS = range(200, 212)


def complaints(failures: list[Failure]) -> str:
    return "\n\n".join(told(failure) for failure in failures)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_way_of_asking_has_the_same_answer(seed: int) -> None:
    report = ask_everything(seed, shrink=False)
    assert report.checks > 100
    assert not report.failures, complaints(report.failures)


@pytest.mark.parametrize("seed", PLAIN_SEEDS)
def test_kernels_that_are_not_compiled(seed: int) -> None:
    report = ask_everything(seed, shrink=False, forced=plain_routes)
    assert not report.failures, complaints(report.failures)


@pytest.mark.parametrize("seed", FORCED_SEEDS)
def test_the_routes_of_large_models(seed: int) -> None:
    report = ask_everything(seed, shrink=False, forced=forced_routes)
    assert not report.failures, complaints(report.failures)


# What is drawn -------------------------------------------------------------------------------------------------------


def test_models_of_every_kind_are_drawn() -> None:
    specs = [draw(seed) for seed in range(300)]
    assert set(Counter(spec.kind for spec in specs)) == {
        "network",
        "markov",
        "forest",
        "lattice",
        "odd",
        "structured",
        "noisy",
    }
    assert any(1 in spec.cards for spec in specs)
    assert {len(f.scope) for spec in specs for f in spec.factors} == set(range(1, 9))
    assert {kind.name for kind in KINDS} == {f.term.name for spec in specs for f in spec.factors if f.term is not None}
    assert any(f.shared for spec in specs for f in spec.factors)
    assert any({v for f in spec.factors for v in f.scope} < set(range(len(spec.names))) for spec in specs)
    rows = [row for spec in specs for f in spec.factors if spec.is_network for row in _rows(f.table)]
    assert 0.45 < np.mean([(row == 0).any() for row in rows if len(row) > 1]) < 0.8


def _rows(table: np.ndarray) -> Any:
    return table.reshape(-1, table.shape[-1])


def test_evidence_of_every_form_is_drawn() -> None:
    values = [value for seed in range(40) for row in with_evidence(draw(seed)).rows for value in row.values()]
    assert {type(value) for value in values} == {str, int, list, tuple, set, dict, np.ndarray}


# What is found -------------------------------------------------------------------------------------------------------


def broken_energies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumeration says that all energies are larger by a millionth."""
    true = besag.infer.brute.Brute.infer

    def infer(self: Any, problem: Any, want: Any, **more: Any) -> Any:
        result = true(self, problem, want, **more)
        if result.log_partitions is not None:
            object.__setattr__(result, "log_partitions", result.log_partitions - 1e-6)
        return result

    monkeypatch.setattr(besag.infer.brute.Brute, "infer", infer)


def test_a_wrong_answer_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_energies(monkeypatch)
    (failure,) = ask_everything(4, only=["ask_log_partition"]).failures
    assert "log_partition(row 0, brute)" in failure.text
    assert failure.small is not None
    spec, text = failure.small
    assert "log_partition(row 0, brute)" in text
    assert len(spec.rows) == 1
    assert all(len(factor.scope) == 1 for factor in spec.factors)
    assert "--models 1 --seed 4 --only ask_log_partition" in told(failure)


def test_a_question_that_fails_only_after_others_says_so() -> None:
    spec = with_evidence(draw(4))
    assert smallest(spec, "ask_log_partition") is None
    assert "only after other questions" in told(Failure(spec, "ask_log_partition", "wrong"))


@pytest.mark.parametrize("seed", [0, 4])
def test_the_script_of_a_model_makes_it(seed: int) -> None:
    spec: Spec = with_evidence(draw(seed))
    made: dict[str, Any] = {}
    exec(script(spec), made)
    assert made["model"].log_partition() == pytest.approx(spec.model().log_partition(), rel=1e-12)


@pytest.mark.parametrize(
    ("check", "right"),
    [
        (Check("", 1.0, 1.0), True),
        (Check("", -np.inf, -np.inf), True),
        (Check("", 1.0, 1.0 + 1e-8), False),
        (Check("", [1.0], 1.0), False),
        (Check("", np.nan, 1.0), False),
        (Check("", np.inf, 1.0), False),
        (Check("", 0.5, 1.0, at_most=True), True),
        (Check("", 1.1, 1.0, at_most=True), False),
        (Check("", 1.1, np.inf, at_most=True), True),
        (Check("", np.inf, 1.1, at_most=True), False),
        (Check("", np.nan, 1.1, at_most=True), False),
        (Check("", [1, 2], [1, 2], 1e-300), True),
        (Check("", 1.0, np.nextafter(1.0, 2.0), 1e-300), False),
    ],
)
def test_what_counts_as_right(check: Check, right: bool) -> None:
    assert (check.error() <= 1) is right


def test_errors_are_findings() -> None:
    text, _ = wrong(draw(0), "ask_a_session_that_wanders")
    assert text is None
    unnamed = Spec(0, "markov", ("A",), (("0", "1"),), (), "energy", ({"B": "0"},))
    text, checks = wrong(unnamed, "ask_log_partition")
    assert text is not None
    assert checks == 0


def test_the_driver_counts_models_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--models", "2", "--seed", "7", "--only", "ask_log_partition", "--plain"]) == 0
    assert "2 models from seed 7 on, " in capsys.readouterr().out
