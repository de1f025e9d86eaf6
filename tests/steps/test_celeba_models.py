"""The audit celeba-24 in small: its own data files, networks and recipe, from images to predictions."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from extract_logits import extract_logits
from fetch_dataset import fetch_dataset
from gfscore.files import read_json
from gfscore.tables import read_logits
from train_model import train_model

CONFIG = yaml.safe_load((Path(__file__).resolve().parents[2] / "config.yaml").read_text())
ENTRIES = CONFIG["models"]["celeba"]["none"]
ATTRIBUTES = CONFIG["audits"]["celeba-24"]["groups"]["attributes"]
SIDE = 32
"""Pixels in place of 224: what the networks make of an image stays the same."""

TRAINED, VALIDATED, TESTED = 32, 4, 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CelebA of 60 images of 40 x 48 pixels with all 40 attributes, the attractive ones bright, and its manifests."""
    root, rng = tmp_path_factory.mktemp("celeba"), np.random.default_rng(0)
    names = [f"{number:06d}.jpg" for number in range(1, TRAINED + VALIDATED + TESTED + 1)]
    values = rng.choice([-1, 1], size=(len(names), len(ATTRIBUTES)))
    (root / "img_align_celeba").mkdir()
    for name, bright in zip(names, values[:, ATTRIBUTES.index("Attractive")] == 1, strict=True):
        pixels = rng.integers(140 if bright else 0, 256 if bright else 116, (48, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / "img_align_celeba" / name)
    lines = [f"{name} {' '.join(map(str, row))}" for name, row in zip(names, values, strict=True)]
    (root / "list_attr_celeba.txt").write_text("\n".join([str(len(names)), " ".join(ATTRIBUTES), *lines]) + "\n")
    parts = [0] * TRAINED + [1] * VALIDATED + [2] * TESTED
    rows = "".join(f"{name} {part}\n" for name, part in zip(names, parts, strict=True))
    (root / "list_eval_partition.txt").write_text(rows)
    for dataset in ("celeba", "celeba-train"):
        entry = CONFIG["datasets"][dataset]
        settings = {key: entry[key] for key in ("source", "images", "split", "task", "subset", "digest")}
        settings["preprocessing"] = entry["preprocessing"] | {"size": SIDE}
        fetch_dataset(settings, entry["classes"], root / f"{dataset}.json", dataset=dataset, path_to_images=root)
    return root


@pytest.mark.parametrize(
    ("name", "arguments"), [("MobileNet_V2", {}), ("DeiT_T", {"img_size": SIDE})], ids=["convolutions", "transformer"]
)
def test_a_network_of_the_audit_is_trained_by_its_recipe_and_predicts(folder, tmp_path, name, arguments):
    training = ENTRIES[name]["training"]
    settings = training | {"epochs": 3, "batch_size": 16, "device": "cpu"}
    settings |= {"arguments": training["arguments"] | arguments, "recipe": training["recipe"] | {"warmup_epochs": 1}}
    assert settings["arguments"]["drop_path_rate"] == 0.1 and settings["recipe"]["mixed_precision"]
    train_model(
        {"train": folder / "celeba-train.json", "test": folder / "celeba.json"},
        tmp_path / "model.safetensors",
        tmp_path / "model.json",
        tmp_path / "progress",
        version="1",
        identity={"dataset": "celeba", "threat": "none", "model": name},
        settings=settings,
        attack=ENTRIES[name]["attack"] | {"steps": 1},
    )
    manifest = read_json(tmp_path / "model.json")
    assert manifest["architecture"] == ENTRIES[name]["training"]["architecture"]
    extract_logits(
        folder / "celeba.json",
        tmp_path / "model.json",
        tmp_path / "model.safetensors",
        tmp_path / "logits.parquet",
        batch_size=16,
        threads=1,
    )
    _, label, logits = read_logits(tmp_path / "logits.parquet")
    assert logits.shape == (TESTED, 2) and np.isfinite(logits).all()
    # images differ, and so do their logits: the network looks at them
    assert len(np.unique(logits[:, 0])) > TESTED / 2
    assert np.mean(logits.argmax(axis=1) == label) == pytest.approx(manifest["clean_accuracy"])
