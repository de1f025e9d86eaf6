"""An audit of four real robust CIFAR-10 classifiers by every measure, laid over config.yaml."""

import json

from helpers.configurations import gate_rule
from shared_models import torch_entry

MODELS = ("cnn_a_adv", "cnn_a_mix", "kw_wide_2_255", "eran_conv_small_pgd")
"""Two adversarially trained, one provably trained, one from another group: all for l_inf 2/255."""

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
LINF = {"norm": "linf", "eps": 2 / 255}
LARGEST_DISTANCE = 2.0
SIGMA = 0.1


def every_measure(data, samples):
    """Configuration of the audit `every-measure` on so many test images; `data` is the folder of the test data."""
    facts = json.loads((data / "cifar10/models/models.json").read_text())
    models = {
        name: torch_entry(name, facts[name], data / "cifar10/models")
        | {
            "published_clean_accuracy": facts[name]["clean_accuracy_on_1017_pct"] / 100,
            "published_robust_accuracy": None,
            "clean_accuracy_tolerance": 0.001,
        }
        for name in MODELS
    }
    images = {
        "source": "npz",
        "path": str(data / "cifar10/test_lossless_1017.npz"),
        "value_range": 255,
        "channels": "first",
        "classes": CLASSES,
        "models_of": "robust",
        "label_error_rate": None,
        "published_accuracy": "subset" if samples else "full",
        "subset": samples and {"samples": samples, "seed": 0},
        "digest": None,
        "attributes": None,
    }
    audit = {
        "title": "Four robust classifiers by every measure",
        "dataset": "cifar10-real",
        "models": ["robust/Linf/*"],
        "measures": ["clean", "great-softmax", "great-sigmoid", *MEASURES],
        "calibration": {
            "measure": "great-softmax",
            "objectives": ["cross_model_accuracy", "attack_distance", "within_model_class_accuracy"],
            "split": None,
        },
        "groups": None,
        "projection": None,
        "gate": [gate_rule("adversarial-linf", at_least=0.05)],
    }
    return {
        "datasets": {"cifar10-real": images},
        "models": {"robust": {"Linf": models}},
        "measures": MEASURES,
        "audits": {"every-measure": audit},
        "run": ["every-measure"],
    }


MEASURES = {
    "adversarial-linf": {
        "kind": "adversarial",
        **LINF,
        "attacks": [
            {"name": "pgd", "steps": 20, "step_size": 2 / 2550, "restarts": 1},
            {"name": "apgd-ce", "steps": 20, "restarts": 1},
            {"name": "apgd-dlr", "steps": 20, "restarts": 1},
            {"name": "square", "queries": 100},
        ],
        "subset": None,
        "seed": 0,
    },
    "targeted-linf": {
        "kind": "targeted",
        **LINF,
        "step_size": 2 / 2550,
        "steps": 20,
        "restarts": 1,
        "subset": None,
        "seed": 0,
    },
    "minimal-l2": {
        "kind": "minimal",
        "norm": "l2",
        "largest_distance": LARGEST_DISTANCE,
        "attacks": [{"name": "fmn", "steps": 40}],
        "bisection_steps": 12,
        "subset": None,
        "seed": 0,
    },
    "certified-l2": {
        "kind": "certified",
        "smoothing": {
            "sigma": SIGMA,
            "selection_samples": 100,
            "estimation_samples": 1000,
            "alpha": 0.001,
            "batch_size": 1024,
            "sandwich": {"steps": 10, "gradient_draws": 16},
        },
        "subset": {"samples": 100, "seed": 0},
        "seed": 0,
    },
    "probabilistic-linf": {
        "kind": "probabilistic",
        "kappa": 0.01,
        "alpha": 0.05,
        "test": "anytime",
        "budget": 3000,
        "perturbation": {"family": "linf_ball", "eps": 2 / 255, "clip": True},
        "reference": "prediction",
        "batch_size": 1024,
        "subset": None,
        "seed": 0,
    },
    # All fifteen, because these images are large enough for defocus.
    "corruption": {
        "kind": "corruption",
        "corruptions": [
            *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur"),
            *("zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform"),
            *("pixelate", "jpeg_compression"),
        ],
        "severities": [1, 3, 5],
        "subset": None,
        "seed": 0,
    },
}
