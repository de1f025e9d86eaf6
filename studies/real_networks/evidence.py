"""What the audits of the real networks measured: class by class, and sample by sample where the networks are paired."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.classwise.confusion import class_errors, confusion_matrix
from gfscore.measures.samples import SCORES as SCORES_TABLE
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import LOGITS as LOGITS_TABLE
from gfscore.workflow.catalogue import CATALOGUE
from studies.real_networks.audits import (
    CHECKPOINTS,
    CLASSES,
    FAMILIES,
    LOGITS,
    MEASURES,
    SCORES,
    SMOOTHED_MEASURES,
    TARGETED,
    TARGETED_MEASURES,
)

PUBLISHED = "published"
"""Set of the eight networks whose logits were published; the others are `CHECKPOINTS`."""

NETWORK_MEASURES = MEASURES | TARGETED_MEASURES | SMOOTHED_MEASURES
"""Measures that show images to the networks; the others are made of logits."""

ERROR_COLUMNS = {"recall": "recall", "cfps": "cfps", "one_vs_rest_accuracy": "cwa"}
"""Columns of class_errors -> those of the table of classes."""

TARGET_COLUMNS = {
    "clean": "reached_clean",
    "success": "target_success",
    "excess": "target_excess",
    "among_misclassified": "target_among_misclassified",
}
"""Columns of target_success -> those of the table of classes."""


@dataclass(frozen=True)
class Paired:
    """One measure of M networks on the same N images.

    Attributes
    ----------
    values : ndarray of shape (M, N), float64
        Values of the measure.
    labels : ndarray of shape (N,), int64
        True classes.
    networks, families : list of M str
        Names of the networks, and of their families.
    """

    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    networks: list[str]
    families: list[str]


def family_of(network: str) -> str:
    """Family of a network; a published one is its own."""
    for family, names in FAMILIES.items():
        if network in names:
            return family
    return network


def audit_table(folder: Path, audit: str, name: str) -> pd.DataFrame:
    """A table of one of the audits."""
    return read_table(folder / f"results/audits/{audit}/{name}.parquet", CATALOGUE[name])


def class_table(folder: Path) -> pd.DataFrame:
    """One row per network and class, 250 in all, from the tables of both audits of CIFAR-10 networks.

    Columns networks (the set), model, family, class_name, n; recall, cfps, cwa undisturbed; great_softmax and
    great_sigmoid; for the checkpoints also attacked_recall and attacked_cfps, and for all of them but the ResNets the
    targeted success by its definitions. A published network is a family of its own.
    """
    return pd.concat([_of_audit(folder, LOGITS, PUBLISHED), _of_audit(folder, CHECKPOINTS, "checkpoints")])


def _of_audit(folder, audit, networks):
    key = ["model", "class_name"]
    errors = audit_table(folder, audit, "class_errors")
    clean = errors[errors["measure"] == "clean"].set_index(key)
    table = clean[["n", *ERROR_COLUMNS]].rename(columns=ERROR_COLUMNS)
    scores = audit_table(folder, audit, "class_scores")
    scores = scores[scores["calibration"] == "none"]
    for measure in SCORES:
        rows = scores[scores["measure"] == measure]
        table[measure.replace("-", "_")] = rows.set_index(key)["value"]
    attacked = errors[errors["measure"] == "attacked"].set_index(key)
    for column in ("recall", "cfps"):
        table[f"attacked_{column}"] = attacked[column]
    targets = audit_table(folder, TARGETED, "target_success").set_index(key)
    table = table.join(targets[list(TARGET_COLUMNS)].rename(columns=TARGET_COLUMNS)).reset_index()
    table.insert(0, "networks", networks)
    table.insert(2, "family", table["model"].map(family_of))
    return table


def corrupted_classes(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per model, corruption and class: recall, cfps, and both undisturbed on the same images.

    Takes samples of the corruption measure with the model of each. A network's class of most false positives on all
    images is often another than on the part that is corrupted, so undisturbed values are of that part too.
    """
    tables = []
    for (model, corruption), samples_of_model in rows.groupby(["model", "corruption"], sort=False):
        table = pd.DataFrame({"model": model, "corruption": corruption, "class_name": CLASSES})
        labels = samples_of_model["label"].to_numpy()
        n = np.bincount(labels, minlength=len(CLASSES))
        for prefix, column in (("", "prediction"), ("clean_", "clean_prediction")):
            errors = class_errors(confusion_matrix(labels, samples_of_model[column], len(CLASSES)), n)
            table[f"{prefix}recall"] = errors.recall
            table[f"{prefix}cfps"] = errors.cfps
        tables.append(table)
    return pd.concat(tables)


def published_logits(data: Path) -> dict[str, tuple[NDArray[np.floating], NDArray[np.integer]]]:
    """Logits (10000, 10) and labels (10000,) of the eight published networks, from the folder of the test data."""
    networks = {}
    for path in sorted((data / "cifar10/logits").glob("*.npz")):
        with np.load(path) as file:
            networks[path.stem] = file["logits"], file["labels"]
    return networks


def checkpoint_logits(folder: Path) -> dict[str, tuple[NDArray[np.floating], NDArray[np.integer]]]:
    """Logits (1017, 10) and labels (1017,) of the checkpoints, from the folder of the audits."""
    networks = {}
    for file in sorted((folder / "results/logits/cifar10-real").glob("*/*.parquet")):
        table = read_table(file, LOGITS_TABLE)
        networks[file.stem] = np.stack(table["logits"].to_list()), table["label"].to_numpy()
    return networks


def samples(folder: Path, measure: str) -> pd.DataFrame:
    """Table of the samples of one measure of all checkpoints, with a column model."""
    kind = table_of(NETWORK_MEASURES[measure]["kind"])
    files = sorted((folder / "results/samples" / measure).glob("cifar10-real/*/*.parquet"))
    return pd.concat([read_table(file, kind).assign(model=file.stem) for file in files])


def paired(folder: Path, audit: str, measure: str) -> Paired:
    """Values of one measure of all networks of an audit, image by image."""
    if measure in NETWORK_MEASURES:
        rows = samples(folder, measure)
    else:
        rows = read_table(folder / f"results/scores/{audit}.parquet", SCORES_TABLE)
        rows = rows[rows["measure"] == measure]
    values = rows.pivot(index="sample_id", columns="model", values="value")
    labels = rows.drop_duplicates("sample_id").set_index("sample_id")["label"].loc[values.index]
    networks = list(values)
    families = [family_of(name) for name in networks]
    return Paired(values.to_numpy().T, labels.to_numpy(dtype=np.int64), networks, families)
