"""The manifest of a dataset, as far as audits read it, and the wrong labels that they allow for.

Imports nothing heavy.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.settings import RecordFile


class DatasetManifest(RecordFile):
    """What a dataset is.

    Parameters
    ----------
    dataset : str
        Name.
    digest : str
        SHA-256 of its samples.
    classes : list of str
        Names of the K classes.
    samples : int
        Number of samples.
    digest_covers : str
        Part of the samples that the digest covers.
    path : str or None
        File or folder of the user; None for data without one.
    image_shape : list of int
        (C, H, W); empty for data without images.
    settings : dict
        Those that decide which images and labels it holds.
    """

    dataset: str
    digest: str
    classes: list[str]
    samples: int
    digest_covers: str = ""
    path: str | None = None
    image_shape: list[int] = Field(default_factory=list)
    settings: dict[str, object] = Field(default_factory=dict)

    @property
    def is_subset(self) -> bool:
        """Whether it is a part of the samples of its source."""
        return bool(self.settings.get("subset"))


def resolve_label_error_rates(
    setting: str | float | list[float] | None, path_to_manifest: Path | str, path_to_generator: Path | str | None
) -> list[float] | None:
    """Share of wrong labels of each class.

    Parameters
    ----------
    setting : None, float, list of K float, or "from_generator"
        `label_error_rate` of the dataset's entry; "from_generator" takes the rates in the manifest of its generator.
    path_to_manifest : path
        Manifest of the dataset.
    path_to_generator : path or None
        Manifest of the generator that labelled the dataset, where one did.

    Returns
    -------
    list of K float, or None if the labels are assumed right

    Raises
    ------
    InputError
        For another number of rates than classes.
    """
    if setting is None:
        return None
    if setting == "from_generator":
        return read_json(str(path_to_generator))["label_error_rate"]
    dataset = DatasetManifest.read(path_to_manifest)
    classes = len(dataset.classes)
    if isinstance(setting, list):
        if len(setting) != classes:
            raise InputError(
                f"label_error_rate of {dataset.dataset} has {len(setting)} numbers for {classes} classes; give one for "
                "each class, or one for all"
            )
        return setting
    return [float(setting)] * classes
