"""The verdict on an audit: PASS, FAIL or INCONCLUSIVE, with a stated confidence."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.verdicts.candidates import Candidate
from gfscore.audit.verdicts.gate_rules import (
    FALSIFICATION,
    alpha_of,
    combine,
    evidence_of,
    range_of,
    statistic_of,
    threshold_of,
    verdict_of,
    words_of,
)
from gfscore.audit.verdicts.planning import samples_for_rule
from gfscore.audit.verdicts.verdict import digests_of
from gfscore.core.identity import label_of
from gfscore.core.names import enumeration
from gfscore.core.numbers import model_count
from gfscore.core.software import software

if TYPE_CHECKING:
    from gfscore.audit.values import AuditInputs


NOTE = (
    "The confidence covers the models listed here, judged on these samples at the looks that were planned. A model "
    "that was chosen, tuned or retrained because of an audit on these samples needs a gate on fresh ones."
)


MOST_NAMED = 3

MOST_REPEATED = 0.01
"""Share of rows that may repeat an image before the sentence says so."""

TOGETHER = "all classes"
"""Stands for the class in rules that judge all samples together."""


def judge(
    candidates: Sequence[Candidate],
    rules: Sequence[Mapping[str, Any]],
    *,
    lam: float,
    selection: Mapping[str, Any] | None = None,
    cautions: Sequence[str] = (),
) -> dict[str, Any]:
    """Judge every rule of a gate for every Candidate; returns the contents of verdict.json.

    Takes `rules` as config.yaml writes them, `lam` of FP, `selection`, the contents of models.json, and
    `cautions`, sentences on the measures that readers of the verdict must know. With probability at least the smallest
    `confidence` of the rules no model passes or fails wrongly, at any of the planned looks: alpha is split evenly over
    rules, models and looks. A model passes when the statistic's bound on the safe side reaches the threshold and fails
    when the bound on the other side misses it; each needs the whole alpha of the model, since the truth lies on one
    side only. `samples_needed_per_class` would probably settle what is undecided: `further_samples_needed` more in all
    while a look is left; after the last one that is None, and only a new audit on fresh samples may ask again.
    Label-error rates of a generator are bounds that fail with a probability of their own, 5%, which comes on top of
    1 - `confidence`. Source: audit rule of GF-Score, Definition 4; intersection-union test for a minimum, Berger 1982.
    """
    excluded, warned, guessing = ((selection or {}).get(name, []) for name in ("excluded", "warned", "guessing"))
    judged = [_judge_rule(candidates, rule, rules=len(rules), lam=lam) for rule in rules]
    verdict = combine([model["verdict"] for rule in judged for model in rule["models"]])
    return {
        "verdict": verdict,
        "sentence": " ".join([_sentence(verdict, judged, len(excluded), warned), *(f"{words}." for words in cautions)]),
        "stops": not judged or any(_stops(rule) for rule in judged),
        "note": " ".join([NOTE, *(f"{words}." for words in cautions)]),
        "rules": judged,
        "excluded": excluded,
        "warned": warned,
        "guessing": guessing,
        "software": software(),
    }


def _stops(rule):
    return rule["verdict"] == "FAIL" or (rule["verdict"] == "INCONCLUSIVE" and rule["on_inconclusive"] == "stop")


def _judge_rule(candidates, rule, *, rules, lam):
    alpha = alpha_of(rule, rules=rules, models=len(candidates))
    models = [_judge_model(candidate, rule, alpha, lam) for candidate in candidates]
    direction, threshold = threshold_of(rule)
    bounds = candidates[0].bounds[evidence_of(rule)]
    title = statistic_of(rule, class_names=candidates[0].class_names, lam=lam).title
    return {
        "measure": rule["measure"],
        "statistic": rule["statistic"],
        "class": rule.get("class"),
        "attribute": rule.get("attribute"),
        "direction": direction,
        "threshold": threshold,
        direction: threshold,
        "confidence": rule["confidence"],
        "looks": rule["looks"],
        "alpha": alpha,
        "on_inconclusive": rule["on_inconclusive"],
        "interval": bounds.method,
        "range": range_of(rule["statistic"], bounds.value_range, classes=len(bounds.n), lam=lam),
        "title": title,
        "words": words_of(rule, title),
        "verdict": combine([model["verdict"] for model in models]),
        "without_samples": _without_samples(models),
        "missing": _missing(models),
        "repeated": _repeated(models),
        "models": models,
    }


def _judge_model(candidate, rule, alpha, lam):
    bounds = candidate.bounds[evidence_of(rule)]
    names = candidate.names.get(evidence_of(rule), candidate.class_names)
    if len(bounds.n) != len(names):
        names = [TOGETHER]
    statistic = statistic_of(rule, class_names=names, lam=lam)
    values, only = bounds.samples.summary, statistic.only
    low, high = (float(end) for end in statistic.bounds(bounds, alpha))
    verdict = verdict_of(rule, low, high)
    needed = None
    if verdict == "INCONCLUSIVE":
        needed = samples_for_rule(bounds, rule, alpha=alpha, class_names=names, lam=lam)
    return {
        "threat": candidate.threat,
        "model": candidate.model,
        "verdict": verdict,
        "value": float(statistic.value(values)),
        "low": low,
        "high": high,
        "worst_class": _worst_class(values.mean, names, rule["statistic"]),
        "samples": _samples(candidate.counts.get(rule["measure"])),
        "classes_without_samples": [names[place] for place in np.flatnonzero(bounds.n == 0) if only in (None, place)],
        "samples_needed_per_class": needed,
        "further_samples_needed": needed and _further(needed, bounds.n, only) if _look_left(rule) else None,
    }


def _worst_class(means, names, statistic):
    if np.isnan(means).all():
        return None
    return names[int(np.nanargmax(means) if statistic == FALSIFICATION else np.nanargmin(means))]


def _look_left(rule):
    # After the last planned look, samples that are added to these may not be asked again.
    return rule["looks"]["this"] < rule["looks"]["planned"]


def _further(needed, n, only):
    missing = np.maximum(needed - n, 0)
    return int(missing.sum() if only is None else missing[only])


def _without_samples(models):
    # Which classes no samples were drawn of, whatever the verdict on the model: None where each has some.
    lacking = [model["classes_without_samples"] for model in models if model["classes_without_samples"]]
    if not lacking:
        return None
    names = list(dict.fromkeys(name for own in lacking for name in own))
    more = [f"{len(names) - MOST_NAMED:,} more"] if len(names) > MOST_NAMED else []
    whose = "" if len(lacking) == len(models) else f" for {len(lacking)} of {len(models)} models"
    return (
        f"no samples of {enumeration(names[:MOST_NAMED] + more)}{whose}, so that values there may be "
        "anything in the measure's range: only samples of them can show more"
    )


def _samples(counts):
    # By class in the order of the class names, and together.
    if counts is None:
        return None
    found = {name: of_classes.tolist() for name, of_classes in counts.items()}
    return {name: sum(by_class) for name, by_class in found.items()} | {"by_class": found}


def _missing(models):
    # How many samples have no value, and what they count as; None where each has one.
    counted = [model for model in models if model["samples"]]
    lacking = [model for model in counted if model["samples"]["measured"] < model["samples"]["expected"]]
    if not lacking:
        return None
    least = min(lacking, key=lambda model: model["samples"]["measured"] / model["samples"]["expected"])
    measured, expected = (f"{least['samples'][name]:,}" for name in ("measured", "expected"))
    whose = "" if len(models) == 1 else f"for {len(lacking)} of {len(models)} models, at worst {least['model']}, "
    return (
        f"{whose}only {measured} of {expected} samples have a value; a missing one counts as the worst for PASS and as "
        "the best for FAIL"
    )


def _repeated(models):
    # How many rows of the dataset repeat an image; None up to MOST_REPEATED.
    for model in models:
        if model["samples"] and model["samples"]["rows"] > (1 + MOST_REPEATED) * model["samples"]["expected"]:
            rows, expected = (f"{model['samples'][name]:,}" for name in ("rows", "expected"))
            return f"{rows} rows of the dataset are {expected} images, each of which counts once"
    return None


def _sentence(verdict, rules, excluded, warned):
    parts = []
    for rule in rules:
        count = Counter(model["verdict"] for model in rule["models"])
        parts.append(
            f"of {model_count(len(rule['models']))} {count['PASS']} pass, {count['FAIL']} fail, "
            f"{count['INCONCLUSIVE']} undecided (rule: {rule['words']})"
        )
        parts += [rule[name] for name in ("without_samples", "missing", "repeated") if rule[name]]
    left_out = f"; {excluded} left out, which failed the gate on published accuracy" if excluded else ""
    warnings = [f"Warning: {model['model']}: {model['reason']}." for model in warned[:MOST_NAMED]]
    if len(warned) > MOST_NAMED:
        warnings.append(f"Warnings of {len(warned) - MOST_NAMED} more.")
    return " ".join([f"{verdict}: {'; '.join(parts)}{left_out}.", *warnings])


def evidence(inputs: AuditInputs, manifest: Mapping[str, Any], files: Iterable[Path | str]) -> dict[str, Any]:
    """Entries of verdict.json that name the data, models and files of the verdict, and its time.

    Takes AuditInputs, the manifest of their dataset and the `files` that were read. Each model has the digest of its
    checkpoint, or of the file that its logits or values came in, and of every measure the number of samples in its
    table and the digest of its settings (SHA-256 of their JSON with sorted keys).
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": {"name": manifest["dataset"], "digest": manifest["digest"], "rows": manifest["samples"]},
        "models": {label_of(model): _model(own) for model, own in inputs.by_model()},
        "made_from": digests_of(files),
    }


def _model(own):
    measures = {
        name: {
            "samples": int(own[name]["sample_id"].nunique()),
            "settings_sha256": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest(),
        }
        for name, settings in own.measures.items()
    }
    checkpoint = next((own.identity(name).get("checkpoint_sha256") for name in own), None)
    return {"checkpoint_sha256": checkpoint, "measures": measures}
