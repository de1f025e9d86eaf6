"""Details of the section on trust in the attack-free score: attacks against it, agreement, calibration."""

from collections.abc import Iterator

import pandas as pd

from gfscore.audit.calibration.evidence import ROBUST
from gfscore.audit.findings.templates import OBJECTIVES
from gfscore.core import numbers
from gfscore.show.page.elements import CLASS, MEASURE, MODEL, Detail, N, bounded, counted, named, valued, yes
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.sections.making import CALIBRATION, TEMPERATURE
from gfscore.tables.table import ALL

SIGNED, P = numbers.signed, numbers.p_value


EVIDENCE = (
    (
        "refutations",
        "Certificates that attacks broke, against what chance allows",
        None,
        [
            MODEL,
            counted("Certificates", "n"),
            counted("Attacked", "attacked"),
            counted("Broken", "refuted"),
            counted("Allowed", "allowed"),
        ],
    ),
    (
        "masking_signs",
        "Signs that gradients are masked, so that attacks fail",
        None,
        [MODEL, MEASURE, counted("Samples", "count"), counted("of", "n"), named("What", "text")],
    ),
    (
        "class_shares",
        "Statistical tests: robust, not robust and undecided samples",
        None,
        [
            MODEL,
            CLASS,
            N,
            counted("Robust", "robust"),
            counted("Not", "not_robust"),
            counted("Undecided", "undecided"),
            bounded("Interval", "low", "high", 1.0),
        ],
    ),
    (
        "training_methods",
        "Training methods: accuracy, and robustness of both kinds",
        None,
        [
            MODEL,
            named("Training", "training"),
            valued("Accuracy", "accuracy"),
            valued("Attacks fail", "attack_failure_rate"),
            bounded("Robust", "robust_low", "robust_high", 1.0),
        ],
    ),
    (
        "target_predictors",
        "What predicts into which class attacks succeed",
        "Predictors",
        [
            MODEL,
            named("Success as", "definition"),
            valued("with CFPS", "rho_cfps", SIGNED),
            valued("with 1 - recall", "rho_miss_rate", SIGNED),
        ],
    ),
)
"""Tables that are shown as they are: name, summary, title where it is not the summary, columns."""


def of_trust(c: Contents) -> Iterator[Detail | None]:
    """Details on whether the attack-free score can be trusted."""
    yield _falsification(c)
    yield _agreement(c)
    yield _calibration(c)
    sensitivity = c.rows("sensitivity")
    if sensitivity is not None:
        spread = sensitivity.groupby(["measure", "label"], sort=False)["value"].agg(["min", "max"]).reset_index()
        columns = [MODEL, named("Score", "measure"), valued("Smallest", "min"), valued("Largest", "max")]
        summary = "How far scores move when all logits are shifted or scaled, which changes no prediction"
        yield c.listed(summary, spread, "sensitivity", "Sensitivity", columns)
    for name, summary, title, columns in EVIDENCE:
        yield c.listed(summary, c.rows(name), name, title or summary, columns)


def _falsification(c):
    distances = c.rows("falsification")
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
    rows = None if distances is None else distances[distances["class_index"] == ALL]
    summary = "Samples whose score an attack refutes"
    return c.listed(summary, rows, "falsification", "Falsification", columns, caption=caption)


def _agreement(c):
    agreement = c.rows("measure_agreement")
    if agreement is None:
        return None
    over = agreement[agreement["over"] == "models"] if (agreement["over"] == "models").any() else agreement
    columns = [named("Measure", "first"), named("and", "second"), N, valued("Spearman", "rho", SIGNED)]
    columns += [valued("p", "p", P)]
    summary = "Do the measures agree? Rank correlations over models, the most opposed first"
    return c.listed(summary, over.sort_values("rho"), "measure_agreement", "Agreement of measures", columns)


def _calibration(c):
    results = c.tables.calibration_results
    if not results:
        return None
    rows = pd.DataFrame(
        {
            "title": OBJECTIVES.get(name, name.replace("_", " ")),
            "t_star": result["t_star"],
            "first": (result["interval"] or [None])[0],
            "last": (result["interval"] or [None])[-1],
            "edge": bool(result["edge"]),
            "best": result["best"],
            "at_one": result["at_one"],
            **{f"{when}": result["agreement"].get(ROBUST, {}).get(when) for when in ("before", "after")},
            "p": (result.get("permutation") or {}).get("p"),
            "search": result["search"],
        }
        for name, result in results.items()
    )
    columns = [
        named("Objective", "title"),
        valued("T*", "t_star", numbers.temperature),
        valued("from", "first", numbers.temperature),
        valued("to", "last", numbers.temperature),
        valued("ends the search", "edge", yes),
        valued("At T = 1", "at_one", SIGNED),
        valued("At T*", "best", SIGNED),
        valued("Robust accuracy, T = 1", "before", SIGNED),
        valued("Robust accuracy, T*", "after", SIGNED),
        valued("p", "p", P),
        named("Search", "search"),
    ]
    summary, text = (
        "Calibration: temperatures that each objective chooses, and what they gain",
        [TEMPERATURE, CALIBRATION],
    )
    return c.listed(summary, rows, "calibration", "Calibration", columns, text=text)
