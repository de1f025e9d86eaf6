"""What the page of a dashboard knows: the numbers of an audit's tables, in the order of its models and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.metrics import AGAINST_CHANCE, MAIN, METRICS, highest_values
from gfscore.audit.metrics.declaration import Metric
from gfscore.core.class_names import readable_classes
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import model_labels, printable, shortened_all
from gfscore.measures import measure_of
from gfscore.show.dashboard.groups import group_contents, projection_contents
from gfscore.show.dashboard.packing import packed, plain
from gfscore.show.dashboard.pairs import paired_differences
from gfscore.show.dashboard.temperature import calibration_curves, temperature_sweep
from gfscore.show.report import report_rows
from gfscore.show.words import takeaways
from gfscore.show.words.measure_words import mean_scores_against_distances

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.audit_tables import AuditTables
    from gfscore.statistics.curves import ScoreCurves

LONGEST_MODEL, LONGEST_CLASS = 26, 16
"""Letters of names in charts; tables and explanations have all of them."""

OF_MODEL = (
    *METRICS,
    *(f"{metric.name}_{end}" for metric in MAIN if metric.bounded for end in ("low", "high")),
    *(f"{metric.name}_{suffix}" for suffix in ("permuted", "p") for metric in AGAINST_CHANCE),
    "value_alone_low", "value_alone_high", "between_class_sd", "accuracy", "robust_accuracy",
    "published_clean_accuracy", "published_robust_accuracy", "robust_accuracy_source",
)  # fmt: skip
"""Columns of model_summary that the page shows or computes with."""


OF_JOB = ("wall_s", "cpu_s", "gpu_s", "peak_memory_mib", "samples", "forwards", "backwards")
"""Columns of costs that the page shows."""


def page_contents(
    tables: AuditTables,
    verdict: Mapping[str, Any],
    *,
    audit: str,
    measures: Mapping[str, Mapping[str, Any]],
    models: Iterable[Mapping[str, Any]],
    fp_lambda: float,
    sweeps: Mapping[str, ScoreCurves] | None = None,
    costs: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """What the page computes with, as plain values for JSON.

    Takes AuditTables, the contents of verdict.json, the audit's name, `measures` (settings by name, the audit's
    order), `models` as render_report takes them, lambda of FP, `sweeps` (a ScoreCurves by "threat/model", or None) and
    `costs`, the table of that name or None. Class arrays are (M, K).
    """
    index = ModelsAndClasses(tables.class_scores)
    names = list(measures)
    return plain(
        {
            "audit": audit,
            "models": index.described(models),
            "classes": index.described_classes(),
            "measures": [_measure(tables, name, measures[name], len(index.class_names)) for name in names],
            "metrics": [_metric(metric) for metric in METRICS.values()],
            "fp_lambda": fp_lambda,
            "few_models": takeaways.FEW_MODELS,
            "scores": {name: _scores(tables, name, index) for name in names},
            "summary": {name: _summary(tables, name, index) for name in names},
            "sentences": {name: _sentences(tables, name, index, verdict.get("guessing", [])) for name in names},
            "vulnerability": {name: _vulnerability(tables, name) for name in names},
            "gate": [_rule(rule, index) for rule in verdict["rules"]],
            "swaps": {name: _swaps(tables, name, index) for name in names},
            "pairs": {name: paired_differences(tables, name, index) for name in names},
            "ranks": {name: _rank_intervals(tables, name, index) for name in names},
            "sweep": temperature_sweep(tables, sweeps, index),
            "calibration": calibration_curves(tables),
            "sensitivity": _sensitivity(tables, index),
            "falsification": _falsification(tables, index),
            "confusions": _confusions(tables.confusions, index),
            "groups": group_contents(tables, index, names),
            "projection": projection_contents(tables, index),
            "costs": _costs(costs, index),
        }
    )


class ModelsAndClasses:
    """Positions of an audit's models and classes in every array of the page."""

    def __init__(self, class_scores: pd.DataFrame) -> None:
        """Read both, in their order, from the table class_scores."""
        rows = class_scores[class_scores["calibration"] == UNCALIBRATED]
        identities = rows[["dataset", "threat", "model"]].drop_duplicates(ignore_index=True)
        self.models: list[tuple[str, str]] = list(identities[["threat", "model"]].itertuples(index=False, name=None))
        self.position = {model: place for place, model in enumerate(self.models)}
        self.labels = [printable(label) for label in model_labels(identities)]
        first = rows.drop_duplicates("class_index").sort_values("class_index")
        self.class_names: list[str] = list(first["class_name"])
        self.class_indices: dict[int, int] = {index: place for place, index in enumerate(first["class_index"])}

    def described(self, models: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Label, short label and description of each model."""
        known = {(entry["threat"], entry["model"]): entry for entry in models}
        return [
            {"label": label, "short": short, "about": printable(about) if about else ""}
            for label, short, about in zip(
                self.labels,
                shortened_all(self.labels, LONGEST_MODEL),
                (report_rows.described(known.get(model, {})) for model in self.models),
                strict=True,
            )
        ]

    def described_classes(self) -> list[dict[str, Any]]:
        """Readable name of each class, the same shortened, and its name in the data."""
        readable = [printable(name) for name in readable_classes(self.class_names)]
        return [
            {"index": index, "label": label, "short": short, "name": printable(name)}
            for index, label, short, name in zip(
                self.class_indices, readable, shortened_all(readable, LONGEST_CLASS), self.class_names, strict=True
            )
        ]

    def grid(self, rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
        """One column of class rows as (M, K), NaN where a model lacks a class."""
        result = np.full((len(self.models), len(self.class_names)), np.nan)
        places = [self.position[model] for model in zip(rows["threat"], rows["model"], strict=True)]
        result[places, [self.class_indices[index] for index in rows["class_index"]]] = rows[column]
        return result

    def per_model(self, rows: pd.DataFrame) -> list[dict[str, Any] | None]:
        """Rows of a table in the order of the models, as mappings; None for a model without a row."""
        found = {(row["threat"], row["model"]): row for row in rows.to_dict("records")}
        return [found.get(model) for model in self.models]


def _metric(metric: Metric) -> dict:
    # `ranking`: whether a table of models has a column of it; FP has one of its own, which follows lambda.
    return {
        "name": metric.name,
        "title": metric.title,
        "about": metric.meaning,
        "better": metric.better,
        "direction": metric.direction,
        "level": metric.kind == "level",
        "lambda": "lam" in metric.needs,
        "bounded": metric.bounded,
        "ranking": metric in MAIN,
    }


def _measure(tables, name, settings, classes):
    measure = measure_of(settings)
    summary = tables.of("model_summary", name)
    return {
        "name": name,
        "kind": settings["kind"],
        "title": measure.title,
        "unit": measure.unit,
        "explanation": measure.explanation,
        "range": list(measure.value_range),
        "highest": highest_values(measure.value_range, classes=classes),
        "interval": report_rows.interval_name(summary["interval"].iloc[0]),
        "confidence": summary["confidence"].iloc[0],
        "norm": settings.get("norm"),
    }


def _scores(tables, measure, index):
    rows = tables.of("class_scores", measure)
    return {name: packed(index.grid(rows, name)) for name in ("value", "low", "high", "n", "accuracy")}


def _summary(tables, measure, index):
    rows = index.per_model(tables.of("model_summary", measure))
    return [
        row
        and {name: row[name] for name in OF_MODEL}
        | {"worst": [index.class_names.index(name) for name in row["wcr_tied"]]}
        | {"suspects": [index.class_names.index(name) for name in row["worst_class_set"]]}
        for row in rows
    ]


def _sentences(tables, measure, index, guessing):
    scores, summary = (tables.of(table, measure) for table in ("class_scores", "model_summary"))
    vulnerability = tables.of("vulnerability", measure)
    by_model = {model: rows for model, rows in scores.groupby(["threat", "model"], sort=False)}
    return {
        "classes": takeaways.weakest_class(scores),
        "disparity": takeaways.disparity(summary, guessing=guessing),
        "relation": takeaways.score_and_rdi(summary),
        "conflict": takeaways.metric_conflict(summary),
        "vulnerability": takeaways.vulnerability(vulnerability, scores),
        "model": [takeaways.weakest_class(by_model[model]) if model in by_model else "" for model in index.models],
    }


def _vulnerability(tables, measure):
    rows = tables.of("vulnerability", measure)
    return rows[["class_index", "mean_rank", "times_worst", "times_best"]].to_numpy().tolist()


def _rule(rule, index):
    found = {(model["threat"], model["model"]): model for model in rule["models"]}
    kept = ("verdict", "value", "low", "high")
    return {key: rule[key] for key in ("measure", "statistic", "direction", "threshold", "confidence", "words")} | {
        "models": [found.get(model) and {key: found[model][key] for key in kept} for model in index.models]
    }


def _swaps(tables, measure, index):
    if tables.lambda_swaps is None:
        return []
    rows = tables.lambda_swaps[tables.lambda_swaps["measure"] == measure]
    return [
        [
            row.fp_lambda,
            index.position[row.before_threat, row.before_model],
            index.position[row.after_threat, row.after_model],
        ]
        for row in rows.itertuples()
    ]


def _rank_intervals(tables, measure, index):
    if tables.rank_intervals is None:
        return None
    rows = index.per_model(tables.rank_intervals[tables.rank_intervals["measure"] == measure])
    return [row and {name: row[name] for name in ("rank", "rank_best", "rank_worst")} for row in rows]


def _sensitivity(tables, index):
    if tables.sensitivity is None:
        return None
    table = tables.sensitivity
    places = [index.position.get(model) for model in zip(table["threat"], table["model"], strict=True)]
    return {
        "sentences": {
            measure: {
                "shift": takeaways.logit_shift(rows[rows["scale"] == 1]),
                "factor": takeaways.logit_factor(rows[rows["shift"] == 0]),
            }
            for measure, rows in table.groupby("measure", sort=False)
        },
        "rows": [
            [measure, place, shift, scale, value]
            for measure, place, shift, scale, value in zip(
                table["measure"], places, table["shift"], table["scale"], table["value"], strict=True
            )
            if place is not None
        ],
    }


def _falsification(tables, index):
    # Rates at T = 1 over all classes, by score, measure of distances and model.
    table = tables.measures.get("falsification")
    if table is None:
        return None
    rows = table[(table["class_index"] == ALL) & (table["calibration"] == UNCALIBRATED)]
    kept = ["rate", "low", "high", "correct", "censored", "mean_score", "mean_distance", "mean", "confidence"]
    kept += ["score_low", "score_high", "distance_low", "distance_high"]
    result: dict[str, dict[str, list[dict[str, Any] | None]]] = {}
    for (measure, distances), found in rows.groupby(["measure", "distances"], sort=False):
        judged = found.assign(mean=mean_scores_against_distances(found))
        for name, of in (("score", measure), ("distance", distances)):
            judged = judged.merge(_intervals_of_mean(tables, of, name), on=["threat", "model"], how="left")
            # The summary is of all samples of its measure, the row of those that both measures have.
            other = ~np.isclose(judged[f"{name}_mean"], judged[f"mean_{name}"])
            judged.loc[other, [f"{name}_low", f"{name}_high"]] = np.nan
        result.setdefault(measure, {})[distances] = [
            row and {name: row[name] for name in kept} for row in index.per_model(judged)
        ]
    return result or None


def _intervals_of_mean(tables, measure, name):
    columns = {"value": f"{name}_mean", "value_alone_low": f"{name}_low", "value_alone_high": f"{name}_high"}
    return tables.of("model_summary", measure)[["threat", "model", *columns]].rename(columns=columns)


MOST_CLASSES_WITH_MATRIX, MISTAKES_PER_CLASS = 100, 5


def _confusions(table, index):
    # All pairs of classes, or the commonest mistakes of each class where a matrix would be too large to read.
    if table is None:
        return None
    table = table[table["measure"].notna()]
    whole = len(index.class_names) <= MOST_CLASSES_WITH_MATRIX
    if not whole:
        wrong = table[table["true_index"] != table["predicted_index"]].sort_values("count", ascending=False)
        groups = ["measure", "threat", "model", "true_index"]
        table = wrong.groupby(groups, sort=False).head(MISTAKES_PER_CLASS)
    result: dict[str, Any] = {"whole": whole, "most": MISTAKES_PER_CLASS, "counts": {}}
    for (measure, threat, model), rows in table.groupby(["measure", "threat", "model"], sort=False):
        if (threat, model) in index.position:
            per_model = result["counts"].setdefault(measure, {})
            per_model[index.position[threat, model]] = packed(rows[["true_index", "predicted_index", "count"]])
    return result


def _costs(table, index):
    if table is None or table["wall_s"].isna().all():
        return None
    labels = dict(zip(index.models, index.labels, strict=True))
    return [
        {
            "step": row.step,
            "measure": row.measure if isinstance(row.measure, str) else None,
            "model": labels.get((row.threat, row.model), printable(row.model)),
            **{name: getattr(row, name) for name in OF_JOB},
        }
        for row in table.itertuples()
    ]
