"""What a mapper makes of images."""

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.forms import Frame, Pictures


def pairs(subject: Subject) -> Frame | None:
    """Images that the mapper was not trained on (upper row) and what its decoder makes of their codes (lower row)."""
    import pandas as pd

    from gfscore.show.forms.vega.cells import encoded

    if subject.rows("projection_scores") is None:
        return None
    rows = [
        {"row": row, "image": str(place + 1), "picture": encoded(picture), "mapper": mapper}
        for mapper, pictures in subject.pictures.items()
        for row, name in (("image", "originals"), ("reconstruction", "reconstructions"))
        for place, picture in enumerate(pictures[name])
    ]
    return pd.DataFrame(rows)


def what_is_kept(frame: Frame) -> Finding:
    """That classifiers are shown reconstructions."""
    return Finding(
        "reconstructed", {"mapper": ", ".join(dict.fromkeys(frame["mapper"]))}, {"images": frame["image"].nunique()}
    )


CHART = Chart(
    name="mapper_reconstructions",
    title="Reconstructions",
    question="What does the mapper keep of an image?",
    section="whom",
    tables=("projection_scores",),
    about="audit",
    data=pairs,
    form=Pictures(panel="mapper", row="row", column="image", picture="picture"),
    finding=what_is_kept,
    shows="Images that the mapper was not trained on, and their reconstructions",
    note="Agreement of a classifier: share of samples whose reconstruction it predicts like the sample itself.",
    order=7,
)
