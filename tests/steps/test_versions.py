"""Expensive steps change their output only together with their version.

It stands in workflow_scripts/versions.yaml, and of a measure or drawn samples in the declaration of kind or source.

They do not re-run when their code is edited, so a changed result under an old version would go unnoticed. To store new
numbers after raising a version, or after changing a setting in config.yaml, which runs the step again by itself:
GFSCORE_STORE_GOLDEN=1 python -m pytest tests/steps/test_versions.py
"""

import json
import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import nn

from gfscore.images.dataset_source import dataset_sources
from gfscore.images.datasets import load_all, open_images
from gfscore.images.manifests import open_and_describe
from gfscore.images.sources.generator_file import GeneratorFile, NetworkGenerator
from gfscore.measures import KINDS
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import from_network
from gfscore.networks.compatibility import import_torchvision
from gfscore.networks.inference import extract_logits
from gfscore.networks.offset_settings import OffsetSettings
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.networks.probe import fit_probe, open_backbone
from gfscore.networks.training_settings import training_methods
from gfscore.projection.boundaries import search_boundaries
from gfscore.projection.mappers.declared import mapper_settings
from gfscore.projection.mappers.fitting import fit_mapper, of_network
from gfscore.remedies.offsets import choose_offsets
from gfscore.training import generators
from gfscore.training.drawing import draw_images
from gfscore.training.loop import train_classifier, training_settings
from helpers.configurations import shipped_configuration
from helpers.networks import known_network
from helpers.samples import seeds_of

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = yaml.safe_load((ROOT / "workflow_scripts/versions.yaml").read_text())
VERSIONS |= {name: kind.version for name, kind in KINDS.items() if kind.needs == "network"}
VERSIONS |= {name: source.version for name, source in dataset_sources().items() if source.drawn}
GOLDEN = Path(__file__).with_name("golden_versions.json")
FAIR = {"epochs": 3, "coefficients": {"held_out": 0.25, "warmup": 0.3}}
OF_NO_AUDIT = {
    "FGSM": {"method": "FGSM"},
    "MART": {"method": "MART", "coefficients": {"lam": 5}},
    "FRL": {"method": "FRL", **FAIR},
    # Averaged whatever the robust accuracy.
    "CFA": {"method": "CFA", "epochs": 3, "coefficients": {**FAIR["coefficients"], "threshold": 0}},
    "DAFA": {"method": "DAFA", "epochs": 3, "coefficients": {"warmup": 0.3}},
    # Two epochs of a radius that grows.
    "IBP": {"method": "IBP", "epochs": 3, "coefficients": {"warmup": 0}},
    "CROWN_IBP": {"method": "CROWN_IBP", "epochs": 3, "coefficients": {"warmup": 0}},
    "SABR": {"method": "SABR", "epochs": 3, "coefficients": {"warmup": 0}},
}
"""Training on the digits by the methods that the demo leaves out; with epochs after which classes are weighted."""
CONFIG = shipped_configuration(
    models={"digits": {"none": {name: {"training": training} for name, training in OF_NO_AUDIT.items()}}}
)
CLASSES = [str(digit) for digit in range(10)]
TEST_HALF = {"source": "digits", "split": "test", "test_share": 0.5, "seed": 0}


def images():
    return open_images(TEST_HALF, classes=CLASSES)


def trained(method):
    entry = next(e for e in CONFIG["models"]["digits"]["none"].values() if e["training"]["method"] == method)
    x, y = load_all(images())
    epochs = OF_NO_AUDIT.get(method, {}).get("epochs", 1)
    settings = training_settings(entry["training"] | {"epochs": epochs})
    return train_classifier(x[:192], y[:192], settings, classes=10)


def summary_of(network):
    """A few numbers that any change of the weights moves."""
    weights = np.concatenate([value.detach().numpy().ravel() for value in network.parameters()]).astype(float)
    return [float(np.abs(weights).mean()), float(weights.std()), float(np.abs(weights).max())]


def fetched():
    described = open_and_describe(TEST_HALF, dataset="digits", classes=CLASSES)[1]
    return [int(described["digest"][:8], 16), described["samples"], *described["samples_per_class"]]


def generated():
    settings = CONFIG["datasets"]["digits-generated"]["generator"]
    fitted = {key: settings[key] for key in ("dimensions", "mixture_components", "regularisation", "seed")}
    mixtures = generators.fit_mixtures(*load_all(images()), classes=10, **fitted)
    x, y = generators.sample_images(mixtures, 20, seed=0)
    return [float(x.mean()), float(x.std()), *(float(x[y == k].mean()) for k in range(10))]


def drawn():
    settings = {"path": "g.pt", "architecture": "a.b:c", "latent": [2], "samples_per_class": 20, "batch_size": 16}
    entry = GeneratorFile.model_validate({"classes": CLASSES, "generator": settings}).explicit()
    x, _ = draw_images(known_network(10), NetworkGenerator.model_validate(entry["generator"]), classes=10, where="g")
    return [float(x.mean()), float(x.std()), *(float(x[k::10].mean()) for k in range(10))]


def extracted():
    _, _, logits = extract_logits(trained("ERM"), images(), batch_size=100, device="cpu")
    return [float(logits.mean()), float(logits.std()), *logits[0].astype(float)]


def adjusted():
    attack = KINDS["adversarial"].parse({"eps": 0.05, "attacks": [{"name": "pgd", "steps": 3}]})
    settings = OffsetSettings(objective="rdi", rounds=3)
    choice = choose_offsets(from_network(trained("ERM")), images(), settings=settings, attack=attack, batch_size=256)
    return [*choice.trail[-1].offsets, *choice.trail[-1].values]


def fetched_checkpoint(folder):
    path = folder / "tiny.safetensors"
    save_file({"weight": torch.arange(4.0)}, path)
    settings = {"source": "torch", "path": str(path), "url": None, "sha256": None, "architecture": "a:b"}
    manifest = describe_checkpoint(settings, identity={"dataset": "z", "threat": "none", "model": "m"})
    return [int(manifest["sha256"][:8], 16), len(manifest), len(manifest["files"])]


def probed():
    import_torchvision()
    import timm

    torch.manual_seed(0)
    network = timm.create_model("test_vit", num_classes=0, in_chans=1, img_size=32).eval()
    settings = {"architecture": "test_vit", "arguments": {"img_size": 32}, "image_shape": [1, 32, 32]}
    settings |= {"weights": "model", "channel_order": "rgb", "value_range": 1, "mean": [0.5], "std": [0.5]}
    with tempfile.TemporaryDirectory() as folder:
        save_file(network.state_dict(), f"{folder}/vit.safetensors")
        backbone = open_backbone(settings, f"{folder}/vit.safetensors", image_shape=(1, 8, 8))
    few = images().select(np.arange(120))
    # Well conditioned: a weak penalty leaves directions in which another processor ends somewhere else.
    how = {"penalty": 100.0, "iterations": 2000}
    head, summary = fit_probe(backbone, few, few, classes=10, **how)
    return [*summary_of(head), summary["train_accuracy"], summary["features"]]


@cache
def fitted():
    """A classifier that knows the digits: rectified random features, weighed by ridge regression in float64.

    Training would do, but amplifies what processors round differently.
    """
    pixels, labels = load_all(images())
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(64, 256)) / 4
    features = np.maximum(pixels.reshape(len(pixels), 64).astype(np.float64) @ mixing, 0)
    gram = features.T @ features + 10 * np.eye(256)
    weights = np.linalg.solve(gram, features.T @ (np.eye(10)[labels] - 0.1))
    hidden, output = nn.Linear(64, 256, bias=False), nn.Linear(256, 10, bias=False)
    hidden.weight.data = torch.from_numpy(mixing.T.astype(np.float32))
    output.weight.data = torch.from_numpy(10 * weights.T.astype(np.float32))
    return from_network(nn.Sequential(nn.Flatten(), hidden, nn.ReLU(), output), classes=10)


def measured(kind, **changed):
    """Means of the numeric columns that a measure, shipped or of its kind, gives for 40 images with some settings."""
    shipped = CONFIG["measures"][MEASURES[kind]] if kind in MEASURES else {"kind": kind}
    settings = shipped | changed
    few = images().select(np.arange(40))
    x = np.concatenate(list(few.batches(40)))
    with reproducible_arithmetic():
        columns = KINDS[kind].load()(
            fitted(), x, few.labels.astype(np.int64), settings=KINDS[kind].parse(settings), seeds=seeds_of(x, seed=7)
        )
    words = ("attack", "state", "corruption", "status", "decided_by", "certificate", "counterexample")
    numeric = {name: np.asarray(values) for name, values in columns.items() if name not in words}
    columns = [values.astype(float) for _, values in sorted(numeric.items())]
    # The drift of votes in float32 is no number.
    return [float(np.nanmean(values)) for values in columns if not np.isnan(values).all()]


def mapped():
    settings = mapper_settings(CONFIG["mappers"]["digits-vae"] | {"epochs": 3})
    x, _ = load_all(images())
    with tempfile.TemporaryDirectory() as folder:
        network, losses = fit_mapper(x[:192], settings, path_to_progress=f"{folder}/epoch.pt", version="1")
    return [*summary_of(network), *losses.values(), *of_network(network, x[:192]).sigma]


def projected():
    """Boundaries along a decoder of fixed weights, which no processor rounds to another prediction of many."""
    x, _ = load_all(images())
    axes = np.linalg.svd(x[:200].reshape(200, -1).astype(np.float64), full_matrices=False)[2][:3]
    decode = lambda codes: (codes @ axes).reshape(-1, 1, 8, 8).astype(np.float32)  # noqa: E731
    codes = x[:40].reshape(40, -1) @ axes.T
    spread, shared = codes.std(axis=0), CONFIG["mappers"]["digits-vae"]["search"]
    # Of a VAE, and of attributes, each from 0 to 1, which have one side.
    attributes = (codes > np.median(codes, axis=0)).astype(np.float64)
    numbers = []
    for shown, moves in ((codes, {}), (attributes, {"limits": (0.0, 1.0)})):
        found = search_boundaries(
            decode if not moves else lambda given: decode((4 * given - 2) * spread),
            lambda images: np.digitize(images[:, 0, 3:5, 3:5].mean(axis=(1, 2)), [0.2, 0.4, 0.6]),
            shown,
            spread if not moves else np.ones(3),
            **{key: shared[key] for key in ("steps", "bisections", "batch_size")},
            **moves,
        )
        sides = (found.up, found.down, found.up_censored, found.down_censored)
        numbers += [float(np.nanmean(part)) for part in (found.reference, *sides)]
    return numbers


MEASURES = {
    "adversarial": "adversarial-linf",
    "minimal": "minimal-l2",
    "targeted": "targeted-linf",
    "certified": "certified-l2",
    "probabilistic": "probabilistic-linf",
    "corruption": "corruption",
}
"""A shipped measure of each kind that has one."""

BALL_ATTACKS = [
    {"name": "fgsm"},
    {"name": "apgd-ce", "steps": 10, "restarts": 1},
    {"name": "apgd-targeted", "steps": 10, "targets": 3},
    {"name": "fab", "steps": 10, "targets": 3},
]
DISTANCE_ATTACKS = [
    {"name": "deepfool", "steps": 20},
    {"name": "fab", "steps": 10},
    {"name": "carlini-wagner", "steps": 20, "binary_search_steps": 3, "step_size": 0.05},
]
NEIGHBOURS = [{"family": "l2_ball", "eps": 0.5, "clip": False}, {"family": "gaussian", "sigma": 0.1, "clip": True}]
NEIGHBOURS += [{"family": "corruption", "corruptions": ["shot_noise", "fog"], "severities": [2, 4]}]


def variants():
    """Settings that no shipped measure has, by kind and a name of their own."""
    small = {"eps": 0.05, "norm": "linf"}
    yield from (("adversarial", entry["name"], {**small, "attacks": [entry]}) for entry in BALL_ATTACKS)
    pgd = {"name": "pgd", "steps": 5, "step_size": 0.1, "restarts": 2}
    yield "adversarial", "pgd-l2", {"norm": "l2", "eps": 0.3, "attacks": [pgd]}
    yield from (("minimal", entry["name"], {"attacks": [entry]}) for entry in DISTANCE_ATTACKS)
    linf = {"norm": "linf", "largest_distance": 0.5, "attacks": [{"name": "fmn", "steps": 20}]}
    yield "minimal", "fmn-linf", linf
    # Without branches, whose number near-ties decide.
    first = {"attacks": [{"name": "apgd-ce", "steps": 10}], "budget": 0}
    yield "proven", "linf", {"eps": 0.01, **first}
    yield "proven", "l2", {"norm": "l2", "eps": 0.1, **first}
    yield "targeted", "l2", {"norm": "l2", "eps": 0.3, "step_size": 0.1, "steps": 5}
    yield from (("probabilistic", entry["family"], {"perturbation": entry, "budget": 500}) for entry in NEIGHBOURS)
    yield "probabilistic", "as-printed", {"test": "repeated_exact", "reference": "label", "budget": 500}


NUMBERS = {
    "fetch_dataset": fetched,
    "fetch_checkpoint": lambda: fetched_checkpoint(Path(tempfile.mkdtemp())),
    "generated": generated,
    "generator_file": drawn,
    "train_mapper": mapped,
    "project_attributes": projected,
    "train_model/probe": probed,
    "extract_logits": extracted,
    "choose_offsets": adjusted,
    **{kind: (lambda kind=kind: measured(kind)) for kind in MEASURES},
    **{
        f"{kind}/{name}": (lambda kind=kind, changed=changed: measured(kind, **changed))
        for kind, name, changed in variants()
    },
    **{f"train_model/{method}": (lambda method=method: summary_of(trained(method))) for method in training_methods()},
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_output_is_that_of_the_recorded_version(name):
    numbers, version = NUMBERS[name](), VERSIONS[name.split("/")[0]]
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("GFSCORE_STORE_GOLDEN"):
        golden[name] = {"version": version, "numbers": numbers}
        GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
    stored = golden[name]
    assert stored["version"] == version, f"store the numbers of version {version} (see the top of this file)"
    # Another processor rounds otherwise; a changed step differs by far more after one epoch.
    assert numbers == pytest.approx(stored["numbers"], rel=2e-3, abs=2e-4), (
        f"{name} gives other numbers: raise its version, then store the new ones"
    )


def test_every_version_is_guarded():
    assert {name.split("/")[0] for name in NUMBERS} == set(VERSIONS)
