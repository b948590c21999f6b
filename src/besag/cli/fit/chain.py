"""`besag fit chain`: a chain CRF from labelled sequences, in CoNLL columns or CRFsuite's text."""

from __future__ import annotations

import argparse

from besag.cli.fit.target import add_target, target_of
from besag.cli.fit.training import add_training, finish, training_options
from besag.cli.shared import add_choice

HELP = "learn to label sequences: CoNLL columns, or attributes in CRFsuite's text format"
FORMATS = ("conll", "crfsuite")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "data", metavar="DATA", help="labelled sequences, - for standard input; .gz and .xz are unpacked"
    )
    add_target(parser, ".npz")
    add_choice(parser, "--format", FORMATS, "conll", "of DATA")
    parser.add_argument(
        "--label", type=int, default=-1, metavar="COLUMN", help="conll: of the labels (default: -1, last)"
    )
    parser.add_argument(
        "--columns", type=int, nargs="+", metavar="COLUMN", help="conll: that are looked at (default: all)"
    )
    parser.add_argument("--window", type=int, default=2, metavar="N", help="conll: tokens to each side (default: 2)")
    add_choice(parser, "--constraint", ("none", "BIO", "BIOES"), "none", "of labels that may follow each other")
    add_choice(parser, "--objective", ("likelihood", "max_margin"), "likelihood", "that is minimised")
    add_choice(parser, "--order", ("1", "2"), "1", "weights of two or of three neighbours")
    parser.add_argument("--held-out", metavar="DATA", help="sequences whose loss is watched, to end the fit in time")
    add_training(parser)


def run(arguments: argparse.Namespace) -> int:
    """Reads, learns, writes."""
    if arguments.window < 0:
        arguments.refuse(f"--window must be at least 0, got {arguments.window}")
    target = target_of(arguments)
    from besag.cli.sequences import SequenceReader, sequences_in
    from besag.estimators.chain_crf.estimator import ChainCRF

    source = sequences_in(arguments.data)
    reader = SequenceReader.first(source, arguments)
    given = reader.read(source)
    held_out = None if arguments.held_out is None else reader.read(arguments.held_out)
    crf = ChainCRF(
        objective=arguments.objective,
        order=int(arguments.order),
        constraint=None if arguments.constraint == "none" else arguments.constraint,
        **training_options(arguments),
    )
    watched = None if held_out is None else (held_out.items, held_out.known_labels())
    crf.fit(given.items, given.known_labels(), given.weights, held_out=watched, checkpoint=arguments.checkpoint)
    facts = [
        ("sequences", f"{len(given.items)}, {sum(map(len, given.items))} tokens"),
        ("labels", ", ".join(map(str, crf.classes_))),
        ("attributes", str(len(crf.model_.attributes))),
    ]
    return finish(crf, target, {"reads": "sequences", **reader.notes()}, facts)
