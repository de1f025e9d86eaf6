"""Findings of an audit, from its tables and its verdict, and the verdict with them."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from gfscore.audit.agreement.falsification import REFUTED, mean_scores_against_distances
from gfscore.audit.agreement.rank_correlations import correlation_over_models
from gfscore.audit.calibration.evidence import ROBUST, alone
from gfscore.audit.findings.finding import Finding, FindingInWords, others_equal, ties
from gfscore.audit.findings.words import lowered
from gfscore.audit.groups.scores import group_gaps
from gfscore.audit.remedies.findings import finding_of, remedies_in_short
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.gate_rules import INCONCLUSIVE, PASS
from gfscore.audit.verdicts.verdict import (
    ATTACK_FREE,
    ATTACKED,
    EVIDENCE_INTERVAL,
    PROVEN,
    Judgement,
    Measures,
    Verdict,
    evidence_interval_of,
    has_attacks,
    headline_measure,
)
from gfscore.core.identity import ALL, UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_count, model_labels
from gfscore.measures import names_of_kind
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import ClassSamples, worst_class_set, worst_classes
from gfscore.statistics.multiple_tests import is_significant
from gfscore.statistics.tolerances import FEW_MODELS, TIE_TOLERANCE

HALF = 0.5
"""A model that passes is said to fall where its accuracy under attack is surely below this."""

FEW = 20
"""A class is said to have few samples below this number: an interval of 95% is then wider than 0.4 at one half."""

MOST_NAMED = 3
"""Largest number of models or classes that a finding names."""

KEY = ["threat", "model"]

QUALIFYING_KINDS = ("passing_model_falls", "no_attack", "passes_on_attacks", "few_samples")
"""Kinds of findings that are appended to the verdict's sentence, because it would mislead without them."""


def with_findings(verdict: Verdict, tables: AuditTables, measures: Measures) -> Verdict:
    """The verdict with the findings of the audit.

    Parameters
    ----------
    verdict : Verdict
        Verdict without findings.
    tables : AuditTables
        Tables of the audit.
    measures : mapping of str to NamedMeasure
        Every measure of the audit by name.

    Returns
    -------
    Verdict
        `sentence` continues with the findings of QUALIFYING_KINDS: a model that passes falls under attack, no measure
        attacks, models pass because attacks failed, or classes have few samples.
    """
    findings = [FindingInWords.of(finding) for finding in findings_of(tables, verdict, measures)]
    sentence = verdict.sentence
    for qualification in qualifying_sentences(findings):
        sentence += f" But {lowered(qualification)}."
    return verdict.model_copy(update={"sentence": sentence, "findings": findings})


def qualifying_sentences(findings: Sequence[FindingInWords]) -> list[str]:
    """Sentences of the findings without which the verdict would mislead."""
    sentences = []
    for finding in findings:
        # "no_attack" qualifies only a verdict on an attack-free score.
        if finding.kind == "no_attack" and not finding.subject["attack_free"]:
            continue
        if finding.kind in QUALIFYING_KINDS:
            sentences.append(finding.sentence)
    return sentences


def findings_of(tables: AuditTables, verdict: Judgement, measures: Measures) -> list[Finding]:
    """Every finding of an audit, by rank.

    Parameters
    ----------
    tables : AuditTables
        Tables of the audit.
    verdict : Judgement
        What the gate decides.
    measures : mapping of str to NamedMeasure
        Every measure of the audit by name.
    """
    judged = verdict.judged_measure(measures)
    class_scores = tables.of_measure("class_scores", judged)
    # Findings count the samples that have a value.
    class_scores["n"] -= class_scores["n_missing"]
    findings = [
        *_of_attacks(tables, verdict, measures, judged),
        *_of_distances(tables, verdict),
        *_of_certificates(tables),
        *_of_masking(tables),
        *_of_classes(class_scores, verdict, judged, highest=measures[judged].description.value_range[1]),
        *_of_groups(tables, judged),
        *_of_models(tables, judged),
        *_of_metrics(tables, judged),
        *_of_few_samples(class_scores, judged),
        *_of_undecided(tables, verdict),
        *_of_calibration(tables),
        *_of_remedies(tables),
    ]
    # Findings of one kind stay together.
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    return sorted(findings, key=lambda finding: (finding.rank, kinds.index(finding.kind)))


# ---- attacks ----


def _of_attacks(tables: AuditTables, verdict: Judgement, measures: Measures, judged: str) -> Iterator[Finding]:
    # Accuracies of the adversarial measures, in the order of config, with upper bounds for all of them together.
    names = names_of_kind(measures, ATTACKED)
    measured = tables.model_summary[tables.model_summary["measure"].isin(names)]
    measured = measured.assign(label=model_labels(measured))
    measured = measured.sort_values("measure", key=lambda column: column.map(names.index), kind="stable")
    # Of models left out too; see AuditValues.left_out.
    family_size = len(measured) + len(names) * len(verdict.excluded)
    classes = tables.class_scores.groupby(["measure", *KEY], sort=False)
    bounds = []
    for row in measured.itertuples():
        classes_of_model = classes.get_group((row.measure, row.threat, row.model))
        bounds.append(_upper_bound(classes_of_model, (1 - row.confidence) / family_size))
    measured = measured.assign(attacked=measured["value"], bound=bounds, source=measured["measure"], bounded=True)
    # Robust accuracies that checkpoints or leaderboards state.
    published = tables.of_measure("model_summary", headline_measure(measures))
    published = published.assign(label=model_labels(published))
    published = published[published["robust_accuracy"].notna()]
    source = published["robust_accuracy_source"]
    source = source.where(source != "published", "as published").fillna("robust accuracy")
    accuracy = published["robust_accuracy"]
    published = published.assign(attacked=accuracy, bound=accuracy, source=source, bounded=False)

    if not has_attacks(measures):
        subject = {
            "measure": judged,
            "attack_free": measures[judged].kind.name == ATTACK_FREE,
            "stated": published["source"].iloc[0] if len(published) else None,
        }
        yield Finding("no_attack", subject)
    yield from _passes_on_attacks(tables, verdict, measures)
    # A verdict on attacked or proven accuracy already accounts for attacks.
    if measures[judged].kind.name not in (ATTACKED, PROVEN, EVIDENCE_INTERVAL):
        for finding in _passing_model_falls(measured if len(measured) else published, verdict):
            yield _of_smallest_values(finding, tables, [str(finding.subject["source"])])

    # The order of models is compared with published accuracies where several models have one, else with measured ones.
    reference = published if len(published[KEY].drop_duplicates()) > 1 else measured
    attacked = reference.drop_duplicates(KEY)[[*KEY, "attacked", "source"]]
    # No correction for multiple tests: which attack is compared is fixed beforehand.
    for name in names_of_kind(measures, ATTACK_FREE):
        models = tables.of_measure("model_summary", name)[[*KEY, "value"]].merge(attacked, on=KEY)
        if len(models) < FEW_MODELS:
            continue
        rho, clear = correlation_over_models(models["value"], models["attacked"])
        if clear and rho < 0:
            subject = {"measure": name, "source": models["source"].iloc[0]}
            finding = Finding("order_reversed", subject, {"rho": rho, "models": len(models)})
            yield _of_smallest_values(finding, tables, [name, *names] if reference is measured else [name])


def _of_smallest_values(finding: Finding, tables: AuditTables, measures: Sequence[str]) -> Finding:
    # A finding on the smallest values that undecided samples of these measures allow says so where there are any.
    return finding.as_failures() if any(map(tables.undecided, measures)) else finding


def _passes_on_attacks(tables: AuditTables, verdict: Judgement, measures: Measures) -> Iterator[Finding]:
    # The first rule under which models pass because attacks failed, and what is proven of the worst class of each.
    for rule in verdict.rules:
        passing = [model.key for model in rule.models_with(PASS)]
        if not passing or measures[rule.measure].kind.name != ATTACKED:
            continue
        interval = evidence_interval_of(rule.measure, measures)
        numbers = {"passing": len(passing), "least": None, "most": None}
        if interval is not None:
            proven = tables.of_measure("model_summary", interval).set_index(KEY).loc[passing, "wcr"]
            numbers |= {"least": proven.min(), "most": proven.max()}
        yield Finding("passes_on_attacks", {"measure": rule.measure, "interval": interval}, numbers)
        return


def _upper_bound(classes: pd.DataFrame, alpha: float) -> float:
    # Upper bound of the mean of a 0/1 measure over all samples, from the rows of class_scores of a model.
    n = classes["n"].to_numpy()
    ones = np.rint(n * classes["value_most"].fillna(0)).astype(np.int64)
    values = np.repeat(np.tile([1.0, 0.0], len(n)), np.column_stack([ones, n - ones]).ravel())
    rates = classes["label_error_rate"].to_numpy(dtype=np.float64)
    bounds = ClassBounds(
        samples=ClassSamples(values=values, n=n),
        value_range=(0.0, 1.0),
        method=classes["interval"].iloc[0],
        label_error_rates=None if np.isnan(rates).all() else rates,
    )
    return bounds.upper_aggregate(alpha)


def _passing_model_falls(robustness: pd.DataFrame, verdict: Judgement) -> Iterator[Finding]:
    verdicts = verdict.model_verdicts
    keys = zip(robustness["threat"], robustness["model"], strict=True)
    # dtype=bool, since an empty list would index columns.
    passes = np.array([verdicts.get(key) == PASS for key in keys], dtype=bool)
    low = robustness[passes & (robustness["bound"].to_numpy() < HALF)]
    if low.empty:
        return

    lowest = low.sort_values("attacked", kind="stable").iloc[0]
    numbers = {
        "accuracy": lowest["attacked"],
        "high": lowest["bound"],
        "others": len(low.drop_duplicates(KEY)) - 1,
    }
    yield Finding(
        "passing_model_falls",
        {"model": lowest["label"], "source": lowest["source"]},
        numbers,
        lowest["confidence"] if lowest["bounded"] else None,
    )


def _of_distances(tables: AuditTables, verdict: Judgement) -> Iterator[Finding]:
    table = tables.named("falsification")
    uncalibrated = table["calibration"] == UNCALIBRATED
    rows_of_models = table[(table["class_index"] == ALL) & uncalibrated & table["rate"].notna()]
    for (score, distances), rows in rows_of_models.groupby(["measure", "distances"], sort=False):
        if rows["rate"].max() == 0:
            continue
        states = mean_scores_against_distances(rows, left_out=len(verdict.excluded))
        numbers = {
            "models": len(rows),
            "refuted": int((states == REFUTED).sum()),
            "least": rows["rate"].min(),
            "most": rows["rate"].max(),
        }
        subject = {"score": score, "distances": distances}
        yield Finding("score_refuted", subject, numbers, float(rows["confidence"].iloc[0]))


def _of_certificates(tables: AuditTables) -> Iterator[Finding]:
    table = tables.named("refutations")
    beyond = table[~table["within_chance"].astype(bool)]
    for measure, rows in beyond.groupby("measure", sort=False):
        numbers = {"refuted": int(rows["refuted"].sum()), "n": int(rows["attacked"].sum())}
        yield Finding("certificates_refuted", {"measure": measure}, numbers)


def _of_masking(tables: AuditTables) -> Iterator[Finding]:
    signs = tables.named("masking_signs")
    if signs.empty:
        return
    first = signs.sort_values("proof", ascending=False, kind="stable").iloc[0]
    label = _labels_of_models(tables)[first["threat"], first["model"]]
    subject = {"model": label, "measure": first["measure"], "proof": bool(first["proof"])}
    numbers = {
        "count": int(first["count"]),
        "n": int(first["n"]),
        "models": len(signs[KEY].drop_duplicates()),
    }
    yield Finding("gradients_masked", subject, numbers)


# ---- classes and groups ----


def _of_classes(class_scores: pd.DataFrame, verdict: Judgement, measure: str, *, highest: float) -> Iterator[Finding]:
    classes = class_scores.drop_duplicates("class_index").sort_values("class_index")
    names = dict(zip(classes["class_index"], readable_classes(list(classes["class_name"])), strict=True))
    class_names = class_scores["class_index"].map(names)
    class_scores = class_scores.assign(class_name=class_names, label=model_labels(class_scores))
    models = {}
    for key, rows in class_scores.groupby(KEY, sort=False):
        if (rows["n"] > 0).any():
            models[key] = rows
    if not models:
        return

    shown_model = verdict.shown_model
    rows = models[shown_model] if shown_model in models else next(iter(models.values()))
    absent = list(rows.loc[rows["n"] == 0, "class_name"])
    if absent:
        numbers: dict[str, object] = {"count": len(absent), "classes": len(rows)}
        yield Finding("classes_without_samples", {"classes": absent[:MOST_NAMED]}, numbers)

    # Classes with samples of the model that is shown, the lowest first; of equal ones what attacks leave less of.
    measured = rows[rows["n"] > 0].sort_values(["value", "value_most", "class_index"])
    if len(measured) < 2:
        return
    lowest = measured.iloc[0]
    following = measured.iloc[1]
    times = 0
    settled = True
    for rows_of_model in models.values():
        measured_of_model = rows_of_model[rows_of_model["n"] > 0]
        values = measured_of_model["value"]
        most = measured_of_model["value_most"]
        is_lowest = measured_of_model["class_name"] == lowest["class_name"]
        times += int(is_lowest[values <= values.min() + TIE_TOLERANCE].any())
        surely = is_lowest.iloc[worst_classes(values, most)].any()
        possibly = is_lowest[values <= most.min() + TIE_TOLERANCE].any()
        settled &= bool(surely == possibly)
    is_open = measured["value_most"] > measured["value"]
    numbers = {
        "value": lowest["value"],
        "most": lowest["value_most"],
        "low": lowest["low"],
        "high": lowest["high"],
        "highest": highest,
        "next": following["value"],
        # No distance is known where samples are open.
        "gap": None if is_open.iloc[:2].any() else following["value"] - lowest["value"],
        **({} if is_open.any() else others_equal(measured["value"], lowest["value"])),
        "suspects": len(worst_class_set(measured["low"], measured["high"])),
        "classes": len(measured),
        "absent": len(absent),
        "models": len(models),
        "times": times,
    }
    subject = {
        "model": lowest["label"],
        "measure": measure,
        "class": lowest["class_name"],
        "next": following["class_name"],
    }
    different = measured["low"].max() > measured["high"].min()
    confidence = None if math.isnan(lowest["confidence"]) else float(lowest["confidence"])
    finding = Finding("weakest_class" if different else "no_weakest_class", subject, numbers, confidence)
    yield finding if settled else finding.as_failures()


def _of_few_samples(class_scores: pd.DataFrame, measure: str) -> Iterator[Finding]:
    # Models may lack different samples.
    fewest = class_scores.groupby("class_index")["n"].min()
    few = fewest[(fewest > 0) & (fewest < FEW)]
    if len(few):
        numbers = {"count": len(few), "classes": len(fewest), "least": int(few.min()), "below": FEW}
        yield Finding("few_samples", {"measure": measure}, numbers)


def _of_groups(tables: AuditTables, judged: str) -> Iterator[Finding]:
    gaps = group_gaps(tables.of_measure("group_scores", judged))
    if gaps["sampled_gap"].isna().all():
        return

    gaps = gaps.assign(label=model_labels(gaps))
    different = gaps[gaps["sure_gap"].notna()]
    pair = "sure" if len(different) else "sampled"
    widest = gaps.sort_values(f"{pair}_gap", ascending=False, kind="stable").iloc[0]
    subject = {
        "model": widest["label"],
        "attribute": widest["attribute"],
        "measure": judged,
        "lowest": widest[f"{pair}_lowest"],
        "highest": widest[f"{pair}_highest"],
    }
    numbers = {
        "low_value": widest[f"{pair}_low_value"],
        "high_value": widest[f"{pair}_high_value"],
        "sure": len(different[KEY].drop_duplicates()),
        "models": len(gaps[KEY].drop_duplicates()),
        "compared": len(gaps),
    }
    finding = Finding("groups_differ", subject, numbers, float(widest["confidence"]))
    yield _of_smallest_values(finding, tables, [judged])


# ---- models ----


def _of_models(tables: AuditTables, measure: str) -> Iterator[Finding]:
    ranks = tables.of_measure("rank_intervals", measure)
    if len(ranks) < 2:
        return
    labels = pd.Series(model_labels(ranks), index=ranks.index)
    best = ranks[ranks["rank_best"] == 1].sort_values("rank")
    confidence = float(ranks["confidence"].iloc[0])

    pairs = tables.of_measure("model_comparisons", measure)
    different = 0
    if len(pairs):
        different = int(is_significant(pairs["p_holm"], level=1 - confidence).sum())
    numbers = {"models": len(ranks), "best": len(best), "pairs": len(pairs), "different": different}
    subject = {"measure": measure, "models": list(labels.loc[best.index[:MOST_NAMED]])}
    kind = "no_best_model" if len(best) == len(ranks) else "best_models"
    yield Finding(kind, subject, numbers, confidence)


def _of_metrics(tables: AuditTables, measure: str) -> Iterator[Finding]:
    summary = tables.of_measure("model_summary", measure)
    if len(summary) < FEW_MODELS:
        return
    rho_rdi, clear_rdi = correlation_over_models(summary["value"], summary["rdi"])
    for metric in ("nrgc", "rdi_over_mean"):
        rho, clear = correlation_over_models(summary["value"], summary[metric])
        if clear_rdi and clear and rho_rdi * rho < 0:
            subject = {"measure": measure, "metric": metric}
            finding = Finding("metrics_disagree", subject, {"rdi": rho_rdi, "other": rho, "models": len(summary)})
            yield _of_smallest_values(finding, tables, [measure])
            return


def _of_undecided(tables: AuditTables, verdict: Judgement) -> Iterator[Finding]:
    labels = _labels_of_models(tables)
    for place, rule in enumerate(verdict.rules, start=1):
        undecided = rule.models_with(INCONCLUSIVE)
        if not undecided:
            continue
        needed = []
        lacking = 0
        open_samples = []
        for model in undecided:
            if model.samples_needed_per_class is not None:
                needed.append(model.samples_needed_per_class)
            elif model.classes_without_samples:
                lacking += 1
            elif model.open_samples is not None and model.open_samples.cause:
                open_samples.append(model.open_samples.count)
        numbers = {
            "count": len(undecided),
            "of": len(rule.models),
            "least": min(needed, default=None),
            "most": max(needed, default=None),
            "known": len(needed),
            "lacking": lacking,
            "held": len(open_samples),
            "most_open": max(open_samples, default=None),
        }
        if len(verdict.rules) > 1:
            numbers |= {"rule": place, "rules": len(verdict.rules)}
        names = [labels[model.key] for model in rule.best_first(undecided)]
        unit = "group" if rule.attribute else "class"
        subject = {"models": names[:MOST_NAMED], "rule": rule.words, "unit": unit}
        yield Finding("undecided_models", subject, numbers, rule.confidence)


def _of_calibration(tables: AuditTables) -> Iterator[Finding]:
    # Agreement with robust accuracy: of the best calibrated score, of clean accuracy alone, and of the score at T = 1.
    summary = tables.model_summary
    if model_count(summary[summary["robust_accuracy"].notna()]) < FEW_MODELS:
        return
    results = tables.calibration_results
    calibrated = {}
    for name, result in results.items():
        rho = result.agreement_with(ROBUST).after
        if rho is not None:
            calibrated[name] = rho
    if not calibrated:
        return

    best = max(calibrated, key=lambda name: calibrated[name])
    rho = calibrated[best]
    uncalibrated = results[best].agreement_with(ROBUST).before
    # The same for every objective.
    accuracy_alone = results[best].baseline.get(alone(ROBUST))
    if accuracy_alone is None:
        return

    no_gain = uncalibrated is not None and uncalibrated >= rho
    if rho <= 0 or accuracy_alone >= rho or no_gain:
        subject = {"objective": best, "measure": results[best].measure}
        numbers = {"after": rho, "before": uncalibrated, "alone": accuracy_alone}
        numbers["tied_objectives"] = ties(calibrated.values(), rho)
        yield Finding("calibration_useless" if rho <= 0 else "calibration_fails", subject, numbers)


def _of_remedies(tables: AuditTables) -> Iterator[Finding]:
    remedies = remedies_in_short(tables.named("remedy_models"), tables.named("remedy_classes"))
    for row in remedies.to_dict("records"):
        yield finding_of(row)


def _labels_of_models(tables: AuditTables) -> dict[tuple[str, str], str]:
    # Labels of all models of the audit, by threat and name.
    models = tables.model_summary.drop_duplicates(KEY)
    return dict(zip(zip(models["threat"], models["model"], strict=True), model_labels(models), strict=True))
