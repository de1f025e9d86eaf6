"""An audit of small classifiers of real faces by the groups of age and race, laid over config.yaml.

Real people: what comes out of it is reported by group only, never by face.
"""

from helpers.configurations import gate_rule

FACES = "faces/fairface_5000_64px.parquet"
"""5,000 faces of FairFace (Karkkainen and Joo 2021, CC BY 4.0) at 64x64 within the folder of the test data."""

ATTRIBUTES = ["age", "race"]
CLASSES = ["Female", "Male"]
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
_COSINE = {"schedule": "cosine", "warmup_epochs": 1, "clip_norm": 1.0, "mixed_precision": False, "augmentation": None}

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
        "models": {"faces": {"none": {name: _model(training) for name, training in TRAININGS.items()}}},
        "mappers": {"faces-vae": MAPPER},
        "audits": {"faces": _audit()},
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
        "classes": CLASSES,
        "models_of": models_of,
        "label_error_rate": None,
        "published_accuracy": None,
        "subset": None,
        "digest": None,
        "attributes": {"source": "columns", "columns": ATTRIBUTES, "missing": "drop"},
    }


def _model(training):
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


def _audit():
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
