"""Strength and speed of the attacks within a ball beside public libraries: python benchmarks/attacks.py.

Each attack gets as many steps, restarts and the same step size on the images that a trained network classifies
correctly. Robust accuracy counts all images, so lower is stronger. Times are of one thread, from images to robust
accuracy: the pass that finds the correctly classified ones and the pass that judges the perturbed ones are in all of
them.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import foolbox
import numpy as np
import torch
from art.attacks.evasion import AutoProjectedGradientDescent, ProjectedGradientDescentNumpy
from art.estimators.classification import PyTorchClassifier
from pyautoattack.autopgd_base import APGDAttack
from shared_checkpoints import classifier_of, compare_all, test_images

from gfscore.attacks.gradient_ascent import correct
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.adversarial.batch import measure_batch
from gfscore.statistics.draws import seeds_of_samples

MODELS = ("cnn_a_adv", "kw_wide_2_255", "eran_conv_small_pgd", "cnn_a_mix")
RADII = {"linf": 2 / 255, "l2": 0.25}
PGD_STEPS = 20
APGD_STEPS = 50
STRENGTH_TARGET = 0.005
"""Share of images by which our robust accuracy may be higher than that of the strongest library."""


def measured(classifier, images, labels, *, settings):
    """Our robust accuracy."""
    seeds = seeds_of_samples(0, "adversarial", range(len(images)))
    parsed = Adversarial.model_validate(settings)
    return measure_batch(classifier, images, labels, settings=parsed, seeds=seeds)["value"].mean()


def step_size_of(eps):
    """Step of projected gradient ascent: 2.5 radii in all (Madry et al. 2018)."""
    return 2.5 * eps / PGD_STEPS


def our_attacks(eps):
    """Entries of a measure's attacks, by name."""
    return {
        "pgd": {"name": "pgd", "steps": PGD_STEPS, "step_size": step_size_of(eps), "restarts": 1},
        "apgd-ce": {"name": "apgd-ce", "steps": APGD_STEPS, "restarts": 1},
        "apgd-dlr": {"name": "apgd-dlr", "steps": APGD_STEPS, "restarts": 1},
    }


def library_attacks(network, norm, eps):
    """Functions from (images, labels) to perturbed images, tensors, by our name of the attack and the library's."""
    model = foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu")
    kind = {"linf": foolbox.attacks.LinfPGD, "l2": foolbox.attacks.L2PGD}[norm]
    of_foolbox = kind(abs_stepsize=step_size_of(eps), steps=PGD_STEPS, random_start=True)
    estimator = PyTorchClassifier(
        network, torch.nn.CrossEntropyLoss(), (3, 32, 32), 10, clip_values=(0, 1), device_type="cpu"
    )
    common = {"norm": {"linf": np.inf, "l2": 2}[norm], "eps": eps, "batch_size": 1024, "verbose": False}
    of_art = ProjectedGradientDescentNumpy(
        estimator, eps_step=step_size_of(eps), max_iter=PGD_STEPS, num_random_init=1, **common
    )

    def autopgd(loss):
        options = {"norm": {"linf": "Linf", "l2": "L2"}[norm], "n_iter": APGD_STEPS, "seed": 0, "device": "cpu"}
        return APGDAttack(network, eps=eps, loss=loss, **options).perturb

    def autopgd_of_art(loss):
        attack = AutoProjectedGradientDescent(
            estimator, eps_step=2 * eps, max_iter=APGD_STEPS, nb_random_init=1, loss_type=loss, **common
        )
        return lambda x, y: torch.from_numpy(attack.generate(x.numpy(), y.numpy()))

    return {
        "pgd": {
            "foolbox": lambda x, y: of_foolbox.run(model, x, foolbox.Misclassification(y), epsilon=eps),
            "ART": lambda x, y: torch.from_numpy(of_art.generate(x.numpy(), y.numpy())),
        },
        "apgd-ce": {"pyautoattack": autopgd("ce"), "ART": autopgd_of_art("cross_entropy")},
        "apgd-dlr": {"pyautoattack": autopgd("dlr"), "ART": autopgd_of_art("difference_logits_ratio")},
    }


def timed(runs, *, repeats):
    """Result of each function and its shortest time in seconds of processor time, taken in turn, not in blocks."""
    times, results = {name: [] for name in runs}, {}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            results[name] = run()
            times[name].append(time.process_time() - start)
    return {name: (results[name], min(times[name])) for name in runs}


def robust_accuracy(network, images, labels, *, attack, norm, eps):
    """Share of images that are classified correctly and that a library's attack leaves so or moves out of the ball."""
    with torch.no_grad():
        right = correct(network(images), labels)
        x, y = images[right], labels[right]
    points = attack(x, y)
    length = (points - x).flatten(1).norm(p=2 if norm == "l2" else float("inf"), dim=1)
    with torch.no_grad():
        return int((correct(network(points), y) | (length > eps * 1.0001)).sum()) / len(images)


def compare(name, norm, *, count, repeats):
    """Figures of every attack on one model for results.json."""
    return figures(name, norm, measured_rows(name, norm, count=count, repeats=repeats), count=count)


def measured_rows(name, norm, *, count, repeats):
    """Rows of every attack on one model: attack, library, robust accuracy, seconds; ours first."""
    classifier = classifier_of(name)
    network, eps = classifier.network.eval().requires_grad_(requires_grad=False), RADII[norm]
    images, labels = test_images(count)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    libraries = library_attacks(network, norm, eps)
    rows = []
    for attack, entry in our_attacks(eps).items():
        settings = {"norm": norm, "eps": eps, "attacks": [entry]}
        runs = {"ours": lambda settings=settings: measured(classifier, images, labels, settings=settings)}
        for library, run in libraries[attack].items():
            runs[library] = lambda run=run: robust_accuracy(network, x, y, attack=run, norm=norm, eps=eps)
        rows += [(attack, library, *found) for library, found in timed(runs, repeats=repeats).items()]
    return rows


def figures(name, norm, rows, *, count):
    """Two figures of each of our attacks on one model and norm for results.json: strength and speed."""
    found = []
    for attack in dict.fromkeys(row[0] for row in rows):
        (_, _, ours, seconds), *libraries = [row for row in rows if row[0] == attack]
        strongest = min(row[2] for row in libraries)
        fastest = min(row[3] for row in libraries)
        held = ours <= strongest + STRENGTH_TARGET and seconds <= fastest
        print(f"{name}, {norm}, {attack}{'' if held else ', TARGET MISSED'}")
        for _, library, accuracy, took in [row for row in rows if row[0] == attack]:
            print(f"    {library:14s} robust accuracy {accuracy:.4f}  {took:.2f} s", flush=True)
        what = f"{attack}, {name}, {norm} {RADII[norm]:.4g}"
        found += [
            {
                "name": f"{what}: robust accuracy of the strongest library, {STRENGTH_TARGET} allowed, over ours",
                # Rounded, since accuracies are counts of images.
                "ratio": round((strongest + STRENGTH_TARGET) / ours, 9),
                "target": 1,
                "unit": "times as strong",
                "detail": f"{count} images; ours {ours:.4f}, strongest library {strongest:.4f}",
            },
            {
                "name": f"{what}: time of the fastest library over ours",
                "ratio": fastest / seconds,
                "target": 1,
                "unit": "times as fast",
                "detail": f"{count} images; ours {seconds:.2f} s, fastest library {fastest:.2f} s",
            },
        ]
    return found


if __name__ == "__main__":
    compare_all(compare, description=__doc__.splitlines()[0], norms=RADII, models=MODELS, images=200)
