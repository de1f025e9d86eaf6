"""Write gfscore/networks/robustbench_support.csv: which leaderboard models load here, how, and from which files.

Every model that the installed RobustBench defines is built twice; the weights of the first, in the form in which its
checkpoint is published, go through the workflow's loading procedure into the second, and both answer one image. Equal
logits of the right shape make it `supported`. Takes about 5 minutes and 5 GB of memory on one core, and no network.
Run from anywhere: `.venv/bin/python studies/survey_robustbench.py`.
"""

import contextlib
import csv
import io
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.files import write_text  # noqa: E402
from gfscore.networks import robustbench_models  # noqa: E402
from gfscore.networks.compatibility import CHECKED, import_robustbench  # noqa: E402

import_robustbench()

import torch  # noqa: E402
from robustbench.model_zoo import model_dicts  # noqa: E402
from timm.models import get_pretrained_cfg  # noqa: E402
from torchvision.models import ResNet50_Weights  # noqa: E402

REFERENCE = ROOT / "workflow_scripts/gfscore/networks"
COLUMNS = ["dataset", "threat", "model", "status", "reason", "loading", "preprocessing", "image_side", "files"]
UNDEFINED = f"robustbench {CHECKED['robustbench']} lists its results, but defines no model to load"
PREPROCESSING = {
    "Res256Crop224": ("resize 256 bilinear, crop 224", 224),
    "BicubicRes256Crop224": ("resize 256 bicubic, crop 224", 224),
    "Res224": ("squash to 224 bilinear", 224),
    "Crop288": ("crop 288", 288),
}
"""RobustBench's name -> words, side in pixels."""


def survey():
    """One row per leaderboard entry, mappings of COLUMNS."""
    with (REFERENCE / "robustbench_leaderboard.csv").open(encoding="utf-8", newline="") as file:
        keys = [(row["dataset"], row["threat_model"], row["model"]) for row in csv.DictReader(file)]
    defined = definitions()
    if unlisted := defined.keys() - set(keys):
        raise SystemExit(f"defined, but not on the leaderboard: {sorted(unlisted)}; extend robustbench_leaderboard.csv")
    for key in keys:
        row = dict.fromkeys(COLUMNS, "") | dict(zip(("dataset", "threat", "model"), key, strict=True))
        if key in defined:
            row |= describe(key, defined[key])
            started = time.monotonic()
            row["status"], row["reason"] = verdict(key, row)
            print(f"{'/'.join(key)}: {row['status']}, {time.monotonic() - started:.1f} s", flush=True)
        else:
            row["status"], row["reason"] = "undefined", UNDEFINED
        yield row


def definitions():
    """Every model of the installed package: (dataset, threat, model) -> its entry in RobustBench's tables."""
    return {
        (dataset.value, threat.value, model): entry
        for dataset, threats in model_dicts.items()
        for threat, models in threats.items()
        for model, entry in models.items()
    }


def describe(key, entry):
    """How the checkpoint is loaded, its addresses, and the preprocessing of the published accuracy."""
    identifiers = entry["gdrive_id"]
    side = 32
    words = ""
    if name := robustbench_models.name_in_timm(*key):
        loading, files, words, side = "timm", *in_timm(name)
    elif identifiers == "":
        loading, files = "torchvision", [ResNet50_Weights.IMAGENET1K_V1.url]
    else:
        loading = "ensemble" if isinstance(identifiers, list) else "robustbench"
        identifiers = identifiers if loading == "ensemble" else [identifiers]
        files = [f"https://drive.google.com/uc?id={identifier}" for identifier in identifiers]
    if key[0] == "imagenet" and not words:
        words, side = PREPROCESSING[entry["preprocessing"]]
    if key[0] != "imagenet":
        words = ""
    return {"loading": loading, "preprocessing": words, "image_side": side, "files": " ".join(files)}


def in_timm(name):
    """Addresses, preprocessing in words and image side of a model that RobustBench registers with timm."""
    settings = get_pretrained_cfg(name)
    side = settings.input_size[1]
    resized = int(side / settings.crop_pct)
    return [settings.url], f"resize {resized} {settings.interpolation}, crop {side}", side


def verdict(key, row):
    """Status and reason of a defined model, found out by loading it."""
    dataset, threat, model = key
    named = {"dataset": dataset, "threat": threat, "model": model}
    image = torch.rand(1, 3, row["image_side"], row["image_side"], generator=torch.Generator().manual_seed(0))
    try:
        # Some definitions announce themselves on standard output.
        with torch.inference_mode(), contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            expected = robustbench_models.define(**named).eval()
            parts = as_published(expected, loading=row["loading"], **named)
            expected = expected(image)
            torch.manual_seed(1)
            network = robustbench_models.load_unchecked(folder, **named, read=lambda path: parts[member_of(path)])
            found = network(image)
    # Whatever a definition of other people's raises is the reason.
    except Exception as error:
        return "fails", " ".join(f"{type(error).__name__}: {error}".split())[:200]
    if found.shape != (1, robustbench_models.CLASSES[dataset]) or not torch.equal(found, expected):
        return "fails", "the loaded network answers otherwise than the one whose weights it got"
    return "supported", ""


def as_published(network, *, dataset, threat, model, loading):
    """Content of the files of a checkpoint that holds these weights, in the form that RobustBench expects.

    ASSUME: the published files have this form; none was at hand.
    """
    if loading == "timm":
        # timm fills the network inside RobustBench's normalisation.
        return [dict(getattr(network, "model", network).state_dict())]
    if loading == "ensemble":
        return members(network, dataset=dataset, model=model)
    weights = dict(network.state_dict())
    if dataset == "imagenet":
        weights = without_normalisation(weights)
    if model == "Andriushchenko2020Understanding" or "Kireev2021Effectiveness" in model:
        weights = {"last": weights}
    return [weights]


def members(network, *, dataset, model):
    """As `as_published`, for ensembles."""
    if model.startswith("Bai2023Improving"):
        first, second = (dict(member.state_dict()) for member in network.comp_model.models)
        policy, norm = network.comp_model.policy_net, network.comp_model.bn
        return [first, second, {"model": dict(policy.state_dict()), "bn": dict(norm.state_dict())}]
    if model == "Bai2024MixedNUTS":
        robust = dict(network.rob_model.state_dict())
        return [
            dict(network.std_model.state_dict()),
            without_normalisation(robust) if dataset == "imagenet" else robust,
        ]
    return [dict(member.state_dict()) for member in network.models]


def without_normalisation(weights):
    """Weights of an ImageNet network as its authors trained it, without RobustBench's normalisation around it."""
    kept = {name: value for name, value in weights.items() if not name.startswith("normalize.")}
    return {name.removeprefix("model."): value for name, value in kept.items()}


def member_of(path):
    """Number of the ensemble's member that a file holds, 0 for a single model."""
    member = re.search(r"\.pt_m(\d+)\.pt$", str(path))
    return int(member.group(1)) if member else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(survey())
    write_text(REFERENCE / "robustbench_support.csv", table.getvalue())
