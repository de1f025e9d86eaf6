"""What the workflow itself wrote: how a whole file is made, and what is done to read it."""

import json

import numpy as np

from faults.user_files import CLASSES, IDENTITY, LABELS, LOGITS, SAMPLES, npz_images
from gfscore.workflow.catalogue import CATALOGUE

SCORED = {"clean": 1.0, "great": 0.5}
"""Measures from logits, and what their values are here."""


def logits_table(folder):
    from gfscore.tables.parquet_tables import write_logits

    names = [f"s{i}" for i in range(SAMPLES)]
    write_logits(folder / "table.parquet", sample_id=names, label=LABELS, logits=LOGITS, identity=IDENTITY)
    return folder / "table.parquet"


def read_logits_table(path):
    from gfscore.tables.parquet_tables import read_logits

    return list(read_logits(path, expect=IDENTITY))


def samples():
    import pandas as pd

    values = {"value": np.linspace(0, 1, SAMPLES), "censored": False}
    names = [f"s{i}" for i in range(SAMPLES)]
    return pd.DataFrame({"sample_id": names, "label": LABELS, "prediction": LABELS, **values})


def samples_table(folder):
    from gfscore.tables.parquet_tables import write_table

    write_table(folder / "samples.parquet", CATALOGUE["samples"], samples(), identity=IDENTITY)
    return folder / "samples.parquet"


def read_samples_table(path):
    from gfscore.tables.parquet_tables import read_table

    frame = read_table(path, CATALOGUE["samples"], expect=IDENTITY)
    return [frame[name].to_numpy() for name in frame]


def scores_table(folder):
    from gfscore.audit.samples import write_scores
    from gfscore.core.identity import ModelName

    model = ModelName.from_columns(IDENTITY)
    parts = [(model, name, samples().assign(value=value)) for name, value in SCORED.items()]
    about = {"audit": "a", "classes": CLASSES, "logits": {"none/A": IDENTITY}}
    write_scores(folder / "scores.parquet", parts, identity=about)
    return folder / "scores.parquet"


def read_scores_table(path):
    from gfscore.audit.samples import ScoresFile
    from gfscore.core.identity import ModelName

    file = ScoresFile(path)
    frames = [file.read(ModelName.from_columns(IDENTITY), name) for name in SCORED]
    return [frame[name].fillna(-1).to_numpy() for frame in frames for name in frame]


def dataset_manifest(folder):
    from gfscore.core.files import write_json
    from gfscore.images.manifests import open_and_describe

    settings = {"source": "npz", "value_range": 255, "channels": "last", "subset": None}
    made = open_and_describe(settings, npz_images(folder), dataset="made", classes=CLASSES)[1]
    write_json(folder / "made.json", made)
    return folder / "made.json"


def read_dataset_manifest(path):
    from gfscore.images.datasets import load_all
    from gfscore.images.manifests import open_described

    images, manifest = open_described(path)
    load_all(images)
    return [np.array(manifest["classes"]), images.labels]


def model_manifest(folder):
    from gfscore.core.files import write_json
    from gfscore.networks.checkpoint_files import describe_checkpoint
    from helpers.configurations import place_graph

    settings = place_graph(folder, "graph", image_shape=(3, 8, 8), classes=len(CLASSES))
    settings |= {"path": str(folder / settings["path"])}
    write_json(
        folder / "A.json",
        describe_checkpoint(settings, identity={k: IDENTITY[k] for k in ("dataset", "threat", "model")}),
    )
    return folder / "A.json"


def read_model_manifest(path):
    from gfscore.core.files import read_json
    from gfscore.networks.classifier import open_classifier

    manifest = read_json(path)
    classifier = open_classifier(manifest, None, image_shape=(3, 8, 8), classes=len(CLASSES))
    assert classifier.logits(np.zeros((2, 3, 8, 8), np.float32)).shape == (2, 3)
    return [np.array(json.dumps({**manifest, "path": None, "files": None, "settings": None}))]


def selection_file(folder):
    from gfscore.audit.checks import CheckedModel, selection_of
    from gfscore.core.files import write_json
    from gfscore.core.identity import ModelName

    model = ModelName.from_columns(IDENTITY)
    checked = CheckedModel(samples=3, clean_accuracy=1.0, accepted=True)
    write_json(folder / "models.json", selection_of({model: checked}, [model]))
    return folder / "models.json"


def read_selection(path):
    from gfscore.audit.values import AuditValues

    params = {"models": [IDENTITY], "measures": {}}
    values = AuditValues.from_params(params, {"selection": path, "dataset": ""})
    return [np.array([model.label for model in values.included])]


def verdict_file(folder):
    from gfscore.core.files import write_json

    decided = {"verdict": "PASS", "sentence": "PASS: all", "stops": False, "note": "", "rules": [], "guessing": []}
    decided |= {"excluded": [], "warned": [], "software": {"name": "gfscore", "version": "0", "commit": None}}
    evidence = {"time": "", "dataset": {"name": "d", "digest": "", "rows": 1}, "models": {}, "made_from": {}}
    write_json(folder / "verdict.json", decided | evidence | {"findings": []})
    return folder / "verdict.json"


def read_verdict(path):
    from gate import gate
    from gfscore.audit.verdicts import verdict

    current = verdict.read_verdict(path)
    current.require_current(path)
    gate({path: current})


def calibration_file(folder):
    from gfscore.core.files import write_json

    chosen = {"measure": "great", "models_digest": "d", "split": None, "t_star": 0.7, "t_star_by_model": {"A": 0.8}}
    (folder / "audit").mkdir(exist_ok=True)
    write_json(folder / "audit/calibration.json", {"wcr": chosen, "mean": {**chosen, "t_star": 1.3}})
    return folder / "audit/calibration.json"


def read_calibration(path):
    from gfscore.audit.audit_changes import require_comparable_audits
    from gfscore.core.files import read_json

    require_comparable_audits(path.parent, path.parent)
    return [np.array(json.dumps(read_json(path)))]
