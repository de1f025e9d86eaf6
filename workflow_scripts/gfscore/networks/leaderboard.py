"""Entries of the RobustBench leaderboard: published accuracies, supported models, and URLs of their files.

Accuracies are fractions. Sources: the model descriptions of RobustBench (Croce et al. 2021) and, for the supported
models, robustbench 1.1.1 as surveyed by studies/survey_robustbench.py.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError, unknown

SUPPORTED = "supported"

TOLERANCES = {"cifar10": 0.005, "cifar100": 0.005, "imagenet": 0.02}
"""Largest accepted difference from the published clean accuracy: half a point covers differences in arithmetic.

RobustBench's ImageNet accuracies are of 5,000 images, which are up to two points (three standard errors) from those of
all 50,000.
"""


@dataclass(frozen=True)
class Listing:
    """One leaderboard entry.

    `clean_accuracy`, `autoattack_accuracy`, `external_accuracy` and `corruption_accuracy` are fractions, None if not
    listed; `eps` is the radius as listed ("8/255", "0.5", empty). `external_accuracy` is the result of a stronger
    attack, by which the leaderboard ranks if there is one. `status` is "supported" or what is missing, `reason` the
    reason; `loading` is "robustbench" (its own procedure), "ensemble" (the same, one file per member), "timm" or
    "torchvision"; `preprocessing` and `image_side` (pixels) are those of the published accuracy; `files` are the URLs
    of `checkpoint_files`, in the same order.
    """

    dataset: str
    threat: str
    model: str
    architecture: str
    clean_accuracy: float
    autoattack_accuracy: float | None
    external_accuracy: float | None
    corruption_accuracy: float | None
    eps: str
    venue: str
    status: str
    reason: str
    loading: str
    preprocessing: str
    image_side: int | None
    files: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Whether the model can be loaded here."""
        return self.status == SUPPORTED


def listings(dataset: str | None = None, threat: str | None = None) -> list[Listing]:
    """Entries of one dataset and threat, or of all, in alphabetical order."""
    return [
        listing
        for (of_dataset, of_threat, _), listing in _table().items()
        if dataset in (None, of_dataset) and threat in (None, of_threat)
    ]


def require_supported(dataset: str, threat: str, model: str) -> Listing:
    """Entry of one supported model.

    Raises InputError with the reason for an unsupported one, and with the nearest for an unknown model, or pair of
    dataset ("cifar10", ...) and threat ("Linf", "L2", "corruptions").
    """
    pairs = list(dict.fromkeys(f"{listing.dataset}/{listing.threat}" for listing in listings()))
    if f"{dataset}/{threat}" not in pairs:
        raise InputError(f"RobustBench leaderboard: {unknown('dataset/threat', f'{dataset}/{threat}', sorted(pairs))}")
    listing = _table().get((dataset, threat, model))
    if listing is None:
        known = [listing.model for listing in listings(dataset, threat)]
        raise InputError(f"RobustBench {dataset}/{threat}: {unknown('model', model, known)}")
    if not listing.supported:
        raise InputError(
            f"RobustBench {dataset}/{threat}/{model} cannot be audited: {listing.reason}; choose another model, or "
            "use its weights with source torch"
        )
    return listing


def entry(dataset: str, threat: str, model: str, *, folder: Path | str) -> dict[str, Any]:
    """Entry of config.yaml for a supported leaderboard model, a mapping.

    `folder` is the folder of checkpoints. The published robust accuracy is that of AutoAttack, which is listed for
    every Linf and L2 model and, unlike external results, comparable between them; None for corruptions, whose accuracy
    is no worst case. Raises InputError as `require_supported` does.
    """
    listing = require_supported(dataset, threat, model)
    return {
        "source": "robustbench",
        "dataset": dataset,
        "threat": threat,
        "model": model,
        "path": str(folder),
        "architecture": listing.architecture,
        "sha256": None,
        "trust_pickle": False,
        "published_clean_accuracy": listing.clean_accuracy,
        "published_robust_accuracy": listing.autoattack_accuracy,
        "clean_accuracy_tolerance": TOLERANCES[dataset],
    }


def checkpoint_files(dataset: str, threat: str, model: str, *, folder: Path | str) -> list[Path]:
    """Paths of the files of a supported model's checkpoint, in the layout of RobustBench's load_model.

    {folder}/{dataset}/{threat}/{model}.pt; members of an ensemble {model}.pt_m0.pt, {model}.pt_m1.pt, ...
    Raises InputError as `require_supported` does.
    """
    listing = require_supported(dataset, threat, model)
    path = Path(folder, dataset, threat, f"{model}.pt")
    if listing.loading == "ensemble":
        return [path.with_name(f"{path.name}_m{member}.pt") for member in range(len(listing.files))]
    return [path]


@cache
def _table():
    support = {(row["dataset"], row["threat"], row["model"]): row for row in _rows("robustbench_support.csv")}
    return {
        key: _listing(row, support[key])
        for row in _rows("robustbench_leaderboard.csv")
        for key in [(row["dataset"], row["threat_model"], row["model"])]
    }


def _listing(row, support):
    return Listing(
        dataset=row["dataset"],
        threat=row["threat_model"],
        model=row["model"],
        architecture=row["architecture"],
        clean_accuracy=_fraction(row["clean_accuracy_pct"]),
        autoattack_accuracy=_fraction(row["autoattack_accuracy_pct"]),
        external_accuracy=_fraction(row["external_robust_accuracy_pct"]),
        corruption_accuracy=_fraction(row["corruptions_accuracy_pct"]),
        eps=row["eps"],
        venue=row["venue"],
        status=support["status"],
        reason=support["reason"],
        loading=support["loading"],
        preprocessing=support["preprocessing"],
        image_side=int(support["image_side"]) if support["image_side"] else None,
        files=tuple(support["files"].split()),
    )


def _fraction(percent):
    # Rounded, so that 65.04 becomes 0.6504, not 0.6504000000000001.
    return round(float(percent) / 100, 6) if percent else None


def _rows(name):
    table: Any = resources.files("gfscore.networks").joinpath(name)
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
