"""Audits that have something for every chart, of any number of models and classes, with any names."""

from itertools import combinations

import numpy as np
import pandas as pd

from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.sensitivity import lambda_swaps
from gfscore.audit.tables import AuditTables
from gfscore.audit.values import SampleValues
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.show.charts.declaration import Subject
from grouped_tables import grouped_tables
from made_errors import (
    CERTIFIED,
    CORRUPTION,
    MINIMAL,
    TARGETED,
    error_tables,
    falsification_table,
    radius_tables,
    target_tables,
)
from synthetic import LAM, synthetic_audit

GREAT = "great-softmax"
MODEL = {"dataset": "toy", "threat": "none"}
MEASURES = {"clean": {"kind": "clean"}, GREAT: {"kind": "great"}}


def subject_of(tables, measure=None, *, measures=None, **settings):
    """Subject of tables by name, of which those that AuditTables has no field for are of what an audit measures."""
    own = {name: frame for name, frame in tables.items() if name in AuditTables.__dataclass_fields__}
    others = {name: frame for name, frame in tables.items() if name not in own}
    needed = {name: own.pop(name, None) for name in ("class_scores", "model_summary", "vulnerability")}
    found = AuditTables(**needed, **own, measures=others)
    return Subject(found, measures or MEASURES, LAM, measure=measure, **settings)


def full_subject(*, models=3, classes=6, names=None, class_names=None, empty=None, calibrated=True):
    """Subject of an audit with something for every chart but those that need other sizes."""
    names = list(names or (f"model_{index}" for index in range(models)))
    size = {"models": len(names), "classes": classes, "per_class": 12, "permutations": 19}
    audit = synthetic_audit(
        **size, model_names=names, class_names=class_names, measures=("clean", GREAT, "great-sigmoid"),
        calibrated=calibrated, empty_class=empty,
    )  # fmt: skip
    few = {"models": len(names), "classes": classes, "names": names}
    tables = {name: getattr(audit, name) for name in ("class_scores", "model_summary", "vulnerability", "sensitivity")}
    tables |= {"calibration": audit.calibration, "calibration_results": audit.calibration_results}
    clean, corrupted = error_tables(**few, per_class=10, taken=None), error_tables(**few, per_class=4, corrupted=True)
    for name in ("confusions", "class_errors", "similarities"):
        tables[name] = pd.concat([clean[name], corrupted[name]], ignore_index=True)
    curves = [radius_tables(settings, **few, weak=1) for settings in (MINIMAL, CERTIFIED)]
    tables["radius_curves"] = pd.concat([rows for rows, _ in curves], ignore_index=True)
    tables["class_scores"] = pd.concat([tables["class_scores"], *(scores for _, scores in curves)], ignore_index=True)
    tables |= target_tables(models=len(names), classes=classes, easiest=1) | grouped_tables(audit)
    tables["group_metrics"] = metrics_by_class(tables["group_metrics"], classes)
    distances = np.linspace(0.3, 1.2, len(names))
    refuted = falsification_table(distances[::-1], distances)
    tables["falsification"] = refuted.assign(model=[names[int(str(name)[6:])] for name in refuted["model"]])
    tables["lambda_swaps"] = swaps_of(audit.model_summary[audit.model_summary["calibration"] == "none"])
    tables |= compared(audit.model_summary[audit.model_summary["calibration"] == "none"])
    others = {"minimal": MINIMAL, "certified": CERTIFIED, "corruption": CORRUPTION, "targeted": TARGETED}
    return subject_of(
        tables, measures=audit.measures | others, measured={GREAT: drawn_of(names, classes)}, pictures={"vae": pictures(["z0", "z1"])}
    )  # fmt: skip


def compared(summary):
    """Tables of pairs of models, ranks and agreement of measures, of rows of model_summary at T = 1."""
    pairs, ranks = [], []
    for measure, own in summary.groupby("measure", sort=False):
        key = {"dataset": "toy", "measure": measure, "n": 50, "confidence": 0.95}
        rows = own.to_dict("records")
        for a, b in combinations(rows, 2):
            difference = a["value"] - b["value"]
            names = {
                "first_threat": "none",
                "first_model": a["model"],
                "second_threat": "none",
                "second_model": b["model"],
            }
            pairs.append(key | names | {"difference": difference, "low": difference - 0.1, "high": difference + 0.1})
        ranks += [
            {name: row[name] for name in ("dataset", "threat", "model", "measure", "confidence")}
            | {"rank_best": 1, "rank_worst": len(rows)}
            for row in rows
        ]
    agreement = [
        {"dataset": "toy", "over": "models", "first": a, "second": b, "n": 9, "rho": rho, "p": 0.2}
        | {"threat": None, "model": None}
        for (a, b), rho in zip(combinations(("clean", "great", "minimal"), 2), (0.9, -0.5, 0.1), strict=True)
    ]
    found = {"rank_intervals": pd.DataFrame(ranks), "measure_agreement": pd.DataFrame(agreement)}
    return found | ({"model_comparisons": pd.DataFrame(pairs)} if pairs else {})


def metrics_by_class(rows, classes):
    """Rows of group_metrics with those of each class, 0.01 less than those before it."""
    own = rows.drop_duplicates(["model", "attribute", "metric"])
    parts = [own.assign(class_index=k, class_name=f"c{k}", value=own["value"] - 0.01 * k) for k in range(classes)]
    return pd.concat([rows, *parts], ignore_index=True)


def swaps_of(summary):
    """Table lambda_swaps of rows of model_summary at T = 1."""
    rows = []
    for measure, own in summary.groupby("measure", sort=False):
        models = own["model"].tolist()
        for lam, before, after in lambda_swaps(own["class_mean"].to_numpy(), own["rdi"].to_numpy()):
            pair = {"before_model": models[before], "after_model": models[after]}
            rows.append({"dataset": "toy", "measure": measure, "fp_lambda": lam} | pair)
    return pd.DataFrame(rows, columns=["dataset", "measure", "fp_lambda", "before_model", "after_model"])


def scores_of(values, *, half=0.05, n=None, measure=GREAT):
    """Table class_scores of models by classes (M, K), with intervals of that half width; NaN: no samples, any value."""
    values = np.asarray(values, dtype=float)
    names = "ABC" if len(values) < 4 else [f"m{index:03d}" for index in range(len(values))]
    rows = []
    for m, k in np.ndindex(values.shape):
        value, known = values[m, k], not np.isnan(values[m, k])
        row = MODEL | {"model": names[m], "measure": measure, "calibration": "none", "class_index": k}
        row |= {"class_name": f"c{k}", "n": (n[k] if n else 10) if known else 0, "value": value, "confidence": 0.95}
        rows.append(row | {"low": value - half if known else 0.0, "high": value + half if known else 1.25})
    return pd.DataFrame(rows)


def drawn_of(names, classes):
    """SampleValues of random values, one per model."""
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(classes), 30)
    return [measured(rng.uniform(0, 1.2, size=len(labels)), labels, model=name) for name in names]


def measured(values, labels, *, model="M"):
    """SampleValues of an attack-free score at T = 1."""
    expected = ExpectedSamples.each_once(np.arange(len(values)).astype(str), labels)
    great = named_measures({GREAT: {"kind": "great"}})[GREAT]
    name = ModelName("toy", "none", model)
    return SampleValues.decided(name, great, values, expected, correct=values > 0, temperature=1)


def pictures(names):
    """Two images of 4x4 pixels whose last dimension moves every pixel by 200, the others by 0, 10, 20 and so on."""
    moves = np.zeros((2, len(names), 9, 1, 4, 4), dtype=np.uint8)
    for place in range(len(names)):
        moves[:, place, -1] = 200 if place == len(names) - 1 else 10 * place
    return {
        "originals": moves[:, 0, 0],
        "reconstructions": moves[:, 0, 0],
        "traversals": moves,
        "positions": np.linspace(-1, 1, 9),
        "names": np.array(names),
    }
