"""What a mapper makes of images."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd


def pairs(subject: Subject) -> pd.DataFrame:
    """Images of the mapper's `evaluate_on` (upper row) and what its decoder makes of their codes (lower row)."""
    rows = []
    for mapper, pictures in subject.pictures.items():
        for row, name in (("image", "originals"), ("reconstruction", "reconstructions")):
            for index, picture in enumerate(pictures[name]):
                image = drawing.encoded(picture)
                rows.append({"row": row, "image": str(index + 1), "picture": image, "mapper": mapper})
    return pd.DataFrame(rows)


def reconstructions(frame: pd.DataFrame) -> Finding:
    """That classifiers are shown reconstructions."""
    mappers = ", ".join(dict.fromkeys(frame["mapper"]))
    return Finding("reconstructed", {"mapper": mappers}, {"images": frame["image"].nunique()})


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each mapper: images above their reconstructions."""
    for axes, panel in drawing.panels(figure, frame, "mapper", most_columns=2):
        drawing.pictures(axes, panel, row="row", column="image", picture="picture")


CHART = Chart(
    name="mapper_reconstructions",
    title="Reconstructions",
    question="What does the mapper keep of an image?",
    section="whom",
    tables=("projection_scores",),
    about="audit",
    data=pairs,
    draw=draw,
    panels=True,
    finding=reconstructions,
    shows="Images of the dataset that the mapper is evaluated on, and their reconstructions",
    note="Agreement of a classifier: share of samples whose reconstruction it predicts like the sample itself.",
    order=7,
)
