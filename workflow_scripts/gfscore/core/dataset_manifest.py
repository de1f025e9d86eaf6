"""The manifest of a dataset, as far as audits read it. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.settings import Record


class DatasetManifest(Record):
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

    @classmethod
    def read(cls, path: Path | str) -> DatasetManifest:
        """Read the file; raises InputError where it is missing, damaged or of an earlier version."""
        try:
            return cls.model_validate(read_json(path))
        except ValidationError as error:
            raise InputError(f"{path}: of an earlier version; delete it and run the workflow again") from error

    @property
    def is_subset(self) -> bool:
        """Whether it is a part of the samples of its source."""
        return bool(self.settings.get("subset"))
