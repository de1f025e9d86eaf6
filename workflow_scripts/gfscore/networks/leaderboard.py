"""Entries of the RobustBench leaderboard: published accuracies, supported models, and URLs of their files.

Accuracies are fractions. Sources: the model descriptions of RobustBench (Croce et al. 2021) and, for the supported
models, robustbench 1.1.1 as surveyed by studies/survey_robustbench.py.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from gfscore.core.errors import InputError, unknown_name
from gfscore.networks.model_source import Settings

SUPPORTED = "supported"

TOLERANCES = {"cifar10": 0.005, "cifar100": 0.005, "imagenet": 0.02}
"""Largest accepted difference from the published clean accuracy: half a point covers differences in arithmetic.

RobustBench's ImageNet accuracies are of 5,000 images, which are up to two points (three standard errors) from the
accuracies on all 50,000.
"""


@dataclass(frozen=True)
class Listing:
    """One leaderboard entry.

    Attributes
    ----------
    dataset, threat, model, architecture : str
        As listed.
    clean_accuracy : float
        A fraction.
    autoattack_accuracy : float or None
        A fraction; None if not listed.
    status, reason : str
        "supported" or what is missing, and why.
    loading : str
        "robustbench" (its own procedure), "ensemble" (the same, one file per member), "timm" or "torchvision".
    files : tuple of str
        URLs of the `checkpoint_files`, in the same order.
    """

    dataset: str
    threat: str
    model: str
    architecture: str
    clean_accuracy: float
    autoattack_accuracy: float | None
    status: str
    reason: str
    loading: str
    files: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Whether the model can be loaded here."""
        return self.status == SUPPORTED


def listings(dataset: str | None = None, threat: str | None = None) -> list[Listing]:
    """Entries of one dataset and threat, or of all, in alphabetical order."""
    selected = []
    for listing in _table().values():
        if dataset in (None, listing.dataset) and threat in (None, listing.threat):
            selected.append(listing)
    return selected


def require_supported(dataset: str, threat: str, model: str) -> Listing:
    """Entry of one supported model.

    Parameters
    ----------
    dataset : str
        "cifar10", "cifar100" or "imagenet".
    threat : str
        "Linf", "L2" or "corruptions".
    model : str
        Name on the leaderboard.

    Raises
    ------
    InputError
        With the reason for an unsupported model, and with the nearest name for an unknown model, or pair of dataset and
        threat.
    """
    pairs = {f"{listing.dataset}/{listing.threat}" for listing in listings()}
    pair = f"{dataset}/{threat}"
    if pair not in pairs:
        raise InputError(f"RobustBench leaderboard: {unknown_name('dataset/threat', pair, sorted(pairs))}")
    listing = _table().get((dataset, threat, model))
    if listing is None:
        models = [listing.model for listing in listings(dataset, threat)]
        raise InputError(f"RobustBench {pair}: {unknown_name('model', model, models)}")
    if not listing.supported:
        raise InputError(
            f"RobustBench {pair}/{model} cannot be audited: {listing.reason}; choose another model, or "
            "use its weights with source torch"
        )
    return listing


def entry(dataset: str, threat: str, model: str, *, folder: Path | str) -> Settings:
    """Entry of config.yaml for a supported leaderboard model.

    The published robust accuracy is that of AutoAttack, which is listed for every Linf and L2 model and, unlike
    external results, comparable between them; None for corruptions, whose accuracy is no worst case.

    Parameters
    ----------
    dataset, threat, model : str
        See `require_supported`, which may raise InputError.
    folder : Path or str
        The folder of checkpoints.
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


# Files


def checkpoint_files(dataset: str, threat: str, model: str, *, folder: Path | str) -> list[Path]:
    """Paths of the files of a supported model's checkpoint, in the layout of RobustBench's load_model.

    {folder}/{dataset}/{threat}/{model}.pt; members of an ensemble {model}.pt_m0.pt, {model}.pt_m1.pt, ...
    Raises InputError, see `require_supported`.
    """
    listing = require_supported(dataset, threat, model)
    path = Path(folder, dataset, threat, f"{model}.pt")
    if listing.loading == "ensemble":
        return [path.with_name(f"{path.name}_m{member}.pt") for member in range(len(listing.files))]
    return [path]


def files_of(settings: Settings) -> list[Settings]:
    """Files of a checkpoint: mappings with path, url and sha256 (hex, or None), one per member of an ensemble.

    Parameters
    ----------
    settings : mapping
        Entry of the model, see `entry`; its `sha256` is a digest, a list of digests in the order of the members, or
        None.

    Raises
    ------
    InputError
        For an unsupported model and for a wrong number of digests.
    """
    dataset, threat, model = settings["dataset"], settings["threat"], settings["model"]
    paths = checkpoint_files(dataset, threat, model, folder=settings["path"])
    digests = settings.get("sha256")
    if digests is None:
        digests = [None] * len(paths)
    elif not isinstance(digests, list):
        digests = [digests]
    if len(digests) != len(paths):
        raise InputError(
            f"sha256 of {dataset}/{threat}/{model}: {len(digests)} digests for {len(paths)} files; list one per file, "
            "in order, or null to record them at the first download"
        )
    # ASSUME: these URLs, from the tables of the package, are still valid; none was tested here.
    urls = require_supported(dataset, threat, model).files
    files: list[Settings] = []
    for path, url, sha256 in zip(paths, urls, digests, strict=True):
        files.append({"path": path, "url": url, "sha256": sha256})
    return files


# Tables of the package


@cache
def _table() -> dict[tuple[str, str, str], Listing]:
    support = {}
    for row in _rows("robustbench_support.csv"):
        support[row["dataset"], row["threat"], row["model"]] = row
    table = {}
    for row in _rows("robustbench_leaderboard.csv"):
        key = (row["dataset"], row["threat_model"], row["model"])
        autoattack = row["autoattack_accuracy_pct"]
        table[key] = Listing(
            dataset=row["dataset"],
            threat=row["threat_model"],
            model=row["model"],
            architecture=row["architecture"],
            clean_accuracy=_fraction(row["clean_accuracy_pct"]),
            autoattack_accuracy=_fraction(autoattack) if autoattack else None,
            status=support[key]["status"],
            reason=support[key]["reason"],
            loading=support[key]["loading"],
            files=tuple(support[key]["files"].split()),
        )
    return table


def _fraction(percent: str) -> float:
    # Rounded, so that 65.04 becomes 0.6504, not 0.6504000000000001.
    return round(float(percent) / 100, 6)


def _rows(name: str) -> list[dict[str, str]]:
    table = resources.files("gfscore.networks") / name
    lines = table.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(lines))
