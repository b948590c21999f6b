"""Where the ten parts of a figure are: each part alone, and all of them as a pictorial structure, 001.

A figure of ten bars is drawn into noise and clutter, 200 x 200 pixels. What the picture says of a part at a place is
how well a bar of the part's length and direction fits there: the sum over its pixels of the log-likelihood ratio of
bar and background. Springs tie each part to its parent. Sum-product gives where each part is and how certain that is,
max-product the best figure; both are exact, though each of the ten variables has 40,000 states.
"""

import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import besag

SIDE, NOISE = 200, 1.2
PARENTS = {  # child: parent, offset (dy, dx) of centres, scale
    "head": ("body", (-30, 0), 3.0),
    "left arm": ("body", (-8, -20), 5.0),
    "right arm": ("body", (-8, 20), 5.0),
    "left hand": ("left arm", (0, -24), 5.0),
    "right hand": ("right arm", (0, 24), 5.0),
    "left leg": ("body", (30, -10), 3.0),
    "right leg": ("body", (30, 10), 3.0),
    "left foot": ("left leg", (26, 0), 4.0),
    "right foot": ("right leg", (26, 0), 4.0),
}
BARS = {"body": (17, 5), "head": (5, 5)}  # half height and half width
BARS |= dict.fromkeys(("left arm", "right arm", "left hand", "right hand"), (2, 10))
BARS |= dict.fromkeys(("left leg", "right leg", "left foot", "right foot"), (11, 2))


def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, tuple[int, int]]]:
    """The picture, and where the parts are."""
    places = {"body": (92, 88)}
    for name, (parent, offset, scale) in PARENTS.items():
        at = np.array(places[parent]) + offset + rng.normal(scale=0.6 * scale, size=2)
        places[name] = (int(at[0]), int(at[1]))
    picture = np.zeros((SIDE, SIDE))
    clutter = [(*rng.integers(10, SIDE - 10, size=2), *rng.permutation([2, 10])) for _ in range(40)]
    for y, x, height, width in [*clutter, *((*places[name], *BARS[name]) for name in places)]:
        picture[max(0, y - height) : y + height + 1, max(0, x - width) : x + width + 1] = 1.0
    return picture + rng.normal(scale=NOISE, size=picture.shape), places


def scores_of(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """(H, W): the log-likelihood ratio of a bar at each place and none, less that of a margin around it."""
    ratio = (picture - 0.5) / NOISE**2

    def box(height: int, width: int) -> np.ndarray:
        sums = np.pad(np.pad(ratio, ((height, height), (width, width))).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        rows, columns = 2 * height + 1, 2 * width + 1
        return sums[rows:, columns:] - sums[:-rows, columns:] - sums[rows:, :-columns] + sums[:-rows, :-columns]

    inside, around = box(height, width), box(height + 2, width + 2)
    return 0.5 * (2.0 * inside - around)  # pixels are not independent: half of what they say


def main() -> None:
    """Draw, infer, compare, and plot."""
    picture, truth = draw(np.random.default_rng(7))
    scores = {name: scores_of(picture, *BARS[name]) for name in truth}
    alone = {name: np.exp(score - np.logaddexp.reduce(score, axis=None)) for name, score in scores.items()}
    model = besag.factors.parts_model(scores, PARENTS)
    model.marginals(), model.map()  # kernels are compiled once
    began = time.perf_counter()
    found, best = model.marginals(), model.map()
    seconds = time.perf_counter() - began
    jointly = {name: found[name].reshape(SIDE, SIDE) for name in truth}
    print("part          true place   alone        jointly      mean              std         entropy  best figure")
    errors: dict[str, list[float]] = {"alone": [], "jointly": [], "best figure": []}
    for name, at in truth.items():
        one, place = (besag.factors.place_of(p, (SIDE, SIDE)) for p in (alone[name], jointly[name]))
        figure = divmod(int(best.assignment[name]), SIDE)
        mean, std = place.mean, np.sqrt(np.diag(place.covariance))
        print(
            f"{name:12} {at!s:12} {one.mode!s:12} {place.mode!s:12} ({mean[0]:6.1f}, {mean[1]:6.1f})  "
            f"({std[0]:3.1f}, {std[1]:3.1f})  {place.entropy:7.2f}  {figure}"
        )
        for way, mode in (("alone", one.mode), ("jointly", place.mode), ("best figure", figure)):
            errors[way].append(float(np.hypot(*np.subtract(mode, at))))
    print(f"marginals and the best figure: {seconds:.2f} s")
    for way, distances in errors.items():
        print(f"parts within 5 pixels, {way}: {sum(d <= 5 for d in distances)} of {len(distances)}")
    plot(picture, truth, alone, jointly)
    print("out/pictorial.png shows them")


def plot(
    picture: np.ndarray, truth: dict[str, tuple[int, int]], alone: dict[str, np.ndarray], jointly: dict[str, np.ndarray]
) -> None:
    """The picture, and where parts are, alone and jointly, as shades of a colour each; crosses are the truth."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
    colours = plt.get_cmap("tab10")(range(10))[:, :3]
    axes[0].imshow(picture, cmap="gray")
    axes[0].set_title("the picture")
    for axis, title, maps in ((axes[1], "each part alone", alone), (axes[2], "jointly", jointly)):
        shade = np.ones((SIDE, SIDE, 3))
        for colour, p in zip(colours, maps.values(), strict=True):
            shade -= np.sqrt(p / p.max())[..., None] * (1 - colour)
        axis.imshow(shade.clip(0, 1))
        for colour, (y, x) in zip(colours, truth.values(), strict=True):
            axis.plot(x, y, "+", color=colour, markersize=9)
        axis.set_title(title)
    for axis in axes:
        axis.set_axis_off()
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/pictorial.png", dpi=130)


if __name__ == "__main__":
    main()
