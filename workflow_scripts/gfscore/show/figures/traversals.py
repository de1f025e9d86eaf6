"""Pictures of a mapper: what it makes of an image, and of an image when one latent dimension is moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.names import printable, shortened_all
from gfscore.show.figures.cells import bare
from gfscore.show.figures.style import INK, counted, drawing, framed_figure, laid_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

WIDTH = 8.5
MOST_DIMENSIONS = 24
LOW_TO_HIGH = ("low", "middle", "high")
GAP = 0.08
"""Width of the lines between images, of the side of one."""


def reconstructions(pictures: Mapping[str, NDArray[Any]], *, mapper: str) -> Figure:
    """Images (upper row) and what the mapper's decoder makes of their codes (lower row)."""
    shown = np.stack([pictures["originals"], pictures["reconstructions"]])
    columns = shown.shape[1]
    with drawing():
        figure = framed_figure(
            2.1,
            width=WIDTH,
            title="Only what the lower row keeps can be moved: classifiers are shown such images",
            subtitle=f"{counted(columns, 'image')} that the mapper {printable(mapper)} was not trained on, and their "
            "reconstructions.",
            note="Agreement of a classifier: share of samples whose reconstruction it predicts like the sample itself.",
        )
        axes = figure.subplots()
        _draw(axes, shown)
        axes.set_yticks([0.5, 1.5 + GAP], ["image", "reconstruction"])
        axes.set_xticks([])
        return laid_out(figure)


def traversals(pictures: Mapping[str, NDArray[Any]], *, mapper: str, attributes: bool = False) -> Figure:
    """Images, or the mean code of all, with one latent dimension per row moved from -sigma (left) to +sigma (right).

    With `attributes` each row moves an attribute, from one end of its range to the other.
    """
    samples = pictures["traversals"][:, :MOST_DIMENSIONS]
    names = shortened_all([str(name) for name in pictures["names"][:MOST_DIMENSIONS]], 24)
    positions, of_images = pictures["positions"], len(pictures["originals"]) > 0
    if of_images:
        what, start = "the image" if len(samples) == 1 else f"the {len(samples)} images", "as encoded"
    else:
        what, start = "the average image", "at the mean code of the data: no image of it is shown"
    kind, move = (
        ("attribute", "from one end of its range (left) to the other")
        if attributes
        else ("dimension", "from \N{MINUS SIGN}1 (left) to +1 sigma, as far as the search goes")
    )
    with drawing():
        figure = framed_figure(
            0.5 + min(9.0, 0.42 * len(names) + 0.2),
            width=WIDTH,
            title=_strongest(samples, names, what),
            subtitle=f"Each row moves one {kind} of {printable(mapper)} {move}; all others {start}.",
            note=f"A row without a change: the decoder does not use the {kind}; every classifier tolerates it. "
            "Most and least, in the title: by the mean change of a pixel between both ends."
            + (f" The first {MOST_DIMENSIONS} {kind}s." if pictures["traversals"].shape[1] > MOST_DIMENSIONS else ""),
        )
        panels = figure.subplots(1, len(samples), sharey=True, squeeze=False)[0]
        places = 0.5 + (1 + GAP) * np.arange(len(positions))
        ends = [0, len(positions) // 2, len(positions) - 1]
        for axes, images in zip(panels, samples, strict=True):
            _draw(axes, images)
            axes.set_xticks(places[ends], LOW_TO_HIGH if attributes else [_signed(positions[end]) for end in ends])
            axes.set_xlabel("place within the range" if attributes else "move in sigma")
        panels[0].set_yticks(0.5 + (1 + GAP) * np.arange(len(names)), names)
        return laid_out(figure)


def _strongest(samples, names, what):
    # By the mean change of a pixel between both ends of the move.
    change = np.abs(samples[:, :, -1].astype(float) - samples[:, :, 0]).mean(axis=(0, 2, 3, 4))
    if change.max() == 0:
        return f"No move changes {what}"
    most, least = names[change.argmax()], names[change.argmin()]
    return f"{most} changes {what} most" + (f", {least} least" if len(names) > 1 else "")


def _signed(position):
    return f"{position:+g}".replace("-", "\N{MINUS SIGN}") if position else "0"


def _draw(axes, images):
    # Images (R, C, channels, H, W) uint8 side by side, one unit each.
    rows, columns, channels, height, width = images.shape
    line = max(1, round(GAP * width))
    ground = np.array([int(INK[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.uint8)
    canvas = np.tile(ground, (rows * (height + line) - line, columns * (width + line) - line, 1))
    for (row, column), _ in np.ndenumerate(np.zeros((rows, columns))):
        top, left = row * (height + line), column * (width + line)
        picture = np.moveaxis(images[row, column], 0, -1)
        canvas[top : top + height, left : left + width] = picture if channels == 3 else picture[..., :1]
    extent = (0, columns * (1 + GAP) - GAP, rows * (1 + GAP) - GAP, 0)
    axes.imshow(canvas, extent=extent, interpolation="nearest", aspect=height / width)
    bare(axes)
