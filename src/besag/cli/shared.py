"""Arguments that several commands take, and the model that they name."""

from __future__ import annotations

import argparse
import io
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from besag.cli.messages import not_among
from besag.errors import ParseError

if TYPE_CHECKING:
    from besag.graph.evidence import Evidence
    from besag.io.formats import Format
    from besag.model.model import Model


def add_model(parser: argparse.ArgumentParser, name: str = "MODEL") -> None:
    """The file of a model, and how to read it."""
    parser.add_argument("model", metavar=name, help="a file of any format that besag.load reads, - for standard input")
    parser.add_argument(
        "--input-format", metavar="SUFFIX", help="the format where neither name nor content tells: bif, uai, xdsl, ..."
    )
    parser.add_argument(
        "--ignore-utilities", action="store_true", help="read the chance nodes of a decision network alone"
    )


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """What is known."""
    parser.add_argument(
        "--evidence",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE|NAME=STATE",
        help="what is known: states, and files (.evid, .virt, .json, .csv with a query a row); the later one counts",
    )


def add_choice(parser: argparse.ArgumentParser, option: str, names: Sequence[str], default: str, what: str) -> None:
    """One of some words, in letters of either case."""
    known = {name.casefold(): name for name in names}

    def chosen(text: str) -> str:
        if text.casefold() not in known:
            raise argparse.ArgumentTypeError(not_among(text, names))
        return known[text.casefold()]

    words = f"{{{','.join(names)}}}"
    parser.add_argument(option, type=chosen, metavar=words, default=default, help=f"{what} (default: {default})")


def read_count(text: str) -> int:
    """How many: a whole number."""
    if not text.isdecimal() or not 1 <= int(text[:14]) <= 10**12:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 10^12, got {text!r}")
    return int(text)


def read_seconds(text: str) -> float:
    """How long."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text!r}")
    return value


def read_seed(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)


def read_one_row(arguments: argparse.Namespace, model: Model) -> Evidence:
    """The evidence of a command that answers one question."""
    from besag.cli.evidence import gather_evidence

    given = gather_evidence(model, arguments.evidence)
    if len(given) > 1:
        arguments.refuse(f"the evidence has {len(given)} rows, and this command takes one; `besag infer` takes all")
    return given.evidence()


def read_model(arguments: argparse.Namespace) -> tuple[Model, Format]:
    """The model that the arguments name, and the format of its file."""
    from besag.io.formats import format_named, format_of_content
    from besag.io.load import ARCHIVE, load
    from besag.io.shared.files import read_bytes, suffix_of

    piped = arguments.model == "-"
    where = "<stdin>" if piped else arguments.model
    data = read_bytes(sys.stdin.buffer if piped else arguments.model)
    if data.startswith(ARCHIVE):
        raise ParseError("it has a fitted estimator; `besag predict` answers by it, besag.load reads it", path=where)
    given = arguments.input_format
    chosen = format_of_content(data, where, suffix_of(where)) if given is None else format_named(given)
    stream = _Content(data, where)
    return load(stream, format=chosen.suffixes[0], ignore_utilities=arguments.ignore_utilities), chosen


class _Content(io.BytesIO):
    """The content of a file, which errors still call by its name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name
