"""One task with four libraries: python benchmarks/beside_notebook.py [--images 500] [NAME ...].

The task: robust accuracy of each class of a network in an l_inf ball, with 95% intervals that hold for all classes
together, and the verdict whether every class has at least a threshold. The functions are what a user writes, from a
torch module, images and labels; printed are their lines, processor seconds and results on the first CIFAR-10 images of
the test data (GFSCORE_TEST_DATA). RobustBench answers less, two accuracies, by a longer attack, AutoAttack, which
gfscore runs as well. It would load CIFAR-10 itself; here it is given the same images as the others.
"""

# ruff: noqa: PLC0415 - imports are among the lines that a user writes

import argparse
import inspect
import os
import sys
import time
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import torch
from pyautoattack import AutoAttack
from shared_checkpoints import ARCHITECTURES, FOLDER_VARIABLE, classifier_of, test_images

from gfscore.networks.compatibility import import_robustbench

MODEL = "cnn_a_adv"
EPS = 2 / 255
THRESHOLD = 0.3


def by_gfscore(model, images, labels, eps, threshold):
    """Classes with simultaneous exact intervals under Auto-PGD and Square."""
    from gfscore import attack, audit_values

    survived = attack(model, images, labels, eps=eps, progress=False)
    audit = audit_values(survived, labels, value_range=(0, 1))
    return audit.classes, audit.judge(at_least=threshold)


def by_gfscore_autoattack(model, images, labels, eps, threshold):
    """The same under AutoAttack."""
    from gfscore import attack, audit_values

    survived = attack(model, images, labels, eps=eps, attacks=["autoattack"], progress=False)
    audit = audit_values(survived, labels, value_range=(0, 1))
    return audit.classes, audit.judge(at_least=threshold)


def by_robustbench(model, images, labels, eps, threshold):
    """Clean and robust accuracy of all classes together under AutoAttack; no interval, and a verdict on the mean."""
    from robustbench.eval import benchmark

    accuracies = benchmark(model, n_examples=len(images), dataset="cifar10", threat_model="Linf", eps=eps)
    return accuracies, "PASS" if accuracies[1] >= threshold else "FAIL"


def by_foolbox(model, images, labels, eps, threshold):
    """The same under 100 steps of PGD; intervals and verdict by hand."""
    import foolbox
    import numpy as np
    import pandas as pd
    from scipy.stats import binomtest

    wrapped = foolbox.PyTorchModel(model.eval(), bounds=(0, 1))
    success = foolbox.attacks.LinfPGD(steps=100)(wrapped, images, labels, epsilons=eps)[2]
    survived = ~success.numpy()
    truth = labels.numpy()
    classes = np.unique(truth)
    rows = []
    for k in classes:
        own = survived[truth == k]
        exact = binomtest(int(own.sum()), len(own)).proportion_ci(1 - 0.05 / len(classes), method="exact")
        rows.append({"class": k, "n": len(own), "value": own.mean(), "low": exact.low, "high": exact.high})
    frame = pd.DataFrame(rows).set_index("class")
    verdict = "INCONCLUSIVE"
    if (frame["low"] >= threshold).all():
        verdict = "PASS"
    elif (frame["high"] < threshold).any():
        verdict = "FAIL"
    return frame, verdict


def by_fairlearn(model, images, labels, eps, threshold):
    """PGD of Foolbox; intervals by bootstrap, of each class alone, without a guarantee."""
    import foolbox
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import accuracy_score

    wrapped = foolbox.PyTorchModel(model.eval(), bounds=(0, 1))
    points = foolbox.attacks.LinfPGD(steps=100)(wrapped, images, labels, epsilons=eps)[1]
    predicted = model(points).argmax(dim=1).detach().numpy()
    frame = MetricFrame(
        metrics=accuracy_score,
        y_true=labels.numpy(),
        y_pred=predicted,
        sensitive_features=labels.numpy(),
        n_boot=1000,
        ci_quantiles=[0.025, 0.975],
        random_state=0,
    )
    low, high = frame.by_group_ci
    verdict = "INCONCLUSIVE"
    if (low >= threshold).all():
        verdict = "PASS"
    elif (high < threshold).any():
        verdict = "FAIL"
    return frame.by_group, verdict


def lines_of(function):
    """Lines of code of a function without its head and docstring."""
    return sum(1 for line in inspect.getsource(function).splitlines()[2:] if line.strip())


class AutoAttackOfRobustBench(AutoAttack):
    """AutoAttack, called as RobustBench 1.1.1 does; its own dependency, pyautoattack 0.2.0, has other arguments."""

    def __init__(self, model, *, log_path=None, **options):
        super().__init__(model, **options)

    def run_standard_evaluation(self, images, labels, *, bs, state_path=None):
        """The images, attacked."""
        return super().run_standard_evaluation(images, labels, batch_size=bs, state_path=state_path)[0]


FUNCTIONS = {
    "gfscore": by_gfscore,
    "foolbox": by_foolbox,
    "fairlearn": by_fairlearn,
    "gfscore-autoattack": by_gfscore_autoattack,
    "robustbench": by_robustbench,
}


def main():
    """Print lines, seconds and result of each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUNCTIONS)}; by default all")
    parser.add_argument("--images", type=int, default=500)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ[FOLDER_VARIABLE] = str(ARCHITECTURES)
    network = classifier_of(MODEL).network.eval()
    pixels, classes = test_images(arguments.images)
    images = torch.from_numpy(pixels)
    labels = torch.from_numpy(classes)
    import_robustbench()
    for name in arguments.names or FUNCTIONS:
        function = FUNCTIONS[name]
        with (
            patch("robustbench.eval.load_clean_dataset", lambda *_: (images, labels)),
            patch("robustbench.eval.AutoAttack", AutoAttackOfRobustBench),
        ):
            start = time.process_time()
            result, verdict = function(network, images, labels, EPS, THRESHOLD)
            seconds = time.process_time() - start
        print(f"{name}: {lines_of(function)} lines, {seconds:.1f} s\n{verdict}\n{result}\n", flush=True)


if __name__ == "__main__":
    main()
