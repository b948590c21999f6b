"""docs/tutorials: their code runs, their checks tell right answers from wrong ones, and each is a notebook.

The answers below are those of the exercises; wrong ones are slips that a reader may make.
"""

import functools
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import besag
from tests.test_readme import ROOT, blocks, run_doctest

sys.path.insert(0, str(ROOT / "docs" / "site"))
from notebooks import cells_of_code, page_as_notebook

PAGES = sorted((ROOT / "docs" / "tutorials").glob("[0-9]*.md"))


@functools.cache
def run_tutorial(page: Path) -> dict[str, Any]:
    """The names that a page leaves behind."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        run_doctest(code, namespace, page.name, line)
    return namespace


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "## Exercises" in page.read_text(encoding="utf-8")
    assert run_tutorial(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_is_a_notebook(page: Path) -> None:
    notebook = json.loads(page_as_notebook(page))
    assert notebook["nbformat"] == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for source in code:
        compile(source, page.name, "exec")
    text = page.read_text(encoding="utf-8")
    assert "\n".join(code).split() == [word for _, block in blocks(text) for word in without_prompts(block)]


def without_prompts(block: str) -> Iterator[str]:
    for line in block.splitlines():
        if line.startswith((">>> ", "... ")):
            yield from line[4:].split()


def test_what_is_shown_becomes_output() -> None:
    assert list(cells_of_code(">>> a = 1\n>>> a\n1\n>>> for i in (a,):\n...     print(i)\n1\n>>> b = 2\n")) == [
        ("code", "a = 1\na", "1\n"),
        ("code", "for i in (a,):\n    print(i)", "1\n"),
        ("code", "b = 2", ""),
    ]


def energy_of_five(theta: Any, x: Any, y: Any) -> float:
    node, edge = theta[:4].reshape(2, 2), theta[4:].reshape(2, 2)
    return float(sum(x[s] @ node[:, y[s]] for s in range(3)) + edge[y[0], y[1]] + edge[y[1], y[2]])


def from_variable(tables: Any, cards: Any, s: int, f: Any, *, skip: bool = True) -> Any:
    said = [from_factor(tables, cards, g, s) for g in tables if s in g and not (skip and g == f)]
    return np.prod([np.ones(cards[s]), *said], axis=0)


def from_factor(tables: Any, cards: Any, f: Any, s: int) -> Any:
    table = tables[f]
    for axis, t in enumerate(f):
        if t != s:
            shape = [-1 if i == axis else 1 for i in range(len(f))]
            table = table * from_variable(tables, cards, t, f).reshape(shape)
    return table.sum(axis=tuple(axis for axis, t in enumerate(f) if t != s))


def z_at(tables: Any, cards: Any, s: int) -> float:
    return float(np.prod([from_factor(tables, cards, f, s) for f in tables if s in f], axis=0).sum())


def marginal_of(tables: Any, cards: Any, f: Any) -> Any:
    table = tables[f]
    for axis, t in enumerate(f):
        shape = [-1 if i == axis else 1 for i in range(len(f))]
        table = table * from_variable(tables, cards, t, f).reshape(shape)
    return table / table.sum()


def cliques_of(graph: Any, order: Any) -> list[set[int]]:
    found = []
    for v in order:
        near = graph.pop(v)
        found.append({v} | near)
        for w in near:
            graph[w] = (graph[w] | near) - {v, w}
    return found


def runs(cliques: Any, edges: Any) -> bool:
    for v in set().union(*cliques):
        having = {i for i, clique in enumerate(cliques) if v in clique}
        reached = {min(having)}
        for _ in cliques:
            reached |= {i for edge in edges if set(edge) <= having and set(edge) & reached for i in edge}
        if reached != having:
            return False
    return True


def iterate(unary: Any, tables: Any, messages: Any, *, skip: bool = True) -> Any:
    new = {}
    for s, t in tables:
        heard = [messages[u, v] for u, v in messages if v == s and not (skip and u == t)]
        said = (np.prod([unary[s], *heard], axis=0)[:, None] * tables[s, t]).sum(axis=0)
        new[s, t] = said / said.sum()
    return new


def conditional(model: Any, y: Any, i: int, *, shift: bool = True) -> Any:
    energies = np.array([float(model.energy(np.where(np.arange(5) == i, k, y))) for k in (0, 1)])
    weights = np.exp(-(energies - energies.min() if shift else energies))
    return weights / max(weights.sum(), 1e-300)


def sweep(energies: Any, y: Any, rng: Any, *, sign: int = -1) -> Any:
    y = y.copy()
    for i in range(3):
        here = [energies[tuple(np.where(np.arange(3) == i, k, y))] for k in (0, 1)]
        y[i] = rng.random() < 1 / (1 + np.exp(sign * (here[0] - here[1])))
    return y


def update(energies: Any, q: Any, i: int, *, sign: int = -1) -> Any:
    others = [np.ones(len(part)) if j == i else part for j, part in enumerate(q)]
    mean = (np.einsum("i,j,k->ijk", *others) * energies).sum(axis=tuple({0, 1, 2} - {i}))
    return np.exp(sign * mean) / np.exp(sign * mean).sum()


def bound(energies: Any, q: Any, *, sign: int = -1) -> float:
    joint = np.einsum("i,j,k->ijk", *q)
    return float(sign * (joint * np.log(joint)).sum() - (joint * energies).sum())


def icm(model: Any, y: Any) -> list[Any]:
    way = [y]
    while True:
        flips = np.where(np.eye(len(y), dtype=bool), 1 - way[-1], way[-1])
        energies = model.energy(flips)
        if energies.min() >= model.energy(way[-1]):
            return way
        way.append(flips[energies.argmin()])


def least(unary: Any, pairwise: Any) -> Any:
    best, back = unary[0], []
    for row in unary[1:]:
        back.append((best[:, None] + pairwise).argmin(axis=0))
        best = (best[:, None] + pairwise).min(axis=0) + row
    states = [int(best.argmin())]
    for pointers in reversed(back):
        states.append(int(pointers[states[-1]]))
    return np.array(states[::-1])


def trap() -> tuple[besag.Model, list[int]]:
    table = np.full((2, 2, 2), 20.0)
    table[0, 0, 0], table[1, 1, 1] = 0.0, -15.0
    return besag.markov_network([2, 2, 2], [((0, 1, 2), table)], given="energy"), [0, 0, 0]


def mean_of(features: Any, theta: Any) -> tuple[Any, Any]:
    p = np.exp(-features @ theta)
    p /= p.sum()
    return p, p @ features


def gradient(features: Any, theta: Any, y: int) -> Any:
    return features[y] - mean_of(features, theta)[1]


def hessian(features: Any, theta: Any) -> Any:
    p, mean = mean_of(features, theta)
    return features.T @ (p[:, None] * features) - np.outer(mean, mean)


def pseudo_loss(h: Any, a: int, b: int) -> float:
    return float(2 * h[a, b] + np.log(np.exp(-h[:, b]).sum()) + np.log(np.exp(-h[a]).sum()))


def count(codes: Any, cards: Any, child: int, parents: Any, extra: float = 0.0) -> Any:
    table = np.full([*(cards[p] for p in parents), cards[child]], extra)
    np.add.at(table, tuple(codes[:, [*parents, child]].T), 1)
    total = table.sum(axis=-1, keepdims=True)
    return np.where(total > 0, table / np.maximum(total, 1e-300), 1 / cards[child])


def bic(codes: Any, parents: Any, price: float = 0.5) -> float:
    value = 0.0
    for child, found in parents.items():
        table = count(codes, (2, 2, 2), child, found)
        value += np.log(table[tuple(codes[:, [*found, child]].T)]).sum()
        value -= price * np.log(len(codes)) * 2 ** len(found)
    return value


def posterior(weights: Any, p: Any, codes: Any) -> Any:
    logs = np.log(weights) + codes @ np.log(p).T + (1 - codes) @ np.log(1 - p).T
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def underflowing(weights: Any, p: Any, codes: Any) -> Any:
    found = weights * np.prod(np.where(codes[:, None] == 1, p, 1 - p), axis=2)
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300)


def m_step(shares: Any, codes: Any) -> tuple[Any, Any]:
    return shares.mean(axis=0), (shares.T @ codes) / shares.sum(axis=0)[:, None]


CONSTANT, TWICE = "a constant is added", "twice as large"
EXERCISES: list[tuple[int, str, tuple[Any, ...], list[tuple[Any, ...]]]] = [  # chapter, check, right, wrong
    (
        1,
        "check_most_probable",
        (lambda model, y: tuple(y[model.energy(y).argmin()]),),
        [(lambda model, y: tuple(y[model.energy(y).argmax()]),), (lambda model, y: None,)],
    ),
    (1, "check_energy", (energy_of_five,), [(lambda theta, x, y: -energy_of_five(theta, x, y),)]),
    (
        2,
        "check_messages",
        (from_variable, from_factor),
        [(functools.partial(from_variable, skip=False), lambda tables, cards, f, s: np.ones(cards[s]))],
    ),
    (2, "check_lemma_10", (z_at, marginal_of), [(z_at, lambda tables, cards, f: tables[f] / tables[f].sum())]),
    (3, "check_cliques", (cliques_of,), [(lambda graph, order: [{v} | graph[v] for v in order],)]),
    (3, "check_order", (list(range(12)),), [([4, 7, *range(4), 5, 6, *range(8, 12)],), (list(range(11)),)]),
    (3, "check_running_intersection", (runs,), [(lambda cliques, edges: True,), (lambda cliques, edges: False,)]),
    (4, "check_iteration", (iterate,), [(functools.partial(iterate, skip=False),)]),
    (4, "check_failure", (2.0, 0.1), [(0.2, 0.1), (5.0, 0.1)]),
    (5, "check_conditional", (conditional,), [(functools.partial(conditional, shift=False),)]),
    (5, "check_sweep", (sweep,), [(functools.partial(sweep, sign=1),)]),
    (5, "check_number", (2100,), [(1000,), (30_000,)]),
    (6, "check_update", (update,), [(functools.partial(update, sign=1),)]),
    (6, "check_bound", (bound,), [(functools.partial(bound, sign=1),)]),
    (7, "check_icm", (icm,), [(lambda model, y: icm(model, y)[:1],), (lambda model, y: icm(model, y)[-1:],)]),
    (7, "check_chain", (least,), [(lambda unary, pairwise: unary.argmin(axis=1),)]),
    (7, "check_trap", trap(), [(trap()[0], [1, 1, 1]), (trap()[0], [0, 1, 1])]),
    (8, "check_gradient", (gradient,), [(lambda *given: -gradient(*given),)]),
    (8, "check_hessian", (hessian,), [(lambda *given: -hessian(*given),)]),
    (8, "check_pair", (pseudo_loss,), [(lambda h, a, b: pseudo_loss(h, a, b) - h[a, b],)]),
    (9, "check_counts", (count,), [(functools.partial(count, extra=1.0),)]),
    (9, "check_bic", (bic,), [(functools.partial(bic, price=1.0),), (functools.partial(bic, price=0.0),)]),
    (9, "check_equivalent", ({"chain", "back", "fork"},), [({"chain", "back"},), ({"collider"},)]),
    (10, "check_posterior", (posterior,), [(underflowing,)]),
    (10, "check_m_step", (m_step,), [(lambda shares, codes: (shares.mean(axis=0), np.full((2, 3), 0.5)),)]),
]


@pytest.mark.parametrize(("chapter", "check", "right", "wrong"), EXERCISES, ids=[row[1] for row in EXERCISES])
def test_exercises(chapter: int, check: str, right: tuple[Any, ...], wrong: list[tuple[Any, ...]]) -> None:
    judge = run_tutorial(PAGES[chapter - 1])[check]
    assert judge(*right) == "right"
    for answer in wrong:
        assert judge(*answer).startswith("not yet")


def test_what_decides_the_best_and_p() -> None:
    judge = run_tutorial(PAGES[0])["check_changes"]
    assert judge({CONSTANT, TWICE}, {CONSTANT}) == ("right", "right")
    assert judge({CONSTANT}, {CONSTANT, TWICE}) == ("not yet", "not yet")


def test_every_check_is_tested() -> None:
    found = {name for page in PAGES for name in run_tutorial(page) if name.startswith("check_")}
    assert found == {row[1] for row in EXERCISES} | {"check_changes"}
    assert [page.stem[:2] for page in PAGES] == [f"{i:02}" for i in range(1, 11)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(row[0] for row in EXERCISES))
