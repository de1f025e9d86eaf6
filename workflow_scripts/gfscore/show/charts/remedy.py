"""What class offsets change: every class before and after, and mean and worst class by the strength of the offsets."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.core.names import shortened_all, upper_first
from gfscore.core.numbers import signed
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

MOST_MODELS = 3
"""Models that are drawn: those whose worst class most surely gains."""

MOST_CLASSES = 20
"""Classes of a model that are drawn: of more, half are the weakest before, half those that lose most."""

LONGEST_LABEL = 24
"""Characters of a model's label in the title of a panel."""

CLASSES = "each class"
STRENGTHS = "by strength of the offsets"
LINES = {"worst": "worst class", "mean": "mean of classes"}
"""Column of the table `remedy_curve` -> name of its line."""


def remedies(subject: Subject) -> pd.DataFrame:
    """Marks of the two panels of each model with a remedy, the surest gain first.

    Returns
    -------
    DataFrame
        Of the panel of classes, a row for each class: `before` and `value`, its values without and with offsets; `low`
        and `high`, the simultaneous bounds of its change added to `before`; `unsure`, whether those of the change
        include 0; `change`, the change as text. Of the panel of strengths, a row for each strength and `line`: `value`
        with its bounds `low` and `high`. `content` is CLASSES or STRENGTHS. All rows have the columns of
        remedies_in_short, with `model` for the label and `name` for the name.
    """
    from gfscore.audit.remedies.findings import remedies_in_short

    models = subject.rows("remedy_models")
    classes = subject.rows("remedy_classes")
    curves = subject.rows("remedy_curve")
    remedied_models = remedies_in_short(models, classes).drop(columns=["dataset", "n", "confidence"])
    drawn_models = remedied_models.head(MOST_MODELS)
    short_labels = shortened_all(drawn_models["label"], LONGEST_LABEL)
    frames = []
    for model, short_label in zip(drawn_models.to_dict("records"), short_labels, strict=True):
        prefix = f"{short_label}: " if len(drawn_models) > 1 else ""
        changes = _of_model(classes, model)
        changes = changes[changes["n"] > 0].sort_values(["before", "class_index"], kind="stable")
        if len(changes) > MOST_CLASSES:
            losers = changes.sort_values("change", kind="stable").index[: MOST_CLASSES // 2]
            weakest = changes.index.difference(losers, sort=False)[: MOST_CLASSES // 2]
            changes = changes[changes.index.isin(losers) | changes.index.isin(weakest)]
        marks = changes[["class", "n", "confidence", "before"]].assign(
            value=changes["after"],
            low=(changes["before"] + changes["low"]).clip(0, 1),
            high=(changes["before"] + changes["high"]).clip(0, 1),
            unsure=(changes["low"] <= 0) & (changes["high"] >= 0),
            change=changes["change"].map(signed),
        )
        frames.append(marks.assign(panel=upper_first(f"{prefix}{CLASSES}"), content=CLASSES, **model))

        points = _of_model(curves, model)
        for column, line in LINES.items():
            curve = points[["strength", "confidence"]].assign(
                line=line,
                stands_out=column == "worst",
                value=points[column],
                low=points[f"{column}_low"],
                high=points[f"{column}_high"],
            )
            frames.append(curve.assign(panel=upper_first(f"{prefix}{STRENGTHS}"), content=STRENGTHS, **model))
    frame = pd.concat(frames, ignore_index=True)
    return frame.rename(columns={"model": "name", "label": "model"})


def _of_model(rows, model):
    return rows[(rows["threat"] == model["threat"]) & (rows["model"] == model["model"])]


def surest_gain(frame: pd.DataFrame) -> Finding:
    """Whether the worst class of the first model gains, and who pays."""
    from gfscore.audit.remedies.findings import finding_of

    first = frame.iloc[0]
    return finding_of(first.rename({"model": "label", "name": "model"}))


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """Classes with their value before as a tick, after as a dot; beside them mean and worst class by strength."""
    values = frame[["before", "value", "low", "high"]]
    height = max(drawing.PANEL_HEIGHT, drawing.ROW * int(frame["class"].nunique()))
    for axes, panel in drawing.panels(figure, frame, "panel", most_columns=2, least_width=340):
        if panel["content"].iloc[0] == CLASSES:
            drawing.numbers(axes.xaxis, "{short_unit}; higher is better", values)
            drawing.intervals(
                axes, panel, row="class", value="value", low="low", high="high", tick="before", hollow="unsure",
                aside="change",
            )  # fmt: skip
        else:
            drawing.reserve(axes, height)
            drawing.numbers(axes.xaxis, "strength: share of the offsets that is added", panel["strength"], end=1.0)
            drawing.numbers(axes.yaxis, "{short_unit} (higher is better)", panel[["value", "low", "high"]])
            drawing.curves(
                axes,
                panel,
                x="strength",
                y="value",
                line="line",
                low="low",
                high="high",
                bold="stands_out",
                points=True,
            )
            drawing.name_lines(axes, panel, x="strength", y="value", line="line", bold="stands_out")


CHART = Chart(
    name="remedy",
    title="Class offsets",
    question="What would help the worst class, and who would pay?",
    section="help",
    tables=("remedy_models", "remedy_classes", "remedy_curve"),
    data=remedies,
    draw=draw,
    panels=True,
    finding=surest_gain,
    shows="{measure_title}, on samples that chose no offset, under attacks that see the offsets",
    note="One number for each class is added to the logits. Tick: the model as it is; dot: with all offsets; the "
    "number is their difference, the line its {confidence} interval, joint over the classes; a filled dot is a change "
    "that is sure. By strength: bands hold together with {confidence}; strength 0 is the model as it is. Offsets act "
    "as another prior of the classes: they move robustness between classes and make no feature robust.",
    per_class=True,
    order=1,
)
