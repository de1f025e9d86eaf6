"""Audits of the real test data: their checkpoints, every measure on four robust classifiers, and classifiers of faces.

The networks of the checkpoints stand in tests/architectures/. Faces are of real people: what comes out of their audit is
reported by group only, never by face.
"""

import json
from pathlib import Path

from helpers.configurations import gate_rule

ARCHITECTURES = Path(__file__).resolve().parents[1] / "architectures"

RESNET = {name: ("ResNet", {"blocks": blocks}) for name, blocks in zip(
    ("std_resnet20", "std_resnet32", "std_resnet44", "std_resnet56"), (3, 5, 7, 9), strict=True
)}  # fmt: skip
CNN_A = {"channels": [16, 32], "features": 2048, "hidden": [100]}
NARROW = {"channels": [8, 16], "features": 1024, "hidden": [100]}
DEEP = {"channels": [8, 8, 8, 8], "kernels": [4, 3, 3, 4], "features": 512, "hidden": [100]}
UNPADDED = {"channels": [16, 32], "features": 1152, "hidden": [100], "padding": 0}
MARABOU = [([8, 16], 576), ([16, 32], 1152), ([32, 64], 2304)]
NETWORKS = {
    **RESNET,
    **{f"cnn_a_{kind}": ("convnet", CNN_A) for kind in ("adv", "adv4", "adv_alt", "mix", "mix4")},
    "kw_base_2_255": ("convnet", NARROW),
    "kw_wide_2_255": ("convnet", CNN_A),
    "kw_deep_2_255": ("convnet", DEEP),
    "eran_conv_small_pgd": ("convnet", UNPADDED),
    "sigmoid_conv_small": ("convnet", UNPADDED | {"activation": "sigmoid"}),
    **{
        f"std_marabou_{size}": (
            "convnet", {"channels": channels, "features": features, "hidden": [128, 64], "padding": 0},
        )
        for size, (channels, features) in zip(("small", "medium", "large"), MARABOU, strict=True)
    },
}  # fmt: skip


def torch_entry(name, facts, folder):
    """Settings of source torch for one checkpoint, from what models.json says about it."""
    callable_name, arguments = NETWORKS[name]
    return {
        "source": "torch",
        "path": str(folder / facts["file"]),
        "url": None,
        "sha256": facts["sha256"],
        "architecture": f"architectures.cifar:{callable_name}",
        "arguments": arguments,
        "weights": "model",
        "trust_pickle": False,
        "image_shape": [3, 32, 32],
        "channel_order": "rgb",
        "value_range": 1,
        **(facts["normalisation"] or {"mean": None, "std": None}),
    }


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


FACES = "faces/fairface_5000_64px.parquet"
"""5,000 faces of FairFace (Karkkainen and Joo 2021, CC BY 4.0) at 64x64 within the folder of the test data."""

ATTRIBUTES = ["age", "race"]
FACE_CLASSES = ["Female", "Male"]
POSITIVE = "Male"
SPLIT = {"test_share": 0.5, "seed": 0}

_TRAINING = {
    "method": "ERM_DA",
    "batch_size": 64,
    "weight_decay": 0.05,
    "seed": 1,
    "device": "cpu",
    "threat": None,
    "coefficients": {"rotation": 0, "shift": 0.06, "scale": 0.1, "flip": True},
}
_COSINE = {"warmup_epochs": 1, "clip_norm": 1.0, "mixed_precision": False, "augmentation": None}

TRAININGS = {
    "convolutions": {
        "architecture": "timm/test_efficientnet",
        "arguments": {"drop_path_rate": 0.1},
        "epochs": 5,
        "learning_rate": 0.004,
        "recipe": _COSINE,
    },
    # A pooling-based vision transformer (Heo et al. 2021): 2,500 faces teach a plain one of this size little.
    "transformer": {
        "architecture": "timm/pit_ti_224",
        "arguments": {
            "img_size": 64,
            "patch_size": 8,
            "stride": 8,
            "base_dims": [16, 16],
            "depth": [2, 1],
            "heads": [2, 4],
            "mlp_ratio": 2,
        },
        "epochs": 10,
        "learning_rate": 0.003,
        "recipe": _COSINE,
    },
}
"""Two families, small."""

MAPPER = {
    "kind": "beta_vae",
    "train_on": "faces-train",
    "evaluate_on": "faces",
    "latent": 6,
    "width": 8,
    "features": 64,
    "beta": 10,
    "pixel_sd": 0.1,
    "epochs": 3,
    "batch_size": 32,
    "learning_rate": 0.002,
    "seed": 0,
    "device": "cpu",
    "pictures": False,
    "search": {
        "subset": {"samples": 50, "seed": 0},
        "steps": 20,
        "bisections": 6,
        "sigma": "aggregated",
        "batch_size": 512,
    },
}


def faces_audit(data):
    """Configuration of the audit `faces`; `data` is the folder of the test data."""
    return {
        "datasets": {
            "faces": _faces(data, "test", models_of="faces"),
            "faces-train": _faces(data, "train", models_of=None),
        },
        "models": {"faces": {"none": {name: _model_of_faces(training) for name, training in TRAININGS.items()}}},
        "mappers": {"faces-vae": MAPPER},
        "audits": {"faces": _audit_of_faces()},
        "run": ["faces"],
    }


def _faces(data, part, *, models_of):
    return {
        "source": "parquet",
        "path": str(data / FACES),
        "image": "image",
        "label": "gender",
        "part": {"name": part, **SPLIT},
        "preprocessing": {"method": "none"},
        "classes": FACE_CLASSES,
        "models_of": models_of,
        "label_error_rate": None,
        "published_accuracy": None,
        "subset": None,
        "digest": None,
        "attributes": {"source": "columns", "columns": ATTRIBUTES, "missing": "drop"},
    }


def _model_of_faces(training):
    return {
        "source": "trained",
        "train_on": "faces-train",
        "evaluate_on": "faces",
        "training": {**_TRAINING, **training},
        "attack": {"norm": "linf", "eps": 0.004, "step_size": 0.002, "steps": 2, "restarts": 1, "seed": 0},
        "published_clean_accuracy": None,
        "published_robust_accuracy": None,
        "clean_accuracy_tolerance": 0.005,
    }


def _audit_of_faces():
    return {
        "title": "Two small classifiers of real faces by age and race",
        "dataset": "faces",
        "models": ["faces/none/*"],
        "measures": ["clean", "great-softmax"],
        "calibration": None,
        "groups": {
            "attributes": ATTRIBUTES,
            "positive": POSITIVE,
            "minimum_cell": 20,
            "balanced": {"attribute": "race", "seed": 0},
        },
        "projection": "faces-vae",
        "gate": [gate_rule("clean", statistic="group_gap", attribute=name, at_most=0.5) for name in ATTRIBUTES],
    }
