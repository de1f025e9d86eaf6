"""Details of the section on trust in the attack-free score: attacks against it, agreement, calibration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from gfscore.audit.calibration.evidence import ROBUST
from gfscore.audit.findings.words import OBJECTIVE_PHRASES
from gfscore.core.identity import ALL
from gfscore.core.numbers import p_value, signed, temperature
from gfscore.show.page.elements import CLASS, MEASURE, MODEL, Column, Detail, N, bounded, counted, named, valued, yes
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.sections.making import CALIBRATION, TEMPERATURE


@dataclass(frozen=True)
class Listing:
    """A table of an audit that is shown as it is; its title is the summary unless it has one."""

    name: str
    summary: str
    columns: Sequence[Column]
    title: str = ""


EVIDENCE = (
    Listing(
        "refutations",
        "Certificates that attacks broke, against what chance allows",
        [
            MODEL,
            MEASURE,
            N,
            counted("Attacked", "attacked"),
            counted("Broken", "refuted"),
            counted("Allowed", "allowed"),
        ],
    ),
    Listing(
        "masking_signs",
        "Signs that gradients are masked, so that attacks fail",
        [MODEL, MEASURE, counted("Samples", "count"), counted("of", "n"), named("What", "text")],
    ),
    Listing(
        "class_shares",
        "Statistical tests: robust, not robust and undecided samples",
        [
            MODEL,
            MEASURE,
            CLASS,
            N,
            counted("Robust", "robust"),
            counted("Not", "not_robust"),
            counted("Undecided", "undecided"),
            bounded("Interval", "low", "high", 1.0),
        ],
    ),
    Listing(
        "training_methods",
        "Training methods: accuracy, robustness of both kinds, and what the worst class gains",
        [
            MODEL,
            named("Training", "training"),
            named("Attacks", "adversarial"),
            named("Test", "probabilistic"),
            N,
            valued("Accuracy", "accuracy"),
            valued("Attacks fail", "attack_failure_rate"),
            bounded("Robust", "robust_low", "robust_high", 1.0),
            valued("Worst class", "worst_class"),
            valued("rho", "rho", signed),
            named("against", "baseline"),
        ],
    ),
    Listing(
        "target_predictors",
        "What predicts into which class attacks succeed",
        [
            MODEL,
            MEASURE,
            named("Success as", "definition"),
            valued("with CFPS", "rho_cfps", signed),
            valued("with 1 - recall", "rho_miss_rate", signed),
        ],
        title="Predictors",
    ),
)


def of_trust(contents: Contents) -> Iterator[Detail | None]:
    """Details on whether the attack-free score can be trusted."""
    distances = contents.rows("falsification")
    columns = [
        MODEL,
        named("Score", "measure"),
        named("Distances", "distances"),
        valued("Falsification rate", "rate"),
        bounded("Interval", "low", "high", 1.0),
        valued("Mean score", "mean_score"),
        valued("Mean distance", "mean_distance"),
        counted("Not broken", "censored"),
    ]
    caption = (
        "Rate: share of the correct samples with an adversarial example nearer than the score; 0 confirms nothing."
    )
    rows = distances[distances["class_index"] == ALL]
    summary = "Samples whose score an attack refutes"
    yield contents.table_details(summary, rows, "falsification", "Falsification", columns, caption=caption)

    agreement = contents.rows("measure_agreement")
    over_models = agreement[agreement["over"] == "models"]
    columns = [
        named("Measure", "first"),
        named("and", "second"),
        N,
        valued("Spearman", "rho", signed),
        valued("p", "p", p_value),
    ]
    if over_models.empty:
        rows, ranked = agreement, "the classes of a model"
        columns.insert(0, MODEL)
    else:
        rows, ranked = over_models, "models"
    summary = f"Do the measures agree? Rank correlations over {ranked}, the most opposed first"
    yield contents.table_details(
        summary, rows.sort_values("rho"), "measure_agreement", "Agreement of measures", columns
    )

    yield _calibration(contents)

    sensitivity = contents.rows("sensitivity")
    by_model = sensitivity.groupby(["measure", "label"], sort=False)
    ranges = by_model["value"].agg(["min", "max"]).reset_index()
    columns = [MODEL, named("Score", "measure"), valued("Smallest", "min"), valued("Largest", "max")]
    summary = "How far scores move when all logits are shifted or scaled, which changes no prediction"
    yield contents.table_details(summary, ranges, "sensitivity", "Sensitivity", columns)

    for listing in EVIDENCE:
        evidence = contents.rows(listing.name)
        title = listing.title or listing.summary
        yield contents.table_details(listing.summary, evidence, listing.name, title, listing.columns)


def _calibration(contents: Contents) -> Detail | None:
    results = contents.tables.calibration_results
    if not results:
        return None
    rows = []
    for objective, calibration in results.items():
        first, last = calibration.interval or (None, None)
        agreement = calibration.agreement_with(ROBUST)
        rows.append(
            {
                "title": OBJECTIVE_PHRASES.get(objective, objective.replace("_", " ")),
                "t_star": calibration.t_star,
                "first": first,
                "last": last,
                "edge": bool(calibration.edge),
                "best": calibration.best,
                "at_one": calibration.at_one,
                "before": agreement.before,
                "after": agreement.after,
                "p": calibration.permutation and calibration.permutation.p,
                "search": calibration.search,
            }
        )
    columns = [
        named("Objective", "title"),
        valued("T*", "t_star", temperature),
        valued("from", "first", temperature),
        valued("to", "last", temperature),
        valued("ends the search", "edge", yes),
        valued("At T = 1", "at_one", signed),
        valued("At T*", "best", signed),
        valued("Robust accuracy, T = 1", "before", signed),
        valued("Robust accuracy, T*", "after", signed),
        valued("p", "p", p_value),
        named("Search", "search"),
    ]
    summary = "Calibration: temperatures that each objective chooses, and what they gain"
    text = [TEMPERATURE, CALIBRATION]
    return contents.table_details(summary, pd.DataFrame(rows), "calibration", "Calibration", columns, text=text)
