"""`besag fit grid`: a CRF on pictures, from a folder of images and one of masks."""

from __future__ import annotations

import argparse
from pathlib import Path

from besag.cli.fit.target import add_target, target_of
from besag.cli.fit.training import add_training, finish, training_options
from besag.cli.shared import add_choice

HELP = "learn to label the pixels of images: a folder of images, and one of masks of the same names"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "images", type=Path, metavar="IMAGES", help="a folder of images, or of features (H, W, D) as .npy"
    )
    parser.add_argument(
        "masks", type=Path, metavar="MASKS", help="a folder of masks: a label for each pixel, grey or palette"
    )
    add_target(parser, ".npz")
    add_choice(parser, "--pairwise", ("potts", "contrast", "table"), "contrast", "how neighbours are tied")
    add_choice(parser, "--connectivity", ("4", "8"), "4", "neighbours of a pixel")
    parser.add_argument(
        "--ignore", type=int, nargs="+", default=[], metavar="LABEL", help="labels that mean unknown, as 255"
    )
    add_choice(parser, "--class-weight", ("none", "balanced"), "none", "of rare labels")
    parser.add_argument("--objective", default="auto", metavar="TEXT", help="(default: auto)")
    parser.add_argument(
        "--engine", default="bp[damping=0.3]", metavar="TEXT", help="that labels (default: bp[damping=0.3])"
    )
    add_choice(parser, "--decode", ("marginal", "map"), "marginal", "each pixel's best label, or the best labelling")
    add_training(parser)


def run(arguments: argparse.Namespace) -> int:
    """Reads, learns, writes."""
    from besag.cli.pictures import check_sizes, read_pictures_of
    from besag.estimators.grid_crf import GridCRF
    from besag.io.images.folders import pair_folders, read_mask

    target = target_of(arguments)
    files = pair_folders(arguments.images, arguments.masks)
    images = read_pictures_of(path for path, _ in files)
    masks = [read_mask(path) for _, path in files]
    check_sizes(files, images, masks)
    crf = GridCRF(
        pairwise=arguments.pairwise,
        connectivity=int(arguments.connectivity),
        objective=arguments.objective,
        engine=arguments.engine,
        decode=arguments.decode,
        ignore_label=arguments.ignore or None,
        class_weight=None if arguments.class_weight == "none" else arguments.class_weight,
        **training_options(arguments),
    )
    crf.fit(images, masks, checkpoint=arguments.checkpoint)
    facts = [
        ("images", f"{len(images)}, {sum(labels.size for labels in masks)} pixels"),
        ("labels", ", ".join(map(str, crf.classes_))),
        ("features", str(crf.model_.form.layout.templates["node"].n_inputs)),
    ]
    return finish(crf, target, {"reads": "images"}, facts)
