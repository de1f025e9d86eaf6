import numpy as np
import pandas as pd
import pytest

from gfscore import InputError
from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.remedies.reading import read_remedies
from gfscore.audit.step_params import RemedyParameters
from gfscore.core.files import read_json, write_json
from gfscore.measures.samples import table_of
from gfscore.networks.offset_files import OffsetFile
from gfscore.tables.parquet_tables import write_logits, write_table
from helpers.steps import audit_inputs, models_named, write_dataset

MEASURE, ENTRY = "adversarial-linf", {"kind": "adversarial", "eps": 0.1}
LABELS = np.repeat([0, 1], 4).astype(np.int32)
NAMES = np.array([f"s{row}" for row in range(len(LABELS))])
SHARES = {0.0: [1, 3], 0.5: [2, 3], 1.0: [3, 2]}
"""Robust samples of each class by strength."""

WRONG = {"M": [0], "M-1": [4, 5]}
"""Samples that a model gets wrong undisturbed."""


def round_of(values, offsets, forwards):
    return {
        **{"offsets": offsets, "values": values, "clean_accuracy": [1.0, 1.0], "mean": 0.5, "objective": 0.1},
        **{"standard_error": 0.1, "reached": True, "step": None, "attacked": 8, "forwards": forwards, "backwards": 0},
    }


@pytest.fixture
def files(tmp_path):
    write_dataset(tmp_path / "judging.parquet", pd.DataFrame({"sample_id": NAMES, "label": LABELS}))
    offsets = tmp_path / "offsets.json"
    trail = [round_of([0.2, 0.7], [0.0, 0.0], 100), round_of([0.6, 0.5], [1.5, -1.5], 40)]
    chosen = {"model": {"dataset": "choosing", "threat": "none", "model": "M"}, "measure": MEASURE, "settings": {}}
    chosen |= {"classes": ["a", "b"], "offsets": [1.5, -1.5], "chosen": 1, "reached": True, "trail": trail}
    write_json(offsets, chosen | {"made_from": {"checkpoint_sha256": "c"}})
    words = OffsetFile.read(offsets).words

    samples, logits = [], []
    for strength, robust in SHARES.items():
        name = "M" if strength == 0 else f"M-{strength:g}"
        model = {"dataset": "judging", "threat": "none", "model": name}
        if strength:
            model["offsets"] = words(strength)
        value = (np.tile(np.arange(4), 2) < np.take(robust, LABELS)).astype(float)
        frame = pd.DataFrame({"sample_id": NAMES, "label": LABELS, "value": value, "censored": False})
        samples.append(tmp_path / f"{name}.parquet")
        table = table_of("adversarial")
        identity = {**model, "measure": MEASURE}
        write_table(samples[-1], table, frame.reindex(columns=table.column_names), identity=identity)
        if name in WRONG:
            values = np.eye(2, dtype=np.float32)[LABELS]
            values[WRONG[name]] *= -1
            logits.append(tmp_path / f"logits-{name}.parquet")
            write_logits(logits[-1], sample_id=NAMES, label=LABELS, logits=values, identity=model)

    return {
        "remedy_datasets": [tmp_path / "judging.parquet"],
        "remedy_offsets": [offsets],
        "remedy_logits": logits,
        "remedy_samples": samples,
    }


def parameters():
    model = {"dataset": "judging", "threat": "none"}
    adjusted = {strength: model | {"model": f"M-{strength:g}"} for strength in (0.5, 1.0)}
    return [
        RemedyParameters(original=model | {"model": "M"}, adjusted=adjusted, measure=MEASURE, entry=ENTRY),
    ]


def audit_values(folder, **settings):
    frame = pd.DataFrame({"sample_id": NAMES, "label": LABELS, "value": 1.0, "steps": 3})
    return audit_inputs(folder, models_named("M"), {MEASURE: ENTRY}, {("M", MEASURE): frame}, **settings)


def test_values_of_a_remedy_are_those_of_its_files(files, tmp_path):
    (remedy,) = read_remedies(
        parameters(), AuditFiles.from_inputs({"manifest": "audit.json", **files}), audit_values(tmp_path)
    )
    assert remedy.original.model.classifier == "M" and list(remedy.adjusted) == [0.5, 1.0]
    outcomes = remedy.paired(1.0, classes=2)
    assert outcomes.before.tolist() == [0.25, 0.75] and outcomes.after.tolist() == [0.75, 0.5]
    assert remedy.paired(0.5, classes=2).after.tolist() == [0.5, 0.75]
    assert remedy.clean.before.tolist() == [0.75, 1] and remedy.clean.after.tolist() == [1, 0.5]

    assert remedy.choice.offsets.tolist() == [1.5, -1.5] and remedy.choice.forwards == 140
    assert remedy.choice.reference.before.tolist() == [0.2, 0.7]
    assert remedy.choice.reference.after.tolist() == [0.6, 0.5]
    assert remedy.audit_forwards == 3 * len(LABELS)


def test_a_model_that_takes_no_part_in_the_audit_has_no_remedy(files, tmp_path):
    assert (
        read_remedies(
            parameters(),
            AuditFiles.from_inputs({"manifest": "audit.json", **files}),
            audit_values(tmp_path, included=["none/N"]),
        )
        == []
    )


def test_samples_of_another_model_are_refused(files, tmp_path):
    files["remedy_samples"].reverse()
    with pytest.raises(InputError):
        read_remedies(parameters(), AuditFiles.from_inputs({"manifest": "audit.json", **files}), audit_values(tmp_path))


def test_values_of_other_offsets_are_refused(files, tmp_path):
    path = files["remedy_offsets"][0]
    content = read_json(path)
    write_json(path, content | {"offsets": [1, -1]})
    with pytest.raises(InputError, match="not made with the offsets in"):
        read_remedies(parameters(), AuditFiles.from_inputs({"manifest": "audit.json", **files}), audit_values(tmp_path))
