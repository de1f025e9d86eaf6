import json

import numpy as np
import pytest

from draw_samples import draw_samples
from extract_logits import extract_logits
from fetch_dataset import fetch_dataset
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.images.dataset_source import dataset_sources
from gfscore.images.manifests import open_described
from gfscore.networks import passes
from gfscore.networks.model_source import model_sources
from gfscore.tables.parquet_tables import read_identity, read_logits, read_table
from gfscore.tables.table import DATASET
from train_model import train_model

NAMES = [str(digit) for digit in range(10)]
IDENTITY = {"dataset": "digits", "threat": "none", "model": "ERM"}
SETTINGS = {
    "method": "ERM",
    "architecture": "small_convnet",
    "arguments": {"width": 8, "pool": 4},
    "epochs": 6,
    "batch_size": 64,
    "learning_rate": 0.005,
    "weight_decay": 0.0001,
    "seed": 1,
    "device": "cpu",
    "threat": None,
    "coefficients": {},
}
ATTACK = {"norm": "linf", "eps": 0.15, "step_size": 0.05, "steps": 3, "restarts": 1, "seed": 0}
GENERATOR = {
    "dimensions": 16,
    "mixture_components": 1,
    "regularisation": 0.01,
    "samples_per_class": 6,
    "label_error_draws": 500,
    "seed": 0,
}


def run_all(folder):
    """Every step from images to logits, into one folder."""
    for split in ("train", "test"):
        settings = {"source": "digits", "split": split, "test_share": 0.5, "seed": 0}
        made = folder / f"{split}.json", folder / f"{split}-samples.parquet"
        fetch_dataset(settings, NAMES, *made, dataset=f"digits-{split}")
    train(folder, SETTINGS, out=folder)
    draw_samples(
        folder / "g.npz",
        folder / "g.json",
        drawn_by=dataset_sources()["generated"].drawn_by,
        dataset="digits-generated",
        classes=None,
        settings=GENERATOR,
        path_to_train=folder / "train.json",
    )
    extract(folder, "test.json", "test.parquet")
    return folder


def train(folder, settings, *, out):
    train_model(
        {"train": folder / "train.json", "test": folder / "test.json"},
        out / "ERM.safetensors",
        out / "ERM.json",
        out / "progress",
        fitted_by=model_sources()["trained"].fitted_by,
        version="1",
        identity=IDENTITY,
        settings=settings,
        attack=ATTACK,
    )


def extract(folder, dataset, logits):
    arguments = [folder / name for name in (dataset, "ERM.json", "ERM.safetensors", logits)]
    extract_logits(*arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run_all(tmp_path_factory.mktemp("first"))


def test_manifests_say_what_was_made(folder):
    dataset = json.loads((folder / "test.json").read_text())
    assert dataset["dataset"] == "digits-test"
    assert dataset["samples"] == sum(dataset["samples_per_class"]) == 898
    assert dataset["image_shape"] == [1, 8, 8]
    samples = read_table(folder / "test-samples.parquet", DATASET, expect={"dataset_digest": dataset["digest"]})
    images, _ = open_described(folder / "test.json")
    assert samples["sample_id"].tolist() == images.sample_id.tolist()
    assert samples["label"].tolist() == images.labels.tolist()
    model = json.loads((folder / "ERM.json").read_text())
    assert {key: model[key] for key in IDENTITY} == IDENTITY
    assert not (folder / "progress").exists()
    assert model["clean_accuracy"] > 0.85 > model["robust_accuracy"]
    assert model["robust_accuracy_attack"] == "PGD-3, l_inf 0.15, test split"
    assert len(model["robust_accuracy_per_class"]) == 10


def test_a_training_that_diverges_names_model_epoch_and_remedy_and_writes_nothing(folder, tmp_path):
    message = "^models: digits/none/ERM: the training diverged in epoch 1: .*; lower learning_rate"
    with pytest.raises(InputError, match=message):
        train(folder, SETTINGS | {"learning_rate": 1e18}, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_logits_carry_the_identity_and_the_accuracy_of_the_manifest(folder):
    sample_id, label, logits = read_logits(folder / "test.parquet")
    model = json.loads((folder / "ERM.json").read_text())
    dataset = json.loads((folder / "test.json").read_text())
    assert logits.shape == (898, 10)
    assert np.mean(logits.argmax(axis=1) == label) == pytest.approx(model["clean_accuracy"])
    assert sample_id[0].startswith("digits-")
    identity = read_identity(folder / "test.parquet")
    assert identity["dataset"] == "digits-test"
    assert identity["dataset_digest"] == dataset["digest"]
    assert identity["checkpoint_sha256"] == model["sha256"]


def test_the_generator_states_its_label_errors(folder):
    manifest = json.loads((folder / "g.json").read_text())
    assert len(manifest["label_error_rate"]) == 10
    assert all(0 < rate < 0.2 for rate in manifest["label_error_rate"])
    made = folder / "gen.json", folder / "gen-samples.parquet"
    fetch_dataset({"source": "generated"}, NAMES, *made, dataset="gen", path_to_images=folder / "g.npz")
    extract(folder, "gen.json", "gen.parquet")
    _, label, logits = read_logits(folder / "gen.parquet")
    assert len(label) == 60
    assert np.mean(logits.argmax(axis=1) == label) > 0.8


def test_two_runs_make_the_same_bytes(folder, tmp_path):
    again = run_all(tmp_path)
    for name in (
        "train.json",
        "test.json",
        "test-samples.parquet",
        "ERM.json",
        "ERM.safetensors",
        "g.json",
        "g.npz",
        "test.parquet",
    ):
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name


def test_the_passes_of_the_logits_are_those_of_the_samples_and_of_the_checks(folder, tmp_path):
    before = passes.counts()
    extract(folder, "test.json", tmp_path / "again.parquet")
    # One image to choose the batch size, and eight that are computed again alone.
    assert passes.counts_since(before) == {"forwards": 898 + 1 + 8, "backwards": 0}


def changed(path, target, **changes):
    write_json(target, {**read_json(path), **changes})
    return target.name


def test_changed_data_and_foreign_checkpoints_are_refused_and_leave_no_file(folder):
    other_data = changed(folder / "test.json", folder / "other-data.json", digest="0" * 64)
    with pytest.raises(InputError, match="delete that manifest"):
        extract(folder, other_data, "refused.parquet")
    fewer = {"classes": NAMES[:9], "digest": "0" * 64}
    with pytest.raises(InputError, match=r"has label 9, outside 0\.\.8"):
        extract(folder, changed(folder / "test.json", folder / "fewer.json", **fewer), "refused.parquet")
    model = folder / "ERM.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:-4])
    with pytest.raises(InputError, match=r"ERM\.safetensors: sha256 is"):
        extract(folder, "test.json", "refused.parquet")
    model.write_bytes(whole)
    assert not list(folder.glob("*refused*"))
