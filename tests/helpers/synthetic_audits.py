"""Tables of synthetic audits as data frames, made of random logits and random classifiers by the real functions.

A small audit whole; tables of groups and projections, of errors, curves, targets and refutations with planted weaknesses;
and audits that have something for every chart, of any number of models and classes, with any names.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from gfscore.audit.agreement.radii import curve_frame
from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.calibration.evidence import ModelEvidence
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.calibration_results import as_json
from gfscore.audit.class_scores import class_score_table, vulnerability_table
from gfscore.audit.classwise.confusion import Predictions, confusion_tables
from gfscore.audit.classwise.similarity import similarity_table
from gfscore.audit.groups.metrics import MACRO, WORST
from gfscore.audit.model_summary import model_summary_table
from gfscore.audit.remedies.gains import PairedOutcomes, ReferenceClasses
from gfscore.audit.remedies.tables import Choice, MeasuredRemedy, remedy_tables
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.sensitivity import lambda_swaps, model_sensitivity, with_places
from gfscore.audit.settings import ConfusionSettings, DisparitySettings, IntervalSettings, TemperatureGrid
from gfscore.audit.step_params import LogitChanges, TrainedModel
from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.audit.tables import AuditTables
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.candidates import candidates_of
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.audit.verdicts.judging import judge
from gfscore.audit.verdicts.verdict import Evidence, Verdict, digests_of
from gfscore.core.files import write_json
from gfscore.core.identity import ALL, ALL_NAME, ModelName, label_of
from gfscore.measures import named_measures
from gfscore.show.charts.declaration import Subject
from gfscore.show.figure_files import DrawnAudit
from gfscore.show.page.report import PageSettings
from gfscore.statistics.classes import class_values, split_samples
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions, scores
from gfscore.tables.csv_files import write_table_and_csv
from gfscore.tables.parquet_tables import stacked, typed_frame
from gfscore.workflow.catalogue import CATALOGUE
from helpers.configurations import gate_rule

MEASURES = {
    "clean": {"kind": "clean"},
    "great-softmax": {"kind": "great", "activation": "softmax"},
    "great-sigmoid": {"kind": "great", "activation": "sigmoid"},
}
CERTIFIED_SCORE = {"certified": {"kind": "certified", "largest_radius": 2.0}}
OBJECTIVES = ("cross_model_accuracy", "within_model_class_accuracy", "ranking_stability", "likelihood")
SEARCH = TemperatureGrid(low=0.01, high=10, coarse_step=0.1, fine_step=0.01, fine_radius=0.1)
SHIFTS = [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0]
SCALES = [0.25, 0.5, 1.0, 2.0, 4.0]
LAM = 0.5
INTERVALS = IntervalSettings()
AUDIT = "synthetic"
SEARCHED = ("calibration", "sensitivity")
"""Tables that stay empty here where no temperature is searched."""


@dataclass
class SyntheticAudit:
    """Tables of one audit, as data frames and mappings, with the models and measures behind them."""

    class_scores: pd.DataFrame
    model_summary: pd.DataFrame
    vulnerability: pd.DataFrame
    calibration: pd.DataFrame
    calibration_results: dict
    sensitivity: pd.DataFrame
    verdict: Verdict
    models: list
    measures: dict

    def write(self, folder, *, made_from=()):
        """Write tables and JSON files of the audit into `folder` as the workflow does, those that it has not as empty.

        `made_from` is what its class scores say of the files behind them.
        """
        files = {name: folder / f"{name}.parquet" for name in TABLES_OF_AUDIT}
        own = {"class_scores": {"dataset_digest": "d" * 64, "made_from": list(made_from)}}
        for name, path in files.items():
            frame = getattr(self, name, None)
            measured = frame is not None and (bool(self.calibration_results) or name not in SEARCHED)
            identity = {"audit": AUDIT, "measured": measured, **own.get(name, {})}
            written = frame if measured else typed_frame(CATALOGUE[name], [])
            write_table_and_csv(path, CATALOGUE[name], written, identity=identity)
        verdict = self.verdict.model_copy(update={"made_from": digests_of([files["class_scores"]])})
        calibrations = as_json(self.calibration_results)
        contents = {"calibration": calibrations, "comparison": {}, "verdict": verdict.as_json()}
        included = (self.class_scores["threat"] + "/" + self.class_scores["model"]).unique().tolist()
        excluded = verdict.as_json()["excluded"]
        contents["models"] = {"included": included, "excluded": excluded, "guessing": verdict.guessing}
        for name, content in contents.items():
            write_json(folder / f"{name}.json", content)
        return AuditFolder(folder, AUDIT)

    def drawn(self, folder):
        """What its figures are drawn from, once it is written into `folder`."""
        subject = {"models": self.models, "measures": self.measures}
        return DrawnAudit(folder=self.write(folder), subject=subject, fp_lambda=LAM)

    @property
    def named(self):
        """Its measures as NamedMeasure by name."""
        return named_measures(self.measures)

    def page_settings(self, **changes):
        """PageSettings of it."""
        models = [TrainedModel(**model) for model in self.models]
        settings = {"title": "A synthetic audit", "measures": self.named, "models": models, "fp_lambda": LAM}
        return PageSettings(**settings | changes)

    def of(self, table, measure="great-softmax", calibration="none"):
        """Rows of one table for one measure and calibration."""
        frame = getattr(self, table)
        return frame[(frame["measure"] == measure) & (frame["calibration"] == calibration)].reset_index(drop=True)


def random_logits(rng, *, skill, difficulty, per_class):
    """Logits (N, K) whose true class stands out by skill - difficulty_k on average, and labels (N,)."""
    labels = np.repeat(np.arange(len(difficulty)), per_class).astype(np.int32)
    logits = rng.normal(size=(len(labels), len(difficulty))).astype(np.float32)
    logits[np.arange(len(labels)), labels] += (skill - np.asarray(difficulty))[labels]
    return logits, labels


def synthetic_audit(
    *,
    models=5,
    classes=10,
    per_class=40,
    weak_class=None,
    model_names=None,
    class_names=None,
    measures=tuple(MEASURES),
    calibrated=True,
    empty_class=None,
    lacking_class=None,
    all_wrong=False,
    permutations=99,
    at_least=0.05,
    rules=None,
    excluded=(),
    warned=(),
    guessing=(),
    seed=0,
):
    """Audit of `models` random classifiers on `classes` classes, as a SyntheticAudit.

    `weak_class` makes one class much harder in every model; `empty_class` has no samples, `lacking_class` none in the
    first model, as imported samples may; with `all_wrong` no sample is classified correctly, so that every score is 0;
    `calibrated` searches temperatures as well. The gate has `rules`, by default one on the first score or measure with
    `at_least`, and `excluded` models, and those that are `warned` of or `guessing`, as models.json has them.
    """
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(scale=0.35, size=classes)
    if weak_class is not None:
        difficulty[weak_class] = difficulty.max() + 2.5
    counts = np.full(classes, per_class)
    if empty_class is not None:
        counts[empty_class] = 0
    skills = [-40.0] * models if all_wrong else np.linspace(2.2, 4.2, models) + np.log10(classes)
    names = list(model_names or (f"model_{index}" for index in range(models)))
    subjects = [{"dataset": "toy", "threat": "none", "model": name} for name in names]
    drawn = [random_logits(rng, skill=skill, difficulty=difficulty, per_class=counts) for skill in skills]
    if lacking_class is not None:
        logits, labels = drawn[0]
        drawn[0] = logits[labels != lacking_class], labels[labels != lacking_class]
    robust = [(index + 0.5) / (models + 1) for index in range(models)]

    measured = {name: (MEASURES | CERTIFIED_SCORE)[name] for name in measures}
    great = next((name for name, settings in measured.items() if settings["kind"] == "great"), None)
    results, curves = {}, typed_frame(CATALOGUE["calibration"], [])
    if great and calibrated:
        evidence = [_evidence(*item, MEASURES[great]) for item in zip(subjects, drawn, robust, strict=True)]
        given = {"settings": SEARCH, "stability_window": 0.05, "permutations": 99}
        results, curves = calibrate(evidence, OBJECTIVES, measure=great, **given)

    values = _Values(subjects, drawn, measured, great, results)
    class_names = list(class_names or (str(index) for index in range(classes)))
    class_scores = class_score_table(values.every(), class_names, intervals=INTERVALS, label_error_rates=None)
    accuracies = {
        ModelName.from_columns(subject): {
            "robust_accuracy": value,
            "robust_accuracy_source": "PGD, linf 0.15, 20 steps",
        }
        for subject, value in zip(subjects, robust, strict=True)
    }
    settings = DisparitySettings(fp_lambda=LAM, permutations=permutations, seed=seed)
    rules = parsed_rules(rules or [gate_rule(great or next(iter(measured)), at_least=at_least)])
    selection = {"excluded": excluded, "warned": warned, "guessing": guessing}
    candidates = candidates_of(values.every(), class_names, rules=rules, intervals=INTERVALS, label_error_rates=None)
    return SyntheticAudit(
        class_scores=class_scores,
        model_summary=model_summary_table(list(values.every()), class_scores, accuracies, settings, INTERVALS),
        vulnerability=vulnerability_table(class_scores),
        calibration=curves,
        calibration_results=results,
        sensitivity=_sensitivity(values),
        verdict=Verdict.of(
            judge(candidates, rules, lam=LAM, selection=selection),
            _verdict_evidence(subjects, drawn, {rule.measure for rule in rules}),
        ),
        models=[{**subject, "method": "random", "architecture": "none"} for subject in subjects],
        measures=measured,
    )


def _verdict_evidence(subjects, drawn, judged):
    # Without files, since there are none here.
    models = {
        label_of(subject): {
            "checkpoint_sha256": "c" * 64,
            "measures": {measure: {"samples": len(labels), "settings_sha256": "e" * 64} for measure in sorted(judged)},
        }
        for subject, (_, labels) in zip(subjects, drawn, strict=True)
    }
    dataset = {"name": "toy", "digest": "d" * 64, "rows": len(drawn[0][1])}
    return Evidence.model_validate(
        {"time": "2026-01-01T12:00:00+00:00", "dataset": dataset, "models": models, "made_from": {}}
    )


@dataclass
class _Values:
    """Stands in for gfscore.audit.values.AuditValues, without files."""

    models: list
    drawn: list
    measures: dict
    great: str
    results: dict

    def every(self):
        for subject, pair in zip(self.models, self.drawn, strict=True):
            for measure, settings in self.measures.items():
                temperature = 1.0 if settings["kind"] == "great" else None
                yield self._one(subject, pair, measure, "none", temperature)
            for objective, result in self.results.items():
                temperature = result.temperature_of(label_of(subject))
                if temperature is not None:
                    yield self._one(subject, pair, self.great, objective, temperature)

    def _one(self, subject, pair, *key):
        measure, calibration, temperature = key
        logits, labels = pair
        correct, settings = predictions(logits, labels) == labels, self.measures[measure]
        values = correct.astype(float)
        if settings["kind"] == "great":
            values = scores(logits, labels, activation=settings["activation"], temperature=temperature)
        if settings["kind"] == "certified":
            values = correct * np.clip(logits.max(axis=1) / 4, 0, settings["largest_radius"])
        sample_id = np.array([f"toy-{row}" for row in range(len(labels))])
        return SampleValues.decided(
            ModelName.from_columns(subject),
            named_measures({measure: settings})[measure],
            values,
            ExpectedSamples.each_once(sample_id, labels),
            correct=correct,
            calibration=calibration,
            temperature=temperature,
            fresh=calibration == "none",
        )


def _evidence(subject, pair, robust, settings):
    logits, labels = pair
    curves = sweep_class_scores(
        *pair, logits.shape[1], activation=settings["activation"], low=SEARCH.low, high=SEARCH.high
    )
    correct = predictions(logits, labels) == labels
    held_out = split_samples(np.arange(len(labels)), labels, share=0.5, rng=np.random.default_rng(0))
    return ModelEvidence(
        name=label_of(subject),
        curves=curves,
        class_accuracy=class_values(correct, labels, logits.shape[1]).mean,
        attack_distance=robust / 2,
        report_curves=curves,
        clean_accuracy=float(correct.mean()),
        report_distance=robust / 2,
        robust_accuracy=robust,
        checkpoint="c" * 64,
        dataset_digest="d" * 64,
        read_parts=lambda: tuple((logits[part], labels[part]) for part in (held_out, ~held_out)),
    )


def _sensitivity(values):
    classifiers = [(subject, *drawn) for subject, drawn in zip(values.models, values.drawn, strict=True)]
    great = {name: entry["activation"] for name, entry in values.measures.items() if entry["kind"] == "great"}
    changes = LogitChanges(shifts=SHIFTS, scales=SCALES, lam=LAM)
    return with_places([model_sensitivity(*each, great, changes) for each in classifiers])


ATTRIBUTES = {"side": ["left", "right"], "size": ["tiny", "normal", "huge"]}
DIMENSIONS = ["z0", "z1", "slant=left"]
OTHER_TASK = "another-task"
METRICS = ("dp", "eopp", "eodd", "aodd")


def grouped_tables(audit, attributes=ATTRIBUTES, dimensions=DIMENSIONS):
    """The tables group_* and projection_* of an audit as data frames, by name.

    Group g of attribute a of model m has the value 0.5 + 0.1 a + 0.05 g + 0.01 m, 0.04 on either side; the last group
    of the last attribute has few samples, and none in the last class; class k of a group has its value less 0.02 k. Metric i has 0.1 (1 + a) + 0.02 i. Dimension d has the Tolerance
    0.9 - 0.1 d + 0.01 m and the Deviation 0.05 (1 + d); by class k, the mean Tolerance is 0.01 k less and the mean
    Deviation the same. For OTHER_TASK, whose own attribute is the last one, Tolerances are 0.1 less.
    """
    keys = [{key: model[key] for key in ("dataset", "threat", "model")} for model in audit.models]
    classes = audit.class_scores.drop_duplicates("class_index").set_index("class_index")["class_name"].to_dict()
    scores = [
        row
        for m, key in enumerate(keys)
        for name in audit.measures
        for row in _groups(key, name, m, attributes, classes)
    ]
    metrics = [row for m, key in enumerate(keys) for row in _metrics(key, attributes)]
    projected = [row for m, key in enumerate(keys) for row in _projected(key, m, dimensions, classes)]
    models = [
        {
            **key,
            "mapper": "vae",
            "n": 100,
            "dimensions": len(dimensions),
            "constant": False,
            "tolerance": row["tolerance"],
        }
        for key, row in zip(
            keys, (row for row in projected if row["dimension_index"] == row["class_index"] == ALL), strict=True
        )
    ]
    attributes_of_tasks = [row for m, key in enumerate(keys) for row in _tasks(key, m, attributes, dimensions)]
    models += [row | {"dataset": OTHER_TASK, "tolerance": row["tolerance"] - 0.1, "dp": 0.2} for row in models]
    effects = [
        {"mapper": "vae", "dimension_index": d, "dimension": name, "sigma": 1.0, "trait": trait, "how": "measured",
         "shift": shift, "strength": abs(shift)}
        for d, name in enumerate(dimensions) for trait, shift in (("contrast", 0.1), ("brightness", -0.5))
    ]  # fmt: skip
    frames = {"group_scores": scores, "group_metrics": metrics, "projection_scores": projected}
    frames |= {"projection_models": models, "projection_effects": effects}
    frames |= {"projection_attributes": attributes_of_tasks}
    return {name: typed_frame(CATALOGUE[name], rows) for name, rows in frames.items()}


def _groups(key, measure, m, attributes, classes):
    for a, (attribute, groups) in enumerate(attributes.items()):
        for g, group in enumerate(groups):
            few = a == len(attributes) - 1 and g == len(groups) - 1
            value = 0.5 + 0.1 * a + 0.05 * g + 0.01 * m
            row = {**key, "measure": measure, "attribute": attribute, "group_index": g, "group": group}
            row |= {
                "class_index": ALL,
                "class_name": "all",
                "n": 8 if few else 200,
                "value": value,
                "low": value - 0.04,
            }
            row |= {"high": value + 0.04, "interval": "betting", "confidence": 0.95, "small": few, "left_out": 5 * a}
            yield row
            for place, (index, name) in enumerate(classes.items()):
                own = {"class_index": index, "class_name": name, "n": row["n"] // len(classes)}
                if few and place == len(classes) - 1:
                    yield row | own | {"n": 0, "value": None, "low": 0.0, "high": 1.0}
                else:
                    moved = {end: row[end] - 0.02 * place for end in ("value", "low", "high")}
                    yield row | own | moved


def _metrics(key, attributes):
    for a, attribute in enumerate(attributes):
        for i, metric in enumerate(METRICS):
            value = 0.1 * (1 + a) + 0.02 * i
            row = {**key, "measure": "clean", "attribute": attribute, "class_index": ALL, "metric": metric, "n": 400}
            row |= {"wilson_low": value - 0.03, "wilson_high": value + 0.03, "confidence": 0.95, "small": a > 0}
            row |= {"value": value, "as_printed": value / 2, "smallest_cell": 30}
            yield row | {"class_name": MACRO}
            yield row | {"class_name": WORST, "value": 2 * value}


def _tasks(key, m, attributes, dimensions):
    for task, less in ((key["dataset"], 0.0), (OTHER_TASK, 0.1)):
        shared = {**key, "dataset": task, "mapper": "vae", "n": 100, "constant": False}
        for d, name in enumerate(dimensions):
            moved = {"tolerance": 0.9 - 0.1 * d + 0.01 * m - less, "deviation": 0.05 * (1 + d), "censored": 0.8}
            yield shared | moved | {"attribute": name, "own": False, "dimensions": 1}
        for a, name in enumerate(attributes):
            own = task == OTHER_TASK and a == len(attributes) - 1
            differing = {"dp": 0.1 * (1 + a), "eopp": None if own else 0.1 * (1 + a) + 0.02}
            yield shared | differing | {"attribute": name, "own": own, "dimensions": 0}


def _projected(key, m, dimensions, classes):
    beside = {"censored": 0.8, "agreement": 0.9, "accuracy": 0.95, "decoded_accuracy": 0.85, "confidence": 0.95}
    own = [(0.9 - 0.1 * d + 0.01 * m, 0.05 * (1 + d)) for d in range(len(dimensions))]
    rows = [(ALL, "all", np.mean(own, axis=0)), *((d, name, own[d]) for d, name in enumerate(dimensions))]
    of_classes = [(ALL, "all", 0), *((index, name, place) for place, (index, name) in enumerate(classes.items()))]
    for index, class_name, less in of_classes:
        for place, name, (whole, deviation) in rows if index == ALL else rows[:1]:
            tolerance = whole - 0.01 * less
            yield {
                **key, "mapper": "vae", "dimension_index": place, "dimension": name, "class_index": index,
                "class_name": class_name, "n": 100, "tolerance": tolerance, "tolerance_low": tolerance - 0.03,
                "tolerance_high": tolerance + 0.03, "deviation": deviation, "up": tolerance, "down": tolerance,
                "tolerance_agreeing": tolerance, **beside,
            }  # fmt: skip


MINIMAL = {"kind": "minimal", "norm": "l2", "largest_distance": 2.0}
CERTIFIED = {
    "kind": "certified",
    "smoothing": {"sigma": 0.25, "estimation_samples": 1000, "alpha": 0.001},
}
CORRUPTION = {"kind": "corruption"}
TARGETED = {"kind": "targeted", "norm": "linf", "eps": 0.1}


def subjects(count, names=None):
    """Identities of `count` models."""
    return [
        {"dataset": "toy", "threat": "none", "model": name} for name in names or (f"model_{i}" for i in range(count))
    ]


def class_names(classes):
    """Names of the classes: c0, c1, ..."""
    return [f"c{k}" for k in range(classes)]


def error_tables(
    *, models=3, classes=10, per_class=60, accuracy=0.7, taken=(3, 5), names=None, corrupted=False, seed=0
):
    """Tables confusions, class_errors and similarities; class taken[0] is always called taken[1]."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    conditions = [(kind, severity) for kind in ("fog", "glass_blur") for severity in (1, 5)] if corrupted else [None]
    predicted = []
    for model in subjects(models, names):
        parts = []
        for condition in conditions:
            skill = accuracy - 0.3 * (condition is not None and condition[0] == "glass_blur")
            guesses = np.where(rng.random(len(labels)) < skill, labels, rng.integers(classes, size=len(labels)))
            if taken:
                guesses[labels == taken[0]] = taken[1]
            part = pd.DataFrame(
                {"sample_id": [f"s{i}" for i in range(len(labels))], "label": labels, "prediction": guesses}
            )
            parts.append(part.assign(corruption=condition[0], severity=condition[1]) if condition else part)
        measure, samples = "corruption" if corrupted else "clean", pd.concat(parts, ignore_index=True)
        predicted.append(Predictions(ModelName.from_columns(model), measure, samples, corrupted, corrupted))
    confusions, errors = confusion_tables(predicted, class_names(classes))
    similarities = similarity_table(predicted, class_names(classes), ConfusionSettings(shuffles=39))
    return {"confusions": confusions, "class_errors": errors, "similarities": similarities}


def radius_tables(settings, *, models=3, classes=10, per_class=30, weak=2, names=None, seed=0):
    """Tables radius_curves and class_scores of one measure.

    The radii of class `weak` are a third of the others', those of later models longer.
    """
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    curves, scores = [], []
    for index, model in enumerate(subjects(models, names)):
        radius = rng.beta(2, 4, size=len(labels)) * (0.6 + 0.2 * index) * np.where(labels == weak, 1 / 3, 1)
        samples = pd.DataFrame({"label": labels, "value": radius, "censored": False})
        key = {**model, "measure": settings["kind"]}
        measure = named_measures({settings["kind"]: settings})[settings["kind"]]
        curve = curve_frame(samples, class_names(classes), measure=measure, confidence=0.95)
        curves.append(curve.assign(**key))
        scores += [
            {**key, "calibration": "none", "class_index": k, "class_name": name, "n": per_class}
            | {"value": (mean := radius[labels == k].mean()), "low": mean - 0.03, "high": mean + 0.03}
            for k, name in enumerate(class_names(classes))
        ]
    return stacked(CATALOGUE["radius_curves"], curves), typed_frame(CATALOGUE["class_scores"], scores)


def target_tables(*, models=2, classes=6, easiest=4, seed=0):
    """Tables target_matrix and target_success of random attacks; target `easiest` is reached four times as often."""
    rng = np.random.default_rng(seed)
    cells, success = [], []
    for model in subjects(models):
        key = {**model, "measure": "targeted"}
        matrix = rng.uniform(0, 0.2, size=(classes, classes))
        matrix[:, easiest] = 0.8
        for source, target in (pair for a, b in combinations(range(classes), 2) for pair in ((a, b), (b, a))):
            cells.append({**key, "source_index": source, "target_index": target, "success": matrix[source, target]})
        others = ~np.eye(classes, dtype=bool)
        success += [
            {**key, "class_index": k, "class_name": class_names(classes)[k], "n": 50 * (classes - 1)}
            | {"success": matrix[others[:, k], k].mean(), "clean": 0.01, "excess": 0.0, "among_misclassified": 0.0}
            | {"cfps": 0.1, "miss_rate": 0.1}
            for k in range(classes)
        ]
    return {
        "target_matrix": typed_frame(CATALOGUE["target_matrix"], cells),
        "target_success": typed_frame(CATALOGUE["target_success"], success),
    }


def falsification_table(scores, distances, *, p_mean=0.001):
    """Table falsification at T = 1 of models with these mean scores and distances; p_mean where the score is larger."""
    rows = [
        {**model, "measure": "great-softmax", "distances": "minimal", "calibration": "none", "temperature": 1.0}
        | {"class_index": ALL, "class_name": ALL_NAME, "n": 100, "correct": 90, "violations": 45, "rate": 0.5}
        | {"low": 0.39, "high": 0.61, "confidence": 0.95, "censored": 0, "mean_score": score, "mean_distance": distance}
        | {"p_mean": p_mean if score > distance else 1.0}
        for model, score, distance in zip(subjects(len(scores)), scores, distances, strict=True)
    ]
    return typed_frame(CATALOGUE["falsification"], rows)


ATTACKED = "adversarial-linf"
ADVERSARIAL = {"kind": "adversarial", "norm": "linf", "eps": 0.1}
REMEDY_GAIN = 0.3


def remedied(names, class_names, *, gain=REMEDY_GAIN, per_class=150, strengths=(0.25, 0.5, 0.75, 1.0), verdicts=None):
    """Tables of remedies of models by name, for the measure ATTACKED.

    The first class of each model is the worst before, at 0.1, and gains `gain` at strength 1; the last one is the best,
    at 0.8, and loses as much. `verdicts` are those of models and of their adjusted ones, "<name> adjusted".
    """
    remedies = [_remedy(name, class_names, gain, per_class, strengths) for name in names]
    return remedy_tables(remedies, class_names, verdicts=verdicts or {}, intervals=INTERVALS)


def _remedy(name, class_names, gain, per_class, strengths):
    before = np.linspace(0.1, 0.8, len(class_names))
    moved = np.zeros(len(class_names))
    moved[[0, -1]] = gain, -gain
    original = _robust(name, before, per_class)
    adjusted = {strength: _robust(f"{name} adjusted", before + strength * moved, per_class) for strength in strengths}
    right = np.ones(len(original.low))
    clean = PairedOutcomes.decided(right, right, original.labels, classes=len(before))
    choice = Choice(
        offsets=10 * (moved - moved.mean()),
        reference=ReferenceClasses(before, before + moved),
        objective="worst_class",
        class_weights=None,
        forwards=90_000,
    )
    return MeasuredRemedy(original=original, adjusted=adjusted, clean=clean, choice=choice, audit_forwards=30_000)


def _robust(name, shares, per_class):
    labels = np.repeat(np.arange(len(shares)), per_class)
    robust = np.tile(np.arange(per_class), len(shares)) < per_class * shares[labels]
    expected = ExpectedSamples.each_once(np.arange(len(labels)).astype(str), labels)
    measure = named_measures({ATTACKED: ADVERSARIAL})[ATTACKED]
    return SampleValues.decided(ModelName("toy-judging", "none", name), measure, robust, expected, correct=robust)


GREAT = "great-softmax"
MODEL = {"dataset": "toy", "threat": "none"}
FEW_MEASURES = {"clean": {"kind": "clean"}, GREAT: {"kind": "great"}}


def subject_of(tables, measure=None, *, measures=None, **settings):
    """Subject of tables by name, and of calibration_results."""
    own = {name: frame for name, frame in tables.items() if name in AuditTables.__dataclass_fields__}
    others = {name: frame for name, frame in tables.items() if name not in own and frame is not None}
    needed = {name: own.pop(name, None) for name in ("class_scores", "model_summary", "vulnerability")}
    found = AuditTables(**needed, **own, others=others)
    return Subject(found, named_measures(measures or FEW_MEASURES), LAM, measure=measure, **settings)


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
    tables |= remedied(names, list(audit.class_scores.drop_duplicates("class_index")["class_name"]), per_class=20)
    others = {"minimal": MINIMAL, "certified": CERTIFIED, "corruption": CORRUPTION, "targeted": TARGETED}
    others[ATTACKED] = ADVERSARIAL
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


def scores_of(values, *, most=None, half=0.05, n=None, measure=GREAT):
    """Table class_scores of models by classes (M, K), with intervals of that half width; NaN: no samples, any value.

    `most` (M, K) are values with undecided samples at the most that they may be worth.
    """
    values = np.asarray(values, dtype=float)
    most = values if most is None else np.asarray(most, dtype=float)
    names = "ABC" if len(values) < 4 else [f"m{index:03d}" for index in range(len(values))]
    rows = []
    for m, k in np.ndindex(values.shape):
        value, known = values[m, k], not np.isnan(values[m, k])
        row = MODEL | {"model": names[m], "measure": measure, "calibration": "none", "class_index": k}
        row |= {"class_name": f"c{k}", "n": (n[k] if n else 10) if known else 0, "value": value, "confidence": 0.95}
        row |= {"value_most": most[m, k], "low": value - half if known else 0.0}
        rows.append(row | {"high": most[m, k] + half if known else 1.25})
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
