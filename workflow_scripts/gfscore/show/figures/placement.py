"""Labels beside points without overlaps, as far as there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.show.figures.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

DISTANCES = (8, 13, 20, 30, 42, 56)
DIRECTIONS = 16
POINT_RADIUS = 5
LABEL_SIZE = 8.5


def place_labels(
    axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], labels: Sequence[str], *, lines: NDArray[np.float64]
) -> None:
    """Write one label beside each point, each where it overlaps other labels and points least.

    A greedy choice among places around each point, the most crowded point first; a thin line leads to a label that
    stands further away. `lines` (L, 4) are horizontal and vertical lines (x0, y0, x1, y1) in data coordinates that
    labels had better not cross. The layout of the figure must be final. Places are in points (1/72 inch).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure: Any = axes.figure
    to_points = 72 / figure.dpi
    renderer = FigureCanvasAgg(figure).get_renderer()
    centers = axes.transData.transform(np.column_stack([x, y])) * to_points
    frame = axes.get_window_extent(renderer).get_points() * to_points
    sizes = [text_extent(axes, label, LABEL_SIZE) for label in labels]

    taken = [(cx - POINT_RADIUS, cy - POINT_RADIUS, cx + POINT_RADIUS, cy + POINT_RADIUS) for cx, cy in centers]
    starts = axes.transData.transform(lines[:, :2]) * to_points
    stops = axes.transData.transform(lines[:, 2:]) * to_points
    thin = np.hstack([np.minimum(starts, stops), np.maximum(starts, stops)])
    crowding = [float(np.exp(-np.hypot(*(centers - center).T) / 30).sum()) for center in centers]
    for index in np.argsort(crowding, kind="stable")[::-1]:
        places = _places(centers[index], sizes[index])
        distance, (ox, oy), box = min(
            (_cost(place, taken, index, frame, thin) + _ambiguity(place, centers, index), place) for place in places
        )[1]
        taken.append(box)
        axes.annotate(
            labels[index],
            (x[index], y[index]),
            xytext=(ox, oy),
            textcoords="offset points",
            ha="left",
            va="bottom",
            size=LABEL_SIZE,
            color=INK,
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.5, "alpha": 0.5, "shrinkB": 3, "shrinkA": 0}
            if distance > DISTANCES[1]
            else None,
        ).set_in_layout(False)


def text_extent(axes: Axes, label: str, size: float) -> NDArray[np.float64]:
    """Width and height of a text in points, an array (2,)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure: Any = axes.figure
    text = axes.text(0, 0, label, size=size)
    box = text.get_window_extent(FigureCanvasAgg(figure).get_renderer())
    text.remove()
    return np.array([box.width, box.height]) * 72 / figure.dpi


def spread_out(
    values: Sequence[float] | NDArray[np.floating], distance: float, *, low: float, high: float
) -> NDArray[np.float64]:
    """Places (L,) near `values` (L,), in their order, at least `distance` apart and within [low, high].

    Where there is too little room within the limits, the places are evenly spaced over all of it.
    """
    order = np.argsort(values, kind="stable")
    distance = min(distance, (high - low) / max(1, len(values) - 1))
    steps = distance * np.arange(len(values))
    free = np.clip(np.asarray(values, dtype=np.float64)[order] - steps, low, high - steps[-1])
    # Without the steps the places need only ascend: each run that does not is replaced by its mean.
    places = np.empty(len(values))
    places[order] = _ascending(free) + steps
    return places


def _ascending(values):
    # The nearest ascending values by least squares (pool adjacent violators).
    blocks = []
    for value in values:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (mean, n), (other, m) = blocks.pop(), blocks.pop()
            blocks.append(((mean * n + other * m) / (n + m), n + m))
    return np.concatenate([np.full(n, mean) for mean, n in blocks])


def _places(center, size):
    width, height = size
    for distance in DISTANCES:
        for step in range(DIRECTIONS):
            angle = 2 * math.pi * step / DIRECTIONS
            dx, dy = math.cos(angle), math.sin(angle)
            # The box touches the circle of that distance with its nearest side or corner.
            ox = distance * dx - width * (1 - dx) / 2
            oy = distance * dy - height * (1 - dy) / 2
            left, bottom = center[0] + ox, center[1] + oy
            yield distance, (ox, oy), (left, bottom, left + width, bottom + height)


def _cost(place, taken, own, frame, lines):
    distance, (ox, _), box = place
    overlap = sum(_overlap(box, other) for index, other in enumerate(taken) if index != own)
    outside = (
        max(0, frame[0][0] - box[0])
        + max(0, box[2] - frame[1][0])
        + max(0, frame[0][1] - box[1])
        + max(0, box[3] - frame[1][1])
    )
    crossed = sum(_overlap(box, line) > 0 for line in lines)
    # Labels to the right read best.
    return 10 * overlap + 100 * outside + 6 * crossed + distance + (0 if ox > 0 else 2)


def _ambiguity(place, centers, own):
    # A label must not stand nearer to another point than to its own.
    box = np.array(place[2])
    nearest = np.clip(centers, box[:2], box[2:])
    away = np.hypot(*(centers - nearest).T)
    others = np.delete(away, own)
    return 40 if others.size and others.min() < away[own] + 4 else 0


def _overlap(a, b):
    # Area of two boxes' intersection, one point of air around them.
    width = min(a[2], b[2]) - max(a[0], b[0]) + 2
    height = min(a[3], b[3]) - max(a[1], b[1]) + 2
    return max(0, width) * max(0, height)
