"""A cheap audit of two models whose logits are given, in a copy of the repository."""

import hashlib
import json

import numpy as np
import yaml

from helpers.configurations import place_logits, small_audit

OVERLAY = "cheap.yaml"
OPTIONS = ("--configfile", "config.yaml", OVERLAY, "--quiet", "host")
TABLES = ("class_scores", "model_summary", "vulnerability", "calibration")
TARGETS = (*(f"results/audits/cheap/{name}.parquet" for name in TABLES), "results/audits/cheap/verdict.json")
CLASSES = ["cat", "dog", "frog"]


def configure(repository):
    """Write the labels, the logits of two models, and the overlay that audits them."""
    labels = np.random.default_rng(0).permutation(np.arange(120) % len(CLASSES))
    np.save(repository.path / "labels.npy", labels)
    config = repository.config()
    of_digits = {"split", "test_share", "seed"}
    shared = {key: value for key, value in config["datasets"]["digits"].items() if key not in of_digits}
    dataset = shared | {"source": "labels", "path": "labels.npy", "classes": CLASSES, "models_of": "made"}
    names = ("A", "B")
    models = {
        name: place_logits(repository.path, name, labels=labels, classes=len(CLASSES), seed=seed)
        for seed, name in enumerate(names)
    }
    audit = small_audit(config, dataset="made", models=[f"made/none/{name}" for name in names])
    overlay = {
        "run": ["cheap"],
        "datasets": {"made": dataset},
        "models": {"made": {"none": models}},
        "audits": {"cheap": audit},
    }
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay, sort_keys=False))
    return repository


def undated(path):
    """Content of a file; of a verdict without the time at which it was judged, and the checksum that covers it."""
    if path.name != "verdict.json":
        return path.read_bytes()
    verdict = json.loads(path.read_text(encoding="utf-8"))
    return json.dumps({key: value for key, value in verdict.items() if key not in ("time", "checksum")}).encode()


def digests(repository):
    """SHA-256 of every table and JSON file there is, by path."""
    results = repository.path / "results"
    files = [path for ending in ("parquet", "csv", "json") for path in results.rglob(f"*.{ending}")]
    return {
        str(path.relative_to(results)): hashlib.sha256(undated(path)).hexdigest()
        for path in files
        # What a job cost differs between runs, as does what it could leave behind; what starts with a dot is a file that
        # was being written.
        if not {"costs", "cache", "previous"} & {*path.relative_to(results).parts} and not path.name.startswith(".")
    }
