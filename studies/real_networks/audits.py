"""Audits of the real networks at hand, as configurations: 17 checkpoints, 8 files of logits, 2 classifiers of faces."""

import json

from helpers.real_audits import MODELS as ROBUST_MODELS
from helpers.real_audits import faces_audit, torch_entry

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
BALL = {"norm": "linf", "eps": "2/255"}
"""Small networks: at 8/255, the radius of the papers, hardly a sample of any survives."""

SCORES = ("great-softmax", "great-sigmoid")

MEASURES = {
    "attacked": {
        "kind": "adversarial",
        **BALL,
        "attacks": [
            {"name": "pgd", "steps": 20},
            {"name": "apgd-ce", "steps": 20},
            {"name": "apgd-dlr", "steps": 20},
        ],
    },
    "corrupted": {"kind": "corruption", "severities": [3], "subset": {"samples": 300}},
}

TARGETED_MEASURES = {"targeted": {"kind": "targeted", **BALL, "steps": 20, "subset": {"samples": 60}}}

SMOOTHED_MEASURES = {
    "distance": {
        "kind": "minimal",
        "norm": "l2",
        "largest_distance": 2.0,
        "attacks": [{"name": "fmn", "steps": 40}],
        "subset": {"samples": 100},
    },
    "certified": {"kind": "certified", "smoothing": {"sigma": 0.1}, "subset": {"samples": 100}},
}

CHECKPOINTS, TARGETED, SMOOTHED = "real-checkpoints", "targeted-checkpoints", "smoothed-checkpoints"
LOGITS, FACES = "published-logits", "faces"
"""Names of the audits."""

FAMILIES = {
    "ResNet": ("std_resnet20", "std_resnet32", "std_resnet44", "std_resnet56"),
    "CNN-A": ("cnn_a_adv", "cnn_a_adv4", "cnn_a_adv_alt", "cnn_a_mix", "cnn_a_mix4"),
    "KW": ("kw_base_2_255", "kw_wide_2_255", "kw_deep_2_255"),
    "ERAN": ("eran_conv_small_pgd", "sigmoid_conv_small"),
    "Marabou": ("std_marabou_small", "std_marabou_medium", "std_marabou_large"),
}
"""Checkpoints of one group of authors and one architecture or recipe, which are no independent networks."""


def checkpoints_audits(data):
    """Configuration of the audits of the 17 CIFAR-10 checkpoints on 1,017 test images; `data` holds the test data.

    The second attacks all but the ResNets towards each class: those are turned into any class, at many times the cost.
    The third smooths four.
    """
    folder = data / "cifar10"
    facts = json.loads((folder / "models/models.json").read_text(encoding="utf-8"))
    models = {"none": {}, "Linf": {}}
    without_resnets = []
    for name, fact in facts.items():
        threat = "none" if fact["training"] == "standard" else "Linf"
        models[threat][name] = torch_entry(name, fact, folder / "models")
    for threat, entries in models.items():
        without_resnets += [f"real/{threat}/{name}" for name in entries if "resnet" not in name]
    return {
        "datasets": {
            "cifar10-real": {
                "source": "npz",
                "path": str(folder / "test_lossless_1017.npz"),
                "value_range": 255,
                "channels": "first",
                "classes": CLASSES,
                "models_of": "real",
            }
        },
        "models": {"real": models},
        "measures": MEASURES | TARGETED_MEASURES | SMOOTHED_MEASURES,
        "audits": {
            CHECKPOINTS: _audit(
                "Seventeen CIFAR-10 checkpoints",
                "cifar10-real",
                ["real/none/*", "real/Linf/*"],
                ["clean", *SCORES, *MEASURES],
            ),
            TARGETED: _audit(
                "Thirteen small CIFAR-10 checkpoints, attacked towards each class",
                "cifar10-real",
                without_resnets,
                ["clean", *TARGETED_MEASURES],
            ),
            SMOOTHED: _audit(
                "Four smoothed CIFAR-10 checkpoints",
                "cifar10-real",
                [f"real/Linf/{name}" for name in ROBUST_MODELS],
                ["clean", "attacked", "distance", "certified"],
            ),
        },
    }


def logits_audit(data):
    """Configuration of the audit of eight published files of CIFAR-10 logits, 10,000 images."""
    paths = sorted((data / "cifar10/logits").glob("*.npz"))
    models = {path.stem: {"source": "logits", "path": str(path)} for path in paths}
    return {
        "datasets": {
            "cifar10-labels": {
                "source": "labels",
                "path": str(paths[0]),
                "classes": CLASSES,
                "models_of": "published",
            }
        },
        "models": {"published": {"none": models}},
        "audits": {
            LOGITS: _audit(
                "Eight published CIFAR-10 networks", "cifar10-labels", ["published/none/*"], ["clean", *SCORES]
            )
        },
    }


def classifiers_of_faces(data):
    """Configuration of the audit of two classifiers of real faces, without its projection; `data` as above."""
    configuration = faces_audit(data)
    del configuration["mappers"]
    configuration["audits"][FACES]["measures"] = ["clean"]
    configuration["audits"][FACES]["projection"] = None
    return configuration


def _audit(title, dataset, models, measures):
    return {
        "title": title,
        "dataset": dataset,
        "models": models,
        "measures": measures,
        "calibration": None,
        "groups": None,
        "projection": None,
    }


AUDITS = {
    (LOGITS,): logits_audit,
    (CHECKPOINTS, TARGETED, SMOOTHED): checkpoints_audits,
    (FACES,): classifiers_of_faces,
}
"""Names of audits -> what makes their configuration of the folder of the test data."""
