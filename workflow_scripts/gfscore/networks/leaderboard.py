"""Entries of the RobustBench leaderboard: published accuracies, which models can be audited, where their files lie.

Imports nothing heavy, because every run of Snakemake reads it. Accuracies are fractions. Sources: the model
descriptions of RobustBench (Croce et al. 2021) and, for what can be loaded, robustbench 1.1.1 as surveyed by
studies/survey_robustbench.py.
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
"""Largest accepted distance from the published clean accuracy: half a point covers other versions of the arithmetic.

On ImageNet RobustBench measured on 5,000 images, whose accuracy is up to two points (three standard errors) from that
on all 50,000.
"""

LOADING = {
    "robustbench": "RobustBench's own procedure",
    "timm": "RobustBench's definition through timm",
    "ensemble": "RobustBench's own procedure, one file per member",
    "torchvision": "torchvision's weights",
}
"""How a checkpoint gets into the definition, key -> words."""


@dataclass(frozen=True)
class Listing:
    """One leaderboard entry.

    `clean_accuracy` and `autoattack_accuracy`, `external_accuracy`, `corruption_accuracy` are fractions, None where
    not listed; `eps` the radius as listed ("8/255", "0.5", empty). `external_accuracy` is a stronger attack's result,
    which the leaderboard ranks by where there is one. `status` is "supported" or says what is missing, `reason` why;
    `loading` is a key of LOADING; `preprocessing` and `image_side` (pixels) are what the published accuracy was
    measured with; `files` the addresses of the checkpoint's files, in order.
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
    """Entries of one data set and threat, or of all, in the leaderboard file's order (alphabetical)."""
    return [
        listing
        for (of_dataset, of_threat, _), listing in _table().items()
        if dataset in (None, of_dataset) and threat in (None, of_threat)
    ]


def models_of(dataset: str, threat: str) -> list[str]:
    """Names of every supported model of a data set ("cifar10", ...) and threat ("Linf", "L2", "corruptions").

    Raises InputError for a pair that the leaderboard does not have.
    """
    _require_pair(dataset, threat)
    return [listing.model for listing in listings(dataset, threat) if listing.supported]


def listing_of(dataset: str, threat: str, model: str) -> Listing:
    """Entry of one model, supported or not; raises InputError, naming the nearest one, when there is none."""
    _require_pair(dataset, threat)
    if (dataset, threat, model) not in _table():
        known = [listing.model for listing in listings(dataset, threat)]
        raise InputError(f"RobustBench {dataset}/{threat}: {unknown('model', model, known)}")
    return _table()[dataset, threat, model]


def require_supported(dataset: str, threat: str, model: str) -> Listing:
    """Entry of one model that can be loaded; raises InputError with the reason when it cannot, or is unknown."""
    listing = listing_of(dataset, threat, model)
    if not listing.supported:
        raise InputError(
            f"RobustBench {dataset}/{threat}/{model} cannot be audited: {listing.reason}; choose another model, or "
            "bring its weights with source torch"
        )
    return listing


def entry(dataset: str, threat: str, model: str, *, folder: Path | str) -> dict[str, Any]:
    """Entry of config.yaml for a supported leaderboard model, a mapping.

    `folder` is where checkpoints lie or are to be put. The published robust accuracy is AutoAttack's: it is listed
    for every Linf and L2 model and comparable between them, where the external one is not; None for corruptions, whose
    accuracy is no worst case. Raises InputError as `require_supported` does.
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
    """Paths of the files of a supported model's checkpoint, where RobustBench's load_model looks for them.

    {folder}/{dataset}/{threat}/{model}.pt; members of an ensemble {model}.pt_m0.pt, {model}.pt_m1.pt, ...
    Raises InputError as `require_supported` does.
    """
    listing = require_supported(dataset, threat, model)
    path = Path(folder, dataset, threat, f"{model}.pt")
    if listing.loading == "ensemble":
        return [path.with_name(f"{path.name}_m{member}.pt") for member in range(len(listing.files))]
    return [path]


def download_urls(dataset: str, threat: str, model: str) -> list[str]:
    """Addresses of the files of `checkpoint_files`, in the same order.

    ASSUME: these addresses, from the package's own tables, still lead to the files; none was fetched here.
    """
    return list(require_supported(dataset, threat, model).files)


def _require_pair(dataset, threat):
    pairs = sorted({(of_dataset, of_threat) for of_dataset, of_threat, _ in _table()})
    if (dataset, threat) not in pairs:
        known = [f"{of_dataset}/{of_threat}" for of_dataset, of_threat in pairs]
        raise InputError(f"RobustBench leaderboard: {unknown('dataset/threat', f'{dataset}/{threat}', known)}")


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
    # Rounded, so that 65.04 becomes 0.6504 and not 0.6504000000000001.
    return round(float(percent) / 100, 6) if percent else None


def _rows(name):
    table: Any = resources.files("gfscore.networks").joinpath(name)
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
