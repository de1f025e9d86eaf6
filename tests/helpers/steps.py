"""The files of an audit between its steps, from made tables of values per sample and from made logits."""

from zlib import crc32

import numpy as np
import pandas as pd

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.samples import write_scores
from gfscore.audit.scoring import LogitCheck
from gfscore.audit.settings import IntervalSettings, TemperatureGrid
from gfscore.audit.step_params import LogitChanges, TableSettings
from gfscore.audit.table_names import TABULATED
from gfscore.audit.tabulation import Tabulation
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import MODEL, ModelName, label_of
from gfscore.images.corruptions.catalogue import corrupt
from gfscore.measures import kind_of, named_measures
from gfscore.measures.samples import table_of
from gfscore.statistics.draws import RowGenerators, seeds_of_samples
from gfscore.tables.parquet_tables import read_table, typed_frame, write_logits, write_table
from gfscore.tables.table import DATASET
from gfscore.workflow.catalogue import CATALOGUE
from judge_audit import judge_audit
from score_models import score_models
from tabulate_audit import tabulate_audit

AUDIT, DIGEST = "toy-audit", "d"
INTERVALS = IntervalSettings()
SETTINGS = {
    "intervals": INTERVALS,
    "disparity": {"fp_lambda": 0.5, "permutations": 99, "seed": 0},
    "comparison": {"confidence": 0.95, "most": 1000},
    "confusions": {"shuffles": 19, "models": 5, "seed": 0},
    "calibration": None,
    "groups": None,
    "corruption_baseline": None,
    "label_error_rate": None,
    "costs": [],
}
"""The table_settings of a PlannedAudit, but for what it says of each model."""

SEARCH = {
    "objectives": ["cross_model_accuracy", "within_model_class_accuracy", "ranking_stability", "likelihood"],
    "split": None,
    "distances": None,
    "temperatures": {"low": 0.01, "high": 10.0, "coarse_step": 0.1, "fine_step": 0.001, "fine_radius": 0.1},
    "stability_window": 0.05,
    "permutations": 99,
}
"""Its part `calibration`, of an audit that searches temperatures."""

UNPUBLISHED = {"published": None, "tolerance": 0.01, "samples": None, "on_failure": "stop"}
"""Check of logits whose accuracy nobody has published."""


NAMES = ["cat", "dog", "frog", "ship"]
MEASURES = {"clean": {"kind": "clean"}, "great": {"kind": "great", "activation": "softmax"}}


def models_named(*names, dataset="toy", threat="none"):
    """Models by their names, as mappings with dataset, threat, model."""
    return [{"dataset": dataset, "threat": threat, "model": name} for name in names]


def made_logits(index, *, n=120):
    """Logits (n, 4) of a model, the more accurate the higher its number, and labels (n,), those of every model."""
    labels = np.random.default_rng(0).integers(0, len(NAMES), n).astype(np.int32)
    logits = np.random.default_rng(1 + index).normal(size=(n, len(NAMES))).astype(np.float32)
    logits[np.arange(n), labels] += 1 + index
    return logits, labels


def audit_inputs(folder, models, measures, tables, *, logits=None, included=None, about=None, **settings):
    """AuditValues of made tables, whose files are written to a folder.

    `tables` maps (model name, measure) to a data frame, of which columns that it lacks are null, and nothing is
    censored; `logits` maps names of models to (sample_id, labels, logits), where any are read; `included` are labels of
    the models that take part, by default all; `about` maps a measure to what its file says of itself beside the model.
    The dataset has the samples of all of these, in order. Other settings are those of AuditValues.
    """
    identities, paths, parts, samples = {}, {}, [], []
    dataset = folder / "dataset.parquet"
    listed = [
        pd.DataFrame({"sample_id": [], "label": []}),
        *(frame[["sample_id", "label"]] for frame in tables.values()),
    ]
    listed += [pd.DataFrame({"sample_id": of[0], "label": of[1]}) for of in (logits or {}).values()]
    write_dataset(dataset, pd.concat(listed).drop_duplicates("sample_id"))
    for model in models:
        label, name = label_of(model), model["model"]
        identities[label] = {**model, "dataset_digest": DIGEST, "checkpoint_sha256": f"c-{name}"}
        paths[label] = f"results/logits/{MODEL.format(**model)}.parquet"
        if logits:
            paths[label] = folder / f"logits-{name}.parquet"
            columns = dict(zip(("sample_id", "label", "logits"), logits[name], strict=True))
            write_logits(paths[label], **columns, identity=identities[label])
        for measure, entry in measures.items():
            if kind_of(entry).needs == "measures":
                continue
            frame = tables[name, measure].astype({"value": float})
            frame = frame if "censored" in frame else frame.assign(censored=False)
            own = (about or {}).get(measure, {})
            if kind_of(entry).needs == "logits" and settings.get("supplied", {}).get(label) != "samples":
                identities[label] |= own
                parts.append((ModelName.from_columns(model), measure, frame))
                continue
            samples.append(folder / f"{measure}-{name}.parquet")
            table, identity = table_of(entry["kind"]), {**model, "measure": measure, **own}
            write_table(samples[-1], table, frame.reindex(columns=table.column_names), identity=identity)
    about_all = {"audit": AUDIT, "dataset_digest": DIGEST, "logits": identities}
    write_scores(folder / "scores.parquet", parts, identity=about_all)
    taking_part = [label_of(model) for model in models] if included is None else included
    write_json(folder / "models.json", {"included": taking_part, "excluded": [], "guessing": []})
    written = {"selection": folder / "models.json", "scores": folder / "scores.parquet", "samples": samples}
    params = {"models": models, "measures": measures, "logits": paths, **settings}
    return AuditValues(subject=AuditSubject.parse(params), dataset=dataset, **written)


def write_manifest(path, class_names, *, samples=0):
    """Manifest of the dataset."""
    made = {"dataset": "toy", "digest": DIGEST, "samples": samples, "classes": list(class_names), "settings": {}}
    write_json(path, made)


def write_dataset(path, frame):
    """Table dataset of a data frame with sample_id and label, and image_digest where there are images."""
    frame = frame.reindex(columns=DATASET.column_names)
    write_table(path, DATASET, frame, identity={"dataset": "toy", "dataset_digest": DIGEST})


def frames_of(tables):
    """Tables of an audit as data frames, by name, from their rows."""
    return {name: typed_frame(CATALOGUE[name], rows) for name, rows in tables.items()}


def tabulated(inputs, class_names, *, methods=None, **settings):
    """Tables that an audit measures for as data frames, by name, from its AuditValues.

    `methods` are the training methods of the models; `settings` are those of Tabulation, or of its TableSettings.
    """
    models = [model.columns() | {"method": None} for model in inputs.subject.models] if methods is None else methods
    own = {name: settings.pop(name) for name in tuple(settings) if name in TableSettings.model_fields}
    unknown = {"robust_accuracy": float("nan"), "robust_accuracy_source": None}
    accuracies = dict.fromkeys(inputs.subject.models, unknown)
    tabulation = Tabulation(
        audit_values=inputs,
        class_names=class_names,
        settings=TableSettings(**SETTINGS | {"methods": models} | own),
        accuracies=accuracies,
        **settings,
    )
    return frames_of({name: frame for group in tabulation.tables({}) for name, frame in group.frames.items()})


class ScoredAudit:
    """Files of an audit of models with logits, and its steps from logits to tables and the verdict.

    `logits` maps names of models to (logits, labels); `given` names those that come as files of somebody else;
    `settings` stand in place of SETTINGS. What else the steps are given stands in attributes.
    """

    def __init__(self, path, logits, class_names, measures, *, calibrated=None, given=(), **settings):
        self.path, self.measures, self.calibrated = path, measures, calibrated
        self.models = models_named(*logits)
        self.labels = next(iter(logits.values()))[1]
        self.given = {f"none/{name}": "logits" for name in given}
        ends = {name: "npy" if name in given else "parquet" for name in logits}
        self.logits = {f"none/{name}": path / f"logits/{name}.{end}" for name, end in ends.items()}
        self.manifest, self.dataset = path / "toy.json", path / "toy.parquet"
        self.checks = [
            {"model": model, "gate": UNPUBLISHED, "member": None, "allow_probabilities": False} for model in self.models
        ]
        self.trained = []
        unknown = [{"published_clean_accuracy": None, "published_robust_accuracy": None}] * len(self.models)
        methods = [model | {"method": None} for model in self.models]
        self.settings = SETTINGS | {"published": unknown, "methods": methods} | settings
        write_manifest(self.manifest, class_names, samples=len(self.labels))
        frame = pd.DataFrame({"sample_id": self.ids, "label": self.labels})
        write_dataset(self.dataset, frame)
        for model in self.models:
            self.write_logits(model["model"], *logits[model["model"]])

    @property
    def ids(self):
        """Names of the samples."""
        return np.array([f"toy-{row}" for row in range(len(self.labels))])

    def write_logits(self, name, logits, labels, **identity):
        """Write the logits of one model; `identity` is what they say of themselves in place of what is right."""
        (model,), path = models_named(name), self.logits[f"none/{name}"]
        path.parent.mkdir(exist_ok=True)
        if f"none/{name}" in self.given:
            np.save(path, logits)
        else:
            known = {**model, "dataset_digest": DIGEST, "checkpoint_sha256": f"c-{name}"}
            write_logits(path, sample_id=self.ids, label=labels, logits=logits, identity=known | identity)

    def table(self, name):
        """Path of a table or, with its ending, another file of the audit."""
        return self.path / "audit" / (name if "." in name else f"{name}.parquet")

    @property
    def scored(self):
        """Paths that score_models writes, and that of the dataset."""
        made = {name: self.path / f"{name}.parquet" for name in ("scores", "sweeps")} | {"dataset": self.dataset}
        return made | {"selection": self.table("models.json"), "sensitivity": self.table("sensitivity")}

    @property
    def subject(self):
        """Subject of the audit, as params of a PlannedAudit."""
        named = {"models": self.models, "measures": self.measures, "calibrated_measure": self.calibrated}
        return named | {"supplied": self.given, "logits": self.logits}

    def inputs(self, **changes):
        """AuditValues of the scored audit."""
        return AuditValues.from_params(self.subject | changes, self.scored)

    def score(self):
        """Run score_models; returns the contents of models.json."""
        score_models(
            AuditFiles(manifest=self.manifest, dataset=self.dataset),
            self.scored,
            audit=AUDIT,
            subject=AuditSubject.parse(self.subject),
            checks=[LogitCheck.parse(check) for check in self.checks],
            temperatures=TemperatureGrid(),
            changes=LogitChanges(shifts=[-1, 0, 5], scales=[0.5, 2], lam=0.5),
            cache=self.path / "cache",
        )
        return read_json(self.scored["selection"])

    def tabulate(self):
        """Run tabulate_audit."""
        beside = {"generator": None, "attributes": None, "mappers": [], "projections": []}
        made = {name: self.table(name) for name in TABULATED}
        made |= {f"{name}_json": self.table(f"{name}.json") for name in ("calibration", "comparison")}
        given = self.scored | beside | {"manifest": self.manifest, "manifests": self.trained}
        values = AuditValues.from_params(self.subject, given)
        tabulate_audit(
            values, AuditFiles.from_inputs(given), made, audit=AUDIT, settings=TableSettings(**self.settings)
        )

    def judge(self, rules):
        """Run judge_audit after tabulate; returns the verdict."""
        path = self.table("verdict.json")
        inputs = self.inputs(calibrated_measure=None)
        how = {"rules": parsed_rules(rules), "intervals": INTERVALS, "label_error_rates": None, "fp_lambda": 0.5}
        tables = self.folder.tables()
        files = AuditFiles(manifest=self.manifest)
        judge_audit(inputs, files, path, tables=tables, measures=named_measures(self.subject["measures"]), **how)
        return read_json(path)

    @property
    def folder(self):
        """Folder of the audit."""
        return AuditFolder(self.path / "audit", AUDIT)

    def read(self, name):
        """Table of the audit as a data frame."""
        return read_table(self.table(name), CATALOGUE[name], expect={"audit": AUDIT})


def three_models(path, **settings):
    """ScoredAudit of the models weak, middle and strong, whose logits are those of made_logits."""
    logits = {name: made_logits(index) for index, name in enumerate(("weak", "middle", "strong"))}
    return ScoredAudit(path, logits, NAMES, MEASURES, **{"calibrated": "great"} | settings)


def write_copies(folder, pixels, labels, corruptions, *, seed=0):
    """Write <corruption>.npy, (5 N, H, W, C), and labels.npy (5 N,) of images (N, C, H, W) uint8; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    images = pixels.astype(np.float32) / np.float32(255)
    seeds = seeds_of_samples(seed, "corruption", np.arange(len(images)))
    for corruption in corruptions:
        copies = [
            corrupt(images, corruption, severity, rng=RowGenerators(seeds, crc32(corruption.encode()) * 8 + severity))
            for severity in range(1, 6)
        ]
        stored = np.rint(255 * np.concatenate(copies)).astype(np.uint8)
        np.save(folder / f"{corruption}.npy", stored.transpose(0, 2, 3, 1))
    np.save(folder / "labels.npy", np.tile(labels, 5))
    return folder
