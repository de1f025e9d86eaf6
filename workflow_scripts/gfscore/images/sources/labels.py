"""Labels without images, for logits or values per sample that were computed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.lazy import np
from gfscore.core.names import numbered
from gfscore.core.settings import Text, path_ends
from gfscore.images.dataset_source import DatasetSettings, DatasetSource

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class Labels(DatasetSettings):
    """Labels of samples whose images are not available."""

    source: Literal["labels"] = "labels"
    path: Text = Field(description="File of labels: .parquet, .npz, .npy or .csv.")


SOURCE = DatasetSource(name="labels", settings=Labels, claims=path_ends(".npy", ".csv", ".csv.gz"))


def open_source(settings: Labels, path: Path | str) -> ImageSet:
    """Image set with labels and identifiers, but without images.

    Reads the formats of read_labels_file. Without identifiers in the file they are "row-000007" and so on.
    `image_shape` is (0, 0, 0), and reading images raises InputError.
    """
    from gfscore.images.image_set import LabelsAlone, whole_labels
    from gfscore.tables.logit_files import read_labels_file

    values, sample_id, name = read_labels_file(path, classes=settings.classes)
    labels = whole_labels(values, len(values), f"{path}: {name}")
    if sample_id is None:
        sample_id = np.array(numbered("row-", len(labels)))
    return LabelsAlone(sample_id=sample_id, labels=labels, path=path)
