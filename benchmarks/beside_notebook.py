"""One task with three libraries: python benchmarks/beside_notebook.py [IMAGES].

The task: robust accuracy of each class of a network in an l_inf ball, with 95% intervals that hold for all classes
together, and the verdict whether every class has at least a threshold. The functions are what a user writes, from a
torch module, images and labels; printed are their lines, processor seconds and results on the first CIFAR-10 images of
the test data (GFSCORE_TEST_DATA).
"""

# ruff: noqa: PLC0415 - imports are among the lines that a user writes

import inspect
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import torch
from shared_checkpoints import ARCHITECTURES, FOLDER_VARIABLE, classifier_of, test_images

MODEL = "cnn_a_adv"
EPS = 2 / 255
THRESHOLD = 0.3


def by_gfscore(model, images, labels, eps, threshold):
    """Classes with simultaneous exact intervals under Auto-PGD and Square."""
    from gfscore import attack, audit_values

    survived = attack(model, images, labels, eps=eps, progress=False)
    audit = audit_values(survived, labels, value_range=(0, 1))
    return audit.classes, audit.judge(at_least=threshold)


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


def main():
    """Print lines, seconds and result of each function."""
    torch.set_num_threads(1)
    os.environ[FOLDER_VARIABLE] = str(ARCHITECTURES)
    network = classifier_of(MODEL).network.eval()
    pixels, classes = test_images(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
    images = torch.from_numpy(pixels)
    labels = torch.from_numpy(classes)
    for function in (by_gfscore, by_foolbox, by_fairlearn):
        start = time.process_time()
        result, verdict = function(network, images, labels, EPS, THRESHOLD)
        seconds = time.process_time() - start
        print(f"{function.__name__}: {lines_of(function)} lines, {seconds:.1f} s\n{verdict}\n{result}\n", flush=True)


if __name__ == "__main__":
    main()
