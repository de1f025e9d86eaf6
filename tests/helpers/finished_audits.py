"""Finished audits of a few models on a few samples, in results/ of the working folder, made by the steps themselves."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from build_report import build_report
from fetch_dataset import fetch_dataset
from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.scoring import LogitCheck
from gfscore.audit.settings import IntervalSettings, TemperatureGrid
from gfscore.audit.step_params import LogitChanges
from gfscore.audit.table_names import TABULATED
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.core.dataset_manifest import resolve_label_error_rates
from gfscore.core.digests import sha256_of_file, write_checksummed
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import MODEL
from gfscore.measures import entries_of
from gfscore.measures.samples import table_of
from gfscore.networks.checkpoint_files import model_digest
from gfscore.show.page.report import PageSettings
from gfscore.tables.parquet_tables import read_table, write_logits, write_table
from gfscore.tables.table import DATASET
from gfscore.workflow import audit_steps
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.plan import Run
from gfscore.workflow.resolved_file import rendered
from import_release import import_release
from judge_audit import judge_audit
from score_models import score_models
from tabulate_audit import tabulate_audit

AUDIT = "toy"
CLASSES = 3

SHARED = """
run: [toy]
disparity: {permutations: 19}
confusions: {shuffles: 19}
great: {permutations: 19}
audits:
  toy:
    dataset: toy
    models: [toy/none/good, toy/none/bad]
    measures: [MEASURES]
    calibration: {measure: great-softmax, objectives: [likelihood]}
    gate: [{measure: great-softmax, at_least: 0.1}, {measure: clean, statistic: rdi, at_most: 0.9}]
"""

FROM_LOGITS = """
datasets: {toy: {source: labels, path: labels.npy, classes: [cat, dog, frog]}}
models: {toy: {none: {good: {source: logits, path: given/good.npy}, bad: {source: logits, path: given/bad.npy}}}}
"""

ATTACKED = """
datasets: {toy: {source: npz, path: images.npz, value_range: 1, channels: first, classes: [cat, dog, frog]}}
models: {toy: {none: {good: {source: torch, path: given/good.safetensors, architecture: "torch.nn:Linear"},
                      bad: {source: torch, path: given/bad.safetensors, architecture: "torch.nn:Linear"}}}}
"""

SEVERAL_FILES = """
datasets: {toy: {source: npz, path: images.npz, value_range: 1, channels: first, classes: [cat, dog, frog]}}
models: {toy: {none: {good: {source: onnx, path: given/good.onnx, gradients: true},
                      bad: {source: onnx, path: given/bad.onnx, gradients: true}}}}
"""


DECLINES = """
    last_release: {bundle: RELEASE}
    gate: [{measure: clean, statistic: decline, at_most: 0.3}, {measure: great-softmax, statistic: decline, at_most: 1}]
"""

PROOF, ATTACK, BAND = "proven-linf-2of255", "adversarial-linf-2of255", "robust-linf-2of255"
"""A proof and an attack in one ball, and the measure that an audit of both has by itself."""

BANDS = f"""
    gate: [{{measure: {BAND}, at_least: 0.5}}]
"""


def finished_audit(
    *,
    attacked=False,
    several_files=False,
    seed=0,
    page=True,
    per_class=15,
    signals=(2.0, 1.0),
    release=None,
    bands=None,
):
    """Make the audit `toy` of logits that users give, or of two networks that were attacked, as far as files tell.

    With `several_files` the networks that were attacked have weights in a file beside them; the page may be left out.
    `signals` say by how much the logit of the true class leads, one number or one for each class, of both models. With
    `release`, the folder of a bundle, the gate judges declines since then. `bands` are numbers of samples of each class,
    for each model, that are proven and that survive attacks, which the gate judges then; all samples are right.
    """
    if bands is not None:
        attacked, signals = True, (20.0, 20.0)
    rng, n = np.random.default_rng(seed), CLASSES * per_class
    labels = np.repeat(np.arange(CLASSES), n // CLASSES)
    Path("given").mkdir(exist_ok=True)
    np.save("labels.npy", labels)
    np.savez("images.npz", x=rng.random((n, 1, 2, 2), dtype=np.float32), y=labels)
    measures = "clean, great-softmax" + (", minimal-l2" if attacked else "")
    measures += f", {PROOF}, {ATTACK}" if bands else ""
    models = SEVERAL_FILES if several_files else ATTACKED if attacked else FROM_LOGITS
    shared = SHARED
    without_gate = SHARED[: SHARED.index("    gate:")]
    if release is not None:
        shared = without_gate + DECLINES.replace("RELEASE", str(release)).lstrip("\n")
    if bands is not None:
        shared = without_gate + BANDS.lstrip("\n")
    text = (shared + models).replace("MEASURES", measures)
    Path("config.yaml").write_text(text)
    resolution = resolved_configuration(["config.yaml"], {})
    audit = Run(resolution.config).audits[AUDIT]
    dataset = audit.dataset
    fetch_dataset(
        dataset.image_settings(),
        dataset.entry["classes"],
        dataset.manifest,
        dataset.samples,
        dataset="toy",
        path_to_images=dataset.images,
    )
    samples = read_table(dataset.samples, DATASET)
    for model, signal, band in zip(audit.models, signals, bands or (None, None), strict=True):
        logits = rng.normal(size=(n, CLASSES)).astype(np.float32)
        logits[np.arange(n), labels] += np.broadcast_to(signal, CLASSES)[labels].astype(np.float32)
        if attacked:
            _network(
                model,
                samples,
                logits,
                entries=entries_of(audit.measures),
                distances=rng.uniform(0.1, 2.0, n),
                band=band,
            )
        else:
            np.save(f"given/{model.name.classifier}.npy", logits)
    write_checksummed("results/audits/toy/config.yaml", rendered(resolution, AUDIT))
    _steps(audit)
    if page:
        _page(audit)


def _network(planned, samples, logits, *, entries, distances, band):
    path, source, model = Path(planned.path), planned.source.name, planned.name.columns()
    path.write_bytes(model["model"].encode())
    files = [{"path": str(path), "sha256": sha256_of_file(path)}]
    if path.suffix == ".onnx":
        beside = Path(f"{path}.data")
        beside.write_bytes(b"weights of " + model["model"].encode())
        files.append({"path": str(beside), "sha256": sha256_of_file(beside)})
    known = {"path": str(path), "sha256": model_digest(source, [file["sha256"] for file in files])}
    place = MODEL.format(**model)
    settings = {"source": source, "settings": planned.checkpoint_settings()}
    write_json(f"results/checkpoints/{place}.json", {**model, **settings, **known, "files": files})
    digest = read_json("results/datasets/toy.json")["digest"]
    identity = {**model, "dataset_digest": digest, "checkpoint_sha256": known["sha256"]}
    columns = {"sample_id": samples["sample_id"].to_numpy(), "label": samples["label"].to_numpy()}
    write_logits(f"results/logits/{place}.parquet", **columns, logits=logits, identity=identity)
    cost = {
        "wall_s": 2.0,
        "cpu_s": 1.5,
        "gpu_s": 0.0,
        "peak_memory_mib": 400.0,
        "forwards": len(samples),
        "backwards": 0,
    }
    write_json(f"results/costs/extract_logits/{place}.json", cost)
    right = logits.argmax(axis=1) == columns["label"]
    frame = pd.DataFrame({**columns, "prediction": logits.argmax(axis=1), "clean_prediction": logits.argmax(axis=1)})
    frame["censored"] = False
    values = {"minimal-l2": ("minimal", np.where(right, distances, 0.0))}
    if band is not None:
        # The first samples of each class are those that are proven, or that survive.
        place_in_class = frame.groupby("label").cumcount().to_numpy()
        proven, survived = (place_in_class < np.array(counts)[frame["label"]] for counts in band)
        frame["status"] = np.where(proven, "proven", "open")
        values |= {PROOF: ("proven", proven), ATTACK: ("adversarial", survived)}
    for measure, (kind, numbers) in values.items():
        table = table_of(kind)
        filled = frame.assign(value=numbers.astype(float)).reindex(columns=table.column_names)
        write_table(
            f"results/samples/{measure}/{place}.parquet",
            table,
            filled,
            identity=identity | {"measure": measure, "settings": json.dumps(entries[measure], sort_keys=True)},
        )


def _page(audit):
    settings = PageSettings(
        title=audit.title,
        measures=audit.measures,
        models=audit_steps.described_models(audit),
        fp_lambda=audit.run.settings.disparity.fp_lambda,
    )
    folder = AuditFolder(Path(audit.folder), AUDIT)
    build_report(folder, f"{audit.folder}/report.html", settings, sweeps="results/sweeps/toy.parquet")


def _steps(audit):
    config, folder = audit.run.config, audit.folder
    great = config["great"]
    tables = {name: f"{folder}/{name}.parquet" for name in TABULATED}
    tables |= {f"{name}_json": f"{folder}/{name}.json" for name in ("calibration", "comparison")}
    manifest, dataset = audit.dataset.manifest, audit.dataset.samples
    scored = {"selection": f"{folder}/models.json", "sensitivity": f"{folder}/sensitivity.parquet"}
    scored |= {stage: f"results/{stage}/toy.parquet" for stage in ("scores", "sweeps")}
    score_models(
        AuditFiles(manifest=manifest, dataset=dataset),
        scored,
        audit=AUDIT,
        subject=AuditSubject.parse(audit_steps.subject(audit)),
        checks=[LogitCheck.parse(check) for check in audit_steps.logit_checks(audit)],
        temperatures=TemperatureGrid(**great["temperatures"]),
        changes=LogitChanges(shifts=great["shifts"], scales=great["scales"], lam=config["disparity"]["fp_lambda"]),
    )
    given = scored | {
        "manifest": manifest,
        "dataset": dataset,
        "samples": audit.sample_files(audit.measures),
        "manifests": [],
    }
    given |= {"generator": None, "attributes": None, "mappers": [], "projections": []}
    given |= {"checkpoints": audit.fetched_manifests()}
    values = AuditValues.from_params(audit_steps.subject(audit), given)
    tabulate_audit(
        values, AuditFiles.from_inputs(given), tables, audit=AUDIT, settings=audit_steps.table_settings(audit)
    )
    configuration = f"{folder}/config.yaml"
    values_of_release = audit.release_values()
    if isinstance(values_of_release, str):
        import_release(manifest, values_of_release, audit=AUDIT, release=audit_steps.release_params(audit))
    given |= {"release": values_of_release}
    judged = given | {"samples": audit.sample_files(audit.judged_measures), "configuration": configuration}
    judge_audit(
        AuditValues.from_params(audit_steps.subject(audit, audit.judged_measures), judged),
        AuditFiles.from_inputs(judged),
        f"{folder}/verdict.json",
        tables=AuditFolder(Path(folder), AUDIT).tables(),
        measures=audit.measures,
        rules=audit.settings.gate,
        intervals=IntervalSettings(**config["intervals"]),
        label_error_rates=resolve_label_error_rates(config["datasets"]["toy"]["label_error_rate"], manifest, None),
        fp_lambda=config["disparity"]["fp_lambda"],
    )
