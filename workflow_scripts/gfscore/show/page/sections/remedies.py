"""Details of the section on remedies: every number of the models with offsets, their classes, and the limits."""

from collections.abc import Iterator

from gfscore.core.numbers import signed
from gfscore.show.page.elements import (
    CLASS,
    MEASURE,
    MODEL,
    Detail,
    N,
    bounded,
    counted,
    named,
    valued,
    yes,
)
from gfscore.show.page.sections.contents import Contents

CHANGES = {"worst": "Worst class", "mean": "Mean", "clean": "Clean accuracy", "rdi": "RDI"}

LIMITS = (
    "Offsets act as another prior of the classes would: what one class gains, others pay, and no feature becomes "
    "robust. Means are weighted by class_weights, the shares of the classes where the model is used; without, every "
    "class counts alike.",
    "They were chosen on one half of the samples under attacks that see them. All numbers are from the other half, of "
    "both models on the same samples under the same attacks.",
    "Offsets are said to help only where the lower bound of the gain of the worst class lies above 0, whichever class "
    "that is before and after. A stronger attack may leave less of both models.",
)


def of_remedies(contents: Contents) -> Iterator[Detail | None]:
    """Details on what offsets change."""
    models = contents.rows("remedy_models")
    if models.empty:
        return
    yield Detail("What offsets can do, and what they cannot", list(LIMITS))

    columns = [MODEL, MEASURE, N, valued("Helps", "helps", yes)]
    for name, title in CHANGES.items():
        columns.append(valued(title, f"{name}_before"))
        columns.append(valued("after", f"{name}_after"))
        columns.append(bounded("change", f"{name}_low", f"{name}_high"))
    columns += [
        valued("rho", "rho", signed),
        counted("Classes that gain", "gaining"),
        counted("that lose", "losing"),
        named("Verdict before", "verdict_before"),
        named("after", "verdict_after"),
        counted("Passes to choose", "choosing_forwards"),
        counted("to measure once", "audit_forwards"),
    ]
    yield contents.table_details(
        "Every number of every model, before and after", models, "remedy_models", "Remedies", columns
    )

    columns = [
        MODEL,
        CLASS,
        N,
        valued("Offset", "offset", signed),
        valued("Before", "before"),
        valued("After", "after"),
        valued("Change", "change", signed),
        bounded("Interval", "low", "high"),
    ]
    classes = contents.rows("remedy_classes")
    yield contents.table_details("Every class, before and after", classes, "remedy_classes", "Classes", columns)

    columns = [
        MODEL,
        valued("Strength", "strength"),
        valued("Mean", "mean"),
        bounded("Interval", "mean_low", "mean_high"),
        valued("Worst class", "worst"),
        bounded("Interval", "worst_low", "worst_high"),
        named("which", "worst_class"),
        valued("rho", "rho", signed),
    ]
    curve = contents.rows("remedy_curve")
    yield contents.table_details("Mean and worst class by strength", curve, "remedy_curve", "Strengths", columns)
