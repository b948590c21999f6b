"""`besag demo`: a chest clinic, from a network to a diagnosis; and pixels of a picture, labelled by what was learnt."""

from __future__ import annotations

import argparse
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from besag.cli.messages import ANSWERED
from besag.errors import CapabilityError
from besag.text import table

if TYPE_CHECKING:
    from besag.infer.result import Result
    from besag.model.model import Model

HELP = "worked examples: a network with and without evidence, and a picture whose pixels are labelled"
EVIDENCE = {"asia": "yes", "dysp": "yes"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture goes (default: out)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the example and draws it."""
    from besag.data.textbook import bundled

    model = bundled("asia")
    before, after = model.marginals(), model.marginals(evidence=EVIDENCE)
    known = ", ".join(f"{name}={state}" for name, state in EVIDENCE.items())

    print("asia: a chest clinic (Lauritzen and Spiegelhalter 1988)")
    print(
        "A patient is short of breath (dysp) and was in Asia lately: is it tuberculosis, lung cancer or bronchitis?\n"
    )
    print(f"{model}\n")
    print(f"Marginals without evidence, and with {known}\n")
    print(f"{marginals_table(model, before, after)}\n")
    print(f"log P({known}) = {after.log_partition:.6f}, that is P = {exp(after.log_partition):.6f}\n")
    best = model.map(evidence=EVIDENCE)
    share = exp(-best.energy - after.log_partition)
    print(f"Most probable explanation, {share:.1%} of what is left:")
    print(f"  {', '.join(f'{name}={state}' for name, state in best.assignment.items() if name not in EVIDENCE)}\n")
    print(f"Engine: {after.diagnostics['engine']} ({after.bound}); {after.diagnostics['reason']}.\n")
    print(picture(model, before, after, arguments.out, known))
    print(f"\n{segmentation(arguments.out)}")
    return ANSWERED


def segmentation(folder: Path) -> str:
    """What `demo_picture` shows, or what is missing for it."""
    from besag.cli.demo_picture import show_picture

    try:
        return show_picture(folder)
    except CapabilityError as error:
        return f"No picture was labelled: {error}"


def marginals_table(model: Model, before: Result, after: Result) -> str:
    """Both marginals of every state side by side, and a bar for the second."""
    rows = []
    for variable in model.variables:
        for i, state in enumerate(variable.states):
            p, q = float(before[variable.name][i]), float(after[variable.name][i])
            name = variable.name if i == 0 else ""
            rows.append((name, state, f"{p:.4f}", f"{q:.4f}", f"{q - p:+.4f}", "#" * round(20 * q)))
    return table(("variable", "state", "without", "with", "change", ""), rows)


def picture(model: Model, before: Result, after: Result, folder: Path, known: str) -> str:
    """Draws the network into the folder, and says where it is or what is missing."""
    from besag.plot import draw_network

    title = f"asia given {known}; red marks: without evidence"
    try:
        figure = draw_network(model, after, before=before, observed=list(EVIDENCE), title=title)
    except CapabilityError as error:
        return f"No picture was drawn: {error}"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "demo.png")
    return f"Picture: {folder / 'demo.png'}"
