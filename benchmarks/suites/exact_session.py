"""A session: one observed value changes, one posterior is asked, again and again.

Each run begins, untimed, from the same evidence and takes the same steps; the time is that of all steps. pyAgrum is
asked in the way that was the fastest of four: one engine that is kept, `chgEvidence`, and the one variable as target.
munin1 takes it seconds a step: `--slow`. Single precision of pyAgrum's BIF reader: tolerance 1e-5.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.networks import Array, bif, changes, checksums, evidence, read
from benchmarks.suite import Case, Job, Suite
from benchmarks.suites.exact import PYAGRUM, pgmpy_elimination, pyagrum_engine, pyagrum_network


def besag_job(name: str, n_steps: int, engine: str) -> Job:
    """A Session, which repeats only the messages that changed."""
    import besag

    network = read(name)
    start, steps = evidence(network), changes(network, n_steps)
    model: Any = besag.load(bif(name))
    session = model.session(engine=engine)

    def begin() -> None:
        session.observe(**start)
        session[steps[0].target]

    def run(_: None) -> list[Array]:
        answers = []
        for step in steps:
            session.observe(**{step.name: step.state})
            answers.append(session[step.target])
        return answers

    return Job(run, checksums, begin)


def pyagrum_job(name: str, n_steps: int, contestant: str) -> Job:
    """An engine that is kept."""
    network = read(name)
    start, steps = evidence(network), changes(network, n_steps)
    engine = pyagrum_engine(pyagrum_network(name), contestant)

    def begin() -> None:
        engine.setEvidence(start)
        engine.setTargets({steps[0].target})
        engine.makeInference()

    def run(_: None) -> list[Any]:
        answers = []
        for step in steps:
            engine.chgEvidence(step.name, step.state)
            engine.setTargets({step.target})
            engine.makeInference()
            answers.append(engine.posterior(step.target))
        return answers

    return Job(run, lambda answers: checksums([tensor.toarray() for tensor in answers]), begin)


def pgmpy_job(name: str, n_steps: int) -> Job:
    """Variable elimination at each step."""
    network = read(name)
    start, steps = evidence(network), changes(network, n_steps)
    make, array = pgmpy_elimination(name)
    engine = make()

    def run() -> list[Any]:
        now, answers = dict(start), []
        for step in steps:
            now[step.name] = step.state
            answers.append(engine.query([step.target], evidence=now, show_progress=False))
        return answers

    def summary(answers: list[Any]) -> dict[str, float]:
        return checksums([array(step.target, factor) for step, factor in zip(steps, answers, strict=True)])

    return Job(run, summary)


def case(name: str, n_steps: int, engine: str = "junction_tree") -> Case:
    """One network, all contestants."""
    slow = name == "munin1"
    return Case(
        f"{name}, {n_steps} steps",
        {"besag": partial(besag_job, engine=engine)}
        | {contestant: partial(pyagrum_job, contestant=contestant) for contestant in PYAGRUM}
        | ({} if slow else {"pgmpy": pgmpy_job}),
        {"name": name, "n_steps": n_steps},
        tolerance=1e-5,
        baseline=tuple(PYAGRUM),
        patience=5.0,
        time_limit=150.0,
        memory_limit=14_000_000_000,
        slow=slow,
    )


SUITE = Suite(
    title="a session, one value changed and one posterior asked",
    cases=(case("alarm", 100), case("hepar2", 100), case("andes", 50), case("munin1", 5)),
    environments=dict.fromkeys(PYAGRUM, "pyagrum"),
)
