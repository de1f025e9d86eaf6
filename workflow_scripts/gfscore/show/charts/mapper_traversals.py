"""An image, or the mean code of all, with one latent dimension per row moved from one side to the other."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.core.numbers import MINUS
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

MOST_DIMENSIONS = 24


def traversals(subject: Subject) -> pd.DataFrame:
    """One decoded picture per sample, dimension and position; `change`: mean change of a pixel between both ends."""
    rows = []
    for mapper, pictures in subject.pictures.items():
        decoded = np.asarray(pictures["traversals"][:, :MOST_DIMENSIONS], dtype=np.uint8)
        prefix = f"{mapper} " if len(subject.pictures) > 1 else ""
        names = [f"{prefix}{name}" for name in pictures["names"][:MOST_DIMENSIONS]]
        positions = [f"{position:+.2g}".replace("-", MINUS) for position in pictures["positions"]]
        of_images = len(pictures["originals"]) > 0
        change = np.abs(decoded[:, :, -1].astype(float) - decoded[:, :, 0]).mean(axis=(0, 2, 3, 4))

        for sample, dimension, position in np.ndindex(decoded.shape[:3]):
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
    return pd.DataFrame(rows)


def strongest_dimension(frame: pd.DataFrame) -> Finding:
    """The dimensions that change a picture most and least."""
    change = frame.drop_duplicates("dimension").set_index("dimension")["change"]
    if not change.max():
        return Finding("nothing_moves")
    names = {"most": str(change.idxmax()), "least": str(change.idxmin())}
    return Finding("strongest_dimension", names, {"change": float(change.max())})


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each image: dimensions in rows, positions in columns."""
    for axes, panel in drawing.panels(figure, frame, "sample", most=2, least=340):
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
    "least, in the title: by the mean change of a pixel between both ends.",
    order=8,
)
