"""What the benchmarks of attacks share: trained networks on CIFAR-10 images, and the loop over norms and models."""

import argparse
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("workflow_scripts", "tests")]

import numpy as np
import torch

from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.classifier import open_classifier
from helpers.real_audits import ARCHITECTURES, torch_entry

DATA = Path(os.environ.get("GFSCORE_TEST_DATA", HERE.parents[1] / "shared" / "data")) / "cifar10"


def classifier_of(name):
    """One of the shared checkpoints as a Classifier."""
    facts = json.loads((DATA / "models/models.json").read_text())[name]
    settings = torch_entry(name, facts, DATA / "models")
    identity = {"dataset": "cifar10", "threat": "none", "model": name, "source": "torch"}
    manifest = {**identity, "path": settings["path"], "sha256": facts["sha256"], "settings": settings}
    return open_classifier(manifest, image_shape=[3, 32, 32], classes=10)


def test_images(count):
    """The first images of the test data, (n, 3, 32, 32) float32 in [0, 1], and their labels, int64."""
    with np.load(DATA / "test_lossless_1017.npz") as file:
        return file["x"][:count].astype(np.float32) / 255, file["y"][:count].astype(np.int64)


def compare_all(compare, *, description, norms, models, images):
    """Print every comparison, and write the figures where --output says.

    `compare(name, norm, count=, repeats=)` compares the attacks on one model, prints them and returns their figures;
    `models` and `images` stand where the command line says nothing else.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--images", type=int, default=images, help="how many test images, right or wrong")
    parser.add_argument("--repeats", type=int, default=2, help="timed runs, of which the shortest counts")
    parser.add_argument("--models", nargs="+", default=models)
    parser.add_argument("--output", type=Path, help="file for the figures as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.environ[FOLDER_VARIABLE] = str(ARCHITECTURES)
    results = []
    for norm in norms:
        for name in given.models:
            results += compare(name, norm, count=given.images, repeats=given.repeats)
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
