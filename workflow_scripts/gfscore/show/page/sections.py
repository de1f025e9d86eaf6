"""The six sections of the page: each a question, one picture, a few sentences, and closed details with all else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.calibration.model_evidence import ROBUST
from gfscore.audit.findings.words import OBJECTIVES
from gfscore.audit.groups.gaps import group_gaps
from gfscore.audit.metrics import MAIN, METRICS, highest_values
from gfscore.core import numbers
from gfscore.core.class_names import readable_classes
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import enumeration, model_labels, printable
from gfscore.measures import measure_of
from gfscore.show.page import judged, limits
from gfscore.show.page.tables import Column, Detail, bounded, counted, named, table_of, terms_of, text, valued, yes

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables
    from gfscore.show.page.charts import DrawnChart

QUESTIONS = {
    "which": "Which model?",
    "class": "Which class?",
    "sure": "How sure?",
    "trust": "Can the attack-free score be trusted?",
    "whom": "For whom?",
    "how": "How was it done?",
}
"""Question of each section, by its id."""

MOST_SENTENCES = 3
SIGNED, P = numbers.signed, numbers.p_value
MOST_NAMED = 3


@dataclass(frozen=True)
class Section:
    """One section: id, question, sentences, template of its controls and own picture, or a chart, and details."""

    id: str
    question: str
    sentences: list[str] = field(default_factory=list)
    controls: str | None = None
    chart: DrawnChart | None = None
    details: list[Detail] = field(default_factory=list)


@dataclass(frozen=True)
class Contents:
    """What sections are made from."""

    tables: AuditTables
    verdict: Mapping[str, Any]
    measures: Mapping[str, Mapping[str, Any]]
    measure: str
    models: Sequence[Mapping[str, Any]]
    charts: Sequence[DrawnChart]
    fp_lambda: float
    provenance: Mapping[str, Mapping[str, Any]]
    costs: pd.DataFrame | None
    contact: str | None
    published_samples: str | None
    shown: Sequence[str]
    """Sentences of the first screen, which no section repeats."""
    paired: bool = False

    def of(self, name: str) -> pd.DataFrame | None:
        """Rows of a table at T = 1, with the names of their models as `label` and of their classes as `class`."""
        frame = getattr(self.tables, name, None)
        frame = self.tables.measures.get(name) if frame is None else frame
        if frame is None or frame.empty:
            return None
        if "calibration" in frame:
            frame = frame[frame["calibration"] == UNCALIBRATED]
        if {"dataset", "threat", "model"} <= set(frame) and frame["model"].notna().all():
            # Models of tasks have the names of those of the dataset.
            frame = frame.assign(label=model_labels(frame.assign(dataset="")))
        if {"class_index", "class_name"} <= set(frame):
            first = frame.drop_duplicates("class_index")
            readable = readable_classes(list(first["class_name"].fillna("")))
            names = dict(zip(first["class_index"], readable, strict=True))
            frame = frame.assign(**{"class": frame["class_index"].map(names)})
        return frame.reset_index(drop=True)

    def listed(self, name: str, summary: str, title: str, columns: Iterable[Column], **how: Any) -> Detail | None:
        """All rows of a table in closed details, or None where the audit has none; `how` as table_of takes it."""
        frame = self.of(name)
        return None if frame is None else Detail(summary, table=table_of(frame, title, name, columns, **how))


def sections_of(contents: Contents) -> list[Section]:
    """The sections that an audit has anything for."""
    makers = {"which": _which, "class": _class, "sure": _sure, "trust": _trust, "whom": _whom, "how": _how}
    found = []
    for name, question in QUESTIONS.items():
        details = [detail for detail in makers[name](contents) if detail is not None]
        sentences = [
            finding["sentence"]
            for finding in contents.verdict.get("findings", [])
            if finding["section"] == name and finding["sentence"] not in contents.shown
        ][:MOST_SENTENCES]
        charts = [chart for chart in contents.charts if chart.section == name]
        own = {"which": "which.html", "class": "class.html", "sure": "sure.html" if contents.paired else None}.get(name)
        picture = None if own in ("which.html", "sure.html") else _picture(charts, contents.measure)
        drawn = _of_charts([chart for chart in charts if chart is not picture])
        if details or drawn or picture or own:
            found.append(Section(name, question, sentences, own, picture, [*drawn, *details]))
    return found


def _picture(charts, measure):
    own = [chart for chart in charts if chart.measure == measure]
    return next(iter([*own, *charts]), None)


def _of_charts(charts):
    # One line for each kind of chart, whatever the number of measures.
    by_title: dict[str, list[DrawnChart]] = {}
    for chart in charts:
        by_title.setdefault(chart.title, []).append(chart)
    return [Detail(f"{title}{_measures(own)}: {own[0].question}", charts=own) for title, own in by_title.items()]


def _measures(charts):
    names = [chart.measure for chart in charts if chart.measure]
    if len(names) > MOST_NAMED:
        return f", {len(names)} measures"
    return f", {enumeration(names)}" if names else ""


def _which(c):
    tables = [view for measure in dict.fromkeys([c.measure, *c.measures]) if (view := _ranking(c, measure)) is not None]
    yield Detail("Every number of every model, by measure", more=tables)
    yield _models(c)
    ranks = c.of("metric_ranks")
    if ranks is not None:
        wide = ranks[ranks["measure"] == c.measure].pivot_table(
            index="label", columns="metric", values="place", sort=False
        )
        wide = wide.reset_index()
        columns = [named("Model", "label"), *(valued(METRICS[m].title, m) for m in wide.columns if m in METRICS)]
        yield Detail(
            f"Place of each model by every metric of {c.measure}",
            table=table_of(wide, "Places", "metric_ranks", columns),
        )


def _ranking(c, measure):
    summary = c.of("model_summary")
    rows = summary[summary["measure"] == measure].sort_values(["value", "label"], ascending=[False, True])
    if rows.empty:
        return None
    highest = highest_values(
        measure_of(c.measures[measure]).value_range, classes=rows["worst_class_set"].map(len).max()
    )
    rows = rows.assign(suspects=rows["worst_class_set"].map(len))
    columns = [
        named("Model", "label"),
        valued("Mean", "value"),
        bounded("Interval", "value_alone_low", "value_alone_high", highest["value"]),
    ]
    for metric in MAIN:
        if metric.name != "value":
            columns.append(valued(metric.title, metric.name))
            if metric.bounded:
                columns.append(bounded("Interval", f"{metric.name}_low", f"{metric.name}_high", highest[metric.name]))
    columns += [
        named("Worst class", "wcr_class"),
        counted("May be worst", "suspects"),
        valued("Clean accuracy", "accuracy"),
    ]
    columns += [valued("Robust accuracy", "robust_accuracy"), named("its source", "robust_accuracy_source")]
    confidence = numbers.percent(rows["confidence"].iloc[0])
    caption = f"Intervals ({confidence}) hold for all classes of a model together, that of the mean for it alone."
    return table_of(rows, f"Models by {measure}", "model_summary", columns, caption=caption, most=200)


def _models(c):
    summary = c.of("model_summary").drop_duplicates(["threat", "model"])
    known = {(entry["threat"], entry["model"]): entry for entry in c.models}
    rows = summary.assign(
        about=[_described(known.get(key, {})) for key in zip(summary["threat"], summary["model"], strict=True)]
    )
    columns = [
        named("Model", "label"),
        named("Threat model", "threat"),
        named("Method, architecture", "about"),
        valued("Clean accuracy", "accuracy"),
        valued("Published clean accuracy", "published_clean_accuracy"),
        valued("Published robust accuracy", "published_robust_accuracy"),
    ]
    caption = ""
    if summary["published_clean_accuracy"].notna().any() and c.published_samples is None:
        caption = (
            "The published accuracies were compared with nothing: the dataset's entry says published_accuracy: null."
        )
    return Detail(
        "What each model is", table=table_of(rows, "Models", "model_summary", columns, caption=caption, most=200)
    )


def _described(entry):
    training = entry.get("training") or {}
    parts = [entry.get(key) or training.get(key) for key in ("method", "architecture")]
    return ", ".join(str(part) for part in parts if part) or str(entry.get("source") or "")


def _class(c):
    scores = c.of("class_scores")
    own = scores[scores["measure"] == c.measure].sort_values(["value", "label"], na_position="first")
    highest = measure_of(c.measures[c.measure]).value_range[1]
    columns = [
        named("Class", "class"),
        named("Model", "label"),
        counted("n", "n"),
        valued("Value", "value"),
        bounded("Interval", "low", "high", highest),
        valued("Clean accuracy", "accuracy"),
    ]
    yield Detail(
        f"Every class of every model by {c.measure}, lowest first",
        table=table_of(own, "Classes", "class_scores", columns, most=100),
    )
    ranks = c.of("vulnerability")
    ranks = ranks[ranks["measure"] == c.measure].sort_values(["mean_rank", "class_index"])
    columns = [
        named("Class", "class"),
        valued("Mean rank", "mean_rank"),
        counted("Times weakest", "times_worst"),
        counted("Times strongest", "times_best"),
    ]
    yield Detail(
        "Classes by their mean rank over models, the most vulnerable first",
        table=table_of(ranks, "Classes by vulnerability", "vulnerability", columns),
    )
    errors = c.of("class_errors")
    if errors is not None:
        measure = c.measure if (errors["measure"] == c.measure).any() else errors["measure"].iloc[0]
        own = errors[(errors["measure"] == measure) & errors["corruption"].isna()]
        shares = ["recall", "precision", "f1", "cfps", "cfps_relative"]
        means = own.groupby("class", sort=False)[shares].mean().reset_index().sort_values("recall")
        columns = [
            named("Class", "class"),
            valued("Recall", "recall"),
            valued("Precision", "precision"),
            valued("F1", "f1"),
        ]
        columns += [valued("Share of all errors (CFPS)", "cfps"), valued("CFPS times K", "cfps_relative")]
        yield Detail(
            f"Errors by class under {measure}: recall, precision, and where wrong predictions fall",
            table=table_of(
                means, "Errors by class", "class_errors", columns, caption="Means over models, lowest recall first."
            ),
        )
    success = c.of("target_success")
    if success is not None:
        columns = [
            named("Class", "class"),
            named("Model", "label"),
            counted("n", "n"),
            valued("Turned into it", "success"),
        ]
        columns += [valued("without an attack", "clean"), valued("CFPS", "cfps")]
        rows = success.sort_values("success", ascending=False)
        yield Detail(
            "Into which class attacks turn samples", table=table_of(rows, "Targets", "target_success", columns)
        )


def _sure(c):
    yield _noise_floor(c)
    yield _undecided(c)
    yield _pairs(c)
    yield _decided(c)


def _noise_floor(c):
    summary = c.of("model_summary")
    own = summary[summary["measure"] == c.measure].sort_values("label")
    columns = [
        named("Model", "label"),
        valued("RDI", "rdi"),
        valued("RDI by chance", "rdi_permuted"),
        valued("p", "rdi_p", P),
        valued("NRGC", "nrgc"),
        valued("by chance", "nrgc_permuted"),
        valued("p", "nrgc_p", P),
        valued("Spread of true values", "between_class_sd"),
        valued("Smallest RDI surely seen", "rdi_detectable"),
    ]
    caption = (
        "Chance: mean when samples are dealt to classes at random. p: share of such deals with at least this disparity."
    )
    return Detail(
        "The noise floor: how much disparity chance alone would show",
        table=table_of(own, "Noise floor", "model_summary", columns, caption=caption, most=200),
    )


def _judged_models(c):
    # Every model under every rule of the gate.
    return [
        {**model, "label": model["model"], "rule": rule["words"]}
        for rule in c.verdict["rules"]
        for model in rule["models"]
    ]


def _undecided(c):
    rows = [model for model in _judged_models(c) if model["verdict"] == "INCONCLUSIVE"]
    if not rows:
        return None
    columns = [
        named("Model", "model"),
        valued("Value", "value"),
        bounded("Interval", "low", "high"),
        counted("Samples per class that would settle it", "samples_needed_per_class"),
        counted("Further samples in all", "further_samples_needed"),
        named("Rule", "rule"),
    ]
    return Detail(
        "What more samples would show: undecided models and the samples that would settle them",
        table=table_of(pd.DataFrame(rows), "Undecided models", "verdict", columns),
    )


def _pairs(c):
    pairs = c.of("model_comparisons")
    if pairs is None:
        return None
    own = pairs[pairs["measure"] == c.measure].sort_values("p_holm")
    columns = [
        named("Model", "first_model"),
        named("against", "second_model"),
        valued("Difference", "difference"),
        bounded("Interval", "low", "high"),
        valued("p (Holm)", "p_holm", P),
        counted("Surely better on", "sure_wins_first"),
        counted("surely worse on", "sure_wins_second"),
    ]
    return Detail(
        f"Every pair of models by {c.measure}, the surest difference first",
        table=table_of(own, "Pairs of models", "model_comparisons", columns),
    )


def _decided(c):
    rows = _judged_models(c)
    if not rows:
        return None
    columns = [named("Model", "label"), named("Verdict", "verdict"), valued("Value", "value")]
    columns += [bounded("Interval", "low", "high"), named("Worst class", "worst_class"), named("Rule", "rule")]
    return Detail(
        "What the gate decided of each model",
        text=[c.verdict["note"]],
        table=table_of(pd.DataFrame(rows), "Verdicts", "verdict", columns, most=200),
    )


EVIDENCE = (
    (
        "refutations",
        "Certificates that attacks broke, against what chance allows",
        [
            named("Model", "label"),
            counted("Certificates", "n"),
            counted("Attacked", "attacked"),
            counted("Broken", "refuted"),
            counted("Allowed", "allowed"),
        ],
    ),
    (
        "masking_signs",
        "Signs that gradients are masked, so that attacks fail",
        [
            named("Model", "label"),
            named("Measure", "measure"),
            counted("Samples", "count"),
            counted("of", "n"),
            named("What", "text"),
        ],
    ),
    (
        "class_shares",
        "Statistical tests: robust, not robust and undecided samples",
        [
            named("Model", "label"),
            named("Class", "class"),
            counted("n", "n"),
            counted("Robust", "robust"),
            counted("Not", "not_robust"),
            counted("Undecided", "undecided"),
            bounded("Interval", "low", "high", 1.0),
        ],
    ),
    (
        "training_methods",
        "Training methods: accuracy, and robustness of both kinds",
        [
            named("Model", "label"),
            named("Training", "training"),
            valued("Accuracy", "accuracy"),
            valued("Attacks fail", "attack_failure_rate"),
            bounded("Robust", "robust_low", "robust_high", 1.0),
        ],
    ),
)
"""Tables that are shown as they are: name, summary, columns."""


def _trust(c):
    yield _falsification(c)
    yield _agreement(c)
    yield _calibration(c)
    yield _sensitivity(c)
    for name, summary, columns in EVIDENCE:
        yield c.listed(name, summary, summary, columns)
    columns = [
        named("Model", "label"),
        named("Success as", "definition"),
        valued("with CFPS", "rho_cfps", SIGNED),
        valued("with 1 - recall", "rho_miss_rate", SIGNED),
    ]
    yield c.listed("target_predictors", "What predicts into which class attacks succeed", "Predictors", columns)


def _falsification(c):
    distances = c.of("falsification")
    if distances is None:
        return None
    whole = distances[distances["class_index"] == ALL]
    columns = [
        named("Model", "label"),
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
    return Detail(
        "Samples whose score an attack refutes",
        table=table_of(whole, "Falsification", "falsification", columns, caption=caption),
    )


def _agreement(c):
    agreement = c.of("measure_agreement")
    if agreement is None:
        return None
    over = agreement[agreement["over"] == "models"] if (agreement["over"] == "models").any() else agreement
    columns = [
        named("Measure", "first"),
        named("and", "second"),
        counted("n", "n"),
        valued("Spearman", "rho", SIGNED),
        valued("p", "p", P),
    ]
    return Detail(
        "Do the measures agree? Rank correlations over models, the most opposed first",
        table=table_of(over.sort_values("rho"), "Agreement of measures", "measure_agreement", columns),
    )


def _sensitivity(c):
    sensitivity = c.of("sensitivity")
    if sensitivity is None:
        return None
    spread = sensitivity.groupby(["measure", "label"], sort=False)["value"].agg(["min", "max"]).reset_index()
    columns = [
        named("Model", "label"),
        named("Score", "measure"),
        valued("Smallest", "min"),
        valued("Largest", "max"),
    ]
    return Detail(
        "How far scores move when all logits are shifted or scaled, which changes no prediction",
        table=table_of(spread, "Sensitivity", "sensitivity", columns),
    )


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
    return Detail(
        "Calibration: temperatures that each objective chooses, and what they gain",
        text=[limits.TEMPERATURE, limits.calibration()],
        table=table_of(rows, "Calibration", "calibration", columns),
    )


def _whom(c):
    yield _gaps(c)
    columns = [
        named("Model", "label"),
        named("Measure", "measure"),
        named("Attribute", "attribute"),
        named("Class", "class"),
        named("Metric", "metric"),
        valued("Value", "value"),
        bounded("Interval", "wilson_low", "wilson_high", 1.0),
        valued("As printed in the paper", "as_printed"),
        valued("Balanced", "balanced_value"),
    ]
    yield c.listed("group_metrics", "Fairness metrics: DP, EOpp, EOdd and others", "Fairness", columns)
    yield _corruption_errors(c)
    yield _corruptions(c)
    yield _projection(c)
    yield _by_attribute(c)
    yield _effects(c)


def _gaps(c):
    scores = c.of("group_scores")
    if scores is None:
        return None
    gaps = group_gaps(scores[scores["measure"] == c.measure])
    gaps = group_gaps(scores) if gaps.empty else gaps
    if gaps.empty:
        return None
    gaps = gaps.assign(label=model_labels(gaps)).sort_values("gap", ascending=False)
    columns = [
        named("Model", "label"),
        named("Attribute", "attribute"),
        named("Lowest group", "lowest"),
        valued("its value", "low_value"),
        named("Highest group", "highest"),
        valued("its value", "high_value"),
        valued("Gap", "gap"),
        bounded("Interval", "gap_low", "gap_high"),
        valued("few samples", "small", yes),
    ]
    return Detail("Gaps between groups, the widest first", table=table_of(gaps, "Groups", "group_scores", columns))


def _corruption_errors(c):
    errors = c.of("corruption_errors")
    errors = errors[errors["corruption"].isna()] if errors is not None else None
    if errors is None or errors.empty:
        return None
    baseline = errors["baseline"].iloc[0]
    reference = "relative to a baseline: the audit names none (corruption_baseline)"
    if pd.notna(baseline):
        reference = f"the mean over corruptions of its error over that of {printable(baseline)}"
    columns = [
        named("Model", "label"),
        named("Measure", "measure"),
        counted("n", "n"),
        valued("Mean error", "error"),
        bounded("Interval", "low", "high", 1.0),
        valued("mCE", "corruption_error"),
    ]
    return Detail(
        "Errors under corruptions: plain mean, and mean corruption error (mCE)",
        text=[f"Intervals by sample: copies of one image count once. mCE is {reference}."],
        table=table_of(errors.sort_values("error"), "Corruption errors", "corruption_errors", columns),
    )


def _corruptions(c):
    errors = c.of("class_errors")
    corrupted = errors[errors["corruption"].notna()] if errors is not None else None
    if corrupted is None or corrupted.empty:
        return None
    means = corrupted.groupby(["corruption", "severity"], sort=False)["recall"].mean().reset_index()
    columns = [named("Corruption", "corruption"), counted("Severity", "severity"), valued("Accuracy", "recall")]
    return Detail(
        "Accuracy under each corruption, mean over models and classes",
        table=table_of(means.sort_values("recall"), "Corruptions", "class_errors", columns),
    )


PROJECTED = (
    *("tolerance", "deviation", "coupling", "coupling_entropy", "agreement", "accuracy", "decoded_accuracy"),
    *("dp", "eopp", "eodd"),
)
"""Numbers of a model on a mapper."""


def _projection(c):
    models = c.of("projection_models")
    if models is None:
        return None
    columns = [named(title, name) for title, name in (("Mapper", "mapper"), ("Task", "dataset"), ("Model", "label"))]
    columns += [counted("n", "n"), *(valued(_title(name), name) for name in PROJECTED)]
    mappers = ", ".join(map(printable, models["mapper"].unique()))
    order = {"by": "tolerance", "ascending": False}
    rows = pd.concat([own.sort_values(**order) for _, own in models.groupby(["mapper", "dataset"], sort=False)])
    return Detail(
        f"Projection on the latent dimensions of {mappers}",
        table=table_of(rows, "Projection", "projection_models", columns),
    )


def _by_attribute(c):
    attributes = c.of("projection_attributes")
    if attributes is None:
        return None
    keys = ["mapper", "dataset", "attribute"]
    names = ["tolerance", "deviation", "dp", "eopp", "eodd"]
    means = attributes[~attributes["constant"].astype(bool)].groupby(keys, sort=False)[names].mean().reset_index()
    columns = [named(title, name) for title, name in zip(("Mapper", "Task", "Attribute"), keys, strict=True)]
    columns += [valued(_title(name), name) for name in names]
    return Detail(
        "Each task by each attribute, mean over models",
        table=table_of(means, "Attributes", "projection_attributes", columns),
    )


def _effects(c):
    effects = c.of("projection_effects")
    if effects is None:
        return None
    columns = [
        named("Mapper", "mapper"),
        named("Dimension", "dimension"),
        named("Trait", "trait"),
        valued("Shift", "shift"),
        valued("Strength", "strength"),
        valued("Tolerance", "tolerance"),
    ]
    rows = effects.sort_values("strength", ascending=False)
    return Detail(
        "What each latent dimension changes", table=table_of(rows, "Dimensions", "projection_effects", columns)
    )


def _title(name):
    return {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}.get(name, name.replace("_", " ").capitalize())


def _how(c):
    if c.costs is not None and c.costs["wall_s"].notna().any():
        by_step = c.costs.groupby(["step", c.costs["measure"].fillna("")], sort=False)
        sums = by_step[["wall_s", "cpu_s", "gpu_s", "forwards", "backwards"]].sum(min_count=1)
        sums["memory"] = by_step["peak_memory_mib"].max()
        sums = sums.reset_index().sort_values("wall_s", ascending=False)
        columns = [
            named("Step", "step"),
            named("Measure", "measure"),
            valued("Seconds", "wall_s"),
            valued("CPU seconds", "cpu_s"),
            valued("GPU seconds", "gpu_s"),
            valued("Memory, MiB", "memory"),
            counted("Forward passes", "forwards"),
            counted("Gradients", "backwards"),
        ]
        yield Detail("What it cost, step by step, over all models", table=table_of(sums, "Costs", "costs", columns))
    terms = [
        (
            printable(name),
            _meaning(measure_of(settings)),
        )
        for name, settings in c.measures.items()
    ]
    yield Detail("What each measure means", terms=terms)
    yield Detail(
        "What each metric means",
        terms=[
            (
                metric.title,
                f"{metric.explanation}{f' Here lambda is {c.fp_lambda:g}.' if 'lam' in metric.needs else ''}",
            )
            for metric in METRICS.values()
        ],
    )
    yield Detail("Limits: what this page does not say", text=limits.limits_of(c.tables, c.measures))
    excluded = [(printable(model["model"]), text(model["reason"])) for model in c.verdict.get("excluded", [])]
    if excluded:
        yield Detail("Models left out, and why", terms=excluded)
    yield judged.basis_of(c.verdict)
    for heading, values in c.provenance.items():
        yield Detail(f"Provenance: {heading}", terms=terms_of(values))
    links = [(f"{name}.csv", f"{name}.csv") for name in downloads(c.tables)]
    yield Detail(
        "Downloads: every table of this audit",
        links=[("verdict.json", "verdict.json"), ("config.yaml", "config.yaml"), ("figures/", "figures"), *links],
    )
    if c.contact:
        yield Detail("Contact", text=[printable(c.contact)])


def _meaning(measure):
    return f"{measure.title}: {measure.unit}, higher is better. {measure.explanation}"


def downloads(tables: AuditTables) -> Iterable[str]:
    """Names of the tables that an audit has, each a CSV file beside the page."""
    whole = (
        "class_scores",
        "model_summary",
        "vulnerability",
        "comparisons",
        "model_comparisons",
        "confusions",
        "class_errors",
        "similarities",
        "sensitivity",
        "calibration",
    )
    return [*(name for name in whole if getattr(tables, name) is not None), *tables.measures]
