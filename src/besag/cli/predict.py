"""`besag predict`: labels by a model that `besag fit` has learnt, or how well they agree with those that are known.

Sequences are printed with their labels: CoNLL lines with one more column, else one label a line, as CRFsuite tags.
Images become masks in a folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from besag.cli.messages import ANSWERED
from besag.cli.shared import read_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from besag.arrays import Array
    from besag.cli.sequences import SequenceFile

HELP = "label sequences or images by a model that `besag fit` has learnt"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a file that `besag fit` has written")
    parser.add_argument(
        "data", metavar="DATA", help="sequences as in training, - for standard input; a folder of images"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="images: where masks go, as .png")
    parser.add_argument(
        "--score",
        nargs="?",
        const=True,
        metavar="MASKS",
        help="print how many labels are right; images: a folder of masks",
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="of the labels too; images: of all labels, as .npy"
    )
    parser.add_argument("--threads", type=read_count, metavar="N", help="at most so many (default: all cores)")


def run(arguments: argparse.Namespace) -> int:
    """Reads, labels, prints or writes."""
    from besag.errors import ParseError
    from besag.io.load import load

    model = load(arguments.model)
    reads = getattr(model, "notes_", {}).get("reads")
    if reads not in ("sequences", "images"):
        raise ParseError("expected a model that `besag fit` has written", path=arguments.model)
    model.set_params(n_jobs=arguments.threads)
    is_folder = Path(arguments.data).is_dir()
    if is_folder is not (reads == "images"):
        found = "a folder" if is_folder else "no folder"
        arguments.refuse(f"{arguments.model} labels {reads}, and {arguments.data} is {found}")
    (_label_sequences if reads == "sequences" else _label_images)(model, arguments)
    return ANSWERED


def _label_sequences(model: Any, arguments: argparse.Namespace) -> None:
    from besag.cli.output import print_pairs
    from besag.cli.sequences import SequenceReader, sequences_in

    if arguments.out is not None or isinstance(arguments.score, str):
        arguments.refuse("--out and folders of masks go with images; labels of sequences are printed")
    reader = SequenceReader.from_notes(model.notes_)
    given = reader.read(sequences_in(arguments.data))
    found = model.predict(given.items)
    if arguments.score:
        print_pairs(_scores_of_sequences(given.known_labels(), found))
        return
    chances = model.predict_marginals(given.items) if arguments.probabilities else None
    print("\n".join(_tagged(given, found, chances, model.classes_)))


def _scores_of_sequences(truth: list[list[str]], found: list[list[str]]) -> list[tuple[str, str]]:
    from besag.metrics import accuracy, chunk_f1

    pairs = [("tokens", str(sum(map(len, truth)))), ("accuracy", f"{accuracy(truth, found):.4f}")]
    if {label[:2] for labels in truth for label in labels} <= {"B-", "I-", "E-", "S-", "O"}:
        pairs.append(("F1 of chunks", f"{chunk_f1(truth, found):.4f}"))
    return pairs


def _tagged(
    given: SequenceFile, found: list[list[str]], chances: list[Array] | None, classes: list[str]
) -> Iterator[str]:
    """Lines: columns of the file, the label, its probability; a blank one after each sequence."""
    has_blanks = any(" " in cell for tokens in given.tokens or () for token in tokens for cell in token)
    between = "\t" if has_blanks else " "
    for n, labels in enumerate(found):
        for t, label in enumerate(labels):
            cells = [] if given.tokens is None else list(given.tokens[n][t])
            more = [] if chances is None else [f"{chances[n][t, classes.index(label)]:.6f}"]
            yield between.join([*cells, label, *more])
        yield ""


def _label_images(model: Any, arguments: argparse.Namespace) -> None:
    from besag.io.images.folders import pair_folders

    if arguments.score is True:
        arguments.refuse("--score needs a folder of masks to compare with: --score MASKS")
    if arguments.out is None and arguments.score is None:
        arguments.refuse("images need --out DIR, for their masks, or --score MASKS, or both")
    if arguments.out is None and arguments.probabilities:
        arguments.refuse("--probabilities of images need --out DIR, where they go")
    pairs = None if arguments.score is None else pair_folders(Path(arguments.data), Path(arguments.score))
    if arguments.out is not None:
        _write_masks(model, arguments)
    if pairs is not None:
        _score_images(model, pairs)


def _write_masks(model: Any, arguments: argparse.Namespace) -> None:
    from besag.cli.pictures import read_pictures_of
    from besag.io.images.folders import list_folder, write_array, write_mask

    files = list_folder(Path(arguments.data))
    if arguments.out.resolve() == Path(arguments.data).resolve():
        arguments.refuse("--out is the folder of the images, which masks would replace")
    for stem, path in files.items():  # one by one: marginals of all images may be more than fits into memory
        image = read_pictures_of([path])
        write_mask(arguments.out / f"{stem}.png", model.predict(image)[0])
        if arguments.probabilities:
            write_array(arguments.out / f"{stem}.npy", model.predict_marginals(image)[0])
    print(f"{len(files)} masks: {arguments.out}")


def _score_images(model: Any, files: list[tuple[Path, Path]]) -> None:
    from besag.cli.output import print_pairs
    from besag.cli.pictures import check_sizes, read_pictures_of
    from besag.io.images.folders import read_mask
    from besag.metrics import accuracy, class_iou, mean_iou

    images, truth = read_pictures_of(path for path, _ in files), [read_mask(path) for _, path in files]
    check_sizes(files, images, truth)
    found, void = model.predict(images), (-1, *(model.ignore_label or ()))
    pairs = [("images", str(len(files))), ("accuracy", f"{accuracy(truth, found, ignore=void):.4f}")]
    pairs.append(("mean IoU", f"{mean_iou(truth, found, ignore=void):.4f}"))
    pairs += [(f"IoU of {label}", f"{value:.4f}") for label, value in class_iou(truth, found, ignore=void).items()]
    print_pairs(pairs)
