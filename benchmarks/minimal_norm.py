"""Minimal-norm attacks side by side with public libraries: python benchmarks/minimal_norm.py prints a table.

Every attack gets about the same number of gradients per image and the same refinement by bisection, which is not
counted in the time of the libraries. Lower distances are stronger; the true distances lie below all of them.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("workflow_scripts", "tests")]

import foolbox
import numpy as np
import torch
from foolbox import attacks
from pyautoattack.fab_pt import FABAttack_PT

from gfscore.attacks.boundary import refine
from gfscore.attacks.gradient_ascent import correct
from gfscore.attacks.minimal import measure_batch
from gfscore.models.callables import FOLDER_VARIABLE
from gfscore.zoo import open_classifier
from shared_models import ARCHITECTURES, torch_entry

DATA = Path(os.environ.get("GFSCORE_TEST_DATA", HERE.parents[1] / "shared" / "data")) / "cifar10"
MODELS = ("cnn_a_adv", "kw_wide_2_255", "eran_conv_small_pgd")
BUDGET = 100
"""Gradients per image."""

START_GRADIENTS = 40
"""What the DeepFool start of fmn takes: about 4 steps of 9 gradients each."""

LARGEST = {"l2": 4.0, "linf": 0.3}
BISECTION_STEPS = 12
STRENGTH_TARGET = 1.02


def classifier_of(name):
    """One of the shared checkpoints as a Classifier."""
    facts = json.loads((DATA / "models/models.json").read_text())[name]
    settings = torch_entry(name, facts, DATA / "models")
    identity = {"dataset": "cifar10", "threat": "none", "model": name, "source": "torch"}
    manifest = {**identity, "path": settings["path"], "sha256": facts["sha256"], "settings": settings}
    return open_classifier(manifest, image_shape=[3, 32, 32], classes=10)


def correct_images(classifier, count):
    """The first images of the test data that are classified correctly, and their labels."""
    with np.load(DATA / "test_lossless_1017.npz") as file:
        images, labels = file["x"][:count].astype(np.float32) / 255, file["y"][:count].astype(np.int64)
    with torch.no_grad():
        right = correct(classifier.network(torch.from_numpy(images)), torch.from_numpy(labels)).numpy()
    return images[right], labels[right]


def library_attacks(network, norm):
    """Attacks of public libraries within the budget: name -> function from (images, labels) to candidates."""
    model = foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu")
    # One gradient per class and step.
    per_class = math.ceil(BUDGET / 9)
    fab = FABAttack_PT(
        network, norm={"l2": "L2", "linf": "Linf"}[norm], eps=LARGEST[norm], n_iter=per_class, device="cpu"
    )
    if norm == "l2":
        deepfool, other = attacks.L2DeepFoolAttack(steps=per_class), ("DDN", attacks.DDNAttack(steps=BUDGET))
    else:
        deepfool, other = attacks.LinfDeepFoolAttack(steps=per_class), ("FMN", attacks.LInfFMNAttack(steps=BUDGET))
    return {
        f"foolbox {other[0]}": lambda x, y: other[1].run(model, x, foolbox.Misclassification(y)),
        "foolbox DeepFool": lambda x, y: deepfool.run(model, x, foolbox.Misclassification(y)),
        "pyautoattack FAB": fab.perturb,
    }


def timed(function, *, repeats):
    """Shortest of several runs in seconds of processor time, and the function's result."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def compare(name, norm, *, count, repeats):
    """Median distance and time of every attack on one model, ours first."""
    classifier = classifier_of(name)
    network = classifier.network.eval().requires_grad_(requires_grad=False)
    images, labels = correct_images(classifier, count)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    settings = {"norm": norm, "largest_distance": LARGEST[norm], "bisection_steps": BISECTION_STEPS}
    settings["attacks"] = [{"name": "fmn", "steps": BUDGET - START_GRADIENTS}]
    seconds, ours = timed(lambda: measure_batch(classifier, images, labels, settings=settings, seed=0), repeats=repeats)
    rows = [{"attack": "fmn", "seconds": seconds, "values": ours["value"], "censored": ours["censored"]}]
    for attack, run in library_attacks(network, norm).items():
        seconds, candidates = timed(lambda run=run: run(x, y), repeats=repeats)
        points, found = refine(network, x, candidates.detach(), y, steps=BISECTION_STEPS)
        length = (points - x).flatten(1).norm(p=2 if norm == "l2" else math.inf, dim=1).numpy()
        censored = ~found.numpy() | (length > LARGEST[norm])
        values = np.where(censored, LARGEST[norm], length)
        rows.append({"attack": attack, "seconds": seconds, "values": values, "censored": censored})
    return rows


def main():
    """Print every comparison, and write the figures where --output says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=150, help="how many test images, right or wrong")
    parser.add_argument("--repeats", type=int, default=2, help="timed runs, of which the shortest counts")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--output", type=Path, help="file for the figures as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.environ[FOLDER_VARIABLE] = str(ARCHITECTURES)
    results = []
    for norm in LARGEST:
        for name in given.models:
            rows = compare(name, norm, count=given.images, repeats=given.repeats)
            median = [float(np.median(row["values"])) for row in rows]
            best = min(range(1, len(rows)), key=median.__getitem__)
            fastest = rows[best]["seconds"] / rows[0]["seconds"]
            held = "" if median[0] <= STRENGTH_TARGET * median[best] and fastest >= 1 else ", TARGET MISSED"
            print(f"{name}, {norm}, {len(rows[0]['values'])} images{held}")
            for row, middle in zip(rows, median, strict=True):
                print(
                    f"    {row['attack']:18s} median {middle:.4f}  mean {row['values'].mean():.4f}  "
                    f"not found {int(row['censored'].sum())}  {row['seconds']:.2f} s",
                    flush=True,
                )
            results.append(
                {
                    "name": f"minimal-norm attack, {name}, {norm}: median distance of the best library's over ours",
                    "ratio": median[best] / median[0],
                    "target": 1 / STRENGTH_TARGET,
                    "unit": "times as near",
                    "detail": f"{len(rows[0]['values'])} images, about {BUDGET} gradients each; ours {median[0]:.4f}, "
                    f"{rows[best]['attack']} {median[best]:.4f} and {fastest:.1f} times our time",
                }
            )
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
