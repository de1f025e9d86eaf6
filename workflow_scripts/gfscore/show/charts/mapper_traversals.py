"""An image, or the mean code of all, with one latent dimension per row moved from one side to the other."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, ties
from gfscore.core.numbers import MINUS
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd

MOST_DIMENSIONS = 24


def traversals(subject: Subject) -> pd.DataFrame:
    """One decoded picture per sample, dimension and position, of the first 24 dimensions of each mapper.

    `change` is the mean change of a pixel between both ends. Of all dimensions, drawn or not: which changes pictures
    `most`, by `largest`, and which `least`; both are empty where all change them equally.
    """
    rows = []
    changes: dict[str, float] = {}
    for mapper, pictures in subject.pictures.items():
        decoded = np.asarray(pictures["traversals"], dtype=np.uint8)
        prefix = f"{mapper} " if len(subject.pictures) > 1 else ""
        names = [f"{prefix}{name}" for name in pictures["names"]]
        positions = [f"{position:+.2g}".replace("-", MINUS) for position in pictures["positions"]]
        of_images = len(pictures["originals"]) > 0
        change = np.abs(decoded[:, :, -1].astype(float) - decoded[:, :, 0]).mean(axis=(0, 2, 3, 4))

        changes |= dict(zip(names, change.tolist(), strict=True))

        for sample, dimension, position in np.ndindex(decoded[:, :MOST_DIMENSIONS].shape[:3]):
            rows.append(
                {
                    "sample": f"image {sample + 1}" if of_images else "mean code",
                    "dimension": names[dimension],
                    "position": positions[position],
                    "picture": drawing.encoded(decoded[sample, dimension, position]),
                    "change": float(change[dimension]),
                    "mapper": mapper,
                }
            )
    if not rows:
        raise NothingToDraw
    most = max(changes, key=changes.__getitem__)
    least = min(changes, key=changes.__getitem__)
    if changes[most] == changes[least]:
        most = least = ""
    largest, smallest = max(changes.values()), min(changes.values())
    return pd.DataFrame(rows).assign(
        most=most,
        tied_most=ties(changes.values(), largest),
        least=least,
        tied_least=ties(changes.values(), smallest),
        largest=largest,
    )


def strongest_dimension(frame: pd.DataFrame) -> Finding:
    """The dimensions that change a picture most and least."""
    first = frame.iloc[0]
    if not first["largest"]:
        return Finding("nothing_moves")
    if not first["most"]:
        return Finding("dimensions_equal")
    names = {"most": str(first["most"]), "least": str(first["least"])}
    numbers = {"tied_most": int(first["tied_most"]), "tied_least": int(first["tied_least"])}
    return Finding("strongest_dimension", names, {"change": float(first["largest"]), **numbers})


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each image: dimensions in rows, positions in columns."""
    for axes, panel in drawing.panels(figure, frame, "sample", most_columns=2, least_width=340):
        drawing.pictures(
            axes,
            panel,
            row="dimension",
            column="position",
            picture="picture",
            column_title="move in sigma, or place within the range of an attribute",
        )


CHART = Chart(
    name="mapper_traversals",
    title="Traversals of latent dimensions",
    question="What does each latent dimension look like?",
    section="whom",
    tables=("projection_effects",),
    about="audit",
    data=traversals,
    draw=draw,
    panels=True,
    finding=strongest_dimension,
    shows="Each row moves one dimension of an image, all others stay",
    note="A row without a change: the decoder does not use the dimension; every classifier tolerates it. Most and "
    "least, in the title: by the mean change of a pixel between both ends, of all dimensions; the first 24 of a mapper "
    "are drawn.",
    order=8,
)
