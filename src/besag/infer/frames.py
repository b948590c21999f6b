"""How a Result is shown: as a DataFrame, as a table on the terminal, and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from besag.markup import bar, make_card, make_table
from besag.text import table

if TYPE_CHECKING:
    import pandas as pd

    from besag.infer.result import Result

SHOWN = 40
COLUMNS = 6


def result_frame(result: Result, name: str | None) -> pd.DataFrame:
    """Marginals as a DataFrame.

    One query: rows (variable, state), column "probability"; of one variable rows are its states. A batch: a row for
    each row of evidence, with its index, and columns (variable, state); of one variable columns are its states.
    """
    import pandas as pd

    if result.probabilities is None and result.codes is not None:
        return _assignment_frame(result)
    variables = result.graph.variables
    names = result.keys() if name is None else [name]
    columns = [np.atleast_2d(result[n]) for n in names] or [np.zeros((1, 0))]
    values = np.concatenate(columns, axis=1)
    pairs = [(n, state) for n in names for state in variables.states(variables.index(n))]
    if name is None:
        labels: pd.Index = pd.MultiIndex.from_tuples(pairs, names=["variable", "state"])
    else:
        labels = pd.Index([state for _, state in pairs], name="state")
    if result.batched:
        return pd.DataFrame(values, index=result.index, columns=labels)
    return pd.DataFrame({"probability": values[0]}, index=labels)


def _assignment_frame(result: Result) -> pd.DataFrame:
    """A row for each solution: the states, and the energy H; in a batch of several a row, by (row, rank)."""
    import pandas as pd

    energy = "H"
    while result.graph.variables.names.find(energy) is not None:
        energy += "_"
    if not result.batched:
        return pd.DataFrame([{**assignment, energy: value} for assignment, value in result.solutions])
    labels = range(len(result.solutions)) if result.index is None else result.index
    found = [
        (label, rank, *pair)
        for label, row in zip(labels, result.solutions, strict=True)
        for rank, pair in enumerate(row)
    ]
    frame = pd.DataFrame([{**assignment, energy: value} for _, _, assignment, value in found])
    if result.codes is not None and result.codes.shape[1] > 1:
        frame.index = pd.MultiIndex.from_tuples([key[:2] for key in found], names=["row", "rank"])
    elif len(found) == len(labels):
        frame.index = result.index if result.index is not None else frame.index
    return frame


def result_line(result: Result) -> str:
    """One line: engine, bound and log Z."""
    log_z = "" if result.log_partitions is None else f", log_partition={result.log_partition!r}"
    return f"Result(engine={result.diagnostics.get('engine')!r}, bound={result.bound!r}{log_z})"


def result_table(result: Result) -> str:
    """The answers as a table, with a line on how they were found."""
    parts = [_how(result)]
    if result.codes is not None:
        parts.append(_assignments(result))
    if result.probabilities is not None:
        parts.append(_marginals(result))
    return "\n".join(parts)


def result_html(result: Result) -> str:
    """The answers as a card: bars for marginals, how good they are in words."""
    parts = []
    if result.codes is not None:
        header, rows, more = _assignment_rows(result)
        parts.append(make_table(header, rows, more))
    if result.probabilities is not None:
        names = result.keys()
        rows = [(*row, bar(float(row[2]))) for row in _marginal_rows(result, names[:SHOWN])]
        parts.append(make_table(("variable", "state", "probability", ""), rows, _left_out(names)))
    return make_card(_how(result), [*_quality(result)], *parts)


def _quality(result: Result) -> Iterator[str]:
    """How good the answer is, in words."""
    told = result.diagnostics
    if result.bounds is not None and result.log_partitions is not None and result.log_partitions.size == 1:
        low, high = result.log_partition_bounds
        yield f"log Z between {low:.6g} and {high:.6g}"
    if result.codes is not None and result.energies is not None and len(result.energies) == 1:
        yield "proven optimal" if result.optimal else f"not proven optimal, the gap is {result.gap:.6g}"
    if not told.get("converged", True):
        yield f"not converged after {told.get('iterations')} iterations"
    if "seconds" in told:
        yield f"{told['seconds']:.2g} s"
    yield str(told.get("reason") or "")


def _how(result: Result) -> str:
    texts = [f"engine {result.diagnostics.get('engine')}", result.bound]
    if result.log_partitions is not None and result.log_partitions.size == 1:
        log_z = float(result.log_partitions[0])
        texts.append(f"log Z = {log_z if abs(log_z) > 1e-12 else 0.0:.6g}")
    if result.energies is not None and result.energies.shape[0] == 1:
        texts.append(f"energy = {result.energies[0, 0]:.6g}")
    if result.batched:
        texts.append(f"{result.diagnostics.get('rows')} rows")
    if result.graph.n_instances > 1:
        texts.append(f"{result.graph.n_instances} instances")
    return ", ".join(texts)


def _marginals(result: Result) -> str:
    names = result.keys()
    more = _left_out(names)
    found = table(("variable", "state", "probability"), _marginal_rows(result, names[:SHOWN]))
    return found + (f"\n{more}" if more else "")


def _marginal_rows(result: Result, names: list[str]) -> Iterator[tuple[str, str, str]]:
    variables = result.graph.variables
    for name in names:
        values = np.atleast_2d(result[name])
        label = f"{name} (first row)" if result.batched else name
        for i, (state, p) in enumerate(zip(variables.states(variables.index(name)), values[0], strict=True)):
            yield (label if i == 0 else "", state, f"{p:.6f}")


def _left_out(names: list[str]) -> str:
    return f"... and {len(names) - SHOWN} more" if len(names) > SHOWN else ""


def _assignments(result: Result) -> str:
    header, rows, more = _assignment_rows(result)
    return table(header, rows) + (f"\n{more}" if more else "")


def _assignment_rows(result: Result) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
    """A column for each solution, or for each row of a batch, as many as fit; and what was left out."""
    if result.batched:
        found = result.assignment[:COLUMNS]
        heads = [str(label) for label in (result.index if result.index is not None else range(len(found)))][:COLUMNS]
    else:
        solutions = result.solutions[:COLUMNS]
        found = [assignment for assignment, _ in solutions]
        heads = ["state"] if len(found) == 1 else [f"H = {energy:.6g}" for _, energy in solutions]
    names = list(found[0])
    rows = [(name, *(one[name] for one in found)) for name in names[:SHOWN]]
    return ("variable", *heads), rows, _left_out(names)
