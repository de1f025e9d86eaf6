"""The verdict on an audit: PASS, FAIL or INCONCLUSIVE, with a stated confidence."""

from collections import Counter

import numpy as np

from gfscore.classes import ClassValues
from gfscore.intervals import class_intervals, correct_for_label_errors, samples_for_half_width
from gfscore.measures import measure_of

METHOD = "hoeffding"


def judge(class_scores, rules, *, measures, excluded=()):
    """Judge every rule of a gate for every model.

    Takes the table class_scores, `rules` (mappings with measure, at_least, confidence), each measure's settings, and
    `excluded`, the models that models.json leaves out. A model passes when the lower bound of its WCR at T = 1 reaches
    the threshold, fails when the upper bound misses it, and is undecided between. With probability at least the
    smallest `confidence` of the rules no model passes or fails wrongly: alpha is split evenly over rules and models,
    and over classes by the union bound. Source: audit rule of GF-Score, Definition 4; bounds of its Eq. 11.
    """
    judged = [
        _judge_rule(class_scores, rule, measure_of(measures[rule["measure"]]), rules=len(rules)) for rule in rules
    ]
    verdict = combine([model["verdict"] for rule in judged for model in rule["models"]])
    sentence = _sentence(verdict, judged, len(excluded))
    return {"verdict": verdict, "sentence": sentence, "rules": judged, "excluded": list(excluded)}


def combine(verdicts):
    """FAIL if anything fails, PASS if everything passes, INCONCLUSIVE otherwise."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "PASS" if verdicts and all(verdict == "PASS" for verdict in verdicts) else "INCONCLUSIVE"


def _judge_rule(class_scores, rule, measure, *, rules):
    rows = class_scores[(class_scores["measure"] == rule["measure"]) & (class_scores["calibration"] == "none")]
    groups = rows.groupby(["threat", "model"], sort=False)
    alpha = (1 - rule["confidence"]) / (rules * groups.ngroups)
    models = [
        {
            "threat": threat,
            "model": model,
            **_judge_model(group.sort_values("class_index"), rule, measure.value_range, alpha),
        }
        for (threat, model), group in groups
    ]
    return {
        "measure": rule["measure"],
        "statistic": "wcr",
        "at_least": rule["at_least"],
        "confidence": rule["confidence"],
        "interval": METHOD,
        "words": _words(rule),
        "verdict": combine([model["verdict"] for model in models]),
        "models": models,
    }


def _judge_model(classes, rule, value_range, alpha):
    values = ClassValues(
        n=classes["n"].to_numpy(), mean=classes["value"].to_numpy(), variance=classes["variance"].to_numpy()
    )
    low, high = class_intervals(values, method=METHOD, alpha=alpha, value_range=value_range)
    known_rate = classes["label_error_rate"].notna().all()
    if known_rate:
        low, high = correct_for_label_errors(low, high, classes["label_error_rate"].to_numpy(), value_range=value_range)
    worst_low, worst_high = float(low.min()), float(high.min())
    verdict = "FAIL" if worst_high < rule["at_least"] else "INCONCLUSIVE"
    if worst_low >= rule["at_least"]:
        verdict = "PASS"
    worst = int(np.nanargmin(values.mean))
    distance = abs(float(values.mean[worst]) - rule["at_least"])
    needed = None
    # With label errors the interval does not shrink to a point, so no number of samples is promised.
    if verdict == "INCONCLUSIVE" and distance > 0 and not known_rate:
        needed = samples_for_half_width(
            distance, classes=len(values.n), alpha=alpha, width=value_range[1] - value_range[0]
        )
    return {
        "verdict": verdict,
        "value": float(values.mean[worst]),
        "low": worst_low,
        "high": worst_high,
        "worst_class": classes["class_name"].iloc[worst],
        "classes_without_samples": classes["class_name"][classes["n"] == 0].tolist(),
        "samples_needed_per_class": needed,
    }


def _words(rule):
    return (
        f"every class has a mean {rule['measure']} of at least {rule['at_least']:g}, "
        f"judged for all models together with {100 * rule['confidence']:g}% confidence"
    )


def _sentence(verdict, rules, excluded):
    parts = []
    for rule in rules:
        count = Counter(model["verdict"] for model in rule["models"])
        parts.append(
            f"of {len(rule['models'])} models {count['PASS']} pass, {count['FAIL']} fail, "
            f"{count['INCONCLUSIVE']} undecided (rule: {rule['words']})"
        )
    left_out = f"; {excluded} left out, which failed the gate on published accuracy" if excluded else ""
    return f"{verdict}: {'; '.join(parts)}{left_out}."
