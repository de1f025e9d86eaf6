"""The audit celeba-24 in small: its own data files, networks and recipe, from images to predictions."""

from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from extract_logits import extract_logits
from fetch_dataset import fetch_dataset
from gfscore.core.files import read_json
from gfscore.networks.architectures import build_network
from gfscore.networks.model_source import model_sources
from gfscore.tables.parquet_tables import read_logits
from gfscore.workflow.plan import Run
from helpers.configurations import shipped_configuration
from train_model import train_model

CONFIG = shipped_configuration()
ENTRIES = CONFIG["models"]["celeba"]["none"]
AUDIT = CONFIG["audits"]["celeba-24"]
TASK = CONFIG["datasets"]["celeba"]["task"]
ATTRIBUTES = AUDIT["groups"]["attributes"]
SIDE = 32
"""Pixels in place of 224: what the networks make of an image stays the same."""

TRAINED, VALIDATED, TESTED = 32, 4, 24

PUBLISHED = {
    "ResNet_18": 11.69, "ResNet_34": 21.80, "ResNet_50": 25.56, "ResNet_101": 44.55, "ResNet_152": 60.19,
    "VGG_11": 132.87, "VGG_13": 133.05, "VGG_16": 138.37, "VGG_19": 143.68,
    "DenseNet_121": 7.98, "DenseNet_169": 14.15, "DenseNet_201": 20.01, "MobileNet_V2": 3.50, "MobileNet_V3": 5.48,
    "ViT_S": 22.05, "ViT_B": 86.57, "ViT_L": 304.33, "Swin_T": 28.29, "Swin_S": 49.61,
    "DeiT_T": 5.72, "DeiT_S": 22.05, "DeiT_B": 86.57, "Mixer_S": 18.53, "Mixer_B": 59.88,
}  # fmt: skip
"""Millions of parameters that the networks' authors, torchvision and timm give for 1,000 classes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CelebA of 60 images of 40 x 48 pixels with all 40 attributes, the attractive ones bright, and its manifests."""
    root, rng = tmp_path_factory.mktemp("celeba"), np.random.default_rng(0)
    names = [f"{number:06d}.jpg" for number in range(1, TRAINED + VALIDATED + TESTED + 1)]
    values = rng.choice([-1, 1], size=(len(names), len(ATTRIBUTES)))
    (root / "img_align_celeba").mkdir()
    for name, bright in zip(names, values[:, ATTRIBUTES.index(TASK)] == 1, strict=True):
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
        made = root / f"{dataset}.json", root / f"{dataset}.parquet"
        fetch_dataset(settings, entry["classes"], *made, dataset=dataset, path_to_images=root)
    return root


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_network_of_the_audit_is_built_for_its_images_and_is_the_published_one(name, monkeypatch):
    # Shapes alone, without numbers, but for timm's drop-path rates, which it reads while it builds.
    monkeypatch.setattr(torch, "linspace", partial(torch.linspace, device="cpu"))
    training = ENTRIES[name]["training"]
    with torch.device("meta"):
        network = build_network(
            training["architecture"], in_channels=3, image_size=(224, 224), classes=2, seed=1, **training["arguments"]
        )
        assert network.eval()(torch.empty(2, 3, 224, 224)).shape == (2, 2)
    head = next(layer for layer in network.modules() if isinstance(layer, nn.Linear) and layer.out_features == 2)
    parameters = sum(value.numel() for value in network.parameters()) + 998 * (head.in_features + 1)
    assert parameters / 1e6 == pytest.approx(PUBLISHED[name], abs=0.006)


def test_the_networks_and_the_tasks_are_the_papers():
    assert set(ENTRIES) == set(PUBLISHED) and AUDIT["models"] == [f"celeba/none/{name}" for name in ENTRIES]
    assert len(set(ATTRIBUTES)) == len(ATTRIBUTES) == 40
    tasks = [task.label_attribute for task in Run(CONFIG).audits["celeba-24"].tasks]
    assert tasks == ["Attractive", "Eyeglasses"] and set(tasks) < set(ATTRIBUTES)
    assert [CONFIG["models"][zoo]["none"] for zoo in ("celeba", "celeba-eyeglasses")] != [ENTRIES] * 2
    for name in ENTRIES:
        other = CONFIG["models"]["celeba-eyeglasses"]["none"][name]
        assert other["training"] == ENTRIES[name]["training"] and other["train_on"] == "celeba-eyeglasses-train"
    # Each mapper moves all 40, or finds its own dimensions.
    assert [CONFIG["mappers"][name].get("attributes") for name in AUDIT["projection"]] == [None, None]
    assert len(Run(CONFIG).audits["celeba-tasks"].datasets) == 4 + 4 + 2


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
        fitted_by=model_sources()["trained"].fitted_by,
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
    )
    _, label, logits = read_logits(tmp_path / "logits.parquet")
    assert logits.shape == (TESTED, 2) and np.isfinite(logits).all()
    # images differ, and so do their logits: the network looks at them
    assert len(np.unique(logits[:, 0])) > TESTED / 2
    assert np.mean(logits.argmax(axis=1) == label) == pytest.approx(manifest["clean_accuracy"])
