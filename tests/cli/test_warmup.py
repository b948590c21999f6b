"""`besag warmup`: what it says, how it ends, and that its questions can be asked."""

import pytest

from besag.warmup import workers
from besag.warmup.questions import QUESTIONS
from tests.cli.conftest import Ask


def test_questions_are_listed(ask: Ask) -> None:
    lines = ask("warmup", "--list").splitlines()
    assert [line.split()[0] for line in lines] == list(QUESTIONS)


def test_one_question(ask: Ask) -> None:
    one, last = ask("warmup", "hidden_sequences", "--jobs", "1").splitlines()
    assert one.startswith("  1/1  hidden_sequences  ")
    assert last.startswith("kernels lie ready for this machine, after ")


def test_an_unknown_question(ask: Ask) -> None:
    assert "did you mean 'rows'" in ask("warmup", "row", code=2)


def test_a_question_that_fails_is_told_and_the_exit_code_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from besag import cli

    monkeypatch.setattr(workers, "warm", lambda questions, n_jobs: iter([("rows", 0.0, "ModelError: no")]))
    assert cli.main(["warmup", "rows"]) == 1
    assert "  1/1  rows              ModelError: no\n" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.filterwarnings("ignore::besag.errors.ApproximationWarning", "ignore::besag.errors.ConvergenceWarning")
def test_each_can_be_asked(name: str) -> None:
    QUESTIONS[name]()
