"""A small audit made of random logits by the real functions: the tables of results/audits/<audit>/ as data frames."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gfscore.audit.calibration.evidence import ModelEvidence
from gfscore.audit.calibration.temperature_search import SearchSettings
from gfscore.audit.calibration.temperatures import calibrate
from gfscore.audit.class_scores import class_score_table, vulnerability_table
from gfscore.audit.model_summary import model_summary_table
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.sensitivity import model_sensitivity, with_places
from gfscore.audit.settings import DisparitySettings, IntervalSettings, Resampling
from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.candidates import candidates_of
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.audit.verdicts.judging import judge
from gfscore.audit.verdicts.verdict import Evidence, Verdict, digests_of
from gfscore.core.files import write_json
from gfscore.core.identity import ModelName, label_of
from gfscore.measures import named_measures
from gfscore.statistics.classes import class_values, split_samples
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions, scores
from gfscore.tables.csv_files import write_table_and_csv
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE
from helpers.configurations import gate_rule

MEASURES = {
    "clean": {"kind": "clean"},
    "great-softmax": {"kind": "great", "activation": "softmax"},
    "great-sigmoid": {"kind": "great", "activation": "sigmoid"},
}
CERTIFIED = {"certified": {"kind": "certified", "largest_radius": 2.0}}
OBJECTIVES = ("cross_model_accuracy", "within_model_class_accuracy", "ranking_stability", "likelihood")
SEARCH = SearchSettings(low=0.01, high=10, coarse_step=0.1, fine_step=0.01, fine_radius=0.1)
RESAMPLING = Resampling(bootstrap=49, confidence=0.95, permutations=99)
SHIFTS = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0)
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
LAM = 0.5
INTERVALS = {
    "method": "betting", "binary": "clopper_pearson", "confidence": 0.95, "seed": 0, "bootstrap_resamples": 99,
}  # fmt: skip
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

        `made_from` is what its class scores say of the files behind them. Returns paths by the names that plot_figures
        and build_report give their inputs.
        """
        files = {name: folder / f"{name}.parquet" for name in TABLES_OF_AUDIT}
        own = {"class_scores": {"dataset_digest": "d" * 64, "made_from": list(made_from)}}
        for name, path in files.items():
            frame = getattr(self, name, None)
            measured = frame is not None and (bool(self.calibration_results) or name not in SEARCHED)
            identity = {"audit": AUDIT, "measured": measured, **own.get(name, {})}
            written = frame if measured else frame_of(CATALOGUE[name], [])
            write_table_and_csv(path, CATALOGUE[name], written, identity=identity)
        verdict = self.verdict.model_copy(update={"made_from": digests_of([files["class_scores"]])})
        contents = {"calibration": self.calibration_results, "comparison": {}, "verdict": verdict.as_json()}
        for name, content in contents.items():
            write_json(folder / f"{name}.json", content)
        files |= {f"{name}_json": folder / f"{name}.json" for name in ("calibration", "comparison")}
        return files | {"verdict": folder / "verdict.json"}

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

    measured = {name: (MEASURES | CERTIFIED)[name] for name in measures}
    great = next((name for name, settings in measured.items() if settings["kind"] == "great"), None)
    results, curves = {}, pd.DataFrame({"objective": [], "temperature": [], "value": []})
    if great and calibrated:
        evidence = [_evidence(*item, MEASURES[great]) for item in zip(subjects, drawn, robust, strict=True)]
        results, curves = calibrate(evidence, OBJECTIVES, settings=SEARCH, stability_window=0.05, resampling=RESAMPLING)
        results = {name: {"measure": great, **result} for name, result in results.items()}

    values = _Values(subjects, drawn, measured, great, results)
    class_names = list(class_names or (str(index) for index in range(classes)))
    class_scores = class_score_table(
        values.every(), class_names, intervals=IntervalSettings(**INTERVALS), label_error_rates=None
    )
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
        model_summary=model_summary_table(list(values.every()), class_scores, accuracies, settings),
        vulnerability=vulnerability_table(class_scores),
        calibration=frame_of(CATALOGUE["calibration"], curves.assign(measure=great)),
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
                temperature = (result["t_star_by_model"] or {}).get(label_of(subject), result["t_star"])
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
    how = {"shifts": SHIFTS, "scales": SCALES, "lam": LAM}
    return with_places([model_sensitivity(*each, values.measures, **how) for each in classifiers])
