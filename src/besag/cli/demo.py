"""`besag demo`: learning, inference and engines on a network, a sequence and a picture, and a page of it all."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from besag.cli.demo_page import Section, page_of
from besag.cli.messages import ANSWERED
from besag.errors import CapabilityError, require

HELP = "a show: learning and inference on a network, a sequence and a picture, and a page of what was measured"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="where the page goes (default: out)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints what each part measured, and writes the page."""
    from besag.cli.demo_network import show_network
    from besag.cli.demo_picture import show_picture
    from besag.cli.demo_sequence import show_sequence

    began = time.perf_counter()
    refused = refusal()
    parts = [show_network, show_sequence] if refused else [show_network, show_sequence, show_picture]
    arguments.out.mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    for part in parts:
        sections.append(part(draw=not refused))
        print(f"{sections[-1].as_text()}\n", flush=True)
    if refused:
        print(f"No pictures, and no pixels labelled: {refused}")
    page = arguments.out / "demo.html"
    seconds = time.perf_counter() - began
    closing = f"All of it took {seconds:.0f} s, the compilation of kernels that were not there yet included."
    page.write_text(page_of(sections, closing), encoding="utf-8")
    print(f"All tables and pictures, {seconds:.0f} s: {page}")
    return ANSWERED


def refusal() -> str:
    """Why there can be no pictures, or nothing."""
    try:
        require("matplotlib", "plot", "a picture")
    except CapabilityError as error:
        return str(error)
    return ""
