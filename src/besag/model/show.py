"""How a model is shown: one line, a table of its variables, and that table in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from besag.markup import make_card, make_table
from besag.text import table

if TYPE_CHECKING:
    from besag.model.model import Model

SHOWN = 20


def model_line(model: Model) -> str:
    """One line: the kind of model and its size."""
    kind = "Bayesian network" if model.is_bayesian_network else "Markov network"
    cards = model.variables.cardinalities
    states = f"{cards.min()}" if cards.min() == cards.max() else f"{cards.min()} to {cards.max()}"
    size = f"{len(cards)} variables of {states} states, {model.n_factors} factors"
    return f"{kind}: {size}, {model.layout.n_parameters} parameters"


def model_table(model: Model) -> str:
    """The line and a table: variable, states, parents or number of factors."""
    header, rows, more = _variables(model)
    return f"{model!r}\n{table(header, rows)}" + (f"\n{more}" if more else "")


def model_html(model: Model) -> str:
    """The same as a card."""
    return make_card(model_line(model), (), make_table(*_variables(model)))


def _variables(model: Model) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
    directed = model.is_bayesian_network
    shown = range(min(len(model.variables), SHOWN))
    rows: list[tuple[str, ...]] = []
    for i in shown:
        variable = model.variables[i]
        last = ", ".join(model.parents(variable.name)) if directed else str(model.graph.degree(i))
        rows.append((variable.name, _states(variable.states), last))
    left = len(model.variables) - len(shown)
    more = f"... and {left} more" if left else ""
    return ("variable", "states", "parents" if directed else "factors"), rows, more


def _states(states: tuple[str, ...]) -> str:
    return ", ".join(states if len(states) <= 6 else (*states[:4], "...", states[-1]))
