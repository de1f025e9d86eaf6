"""What the page says about measures against each other: refutations, distances, decisions, targets, rankings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import AGREEMENT_COLUMNS, ALL
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import model_labels
from gfscore.core.numbers import number, percent
from gfscore.show.report.report_rows import Bounded
from gfscore.show.words import measure_words
from gfscore.statistics.error_rates import caution

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

MOST_CLASSES, MOST_SENTENCES, RADII, MOST_ROWS = 20, 6, 6, 1000
"""Largest matrix shown; sentences on single models beyond which a table has to do; radii of a printed curve; largest
number of rows of a table."""

IN_ALL = {0.0: "none of the", 1.0: "all"}
"""Share of the models in words."""


def measures_view(tables: AuditTables, measures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Mapping with one entry per table that the audit has (AuditTables.measures); empty without any.

    Takes AuditTables and the settings of each measure. Entries are None where there is nothing to show.
    """
    summary = tables.model_summary
    keys = zip(summary["threat"], summary["model"], strict=True)
    labels = dict(zip(keys, model_labels(summary), strict=True))
    found = {
        name: frame.assign(label=[labels.get((t, m)) for t, m in zip(frame["threat"], frame["model"], strict=True)])
        for name, frame in tables.measures.items()
        if len(frame) and name in AGREEMENT_COLUMNS
    }
    builders = {
        "falsification": _falsification,
        "refutations": _refutations,
        "masking_signs": lambda frame: frame.to_dict("records"),
        "radius_curves": _curves,
        "class_distances": lambda frame: _distances(frame, found["log_rank_tests"]),
        "class_shares": lambda frame: _shares(frame, measures),
        "training_methods": lambda frame: _training(frame, measures),
        "target_predictors": lambda frame: _targets(found, frame),
        "measure_agreement": lambda frame: _agreement(frame, measures),
    }
    return {name: builders[name](found[name]) for name in builders if name in found}


def _whole(frame):
    return frame[frame["class_index"] == ALL]


def _falsification(frame):
    whole = _whole(frame)
    plain = whole[whole["calibration"] == UNCALIBRATED]
    warnings = []
    for (measure, _distances_by), rows in plain.groupby(["measure", "distances"], sort=False):
        title = measure_words.refutations_of(rows, measure, len(rows))
        if title:
            verdicts = measure_words.mean_scores_against_distances(rows)
            some = rows["violations"] > 0
            warnings.append({"title": title, "sentence": _refuted(rows[some], verdicts[some])})
    rows = [{**row, "bounded": Bounded(row["rate"], row["low"], row["high"], 1.0)} for row in whole.to_dict("records")]
    unrefuted = [
        measure_words.falsified(row, name=row["label"])
        for row in plain[plain["violations"] == 0].to_dict("records")[:MOST_SENTENCES]
    ]
    return {"warnings": warnings, "rows": rows, "unrefuted": unrefuted}


def _refuted(rows, verdicts):
    # One model in full; of several the ends of the range, since the table beside it lists all.
    if len(rows) == 1:
        return measure_words.falsified(rows.iloc[0].to_dict(), name=rows["label"].iloc[0])
    least, most = (rows.loc[rows["rate"] == end].iloc[0] for end in (rows["rate"].min(), rows["rate"].max()))
    unsettled = measure_words.why_not_settled(rows, verdicts)
    confidence = percent(rows["confidence"].iloc[0])
    above = int((verdicts == measure_words.REFUTED).sum())
    return (
        "The share of correctly classified samples with an adversarial example nearer than the score runs from "
        f"{number(least['rate'])} ({least['label']}) to {number(most['rate'])} ({most['label']}); the mean score "
        f"is refuted by the mean distance, with {confidence} confidence, in "
        f"{IN_ALL.get(above / len(rows), f'{above} of')} {len(rows)} models" + (f" ({unsettled})" if unsettled else "")
    )


def _refutations(frame):
    return [
        {
            "words": measure_words.certificates(row, name=row["label"]),
            "alarm": not row["within_chance"],
            "refuted": int(row["refuted"]),
            "attacked": int(row["attacked"]),
        }
        for row in frame.to_dict("records")
    ]


def _curves(frame):
    views = []
    for (measure, kind), rows in _whole(frame).groupby(["measure", "kind"], sort=False):
        radii = np.unique(rows["radius"])
        shown = radii[np.linspace(0, len(radii) - 1, RADII).round().astype(int)]
        lines = [
            (label, [_point(row) for row in own[own["radius"].isin(shown)].sort_values("radius").to_dict("records")])
            for label, own in rows.groupby("label", sort=False)
        ]
        views.append({"measure": measure, "kind": kind, "radii": shown.tolist(), "lines": lines})
    return views


def _point(row):
    return {"share": row["share"], "bound": row["high"] if row["kind"] == "minimal" else row["low"]}


def _distances(frame, tests):
    views = []
    for measure, rows in _whole(frame).groupby("measure", sort=False):
        own = tests[tests["measure"] == measure]
        p = dict(zip(own["label"], own["p_permutation"], strict=True))
        listed = [{**row, "p": p[row["label"]]} for row in rows.to_dict("records")]
        views.append({"measure": measure, "sentence": measure_words.differing_classes(own), "rows": listed})
    return views


def _shares(frame, measures):
    views = []
    for measure, rows in _whole(frame).groupby("measure", sort=False):
        listed = [
            {**row, "bounded": Bounded(row["robust"] / max(row["n"], 1), row["low"], row["high"], 1.0)}
            for row in rows.to_dict("records")
        ]
        words = {"sentence": measure_words.undecided(rows), "caution": caution(measure, measures[measure])}
        views.append({"measure": measure, "rows": listed, **words})
    return views


def _training(frame, measures):
    cautions = [caution(name, measures[name]) for name in frame["probabilistic"].unique()]
    return {"rows": frame.to_dict("records"), "cautions": [words for words in cautions if words]}


def _targets(found, predictors):
    views = []
    for measure, rows in predictors.groupby("measure", sort=False):
        sentences = [measure_words.central_claim(rows, name) for name in measure_words.SUCCESS]
        success = found["target_success"]
        success = success[success["measure"] == measure]
        classes = success.drop_duplicates("class_index")["class_name"].tolist()
        matrix = found["target_matrix"]
        matrix = matrix[matrix["measure"] == measure]
        views.append(
            {
                "measure": measure,
                "sentences": [sentence for sentence in sentences if sentence],
                "classes": success.groupby("class_name", sort=False)[
                    ["success", "clean", "excess", "among_misclassified", "cfps", "miss_rate"]
                ]
                .mean()
                .reset_index()
                .to_dict("records"),
                "models": predictors["label"].nunique(),
                "predictors": rows.to_dict("records"),
                "names": classes,
                "matrix": _mean_matrix(matrix, len(classes)) if len(classes) <= MOST_CLASSES else None,
            }
        )
    return views


def _mean_matrix(rows, classes):
    # Mean over models; None on the diagonal.
    mean = rows.groupby(["source_index", "target_index"])["success"].mean()
    return [[mean.get((s, t)) for t in range(classes)] for s in range(classes)]


def _agreement(frame, measures):
    over_models = frame[frame["over"] == "models"]
    over_classes = frame[frame["over"] == "classes"]
    means = over_classes.groupby(["first", "second"], sort=False)["rho"].agg(["mean", "min", "max", "count"])
    between = {(row["first"], row["second"]): row for row in over_models.to_dict("records")}
    rows = [
        {"first": first, "second": second, "over_models": between.get((first, second)), **values}
        for (first, second), values in means.to_dict("index").items()
    ]
    # One list per pair of measures, each model's correlation over its classes in it.
    by_pair = [
        {"first": first, "second": second, "models": own.to_dict("records")}
        for (first, second), own in over_classes.groupby(["first", "second"], sort=False)
        if len(over_classes) <= MOST_ROWS
    ]
    return {
        "opposed": measure_words.opposed(over_models),
        "rows": rows,
        "by_pair": by_pair,
        "confidence": float(frame["confidence"].iloc[0]),
        "measures": len(measures),
    }
