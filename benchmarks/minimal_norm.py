"""Minimal-norm attacks side by side with public libraries: python benchmarks/minimal_norm.py prints a table.

Every attack gets about the same number of gradients per image and the same refinement by bisection, which is not
counted in the time of the libraries. Lower distances are stronger; the true distances lie below all of them.
"""

import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import foolbox
import numpy as np
import torch
from foolbox import attacks
from pyautoattack.fab_pt import FABAttack_PT
from shared_checkpoints import classifier_of, compare_all, test_images

from gfscore.attacks.gradient_ascent import correct
from gfscore.attacks.minimal_norm import refine
from gfscore.measures.minimal import Minimal
from gfscore.measures.minimal.batch import measure_batch

MODELS = ("cnn_a_adv", "kw_wide_2_255", "eran_conv_small_pgd")
BUDGET = 100
"""Gradients per image."""

START_GRADIENTS = 40
"""What the DeepFool start of fmn takes: about 4 steps of 9 gradients each."""

LARGEST = {"l2": 4.0, "linf": 0.3}
BISECTION_STEPS = 12
STRENGTH_TARGET = 1.02


def correct_images(classifier, count):
    """The first images of the test data that are classified correctly, and their labels."""
    images, labels = test_images(count)
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
    """Figures of one model for results.json, in a list."""
    return figures(name, norm, measured_rows(name, norm, count=count, repeats=repeats))


def measured_rows(name, norm, *, count, repeats):
    """Distances and time of every attack on one model, ours first."""
    classifier = classifier_of(name)
    network = classifier.network.eval().requires_grad_(requires_grad=False)
    images, labels = correct_images(classifier, count)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    settings = {"norm": norm, "largest_distance": LARGEST[norm], "bisection_steps": BISECTION_STEPS}
    settings["attacks"] = [{"name": "fmn", "steps": BUDGET - START_GRADIENTS}]
    # Nothing is drawn.
    how = {"settings": Minimal.model_validate(settings), "seeds": np.zeros(len(images), dtype=np.uint64)}
    seconds, ours = timed(lambda: measure_batch(classifier, images, labels, **how), repeats=repeats)
    rows = [{"attack": "fmn", "seconds": seconds, "values": ours["value"], "censored": ours["censored"]}]
    for attack, run in library_attacks(network, norm).items():
        seconds, candidates = timed(lambda run=run: run(x, y), repeats=repeats)
        points, found = refine(network, x, candidates.detach(), y, steps=BISECTION_STEPS)
        length = (points - x).flatten(1).norm(p=2 if norm == "l2" else math.inf, dim=1).numpy()
        censored = ~found.numpy() | (length > LARGEST[norm])
        values = np.where(censored, LARGEST[norm], length)
        rows.append({"attack": attack, "seconds": seconds, "values": values, "censored": censored})
    return rows


def figures(name, norm, rows):
    """Two figures of one model and norm for results.json: strength and speed of our attack."""
    median = [float(np.median(row["values"])) for row in rows]
    best = min(range(1, len(rows)), key=median.__getitem__)
    # A library that is quick because it ends farther away is no rival.
    rivals = [row for row, middle in zip(rows[1:], median[1:], strict=True) if middle <= STRENGTH_TARGET * median[best]]
    quickest = min(rivals, key=lambda row: row["seconds"])
    fastest = quickest["seconds"] / rows[0]["seconds"]
    held = "" if median[0] <= STRENGTH_TARGET * median[best] and fastest >= 1 else ", TARGET MISSED"
    print(f"{name}, {norm}, {len(rows[0]['values'])} images{held}")
    for row, middle in zip(rows, median, strict=True):
        print(
            f"    {row['attack']:18s} median {middle:.4f}  mean {row['values'].mean():.4f}  "
            f"not found {int(row['censored'].sum())}  {row['seconds']:.2f} s",
            flush=True,
        )
    what = f"{len(rows[0]['values'])} images, about {BUDGET} gradients each"
    return [
        {
            "name": f"minimal-norm attack, {name}, {norm}: median distance of the best library's over ours",
            "ratio": median[best] / median[0],
            "target": 1 / STRENGTH_TARGET,
            "unit": "times as near",
            "detail": f"{what}; ours {median[0]:.4f}, {rows[best]['attack']} {median[best]:.4f}",
        },
        {
            "name": f"minimal-norm attack, {name}, {norm}: time of the fastest library as near over ours",
            "ratio": fastest,
            "target": 1,
            "unit": "times as fast",
            "detail": f"{what}; ours {rows[0]['seconds']:.2f} s, {quickest['attack']} {quickest['seconds']:.2f} s; "
            f"within {STRENGTH_TARGET - 1:.0%} of the best library: {', '.join(row['attack'] for row in rivals)}",
        },
    ]


if __name__ == "__main__":
    compare_all(compare, description=__doc__.splitlines()[0], norms=LARGEST, models=MODELS, images=150)
