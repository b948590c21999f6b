"""The pictures of README.md and docs/gallery.md: `python docs/site/pictures.py [NAME ...]` draws them anew.

Those of an example are what its script writes to out/, made small; the others are drawn here. A picture has at most 256
colours, so that it stays below 60 kB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 60_000
FROM_EXAMPLES = {  # the picture: the script; it has the script's name in out/ unless it is said
    "denoising": "denoising.py",
    "discovery": "discovery.py",
    "ldpc": "ldpc.py",
    "pedigree": "pedigree.py",
    "pictorial": "pictorial.py",
    "pseudolikelihood": "objectives.py",
    "regions": "regions.py",
    "restoring": "restoring.py",
    "scribbles": "scribbles.py",
    "stereo": "stereo.py",
    "topics": "topics.py",
}


def from_example(name: str, folder: Path) -> Path:
    subprocess.run([sys.executable, str(ROOT / "examples" / FROM_EXAMPLES[name])], cwd=folder, check=True)
    return folder / "out" / f"{name}.png"


def network(folder: Path) -> Path:
    from besag.cli.demo_network import show_network

    return drawn(show_network(draw=True), folder)


def sequence(folder: Path) -> Path:
    from besag.cli.demo_sequence import show_sequence

    return drawn(show_sequence(draw=True), folder)


def pixels(folder: Path) -> Path:
    from besag.cli.demo_picture import show_picture

    return drawn(show_picture(draw=True), folder)


def drawn(section: object, folder: Path) -> Path:
    """The first picture of a part of the demo."""
    figure = next(iter(section.figures.values()))
    figure.savefig(folder / "figure.png")
    return folder / "figure.png"


OWN: dict[str, Callable[[Path], Path]] = {"network": network, "pixels": pixels, "sequence": sequence}


def shrink(path: Path, to: Path) -> None:
    """At most 900 pixels wide and 60 kB."""
    for width in (900, 760, 640, 540, 450, 380, 300):
        with Image.open(path) as image:
            small = image.convert("RGB")
        small.thumbnail((width, 700), Image.Resampling.LANCZOS)
        small.quantize(64, dither=Image.Dither.NONE).save(to, optimize=True)
        if to.stat().st_size <= MOST_BYTES:
            return
    raise ValueError(f"{to.name} has {to.stat().st_size} bytes")


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or [*OWN, *FROM_EXAMPLES]:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            shrink(OWN[name](folder) if name in OWN else from_example(name, folder), PICTURES / f"{name}.png")
        print(name)
